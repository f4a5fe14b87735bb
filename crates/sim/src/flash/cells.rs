//! Reads whose cell time depends on the page: its place in cells of several bits, and how worn its block is
//! (docs/chips.md).

use floatgate_core::Pbn;
use floatgate_core::flash::Flash;

use super::SimFlash;
use crate::clock::{Clock, FlashOp, Machine, OpKind, Sensing};

/// What the time of a read depends on.
#[derive(Debug)]
pub(super) struct Cells {
    /// Its latencies: what a page read takes is asked of them.
    machine: Machine,
    pages_per_block: u32,
}

impl Cells {
    /// None if all reads of the machine take the same time.
    pub(super) fn of(machine: &Machine) -> Option<Box<Self>> {
        let is_plain = machine.t_r_by_page_ns.is_empty() && machine.read_retry.is_empty();
        let cells = || Self {
            machine: machine.clone(),
            pages_per_block: machine.pages_per_block,
        };
        (!is_plain).then(|| Box::new(cells()))
    }

    /// How a page is read, of a block that has been erased so often on this device.
    fn sensing(&self, page: u32, erases: u32) -> Sensing {
        let types = self.machine.t_r_by_page_ns.len() as u32;
        let page_type = match types {
            0 => 0,
            types => page % self.pages_per_block % types + 1,
        };
        let erases = self.machine.erases_before.saturating_add(erases);
        let passed = |&from: &u32| from <= erases;
        Sensing {
            page_type: page_type as u8,
            retries: self.machine.read_retry.partition_point(passed) as u8,
        }
    }

    /// What the cells of an operation take longer than with a single read in `t_r_ns`, modulo 2^64.
    fn more_ns(&self, op: FlashOp) -> u64 {
        let of = |op: FlashOp| self.machine.phases(op).cell_1_ns;
        of(op).wrapping_sub(of(FlashOp::new(op.kind, op.die)))
    }
}

impl<C: Clock> SimFlash<C> {
    /// Issues a page read or a copy inside the die, where they differ.
    #[cold]
    #[inline(never)]
    pub(super) fn issue_sensed(&mut self, op: FlashOp, after: C::Token) -> C::Token {
        let Some(cells) = &self.cells else {
            return self.clock.issue(op, after);
        };
        let page = match op.kind {
            OpKind::CopyBack => op.from,
            _ => op.page,
        };
        let erases = self.erase_count(Pbn(page / cells.pages_per_block));
        let sensing = cells.sensing(page, erases);
        let op = FlashOp { sensing, ..op };
        let more_ns = cells.more_ns(op);
        self.fine.read_retries += u64::from(sensing.retries);
        let sum = &mut self.fine.sensing_ns[op.cause as usize];
        *sum = sum.wrapping_add(more_ns);
        self.clock.issue(op, after)
    }
}
