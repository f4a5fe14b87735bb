//! How long a device takes to come up again: the operations of a
//! [`RecoveryCost`] under the model of docs/spec/timing.md, in closed form.
//!
//! With one die a channel nothing waits for a bus, so the operations of a die follow each other, and the dies work side
//! by side: each does its share, rounded up, of every kind. Entries of phase-change memory are read one after the other, after
//! the flash.

use floatgate_core::described::RecoveryCost;

use crate::clock::{FlashOp, Machine, OpKind};

/// The time of a recovery on a device with one die a channel. `machine.channels` is not looked at.
#[must_use]
pub fn time_ns(machine: &Machine, cost: &RecoveryCost) -> u64 {
    let share = |kind, count: u64| {
        let each = machine.duration_ns(FlashOp::new(kind, 0));
        count
            .div_ceil(u64::from(machine.dies.max(1)))
            .saturating_mul(each)
    };
    let flash = [
        share(OpKind::OobRead, cost.oob_reads),
        share(OpKind::Read, cost.page_reads),
        share(OpKind::Program, cost.programs),
        share(OpKind::Erase, cost.erases),
    ];
    let pcm = cost.pcm_reads.saturating_mul(machine.pcm_read_ns);
    flash.into_iter().fold(pcm, u64::saturating_add)
}
