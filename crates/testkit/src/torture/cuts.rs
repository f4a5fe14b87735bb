//! The engine that cuts.

use super::model::{INITIAL, PAGE_BYTES, Page, Request, ZEROES, version_of};
use super::{Cuts, Effort, Finding, Tally, Trial, catch, means_for, random_case, tears};
use crate::case::Case;
use crate::cut::{Change, CutFlash, Tear};
use crate::ram::RamFlash;
use floatgate_core::Refusal;
use floatgate_core::address::Pbn;
use floatgate_core::flash::Flash;
use floatgate_core::ftl::{Ftl, MountError, RecoveryMode, Start};
use floatgate_core::geometry::Space;
use floatgate_core::refusal::RefusalKind;
use floatgate_core::rng::SplitMix64;

/// One case with its device's shape and options.
pub(super) struct Torture<'a, S: Ftl> {
    pub(super) case: &'a Case,
    pub(super) effort: &'a Effort,
    pub(super) space: Space,
    pub(super) options: S::Options,
    pub(super) shadow: Vec<Page>,
    /// The one chain of cuts to try, if not all.
    only: Option<&'a Cuts>,
    /// The chain of cuts after which something broke. None if it broke in the run itself.
    broken_by: Cuts,
    pub(super) tally: Tally,
}

/// How a check ended, if not with a failure.
#[derive(PartialEq)]
enum Outcome {
    Kept,
    Refused,
}

impl<S: Ftl> Torture<'_, S> {
    /// The whole run. Returns at the first failure.
    fn run(&mut self) -> Result<(), String> {
        let mut rng = SplitMix64::new(self.case.seed);
        let ram = RamFlash::new(&self.space.geometry, PAGE_BYTES);
        let mut flash = CutFlash::new(ram);
        let mut ftl = self.format(&mut flash)?;
        let (mut version, mut changes) = (INITIAL + 1, 0);
        for number in 1..=self.case.requests {
            let request = Request::random(&mut rng, self.case, version, number);
            version += request.pages;
            flash.states = Some(Vec::new());
            let sent = catch(|| request.send(&mut ftl, &mut flash));
            sent.map_err(|e| format!("request {number} {request:?}: {e}"))?
                .map_err(|cut| format!("{cut:?} without a cut"))?;
            if request.op == 'R' {
                self.compare_read(&request, &flash.ram)?;
            }
            let states = flash.states.take().unwrap_or_default();
            for (i, (ram, change)) in states.iter().enumerate() {
                self.cut_at(ram, *change, changes + i as u64, &request)?;
            }
            changes += states.len() as u64;
            let cut_here = number % self.effort.cut_run_every == 0 && !states.is_empty();
            if !cut_here {
                self.acknowledge(&request);
                if number % self.effort.shutdown_every == 0 {
                    ftl = self.restart(ftl, &mut flash, number, &mut changes)?;
                }
                continue;
            }
            // The run itself is cut, and goes on with what the recovery made of it.
            let (mut ram, change) = states[rng.below(states.len() as u64) as usize].clone();
            let ways = tears(change, rng.next() >> 32, 1);
            ways[rng.below(2).min(ways.len() as u64 - 1) as usize].apply(&mut ram, change);
            flash = CutFlash::new(ram);
            ftl = self.recover(&mut flash, means_for(number.into()))?;
            let found = self.read_back(&mut ftl, &mut flash)?;
            self.accept(&request, &found)?;
        }
        self.restart(ftl, &mut flash, self.case.requests, &mut changes)?;
        Ok(())
    }

    /// The device as it begins.
    pub(super) fn format(&self, flash: &mut CutFlash) -> Result<S, String> {
        catch(|| S::format(&self.space, &self.options, self.case.start, flash))?
            .map_err(|refusal| format!("refused: {refusal}"))
    }

    /// A clean shutdown, cut everywhere; then starts by both means from what it leaves, as if the power had gone right
    /// after it. The run goes on with another such start.
    fn restart(
        &mut self,
        mut ftl: S,
        flash: &mut CutFlash,
        number: u32,
        changes: &mut u64,
    ) -> Result<S, String> {
        let nothing = Request {
            op: 'S',
            first: 0,
            pages: 0,
            version: 0,
            number,
        };
        flash.states = Some(Vec::new());
        catch(|| ftl.shutdown(flash))
            .and_then(|done| done.map_err(|cut| format!("{cut:?} without a cut")))
            .map_err(|error| format!("shutdown after request {number}: {error}"))?;
        let states = flash.states.take().unwrap_or_default();
        for (ram, change) in &states {
            self.cut_at(ram, *change, *changes, &nothing)?;
            *changes += 1;
        }
        // Two numbers, one even, one odd: both means.
        for _ in 0..2 {
            let cuts = Cuts::default().then(*changes, Tear::Clean);
            self.cut(&flash.ram, Change::Erase(Pbn(0)), &cuts, &nothing)?;
            *changes += 1;
        }
        let mut flash_again = CutFlash::new(flash.ram.clone());
        let mut ftl = self.recover(
            &mut flash_again,
            means_for((number / self.effort.shutdown_every.max(1) + 1).into()),
        )?;
        let found = self.read_back(&mut ftl, &mut flash_again)?;
        self.accept(&nothing, &found)?;
        *flash = flash_again;
        Ok(ftl)
    }

    pub(super) fn acknowledge(&mut self, request: &Request) {
        for lpn in request.pages() {
            let page = &mut self.shadow[lpn as usize];
            match request.version_for(lpn) {
                Some(ZEROES) => page.is_trimmed |= !page.history.is_empty(),
                Some(_) => page.is_trimmed = false,
                None => continue,
            }
            page.now = request.version_for(lpn).unwrap_or(page.now);
            page.unsure.clear();
            if page.now != ZEROES {
                page.history.push(page.now);
            }
        }
    }

    /// The request was cut, and nobody has looked what has become of its pages.
    pub(super) fn doubt(&mut self, request: &Request) {
        for lpn in request.pages() {
            let page = &mut self.shadow[lpn as usize];
            match request.version_for(lpn) {
                Some(ZEROES) => page.is_trimmed |= !page.history.is_empty(),
                Some(version) => {
                    page.unsure.push(version);
                    page.history.push(version);
                }
                None => {}
            }
        }
    }

    /// Checks what was found after a cut in a request, and takes it as what the host knows now.
    pub(super) fn accept(&mut self, request: &Request, found: &[u32]) -> Result<(), String> {
        self.compare(request, found)?;
        for (lpn, (page, &version)) in self.shadow.iter_mut().zip(found).enumerate() {
            let gone = version == ZEROES && !page.history.is_empty();
            // A map or a snapshot need not name every copy that a scan would find: a trimmed page that comes
            // back is a trimmed one still, and another of its versions may come back next time, until it is written.
            let is_written = request.op == 'W' && request.version_for(lpn as u32) == Some(version);
            page.is_trimmed = gone || page.is_trimmed && !is_written;
            page.now = version;
            page.unsure.clear();
            if version != ZEROES && !page.history.contains(&version) {
                page.history.push(version);
            }
        }
        Ok(())
    }

    pub(super) fn compare_read(&self, request: &Request, ram: &RamFlash) -> Result<(), String> {
        for (lpn, bytes) in request.pages().zip(ram.buffer()) {
            let (version, now) = (version_of(lpn, bytes)?, self.shadow[lpn as usize].now);
            if version != now {
                return Err(format!("page {lpn} reads version {version}, not {now}"));
            }
        }
        Ok(())
    }

    /// Every way in which one change can be cut.
    fn cut_at(
        &mut self,
        ram: &RamFlash,
        change: Change,
        at: u64,
        request: &Request,
    ) -> Result<(), String> {
        for tear in tears(change, at, self.effort.torn_erases) {
            self.cut(ram, change, &Cuts::default().then(at, tear), request)?;
        }
        Ok(())
    }

    /// One cut: the recovery, and with some luck the cuts of the recovery.
    fn cut(
        &mut self,
        ram: &RamFlash,
        change: Change,
        cuts: &Cuts,
        request: &Request,
    ) -> Result<(), String> {
        let depth = cuts.0.len();
        if let Some(only) = self.only
            && !only.0.starts_with(&cuts.0)
        {
            return Ok(());
        }
        let mut ram = ram.clone();
        cuts.0[depth - 1].1.apply(&mut ram, change);
        self.tally.tried += 1;
        let outcome = self
            .check(ram.clone(), cuts, request)
            .inspect_err(|_| self.broken_by = cuts.clone())?;
        if outcome == Outcome::Refused {
            self.tally.refused += 1;
            return Ok(());
        }
        let one_in = match depth {
            1 => self.effort.recovery_one_in,
            2 => self.effort.third_one_in,
            _ => u64::MAX,
        };
        let wanted = match self.only {
            Some(only) => only.0.len() > depth,
            None => one_in < u64::MAX && self.tally.tried.is_multiple_of(one_in.max(1)),
        };
        if !wanted {
            return Ok(());
        }
        let mut flash = CutFlash::new(ram);
        flash.states = Some(Vec::new());
        self.recover(&mut flash, cuts.means())
            .inspect_err(|_| self.broken_by = cuts.clone())?;
        let states = flash.states.take().unwrap_or_default();
        for (i, (ram, change)) in states.iter().enumerate() {
            for tear in tears(*change, i as u64, 2) {
                self.cut(ram, *change, &cuts.then(i as u64, tear), request)?;
            }
        }
        Ok(())
    }

    fn recover(&self, flash: &mut CutFlash, means: RecoveryMode) -> Result<S, String> {
        catch(|| S::recover(&self.space, &self.options, means, flash))?
            .map_err(|error| format!("no recovery: {error}"))
    }

    /// Whether a scheme may refuse to come up: it has said so of a device of this shape, and more than one
    /// operation was torn.
    pub(super) fn allows(&self, why: &Refusal, torn: usize) -> bool {
        why.kind == RefusalKind::NoRoom
            && torn > 1
            && S::may_run_out_of_pages(&self.space, &self.options)
    }

    /// Recovers a device that was cut in `request`, checks the contract, and goes on.
    fn check(&self, ram: RamFlash, cuts: &Cuts, request: &Request) -> Result<Outcome, String> {
        let mut flash = CutFlash::new(ram);
        let means = cuts.means();
        let recovered = catch(|| S::recover(&self.space, &self.options, means, &mut flash))?;
        let mut ftl = match recovered {
            Ok(ftl) => ftl,
            Err(MountError::Refused(why)) if self.allows(&why, cuts.torn()) => {
                return Ok(Outcome::Refused);
            }
            Err(error) => return Err(format!("no recovery: {error}")),
        };
        let found = self.read_back(&mut ftl, &mut flash)?;
        self.compare(request, &found)?;
        self.go_on(ftl, flash, found, cuts.0[0].0)?;
        Ok(Outcome::Kept)
    }

    /// Some requests to a device whose pages hold what was `found`; then it is read again.
    pub(super) fn go_on(
        &self,
        mut ftl: S,
        mut flash: CutFlash,
        mut found: Vec<u32>,
        seed: u64,
    ) -> Result<(), String> {
        let mut rng = SplitMix64::new(self.case.seed ^ seed.wrapping_mul(0x9E37_79B9));
        let mut version = 1 << 30;
        for number in 1..=self.effort.requests_after {
            let next = Request::random(&mut rng, self.case, version, number);
            version += next.pages;
            catch(|| next.send(&mut ftl, &mut flash))
                .and_then(|sent| sent.map_err(|cut| format!("{cut:?} without a cut")))
                .map_err(|e| format!("request {number} after the recovery, {next:?}: {e}"))?;
            for lpn in next.pages() {
                let version = next.version_for(lpn);
                found[lpn as usize] = version.unwrap_or(found[lpn as usize]);
            }
        }
        let again = self.read_back(&mut ftl, &mut flash)?;
        match (0..found.len()).find(|&lpn| again[lpn] != found[lpn]) {
            Some(lpn) => Err(format!(
                "after the recovery and {} requests page {lpn} reads version {}, not {}",
                self.effort.requests_after, again[lpn], found[lpn]
            )),
            None => Ok(()),
        }
    }

    /// The contract, for a device that was cut in `request`.
    pub(super) fn compare(&self, request: &Request, found: &[u32]) -> Result<(), String> {
        for (lpn, (page, &version)) in self.shadow.iter().zip(found).enumerate() {
            let new = request.version_for(lpn as u32);
            let trimmed_now = new == Some(ZEROES) && page.history.contains(&version);
            if !page.may_hold(version) && new != Some(version) && !trimmed_now {
                return Err(format!(
                    "page {lpn} reads version {version} after a cut in {request:?}; the host knows {page:?}"
                ));
            }
        }
        Ok(())
    }

    /// Checks the tables and reads every page.
    pub(super) fn read_back<F>(&self, ftl: &mut S, flash: &mut F) -> Result<Vec<u32>, String>
    where
        F: Flash + AsMut<RamFlash>,
    {
        catch(|| ftl.audit(&*flash))??;
        let mut found = Vec::with_capacity(self.shadow.len());
        let step = 4;
        for first in (0..self.case.logical_pages).step_by(step) {
            let pages = (self.case.logical_pages - first).min(step as u32);
            let read = Request {
                op: 'R',
                first,
                pages,
                version: 0,
                number: 0,
            };
            catch(|| read.send(ftl, flash))?.map_err(|cut| format!("{cut:?} without a cut"))?;
            for (lpn, bytes) in read.pages().zip(flash.as_mut().buffer()) {
                found.push(version_of(lpn, bytes)?);
            }
        }
        // A recovery may leave it to the first read whether a page can be read at all.
        let live = catch(|| ftl.audit(&*flash))??;
        let with_content = found.iter().filter(|&&version| version != ZEROES).count() as u64;
        if with_content != live {
            return Err(format!(
                "{live} live pages, but {with_content} hold something"
            ));
        }
        Ok(found)
    }
}

pub(super) fn prepare<'a, S: Ftl>(
    case: &'a Case,
    effort: &'a Effort,
    only: Option<&'a Cuts>,
) -> Result<Torture<'a, S>, String> {
    let refused = |refusal| format!("refused: {refusal}");
    let geometry = case.geometry().map_err(refused)?;
    let options = case.options_of::<S>().map_err(refused)?;
    let first = if case.start == Start::Full {
        INITIAL
    } else {
        ZEROES
    };
    let page = Page {
        now: first,
        is_trimmed: false,
        unsure: Vec::new(),
        history: (first == INITIAL).then_some(INITIAL).into_iter().collect(),
    };
    Ok(Torture {
        case,
        effort,
        space: Space::whole(&geometry),
        options,
        shadow: vec![page; case.logical_pages as usize],
        only,
        broken_by: Cuts::default(),
        tally: Tally::default(),
    })
}

pub(crate) fn cut<S: Ftl>(
    case: &Case,
    effort: &Effort,
    only: Option<&Cuts>,
) -> Result<Tally, Finding> {
    let found = |what, cuts| Finding::new(S::KEY, Trial::Cuts(case.clone(), cuts), what);
    let prepared = prepare::<S>(case, effort, only);
    let mut torture = prepared.map_err(|what| found(what, Cuts::default()))?;
    match torture.run() {
        Ok(()) => Ok(torture.tally),
        Err(what) => Err(found(what, torture.broken_by)),
    }
}

/// Cuts one case everywhere. Returns the cut points tried.
///
/// # Errors
/// What was lost, and a line that [`replay`](crate::replay) takes.
pub fn cut_everywhere<S: Ftl>(case: &Case, effort: &Effort) -> Result<Tally, Finding> {
    cut::<S>(case, effort, None)
}

/// Tortures random cases of a scheme until it has tried that many cut points, or `is_over` says so.
///
/// # Errors
/// The first failure, with a line that [`replay`](crate::replay) takes.
pub fn random_cuts<S: Ftl>(
    seed: u64,
    cut_points: u64,
    effort: &Effort,
    is_over: &mut dyn FnMut() -> bool,
) -> Result<Tally, Finding> {
    let mut rng = SplitMix64::new(seed);
    let mut tally = Tally::default();
    while tally.tried < cut_points && !is_over() {
        let requests = 10 + rng.below(50) as u32;
        let case = random_case::<S>(&mut rng, requests);
        tally += cut_everywhere::<S>(&case, effort)?;
    }
    Ok(tally)
}
