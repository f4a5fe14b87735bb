//! Rotten flash: a random run, after it damage of a kind that no power cut leaves, and then the recovery.
//!
//! The contract that is checked: `recover` comes up with tables that agree with the flash and keep their budgets, and
//! the device goes on working; or it refuses. It does not panic. Where pages have become unreadable and nothing
//! else has happened, a page that is read is something that it once held, or zeroes, or an error; and what is written
//! after the recovery stays. Where anything may have been written anywhere ([`Kind::Forged`]) nobody can tell what a page
//! should hold.

use super::cuts::{Torture, prepare};
use super::model::{INITIAL, PAGE_BYTES, Request, ZEROES, version_of};
use super::{Effort, Finding, Tally, Trial, catch, means_for, random_case, tears};
use crate::case::Case;
use crate::cut::{CutFlash, Failure};
use crate::ram::RamFlash;
use floatgate_core::address::Ppn;
use floatgate_core::flash::{OobRead, Role};
use floatgate_core::ftl::{Ftl, MountError, RecoveryMode};
use floatgate_core::rng::SplitMix64;

mod damage;

use damage::readable_pages;
pub use damage::{Kind, Rot};

/// Requests after a recovery.
const REQUESTS_AFTER: u32 = 20;
/// Programs and erases of a recovery and the requests after it that show that it has no end.
const CHANGES_MAX: u64 = 200_000;

/// How one recovery ended.
enum Outcome {
    Up,
    Refused,
}

/// Runs a case, damages its flash, and brings it up by both means.
///
/// # Errors
/// What broke, with a line that [`replay`](crate::replay) takes.
pub fn rot_once<S: Ftl>(case: &Case, rot: Rot) -> Result<Tally, Finding> {
    let effort = Effort::default();
    prepare::<S>(case, &effort, None)
        .and_then(|mut torture| torture.rot(rot))
        .map_err(|what| Finding::new(S::KEY, Trial::Rot(case.clone(), rot), what))
}

/// Random cases of a scheme, so many, each damaged in a random way of that kind.
///
/// # Errors
/// The first failure, with a line that [`replay`](crate::replay) takes.
pub fn random_rot<S: Ftl>(seed: u64, kind: Kind, cases: u64) -> Result<Tally, Finding> {
    let mut rng = SplitMix64::new(seed);
    let mut tally = Tally::default();
    for _ in 0..cases {
        let requests = rng.below(50) as u32;
        let case = random_case::<S>(&mut rng, requests);
        // Several ways of damage to one case: making cases is what takes time.
        for _ in 0..8 {
            let seed = rng.next() >> 40;
            tally += rot_once::<S>(&case, Rot { kind, seed })?;
        }
    }
    Ok(tally)
}

impl<S: Ftl> Torture<'_, S> {
    fn rot(&mut self, rot: Rot) -> Result<Tally, String> {
        let mut ram = self.run_before(rot.seed)?;
        let before = ram.clone();
        rot.apply(&mut ram);
        let spared = self.spared(&before, &ram, rot);
        for means in [RecoveryMode::Fastest, RecoveryMode::FullScan] {
            self.tally.tried += 1;
            let outcome = self
                .mount(ram.clone(), rot, means, &spared)
                .map_err(|error| format!("{error}\n  by {means:?}"))?;
            self.tally.refused += u64::from(matches!(outcome, Outcome::Refused));
        }
        Ok(self.tally)
    }

    /// The requests of the case; at their end the power goes between two, in one, or after a shutdown.
    fn run_before(&mut self, seed: u64) -> Result<RamFlash, String> {
        let mut rng = SplitMix64::new(self.case.seed);
        let mut end = SplitMix64::new(seed ^ 0x0E4D);
        let ram = RamFlash::new(&self.space.geometry, PAGE_BYTES);
        let mut flash = CutFlash::new(ram);
        let mut ftl = self.format(&mut flash)?;
        let mut version = INITIAL + 1;
        let is_cut = end.below(3) == 0;
        for number in 1..=self.case.requests {
            let request = Request::random(&mut rng, self.case, version, number);
            version += request.pages;
            let is_last = number == self.case.requests;
            flash.fuel = (is_last && is_cut).then(|| end.below(12));
            // That it was cut shows in the flash: the write of an entry tells nobody.
            let _ = catch(|| request.send(&mut ftl, &mut flash))?;
            self.acknowledge(&request);
            if let Some(change) = flash.cut {
                // Of what was going on nobody can tell what has come.
                self.shadow
                    .iter_mut()
                    .for_each(|page| page.is_trimmed = true);
                let ways = tears(change, end.next() >> 32, 1);
                ways[end.below(2).min(ways.len() as u64 - 1) as usize]
                    .apply(&mut flash.ram, change);
                return Ok(flash.ram);
            }
        }
        flash.fuel = None;
        if end.below(3) == 0 {
            let done = catch(|| ftl.shutdown(&mut flash))?;
            done.map_err(|failure| format!("{failure:?} at the shutdown"))?;
        }
        Ok(flash.ram)
    }

    /// The pages whose newest copy can still be read, with what it holds.
    fn spared(&self, before: &RamFlash, after: &RamFlash, rot: Rot) -> Vec<(u32, u32)> {
        if rot.kind == Kind::Forged || self.is_youngest_gone(before, after) {
            return Vec::new();
        }
        let mut newest: Vec<(u64, Ppn)> = vec![(0, Ppn::NONE); self.shadow.len()];
        for at in readable_pages(before) {
            if let Some(OobRead { oob, sequence }) = before.peek_oob(at)
                && !matches!(oob.role, Role::Map | Role::Summary)
            {
                // A lost copy with its OOB intact stands for its page, whatever else there is.
                let is_lost = after.peek_oob(at).is_some() && !after.is_readable(at);
                let sequence = if is_lost { u64::MAX } else { sequence };
                let known = &mut newest[oob.lpn.index()];
                *known = (*known).max((sequence, at));
            }
        }
        let pages = (0..).zip(&self.shadow).zip(newest);
        pages
            .filter(|((_, page), (_, at))| {
                !page.is_trimmed && at.is_some() && after.is_readable(*at)
            })
            .map(|((lpn, page), _)| (lpn, page.now))
            .collect()
    }

    /// Whether the last page programmed on a die has rotted: then nothing tells that its power had not been cut before it.
    fn is_youngest_gone(&self, before: &RamFlash, after: &RamFlash) -> bool {
        let geometry = &self.space.geometry;
        let mut youngest = vec![(0, Ppn::NONE); geometry.dies as usize];
        for at in readable_pages(before) {
            let known = &mut youngest[geometry.die_of(geometry.block_of(at)) as usize];
            let sequence = before.peek_oob(at).map_or(0, |read| read.sequence);
            *known = (*known).max((sequence, at));
        }
        let mut used = youngest.iter().filter(|(_, at)| at.is_some());
        used.any(|(_, at)| !after.is_readable(*at))
    }

    fn mount(
        &self,
        ram: RamFlash,
        rot: Rot,
        means: RecoveryMode,
        spared: &[(u32, u32)],
    ) -> Result<Outcome, String> {
        let mut flash = CutFlash::new(ram);
        flash.is_rotten = true;
        flash.fuel = Some(CHANGES_MAX);
        let recovered = catch(|| S::recover(&self.space, &self.options, means, &mut flash))?;
        let mut ftl = match recovered {
            Ok(ftl) => ftl,
            Err(MountError::Refused(_)) => return Ok(Outcome::Refused),
            Err(error) => return Err(format!("no recovery: {error}")),
        };
        let mut found = self.read_rotten(&mut ftl, &mut flash, rot)?;
        for &(lpn, version) in spared {
            if found[lpn as usize] != Some(version) {
                return Err(format!(
                    "page {lpn} reads {:?}, but its newest copy of version {version} can be read",
                    found[lpn as usize]
                ));
            }
        }
        self.write_on(&mut ftl, &mut flash, rot, &mut found)?;
        let again = self.read_rotten(&mut ftl, &mut flash, rot)?;
        self.compare_rotten(&found, &again, rot)?;
        self.bring_up_again(flash.ram, rot, means)
    }

    /// Requests, and what the pages hold after them; pages that cannot be read stay so until they are written.
    fn write_on(
        &self,
        ftl: &mut S,
        flash: &mut CutFlash,
        rot: Rot,
        found: &mut [Option<u32>],
    ) -> Result<(), String> {
        let mut rng = SplitMix64::new(self.case.seed ^ rot.seed);
        let mut version = 1 << 30;
        for number in 1..=REQUESTS_AFTER {
            let next = Request::random(&mut rng, self.case, version, number);
            version += next.pages;
            let sent = catch(|| next.send(ftl, flash))
                .map_err(|e| format!("request {number} after the recovery, {next:?}: {e}"))?;
            match sent {
                Ok(()) => {}
                Err(Failure::Unreadable(_)) if next.op == 'R' => {}
                Err(failure) => return Err(format!("{failure:?} in {next:?}")),
            }
            for lpn in next.pages() {
                let version = next.version_for(lpn);
                found[lpn as usize] = version.or(found[lpn as usize]);
            }
        }
        Ok(())
    }

    /// Checks the tables and reads every page: its version, or nothing if it cannot be read.
    fn read_rotten(
        &self,
        ftl: &mut S,
        flash: &mut CutFlash,
        rot: Rot,
    ) -> Result<Vec<Option<u32>>, String> {
        catch(|| ftl.audit(&*flash))??;
        let mut found = Vec::with_capacity(self.shadow.len());
        for first in 0..self.case.logical_pages {
            let read = Request {
                op: 'R',
                first,
                pages: 1,
                version: 0,
                number: 0,
            };
            match catch(|| read.send(ftl, flash)).map_err(|e| format!("read of {first}: {e}"))? {
                Ok(()) => {}
                Err(Failure::Unreadable(_)) => {
                    found.push(None);
                    continue;
                }
                Err(failure) => return Err(format!("{failure:?} in {read:?}")),
            }
            let version = version_of(first, &flash.ram.buffer()[0]);
            let is_new = |version| version >= 1 << 30;
            match (rot.kind, version) {
                (Kind::Forged, version) => found.push(version.ok()),
                (Kind::Unreadable, Ok(version)) => {
                    let history = &self.shadow[first as usize].history;
                    if version != ZEROES && !is_new(version) && !history.contains(&version) {
                        return Err(format!("page {first} never held version {version}"));
                    }
                    found.push(Some(version));
                }
                (Kind::Unreadable, Err(error)) => return Err(error),
            }
        }
        catch(|| ftl.audit(&*flash))??;
        Ok(found)
    }

    fn compare_rotten(
        &self,
        expected: &[Option<u32>],
        found: &[Option<u32>],
        rot: Rot,
    ) -> Result<(), String> {
        if rot.kind == Kind::Forged {
            return Ok(());
        }
        for (lpn, (expected, found)) in expected.iter().zip(found).enumerate() {
            if expected != found {
                return Err(format!(
                    "page {lpn} reads {found:?} after the recovery and some requests, not {expected:?}"
                ));
            }
        }
        Ok(())
    }

    /// What has come up comes up again.
    fn bring_up_again(
        &self,
        ram: RamFlash,
        rot: Rot,
        means: RecoveryMode,
    ) -> Result<Outcome, String> {
        let mut flash = CutFlash::new(ram);
        flash.is_rotten = true;
        flash.fuel = Some(CHANGES_MAX);
        let other = means_for(u64::from(means == RecoveryMode::Fastest));
        let again = catch(|| S::recover(&self.space, &self.options, other, &mut flash))?;
        match again {
            Ok(mut ftl) => self.read_rotten(&mut ftl, &mut flash, rot).map(drop)?,
            Err(MountError::Refused(refusal)) if rot.kind == Kind::Unreadable => {
                return Err(format!("refused after it had come up: {refusal}"));
            }
            Err(MountError::Refused(_)) => {}
            Err(error) => return Err(format!("no second recovery: {error}")),
        }
        Ok(Outcome::Up)
    }
}
