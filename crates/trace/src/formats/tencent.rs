//! Tencent block traces: `seconds,sector,sectors,0 read or 1 write,volume`.

use super::{Format, Parsed, TextFormat, request, unknown_op, wrong_fields};
use crate::Op;
use crate::error::Fault;
use crate::parse::{need_sectors, need_time, split, trim};
use crate::volumes::Volumes;

pub(crate) struct Tencent;

impl TextFormat for Tencent {
    #[inline]
    fn line(&mut self, line: &[u8], volumes: &mut Volumes) -> Result<Parsed, Fault> {
        let (f, n) = split::<5>(line, b',');
        if n != 5 {
            return Err(wrong_fields(n, Format::Tencent));
        }
        if f[0].eq_ignore_ascii_case(b"timestamp") {
            return Ok(Parsed::Skip);
        }
        let time = need_time(f[0], "timestamp", 9)?;
        let offset = need_sectors(f[1], "offset")?;
        let bytes = need_sectors(f[2], "size")?;
        let op = match trim(f[3]) {
            b"0" => Op::Read,
            b"1" => Op::Write,
            other => return Err(unknown_op(other, "0 for a read or 1 for a write")),
        };
        let volume = volumes.number(trim(f[4]))?;
        Ok(Parsed::One(request(time, op, volume, offset, bytes)))
    }
}
