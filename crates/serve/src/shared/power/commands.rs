//! What the control socket asks of the power and of the image.

use std::path::Path;
use std::time::Instant;

use floatgate_core::rng::SplitMix64;
use floatgate_device::Drive;

use super::{Misdirected, Recovered};
use crate::cut::{CutAt, CutPlan};
use crate::shared::{Export, Failure, Misplaced, Shared, State};
use crate::stat::{Stat, Wear};

/// Most ranges that may be unreadable at a time.
const UNREADABLE_MAX: usize = 1024;

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
        state.taps.iter_mut().for_each(|tap| tap.cut());
        state.power.medium = drive.medium();
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
    match export.check(offset, bytes) {
        Ok(()) if bytes > 0 => Ok(()),
        Ok(()) | Err(Misplaced::Unaligned) => Err(format!(
            "offset and bytes are multiples of {}, and bytes is not 0",
            export.sector_bytes
        )),
        Err(Misplaced::Beyond) => Err(format!(
            "beyond the end: the device has {} bytes",
            export.bytes
        )),
    }
}
