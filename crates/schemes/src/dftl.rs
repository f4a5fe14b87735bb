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

use crate::parts::budgets::{cache_entries, check_cache};
use crate::parts::cached_map::{CachedMap, EntryCache};
use crate::parts::map_cache::{CachePolicy, Entries, MapCache};
use crate::parts::on_demand::{MapScheme, OnDemand, OnFlashOptions, Request};
use crate::parts::page_store::PageStore;
use crate::parts::translation::TranslationPages;
use floatgate_core::Refusal;
use floatgate_core::address::Lpn;
use floatgate_core::flash::Flash;
use floatgate_core::geometry::Geometry;
use floatgate_core::report::{Table, bits_for};
use floatgate_core::state;
use floatgate_core::{choice, options};

choice! {
    /// What one read of a translation page serves.
    pub enum Fetch {
        /// One entry.
        Entry = "entry",
        /// All entries of the request in that page.
        Request = "request",
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
        /// What one read of a translation page serves.
        fetch: Fetch [""] = Fetch::Entry;
        /// Whether a write-back takes along all newer entries of its translation page.
        batch: bool [""] = true;
        ..on_flash: OnFlashOptions;
    }
}

impl DftlOptions {
    fn entries(&self) -> u64 {
        cache_entries(self.cmt_bytes, self.cmt_entries)
    }
}

/// The CMT: single entries in the order of their use.
#[derive(Debug)]
pub struct Cmt {
    cache: MapCache,
    fetch: Fetch,
}

state!(Cmt { cache } fixed { fetch });

impl EntryCache for Cmt {
    fn entries(&self) -> &Entries {
        &self.cache
    }

    fn entries_mut(&mut self) -> &mut Entries {
        &mut self.cache
    }

    #[inline]
    fn hit<T: Copy + Default>(&mut self, slot: u32, _page: u32, _request: &Request<T>) -> T {
        self.cache.touch(slot);
        T::default()
    }

    fn miss<F: Flash>(
        map: &mut CachedMap<Self>,
        flash: &mut F,
        store: &mut PageStore,
        lpn: Lpn,
        request: &mut Request<F::Token>,
    ) -> Result<F::Token, F::Error> {
        let victim = map.cache.cache.victim();
        if let Some(slot) = victim {
            map.evict(flash, store, slot, request)?;
        }
        let page = map.pages.page_of(lpn);
        let there = match request.loaded {
            _ if !map.pages.exists(page) => F::Token::default(),
            Some((loaded, there)) if loaded == page && map.cache.fetch == Fetch::Request => there,
            _ => {
                map.counters.loads += 1;
                let there = map.pages.load(flash, store, lpn)?;
                request.loaded = Some((page, there));
                there
            }
        };
        map.cache.cache.put(lpn, victim);
        Ok(there)
    }

    fn audit(&self, _page_of: impl Fn(Lpn) -> u32) -> Result<(), String> {
        self.cache.audit()
    }
}

/// What DFTL caches of the map.
#[derive(Debug)]
pub struct SingleEntries;

/// DFTL on all dies.
pub type Dftl = OnDemand<SingleEntries>;

impl MapScheme for SingleEntries {
    const KEY: &'static str = "dftl";
    const TITLE: &'static str = "DFTL";
    const SUMMARY: &'static str = "page mapping with the map on flash, cached on demand";
    const SOURCE: &'static str = "Gupta et al., ASPLOS 2009";
    const TEXT: &'static str = include_str!("dftl.rs");
    type Options = DftlOptions;
    type Map = CachedMap<Cmt>;

    fn on_flash(options: &DftlOptions) -> &OnFlashOptions {
        &options.on_flash
    }

    fn check_cache(options: &DftlOptions) -> Result<(), Refusal> {
        check_cache(
            "cmt_bytes",
            options.cmt_bytes,
            "cmt_entries",
            options.cmt_entries,
        )
    }

    fn map(options: &DftlOptions, store: &PageStore, pages: TranslationPages) -> Self::Map {
        let geometry = store.geometry();
        let entries = options.entries();
        let cmt = Cmt {
            cache: MapCache::new(geometry.logical_pages, entries, options.cmt_policy),
            fetch: options.fetch,
        };
        let slots = MapCache::slots(geometry.logical_pages, entries);
        let plan = options.on_flash.plan(options.batch);
        CachedMap::cold(plan, geometry, pages, cmt, slots)
    }

    fn cache_tables(geometry: &Geometry, options: &DftlOptions) -> Vec<Table> {
        let bits = 2 * bits_for(geometry.logical_pages.into()) + 1;
        vec![Table::sram("CMT", options.entries(), bits)]
    }

    fn cache_ram_bytes(geometry: &Geometry, options: &DftlOptions) -> u64 {
        let entries = options.entries();
        let slots = MapCache::slots(geometry.logical_pages, entries);
        let tp_entries = options.on_flash.tp_entries.max(1);
        MapCache::ram_bytes(geometry.logical_pages, entries)
            + CachedMap::<Cmt>::ram_bytes(geometry, slots, tp_entries)
    }
}

#[cfg(test)]
mod tests;
