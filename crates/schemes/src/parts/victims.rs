//! Blocks of page-mapped schemes and the choice of the one to collect.
//!
//! A *candidate* is a full block with at least one invalid page. Greedy keeps the first in line of each group of
//! blocks: a block that is full only loses pages, so a lost page costs one comparison, and a choice looks at the
//! groups of a die only, with the exact tie rule (oldest allocation). Groups have about as many blocks as a die has
//! groups. The other policies walk the blocks of a die in the order of their allocation.

use floatgate_core::state;
use std::ops::Range;

use crate::parts::lists::Lists;
use floatgate_core::address::Pbn;
use floatgate_core::choice;
use floatgate_core::geometry::Geometry;
use floatgate_core::rng::SplitMix64;

choice! {
    /// Which block a collection takes.
    pub enum GcPolicy {
        /// Fewest valid pages.
        Greedy = "greedy",
        /// Largest `age * (1 - u) / 2u` (Kawaguchi et al. 1995).
        CostBenefit = "cost-benefit",
        /// Oldest allocation.
        Fifo = "fifo",
        /// Fewest valid pages among a few random ones (Van Houdt 2013).
        DChoices = "d-choices",
    }
}

/// Key of a block that is erased.
const ERASED: u32 = u32::MAX;
/// On top of the key of a block that is taken and not yet full, or being collected: above every number of pages.
const OPEN: u32 = 1 << 31;

/// The block of a group that greedy takes first.
#[derive(Clone, Copy, Debug)]
struct First {
    /// Its key and, below it, its allocation number: a lower rank goes first.
    rank: u64,
    block: u32,
}

state!(First { rank, block });

impl First {
    const NONE: Self = Self {
        rank: u64::MAX,
        block: u32::MAX,
    };

    fn or(self, other: Self) -> Self {
        if other.rank < self.rank { other } else { self }
    }
}

/// The blocks of all dies with what victim choice needs.
#[derive(Debug)]
pub struct Victims {
    policy: GcPolicy,
    draws: u64,
    random: Vec<SplitMix64>,
    /// By block: its pages that are not invalid, those still to be programmed among them; with `OPEN` no candidate.
    keys: Vec<u32>,
    /// Running number of each block's allocation on its die.
    alloc_nos: Vec<u32>,
    /// Clock of the last program into a block or invalidation in it (cost-benefit only).
    stamps: Vec<u64>,
    /// Greedy only: the first in line of each group of blocks.
    groups: Vec<First>,
    group_bits: u32,
    /// Otherwise: one list a die, in order of allocation.
    lists: Lists,
    next_alloc: Vec<u32>,
    /// Blocks of a second role (mapping pages), a list a die in order of allocation; without lists in
    /// schemes that have no such blocks.
    second: Lists,
    pages_per_block: u32,
    geometry: Geometry,
    scratch: Vec<u32>,
}

state!(Victims { random, keys, alloc_nos, stamps, groups, lists, next_alloc, second }
    fixed { policy, draws, group_bits, pages_per_block, geometry, scratch });

impl Victims {
    /// All blocks erased.
    pub fn new(geometry: &Geometry, policy: GcPolicy, draws: u64, seed: u64) -> Self {
        let (dies, blocks) = (geometry.dies as usize, geometry.blocks() as usize);
        let greedy = policy == GcPolicy::Greedy;
        let group_bits = geometry.blocks_per_die.ilog2().div_ceil(2);
        Self {
            policy,
            draws,
            random: (0..dies as u64)
                .map(|die| SplitMix64::new(seed.wrapping_add(die)))
                .collect(),
            keys: vec![ERASED; blocks],
            alloc_nos: vec![0; blocks],
            groups: vec![
                First::NONE;
                if greedy {
                    (blocks >> group_bits) + 1
                } else {
                    0
                }
            ],
            group_bits,
            lists: if greedy {
                Lists::new(0, 0)
            } else {
                Lists::new(blocks, dies)
            },
            stamps: if policy == GcPolicy::CostBenefit {
                vec![0; blocks]
            } else {
                Vec::new()
            },
            next_alloc: vec![0; dies],
            second: Lists::new(0, 0),
            pages_per_block: geometry.pages_per_block,
            geometry: geometry.clone(),
            scratch: Vec::new(),
        }
    }

    /// Bytes of memory for a device of that shape.
    pub fn ram_bytes(geometry: &Geometry) -> u64 {
        // Keys, allocation numbers, and the lists or time stamps of the policies that need them.
        32 * u64::from(geometry.blocks()) + 32 * u64::from(geometry.dies)
    }

    /// The same for a device some of whose blocks have a second role.
    #[must_use]
    pub fn with_second_role(mut self) -> Self {
        let (dies, blocks) = (self.geometry.dies, self.geometry.blocks());
        self.second = Lists::new(blocks as usize, dies as usize);
        self
    }

    /// A block that has just been taken gets the second role until its erase.
    pub fn set_second(&mut self, block: Pbn) {
        let die = self.geometry.die_of(block);
        self.second.push_back(die as usize, block.0);
    }

    /// Whether a block has the second role.
    pub fn is_second(&self, block: Pbn) -> bool {
        self.second.list_of(block.0).is_some()
    }

    /// Blocks of a die with the second role.
    pub fn second_blocks(&self, die: u32) -> u32 {
        self.second.len(die as usize)
    }

    /// The candidate of the second role with the fewest valid pages on a die, whatever the policy.
    pub fn choose_second(&self, die: u32) -> Option<Pbn> {
        let candidates = self
            .second
            .iter(die as usize)
            .filter(|&b| self.is_candidate(b));
        // In order of allocation, and the first of equals is kept.
        candidates.min_by_key(|&b| self.keys[b as usize]).map(Pbn)
    }

    /// Valid pages of a block that is full.
    #[inline(always)]
    pub fn valid(&self, block: Pbn) -> u32 {
        self.keys[block.index()] & !OPEN
    }

    /// A block has been taken from the free list.
    pub fn taken(&mut self, block: Pbn) {
        let die = self.geometry.die_of(block) as usize;
        let alloc_no = self.next_alloc[die];
        self.next_alloc[die] += 1;
        self.alloc_nos[block.index()] = alloc_no;
        self.keys[block.index()] = OPEN | self.pages_per_block;
        if self.policy != GcPolicy::Greedy {
            self.lists.push_back(die, block.0);
        }
    }

    /// A block is being collected: no candidate any more, and nobody needs to hear of each page that leaves it.
    pub fn collecting(&mut self, block: Pbn) {
        self.keys[block.index()] |= OPEN;
        self.count_group(block);
    }

    /// A page of a block has become invalid at that clock.
    #[inline(always)]
    pub fn lost(&mut self, block: Pbn, clock: u64) {
        let key = self.keys[block.index()] - 1;
        self.keys[block.index()] = key;
        match self.policy {
            GcPolicy::Greedy => self.file(block, key),
            GcPolicy::CostBenefit => self.stamps[block.index()] = clock,
            _ => {}
        }
    }

    /// All pages of a block are programmed, the last at that clock.
    pub fn filled(&mut self, block: Pbn, clock: u64) {
        self.closed(block, 0, clock);
    }

    /// A block takes no more pages, the last came at that clock; `invalid` of them count as invalid although nobody
    /// [lost](Self::lost) them.
    pub fn closed(&mut self, block: Pbn, invalid: u32, clock: u64) {
        let key = (self.keys[block.index()] & !OPEN) - invalid;
        self.keys[block.index()] = key;
        match self.policy {
            GcPolicy::Greedy => self.file(block, key),
            GcPolicy::CostBenefit => self.stamps[block.index()] = clock,
            _ => {}
        }
    }

    /// The key of a block is new, and not above what it was.
    #[inline(always)]
    fn file(&mut self, block: Pbn, key: u32) {
        let first = &mut self.groups[block.index() >> self.group_bits];
        if u64::from(key) <= first.rank >> 32 {
            let (alloc_no, block) = (self.alloc_nos[block.index()], block.0);
            *first = first.or(First {
                rank: rank(key, alloc_no),
                block,
            });
        }
    }

    /// The key of a block has gone up.
    fn count_group(&mut self, block: Pbn) {
        if !self.groups.is_empty() {
            let group = block.index() >> self.group_bits;
            let first = group << self.group_bits;
            let end = (first + (1 << self.group_bits)).min(self.keys.len());
            self.groups[group] = self.first_among(first..end);
        }
    }

    fn first_among(&self, blocks: Range<usize>) -> First {
        let alloc_nos = &self.alloc_nos[blocks.clone()];
        let (mut least, mut at) = (u64::MAX, usize::MAX);
        for (i, &key) in self.keys[blocks.clone()].iter().enumerate() {
            let rank = rank(key, alloc_nos[i]);
            (least, at) = if rank < least { (rank, i) } else { (least, at) };
        }
        First {
            rank: least,
            block: blocks.start.wrapping_add(at) as u32,
        }
    }

    /// A block has been erased.
    pub fn erased(&mut self, block: Pbn) {
        self.keys[block.index()] = ERASED;
        self.count_group(block);
        if self.policy != GcPolicy::Greedy {
            self.lists.remove(block.0);
        }
        if self.second.has_things() {
            self.second.remove(block.0);
        }
    }

    /// The block to collect on a die, if any has an invalid page. `clock` is the number of programs so far.
    pub fn choose(&mut self, die: u32, clock: u64) -> Option<Pbn> {
        match self.policy {
            GcPolicy::Greedy => self.greedy(die),
            GcPolicy::Fifo => self.candidates(die).next(),
            GcPolicy::CostBenefit => self.cost_benefit(die, clock),
            GcPolicy::DChoices => self.d_choices(die),
        }
        .map(Pbn)
    }

    fn greedy(&self, die: u32) -> Option<u32> {
        let first = self.geometry.pbn(die, 0).index();
        let end = first + self.geometry.blocks_per_die as usize;
        // Groups that lie on this die with all their blocks, and the blocks before and behind them.
        let group = 1 << self.group_bits;
        let (inside, behind) = (first.next_multiple_of(group), end / group * group);
        let found = if inside < behind {
            let groups = &self.groups[inside / group..behind / group];
            let found = groups
                .iter()
                .fold(First::NONE, |found, &other| found.or(other));
            let head = self.first_among(first..inside);
            found.or(head).or(self.first_among(behind..end))
        } else {
            self.first_among(first..end)
        };
        (found.rank < rank(self.pages_per_block, 0)).then_some(found.block)
    }

    /// Candidates of a die in the order of their allocation (not kept for greedy).
    fn candidates(&self, die: u32) -> impl Iterator<Item = u32> + '_ {
        self.lists
            .iter(die as usize)
            .filter(|&b| self.is_candidate(b))
    }

    fn is_candidate(&self, b: u32) -> bool {
        self.keys[b as usize] < self.pages_per_block
    }

    fn cost_benefit(&self, die: u32, clock: u64) -> Option<u32> {
        let mut best: Option<(u32, u128, u128)> = None;
        for b in self.candidates(die) {
            let valid = self.keys[b as usize];
            if valid == 0 {
                return Some(b);
            }
            let age = u128::from(clock - self.stamps[b as usize] + 1);
            let (gain, cost) = (
                age * u128::from(self.pages_per_block - valid),
                u128::from(valid),
            );
            // Compared as fractions; the walk is in order of allocation, so a tie keeps the older.
            if best.is_none_or(|(_, g, c)| gain * c > g * cost) {
                best = Some((b, gain, cost));
            }
        }
        best.map(|(b, ..)| b)
    }

    fn d_choices(&mut self, die: u32) -> Option<u32> {
        let mut scratch = std::mem::take(&mut self.scratch);
        scratch.clear();
        scratch.extend(self.candidates(die));
        let random = &mut self.random[die as usize];
        let (keys, alloc_nos) = (&self.keys, &self.alloc_nos);
        let chosen = (!scratch.is_empty()).then(|| {
            (0..self.draws)
                .map(|_| scratch[(random.next() % scratch.len() as u64) as usize])
                .min_by_key(|&b| (keys[b as usize], alloc_nos[b as usize]))
        });
        self.scratch = scratch;
        chosen.flatten()
    }

    /// Checks the counts of valid pages against `valid` and `unprogrammed`, by block.
    ///
    /// # Errors
    /// The first block that differs.
    pub fn audit(&self, valid: &[u32], unprogrammed: impl Fn(Pbn) -> u32) -> Result<(), String> {
        for (b, (&key, &expected)) in (0..).zip(self.keys.iter().zip(valid)) {
            let counted = match key {
                ERASED => 0,
                key if key & OPEN != 0 => (key & !OPEN).saturating_sub(unprogrammed(Pbn(b))),
                key => key,
            };
            if counted != expected {
                return Err(format!(
                    "block {b} counts {counted} valid pages of {expected}"
                ));
            }
        }
        Ok(())
    }
}

fn rank(key: u32, alloc_no: u32) -> u64 {
    u64::from(key) << 32 | u64::from(alloc_no)
}

#[cfg(test)]
mod tests {
    use super::*;
    use floatgate_core::ProgramOrder;

    /// Greedy against a look at every block, on dies that begin and end inside a group.
    #[test]
    fn greedy_takes_the_emptiest_and_of_equals_the_oldest() {
        let (dies, blocks, pages) = (3, 150, 4);
        let logical = u64::from(dies * pages);
        let geometry = Geometry::new(dies, blocks, pages, logical, ProgramOrder::Any).unwrap();
        let mut victims = Victims::new(&geometry, GcPolicy::Greedy, 1, 1);
        let mut rng = SplitMix64::new(29);
        // By block: valid pages and allocation number, of full blocks.
        let mut model: Vec<Option<(u32, u32)>> = vec![None; geometry.blocks() as usize];
        let mut allocated = [0; 3];
        for _ in 0..20_000 {
            let b = rng.below(model.len() as u64) as usize;
            let (block, die) = (Pbn(b as u32), b / blocks as usize);
            match &mut model[b] {
                None => {
                    victims.taken(block);
                    victims.filled(block, 0);
                    model[b] = Some((pages, allocated[die]));
                    allocated[die] += 1;
                }
                Some((0, _)) => {
                    victims.collecting(block);
                    victims.erased(block);
                    model[b] = None;
                }
                Some((valid, _)) => {
                    *valid -= 1;
                    victims.lost(block, 0);
                }
            }
            let here = die * blocks as usize..(die + 1) * blocks as usize;
            let emptiest = here
                .filter(|&b| model[b].is_some_and(|(valid, _)| valid < pages))
                .min_by_key(|&b| model[b]);
            assert_eq!(
                victims.choose(die as u32, 0),
                emptiest.map(|b| Pbn(b as u32))
            );
        }
    }
}
