//! Bad blocks, spare blocks, wear levelling and paired pages: everything a scheme should not have to know about.
//!
//! The scheme's blocks are *virtual*: each stands for some physical block of the same die, and any erased one
//! will do. So nothing is stored for an erased block, and the spare areas of a used one say which it is: its
//! number and its *generation*, a counter that grows with every block put into use. There is no table to
//! keep: mounting reads one spare area per block. Only the marks of bad blocks are kept by the
//! chip, as real chips keep them.
//!
//! **A failed program.** The block's pages move to a spare, with their sequence numbers, and the write goes
//! on there. Each moved page says how many move together, so a mount can tell an unfinished copy from a
//! finished one: the finished one with the highest generation counts; until there is one, the original does,
//! and it is marked bad only then. A page that can no longer be read moves as *lost*: it stays an error and
//! does not become an erased page.
//!
//! **A failed erase.** The block is marked bad, and the virtual block, now empty, gets a spare.
//!
//! **No spare left.** A die that has used its last spare accepts no further write request
//! ([`Nand::check_writable`]); the current request is finished, so the scheme's tables stand between two
//! requests, and the stored data stays readable. If another block fails before that, the chip is left as it
//! is, on all dies, and whatever the scheme still does is kept in memory ([`Nand::check_kept`]): no error
//! reaches a scheme in the middle of its work. An erase is never refused: a block that cannot be erased is as good as empty.
//!
//! **Wear levelling.** With `dynamic` an erased virtual block releases its physical block, and its first program
//! takes the free block with the fewest erases. `static` moves the content of a block that lags behind
//! ([`floatgate_core::wear`]). Both work for every scheme, unnoticed by it.
//!
//! **Paired pages.** See [`pairs`].

mod mount;
mod overlay;
pub mod pairs;
mod wear;

use std::collections::VecDeque;

use floatgate_core::wear::{WEAR_GAP, WearLeveling, oldest, youngest};
use floatgate_core::{Geometry, Pbn, Ppn};

use crate::nand::{BlockState, Nand, NandError, Place, PlaceKind, Spare};
pub use mount::virtual_geometry;
use overlay::Overlay;
use pairs::{PairGuard, Ring, Risk};

/// How often a failed read is retried.
pub const READ_RETRIES: u32 = 3;

/// What [`Spares`] should do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SparesOptions {
    /// Blocks of each die kept to replace blocks that fail.
    pub spare_blocks: u32,
    /// Whether lower pages are guarded against a cut in their upper partner; takes two more blocks a die.
    pub pair_guard: PairGuard,
    /// How erases are spread.
    pub wear_leveling: WearLeveling,
    /// How far a block may lag behind under static levelling.
    pub wear_gap: u32,
}

impl Default for SparesOptions {
    fn default() -> Self {
        Self {
            spare_blocks: 2,
            pair_guard: PairGuard::Off,
            wear_leveling: WearLeveling::Off,
            wear_gap: WEAR_GAP,
        }
    }
}

impl SparesOptions {
    /// Blocks of each die that the scheme does not see.
    pub fn reserved_blocks(&self) -> u32 {
        self.spare_blocks.saturating_add(self.ring_blocks())
    }

    /// One block for copies, one to restore them into.
    fn ring_blocks(&self) -> u32 {
        2 * u32::from(self.pair_guard != PairGuard::Off)
    }
}

/// Counters since the mount.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, serde::Serialize)]
pub struct SparesStats {
    /// Blocks retired since the mount because a program failed.
    pub retired_program: u64,
    /// Blocks retired since the mount because an erase failed.
    pub retired_erase: u64,
    /// Pages moved out of them.
    pub moved_pages: u64,
    /// Pages that were unreadable when they had to move.
    pub lost_pages: u64,
    /// Reads that were retried.
    pub read_retries: u64,
    /// Copies of lower pages.
    pub backups: u64,
    /// Lower pages that the mount restored from their copies.
    pub restored_pages: u64,
    /// Hot/cold swaps of static wear levelling.
    pub wear_swaps: u64,
    /// Pages that these swaps moved.
    pub wear_moved_pages: u64,
}

#[derive(Clone, Debug)]
struct Die {
    /// Good erased blocks that stand for no virtual block, in the order of their erases.
    free: VecDeque<Pbn>,
    /// Where copies of lower pages go.
    ring: Option<Ring>,
    /// Good blocks beyond those that virtual blocks and ring need.
    spares: i64,
    read_only: bool,
}

/// A layer of spare blocks in front of a chip. See the module's text.
#[derive(Debug)]
pub struct Spares<N> {
    nand: N,
    /// The shape that the scheme sees.
    geometry: Geometry,
    options: SparesOptions,
    /// Physical block of each virtual one, or `NONE`.
    place: Vec<Pbn>,
    /// Generation of each virtual block, 0 while it is erased.
    generation: Vec<u64>,
    risk: Vec<Risk>,
    dies: Vec<Die>,
    next_generation: u64,
    /// Grows with every flush, erase and copy; what was written in an earlier epoch must not be lost.
    epoch: u64,
    stats: SparesStats,
    scratch: Vec<u8>,
    /// Set once the spares have run out in the middle of a request.
    overlay: Option<Overlay>,
}

/// Which free block to take.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Pick {
    /// The one that wear levelling chooses.
    Next,
    /// The most erased one.
    Oldest,
}

/// A page that the mount substitutes for an unreadable one.
struct Patch {
    page: u32,
    spare: Spare,
    data: Vec<u8>,
}

impl<N: Nand> Spares<N> {
    /// Counters since the mount.
    pub fn stats(&self) -> SparesStats {
        self.stats
    }

    /// The options in force.
    pub fn options(&self) -> &SparesOptions {
        &self.options
    }

    /// The chip.
    pub fn nand(&self) -> &N {
        &self.nand
    }

    /// The chip, mutably.
    pub fn nand_mut(&mut self) -> &mut N {
        &mut self.nand
    }

    /// Gives the chip back.
    pub fn into_nand(self) -> N {
        self.nand
    }

    /// Whether a die can no longer be programmed.
    pub fn is_read_only(&self, die: u32) -> bool {
        self.dies[die as usize].read_only
    }

    /// The physical block that a virtual one stands for.
    pub fn place(&self, block: Pbn) -> Option<Pbn> {
        Some(self.place[block.index()]).filter(|at| at.is_some())
    }

    fn die_of(&self, block: Pbn) -> u32 {
        self.geometry.die_of(block)
    }

    fn physical(&self, block: Pbn, page: u32) -> Option<Ppn> {
        let at = self.place(block)?;
        Some(self.nand.geometry().ppn(at, page))
    }

    /// Runs `read` on the physical page, with retries, and names the virtual page in errors.
    fn read_with(
        &mut self,
        page: Ppn,
        mut read: impl FnMut(&mut N, Ppn) -> Result<Spare, NandError>,
    ) -> Result<Spare, NandError> {
        let (block, position) = self.geometry.split(page);
        let Some(at) = self.physical(block, position) else {
            return Err(NandError::Erased { page });
        };
        for _ in 0..READ_RETRIES {
            match read(&mut self.nand, at) {
                Err(NandError::Unreadable { .. }) => self.stats.read_retries += 1,
                other => return other.map_err(|error| named(error, page)),
            }
        }
        read(&mut self.nand, at).map_err(|error| named(error, page))
    }

    fn check_die(&self, die: u32) -> Result<(), NandError> {
        if self.dies[die as usize].read_only {
            return Err(NandError::ReadOnly { die });
        }
        Ok(())
    }

    fn make_read_only<T>(&mut self, die: u32) -> Result<T, NandError> {
        self.dies[die as usize].read_only = true;
        Err(NandError::ReadOnly { die })
    }

    // ---- blocks -----------------------------------------------------------------------------------

    /// Gives an erased virtual block a physical one and a generation, unless it has them.
    fn bind(&mut self, block: Pbn) -> Result<(), NandError> {
        if self.generation[block.index()] != 0 {
            return Ok(());
        }
        if self.place[block.index()].is_none() {
            self.place[block.index()] = self.take_free(self.die_of(block), Pick::Next)?;
        }
        self.generation[block.index()] = self.new_generation();
        self.risk[block.index()] = Risk::STALE;
        Ok(())
    }

    fn new_generation(&mut self) -> u64 {
        self.next_generation += 1;
        self.next_generation - 1
    }

    fn take_free(&mut self, die: u32, pick: Pick) -> Result<Pbn, NandError> {
        let (free, nand) = (&self.dies[die as usize].free, &self.nand);
        let erases = |block| nand.erase_count(block);
        let at = match pick {
            Pick::Oldest => oldest(free.iter().copied(), erases),
            Pick::Next if self.options.wear_leveling == WearLeveling::Off => Some(0),
            Pick::Next => youngest(free.iter().copied(), erases),
        };
        match at.and_then(|at| self.dies[die as usize].free.remove(at)) {
            Some(block) => Ok(block),
            None => self.make_read_only(die),
        }
    }

    /// Marks a physical block as bad. Its die becomes read-only if it has no spare for it.
    fn retire(&mut self, at: Pbn, state: BlockState) -> Result<(), NandError> {
        self.nand.mark_bad(at, state)?;
        match state {
            BlockState::EraseFailed => self.stats.retired_erase += 1,
            _ => self.stats.retired_program += 1,
        }
        let die = self.nand.geometry().die_of(at);
        self.dies[die as usize].spares -= 1;
        if self.dies[die as usize].spares < 0 {
            return self.make_read_only(die);
        }
        Ok(())
    }

    /// Erases a physical block that stands for nothing and adds it to the free ones, or retires it.
    fn reclaim(&mut self, at: Pbn) -> Result<(), NandError> {
        match self.nand.erase(at) {
            Ok(()) => {
                let die = self.nand.geometry().die_of(at);
                self.dies[die as usize].free.push_back(at);
                Ok(())
            }
            Err(NandError::EraseFailed { .. }) => self.retire(at, BlockState::EraseFailed),
            Err(error) => Err(error),
        }
    }

    /// A program in a virtual block failed: its other pages move to a spare block.
    fn replace(&mut self, block: Pbn, failed: u32) -> Result<(), NandError> {
        let die = self.die_of(block);
        if self.dies[die as usize].spares < 1 {
            return self.make_read_only(die);
        }
        let (old, pages) = self.move_block(block, Pick::Next, Some(failed), &[])?;
        self.stats.moved_pages += u64::from(pages);
        self.retire(old, BlockState::ProgramFailed)
    }

    /// Moves the content of a virtual block, all pages but `skip`; returns where it was and how many pages moved.
    fn move_block(
        &mut self,
        block: Pbn,
        pick: Pick,
        skip: Option<u32>,
        patches: &[Patch],
    ) -> Result<(Pbn, u32), NandError> {
        let old = self.place[block.index()];
        let geometry = self.nand.geometry();
        let pages: Vec<u32> = (0..geometry.pages_per_block)
            .filter(|&page| Some(page) != skip && self.nand.is_programmed(geometry.ppn(old, page)))
            .collect();
        loop {
            let fresh = self.take_free(self.die_of(block), pick)?;
            let generation = self.new_generation();
            match self.copy_pages(block, fresh, generation, &pages, patches) {
                Ok(()) => {
                    self.place[block.index()] = fresh;
                    self.generation[block.index()] = generation;
                    self.risk[block.index()] = Risk::STALE;
                    return Ok((old, pages.len() as u32));
                }
                Err(NandError::ProgramFailed { .. }) => {
                    self.retire(fresh, BlockState::ProgramFailed)?;
                }
                Err(error) => return Err(error),
            }
        }
    }

    fn copy_pages(
        &mut self,
        block: Pbn,
        fresh: Pbn,
        generation: u64,
        pages: &[u32],
        patches: &[Patch],
    ) -> Result<(), NandError> {
        let mut data = std::mem::take(&mut self.scratch);
        let outcome = pages.iter().try_for_each(|&page| {
            let mut spare = self.content(block, page, patches, &mut data)?;
            spare.place = Place {
                kind: PlaceKind::Moved,
                block: block.0,
                page: page as u16,
                moved: pages.len() as u16,
                generation,
                ..Place::default()
            };
            let to = self.nand.geometry().ppn(fresh, page);
            self.nand.program(to, &spare, &data)
        });
        self.scratch = data;
        outcome
    }

    /// What to write for a page of a moving block: its content, its patch, or a page marked as lost.
    fn content(
        &mut self,
        block: Pbn,
        page: u32,
        patches: &[Patch],
        data: &mut [u8],
    ) -> Result<Spare, NandError> {
        if let Some(patch) = patches.iter().find(|patch| patch.page == page) {
            data.copy_from_slice(&patch.data);
            return Ok(patch.spare);
        }
        let from = self.geometry.ppn(block, page);
        match self.read_with(from, |nand, at| nand.read(at, data)) {
            Err(NandError::Unreadable { .. }) => {
                data.fill(0);
                self.stats.lost_pages += 1;
                Ok(Spare::unknown())
            }
            other => other,
        }
    }

    fn program_on_chip(&mut self, page: Ppn, spare: &Spare, data: &[u8]) -> Result<(), NandError> {
        let (block, position) = self.geometry.split(page);
        self.check_die(self.die_of(block))?;
        self.bind(block)?;
        loop {
            // Repeated after a move: the copy of the lower page belongs to one generation.
            self.guard_pair(block, position)?;
            let mut spare = *spare;
            spare.place = Place {
                kind: PlaceKind::Mapped,
                block: block.0,
                page: position as u16,
                generation: self.generation[block.index()],
                ..Place::default()
            };
            let to = self
                .nand
                .geometry()
                .ppn(self.place[block.index()], position);
            match self.nand.program(to, &spare, data) {
                Err(NandError::ProgramFailed { .. }) => self.replace(block, position)?,
                outcome => return outcome,
            }
        }
    }
}

impl<N: Nand> Nand for Spares<N> {
    fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    fn page_bytes(&self) -> usize {
        self.nand.page_bytes()
    }

    fn is_programmed(&self, page: Ppn) -> bool {
        let (block, position) = self.geometry.split(page);
        if let Some(overlay) = &self.overlay
            && (overlay.hides(block) || overlay.holds(page))
        {
            return overlay.holds(page);
        }
        self.physical(block, position)
            .is_some_and(|at| self.nand.is_programmed(at))
    }

    /// That of the physical block that this one stands for now.
    fn erase_count(&self, block: Pbn) -> u32 {
        self.place(block).map_or(0, |at| self.nand.erase_count(at))
    }

    fn block_state(&self, _block: Pbn) -> BlockState {
        BlockState::Good
    }

    fn last_sequence(&self) -> u64 {
        self.nand.last_sequence()
    }

    fn read(&mut self, page: Ppn, data: &mut [u8]) -> Result<Spare, NandError> {
        if let Some(overlay) = &self.overlay
            && let Some((spare, bytes)) = overlay.page(self.geometry.block_of(page), page)?
        {
            data.copy_from_slice(bytes);
            return Ok(*spare);
        }
        self.read_with(page, |nand, at| nand.read(at, data))
    }

    fn read_spare(&mut self, page: Ppn) -> Result<Spare, NandError> {
        if let Some(overlay) = &self.overlay
            && let Some((spare, _)) = overlay.page(self.geometry.block_of(page), page)?
        {
            return Ok(*spare);
        }
        self.read_with(page, |nand, at| nand.read_spare(at))
    }

    fn program(&mut self, page: Ppn, spare: &Spare, data: &[u8]) -> Result<(), NandError> {
        if self.overlay.is_none() {
            match self.program_on_chip(page, spare, data) {
                Err(NandError::ReadOnly { die }) => {
                    self.overlay = Some(Overlay::new(&self.geometry, die));
                }
                outcome => return outcome,
            }
        }
        if let Some(overlay) = &mut self.overlay {
            overlay.program(page, spare, data);
        }
        Ok(())
    }

    fn erase(&mut self, block: Pbn) -> Result<(), NandError> {
        if let Some(overlay) = &mut self.overlay {
            overlay.erase(&self.geometry, block);
            return Ok(());
        }
        let Some(at) = self.place(block) else {
            return Ok(());
        };
        self.epoch += 1;
        self.generation[block.index()] = 0;
        self.place[block.index()] = Pbn::NONE;
        unless_read_only(self.reclaim(at))?;
        let die = self.die_of(block);
        match self.options.wear_leveling {
            // It keeps its physical block, unless that is bad now.
            WearLeveling::Off => {
                if self.dies[die as usize]
                    .free
                    .pop_back_if(|free| *free == at)
                    .is_some()
                {
                    self.place[block.index()] = at;
                }
                Ok(())
            }
            WearLeveling::Dynamic => Ok(()),
            WearLeveling::Static => unless_read_only(self.level(die)),
        }
    }

    fn mark_bad(&mut self, _block: Pbn, _state: BlockState) -> Result<(), NandError> {
        let text = "virtual blocks are never bad".into();
        Err(NandError::Misuse { text })
    }

    fn flush(&mut self) -> Result<(), NandError> {
        self.epoch += 1;
        self.nand.flush()
    }

    fn has_exact_register(&self) -> bool {
        self.nand.has_exact_register()
    }

    fn load_register(&mut self, page: usize, entries: &mut [u64]) -> Result<u8, NandError> {
        self.nand.load_register(page, entries)
    }

    fn save_register(&mut self, page: usize, entries: &[u64]) -> Result<(), NandError> {
        self.nand.save_register(page, entries)
    }

    fn mark_at_risk(&mut self) {
        self.epoch += 1;
    }

    fn check_writable(&self) -> Result<(), NandError> {
        let least = i64::from(self.options.spare_blocks.min(1));
        match self
            .dies
            .iter()
            .position(|die| die.read_only || die.spares < least)
        {
            Some(die) => Err(NandError::ReadOnly { die: die as u32 }),
            None => Ok(()),
        }
    }

    fn check_kept(&self) -> Result<(), NandError> {
        match &self.overlay {
            Some(overlay) => Err(NandError::ReadOnly { die: overlay.die }),
            None => Ok(()),
        }
    }
}

/// Ignores that a die is read-only, where that need not stop the caller.
fn unless_read_only(outcome: Result<(), NandError>) -> Result<(), NandError> {
    match outcome {
        Err(NandError::ReadOnly { .. }) => Ok(()),
        outcome => outcome,
    }
}

/// The same error with the page as the layer above numbers it.
fn named(error: NandError, page: Ppn) -> NandError {
    match error {
        NandError::Unreadable { .. } => NandError::Unreadable { page },
        NandError::Erased { .. } => NandError::Erased { page },
        other => other,
    }
}
