//! Collection in idle time under any rules: a unit at a time. (Plain page mapping goes by slices.)

use std::ops::Range;

use floatgate_core::flash::Flash;

use super::laboratory::Laboratory;
use super::{Rules, VictimRule};
use crate::parts::page_store::Moves;

impl<R: Rules> Laboratory<R> {
    /// Collects in an idle time, as long as it lasts and a group wants more erased units. The last one may outlast it.
    ///
    /// # Errors
    /// Those of the flash.
    pub fn idle<F: Flash>(
        &mut self,
        flash: &mut F,
        idle_ns: &Range<u64>,
        moves: &mut impl Moves<F>,
    ) -> Result<(), F::Error> {
        if !self.idle.is_on() {
            return Ok(());
        }
        let move_ns = self.idle.gc_move_ns.unwrap_or(0);
        let mut now_ns = idle_ns.start.saturating_add(self.idle.gc_idle_after_ns);
        let mut is_wanted = true;
        while is_wanted && now_ns < idle_ns.end {
            is_wanted = false;
            let mut longest = 0;
            for group in 0..self.books.shape().dies {
                if self.books.erased(group) >= self.idle.gc_idle {
                    continue;
                }
                let Some(victim) = self.victims.choose(group, &self.books) else {
                    continue;
                };
                let valid = self.books.unit(victim).valid;
                if !self.idle.takes(valid, self.books.unit_pages()) {
                    continue;
                }
                is_wanted = true;
                longest = longest.max(u64::from(valid));
                flash.background(now_ns);
                self.collect_unit(flash, (group, victim), moves)?;
                // It may have opened units for several classes. Whoever comes next relies on this reserve.
                while self.books.erased(group) < self.gc_low {
                    self.collect(flash, group, moves)?;
                }
            }
            now_ns = now_ns.saturating_add(longest.saturating_mul(move_ns).max(1));
        }
        Ok(())
    }
}
