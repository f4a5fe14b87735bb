//! Operations on blocks that a cache uses with one bit a cell (docs/slc.md). They lie on the dies beside the blocks of the scheme,
//! and neither the ledger nor its counters know them.

use floatgate_core::flash::{Cause, Slot};

use super::SimFlash;
use crate::clock::{Clock, FlashOp, Machine, OpKind, Programming, Sensing};

/// What such operations took, ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OneBit {
    /// Pages programmed.
    pub programs: u64,
    /// By read, program, erase: time of cells, and time of data on the bus.
    pub ns: [[u64; 2]; 3],
    /// Durations on an idle machine, of those for the host and those for folding.
    pub work_ns: [u64; 2],
}

impl OneBit {
    fn count(&mut self, machine: &Machine, op: FlashOp) {
        let kind = match op.kind {
            OpKind::Read => 0,
            OpKind::Program => 1,
            _ => 2,
        };
        self.programs += u64::from(op.kind == OpKind::Program);
        let cell_ns = match op.kind {
            OpKind::Program => machine.program_ns(op.programming),
            read_or_erase => machine.read_ns(read_or_erase, op.sensing),
        };
        let sums = &mut self.ns[kind];
        sums[0] = sums[0].wrapping_add(cell_ns);
        sums[1] = sums[1].wrapping_add(machine.data_ns(op));
        let work = &mut self.work_ns[usize::from(op.cause != Cause::Host)];
        *work = work.wrapping_add(machine.duration_ns(op));
    }
}

/// A page of such a block: its die, and its number behind those of the scheme's pages.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OneBitPage {
    pub(crate) die: u32,
    pub(crate) page: u32,
}

impl<C: Clock> SimFlash<C> {
    /// Reads a page for the host, or (no slot) to move it.
    pub(crate) fn read_one_bit(
        &mut self,
        machine: &Machine,
        at: OneBitPage,
        slot: Option<Slot>,
    ) -> C::Token {
        let (bytes, _) = slot.map_or((0, 0), |slot| self.transfer(slot));
        let cause = if slot.is_some() {
            Cause::Host
        } else {
            Cause::Gc
        };
        let op = FlashOp {
            bytes,
            sensing: Sensing::ONE_BIT,
            ..FlashOp::new(OpKind::Read, at.die)
                .on(at.page)
                .because(cause)
        };
        self.issue_one_bit(machine, op, C::Token::default())
    }

    /// Programs a page for the host.
    pub(crate) fn program_one_bit(
        &mut self,
        machine: &Machine,
        at: OneBitPage,
        after: C::Token,
    ) -> C::Token {
        let op = FlashOp::new(OpKind::Program, at.die)
            .on(at.page)
            .because(Cause::Host);
        let op = FlashOp {
            programming: Programming::OneBit,
            ..op
        };
        self.issue_one_bit(machine, op, after)
    }

    /// Erases the block that begins with a page.
    pub(crate) fn erase_one_bit(&mut self, machine: &Machine, first: OneBitPage, after: C::Token) {
        let op = FlashOp::new(OpKind::Erase, first.die).on(first.page);
        self.issue_one_bit(machine, op, after);
    }

    fn issue_one_bit(&mut self, machine: &Machine, op: FlashOp, after: C::Token) -> C::Token {
        self.fine.one_bit.count(machine, op);
        if op.cause == Cause::Host {
            self.host_pages_by_die[op.die as usize] += 1;
        }
        self.clock.issue(op, after)
    }
}
