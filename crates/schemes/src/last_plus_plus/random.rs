//! The random log blocks of LAST++: partitions, page mapping table with update counters, merge costs.

use super::merge_cost::MergeCost;
use crate::parts::heat::Heat;
use crate::parts::hybrid::{Log, LogPage};
use crate::parts::probe_table::ProbeTable;
use floatgate_core::address::{DieLpn, Lbn, Lpn};
use floatgate_core::geometry::Space;
use floatgate_core::{choice, state};

choice! {
    /// The hash table of the random log blocks.
    pub enum RandomHash {
        /// As many buckets as pages; hash = key mod buckets.
        Mod = "mod",
        /// Twice as many buckets, as the sequential table has; hash = key mod buckets.
        Twice = "twice",
        /// Twice as many buckets, and the bits of the key are mixed first.
        Mixed = "mixed",
    }
}

impl RandomHash {
    /// Buckets for so many pages.
    pub fn buckets(self, pages: u64) -> u64 {
        match self {
            Self::Mod => pages,
            Self::Twice | Self::Mixed => 2 * pages,
        }
    }

    /// The key of a page of the device. Different pages have different keys.
    #[inline(always)]
    pub fn key(self, lpn: u32) -> u32 {
        if self != Self::Mixed {
            return lpn;
        }
        let key = (lpn ^ lpn >> 16).wrapping_mul(0x7FEB_352D);
        let key = (key ^ key >> 15).wrapping_mul(0x846C_A68B);
        key ^ key >> 16
    }
}

/// Highest value of the update counter: it has two bits.
const UPDATES_MAX: u8 = 3;

/// Rank of a block that is no candidate.
const NO_RANK: u64 = u64::MAX;

/// A rank is degree, overflow flag and allocation order in one number, so the cheapest block is the one
/// of the lowest rank, and known dead blocks have only the allocation order.
fn rank(degree: u32, overflow: bool, allocation: u32) -> u64 {
    u64::from(degree) << 33 | u64::from(overflow) << 32 | u64::from(allocation)
}

/// Whether a closed block of that rank is known to hold no valid page.
pub fn is_known_dead(rank: u64) -> bool {
    rank >> 32 == 0
}

#[derive(Clone, Copy, Debug)]
struct Block {
    /// `None`: no random log block.
    partition: Option<Heat>,
    closed: bool,
    allocation: u32,
}

state!(Block {
    partition,
    closed,
    allocation
});

const NO_BLOCK: Block = Block {
    partition: None,
    closed: false,
    allocation: 0,
};

#[derive(Clone, Copy, Debug)]
struct Die {
    /// Blocks by partition.
    size: [u32; 2],
    /// The block that takes the next page, by partition.
    open: [Option<Log>; 2],
}

state!(Die { size, open });

/// Tables of the random log blocks. Log blocks are numbered as [`Hybrid`](crate::parts::hybrid::Hybrid)
/// numbers them: a fixed range a die, shared with the sequential ones.
#[derive(Debug)]
pub struct RandomLogs {
    space: Space,
    slots_per_die: u32,
    dies: Vec<Die>,
    blocks: Vec<Block>,
    /// Ranks of the closed blocks by partition; [`NO_RANK`] for all others.
    ranks: [Vec<u64>; 2],
    /// Merge costs and the merge ID.
    pub cost: MergeCost,
    /// The page mapping table: LPN -> page of a log block.
    pages: ProbeTable,
    hash: RandomHash,
    /// Update counters by page of a log block.
    updates: Vec<u8>,
    /// Valid pages by partition.
    valid: [u64; 2],
    allocations: u32,
}

state!(RandomLogs { dies, blocks, ranks, cost, pages, updates, valid, allocations } fixed { space, slots_per_die, hash });

impl RandomLogs {
    /// No random log block yet. `slots_per_die` log blocks of each die have a number, `blocks` of the device
    /// can be random ones; `room` elements in a merge-cost list.
    pub fn new(
        space: &Space,
        slots_per_die: u32,
        blocks: u32,
        room: u32,
        hash: RandomHash,
    ) -> Self {
        let slots = slots_per_die * space.dies;
        let pages = space.geometry.pages_per_block;
        let die = Die {
            size: [0; 2],
            open: [None; 2],
        };
        Self {
            space: space.clone(),
            slots_per_die,
            dies: vec![die; space.dies as usize],
            blocks: vec![NO_BLOCK; slots as usize],
            ranks: [vec![NO_RANK; slots as usize], vec![NO_RANK; slots as usize]],
            cost: MergeCost::new(slots, room),
            pages: ProbeTable::new(hash.buckets((blocks * pages).into()) as u32, slots * pages),
            hash,
            updates: vec![0; (slots * pages) as usize],
            valid: [0; 2],
            allocations: 0,
        }
    }

    /// Bytes of memory for tables of that size.
    pub fn ram_bytes(slots: u64, blocks: u64, room: u64, pages: u64, hash: RandomHash) -> u64 {
        slots * (32 + pages)
            + MergeCost::ram_bytes(slots, room)
            + ProbeTable::ram_bytes(hash.buckets(blocks * pages), slots * pages)
    }

    /// Number of a page of a log block: the handle of its key in the page mapping table.
    #[inline(always)]
    fn handle(&self, page: LogPage) -> u32 {
        page.log.0 * self.space.geometry.pages_per_block + page.position
    }

    // ---- blocks -------------------------------------------------------------------------------------

    #[inline(always)]
    fn die_of(&self, log: Log) -> usize {
        (log.0 / self.slots_per_die) as usize
    }

    /// `log`, a fresh block of `die`, is that partition's open block from now on.
    pub fn taken(&mut self, log: Log, die: u32, partition: Heat) {
        self.blocks[log.index()] = Block {
            partition: Some(partition),
            closed: false,
            allocation: self.allocations,
        };
        self.allocations = self.allocations.wrapping_add(1);
        self.cost.taken(log);
        let die = &mut self.dies[die as usize];
        die.size[partition as usize] += 1;
        die.open[partition as usize] = Some(log);
    }

    /// `log` was found after a start with these valid pages (position, local page, logical block, update counter). It
    /// takes no more pages.
    pub fn claim(&mut self, log: Log, partition: Heat, valid: &[(u32, DieLpn, Lbn, u8)]) {
        let die = self.die_of(log) as u32;
        self.taken(log, die, partition);
        for &(position, lpn, lbn, updates) in valid {
            let page = LogPage { log, position };
            self.moved(lpn, lbn, None, Some(page));
            let handle = self.handle(page);
            self.updates[handle as usize] = updates;
        }
        self.closed(log);
    }

    /// An open block is full.
    pub fn closed(&mut self, log: Log) {
        let block = &mut self.blocks[log.index()];
        block.closed = true;
        let partition = block.partition.expect("a random log block") as usize;
        let die = self.die_of(log);
        self.dies[die].open[partition] = None;
        self.rank_again(log);
    }

    /// `log` is no log block any more.
    pub fn released(&mut self, log: Log) {
        let block = std::mem::replace(&mut self.blocks[log.index()], NO_BLOCK);
        let Some(partition) = block.partition else {
            return;
        };
        self.ranks[partition as usize][log.index()] = NO_RANK;
        let die = self.die_of(log);
        self.dies[die].size[partition as usize] -= 1;
        debug_assert!(block.closed, "only closed blocks are victims");
    }

    #[inline(always)]
    fn rank_again(&mut self, log: Log) {
        let block = self.blocks[log.index()];
        if let (true, Some(partition)) = (block.closed, block.partition) {
            let (degree, overflow) = (self.cost.degree(log), self.cost.overflow(log));
            self.ranks[partition as usize][log.index()] = rank(degree, overflow, block.allocation);
        }
    }

    /// The block of a die that takes the next page of a partition.
    #[inline(always)]
    pub fn open(&self, die: u32, partition: Heat) -> Option<Log> {
        self.dies[die as usize].open[partition as usize]
    }

    /// Blocks of a partition of a die, the open one included.
    #[inline(always)]
    pub fn size(&self, die: u32, partition: Heat) -> u32 {
        self.dies[die as usize].size[partition as usize]
    }

    /// Random log blocks of a die.
    #[inline(always)]
    pub fn in_use(&self, die: u32) -> u32 {
        self.size(die, Heat::Cold) + self.size(die, Heat::Hot)
    }

    /// The partition of a log block; `None` if it is no random one.
    #[inline(always)]
    pub fn partition(&self, log: Log) -> Option<Heat> {
        self.blocks[log.index()].partition
    }

    /// Whether a block is closed.
    pub fn is_closed(&self, log: Log) -> bool {
        self.blocks[log.index()].closed
    }

    /// Valid pages of a partition of the device.
    pub fn valid(&self, partition: Heat) -> u64 {
        self.valid[partition as usize]
    }

    /// All random log blocks.
    pub fn logs(&self) -> impl Iterator<Item = Log> + '_ {
        let logs = (0..self.blocks.len() as u32).map(Log);
        logs.filter(|&log| self.partition(log).is_some())
    }

    /// Ranks of a die's closed blocks of one partition, by number of the log block.
    fn ranks_of(&self, die: u32, partition: Heat) -> (u32, &[u64]) {
        let first = die * self.slots_per_die;
        let range = first as usize..(first + self.slots_per_die) as usize;
        (first, &self.ranks[partition as usize][range])
    }

    /// The closed block of a partition of a die that costs the least to merge, with its rank.
    pub fn cheapest(&self, die: u32, partition: Heat) -> Option<(u64, Log)> {
        let (first, ranks) = self.ranks_of(die, partition);
        let lowest = ranks.iter().copied().fold(NO_RANK, u64::min);
        if lowest == NO_RANK {
            return None;
        }
        let at = ranks.iter().position(|&rank| rank == lowest)?;
        Some((lowest, Log(first + at as u32)))
    }

    /// All closed blocks of a partition of a die, cheapest first.
    pub fn by_cost(&self, die: u32, partition: Heat, sorted: &mut Vec<(u64, Log)>) {
        let (first, ranks) = self.ranks_of(die, partition);
        let logs = (first..).map(Log);
        sorted.clear();
        sorted.extend(ranks.iter().copied().zip(logs));
        sorted.retain(|&(rank, _)| rank != NO_RANK);
        sorted.sort_unstable_by_key(|&(rank, _)| rank);
    }

    /// Largest size of the hot partition of a die by the share of hot pages among the valid ones, of
    /// `blocks` random log blocks a die.
    pub fn hot_maximum(&self, blocks: u32) -> u32 {
        let [cold, hot] = self.valid;
        if cold + hot == 0 {
            return 2;
        }
        let share = (u64::from(blocks) * hot).div_ceil(cold + hot);
        (share as u32).max(2)
    }

    // ---- pages --------------------------------------------------------------------------------------

    /// The entry of a page whose newest version is at `page`, if that is in a random log block: its
    /// partition and update counter.
    #[inline(always)]
    pub fn entry(&self, page: Option<LogPage>) -> Option<(Heat, u8)> {
        let page = page?;
        let partition = self.partition(page.log)?;
        Some((partition, self.updates[self.handle(page) as usize]))
    }

    /// Buckets that a lookup of device page `lpn` looks at, and whether it finds an entry.
    #[inline(always)]
    pub fn look_up(&self, lpn: Lpn, page: Option<LogPage>) -> (bool, u32) {
        match page.filter(|page| self.partition(page.log).is_some()) {
            Some(page) => (true, self.pages.hit(self.handle(page))),
            None => (false, self.pages.miss(self.hash.key(lpn.0))),
        }
    }

    /// The newest version of a page of logical block `lbn` has moved.
    #[inline]
    pub fn moved(&mut self, lpn: DieLpn, lbn: Lbn, from: Option<LogPage>, to: Option<LogPage>) {
        let random = |page: &LogPage| self.partition(page.log).is_some();
        let (from, to) = (from.filter(random), to.filter(random));
        if let Some(LogPage { log, .. }) = from {
            self.cost.lost(log, lbn);
            self.rank_again(log);
            self.valid[self.partition(log).expect("filtered") as usize] -= 1;
        }
        if let Some(LogPage { log, .. }) = to {
            self.cost.gained(log, lbn);
            self.valid[self.partition(log).expect("filtered") as usize] += 1;
        }
        match (from.map(|p| self.handle(p)), to.map(|p| self.handle(p))) {
            (Some(from), Some(to)) => {
                self.pages.rename(from, to);
                self.updates[to as usize] = (self.updates[from as usize] + 1).min(UPDATES_MAX);
            }
            (Some(from), None) => self.pages.remove(from),
            (None, Some(to)) => {
                let key = self.hash.key(self.space.device_lpn(lpn).0);
                self.pages.insert(key, to);
                self.updates[to as usize] = 0;
            }
            (None, None) => {}
        }
    }

    /// Checks the tables against the pages: `valid_pages` gives the valid pages of a log block as
    /// (position, local page).
    ///
    /// # Errors
    /// What does not agree.
    pub fn audit<I>(&self, valid_pages: impl Fn(Log) -> I) -> Result<(), String>
    where
        I: Iterator<Item = (u32, DieLpn)>,
    {
        let pages = self.space.geometry.pages_per_block;
        let mut key_of = vec![u32::MAX; self.updates.len()];
        let (mut valid, mut sizes) = ([0; 2], vec![[0; 2]; self.dies.len()]);
        for log in self.logs() {
            let block = self.blocks[log.index()];
            let partition = block.partition.expect("a random log block") as usize;
            sizes[self.die_of(log)][partition] += 1;
            let mut logical: Vec<Lbn> = Vec::new();
            for (position, lpn) in valid_pages(log) {
                valid[partition] += 1;
                let page = LogPage { log, position };
                key_of[self.handle(page) as usize] = self.space.device_lpn(lpn).0;
                logical.push(Lbn(lpn.0 / pages));
            }
            self.audit_cost(log, &mut logical)?;
            let (degree, overflow) = (self.cost.degree(log), self.cost.overflow(log));
            let expected = if block.closed {
                rank(degree, overflow, block.allocation)
            } else {
                NO_RANK
            };
            if self.ranks[partition][log.index()] != expected {
                return Err(format!("log {} has a wrong rank", log.0));
            }
            if block.closed == (self.dies[self.die_of(log)].open[partition] == Some(log)) {
                return Err(format!("log {} is open and closed", log.0));
            }
        }
        if valid != self.valid || sizes.iter().ne(self.dies.iter().map(|die| &die.size)) {
            return Err(format!(
                "partitions hold {valid:?} valid pages, {sizes:?} blocks"
            ));
        }
        if u64::from(self.pages.len()) != valid[0] + valid[1] {
            return Err(format!("page table has {} entries", self.pages.len()));
        }
        self.pages
            .audit(|handle| self.hash.key(key_of[handle as usize]))
    }

    /// Without overflow the list of a block is exact.
    fn audit_cost(&self, log: Log, logical: &mut [Lbn]) -> Result<(), String> {
        if self.cost.overflow(log) {
            return Ok(());
        }
        logical.sort_unstable();
        let exact: Vec<(Lbn, u32)> = logical
            .chunk_by(|a, b| a == b)
            .map(|same| (same[0], same.len() as u32))
            .collect();
        let mut list: Vec<(Lbn, u32)> = self.cost.list(log).collect();
        list.sort_unstable();
        if list != exact {
            return Err(format!("log {}: costs {list:?}, pages {exact:?}", log.0));
        }
        Ok(())
    }
}
