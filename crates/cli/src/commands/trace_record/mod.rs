//! `floatgate trace record`: the requests that the kernel sends to a block device.

mod device;
mod event;
mod tracing;

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use floatgate_trace::{Op, Request, Stream, WriteOptions, Writer};
use serde_json::json;

use super::trace_convert::summary_text;
use crate::args::RecordArgs;
use crate::errors::{Outcome, Problem};
use crate::{output, signals};
use device::Device;
use event::Event;
use tracing::Tracing;

/// How often the kernel is asked for what has come.
const ROUND: Duration = Duration::from_millis(20);

/// Records until a signal, the end of the time, or the end of the command.
pub fn run(args: &RecordArgs) -> Outcome<()> {
    if !rustix::process::geteuid().is_root() {
        let text = "listening to the kernel's block requests needs root";
        return Err(Problem::new(text).help("run it with sudo"));
    }
    let device = Device::of(&args.device)?;
    output::check_files(&[("--out", &args.out)], &[])?;
    let writer = Writer::create(&args.out, &WriteOptions::default())?;
    // From here on a signal is only noted: the tracing group has to go.
    let stop = signals::asked_to_end();
    let tracing = Tracing::new(device.disk, args.buffer_mib)?;
    let mut recording = Recording {
        device,
        writer,
        first_us: None,
        last_us: 0,
        unknown: 0,
    };
    let start = Instant::now();
    let mut child = spawned(&args.command)?;
    let told = loop {
        recording.take(&tracing.read()?)?;
        if let Some(status) = ended(&mut child)? {
            break (!status.success()).then(|| format!("the command ended with {status}"));
        }
        let is_late = |seconds: u32| start.elapsed() >= Duration::from_secs(seconds.into());
        if child.is_none() && (stop.load(Ordering::Relaxed) || args.seconds.is_some_and(is_late)) {
            break None;
        }
        std::thread::sleep(ROUND);
    };
    tracing.stop()?;
    recording.take(&tracing.read()?)?;
    let lost = tracing.lost();
    drop(tracing);
    for text in told
        .into_iter()
        .chain(lost_text(lost, args))
        .chain(recording.unknown_text())
    {
        output::tell(&format!("Note: {text}"));
    }
    finished(args, recording.writer, lost)
}

fn finished(args: &RecordArgs, writer: Writer, lost: u64) -> Outcome<()> {
    let format = writer.format();
    let Some(summary) = output::unless_unread(writer.finish())? else {
        return Ok(());
    };
    if args.json {
        let written = serde_json::to_value(summary).unwrap_or_default();
        let value = json!({"format": format.name(), "written": written, "events_lost": lost});
        return output::report(&args.out, &output::json(&value)?);
    }
    let out = args.out.display();
    output::report(
        &args.out,
        &format!("{out} ({format}): {}\n", summary_text(&summary)),
    )
}

fn lost_text(lost: u64, args: &RecordArgs) -> Option<String> {
    let buffer = args.buffer_mib;
    (lost > 0).then(|| {
        format!("the kernel lost {lost} requests, which are not in the trace: give --buffer-mib more than {buffer}")
    })
}

fn spawned(command: &[String]) -> Outcome<Option<Child>> {
    let Some((program, arguments)) = command.split_first() else {
        return Ok(None);
    };
    // What it says goes beside our own results.
    let stdout = std::io::stderr();
    let stdout = rustix::io::dup(&stdout).map_or_else(|_| Stdio::null(), Stdio::from);
    let child = Command::new(program).args(arguments).stdout(stdout).spawn();
    child.map(Some).map_err(|error| {
        Problem::new(format!("{program}: {error}"))
            .help("the command stands behind --, as -- make -j8")
    })
}

fn ended(child: &mut Option<Child>) -> Outcome<Option<std::process::ExitStatus>> {
    match child.as_mut().map(Child::try_wait).transpose() {
        Ok(status) => Ok(status.flatten()),
        Err(error) => Err(Problem::new(format!(
            "the command cannot be waited for: {error}"
        ))),
    }
}

struct Recording {
    device: Device,
    writer: Writer,
    first_us: Option<u64>,
    last_us: u64,
    /// Requests of a kind that no trace has: of zones, of the driver.
    unknown: u64,
}

impl Recording {
    fn take(&mut self, lines: &str) -> Outcome<()> {
        for event in lines.lines().filter_map(Event::of) {
            let Some(offset) = self.device.offset(event.sector, event.sectors) else {
                continue;
            };
            // Buffers of several processors are read one after the other, so that neighbours may have changed places.
            self.last_us = self.last_us.max(event.at_us);
            let first = *self.first_us.get_or_insert(self.last_us);
            let arrival_ns = (self.last_us - first) * 1000;
            let bytes = event.sectors * 512;
            let flush = Some((Op::Flush, 0, 0));
            let data = event.op.filter(|_| bytes > 0).map(|op| (op, offset, bytes));
            self.unknown += u64::from(event.op.is_none() && bytes > 0);
            for (op, offset, bytes) in [
                flush.filter(|_| event.flush_before),
                data,
                flush.filter(|_| event.fua && data.is_some()),
            ]
            .into_iter()
            .flatten()
            {
                self.writer.write(&Request {
                    arrival_ns,
                    op,
                    volume: 0,
                    offset,
                    bytes,
                    stream: Stream::NONE,
                })?;
            }
        }
        Ok(())
    }

    fn unknown_text(&self) -> Option<String> {
        let n = self.unknown;
        (n > 0).then(|| format!("{n} requests of zones or of the driver are not in the trace"))
    }
}

/// What a file of the kernel says, without the newline behind it.
fn said(path: &Path) -> std::io::Result<String> {
    Ok(std::fs::read_to_string(path)?.trim().to_owned())
}
