//! SPC / UMass: `ASU,LBA,bytes,opcode,seconds` and optional further fields, which are ignored.
//!
//! The LBA counts sectors of 512 bytes; the ASU is the volume.

use super::{Format, Parsed, TextFormat, request, unknown_op, wrong_fields};
use crate::error::Fault;
use crate::parse::{need, need_sectors, need_time, need32, read_or_write, split};
use crate::volumes::Volumes;

pub(crate) struct Spc;

impl TextFormat for Spc {
    #[inline]
    fn line(&mut self, line: &[u8], _: &mut Volumes) -> Result<Parsed, Fault> {
        let (f, n) = split::<5>(line, b',');
        if n < 5 {
            return Err(wrong_fields(n, Format::Spc));
        }
        let volume = need32(f[0], "ASU")?;
        let offset = need_sectors(f[1], "LBA")?;
        let bytes = need(f[2], "size")?;
        let op = read_or_write(f[3]).ok_or_else(|| unknown_op(f[3], "r or w"))?;
        let time = need_time(f[4], "timestamp", 9)?;
        Ok(Parsed::One(request(time, op, volume, offset, bytes)))
    }
}
