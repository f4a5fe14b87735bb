//! The one device behind its lock, as all front ends use it: bytes instead of sectors, long requests in pieces, one flush for
//! all that wait for one.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use floatgate_device::{DeviceError, Drive};

use crate::stat::{Ended, Kind};
use crate::tap::{Asked, Change, Tap};

mod any;
pub mod power;

use power::{Power, Setup, Step};

/// Bytes of a piece: how long the lock is held for one client while another waits. A trim is cut too, since the
/// device holds a buffer as long as its range.
const PIECE_BYTES: u64 = 1 << 20;

/// How long nobody may ask for anything until the device is idle.
const ROUND: Duration = Duration::from_millis(100);

/// Why a request was not done, by its number in Linux, which is that of NBD too.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Failure {
    /// The device is read-only.
    NotPermitted = 1,
    /// A page is lost, or the device failed.
    Io = 5,
    /// The request makes no sense.
    Invalid = 22,
    /// A write beyond the end.
    NoSpace = 28,
    /// More bytes than are taken in one request.
    TooLong = 75,
    /// What was asked for is not to be had in the way that was asked for.
    Unsupported = 95,
}

/// What a client has to know of the device before it asks for anything.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Export {
    /// Bytes of the device.
    pub bytes: u64,
    /// Bytes of a sector: offsets and lengths are multiples of it.
    pub sector_bytes: u32,
    /// Bytes of a page: writes of whole pages need no read.
    pub page_bytes: u32,
    /// Whether nothing can be written.
    pub is_read_only: bool,
}

/// What is wrong with a range that a client names.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Misplaced {
    /// It ends beyond the device.
    Beyond,
    /// It does not consist of whole sectors.
    Unaligned,
}

impl Export {
    /// Whether a range lies in the device and consists of whole sectors.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn check(&self, offset: u64, bytes: u64) -> Result<(), Misplaced> {
        let sector = u64::from(self.sector_bytes);
        match offset.checked_add(bytes) {
            Some(end) if end <= self.bytes => {}
            _ => return Err(Misplaced::Beyond),
        }
        match offset.is_multiple_of(sector) && bytes.is_multiple_of(sector) {
            true => Ok(()),
            false => Err(Misplaced::Unaligned),
        }
    }
}

impl From<Misplaced> for Failure {
    fn from(_: Misplaced) -> Self {
        Self::Invalid
    }
}

/// A stretch of the device that is a hole, or is not known to be one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Extent {
    /// Its bytes.
    pub bytes: u32,
    /// Whether it holds nothing and reads as zeroes.
    pub is_hole: bool,
}

/// The device of all clients.
pub struct Shared {
    pub(crate) state: Mutex<State>,
    pub(crate) ended: Mutex<Ended>,
    start: Instant,
    export: Export,
    scheme: &'static str,
    page_bytes: u64,
    piece_bytes: u64,
    zeroes: Vec<u8>,
    /// Whether anybody listens.
    is_tapped: bool,
    /// Flushes asked for so far.
    flushes_asked: AtomicU64,
}

pub(crate) struct State {
    /// None once it was closed, and while the power is off.
    pub(crate) drive: Option<Box<dyn Drive>>,
    pub(crate) power: Power,
    pub(crate) taps: Vec<Box<dyn Tap>>,
    /// Requests since the last look at it.
    requests: u64,
    /// All flushes up to this number were asked for before the last one that was done began.
    flushed: u64,
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared").finish_non_exhaustive()
    }
}

impl Shared {
    /// A device that nobody uses yet.
    pub fn new(drive: Box<dyn Drive>, taps: Vec<Box<dyn Tap>>) -> Self {
        Self::with(drive, taps, Setup::default())
    }

    /// The same, as a drive: with a write cache, at the pace of a flash, with a power cut to come.
    pub fn with(drive: Box<dyn Drive>, taps: Vec<Box<dyn Tap>>, setup: Setup) -> Self {
        let (drive, power) = Power::new(drive, setup);
        let page_bytes = drive.page_bytes() as u64;
        let export = Export {
            bytes: drive.sectors() * drive.sector_bytes() as u64,
            sector_bytes: drive.sector_bytes() as u32,
            page_bytes: page_bytes as u32,
            is_read_only: drive.read_only().is_some(),
        };
        // Cut at multiples of pages, so that no page is a part of two.
        let piece_bytes = PIECE_BYTES.next_multiple_of(page_bytes);
        Self {
            export,
            is_tapped: !taps.is_empty(),
            scheme: drive.scheme(),
            page_bytes,
            piece_bytes,
            state: Mutex::new(State {
                drive: Some(drive),
                power,
                taps,
                requests: 0,
                flushed: 0,
            }),
            flushes_asked: AtomicU64::new(0),
            ended: Mutex::new(Ended::new()),
            start: Instant::now(),
            zeroes: vec![0; piece_bytes as usize],
        }
    }

    /// The lock. A thread that panicked with it left the scheme in the middle of something: nobody uses the device
    /// after that, and it is left as a power cut would leave it.
    pub(crate) fn lock(&self) -> Result<MutexGuard<'_, State>, Failure> {
        self.state.lock().map_err(|_| Failure::Io)
    }

    /// A request from its arrival to its answer: where the flash takes its time, the answer waits for it, outside the
    /// lock.
    fn timed(
        &self,
        kind: Kind,
        bytes: u64,
        work: impl FnOnce(&mut u64) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let (began_ns, mut until_ns) = (self.now_ns(), 0);
        let outcome = work(&mut until_ns);
        let now_ns = self.now_ns();
        if until_ns > now_ns {
            std::thread::sleep(Duration::from_nanos(until_ns - now_ns));
        }
        let took_ns = self.now_ns() - began_ns;
        let mut ended = self.ended.lock().unwrap_or_else(PoisonError::into_inner);
        if until_ns > 0 && until_ns < now_ns {
            ended.note_lag(now_ns - until_ns);
        }
        ended.note(kind, bytes, took_ns, outcome.is_ok());
        outcome
    }

    /// One piece of a change; whoever listens hears of it once it is done.
    fn change(
        &self,
        change: &Change<'_>,
        until_ns: &mut u64,
        make: impl FnOnce(&mut dyn Drive, u64) -> Result<(), DeviceError>,
    ) -> Result<(), Failure> {
        let mut state = self.lock()?;
        let (now_ns, step) = (self.now_ns(), Step::of(change));
        let place = state.power.place_of(&step, self.export);
        state.change(step, now_ns, until_ns, |drive| {
            drive.tick(now_ns)?;
            make(drive, place)
        })?;
        state.taps.iter_mut().for_each(|tap| tap.done(change));
        state.note_done();
        Ok(())
    }

    /// Tells the listeners what was asked; without any, the lock is not taken for it.
    fn asked(&self, asked: Asked) -> Result<(), Failure> {
        if self.is_tapped {
            let mut state = self.lock()?;
            let at_ns = self.now_ns();
            let taps = state.taps.iter_mut();
            taps.for_each(|tap| tap.asked(at_ns, asked));
        }
        Ok(())
    }

    /// What clients have to know.
    pub fn export(&self) -> Export {
        self.export
    }

    /// Key of the scheme.
    pub fn scheme(&self) -> &'static str {
        self.scheme
    }

    /// Nanoseconds since the device was put up.
    pub fn now_ns(&self) -> u64 {
        self.start.elapsed().as_nanos() as u64
    }

    fn sector(&self, offset: u64) -> u64 {
        offset / u64::from(self.export.sector_bytes)
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

    /// Reads bytes. Offsets and lengths are multiples of a sector and lie in the device, here and below: a front end has
    /// checked them.
    ///
    /// # Errors
    /// If the device fails, or a page of it is lost.
    pub fn read(&self, offset: u64, data: &mut [u8]) -> Result<(), Failure> {
        let bytes = data.len() as u64;
        self.timed(Kind::Read, bytes, |until_ns| {
            self.asked(Asked::Read { offset, bytes })?;
            for (at, bytes) in self.pieces(offset, bytes) {
                let data = &mut data[(at - offset) as usize..][..bytes as usize];
                let mut state = self.lock()?;
                state.power.check_readable(at, bytes)?;
                let now_ns = self.now_ns();
                state.on(now_ns, until_ns, |drive| {
                    drive.tick(now_ns)?;
                    drive.read(self.sector(at), data)
                })?;
            }
            Ok(())
        })
    }

    /// Writes bytes; with `fua` (force unit access) they survive a crash of the machine when this returns.
    ///
    /// # Errors
    /// If the device fails, or is read-only.
    pub fn write(&self, offset: u64, data: &[u8], fua: bool) -> Result<(), Failure> {
        let bytes = data.len() as u64;
        self.timed(Kind::Write, bytes, |until_ns| {
            self.asked(Asked::Write { offset, bytes, fua })?;
            self.write_pieces(offset, data, fua, until_ns)
        })
    }

    fn write_pieces(
        &self,
        offset: u64,
        data: &[u8],
        fua: bool,
        until_ns: &mut u64,
    ) -> Result<(), Failure> {
        for (at, bytes) in self.pieces(offset, data.len() as u64) {
            let data = &data[(at - offset) as usize..][..bytes as usize];
            let change = Change::Write {
                offset: at,
                data,
                fua,
            };
            self.change(&change, until_ns, |drive, place| match fua {
                true => drive.write_through(self.sector(place), data),
                false => drive.write(self.sector(place), data),
            })?;
        }
        Ok(())
    }

    /// Drops the pages that a range covers whole.
    ///
    /// # Errors
    /// As [`Shared::write`].
    pub fn trim(&self, offset: u64, bytes: u64) -> Result<(), Failure> {
        self.timed(Kind::Trim, bytes, |until_ns| {
            self.asked(Asked::Trim { offset, bytes })?;
            self.trim_pieces(offset, bytes, until_ns)
        })
    }

    fn trim_pieces(&self, offset: u64, bytes: u64, until_ns: &mut u64) -> Result<(), Failure> {
        for (at, bytes) in self.pieces(offset, bytes) {
            let change = Change::Trim { offset: at, bytes };
            self.change(&change, until_ns, |drive, at| {
                drive.trim(self.sector(at), self.sector(bytes))
            })?;
        }
        Ok(())
    }

    /// Makes a range read as zeroes: whole pages are dropped if they may be, the rest is written.
    ///
    /// # Errors
    /// As [`Shared::write`].
    pub fn write_zeroes(&self, offset: u64, bytes: u64, may_drop: bool) -> Result<(), Failure> {
        self.timed(Kind::WriteZeroes, bytes, |until_ns| {
            self.asked(Asked::WriteZeroes { offset, bytes })?;
            self.zero_pieces(offset, bytes, may_drop, until_ns)
        })
    }

    fn zero_pieces(
        &self,
        offset: u64,
        bytes: u64,
        may_drop: bool,
        until_ns: &mut u64,
    ) -> Result<(), Failure> {
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
                self.write_pieces(at, &self.zeroes[..bytes as usize], false, until_ns)?;
            }
        }
        self.trim_pieces(first, last - first, until_ns)
    }

    /// Returns once all that was acknowledged to anyone survives a crash of the machine. Those that wait while another
    /// flushes are served by one flush together.
    ///
    /// # Errors
    /// As [`Shared::write`].
    pub fn flush(&self) -> Result<(), Failure> {
        // What this client was told is done before it asks, so a flush that begins after this covers it.
        let ours = self.flushes_asked.fetch_add(1, Ordering::SeqCst) + 1;
        self.timed(Kind::Flush, 0, |until_ns| self.flush_once(ours, until_ns))
    }

    fn flush_once(&self, ours: u64, until_ns: &mut u64) -> Result<(), Failure> {
        self.asked(Asked::Flush)?;
        let mut state = self.lock()?;
        if state.flushed >= ours && state.drive.is_some() {
            *until_ns = (*until_ns).max(state.power.flushed_until_ns);
            return Ok(());
        }
        let covered = self.flushes_asked.load(Ordering::SeqCst);
        let now_ns = self.now_ns();
        state.change(Step::Flush, now_ns, until_ns, |drive| drive.flush())?;
        state.power.note_flush(*until_ns);
        state.flushed = covered;
        state
            .taps
            .iter_mut()
            .for_each(|tap| tap.done(&Change::Flush));
        state.note_done();
        Ok(())
    }

    /// Tells the listeners what a client wants to be known at this point in the order of things.
    ///
    /// # Errors
    /// If a request failed in a way that left the device undefined.
    pub fn mark(&self, text: &str) -> Result<(), Failure> {
        let mut state = self.lock()?;
        state.taps.iter_mut().for_each(|tap| tap.marked(text));
        Ok(())
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
        extents: &mut Vec<Extent>,
    ) -> Result<(), Failure> {
        extents.clear();
        let end = offset + u64::from(bytes);
        self.lock()?.on(self.now_ns(), &mut 0, |drive| {
            let mut at = offset;
            while at < end {
                let page = at / self.page_bytes;
                let until = ((page + 1) * self.page_bytes).min(end);
                let is_hole = drive.is_hole(page as u32);
                let bytes = (until - at) as u32;
                let is_full = extents.len() == extents_max;
                match extents.last_mut() {
                    Some(last) if last.is_hole == is_hole => last.bytes += bytes,
                    _ if is_full => break,
                    _ => extents.push(Extent { bytes, is_hole }),
                }
                at = until;
            }
            Ok(())
        })
    }

    /// Passes the time to the scheme whenever nobody has asked for anything for a while, until `stop` is set. It wants
    /// a thread of its own.
    pub fn keep_time(&self, stop: &AtomicBool) {
        let mut seen = 0;
        while !stop.load(Ordering::Relaxed) {
            std::thread::sleep(ROUND);
            self.tick_if_idle(&mut seen);
        }
    }

    fn tick_if_idle(&self, seen: &mut u64) {
        // Whoever has the lock is not idle.
        let Ok(mut state) = self.state.try_lock() else {
            return;
        };
        let is_idle = state.requests == *seen;
        *seen = state.requests;
        if is_idle && state.drive.is_some() {
            let now_ns = self.now_ns();
            // A failure ends writing; the next client that writes is told.
            let _ = state.on(now_ns, &mut 0, |drive| drive.tick(now_ns));
            // Nobody asked for that.
            state.requests = *seen;
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
        let Some(drive) = state.drive.take() else {
            return Ok(());
        };
        let mut outcome = drive.close().map_err(|error| error.to_string());
        for tap in std::mem::take(&mut state.taps) {
            outcome = outcome.and(tap.close());
        }
        outcome
    }
}

impl State {
    /// Asks the device for something. Where its flash takes its time, `until_ns` becomes when it is done; if the power went
    /// in the middle of it, that is a failure whatever the device says.
    pub(crate) fn on<T>(
        &mut self,
        now_ns: u64,
        until_ns: &mut u64,
        ask: impl FnOnce(&mut dyn Drive) -> Result<T, DeviceError>,
    ) -> Result<T, Failure> {
        self.requests += 1;
        let drive = self.drive.as_deref_mut().ok_or(Failure::Io)?;
        if !self.power.is_watched() {
            return ask(drive).map_err(failure_of);
        }
        begin(drive, now_ns);
        let outcome = ask(drive);
        if let Some(end_ns) = end(drive) {
            *until_ns = (*until_ns).max(end_ns);
        }
        self.check_power()?;
        outcome.map_err(failure_of)
    }
}

fn begin(drive: &mut dyn Drive, now_ns: u64) {
    if let Some(pace) = drive.supply().and_then(|supply| supply.pace()) {
        pace.begin(now_ns);
    }
}

fn end(drive: &mut dyn Drive) -> Option<u64> {
    let pace = drive.supply().and_then(|supply| supply.pace())?;
    Some(pace.end_ns())
}

fn failure_of(error: DeviceError) -> Failure {
    match error {
        error if error.is_read_only() => Failure::NotPermitted,
        DeviceError::OutOfRange { .. } | DeviceError::Unaligned { .. } => Failure::Invalid,
        _ => Failure::Io,
    }
}
