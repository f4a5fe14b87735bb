//! A volatile write cache in front of a device, as drives have one.
//!
//! A write is acknowledged when it is in memory. It reaches the flash when the cache is full (the oldest page, and what
//! lies around it), when nobody asks for anything, or with a flush. So a power cut or the end of the process takes what
//! no flush has covered, in any part: a later write may be there and an earlier one not. What was flushed is there, and
//! nothing is written on the far side of a flush: a flush returns when all before it is on the flash, and nothing after it
//! has begun.
//!
//! A sector that is written again while it is held is one write to the flash instead of two.

use floatgate_core::rng::SplitMix64;

use super::medium::Medium;
use super::{Drive, Figures, Loss, Lost, Unflushed};
use crate::error::DeviceError;
use crate::power::Supply;
use crate::tear::CutKind;

/// No page, no slot.
const NONE: u32 = u32::MAX;
/// Bytes of the stretch of the device that is written out at once: neighbours in one request let schemes that map blocks
/// merge less.
const STRETCH_BYTES: usize = 256 << 10;

/// What the cache has done since it was made.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, serde::Serialize, serde::Deserialize)]
pub struct CacheFigures {
    /// Bytes it can hold.
    pub size_bytes: u64,
    /// Bytes that have not reached the flash yet.
    pub unwritten_bytes: u64,
    /// Bytes taken in.
    pub taken_bytes: u64,
    /// Of these, bytes that replaced others that had not been written out.
    pub merged_bytes: u64,
    /// Bytes written out.
    pub written_bytes: u64,
    /// Bytes read from it.
    pub read_bytes: u64,
}

/// A device behind a volatile write cache. See the module's text.
pub struct Cached {
    inner: Box<dyn Drive>,
    sector_bytes: usize,
    /// Sectors of a page.
    per_page: u64,
    sectors: u64,
    /// Pages of the device: the slot of each, or [`NONE`].
    slot_of: Vec<u32>,
    /// Slots: the page in each, or [`NONE`].
    page_of: Vec<u32>,
    /// Slots: the next younger one.
    younger: Vec<u32>,
    /// Slots: the next older one.
    older: Vec<u32>,
    oldest: u32,
    youngest: u32,
    free: Vec<u32>,
    /// Slots: a bit for each sector that is held, in so many words.
    held: Vec<u64>,
    words: usize,
    data: Vec<u8>,
    /// Sectors of a stretch.
    stretch: u64,
    /// A run on its way to the flash.
    run: Vec<u8>,
    /// Pages in the order of their addresses, while a flush writes them.
    order: Vec<u32>,
    now_ns: u64,
    /// A request came since the last tick.
    is_busy: bool,
    figures: CacheFigures,
}

impl std::fmt::Debug for Cached {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Cached").finish_non_exhaustive()
    }
}

impl Cached {
    /// An empty cache of so many bytes, a page at least and no more than the device.
    pub fn new(inner: Box<dyn Drive>, bytes: u64) -> Self {
        let (sector_bytes, page_bytes) = (inner.sector_bytes(), inner.page_bytes());
        let per_page = (page_bytes / sector_bytes) as u64;
        let pages = inner.sectors().div_ceil(per_page);
        let slots = (bytes / page_bytes as u64).clamp(1, pages.max(1)) as usize;
        let words = per_page.div_ceil(64) as usize;
        let stretch = (STRETCH_BYTES / page_bytes).max(1) * page_bytes;
        Self {
            sector_bytes,
            per_page,
            sectors: inner.sectors(),
            slot_of: vec![NONE; pages as usize],
            page_of: vec![NONE; slots],
            younger: vec![NONE; slots],
            older: vec![NONE; slots],
            oldest: NONE,
            youngest: NONE,
            free: (0..slots as u32).rev().collect(),
            held: vec![0; slots * words],
            words,
            data: vec![0; slots * page_bytes],
            stretch: (stretch / sector_bytes) as u64,
            run: vec![0; stretch],
            order: Vec::with_capacity(slots),
            now_ns: 0,
            is_busy: false,
            figures: CacheFigures {
                size_bytes: (slots * page_bytes) as u64,
                ..CacheFigures::default()
            },
            inner,
        }
    }

    fn check(&self, sector: u64, bytes: usize) -> Result<u64, DeviceError> {
        let (sector_bytes, sectors) = (self.sector_bytes, self.sectors);
        if !bytes.is_multiple_of(sector_bytes) {
            return Err(DeviceError::Unaligned {
                bytes,
                sector_bytes,
            });
        }
        let count = (bytes / sector_bytes) as u64;
        if sector.checked_add(count).is_none_or(|end| end > sectors) {
            return Err(DeviceError::OutOfRange {
                sector,
                count,
                sectors,
            });
        }
        Ok(count)
    }

    fn is_held(&self, sector: u64) -> bool {
        let slot = self.slot_of[(sector / self.per_page) as usize];
        slot != NONE && {
            let (word, bit) = self.bit(slot, sector);
            self.held[word] >> bit & 1 == 1
        }
    }

    /// Where the bit of a sector is.
    fn bit(&self, slot: u32, sector: u64) -> (usize, u64) {
        let at = sector % self.per_page;
        (slot as usize * self.words + (at / 64) as usize, at % 64)
    }

    /// Where the bytes of a sector that is held are, and of those behind it in its page.
    fn bytes_at(&self, slot: u32, sector: u64) -> usize {
        let at = u64::from(slot) * self.per_page + sector % self.per_page;
        at as usize * self.sector_bytes
    }

    /// The end of the sectors from there on that are held, or are not, as the first one; no further than `end`.
    fn end_of_run(&self, sector: u64, end: u64) -> u64 {
        let is_held = self.is_held(sector);
        let behind = sector + 1..end;
        behind
            .into_iter()
            .find(|&next| self.is_held(next) != is_held)
            .unwrap_or(end)
    }

    /// Takes in sectors of one page.
    fn take(&mut self, slot: u32, sector: u64, data: &[u8]) {
        let at = self.bytes_at(slot, sector);
        self.data[at..at + data.len()].copy_from_slice(data);
        for sector in (sector..).take(data.len() / self.sector_bytes) {
            let (word, bit) = self.bit(slot, sector);
            let is_held = self.held[word] >> bit & 1;
            self.held[word] |= 1 << bit;
            let bytes = self.sector_bytes as u64;
            self.figures.merged_bytes += is_held * bytes;
            self.figures.unwritten_bytes += (1 - is_held) * bytes;
        }
        self.figures.taken_bytes += data.len() as u64;
    }

    /// The slot of a page. It has room for it, though something else may have to be written out first.
    fn slot_for(&mut self, page: u32) -> Result<u32, DeviceError> {
        let found = self.slot_of[page as usize];
        if found != NONE {
            return Ok(found);
        }
        let slot = match self.free.pop() {
            Some(slot) => slot,
            None => {
                self.write_oldest()?;
                // A stretch that was written out has left the slots of its pages.
                self.free.pop().expect("the oldest page was written out")
            }
        };
        (self.slot_of[page as usize], self.page_of[slot as usize]) = (slot, page);
        (self.older[slot as usize], self.younger[slot as usize]) = (self.youngest, NONE);
        match self.youngest {
            NONE => self.oldest = slot,
            youngest => self.younger[youngest as usize] = slot,
        }
        self.youngest = slot;
        Ok(slot)
    }

    /// The sectors are not held any more.
    fn forget(&mut self, first: u64, end: u64) {
        let mut at = first;
        while at < end {
            let page = at / self.per_page;
            let until = ((page + 1) * self.per_page).min(end);
            let slot = self.slot_of[page as usize];
            if slot != NONE {
                for sector in at..until {
                    let (word, bit) = self.bit(slot, sector);
                    let is_held = self.held[word] >> bit & 1;
                    self.held[word] &= !(1 << bit);
                    self.figures.unwritten_bytes -= is_held * self.sector_bytes as u64;
                }
                let words = slot as usize * self.words..(slot as usize + 1) * self.words;
                if self.held[words].iter().all(|&word| word == 0) {
                    self.release(slot);
                }
            }
            at = until;
        }
    }

    fn release(&mut self, slot: u32) {
        let at = slot as usize;
        let (older, younger) = (self.older[at], self.younger[at]);
        match older {
            NONE => self.oldest = younger,
            older => self.younger[older as usize] = younger,
        }
        match younger {
            NONE => self.youngest = older,
            younger => self.older[younger as usize] = older,
        }
        let page = std::mem::replace(&mut self.page_of[at], NONE);
        self.slot_of[page as usize] = NONE;
        self.free.push(slot);
    }

    /// The flash's own time passes with its own requests: those that end here are none of its business.
    fn ask<T>(
        &mut self,
        ask: impl FnOnce(&mut dyn Drive) -> Result<T, DeviceError>,
    ) -> Result<T, DeviceError> {
        self.inner.tick(self.now_ns)?;
        ask(&mut *self.inner)
    }

    /// Copies a run of held sectors to where it can be written from; returns its bytes.
    fn gather(&mut self, first: u64, end: u64) -> usize {
        let mut done = 0;
        let mut at = first;
        while at < end {
            let page = at / self.per_page;
            let until = ((page + 1) * self.per_page).min(end);
            let bytes = (until - at) as usize * self.sector_bytes;
            let from = self.bytes_at(self.slot_of[page as usize], at);
            self.run[done..done + bytes].copy_from_slice(&self.data[from..from + bytes]);
            done += bytes;
            at = until;
        }
        done
    }

    /// Writes out a run of held sectors.
    fn write_run(&mut self, first: u64, end: u64) -> Result<(), DeviceError> {
        let bytes = self.gather(first, end);
        self.inner.tick(self.now_ns)?;
        self.inner.write(first, &self.run[..bytes])?;
        self.figures.written_bytes += bytes as u64;
        self.forget(first, end);
        Ok(())
    }

    /// Writes out what is held of the stretch of the oldest page.
    fn write_oldest(&mut self) -> Result<(), DeviceError> {
        let page = u64::from(self.page_of[self.oldest as usize]);
        let begin = page * self.per_page / self.stretch * self.stretch;
        self.write_stretch(begin)
    }

    fn write_stretch(&mut self, begin: u64) -> Result<(), DeviceError> {
        let end = (begin + self.stretch).min(self.sectors);
        let mut at = begin;
        while at < end {
            let until = self.end_of_run(at, end);
            if self.is_held(at) {
                self.write_run(at, until)?;
            }
            at = until;
        }
        Ok(())
    }

    /// Writes out all, in the order of the addresses.
    fn write_all(&mut self) -> Result<(), DeviceError> {
        let mut order = std::mem::take(&mut self.order);
        order.clear();
        order.extend(self.page_of.iter().filter(|&&page| page != NONE));
        order.sort_unstable();
        let outcome = order.iter().try_for_each(|&page| {
            if self.slot_of[page as usize] == NONE {
                return Ok(());
            }
            let begin = u64::from(page) * self.per_page / self.stretch * self.stretch;
            self.write_stretch(begin)
        });
        self.order = order;
        outcome
    }

    /// All runs that are held, in the order of their addresses.
    fn runs(&self) -> Vec<(u64, u64)> {
        let mut pages: Vec<u32> = self.page_of.clone();
        pages.retain(|&page| page != NONE);
        pages.sort_unstable();
        let mut runs: Vec<(u64, u64)> = Vec::new();
        for page in pages {
            let (mut at, end) = (
                u64::from(page) * self.per_page,
                ((u64::from(page) + 1) * self.per_page).min(self.sectors),
            );
            while at < end {
                let until = self.end_of_run(at, end);
                if self.is_held(at) {
                    match runs.last_mut() {
                        Some(run) if run.1 == at && !at.is_multiple_of(self.stretch) => {
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

impl Drive for Cached {
    fn scheme(&self) -> &'static str {
        self.inner.scheme()
    }

    fn sector_bytes(&self) -> usize {
        self.sector_bytes
    }

    fn sectors(&self) -> u64 {
        self.sectors
    }

    fn page_bytes(&self) -> usize {
        self.inner.page_bytes()
    }

    fn read_only(&self) -> Option<String> {
        self.inner.read_only()
    }

    fn read(&mut self, sector: u64, data: &mut [u8]) -> Result<(), DeviceError> {
        let end = sector + self.check(sector, data.len())?;
        self.is_busy = true;
        let mut at = sector;
        while at < end {
            // What is held is not asked for below: there it may be lost, and here it is not.
            let is_held = self.is_held(at);
            let mut until = self.end_of_run(at, end);
            if is_held {
                until = until.min((at / self.per_page + 1) * self.per_page);
            }
            let range = |at: u64| (at - sector) as usize * self.sector_bytes;
            let data = &mut data[range(at)..range(until)];
            match is_held {
                true => {
                    let from = self.bytes_at(self.slot_of[(at / self.per_page) as usize], at);
                    data.copy_from_slice(&self.data[from..from + data.len()]);
                    self.figures.read_bytes += data.len() as u64;
                }
                false => self.ask(|inner| inner.read(at, data))?,
            }
            at = until;
        }
        Ok(())
    }

    fn write(&mut self, sector: u64, data: &[u8]) -> Result<(), DeviceError> {
        let end = sector + self.check(sector, data.len())?;
        if let Some(why) = self.inner.read_only() {
            return Err(DeviceError::ReadOnly { why });
        }
        self.is_busy = true;
        let mut at = sector;
        while at < end {
            let page = at / self.per_page;
            let until = ((page + 1) * self.per_page).min(end);
            let slot = self.slot_for(page as u32)?;
            let range = |at: u64| (at - sector) as usize * self.sector_bytes;
            self.take(slot, at, &data[range(at)..range(until)]);
            at = until;
        }
        Ok(())
    }

    fn write_through(&mut self, sector: u64, data: &[u8]) -> Result<(), DeviceError> {
        let end = sector + self.check(sector, data.len())?;
        self.is_busy = true;
        self.ask(|inner| inner.write_through(sector, data))?;
        // What is held of the range is older.
        self.forget(sector, end);
        Ok(())
    }

    fn trim(&mut self, sector: u64, count: u64) -> Result<(), DeviceError> {
        self.is_busy = true;
        self.ask(|inner| inner.trim(sector, count))?;
        let first = sector.div_ceil(self.per_page) * self.per_page;
        let end = (sector + count) / self.per_page * self.per_page;
        self.forget(first, end.max(first));
        Ok(())
    }

    fn is_hole(&self, page: u32) -> bool {
        self.slot_of[page as usize] == NONE && self.inner.is_hole(page)
    }

    fn flush(&mut self) -> Result<(), DeviceError> {
        self.is_busy = true;
        self.write_all()?;
        self.ask(|inner| inner.flush())
    }

    fn tick(&mut self, now_ns: u64) -> Result<(), DeviceError> {
        self.now_ns = now_ns;
        if std::mem::take(&mut self.is_busy) {
            return Ok(());
        }
        if self.oldest != NONE && self.inner.read_only().is_none() {
            return self.write_oldest();
        }
        self.inner.tick(now_ns)
    }

    fn supply(&mut self) -> Option<&mut Supply> {
        self.inner.supply()
    }

    fn figures(&self) -> Figures {
        Figures {
            cache: Some(self.figures),
            ..self.inner.figures()
        }
    }

    fn medium(&self) -> Option<Medium> {
        self.inner.medium()
    }

    fn lose(&mut self, loss: Loss, rng: &mut SplitMix64) -> Lost {
        let mut runs = self.runs();
        let mut lost = Lost::default();
        if loss.unflushed == Unflushed::Drop {
            lost.dropped_runs = runs.len() as u64;
            return lost;
        }
        if loss.unflushed == Unflushed::Some {
            shuffle(&mut runs, rng);
            runs.retain_mut(|(first, end)| {
                let sectors = *end - *first;
                let fate = rng.below(2 + u64::from(loss.tear && sectors > 1));
                let counted = match fate {
                    0 => &mut lost.dropped_runs,
                    1 => &mut lost.kept_runs,
                    _ => &mut lost.torn_runs,
                };
                *counted += 1;
                if fate == 2 {
                    *end = *first + 1 + rng.below(sectors - 1);
                }
                fate > 0
            });
        } else {
            lost.kept_runs = runs.len() as u64;
        }
        let last = runs.len();
        for (i, (first, end)) in (1..).zip(runs) {
            if i == last && loss.tear {
                let pages = (end - first).div_ceil(self.per_page);
                let (nth, seed) = (1 + rng.below(pages), rng.next());
                if let Some(supply) = self.inner.supply() {
                    supply.arm(nth, CutKind::Torn, seed);
                }
            }
            if self.write_run(first, end).is_err() {
                break;
            }
        }
        lost
    }

    fn close(mut self: Box<Self>) -> Result<(), DeviceError> {
        let flushed = self.flush();
        self.inner.close().and(flushed)
    }
}

fn shuffle(runs: &mut [(u64, u64)], rng: &mut SplitMix64) {
    for i in (1..runs.len()).rev() {
        runs.swap(i, rng.below(i as u64 + 1) as usize);
    }
}
