//! Merge-cost table (LAST++): for each log block the logical blocks that a merge of it would have to
//! rebuild, without looking at its pages.
//!
//! The list of a block has room for a few logical blocks only. What finds no room sets the overflow flag, and the
//! degree is an estimate from then on; the merge itself always goes by the pages.

use crate::parts::association::AssociationLists;
use crate::parts::hybrid::Log;
use floatgate_core::address::Lbn;
use floatgate_core::state;

/// What the table knows of one log block besides its list.
#[derive(Clone, Copy, Debug, Default)]
struct Entry {
    overflow: bool,
    /// Merge ID when the last element left the list, or when the block was taken.
    latest_update: u64,
}

state!(Entry {
    overflow,
    latest_update
});

/// The table of all log blocks.
#[derive(Clone, Debug)]
pub struct MergeCost {
    /// Merge sequence ID: the number of foreground merges so far.
    pub merge_id: u64,
    entries: Vec<Entry>,
    lists: AssociationLists,
}

state!(MergeCost {
    merge_id,
    entries,
    lists
});

impl MergeCost {
    /// A table for that many log blocks with lists of `room` elements.
    pub fn new(log_blocks: u32, room: u32) -> Self {
        Self {
            merge_id: 0,
            entries: vec![Entry::default(); log_blocks as usize],
            lists: AssociationLists::new(log_blocks, room),
        }
    }

    /// Bytes of memory for a table of that size.
    pub fn ram_bytes(log_blocks: u64, room: u64) -> u64 {
        16 * log_blocks + AssociationLists::ram_bytes(log_blocks, room)
    }

    /// `log` is a fresh log block.
    pub fn taken(&mut self, log: Log) {
        self.lists.clear(log);
        self.entries[log.index()] = Entry {
            overflow: false,
            latest_update: self.merge_id,
        };
    }

    /// Length of the list: the association degree, exact unless the list has overflowed.
    #[inline(always)]
    pub fn degree(&self, log: Log) -> u32 {
        self.lists.degree(log)
    }

    /// Whether a logical block once found no room in the list.
    #[inline(always)]
    pub fn overflow(&self, log: Log) -> bool {
        self.entries[log.index()].overflow
    }

    /// Merges since the list last lost an element.
    #[inline(always)]
    pub fn distance(&self, log: Log) -> u64 {
        self.merge_id - self.entries[log.index()].latest_update
    }

    /// The list: logical blocks and their valid pages.
    pub fn list(&self, log: Log) -> impl Iterator<Item = (Lbn, u32)> + '_ {
        self.lists.of(log)
    }

    /// Sets the latest update ID of a log block.
    #[cfg(test)]
    pub fn set_latest_update(&mut self, log: Log, id: u64) {
        self.entries[log.index()].latest_update = id;
    }

    /// A page of logical block `lbn` became valid in `log`.
    #[inline]
    pub fn gained(&mut self, log: Log, lbn: Lbn) {
        if !self.lists.gained(log, lbn) {
            self.entries[log.index()].overflow = true;
        }
    }

    /// A page of logical block `lbn` became invalid in `log`.
    #[inline]
    pub fn lost(&mut self, log: Log, lbn: Lbn) {
        if self.lists.lost(log, lbn) == Some(0) {
            self.entries[log.index()].latest_update = self.merge_id;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(cost: &MergeCost, log: Log) -> Vec<(u32, u32)> {
        let mut list: Vec<_> = cost.list(log).map(|(lbn, n)| (lbn.0, n)).collect();
        list.sort_unstable();
        list
    }

    #[test]
    fn lists_count_pages_by_logical_block() {
        let mut cost = MergeCost::new(2, 4);
        for lbn in [7, 3, 7, 9] {
            cost.gained(Log(1), Lbn(lbn));
        }
        assert_eq!(list(&cost, Log(1)), [(3, 1), (7, 2), (9, 1)]);
        cost.merge_id = 5;
        cost.lost(Log(1), Lbn(7));
        assert_eq!((cost.degree(Log(1)), cost.distance(Log(1))), (3, 5));
        cost.lost(Log(1), Lbn(7));
        assert_eq!((cost.degree(Log(1)), cost.distance(Log(1))), (2, 0));
        assert_eq!(list(&cost, Log(1)), [(3, 1), (9, 1)]);
        assert!(!cost.overflow(Log(1)) && cost.degree(Log(0)) == 0);
    }

    #[test]
    fn overflow_stays_until_the_block_is_new_again() {
        let mut cost = MergeCost::new(1, 1);
        cost.gained(Log(0), Lbn(1));
        cost.gained(Log(0), Lbn(2));
        assert!(cost.overflow(Log(0)));
        // What found no room is not missed when it goes.
        cost.lost(Log(0), Lbn(2));
        assert_eq!(list(&cost, Log(0)), [(1, 1)]);
        cost.lost(Log(0), Lbn(1));
        assert_eq!((cost.degree(Log(0)), cost.overflow(Log(0))), (0, true));
        cost.gained(Log(0), Lbn(2));
        assert_eq!(list(&cost, Log(0)), [(2, 1)]);
        cost.merge_id = 3;
        cost.taken(Log(0));
        assert_eq!(
            (
                cost.degree(Log(0)),
                cost.overflow(Log(0)),
                cost.distance(Log(0))
            ),
            (0, false, 0)
        );
    }
}
