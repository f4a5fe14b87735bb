//! The shell of the schemes that keep their page map on flash and cache it on demand: everything about being a scheme that
//! DFTL and its kin do alike. What one of them adds is a [`MapScheme`], and the [`DemandMap`] that says
//! what is cached, what a lookup costs, and what leaves.

use crate::parts::map_cache::{HitRatio, Producers, Translation};
use crate::parts::page_store::{
    GcOptions, IdleOptions, Moves, PageStore, Placement, StoreOptions, Streams,
};
use crate::parts::translation::recovery::{FoundMap, Layout};
use crate::parts::translation::{TranslationPages, whole_map_blocks};
use floatgate_core::Refusal;
use floatgate_core::address::{Lpn, Pbn, Ppn};
use floatgate_core::described::{Described, RecoveryCost};
use floatgate_core::flash::{Flash, Preload, Slot};
use floatgate_core::ftl::{Ftl, MountError, RecoveryMode, Run, Start, Tick, audited};
use floatgate_core::geometry::{Geometry, Space};
use floatgate_core::options::Options;
use floatgate_core::report::{Combine, Observation, SchemeCounters, Table};
use floatgate_core::state;
use floatgate_core::state::{Passed, State, Tape};
use floatgate_core::{choice, options};
use std::fmt::Debug;

#[cfg(test)]
pub(crate) mod checks;

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
    /// Options of all schemes that keep their page map on flash.
    pub struct OnFlashOptions {
        /// Entries in one translation page.
        tp_entries: u32 ["entries"] = 512, samples [1, 2, 4, 4, 4, 3];
        /// When the map on flash catches up with the cached entries.
        integrity: Integrity [""] = Integrity::Noflush;
        /// Period of integrity = TIMEOUT.
        flush_ns: u64 ["ns"] = 30_000_000_000, samples [7_000_000_000, 20_000_000_000, 100_000_000_000, 1, 2_500_000_000];
        /// Whether entries of moved pages that are cached change only there.
        lazy_copy: LazyCopy [""] = LazyCopy::Auto, shown "auto: on for NOFLUSH and TIMEOUT, off for PAGE and REQ";
        /// A die collects garbage until it has this many erased blocks.
        gc_low: Option<u32> ["blocks, die"] = None, shown "full map blocks of a die + 5", samples [2, 3, 5, 6, 8];
        /// Whether pages moved by collections get an append point of their own.
        streams: Streams [""] = Streams::Shared;
        /// On which die a page is written.
        placement: Placement [""] = Placement::Static;
        ..gc: GcOptions;
    }
}

impl OnFlashOptions {
    fn check(&self) -> Result<(), Refusal> {
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

    fn layout(&self, means: RecoveryMode) -> Layout {
        let is_split = self.streams == Streams::Split;
        Layout {
            entries_per_page: self.tp_entries,
            writer: 1 + 2 * self.integrity as u8 + u8::from(is_split),
            is_trusted: means == RecoveryMode::Fastest && self.integrity != Integrity::Noflush,
            is_split,
            trims_wait: self.integrity == Integrity::Timeout,
        }
    }

    /// The options of the page store, if the options fit the device, and the blocks of a die that map pages may take
    /// beside those that collections keep erased.
    fn store(&self, space: &Space) -> Result<(StoreOptions, u32), Refusal> {
        let whole = whole_map_blocks(&space.geometry, self.tp_entries);
        let page = StoreOptions {
            gc_low: self.gc_low(whole)?,
            streams: self.streams,
            placement: self.placement,
            gc: self.gc.clone(),
            idle: IdleOptions::default(),
        };
        PageStore::check_with_map_blocks(space, &page, whole + 1)?;
        Ok((page, whole + 1))
    }

    /// Whether entries of moved pages that are cached change only there.
    pub fn is_lazy(&self) -> bool {
        match self.lazy_copy {
            LazyCopy::On => true,
            LazyCopy::Off => false,
            LazyCopy::Auto => matches!(self.integrity, Integrity::Noflush | Integrity::Timeout),
        }
    }

    /// When and how the map on flash is written.
    pub fn plan(&self, batch: bool) -> MapPlan {
        MapPlan {
            batch,
            lazy: self.is_lazy(),
            write_through: self.integrity == Integrity::Page,
            flushes: matches!(self.integrity, Integrity::Timeout | Integrity::Req),
        }
    }
}

/// When and how the map on flash is written.
#[derive(Clone, Debug)]
pub struct MapPlan {
    /// Whether a write-back takes along all newer entries of its translation page.
    pub batch: bool,
    /// Whether entries of moved pages that are cached change only there.
    pub lazy: bool,
    /// Whether every change by the host is written back at once.
    pub write_through: bool,
    /// Whether there are flushes at all.
    pub flushes: bool,
}

/// Why a translation page is written.
#[derive(Clone, Copy)]
pub enum Reason {
    /// What is cached of it leaves.
    Evict,
    /// Integrity.
    Flush,
    /// Its pages were moved.
    Gc,
}

/// What happened to the map.
#[derive(Clone, Copy, Debug, Default)]
pub struct MapCounters {
    /// Lookups served by the cache.
    pub hits: u64,
    /// Lookups that were not.
    pub misses: u64,
    /// Entries, or pages of entries, driven out.
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

impl MapCounters {
    /// A translation page was written; whether its old copy was read.
    pub fn written(&mut self, reason: Reason, was_read: bool) {
        *match reason {
            Reason::Evict => &mut self.writebacks_evict,
            Reason::Flush => &mut self.writebacks_flush,
            Reason::Gc => &mut self.writebacks_gc,
        } += 1;
        self.writeback_reads += u64::from(was_read);
    }

    fn put(&self, moves: u64, counters: &mut SchemeCounters) {
        counters.extra("cmt_hits", self.hits);
        counters.extra("cmt_misses", self.misses);
        counters.extra("cmt_evictions", self.evictions);
        counters.extra("cmt_dirty_evictions", self.dirty_evictions);
        counters.extra("map_loads", self.loads);
        counters.extra("map_writebacks_evict", self.writebacks_evict);
        counters.extra("map_writebacks_flush", self.writebacks_flush);
        counters.extra("map_writebacks_gc", self.writebacks_gc);
        counters.extra("map_moves", moves);
        let reads = self.writeback_reads as f64;
        counters.stat("map_writeback_reads", reads, Combine::Sum);
        self.ratio.stats(counters);
    }
}

/// The number of the program that was the last so far.
pub fn latest<F: Flash>(flash: &F) -> u64 {
    flash.ledger().next_sequence().saturating_sub(1)
}

/// What a request in work has loaded and produced.
pub struct Request<T> {
    /// Its operations that changed the map.
    pub producers: Producers<T>,
    /// The translation page loaded last and when it is there.
    pub loaded: Option<(u32, T)>,
    /// Its last page.
    pub last: Lpn,
}

/// A page map on flash with a part of it cached.
///
/// What a method returns as an error is the flash's own.
#[expect(
    clippy::missing_errors_doc,
    reason = "the errors are the flash's, as the trait's text says"
)]
pub trait DemandMap: State + Debug + Send + 'static {
    /// The map behind the cache.
    fn pages(&self) -> &TranslationPages;

    /// The map behind the cache.
    fn pages_mut(&mut self) -> &mut TranslationPages;

    /// What happened.
    fn counters(&self) -> &MapCounters;

    /// What happened.
    fn counters_mut(&mut self) -> &mut MapCounters;

    /// A request begins.
    fn begin<T: Copy + Default>(&mut self, last: Lpn) -> Request<T>;

    /// Makes a page's entry a known one; returns what its flash operation waits for.
    fn look_up<F: Flash>(
        &mut self,
        flash: &mut F,
        store: &mut PageStore,
        lpn: Lpn,
        translation: Translation,
        request: &mut Request<F::Token>,
    ) -> Result<F::Token, F::Error>;

    /// The entry of a page has changed on the host's behalf, by the operation that ends at `done` if there was one.
    fn changed<F: Flash>(
        &mut self,
        flash: &mut F,
        store: &mut PageStore,
        lpn: Lpn,
        done: Option<F::Token>,
        request: &mut Request<F::Token>,
    ) -> Result<(), F::Error>;

    /// Writes all newer entries back, translation page by translation page.
    fn flush<F: Flash>(
        &mut self,
        flash: &mut F,
        store: &mut PageStore,
        request: &Request<F::Token>,
    ) -> Result<(), F::Error>;

    /// The entry of a page is looked up soon.
    fn prefetch(&self, lpn: Lpn);

    /// The collection in work has moved a page.
    fn moved<F: Flash>(
        &mut self,
        flash: &mut F,
        lpn: Lpn,
        done: F::Token,
        request: &mut Request<F::Token>,
    );

    /// Brings the entries of all moved pages up to date.
    fn write_back_moved<F: Flash>(
        &mut self,
        flash: &mut F,
        store: &mut PageStore,
        request: &Request<F::Token>,
    ) -> Result<(), F::Error>;

    /// Changes with lower sequence numbers are on flash; `u64::MAX` if all are.
    fn oldest_pending(&self) -> u64;

    /// Entries that are newer than flash.
    fn newer(&self) -> u32;

    /// Adds counters of its own to those of [`MapCounters`].
    fn count(&self, counters: &mut SchemeCounters) {
        let _ = counters;
    }

    /// Sets its own counters to zero.
    fn reset_own_counters(&mut self) {}

    /// What is cached.
    fn observe(&self, seen: &mut Observation);

    /// Checks its tables; those of the translation pages are checked before.
    fn audit(&self, store: &PageStore) -> Result<(), String>;
}

/// What a scheme with its page map on flash says of itself. The constants are those of [`Described`].
pub trait MapScheme: Debug + Send + 'static {
    /// [`Described::KEY`].
    const KEY: &'static str;
    /// [`Described::TITLE`].
    const TITLE: &'static str;
    /// [`Described::SUMMARY`].
    const SUMMARY: &'static str;
    /// [`Described::SOURCE`].
    const SOURCE: &'static str;
    /// [`Described::TEXT`].
    const TEXT: &'static str;
    /// Its options.
    type Options: Options;
    /// What it caches and how.
    type Map: DemandMap;

    /// Those that all such schemes have.
    fn on_flash(options: &Self::Options) -> &OnFlashOptions;

    /// Checks those of its cache.
    ///
    /// # Errors
    /// A refusal that names the option at fault.
    fn check_cache(options: &Self::Options) -> Result<(), Refusal>;

    /// The map with nothing cached.
    fn map(options: &Self::Options, store: &PageStore, pages: TranslationPages) -> Self::Map;

    /// The tables of the cache.
    fn cache_tables(geometry: &Geometry, options: &Self::Options) -> Vec<Table>;

    /// Bytes of this program's memory for the cache.
    fn cache_ram_bytes(geometry: &Geometry, options: &Self::Options) -> u64;
}

/// Such a scheme on all dies.
#[derive(Debug)]
pub struct OnDemand<S: MapScheme> {
    pub(crate) store: PageStore,
    pub(crate) map: S::Map,
    integrity: Integrity,
    lazy: bool,
    flush_ns: u64,
    /// When the timer runs out next.
    pub(crate) next_flush_ns: u64,
    /// Under `REQ`: pages that the trim in work has dropped, and where they lay.
    trimmed: Vec<(Lpn, Ppn)>,
}

// `trimmed` is empty between requests.
state!(OnDemand<S> [S: MapScheme] { store, map, next_flush_ns } fixed { integrity, lazy, flush_ns, trimmed });

impl<S: MapScheme> OnDemand<S> {
    fn of(options: &S::Options, store: PageStore, map: S::Map) -> Self {
        let options = S::on_flash(options);
        Self {
            store,
            map,
            integrity: options.integrity,
            lazy: options.is_lazy(),
            flush_ns: options.flush_ns,
            next_flush_ns: options.flush_ns,
            trimmed: Vec::new(),
        }
    }

    /// The store's options and its map blocks, if all options fit the device.
    fn checked(space: &Space, options: &S::Options) -> Result<(StoreOptions, u32), Refusal> {
        S::check_cache(options)?;
        S::on_flash(options).check()?;
        S::on_flash(options).store(space)
    }

    fn read_device<F: Flash>(
        space: &Space,
        options: &S::Options,
        mut store: PageStore,
        layout: &Layout,
        flash: &mut F,
    ) -> Result<Self, MountError<F::Error>> {
        let found = FoundMap::read(space, layout, flash);
        let mut found = found.map_err(MountError::Flash)?;
        let FoundMap {
            scan,
            places,
            directory,
            ..
        } = &mut found;
        store.mount_found(scan, places, directory, flash)?;
        let pages = TranslationPages::recover(&mut store, &found, layout, flash);
        let map = S::map(options, &store, pages.map_err(MountError::Flash)?);
        let mut ftl = Self::of(options, store, map);
        ftl.end_recovery(flash).map_err(MountError::Flash)?;
        Ok(ftl)
    }

    /// Brings the flash up to date after a power cut; nothing is cached then.
    fn end_recovery<F: Flash>(&mut self, flash: &mut F) -> Result<(), F::Error> {
        let Self { store, map, .. } = self;
        let request = &mut map.begin(Lpn::NONE);
        store.relieve_dies(flash, &mut Collecting { map, request })?;
        map.write_back_moved(flash, store, request)?;
        map.pages_mut().end_recovery(store, flash)?;
        *map.counters_mut() = MapCounters::default();
        map.pages_mut().moves = 0;
        Ok(())
    }

    fn write_in<F: Flash>(
        &mut self,
        flash: &mut F,
        slot: Slot,
        lpn: Lpn,
        request: &mut Request<F::Token>,
    ) -> Result<(), F::Error> {
        let Self { store, map, .. } = self;
        let translated = map.look_up(flash, store, lpn, Translation::Write, request)?;
        let mut collecting = Collecting { map, request };
        let done = store.write(flash, slot, lpn, translated, &mut collecting)?;
        map.changed(flash, store, lpn, Some(done), request)
    }

    fn read_in<F: Flash>(
        &mut self,
        flash: &mut F,
        slot: Slot,
        lpn: Lpn,
        request: &mut Request<F::Token>,
    ) -> Result<(), F::Error> {
        let Self { store, map, .. } = self;
        let translated = map.look_up(flash, store, lpn, Translation::Read, request)?;
        let at = store.place(lpn);
        if at.is_none() {
            flash.absent(slot, translated);
        } else {
            flash.read_host(slot, at, translated)?;
        }
        Ok(())
    }

    fn trim_in<F: Flash>(
        &mut self,
        flash: &mut F,
        slot: Slot,
        lpn: Lpn,
        request: &mut Request<F::Token>,
    ) -> Result<(), F::Error> {
        let Self { store, map, .. } = self;
        let translated = map.look_up(flash, store, lpn, Translation::Trim, request)?;
        flash.absent(slot, translated);
        let old = store.trim(lpn);
        if old.is_none() {
            return Ok(());
        }
        map.changed(flash, store, lpn, None, request)?;
        // Else its block could be erased while the map on the other die still names it.
        flash.keeps(old, map.pages().die_of(lpn));
        if self.integrity == Integrity::Req {
            self.trimmed.push((lpn, old));
        }
        Ok(())
    }

    /// After the last page of a request that changes the map.
    fn end_request<F: Flash>(
        &mut self,
        flash: &mut F,
        request: &Request<F::Token>,
    ) -> Result<(), F::Error> {
        if self.integrity == Integrity::Req {
            self.map.flush(flash, &mut self.store, request)?;
            for (lpn, old) in self.trimmed.drain(..) {
                flash.keeps(old, self.map.pages().die_of(lpn));
            }
        }
        Ok(())
    }

    /// Whether acknowledged changes must all be on flash, and are not.
    fn audit_integrity(&self) -> Result<(), String> {
        let on_flash = match self.integrity {
            Integrity::Req => true,
            Integrity::Page => !self.lazy,
            Integrity::Noflush | Integrity::Timeout => false,
        };
        let dirty = self.map.newer();
        if on_flash && dirty > 0 {
            return Err(format!("{dirty} acknowledged changes are not on flash"));
        }
        Ok(())
    }
}

/// What collections inside a request do to the map.
struct Collecting<'a, M, T> {
    map: &'a mut M,
    request: &'a mut Request<T>,
}

impl<F: Flash, M: DemandMap> Moves<F> for Collecting<'_, M, F::Token> {
    #[inline(always)]
    fn expects(&self, lpn: Lpn) {
        self.map.prefetch(lpn);
    }

    #[inline]
    fn moved(&mut self, flash: &mut F, lpn: Lpn, _to: Ppn, done: F::Token) {
        self.map.moved(flash, lpn, done, self.request);
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
        let pending = self.map.oldest_pending();
        let pages = self.map.pages_mut();
        pages.checkpoint.pending = pending;
        pages.collect(flash, store, victim)
    }

    fn before_erase(&mut self, flash: &mut F, store: &mut PageStore) -> Result<(), F::Error> {
        self.map.write_back_moved(flash, store, self.request)
    }
}

impl<S: MapScheme> Described for OnDemand<S> {
    const KEY: &'static str = S::KEY;
    const TITLE: &'static str = S::TITLE;
    const SUMMARY: &'static str = S::SUMMARY;
    const SOURCE: &'static str = S::SOURCE;
    const TEXT: &'static str = S::TEXT;
    type Options = S::Options;

    fn check(space: &Space, options: &S::Options) -> Result<(), Refusal> {
        Self::checked(space, options).map(|_| ())
    }

    fn tables(geometry: &Geometry, options: &S::Options) -> Vec<Table> {
        let entries_per_page = u64::from(S::on_flash(options).tp_entries.max(1));
        let pages = u64::from(geometry.logical_pages).div_ceil(entries_per_page);
        let mut tables = S::cache_tables(geometry, options);
        tables.push(Table::sram("GTD", pages, 32));
        tables.push(Table::flash(
            "translation pages",
            pages * entries_per_page,
            32,
        ));
        tables
    }

    fn ram_bytes(geometry: &Geometry, options: &S::Options) -> u64 {
        let entries_per_page = S::on_flash(options).tp_entries.max(1);
        PageStore::ram_bytes(geometry)
            + TranslationPages::ram_bytes(geometry, entries_per_page)
            + S::cache_ram_bytes(geometry, options)
    }

    fn weighs_dies(options: &S::Options) -> bool {
        S::on_flash(options).placement == Placement::Free
    }

    /// The full scan reads the translation pages too, to see which of them must be written.
    ///
    /// From the translation pages: at most all spare blocks but one are map blocks. Of data blocks those that were
    /// open are read, and up to three begun since: what a page and two collections can have programmed without a
    /// word in the map. Other pending changes come on top: those of the request in `REQ`, those of the period in
    /// `TIMEOUT`, and there all data blocks of a die on which an erase can have been cut. The full scan is the most
    /// in any case.
    fn recovery_costs(geometry: &Geometry, options: &S::Options) -> Vec<RecoveryCost> {
        let options = S::on_flash(options);
        let (dies, pages) = (
            u64::from(geometry.dies),
            u64::from(geometry.pages_per_block),
        );
        let map_pages = geometry
            .logical_pages
            .div_ceil(options.tp_entries.max(1))
            .into();
        let scan = RecoveryCost {
            page_reads: map_pages,
            programs: map_pages + 1,
            ..RecoveryCost::scan("full scan", geometry.pages().into())
        };
        let means = match options.integrity {
            Integrity::Noflush => return vec![scan],
            Integrity::Page => "translation pages",
            Integrity::Req => "translation pages, between requests",
            Integrity::Timeout => "translation pages, right after a flush",
        };
        let spare = geometry.blocks_per_die - geometry.logical_blocks_per_die();
        let streams = if options.streams == Streams::Split {
            2
        } else {
            1
        };
        let whole = dies * (u64::from(spare.saturating_sub(1)) + streams) + 3;
        let fast = RecoveryCost {
            means,
            oob_reads: (u64::from(geometry.blocks()) + whole * (pages - 1)).min(scan.oob_reads),
            programs: map_pages.min(2 * pages + 1) + 1,
            ..scan.clone()
        };
        vec![scan, fast]
    }

    fn counters(&self) -> SchemeCounters {
        let mut counters = SchemeCounters::default();
        let moves = self.map.pages().moves;
        self.map.counters().put(moves, &mut counters);
        self.map.count(&mut counters);
        counters
    }

    fn reset_counters(&mut self) {
        *self.map.counters_mut() = MapCounters::default();
        self.map.reset_own_counters();
        self.map.pages_mut().moves = 0;
        self.next_flush_ns = self.flush_ns;
    }

    fn observe(&self, seen: &mut Observation) {
        let dies = 0..self.store.geometry().dies;
        let map_blocks: u32 = dies.map(|die| self.store.map_blocks(die)).sum();
        self.map.observe(seen);
        seen.sum("cmt_dirty", self.map.newer().into());
        seen.sum("map_blocks", map_blocks.into());
        seen.sum("erased_blocks", self.store.erased_blocks().into());
    }
}

impl<S: MapScheme> Ftl for OnDemand<S> {
    type Page = Lpn;

    fn format<F: Preload>(
        space: &Space,
        options: &S::Options,
        start: Start,
        flash: &mut F,
    ) -> Result<Self, MountError<F::Error>> {
        let (page, map_blocks) = Self::checked(space, options)?;
        let mut store = PageStore::format_with_map_blocks(space, &page, map_blocks, start, flash)?;
        let layout = S::on_flash(options).layout(RecoveryMode::Fastest);
        let (entries, writer) = (layout.entries_per_page, layout.writer);
        let pages = TranslationPages::format(&mut store, entries, writer, start, flash)
            .map_err(MountError::Flash)?;
        let map = S::map(options, &store, pages);
        Ok(Self::of(options, store, map))
    }

    fn recover<F: Flash>(
        space: &Space,
        options: &S::Options,
        means: RecoveryMode,
        flash: &mut F,
    ) -> Result<Self, MountError<F::Error>> {
        let (page, map_blocks) = Self::checked(space, options)?;
        let store = PageStore::blank(space, &page, map_blocks)?;
        let layout = S::on_flash(options).layout(means);
        let ftl = Self::read_device(space, options, store, &layout, flash)?;
        audited(ftl, flash)
    }

    fn write_page<F: Flash>(
        &mut self,
        flash: &mut F,
        page: Lpn,
        slot: Slot,
    ) -> Result<(), F::Error> {
        self.write(flash, &Run::page_at(page, slot))
    }

    fn read_page<F: Flash>(
        &mut self,
        flash: &mut F,
        page: Lpn,
        slot: Slot,
    ) -> Result<(), F::Error> {
        self.read(flash, &Run::page_at(page, slot))
    }

    fn trim_page<F: Flash>(
        &mut self,
        flash: &mut F,
        page: Lpn,
        slot: Slot,
    ) -> Result<(), F::Error> {
        self.trim(flash, &Run::page_at(page, slot))
    }

    #[inline]
    fn write<F: Flash>(&mut self, flash: &mut F, run: &Run) -> Result<(), F::Error> {
        let mut request = self.map.begin(last_of(run));
        for (lpn, slot) in run.iter() {
            self.write_in(flash, slot, lpn, &mut request)?;
        }
        self.end_request(flash, &request)
    }

    #[inline]
    fn read<F: Flash>(&mut self, flash: &mut F, run: &Run) -> Result<(), F::Error> {
        let mut request = self.map.begin(last_of(run));
        run.iter()
            .try_for_each(|(lpn, slot)| self.read_in(flash, slot, lpn, &mut request))
    }

    fn trim<F: Flash>(&mut self, flash: &mut F, run: &Run) -> Result<(), F::Error> {
        let mut request = self.map.begin(last_of(run));
        for (lpn, slot) in run.iter() {
            self.trim_in(flash, slot, lpn, &mut request)?;
        }
        self.end_request(flash, &request)
    }

    fn tick<F: Flash>(&mut self, flash: &mut F, tick: &Tick) -> Result<(), F::Error> {
        if self.integrity != Integrity::Timeout || tick.now_ns < self.next_flush_ns {
            return Ok(());
        }
        if self.map.newer() > 0 {
            flash.background(self.next_flush_ns);
            let request = self.map.begin(Lpn::NONE);
            self.map.flush(flash, &mut self.store, &request)?;
        }
        self.next_flush_ns = (tick.now_ns / self.flush_ns + 1).saturating_mul(self.flush_ns);
        Ok(())
    }

    #[inline(always)]
    fn prefetch(&self, lpn: Lpn) {
        self.store.prefetch(lpn);
        self.map.prefetch(lpn);
    }

    fn state(&mut self, tape: &mut Tape<'_>) -> Passed {
        self.pass(tape)
    }

    fn audit<F: Flash>(&self, flash: &F) -> Result<u64, String> {
        self.map.pages().audit(flash, &self.store)?;
        self.map.audit(&self.store)?;
        self.audit_integrity()?;
        self.store.audit_with_map(flash, self.map.pages().places())
    }
}

/// The last page of a request.
fn last_of(run: &Run) -> Lpn {
    run.page(run.pages - 1).0
}
