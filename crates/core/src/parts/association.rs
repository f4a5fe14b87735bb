//! Which logical blocks have valid pages in which log block: the degree of association that decides what
//! a full merge of the log block costs, kept up to date page by page.

use crate::parts::hybrid::{Log, Loss, Watch};

/// For each log block the distinct logical blocks with a valid page in it, and how many each has there.
///
/// The lists are short (the scheme bounds them), so one is a row of an array that is scanned.
#[derive(Clone, Debug, Default)]
pub struct Associations {
    /// Most logical blocks of one log block.
    bound: usize,
    /// `bound` logical blocks for each log block, those in use first.
    blocks: Vec<u32>,
    /// Valid pages of each of them.
    valid: Vec<u32>,
    degree: Vec<u32>,
    /// Log blocks touched since the last [`Associations::next_touched`] said `None`, each once.
    touched: Vec<Log>,
    is_touched: Vec<bool>,
}

impl Associations {
    /// Memory in bytes.
    pub fn ram_bytes(log_blocks: u32, bound: u32) -> u64 {
        u64::from(log_blocks) * (8 * u64::from(bound) + 9)
    }

    /// For `log_blocks` places in the log table, each with at most `bound` logical blocks.
    pub fn new(log_blocks: u32, bound: u32) -> Self {
        let (logs, bound) = (log_blocks as usize, bound as usize);
        Self {
            bound,
            blocks: vec![0; logs * bound],
            valid: vec![0; logs * bound],
            degree: vec![0; logs],
            touched: Vec::with_capacity(logs),
            is_touched: vec![false; logs],
        }
    }

    /// The same with another bound, which no log block is above. Every log block counts as touched.
    ///
    /// # Panics
    /// If one is.
    #[must_use]
    pub fn bounded(&self, bound: u32) -> Self {
        let logs = self.degree.len() as u32;
        let mut bounded = Self::new(logs, bound);
        for log in (0..logs).map(Log) {
            for (i, (l, valid)) in self.of(log).enumerate() {
                assert!(i < bounded.bound, "a log block is above the bound");
                let at = log.index() * bounded.bound + i;
                (bounded.blocks[at], bounded.valid[at]) = (l, valid);
            }
            bounded.degree[log.index()] = self.degree(log);
            bounded.touch(log);
        }
        bounded
    }

    /// Distinct logical blocks with a valid page in `log`.
    #[inline(always)]
    pub fn degree(&self, log: Log) -> u32 {
        self.degree[log.index()]
    }

    /// The logical blocks with a valid page in `log`, and how many pages, in no particular order.
    pub fn of(&self, log: Log) -> impl Iterator<Item = (u32, u32)> + '_ {
        let first = log.index() * self.bound;
        let row = first..first + self.degree[log.index()] as usize;
        row.map(|i| (self.blocks[i], self.valid[i]))
    }

    /// Whether `l` has a valid page in `log`.
    #[inline]
    pub fn is_associated(&self, log: Log, l: u32) -> bool {
        self.find(log, l).is_some()
    }

    /// A log block that changed since it was last named here.
    #[inline]
    pub fn next_touched(&mut self) -> Option<Log> {
        let log = self.touched.pop()?;
        self.is_touched[log.index()] = false;
        Some(log)
    }

    /// Notes a change that no page tells of.
    #[inline]
    pub fn touch(&mut self, log: Log) {
        if !std::mem::replace(&mut self.is_touched[log.index()], true) {
            self.touched.push(log);
        }
    }

    #[inline]
    fn find(&self, log: Log, l: u32) -> Option<usize> {
        let first = log.index() * self.bound;
        let row = &self.blocks[first..first + self.degree[log.index()] as usize];
        row.iter().position(|&block| block == l).map(|i| first + i)
    }
}

impl Watch for Associations {
    #[inline]
    fn gained(&mut self, log: Log, l: u32) {
        self.touch(log);
        if let Some(at) = self.find(log, l) {
            self.valid[at] += 1;
            return;
        }
        let degree = &mut self.degree[log.index()];
        assert!(
            (*degree as usize) < self.bound,
            "more logical blocks in a log block than its bound"
        );
        let at = log.index() * self.bound + *degree as usize;
        *degree += 1;
        self.blocks[at] = l;
        self.valid[at] = 1;
    }

    #[inline]
    fn lost(&mut self, log: Log, l: u32, _why: Loss) {
        self.touch(log);
        let at = self.find(log, l).expect("a valid page was counted");
        self.valid[at] -= 1;
        if self.valid[at] == 0 {
            let degree = &mut self.degree[log.index()];
            *degree -= 1;
            let last = log.index() * self.bound + *degree as usize;
            self.blocks[at] = self.blocks[last];
            self.valid[at] = self.valid[last];
        }
    }

    #[inline]
    fn released(&mut self, log: Log) {
        // A log block that became a data block takes its valid pages with it.
        self.degree[log.index()] = 0;
        self.touch(log);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn degrees_follow_the_pages() {
        let mut rng = crate::rng::SplitMix64::new(9);
        let mut seen = Associations::new(3, 4);
        let mut model = vec![BTreeMap::<u32, u32>::new(); 3];
        for _ in 0..5_000 {
            let (log, l) = (Log(rng.below(3) as u32), rng.below(6) as u32);
            let pages = &mut model[log.index()];
            match rng.below(20) {
                0 => {
                    seen.released(log);
                    pages.clear();
                }
                1..10 if pages.contains_key(&l) => {
                    seen.lost(log, l, Loss::Overwritten);
                    *pages.get_mut(&l).unwrap() -= 1;
                    pages.retain(|_, n| *n > 0);
                }
                _ if pages.len() < 4 || pages.contains_key(&l) => {
                    seen.gained(log, l);
                    *pages.entry(l).or_default() += 1;
                }
                _ => {}
            }
            for (i, pages) in model.iter().enumerate() {
                let log = Log(i as u32);
                assert_eq!(&seen.of(log).collect::<BTreeMap<_, _>>(), pages);
                assert_eq!(seen.degree(log) as usize, pages.len());
                assert_eq!(seen.is_associated(log, l), pages.contains_key(&l));
            }
        }
    }

    #[test]
    fn each_touched_log_block_is_named_once() {
        let mut seen = Associations::new(3, 2);
        seen.gained(Log(2), 7);
        seen.gained(Log(0), 7);
        seen.gained(Log(2), 8);
        let mut named: Vec<_> = std::iter::from_fn(|| seen.next_touched()).collect();
        named.sort();
        assert_eq!(named, [Log(0), Log(2)]);
        seen.released(Log(2));
        assert_eq!(seen.next_touched(), Some(Log(2)));
        assert_eq!(seen.next_touched(), None);
    }
}
