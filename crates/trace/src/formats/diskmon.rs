//! Text saved by DiskMon: `number seconds duration disk Read|Write sector sectors`.

use super::{Format, Parsed, TextFormat, request, unknown_op, wrong_fields};
use crate::Op;
use crate::error::Fault;
use crate::parse::{need_sectors, need_time, need32, words};
use crate::volumes::Volumes;

pub(crate) struct DiskMon;

impl TextFormat for DiskMon {
    #[inline]
    fn line(&mut self, line: &[u8], _: &mut Volumes) -> Result<Parsed, Fault> {
        let (f, n) = words::<7>(line);
        if f[0].first() == Some(&b'#') {
            return Ok(Parsed::Skip);
        }
        if n != 7 {
            return Err(wrong_fields(n, Format::DiskMon));
        }
        let time = need_time(f[1], "time", 9)?;
        let volume = need32(f[3], "disk")?;
        let op = match f[4] {
            word if word.eq_ignore_ascii_case(b"read") => Op::Read,
            word if word.eq_ignore_ascii_case(b"write") => Op::Write,
            other => return Err(unknown_op(other, "Read or Write")),
        };
        let offset = need_sectors(f[5], "sector")?;
        let bytes = need_sectors(f[6], "length")?;
        Ok(Parsed::One(request(time, op, volume, offset, bytes)))
    }
}
