//! The device as a drive: its write cache, its pace, its power. The power goes when it was said to, or at once; then
//! every request fails until it is on again, and what comes up is what a mount makes of the flash: nothing of the
//! device before is used.

use std::path::PathBuf;

use floatgate_core::rng::SplitMix64;
use floatgate_device::drive::cache::CacheSetup;
use floatgate_device::drive::{Lost, Unflushed};
use floatgate_device::image::Found;
use floatgate_device::power::Times;
use floatgate_device::tear::CutKind;
use floatgate_device::{Cached, DeviceError, Drive, Medium};
use serde::Serialize;

use super::{Export, Failure, State};
use crate::cut::{CutAt, CutPlan};
use crate::stat::Totals;
use crate::tap::Change;

mod commands;

/// How the device is as a drive.
#[derive(Clone, Debug)]
pub struct Setup {
    /// Its caches, if it has any.
    pub cache: Option<CacheSetup>,
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
            cache: None,
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
            medium: drive.medium(),
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
        let mut drive = match &self.setup.cache {
            Some(setup) => Box::new(Cached::new(drive, setup)),
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

    /// Protected memory outlasts the power until all that it holds is on the flash: the device comes up once more for
    /// that, and nobody but the cache uses it.
    fn write_outlasting(&mut self, runs: Vec<(u64, Vec<u8>)>) -> Lost {
        let mut lost = Lost::default();
        let medium = self.medium.as_ref().filter(|_| !runs.is_empty());
        let mut drive = medium.and_then(|medium| medium.mount().ok());
        for (sector, data) in runs {
            let written = drive.as_mut().map(|drive| drive.write(sector, &data));
            match written {
                Some(Ok(())) => lost.kept_runs += 1,
                _ => lost.dropped_runs += 1,
            }
        }
        if let Some(mut drive) = drive {
            // A flush that fails is found by whoever mounts the device next.
            let _ = drive.flush();
            self.before = self.before.with(&drive.figures());
        }
        lost
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
        let outlasting = drive.outlasting();
        let mut lost = match is_off || outlasting.is_some() {
            true => None,
            false => Some(drive.lose(plan.loss(), rng)),
        };
        self.taps.iter_mut().for_each(|tap| tap.cut());
        self.power.plan = None;
        self.power.cuts += 1;
        self.power.before = self.power.before.with(&drive.figures());
        // The device that comes up for what outlasts the power is another one.
        drop(drive);
        if let Some(runs) = outlasting {
            lost = Some(self.power.write_outlasting(runs));
        }
        let Lost {
            kept_runs,
            dropped_runs,
            torn_runs,
        } = lost.unwrap_or_default();
        let cache = match (self.power.setup.cache, lost) {
            (None, _) => String::new(),
            (Some(_), None) => "; what was in the write cache is lost".into(),
            (Some(_), Some(_)) => format!(
                "; unflushed runs of sectors: {kept_runs} kept, {dropped_runs} dropped, {torn_runs} torn"
            ),
        };
        (self.power.setup.tell)(&format!("power cut{cache}; again: --cut '{plan}'"));
    }
}
