//! Random numbers from a seed, so that a failed test can be repeated.

/// The seed in this variable, so that a failure can be repeated; without it, another one each time.
pub fn seed(variable: &str) -> u64 {
    let given = std::env::var(variable).ok().and_then(|seed| seed.parse().ok());
    let now = || std::time::SystemTime::UNIX_EPOCH.elapsed().ok()?.as_micros().try_into().ok();
    given.or_else(now).unwrap_or(1)
}

/// The generator `SplitMix64`, from its seed on.
#[derive(Debug)]
pub struct SeededRandom(pub u64);

impl SeededRandom {
    /// A number below the limit, which is not 0.
    pub fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((mixed ^ (mixed >> 31)) % limit as u64).unwrap_or_default()
    }
}
