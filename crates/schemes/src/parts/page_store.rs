//! Page mapping as such: append points, collection, placement on dies. The scheme `page` is this and
//! nothing else; `hat` adds its own account of where the map lies.

use crate::hints::{large_table, prefetch};
use crate::parts::pool::Pool;
use crate::parts::victims::{GcPolicy, Victims};
use floatgate_core::Refusal;
use floatgate_core::address::{Lpn, Pbn, Ppn};
use floatgate_core::described::ChipTimes;
use floatgate_core::flash::{Flash, Oob, Preload, Role, Slot};
use floatgate_core::ftl::{MountError, Start};
use floatgate_core::geometry::{Geometry, Space};
use floatgate_core::state;
use floatgate_core::state::{Passed, State, StateError, Tape};
use floatgate_core::{choice, options};

mod audit;
mod collect;
mod idle;
mod map_pages;
mod recovery;

pub use collect::Moves;
use collect::Moving;
pub use recovery::Known;

choice! {
    /// Whether moved pages share the host's append point.
    pub enum Streams {
        /// An append point of their own.
        Split = "split",
        /// The host's.
        Shared = "shared",
    }
}

choice! {
    /// On which die a page is written.
    pub enum Placement {
        /// `lpn mod C`.
        Static = "static",
        /// Round robin, as long as the die has room.
        RoundRobin = "rr",
        /// The die that has the least left to do, as long as it has room.
        Free = "free",
    }
}

options! {
    /// How collections choose their victims; the same for all page-mapped schemes.
    pub struct GcOptions {
        /// Which block a collection takes.
        gc_policy: GcPolicy [""] = GcPolicy::Greedy;
        /// Draws of d-choices.
        gc_d: u64 ["draws"] = 10, samples [1, 5];
        /// Seed of d-choices; die i draws from gc_seed + i.
        gc_seed: u64 [""] = 1, samples [7];
    }
}

options! {
    /// What plain page mapping does while nobody asks for anything.
    pub struct IdleOptions {
        /// In idle time a die collects until it has so many erased blocks; 0: never.
        gc_idle: u32 ["blocks, die"] = 0, samples [3, 6];
        /// Idle time before that.
        gc_idle_after_ns: u64 ["ns"] = 1_000_000, samples [0];
        /// It takes no block of which more pages are valid.
        gc_idle_valid: u32 ["percent"] = 75, samples [30, 100];
        /// Pages that are moved before it looks whether the host is back.
        gc_slice: u32 ["pages"] = 4, samples [1, 3];
        /// What it takes the move of one to last.
        gc_move_ns: Option<u64> ["ns"] = None, shown "1.5 x (read + program)", samples [1000];
    }
}

impl IdleOptions {
    /// What a move is taken to last, with its transfers, unless that is said.
    pub(crate) fn fit(&mut self, chip: ChipTimes) {
        let cells_ns = chip.t_r_ns.saturating_add(chip.t_prog_ns);
        self.gc_move_ns
            .get_or_insert(cells_ns.saturating_add(cells_ns / 2));
    }
}

options! {
    /// What plain page mapping needs to know.
    pub struct StoreOptions {
        /// A die collects garbage until it has this many erased blocks.
        gc_low: u32 ["blocks, die"] = 2, samples [2, 3, 5, 6, 8];
        /// Whether pages moved by collections get an append point of their own.
        streams: Streams [""] = Streams::Split;
        /// On which die a page is written.
        placement: Placement [""] = Placement::Static;
        ..gc: GcOptions;
        ..idle: IdleOptions;
    }
}

/// An append point: the next page to program, and the end of its block. Full or missing when equal.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Append {
    next: u32,
    end: u32,
}

impl State for Append {
    fn pass(&mut self, tape: &mut Tape<'_>) -> Passed {
        tape.u32(&mut self.next)?;
        tape.u32(&mut self.end)?;
        match self.next <= self.end && self.end <= tape.geometry().pages() {
            true => Ok(()),
            false => Err(StateError::damaged("an append point outside of the flash")),
        }
    }
}

impl Append {
    pub(crate) const NONE: Self = Self { next: 0, end: 0 };

    pub(crate) fn new(next: u32, end: u32) -> Self {
        Self { next, end }
    }

    /// The next page, and the one after the last.
    pub(crate) fn range(self) -> (u32, u32) {
        (self.next, self.end)
    }

    /// An erased block of so many pages.
    pub(crate) fn in_block(first: Ppn, pages: u32) -> Self {
        Self {
            next: first.0,
            end: first.0 + pages,
        }
    }

    /// The last page of the block that it fills, or filled; none before the first block.
    pub(crate) fn last_page(self) -> Option<Ppn> {
        self.end.checked_sub(1).map(Ppn)
    }

    #[inline(always)]
    pub(crate) fn has_room(self) -> bool {
        self.next != self.end
    }

    /// The next page, and whether it is the block's last.
    #[inline(always)]
    pub(crate) fn take(&mut self) -> (Ppn, bool) {
        let to = Ppn(self.next);
        self.next += 1;
        (to, !self.has_room())
    }
}

/// One die of a page-mapped device.
#[derive(Debug)]
struct Die {
    pool: Pool,
    host: Append,
    gc: Append,
    /// Valid pages; kept up only where a page can go to any die.
    valid: u32,
}

state!(Die {
    pool,
    host,
    gc,
    valid
});

/// The page table, the blocks, and the garbage collector.
#[derive(Debug)]
pub struct PageStore {
    geometry: Geometry,
    options: StoreOptions,
    map: Vec<Ppn>,
    /// Page programmed at each physical page; valid only while the map agrees.
    page_at: Vec<Lpn>,
    moving: Moving,
    victims: Victims,
    dies: Vec<Die>,
    /// Pages that collections have moved.
    moved: u64,
    /// Programs so far.
    clock: u64,
    next_die: u32,
    /// Blocks of a die that hold no data by the reserve: what placement on any die leaves free.
    reserved: u32,
    has_map_blocks: bool,
}

state!(PageStore { map, page_at, victims, dies, moved, clock, next_die }
    fixed { geometry, options, moving, reserved, has_map_blocks });

impl PageStore {
    /// Memory of the tables in bytes.
    pub fn ram_bytes(geometry: &Geometry) -> u64 {
        4 * u64::from(geometry.logical_pages)
            + 4 * u64::from(geometry.pages())
            + 4 * u64::from(geometry.blocks())
            + Victims::ram_bytes(geometry)
    }

    /// Checks the options and makes the start state.
    ///
    /// # Errors
    /// A refusal if the spare blocks do not suffice.
    pub fn format<F: Preload>(
        space: &Space,
        options: &StoreOptions,
        start: Start,
        flash: &mut F,
    ) -> Result<Self, MountError<F::Error>> {
        Self::check(space, options)?;
        Self::format_with_map_blocks(space, options, 0, start, flash)
    }

    /// Whether a device of that shape can have these options.
    ///
    /// # Errors
    /// A refusal that names the option at fault, or if the spare blocks do not suffice.
    pub fn check(space: &Space, options: &StoreOptions) -> Result<(), Refusal> {
        if options.gc_low < 2 {
            let text = format!(
                "gc_low = {}: at least 2 erased blocks a die",
                options.gc_low
            );
            return Err(Refusal::new("gc_low", text));
        }
        options.idle.check()?;
        Self::check_with_map_blocks(space, options, 0)
    }

    /// The same on dies each of which also needs so many blocks for mapping pages. What it takes for `gc_low` is up
    /// to the scheme then.
    ///
    /// # Errors
    /// A refusal that names the option at fault, or if the spare blocks do not suffice.
    pub fn check_with_map_blocks(
        space: &Space,
        options: &StoreOptions,
        map_blocks: u32,
    ) -> Result<(), Refusal> {
        if options.gc.gc_d == 0 {
            return Err(Refusal::new("gc_d", "gc_d = 0: at least 1 draw".into()));
        }
        space.need_blocks(&[
            ("data blocks", space.geometry.logical_blocks_per_die()),
            ("map blocks", map_blocks),
            ("blocks for gc_low", options.gc_low),
            ("open block", 1),
        ])
    }

    /// [`PageStore::format`] on dies each of which also needs so many blocks for mapping pages.
    ///
    /// # Errors
    /// The refusal of [`PageStore::check_with_map_blocks`], or an error of the flash.
    pub fn format_with_map_blocks<F: Preload>(
        space: &Space,
        options: &StoreOptions,
        map_blocks: u32,
        start: Start,
        flash: &mut F,
    ) -> Result<Self, MountError<F::Error>> {
        let mut store = Self::blank(space, options, map_blocks)?;
        let geometry = &space.geometry;
        let per_die = geometry.logical_blocks_per_die();
        let used = if start == Start::Full { per_die } else { 0 };
        for die in 0..geometry.dies {
            let first = geometry.pbn(die, 0).0;
            let free = (first + used..first + geometry.blocks_per_die).map(Pbn);
            store.add_die(free, 0);
        }
        if start == Start::Full {
            store.fill(flash, per_die).map_err(MountError::Flash)?;
        }
        Ok(store)
    }

    fn add_die(&mut self, free: impl Iterator<Item = Pbn>, valid: u32) {
        self.dies.push(Die {
            pool: Pool::new(free, self.geometry.blocks_per_die),
            host: Append::NONE,
            gc: Append::NONE,
            valid,
        });
    }

    /// Checks the options and makes empty tables, without dies.
    ///
    /// # Errors
    /// A refusal if the spare blocks do not suffice.
    pub(crate) fn blank(
        space: &Space,
        options: &StoreOptions,
        map_blocks: u32,
    ) -> Result<Self, Refusal> {
        Self::check_with_map_blocks(space, options, map_blocks)?;
        let (geometry, gc) = (&space.geometry, &options.gc);
        let victims = Victims::new(geometry, gc.gc_policy, gc.gc_d, gc.gc_seed);
        Ok(Self {
            map: large_table(Ppn::NONE, geometry.logical_pages as usize),
            page_at: large_table(Lpn::NONE, geometry.pages() as usize),
            moving: Moving::new(geometry.pages_per_block),
            victims: if map_blocks > 0 {
                victims.with_second_role()
            } else {
                victims
            },
            dies: Vec::with_capacity(geometry.dies as usize),
            moved: 0,
            clock: 0,
            next_die: 0,
            reserved: options.gc_low + 1 + map_blocks,
            has_map_blocks: map_blocks > 0,
            options: options.clone(),
            geometry: geometry.clone(),
        })
    }

    /// Local page `p` of every die at its local physical page `p`, in ascending LPN order.
    fn fill<F: Preload>(&mut self, flash: &mut F, per_die: u32) -> Result<(), F::Error> {
        let (dies, pages) = (self.geometry.dies, self.geometry.pages_per_block);
        for die in 0..dies {
            for index in 0..per_die {
                let block = self.geometry.pbn(die, index);
                self.victims.taken(block);
                let lpn_of = |o: u32| Lpn((index * pages + o) * dies + die);
                for o in 0..pages {
                    let (lpn, ppn) = (lpn_of(o), self.geometry.ppn(block, o));
                    self.map[lpn.index()] = ppn;
                    self.page_at[ppn.index()] = lpn;
                }
                let last = u64::from(lpn_of(pages - 1).0) + 1;
                self.victims.filled(block, last);
                flash.preload(block, pages, |o| Oob::new(lpn_of(o), Role::Data))?;
            }
            self.dies[die as usize].valid = per_die * pages;
        }
        self.clock = u64::from(self.geometry.logical_pages);
        Ok(())
    }

    /// The map entry of a page will be wanted soon.
    #[inline(always)]
    pub fn prefetch(&self, lpn: Lpn) {
        prefetch(&self.map, lpn.index());
    }

    /// Where a page lies, or `NONE`.
    #[inline(always)]
    pub fn place(&self, lpn: Lpn) -> Ppn {
        self.map[lpn.index()]
    }

    /// Pages that collections have moved since the start or the last [`PageStore::reset_moved`].
    pub fn moved(&self) -> u64 {
        self.moved
    }

    /// Counts moved pages from 0 again.
    pub fn reset_moved(&mut self) {
        self.moved = 0;
    }

    /// The shape of the device.
    pub fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    /// Erased blocks of a die.
    pub fn erased(&self, die: u32) -> u32 {
        self.dies[die as usize].pool.len()
    }

    /// The erased blocks of a die, the next one taken first.
    pub fn erased_list(&self, die: u32) -> impl Iterator<Item = Pbn> + '_ {
        self.dies[die as usize].pool.iter()
    }

    /// Erased blocks of all dies.
    pub fn erased_blocks(&self) -> u32 {
        self.dies.iter().map(|die| die.pool.len()).sum()
    }

    /// Writes a page: room on its die, program, then the old copy becomes invalid. Returns when it is
    /// programmed.
    ///
    /// # Errors
    /// Those of the flash.
    #[inline(always)]
    pub fn write<F: Flash>(
        &mut self,
        flash: &mut F,
        slot: Slot,
        lpn: Lpn,
        after: F::Token,
        moves: &mut impl Moves<F>,
    ) -> Result<F::Token, F::Error> {
        let die = self.die_for(flash, lpn);
        let mut here = &mut self.dies[die as usize];
        if !here.host.has_room() {
            self.make_room(flash, die, moves)?;
            here = &mut self.dies[die as usize];
        }
        let (to, full) = here.host.take();
        let done = flash.program_host(slot, to, Oob::new(lpn, Role::Data), after)?;
        if self.options.placement != Placement::Static {
            self.replace(flash, lpn, die, done);
        }
        self.now_at(lpn, to, die, full);
        Ok(done)
    }

    /// The host's page `lpn` is being programmed on `die`: an old copy on another die must stay until it is.
    #[cold]
    fn replace<F: Flash>(&self, flash: &mut F, lpn: Lpn, die: u32, done: F::Token) {
        let old = self.map[lpn.index()];
        if old.is_some() && self.geometry.die_of(self.geometry.block_of(old)) != die {
            flash.replaced(old, done);
        }
    }

    /// Drops a page. Returns where it was.
    pub fn trim(&mut self, lpn: Lpn) -> Ppn {
        let old = std::mem::replace(&mut self.map[lpn.index()], Ppn::NONE);
        if old.is_some() {
            self.invalidate(old);
        }
        old
    }

    /// A page was programmed at `to`, the last place of its block if `full`.
    #[inline(always)]
    fn now_at(&mut self, lpn: Lpn, to: Ppn, die: u32, full: bool) {
        self.clock += 1;
        if full {
            self.victims.filled(self.geometry.block_of(to), self.clock);
        }
        if self.options.placement != Placement::Static {
            self.dies[die as usize].valid += 1;
        }
        self.page_at[to.index()] = lpn;
        let old = std::mem::replace(&mut self.map[lpn.index()], to);
        if old.is_some() {
            self.invalidate(old);
        }
    }

    #[inline(always)]
    fn invalidate(&mut self, old: Ppn) {
        let block = self.geometry.block_of(old);
        self.victims.lost(block, self.clock);
        // Only who can choose asks how full a die is.
        if self.options.placement != Placement::Static {
            let die = self.geometry.die_of(block);
            self.dies[die as usize].valid -= 1;
        }
    }

    #[inline(always)]
    fn die_for<F: Flash>(&mut self, flash: &F, lpn: Lpn) -> u32 {
        if self.options.placement == Placement::Static {
            self.geometry.home(lpn).1
        } else {
            self.die_with_room(flash, lpn)
        }
    }

    /// The next die in turn, or of those free first the next in turn, as long as it has room.
    fn die_with_room<F: Flash>(&mut self, flash: &F, lpn: Lpn) -> u32 {
        // Without the limit an unlucky pattern can move all pages to one die.
        let dies = self.geometry.dies;
        let limit = self.pages_limit();
        let old = self.map[lpn.index()];
        let home = old
            .is_some()
            .then(|| self.geometry.die_of(self.geometry.block_of(old)));
        let fits = |die: u32| self.dies[die as usize].valid < limit || home == Some(die);
        let mut roomy = (0..dies)
            .map(|i| (self.next_die + i) % dies)
            .filter(|&die| fits(die));
        let die = match self.options.placement {
            Placement::Free => roomy.min_by_key(|&die| flash.free_at_ns(die)),
            _ => roomy.next(),
        };
        let die = die.expect("all pages fit, so some die has room");
        self.next_die = (die + 1) % dies;
        die
    }

    /// Most valid pages that placement puts on a die.
    fn pages_limit(&self) -> u32 {
        (self.geometry.blocks_per_die - self.reserved) * self.geometry.pages_per_block
    }

    fn open(&mut self, die: u32) -> Append {
        let block = self.dies[die as usize].pool.take();
        self.victims.taken(block);
        Append::in_block(
            self.geometry.first_page(block),
            self.geometry.pages_per_block,
        )
    }
}
