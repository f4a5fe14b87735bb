//! Every scheme on the same work: flash operations per second of simulation, as a ratio to `fast` in the same
//! run. `cargo bench --bench schemes`; `-- --rounds N` for more rounds.

use std::time::Instant;

use floatgate_catalog::{Scheme, catalog};
use floatgate_core::Start;
use floatgate_core::options::{Setting, Value};
use floatgate_core::rng::SplitMix64;
use floatgate_sim::config::{Device, Host, RunConfig};
use floatgate_sim::part::part;
use floatgate_sim::record::Record;
use floatgate_sim::run::Decoded;
use floatgate_trace::{Op, Request};

const DIES: u32 = 4;
const LOGICAL_BLOCKS: u32 = 800;
const LOG_BLOCKS: u32 = 64;

fn config(scheme: &Scheme) -> RunConfig {
    let part = part("mt29f16g08").expect("a preset").clone();
    let logical_pages = u64::from(LOGICAL_BLOCKS) * u64::from(part.pages_per_block);
    RunConfig {
        device: Device::one_die_a_channel(
            part,
            DIES,
            LOGICAL_BLOCKS / DIES + LOG_BLOCKS / DIES + 12,
            logical_pages,
        ),
        start: Start::Full,
        ageing: Vec::new(),
        host: Host::default(),
        scheme: scheme.info.key.into(),
        options: scheme
            .info
            .filled_from(Setting::LogBlocks)
            .map(|option| (option.key.to_string(), Value::Int(LOG_BLOCKS.into())))
            .into_iter()
            .collect(),
    }
}

/// Writes of one to four pages, half of them in a hot tenth of the space, some sequential, one in five a read.
fn work(requests: u64) -> Vec<Request> {
    let mut rng = SplitMix64::new(1);
    let pages = u64::from(LOGICAL_BLOCKS) * 128;
    let mut sequential = 0;
    (0..requests)
        .map(|i| {
            let n = 1 + rng.below(4);
            let first = match rng.below(10) {
                0..5 => rng.below(pages / 10),
                5..7 => {
                    sequential = (sequential + n) % (pages - 8);
                    sequential
                }
                _ => rng.below(pages - 8),
            };
            let op = if rng.below(5) == 0 {
                Op::Read
            } else {
                Op::Write
            };
            Request {
                arrival_ns: i * 10_000_000,
                op,
                volume: 0,
                stream: floatgate_trace::Stream::NONE,
                offset: first * 4096,
                bytes: n * 4096,
            }
        })
        .collect()
}

/// Flash operations of a record.
fn operations(record: &Record) -> f64 {
    (record.derived.io_operations + record.counters.flash.oob_reads.sum()) as f64
}

fn main() {
    let args: Vec<String> = std::env::args().collect();
    let at = args.iter().position(|a| a == "--rounds");
    let rounds: usize = at
        .and_then(|i| args.get(i + 1))
        .and_then(|v| v.parse().ok())
        .unwrap_or(3);
    let schemes = catalog();
    let requests = work(40_000);
    let mut rates: Vec<Vec<f64>> = vec![Vec::new(); schemes.len()];
    let mut done = vec![0.0; schemes.len()];
    for _ in 0..rounds {
        for (i, scheme) in schemes.iter().enumerate() {
            let config = config(scheme);
            let start = Instant::now();
            match scheme
                .life
                .simulated
                .run(&config, &mut Decoded::new(&requests), &mut |_| {})
            {
                Ok(record) => {
                    done[i] = operations(&record);
                    rates[i].push(done[i] / start.elapsed().as_secs_f64());
                }
                Err(error) => {
                    eprintln!("{}: {error}", scheme.info.key);
                    std::process::exit(1);
                }
            }
        }
    }
    let fast = schemes
        .iter()
        .position(|s| s.info.key == "fast")
        .expect("fast is registered");
    println!(
        "{} requests on 4 dies of {LOGICAL_BLOCKS} logical and {LOG_BLOCKS} log blocks, {rounds} rounds",
        requests.len()
    );
    println!(
        "{:<12} {:>16} {:>20} {:>9}",
        "", "flash operations", "operations/s (median)", "to fast"
    );
    for (i, scheme) in schemes.iter().enumerate() {
        let mut ratios: Vec<f64> = rates[i]
            .iter()
            .zip(&rates[fast])
            .map(|(a, b)| a / b)
            .collect();
        ratios.sort_by(f64::total_cmp);
        rates[i].sort_by(f64::total_cmp);
        let rate = rates[i][rounds / 2];
        println!(
            "{:<12} {:>16.0} {:>18.1} M {:>9.2}",
            scheme.info.key,
            done[i],
            rate / 1e6,
            ratios[rounds / 2]
        );
    }
}
