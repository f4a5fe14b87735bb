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
//!
//! **What a cut leaves.** On a chip where that need not show, a mount moves what may not last; see [`settle`].
//!
//! **Wear by reads and time.** See [`Spares::patrol`].

mod blocks;
mod mount;
mod overlay;
pub mod pairs;
mod patrol;
mod settle;
mod wear;

use std::collections::VecDeque;

use floatgate_core::wear::{WEAR_GAP, WearLeveling};
use floatgate_core::{Geometry, Lpn, Pbn, Ppn};

use crate::entry::PcmEntry;
use crate::nand::{BlockState, Nand, NandError, PatrolFound, Place, PlaceKind, Spare};
pub use mount::virtual_geometry;
use overlay::{Overlay, Why};
use pairs::{PairGuard, Ring, Risk};
pub use patrol::READS_BEFORE_REFRESH;
use patrol::Reads;

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
    /// Blocks moved because a power cut may have been in them and not show.
    pub settled_blocks: u64,
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
    /// Number of erases of each virtual block, or `u32::MAX`: that of the physical block it was put into, or one more than it
    /// was. It moves with the content, so that a scheme can tell by it what a block was before.
    life: Vec<u32>,
    risk: Vec<Risk>,
    /// By physical block: what looks erased in it may not be, so it is erased or left before its next program.
    suspect: Vec<bool>,
    /// By virtual block.
    reads: Vec<Reads>,
    /// The block that the next patrol begins with.
    next_patrol: Pbn,
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

    /// Spare blocks that are left, on all dies together.
    pub fn spares_left(&self) -> u64 {
        let left = self.dies.iter().map(|die| die.spares.max(0) as u64);
        left.sum()
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
        let mut retries = 0;
        loop {
            match read(&mut self.nand, at) {
                Err(NandError::Unreadable { .. }) if retries < READ_RETRIES => retries += 1,
                outcome => {
                    self.note_read(block, retries);
                    return outcome.map_err(|error| named(error, page));
                }
            }
        }
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

    fn program_on_chip(&mut self, page: Ppn, spare: &Spare, data: &[u8]) -> Result<(), NandError> {
        let (block, position) = self.geometry.split(page);
        self.check_die(self.die_of(block))?;
        self.bind(block)?;
        let at = self.place[block.index()];
        if std::mem::take(&mut self.suspect[at.index()]) {
            unless_read_only(self.resettle(block))?;
        }
        loop {
            // Repeated after a move: the copy of the lower page belongs to one generation.
            self.guard_pair(block, position)?;
            let mut spare = *spare;
            spare.place = Place {
                kind: PlaceKind::Mapped,
                block: block.0,
                page: position as u16,
                generation: self.generation[block.index()],
                origin_erases: self.life[block.index()],
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

    /// Erases a virtual block.
    fn erase_on_chip(&mut self, block: Pbn) -> Result<(), NandError> {
        let Some(at) = self.place(block) else {
            return Ok(());
        };
        self.epoch += 1;
        self.generation[block.index()] = 0;
        self.place[block.index()] = Pbn::NONE;
        self.reads[block.index()] = Reads::default();
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

    /// Grows with every erase, and stays when the content moves.
    fn erase_count(&self, block: Pbn) -> u32 {
        if self.generation[block.index()] != 0 {
            return self.life[block.index()];
        }
        self.place(block).map_or(0, |at| self.nand.erase_count(at))
    }

    fn block_state(&self, _block: Pbn) -> BlockState {
        BlockState::Good
    }

    fn last_sequence(&self) -> u64 {
        self.nand.last_sequence()
    }

    /// Whatever the chip is like: see [`settle`].
    fn is_settled(&self) -> bool {
        true
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
            let outcome = self.program_on_chip(page, spare, data);
            let Some(why) = outcome.as_ref().err().and_then(Why::of) else {
                return outcome;
            };
            self.overlay = Some(Overlay::new(&self.geometry, why));
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
        let outcome = self.erase_on_chip(block);
        let Some(why) = outcome.as_ref().err().and_then(Why::of) else {
            return outcome;
        };
        let mut overlay = Overlay::new(&self.geometry, why);
        overlay.erase(&self.geometry, block);
        self.overlay = Some(overlay);
        Ok(())
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

    fn complete_register(&mut self) {
        self.nand.complete_register();
    }

    fn load_register(&mut self, page: usize, entries: &mut [u64]) -> Result<u8, NandError> {
        self.nand.load_register(page, entries)
    }

    fn save_register(&mut self, page: usize, entries: &[u64]) -> Result<(), NandError> {
        self.nand.save_register(page, entries)
    }

    fn keeps_entries(&self) -> bool {
        self.nand.keeps_entries()
    }

    fn load_entry(&mut self, lpn: Lpn) -> Result<Option<PcmEntry>, NandError> {
        self.nand.load_entry(lpn)
    }

    /// Of pages in the overlay the next start knows nothing, so nothing is kept of them.
    fn save_entry(&mut self, lpn: Lpn, entry: Option<&PcmEntry>) -> Result<(), NandError> {
        match self.overlay {
            Some(_) => Ok(()),
            None => self.nand.save_entry(lpn, entry),
        }
    }

    fn has_complete_entries(&self) -> bool {
        self.nand.has_complete_entries()
    }

    fn complete_entries(&mut self) {
        if self.overlay.is_none() {
            self.nand.complete_entries();
        }
    }

    fn mark_at_risk(&mut self) {
        self.epoch += 1;
    }

    fn patrol(&mut self, blocks: u32) -> Result<PatrolFound, NandError> {
        self.patrol_blocks(blocks)
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
            Some(overlay) => Err(overlay.why.error()),
            None => self.nand.check_kept(),
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
