//! `dftl`: page mapping with the map on flash, cached on demand.
//!
//! **Paper.** Gupta, Kim, Urgaonkar, "DFTL: A Flash Translation Layer Employing Demand-based Selective Caching of
//! Page-level Address Mappings", ASPLOS 2009, sections 3.1 to 3.4; described in LAST++ section 2.3 and HAT II.B.3.
//! The integrity modes: LAST++ section 5.3.
//!
//! **RAM state.** CMT: the map entries in use, by LRU or segmented LRU, each with a mark "newer than flash"; the newer
//! ones also in a list for each translation page. GTD: where each translation page lies.
//!
//! **Flash state.** Data blocks as in `page`; translation pages, each with the places of a run of logical pages, in map
//! blocks. Both draw on one FIFO of erased blocks a die. Translation page `v` stays on die `v mod C`.
//!
//! **How it writes, reads, reclaims.** Every page translated is looked up in the CMT. A miss reads its translation page;
//! if the CMT is full, an entry leaves before, and a newer one is written back together with all newer
//! entries of its translation page. A collection takes data and map blocks by one policy. Pages that it moves out of
//! a data block change their entries in the CMT (lazy copy), or their translation pages before the block is
//! erased. The integrity modes write the newer entries back after every page, every request, or every 30 seconds.
//!
//! **Recovery.** Full OOB scan; or the role in page 0 of every block, then the OOBs of map blocks (they give the GTD), then
//! the translation pages: enough for the modes `PAGE` and `REQ`. `TIMEOUT` adds the data blocks written since the
//! last flush. The CMT starts empty.
//!
//! **Deviations and why.** A write loads its entry too (Gupta's algorithm; HAT's Fin1 paragraph says it need not): the old
//! copy must be found. The load waits for the die only, not for the write-back of the entry it drives out. The
//! last erased blocks of a die are kept from data for map blocks, which the papers do not need to mention:
//! without that a collection may find no place for its translation pages. Lazy copy is off where flash
//! must hold the map of everything acknowledged. On the host's behalf this program keeps all places in
//! one table; what is cached and newer is the CMT's account, and translation pages bear their real entries where
//! the flash bears data.

use crate::address::{Lpn, Pbn, Ppn};
use crate::flash::{Flash, Slot};
use crate::ftl::{Ftl, Refusal, Run, Start};
use crate::geometry::{Geometry, Space};
use crate::parts::lists::Lists;
use crate::parts::map_cache::{CachePolicy, HitRatio, MapCache, Mark, Producers, Translation};
use crate::parts::page_store::{Moves, PageOptions, PageStore, Placement, Streams};
use crate::parts::translation::{TranslationPages, whole_map_blocks};
use crate::parts::victims::GcPolicy;
use crate::report::{Combine, Observation, SchemeCounters, Table, bits_for};
use crate::{choice, options};

choice! {
    /// When the map on flash catches up with the cached entries.
    pub enum Integrity {
        /// Only as entries leave the cache.
        Noflush = "NOFLUSH",
        /// After every page written.
        Page = "PAGE",
        /// Once a period.
        Timeout = "TIMEOUT",
        /// After every write request.
        Req = "REQ",
    }
}

choice! {
    /// What one read of a translation page serves.
    pub enum Fetch {
        /// One entry.
        Entry = "entry",
        /// All entries of the request in that page.
        Request = "request",
    }
}

choice! {
    /// Whether entries of moved pages that are cached change only there.
    pub enum LazyCopy {
        /// As the integrity mode allows.
        Auto = "auto",
        /// Yes.
        On = "on",
        /// No: their translation pages are written before the block is erased.
        Off = "off",
    }
}

options! {
    /// Options of `dftl`.
    pub struct DftlOptions {
        /// Memory for cached map entries, 8 bytes each.
        cmt_bytes: u64 ["bytes"] = 131_072;
        /// Cached map entries; goes before cmt_bytes.
        cmt_entries: Option<u64> ["entries"] = None, shown "cmt_bytes / 8";
        /// Which cached entry leaves.
        cmt_policy: CachePolicy [""] = CachePolicy::Lru;
        /// Entries in one translation page.
        tp_entries: u32 ["entries"] = 512;
        /// When the map on flash catches up with the cached entries.
        integrity: Integrity [""] = Integrity::Noflush;
        /// Period of integrity = TIMEOUT.
        flush_ns: u64 ["ns"] = 30_000_000_000;
        /// What one read of a translation page serves.
        fetch: Fetch [""] = Fetch::Entry;
        /// Whether a write-back takes along all newer entries of its translation page.
        batch: bool [""] = true;
        /// Whether entries of moved pages that are cached change only there.
        lazy_copy: LazyCopy [""] = LazyCopy::Auto, shown "auto: on for NOFLUSH and TIMEOUT, off for PAGE and REQ";
        /// A die collects garbage until it has this many erased blocks.
        gc_low: Option<u32> ["blocks, die"] = None, shown "full map blocks of a die + 5";
        /// Which block a collection takes.
        gc_policy: GcPolicy [""] = GcPolicy::Greedy;
        /// Draws of d-choices.
        gc_d: u64 ["draws"] = 10;
        /// Seed of d-choices; die i draws from gc_seed + i.
        gc_seed: u64 [""] = 1;
        /// Whether pages moved by collections get an append point of their own.
        streams: Streams [""] = Streams::Shared;
        /// On which die a page is written.
        placement: Placement [""] = Placement::Static;
    }
}

impl DftlOptions {
    fn entries(&self) -> u64 {
        super::cache_entries(self.cmt_bytes, self.cmt_entries)
    }

    fn check(&self) -> Result<(), Refusal> {
        super::check_cache("cmt_bytes", self.cmt_bytes, "cmt_entries", self.cmt_entries)?;
        let zero = |key, what| Err(Refusal::new(key, format!("{key} = 0: at least {what}")));
        if self.tp_entries == 0 {
            return zero("tp_entries", "1 entry a translation page");
        }
        if self.flush_ns == 0 {
            return zero("flush_ns", "1 ns");
        }
        Ok(())
    }

    /// `gc_low` on that device: `q` whole map blocks a die must not starve the data.
    fn gc_low(&self, q: u32) -> Result<u32, Refusal> {
        let least = q.saturating_add(5);
        let gc_low = self.gc_low.unwrap_or(least);
        if gc_low < least {
            let text = format!(
                "gc_low = {gc_low}: at least {q} + 5 = {least} erased blocks a die, so that collections find room for translation pages"
            );
            return Err(Refusal::new("gc_low", text));
        }
        Ok(gc_low)
    }

    fn lazy(&self) -> bool {
        match self.lazy_copy {
            LazyCopy::On => true,
            LazyCopy::Off => false,
            LazyCopy::Auto => matches!(self.integrity, Integrity::Noflush | Integrity::Timeout),
        }
    }
}

/// Why a translation page is written.
#[derive(Clone, Copy)]
enum Reason {
    Evict = 0,
    Flush = 1,
    Gc = 2,
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

#[derive(Clone, Copy, Debug, Default)]
struct Counters {
    hits: u64,
    misses: u64,
    evictions: u64,
    dirty_evictions: u64,
    loads: u64,
    /// By [`Reason`].
    writebacks: [u64; 3],
    /// Write-backs that read an old copy.
    writeback_reads: u64,
    ratio: HitRatio,
}

/// What a request in work has loaded and produced.
struct Request<T> {
    producers: Producers<T>,
    /// The translation page loaded last and when it is there.
    loaded: Option<(u32, T)>,
}

/// The map: CMT, GTD, translation pages.
#[derive(Debug)]
struct CachedMap {
    cache: MapCache,
    pages: TranslationPages,
    /// Slots of newer entries by translation page.
    dirty: Lists,
    /// Translation pages that got a newer entry since the last flush, each once (only where there are flushes).
    unflushed: Vec<u32>,
    is_unflushed: Vec<bool>,
    /// Pages moved by the collection in work, with the number of the copy in its request.
    moved: Vec<(Lpn, u32)>,
    options: DftlOptions,
    lazy: bool,
    many_dies: bool,
    next_flush_ns: u64,
    counters: Counters,
}

impl CachedMap {
    fn begin<T: Copy + Default>(&mut self) -> Request<T> {
        Request {
            producers: self.cache.begin(),
            loaded: None,
        }
    }

    /// On one die the order of its operations says it all.
    #[inline]
    fn note<T: Copy + Default>(&self, request: &mut Request<T>, done: T) -> Mark {
        if self.many_dies {
            request.producers.note(done)
        } else {
            Mark::NONE
        }
    }

    /// An entry has changed.
    #[inline]
    fn set_dirty(&mut self, slot: u32, produced: Mark) {
        if !self.cache.is_dirty(slot) {
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
        self.cache.set_clean(slot);
    }

    /// Makes a page's entry a cached one; returns what its flash operation waits for.
    #[inline]
    fn look_up<F: Flash>(
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
            Some((loaded, there)) if loaded == page && self.options.fetch == Fetch::Request => {
                there
            }
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
        let (cache, dirty, all) = (&self.cache, &self.dirty, self.takes_all(set));
        let stays_cached = |lpn: Lpn| self.lazy && cache.slot(lpn).is_some();
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
        let reads = self.pages.write(flash, store, page, produced, change)?;
        self.counters.writebacks[reason as usize] += 1;
        self.counters.writeback_reads += u64::from(reads);
        self.clean(page, set);
        Ok(())
    }

    fn takes_all(&self, set: Set<'_>) -> bool {
        self.options.batch || matches!(set, Set::Dirty)
    }

    fn clean(&mut self, page: u32, set: Set<'_>) {
        match set {
            Set::Entry(slot) => self.set_clean(slot),
            Set::Moved(moved) if !self.lazy => {
                for &(lpn, _) in moved {
                    if let Some(slot) = self.cache.slot(lpn) {
                        self.set_clean(slot);
                    }
                }
            }
            _ => {}
        }
        if self.takes_all(set) {
            while let Some(slot) = self.dirty.first(page as usize) {
                self.set_clean(slot);
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
                    .filter(|(lpn, _)| !self.lazy || self.cache.slot(*lpn).is_none())
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

    /// The entry of a page has changed on the host's behalf.
    fn changed<F: Flash>(
        &mut self,
        flash: &mut F,
        store: &mut PageStore,
        lpn: Lpn,
        produced: Mark,
        request: &Request<F::Token>,
    ) -> Result<(), F::Error> {
        let slot = self.cache.slot(lpn).expect("its lookup put it there");
        self.set_dirty(slot, produced);
        if self.options.integrity == Integrity::Page {
            let page = self.pages.page_of(lpn);
            self.write_back(flash, store, page, Set::Entry(slot), Reason::Flush, request)?;
        }
        Ok(())
    }

    /// Brings the entries of one translation page up to date with the pages that a collection moved.
    fn settle<F: Flash>(
        &mut self,
        flash: &mut F,
        store: &mut PageStore,
        page: u32,
        moved: &[(Lpn, u32)],
        request: &Request<F::Token>,
    ) -> Result<(), F::Error> {
        let mut must_write = !self.lazy;
        for &(lpn, copy) in moved {
            match self.cache.slot(lpn) {
                Some(slot) => self.set_dirty(slot, request.producers.mark(copy)),
                None => must_write = true,
            }
        }
        if must_write {
            self.write_back(flash, store, page, Set::Moved(moved), Reason::Gc, request)?;
        }
        Ok(())
    }
}

/// What collections inside a request do to the map.
struct Collecting<'a, T> {
    map: &'a mut CachedMap,
    request: &'a mut Request<T>,
}

impl<F: Flash> Moves<F> for Collecting<'_, F::Token> {
    fn moved(&mut self, _flash: &mut F, lpn: Lpn, _to: Ppn, done: F::Token) {
        let mark = self.map.note(self.request, done);
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
        self.map.pages.collect(flash, store, victim)
    }

    fn before_erase(&mut self, flash: &mut F, store: &mut PageStore) -> Result<(), F::Error> {
        let mut moved = std::mem::take(&mut self.map.moved);
        moved.sort_unstable();
        let mut rest = &moved[..];
        while let Some(&(first, _)) = rest.first() {
            let page = self.map.pages.page_of(first);
            let n = rest.partition_point(|&(lpn, _)| self.map.pages.page_of(lpn) == page);
            let (these, later) = rest.split_at(n);
            self.map.settle(flash, store, page, these, self.request)?;
            rest = later;
        }
        moved.clear();
        self.map.moved = moved;
        Ok(())
    }
}

/// DFTL on all dies.
#[derive(Debug)]
pub struct Dftl {
    store: PageStore,
    map: CachedMap,
}

impl Dftl {
    fn write_page<F: Flash>(
        &mut self,
        flash: &mut F,
        slot: Slot,
        lpn: Lpn,
        request: &mut Request<F::Token>,
    ) -> Result<(), F::Error> {
        let Self { store, map } = self;
        let translated = map.look_up(flash, store, lpn, Translation::Write, request)?;
        let mut collecting = Collecting { map, request };
        let done = store.write(flash, slot, lpn, translated, &mut collecting)?;
        let mark = map.note(request, done);
        map.changed(flash, store, lpn, mark, request)
    }

    fn read_page<F: Flash>(
        &mut self,
        flash: &mut F,
        slot: Slot,
        lpn: Lpn,
        request: &mut Request<F::Token>,
    ) -> Result<(), F::Error> {
        let Self { store, map } = self;
        let translated = map.look_up(flash, store, lpn, Translation::Read, request)?;
        let at = store.place(lpn);
        if at.is_none() {
            flash.host_unwritten(slot, translated);
        } else {
            flash.host_read(slot, at, translated)?;
        }
        Ok(())
    }

    fn trim_page<F: Flash>(
        &mut self,
        flash: &mut F,
        slot: Slot,
        lpn: Lpn,
        request: &mut Request<F::Token>,
    ) -> Result<(), F::Error> {
        let Self { store, map } = self;
        let translated = map.look_up(flash, store, lpn, Translation::Trim, request)?;
        flash.host_trimmed(slot, translated);
        if store.trim(lpn).is_none() {
            return Ok(());
        }
        map.changed(flash, store, lpn, Mark::NONE, request)
    }

    /// After the last page of a request that changes the map.
    fn end_request<F: Flash>(
        &mut self,
        flash: &mut F,
        request: &Request<F::Token>,
    ) -> Result<(), F::Error> {
        if self.map.options.integrity == Integrity::Req {
            self.map.flush(flash, &mut self.store, request)?;
        }
        Ok(())
    }

    /// Where the map stands that begins with these options.
    fn start<F: Flash>(
        space: &Space,
        options: &DftlOptions,
        start: Start,
        mut store: PageStore,
        flash: &mut F,
    ) -> Self {
        let pages = TranslationPages::format(&mut store, options.tp_entries, start, flash);
        let logical_pages = space.geometry.logical_pages;
        let flushes = matches!(options.integrity, Integrity::Timeout | Integrity::Req);
        let slots = MapCache::slots(logical_pages, options.entries());
        let map = CachedMap {
            cache: MapCache::new(logical_pages, options.entries(), options.cmt_policy),
            dirty: Lists::new(slots as usize, pages.len() as usize),
            unflushed: Vec::new(),
            is_unflushed: vec![false; if flushes { pages.len() as usize } else { 0 }],
            moved: Vec::with_capacity(space.geometry.pages_per_block as usize),
            lazy: options.lazy(),
            many_dies: space.geometry.dies > 1,
            next_flush_ns: options.flush_ns,
            counters: Counters::default(),
            options: options.clone(),
            pages,
        };
        Self { store, map }
    }

    fn audit_map<F: Flash>(&self, flash: &F) -> Result<(), String> {
        let map = &self.map;
        map.cache.audit()?;
        map.pages.audit(flash, &self.store)?;
        let mut listed = 0;
        for page in 0..map.pages.len() {
            for slot in map.dirty.iter(page as usize) {
                listed += 1;
                if !map.cache.is_dirty(slot) || map.pages.page_of(map.cache.lpn(slot)) != page {
                    return Err(format!("slot {slot} is no newer entry of page {page}"));
                }
            }
        }
        let dirty = map.cache.dirty_entries();
        if listed != dirty {
            return Err(format!("{dirty} newer entries, {listed} of them listed"));
        }
        let on_flash = match map.options.integrity {
            Integrity::Req => true,
            Integrity::Page => !map.lazy,
            _ => false,
        };
        if on_flash && dirty > 0 {
            return Err(format!("{dirty} acknowledged changes are not on flash"));
        }
        Ok(())
    }
}

impl Ftl for Dftl {
    const KEY: &'static str = "dftl";
    const TITLE: &'static str = "DFTL";
    const SUMMARY: &'static str = "page mapping with the map on flash, cached on demand";
    const SOURCE: &'static str = "Gupta et al., ASPLOS 2009";
    type Options = DftlOptions;

    fn ram_bytes(geometry: &Geometry, options: &DftlOptions) -> u64 {
        let entries_per_page = options.tp_entries.max(1);
        let pages = geometry.logical_pages.div_ceil(entries_per_page);
        let slots = MapCache::slots(geometry.logical_pages, options.entries());
        PageStore::ram_bytes(geometry)
            + MapCache::ram_bytes(geometry.logical_pages, options.entries())
            + TranslationPages::ram_bytes(geometry, entries_per_page)
            + 12 * (u64::from(slots) + u64::from(geometry.blocks()))
            + 17 * u64::from(pages)
    }

    fn tables(geometry: &Geometry, options: &DftlOptions) -> Vec<Table> {
        let logical_pages = u64::from(geometry.logical_pages);
        let entries_per_page = u64::from(options.tp_entries.max(1));
        let pages = logical_pages.div_ceil(entries_per_page);
        vec![
            Table::sram("CMT", options.entries(), 2 * bits_for(logical_pages) + 1),
            Table::sram("GTD", pages, 32),
            Table::flash("translation pages", pages * entries_per_page, 32),
        ]
    }

    fn format<F: Flash>(
        space: &Space,
        options: &DftlOptions,
        start: Start,
        flash: &mut F,
    ) -> Result<Self, Refusal> {
        options.check()?;
        let q = whole_map_blocks(&space.geometry, options.tp_entries);
        let page_options = PageOptions {
            gc_low: options.gc_low(q)?,
            gc_policy: options.gc_policy,
            gc_d: options.gc_d,
            gc_seed: options.gc_seed,
            streams: options.streams,
            placement: options.placement,
        };
        let store = PageStore::format_with_map_blocks(space, &page_options, q + 1, start, flash)?;
        Ok(Self::start(space, options, start, store, flash))
    }

    #[inline]
    fn write<F: Flash>(&mut self, flash: &mut F, run: &Run) -> Result<(), F::Error> {
        let mut request = self.map.begin();
        for (lpn, slot) in run.iter() {
            self.write_page(flash, slot, lpn, &mut request)?;
        }
        self.end_request(flash, &request)
    }

    #[inline]
    fn read<F: Flash>(&mut self, flash: &mut F, run: &Run) -> Result<(), F::Error> {
        let mut request = self.map.begin();
        run.iter()
            .try_for_each(|(lpn, slot)| self.read_page(flash, slot, lpn, &mut request))
    }

    fn trim<F: Flash>(&mut self, flash: &mut F, run: &Run) -> Result<(), F::Error> {
        let mut request = self.map.begin();
        for (lpn, slot) in run.iter() {
            self.trim_page(flash, slot, lpn, &mut request)?;
        }
        self.end_request(flash, &request)
    }

    fn arrival<F: Flash>(&mut self, flash: &mut F, arrival_ns: u64) -> Result<(), F::Error> {
        let Self { store, map } = self;
        if map.options.integrity != Integrity::Timeout || arrival_ns < map.next_flush_ns {
            return Ok(());
        }
        if map.cache.dirty_entries() > 0 {
            flash.background(map.next_flush_ns);
            let request = map.begin();
            map.flush(flash, store, &request)?;
        }
        let period = map.options.flush_ns;
        map.next_flush_ns = (arrival_ns / period + 1).saturating_mul(period);
        Ok(())
    }

    fn counters(&self) -> SchemeCounters {
        let c = &self.map.counters;
        let mut counters = SchemeCounters::default();
        counters.extra("cmt_hits", c.hits);
        counters.extra("cmt_misses", c.misses);
        counters.extra("cmt_evictions", c.evictions);
        counters.extra("cmt_dirty_evictions", c.dirty_evictions);
        counters.extra("map_loads", c.loads);
        counters.extra("map_writebacks_evict", c.writebacks[Reason::Evict as usize]);
        counters.extra("map_writebacks_flush", c.writebacks[Reason::Flush as usize]);
        counters.extra("map_writebacks_gc", c.writebacks[Reason::Gc as usize]);
        counters.extra("map_moves", self.map.pages.moves);
        counters.stat(
            "map_writeback_reads",
            c.writeback_reads as f64,
            Combine::Sum,
        );
        c.ratio.stats(&mut counters);
        counters
    }

    fn reset_counters(&mut self) {
        self.map.counters = Counters::default();
        self.map.pages.moves = 0;
        self.map.next_flush_ns = self.map.options.flush_ns;
    }

    fn observe(&self, seen: &mut Observation) {
        let dies = 0..self.store.geometry().dies;
        let map_blocks: u32 = dies.map(|die| self.store.map_blocks(die)).sum();
        seen.sum("cmt_entries", self.map.cache.len().into());
        seen.sum("cmt_dirty", self.map.cache.dirty_entries().into());
        seen.sum("map_blocks", map_blocks.into());
        seen.sum("erased_blocks", self.store.erased_blocks().into());
    }

    fn audit<F: Flash>(&self, flash: &F) -> Result<u64, String> {
        self.audit_map(flash)?;
        self.store.audit_with_map(flash, self.map.pages.places())
    }
}

#[cfg(test)]
mod tests;
