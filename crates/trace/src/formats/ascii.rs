//! The five-column family of DiskSim, SSDsim and MQSim: `time device address size flag`.
//!
//! The flag is 1 for a read and 0 for a write. Times are ns, us or ms, addresses are sectors of 512
//! bytes or bytes; the columns do not say which, so the format or an option does.

use super::{AddressUnit, Format, Parsed, TextFormat, TimeUnit, request, wrong_fields};
use crate::Op;
use crate::error::{Fault, excerpt};
use crate::parse::{need, need_sectors, need_time, need32, words};
use crate::volumes::Volumes;

pub(crate) struct Ascii {
    pub time_digits: u32,
    pub bytes: bool,
}

impl Ascii {
    pub fn new(format: Format, time: Option<TimeUnit>, address: Option<AddressUnit>) -> Self {
        let time = time.unwrap_or(match format {
            Format::SsdSimAscii => TimeUnit::Ns,
            Format::MicrosecondAscii => TimeUnit::Us,
            _ => TimeUnit::Ms,
        });
        let address = address.unwrap_or(match format {
            Format::DiskSimAsciiBytes => AddressUnit::Bytes,
            _ => AddressUnit::Sectors,
        });
        Ascii {
            time_digits: time.digits(),
            bytes: address == AddressUnit::Bytes,
        }
    }
}

impl TextFormat for Ascii {
    #[inline]
    fn line(&mut self, line: &[u8], _: &mut Volumes) -> Result<Parsed, Fault> {
        let (f, n) = words::<5>(line);
        if f[0].first() == Some(&b'#') {
            return Ok(Parsed::Skip);
        }
        if n != 5 {
            return Err(wrong_fields(n, Format::DiskSimAscii));
        }
        let time = need_time(f[0], "time", self.time_digits)?;
        let volume = need32(f[1], "device")?;
        let (offset, bytes) = if self.bytes {
            (need(f[2], "offset")?, need(f[3], "size")?)
        } else {
            (need_sectors(f[2], "sector")?, need_sectors(f[3], "size")?)
        };
        let op = match f[4] {
            b"1" => Op::Read,
            b"0" => Op::Write,
            other => {
                return Err(Fault::new(format!(
                    "the flag is '{}', neither 1 (read) nor 0 (write)",
                    excerpt(&other[..other.len().min(40)])
                )));
            }
        };
        Ok(Parsed::One(request(time, op, volume, offset, bytes)))
    }
}
