//! Prints the table of docs/validation.md: closed formulas beside what the simulator gives.
//!
//! `cargo run --release -p floatgate-sim --example validation`

use floatgate_core::options::Value;
use floatgate_core::rng::SplitMix64;
use floatgate_core::{Described, Ftl, Lpn, Start, Striped};
use floatgate_schemes::{bast::Bast, block::Block, fast::Fast, page::Page};
use floatgate_sim::analytic;
use floatgate_sim::clock::{Closed, Mode};
use floatgate_sim::config::{Device, Host, RunConfig};
use floatgate_sim::host::Kind;
use floatgate_sim::part::part;
use floatgate_sim::session::Session;

/// A shape of one die: blocks, logical blocks, pages a block.
type Shape = (u32, u32, u32);

fn config((blocks, logical, pages): Shape, options: &[(&str, &str)]) -> RunConfig {
    let mut part = part("ssdsim").expect("a preset").clone();
    part.pages_per_block = pages;
    RunConfig {
        device: Device {
            mode: Mode::Flat,
            ..Device::one_die_a_channel(part, 1, blocks, u64::from(logical) * u64::from(pages))
        },
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

/// Write amplification of `n` writes after `dropped`; a share `r` of them goes to a share `f` of the pages.
fn amplification<S: Ftl<Page = Lpn>>(
    shape: Shape,
    options: &[(&str, &str)],
    dropped: u64,
    n: u64,
    hot: Option<(f64, f64)>,
) -> (f64, Session<S, Closed>) {
    let mut session = Session::<S, Closed>::new(&config(shape, options)).expect("a valid device");
    let pages = u64::from(session.geometry().logical_pages);
    let mut rng = SplitMix64::new(1);
    let mut next = || match hot {
        None => rng.below(pages),
        Some((r, f)) => {
            let edge = (pages as f64 * f) as u64;
            let to_hot = (rng.below(1_000_000) as f64) < r * 1e6;
            if to_hot {
                rng.below(edge)
            } else {
                edge + rng.below(pages - edge)
            }
        }
    };
    for i in 0..dropped + n {
        if i == dropped {
            session.reset_counters();
        }
        session.page_request(Kind::Write, Lpn(next() as u32), 1, 0);
    }
    session.finish();
    session.check_laws().expect("laws hold");
    let c = session.flash.ledger.counters;
    (c.programs.sum() as f64 / c.programs.host as f64, session)
}

fn row(what: &str, formula: f64, simulated: f64) {
    let off = (simulated / formula - 1.0) * 100.0;
    println!("| {what} | {formula:.3} | {simulated:.3} | {off:+.2} % |");
}

fn page(blocks: u32, logical: u32, policy: &[(&str, &str)], hot: Option<(f64, f64)>) -> (f64, f64) {
    let mut options = vec![("streams", "shared")];
    options.extend_from_slice(policy);
    let shape = (blocks, logical, 64);
    let writes = u64::from(logical) * 64 * 8;
    let (simulated, _) = amplification::<Page>(shape, &options, writes, 2 * writes, hot);
    (
        analytic::usable_pages(blocks, 2, 64) / (f64::from(logical) * 64.0),
        simulated,
    )
}

fn main() {
    println!("| case | formula | simulated | difference |");
    println!("|---|---|---|---|");
    for (logical, spare) in [(372, ".07"), (360, ".10"), (320, ".20")] {
        let (a, simulated) = page(402, logical, &[], None);
        row(
            &format!("page, greedy, uniform, spare {spare}"),
            analytic::greedy(a, 64),
            simulated,
        );
        let (a, simulated) = page(402, logical, &[("gc_policy", "fifo")], None);
        row(
            &format!("page, FIFO, uniform, spare {spare}"),
            analytic::fifo(a),
            simulated,
        );
        let (a, simulated) = page(402, logical, &[("gc_policy", "fifo")], Some((0.8, 0.2)));
        row(
            &format!("page, FIFO, 80/20, spare {spare}"),
            analytic::fifo_hot_cold(a, 0.8, 0.2),
            simulated,
        );
    }
    for draws in [1, 2, 3, 10] {
        let d = draws.to_string();
        let (a, simulated) = page(402, 360, &[("gc_policy", "d-choices"), ("gc_d", &d)], None);
        row(
            &format!("page, {d} choices, uniform, spare .10"),
            analytic::d_choices(a, 64, draws),
            simulated,
        );
    }
    let (simulated, _) = amplification::<Striped<Block>>((101, 100, 32), &[], 1_000, 20_000, None);
    row("block mapping, P = 32", 32.0, simulated);
    let options = [("log_blocks", "300")];
    let (simulated, _) =
        amplification::<Striped<Bast>>((1301, 1000, 64), &options, 40_000, 60_000, None);
    row(
        "BAST, 1000 logical, 300 log blocks, P = 64",
        analytic::bast(1000.0, 300.0, 64.0),
        simulated,
    );
    let options = [("log_blocks", "16"), ("sw_log", "false")];
    let (simulated, session) =
        amplification::<Striped<Fast>>((517, 500, 64), &options, 64 * 100, 64 * 2_000, None);
    let m = session.ftl.counters().merges;
    let k = m.full_merge_associated as f64 / (m.full + m.dead) as f64;
    row(
        "FAST, 500 logical, 16 log blocks, P = 64: 1 + k",
        1.0 + k,
        simulated,
    );
}
