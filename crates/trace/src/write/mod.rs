//! Writing traces.

mod lines;
#[cfg(feature = "parquet")]
mod parquet;
mod summary;

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use crate::error::TraceError;
use crate::outfile::{Destination, OutFile};
use crate::sink::Sink;
use crate::source::base_name;
use crate::{Compression, Format, Request};
pub use summary::WriteSummary;

/// How to write a trace. The default decides by the file name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WriteOptions {
    /// The format; `None` decides by the file name's ending ([`Format::extension`]).
    pub format: Option<Format>,
    /// The compression; `None` decides by the ending (`.gz`, `.xz`, `.zst`, `.bz2`). Parquet compresses its
    /// columns itself and takes [`Compression::None`] only.
    pub compression: Option<Compression>,
    /// Bytes of a page in [`Format::Pages`]; 0 is 4,096.
    pub page_bytes: u32,
}

enum Body {
    Lines(Box<Sink>, lines::Lines),
    #[cfg(feature = "parquet")]
    Parquet(Box<parquet::ParquetWriter>),
}

/// Writes a trace.
///
/// The file takes its name in [`finish`](Writer::finish); a writer that is dropped before leaves nothing behind
/// ([`outfile`](crate::outfile)).
pub struct Writer {
    path: PathBuf,
    format: Format,
    body: Body,
    line: Vec<u8>,
    summary: WriteSummary,
}

impl std::fmt::Debug for Writer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Writer")
            .field("path", &self.path)
            .field("format", &self.format)
            .field("summary", &self.summary)
            .finish_non_exhaustive()
    }
}

/// The format by the file name.
fn format_of(name: &str) -> Option<Format> {
    let base = base_name(name);
    if base.ends_with(".msr.csv") {
        return Some(Format::Msr);
    }
    match base.rsplit_once('.')?.1 {
        "csv" => Some(Format::Recorded),
        "pages" => Some(Format::Pages),
        "iolog" => Some(Format::FioIolog),
        "5ns" => Some(Format::SsdSimAscii),
        "5ms" => Some(Format::DiskSimAscii),
        "msr" => Some(Format::Msr),
        "parquet" => Some(Format::Parquet),
        _ => None,
    }
}

impl Writer {
    /// Starts a trace file.
    ///
    /// # Errors
    /// If the format is unknown or cannot be written, or the file cannot be created.
    pub fn create(path: impl AsRef<Path>, options: &WriteOptions) -> Result<Writer, TraceError> {
        let path = path.as_ref();
        let name = path.display().to_string();
        let writable = || {
            let names: Vec<&str> = Format::ALL
                .iter()
                .filter(|f| f.writable())
                .map(|f| f.name())
                .collect();
            format!("the formats that can be written are {}", names.join(", "))
        };
        let format = options.format.or_else(|| format_of(&name)).ok_or_else(|| {
            TraceError::file(&name, "the file name does not tell the format")
                .hint(format!("say the format; {}", writable()))
        })?;
        if !format.writable() {
            return Err(
                TraceError::file(&name, format!("format '{format}' cannot be written"))
                    .hint(writable()),
            );
        }
        let compression = options
            .compression
            .unwrap_or_else(|| Compression::from_name(&name));
        if format == Format::Parquet && compression != Compression::None {
            return Err(
                TraceError::file(&name, "Parquet is not compressed as a whole")
                    .hint("leave the compression out; Parquet compresses its columns itself"),
            );
        }
        let making = |e: io::Error| TraceError::output(path, &e);
        let file = Destination::of(path)?.create()?;
        let mut line = Vec::with_capacity(128);
        let body = match format {
            #[cfg(feature = "parquet")]
            Format::Parquet => {
                Body::Parquet(Box::new(parquet::ParquetWriter::new(file).map_err(making)?))
            }
            _ => {
                let mut sink = Sink::new(file, compression).map_err(making)?;
                let lines = lines::Lines::new(format, options.page_bytes);
                lines.header(&mut line);
                sink.write_all(&line).map_err(making)?;
                Body::Lines(Box::new(sink), lines)
            }
        };
        Ok(Writer {
            path: path.to_owned(),
            format,
            body,
            line,
            summary: WriteSummary::default(),
        })
    }

    /// The format that is written.
    pub fn format(&self) -> Format {
        self.format
    }

    /// Adds a request.
    ///
    /// What the format cannot express is left out, widened or cut, and counted in the [`WriteSummary`].
    ///
    /// # Errors
    /// If the file cannot be written (the disk is full, say), or the format cannot express the
    /// request.
    pub fn write(&mut self, request: &Request) -> Result<(), TraceError> {
        let result = match &mut self.body {
            Body::Lines(sink, lines) => {
                self.line.clear();
                match lines.line(request, &mut self.line, &mut self.summary) {
                    Ok(()) => sink.write_all(&self.line),
                    Err(message) => {
                        return Err(TraceError::file(&self.path.display().to_string(), message)
                            .hint("write another format"));
                    }
                }
            }
            #[cfg(feature = "parquet")]
            Body::Parquet(writer) => {
                self.summary.written += 1;
                writer.write(request)
            }
        };
        result.map_err(|e| self.failed(&e))
    }

    fn failed(&self, error: &io::Error) -> TraceError {
        TraceError::output(&self.path, error)
    }

    /// Ends the file and gives it its name, replacing a file of this name.
    ///
    /// # Errors
    /// If the end cannot be written or the file cannot be renamed; then nothing is left behind.
    pub fn finish(self) -> Result<WriteSummary, TraceError> {
        let Writer {
            path,
            body,
            mut summary,
            mut line,
            ..
        } = self;
        let file = match body {
            Body::Lines(mut sink, mut lines) => {
                line.clear();
                lines
                    .release(&mut line, &mut summary)
                    .map_err(|message| TraceError::file(&path.display().to_string(), message))?;
                sink.write_all(&line).and_then(|()| sink.finish())
            }
            #[cfg(feature = "parquet")]
            Body::Parquet(writer) => writer.finish(),
        };
        summary.file_bytes = file
            .and_then(OutFile::finish)
            .map_err(|e| TraceError::output(&path, &e))?;
        Ok(summary)
    }
}
