//! Power cuts, exhaustively: a run on a small device is cut at every operation that changes its flash, in every
//! way an operation can end; then the recovery is cut at every operation of its own; then the device goes on. Now
//! and then it is shut down cleanly and started again, with the same cuts.
//!
//! The contract that is checked: every acknowledged write reads back byte for byte; a page of the request
//! that was cut is old or new; a trimmed page holds something it once held, or zeroes; the tables agree
//! with the flash and keep their budgets; the device goes on working. A request is acknowledged when the
//! scheme's `write` has returned.
//!
//! A case that fails prints one line, and [`replay`] takes that line.

use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::cut::{Change, CutFlash, Tear};
use crate::ram::RamFlash;
use crate::suite::Case;
use crate::tested::Tested;
use floatgate_core::Catalog;
use floatgate_core::address::{LogicalPage, Lpn, Pbn};
use floatgate_core::flash::start_content;
use floatgate_core::ftl::{Ftl, MountError, RecoveryMode, Run, Start, Tick};
use floatgate_core::geometry::{ProgramOrder, Space};
use floatgate_core::options::{Options, Scope};
use floatgate_core::refusal::{Refusal, RefusalKind};
use floatgate_core::rng::SplitMix64;

mod play;
pub mod rot;

pub(crate) use play::play_script;
pub use play::{Script, play};

/// Bytes of a page: its number, its version, and a check of both.
const PAGE_BYTES: usize = 16;
/// The version of a page that reads as zeroes.
const ZEROES: u32 = 0;
/// The version of a page of the start state `full`.
const INITIAL: u32 = 1;

/// Time from request to request: long enough for background work, short of a timeout of 30 s.
const STEP_NS: u64 = 7_000_000_000;

/// How thorough a run is.
#[derive(Clone, Copy, Debug)]
pub struct Effort {
    /// Different outcomes tried of an erase that is cut.
    pub torn_erases: u64,
    /// Of so many cut points one has its recovery cut at every operation too.
    pub recovery_one_in: u64,
    /// Of so many cut recoveries one has its own recovery cut at every operation.
    pub third_one_in: u64,
    /// Requests after a recovery.
    pub requests_after: u32,
    /// After so many requests the run itself is cut and goes on with the recovered device.
    pub cut_run_every: u32,
    /// After so many requests, and at its end, the run is shut down and started again.
    pub shutdown_every: u32,
}

impl Default for Effort {
    fn default() -> Self {
        Self {
            torn_erases: 3,
            recovery_one_in: 7,
            third_one_in: 40,
            requests_after: 12,
            cut_run_every: 9,
            shutdown_every: 16,
        }
    }
}

/// Where the power went, and again during the recoveries that followed.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Cuts(Vec<(u64, Tear)>);

impl std::fmt::Display for Cuts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (i, (at, tear)) in self.0.iter().enumerate() {
            let space = if i > 0 { " " } else { "" };
            write!(f, "{space}cut={at}:{tear}")?;
        }
        Ok(())
    }
}

impl Cuts {
    fn torn(&self) -> usize {
        let torn = |(_, tear): &&(u64, Tear)| *tear != Tear::Clean;
        self.0.iter().filter(torn).count()
    }

    /// What the recovery that follows relies on.
    fn means(&self) -> RecoveryMode {
        means_for(self.0.iter().map(|(at, _)| at).sum())
    }

    fn then(&self, at: u64, tear: Tear) -> Self {
        let mut cuts = self.0.clone();
        cuts.push((at, tear));
        Self(cuts)
    }
}

/// Every other recovery does without what the scheme keeps to be faster.
fn means_for(number: u64) -> RecoveryMode {
    if number.is_multiple_of(2) {
        RecoveryMode::Fastest
    } else {
        RecoveryMode::FullScan
    }
}

fn content(lpn: u32, version: u32) -> Vec<u8> {
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
fn version_of(lpn: u32, bytes: &[u8]) -> Result<u32, String> {
    let noted = u32::from_le_bytes([bytes[4], bytes[5], bytes[6], bytes[7]]);
    let is = |&version: &u32| content(lpn, version) == bytes;
    [ZEROES, INITIAL, noted]
        .into_iter()
        .find(is)
        .ok_or_else(|| format!("page {lpn} reads {bytes:02x?}, which nobody wrote there"))
}

/// What the host knows of a page.
#[derive(Clone, Debug)]
struct Page {
    now: u32,
    /// Trimmed, and not written since.
    is_trimmed: bool,
    /// Every version it had.
    history: Vec<u32>,
}

impl Page {
    fn may_hold(&self, version: u32) -> bool {
        version == self.now
            || self.is_trimmed && (version == ZEROES || self.history.contains(&version))
    }
}

/// A request, and what it makes of its pages.
#[derive(Clone, Copy, Debug)]
struct Request {
    op: char,
    first: u32,
    pages: u32,
    /// Version of its first page, if it writes.
    version: u32,
    /// Its number since the device came up, from 1: it arrives so many [`STEP_NS`] after that.
    number: u32,
}

impl Request {
    /// Mostly writes: single pages, hot pages, whole blocks, streams.
    fn random(rng: &mut SplitMix64, case: &Case, version: u32, number: u32) -> Self {
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

    fn pages(&self) -> std::ops::Range<u32> {
        self.first..self.first + self.pages
    }

    /// Sends it to the device; a read is compared with `known` by the caller.
    fn send<S: Ftl>(&self, ftl: &mut S, flash: &mut CutFlash) -> Result<(), crate::cut::Failure> {
        let run = Run::whole(S::Page::from_number(self.first), self.pages);
        let now_ns = u64::from(self.number) * STEP_NS;
        let idle_ns = (self.number > 0).then(|| now_ns - STEP_NS + 1..now_ns);
        ftl.tick(flash, &Tick { now_ns, idle_ns })?;
        let buffer = flash.ram.new_request(self.pages);
        match self.op {
            'W' => {
                for (i, bytes) in buffer.iter_mut().enumerate() {
                    *bytes = content(self.first + i as u32, self.version + i as u32);
                }
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
    fn version_for(&self, lpn: u32) -> Option<u32> {
        match self.op {
            'W' if self.pages().contains(&lpn) => Some(self.version + lpn - self.first),
            'T' if self.pages().contains(&lpn) => Some(ZEROES),
            _ => None,
        }
    }
}

/// One case with its device's shape and options.
struct Torture<'a, S: Ftl> {
    case: &'a Case,
    effort: &'a Effort,
    space: Space,
    options: S::Options,
    shadow: Vec<Page>,
    /// The one chain of cuts to try, if not all.
    only: Option<Cuts>,
    tally: Tally,
}

/// What a run of cuts comes to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Cut points tried.
    pub tried: u64,
    /// Of these, those after which the scheme refused to come up: the recovery itself was torn, and a device
    /// without a spare block had no erased page left. Nothing else refuses, unless the flash is [rotten](rot).
    pub refused: u64,
}

impl std::ops::AddAssign for Tally {
    fn add_assign(&mut self, other: Self) {
        self.tried += other.tried;
        self.refused += other.refused;
    }
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
        let made = S::format(&self.space, &self.options, self.case.start, &mut flash);
        let mut ftl = made.map_err(|error| format!("refused: {error}"))?;
        let (mut version, mut changes) = (INITIAL + 1, 0);
        for number in 1..=self.case.requests {
            let request = Request::random(&mut rng, self.case, version, number);
            version += request.pages;
            flash.states = Some(Vec::new());
            let sent = catch(|| request.send(&mut ftl, &mut flash));
            sent.map_err(|e| format!("request {number} {request:?}: {e}"))?
                .map_err(|cut| format!("{cut:?} without a cut"))?;
            if request.op == 'R' {
                self.compare_read(&request, &flash)?;
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
            tears(change, rng.next() >> 32, 1)[rng.below(2) as usize].apply(&mut ram, change);
            flash = CutFlash::new(ram);
            ftl = self.recover(&mut flash, means_for(number.into()))?;
            let found = self.read_back(&mut ftl, &mut flash)?;
            self.settle(&request, &found)?;
        }
        self.restart(ftl, &mut flash, self.case.requests, &mut changes)?;
        Ok(())
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
        self.settle(&nothing, &found)?;
        *flash = flash_again;
        Ok(ftl)
    }

    fn acknowledge(&mut self, request: &Request) {
        for lpn in request.pages() {
            let page = &mut self.shadow[lpn as usize];
            match request.version_for(lpn) {
                Some(ZEROES) => page.is_trimmed |= page.now != ZEROES,
                Some(_) => page.is_trimmed = false,
                None => continue,
            }
            page.now = request.version_for(lpn).unwrap_or(page.now);
            if page.now != ZEROES {
                page.history.push(page.now);
            }
        }
    }

    /// Checks what was found after a cut in a request, and takes it as what the host knows now.
    fn settle(&mut self, request: &Request, found: &[u32]) -> Result<(), String> {
        self.compare(request, found)?;
        for (lpn, (page, &version)) in self.shadow.iter_mut().zip(found).enumerate() {
            let gone = version == ZEROES && !page.history.is_empty();
            // A map or a snapshot need not name every copy that a scan would find: a trimmed page that comes
            // back is a trimmed one still, and another of its versions may come back next time, until it is written.
            let is_written = request.op == 'W' && request.version_for(lpn as u32) == Some(version);
            page.is_trimmed = gone || page.is_trimmed && !is_written;
            page.now = version;
            if version != ZEROES && !page.history.contains(&version) {
                page.history.push(version);
            }
        }
        Ok(())
    }

    fn compare_read(&self, request: &Request, flash: &CutFlash) -> Result<(), String> {
        for (lpn, bytes) in request.pages().zip(flash.ram.buffer()) {
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
        if let Some(only) = &self.only
            && !only.0.starts_with(&cuts.0)
        {
            return Ok(());
        }
        let mut ram = ram.clone();
        cuts.0[depth - 1].1.apply(&mut ram, change);
        self.tally.tried += 1;
        let outcome = self
            .check(ram.clone(), cuts, request)
            .map_err(|error| format!("{error}\n  replay: {} {} {cuts}", S::KEY, self.case))?;
        if outcome == Outcome::Refused {
            self.tally.refused += 1;
            return Ok(());
        }
        let one_in = match depth {
            1 => self.effort.recovery_one_in,
            2 => self.effort.third_one_in,
            _ => u64::MAX,
        };
        let wanted = match &self.only {
            Some(only) => only.0.len() > depth,
            None => one_in < u64::MAX && self.tally.tried.is_multiple_of(one_in.max(1)),
        };
        if !wanted {
            return Ok(());
        }
        let mut flash = CutFlash::new(ram);
        flash.states = Some(Vec::new());
        self.recover(&mut flash, cuts.means())?;
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

    /// Recovers a device that was cut in `request`, checks the contract, and goes on.
    fn check(&self, ram: RamFlash, cuts: &Cuts, request: &Request) -> Result<Outcome, String> {
        let mut flash = CutFlash::new(ram);
        let means = cuts.means();
        let recovered = catch(|| S::recover(&self.space, &self.options, means, &mut flash))?;
        let mut ftl = match recovered {
            Ok(ftl) => ftl,
            Err(MountError::Refused(why)) if cuts.torn() > 1 && is_without_room(&why) => {
                return Ok(Outcome::Refused);
            }
            Err(error) => return Err(format!("no recovery: {error}")),
        };
        let mut found = self.read_back(&mut ftl, &mut flash)?;
        self.compare(request, &found)?;
        let mut rng = SplitMix64::new(self.case.seed ^ cuts.0[0].0.wrapping_mul(0x9E37_79B9));
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
            None => Ok(Outcome::Kept),
        }
    }

    /// The contract, for a device that was cut in `request`.
    fn compare(&self, request: &Request, found: &[u32]) -> Result<(), String> {
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
    fn read_back(&self, ftl: &mut S, flash: &mut CutFlash) -> Result<Vec<u32>, String> {
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
            for (lpn, bytes) in read.pages().zip(flash.ram.buffer()) {
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

/// Whether a recovery refused because no erased page was left, which several torn writes can bring about.
fn is_without_room(why: &Refusal) -> bool {
    why.kind == RefusalKind::NoRoom
}

/// The ways in which a change can be cut.
fn tears(change: Change, seed: u64, torn_erases: u64) -> Vec<Tear> {
    let torn = match change {
        Change::Program(_) => 1,
        Change::Erase(_) => torn_erases.max(1),
    };
    let seeds = (0..torn).map(|i| Tear::Torn(seed.wrapping_mul(31).wrapping_add(i)));
    std::iter::once(Tear::Clean).chain(seeds).collect()
}

/// A panic is a failure like any other, with a line that replays it.
fn catch<T>(work: impl FnOnce() -> T) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(work)).map_err(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
        format!("panic: {}", text.unwrap_or("without a message"))
    })
}

fn prepare<'a, S: Ftl>(
    case: &'a Case,
    effort: &'a Effort,
    only: Option<Cuts>,
) -> Result<Torture<'a, S>, String> {
    let geometry = case
        .geometry()
        .map_err(|refusal| format!("refused: {refusal}"))?;
    let options = case.options_of::<S>();
    let first = if case.start == Start::Full {
        INITIAL
    } else {
        ZEROES
    };
    let page = Page {
        now: first,
        is_trimmed: false,
        history: (first == INITIAL).then_some(INITIAL).into_iter().collect(),
    };
    Ok(Torture {
        case,
        effort,
        space: Space::whole(&geometry),
        options: options.map_err(|refusal| format!("refused: {refusal}"))?,
        shadow: vec![page; case.logical_pages as usize],
        only,
        tally: Tally::default(),
    })
}

pub(crate) fn cut<S: Ftl>(
    case: &Case,
    effort: &Effort,
    only: Option<Cuts>,
) -> Result<Tally, String> {
    let mut torture = prepare::<S>(case, effort, only)?;
    torture
        .run()
        .map_err(|error| format!("{}: {error}\n  case: {case}", S::KEY))?;
    Ok(torture.tally)
}

/// Cuts one case everywhere. Returns the cut points tried.
///
/// # Errors
/// What was lost, and a line that [`replay`] takes.
pub fn cut_everywhere<S: Ftl>(case: &Case, effort: &Effort) -> Result<Tally, String> {
    cut::<S>(case, effort, None)
}

/// Replays one line: a scheme of the catalog, a case, and the cuts or the damage.
///
/// # Errors
/// What is still lost, or what cannot be read in the line.
pub fn replay<L: AsRef<Tested>>(line: &str, catalog: &Catalog<L>) -> Result<Tally, String> {
    let (key, rest) = line
        .trim()
        .split_once(' ')
        .ok_or("a scheme, a case, cuts")?;
    let scheme = catalog
        .find(key)
        .ok_or_else(|| format!("no scheme {key}: {}", catalog.keys().join(", ")))?;
    let tested = scheme.life.as_ref();
    if rest.contains(" rot=") {
        let (case, rot) = rot::parse(rest)?;
        return tested.rot(&case, rot);
    }
    let (cuts, words): (Vec<&str>, Vec<&str>) = rest
        .split_whitespace()
        .partition(|word| word.starts_with("cut="));
    let cuts = cuts.into_iter().map(|word| {
        let (at, tear) = word.strip_prefix("cut=")?.split_once(':')?;
        Some((at.parse().ok()?, Tear::parse(tear)?))
    });
    let cuts: Option<Vec<_>> = cuts.collect();
    let cuts = Cuts(cuts.ok_or("a cut is cut=NUMBER:clean or cut=NUMBER:tornSEED")?);
    tested.cut(
        &Case::parse(&words.join(" "))?,
        &Effort::default(),
        Some(cuts),
    )
}

/// A random small case of a scheme: its shape, its options, and as few blocks as it accepts, or a few more.
pub fn random_case<S: Ftl>(rng: &mut SplitMix64, requests: u32) -> Case {
    loop {
        let pages = [2, 3, 4, 4, 4, 5, 6, 1][rng.below(8) as usize];
        let dies = [1, 1, 1, 2][rng.below(4) as usize];
        let logical = 2 + rng.below(4) as u32;
        let mut case = Case {
            order: [ProgramOrder::Ascending, ProgramOrder::Any][rng.below(2) as usize],
            start: [Start::Empty, Start::Full][rng.below(2) as usize],
            requests,
            seed: rng.next() >> 40,
            ..Case::small(dies, 1, pages, logical)
        };
        for option in S::Options::schema() {
            let words = option.words(dies);
            let is_device_wide = option.scope == Scope::Device;
            if words.is_empty() || !is_device_wide && rng.below(3) == 0 {
                continue;
            }
            let word = &words[rng.below(words.len() as u64) as usize];
            case = case.with(option.key, word);
        }
        // As few blocks as the scheme accepts: the tightest devices break first.
        let fits = |blocks: &u32| {
            let case = Case {
                blocks: *blocks,
                ..case.clone()
            };
            is_accepted::<S>(&case)
        };
        if let Some(least) = (logical + 1..logical + 24).find(fits) {
            case.blocks = least + [0, 0, 0, 1, 3][rng.below(5) as usize];
            if is_accepted::<S>(&case) {
                return case;
            }
        }
    }
}

fn is_accepted<S: Ftl>(case: &Case) -> bool {
    case.geometry().is_ok_and(|geometry| {
        let mut flash = RamFlash::new(&geometry, PAGE_BYTES);
        let options = case.options_of::<S>();
        options.is_ok_and(|options| {
            S::format(&Space::whole(&geometry), &options, case.start, &mut flash).is_ok()
        })
    })
}

/// Tortures random cases of a scheme until it has tried that many cut points, or `is_over` says so.
///
/// # Errors
/// The first failure, with a line that [`replay`] takes.
pub fn random_cuts<S: Ftl>(
    seed: u64,
    cut_points: u64,
    effort: &Effort,
    is_over: &mut dyn FnMut() -> bool,
) -> Result<Tally, String> {
    let mut rng = SplitMix64::new(seed);
    let mut tally = Tally::default();
    while tally.tried < cut_points && !is_over() {
        let requests = 10 + rng.below(50) as u32;
        let case = random_case::<S>(&mut rng, requests);
        tally += cut_everywhere::<S>(&case, effort)?;
    }
    Ok(tally)
}
