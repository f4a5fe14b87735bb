//! The text that `blkparse` prints by default.
//!
//! `maj,min cpu sequence seconds pid action rwbs sector + sectors [process]`. Queue events (`Q`), or the kind of event set
//! in the options, are requests; all others are skipped. In `rwbs`, `R`, `W` and `D` are read, write and discard; an `F`
//! before it is a flush first, an `F` after it is FUA (forced unit access) and is part of the write. An event
//! without a size and with a leading `F` is a flush. Discards with data direction none and the summary at
//! the end of the file are understood. The device is the volume, the pid the process.

use super::{BlockEvent, Parsed, TextFormat, request};
use crate::error::Fault;
use crate::parse::{need_sectors, need_time, number, words};
use crate::processes::Processes;
use crate::volumes::Volumes;
use crate::{Op, Stream};

pub(crate) struct Blkparse {
    event: BlockEvent,
    processes: Processes,
    /// The summary after the events has been reached.
    summary: bool,
}

impl Blkparse {
    pub fn new(event: BlockEvent, processes: Processes) -> Self {
        Blkparse {
            event,
            processes,
            summary: false,
        }
    }
}

/// Whether an event of this kind is among the first lines.
pub(crate) fn has_event(peek: &[u8], event: BlockEvent) -> bool {
    peek.split(|&b| b == b'\n').any(|line| {
        let (f, n) = words::<6>(line);
        n >= 6 && f[5] == [event.letter()] && is_device(f[0])
    })
}

/// Whether a word is a device number as `259,2`.
fn is_device(word: &[u8]) -> bool {
    match memchr::memchr(b',', word) {
        Some(i) => number(&word[..i]).is_some() && number(&word[i + 1..]).is_some(),
        None => false,
    }
}

/// Whether a line has the shape of an event.
pub(crate) fn is_event(line: &[u8]) -> bool {
    let (f, n) = words::<7>(line);
    n >= 6 && is_device(f[0]) && number(f[1]).is_some() && memchr::memchr(b'.', f[3]).is_some()
}

impl TextFormat for Blkparse {
    fn line(&mut self, line: &[u8], volumes: &mut Volumes) -> Result<Parsed, Fault> {
        let (f, n) = words::<10>(line);
        if !is_device(f[0]) {
            if self.summary || f[0][0] == b'#' {
                return Ok(Parsed::Skip);
            }
            if begins_summary(line) {
                self.summary = true;
                return Ok(Parsed::Skip);
            }
            return Err(Fault::new("the line is not a blkparse event").hint(
                "an event is: maj,min cpu sequence seconds pid action rwbs sector + sectors [process]; \
                 the output must be blkparse's default format",
            ));
        }
        if n < 6 {
            return Err(Fault::new("the event is cut off"));
        }
        let time = need_time(f[3], "time", 9)?;
        if f[5] != [self.event.letter()] {
            return Ok(Parsed::Skip);
        }
        if n < 7 {
            return Err(Fault::new("the event is cut off"));
        }
        let Some((flush, op)) = rwbs(f[6])? else {
            return Ok(Parsed::Skip);
        };
        let volume = volumes.number(f[0])?;
        let first = request(time, Op::Flush, volume, 0, 0);
        if n >= 9 && f[8] == b"+" {
            let offset = need_sectors(f[7], "sector")?;
            let bytes = need_sectors(f[9], "size")?;
            let Some(op) = op.filter(|_| !flush || bytes > 0) else {
                return Ok(Parsed::One(first));
            };
            let data = request(time, op, volume, offset, bytes);
            let data = self.processes.give(data, || f[4])?;
            return Ok(match flush {
                true => Parsed::Two(first, data),
                false => Parsed::One(data),
            });
        }
        if flush {
            return Ok(Parsed::One(first));
        }
        // Without `sector + sectors` there is no data: a passed-through command, say.
        if n < 8 || matches!(f[7].first(), Some(b'[' | b'(')) {
            return Ok(Parsed::Skip);
        }
        Err(Fault::new("the event has no 'sector + sectors'")
            .hint("the output must be blkparse's default format"))
    }

    fn process(&self, stream: Stream) -> Option<String> {
        self.processes.name(stream)
    }
}

/// The lines that stand behind the events.
fn begins_summary(line: &[u8]) -> bool {
    let line = line.trim_ascii_start();
    [
        &b"CPU"[..],
        b"Total (",
        b"Input file",
        b"Throughput (",
        b"Events (",
    ]
    .iter()
    .any(|start| line.starts_with(start))
}

/// `rwbs`: whether a flush comes first, and the operation if there is data; `None` for a
/// command without a data direction.
fn rwbs(text: &[u8]) -> Result<Option<(bool, Option<Op>)>, Fault> {
    let (flush, rest) = match text {
        [b'F', rest @ ..] => (true, rest),
        rest => (false, rest),
    };
    Ok(match rest.first() {
        Some(b'R') => Some((flush, Some(Op::Read))),
        Some(b'W') => Some((flush, Some(Op::Write))),
        Some(b'D') => Some((flush, Some(Op::Trim))),
        // `FN`, a bare `F`, or `FF` (with FUA): a flush without data.
        Some(b'N' | b'F' | b'S' | b'M') | None if flush => Some((true, None)),
        Some(b'N') => None,
        _ => {
            return Err(super::unknown_op(text, "letters as R, W, D, WS, FWS or FN"));
        }
    })
}
