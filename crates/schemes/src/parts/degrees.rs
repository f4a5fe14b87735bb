//! Association degrees, exactly: in how many distinct logical blocks a log block has valid pages. It is what
//! a full merge of that log block would have to rebuild (LAST's merge cost table).
//!
//! For each logical block a short chain says how many of its valid pages lie in which log block. There is a
//! link for a pair only while it has a valid page, so the links are never more than the log pages, and a
//! chain is never longer than the logical block has pages; in practice a few links.

use crate::parts::hybrid::Log;
use floatgate_core::address::Lbn;
use floatgate_core::state;
use floatgate_core::state::{Passed, StateError};

const NONE: u32 = u32::MAX;

#[derive(Clone, Copy, Debug)]
struct Link {
    log: Log,
    /// Valid pages of the logical block in `log`.
    pages: u32,
    /// Next link of the logical block, or of the unused ones.
    next: u32,
}

state!(Link { log, pages, next });

/// The degree of each log block, kept up page by page.
#[derive(Clone, Debug, Default)]
pub struct Degrees {
    degree: Vec<u32>,
    /// First link of each logical block.
    chains: Vec<u32>,
    links: Vec<Link>,
    unused: u32,
}

state!(Degrees { degree, chains, links, unused } check check_state);

impl Degrees {
    /// For `logs` log blocks, all without a valid page.
    pub fn new(logs: u32, pages_per_block: u32, logical_blocks: u32) -> Self {
        let links = logs * pages_per_block;
        let blank = |i: u32| Link {
            log: Log(NONE),
            pages: 0,
            next: if i + 1 == links { NONE } else { i + 1 },
        };
        Self {
            degree: vec![0; logs as usize],
            chains: vec![NONE; logical_blocks as usize],
            links: (0..links).map(blank).collect(),
            unused: if links == 0 { NONE } else { 0 },
        }
    }

    /// Every link hangs in one chain, or a walk along one would not end.
    fn check_state(&self) -> Passed {
        let mut is_met = vec![false; self.links.len()];
        for &first in self.chains.iter().chain([&self.unused]) {
            let mut at = first;
            while at != NONE {
                let met = is_met.get_mut(at as usize);
                if met.is_none_or(|met| std::mem::replace(met, true)) {
                    return Err(StateError::damaged("a chain of logical blocks is broken"));
                }
                at = self.links[at as usize].next;
            }
        }
        Ok(())
    }

    /// Memory of the tables in bytes.
    pub fn ram_bytes(logs: u64, pages_per_block: u64, logical_blocks: u64) -> u64 {
        4 * logs + 4 * logical_blocks + 12 * logs * pages_per_block
    }

    /// Distinct logical blocks with a valid page in `log`.
    #[inline(always)]
    pub fn of(&self, log: Log) -> u32 {
        self.degree[log.index()]
    }

    /// A page of logical block `lbn` has become valid in `log`. Returns the degree of `log` now.
    #[inline]
    pub fn gained(&mut self, log: Log, lbn: Lbn) -> u32 {
        let first = self.chains[lbn.index()];
        let mut at = first;
        while at != NONE {
            let link = &mut self.links[at as usize];
            if link.log == log {
                link.pages += 1;
                return self.degree[log.index()];
            }
            at = link.next;
        }
        let fresh = self.unused;
        let link = &mut self.links[fresh as usize];
        self.unused = link.next;
        // In front: the next pages of this logical block most likely go to the same log block.
        *link = Link {
            log,
            pages: 1,
            next: first,
        };
        self.chains[lbn.index()] = fresh;
        self.degree[log.index()] += 1;
        self.degree[log.index()]
    }

    /// A page of logical block `lbn` is no longer valid in `log`. Returns the degree of `log` now.
    ///
    /// # Panics
    /// If `gained` did not tell of that page before.
    #[inline]
    pub fn lost(&mut self, log: Log, lbn: Lbn) -> u32 {
        let mut before = NONE;
        let mut at = self.chains[lbn.index()];
        while self.links[at as usize].log != log {
            before = at;
            at = self.links[at as usize].next;
        }
        let link = &mut self.links[at as usize];
        link.pages -= 1;
        if link.pages == 0 {
            let next = std::mem::replace(&mut link.next, self.unused);
            self.unused = at;
            if before == NONE {
                self.chains[lbn.index()] = next;
            } else {
                self.links[before as usize].next = next;
            }
            self.degree[log.index()] -= 1;
        }
        self.degree[log.index()]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn degrees_agree_with_a_count() {
        const LOGS: u32 = 5;
        const PAGES: u32 = 6;
        let mut rng = floatgate_core::rng::SplitMix64::new(5);
        let mut degrees = Degrees::new(LOGS, PAGES, 9);
        let mut model: Vec<Vec<Lbn>> = vec![vec![]; LOGS as usize];
        for _ in 0..20_000 {
            let log = rng.below(u64::from(LOGS)) as usize;
            let pages = &mut model[log];
            let now = if pages.len() < PAGES as usize && rng.below(2) == 0 {
                let lbn = Lbn(rng.below(9) as u32);
                pages.push(lbn);
                degrees.gained(Log(log as u32), lbn)
            } else if !pages.is_empty() {
                let lbn = pages.swap_remove(rng.below(pages.len() as u64) as usize);
                degrees.lost(Log(log as u32), lbn)
            } else {
                continue;
            };
            let distinct: std::collections::BTreeSet<Lbn> = pages.iter().copied().collect();
            assert_eq!(now as usize, distinct.len());
            assert_eq!(degrees.of(Log(log as u32)), now);
        }
    }
}
