//! A page map on flash above which whole translation pages are cached: a translation page is always written with everything
//! that is newer in it. What S-FTL and CDFTL have in common; what is cached and what leaves is a [`PageCache`].

use crate::parts::map_cache::Translation;
use crate::parts::newer::NewerEntries;
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

/// What is cached above the translation pages.
///
/// What a method returns as an error is the flash's own, unless it says otherwise.
#[expect(
    clippy::missing_errors_doc,
    reason = "the errors are the flash's, as the trait's text says"
)]
pub trait PageCache: State + Debug + Send + Sized + 'static {
    /// Whether a translation page is in memory with all its entries.
    fn holds_page(&self, page: u32) -> bool;

    /// The entry of a page is looked up soon.
    fn prefetch(&self, lpn: Lpn);

    /// Makes a page's entry a known one. Returns whether it was, and what the page's flash operation waits for.
    fn look_up<F: Flash>(
        map: &mut PagedMap<Self>,
        flash: &mut F,
        store: &mut PageStore,
        lpn: Lpn,
        request: &mut Request<F::Token>,
    ) -> Result<(bool, F::Token), F::Error>;

    /// The entry of a page has changed on the host's behalf, and is marked as newer; whether it was newer before.
    fn changed<F: Flash>(
        map: &mut PagedMap<Self>,
        flash: &mut F,
        store: &mut PageStore,
        lpn: Lpn,
        was_newer: bool,
        request: &Request<F::Token>,
    ) -> Result<(), F::Error>;

    /// All entries of moved pages have changed.
    fn end_moves<F: Flash>(
        map: &mut PagedMap<Self>,
        flash: &mut F,
        store: &mut PageStore,
        request: &Request<F::Token>,
    ) -> Result<(), F::Error> {
        let _ = (map, flash, store, request);
        Ok(())
    }

    /// A collection has moved a page of a translation page. Whether its entry is cached, so that it need change only there.
    ///
    /// `entries` are the first and the last page of the translation page.
    fn moved(
        &mut self,
        store: &PageStore,
        lpn: Lpn,
        page: u32,
        entries: (Lpn, Lpn),
        newer: &NewerEntries,
    ) -> bool;

    /// The newer entries of a translation page have been written, and are marked no more after that.
    fn written(&mut self, page: u32, entries: impl Iterator<Item = Lpn>);

    /// Entries cached.
    fn observe(&self, seen: &mut Observation);

    /// Adds counters of its own.
    fn count(&self, counters: &mut SchemeCounters);

    /// Sets its own counters to zero.
    fn reset_own_counters(&mut self);

    /// Checks its tables.
    ///
    /// # Errors
    /// What does not agree.
    fn audit(
        &self,
        pages: &TranslationPages,
        newer: &NewerEntries,
        store: &PageStore,
    ) -> Result<(), String>;
}

/// Where the contents of a translation page are that is written.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Content {
    /// In memory.
    InMemory,
    /// On flash but for what is newer.
    OnFlash,
}

/// The map: what is cached, the directory, translation pages.
#[derive(Debug)]
pub struct PagedMap<C> {
    /// What is cached.
    pub cache: C,
    /// The map behind it.
    pub pages: TranslationPages,
    /// What is newer than the map behind it.
    pub newer: NewerEntries,
    /// What happened.
    pub counters: MapCounters,
    /// Pages moved by the collection in work.
    moved: Vec<Lpn>,
    /// Translation pages of the flush in work.
    flushing: Vec<u32>,
    plan: MapPlan,
    many_dies: bool,
}

state!(PagedMap<C> [C: PageCache] { cache, pages, newer, counters } fixed { moved, flushing, plan, many_dies });

impl<C: PageCache> PagedMap<C> {
    /// The map with nothing cached.
    pub fn cold(plan: MapPlan, geometry: &Geometry, pages: TranslationPages, cache: C) -> Self {
        Self {
            newer: NewerEntries::new(geometry, pages.len()),
            cache,
            counters: MapCounters::default(),
            moved: Vec::with_capacity(geometry.pages_per_block as usize),
            flushing: Vec::new(),
            many_dies: geometry.dies > 1,
            pages,
            plan,
        }
    }

    /// Bytes of memory beside what is cached and the translation pages.
    pub fn ram_bytes(geometry: &Geometry, pages: u64) -> u64 {
        NewerEntries::ram_bytes(geometry, pages) + 4 * u64::from(geometry.pages_per_block)
    }

    /// Reads a translation page for an entry, if it exists.
    ///
    /// # Errors
    /// Those of the flash.
    pub fn load<F: Flash>(
        &mut self,
        flash: &mut F,
        store: &PageStore,
        page: u32,
        request: &mut Request<F::Token>,
    ) -> Result<(), F::Error> {
        if self.pages.exists(page) {
            self.counters.loads += 1;
            let newer = &self.newer;
            let there = self
                .pages
                .load_all(flash, store, page, |lpn| newer.has(lpn))?;
            self.newer.note_load(page, there, &mut request.producers);
        }
        Ok(())
    }

    /// Writes a new copy of a translation page with everything that is newer in it.
    ///
    /// # Errors
    /// Those of the flash.
    pub fn write_back<F: Flash>(
        &mut self,
        flash: &mut F,
        store: &mut PageStore,
        page: u32,
        content: Content,
        reason: Reason,
        request: &Request<F::Token>,
    ) -> Result<(), F::Error> {
        let produced = if self.many_dies {
            self.newer.produced(page, &request.producers)
        } else {
            F::Token::default()
        };
        self.pages.checkpoint.pending = self.newer.oldest();
        // Only the checkpoint of this program may say so.
        self.newer.wait_no_more(page);
        let end = (produced, self.newer.oldest());
        let entries = self.pages.first_of(page)..=self.pages.last_of(page);
        let was_read = if content == Content::InMemory {
            self.pages.rewrite(flash, store, page, end)?;
            false
        } else {
            let newer = self.newer.iter(entries.clone());
            let change = |pages: &TranslationPages, store: &PageStore, bytes: &mut [u8]| {
                newer.for_each(|lpn| pages.put_entry(bytes, lpn, store.place(lpn)));
            };
            self.pages.write(flash, store, page, end, change)?
        };
        self.counters.written(reason, was_read);
        let newer = self.newer.iter(entries.clone());
        self.cache.written(page, newer);
        self.newer.clear(page, entries);
        Ok(())
    }

    fn content(&self, page: u32) -> Content {
        if self.cache.holds_page(page) {
            Content::InMemory
        } else {
            Content::OnFlash
        }
    }
}

impl<C: PageCache> DemandMap for PagedMap<C> {
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
        Request {
            producers: self.newer.begin(),
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
        let live = store.place(lpn).is_some();
        let (is_hit, there) = C::look_up(self, flash, store, lpn, request)?;
        self.counters.hits += u64::from(is_hit);
        self.counters.misses += u64::from(!is_hit);
        self.counters.ratio.count(translation, live, is_hit);
        Ok(there)
    }

    fn changed<F: Flash>(
        &mut self,
        flash: &mut F,
        store: &mut PageStore,
        lpn: Lpn,
        done: Option<F::Token>,
        request: &mut Request<F::Token>,
    ) -> Result<(), F::Error> {
        let page = self.pages.page_of(lpn);
        if let Some(done) = done.filter(|_| self.many_dies) {
            self.newer.note(flash, page, done, &mut request.producers);
        }
        // Before anything is written back: a change that waits unseen would count as being on flash.
        let was_newer = self.newer.has(lpn);
        self.newer.mark(lpn, page, latest(flash));
        C::changed(self, flash, store, lpn, was_newer, request)?;
        if self.plan.write_through {
            let content = self.content(page);
            self.write_back(flash, store, page, content, Reason::Flush, request)?;
        }
        Ok(())
    }

    fn flush<F: Flash>(
        &mut self,
        flash: &mut F,
        store: &mut PageStore,
        request: &Request<F::Token>,
    ) -> Result<(), F::Error> {
        let mut pages = std::mem::take(&mut self.flushing);
        pages.extend(self.newer.pages());
        pages.sort_unstable();
        for &page in &pages {
            let content = self.content(page);
            self.write_back(flash, store, page, content, Reason::Flush, request)?;
        }
        pages.clear();
        self.flushing = pages;
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
        self.newer.moved(latest(flash));
        if self.many_dies {
            let page = self.pages.page_of(lpn);
            self.newer.note(flash, page, done, &mut request.producers);
        }
        self.moved.push(lpn);
    }

    fn write_back_moved<F: Flash>(
        &mut self,
        flash: &mut F,
        store: &mut PageStore,
        request: &Request<F::Token>,
    ) -> Result<(), F::Error> {
        let mut moved = std::mem::take(&mut self.moved);
        moved.sort_unstable();
        let since = self.newer.moves();
        let entries = self.pages.divisor();
        for these in moved.chunk_by(|a, b| entries.div(a.0) == entries.div(b.0)) {
            let page = entries.div(these[0].0);
            let run = (self.pages.first_of(page), self.pages.last_of(page));
            let mut must_write = !self.plan.lazy;
            for &lpn in these {
                must_write |= !self.cache.moved(store, lpn, page, run, &self.newer);
                self.newer.mark(lpn, page, since);
            }
            if must_write {
                let content = self.content(page);
                self.write_back(flash, store, page, content, Reason::Gc, request)?;
            }
        }
        moved.clear();
        self.moved = moved;
        self.newer.end_moves();
        C::end_moves(self, flash, store, request)
    }

    #[inline(always)]
    fn prefetch(&self, lpn: Lpn) {
        self.cache.prefetch(lpn);
    }

    fn oldest_pending(&self) -> u64 {
        self.newer.oldest()
    }

    fn newer(&self) -> u32 {
        self.newer.total()
    }

    fn count(&self, counters: &mut SchemeCounters) {
        self.cache.count(counters);
    }

    fn reset_own_counters(&mut self) {
        self.cache.reset_own_counters();
    }

    fn observe(&self, seen: &mut Observation) {
        self.cache.observe(seen);
    }

    fn audit(&self, store: &PageStore) -> Result<(), String> {
        let pages = &self.pages;
        self.newer
            .audit(|page| pages.first_of(page)..=pages.last_of(page))?;
        self.cache.audit(pages, &self.newer, store)
    }
}
