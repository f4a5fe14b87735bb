//! One chosen sequence of requests and cuts, for a fuzzer that chooses them.

use super::{Cuts, INITIAL, Request, Tally, Torture, catch, is_without_room, prepare, random_case};
use crate::cut::{CutFlash, Tear};
use crate::ram::RamFlash;
use crate::tested::Tested;
use floatgate_core::Catalog;
use floatgate_core::ftl::{Ftl, MountError};
use floatgate_core::rng::SplitMix64;

/// Bytes of the case in front, and of each step after it.
const CASE_BYTES: usize = 5;
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
    fn of(bytes: &[u8]) -> Self {
        Self {
            op: bytes[0],
            first: bytes[1],
            pages: bytes[2],
            cut: bytes[3],
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
pub struct Script {
    seed: u64,
    steps: Vec<Step>,
}

/// Plays what the bytes say: a scheme of the catalog, a small device, then requests with power cuts in them and in the
/// recoveries. Any bytes are an input; what is missing is not played.
///
/// # Errors
/// What was lost.
pub fn play<L: AsRef<Tested>>(bytes: &[u8], catalog: &Catalog<L>) -> Result<Tally, String> {
    let Some((head, steps)) = bytes.split_at_checked(CASE_BYTES) else {
        return Ok(Tally::default());
    };
    let scheme = &catalog[head[0] as usize % catalog.len()];
    let seed = u32::from_le_bytes([head[1], head[2], head[3], head[4]]);
    let steps = steps.chunks_exact(STEP_BYTES).take(STEPS_MAX);
    scheme.life.as_ref().play(&Script {
        seed: seed.into(),
        steps: steps.map(Step::of).collect(),
    })
}

/// Plays a script on a scheme.
pub(crate) fn play_script<S: Ftl>(script: &Script) -> Result<Tally, String> {
    let case = random_case::<S>(&mut SplitMix64::new(script.seed), 0);
    let effort = super::Effort::default();
    let mut torture = prepare::<S>(&case, &effort, None)?;
    torture
        .play(&script.steps)
        .map_err(|error| format!("{}: {error}\n  case: {case}", S::KEY))?;
    Ok(torture.tally)
}

impl<S: Ftl> Torture<'_, S> {
    fn play(&mut self, steps: &[Step]) -> Result<(), String> {
        let ram = RamFlash::new(&self.space.geometry, super::PAGE_BYTES);
        let mut flash = CutFlash::new(ram);
        let made = S::format(&self.space, &self.options, self.case.start, &mut flash);
        let mut ftl = made.map_err(|refusal| format!("refused: {refusal}"))?;
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
            if sent.is_ok() {
                if request.op == 'R' {
                    self.compare_read(&request, &flash)?;
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
            self.settle(&request, &found)?;
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
    /// `None`: it refuses after more than one torn operation, as GFTL at its least size may.
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
                Ok(ftl) => return Ok(Some(ftl)),
                Err(MountError::Flash(_)) => tear = next.map_or(Tear::Clean, |(_, tear)| tear),
                Err(MountError::Refused(why)) if cuts.torn() > 1 && is_without_room(&why) => {
                    return Ok(None);
                }
                Err(error) => return Err(format!("no recovery: {error}")),
            }
        }
    }
}
