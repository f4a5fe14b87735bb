//! The trace formats, one file each.

pub(crate) mod alibaba;
pub(crate) mod ascii;
pub(crate) mod blkparse;
pub(crate) mod blkreplay;
pub(crate) mod blktrace;
pub(crate) mod columns;
pub(crate) mod diskmon;
mod format;
pub(crate) mod hash_text;
pub(crate) mod iolog;
pub(crate) mod msr;
pub(crate) mod pages;
#[cfg(feature = "parquet")]
pub(crate) mod parquet;
#[cfg(feature = "parquet")]
mod parquet_check;
pub(crate) mod recorded;
pub(crate) mod spc;
pub(crate) mod systor;
pub(crate) mod tencent;
pub(crate) mod vscsi;

pub use format::{AddressUnit, BlockEvent, Format, TimeUnit};

use crate::error::{Fault, Position, Stop, excerpt};
use crate::input::Input;
use crate::parse::{need, trim};
use crate::volumes::Volumes;
use crate::{Request, Stream};

/// What a line or record of a trace is.
pub(crate) enum Parsed {
    /// Not a request, by design.
    Skip,
    /// One request; its time is the format's own.
    One(Request),
    /// A flush (or trim) and the request it precedes.
    Two(Request, Request),
}

/// A text format: one line at a time.
pub(crate) trait TextFormat: Send {
    /// Reads a line. Blank lines are skipped before.
    fn line(&mut self, line: &[u8], volumes: &mut Volumes) -> Result<Parsed, Fault>;
    /// The process of a stream, where streams are processes.
    fn process(&self, _: Stream) -> Option<String> {
        None
    }
}

/// A source of records, whatever the format.
pub(crate) trait Decoder: Send {
    /// The next record, or `None` at the end of the trace.
    fn next(&mut self) -> Result<Option<Parsed>, Stop>;
    /// The position of the record last returned (or of the fault).
    fn position(&self) -> Position;
    /// The record last returned (or the faulty one), made printable.
    fn excerpt(&self) -> Option<String> {
        None
    }
    /// The first record that was skipped and may have been meant as a request.
    fn first_skipped(&self) -> Option<(Position, String)> {
        None
    }
    /// The volumes seen so far.
    fn volumes(&self) -> &Volumes;
    /// The process of a stream, where streams are processes.
    fn process(&self, _: Stream) -> Option<String> {
        None
    }
}

/// The decoder of all text formats.
pub(crate) struct TextDecoder<F> {
    input: Input,
    format: F,
    volumes: Volumes,
    line: u64,
    /// The bad line, kept for the message.
    bad: Option<String>,
    first_skipped: Option<(Position, String)>,
}

impl<F: TextFormat> TextDecoder<F> {
    pub fn new(input: Input, format: F) -> Self {
        TextDecoder {
            input,
            format,
            volumes: Volumes::default(),
            line: 0,
            bad: None,
            first_skipped: None,
        }
    }
}

impl<F: TextFormat> Decoder for TextDecoder<F> {
    fn next(&mut self) -> Result<Option<Parsed>, Stop> {
        self.line += 1;
        let Some(line) = self.input.line()? else {
            self.line -= 1;
            return Ok(None);
        };
        if line.trim_ascii().is_empty() {
            return Ok(Some(Parsed::Skip));
        }
        match self.format.line(line, &mut self.volumes) {
            Ok(Parsed::Skip) => {
                if self.first_skipped.is_none() {
                    self.first_skipped = Some((Position::Line(self.line), excerpt(line)));
                }
                Ok(Some(Parsed::Skip))
            }
            Ok(parsed) => Ok(Some(parsed)),
            Err(fault) => {
                self.bad = Some(excerpt(line));
                Err(fault.into())
            }
        }
    }

    fn position(&self) -> Position {
        Position::Line(self.line)
    }

    fn excerpt(&self) -> Option<String> {
        self.bad.clone()
    }

    fn first_skipped(&self) -> Option<(Position, String)> {
        self.first_skipped.clone()
    }

    fn volumes(&self) -> &Volumes {
        &self.volumes
    }

    fn process(&self, stream: Stream) -> Option<String> {
        self.format.process(stream)
    }
}

/// A request with the format's own time.
#[inline]
pub(crate) fn request(time: u64, op: crate::Op, volume: u32, offset: u64, bytes: u64) -> Request {
    Request {
        arrival_ns: time,
        op,
        volume,
        stream: Stream::NONE,
        offset,
        bytes,
    }
}

/// The stream in a cell; an empty cell, or one that is not there, names none.
#[inline]
pub(crate) fn stream(cell: &[u8]) -> Result<Stream, Fault> {
    match trim(cell) {
        [] => Ok(Stream::NONE),
        cell => stream_of(need(cell, "stream")?),
    }
}

/// The stream of a number.
#[inline]
pub(crate) fn stream_of(number: u64) -> Result<Stream, Fault> {
    Stream::new(number)
        .ok_or_else(|| Fault::new(format!("stream {number}: streams go up to {}", Stream::MAX)))
}

/// The fault for an operation that a format does not have.
#[cold]
pub(crate) fn unknown_op(text: &[u8], expected: &str) -> Fault {
    Fault::new(format!(
        "unknown operation '{}' (expected {expected})",
        excerpt(&text[..text.len().min(40)])
    ))
}

/// The fault for a line with a wrong number of fields.
#[cold]
pub(crate) fn wrong_fields(found: usize, format: Format) -> Fault {
    Fault::new(format!("the line has {found} fields")).hint(format!(
        "a line of format '{}' is: {}",
        format.name(),
        format.describe()
    ))
}
