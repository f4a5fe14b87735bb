//! The device as a drive: its write cache, its pace, its power. The power goes when it was said to, or at once; then
//! every request fails until it is on again, and what comes up is what a mount makes of the flash: nothing of the
//! device before is used.

use std::path::{Path, PathBuf};
use std::time::Instant;

use floatgate_core::rng::SplitMix64;
use floatgate_device::drive::{Lost, Unflushed};
use floatgate_device::image::Found;
use floatgate_device::power::Times;
use floatgate_device::tear::CutKind;
use floatgate_device::{Cached, DeviceError, Drive, Medium};
use serde::Serialize;

use crate::cut::{CutAt, CutPlan};
use crate::shared::{Export, Failure, Shared, State};
use crate::stat::{Stat, Totals, Wear};
use crate::tap::Change;

/// Most ranges that may be unreadable at a time.
const UNREADABLE_MAX: usize = 1024;

/// How the device is as a drive.
#[derive(Clone, Debug)]
pub struct Setup {
    /// Bytes of a volatile write cache.
    pub cache_bytes: Option<u64>,
    /// The operations of the flash take that long.
    pub times: Option<Times>,
    /// The image's file; none for a device in memory.
    pub image: Option<PathBuf>,
    /// The first power cut.
    pub cut: Option<CutPlan>,
    /// Told of every power cut, in a line that tells how to have it again.
    pub tell: fn(&str),
}

impl Default for Setup {
    fn default() -> Self {
        Self {
            cache_bytes: None,
            times: None,
            image: None,
            cut: None,
            tell: |_| {},
        }
    }
}

/// A change, as far as a power cut is concerned with it.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Step {
    Write { offset: u64, bytes: u64 },
    Trim { offset: u64 },
    Flush,
}

impl Step {
    pub fn of(change: &Change<'_>) -> Self {
        match *change {
            Change::Write { offset, data, .. } => Self::Write {
                offset,
                bytes: data.len() as u64,
            },
            Change::Trim { offset, .. } => Self::Trim { offset },
            Change::Flush => Self::Flush,
        }
    }
}

/// What was done since the power came on.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    writes: u64,
    flushes: u64,
    changes: u64,
    /// Operations of the flash that the mount took.
    mount: u64,
}

/// A write that is to go elsewhere.
#[derive(Clone, Copy, Debug)]
struct Misdirected {
    /// Writes before it.
    left: u64,
    to: Option<u64>,
    seed: u64,
}

/// What is known of the device's power.
pub(crate) struct Power {
    /// Bytes that clients wrote since the device was put up: what was dropped instead is none.
    written_bytes: u64,
    setup: Setup,
    medium: Option<Medium>,
    plan: Option<CutPlan>,
    counts: Counts,
    cuts: u64,
    misdirected: Option<Misdirected>,
    /// Ranges that cannot be read until they are written: first byte and end.
    unreadable: Vec<(u64, u64)>,
    /// What was done before the power last came on.
    before: Totals,
    flushes_done: u64,
    /// When the last flush was done on the modelled flash.
    pub flushed_until_ns: u64,
    has_pace: bool,
}

/// What the power found when it came on.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Recovered {
    /// How long the mount took.
    pub took_ms: f64,
    /// What was in the image.
    pub found: Found,
    /// Pages that the recovery read, ...
    pub page_reads: u64,
    /// ... spare areas, ...
    pub oob_reads: u64,
    /// ... and pages that it programmed.
    pub page_programs: u64,
}

impl Power {
    pub fn new(drive: Box<dyn Drive>, setup: Setup) -> (Box<dyn Drive>, Self) {
        let mut power = Self {
            written_bytes: 0,
            // Without a handle the power does not come back, which is told then.
            medium: drive.medium().ok().flatten(),
            plan: None,
            counts: Counts::default(),
            cuts: 0,
            misdirected: None,
            unreadable: Vec::new(),
            before: Totals::default(),
            flushes_done: 0,
            flushed_until_ns: 0,
            has_pace: false,
            setup,
        };
        let mut drive = power.dressed(drive);
        if let Some(plan) = power.setup.cut {
            power.arm(plan, &mut *drive);
        }
        (drive, power)
    }

    /// A device that was just mounted, with all that makes a drive of it.
    fn dressed(&mut self, drive: Box<dyn Drive>) -> Box<dyn Drive> {
        let mut drive = match self.setup.cache_bytes {
            Some(bytes) => Box::new(Cached::new(drive, bytes)),
            None => drive,
        };
        self.counts = Counts::default();
        self.plan = None;
        if let Some(supply) = drive.supply() {
            self.counts.mount = supply.changes();
            if let Some(times) = self.setup.times {
                supply.set_pace(times);
                self.has_pace = true;
            }
        }
        drive
    }

    /// Whether the flash may lose its power in an operation, or takes its time.
    pub fn is_watched(&self) -> bool {
        self.has_pace || self.plan.is_some()
    }

    fn arm(&mut self, plan: CutPlan, drive: &mut dyn Drive) {
        self.plan = Some(plan);
        let Some(supply) = drive.supply() else {
            return;
        };
        supply.disarm();
        if let CutAt::Flash(nth) = plan.at {
            let done = supply.changes() - self.counts.mount;
            let mut rng = SplitMix64::new(plan.seed);
            let kind = match (plan.tear, rng.below(2)) {
                (true, _) => CutKind::Torn,
                (false, 0) => CutKind::Before,
                _ => CutKind::After,
            };
            supply.arm(nth.saturating_sub(done), kind, rng.next());
        }
    }

    pub fn note_flush(&mut self, until_ns: u64) {
        self.flushes_done += 1;
        self.flushed_until_ns = until_ns;
    }

    /// Where a change goes: where it should, unless it is a write that was to be misdirected.
    pub fn place_of(&mut self, step: &Step, export: Export) -> u64 {
        let (offset, bytes) = match *step {
            Step::Write { offset, bytes } => (offset, bytes),
            Step::Trim { offset } => return offset,
            Step::Flush => return 0,
        };
        let mut place = offset;
        if let Some(misdirected) = &mut self.misdirected {
            misdirected.left -= 1;
            if misdirected.left == 0 {
                let sector = u64::from(export.sector_bytes);
                let places = (export.bytes - bytes) / sector + 1;
                let draw = || SplitMix64::new(misdirected.seed).below(places) * sector;
                place = misdirected.to.unwrap_or_else(draw);
                place = place.min(export.bytes - bytes);
                self.misdirected = None;
            }
        }
        if !self.unreadable.is_empty() {
            self.mend(place, place + bytes);
        }
        place
    }

    /// What is written can be read again.
    fn mend(&mut self, first: u64, end: u64) {
        let mut rest = Vec::with_capacity(self.unreadable.len() + 1);
        for &(from, to) in &self.unreadable {
            let parts = [(from, to.min(first)), (from.max(end), to)];
            rest.extend(parts.into_iter().filter(|(from, to)| from < to));
        }
        self.unreadable = rest;
    }

    pub fn check_readable(&self, offset: u64, bytes: u64) -> Result<(), Failure> {
        let is_hit = |&(from, to): &(u64, u64)| from < offset + bytes && offset < to;
        match self.unreadable.iter().any(is_hit) {
            true => Err(Failure::Io),
            false => Ok(()),
        }
    }
}

impl State {
    /// Changes the device, unless the power goes in it.
    pub(crate) fn change(
        &mut self,
        step: Step,
        now_ns: u64,
        until_ns: &mut u64,
        make: impl FnOnce(&mut dyn Drive) -> Result<(), DeviceError>,
    ) -> Result<(), Failure> {
        if let Step::Write { bytes, .. } = step {
            self.power.written_bytes += bytes;
        }
        let counts = &mut self.power.counts;
        let at = match step {
            Step::Write { .. } => {
                counts.writes += 1;
                Some(CutAt::Write(counts.writes))
            }
            Step::Flush => {
                counts.flushes += 1;
                Some(CutAt::Flush(counts.flushes))
            }
            Step::Trim { .. } => None,
        };
        match self.power.plan {
            Some(plan) if Some(plan.at) == at => self.cut_in(plan, step, make),
            _ => self.on(now_ns, until_ns, make),
        }
    }

    /// The power goes in the middle of a change, which is done, or not, or in part.
    fn cut_in(
        &mut self,
        plan: CutPlan,
        step: Step,
        make: impl FnOnce(&mut dyn Drive) -> Result<(), DeviceError>,
    ) -> Result<(), Failure> {
        let drive = self.drive.as_deref_mut().ok_or(Failure::Io)?;
        let mut rng = SplitMix64::new(plan.seed);
        let is_made = match plan.unflushed {
            Unflushed::Keep => true,
            Unflushed::Drop => false,
            Unflushed::Some => rng.below(2) == 1,
        };
        if plan.tear {
            let page_bytes = drive.page_bytes() as u64;
            let bytes = match step {
                Step::Write { bytes, .. } => bytes,
                Step::Flush => drive
                    .figures()
                    .cache
                    .map_or(0, |cache| cache.unwritten_bytes),
                Step::Trim { .. } => 0,
            };
            let (nth, seed) = (1 + rng.below(bytes / page_bytes + 2), rng.next());
            if let Some(supply) = drive.supply() {
                supply.arm(nth, CutKind::Torn, seed);
            }
        }
        if is_made || plan.tear {
            // Nobody is told how it ended.
            let _ = make(drive);
        }
        self.go_off(plan, &mut rng);
        Err(Failure::Io)
    }

    /// A change was done, and whoever listens has heard of it.
    pub(crate) fn note_done(&mut self) {
        self.power.counts.changes += 1;
        if let Some(plan) = self.power.plan
            && plan.at == CutAt::After(self.power.counts.changes)
        {
            self.go_off(plan, &mut SplitMix64::new(plan.seed));
        }
    }

    /// Whether the power went in an operation of the flash.
    pub(crate) fn check_power(&mut self) -> Result<(), Failure> {
        let drive = self.drive.as_deref_mut().ok_or(Failure::Io)?;
        if !drive.supply().is_some_and(|supply| supply.is_off()) {
            return Ok(());
        }
        if let Some(plan) = self.power.plan {
            self.go_off(plan, &mut SplitMix64::new(plan.seed));
        }
        Err(Failure::Io)
    }

    /// The power goes: the cache loses what it is to lose, and the device is dropped as it is.
    fn go_off(&mut self, plan: CutPlan, rng: &mut SplitMix64) {
        let Some(mut drive) = self.drive.take() else {
            return;
        };
        let is_off = drive.supply().is_some_and(|supply| supply.is_off());
        let lost = match is_off {
            true => None,
            false => Some(drive.lose(plan.loss(), rng)),
        };
        self.power.plan = None;
        self.power.cuts += 1;
        self.power.before = self.power.before.with(&drive.figures());
        drop(drive);
        let Lost {
            kept_runs,
            dropped_runs,
            torn_runs,
        } = lost.unwrap_or_default();
        let cache = match (self.power.setup.cache_bytes, lost) {
            (None, _) => String::new(),
            (Some(_), None) => "; what was in the write cache is lost".into(),
            (Some(_), Some(_)) => format!(
                "; unflushed runs of sectors: {kept_runs} kept, {dropped_runs} dropped, {torn_runs} torn"
            ),
        };
        (self.power.setup.tell)(&format!("power cut{cache}; again: --cut '{plan}'"));
    }
}

impl Shared {
    /// The power goes at that point, counted from now; at once if that is none. Returns the plan, counted since the power
    /// came on.
    ///
    /// # Errors
    /// If the power is off, or cannot be cut.
    pub fn cut(&self, at: Option<CutAt>, plan: CutPlan) -> Result<CutPlan, String> {
        let mut state = self.lock().map_err(undefined)?;
        let state = &mut *state;
        if state.power.medium.is_none() {
            return Err("this device cannot be mounted again, so its power stays on".into());
        }
        let drive = state.drive.as_deref_mut().ok_or(OFF)?;
        let counts = state.power.counts;
        let changes = drive.supply().map_or(0, |supply| supply.changes());
        let at = match at {
            Some(CutAt::Write(nth)) => CutAt::Write(counts.writes.saturating_add(nth)),
            Some(CutAt::Flush(nth)) => CutAt::Flush(counts.flushes.saturating_add(nth)),
            Some(CutAt::Flash(nth)) => CutAt::Flash((changes - counts.mount).saturating_add(nth)),
            Some(CutAt::After(nth)) => CutAt::After(counts.changes.saturating_add(nth)),
            None => CutAt::After(counts.changes),
        };
        let plan = CutPlan { at, ..plan };
        if at == CutAt::After(counts.changes) {
            state.go_off(plan, &mut SplitMix64::new(plan.seed));
        } else {
            state.power.arm(plan, drive);
        }
        Ok(plan)
    }

    /// The power comes on again: the device is mounted as after any power cut.
    ///
    /// # Errors
    /// If it is on, or the device does not come up; then the power is off still.
    pub fn power_on(&self) -> Result<Recovered, String> {
        let mut state = self.lock().map_err(undefined)?;
        if state.drive.is_some() {
            return Err("the power is on".into());
        }
        let medium = state
            .power
            .medium
            .as_ref()
            .ok_or("the device was shut down")?;
        let began = Instant::now();
        let drive = medium.mount().map_err(|error| error.to_string())?;
        Ok(state.put_up(drive, began))
    }

    /// Copies the image to a new file, with all that was acknowledged.
    ///
    /// # Errors
    /// If the file exists, or cannot be written; then there is none.
    pub fn snapshot(&self, file: &Path) -> Result<u64, String> {
        let mut state = self.lock().map_err(undefined)?;
        let state = &mut *state;
        if state.drive.is_some() {
            let flushed = state.on(self.now_ns(), &mut 0, |drive| drive.flush());
            flushed.map_err(|_| "the device cannot be flushed")?;
        }
        let medium = state.power.medium.as_ref().ok_or(GONE)?;
        medium.copy_to(file).map_err(|error| error.to_string())
    }

    /// Puts a snapshot in the image's place, and the power on. What the image held is gone.
    ///
    /// # Errors
    /// If the file is no image of such a device; then nothing has changed.
    pub fn restore(&self, file: &Path) -> Result<Recovered, String> {
        let mut state = self.lock().map_err(undefined)?;
        let began = Instant::now();
        let medium = state.power.medium.as_ref().ok_or(GONE)?;
        let export = self.export();
        let is_alike = |drive: &dyn Drive| {
            let bytes = drive.sectors() * drive.sector_bytes() as u64;
            let found = (bytes, drive.sector_bytes(), drive.page_bytes());
            let ours = (
                export.bytes,
                export.sector_bytes as usize,
                export.page_bytes as usize,
            );
            if found == ours {
                return Ok(());
            }
            let text = format!(
                "the snapshot has {bytes} bytes in pages of {}, the device {} in pages of {}",
                found.2, ours.0, ours.2
            );
            Err(floatgate_core::Refusal::new("file", text).into())
        };
        let image = state.power.setup.image.as_deref();
        let drive = medium.replaced_by(file, image, is_alike);
        let drive = drive.map_err(|error| error.to_string())?;
        if let Some(old) = state.drive.take() {
            state.power.before = state.power.before.with(&old.figures());
        }
        state.power.medium = drive.medium().ok().flatten();
        state.power.unreadable.clear();
        state.power.misdirected = None;
        Ok(state.put_up(drive, began))
    }

    /// The n-th write from now goes to another place: that one, or one drawn. The client is told that all is well.
    ///
    /// # Errors
    /// If there is no such place.
    pub fn misdirect(&self, nth: u64, to: Option<u64>, seed: u64) -> Result<(), String> {
        let export = self.export();
        if nth == 0 {
            return Err("write: the first is 1".into());
        }
        if let Some(to) = to {
            check_range(export, to, u64::from(export.sector_bytes))?;
        }
        let mut state = self.lock().map_err(undefined)?;
        let left = nth;
        state.power.misdirected = Some(Misdirected { left, to, seed });
        Ok(())
    }

    /// A range cannot be read until it is written.
    ///
    /// # Errors
    /// If it is not a range of whole sectors of the device, or too many are.
    pub fn make_unreadable(&self, offset: u64, bytes: u64) -> Result<(), String> {
        check_range(self.export(), offset, bytes)?;
        let mut state = self.lock().map_err(undefined)?;
        let ranges = &mut state.power.unreadable;
        if ranges.len() >= UNREADABLE_MAX {
            return Err(format!("{UNREADABLE_MAX} ranges are unreadable already"));
        }
        ranges.push((offset, offset + bytes));
        Ok(())
    }

    /// What the device has done so far.
    ///
    /// # Errors
    /// If a request failed in a way that left the device undefined.
    pub fn stat(&self) -> Result<Stat, String> {
        let state = self.lock().map_err(undefined)?;
        let figures = state.drive.as_ref().map(|drive| drive.figures());
        let power = &state.power;
        let totals = figures
            .as_ref()
            .map_or(power.before, |figures| power.before.with(figures));
        let mut told = Stat {
            scheme: self.scheme().into(),
            device_bytes: self.export().bytes,
            page_bytes: self.export().page_bytes.into(),
            uptime_ns: self.now_ns(),
            is_on: state.drive.is_some(),
            power_cuts: power.cuts,
            read_only: state.drive.as_ref().and_then(|drive| drive.read_only()),
            requests: Default::default(),
            flushes_done: power.flushes_done,
            scheme_operations: totals.scheme,
            chip_operations: totals.chip,
            write_amplification: None,
            wear: figures.as_ref().map(|figures| Wear {
                spares_left: figures.spares_left,
                bad_blocks: figures.bad_blocks,
                good_blocks: figures.good_blocks,
                erases_min: figures.erases_min,
                erases_mean: figures.erases as f64 / figures.good_blocks.max(1) as f64,
                erases_max: figures.erases_max,
            }),
            cache: figures.and_then(|figures| figures.cache),
            lag: None,
        };
        let (has_pace, written_bytes) = (power.has_pace, power.written_bytes);
        drop(state);
        if written_bytes > 0 {
            let programmed = told.chip_operations.programs * told.page_bytes;
            told.write_amplification = Some(programmed as f64 / written_bytes as f64);
        }
        Ok(self.with_requests(told, has_pace))
    }

    fn with_requests(&self, mut told: Stat, has_pace: bool) -> Stat {
        let ended = self.ended.lock().unwrap_or_else(|ended| ended.into_inner());
        told.requests = ended.requests();
        told.lag = has_pace.then(|| ended.lag());
        told
    }
}

impl State {
    fn put_up(&mut self, drive: Box<dyn Drive>, began: Instant) -> Recovered {
        let figures = drive.figures();
        self.drive = Some(self.power.dressed(drive));
        Recovered {
            took_ms: began.elapsed().as_secs_f64() * 1e3,
            found: figures.found,
            page_reads: figures.chip.reads,
            oob_reads: figures.chip.oob_reads,
            page_programs: figures.chip.programs,
        }
    }
}

const OFF: &str = "the power is off";
const GONE: &str = "this device does not lie in an image";

fn undefined(_: Failure) -> String {
    "a request failed in a way that left the device undefined".into()
}

fn check_range(export: Export, offset: u64, bytes: u64) -> Result<(), String> {
    let sector = u64::from(export.sector_bytes);
    if bytes == 0 || !offset.is_multiple_of(sector) || !bytes.is_multiple_of(sector) {
        return Err(format!(
            "offset and bytes are multiples of {sector}, and bytes is not 0"
        ));
    }
    match offset.checked_add(bytes) {
        Some(end) if end <= export.bytes => Ok(()),
        _ => Err(format!(
            "beyond the end: the device has {} bytes",
            export.bytes
        )),
    }
}
