//! Floatgate's own recordings: a line `time_ns,op,offset,size` in nanoseconds and bytes, after a header
//! with these names. Operations: `R`, `W`, `T` (trim), `Z` (write zeroes), `F` (flush).

use super::{Format, Parsed, TextFormat, request, unknown_op, wrong_fields};
use crate::Op;
use crate::error::Fault;
use crate::parse::{need, split, trim};
use crate::volumes::Volumes;

pub(crate) struct Recorded;

impl TextFormat for Recorded {
    #[inline]
    fn line(&mut self, line: &[u8], _: &mut Volumes) -> Result<Parsed, Fault> {
        if line[0] == b'#' {
            return Ok(Parsed::Skip);
        }
        let (f, n) = split::<4>(line, b',');
        if n != 4 {
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
        Ok(Parsed::One(request(time, op, 0, offset, bytes)))
    }
}
