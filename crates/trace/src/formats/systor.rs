//! SYSTOR '17 VDI traces: `Timestamp,Response,IOType,LUN,Offset,Size`, seconds and bytes.
//!
//! The published files have records without a type; they are skipped, since their meaning is unknown.

use super::{Format, Parsed, TextFormat, request, unknown_op, wrong_fields};
use crate::error::Fault;
use crate::parse::{need, need_time, read_or_write, split, trim};
use crate::volumes::Volumes;

pub(crate) struct Systor;

impl TextFormat for Systor {
    #[inline]
    fn line(&mut self, line: &[u8], volumes: &mut Volumes) -> Result<Parsed, Fault> {
        let (f, n) = split::<6>(line, b',');
        if n != 6 {
            return Err(wrong_fields(n, Format::Systor));
        }
        if f[0].eq_ignore_ascii_case(b"timestamp") {
            return Ok(Parsed::Skip);
        }
        let time = need_time(f[0], "timestamp", 9)?;
        if trim(f[2]).is_empty() {
            return Ok(Parsed::Skip);
        }
        let op = read_or_write(f[2]).ok_or_else(|| unknown_op(f[2], "R or W"))?;
        let volume = volumes.number(trim(f[3]))?;
        let offset = need(f[4], "offset")?;
        let bytes = need(f[5], "size")?;
        Ok(Parsed::One(request(time, op, volume, offset, bytes)))
    }
}
