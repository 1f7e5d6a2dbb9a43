//! The protocol's versions. Only `Major.Minor` is on the wire.

use std::fmt;

/// A version of the wire format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ProtocolVersion {
    /// 0.3.0: methods with slashes, objects tagged by `kind`.
    V0_3,
    /// 1.0: methods in Pascal case, `ProtoJSON`.
    V1_0,
}

impl ProtocolVersion {
    /// The header that names the version of a request.
    pub const HEADER: &'static str = "a2a-version";

    /// The value of the `A2A-Version` header.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::V0_3 => "0.3",
            Self::V1_0 => "1.0",
        }
    }

    /// Reads the value of an `A2A-Version` header. Empty means 0.3 (1.0, section 3.6.2). Accepts every minor version of 1,
    /// because readers ignore unknown members. `None` means unsupported.
    pub fn parse(value: &str) -> Option<Self> {
        let value = value.trim();
        if value.is_empty() {
            return Some(Self::V0_3);
        }
        let (major, rest) = value.split_once('.').unwrap_or((value, "0"));
        let minor: u32 = rest.split('.').next()?.parse().ok()?;
        match (major, minor) {
            ("0", 3) => Some(Self::V0_3),
            ("1", _) => Some(Self::V1_0),
            _ => None,
        }
    }
}

impl fmt::Display for ProtocolVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_read_by_major_and_minor() {
        for (value, expected) in [
            ("", Some(ProtocolVersion::V0_3)),
            ("  ", Some(ProtocolVersion::V0_3)),
            ("0.3", Some(ProtocolVersion::V0_3)),
            ("0.3.0", Some(ProtocolVersion::V0_3)),
            ("1.0", Some(ProtocolVersion::V1_0)),
            ("1", Some(ProtocolVersion::V1_0)),
            ("1.1", Some(ProtocolVersion::V1_0)),
            ("0.2", None),
            ("2.0", None),
            ("99.0", None),
            ("1.x", None),
            ("one", None),
        ] {
            assert_eq!(ProtocolVersion::parse(value), expected, "{value:?}");
        }
    }
}
