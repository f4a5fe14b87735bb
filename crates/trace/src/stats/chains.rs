//! Original requests, reassembled from those that arrived at the device (LAST, section 3.2).
//!
//! A write continues a chain if an earlier write of the chain ended exactly where it starts and the chain
//! was extended at most a window of write requests ago. A chain has one end, so it has at most one entry in
//! the table of ends; when that entry goes, nothing can join the chain any more and its length is final.
//! Thus only as many chains as the window is long are held.

use std::collections::{HashMap, VecDeque};

use rustc_hash::FxBuildHasher;

#[derive(Debug)]
struct Chain {
    length: u64,
    /// The write request that extended it last.
    last: u64,
    /// The sizes of its requests and how many there are of each.
    sizes: Vec<(u64, u64)>,
}

#[derive(Debug)]
pub(crate) struct Chains {
    window: u64,
    /// The number of the next write request.
    next: u64,
    ends: HashMap<(u32, u64), Chain, FxBuildHasher>,
    /// Entries by age: request number and end.
    ages: VecDeque<(u64, (u32, u64))>,
}

/// Reports a final chain: for each size the number of its requests times the chain's length.
fn report(chain: &Chain, done: &mut impl FnMut(u64, u64)) {
    for &(size, number) in &chain.sizes {
        done(size, number.saturating_mul(chain.length));
    }
}

impl Chains {
    pub fn new(window: u64) -> Self {
        Chains {
            window,
            next: 0,
            ends: HashMap::default(),
            ages: VecDeque::new(),
        }
    }

    /// Adds a write; `done` gets the sums of the chains that it ends.
    pub fn add(&mut self, volume: u32, start: u64, size: u64, mut done: impl FnMut(u64, u64)) {
        let k = self.next;
        self.next += 1;
        // Nothing can join a chain that has left the window.
        while let Some(&(j, key)) = self.ages.front() {
            if k - j <= self.window {
                break;
            }
            self.ages.pop_front();
            if self.ends.get(&key).is_some_and(|chain| chain.last == j)
                && let Some(chain) = self.ends.remove(&key)
            {
                report(&chain, &mut done);
            }
        }
        let mut chain = self.ends.remove(&(volume, start)).unwrap_or(Chain {
            length: 0,
            last: k,
            sizes: Vec::new(),
        });
        chain.length = chain.length.saturating_add(size);
        chain.last = k;
        match chain.sizes.iter_mut().find(|(s, _)| *s == size) {
            Some((_, number)) => *number += 1,
            None => chain.sizes.push((size, 1)),
        }
        let key = (volume, start + size);
        if let Some(replaced) = self.ends.insert(key, chain) {
            report(&replaced, &mut done);
        }
        self.ages.push_back((k, key));
    }

    /// Ends the trace.
    pub fn finish(self, mut done: impl FnMut(u64, u64)) {
        for chain in self.ends.values() {
            report(chain, &mut done);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generate::SplitMix64;

    /// The definition, literally: all chains are kept to the end.
    fn naive(writes: &[(u64, u64)], window: u64) -> HashMap<u64, u64> {
        let mut ends: HashMap<u64, (usize, u64)> = HashMap::new();
        let (mut lengths, mut member) = (Vec::new(), Vec::new());
        for (k, &(a, n)) in writes.iter().enumerate() {
            let k = k as u64;
            let chain = match ends.remove(&a) {
                Some((chain, j)) if k - j <= window => chain,
                _ => {
                    lengths.push(0);
                    lengths.len() - 1
                }
            };
            lengths[chain] += n;
            member.push((n, chain));
            ends.insert(a + n, (chain, k));
        }
        let mut sums = HashMap::new();
        for (n, chain) in member {
            *sums.entry(n).or_insert(0) += lengths[chain];
        }
        sums
    }

    #[test]
    fn as_defined() {
        let mut random = SplitMix64::new(5);
        for window in [0, 1, 2, 5, 32] {
            for _ in 0..50 {
                let writes: Vec<(u64, u64)> = (0..200)
                    .map(|_| (random.below(30), 1 + random.below(4)))
                    .collect();
                let mut sums: HashMap<u64, u64> = HashMap::new();
                let mut chains = Chains::new(window);
                for &(a, n) in &writes {
                    chains.add(0, a, n, |size, sum| *sums.entry(size).or_insert(0) += sum);
                }
                chains.finish(|size, sum| *sums.entry(size).or_insert(0) += sum);
                assert_eq!(sums, naive(&writes, window));
            }
        }
    }
}
