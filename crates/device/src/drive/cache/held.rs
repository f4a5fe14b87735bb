//! The sectors of writes that have not reached the flash: their bytes, and which sectors of a page there are. Which pages
//! leave first is decided by the core's [`WriteBuffer`], as in a simulation.

use floatgate_core::Lpn;
use floatgate_core::buffer::WriteBuffer;

use super::{CacheSetup, Shape};

/// Bytes of the longest run that is written out at once, but for a page that is longer: neighbours in one request let
/// schemes that map blocks merge less.
pub(super) const RUN_BYTES: usize = 256 << 10;

/// Sectors that are held, page by page in slots. See the module's text.
pub(super) struct HeldSectors {
    shape: Shape,
    pages: WriteBuffer,
    slots: u32,
    /// Slots: a bit for each sector that is held, in so many words.
    bits: Vec<u64>,
    words: usize,
    data: Vec<u8>,
    /// Sectors of the longest run.
    run_sectors: u64,
}

impl HeldSectors {
    /// Room for as many whole pages as go into the bytes, one at least and no more than the device has; for none if there
    /// are no bytes.
    pub fn new(setup: &CacheSetup, shape: Shape, block_pages: u32) -> Self {
        let slots = shape.pages_in(setup.write_bytes);
        let words = shape.per_page.div_ceil(64) as usize;
        Self {
            shape,
            pages: WriteBuffer::new(slots, shape.pages, setup.eviction, block_pages),
            slots,
            bits: vec![0; slots as usize * words],
            words,
            data: vec![0; slots as usize * shape.page_bytes()],
            run_sectors: u64::from(shape.pages_of_a_run()) * shape.per_page,
        }
    }

    pub fn size_bytes(&self) -> u64 {
        self.data.len() as u64
    }

    /// Whether nothing can ever be held.
    pub fn is_none(&self) -> bool {
        self.slots == 0
    }

    /// Whether nothing is held.
    pub fn is_empty(&self) -> bool {
        self.pages.is_empty()
    }

    pub fn has_page(&self, page: u32) -> bool {
        self.pages.find(Lpn(page)).is_some()
    }

    pub fn has(&self, sector: u64) -> bool {
        let slot = self.pages.find(self.shape.page_of(sector));
        slot.is_some_and(|slot| {
            let (word, bit) = self.bit(slot, sector);
            self.bits[word] >> bit & 1 == 1
        })
    }

    /// Where the bit of a sector is.
    fn bit(&self, slot: u32, sector: u64) -> (usize, u64) {
        let at = sector % self.shape.per_page;
        (slot as usize * self.words + (at / 64) as usize, at % 64)
    }

    /// Where the bytes of a sector that is held are, and of those behind it in its page.
    fn bytes_at(&self, slot: u32, sector: u64) -> usize {
        let per_page = self.shape.per_page;
        let at = u64::from(slot) * per_page + sector % per_page;
        at as usize * self.shape.sector_bytes
    }

    /// The end of the sectors from there on that are held, or are not, as the first one; no further than `end`.
    pub fn end_of_run(&self, sector: u64, end: u64) -> u64 {
        let is_held = self.has(sector);
        let mut behind = sector + 1..end;
        behind
            .find(|&next| self.has(next) != is_held)
            .unwrap_or(end)
    }

    /// Pages that have to leave before all of a stretch that is not held finds room, and so before its first page does.
    pub fn pages_in_the_way(&self, page: u32, end: u32) -> u32 {
        if self.pages.free() > 0 || self.has_page(page) {
            return 0;
        }
        let missing = (page..end).filter(|&page| !self.has_page(page));
        missing.take(self.slots as usize).count() as u32
    }

    /// Takes in sectors of one page, for which there is room; says how many of them were held.
    pub fn take(&mut self, sector: u64, data: &[u8]) -> u64 {
        let slot = self.pages.put(self.shape.page_of(sector)).slot;
        let at = self.bytes_at(slot, sector);
        self.data[at..at + data.len()].copy_from_slice(data);
        let mut replaced = 0;
        for sector in (sector..).take(data.len() / self.shape.sector_bytes) {
            let (word, bit) = self.bit(slot, sector);
            replaced += self.bits[word] >> bit & 1;
            self.bits[word] |= 1 << bit;
        }
        replaced
    }

    /// The sectors are not held any more; says how many of them were.
    pub fn forget(&mut self, first: u64, end: u64) -> u64 {
        let mut forgotten = 0;
        for (at, until) in self.shape.by_page(first, end) {
            let page = self.shape.page_of(at);
            let Some(slot) = self.pages.find(page) else {
                continue;
            };
            for sector in at..until {
                let (word, bit) = self.bit(slot, sector);
                forgotten += self.bits[word] >> bit & 1;
                self.bits[word] &= !(1 << bit);
            }
            let words = slot as usize * self.words..(slot as usize + 1) * self.words;
            if self.bits[words].iter().all(|&word| word == 0) {
                self.pages.remove(page);
            }
        }
        forgotten
    }

    /// The bytes of held sectors, page by page.
    pub fn bytes(&self, first: u64, end: u64) -> impl Iterator<Item = &[u8]> {
        let parts = self.shape.by_page(first, end);
        parts.filter_map(|(at, until)| {
            let from = self.bytes_at(self.pages.find(self.shape.page_of(at))?, at);
            let bytes = (until - at) as usize * self.shape.sector_bytes;
            Some(&self.data[from..from + bytes])
        })
    }

    /// The runs of sectors that leave next, so many pages of them at least, in the order in which they leave.
    pub fn next_runs(&self, pages: u32) -> Vec<(u64, u64)> {
        self.runs(self.pages.victims(pages).map(|held| held.lpn.0))
    }

    /// All runs that are held, in the order of their addresses.
    pub fn all_runs(&self) -> Vec<(u64, u64)> {
        let held = self.pages.victims(u32::MAX).map(|held| held.lpn.0);
        let mut pages: Vec<u32> = held.collect();
        pages.sort_unstable();
        self.runs(pages.into_iter())
    }

    fn runs(&self, pages: impl Iterator<Item = u32>) -> Vec<(u64, u64)> {
        let mut runs: Vec<(u64, u64)> = Vec::new();
        for page in pages {
            let mut at = u64::from(page) * self.shape.per_page;
            let end = at + self.shape.per_page;
            while at < end {
                let until = self.end_of_run(at, end);
                if self.has(at) {
                    match runs.last_mut() {
                        Some(run) if run.1 == at && !at.is_multiple_of(self.run_sectors) => {
                            run.1 = until;
                        }
                        _ => runs.push((at, until)),
                    }
                }
                at = until;
            }
        }
        runs
    }
}
