//! Writing traces.

mod lines;
#[cfg(feature = "parquet")]
mod parquet;

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::error::TraceError;
use crate::source::base_name;
use crate::{Compression, Format, Op, Request};

/// How to write a trace. The default decides by the file name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WriteOptions {
    /// The format; `None` decides by the file name's ending ([`Format::extension`]).
    pub format: Option<Format>,
    /// The compression; `None` decides by the ending (`.gz`, `.xz`, `.zst`, `.bz2`). Parquet compresses
    /// inside and takes [`Compression::None`] only.
    pub compression: Option<Compression>,
    /// Bytes of a page in [`Format::Pages`]; 0 is 4,096.
    pub page_bytes: u32,
}

/// What was written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WriteSummary {
    /// Requests in the file.
    pub written: u64,
    /// Trims, zeroes and flushes left out because the format cannot say them.
    pub dropped: u64,
    /// Requests that were widened to whole sectors or pages because the format counts in these.
    pub widened: u64,
    /// Requests whose time was cut to the format's unit (100 ns, microseconds).
    pub times_cut: u64,
    /// Requests of a volume other than 0 that were written to a format without volumes.
    pub volumes_lost: u64,
    /// The length of the file.
    pub file_bytes: u64,
}

/// A compressing stream that has an end.
pub(crate) enum Sink {
    Plain(BufWriter<File>),
    Gzip(flate2::write::GzEncoder<BufWriter<File>>),
    Xz(liblzma::write::XzEncoder<BufWriter<File>>),
    Zstd(zstd::stream::write::Encoder<'static, BufWriter<File>>),
    Bzip2(bzip2::write::BzEncoder<BufWriter<File>>),
}

impl Sink {
    pub(crate) fn new(file: File, compression: Compression) -> io::Result<Sink> {
        let out = BufWriter::with_capacity(128 * 1024, file);
        Ok(match compression {
            Compression::None => Sink::Plain(out),
            Compression::Gzip => Sink::Gzip(flate2::write::GzEncoder::new(
                out,
                flate2::Compression::default(),
            )),
            Compression::Xz => Sink::Xz(liblzma::write::XzEncoder::new(out, 6)),
            Compression::Zstd => {
                let mut encoder = zstd::stream::write::Encoder::new(out, 9)?;
                encoder.include_checksum(true)?;
                Sink::Zstd(encoder)
            }
            Compression::Bzip2 => Sink::Bzip2(bzip2::write::BzEncoder::new(
                out,
                bzip2::Compression::best(),
            )),
        })
    }

    pub(crate) fn finish(self) -> io::Result<()> {
        let out = match self {
            Sink::Plain(out) => out,
            Sink::Gzip(encoder) => encoder.finish()?,
            Sink::Xz(encoder) => encoder.finish()?,
            Sink::Zstd(encoder) => encoder.finish()?,
            Sink::Bzip2(encoder) => encoder.finish()?,
        };
        out.into_inner().map_err(|e| e.into_error())?.sync_all()
    }
}

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Sink::Plain(out) => out.write(bytes),
            Sink::Gzip(out) => out.write(bytes),
            Sink::Xz(out) => out.write(bytes),
            Sink::Zstd(out) => out.write(bytes),
            Sink::Bzip2(out) => out.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Sink::Plain(out) => out.flush(),
            Sink::Gzip(out) => out.flush(),
            Sink::Xz(out) => out.flush(),
            Sink::Zstd(out) => out.flush(),
            Sink::Bzip2(out) => out.flush(),
        }
    }
}

enum Body {
    Lines(Box<Sink>, lines::Lines),
    #[cfg(feature = "parquet")]
    Parquet(Box<parquet::ParquetWriter>),
}

/// Writes a trace.
///
/// It writes to a temporary file in the same folder, which takes its name in [`finish`](Writer::finish); a
/// writer that is dropped before leaves nothing behind.
pub struct Writer {
    path: PathBuf,
    temporary: tempfile::TempPath,
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

/// The format that a file name asks for.
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
    /// If the format is not known or cannot be written, or the file cannot be made.
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
        let making = |e: &io::Error| TraceError::io(&name, "cannot make the file", e);
        let (file, temporary) = new_file(path).map_err(|e| making(&e))?;
        let mut line = Vec::with_capacity(128);
        let body = match format {
            #[cfg(feature = "parquet")]
            Format::Parquet => Body::Parquet(Box::new(
                parquet::ParquetWriter::new(file).map_err(|e| making(&e))?,
            )),
            _ => {
                let mut sink = Sink::new(file, compression).map_err(|e| making(&e))?;
                let lines = lines::Lines::new(format, options.page_bytes);
                lines.header(&mut line);
                sink.write_all(&line).map_err(|e| making(&e))?;
                Body::Lines(Box::new(sink), lines)
            }
        };
        Ok(Writer {
            path: path.to_owned(),
            temporary,
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
    /// What the format cannot say is left out, widened or cut, and counted in the [`WriteSummary`].
    ///
    /// # Errors
    /// If the file cannot be written (the disk is full, say), or the request is past what the format
    /// can say.
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
        TraceError::io(&self.path.display().to_string(), "cannot write", error)
    }

    /// Ends the file and gives it its name, replacing a file of this name.
    ///
    /// # Errors
    /// If the end cannot be written or the file not be renamed; nothing is left behind then.
    pub fn finish(self) -> Result<WriteSummary, TraceError> {
        let Writer {
            path,
            temporary,
            body,
            mut summary,
            ..
        } = self;
        let name = path.display().to_string();
        let failed = |e: &io::Error| TraceError::io(&name, "cannot write", e);
        match body {
            Body::Lines(sink, _) => sink.finish().map_err(|e| failed(&e))?,
            #[cfg(feature = "parquet")]
            Body::Parquet(writer) => writer.finish().map_err(|e| failed(&e))?,
        }
        summary.file_bytes = give_name(temporary, &path).map_err(|e| failed(&e))?;
        Ok(summary)
    }
}

/// A temporary file in the folder of `path`.
pub(crate) fn new_file(path: &Path) -> io::Result<(File, tempfile::TempPath)> {
    let folder = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let file = tempfile::Builder::new()
        .prefix(".floatgate-")
        .suffix(".tmp")
        .tempfile_in(folder)?;
    Ok(file.into_parts())
}

/// Gives a temporary file its name; its length.
pub(crate) fn give_name(temporary: tempfile::TempPath, path: &Path) -> io::Result<u64> {
    make_readable(&temporary)?;
    temporary.persist(path).map_err(|e| e.error)?;
    Ok(std::fs::metadata(path).map_or(0, |m| m.len()))
}

/// Temporary files are private; a trace gets the rights of an ordinary new file.
fn make_readable(path: &Path) -> io::Result<()> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o644))?;
    }
    #[cfg(not(unix))]
    let _ = path;
    Ok(())
}

/// Whether an operation is only a read or a write.
pub(crate) fn is_data(op: Op) -> bool {
    matches!(op, Op::Read | Op::Write)
}
