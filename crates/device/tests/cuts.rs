//! Power cuts on a whole device: scheme, spare blocks, wear levelling, paired pages, failures. After a cut at
//! any operation of the chip, those of the following mount included, everything acknowledged is there, and the
//! device goes on.
//!
//! `FLOATGATE_CUTS=all` tries every operation in every way; otherwise some are left out to save time.

mod common;

use floatgate_core::Lpn;
use std::panic::{AssertUnwindSafe, catch_unwind};

use common::cutting::{Change, Recorder, cut};
use common::{Host, PAGE_BYTES, SECTOR_BYTES, chip, options_of, scan};
use floatgate_core::ftl::{Ftl, RecoveryMode};
use floatgate_core::rng::SplitMix64;
use floatgate_core::wear::WearLeveling;
use floatgate_device::faulty::{CutKind, FaultPlan};
use floatgate_device::spares::pairs::PairGuard;
use floatgate_device::{BlockDevice, DeviceError, NandFlash, RamNand, Spares, SparesOptions};

const KINDS: [CutKind; 3] = [CutKind::Torn, CutKind::Before, CutKind::After];

#[derive(Clone)]
struct Case {
    seed: u64,
    spares: SparesOptions,
    plan: FaultPlan,
    /// Whether only flushed data has to be there.
    flushed_only: bool,
    requests: u32,
    /// Of so many cuts (three an operation) one is tried, of so many of these one has its recovery cut too. No
    /// multiple of three.
    one_in: u64,
}

#[derive(Default)]
struct Tally {
    tried: u64,
    /// Cuts after two torn operations that left GFTL without an erased page (its text says so).
    refused: u64,
    restored: u64,
    lower_pages: u64,
    losses: Vec<String>,
}

/// What the host may find.
struct Expect {
    before: Vec<Vec<u8>>,
    after: Vec<Vec<u8>>,
    /// All that each page has held.
    history: Vec<Vec<Vec<u8>>>,
    /// What each page held at the last flush or later, if only flushed data counts.
    since_flush: Option<Vec<Vec<Vec<u8>>>>,
}

impl Expect {
    fn new(pages: &[Vec<u8>], flushed_only: bool) -> Self {
        let held: Vec<_> = pages.iter().map(|page| vec![page.clone()]).collect();
        Self {
            before: pages.to_vec(),
            after: pages.to_vec(),
            since_flush: flushed_only.then(|| held.clone()),
            history: held,
        }
    }

    fn acknowledged(&mut self, pages: &[Vec<u8>]) {
        self.before = std::mem::replace(&mut self.after, pages.to_vec());
        let lists = std::iter::once(&mut self.history).chain(&mut self.since_flush);
        for list in lists {
            for (held, now) in list.iter_mut().zip(pages) {
                if held.last() != Some(now) {
                    held.push(now.clone());
                }
            }
        }
    }

    fn flushed(&mut self) {
        for (held, now) in self.since_flush.iter_mut().flatten().zip(&self.after) {
            *held = vec![now.clone()];
        }
    }

    /// A page that is or may be trimmed holds zeroes or anything that it once held.
    fn allows(&self, page: usize, bytes: &[u8]) -> bool {
        let flushed = self.since_flush.iter().flat_map(|lists| &lists[page]);
        let mut may_be = [&self.before[page], &self.after[page]]
            .into_iter()
            .chain(flushed);
        let trimmed = may_be
            .clone()
            .any(|held| held.iter().all(|&byte| byte == 0));
        may_be.any(|held| held == bytes)
            || trimmed && self.history[page].iter().any(|held| held == bytes)
    }
}

floatgate_core::life! {
    /// The cuts, for every scheme.
    struct Cuts = fn Case::play_on(&Case) -> Tally;
}

impl Case {
    fn play_on<S: Ftl<Page = Lpn>>(&self) -> Tally {
        let shape = chip(1, 20, 6, 8, &self.spares);
        let recorder = Recorder::new(RamNand::new(&shape, PAGE_BYTES), self.plan.clone());
        let spares = Spares::format(recorder, self.spares).unwrap();
        let device = BlockDevice::<S, _>::create(spares, &options_of::<S>(1)).unwrap();
        let mut host = Host::new(device);
        let mut rng = SplitMix64::new(self.seed);
        let mut expect = Expect::new(&host.shadow, self.flushed_only);
        let mut tally = Tally::default();
        let mut number = self.seed;
        for request in 0..self.requests {
            if request % 13 == 12 {
                host.device.flush().unwrap();
                expect.flushed();
                continue;
            }
            recorder_of(&mut host).record();
            match host.random(&mut rng, true) {
                Ok(()) => {}
                Err(error) if error.is_read_only() => break,
                Err(error) => panic!("{}: {error}", S::KEY),
            }
            expect.acknowledged(&host.shadow);
            for (chip, change) in recorder_of(&mut host).recorded() {
                for kind in KINDS {
                    number += 1;
                    if number.is_multiple_of(self.one_in) {
                        self.try_cut::<S>(&chip, &change, kind, number, &expect, &mut tally);
                    }
                }
            }
        }
        tally
    }
}

fn recorder_of<S: Ftl<Page = Lpn>>(host: &mut Host<S, Spares<Recorder>>) -> &mut Recorder {
    host.device.flash_layer_mut().nand_mut().nand_mut()
}

/// What a device did after a cut.
struct Came {
    /// States that mount and recovery passed through.
    states: Vec<(RamNand, Change)>,
    restored: u64,
}

enum Failed {
    Refused,
    Lost(String),
}

impl Case {
    fn try_cut<S: Ftl<Page = Lpn>>(
        &self,
        chip: &RamNand,
        change: &Change,
        kind: CutKind,
        number: u64,
        expect: &Expect,
        tally: &mut Tally,
    ) {
        let paired = self.plan.paired_pages;
        let (chip, lower_pages) = cut(chip, change, kind, number, paired);
        tally.lower_pages += lower_pages;
        tally.tried += 1;
        let named = |text: String| {
            format!(
                "{} seed {} cut {number} {kind:?}: {text}",
                S::KEY,
                self.seed
            )
        };
        let came = match self.come_back::<S>(chip, number, expect) {
            Ok(came) => came,
            Err(Failed::Refused) => return tally.losses.push(named("does not mount".into())),
            Err(Failed::Lost(text)) => return tally.losses.push(named(text)),
        };
        tally.restored += came.restored;
        if !tally.tried.is_multiple_of(self.one_in.min(7)) {
            return;
        }
        for (i, (chip, change)) in came.states.iter().enumerate() {
            let again = KINDS[(number as usize + i) % 3];
            let (chip, _) = cut(chip, change, again, number, paired);
            tally.tried += 1;
            match self.come_back::<S>(chip, number + 1, expect) {
                Ok(_) => {}
                Err(Failed::Refused) if S::KEY == "gftl" => tally.refused += 1,
                Err(Failed::Refused) => tally.losses.push(named("does not mount".into())),
                Err(Failed::Lost(text)) => {
                    tally
                        .losses
                        .push(named(format!("{text}; again at {i} {again:?}")));
                }
            }
        }
    }

    /// Mounts and recovers, compares, goes on, compares again.
    fn come_back<S: Ftl<Page = Lpn>>(
        &self,
        chip: RamNand,
        number: u64,
        expect: &Expect,
    ) -> Result<Came, Failed> {
        let body = || self.come_back_unguarded::<S>(chip, number, expect);
        catch_unwind(AssertUnwindSafe(body)).unwrap_or_else(|panic| {
            let text = panic.downcast_ref::<String>().cloned();
            Err(Failed::Lost(format!("panic: {text:?}")))
        })
    }

    fn come_back_unguarded<S: Ftl<Page = Lpn>>(
        &self,
        chip: RamNand,
        number: u64,
        expect: &Expect,
    ) -> Result<Came, Failed> {
        let lost = |error: &dyn std::fmt::Display| Failed::Lost(error.to_string());
        let untouched = chip.clone();
        let mut recorder = Recorder::new(chip, FaultPlan::default());
        recorder.record();
        let mounted = Spares::mount(recorder, self.spares).map_err(|e| lost(&e))?;
        let restored = mounted.stats().restored_pages;
        let means = [RecoveryMode::Fastest, RecoveryMode::FullScan][number as usize % 2];
        let device = match BlockDevice::<S, _>::open(mounted, &options_of::<S>(1), means) {
            Ok(device) => device,
            Err(DeviceError::Refused(refusal)) if refusal.key.as_deref() == Some("recover") => {
                return self.scan_only(untouched, expect).map(|()| Came {
                    states: Vec::new(),
                    restored,
                });
            }
            Err(DeviceError::Refused(_)) => return Err(Failed::Refused),
            Err(error) => return Err(lost(&error)),
        };
        let mut host = Host::new(device);
        let states = recorder_of(&mut host).recorded();
        for page in 0..host.shadow.len() {
            let mut bytes = vec![0xEE; PAGE_BYTES];
            let sector = (page * PAGE_BYTES / SECTOR_BYTES) as u64;
            let read = host.device.read(sector, &mut bytes);
            read.map_err(|error| Failed::Lost(format!("page {page}: {error}")))?;
            if !expect.allows(page, &bytes) {
                let text = format!("page {page} reads {:?}", &bytes[..8]);
                return Err(Failed::Lost(text));
            }
            host.shadow[page] = bytes;
        }
        host.version = 1 << 30;
        let mut rng = SplitMix64::new(number);
        for _ in 0..12 {
            match host.random(&mut rng, true) {
                Err(error) if error.is_read_only() => break,
                done => done.map_err(|e| lost(&e))?,
            }
        }
        host.verify_all().map_err(|e| lost(&e))?;
        host.device.audit().map_err(|e| lost(&e))?;
        Ok(Came { states, restored })
    }

    /// For a scheme without a recovery: the newest readable version of every page is what was acknowledged.
    fn scan_only(&self, chip: RamNand, expect: &Expect) -> Result<(), Failed> {
        let mounted = Spares::mount(chip, self.spares).unwrap();
        let contents = scan(&mut NandFlash::new(mounted).unwrap(), expect.after.len());
        for (page, content) in contents.into_iter().enumerate() {
            let content = content.unwrap_or_else(|| vec![0; PAGE_BYTES]);
            if !expect.allows(page, &content) {
                let text = format!("page {page} scans {:?}", &content[..8]);
                return Err(Failed::Lost(text));
            }
        }
        Ok(())
    }
}

/// All schemes, one after the other.
fn cut_all(case: &Case) -> Tally {
    let mut sum = Tally::default();
    for scheme in &floatgate_schemes::catalog::<Cuts>() {
        let tally = scheme.life.0(case);
        sum.tried += tally.tried;
        sum.refused += tally.refused;
        sum.restored += tally.restored;
        sum.lower_pages += tally.lower_pages;
        sum.losses.extend(tally.losses);
    }
    sum
}

fn nothing_lost(case: &Case) -> Tally {
    let tally = cut_all(case);
    println!(
        "{} cuts, {} refused, {} lower pages taken, {} restored",
        tally.tried, tally.refused, tally.lower_pages, tally.restored
    );
    assert!(
        tally.losses.is_empty(),
        "{} of {} lost\n{}",
        tally.losses.len(),
        tally.tried,
        tally.losses[..tally.losses.len().min(8)].join("\n")
    );
    tally
}

fn case(seed: u64, one_in: u64) -> Case {
    let thorough = std::env::var("FLOATGATE_CUTS").is_ok_and(|cuts| cuts == "all");
    Case {
        seed,
        spares: SparesOptions {
            spare_blocks: 3,
            ..SparesOptions::default()
        },
        plan: FaultPlan {
            seed,
            ..FaultPlan::default()
        },
        flushed_only: false,
        requests: if thorough { 400 } else { 150 },
        one_in: if thorough { 1 } else { one_in },
    }
}

#[test]
fn cuts_with_spare_blocks_and_failures() {
    let mut case = case(3, 8);
    nothing_lost(&case);
    case.plan.program_failures_ppm = 6000;
    case.plan.erase_failures_ppm = 10_000;
    case.spares.spare_blocks = 12;
    nothing_lost(&case);
}

#[test]
fn cuts_under_wear_levelling() {
    for wear_leveling in [WearLeveling::Dynamic, WearLeveling::Static] {
        let mut case = case(4, 11);
        case.spares.wear_leveling = wear_leveling;
        case.spares.wear_gap = 2;
        nothing_lost(&case);
        case.plan.program_failures_ppm = 6000;
        case.spares.spare_blocks = 12;
        nothing_lost(&case);
    }
}

#[test]
fn paired_pages_take_acknowledged_data_unless_guarded() {
    let mut case = case(5, 11);
    case.plan.paired_pages = true;
    let tally = cut_all(&case);
    assert!(
        tally.lower_pages > 0 && !tally.losses.is_empty(),
        "the harness does no harm"
    );
    case.spares.pair_guard = PairGuard::Always;
    assert!(nothing_lost(&case).restored > 0);
    case.plan.program_failures_ppm = 6000;
    case.spares.spare_blocks = 12;
    case.spares.wear_leveling = WearLeveling::Static;
    case.spares.wear_gap = 2;
    nothing_lost(&case);
}

#[test]
fn paired_pages_take_no_flushed_data() {
    let mut case = case(6, 8);
    case.plan.paired_pages = true;
    case.flushed_only = true;
    assert!(
        !cut_all(&case).losses.is_empty(),
        "without a guard flushed data is lost too"
    );
    case.spares.pair_guard = PairGuard::Flushed;
    assert!(nothing_lost(&case).restored > 0);
}
