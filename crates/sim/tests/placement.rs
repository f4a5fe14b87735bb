//! Streams of requests, and separations that know the future, in whole runs.

use floatgate_catalog as _;
use floatgate_core::Start;
use floatgate_core::catalog::Life;
use floatgate_core::options::Value;
use floatgate_core::rng::SplitMix64;
use floatgate_schemes::page::Page;
use floatgate_sim::config::{Device, Host, Recipe, RunConfig, StreamBy};
use floatgate_sim::part::part;
use floatgate_sim::record::Record;
use floatgate_sim::run::{Decoded, RunError, Simulated};
use floatgate_trace::{Op, Request, Stream};

const PAGE_BYTES: u64 = 2048;
const LOGICAL_PAGES: u64 = 16 * 24;

fn config(options: &[(&str, &str)], ageing: &[Recipe], stream_by: StreamBy) -> RunConfig {
    let mut part = part("ssdsim").expect("a preset").clone();
    part.pages_per_block = 16;
    part.page_bytes = PAGE_BYTES as u32;
    let options = options.iter();
    RunConfig {
        device: Device::one_die_a_channel(part, 1, 24 + 16, LOGICAL_PAGES),
        start: Start::Full,
        ageing: ageing.to_vec(),
        host: Host {
            stream_by,
            ..Host::default()
        },
        scheme: "page".into(),
        options: options
            .map(|(key, value)| ((*key).into(), Value::from_word(value)))
            .collect(),
    }
}

/// A small part of the space is written at random on volume 0, the rest in turn on volume 1.
fn requests() -> Vec<Request> {
    let mut rng = SplitMix64::new(3);
    let mut next = 0;
    let one = |i: u64| {
        let is_small = rng.below(2) == 0;
        let page = if is_small { rng.below(16) } else { next };
        if !is_small {
            next = (next + 1) % (LOGICAL_PAGES - 16);
        }
        Request {
            arrival_ns: i * 10_000_000,
            op: Op::Write,
            volume: u32::from(!is_small),
            stream: Stream::new(u64::from(is_small)).expect("a stream"),
            offset: (page + if is_small { 0 } else { 16 }) * PAGE_BYTES,
            bytes: PAGE_BYTES,
        }
    };
    (0..6_000).map(one).collect()
}

fn run(config: &RunConfig) -> Result<Record, RunError> {
    let requests = requests();
    let mut source = Decoded::new(&requests);
    Simulated::of::<Page>().run(config, &mut source, &mut |_| {})
}

fn moved(config: &RunConfig) -> u64 {
    let record = run(config).expect("a run");
    record.counters.flash.programs.gc
}

#[test]
fn streams_of_the_trace_and_volumes_keep_apart_what_dies_together() {
    let hint = [("separation", "hint"), ("hint_handles", "2")];
    let together = moved(&config(&[("separation", "none")], &[], StreamBy::Trace));
    let by_trace = moved(&config(&hint, &[], StreamBy::Trace));
    let by_volume = moved(&config(&hint, &[], StreamBy::Volume));
    assert!(by_trace * 4 < together, "{by_trace} of {together}");
    // The same pages under the handles the other way round.
    assert!(by_volume * 4 < together, "{by_volume} of {together}");
    // All requests are of one size: one stream, no help.
    let by_size = moved(&config(&hint, &[], StreamBy::Size));
    assert!(by_size > 2 * by_volume, "{by_size}, {by_volume}");
}

#[test]
fn the_future_is_known_over_warm_up_and_run() {
    let fk = [("separation", "fk"), ("classes", "4")];
    let known = moved(&config(&fk, &[Recipe::Replay], StreamBy::Trace));
    let unknown = moved(&config(
        &[("separation", "none")],
        &[Recipe::Replay],
        StreamBy::Trace,
    ));
    assert!(known * 2 < unknown, "{known} of {unknown}");
    let refused = run(&config(&fk, &[Recipe::Fill], StreamBy::Trace));
    let text = refused.expect_err("a refusal").to_string();
    assert!(
        text.contains("run.ageing") && text.contains("fill"),
        "{text}"
    );
    let live = Simulated::of::<Page>().live(&config(&fk, &[], StreamBy::Trace));
    assert_eq!(live.unwrap_err().key.as_deref(), Some("separation"));
}
