//! The common ground of the hybrid schemes: data blocks mapped by block, log blocks mapped by page, and
//! the merges that turn the second into the first (docs/spec/merges.md).
//!
//! Numbering inside a space (one die, or all dies for LAST++): logical block `l` holds local pages
//! `l * P .. l * P + P - 1`; on many dies the logical blocks of die `d` are `d * NS .. (d + 1) * NS - 1`
//! ([`Space`] numbers pages die by die). Data and log blocks of a logical block may lie on any die, but new
//! data blocks are always taken on the die of the logical block.
//!
//! The newest version of every page is kept in one flat table. The papers' schemes keep it only for log
//! pages; theirs is the memory that [`Ftl::tables`](floatgate_core::ftl::Ftl::tables) reports, ours the memory that
//! makes a read one load.

use crate::hints::{large_table, prefetch};
use crate::parts::lists::Lists;
use crate::parts::map_area::{MapArea, MapShape, Work};
use crate::parts::pool::Pool;
use crate::parts::start;
use floatgate_core::Refusal;
use floatgate_core::address::{DieLpn, Pbn, Ppn};
use floatgate_core::flash::{Cause, Flash, Oob, Preload, Role, Slot};
use floatgate_core::ftl::{MountError, Start};
use floatgate_core::geometry::{Geometry, ProgramOrder, Space};
use floatgate_core::report::Merges;

mod audit;
#[cfg(test)]
pub(crate) mod drawn;
mod from_map;
mod from_tables;
mod merges;
mod recovery;
mod room;

pub use from_map::{BlockMap, NamedLog};
pub use from_tables::{KnownBlocks, KnownLog};
pub use recovery::{FoundLog, Shortcuts, recovery_costs};

/// Number of a log block's place in the log table: lowest free number when the block is taken, kept
/// until it is erased or becomes a data block.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Log(pub u32);

impl Log {
    const NONE: Self = Self(u32::MAX);

    fn some(self) -> Option<Self> {
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

/// Why a page of a log block stopped being valid.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Loss {
    /// The host wrote the page again.
    Overwritten,
    /// The host trimmed it.
    Trimmed,
    /// A merge or a move copied it elsewhere.
    Moved,
}

/// What a scheme wants to hear about pages of its log blocks.
pub trait Watch {
    /// Whether data blocks are written by merges alone, and the roles of pages tell which log blocks can become data
    /// blocks: sequential ones can, hot and cold ones never. The recovery goes by it.
    const MERGES_ALONE_WRITE_DATA: bool = false;

    /// A page of logical block `l` has become valid in `log`.
    #[inline(always)]
    fn gained(&mut self, log: Log, l: u32) {
        let _ = (log, l);
    }
    /// A page of logical block `l` is no longer valid in `log`. Comes before the `gained` of its new place.
    #[inline(always)]
    fn lost(&mut self, log: Log, l: u32, why: Loss) {
        let _ = (log, l, why);
    }
    /// The newest version of local page `lpn` of logical block `l` has moved; `None` stands for a data block or
    /// nowhere. Comes after `lost` and `gained` of the same move.
    #[inline(always)]
    fn moved(&mut self, lpn: DieLpn, l: u32, from: Option<LogPage>, to: Option<LogPage>) {
        let _ = (lpn, l, from, to);
    }
    /// `log` has been erased or has become a data block.
    #[inline(always)]
    fn released(&mut self, log: Log) {
        let _ = log;
    }
    /// A page with that sequence number was found in `log` after a power cut, valid or not.
    fn found_page(&mut self, log: Log, position: u32, sequence: u64) {
        let _ = (log, position, sequence);
    }
    /// `log` was found after a power cut, and all its valid pages have been `gained`; it has that many further
    /// positions that are used up.
    fn recovered(&mut self, log: Log, other_positions: u32) {
        let _ = (log, other_positions);
    }
}

impl Watch for () {}

/// What a merge turned out to be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Merged {
    /// Nothing valid in the log block: erased.
    Dead,
    /// The log block is the data block now.
    Switch,
    /// The same, after some copies.
    Partial,
    /// Rebuilt in fresh blocks.
    Full,
}

const NO_BLOCK: u32 = u32::MAX;
/// Value of [`LogBlock::aligned_to`] once a page came that breaks the alignment.
const MISALIGNED: u32 = u32::MAX - 1;

#[derive(Clone, Copy, Debug)]
struct LogBlock {
    pbn: Pbn,
    /// Valid pages.
    valid: u32,
    /// Host pages programmed.
    host_pages: u32,
    /// The logical block that owns it alone, or `NO_BLOCK`.
    owner: u32,
    /// The logical block it is aligned to, `MISALIGNED`, or `NO_BLOCK` while blank.
    aligned_to: u32,
    /// Positions that count as written whatever the flash says: all of them in a block found after a power
    /// cut, whose erased positions cannot be trusted.
    sealed: u32,
    /// Whether it was taken for one logical block alone, as the map tells where that matters.
    is_sequential: bool,
}

const BLANK: LogBlock = LogBlock {
    pbn: Pbn::NONE,
    valid: 0,
    host_pages: 0,
    owner: NO_BLOCK,
    aligned_to: NO_BLOCK,
    sealed: 0,
    is_sequential: false,
};

/// Bit of a log slot's map entry: the log block is a sequential one. No block has so high a number, because a page has
/// one of 32 bits and the bit is set only where a block has two pages.
const SEQUENTIAL_BIT: u32 = 1 << 31;

/// Sizes a hybrid is made with, all for one die.
#[derive(Clone, Copy, Debug)]
pub struct HybridPlan {
    /// Log blocks that the budget allows.
    pub log_blocks: u32,
    /// Places in the log table, at least `log_blocks`.
    pub log_slots: u32,
    /// Blocks a merge needs beyond the budget.
    pub reserve: u32,
    /// Blocks of the map area, 0 for none.
    pub map_blocks: u32,
    /// Entries in one map page.
    pub map_entries_per_page: u32,
    /// Ordered lists of log blocks the scheme keeps.
    pub lists: usize,
}

impl HybridPlan {
    /// The sizes of a die's map area.
    fn map_shape(&self, space: &Space) -> MapShape {
        MapShape {
            blocks: self.map_blocks,
            entries_per_page: self.map_entries_per_page,
            entries: space.geometry.logical_blocks_per_die() + self.log_slots,
        }
    }

    /// Checks that everything fits the blocks of a die.
    ///
    /// # Errors
    /// A refusal that shows the sum.
    pub fn check(&self, space: &Space) -> Result<(), Refusal> {
        space.need_blocks(&[
            ("data blocks", space.geometry.logical_blocks_per_die()),
            ("log blocks", self.log_blocks),
            ("merge reserve", self.reserve),
            ("map blocks", self.map_blocks),
        ])
    }
}

/// Tables and merges of a hybrid scheme. See the module's text.
#[derive(Debug)]
pub struct Hybrid<W = ()> {
    space: Space,
    /// What the scheme hears about log pages.
    pub watch: W,
    /// Ordered lists of log blocks (by [`Log::0`]); a block leaves its list by itself when released.
    pub lists: Lists,
    /// Merges so far.
    pub merges: Merges,
    newest: Vec<Ppn>,
    data: Vec<Pbn>,
    /// By physical block of the space: its place in the log table.
    log_of: Vec<Log>,
    logs: Vec<LogBlock>,
    /// Page programmed at each position of each log block.
    log_pages: Vec<DieLpn>,
    owned: Vec<Log>,
    free_slots: Vec<u64>,
    slots_per_die: u32,
    pools: Vec<Pool>,
    maps: Vec<MapArea>,
    /// Scratch of a full merge: the logical blocks concerned, and who has been seen in which merge.
    associated: Vec<u32>,
    seen: Vec<u32>,
    merge_no: u32,
    logs_in_use: u32,
    /// Blocks lent out of the pools.
    lent: u32,
    /// One bit a page, after a recovery from the map blocks, else empty: the page may lie in its data block, but nobody
    /// has read it to see.
    unproved: Vec<u64>,
}

impl HybridPlan {
    /// What the blocks of a die are for, as [`Space::need_blocks`] takes it.
    pub fn needs(&self, space: &Space) -> [(&'static str, u32); 4] {
        [
            ("data blocks", space.geometry.logical_blocks_per_die()),
            ("log blocks", self.log_blocks),
            ("merge reserve", self.reserve),
            ("map blocks", self.map_blocks),
        ]
    }
}

impl<W: Watch> Hybrid<W> {
    /// Memory of the tables in bytes, for one device.
    pub fn ram_bytes(geometry: &Geometry, log_blocks: u32) -> u64 {
        let (pages, blocks) = (
            u64::from(geometry.logical_pages),
            u64::from(geometry.blocks()),
        );
        let log_pages = u64::from(log_blocks) * u64::from(geometry.pages_per_block);
        4 * pages
            + 12 * u64::from(geometry.logical_blocks())
            + 8 * blocks
            + 4 * log_pages
            + 48 * u64::from(log_blocks)
    }

    /// Checks the sizes and makes the start state.
    ///
    /// # Errors
    /// A refusal that shows the sum of blocks, or names the option at fault.
    pub fn format<F: Preload>(
        space: &Space,
        plan: &HybridPlan,
        start: Start,
        watch: W,
        flash: &mut F,
    ) -> Result<Self, MountError<F::Error>> {
        let mut hybrid = Self::blank(space, plan, watch)?;
        let geometry = &space.geometry;
        let per_die = geometry.logical_blocks_per_die();
        let used = if start == Start::Full { per_die } else { 0 };
        for die in 0..space.dies {
            let first = geometry.pbn(space.first_die + die, 0).0;
            let usable = geometry.blocks_per_die - plan.map_blocks;
            hybrid
                .pools
                .push(Pool::new((first + used..first + usable).map(Pbn), usable));
        }
        if start == Start::Full {
            hybrid.fill(flash).map_err(MountError::Flash)?;
        }
        if plan.map_blocks > 0 {
            let shape = plan.map_shape(space);
            for die in 0..space.dies {
                let value = |entry| hybrid.map_entry(die, entry, None);
                let area = MapArea::format(space, space.first_die + die, shape, value, flash)?;
                hybrid.maps.push(area);
            }
        }
        Ok(hybrid)
    }

    /// Checks the sizes and makes empty tables, without pools and map areas.
    fn blank(space: &Space, plan: &HybridPlan, watch: W) -> Result<Self, Refusal> {
        plan.check(space)?;
        let geometry = &space.geometry;
        let logical_blocks = space.logical_blocks();
        let slots = plan.log_slots * space.dies;
        let mut hybrid = Self {
            watch,
            lists: Lists::new(slots as usize, plan.lists),
            merges: Merges::default(),
            newest: large_table(Ppn::NONE, space.logical_pages() as usize),
            data: vec![Pbn::NONE; logical_blocks as usize],
            log_of: vec![Log::NONE; space.blocks() as usize],
            logs: vec![BLANK; slots as usize],
            log_pages: vec![DieLpn::NONE; (slots * geometry.pages_per_block) as usize],
            owned: vec![Log::NONE; logical_blocks as usize],
            free_slots: Vec::new(),
            slots_per_die: plan.log_slots,
            pools: Vec::new(),
            maps: Vec::new(),
            associated: Vec::with_capacity(geometry.pages_per_block as usize),
            seen: vec![0; logical_blocks as usize],
            merge_no: 0,
            logs_in_use: 0,
            lent: 0,
            unproved: Vec::new(),
            space: space.clone(),
        };
        hybrid.free_slots = vec![0; (slots as usize).div_ceil(64)];
        for slot in 0..slots {
            hybrid.free_slots[(slot / 64) as usize] |= 1 << (slot % 64);
        }
        Ok(hybrid)
    }

    /// Every logical block whole and valid in the physical block of the same number.
    fn fill<F: Preload>(&mut self, flash: &mut F) -> Result<(), F::Error> {
        let data = &mut self.data;
        start::fill(&self.space, flash, &mut self.newest, |l, block| {
            data[l as usize] = block;
        })
    }

    /// The part of the device that this instance serves.
    pub fn space(&self) -> &Space {
        &self.space
    }

    /// Pages a block.
    #[inline(always)]
    pub fn pages_per_block(&self) -> u32 {
        self.space.geometry.pages_per_block
    }

    /// Logical block and offset of a local page.
    #[inline(always)]
    pub fn split(&self, lpn: DieLpn) -> (u32, u32) {
        self.space.geometry.by_pages().div_rem(lpn.0)
    }

    /// The entry of a page will be wanted soon.
    #[inline(always)]
    pub fn prefetch(&self, lpn: DieLpn) {
        prefetch(&self.newest, lpn.index());
    }

    /// Where the newest version of a page lies, or `NONE` if the page is not live.
    #[inline(always)]
    pub fn newest(&self, lpn: DieLpn) -> Ppn {
        self.newest[lpn.index()]
    }

    /// The log block that holds the newest version of a page, if one does.
    #[inline(always)]
    pub fn newest_log(&self, lpn: DieLpn) -> Option<Log> {
        let at = self.newest[lpn.index()];
        if at.is_none() {
            return None;
        }
        self.log_at(at).some()
    }

    /// The page of a log block that a physical page is, if it is one.
    #[inline(always)]
    fn log_page_at(&self, at: Ppn) -> Option<LogPage> {
        if at.is_none() {
            return None;
        }
        let (block, position) = self.space.geometry.split(at);
        let log = self.log_of[self.in_space(block)].some()?;
        Some(LogPage { log, position })
    }

    /// Where in the log blocks the newest version of a page lies, if it lies there.
    #[inline(always)]
    pub fn newest_log_page(&self, lpn: DieLpn) -> Option<LogPage> {
        self.log_page_at(self.newest[lpn.index()])
    }

    #[inline(always)]
    fn log_at(&self, at: Ppn) -> Log {
        self.log_of[self.in_space(self.space.geometry.block_of(at))]
    }

    /// Index of a block inside the space.
    #[inline(always)]
    fn in_space(&self, pbn: Pbn) -> usize {
        (pbn.0 - self.space.first_die * self.space.geometry.blocks_per_die) as usize
    }

    /// Data block of a logical block, or `NONE`.
    #[inline(always)]
    pub fn data(&self, l: u32) -> Pbn {
        self.data[l as usize]
    }

    /// The log block that `l` owns alone, if any.
    #[inline(always)]
    pub fn owned(&self, l: u32) -> Option<Log> {
        self.owned[l as usize].some()
    }

    /// The logical block that owns `log` alone, if any.
    pub fn owner(&self, log: Log) -> Option<u32> {
        let owner = self.logs[log.index()].owner;
        (owner != NO_BLOCK).then_some(owner)
    }

    /// Makes an owned log block a shared one.
    pub fn disown(&mut self, log: Log) {
        let owner = std::mem::replace(&mut self.logs[log.index()].owner, NO_BLOCK);
        self.owned[owner as usize] = Log::NONE;
    }

    /// Whether `log` stands for a log block at present.
    #[inline(always)]
    pub fn exists(&self, log: Log) -> bool {
        self.logs[log.index()].pbn.is_some()
    }

    /// Log blocks in use.
    #[inline(always)]
    pub fn logs_in_use(&self) -> u32 {
        self.logs_in_use
    }

    /// The physical block of a log block.
    #[inline(always)]
    pub fn log_block(&self, log: Log) -> Pbn {
        self.logs[log.index()].pbn
    }

    /// The die of the space on which a log block lies.
    pub fn die_of_log(&self, log: Log) -> u32 {
        self.die_of_block(self.log_block(log))
    }

    /// Valid pages of a log block.
    #[inline(always)]
    pub fn valid(&self, log: Log) -> u32 {
        self.logs[log.index()].valid
    }

    /// Host pages programmed in a log block.
    #[inline(always)]
    pub fn host_pages(&self, log: Log) -> u32 {
        self.logs[log.index()].host_pages
    }

    /// Whether every page ever programmed in `log` since its erase is page `i` of `l` at position `i`.
    pub fn is_aligned(&self, log: Log, l: u32) -> bool {
        let aligned = self.logs[log.index()].aligned_to;
        aligned == l || aligned == NO_BLOCK
    }

    /// The page programmed at a position of a log block (whether still valid or not).
    #[inline(always)]
    pub fn log_page(&self, log: Log, position: u32) -> DieLpn {
        self.log_pages[log.index() * self.pages_per_block() as usize + position as usize]
    }

    /// Whether the page at a position of a log block is valid.
    #[inline(always)]
    pub fn is_valid_at(&self, log: Log, position: u32) -> bool {
        let lpn = self.log_page(log, position);
        lpn.is_some() && self.newest(lpn) == self.space.geometry.ppn(self.log_block(log), position)
    }

    /// The valid pages of a log block: position, local page, logical block.
    pub fn valid_pages(&self, log: Log) -> impl Iterator<Item = (u32, DieLpn, u32)> + '_ {
        (0..self.pages_per_block())
            .filter(move |&position| self.is_valid_at(log, position))
            .map(move |position| {
                let lpn = self.log_page(log, position);
                (position, lpn, self.split(lpn).0)
            })
    }

    /// Positions of a log block written so far; the next free one is this.
    #[inline(always)]
    pub fn written<F: Flash>(&self, flash: &F, log: Log) -> u32 {
        let block = &self.logs[log.index()];
        flash.ledger().write_pointer(block.pbn).max(block.sealed)
    }

    /// Whether a log block has no free position above its highest programmed one.
    #[inline(always)]
    pub fn is_full<F: Flash>(&self, flash: &F, log: Log) -> bool {
        self.written(flash, log) == self.pages_per_block()
    }

    /// Erased blocks of a die of the space.
    pub fn free_blocks(&self, die: u32) -> u32 {
        self.pools[die as usize].len()
    }

    /// Takes an erased block of a die for something that is neither data nor log, until it is given back.
    pub fn lend_block(&mut self, die: u32) -> Pbn {
        self.lent += 1;
        self.pools[die as usize].take()
    }

    /// Blocks that are lent.
    pub fn lent(&self) -> u32 {
        self.lent
    }

    /// Takes back a block that was lent and has been erased.
    pub fn take_back(&mut self, block: Pbn) {
        self.lent -= 1;
        let die = self.die_of_block(block);
        self.pools[die as usize].give(block);
    }

    /// Operations of all merges and of the map areas so far.
    pub fn work(&self) -> Work {
        let m = &self.merges;
        let copies = m.copies_partial + m.copies_full;
        let merges = Work {
            reads: copies,
            programs: copies,
            erases: m.erases_switch + m.erases_partial + m.erases_full + m.erases_dead,
        };
        self.maps.iter().fold(merges, |sum, map| sum.and(&map.work))
    }

    #[inline(always)]
    fn die_of_logical(&self, l: u32) -> u32 {
        if self.space.dies == 1 {
            0
        } else {
            l / self.space.geometry.logical_blocks_per_die()
        }
    }

    #[inline(always)]
    fn die_of_block(&self, pbn: Pbn) -> u32 {
        if self.space.dies == 1 {
            0
        } else {
            self.space.geometry.die_of(pbn) - self.space.first_die
        }
    }

    // ---- host pages -------------------------------------------------------------------------------

    /// First steps of a page write: takes a data block if there is none, and programs the page in it if its
    /// position can be. Returns whether that was all.
    ///
    /// # Errors
    /// Those of the flash.
    #[inline]
    pub fn write_to_data<F: Flash>(
        &mut self,
        flash: &mut F,
        slot: Slot,
        lpn: DieLpn,
    ) -> Result<bool, F::Error> {
        let (l, o) = self.split(lpn);
        if self.data[l as usize].is_none() {
            self.take_data(flash, l)?;
        }
        let block = self.data[l as usize];
        if !programmable(flash, block, o) {
            return Ok(false);
        }
        let to = self.space.geometry.ppn(block, o);
        let oob = Oob::new(self.space.device_lpn(lpn), Role::Data);
        flash.program_host(slot, to, oob, F::Token::default())?;
        self.move_newest(lpn, to, Loss::Overwritten);
        Ok(true)
    }

    #[cold]
    fn take_data<F: Flash>(&mut self, flash: &mut F, l: u32) -> Result<(), F::Error> {
        let die = self.die_of_logical(l);
        self.data[l as usize] = self.pools[die as usize].take();
        self.map_event(flash, die, Some(l), None)
    }

    /// Takes a free block of a die as log block, owned by one logical block or shared.
    ///
    /// # Errors
    /// Those of the flash.
    pub fn take_log<F: Flash>(
        &mut self,
        flash: &mut F,
        die: u32,
        owner: Option<u32>,
    ) -> Result<Log, F::Error> {
        let pbn = self.pools[die as usize].take();
        let log = self.assign_slot(die, pbn);
        if let Some(l) = owner {
            self.own(log, l);
            self.logs[log.index()].is_sequential = true;
        }
        self.map_event(flash, die, None, Some(log))?;
        Ok(log)
    }

    /// Makes a block a log block, at the lowest free place of the die's log table.
    fn assign_slot(&mut self, die: u32, pbn: Pbn) -> Log {
        let log = self.lowest_free_slot(die);
        self.free_slots[(log.0 / 64) as usize] &= !(1 << (log.0 % 64));
        self.logs[log.index()] = LogBlock { pbn, ..BLANK };
        let at = self.in_space(pbn);
        self.log_of[at] = log;
        self.logs_in_use += 1;
        log
    }

    /// Gives a log block that has no owner to a logical block that owns none.
    fn own(&mut self, log: Log, l: u32) {
        self.logs[log.index()].owner = l;
        self.owned[l as usize] = log;
    }

    fn lowest_free_slot(&self, die: u32) -> Log {
        let (first, end) = (die * self.slots_per_die, (die + 1) * self.slots_per_die);
        let mut slot = first;
        while slot < end {
            let word = self.free_slots[(slot / 64) as usize] >> (slot % 64);
            if word != 0 {
                let found = slot + word.trailing_zeros();
                assert!(found < end, "more log blocks than the budget");
                return Log(found);
            }
            slot = (slot / 64 + 1) * 64;
        }
        panic!("more log blocks than the budget");
    }

    /// Programs a host page at the next position of a log block.
    ///
    /// # Errors
    /// Those of the flash.
    #[inline]
    pub fn append<F: Flash>(
        &mut self,
        flash: &mut F,
        slot: Slot,
        log: Log,
        lpn: DieLpn,
        role: Role,
    ) -> Result<(), F::Error> {
        let position = self.written(flash, log);
        self.write_at(flash, slot, log, position, lpn, role)
    }

    /// Programs a host page at a given position of a log block.
    ///
    /// # Errors
    /// Those of the flash.
    #[inline]
    pub fn write_at<F: Flash>(
        &mut self,
        flash: &mut F,
        slot: Slot,
        log: Log,
        position: u32,
        lpn: DieLpn,
        role: Role,
    ) -> Result<(), F::Error> {
        let to = self.space.geometry.ppn(self.log_block(log), position);
        let oob = Oob::new(self.space.device_lpn(lpn), role);
        flash.program_host(slot, to, oob, F::Token::default())?;
        self.logs[log.index()].host_pages += 1;
        self.note_log_page(log, position, lpn);
        self.move_newest(lpn, to, Loss::Overwritten);
        Ok(())
    }

    /// Copies the newest version of a page to the next position of a log block.
    ///
    /// # Errors
    /// Those of the flash.
    pub fn copy_to_log<F: Flash>(
        &mut self,
        flash: &mut F,
        log: Log,
        lpn: DieLpn,
        role: Role,
    ) -> Result<(), F::Error> {
        self.carry_to_log(flash, log, lpn, role, 0)
    }

    /// The same with a [tag](move_tag) that tells a move from the middle of one: needed where the copies of
    /// one move may fill a log block that the budget has no room for before the emptied block is erased.
    ///
    /// # Errors
    /// Those of the flash.
    pub fn carry_to_log<F: Flash>(
        &mut self,
        flash: &mut F,
        log: Log,
        lpn: DieLpn,
        role: Role,
        tag: u32,
    ) -> Result<(), F::Error> {
        let position = self.written(flash, log);
        let to = self.space.geometry.ppn(self.log_block(log), position);
        self.copy(flash, lpn, to, role, tag)?;
        self.note_log_page(log, position, lpn);
        self.move_newest(lpn, to, Loss::Moved);
        Ok(())
    }

    fn note_log_page(&mut self, log: Log, position: u32, lpn: DieLpn) {
        let (l, o) = self.split(lpn);
        let pages = self.pages_per_block() as usize;
        self.log_pages[log.index() * pages + position as usize] = lpn;
        let block = &mut self.logs[log.index()];
        let fits = o == position && (block.aligned_to == NO_BLOCK || block.aligned_to == l);
        block.aligned_to = if fits { l } else { MISALIGNED };
    }

    fn copy<F: Flash>(
        &mut self,
        flash: &mut F,
        lpn: DieLpn,
        to: Ppn,
        role: Role,
        tag: u32,
    ) -> Result<(), F::Error> {
        let lpn_of_device = self.space.device_lpn(lpn);
        let oob = Oob {
            lpn: lpn_of_device,
            role,
            tag,
        };
        flash.copy(self.newest(lpn), to, oob, Cause::Gc, F::Token::default())?;
        Ok(())
    }

    /// Reads the newest version of a page for the host; zeroes if it is not live.
    ///
    /// # Errors
    /// Those of the flash.
    #[inline]
    pub fn read<F: Flash>(
        &mut self,
        flash: &mut F,
        slot: Slot,
        lpn: DieLpn,
    ) -> Result<(), F::Error> {
        self.read_after(flash, slot, lpn, F::Token::default())
    }

    /// The same once `after`, the translation of the page, is done.
    ///
    /// # Errors
    /// Those of the flash.
    #[inline]
    pub fn read_after<F: Flash>(
        &mut self,
        flash: &mut F,
        slot: Slot,
        lpn: DieLpn,
        after: F::Token,
    ) -> Result<(), F::Error> {
        self.prove(flash, lpn)?;
        let at = self.newest(lpn);
        if at.is_none() {
            flash.absent(slot, after);
            return Ok(());
        }
        flash.read_host(slot, at, after)?;
        Ok(())
    }

    /// Drops a page; it is not live any more.
    #[inline]
    pub fn trim(&mut self, lpn: DieLpn) {
        if self.newest(lpn).is_some() {
            self.move_newest(lpn, Ppn::NONE, Loss::Trimmed);
        }
    }

    /// The one place where the newest version of a page moves.
    #[inline]
    fn move_newest(&mut self, lpn: DieLpn, to: Ppn, why: Loss) {
        let (l, _) = self.split(lpn);
        let from = std::mem::replace(&mut self.newest[lpn.index()], to);
        let left = self.log_page_at(from);
        if let Some(LogPage { log, .. }) = left {
            self.logs[log.index()].valid -= 1;
            self.watch.lost(log, l, why);
        }
        let entered = self.log_page_at(to);
        if let Some(LogPage { log, .. }) = entered {
            self.logs[log.index()].valid += 1;
            self.watch.gained(log, l);
        }
        self.watch.moved(lpn, l, left, entered);
    }

    /// Writes the map pages of the entries that just changed: a logical block's, a log slot's, or both.
    fn map_event<F: Flash>(
        &mut self,
        flash: &mut F,
        die: u32,
        l: Option<u32>,
        log: Option<Log>,
    ) -> Result<(), F::Error> {
        if self.maps.is_empty() {
            return Ok(());
        }
        let per_die = self.space.geometry.logical_blocks_per_die();
        let slots = self.slots_per_die;
        let data = l.map(|l| l - die * per_die);
        let slot = log.map(|log| per_die + log.0 - die * slots);
        let (first, second) = match (data, slot) {
            (Some(a), b) => (a, b),
            (None, Some(b)) => (b, None),
            (None, None) => return Ok(()),
        };
        let switched = if l.is_some() { log } else { None };
        let mut maps = std::mem::take(&mut self.maps);
        let written = maps[die as usize].update(flash, first, second, |entry| {
            self.map_entry(die, entry, switched)
        });
        self.maps = maps;
        written
    }

    /// The content of an entry of a die's map. `switched`: the log block that is becoming a data block.
    fn map_entry(&self, die: u32, entry: u32, switched: Option<Log>) -> u32 {
        let per_die = self.space.geometry.logical_blocks_per_die();
        if entry < per_die {
            return self.data[(die * per_die + entry) as usize].0;
        }
        let at = Log(die * self.slots_per_die + entry - per_die);
        // A log block that just became a data block leaves its slot in this same event.
        if entry >= per_die + self.slots_per_die || switched == Some(at) {
            return Pbn::NONE.0;
        }
        let LogBlock {
            pbn, is_sequential, ..
        } = self.logs[at.index()];
        if W::MERGES_ALONE_WRITE_DATA && is_sequential && self.pages_per_block() > 1 {
            return pbn.0 | SEQUENTIAL_BIT;
        }
        pbn.0
    }
}

/// Whether page `o` of a block can be programmed now.
#[inline(always)]
pub fn programmable<F: Flash>(flash: &F, block: Pbn, o: u32) -> bool {
    if o >= flash.ledger().write_pointer(block) {
        return true;
    }
    let geometry = flash.ledger().geometry();
    geometry.program_order == ProgramOrder::Any
        && !flash.ledger().is_programmed(geometry.ppn(block, o))
}
