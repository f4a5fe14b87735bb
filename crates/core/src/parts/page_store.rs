//! Page mapping as such: append points, collection, placement on dies. The scheme `page` is this and
//! nothing else; `hat` adds its own account of where the map lies.

use crate::address::{Lpn, Pbn, Ppn};
use crate::flash::{Cause, Flash, Oob, Role, Slot};
use crate::ftl::{NoRecovery, Refusal, Start};
use crate::geometry::{Geometry, Space};
use crate::parts::pool::Pool;
use crate::parts::scan::{Depth, Newest, Rules, Scan, move_tag};
use crate::parts::victims::{GcPolicy, Victims};
use crate::{choice, options};

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
    }
}

options! {
    /// Options of page mapping.
    pub struct PageOptions {
        /// A die collects garbage until it has this many erased blocks.
        gc_low: u32 ["blocks, die"] = 2;
        /// Which block a collection takes.
        gc_policy: GcPolicy [""] = GcPolicy::Greedy;
        /// Draws of d-choices.
        gc_d: u64 ["draws"] = 10;
        /// Seed of d-choices; die i draws from gc_seed + i.
        gc_seed: u64 [""] = 1;
        /// Whether pages moved by collections get an append point of their own.
        streams: Streams [""] = Streams::Split;
        /// On which die a page is written.
        placement: Placement [""] = Placement::Static;
    }
}

/// What a scheme hears about pages that a collection moved.
pub trait Moves<F: Flash> {
    /// `lpn` has been programmed at its new place; `done` is when.
    fn moved(&mut self, flash: &mut F, lpn: Lpn, to: Ppn, done: F::Token);
}

impl<F: Flash> Moves<F> for () {
    #[inline(always)]
    fn moved(&mut self, _flash: &mut F, _lpn: Lpn, _to: Ppn, _done: F::Token) {}
}

/// An append point: the next page to program, and the end of its block. Full or missing when equal.
#[derive(Clone, Copy, Debug)]
struct Append {
    next: u32,
    end: u32,
}

impl Append {
    const NONE: Self = Self { next: 0, end: 0 };

    #[inline(always)]
    fn has_room(self) -> bool {
        self.next != self.end
    }
}

/// One die of a page-mapped device.
#[derive(Debug)]
struct Die {
    pool: Pool,
    host: Append,
    gc: Append,
    /// Valid pages, for round-robin placement.
    valid: u32,
}

/// The page table, the blocks, and the garbage collector.
#[derive(Debug)]
pub struct PageStore {
    geometry: Geometry,
    options: PageOptions,
    map: Vec<Ppn>,
    /// Page programmed at each physical page; valid only while the map agrees.
    page_at: Vec<Lpn>,
    victims: Victims,
    dies: Vec<Die>,
    /// Programs so far.
    clock: u64,
    next_die: u32,
}

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
    pub fn format<F: Flash>(
        space: &Space,
        options: &PageOptions,
        start: Start,
        flash: &mut F,
    ) -> Result<Self, Refusal> {
        let mut store = Self::blank(space, options)?;
        let geometry = &space.geometry;
        let per_die = geometry.logical_blocks_per_die();
        let used = if start == Start::Full { per_die } else { 0 };
        for die in 0..geometry.dies {
            let first = geometry.pbn(die, 0).0;
            let free = (first + used..first + geometry.blocks_per_die).map(Pbn);
            store.add_die(free, 0);
        }
        if start == Start::Full {
            store.fill(flash, per_die);
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

    /// Makes the tables from what the flash holds. Every block in use is closed: the rest of an open one is
    /// lost until it is collected.
    ///
    /// # Errors
    /// The refusal of [`PageStore::format`], or an error of the flash.
    pub fn recover<F: Flash>(
        space: &Space,
        options: &PageOptions,
        flash: &mut F,
    ) -> Result<Self, NoRecovery<F::Error>> {
        let mut store = Self::blank(space, options)?;
        store.scan(space, flash).map_err(NoRecovery::Flash)?;
        Ok(store)
    }

    fn scan<F: Flash>(&mut self, space: &Space, flash: &mut F) -> Result<(), F::Error> {
        let mut scan = Scan::read(space, 0, Depth::UpToErased, flash)?;
        let newest = scan.newest(Rules::Moves);
        let blank = scan.erase_useless(flash)?;
        for die in 0..self.geometry.dies {
            let on_die = |block: &&Pbn| self.geometry.die_of(**block) == die;
            let free: Vec<Pbn> = blank.iter().filter(on_die).copied().collect();
            let in_use = scan
                .blocks()
                .filter(|&(block, _)| self.geometry.die_of(block) == die);
            let valid = in_use.map(|(_, found)| found.valid).sum();
            self.add_die(free.into_iter(), valid);
        }
        self.take_blocks(space, &scan, &newest);
        self.relieve_dies(flash)
    }

    fn take_blocks(&mut self, space: &Space, scan: &Scan, newest: &Newest) {
        for (local, &at) in newest.place.iter().enumerate() {
            self.map[space.device_lpn(Lpn(local as u32)).index()] = at;
        }
        let mut in_use: Vec<_> = scan.blocks().filter(|(_, found)| found.valid > 0).collect();
        in_use.sort_unstable_by_key(|(_, found)| found.first);
        for (block, found) in in_use {
            self.victims.taken(block);
            let positions = self.geometry.first_page(block).index();
            // A page that cannot be read is nobody's newest, whatever number stands for it.
            self.page_at[positions..positions + self.geometry.pages_per_block as usize]
                .fill(Lpn(0));
            for (position, _, read) in scan.pages_of(block) {
                let lpn = read.oob.lpn;
                self.page_at[positions + position as usize] = lpn;
                if self.map[lpn.index()] == self.geometry.ppn(block, position) {
                    self.victims.gained(block, read.sequence);
                }
            }
            self.victims.filled(block);
            self.clock = self.clock.max(found.last);
        }
    }

    /// Trimmed pages that came back can fill a die above the limit of round-robin placement: moves pages to
    /// other dies until all are within it.
    fn relieve_dies<F: Flash>(&mut self, flash: &mut F) -> Result<(), F::Error> {
        if self.options.placement == Placement::Static {
            return Ok(());
        }
        let limit = self.pages_limit();
        for lpn in (0..self.map.len() as u32).map(Lpn) {
            let from = self.map[lpn.index()];
            let is_crowded = |die: u32| self.dies[die as usize].valid > limit;
            if from.is_none() || !is_crowded(self.geometry.die_of(self.geometry.block_of(from))) {
                continue;
            }
            let roomy = (0..self.geometry.dies).find(|&die| self.dies[die as usize].valid < limit);
            let die = roomy.expect("all pages fit, so some die has room");
            if !self.dies[die as usize].host.has_room() {
                self.make_room(flash, die, &mut ())?;
            }
            self.move_to_host_block(flash, die, lpn)?;
        }
        Ok(())
    }

    fn move_to_host_block<F: Flash>(
        &mut self,
        flash: &mut F,
        die: u32,
        lpn: Lpn,
    ) -> Result<(), F::Error> {
        let append = &mut self.dies[die as usize].host;
        let to = Ppn(append.next);
        append.next += 1;
        let full = !append.has_room();
        let (from, oob) = (self.map[lpn.index()], Oob::new(lpn, Role::Data));
        flash.copy(from, to, oob, Cause::Gc, F::Token::default())?;
        self.now_at(lpn, to, die, full);
        Ok(())
    }

    /// Checks the options and makes empty tables, without dies.
    fn blank(space: &Space, options: &PageOptions) -> Result<Self, Refusal> {
        let geometry = &space.geometry;
        if options.gc_low < 2 {
            let text = format!(
                "gc_low = {}: at least 2 erased blocks a die",
                options.gc_low
            );
            return Err(Refusal::new("gc_low", text));
        }
        if options.gc_d == 0 {
            return Err(Refusal::new("gc_d", "gc_d = 0: at least 1 draw".into()));
        }
        let per_die = geometry.logical_blocks_per_die();
        space.need_blocks(&[
            ("data blocks", per_die),
            ("blocks for gc_low", options.gc_low),
            ("open block", 1),
        ])?;
        Ok(Self {
            map: vec![Ppn::NONE; geometry.logical_pages as usize],
            page_at: vec![Lpn::NONE; geometry.pages() as usize],
            victims: Victims::new(geometry, options.gc_policy, options.gc_d, options.gc_seed),
            dies: Vec::with_capacity(geometry.dies as usize),
            clock: 0,
            next_die: 0,
            options: options.clone(),
            geometry: geometry.clone(),
        })
    }

    /// Local page `p` of every die at its local physical page `p`, in ascending LPN order.
    fn fill<F: Flash>(&mut self, flash: &mut F, per_die: u32) {
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
                    self.victims.gained(block, u64::from(lpn.0) + 1);
                }
                self.victims.filled(block);
                flash.preload(block, pages, Role::Data, &mut |o| lpn_of(o));
            }
            self.dies[die as usize].valid = per_die * pages;
        }
        self.clock = u64::from(self.geometry.logical_pages);
    }

    /// Where a page lies, or `NONE`.
    #[inline(always)]
    pub fn place(&self, lpn: Lpn) -> Ppn {
        self.map[lpn.index()]
    }

    /// Writes a page: room on its die, program, then the old copy becomes invalid.
    ///
    /// # Errors
    /// Those of the flash.
    #[inline]
    pub fn write<F: Flash>(
        &mut self,
        flash: &mut F,
        slot: Slot,
        lpn: Lpn,
        after: F::Token,
        moves: &mut impl Moves<F>,
    ) -> Result<Ppn, F::Error> {
        let die = self.die_for(lpn);
        if !self.dies[die as usize].host.has_room() {
            self.make_room(flash, die, moves)?;
        }
        let append = &mut self.dies[die as usize].host;
        let to = Ppn(append.next);
        append.next += 1;
        let full = !append.has_room();
        flash.host_program(slot, to, Oob::new(lpn, Role::Data), after)?;
        self.now_at(lpn, to, die, full);
        Ok(to)
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
        let block = self.geometry.block_of(to);
        self.victims.gained(block, self.clock);
        if full {
            self.victims.filled(block);
        }
        self.dies[die as usize].valid += 1;
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
        let die = if self.dies.len() == 1 {
            0
        } else {
            self.geometry.die_of(block)
        };
        self.dies[die as usize].valid -= 1;
    }

    fn die_for(&mut self, lpn: Lpn) -> u32 {
        if self.options.placement == Placement::Static {
            return self.geometry.home(lpn).1;
        }
        // Without the limit an unlucky pattern can move all pages to one die.
        let dies = self.geometry.dies;
        let limit = self.pages_limit();
        let old = self.map[lpn.index()];
        let home = old
            .is_some()
            .then(|| self.geometry.die_of(self.geometry.block_of(old)));
        let fits = |die: u32| self.dies[die as usize].valid < limit || home == Some(die);
        let die = (0..dies)
            .map(|i| (self.next_die + i) % dies)
            .find(|&die| fits(die))
            .expect("all pages fit, so some die has room");
        self.next_die = (die + 1) % dies;
        die
    }

    /// Most valid pages that round-robin placement puts on a die.
    fn pages_limit(&self) -> u32 {
        (self.geometry.blocks_per_die - self.options.gc_low - 1) * self.geometry.pages_per_block
    }

    #[cold]
    #[inline(never)]
    fn make_room<F: Flash>(
        &mut self,
        flash: &mut F,
        die: u32,
        moves: &mut impl Moves<F>,
    ) -> Result<(), F::Error> {
        while self.dies[die as usize].pool.len() < self.options.gc_low {
            self.collect(flash, die, moves)?;
        }
        if !self.dies[die as usize].host.has_room() {
            self.dies[die as usize].host = self.open(die);
        }
        Ok(())
    }

    fn open(&mut self, die: u32) -> Append {
        let block = self.dies[die as usize].pool.take();
        self.victims.taken(block);
        let next = self.geometry.first_page(block).0;
        Append {
            next,
            end: next + self.geometry.pages_per_block,
        }
    }

    /// Collects one block of a die: valid pages move to the append point, the block is erased.
    fn collect<F: Flash>(
        &mut self,
        flash: &mut F,
        die: u32,
        moves: &mut impl Moves<F>,
    ) -> Result<(), F::Error> {
        let victim = self
            .victims
            .choose(die, self.clock)
            .expect("the reserve leaves a block with an invalid page");
        let first = self.geometry.first_page(victim).0;
        let mut left = self.victims.valid(victim);
        let mut from = first;
        while left > 0 {
            let lpn = self.page_at[from as usize];
            if self.map[lpn.index()] == Ppn(from) {
                left -= 1;
                let tag = move_tag(left == 0, victim);
                let oob = Oob {
                    lpn,
                    role: Role::Data,
                    tag,
                };
                self.move_page(flash, die, oob, Ppn(from), moves)?;
            }
            from += 1;
        }
        flash.erase(victim, Cause::Gc, F::Token::default())?;
        self.victims.erased(victim);
        self.dies[die as usize].pool.give(victim);
        Ok(())
    }

    #[inline]
    fn move_page<F: Flash>(
        &mut self,
        flash: &mut F,
        die: u32,
        oob: Oob,
        from: Ppn,
        moves: &mut impl Moves<F>,
    ) -> Result<(), F::Error> {
        let shared = self.options.streams == Streams::Shared;
        let append = |dies: &[Die]| {
            if shared {
                dies[die as usize].host
            } else {
                dies[die as usize].gc
            }
        };
        if !append(&self.dies).has_room() {
            let fresh = self.open(die);
            let die = &mut self.dies[die as usize];
            *(if shared { &mut die.host } else { &mut die.gc }) = fresh;
        }
        let here = &mut self.dies[die as usize];
        let point = if shared { &mut here.host } else { &mut here.gc };
        let to = Ppn(point.next);
        point.next += 1;
        let full = !point.has_room();
        let done = flash.copy(from, to, oob, Cause::Gc, F::Token::default())?;
        self.now_at(oob.lpn, to, die, full);
        moves.moved(flash, oob.lpn, to, done);
        Ok(())
    }

    /// Checks the tables; returns the live pages.
    ///
    /// # Errors
    /// What does not agree.
    pub fn audit<F: Flash>(&self, flash: &F) -> Result<u64, String> {
        let mut valid = vec![0; self.geometry.blocks() as usize];
        let mut live = 0;
        for (lpn, &at) in self.map.iter().enumerate().filter(|(_, at)| at.is_some()) {
            if !flash.is_programmed(at) || self.page_at[at.index()] != Lpn(lpn as u32) {
                return Err(format!("live page {lpn} is not at {}", at.0));
            }
            valid[self.geometry.block_of(at).index()] += 1;
            live += 1;
        }
        self.victims.audit(&valid)?;
        for (i, die) in self.dies.iter().enumerate() {
            let first = self.geometry.pbn(i as u32, 0).index();
            let sum: u32 = valid[first..first + self.geometry.blocks_per_die as usize]
                .iter()
                .sum();
            if sum != die.valid {
                return Err(format!("die {i} counts {} valid pages of {sum}", die.valid));
            }
            if !die.pool.iter().all(|b| flash.written(b) == 0) {
                return Err(format!("an erased block of die {i} is not erased"));
            }
        }
        Ok(live)
    }
}
