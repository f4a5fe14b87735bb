//! Which logical blocks have valid pages in which log block: the degree of association that decides what
//! a full merge of the log block costs, kept up to date page by page.

use floatgate_core::address::Lbn;
use floatgate_core::state;
use floatgate_core::state::{Passed, StateError};
use std::ops::Range;

use crate::parts::hybrid::{Log, Loss, Watch};

/// For each log block the distinct logical blocks with a valid page in it, and how many each has there.
///
/// The lists are short (the scheme bounds them), so one is a row of an array that is scanned.
#[derive(Clone, Debug, Default)]
pub struct AssociationLists {
    /// Most logical blocks in the list of one log block.
    room: usize,
    /// `room` logical blocks for each log block, those in use first.
    logical: Vec<Lbn>,
    /// Valid pages of each of them.
    pages: Vec<u16>,
    degree: Vec<u32>,
}

state!(AssociationLists { logical, pages, degree } check check_state fixed { room });

impl AssociationLists {
    /// Memory in bytes.
    pub fn ram_bytes(log_blocks: u64, room: u64) -> u64 {
        log_blocks * (4 + 6 * room)
    }

    /// For `log_blocks` places in the log table, with room for `room` logical blocks each.
    pub fn new(log_blocks: u32, room: u32) -> Self {
        let (logs, room) = (log_blocks as usize, room as usize);
        Self {
            room,
            logical: vec![Lbn::NONE; logs * room],
            pages: vec![0; logs * room],
            degree: vec![0; logs],
        }
    }

    /// Logical blocks in the list of `log`.
    #[inline(always)]
    pub fn degree(&self, log: Log) -> u32 {
        self.degree[log.index()]
    }

    /// The logical blocks in the list of `log`, and their valid pages, in no particular order.
    pub fn of(&self, log: Log) -> impl Iterator<Item = (Lbn, u32)> + '_ {
        self.row(log)
            .map(|i| (self.logical[i], u32::from(self.pages[i])))
    }

    /// Whether `lbn` is in the list of `log`.
    #[inline]
    pub fn contains(&self, log: Log, lbn: Lbn) -> bool {
        self.find(log, lbn).is_some()
    }

    /// A page of logical block `lbn` has become valid in `log`. Returns whether the list had room for it.
    #[inline]
    pub fn gained(&mut self, log: Log, lbn: Lbn) -> bool {
        if let Some(at) = self.find(log, lbn) {
            self.pages[at] += 1;
            return true;
        }
        let at = self.row(log).end;
        if at == (log.index() + 1) * self.room {
            return false;
        }
        self.degree[log.index()] += 1;
        self.logical[at] = lbn;
        self.pages[at] = 1;
        true
    }

    /// A page of logical block `lbn` is no longer valid in `log`. Returns the pages that are left, or nothing if
    /// the list never had room for `lbn`.
    #[inline]
    pub fn lost(&mut self, log: Log, lbn: Lbn) -> Option<u32> {
        let at = self.find(log, lbn)?;
        self.pages[at] -= 1;
        let left = self.pages[at];
        if left == 0 {
            let last = self.row(log).end - 1;
            self.degree[log.index()] -= 1;
            self.logical[at] = self.logical[last];
            self.pages[at] = self.pages[last];
        }
        Some(left.into())
    }

    /// Empties the list of `log`.
    #[inline(always)]
    pub fn clear(&mut self, log: Log) {
        self.degree[log.index()] = 0;
    }

    fn check_state(&self) -> Passed {
        match self
            .degree
            .iter()
            .all(|&degree| degree as usize <= self.room)
        {
            true => Ok(()),
            false => Err(StateError::damaged("a list is longer than its room")),
        }
    }

    #[inline(always)]
    fn row(&self, log: Log) -> Range<usize> {
        let first = log.index() * self.room;
        first..first + self.degree(log) as usize
    }

    /// Index of `lbn` in the list of `log`. The newest are at the end and are asked for most.
    #[inline]
    fn find(&self, log: Log, lbn: Lbn) -> Option<usize> {
        let row = self.row(log);
        let list = &self.logical[row.clone()];
        list.iter()
            .rposition(|&one| one == lbn)
            .map(|i| row.start + i)
    }
}

/// The lists of a scheme that never lets one overflow, with note of the log blocks that changed.
#[derive(Clone, Debug, Default)]
pub struct Associations {
    lists: AssociationLists,
    /// Log blocks touched since the last [`Associations::next_touched`] said `None`, each once.
    touched: Vec<Log>,
    is_touched: Vec<bool>,
}

state!(Associations { lists, is_touched } grows { touched });

impl Associations {
    /// Memory in bytes.
    pub fn ram_bytes(log_blocks: u32, bound: u32) -> u64 {
        AssociationLists::ram_bytes(log_blocks.into(), bound.into()) + 5 * u64::from(log_blocks)
    }

    /// For `log_blocks` places in the log table, each with at most `bound` logical blocks.
    pub fn new(log_blocks: u32, bound: u32) -> Self {
        Self {
            lists: AssociationLists::new(log_blocks, bound),
            touched: Vec::with_capacity(log_blocks as usize),
            is_touched: vec![false; log_blocks as usize],
        }
    }

    /// The same with another bound, which no log block is above. Every log block counts as touched.
    ///
    /// # Panics
    /// If one is.
    #[must_use]
    pub fn bounded(&self, bound: u32) -> Self {
        let logs = self.is_touched.len() as u32;
        let mut bounded = Self::new(logs, bound);
        for log in (0..logs).map(Log) {
            for (lbn, valid) in self.of(log) {
                for _ in 0..valid {
                    assert!(
                        bounded.lists.gained(log, lbn),
                        "a log block is above the bound"
                    );
                }
            }
            bounded.touch(log);
        }
        bounded
    }

    /// Distinct logical blocks with a valid page in `log`.
    #[inline(always)]
    pub fn degree(&self, log: Log) -> u32 {
        self.lists.degree(log)
    }

    /// The logical blocks with a valid page in `log`, and how many pages, in no particular order.
    pub fn of(&self, log: Log) -> impl Iterator<Item = (Lbn, u32)> + '_ {
        self.lists.of(log)
    }

    /// Whether `lbn` has a valid page in `log`.
    #[inline]
    pub fn is_associated(&self, log: Log, lbn: Lbn) -> bool {
        self.lists.contains(log, lbn)
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
}

impl Watch for Associations {
    #[inline]
    fn gained(&mut self, log: Log, lbn: Lbn) {
        self.touch(log);
        let found_room = self.lists.gained(log, lbn);
        assert!(
            found_room,
            "more logical blocks in a log block than its bound"
        );
    }

    #[inline]
    fn lost(&mut self, log: Log, lbn: Lbn, _why: Loss) {
        self.touch(log);
        let left = self.lists.lost(log, lbn);
        assert!(left.is_some(), "a valid page was counted");
    }

    #[inline]
    fn released(&mut self, log: Log) {
        // A log block that became a data block takes its valid pages with it.
        self.lists.clear(log);
        self.touch(log);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn degrees_follow_the_pages() {
        let mut rng = floatgate_core::rng::SplitMix64::new(9);
        let mut seen = Associations::new(3, 4);
        let mut model = vec![BTreeMap::<Lbn, u32>::new(); 3];
        for _ in 0..5_000 {
            let (log, lbn) = (Log(rng.below(3) as u32), Lbn(rng.below(6) as u32));
            let pages = &mut model[log.index()];
            match rng.below(20) {
                0 => {
                    seen.released(log);
                    pages.clear();
                }
                1..10 if pages.contains_key(&lbn) => {
                    seen.lost(log, lbn, Loss::Overwritten);
                    *pages.get_mut(&lbn).unwrap() -= 1;
                    pages.retain(|_, n| *n > 0);
                }
                _ if pages.len() < 4 || pages.contains_key(&lbn) => {
                    seen.gained(log, lbn);
                    *pages.entry(lbn).or_default() += 1;
                }
                _ => {}
            }
            for (i, pages) in model.iter().enumerate() {
                let log = Log(i as u32);
                assert_eq!(&seen.of(log).collect::<BTreeMap<_, _>>(), pages);
                assert_eq!(seen.degree(log) as usize, pages.len());
                assert_eq!(seen.is_associated(log, lbn), pages.contains_key(&lbn));
            }
        }
    }

    #[test]
    fn each_touched_log_block_is_named_once() {
        let mut seen = Associations::new(3, 2);
        seen.gained(Log(2), Lbn(7));
        seen.gained(Log(0), Lbn(7));
        seen.gained(Log(2), Lbn(8));
        let mut named: Vec<_> = std::iter::from_fn(|| seen.next_touched()).collect();
        named.sort();
        assert_eq!(named, [Log(0), Log(2)]);
        seen.released(Log(2));
        assert_eq!(seen.next_touched(), Some(Log(2)));
        assert_eq!(seen.next_touched(), None);
    }
}
