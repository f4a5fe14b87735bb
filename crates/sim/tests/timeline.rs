//! The operations of the flash on their timeline: all of them, and each at its time.

mod common;

use common::config;
use floatgate_catalog as _;
use floatgate_core::report::{ByCause, Cause};
use floatgate_core::rng::SplitMix64;
use floatgate_core::{Ftl, Lpn, Striped};
use floatgate_schemes::{dftl::Dftl, fast::Fast, hat::Hat, page::Page};
use floatgate_sim::clock::{Does, Events, FlashOp, Machine, OpKind, Operation};
use floatgate_sim::config::{Copyback, RunConfig};
use floatgate_sim::host::Kind;
use floatgate_sim::requests::RequestRow;
use floatgate_sim::session::Session;
use floatgate_sim::timeline::TimelineFile;

/// A run of random requests with pauses: the session at its end, the operations and the rows.
fn played<S: Ftl<Page = Lpn>>(
    config: &RunConfig,
    seed: u64,
) -> (Session<S, Events>, Vec<Operation>, Vec<RequestRow>) {
    let mut session = Session::<S, Events>::new(config).expect("a valid configuration");
    session.record_operations();
    let (mut rng, mut now_ns) = (SplitMix64::new(seed), 0);
    let pages = u64::from(session.geometry().logical_pages);
    let mut operations = Vec::new();
    for _ in 0..2500 {
        now_ns += rng.below(400_000);
        let kind = [Kind::Write, Kind::Write, Kind::Read, Kind::Trim][rng.below(4) as usize];
        let count = 1 + rng.below(4);
        let first = Lpn(rng.below(pages - count) as u32);
        session.page_request(kind, first, count as u32, now_ns);
        operations.append(session.operations().expect("they are kept"));
    }
    session.finish();
    operations.append(session.operations().expect("they are kept"));
    let rows = session.request_rows().map(std::mem::take);
    (session, operations, rows.unwrap_or_default())
}

/// Counts of the operations, in the way of the counters.
#[derive(Debug, Default, PartialEq)]
struct Counted {
    reads: ByCause,
    programs: ByCause,
    oob_reads: u64,
    erases: u64,
}

impl Counted {
    fn of(operations: &[Operation]) -> Self {
        let mut counted = Self::default();
        for operation in operations {
            let cause = operation.cause;
            let add = |to: &mut ByCause, n: u64| match cause {
                Cause::Host => to.host += n,
                Cause::Gc => to.gc += n,
                Cause::Map => to.map += n,
            };
            match operation.does {
                Does::One(OpKind::Read) => add(&mut counted.reads, 1),
                Does::One(OpKind::Program) => add(&mut counted.programs, 1),
                Does::One(OpKind::OobRead) => counted.oob_reads += 1,
                Does::One(OpKind::Erase) => counted.erases += 1,
                Does::One(OpKind::CopyBack) => {
                    add(&mut counted.reads, 1);
                    add(&mut counted.programs, 1);
                }
                Does::Copies { pages, .. } => {
                    add(&mut counted.reads, pages.into());
                    add(&mut counted.programs, pages.into());
                }
                Does::One(OpKind::PcmRead | OpKind::PcmWrite) => {}
            }
        }
        counted
    }
}

/// No die does two things at once, nothing is shorter than it can be, and a request ends with an operation of its own.
fn check_times(operations: &[Operation], rows: &[RequestRow], machine: &Machine, has_pcm: bool) {
    let mut by_die = operations.to_vec();
    by_die.sort_by_key(|operation| (operation.die, operation.start_ns, operation.end_ns));
    for pair in by_die.windows(2) {
        let [a, b] = pair else { unreachable!() };
        assert!(a.die != b.die || a.end_ns <= b.start_ns, "{a:?} {b:?}");
    }
    for operation in operations {
        let least_ns = match operation.does {
            Does::One(kind) => machine.duration_ns(FlashOp::new(kind, 0)),
            Does::Copies { pages, inside } => {
                let of = |kind| machine.duration_ns(FlashOp::new(kind, 0));
                u64::from(pages)
                    * match inside {
                        true => of(OpKind::CopyBack),
                        false => of(OpKind::Read) + of(OpKind::Program),
                    }
            }
        };
        let took_ns = operation.end_ns - operation.start_ns;
        assert!(took_ns >= least_ns, "{operation:?} in {least_ns} ns");
    }
    for row in rows {
        let own = operations
            .iter()
            .filter(|of| of.request == Some(row.request));
        let own: Vec<&Operation> = own.filter(|of| of.cause == Cause::Host).collect();
        if let Some(last_ns) = own.iter().map(|of| of.end_ns).max() {
            // A page that was never written ends with the read of its entry in phase-change memory.
            let is_last = last_ns == row.end_ns || has_pcm && last_ns < row.end_ns;
            assert!(is_last, "{last_ns}: {row:?}");
        }
        let is_early = |of: &&&Operation| of.start_ns < row.issue_ns;
        assert_eq!(own.iter().filter(is_early).count(), 0, "{row:?}");
    }
}

fn check<S: Ftl<Page = Lpn>>(config: &RunConfig, seed: u64) {
    let (session, operations, rows) = played::<S>(config, seed);
    let counters = &session.flash.ledger.counters;
    let found = Counted::of(&operations);
    let expected = Counted {
        reads: counters.reads,
        programs: counters.programs,
        oob_reads: counters.oob_reads.sum(),
        erases: counters.erases.sum(),
    };
    assert_eq!(found, expected, "{}", S::KEY);
    let has_pcm = S::KEY == "hat";
    check_times(&operations, &rows, &config.device.machine(), has_pcm);
}

#[test]
fn all_operations_are_there_at_their_times() {
    for (seed, copyback, channels) in [
        (1, Copyback::Off, 3),
        (2, Copyback::Plane, 3),
        (3, Copyback::Off, 1),
        (4, Copyback::Plane, 1),
        (5, Copyback::Parity, 1),
    ] {
        let on = |options: &[(&str, &str)]| {
            let mut config = config(3, 40, 8, 20, options);
            (config.device.copyback, config.device.channels) = (copyback, channels);
            config
        };
        check::<Page>(&on(&[]), seed);
        check::<Dftl>(&on(&[]), seed);
        check::<Hat>(&on(&[]), seed);
        check::<Striped<Fast>>(&on(&[("log_blocks", "18")]), seed);
    }
}

/// A write of two pages on one die of a bus for two, and a read of the first page while the second is programmed.
#[test]
fn a_timeline_by_hand() {
    let mut config = config(2, 16, 4, 8, &[]);
    config.device.channels = 1;
    let machine = config.device.machine();
    let program = machine.phases(FlashOp::new(OpKind::Program, 0));
    let read = machine.phases(FlashOp::new(OpKind::Read, 0));
    let mut session = Session::<Page, Events>::new(&config).expect("a valid configuration");
    session.record_operations();
    session.page_request(Kind::Write, Lpn(0), 2, 1000);
    session.page_request(Kind::Read, Lpn(0), 1, 2000);
    session.finish();
    let told: Vec<_> = std::mem::take(session.operations().expect("they are kept"));
    let of = |die, kind, request, start_ns, end_ns| Operation {
        die,
        does: Does::One(kind),
        cause: Cause::Host,
        request: Some(request),
        start_ns,
        end_ns,
    };
    // The bus carries the first page, then the second; the read comes to the first die when that is done.
    let first_ns = 1000 + program.bus_1_ns;
    let done_ns = first_ns + program.cell_1_ns;
    let second_ns = first_ns + program.bus_1_ns + program.cell_1_ns;
    let read_ns = done_ns + read.bus_1_ns + read.cell_1_ns + read.bus_2_ns;
    let mut expected = vec![
        of(0, OpKind::Program, 0, 1000, done_ns),
        of(1, OpKind::Program, 0, first_ns, second_ns),
        of(0, OpKind::Read, 1, done_ns, read_ns),
    ];
    expected.sort_by_key(|of| (of.die, of.start_ns));
    let mut told = told;
    told.sort_by_key(|of| (of.die, of.start_ns));
    assert_eq!(told, expected);
}

#[test]
fn the_file_is_json_with_every_operation_of_the_window() {
    let config = config(2, 40, 8, 20, &[]);
    let (_, operations, rows) = played::<Page>(&config, 5);
    let folder = tempfile::tempdir().expect("a folder");
    let machine = config.device.machine();
    for (name, window_ns) in [("a.json", 0..u64::MAX), ("b.json", 50_000_000..100_000_000)] {
        let path = folder.path().join(name);
        let mut file = TimelineFile::create(&path, &machine, window_ns.clone()).expect("a file");
        file.operations(&operations).expect("written");
        file.requests(&rows).expect("written");
        assert!(!path.exists(), "not before it is complete");
        let events = file.finish().expect("written");
        let text = std::fs::read_to_string(&path).expect("the file");
        let all: serde_json::Value = serde_json::from_str(&text).expect("JSON");
        let all = all["traceEvents"].as_array().expect("events");
        let in_window = |start_ns, end_ns| start_ns < window_ns.end && end_ns >= window_ns.start;
        let of_phase = |phase: &str| all.iter().filter(|event| event["ph"] == phase).count();
        let wanted = operations
            .iter()
            .filter(|of| in_window(of.start_ns, of.end_ns));
        let wanted = wanted.count();
        let requests = rows
            .iter()
            .filter(|row| in_window(row.arrival_ns, row.end_ns));
        let requests = requests.count();
        assert_eq!(
            (of_phase("X"), of_phase("b"), of_phase("e")),
            (wanted, requests, requests)
        );
        assert_eq!(events as usize, wanted + requests);
        assert!(wanted > 100 && requests > 100);
        let mut begun = all.iter().filter(|event| event["ph"] == "b");
        let pages: u64 = begun
            .clone()
            .map(|event| event["args"]["pages"].as_u64().expect("a number"))
            .sum();
        let in_rows = rows
            .iter()
            .filter(|row| in_window(row.arrival_ns, row.end_ns));
        assert_eq!(pages, in_rows.map(|row| u64::from(row.pages)).sum::<u64>());
        let kinds = ["read", "write", "trim", "flush"];
        assert!(begun.all(|event| kinds.contains(&event["name"].as_str().expect("a name"))));
        let first = all.iter().find(|event| event["ph"] == "X").expect("one");
        let is_known = |name: &str| ["host", "gc", "map"].contains(&name);
        assert!(is_known(first["cat"].as_str().expect("a cause")));
    }
    let refused = TimelineFile::create(&folder.path().join("c.txt"), &machine, 0..1);
    assert!(refused.expect_err("no JSON").to_string().contains(".json"));
}
