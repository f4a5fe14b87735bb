//! Blocks of page-mapped schemes and the choice of the one to collect.
//!
//! A *candidate* is a full block with at least one invalid page. Greedy keeps candidates in buckets by
//! number of valid pages, so a choice is a short scan of the emptiest bucket for the exact tie rule (oldest
//! allocation). The other policies walk the blocks of a die in the order of their allocation.

use crate::address::Pbn;
use crate::choice;
use crate::geometry::Geometry;
use crate::parts::buckets::Buckets;
use crate::parts::lists::Lists;
use crate::rng::SplitMix64;

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

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    /// Erased, or taken and not yet full.
    Open,
    /// All pages programmed.
    Full,
}

#[derive(Clone, Copy, Debug)]
struct Block {
    valid: u32,
    alloc_no: u32,
    /// Its die, so that nobody divides for it.
    die: u32,
    state: State,
}

/// The blocks of all dies with what victim choice needs.
#[derive(Debug)]
pub struct Victims {
    policy: GcPolicy,
    draws: u64,
    random: Vec<SplitMix64>,
    blocks: Vec<Block>,
    /// Clock of the last program into a block or invalidation in it (cost-benefit only).
    stamps: Vec<u64>,
    /// Greedy only: candidates by die and valid pages.
    buckets: Buckets,
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

impl Victims {
    /// All blocks erased.
    pub fn new(geometry: &Geometry, policy: GcPolicy, draws: u64, seed: u64) -> Self {
        let (dies, blocks) = (geometry.dies as usize, geometry.blocks() as usize);
        let pages = geometry.pages_per_block;
        let (buckets, lists) = match policy {
            GcPolicy::Greedy => (
                Buckets::new(geometry.blocks(), geometry.dies, pages),
                Lists::new(0, 0),
            ),
            _ => (Buckets::new(0, 0, 0), Lists::new(blocks, dies)),
        };
        Self {
            policy,
            draws,
            random: (0..dies as u64)
                .map(|die| SplitMix64::new(seed.wrapping_add(die)))
                .collect(),
            blocks: (0..geometry.blocks())
                .map(|block| Block {
                    valid: 0,
                    alloc_no: 0,
                    die: geometry.die_of(Pbn(block)),
                    state: State::Open,
                })
                .collect(),
            stamps: if policy == GcPolicy::CostBenefit {
                vec![0; blocks]
            } else {
                Vec::new()
            },
            buckets,
            lists,
            next_alloc: vec![0; dies],
            second: Lists::new(0, 0),
            pages_per_block: pages,
            geometry: geometry.clone(),
            scratch: Vec::new(),
        }
    }

    /// Bytes of memory for a device of that shape.
    pub fn ram_bytes(geometry: &Geometry) -> u64 {
        32 * u64::from(geometry.blocks())
            + 12 * u64::from(geometry.dies) * u64::from(geometry.pages_per_block)
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
        candidates
            .min_by_key(|&b| self.blocks[b as usize].valid)
            .map(Pbn)
    }

    /// Valid pages of a block.
    #[inline(always)]
    pub fn valid(&self, block: Pbn) -> u32 {
        self.blocks[block.index()].valid
    }

    /// A block has been taken from the free list.
    pub fn taken(&mut self, block: Pbn) {
        let die = self.geometry.die_of(block) as usize;
        let alloc_no = self.next_alloc[die];
        self.next_alloc[die] += 1;
        self.blocks[block.index()] = Block {
            valid: 0,
            alloc_no,
            die: die as u32,
            state: State::Open,
        };
        if self.policy != GcPolicy::Greedy {
            self.lists.push_back(die, block.0);
        }
    }

    /// A page of a block has become valid at that clock.
    #[inline(always)]
    pub fn gained(&mut self, block: Pbn, clock: u64) {
        self.blocks[block.index()].valid += 1;
        if self.policy == GcPolicy::CostBenefit {
            self.stamps[block.index()] = clock;
        }
    }

    /// Several pages of a block have become valid, the last at that clock.
    #[inline]
    pub fn gained_many(&mut self, block: Pbn, pages: u32, clock: u64) {
        self.blocks[block.index()].valid += pages;
        if self.policy == GcPolicy::CostBenefit {
            self.stamps[block.index()] = clock;
        }
    }

    /// A block is being collected: no candidate any more, and nobody needs to hear of each page that leaves it.
    pub fn collecting(&mut self, block: Pbn) {
        self.blocks[block.index()].state = State::Open;
        if self.policy == GcPolicy::Greedy {
            self.buckets.remove(block.0);
        }
    }

    /// A page of a block has become invalid at that clock.
    #[inline(always)]
    pub fn lost(&mut self, block: Pbn, clock: u64) {
        let entry = &mut self.blocks[block.index()];
        entry.valid -= 1;
        let (valid, full) = (entry.valid, entry.state == State::Full);
        match self.policy {
            GcPolicy::Greedy if full => self.file(block, valid),
            GcPolicy::CostBenefit => self.stamps[block.index()] = clock,
            _ => {}
        }
    }

    /// All pages of a block are programmed.
    pub fn filled(&mut self, block: Pbn) {
        let entry = &mut self.blocks[block.index()];
        entry.state = State::Full;
        let valid = entry.valid;
        if self.policy == GcPolicy::Greedy && valid < self.pages_per_block {
            self.file(block, valid);
        }
    }

    #[inline]
    fn file(&mut self, block: Pbn, valid: u32) {
        let die = self.blocks[block.index()].die;
        self.buckets.file(die, valid, block.0);
    }

    /// A block has been erased.
    pub fn erased(&mut self, block: Pbn) {
        let entry = &mut self.blocks[block.index()];
        (entry.valid, entry.state) = (0, State::Open);
        if self.policy == GcPolicy::Greedy {
            self.buckets.remove(block.0);
        } else {
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

    fn greedy(&mut self, die: u32) -> Option<u32> {
        let blocks = &self.blocks;
        self.buckets.first(die, |b| blocks[b as usize].alloc_no)
    }

    /// Candidates of a die in the order of their allocation (not kept for greedy).
    fn candidates(&self, die: u32) -> impl Iterator<Item = u32> + '_ {
        self.lists
            .iter(die as usize)
            .filter(|&b| self.is_candidate(b))
    }

    fn is_candidate(&self, b: u32) -> bool {
        let block = &self.blocks[b as usize];
        block.state == State::Full && block.valid < self.pages_per_block
    }

    fn cost_benefit(&self, die: u32, clock: u64) -> Option<u32> {
        let mut best: Option<(u32, u128, u128)> = None;
        for b in self.candidates(die) {
            let valid = self.blocks[b as usize].valid;
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
        let blocks = &self.blocks;
        let chosen = (!scratch.is_empty()).then(|| {
            (0..self.draws)
                .map(|_| scratch[(random.next() % scratch.len() as u64) as usize])
                .min_by_key(|&b| (blocks[b as usize].valid, blocks[b as usize].alloc_no))
        });
        self.scratch = scratch;
        chosen.flatten()
    }

    /// Checks the counts of valid pages against `valid`, by block.
    ///
    /// # Errors
    /// The first block that differs.
    pub fn audit(&self, valid: &[u32]) -> Result<(), String> {
        for (b, (block, &expected)) in self.blocks.iter().zip(valid).enumerate() {
            if block.valid != expected {
                return Err(format!(
                    "block {b} counts {} valid pages of {expected}",
                    block.valid
                ));
            }
        }
        Ok(())
    }
}
