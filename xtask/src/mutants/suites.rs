//! The suites that are run against a planted bug, and where cargo has put them.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Instant;

use super::table::Bug;

/// One run of a test binary.
#[derive(Debug)]
pub struct Suite {
    /// Its name in the table.
    pub name: &'static str,
    /// The folder below `crates/`, and the package.
    pub krate: &'static str,
    /// The integration test, or `lib`.
    binary: &'static str,
    /// Arguments of the test binary.
    pub args: &'static [&'static str],
    /// Environment: how much work it is.
    pub env: &'static [(&'static str, &'static str)],
    /// Whether it can be run on some schemes only.
    pub by_scheme: bool,
    /// Whether the files of these crates are its business.
    covers: &'static [&'static str],
}

impl Suite {
    const fn new(name: &'static str, krate: &'static str, binary: &'static str) -> Self {
        Self {
            name,
            krate,
            binary,
            args: &[],
            env: &[],
            by_scheme: false,
            covers: &["core", "schemes"],
        }
    }

    const fn covering(self, covers: &'static [&'static str]) -> Self {
        Self { covers, ..self }
    }

    const fn with(self, args: &'static [&'static str]) -> Self {
        Self { args, ..self }
    }

    const fn by_scheme(self) -> Self {
        Self {
            by_scheme: true,
            ..self
        }
    }

    const fn at(self, env: &'static [(&'static str, &'static str)]) -> Self {
        Self { env, ..self }
    }
}

const RANDOM_CUTS: &[&str] = &["--exact", "nothing_acknowledged_is_lost"];
const CUT_LINES: &[&str] = &["--skip", "nothing_acknowledged_is_lost"];
const RANDOM_FLIGHTS: &[&str] = &[
    "--exact",
    "nothing_acknowledged_is_lost_with_dies_in_flight",
];
const FLIGHT_LINES: &[&str] = &["--skip", "nothing_acknowledged_is_lost_with_dies_in_flight"];
const RANDOM_ROT: &[&str] = &[
    "--exact",
    "unreadable_pages_never_mislead",
    "forged_pages_never_panic",
];
const ROT_LINES: &[&str] = &[
    "--skip",
    "unreadable_pages_never_mislead",
    "--skip",
    "forged_pages_never_panic",
];

/// In the order in which they are run: the fast ones, and those that know most, first.
pub const SUITES: [Suite; 31] = [
    Suite::new("core", "core", "lib").covering(&["core"]),
    Suite::new("simulator", "sim", "lib").covering(&["sim"]),
    Suite::new("buffer", "sim", "buffer").covering(&["sim"]),
    Suite::new("flows", "sim", "flows").covering(&["sim"]),
    Suite::new("slc", "sim", "slc").covering(&["sim"]),
    Suite::new("word lines", "sim", "word_lines").covering(&["sim"]),
    Suite::new("units", "schemes", "lib"),
    Suite::new("idle", "sim", "idle").covering(&["schemes"]),
    Suite::new("cut lines", "schemes", "power_cuts").with(CUT_LINES),
    Suite::new("flight lines", "schemes", "in_flight").with(FLIGHT_LINES),
    Suite::new("rot lines", "schemes", "rot").with(ROT_LINES),
    Suite::new("power cuts", "schemes", "power_cuts")
        .with(RANDOM_CUTS)
        .by_scheme(),
    Suite::new("dies in flight", "schemes", "in_flight")
        .with(RANDOM_FLIGHTS)
        .by_scheme(),
    Suite::new("rot", "schemes", "rot")
        .with(RANDOM_ROT)
        .by_scheme(),
    Suite::new("suite", "schemes", "suite").by_scheme(),
    Suite::new("torture", "schemes", "power_cuts")
        .with(RANDOM_CUTS)
        .by_scheme()
        .at(&[
            ("FLOATGATE_TEST_SEED", "2000"),
            ("FLOATGATE_TEST_TIMES", "3"),
        ]),
    Suite::new("chip", "device", "chip").covering(&["device"]),
    Suite::new("pairs", "device", "pairs").covering(&["device"]),
    Suite::new("tears", "device", "tears").covering(&["device"]),
    Suite::new("patrol", "device", "patrol").covering(&["device"]),
    Suite::new("images", "device", "images").covering(&["device"]),
    Suite::new("pcm", "device", "pcm").covering(&["device"]),
    Suite::new("ticks", "device", "ticks").covering(&["device"]),
    Suite::new("wear", "device", "wear").covering(&["device"]),
    Suite::new("faults", "device", "faults").covering(&["device"]),
    Suite::new("damage", "device", "damage").covering(&["device"]),
    Suite::new("machine", "device", "machine").covering(&["device"]),
    Suite::new("rotten", "device", "rotten").covering(&["device"]),
    Suite::new("drives", "serve", "cuts").covering(&["serve", "device"]),
    Suite::new("cuts", "device", "cuts").covering(&["device"]),
    Suite::new("fit", "cli", "lib")
        .with(&["fit::"])
        .covering(&["cli"]),
];

/// The suites that a bug must pass to survive.
pub fn for_bug(bug: &Bug) -> impl Iterator<Item = &'static Suite> {
    let krate = bug.file.split('/').nth(1).unwrap_or_default();
    let krate = krate.to_string();
    SUITES
        .iter()
        .filter(move |suite| suite.covers.contains(&krate.as_str()))
}

/// A test binary, or why there is none.
type Binary = Arc<OnceLock<Result<PathBuf, String>>>;

/// The test binaries: each is built when the first bug needs it.
pub struct Binaries {
    source: PathBuf,
    target: PathBuf,
    /// By crate and name.
    known: Mutex<HashMap<(&'static str, &'static str), Binary>>,
}

impl Binaries {
    /// None is built yet of the source in that folder.
    pub fn new(source: PathBuf, target: PathBuf) -> Self {
        Self {
            source,
            target,
            known: Mutex::default(),
        }
    }

    /// Where the source lies.
    pub fn source(&self) -> &Path {
        &self.source
    }

    /// That of a suite.
    ///
    /// # Errors
    /// If it cannot be built; cargo has said why.
    pub fn of(&self, suite: &Suite) -> Result<PathBuf, String> {
        let binary = {
            let mut known = self.known.lock().map_err(|error| error.to_string())?;
            Arc::clone(known.entry((suite.krate, suite.binary)).or_default())
        };
        binary.get_or_init(|| self.build(suite)).clone()
    }

    fn build(&self, suite: &Suite) -> Result<PathBuf, String> {
        let start = Instant::now();
        let mut cargo = Command::new(env!("CARGO"));
        cargo
            .current_dir(&self.source)
            .env("CARGO_TARGET_DIR", &self.target)
            // The planted text is what it is.
            .env("RUSTFLAGS", "-Awarnings");
        cargo.args(["test", "--quiet", "--no-run", "--locked"]);
        cargo.arg("--message-format=json-render-diagnostics");
        // The command's crate has the name of the house.
        let package = match suite.krate {
            "cli" => "floatgate".into(),
            krate => format!("floatgate-{krate}"),
        };
        cargo.args(["--package", &package]);
        match suite.binary {
            "lib" => cargo.arg("--lib"),
            test => cargo.args(["--test", test]),
        };
        let output = cargo.stdin(Stdio::null()).stderr(Stdio::inherit()).output();
        let output = output.map_err(|e| format!("cargo: {e}"))?;
        let messages = String::from_utf8_lossy(&output.stdout);
        let built = messages.lines().filter_map(executable).next_back();
        let built = built.filter(|_| output.status.success());
        let seconds = start.elapsed().as_secs_f64();
        println!(
            "built {} of {} in {seconds:.0} s",
            suite.binary, suite.krate
        );
        built.ok_or_else(|| {
            let source = self.source.display();
            format!(
                "with the planted bugs {} does not compile: {source}",
                suite.krate
            )
        })
    }
}

/// The test binary that a line of cargo's tells of.
fn executable(line: &str) -> Option<PathBuf> {
    let message: serde_json::Value = serde_json::from_str(line).ok()?;
    message["executable"].as_str().map(PathBuf::from)
}
