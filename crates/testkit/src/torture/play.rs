//! One chosen sequence of requests and cuts, for a fuzzer that chooses them.

use super::cuts::{Torture, prepare};
use super::model::{INITIAL, PAGE_BYTES, Request};
use super::{Cuts, Effort, Finding, Tally, Trial, catch, random_case};
use crate::cut::{CutFlash, Tear};
use crate::ram::RamFlash;
use floatgate_core::ftl::{Ftl, MountError};
use floatgate_core::rng::SplitMix64;

/// Bytes of the seed of the case, and of each step after it.
const SEED_BYTES: usize = 4;
const STEP_BYTES: usize = 4;
/// More steps tell nothing new, and make an input slow.
const STEPS_MAX: usize = 200;

/// A request, and where the power goes in it and in the recoveries after it.
struct Step {
    op: u8,
    first: u8,
    pages: u8,
    /// 0: the power stays. Otherwise the change before which it goes, and how.
    cut: u8,
}

impl Step {
    fn of(&[op, first, pages, cut]: &[u8; STEP_BYTES]) -> Self {
        Self {
            op,
            first,
            pages,
            cut,
        }
    }

    /// Changes until the cut, and how it ends.
    fn fuel(&self) -> Option<(u64, Tear)> {
        let at = u64::from(self.cut >> 2);
        match self.cut & 3 {
            0 => None,
            1 => Some((at, Tear::Clean)),
            tear => Some((at, Tear::Torn(at * 4 + u64::from(tear)))),
        }
    }
}

/// Requests and cuts as bytes have chosen them.
#[derive(Clone, Debug, PartialEq)]
pub struct Script {
    seed: [u8; SEED_BYTES],
    steps: Vec<[u8; STEP_BYTES]>,
}

impl Script {
    /// What the bytes say: the seed of a small device, then steps. None if they do not say as much as a seed; the rest of
    /// a step is not played.
    pub fn of(bytes: &[u8]) -> Option<Self> {
        let (&seed, steps) = bytes.split_first_chunk()?;
        let steps = steps.as_chunks().0.iter().take(STEPS_MAX).copied();
        Some(Self {
            seed,
            steps: steps.collect(),
        })
    }

    /// The bytes that say so.
    pub(super) fn bytes(&self) -> impl Iterator<Item = u8> + '_ {
        let steps = self.steps.iter().flatten();
        self.seed.iter().chain(steps).copied()
    }
}

/// Plays a script on a scheme.
pub(crate) fn play_script<S: Ftl>(script: &Script) -> Result<Tally, Finding> {
    let seed = u32::from_le_bytes(script.seed);
    let case = random_case::<S>(&mut SplitMix64::new(seed.into()), 0);
    let effort = Effort::default();
    let steps: Vec<Step> = script.steps.iter().map(Step::of).collect();
    let played = prepare::<S>(&case, &effort, None).and_then(|mut torture| {
        torture.play(&steps)?;
        Ok(torture.tally)
    });
    played.map_err(|what| {
        let what = format!("{what}\n  case: {case}");
        Finding::new(S::KEY, Trial::Script(script.clone()), what)
    })
}

impl<S: Ftl> Torture<'_, S> {
    fn play(&mut self, steps: &[Step]) -> Result<(), String> {
        let ram = RamFlash::new(&self.space.geometry, PAGE_BYTES);
        let mut flash = CutFlash::new(ram);
        let mut ftl = self.format(&mut flash)?;
        let mut version = INITIAL + 1;
        let mut left = steps.iter();
        let mut number = 0;
        while let Some(step) = left.next() {
            number += 1;
            let request = self.request(step, version, number);
            version += request.pages;
            flash.fuel = step.fuel().map(|(at, _)| at);
            let sent = catch(|| request.send(&mut ftl, &mut flash))
                .map_err(|e| format!("request {number} {request:?}: {e}"))?;
            flash.fuel = None;
            // A cut in the last write of an entry shows nowhere.
            if sent.is_ok() && flash.cut.is_none() {
                if request.op == 'R' {
                    self.compare_read(&request, &flash.ram)?;
                }
                self.acknowledge(&request);
                continue;
            }
            self.tally.tried += 1;
            let tear = step.fuel().map_or(Tear::Clean, |(_, tear)| tear);
            let Some(recovered) = self.recover_among_cuts(&mut flash, tear, &mut left)? else {
                self.tally.refused += 1;
                return Ok(());
            };
            ftl = recovered;
            let found = self.read_back(&mut ftl, &mut flash)?;
            self.accept(&request, &found)?;
        }
        self.read_back(&mut ftl, &mut flash).map(drop)
    }

    fn request(&self, step: &Step, version: u32, number: u32) -> Request {
        let total = self.case.logical_pages;
        let first = u32::from(step.first) % total;
        Request {
            op: ['W', 'W', 'W', 'W', 'W', 'T', 'R', 'W'][step.op as usize % 8],
            first,
            pages: 1 + u32::from(step.pages) % (total - first),
            version,
            number,
        }
    }

    /// Brings the device up after the cut in `flash`. As long as the next steps are cuts, they cut the recovery.
    /// `None`: it refuses, and may.
    fn recover_among_cuts<'s>(
        &self,
        flash: &mut CutFlash,
        tear: Tear,
        left: &mut impl Iterator<Item = &'s Step>,
    ) -> Result<Option<S>, String> {
        let mut cuts = Cuts::default();
        let mut tear = tear;
        loop {
            let mut ram = flash.ram.clone();
            if let Some(change) = flash.cut {
                tear.apply(&mut ram, change);
            }
            cuts = cuts.then(cuts.0.len() as u64, tear);
            *flash = CutFlash::new(ram);
            let next = left.next().and_then(Step::fuel);
            flash.fuel = next.map(|(at, _)| at);
            let means = cuts.means();
            let recovered = catch(|| S::recover(&self.space, &self.options, means, flash))?;
            flash.fuel = None;
            match recovered {
                Ok(ftl) if flash.cut.is_none() => return Ok(Some(ftl)),
                Ok(_) | Err(MountError::Flash(_)) => {
                    tear = next.map_or(Tear::Clean, |(_, tear)| tear)
                }
                Err(MountError::Refused(why)) if self.allows(&why, cuts.torn()) => return Ok(None),
                Err(error) => return Err(format!("no recovery: {error}")),
            }
        }
    }
}
