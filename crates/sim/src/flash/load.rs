//! How much each die still has to do, as a controller can know it: what it was called for, and what that takes if
//! nobody is in the way. The same under every clock.

use super::SimFlash;
use crate::clock::{Clock, FlashOp, Machine, OpKind};

/// By die: when all that it was called for should be done.
#[derive(Debug)]
pub(super) struct Load {
    free_at_ns: Vec<u64>,
    /// Duration of an operation by kind.
    durations_ns: [u64; OpKind::ALL.len()],
}

impl Load {
    /// A die has so many more operations to do from a time on.
    pub(super) fn add(&mut self, kind: OpKind, die: u32, times: u64, at_ns: u64) {
        let free_at_ns = &mut self.free_at_ns[die as usize];
        let more_ns = self.durations_ns[kind as usize].saturating_mul(times);
        *free_at_ns = at_ns.max(*free_at_ns).saturating_add(more_ns);
    }

    /// The same for pages that are copied on it.
    pub(super) fn add_copies(&mut self, die: u32, inside: bool, pages: u64, at_ns: u64) {
        if inside {
            return self.add(OpKind::CopyBack, die, pages, at_ns);
        }
        self.add(OpKind::Read, die, pages, at_ns);
        self.add(OpKind::Program, die, pages, at_ns);
    }

    /// When the die should be free, but not before a time that is past: all idle dies are alike.
    pub(super) fn free_at_ns(&self, die: u32, now_ns: u64) -> u64 {
        self.free_at_ns[die as usize].max(now_ns)
    }

    pub(super) fn clear(&mut self) {
        self.free_at_ns.fill(0);
    }
}

impl<C: Clock> SimFlash<C> {
    /// Issues an operation of a page where a die's load is kept, or times depend on the page.
    #[cold]
    #[inline(never)]
    pub(super) fn issue_specially(&mut self, op: FlashOp, after: C::Token) -> C::Token {
        if let Some(load) = &mut self.load {
            load.add(op.kind, op.die, 1, self.at_ns);
        }
        let is_of_page = matches!(
            op.kind,
            OpKind::Read | OpKind::OobRead | OpKind::Program | OpKind::CopyBack
        );
        match self.cells {
            Some(_) if is_of_page => self.issue_sensed(op, after),
            _ => self.clock.issue(op, after),
        }
    }

    /// From now on says how busy dies are, for a scheme that asks.
    pub(crate) fn weigh_dies(&mut self, machine: &Machine) {
        let phases = machine.ordinary_phases();
        self.is_special = true;
        self.load = Some(Box::new(Load {
            free_at_ns: vec![0; self.host_pages_by_die.len()],
            durations_ns: phases.map(|phases| phases.total_ns()),
        }));
    }
}
