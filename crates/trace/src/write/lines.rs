//! The lines of the text formats.

use super::summary::WriteSummary;
use crate::{Format, Op, Request, Stream};

/// The time of the first request in formats with a calendar: 2024-01-01 as 100 ns since 1601.
const FILETIME_BASE: u64 = 133_485_408_000_000_000;

/// Writes requests as lines of a format.
pub(crate) struct Lines {
    format: Format,
    page_bytes: u64,
    /// fio: the volumes already announced.
    announced: std::collections::BTreeSet<u32>,
    /// Recordings: the requests up to the first write, which tells whether there is a column of streams.
    held: Option<Vec<Request>>,
    /// Whether the format has a place for streams.
    streams: bool,
}

/// Most requests that are held back.
const HELD: usize = 1 << 16;

/// A number in decimal.
fn push(line: &mut Vec<u8>, mut value: u64) {
    let mut digits = [0u8; 20];
    let mut at = digits.len();
    loop {
        at -= 1;
        digits[at] = b'0' + (value % 10) as u8;
        value /= 10;
        if value == 0 {
            break;
        }
    }
    line.extend_from_slice(&digits[at..]);
}

fn push_field(line: &mut Vec<u8>, separator: u8, value: u64) {
    line.push(separator);
    push(line, value);
}

/// A range in whole units: first unit, number of units.
fn whole(request: &Request, unit: u64, summary: &mut WriteSummary) -> (u64, u64) {
    if request.bytes == 0 {
        return (0, 0);
    }
    if !(request.offset.is_multiple_of(unit) && request.bytes.is_multiple_of(unit)) {
        summary.widened += 1;
    }
    let first = request.offset / unit;
    let last = (request.end() - 1) / unit;
    (first, last - first + 1)
}

impl Lines {
    pub fn new(format: Format, page_bytes: u32) -> Self {
        Lines {
            format,
            page_bytes: u64::from(if page_bytes == 0 { 4096 } else { page_bytes }),
            announced: std::collections::BTreeSet::new(),
            held: (format == Format::Recorded).then(Vec::new),
            streams: format == Format::Pages,
        }
    }

    /// What precedes the first request.
    pub fn header(&self, out: &mut Vec<u8>) {
        match self.format {
            Format::Recorded if self.held.is_some() => {}
            Format::Recorded => {
                out.extend_from_slice(b"time_ns,op,offset,size");
                out.extend_from_slice(if self.streams { b",stream\n" } else { b"\n" });
            }
            Format::FioIolog => out.extend_from_slice(b"fio version 3 iolog\n"),
            Format::Pages => {
                out.extend_from_slice(b"# page_bytes ");
                push(out, self.page_bytes);
                out.push(b'\n');
            }
            _ => {}
        }
    }

    /// The line of a request; nothing if the format cannot express it, or if it is held back for now.
    pub fn line(
        &mut self,
        request: &Request,
        out: &mut Vec<u8>,
        summary: &mut WriteSummary,
    ) -> Result<(), String> {
        let Some(held) = &mut self.held else {
            return self.put(request, out, summary);
        };
        held.push(*request);
        match request.op == Op::Write || held.len() == HELD {
            true => self.release(out, summary),
            false => Ok(()),
        }
    }

    /// The header and what was held back.
    pub fn release(&mut self, out: &mut Vec<u8>, summary: &mut WriteSummary) -> Result<(), String> {
        let Some(held) = self.held.take() else {
            return Ok(());
        };
        self.streams = held.iter().any(|request| request.stream != Stream::NONE);
        self.header(out);
        held.iter()
            .try_for_each(|request| self.put(request, out, summary))
    }

    fn put(
        &mut self,
        request: &Request,
        out: &mut Vec<u8>,
        summary: &mut WriteSummary,
    ) -> Result<(), String> {
        let stream = request.stream.number();
        summary.streams_lost += u64::from(stream.is_some() && !self.streams);
        let letter = request.op.letter() as u8;
        let (time, volume) = (request.arrival_ns, u64::from(request.volume));
        match self.format {
            Format::Recorded => {
                summary.volumes_lost += u64::from(volume != 0);
                push(out, time);
                out.extend_from_slice(&[b',', letter]);
                push_field(out, b',', request.offset);
                push_field(out, b',', request.bytes);
                match stream.filter(|_| self.streams) {
                    Some(stream) => push_field(out, b',', stream.into()),
                    None if self.streams => out.push(b','),
                    None => {}
                }
            }
            Format::Pages => {
                summary.volumes_lost += u64::from(volume != 0);
                let (lpn, pages) = if matches!(request.op, Op::Trim | Op::WriteZeroes) {
                    // Only the pages that are covered whole may be lost.
                    let first = request.offset.div_ceil(self.page_bytes);
                    let end = request.end() / self.page_bytes;
                    if first >= end {
                        summary.dropped += 1;
                        return Ok(());
                    }
                    (first, end - first)
                } else {
                    whole(request, self.page_bytes, summary)
                };
                out.push(letter);
                push_field(out, b' ', lpn);
                push_field(out, b' ', pages);
                push_field(out, b' ', time);
                if let Some(stream) = stream {
                    push_field(out, b' ', stream.into());
                }
            }
            Format::SsdSimAscii | Format::DiskSimAscii => {
                if !request.op.is_data() {
                    summary.dropped += 1;
                    return Ok(());
                }
                let (sector, sectors) = whole(request, 512, summary);
                if self.format == Format::SsdSimAscii {
                    push(out, time);
                } else {
                    // Milliseconds with all six digits of a nanosecond.
                    push(out, time / 1_000_000);
                    let fraction = format!(".{:06}", time % 1_000_000);
                    out.extend_from_slice(fraction.as_bytes());
                }
                push_field(out, b' ', volume);
                push_field(out, b' ', sector);
                push_field(out, b' ', sectors);
                push_field(out, b' ', u64::from(request.op == Op::Read));
            }
            Format::Msr => {
                if !request.op.is_data() {
                    summary.dropped += 1;
                    return Ok(());
                }
                summary.times_cut += u64::from(!time.is_multiple_of(100));
                push(out, FILETIME_BASE + time / 100);
                out.extend_from_slice(b",floatgate");
                push_field(out, b',', volume);
                out.extend_from_slice(match request.op {
                    Op::Read => b",Read",
                    _ => b",Write",
                });
                push_field(out, b',', request.offset);
                push_field(out, b',', request.bytes);
                out.extend_from_slice(b",0");
            }
            Format::FioIolog => {
                let time = time / 1000;
                summary.times_cut += u64::from(!request.arrival_ns.is_multiple_of(1000));
                let file = format!(" volume{volume}");
                if self.announced.insert(request.volume) {
                    for action in [" add\n", " open\n"] {
                        push(out, time);
                        out.extend_from_slice(file.as_bytes());
                        out.extend_from_slice(action.as_bytes());
                    }
                }
                let action: &[u8] = match request.op {
                    Op::Read => b" read",
                    Op::Write => b" write",
                    Op::Trim => b" trim",
                    Op::Flush => b" sync",
                    Op::WriteZeroes => {
                        summary.dropped += 1;
                        return Ok(());
                    }
                };
                push(out, time);
                out.extend_from_slice(file.as_bytes());
                out.extend_from_slice(action);
                push_field(out, b' ', request.offset);
                push_field(out, b' ', request.bytes);
            }
            other => return Err(format!("format '{other}' cannot be written")),
        }
        out.push(b'\n');
        summary.written += 1;
        Ok(())
    }
}
