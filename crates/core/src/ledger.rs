//! The state that every flash keeps, simulated or real: what is programmed, how often blocks were erased, what was
//! counted. Program rules are enforced here, in one place for every kind of flash.

use alloc::vec;
use alloc::vec::Vec;

use crate::address::{Pbn, Ppn};
use crate::geometry::{Geometry, ProgramOrder};
use crate::oob::SCHEME_OOB_BYTES;
use crate::report::{Cause, FlashCounters};
use crate::state::{Passed, StateError};

#[derive(Clone, Copy, Default, Debug)]
struct Block {
    /// Highest programmed position + 1.
    written: u16,
    /// Positions below `written` that are still erased.
    gaps: u16,
    erases: u32,
}

crate::state!(Block {
    written,
    gaps,
    erases
});

/// Program state, erase counts and counters of a flash.
#[derive(Clone, Debug)]
pub struct Ledger {
    geometry: Geometry,
    blocks: Vec<Block>,
    /// One bit a page: erased although a higher page of its block is programmed. Gaps are rare, so the
    /// bits are allocated with the first one, and in-order programs never touch them.
    gaps: Vec<u64>,
    /// Operations counted so far.
    pub counters: FlashCounters,
    /// Sequence number of the last program; maintained only where bytes are stored.
    pub sequence: u64,
    page_bytes: u32,
    oob_bytes: usize,
}

crate::state!(Ledger { blocks, counters, sequence } grows { gaps } check check_state fixed { geometry, page_bytes, oob_bytes });

impl Ledger {
    /// An erased flash that stores no bytes.
    pub fn new(geometry: &Geometry, page_bytes: u32) -> Self {
        Self {
            sequence: 0,
            page_bytes,
            oob_bytes: usize::MAX,
            blocks: vec![Block::default(); geometry.blocks() as usize],
            gaps: Vec::new(),
            geometry: geometry.clone(),
            counters: FlashCounters::default(),
        }
    }

    /// The same for a flash that does.
    #[must_use]
    pub fn storing_bytes(self) -> Self {
        Self {
            oob_bytes: SCHEME_OOB_BYTES,
            ..self
        }
    }

    /// Bytes of a page without its spare area.
    pub fn page_bytes(&self) -> u32 {
        self.page_bytes
    }

    /// Bytes of a spare area that a scheme may use: no limit where none are stored.
    pub fn oob_bytes(&self) -> usize {
        self.oob_bytes
    }

    /// The sequence number that the next program gets; meaningless where no bytes are stored.
    #[inline(always)]
    pub fn next_sequence(&self) -> u64 {
        self.sequence + 1
    }

    /// The shape of the device.
    #[inline(always)]
    pub fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    /// The write pointer of a block: highest programmed position + 1, 0 for an erased block.
    #[inline(always)]
    pub fn write_pointer(&self, pbn: Pbn) -> u32 {
        u32::from(self.blocks[pbn.index()].written)
    }

    /// Pages of a block programmed since its erase, gaps not counted.
    #[inline]
    pub fn programmed_pages(&self, pbn: Pbn) -> u32 {
        let block = &self.blocks[pbn.index()];
        u32::from(block.written - block.gaps)
    }

    /// How often a block was erased.
    #[inline]
    pub fn erase_count(&self, pbn: Pbn) -> u32 {
        self.blocks[pbn.index()].erases
    }

    /// Whether a page is programmed.
    #[inline]
    pub fn is_programmed(&self, ppn: Ppn) -> bool {
        let (pbn, page) = self.geometry.split(ppn);
        let block = &self.blocks[pbn.index()];
        page < u32::from(block.written) && (block.gaps == 0 || !self.is_gap(ppn))
    }

    #[inline]
    fn is_gap(&self, ppn: Ppn) -> bool {
        let i = ppn.index();
        self.gaps[i / 64] >> (i % 64) & 1 == 1
    }

    fn mark_gap(&mut self, ppn: Ppn, gap: bool) {
        if self.gaps.is_empty() {
            self.gaps = vec![0; (self.geometry.pages() as usize).div_ceil(64)];
        }
        let (word, bit) = (ppn.index() / 64, ppn.index() % 64);
        self.gaps[word] = self.gaps[word] & !(1 << bit) | u64::from(gap) << bit;
    }

    /// Marks a page as programmed.
    ///
    /// # Panics
    /// If the program rules forbid it: the scheme has a bug.
    #[inline(always)]
    pub fn program(&mut self, ppn: Ppn, cause: Cause) -> Pbn {
        let (pbn, page) = self.geometry.split(ppn);
        let block = &mut self.blocks[pbn.index()];
        if page == u32::from(block.written) {
            block.written += 1;
        } else {
            self.program_out_of_order(pbn, page);
        }
        *self.counters.programs.of(cause) += 1;
        pbn
    }

    /// Marks `pages` pages from `ppn` on, all of one block, as programmed.
    ///
    /// # Panics
    /// If the program rules forbid it.
    pub fn program_run(&mut self, ppn: Ppn, pages: u32, cause: Cause) -> Pbn {
        let (pbn, page) = self.geometry.split(ppn);
        let block = &mut self.blocks[pbn.index()];
        if page == u32::from(block.written) && page + pages <= self.geometry.pages_per_block {
            block.written += pages as u16;
            *self.counters.programs.of(cause) += u64::from(pages);
        } else {
            (0..pages).for_each(|i| {
                self.program(Ppn(ppn.0 + i), cause);
            });
        }
        pbn
    }

    /// Counts several page reads.
    pub fn read_run(&mut self, pages: &[Ppn], cause: Cause) {
        debug_assert!(
            pages.iter().all(|&ppn| self.is_programmed(ppn)),
            "read of an erased page"
        );
        *self.counters.reads.of(cause) += pages.len() as u64;
    }

    #[cold]
    #[inline(never)]
    fn program_out_of_order(&mut self, pbn: Pbn, page: u32) {
        let written = self.write_pointer(pbn);
        let ppn = self.geometry.ppn(pbn, page);
        if page > written {
            for skipped in written..page {
                self.mark_gap(self.geometry.ppn(pbn, skipped), true);
            }
            let block = &mut self.blocks[pbn.index()];
            block.gaps += (page - written) as u16;
            block.written = page as u16 + 1;
            return;
        }
        assert!(
            self.geometry.program_order == ProgramOrder::Any && !self.is_programmed(ppn),
            "program rule broken: page {page} of block {} when {written} positions are written ({} order)",
            pbn.0,
            self.geometry.program_order.name()
        );
        self.mark_gap(ppn, false);
        self.blocks[pbn.index()].gaps -= 1;
    }

    /// Counts a page read.
    #[inline(always)]
    pub fn read(&mut self, ppn: Ppn, cause: Cause) {
        debug_assert!(self.is_programmed(ppn), "read of the erased page {}", ppn.0);
        *self.counters.reads.of(cause) += 1;
    }

    /// Counts the read of a page that may be erased.
    pub fn try_read(&mut self, cause: Cause) {
        *self.counters.reads.of(cause) += 1;
    }

    /// Counts an OOB read.
    #[inline(always)]
    pub fn read_oob(&mut self, cause: Cause) {
        *self.counters.oob_reads.of(cause) += 1;
    }

    /// Erases a block.
    #[inline]
    pub fn erase(&mut self, pbn: Pbn, cause: Cause) {
        let block = self.blocks[pbn.index()];
        if block.gaps > 0 {
            for page in 0..u32::from(block.written) {
                self.mark_gap(self.geometry.ppn(pbn, page), false);
            }
        }
        self.blocks[pbn.index()] = Block {
            written: 0,
            gaps: 0,
            // A forged image may say that a block is at the end of the numbers.
            erases: block.erases.saturating_add(1),
        };
        *self.counters.erases.of(cause) += 1;
    }

    /// An erase that was cut: only the pages for which `keeps` holds still look programmed. Nothing is counted.
    pub fn tear_erase(&mut self, pbn: Pbn, keeps: impl Fn(u32) -> bool) {
        let (written, mut kept, mut top) = (self.write_pointer(pbn), 0, 0);
        for page in 0..written {
            let at = self.geometry.ppn(pbn, page);
            let stays = self.is_programmed(at) && keeps(page);
            self.mark_gap(at, !stays);
            if stays {
                kept += 1;
                top = page + 1;
            }
        }
        for page in top..written {
            self.mark_gap(self.geometry.ppn(pbn, page), false);
        }
        let block = &mut self.blocks[pbn.index()];
        block.written = top as u16;
        block.gaps = (top - kept) as u16;
    }

    /// Sets the start state of a block: its first `pages` pages are programmed, nothing is counted.
    pub fn preload(&mut self, pbn: Pbn, pages: u32) {
        let block = &mut self.blocks[pbn.index()];
        assert_eq!(
            block.written, 0,
            "start state over a block that is not erased"
        );
        block.written = pages as u16;
    }

    /// Sets the state of a block of a used flash: its erase count and its programmed positions.
    pub fn restore(&mut self, pbn: Pbn, erases: u32, programmed: impl Fn(u32) -> bool) {
        self.blocks[pbn.index()].erases = erases;
        for page in (0..self.geometry.pages_per_block).filter(|&page| programmed(page)) {
            let written = self.write_pointer(pbn);
            if page > written {
                self.program_out_of_order(pbn, page);
            } else {
                self.blocks[pbn.index()].written += 1;
            }
        }
    }

    /// Whether what was loaded can be the state of a flash.
    fn check_state(&self) -> Passed {
        let words = (self.geometry.pages() as usize).div_ceil(64);
        let has_gaps = self.gaps.len() == words;
        if !has_gaps && !self.gaps.is_empty() {
            return Err(StateError::damaged(
                "the erased pages are those of another flash",
            ));
        }
        for (pbn, block) in (0..).map(Pbn).zip(&self.blocks) {
            let written = u32::from(block.written);
            let fits = written <= self.geometry.pages_per_block && block.gaps <= block.written;
            let first = self.geometry.first_page(pbn).0;
            let is_gap = |&page: &u32| has_gaps && self.is_gap(Ppn(first + page));
            if !fits || (0..written).filter(is_gap).count() != usize::from(block.gaps) {
                return Err(StateError::damaged(alloc::format!(
                    "block {} has {} positions written, {} of them erased",
                    pbn.0,
                    block.written,
                    block.gaps
                )));
            }
        }
        Ok(())
    }

    /// Erase counts of all blocks, by number.
    pub fn erase_counts(&self) -> impl Iterator<Item = u32> + '_ {
        self.blocks.iter().map(|block| block.erases)
    }

    /// Sets counters and erase counts to zero and keeps the programmed pages (end of a warm-up).
    pub fn reset_counters(&mut self) {
        self.counters = FlashCounters::default();
        for block in &mut self.blocks {
            block.erases = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ledger(order: ProgramOrder) -> Ledger {
        Ledger::new(&Geometry::new(1, 4, 4, 8, order).unwrap(), 4096)
    }

    #[test]
    fn gaps_are_lost_under_ascending_order_and_fillable_under_any() {
        let mut l = ledger(ProgramOrder::Any);
        l.program(Ppn(2), Cause::Host);
        assert!(!l.is_programmed(Ppn(1)) && l.is_programmed(Ppn(2)) && !l.is_programmed(Ppn(3)));
        assert_eq!(
            (l.write_pointer(Pbn(0)), l.programmed_pages(Pbn(0))),
            (3, 1)
        );
        l.program(Ppn(1), Cause::Host);
        assert_eq!(
            (l.write_pointer(Pbn(0)), l.programmed_pages(Pbn(0))),
            (3, 2)
        );
        l.erase(Pbn(0), Cause::Gc);
        assert!(!l.is_programmed(Ppn(0)));
        l.program(Ppn(0), Cause::Host);
        assert!(l.is_programmed(Ppn(0)) && l.programmed_pages(Pbn(0)) == 1);
    }

    #[test]
    #[should_panic(expected = "program rule broken")]
    fn ascending_order_forbids_going_back() {
        let mut l = ledger(ProgramOrder::Ascending);
        l.program(Ppn(2), Cause::Host);
        l.program(Ppn(1), Cause::Host);
    }

    #[test]
    #[should_panic(expected = "program rule broken")]
    fn no_page_twice() {
        let mut l = ledger(ProgramOrder::Any);
        l.program(Ppn(1), Cause::Host);
        l.program(Ppn(1), Cause::Host);
    }
}
