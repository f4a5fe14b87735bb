//! A small fixed simulation whose instructions `cargo xtask instructions` counts:
//! `instructions page-1|page-4|page-4-queued|fast WRITES`.

use floatgate_core::options::Value;
use floatgate_core::rng::SplitMix64;
use floatgate_core::{Ftl, Lpn, Start, Striped};
use floatgate_schemes::{fast::Fast, page::Page};
use floatgate_sim::clock::{Clock, Closed, Events};
use floatgate_sim::config::{Arrivals, Device, Host, RunConfig};
use floatgate_sim::part::part;
use floatgate_sim::session::Session;
use floatgate_trace::{Op, Request};

/// 256 MiB of 4 KiB pages, 64 a block, 10 % spare.
const BLOCKS: u32 = 1024;
const LOGICAL_BLOCKS: u32 = 912;
const PAGES_PER_BLOCK: u32 = 64;
const LOG_BLOCKS: i64 = 48;

fn config(channels: u32, dies: u32) -> RunConfig {
    let mut part = part("mt29f16g08").expect("a preset").clone();
    part.pages_per_block = PAGES_PER_BLOCK;
    let logical_pages = u64::from(LOGICAL_BLOCKS * PAGES_PER_BLOCK);
    RunConfig {
        device: Device {
            channels,
            ..Device::one_die_a_channel(part, dies, BLOCKS / dies, logical_pages)
        },
        start: Start::Full,
        ageing: Vec::new(),
        host: Host {
            arrivals: Arrivals::Open,
            ..Host::default()
        },
        scheme: String::new(),
        options: Vec::new(),
    }
}

/// Uniform random writes of one page, 10 ms apart.
fn run<S: Ftl<Page = Lpn>, C: Clock>(config: &RunConfig, writes: u64) {
    let mut session = Session::<S, C>::new(config).expect("a valid configuration");
    let pages = u64::from(session.geometry().logical_pages);
    let mut rng = SplitMix64::new(1);
    for number in 0..writes {
        let request = Request {
            arrival_ns: number * 10_000_000,
            op: Op::Write,
            volume: 0,
            stream: floatgate_trace::Stream::NONE,
            offset: rng.below(pages) * 4096,
            bytes: 4096,
        };
        session.prefetch(&request);
        let played = session.request(&request);
        played.expect("the device has the page");
    }
    session.finish();
    println!("{} ns", session.metrics.last_completion_ns);
}

/// A closed loop with a queue of 32, four dies a channel, and blocks of a usual size: collections of several dies share a bus.
fn queued() -> RunConfig {
    let mut config = config(4, 16);
    config.device.part.pages_per_block = 4 * PAGES_PER_BLOCK;
    config.device.logical_pages *= 4;
    config.host = Host {
        arrivals: Arrivals::Closed,
        queue_depth: 32,
        ..Host::default()
    };
    config
}

fn main() {
    let args: Vec<String> = std::env::args().collect();
    let writes = args.get(2).and_then(|n| n.parse().ok()).unwrap_or(0);
    match args.get(1).map(String::as_str) {
        Some("page-1") => run::<Page, Closed>(&config(4, 4), writes),
        Some("page-4") => run::<Page, Events>(&config(2, 8), writes),
        Some("page-4-queued") => run::<Page, Events>(&queued(), writes),
        Some("fast") => {
            let config = RunConfig {
                options: vec![("log_blocks".into(), Value::Int(LOG_BLOCKS))],
                ..config(4, 4)
            };
            run::<Striped<Fast>, Closed>(&config, writes);
        }
        _ => eprintln!("instructions page-1|page-4|page-4-queued|fast WRITES"),
    }
}
