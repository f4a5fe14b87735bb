//! Random numbers that are the same everywhere: splitmix64, permutations, and logarithm and
//! exponential from basic operations only.

/// The generator splitmix64 (Steele, Lea and Flood 2014), arithmetic modulo 2^64.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SplitMix64 {
    state: u64,
}

impl SplitMix64 {
    /// Starts with a seed as its state.
    pub const fn new(seed: u64) -> Self {
        SplitMix64 { state: seed }
    }

    /// The next 64 bits.
    #[allow(clippy::should_implement_trait)] // not an iterator: it never ends
    #[inline]
    pub const fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// A number below `n` by one draw and a 128-bit product, without rejection; 0 if `n` is 0.
    #[inline]
    pub const fn below(&mut self, n: u64) -> u64 {
        ((self.next() as u128 * n as u128) >> 64) as u64
    }

    /// The numbers below `n` in random order: `n - 1` draws, from the last place down.
    pub fn permutation(&mut self, n: u32) -> Vec<u32> {
        let mut a: Vec<u32> = (0..n).collect();
        for i in (1..a.len()).rev() {
            let j = self.below(i as u64 + 1) as usize;
            a.swap(i, j);
        }
        a
    }
}

/// The natural logarithm of a positive normal number, by the series of the inverse hyperbolic tangent.
/// Only additions, multiplications and divisions, so every machine gives the same bits.
pub(crate) fn ln(x: f64) -> f64 {
    debug_assert!(x.is_normal() && x > 0.0);
    let bits = x.to_bits();
    let mut exponent = ((bits >> 52) & 0x7ff) as i64 - 1023;
    let mut m = f64::from_bits((bits & 0x000f_ffff_ffff_ffff) | 0x3ff0_0000_0000_0000);
    if m > std::f64::consts::SQRT_2 {
        m /= 2.0;
        exponent += 1;
    }
    let f = (m - 1.0) / (m + 1.0);
    let square = f * f;
    let mut sum = 0.0;
    let mut k = 27;
    while k > 0 {
        sum = sum * square + 1.0 / f64::from(k);
        k -= 2;
    }
    exponent as f64 * std::f64::consts::LN_2 + 2.0 * f * sum
}

/// The exponential of a number between -700 and 700, by its Taylor series.
pub(crate) fn exp(x: f64) -> f64 {
    debug_assert!(x.abs() <= 700.0);
    let k = (x / std::f64::consts::LN_2 + 0.5).floor();
    let r = x - k * std::f64::consts::LN_2;
    let mut sum = 1.0;
    let mut n = 20;
    while n > 0 {
        sum = 1.0 + sum * r / f64::from(n);
        n -= 1;
    }
    sum * f64::from_bits(((k as i64 + 1023) as u64) << 52)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn golden_stream() {
        assert_eq!(SplitMix64::new(0).next(), 0xE220_A839_7B1D_CDAF);
        let mut g = SplitMix64::new(42);
        assert_eq!(
            [g.next(), g.next(), g.next()],
            [
                13679457532755275413,
                2949826092126892291,
                5139283748462763858
            ]
        );
    }

    #[test]
    fn golden_permutation() {
        let mut g = SplitMix64::new(42);
        assert_eq!(g.permutation(8), [4, 3, 2, 0, 7, 6, 1, 5]);
        let more: Vec<u64> = (0..5).map(|_| g.below(100)).collect();
        assert_eq!(more, [80, 33, 61, 20, 49]);
        assert!(g.permutation(0).is_empty());
    }

    #[test]
    fn functions_are_close() {
        for i in 1..2000u32 {
            let x = f64::from(i) / 37.0;
            assert!((ln(x) - x.ln()).abs() < 1e-14, "ln {x}");
            let y = f64::from(i) / 10.0 - 100.0;
            assert!((exp(y) / y.exp() - 1.0).abs() < 1e-13, "exp {y}");
        }
    }
}
