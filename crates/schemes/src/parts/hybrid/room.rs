//! Whether what a recovery has found fits the blocks of a hybrid. After a power cut it does, by counting (see
//! [`recovery`](super::recovery)); rot and forged pages can bring back more than there were.

use super::{Hybrid, KnownBlocks, Log, Watch};
use crate::parts::scan::Scan;
use floatgate_core::Refusal;
use floatgate_core::address::{Lbn, Pbn};

impl<W: Watch> Hybrid<W> {
    /// Whether the log table has places for all log blocks of such tables.
    pub(super) fn has_slots_for(&self, known: &KnownBlocks) -> bool {
        let logs = self.count_by_die(known.logs.iter().map(|log| log.block));
        logs.into_iter().all(|logs| logs <= self.plan.log_slots)
    }

    /// Checks that the log table has places for the blocks in use that are not data blocks, and that there are erased
    /// blocks to rebuild the `doubtful` logical blocks in. Comes before anything is changed.
    ///
    /// # Errors
    /// A refusal with the numbers.
    pub(super) fn check_room_for(&self, scan: &Scan, doubtful: &[Lbn]) -> Result<(), Refusal> {
        let in_use = scan.blocks().filter(|(_, found)| found.valid > 0);
        let in_use = self.count_by_die(in_use.map(|(block, _)| block));
        let data = self.data.iter().copied().filter(|block| block.is_some());
        let data = self.count_by_die(data);
        let usable = self.plan.usable_blocks(&self.space.geometry);
        for (die, (&in_use, &data)) in (0..).zip(in_use.iter().zip(&data)) {
            let (logs, slots) = (in_use - data, self.plan.log_slots);
            if logs > slots {
                let text = format!("die {die} has {logs} log blocks in use, the scheme {slots}");
                return Err(Refusal::damaged(text));
            }
            let is_here = |&lbn: &Lbn| self.die_of_logical(lbn) == die;
            if in_use >= usable && doubtful.iter().any(is_here) {
                let text = format!("die {die} has no erased block left to rebuild a data block");
                return Err(Refusal::damaged(text));
            }
        }
        Ok(())
    }

    /// Checks that a full merge of a log block finds an erased block whenever it needs one.
    ///
    /// # Errors
    /// A refusal.
    pub(super) fn check_room_to_merge(&self, log: Log) -> Result<(), Refusal> {
        let dies = 0..self.space.dies;
        let mut free: Vec<u32> = dies.map(|die| self.free_blocks(die)).collect();
        let mut rebuilt = Vec::new();
        for (_, _, lbn) in self.valid_pages(log) {
            if rebuilt.contains(&lbn) {
                continue;
            }
            rebuilt.push(lbn);
            let die = self.die_of_logical(lbn);
            let left = free[die as usize].checked_sub(1);
            free[die as usize] = left.ok_or_else(|| {
                Refusal::damaged(format!(
                    "die {die} has no erased block left to merge a log block"
                ))
            })?;
            let owned = self.owned(lbn).map(|log| self.log_block(log));
            for block in [Some(self.data(lbn)), owned].into_iter().flatten() {
                if block.is_some() {
                    free[self.die_of_block(block) as usize] += 1;
                }
            }
        }
        Ok(())
    }

    fn count_by_die(&self, blocks: impl Iterator<Item = Pbn>) -> Vec<u32> {
        let mut counts = vec![0; self.space.dies as usize];
        blocks.for_each(|block| counts[self.die_of_block(block) as usize] += 1);
        counts
    }
}
