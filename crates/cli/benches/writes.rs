//! Host page writes per second, as a ratio to a bare loop that does only the memory work that no page
//! mapping can avoid. Both run in turn in one process, so the ratio holds on a noisy machine.
//!
//! `cargo bench` runs the small device; `cargo bench -- --gib 8` another size, `--rounds N` more rounds,
//! `--only page` one scheme beside the bare loop.

use std::time::Instant;

use floatgate_core::corner::large_table;
use floatgate_core::ftl::{fast::Fast, page::Page};
use floatgate_core::options::Value;
use floatgate_core::rng::SplitMix64;
use floatgate_core::{Ftl, Start, Striped};
use floatgate_sim::clock::{Clock, Closed, Events};
use floatgate_sim::config::{Arrivals, Device, Host, RunConfig};
use floatgate_sim::part::part;
use floatgate_sim::session::Session;
use floatgate_trace::{Op, Request};

const PAGES_PER_BLOCK: u32 = 256;
const NONE: u32 = u32::MAX;

/// Seconds since a start: of the processor's time for this thread where the system tells it, so that other work on
/// the machine disturbs less, else of the wall clock.
struct Stopwatch {
    processor_ns: Option<u64>,
    wall: Instant,
}

impl Stopwatch {
    fn start() -> Self {
        Self {
            processor_ns: Self::processor_ns(),
            wall: Instant::now(),
        }
    }

    fn processor_ns() -> Option<u64> {
        let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
        text.split(' ').next()?.parse().ok()
    }

    fn seconds(&self) -> f64 {
        match (self.processor_ns, Self::processor_ns()) {
            (Some(start_ns), Some(now_ns)) => (now_ns - start_ns) as f64 * 1e-9,
            _ => self.wall.elapsed().as_secs_f64(),
        }
    }
}

/// The least work of page mapping with greedy collection: map, reverse map, valid counts in buckets.
struct Bare {
    map: Vec<u32>,
    page_at: Vec<u32>,
    valid: Vec<u32>,
    prev: Vec<u32>,
    next: Vec<u32>,
    heads: Vec<u32>,
    emptiest: u32,
    free: Vec<u32>,
    host: (u32, u32),
    gc: (u32, u32),
}

impl Bare {
    fn new(blocks: u32, logical: u32) -> Self {
        let pages = (blocks * PAGES_PER_BLOCK) as usize;
        Self {
            map: large_table(NONE, logical as usize),
            page_at: large_table(0, pages),
            valid: vec![0; blocks as usize],
            prev: vec![NONE; blocks as usize],
            next: vec![NONE; blocks as usize],
            heads: vec![NONE; PAGES_PER_BLOCK as usize + 1],
            emptiest: PAGES_PER_BLOCK,
            free: (0..blocks).rev().collect(),
            host: (0, 0),
            gc: (0, 0),
        }
    }

    fn unlink(&mut self, b: u32) {
        let (p, n) = (self.prev[b as usize], self.next[b as usize]);
        if p == NONE {
            self.heads[self.valid[b as usize] as usize] = n
        } else {
            self.next[p as usize] = n
        }
        if n != NONE {
            self.prev[n as usize] = p;
        }
    }

    fn link(&mut self, b: u32) {
        let v = self.valid[b as usize];
        let head = self.heads[v as usize];
        (self.prev[b as usize], self.next[b as usize]) = (NONE, head);
        if head != NONE {
            self.prev[head as usize] = b;
        }
        self.heads[v as usize] = b;
        self.emptiest = self.emptiest.min(v);
    }

    fn invalidate(&mut self, page: u32) {
        let b = page / PAGES_PER_BLOCK;
        // An open block points at itself and is in no bucket.
        if self.prev[b as usize] == b {
            self.valid[b as usize] -= 1;
            return;
        }
        self.unlink(b);
        self.valid[b as usize] -= 1;
        self.link(b);
    }

    fn open(&mut self) -> (u32, u32) {
        let b = self.free.pop().expect("spare blocks");
        self.valid[b as usize] = PAGES_PER_BLOCK;
        self.prev[b as usize] = b;
        (b * PAGES_PER_BLOCK, (b + 1) * PAGES_PER_BLOCK)
    }

    fn collect(&mut self) {
        while self.heads[self.emptiest as usize] == NONE {
            self.emptiest += 1;
        }
        let b = self.heads[self.emptiest as usize];
        self.unlink(b);
        self.prev[b as usize] = b;
        for from in b * PAGES_PER_BLOCK..(b + 1) * PAGES_PER_BLOCK {
            let lpn = self.page_at[from as usize];
            if self.map[lpn as usize] != from {
                continue;
            }
            if self.gc.0 == self.gc.1 {
                if self.gc.1 != 0 {
                    self.link(self.gc.1 / PAGES_PER_BLOCK - 1);
                }
                self.gc = self.open();
            }
            let to = self.gc.0;
            self.gc.0 += 1;
            self.map[lpn as usize] = to;
            self.page_at[to as usize] = lpn;
        }
        self.free.push(b);
    }

    fn write(&mut self, lpn: u32) {
        if self.host.0 == self.host.1 {
            if self.host.1 != 0 {
                self.link(self.host.1 / PAGES_PER_BLOCK - 1);
            }
            while self.free.len() < 3 {
                self.collect();
            }
            self.host = self.open();
        }
        let old = self.map[lpn as usize];
        if old != NONE {
            self.invalidate(old);
        }
        let to = self.host.0;
        self.host.0 += 1;
        self.map[lpn as usize] = to;
        self.page_at[to as usize] = lpn;
    }
}

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
        let logical = self.bare.map.len() as u64;
        (0..n).for_each(|_| self.bare.write(self.rng.below(logical) as u32));
        n
    }
}

struct SessionSubject<S: Ftl, C: Clock> {
    session: Session<S, C>,
    rng: SplitMix64,
    name: &'static str,
    at_ns: u64,
}

impl<S: Ftl, C: Clock> SessionSubject<S, C> {
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

impl<S: Ftl, C: Clock> Subject for SessionSubject<S, C> {
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
            let start = Stopwatch::start();
            let ops = subject.writes(n);
            rates[i].push(n as f64 / start.seconds());
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
