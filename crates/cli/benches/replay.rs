//! A trace end to end, from a compressed file to the results: requests a second of wall time, as a ratio to a bare loop
//! that does only the memory work of page mapping for the writes of the same trace, in the same run.
//!
//! `cargo bench --bench replay`; `-- --gib 32` another device, `--requests N` a longer trace, `--rounds N` more rounds.

use std::path::PathBuf;
use std::time::Instant;

use floatgate::bare::{Bare, PAGES_PER_BLOCK};
use floatgate_catalog::{Scheme, catalog};
use floatgate_core::Start;
use floatgate_core::options::{Setting, Value};
use floatgate_core::rng::SplitMix64;
use floatgate_sim::config::{Device, Host, RunConfig};
use floatgate_sim::part::part;
use floatgate_sim::run::Decoded;
use floatgate_sim::streamed::Streamed;
use floatgate_trace::{Op, OpenOptions, Reader, Request, WriteOptions, Writer};

const PAGE_BYTES: u64 = 4096;
const FILES: [&str; 3] = ["t.csv.zst", "t.csv.gz", "t.parquet"];

/// The device of all rows.
struct Shape {
    blocks: u32,
    logical_blocks: u32,
}

impl Shape {
    fn logical_pages(&self) -> u64 {
        u64::from(self.logical_blocks) * u64::from(PAGES_PER_BLOCK)
    }

    fn config(&self, scheme: &Scheme) -> RunConfig {
        let mut part = part("mt29f16g08").expect("a preset").clone();
        part.pages_per_block = PAGES_PER_BLOCK;
        let log_blocks = Value::Int(i64::from(self.blocks / 20 / 8 * 8));
        let option = scheme.info.filled_from(Setting::LogBlocks);
        let options = option.map(|option| (option.key.to_string(), log_blocks));
        RunConfig {
            device: Device::one_die_a_channel(part, 8, self.blocks / 8, self.logical_pages()),
            start: Start::Full,
            ageing: Vec::new(),
            host: Host::default(),
            scheme: scheme.info.key.into(),
            options: options.into_iter().collect(),
        }
    }
}

/// Requests of one page, anywhere; 70 % of them reads.
fn requests(count: u64, pages: u64) -> Vec<Request> {
    let mut rng = SplitMix64::new(1);
    let mut request = |number: u64| Request {
        arrival_ns: number * 1_000_000,
        op: if rng.below(10) < 7 {
            Op::Read
        } else {
            Op::Write
        },
        volume: 0,
        stream: floatgate_trace::Stream::NONE,
        offset: rng.below(pages) * PAGE_BYTES,
        bytes: PAGE_BYTES,
    };
    (0..count).map(&mut request).collect()
}

fn write(path: &PathBuf, trace: &[Request]) {
    let mut file = Writer::create(path, &WriteOptions::default()).expect("a place to write");
    for request in trace {
        file.write(request).expect("room for the trace");
    }
    file.finish().expect("room for the trace");
}

fn open(path: &PathBuf) -> Reader {
    floatgate_trace::open(path, &OpenOptions::default()).expect("the trace just written")
}

/// One row: a name, and what is timed.
type Row<'a> = (String, Box<dyn FnMut() + 'a>);

fn rows<'a>(shape: &'a Shape, trace: &'a [Request], files: &'a [PathBuf]) -> Vec<Row<'a>> {
    let mut bare = Bare::new(shape.blocks, shape.logical_pages() as u32);
    let bare_loop = move || {
        for request in trace.iter().filter(|request| request.op == Op::Write) {
            bare.write((request.offset / PAGE_BYTES) as u32);
        }
    };
    let mut rows: Vec<Row<'a>> = vec![("bare loop".into(), Box::new(bare_loop))];
    for path in files {
        let decode = || {
            let mut reader = open(path);
            while reader.next().expect("the trace just written").is_some() {}
        };
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        rows.push((format!("decode {name}"), Box::new(decode)));
    }
    let table = catalog();
    for key in ["page", "fast"] {
        let scheme = table.find(key).expect("a scheme of the registry").clone();
        let config = shape.config(&scheme);
        let (of_memory, scheme_of_memory) = (config.clone(), scheme.clone());
        let from_memory = move || {
            let run = scheme_of_memory.life.simulated.run(
                &of_memory,
                &mut Decoded::new(trace),
                &mut |_| {},
            );
            run.expect("the device takes the trace");
        };
        rows.push((format!("{key}, from memory"), Box::new(from_memory)));
        for path in files {
            let (config, scheme) = (config.clone(), scheme.clone());
            let from_file = move || {
                let mut source = Streamed::new(|| Ok(open(path))).expect("the trace just written");
                let run = scheme.life.simulated.run(&config, &mut source, &mut |_| {});
                run.expect("the device takes the trace");
            };
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            rows.push((format!("{key}, from {name}"), Box::new(from_file)));
        }
    }
    rows
}

fn main() {
    let args: Vec<String> = std::env::args().collect();
    let value = |flag: &str, default: u64| {
        let at = args.iter().position(|a| a == flag);
        let given = at
            .and_then(|i| args.get(i + 1))
            .and_then(|v| v.parse().ok());
        given.unwrap_or(default)
    };
    let (gib, rounds) = (value("--gib", 8), value("--rounds", 3).max(1) as usize);
    let blocks = (gib << 30) / PAGE_BYTES / u64::from(PAGES_PER_BLOCK);
    let shape = Shape {
        blocks: blocks as u32,
        logical_blocks: (blocks * 9 / 10 / 8 * 8) as u32,
    };
    let trace = requests(value("--requests", 2_000_000), shape.logical_pages());
    let folder = tempfile::tempdir().expect("a temporary folder");
    let files = FILES.map(|name| folder.path().join(name));
    files.iter().for_each(|path| write(path, &trace));
    let mut rows = rows(&shape, &trace, &files);
    let mut rates = vec![Vec::new(); rows.len()];
    for _ in 0..rounds {
        for ((_, work), rates) in rows.iter_mut().zip(&mut rates) {
            let start = Instant::now();
            work();
            rates.push(trace.len() as f64 / start.elapsed().as_secs_f64());
        }
    }
    println!(
        "{gib} GiB, {} requests of 4 KiB, 70 % reads; median of {rounds} rounds, wall time",
        trace.len()
    );
    println!("{:<24} {:>12} {:>9}", "", "requests/s", "to bare");
    let bare = rates[0].clone();
    let median = |mut of: Vec<f64>| {
        of.sort_by(f64::total_cmp);
        of[of.len() / 2]
    };
    for ((name, _), rates) in rows.iter().zip(rates) {
        let ratios = rates.iter().zip(&bare).map(|(rate, bare)| rate / bare);
        let ratio = median(ratios.collect());
        println!("{name:<24} {:>10.2} M {ratio:>9.2}", median(rates) / 1e6);
    }
}
