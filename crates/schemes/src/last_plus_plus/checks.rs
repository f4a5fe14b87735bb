//! Checks of LAST++'s tables and budgets, and its momentary values.

use super::{LastPlusPlus, ratio};
use crate::parts::heat::Heat;
use floatgate_core::flash::Flash;

impl LastPlusPlus {
    pub(super) fn audit_segments<F: Flash>(&self, flash: &F) -> Result<(), String> {
        let dies = 0..self.dies();
        self.h.watch.segments.audit(|segment| {
            let blocks = dies.clone();
            blocks
                .filter(|&die| self.h.owned(self.logical(segment, die)).is_some())
                .count() as u32
        })?;
        for segment in self.h.watch.segments.iter() {
            for die in dies.clone() {
                let lbn = self.logical(segment, die);
                let Some(log) = self.h.owned(lbn) else {
                    continue;
                };
                let block = self.h.log_block(log);
                let geometry = flash.ledger().geometry();
                if geometry.die_of(block) != die || !self.h.is_aligned(log, lbn) {
                    return Err(format!("segment {segment}, die {die}: wrong block"));
                }
                if flash.ledger().write_pointer(block) == 0 {
                    return Err(format!("segment {segment}, die {die}: blank log block"));
                }
            }
        }
        Ok(())
    }

    pub(super) fn audit_budgets<F: Flash>(&self, flash: &F) -> Result<(), String> {
        let random = &self.h.watch.random;
        for die in 0..self.dies() {
            if random.in_use(die) > self.plan.random_blocks {
                return Err(format!("die {die}: too many random log blocks"));
            }
            if self.snapshot.is_empty() && self.h.free_blocks(die) == 0 {
                return Err(format!("die {die}: the reserve is gone"));
            }
        }
        let pages = self.h.pages_per_block();
        for log in random.logs() {
            let (written, full) = (self.h.written(flash, log), self.plan.host_pages_per_block);
            let fits = if random.is_closed(log) {
                written == pages
            } else {
                (1..full).contains(&written)
            };
            if !fits {
                return Err(format!("log {}: {written} positions written", log.0));
            }
        }
        Ok(())
    }

    /// The momentary values: name, value.
    pub(super) fn momentary(&self) -> Vec<(&'static str, f64)> {
        let random = &self.h.watch.random;
        let (mut programmed, mut known_dead, mut degrees) = ([0; 2], 0_u64, 0);
        let mut blocks = [0_u64; 2];
        for log in random.logs() {
            let partition = random.partition(log).expect("a random log block");
            let (degree, overflow) = (random.cost.degree(log), random.cost.overflow(log));
            blocks[partition as usize] += 1;
            programmed[partition as usize] += u64::from(self.h.host_pages(log));
            known_dead += u64::from(random.is_closed(log) && degree == 0 && !overflow);
            degrees += u64::from(degree);
        }
        let [cold, hot] = Heat::ALL
            .map(|partition| ratio(random.valid(partition), programmed[partition as usize]));
        let m = &self.h.merges;
        let reclaimed = m.log_reclaimed * u64::from(self.h.pages_per_block());
        let (most, least) = self.counts.die_shares();
        vec![
            ("hot_blocks", blocks[1] as f64),
            ("cold_blocks", blocks[0] as f64),
            ("hot_maximum_per_die", f64::from(self.hot_maximum())),
            ("hot_utilisation", hot),
            ("cold_utilisation", cold),
            ("die_share_max", most),
            ("die_share_min", least),
            ("known_dead_blocks", known_dead as f64),
            (
                "sequential_segments",
                f64::from(self.h.watch.segments.len()),
            ),
            ("log_utilisation", ratio(m.log_pages_used, reclaimed)),
            ("mean_degree", ratio(degrees, blocks[0] + blocks[1])),
        ]
    }
}
