//! Damaged traces: no panic, no unbounded memory, always an end.
#![allow(unsafe_code)] // the allocator that measures

mod samples;

use std::alloc::{GlobalAlloc, Layout, System};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};

use floatgate_trace::generate::SplitMix64;
use floatgate_trace::{Format, OpenOptions, open_reader};
use samples::{compressed, samples};

/// Measures the most memory held at any time.
struct Measuring;

static HELD: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

// SAFETY: every call goes on to the system's allocator unchanged.
unsafe impl GlobalAlloc for Measuring {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let held = HELD.fetch_add(layout.size(), Ordering::Relaxed) + layout.size();
        PEAK.fetch_max(held, Ordering::Relaxed);
        // SAFETY: the caller's promises are passed on.
        unsafe { System.alloc(layout) }
    }
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        let held = HELD.fetch_add(layout.size(), Ordering::Relaxed) + layout.size();
        PEAK.fetch_max(held, Ordering::Relaxed);
        // SAFETY: the caller's promises are passed on.
        unsafe { System.alloc_zeroed(layout) }
    }
    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        HELD.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller's promises are passed on.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Measuring = Measuring;

/// What a small damaged file may make the reader hold.
const LIMIT: usize = 96 << 20;

/// Reads everything; returns the number of requests.
fn drain(name: &str, bytes: Vec<u8>, options: &OpenOptions) -> u64 {
    let length = bytes.len() as u64;
    let Ok(mut reader) = open_reader(name, Box::new(std::io::Cursor::new(bytes)), options) else {
        return 0;
    };
    let mut requests = 0;
    while let Ok(Some(_)) = reader.next() {
        requests += 1;
        assert!(requests <= 100_000 + length * 1000, "no end");
    }
    requests
}

/// Damages bytes: flips, overwrites, cuts off, drops, doubles.
fn damage(random: &mut SplitMix64, bytes: &[u8]) -> Vec<u8> {
    let mut out = bytes.to_vec();
    for _ in 0..=random.below(4) {
        if out.is_empty() {
            break;
        }
        let at = random.below(out.len() as u64) as usize;
        let n = (1 + random.below(8) as usize).min(out.len() - at);
        match random.below(7) {
            0 => out[at] ^= 1 << random.below(8),
            1 => out[at] = random.next() as u8,
            2 => out.truncate(at),
            3 => drop(out.drain(at..at + n)),
            4 => {
                let piece = out[at..at + n].to_vec();
                out.splice(at..at, piece);
            }
            5 => out[at..at + n].fill(0xff),
            _ => {
                let odd = b"0,.-+ \t\n;e9\0\xff#";
                out[at] = odd[random.below(odd.len() as u64) as usize];
            }
        }
    }
    out
}

fn attack(name: &str, bytes: &[u8], options: &OpenOptions, cases: u64) {
    for seed in 0..cases {
        let mut random = SplitMix64::new(seed);
        let damaged = damage(&mut random, bytes);
        let before = HELD.load(Ordering::Relaxed);
        PEAK.store(before, Ordering::Relaxed);
        let result = catch_unwind(AssertUnwindSafe(|| drain(name, damaged, options)));
        let peak = PEAK.load(Ordering::Relaxed).saturating_sub(before);
        assert!(result.is_ok(), "{name}: panic with seed {seed}");
        assert!(peak < LIMIT, "{name}: {peak} bytes held with seed {seed}");
    }
}

/// One test, so that nothing else allocates beside it.
#[test]
fn damaged_traces() {
    // The Parquet library panics on some damaged files; the reader turns that into an error.
    std::panic::set_hook(Box::new(|_| {}));
    let outcome = catch_unwind(|| {
        for sample in samples() {
            let cases = if sample.format == Format::Parquet {
                4000
            } else {
                2000
            };
            attack(sample.name, &sample.bytes, &OpenOptions::default(), cases);
            let given = OpenOptions {
                format: Some(sample.format),
                ..OpenOptions::default()
            };
            attack(sample.name, &sample.bytes, &given, cases);
            if matches!(sample.format, Format::Recorded | Format::Vscsi) {
                for (ending, bytes) in compressed(&sample.bytes) {
                    attack(&format!("{}.{ending}", sample.name), &bytes, &given, 1500);
                }
            }
            // A table whose columns are named.
            let layout = match sample.format {
                Format::Recorded => "time:ns,op,offset:B,size:B",
                Format::Alibaba => "volume,op,offset:B,size:B,time:us",
                Format::Parquet => {
                    "time=arrival_ns:ns,op=op,offset=offset:B,size=bytes:B,volume=volume"
                }
                _ => "",
            };
            if let Ok(layout) = layout.parse() {
                let columns = OpenOptions {
                    columns: Some(layout),
                    ..OpenOptions::default()
                };
                attack(sample.name, &sample.bytes, &columns, cases);
            }
            // A trace read as every other format.
            for format in Format::ALL {
                let wrong = OpenOptions {
                    format: Some(format),
                    ..OpenOptions::default()
                };
                drain(sample.name, sample.bytes.clone(), &wrong);
            }
        }
        // Noise.
        let mut random = SplitMix64::new(1);
        for format in Format::ALL {
            let options = OpenOptions {
                format: Some(format),
                ..OpenOptions::default()
            };
            for length in [1, 7, 48, 1000, 100_000] {
                let noise: Vec<u8> = (0..length).map(|_| random.next() as u8).collect();
                drain("noise", noise.clone(), &options);
                drain("noise", noise, &OpenOptions::default());
            }
        }
    });
    drop(std::panic::take_hook());
    if let Err(cause) = outcome {
        std::panic::resume_unwind(match cause.downcast::<String>() {
            Ok(message) => {
                println!("{message}");
                message
            }
            Err(other) => other,
        });
    }
}
