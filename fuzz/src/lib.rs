//! What a fuzzer may throw at Floatgate. Each target takes any bytes; a panic is a finding.
//!
//! | target | input |
//! |---|---|
//! | `trace` | a file in any of the formats, compressed or not; the first byte says whether the format is detected or given |
//! | `configuration` | a TOML text, read, checked, and tried out if the device it describes is small |
//! | `cuts` | a scheme, a small device, requests with power cuts in them and in the recoveries |
//!
//! `cargo xtask fuzz` runs them under libFuzzer; the tests of this crate play the corpus, and damaged copies of it.

use std::io::Cursor;

use floatgate::config::{Settings, resolve::Plan, sizing::try_out};
use floatgate_core::torture;
use floatgate_sim::run::schemes;
use floatgate_trace::{Format, OpenOptions, open_reader};

/// A target: its name, and what it does with an input.
pub struct Target {
    /// Name on the command line and of its folder in the corpus.
    pub name: &'static str,
    /// Takes an input; panics if it finds a bug.
    pub run: fn(&[u8]),
}

/// All targets.
pub const TARGETS: [Target; 3] = [
    Target {
        name: "trace",
        run: trace,
    },
    Target {
        name: "configuration",
        run: configuration,
    },
    Target {
        name: "cuts",
        run: cuts,
    },
];

/// Reads the bytes after the first as a trace to its end. However few bytes they are, the reader must come to
/// an end.
pub fn trace(input: &[u8]) {
    let Some((&choice, bytes)) = input.split_first() else {
        return;
    };
    let options = OpenOptions {
        format: Format::ALL.get(choice as usize).copied(),
        ..OpenOptions::default()
    };
    let most = 100_000 + 1000 * bytes.len() as u64;
    let input = Box::new(Cursor::new(bytes.to_vec()));
    let Ok(mut reader) = open_reader("input", input, &options) else {
        return;
    };
    let mut requests = 0;
    while let Ok(Some(_)) = reader.next() {
        requests += 1;
        assert!(requests <= most, "no end");
    }
}

/// Pages and blocks of the largest device that is tried out.
const TRY_OUT_MAX: u64 = 1 << 16;

/// Reads the bytes as a configuration, sizes the device, and makes it for every scheme if it is small.
pub fn configuration(input: &[u8]) {
    let text = String::from_utf8_lossy(input).into_owned();
    let schemes = schemes();
    let mut settings = Settings::default();
    if settings.add_text("input.toml", text, &schemes).is_err() {
        return;
    }
    let all: Vec<_> = schemes.iter().collect();
    if settings.check_options(&all).is_err() {
        return;
    }
    let Ok(mut plan) = Plan::of(&settings) else {
        return;
    };
    // What a trace would decide.
    let device = &mut plan.device;
    device.dies = device.dies.max(1);
    device.channels = device.channels.max(1);
    device.logical_pages = device.logical_pages.max(1);
    if device.blocks == 0 {
        plan.device.blocks = plan.data_blocks_per_die().min(TRY_OUT_MAX) as u32 + 12;
    }
    assert!(!plan.describe().is_empty());
    let device = &plan.device;
    let blocks = u64::from(device.blocks) * u64::from(device.dies);
    let pages = blocks.saturating_mul(device.part.pages_per_block.into());
    let is_small = pages.max(device.logical_pages) <= TRY_OUT_MAX && device.dies <= 64;
    if !is_small {
        return;
    }
    for scheme in &schemes {
        let outcome = try_out(scheme, &plan.run_of(scheme, &settings));
        if let Err(floatgate::config::sizing::Failure::Bug(bug)) = outcome {
            panic!("{}: {bug}", scheme.info.key);
        }
    }
}

/// Plays requests with power cuts.
pub fn cuts(input: &[u8]) {
    if let Err(lost) = torture::play(input) {
        panic!("{lost}");
    }
}
