//! What a mount does on a chip that is not [settled](crate::Nand::is_settled): there the operation that a power cut
//! interrupted need not show.
//!
//! | cut in | it may look like | so the mount |
//! |---|---|---|
//! | a program | an erased page | moves every block with content and room, or moves it before its next program |
//! | | a page that can be read a few times more | moves the block with the youngest page of each die |
//! | the last copy into a block | a complete copy | copies both that and what it was copied from, page by page, into a third block |
//! | an erase | an erased block | erases every block that looks erased again before its first program |
//! | | a block with its old pages, some of which can be read once more | reads every page twice, and moves what has lost one |
//! | a mark | a mark that is gone the next time | marks every bad block once more |
//!
//! What has moved is whole: its pages say so, and the next mount moves it no more. A page that cannot be read moves as
//! *lost*, and stays an error.
//!
//! All this happens before the scheme reads its first page, and so for the scheme every operation was done or not. It needs
//! a free block on the die; what remains without one is said in docs/device.md.

use floatgate_core::{Pbn, ProgramOrder};

use super::{Patch, Pick, Spares, unless_read_only};
use crate::nand::{BlockState, Nand, NandError, PlaceKind, written};

/// How often every page is read before anything is made of it: a page that a cut has left to be read once is gone then.
const READS_FIRST: u32 = 2;

impl<N: Nand> Spares<N> {
    /// Reads every page, so that what can be read only once cannot mislead, and marks bad blocks once more.
    pub(super) fn expose(&mut self) -> Result<(), NandError> {
        for at in (0..self.nand.geometry().blocks()).map(Pbn) {
            match self.nand.block_state(at) {
                BlockState::Good => {}
                BlockState::FactoryBad => continue,
                state => {
                    self.nand.mark_bad(at, state)?;
                    continue;
                }
            }
            for page in 0..self.geometry.pages_per_block {
                let page = self.nand.geometry().ppn(at, page);
                if !self.nand.is_programmed(page) {
                    continue;
                }
                for _ in 0..READS_FIRST {
                    match self.nand.read_spare(page) {
                        Ok(_) | Err(NandError::Unreadable { .. } | NandError::Erased { .. }) => {}
                        Err(error) => return Err(error),
                    }
                }
            }
        }
        Ok(())
    }

    /// A block and what it was copied from, both complete: either the last copy was cut, or the erase of the source. So
    /// each page is taken from where it can be read, into a block of its own.
    pub(super) fn merge_copies(&mut self, block: Pbn, sources: &[Pbn]) -> Result<(), NandError> {
        let die = self.die_of(block);
        if self.has_free(die) {
            let at = self.place[block.index()];
            let mut patches = Vec::new();
            for page in 0..self.geometry.pages_per_block {
                if !self.nand.is_programmed(self.nand.geometry().ppn(at, page)) {
                    continue;
                }
                for from in std::iter::once(at).chain(sources.iter().copied()) {
                    if let Some(patch) = self.patch_from(from, page)? {
                        patches.push(patch);
                        break;
                    }
                }
            }
            let moved = self.move_block(block, Pick::Next, None, &patches);
            unless_read_only(moved.and_then(|(old, _)| self.reclaim(old)))?;
            self.stats.settled_blocks += 1;
        }
        for &source in sources {
            unless_read_only(self.reclaim(source))?;
        }
        Ok(())
    }

    fn patch_from(&mut self, from: Pbn, page: u32) -> Result<Option<Patch>, NandError> {
        let mut data = vec![0; self.nand.page_bytes()];
        let at = self.nand.geometry().ppn(from, page);
        for _ in 0..=super::READ_RETRIES {
            match self.nand.read(at, &mut data) {
                Ok(spare) => return Ok(Some(Patch { page, spare, data })),
                Err(NandError::Unreadable { .. } | NandError::Erased { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(None)
    }

    /// Moves every block that the cut operation may have been in. Other blocks with content and room move before their next
    /// program.
    pub(super) fn settle(&mut self) -> Result<(), NandError> {
        let mut youngest = vec![(0, Pbn::NONE); self.geometry.dies as usize];
        let mut unsettled = Vec::new();
        for block in (0..self.geometry.blocks()).map(Pbn) {
            let Some(at) = self.place(block) else {
                continue;
            };
            let looks = self.look_at(at)?;
            let die = self.die_of(block) as usize;
            // A page that was moved here with its block is not what the cut was in, however young it is.
            if looks.youngest > youngest[die].0 {
                let is_mapped = looks.youngest == looks.youngest_mapped;
                youngest[die] = (looks.youngest, if is_mapped { block } else { Pbn::NONE });
            }
            self.suspect[at.index()] = looks.has_room;
            if looks.is_damaged || looks.has_room && looks.youngest_mapped > 0 {
                unsettled.push(block);
            }
        }
        unsettled.extend(youngest.iter().map(|&(_, block)| block));
        unsettled.retain(|block| block.is_some());
        unsettled.sort_unstable();
        unsettled.dedup();
        for block in unsettled {
            unless_read_only(self.resettle(block))?;
        }
        Ok(())
    }

    fn look_at(&mut self, at: Pbn) -> Result<Looks, NandError> {
        let (mut readable, mut moved, mut wanted) = (0, 0, 0);
        let mut looks = Looks::default();
        for page in 0..self.geometry.pages_per_block {
            let Some(spare) = self.try_spare(at, page)? else {
                continue;
            };
            readable += 1;
            looks.youngest = looks.youngest.max(spare.sequence);
            if spare.place.kind == PlaceKind::Moved {
                moved += 1;
                wanted = spare.place.moved;
            } else {
                looks.youngest_mapped = looks.youngest_mapped.max(spare.sequence);
            }
        }
        let geometry = self.nand.geometry();
        let programmed = (0..geometry.pages_per_block)
            .filter(|&page| self.nand.is_programmed(geometry.ppn(at, page)));
        let programmed = programmed.count() as u32;
        let has_hole = geometry.program_order == ProgramOrder::Ascending
            && programmed < written(&self.nand, at);
        looks.is_damaged = readable < programmed || moved != wanted || has_hole && wanted == 0;
        looks.has_room = programmed < geometry.pages_per_block;
        Ok(looks)
    }

    /// Moves the content of a block whose erased pages cannot be trusted, or whose pages may not last; leaves it where
    /// it is if no block is free.
    pub(super) fn resettle(&mut self, block: Pbn) -> Result<(), NandError> {
        if !self.has_free(self.die_of(block)) {
            return Ok(());
        }
        let (old, _) = self.move_block(block, Pick::Next, None, &[])?;
        self.stats.settled_blocks += 1;
        self.reclaim(old)
    }

    pub(super) fn has_free(&self, die: u32) -> bool {
        let die = &self.dies[die as usize];
        !die.read_only && !die.free.is_empty()
    }

    /// Erases a block that only looks erased. Returns whether it can be used; if not, it is retired.
    pub(super) fn make_blank(&mut self, at: Pbn) -> Result<bool, NandError> {
        if !self.suspect[at.index()] {
            return Ok(true);
        }
        self.suspect[at.index()] = false;
        match self.erase_block(at) {
            Ok(()) => Ok(true),
            Err(NandError::EraseFailed { .. }) => {
                self.retire(at, BlockState::EraseFailed)?;
                Ok(false)
            }
            Err(error) => Err(error),
        }
    }
}

/// What a mount sees of a block with content.
#[derive(Default)]
struct Looks {
    /// The highest sequence number.
    youngest: u64,
    /// That of a page that was not moved there with its block, or 0.
    youngest_mapped: u64,
    /// A page cannot be read, or is missing.
    is_damaged: bool,
    /// A page looks erased.
    has_room: bool,
}
