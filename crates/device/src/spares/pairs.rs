//! Paired pages: the two bits of an MLC cell belong to two pages.
//!
//! A page on the *lower* bits is programmed some pages before its partner on the *upper* bits. A power
//! cut while the upper page is programmed can destroy the lower one too, although that was acknowledged long
//! before. The usual pairs of a block of `P` pages: 0 with 2, then 1 with 4, 3 with
//! 6, 5 with 8, ... and where `P` is even `P - 3` with `P - 1`:
//!
//! ```text
//! page   0  1  2  3  4  5  6  7        (P = 8)
//! bit    l  l  u  l  u  l  u  u
//! pair   a  b  a  c  b  d  c  d
//! ```
//!
//! **How the contract is kept.** Before an upper page is programmed, its lower partner is copied, if it is at
//! risk, to a block set aside on each die (the *ring*), where only lower pages are used, so that a copy
//! endangers no other copy. The copy carries number, position and generation of what it copies. It
//! is needed until the upper program is done; so one block per die suffices, and is erased when full. A mount that
//! finds a lower page unreadable, and a copy of it of the same generation, moves the block with the copy in its
//! place. If the lower page was the only one in its block, nothing there identifies the block any more: so the
//! copy also names the physical block and its erase count.
//!
//! With `always` every lower page is at risk: a scheme then never loses more than the page it was writing, as if
//! cells held one bit. With `flushed` it is every page programmed before the last flush **or the last erase or
//! copy** of the device: an erase may have destroyed the version that a younger page replaced, and the
//! last copy out of a block may have declared what remains there void. Data not yet flushed may go back to its last
//! flushed version, nothing older. `always` costs one more program for each upper page (half of all), `flushed` at
//! most one for each pair that is open at a flush, an erase or a copy.

use floatgate_core::{Pbn, choice};

use super::Spares;
use crate::nand::{BlockState, Nand, NandError, Place, PlaceKind, Spare, written};

choice! {
    /// Which lower pages are copied before their upper partner is programmed.
    pub enum PairGuard {
        /// None: cells hold one bit, or the loss is acceptable.
        Off = "off",
        /// Those programmed before the last flush, erase or copy.
        Flushed = "flushed",
        /// All.
        Always = "always",
    }
}

/// The lower partner of a page of a block of `pages`, if it is an upper page.
pub fn lower_of(page: u32, pages: u32) -> Option<u32> {
    match page {
        2 => Some(0),
        upper if upper % 2 == 0 && upper > 2 => Some(upper - 3),
        // The last page of an even block is the partner of the lower page that is left over.
        last if last % 2 == 1 && last >= 3 && last == pages - 1 => Some(last - 2),
        _ => None,
    }
}

/// Which pages of a block must not be lost.
#[derive(Clone, Copy, Debug)]
pub(super) struct Risk {
    /// Epoch in which `below` was found.
    epoch: u64,
    /// Pages below this position were programmed before that epoch began.
    below: u32,
}

impl Risk {
    /// To be determined at the next program.
    pub(super) const STALE: Self = Self {
        epoch: u64::MAX,
        below: 0,
    };
}

/// The block that takes copies of lower pages.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ring {
    block: Pbn,
    /// Next position, a lower page.
    next: u32,
}

impl<N: Nand> Spares<N> {
    /// Copies the lower partner of a page that is about to be programmed, if it is at risk.
    pub(super) fn guard_pair(&mut self, block: Pbn, page: u32) -> Result<(), NandError> {
        if self.options.pair_guard == PairGuard::Off {
            return Ok(());
        }
        self.note_epoch(block);
        let Some(lower) = lower_of(page, self.geometry.pages_per_block) else {
            return Ok(());
        };
        let flushed = lower < self.risk[block.index()].below;
        let from = self.geometry.ppn(block, lower);
        if !self.is_programmed(from) || !(flushed || self.options.pair_guard == PairGuard::Always) {
            return Ok(());
        }
        let mut data = std::mem::take(&mut self.scratch);
        let outcome = match self.read_with(from, |nand, at| nand.read(at, &mut data)) {
            Ok(spare) => self.back_up(block, lower, spare, &data),
            // Already lost: nothing to guard.
            Err(NandError::Unreadable { .. }) => Ok(()),
            Err(error) => Err(error),
        };
        self.scratch = data;
        outcome
    }

    /// At the first program of a block after a flush, erase or copy, notes what was there before.
    fn note_epoch(&mut self, block: Pbn) {
        if self.risk[block.index()].epoch != self.epoch {
            self.risk[block.index()] = Risk {
                epoch: self.epoch,
                below: written(&self.nand, self.place[block.index()]),
            };
        }
    }

    fn back_up(
        &mut self,
        block: Pbn,
        lower: u32,
        mut spare: Spare,
        data: &[u8],
    ) -> Result<(), NandError> {
        let die = self.die_of(block) as usize;
        spare.place = Place {
            kind: PlaceKind::Backup,
            block: block.0,
            page: lower as u16,
            moved: 0,
            generation: self.generation[block.index()],
            origin: self.place[block.index()].0,
            origin_erases: self.nand.erase_count(self.place[block.index()]),
        };
        loop {
            let ring = self.ring_with_room(die as u32)?;
            let to = self.nand.geometry().ppn(ring.block, ring.next);
            match self.nand.program(to, &spare, data) {
                Ok(()) => {
                    self.stats.backups += 1;
                    let next = ring.next + 1;
                    self.dies[die].ring = Some(Ring { next, ..ring });
                    return Ok(());
                }
                Err(NandError::ProgramFailed { .. }) => {
                    self.dies[die].ring = None;
                    self.retire(ring.block, BlockState::ProgramFailed)?;
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// The ring at its next lower page; a full one is erased, since its copies are no longer needed.
    fn ring_with_room(&mut self, die: u32) -> Result<Ring, NandError> {
        let pages = self.geometry.pages_per_block;
        if let Some(ring) = self.dies[die as usize].ring.take() {
            let room = (ring.next..pages).find(|&page| lower_of(page, pages).is_none());
            if let Some(next) = room {
                return Ok(Ring { next, ..ring });
            }
            self.reclaim(ring.block)?;
        }
        let block = self.take_free(die, super::Pick::Next)?;
        Ok(Ring { block, next: 0 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_upper_page_has_one_lower_partner_below_it() {
        for pages in 1..=129 {
            let uppers = (0..pages).filter(|&page| lower_of(page, pages).is_some());
            let mut lowers = Vec::new();
            for upper in uppers {
                let lower = lower_of(upper, pages).unwrap();
                assert!(
                    lower < upper && lower_of(lower, pages).is_none(),
                    "{pages}: {upper}"
                );
                lowers.push(lower);
            }
            let pairs = lowers.len();
            lowers.sort_unstable();
            lowers.dedup();
            assert_eq!(lowers.len(), pairs, "a lower page has one partner");
            if pages >= 4 && pages % 2 == 0 {
                assert_eq!(pairs as u32, pages / 2);
            }
        }
        let of_eight: Vec<_> = (0..8)
            .filter_map(|page| Some((lower_of(page, 8)?, page)))
            .collect();
        assert_eq!(of_eight, [(0, 2), (1, 4), (3, 6), (5, 7)]);
    }
}
