//! The memory of a drive: a write cache and a read cache in front of a device.
//!
//! A write is acknowledged when it is in memory. It reaches the flash when the cache is full (what the core's policy names,
//! [`floatgate_core::buffer`]), when nobody asks for anything, or with a flush. So a power cut or the end of the process
//! takes what no flush has covered, in any part: a later write may be there and an earlier one not. What was flushed is
//! there, and nothing is written on the far side of a flush: a flush returns when all before it is on the flash, and
//! nothing after it has begun.
//!
//! If the cache is *protected*, its memory outlasts the power until all is on the flash: a flush leaves it as it is, and a
//! power cut takes nothing that was acknowledged. The end of the process still does, unless it is an orderly one.
//!
//! A sector that is written again while it is held is one write to the flash instead of two. The read cache holds pages
//! as the flash has them; what is held of a page in the write cache goes before that.

use floatgate_core::Lpn;
use floatgate_core::buffer::Eviction;
use floatgate_core::rng::SplitMix64;

use super::medium::Medium;
use super::{Drive, Figures, Loss, Lost, Unflushed};
use crate::error::DeviceError;
use crate::power::Supply;
use crate::tear::CutKind;

mod fetched;
mod held;
#[cfg(test)]
mod tests;

use fetched::Fetched;
use held::{HeldSectors, RUN_BYTES};

/// What the caches of a device are like.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct CacheSetup {
    /// Bytes of the write cache, rounded to pages; 0: there is none.
    pub write_bytes: u64,
    /// What leaves it first.
    pub eviction: Eviction,
    /// Whether it outlasts the power.
    pub is_protected: bool,
    /// Bytes of the read cache, rounded to pages; 0: there is none.
    pub read_bytes: u64,
    /// Bytes that are read ahead of sequential reads.
    pub ahead_bytes: u64,
}

/// What the caches have done since they were made.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, serde::Serialize, serde::Deserialize)]
pub struct CacheFigures {
    /// Bytes the write cache can hold.
    pub size_bytes: u64,
    /// Whether it outlasts the power.
    pub is_protected: bool,
    /// Bytes in it that have not reached the flash yet.
    pub unwritten_bytes: u64,
    /// Bytes taken in.
    pub taken_bytes: u64,
    /// Of these, bytes that replaced others that had not been written out.
    pub merged_bytes: u64,
    /// Bytes written out.
    pub written_bytes: u64,
    /// Bytes read from the write cache.
    pub read_bytes: u64,
    /// Bytes the read cache can hold.
    pub read_cache_bytes: u64,
    /// Bytes read from the read cache.
    pub read_cached_bytes: u64,
    /// Bytes read ahead into it.
    pub ahead_bytes: u64,
    /// Of these, bytes that were read afterwards.
    pub ahead_used_bytes: u64,
    /// Of these, bytes that were dropped before.
    pub ahead_wasted_bytes: u64,
}

/// Sectors and pages of a device.
#[derive(Clone, Copy, Debug)]
struct Shape {
    sector_bytes: usize,
    /// Sectors of a page.
    per_page: u64,
    sectors: u64,
    pages: u32,
}

impl Shape {
    fn of(drive: &dyn Drive) -> Self {
        let (sector_bytes, sectors) = (drive.sector_bytes(), drive.sectors());
        let per_page = (drive.page_bytes() / sector_bytes) as u64;
        Self {
            sector_bytes,
            per_page,
            sectors,
            pages: (sectors / per_page) as u32,
        }
    }

    fn page_bytes(&self) -> usize {
        self.per_page as usize * self.sector_bytes
    }

    fn page_of(&self, sector: u64) -> Lpn {
        Lpn((sector / self.per_page) as u32)
    }

    /// Whole pages in so many bytes, if there are any bytes: one at least, and no more than the device has.
    fn pages_in(&self, bytes: u64) -> u32 {
        let pages = (bytes / self.page_bytes() as u64).clamp(1, self.pages.max(1).into());
        if bytes == 0 { 0 } else { pages as u32 }
    }

    fn pages_of_a_run(&self) -> u32 {
        (RUN_BYTES / self.page_bytes()).max(1) as u32
    }

    /// The parts of a stretch of sectors that lie in one page each.
    fn by_page(&self, first: u64, end: u64) -> impl Iterator<Item = (u64, u64)> + use<> {
        let (per_page, mut at) = (self.per_page, first);
        std::iter::from_fn(move || {
            let from = at;
            at = ((from / per_page + 1) * per_page).min(end);
            (from < end).then_some((from, at))
        })
    }
}

/// A device behind its caches. See the module's text.
pub struct Cached {
    inner: Box<dyn Drive>,
    shape: Shape,
    is_protected: bool,
    held: HeldSectors,
    fetched: Option<Fetched>,
    /// A run on its way to the flash, or a page on its way from there.
    moved: Vec<u8>,
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
    /// Empty caches in front of a device.
    pub fn new(inner: Box<dyn Drive>, setup: &CacheSetup) -> Self {
        let shape = Shape::of(&*inner);
        let held = HeldSectors::new(setup, shape, inner.block_pages());
        let fetched = Fetched::new(setup, shape);
        Self {
            shape,
            is_protected: setup.is_protected,
            figures: CacheFigures {
                size_bytes: held.size_bytes(),
                is_protected: setup.is_protected,
                read_cache_bytes: fetched.as_ref().map_or(0, Fetched::size_bytes),
                ..CacheFigures::default()
            },
            held,
            fetched,
            moved: Vec::new(),
            now_ns: 0,
            is_busy: false,
            inner,
        }
    }

    fn check(&self, sector: u64, bytes: usize) -> Result<u64, DeviceError> {
        let (sector_bytes, sectors) = (self.shape.sector_bytes, self.shape.sectors);
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

    /// The flash's own time passes with its own requests: those that end here are none of its business.
    fn ask<T>(
        &mut self,
        ask: impl FnOnce(&mut dyn Drive) -> Result<T, DeviceError>,
    ) -> Result<T, DeviceError> {
        self.inner.tick(self.now_ns)?;
        ask(&mut *self.inner)
    }

    fn forget(&mut self, first: u64, end: u64) {
        let bytes = self.held.forget(first, end) * self.shape.sector_bytes as u64;
        self.figures.unwritten_bytes -= bytes;
    }

    /// The flash below is about to change there, or may have changed there if that fails.
    fn outdate(&mut self, first: u64, end: u64) {
        if let Some(fetched) = &mut self.fetched {
            fetched.outdate(first, end);
        }
    }

    /// Writes out a run of held sectors.
    fn write_run(&mut self, (first, end): (u64, u64)) -> Result<(), DeviceError> {
        self.outdate(first, end);
        self.moved.clear();
        let parts = self.held.bytes(first, end);
        parts.for_each(|part| self.moved.extend_from_slice(part));
        self.inner.tick(self.now_ns)?;
        self.inner.write(first, &self.moved)?;
        self.figures.written_bytes += self.moved.len() as u64;
        self.forget(first, end);
        Ok(())
    }

    /// Writes out the pages that leave next, so many at least.
    fn write_next(&mut self, pages: u32) -> Result<(), DeviceError> {
        let mut runs = self.held.next_runs(pages).into_iter();
        runs.try_for_each(|run| self.write_run(run))
    }

    /// Writes out all, in the order of the addresses.
    fn write_all(&mut self) -> Result<(), DeviceError> {
        let mut runs = self.held.all_runs().into_iter();
        runs.try_for_each(|run| self.write_run(run))
    }

    /// Reads sectors that are not held in the write cache.
    fn read_flash(&mut self, first: u64, data: &mut [u8]) -> Result<(), DeviceError> {
        if self.fetched.is_none() {
            return self.ask(|inner| inner.read(first, data));
        }
        let end = first + (data.len() / self.shape.sector_bytes) as u64;
        let mut rest = data;
        for (at, until) in self.shape.by_page(first, end) {
            let bytes = (until - at) as usize * self.shape.sector_bytes;
            let (part, behind) = rest.split_at_mut(bytes);
            let from = (at % self.shape.per_page) as usize * self.shape.sector_bytes;
            let page = self.shape.page_of(at);
            let cached = self.fetched.as_mut().and_then(|cache| cache.read(page));
            match cached {
                Some(cached) => {
                    part.copy_from_slice(&cached[from..from + bytes]);
                    self.figures.read_cached_bytes += bytes as u64;
                }
                None => {
                    self.fetch(page, false)?;
                    part.copy_from_slice(&self.moved[from..from + bytes]);
                }
            }
            rest = behind;
        }
        Ok(())
    }

    /// Reads a whole page from the flash and keeps it.
    fn fetch(&mut self, page: Lpn, ahead: bool) -> Result<(), DeviceError> {
        self.moved.resize(self.shape.page_bytes(), 0);
        self.inner.tick(self.now_ns)?;
        let sector = u64::from(page.0) * self.shape.per_page;
        self.inner.read(sector, &mut self.moved)?;
        if let Some(fetched) = &mut self.fetched {
            fetched.put(page, &self.moved, ahead);
        }
        Ok(())
    }

    /// Reads ahead what will follow, if what was read goes on where a read before it ended. Nobody waits for that, and
    /// nobody is told if it fails: whoever asks for the page is.
    fn look_ahead(&mut self, first: u64, end: u64) {
        let Some(fetched) = &mut self.fetched else {
            return;
        };
        let pages = fetched.next_pages(first, end);
        let pace = |drive: &mut Box<dyn Drive>| {
            let pace = drive.supply().and_then(|supply| supply.pace());
            pace.map(|pace| pace.end_ns())
        };
        let end_ns = pace(&mut self.inner);
        for page in pages.map(Lpn) {
            let is_there = self.fetched.as_ref().is_some_and(|cache| cache.has(page));
            if is_there || self.inner.is_hole(page.0) {
                continue;
            }
            if self.fetch(page, true).is_err() {
                break;
            }
            self.figures.ahead_bytes += self.shape.page_bytes() as u64;
        }
        let pace = self.inner.supply().and_then(|supply| supply.pace());
        if let (Some(pace), Some(end_ns)) = (pace, end_ns) {
            pace.set_end_ns(end_ns);
        }
    }

    /// The power will go in the middle of writing that run out.
    fn arm_in(&mut self, (first, end): (u64, u64), rng: &mut SplitMix64) {
        let pages = (end - first).div_ceil(self.shape.per_page);
        let (nth, seed) = (1 + rng.below(pages), rng.next());
        if let Some(supply) = self.inner.supply() {
            supply.arm(nth, CutKind::Torn, seed);
        }
    }
}

impl Drive for Cached {
    fn scheme(&self) -> &'static str {
        self.inner.scheme()
    }

    fn sector_bytes(&self) -> usize {
        self.shape.sector_bytes
    }

    fn sectors(&self) -> u64 {
        self.shape.sectors
    }

    fn page_bytes(&self) -> usize {
        self.inner.page_bytes()
    }

    fn block_pages(&self) -> u32 {
        self.inner.block_pages()
    }

    fn read_only(&self) -> Option<String> {
        self.inner.read_only()
    }

    fn read(&mut self, sector: u64, data: &mut [u8]) -> Result<(), DeviceError> {
        let end = sector + self.check(sector, data.len())?;
        self.is_busy = true;
        let (mut at, mut rest) = (sector, data);
        while at < end {
            // What is held is not asked for below: there it may be lost, and here it is not.
            let is_held = self.held.has(at);
            let until = self.held.end_of_run(at, end);
            let (part, behind) = rest.split_at_mut((until - at) as usize * self.shape.sector_bytes);
            match is_held {
                true => {
                    let mut to = &mut *part;
                    for bytes in self.held.bytes(at, until) {
                        let (here, behind) = to.split_at_mut(bytes.len());
                        here.copy_from_slice(bytes);
                        to = behind;
                    }
                    self.figures.read_bytes += part.len() as u64;
                }
                false => self.read_flash(at, part)?,
            }
            (at, rest) = (until, behind);
        }
        self.look_ahead(sector, end);
        Ok(())
    }

    fn write(&mut self, sector: u64, data: &[u8]) -> Result<(), DeviceError> {
        let end = sector + self.check(sector, data.len())?;
        if let Some(why) = self.inner.read_only() {
            return Err(DeviceError::ReadOnly { why });
        }
        self.is_busy = true;
        if self.held.is_none() {
            self.outdate(sector, end);
            return self.ask(|inner| inner.write(sector, data));
        }
        let end_page = end.div_ceil(self.shape.per_page) as u32;
        let mut rest = data;
        for (at, until) in self.shape.by_page(sector, end) {
            let page = self.shape.page_of(at).0;
            let in_the_way = self.held.pages_in_the_way(page, end_page);
            self.write_next(in_the_way)?;
            let sector_bytes = self.shape.sector_bytes;
            let (part, behind) = rest.split_at((until - at) as usize * sector_bytes);
            let merged_bytes = self.held.take(at, part) * sector_bytes as u64;
            self.figures.merged_bytes += merged_bytes;
            self.figures.unwritten_bytes += part.len() as u64 - merged_bytes;
            self.figures.taken_bytes += part.len() as u64;
            rest = behind;
        }
        Ok(())
    }

    fn write_through(&mut self, sector: u64, data: &[u8]) -> Result<(), DeviceError> {
        let end = sector + self.check(sector, data.len())?;
        self.is_busy = true;
        self.outdate(sector, end);
        self.ask(|inner| inner.write_through(sector, data))?;
        // What is held of the range is older.
        self.forget(sector, end);
        Ok(())
    }

    fn trim(&mut self, sector: u64, count: u64) -> Result<(), DeviceError> {
        self.is_busy = true;
        let per_page = self.shape.per_page;
        let first = sector.div_ceil(per_page) * per_page;
        let end = sector.saturating_add(count) / per_page * per_page;
        self.outdate(first, end.min(self.shape.sectors));
        self.ask(|inner| inner.trim(sector, count))?;
        self.forget(first, end.max(first));
        Ok(())
    }

    fn is_hole(&self, page: u32) -> bool {
        !self.held.has_page(page) && self.inner.is_hole(page)
    }

    fn flush(&mut self) -> Result<(), DeviceError> {
        self.is_busy = true;
        if !self.is_protected {
            self.write_all()?;
        }
        self.ask(|inner| inner.flush())
    }

    fn tick(&mut self, now_ns: u64) -> Result<(), DeviceError> {
        self.now_ns = now_ns;
        if std::mem::take(&mut self.is_busy) {
            return Ok(());
        }
        if !self.held.is_empty() && self.inner.read_only().is_none() {
            return self.write_next(self.shape.pages_of_a_run());
        }
        self.inner.tick(now_ns)
    }

    fn supply(&mut self) -> Option<&mut Supply> {
        self.inner.supply()
    }

    fn figures(&self) -> Figures {
        let ahead = self.fetched.as_ref().map(Fetched::ahead);
        let (ahead, page_bytes) = (ahead.unwrap_or_default(), self.shape.page_bytes() as u64);
        Figures {
            cache: Some(CacheFigures {
                ahead_used_bytes: ahead.used * page_bytes,
                ahead_wasted_bytes: ahead.wasted * page_bytes,
                ..self.figures
            }),
            ..self.inner.figures()
        }
    }

    fn medium(&self) -> Option<Medium> {
        self.inner.medium()
    }

    fn lose(&mut self, loss: Loss, rng: &mut SplitMix64) -> Lost {
        let mut runs = self.held.all_runs();
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
        for (i, run) in (1..).zip(runs) {
            if i == last && loss.tear {
                self.arm_in(run, rng);
            }
            if self.write_run(run).is_err() {
                break;
            }
        }
        lost
    }

    fn outlasting(&self) -> Option<Vec<(u64, Vec<u8>)>> {
        let runs = self.held.all_runs().into_iter();
        let with_bytes = runs.map(|(first, end)| {
            let parts: Vec<&[u8]> = self.held.bytes(first, end).collect();
            (first, parts.concat())
        });
        self.is_protected.then(|| with_bytes.collect())
    }

    fn close(mut self: Box<Self>) -> Result<(), DeviceError> {
        // A flush of a protected cache leaves it as it is; the end must not.
        let written = self.write_all();
        let flushed = written.and_then(|()| self.flush());
        self.inner.close().and(flushed)
    }
}

fn shuffle(runs: &mut [(u64, u64)], rng: &mut SplitMix64) {
    for i in (1..runs.len()).rev() {
        runs.swap(i, rng.below(i as u64 + 1) as usize);
    }
}
