//! Which pages a stretch of bytes touches: asked by the session, and by whoever looks at a trace before a run.

use std::ops::Range;

use floatgate_trace::{Op, Request};
use rustc_hash::FxHashSet;

use crate::config::Host;

/// The bytes of a page, or of a region; nearly always a power of two, and then nobody divides.
#[derive(Clone, Copy, Debug)]
pub struct PageSize {
    bytes: u64,
    shift: Option<u32>,
}

/// Where a stretch of bytes begins and ends, in pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// Page of the first byte.
    pub first: u64,
    /// Bytes of that page before the first byte.
    pub head: u64,
    /// Page of the byte after the last.
    pub end: u64,
    /// Bytes of that page up to the last byte.
    pub tail: u64,
}

impl PageSize {
    /// Pages of that many bytes.
    pub fn new(bytes: u64) -> Self {
        let shift = bytes.is_power_of_two().then(|| bytes.trailing_zeros());
        Self { bytes, shift }
    }

    /// The bytes of a page.
    pub fn bytes(self) -> u64 {
        self.bytes
    }

    /// Where `bytes` from `offset` on lie.
    #[inline(always)]
    pub fn span(self, offset: u64, bytes: u64) -> Span {
        let (first, head) = self.split(offset);
        let (end, tail) = self.split(offset.saturating_add(bytes));
        Span {
            first,
            head,
            end,
            tail,
        }
    }

    /// The page of a byte, and the place inside it.
    #[inline(always)]
    fn split(self, byte: u64) -> (u64, u64) {
        match self.shift {
            Some(shift) => (byte >> shift, byte & (self.bytes - 1)),
            None => (byte / self.bytes, byte % self.bytes),
        }
    }
}

impl Span {
    /// All pages of which a byte belongs to it.
    #[inline]
    pub fn touched(self) -> Range<u64> {
        self.first..self.end + u64::from(self.tail != 0)
    }

    /// The pages that belong to it whole; the range may end before it starts.
    #[inline]
    pub fn inside(self) -> Range<u64> {
        self.first + u64::from(self.head != 0)..self.end
    }
}

/// The regions that the reads and writes of a trace touch: what a device must hold under `host.beyond = "compact"`.
#[derive(Clone, Debug)]
pub struct Regions {
    size: PageSize,
    zeroes_are_writes: bool,
    touched: FxHashSet<(u32, u64)>,
    /// The region touched last: requests are local.
    last: Option<(u32, u64)>,
}

impl Regions {
    /// None touched yet.
    pub fn new(host: &Host, region_bytes: u64) -> Self {
        Self {
            size: PageSize::new(region_bytes),
            zeroes_are_writes: host.write_zeroes_as_writes,
            touched: FxHashSet::default(),
            last: None,
        }
    }

    /// Takes a request.
    pub fn add(&mut self, request: &Request) {
        let touches = match request.op {
            Op::Read | Op::Write => true,
            Op::WriteZeroes => self.zeroes_are_writes,
            Op::Trim | Op::Flush => false,
        };
        if !touches || request.bytes == 0 {
            return;
        }
        for region in self.size.span(request.offset, request.bytes).touched() {
            let region = (request.volume, region);
            if self.last != Some(region) {
                self.touched.insert(region);
                self.last = Some(region);
            }
        }
    }

    /// How many there are.
    pub fn count(&self) -> u64 {
        self.touched.len() as u64
    }

    /// Bytes of all of them.
    pub fn bytes(&self) -> u64 {
        self.count() * self.size.bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_touched_and_pages_inside() {
        for bytes in [4096, 18_432] {
            let size = PageSize::new(bytes);
            let of = |offset, bytes| {
                let span = size.span(offset, bytes);
                (span.touched(), span.inside())
            };
            assert_eq!(of(bytes, bytes), (1..2, 1..2));
            assert_eq!(of(bytes - 1, 2), (0..2, 1..1));
            assert_eq!(of(1, 3 * bytes), (0..4, 1..3));
            assert_eq!(of(bytes, 0), (1..1, 1..1));
        }
    }
}
