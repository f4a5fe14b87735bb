//! Crashes of the machine, failed system calls, the end of the process: every scheme on an image whose file has a page
//! cache. What was flushed is there, whatever part of what came later has reached the disk; the pages are as they were at one
//! moment; and a device always comes up.
//!
//! A failure prints a line; `FLOATGATE_LIFE="LINE" cargo test -p floatgate-device --test machine` runs it again.
//! `FLOATGATE_LIVES=1000` takes more lives of each scheme.

mod common;

use common::Host;
use common::mixing::{FailAt, Failure, MixDisk, new_image, open_image};
use floatgate_catalog as _;
use floatgate_core::Lpn;
use floatgate_core::ftl::Ftl;
use floatgate_core::rng::SplitMix64;
use floatgate_core::wear::WearLeveling;
use floatgate_device::image::format::{HEADER_BYTES, Header};
use floatgate_device::spares::pairs::PairGuard;
use floatgate_device::{ImageNand, Spares, SparesOptions};
use floatgate_testkit::case::Case;
use floatgate_testkit::catch;
use floatgate_testkit::torture::random_case;

/// How a session of the device ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum End {
    /// The machine crashes, at any system call.
    Crash,
    /// The process ends, at any system call.
    Kill,
    /// A system call fails; then the machine crashes.
    Fail,
    /// The machine crashes, and one of the two headers of the image cannot be read any more.
    CrashAndHeader,
}

/// A device and what it lives through, all of it drawn from a seed.
#[derive(Clone)]
struct Life {
    case: Case,
    end: End,
    sessions: u32,
}

/// What a life came to.
#[derive(Default)]
struct Tally {
    lives: u64,
    sessions: u64,
    losses: Vec<String>,
}

/// What the host knows of a page.
#[derive(Clone, Debug)]
struct Known {
    /// What it may hold: its content at the last flush, and all since.
    held: Vec<Vec<u8>>,
    /// All that it ever held.
    history: Vec<Vec<u8>>,
    /// Trimmed, and not flushed since: it may hold anything that it ever held.
    is_loose: bool,
    /// Written or trimmed since the device came up.
    is_fresh: bool,
}

impl Known {
    fn may_hold(&self, bytes: &[u8]) -> bool {
        let is_one_of = |held: &[Vec<u8>]| held.iter().any(|held| held == bytes);
        is_one_of(&self.held) || self.is_loose && is_one_of(&self.history)
    }

    fn note(&mut self, bytes: &[u8], is_trim: bool) {
        self.held.push(bytes.to_vec());
        self.history.push(bytes.to_vec());
        self.is_loose |= is_trim;
        self.is_fresh = true;
    }

    fn flushed(&mut self) {
        if self.is_fresh {
            self.held.drain(..self.held.len() - 1);
            self.is_loose = false;
        }
    }

    fn found(&mut self, bytes: Vec<u8>) {
        self.held = vec![bytes];
        self.is_fresh = false;
    }
}

/// The requests since the last flush, in order.
#[derive(Default)]
struct Since {
    /// The pages then.
    base: Vec<Vec<u8>>,
    /// What each request made of its pages.
    requests: Vec<Vec<(usize, Vec<u8>)>>,
}

impl Since {
    fn begin(&mut self, pages: &[Vec<u8>]) {
        self.base = pages.to_vec();
        self.requests.clear();
    }

    /// Whether the pages are as they were at one moment: nothing is there without all that came before it. Of the request
    /// in work at that moment any pages may be there; of loose pages nothing is known.
    fn was_once(&self, found: &[Vec<u8>], known: &[Known]) -> bool {
        let mut pages = self.base.clone();
        for at in 0..=self.requests.len() {
            let next = self.requests.get(at).map_or(&[][..], Vec::as_slice);
            let is_now = |page: usize| {
                let in_work =
                    |(other, bytes): &(usize, Vec<u8>)| *other == page && *bytes == found[page];
                known[page].is_loose || found[page] == pages[page] || next.iter().any(in_work)
            };
            if (0..found.len()).all(is_now) {
                return true;
            }
            for (page, bytes) in next {
                pages[*page] = bytes.clone();
            }
        }
        false
    }
}

floatgate_core::life! {
    /// The lives, for every scheme.
    struct Lives = fn Many::live_on(&Many) -> Tally;
}

/// Several lives.
struct Many {
    seed: u64,
    lives: u64,
    end: End,
    sessions: u32,
    only: Option<u64>,
}

impl Many {
    fn live_on<S: Ftl<Page = Lpn>>(&self) -> Tally {
        let mut tally = Tally::default();
        let mut seeds = SplitMix64::new(self.seed);
        for _ in 0..self.lives {
            let drawn = seeds.next() >> 24;
            let seed = self.only.unwrap_or(drawn);
            let mut rng = SplitMix64::new(seed);
            let case = random_case::<S>(&mut rng, 0);
            let life = Life {
                case,
                end: self.end,
                sessions: self.sessions,
            };
            tally.lives += 1;
            let lived = catch(|| life.live::<S>(&mut rng, &mut tally.sessions));
            let outcome = lived.and_then(|outcome| outcome);
            if let Err(what) = outcome {
                tally.losses.push(format!(
                    "{} {:?} {seed}: {what}\n    ({})",
                    S::KEY,
                    self.end,
                    life.case
                ));
            }
            if self.only.is_some() {
                break;
            }
        }
        tally
    }
}

impl Life {
    fn live<S: Ftl<Page = Lpn>>(
        &self,
        rng: &mut SplitMix64,
        sessions: &mut u64,
    ) -> Result<(), String> {
        let spares = SparesOptions {
            spare_blocks: [1, 2, 3][rng.below(3) as usize],
            wear_leveling: [
                WearLeveling::Off,
                WearLeveling::Dynamic,
                WearLeveling::Static,
            ][rng.below(3) as usize],
            wear_gap: 2,
            pair_guard: PairGuard::Off,
        };
        let page_bytes = [32, 512, 4096][rng.below(3) as usize];
        let disk = new_image::<S>(&self.case, spares, page_bytes);
        let device = open_image::<S>(&self.case, &disk, spares).map_err(|e| e.to_string())?;
        let mut host = Host::new(device);
        let pages = host.shadow.len();
        let blank = vec![0; page_bytes];
        let known = Known {
            held: vec![blank.clone()],
            history: vec![blank],
            is_loose: false,
            is_fresh: false,
        };
        let mut known = vec![known; pages];
        let mut disk = disk;
        let mut since = Since::default();
        for session in 0..self.sessions {
            *sessions += 1;
            let far = [20, 200, 600][rng.below(3) as usize];
            let call = rng.below(far);
            let failure = match self.end {
                End::Crash | End::Kill | End::CrashAndHeader => Failure::Crash,
                End::Fail => {
                    [Failure::Eio, Failure::Enospc, Failure::LostSync][rng.below(3) as usize]
                }
            };
            disk.fail_at(FailAt { call, failure });
            since.begin(&host.shadow);
            self.use_device(&mut host, &mut known, &mut since, rng, &disk)
                .map_err(|what| format!("session {session}: {what}"))?;
            let version = host.version;
            drop(host);
            (disk, host) = self
                .come_up(&disk, spares, rng)
                .map_err(|what| format!("after session {session} (call {call}): {what}"))?;
            host.version = version;
            let pages = 0..known.len() as u32;
            let found: Result<Vec<_>, _> = pages.map(|page| host.content(page)).collect();
            let found = found.map_err(|e| format!("after session {session}: {e}"))?;
            let was_once = since.was_once(&found, &known);
            for (page, known) in known.iter_mut().enumerate() {
                let bytes = host.content(page as u32);
                let bytes =
                    bytes.map_err(|e| format!("after session {session} page {page}: {e}"))?;
                if !known.may_hold(&bytes) {
                    return Err(format!(
                        "after session {session} (call {call}) page {page} reads {:02x?}, may hold {:02x?}",
                        &bytes[..8],
                        known.held.iter().map(|held| &held[..8]).collect::<Vec<_>>()
                    ));
                }
                host.shadow[page] = bytes.clone();
                known.found(bytes);
            }
            if !was_once {
                return Err(format!(
                    "after session {session} (call {call}): never were the pages like this at one moment"
                ));
            }
            let audit = host.device.audit();
            audit.map_err(|what| format!("after session {session}: {what}"))?;
        }
        Ok(())
    }

    /// Requests until a system call fails.
    fn use_device<S: Ftl<Page = Lpn>>(
        &self,
        host: &mut Host<S, Spares<ImageNand<MixDisk>>>,
        known: &mut [Known],
        since: &mut Since,
        rng: &mut SplitMix64,
        disk: &MixDisk,
    ) -> Result<(), String> {
        let flush_one_in = [4, 15, 60][rng.below(3) as usize];
        for _ in 0..400 {
            if rng.below(flush_one_in) == 0 {
                match host.device.flush() {
                    Ok(()) => {
                        known.iter_mut().for_each(Known::flushed);
                        since.begin(&host.shadow);
                    }
                    Err(_) => break,
                }
                continue;
            }
            let before = host.shadow.clone();
            let outcome = host.random(rng, true);
            let mut request = Vec::new();
            for (page, (old, new)) in before.iter().zip(&host.shadow).enumerate() {
                if old != new {
                    let is_trim = new.iter().all(|&byte| byte == 0);
                    known[page].note(new, is_trim);
                    request.push((page, new.clone()));
                    // What has been written survives the end of the process.
                    if self.end == End::Kill && !is_trim {
                        known[page].flushed();
                    }
                }
            }
            for (page, bytes) in host.maybe.drain(..) {
                known[page as usize].note(&bytes, bytes.iter().all(|&byte| byte == 0));
                request.push((page as usize, bytes));
            }
            since.requests.push(request);
            if outcome.is_err() {
                break;
            }
        }
        if self.end == End::Fail && !disk.is_gone() && host.device.read_only().is_some() {
            // Nothing is promised any more, and everything can still be read.
            for page in 0..host.shadow.len() as u32 {
                let bytes = host
                    .content(page)
                    .map_err(|e| format!("page {page}: {e}"))?;
                if !known[page as usize].may_hold(&bytes) {
                    return Err(format!(
                        "page {page} reads {:02x?} after a failed call",
                        &bytes[..8]
                    ));
                }
            }
            for flush in 0..2 {
                if host.device.flush().is_ok() {
                    return Err(format!("flush {flush} after a failed call says Ok"));
                }
            }
            if host.write(0, 1).is_ok() {
                return Err("a write after a failed call says Ok".into());
            }
            host.maybe.clear();
        }
        Ok(())
    }

    /// The device on what is left of the disk; its start may be interrupted too.
    #[allow(clippy::type_complexity)] // disk and host
    fn come_up<S: Ftl<Page = Lpn>>(
        &self,
        disk: &MixDisk,
        spares: SparesOptions,
        rng: &mut SplitMix64,
    ) -> Result<(MixDisk, Host<S, Spares<ImageNand<MixDisk>>>), String> {
        let mut left = self.what_is_left(disk, rng);
        for _ in 0..rng.below(3) {
            let call = rng.below(60);
            let failure = Failure::Crash;
            left.fail_at(FailAt { call, failure });
            match open_image::<S>(&self.case, &left, spares) {
                Err(_) if left.is_gone() => {}
                Err(error) => return Err(format!("does not come up: {error}")),
                Ok(_) => {}
            }
            left = self.what_is_left(&left, rng);
        }
        match open_image::<S>(&self.case, &left, spares) {
            Ok(device) => Ok((left, Host::new(device))),
            Err(error) => Err(format!("does not come up: {error}")),
        }
    }

    fn what_is_left(&self, disk: &MixDisk, rng: &mut SplitMix64) -> MixDisk {
        match self.end {
            End::Kill => disk.after_the_process(),
            End::Crash | End::Fail => disk.after_a_crash(rng),
            End::CrashAndHeader => {
                let left = disk.after_a_crash(rng);
                let at = rng.below(2 * HEADER_BYTES as u64);
                let image = left.image();
                let mut headers = image[..2 * HEADER_BYTES].chunks(HEADER_BYTES);
                // One of the two: a start may have been cut before it had replaced the last one.
                if headers.all(|header| Header::decode(header.try_into().unwrap()).is_ok()) {
                    left.damage(at);
                }
                left
            }
        }
    }
}

/// All schemes, or the one of the line that is to be run again.
fn live(end: End, seed: u64, lives: u64, sessions: u32) {
    let line = std::env::var("FLOATGATE_LIFE").ok();
    let words: Option<Vec<&str>> = line.as_ref().map(|line| line.split_whitespace().collect());
    let lives = match std::env::var("FLOATGATE_LIVES") {
        Ok(lives) => lives.parse().expect("a number"),
        Err(_) => lives,
    };
    let mut losses = Vec::new();
    for scheme in &floatgate_schemes::catalog::<Lives>() {
        let mut many = Many {
            seed,
            lives,
            end,
            sessions,
            only: None,
        };
        if let Some(words) = &words {
            if words[0] != scheme.info.key || words[1] != format!("{end:?}") {
                continue;
            }
            many.only = Some(words[2].trim_end_matches(':').parse().expect("a seed"));
        }
        let tally = scheme.life.0(&many);
        println!(
            "{:<10} {end:?}: {} lives from seed {seed}, {} sessions, {} lost",
            scheme.info.key,
            tally.lives,
            tally.sessions,
            tally.losses.len()
        );
        losses.extend(tally.losses);
    }
    assert!(losses.is_empty(), "{}", losses.join("\n"));
}

#[test]
fn flushed_data_survives_any_mixture_of_file_pages() {
    live(End::Crash, 31, 40, 12);
}

#[test]
fn acknowledged_data_survives_the_end_of_the_process() {
    live(End::Kill, 32, 10, 8);
}

#[test]
fn a_failed_system_call_is_final_and_costs_nothing_that_was_flushed() {
    live(End::Fail, 33, 20, 6);
}

#[test]
fn one_header_may_rot_even_in_a_crash() {
    live(End::CrashAndHeader, 34, 15, 8);
}
