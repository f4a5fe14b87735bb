//! Worked examples of single operations.

use floatgate_core::ProgramOrder;
use floatgate_core::flash::Role;

use super::*;
use crate::clock::{Closed, Machine};

/// Pages 0, 1, 3, 5 go to places 0 to 3 of a block of their plane, one by one or in a run: a chip that wants the parity kept
/// copies three by itself; page 3 crosses the bus twice.
#[test]
fn copies_inside_the_die_keep_parity() {
    const INSIDE_NS: u64 = 2 * 175 + 20_000 + 200_000;
    const OUTSIDE_NS: u64 = 72_975 + 252_975;
    let ends = |copyback, is_run: bool| {
        let geometry = Geometry::new(1, 8, 8, 32, ProgramOrder::Ascending).unwrap();
        let machine = Machine {
            planes: 2,
            ..Machine::default()
        };
        let mut flash = SimFlash::<Closed>::new(&geometry, &machine, copyback);
        let Ok(()) = flash.preload(Pbn(0), 8, |i| Oob::new(Lpn(i), Role::Data));
        let from = [0, 1, 3, 5].map(|page| geometry.ppn(Pbn(0), page));
        let to = geometry.ppn(Pbn(4), 0);
        let oob = Oob::new(Lpn(0), Role::Data);
        let mut done = <Closed as Clock>::Token::default();
        if is_run {
            let Ok(_) = flash.copy_run(&from, to, |_| oob, Cause::Gc, done);
        } else {
            for (&from, to) in from.iter().zip((to.0..).map(Ppn)) {
                let Ok(end) = flash.copy(from, to, oob, Cause::Gc, done);
                done = end;
            }
        }
        assert_eq!(flash.ledger.counters.programs.gc, 4);
        (flash.fine.copybacks, flash.clock.last_end_ns())
    };
    for is_run in [false, true] {
        assert_eq!(ends(Copyback::Off, is_run), (0, 4 * OUTSIDE_NS));
        assert_eq!(ends(Copyback::Plane, is_run), (4, 4 * INSIDE_NS));
        assert_eq!(
            ends(Copyback::Parity, is_run),
            (3, 3 * INSIDE_NS + OUTSIDE_NS)
        );
    }
}
