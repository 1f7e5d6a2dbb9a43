//! Digests of texts.

use std::fmt::Write;

use sha2::{Digest, Sha256};

/// The first `digits` hex digits of the SHA-256 of a text; it has 64.
pub fn sha256_hex(text: &str, digits: usize) -> String {
    let mut digest = hex(&Sha256::digest(text.as_bytes()));
    digest.truncate(digits);
    digest
}

/// Bytes in hex.
pub(crate) fn hex(bytes: &[u8]) -> String {
    let mut hex = String::with_capacity(2 * bytes.len());
    for byte in bytes {
        // Writing to a String does not fail.
        let _ = write!(hex, "{byte:02x}");
    }
    hex
}
