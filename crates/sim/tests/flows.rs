//! Several flows at once: that one alone is a plain run, and that arbitration, priorities and splitting do what they say.

mod common;

use common::config;
use floatgate_catalog as _;
use floatgate_core::options::Value;
use floatgate_core::rng::SplitMix64;
use floatgate_sim::clock::{Policy, Schedule, Suspend};
use floatgate_sim::config::{Arrivals, Buffer, RunConfig};
use floatgate_sim::flows::{Arbitration, Flow, FlowConfig, Flows, Link, Priority};
use floatgate_sim::record::{self, Record};
use floatgate_sim::requests::RequestRow;
use floatgate_sim::run::{Besides, Decoded, RunError, Simulated};
use floatgate_trace::{Op, Request, Stream};

const PAGE: u64 = 2048;

fn request(arrival_ns: u64, op: Op, page: u64, pages: u64) -> Request {
    Request {
        arrival_ns,
        op,
        volume: 0,
        stream: Stream::NONE,
        offset: page * PAGE,
        bytes: pages * PAGE,
    }
}

/// Reads and writes of some pages at random, every `every_ns` on average.
fn mixed(seed: u64, requests: u64, pages: u64, every_ns: u64) -> Vec<Request> {
    let mut rng = SplitMix64::new(seed);
    let mut at_ns = 0;
    let one = |_| {
        at_ns += rng.below(2 * every_ns + 1);
        let op = [
            Op::Read,
            Op::Write,
            Op::Write,
            Op::Read,
            Op::Trim,
            Op::Flush,
        ];
        let kinds = if rng.below(8) == 0 { 6 } else { 4 };
        let op = op[rng.below(kinds) as usize];
        let (page, n) = (rng.below(pages - 8), 1 + rng.below(8));
        let mut request = request(at_ns, op, page, n);
        match op {
            Op::Flush => (request.offset, request.bytes) = (0, 0),
            // Some end inside a page.
            _ => request.bytes -= 512 * rng.below(3),
        }
        request
    };
    (0..requests).map(one).collect()
}

/// Reads of single pages at random.
fn reads(seed: u64, requests: u64, pages: u64, every_ns: u64) -> Vec<Request> {
    let mut rng = SplitMix64::new(seed);
    let read = |i| request(i * every_ns, Op::Read, rng.below(pages), 1);
    (0..requests).map(read).collect()
}

fn flow(config: FlowConfig, requests: &[Request]) -> Flow {
    let requests: &'static [Request] = requests.to_vec().leak();
    Flow {
        config,
        source: Box::new(Decoded::new(requests)),
    }
}

fn tried(
    scheme: &str,
    config: &RunConfig,
    link: Link,
    flows: Vec<Flow>,
) -> Result<(Record, Vec<RequestRow>), RunError> {
    let catalog = floatgate_schemes::catalog::<Simulated>();
    let scheme = catalog.find(scheme).expect("a scheme").life;
    let mut rows = Vec::new();
    let record = scheme.run_with(
        config,
        &mut Decoded::new(&[]),
        &mut |_| {},
        Besides {
            flows: Some(&mut Flows { link, flows }),
            rows: Some(&mut |some| {
                rows.extend_from_slice(some);
                Ok(())
            }),
            ..Besides::default()
        },
    )?;
    Ok((record, rows))
}

fn played(config: &RunConfig, link: Link, flows: Vec<Flow>) -> Vec<record::Flow> {
    let (record, _) = tried("page", config, link, flows).expect("it runs");
    record.flows.expect("flows").each
}

fn closed(name: &str, number: usize, flows: usize, queue_depth: u32) -> FlowConfig {
    FlowConfig {
        queue_depth,
        ..FlowConfig::even(name, number, flows)
    }
}

fn micros(us: Option<f64>) -> f64 {
    us.expect("there are requests")
}

/// Devices for the three clocks, and one with memory above the scheme.
fn devices() -> [(&'static str, RunConfig); 5] {
    let shared = |channels| {
        let mut config = config(4, 40, 16, 24, &[]);
        config.device.channels = channels;
        config
    };
    let scheduled = |channels, policy, suspend| {
        let mut config = shared(channels);
        config.device.schedule = Schedule {
            policy,
            suspend,
            ..Schedule::default()
        };
        config
    };
    let mut buffered = shared(2);
    buffered.device.buffer = Buffer {
        write_pages: 24,
        reserve_pages: 4,
        idle_ns: 2_000_000,
        read_pages: 16,
        prefetch_pages: 4,
        ..Buffer::default()
    };
    [
        ("closed form", shared(4)),
        ("events", shared(1)),
        (
            "reads first",
            scheduled(1, Policy::ReadFirst, Suspend::None),
        ),
        ("host first", scheduled(4, Policy::HostFirst, Suspend::Both)),
        ("buffered", buffered),
    ]
}

/// Schemes without timed work, with timers, and with work in idle time.
const SCHEMES: [(&str, &[(&str, &str)]); 4] = [
    ("page", &[]),
    ("fast", &[("log_blocks", "16")]),
    ("dftl", &[("integrity", "TIMEOUT"), ("flush_ns", "3000000")]),
    (
        "last++",
        &[
            ("log_blocks", "16"),
            ("background", "aggressive"),
            ("idle_timeout_ns", "1000000"),
        ],
    ),
];

/// Plays requests as one flow over the whole device and without flows, and expects the same. The flow is a closed loop if
/// all requests come at once.
fn compare_with_plain(name: &str, scheme: &str, config: &RunConfig, requests: &[Request]) {
    let mut config = config.clone();
    let depth = config.host.queue_depth;
    let is_closed = depth > 0 && requests.iter().all(|request| request.arrival_ns == 0);
    let mut whole = FlowConfig::even("all", 0, 1);
    if is_closed {
        (whole.queue_depth, config.host.queue_depth) = (depth, 0);
    }
    let flows = vec![flow(whole, requests)];
    let (together, mut rows) = tried(scheme, &config, Link::default(), flows).expect("it runs");
    if is_closed {
        (config.host.arrivals, config.host.queue_depth) = (Arrivals::Closed, depth);
    }
    let catalog = floatgate_schemes::catalog::<Simulated>();
    let mut plain_rows: Vec<RequestRow> = Vec::new();
    let mut take = |some: &[RequestRow]| {
        plain_rows.extend_from_slice(some);
        Ok(())
    };
    let besides = Besides {
        rows: Some(&mut take),
        ..Besides::default()
    };
    let scheme = catalog.find(scheme).expect("a scheme").life;
    let mut source = Decoded::new(requests);
    let plain = scheme.run_with(&config, &mut source, &mut |_| {}, besides);
    let plain = plain.expect("it runs");
    // When the host learns of a completion, and so in which sample it stands, differs: a plain run asks only when it needs the
    // place, flows at every instant.
    let same = Record {
        host: plain.host.clone(),
        flows: None,
        series: plain.series.clone(),
        held_up: plain.held_up,
        ..together.clone()
    };
    // Of work that a request leaves behind a row tells what is known when it is made: the die that
    // was done last and, behind a buffer, the die that was busy.
    for row in rows.iter_mut().chain(&mut plain_rows) {
        row.die_last = None;
        if config.device.buffer.is_on() {
            row.waited = None;
        }
    }
    assert_eq!(rows.len(), plain_rows.len());
    let differs = rows.iter().zip(&plain_rows).position(|(a, b)| a != b);
    if let Some(at) = differs {
        let (flow, plain) = (&rows[at], &plain_rows[at]);
        panic!("{name}, depth {depth}: {flow:?}\nis no {plain:?}");
    }
    assert_eq!(same, plain, "{name}, depth {depth}");
    let each = together.flows.expect("flows").each;
    assert_eq!(each[0].response, plain.time.response);
    assert_eq!(each[0].share_percent, Some(100.0));
}

#[test]
fn one_flow_alone_is_a_plain_run() {
    for (device, config) in devices() {
        // Above timers and work in idle time a buffer has reads of the map whose start a row may have come too early for.
        let schemes = match config.device.buffer.is_on() {
            true => &SCHEMES[..2],
            false => &SCHEMES[..],
        };
        for &(scheme, options) in schemes {
            let mut config = config.clone();
            let option = |&(key, word): &(&str, &str)| (key.into(), Value::from_word(word));
            config.options = options.iter().map(option).collect();
            let name = format!("{scheme}, {device}");
            for (depth, every_ns, grain_ns) in [
                (1, 0, 1),
                (8, 0, 1),
                (64, 0, 1),
                (4, 60_000, 1),
                (4, 1_500_000, 1),
                // Many things happen at one time.
                (3, 300_000, 100_000),
                (0, 400_000, 1),
                (0, 2_000_000, 100_000),
            ] {
                config.host.queue_depth = depth;
                let pages = config.device.logical_pages;
                let mut requests = mixed(7 + u64::from(depth), 1_200, pages, every_ns);
                for request in &mut requests {
                    request.arrival_ns -= request.arrival_ns % grain_ns;
                }
                compare_with_plain(&name, scheme, &config, &requests);
            }
        }
    }
}

#[test]
fn equal_flows_get_equal_shares_at_half_the_speed() {
    let mut config = config(1, 40, 16, 24, &[]);
    config.host.queue_depth = 8;
    let pair = |only: Option<usize>| {
        let flows = (0..2).filter(|&i| only.is_none_or(|only| only == i));
        let flows = flows.map(|i| flow(closed("f", i, 2, 8), &reads(i as u64, 4_000, 192, 0)));
        tried("page", &config, Link::default(), flows.collect()).expect("it runs")
    };
    let (together, rows) = pair(None);
    let mut flows = together.flows.expect("flows");
    flows.compare(&[0, 1].map(|i| pair(Some(i)).0.flows.expect("flows")));
    for flow in &flows.each {
        let share = flow.share_percent.expect("they worked together");
        assert!((share - 50.0).abs() < 0.1, "{share}");
        let slowdown = flow.slowdown.expect("measured");
        assert!((slowdown - 2.0).abs() < 0.01, "{slowdown}");
    }
    assert_eq!(
        [flows.each[0].first_page, flows.each[1].first_page],
        [0, 192]
    );
    assert!(flows.fairness.expect("measured") > 0.99);
    assert!(flows.jain.expect("measured") > 0.999);
    assert_eq!(rows, pair(None).1, "the same again");
    assert!(rows.iter().any(|row| row.first_lpn >= 192) && rows.len() == 8_000);
}

#[test]
fn weights_are_shares_of_a_saturated_device() {
    let mut config = config(1, 40, 16, 24, &[]);
    config.host.queue_depth = 4;
    let link = Link {
        arbitration: Arbitration::Weighted,
        ..Link::default()
    };
    let weighted = |i: usize, weight| FlowConfig {
        weight,
        ..closed("f", i, 2, 32)
    };
    let flows = played(
        &config,
        link,
        vec![
            flow(weighted(0, 3), &reads(1, 6_000, 192, 0)),
            flow(weighted(1, 1), &reads(2, 6_000, 192, 0)),
        ],
    );
    let [heavy, light] = [0, 1].map(|i| flows[i].requests_together as f64);
    assert!((heavy / light - 3.0).abs() < 0.05, "{heavy} to {light}");
}

#[test]
fn urgent_commands_wait_only_for_what_the_device_has_taken() {
    let mut config = config(1, 40, 16, 24, &[]);
    config.host.queue_depth = 1;
    let urgent = FlowConfig {
        priority: Priority::Urgent,
        ..FlowConfig::even("urgent", 0, 2)
    };
    let requests = reads(1, 500, 192, 1_000_000);
    let load = || flow(closed("load", 1, 2, 32), &reads(2, 8_000, 192, 0));
    let p99 = |arbitration, flows| {
        let link = Link {
            arbitration,
            ..Link::default()
        };
        micros(played(&config, link, flows)[0].response.all.p99_us)
    };
    let both = || vec![flow(urgent.clone(), &requests), load()];
    let alone = p99(Arbitration::Weighted, vec![flow(urgent.clone(), &requests)]);
    let first = p99(Arbitration::Weighted, both());
    assert!(first > alone && first <= 2.0 * alone, "{first} and {alone}");
    assert_eq!(p99(Arbitration::Priority, both()), first);
    // With 32 of the others before it at most one goes ahead in turn; a deep device queue has taken them all.
    config.host.queue_depth = 64;
    let link = Link::default();
    let behind = micros(played(&config, link, both())[0].response.all.p99_us);
    assert!(behind > 20.0 * alone, "{behind} and {alone}");
}

#[test]
fn a_split_request_is_complete_with_its_last_part() {
    let mut config = config(4, 200, 64, 100, &[]);
    let mib = 512;
    let mut requests: Vec<Request> = (0..20)
        .map(|i| {
            let op = if i % 2 == 0 { Op::Write } else { Op::Read };
            request(i * 100_000_000, op, i / 2 * 777, mib)
        })
        .collect();
    // One that begins inside a page.
    requests[7].offset += 512;
    let mut run = |max_request_bytes, depth| {
        config.host.queue_depth = depth;
        let link = Link {
            max_request_bytes,
            ..Link::default()
        };
        let flows = vec![flow(FlowConfig::even("all", 0, 1), &requests)];
        tried("page", &config, link, flows).expect("it runs")
    };
    let ((whole, _), (split, rows)) = (run(0, 4), run(128 << 10, 4));
    assert_eq!(split.counters, whole.counters);
    let flow = |record: &Record| record.flows.as_ref().expect("flows").each[0].clone();
    assert_eq!(flow(&split).commands, 20 * 8 + 1);
    assert_eq!(rows.len(), 20 * 8 + 1);
    assert_eq!(flow(&split).response.all.count, 20);
    assert_eq!(split.time.response.all.count, 20);
    // Its last part ends when nothing is under way any more: the first of 8 begins with the request.
    let first: Vec<_> = rows.iter().filter(|row| row.arrival_ns == 0).collect();
    assert_eq!(first.len(), 8);
    let last_ns = first.iter().map(|row| row.end_ns).max().expect("8 rows");
    let longest_us = flow(&split).response.write.max_us;
    assert_eq!(longest_us, Some(last_ns as f64 / 1000.0));
    assert_eq!(flow(&split).page_writes, flow(&whole).page_writes);
    // One part at a time: between two of them nothing of the request is under way.
    let (single, _) = run(128 << 10, 1);
    assert_eq!(flow(&single).response.all.count, 20);
    assert_eq!(single.counters, whole.counters);
}

#[test]
fn what_flows_cannot_do_names_its_key() {
    let base = config(1, 40, 16, 24, &[]);
    let key = |config: &RunConfig, link, flow_config: FlowConfig, request: Request| {
        let flows = vec![flow(flow_config, &[request])];
        match tried("page", config, link, flows) {
            Err(RunError::Refused(refusal)) => refusal.key.expect("a key").to_string(),
            Err(error) => error.to_string(),
            Ok(_) => "it runs".into(),
        }
    };
    let half = || FlowConfig::even("half", 1, 2);
    let read = |page| request(0, Op::Read, page, 1);
    let link = Link::default();
    assert_eq!(key(&base, link, half(), read(191)), "it runs");
    let beyond = key(&base, link, half(), read(192));
    assert!(
        beyond.starts_with(
            "flow half: request 1: page 192, but its part of the device has pages 0 to 191"
        ),
        "{beyond}"
    );
    let weighted = Link {
        arbitration: Arbitration::Weighted,
        ..link
    };
    assert_eq!(key(&base, weighted, half(), read(0)), "arbitration");
    let tiny = Link {
        max_request_bytes: 1024,
        ..link
    };
    assert_eq!(key(&base, tiny, half(), read(0)), "max_request");
    let mut replays = base.clone();
    replays.ageing = vec![floatgate_sim::config::Recipe::Replay];
    assert_eq!(key(&replays, link, half(), read(0)), "ageing");
    let none = FlowConfig {
        share: 1e-6,
        ..half()
    };
    assert_eq!(key(&base, link, none, read(0)), "flow");
}
