//! What lies where on the flash of an instance: the LPNs that the OOBs name, and which pages are valid.
//!
//! The OOBs are on flash. This program keeps the LPNs of an instance in a table too: a simulated flash has no OOB to read,
//! and the reads of OOBs are there for the count and the time.

use floatgate_core::address::{DieLpn, Ppn};
use floatgate_core::state;

use crate::hints::large_table;

/// Bits, one a page.
#[derive(Debug)]
pub struct PageBits {
    words: Vec<u64>,
    set: u32,
}

state!(PageBits { words, set });

impl PageBits {
    /// So many, all 0.
    pub fn new(pages: u32) -> Self {
        Self {
            words: large_table(0, pages.div_ceil(64) as usize),
            set: 0,
        }
    }

    /// Whether a bit is 1.
    #[inline(always)]
    pub fn has(&self, page: u32) -> bool {
        self.words[page as usize / 64] >> (page % 64) & 1 != 0
    }

    /// Makes a bit 1.
    #[inline]
    pub fn set(&mut self, page: u32) {
        self.set += u32::from(!self.has(page));
        self.words[page as usize / 64] |= 1 << (page % 64);
    }

    /// Makes a bit 0.
    #[inline]
    pub fn clear(&mut self, page: u32) {
        self.set -= u32::from(self.has(page));
        self.words[page as usize / 64] &= !(1 << (page % 64));
    }

    /// Number of bits that are 1.
    pub fn count(&self) -> u32 {
        self.set
    }

    /// Whether the number of ones is what it should be.
    pub fn is_counted(&self) -> bool {
        self.words.iter().map(|w| w.count_ones()).sum::<u32>() == self.set
    }
}

/// The physical pages of an instance, counted from the first of its die.
#[derive(Debug)]
pub struct Places {
    pages_per_block: u32,
    /// By physical page: the logical page programmed there last.
    named: Vec<DieLpn>,
    valid: PageBits,
    /// By block: its pages when it was learned; less than a block has if a power cut ended it.
    ends: Vec<u32>,
}

state!(Places { named, valid, ends } fixed { pages_per_block });

impl Places {
    /// Erased blocks.
    pub fn new(blocks: u32, pages_per_block: u32) -> Self {
        let pages = blocks * pages_per_block;
        Self {
            pages_per_block,
            named: large_table(DieLpn::NONE, pages as usize),
            valid: PageBits::new(pages),
            ends: vec![pages_per_block; blocks as usize],
        }
    }

    /// Bytes of memory.
    pub fn ram_bytes(blocks: u64, pages: u64) -> u64 {
        4 * pages + pages / 8 + 4 * blocks
    }

    /// A page has been programmed, and is valid.
    #[inline]
    pub fn program(&mut self, at: Ppn, lpn: DieLpn) {
        self.named[at.index()] = lpn;
        self.valid.set(at.0);
    }

    /// A page is valid no more.
    #[inline]
    pub fn invalidate(&mut self, at: Ppn) {
        self.valid.clear(at.0);
    }

    /// Whether a page is valid.
    #[inline]
    pub fn is_valid(&self, at: Ppn) -> bool {
        self.valid.has(at.0)
    }

    /// Valid pages of all blocks.
    pub fn valid_pages(&self) -> u32 {
        self.valid.count()
    }

    /// The logical page programmed at a place last.
    #[inline]
    pub fn named(&self, at: Ppn) -> DieLpn {
        self.named[at.index()]
    }

    /// Whether the valid copy of a page lies there.
    #[inline]
    pub fn holds(&self, at: Ppn, lpn: DieLpn) -> bool {
        self.named[at.index()] == lpn && self.valid.has(at.0)
    }

    /// The place that the OOB of a page names for a logical page: one of the `gamma` before it in its block.
    #[inline]
    pub fn named_by(&self, at: Ppn, in_block: u32, gamma: u32, lpn: DieLpn) -> Option<Ppn> {
        let mut before = (1..=gamma.min(in_block)).map(|back| Ppn(at.0 - back));
        before.find(|&place| self.holds(place, lpn))
    }

    /// The logical pages of the `gamma` pages before a place, the nearest first, as its OOB has them.
    pub fn before(&self, at: Ppn, gamma: u32) -> impl Iterator<Item = DieLpn> + '_ {
        let in_block = at.0 % self.pages_per_block;
        (1..=gamma.min(in_block)).map(move |back| self.named[(at.0 - back) as usize])
    }

    /// Pages of a block that a prediction can name.
    #[inline]
    pub fn end(&self, block: u32) -> u32 {
        self.ends[block as usize]
    }

    /// A block has been closed with so many pages; a whole one is so from the start.
    pub fn set_end(&mut self, block: u32, pages: u32) {
        self.ends[block as usize] = pages;
    }

    /// Checks the table against itself, for that many logical pages.
    ///
    /// # Errors
    /// What does not agree.
    pub fn audit(&self, logical_pages: u32) -> Result<(), String> {
        let is_page = |lpn: &DieLpn| lpn.is_none() || lpn.0 < logical_pages;
        if !self.named.iter().all(is_page) {
            return Err("an OOB names a page that does not exist".into());
        }
        let is_end = |&end: &u32| end <= self.pages_per_block;
        match self.valid.is_counted() && self.ends.iter().all(is_end) {
            true => Ok(()),
            false => Err("valid pages are miscounted, or a block is too long".into()),
        }
    }
}
