//! A text that is often a UUID or a digest.

use std::fmt;

use uuid::Uuid;

/// A text that takes 16 bytes instead of 32 or 36 if it is a UUID or 32 hex digits, as those of the API server and of
/// [`caipe_crds::digest`].
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum CompactText {
    /// Lower case, with hyphens.
    Uuid([u8; 16]),
    /// Lower case hex digits.
    Hex([u8; 16]),
    Other(Box<str>),
}

impl Default for CompactText {
    fn default() -> Self {
        Self::Other(Box::default())
    }
}

impl From<&str> for CompactText {
    fn from(text: &str) -> Self {
        let compact = Uuid::try_parse(text).ok().and_then(|uuid| {
            let bytes = uuid.into_bytes();
            let is_restored = |compact: &Self| {
                let restored = compact.to_string();
                restored == text
            };
            [Self::Uuid(bytes), Self::Hex(bytes)].into_iter().find(is_restored)
        });
        compact.unwrap_or_else(|| Self::Other(text.into()))
    }
}

impl fmt::Display for CompactText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Uuid(bytes) => Uuid::from_bytes(*bytes).hyphenated().fmt(f),
            Self::Hex(bytes) => Uuid::from_bytes(*bytes).simple().fmt(f),
            Self::Other(text) => f.write_str(text),
        }
    }
}

impl CompactText {
    /// Whether it is this text.
    pub fn is(&self, text: &str) -> bool {
        let other = Self::from(text);
        *self == other
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_text_is_restored() {
        let (hex, uuid) = ("0123456789abcdef0123456789abcdef", "01234567-89ab-cdef-0123-456789abcdef");
        for (text, is_compact) in [
            (hex, true),
            (uuid, true),
            (&hex.to_uppercase(), false),
            (&uuid.to_uppercase(), false),
            (&format!("{{{uuid}}}"), false),
            (&format!("urn:uuid:{uuid}"), false),
            (&hex[1..], false),
            ("", false),
            ("u", false),
        ] {
            let stored = CompactText::from(text);
            assert_eq!((stored.to_string().as_str(), &stored), (text, &CompactText::from(text)));
            assert_eq!(!matches!(stored, CompactText::Other(_)), is_compact, "{text}");
            assert!(stored.is(text) && !stored.is("other"));
        }
        assert_ne!(CompactText::from(hex), CompactText::from(uuid));
    }
}
