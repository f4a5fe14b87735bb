//! Alibaba block traces: `device_id,opcode,offset,length,timestamp`, bytes and microseconds.

use super::{Format, Parsed, TextFormat, request, unknown_op, wrong_fields};
use crate::error::Fault;
use crate::parse::{need, need_time, read_or_write, split, trim};
use crate::volumes::Volumes;

pub(crate) struct Alibaba;

impl TextFormat for Alibaba {
    #[inline]
    fn line(&mut self, line: &[u8], volumes: &mut Volumes) -> Result<Parsed, Fault> {
        let (f, n) = split::<5>(line, b',');
        if n != 5 {
            return Err(wrong_fields(n, Format::Alibaba));
        }
        if f[1].eq_ignore_ascii_case(b"opcode") {
            return Ok(Parsed::Skip);
        }
        let op = read_or_write(f[1]).ok_or_else(|| unknown_op(f[1], "R or W"))?;
        let offset = need(f[2], "offset")?;
        let bytes = need(f[3], "length")?;
        let time = need_time(f[4], "timestamp", 3)?;
        let volume = volumes.number(trim(f[0]))?;
        Ok(Parsed::One(request(time, op, volume, offset, bytes)))
    }
}
