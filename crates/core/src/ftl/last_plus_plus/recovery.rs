//! How LAST++ comes back: by the snapshot of a clean shutdown, or from what a power cut left.

use super::{DIES, LastPlusPlus, LastPlusPlusOptions, Logs};
use crate::flash::Flash;
use crate::ftl::{Means, NoRecovery};
use crate::geometry::Space;
use crate::parts::heat::Heat;
use crate::parts::hybrid::{FoundLog, Hybrid};

impl LastPlusPlus {
    pub(super) fn bring_back<F: Flash>(
        space: &Space,
        options: &LastPlusPlusOptions,
        _means: Means,
        flash: &mut F,
    ) -> Result<Self, NoRecovery<F::Error>> {
        let (plan, hybrid) = Self::plan(space, options)?;
        let logs = Logs::new(space, options, &plan);
        let (h, found) = Hybrid::recover(space, &hybrid, logs, flash)?;
        let mut ftl = Self::new::<F>(h, options, plan);
        ftl.take_found(flash, found).map_err(NoRecovery::Flash)?;
        Ok(ftl)
    }

    /// The log blocks go where the roles of their pages say. There are never more of a kind on a die than before
    /// the power cut, because none becomes one of the other kind.
    fn take_found<F: Flash>(
        &mut self,
        flash: &mut F,
        found: Vec<FoundLog>,
    ) -> Result<(), F::Error> {
        self.order_dies(&found);
        for FoundLog { log, role, .. } in &found {
            if let Some(partition) = Heat::of_role(*role) {
                let valid = self.h.valid_pages(*log);
                let valid: Vec<_> = valid.map(|(at, lpn, l)| (at, lpn, l, 0)).collect();
                self.h.watch.random.adopt(*log, partition, &valid);
            }
        }
        for FoundLog { log, role, .. } in found {
            if Heat::of_role(role).is_some() {
                continue;
            }
            let Some(l) = self.h.adopt(log) else {
                self.h.give_up(flash, log)?;
                continue;
            };
            // Seq-IDs in the order of the first pages: an entry is made with its first block.
            let segment = l % self.plan.segments;
            if !self.h.watch.segments.contains(segment) {
                self.h.watch.segments.insert(segment);
            }
            self.h.watch.segments.taken(segment, log);
        }
        Ok(())
    }

    /// The die whose log blocks have the youngest page was written last.
    fn order_dies(&mut self, found: &[FoundLog]) {
        let mut last = vec![0; self.dies() as usize];
        for found in found {
            let die = &mut last[self.h.die_of_log(found.log) as usize];
            *die = found.last.max(*die);
        }
        let mut dies: Vec<u32> = (0..self.dies()).collect();
        dies.sort_by_key(|&die| last[die as usize]);
        for die in dies {
            self.die_order.move_to_back(DIES, die);
        }
    }
}
