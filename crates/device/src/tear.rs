//! What a power cut in the middle of an operation leaves on a chip.

use floatgate_core::rng::SplitMix64;
use floatgate_core::{Pbn, Ppn};

use crate::nand::{BlockState, Damage, NandError, Spare};
use crate::spares::pairs::lower_of;

/// How far the operation got when the power was cut.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CutKind {
    /// It had not started.
    Before,
    /// In the middle: the page is unreadable, the pages of the block each old, unreadable or erased; or what
    /// [`HiddenTears`] says.
    Torn,
    /// It was done, but not reported.
    After,
}

/// What a cut may leave that does not show, beside what does.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct HiddenTears {
    /// A program: the page looks erased, or it can be read a few times and then no longer.
    pub programs: bool,
    /// An erase: the block looks erased, but what is programmed there is lost; or pages can be read a few times and then no
    /// longer, at least one of them only once.
    pub erases: bool,
    /// The mark of a bad block: it is there or not, or it is gone after the next cut.
    pub marks: bool,
}

impl HiddenTears {
    /// All of them.
    pub const ALL: Self = Self {
        programs: true,
        erases: true,
        marks: true,
    };
}

/// A chip whose power goes in the middle of an operation, and what is drawn for it.
pub(crate) struct Tear<'a, N> {
    pub nand: &'a mut N,
    pub rng: &'a mut SplitMix64,
    pub hidden: HiddenTears,
    /// The program of an upper page takes the lower page of the pair with it.
    pub paired_pages: bool,
}

impl<N: Damage> Tear<'_, N> {
    /// A program; returns how many lower pages it took.
    pub fn program(&mut self, page: Ppn, spare: &Spare, data: &[u8]) -> Result<u64, NandError> {
        let fate = match self.hidden.programs {
            true => self.rng.below(3),
            false => 0,
        };
        match fate {
            0 => self.nand.spoil(page)?,
            1 => self.nand.taint(page)?,
            _ => {
                self.nand.program(page, spare, data)?;
                self.nand.fade(page, 1 + self.rng.below(4) as u32)?;
            }
        }
        let (block, position) = self.nand.geometry().split(page);
        let lower = lower_of(position, self.nand.geometry().pages_per_block);
        if let Some(lower) = lower.filter(|_| self.paired_pages) {
            let lower = self.nand.geometry().ppn(block, lower);
            if self.nand.is_programmed(lower) {
                self.nand.spoil(lower)?;
                return Ok(1);
            }
        }
        Ok(0)
    }

    /// An erase.
    pub fn erase(&mut self, block: Pbn) -> Result<(), NandError> {
        if self.hidden.erases {
            return self.erase_unseen(block);
        }
        for page in programmed_pages(self.nand, block) {
            match self.rng.below(3) {
                0 => self.nand.vanish(page)?,
                1 => self.nand.spoil(page)?,
                _ => {}
            }
        }
        Ok(())
    }

    fn erase_unseen(&mut self, block: Pbn) -> Result<(), NandError> {
        let pages = programmed_pages(self.nand, block);
        // One page always shows what happened, if only at its second read.
        let (fate, once) = (self.rng.below(3), self.rng.below(pages.len().max(1) as u64));
        for (i, &page) in (0..).zip(&pages) {
            match (fate, self.rng.below(4)) {
                (0, _) | (1, 0) => self.nand.taint(page)?,
                (1, 1) => self.nand.spoil(page)?,
                (1, 2) if i != once => {}
                _ if i == once => self.nand.fade(page, 1)?,
                _ => self.nand.fade(page, 1 + self.rng.below(4) as u32)?,
            }
        }
        // What looked erased before is no better now.
        let geometry = self.nand.geometry();
        let all = (0..geometry.pages_per_block).map(|position| geometry.ppn(block, position));
        let blank: Vec<Ppn> = all.filter(|&page| !self.nand.is_programmed(page)).collect();
        blank.into_iter().try_for_each(|page| self.nand.taint(page))
    }

    /// The mark of a bad block: one small program, which is either there or not, unless it is only there for now.
    pub fn mark(&mut self, block: Pbn, state: BlockState) -> Result<(), NandError> {
        if self.hidden.marks {
            let fate = self.rng.below(3);
            if fate > 0 {
                self.nand.mark_bad(block, state)?;
            }
            if fate > 1 {
                self.nand.fade_mark(block);
            }
        }
        Ok(())
    }
}

/// The pages of a block that are programmed.
pub(crate) fn programmed_pages<N: Damage>(nand: &N, block: Pbn) -> Vec<Ppn> {
    let geometry = nand.geometry();
    let all = (0..geometry.pages_per_block).map(|position| geometry.ppn(block, position));
    all.filter(|&page| nand.is_programmed(page)).collect()
}
