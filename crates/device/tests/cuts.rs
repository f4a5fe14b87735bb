//! Power cuts below the schemes: after a cut at any operation, also of the mount that follows, the newest
//! readable version of every logical page is what was acknowledged.
//!
//! The scheme is real, its recovery is not needed: all schemes keep the rule that the newest sequence number of
//! a logical page wins, so the test reads the chip by that rule alone.

mod common;

use common::{Host, PAGE_BYTES, chip, options_of, scan};
use floatgate_core::ftl::{Ftl, Visitor, all, visit};
use floatgate_core::parts::wear::WearLeveling;
use floatgate_core::rng::SplitMix64;
use floatgate_device::faulty::{Cut, CutKind, FaultPlan};
use floatgate_device::spares::pairs::PairGuard;
use floatgate_device::{
    BlockDevice, DeviceError, Faulty, NandError, NandFlash, RamNand, Spares, SparesOptions,
};

#[derive(Clone)]
struct Case {
    seed: u64,
    spares: SparesOptions,
    plan: FaultPlan,
    /// Whether only flushed data has to be there.
    flushed_only: bool,
}

#[derive(Default)]
struct Outcome {
    /// The run ended before the cut.
    over: bool,
    lost: Option<String>,
    restored: u64,
    lower_pages: u64,
}

fn is_cut(error: &DeviceError) -> bool {
    matches!(error, DeviceError::Nand(NandError::PowerCut))
}

impl Visitor for Case {
    type Output = Outcome;

    fn visit<S: Ftl>(self) -> Outcome {
        let shape = chip(1, 20, 6, 8, &self.spares);
        let faulty = Faulty::new(RamNand::new(&shape, PAGE_BYTES), self.plan.clone()).unwrap();
        let spares = Spares::format(faulty, self.spares).unwrap();
        let created = BlockDevice::<S, _>::create(spares, &options_of::<S>(1));
        let mut host = match created {
            Ok(device) => Host::new(device),
            // Cut while it was made: nothing to lose.
            Err(_) => return Outcome::default(),
        };
        let mut rng = SplitMix64::new(self.seed);
        // What every page held at the last flush or later.
        let mut since_flush: Vec<Vec<Vec<u8>>> =
            host.shadow.iter().map(|p| vec![p.clone()]).collect();
        let mut over = true;
        for request in 0..220 {
            let flush = request % 13 == 12;
            let done = if flush {
                host.device.flush()
            } else {
                host.random(&mut rng, false)
            };
            match done {
                Ok(()) => {}
                Err(error) if is_cut(&error) || error.is_read_only() => {
                    over = error.is_read_only();
                    break;
                }
                Err(error) => panic!("{}: {error}", S::KEY),
            }
            for (held, now) in since_flush.iter_mut().zip(&host.shadow) {
                if flush {
                    *held = vec![now.clone()];
                } else if held.last() != Some(now) {
                    held.push(now.clone());
                }
            }
        }
        let faulty = std::mem::replace(
            host.device.flash_layer_mut().nand_mut(),
            Spares::format(dummy(&shape), self.spares).unwrap(),
        )
        .into_nand();
        let lower_pages = faulty.counts().lower_pages;
        let chip = faulty.into_inner();
        let restored = Spares::mount(chip.clone(), self.spares)
            .unwrap()
            .stats()
            .restored_pages;
        let nand = self.cut_mounts(chip);
        let mounted = Spares::mount(
            Faulty::new(nand, FaultPlan::default()).unwrap(),
            self.spares,
        )
        .unwrap();
        let mut flash = NandFlash::new(mounted);
        let mut lost = None;
        for (page, content) in (0..).zip(scan(&mut flash, host.shadow.len())) {
            let content = content.unwrap_or_else(|| vec![0; PAGE_BYTES]);
            let allowed = host.allows(page, &content)
                || self.flushed_only && since_flush[page as usize].contains(&content);
            if !allowed {
                lost = Some(format!("{} page {page}: {:?}", S::KEY, &content[..8]));
            }
        }
        Outcome {
            over,
            lost,
            restored,
            lower_pages,
        }
    }
}

fn dummy(shape: &floatgate_core::Geometry) -> Faulty<RamNand> {
    Faulty::new(RamNand::new(shape, PAGE_BYTES), FaultPlan::default()).unwrap()
}

impl Case {
    /// Cuts the first mounts too, at their first, second, ... operation.
    fn cut_mounts(&self, mut nand: RamNand) -> RamNand {
        for at in 0.. {
            let kind = [CutKind::Torn, CutKind::Before, CutKind::After][at as usize % 3];
            let plan = FaultPlan {
                seed: self.seed + at,
                cut: Some(Cut { at, kind }),
                paired_pages: self.plan.paired_pages,
                ..FaultPlan::default()
            };
            let mut faulty = Faulty::new(nand, plan).unwrap();
            // A mount consumes its chip, so it works on a loan.
            let outcome = Spares::mount(&mut faulty, self.spares).map(drop);
            nand = faulty.into_inner();
            match outcome {
                Ok(()) => break,
                Err(error) => assert!(is_cut(&error), "{error}"),
            }
        }
        nand
    }
}

/// Cuts runs of every scheme at every `step`-th operation.
fn cut_everywhere(case: &Case, step: u64) -> (u64, Outcome, Vec<String>) {
    let (mut tried, mut all_of) = (0, Outcome::default());
    let mut losses = Vec::new();
    for scheme in all() {
        for kind in [CutKind::Before, CutKind::Torn, CutKind::After] {
            let mut at = case.seed % step;
            loop {
                let mut case = case.clone();
                case.plan.cut = Some(Cut { at, kind });
                let outcome = visit(scheme.key, case.clone()).unwrap();
                tried += 1;
                all_of.restored += outcome.restored;
                all_of.lower_pages += outcome.lower_pages;
                if let Some(lost) = outcome.lost {
                    losses.push(format!("{lost} (seed {}, cut at {at} {kind:?})", case.seed));
                }
                if outcome.over {
                    break;
                }
                at += step;
            }
        }
    }
    (tried, all_of, losses)
}

fn nothing_lost(case: &Case, step: u64) -> Outcome {
    let (tried, outcome, losses) = cut_everywhere(case, step);
    println!(
        "{tried} cuts, {} lower pages taken, {} restored",
        outcome.lower_pages, outcome.restored
    );
    assert!(
        losses.is_empty(),
        "{} of {tried} lost\n{}",
        losses.len(),
        losses[..losses.len().min(5)].join("\n")
    );
    outcome
}

fn case(seed: u64) -> Case {
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
    }
}

#[test]
fn cuts_with_spare_blocks_and_failures() {
    let mut case = case(3);
    nothing_lost(&case, 7);
    case.plan.program_failures_ppm = 6000;
    case.plan.erase_failures_ppm = 10_000;
    case.spares.spare_blocks = 12;
    nothing_lost(&case, 5);
}

#[test]
fn cuts_under_wear_levelling() {
    for wear_leveling in [WearLeveling::Dynamic, WearLeveling::Static] {
        let mut case = case(4);
        case.spares.wear_leveling = wear_leveling;
        case.spares.wear_gap = 2;
        nothing_lost(&case, 7);
        case.plan.program_failures_ppm = 6000;
        case.spares.spare_blocks = 12;
        nothing_lost(&case, 11);
    }
}

#[test]
fn paired_pages_take_acknowledged_data_unless_guarded() {
    let mut case = case(5);
    case.plan.paired_pages = true;
    let (_, outcome, losses) = cut_everywhere(&case, 5);
    assert!(
        outcome.lower_pages > 0 && !losses.is_empty(),
        "the harness does no harm"
    );
    case.spares.pair_guard = PairGuard::Always;
    let outcome = nothing_lost(&case, 5);
    assert!(outcome.restored > 0);
    case.plan.program_failures_ppm = 6000;
    case.spares.spare_blocks = 12;
    case.spares.wear_leveling = WearLeveling::Static;
    case.spares.wear_gap = 2;
    nothing_lost(&case, 7);
}

#[test]
fn paired_pages_take_no_flushed_data() {
    let mut case = case(6);
    case.plan.paired_pages = true;
    case.flushed_only = true;
    let (_, _, losses) = cut_everywhere(&case, 5);
    assert!(
        !losses.is_empty(),
        "without a guard flushed data is lost too"
    );
    case.spares.pair_guard = PairGuard::Flushed;
    let outcome = nothing_lost(&case, 5);
    assert!(outcome.restored > 0);
}
