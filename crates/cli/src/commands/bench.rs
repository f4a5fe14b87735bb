//! `floatgate bench`: how fast each scheme is simulated on this machine, and how much memory its state takes.
//!
//! Times are processor times of the one thread that works: what else the machine does disturbs its caches only.

use std::time::Duration;

use cpu_time::ThreadTime;
use floatgate_catalog::Scheme;
use floatgate_core::options::{Setting, Value as OptionValue};
use floatgate_core::rng::SplitMix64;
use floatgate_core::{Lpn, Start};
use floatgate_sim::config::{Device, Host, RunConfig};
use floatgate_sim::driven::{Ask, Done, Driven};
use floatgate_sim::host::Kind;
use floatgate_sim::part::part;
use floatgate_sim::record::SCHEMA;
use floatgate_sim::record::bench::{
    BareSpeed, BenchDevice, BenchDocument, BenchFailure, BenchOutcome, SchemeSpeed, Speed,
};
use floatgate_sim::run::RunError;

use super::schemes::find;
use crate::PROGRAM;
use crate::args::BenchArgs;
use crate::bare::{Bare, PAGES_PER_BLOCK};
use crate::config::sizing::{Failure, guarded};
use crate::errors::{Outcome, Problem};
use crate::memory::{self, Held};
use crate::output;
use crate::progress::Bar;
use crate::table::{Table, bytes, short};

const PAGE_BYTES: u64 = 4096;
const SPARE_PERCENT: u64 = 10;
/// Log blocks, in percent of all blocks, out of the spare ones.
const LOG_PERCENT: u32 = 5;
/// Pages of a sequential request: 128 KiB.
const SEQUENTIAL_PAGES: u32 = 32;
const READ_PERCENT: u64 = 70;
/// Requests between two looks at the clock.
const BATCH: usize = 1024;
/// Random writes are measured in turn with the bare loop, so often.
const ROUNDS: u32 = 5;
/// Each round begins with this part of it untimed: what the other one has left in the caches goes.
const UNTIMED_PART: u32 = 4;
/// Page mapping is at its steady state after as many random writes as the device has pages, so often.
const STEADY_DEVICE_WRITES: u64 = 3;
/// The warm-up of a device of [`WARM_UP_BYTES`] ends after so many measuring times, even before the steady state;
/// that of a larger device later, in proportion.
const WARM_UP_TIMES: f64 = 5.0;
const WARM_UP_BYTES: f64 = (8_u64 << 30) as f64;

/// The device and the times of one benchmark.
struct Bench {
    blocks: u32,
    logical_blocks: u32,
    dies: u32,
    channels: u32,
    /// Of one measurement.
    time: Duration,
    warm_up: Duration,
}

impl Bench {
    fn of(args: &BenchArgs) -> Outcome<Self> {
        let channels = args.channels.unwrap_or(args.dies.min(8));
        if channels > args.dies {
            let text = format!("{channels} channels for {} dies", args.dies);
            return Err(Problem::new(text).help("at most one channel a die"));
        }
        let unit = u64::from(args.dies);
        let blocks = args.size / PAGE_BYTES / u64::from(PAGES_PER_BLOCK) / unit * unit;
        let logical = blocks * (100 - SPARE_PERCENT) / 100 / unit * unit;
        let too_small = || {
            let least = unit * u64::from(PAGES_PER_BLOCK) * PAGE_BYTES * 16;
            Problem::new(format!(
                "a device of {} is too small for {} dies",
                bytes(args.size as f64),
                args.dies
            ))
            .help(format!("{} or more, or fewer dies", bytes(least as f64)))
        };
        if blocks < unit * 16 {
            return Err(too_small());
        }
        let small = |n: u64| u32::try_from(n).map_err(|_| too_small());
        let seconds = args.time;
        let large = (args.size as f64 / WARM_UP_BYTES).max(1.0);
        Ok(Self {
            blocks: small(blocks)?,
            logical_blocks: small(logical)?,
            dies: args.dies,
            channels,
            time: Duration::from_secs_f64(seconds),
            warm_up: Duration::from_secs_f64(seconds * WARM_UP_TIMES * large),
        })
    }

    fn logical_pages(&self) -> u64 {
        u64::from(self.logical_blocks) * u64::from(PAGES_PER_BLOCK)
    }

    fn flash_pages(&self) -> u64 {
        u64::from(self.blocks) * u64::from(PAGES_PER_BLOCK)
    }

    fn config(&self, scheme: &Scheme) -> Outcome<RunConfig> {
        let part = part("mt29f16g08").ok_or_else(|| Problem::bug("a preset is gone"))?;
        let mut part = part.clone();
        part.pages_per_block = PAGES_PER_BLOCK;
        let per_die = self.blocks / self.dies;
        let device = Device::one_die_a_channel(part, self.dies, per_die, self.logical_pages());
        let log_blocks = self.blocks * LOG_PERCENT / 100 / self.dies * self.dies;
        let options = scheme.info.filled_from(Setting::LogBlocks).map(|option| {
            let blocks = OptionValue::Int(log_blocks.max(self.dies).into());
            (option.key.to_string(), blocks)
        });
        Ok(RunConfig {
            device: Device {
                channels: self.channels,
                ..device
            },
            start: Start::Full,
            ageing: Vec::new(),
            host: Host::default(),
            scheme: scheme.info.key.into(),
            options: options.into_iter().collect(),
        })
    }
}

/// Which pages are asked for, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pattern {
    RandomWrites,
    Mixed,
    SequentialWrites,
}

/// Requests of a pattern, a batch at a time.
struct Asks {
    pattern: Pattern,
    pages: u64,
    rng: SplitMix64,
    next: u64,
    batch: Vec<Ask>,
}

impl Asks {
    fn new(pattern: Pattern, pages: u64) -> Self {
        Self {
            pattern,
            pages,
            rng: SplitMix64::new(1),
            next: 0,
            batch: Vec::with_capacity(BATCH),
        }
    }

    fn batch(&mut self) -> &[Ask] {
        self.batch.clear();
        while self.batch.len() < BATCH {
            let ask = self.ask();
            self.batch.push(ask);
        }
        &self.batch
    }

    fn ask(&mut self) -> Ask {
        if self.pattern == Pattern::SequentialWrites {
            let first = self.next;
            self.next = (self.next + u64::from(SEQUENTIAL_PAGES)) % self.pages;
            return Ask {
                kind: Kind::Write,
                first: Lpn(first as u32),
                pages: SEQUENTIAL_PAGES,
            };
        }
        let reads = self.pattern == Pattern::Mixed && self.rng.below(100) < READ_PERCENT;
        Ask {
            kind: if reads { Kind::Read } else { Kind::Write },
            first: Lpn(self.rng.below(self.pages) as u32),
            pages: 1,
        }
    }
}

/// Work done in some time.
#[derive(Clone, Copy, Debug, Default)]
struct Measured {
    done: Done,
    seconds: f64,
}

impl Measured {
    fn host_pages_per_s(&self) -> f64 {
        self.done.host_pages as f64 / self.seconds
    }

    fn flash_operations_per_s(&self) -> f64 {
        self.done.flash_operations as f64 / self.seconds
    }

    fn speed(&self) -> Speed {
        Speed {
            host_pages: self.done.host_pages,
            seconds: self.seconds,
            host_pages_per_s: self.host_pages_per_s(),
            flash_operations: self.done.flash_operations,
            flash_operations_per_s: self.flash_operations_per_s(),
        }
    }
}

/// Plays batches until the time is over.
fn play(device: &mut dyn Driven, asks: &mut Asks, time: Duration) -> Measured {
    let before = device.done();
    let start = ThreadTime::now();
    loop {
        device.play(asks.batch());
        if start.elapsed() >= time {
            break;
        }
    }
    let seconds = start.elapsed().as_secs_f64();
    Measured {
        done: device.done() - before,
        seconds,
    }
}

/// Random writes until the steady state or the end of the time; device writes.
fn warm_up(device: &mut dyn Driven, bench: &Bench) -> f64 {
    let pages = bench.logical_pages();
    let mut asks = Asks::new(Pattern::RandomWrites, pages);
    let start = ThreadTime::now();
    let mut written = 0;
    while written < STEADY_DEVICE_WRITES * pages && start.elapsed() < bench.warm_up {
        device.play(asks.batch());
        written += BATCH as u64;
    }
    written as f64 / pages as f64
}

/// The bare loop at its steady state.
struct BareLoop {
    bare: Bare,
    rng: SplitMix64,
    held: Held,
    rates: Vec<f64>,
}

impl BareLoop {
    fn new(bench: &Bench) -> Self {
        let before = Held::now();
        let logical = bench.logical_pages();
        let mut new = Self {
            bare: Bare::new(bench.blocks, logical as u32),
            rng: SplitMix64::new(1),
            held: before,
            rates: Vec::new(),
        };
        new.held = Held::now().since(before);
        new.writes(STEADY_DEVICE_WRITES * logical);
        new
    }

    fn writes(&mut self, n: u64) {
        let logical = u64::from(self.bare.logical_pages());
        (0..n).for_each(|_| self.bare.write(self.rng.below(logical) as u32));
    }

    /// Writes a second.
    fn measure(&mut self, time: Duration) -> f64 {
        let start = ThreadTime::now();
        let mut written = 0;
        while start.elapsed() < time {
            self.writes(BATCH as u64);
            written += BATCH as u64;
        }
        written as f64 / start.elapsed().as_secs_f64()
    }
}

/// What came out for one scheme.
struct Speeds {
    aged: f64,
    random: Measured,
    /// Host writes a second to those of the bare loop.
    to_bare: f64,
    write_amplification: f64,
    mixed: Measured,
    sequential: Measured,
    held: Held,
}

fn median(mut of: Vec<f64>) -> f64 {
    of.sort_by(f64::total_cmp);
    of.get(of.len() / 2).copied().unwrap_or(0.0)
}

fn measure(scheme: &Scheme, bench: &Bench, bare: &mut BareLoop) -> Result<Speeds, RunError> {
    let config = bench
        .config(scheme)
        .map_err(|problem| RunError::Law(problem.to_string()))?;
    let before = Held::now();
    scheme.life.simulated.live(&config)?;
    let mut device = scheme.life.simulated.drive(&config)?;
    let device = &mut *device;
    let pages = bench.logical_pages();
    let mut asks = Asks::new(Pattern::SequentialWrites, pages);
    let sequential = play(device, &mut asks, bench.time);
    let aged = warm_up(device, bench);
    let mut asks = Asks::new(Pattern::RandomWrites, pages);
    let (mut random, mut ratios) = (Measured::default(), Vec::new());
    let (round_time, untimed) = (bench.time / ROUNDS, bench.time / ROUNDS / UNTIMED_PART);
    for _ in 0..ROUNDS {
        bare.measure(untimed);
        let bare_rate = bare.measure(round_time);
        play(device, &mut asks, untimed);
        let round = play(device, &mut asks, round_time);
        bare.rates.push(bare_rate);
        ratios.push(round.host_pages_per_s() / bare_rate);
        random.seconds += round.seconds;
        random.done += round.done;
    }
    let mixed = play(device, &mut Asks::new(Pattern::Mixed, pages), bench.time);
    let held = Held::now().since(before);
    device.check().map_err(RunError::Law)?;
    Ok(Speeds {
        aged,
        random,
        to_bare: median(ratios),
        write_amplification: random.done.programs as f64 / random.done.host_writes as f64,
        mixed,
        sequential,
        held,
    })
}

/// Measures the schemes and prints the table.
pub fn run(args: &BenchArgs, schemes: &[Scheme]) -> Outcome<()> {
    let bench = Bench::of(args)?;
    let chosen: Vec<&Scheme> = match &args.scheme[..] {
        [] => schemes.iter().collect(),
        names => names
            .iter()
            .map(|name| find(schemes, name.trim()))
            .collect::<Outcome<_>>()?,
    };
    check_memory(&bench, &chosen)?;
    output::tell(&format!("Device: {}", describe(&bench)));
    let bar = Bar::new(chosen.len() as u64 + 1, "");
    bar.message("bare loop");
    let mut bare = BareLoop::new(&bench);
    bar.add(1);
    let mut rows = Vec::new();
    for scheme in chosen {
        bar.message(scheme.info.key);
        rows.push((scheme, guarded(|| measure(scheme, &bench, &mut bare))));
        bar.add(1);
    }
    bar.done();
    let bug = rows.iter().find_map(|(scheme, row)| match row {
        Err(Failure::Bug(text)) => Some(Problem::bug(format!("{}: {text}", scheme.info.key))),
        _ => None,
    });
    if args.json {
        output::print_json(&document(&bench, &bare, &rows))?;
    } else {
        output::print(&text(&bench, &bare, &rows))?;
    }
    bug.map_or(Ok(()), Err)
}

fn check_memory(bench: &Bench, chosen: &[&Scheme]) -> Outcome<()> {
    let mut most = 0;
    for scheme in chosen {
        let config = bench.config(scheme)?;
        most = most.max(scheme.life.simulated.memory_bytes(&config).unwrap_or(0));
    }
    let bare = 4 * (bench.logical_pages() + bench.flash_pages());
    memory::check(most + bare, memory::available(), "the benchmark")
}

fn describe(bench: &Bench) -> String {
    format!(
        "{}, {} dies on {} channels, pages of 4 KiB, {PAGES_PER_BLOCK} a block, {SPARE_PERCENT} % spare, start full",
        bytes((bench.flash_pages() * PAGE_BYTES) as f64),
        bench.dies,
        bench.channels,
    )
}

type Row<'a> = (&'a Scheme, Result<Speeds, Failure>);

fn reason(failure: &Failure) -> String {
    match failure {
        Failure::Refused(refusal) => format!("refused: {}", refusal.message),
        Failure::Trace(text) => format!("failed: {text}"),
        Failure::Bug(text) => format!("BUG: {text}"),
    }
}

fn mega(rate: f64) -> String {
    format!("{} M", short(rate / 1e6))
}

fn text(bench: &Bench, bare: &BareLoop, rows: &[Row<'_>]) -> String {
    let pages = bench.flash_pages() as f64;
    let mut table = Table::new(&[
        "<scheme",
        "aged",
        "random writes/s",
        "to bare",
        "WA",
        "flash ops/s",
        "mixed pages/s",
        "flash ops/s",
        "sequential/s",
        "flash ops/s",
        "bytes a page",
    ]);
    let per_page = |held: &Held| short(held.bytes as f64 / pages);
    let mut cells = vec!["bare loop".to_string(), short(STEADY_DEVICE_WRITES as f64)];
    cells.extend([mega(median(bare.rates.clone())), short(1.0)]);
    cells.extend(["-"; 6].map(String::from));
    cells.push(per_page(&bare.held));
    table.row(cells);
    let steady = STEADY_DEVICE_WRITES as f64;
    for (scheme, row) in rows {
        let key = scheme.info.key;
        match row {
            Ok(of) => table.row([
                key.to_string(),
                format!(
                    "{}{}",
                    short(of.aged),
                    if of.aged < steady { "*" } else { "" }
                ),
                mega(of.random.host_pages_per_s()),
                format!("{:.4}", of.to_bare),
                short(of.write_amplification),
                mega(of.random.flash_operations_per_s()),
                mega(of.mixed.host_pages_per_s()),
                mega(of.mixed.flash_operations_per_s()),
                mega(of.sequential.host_pages_per_s()),
                mega(of.sequential.flash_operations_per_s()),
                per_page(&of.held),
            ]),
            Err(failure) => table.across(key, reason(failure)),
        }
    }
    format!(
        "\n{}aged: random writes before the measurement, in times of the logical pages; *: stopped there after {} s\n\
         mixed: 70 % reads; sequential: writes of 128 KiB; /s: a second of one processor, full timing and metrics\n\
         to bare: random writes to those of a loop that does only the memory work of page mapping, in turn with it\n\
         bytes a page: {} for one page of the flash, all tables of simulator and scheme\n",
        table.render(),
        short(bench.warm_up.as_secs_f64()),
        bare.held.how()
    )
}

fn document(bench: &Bench, bare: &BareLoop, rows: &[Row<'_>]) -> BenchDocument {
    let pages = bench.flash_pages() as f64;
    let outcome = |(scheme, row): &Row<'_>| match row {
        Ok(of) => BenchOutcome::Measured(SchemeSpeed {
            scheme: scheme.info.key.into(),
            aged_device_writes: of.aged,
            steady: of.aged >= STEADY_DEVICE_WRITES as f64,
            random_writes: of.random.speed(),
            random_writes_to_bare: of.to_bare,
            write_amplification: of.write_amplification,
            mixed: of.mixed.speed(),
            sequential_writes: of.sequential.speed(),
            state_bytes: of.held.bytes,
            bytes_per_flash_page: of.held.bytes as f64 / pages,
        }),
        Err(failure) => BenchOutcome::Failed(BenchFailure {
            scheme: scheme.info.key.into(),
            failed: reason(failure),
        }),
    };
    BenchDocument {
        schema: SCHEMA,
        program: PROGRAM.into(),
        device: BenchDevice {
            flash_pages: bench.flash_pages(),
            logical_pages: bench.logical_pages(),
            page_bytes: PAGE_BYTES,
            pages_per_block: PAGES_PER_BLOCK,
            dies: bench.dies,
            channels: bench.channels,
        },
        measuring_s: bench.time.as_secs_f64(),
        warm_up_s: bench.warm_up.as_secs_f64(),
        memory_measured_as: bare.held.how().into(),
        bare_loop: BareSpeed {
            random_writes_per_s: median(bare.rates.clone()),
            bytes_per_flash_page: bare.held.bytes as f64 / pages,
        },
        results: rows.iter().map(outcome).collect(),
    }
}
