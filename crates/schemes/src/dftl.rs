//! `dftl`: page mapping with the map on flash, cached on demand.
//!
//! **Paper.** Gupta, Kim, Urgaonkar, "DFTL: A Flash Translation Layer Employing Demand-based Selective Caching of
//! Page-level Address Mappings", ASPLOS 2009, sections 3.1 to 3.4; described in LAST++ section 2.3 and HAT II.B.3.
//! The integrity modes: LAST++ section 5.3.
//!
//! **Rules.** docs/spec/dftl.md has every one of them, to the last counter.
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
//! **Recovery.** Full OOB scan in mode `NOFLUSH`. Else the role in the first page of every block, the OOBs of map blocks
//! (they give the GTD), the translation pages, and the OOBs of the data blocks that were open at the oldest change which
//! was not in them, or begun since: the OOBs of translation pages tell that number. Then the translation pages that
//! miss something are written, and one says that nothing is missing. The CMT starts empty.
//!
//! **Deviations and why.** A write loads its entry too (Gupta's algorithm; HAT's Fin1 paragraph says it need not): the old
//! copy must be found. The load waits for the die only, not for the write-back of the entry it drives out. The
//! last erased blocks of a die are kept from data for map blocks, which the papers do not need to mention:
//! without that a collection may find no place for its translation pages. Lazy copy is off where flash
//! must hold the map of everything acknowledged. This program keeps the places of cached and uncached entries in one
//! table; which of them are cached and newer than flash is the CMT's account, and where the flash stores bytes
//! the translation pages bear their real entries.

use crate::parts::cached_map::{CachedMap, Collecting, Fetch, MapCounters, MapPlan, Request};
use crate::parts::map_cache::{CachePolicy, Mark, Translation};
use crate::parts::page_store::{GcOptions, PageStore, Placement, StoreOptions, Streams};
use crate::parts::translation::recovery::{FoundMap, Layout};
use crate::parts::translation::whole_map_blocks;
use floatgate_core::Refusal;
use floatgate_core::address::{Lpn, Ppn};
use floatgate_core::described::{Described, RecoveryCost};
use floatgate_core::flash::{Flash, Preload, Slot};
use floatgate_core::ftl::{Ftl, MountError, RecoveryMode, Run, Start, Tick, audited};
use floatgate_core::geometry::{Geometry, Space};
use floatgate_core::report::{Combine, Observation, SchemeCounters, Table, bits_for};
use floatgate_core::state;
use floatgate_core::state::{Passed, State, Tape};
use floatgate_core::{choice, options};

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
    /// Options of `dftl`.
    pub struct DftlOptions {
        /// Memory for cached map entries, 8 bytes each.
        cmt_bytes: u64 ["bytes"] = 131_072, samples [8, 100];
        /// Cached map entries; goes before cmt_bytes.
        cmt_entries: Option<u64> ["entries"] = None, shown "cmt_bytes / 8", samples [1, 2, 3, 6, 100, 7];
        /// Which cached entry leaves.
        cmt_policy: CachePolicy [""] = CachePolicy::Lru;
        /// Entries in one translation page.
        tp_entries: u32 ["entries"] = 512, samples [1, 2, 4, 4, 4, 3];
        /// When the map on flash catches up with the cached entries.
        integrity: Integrity [""] = Integrity::Noflush;
        /// Period of integrity = TIMEOUT.
        flush_ns: u64 ["ns"] = 30_000_000_000, samples [7_000_000_000, 20_000_000_000, 100_000_000_000, 1, 2_500_000_000];
        /// What one read of a translation page serves.
        fetch: Fetch [""] = Fetch::Entry;
        /// Whether a write-back takes along all newer entries of its translation page.
        batch: bool [""] = true;
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

impl DftlOptions {
    fn entries(&self) -> u64 {
        crate::parts::budgets::cache_entries(self.cmt_bytes, self.cmt_entries)
    }

    fn check(&self) -> Result<(), Refusal> {
        crate::parts::budgets::check_cache(
            "cmt_bytes",
            self.cmt_bytes,
            "cmt_entries",
            self.cmt_entries,
        )?;
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

    fn plan(&self) -> MapPlan {
        MapPlan {
            entries: self.entries(),
            policy: self.cmt_policy,
            entries_per_page: self.tp_entries,
            fetch: self.fetch,
            batch: self.batch,
            lazy: self.lazy(),
            write_through: self.integrity == Integrity::Page,
            flushes: matches!(self.integrity, Integrity::Timeout | Integrity::Req),
            writer: self.layout(RecoveryMode::Fastest).writer,
        }
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
        self.check()?;
        let whole = whole_map_blocks(&space.geometry, self.tp_entries);
        let page = StoreOptions {
            gc_low: self.gc_low(whole)?,
            streams: self.streams,
            placement: self.placement,
            gc: self.gc.clone(),
        };
        PageStore::check_with_map_blocks(space, &page, whole + 1)?;
        Ok((page, whole + 1))
    }

    fn lazy(&self) -> bool {
        match self.lazy_copy {
            LazyCopy::On => true,
            LazyCopy::Off => false,
            LazyCopy::Auto => matches!(self.integrity, Integrity::Noflush | Integrity::Timeout),
        }
    }
}

/// DFTL on all dies.
#[derive(Debug)]
pub struct Dftl {
    store: PageStore,
    map: CachedMap,
    integrity: Integrity,
    lazy: bool,
    flush_ns: u64,
    /// When the timer runs out next.
    next_flush_ns: u64,
    /// Under `REQ`: pages that the trim in work has dropped, and where they lay.
    trimmed: Vec<(Lpn, Ppn)>,
}

// `trimmed` is empty between requests.
state!(Dftl { store, map, next_flush_ns } fixed { integrity, lazy, flush_ns, trimmed });

impl Dftl {
    fn of(options: &DftlOptions, store: PageStore, map: CachedMap) -> Self {
        Self {
            store,
            map,
            integrity: options.integrity,
            lazy: options.lazy(),
            flush_ns: options.flush_ns,
            next_flush_ns: options.flush_ns,
            trimmed: Vec::new(),
        }
    }

    fn read_device<F: Flash>(
        space: &Space,
        options: &DftlOptions,
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
        let map = CachedMap::recover(options.plan(), &mut store, &found, layout, flash);
        Ok(Self::of(options, store, map.map_err(MountError::Flash)?))
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
        let mark = map.note(request, done);
        map.changed(flash, store, lpn, mark, request)
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
        map.changed(flash, store, lpn, Mark::NONE, request)?;
        // Else its block could be erased while the map on the other die still names it.
        flash.keeps(old, map.die_of(lpn));
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
                flash.keeps(old, self.map.die_of(lpn));
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
        let dirty = self.map.cache.dirty_entries();
        if on_flash && dirty > 0 {
            return Err(format!("{dirty} acknowledged changes are not on flash"));
        }
        Ok(())
    }
}

impl Described for Dftl {
    const KEY: &'static str = "dftl";
    const TITLE: &'static str = "DFTL";
    const SUMMARY: &'static str = "page mapping with the map on flash, cached on demand";
    const SOURCE: &'static str = "Gupta et al., ASPLOS 2009";
    const TEXT: &'static str = include_str!("dftl.rs");
    type Options = DftlOptions;

    fn check(space: &Space, options: &DftlOptions) -> Result<(), Refusal> {
        options.store(space).map(|_| ())
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

    fn ram_bytes(geometry: &Geometry, options: &DftlOptions) -> u64 {
        PageStore::ram_bytes(geometry)
            + CachedMap::ram_bytes(geometry, options.entries(), options.tp_entries.max(1))
    }

    /// The full scan reads the translation pages too, to see which of them must be written.
    ///
    /// From the translation pages: at most all spare blocks but one are map blocks. Of data blocks those that were
    /// open are read, and up to three begun since: what a page and two collections can have programmed without a
    /// word in the map. Other pending changes come on top: those of the request in `REQ`, those of the period in
    /// `TIMEOUT`, and there all data blocks of a die on which an erase can have been cut. The full scan is the most
    /// in any case.
    fn recovery_costs(geometry: &Geometry, options: &DftlOptions) -> Vec<RecoveryCost> {
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
        let c = &self.map.counters;
        let mut counters = SchemeCounters::default();
        counters.extra("cmt_hits", c.hits);
        counters.extra("cmt_misses", c.misses);
        counters.extra("cmt_evictions", c.evictions);
        counters.extra("cmt_dirty_evictions", c.dirty_evictions);
        counters.extra("map_loads", c.loads);
        counters.extra("map_writebacks_evict", c.writebacks_evict);
        counters.extra("map_writebacks_flush", c.writebacks_flush);
        counters.extra("map_writebacks_gc", c.writebacks_gc);
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
        self.map.counters = MapCounters::default();
        self.map.pages.moves = 0;
        self.next_flush_ns = self.flush_ns;
    }

    fn observe(&self, seen: &mut Observation) {
        let dies = 0..self.store.geometry().dies;
        let map_blocks: u32 = dies.map(|die| self.store.map_blocks(die)).sum();
        seen.sum("cmt_entries", self.map.cache.len().into());
        seen.sum("cmt_dirty", self.map.cache.dirty_entries().into());
        seen.sum("map_blocks", map_blocks.into());
        seen.sum("erased_blocks", self.store.erased_blocks().into());
    }
}

impl Ftl for Dftl {
    type Page = Lpn;

    fn format<F: Preload>(
        space: &Space,
        options: &DftlOptions,
        start: Start,
        flash: &mut F,
    ) -> Result<Self, MountError<F::Error>> {
        let (page, map_blocks) = options.store(space)?;
        let mut store = PageStore::format_with_map_blocks(space, &page, map_blocks, start, flash)?;
        let map = CachedMap::format(options.plan(), &mut store, start, flash)
            .map_err(MountError::Flash)?;
        Ok(Self::of(options, store, map))
    }

    fn recover<F: Flash>(
        space: &Space,
        options: &DftlOptions,
        means: RecoveryMode,
        flash: &mut F,
    ) -> Result<Self, MountError<F::Error>> {
        let (page, map_blocks) = options.store(space)?;
        let store = PageStore::blank(space, &page, map_blocks)?;
        let layout = options.layout(means);
        let dftl = Self::read_device(space, options, store, &layout, flash)?;
        audited(dftl, flash)
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
        let mut request = self.map.begin();
        for (lpn, slot) in run.iter() {
            self.write_in(flash, slot, lpn, &mut request)?;
        }
        self.end_request(flash, &request)
    }

    #[inline]
    fn read<F: Flash>(&mut self, flash: &mut F, run: &Run) -> Result<(), F::Error> {
        let mut request = self.map.begin();
        run.iter()
            .try_for_each(|(lpn, slot)| self.read_in(flash, slot, lpn, &mut request))
    }

    fn trim<F: Flash>(&mut self, flash: &mut F, run: &Run) -> Result<(), F::Error> {
        let mut request = self.map.begin();
        for (lpn, slot) in run.iter() {
            self.trim_in(flash, slot, lpn, &mut request)?;
        }
        self.end_request(flash, &request)
    }

    fn tick<F: Flash>(&mut self, flash: &mut F, tick: &Tick) -> Result<(), F::Error> {
        if self.integrity != Integrity::Timeout || tick.now_ns < self.next_flush_ns {
            return Ok(());
        }
        if self.map.cache.dirty_entries() > 0 {
            flash.background(self.next_flush_ns);
            let request = self.map.begin();
            self.map.flush(flash, &mut self.store, &request)?;
        }
        self.next_flush_ns = (tick.now_ns / self.flush_ns + 1).saturating_mul(self.flush_ns);
        Ok(())
    }

    #[inline(always)]
    fn prefetch(&self, lpn: Lpn) {
        self.store.prefetch(lpn);
    }

    fn state(&mut self, tape: &mut Tape<'_>) -> Passed {
        self.pass(tape)
    }

    fn audit<F: Flash>(&self, flash: &F) -> Result<u64, String> {
        self.map.audit(flash, &self.store)?;
        self.audit_integrity()?;
        self.store.audit_with_map(flash, self.map.pages.places())
    }
}

#[cfg(test)]
mod tests;
