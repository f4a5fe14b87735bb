//! Counts of times in classes that are narrow where times are short: for percentiles.
//!
//! The class of a time is the exponent and the first bits of the number as a fraction has them: one conversion, one shift. A
//! run takes every response in, so this is done some ten million times a second.

/// Times by class: `BITS` first bits after the leading one tell apart, so a class is at most `1 / 2^BITS` of its times wide,
/// and one number where these are below `2^BITS`.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Histogram<const BITS: u32> {
    /// Up to the last class that has any.
    counts: Vec<u64>,
}

/// Longest time that has a class of its own, about 28 hours; longer ones count there.
const MAX_NS: u64 = 100_000_000_000_000;

impl<const BITS: u32> Histogram<BITS> {
    /// Class 0 is no time at all.
    #[inline(always)]
    pub(crate) fn class_of(ns: u64) -> usize {
        let shift = f64::MANTISSA_DIGITS - 1 - BITS;
        let before_one = (1.0_f64.to_bits() >> shift) - 1;
        ((ns as i64 as f64).to_bits() >> shift).saturating_sub(before_one) as usize
    }

    /// The longest time of a class, ns.
    fn end_ns(class: usize) -> u64 {
        if class == 0 {
            return 0;
        }
        let shift = f64::MANTISSA_DIGITS - 1 - BITS;
        let next = (class as u64) + (1.0_f64.to_bits() >> shift);
        f64::from_bits(next << shift).ceil() as u64 - 1
    }

    /// Takes the same time `n` times.
    #[inline(always)]
    pub(crate) fn add(&mut self, ns: u64, n: u64) {
        let class = Self::class_of(ns.min(MAX_NS));
        if class >= self.counts.len() {
            self.grow(class + 1);
        }
        self.counts[class] += n;
    }

    #[cold]
    fn grow(&mut self, classes: usize) {
        self.counts.resize(classes, 0);
    }

    /// Takes all of another.
    pub(crate) fn add_all(&mut self, other: &Self) {
        if self.counts.len() < other.counts.len() {
            self.grow(other.counts.len());
        }
        let pairs = self.counts.iter_mut().zip(&other.counts);
        pairs.for_each(|(mine, theirs)| *mine += theirs);
    }

    /// Classes that have any: the longest time of each, ns, and how many.
    pub(crate) fn classes(&self) -> impl Iterator<Item = (u64, u64)> {
        let classes = self.counts.iter().enumerate();
        let used = classes.filter(|&(_, &n)| n > 0);
        used.map(|(class, &n)| (Self::end_ns(class), n))
    }

    /// The longest time of the class in which the `rank`-th shortest lies, ns.
    pub(crate) fn ranked_ns(&self, rank: u64) -> Option<u64> {
        let mut below = 0;
        let mut classes = self.classes();
        let found = classes.find(|&(_, n)| {
            below += n;
            below >= rank
        });
        found.map(|(end_ns, _)| end_ns)
    }
}

/// The rank of percentile `q` among `n`.
pub(crate) fn rank(q: f64, n: u64) -> u64 {
    ((q / 100.0 * n as f64).ceil() as u64).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_follow_each_other_without_a_gap() {
        type Narrow = Histogram<5>;
        // Beyond 2^53, which is a hundred days, times are rounded.
        for class in 0..53 << 5 {
            let (end_ns, next_ns) = (Narrow::end_ns(class), Narrow::end_ns(class + 1));
            // A class of short times may hold none.
            if next_ns > end_ns {
                let of_class = [end_ns + 1, next_ns].map(Narrow::class_of);
                assert_eq!(of_class, [class + 1; 2]);
                assert!(next_ns - (end_ns + 1) <= end_ns / 32);
            }
        }
        assert_eq!([0, 1, 2].map(Narrow::class_of), [0, 1, 33]);
    }
}
