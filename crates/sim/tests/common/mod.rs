//! What the simulator's tests share.

#[allow(dead_code)]
pub mod played;

use floatgate_core::options::Value;
use floatgate_core::rng::SplitMix64;
use floatgate_core::{Ftl, Lpn, Start};
use floatgate_sim::clock::Closed;
use floatgate_sim::config::{Device, Host, RunConfig};
use floatgate_sim::host::Kind;
use floatgate_sim::part::part;
use floatgate_sim::session::Session;

/// A device of that shape with the part `ssdsim`, start full.
pub fn config(
    dies: u32,
    blocks: u32,
    pages: u32,
    logical_blocks: u32,
    options: &[(&str, &str)],
) -> RunConfig {
    let mut part = part("ssdsim").expect("a preset").clone();
    part.pages_per_block = pages;
    RunConfig {
        device: Device::one_die_a_channel(
            part,
            dies,
            blocks,
            u64::from(logical_blocks) * u64::from(pages) * u64::from(dies),
        ),
        start: Start::Full,
        ageing: Vec::new(),
        host: Host::default(),
        scheme: String::new(),
        options: options
            .iter()
            .map(|(k, v)| ((*k).into(), Value::from_word(v)))
            .collect(),
    }
}

/// Uniform single-page writes from seed 1: the first `dropped` do not count, the next `counted` do.
#[allow(dead_code)]
pub fn uniform<S: Ftl<Page = Lpn>>(
    config: &RunConfig,
    dropped: u64,
    counted: u64,
) -> Session<S, Closed> {
    let mut session = Session::<S, Closed>::new(config).expect("a valid configuration");
    let pages = u64::from(session.geometry().logical_pages);
    let mut rng = SplitMix64::new(1);
    for _ in 0..dropped {
        session.page_request(Kind::Write, Lpn(rng.below(pages) as u32), 1, 0);
    }
    session.reset_counters();
    for _ in 0..counted {
        session.page_request(Kind::Write, Lpn(rng.below(pages) as u32), 1, 0);
    }
    session.finish();
    session.check_laws().expect("laws hold");
    session
}
