//! When generated requests arrive.

use super::rng::{SplitMix64, ln};

/// A schedule of arrivals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrival {
    /// All at 0: for runs at full throughput.
    None,
    /// One every `gap_ns` nanoseconds, the first at 0.
    Fixed {
        /// The gap between two requests.
        gap_ns: u64,
    },
    /// A Poisson process: independent exponential distances with the mean `gap_ns`, the first request
    /// at 0. A distance is `-mean * ln(u)` rounded to a nanosecond, `u = (next() >> 11 + 1) / 2^53`.
    Exponential {
        /// The mean gap.
        gap_ns: u64,
    },
}

/// The clock of a schedule. It has a random generator of its own (the seed with all bits flipped), so that the addresses
/// do not depend on the schedule.
#[derive(Clone, Debug)]
pub(crate) struct Clock {
    arrival: Arrival,
    random: SplitMix64,
    now: u64,
}

impl Clock {
    pub fn new(arrival: Arrival, seed: u64) -> Self {
        Clock {
            arrival,
            random: SplitMix64::new(!seed),
            now: 0,
        }
    }

    /// The arrival of the next request.
    pub fn tick(&mut self) -> u64 {
        let now = self.now;
        let gap = match self.arrival {
            Arrival::None => 0,
            Arrival::Fixed { gap_ns } => gap_ns,
            Arrival::Exponential { gap_ns } => {
                let u = ((self.random.next() >> 11) + 1) as f64 / (1u64 << 53) as f64;
                (-ln(u) * gap_ns as f64 + 0.5).floor() as u64
            }
        };
        self.now = now.saturating_add(gap);
        now
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schedules() {
        let mut fixed = Clock::new(Arrival::Fixed { gap_ns: 10 }, 1);
        assert_eq!([fixed.tick(), fixed.tick(), fixed.tick()], [0, 10, 20]);
        let mut random = Clock::new(Arrival::Exponential { gap_ns: 1000 }, 1);
        let mut last = 0;
        for _ in 0..100_001 {
            last = random.tick();
        }
        let mean = last as f64 / 100_000.0;
        assert!((mean - 1000.0).abs() < 10.0, "{mean}");
    }
}
