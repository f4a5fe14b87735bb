//! A write buffer: which pages of the host are held in memory, and which of them are written out first. No bytes and no
//! time, so that a simulation and a device that holds bytes decide alike.
//!
//! Pages are held in *slots*, which are handed out in the order in which they became free. What is written out at once is
//! a *unit*: a page (`lru`), or what is held of a logical block (`bplru`: H. Kim, S. Ahn, "BPLRU: A Buffer Management
//! Scheme for Improving Random Writes in Flash Storage", FAST 2008). Units are ordered by their latest write; the one that
//! was not written for the longest time goes first. A block that was written from its first page to its last in order
//! goes before all others, since it will hardly be written again soon (the paper's *LRU compensation*).

use alloc::collections::VecDeque;
use alloc::vec;
use alloc::vec::Vec;

use crate::address::Lpn;
use crate::lists::Lists;

/// No slot, no node.
const NONE: u32 = u32::MAX;
/// The two lists of nodes: of units that are held, the next victim first; of nodes without a unit.
const HELD: usize = 0;
const UNUSED: usize = 1;
/// A block that was not written in order.
const NOT_IN_ORDER: u32 = u32::MAX;

/// What is written out at once.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Eviction {
    /// The page that was not written for the longest time.
    #[default]
    Lru,
    /// All pages of the logical block that was not written for the longest time, blocks written in order before others.
    Bplru,
}

impl Eviction {
    /// The name used in configurations.
    pub fn name(self) -> &'static str {
        match self {
            Self::Lru => "lru",
            Self::Bplru => "bplru",
        }
    }

    /// The policy of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::Lru, Self::Bplru]
            .into_iter()
            .find(|eviction| eviction.name() == name)
    }
}

/// A page that is held.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Held {
    /// The page.
    pub lpn: Lpn,
    /// Where it is held.
    pub slot: u32,
}

/// Where a page was put.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Put {
    /// Its slot.
    pub slot: u32,
    /// Whether it was held there already: the write replaces one that need not be written out any more.
    pub replaces: bool,
}

/// A unit of which something is held.
#[derive(Clone, Copy, Debug)]
struct Unit {
    number: u32,
    /// Pages of it that are held.
    pages: u32,
    /// The page in it that would be the next one in order, or [`NOT_IN_ORDER`].
    next: u32,
}

/// Pages that are held until they are written out. See the module's text.
#[derive(Clone, Debug)]
pub struct WriteBuffer {
    /// Logical pages: the slot of each, or [`NONE`].
    slot_of: Vec<u32>,
    free: VecDeque<u32>,
    slots: u32,
    unit_pages: u32,
    /// Units: the node of each, or [`NONE`].
    node_of: Vec<u32>,
    nodes: Vec<Unit>,
    order: Lists,
}

impl WriteBuffer {
    /// An empty buffer of so many pages, on a device with logical blocks of `block_pages`.
    pub fn new(pages: u32, logical_pages: u32, eviction: Eviction, block_pages: u32) -> Self {
        let unit_pages = match eviction {
            Eviction::Lru => 1,
            Eviction::Bplru => block_pages.max(1),
        };
        let unused = Unit {
            number: NONE,
            pages: 0,
            next: NOT_IN_ORDER,
        };
        let mut order = Lists::new(pages as usize, 2);
        (0..pages).for_each(|node| order.push_back(UNUSED, node));
        Self {
            slot_of: vec![NONE; logical_pages as usize],
            free: (0..pages).collect(),
            slots: pages,
            unit_pages,
            node_of: vec![NONE; logical_pages.div_ceil(unit_pages) as usize],
            nodes: vec![unused; pages as usize],
            order,
        }
    }

    /// Bytes that the tables of such a buffer take.
    pub fn ram_bytes(pages: u32, logical_pages: u32, eviction: Eviction, block_pages: u32) -> u64 {
        let units = match eviction {
            Eviction::Lru => logical_pages,
            Eviction::Bplru => logical_pages / block_pages.max(1),
        };
        // A number a page and a unit of the device; a number, a unit and two links a page of the buffer.
        4 * (u64::from(logical_pages) + u64::from(units)) + 28 * u64::from(pages)
    }

    /// Pages that are held.
    pub fn len(&self) -> u32 {
        self.slots - self.free()
    }

    /// Whether nothing is held.
    pub fn is_empty(&self) -> bool {
        self.free() == self.slots
    }

    /// Pages that there is room for.
    pub fn free(&self) -> u32 {
        self.free.len() as u32
    }

    /// The slot of a page that is held.
    #[inline]
    pub fn find(&self, lpn: Lpn) -> Option<u32> {
        let slot = self.slot_of[lpn.index()];
        (slot != NONE).then_some(slot)
    }

    /// Takes in a page.
    ///
    /// # Panics
    /// If it is not held and there is no room.
    pub fn put(&mut self, lpn: Lpn) -> Put {
        let (held, unit) = (self.find(lpn), lpn.0 / self.unit_pages);
        let slot = held.unwrap_or_else(|| self.free.pop_front().expect("the buffer has room"));
        self.slot_of[lpn.index()] = slot;
        let node = self.node_for(unit);
        let unit = &mut self.nodes[node as usize];
        unit.pages += u32::from(held.is_none());
        let page = lpn.0 % self.unit_pages;
        unit.next = match page == unit.next || page == 0 {
            true => page + 1,
            false => NOT_IN_ORDER,
        };
        let complete = unit.next == self.unit_pages && self.unit_pages > 1;
        self.order.remove(node);
        match complete {
            true => self.order.push_front(HELD, node),
            false => self.order.push_back(HELD, node),
        }
        Put {
            slot,
            replaces: held.is_some(),
        }
    }

    /// The node of a unit; if nothing of it is held, a new one. There are as many as slots, so there is one left.
    fn node_for(&mut self, unit: u32) -> u32 {
        let node = self.node_of[unit as usize];
        if node != NONE {
            return node;
        }
        let node = self.order.first(UNUSED).expect("a unit has a page");
        self.node_of[unit as usize] = node;
        self.nodes[node as usize] = Unit {
            number: unit,
            pages: 0,
            next: NOT_IN_ORDER,
        };
        node
    }

    /// Drops a page, if it is held: its slot is free.
    pub fn remove(&mut self, lpn: Lpn) -> Option<u32> {
        let slot = self.find(lpn)?;
        self.slot_of[lpn.index()] = NONE;
        self.free.push_back(slot);
        let unit = lpn.0 / self.unit_pages;
        let node = self.node_of[unit as usize];
        let pages = &mut self.nodes[node as usize].pages;
        *pages -= 1;
        if *pages == 0 {
            self.node_of[unit as usize] = NONE;
            self.order.move_to_back(UNUSED, node);
        }
        Some(slot)
    }

    /// The pages of the next victims, until they are so many or nothing is left: unit by unit, each in the order of its
    /// pages. They stay until they are [removed](Self::remove).
    pub fn victims(&self, pages: u32) -> impl Iterator<Item = Held> + '_ {
        let mut named = 0;
        let units = self.order.iter(HELD).take_while(move |&node| {
            let is_wanted = named < pages;
            named += self.nodes[node as usize].pages;
            is_wanted
        });
        units.flat_map(|node| self.held_of(self.nodes[node as usize].number))
    }

    /// What is held of a unit.
    fn held_of(&self, number: u32) -> impl Iterator<Item = Held> + '_ {
        let first = number * self.unit_pages;
        let end = (first + self.unit_pages).min(self.slot_of.len() as u32);
        (first..end).map(Lpn).filter_map(|lpn| {
            let slot = self.find(lpn)?;
            Some(Held { lpn, slot })
        })
    }

    /// Drops the pages of the next [victims](Self::victims), appending them to `out`: they are to be written out now.
    pub fn evict(&mut self, pages: u32, out: &mut Vec<Held>) {
        let from = out.len();
        out.extend(self.victims(pages));
        for held in &out[from..] {
            self.remove(held.lpn);
        }
    }

    /// Drops all pages, appending them to `out` in the order of their addresses.
    pub fn evict_all(&mut self, out: &mut Vec<Held>) {
        let from = out.len();
        self.evict(u32::MAX, out);
        out[from..].sort_unstable_by_key(|held| held.lpn.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::SplitMix64;

    const LOGICAL: u32 = 24;
    const BLOCK: u32 = 4;

    fn buffer(pages: u32, eviction: Eviction) -> WriteBuffer {
        WriteBuffer::new(pages, LOGICAL, eviction, BLOCK)
    }

    fn evicted(buffer: &mut WriteBuffer) -> Vec<u32> {
        let mut out = Vec::new();
        buffer.evict(1, &mut out);
        out.iter().map(|held| held.lpn.0).collect()
    }

    /// A write to any of its pages renews a block.
    #[test]
    fn a_block_is_renewed_and_evicted_as_a_whole() {
        let mut buffer = buffer(8, Eviction::Bplru);
        for lpn in [1, 9, 5, 2, 10] {
            buffer.put(Lpn(lpn));
        }
        // Block 1 (page 5) is the oldest now, then 0 (pages 1, 2), then 2 (pages 9, 10).
        assert_eq!(evicted(&mut buffer), [5]);
        assert_eq!(evicted(&mut buffer), [1, 2]);
        assert_eq!(evicted(&mut buffer), [9, 10]);
        assert!(buffer.is_empty());
        assert_eq!(evicted(&mut buffer), []);
    }

    /// The block that was written in order goes first although it is the latest; one written out of order does not, nor
    /// one that was written again in between.
    #[test]
    fn a_block_written_in_order_goes_first() {
        let mut buffer = buffer(16, Eviction::Bplru);
        for lpn in [20, 0, 2, 1, 3, 8, 9, 9, 10, 11, 4, 5, 6, 7] {
            buffer.put(Lpn(lpn));
        }
        assert_eq!(evicted(&mut buffer), [4, 5, 6, 7]);
        assert_eq!(evicted(&mut buffer), [20]);
        assert_eq!(evicted(&mut buffer), [0, 1, 2, 3]);
        assert_eq!(evicted(&mut buffer), [8, 9, 10, 11]);
    }

    /// Victims are whole units, the last one too, and stay until they are removed.
    #[test]
    fn several_victims_are_named_in_their_order() {
        let mut buffer = buffer(8, Eviction::Bplru);
        for lpn in [9, 1, 5, 2, 10] {
            buffer.put(Lpn(lpn));
        }
        let named = |buffer: &WriteBuffer, pages| -> Vec<u32> {
            buffer.victims(pages).map(|held| held.lpn.0).collect()
        };
        assert_eq!(named(&buffer, 0), []);
        assert_eq!(named(&buffer, 1), [5]);
        assert_eq!(named(&buffer, 2), [5, 1, 2]);
        assert_eq!(named(&buffer, 3), [5, 1, 2]);
        assert_eq!(named(&buffer, u32::MAX), [5, 1, 2, 9, 10]);
        assert_eq!(buffer.len(), 5);
    }

    /// What the module's text says, on a list of pages in the order of their writes.
    #[derive(Default)]
    struct Model {
        /// Page, slot, whether its block is complete in order as of its write.
        pages: Vec<(u32, u32)>,
        /// Units, the next victim first, each with the pages written to it since it is held.
        units: Vec<(u32, Vec<u32>)>,
    }

    impl Model {
        fn put(&mut self, unit_pages: u32, lpn: u32, slot: u32) -> bool {
            let unit = lpn / unit_pages;
            let at = self.units.iter().position(|(number, _)| *number == unit);
            let mut entry = at.map_or((unit, Vec::new()), |at| self.units.remove(at));
            entry.1.push(lpn % unit_pages);
            let in_order = (0..unit_pages).collect::<Vec<_>>();
            if unit_pages > 1 && entry.1.ends_with(&in_order) {
                self.units.insert(0, entry);
            } else {
                self.units.push(entry);
            }
            let held = self.pages.iter().any(|&(page, _)| page == lpn);
            if !held {
                self.pages.push((lpn, slot));
            }
            held
        }

        fn remove(&mut self, unit_pages: u32, lpn: u32) -> bool {
            let Some(at) = self.pages.iter().position(|&(page, _)| page == lpn) else {
                return false;
            };
            self.pages.remove(at);
            let unit = lpn / unit_pages;
            if !self
                .pages
                .iter()
                .any(|&(page, _)| page / unit_pages == unit)
            {
                self.units.retain(|(number, _)| *number != unit);
            }
            true
        }

        fn evict(&mut self, unit_pages: u32) -> Vec<(u32, u32)> {
            let (unit, _) = self.units.remove(0);
            let (mut out, kept) = (self.pages.iter().copied())
                .partition::<Vec<_>, _>(|&(page, _)| page / unit_pages == unit);
            self.pages = kept;
            out.sort_unstable();
            out
        }
    }

    #[test]
    fn decisions_are_those_of_a_plain_list() {
        for (eviction, unit_pages) in [(Eviction::Lru, 1), (Eviction::Bplru, BLOCK)] {
            let mut rng = SplitMix64::new(5);
            let (mut buffer, mut model) = (buffer(7, eviction), Model::default());
            let mut complete = 0;
            for _ in 0..20_000 {
                let lpn = rng.below(LOGICAL.into()) as u32;
                if rng.below(6) == 0 {
                    assert_eq!(
                        buffer.remove(Lpn(lpn)).is_some(),
                        model.remove(unit_pages, lpn)
                    );
                    continue;
                }
                // Now and then a row of pages, or no block would ever be written in order.
                let pages = if rng.below(3) == 0 { BLOCK } else { 1 };
                for lpn in lpn..(lpn + pages).min(LOGICAL) {
                    if buffer.find(Lpn(lpn)).is_none() && buffer.free() == 0 {
                        let mut out = Vec::new();
                        buffer.evict(1, &mut out);
                        let out: Vec<_> = out.iter().map(|held| (held.lpn.0, held.slot)).collect();
                        complete += u32::from(out.len() as u32 == BLOCK);
                        assert_eq!(out, model.evict(unit_pages));
                    }
                    let put = buffer.put(Lpn(lpn));
                    assert_eq!(put.replaces, model.put(unit_pages, lpn, put.slot));
                    assert_eq!(buffer.find(Lpn(lpn)), Some(put.slot));
                }
                assert_eq!(buffer.len() as usize, model.pages.len());
            }
            assert_eq!(complete > 0, eviction == Eviction::Bplru);
        }
    }

    #[test]
    fn all_pages_leave_in_the_order_of_their_addresses_from_slots_of_their_own() {
        for eviction in [Eviction::Lru, Eviction::Bplru] {
            let mut buffer = buffer(5, eviction);
            for lpn in [17, 3, 9, 2, 3] {
                buffer.put(Lpn(lpn));
            }
            let mut out = Vec::new();
            buffer.evict_all(&mut out);
            let pages: Vec<u32> = out.iter().map(|held| held.lpn.0).collect();
            assert_eq!(pages, [2, 3, 9, 17]);
            let mut slots: Vec<u32> = out.iter().map(|held| held.slot).collect();
            slots.sort_unstable();
            slots.dedup();
            assert_eq!((slots.len(), buffer.free()), (4, 5));
        }
    }
}
