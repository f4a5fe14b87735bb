//! `tpftl`: page mapping with the map on flash and a cache that keeps the entries of a translation page together.
//!
//! **Paper.** Zhou, Wu, Huang, He, Xie, Zhou, "An Efficient Page-level FTL to Optimize Address Translation in Flash
//! Memory", EuroSys 2015.
//!
//! **Rules.** docs/spec/tpftl.md has every one of them, to the last counter; what it does not say is docs/spec/dftl.md.
//!
//! **RAM state.** A node for each translation page of which something is cached, with its entries in the order of their use; how
//! hot a node is, the mean of when its entries were used; the switch of selective prefetching. GTD: where each translation
//! page lies.
//!
//! **Flash state.** That of `dftl`.
//!
//! **How it writes, reads, reclaims.** As `dftl`. A miss loads, with the one read, the rest of the request in its
//! translation page, and while nodes become fewer as many entries as stand cached without a gap before it. Room is made in
//! the coldest node, where clean entries leave first; a newer one is written back with all newer entries of its node. A
//! prefetch takes no more than what one node frees.
//!
//! **Recovery.** That of `dftl`; the cache starts empty, the switch off.
//!
//! **Deviations and why.** Those of `dftl`. Entries prefetched stand right behind the one that was missed: the paper does not
//! say where, and they are wanted sooner than what was there before. Links and times of use are kept here but not counted
//! in `cmt_bytes`, as the paper counts 6 bytes an entry. Hotness is compared exactly, and of equal nodes the one born later is
//! colder, so that any two programs agree.

use crate::parts::cached_map::{CachedMap, EntryCache};
use crate::parts::lists::Lists;
use crate::parts::map_cache::{Entries, MapCache};
use crate::parts::on_demand::{MapScheme, OnDemand, OnFlashOptions, Request};
use crate::parts::page_store::PageStore;
use crate::parts::translation::TranslationPages;
use coldest::{Coldest, Warmth};
use floatgate_core::Refusal;
use floatgate_core::address::Lpn;
use floatgate_core::flash::Flash;
use floatgate_core::geometry::Geometry;
use floatgate_core::options;
use floatgate_core::report::{SchemeCounters, Table};
use floatgate_core::state;
use floatgate_core::state::{Passed, State, StateError, Tape};

mod coldest;

/// Bytes of a node without its entries.
const NODE_BYTES: u64 = 8;
/// Bytes of an entry: its offset in the translation page, its place.
const ENTRY_BYTES: u64 = 6;
/// Most entries of a translation page that 2 bytes tell apart.
const MOST_TP_ENTRIES: u32 = 1 << 16;

options! {
    /// Options of `tpftl`.
    pub struct TpftlOptions {
        /// Memory for cached map entries: 8 bytes a translation page of which some are cached, 6 an entry.
        cmt_bytes: u64 ["bytes"] = 131_072, samples [14, 20, 44, 100];
        /// Whether a miss loads the rest of the request in its translation page.
        prefetch_request: bool [""] = true;
        /// Whether sequential runs are loaded ahead.
        prefetch_selective: bool [""] = true;
        /// Whether clean entries of a node leave before newer ones.
        clean_first: bool [""] = true;
        /// Nodes gone or come that turn selective prefetching on or off.
        selective_threshold: u32 ["nodes"] = 3, samples [1, 2];
        /// Whether a write-back takes along all newer entries of its translation page.
        batch: bool [""] = true;
        ..on_flash: OnFlashOptions;
    }
}

impl TpftlOptions {
    /// Most entries that can be cached at a time, all in one node.
    fn slots(&self, geometry: &Geometry) -> u32 {
        let entries = self.cmt_bytes.saturating_sub(NODE_BYTES) / ENTRY_BYTES;
        MapCache::slots(geometry.logical_pages, entries)
    }
}

/// The switch of selective prefetching: it watches whether nodes become fewer.
#[derive(Clone, Copy, Debug, Default)]
struct Switch {
    is_on: bool,
    /// Nodes come since it was set, less those gone.
    come: u64,
    gone: u64,
}

state!(Switch { is_on, come, gone });

impl Switch {
    fn node_came(&mut self, threshold: u64) {
        self.come += 1;
        if self.come == self.gone + threshold {
            *self = Self::default();
        }
    }

    fn node_went(&mut self, threshold: u64) {
        self.gone += 1;
        if self.gone == self.come + threshold {
            *self = Self {
                is_on: true,
                ..Self::default()
            };
        }
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct Counters {
    prefetched_request: u64,
    prefetched_selective: u64,
    nodes_created: u64,
}

state!(Counters {
    prefetched_request,
    prefetched_selective,
    nodes_created
});

/// The entries of a cached map by translation page.
#[derive(Debug)]
pub struct Nodes {
    entries: Entries,
    /// The entries of each translation page, the front last.
    order: Lists,
    /// When each entry was last looked up or loaded, by slot.
    hot: Vec<u64>,
    coldest: Coldest,
    /// Lookups so far, nodes so far.
    lookups: u64,
    born: u64,
    switch: Switch,
    used: u64,
    counters: Counters,
    /// Lookups before the request in work.
    before: u64,
    /// The pages that the miss in work wants beside its own.
    wish: Vec<Lpn>,
    rules: Rules,
}

/// What the options say.
#[derive(Clone, Copy, Debug)]
struct Rules {
    bytes: u64,
    by_request: bool,
    selective: bool,
    clean_first: bool,
    threshold: u64,
}

impl State for Nodes {
    fn pass(&mut self, tape: &mut Tape<'_>) -> Passed {
        let Self {
            entries,
            order,
            hot,
            coldest,
            lookups,
            born,
            switch,
            used,
            counters,
            before: _,
            wish: _,
            rules: _,
        } = self;
        entries.pass(tape)?;
        order.pass(tape)?;
        hot.pass(tape)?;
        coldest.pass(tape)?;
        lookups.pass(tape)?;
        born.pass(tape)?;
        switch.pass(tape)?;
        used.pass(tape)?;
        counters.pass(tape)?;
        match self.switch.come.abs_diff(self.switch.gone) < self.rules.threshold {
            true => Ok(()),
            false => Err(StateError::damaged("the switch should have turned")),
        }
    }
}

impl Nodes {
    fn new(options: &TpftlOptions, geometry: &Geometry, pages: u32) -> Self {
        let slots = options.slots(geometry);
        Self {
            entries: Entries::new(geometry.logical_pages, slots),
            order: Lists::new(slots as usize, pages as usize),
            hot: vec![0; slots as usize],
            coldest: Coldest::new(pages),
            lookups: 0,
            born: 0,
            switch: Switch::default(),
            used: 0,
            counters: Counters::default(),
            before: 0,
            wish: Vec::new(),
            rules: Rules {
                bytes: options.cmt_bytes,
                by_request: options.prefetch_request,
                selective: options.prefetch_selective,
                clean_first: options.clean_first,
                threshold: options.selective_threshold.into(),
            },
        }
    }

    fn ram_bytes(geometry: &Geometry, slots: u32, pages: u64) -> u64 {
        Entries::ram_bytes(geometry.logical_pages, slots)
            + 24 * u64::from(slots)
            + (12 + Coldest::BYTES) * pages
    }

    /// Bytes that an entry of that translation page takes now.
    fn need(&self, page: u32) -> u64 {
        if self.order.is_empty(page as usize) {
            NODE_BYTES + ENTRY_BYTES
        } else {
            ENTRY_BYTES
        }
    }

    /// Entries for which there is room beside those bytes.
    fn room(&self, need: u64) -> usize {
        ((self.rules.bytes - self.used - need) / ENTRY_BYTES) as usize
    }

    /// How many entries of a translation page stand before `lpn` without a gap.
    fn run_before(&self, lpn: Lpn, first: Lpn) -> u32 {
        let run = (first.0..lpn.0).rev();
        run.take_while(|&lpn| self.entries.slot(Lpn(lpn)).is_some())
            .count() as u32
    }

    /// The pages that are to come with a missed one: of the rest of the request, and of the run that it goes on with.
    fn make_wish(&mut self, lpn: Lpn, first: Lpn, last: Lpn, of_request: Lpn) {
        let mut end = lpn;
        if self.rules.by_request {
            end = end.max(of_request);
        }
        if self.rules.selective && self.switch.is_on {
            end = end.max(Lpn(lpn.0 + self.run_before(lpn, first)).min(last));
        }
        let Self { wish, entries, .. } = self;
        let pages = (lpn.0 + 1..=end.0).map(Lpn);
        wish.clear();
        wish.extend(pages.filter(|&lpn| entries.slot(lpn).is_none()));
    }

    /// Takes an entry out, and its node if it was the last.
    fn remove(&mut self, slot: u32, page: u32) {
        self.order.remove(slot);
        self.entries.remove(slot);
        self.used -= ENTRY_BYTES;
        let left = self.order.len(page as usize);
        self.coldest.entry_left(page, self.hot[slot as usize], left);
        if left == 0 {
            self.used -= NODE_BYTES;
            self.switch.node_went(self.rules.threshold);
        }
    }

    /// Puts a clean entry in at the front of its node, which is there.
    fn push_front(&mut self, lpn: Lpn, page: u32) {
        let slot = self.entries.insert(lpn);
        self.order.push_back(page as usize, slot);
        self.hot[slot as usize] = self.lookups;
        self.used += ENTRY_BYTES;
        let warmth = Warmth {
            sum: self.lookups,
            entries: 1,
        };
        self.coldest.warmed(page, warmth);
    }

    /// Caches a missed entry and what was loaded with it, right behind it in ascending order.
    fn put(&mut self, lpn: Lpn, page: u32, of_request: Lpn) {
        if self.order.is_empty(page as usize) {
            self.used += NODE_BYTES;
            self.born += 1;
            self.counters.nodes_created += 1;
            self.coldest.create(page, self.born);
            self.switch.node_came(self.rules.threshold);
        }
        for i in (0..self.wish.len()).rev() {
            let wished = self.wish[i];
            self.push_front(wished, page);
            if self.rules.by_request && wished <= of_request {
                self.counters.prefetched_request += 1;
            } else {
                self.counters.prefetched_selective += 1;
            }
        }
        self.push_front(lpn, page);
        self.coldest.settle(page);
    }
}

impl CachedMap<Nodes> {
    /// Evicts an entry of a node.
    fn evict_of<F: Flash>(
        &mut self,
        flash: &mut F,
        store: &mut PageStore,
        page: u32,
        request: &Request<F::Token>,
    ) -> Result<(), F::Error> {
        let nodes = &self.cache;
        let mut from_back = nodes.order.iter(page as usize);
        let has_clean = self.newer_of(page) < nodes.order.len(page as usize);
        let victim = if nodes.rules.clean_first && has_clean {
            from_back.find(|&slot| !nodes.entries.is_dirty(slot))
        } else {
            from_back.next()
        };
        let victim = victim.expect("a node has entries");
        drop(from_back);
        self.evict(flash, store, victim, request)?;
        self.cache.remove(victim, page);
        Ok(())
    }

    /// Room for the missed entry. Whether a node was removed for it.
    fn make_room<F: Flash>(
        &mut self,
        flash: &mut F,
        store: &mut PageStore,
        page: u32,
        request: &Request<F::Token>,
    ) -> Result<bool, F::Error> {
        let mut has_removed = false;
        while self.cache.used + self.cache.need(page) > self.cache.rules.bytes {
            let coldest = self.cache.coldest.first().expect("the cache is full");
            self.evict_of(flash, store, coldest, request)?;
            has_removed |= self.cache.order.is_empty(coldest as usize);
        }
        Ok(has_removed)
    }

    /// Room for what is wished, from one node and no more.
    fn make_room_for_wish<F: Flash>(
        &mut self,
        flash: &mut F,
        store: &mut PageStore,
        page: u32,
        request: &Request<F::Token>,
    ) -> Result<(), F::Error> {
        let (need, wished) = (self.cache.need(page), self.cache.wish.len());
        if self.cache.room(need) >= wished {
            return Ok(());
        }
        let Some(coldest) = self.cache.coldest.first().filter(|&node| node != page) else {
            return Ok(());
        };
        while self.cache.room(need) < wished && !self.cache.order.is_empty(coldest as usize) {
            self.evict_of(flash, store, coldest, request)?;
        }
        Ok(())
    }
}

impl EntryCache for Nodes {
    fn entries(&self) -> &Entries {
        &self.entries
    }

    fn entries_mut(&mut self) -> &mut Entries {
        &mut self.entries
    }

    fn begin(&mut self) {
        self.before = self.lookups;
    }

    #[inline]
    fn hit<T: Copy + Default>(&mut self, slot: u32, page: u32, request: &Request<T>) -> T {
        self.lookups += 1;
        self.order.move_to_back(page as usize, slot);
        let hot = std::mem::replace(&mut self.hot[slot as usize], self.lookups);
        let warmth = Warmth {
            sum: self.lookups - hot,
            entries: 0,
        };
        self.coldest.warmed(page, warmth);
        // What this request has prefetched is there when the load is.
        let loaded = request.loaded.filter(|_| hot > self.before);
        loaded.map_or(T::default(), |(_, there)| there)
    }

    fn miss<F: Flash>(
        map: &mut CachedMap<Self>,
        flash: &mut F,
        store: &mut PageStore,
        lpn: Lpn,
        request: &mut Request<F::Token>,
    ) -> Result<F::Token, F::Error> {
        let page = map.pages.page_of(lpn);
        let (first, last) = (map.pages.first_of(page), map.pages.last_of(page));
        let of_request = request.last.min(last);
        map.cache.lookups += 1;
        map.cache.wish.clear();
        if map.pages.exists(page) {
            map.cache.make_wish(lpn, first, last, of_request);
        }
        if !map.make_room(flash, store, page, request)? {
            map.make_room_for_wish(flash, store, page, request)?;
        }
        let room = map.cache.room(map.cache.need(page));
        map.cache.wish.truncate(room);
        let mut there = F::Token::default();
        if map.pages.exists(page) {
            map.counters.loads += 1;
            there = map.pages.load(flash, store, lpn)?;
            request.loaded = Some((page, there));
        }
        map.cache.put(lpn, page, of_request);
        Ok(there)
    }

    fn count(&self, counters: &mut SchemeCounters) {
        let c = &self.counters;
        counters.extra("prefetched_request", c.prefetched_request);
        counters.extra("prefetched_selective", c.prefetched_selective);
        counters.extra("tp_nodes_created", c.nodes_created);
    }

    fn reset_own_counters(&mut self) {
        self.counters = Counters::default();
    }

    fn audit(&self, page_of: impl Fn(Lpn) -> u32) -> Result<(), String> {
        self.entries.audit()?;
        let mut used = 0;
        let mut listed = 0;
        for page in 0..self.coldest.pages() {
            let entries = self.order.len(page as usize);
            let mut sum = 0_u64;
            for slot in self.order.iter(page as usize) {
                let lpn = self
                    .entries
                    .lpn_of(slot)
                    .ok_or("a node has a slot that is free")?;
                if page_of(lpn) != page {
                    return Err(format!("page {} is in node {page}", lpn.0));
                }
                sum = sum.saturating_add(self.hot[slot as usize]);
            }
            self.coldest.audit(page, Warmth { sum, entries })?;
            listed += entries;
            used += ENTRY_BYTES * u64::from(entries) + if entries > 0 { NODE_BYTES } else { 0 };
        }
        if listed != self.entries.len() {
            let entries = self.entries.len();
            return Err(format!("{entries} entries, {listed} of them in nodes"));
        }
        if used != self.used || used > self.rules.bytes {
            let (known, most) = (self.used, self.rules.bytes);
            return Err(format!("{used} bytes of {most} used, {known} counted"));
        }
        Ok(())
    }
}

/// What TPFTL caches of the map.
#[derive(Debug)]
pub struct ClusteredEntries;

/// TPFTL on all dies.
pub type Tpftl = OnDemand<ClusteredEntries>;

impl MapScheme for ClusteredEntries {
    const KEY: &'static str = "tpftl";
    const TITLE: &'static str = "TPFTL";
    const SUMMARY: &'static str = "the map on flash, cached by translation page, with prefetching";
    const SOURCE: &'static str = "Zhou et al., EuroSys 2015";
    const TEXT: &'static str = include_str!("tpftl.rs");
    type Options = TpftlOptions;
    type Map = CachedMap<Nodes>;

    fn on_flash(options: &TpftlOptions) -> &OnFlashOptions {
        &options.on_flash
    }

    fn check_cache(options: &TpftlOptions) -> Result<(), Refusal> {
        let refuse = |key, text| Err(Refusal::new(key, text));
        let least = NODE_BYTES + ENTRY_BYTES;
        if options.cmt_bytes < least {
            let bytes = options.cmt_bytes;
            let text = format!("cmt_bytes = {bytes}: one node with one entry needs {least} bytes");
            return refuse("cmt_bytes", text);
        }
        if options.selective_threshold == 0 {
            let text = "selective_threshold = 0: at least 1 node";
            return refuse("selective_threshold", text.into());
        }
        let entries = options.on_flash.tp_entries;
        if entries > MOST_TP_ENTRIES {
            let text = format!(
                "tp_entries = {entries}: at most {MOST_TP_ENTRIES}, the offset has 2 bytes"
            );
            return refuse("tp_entries", text);
        }
        Ok(())
    }

    fn map(options: &TpftlOptions, store: &PageStore, pages: TranslationPages) -> Self::Map {
        let geometry = store.geometry();
        let nodes = Nodes::new(options, geometry, pages.len());
        let plan = options.on_flash.plan(options.batch);
        CachedMap::cold(plan, geometry, pages, nodes, options.slots(geometry))
    }

    fn cache_tables(_geometry: &Geometry, options: &TpftlOptions) -> Vec<Table> {
        vec![Table::sram("CMT", options.cmt_bytes, 8)]
    }

    fn cache_ram_bytes(geometry: &Geometry, options: &TpftlOptions) -> u64 {
        let (slots, tp_entries) = (options.slots(geometry), options.on_flash.tp_entries.max(1));
        let pages = u64::from(geometry.logical_pages.div_ceil(tp_entries));
        Nodes::ram_bytes(geometry, slots, pages)
            + CachedMap::<Nodes>::ram_bytes(geometry, slots, tp_entries)
    }
}

#[cfg(test)]
mod tests;
