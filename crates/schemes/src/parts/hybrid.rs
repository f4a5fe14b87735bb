//! The common ground of the hybrid schemes: data blocks mapped by block, log blocks mapped by page, and
//! the merges that turn the second into the first (docs/spec/merges.md).
//!
//! Numbering inside a space (one die, or all dies for LAST++): logical block `lbn` holds local pages
//! `lbn * P .. lbn * P + P - 1`; on many dies the logical blocks of die `d` are `d * NS .. (d + 1) * NS - 1`
//! ([`Space`] numbers pages die by die). Data and log blocks of a logical block may lie on any die, but new
//! data blocks are always taken on the die of the logical block.
//!
//! The newest version of every page is kept in one flat table. The papers' schemes keep it only for log pages; theirs is
//! the memory that [`Described::tables`](floatgate_core::described::Described::tables) reports, ours the memory that makes
//! a read one load.

use crate::hints::{large_table, prefetch};
use crate::parts::lists::Lists;
use crate::parts::map_area::{MapArea, Work};
use crate::parts::pool::Pool;
use crate::parts::start;
use floatgate_core::Refusal;
use floatgate_core::address::{DieLpn, Lbn, Pbn, Ppn};
use floatgate_core::flash::{Flash, Preload};
use floatgate_core::ftl::{MountError, Start};
use floatgate_core::geometry::{Geometry, ProgramOrder, Space};
use floatgate_core::report::Merges;
use floatgate_core::state;
use floatgate_core::state::State;

mod audit;
#[cfg(test)]
pub(crate) mod drawn;
mod from_map;
mod from_tables;
mod host_pages;
mod log_table;
mod map_entries;
mod merges;
mod plan;
mod recovery;
mod room;
mod watch;

pub use from_map::{BlockMap, NamedLog};
pub use from_tables::{KnownBlocks, KnownLog};
use log_table::LogTable;
pub use log_table::{Log, LogPage};
pub use plan::HybridPlan;
pub use recovery::{FoundLog, Shortcuts, recovery_costs};
pub use watch::{Loss, Watch};

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

/// Tables and merges of a hybrid scheme. See the module's text.
#[derive(Debug)]
pub struct Hybrid<W = ()> {
    space: Space,
    plan: HybridPlan,
    /// What the scheme hears about log pages.
    pub watch: W,
    /// Ordered lists of log blocks (by [`Log::0`]); a block leaves its list by itself when released.
    pub lists: Lists,
    /// Merges so far.
    pub merges: Merges,
    newest: Vec<Ppn>,
    data: Vec<Pbn>,
    logs: LogTable,
    pools: Vec<Pool>,
    maps: Vec<MapArea>,
    /// Scratch of a full merge: the logical blocks concerned, and who has been seen in which merge.
    associated: Vec<Lbn>,
    /// Places on other dies from which a rebuild has copied: scratch, as long as a block.
    foreign: Vec<Ppn>,
    seen: Vec<u32>,
    merge_no: u32,
    /// Blocks lent out of the pools.
    lent: u32,
    /// One bit a page, after a recovery from the map blocks, else empty: the page may lie in its data block, but nobody
    /// has read it to see.
    unverified: Vec<u64>,
}

state!(Hybrid<W> [W: State] { watch, lists, merges, newest, data, logs, pools, maps, seen, merge_no, lent }
    grows { unverified } fixed { space, plan, associated, foreign });

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
            let usable = plan.usable_blocks(geometry);
            hybrid
                .pools
                .push(Pool::new((first + used..first + usable).map(Pbn), usable));
        }
        if start == Start::Full {
            hybrid.fill(flash).map_err(MountError::Flash)?;
        }
        if plan.has_map() {
            let shape = plan.map_shape(geometry);
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
        Ok(Self {
            watch,
            lists: Lists::new(slots as usize, plan.lists),
            merges: Merges::default(),
            newest: large_table(Ppn::NONE, space.logical_pages() as usize),
            data: vec![Pbn::NONE; logical_blocks as usize],
            logs: LogTable::new(space, plan.log_slots),
            pools: Vec::new(),
            maps: Vec::new(),
            associated: Vec::with_capacity(geometry.pages_per_block as usize),
            foreign: Vec::with_capacity(geometry.pages_per_block as usize),
            seen: vec![0; logical_blocks as usize],
            merge_no: 0,
            lent: 0,
            unverified: Vec::new(),
            plan: plan.clone(),
            space: space.clone(),
        })
    }

    /// Every logical block whole and valid in the physical block of the same number.
    fn fill<F: Preload>(&mut self, flash: &mut F) -> Result<(), F::Error> {
        let data = &mut self.data;
        start::fill(&self.space, flash, &mut self.newest, |lbn, block| {
            data[lbn.index()] = block;
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
    pub fn split(&self, lpn: DieLpn) -> (Lbn, u32) {
        let (lbn, offset) = self.space.geometry.by_pages().div_rem(lpn.0);
        (Lbn(lbn), offset)
    }

    /// The entry of a page will be wanted soon.
    #[inline(always)]
    pub fn prefetch(&self, lpn: DieLpn) {
        prefetch(&self.newest, lpn.index());
    }

    /// Index of a block inside the space.
    #[inline(always)]
    fn in_space(&self, pbn: Pbn) -> usize {
        (pbn.0 - self.space.first_die * self.space.geometry.blocks_per_die) as usize
    }

    /// Data block of a logical block, or `NONE`.
    #[inline(always)]
    pub fn data(&self, lbn: Lbn) -> Pbn {
        self.data[lbn.index()]
    }

    /// The log block that `lbn` owns alone, if any.
    #[inline(always)]
    pub fn owned(&self, lbn: Lbn) -> Option<Log> {
        self.logs.owned(lbn)
    }

    /// The logical block that owns `log` alone, if any.
    pub fn owner(&self, log: Log) -> Option<Lbn> {
        self.logs[log].owner()
    }

    /// Makes an owned log block a shared one.
    pub fn disown(&mut self, log: Log) {
        self.logs.disown(log);
    }

    /// Whether `log` stands for a log block at present.
    #[inline(always)]
    pub fn exists(&self, log: Log) -> bool {
        self.logs[log].pbn.is_some()
    }

    /// Log blocks that the budget of the space allows.
    #[inline(always)]
    pub fn log_budget(&self) -> u32 {
        self.plan.log_blocks * self.space.dies
    }

    /// Log blocks in use.
    #[inline(always)]
    pub fn logs_in_use(&self) -> u32 {
        self.logs.in_use()
    }

    /// The physical block of a log block.
    #[inline(always)]
    pub fn log_block(&self, log: Log) -> Pbn {
        self.logs[log].pbn
    }

    /// The die of the space on which a log block lies.
    pub fn die_of_log(&self, log: Log) -> u32 {
        self.die_of_block(self.log_block(log))
    }

    /// Valid pages of a log block.
    #[inline(always)]
    pub fn valid(&self, log: Log) -> u32 {
        self.logs[log].valid
    }

    /// Host pages programmed in a log block.
    #[inline(always)]
    pub fn host_pages(&self, log: Log) -> u32 {
        self.logs[log].host_pages
    }

    /// Whether every page ever programmed in `log` since its erase is page `i` of `lbn` at position `i`.
    pub fn is_aligned(&self, log: Log, lbn: Lbn) -> bool {
        self.logs[log].is_aligned(lbn)
    }

    /// The page programmed at a position of a log block (whether still valid or not).
    #[inline(always)]
    pub fn log_page(&self, log: Log, position: u32) -> DieLpn {
        self.logs.page(log, position)
    }

    /// Positions of a log block written so far; the next free one is this.
    #[inline(always)]
    pub fn written<F: Flash>(&self, flash: &F, log: Log) -> u32 {
        let block = &self.logs[log];
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
    fn die_of_logical(&self, lbn: Lbn) -> u32 {
        if self.space.dies == 1 {
            0
        } else {
            lbn.0 / self.space.geometry.logical_blocks_per_die()
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
}

/// Whether page `offset` of a block can be programmed now.
#[inline(always)]
pub fn programmable<F: Flash>(flash: &F, block: Pbn, offset: u32) -> bool {
    if offset >= flash.ledger().write_pointer(block) {
        return true;
    }
    let geometry = flash.ledger().geometry();
    geometry.program_order == ProgramOrder::Any
        && !flash.ledger().is_programmed(geometry.ppn(block, offset))
}
