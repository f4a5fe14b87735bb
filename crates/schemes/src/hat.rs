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
//! of its own and survives.
//!
//! **How it writes, reads, reclaims.** As `page`. A read that misses the QMT reads its entry from PCM first; a write
//! programs at once and needs no old entry. Whoever comes into a full QMT drives out the entry used longest
//! ago, which is written to PCM if it is newer: beside the flash operation, behind the PCM reads of the request, and
//! nobody waits for it. A page moved by a
//! collection changes its entry in the QMT, or else in PCM.
//!
//! **Recovery.** A clean shutdown writes what is newer; the next start reads its map from PCM (`L` entries) and no
//! flash. A power cut loses the QMT, and an entry in steady use may stay newer than PCM for ever, so no bound on its age
//! helps: but its page is one that no entry of PCM names. So the start reads the entries, and the OOBs of all programmed
//! pages that none of them names: the invalid pages and those of the lost QMT entries, 1 for each block that is not
//! full, and no valid page that PCM knows. What it makes of them is what the full scan would, to the last page. Then the
//! entries that differ are put right. A flash whose PCM keeps nothing is read by the full OOB scan, and so is one whose
//! PCM names what cannot be.
//!
//! **Deviations and why.** Algorithm 1 resets the mark on a read hit (an update would be lost: kept here) and evicts on
//! every write to a full QMT (the text and Fig. 7 evict on a miss only: so here). How a write that misses
//! finds its old copy is left open: it costs nothing, or with `invalidate_lookup = pcm` one PCM read beside
//! the program. What a collection writes, and trims, are not in the paper. In the counters eviction comes
//! before the SMT read as in Algorithm 1, in time after it as in Fig. 6. The places themselves stand in one
//! table for QMT and SMT alike: no counter depends on which of the two holds them.

use std::ops::Range;
use std::sync::Arc;

use crate::parts::map_cache::{CachePolicy, HitRatio, MapCache, Mark, Producers, Translation};
use crate::parts::page_store::{Known, Moves};
use crate::parts::placement::{House, PageOptions, Placement, Store};
use floatgate_core::Refusal;
use floatgate_core::address::{Lpn, Ppn};
use floatgate_core::described::{ChipTimes, Described, RecoveryCost};
use floatgate_core::flash::{Flash, Preload, Slot};
use floatgate_core::ftl::{Ftl, MountError, RecoveryMode, Run, Start, Tick, audited};
use floatgate_core::geometry::{Geometry, Space};
use floatgate_core::pcm::{MAX_CHIPS, Pcm, PcmSetup, Recalled};
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
    fn of(options: &HatOptions, geometry: &Geometry) -> Self {
        Self {
            cache: MapCache::new(geometry.logical_pages, options.entries(), CachePolicy::Lru),
            counters: Counters::default(),
            put_off: Vec::new(),
        }
    }

    fn pcm_read<F: Flash>(&mut self, flash: &mut F, lpn: Lpn) -> F::Token {
        self.counters.pcm_reads += 1;
        flash.pcm().read_entry(lpn)
    }

    fn pcm_write<F: Flash>(&mut self, flash: &mut F, lpn: Lpn, place: Ppn, after: F::Token) {
        self.counters.pcm_writes += 1;
        flash.pcm().write_entry(lpn, place, after);
    }

    fn recall<F: Flash>(&mut self, flash: &mut F, lpn: Lpn) -> Option<Recalled> {
        self.counters.pcm_reads += 1;
        flash.pcm().recall(lpn)
    }

    /// A new entry at the head of the QMT, for a write; the tail makes room for it.
    fn insert_written<F: Flash>(
        &mut self,
        flash: &mut F,
        lpn: Lpn,
        store: &Store,
        request: &Producers<F::Token>,
    ) -> u32 {
        let tail = self.cache.victim();
        if let Some((slot, old)) = self.newer(tail) {
            let produced = request.of(self.cache.produced(slot));
            self.pcm_write(flash, old, store.place(old), produced.unwrap_or_default());
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
    fn write_put_off<F: Flash>(&mut self, flash: &mut F, store: &Store) {
        for i in 0..self.put_off.len() {
            let lpn = self.put_off[i];
            self.pcm_write(flash, lpn, store.place(lpn), F::Token::default());
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
    #[inline(always)]
    fn expects(&self, lpn: Lpn) {
        self.qmt.cache.prefetch(lpn);
    }

    fn moved(&mut self, flash: &mut F, lpn: Lpn, to: Ppn, done: F::Token) {
        match self.qmt.cache.slot(lpn) {
            Some(slot) => {
                let mark = self.request.note(done);
                self.qmt.cache.set_dirty(slot, mark);
            }
            None => self.qmt.pcm_write(flash, lpn, to, done),
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
    /// Puts the entries of the SMT right that say something else than what was found.
    fn renew_smt<F: Flash>(&mut self, flash: &mut F, entries: &[Option<Recalled>]) {
        for (lpn, entry) in (0..).map(Lpn).zip(entries) {
            let place = self.store.place(lpn);
            if entry.map_or(Ppn::NONE, |entry| entry.place) != place {
                self.qmt.pcm_write(flash, lpn, place, F::Token::default());
            }
        }
    }

    /// The blocks and pages, by what the SMT says and the flash besides.
    fn mount_store<F: Flash>(
        space: &Space,
        options: &HatOptions,
        known: &Known<'_>,
        flash: &mut F,
    ) -> Result<Store, MountError<F::Error>> {
        match Store::recover(space, &options.page, known, flash) {
            // Entries that fit no device are none of ours: the flash decides.
            Err(MountError::Refused(_)) if !known.places.is_empty() => {
                Store::recover(space, &options.page, &Known::default(), flash)
            }
            outcome => outcome,
        }
    }

    #[cold]
    #[inline(never)]
    fn idle<F: Flash>(&mut self, flash: &mut F, idle_ns: &Range<u64>) -> Result<(), F::Error> {
        let qmt = &mut self.qmt;
        let mut request = qmt.cache.begin();
        let mut moved = Moved {
            qmt,
            request: &mut request,
        };
        self.store.idle(flash, idle_ns, &mut moved)
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
                self.qmt.insert_written(flash, lpn, &self.store, request)
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
            None => self
                .qmt
                .pcm_write(flash, lpn, Ppn::NONE, F::Token::default()),
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

    fn fit_to_chip(options: &mut HatOptions, chip: ChipTimes) {
        options.page.fit::<House>(chip);
    }

    fn weighs_dies(options: &HatOptions) -> bool {
        options.page.placement == Placement::Free
    }

    fn uses_idle_time(options: &HatOptions) -> bool {
        options.page.idle.is_on()
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
    /// read. After a cut all but the entries of the QMT are right, so on a device that is written all over that many pages
    /// more than the invalid ones are read; trimmed pages are invalid ones.
    fn recovery_costs(geometry: &Geometry, options: &HatOptions) -> Vec<RecoveryCost> {
        let pcm_reads = geometry.logical_pages.into();
        let scan = RecoveryCost {
            pcm_reads,
            ..RecoveryCost::scan("full scan", geometry.pages().into())
        };
        let certain = u64::from(geometry.logical_pages).saturating_sub(options.entries());
        let unnamed = RecoveryCost {
            pcm_reads,
            ..RecoveryCost::scan(
                "table in PCM, every page written",
                u64::from(geometry.pages()) - certain,
            )
        };
        let table = RecoveryCost {
            is_after_shutdown: true,
            pcm_reads,
            ..RecoveryCost::scan("table in PCM", 0)
        };
        match Store::<House>::uses_known(&options.page, geometry) {
            true => vec![scan, unnamed, table],
            false => vec![scan],
        }
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
    const USES_IDLE_TIME: bool = true;

    fn format<F: Preload>(
        space: &Space,
        options: &HatOptions,
        start: Start,
        flash: &mut F,
    ) -> Result<Self, MountError<F::Error>> {
        Self::check(space, options)?;
        let store = Store::format(space, &options.page, start, flash)?;
        for lpn in (0..space.geometry.logical_pages).map(Lpn) {
            if store.place(lpn).is_some() {
                flash.preload_entry(lpn, store.place(lpn));
            }
        }
        Ok(Self {
            store,
            qmt: Qmt::of(options, &space.geometry),
            lookup: options.invalidate_lookup,
        })
    }

    fn recover<F: Flash>(
        space: &Space,
        options: &HatOptions,
        means: RecoveryMode,
        flash: &mut F,
    ) -> Result<Self, MountError<F::Error>> {
        Self::check(space, options)?;
        let is_sealed = flash.pcm().is_sealed();
        let mut qmt = Qmt::of(options, &space.geometry);
        let pages = (0..space.geometry.logical_pages).map(Lpn);
        let entries: Vec<_> = pages.map(|lpn| qmt.recall(flash, lpn)).collect();
        let known = match means {
            RecoveryMode::FullScan => Known::default(),
            RecoveryMode::Fastest => Known {
                places: &entries,
                is_all: is_sealed,
            },
        };
        let mut hat = Self {
            store: Self::mount_store(space, options, &known, flash)?,
            qmt,
            lookup: options.invalidate_lookup,
        };
        hat.renew_smt(flash, &entries);
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
        self.qmt.write_put_off(flash, &self.store);
        Ok(())
    }

    fn trim<F: Flash>(&mut self, flash: &mut F, run: &Run) -> Result<(), F::Error> {
        run.iter().for_each(|(lpn, _)| self.trim_in(flash, lpn));
        Ok(())
    }

    #[inline(always)]
    fn tick<F: Flash>(&mut self, flash: &mut F, tick: &Tick) -> Result<(), F::Error> {
        match &tick.idle_ns {
            Some(idle_ns) => self.idle(flash, idle_ns),
            None => Ok(()),
        }
    }

    fn shutdown<F: Flash>(&mut self, flash: &mut F) -> Result<(), F::Error> {
        for slot in 0..self.qmt.cache.len() {
            if self.qmt.cache.is_dirty(slot) {
                let lpn = self.qmt.cache.lpn(slot);
                let place = self.store.place(lpn);
                self.qmt.pcm_write(flash, lpn, place, F::Token::default());
                self.qmt.cache.set_clean(slot);
            }
        }
        flash.drain();
        flash.pcm().seal();
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
        self.qmt.cache.prefetch(lpn);
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
