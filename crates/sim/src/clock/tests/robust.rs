//! Absurd input, long runs, conformance files.

use super::super::list::{self, Latencies, TimingConfig, TimingVector, replay_on};
use super::super::{Closed, Events, MAX_DIES, Policy, Schedule, Scheduled, TIME_MAX_NS};
use super::*;
use floatgate_core::report::Cause;

fn absurd() -> Machine {
    Machine {
        channels: 2,
        dies: 4,
        planes: u32::MAX,
        t_r_ns: u64::MAX,
        t_prog_ns: u64::MAX,
        t_bers_ns: u64::MAX,
        t_r_oob_ns: u64::MAX,
        cycle_ns: u64::MAX,
        in_ps: u64::MAX,
        out_ps: u64::MAX,
        page_bytes: u32::MAX,
        oob_bytes: u32::MAX,
        pcm_read_ns: u64::MAX,
        pcm_write_ns: u64::MAX,
        pcm: PcmSetup::default(),
        mode: Mode::Onfi,
        ..Machine::default()
    }
}

fn abuse<C: Clock>(machine: &Machine) {
    let mut rng = Rng(1);
    let ops: Vec<_> = (0..50)
        .map(|i| {
            let op = random_op(&mut rng, machine).planes(u32::MAX);
            if i % 2 == 0 { op.bytes(u32::MAX) } else { op }
        })
        .collect();
    let times = run_list::<C>(machine, &ops, |_, _, _| {});
    assert!(times.iter().all(|t| t.0 <= t.1 && t.1 <= TIME_MAX_NS));
    let mut clock = C::new(machine);
    clock.set_time(u64::MAX);
    clock.begin_request(u64::MAX);
    let end = clock.copies(0, 100, false, Cause::Gc, C::Token::default());
    clock.own(end);
    clock.end_request();
    assert!(clock.idle_since(u64::MAX) <= Some(TIME_MAX_NS));
    clock.advance(u64::MAX);
    clock.finish();
    assert_eq!(clock.last_end_ns(), TIME_MAX_NS);
}

#[test]
fn absurd_parameters_do_not_panic() {
    for mode in [Mode::Onfi, Mode::NoCmd, Mode::Flat] {
        let machine = Machine { mode, ..absurd() };
        abuse::<Events>(&machine);
        for name in Policy::NAMES {
            abuse::<Scheduled>(&Machine {
                schedule: Schedule {
                    policy: Policy::from_name(name).expect("a name of the list"),
                    ..Schedule::default()
                },
                ..machine.clone()
            });
        }
        abuse::<Closed>(&Machine {
            channels: 4,
            ..machine
        });
    }
    let mut closed = Closed::new(&Machine {
        channels: 4,
        ..absurd()
    });
    closed.copies(0, u32::MAX, false, Cause::Gc, Default::default());
    assert_eq!(closed.last_end_ns(), TIME_MAX_NS);
}

#[test]
fn machines_without_parts_are_refused_and_survived() {
    for machine in [
        Machine {
            channels: 0,
            ..Machine::default()
        },
        Machine {
            dies: 0,
            ..Machine::default()
        },
        Machine {
            planes: 0,
            ..Machine::default()
        },
        Machine {
            dies: MAX_DIES + 1,
            ..Machine::default()
        },
    ] {
        assert!(machine.validate().is_err());
        let mut clock = Events::new(&machine);
        clock.issue(FlashOp::new(OpKind::Read, 0), Default::default());
        clock.finish();
        assert_eq!(clock.last_end_ns(), 72_975);
    }
    assert_eq!(Machine::default().validate(), Ok(()));
    assert_eq!(ssdsim(1, MAX_DIES).validate(), Ok(()));
}

#[test]
fn bad_lists_are_errors() {
    let machine = ssdsim(1, 2);
    let bad = |ops: &[ListOp]| replay_on(&machine, ops).is_err();
    assert!(!bad(&[op(OpKind::Read, 1)]));
    assert!(bad(&[op(OpKind::Read, 2)]));
    assert!(bad(&[op(OpKind::Read, 0).planes(0)]));
    assert!(bad(&[op(OpKind::Read, 0).after(&[0])]));
    assert!(bad(&[op(OpKind::Read, 0), op(OpKind::Read, 0).after(&[2])]));
    assert!(bad(&[op(OpKind::Read, 0).at(u64::MAX)]));
    let mut without_die = op(OpKind::Read, 0);
    without_die.die = None;
    assert!(bad(&[without_die]));
    assert!(replay_on(&absurd(), &[op(OpKind::Read, 0)]).is_err());
    assert!(replay_on(&ssdsim(0, 1), &[]).is_err());
    assert_eq!(replay_on(&machine, &[]), Ok(vec![]));
}

#[test]
fn a_vector_is_read_and_checked() {
    let text = r#"{"config": {"channels": 1, "dies": 2, "mode": "nocmd",
        "part": {"tR": 20000, "tPROG": 200000, "tBERS": 1500000, "pcm_read": 100}},
        "ops": [{"op": "read", "die": 0}, {"op": "pcm_read", "after": [0], "at": 5},
                {"op": "program", "die": 1, "planes": 2, "bytes": 528},
                {"op": "oob", "die": 1}, {"op": "copyback", "die": 0}],
        "times": [[0, 79200], [79200, 79300], [0, 226400],
                  [226400, 248000], [79200, 299200]],
        "total": 299200}"#;
    let mut vector: TimingVector = serde_json::from_str(text).expect("a vector");
    assert_eq!(vector.config.part.t_r_oob, None);
    assert_eq!(vector.config.machine().t_r_oob_ns, 20_000);
    assert_eq!(list::check(&vector), Ok(()));
    for (number, refused) in [(0, false), (1, true), (2, false), (3, true), (4, true)] {
        let mut vector = vector.clone();
        vector.ops[number].bytes = Some(528);
        let refusal = list::check(&vector).err();
        let named = refusal.is_some_and(|why| why.contains("`bytes`"));
        assert_eq!(named, refused, "operation {number}");
    }
    vector.total += 1;
    assert!(list::check(&vector).is_err_and(|why| why.contains("total")));
    vector.times[2].0 = 1;
    assert!(list::check(&vector).is_err_and(|why| why.contains("operation 2")));
    vector.times.pop();
    assert!(list::check(&vector).is_err());
}

#[test]
fn the_timing_vectors_come_out() {
    let folder = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../docs/spec/vectors/timing"
    );
    let files = std::fs::read_dir(folder).expect("the vectors of the specification");
    let files: Vec<_> = files.collect();
    assert!(!files.is_empty(), "no vectors in {folder}");
    for file in files {
        let path = file.expect("a directory entry").path();
        let text = std::fs::read_to_string(&path).expect("a readable vector");
        let vector: TimingVector = serde_json::from_str(&text).expect("a vector");
        assert_eq!(list::check(&vector), Ok(()), "{}", path.display());
        println!("{} holds", path.display());
    }
}

#[test]
fn the_config_of_a_vector_is_a_machine() {
    let config = TimingConfig {
        channels: 4,
        dies: 16,
        mode: Mode::Onfi,
        part: Latencies {
            t_r: 20_000,
            t_prog: 200_000,
            t_bers: 1_500_000,
            t_r_oob: Some(20_000),
            cycle: 25,
            in_ps: 25_000,
            out_ps: 25_000,
            page_bytes: 2048,
            oob_bytes: 64,
            pcm_read: 115,
            pcm_write: 90_000,
        },
    };
    assert_eq!(config.machine(), ssdsim(4, 16));
    assert_eq!(
        list::replay(&config, &[op(OpKind::Read, 15)]),
        Ok(vec![(0, 72_975)])
    );
}

/// Memory holds the backlog, not the past.
#[test]
fn a_long_run_keeps_little() {
    let machine = ssdsim(2, 8);
    let mut clock = Events::new(&machine);
    let mut rng = Rng(5);
    let (mut at, mut done, mut most) = (0, Vec::new(), 0);
    for request in 0..200_000_u64 {
        at += 400_000;
        clock.set_time(at);
        clock.begin_request(request);
        let mut all = Default::default();
        for _ in 0..=rng.below(3) {
            let die = rng.below(8) as u32;
            let read = clock.issue(FlashOp::new(OpKind::Read, die), all);
            let write = clock.issue(FlashOp::new(OpKind::Program, (die + 1) % 8), read);
            all = clock.join(all, write);
            clock.own(all);
        }
        clock.issue(FlashOp::new(OpKind::PcmWrite, 0), all);
        clock.end_request();
        clock.drain(&mut done);
        most = most.max(clock.footprint());
    }
    assert!(most < 1000, "{most} records kept");
    assert!(done.len() > 199_000);
}

/// Requests of more pages than a group may have leaves.
#[test]
fn giant_requests_and_nested_joins() {
    let machine = ssdsim(2, 8);
    let mut clock = Events::new(&machine);
    clock.begin_request(0);
    let pages: u64 = 80_000;
    let (mut left, mut pairs) = (Default::default(), Vec::new());
    for page in 0..pages {
        let op = FlashOp::new(OpKind::Program, (page % 8) as u32);
        let token = clock.issue(op, Default::default());
        clock.own(token);
        left = clock.join(token, left);
        if page % 2 == 0 {
            pairs.push(token);
        }
    }
    while pairs.len() > 1 {
        pairs = pairs
            .chunks(2)
            .map(|pair| clock.join(pair[0], pair[pair.len() - 1]))
            .collect();
    }
    let after_all = clock.issue(FlashOp::new(OpKind::PcmRead, 0), left);
    let after_even = clock.issue(FlashOp::new(OpKind::PcmRead, 0), pairs[0]);
    let both = clock.join(after_all, after_even);
    let both = clock.join(both, left);
    clock.end_request();
    clock.finish();
    let (c, w, t_prog) = (2, 52_975, 200_000);
    let (q, d) = (pages / 8, 8 / c);
    let end = (q - 1) * (d * w).max(w + t_prog) + d * w + t_prog;
    assert_eq!(clock.next_completion().map(|done| done.end_ns), Some(end));
    assert_eq!(clock.known_end(left), Some(end));
    assert_eq!(clock.known_end(after_all), Some(end + 115));
    assert_eq!(clock.known_end(both), Some(end + 230));
}

/// A token that is long over is over, and no more.
#[test]
fn stale_tokens_wait_for_nothing() {
    let machine = ssdsim(1, 2);
    let mut clock = Events::new(&machine);
    let old = clock.issue(FlashOp::new(OpKind::Program, 0), Default::default());
    let other = clock.issue(FlashOp::new(OpKind::Program, 1), Default::default());
    let group = clock.join(old, other);
    for step in 1..1000 {
        clock.set_time(step * 1_000_000);
        clock.issue(FlashOp::new(OpKind::Read, 0), Default::default());
        let new = clock.issue(FlashOp::new(OpKind::Read, 1), Default::default());
        clock.join(new, Default::default());
    }
    clock.set_time(2_000_000_000);
    for stale in [old, other, group, clock.join(group, old)] {
        clock.begin_request(1);
        let read = clock.issue(FlashOp::new(OpKind::PcmRead, 0), stale);
        clock.own(stale);
        clock.own(read);
        clock.end_request();
        let done = clock.next_completion().expect("a completion");
        assert_eq!(done.end_ns - done.first_start_ns, 115);
        clock.set_time(done.end_ns);
    }
}
