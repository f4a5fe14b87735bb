//! CloudPhysics vSCSI traces, binary, little-endian.
//!
//! Version 1, 32 bytes: serial (u32), bytes (u32), segments (u32), command (u16), version (u16), LBA (u64, sectors
//! of 512 bytes), time in µs (u64). Version 2, 40 bytes: command, version, serial, bytes, segments, LBA, time,
//! response time (u64). The version's high byte is 1 or 2. The command's low byte is a SCSI operation code;
//! codes other than reads, writes, unmap, write same and synchronize cache are skipped.

use super::{Decoder, Parsed, request};
use crate::Op;
use crate::error::{Fault, Position, Stop};
use crate::input::Input;
use crate::volumes::Volumes;

/// Records that detection looks at.
const TEST_RECORDS: usize = 64;

/// Where the fields of a version stand.
#[derive(Clone, Copy)]
struct Layout {
    record: usize,
    command: usize,
    version: usize,
    bytes: usize,
    lba: usize,
    time: usize,
}

const V1: Layout = Layout {
    record: 32,
    bytes: 4,
    command: 12,
    version: 14,
    lba: 16,
    time: 24,
};

const V2: Layout = Layout {
    record: 40,
    command: 0,
    version: 2,
    bytes: 8,
    lba: 16,
    time: 24,
};

fn le16(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([bytes[at], bytes[at + 1]])
}

fn le32(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

fn le64(bytes: &[u8], at: usize) -> u64 {
    u64::from(le32(bytes, at)) | u64::from(le32(bytes, at + 4)) << 32
}

/// The version (1 or 2) of a trace that begins with these bytes.
pub(crate) fn version(peek: &[u8]) -> Option<u8> {
    let is = |layout: Layout, version: u16| {
        let records = peek.chunks_exact(layout.record).take(TEST_RECORDS);
        records.len() > 0
            && records.clone().all(|r| {
                le16(r, layout.version) >> 8 == version && le16(r, layout.command) >> 8 == 0
            })
    };
    if is(V2, 2) {
        Some(2)
    } else if is(V1, 1) {
        Some(1)
    } else {
        None
    }
}

/// The first bytes of a record for a message.
pub(crate) fn hex(bytes: &[u8]) -> String {
    let mut shown = String::with_capacity(3 * 32);
    for (i, byte) in bytes.iter().take(32).enumerate() {
        if i > 0 && i % 4 == 0 {
            shown.push(' ');
        }
        shown.push_str(&format!("{byte:02x}"));
    }
    shown
}

pub(crate) struct Vscsi {
    input: Input,
    layout: Layout,
    version: u16,
    record: u64,
    volumes: Volumes,
    bad: Option<String>,
    first_skipped: Option<(Position, String)>,
}

impl Vscsi {
    /// Finds the version by the first records.
    pub fn new(mut input: Input) -> Result<Self, Stop> {
        let peek = input.peek(TEST_RECORDS * 40)?;
        let version = version(peek).ok_or_else(|| {
            Fault::new("the first records are neither of version 1 nor of version 2")
                .hint("this is not a vSCSI trace, or it is cut off inside its first record")
        })?;
        Ok(Vscsi {
            input,
            layout: if version == 1 { V1 } else { V2 },
            version: u16::from(version),
            record: 0,
            volumes: Volumes::default(),
            bad: None,
            first_skipped: None,
        })
    }
}

impl Decoder for Vscsi {
    fn next(&mut self) -> Result<Option<Parsed>, Stop> {
        let layout = self.layout;
        self.record += 1;
        let Some(bytes) = self.input.record(layout.record)? else {
            self.record -= 1;
            return Ok(None);
        };
        let version = le16(bytes, layout.version) >> 8;
        if version != self.version {
            self.bad = Some(hex(bytes));
            return Err(Fault::new(format!(
                "a record of version {version} in a trace of version {}",
                self.version
            ))
            .hint("the file is damaged here")
            .into());
        }
        let command = le16(bytes, layout.command);
        let op = match command & 0xff {
            // READ(6), (10), (16), (12)
            0x08 | 0x28 | 0x88 | 0xa8 => Op::Read,
            // WRITE(6), (10), (16), (12), WRITE AND VERIFY(10), (16), (12)
            0x0a | 0x2a | 0x8a | 0xaa | 0x2e | 0x8e | 0xae => Op::Write,
            // UNMAP
            0x42 => Op::Trim,
            // WRITE SAME(10), (16)
            0x41 | 0x93 => Op::WriteZeroes,
            // SYNCHRONIZE CACHE(10), (16)
            0x35 | 0x91 => Op::Flush,
            _ => {
                if self.first_skipped.is_none() {
                    self.first_skipped = Some((Position::Record(self.record), hex(bytes)));
                }
                return Ok(Some(Parsed::Skip));
            }
        };
        let (sector, time) = (le64(bytes, layout.lba), le64(bytes, layout.time));
        let size = u64::from(le32(bytes, layout.bytes));
        let (Some(offset), Some(time)) = (sector.checked_mul(512), time.checked_mul(1000)) else {
            self.bad = Some(hex(bytes));
            return Err(
                Fault::new(format!("sector {sector} or time {time} us is out of range")).into(),
            );
        };
        let (offset, size) = if op == Op::Flush {
            (0, 0)
        } else {
            (offset, size)
        };
        Ok(Some(Parsed::One(request(time, op, 0, offset, size))))
    }

    fn position(&self) -> Position {
        Position::Record(self.record)
    }

    fn excerpt(&self) -> Option<String> {
        self.bad.clone()
    }

    fn first_skipped(&self) -> Option<(Position, String)> {
        self.first_skipped.clone()
    }

    fn volumes(&self) -> &Volumes {
        &self.volumes
    }
}
