//! Mounting: which physical block is which, from the spare areas of their pages.

use std::collections::VecDeque;

use floatgate_core::wear::WearLeveling;
use floatgate_core::{Geometry, Pbn, ProgramOrder, Refusal};

use super::pairs::{PairGuard, Risk};
use super::patrol::Reads;
use super::{Die, Patch, Pick, READ_RETRIES, Spares, SparesOptions, SparesStats, unless_read_only};
use crate::error::DeviceError;
use crate::nand::{BlockState, Nand, NandError, Place, PlaceKind, Spare};

/// What a block was found to be.
enum Identity {
    Erased,
    /// Nothing readable: a torn erase, or the first program torn.
    Garbage,
    Ring,
    Virtual(Place),
}

/// The blocks that stand for no virtual one.
struct Found {
    rings: Vec<Pbn>,
    /// Their content is not needed.
    rest: Vec<Pbn>,
    /// What the block behind a virtual one was copied from, where that may be needed still.
    sources: Vec<(Pbn, Pbn)>,
}

/// The shape that a scheme sees of a chip of that shape.
///
/// # Errors
/// If too few blocks are left, or the options do not go together.
pub fn virtual_geometry(chip: &Geometry, options: &SparesOptions) -> Result<Geometry, Refusal> {
    let reserved = options.reserved_blocks();
    if reserved >= chip.blocks_per_die {
        let text = format!(
            "a die has {} blocks, and {reserved} of them are spare: too few are left",
            chip.blocks_per_die
        );
        return Err(Refusal::new("spare_blocks", text));
    }
    if options.pair_guard != PairGuard::Off && chip.program_order == ProgramOrder::Any {
        let text =
            "pair_guard is for cells of several bits, program_order = any for single-bit cells";
        return Err(Refusal::new("pair_guard", text.into()));
    }
    Geometry::new(
        chip.dies,
        chip.blocks_per_die - reserved,
        chip.pages_per_block,
        chip.logical_pages.into(),
        chip.program_order,
    )
}

impl<N: Nand> Spares<N> {
    /// Formats an erased chip. Blocks that the factory marked bad are left out.
    ///
    /// # Errors
    /// If a die has fewer good blocks than the scheme needs, or the chip is not erased.
    pub fn format(nand: N, options: SparesOptions) -> Result<Self, DeviceError> {
        let chip = nand.geometry();
        if (0..chip.pages()).any(|page| nand.is_programmed(floatgate_core::Ppn(page))) {
            let text = "the chip is not erased".into();
            return Err(DeviceError::Corrupt { text });
        }
        let spares = Self::mount(nand, options)?;
        for (die, state) in spares.dies.iter().enumerate() {
            if state.spares < 0 {
                let text = format!(
                    "die {die} lacks {} good blocks: too many are bad from the factory",
                    -state.spares
                );
                return Err(Refusal::new("spare_blocks", text).into());
            }
        }
        Ok(spares)
    }

    /// Mounts a used chip, after a shutdown or a power cut.
    ///
    /// A die without enough good blocks is read-only.
    ///
    /// # Errors
    /// If the options do not fit the chip, or a page names an impossible block.
    pub fn mount(nand: N, options: SparesOptions) -> Result<Self, DeviceError> {
        let geometry = virtual_geometry(nand.geometry(), &options)?;
        let blocks = geometry.blocks() as usize;
        let die = Die {
            free: VecDeque::new(),
            ring: None,
            spares: -i64::from(geometry.blocks_per_die + options.ring_blocks()),
            read_only: false,
        };
        let mut spares = Self {
            options,
            place: vec![Pbn::NONE; blocks],
            generation: vec![0; blocks],
            life: vec![u32::MAX; blocks],
            risk: vec![Risk::STALE; blocks],
            suspect: vec![false; nand.geometry().blocks() as usize],
            reads: vec![Reads::default(); blocks],
            next_patrol: Pbn(0),
            dies: vec![die; geometry.dies as usize],
            next_generation: 1,
            epoch: 0,
            stats: SparesStats::default(),
            scratch: vec![0; nand.page_bytes()],
            overlay: None,
            geometry,
            nand,
        };
        let is_settled = spares.nand.is_settled();
        if !is_settled {
            spares.expose()?;
        }
        let Found {
            rings,
            mut rest,
            sources,
        } = spares.identify_all()?;
        spares.identify_by_copies(&rings, &mut rest)?;
        // First what interrupted mounts left behind, to make room; the copies only after they are restored.
        for &at in &rest {
            unless_read_only(spares.reclaim(at))?;
        }
        for same in sources.chunk_by(|a, b| a.0 == b.0) {
            let blocks: Vec<Pbn> = same.iter().map(|&(_, at)| at).collect();
            spares.merge_copies(same[0].0, &blocks)?;
        }
        spares.restore_pairs(&rings)?;
        if !is_settled {
            spares.settle()?;
        }
        for &at in &rings {
            let die = spares.nand.geometry().die_of(at);
            if !spares.dies[die as usize].read_only {
                unless_read_only(spares.reclaim(at))?;
            }
        }
        spares.sort_free();
        for die in &mut spares.dies {
            die.read_only |= die.spares < 0;
        }
        Ok(spares)
    }

    /// Finds the block behind every virtual one.
    fn identify_all(&mut self) -> Result<Found, DeviceError> {
        let is_settled = self.nand.is_settled();
        let (mut rings, mut idle, mut sources) = (Vec::new(), Vec::new(), Vec::new());
        let mut found: Vec<(u32, u64, Pbn)> = Vec::new();
        let mut lives = vec![0; self.nand.geometry().blocks() as usize];
        for at in (0..self.nand.geometry().blocks()).map(Pbn) {
            if self.nand.block_state(at) != BlockState::Good {
                continue;
            }
            let die = self.nand.geometry().die_of(at) as usize;
            self.dies[die].spares += 1;
            match self.identify(at)? {
                Identity::Erased => {
                    self.suspect[at.index()] = !is_settled;
                    self.dies[die].free.push_back(at);
                }
                Identity::Garbage => idle.push(at),
                Identity::Ring => rings.push(at),
                Identity::Virtual(place) => {
                    lives[at.index()] = place.origin_erases;
                    found.push((place.block, place.generation, at));
                }
            }
        }
        found.sort_unstable();
        let highest = found.iter().map(|&(_, generation, _)| generation).max();
        self.next_generation = highest.unwrap_or(0) + 1;
        for same in found.chunk_by(|a, b| a.0 == b.0) {
            let chosen = self.choose(same)?;
            let mut is_older = true;
            for &(block, generation, at) in same {
                if at == chosen {
                    self.place[block as usize] = at;
                    self.generation[block as usize] = generation;
                    self.life[block as usize] = lives[at.index()];
                    is_older = false;
                } else if is_older && !is_settled {
                    sources.push((Pbn(block), at));
                } else {
                    idle.push(at);
                }
            }
        }
        Ok(Found {
            rings,
            rest: idle,
            sources,
        })
    }

    /// A block whose only readable page was a lost lower page is identified by the copy of that page.
    fn identify_by_copies(&mut self, rings: &[Pbn], idle: &mut Vec<Pbn>) -> Result<(), NandError> {
        for &ring in rings {
            for page in 0..self.geometry.pages_per_block {
                let Some(spare) = self.try_spare(ring, page)? else {
                    continue;
                };
                let place = spare.place;
                if place.generation < 1 << 63 {
                    self.next_generation = self.next_generation.max(place.generation + 1);
                }
                let found = idle.iter().position(|at| {
                    at.0 == place.origin && self.nand.erase_count(*at) == place.origin_erases
                });
                let unplaced = place.kind == PlaceKind::Backup
                    && place.block < self.geometry.blocks()
                    && self.place[place.block as usize].is_none();
                if let Some(i) = found.filter(|_| unplaced) {
                    self.place[place.block as usize] = idle.remove(i);
                    self.generation[place.block as usize] = place.generation;
                    self.life[place.block as usize] = place.origin_erases;
                }
            }
        }
        Ok(())
    }

    /// Of the copies of one block, given oldest first: the newest complete one, else the oldest.
    fn choose(&mut self, same: &[(u32, u64, Pbn)]) -> Result<Pbn, NandError> {
        if same.len() > 1 {
            for &(_, _, at) in same.iter().rev() {
                if self.is_complete(at)? {
                    return Ok(at);
                }
            }
        }
        Ok(same[0].2)
    }

    /// Whether all pages that were to move to a block have arrived. Not if none can be read any more: it could be just now,
    /// but need not stay so.
    fn is_complete(&mut self, at: Pbn) -> Result<bool, NandError> {
        let (mut readable, mut arrived, mut wanted) = (0, 0, 0);
        for page in 0..self.nand.geometry().pages_per_block {
            let Some(spare) = self.try_spare(at, page)? else {
                continue;
            };
            readable += 1;
            if spare.place.kind == PlaceKind::Moved {
                arrived += 1;
                wanted = spare.place.moved;
            }
        }
        Ok(readable > 0 && arrived == wanted)
    }

    /// The spare area of a physical page, if it is readable.
    pub(super) fn try_spare(&mut self, at: Pbn, page: u32) -> Result<Option<Spare>, NandError> {
        let page = self.nand.geometry().ppn(at, page);
        if !self.nand.is_programmed(page) {
            return Ok(None);
        }
        for _ in 0..=READ_RETRIES {
            match self.nand.read_spare(page) {
                Ok(spare) => return Ok(Some(spare)),
                Err(NandError::Unreadable { .. } | NandError::Erased { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(None)
    }

    /// By the first page that can be read.
    fn identify(&mut self, at: Pbn) -> Result<Identity, DeviceError> {
        let mut identity = Identity::Erased;
        for page in 0..self.geometry.pages_per_block {
            let chip = self.nand.geometry();
            if !self.nand.is_programmed(chip.ppn(at, page)) {
                continue;
            }
            identity = Identity::Garbage;
            if let Some(spare) = self.try_spare(at, page)? {
                return self.identity_of(at, spare.place);
            }
        }
        Ok(identity)
    }

    fn identity_of(&self, at: Pbn, place: Place) -> Result<Identity, DeviceError> {
        let corrupt = |what: String| {
            let text = format!("physical block {} {what}", at.0);
            Err(DeviceError::Corrupt { text })
        };
        match place.kind {
            PlaceKind::Backup => Ok(Identity::Ring),
            PlaceKind::Plain => corrupt("was written without spare blocks".into()),
            PlaceKind::Mapped | PlaceKind::Moved => {
                let known = place.block < self.geometry.blocks()
                    && self.die_of(Pbn(place.block)) == self.nand.geometry().die_of(at);
                // Even the highest generation must leave room for new ones.
                if !known || !(1..1 << 63).contains(&place.generation) {
                    return corrupt(format!(
                        "claims to be block {} in generation {}",
                        place.block, place.generation
                    ));
                }
                Ok(Identity::Virtual(place))
            }
        }
    }

    /// Replaces lower pages lost to a power cut by their copies.
    fn restore_pairs(&mut self, rings: &[Pbn]) -> Result<(), NandError> {
        let mut patches: Vec<(Pbn, Patch)> = Vec::new();
        for &ring in rings {
            for page in 0..self.geometry.pages_per_block {
                if let Some((block, patch)) = self.needed_copy(ring, page)?
                    && !patches
                        .iter()
                        .any(|(b, p)| *b == block && p.page == patch.page)
                {
                    patches.push((block, patch));
                }
            }
        }
        patches.sort_by_key(|(block, _)| *block);
        self.stats.restored_pages += patches.len() as u64;
        while let Some(&(block, _)) = patches.last() {
            let first = patches.partition_point(|(b, _)| *b < block);
            let of_block: Vec<Patch> = patches.drain(first..).map(|(_, patch)| patch).collect();
            let moved = self.move_block(block, Pick::Next, None, &of_block);
            unless_read_only(moved.and_then(|(old, _)| self.reclaim(old)))?;
        }
        Ok(())
    }

    /// The copy at a page of a ring block, if what it copies has become unreadable.
    fn needed_copy(&mut self, ring: Pbn, page: u32) -> Result<Option<(Pbn, Patch)>, NandError> {
        let Some(spare) = self.try_spare(ring, page)? else {
            return Ok(None);
        };
        let Place {
            kind,
            block,
            page: lower,
            generation,
            ..
        } = spare.place;
        let (block, lower) = (Pbn(block), u32::from(lower));
        let current = kind == PlaceKind::Backup
            && block.0 < self.geometry.blocks()
            && lower < self.geometry.pages_per_block
            && self.place(block).is_some()
            && self.generation[block.index()] == generation;
        if !current || self.try_spare(self.place[block.index()], lower)?.is_some() {
            return Ok(None);
        }
        let mut data = vec![0; self.nand.page_bytes()];
        let at = self.nand.geometry().ppn(ring, page);
        match self.nand.read(at, &mut data) {
            Ok(spare) => Ok(Some((
                block,
                Patch {
                    page: lower,
                    spare,
                    data,
                },
            ))),
            Err(NandError::Unreadable { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Without wear levelling erased virtual blocks keep a physical block: their own, where it is free.
    fn sort_free(&mut self) {
        for die in &mut self.dies {
            die.free.make_contiguous().sort_unstable();
        }
        if self.options.wear_leveling != WearLeveling::Off {
            return;
        }
        let (chip, geometry) = (self.nand.geometry().clone(), self.geometry.clone());
        let unplaced = |spares: &Self| {
            let all = (0..geometry.blocks()).map(Pbn);
            all.filter(|block| spares.place[block.index()].is_none())
                .collect::<Vec<_>>()
        };
        let own = |block: Pbn| {
            let die = geometry.die_of(block);
            chip.pbn(die, block.0 - geometry.pbn(die, 0).0)
        };
        for block in unplaced(self) {
            let free = &mut self.dies[geometry.die_of(block) as usize].free;
            if let Ok(at) = free.binary_search(&own(block)) {
                free.remove(at);
                self.place[block.index()] = own(block);
            }
        }
        for block in unplaced(self) {
            let free = &mut self.dies[geometry.die_of(block) as usize].free;
            if let Some(at) = free.pop_front() {
                self.place[block.index()] = at;
            }
        }
    }
}
