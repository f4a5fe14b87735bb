//! The host's side: what it asks, and what it knows of every page.

use crate::bench::stream_of;
use crate::case::Case;
use crate::ram::RamFlash;
use floatgate_core::address::{LogicalPage, Lpn};
use floatgate_core::flash::{Flash, start_content};
use floatgate_core::ftl::{Ftl, Run, Tick};
use floatgate_core::rng::SplitMix64;

/// Bytes of a page: its number, its version, and a check of both.
pub(crate) const PAGE_BYTES: usize = 16;
/// The version of a page that reads as zeroes.
pub(crate) const ZEROES: u32 = 0;
/// The version of a page of the start state `full`.
pub(crate) const INITIAL: u32 = 1;

/// Time from request to request: long enough for background work, short of a timeout of 30 s.
pub(crate) const STEP_NS: u64 = 7_000_000_000;

pub(crate) fn content(lpn: u32, version: u32) -> Vec<u8> {
    match version {
        ZEROES => vec![0; PAGE_BYTES],
        INITIAL => start_content(Lpn(lpn), PAGE_BYTES),
        _ => {
            let mut bytes = Vec::with_capacity(PAGE_BYTES);
            bytes.extend(lpn.to_le_bytes());
            bytes.extend(version.to_le_bytes());
            let seed = u64::from(lpn) << 32 | u64::from(version);
            bytes.extend(SplitMix64::new(seed).next().to_le_bytes());
            bytes
        }
    }
}

/// The version that the bytes of a page are, if they are one of that page.
pub(crate) fn version_of(lpn: u32, bytes: &[u8]) -> Result<u32, String> {
    let noted = u32::from_le_bytes([bytes[4], bytes[5], bytes[6], bytes[7]]);
    let is = |&version: &u32| content(lpn, version) == bytes;
    [ZEROES, INITIAL, noted]
        .into_iter()
        .find(is)
        .ok_or_else(|| format!("page {lpn} reads {bytes:02x?}, which nobody wrote there"))
}

/// What the host knows of a page.
#[derive(Clone, Debug)]
pub(crate) struct Page {
    pub(crate) now: u32,
    /// Trimmed, and not written since.
    pub(crate) is_trimmed: bool,
    /// Versions that writes would have made which were cut, since it was last written or read.
    pub(crate) unsure: Vec<u32>,
    /// Every version it had.
    pub(crate) history: Vec<u32>,
}

impl Page {
    pub(crate) fn may_hold(&self, version: u32) -> bool {
        version == self.now
            || self.unsure.contains(&version)
            || self.is_trimmed && (version == ZEROES || self.history.contains(&version))
    }
}

/// A request, and what it makes of its pages.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Request {
    pub(crate) op: char,
    pub(crate) first: u32,
    pub(crate) pages: u32,
    /// Version of its first page, if it writes.
    pub(crate) version: u32,
    /// Its number since the device came up, from 1: it arrives so many [`STEP_NS`] after that.
    pub(crate) number: u32,
}

impl Request {
    /// Mostly writes: single pages, hot pages, whole blocks, streams.
    pub(crate) fn random(rng: &mut SplitMix64, case: &Case, version: u32, number: u32) -> Self {
        let total = u64::from(case.logical_pages);
        let block = case.pages * case.dies;
        let (first, pages) = match rng.below(8) {
            0 => (rng.below(total / u64::from(block)) as u32 * block, block),
            1 | 2 => (
                rng.below(total) as u32,
                1 + rng.below(2 * u64::from(block)) as u32,
            ),
            3 | 4 => (rng.below(total) as u32, 1 + rng.below(2) as u32),
            _ => (rng.below(total.div_ceil(3)) as u32, 1),
        };
        let pages = pages.min(case.logical_pages - first);
        let op = ['W', 'W', 'W', 'W', 'W', 'W', 'W', 'T', 'T', 'R'][rng.below(10) as usize];
        Self {
            op,
            first,
            pages,
            version,
            number,
        }
    }

    pub(crate) fn pages(&self) -> std::ops::Range<u32> {
        self.first..self.first + self.pages
    }

    /// Sends it to the device; a read is compared with `known` by the caller.
    pub(crate) fn send<S: Ftl, F: Flash + AsMut<RamFlash>>(
        &self,
        ftl: &mut S,
        flash: &mut F,
    ) -> Result<(), F::Error> {
        self.arrive(ftl, flash)?;
        self.carry_out(ftl, flash)
    }

    /// What is due before it.
    pub(crate) fn arrive<S: Ftl, F: Flash>(
        &self,
        ftl: &mut S,
        flash: &mut F,
    ) -> Result<(), F::Error> {
        let now_ns = u64::from(self.number) * STEP_NS;
        let idle_ns = (self.number > 0).then(|| now_ns - STEP_NS + 1..now_ns);
        ftl.tick(flash, &Tick { now_ns, idle_ns })
    }

    /// Its pages.
    pub(crate) fn carry_out<S: Ftl, F: Flash + AsMut<RamFlash>>(
        &self,
        ftl: &mut S,
        flash: &mut F,
    ) -> Result<(), F::Error> {
        let run = Run::whole(S::Page::from_number(self.first), self.pages);
        let buffer = flash.as_mut().new_request(self.pages);
        match self.op {
            'W' => {
                for (i, bytes) in buffer.iter_mut().enumerate() {
                    *bytes = content(self.first + i as u32, self.version + i as u32);
                }
                ftl.stream(stream_of(self.first));
                ftl.write(flash, &run)
            }
            'T' => ftl.trim(flash, &run),
            _ => {
                buffer.iter_mut().for_each(|bytes| bytes.fill(0xEE));
                ftl.read(flash, &run)
            }
        }
    }

    /// What a page holds after it, if the request changes it.
    pub(crate) fn version_for(&self, lpn: u32) -> Option<u32> {
        match self.op {
            'W' if self.pages().contains(&lpn) => Some(self.version + lpn - self.first),
            'T' if self.pages().contains(&lpn) => Some(ZEROES),
            _ => None,
        }
    }
}
