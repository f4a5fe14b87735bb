//! One row a request: what the columns say, that they add up to the counters, and the file.

mod common;

use common::config;
use floatgate_catalog as _;
use floatgate_core::Lpn;
use floatgate_core::described::Described;
use floatgate_core::rng::SplitMix64;
use floatgate_schemes::last_plus_plus::LastPlusPlus;
use floatgate_sim::clock::{Clock, Closed, Events, FlashOp, OpKind};
use floatgate_sim::config::{Copyback, RunConfig};
use floatgate_sim::host::Kind;
use floatgate_sim::merges::MergeKinds;
use floatgate_sim::record::{Causes, Record};
use floatgate_sim::requests::{Behind, RequestRow, RequestsFile, Waited};
use floatgate_sim::run::{Besides, Decoded, Simulated};
use floatgate_sim::session::Session;
use floatgate_trace::{Op, Request};

fn r(arrival_ns: u64, op: Op, offset: u64, bytes: u64) -> Request {
    Request {
        arrival_ns,
        op,
        volume: 0,
        stream: floatgate_trace::Stream::NONE,
        offset,
        bytes,
    }
}

fn record(scheme: &str, config: &RunConfig, requests: &[Request]) -> (Record, Vec<RequestRow>) {
    let catalog = floatgate_schemes::catalog::<Simulated>();
    let scheme = catalog.find(scheme).expect("a scheme").life;
    let mut rows = Vec::new();
    let record = scheme
        .run_with(
            config,
            &mut Decoded::new(requests),
            &mut |_| {},
            Besides {
                rows: Some(&mut |some| {
                    rows.extend_from_slice(some);
                    Ok(())
                }),
                ..Besides::default()
            },
        )
        .expect("it runs");
    let plain = scheme
        .run(config, &mut Decoded::new(requests), &mut |_| {})
        .expect("it runs");
    assert_eq!(record, plain, "recording changes nothing");
    (record, rows)
}

fn work(row: &RequestRow) -> [u64; 3] {
    [row.work.translation_ns, row.work.flash_ns, row.work.gc_ns]
}

#[test]
fn every_kind_of_request_on_one_die() {
    let config = config(1, 16, 4, 8, &[]);
    let ms = 1_000_000;
    let requests = [
        r(0, Op::Write, 0, 2048),
        r(100, Op::Flush, 0, 0),
        r(10 * ms, Op::Read, 0, 4096),
        // One sub-page of 512 bytes.
        r(20 * ms, Op::Read, 2048, 512),
        // Half a page: its old content is read first.
        r(30 * ms, Op::Write, 4096, 1024),
        r(40 * ms, Op::Trim, 4096, 2048),
    ];
    let (_, rows) = record("page", &config, &requests);
    let kinds: Vec<Kind> = rows.iter().map(|row| row.kind).collect();
    assert_eq!(
        kinds,
        [
            Kind::Write,
            Kind::Flush,
            Kind::Read,
            Kind::Read,
            Kind::Write,
            Kind::Trim
        ]
    );
    assert!(
        rows.iter()
            .enumerate()
            .all(|(i, row)| row.request == i as u64)
    );
    let works: Vec<[u64; 3]> = rows.iter().map(work).collect();
    let expected: [u64; 6] = [252_975, 0, 2 * 72_975, 33_375, 72_975 + 252_975, 0];
    assert_eq!(works, expected.map(|flash_ns| [0, flash_ns, 0]));
    // The flush waits for the write.
    assert_eq!((rows[1].arrival_ns, rows[1].end_ns), (100, 252_975));
    assert_eq!(
        (rows[2].first_lpn, rows[2].pages, rows[2].start_ns),
        (0, 2, 10 * ms)
    );
    assert_eq!((rows[5].first_lpn, rows[5].pages), (2, 1));
}

#[test]
fn translation_stands_apart() {
    let config = config(1, 24, 4, 8, &[]);
    let requests = [r(0, Op::Read, 0, 2048)];
    let (_, rows) = record("hat", &config, &requests);
    assert_eq!(
        (work(&rows[0]), rows[0].start_ns, rows[0].end_ns),
        ([115, 72_975, 0], 0, 73_090)
    );
    let (_, rows) = record("dftl", &config, &requests);
    assert_eq!(
        (work(&rows[0]), rows[0].start_ns, rows[0].end_ns),
        ([72_975, 72_975, 0], 0, 145_950)
    );
}

/// A wait lies between issue and completion, and whoever caused it came before and had work.
#[track_caller]
fn waits_make_sense(row: &RequestRow, rows: &[RequestRow]) {
    assert!(row.dies <= row.pages.max(1) * 4 && row.die_last.is_none_or(|die| die < 4));
    let Some(waited) = row.waited else { return };
    assert!(
        waited.ns > 0 && row.issue_ns + waited.ns < row.end_ns,
        "{row:?}"
    );
    if let Behind::Request(number) = waited.behind {
        let earlier = &rows[number as usize];
        assert!(
            number < row.request && earlier.dies > 0,
            "{row:?} {earlier:?}"
        );
        assert!(
            earlier.start_ns < row.issue_ns + waited.ns,
            "{row:?} {earlier:?}"
        );
    }
}

/// Two dies: pages 0 and 2 lie on the first, 1 and 3 on the second. Programs take 252,975 ns, reads 72,975 ns.
#[test]
fn a_request_names_the_work_that_it_waited_for_longest() {
    for channels in [2, 1] {
        let mut config = config(2, 16, 4, 8, &[("log_blocks", "6")]);
        config.device.channels = channels;
        let requests = [
            r(0, Op::Write, 0, 2048),
            r(100_000, Op::Write, 2 * 2048, 2048),
            // Both dies: one is free.
            r(200_000, Op::Read, 4 * 2048, 2 * 2048),
            r(900_000, Op::Read, 2048, 2048),
        ];
        let (_, rows) = record("fast", &config, &requests);
        let waited = |ns, number| {
            Some(Waited {
                ns,
                die: 0,
                behind: Behind::Request(number),
            })
        };
        let free_ns = 252_975;
        assert_eq!(rows[0].waited, None);
        assert_eq!(rows[1].waited, waited(free_ns - 100_000, 0), "{channels}");
        assert_eq!(rows[2].waited, waited(rows[1].end_ns - 200_000, 1));
        assert_eq!(rows[3].waited, None);
        let dies = |i: usize| (rows[i].dies, rows[i].die_last);
        assert_eq!(
            [0, 1, 2, 3].map(dies),
            [(1, Some(0)), (1, Some(0)), (2, Some(0)), (1, Some(1))]
        );
    }
}

/// What is merged in idle time is in no row, and whoever waits for it says so.
#[test]
fn background_work_stands_apart() {
    let options = [
        ("log_blocks", "16"),
        ("background", "aggressive"),
        ("idle_timeout_ns", "1000000"),
    ];
    let config = config(4, 40, 8, 24, &options);
    let mut rng = SplitMix64::new(9);
    let mut waited_for_background = 0;
    let mut in_background = 0;
    for shared in [false, true] {
        let (totals, rows, background) = if shared {
            let mut config = config.clone();
            config.device.channels = 2;
            recorded::<Events>(&config, &mut rng)
        } else {
            recorded::<Closed>(&config, &mut rng)
        };
        let mut merges = background;
        rows.iter().for_each(|row| merges += row.merges);
        assert_eq!(merges, totals);
        in_background += background.kinds().iter().map(|(_, n)| n).sum::<u64>();
        rows.iter().for_each(|row| waits_make_sense(row, &rows));
        let waits = rows.iter().filter_map(|row| row.waited);
        waited_for_background += waits.filter(|w| w.behind == Behind::Background).count();
    }
    assert!(
        in_background > 0 && waited_for_background > 0,
        "{in_background} {waited_for_background}"
    );
}

/// Merges of a run of LAST++ with pauses: all of them, the rows, those of no request.
fn recorded<C: Clock>(
    config: &RunConfig,
    rng: &mut SplitMix64,
) -> (MergeKinds, Vec<RequestRow>, MergeKinds) {
    let mut session = Session::<LastPlusPlus, C>::new(config).expect("a valid configuration");
    session.record_requests();
    let mut now_ns = 0;
    for i in 0..3_000 {
        now_ns += if i % 20 == 0 {
            5_000_000
        } else {
            rng.below(600_000)
        };
        let first = Lpn(rng.below(700) as u32);
        session.page_request(Kind::Write, first, 1 + rng.below(3) as u32, now_ns);
    }
    session.finish();
    let rows = session.request_rows().map(std::mem::take);
    let (_, background) = session.background().expect("it records");
    (
        MergeKinds::of(&session.ftl.counters()),
        rows.unwrap_or_default(),
        background,
    )
}

#[test]
fn rows_add_up_to_the_counters() {
    for (scheme, channels, depth, copyback) in [
        ("fast", 4, 0, Copyback::Off),
        ("dftl", 2, 0, Copyback::Plane),
        ("blog", 2, 3, Copyback::Off),
        ("fast", 1, 2, Copyback::Parity),
    ] {
        let options: &[(&str, &str)] = if scheme == "dftl" {
            &[]
        } else {
            &[("log_blocks", "12")]
        };
        let mut config = config(4, 40, 8, 24, options);
        config.device.channels = channels;
        config.device.copyback = copyback;
        config.host.queue_depth = depth;
        let mut rng = SplitMix64::new(7);
        let requests: Vec<Request> = (0..5000)
            .map(|i| {
                let op = if rng.below(3) == 0 {
                    Op::Read
                } else {
                    Op::Write
                };
                r(
                    i * 400_000,
                    op,
                    rng.below(700) * 2048,
                    (1 + rng.below(4)) * 1024,
                )
            })
            .collect();
        let (record, rows) = record(scheme, &config, &requests);
        assert_eq!(rows.len(), requests.len());
        assert!(
            rows.iter()
                .enumerate()
                .all(|(i, row)| row.request == i as u64)
        );
        let sum = |of: &dyn Fn(&RequestRow) -> u64| rows.iter().map(of).sum::<u64>();
        let flash = &record.counters.flash;
        let machine = config.device.machine();
        let of = |kind| machine.duration_ns(FlashOp::new(kind, 0));
        let pages = |cause: fn(&Causes) -> u64| {
            cause(&flash.reads) * of(OpKind::Read)
                + cause(&flash.programs) * of(OpKind::Program)
                + cause(&flash.oob_reads) * of(OpKind::OobRead)
        };
        let saved = of(OpKind::Read) + of(OpKind::Program) - of(OpKind::CopyBack);
        let erases = flash.erases.sum() * of(OpKind::Erase);
        let all = pages(|cause| cause.gc) + pages(|cause| cause.map) + erases;
        let behind = sum(&|row| row.work.gc_ns + row.work.translation_ns);
        assert_eq!(
            behind,
            all - record.stats.copybacks * saved,
            "{scheme} {channels}"
        );
        assert!(sum(&|row| row.work.flash_ns) <= pages(|cause| cause.host));
        let mut merges = MergeKinds::default();
        rows.iter().for_each(|row| merges += row.merges);
        let counted = &record.counters.merges;
        let own = counted.own.values().sum();
        assert_eq!(
            merges.kinds().map(|(_, n)| n),
            [
                counted.switch,
                counted.partial,
                counted.full,
                counted.dead,
                own
            ]
        );
        rows.iter().for_each(|row| waits_make_sense(row, &rows));
        let responses = sum(&|row| row.end_ns - row.arrival_ns) as f64 / rows.len() as f64 / 1000.0;
        let mean = record
            .time
            .response
            .all
            .mean_us
            .expect("there are requests");
        assert!((responses - mean).abs() < 1e-6 * mean, "{responses} {mean}");
        assert!(
            rows.iter()
                .all(|row| row.arrival_ns <= row.start_ns && row.start_ns <= row.end_ns)
        );
    }
}

#[test]
fn a_file_of_rows() {
    let config = config(1, 16, 4, 8, &[]);
    let requests = [r(5, Op::Write, 2048, 2048), r(6, Op::Read, 2048, 2048)];
    let (_, rows) = record("page", &config, &requests);
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("rows.csv");
    let mut file = RequestsFile::create(&path).expect("it can be made");
    file.write(&rows).expect("it can be written");
    assert_eq!(file.finish().expect("it ends").rows, 2);
    let text = std::fs::read_to_string(&path).expect("it is there");
    assert_eq!(
        text,
        "request,op,first_lpn,pages,arrival_ns,issue_ns,start_ns,end_ns,queueing_ns,translation_ns,flash_ns,gc_ns,\
         merges_switch,merges_partial,merges_full,merges_dead,merges_other,\
         dies,die_last,waited_ns,waited_die,waited_on,waited_for\n\
         0,W,1,1,5,5,5,252980,0,0,252975,0,0,0,0,0,0,1,0,0,,none,\n\
         1,R,1,1,6,6,252980,325955,252974,0,72975,0,0,0,0,0,0,1,0,252974,0,request,0\n"
    );
    let mut file =
        RequestsFile::create(folder.path().join("rows.parquet")).expect("Parquet is built in");
    file.write(&rows).expect("it can be written");
    assert!(file.finish().expect("it ends").file_bytes > 100);
    assert!(RequestsFile::create(folder.path().join("rows.txt")).is_err());
}
