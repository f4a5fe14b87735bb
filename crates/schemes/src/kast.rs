//! `kast`: shared log blocks, each for a limited number of data blocks, so that the longest merge is bounded.
//!
//! **Paper.** Cho, Shin, Eom, "KAST: K-Associative Sector Translation for NAND Flash Memory in Real-Time
//! Systems", DATE 2009; described in LAST++ section 3 and BLogFTL section 2.2.
//!
//! **Rules.** docs/spec/kast.md has every one of them, to the last counter.
//!
//! **RAM state.** Block map; page map of all log pages; the sequential log blocks in the order of their last
//! programs; for each log block when it was taken and the list of logical blocks with a valid page in it; for
//! each logical block the random log block that may take its next page; two trees of winners that keep the
//! choice of a log block and of a victim short.
//!
//! **Flash state.** Data blocks, sequential log blocks (pages 0, 1, ... of their owner without a gap),
//! random log blocks filled in order, optionally map blocks. OOB: LPN, sequence number, role data or log.
//!
//! **How it writes, reads, reclaims.** A page goes to its own position of the data block if that is erased.
//! The next page of a run goes to the sequential log block of its logical block; a page that breaks the run
//! turns that block into a random one. Other pages go to the random log block that already serves their logical
//! block, page 0 of a new run to a fresh sequential log block, and everything else to a fresh random log
//! block while the budget lasts, then to the one with the fewest logical blocks below `k`. If there is
//! none, the random log block with the fewest logical blocks is merged, whether it is full or not. A full
//! sequential log block, or the one written longest ago when there are too many, becomes the data block
//! by a switch or partial merge. A read is one page read.
//!
//! **Recovery.** Full OOB scan, newest sequence number per page; aligned younger blocks of a logical block
//! may come back as sequential or random log blocks alike: full ones as sequential, the others as random.
//! Where trimmed pages that came back break the bound, the log block is merged. With map blocks only the log
//! blocks are read, and what of their pages lies in data blocks too; the map is then written anew.
//!
//! **Deviations and why.** A logical block counts for a log block only while it has a *valid* page there:
//! that is what a merge has to rebuild. Sequential and random log blocks share one budget, with a limit for the
//! sequential ones. The descriptions leave both open, as well as the victim choice.

use crate::parts::association::Associations;
use crate::parts::budgets::{hybrid_tables, log_budget};
use crate::parts::hybrid::{FoundLog, Hybrid, HybridPlan, Log};
use crate::parts::logged::{LogPolicy, Logged};
use crate::parts::map_area::MapBlockOptions;
use crate::parts::tournament::Tournament;
use floatgate_core::Refusal;
use floatgate_core::address::{DieLpn, Lbn};
use floatgate_core::flash::{Flash, Role, Slot};
use floatgate_core::ftl::MountError;
use floatgate_core::geometry::{Geometry, Space};
use floatgate_core::options;
use floatgate_core::report::{Combine, Observation, SchemeCounters, Table, bits_for};
use floatgate_core::state;

options! {
    /// Options of `kast`.
    pub struct KastOptions {
        /// Log blocks of the whole device, sequential and random ones together; at least 2 a die.
        log_blocks: Option<u32> ["blocks"] = None, shown "required", samples [1, 2, 2, 3, 3, 4], scope Device, setting LogBlocks;
        /// Most data blocks with valid pages in one random log block, at least 1.
        k: u32 ["data blocks"] = 4, samples [1, 2, 3, 64];
        /// Most sequential log blocks of a die at a time; at least one log block is left for random writes.
        sw_log_blocks: Option<u32> ["blocks, die"] = None, shown "a quarter of the die's log blocks, at least 1", samples [1, 2, 3];
        ..map: MapBlockOptions;
    }
}

/// The list of sequential log blocks, the one written longest ago first.
const SW: usize = 0;
/// The list of random log blocks.
const RW: usize = 1;

const NO_LOG: Log = Log(u32::MAX);

/// What the trees compare; the largest key wins, 0 is no candidate. Fewest logical blocks first, then the
/// smallest `pages`, then the earliest taken. Degrees and positions fit 16 bits: a block has at most 65,000 pages.
#[inline]
fn key(degree: u32, pages: u32, taken: u32) -> u64 {
    !(u64::from(degree) << 48 | u64::from(pages) << 32 | u64::from(taken))
}

/// One instance of KAST.
pub type Kast = Logged<KastPolicy>;

/// Which log block takes a page, and which one is merged.
#[derive(Debug)]
pub struct KastPolicy {
    h: Hybrid<Associations>,
    sw_log_blocks: u32,
    k: u32,
    /// By log block: its number in the order in which log blocks were taken.
    taken: Vec<u32>,
    next_taken: u32,
    /// By logical block: the random log block that took its last page. No other one can have both room and a
    /// valid page of the logical block.
    last_random: Vec<Log>,
    /// Random log blocks with room for one more logical block, and with all of them as victims. Both are
    /// brought up to date only when they are asked.
    open: Tournament,
    victims: Tournament,
    sw_to_rw: u64,
    max_association: u64,
    longest_merge: Cost,
}

state!(KastPolicy {
    h, taken, next_taken, last_random, open, victims, sw_to_rw, max_association, longest_merge,
} fixed { sw_log_blocks, k });

/// Copies and erases of a merge.
#[derive(Clone, Copy, Debug, Default)]
struct Cost {
    copies: u64,
    erases: u64,
}

state!(Cost { copies, erases });

impl KastPolicy {
    /// The run of `lbn` is broken: its sequential log block goes on as a random one, nothing is copied.
    fn turn_random(&mut self, sw: Log, lbn: Lbn) {
        self.h.disown(sw);
        self.h.lists.move_to_back(RW, sw.0);
        self.h.watch.touch(sw);
        self.last_random[lbn.index()] = sw;
        self.sw_to_rw += 1;
    }

    /// The random log block that has room and a valid page of `lbn` already.
    #[inline]
    fn random_log_of<F: Flash>(&self, flash: &F, lbn: Lbn) -> Option<Log> {
        let log = self.last_random[lbn.index()];
        let serves = log != NO_LOG
            && self.h.lists.list_of(log.0) == Some(RW)
            && !self.h.is_full(flash, log)
            && self.h.watch.is_associated(log, lbn);
        serves.then_some(log)
    }

    /// Merges what stands in the way of a new sequential log block. Returns whether something did, after
    /// which the page write starts again.
    fn make_room_for_run<F: Flash>(&mut self, flash: &mut F) -> Result<bool, F::Error> {
        if self.h.lists.len(SW) == self.sw_log_blocks {
            let oldest = Log(self.h.lists.first(SW).expect("the limit is at least one"));
            self.merge(flash, oldest)?;
            return Ok(true);
        }
        if self.h.logs_in_use() == self.h.log_budget() {
            self.merge_random_victim(flash)?;
            return Ok(true);
        }
        Ok(false)
    }

    /// The random log block that takes a page of a logical block which none serves yet; `None` if a merge
    /// had to come first, after which the page write starts again.
    fn random_log<F: Flash>(&mut self, flash: &mut F) -> Result<Option<Log>, F::Error> {
        if self.h.logs_in_use() < self.h.log_budget() {
            return self.take_log(flash, RW, None).map(Some);
        }
        self.update_trees(flash);
        if let Some(log) = self.open.first() {
            return Ok(Some(Log(log)));
        }
        self.merge_random_victim(flash)?;
        Ok(None)
    }

    fn take_log<F: Flash>(
        &mut self,
        flash: &mut F,
        list: usize,
        owner: Option<Lbn>,
    ) -> Result<Log, F::Error> {
        let log = self.h.take_log(flash, 0, owner)?;
        self.number(log);
        self.h.lists.push_back(list, log.0);
        Ok(log)
    }

    fn number(&mut self, log: Log) {
        if self.next_taken == u32::MAX {
            self.renumber();
        }
        self.taken[log.index()] = self.next_taken;
        self.next_taken += 1;
    }

    /// Numbers the log blocks anew from 0, in the same order, after four thousand million of them.
    #[cold]
    fn renumber(&mut self) {
        let mut logs: Vec<Log> = [SW, RW]
            .into_iter()
            .flat_map(|list| self.h.lists.iter(list).map(Log))
            .collect();
        logs.sort_unstable_by_key(|log| self.taken[log.index()]);
        self.next_taken = 0;
        for log in logs {
            self.taken[log.index()] = self.next_taken;
            self.next_taken += 1;
            self.h.watch.touch(log);
        }
    }

    fn update_trees<F: Flash>(&mut self, flash: &F) {
        while let Some(log) = self.h.watch.next_touched() {
            let (open, victim) = self.keys(flash, log);
            self.open.set(log.0, open);
            self.victims.set(log.0, victim);
        }
    }

    /// The keys of a log block as one with room, and as a victim.
    fn keys<F: Flash>(&self, flash: &F, log: Log) -> (u64, u64) {
        if self.h.lists.list_of(log.0) != Some(RW) {
            return (0, 0);
        }
        let degree = self.h.watch.degree(log);
        let (written, pages) = (self.h.written(flash, log), self.h.pages_per_block());
        let taken = self.taken[log.index()];
        let is_open = written < pages && degree < self.k;
        let open = if is_open {
            key(degree, written, taken)
        } else {
            0
        };
        (open, key(degree, pages - written, taken))
    }

    fn merge_random_victim<F: Flash>(&mut self, flash: &mut F) -> Result<(), F::Error> {
        self.update_trees(flash);
        let victim = self.victims.first().map(Log);
        let victim = victim.expect("sequential log blocks never take the whole budget");
        let degree = u64::from(self.h.watch.degree(victim));
        self.max_association = self.max_association.max(degree);
        self.merge(flash, victim)
    }

    /// Merges a log block of either kind.
    fn merge<F: Flash>(&mut self, flash: &mut F, log: Log) -> Result<(), F::Error> {
        let before = self.cost_so_far();
        match self.h.owner(log) {
            Some(lbn) => self.h.merge_aligned(flash, log, lbn)?,
            None => self.h.merge_full(flash, log)?,
        };
        let after = self.cost_so_far();
        let longest = &mut self.longest_merge;
        longest.copies = longest.copies.max(after.copies - before.copies);
        longest.erases = longest.erases.max(after.erases - before.erases);
        Ok(())
    }

    fn cost_so_far(&self) -> Cost {
        let merges = &self.h.merges;
        Cost {
            copies: merges.copies_partial + merges.copies_full,
            erases: merges.erases_switch
                + merges.erases_partial
                + merges.erases_full
                + merges.erases_dead,
        }
    }

    fn random_logs(&self) -> impl Iterator<Item = Log> + '_ {
        self.h.lists.iter(RW).map(Log)
    }

    fn audit_log<F: Flash>(&self, flash: &F, log: Log) -> Result<(), String> {
        let mut valid = std::collections::BTreeMap::<Lbn, u32>::new();
        let written = self.h.written(flash, log);
        for position in (0..written).filter(|&i| self.h.is_valid_at(log, i)) {
            *valid
                .entry(self.h.split(self.h.log_page(log, position)).0)
                .or_default() += 1;
        }
        let noted: std::collections::BTreeMap<Lbn, u32> = self.h.watch.of(log).collect();
        if noted != valid {
            return Err(format!(
                "log {} holds pages of {valid:?}, noted are {noted:?}",
                log.0
            ));
        }
        if valid.len() > self.k as usize {
            return Err(format!(
                "log {} serves {} logical blocks, k = {}",
                log.0,
                valid.len(),
                self.k
            ));
        }
        let random = self.h.lists.list_of(log.0) == Some(RW);
        match self.h.owner(log) {
            Some(lbn)
                if !random && self.h.is_aligned(log, lbn) && self.h.owned(lbn) == Some(log) =>
            {
                Ok(())
            }
            None if random && written < self.h.pages_per_block() => {
                let strays = |lbn: &&Lbn| self.last_random[lbn.index()] != log;
                match valid.keys().find(strays) {
                    Some(lbn) => Err(format!(
                        "log {} has room for logical block {}, but is not the one",
                        log.0, lbn.0
                    )),
                    None => Ok(()),
                }
            }
            None if random => Ok(()),
            owner => Err(format!(
                "log {} of {owner:?} is in the wrong list or not aligned",
                log.0
            )),
        }
    }

    /// Whether the trees name the log blocks that a scan would.
    fn audit_trees<F: Flash>(&self, flash: &F) -> Result<(), String> {
        let (mut open, mut victims, mut seen) = (
            self.open.clone(),
            self.victims.clone(),
            self.h.watch.clone(),
        );
        while let Some(log) = seen.next_touched() {
            let keys = self.keys(flash, log);
            open.set(log.0, keys.0);
            victims.set(log.0, keys.1);
        }
        let facts = |log: Log| {
            let written = self.h.written(flash, log);
            (
                self.h.watch.degree(log),
                written,
                self.taken[log.index()],
                log.0,
            )
        };
        let has_room =
            |&log: &Log| !self.h.is_full(flash, log) && self.h.watch.degree(log) < self.k;
        let best_open = self.random_logs().filter(has_room).map(facts).min();
        let best_victim = self.random_logs().map(facts);
        let best_victim =
            best_victim.min_by_key(|&(degree, written, taken, _)| (degree, !written, taken));
        let scan = (best_open.map(|f| f.3), best_victim.map(|f| f.3));
        if (open.first(), victims.first()) != scan {
            return Err(format!(
                "the trees name {:?} and {:?}, a scan {scan:?}",
                open.first(),
                victims.first()
            ));
        }
        Ok(())
    }
}

/// Most sequential log blocks of a die with that many log blocks.
fn sw_log_blocks(options: &KastOptions, log_blocks: u32) -> u32 {
    options.sw_log_blocks.unwrap_or((log_blocks / 4).max(1))
}

/// Most logical blocks a log block can serve: `k`, but never more than it has pages.
fn bound(geometry: &Geometry, options: &KastOptions) -> u32 {
    options.k.min(geometry.pages_per_block)
}

impl LogPolicy for KastPolicy {
    const KEY: &'static str = "kast";
    const TITLE: &'static str = "KAST";
    const SUMMARY: &'static str = "shared log blocks, each for at most K data blocks";
    const SOURCE: &'static str = "Cho, Shin, Eom, DATE 2009";
    const TEXT: &'static str = include_str!("kast.rs");
    type Options = KastOptions;
    type Watch = Associations;

    fn plan(space: &Space, options: &KastOptions) -> Result<HybridPlan, Refusal> {
        let log_blocks = log_budget(space, options.log_blocks, 2)?;
        if options.k == 0 {
            let text = "k = 0: a log block serves at least 1 data block".into();
            return Err(Refusal::new("k", text));
        }
        let sw_log_blocks = sw_log_blocks(options, log_blocks);
        if !(1..log_blocks).contains(&sw_log_blocks) {
            let text = format!(
                "sw_log_blocks = {sw_log_blocks}: from 1 to {} with {log_blocks} log blocks a die",
                log_blocks - 1
            );
            return Err(Refusal::new("sw_log_blocks", text));
        }
        Ok(HybridPlan::new(log_blocks, 2, &options.map))
    }

    fn watch(space: &Space, plan: &HybridPlan, options: &KastOptions) -> Associations {
        Associations::new(plan.log_blocks, bound(&space.geometry, options))
    }

    /// Trimmed pages that come back can make more associations than `k`.
    fn watch_for_recovery(space: &Space, plan: &HybridPlan, _: &KastOptions) -> Associations {
        Associations::new(plan.log_blocks, space.geometry.pages_per_block)
    }

    fn new(h: Hybrid<Associations>, options: &KastOptions) -> Self {
        let log_blocks = h.log_budget();
        Self {
            last_random: vec![NO_LOG; h.space().logical_blocks() as usize],
            h,
            sw_log_blocks: sw_log_blocks(options, log_blocks),
            k: options.k,
            taken: vec![0; log_blocks as usize],
            next_taken: 0,
            open: Tournament::new(log_blocks as usize),
            victims: Tournament::new(log_blocks as usize),
            sw_to_rw: 0,
            max_association: 0,
            longest_merge: Cost::default(),
        }
    }

    fn hybrid(&self) -> &Hybrid<Associations> {
        &self.h
    }

    fn hybrid_mut(&mut self) -> &mut Hybrid<Associations> {
        &mut self.h
    }

    /// Log blocks without a hole may become data blocks and come back as sequential ones, the youngest first; the
    /// others are random ones. Those with too many associations are merged.
    fn mount_found<F: Flash>(
        &mut self,
        flash: &mut F,
        found: Vec<FoundLog>,
    ) -> Result<(), MountError<F::Error>> {
        let pages = self.h.pages_per_block();
        for log in found.iter().map(|found| found.log) {
            self.number(log);
        }
        let mut random = Vec::with_capacity(found.len());
        let mut sequential = Vec::with_capacity(self.sw_log_blocks as usize);
        for log in found.iter().rev().map(|found| found.log) {
            let may_switch = self.h.aligned_to(log).is_some()
                && flash.ledger().programmed_pages(self.h.log_block(log)) == pages
                && sequential.len() < self.sw_log_blocks as usize;
            if may_switch && self.h.claim(log).is_some() {
                sequential.push(log);
            } else {
                random.push(log);
            }
        }
        for log in sequential.into_iter().rev() {
            self.h.lists.push_back(SW, log.0);
        }
        for log in random.into_iter().rev() {
            self.h.lists.push_back(RW, log.0);
            if self.h.watch.degree(log) > self.k {
                self.h.merge_away(flash, log)?;
            }
        }
        let bound = self.k.min(pages);
        self.h.watch = std::mem::take(&mut self.h.watch).bounded(bound);
        Ok(())
    }

    fn write_page<F: Flash>(
        &mut self,
        flash: &mut F,
        lpn: DieLpn,
        slot: Slot,
    ) -> Result<(), F::Error> {
        let (lbn, offset) = self.h.split(lpn);
        while !self.h.write_to_data(flash, slot, lpn)? {
            if let Some(sw) = self.h.owned(lbn) {
                let next = self.h.written(flash, sw);
                if next == self.h.pages_per_block() {
                    self.merge(flash, sw)?;
                    continue;
                }
                if next == offset {
                    self.h.append(flash, slot, sw, lpn, Role::Log)?;
                    self.h.lists.move_to_back(SW, sw.0);
                    return Ok(());
                }
                self.turn_random(sw, lbn);
            }
            if let Some(log) = self.random_log_of(flash, lbn) {
                return self.h.append(flash, slot, log, lpn, Role::Log);
            }
            if offset == 0 {
                if self.make_room_for_run(flash)? {
                    continue;
                }
                let sw = self.take_log(flash, SW, Some(lbn))?;
                return self.h.append(flash, slot, sw, lpn, Role::Log);
            }
            if let Some(log) = self.random_log(flash)? {
                self.last_random[lbn.index()] = log;
                return self.h.append(flash, slot, log, lpn, Role::Log);
            }
        }
        Ok(())
    }

    fn log_blocks(options: &KastOptions) -> u32 {
        options.log_blocks.unwrap_or(0)
    }

    fn tables(geometry: &Geometry, options: &KastOptions) -> Vec<Table> {
        let log_blocks = options.log_blocks.unwrap_or(0);
        let blocks = u64::from(geometry.logical_blocks());
        // `k` has no upper limit, the number of bits has.
        let entries = u64::from(log_blocks) * u64::from(options.k);
        let entries = entries.min(u64::MAX / 64);
        let mut tables = hybrid_tables(geometry, log_blocks);
        tables.push(Table::sram("associated blocks", entries, bits_for(blocks)));
        tables
    }

    fn own_ram_bytes(geometry: &Geometry, options: &KastOptions) -> u64 {
        let log_blocks = options.log_blocks.unwrap_or(0);
        Associations::ram_bytes(log_blocks, bound(geometry, options))
            + 4 * u64::from(geometry.logical_blocks())
            + 68 * u64::from(log_blocks)
    }

    fn count(&self, counters: &mut SchemeCounters) {
        counters.extra("sw_to_rw", self.sw_to_rw);
        counters.extra_max("max_association", self.max_association);
        let longest = self.longest_merge;
        counters.stat("longest_merge_copies", longest.copies as f64, Combine::Max);
        counters.stat("longest_merge_erases", longest.erases as f64, Combine::Max);
    }

    fn reset_own_counters(&mut self) {
        self.sw_to_rw = 0;
        self.max_association = 0;
        self.longest_merge = Cost::default();
    }

    fn observe(&self, seen: &mut Observation) {
        let degrees = || self.random_logs().map(|log| self.h.watch.degree(log));
        let random = self.h.lists.len(RW);
        let mean = f64::from(degrees().sum::<u32>()) / f64::from(random.max(1));
        seen.sum("sw_log_blocks", f64::from(self.h.lists.len(SW)));
        seen.sum("rw_log_blocks", f64::from(random));
        seen.mean("association_mean", mean);
        seen.max("association_max", f64::from(degrees().max().unwrap_or(0)));
        seen.sum("sw_to_rw", self.sw_to_rw as f64);
    }

    fn audit_own<F: Flash>(&self, flash: &F) -> Result<(), String> {
        let (sw, rw) = (self.h.lists.len(SW), self.h.lists.len(RW));
        if sw > self.sw_log_blocks || sw + rw != self.h.logs_in_use() {
            return Err(format!(
                "{sw} sequential (at most {}) and {rw} random of {} log blocks",
                self.sw_log_blocks,
                self.h.logs_in_use()
            ));
        }
        let mut logs = self.h.lists.iter(SW).chain(self.h.lists.iter(RW));
        logs.try_for_each(|log| self.audit_log(flash, Log(log)))?;
        self.audit_trees(flash)
    }
}

#[cfg(test)]
mod tests;
