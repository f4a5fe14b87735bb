//! What is written down while a device is used: its write log, and a trace of its requests.

use floatgate_device::Drive;
use floatgate_serve::Tap;
use floatgate_serve::log::LogTap;
use floatgate_serve::tap::Asked;
use floatgate_trace::{Op, Request, Stream, TraceError, WriteOptions, Writer};

use crate::args::ListenArgs;
use crate::errors::{Outcome, Problem};
use crate::output::check_files;

/// Finds out before anything is opened whether the files can be written.
pub fn check(args: &ListenArgs) -> Outcome<()> {
    let files = [("--log", &args.log), ("--record", &args.record)];
    let given: Vec<_> = files
        .into_iter()
        .filter_map(|(flag, file)| Some((flag, file.as_deref()?)))
        .collect();
    if let Some(log) = args.log.as_deref().filter(|log| log.exists()) {
        let text = format!("--log {}: this file exists", log.display());
        return Err(Problem::new(text).help("name another file, or remove that one"));
    }
    check_files(&given, &[])
}

/// The listeners that the arguments ask for.
pub fn begin(args: &ListenArgs, drive: &mut dyn Drive) -> Outcome<Vec<Box<dyn Tap>>> {
    let mut taps: Vec<Box<dyn Tap>> = Vec::new();
    if let Some(path) = &args.record {
        taps.push(Box::new(Recorder {
            writer: Writer::create(path, &WriteOptions::default())?,
            first_ns: None,
            failed: None,
        }));
    }
    if let Some(path) = &args.log {
        let tap = LogTap::begin(path, drive);
        taps.push(Box::new(
            tap.map_err(|why| Problem::new(format!("--log {why}")))?,
        ));
    }
    Ok(taps)
}

/// Writes the requests into a trace, in the order in which they come in.
struct Recorder {
    writer: Writer,
    first_ns: Option<u64>,
    failed: Option<TraceError>,
}

impl Tap for Recorder {
    fn asked(&mut self, at_ns: u64, asked: Asked) {
        let (op, offset, bytes) = match asked {
            Asked::Read { offset, bytes } => (Op::Read, offset, bytes),
            Asked::Write { offset, bytes, .. } => (Op::Write, offset, bytes),
            Asked::WriteZeroes { offset, bytes } => (Op::WriteZeroes, offset, bytes),
            Asked::Trim { offset, bytes } => (Op::Trim, offset, bytes),
            Asked::Flush => (Op::Flush, 0, 0),
        };
        let request = Request {
            arrival_ns: at_ns - *self.first_ns.get_or_insert(at_ns),
            op,
            volume: 0,
            offset,
            bytes,
            stream: Stream::NONE,
        };
        if bytes > 0 || op == Op::Flush {
            self.write(&request);
        }
        // No trace format knows FUA. A flush behind the write is what this device makes of it.
        if let Asked::Write { fua: true, .. } = asked {
            self.write(&Request {
                op: Op::Flush,
                offset: 0,
                bytes: 0,
                ..request
            });
        }
    }

    fn close(self: Box<Self>) -> Result<(), String> {
        match self.failed {
            Some(error) => Err(error.to_string()),
            None => self.writer.finish().map(drop).map_err(|e| e.to_string()),
        }
    }
}

impl Recorder {
    fn write(&mut self, request: &Request) {
        if self.failed.is_none() {
            self.failed = self.writer.write(request).err();
        }
    }
}
