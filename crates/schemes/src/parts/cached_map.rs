//! A page map on flash with its entries in use cached in memory: what DFTL does on top of page mapping. Lookups
//! load entries and drive others out, write-backs carry newer entries to their translation page, and collections
//! bring the map up to date with the pages that they moved.

use crate::parts::lists::Lists;
use crate::parts::map_cache::{Entries, Mark, Translation};
use crate::parts::on_demand::{DemandMap, MapCounters, MapPlan, Reason, Request, latest};
use crate::parts::page_store::PageStore;
use crate::parts::translation::TranslationPages;
use floatgate_core::address::Lpn;
use floatgate_core::flash::Flash;
use floatgate_core::geometry::Geometry;
use floatgate_core::report::{Observation, SchemeCounters};
use floatgate_core::state;
use floatgate_core::state::State;
use std::fmt::Debug;

/// The entries that a write-back takes in any case.
#[derive(Clone, Copy)]
pub enum Set<'a> {
    /// One cached entry.
    Entry(u32),
    /// All newer cached entries of the translation page.
    Dirty,
    /// Pages moved by a collection: LPN and number of the copy in its request.
    Moved(&'a [(Lpn, u32)]),
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
        // No program has a number where no bytes are stored.
        if since == 0 {
            return;
        }
        if let Some(begun) = self.since.get_mut(slot as usize) {
            *begun = since;
            self.order.push_back(0, slot);
        }
    }

    fn end(&mut self, slot: u32) {
        if !self.order.is_empty(0) {
            self.order.remove(slot);
        }
    }

    /// Changes with lower numbers are on flash; `u64::MAX` if all are.
    fn oldest(&self) -> u64 {
        let first = self.order.first(0).map(|slot| self.since[slot as usize]);
        first.unwrap_or(u64::MAX).min(self.moves)
    }
}

/// The entries of a [`CachedMap`]: in which order they stand, and what a miss does.
///
/// What a method returns as an error is the flash's own, unless it says otherwise.
#[expect(
    clippy::missing_errors_doc,
    reason = "the errors are the flash's, as the trait's text says"
)]
pub trait EntryCache: State + Debug + Send + 'static {
    /// The entries.
    fn entries(&self) -> &Entries;

    /// The entries.
    fn entries_mut(&mut self) -> &mut Entries;

    /// A request begins.
    fn begin(&mut self) {}

    /// A lookup has found an entry of a translation page. Returns what the flash operation of the page waits for.
    fn hit<T: Copy + Default>(&mut self, slot: u32, page: u32, request: &Request<T>) -> T;

    /// A lookup has not found the entry of `lpn`: makes room, loads it, caches it. Returns what the flash operation
    /// of the page waits for.
    fn miss<F: Flash>(
        map: &mut CachedMap<Self>,
        flash: &mut F,
        store: &mut PageStore,
        lpn: Lpn,
        request: &mut Request<F::Token>,
    ) -> Result<F::Token, F::Error>
    where
        Self: Sized;

    /// Adds counters of its own.
    fn count(&self, counters: &mut SchemeCounters) {
        let _ = counters;
    }

    /// Sets its own counters to zero.
    fn reset_own_counters(&mut self) {}

    /// Checks its tables against each other; `page_of` is the translation page of a logical page.
    ///
    /// # Errors
    /// What does not agree.
    fn audit(&self, page_of: impl Fn(Lpn) -> u32) -> Result<(), String>;
}

/// The map: cached entries, the directory, translation pages.
#[derive(Debug)]
pub struct CachedMap<C> {
    /// Cached entries.
    pub cache: C,
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

state!(CachedMap<C> [C: EntryCache] { cache, pages, dirty, is_unflushed, waiting, counters } grows { unflushed }
    fixed { moved, plan, many_dies });

impl<C: EntryCache> CachedMap<C> {
    /// The map behind an empty cache of at most `slots` entries.
    pub fn cold(
        plan: MapPlan,
        geometry: &Geometry,
        pages: TranslationPages,
        cache: C,
        slots: u32,
    ) -> Self {
        let flushable = if plan.flushes { pages.len() } else { 0 };
        Self {
            waiting: Waiting::new(slots as usize),
            cache,
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

    /// Bytes of memory of such a map beside its cache and its translation pages.
    pub fn ram_bytes(geometry: &Geometry, slots: u32, entries_per_page: u32) -> u64 {
        let pages = geometry.logical_pages.div_ceil(entries_per_page);
        32 * u64::from(slots) + 17 * u64::from(pages)
    }

    /// Cached entries of a translation page that are newer than flash.
    pub fn newer_of(&self, page: u32) -> u32 {
        self.dirty.len(page as usize)
    }

    fn note<T: Copy + Default>(&self, request: &mut Request<T>, done: T) -> Mark {
        // On one die the order of its operations says it all.
        if self.many_dies {
            request.producers.note(done)
        } else {
            Mark::NONE
        }
    }

    /// An entry has changed.
    #[inline]
    fn set_dirty(&mut self, slot: u32, produced: Mark, since: u64) {
        if !self.cache.entries().is_dirty(slot) {
            self.waiting.begin(slot, since);
            let page = self.pages.page_of(self.cache.entries().lpn(slot));
            self.dirty.push_back(page as usize, slot);
            if let Some(listed) = self.is_unflushed.get_mut(page as usize)
                && !std::mem::replace(listed, true)
            {
                self.unflushed.push(page);
            }
        }
        self.cache.entries_mut().set_dirty(slot, produced);
    }

    fn set_clean(&mut self, slot: u32) {
        self.dirty.remove(slot);
        self.waiting.end(slot);
        self.cache.entries_mut().set_clean(slot);
    }

    /// An entry leaves: it is written back if it is newer.
    ///
    /// # Errors
    /// Those of the flash.
    pub fn evict<F: Flash>(
        &mut self,
        flash: &mut F,
        store: &mut PageStore,
        slot: u32,
        request: &Request<F::Token>,
    ) -> Result<(), F::Error> {
        self.counters.evictions += 1;
        if self.cache.entries().is_dirty(slot) {
            self.counters.dirty_evictions += 1;
            let page = self.pages.page_of(self.cache.entries().lpn(slot));
            let set = Set::Entry(slot);
            self.write_back(flash, store, page, set, Reason::Evict, request)?;
        }
        Ok(())
    }

    /// Writes a new copy of a translation page with a set of entries, which become clean.
    ///
    /// # Errors
    /// Those of the flash.
    pub fn write_back<F: Flash>(
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
        let (cache, dirty, all) = (self.cache.entries(), &self.dirty, self.takes_all(set));
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
        self.counters.written(reason, reads);
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
        if !self.waiting.order.is_empty(0) {
            self.each_taken(page, set, |map, slot| map.waiting.end(slot));
        }
    }

    /// The cached entries that a write-back of a translation page takes.
    fn each_taken(&mut self, page: u32, set: Set<'_>, mut take: impl FnMut(&mut Self, u32)) {
        match set {
            Set::Entry(slot) => take(self, slot),
            Set::Moved(moved) if !self.plan.lazy => {
                for &(lpn, _) in moved {
                    if let Some(slot) = self.cache.entries().slot(lpn) {
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
            Set::Entry(slot) => wait(producers.of(self.cache.entries().produced(slot))),
            Set::Moved(moved) => {
                // The copies are in the order of one die: the last is the last to end.
                let last = moved
                    .iter()
                    .filter(|(lpn, _)| !self.plan.lazy || self.cache.entries().slot(*lpn).is_none())
                    .map(|&(_, copy)| copy)
                    .max();
                wait(last.and_then(|copy| producers.at(copy)));
            }
            Set::Dirty => {}
        }
        if self.takes_all(set) {
            self.dirty
                .iter(page as usize)
                .for_each(|slot| wait(producers.of(self.cache.entries().produced(slot))));
        }
        end
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
            match self.cache.entries().slot(lpn) {
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
}

impl<C: EntryCache> DemandMap for CachedMap<C> {
    fn pages(&self) -> &TranslationPages {
        &self.pages
    }

    fn pages_mut(&mut self) -> &mut TranslationPages {
        &mut self.pages
    }

    fn counters(&self) -> &MapCounters {
        &self.counters
    }

    fn counters_mut(&mut self) -> &mut MapCounters {
        &mut self.counters
    }

    fn begin<T: Copy + Default>(&mut self, last: Lpn) -> Request<T> {
        self.cache.begin();
        Request {
            producers: self.cache.entries_mut().begin(),
            loaded: None,
            last,
        }
    }

    #[inline]
    fn look_up<F: Flash>(
        &mut self,
        flash: &mut F,
        store: &mut PageStore,
        lpn: Lpn,
        translation: Translation,
        request: &mut Request<F::Token>,
    ) -> Result<F::Token, F::Error> {
        let cached = self.cache.entries().slot(lpn);
        let live = store.place(lpn).is_some();
        self.counters
            .ratio
            .count(translation, live, cached.is_some());
        if let Some(slot) = cached {
            self.counters.hits += 1;
            let page = self.pages.page_of(lpn);
            return Ok(self.cache.hit(slot, page, request));
        }
        self.counters.misses += 1;
        C::miss(self, flash, store, lpn, request)
    }

    fn changed<F: Flash>(
        &mut self,
        flash: &mut F,
        store: &mut PageStore,
        lpn: Lpn,
        done: Option<F::Token>,
        request: &mut Request<F::Token>,
    ) -> Result<(), F::Error> {
        let produced = done.map_or(Mark::NONE, |done| self.note(request, done));
        let slot = self.cache.entries().slot(lpn);
        let slot = slot.expect("its lookup put it there");
        self.set_dirty(slot, produced, latest(flash));
        if self.plan.write_through {
            let page = self.pages.page_of(lpn);
            self.write_back(flash, store, page, Set::Entry(slot), Reason::Flush, request)?;
        }
        Ok(())
    }

    fn flush<F: Flash>(
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

    #[inline]
    fn moved<F: Flash>(
        &mut self,
        flash: &mut F,
        lpn: Lpn,
        done: F::Token,
        request: &mut Request<F::Token>,
    ) {
        let mark = self.note(request, done);
        self.waiting.moves = self.waiting.moves.min(latest(flash));
        self.moved.push((lpn, mark.index()));
    }

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

    #[inline(always)]
    fn prefetch(&self, lpn: Lpn) {
        self.cache.entries().prefetch(lpn);
    }

    fn oldest_pending(&self) -> u64 {
        self.waiting.oldest()
    }

    fn newer(&self) -> u32 {
        self.cache.entries().dirty_entries()
    }

    fn count(&self, counters: &mut SchemeCounters) {
        self.cache.count(counters);
    }

    fn reset_own_counters(&mut self) {
        self.cache.reset_own_counters();
    }

    fn observe(&self, seen: &mut Observation) {
        seen.sum("cmt_entries", self.cache.entries().len().into());
    }

    fn audit(&self, _store: &PageStore) -> Result<(), String> {
        self.cache.audit(|lpn| self.pages.page_of(lpn))?;
        let entries = self.cache.entries();
        let mut listed = 0;
        for page in 0..self.pages.len() {
            for slot in self.dirty.iter(page as usize) {
                listed += 1;
                if !entries.is_dirty(slot) || self.pages.page_of(entries.lpn(slot)) != page {
                    return Err(format!("slot {slot} is no newer entry of page {page}"));
                }
            }
        }
        let dirty = entries.dirty_entries();
        if listed != dirty {
            return Err(format!("{dirty} newer entries, {listed} of them listed"));
        }
        Ok(())
    }
}
