//! Random texts.

use std::hash::{BuildHasher as _, RandomState};

use jiff::Timestamp;

/// A text of 32 hexadecimal digits that nobody makes again.
pub(crate) fn text() -> String {
    format!("{:032x}", number())
}

/// The keys of the standard hash map are random for each process.
fn number() -> u128 {
    let half = || u128::from(RandomState::new().hash_one(Timestamp::now().as_nanosecond()));
    half() << 64 | half()
}
