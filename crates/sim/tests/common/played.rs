//! Whole runs on both clocks, for layers between host and scheme.

use floatgate_catalog as _;
use floatgate_core::rng::SplitMix64;
use floatgate_sim::config::RunConfig;
use floatgate_sim::record::Record;
use floatgate_sim::requests::RequestRow;
use floatgate_sim::run::{Besides, Decoded, Simulated};
use floatgate_trace::{Op, Request, Stream};

pub const PAGE: u64 = 2048;

pub fn r(arrival_ns: u64, op: Op, offset: u64, bytes: u64) -> Request {
    Request {
        arrival_ns,
        op,
        volume: 0,
        stream: Stream::NONE,
        offset,
        bytes,
    }
}

pub fn pages(arrival_ns: u64, op: Op, first: u64, pages: u64) -> Request {
    r(arrival_ns, op, first * PAGE, pages * PAGE)
}

/// The record and the rows of a run, which is played on both clocks if the first one fits.
pub fn run(scheme: &str, config: &RunConfig, requests: &[Request]) -> (Record, Vec<RequestRow>) {
    let catalog = floatgate_schemes::catalog::<Simulated>();
    let scheme = catalog.find(scheme).expect("a scheme").life;
    let play = |events: bool| {
        let (mut rows, mut take) = (Vec::new(), |_: &[_]| Ok(()));
        let mut take_rows = |some: &[RequestRow]| {
            rows.extend_from_slice(some);
            Ok(())
        };
        let besides = Besides {
            rows: Some(&mut take_rows),
            operations: if events { Some(&mut take) } else { None },
            ..Besides::default()
        };
        let record = scheme.run_with(config, &mut Decoded::new(requests), &mut |_| {}, besides);
        (record.expect("it runs, and the laws hold"), rows)
    };
    let ((record, rows), (record_of_events, rows_of_events)) = (play(false), play(true));
    assert_eq!(record.counters, record_of_events.counters);
    assert_eq!(record.buffer, record_of_events.buffer);
    assert_eq!(record.slc, record_of_events.slc);
    assert_eq!(record.energy, record_of_events.energy);
    assert_eq!(rows.len(), rows_of_events.len());
    for (row, of_events) in rows.iter().zip(&rows_of_events) {
        let times = |row: &RequestRow| (row.start_ns, row.end_ns, row.work);
        let name = &record.scheme;
        assert_eq!(times(row), times(of_events), "{name}: {row:?}");
    }
    (record, rows)
}

pub fn ends(rows: &[RequestRow]) -> Vec<u64> {
    rows.iter().map(|row| row.end_ns).collect()
}

/// Requests of all kinds, most of them to a few hot places.
pub fn random(rng: &mut SplitMix64, pages: u64, requests: usize) -> Vec<Request> {
    let mut now_ns = 0;
    let one = |_| {
        now_ns += rng.below(3) * rng.below(400_000);
        let op = match rng.below(20) {
            0 => Op::Trim,
            1 => Op::Flush,
            2..8 => Op::Read,
            _ => Op::Write,
        };
        let hot = if rng.below(4) > 0 { pages / 8 } else { pages };
        let first = rng.below(hot) * PAGE;
        let (skip, most) = match rng.below(4) {
            0 => (512 * rng.below(4), 9 * 512),
            _ => (0, 12 * PAGE),
        };
        let bytes = match skip + most % PAGE {
            0 => (1 + rng.below(12)) * PAGE,
            _ => (1 + rng.below(most / 512)) * 512,
        };
        let bytes = bytes.min(pages * PAGE - first - skip);
        r(now_ns, op, first + skip, bytes)
    };
    (0..requests).map(one).collect()
}
