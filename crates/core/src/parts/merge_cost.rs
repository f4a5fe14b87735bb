//! Merge-cost table (LAST++): for each log block the logical blocks that a merge of it would have to
//! rebuild, without looking at its pages.
//!
//! The list of a block has room for a few logical blocks only. What finds no room sets the overflow flag, and the
//! degree is an estimate from then on; the merge itself always goes by the pages.

/// What the table knows of one log block besides its list.
#[derive(Clone, Copy, Debug, Default)]
struct Entry {
    /// Elements of the list.
    degree: u32,
    overflow: bool,
    /// Merge ID when the last element left the list, or when the block was taken.
    latest_update: u64,
}

/// The table of all log blocks.
#[derive(Clone, Debug)]
pub struct MergeCost {
    /// Merge sequence ID: the number of foreground merges so far.
    pub merge_id: u64,
    room: usize,
    entries: Vec<Entry>,
    /// The lists, `room` elements a log block: logical blocks ...
    logical: Vec<u32>,
    /// ... and their valid pages.
    pages: Vec<u16>,
}

impl MergeCost {
    /// A table for that many log blocks with lists of `room` elements.
    pub fn new(log_blocks: u32, room: u32) -> Self {
        let elements = log_blocks as usize * room as usize;
        Self {
            merge_id: 0,
            room: room as usize,
            entries: vec![Entry::default(); log_blocks as usize],
            logical: vec![0; elements],
            pages: vec![0; elements],
        }
    }

    /// Bytes of memory for a table of that size.
    pub fn ram_bytes(log_blocks: u64, room: u64) -> u64 {
        log_blocks * (16 + 6 * room)
    }

    /// `log` is a fresh log block.
    pub fn taken(&mut self, log: u32) {
        self.entries[log as usize] = Entry {
            latest_update: self.merge_id,
            ..Entry::default()
        };
    }

    /// Length of the list: the association degree, exact unless the list has overflowed.
    #[inline(always)]
    pub fn degree(&self, log: u32) -> u32 {
        self.entries[log as usize].degree
    }

    /// Whether a logical block once found no room in the list.
    #[inline(always)]
    pub fn overflow(&self, log: u32) -> bool {
        self.entries[log as usize].overflow
    }

    /// Merges since the list last lost an element.
    #[inline(always)]
    pub fn distance(&self, log: u32) -> u64 {
        self.merge_id - self.entries[log as usize].latest_update
    }

    /// The list: logical blocks and their valid pages.
    pub fn list(&self, log: u32) -> impl Iterator<Item = (u32, u32)> + '_ {
        let first = log as usize * self.room;
        let elements = first..first + self.degree(log) as usize;
        elements.map(|i| (self.logical[i], u32::from(self.pages[i])))
    }

    /// Sets the latest update ID of a log block.
    #[cfg(test)]
    pub fn set_latest_update(&mut self, log: u32, id: u64) {
        self.entries[log as usize].latest_update = id;
    }

    /// A page of logical block `l` became valid in `log`.
    #[inline]
    pub fn gained(&mut self, log: u32, l: u32) {
        if let Some(at) = self.find(log, l) {
            self.pages[at] += 1;
            return;
        }
        let entry = &mut self.entries[log as usize];
        let end = entry.degree as usize;
        if end == self.room {
            entry.overflow = true;
            return;
        }
        entry.degree += 1;
        let at = log as usize * self.room + end;
        self.logical[at] = l;
        self.pages[at] = 1;
    }

    /// A page of logical block `l` became invalid in `log`.
    #[inline]
    pub fn lost(&mut self, log: u32, l: u32) {
        let Some(at) = self.find(log, l) else { return };
        self.pages[at] -= 1;
        if self.pages[at] > 0 {
            return;
        }
        let entry = &mut self.entries[log as usize];
        entry.degree -= 1;
        entry.latest_update = self.merge_id;
        let last = log as usize * self.room + entry.degree as usize;
        self.logical[at] = self.logical[last];
        self.pages[at] = self.pages[last];
    }

    /// Index of `l` in the list of `log`. Newest elements are at the end and are asked for most.
    #[inline]
    fn find(&self, log: u32, l: u32) -> Option<usize> {
        let first = log as usize * self.room;
        let list = &self.logical[first..first + self.degree(log) as usize];
        list.iter().rposition(|&one| one == l).map(|i| first + i)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(cost: &MergeCost, log: u32) -> Vec<(u32, u32)> {
        let mut list: Vec<_> = cost.list(log).collect();
        list.sort_unstable();
        list
    }

    #[test]
    fn lists_count_pages_by_logical_block() {
        let mut cost = MergeCost::new(2, 4);
        for l in [7, 3, 7, 9] {
            cost.gained(1, l);
        }
        assert_eq!(list(&cost, 1), [(3, 1), (7, 2), (9, 1)]);
        cost.merge_id = 5;
        cost.lost(1, 7);
        assert_eq!((cost.degree(1), cost.distance(1)), (3, 5));
        cost.lost(1, 7);
        assert_eq!((cost.degree(1), cost.distance(1)), (2, 0));
        assert_eq!(list(&cost, 1), [(3, 1), (9, 1)]);
        assert!(!cost.overflow(1) && cost.degree(0) == 0);
    }

    #[test]
    fn overflow_stays_until_the_block_is_new_again() {
        let mut cost = MergeCost::new(1, 1);
        cost.gained(0, 1);
        cost.gained(0, 2);
        assert!(cost.overflow(0));
        // What found no room is not missed when it goes.
        cost.lost(0, 2);
        assert_eq!(list(&cost, 0), [(1, 1)]);
        cost.lost(0, 1);
        assert_eq!((cost.degree(0), cost.overflow(0)), (0, true));
        cost.gained(0, 2);
        assert_eq!(list(&cost, 0), [(2, 1)]);
        cost.merge_id = 3;
        cost.taken(0);
        assert_eq!(
            (cost.degree(0), cost.overflow(0), cost.distance(0)),
            (0, false, 0)
        );
    }
}
