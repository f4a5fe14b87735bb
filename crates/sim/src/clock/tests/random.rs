//! Engines against the replayer on random lists.

use super::super::list::replay_on;
use super::super::{Closed, Events, Scheduled};
use super::*;
use floatgate_core::report::Cause;

const CASES: u64 = 4000;

fn wanted(machine: &Machine, ops: &[ListOp], seed: u64) -> Vec<(u64, u64)> {
    match replay_on(machine, ops) {
        Ok(times) => times,
        Err(why) => panic!("seed {seed}: {why}"),
    }
}

#[test]
fn events_equal_the_replayer() {
    for seed in 0..CASES {
        let mut rng = Rng(seed);
        let machine = random_machine(&mut rng);
        let len = 1 + rng.below(60) as usize;
        let ops = random_list(&mut rng, &machine, len);
        let times = run_list::<Events>(&machine, &ops, |_, _, _| {});
        assert_eq!(
            times,
            wanted(&machine, &ops, seed),
            "seed {seed}: {machine:?}"
        );
    }
}

#[test]
fn the_order_of_issue_is_that_of_the_replayer_under_the_scheduler_too() {
    for seed in 0..CASES {
        let mut rng = Rng(seed);
        let machine = random_machine(&mut rng);
        let len = 1 + rng.below(60) as usize;
        let ops = random_list(&mut rng, &machine, len);
        let times = run_list::<Scheduled>(&machine, &ops, |_, _, _| {});
        assert_eq!(
            times,
            wanted(&machine, &ops, seed),
            "seed {seed}: {machine:?}"
        );
    }
}

#[test]
fn closed_equals_events_and_the_replayer_where_it_fits() {
    let mut fitting = 0;
    for seed in 0..CASES {
        let mut rng = Rng(seed ^ 0xc105_ed00);
        let mut machine = random_machine(&mut rng);
        if rng.chance(60) {
            machine.channels = machine.dies + rng.below(2) as u32;
        }
        if !Closed::fits(&machine) {
            continue;
        }
        fitting += 1;
        let len = 1 + rng.below(60) as usize;
        let ops = random_list(&mut rng, &machine, len);
        let closed = run_list::<Closed>(&machine, &ops, |_, _, _| {});
        assert_eq!(
            closed,
            wanted(&machine, &ops, seed),
            "seed {seed}: {machine:?}"
        );
        let events = run_list::<Events>(&machine, &ops, |_, _, _| {});
        assert_eq!(closed, events, "seed {seed}: {machine:?}");
    }
    assert!(fitting > CASES / 2);
}

#[test]
fn closed_allows_times_that_go_down() {
    for seed in 0..500 {
        let mut rng = Rng(seed ^ 0xd0_0000);
        let mut machine = random_machine(&mut rng);
        (machine.channels, machine.package_dies) = (machine.dies, 1);
        let mut ops = random_list(&mut rng, &machine, 40);
        for op in &mut ops {
            op.at = rng.below(1_000_000);
        }
        let closed = run_list::<Closed>(&machine, &ops, |_, _, _| {});
        assert_eq!(closed, wanted(&machine, &ops, seed), "seed {seed}");
    }
}

#[test]
fn looking_at_the_clock_changes_nothing() {
    for seed in 0..CASES / 2 {
        let mut rng = Rng(seed ^ 0xadba_0ce5);
        let machine = random_machine(&mut rng);
        let len = 1 + rng.below(60) as usize;
        let ops = random_list(&mut rng, &machine, len);
        let mut meddler = Rng(seed);
        let times = run_list::<Events>(&machine, &ops, |clock, number, done| {
            let at = ops[number].at;
            let next_at = ops.get(number + 1).map_or(at, |op| op.at);
            match meddler.below(4) {
                0 => clock.advance(at + meddler.below(next_at - at + 1)),
                1 => clock.advance(next_at),
                _ => {}
            }
            clock.drain(done);
        });
        assert_eq!(times, wanted(&machine, &ops, seed), "seed {seed}");
    }
}

#[test]
fn known_ends_never_change_and_busy_times_add_up() {
    for seed in 0..500 {
        let mut rng = Rng(seed ^ 0x4b0b_5eed);
        let machine = random_machine(&mut rng);
        let ops = random_list(&mut rng, &machine, 50);
        let wanted = wanted(&machine, &ops, seed);
        let mut clock = Events::new(&machine);
        let mut tokens = Vec::new();
        for op in &ops {
            clock.set_time(op.at);
            let after = op
                .after
                .iter()
                .fold(Default::default(), |joined, &earlier| {
                    clock.join(tokens[earlier], joined)
                });
            tokens.push(clock.issue(op.flash_op(), after));
            // Channels that nothing is issued to are looked at only when somebody asks.
            clock.advance(op.at);
            for (token, time) in tokens.iter().zip(&wanted) {
                match clock.known_end(*token) {
                    Some(0) => assert!(time.1 <= op.at, "seed {seed}: forgotten too early"),
                    Some(end_ns) => assert_eq!(end_ns, time.1, "seed {seed}"),
                    None => assert!(time.1 > op.at, "seed {seed}: unknown too long"),
                }
            }
        }
        let mut dies = vec![0; machine.dies as usize];
        let mut channels = vec![0; machine.channels as usize];
        let mut pcm = 0;
        for op in &ops {
            let phases = machine.phases(op.flash_op());
            match op.die {
                Some(die) => {
                    dies[die as usize] += phases.total_ns();
                    channels[machine.channel_of(die) as usize] += phases.bus_ns();
                }
                None => pcm += phases.total_ns(),
            }
        }
        assert_eq!(clock.die_busy_ns(), dies);
        assert_eq!(clock.channel_busy_ns(), channels);
        assert_eq!(clock.pcm_busy_ns(), pcm);
    }
}

#[test]
fn a_reset_clock_is_as_new() {
    for seed in 0..300 {
        let mut rng = Rng(seed ^ 0x4e5e7);
        let machine = random_machine(&mut rng);
        let first = random_list(&mut rng, &machine, 30);
        let second = random_list(&mut rng, &machine, 30);
        let mut clock = Events::new(&machine);
        let mut old = Default::default();
        for op in &first {
            clock.set_time(op.at);
            clock.begin_request(7);
            old = clock.issue(op.flash_op(), old);
            clock.own(old);
            clock.end_request();
        }
        clock.reset();
        assert!(clock.known_end(old).is_some(), "void, but harmless");
        let mut tokens = Vec::new();
        for op in &second {
            clock.set_time(op.at);
            let mut after = Default::default();
            for &earlier in &op.after {
                after = clock.join(after, tokens[earlier]);
            }
            tokens.push(clock.issue(op.flash_op(), after));
        }
        clock.finish();
        let wanted = wanted(&machine, &second, seed);
        assert_eq!(
            clock.last_end_ns(),
            wanted.iter().map(|t| t.1).max().unwrap_or(0)
        );
        assert_eq!(clock.next_completion(), None);
    }
}

/// A random list in which some items are runs of copies inside a die: the items as (first operation, last
/// operation, pages of the run or 0), and the operations one by one. Some lists have runs so long that those on one channel
/// fall into step.
fn random_runs(rng: &mut Rng, machine: &Machine) -> (Vec<(usize, usize, u32)>, Vec<ListOp>) {
    let len = 1 + rng.below(30) as usize;
    let list = random_list(rng, machine, len);
    let longest = if rng.chance(30) { 80 } else { 9 };
    let (mut items, mut ops): (Vec<(usize, usize, u32)>, Vec<ListOp>) = (Vec::new(), Vec::new());
    for mut item in list {
        let first = ops.len();
        item.after
            .iter_mut()
            .for_each(|earlier| *earlier = items[*earlier].1);
        let pages = if rng.chance(50) {
            1 + rng.below(longest) as u32
        } else {
            0
        };
        if pages == 0 {
            ops.push(item);
            items.push((first, first, 0));
            continue;
        }
        let die = item.die.unwrap_or(0);
        let copyback = rng.chance(30);
        for _ in 0..pages {
            let after = std::mem::take(&mut item.after);
            if copyback {
                ops.push(op(OpKind::CopyBack, die).at(item.at).after(&after));
            } else {
                ops.push(op(OpKind::Read, die).at(item.at).after(&after));
                let read = ops.len() - 1;
                ops.push(op(OpKind::Program, die).at(item.at).after(&[read]));
            }
        }
        items.push((first, ops.len() - 1, pages));
    }
    (items, ops)
}

/// Runs of copies in one call, on channels of few dies and of many, against their operations one by one.
#[test]
fn runs_of_copies_equal_the_replayer() {
    for seed in 0..CASES {
        let mut rng = Rng(seed ^ 0x0005_0fc0_b1e5);
        let mut machine = random_machine(&mut rng);
        if rng.chance(20) {
            machine.dies = machine.channels * (10 + rng.below(8) as u32);
        }
        let (items, ops) = random_runs(&mut rng, &machine);
        let times = wanted(&machine, &ops, seed);
        let mut clock = Events::new(&machine);
        let mut tokens = vec![Default::default(); ops.len()];
        let mut done = Vec::new();
        for (number, &(first, last, pages)) in items.iter().enumerate() {
            clock.set_time(ops[first].at);
            clock.begin_request(number as u64);
            let after = ops[first]
                .after
                .iter()
                .fold(Default::default(), |all, &earlier| {
                    clock.join(all, tokens[earlier])
                });
            let op = ops[first].flash_op();
            tokens[last] = if pages == 0 {
                clock.issue(op, after)
            } else {
                clock.copies(op.die, pages, op.kind == OpKind::CopyBack, Cause::Gc, after)
            };
            clock.own(tokens[last]);
            match clock.end_request_known() {
                Some(completion) => done.push(completion),
                None if rng.chance(20) => clock.drain(&mut done),
                None => {}
            }
        }
        clock.finish();
        clock.drain(&mut done);
        done.sort_unstable_by_key(|completion| completion.request);
        for (number, (&(first, last, _), completion)) in items.iter().zip(&done).enumerate() {
            let wanted = Completion {
                request: number as u64,
                first_start_ns: times[first].0,
                end_ns: times[last].1,
            };
            assert_eq!(*completion, wanted, "seed {seed}: {machine:?}");
        }
        assert_eq!(done.len(), items.len());
    }
}

/// Four dies that collect for long have fallen into step when another one takes the bus now and then.
#[test]
fn runs_in_step_are_put_off_by_others() {
    for seed in 0..200 {
        let mut rng = Rng(seed ^ 0x0d15_74b0);
        let machine = ssdsim(1, 5);
        let (mut ops, mut at) = (Vec::new(), 0);
        for die in 0..4 {
            for _ in 0..200 {
                ops.push(op(OpKind::Read, die));
                ops.push(op(OpKind::Program, die).after(&[ops.len() - 1]));
            }
        }
        let singles = ops.len();
        for _ in 0..6 {
            at += 1_000_000 + rng.below(12_000_000);
            ops.push(op(OpKind::Program, 4).at(at));
        }
        let times = wanted(&machine, &ops, seed);
        let mut clock = Events::new(&machine);
        let mut done = Vec::new();
        for number in 0..10 {
            let single = number >= 4;
            clock.set_time(if single {
                ops[singles + number - 4].at
            } else {
                0
            });
            clock.begin_request(number as u64);
            let end = match single {
                true => clock.issue(ops[singles].flash_op(), Default::default()),
                false => clock.copies(number as u32, 200, false, Cause::Gc, Default::default()),
            };
            clock.own(end);
            clock.end_request();
        }
        clock.finish();
        clock.drain(&mut done);
        done.sort_unstable_by_key(|completion| completion.request);
        let ends: Vec<_> = done.iter().map(|completion| completion.end_ns).collect();
        let last = (0..4).map(|die| times[400 * die + 399].1);
        let all: Vec<_> = last
            .chain(times[singles..].iter().map(|time| time.1))
            .collect();
        assert_eq!(ends, all, "seed {seed}");
    }
}
