//! Packs entries as a layer: a tar file, compressed or not. The same entries give the same bytes.

use std::io::{self, Write};

use sha2::{Digest, Sha256};
use tar::{Builder, EntryType, Header};

use crate::file_entry::{Entry, Kind};

/// The level of compression.
const LEVEL: i32 = 19;

/// How far back the compression looks for what it has seen, as a power of two: 64 MiB, because the two programs are built from many of
/// the same libraries. Unpacking needs as much memory. Decoders accept up to 27 by default.
const WINDOW_LOG: u32 = 26;

/// The threads that compress. Constant, because the result depends on it.
const THREADS: u32 = 2;

/// The format of a layer (OCI image-spec 1.1, media-types.md).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// A tar file that is compressed with zstd, for images that are distributed.
    Zstd,
    /// A plain tar file, for images that stay on this machine.
    Plain,
}

impl Form {
    pub const fn media_type(self) -> &'static str {
        match self {
            Self::Zstd => "application/vnd.oci.image.layer.v1.tar+zstd",
            Self::Plain => "application/vnd.oci.image.layer.v1.tar",
        }
    }
}

/// A layer and its digests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layer {
    /// The format of the bytes.
    pub form: Form,
    /// The tar file.
    pub bytes: Vec<u8>,
    /// The digest of the tar file (the layer's `DiffID`).
    pub diff_id: String,
    /// The size of the tar file in bytes.
    pub unpacked: usize,
}

impl Layer {
    /// Packs entries in the given order.
    ///
    /// # Errors
    /// If a path does not fit into a tar header.
    pub fn new(entries: &[Entry], form: Form) -> io::Result<Self> {
        let tar = tar(entries)?;
        let (diff_id, unpacked) = (digest(&tar), tar.len());
        let bytes = match form {
            Form::Zstd => compressed(&tar)?,
            Form::Plain => tar,
        };
        Ok(Self { form, bytes, diff_id, unpacked })
    }
}

/// A quarter smaller than the best compression of gzip, and faster to unpack. Engines of images read it since 2023 at the latest.
fn compressed(tar: &[u8]) -> io::Result<Vec<u8>> {
    let mut encoder = zstd::Encoder::new(Vec::new(), LEVEL)?;
    encoder.multithread(THREADS)?;
    encoder.window_log(WINDOW_LOG)?;
    encoder.long_distance_matching(true)?;
    encoder.write_all(tar)?;
    encoder.finish()
}

/// `sha256:` and the hash of some bytes, as OCI writes digests.
pub fn digest(bytes: &[u8]) -> String {
    let hash = Sha256::digest(bytes);
    hash.iter().fold(String::from("sha256:"), |hex, byte| hex + &format!("{byte:02x}"))
}

/// A tar file of the entries, without timestamps.
///
/// # Errors
/// If a path does not fit into a tar header.
pub fn tar(entries: &[Entry]) -> io::Result<Vec<u8>> {
    let mut builder = Builder::new(Vec::new());
    for entry in entries {
        add(&mut builder, entry)?;
    }
    builder.into_inner()
}

fn add(builder: &mut Builder<Vec<u8>>, entry: &Entry) -> io::Result<()> {
    let mut header = Header::new_ustar();
    header.set_mode(entry.mode);
    header.set_uid(entry.owner.into());
    header.set_gid(0);
    header.set_mtime(0);
    header.set_size(0);
    match &entry.kind {
        Kind::Directory => {
            header.set_entry_type(EntryType::Directory);
            builder.append_data(&mut header, format!("{}/", entry.path), io::empty())
        }
        Kind::File(content) => {
            header.set_entry_type(EntryType::Regular);
            header.set_size(content.len() as u64);
            builder.append_data(&mut header, &entry.path, content.as_slice())
        }
        Kind::Link(target) => {
            header.set_entry_type(EntryType::Symlink);
            builder.append_link(&mut header, &entry.path, target)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::root::Programs;

    #[test]
    fn the_digest_is_written_as_oci_does() {
        let empty = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        assert_eq!(digest(b""), empty);
    }

    #[test]
    fn a_layer_is_the_same_each_time() {
        let programs = Programs { supervisor: vec![7; 100_000], operator: Vec::new() };
        let entries = crate::root::files(programs);
        let [one, other] = [(); 2].map(|()| Layer::new(&entries, Form::Zstd).unwrap());
        assert_eq!(one, other);
        let plain = Layer::new(&entries, Form::Plain).unwrap();
        assert_eq!((&plain.diff_id, plain.diff_id.clone()), (&one.diff_id, digest(&plain.bytes)));
    }
}
