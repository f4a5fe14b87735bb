//! `bast`: every data block may have one log block of its own.
//!
//! **Paper.** Kim et al., "A Space-Efficient Flash Translation Layer for CompactFlash Systems", IEEE Trans.
//! Consumer Electronics, 2002; described in LAST++ sections 2.2 and 3, LAST section 2.3, FASTer section II.
//!
//! **Rules.** docs/spec/bast.md has every one of them, to the last counter.
//!
//! **RAM state.** Block map; for each log block its logical block and the page map of its positions; the
//! order of the log blocks for the victim choice.
//!
//! **Flash state.** Data blocks, at most `log_blocks` log blocks filled strictly in order, optionally map
//! blocks. OOB: LPN, sequence number, role data or log.
//!
//! **How it writes, reads, reclaims.** A page goes to its own position of the data block if that is
//! erased, else to the next position of the logical block's log block. A full log block, or the victim when
//! the budget is used up, is merged: switch or partial if its pages lie in order, else a full merge of the one
//! logical block. Merges are lazy. A read is one page read.
//!
//! **Recovery.** Full OOB scan, newest sequence number per page; of two blocks of one logical block the
//! older is the data block, unless the younger is a rebuild. Found log blocks take no more pages. With map
//! blocks only the log blocks are read, and what of their pages lies in data blocks too; the map is then written anew.
//!
//! **Deviations and why.** The papers leave the victim choice open: least recently written is the default,
//! `fifo` is offered. The restart after a merge (the page may now fit the data block) is ours.

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
    /// Which log block is merged when a new one is needed.
    pub enum Victim {
        /// The one whose last program lies farthest back.
        Lru = "lru",
        /// The one taken earliest.
        Fifo = "fifo",
    }
}

options! {
    /// Options of `bast`.
    pub struct BastOptions {
        /// Log blocks of the whole device, divided by the dies; at least 1 a die.
        log_blocks: Option<u32> ["blocks"] = None, shown "required", samples [1, 2, 2, 3, 3, 4], scope Device, setting LogBlocks;
        /// Which log block is merged when a new one is needed.
        victim: Victim [""] = Victim::Lru;
        ..map: MapBlockOptions;
    }
}

/// The list of log blocks in victim order.
const LOGS: usize = 0;

/// One instance of BAST.
pub type Bast = Logged<BastPolicy>;

/// Which log block takes a page, and which one is merged.
#[derive(Debug)]
pub struct BastPolicy {
    h: Hybrid,
    victim: Victim,
}

state!(BastPolicy { h } fixed { victim });

impl BastPolicy {
    fn merge<F: Flash>(&mut self, flash: &mut F, log: Log, lbn: Lbn) -> Result<(), F::Error> {
        if self.h.is_aligned(log, lbn) {
            self.h.merge_aligned(flash, log, lbn)?;
        } else {
            self.h.merge_full(flash, log)?;
        }
        Ok(())
    }
}

impl LogPolicy for BastPolicy {
    const KEY: &'static str = "bast";
    const TITLE: &'static str = "BAST";
    const SUMMARY: &'static str = "a log block for each data block that needs one";
    const SOURCE: &'static str = "Kim et al., IEEE TCE 2002";
    const TEXT: &'static str = include_str!("bast.rs");
    type Options = BastOptions;
    type Watch = ();

    fn plan(space: &Space, options: &BastOptions) -> Result<HybridPlan, Refusal> {
        let log_blocks = log_budget(space, options.log_blocks, 1)?;
        Ok(HybridPlan::new(log_blocks, 1, &options.map))
    }

    fn watch(_: &Space, _: &HybridPlan, _: &BastOptions) {}

    fn new(h: Hybrid, options: &BastOptions) -> Self {
        let victim = options.victim;
        Self { h, victim }
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
        if self.victim == Victim::Lru {
            found.sort_unstable_by_key(|found| found.last);
        }
        for log in found.into_iter().map(|found| found.log) {
            match self.h.claim(log) {
                Some(_) => self.h.lists.push_back(LOGS, log.0),
                None => self.h.merge_away(flash, log)?,
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
        loop {
            if self.h.write_to_data(flash, slot, lpn)? {
                return Ok(());
            }
            let log = match self.h.owned(lbn) {
                Some(log) if self.h.is_full(flash, log) => {
                    self.merge(flash, log, lbn)?;
                    continue;
                }
                Some(log) => log,
                None if self.h.logs_in_use() == self.h.log_budget() => {
                    let victim = Log(self
                        .h
                        .lists
                        .first(LOGS)
                        .expect("the budget is at least one block"));
                    let of = self.h.owner(victim).expect("every log block has an owner");
                    self.merge(flash, victim, of)?;
                    continue;
                }
                None => {
                    let log = self.h.take_log(flash, 0, Some(lbn))?;
                    self.h.lists.push_back(LOGS, log.0);
                    log
                }
            };
            self.h.append(flash, slot, log, lpn, Role::Log)?;
            if self.victim == Victim::Lru {
                self.h.lists.move_to_back(LOGS, log.0);
            }
            return Ok(());
        }
    }

    fn log_blocks(options: &BastOptions) -> u32 {
        options.log_blocks.unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use floatgate_core::report::bits_for;
    use floatgate_core::striped::Striped;
    use floatgate_core::{Described, Geometry, ProgramOrder};
    use floatgate_testkit::suite::{Bench, Case};

    /// Host programs, gc programs, erases, switch, partial, full, dead after each step.
    #[test]
    fn worked_example() {
        let case = Case::small(1, 7, 4, 4).with("log_blocks", 2);
        let mut bench = Bench::<Striped<Bast>>::new(&case).unwrap();
        for (step, expected) in [
            ("W 0 4", [4, 0, 0, 0, 0, 0, 0]),
            ("W 4 1", [5, 0, 0, 0, 0, 0, 0]),
            ("W 8 1", [6, 0, 1, 1, 0, 0, 0]),
            ("W 5 1", [7, 0, 1, 1, 0, 0, 0]),
            ("W 12 1", [8, 3, 2, 1, 1, 0, 0]),
            ("W 4 1", [9, 3, 2, 1, 1, 0, 0]),
            ("W 4 1", [10, 3, 2, 1, 1, 0, 0]),
            ("W 6 1", [11, 7, 4, 1, 1, 1, 0]),
            ("W 13 1", [12, 7, 4, 1, 1, 1, 0]),
            ("W 1 1", [13, 11, 6, 1, 1, 2, 0]),
            ("T 13 1, T 12 1", [13, 11, 6, 1, 1, 2, 0]),
            ("R 12 2", [13, 11, 6, 1, 1, 2, 0]),
            ("W 6 1", [14, 11, 7, 1, 1, 2, 1]),
            ("W 9 1", [15, 15, 9, 1, 1, 3, 1]),
        ] {
            let (c, m) = (bench.play(step).counters(), bench.scheme().merges);
            let got = [
                c.programs.host,
                c.programs.gc,
                c.erases.gc,
                m.switch,
                m.partial,
                m.full,
                m.dead,
            ];
            assert_eq!(got, expected, "{step}");
        }
        assert_eq!(bench.flash.unwritten_reads, 2);
    }

    /// LAST++ Table II: 1,216 KB of block map and 928 KB of log pages at 256 GB.
    #[test]
    fn memory_of_the_papers_device() {
        let pages = 524_288 * 128;
        let geometry = Geometry::new(1, 530_000, 128, pages, ProgramOrder::Ascending).unwrap();
        let options = BastOptions {
            log_blocks: Some(1024),
            ..BastOptions::default()
        };
        let kib: Vec<u64> = Bast::tables(&geometry, &options)
            .iter()
            .map(|t| t.bits() / 8192)
            .collect();
        assert_eq!(kib, [1216, 928]);
        assert_eq!(bits_for(pages), 26);
    }
}
