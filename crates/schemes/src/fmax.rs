//! `fmax`: a replacement block for a data block that is rewritten, filled in order and folded as a whole.
//!
//! **Paper.** Ban, "Flash file system optimized for page-mode flash technologies", US patent 5,937,425,
//! 1999; in the form that FASTer (SNAPI 2010, sections II-B and V) takes as its baseline: at most one
//! replacement block for a data block.
//!
//! **Rules.** docs/spec/fmax.md has every one of them, to the last counter.
//!
//! **RAM state.** Block map; for each replacement block its logical block, the page map of its positions
//! (`lookup = ram`), and its place in the victim order.
//!
//! **Flash state.** Data blocks, at most `log_blocks` replacement blocks filled strictly in order, optionally
//! map blocks. OOB: LPN, sequence number, role data or log.
//!
//! **How it writes, reads, reclaims.** A page goes to its own position of the data block if that is
//! erased, else to the first free position of the logical block's replacement block. A full replacement
//! block, or the victim when all are in use, is folded: all live pages of the logical block are copied to a
//! new block, old data block and replacement block are erased. A read is one page read; with `lookup = oob`
//! it is preceded by a search through the OOBs of the replacement block, newest first.
//!
//! **Recovery.** Full OOB scan, newest sequence number per page; of two blocks of one logical block the
//! older is the data block, unless the younger is a rebuild. Found log blocks take no more pages. With map
//! blocks only the log blocks are read, and what of their pages lies in data blocks too; the map is then written anew.
//!
//! **Deviations and why.** ANAND's form of the patent (fixed offsets, chains of replacement blocks) is left
//! out: FASTer compares with this one. The patent leaves the victim open: `fifo` is the default. With
//! `lookup = oob` the page map is kept all the same, and only the reads of the search are made:
//! the result is the same, and no fold needs a second table. `switch_merge` is an addition, to tell what
//! BAST's merges of aligned blocks are worth.

use crate::parts::budgets::{hybrid_tables, log_budget};
use crate::parts::hybrid::{FoundLog, Hybrid, HybridPlan, Log};
use crate::parts::logged::{LogPolicy, Logged};
use crate::parts::map_area::MapBlockOptions;
use crate::parts::tournament::Tournament;
use floatgate_core::Refusal;
use floatgate_core::address::{DieLpn, Lbn};
use floatgate_core::flash::{Cause, Flash, Role, Slot};
use floatgate_core::ftl::MountError;
use floatgate_core::geometry::{Geometry, Space};
use floatgate_core::report::{Combine, Observation, SchemeCounters, Table, bits_for};
use floatgate_core::state;
use floatgate_core::{choice, options};

choice! {
    /// Which replacement block is folded when none is left.
    pub enum Victim {
        /// The one taken earliest.
        Fifo = "fifo",
        /// The one whose last program lies farthest back.
        Lru = "lru",
        /// The one with the most programmed positions.
        Fullest = "fullest",
    }
}

choice! {
    /// How a page is found in a replacement block.
    pub enum Lookup {
        /// By a page map in memory.
        Ram = "ram",
        /// By reading OOBs from the last programmed position down.
        Oob = "oob",
    }
}

options! {
    /// Options of `fmax`.
    pub struct FmaxOptions {
        /// Replacement blocks of the whole device, divided by the dies; at least 1 a die.
        log_blocks: Option<u32> ["blocks"] = None, shown "required", samples [1, 2, 2, 3, 3, 4], scope Device, setting LogBlocks;
        /// Which replacement block is folded when none is left.
        victim: Victim [""] = Victim::Fifo;
        /// How a page is found in a replacement block: by a map in memory, or by reading OOBs.
        lookup: Lookup [""] = Lookup::Ram;
        /// Whether an aligned replacement block may become the data block instead of being folded.
        switch_merge: bool [""] = false;
        ..map: MapBlockOptions;
    }
}

/// The list of replacement blocks: in order of allocation, or of their last program (`lru`).
const BLOCKS: usize = 0;

/// Replacement blocks taken since the start; fits the low 48 bits of a key of [`FmaxPolicy::fullest`].
const TAKEN_MAX: u64 = (1 << 48) - 1;

/// One instance of FMAX.
pub type Fmax = Logged<FmaxPolicy>;

/// Which log block takes a page, and which one is merged.
#[derive(Debug)]
pub struct FmaxPolicy {
    h: Hybrid,
    options: FmaxOptions,
    /// `victim = fullest`: programmed positions above, blocks taken later below.
    fullest: Tournament,
    /// The low half of each replacement block's key there.
    age: Vec<u64>,
    taken: u64,
    /// Programmed positions of all replacement blocks.
    pages_in_use: u32,
    /// Logical blocks rebuilt by the latest full merge.
    association: u32,
    oob_reads_search: u64,
    oob_reads_fold: u64,
}

state!(FmaxPolicy {
    h, fullest, age, taken, pages_in_use, association, oob_reads_search, oob_reads_fold,
} fixed { options });

impl FmaxPolicy {
    fn take<F: Flash>(&mut self, flash: &mut F, lbn: Lbn) -> Result<Log, F::Error> {
        let block = self.h.take_log(flash, 0, Some(lbn))?;
        self.h.lists.push_back(BLOCKS, block.0);
        self.note_taken(block);
        Ok(block)
    }

    fn note_taken(&mut self, block: Log) {
        self.age[block.index()] = TAKEN_MAX - self.taken;
        self.taken += 1;
    }

    #[inline]
    fn note_program<F: Flash>(&mut self, flash: &F, block: Log) {
        self.pages_in_use += 1;
        match self.options.victim {
            Victim::Fifo => {}
            Victim::Lru => self.h.lists.move_to_back(BLOCKS, block.0),
            Victim::Fullest => self.note_fullness(flash, block),
        }
    }

    fn note_fullness<F: Flash>(&mut self, flash: &F, block: Log) {
        let programmed = u64::from(self.h.written(flash, block));
        let key = programmed << 48 | self.age[block.index()];
        self.fullest.set(block.0, key);
    }

    fn victim(&self) -> Log {
        let victim = match self.options.victim {
            Victim::Fifo | Victim::Lru => self.h.lists.first(BLOCKS),
            Victim::Fullest => self.fullest.first(),
        };
        Log(victim.expect("the budget is at least one block"))
    }

    /// Folds `lbn` with its replacement block.
    fn fold<F: Flash>(&mut self, flash: &mut F, block: Log, lbn: Lbn) -> Result<(), F::Error> {
        let programmed = self.h.written(flash, block);
        if self.options.lookup == Lookup::Oob {
            self.oob_reads_fold += u64::from(programmed);
            self.search(flash, block, 0)?;
        }
        self.pages_in_use -= programmed;
        if self.options.victim == Victim::Fullest {
            self.fullest.set(block.0, 0);
        }
        let before = self.h.merges.full_merge_associated;
        if self.options.switch_merge && self.h.is_aligned(block, lbn) {
            self.h.merge_aligned(flash, block, lbn)?;
        } else {
            self.h.merge_full(flash, block)?;
        }
        let rebuilt = self.h.merges.full_merge_associated - before;
        if rebuilt > 0 {
            self.association = rebuilt as u32;
        }
        Ok(())
    }

    /// Reads the OOBs of a replacement block from its last programmed position down to `lowest`; done
    /// when the last of them is.
    fn search<F: Flash>(
        &mut self,
        flash: &mut F,
        block: Log,
        lowest: u32,
    ) -> Result<F::Token, F::Error> {
        let pbn = self.h.log_block(block);
        let mut done = F::Token::default();
        for position in (lowest..self.h.written(flash, block)).rev() {
            let at = flash.ledger().geometry().ppn(pbn, position);
            let (_, read) = flash.read_oob(at, Cause::Map, F::Token::default())?;
            done = flash.join(done, read);
        }
        Ok(done)
    }
}

impl LogPolicy for FmaxPolicy {
    const KEY: &'static str = "fmax";
    const TITLE: &'static str = "FMAX";
    const SUMMARY: &'static str =
        "a replacement block for each rewritten data block, folded as a whole";
    const SOURCE: &'static str = "Ban, US patent 5,937,425, 1999";
    const TEXT: &'static str = include_str!("fmax.rs");
    type Options = FmaxOptions;
    type Watch = ();

    fn plan(space: &Space, options: &FmaxOptions) -> Result<HybridPlan, Refusal> {
        let log_blocks = log_budget(space, options.log_blocks, 1)?;
        Ok(HybridPlan::new(log_blocks, 1, &options.map))
    }

    fn watch(_: &Space, _: &HybridPlan, _: &FmaxOptions) {}

    fn new(h: Hybrid, options: &FmaxOptions) -> Self {
        let blocks = h.log_budget() as usize;
        let candidates = match options.victim {
            Victim::Fullest => blocks,
            Victim::Fifo | Victim::Lru => 0,
        };
        Self {
            h,
            options: options.clone(),
            fullest: Tournament::new(candidates),
            age: vec![0; blocks],
            taken: 0,
            pages_in_use: 0,
            association: 0,
            oob_reads_search: 0,
            oob_reads_fold: 0,
        }
    }

    fn hybrid(&self) -> &Hybrid {
        &self.h
    }

    fn hybrid_mut(&mut self) -> &mut Hybrid {
        &mut self.h
    }

    fn mount_found<F: Flash>(
        &mut self,
        flash: &mut F,
        mut found: Vec<FoundLog>,
    ) -> Result<(), MountError<F::Error>> {
        if self.options.victim == Victim::Lru {
            found.sort_unstable_by_key(|found| found.last);
        }
        for block in found.into_iter().map(|found| found.log) {
            if self.h.claim(block).is_none() {
                self.h.merge_away(flash, block)?;
                continue;
            }
            self.h.lists.push_back(BLOCKS, block.0);
            self.note_taken(block);
            self.pages_in_use += self.h.written(flash, block);
            if self.options.victim == Victim::Fullest {
                self.note_fullness(flash, block);
            }
        }
        Ok(())
    }

    fn write_page<F: Flash>(
        &mut self,
        flash: &mut F,
        lpn: DieLpn,
        slot: Slot,
    ) -> Result<(), F::Error> {
        let (lbn, _) = self.h.split(lpn);
        while !self.h.write_to_data(flash, slot, lpn)? {
            let block = match self.h.owned(lbn) {
                Some(block) if self.h.is_full(flash, block) => {
                    self.fold(flash, block, lbn)?;
                    continue;
                }
                Some(block) => block,
                None if self.h.logs_in_use() == self.h.log_budget() => {
                    let victim = self.victim();
                    let of = self.h.owner(victim);
                    self.fold(flash, victim, of.expect("it replaces a data block"))?;
                    continue;
                }
                None => self.take(flash, lbn)?,
            };
            self.h.append(flash, slot, block, lpn, Role::Log)?;
            self.note_program(flash, block);
            return Ok(());
        }
        Ok(())
    }

    fn read_page<F: Flash>(
        &mut self,
        flash: &mut F,
        lpn: DieLpn,
        slot: Slot,
    ) -> Result<(), F::Error> {
        let at = self.h.newest(lpn);
        let (lbn, _) = self.h.split(lpn);
        let found = match self.h.owned(lbn) {
            Some(block) if self.options.lookup == Lookup::Oob && at.is_some() => {
                let (pbn, position) = flash.ledger().geometry().split(at);
                let lowest = if pbn == self.h.log_block(block) {
                    position
                } else {
                    0
                };
                self.oob_reads_search += u64::from(self.h.written(flash, block) - lowest);
                self.search(flash, block, lowest)?
            }
            _ => F::Token::default(),
        };
        self.h.read_after(flash, slot, lpn, found)
    }

    fn log_blocks(options: &FmaxOptions) -> u32 {
        options.log_blocks.unwrap_or(0)
    }

    fn tables(geometry: &Geometry, options: &FmaxOptions) -> Vec<Table> {
        let log_blocks = options.log_blocks.unwrap_or(0);
        let mut tables = hybrid_tables(geometry, log_blocks);
        if options.lookup == Lookup::Oob {
            // Only which block replaces which: the positions are in the OOBs.
            let bits = bits_for(u64::from(geometry.logical_blocks()));
            tables.truncate(1);
            tables.push(Table::sram(
                "replacement blocks",
                u64::from(log_blocks),
                2 * bits,
            ));
        }
        tables
    }

    fn own_ram_bytes(_: &Geometry, options: &FmaxOptions) -> u64 {
        let blocks = u64::from(Self::log_blocks(options));
        let tree = match options.victim {
            Victim::Fullest => 16 * blocks.next_power_of_two(),
            Victim::Fifo | Victim::Lru => 0,
        };
        8 * blocks + tree
    }

    fn count(&self, counters: &mut SchemeCounters) {
        let (search, fold) = (self.oob_reads_search as f64, self.oob_reads_fold as f64);
        counters.stat("oob_reads_search", search, Combine::Sum);
        counters.stat("oob_reads_fold", fold, Combine::Sum);
    }

    fn reset_own_counters(&mut self) {
        self.oob_reads_search = 0;
        self.oob_reads_fold = 0;
    }

    fn observe(&self, seen: &mut Observation) {
        let pages = self.h.pages_per_block();
        let utilisation = self.h.merges.log_block_utilisation(pages);
        seen.sum("replacement_blocks", self.h.logs_in_use().into());
        seen.sum("replacement_pages", self.pages_in_use.into());
        seen.mean("association", self.association.into());
        seen.mean("log_block_utilisation", utilisation);
        seen.sum("oob_reads_search", self.oob_reads_search as f64);
        seen.sum("oob_reads_fold", self.oob_reads_fold as f64);
    }

    fn audit_own<F: Flash>(&self, flash: &F) -> Result<(), String> {
        let blocks = || self.h.lists.iter(BLOCKS).map(Log);
        if self.h.lists.len(BLOCKS) != self.h.logs_in_use() {
            return Err("a replacement block is in no victim order".into());
        }
        if blocks().any(|block| self.h.owner(block).is_none()) {
            return Err("a replacement block replaces nothing".into());
        }
        let programmed: u32 = blocks().map(|b| self.h.written(flash, b)).sum();
        if programmed != self.pages_in_use {
            return Err(format!(
                "{programmed} positions of replacement blocks are programmed, {} are counted",
                self.pages_in_use
            ));
        }
        if self.h.free_blocks(0) == 0 {
            return Err("the merge reserve is gone".into());
        }
        if self.options.victim == Victim::Fullest && self.h.logs_in_use() > 0 {
            let rank = |b: &Log| (self.h.written(flash, *b), self.age[b.index()]);
            if blocks().max_by_key(rank) != Some(self.victim()) {
                return Err("the victim is not the fullest replacement block".into());
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
