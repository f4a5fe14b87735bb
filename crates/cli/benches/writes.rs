//! Host page writes per second, as a ratio to a bare loop that does only the memory work that no page
//! mapping can avoid. Both run in turn in one process, so the ratio holds on a noisy machine.
//!
//! `cargo bench` runs the small device; `cargo bench -- --gib 8` another size, `--rounds N` more rounds,
//! `--only page` one scheme beside the bare loop.

use cpu_time::ThreadTime;
use floatgate::bare::{Bare, PAGES_PER_BLOCK};
use floatgate_core::options::Value;
use floatgate_core::rng::SplitMix64;
use floatgate_core::{Ftl, Lpn, Start, Striped};
use floatgate_schemes::{fast::Fast, page::Page};
use floatgate_sim::clock::{Clock, Closed, Events};
use floatgate_sim::config::{Arrivals, Device, Host, RunConfig};
use floatgate_sim::part::part;
use floatgate_sim::session::Session;
use floatgate_trace::{Op, Request};

fn config(
    blocks: u32,
    logical_blocks: u32,
    channels: u32,
    dies: u32,
    options: &[(&str, i64)],
) -> RunConfig {
    let mut part = part("mt29f16g08").expect("a preset").clone();
    part.pages_per_block = PAGES_PER_BLOCK;
    RunConfig {
        device: Device {
            channels,
            ..Device::one_die_a_channel(
                part,
                dies,
                blocks / dies,
                u64::from(logical_blocks / dies * dies) * u64::from(PAGES_PER_BLOCK),
            )
        },
        start: Start::Full,
        ageing: Vec::new(),
        host: Host {
            arrivals: Arrivals::Open,
            ..Host::default()
        },
        scheme: String::new(),
        options: options
            .iter()
            .map(|(k, v)| ((*k).into(), Value::Int(*v)))
            .collect(),
    }
}

/// A subject: writes that many random pages and tells the flash's page programs and reads they took.
trait Subject {
    fn name(&self) -> String;
    fn writes(&mut self, n: u64) -> u64;
}

struct BareSubject {
    bare: Bare,
    rng: SplitMix64,
}

impl Subject for BareSubject {
    fn name(&self) -> String {
        "bare loop".into()
    }
    fn writes(&mut self, n: u64) -> u64 {
        let logical = u64::from(self.bare.logical_pages());
        (0..n).for_each(|_| self.bare.write(self.rng.below(logical) as u32));
        n
    }
}

struct SessionSubject<S: Ftl<Page = Lpn>, C: Clock> {
    session: Session<S, C>,
    rng: SplitMix64,
    name: &'static str,
    at_ns: u64,
}

impl<S: Ftl<Page = Lpn>, C: Clock> SessionSubject<S, C> {
    fn boxed(name: &'static str, config: &RunConfig) -> Box<dyn Subject>
    where
        S: 'static,
        C: 'static,
    {
        let session = Session::<S, C>::new(config).expect("a valid configuration");
        Box::new(Self {
            session,
            rng: SplitMix64::new(1),
            name,
            at_ns: 0,
        })
    }
}

impl<S: Ftl<Page = Lpn>, C: Clock> Subject for SessionSubject<S, C> {
    fn name(&self) -> String {
        self.name.into()
    }
    fn writes(&mut self, n: u64) -> u64 {
        let pages = u64::from(self.session.geometry().logical_pages);
        let before = self.session.flash.ledger.counters;
        // Requests are known a little ahead, as in a run over a trace.
        const AHEAD: usize = 16;
        let mut ring = [None; AHEAD];
        for i in 0..n as usize + AHEAD {
            let place = &mut ring[i % AHEAD];
            let request = place.take();
            if i < n as usize {
                // A little apart, so that the queue of an open loop does not grow without end.
                self.at_ns += 10_000_000;
                let next = Request {
                    arrival_ns: self.at_ns,
                    op: Op::Write,
                    volume: 0,
                    stream: floatgate_trace::Stream::NONE,
                    offset: self.rng.below(pages) * 4096,
                    bytes: 4096,
                };
                self.session.prefetch(&next);
                *place = Some(next);
            }
            if let Some(request) = request {
                let played = self.session.request(&request);
                played.expect("the device has the page");
            }
        }
        let c = self.session.flash.ledger.counters;
        c.programs.sum() + c.reads.sum() - before.programs.sum() - before.reads.sum()
    }
}

fn main() {
    let args: Vec<String> = std::env::args().collect();
    let value = |flag: &str, default: f64| {
        let at = args.iter().position(|a| a == flag);
        at.and_then(|i| args.get(i + 1))
            .and_then(|v| v.parse().ok())
            .unwrap_or(default)
    };
    let (gib, rounds) = (value("--gib", 1.0), value("--rounds", 5.0) as usize);
    let blocks = (gib * (1 << 30) as f64 / 4096.0 / f64::from(PAGES_PER_BLOCK)) as u32;
    let logical_blocks = blocks * 9 / 10 / 16 * 16;
    // FAST: the same raw flash, 5 % of it log blocks.
    let log = i64::from(blocks / 20 / 8 * 8);
    let page = |channels, dies| config(blocks, logical_blocks, channels, dies, &[]);
    let mut subjects: Vec<Box<dyn Subject>> = vec![
        Box::new(BareSubject {
            bare: Bare::new(blocks, logical_blocks * PAGES_PER_BLOCK),
            rng: SplitMix64::new(1),
        }),
        SessionSubject::<Page, Closed>::boxed("page, 8 channels of 1 die", &page(8, 8)),
        SessionSubject::<Page, Events>::boxed("page, 4 channels of 4 dies", &page(4, 16)),
        SessionSubject::<Striped<Fast>, Closed>::boxed(
            "fast, 8 channels of 1 die",
            &config(blocks, logical_blocks, 8, 8, &[("log_blocks", log)]),
        ),
    ];
    if let Some(only) = args
        .iter()
        .position(|a| a == "--only")
        .and_then(|i| args.get(i + 1))
    {
        subjects.retain(|subject| {
            subject.name().starts_with(only.as_str()) || subject.name() == "bare loop"
        });
    }
    let writes = value("--writes", 1_000_000.0) as u64;
    // Three device writes bring page mapping to its steady state; the merges of FAST settle much sooner, and
    // cost two orders of magnitude more flash operations.
    let logical = u64::from(logical_blocks * PAGES_PER_BLOCK);
    for subject in &mut subjects {
        let fill = if subject.name().starts_with("fast") {
            logical / 16
        } else {
            3 * logical
        };
        subject.writes(fill);
    }
    let mut rates = vec![Vec::new(); subjects.len()];
    let mut operations = vec![0.0; subjects.len()];
    for _ in 0..rounds {
        for (i, subject) in subjects.iter_mut().enumerate() {
            let n = if subject.name().starts_with("fast") {
                writes / 50
            } else {
                writes
            };
            let start = ThreadTime::now();
            let ops = subject.writes(n);
            rates[i].push(n as f64 / start.elapsed().as_secs_f64());
            operations[i] = ops as f64 / n as f64;
        }
    }
    println!(
        "{gib} GiB raw, 4 KiB pages, 10 % spare, uniform random page writes, steady state, {rounds} rounds"
    );
    println!(
        "{:<28} {:>14} {:>9} {:>17} {:>9}",
        "", "host writes/s", "to bare", "flash page ops/s", "to bare"
    );
    let median = |rates: &[f64]| {
        let mut sorted = rates.to_vec();
        sorted.sort_by(f64::total_cmp);
        sorted[sorted.len() / 2]
    };
    let bare_rates = rates[0].clone();
    // What the bare loop moves, in the same unit: with the write amplification of `page`.
    let amplified = operations.get(1).copied().unwrap_or(1.0);
    let bare_ops = median(&bare_rates) * amplified;
    for (i, subject) in subjects.iter().enumerate() {
        let ratios: Vec<f64> = rates[i]
            .iter()
            .zip(&bare_rates)
            .map(|(a, b)| a / b)
            .collect();
        let rate = median(&rates[i]);
        let ops = if i == 0 {
            bare_ops
        } else {
            rate * operations[i]
        };
        println!(
            "{:<28} {:>12.2} M {:>9.3} {:>15.1} M {:>9.3}",
            subject.name(),
            rate / 1e6,
            median(&ratios),
            ops / 1e6,
            ops / bare_ops
        );
    }
}
