//! Cache commands (docs/chips.md).

use super::super::{Closed, Events};
use super::*;
use OpKind::{Erase, Program, Read};

/// The part `ssdsim`: 175 ns of command and address, 52,800 of data, 20,000 to read, 200,000 to program.
fn cached(channels: u32, dies: u32) -> Machine {
    Machine {
        cache_commands: true,
        ..ssdsim(channels, dies)
    }
}

const DATA_NS: u64 = 52_800;
const COMMAND_NS: u64 = 175;

fn times(machine: &Machine, ops: &[ListOp]) -> Vec<(u64, u64)> {
    assert!(!Closed::fits(machine));
    run_list::<Events>(machine, ops, |_, _, _| {})
}

#[test]
fn programs_follow_each_other_at_the_distance_of_their_cells() {
    let ops = vec![op(Program, 0); 4];
    let bus_ns = COMMAND_NS + DATA_NS;
    // The data of the second comes in at once; that of the third waits until the cells have begun with the second.
    let starts = [0, bus_ns, bus_ns + 200_000, bus_ns + 400_000];
    for (n, (start_ns, end_ns)) in times(&cached(1, 1), &ops).into_iter().enumerate() {
        assert_eq!(start_ns, starts[n], "start of program {n}");
        assert_eq!(
            end_ns,
            bus_ns + 200_000 * (n as u64 + 1),
            "end of program {n}"
        );
    }
}

#[test]
fn reads_follow_each_other_at_the_distance_of_their_data() {
    let ops = vec![op(Read, 0); 4];
    let first_ns = COMMAND_NS + 20_000;
    for (n, (start_ns, end_ns)) in times(&cached(1, 1), &ops).into_iter().enumerate() {
        // Sensed as soon as the page before goes out.
        let since_ns = match n {
            0 => 0,
            1 => first_ns,
            n => first_ns + DATA_NS * (n as u64 - 1),
        };
        assert_eq!(start_ns, since_ns, "start of read {n}");
        assert_eq!(
            end_ns,
            first_ns + DATA_NS * (n as u64 + 1),
            "end of read {n}"
        );
    }
}

/// With cells slower than the bus the reads follow each other at the distance of the cells.
#[test]
fn slow_cells_decide() {
    let machine = Machine {
        t_r_ns: 100_000,
        ..cached(1, 1)
    };
    let ends: Vec<_> = times(&machine, &vec![op(Read, 0); 3])
        .into_iter()
        .map(|time| time.1)
        .collect();
    let first_ns = COMMAND_NS + 100_000 + DATA_NS;
    assert_eq!(ends, [first_ns, first_ns + 100_000, first_ns + 200_000]);
}

#[test]
fn other_neighbours_gain_nothing() {
    let kinds = [Read, Program, Read, Erase, Program, Erase, Read];
    let ops: Vec<_> = kinds.map(|kind| op(kind, 0)).into();
    assert_eq!(
        times(&cached(1, 1), &ops),
        run_list::<Events>(&ssdsim(1, 1), &ops, |_, _, _| {})
    );
}

/// An operation that comes when the die is free finds it as ever.
#[test]
fn who_comes_late_gains_nothing() {
    for kind in [Read, Program] {
        let ops = [op(kind, 0), op(kind, 0).at(10_000_000)];
        assert_eq!(
            times(&cached(1, 1), &ops),
            run_list::<Events>(&ssdsim(1, 1), &ops, |_, _, _| {})
        );
    }
}

/// Nobody ends later than without, what a die is busy with fits into the time, and the bus holds one transfer at a time.
#[test]
fn cache_commands_at_random() {
    let mut gained = 0;
    for seed in 0..1_000 {
        let mut rng = Rng(seed ^ 0xcac4_ed00);
        let (channels, dies) = rng.pick(&[(1, 1), (1, 2), (2, 2), (2, 8)]);
        let machine = cached(channels, dies);
        let mut at = 0;
        let ops: Vec<_> = (0..40)
            .map(|_| {
                at += rng.below(2) * rng.below(200_000);
                let kind = rng.pick(&[Read, Read, Read, Program, Program, Program, Erase]);
                op(kind, rng.below(dies.into()) as u32).at(at)
            })
            .collect();
        let mut clock = Events::new(&machine);
        clock.watch(true);
        for (number, op) in ops.iter().enumerate() {
            clock.set_time(op.at);
            clock.begin_request(number as u64);
            let token = clock.issue(op.flash_op(), Default::default());
            clock.own(token);
            clock.end_request();
        }
        clock.finish();
        let last_ns = clock.last_end_ns();
        assert!(
            clock
                .die_busy_ns()
                .iter()
                .all(|&busy_ns| busy_ns <= last_ns),
            "seed {seed}"
        );
        let done = times(&machine, &ops);
        let without = run_list::<Events>(&ssdsim(channels, dies), &ops, |_, _, _| {});
        if dies <= channels {
            for (with, without) in done.iter().zip(&without) {
                assert!(with.1 <= without.1, "seed {seed}: {with:?} {without:?}");
            }
        }
        gained += u32::from(
            done.iter().map(|time| time.1).max() < without.iter().map(|time| time.1).max(),
        );
        for die in 0..dies {
            let mut on_die = ops.iter().zip(&done).filter(|(op, _)| op.die == Some(die));
            let Some((mut before, mut time_before)) = on_die.next() else {
                continue;
            };
            for (op, time) in on_die {
                let phases = machine.phases(op.flash_op());
                // What the cells and the bus do for it comes after what they do for the one before.
                assert!(
                    time.1
                        >= time_before.1
                            + phases
                                .cell_ns()
                                .min(phases.bus_ns().saturating_sub(COMMAND_NS))
                                .min(DATA_NS)
                );
                if op.op != before.op {
                    assert!(time.0 >= time_before.1, "seed {seed}");
                }
                (before, time_before) = (op, time);
            }
        }
    }
    assert!(gained > 500, "{gained}");
}
