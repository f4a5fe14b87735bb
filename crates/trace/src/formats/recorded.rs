//! Floatgate's own recordings: a line `time_ns,op,offset,size` in nanoseconds and bytes, after a header
//! with these names. Operations: `R`, `W`, `T` (trim), `Z` (write zeroes), `F` (flush). With a fifth name, `stream`, a line
//! may have a fifth cell, empty where the request names none.

use super::{Format, Parsed, TextFormat, request, stream, unknown_op, wrong_fields};
use crate::error::Fault;
use crate::parse::{need, split, trim};
use crate::volumes::Volumes;
use crate::{Op, Request};

/// The header of a recording with streams. Only by it is one known: its lines look like those of other formats.
pub(crate) const WITH_STREAMS: &[u8] = b"time_ns,op,offset,size,stream";

pub(crate) struct Recorded;

impl TextFormat for Recorded {
    #[inline]
    fn line(&mut self, line: &[u8], _: &mut Volumes) -> Result<Parsed, Fault> {
        if line[0] == b'#' {
            return Ok(Parsed::Skip);
        }
        let (f, n) = split::<5>(line, b',');
        if !(4..=5).contains(&n) {
            return Err(wrong_fields(n, Format::Recorded));
        }
        if f[0] == b"time_ns" {
            return Ok(Parsed::Skip);
        }
        let time = need(f[0], "time")?;
        let op = match trim(f[1]) {
            [letter] => Op::from_letter(*letter),
            _ => None,
        }
        .ok_or_else(|| unknown_op(f[1], "R, W, T, Z or F"))?;
        let offset = need(f[2], "offset")?;
        let bytes = need(f[3], "size")?;
        let request = request(time, op, 0, offset, bytes);
        Ok(Parsed::One(Request {
            stream: stream(f[4])?,
            ..request
        }))
    }
}
