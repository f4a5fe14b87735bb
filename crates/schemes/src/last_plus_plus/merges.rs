//! Merges of random log blocks: in the foreground on every die that is used up, in idle time one by one.

use super::random::is_known_dead;
use super::{Background, LastPlusPlus};
use crate::parts::heat::Heat;
use crate::parts::hybrid::Log;
use crate::parts::map_area::Work;
use floatgate_core::flash::Flash;

impl LastPlusPlus {
    /// Every die whose random log blocks are used up reclaims one. Die `asking` needs it for `partition`.
    pub(super) fn foreground_merge<F: Flash>(
        &mut self,
        flash: &mut F,
        asking: u32,
        partition: Heat,
    ) -> Result<(), F::Error> {
        self.h.watch.random.cost.merge_id += 1;
        self.counts.merge_invocations += 1;
        for die in 0..self.dies() {
            if self.h.watch.random.in_use(die) < self.plan.random_blocks {
                continue;
            }
            if let Some(victim) = self.foreground_victim(die, partition, die == asking) {
                self.h.merge_full(flash, victim)?;
            }
        }
        Ok(())
    }

    /// The replacement flow of Fig. 11 on one die.
    pub(super) fn foreground_victim(
        &mut self,
        die: u32,
        partition: Heat,
        asking: bool,
    ) -> Option<Log> {
        let random = &self.h.watch.random;
        let hot = random.cheapest(die, Heat::Hot);
        if let Some((_, log)) = hot.filter(|&(rank, _)| is_known_dead(rank)) {
            self.counts.known_dead_victims += 1;
            return Some(log);
        }
        let (size, maximum) = (random.size(die, Heat::Hot), self.hot_maximum());
        let from = match partition {
            Heat::Hot if size >= maximum => Heat::Hot,
            Heat::Cold if size > maximum => Heat::Hot,
            _ => Heat::Cold,
        };
        let other = || asking.then(|| random.cheapest(die, from.other())).flatten();
        random
            .cheapest(die, from)
            .or_else(other)
            .map(|(_, log)| log)
    }

    /// Largest size of the hot partition, in blocks of a die.
    pub(super) fn hot_maximum(&self) -> u32 {
        let blocks = self.plan.random_blocks;
        match self.options.hot_maximum_percent {
            0 => self.h.watch.random.hot_maximum(blocks),
            percent => ((u64::from(blocks) * u64::from(percent) / 100) as u32).max(2),
        }
    }

    /// Merges blocks die by die from `now` on, as long as there are any and the idle time lasts.
    pub(super) fn background_merges<F: Flash>(
        &mut self,
        flash: &mut F,
        mut now: u64,
        end_ns: u64,
    ) -> Result<(), F::Error> {
        let mut found = true;
        while found {
            found = false;
            for die in 0..self.dies() {
                if now >= end_ns {
                    return Ok(());
                }
                let Some(victim) = self.background_victim(die) else {
                    continue;
                };
                found = true;
                flash.background(now);
                if !self.snapshot.is_empty() {
                    self.drop_snapshot(flash)?;
                }
                let before = self.h.work();
                self.h.merge_full(flash, victim)?;
                self.counts.background_merges += 1;
                let work = self.h.work().since(&before);
                now = now.saturating_add(self.estimate_ns(&work));
            }
        }
        Ok(())
    }

    /// The block of a die that idle time is spent on, if any deserves it.
    pub(super) fn background_victim(&mut self, die: u32) -> Option<Log> {
        let random = &self.h.watch.random;
        if self.options.background == Background::Aggressive {
            return random.cheapest(die, Heat::Cold).map(|(_, log)| log);
        }
        random.by_cost(die, Heat::Cold, &mut self.sorted);
        let candidates = self.sorted.iter().zip(1..);
        let eligible = candidates.into_iter().find(|&(&(rank, log), position)| {
            is_known_dead(rank) || random.cost.distance(log) > position
        });
        eligible.map(|(&(_, log), _)| log)
    }

    /// What a background merge is taken to last.
    pub(super) fn estimate_ns(&self, work: &Work) -> u64 {
        let offset = &self.options;
        let parts = [
            (work.reads, offset.t_read_ns),
            (work.programs, offset.t_program_ns),
            (work.erases, offset.t_erase_ns),
        ];
        parts.iter().fold(0, |sum: u64, (n, ns)| {
            sum.saturating_add(n.saturating_mul(*ns))
        })
    }
}
