//! Every operation of the flash on a timeline, for Perfetto and chrome://tracing (the trace event format, JSON):
//! channels are processes, dies their threads, requests stand beside them. Times are those of the run, in microseconds.

use std::io::{self, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};

use floatgate_core::report::Cause;
use floatgate_trace::outfile::{Destination, OutFile};
use floatgate_trace::sink::Sink;
use floatgate_trace::{Compression, TraceError};

use crate::clock::{Does, Machine, OpKind, Operation};
use crate::requests::RequestRow;

/// Process of the requests, and of the phase-change memory: behind any channel.
const REQUESTS: u32 = 1_000_000;
const PCM: u32 = REQUESTS + 1;

/// A file of a timeline: `.json`, also compressed (`.json.gz`, which Perfetto reads as it is).
pub struct TimelineFile {
    path: PathBuf,
    sink: Sink,
    machine: Machine,
    /// What is told: what lies at least in part in it, ns.
    window_ns: Range<u64>,
    events: u64,
}

impl std::fmt::Debug for TimelineFile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TimelineFile")
            .field("path", &self.path)
            .finish_non_exhaustive()
    }
}

impl TimelineFile {
    /// Begins the file. It gets its name in [`finish`](Self::finish); dropped before, nothing is left.
    ///
    /// # Errors
    /// If the name has another ending, or the file cannot be made.
    pub fn create(
        path: &Path,
        machine: &Machine,
        window_ns: Range<u64>,
    ) -> Result<Self, TraceError> {
        let name = path.display().to_string();
        let compression = Compression::from_name(&name);
        let plain = match compression {
            Compression::None => Path::new(&name),
            _ => Path::new(name.rsplit_once('.').map_or("", |(plain, _)| plain)),
        };
        if plain.extension().is_none_or(|ending| ending != "json") {
            let error = TraceError::file(&name, "a timeline is a file of JSON");
            return Err(error.hint("end it in .json, or .json.gz"));
        }
        let file = Destination::of(path)?.create()?;
        let made = Sink::new(file, compression).and_then(|sink| {
            let mut timeline = Self {
                path: path.to_owned(),
                sink,
                machine: machine.clone(),
                window_ns,
                events: 0,
            };
            timeline.head()?;
            Ok(timeline)
        });
        made.map_err(|error| TraceError::output(path, &error))
    }

    /// Names of channels and dies.
    fn head(&mut self) -> io::Result<()> {
        write!(self.sink, "{{\"displayTimeUnit\":\"ns\",\"traceEvents\":[")?;
        let mut named: Vec<(u32, Option<u32>, String)> = (0..self.machine.channels)
            .map(|channel| (channel, None, format!("channel {channel}")))
            .collect();
        named.extend((0..self.machine.dies).map(|die| {
            let channel = self.machine.channel_of(die);
            (channel, Some(die), format!("die {die}"))
        }));
        named.push((REQUESTS, None, "requests".into()));
        named.push((PCM, None, "phase-change memory".into()));
        for (i, (process, thread, name)) in named.iter().enumerate() {
            let gap = if i == 0 { "" } else { "," };
            let (what, thread) = match thread {
                Some(thread) => ("thread", *thread),
                None => ("process", 0),
            };
            write!(
                self.sink,
                "{gap}\n{{\"ph\":\"M\",\"name\":\"{what}_name\",\"pid\":{process},\"tid\":{thread},\"args\":{{\"name\":\"{name}\"}}}}"
            )?;
        }
        Ok(())
    }

    /// Adds operations.
    ///
    /// # Errors
    /// If they cannot be written.
    pub fn operations(&mut self, operations: &[Operation]) -> Result<(), TraceError> {
        let mut told = operations.iter();
        let written = told.try_for_each(|operation| self.operation(operation));
        written.map_err(|error| TraceError::output(&self.path, &error))
    }

    fn operation(&mut self, operation: &Operation) -> io::Result<()> {
        let &Operation {
            die,
            does,
            cause,
            request,
            start_ns,
            end_ns,
        } = operation;
        if !is_within(&self.window_ns, start_ns, end_ns) {
            return Ok(());
        }
        self.events += 1;
        let (process, thread) = match pcm_chip(&self.machine, die) {
            Some(chip) => (PCM, chip),
            None => (self.machine.channel_of(die), die),
        };
        let category = CAUSES[cause_index(cause)];
        write!(
            self.sink,
            ",\n{{\"ph\":\"X\",\"name\":\"{category} {}\",\"cat\":\"{category}\",\"pid\":{process},\"tid\":{thread},\"ts\":{},\"dur\":{},\"args\":{{",
            DOES[does_index(does)],
            Micros(start_ns),
            Micros(end_ns - start_ns),
        )?;
        if let Does::Copies { pages, .. } = does {
            write!(self.sink, "\"pages\":{pages},")?;
        }
        match request {
            Some(request) => write!(self.sink, "\"request\":{request}}}}}"),
            None => write!(
                self.sink,
                "\"request\":\"none: in idle time or by a timer\"}}}}"
            ),
        }
    }

    /// Adds requests.
    ///
    /// # Errors
    /// If they cannot be written.
    pub fn requests(&mut self, rows: &[RequestRow]) -> Result<(), TraceError> {
        let mut told = rows.iter();
        let written = told.try_for_each(|row| self.request(row));
        written.map_err(|error| TraceError::output(&self.path, &error))
    }

    fn request(&mut self, row: &RequestRow) -> io::Result<()> {
        if !is_within(&self.window_ns, row.arrival_ns, row.end_ns) {
            return Ok(());
        }
        self.events += 1;
        let name = row.op_in_words();
        // `id2` makes it an identity of the process of requests: viewers show what has an `id` beside all processes.
        for (phase, at_ns) in [("b", row.arrival_ns), ("e", row.end_ns)] {
            write!(
                self.sink,
                ",\n{{\"ph\":\"{phase}\",\"name\":\"{name}\",\"cat\":\"request\",\"id2\":{{\"local\":\"{}\"}},\"pid\":{REQUESTS},\"tid\":0,\"ts\":{},\"args\":{{\"request\":{},\"pages\":{},\"first_lpn\":{},\"issue_us\":{},\"first_start_us\":{}}}}}",
                row.request,
                Micros(at_ns),
                row.request,
                row.pages,
                row.first_lpn,
                Micros(row.issue_ns),
                Micros(row.start_ns),
            )?;
        }
        Ok(())
    }

    /// Ends the file; the operations and requests in it.
    ///
    /// # Errors
    /// If its end cannot be written or it cannot get its name.
    pub fn finish(mut self) -> Result<u64, TraceError> {
        let ended = writeln!(self.sink, "\n]}}").and_then(|()| self.sink.finish());
        let written = ended.and_then(OutFile::finish);
        written.map_err(|error| TraceError::output(&self.path, &error))?;
        Ok(self.events)
    }
}

/// Whether what goes on from `start_ns` to `end_ns` lies at least in part in a window.
pub fn is_within(window_ns: &Range<u64>, start_ns: u64, end_ns: u64) -> bool {
    start_ns < window_ns.end && end_ns >= window_ns.start
}

/// The chip of the phase-change memory that stands for the die of an operation, if it is none of the machine's dies.
pub fn pcm_chip(machine: &Machine, die: u32) -> Option<u32> {
    die.checked_sub(machine.dies.max(1))
}

/// The causes of operations in words.
pub const CAUSES: &[&str] = &["host", "gc", "map"];

/// The cause, by its place among [`CAUSES`].
pub fn cause_index(cause: Cause) -> usize {
    match cause {
        Cause::Host => 0,
        Cause::Gc => 1,
        Cause::Map => 2,
    }
}

/// What operations do, in words.
pub const DOES: &[&str] = &[
    "read",
    "program",
    "erase",
    "spare area read",
    "copy-back",
    "entry read",
    "entry write",
    "copies",
];

/// What an operation does, by its place among [`DOES`].
pub fn does_index(does: Does) -> usize {
    match does {
        Does::One(OpKind::Read) => 0,
        Does::One(OpKind::Program) => 1,
        Does::One(OpKind::Erase) => 2,
        Does::One(OpKind::OobRead) => 3,
        Does::One(OpKind::CopyBack) | Does::Copies { inside: true, .. } => 4,
        Does::One(OpKind::PcmRead) => 5,
        Does::One(OpKind::PcmWrite) => 6,
        Does::Copies { inside: false, .. } => 7,
    }
}

/// Nanoseconds, told in microseconds to the last digit.
struct Micros(u64);

impl std::fmt::Display for Micros {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{:03}", self.0 / 1000, self.0 % 1000)
    }
}
