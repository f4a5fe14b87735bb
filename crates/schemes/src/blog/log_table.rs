//! Log blocks that serve a bounded number of logical blocks each, and logical blocks that hold a bounded
//! number of log blocks each (BLog's LMT and DLT): who serves whom, how full each log block is, and which one
//! comes next for a new logical block or for reclamation. It touches no flash.

use crate::parts::relation::Relation;
use crate::parts::tournament::Tournament;
use floatgate_core::address::{DieLpn, Lbn, Pbn};
use floatgate_core::flash::Flash;
use floatgate_core::state;

/// A log block: a row of the table.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// Its physical block.
    pub block: Pbn,
    /// Next free page; the block is full when it is the number of pages.
    pub offset: u32,
    /// Whether it counts as full because a power cut left it half full, or half erased.
    pub is_sealed: bool,
    /// Grows from row to row whenever a block becomes empty: the lowest is the oldest.
    stamp: u64,
}

state!(Row {
    block,
    offset,
    is_sealed,
    stamp
});

/// What bounds the lists, and what counts.
#[derive(Clone, Copy, Debug)]
pub struct Budgets {
    /// Most log blocks of a logical block.
    pub u: u32,
    /// Most logical blocks of a log block.
    pub l: u32,
    /// Whether live pages are counted (`association = valid`).
    pub by_validity: bool,
}

/// The log blocks and whom they serve. Rows are numbered from 0, logical blocks too.
#[derive(Clone, Debug)]
pub struct LogTable {
    pages: u32,
    /// Most log blocks of a logical block (the papers' `u`).
    most_log_blocks: u32,
    /// Most logical blocks of a log block (the papers' `l`).
    most_logical_blocks: u32,
    /// Whether live pages are counted, and decide which row is reclaimed.
    by_validity: bool,
    rows: Vec<Row>,
    /// Owners are logical blocks, things are rows; the position of a pair is its slot in the DLT row, its weight the
    /// live pages of the logical block in the row, if they are counted.
    serves: Relation,
    /// Logical blocks with a live page in each row, if they are counted.
    valid: Vec<u32>,
    /// The page programmed at each position of each log block.
    log_pages: Vec<DieLpn>,
    next_stamp: u64,
    free_pages: u64,
    /// Rows that may take another logical block: most free pages, smallest association, oldest.
    candidates: Tournament<u128>,
    /// Rows that are not full: most free pages, oldest.
    open: Tournament<u128>,
    /// All rows: smallest association (by valid pages if these are counted), oldest.
    victims: Tournament<u128>,
}

state!(LogTable { rows, serves, valid, log_pages, next_stamp, free_pages, candidates, open, victims }
    fixed { pages, most_log_blocks, most_logical_blocks, by_validity });

impl LogTable {
    /// Memory in bytes.
    pub fn ram_bytes(logical_blocks: u64, log_blocks: u64, pages: u64, u: u64, l: u64) -> u64 {
        let pairs = (log_blocks * pages.min(l)).min(logical_blocks * log_blocks.min(u));
        (20 + 4 * pages) * log_blocks
            + 3 * Tournament::<u128>::ram_bytes(log_blocks)
            + Relation::ram_bytes(logical_blocks, log_blocks, pairs)
    }

    /// A table over the erased blocks `log_blocks`, oldest first.
    pub fn new(logical_blocks: u32, pages: u32, budgets: Budgets, log_blocks: Vec<Pbn>) -> Self {
        let rows = log_blocks.len();
        let blank = |&block| Row {
            block,
            offset: 0,
            is_sealed: false,
            stamp: 0,
        };
        let mut table = Self {
            pages,
            most_log_blocks: budgets.u,
            most_logical_blocks: budgets.l,
            by_validity: budgets.by_validity,
            valid: vec![0; rows],
            rows: log_blocks.iter().map(blank).collect(),
            serves: Relation::new(logical_blocks as usize, rows),
            log_pages: vec![DieLpn::NONE; rows * pages as usize],
            next_stamp: 0,
            free_pages: rows as u64 * u64::from(pages),
            candidates: Tournament::new(rows),
            open: Tournament::new(rows),
            victims: Tournament::new(rows),
        };
        for (row, block) in log_blocks.into_iter().enumerate() {
            table.empty(row as u32, block);
        }
        table
    }

    /// Log blocks.
    pub fn len(&self) -> u32 {
        self.rows.len() as u32
    }

    /// A row.
    #[inline(always)]
    pub fn row(&self, row: u32) -> Row {
        self.rows[row as usize]
    }

    /// Whether a row has no free page.
    #[inline(always)]
    pub fn is_full(&self, row: u32) -> bool {
        self.rows[row as usize].offset == self.pages
    }

    /// Pages of all log blocks that are still erased.
    pub fn free_pages(&self) -> u64 {
        self.free_pages
    }

    /// Sum of the associations, which is that of the log blocks held by the logical blocks too.
    pub fn pairs(&self) -> u32 {
        self.serves.len()
    }

    /// Logical blocks that a row serves.
    #[inline(always)]
    pub fn association(&self, row: u32) -> u32 {
        self.serves.owners_len(row)
    }

    /// The logical blocks of a row in order.
    pub fn served(&self, row: u32) -> impl Iterator<Item = Lbn> + '_ {
        self.serves.owners(row).map(Lbn)
    }

    /// The logical block that came first to a row.
    pub fn first_served(&self, row: u32) -> Option<Lbn> {
        self.serves.first_owner(row).map(Lbn)
    }

    /// Log blocks of a logical block.
    #[inline(always)]
    pub fn held(&self, lbn: Lbn) -> u32 {
        self.serves.things_len(lbn.0)
    }

    /// The slot of the DLT row that holds the last log block of a logical block.
    #[inline(always)]
    pub fn tail_position(&self, lbn: Lbn) -> Option<u32> {
        self.serves.last_position(lbn.0)
    }

    /// The rows of a logical block in the order in which they came, each with its slot in the DLT row.
    #[inline]
    pub fn slots(&self, lbn: Lbn) -> impl Iterator<Item = (u32, u32)> + '_ {
        self.serves.positions(lbn.0)
    }

    /// The row in a slot of a DLT row.
    pub fn row_in_slot(&self, lbn: Lbn, slot: u32) -> Option<u32> {
        let found = self.slots(lbn).find(|&(_, position)| position == slot);
        found.map(|(row, _)| row)
    }

    /// Live pages of a logical block in a row, if they are counted.
    pub fn live(&self, lbn: Lbn, row: u32) -> u32 {
        self.serves.weight(lbn.0, row)
    }

    /// The rows of a logical block in the order in which they came; all but the last are full.
    pub fn rows_of(&self, lbn: Lbn) -> impl Iterator<Item = u32> + '_ {
        self.serves.things(lbn.0)
    }

    /// The row of a logical block whose log block is `block`.
    pub fn row_at(&self, lbn: Lbn, block: Pbn) -> Option<u32> {
        self.rows_of(lbn).find(|&row| self.row(row).block == block)
    }

    /// The last log block of a logical block if it has a free page.
    #[inline(always)]
    pub fn open_tail(&self, lbn: Lbn) -> Option<u32> {
        self.serves
            .last_thing(lbn.0)
            .filter(|&row| !self.is_full(row))
    }

    /// Whether a logical block may hold no further log block.
    #[inline(always)]
    pub fn holds_all(&self, lbn: Lbn) -> bool {
        self.held(lbn) == self.most_log_blocks
    }

    /// The pages programmed in a log block, by position; `NONE` where a sealed one has none.
    pub fn programmed(&self, row: u32) -> &[DieLpn] {
        let first = row as usize * self.pages as usize;
        &self.log_pages[first..first + self.row(row).offset as usize]
    }

    // ---- choices ----------------------------------------------------------------------------------

    /// The row for a logical block that needs one more: of those that are not full and serve fewer than
    /// they may, the one with most free pages, then smallest association, then the oldest.
    #[inline(always)]
    pub fn candidate(&self) -> Option<u32> {
        self.candidates.first()
    }

    /// The row with most free pages, then the oldest; `None` if all are full.
    #[inline(always)]
    pub fn emptiest(&self) -> Option<u32> {
        self.open.first()
    }

    /// The row with the smallest association, then the oldest.
    #[inline(always)]
    pub fn victim(&self) -> u32 {
        self.victims.first().expect("a table has rows")
    }

    /// The logical block of a row that holds most log blocks, the first among equals.
    pub fn most_spread(&self, row: u32) -> Option<Lbn> {
        let mut most: Option<Lbn> = None;
        for lbn in self.served(row) {
            if most.is_none_or(|most| self.held(lbn) > self.held(most)) {
                most = Some(lbn);
            }
        }
        most
    }

    // ---- changes ----------------------------------------------------------------------------------

    /// `row` serves `lbn` too, as its last log block.
    #[inline]
    pub fn join(&mut self, lbn: Lbn, row: u32) {
        // Only a log block that was taken off alone leaves a slot before the end.
        let slot = match self.by_validity {
            true => (0..).find(|&slot| self.row_in_slot(lbn, slot).is_none()),
            false => Some(self.held(lbn)),
        };
        self.join_at(lbn, row, slot.expect("a DLT row has at most u entries"));
    }

    /// The same in a known slot of the DLT row.
    #[inline]
    pub fn join_at(&mut self, lbn: Lbn, row: u32, slot: u32) {
        self.serves.add(lbn.0, row, slot);
        self.rank_by_association(row);
    }

    /// `lbn` has one more live page in a row that serves it.
    pub fn page_came(&mut self, lbn: Lbn, row: u32) {
        let Some(live) = self.serves.weight_mut(lbn.0, row) else {
            return;
        };
        *live += 1;
        if *live == 1 {
            self.valid[row as usize] += 1;
            self.rank_by_association(row);
        }
    }

    /// `lbn` has one live page less in the row of `block`, if it is a log block that serves it.
    pub fn page_went(&mut self, lbn: Lbn, block: Pbn) {
        let Some(row) = self.row_at(lbn, block) else {
            return;
        };
        let live = self.serves.weight_mut(lbn.0, row).expect("it serves it");
        *live -= 1;
        if *live == 0 {
            self.valid[row as usize] -= 1;
            self.rank_by_association(row);
        }
    }

    /// Takes `lbn`, which has no live page there, out of one of its log blocks. Its slot stays free till the next comes.
    pub fn take_off(&mut self, lbn: Lbn, row: u32) {
        debug_assert_eq!(self.live(lbn, row), 0);
        self.serves.remove(lbn.0, row);
        self.rank_by_association(row);
    }

    /// A page was programmed at the next free page of a row.
    #[inline]
    pub fn append(&mut self, row: u32, lpn: DieLpn) {
        let offset = self.row(row).offset;
        self.log_pages[row as usize * self.pages as usize + offset as usize] = lpn;
        self.rows[row as usize].offset += 1;
        self.free_pages -= 1;
        self.rank_by_offset(row);
    }

    /// The block of an empty row was found with these pages after a power cut. It takes no more.
    pub fn seal(&mut self, row: u32, pages: impl Iterator<Item = (u32, DieLpn)>) {
        let first = row as usize * self.pages as usize;
        for (position, lpn) in pages {
            self.log_pages[first + position as usize] = lpn;
        }
        self.free_pages -= u64::from(self.pages - self.row(row).offset);
        self.rows[row as usize].offset = self.pages;
        self.rows[row as usize].is_sealed = true;
        self.rank_by_offset(row);
    }

    /// Takes `lbn` out of all its log blocks.
    pub fn leave(&mut self, lbn: Lbn) {
        while let Some((row, live)) = self.serves.pop(lbn.0) {
            self.valid[row as usize] -= u32::from(live > 0);
            self.rank_by_association(row);
        }
    }

    /// A row that serves nobody gets an erased block (its own again, or another).
    pub fn empty(&mut self, row: u32, block: Pbn) {
        debug_assert_eq!(self.association(row), 0);
        self.free_pages += u64::from(self.row(row).offset);
        self.rows[row as usize] = Row {
            block,
            offset: 0,
            is_sealed: false,
            stamp: self.next_stamp,
        };
        self.next_stamp += 1;
        self.rank_by_association(row);
    }

    /// What decides which row is reclaimed, before its age.
    #[inline(always)]
    fn cost(&self, row: u32) -> u32 {
        match self.by_validity {
            true => self.valid[row as usize],
            false => self.association(row),
        }
    }

    /// Puts a row in its places after a page was programmed in it.
    #[inline]
    fn rank_by_offset(&mut self, row: u32) {
        let Row { offset, stamp, .. } = self.row(row);
        let association = self.association(row);
        // The tournament takes the largest key, the rules want the smallest of all three.
        let key =
            |offset: u32, rest: u128| !(u128::from(offset) << 96 | rest << 64 | u128::from(stamp));
        let is_open = offset < self.pages;
        let open = if is_open { key(offset, 0) } else { 0 };
        self.open.set(row, open);
        let candidate = if is_open && association < self.most_logical_blocks {
            key(offset, u128::from(association))
        } else {
            0
        };
        self.candidates.set(row, candidate);
    }

    /// The same after its logical blocks changed, or it was emptied.
    #[inline]
    fn rank_by_association(&mut self, row: u32) {
        self.rank_by_offset(row);
        let stamp = u128::from(self.row(row).stamp);
        let association = u128::from(self.cost(row));
        self.victims.set(row, !(association << 64 | stamp));
    }

    // ---- checks -----------------------------------------------------------------------------------

    /// Checks budgets, choices, and that the rows know how full their blocks are.
    ///
    /// # Errors
    /// What does not agree.
    pub fn audit<F: Flash>(&self, flash: &F, logical_blocks: u32) -> Result<(), String> {
        for lbn in (0..logical_blocks).map(Lbn) {
            if self.held(lbn) > self.most_log_blocks {
                return Err(format!(
                    "logical block {} holds {} log blocks",
                    lbn.0,
                    self.held(lbn)
                ));
            }
            let before_tail = self.held(lbn).saturating_sub(1) as usize;
            if !self
                .rows_of(lbn)
                .take(before_tail)
                .all(|row| self.is_full(row))
            {
                return Err(format!(
                    "logical block {} left an open log block behind",
                    lbn.0
                ));
            }
        }
        let mut free_pages = 0;
        for row in 0..self.len() {
            let Row {
                block,
                offset,
                is_sealed,
                ..
            } = self.row(row);
            if self.association(row) > self.most_logical_blocks {
                let n = self.association(row);
                return Err(format!("log block {row} serves {n} logical blocks"));
            }
            let is_filled = flash.ledger().write_pointer(block) == offset
                && flash.ledger().programmed_pages(block) == offset;
            if !is_filled && !is_sealed {
                return Err(format!("log block {row} is not written up to {offset}"));
            }
            let with_live = self.served(row).filter(|&lbn| self.live(lbn, row) > 0);
            if with_live.count() as u32 != self.valid[row as usize] {
                return Err(format!("log block {row}: live logical blocks miscounted"));
            }
            free_pages += u64::from(self.pages - offset);
        }
        if free_pages != self.free_pages {
            let counted = self.free_pages;
            return Err(format!("{free_pages} free log pages, counted {counted}"));
        }
        self.audit_choices()
    }

    fn audit_choices(&self) -> Result<(), String> {
        let rows = 0..self.len();
        let key = |row: u32| {
            (
                self.row(row).offset,
                self.association(row),
                self.row(row).stamp,
            )
        };
        let open = rows.clone().filter(|&row| !self.is_full(row));
        let below = |row: &u32| self.association(*row) < self.most_logical_blocks;
        let expected = (
            open.clone().filter(below).min_by_key(|&row| key(row)),
            open.min_by_key(|&row| (key(row).0, key(row).2)),
            rows.min_by_key(|&row| (self.cost(row), key(row).2)),
        );
        let chosen = (self.candidate(), self.emptiest(), self.victims.first());
        if chosen != expected {
            return Err(format!(
                "candidate, emptiest, victim are {chosen:?}, should be {expected:?}"
            ));
        }
        Ok(())
    }
}
