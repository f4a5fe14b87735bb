//! Physical blocks: taken, erased, retired, and moved from one to another.

use floatgate_core::Pbn;
use floatgate_core::wear::{WearLeveling, oldest, youngest};

use super::{Patch, Pick, Reads, Risk, Spares};
use crate::nand::{BlockState, Nand, NandError, Place, PlaceKind, Spare};

impl<N: Nand> Spares<N> {
    /// Gives an erased virtual block a physical one and a generation, unless it has them.
    pub(super) fn bind(&mut self, block: Pbn) -> Result<(), NandError> {
        if self.generation[block.index()] != 0 {
            return Ok(());
        }
        let at = self.place[block.index()];
        if at.is_none() || !self.make_blank(at)? {
            self.place[block.index()] = self.take_free(self.die_of(block), Pick::Next)?;
        }
        self.generation[block.index()] = self.new_generation();
        let erases = self.nand.erase_count(self.place[block.index()]);
        let life = &mut self.life[block.index()];
        *life = erases.max(life.wrapping_add(1));
        self.risk[block.index()] = Risk::STALE;
        Ok(())
    }

    pub(super) fn new_generation(&mut self) -> u64 {
        self.next_generation += 1;
        self.next_generation - 1
    }

    pub(super) fn take_free(&mut self, die: u32, pick: Pick) -> Result<Pbn, NandError> {
        loop {
            let (free, nand) = (&self.dies[die as usize].free, &self.nand);
            let erases = |block| nand.erase_count(block);
            let at = match pick {
                Pick::Oldest => oldest(free.iter().copied(), erases),
                Pick::Next if self.options.wear_leveling == WearLeveling::Off => Some(0),
                Pick::Next => youngest(free.iter().copied(), erases),
            };
            match at.and_then(|at| self.dies[die as usize].free.remove(at)) {
                Some(block) if self.make_blank(block)? => return Ok(block),
                Some(_) => {}
                None => return self.make_read_only(die),
            }
        }
    }

    /// Marks a physical block as bad. Its die becomes read-only if it has no spare for it.
    pub(super) fn retire(&mut self, at: Pbn, state: BlockState) -> Result<(), NandError> {
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
    pub(super) fn reclaim(&mut self, at: Pbn) -> Result<(), NandError> {
        match self.erase_block(at) {
            Ok(()) => {
                let die = self.nand.geometry().die_of(at);
                self.dies[die as usize].free.push_back(at);
                Ok(())
            }
            Err(NandError::EraseFailed { .. }) => self.retire(at, BlockState::EraseFailed),
            Err(error) => Err(error),
        }
    }

    /// Erases a physical block, if need be at the second try: failures may be transient.
    pub(super) fn erase_block(&mut self, at: Pbn) -> Result<(), NandError> {
        let outcome = match self.nand.erase(at) {
            Err(NandError::EraseFailed { .. }) => self.nand.erase(at),
            outcome => outcome,
        };
        self.suspect[at.index()] &= outcome.is_err();
        outcome
    }

    /// A program in a virtual block failed: its other pages move to a spare block.
    pub(super) fn replace(&mut self, block: Pbn, failed: u32) -> Result<(), NandError> {
        let die = self.die_of(block);
        if self.dies[die as usize].spares < 1 {
            return self.make_read_only(die);
        }
        let (old, pages) = self.move_block(block, Pick::Next, Some(failed), &[])?;
        self.stats.moved_pages += u64::from(pages);
        self.retire(old, BlockState::ProgramFailed)
    }

    /// Moves the content of a virtual block, all pages but `skip`; returns where it was and how many pages moved.
    pub(super) fn move_block(
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
                    self.reads[block.index()] = Reads::default();
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
                origin_erases: self.life[block.index()],
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
                // What it was is worth knowing: so that no older content passes for it.
                match self.read_with(from, |nand, at| nand.read_spare(at)) {
                    Ok(spare) => Ok(Spare {
                        lost: true,
                        ..spare
                    }),
                    Err(NandError::Unreadable { .. }) => Ok(Spare::unknown()),
                    Err(error) => Err(error),
                }
            }
            other => other,
        }
    }
}
