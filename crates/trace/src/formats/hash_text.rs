//! Text with a content hash per 4 KiB page: seconds, `W` or `R`, first sector, bytes, process, device,
//! hash, separated by tabs.
//!
//! A request of `n` bytes has a line for each of its pages, and every one of them repeats the time, the
//! address and the whole size; lines of requests of the same instant may alternate. The request is
//! returned at its first line; the lines of its other pages are skipped. Blank records occur in
//! between. Process names may hold tabs, and then the device is missing: only the first four fields
//! are reliable, so the whole trace is one volume, and of a process the name counts up to its first tab.

use super::{Format, Parsed, TextFormat, request, unknown_op, wrong_fields};
use crate::error::Fault;
use crate::parse::{need, need_sectors, need_time, split, trim};
use crate::processes::Processes;
use crate::volumes::Volumes;
use crate::{Op, Stream};

/// At most this many requests can wait for further lines; the oldest is dropped first.
const OPEN_REQUESTS: usize = 64;

#[derive(Default)]
pub(crate) struct HashText {
    /// Requests and how many of their lines are still to come.
    open: std::collections::VecDeque<(u64, Op, u64, u64, u64)>,
    processes: Processes,
}

impl HashText {
    pub fn new(processes: Processes) -> Self {
        HashText {
            processes,
            ..HashText::default()
        }
    }
}

impl TextFormat for HashText {
    #[inline]
    fn line(&mut self, line: &[u8], _: &mut Volumes) -> Result<Parsed, Fault> {
        let (f, n) = split::<5>(line, b'\t');
        if f.iter().all(|field| trim(field).is_empty()) {
            return Ok(Parsed::Skip);
        }
        if n < 5 {
            return Err(wrong_fields(n, Format::HashText));
        }
        let time = need_time(f[0], "time", 9)?;
        let op = match trim(f[1]) {
            b"R" => Op::Read,
            b"W" => Op::Write,
            other => return Err(unknown_op(other, "R or W")),
        };
        let offset = need_sectors(f[2], "sector")?;
        let bytes = need(f[3], "size")?;
        let known = self
            .open
            .iter_mut()
            .position(|o| (o.0, o.1, o.2, o.3) == (time, op, offset, bytes));
        if let Some(i) = known {
            self.open[i].4 -= 1;
            if self.open[i].4 == 0 {
                self.open.remove(i);
            }
            return Ok(Parsed::Skip);
        }
        let lines = bytes.div_ceil(4096);
        if lines > 1 {
            if self.open.len() == OPEN_REQUESTS {
                self.open.pop_front();
            }
            self.open.push_back((time, op, offset, bytes, lines - 1));
        }
        let request = request(time, op, 0, offset, bytes);
        let request = self.processes.give(request, || trim(f[4]))?;
        Ok(Parsed::One(request))
    }

    fn process(&self, stream: Stream) -> Option<String> {
        self.processes.name(stream)
    }
}
