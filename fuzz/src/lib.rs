//! What a fuzzer may throw at Floatgate. Each target takes any bytes; a panic is a finding.
//!
//! | target | input |
//! |---|---|
//! | `trace` | a file in any of the formats, compressed or not; the first byte says whether the format is detected, given, or a table whose columns are named |
//! | `configuration` | a TOML text, read, checked, and tried out if the device it describes is small |
//! | `image` | the bytes of an image file, or changes to a sound one: looked at, checked and dumped |
//! | `cuts` | a scheme, a small device, requests with power cuts in them and in the recoveries |
//! | `log` | a write log, with right checksums or without: read, its states after a power cut thought of, some built |
//! | `nbd` | what a client of the server says: its bytes, or requests that keep to the protocol's form |
//! | `measured` | a table of what a drive was measured to do |
//! | `rot` | a scheme, a device in an image, and pages of it that say anything: opened and used |
//!
//! A crate with a scheme of its own calls the same functions with [`Schemes::with`].
//!
//! `cargo xtask fuzz` runs them under libFuzzer; the tests of this crate play the corpus, and damaged copies of it.

mod log;
mod nbd;
mod rot;

pub use log::log;
pub use nbd::nbd;
pub use rot::{Imaged, rot};

use std::io::Cursor;
use std::sync::OnceLock;

use floatgate::config::{Settings, resolve::Plan, sizing::try_out};
use floatgate::fit::measured::parse;
use floatgate::fit::solve::{Known, asked, capacities};
use floatgate_catalog::{Catalog, catalog};
use floatgate_core::{Ftl, Lpn, ProgramOrder};
use floatgate_device::SparesOptions;
use floatgate_device::image::{DumpSelection, ImageSpec, dump, info};
use floatgate_device::stored::{check_image, create_image};
use floatgate_trace::{Format, OpenOptions, open_reader};

/// A target: its name, and what it does with an input.
pub struct Target {
    /// Name on the command line and of its folder in the corpus.
    pub name: &'static str,
    /// Takes an input and the schemes that it may choose; panics if it finds a bug.
    pub run: fn(&[u8], &Schemes),
}

/// All targets.
pub const TARGETS: [Target; 8] = [
    Target {
        name: "trace",
        run: |input, _| trace(input),
    },
    Target {
        name: "configuration",
        run: |input, schemes| configuration(input, &schemes.all),
    },
    Target {
        name: "image",
        run: |input, schemes| image(input, &schemes.all),
    },
    Target {
        name: "cuts",
        run: |input, schemes| cuts(input, &schemes.all),
    },
    Target {
        name: "log",
        run: |input, _| log(input),
    },
    Target {
        name: "nbd",
        run: |input, _| nbd(input),
    },
    Target {
        name: "measured",
        run: |input, _| measured(input),
    },
    Target {
        name: "rot",
        run: |input, schemes| rot(input, &schemes.imaged),
    },
];

/// The schemes that inputs choose from: Floatgate's, and those of a crate that brings its own.
#[derive(Debug)]
pub struct Schemes {
    /// For every target but `rot`.
    pub all: Catalog,
    /// For the target `rot`.
    pub imaged: floatgate_core::Catalog<Imaged>,
}

impl Default for Schemes {
    /// Floatgate's.
    fn default() -> Self {
        Self {
            all: catalog(),
            imaged: floatgate_schemes::catalog(),
        }
    }
}

impl Schemes {
    /// Adds a scheme.
    #[must_use]
    pub fn with<S: Ftl<Page = Lpn>>(self) -> Self {
        Self {
            all: self.all.with::<S>(),
            imaged: self.imaged.with::<S>(),
        }
    }
}

/// The first byte of a table: what its columns hold stands on its first line.
const TABLE: u8 = 0xff;

/// Reads the bytes after the first as a trace to its end. However few bytes they are, the reader must come to
/// an end.
pub fn trace(input: &[u8]) {
    let Some((&choice, bytes)) = input.split_first() else {
        return;
    };
    let mut bytes = bytes;
    let mut options = OpenOptions {
        format: Format::ALL.get(choice as usize).copied(),
        ..OpenOptions::default()
    };
    if choice == TABLE {
        let end = bytes.iter().position(|&byte| byte == b'\n');
        let (layout, table) = bytes.split_at(end.unwrap_or(bytes.len()));
        let Ok(layout) = String::from_utf8_lossy(layout).parse() else {
            return;
        };
        options.columns = Some(layout);
        bytes = table.get(1..).unwrap_or_default();
    }
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
pub fn configuration(input: &[u8], schemes: &Catalog) {
    let text = String::from_utf8_lossy(input).into_owned();
    let mut settings = Settings::default();
    if settings.add_text("input.toml", text, schemes).is_err() {
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
    for scheme in schemes {
        let outcome = try_out(scheme, &plan.run_of(scheme, &settings));
        if let Err(floatgate::config::sizing::Failure::Bug(bug)) = outcome {
            panic!("{}: {bug}", scheme.info.key);
        }
    }
}

/// Reads the bytes as a table of measurements. What is asked of the simulator then is within bounds, and every number is one.
pub fn measured(input: &[u8]) {
    let text = String::from_utf8_lossy(input).into_owned();
    let Ok(runs) = parse("input.csv", text) else {
        return;
    };
    assert!(!runs.is_empty());
    let capacities = capacities(&runs, Known::default());
    assert!(
        capacities.start > 0.0 && capacities.start < capacities.end && capacities.end.is_finite()
    );
    for (workload, ratios) in asked(&runs, &capacities) {
        assert!(
            1.0 < ratios.start && ratios.start < ratios.end && ratios.end < 100.0,
            "{workload}: {ratios:?}"
        );
    }
}

/// Plays requests with power cuts.
pub fn cuts(input: &[u8], schemes: &Catalog) {
    if let Err(lost) = floatgate_testkit::play(input, schemes) {
        panic!("{lost}");
    }
}

/// A sound image of a small device.
fn sound_image(scheme: &str, options: &str, schemes: &Catalog) -> Vec<u8> {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("flash.img");
    let spec = ImageSpec {
        dies: 2,
        blocks_per_die: 24,
        pages_per_block: 4,
        page_bytes: 512,
        logical_pages: 64,
        program_order: ProgramOrder::Ascending,
        spares: SparesOptions::default(),
        scheme: scheme.into(),
        options: options.into(),
        part: String::new(),
        erase_limit: 0,
    };
    create_image(&path, &spec, schemes).unwrap_or_else(|error| panic!("{scheme}: {error}"));
    std::fs::read(&path).expect("the image was made")
}

/// Bytes of one change to a sound image: where, and what is flipped there.
const CHANGE_BYTES: usize = 5;

/// Looks at an image. First byte: below 64 the others are the file; else they are changes to a sound image, which is
/// also cut short if it is odd.
pub fn image(input: &[u8], schemes: &Catalog) {
    static SOUND: OnceLock<[Vec<u8>; 2]> = OnceLock::new();
    let Some((&choice, bytes)) = input.split_first() else {
        return;
    };
    let file = if choice < 64 {
        bytes.to_vec()
    } else {
        let sound = SOUND.get_or_init(|| {
            [
                sound_image("page", "", schemes),
                sound_image("fast", "log_blocks=8\nmap_blocks=2", schemes),
            ]
        });
        let mut file = sound[usize::from(choice >= 160)].clone();
        for change in bytes.chunks_exact(CHANGE_BYTES) {
            let at = u32::from_le_bytes([change[0], change[1], change[2], change[3]]) as usize;
            let length = file.len();
            file[at % length] ^= change[4];
        }
        if choice % 2 == 1 {
            file.truncate(bytes.len() * 257 % file.len());
        }
        file
    };
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("flash.img");
    std::fs::write(&path, &file).expect("a temporary file");
    if let Ok(info) = info(&path) {
        assert!(!info.to_string().is_empty());
    }
    if let Ok(report) = check_image(&path, schemes) {
        assert!(!report.to_string().is_empty());
    }
    let _ = dump(&path, &DumpSelection::default());
}
