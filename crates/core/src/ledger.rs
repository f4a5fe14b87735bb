//! The state that every flash keeps alike, simulated or real: what is programmed, how often blocks were
//! erased, what was counted. Program rules are enforced here, once for all lives of a scheme.

use crate::address::{Pbn, Ppn};
use crate::flash::Cause;
use crate::geometry::{Geometry, ProgramOrder};
use crate::report::{ByCause, FlashCounters};

#[derive(Clone, Copy, Default, Debug)]
struct Block {
    /// Highest programmed position + 1.
    written: u16,
    /// Positions below `written` that are still erased.
    gaps: u16,
    erases: u32,
}

/// Program state, erase counts and counters of a flash.
#[derive(Clone, Debug)]
pub struct Ledger {
    geometry: Geometry,
    blocks: Vec<Block>,
    /// One bit a page: erased although a higher page of its block is programmed. Gaps are rare, so the
    /// bits exist only once the first one has come, and in-order programs never touch them.
    gaps: Vec<u64>,
    /// What has been counted.
    pub counters: FlashCounters,
}

impl Ledger {
    /// An erased flash.
    pub fn new(geometry: &Geometry) -> Self {
        Self {
            blocks: vec![Block::default(); geometry.blocks() as usize],
            gaps: Vec::new(),
            geometry: geometry.clone(),
            counters: FlashCounters::default(),
        }
    }

    /// The shape of the device.
    #[inline(always)]
    pub fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    /// `highest programmed position + 1` of a block.
    #[inline(always)]
    pub fn written(&self, pbn: Pbn) -> u32 {
        u32::from(self.blocks[pbn.index()].written)
    }

    /// Pages of a block programmed since its erase.
    #[inline]
    pub fn programmed(&self, pbn: Pbn) -> u32 {
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
        *count(&mut self.counters.programs, cause) += 1;
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
            *count(&mut self.counters.programs, cause) += u64::from(pages);
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
        *count(&mut self.counters.reads, cause) += pages.len() as u64;
    }

    #[cold]
    #[inline(never)]
    fn program_out_of_order(&mut self, pbn: Pbn, page: u32) {
        let written = self.written(pbn);
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
        *count(&mut self.counters.reads, cause) += 1;
    }

    /// Counts the read of a page that may turn out to be erased.
    pub fn try_read(&mut self, cause: Cause) {
        *count(&mut self.counters.reads, cause) += 1;
    }

    /// Counts an OOB read.
    #[inline(always)]
    pub fn read_oob(&mut self, cause: Cause) {
        *count(&mut self.counters.oob_reads, cause) += 1;
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
            erases: block.erases + 1,
        };
        *count(&mut self.counters.erases, cause) += 1;
    }

    /// An erase that was cut: of the programmed pages those that `keeps` names still look programmed. Nothing
    /// is counted.
    pub fn tear_erase(&mut self, pbn: Pbn, keeps: impl Fn(u32) -> bool) {
        let (written, mut kept, mut top) = (self.written(pbn), 0, 0);
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

    /// Makes the start state of a block: its first `pages` pages are programmed, nothing is counted.
    pub fn preload(&mut self, pbn: Pbn, pages: u32) {
        let block = &mut self.blocks[pbn.index()];
        assert_eq!(
            block.written, 0,
            "start state over a block that is not erased"
        );
        block.written = pages as u16;
    }

    /// Takes over the state of a block that a flash brings along: its erases, its programmed positions.
    pub fn restore(&mut self, pbn: Pbn, erases: u32, programmed: impl Fn(u32) -> bool) {
        self.blocks[pbn.index()].erases = erases;
        for page in (0..self.geometry.pages_per_block).filter(|&page| programmed(page)) {
            let written = self.written(pbn);
            if page > written {
                self.program_out_of_order(pbn, page);
            } else {
                self.blocks[pbn.index()].written += 1;
            }
        }
    }

    /// Erase counts of all blocks, in the order of their numbers.
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

#[inline(always)]
fn count(by: &mut ByCause, cause: Cause) -> &mut u64 {
    match cause {
        Cause::Host => &mut by.host,
        Cause::Gc => &mut by.gc,
        Cause::Map => &mut by.map,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ledger(order: ProgramOrder) -> Ledger {
        Ledger::new(&Geometry::new(1, 4, 4, 8, order).unwrap())
    }

    #[test]
    fn gaps_are_lost_under_ascending_order_and_fillable_under_any() {
        let mut l = ledger(ProgramOrder::Any);
        l.program(Ppn(2), Cause::Host);
        assert!(!l.is_programmed(Ppn(1)) && l.is_programmed(Ppn(2)) && !l.is_programmed(Ppn(3)));
        assert_eq!((l.written(Pbn(0)), l.programmed(Pbn(0))), (3, 1));
        l.program(Ppn(1), Cause::Host);
        assert_eq!((l.written(Pbn(0)), l.programmed(Pbn(0))), (3, 2));
        l.erase(Pbn(0), Cause::Gc);
        assert!(!l.is_programmed(Ppn(0)));
        l.program(Ppn(0), Cause::Host);
        assert!(l.is_programmed(Ppn(0)) && l.programmed(Pbn(0)) == 1);
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
