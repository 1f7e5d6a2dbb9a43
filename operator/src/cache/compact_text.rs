//! Serializes uids and hashes as numbers, which halves their size.

use std::borrow::Cow;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use uuid::Uuid;

#[derive(Serialize, Deserialize)]
enum Form<'a> {
    Plain(Cow<'a, str>),
    /// 8-4-4-4-12 digits.
    Hyphenated([u8; 16]),
    /// 32 digits.
    Simple([u8; 16]),
}

impl<'a> Form<'a> {
    fn of(text: &'a str) -> Self {
        let mut buffer = Uuid::encode_buffer();
        match Uuid::try_parse(text) {
            Ok(uuid) if uuid.hyphenated().encode_lower(&mut buffer) == text => {
                Self::Hyphenated(uuid.into_bytes())
            }
            Ok(uuid) if uuid.simple().encode_lower(&mut buffer) == text => Self::Simple(uuid.into_bytes()),
            _ => Self::Plain(Cow::Borrowed(text)),
        }
    }

    fn into_text(self) -> String {
        match self {
            Self::Plain(text) => text.into_owned(),
            Self::Hyphenated(bytes) => Uuid::from_bytes(bytes).hyphenated().to_string(),
            Self::Simple(bytes) => Uuid::from_bytes(bytes).simple().to_string(),
        }
    }
}

/// For `serde(with)` at a text.
///
/// # Errors
/// Those of the serializer.
pub(crate) fn serialize<S: Serializer>(text: &str, serializer: S) -> Result<S::Ok, S::Error> {
    Form::of(text).serialize(serializer)
}

/// For `serde(with)` at a text.
///
/// # Errors
/// Those of the deserializer.
pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    Form::deserialize(deserializer).map(Form::into_text)
}

/// For `serde(with)` on an optional text.
pub(crate) mod optional {
    use super::{Deserialize, Deserializer, Form, Serialize, Serializer};

    /// For `serde(with)`.
    ///
    /// # Errors
    /// Those of the serializer.
    #[expect(clippy::ref_option, reason = "serde gives it so")]
    pub(crate) fn serialize<S: Serializer>(text: &Option<String>, serializer: S) -> Result<S::Ok, S::Error> {
        text.as_deref().map(Form::of).serialize(serializer)
    }

    /// For `serde(with)`.
    ///
    /// # Errors
    /// Those of the deserializer.
    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<String>, D::Error> {
        Ok(Option::<Form<'_>>::deserialize(deserializer)?.map(Form::into_text))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Both {
        #[serde(with = "super")]
        text: String,
        #[serde(with = "super::optional")]
        maybe: Option<String>,
    }

    proptest! {
        #[test]
        fn every_text_comes_back_as_it_was(
            text in "[0-9a-fA-F]{32}|[0-9a-f]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-f]{12}|urn:uuid:[0-9a-f]{32}|\\PC*",
            maybe in prop::option::of("[0-9a-f]{32}|\\PC*"),
        ) {
            let both = Both { text, maybe };
            let bytes = postcard::to_allocvec(&both).unwrap();
            prop_assert_eq!(postcard::from_bytes::<Both>(&bytes).unwrap(), both);
        }
    }

    #[test]
    fn uids_and_hashes_are_short() {
        for text in ["0123456789abcdef0123456789abcdef", "01234567-89ab-cdef-0123-456789abcdef"] {
            assert_eq!(postcard::to_allocvec(&Form::of(text)).unwrap().len(), 17, "{text}");
        }
    }
}
