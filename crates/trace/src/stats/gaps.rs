//! Distances of arrivals: duration and median.

/// A histogram of 64-bit numbers with a relative error of at most 1/2048: exact below 2,048, then 1,024
/// steps for each power of two.
#[derive(Debug, Default)]
pub(crate) struct Histogram {
    counts: Vec<u64>,
}

impl Histogram {
    pub fn add(&mut self, value: u64) {
        let i = index(value);
        if self.counts.len() <= i {
            self.counts.resize(i + 1, 0);
        }
        self.counts[i] += 1;
    }

    /// How many are below a number at which a step begins.
    pub fn below(&self, start: u64) -> u64 {
        debug_assert_eq!(start_of_step(start), start);
        self.counts.iter().take(index(start)).sum()
    }
}

/// The largest number up to this one at which a step begins: its first 11 bits. Twice that begins one too.
pub(crate) fn start_of_step(value: u64) -> u64 {
    let cut = 53u32.saturating_sub(value.leading_zeros());
    value >> cut << cut
}

const EXACT: u64 = 2048;
const STEPS: u64 = 1024;

fn index(value: u64) -> usize {
    if value < EXACT {
        return value as usize;
    }
    let exponent = u64::from(63 - value.leading_zeros());
    let step = (value >> (exponent - 10)) - STEPS;
    (EXACT + (exponent - 11) * STEPS + step) as usize
}

/// The middle of a step.
fn value(index: usize) -> u64 {
    let index = index as u64;
    if index < EXACT {
        return index;
    }
    let (exponent, step) = ((index - EXACT) / STEPS + 11, (index - EXACT) % STEPS);
    let width = 1u64 << (exponent - 10);
    (STEPS + step) * width + width / 2
}

#[derive(Debug)]
pub(crate) struct Gaps {
    histogram: Histogram,
    number: u64,
    last: Option<u64>,
    earliest: u64,
    latest: u64,
    backwards: u64,
}

impl Default for Gaps {
    fn default() -> Self {
        Gaps {
            histogram: Histogram::default(),
            number: 0,
            last: None,
            earliest: u64::MAX,
            latest: 0,
            backwards: 0,
        }
    }
}

impl Gaps {
    pub fn add(&mut self, arrival: u64) {
        if let Some(last) = self.last {
            self.histogram.add(arrival.saturating_sub(last));
            self.number += 1;
            self.backwards += u64::from(arrival < last);
        }
        self.last = Some(arrival);
        self.earliest = self.earliest.min(arrival);
        self.latest = self.latest.max(arrival);
    }

    pub fn duration(&self) -> u64 {
        self.latest.saturating_sub(self.earliest)
    }

    pub fn backwards(&self) -> u64 {
        self.backwards
    }

    /// The lower median.
    pub fn median(&self) -> Option<u64> {
        let mut left = self.number.div_ceil(2);
        if left == 0 {
            return None;
        }
        for (i, &count) in self.histogram.counts.iter().enumerate() {
            if count >= left {
                return Some(value(i));
            }
            left -= count;
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_narrow() {
        for v in (0..64).flat_map(|e| [1u64 << e, (1 << e) + (1 << e) / 3, u64::MAX >> e]) {
            let back = value(index(v));
            assert!(back.abs_diff(v) <= v / 2048, "{v} {back}");
        }
    }

    #[test]
    fn counts_below_the_start_of_a_step_are_exact() {
        let mut histogram = Histogram::default();
        (0..20_000).for_each(|value| histogram.add(value));
        for value in [0, 1, 2047, 2048, 2049, 4097, 8191, 8195, 9_999] {
            let start = start_of_step(value);
            assert!(
                start <= value && value - start <= value / 1024,
                "{value} {start}"
            );
            assert_eq!(histogram.below(start), start);
            assert_eq!(histogram.below(2 * start), 2 * start);
        }
        assert_eq!(start_of_step(u64::MAX).count_ones(), 11);
    }

    #[test]
    fn medians() {
        let mut gaps = Gaps::default();
        assert_eq!(gaps.median(), None);
        for t in [5, 6, 8, 3, 13] {
            gaps.add(t);
        }
        // distances 1, 2, 0, 10
        assert_eq!(
            (gaps.median(), gaps.duration(), gaps.backwards()),
            (Some(1), 10, 1)
        );
    }
}
