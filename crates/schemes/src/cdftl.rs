//! `cdftl`: page mapping with the map on flash and a cache of two levels (CDFTL).
//!
//! **Paper.** Qin, Wang, Liu, Shao, "A Two-Level Caching Mechanism for Demand-Based Page-Level Address Mapping in NAND
//! Flash Memory Storage Systems", RTAS 2011; Wang et al., ACM TODAES 2016, which gives it its name. Their outline only.
//!
//! **Rules.** docs/spec/cdftl.md has every one of them, to the last counter; what it does not say is docs/spec/dftl.md.
//!
//! **RAM state.** CMT: single entries in the order of their use. CTP: slots with whole translation pages in the order of
//! theirs. GTD: where each translation page lies.
//!
//! **Flash state.** That of `dftl`.
//!
//! **How it writes, reads, reclaims.** As `dftl`. What the CMT does not have is looked for in the slots; a miss loads a slot. An
//! entry leaves the CMT cheaply if it is clean or its page has a slot, which takes the newer entry; such a one is looked
//! for near the end of the list. Else its page is loaded for it. A slot that leaves is a clean one if there is one, else it
//! is written from memory with all newer entries of the CMT.
//!
//! **Recovery.** That of `dftl`; both levels start empty.
//!
//! **Deviations and why.** Those of `dftl`. How far a cheap victim is looked for, that slots which differ from flash stay longer, and
//! the sizes of the levels are not the paper's; the sizes do not adapt. This program keeps all places in one table; which
//! level has what is the account kept here.

use crate::parts::lists::Lists;
use crate::parts::map_cache::{CachePolicy, MapCache, Mark};
use crate::parts::newer::NewerEntries;
use crate::parts::on_demand::{MapScheme, OnDemand, OnFlashOptions, Reason, Request};
use crate::parts::page_store::PageStore;
use crate::parts::paged_map::{Content, PageCache, PagedMap};
use crate::parts::translation::TranslationPages;
use floatgate_core::Refusal;
use floatgate_core::address::Lpn;
use floatgate_core::flash::Flash;
use floatgate_core::geometry::Geometry;
use floatgate_core::options;
use floatgate_core::report::{Observation, SchemeCounters, Table, bits_for};
use floatgate_core::state;

/// Bytes of an entry of the CMT.
const ENTRY_BYTES: u64 = 8;

options! {
    /// Options of `cdftl`.
    pub struct CdftlOptions {
        /// Memory for both levels of the cache.
        cmt_bytes: u64 ["bytes"] = 131_072, samples [48, 100, 112, 4_000];
        /// Translation pages cached whole.
        ctp_pages: Option<u64> ["pages"] = None, shown "half of cmt_bytes, at least 1", samples [1, 2, 3];
        /// How far from the end of the list an entry is looked for that leaves without a load; 0 is all of it.
        cmt_search: u64 ["entries"] = 16, samples [0, 1, 2];
        ..on_flash: OnFlashOptions;
    }
}

impl CdftlOptions {
    /// Bytes of a slot: number and link, places.
    fn slot_bytes(&self) -> u64 {
        8 + 4 * u64::from(self.on_flash.tp_entries)
    }

    fn slots(&self) -> u64 {
        let half = self.cmt_bytes / 2 / self.slot_bytes();
        self.ctp_pages.unwrap_or(half.max(1))
    }

    /// Bytes for the entries of the CMT; none if the slots take more than there is.
    fn entry_bytes(&self) -> u64 {
        let slots = self.slots().saturating_mul(self.slot_bytes());
        self.cmt_bytes.saturating_sub(slots)
    }

    fn entries(&self) -> u64 {
        self.entry_bytes() / ENTRY_BYTES
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct Counters {
    hits: u64,
    evictions: u64,
    dirty_evictions: u64,
    evict_loads: u64,
}

state!(Counters {
    hits,
    evictions,
    dirty_evictions,
    evict_loads
});

/// Both levels.
#[derive(Debug)]
pub struct Levels {
    /// First level. An entry is dirty if it is newer than the slot of its page, or than flash if it has none.
    cmt: MapCache,
    /// Second level: translation pages, used longest ago first.
    slots: Lists,
    /// Whether the slot of a translation page differs from flash.
    is_dirty: Vec<bool>,
    dirty_slots: u32,
    counters: Counters,
    most_slots: u64,
    search: usize,
}

state!(Levels { cmt, slots, is_dirty, dirty_slots, counters } fixed { most_slots, search });

impl Levels {
    fn has_slot(&self, page: u32) -> bool {
        self.slots.list_of(page).is_some()
    }

    fn set_dirty(&mut self, page: u32, value: bool) {
        let was = std::mem::replace(&mut self.is_dirty[page as usize], value);
        self.dirty_slots = self.dirty_slots - u32::from(was) + u32::from(value);
    }

    /// The entry that leaves the CMT: near the end of the list one that leaves without a load, else the last.
    fn victim(&self, pages: &TranslationPages) -> Option<u32> {
        let last = self.cmt.victim()?;
        let mut near = self.cmt.used_longest_ago().take(self.search);
        let cheap = near.find(|&entry| {
            !self.cmt.is_dirty(entry) || self.has_slot(pages.page_of(self.cmt.lpn(entry)))
        });
        Some(cheap.unwrap_or(last))
    }

    /// The slot that goes: the clean one used longest ago, or if there is none, the one used longest ago.
    fn slot_victim(&self) -> Option<u32> {
        if u64::from(self.slots.len(0)) < self.most_slots {
            return None;
        }
        let oldest = self.slots.first(0)?;
        if self.dirty_slots == self.slots.len(0) {
            return Some(oldest);
        }
        self.slots
            .iter(0)
            .find(|&page| !self.is_dirty[page as usize])
    }
}

impl PagedMap<Levels> {
    /// A translation page comes into a slot; another goes if all are in use.
    fn load_slot<F: Flash>(
        &mut self,
        flash: &mut F,
        store: &mut PageStore,
        page: u32,
        request: &mut Request<F::Token>,
    ) -> Result<(), F::Error> {
        if let Some(gone) = self.cache.slot_victim() {
            self.cache.counters.evictions += 1;
            if self.cache.is_dirty[gone as usize] {
                self.cache.counters.dirty_evictions += 1;
                let content = Content::InMemory;
                self.write_back(flash, store, gone, content, Reason::Evict, request)?;
            }
            self.cache.slots.remove(gone);
        }
        self.load(flash, store, page, request)?;
        self.cache.slots.push_back(0, page);
        Ok(())
    }

    /// Room for an entry in the CMT.
    fn make_room<F: Flash>(
        &mut self,
        flash: &mut F,
        store: &mut PageStore,
        request: &mut Request<F::Token>,
    ) -> Result<(), F::Error> {
        let Some(victim) = self.cache.victim(&self.pages) else {
            return Ok(());
        };
        self.counters.evictions += 1;
        if self.cache.cmt.is_dirty(victim) {
            self.counters.dirty_evictions += 1;
            let page = self.pages.page_of(self.cache.cmt.lpn(victim));
            if !self.cache.has_slot(page) {
                self.cache.counters.evict_loads += 1;
                self.load_slot(flash, store, page, request)?;
            }
            self.cache.set_dirty(page, true);
        }
        self.cache.cmt.drop_entry(victim);
        Ok(())
    }
}

impl PageCache for Levels {
    #[inline(always)]
    fn prefetch(&self, lpn: Lpn) {
        self.cmt.prefetch(lpn);
    }

    fn holds_page(&self, page: u32) -> bool {
        self.has_slot(page)
    }

    #[inline]
    fn look_up<F: Flash>(
        map: &mut PagedMap<Self>,
        flash: &mut F,
        store: &mut PageStore,
        lpn: Lpn,
        request: &mut Request<F::Token>,
    ) -> Result<(bool, F::Token), F::Error> {
        if let Some(entry) = map.cache.cmt.slot(lpn) {
            map.cache.cmt.touch(entry);
            return Ok((true, F::Token::default()));
        }
        let page = map.pages.page_of(lpn);
        let is_hit = map.cache.has_slot(page);
        if is_hit {
            map.cache.counters.hits += 1;
            map.cache.slots.move_to_back(0, page);
        }
        map.make_room(flash, store, request)?;
        if !is_hit && !map.cache.has_slot(page) {
            map.load_slot(flash, store, page, request)?;
        }
        map.cache.cmt.put(lpn, None);
        Ok((is_hit, map.newer.loaded(page, &request.producers)))
    }

    fn changed<F: Flash>(
        map: &mut PagedMap<Self>,
        _flash: &mut F,
        _store: &mut PageStore,
        lpn: Lpn,
        _was_newer: bool,
        _request: &Request<F::Token>,
    ) -> Result<(), F::Error> {
        let entry = map.cache.cmt.slot(lpn).expect("its lookup put it there");
        map.cache.cmt.set_dirty(entry, Mark::NONE);
        Ok(())
    }

    fn moved(
        &mut self,
        _store: &PageStore,
        lpn: Lpn,
        page: u32,
        _entries: (Lpn, Lpn),
        _newer: &NewerEntries,
    ) -> bool {
        if let Some(entry) = self.cmt.slot(lpn) {
            self.cmt.set_dirty(entry, Mark::NONE);
        } else if self.has_slot(page) {
            self.set_dirty(page, true);
        } else {
            return false;
        }
        true
    }

    fn written(&mut self, page: u32, entries: impl Iterator<Item = Lpn>) {
        self.set_dirty(page, false);
        for lpn in entries {
            if let Some(entry) = self.cmt.slot(lpn) {
                self.cmt.set_clean(entry);
            }
        }
    }

    fn observe(&self, seen: &mut Observation) {
        seen.sum("cmt_entries", self.cmt.len().into());
        seen.sum("ctp_pages", self.slots.len(0).into());
    }

    fn count(&self, counters: &mut SchemeCounters) {
        let c = &self.counters;
        counters.extra("ctp_hits", c.hits);
        counters.extra("ctp_evictions", c.evictions);
        counters.extra("ctp_dirty_evictions", c.dirty_evictions);
        counters.extra("ctp_evict_loads", c.evict_loads);
    }

    fn reset_own_counters(&mut self) {
        self.counters = Counters::default();
    }

    fn audit(
        &self,
        pages: &TranslationPages,
        newer: &NewerEntries,
        _store: &PageStore,
    ) -> Result<(), String> {
        self.cmt.audit()?;
        let dirty = (0..pages.len()).filter(|&page| self.is_dirty[page as usize]);
        if dirty.clone().any(|page| !self.has_slot(page)) {
            return Err("a translation page without a slot differs from flash".into());
        }
        if dirty.count() != self.dirty_slots as usize {
            return Err(format!("{} dirty slots counted", self.dirty_slots));
        }
        if u64::from(self.slots.len(0)) > self.most_slots {
            return Err(format!("{} slots in use", self.slots.len(0)));
        }
        for page in 0..pages.len() {
            let entries = newer.iter(pages.first_of(page)..=pages.last_of(page));
            // What is newer than flash is so in the CMT or in a slot.
            let known = |lpn| {
                self.cmt
                    .slot(lpn)
                    .is_some_and(|entry| self.cmt.is_dirty(entry))
            };
            let lost = entries.filter(|&lpn| !known(lpn)).count();
            if lost > 0 && !self.is_dirty[page as usize] {
                return Err(format!(
                    "{lost} newer entries of page {page} are in no level"
                ));
            }
        }
        let dirty = self.cmt.iter().filter(|(_, is_dirty)| *is_dirty);
        let mut unmarked = dirty.filter(|(lpn, _)| !newer.has(*lpn));
        match unmarked.next() {
            Some((lpn, _)) => Err(format!("the entry of page {} is newer, unmarked", lpn.0)),
            None => Ok(()),
        }
    }
}

/// What CDFTL caches of the map.
#[derive(Debug)]
pub struct TwoLevels;

/// CDFTL on all dies.
pub type Cdftl = OnDemand<TwoLevels>;

impl MapScheme for TwoLevels {
    const KEY: &'static str = "cdftl";
    const TITLE: &'static str = "CDFTL";
    const SUMMARY: &'static str = "the map on flash, single entries and whole pages of it cached";
    const SOURCE: &'static str = "Qin et al., RTAS 2011";
    const TEXT: &'static str = include_str!("cdftl.rs");
    type Options = CdftlOptions;
    type Map = PagedMap<Levels>;

    fn on_flash(options: &CdftlOptions) -> &OnFlashOptions {
        &options.on_flash
    }

    fn check_cache(options: &CdftlOptions) -> Result<(), Refusal> {
        if options.ctp_pages == Some(0) {
            let text = "ctp_pages = 0: at least 1 translation page cached whole";
            return Err(Refusal::new("ctp_pages", text.into()));
        }
        let (slots, bytes) = (options.slots(), options.slot_bytes());
        let least = slots.saturating_mul(bytes).saturating_add(ENTRY_BYTES);
        if options.cmt_bytes < least {
            let text = format!(
                "cmt_bytes = {}: {slots} slots of {bytes} bytes and one entry need {least} bytes",
                options.cmt_bytes
            );
            return Err(Refusal::new("cmt_bytes", text));
        }
        Ok(())
    }

    fn map(options: &CdftlOptions, store: &PageStore, pages: TranslationPages) -> Self::Map {
        let geometry = store.geometry();
        let all = usize::MAX;
        let cache = Levels {
            cmt: MapCache::new(geometry.logical_pages, options.entries(), CachePolicy::Lru),
            slots: Lists::new(pages.len() as usize, 1),
            is_dirty: vec![false; pages.len() as usize],
            dirty_slots: 0,
            counters: Counters::default(),
            most_slots: options.slots(),
            search: match options.cmt_search {
                0 => all,
                entries => usize::try_from(entries).unwrap_or(all),
            },
        };
        // A page is always written with all that is known.
        PagedMap::cold(options.on_flash.plan(true), geometry, pages, cache)
    }

    fn cache_tables(geometry: &Geometry, options: &CdftlOptions) -> Vec<Table> {
        let bits = 2 * bits_for(geometry.logical_pages.into()) + 1;
        let slots = options.slots().saturating_mul(options.slot_bytes());
        vec![
            Table::sram("CMT", options.entries(), bits),
            Table::sram("CTP", slots, 8),
        ]
    }

    fn cache_ram_bytes(geometry: &Geometry, options: &CdftlOptions) -> u64 {
        let entries = options.on_flash.tp_entries.max(1);
        let pages = u64::from(geometry.logical_pages.div_ceil(entries));
        MapCache::ram_bytes(geometry.logical_pages, options.entries())
            + 13 * pages
            + PagedMap::<Levels>::ram_bytes(geometry, pages)
    }
}

#[cfg(test)]
mod tests;
