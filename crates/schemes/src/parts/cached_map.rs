//! A page map on flash with its entries in use cached in memory: what DFTL does on top of page mapping. Lookups
//! load entries and drive others out, write-backs carry newer entries to their translation page, and collections
//! bring the map up to date with the pages that they moved.

use crate::parts::lists::Lists;
use crate::parts::map_cache::{CachePolicy, HitRatio, MapCache, Mark, Producers, Translation};
use crate::parts::page_store::{Moves, PageStore};
use crate::parts::translation::TranslationPages;
use crate::parts::translation::recovery::{FoundMap, Layout};
use floatgate_core::address::{Lpn, Pbn, Ppn};
use floatgate_core::choice;
use floatgate_core::flash::{Flash, Preload};
use floatgate_core::ftl::Start;
use floatgate_core::geometry::Geometry;
use floatgate_core::state;

choice! {
    /// What one read of a translation page serves.
    pub enum Fetch {
        /// One entry.
        Entry = "entry",
        /// All entries of the request in that page.
        Request = "request",
    }
}

/// Why a translation page is written.
#[derive(Clone, Copy)]
enum Reason {
    Evict,
    Flush,
    Gc,
}

/// The entries that a write-back takes in any case.
#[derive(Clone, Copy)]
enum Set<'a> {
    /// One cached entry.
    Entry(u32),
    /// All newer cached entries of the translation page.
    Dirty,
    /// Pages moved by a collection: LPN and number of the copy in its request.
    Moved(&'a [(Lpn, u32)]),
}

/// What happened to the map.
#[derive(Clone, Copy, Debug, Default)]
pub struct MapCounters {
    /// Lookups served by the cache.
    pub hits: u64,
    /// Lookups that were not.
    pub misses: u64,
    /// Entries driven out.
    pub evictions: u64,
    /// Those of them that were newer than flash.
    pub dirty_evictions: u64,
    /// Translation pages read for an entry.
    pub loads: u64,
    /// Translation pages written because an entry left.
    pub writebacks_evict: u64,
    /// Translation pages written for integrity.
    pub writebacks_flush: u64,
    /// Translation pages written for moved pages.
    pub writebacks_gc: u64,
    /// Write-backs that read an old copy.
    pub writeback_reads: u64,
    /// Hits among the translations of live or written pages.
    pub ratio: HitRatio,
}

state!(MapCounters {
    hits,
    misses,
    evictions,
    dirty_evictions,
    loads,
    writebacks_evict,
    writebacks_flush,
    writebacks_gc,
    writeback_reads,
    ratio,
});

/// How the map is cached.
#[derive(Clone, Debug)]
pub struct MapPlan {
    /// Entries in memory.
    pub entries: u64,
    /// Which of them leaves.
    pub policy: CachePolicy,
    /// Entries of a translation page.
    pub entries_per_page: u32,
    /// What one read of a translation page serves.
    pub fetch: Fetch,
    /// Whether a write-back takes along all newer entries of its translation page.
    pub batch: bool,
    /// Whether entries of moved pages that are cached change only there.
    pub lazy: bool,
    /// Whether every change by the host is written back at once.
    pub write_through: bool,
    /// Whether there are flushes at all.
    pub flushes: bool,
    /// The options on which the map on flash rests, as one number ([`Checkpoint::writer`]).
    ///
    /// [`Checkpoint::writer`]: crate::parts::translation::checkpoint::Checkpoint::writer
    pub writer: u8,
}

/// The changes that are not on flash, by the sequence number at which they began to wait. Kept only on a flash that
/// stores bytes: nobody else asks.
#[derive(Debug)]
struct Waiting {
    /// Slots of newer entries, the one that has waited longest first.
    order: Lists,
    since: Vec<u64>,
    /// Where the collection in work began to move pages.
    moves: u64,
}

state!(Waiting {
    order,
    since,
    moves
});

impl Waiting {
    fn new(slots: usize) -> Self {
        Self {
            order: Lists::new(slots, 1),
            since: vec![0; slots],
            moves: u64::MAX,
        }
    }

    fn begin(&mut self, slot: u32, since: u64) {
        if let Some(begun) = self.since.get_mut(slot as usize) {
            *begun = since;
            self.order.push_back(0, slot);
        }
    }

    fn end(&mut self, slot: u32) {
        if !self.since.is_empty() {
            self.order.remove(slot);
        }
    }

    /// Changes with lower numbers are on flash; `u64::MAX` if all are.
    fn oldest(&self) -> u64 {
        let first = self.order.first(0).map(|slot| self.since[slot as usize]);
        first.unwrap_or(u64::MAX).min(self.moves)
    }
}

/// The number of the program that was the last so far.
fn latest<F: Flash>(flash: &F) -> u64 {
    flash.ledger().next_sequence().saturating_sub(1)
}

/// What a request in work has loaded and produced.
pub struct Request<T> {
    producers: Producers<T>,
    /// The translation page loaded last and when it is there.
    loaded: Option<(u32, T)>,
}

/// The map: cached entries, the directory, translation pages.
#[derive(Debug)]
pub struct CachedMap {
    /// Cached entries.
    pub cache: MapCache,
    /// The map behind them.
    pub pages: TranslationPages,
    /// Slots of newer entries by translation page.
    dirty: Lists,
    /// Translation pages that got a newer entry since the last flush, each once (only where there are
    /// flushes).
    unflushed: Vec<u32>,
    is_unflushed: Vec<bool>,
    waiting: Waiting,
    /// Pages moved by the collection in work, with the number of the copy in its request.
    moved: Vec<(Lpn, u32)>,
    plan: MapPlan,
    many_dies: bool,
    /// What happened.
    pub counters: MapCounters,
}

state!(CachedMap { cache, pages, dirty, is_unflushed, waiting, counters } grows { unflushed }
    fixed { moved, plan, many_dies });

impl CachedMap {
    /// The map of a fresh device.
    ///
    /// # Errors
    /// Those of the flash.
    pub fn format<F: Preload>(
        plan: MapPlan,
        store: &mut PageStore,
        start: Start,
        flash: &mut F,
    ) -> Result<Self, F::Error> {
        let (entries, writer) = (plan.entries_per_page, plan.writer);
        let pages = TranslationPages::format(store, entries, writer, start, flash)?;
        Ok(Self::cold(plan, store.geometry(), pages))
    }

    /// The map that was found on a flash, with its places in the store. Brings the flash up to date; nothing is
    /// cached.
    ///
    /// # Errors
    /// Those of the flash.
    pub fn recover<F: Flash>(
        plan: MapPlan,
        store: &mut PageStore,
        found: &FoundMap,
        layout: &Layout,
        flash: &mut F,
    ) -> Result<Self, F::Error> {
        let pages = TranslationPages::recover(store, found, layout, flash)?;
        let mut map = Self::cold(plan, store.geometry(), pages);
        let mut request = map.begin();
        store.relieve_dies(
            flash,
            &mut Collecting {
                map: &mut map,
                request: &mut request,
            },
        )?;
        map.write_back_moved(flash, store, &request)?;
        map.pages.end_recovery(store, flash)?;
        map.counters = MapCounters::default();
        map.pages.moves = 0;
        Ok(map)
    }

    /// Nothing cached.
    fn cold(plan: MapPlan, geometry: &Geometry, pages: TranslationPages) -> Self {
        let slots = MapCache::slots(geometry.logical_pages, plan.entries);
        let flushable = if plan.flushes { pages.len() } else { 0 };
        Self {
            waiting: Waiting::new(slots as usize),
            cache: MapCache::new(geometry.logical_pages, plan.entries, plan.policy),
            dirty: Lists::new(slots as usize, pages.len() as usize),
            unflushed: Vec::new(),
            is_unflushed: vec![false; flushable as usize],
            moved: Vec::with_capacity(geometry.pages_per_block as usize),
            many_dies: geometry.dies > 1,
            counters: MapCounters::default(),
            pages,
            plan,
        }
    }

    /// Bytes of memory of such a map.
    pub fn ram_bytes(geometry: &Geometry, entries: u64, entries_per_page: u32) -> u64 {
        let pages = geometry.logical_pages.div_ceil(entries_per_page);
        let slots = MapCache::slots(geometry.logical_pages, entries);
        MapCache::ram_bytes(geometry.logical_pages, entries)
            + TranslationPages::ram_bytes(geometry, entries_per_page)
            + 12 * (u64::from(slots) + u64::from(geometry.blocks()))
            + 17 * u64::from(pages)
    }

    /// A request begins.
    pub fn begin<T: Copy + Default>(&mut self) -> Request<T> {
        Request {
            producers: self.cache.begin(),
            loaded: None,
        }
    }

    /// Keeps the end of an operation that changes an entry. On one die the order of its operations says it all.
    #[inline]
    pub fn note<T: Copy + Default>(&self, request: &mut Request<T>, done: T) -> Mark {
        if self.many_dies {
            request.producers.note(done)
        } else {
            Mark::NONE
        }
    }

    /// An entry has changed.
    #[inline]
    fn set_dirty(&mut self, slot: u32, produced: Mark, since: u64) {
        if !self.cache.is_dirty(slot) {
            self.waiting.begin(slot, since);
            let page = self.pages.page_of(self.cache.lpn(slot));
            self.dirty.push_back(page as usize, slot);
            if let Some(listed) = self.is_unflushed.get_mut(page as usize)
                && !std::mem::replace(listed, true)
            {
                self.unflushed.push(page);
            }
        }
        self.cache.set_dirty(slot, produced);
    }

    fn set_clean(&mut self, slot: u32) {
        self.dirty.remove(slot);
        self.waiting.end(slot);
        self.cache.set_clean(slot);
    }

    /// Makes a page's entry a cached one; returns what its flash operation waits for.
    ///
    /// # Errors
    /// Those of the flash.
    #[inline]
    pub fn look_up<F: Flash>(
        &mut self,
        flash: &mut F,
        store: &mut PageStore,
        lpn: Lpn,
        translation: Translation,
        request: &mut Request<F::Token>,
    ) -> Result<F::Token, F::Error> {
        let cached = self.cache.slot(lpn);
        let live = store.place(lpn).is_some();
        self.counters
            .ratio
            .count(translation, live, cached.is_some());
        if let Some(slot) = cached {
            self.counters.hits += 1;
            self.cache.touch(slot);
            return Ok(F::Token::default());
        }
        self.miss(flash, store, lpn, request)
    }

    fn miss<F: Flash>(
        &mut self,
        flash: &mut F,
        store: &mut PageStore,
        lpn: Lpn,
        request: &mut Request<F::Token>,
    ) -> Result<F::Token, F::Error> {
        self.counters.misses += 1;
        let victim = self.cache.victim();
        if let Some(slot) = victim {
            self.counters.evictions += 1;
            if self.cache.is_dirty(slot) {
                self.counters.dirty_evictions += 1;
                let page = self.pages.page_of(self.cache.lpn(slot));
                let set = Set::Entry(slot);
                self.write_back(flash, store, page, set, Reason::Evict, request)?;
            }
        }
        let page = self.pages.page_of(lpn);
        let there = match request.loaded {
            _ if !self.pages.exists(page) => F::Token::default(),
            Some((loaded, there)) if loaded == page && self.plan.fetch == Fetch::Request => there,
            _ => {
                self.counters.loads += 1;
                let there = self.pages.load(flash, store, lpn)?;
                request.loaded = Some((page, there));
                there
            }
        };
        self.cache.put(lpn, victim);
        Ok(there)
    }

    /// Writes a new copy of a translation page with a set of entries, which become clean.
    fn write_back<F: Flash>(
        &mut self,
        flash: &mut F,
        store: &mut PageStore,
        page: u32,
        set: Set<'_>,
        reason: Reason,
        request: &Request<F::Token>,
    ) -> Result<(), F::Error> {
        let produced = self.produced(flash, page, set, request);
        self.pages.checkpoint.pending = self.waiting.oldest();
        self.wait_no_more(page, set);
        let end = (produced, self.waiting.oldest());
        let (cache, dirty, all) = (&self.cache, &self.dirty, self.takes_all(set));
        let stays_cached = |lpn: Lpn| self.plan.lazy && cache.slot(lpn).is_some();
        let change = |pages: &TranslationPages, store: &PageStore, bytes: &mut [u8]| {
            let mut put = |lpn: Lpn| pages.put_entry(bytes, lpn, store.place(lpn));
            match set {
                Set::Entry(slot) => put(cache.lpn(slot)),
                Set::Moved(moved) => moved
                    .iter()
                    .filter(|(lpn, _)| !stays_cached(*lpn))
                    .for_each(|(lpn, _)| put(*lpn)),
                Set::Dirty => {}
            }
            if all {
                dirty
                    .iter(page as usize)
                    .for_each(|slot| put(cache.lpn(slot)));
            }
        };
        let reads = self.pages.write(flash, store, page, end, change)?;
        let counters = &mut self.counters;
        *match reason {
            Reason::Evict => &mut counters.writebacks_evict,
            Reason::Flush => &mut counters.writebacks_flush,
            Reason::Gc => &mut counters.writebacks_gc,
        } += 1;
        counters.writeback_reads += u64::from(reads);
        self.clean(page, set);
        Ok(())
    }

    fn takes_all(&self, set: Set<'_>) -> bool {
        self.plan.batch || matches!(set, Set::Dirty)
    }

    fn clean(&mut self, page: u32, set: Set<'_>) {
        self.each_taken(page, set, Self::set_clean);
    }

    /// What a write-back takes waits no more once it is programmed. Only the checkpoint of that program may say so.
    fn wait_no_more(&mut self, page: u32, set: Set<'_>) {
        if !self.waiting.since.is_empty() {
            self.each_taken(page, set, |map, slot| map.waiting.end(slot));
        }
    }

    /// The cached entries that a write-back of a translation page takes.
    fn each_taken(&mut self, page: u32, set: Set<'_>, mut take: impl FnMut(&mut Self, u32)) {
        match set {
            Set::Entry(slot) => take(self, slot),
            Set::Moved(moved) if !self.plan.lazy => {
                for &(lpn, _) in moved {
                    if let Some(slot) = self.cache.slot(lpn) {
                        take(self, slot);
                    }
                }
            }
            _ => {}
        }
        if self.takes_all(set) {
            let mut next = self.dirty.first(page as usize);
            while let Some(slot) = next {
                next = self.dirty.next(slot);
                take(self, slot);
            }
        }
    }

    /// When the data behind the entries of a write-back are programmed, as far as this request did it.
    fn produced<F: Flash>(
        &self,
        flash: &mut F,
        page: u32,
        set: Set<'_>,
        request: &Request<F::Token>,
    ) -> F::Token {
        let mut end = F::Token::default();
        if !self.many_dies {
            return end;
        }
        let producers = &request.producers;
        let mut wait = |done: Option<F::Token>| {
            if let Some(done) = done {
                end = flash.join(end, done);
            }
        };
        match set {
            Set::Entry(slot) => wait(producers.of(self.cache.produced(slot))),
            Set::Moved(moved) => {
                // The copies are in the order of one die: the last is the last to end.
                let last = moved
                    .iter()
                    .filter(|(lpn, _)| !self.plan.lazy || self.cache.slot(*lpn).is_none())
                    .map(|&(_, copy)| copy)
                    .max();
                wait(last.and_then(|copy| producers.at(copy)));
            }
            Set::Dirty => {}
        }
        if self.takes_all(set) {
            self.dirty
                .iter(page as usize)
                .for_each(|slot| wait(producers.of(self.cache.produced(slot))));
        }
        end
    }

    /// Writes all newer entries back, translation page by translation page.
    ///
    /// # Errors
    /// Those of the flash.
    pub fn flush<F: Flash>(
        &mut self,
        flash: &mut F,
        store: &mut PageStore,
        request: &Request<F::Token>,
    ) -> Result<(), F::Error> {
        let mut pages = std::mem::take(&mut self.unflushed);
        pages.sort_unstable();
        for &page in &pages {
            self.is_unflushed[page as usize] = false;
            if !self.dirty.is_empty(page as usize) {
                self.write_back(flash, store, page, Set::Dirty, Reason::Flush, request)?;
            }
        }
        pages.clear();
        self.unflushed = pages;
        Ok(())
    }

    /// The entry of a page has changed on the host's behalf.
    ///
    /// # Errors
    /// Those of the flash.
    pub fn changed<F: Flash>(
        &mut self,
        flash: &mut F,
        store: &mut PageStore,
        lpn: Lpn,
        produced: Mark,
        request: &Request<F::Token>,
    ) -> Result<(), F::Error> {
        let slot = self.cache.slot(lpn).expect("its lookup put it there");
        self.set_dirty(slot, produced, latest(flash));
        if self.plan.write_through {
            let page = self.pages.page_of(lpn);
            self.write_back(flash, store, page, Set::Entry(slot), Reason::Flush, request)?;
        }
        Ok(())
    }

    /// The die of the translation page that has the entry of a page.
    pub fn die_of(&self, lpn: Lpn) -> u32 {
        self.pages.home(self.pages.page_of(lpn))
    }

    /// Brings the entries of all moved pages up to date.
    fn write_back_moved<F: Flash>(
        &mut self,
        flash: &mut F,
        store: &mut PageStore,
        request: &Request<F::Token>,
    ) -> Result<(), F::Error> {
        let mut moved = std::mem::take(&mut self.moved);
        moved.sort_unstable();
        let mut rest = &moved[..];
        while let Some(&(first, _)) = rest.first() {
            let page = self.pages.page_of(first);
            let n = rest.partition_point(|&(lpn, _)| self.pages.page_of(lpn) == page);
            let (these, later) = rest.split_at(n);
            self.write_back_moves(flash, store, page, these, request)?;
            rest = later;
        }
        moved.clear();
        self.moved = moved;
        self.waiting.moves = u64::MAX;
        Ok(())
    }

    /// Brings the entries of one translation page up to date with the pages that a collection moved.
    fn write_back_moves<F: Flash>(
        &mut self,
        flash: &mut F,
        store: &mut PageStore,
        page: u32,
        moved: &[(Lpn, u32)],
        request: &Request<F::Token>,
    ) -> Result<(), F::Error> {
        let mut must_write = !self.plan.lazy;
        for &(lpn, copy) in moved {
            match self.cache.slot(lpn) {
                Some(slot) => {
                    let since = self.waiting.moves;
                    self.set_dirty(slot, request.producers.mark(copy), since);
                }
                None => must_write = true,
            }
        }
        if must_write {
            self.write_back(flash, store, page, Set::Moved(moved), Reason::Gc, request)?;
        }
        Ok(())
    }

    /// Checks the tables against each other.
    ///
    /// # Errors
    /// What does not agree.
    pub fn audit<F: Flash>(&self, flash: &F, store: &PageStore) -> Result<(), String> {
        self.cache.audit()?;
        self.pages.audit(flash, store)?;
        let mut listed = 0;
        for page in 0..self.pages.len() {
            for slot in self.dirty.iter(page as usize) {
                listed += 1;
                if !self.cache.is_dirty(slot) || self.pages.page_of(self.cache.lpn(slot)) != page {
                    return Err(format!("slot {slot} is no newer entry of page {page}"));
                }
            }
        }
        let dirty = self.cache.dirty_entries();
        if listed != dirty {
            return Err(format!("{dirty} newer entries, {listed} of them listed"));
        }
        Ok(())
    }
}

/// What collections inside a request do to the map.
pub struct Collecting<'a, T> {
    /// The map.
    pub map: &'a mut CachedMap,
    /// The request in work.
    pub request: &'a mut Request<T>,
}

impl<F: Flash> Moves<F> for Collecting<'_, F::Token> {
    fn moved(&mut self, flash: &mut F, lpn: Lpn, _to: Ppn, done: F::Token) {
        let mark = self.map.note(self.request, done);
        let waiting = &mut self.map.waiting;
        waiting.moves = waiting.moves.min(latest(flash));
        self.map.moved.push((lpn, mark.index()));
    }

    fn choose(&mut self, store: &mut PageStore, die: u32) -> Pbn {
        if store.erased(die) < 2 {
            return store.map_victim(die);
        }
        store.choose(die)
    }

    fn collect_map(
        &mut self,
        flash: &mut F,
        store: &mut PageStore,
        victim: Pbn,
    ) -> Result<(), F::Error> {
        self.map.pages.checkpoint.pending = self.map.waiting.oldest();
        self.map.pages.collect(flash, store, victim)
    }

    fn before_erase(&mut self, flash: &mut F, store: &mut PageStore) -> Result<(), F::Error> {
        self.map.write_back_moved(flash, store, self.request)
    }
}
