//! The table of log blocks: which block has which place in it, whose it is, and which pages were programmed in it.

use floatgate_core::state;
use floatgate_core::state::{Passed, State, Tape};
use std::ops::{Index, IndexMut};

use floatgate_core::address::{DieLpn, Lbn, Pbn};
use floatgate_core::geometry::Space;

/// Number of a log block's place in the log table: lowest free number when the block is taken, kept
/// until it is erased or becomes a data block.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub struct Log(pub u32);
impl State for Log {
    fn pass(&mut self, tape: &mut Tape<'_>) -> Passed {
        tape.u32(&mut self.0)
    }
}

impl Log {
    pub(super) const NONE: Self = Self(u32::MAX);

    #[inline(always)]
    pub(super) fn some(self) -> Option<Self> {
        (self != Self::NONE).then_some(self)
    }

    /// As an index into a scheme's own table of log blocks.
    #[inline(always)]
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// A page of a log block: where the newest version of a logical page may lie.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LogPage {
    /// The log block.
    pub log: Log,
    /// Position in it.
    pub position: u32,
}

/// Value of [`LogBlock::aligned_to`] once a page came that breaks the alignment.
const MISALIGNED: Lbn = Lbn(u32::MAX - 1);

/// What is kept of a log block.
#[derive(Clone, Copy, Debug)]
pub(super) struct LogBlock {
    pub(super) pbn: Pbn,
    /// Valid pages.
    pub(super) valid: u32,
    /// Host pages programmed.
    pub(super) host_pages: u32,
    /// The logical block that owns it alone, or `NONE`.
    pub(super) owner: Lbn,
    /// The logical block it is aligned to, `MISALIGNED`, or `NONE` while blank.
    pub(super) aligned_to: Lbn,
    /// Positions that count as written whatever the flash says: all of them in a block found after a power
    /// cut, whose erased positions cannot be trusted.
    pub(super) sealed: u32,
    /// Whether it was taken for one logical block alone, as the map tells where that matters.
    pub(super) is_sequential: bool,
}

impl State for LogBlock {
    fn pass(&mut self, tape: &mut Tape<'_>) -> Passed {
        self.pbn.pass(tape)?;
        tape.u32(&mut self.valid)?;
        tape.u32(&mut self.host_pages)?;
        self.owner.pass(tape)?;
        // `MISALIGNED` is no logical block.
        tape.u32(&mut self.aligned_to.0)?;
        tape.u32(&mut self.sealed)?;
        self.is_sequential.pass(tape)
    }
}

const BLANK: LogBlock = LogBlock {
    pbn: Pbn::NONE,
    valid: 0,
    host_pages: 0,
    owner: Lbn::NONE,
    aligned_to: Lbn::NONE,
    sealed: 0,
    is_sequential: false,
};

/// The log blocks of a space. A place in the table is kept until the block is erased or becomes a data block.
#[derive(Debug)]
pub(super) struct LogTable {
    /// The first physical block of the space.
    first_block: u32,
    pages_per_block: u32,
    slots_per_die: u32,
    /// By physical block of the space: its place.
    places: Vec<Log>,
    logs: Vec<LogBlock>,
    /// Page programmed at each position of each log block.
    pages: Vec<DieLpn>,
    /// By logical block: the log block that it owns alone.
    owned: Vec<Log>,
    /// One bit a place.
    free: Vec<u64>,
    in_use: u32,
}

state!(LogTable { places, logs, pages, owned, free, in_use }
    fixed { first_block, pages_per_block, slots_per_die });

impl Index<Log> for LogTable {
    type Output = LogBlock;

    #[inline(always)]
    fn index(&self, log: Log) -> &LogBlock {
        &self.logs[log.index()]
    }
}

impl IndexMut<Log> for LogTable {
    #[inline(always)]
    fn index_mut(&mut self, log: Log) -> &mut LogBlock {
        &mut self.logs[log.index()]
    }
}

impl LogTable {
    /// An empty table with so many places on each die.
    pub(super) fn new(space: &Space, slots_per_die: u32) -> Self {
        let geometry = &space.geometry;
        let slots = slots_per_die * space.dies;
        let mut free = vec![0; (slots as usize).div_ceil(64)];
        for slot in 0..slots {
            free[(slot / 64) as usize] |= 1 << (slot % 64);
        }
        Self {
            first_block: space.first_die * geometry.blocks_per_die,
            pages_per_block: geometry.pages_per_block,
            slots_per_die,
            places: vec![Log::NONE; space.blocks() as usize],
            logs: vec![BLANK; slots as usize],
            pages: vec![DieLpn::NONE; (slots * geometry.pages_per_block) as usize],
            owned: vec![Log::NONE; space.logical_blocks() as usize],
            free,
            in_use: 0,
        }
    }

    /// All places, taken or not.
    pub(super) fn all(&self) -> &[LogBlock] {
        &self.logs
    }

    /// Log blocks in the table.
    #[inline(always)]
    pub(super) fn in_use(&self) -> u32 {
        self.in_use
    }

    #[inline(always)]
    fn place_of(&self, block: Pbn) -> usize {
        (block.0 - self.first_block) as usize
    }

    /// The log block that a physical block of the space is, if it is one.
    #[inline(always)]
    pub(super) fn at(&self, block: Pbn) -> Option<Log> {
        self.places[self.place_of(block)].some()
    }

    /// Gives a block the lowest free place of the die.
    pub(super) fn add(&mut self, die: u32, block: Pbn) -> Log {
        let log = self.lowest_free(die);
        self.free[log.index() / 64] &= !(1 << (log.0 % 64));
        self.logs[log.index()] = LogBlock {
            pbn: block,
            ..BLANK
        };
        let place = self.place_of(block);
        self.places[place] = log;
        self.in_use += 1;
        log
    }

    fn lowest_free(&self, die: u32) -> Log {
        let (first, end) = (die * self.slots_per_die, (die + 1) * self.slots_per_die);
        let mut slot = first;
        while slot < end {
            let word = self.free[(slot / 64) as usize] >> (slot % 64);
            if word != 0 {
                let found = slot + word.trailing_zeros();
                assert!(found < end, "more log blocks than the budget");
                return Log(found);
            }
            slot = (slot / 64 + 1) * 64;
        }
        panic!("more log blocks than the budget");
    }

    /// Takes a log block out of the table. Returns what was kept of it.
    pub(super) fn remove(&mut self, log: Log) -> LogBlock {
        let removed = std::mem::replace(&mut self.logs[log.index()], BLANK);
        if removed.owner.is_some() {
            self.owned[removed.owner.index()] = Log::NONE;
        }
        let place = self.place_of(removed.pbn);
        self.places[place] = Log::NONE;
        let first = self.page_index(log, 0);
        self.pages[first..first + self.pages_per_block as usize].fill(DieLpn::NONE);
        self.free[log.index() / 64] |= 1 << (log.0 % 64);
        self.in_use -= 1;
        removed
    }

    /// The log block that `lbn` owns alone, if any.
    #[inline(always)]
    pub(super) fn owned(&self, lbn: Lbn) -> Option<Log> {
        self.owned[lbn.index()].some()
    }

    /// Gives a log block that has no owner to a logical block that owns none.
    pub(super) fn own(&mut self, log: Log, lbn: Lbn) {
        self.logs[log.index()].owner = lbn;
        self.owned[lbn.index()] = log;
    }

    /// Makes an owned log block a shared one.
    pub(super) fn disown(&mut self, log: Log) {
        let owner = std::mem::replace(&mut self.logs[log.index()].owner, Lbn::NONE);
        self.owned[owner.index()] = Log::NONE;
    }

    #[inline(always)]
    fn page_index(&self, log: Log, position: u32) -> usize {
        log.index() * self.pages_per_block as usize + position as usize
    }

    /// The page programmed at a position, whether still valid or not.
    #[inline(always)]
    pub(super) fn page(&self, log: Log, position: u32) -> DieLpn {
        self.pages[self.page_index(log, position)]
    }

    /// A page, that at `offset` of logical block `lbn`, has been programmed.
    #[inline]
    pub(super) fn note_page(&mut self, at: LogPage, lpn: DieLpn, (lbn, offset): (Lbn, u32)) {
        let index = self.page_index(at.log, at.position);
        self.pages[index] = lpn;
        let block = &mut self.logs[at.log.index()];
        let fits = offset == at.position && (block.aligned_to.is_none() || block.aligned_to == lbn);
        block.aligned_to = if fits { lbn } else { MISALIGNED };
    }
}

impl LogBlock {
    /// Whether every page programmed so far is page `i` of `lbn` at position `i`.
    pub(super) fn is_aligned(&self, lbn: Lbn) -> bool {
        self.aligned_to == lbn || self.aligned_to.is_none()
    }

    /// The logical block that owns it alone, if any.
    pub(super) fn owner(&self) -> Option<Lbn> {
        self.owner.is_some().then_some(self.owner)
    }
}
