//! The closed form of a recovery's time against the simulated flash.

use floatgate_core::described::RecoveryCost;
use floatgate_core::flash::{Cause, Flash, Oob, Preload, Role};
use floatgate_core::{Lpn, Pbn};
use floatgate_sim::clock::{Clock, Closed, Events};
use floatgate_sim::config::{Copyback, Device};
use floatgate_sim::flash::SimFlash;
use floatgate_sim::part::part;
use floatgate_sim::recovery::time_ns;

/// Does the operations on dies in turn, kind by kind: when the last one ends.
fn simulated<C: Clock>(device: &Device, cost: &RecoveryCost) -> u64 {
    let geometry = device.geometry().unwrap();
    let mut flash = SimFlash::<C>::new(&geometry, &device.machine(), Copyback::Off);
    for die in 0..device.dies {
        let full = geometry.pbn(die, 1);
        let Ok(()) = flash.preload(full, 8, |i| Oob::new(Lpn(i), Role::Data));
    }
    let (none, dies) = (C::Token::default(), u64::from(device.dies));
    let die_of = |i: u64| (i % dies) as u32;
    let page = |block: Pbn, i: u64| geometry.ppn(block, (i / dies) as u32);
    for i in 0..cost.oob_reads {
        let Ok(_) = flash.read_oob(page(geometry.pbn(die_of(i), 1), i), Cause::Map, none);
    }
    for i in 0..cost.page_reads {
        let Ok(_) = flash.read_map(page(geometry.pbn(die_of(i), 1), i), |_| (), none);
    }
    for i in 0..cost.programs {
        let to = page(geometry.pbn(die_of(i), 2), i);
        let Ok(_) = flash.program_map(to, Oob::new(Lpn(0), Role::Map), |_| (), none);
    }
    for i in 0..cost.erases {
        let Ok(_) = flash.erase(geometry.pbn(die_of(i), 0), Cause::Map, none);
    }
    flash.clock.finish();
    flash.clock.last_end_ns()
}

#[test]
fn closed_form_equals_the_simulation() {
    let mut small = part("mt29f16g08").unwrap().clone();
    small.pages_per_block = 8;
    for dies in [1, 3, 4] {
        let device = Device::one_die_a_channel(small.clone(), dies, 6, u64::from(dies) * 16);
        for [oob_reads, page_reads, programs, erases] in
            [[1, 0, 0, 0], [7, 0, 0, 0], [8, 3, 5, 2], [5, 1, 0, 6]]
        {
            let cost = RecoveryCost {
                page_reads,
                programs,
                erases,
                ..RecoveryCost::scan("", oob_reads)
            };
            let expected = simulated::<Events>(&device, &cost);
            assert_eq!(simulated::<Closed>(&device, &cost), expected);
            // Die 0 does its share of every kind, rounded up.
            assert_eq!(time_ns(&device.machine(), &cost), expected);
        }
    }
}

/// 175 ns of commands, 50 us of cell, 128 bytes of 25 ns.
#[test]
fn an_oob_takes_command_cell_and_bus() {
    let part = part("mt29f16g08").unwrap().clone();
    let device = Device::one_die_a_channel(part, 8, 100, 8 * 128);
    let time = time_ns(&device.machine(), &RecoveryCost::scan("", 8 * 1000));
    assert_eq!(time, 1000 * (175 + 50_000 + 3200));
}
