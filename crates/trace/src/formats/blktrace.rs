//! Binary traces of `blktrace`, one file per CPU, version 7, either byte order.
//!
//! A record is 48 bytes and a payload: magic and version (u32), sequence (u32), time in ns (u64), sector
//! (u64), bytes (u32), action (u32), pid (u32), device (u32), CPU (u32), error (u16), payload length (u16).
//! Queue events, or the kind of event set in the options, are requests; the device is the volume, named `major,minor`, the pid the process.

use super::{BlockEvent, Decoder, Parsed, request};
use crate::error::{Fault, Position, Stop};
use crate::input::Input;
use crate::processes::Processes;
use crate::volumes::Volumes;
use crate::{Op, Stream};

/// The upper 24 bits of a record's first word; the lower 8 are the version.
const MAGIC: u32 = 0x6561_7400;
const VERSION: u8 = 7;
const RECORD: usize = 48;

/// Action bits: the event is in the low half (this flag is not part of it: it says that the payload starts with a
/// cgroup id), ...
const TA_CGROUP: u32 = 1 << 8;
/// ... the categories are in the high half.
const TC_WRITE: u32 = 1 << (16 + 1);
const TC_FLUSH: u32 = 1 << (16 + 2);
const TC_READ: u32 = 1 << 16;
const TC_PC: u32 = 1 << (16 + 9);
const TC_NOTIFY: u32 = 1 << (16 + 10);
const TC_DISCARD: u32 = 1 << (16 + 13);

/// Byte order.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Order {
    Little,
    Big,
}

/// Whether the first bytes are a record's, and its version.
pub(crate) fn version(peek: &[u8]) -> Option<u8> {
    order(peek.first_chunk::<4>()?).map(|(_, version)| version)
}

fn order(word: &[u8; 4]) -> Option<(Order, u8)> {
    let little = u32::from_le_bytes(*word);
    if little & !0xff == MAGIC {
        return Some((Order::Little, little as u8));
    }
    let big = u32::from_be_bytes(*word);
    (big & !0xff == MAGIC).then_some((Order::Big, big as u8))
}

/// Whether an event of this kind is among the first records.
pub(crate) fn has_event(mut peek: &[u8], event: BlockEvent) -> bool {
    while peek.len() >= RECORD {
        let Some((order, VERSION)) = order(&[peek[0], peek[1], peek[2], peek[3]]) else {
            return false;
        };
        let action = u32_at(peek, 28, order);
        if action & TC_NOTIFY == 0 && action & 0xffff & !TA_CGROUP == event.code() {
            return true;
        }
        let payload = usize::from(u16_at(peek, 46, order));
        match peek.get(RECORD + payload..) {
            Some(rest) => peek = rest,
            None => return false,
        }
    }
    false
}

pub(crate) struct Blktrace {
    input: Input,
    event: u32,
    volumes: Volumes,
    processes: Processes,
    record: u64,
    device: Option<(u32, u32)>,
    bad: Option<String>,
}

impl Blktrace {
    pub fn new(input: Input, event: BlockEvent, processes: Processes) -> Self {
        Blktrace {
            input,
            event: event.code(),
            volumes: Volumes::default(),
            processes,
            record: 0,
            device: None,
            bad: None,
        }
    }

    fn volume(&mut self, device: u32) -> Result<u32, Fault> {
        if let Some((known, volume)) = self.device
            && known == device
        {
            return Ok(volume);
        }
        // The kernel's own encoding: 12 bits of major, 20 bits of minor number.
        let name = format!("{},{}", device >> 20, device & 0xf_ffff);
        let volume = self.volumes.number(name.as_bytes())?;
        self.device = Some((device, volume));
        Ok(volume)
    }
}

fn u16_at(bytes: &[u8], at: usize, order: Order) -> u16 {
    let b = [bytes[at], bytes[at + 1]];
    match order {
        Order::Little => u16::from_le_bytes(b),
        Order::Big => u16::from_be_bytes(b),
    }
}

fn u32_at(bytes: &[u8], at: usize, order: Order) -> u32 {
    let b = [bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]];
    match order {
        Order::Little => u32::from_le_bytes(b),
        Order::Big => u32::from_be_bytes(b),
    }
}

fn u64_at(bytes: &[u8], at: usize, order: Order) -> u64 {
    let (low, high) = (u32_at(bytes, at, order), u32_at(bytes, at + 4, order));
    match order {
        Order::Little => u64::from(low) | u64::from(high) << 32,
        Order::Big => u64::from(high) | u64::from(low) << 32,
    }
}

impl Decoder for Blktrace {
    fn next(&mut self) -> Result<Option<Parsed>, Stop> {
        self.record += 1;
        let Some(bytes) = self.input.record(RECORD)? else {
            self.record -= 1;
            return Ok(None);
        };
        let magic = [bytes[0], bytes[1], bytes[2], bytes[3]];
        let Some((order, version)) = order(&magic) else {
            self.bad = Some(super::vscsi::hex(bytes));
            return Err(
                Fault::new("the record does not begin with blktrace's magic number")
                    .hint("the file is damaged here, or blktrace lost events here")
                    .into(),
            );
        };
        if version != VERSION {
            self.bad = Some(super::vscsi::hex(bytes));
            return Err(Fault::new(format!(
                "blktrace version {version}; only version {VERSION} is supported"
            ))
            .hint("print the trace with blkparse and read its text")
            .into());
        }
        let time = u64_at(bytes, 8, order);
        let sector = u64_at(bytes, 16, order);
        let size = u64::from(u32_at(bytes, 24, order));
        let action = u32_at(bytes, 28, order);
        let pid = u32_at(bytes, 32, order);
        let device = u32_at(bytes, 36, order);
        let payload = usize::from(u16_at(bytes, 46, order));
        if !self.input.skip(payload)? {
            return Err(Fault::new("the trace ends inside a record")
                .hint("the file is cut off: copy it again")
                .into());
        }
        let what = action & 0xffff & !TA_CGROUP;
        if action & TC_NOTIFY != 0 || what != self.event {
            return Ok(Some(Parsed::Skip));
        }
        let op = if action & TC_DISCARD != 0 {
            Op::Trim
        } else if action & TC_WRITE != 0 {
            Op::Write
        } else {
            Op::Read
        };
        let flush = action & TC_FLUSH != 0;
        let directed = action & (TC_DISCARD | TC_WRITE | TC_READ) != 0;
        if action & TC_PC != 0 || (!directed && !flush) {
            // A passed-through command: its sector and size are meaningless.
            return Ok(Some(Parsed::Skip));
        }
        let volume = self.volume(device)?;
        let first = request(time, Op::Flush, volume, 0, 0);
        if flush && size == 0 {
            return Ok(Some(Parsed::One(first)));
        }
        let offset = sector
            .checked_mul(512)
            .ok_or_else(|| Fault::new(format!("sector {sector} is beyond 2^64 bytes")))?;
        let data = request(time, op, volume, offset, size);
        let data = self.processes.give(data, || pid.to_string())?;
        Ok(Some(if flush {
            Parsed::Two(first, data)
        } else {
            Parsed::One(data)
        }))
    }

    fn position(&self) -> Position {
        Position::Record(self.record)
    }

    fn excerpt(&self) -> Option<String> {
        self.bad.clone()
    }

    fn volumes(&self) -> &Volumes {
        &self.volumes
    }

    fn process(&self, stream: Stream) -> Option<String> {
        self.processes.name(stream)
    }
}
