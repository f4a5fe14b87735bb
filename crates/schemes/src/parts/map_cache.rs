//! The part of a page map that is in fast memory: which entries are cached, which of them are newer than the
//! map behind them, and who leaves next. What the entries say stands elsewhere (a place is one number,
//! cached or not); here is only the account that decides what a lookup costs.
//!
//! Flat arrays throughout: a slot for each cached entry, one table from pages to slots, intrusive lists for the
//! order of use.

use crate::hints::{large_table, prefetch};
use crate::parts::lists::Lists;
use floatgate_core::address::Lpn;
use floatgate_core::choice;
use floatgate_core::report::{Combine, SchemeCounters};
use floatgate_core::state;
use floatgate_core::state::{Passed, StateError};
use std::ops::{Deref, DerefMut};

choice! {
    /// Which cached entry leaves.
    pub enum CachePolicy {
        /// The one used longest ago.
        Lru = "lru",
        /// Segmented: entries used twice are protected.
        Slru = "slru",
    }
}

/// What used once lies in (LRU: everything); its first entry leaves next.
const PROBATION: usize = 0;
/// What was used again (segmented LRU only).
const PROTECTED: usize = 1;
const NO_SLOT: u32 = u32::MAX;
/// Producers kept without the heap: enough for most requests, not for collections.
const FEW: usize = 8;

/// Which operation of which request produced an entry.
#[derive(Clone, Copy, Debug, Default)]
pub struct Mark {
    request: u32,
    index: u32,
}

state!(Mark { request, index });

impl Mark {
    /// Produced by nothing that anyone must still wait for.
    pub const NONE: Self = Self {
        request: 0,
        index: u32::MAX,
    };
}

/// The operations that produced map entries in the request in work: what a write-back of such an entry waits
/// for. Tokens live no longer than their request, so entries remember a [`Mark`] and not a token.
#[derive(Debug)]
pub struct Producers<T> {
    request: u32,
    len: u32,
    few: [T; FEW],
    more: Vec<T>,
}

impl<T: Copy + Default> Producers<T> {
    /// None yet, in the request of that number.
    pub fn of_request(request: u32) -> Self {
        Self {
            request,
            len: 0,
            few: [T::default(); FEW],
            more: Vec::new(),
        }
    }

    /// Keeps the end of an operation.
    #[inline]
    pub fn note(&mut self, done: T) -> Mark {
        let index = self.len;
        self.len += 1;
        match self.few.get_mut(index as usize) {
            Some(place) => *place = done,
            None => self.more.push(done),
        }
        Mark {
            request: self.request,
            index,
        }
    }

    /// The end of the operation with that number in this request.
    #[inline]
    pub fn at(&self, index: u32) -> Option<T> {
        if index >= self.len {
            return None;
        }
        let index = index as usize;
        Some(
            *self
                .few
                .get(index)
                .unwrap_or_else(|| &self.more[index - FEW]),
        )
    }

    /// The mark of the operation with that number in this request.
    pub fn mark(&self, index: u32) -> Mark {
        Mark {
            request: self.request,
            index,
        }
    }

    /// The end of the operation that produced an entry, if it belongs to this request.
    #[inline]
    pub fn of(&self, mark: Mark) -> Option<T> {
        (mark.request == self.request)
            .then(|| self.at(mark.index))
            .flatten()
    }
}

impl Mark {
    /// The number of the operation in its request.
    pub fn index(self) -> u32 {
        self.index
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct Entry {
    lpn: Lpn,
    dirty: bool,
    produced: Mark,
}

state!(Entry {
    lpn,
    dirty,
    produced
});

/// The cached entries of a map, whatever order they stand in: a slot for each, found by its page.
#[derive(Debug)]
pub struct Entries {
    slot_of: Vec<u32>,
    entries: Vec<Entry>,
    /// Slots whose entries have left.
    free: Vec<u32>,
    capacity: u32,
    dirty: u32,
    requests: u32,
}

state!(Entries { slot_of, dirty, requests } grows { entries, free } check check_state fixed { capacity });

impl Entries {
    /// None of `pages` logical pages is cached; there is room for `capacity`.
    pub fn new(pages: u32, capacity: u32) -> Self {
        Self {
            slot_of: large_table(NO_SLOT, pages as usize),
            entries: Vec::with_capacity(capacity as usize),
            free: Vec::new(),
            capacity,
            dirty: 0,
            requests: 0,
        }
    }

    fn check_state(&self) -> Passed {
        let slots = self.entries.len();
        match slots <= self.capacity as usize && self.free.len() <= slots {
            true => Ok(()),
            false => Err(StateError::damaged(
                "the cache holds more than it has room for",
            )),
        }
    }

    /// Bytes of memory of so many.
    pub fn ram_bytes(pages: u32, capacity: u32) -> u64 {
        4 * u64::from(pages) + 16 * u64::from(capacity)
    }

    /// A request begins: entries produced by earlier ones are waited for no more.
    pub fn begin<T: Copy + Default>(&mut self) -> Producers<T> {
        self.requests = self.requests.wrapping_add(1);
        Producers::of_request(self.requests)
    }

    /// The slot of a page's entry, if it is cached.
    #[inline(always)]
    pub fn slot(&self, lpn: Lpn) -> Option<u32> {
        let slot = self.slot_of[lpn.index()];
        (slot != NO_SLOT).then_some(slot)
    }

    /// Whether the entry of a page is cached will be asked soon.
    #[inline(always)]
    pub fn prefetch(&self, lpn: Lpn) {
        prefetch(&self.slot_of, lpn.index());
    }

    /// The page of a slot.
    #[inline(always)]
    pub fn lpn(&self, slot: u32) -> Lpn {
        self.entries[slot as usize].lpn
    }

    /// The page of a slot, if its entry can be found by it.
    pub fn lpn_of(&self, slot: u32) -> Option<Lpn> {
        let lpn = self.entries.get(slot as usize)?.lpn;
        (self.slot(lpn) == Some(slot)).then_some(lpn)
    }

    /// Cached entries.
    pub fn len(&self) -> u32 {
        (self.entries.len() - self.free.len()) as u32
    }

    /// Whether nothing is cached.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Cached entries that are newer than the map behind the cache.
    pub fn dirty_entries(&self) -> u32 {
        self.dirty
    }

    /// Whether an entry is newer than the map behind the cache.
    #[inline(always)]
    pub fn is_dirty(&self, slot: u32) -> bool {
        self.entries[slot as usize].dirty
    }

    /// An entry has changed; `produced` is the operation behind its new value.
    #[inline]
    pub fn set_dirty(&mut self, slot: u32, produced: Mark) {
        let entry = &mut self.entries[slot as usize];
        self.dirty += u32::from(!entry.dirty);
        entry.dirty = true;
        entry.produced = produced;
    }

    /// An entry has been written to the map behind the cache.
    #[inline]
    pub fn set_clean(&mut self, slot: u32) {
        let entry = &mut self.entries[slot as usize];
        self.dirty -= u32::from(entry.dirty);
        entry.dirty = false;
    }

    /// What produced an entry's value.
    #[inline(always)]
    pub fn produced(&self, slot: u32) -> Mark {
        self.entries[slot as usize].produced
    }

    /// Puts a clean entry in.
    #[inline]
    pub fn insert(&mut self, lpn: Lpn) -> u32 {
        let entry = Entry {
            lpn,
            dirty: false,
            produced: Mark::NONE,
        };
        let slot = match self.free.pop() {
            Some(slot) => {
                self.entries[slot as usize] = entry;
                slot
            }
            None => {
                self.entries.push(entry);
                self.entries.len() as u32 - 1
            }
        };
        self.slot_of[lpn.index()] = slot;
        slot
    }

    /// Takes an entry out.
    #[inline]
    pub fn remove(&mut self, slot: u32) {
        self.set_clean(slot);
        let left = self.lpn(slot);
        self.slot_of[left.index()] = NO_SLOT;
        self.free.push(slot);
    }

    /// Checks the tables against each other.
    ///
    /// # Errors
    /// What does not agree.
    pub fn audit(&self) -> Result<(), String> {
        let mut is_free = vec![false; self.entries.len()];
        for &slot in &self.free {
            match is_free.get_mut(slot as usize) {
                Some(free) if !*free => *free = true,
                _ => return Err(format!("slot {slot} is free twice, or no slot")),
            }
        }
        let held = || (0..).zip(&self.entries).filter(|(slot, _)| !is_free[*slot]);
        let cached = self.slot_of.iter().filter(|&&slot| slot != NO_SLOT).count();
        if cached != held().count() {
            let entries = held().count();
            return Err(format!("{entries} entries, {cached} of them found"));
        }
        let dirty = held().filter(|(_, entry)| entry.dirty).count();
        if dirty != self.dirty as usize {
            return Err(format!("{dirty} dirty entries, counted {}", self.dirty));
        }
        if held().any(|(slot, entry)| self.slot_of[entry.lpn.index()] != slot as u32) {
            return Err("a cached entry cannot be found".into());
        }
        Ok(())
    }
}

/// Cached map entries in the order of their use.
#[derive(Debug)]
pub struct MapCache {
    known: Entries,
    order: Lists,
    capacity: u32,
    /// Most protected entries; 0 is plain LRU.
    protected: u32,
}

state!(MapCache { known, order } fixed { capacity, protected });

impl Deref for MapCache {
    type Target = Entries;

    fn deref(&self) -> &Entries {
        &self.known
    }
}

impl DerefMut for MapCache {
    fn deref_mut(&mut self) -> &mut Entries {
        &mut self.known
    }
}

impl MapCache {
    /// An empty cache of `entries` entries over `pages` logical pages.
    pub fn new(pages: u32, entries: u64, policy: CachePolicy) -> Self {
        let capacity = Self::slots(pages, entries);
        let protected = match policy {
            CachePolicy::Lru => 0,
            CachePolicy::Slru => entries - (entries / 5).max(1),
        };
        Self {
            known: Entries::new(pages, capacity),
            order: Lists::new(capacity as usize, 2),
            capacity,
            protected: u32::try_from(protected).unwrap_or(u32::MAX),
        }
    }

    /// Slots that such a cache needs: there are never more entries than pages.
    pub fn slots(pages: u32, entries: u64) -> u32 {
        entries.min(u64::from(pages)) as u32
    }

    /// Bytes of memory of such a cache.
    pub fn ram_bytes(pages: u32, entries: u64) -> u64 {
        let slots = Self::slots(pages, entries);
        Entries::ram_bytes(pages, slots) + 12 * u64::from(slots)
    }

    /// An entry is used.
    #[inline]
    pub fn touch(&mut self, slot: u32) {
        if self.protected == 0 {
            self.order.move_to_back(PROBATION, slot);
            return;
        }
        self.order.move_to_back(PROTECTED, slot);
        if self.order.len(PROTECTED) > self.protected {
            let demoted = self.order.first(PROTECTED).expect("it is too long");
            self.order.move_to_back(PROBATION, demoted);
        }
    }

    /// The entry that must leave before another can come; `None` while there is room.
    #[inline]
    pub fn victim(&self) -> Option<u32> {
        if self.len() < self.capacity {
            return None;
        }
        self.order
            .first(PROBATION)
            .or_else(|| self.order.first(PROTECTED))
    }

    /// The entries by the time of their use, longest ago first (plain LRU).
    pub fn used_longest_ago(&self) -> impl Iterator<Item = u32> + '_ {
        self.order.iter(PROBATION)
    }

    /// Takes an entry out, which is clean by now or dropped.
    #[inline]
    pub fn drop_entry(&mut self, slot: u32) {
        self.order.remove(slot);
        self.known.remove(slot);
    }

    /// Puts a clean entry in, in the place of `victim`, which is clean by now or dropped.
    #[inline]
    pub fn put(&mut self, lpn: Lpn, victim: Option<u32>) -> u32 {
        if let Some(slot) = victim {
            self.known.remove(slot);
        }
        let slot = self.known.insert(lpn);
        self.order.move_to_back(PROBATION, slot);
        slot
    }

    /// The cached pages, used last first, with their dirty marks: for checks and tests.
    pub fn iter(&self) -> impl Iterator<Item = (Lpn, bool)> + '_ {
        let slots = [PROBATION, PROTECTED]
            .into_iter()
            .flat_map(|list| self.order.iter(list));
        let mut used_last_first: Vec<u32> = slots.collect();
        used_last_first.reverse();
        used_last_first
            .into_iter()
            .map(|slot| (self.lpn(slot), self.is_dirty(slot)))
    }

    /// Checks the tables against each other.
    ///
    /// # Errors
    /// What does not agree.
    pub fn audit(&self) -> Result<(), String> {
        self.known.audit()?;
        let listed = self.order.len(PROBATION) + self.order.len(PROTECTED);
        if listed != self.len() || self.len() > self.capacity {
            return Err(format!(
                "the cache of {} holds {} entries, {listed} in order",
                self.capacity,
                self.len()
            ));
        }
        if self.order.len(PROTECTED) > self.protected {
            return Err(format!("{} protected entries", self.order.len(PROTECTED)));
        }
        Ok(())
    }
}

/// For whom a page is translated.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Translation {
    /// A read.
    Read = 0,
    /// A write.
    Write = 1,
    /// A trim.
    Trim = 2,
}

/// How many translations the cache served: those of pages that are live or being written.
#[derive(Clone, Copy, Debug, Default)]
pub struct HitRatio {
    /// Translations and hits, by [`Translation`].
    seen: [(u64, u64); 3],
}

state!(HitRatio { seen });

impl HitRatio {
    /// Counts a translation.
    #[inline(always)]
    pub fn count(&mut self, translation: Translation, live: bool, hit: bool) {
        let counted = live || translation == Translation::Write;
        let (all, hits) = &mut self.seen[translation as usize];
        *all += u64::from(counted);
        *hits += u64::from(counted && hit);
    }

    /// Adds the ratios that have a value to the statistics.
    pub fn stats(&self, counters: &mut SchemeCounters) {
        let [reads, writes, trims] = self.seen;
        let all = (reads.0 + writes.0 + trims.0, reads.1 + writes.1 + trims.1);
        for (name, (all, hits)) in [
            ("hit_ratio", all),
            ("hit_ratio_reads", reads),
            ("hit_ratio_writes", writes),
        ] {
            if all > 0 {
                counters.stat(name, hits as f64 / all as f64, Combine::Mean);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(cache: &MapCache) -> Vec<u32> {
        cache.iter().map(|(lpn, _)| lpn.0).collect()
    }

    /// A lookup as the schemes do it, without the map behind it.
    fn look_up(cache: &mut MapCache, lpn: u32) -> bool {
        if let Some(slot) = cache.slot(Lpn(lpn)) {
            cache.touch(slot);
            return true;
        }
        let victim = cache.victim();
        cache.put(Lpn(lpn), victim);
        false
    }

    #[test]
    fn lru_drops_what_was_used_longest_ago() {
        let mut cache = MapCache::new(10, 3, CachePolicy::Lru);
        for lpn in [0, 1, 2, 0, 3] {
            look_up(&mut cache, lpn);
        }
        assert_eq!(order(&cache), [3, 0, 2]);
        cache.audit().unwrap();
    }

    #[test]
    fn slru_protects_what_was_used_twice() {
        // Five entries, four of them may be protected.
        let mut cache = MapCache::new(20, 5, CachePolicy::Slru);
        for lpn in [0, 1, 2, 3, 4, 0, 1, 2, 3] {
            look_up(&mut cache, lpn);
        }
        assert_eq!(
            order(&cache),
            [3, 2, 1, 0, 4],
            "protected before probationary"
        );
        look_up(&mut cache, 4);
        assert_eq!(
            order(&cache),
            [4, 3, 2, 1, 0],
            "the oldest protected one steps back"
        );
        look_up(&mut cache, 5);
        assert_eq!(order(&cache), [4, 3, 2, 1, 5], "and leaves first");
        cache.audit().unwrap();
    }

    #[test]
    fn slru_evicts_from_the_protected_list_when_the_other_is_empty() {
        let mut cache = MapCache::new(20, 2, CachePolicy::Slru);
        // One protected entry; both lists hold one.
        for lpn in [0, 1, 0, 1] {
            look_up(&mut cache, lpn);
        }
        assert_eq!(order(&cache), [1, 0]);
        let mut one = MapCache::new(20, 1, CachePolicy::Slru);
        assert!(!look_up(&mut one, 3) && look_up(&mut one, 3) && !look_up(&mut one, 4));
        assert_eq!(order(&one), [4], "a single entry is plain LRU");
    }

    #[test]
    fn more_entries_than_pages_never_evict() {
        let mut cache = MapCache::new(4, u64::MAX, CachePolicy::Slru);
        for lpn in (0..4).chain(0..4) {
            look_up(&mut cache, lpn);
        }
        assert_eq!(cache.len(), 4);
        cache.audit().unwrap();
    }

    #[test]
    fn producers_belong_to_one_request() {
        let mut cache = MapCache::new(4, 4, CachePolicy::Lru);
        let mut first = cache.begin::<u64>();
        let marks: Vec<Mark> = (100..120).map(|end| first.note(end)).collect();
        assert_eq!(first.of(marks[3]), Some(103));
        assert_eq!(first.of(marks[19]), Some(119));
        assert_eq!(first.of(Mark::NONE), None);
        let mut second = cache.begin::<u64>();
        second.note(7);
        assert_eq!(second.of(marks[0]), None);
    }
}
