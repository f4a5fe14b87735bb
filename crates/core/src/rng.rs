//! The one random generator of schemes and tests: splitmix64, small, exact, portable.

/// splitmix64 (Steele, Lea, Flood 2014). The stream is part of the results' definition: victim
/// choice by `d-choices` draws from it.
#[derive(Clone, Debug)]
pub struct SplitMix64 {
    state: u64,
}

crate::state!(SplitMix64 { state });

impl SplitMix64 {
    /// A generator whose state starts as `seed`.
    pub fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    /// The next 64 bits.
    #[allow(clippy::should_implement_trait)] // an endless stream, never `None`
    #[inline]
    pub fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// A number in `0 .. n` by the high half of a 128-bit product: one draw, no rejection.
    #[inline]
    pub fn below(&mut self, n: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(n)) >> 64) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_values() {
        assert_eq!(SplitMix64::new(0).next(), 0xE220_A839_7B1D_CDAF);
        let mut rng = SplitMix64::new(42);
        let first = [rng.next(), rng.next(), rng.next()];
        assert_eq!(
            first,
            [
                13_679_457_532_755_275_413,
                2_949_826_092_126_892_291,
                5_139_283_748_462_763_858
            ]
        );
    }
}
