//! `last`: large writes to sequential log blocks, small ones to a random log buffer with a hot and a cold
//! partition.
//!
//! **Paper.** Lee, Shin, Kim, Kim, "LAST: Locality-Aware Sector Translation for NAND Flash Memory-Based
//! Storage Systems", SPEED 2008, section 3.
//!
//! **Rules.** docs/spec/last.md has every one of them, to the last counter.
//!
//! **RAM state.** Block map; the sequential log block of each logical block in the order of their last
//! writes; for the random log buffer a page map with the number of each page's write, and for each of its blocks the
//! partition, the age and the association degree (the merge cost table); the thresholds `k` and `H`.
//!
//! **Flash state.** Data blocks, written by merges only; sequential log blocks with pages at their own
//! offsets; random log blocks filled in order; optionally map blocks. OOB: LPN, sequence number, and the role,
//! which tells the three kinds of log block apart.
//!
//! **How it writes, reads, reclaims.** A page of a request longer than the threshold goes to the sequential
//! log block of its logical block while it lies above everything there. All else goes to the random log
//! buffer: to the hot partition if the page's last write to the buffer is less than `k` writes ago or lies in a
//! hot block, else to the cold one. Sequential log blocks are merged one by one, whole ones first. For the random
//! ones the order is: hot blocks that died, hot blocks long untouched, the hot partition's own oldest while it is
//! above its size, the cold block with the lowest degree. `k` and `H` follow the dead blocks and the
//! utilisation of the partitions. A read is one page read.
//!
//! **Recovery.** Block map from the map blocks or a full OOB scan; the kinds of log blocks from their roles;
//! newest sequence number per page, whose order also gives the write numbers. Thresholds and update times start
//! anew. Found log blocks take no more pages. A data block with a page that a power cut has spoilt is rebuilt.
//!
//! **Deviations and why.** The paper names neither starting values nor step sizes, and lets the partition
//! sizes follow from who gets a reclaimed block; here the asking partition gets it, and two rules of ours
//! keep the hot one at its size (otherwise a partition could starve). A page that does not fit its sequential
//! log block goes to the random log buffer, as LAST++ says. Hot-cold swapping for wear is only hinted at
//! in the paper and is left out.

mod partitions;
#[cfg(test)]
mod tests;

use crate::parts::budgets::log_budget;
use crate::parts::heat::Heat;
use crate::parts::hybrid::{FoundLog, Hybrid, HybridPlan, Log};
use crate::parts::logged::{LogPolicy, Logged};
use crate::parts::map_area::MapBlockOptions;
use floatgate_core::Refusal;
use floatgate_core::address::{DieLpn, Lbn};
use floatgate_core::flash::{Flash, Role, Slot};
use floatgate_core::ftl::{MountError, Run};
use floatgate_core::geometry::{Geometry, Space};
use floatgate_core::options;
use floatgate_core::report::{Observation, SchemeCounters, Table, bits_for};
use floatgate_core::state;
use partitions::{Partitions, Rule};

options! {
    /// Options of `last`.
    pub struct LastOptions {
        /// Log blocks of the whole device, sequential and random; at least 3 a die.
        log_blocks: Option<u32> ["blocks"] = None, shown "required", samples [1, 2, 2, 3, 3, 4], scope Device, setting LogBlocks;
        /// Those of them that take sequential writes; at least 1 a die, and 2 must remain.
        sequential_log_blocks: Option<u32> ["blocks"] = None, shown "a sixteenth of log_blocks, at least 1 a die", samples [1, 1, 2], scope Device;
        /// A request longer than this is sequential.
        sequential_threshold: u32 ["pages"] = 2, samples [1, 2, 3, 0, 4, 5];
        /// k at the start: a cold page is hot if written again within this many page writes to the random log buffer.
        hot_interval: Option<u64> ["page writes"] = None, shown "half the random log buffer", samples [1, 3, 100, 0, 30];
        /// One step of k.
        hot_interval_step: Option<u64> ["page writes"] = None, shown "pages of a block", samples [1, 3, 100, 0];
        /// H at the start: size of the hot partition, from 1 to all but one of the random log blocks.
        hot_blocks: Option<u32> ["blocks, die"] = None, shown "half the random log blocks", samples [1, 2];
        /// Reclaimed random log blocks between two adjustments of k and H.
        adjust_period: Option<u32> ["reclaims"] = None, shown "the random log blocks of a die", samples [1, 2, 3];
        /// Utilisation of the hot partition below which k shrinks.
        low_utilization: u32 ["1/1000"] = 500, samples [0, 900];
        /// A hot block without a write or an invalidation for longer than this is reclaimed.
        age_threshold: Option<u64> ["page writes"] = None, shown "pages of the random log buffer", samples [2, 10, 0, 12];
        ..map: MapBlockOptions;
    }
}

/// The list of sequential log blocks, least recently written first.
const SEQUENTIAL: usize = 0;

/// What an adjustment looks at.
#[derive(Clone, Copy, Default, Debug)]
struct Signs {
    dead_hot: u32,
    hot_utilisation: u64,
    cold_utilisation: u64,
}

state!(Signs {
    dead_hot,
    hot_utilisation,
    cold_utilisation
});

/// One instance of LAST.
pub type Last = Logged<LastPolicy>;

/// Which log block takes a page, and which one is merged.
#[derive(Debug)]
pub struct LastPolicy {
    h: Hybrid<Partitions>,
    sequential_blocks: u32,
    random_blocks: u32,
    sequential_threshold: u32,
    /// `k`.
    hot_interval: u64,
    hot_interval_step: u64,
    /// `k` is at most this: the pages of the random log buffer.
    hot_interval_max: u64,
    /// `H`.
    hot_blocks: u32,
    adjust_period: u32,
    low_utilization: u64,
    age_threshold: u64,
    /// Reclaims since the last adjustment.
    reclaims: u32,
    before: Signs,
    sequential_pages: u64,
    /// Host pages programmed in random log blocks by partition.
    random_pages: [u64; 2],
    adjustments: u64,
    reclaims_by_rule: [u64; Rule::COUNT],
    /// Valid pages in the victims of the random log buffer.
    victim_valid_pages: u64,
}

state!(LastPolicy {
    h, hot_interval, hot_blocks, reclaims, before, sequential_pages, random_pages, adjustments, reclaims_by_rule,
    victim_valid_pages,
} fixed {
    sequential_blocks, random_blocks, sequential_threshold, hot_interval_step, hot_interval_max, adjust_period,
    low_utilization, age_threshold,
});

/// Sequential ones of the log blocks of an instance, unless an option says otherwise.
fn default_sequential(log_blocks: u32) -> u32 {
    (log_blocks / 16).max(1)
}

/// Sequential log blocks of an instance with that many log blocks.
fn sequential_blocks(space: &Space, options: &LastOptions, log_blocks: u32) -> u32 {
    options.sequential_log_blocks.map_or_else(
        || default_sequential(log_blocks),
        |blocks| blocks / space.geometry.dies,
    )
}

impl LastPolicy {
    /// A page of a sequential request. Returns whether it could be placed; if not, it belongs in the random
    /// log buffer.
    #[inline]
    fn write_sequential<F: Flash>(
        &mut self,
        flash: &mut F,
        slot: Slot,
        lpn: DieLpn,
    ) -> Result<bool, F::Error> {
        let (lbn, offset) = self.h.split(lpn);
        let log = match self.h.owned(lbn) {
            Some(log) => log,
            None => {
                if self.h.lists.len(SEQUENTIAL) == self.sequential_blocks {
                    self.reclaim_sequential(flash)?;
                }
                let log = self.h.take_log(flash, 0, Some(lbn))?;
                self.h.lists.push_back(SEQUENTIAL, log.0);
                log
            }
        };
        if offset < self.h.written(flash, log) {
            return Ok(false);
        }
        self.h
            .write_at(flash, slot, log, offset, lpn, Role::LogSequential)?;
        self.h.lists.move_to_back(SEQUENTIAL, log.0);
        self.sequential_pages += 1;
        Ok(true)
    }

    /// Merges the least recently written sequential log block, of those that are valid throughout if there are
    /// any (they cost no copy).
    fn reclaim_sequential<F: Flash>(&mut self, flash: &mut F) -> Result<(), F::Error> {
        let pages = self.h.pages_per_block();
        let whole = |&log: &u32| self.h.valid(Log(log)) == pages;
        let lists = &self.h.lists;
        let victim = lists
            .iter(SEQUENTIAL)
            .find(whole)
            .or_else(|| lists.first(SEQUENTIAL));
        let victim = Log(victim.expect("at least one sequential log block"));
        let owner = self
            .h
            .owner(victim)
            .expect("a sequential log block has an owner");
        self.h.merge_aligned(flash, victim, owner)?;
        Ok(())
    }

    #[inline]
    fn write_random<F: Flash>(
        &mut self,
        flash: &mut F,
        slot: Slot,
        lpn: DieLpn,
    ) -> Result<(), F::Error> {
        loop {
            let heat = self.heat_of(lpn);
            let log = match self.h.watch.open(heat) {
                Some(log) => log,
                None if self.h.watch.in_use() < self.random_blocks => {
                    let log = self.h.take_log(flash, 0, None)?;
                    self.h.watch.take(log, heat);
                    log
                }
                // The merge may have moved the page, and k may have changed: judge it again.
                None => {
                    self.reclaim_random(flash, heat)?;
                    continue;
                }
            };
            let position = self.h.written(flash, log);
            self.random_pages[heat as usize] += 1;
            self.h.append(flash, slot, log, lpn, heat.role())?;
            self.h.watch.written(log, position);
            return Ok(());
        }
    }

    /// Where a page belongs, by the distance to its last write.
    #[inline]
    fn heat_of(&self, lpn: DieLpn) -> Heat {
        let Some(log) = self.h.newest_log(lpn) else {
            return Heat::Cold;
        };
        match self.h.watch.heat(log) {
            None => Heat::Cold,
            Some(Heat::Hot) => Heat::Hot,
            Some(Heat::Cold) => {
                let (_, position) = self.h.space().geometry.split(self.h.newest(lpn));
                if self.h.watch.writes_since(log, position) < self.hot_interval {
                    Heat::Hot
                } else {
                    Heat::Cold
                }
            }
        }
    }

    /// Wins a block of the random log buffer by a full merge.
    fn reclaim_random<F: Flash>(&mut self, flash: &mut F, asking: Heat) -> Result<(), F::Error> {
        let (victim, rule) = self
            .h
            .watch
            .victim(asking, self.hot_blocks, self.age_threshold);
        self.reclaims_by_rule[rule as usize] += 1;
        self.victim_valid_pages += u64::from(self.h.valid(victim));
        self.h.merge_full(flash, victim)?;
        self.reclaims += 1;
        if self.reclaims == self.adjust_period {
            self.reclaims = 0;
            self.adjust();
        }
        Ok(())
    }

    /// Lets `k` and `H` follow what happened since the last time.
    fn adjust(&mut self) {
        let now = Signs {
            dead_hot: self.h.watch.dead_hot(),
            hot_utilisation: self.h.watch.utilisation_permille(Heat::Hot),
            cold_utilisation: self.h.watch.utilisation_permille(Heat::Cold),
        };
        let before = std::mem::replace(&mut self.before, now);
        let fewer_dead = now.dead_hot < before.dead_hot;
        let mut shrunk = false;
        if now.dead_hot > before.dead_hot {
            self.hot_blocks -= 1;
        } else if fewer_dead && now.hot_utilisation > before.hot_utilisation {
            self.hot_blocks += 1;
        } else if fewer_dead && now.hot_utilisation < self.low_utilization {
            self.hot_interval = self.hot_interval.saturating_sub(self.hot_interval_step);
            shrunk = true;
        }
        if !shrunk && now.cold_utilisation < before.cold_utilisation {
            self.hot_interval = self.hot_interval.saturating_add(self.hot_interval_step);
        }
        self.clamp();
        self.adjustments += 1;
    }

    fn clamp(&mut self) {
        self.hot_blocks = self.hot_blocks.clamp(1, self.random_blocks - 1);
        self.hot_interval = self.hot_interval.clamp(1, self.hot_interval_max);
    }

    /// The sizes and thresholds of this moment.
    fn observe_state(&self, seen: &mut Observation) {
        let watch = &self.h.watch;
        seen.mean("hot_interval", self.hot_interval as f64);
        seen.mean("hot_blocks_target", f64::from(self.hot_blocks));
        seen.sum("hot_blocks", f64::from(watch.blocks(Heat::Hot)));
        seen.sum("cold_blocks", f64::from(watch.blocks(Heat::Cold)));
        seen.sum("dead_hot_blocks", f64::from(watch.dead_hot()));
        seen.mean("hot_utilisation", watch.utilisation(Heat::Hot));
        seen.mean("cold_utilisation", watch.utilisation(Heat::Cold));
        seen.mean("cold_degree", watch.mean_cold_degree());
        let sequential = self.h.lists.len(SEQUENTIAL);
        seen.sum("sequential_blocks", f64::from(sequential));
    }
}

impl LogPolicy for LastPolicy {
    const KEY: &'static str = "last";
    const TITLE: &'static str = "LAST";
    const SUMMARY: &'static str = "sequential log blocks, and random ones parted into hot and cold";
    const SOURCE: &'static str = "Lee et al., SPEED 2008";
    const TEXT: &'static str = include_str!("last.rs");
    type Options = LastOptions;
    type Watch = Partitions;

    fn plan(space: &Space, options: &LastOptions) -> Result<HybridPlan, Refusal> {
        const KEY: &str = "sequential_log_blocks";
        let log_blocks = log_budget(space, options.log_blocks, 3)?;
        if let Some(blocks) = options.sequential_log_blocks {
            space.share(KEY, blocks)?;
        }
        let sequential = sequential_blocks(space, options, log_blocks);
        if sequential == 0 {
            let text = format!("{KEY} = 0: at least 1 on each die");
            return Err(Refusal::new(KEY, text));
        }
        if sequential > log_blocks - 2 {
            let text = format!(
                "{KEY}: {sequential} of the {log_blocks} log blocks of a die, but at least 2 must remain for random writes"
            );
            return Err(Refusal::new(KEY, text));
        }
        if options.adjust_period == Some(0) {
            let text = "adjust_period = 0: at least 1 reclaim between two adjustments";
            return Err(Refusal::new("adjust_period", text.into()));
        }
        Ok(HybridPlan::new(log_blocks, 1, &options.map))
    }

    fn watch(space: &Space, plan: &HybridPlan, _: &LastOptions) -> Partitions {
        let pages = space.geometry.pages_per_block;
        Partitions::new(plan.log_slots, pages, space.logical_blocks())
    }

    fn new(h: Hybrid<Partitions>, options: &LastOptions) -> Self {
        let log_blocks = h.log_budget();
        let sequential_blocks = sequential_blocks(h.space(), options, log_blocks);
        let random_blocks = log_blocks - sequential_blocks;
        let pages = u64::from(h.pages_per_block());
        let random_pages = u64::from(random_blocks) * pages;
        let mut last = Self {
            h,
            sequential_blocks,
            random_blocks,
            sequential_threshold: options.sequential_threshold,
            hot_interval: options.hot_interval.unwrap_or(random_pages / 2),
            hot_interval_step: options.hot_interval_step.unwrap_or(pages),
            hot_interval_max: random_pages,
            hot_blocks: options.hot_blocks.unwrap_or(random_blocks / 2),
            adjust_period: options.adjust_period.unwrap_or(random_blocks),
            low_utilization: options.low_utilization.into(),
            age_threshold: options.age_threshold.unwrap_or(random_pages),
            reclaims: 0,
            before: Signs::default(),
            sequential_pages: 0,
            random_pages: [0; 2],
            adjustments: 0,
            reclaims_by_rule: [0; Rule::COUNT],
            victim_valid_pages: 0,
        };
        last.clamp();
        last
    }

    fn hybrid(&self) -> &Hybrid<Partitions> {
        &self.h
    }

    fn hybrid_mut(&mut self) -> &mut Hybrid<Partitions> {
        &mut self.h
    }

    /// The log blocks go where the roles of their pages say. There are never more of a kind than before the cut, because
    /// none becomes one of the other kind.
    fn mount_found<F: Flash>(
        &mut self,
        flash: &mut F,
        mut found: Vec<FoundLog>,
    ) -> Result<(), MountError<F::Error>> {
        for FoundLog { log, role, .. } in &found {
            if let Some(heat) = Heat::of_role(*role) {
                let valid = self.h.valid_pages(*log).map(|(_, _, lbn)| lbn);
                let valid: Vec<Lbn> = valid.collect();
                self.h.watch.claim(*log, heat, valid.into_iter());
            }
        }
        self.h.watch.number_writes();
        found.sort_unstable_by_key(|found| found.last);
        for FoundLog { log, role, .. } in found {
            if Heat::of_role(role).is_none() {
                let is_aligned = self.h.aligned_to(log).is_some();
                match is_aligned.then(|| self.h.claim(log)).flatten() {
                    Some(_) => self.h.lists.push_back(SEQUENTIAL, log.0),
                    None => self.h.merge_away(flash, log)?,
                }
            }
        }
        Ok(())
    }

    fn write_page<F: Flash>(
        &mut self,
        flash: &mut F,
        page: DieLpn,
        slot: Slot,
    ) -> Result<(), F::Error> {
        self.write(flash, &Run::page_at(page, slot))
    }

    #[inline]
    fn write<F: Flash>(&mut self, flash: &mut F, run: &Run<DieLpn>) -> Result<(), F::Error> {
        let sequential = run.request_pages > self.sequential_threshold;
        for (lpn, slot) in run.iter() {
            if !(sequential && self.write_sequential(flash, slot, lpn)?) {
                self.write_random(flash, slot, lpn)?;
            }
        }
        Ok(())
    }

    fn log_blocks(options: &LastOptions) -> u32 {
        options.log_blocks.unwrap_or(0)
    }

    fn tables(geometry: &Geometry, options: &LastOptions) -> Vec<Table> {
        let log_blocks = options.log_blocks.unwrap_or(0);
        let dies = geometry.dies;
        let sequential = options
            .sequential_log_blocks
            .unwrap_or_else(|| default_sequential(log_blocks / dies).saturating_mul(dies))
            .min(log_blocks);
        let pages = u64::from(geometry.pages_per_block);
        let random_pages = u64::from(log_blocks - sequential) * pages;
        vec![
            Table::sram("block map", geometry.logical_blocks().into(), 32),
            Table::sram("page map of the random log buffer", random_pages, 32),
            Table::sram("sequential log map", sequential.into(), 32),
            Table::sram("merge cost table", log_blocks.into(), bits_for(pages)),
        ]
    }

    fn own_ram_bytes(geometry: &Geometry, options: &LastOptions) -> u64 {
        let log_blocks = options.log_blocks.unwrap_or(0);
        Partitions::ram_bytes(geometry, log_blocks)
    }

    fn count(&self, counters: &mut SchemeCounters) {
        let merges = &self.h.merges;
        counters.extra("seq_pages", self.sequential_pages);
        counters.extra("cold_pages", self.random_pages[Heat::Cold as usize]);
        counters.extra("hot_pages", self.random_pages[Heat::Hot as usize]);
        counters.extra("log_reclaimed", merges.log_reclaimed);
        counters.extra("log_pages_used", merges.log_pages_used);
        counters.stat_sums(Rule::NAMES.into_iter().zip(self.reclaims_by_rule));
        counters.stat_sums([
            ("victim_valid_pages", self.victim_valid_pages),
            ("adjustments", self.adjustments),
        ]);
        counters.stats_of(|seen| self.observe_state(seen));
    }

    fn reset_own_counters(&mut self) {
        self.sequential_pages = 0;
        self.random_pages = [0; 2];
        self.adjustments = 0;
        self.reclaims_by_rule = Default::default();
        self.victim_valid_pages = 0;
    }

    fn observe(&self, seen: &mut Observation) {
        self.observe_state(seen);
        self.h.merges.observe(seen);
    }

    fn audit_own<F: Flash>(&self, flash: &F) -> Result<(), String> {
        self.h.watch.audit(&self.h, flash)?;
        let sequential = self.h.lists.len(SEQUENTIAL);
        let random = self.h.watch.in_use();
        if sequential > self.sequential_blocks || random > self.random_blocks {
            return Err(format!(
                "{sequential} sequential and {random} random log blocks, budgets {} and {}",
                self.sequential_blocks, self.random_blocks
            ));
        }
        if sequential + random != self.h.logs_in_use() {
            return Err("a log block is neither sequential nor random".into());
        }
        let k = 1..=self.hot_interval_max;
        if !k.contains(&self.hot_interval) || !(1..self.random_blocks).contains(&self.hot_blocks) {
            let (k, h) = (self.hot_interval, self.hot_blocks);
            return Err(format!("k = {k} or H = {h} is out of bounds"));
        }
        Ok(())
    }
}
