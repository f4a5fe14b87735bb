//! Opening traces: decompression, detection and the decoder of the format.

use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use crate::error::{Cause, TraceError};
use crate::formats::{self, BlockEvent, Decoder, Format, TextDecoder, TextFormat};
use crate::input::{Input, PEEK_BYTES};
use crate::merged::Merged;
use crate::options::OpenOptions;
use crate::options::StreamFrom;
use crate::pagecache;
use crate::processes::Processes;
use crate::reader::{Parts, Reader, stopped};
use crate::source::{self, Compression};

/// What some programs write before a text in UTF-8.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// Opens a trace file.
///
/// Compression (gzip, xz, Zstandard, bzip2) is recognised by its magic number, the format by the
/// first 64 KiB of the content.
///
/// # Errors
/// If the file cannot be read or decompressed, is empty, or its format is not recognised.
pub fn open(path: impl AsRef<Path>, options: &OpenOptions) -> Result<Reader, TraceError> {
    let path = path.as_ref();
    open_copy(&path.display().to_string(), path, options)
}

/// Opens a trace that is called `name` and of which `path` is a copy.
///
/// # Errors
/// As [`open`].
pub fn open_copy(name: &str, path: &Path, options: &OpenOptions) -> Result<Reader, TraceError> {
    let file = File::open(path).map_err(|e| TraceError::io(name, "cannot open the trace", &e))?;
    if file.metadata().is_ok_and(|m| m.is_dir()) {
        return Err(TraceError::file(name, "this is a directory").hint("name a trace file"));
    }
    let total = source::length(&file);
    open_with(name, Box::new(file), Some(path), total, options)
}

/// Opens a trace from a stream: bytes in memory, a pipe.
///
/// `name` stands for the file in messages; its ending gives the units of the five-column formats.
///
/// # Errors
/// As [`open`].
pub fn open_reader(
    name: &str,
    stream: Box<dyn Read + Send>,
    options: &OpenOptions,
) -> Result<Reader, TraceError> {
    open_with(name, stream, None, None, options)
}

pub(crate) fn open_with(
    name: &str,
    raw: Box<dyn Read + Send>,
    path: Option<&Path>,
    total: Option<u64>,
    options: &OpenOptions,
) -> Result<Reader, TraceError> {
    let reading = |e: &std::io::Error| TraceError::io(name, "cannot read the trace", e);
    let source = source::open(raw).map_err(|e| reading(&e))?;
    let mut input = Input::new(source.stream);
    let binary = options.format.is_some_and(Format::is_binary);
    if !binary && input.peek(BYTE_ORDER_MARK.len()).map_err(|e| reading(&e))? == BYTE_ORDER_MARK {
        input.skip(BYTE_ORDER_MARK.len()).map_err(|e| reading(&e))?;
    }
    let peek = input.peek(PEEK_BYTES).map_err(|e| reading(&e))?;
    if peek.is_empty() {
        return Err(TraceError::file(name, "the trace is empty")
            .hint("the file has no bytes; was it written or downloaded completely?"));
    }
    let whole = peek.len() < PEEK_BYTES;
    let format = match (options.format, &options.columns) {
        (None, Some(_)) => Format::Columns,
        (Some(format), None) => format,
        (Some(_), Some(_)) => {
            return Err(
                TraceError::file(name, "both a format and columns are given")
                    .hint("leave the format out; a table that says what its columns hold has none"),
            );
        }
        (None, None) => crate::detect::detect(peek, whole, name).map_err(|fault| {
            let mut error = TraceError::file(name, fault.message);
            (error.hint, error.cause) = (fault.hint, fault.cause);
            error
        })?,
    };
    let is_parquet = peek.starts_with(b"PAR1");
    if format == Format::Columns && !is_parquet && peek.contains(&0) {
        return Err(
            TraceError::file(name, "this is no table of text and no Parquet")
                .hint("leave the columns out, so that the format is detected"),
        );
    }
    if !format.is_five_columns() && (options.time_unit.is_some() || options.address_unit.is_some())
    {
        return Err(TraceError::file(
            name,
            format!("a unit was given, but format '{format}' has its own"),
        )
        .hint("leave the unit out; it is for the five-column formats"));
    }
    check_streams(name, format, options)?;
    let path = path.filter(|_| source.compression == Compression::None);
    let event = options.event.unwrap_or_else(|| {
        input
            .peek(PEEK_BYTES)
            .map_or(BlockEvent::Queue, |peek| event_of(format, peek))
    });
    let decoder = decoder(
        name,
        (format, is_parquet),
        input,
        path,
        &source.count,
        event,
        options,
    )?;
    Ok(Reader::new(
        Parts {
            path: name.to_owned(),
            format,
            compression: source.compression,
            decoder,
            count: source.count,
            total,
        },
        options,
    ))
}

/// Opens several files as one trace, ordered by time: the files that `blktrace` wrote for each CPU, say.
///
/// Each file keeps the order of its own requests; among the files the earliest request comes first, in a tie that of the
/// file named first. Times are compared across files, so these must come from one recording. Volumes are matched by name. One file is opened as by [`open`].
///
/// # Errors
/// As [`open`], and if the files differ in format. A file without a request is fine if another has one.
pub fn open_merged<P: AsRef<Path>>(
    paths: &[P],
    options: &OpenOptions,
) -> Result<Reader, TraceError> {
    open_merged_with(paths, options, |path, options| open(path, options))
}

/// Opens several traces, each by `open`, as [`open_merged`] does.
///
/// # Errors
/// As [`open_merged`].
pub fn open_merged_with<T>(
    traces: &[T],
    options: &OpenOptions,
    open: impl Fn(&T, &OpenOptions) -> Result<Reader, TraceError>,
) -> Result<Reader, TraceError> {
    let reader = match traces {
        [] => return Err(TraceError::file("", "no trace was named")),
        [one] => open(one, options)?,
        _ => merged(traces, options, open)?,
    };
    pagecache::behind(reader, options)
}

/// Several traces, ordered by time.
fn merged<T>(
    traces: &[T],
    options: &OpenOptions,
    open: impl Fn(&T, &OpenOptions) -> Result<Reader, TraceError>,
) -> Result<Reader, TraceError> {
    let member_options = OpenOptions {
        volume: None,
        volume_name: None,
        ..options.clone()
    };
    let mut parts: Vec<Reader> = Vec::with_capacity(traces.len());
    let mut total = Some(0u64);
    for trace in traces {
        let mut part = open(trace, &member_options)?;
        if let Some(before) = parts.first()
            && before.format() != part.format()
        {
            return Err(TraceError::file(
                part.path(),
                format!(
                    "this is format '{}', but '{}' is format '{}'",
                    part.format(),
                    before.path(),
                    before.format()
                ),
            )
            .hint("files read as one trace must have one format"));
        }
        part.become_part();
        total = total.zip(part.bytes_total()).map(|(a, b)| a + b);
        parts.push(part);
    }
    let first = parts[0].path();
    let path = format!("{first} and {} more", traces.len() - 1);
    let format = parts[0].format();
    let compression = parts[0].compression();
    let count = Arc::new(AtomicU64::new(0));
    let processes = Processes::new(options.stream_from);
    Ok(Reader::new(
        Parts {
            path,
            format,
            compression,
            decoder: Box::new(Merged::new(parts, Arc::clone(&count), processes)),
            count,
            total,
        },
        options,
    ))
}

/// Refuses streams by process where the format does not know processes.
pub(crate) fn check_streams(
    name: &str,
    format: Format,
    options: &OpenOptions,
) -> Result<(), TraceError> {
    if options.stream_from == StreamFrom::Trace || format.knows_processes() {
        return Ok(());
    }
    let known = Format::ALL.into_iter().filter(|f| f.knows_processes());
    let known: Vec<&str> = known.map(Format::name).collect();
    let message = format!("format '{format}' does not say which process made a write");
    let error = TraceError::file(name, message).hint(format!(
        "streams by process are for the formats {}",
        known.join(", ")
    ));
    Err(TraceError {
        cause: Some(Box::new(Cause::NoProcesses)),
        ..error
    })
}

/// The events that count as requests in a trace of the block layer.
fn event_of(format: Format, peek: &[u8]) -> BlockEvent {
    let has = |event| match format {
        Format::Blktrace => formats::blktrace::has_event(peek, event),
        Format::Blkparse => formats::blkparse::has_event(peek, event),
        _ => false,
    };
    if !has(BlockEvent::Queue) && has(BlockEvent::Issue) {
        BlockEvent::Issue
    } else {
        BlockEvent::Queue
    }
}

/// The decoder of a format; a table with columns of its own may be Parquet.
fn decoder(
    name: &str,
    (format, is_parquet): (Format, bool),
    input: Input,
    path: Option<&Path>,
    count: &Arc<AtomicU64>,
    event: BlockEvent,
    options: &OpenOptions,
) -> Result<Box<dyn Decoder>, TraceError> {
    #[cfg(not(feature = "parquet"))]
    let _ = (path, count);
    fn text<F: TextFormat + 'static>(input: Input, format: F) -> Box<dyn Decoder> {
        Box::new(TextDecoder::new(input, format))
    }
    let processes = Processes::new(options.stream_from);
    Ok(match format {
        Format::Msr => text(input, formats::msr::Msr::default()),
        Format::Spc => text(input, formats::spc::Spc),
        Format::DiskSimAscii
        | Format::DiskSimAsciiBytes
        | Format::MicrosecondAscii
        | Format::SsdSimAscii => text(
            input,
            formats::ascii::Ascii::new(format, options.time_unit, options.address_unit),
        ),
        Format::Blkparse => text(input, formats::blkparse::Blkparse::new(event, processes)),
        Format::FioIolog => text(input, formats::iolog::Iolog::default()),
        Format::Alibaba => text(input, formats::alibaba::Alibaba),
        Format::Tencent => text(input, formats::tencent::Tencent),
        Format::Systor => text(input, formats::systor::Systor),
        Format::DiskMon => text(input, formats::diskmon::DiskMon),
        Format::Blkreplay => text(input, formats::blkreplay::Blkreplay::default()),
        Format::Recorded => text(input, formats::recorded::Recorded),
        Format::Pages => text(input, formats::pages::Pages::new(options.page_bytes)),
        Format::HashText => text(input, formats::hash_text::HashText::new(processes)),
        Format::Blktrace => Box::new(formats::blktrace::Blktrace::new(input, event, processes)),
        Format::Columns if !is_parquet => {
            let layout = options.columns.clone().ok_or_else(|| {
                TraceError::file(name, "the columns are missing").hint("say what they hold")
            })?;
            text(input, formats::columns::Table::new(layout))
        }
        Format::Vscsi => Box::new(
            formats::vscsi::Vscsi::new(input).map_err(|stop| stopped(name, stop, None, None))?,
        ),
        #[cfg(feature = "parquet")]
        Format::Parquet | Format::Columns => Box::new(
            formats::parquet::ParquetDecoder::new(
                input,
                path,
                options.columns.clone(),
                Arc::clone(count),
            )
            .map_err(|stop| stopped(name, stop, None, None))?,
        ),
        #[cfg(not(feature = "parquet"))]
        Format::Parquet | Format::Columns => {
            return Err(
                TraceError::file(name, "this build cannot read Parquet").hint(
                    "build with the feature 'parquet', or convert the trace with a build that has it",
                ),
            );
        }
    })
}
