//! `fast`: all data blocks share the log blocks; one log block takes sequential writes.
//!
//! **Paper.** Lee et al., "A Log Buffer-Based Flash Translation Layer Using Fully-Associative Sector
//! Translation", ACM TECS 6(3), 2007, with its refinement O-FAST; described in LAST++ section 3, LAST
//! section 2.3, FASTer sections II-B, III-B, IV-A.
//!
//! **Rules.** docs/spec/fast.md has every one of them, to the last counter.
//!
//! **RAM state.** Block map; page map of all log pages; the sequential log block and its owner; the order of
//! the random log blocks.
//!
//! **Flash state.** Data blocks, at most one sequential log block (pages 0, 1, ... of its owner without a
//! gap), random log blocks filled in order, optionally map blocks. OOB: LPN, sequence number, role.
//!
//! **How it writes, reads, reclaims.** A page goes to its own position of the data block if that is erased.
//! Page 0 of a logical block starts a new sequential log block (the old one is merged); the next page of the
//! run follows it; a page that breaks the run merges it. Everything else is appended to the random log
//! blocks; when they are used up the oldest is merged with all its logical blocks. A read is one page read.
//!
//! **Recovery.** Full OOB scan, newest sequence number per page; the order of the random log blocks is that
//! of their first pages, and the youngest aligned one counts as sequential. Found log blocks take no more
//! pages. With map blocks only the log blocks are read, and what of their pages lies in data blocks too; the map is
//! then written anew.
//!
//! **Deviations and why.** Obsolete pages in a victim cause no merge (O-FAST) unless `merge_obsolete` is
//! set: the later papers describe FAST so. `sw_break = random` leaves a broken run alone instead of merging it.

use crate::parts::budgets::log_budget;
use crate::parts::hybrid::{FoundLog, Hybrid, HybridPlan, Log};
use crate::parts::logged::{LogPolicy, Logged};
use crate::parts::map_area::MapBlockOptions;
use floatgate_core::Refusal;
use floatgate_core::address::{DieLpn, Lbn};
use floatgate_core::flash::{Flash, Role, Slot};
use floatgate_core::ftl::MountError;
use floatgate_core::geometry::Space;
use floatgate_core::state;
use floatgate_core::{choice, options};

choice! {
    /// What a write to the owner of the sequential log block does when it does not continue the run.
    pub enum SwBreak {
        /// Merges the sequential log block (2007).
        Merge = "merge",
        /// Leaves it alone; the page goes to the random log blocks.
        Random = "random",
    }
}

options! {
    /// Options of `fast`.
    pub struct FastOptions {
        /// Log blocks of the whole device; at least 2 a die (1 without a sequential log block).
        log_blocks: Option<u32> ["blocks"] = None, shown "required", samples [1, 2, 2, 3, 3, 4], scope Device, setting LogBlocks;
        /// Whether one log block a die takes sequential writes.
        sw_log: bool [""] = true;
        /// What a write that breaks the sequential run does.
        sw_break: SwBreak [""] = SwBreak::Merge;
        /// Whether logical blocks with only obsolete pages in a victim are merged too (FAST of 2007).
        merge_obsolete: bool [""] = false;
        ..map: MapBlockOptions;
    }
}

/// The list of random log blocks, oldest first.
const RW: usize = 0;
/// The list with the sequential log block, if there is one.
const SW: usize = 1;

/// One instance of FAST.
pub type Fast = Logged<FastPolicy>;

/// Which log block takes a page, and which one is merged.
#[derive(Debug)]
pub struct FastPolicy {
    h: Hybrid,
    options: FastOptions,
    /// Most random log blocks.
    rw_blocks: u32,
}

state!(FastPolicy { h } fixed { options, rw_blocks });

impl FastPolicy {
    fn sequential(&self) -> Option<Log> {
        self.h.lists.first(SW).map(Log)
    }

    fn merge_sequential<F: Flash>(&mut self, flash: &mut F, sw: Log) -> Result<(), F::Error> {
        let owner = self
            .h
            .owner(sw)
            .expect("the sequential log block has an owner");
        self.h.merge_aligned(flash, sw, owner)?;
        Ok(())
    }

    fn start_sequential<F: Flash>(
        &mut self,
        flash: &mut F,
        slot: Slot,
        lpn: DieLpn,
        lbn: Lbn,
    ) -> Result<(), F::Error> {
        let sw = self.h.take_log(flash, 0, Some(lbn))?;
        self.h.lists.push_back(SW, sw.0);
        self.h.append(flash, slot, sw, lpn, Role::Log)
    }

    /// The random log block that takes the next page; `None` if a merge had to come first, after
    /// which the page write starts again.
    #[inline]
    fn random_log<F: Flash>(&mut self, flash: &mut F) -> Result<Option<Log>, F::Error> {
        if let Some(last) = self
            .h
            .lists
            .last(RW)
            .map(Log)
            .filter(|&last| !self.h.is_full(flash, last))
        {
            return Ok(Some(last));
        }
        if self.h.lists.len(RW) < self.rw_blocks {
            let log = self.h.take_log(flash, 0, None)?;
            self.h.lists.push_back(RW, log.0);
            return Ok(Some(log));
        }
        let victim = Log(self
            .h
            .lists
            .first(RW)
            .expect("at least one random log block"));
        if self.options.merge_obsolete {
            self.h.merge_full_with_obsolete(flash, victim)?;
        } else {
            self.h.merge_full(flash, victim)?;
        }
        Ok(None)
    }
}

impl LogPolicy for FastPolicy {
    const KEY: &'static str = "fast";
    const TITLE: &'static str = "FAST";
    const SUMMARY: &'static str = "fully associative log blocks, one of them sequential";
    const SOURCE: &'static str = "Lee et al., ACM TECS 2007";
    const TEXT: &'static str = include_str!("fast.rs");
    type Options = FastOptions;
    type Watch = ();

    fn plan(space: &Space, options: &FastOptions) -> Result<HybridPlan, Refusal> {
        let log_blocks = log_budget(space, options.log_blocks, 1 + u32::from(options.sw_log))?;
        Ok(HybridPlan::new(log_blocks, 2, &options.map))
    }

    fn watch(_: &Space, _: &HybridPlan, _: &FastOptions) {}

    fn new(h: Hybrid, options: &FastOptions) -> Self {
        Self {
            rw_blocks: h.log_budget() - u32::from(options.sw_log),
            options: options.clone(),
            h,
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
        found: Vec<FoundLog>,
    ) -> Result<(), MountError<F::Error>> {
        // The youngest aligned log block may have been the sequential one; as such it does no harm.
        let mut youngest = found.iter().rev().map(|found| found.log);
        let sw = youngest.find(|&log| self.options.sw_log && self.h.aligned_to(log).is_some());
        if let Some(sw) = sw.filter(|&sw| self.h.claim(sw).is_some()) {
            self.h.lists.push_back(SW, sw.0);
        }
        for found in found.iter().filter(|found| Some(found.log) != sw) {
            self.h.lists.push_back(RW, found.log.0);
        }
        while self.h.lists.len(RW) > self.rw_blocks {
            let oldest = Log(self.h.lists.first(RW).expect("there are too many"));
            self.h.merge_away(flash, oldest)?;
        }
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
            if self.options.sw_log && offset == 0 {
                match self.sequential() {
                    Some(sw) => self.merge_sequential(flash, sw)?,
                    None => return self.start_sequential(flash, slot, lpn, lbn),
                }
                continue;
            }
            if let Some(sw) = self
                .sequential()
                .filter(|&sw| self.h.owner(sw) == Some(lbn))
            {
                if self.h.written(flash, sw) == offset {
                    return self.h.append(flash, slot, sw, lpn, Role::Log);
                }
                if self.options.sw_break == SwBreak::Merge {
                    self.merge_sequential(flash, sw)?;
                    continue;
                }
            }
            if let Some(log) = self.random_log(flash)? {
                return self.h.append(flash, slot, log, lpn, Role::Log);
            }
        }
        Ok(())
    }

    fn log_blocks(options: &FastOptions) -> u32 {
        options.log_blocks.unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use floatgate_core::ftl::{Ftl, RecoveryMode, Start};
    use floatgate_core::striped::Striped;
    use floatgate_testkit::suite::{Bench, Case};

    fn bench(options: &[(&str, &str)]) -> Bench<Striped<Fast>> {
        let case = Case::small(1, 8, 4, 4).with("log_blocks", 3);
        let case = options
            .iter()
            .fold(case, |case, (key, value)| case.with(key, value));
        Bench::new(&case).unwrap()
    }

    /// Host programs, gc programs, erases, switch, partial, full, associated, dead.
    fn totals(bench: &Bench<Striped<Fast>>) -> [u64; 8] {
        let (c, m) = (bench.counters(), bench.scheme().merges);
        [
            c.programs.host,
            c.programs.gc,
            c.erases.gc,
            m.switch,
            m.partial,
            m.full,
            m.full_merge_associated,
            m.dead,
        ]
    }

    #[test]
    fn worked_example() {
        let mut bench = bench(&[]);
        for (step, expected) in [
            ("W 0 4", [4, 0, 0, 0, 0, 0, 0, 0]),
            ("W 4 2", [6, 0, 1, 1, 0, 0, 0, 0]),
            ("W 9 1", [7, 0, 1, 1, 0, 0, 0, 0]),
            ("W 6 1", [8, 0, 1, 1, 0, 0, 0, 0]),
            ("W 13 1", [9, 0, 1, 1, 0, 0, 0, 0]),
            ("W 9 1", [10, 0, 1, 1, 0, 0, 0, 0]),
            ("W 5 1", [11, 1, 2, 1, 1, 0, 0, 0]),
            ("W 1 1", [12, 1, 2, 1, 1, 0, 0, 0]),
            ("W 9 1", [13, 1, 2, 1, 1, 0, 0, 0]),
            ("W 2 1", [14, 1, 2, 1, 1, 0, 0, 0]),
            ("W 2 1", [15, 1, 2, 1, 1, 0, 0, 0]),
            ("W 2 1", [16, 9, 5, 1, 1, 1, 2, 0]),
            ("W 8 1", [17, 9, 5, 1, 1, 1, 2, 0]),
            ("T 8 1", [17, 9, 5, 1, 1, 1, 2, 0]),
            ("W 0 2", [19, 9, 6, 1, 1, 1, 2, 1]),
            ("W 14 1", [20, 9, 6, 1, 1, 1, 2, 1]),
        ] {
            bench.play(step);
            assert_eq!(totals(&bench), expected, "{step}");
        }
    }

    /// The same up to step 12 with the rule of 2007: block 2, whose page 9 is obsolete, is rebuilt too.
    #[test]
    fn obsolete_pages_cause_merges_in_plain_fast() {
        let mut bench = bench(&[("merge_obsolete", "true")]);
        bench.play("W 0 4, W 4 2, W 9 1, W 6 1, W 13 1, W 9 1, W 5 1, W 1 1, W 9 1, W 2 1, W 2 1");
        let before = totals(&bench);
        bench.play("W 2 1");
        let after = totals(&bench);
        let merge: Vec<u64> = after.iter().zip(before).map(|(a, b)| a - b).collect();
        assert_eq!(merge, [1, 12, 4, 0, 0, 1, 3, 0]);
    }

    /// Two log blocks are aligned, as can be where `sw_log` was off before: the younger one is the sequential one.
    #[test]
    fn the_youngest_aligned_log_block_is_the_sequential_one() {
        let case = Case {
            start: Start::Full,
            ..Case::small(1, 8, 4, 4)
        };
        let case = case.with("log_blocks", 3).with("sw_log", false);
        let mut bench = Bench::<Striped<Fast>>::new(&case).unwrap();
        let space = Space::whole(bench.flash.ledger.geometry());
        bench.play("W 0 2");
        // What is found takes no more pages, so the next ones go to another log block.
        for sw_log in [false, true] {
            let options = case.clone().with("sw_log", sw_log);
            let options = options.options_of::<Striped<Fast>>().unwrap();
            let means = RecoveryMode::FullScan;
            bench.ftl = Ftl::recover(&space, &options, means, &mut bench.flash).unwrap();
            if !sw_log {
                bench.play("W 4 2");
            }
        }
        let policy = &bench.ftl.instances()[0].0;
        let owner = policy.sequential().and_then(|sw| policy.h.owner(sw));
        assert_eq!(owner, Some(Lbn(1)));
        bench.read_all().unwrap();
    }

    /// LAST++ section 3: four associated blocks of 128 pages cost 512 copies and 5 erases.
    #[test]
    fn association_of_four() {
        let case = Case::small(1, 16, 128, 8)
            .with("log_blocks", 1)
            .with("sw_log", false);
        let mut bench = Bench::<Striped<Fast>>::new(&case).unwrap();
        for page in 0..128 {
            bench.write(page % 4 * 128 + page / 4, 1).unwrap();
        }
        bench.play("W 700 1");
        assert_eq!(totals(&bench), [129, 512, 5, 0, 0, 1, 4, 0]);
    }
}
