//! Schedules by hand, to the nanosecond, and what no schedule may do.
//!
//! Part `ssdsim`: a read holds the bus for 175 ns, the die for 20,000 and the bus for 52,800 (72,975 in all); a program the
//! bus for 52,975 and the die for 200,000; an erase the bus for 125 and the die for 1,500,000.

use super::super::{Policy, Schedule, Scheduled, Suspend};
use super::*;
use floatgate_core::report::Cause;

const READ_NS: u64 = 72_975;
const PROGRAM_NS: u64 = 252_975;
const ERASE_NS: u64 = 1_500_125;

/// An operation for a cause, on a page.
fn on(kind: OpKind, die: u32, cause: Cause, page: u32) -> FlashOp {
    FlashOp::new(kind, die).because(cause).on(page)
}

fn machine(schedule: Schedule) -> Machine {
    Machine {
        schedule,
        pages_per_block: 64,
        ..ssdsim(1, 2)
    }
}

fn policy(policy: Policy) -> Schedule {
    Schedule {
        policy,
        ..Schedule::default()
    }
}

/// Issues operations, each at its time as a request of its own: their starts and ends.
fn times(schedule: Schedule, ops: &[(u64, FlashOp)]) -> Vec<(u64, u64)> {
    let mut clock = Scheduled::new(&machine(schedule));
    for (number, &(at_ns, op)) in ops.iter().enumerate() {
        clock.set_time(at_ns);
        clock.begin_request(number as u64);
        let token = clock.issue(op, Default::default());
        clock.own(token);
        clock.end_request();
    }
    clock.finish();
    let mut done = Vec::new();
    clock.drain(&mut done);
    done.sort_by_key(|completion| completion.request);
    assert_eq!(done.len(), ops.len(), "every operation ends");
    done.iter()
        .map(|done| (done.first_start_ns, done.end_ns))
        .collect()
}

#[test]
fn a_read_goes_before_the_programs_that_wait() {
    let ops = [
        (0, on(OpKind::Program, 0, Cause::Host, 0)),
        (0, on(OpKind::Program, 0, Cause::Host, 1)),
        (10, on(OpKind::Read, 0, Cause::Host, 200)),
    ];
    let first = PROGRAM_NS;
    for name in ["fifo", "ready"] {
        let name = policy(Policy::from_name(name).expect("a policy"));
        let got = times(name, &ops);
        assert_eq!(got[2], (2 * first, 2 * first + READ_NS));
    }
    for by in [Policy::ReadFirst, Policy::HostFirst] {
        let got = times(policy(by), &ops);
        assert_eq!(got[2], (first, first + READ_NS));
        assert_eq!(got[1], (first + READ_NS, 2 * first + READ_NS));
    }
}

/// A copy of a collection is a read and a program; a read of the host slips in between every two of its operations, a program
/// of the host only if the host goes first.
#[test]
fn collection_goes_on_piece_by_piece() {
    let copy = |page: u32| {
        [
            (0, on(OpKind::Read, 0, Cause::Gc, 128 + page)),
            (0, on(OpKind::Program, 0, Cause::Gc, 64 + page)),
        ]
    };
    let mut ops: Vec<_> = (0..3).flat_map(copy).collect();
    ops.push((0, on(OpKind::Erase, 0, Cause::Gc, 128)));
    ops.push((1, on(OpKind::Program, 0, Cause::Host, 0)));
    ops.push((2, on(OpKind::Read, 0, Cause::Host, 300)));
    // The first read of the collection has begun.
    let read_first = times(policy(Policy::ReadFirst), &ops);
    assert_eq!(read_first[8], (READ_NS, 2 * READ_NS));
    let collected = 4 * READ_NS + 3 * PROGRAM_NS + ERASE_NS;
    assert_eq!(read_first[7], (collected, collected + PROGRAM_NS));
    let host_first = times(policy(Policy::HostFirst), &ops);
    assert_eq!(host_first[8], (READ_NS, 2 * READ_NS));
    assert_eq!(host_first[7], (2 * READ_NS, 2 * READ_NS + PROGRAM_NS));
    assert_eq!(
        host_first[6].1,
        collected + PROGRAM_NS,
        "the work is the same"
    );
}

/// The erase has run for 100,000 ns when the read comes: 20,000 ns until the die can read, 72,975 for the read, and then the
/// rest of the erase and 20,000 ns more.
#[test]
fn a_read_interrupts_an_erase() {
    let ops = [
        (0, on(OpKind::Erase, 0, Cause::Gc, 64)),
        (100_125, on(OpKind::Read, 0, Cause::Host, 0)),
    ];
    let schedule = Schedule {
        suspend: Suspend::Erase,
        ..policy(Policy::ReadFirst)
    };
    let got = times(schedule, &ops);
    assert_eq!(got[1], (120_125, 120_125 + READ_NS));
    let resumed = 120_125 + READ_NS;
    assert_eq!(got[0], (0, resumed + 20_000 + 1_400_000));
    let whole = times(policy(Policy::ReadFirst), &ops);
    assert_eq!(whole[0], (0, ERASE_NS));
    assert_eq!(whole[1].0, ERASE_NS);
}

#[test]
fn a_program_is_interrupted_only_where_the_schedule_says_so_and_so_often() {
    let mut ops = vec![(0, on(OpKind::Program, 0, Cause::Host, 0))];
    let interrupting = 60_000;
    ops.push((interrupting, on(OpKind::Read, 0, Cause::Host, 200)));
    ops.push((200_000, on(OpKind::Read, 0, Cause::Host, 201)));
    let schedule = |suspend, suspend_limit| Schedule {
        suspend,
        suspend_limit,
        ..policy(Policy::HostFirst)
    };
    let got = times(schedule(Suspend::Erase, 8), &ops);
    assert_eq!(got[0].1, PROGRAM_NS, "a program is no erase");
    let got = times(schedule(Suspend::Both, 1), &ops);
    let read_ends = interrupting + 20_000 + READ_NS;
    let left = PROGRAM_NS - interrupting;
    assert_eq!(got[1].1, read_ends);
    assert_eq!(got[0].1, read_ends + 20_000 + left);
    assert_eq!(got[2].0, got[0].1, "once is the limit");
    let twice = times(schedule(Suspend::Program, 2), &ops);
    assert_eq!(twice[2], (220_000, 220_000 + READ_NS));
    assert_eq!(twice[0].1, got[0].1 + 40_000 + READ_NS);
}

/// What is nearly over is not worth the command.
#[test]
fn the_end_of_an_erase_is_not_interrupted() {
    let schedule = Schedule {
        suspend: Suspend::Both,
        ..policy(Policy::ReadFirst)
    };
    let ops = [
        (0, on(OpKind::Erase, 0, Cause::Gc, 64)),
        (ERASE_NS - 20_000, on(OpKind::Read, 0, Cause::Host, 0)),
    ];
    let got = times(schedule, &ops);
    assert_eq!(got, [(0, ERASE_NS), (ERASE_NS, ERASE_NS + READ_NS)]);
}

#[test]
fn who_is_overtaken_too_often_goes_first() {
    let mut ops = vec![(0, on(OpKind::Program, 0, Cause::Host, 0))];
    ops.push((0, on(OpKind::Program, 0, Cause::Host, 1)));
    ops.extend((0..6).map(|page| (1, on(OpKind::Read, 0, Cause::Host, 200 + page))));
    let schedule = |overtakes| Schedule {
        overtakes,
        ..policy(Policy::ReadFirst)
    };
    for (overtakes, before) in [(0, 6), (2, 2), (64, 6)] {
        let got = times(schedule(overtakes), &ops);
        assert_eq!(got[1].0, PROGRAM_NS + before * READ_NS, "{overtakes}");
    }
}

/// Of the room between the marks, the share that is filled is the share of the turns that collection gets: with 6 of 6
/// operations waiting all, with 3 of 6 every other one.
#[test]
fn collection_that_falls_behind_goes_before_programs_of_the_host() {
    let mut ops = vec![(0, on(OpKind::Erase, 0, Cause::Gc, 640))];
    ops.extend((0..6).map(|page| (0, on(OpKind::Program, 0, Cause::Gc, 64 + page))));
    ops.extend((0..6).map(|page| (1, on(OpKind::Program, 0, Cause::Host, page))));
    let schedule = |gc_low, gc_high| Schedule {
        gc_low,
        gc_high,
        ..policy(Policy::HostFirst)
    };
    let order = |schedule| {
        let got = times(schedule, &ops);
        let mut by_start: Vec<_> = (1..ops.len()).collect();
        by_start.sort_by_key(|&op| got[op].0);
        let letter = |op: usize| if op <= 6 { 'g' } else { 'h' };
        by_start.into_iter().map(letter).collect::<String>()
    };
    assert_eq!(order(schedule(2, 0)), "hhhhhhgggggg");
    assert_eq!(order(schedule(7, 8)), "hhhhhhgggggg");
    assert_eq!(order(schedule(0, 6)), "ghgghghhghhg");
    assert_eq!(order(schedule(3, 3)), "gggghhhhhhgg");
}

/// A page that is being written comes from the controller, a page that is being moved where it was; nothing is erased under a
/// read, and nothing programmed before its erase.
#[test]
fn pages_and_blocks_keep_their_order() {
    let by = policy(Policy::ReadFirst);
    let written = [
        (0, on(OpKind::Erase, 0, Cause::Gc, 640)),
        (0, on(OpKind::Program, 0, Cause::Host, 0)),
        (1, on(OpKind::Read, 0, Cause::Host, 0)),
        (1, on(OpKind::Read, 0, Cause::Host, 1)),
    ];
    let got = times(by, &written);
    assert_eq!(got[3].0, ERASE_NS, "another page");
    assert_eq!(got[1].0, got[3].1);
    assert_eq!(got[2], (1, 1), "the controller still has it");

    let moved = [
        (0, on(OpKind::Erase, 0, Cause::Gc, 640)),
        (0, on(OpKind::Program, 0, Cause::Gc, 64)),
        (1, on(OpKind::Read, 0, Cause::Host, 64)),
    ];
    assert_eq!(times(by, &moved)[2].0, ERASE_NS, "read where it was");

    let erased = [
        (0, on(OpKind::Program, 0, Cause::Host, 0)),
        (0, on(OpKind::Erase, 0, Cause::Gc, 64)),
        (0, on(OpKind::Program, 0, Cause::Host, 64)),
        (0, on(OpKind::Program, 0, Cause::Host, 1)),
    ];
    let got = times(policy(Policy::HostFirst), &erased);
    assert_eq!(got[2].0, got[1].1, "its block must be erased first");
    assert_eq!(got[3].0, PROGRAM_NS, "the other block need not wait");
}

/// The read cannot begin before the one on the other die is over; the erase of its block waits for it.
#[test]
fn a_block_is_not_erased_while_a_read_of_it_waits_for_its_translation() {
    let mut clock = Scheduled::new(&machine(policy(Policy::ReadFirst)));
    clock.watch(true);
    clock.begin_request(0);
    let translation = clock.issue(on(OpKind::Read, 1, Cause::Map, 4096), Default::default());
    let read = clock.issue(on(OpKind::Read, 0, Cause::Host, 64), translation);
    clock.own(read);
    clock.end_request();
    clock.issue(on(OpKind::Erase, 0, Cause::Gc, 64), Default::default());
    clock.finish();
    let operations = clock.operations().expect("they are kept").clone();
    let times: Vec<_> = operations
        .iter()
        .map(|op| (op.start_ns, op.end_ns))
        .collect();
    let ends = [READ_NS, 2 * READ_NS, 2 * READ_NS + ERASE_NS];
    assert_eq!(
        times,
        [(0, ends[0]), (ends[0], ends[1]), (ends[1], ends[2])]
    );
}

/// Random work on a few blocks under every policy, as a flash would do it that programs, reads and erases in the order of the
/// calls: no operation begins before one that it depends on is over, a die does one thing at a time unless it is interrupted,
/// everything ends, and the clock forgets all of it.
#[test]
fn no_policy_breaks_a_rule() {
    for seed in 0..400 {
        let mut rng = Rng(seed);
        let schedule = Schedule {
            policy: rng.pick(&[Policy::Ready, Policy::ReadFirst, Policy::HostFirst]),
            overtakes: rng.pick(&[0, 1, 5]),
            gc_low: 2,
            gc_high: rng.pick(&[0, 8]),
            ..Schedule::default()
        };
        let dies = 1 + rng.below(3) as u32;
        let machine = Machine {
            dies,
            channels: 1 + rng.below(2) as u32,
            allocation: rng.pick(&Allocation::ALL),
            package_dies: 1 + rng.below(3) as u32,
            schedule,
            pages_per_block: 4,
            ..Machine::default()
        };
        let issued = random_work(&mut rng, dies);
        let mut clock = Scheduled::new(&machine);
        clock.watch(true);
        for (number, &(at_ns, op)) in issued.iter().enumerate() {
            clock.set_time(at_ns);
            clock.begin_request(number as u64);
            let token = clock.issue(op, Default::default());
            clock.own(token);
            clock.end_request();
        }
        clock.finish();
        let mut times = vec![None; issued.len()];
        for op in clock.operations().expect("kept").drain(..) {
            let number = op.request.expect("a request") as usize;
            assert_eq!(times[number].replace((op.start_ns, op.end_ns)), None);
        }
        let missing = times.iter().filter(|time| time.is_none()).count() as u64;
        let stats = clock.schedule_stats().expect("it has a schedule");
        assert_eq!(missing, stats.reads_from_controller, "seed {seed}");
        judge(&issued, &times, &format!("seed {seed}, {schedule:?}"));
        assert_eq!(clock.footprint(), 0, "seed {seed}");
    }
}

/// Whoever asks the clock about the past, or about what is complete, does not change what comes.
#[test]
fn looking_at_the_clock_changes_nothing() {
    for seed in 0..200 {
        let schedule = Schedule {
            policy: Policy::HostFirst,
            suspend: Suspend::Both,
            suspend_ns: 1_000,
            ..Schedule::default()
        };
        let machine = machine(schedule);
        let work = random_work(&mut Rng(seed), machine.dies);
        let times = |meddles: bool| {
            let (mut clock, mut rng) = (Scheduled::new(&machine), Rng(seed));
            let mut done = Vec::new();
            for (number, &(at_ns, op)) in work.iter().enumerate() {
                clock.set_time(at_ns);
                clock.begin_request(number as u64);
                let token = clock.issue(op, Default::default());
                clock.own(token);
                clock.end_request();
                let next_ns = work.get(number + 1).map_or(at_ns, |next| next.0);
                match rng.below(4) {
                    _ if !meddles => {}
                    0 => clock.settle(next_ns),
                    1 => clock.advance(next_ns),
                    2 => clock.catch_up(),
                    _ => clock.drain(&mut done),
                }
            }
            clock.finish();
            clock.drain(&mut done);
            done.sort_by_key(|done| done.request);
            done
        };
        assert_eq!(times(true), times(false), "seed {seed}");
    }
}

/// Blocks are filled, read and erased again, each on its die.
fn random_work(rng: &mut Rng, dies: u32) -> Vec<(u64, FlashOp)> {
    let mut next = [0u32; 6];
    let (mut at_ns, mut work) = (0, Vec::new());
    let gap_ns = rng.pick(&[0, 50_000, 400_000]);
    for _ in 0..60 {
        at_ns += rng.below(gap_ns + 1);
        let block = rng.below(6) as u32;
        let written = next[block as usize];
        let kind = match rng.below(3) {
            0 if written > 0 => OpKind::Read,
            _ if written < 4 => OpKind::Program,
            _ => OpKind::Erase,
        };
        let page = match kind {
            OpKind::Read => rng.below(written.into()) as u32,
            OpKind::Program => written,
            _ => 0,
        };
        next[block as usize] = match kind {
            OpKind::Program => written + 1,
            OpKind::Erase => 0,
            _ => written,
        };
        let cause = match kind {
            OpKind::Erase => Cause::Gc,
            _ => rng.pick(&[Cause::Host, Cause::Gc, Cause::Map]),
        };
        work.push((at_ns, on(kind, block % dies, cause, block * 4 + page)));
    }
    work
}

fn judge(issued: &[(u64, FlashOp)], times: &[Option<(u64, u64)>], case: &str) {
    let from_controller = |number: usize| {
        let mut before = issued[..number].iter().rev();
        let op = issued[number].1;
        let program =
            before.find(|(_, other)| other.kind == OpKind::Program && other.page == op.page);
        let is_held = |(_, program): &(u64, FlashOp)| program.cause != Cause::Gc;
        op.kind == OpKind::Read && op.cause != Cause::Gc && program.is_some_and(is_held)
    };
    for (later, &(at_ns, op)) in issued.iter().enumerate() {
        let Some(this) = times[later] else {
            assert!(from_controller(later), "{case}: {later} never ends");
            continue;
        };
        assert!(this.0 >= at_ns, "{case}: {later} before its issue");
        for (earlier, &(_, before)) in issued[..later].iter().enumerate() {
            let Some(that) = times[earlier] else {
                continue;
            };
            let same_block = op.page / 4 == before.page / 4;
            let waits = match (before.kind, op.kind) {
                (OpKind::Program, OpKind::Program) | (_, OpKind::Erase) if same_block => true,
                (OpKind::Erase, OpKind::Program) if same_block => true,
                (OpKind::Program, OpKind::Erase) => op.die == before.die,
                (OpKind::Program, OpKind::Read) if op.page == before.page => {
                    let mut since = issued[earlier + 1..later].iter();
                    let is_newest = !since
                        .any(|(_, other)| other.kind == OpKind::Program && other.page == op.page);
                    is_newest && op.cause == Cause::Gc
                }
                _ => false,
            };
            // A read of a page that is moved reads the old one, which the erase does not know of.
            let moved = before.kind == OpKind::Read && op.kind == OpKind::Erase;
            if waits && !moved {
                assert!(
                    that.1 <= this.0,
                    "{case}: {later} {op:?} before the end of {earlier} {before:?}"
                );
            }
            if op.die == before.die {
                let apart = that.1 <= this.0 || this.1 <= that.0;
                assert!(apart, "{case}: {earlier} and {later} at once");
            }
        }
    }
}
