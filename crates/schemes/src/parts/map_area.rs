//! Map blocks: the block map of a hybrid kept in flash (Kim et al. 2002; LAST++ sections 2.2 and 4.7).
//! An option, off by default: none of the papers counts these writes in its experiments (docs/spec/merges.md,
//! section 8).
//!
//! *What makes it safe to rely on the area after a power cut.* Every copy of a map page has a version, one above
//! that of the copy before it, and notes the sum of the versions of all map pages. The youngest copy in the area
//! thereby knows the versions that the others must have: a map of which anything is missing, or older than it was,
//! does not add up (see [`FoundArea`]).

use floatgate_core::ftl::MountError;
use floatgate_core::state;
use std::collections::VecDeque;

use floatgate_core::Refusal;
use floatgate_core::address::{Lpn, Pbn, Ppn};
use floatgate_core::flash::{Cause, Flash, Oob, Preload, Role, SpareArea};
use floatgate_core::geometry::Space;
use floatgate_core::options;

mod recovery;

pub use recovery::FoundArea;

options! {
    /// Whether the block map is kept in flash, and how; the same for all hybrids.
    pub struct MapBlockOptions {
        /// Blocks of each die that keep the block map in flash; 0 turns it off, else at least 2.
        map_blocks: u32 ["blocks, die"] = 0, samples [0, 0, 2, 3];
        /// Entries in one map page.
        map_entries_per_page: u32 ["entries"] = 512, samples [1, 2, 4];
    }
}

/// Numbers of operations.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Work {
    /// Page reads.
    pub reads: u64,
    /// Page programs.
    pub programs: u64,
    /// Block erases.
    pub erases: u64,
}

state!(Work {
    reads,
    programs,
    erases
});

impl Work {
    /// Both together.
    #[must_use]
    pub fn and(&self, other: &Self) -> Self {
        Self {
            reads: self.reads + other.reads,
            programs: self.programs + other.programs,
            erases: self.erases + other.erases,
        }
    }

    /// What has been done since `before`.
    #[must_use]
    pub fn since(&self, before: &Self) -> Self {
        Self {
            reads: self.reads - before.reads,
            programs: self.programs - before.programs,
            erases: self.erases - before.erases,
        }
    }
}

/// The sizes of a die's map area.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MapShape {
    /// Blocks of the area, the last ones of the die.
    pub blocks: u32,
    /// Entries in one map page.
    pub entries_per_page: u32,
    /// Entries of the map.
    pub entries: u32,
}

impl MapShape {
    /// Map pages.
    pub fn pages(&self) -> u32 {
        self.entries.div_ceil(self.entries_per_page)
    }

    /// The first block of the area.
    pub fn first_block(&self, space: &Space, die: u32) -> Pbn {
        let geometry = &space.geometry;
        geometry.pbn(die, geometry.blocks_per_die - self.blocks)
    }

    /// The blocks of the area.
    pub fn all_blocks(&self, space: &Space, die: u32) -> impl Iterator<Item = Pbn> + use<> {
        let first = self.first_block(space, die).0;
        (first..first + self.blocks).map(Pbn)
    }

    /// Checks that the map fits its blocks; returns its pages.
    ///
    /// # Errors
    /// A refusal that names the option at fault.
    pub fn check(&self, pages_per_block: u32) -> Result<u32, Refusal> {
        let map_blocks = self.blocks;
        if map_blocks < 2 {
            let text = format!("map_blocks = {map_blocks}: 0 (off), or at least 2");
            return Err(Refusal::new("map_blocks", text));
        }
        if self.entries_per_page == 0 {
            return Err(Refusal::new(
                "map_entries_per_page",
                "map_entries_per_page = 0: at least 1".into(),
            ));
        }
        let pages = self.pages();
        let room = u64::from(map_blocks - 1) * u64::from(pages_per_block) - 1;
        if u64::from(pages) > room {
            let text = format!(
                "map_blocks = {map_blocks} leave room for {room} map pages, but {} entries of {} a page need {pages}",
                self.entries, self.entries_per_page
            );
            return Err(Refusal::new("map_blocks", text));
        }
        Ok(pages)
    }
}

/// The ring of map blocks of one die.
#[derive(Clone, Debug)]
pub struct MapArea {
    entries_per_page: u32,
    pages_per_block: u32,
    /// Newest copy of each map page.
    place: Vec<Ppn>,
    /// Its version: how often the map page has been written since the map was made.
    versions: Vec<u64>,
    /// The sum of all versions.
    writes: u64,
    /// Map page programmed at each position of the area's blocks.
    page_at: Vec<u32>,
    base: Pbn,
    current: Pbn,
    /// Positions programmed in the current block.
    used: u32,
    full: VecDeque<Pbn>,
    erased: VecDeque<Pbn>,
    /// Operations so far.
    pub work: Work,
}

state!(MapArea { place, versions, writes, page_at, current, used, full, erased, work }
    fixed { entries_per_page, pages_per_block, base });

impl MapArea {
    /// The area of one die: its last `map_blocks` blocks, with the map of `entries` entries in them. `value` gives
    /// the content of an entry.
    ///
    /// # Errors
    /// If the map does not fit its blocks.
    pub fn format<F: Preload>(
        space: &Space,
        die: u32,
        shape: MapShape,
        value: impl Fn(u32) -> u32,
        flash: &mut F,
    ) -> Result<Self, MountError<F::Error>> {
        let geometry = &space.geometry;
        let pages_per_block = geometry.pages_per_block;
        let pages = shape.check(pages_per_block)?;
        let mut area = Self::empty(space, die, shape);
        let base = area.base;
        for page in 0..pages {
            if area.used == pages_per_block {
                area.full.push_back(area.current);
                area.current = area.erased.pop_front().expect("checked to fit");
                area.used = 0;
            }
            area.note(
                page,
                geometry.ppn(area.current, area.used),
                geometry.first_page(base),
            );
            area.used += 1;
        }
        area.versions.fill(1);
        area.writes = pages.into();
        for (first, block) in (0..pages).step_by(pages_per_block as usize).zip(base.0..) {
            let here = (pages - first).min(pages_per_block);
            // Written one after the other: each was the last so far.
            let oob_of = |i: u32| {
                let signature = signature(1, u64::from(first + i) + 1);
                Oob::new(Lpn(first + i), Role::Map).with_bytes(signature)
            };
            let fill = |i: u32, bytes: &mut [u8]| area.fill(first + i, &value, bytes);
            let made = flash.preload_map(Pbn(block), here, oob_of, fill);
            made.map_err(MountError::Flash)?;
        }
        Ok(area)
    }

    /// An area of erased blocks without a map.
    fn empty(space: &Space, die: u32, shape: MapShape) -> Self {
        let geometry = &space.geometry;
        let pages_per_block = geometry.pages_per_block;
        let (base, pages) = (shape.first_block(space, die), shape.pages() as usize);
        Self {
            entries_per_page: shape.entries_per_page,
            pages_per_block,
            place: Vec::with_capacity(pages),
            versions: vec![0; pages],
            writes: 0,
            page_at: vec![u32::MAX; (shape.blocks * pages_per_block) as usize],
            base,
            current: base,
            used: 0,
            full: VecDeque::with_capacity(shape.blocks as usize),
            erased: (1..shape.blocks).map(|i| Pbn(base.0 + i)).collect(),
            work: Work::default(),
        }
    }

    fn note(&mut self, page: u32, at: Ppn, base: Ppn) {
        self.page_at[(at.0 - base.0) as usize] = page;
        if page as usize == self.place.len() {
            self.place.push(at);
        } else {
            self.place[page as usize] = at;
        }
    }

    /// Writes the map pages of one or two entries that changed, each page once, in ascending order.
    /// `value` gives the content of an entry.
    ///
    /// # Errors
    /// Those of the flash.
    pub fn update<F: Flash>(
        &mut self,
        flash: &mut F,
        first: u32,
        second: Option<u32>,
        value: impl Fn(u32) -> u32,
    ) -> Result<(), F::Error> {
        let a = first / self.entries_per_page;
        let b = second.map_or(a, |entry| entry / self.entries_per_page);
        self.write_page(flash, a.min(b), &value)?;
        if a != b {
            self.write_page(flash, a.max(b), &value)?;
        }
        Ok(())
    }

    fn write_page<F: Flash>(
        &mut self,
        flash: &mut F,
        page: u32,
        value: &impl Fn(u32) -> u32,
    ) -> Result<(), F::Error> {
        while self.used == self.pages_per_block {
            self.full.push_back(self.current);
            self.current = self
                .erased
                .pop_front()
                .expect("a reclaim always leaves an erased map block");
            self.used = 0;
            if self.erased.is_empty() {
                self.reclaim(flash)?;
            }
        }
        let to = self.next(flash);
        self.work.programs += 1;
        self.count_write(page);
        flash.program_map(
            to,
            self.signed(page),
            |bytes| self.fill(page, value, bytes),
            F::Token::default(),
        )?;
        self.place_at(flash, page, to);
        Ok(())
    }

    /// Makes room: moves the valid pages of the block that has been full longest, and erases it.
    fn reclaim<F: Flash>(&mut self, flash: &mut F) -> Result<(), F::Error> {
        let victim = self.full.pop_front().expect("some map block is full");
        for position in 0..self.pages_per_block {
            let from = flash.ledger().geometry().ppn(victim, position);
            let page =
                self.page_at[((victim.0 - self.base.0) * self.pages_per_block + position) as usize];
            if page != u32::MAX && self.place[page as usize] == from {
                let to = self.next(flash);
                self.work.reads += 1;
                self.work.programs += 1;
                self.count_write(page);
                let oob = self.signed(page);
                flash.copy(from, to, oob, Cause::Map, F::Token::default())?;
                self.place_at(flash, page, to);
            }
        }
        flash.erase(victim, Cause::Map, F::Token::default())?;
        self.work.erases += 1;
        let first = ((victim.0 - self.base.0) * self.pages_per_block) as usize;
        self.page_at[first..first + self.pages_per_block as usize].fill(u32::MAX);
        self.erased.push_back(victim);
        Ok(())
    }

    /// A new copy of a map page is about to be written.
    fn count_write(&mut self, page: u32) {
        self.versions[page as usize] += 1;
        self.writes += 1;
    }

    /// The bytes in the OOB of a map page: its version, and the sum of all versions.
    fn signed(&self, page: u32) -> impl SpareArea + use<> {
        let signature = signature(self.versions[page as usize], self.writes);
        Oob::new(Lpn(page), Role::Map).with_bytes(signature)
    }

    /// The content of a map page: its entries, as many as it has bytes for.
    fn fill(&self, page: u32, value: &impl Fn(u32) -> u32, bytes: &mut [u8]) {
        let (first, entries) = (page * self.entries_per_page, self.entries_per_page);
        for (i, cell) in bytes.chunks_exact_mut(4).take(entries as usize).enumerate() {
            cell.copy_from_slice(&value(first + i as u32).to_le_bytes());
        }
    }

    fn next<F: Flash>(&mut self, flash: &F) -> Ppn {
        let to = flash.ledger().geometry().ppn(self.current, self.used);
        self.used += 1;
        to
    }

    fn place_at<F: Flash>(&mut self, flash: &F, page: u32, at: Ppn) {
        let base = flash.ledger().geometry().first_page(self.base);
        self.note(page, at, base);
    }
}
/// The OOB bytes of a copy of a map page: its version, and the versions of all map pages together.
fn signature(version: u64, writes: u64) -> impl FnOnce(&mut [u8]) {
    move |bytes| {
        bytes[..8].copy_from_slice(&version.to_le_bytes());
        bytes[8..16].copy_from_slice(&writes.to_le_bytes());
    }
}
