//! `hat`: page mapping whose table lies in phase-change memory, with translation hidden behind flash.
//!
//! **Paper.** Hu et al., "Achieving Page-Mapping FTL Performance at Block-Mapping FTL Cost by Hiding Address
//! Translation", MSST 2010, section III and Algorithm 1.
//!
//! **Rules.** docs/spec/hat.md has every one of them, to the last counter.
//!
//! **RAM state.** QMT: the map entries in use, one LRU list, each with a mark "newer than the SMT". Beside it what
//! page mapping keeps of its blocks.
//!
//! **Flash state.** That of `page`, operation for operation. The whole table (SMT) lies in PCM, which has a path
//! of its own.
//!
//! **How it writes, reads, reclaims.** As `page`. A read that misses the QMT reads its entry from PCM first; a write
//! programs at once and needs no old entry. Whoever comes into a full QMT drives out the entry used longest
//! ago, which is written to PCM if it is newer: beside the flash operation, behind the PCM reads of the request, and
//! nobody waits for it. A page moved by a
//! collection changes its entry in the QMT, or else in PCM.
//!
//! **Recovery.** A power cut loses the QMT, and an entry in steady use may stay newer than PCM for ever: full OOB scan,
//! then the entries of PCM that differ are put right. A clean shutdown writes what is newer; the next start could then
//! read its map from PCM and no flash, but what is kept of a device is its flash, so that way is modelled only.
//!
//! **Deviations and why.** Algorithm 1 resets the mark on a read hit (an update would be lost: kept here) and evicts on
//! every write to a full QMT (the text and Fig. 7 evict on a miss only: so here). How a write that misses
//! finds its old copy is left open: it costs nothing, or with `invalidate_lookup = pcm` one PCM read beside
//! the program. What a collection writes, and trims, are not in the paper. In the counters eviction comes
//! before the SMT read as in Algorithm 1, in time after it as in Fig. 6. The places themselves stand in one
//! table for QMT and SMT alike: no counter depends on which of the two holds them.

use std::sync::Arc;

use crate::parts::map_cache::{CachePolicy, HitRatio, MapCache, Mark, Producers, Translation};
use crate::parts::page_store::Moves;
use crate::parts::placement::{House, PageOptions, Store};
use floatgate_core::Refusal;
use floatgate_core::address::{Lpn, Ppn};
use floatgate_core::described::{ChipTimes, Described, RecoveryCost};
use floatgate_core::flash::{Flash, Preload, Slot};
use floatgate_core::ftl::{Ftl, MountError, RecoveryMode, Run, Start, audited};
use floatgate_core::geometry::{Geometry, Space};
use floatgate_core::pcm::{MAX_CHIPS, Pcm, PcmSetup};
use floatgate_core::report::{Observation, SchemeCounters, Table, bits_for};
use floatgate_core::state;
use floatgate_core::state::{Passed, State, Tape};
use floatgate_core::{choice, options};

choice! {
    /// How a write that misses the QMT finds the old copy.
    pub enum InvalidateLookup {
        /// At no cost.
        Free = "free",
        /// By a PCM read beside the program.
        Pcm = "pcm",
    }
}

options! {
    /// Options of `hat`.
    pub struct HatOptions {
        /// Memory for cached map entries, 8 bytes each.
        qmt_bytes: u64 ["bytes"] = 131_072, samples [8, 100];
        /// Cached map entries; goes before qmt_bytes.
        qmt_entries: Option<u64> ["entries"] = None, shown "qmt_bytes / 8", samples [1, 2, 5, 7];
        /// How a write that misses the cached entries finds the old copy.
        invalidate_lookup: InvalidateLookup [""] = InvalidateLookup::Free;
        /// A PCM read goes before PCM writes that have not begun; changes times only.
        pcm_read_first: bool [""] = false;
        /// PCM chips that work independently; change times only.
        pcm_chips: u32 ["chips"] = 1, samples [1, 2, 3];
        ..page: PageOptions;
    }
}

impl HatOptions {
    fn entries(&self) -> u64 {
        crate::parts::budgets::cache_entries(self.qmt_bytes, self.qmt_entries)
    }

    fn check_pcm(&self) -> Result<(), Refusal> {
        if (1..=MAX_CHIPS).contains(&self.pcm_chips) {
            return Ok(());
        }
        let text = format!("pcm_chips = {}: 1 to {MAX_CHIPS} chips", self.pcm_chips);
        Err(Refusal::new("pcm_chips", text))
    }

    fn check_cache(&self) -> Result<(), Refusal> {
        crate::parts::budgets::check_cache(
            "qmt_bytes",
            self.qmt_bytes,
            "qmt_entries",
            self.qmt_entries,
        )
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct Counters {
    pcm_reads: u64,
    pcm_writes: u64,
    hits: u64,
    misses: u64,
    ratio: HitRatio,
}

state!(Counters {
    pcm_reads,
    pcm_writes,
    hits,
    misses,
    ratio
});

/// The account of QMT and SMT.
#[derive(Debug)]
struct Qmt {
    cache: MapCache,
    counters: Counters,
    /// Pages whose entries the read request in work has driven out, and whose writes to PCM are still to be issued.
    put_off: Vec<Lpn>,
}

state!(Qmt { cache, counters } fixed { put_off });

impl Qmt {
    fn pcm_read<F: Flash>(&mut self, flash: &mut F, lpn: Lpn) -> F::Token {
        self.counters.pcm_reads += 1;
        flash.pcm().read_entry(lpn)
    }

    fn pcm_write<F: Flash>(&mut self, flash: &mut F, lpn: Lpn, after: F::Token) {
        self.counters.pcm_writes += 1;
        flash.pcm().write_entry(lpn, after);
    }

    /// A new entry at the head of the QMT, for a write; the tail makes room for it.
    fn insert_written<F: Flash>(
        &mut self,
        flash: &mut F,
        lpn: Lpn,
        request: &Producers<F::Token>,
    ) -> u32 {
        let tail = self.cache.victim();
        if let Some((slot, old)) = self.newer(tail) {
            let produced = request.of(self.cache.produced(slot));
            self.pcm_write(flash, old, produced.unwrap_or_default());
        }
        self.cache.put(lpn, tail)
    }

    /// The same for a read. No SMT read of the request may stand behind the write of the tail, which takes 800 times as
    /// long: it is put off until the request has issued them all.
    fn insert_read(&mut self, lpn: Lpn) {
        let tail = self.cache.victim();
        if let Some((_, old)) = self.newer(tail) {
            self.put_off.push(old);
        }
        self.cache.put(lpn, tail);
    }

    /// The tail and its page, if its entry is newer than the SMT.
    fn newer(&self, tail: Option<u32>) -> Option<(u32, Lpn)> {
        let slot = tail.filter(|&slot| self.cache.is_dirty(slot))?;
        Some((slot, self.cache.lpn(slot)))
    }

    /// The read request has issued its SMT reads. What it has driven out was produced by requests before it.
    fn write_put_off<F: Flash>(&mut self, flash: &mut F) {
        for i in 0..self.put_off.len() {
            self.pcm_write(flash, self.put_off[i], F::Token::default());
        }
        self.put_off.clear();
    }
}

/// What a collection inside a request changes in the map.
struct Moved<'a, T> {
    qmt: &'a mut Qmt,
    request: &'a mut Producers<T>,
}

impl<F: Flash> Moves<F> for Moved<'_, F::Token> {
    fn moved(&mut self, flash: &mut F, lpn: Lpn, _to: Ppn, done: F::Token) {
        match self.qmt.cache.slot(lpn) {
            Some(slot) => {
                let mark = self.request.note(done);
                self.qmt.cache.set_dirty(slot, mark);
            }
            None => self.qmt.pcm_write(flash, lpn, done),
        }
    }
}

/// HAT on all dies.
#[derive(Debug)]
pub struct Hat {
    store: Store,
    qmt: Qmt,
    lookup: InvalidateLookup,
}

state!(Hat { store, qmt } fixed { lookup });

impl Hat {
    fn of(options: &HatOptions, store: Store) -> Self {
        let pages = store.geometry().logical_pages;
        Self {
            store,
            qmt: Qmt {
                cache: MapCache::new(pages, options.entries(), CachePolicy::Lru),
                counters: Counters::default(),
                put_off: Vec::new(),
            },
            lookup: options.invalidate_lookup,
        }
    }

    /// Puts the SMT right after a scan: every entry is read, and written if it differs. What survives of a device is its
    /// flash, so the SMT counts as blank: the entries that differ are those of the pages that were found.
    fn renew_smt<F: Flash>(&mut self, flash: &mut F) {
        for lpn in (0..self.store.geometry().logical_pages).map(Lpn) {
            let read = self.qmt.pcm_read(flash, lpn);
            if self.store.place(lpn).is_some() {
                self.qmt.pcm_write(flash, lpn, read);
            }
        }
    }

    fn write_in<F: Flash>(
        &mut self,
        flash: &mut F,
        slot: Slot,
        lpn: Lpn,
        request: &mut Producers<F::Token>,
    ) -> Result<(), F::Error> {
        let qmt = &mut self.qmt;
        let mut moved = Moved { qmt, request };
        let none = F::Token::default();
        let done = self.store.write(flash, slot, lpn, none, &mut moved)?;
        let cached = self.qmt.cache.slot(lpn);
        self.qmt
            .counters
            .ratio
            .count(Translation::Write, true, cached.is_some());
        let entry = match cached {
            Some(entry) => {
                self.qmt.counters.hits += 1;
                self.qmt.cache.touch(entry);
                entry
            }
            None => {
                self.qmt.counters.misses += 1;
                if self.lookup == InvalidateLookup::Pcm {
                    self.qmt.pcm_read(flash, lpn);
                }
                self.qmt.insert_written(flash, lpn, request)
            }
        };
        let mark = request.note(done);
        self.qmt.cache.set_dirty(entry, mark);
        Ok(())
    }

    fn read_in<F: Flash>(&mut self, flash: &mut F, slot: Slot, lpn: Lpn) -> Result<(), F::Error> {
        let at = self.store.place(lpn);
        let cached = self.qmt.cache.slot(lpn);
        self.qmt
            .counters
            .ratio
            .count(Translation::Read, at.is_some(), cached.is_some());
        let translated = match cached {
            Some(entry) => {
                self.qmt.counters.hits += 1;
                self.qmt.cache.touch(entry);
                F::Token::default()
            }
            None => {
                self.qmt.counters.misses += 1;
                self.qmt.pcm_read(flash, lpn)
            }
        };
        if at.is_none() {
            flash.absent(slot, translated);
        } else {
            flash.read_host(slot, at, translated)?;
        }
        if cached.is_none() {
            self.qmt.insert_read(lpn);
        }
        Ok(())
    }

    fn trim_in<F: Flash>(&mut self, flash: &mut F, lpn: Lpn) {
        let old = self.store.trim(lpn);
        match self.qmt.cache.slot(lpn) {
            Some(entry) if old.is_some() => self.qmt.cache.set_dirty(entry, Mark::NONE),
            Some(_) => {}
            None => self.qmt.pcm_write(flash, lpn, F::Token::default()),
        }
    }
}

impl Described for Hat {
    const KEY: &'static str = "hat";
    const TITLE: &'static str = "HAT";
    const SUMMARY: &'static str =
        "page mapping with its table in PCM, translation beside the flash";
    const SOURCE: &'static str = "Hu et al., MSST 2010";
    const TEXT: &'static str = include_str!("hat.rs");
    type Options = HatOptions;

    fn check(space: &Space, options: &HatOptions) -> Result<(), Refusal> {
        options.check_cache()?;
        options.check_pcm()?;
        Store::<House>::check(space, &options.page)
    }

    fn tables(geometry: &Geometry, options: &HatOptions) -> Vec<Table> {
        let pages = u64::from(geometry.logical_pages);
        let mut tables = vec![
            Table::sram("QMT", options.entries(), 2 * bits_for(pages) + 1),
            Table::pcm("SMT", pages, 32),
        ];
        tables.extend(Store::<House>::tables(geometry, &options.page));
        tables
    }

    fn ram_bytes(geometry: &Geometry, options: &HatOptions) -> u64 {
        Store::<House>::ram_bytes(geometry, &options.page)
            + MapCache::ram_bytes(geometry.logical_pages, options.entries())
    }

    fn fit_to_chip(options: &mut HatOptions, _: ChipTimes) {
        options.page.fit::<House>();
    }

    fn uses_streams(options: &HatOptions) -> bool {
        Store::<House>::uses_streams(&options.page)
    }

    fn live(options: &HatOptions) -> Result<(), Refusal> {
        Store::<House>::live(&options.page)
    }

    fn pcm(options: &HatOptions) -> PcmSetup {
        PcmSetup {
            chips: options.pcm_chips,
            read_first: options.pcm_read_first,
        }
    }

    /// After a clean shutdown the table in PCM is complete: its entries give the valid pages too, and no flash is
    /// read. That way is modelled only: a flash bears no PCM, so [`Ftl::recover`] has no table to read.
    fn recovery_costs(geometry: &Geometry, _options: &HatOptions) -> Vec<RecoveryCost> {
        let pcm_reads = geometry.logical_pages.into();
        let scan = RecoveryCost {
            pcm_reads,
            ..RecoveryCost::scan("full scan", geometry.pages().into())
        };
        let table = RecoveryCost {
            is_after_shutdown: true,
            pcm_reads,
            ..RecoveryCost::scan("table in PCM", 0)
        };
        vec![scan, table]
    }

    fn counters(&self) -> SchemeCounters {
        let c = &self.qmt.counters;
        let mut counters = SchemeCounters::default();
        counters.extra("pcm_reads", c.pcm_reads);
        counters.extra("pcm_writes", c.pcm_writes);
        counters.extra("qmt_hits", c.hits);
        counters.extra("qmt_misses", c.misses);
        self.store.count(&mut counters);
        c.ratio.stats(&mut counters);
        counters
    }

    fn reset_counters(&mut self) {
        self.qmt.counters = Counters::default();
        self.store.reset_counters();
    }

    fn observe(&self, seen: &mut Observation) {
        seen.sum("qmt_entries", self.qmt.cache.len().into());
        seen.sum("qmt_dirty", self.qmt.cache.dirty_entries().into());
        seen.sum("erased_blocks", self.store.erased_blocks().into());
    }
}

impl Ftl for Hat {
    type Page = Lpn;

    fn format<F: Preload>(
        space: &Space,
        options: &HatOptions,
        start: Start,
        flash: &mut F,
    ) -> Result<Self, MountError<F::Error>> {
        Self::check(space, options)?;
        let store = Store::format(space, &options.page, start, flash)?;
        Ok(Self::of(options, store))
    }

    fn recover<F: Flash>(
        space: &Space,
        options: &HatOptions,
        _means: RecoveryMode,
        flash: &mut F,
    ) -> Result<Self, MountError<F::Error>> {
        Self::check(space, options)?;
        let store = Store::recover(space, &options.page, flash)?;
        let mut hat = Self::of(options, store);
        hat.renew_smt(flash);
        audited(hat, flash)
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
        let mut request = self.qmt.cache.begin();
        run.iter()
            .try_for_each(|(lpn, slot)| self.write_in(flash, slot, lpn, &mut request))
    }

    #[inline]
    fn read<F: Flash>(&mut self, flash: &mut F, run: &Run) -> Result<(), F::Error> {
        run.iter()
            .try_for_each(|(lpn, slot)| self.read_in(flash, slot, lpn))?;
        self.qmt.write_put_off(flash);
        Ok(())
    }

    fn trim<F: Flash>(&mut self, flash: &mut F, run: &Run) -> Result<(), F::Error> {
        run.iter().for_each(|(lpn, _)| self.trim_in(flash, lpn));
        Ok(())
    }

    fn shutdown<F: Flash>(&mut self, flash: &mut F) -> Result<(), F::Error> {
        for slot in 0..self.qmt.cache.len() {
            if self.qmt.cache.is_dirty(slot) {
                let lpn = self.qmt.cache.lpn(slot);
                self.qmt.pcm_write(flash, lpn, F::Token::default());
                self.qmt.cache.set_clean(slot);
            }
        }
        Ok(())
    }

    fn stream(&mut self, stream: Option<u32>) {
        self.store.stream(stream);
    }

    fn foretell(&mut self, deaths: Arc<[u64]>) {
        self.store.foretell(deaths);
    }

    #[inline(always)]
    fn prefetch(&self, lpn: Lpn) {
        self.store.prefetch(lpn);
    }

    fn state(&mut self, tape: &mut Tape<'_>) -> Passed {
        self.pass(tape)
    }

    fn audit<F: Flash>(&self, flash: &F) -> Result<u64, String> {
        self.qmt.cache.audit()?;
        self.store.audit(flash)
    }
}

#[cfg(test)]
mod tests;
