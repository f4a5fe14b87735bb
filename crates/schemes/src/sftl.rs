//! `sftl`: page mapping with the map on flash and a cache of whole translation pages, compressed (S-FTL).
//!
//! **Paper.** Jiang, Zhang, Yuan, Hu, Chen, "S-FTL: An Efficient Address Translation for Flash Memory by Exploiting
//! Spatial Locality", MSST 2011. Its outline only: the abstract and what others say of it.
//!
//! **Rules.** docs/spec/sftl.md has every one of them, to the last counter; what it does not say is docs/spec/dftl.md.
//!
//! **RAM state.** Translation pages in the order of their use, each as long as the runs in it are many: where consecutive
//! pages lie at consecutive places, one place stands for all. The dirty buffer: the newer entries of pages that left with
//! few of them. GTD: where each translation page lies.
//!
//! **Flash state.** That of `dftl`.
//!
//! **How it writes, reads, reclaims.** As `dftl`. A miss loads a translation page whole; those used longest ago leave until there
//! is room. One with few newer entries leaves them in the buffer, which writes back the page that has most there when it is
//! full; one with many is written from memory, without a read. Changes split runs, so a cached page grows, and others
//! leave for it.
//!
//! **Recovery.** That of `dftl`; cache and buffer start empty.
//!
//! **Deviations and why.** Those of `dftl`. On several dies a run goes on C pages further, where the next page of the same die is:
//! consecutive pages lie on different dies. Two bitmaps a page (heads of runs, newer entries), the share of the buffer, and when
//! a page is sparse, are not the paper's. A page is loaded before others leave for it: only its content tells its size. This
//! program keeps all places in one table and the number of runs of every page, cached or not: which of them count is the
//! cache's account.

use crate::parts::lists::Lists;
use crate::parts::newer::{LpnBits, NewerEntries};
use crate::parts::on_demand::{MapScheme, OnDemand, OnFlashOptions, Reason, Request};
use crate::parts::page_store::PageStore;
use crate::parts::paged_map::{Content, PageCache, PagedMap};
use crate::parts::tournament::Tournament;
use crate::parts::translation::TranslationPages;
use floatgate_core::Refusal;
use floatgate_core::address::Lpn;
use floatgate_core::flash::Flash;
use floatgate_core::geometry::Geometry;
use floatgate_core::options;
use floatgate_core::report::{Observation, SchemeCounters, Table};
use floatgate_core::state;

/// Bytes of a cached page beside its entries: number and link.
const PAGE_BYTES: u64 = 8;
/// Bytes of a place.
const PLACE_BYTES: u64 = 4;
/// Bytes of an entry in the dirty buffer.
const BUFFERED_BYTES: u64 = 8;
/// Largest share of the dirty buffer, percent.
const MOST_BUFFER: u32 = 50;

options! {
    /// Options of `sftl`.
    pub struct SftlOptions {
        /// Memory for cached translation pages and the dirty buffer.
        cmt_bytes: u64 ["bytes"] = 131_072, samples [80, 100, 4_000];
        /// Share of the dirty buffer.
        dirty_buffer: u32 ["percent"] = 10, samples [0, 30, 50];
        /// A page with fewer newer entries than this leaves them in the buffer.
        dirty_few: u32 ["entries"] = 8, samples [0, 1, 3];
        ..on_flash: OnFlashOptions;
    }
}

impl SftlOptions {
    /// Entries of the dirty buffer.
    fn buffered(&self) -> u64 {
        (u128::from(self.cmt_bytes) * u128::from(self.dirty_buffer) / 100) as u64 / BUFFERED_BYTES
    }

    /// Bytes for cached pages.
    fn room(&self) -> u64 {
        self.cmt_bytes
            .saturating_sub(BUFFERED_BYTES.saturating_mul(self.buffered()))
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct Counters {
    hits: u64,
    inserts: u64,
    writebacks: u64,
}

state!(Counters {
    hits,
    inserts,
    writebacks
});

/// Cached translation pages and the dirty buffer.
#[derive(Debug)]
pub struct Runs {
    /// Cached pages, used longest ago first.
    order: Lists,
    /// The first entries of runs.
    heads: LpnBits,
    /// How many of them there are in each translation page.
    runs: Vec<u32>,
    /// Bytes of the cached pages.
    used: u64,
    /// Entries in the buffer by translation page, and in all.
    buffered: Vec<u32>,
    in_buffer: u64,
    /// The page with most of them.
    fullest: Tournament,
    counters: Counters,
    /// Bytes for cached pages; entries for which the buffer has room.
    room: u64,
    most_buffered: u64,
    few: u32,
    entries_per_page: u64,
}

state!(Runs { order, heads, runs, used, buffered, in_buffer, fullest, counters }
    fixed { room, most_buffered, few, entries_per_page });

impl Runs {
    fn new(options: &SftlOptions, store: &PageStore, pages: &TranslationPages) -> Self {
        let geometry = store.geometry();
        let count = pages.len() as usize;
        let mut cached = Self {
            order: Lists::new(count, 1),
            heads: LpnBits::new(geometry.logical_pages),
            runs: vec![0; count],
            used: 0,
            buffered: vec![0; count],
            in_buffer: 0,
            fullest: Tournament::new(count),
            counters: Counters::default(),
            room: options.room(),
            most_buffered: options.buffered(),
            few: options.dirty_few,
            entries_per_page: options.on_flash.tp_entries.into(),
        };
        for page in 0..pages.len() {
            let (first, last) = (pages.first_of(page), pages.last_of(page));
            for lpn in (first.0..=last.0).map(Lpn) {
                cached.see_head(store, lpn, page, first);
            }
        }
        cached
    }

    fn ram_bytes(geometry: &Geometry, pages: u64) -> u64 {
        LpnBits::ram_bytes(geometry.logical_pages)
            + 20 * pages
            + Tournament::<u64>::ram_bytes(pages)
    }

    fn is_cached(&self, page: u32) -> bool {
        self.order.list_of(page).is_some()
    }

    /// Bytes of a translation page in the cache.
    fn size(&self, page: u32) -> u64 {
        let runs = u64::from(self.runs[page as usize]);
        let compressed = self.entries_per_page.div_ceil(4) + PLACE_BYTES * runs;
        PAGE_BYTES + compressed.min(PLACE_BYTES * self.entries_per_page)
    }

    /// Whether an entry, of a page that begins at `first`, is the first of a run.
    fn is_head(store: &PageStore, lpn: Lpn, first: Lpn) -> bool {
        let geometry = store.geometry();
        if lpn.0 - first.0 < geometry.dies {
            return true;
        }
        let (place, before) = (store.place(lpn), store.place(Lpn(lpn.0 - geometry.dies)));
        if place.is_none() || before.is_none() {
            return place != before;
        }
        // Numbers go on from die to die, runs do not.
        let die = |at| geometry.die_of(geometry.block_of(at));
        place.0 != before.0 + 1 || die(place) != die(before)
    }

    fn see_head(&mut self, store: &PageStore, lpn: Lpn, page: u32, first: Lpn) {
        let is_head = Self::is_head(store, lpn, first);
        if self.heads.put(lpn, is_head) {
            let runs = &mut self.runs[page as usize];
            *runs = if is_head { *runs + 1 } else { *runs - 1 };
        }
    }

    /// The place of an entry has changed: it may begin a run or no longer, and so may the next of its die.
    fn see_change(&mut self, store: &PageStore, lpn: Lpn, page: u32, (first, last): (Lpn, Lpn)) {
        let before = self.size(page);
        self.see_head(store, lpn, page, first);
        let dies = store.geometry().dies;
        if last.0 - lpn.0 >= dies {
            self.see_head(store, Lpn(lpn.0 + dies), page, first);
        }
        if self.is_cached(page) {
            self.used = self.used - before + self.size(page);
        }
    }

    fn set_buffered(&mut self, page: u32, entries: u32) {
        let before = std::mem::replace(&mut self.buffered[page as usize], entries);
        self.in_buffer = self.in_buffer - u64::from(before) + u64::from(entries);
        self.fullest.set(page, entries.into());
    }
}

impl PagedMap<Runs> {
    /// Room in the buffer for so many entries more.
    fn make_buffer_room<F: Flash>(
        &mut self,
        flash: &mut F,
        store: &mut PageStore,
        entries: u64,
        request: &Request<F::Token>,
    ) -> Result<(), F::Error> {
        while self.cache.in_buffer + entries > self.cache.most_buffered {
            let fullest = self.cache.fullest.first().expect("the buffer is not empty");
            self.cache.counters.writebacks += 1;
            let content = Content::OnFlash;
            self.write_back(flash, store, fullest, content, Reason::Evict, request)?;
        }
        Ok(())
    }

    /// The cached page used longest ago leaves.
    fn evict<F: Flash>(
        &mut self,
        flash: &mut F,
        store: &mut PageStore,
        request: &Request<F::Token>,
    ) -> Result<(), F::Error> {
        let page = self.cache.order.first(0).expect("cached pages take room");
        self.counters.evictions += 1;
        self.cache.used -= self.cache.size(page);
        self.cache.order.remove(page);
        let newer = self.newer.of_page(page);
        if newer == 0 {
            return Ok(());
        }
        self.counters.dirty_evictions += 1;
        if newer < self.cache.few && u64::from(newer) <= self.cache.most_buffered {
            self.make_buffer_room(flash, store, newer.into(), request)?;
            self.cache.set_buffered(page, newer);
            self.cache.counters.inserts += u64::from(newer);
            return Ok(());
        }
        let content = Content::InMemory;
        self.write_back(flash, store, page, content, Reason::Evict, request)
    }

    /// Pages leave until the others and so many bytes fit.
    fn fit<F: Flash>(
        &mut self,
        flash: &mut F,
        store: &mut PageStore,
        bytes: u64,
        request: &Request<F::Token>,
    ) -> Result<(), F::Error> {
        while self.cache.used + bytes > self.cache.room {
            self.evict(flash, store, request)?;
        }
        Ok(())
    }

    fn miss<F: Flash>(
        &mut self,
        flash: &mut F,
        store: &mut PageStore,
        page: u32,
        request: &mut Request<F::Token>,
    ) -> Result<F::Token, F::Error> {
        self.load(flash, store, page, request)?;
        self.cache.set_buffered(page, 0);
        let size = self.cache.size(page);
        self.fit(flash, store, size, request)?;
        self.cache.order.push_back(0, page);
        self.cache.used += size;
        Ok(self.newer.loaded(page, &request.producers))
    }
}

impl PageCache for Runs {
    fn prefetch(&self, lpn: Lpn) {
        self.heads.prefetch(lpn);
    }

    fn holds_page(&self, page: u32) -> bool {
        self.is_cached(page)
    }

    fn look_up<F: Flash>(
        map: &mut PagedMap<Self>,
        flash: &mut F,
        store: &mut PageStore,
        lpn: Lpn,
        request: &mut Request<F::Token>,
    ) -> Result<(bool, F::Token), F::Error> {
        let page = map.pages.page_of(lpn);
        if map.cache.is_cached(page) {
            map.cache.order.move_to_back(0, page);
            return Ok((true, map.newer.loaded(page, &request.producers)));
        }
        // What is newer and not cached is in the buffer.
        if map.newer.has(lpn) {
            map.cache.counters.hits += 1;
            return Ok((true, F::Token::default()));
        }
        Ok((false, map.miss(flash, store, page, request)?))
    }

    fn changed<F: Flash>(
        map: &mut PagedMap<Self>,
        flash: &mut F,
        store: &mut PageStore,
        lpn: Lpn,
        was_newer: bool,
        request: &Request<F::Token>,
    ) -> Result<(), F::Error> {
        let page = map.pages.page_of(lpn);
        let entries = (map.pages.first_of(page), map.pages.last_of(page));
        map.cache.see_change(store, lpn, page, entries);
        if map.cache.is_cached(page) {
            return map.fit(flash, store, 0, request);
        }
        if !was_newer {
            // A collection has written it back since its lookup found it in the buffer.
            map.make_buffer_room(flash, store, 1, request)?;
            map.cache
                .set_buffered(page, map.cache.buffered[page as usize] + 1);
            map.cache.counters.inserts += 1;
        }
        Ok(())
    }

    fn end_moves<F: Flash>(
        map: &mut PagedMap<Self>,
        flash: &mut F,
        store: &mut PageStore,
        request: &Request<F::Token>,
    ) -> Result<(), F::Error> {
        map.fit(flash, store, 0, request)
    }

    fn moved(
        &mut self,
        store: &PageStore,
        lpn: Lpn,
        page: u32,
        entries: (Lpn, Lpn),
        newer: &NewerEntries,
    ) -> bool {
        self.see_change(store, lpn, page, entries);
        self.is_cached(page) || newer.has(lpn)
    }

    fn written(&mut self, page: u32, _entries: impl Iterator<Item = Lpn>) {
        self.set_buffered(page, 0);
    }

    fn observe(&self, seen: &mut Observation) {
        seen.sum("cmt_pages", self.order.len(0).into());
        seen.sum("cmt_buffered", self.in_buffer as f64);
    }

    fn count(&self, counters: &mut SchemeCounters) {
        let c = &self.counters;
        counters.extra("buffer_hits", c.hits);
        counters.extra("buffer_inserts", c.inserts);
        counters.extra("buffer_writebacks", c.writebacks);
    }

    fn reset_own_counters(&mut self) {
        self.counters = Counters::default();
    }

    fn audit(
        &self,
        pages: &TranslationPages,
        newer: &NewerEntries,
        store: &PageStore,
    ) -> Result<(), String> {
        let (mut used, mut in_buffer) = (0, 0);
        for page in 0..pages.len() {
            let (first, last) = (pages.first_of(page), pages.last_of(page));
            let entries = (first.0..=last.0).map(Lpn);
            let heads = entries
                .clone()
                .filter(|&lpn| Self::is_head(store, lpn, first));
            let wrong = entries
                .clone()
                .find(|&lpn| self.heads.has(lpn) != Self::is_head(store, lpn, first));
            if wrong.is_some() || heads.count() as u32 != self.runs[page as usize] {
                return Err(format!(
                    "the runs of page {page} are not those of its places"
                ));
            }
            let buffered = self.buffered[page as usize];
            let is_cached = self.is_cached(page);
            if buffered != if is_cached { 0 } else { newer.of_page(page) } {
                return Err(format!("{buffered} entries of page {page} in the buffer"));
            }
            used += if is_cached { self.size(page) } else { 0 };
            in_buffer += u64::from(buffered);
        }
        let most = self
            .fullest
            .first()
            .map(|page| self.buffered[page as usize]);
        if most.unwrap_or(0) != self.buffered.iter().copied().max().unwrap_or(0) {
            return Err("another page has most entries in the buffer".into());
        }
        if used != self.used || used > self.room {
            let (known, room) = (self.used, self.room);
            return Err(format!("{used} bytes of {room} used, {known} counted"));
        }
        if in_buffer != self.in_buffer || in_buffer > self.most_buffered {
            let (known, most) = (self.in_buffer, self.most_buffered);
            return Err(format!(
                "{in_buffer} of {most} entries in the buffer, {known} counted"
            ));
        }
        Ok(())
    }
}

/// What S-FTL caches of the map.
#[derive(Debug)]
pub struct CompressedPages;

/// S-FTL on all dies.
pub type Sftl = OnDemand<CompressedPages>;

impl MapScheme for CompressedPages {
    const KEY: &'static str = "sftl";
    const TITLE: &'static str = "S-FTL";
    const SUMMARY: &'static str = "the map on flash, whole pages of it cached, compressed";
    const SOURCE: &'static str = "Jiang et al., MSST 2011";
    const TEXT: &'static str = include_str!("sftl.rs");
    type Options = SftlOptions;
    type Map = PagedMap<Runs>;

    fn on_flash(options: &SftlOptions) -> &OnFlashOptions {
        &options.on_flash
    }

    fn check_cache(options: &SftlOptions) -> Result<(), Refusal> {
        if options.dirty_buffer > MOST_BUFFER {
            let text = format!(
                "dirty_buffer = {}: at most {MOST_BUFFER} %",
                options.dirty_buffer
            );
            return Err(Refusal::new("dirty_buffer", text));
        }
        let plain = PAGE_BYTES + PLACE_BYTES * u64::from(options.on_flash.tp_entries);
        if options.room() < plain {
            let text = format!(
                "cmt_bytes = {}: the cache must hold one plain translation page beside the dirty buffer: {plain} bytes, and there are {}",
                options.cmt_bytes,
                options.room()
            );
            return Err(Refusal::new("cmt_bytes", text));
        }
        Ok(())
    }

    fn map(options: &SftlOptions, store: &PageStore, pages: TranslationPages) -> Self::Map {
        let cache = Runs::new(options, store, &pages);
        // A page is always written with all that is known.
        let plan = options.on_flash.plan(true);
        PagedMap::cold(plan, store.geometry(), pages, cache)
    }

    fn cache_tables(_geometry: &Geometry, options: &SftlOptions) -> Vec<Table> {
        vec![
            Table::sram("cached translation pages", options.room(), 8),
            Table::sram("dirty buffer", options.buffered(), 64),
        ]
    }

    fn cache_ram_bytes(geometry: &Geometry, options: &SftlOptions) -> u64 {
        let entries = options.on_flash.tp_entries.max(1);
        let pages = u64::from(geometry.logical_pages.div_ceil(entries));
        Runs::ram_bytes(geometry, pages) + PagedMap::<Runs>::ram_bytes(geometry, pages)
    }
}

#[cfg(test)]
mod tests;
