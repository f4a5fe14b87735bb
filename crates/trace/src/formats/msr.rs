//! MSR Cambridge CSV: `filetime,host,disk,type,offset,bytes,response`.
//!
//! Times count 100 ns since 1601. The volume is named `host_disk`.

use super::{Format, Parsed, TextFormat, request, unknown_op, wrong_fields};
use crate::error::Fault;
use crate::parse::{need, read_or_write, split};
use crate::volumes::Volumes;

#[derive(Default)]
pub(crate) struct Msr {
    name: Vec<u8>,
}

impl TextFormat for Msr {
    #[inline]
    fn line(&mut self, line: &[u8], volumes: &mut Volumes) -> Result<Parsed, Fault> {
        let (f, n) = split::<7>(line, b',');
        if !(6..=7).contains(&n) {
            return Err(wrong_fields(n, Format::Msr));
        }
        if f[0].eq_ignore_ascii_case(b"timestamp") {
            return Ok(Parsed::Skip);
        }
        let ticks = need(f[0], "timestamp")?;
        let time = ticks.checked_mul(100).ok_or_else(|| {
            Fault::new(format!("the timestamp {ticks} lies beyond the year 2185"))
                .hint("timestamps count 100 ns since 1601")
        })?;
        let op = read_or_write(f[3]).ok_or_else(|| unknown_op(f[3], "Read or Write"))?;
        self.name.clear();
        self.name.extend_from_slice(f[1]);
        self.name.push(b'_');
        self.name.extend_from_slice(f[2]);
        let volume = volumes.number(&self.name)?;
        let offset = need(f[4], "offset")?;
        let bytes = need(f[5], "size")?;
        Ok(Parsed::One(request(time, op, volume, offset, bytes)))
    }
}
