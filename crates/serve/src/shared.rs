//! The one device behind its lock, as all connections use it: bytes instead of sectors, long requests in pieces.

use std::sync::{Mutex, MutexGuard};
use std::time::Instant;

use floatgate_device::{DeviceError, Drive};

use crate::wire::{Failure, HOLE_AND_ZERO};

/// Bytes of a piece: how long the lock is held for one client while another waits. A trim is cut too, since the
/// device holds a buffer as long as its range.
const PIECE_BYTES: u64 = 1 << 20;

/// The device of all connections.
pub struct Shared {
    state: Mutex<State>,
    start: Instant,
    sector_bytes: u64,
    page_bytes: u64,
    piece_bytes: u64,
    zeroes: Vec<u8>,
}

struct State {
    /// None once it was closed.
    drive: Option<Box<dyn Drive>>,
    /// Requests since the last look at it.
    requests: u64,
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared").finish_non_exhaustive()
    }
}

impl Shared {
    /// A device that nobody uses yet.
    pub fn new(drive: Box<dyn Drive>) -> Self {
        let page_bytes = drive.page_bytes() as u64;
        // Cut at multiples of pages, so that no page is a part of two.
        let piece_bytes = PIECE_BYTES.next_multiple_of(page_bytes);
        Self {
            sector_bytes: drive.sector_bytes() as u64,
            page_bytes,
            piece_bytes,
            state: Mutex::new(State {
                drive: Some(drive),
                requests: 0,
            }),
            start: Instant::now(),
            zeroes: vec![0; piece_bytes as usize],
        }
    }

    /// The lock. A thread that panicked with it left the scheme in the middle of something: nobody uses the device
    /// after that, and it is left as a power cut would leave it.
    fn lock(&self) -> Result<MutexGuard<'_, State>, Failure> {
        self.state.lock().map_err(|_| Failure::Io)
    }

    fn on<T>(
        &self,
        ask: impl FnOnce(&mut dyn Drive) -> Result<T, DeviceError>,
    ) -> Result<T, Failure> {
        let mut state = self.lock()?;
        state.requests += 1;
        let drive = state.drive.as_deref_mut().ok_or(Failure::Io)?;
        ask(drive).map_err(failure_of)
    }

    fn now_ns(&self) -> u64 {
        self.start.elapsed().as_nanos() as u64
    }

    /// The pieces of a range: first byte and bytes of each.
    fn pieces(&self, offset: u64, bytes: u64) -> impl Iterator<Item = (u64, u64)> + use<> {
        let piece = self.piece_bytes;
        let (mut at, end) = (offset, offset + bytes);
        std::iter::from_fn(move || {
            let cut = ((at / piece + 1) * piece).min(end);
            let range = (at < end).then_some((at, cut - at));
            at = cut;
            range
        })
    }

    /// Reads bytes.
    ///
    /// # Errors
    /// If the device fails, or a page of it is lost.
    pub fn read(&self, offset: u64, data: &mut [u8]) -> Result<(), Failure> {
        for (at, bytes) in self.pieces(offset, data.len() as u64) {
            let data = &mut data[(at - offset) as usize..][..bytes as usize];
            self.on(|drive| {
                drive.tick(self.now_ns())?;
                drive.read(at / self.sector_bytes, data)
            })?;
        }
        Ok(())
    }

    /// Writes bytes.
    ///
    /// # Errors
    /// If the device fails, or is read-only.
    pub fn write(&self, offset: u64, data: &[u8]) -> Result<(), Failure> {
        for (at, bytes) in self.pieces(offset, data.len() as u64) {
            let data = &data[(at - offset) as usize..][..bytes as usize];
            self.on(|drive| {
                drive.tick(self.now_ns())?;
                drive.write(at / self.sector_bytes, data)
            })?;
        }
        Ok(())
    }

    /// Drops the pages that a range covers whole.
    ///
    /// # Errors
    /// As [`Shared::write`].
    pub fn trim(&self, offset: u64, bytes: u64) -> Result<(), Failure> {
        for (at, bytes) in self.pieces(offset, bytes) {
            self.on(|drive| {
                drive.tick(self.now_ns())?;
                drive.trim(at / self.sector_bytes, bytes / self.sector_bytes)
            })?;
        }
        Ok(())
    }

    /// Makes a range read as zeroes: whole pages are dropped if they may be, the rest is written.
    ///
    /// # Errors
    /// As [`Shared::write`].
    pub fn write_zeroes(&self, offset: u64, bytes: u64, may_drop: bool) -> Result<(), Failure> {
        let end = offset + bytes;
        let (mut first, mut last) = (end, end);
        if may_drop {
            let pages =
                offset.next_multiple_of(self.page_bytes)..end / self.page_bytes * self.page_bytes;
            if pages.start < pages.end {
                (first, last) = (pages.start, pages.end);
            }
        }
        for (from, to) in [(offset, first), (last, end)] {
            for (at, bytes) in self.pieces(from, to - from) {
                self.write(at, &self.zeroes[..bytes as usize])?;
            }
        }
        self.trim(first, last - first)
    }

    /// Returns once all that was acknowledged to anyone survives a crash of the machine.
    ///
    /// # Errors
    /// As [`Shared::write`].
    pub fn flush(&self) -> Result<(), Failure> {
        self.on(|drive| drive.flush())
    }

    /// Holes and the rest of a range, the first `extents_max` of them, as bytes and states.
    ///
    /// # Errors
    /// If the device was closed.
    pub fn extents(
        &self,
        offset: u64,
        bytes: u32,
        extents_max: usize,
        extents: &mut Vec<(u32, u32)>,
    ) -> Result<(), Failure> {
        extents.clear();
        let end = offset + u64::from(bytes);
        self.on(|drive| {
            let mut at = offset;
            while at < end {
                let page = at / self.page_bytes;
                let until = ((page + 1) * self.page_bytes).min(end);
                let state = u32::from(drive.is_hole(page as u32)) * HOLE_AND_ZERO;
                let length = (until - at) as u32;
                let is_full = extents.len() == extents_max;
                match extents.last_mut() {
                    Some((bytes, last)) if *last == state => *bytes += length,
                    _ if is_full => break,
                    _ => extents.push((length, state)),
                }
                at = until;
            }
            Ok(())
        })
    }

    /// Passes the time to the scheme if nobody asked for anything since the last call.
    pub fn tick_if_idle(&self, seen: &mut u64) {
        // Whoever has the lock is not idle.
        let Ok(mut state) = self.state.try_lock() else {
            return;
        };
        let is_idle = state.requests == *seen;
        *seen = state.requests;
        if let (true, Some(drive)) = (is_idle, state.drive.as_deref_mut()) {
            // A failure ends writing; the next client that writes is told.
            let _ = drive.tick(self.now_ns());
        }
    }

    /// Shuts the device down. Whoever asks afterwards is told of a failure.
    ///
    /// # Errors
    /// If the device fails, or was used by a thread that panicked.
    pub fn close(&self) -> Result<(), String> {
        let Ok(mut state) = self.state.lock() else {
            return Err("a request failed in a way that left the device undefined".into());
        };
        match state.drive.take() {
            Some(drive) => drive.close().map_err(|error| error.to_string()),
            None => Ok(()),
        }
    }
}

fn failure_of(error: DeviceError) -> Failure {
    match error {
        error if error.is_read_only() => Failure::NotPermitted,
        DeviceError::OutOfRange { .. } | DeviceError::Unaligned { .. } => Failure::Invalid,
        _ => Failure::Io,
    }
}
