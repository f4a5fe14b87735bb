//! The random log buffer of LAST: its blocks in a hot and a cold partition, their ages and association degrees,
//! and the rules by which one of them is reclaimed.
//!
//! Every order that a rule asks for is kept up page by page, so a choice looks at the front of a list and
//! never at all blocks: hot blocks by their update time (a list, because that time only ever moves to "now"),
//! dead hot blocks apart, closed cold blocks in buckets by degree.

use crate::parts::buckets::Buckets;
use crate::parts::degrees::Degrees;
use crate::parts::heat::Heat;
use crate::parts::hybrid::{Hybrid, Log, Loss, Watch};
use crate::parts::lists::Lists;
use floatgate_core::address::Lbn;
use floatgate_core::flash::Flash;
use floatgate_core::geometry::Geometry;
use floatgate_core::state;

/// The rule that chose a victim.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Rule {
    /// A hot block without a valid page.
    DeadHot = 0,
    /// A hot block that nobody has touched for long.
    AgedHot = 1,
    /// The hot partition has its size: its least recently touched block.
    HotAtSize = 2,
    /// The cold block that is cheapest to merge.
    CheapestCold = 3,
    /// No closed cold block: as `HotAtSize`.
    NoCold = 4,
}

impl Rule {
    /// How many there are.
    pub const COUNT: usize = 5;
    /// Names of their counters.
    pub const NAMES: [&'static str; Self::COUNT] = [
        "reclaims_dead_hot",
        "reclaims_aged_hot",
        "reclaims_hot_at_size",
        "reclaims_cheapest_cold",
        "reclaims_no_cold",
    ];
}

/// Hot blocks that are open or have a valid page, by update time.
const TOUCHED: usize = 0;
/// Closed hot blocks without a valid page.
const DEAD: usize = 1;

#[derive(Clone, Copy, Debug)]
struct Block {
    /// The partition; `None` for a log block that is not in the random log buffer.
    heat: Option<Heat>,
    closed: bool,
    valid: u32,
    alloc_no: u64,
    /// The number of writes when a page was last programmed here or made invalid by the host.
    update_time: u64,
}

state!(Block {
    heat,
    closed,
    valid,
    alloc_no,
    update_time
});

const OUTSIDE: Block = Block {
    heat: None,
    closed: false,
    valid: 0,
    alloc_no: 0,
    update_time: 0,
};

#[derive(Clone, Copy, Default, Debug)]
struct Size {
    blocks: u32,
    open: Option<Log>,
    valid: u64,
    programmed: u64,
}

state!(Size {
    blocks,
    open,
    valid,
    programmed
});

/// The partitions. Hears of every page through [`Watch`]; knows nothing of sequential log blocks.
#[derive(Debug)]
pub struct Partitions {
    pages_per_block: u32,
    blocks: Vec<Block>,
    /// Number of the write that programmed each position of each block.
    write_no: Vec<u64>,
    /// Page writes to the random log buffer so far.
    writes: u64,
    next_alloc: u64,
    sizes: [Size; 2],
    /// Of the cold blocks: no rule asks for that of a hot one.
    degrees: Degrees,
    /// Hot blocks by what became of them.
    hot: Lists,
    /// Closed cold blocks by degree.
    cold: Buckets,
}

state!(Partitions { blocks, write_no, writes, next_alloc, sizes, degrees, hot, cold } fixed { pages_per_block });

impl Partitions {
    /// An empty buffer; `logs` is the size of the log table.
    pub fn new(logs: u32, pages_per_block: u32, logical_blocks: u32) -> Self {
        Self {
            pages_per_block,
            blocks: vec![OUTSIDE; logs as usize],
            write_no: vec![0; logs as usize * pages_per_block as usize],
            writes: 0,
            next_alloc: 0,
            sizes: [Size::default(); 2],
            degrees: Degrees::new(logs, pages_per_block, logical_blocks),
            hot: Lists::new(logs as usize, 2),
            cold: Buckets::new(logs, 1, pages_per_block + 1),
        }
    }

    /// Memory of the tables in bytes, for one device.
    pub fn ram_bytes(geometry: &Geometry, log_blocks: u32) -> u64 {
        let (logs, pages) = (u64::from(log_blocks), u64::from(geometry.pages_per_block));
        let block = std::mem::size_of::<Block>() as u64 + 24;
        let lists = 12 * u64::from(geometry.dies) * (pages + 3);
        let degrees = Degrees::ram_bytes(logs, pages, geometry.logical_blocks().into());
        block * logs + 8 * logs * pages + lists + degrees
    }

    /// The partition of a log block, if it is in the buffer.
    #[inline(always)]
    pub fn heat(&self, log: Log) -> Option<Heat> {
        self.blocks[log.index()].heat
    }

    /// The block of a partition that takes the next page.
    #[inline(always)]
    pub fn open(&self, heat: Heat) -> Option<Log> {
        self.sizes[heat as usize].open
    }

    /// Blocks of a partition.
    pub fn blocks(&self, heat: Heat) -> u32 {
        self.sizes[heat as usize].blocks
    }

    /// Blocks of the buffer.
    #[inline(always)]
    pub fn in_use(&self) -> u32 {
        self.sizes[0].blocks + self.sizes[1].blocks
    }

    /// Closed hot blocks without a valid page.
    pub fn dead_hot(&self) -> u32 {
        self.hot.len(DEAD)
    }

    /// Valid pages of a partition over all its pages, in thousandths; 0 without a block.
    pub fn utilisation_permille(&self, heat: Heat) -> u64 {
        let size = &self.sizes[heat as usize];
        let pages = u64::from(size.blocks) * u64::from(self.pages_per_block);
        (1000 * size.valid).checked_div(pages).unwrap_or(0)
    }

    /// Valid pages of a partition over its programmed pages; 0 without one.
    pub fn utilisation(&self, heat: Heat) -> f64 {
        let size = &self.sizes[heat as usize];
        size.valid as f64 / size.programmed.max(1) as f64
    }

    /// Mean degree of the cold blocks; 0 without one.
    pub fn mean_cold_degree(&self) -> f64 {
        let cold = |&i: &usize| self.blocks[i].heat == Some(Heat::Cold);
        let degree = |i: usize| u64::from(self.degrees.of(Log(i as u32)));
        let sum: u64 = (0..self.blocks.len()).filter(cold).map(degree).sum();
        sum as f64 / f64::from(self.blocks(Heat::Cold).max(1))
    }

    /// Writes to the buffer since the one that programmed that position: 0 for the last.
    #[inline(always)]
    pub fn writes_since(&self, log: Log, position: u32) -> u64 {
        self.writes - self.write_no[self.page_index(log, position)]
    }

    #[inline(always)]
    fn page_index(&self, log: Log, position: u32) -> usize {
        log.index() * self.pages_per_block as usize + position as usize
    }

    /// A fresh log block becomes the open block of a partition.
    pub fn take(&mut self, log: Log, heat: Heat) {
        self.blocks[log.index()] = Block {
            heat: Some(heat),
            alloc_no: self.next_alloc,
            update_time: self.writes,
            ..OUTSIDE
        };
        self.next_alloc += 1;
        let size = &mut self.sizes[heat as usize];
        size.blocks += 1;
        size.open = Some(log);
        if heat == Heat::Hot {
            self.hot.push_back(TOUCHED, log.0);
        }
    }

    /// A log block found after a power cut joins a partition, closed, the oldest first; `valid` names the logical
    /// block of each of its valid pages.
    pub fn claim(&mut self, log: Log, heat: Heat, valid: impl Iterator<Item = Lbn>) {
        self.take(log, heat);
        let size = &mut self.sizes[heat as usize];
        size.open = None;
        size.programmed += u64::from(self.pages_per_block);
        self.blocks[log.index()].closed = true;
        valid.for_each(|lbn| self.gained(log, lbn));
        match heat {
            Heat::Hot if self.blocks[log.index()].valid == 0 => {
                self.hot.move_to_back(DEAD, log.0);
            }
            Heat::Hot => {}
            Heat::Cold => self.file_cold(log),
        }
    }

    /// After a power cut: numbers the writes of all pages found in the buffer by the order of their programs. The
    /// update times start anew.
    pub fn number_writes(&mut self) {
        let pages = self.pages_per_block as usize;
        let in_buffer = |&i: &usize| self.blocks[i / pages].heat.is_some() && self.write_no[i] > 0;
        let mut found: Vec<usize> = (0..self.write_no.len()).filter(in_buffer).collect();
        found.sort_unstable_by_key(|&i| self.write_no[i]);
        for (i, rank) in found.iter().zip(1..) {
            self.write_no[*i] = rank;
        }
        self.writes = found.len() as u64;
    }

    /// A host page has been programmed at a position of an open block.
    #[inline]
    pub fn written(&mut self, log: Log, position: u32) {
        self.writes += 1;
        let at = self.page_index(log, position);
        self.write_no[at] = self.writes;
        let block = &mut self.blocks[log.index()];
        block.update_time = self.writes;
        let heat = block.heat.expect("a block of the buffer");
        if heat == Heat::Hot {
            self.hot.move_to_back(TOUCHED, log.0);
        }
        let size = &mut self.sizes[heat as usize];
        size.programmed += 1;
        if position + 1 == self.pages_per_block {
            size.open = None;
            block.closed = true;
            // The page just programmed is valid, so a hot block is not dead when it closes.
            if heat == Heat::Cold {
                self.file_cold(log);
            }
        }
    }

    /// Puts a closed cold block under its degree.
    #[inline]
    fn file_cold(&mut self, log: Log) {
        let degree = self.degrees.of(log);
        self.cold.file(0, degree, log.0);
    }

    /// The block to reclaim for a partition that has no open block while the whole buffer is in use.
    ///
    /// # Panics
    /// If no block is closed; of two or more at most one is open then.
    pub fn victim(&mut self, asking: Heat, hot_target: u32, age_threshold: u64) -> (Log, Rule) {
        if let Some(dead) = self.oldest_dead() {
            return (dead, Rule::DeadHot);
        }
        let hot = self.least_recently_touched();
        if let Some(hot) = hot {
            if self.writes - self.blocks[hot.index()].update_time > age_threshold {
                return (hot, Rule::AgedHot);
            }
            if asking == Heat::Hot && self.blocks(Heat::Hot) >= hot_target {
                return (hot, Rule::HotAtSize);
            }
        }
        match self.cheapest_cold() {
            Some(cold) => (cold, Rule::CheapestCold),
            None => (hot.expect("some block is closed"), Rule::NoCold),
        }
    }

    fn alloc_no(&self, log: u32) -> u64 {
        self.blocks[log as usize].alloc_no
    }

    /// Of the dead hot blocks the one allocated first.
    fn oldest_dead(&self) -> Option<Log> {
        let oldest = self.hot.iter(DEAD).min_by_key(|&b| self.alloc_no(b));
        oldest.map(Log)
    }

    /// The closed hot block with the lowest update time, of equal ones the oldest. Asked only while none is
    /// dead.
    fn least_recently_touched(&self) -> Option<Log> {
        let closed = |&b: &u32| self.blocks[b as usize].closed;
        let time = |b: u32| self.blocks[b as usize].update_time;
        let mut closed = self.hot.iter(TOUCHED).filter(closed).peekable();
        let lowest = time(*closed.peek()?);
        closed
            .take_while(|&b| time(b) == lowest)
            .min_by_key(|&b| self.alloc_no(b))
            .map(Log)
    }

    /// The closed cold block with the lowest degree, of equal ones the oldest.
    fn cheapest_cold(&mut self) -> Option<Log> {
        let blocks = &self.blocks;
        let cheapest = self.cold.first(0, |b| blocks[b as usize].alloc_no);
        cheapest.map(Log)
    }

    /// Checks everything against the tables of the hybrid.
    ///
    /// # Errors
    /// What does not agree.
    pub fn audit<F: Flash>(&self, hybrid: &Hybrid<Self>, flash: &F) -> Result<(), String> {
        let mut sizes = [Size::default(); 2];
        for (i, block) in self.blocks.iter().enumerate() {
            let log = Log(i as u32);
            let Some(heat) = block.heat else {
                continue;
            };
            if !hybrid.exists(log) || hybrid.owner(log).is_some() {
                return Err(format!("random log {i} is no shared log block"));
            }
            let size = &mut sizes[heat as usize];
            size.blocks += 1;
            size.valid += u64::from(hybrid.valid(log));
            size.programmed += u64::from(hybrid.written(flash, log));
            if block.closed != hybrid.is_full(flash, log) {
                return Err(format!("random log {i}: closed and full do not agree"));
            }
            if !block.closed && self.open(heat) != Some(log) {
                return Err(format!("random log {i} is open, but takes no page"));
            }
            if block.valid != hybrid.valid(log) {
                return Err(format!("random log {i} counts {} valid pages", block.valid));
            }
            self.audit_place(hybrid, log, heat, block)?;
        }
        for (mine, real) in self.sizes.iter().zip(sizes) {
            let (mine, real) = (
                (mine.blocks, mine.valid, mine.programmed),
                (real.blocks, real.valid, real.programmed),
            );
            if mine != real {
                return Err(format!("a partition counts {mine:?} of {real:?}"));
            }
        }
        let times = |list| {
            self.hot
                .iter(list)
                .map(|b| self.blocks[b as usize].update_time)
        };
        if !times(TOUCHED).is_sorted() {
            return Err("hot blocks are not in the order of their update times".into());
        }
        Ok(())
    }

    /// Checks the degree of a block and the list it is in.
    fn audit_place(
        &self,
        hybrid: &Hybrid<Self>,
        log: Log,
        heat: Heat,
        block: &Block,
    ) -> Result<(), String> {
        let valid = (0..self.pages_per_block).filter(|&p| hybrid.is_valid_at(log, p));
        let mut of: Vec<Lbn> = valid
            .map(|p| hybrid.split(hybrid.log_page(log, p)).0)
            .collect();
        of.sort_unstable();
        of.dedup();
        let degree = self.degrees.of(log);
        if heat == Heat::Cold && degree as usize != of.len() {
            let text = format!("random log {}: degree {degree} of {}", log.0, of.len());
            return Err(text);
        }
        let lists = match (heat, block.closed) {
            (Heat::Hot, true) if block.valid == 0 => (Some(DEAD), None),
            (Heat::Hot, _) => (Some(TOUCHED), None),
            (Heat::Cold, true) => (None, Some((0, degree))),
            (Heat::Cold, false) => (None, None),
        };
        if (self.hot.list_of(log.0), self.cold.bucket_of(log.0)) != lists {
            return Err(format!("random log {} is in the wrong list", log.0));
        }
        Ok(())
    }
}

impl Watch for Partitions {
    const MERGES_ALONE_WRITE_DATA: bool = true;

    fn found_page(&mut self, log: Log, position: u32, sequence: u64) {
        let at = self.page_index(log, position);
        self.write_no[at] = sequence;
    }

    #[inline]
    fn gained(&mut self, log: Log, lbn: Lbn) {
        let block = &mut self.blocks[log.index()];
        if let Some(heat) = block.heat {
            block.valid += 1;
            self.sizes[heat as usize].valid += 1;
            if heat == Heat::Cold {
                self.degrees.gained(log, lbn);
            }
        }
    }

    #[inline]
    fn lost(&mut self, log: Log, lbn: Lbn, why: Loss) {
        let block = &mut self.blocks[log.index()];
        let Some(heat) = block.heat else {
            return;
        };
        self.sizes[heat as usize].valid -= 1;
        block.valid -= 1;
        let touched = why != Loss::Moved;
        if touched {
            block.update_time = self.writes;
        }
        let (closed, dead) = (block.closed, block.valid == 0);
        match heat {
            Heat::Hot if closed && dead => self.hot.move_to_back(DEAD, log.0),
            Heat::Hot if touched => self.hot.move_to_back(TOUCHED, log.0),
            Heat::Hot => {}
            Heat::Cold => {
                let before = self.degrees.of(log);
                if self.degrees.lost(log, lbn) != before && closed {
                    self.file_cold(log);
                }
            }
        }
    }

    fn released(&mut self, log: Log) {
        let Some(heat) = self.heat(log) else {
            return;
        };
        debug_assert!(
            self.blocks[log.index()].closed,
            "an open block was reclaimed"
        );
        let size = &mut self.sizes[heat as usize];
        size.blocks -= 1;
        size.programmed -= u64::from(self.pages_per_block);
        self.hot.remove(log.0);
        self.cold.remove(log.0);
        self.blocks[log.index()] = OUTSIDE;
    }
}
