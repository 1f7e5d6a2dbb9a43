//! JSON in little memory. The watch cache holds a resource and some reports for each supervisor.

use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};

use flate2::{Compress, Compression, Decompress, FlushCompress, FlushDecompress, Status};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::error::Error;

/// What resources and reports have in common, most frequent at the end. Values refer to it instead of repeating it.
const DICTIONARY: &[u8] = include_bytes!("compressed_json/dictionary.json");

/// How much the output grows at a time.
const STEP: usize = 4 << 10;

/// A value as deflated JSON. Equal values have equal bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CompressedJson(Box<[u8]>);

impl CompressedJson {
    pub(crate) fn new(value: &impl Serialize) -> Result<Self, Error> {
        deflated(&serde_json::to_vec(value)?).map(Self).map_err(invalid)
    }

    /// The value.
    ///
    /// # Errors
    /// If the JSON is no `T`.
    pub(crate) fn parse<T: DeserializeOwned>(&self) -> Result<T, Error> {
        serde_json::from_slice(&inflated(&self.0).map_err(invalid)?)
    }
}

fn invalid(error: impl Into<std::io::Error>) -> Error {
    Error::io(error.into())
}

fn deflated(json: &[u8]) -> Result<Box<[u8]>, flate2::CompressError> {
    static COMPRESS: LazyLock<Mutex<Compress>> =
        LazyLock::new(|| Mutex::new(Compress::new(Compression::default(), false)));
    let mut compress = lock(&COMPRESS);
    compress.reset();
    compress.set_dictionary(DICTIONARY)?;
    let mut output = Vec::with_capacity(STEP);
    loop {
        let read = usize::try_from(compress.total_in()).unwrap_or(usize::MAX);
        let rest = json.get(read..).unwrap_or_default();
        if compress.compress_vec(rest, &mut output, FlushCompress::Finish)? == Status::StreamEnd {
            return Ok(output.as_slice().into());
        }
        output.reserve(STEP);
    }
}

fn inflated(bytes: &[u8]) -> std::io::Result<Vec<u8>> {
    static DECOMPRESS: LazyLock<Mutex<Decompress>> = LazyLock::new(|| Mutex::new(Decompress::new(false)));
    let mut decompress = lock(&DECOMPRESS);
    decompress.reset(false);
    decompress.set_dictionary(DICTIONARY)?;
    let mut output = Vec::with_capacity(STEP);
    loop {
        let read = usize::try_from(decompress.total_in()).unwrap_or(usize::MAX);
        let rest = bytes.get(read..).unwrap_or_default();
        let before = output.len();
        if decompress.decompress_vec(rest, &mut output, FlushDecompress::Finish)? == Status::StreamEnd {
            return Ok(output);
        }
        if rest.is_empty() && output.len() == before {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
        output.reserve(STEP);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;

    proptest! {
        #[test]
        fn every_text_is_restored(text in any::<String>(), times in 0..4000_usize) {
            let value = Value::String(text.repeat(times));
            prop_assert_eq!(CompressedJson::new(&value).unwrap().parse::<Value>().unwrap(), value);
        }
    }

    #[test]
    fn bytes_that_are_cut_off_are_an_error() {
        let whole = CompressedJson::new(&json!(["a", "b", { "c": 1 }])).unwrap().0;
        for length in 0..whole.len() {
            let cut = CompressedJson(whole[..length].into());
            assert!(cut.parse::<Value>().is_err(), "{length} of {} bytes", whole.len());
        }
    }

    #[test]
    fn what_is_in_the_dictionary_takes_hardly_any_memory() {
        let [resource, report]: [Value; 2] = serde_json::from_slice(DICTIONARY).unwrap();
        for (value, limit) in [(&resource, 40), (&report, 24), (&json!({}), 8)] {
            let bytes = CompressedJson::new(value).unwrap().0.len();
            assert!(bytes <= limit, "{bytes} bytes for {value}");
        }
    }
}
