//! Opening traces: files, several files as one, those that are part of the program, and what generators make.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use floatgate_sim::record;
use floatgate_trace::{
    Cause, Counts, Format, Layout, OpenOptions, PageCache, Reader, Request, Spool, StreamFrom,
    TraceError, generate, guess, open, open_copy, open_merged_with, open_reader, table,
};

use crate::args::{ColumnsArgs, ReadArgs};
use crate::config::Settings;
use crate::errors::{Outcome, Place, Problem};
use crate::progress::Bar;
use crate::table::{count, some};

/// A trace inside the program.
struct Bundled {
    name: &'static str,
    file: &'static str,
    bytes: &'static [u8],
}

/// One of the folder `traces`, by its name there.
macro_rules! bundled {
    ($name:literal) => {
        Bundled {
            name: $name,
            file: concat!($name, ".csv.xz"),
            bytes: include_bytes!(concat!("../../../traces/", $name, ".csv.xz")),
        }
    };
}

/// Recorded for Floatgate (see `traces/README.md`).
const BUNDLED: [Bundled; 12] = [
    bundled!("oltp-postgres"),
    bundled!("desktop"),
    bundled!("ext2-bonnie-150"),
    bundled!("ext2-bonnie-200"),
    bundled!("ext2-postmark-150"),
    bundled!("ext2-postmark-200"),
    bundled!("ext2-tiobench-4"),
    bundled!("ext2-tiobench-6"),
    bundled!("ext2-cp-large"),
    bundled!("ext2-cp-small"),
    bundled!("ext4-postmark"),
    bundled!("ext4-iozone"),
];

/// The trace of a run that names none.
const DEFAULT: &str = "oltp-postgres";

/// A trace in memory.
#[derive(Clone)]
pub struct Frame(pub Arc<Vec<Request>>);

impl std::fmt::Debug for Frame {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} requests", self.0.len())
    }
}

/// Which trace, and how to read it.
#[derive(Clone, Debug)]
pub struct Choice {
    files: Vec<String>,
    /// Those that can be read only once, by name.
    spools: HashMap<String, Spool>,
    /// Those that are no files but in memory, by name.
    frames: HashMap<String, Frame>,
    /// Those that lie elsewhere than their names say.
    copies: HashMap<String, PathBuf>,
    options: OpenOptions,
    /// How a format is named.
    format_flag: &'static str,
    /// Where streams by process were asked for.
    by_process: Option<Place>,
}

impl Choice {
    /// These files, read so.
    ///
    /// # Errors
    /// If there is no such format, or the columns are not understood.
    pub fn new(files: &[String], read: &ReadArgs) -> Outcome<Self> {
        Ok(Self {
            files: files.to_vec(),
            spools: HashMap::new(),
            frames: HashMap::new(),
            copies: copies(&read.columns),
            options: OpenOptions {
                format: read.from.as_deref().map(format).transpose()?,
                columns: columns("--columns", read.columns.columns.as_deref())?,
                volume_name: read.volume.clone(),
                page_bytes: read.page_bytes,
                pagecache: pagecache("--pagecache", read.pagecache.as_deref())?,
                ..OpenOptions::default()
            },
            format_flag: "--from FORMAT",
            by_process: None,
        })
    }

    /// The files of the command line, or the one of the settings, or the default.
    ///
    /// # Errors
    /// Points at a format that does not exist, or at columns that are not understood.
    pub fn of(files: &[String], given: &ColumnsArgs, settings: &Settings) -> Outcome<Self> {
        let files = match settings.text("trace.file") {
            _ if !files.is_empty() => files.to_vec(),
            Some(file) => vec![Self::beside(file, &settings.place("trace.file"))],
            None => vec![DEFAULT.to_string()],
        };
        let at = |key: &'static str| move |problem: Problem| problem.at(&settings.place(key));
        let in_settings = columns("trace.columns", settings.text("trace.columns"));
        let in_settings = in_settings.map_err(at("trace.columns"))?;
        let copies = copies(given);
        let given = columns("--columns", given.columns.as_deref())?;
        // What the command line says wins over what a file says.
        let format = settings.text("trace.format").filter(|_| given.is_none());
        let by_process = (settings.text("host.stream_by") == Some("process"))
            .then(|| settings.place("host.stream_by"));
        let pagecache = pagecache("trace.pagecache", settings.text("trace.pagecache"))
            .map_err(at("trace.pagecache"))?;
        if let (Some(place), Some(_)) = (&by_process, pagecache) {
            let text = "host.stream_by: no process makes the writes of a page cache";
            return Err(Problem::new(text)
                .at(place)
                .help("leave trace.pagecache out, or take another stream_by"));
        }
        Ok(Self {
            files,
            spools: HashMap::new(),
            frames: HashMap::new(),
            copies,
            options: OpenOptions {
                format: format
                    .map(self::format)
                    .transpose()
                    .map_err(at("trace.format"))?,
                columns: given.or(in_settings),
                volume_name: settings.text("trace.volume").map(Into::into),
                page_bytes: settings.small("trace.page_bytes").unwrap_or(0),
                pagecache,
                stream_from: match by_process {
                    Some(_) => StreamFrom::Process,
                    None => StreamFrom::Trace,
                },
                ..OpenOptions::default()
            },
            format_flag: "--set trace.format=FORMAT",
            by_process,
        })
    }

    /// What is called `name` is no file but these requests.
    pub fn supply(&mut self, name: &str, frame: Frame) {
        self.frames.insert(name.into(), frame);
    }

    /// The same where names of files count from that folder.
    #[must_use]
    pub fn in_folder(mut self, folder: &Path) -> Self {
        for file in &self.files {
            if !is_bundled(file) && !is_generator(file) {
                let copy = self.copies.entry(file.clone());
                copy.or_insert_with(|| folder.join(file));
            }
        }
        self
    }

    /// A file named in a configuration lies beside it, unless its path says otherwise.
    pub fn beside(file: &str, place: &Place) -> String {
        match place {
            Place::File { source, .. } if !is_bundled(file) && !is_generator(file) => {
                let folder = Path::new(&source.name).parent().unwrap_or(Path::new(""));
                folder.join(file).display().to_string()
            }
            _ => file.to_string(),
        }
    }

    /// What the trace is called in output.
    pub fn name(&self) -> String {
        match &self.files[..] {
            [one] => one.clone(),
            [first, rest @ ..] => format!("{first} and {} more", rest.len()),
            [] => String::new(),
        }
    }

    /// What tells this trace from others, and from itself after a change: where its files lie, their lengths and
    /// times of change, and how they are read.
    pub fn identity(&self) -> String {
        let files = self.files.iter().map(|file| {
            if is_bundled(file) {
                return format!("bundled {file}");
            }
            if is_generator(file) {
                return format!("generated {file}");
            }
            let copy = self.copies.get(file).map(|copy| (file, copy.as_path()));
            let path = copy.map_or(Path::new(file), |(_, copy)| copy);
            let whole = path.canonicalize().unwrap_or_else(|_| path.into());
            let called = copy.map_or(String::new(), |(name, _)| format!("{name} "));
            format!("{called}{whole:?} {}", file_state(path))
        });
        format!("{:?} {:?}", files.collect::<Vec<_>>(), self.options)
    }

    /// The files that are read, as far as they are files.
    pub fn paths(&self) -> impl Iterator<Item = &Path> {
        let in_memory = |file: &str| self.frames.contains_key(file);
        let is_file =
            move |file: &&String| !is_bundled(file) && !is_generator(file) && !in_memory(file);
        self.files.iter().filter(is_file).map(Path::new)
    }

    /// The files, one by one.
    pub fn each(&self) -> impl Iterator<Item = Self> + '_ {
        self.files.iter().map(|file| Self {
            files: vec![file.clone()],
            spools: self.spools.clone(),
            frames: self.frames.clone(),
            copies: self.copies.clone(),
            options: self.options.clone(),
            format_flag: self.format_flag,
            by_process: self.by_process.clone(),
        })
    }

    /// With the files of folders in place of the folders, in the order of their names.
    ///
    /// # Errors
    /// If a folder cannot be read, or has no file.
    pub fn with_folders_read(mut self) -> Outcome<Self> {
        let mut files = Vec::new();
        for file in std::mem::take(&mut self.files) {
            let copy = self.copies.get(&file).cloned();
            let folder = copy.as_deref().unwrap_or(Path::new(&file));
            if !folder.is_dir() {
                files.push(file);
                continue;
            }
            for name in files_of(folder)? {
                let called = Path::new(&file).join(&name).display().to_string();
                if copy.is_some() {
                    self.copies.insert(called.clone(), folder.join(&name));
                }
                files.push(called);
            }
        }
        self.files = files;
        Ok(self)
    }

    /// Opens the trace.
    ///
    /// # Errors
    /// If it cannot be read or is not understood.
    pub fn open(&self) -> Result<Reader, TraceError> {
        open_merged_with(&self.files, &self.options, |file, options| {
            if let Some(Frame(requests)) = self.frames.get(file) {
                return table::open(file, Arc::clone(requests), options);
            }
            if let Some(bundled) = BUNDLED.iter().find(|bundled| bundled.name == file) {
                return open_reader(bundled.file, Box::new(bundled.bytes), options);
            }
            if is_generator(file) {
                return generate::open(file, options);
            }
            if let Some(copy) = self.copies.get(file) {
                return open_copy(file, copy, options).map_err(|error| say_where(error, copy));
            }
            match self.spools.get(file) {
                Some(spool) => spool.open(options),
                None => open(file, options).map_err(name_bundled),
            }
        })
        .map_err(|error| self.say_how(error))
    }

    /// The problem of an error of this trace, pointing at the setting to blame where there is one.
    pub fn problem(&self, error: TraceError) -> Problem {
        let by_process = error.cause.as_deref() == Some(&Cause::NoProcesses);
        let problem = Problem::from(error);
        match &self.by_process {
            Some(place) if by_process => problem.at(place),
            _ => problem,
        }
    }

    /// A text in no known format may be read all the same.
    fn say_how(&self, mut error: TraceError) -> TraceError {
        let Some(Cause::Unrecognised(line)) = error.cause.as_deref() else {
            return error;
        };
        let table = guess(line).unwrap_or_else(|| "time:s,offset:B,size:B,op".into());
        let formats = Format::ALL.map(Format::name).join(", ");
        error.hint = Some(format!(
            "if it is a table, say what its columns hold and in which units, perhaps\n      --columns '{table}'\n    \
             (docs/formats.md); if it is in one of these formats, name it with {}:\n      {formats}",
            self.format_flag
        ));
        error
    }

    /// Keeps what comes from pipes, so that [`open`](Self::open) can be called more than once.
    ///
    /// # Errors
    /// If a pipe cannot be read, or there is no room for what comes out of it.
    pub fn keep_streams(&mut self) -> Outcome<()> {
        for file in &self.files {
            if self.frames.contains_key(file) {
                continue;
            }
            if !is_generator(file) && !self.spools.contains_key(file) && Spool::needed(file) {
                let waiting = Bar::waiting(&format!("reads {file} to its end"));
                self.spools.insert(file.clone(), Spool::of(file)?);
                waiting.done();
            }
        }
        Ok(())
    }

    /// Reads all of it into memory. `read` is called now and then meanwhile.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn decode(&self, read: &mut dyn FnMut()) -> Outcome<Decoded> {
        let mut reader = self.open().map_err(|error| self.problem(error))?;
        let mut requests = Vec::new();
        while reader.next_batch(&mut requests, 1 << 16)? > 0 {
            read();
        }
        requests.shrink_to_fit();
        Ok(Decoded {
            requests: Arc::new(requests),
            about: About::of(self, &reader),
        })
    }
}

/// Where traces lie, by their names.
fn copies(given: &ColumnsArgs) -> HashMap<String, PathBuf> {
    let pairs = given.copy.chunks_exact(2);
    pairs
        .map(|pair| (pair[0].clone(), PathBuf::from(&pair[1])))
        .collect()
}

/// A file of that name goes before a generator.
fn is_generator(name: &str) -> bool {
    generate::is_generated(name) && !Path::new(name).exists()
}

fn is_bundled(file: &str) -> bool {
    BUNDLED.iter().any(|bundled| bundled.name == file)
}

/// Length and time of change of a file: what they are today.
pub fn file_state(path: &Path) -> String {
    let about = std::fs::metadata(path).ok();
    let changed = about.as_ref().and_then(|about| about.modified().ok());
    let since = changed.and_then(|time| time.duration_since(std::time::UNIX_EPOCH).ok());
    let ns = since.map_or(0, |since| since.as_nanos());
    format!("{} bytes, {ns}", about.map_or(0, |about| about.len()))
}

fn format(name: &str) -> Outcome<Format> {
    name.parse::<Format>().map_err(Problem::new)
}

/// What the columns hold, as `key` says.
fn columns(key: &str, text: Option<&str>) -> Outcome<Option<Layout>> {
    let layout = text.map(str::parse::<Layout>).transpose();
    layout.map_err(|error| {
        let (text, marked) = (&error.text, &error.at);
        let indent = text[..marked.start].chars().count();
        let carets = "^".repeat(text[marked.clone()].chars().count().max(1));
        let message = &error.message;
        Problem::new(format!(
            "{key}: {message}\n  | {text}\n  | {:indent$}{carets}",
            ""
        ))
        .help(error.hint)
    })
}

/// The page cache that `key` asks for.
///
/// # Errors
/// If it is not understood.
pub fn pagecache(key: &str, text: Option<&str>) -> Outcome<Option<PageCache>> {
    let cache = text.map(str::parse::<PageCache>).transpose();
    cache.map_err(|error| Problem::new(format!("{key}: {error}")))
}

/// The names of the files of a folder, without hidden ones.
fn files_of(folder: &Path) -> Outcome<Vec<String>> {
    let shown = folder.display();
    let failed =
        |error: std::io::Error| Problem::new(format!("cannot read the folder {shown}: {error}"));
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if entry.path().is_file() && !name.starts_with('.') {
            files.push(name);
        }
    }
    if files.is_empty() {
        return Err(
            Problem::new(format!("the folder {shown} has no file")).help("name a folder of traces")
        );
    }
    files.sort();
    Ok(files)
}

/// A copy that is not there: the name alone does not say where it was looked for.
fn say_where(mut error: TraceError, copy: &Path) -> TraceError {
    if !copy.exists() {
        error.hint = Some(format!("it should lie at {}", copy.display()));
    }
    error
}

/// A trace that is not there may be meant to be a bundled one.
fn name_bundled(mut error: TraceError) -> TraceError {
    if !Path::new(&error.path).exists() {
        let names: Vec<&str> = BUNDLED.iter().map(|bundled| bundled.name).collect();
        error.hint = Some(format!(
            "check the path; the bundled traces are {}; a generator is named with its parameters, as zipf:space=65536:requests=200000 (`floatgate trace generate` lists them)",
            names.join(", ")
        ));
    }
    error
}

/// What is known of a trace after it was read.
#[derive(Clone, Debug)]
pub struct About {
    /// Its name.
    pub name: String,
    /// Its format.
    pub format: String,
    /// What the reader counted.
    pub counts: Counts,
}

impl About {
    /// Of a reader that has come to its end.
    pub fn of(choice: &Choice, reader: &Reader) -> Self {
        Self {
            name: choice.name(),
            format: reader.format().name().into(),
            counts: reader.counts(),
        }
    }

    /// One line: what was taken and what was not.
    pub fn describe(&self) -> String {
        let c = &self.counts;
        let mut text = format!(
            "{} ({}): {} accepted, {} skipped, {} clamped",
            self.name,
            self.format,
            some(c.accepted, "request"),
            some(c.skipped, "record"),
            some(c.clamped, "time"),
        );
        if c.filtered > 0 {
            text.push_str(&format!(
                ", {} of other volumes left out",
                count(c.filtered)
            ));
        }
        if c.backwards > 0 {
            text.push_str(&format!(", {} times going back", count(c.backwards)));
        }
        text
    }

    /// The same for programs.
    pub fn record(&self) -> record::Trace {
        record::Trace {
            name: self.name.clone(),
            format: self.format.clone(),
            counts: self.counts.into(),
        }
    }
}

/// A trace in memory; a clone shares its requests.
#[derive(Clone, Debug)]
pub struct Decoded {
    /// Its requests.
    pub requests: Arc<Vec<Request>>,
    /// What it is.
    pub about: About,
}

impl Decoded {
    /// Bytes that its requests take in memory.
    pub fn bytes(&self) -> u64 {
        std::mem::size_of_val(&self.requests[..]) as u64
    }
}
