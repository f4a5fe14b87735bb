//! fio I/O logs, versions 2 and 3 (`write_iolog` / `read_iolog` of fio).
//!
//! Version 2: `file action [offset length]`; `wait` lines carry a time in microseconds as their offset,
//! each relative to the `wait` before. Version 3 puts a timestamp in microseconds first. `sync` and `datasync`
//! are flushes; `add`, `open` and `close` are not requests. The file is the volume.

use super::{Format, Parsed, TextFormat, request, unknown_op, wrong_fields};
use crate::Op;
use crate::error::Fault;
use crate::parse::{need, need_time, words};
use crate::volumes::Volumes;

#[derive(Default)]
pub(crate) struct Iolog {
    /// The version in the first line; 0 before that is read.
    version: u8,
    /// Version 2: the sum of the waits, in nanoseconds.
    clock: u64,
}

/// The version that a first line declares.
pub(crate) fn version(line: &[u8]) -> Option<u8> {
    match line.trim_ascii() {
        b"fio version 2 iolog" => Some(2),
        b"fio version 3 iolog" => Some(3),
        _ => None,
    }
}

impl TextFormat for Iolog {
    fn line(&mut self, line: &[u8], volumes: &mut Volumes) -> Result<Parsed, Fault> {
        if self.version == 0 {
            self.version = version(line).ok_or_else(|| {
                Fault::new("the first line is not 'fio version 2 iolog' or 'fio version 3 iolog'")
                    .hint("version 1 logs can be converted by running fio itself with them")
            })?;
            return Ok(Parsed::Skip);
        }
        let (f, n) = words::<5>(line);
        let (time, f, n) = if self.version == 3 {
            let time = need_time(f[0], "timestamp", 3)?;
            (time, &f[1..], n - 1)
        } else {
            (self.clock, &f[..], n)
        };
        if !(2..=4).contains(&n) {
            return Err(wrong_fields(n, Format::FioIolog));
        }
        let op = match f[1] {
            b"add" | b"open" | b"close" => return Ok(Parsed::Skip),
            b"wait" => {
                let wait = need_time(f[2], "wait", 3)?;
                self.clock = self.clock.saturating_add(wait);
                return Ok(Parsed::Skip);
            }
            b"read" => Op::Read,
            b"write" => Op::Write,
            b"trim" => Op::Trim,
            b"sync" | b"datasync" | b"sync_file_range" | b"syncfs" => Op::Flush,
            other => {
                return Err(unknown_op(
                    other,
                    "read, write, trim, sync, datasync, wait, add, open or close",
                ));
            }
        };
        let volume = volumes.number(f[0])?;
        if op == Op::Flush {
            return Ok(Parsed::One(request(time, op, volume, 0, 0)));
        }
        let offset = need(f[2], "offset")?;
        let bytes = need(f[3], "length")?;
        Ok(Parsed::One(request(time, op, volume, offset, bytes)))
    }
}
