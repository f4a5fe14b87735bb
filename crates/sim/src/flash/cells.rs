//! Operations whose cell time depends on the page: its place in cells of several bits or on its word line, and how worn its
//! block is (docs/chips.md).

use floatgate_core::flash::Flash;
use floatgate_core::ledger::Ledger;
use floatgate_core::{Pbn, Ppn};

use super::SimFlash;
use crate::clock::{Clock, FlashOp, Machine, OpKind, Programming, Sensing};

/// What the time of cells depends on.
#[derive(Debug)]
pub(super) struct Cells {
    /// Its latencies: what an operation takes is asked of them.
    machine: Machine,
    pages_per_block: u32,
    /// Pages of a word line that are programmed at once.
    one_shot: u32,
}

impl Cells {
    /// None if all operations of a kind take the same time.
    pub(super) fn of(machine: &Machine) -> Option<Box<Self>> {
        let is_plain = machine.t_r_by_page_ns.is_empty()
            && machine.read_retry.is_empty()
            && machine.t_prog_by_page_ns.is_empty()
            && machine.one_shot <= 1;
        let cells = || Self {
            machine: machine.clone(),
            pages_per_block: machine.pages_per_block,
            one_shot: machine.one_shot.max(1),
        };
        (!is_plain).then(|| Box::new(cells()))
    }

    /// How a page is read, of a block that has been erased so often on this device.
    fn sensing(&self, ledger: &Ledger, page: u32, erases: u32) -> Sensing {
        if self.is_in_register(ledger, page) {
            return Sensing::IN_REGISTER;
        }
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

    /// Whether the word line of a programmed page is not complete, so that nothing of it is in the cells.
    fn is_in_register(&self, ledger: &Ledger, page: u32) -> bool {
        let offset = page % self.pages_per_block;
        let line_end = offset - offset % self.one_shot + self.one_shot;
        ledger.write_pointer(Pbn(page / self.pages_per_block)) < line_end
    }

    /// How a page that has just become programmed is programmed.
    fn programming(&self, ledger: &Ledger, page: u32) -> Programming {
        let offset = page % self.pages_per_block;
        if self.one_shot > 1 {
            let lines = u8::from(offset % self.one_shot == self.one_shot - 1)
                + u8::from(self.leaves_a_line(ledger, page));
            return match lines {
                1 => Programming::Usual,
                lines => Programming::WordLines(lines),
            };
        }
        match self.machine.t_prog_by_page_ns.len() as u32 {
            0 => Programming::Usual,
            types => Programming::OfPage((offset % types) as u8),
        }
    }

    /// Whether the page before it is on an earlier word line that is not complete: that can wait no longer.
    fn leaves_a_line(&self, ledger: &Ledger, page: u32) -> bool {
        let first = page - page % self.pages_per_block;
        let is_programmed = |&before: &u32| ledger.is_programmed(Ppn(before));
        let before = (first..page).rev().find(is_programmed);
        before.is_some_and(|before| {
            let (before, offset) = (before - first, page - first);
            let is_last = before % self.one_shot == self.one_shot - 1;
            !is_last && before / self.one_shot != offset / self.one_shot
        })
    }
}

impl<C: Clock> SimFlash<C> {
    /// Issues an operation on a page, where they differ.
    #[cold]
    #[inline(never)]
    pub(super) fn issue_sensed(&mut self, op: FlashOp, after: C::Token) -> C::Token {
        let Some(cells) = &self.cells else {
            return self.clock.issue(op, after);
        };
        let (reads, programs) = match op.kind {
            OpKind::Read | OpKind::OobRead => (Some(op.page), None),
            OpKind::Program => (None, Some(op.page)),
            _ => (Some(op.from), Some(op.page)),
        };
        let mut op = op;
        if let Some(page) = reads {
            let erases = self.erase_count(Pbn(page / cells.pages_per_block));
            let sensing = cells.sensing(&self.ledger, page, erases);
            // The spare area alone is read in a time of its own, and at once.
            if op.kind != OpKind::OobRead || sensing == Sensing::IN_REGISTER {
                op.sensing = sensing;
            }
        }
        if let Some(page) = programs {
            op.programming = cells.programming(&self.ledger, page);
        }
        let machine = &cells.machine;
        let read_ns = |sensing| machine.read_ns(op.kind, sensing);
        let more_ns = [
            read_ns(op.sensing).wrapping_sub(read_ns(Sensing::default())),
            (machine.program_ns(op.programming)).wrapping_sub(machine.t_prog_ns),
        ];
        self.fine.read_retries += u64::from(op.sensing.retries);
        let cause = op.cause as usize;
        let sums = [&mut self.fine.sensing_ns, &mut self.fine.programming_ns];
        for (sum, more_ns) in sums.into_iter().zip(more_ns) {
            sum[cause] = sum[cause].wrapping_add(more_ns);
        }
        self.clock.issue(op, after)
    }
}
