//! The run over time: peaks are those of the run, and the backlog is what a plain count of the requests says.

mod common;

use common::config;
use floatgate_catalog as _;
use floatgate_core::rng::SplitMix64;
use floatgate_sim::config::RunConfig;
use floatgate_sim::record::Record;
use floatgate_sim::requests::RequestRow;
use floatgate_sim::run::{Besides, Decoded, Simulated};
use floatgate_trace::{Op, Request};

/// Bursts that no device keeps up with, and pauses.
fn requests(n: u64) -> Vec<Request> {
    let mut rng = SplitMix64::new(5);
    let mut arrival_ns = 0;
    let request = |i| {
        let gaps_ns = [10_000, 400_000, 3_000_000];
        arrival_ns += rng.below(gaps_ns[(i / 700) as usize % 3]);
        Request {
            arrival_ns,
            op: [Op::Read, Op::Write, Op::Write, Op::Flush][rng.below(4) as usize],
            volume: 0,
            stream: floatgate_trace::Stream::NONE,
            offset: rng.below(700) * 2048,
            bytes: (1 + rng.below(4)) * 1024,
        }
    };
    (0..n).map(request).collect()
}

fn record(scheme: &str, config: &RunConfig, requests: &[Request]) -> (Record, Vec<RequestRow>) {
    let catalog = floatgate_schemes::catalog::<Simulated>();
    let scheme = catalog.find(scheme).expect("a scheme").life;
    let mut rows = Vec::new();
    let mut take = |some: &[RequestRow]| {
        rows.extend_from_slice(some);
        Ok(())
    };
    let mut source = Decoded::new(requests);
    let besides = Besides {
        rows: Some(&mut take),
        ..Besides::default()
    };
    let record = scheme.run_with(config, &mut source, &mut |_| {}, besides);
    (record.expect("it runs"), rows)
}

#[test]
fn the_series_keeps_peaks_and_the_backlog_is_exact() {
    let requests = requests(50_000);
    for (channels, depth) in [(4, 0), (2, 0), (4, 6), (2, 6)] {
        let mut config = config(4, 40, 8, 24, &[("log_blocks", "12")]);
        config.device.channels = channels;
        config.host.queue_depth = depth;
        let (record, rows) = record("fast", &config, &requests);
        let series = &record.series;
        let top = |column: &[f64]| column.iter().copied().fold(0.0, f64::max);
        let response = &record.time.response;
        assert_eq!(Some(top(&series.response_max_us)), response.all.max_us);
        assert_eq!(Some(top(&series.flush_max_us)), response.flush.max_us);
        assert_eq!(series.flushes.last(), Some(&response.flush.count));
        let percentiles = [&series.response_p99_us, &series.response_p99_9_us];
        let mut percentiles = percentiles.into_iter().flatten().flatten();
        assert!(percentiles.all(|us| Some(*us) <= response.all.max_us));
        assert!(series.response_p99_us.iter().all(Option::is_some));
        let columns = [&series.die_utilisation_max, &series.channel_utilisation_max];
        let shares = columns.into_iter().flatten().flatten();
        assert!(shares.into_iter().all(|share| (0.0..=1.0).contains(share)));

        let waiting_at = |n: u64| {
            let came_ns = rows[n as usize - 1].arrival_ns;
            let before = &rows[..n as usize];
            before.iter().filter(|row| row.end_ns > came_ns).count() as u64
        };
        // The last sample is taken once more when all is done.
        for (&n, &backlog) in series.requests.iter().zip(&series.backlog) {
            assert_eq!(backlog, waiting_at(n), "{channels} {depth}: after {n}");
        }
        // Of 50,000 requests there is a sample every 128, and a look every 64.
        let looks = (0..rows.len() as u64)
            .step_by(64)
            .map(|n| waiting_at(n + 1));
        assert_eq!(series.backlog_max.iter().max(), looks.max().as_ref());
        assert!(series.backlog.iter().any(|&n| n > 50));
    }
}
