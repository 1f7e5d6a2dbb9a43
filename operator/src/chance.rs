//! Chance, for what must not happen everywhere at the same time.

/// Between 0 and 1. Differs between processes and calls; is not meant to be hard to guess.
pub(crate) fn fraction() -> f64 {
    let word = uuid::Uuid::new_v4().as_u64_pair().1;
    f64::from(u16::try_from(word & 0xffff).unwrap_or_default()) / f64::from(u16::MAX)
}
