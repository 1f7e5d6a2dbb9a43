//! Digests of texts.

use sha2::{Digest, Sha256};

/// The first `digits` hex digits of the SHA-256 of a text; it has 64.
pub fn sha256_hex(text: &str, digits: usize) -> String {
    let digest = Sha256::digest(text.as_bytes());
    digest
        .iter()
        .take(digits / 2)
        .fold(String::with_capacity(digits), |hex, byte| hex + &format!("{byte:02x}"))
}
