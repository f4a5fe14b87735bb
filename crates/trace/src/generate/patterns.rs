//! The generators themselves: each an endless or finite source of `(op, lpn, pages)`.

use super::rng::{SplitMix64, exp, ln};
use crate::Op;

/// A request without its arrival.
pub(crate) type Step = (Op, u64, u32);

/// x % of the writes go to y % of the pages (FASTer V-C).
pub(crate) struct Skew {
    pub random: SplitMix64,
    pub pages: Vec<u32>,
    pub hot: u64,
    pub distinct: u64,
    pub x: u64,
    pub left: u64,
}

impl Iterator for Skew {
    type Item = Step;

    fn next(&mut self) -> Option<Step> {
        self.left = self.left.checked_sub(1)?;
        let i = if self.random.below(100) < self.x {
            self.random.below(self.hot)
        } else {
            self.hot + self.random.below(self.distinct - self.hot)
        };
        Some((Op::Write, u64::from(self.pages[i as usize]), 1))
    }
}

/// A tier of [`Tpcc`]: the first page of the working set behind it and the sum of the request shares up
/// to and including it.
#[derive(Clone, Copy)]
pub(crate) struct Tier {
    pub first: u64,
    pub end: u64,
    pub below: u64,
}

/// OLTP-like writes (FASTer III-A).
pub(crate) struct Tpcc {
    pub random: SplitMix64,
    pub pages: Vec<u32>,
    pub tiers: Vec<Tier>,
    pub space: u64,
    pub reads: u64,
    /// Writes still to come.
    pub left: u64,
}

impl Iterator for Tpcc {
    type Item = Step;

    fn next(&mut self) -> Option<Step> {
        if self.left == 0 {
            return None;
        }
        let op = if self.reads > 0 && self.random.below(100) < self.reads {
            Op::Read
        } else {
            self.left -= 1;
            Op::Write
        };
        let u = self.random.below(100);
        let tier = self.tiers.iter().find(|t| u < t.below)?;
        let i = tier.first + self.random.below(tier.end - tier.first);
        let lpn = u64::from(self.pages[i as usize]);
        let v = self.random.below(100_000);
        let n = if v < 97_000 {
            1
        } else if v < 99_900 {
            2
        } else if v < 99_995 {
            3 + self.random.below(14)
        } else {
            17 + self.random.below(16)
        };
        Some((op, lpn, n.min(self.space - lpn) as u32))
    }
}

/// The read share of the plain generators: one draw a request, none for 0 and 100 %.
#[derive(Clone, Copy)]
pub(crate) struct Reads {
    /// Reads of so many requests: 100 where the share is a whole percentage, or else 1,000.
    pub of: u64,
    pub share: u64,
}

impl Reads {
    fn op(self, random: &mut SplitMix64) -> Op {
        match self.share {
            0 => Op::Write,
            share if share == self.of => Op::Read,
            share if random.below(self.of) < share => Op::Read,
            _ => Op::Write,
        }
    }
}

/// Random requests, all places alike.
pub(crate) struct Uniform {
    pub random: SplitMix64,
    pub slots: u64,
    pub n: u32,
    pub reads: Reads,
    pub left: u64,
}

impl Iterator for Uniform {
    type Item = Step;

    fn next(&mut self) -> Option<Step> {
        self.left = self.left.checked_sub(1)?;
        let op = self.reads.op(&mut self.random);
        let slot = self.random.below(self.slots);
        Some((op, slot * u64::from(self.n), self.n))
    }
}

/// Requests by Zipf's law: the page of rank `i` (from 1) with a weight of `floor(2^32 / i^theta)`, at least 1.
pub(crate) struct Zipf {
    pub random: SplitMix64,
    pub pages: Vec<u32>,
    /// Sums of the weights up to and including each rank.
    pub sums: Vec<u64>,
    pub reads: Reads,
    pub left: u64,
}

/// The sums of the weights of `n` ranks.
pub(crate) fn zipf_sums(n: u64, theta: f64) -> Vec<u64> {
    let mut sum = 0u64;
    (1..=n)
        .map(|i| {
            // `i^theta` as `exp(theta * ln(i))`; a weight of less than 1 is cut off anyway.
            let power = exp((theta * ln(i as f64)).min(40.0));
            sum += ((4_294_967_296.0 / power).floor() as u64).max(1);
            sum
        })
        .collect()
}

impl Iterator for Zipf {
    type Item = Step;

    fn next(&mut self) -> Option<Step> {
        self.left = self.left.checked_sub(1)?;
        let op = self.reads.op(&mut self.random);
        let u = self.random.below(*self.sums.last()?);
        let rank = self.sums.partition_point(|&sum| sum <= u);
        Some((op, u64::from(self.pages[rank]), 1))
    }
}

/// Several streams in turn, each through its own part of the space and then from its beginning.
pub(crate) struct Sequential {
    pub random: SplitMix64,
    /// Requests in a stream's part.
    pub slots: u64,
    pub streams: u64,
    pub n: u32,
    pub reads: Reads,
    pub at: u64,
    pub left: u64,
}

impl Iterator for Sequential {
    type Item = Step;

    fn next(&mut self) -> Option<Step> {
        self.left = self.left.checked_sub(1)?;
        let op = self.reads.op(&mut self.random);
        let (round, stream) = (self.at / self.streams, self.at % self.streams);
        self.at += 1;
        let slot = stream * self.slots + round % self.slots;
        Some((op, slot * u64::from(self.n), self.n))
    }
}

/// Reads and writes, a share of them right behind the request before.
pub(crate) struct Mixed {
    pub random: SplitMix64,
    pub slots: u64,
    pub n: u32,
    pub reads: Reads,
    pub sequential: u64,
    /// The place behind the request before.
    pub behind: u64,
    pub left: u64,
}

impl Iterator for Mixed {
    type Item = Step;

    fn next(&mut self) -> Option<Step> {
        self.left = self.left.checked_sub(1)?;
        let op = self.reads.op(&mut self.random);
        let slot = if self.random.below(100) < self.sequential {
            self.behind % self.slots
        } else {
            self.random.below(self.slots)
        };
        self.behind = slot + 1;
        Some((op, slot * u64::from(self.n), self.n))
    }
}

/// Sequential writes of which a share goes to random places instead (BLogFTL's randomness): one draw a
/// request, and one more for a random place.
pub(crate) struct Randomness {
    pub random: SplitMix64,
    pub slots: u64,
    pub n: u32,
    pub share: u64,
    /// Whether a sequential write follows the request before it, not the sequential write before it.
    pub continues: bool,
    /// The place of the next sequential write.
    pub next: u64,
    pub left: u64,
}

impl Iterator for Randomness {
    type Item = Step;

    fn next(&mut self) -> Option<Step> {
        self.left = self.left.checked_sub(1)?;
        let slot = if self.random.below(100) < self.share {
            let slot = self.random.below(self.slots);
            if self.continues {
                self.next = (slot + 1) % self.slots;
            }
            slot
        } else {
            let slot = self.next;
            self.next = (slot + 1) % self.slots;
            slot
        };
        Some((Op::Write, slot * u64::from(self.n), self.n))
    }
}
