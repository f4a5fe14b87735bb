//! Wear levelling between a scheme and its simulated flash, so that every scheme has it and none knows of it.
//!
//! The scheme's blocks are virtual: an erased one stands for no physical block, and its first program takes
//! one of the same die. So *taking the erased block with the fewest erases* happens at the first program of a
//! block, and what a scheme does, and all its counters, are the same with and without. Only the moves of static
//! levelling are operations besides: they count as `gc`.

use std::collections::BTreeSet;

use floatgate_core::state::{Passed, State, StateError, Tape};
use floatgate_core::wear::{WearLeveling, should_move};
use floatgate_core::{Geometry, Pbn};

/// A physical block by its erases, among equals the one that waits longest first.
type Rank = (u32, u64, Pbn);

/// Blocks of one die.
#[derive(Debug, Default)]
struct Die {
    /// Erased physical blocks, in the order of their erases among equals.
    free: BTreeSet<Rank>,
    /// Physical blocks with content, in the order in which they were taken among equals.
    used: BTreeSet<Rank>,
    /// Blocks taken so far.
    taken: u64,
}

impl Die {
    /// The erased block with the most erases; the first of equals.
    fn oldest_free(&self) -> Option<Rank> {
        let most = self.free.last()?.0;
        self.free.range((most, 0, Pbn(0))..).next().copied()
    }
}

/// A move of static levelling.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Swap {
    /// The scheme's block whose content moves.
    pub block: Pbn,
    /// The physical block that it leaves; to be erased.
    pub from: Pbn,
    /// The physical block that it goes to.
    pub to: Pbn,
}

/// Which physical block each of the scheme's blocks stands for. See the module's text.
#[derive(Debug)]
pub struct Levelling {
    is_static: bool,
    gap: u32,
    geometry: Geometry,
    /// By the scheme's block; `NONE` while it is erased.
    place: Vec<Pbn>,
    /// By physical block: its rank among the used or the free.
    rank: Vec<(u32, u64)>,
    /// By physical block with content: the scheme's block.
    stands_for: Vec<Pbn>,
    dies: Vec<Die>,
    /// Erases so far, for the order of the free blocks.
    erased: u64,
    /// Moves so far.
    pub swaps: u64,
    /// Pages they moved.
    pub moved_pages: u64,
}

/// Where the scheme's blocks lie and the ranks of the physical ones: which of these are free follows.
impl State for Levelling {
    fn pass(&mut self, tape: &mut Tape<'_>) -> Passed {
        self.place.pass(tape)?;
        self.rank.pass(tape)?;
        self.erased.pass(tape)?;
        self.swaps.pass(tape)?;
        self.moved_pages.pass(tape)?;
        self.dies
            .iter_mut()
            .try_for_each(|die| die.taken.pass(tape))?;
        match tape.loads() {
            true => self.sort_blocks(),
            false => Ok(()),
        }
    }
}

impl Levelling {
    fn sort_blocks(&mut self) -> Passed {
        self.stands_for.fill(Pbn::NONE);
        for (block, &at) in (0..).map(Pbn).zip(&self.place) {
            if at.is_none() {
                continue;
            }
            let other = std::mem::replace(&mut self.stands_for[at.index()], block);
            if other.is_some() || self.geometry.die_of(at) != self.geometry.die_of(block) {
                return Err(StateError::damaged(format!(
                    "block {} is not where it can be",
                    block.0
                )));
            }
        }
        for die in &mut self.dies {
            die.free.clear();
            die.used.clear();
        }
        for at in (0..self.geometry.blocks()).map(Pbn) {
            let (erases, since) = self.rank[at.index()];
            let is_free = self.stands_for[at.index()].is_none();
            let die = self.die(at);
            let blocks = if is_free {
                &mut die.free
            } else {
                &mut die.used
            };
            blocks.insert((erases, since, at));
        }
        Ok(())
    }

    /// Levelling of that kind on an erased flash; `None` if it is off.
    pub fn new(geometry: &Geometry, leveling: WearLeveling, gap: u32) -> Option<Self> {
        if leveling == WearLeveling::Off {
            return None;
        }
        let blocks = geometry.blocks() as usize;
        let mut levelling = Self {
            is_static: leveling == WearLeveling::Static,
            gap,
            geometry: geometry.clone(),
            place: vec![Pbn::NONE; blocks],
            rank: vec![(0, 0); blocks],
            stands_for: vec![Pbn::NONE; blocks],
            dies: (0..geometry.dies).map(|_| Die::default()).collect(),
            erased: 0,
            swaps: 0,
            moved_pages: 0,
        };
        (0..geometry.blocks()).for_each(|block| levelling.release(Pbn(block), 0));
        Some(levelling)
    }

    /// Bytes of memory for a device.
    pub fn ram_bytes(geometry: &Geometry) -> u64 {
        // Three entries by block, and a node of a tree.
        64 * u64::from(geometry.blocks())
    }

    /// The physical block behind one of the scheme's, itself while it is erased.
    pub fn place(&self, block: Pbn) -> Pbn {
        let at = self.place[block.index()];
        if at.is_some() { at } else { block }
    }

    /// Whether a physical block stands behind one of the scheme's.
    pub fn is_placed(&self, block: Pbn) -> bool {
        self.place[block.index()].is_some()
    }

    /// Erases of the physical block behind one of the scheme's.
    pub fn erase_count(&self, block: Pbn) -> u32 {
        self.rank[self.place(block).index()].0
    }

    /// Erases of all physical blocks, in the order of their numbers.
    pub fn erase_counts(&self) -> impl Iterator<Item = u32> + '_ {
        self.rank.iter().map(|&(erases, _)| erases)
    }

    fn die(&mut self, block: Pbn) -> &mut Die {
        let die = self.geometry.die_of(block);
        &mut self.dies[die as usize]
    }

    fn release(&mut self, at: Pbn, erases: u32) {
        self.erased += 1;
        let now = self.erased;
        self.rank[at.index()] = (erases, now);
        self.die(at).free.insert((erases, now, at));
    }

    fn occupy(&mut self, block: Pbn, (erases, since, at): Rank) {
        let die = self.die(at);
        die.taken += 1;
        let now = die.taken;
        die.free.remove(&(erases, since, at));
        die.used.insert((erases, now, at));
        self.rank[at.index()] = (erases, now);
        self.place[block.index()] = at;
        self.stands_for[at.index()] = block;
    }

    /// A page of a block was programmed.
    pub fn programmed(&mut self, block: Pbn) {
        if self.place[block.index()].is_none() {
            let youngest = self.die(block).free.first().copied();
            self.occupy(block, youngest.expect("one is free for each erased block"));
        }
    }

    /// The start state lies where the scheme puts it, if that block is still free.
    pub fn preloaded(&mut self, block: Pbn) {
        let (erases, since) = self.rank[block.index()];
        let own = (erases, since, block);
        if self.die(block).free.contains(&own) {
            self.occupy(block, own);
        } else {
            self.programmed(block);
        }
    }

    /// A block is erased.
    pub fn erased(&mut self, block: Pbn) {
        // A scheme may erase a block that it has not used; that wears one too.
        self.programmed(block);
        let at = std::mem::replace(&mut self.place[block.index()], Pbn::NONE);
        self.vacate(at);
    }

    fn vacate(&mut self, at: Pbn) {
        let (erases, since) = self.rank[at.index()];
        self.die(at).used.remove(&(erases, since, at));
        self.release(at, erases + 1);
    }

    /// The move that static levelling makes next on the die of `block`, if there is one; it is noted as done.
    pub fn next_swap(&mut self, block: Pbn) -> Option<Swap> {
        if !self.is_static {
            return None;
        }
        let (gap, blocks) = (self.gap, self.geometry.blocks_per_die);
        let die = self.die(block);
        let (least, since, from) = *die.used.first()?;
        let to = die.oldest_free()?;
        if !should_move(least, to.0, gap, die.taken - since, blocks) {
            return None;
        }
        let block = self.stands_for[from.index()];
        self.vacate(from);
        self.occupy(block, to);
        self.swaps += 1;
        Some(Swap {
            block,
            from,
            to: to.2,
        })
    }

    /// All counts to zero, everything else as it is (end of a warm-up).
    pub fn reset_counters(&mut self) {
        self.swaps = 0;
        self.moved_pages = 0;
        for rank in &mut self.rank {
            rank.0 = 0;
        }
        for die in &mut self.dies {
            for set in [&mut die.free, &mut die.used] {
                *set = set.iter().map(|&(_, since, at)| (0, since, at)).collect();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use floatgate_core::ProgramOrder;

    fn levelling(leveling: WearLeveling, gap: u32) -> Levelling {
        let geometry = Geometry::new(1, 4, 4, 8, ProgramOrder::Ascending).unwrap();
        Levelling::new(&geometry, leveling, gap).unwrap()
    }

    #[test]
    fn the_youngest_block_is_taken_and_of_equals_the_one_that_waits_longest() {
        let mut l = levelling(WearLeveling::Dynamic, 64);
        l.programmed(Pbn(3));
        assert_eq!(l.place(Pbn(3)), Pbn(0));
        l.erased(Pbn(3));
        // 1, 2, 3 have no erase; 0 has one and comes last.
        let taken = [2, 0, 1, 3].map(|block| {
            l.programmed(Pbn(block));
            l.place(Pbn(block)).0
        });
        assert_eq!(taken, [1, 2, 3, 0]);
        assert_eq!(l.erase_counts().collect::<Vec<_>>(), [1, 0, 0, 0]);
    }

    #[test]
    fn static_levelling_moves_the_least_worn_content_above_the_gap() {
        let mut l = levelling(WearLeveling::Static, 1);
        l.preloaded(Pbn(0));
        l.preloaded(Pbn(1));
        let mut swaps = Vec::new();
        for _ in 0..5 {
            l.programmed(Pbn(2));
            l.erased(Pbn(2));
            swaps.push(l.next_swap(Pbn(2)));
        }
        // Blocks 2 and 3 take turns; at the third erase one of them is two ahead of block 0.
        let swap = Swap {
            block: Pbn(0),
            from: Pbn(0),
            to: Pbn(2),
        };
        assert_eq!(swaps[..3], [None, None, Some(swap)]);
        assert_eq!(l.erase_counts().sum::<u32>(), 5 + l.swaps as u32);
    }
}
