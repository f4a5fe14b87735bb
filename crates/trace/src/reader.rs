//! Reading the requests of an opened trace.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::error::{Position, Stop, TraceError};
use crate::formats::{Decoder, Format, Parsed};
use crate::source::Compression;
use crate::volumes::Volumes;
use crate::{Counts, Op, OpenOptions, Request, Stream};

/// A larger read or write is taken for a wrong unit: no block interface allows one.
const MAX_DATA_BYTES: u64 = 1 << 32;

/// A decoder's error with its position.
pub(crate) fn stopped(
    path: &str,
    stop: Stop,
    position: Option<Position>,
    excerpt: Option<String>,
) -> TraceError {
    match stop {
        Stop::Fault(fault) => {
            let mut error = TraceError::file(path, fault.message).at(position, excerpt);
            error.hint = fault.hint;
            error
        }
        Stop::Placed(error) => *error,
        Stop::Io(e) => TraceError::io(path, "cannot read on", &e).at(position, None),
    }
}

/// Whether a reader can go on.
enum State {
    Running,
    Ended,
    Failed(Box<TraceError>),
}

/// What opening a trace determines.
pub(crate) struct Parts {
    pub path: String,
    pub format: Format,
    pub compression: Compression,
    pub decoder: Box<dyn Decoder>,
    pub count: Arc<AtomicU64>,
    pub total: Option<u64>,
}

/// Requests of a trace, one after the other.
///
/// Not an [`Iterator`], so that [`counts`](Reader::counts) and [`line`](Reader::line) can be called between requests;
/// [`requests`](Reader::requests) returns one.
pub struct Reader {
    path: String,
    format: Format,
    compression: Compression,
    decoder: Box<dyn Decoder>,
    volume: Option<u32>,
    volume_name: Option<String>,
    /// The number of `volume_name`, once seen.
    volume_found: Option<u32>,
    rebase: bool,
    /// A file of a merged trace may have no request.
    may_be_empty: bool,
    /// The time of the trace's first request.
    base: Option<u64>,
    /// The arrival of the request before.
    last: u64,
    pending: Option<Request>,
    counts: Counts,
    count: Arc<AtomicU64>,
    total: Option<u64>,
    state: State,
}

impl std::fmt::Debug for Reader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Reader")
            .field("path", &self.path)
            .field("format", &self.format)
            .field("compression", &self.compression)
            .field("counts", &self.counts)
            .finish_non_exhaustive()
    }
}

impl Reader {
    /// The volumes seen so far.
    pub(crate) fn volumes(&self) -> &Volumes {
        self.decoder.volumes()
    }

    /// The process of a stream, where streams are processes.
    pub(crate) fn process(&self, stream: Stream) -> Option<String> {
        self.decoder.process(stream)
    }

    pub(crate) fn new(parts: Parts, options: &OpenOptions) -> Self {
        Reader {
            path: parts.path,
            format: parts.format,
            compression: parts.compression,
            decoder: parts.decoder,
            volume: options.volume,
            volume_name: options.volume_name.clone(),
            volume_found: None,
            rebase: !parts.format.times_start_at_zero(),
            may_be_empty: false,
            base: None,
            last: 0,
            pending: None,
            counts: Counts::default(),
            count: parts.count,
            total: parts.total,
            state: State::Running,
        }
    }

    /// Makes it one file of a merged trace: times as in the file, and an empty file is not an error.
    pub(crate) fn become_part(&mut self) {
        self.rebase = false;
        self.may_be_empty = true;
    }

    /// Leaves times as they are in the file; [`base_ns`](Self::base_ns) says what they count from.
    pub(crate) fn keep_times(&mut self) {
        self.rebase = false;
    }

    /// The time in the file that arrivals count from: that of the first request so far, or 0 in formats
    /// whose times start there.
    pub(crate) fn base_ns(&self) -> u64 {
        match self.base {
            Some(base) if !self.format.times_start_at_zero() => base,
            _ => 0,
        }
    }

    /// The next request, or `None` at the end of the trace.
    ///
    /// # Errors
    /// A line or record that cannot be understood, a file that is cut off, and a trace that ends without
    /// a request. After an error every call returns the same error.
    #[allow(clippy::should_implement_trait)] // it returns Result<Option<_>>
    #[inline]
    pub fn next(&mut self) -> Result<Option<Request>, TraceError> {
        loop {
            let raw = match self.pending.take() {
                Some(raw) => raw,
                None => {
                    match self.state {
                        State::Running => {}
                        State::Ended => return Ok(None),
                        State::Failed(ref error) => return Err(TraceError::clone(error)),
                    }
                    match self.decoder.next() {
                        Ok(Some(Parsed::One(raw))) => raw,
                        Ok(Some(Parsed::Skip)) => {
                            self.counts.skipped += 1;
                            continue;
                        }
                        Ok(Some(Parsed::Two(first, second))) => {
                            self.pending = Some(second);
                            first
                        }
                        Ok(None) => return self.end(),
                        Err(stop) => return self.fail(stop),
                    }
                }
            };
            if let Some(request) = self.accept(raw)? {
                return Ok(Some(request));
            }
        }
    }

    /// Checks a request, sets its arrival and counts it; `None` if it is filtered out.
    #[inline]
    fn accept(&mut self, mut raw: Request) -> Result<Option<Request>, TraceError> {
        if raw.op == Op::Flush {
            (raw.offset, raw.bytes) = (0, 0);
        } else if raw.bytes == 0 {
            self.counts.skipped += 1;
            self.counts.empty += 1;
            return Ok(None);
        }
        if raw.offset.checked_add(raw.bytes).is_none()
            || (raw.bytes > MAX_DATA_BYTES && matches!(raw.op, Op::Read | Op::Write))
        {
            return Err(self.implausible(raw));
        }
        let base = *self.base.get_or_insert(raw.arrival_ns);
        if (self.volume.is_some() || self.volume_name.is_some()) && !self.wanted(raw.volume) {
            self.counts.filtered += 1;
            return Ok(None);
        }
        if self.rebase {
            if raw.arrival_ns < base {
                self.counts.clamped += 1;
                let early = base - raw.arrival_ns;
                self.counts.clamped_ns = self.counts.clamped_ns.max(early);
            }
            raw.arrival_ns = raw.arrival_ns.saturating_sub(base);
        }
        if raw.arrival_ns < self.last {
            self.counts.backwards += 1;
        }
        self.last = raw.arrival_ns;
        self.counts.accepted += 1;
        Ok(Some(raw))
    }

    /// Whether a volume was asked for.
    fn wanted(&mut self, volume: u32) -> bool {
        if self.volume.is_some_and(|v| v != volume) {
            return false;
        }
        let Some(name) = &self.volume_name else {
            return true;
        };
        match self.volume_found {
            Some(found) => found == volume,
            None => {
                let found = self.decoder.volumes().name(volume) == *name;
                if found {
                    self.volume_found = Some(volume);
                }
                found
            }
        }
    }

    #[cold]
    fn implausible(&mut self, raw: Request) -> TraceError {
        let message = if raw.offset.checked_add(raw.bytes).is_none() {
            format!(
                "the request of {} bytes at {} ends beyond 2^64",
                raw.bytes, raw.offset
            )
        } else {
            format!("a request of {} bytes is larger than 4 GiB", raw.bytes)
        };
        let error = TraceError::file(&self.path, message)
            .at(Some(self.decoder.position()), None)
            .hint("check that the size is in the unit that the format counts in");
        self.pending = None;
        self.state = State::Failed(Box::new(error.clone()));
        error
    }

    #[cold]
    fn fail(&mut self, stop: Stop) -> Result<Option<Request>, TraceError> {
        let position = Some(self.decoder.position());
        let error = stopped(&self.path, stop, position, self.decoder.excerpt());
        self.state = State::Failed(Box::new(error.clone()));
        Err(error)
    }

    /// The end of the trace: fine if there was a request.
    #[cold]
    fn end(&mut self) -> Result<Option<Request>, TraceError> {
        self.state = State::Ended;
        if self.counts.accepted > 0 || self.may_be_empty {
            return Ok(None);
        }
        let error = if self.counts.filtered > 0 {
            let wanted = match (&self.volume_name, self.volume) {
                (Some(name), _) => format!("'{name}'"),
                (None, Some(number)) => number.to_string(),
                (None, None) => String::new(),
            };
            let names = self.decoder.volumes().names();
            let known = match names.len() {
                0 => "the volumes are numbered in the trace itself".to_owned(),
                1..=20 => format!("the trace has: {}", names.join(", ")),
                n => format!(
                    "the trace has {n} volumes, the first are: {}",
                    names[..20].join(", ")
                ),
            };
            TraceError::file(
                &self.path,
                format!(
                    "no request of volume {wanted} among the {} requests of the trace",
                    self.counts.filtered
                ),
            )
            .hint(known)
        } else {
            let (position, excerpt) = match self.decoder.first_skipped() {
                Some((position, excerpt)) => (Some(position), Some(excerpt)),
                None => (None, None),
            };
            TraceError::file(
                &self.path,
                format!(
                    "no request in {} records read as format '{}'; the first record skipped is shown",
                    self.counts.skipped, self.format
                ),
            )
            .at(position, excerpt)
            .hint("if this is a trace of another format, say which one")
        };
        self.state = State::Failed(Box::new(error.clone()));
        Err(error)
    }

    /// Appends up to `max` requests to `batch` and returns how many; 0 is the end of the trace.
    ///
    /// # Errors
    /// As [`next`](Reader::next); the requests before the error are in the batch.
    pub fn next_batch(
        &mut self,
        batch: &mut Vec<Request>,
        max: usize,
    ) -> Result<usize, TraceError> {
        let before = batch.len();
        while batch.len() - before < max {
            match self.next()? {
                Some(request) => batch.push(request),
                None => break,
            }
        }
        Ok(batch.len() - before)
    }

    /// The rest of the requests as an iterator; it ends after an error.
    pub fn requests(&mut self) -> impl Iterator<Item = Result<Request, TraceError>> + '_ {
        let mut failed = false;
        std::iter::from_fn(move || {
            if failed {
                return None;
            }
            let next = self.next().transpose();
            failed = matches!(next, Some(Err(_)));
            next
        })
    }

    /// The counts so far.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// The format.
    pub fn format(&self) -> Format {
        self.format
    }

    /// The compression of the file.
    pub fn compression(&self) -> Compression {
        self.compression
    }

    /// The line (in a binary format the record) of the last request returned, the first being 1.
    pub fn line(&self) -> u64 {
        match self.decoder.position() {
            Position::Line(n) | Position::Record(n) => n,
        }
    }

    /// The place of the last request returned.
    pub fn position(&self) -> Position {
        self.decoder.position()
    }

    /// The name of the trace in messages.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// The name of a volume in the trace (`hm_0`, `259,2`); its number where the format has no names.
    pub fn volume_name(&self, volume: u32) -> String {
        self.decoder.volumes().name(volume)
    }

    /// The names of the volumes seen so far, by number; empty in formats that number their volumes.
    pub fn volume_names(&self) -> &[String] {
        self.decoder.volumes().names()
    }

    /// Bytes of the file (compressed, if it is) read so far, for a progress bar.
    pub fn bytes_read(&self) -> u64 {
        self.count.load(Ordering::Relaxed)
    }

    /// The length of the file; `None` for a stream.
    pub fn bytes_total(&self) -> Option<u64> {
        self.total
    }

    /// An error about the last request returned, such as an address past the end of the device:
    /// it names this trace and the line.
    pub fn error_here(&self, message: impl Into<String>, hint: impl Into<String>) -> TraceError {
        TraceError::file(&self.path, message)
            .at(Some(self.decoder.position()), None)
            .hint(hint)
    }
}
