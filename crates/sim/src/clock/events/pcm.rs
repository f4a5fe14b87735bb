//! PCM chips that read first, under the event engine.
//!
//! Such a chip stands beside the engine. A write may have to wait for a program whose end is not known, and the engine
//! forgets ends that are over: so in the chip's place among the devices there is a *gate*, through which its writes go in
//! their order and in no time, and a write gets to the chip with the time at which it has passed.

use super::super::shape::Shape;
use super::super::token::EventToken;
use super::super::{FlashOp, OpKind};
use super::Events;

impl Events {
    /// The shape of a write on its way through a gate, put in place if chips read first.
    pub(super) fn open_gates(&mut self) {
        if self.machine.pcm.read_first {
            self.gate = self.shapes.len() as u32;
            self.shapes.push(Shape::default());
            self.pcm = vec![super::ReadFirst::default(); self.machine.pcm.chips.max(1) as usize];
        }
    }

    /// Issues an access of a chip that reads first. A write has no end that could be waited for.
    #[cold]
    pub(super) fn issue_read_first(&mut self, op: FlashOp, after: EventToken) -> EventToken {
        let device = self.device_of(op);
        let total_ns = self.shapes[op.kind as usize].total_ns;
        let busy = &mut self.die_busy_ns[device as usize];
        *busy = busy.saturating_add(total_ns);
        if op.kind == OpKind::PcmWrite {
            self.cause = op.cause;
            self.issue_row(device, self.gate, 1, after);
            return EventToken::NOTHING;
        }
        debug_assert_eq!(after, EventToken::NOTHING, "a PCM read waits for nothing");
        let at_ns = self.at_ns.max(self.floor_ns);
        self.floor_ns = at_ns;
        if self.coupled > 0 {
            // A write whose program is not known to be over by then has not begun.
            self.grant_all(at_ns);
        }
        self.issued += 1;
        let write_ns = self.write_ns();
        let chip = device - self.dies();
        let (start_ns, end_ns) = self.pcm[chip as usize].read(at_ns, total_ns, write_ns);
        self.requests.started(start_ns);
        EventToken::known(end_ns)
    }

    /// A write has passed the gate of its chip.
    #[inline]
    pub(super) fn passed_gate(&mut self, device: u32, shape: u32, end_ns: u64) {
        if shape == self.gate {
            let (chip, write_ns) = ((device - self.dies()) as usize, self.write_ns());
            self.pcm[chip].begin_writes(self.floor_ns, write_ns);
            self.pcm[chip].write(end_ns);
        }
    }

    /// All writes begin, as no read follows.
    pub(super) fn begin_all_writes(&mut self) {
        let write_ns = self.write_ns();
        for chip in &mut self.pcm {
            chip.begin_writes(u64::MAX, write_ns);
        }
    }

    /// Number of dies; the PCM chips have the numbers behind theirs.
    pub(super) fn dies(&self) -> u32 {
        self.devices.len() as u32 - self.machine.pcm.chips.max(1)
    }

    fn write_ns(&self) -> u64 {
        self.shapes[OpKind::PcmWrite as usize].total_ns
    }
}
