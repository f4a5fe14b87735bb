//! The sequential block mapping table of LAST++: which segments have sequential log blocks, in the order
//! of their Seq-IDs.
//!
//! The page status table needs no memory of its own here: a bit of it is 1 exactly when the flash
//! knows the position as programmed.

use crate::parts::hybrid::Log;
use crate::parts::lists::Lists;
use crate::parts::probe_table::ProbeTable;
use floatgate_core::state;

const NONE: u32 = u32::MAX;

/// Entries in use, lowest Seq-ID first: an entry gets its number when it is made and keeps it.
const IN_USE: usize = 0;
const FREE: usize = 1;

#[derive(Clone, Copy, Debug)]
struct Entry {
    segment: u32,
    seq_id: u64,
    /// Dies that have a block.
    blocks: u32,
}

state!(Entry {
    segment,
    seq_id,
    blocks
});

/// The table.
#[derive(Debug)]
pub struct Segments {
    order: Lists,
    entries: Vec<Entry>,
    entry_of: Vec<u32>,
    /// By log block: its entry.
    entry_of_log: Vec<u32>,
    table: ProbeTable,
    next_seq_id: u64,
}

state!(Segments {
    order,
    entries,
    entry_of,
    entry_of_log,
    table,
    next_seq_id,
});

impl Segments {
    /// An empty table for at most `entries` of `segments` segments; `logs` log blocks have a number.
    pub fn new(entries: u32, segments: u32, logs: u32) -> Self {
        let mut order = Lists::new(entries as usize, 2);
        (0..entries).for_each(|entry| order.push_back(FREE, entry));
        let unused = Entry {
            segment: NONE,
            seq_id: 0,
            blocks: 0,
        };
        Self {
            order,
            entries: vec![unused; entries as usize],
            entry_of: vec![NONE; segments as usize],
            entry_of_log: vec![NONE; logs as usize],
            table: ProbeTable::new(2 * entries, entries),
            next_seq_id: 0,
        }
    }

    /// Bytes of memory for a table of that size.
    pub fn ram_bytes(entries: u64, segments: u64, logs: u64) -> u64 {
        28 * entries + 4 * segments + 4 * logs + ProbeTable::ram_bytes(2 * entries, entries)
    }

    /// Buckets that a lookup of a segment looks at.
    #[inline(always)]
    pub fn look_up(&self, segment: u32) -> u32 {
        let entry = self.entry_of[segment as usize];
        if entry == NONE {
            self.table.miss(segment)
        } else {
            self.table.hit(entry)
        }
    }

    /// Whether a segment has an entry.
    #[inline(always)]
    pub fn contains(&self, segment: u32) -> bool {
        self.entry_of[segment as usize] != NONE
    }

    /// Entries in use.
    pub fn len(&self) -> u32 {
        self.order.len(IN_USE)
    }

    /// Whether a further entry needs a merge first.
    #[inline]
    pub fn is_full(&self) -> bool {
        self.order.is_empty(FREE)
    }

    /// The segment with the lowest Seq-ID.
    pub fn lowest(&self) -> Option<u32> {
        let entry = self.order.first(IN_USE)?;
        Some(self.entries[entry as usize].segment)
    }

    /// The segments by Seq-ID.
    pub fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        let entries = self.order.iter(IN_USE);
        entries.map(|entry| self.entries[entry as usize].segment)
    }

    /// Makes an entry for a segment that has none. There must be room.
    pub fn insert(&mut self, segment: u32) {
        let entry = self.order.first(FREE).expect("a merge made room");
        self.order.move_to_back(IN_USE, entry);
        self.entries[entry as usize] = Entry {
            segment,
            seq_id: self.next_seq_id,
            blocks: 0,
        };
        self.next_seq_id += 1;
        self.entry_of[segment as usize] = entry;
        self.table.insert(segment, entry);
    }

    /// A die of the segment has got the block `log`.
    pub fn taken(&mut self, segment: u32, log: Log) {
        let entry = self.entry_of[segment as usize];
        self.entries[entry as usize].blocks += 1;
        self.entry_of_log[log.index()] = entry;
    }

    /// `log` is no log block any more. An entry goes with its last block.
    pub fn released(&mut self, log: Log) {
        let entry = std::mem::replace(&mut self.entry_of_log[log.index()], NONE);
        if entry == NONE {
            return;
        }
        let Entry {
            segment, blocks, ..
        } = &mut self.entries[entry as usize];
        *blocks -= 1;
        if *blocks == 0 {
            self.entry_of[*segment as usize] = NONE;
            self.table.remove(entry);
            self.order.move_to_back(FREE, entry);
        }
    }

    /// Checks the table; `blocks` gives the sequential log blocks of a segment.
    ///
    /// # Errors
    /// What does not agree.
    pub fn audit(&self, blocks: impl Fn(u32) -> u32) -> Result<(), String> {
        let mut last = None;
        for entry in self.order.iter(IN_USE) {
            let Entry {
                segment,
                seq_id,
                blocks: counted,
            } = self.entries[entry as usize];
            if last >= Some(seq_id) || self.entry_of[segment as usize] != entry {
                return Err(format!(
                    "entry {entry} of the sequential table is out of order"
                ));
            }
            if counted == 0 || counted != blocks(segment) {
                return Err(format!("segment {segment} counts {counted} blocks"));
            }
            last = Some(seq_id);
        }
        if self.table.len() != self.len() {
            return Err(format!("{} keys in the sequential table", self.table.len()));
        }
        self.table
            .audit(|entry| self.entries[entry as usize].segment)
    }
}
