//! Files of saved devices: a head in words, the configuration that makes the device, and the state, compressed.
//!
//! ```text
//! floatgate state 1
//! floatgate 0.1.0
//! 741 bytes of configuration, 81920 bytes of state in 20311, crc32c 9ad1c2e0
//! [device]
//! ...
//! ```

use std::io::Read;
use std::path::{Path, PathBuf};

use floatgate_catalog::Scheme;
use floatgate_core::options::OptionValue;
use floatgate_sim::config::RunConfig;
use floatgate_sim::record::Record;
use floatgate_sim::run::{Besides, Progress, RunError, Source};

use crate::PROGRAM;
use crate::config::Settings;
use crate::config::resolve::Plan;
use crate::config::sizing::Failure;
use crate::config::written::configuration;
use crate::errors::{Outcome, Place, Problem};
use crate::memory;
use crate::output;

/// The first line: what the file is, and the version of its layout.
const MAGIC: &str = "floatgate state 1\n";
/// What the names of files in a folder end in.
const EXTENSION: &str = "state";
/// Where the head must have ended; it is three short lines.
const HEAD_MAX: usize = 400;
/// The states of schemes are tables, about as quick to pack on the first level as to write.
const LEVEL: i32 = 1;

/// A saved device, read and checked as far as that goes without making it.
#[derive(Debug)]
pub struct Saved {
    path: PathBuf,
    configuration: String,
    bytes: u64,
    packed: Vec<u8>,
}

/// The flag of the files that are written.
pub const SAVE_FLAG: &str = "--save-state";

/// The file of a scheme, by its name in results, in a folder of saved devices.
pub fn file_in(folder: &Path, label: &str) -> PathBuf {
    folder.join(format!("{label}.{EXTENSION}"))
}

/// What the files of a folder are named after, in no particular order.
///
/// # Errors
/// If it cannot be read, or holds none.
pub fn labels_in(folder: &Path) -> Outcome<Vec<String>> {
    let name = folder.display();
    let problem = |what: String| {
        Problem::new(what)
            .at(&Place::Argument(format!("--load-state {name}")))
            .help("`floatgate compare --save-state FOLDER` makes such a folder")
    };
    let unread = |error: std::io::Error| problem(format!("cannot read the folder {name}: {error}"));
    let mut labels = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(unread)? {
        let path = entry.map_err(unread)?.path();
        let is_state = path.extension().is_some_and(|end| end == EXTENSION);
        if let Some(label) = path.file_stem().filter(|_| is_state) {
            labels.push(label.to_string_lossy().into_owned());
        }
    }
    match labels.is_empty() {
        true => Err(problem(format!("no saved device in {name}"))),
        false => Ok(labels),
    }
}

/// Makes a folder for saved devices, if there is none.
///
/// # Errors
/// If it cannot be made.
pub fn make_folder(folder: &Path) -> Outcome<()> {
    std::fs::create_dir_all(folder).map_err(|error| {
        Problem::new(format!(
            "cannot make the folder {}: {error}",
            folder.display()
        ))
        .at(&Place::Argument(format!(
            "{SAVE_FLAG} {}",
            folder.display()
        )))
        .help("name a folder that may be written")
    })
}

/// Writes the state of a device of that configuration.
///
/// # Errors
/// If the file cannot be written.
pub fn write(
    path: &Path,
    plan: &Plan,
    config: &RunConfig,
    scheme: &Scheme,
    state: &[u8],
) -> Outcome<()> {
    let options = scheme.life.simulated.options(config);
    let options = options.map_err(|refusal| Problem::bug(refusal.message))?;
    let text = configuration(plan, config, scheme.info.key, &options);
    let packed = zstd::encode_all(state, LEVEL);
    let packed = packed.map_err(|error| Problem::bug(format!("a state is not packed: {error}")))?;
    let checksum = checksum(&text, state.len() as u64, &packed);
    let head = format!(
        "{MAGIC}{PROGRAM}\n{} bytes of configuration, {} bytes of state in {}, crc32c {checksum:08x}\n",
        text.len(),
        state.len(),
        packed.len()
    );
    let content = [head.as_bytes(), text.as_bytes(), &packed].concat();
    output::write_file(SAVE_FLAG, path, content)
}

fn checksum(configuration: &str, bytes: u64, packed: &[u8]) -> u32 {
    let sum = crc32c::crc32c(configuration.as_bytes());
    crc32c::crc32c_append(crc32c::crc32c_append(sum, &bytes.to_le_bytes()), packed)
}

/// What the third line says.
struct Sizes {
    configuration: usize,
    bytes: u64,
    packed: usize,
    checksum: u32,
}

impl Sizes {
    fn parse(line: &str) -> Option<Self> {
        let (configuration, rest) = line.split_once(" bytes of configuration, ")?;
        let (bytes, rest) = rest.split_once(" bytes of state in ")?;
        let (packed, checksum) = rest.split_once(", crc32c ")?;
        Some(Self {
            configuration: configuration.parse().ok()?,
            bytes: bytes.parse().ok()?,
            packed: packed.parse().ok()?,
            checksum: u32::from_str_radix(checksum, 16).ok()?,
        })
    }
}

impl Saved {
    /// Where it was read.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Reads a file.
    ///
    /// # Errors
    /// If it cannot be read, is no state, is one of another version, or is damaged.
    pub fn read(path: &Path) -> Outcome<Self> {
        let name = path.display();
        let at = Place::Argument(format!("--load-state {name}"));
        let unread = |error: std::io::Error| {
            Problem::new(format!("cannot read the state {name}: {error}"))
                .at(&at)
                .help("`floatgate run --save-state FILE` writes one")
        };
        let damaged = |what: &str| {
            Problem::new(format!("the state {name} is damaged: {what}"))
                .at(&at)
                .help("age the device anew, with --save-state")
        };
        let mut file = std::fs::File::open(path).map_err(unread)?;
        let mut content = Vec::new();
        let head_bytes = HEAD_MAX as u64;
        let read = (&mut file).take(head_bytes).read_to_end(&mut content);
        read.map_err(unread)?;
        if !content.starts_with(MAGIC.as_bytes()) {
            let problem = Problem::new(format!("{name} is no saved device")).at(&at);
            return Err(problem.help("`floatgate run --save-state FILE` writes one"));
        }
        let mut lines = content.split(|&byte| byte == b'\n').skip(1);
        let mut line = || std::str::from_utf8(lines.next()?).ok();
        let program = line().ok_or_else(|| damaged("its head is no text"))?;
        if program != PROGRAM {
            let text = format!("the state {name} was saved by {program:.40}; this is {PROGRAM}");
            return Err(Problem::new(text).at(&at).help(
                "states are read by the version that wrote them only: age the device anew, with --save-state",
            ));
        }
        let third = line().ok_or_else(|| damaged("its head ends too early"))?;
        let sizes = Sizes::parse(third).ok_or_else(|| damaged("its third line is wrong"))?;
        let head = MAGIC.len() + PROGRAM.len() + third.len() + 2;
        let length = file.metadata().map_err(unread)?.len();
        let expected = (head as u64)
            .saturating_add(sizes.configuration as u64)
            .saturating_add(sizes.packed as u64);
        if length != expected {
            return Err(damaged(&format!(
                "it has {length} bytes, and its head says {expected}"
            )));
        }
        memory::check(length, memory::available(), "the state")?;
        file.read_to_end(&mut content).map_err(unread)?;
        let body = content.get(head..).unwrap_or_default();
        let (text, packed) = body
            .split_at_checked(sizes.configuration)
            .ok_or_else(|| damaged("it ends too early"))?;
        let text =
            std::str::from_utf8(text).map_err(|_| damaged("its configuration is no text"))?;
        if checksum(text, sizes.bytes, packed) != sizes.checksum {
            return Err(damaged("its checksum does not agree"));
        }
        Ok(Self {
            path: path.into(),
            configuration: text.into(),
            bytes: sizes.bytes,
            packed: packed.into(),
        })
    }

    /// The settings that make the device.
    ///
    /// # Errors
    /// Points at what is wrong in them.
    pub fn settings(&self, schemes: &[Scheme]) -> Outcome<Settings> {
        let mut settings = Settings::default();
        let name = format!("{} (its configuration)", self.path.display());
        settings.add_text(&name, self.configuration.clone(), schemes)?;
        Ok(settings)
    }

    /// The state itself.
    ///
    /// # Errors
    /// If there is no memory for it, or it is damaged.
    pub fn unpack(&self) -> Outcome<Vec<u8>> {
        memory::check(self.bytes, memory::available(), "the state")?;
        let mut state = Vec::new();
        let unpacked = zstd::Decoder::new(&self.packed[..]).and_then(|unpacked| {
            unpacked
                .take(self.bytes.saturating_add(1))
                .read_to_end(&mut state)
        });
        match unpacked {
            Ok(_) if state.len() as u64 == self.bytes => Ok(state),
            _ => Err(self.damaged("it does not unpack to what its head says")),
        }
    }

    fn damaged(&self, what: &str) -> Problem {
        Problem::new(format!(
            "the state {} is damaged: {what}",
            self.path.display()
        ))
        .at(&Place::Argument(format!(
            "--load-state {}",
            self.path.display()
        )))
        .help("age the device anew, with --save-state")
    }

    /// Whether a run is one of this device: what decides how the state looks must be the same.
    ///
    /// # Errors
    /// Names the first key that differs, with both values.
    pub fn check(
        &self,
        config: &RunConfig,
        settings: &Settings,
        scheme: &Scheme,
        schemes: &[Scheme],
    ) -> Outcome<()> {
        let own = self.settings(schemes)?;
        let name = self.path.display();
        let differs = |key: &str, asked: &str, saved: &str, place: Place| {
            let text = format!("{key} is {asked}, and the state {name} was saved with {saved}");
            Problem::new(text).at(&place).help(
                "leave it out: --load-state takes device, scheme, options and ageing from the file",
            )
        };
        let saved_scheme = own.text("scheme.name").unwrap_or_default();
        if saved_scheme != scheme.info.key {
            let place = Place::Argument(format!("--load-state {name}"));
            return Err(differs("the scheme", scheme.info.key, saved_scheme, place));
        }
        let saved = Plan::of(&own)?.run_of(scheme, &own);
        let (asked_keys, saved_keys) = (shape(config), shape(&saved));
        for ((key, asked), (_, saved)) in asked_keys.into_iter().zip(saved_keys) {
            if asked != saved {
                return Err(differs(key, &asked, &saved, place_of(settings, key)));
            }
        }
        let options = |config| {
            let options = scheme.life.simulated.options(config);
            options.map_err(|refusal| Problem::new(refusal.message))
        };
        for ((key, asked), (_, saved)) in options(config)?.into_iter().zip(options(&saved)?) {
            if asked != saved {
                let place = settings.place_of_refusal(Some(scheme.info.key), key);
                return Err(differs(&format!("scheme.{key}"), &asked, &saved, place));
            }
        }
        Ok(())
    }
}

/// The files that the device of a run comes from and goes to.
#[derive(Clone, Copy, Debug)]
pub struct DeviceFiles<'a> {
    /// What the device was planned as.
    pub plan: &'a Plan,
    /// The device is not aged but loaded.
    pub load: Option<&'a Saved>,
    /// It is saved there as soon as it is aged.
    pub save: Option<&'a Path>,
}

impl DeviceFiles<'_> {
    /// Runs a configuration over a trace, as [`run_with`](floatgate_sim::run::Simulated::run_with) does; the states are
    /// those of the files.
    ///
    /// # Errors
    /// As it does; and if a file is no state of the device, or cannot be written.
    pub fn run(
        self,
        scheme: &Scheme,
        config: &RunConfig,
        source: &mut dyn Source,
        progress: &mut dyn FnMut(Progress),
        besides: Besides<'_>,
    ) -> Result<Record, RunError> {
        let told = |problem: Problem| RunError::Beyond(problem.message().into());
        let state = self.load.map(Saved::unpack).transpose().map_err(told)?;
        let write =
            |path: &Path, state: &[u8]| write(path, self.plan, config, scheme, state).map_err(told);
        let mut save = self
            .save
            .map(|path| move |state: Vec<u8>| write(path, &state));
        let besides = Besides {
            rows: besides.rows.map(|rows| rows as _),
            operations: besides.operations.map(|take| take as _),
            blocks: besides.blocks,
            flows: besides.flows,
            load: state,
            save: save.as_mut().map(|save| save as _),
        };
        let simulated = &scheme.life.simulated;
        let ran = simulated.run_with(config, source, progress, besides);
        ran.map_err(|error| match (error, self.load) {
            (RunError::State(error), Some(saved)) => RunError::Beyond(format!(
                "{} holds no state of this device: {error}\n  help: age the device anew, with --save-state",
                saved.path.display()
            )),
            (RunError::State(error), None) => RunError::Beyond(format!(
                "{} cannot be saved: {error}\n  help: leave out --save-state, or write `Ftl::state` for the scheme",
                config.scheme
            )),
            (error, _) => error,
        })
    }

    /// The failure of such a run: a state that was forged looks like a bug of the scheme.
    pub fn blame(self, failure: Failure) -> Failure {
        match (failure, self.load) {
            (Failure::Bug(text), Some(saved)) => Failure::Trace(format!(
                "the run from {} failed: {text}\n  help: age the device anew, with --save-state; if that run fails too, it is a bug: please report it",
                saved.path.display()
            )),
            (failure, _) => failure,
        }
    }
}

/// By key what decides how the state of a device looks. Times, channels and the host do not.
fn shape(config: &RunConfig) -> Vec<(&'static str, String)> {
    let device = &config.device;
    let steps: Vec<String> = config.ageing.iter().map(ToString::to_string).collect();
    vec![
        ("device.part", device.part.name.into()),
        ("device.page_bytes", device.part.page_bytes.to_string()),
        (
            "device.pages_per_block",
            device.part.pages_per_block.to_string(),
        ),
        ("device.dies", device.dies.to_string()),
        ("device.logical_pages", device.logical_pages.to_string()),
        ("device.blocks_per_die", device.blocks.to_string()),
        ("device.program_order", device.program_order.name().into()),
        ("device.wear_leveling", device.wear_leveling.show()),
        ("device.wear_gap", device.wear_gap.to_string()),
        ("run.start", config.start.name().into()),
        ("run.ageing", format!("[{}]", steps.join(", "))),
    ]
}

/// Where a key was given, or another that decides it.
fn place_of(settings: &Settings, key: &str) -> Place {
    let other = match key {
        "device.logical_pages" => "device.capacity",
        "device.blocks_per_die" => "device.spare_percent",
        "run.ageing" => "run.warmup",
        key => key,
    };
    let given = settings.get(other).or_else(|| settings.get(key));
    given
        .map(|setting| setting.place.clone())
        .unwrap_or_default()
}
