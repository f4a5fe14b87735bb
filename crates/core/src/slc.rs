//! A cache of flash blocks that are used with one bit a cell: which page lies where, and which blocks are folded next
//! (docs/slc.md). What that costs is not decided here.
//!
//! Pages are appended to the open block of one die after the other. A page that is written again leaves its old place
//! invalid; the room comes back when a block is folded: what of it is valid goes elsewhere, and the block is erased. Blocks
//! are folded in the order in which they were begun.

use alloc::collections::VecDeque;
use alloc::vec;
use alloc::vec::Vec;

use crate::address::Lpn;

/// In tables: nothing.
const NONE: u32 = u32::MAX;

/// A page and its place in the cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Placed {
    /// The page.
    pub lpn: Lpn,
    /// Its place: the number of its block times pages a block, plus the place in the block.
    pub place: u32,
}

/// The blocks of one die.
#[derive(Clone, Debug, Default)]
struct Die {
    erased: VecDeque<u32>,
    /// The block that is written to, and how many pages of it are.
    open: Option<(u32, u32)>,
}

/// The pages in the cache and its blocks. Block `b` is on die `b mod dies`.
#[derive(Clone, Debug)]
pub struct SlcCache {
    pages_per_block: u32,
    /// Logical pages: the place of each, or [`NONE`].
    place_of: Vec<u32>,
    /// By place: the page that lies there, or [`NONE`].
    content: Vec<u32>,
    dies: Vec<Die>,
    /// The die whose turn it is.
    turn: usize,
    /// Blocks that are not erased, the oldest first.
    used: VecDeque<u32>,
    /// Most blocks that may be in use.
    limit: u32,
    held: u32,
}

impl SlcCache {
    /// An erased cache of so many blocks a die, all of which may be used.
    pub fn new(dies: u32, blocks_per_die: u32, pages_per_block: u32, logical_pages: u32) -> Self {
        let blocks = dies * blocks_per_die;
        let die = |die| Die {
            erased: (0..blocks_per_die)
                .map(|block| block * dies + die)
                .collect(),
            open: None,
        };
        Self {
            pages_per_block,
            place_of: vec![NONE; logical_pages as usize],
            content: vec![NONE; (blocks * pages_per_block) as usize],
            dies: (0..dies).map(die).collect(),
            turn: 0,
            used: VecDeque::new(),
            limit: blocks,
            held: 0,
        }
    }

    /// Bytes that the tables of such a cache take.
    pub fn ram_bytes(blocks: u64, pages_per_block: u32, logical_pages: u32) -> u64 {
        4 * (u64::from(logical_pages) + blocks * u64::from(pages_per_block) + 2 * blocks)
    }

    /// From now on at most so many blocks may be in use; more than that may be, until they are folded.
    pub fn set_limit(&mut self, blocks: u32) {
        self.limit = blocks;
    }

    /// Pages that could be held.
    pub fn capacity(&self) -> u32 {
        self.limit * self.pages_per_block
    }

    /// Pages that are held.
    pub fn held(&self) -> u32 {
        self.held
    }

    /// Erased blocks that may be used.
    pub fn blocks_left(&self) -> u32 {
        self.limit.saturating_sub(self.used.len() as u32)
    }

    /// Whether more blocks are in use than may be.
    pub fn is_over(&self) -> bool {
        self.used.len() as u32 > self.limit
    }

    /// Where a page lies, if it is held.
    #[inline]
    pub fn find(&self, lpn: Lpn) -> Option<u32> {
        let place = self.place_of[lpn.index()];
        (place != NONE).then_some(place)
    }

    /// Pages of a block.
    pub fn pages_per_block(&self) -> u32 {
        self.pages_per_block
    }

    /// The die of a place.
    #[inline]
    pub fn die_of(&self, place: u32) -> u32 {
        self.block_of(place) % self.dies.len() as u32
    }

    /// The block of a place.
    #[inline]
    pub fn block_of(&self, place: u32) -> u32 {
        place / self.pages_per_block
    }

    /// Drops a page, if it is held.
    pub fn remove(&mut self, lpn: Lpn) -> bool {
        let Some(place) = self.find(lpn) else {
            return false;
        };
        self.place_of[lpn.index()] = NONE;
        self.content[place as usize] = NONE;
        self.held -= 1;
        true
    }

    /// Appends a page that is not held: its place, or none if no die has room.
    pub fn put(&mut self, lpn: Lpn) -> Option<u32> {
        debug_assert!(self.find(lpn).is_none(), "the old place is given up first");
        let dies = self.dies.len();
        let turns = (0..dies).map(|i| (self.turn + i) % dies);
        let may_open = (self.used.len() as u32) < self.limit;
        let has_room = |&die: &usize| {
            let Die { erased, open } = &self.dies[die];
            open.is_some() || may_open && !erased.is_empty()
        };
        let turn = turns.into_iter().find(has_room)?;
        self.turn = (turn + 1) % dies;
        let die = &mut self.dies[turn];
        let (block, page) = match die.open {
            Some(open) => open,
            None => {
                let block = die.erased.pop_front()?;
                self.used.push_back(block);
                (block, 0)
            }
        };
        let is_full = page + 1 == self.pages_per_block;
        die.open = (!is_full).then_some((block, page + 1));
        let place = block * self.pages_per_block + page;
        self.place_of[lpn.index()] = place;
        self.content[place as usize] = lpn.0;
        self.held += 1;
        Some(place)
    }

    /// Empties the oldest blocks that are full, at most one a die; where none is and `open` says so, those that are not full.
    /// Their pages are appended to `pages` in the order of the addresses, and the blocks to `blocks`; both are to be done
    /// with before anything is put.
    pub fn fold(&mut self, open: bool, pages: &mut Vec<Placed>, blocks: &mut Vec<u32>) {
        let dies = self.dies.len();
        let is_open = |block: u32| {
            let of_die = self.dies[block as usize % dies].open;
            of_die.is_some_and(|(of_die, _)| of_die == block)
        };
        let is_full = |block: &u32| !is_open(*block);
        let mut chosen: Vec<u32> = (self.used.iter().copied())
            .filter(is_full)
            .take(dies)
            .collect();
        if chosen.is_empty() && open {
            chosen.extend(self.used.iter().take(dies));
        }
        let from = pages.len();
        for &block in &chosen {
            let first = block * self.pages_per_block;
            for place in first..first + self.pages_per_block {
                let lpn = Lpn(self.content[place as usize]);
                if lpn.0 != NONE {
                    pages.push(Placed { lpn, place });
                    self.remove(lpn);
                }
            }
            let die = &mut self.dies[block as usize % dies];
            if die.open.is_some_and(|(of_die, _)| of_die == block) {
                die.open = None;
            }
            die.erased.push_back(block);
        }
        self.used.retain(|block| !chosen.contains(block));
        pages[from..].sort_unstable_by_key(|placed| placed.lpn.0);
        blocks.extend(chosen);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::SplitMix64;

    const LOGICAL: u32 = 64;

    /// Blocks as lists of pages, in the order in which they were begun: block, die, pages with whether they are valid.
    #[derive(Default)]
    struct Model {
        blocks: Vec<(u32, Vec<(u32, bool)>)>,
        turn: u32,
    }

    impl Model {
        fn invalidate(&mut self, lpn: u32) -> bool {
            let pages = self.blocks.iter_mut().flat_map(|(_, pages)| pages);
            let mut found = pages.filter(|(page, valid)| *page == lpn && *valid);
            found.next().map(|page| page.1 = false).is_some()
        }

        fn put(
            &mut self,
            lpn: u32,
            (dies, blocks, pages): (u32, u32, u32),
            limit: u32,
        ) -> Option<u32> {
            for i in 0..dies {
                let die = (self.turn + i) % dies;
                let of_die = || self.blocks.iter().filter(|(of, _)| *of == die);
                let open = self
                    .blocks
                    .iter()
                    .position(|(of, list)| *of == die && list.len() < pages as usize);
                let has_erased =
                    of_die().count() < blocks as usize && self.blocks.len() < limit as usize;
                let at = match open {
                    Some(at) => at,
                    None if has_erased => {
                        self.blocks.push((die, Vec::new()));
                        self.blocks.len() - 1
                    }
                    None => continue,
                };
                self.blocks[at].1.push((lpn, true));
                self.turn = (die + 1) % dies;
                return Some(die);
            }
            None
        }

        fn fold(&mut self, dies: u32, pages: u32, open: bool) -> (Vec<u32>, usize) {
            let full = self
                .blocks
                .iter()
                .filter(|(_, list)| list.len() == pages as usize)
                .count();
            let (mut out, mut taken) = (Vec::new(), 0);
            self.blocks.retain(|(_, list)| {
                let fits = if full > 0 {
                    list.len() == pages as usize
                } else {
                    open
                };
                let goes = fits && taken < dies as usize;
                if goes {
                    taken += 1;
                    out.extend(list.iter().filter(|(_, valid)| *valid).map(|(lpn, _)| *lpn));
                }
                !goes
            });
            out.sort_unstable();
            (out, taken)
        }
    }

    #[test]
    fn places_and_victims_are_those_of_plain_lists() {
        for shape @ (dies, blocks, pages) in [(1, 3, 4), (3, 2, 2), (4, 4, 3)] {
            let mut rng = SplitMix64::new(9);
            let mut cache = SlcCache::new(dies, blocks, pages, LOGICAL);
            let mut model = Model::default();
            let (mut limit, mut refused, mut over) = (dies * blocks, 0, 0);
            for _ in 0..20_000 {
                let lpn = rng.below(LOGICAL.into()) as u32;
                match rng.below(12) {
                    0 => assert_eq!(cache.remove(Lpn(lpn)), model.invalidate(lpn)),
                    1 => {
                        let open = rng.below(4) == 0;
                        let (mut folded, mut erased) = (Vec::new(), Vec::new());
                        let places: Vec<_> = (0..LOGICAL).map(|lpn| cache.find(Lpn(lpn))).collect();
                        cache.fold(open, &mut folded, &mut erased);
                        let lpns: Vec<u32> = folded.iter().map(|placed| placed.lpn.0).collect();
                        assert_eq!((lpns, erased.len()), model.fold(dies, pages, open));
                        for placed in folded {
                            assert_eq!(Some(placed.place), places[placed.lpn.index()]);
                            assert!(erased.contains(&cache.block_of(placed.place)));
                        }
                    }
                    2 if rng.below(20) == 0 => {
                        limit = rng.below(u64::from(dies * blocks) + 1) as u32;
                        cache.set_limit(limit);
                    }
                    _ => {
                        assert_eq!(cache.remove(Lpn(lpn)), model.invalidate(lpn));
                        let place = cache.put(Lpn(lpn));
                        let die = place.map(|place| cache.die_of(place));
                        assert_eq!(die, model.put(lpn, shape, limit));
                        refused += u32::from(place.is_none());
                        assert_eq!(cache.find(Lpn(lpn)), place);
                    }
                }
                over += u32::from(cache.is_over());
                let valid = model
                    .blocks
                    .iter()
                    .flat_map(|(_, list)| list)
                    .filter(|page| page.1);
                assert_eq!(cache.held() as usize, valid.count());
                let left = (limit as usize).saturating_sub(model.blocks.len());
                assert_eq!(cache.blocks_left() as usize, left);
                assert_eq!(cache.capacity(), limit * pages);
            }
            assert!(refused > 0 && over > 0);
        }
    }
}
