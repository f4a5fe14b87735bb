//! What a trace is made of: requests, their operations, and the counts of a pass over a trace.

use serde::{Deserialize, Serialize};

/// What a request asks of the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Op {
    /// Reads a range of bytes.
    Read,
    /// Writes a range of bytes.
    Write,
    /// Discards a range of bytes (ATA TRIM, NVMe deallocate, SCSI UNMAP).
    Trim,
    /// Writes zeroes to a range without transferring them.
    WriteZeroes,
    /// Flushes the device's cache; offset and size are 0.
    Flush,
}

impl Op {
    /// The one-letter name that Floatgate's own formats use: `R`, `W`, `T`, `Z`, `F`.
    pub const fn letter(self) -> char {
        match self {
            Op::Read => 'R',
            Op::Write => 'W',
            Op::Trim => 'T',
            Op::WriteZeroes => 'Z',
            Op::Flush => 'F',
        }
    }

    /// Whether it is a read or a write.
    pub(crate) const fn is_data(self) -> bool {
        matches!(self, Op::Read | Op::Write)
    }

    /// The operation of a one-letter name (either case), the inverse of [`Op::letter`].
    pub const fn from_letter(letter: u8) -> Option<Op> {
        match letter {
            b'R' | b'r' => Some(Op::Read),
            b'W' | b'w' => Some(Op::Write),
            b'T' | b't' => Some(Op::Trim),
            b'Z' | b'z' => Some(Op::WriteZeroes),
            b'F' | b'f' => Some(Op::Flush),
            _ => None,
        }
    }
}

/// The stream that a write belongs to: a placement hint of the host (NVMe data placement, multi-stream).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Stream(u16);

impl Stream {
    /// The request names none.
    pub const NONE: Self = Self(u16::MAX);
    /// Highest number of a stream.
    pub const MAX: u32 = u16::MAX as u32 - 1;

    /// The stream of that number, if there can be one.
    pub fn new(number: u64) -> Option<Self> {
        (number <= u64::from(Self::MAX)).then_some(Self(number as u16))
    }

    /// Its number.
    #[inline]
    pub fn number(self) -> Option<u32> {
        (self != Self::NONE).then_some(self.0.into())
    }
}

impl Default for Stream {
    fn default() -> Self {
        Self::NONE
    }
}

/// One request of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Request {
    /// Arrival in nanoseconds. Relative to the trace's first request, except in formats whose
    /// times start at 0 by nature ([`Format::times_start_at_zero`](crate::Format::times_start_at_zero)).
    /// A request stamped before the first one gets 0. Later requests may have smaller times than
    /// earlier ones: nothing is sorted.
    pub arrival_ns: u64,
    /// The operation.
    pub op: Op,
    /// The number of the volume (device, LUN, ASU); [`Reader::volume_name`](crate::Reader::volume_name)
    /// gives its name in the trace.
    pub volume: u32,
    /// The stream that the host gives a write, where the format knows it.
    #[serde(default)]
    pub stream: Stream,
    /// First byte.
    pub offset: u64,
    /// Number of bytes. Only a flush has 0; `offset + bytes` never overflows.
    pub bytes: u64,
}

impl Request {
    /// The address of the first byte after the request.
    #[inline]
    pub const fn end(&self) -> u64 {
        self.offset + self.bytes
    }
}

/// What a reader has seen so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// Requests returned.
    pub accepted: u64,
    /// Records that are no requests by design: headers, comments, blank lines, events other than
    /// queueing, further lines of a request that has several, requests of 0 bytes.
    pub skipped: u64,
    /// Of `skipped`: reads, writes and trims of 0 bytes.
    pub empty: u64,
    /// Requests left out because only another volume is read. Not part of `skipped`.
    pub filtered: u64,
    /// Of `accepted`: requests with a time before that of the accepted request before them.
    pub backwards: u64,
    /// Of `accepted`: requests with a time before the trace's first request; they arrive at 0.
    pub clamped: u64,
    /// By how many nanoseconds the earliest of these was before the first.
    pub clamped_ns: u64,
}
