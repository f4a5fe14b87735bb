//! `faster`: FAST whose log pages get a second chance before they are merged, and whose cold pages are
//! merged one by one from an isolation area.
//!
//! **Paper.** Lim, Lee, Moon, "FASTer FTL for Enterprise-Class Flash Memory SSDs", SNAPI 2010: second chance
//! (section IV-A), isolation area and progressive merge (IV-B), evaluation (V). For small, skewed, random
//! writes.
//!
//! **Rules.** docs/spec/faster.md has every one of them, to the last counter.
//!
//! **RAM state.** Block map; page map of all log pages; the queue of full log blocks in the order in which
//! they became full; the open block for host pages, the open block for second-chance copies, the isolation
//! block; for each log block which of the three kinds it is.
//!
//! **Flash state.** Data blocks, log blocks filled in order (host pages and second-chance pages never in the
//! same block), one isolation block, optionally map blocks. OOB: LPN, sequence number, and a role that tells
//! the kind of log block.
//!
//! **How it writes, reads, reclaims.** A page goes to its own position of the data block if that is
//! erased, else to the open host block. When the log is used up the oldest full block is reclaimed: the valid
//! pages of a host block are carried into the chance block, those of a chance block are cold and move to
//! the isolation block. After every page that the host writes, the oldest cold pages are merged, one logical
//! block each. A read is one page read.
//!
//! **Recovery.** Full OOB scan, newest sequence number per page; the queue is ordered by the sequence numbers
//! of the last pages, open blocks among them. A chance block that a cut reclaim was filling is told by the tags of
//! its pages. Cold pages are merged at once. With map blocks only the log blocks are read, and what of their pages lies in
//! data blocks too; the map is then written anew.
//!
//! **Deviations and why.** The paper leaves open whether carried pages share blocks with host pages, and how
//! many cold pages are merged at a time: the deviations in its Table II fit blocks of their own and one
//! page a write. The variants of that table are options. There is no sequential log block, because the paper
//! has none. Its mean response with isolation is slightly below the one without; by these rules it is
//! slightly above, since each cold page is copied once more.

use crate::parts::budgets::{hybrid_tables, log_budget};
use crate::parts::hybrid::{FoundLog, Hybrid, HybridPlan, Log};
use crate::parts::kinds::PagesByKind;
use crate::parts::logged::{LogPolicy, Logged};
use crate::parts::map_area::MapBlockOptions;
use crate::parts::scan::move_tag;
use floatgate_core::Refusal;
use floatgate_core::address::DieLpn;
use floatgate_core::flash::{Flash, Role, Slot};
use floatgate_core::ftl::MountError;
use floatgate_core::geometry::{Geometry, Space};
use floatgate_core::options;
use floatgate_core::report::{Observation, SchemeCounters, Table};
use floatgate_core::state;

options! {
    /// Options of `faster`.
    pub struct FasterOptions {
        /// Log blocks of the whole device, the isolation area included; at least 2 a die (1 without isolation).
        log_blocks: Option<u32> ["blocks"] = None, shown "required", samples [1, 2, 2, 3, 3, 4], scope Device, setting LogBlocks;
        /// Whether valid pages of a victim are carried once before they are merged.
        second_chance: bool [""] = true;
        /// Whether pages that had their second chance wait in an isolation block; needs `second_chance`.
        isolation: bool [""] = true;
        /// Cold pages merged after every page the host writes, at least 1.
        merge_per_write: u32 ["pages"] = 1, samples [1, 2, 3];
        ..map: MapBlockOptions;
    }
}

// Kinds of log block; the open block of a kind, if there is one, is in the list of the same number.
/// Pages as the host wrote them.
const HOST: usize = 0;
/// Pages that have had their second chance.
const CHANCE: usize = 1;
/// Cold pages that wait for their merge.
const ISOLATION: usize = 2;
/// The list of full log blocks, in the order in which they became full.
const FULL: usize = 3;

/// Counters of the scheme's own.
#[derive(Clone, Copy, Default, Debug)]
struct Counts {
    second_chance_copies: u64,
    isolation_copies: u64,
    carried_victims: u64,
    progressive_merges: u64,
    /// Pages found valid in a chance block when it was reclaimed: they lost their second chance.
    cold: u64,
    /// Second-chance pages that were still undecided when the counters began.
    undecided_before: u64,
    /// Cold pages that waited in the isolation block when the counters began.
    waiting_before: u64,
    /// Victims, and the valid pages found in them, by kind of block.
    victims: [u64; 2],
    victim_pages: [u64; 2],
    isolation_refills: u64,
}

state!(Counts {
    second_chance_copies,
    isolation_copies,
    carried_victims,
    progressive_merges,
    cold,
    undecided_before,
    waiting_before,
    victims,
    victim_pages,
    isolation_refills,
});

/// One instance of FASTer.
pub type Faster = Logged<FasterPolicy>;

/// Which log block takes a page, and which one is merged.
#[derive(Debug)]
pub struct FasterPolicy {
    h: Hybrid<PagesByKind<3>>,
    options: FasterOptions,
    /// Most log blocks between two page writes, without the isolation block.
    limit: u32,
    /// No position of the isolation block below this one is valid.
    coldest: u32,
    counts: Counts,
    /// Logical blocks rebuilt by the latest full merge.
    association: u32,
    /// Valid share of the latest victim.
    victim_valid_share: f64,
}

state!(FasterPolicy { h, coldest, counts, association, victim_valid_share } fixed { options, limit });

impl FasterPolicy {
    /// After a power cut: empties the isolation area, which cannot be filled any further, and merges log blocks
    /// above the limit.
    fn restore_budget<F: Flash>(&mut self, flash: &mut F) -> Result<(), MountError<F::Error>> {
        while let Some(isolation) = self.only(ISOLATION) {
            self.h.merge_away(flash, isolation)?;
        }
        while self.count() > self.limit {
            let oldest = self.only(FULL).expect("no found log block is open");
            self.h.merge_away(flash, oldest)?;
        }
        Ok(())
    }

    #[inline(always)]
    fn only(&self, list: usize) -> Option<Log> {
        self.h.lists.first(list).map(Log)
    }

    /// Log blocks without the isolation block.
    #[inline(always)]
    fn count(&self) -> u32 {
        self.h.lists.len(FULL) + self.h.lists.len(HOST) + self.h.lists.len(CHANCE)
    }

    fn take<F: Flash>(&mut self, flash: &mut F, kind: usize) -> Result<Log, F::Error> {
        let log = self.h.take_log(flash, 0, None)?;
        self.h.watch.set_kind(log, kind);
        self.h.lists.push_back(kind, log.0);
        Ok(log)
    }

    #[inline]
    fn queue_if_full<F: Flash>(&mut self, flash: &F, log: Log) {
        if self.h.is_full(flash, log) {
            self.h.lists.move_to_back(FULL, log.0);
        }
    }

    /// Reclaims the oldest full log block, or the open chance block if no block is full.
    fn reclaim<F: Flash>(&mut self, flash: &mut F) -> Result<(), F::Error> {
        let victim = self.only(FULL).or_else(|| self.only(CHANCE));
        let victim = victim.expect("the log is used up, so it has a block");
        let kind = self.h.watch.kind(victim);
        let valid = self.h.valid(victim);
        self.counts.victims[kind] += 1;
        self.counts.victim_pages[kind] += u64::from(valid);
        self.victim_valid_share = f64::from(valid) / f64::from(self.h.pages_per_block());
        if kind == CHANCE {
            self.counts.cold += u64::from(valid);
        }
        let merge = !self.options.second_chance || kind == CHANCE && !self.options.isolation;
        if valid == 0 || merge {
            return self.merge(flash, victim);
        }
        if kind == CHANCE {
            self.isolate(flash, victim, valid)?;
        } else {
            self.give_second_chance(flash, victim)?;
        }
        self.h.erase_log(flash, victim)?;
        self.counts.carried_victims += 1;
        Ok(())
    }

    fn merge<F: Flash>(&mut self, flash: &mut F, victim: Log) -> Result<(), F::Error> {
        let before = self.h.merges.full_merge_associated;
        self.h.merge_full(flash, victim)?;
        let rebuilt = self.h.merges.full_merge_associated - before;
        if rebuilt > 0 {
            self.association = rebuilt as u32;
        }
        Ok(())
    }

    /// Copies the valid pages of a host block behind the second-chance pages of earlier victims.
    fn give_second_chance<F: Flash>(&mut self, flash: &mut F, victim: Log) -> Result<(), F::Error> {
        let mut left = self.h.valid(victim);
        for position in 0..self.h.written(flash, victim) {
            if !self.h.is_valid_at(victim, position) {
                continue;
            }
            left -= 1;
            let chance = match self.only(CHANCE) {
                Some(chance) => chance,
                None => self.take(flash, CHANCE)?,
            };
            let lpn = self.h.log_page(victim, position);
            // A chance block taken just now is one too many until the victim is erased.
            let tag = move_tag(left == 0, self.h.log_block(victim));
            self.h
                .carry_to_log(flash, chance, lpn, Role::LogChance, tag)?;
            self.counts.second_chance_copies += 1;
            self.queue_if_full(flash, chance);
        }
        Ok(())
    }

    /// Copies the valid pages of a chance block to the isolation block; there is room, because the cold
    /// pages of the last victim have been merged in the meantime.
    fn isolate<F: Flash>(&mut self, flash: &mut F, victim: Log, cold: u32) -> Result<(), F::Error> {
        let pages = self.h.pages_per_block();
        let isolation = match self.only(ISOLATION) {
            Some(block) if self.h.written(flash, block) + cold <= pages => block,
            old => {
                if let Some(block) = old {
                    self.h.erase_log(flash, block)?;
                    self.counts.isolation_refills += 1;
                }
                self.coldest = 0;
                self.take(flash, ISOLATION)?
            }
        };
        for position in 0..self.h.written(flash, victim) {
            if self.h.is_valid_at(victim, position) {
                let lpn = self.h.log_page(victim, position);
                self.h
                    .copy_to_log(flash, isolation, lpn, Role::LogIsolation)?;
            }
        }
        self.counts.isolation_copies += u64::from(cold);
        Ok(())
    }

    /// Progressive merge: rebuilds the logical blocks of the oldest cold pages.
    #[inline]
    fn merge_cold_pages<F: Flash>(&mut self, flash: &mut F) -> Result<(), F::Error> {
        for _ in 0..self.options.merge_per_write {
            let isolation = self.only(ISOLATION);
            let Some(isolation) = isolation.filter(|&block| self.h.valid(block) > 0) else {
                break;
            };
            self.merge_oldest(flash, isolation)?;
        }
        Ok(())
    }

    fn merge_oldest<F: Flash>(&mut self, flash: &mut F, isolation: Log) -> Result<(), F::Error> {
        while !self.h.is_valid_at(isolation, self.coldest) {
            self.coldest += 1;
        }
        let (lbn, _) = self.h.split(self.h.log_page(isolation, self.coldest));
        self.h.rebuild(flash, lbn)?;
        self.h.merges.count_full(1);
        self.counts.progressive_merges += 1;
        self.association = 1;
        Ok(())
    }

    /// Second-chance pages that a rebuild of their logical block for another page's sake took along.
    fn second_chances_merged(&self) -> u64 {
        self.h.watch.moved[CHANCE] - self.counts.cold
    }

    fn audit_blocks<F: Flash>(&self, flash: &F) -> Result<(), String> {
        let logs = |list| self.h.lists.iter(list).map(Log);
        let everywhere = [HOST, CHANCE, ISOLATION, FULL].into_iter().flat_map(logs);
        let known = everywhere.map(|log| (log, self.h.written(flash, log), self.h.valid(log)));
        self.h.watch.audit(known)?;
        for log in logs(FULL) {
            if !self.h.is_full(flash, log) || self.h.watch.kind(log) == ISOLATION {
                return Err(format!("log {} is in the queue of full blocks", log.0));
            }
        }
        for kind in [HOST, CHANCE, ISOLATION] {
            for log in logs(kind) {
                let may_be_full = kind == ISOLATION;
                if self.h.watch.kind(log) != kind || self.h.is_full(flash, log) && !may_be_full {
                    return Err(format!("log {} is in list {kind}", log.0));
                }
            }
        }
        let cold = |position| logs(ISOLATION).any(|log| self.h.is_valid_at(log, position));
        if (0..self.coldest).any(cold) {
            return Err("a cold page was passed over".into());
        }
        Ok(())
    }

    fn audit_budget(&self) -> Result<(), String> {
        let (count, isolation) = (self.count(), self.h.lists.len(ISOLATION));
        let single = [HOST, CHANCE, ISOLATION].map(|list| self.h.lists.len(list) <= 1);
        if count > self.limit
            || single.contains(&false)
            || count + isolation != self.h.logs_in_use()
        {
            return Err(format!(
                "{count} log blocks of {} and {isolation} isolation blocks, {} in use",
                self.limit,
                self.h.logs_in_use()
            ));
        }
        if self.h.free_blocks(0) == 0 {
            return Err("the merge reserve is gone".into());
        }
        Ok(())
    }

    /// Every page that got a second chance has won it, lost it, been merged, or is still undecided;
    /// likewise the cold pages.
    fn audit_chances(&self) -> Result<(), String> {
        let (c, pages) = (&self.counts, &self.h.watch);
        let given = c.undecided_before + c.second_chance_copies;
        let decided = pages.dropped[CHANCE] + pages.moved[CHANCE];
        let cold = c.waiting_before + c.isolation_copies;
        let gone = pages.dropped[ISOLATION] + pages.moved[ISOLATION];
        if given != decided + pages.valid[CHANCE]
            || pages.moved[CHANCE] < c.cold
            || cold != gone + pages.valid[ISOLATION]
        {
            return Err(format!(
                "{given} second chances, {decided} decided; {cold} cold pages, {gone} gone: {pages:?}"
            ));
        }
        let victims = c.victims[0] + c.victims[1];
        let merges = &self.h.merges;
        if victims != merges.dead + c.carried_victims + merges.full - c.progressive_merges {
            return Err(format!("{victims} victims are not dead, carried or merged"));
        }
        Ok(())
    }
}

impl LogPolicy for FasterPolicy {
    const KEY: &'static str = "faster";
    const TITLE: &'static str = "FASTer";
    const SUMMARY: &'static str =
        "FAST with a second chance for log pages and progressive merges of cold ones";
    const SOURCE: &'static str = "Lim, Lee, Moon, SNAPI 2010";
    const TEXT: &'static str = include_str!("faster.rs");
    type Options = FasterOptions;
    type Watch = PagesByKind<3>;

    fn plan(space: &Space, options: &FasterOptions) -> Result<HybridPlan, Refusal> {
        if options.isolation && !options.second_chance {
            let text = "isolation = true needs second_chance = true: only pages that had a second chance are \
                        isolated (plain FAST sets both to false)";
            return Err(Refusal::new("isolation", text.into()));
        }
        if options.merge_per_write == 0 {
            let text = "merge_per_write = 0: at least 1, or the isolation area never empties";
            return Err(Refusal::new("merge_per_write", text.into()));
        }
        let isolation = u32::from(options.isolation);
        let log_blocks = log_budget(space, options.log_blocks, 1 + isolation)?;
        Ok(HybridPlan {
            // One more than the budget: during a reclaim the reserve may be a new chance block.
            log_slots: log_blocks + 1,
            ..HybridPlan::new(log_blocks, 4, &options.map)
        })
    }

    fn watch(_: &Space, plan: &HybridPlan, _: &FasterOptions) -> PagesByKind<3> {
        PagesByKind::new(plan.log_slots)
    }

    fn new(h: Hybrid<PagesByKind<3>>, options: &FasterOptions) -> Self {
        Self {
            limit: h.log_budget() - u32::from(options.isolation),
            options: options.clone(),
            h,
            coldest: 0,
            counts: Counts::default(),
            association: 0,
            victim_valid_share: 0.0,
        }
    }

    fn hybrid(&self) -> &Hybrid<PagesByKind<3>> {
        &self.h
    }

    fn hybrid_mut(&mut self) -> &mut Hybrid<PagesByKind<3>> {
        &mut self.h
    }

    fn mount_found<F: Flash>(
        &mut self,
        flash: &mut F,
        mut found: Vec<FoundLog>,
    ) -> Result<(), MountError<F::Error>> {
        found.sort_unstable_by_key(|found| found.last);
        for FoundLog { log, role, .. } in found {
            let (kind, list) = match role {
                Role::LogChance => (CHANCE, FULL),
                Role::LogIsolation => (ISOLATION, ISOLATION),
                _ => (HOST, FULL),
            };
            self.h.watch.set_kind(log, kind);
            self.h.lists.push_back(list, log.0);
        }
        self.restore_budget(flash)
    }

    #[inline]
    fn write_page<F: Flash>(
        &mut self,
        flash: &mut F,
        lpn: DieLpn,
        slot: Slot,
    ) -> Result<(), F::Error> {
        while !self.h.write_to_data(flash, slot, lpn)? {
            let host = match self.only(HOST) {
                Some(host) => host,
                None if self.count() < self.limit => self.take(flash, HOST)?,
                None => {
                    self.reclaim(flash)?;
                    continue;
                }
            };
            self.h.append(flash, slot, host, lpn, Role::Log)?;
            self.queue_if_full(flash, host);
            break;
        }
        self.merge_cold_pages(flash)
    }

    fn log_blocks(options: &FasterOptions) -> u32 {
        options.log_blocks.unwrap_or(0)
    }

    fn tables(geometry: &Geometry, options: &FasterOptions) -> Vec<Table> {
        let log_blocks = options.log_blocks.unwrap_or(0);
        let mut tables = hybrid_tables(geometry, log_blocks);
        tables.push(Table::sram("kind of log block", log_blocks.into(), 1));
        tables
    }

    fn own_ram_bytes(geometry: &Geometry, options: &FasterOptions) -> u64 {
        let log_blocks = options.log_blocks.unwrap_or(0);
        let spare_slots = u64::from(geometry.dies);
        let slot = 48 + 4 * u64::from(geometry.pages_per_block);
        spare_slots * slot + 9 * (u64::from(log_blocks) + spare_slots)
    }

    fn count(&self, counters: &mut SchemeCounters) {
        let (c, pages) = (&self.counts, &self.h.watch);
        counters.extra("second_chance_copies", c.second_chance_copies);
        counters.extra("isolation_copies", c.isolation_copies);
        counters.extra("carried_victims", c.carried_victims);
        counters.extra("progressive_merges", c.progressive_merges);
        counters.stat_sums([
            ("second_chances_given", c.second_chance_copies),
            ("second_chances_won", pages.dropped[CHANCE]),
            ("second_chances_lost", c.cold),
            ("second_chances_merged", self.second_chances_merged()),
            ("host_victims", c.victims[0]),
            ("host_victim_valid_pages", c.victim_pages[0]),
            ("chance_victims", c.victims[1]),
            ("chance_victim_valid_pages", c.victim_pages[1]),
            ("isolation_refills", c.isolation_refills),
            ("isolation_dropped", pages.dropped[ISOLATION]),
        ]);
    }

    fn reset_own_counters(&mut self) {
        self.h.watch.reset_counters();
        self.counts = Counts {
            undecided_before: self.h.watch.valid[CHANCE],
            waiting_before: self.h.watch.valid[ISOLATION],
            ..Counts::default()
        };
    }

    fn observe(&self, seen: &mut Observation) {
        let pages = &self.h.watch;
        let per_block = self.h.pages_per_block();
        let won = pages.dropped[CHANCE];
        let fill = pages.programmed[ISOLATION] as f64 / f64::from(per_block);
        seen.mean("association", self.association.into());
        seen.sum(
            "second_chances_given",
            self.counts.second_chance_copies as f64,
        );
        seen.sum("second_chances_won", won as f64);
        seen.sum("second_chance_pages", pages.valid[CHANCE] as f64);
        seen.mean("isolation_fill", fill);
        seen.sum("isolation_pages", pages.valid[ISOLATION] as f64);
        seen.sum("log_blocks_used", self.h.logs_in_use().into());
        seen.mean("victim_valid_share", self.victim_valid_share);
        seen.mean(
            "log_block_utilisation",
            self.h.merges.log_block_utilisation(per_block),
        );
    }

    fn audit_own<F: Flash>(&self, flash: &F) -> Result<(), String> {
        self.audit_budget()?;
        self.audit_blocks(flash)?;
        self.audit_chances()
    }
}

#[cfg(test)]
mod tests;
