//! Power cuts on a whole device: scheme, spare blocks, wear levelling, paired pages, failures. After a cut at
//! any operation of the chip, those of the following mount included, everything acknowledged is there, and the
//! device goes on.
//!
//! `FLOATGATE_CUTS=all` tries every operation in every way; otherwise some are left out to save time.
//! `FLOATGATE_CUTS=SCHEME:SEED:NUMBER`, which a failure prints, tries one of them again in the settings of the test that is
//! run, with every cut of its recovery.
//! `FLOATGATE_TEST_SEED` chooses other devices.

mod common;

use common::cut_run::{Case, Cuts, Tally};
use floatgate_catalog as _;
use floatgate_core::wear::WearLeveling;
use floatgate_device::SparesOptions;
use floatgate_device::faulty::{FaultPlan, HiddenTears};
use floatgate_device::spares::pairs::PairGuard;

/// Devices of each scheme in one setting.
const DEVICES: u64 = 6;

/// What `FLOATGATE_CUTS` asks for.
enum Wanted {
    Some,
    All,
    One(String, u64, u64),
}

fn wanted() -> Wanted {
    let Ok(text) = std::env::var("FLOATGATE_CUTS") else {
        return Wanted::Some;
    };
    let words: Vec<&str> = text.split(':').collect();
    match words[..] {
        ["all"] => Wanted::All,
        [scheme, seed, number] => {
            let number_of = |word: &str| word.parse().expect("FLOATGATE_CUTS=SCHEME:SEED:NUMBER");
            Wanted::One(scheme.into(), number_of(seed), number_of(number))
        }
        _ => panic!("FLOATGATE_CUTS is all or SCHEME:SEED:NUMBER"),
    }
}

/// All schemes on random devices, one after the other.
fn cut_all(case: &Case) -> Tally {
    let mut sum = Tally::default();
    let wanted = wanted();
    for scheme in &floatgate_schemes::catalog::<Cuts>() {
        let (seeds, only) = match &wanted {
            Wanted::One(key, ..) if key != scheme.info.key => continue,
            Wanted::One(_, seed, number) => (*seed..*seed + 1, Some(*number)),
            _ => (case.seed..case.seed + DEVICES, None),
        };
        for seed in seeds {
            let mut case = Case {
                seed,
                only,
                ..case.clone()
            };
            case.plan.seed = seed;
            sum += scheme.life.0(&case);
        }
    }
    sum
}

fn nothing_lost(case: &Case) -> Tally {
    let tally = cut_all(case);
    println!(
        "seeds from {}: {} cuts, {} refused, {} lower pages taken, {} restored, {} blocks settled",
        case.seed, tally.tried, tally.refused, tally.lower_pages, tally.restored, tally.settled
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

/// Whether a sample of devices large enough for it to matter was cut.
fn is_sample() -> bool {
    !matches!(wanted(), Wanted::One(..))
}

fn case(seed: u64, one_in: u64) -> Case {
    let thorough = matches!(wanted(), Wanted::All);
    let seed = std::env::var("FLOATGATE_TEST_SEED").map_or(seed * 1000, |text| {
        text.parse().expect("FLOATGATE_TEST_SEED is a number")
    });
    Case {
        seed,
        spares: SparesOptions {
            spare_blocks: 3,
            ..SparesOptions::default()
        },
        plan: FaultPlan::default(),
        flushed_only: false,
        requests: if thorough { 200 } else { 60 },
        one_in: if thorough { 1 } else { one_in },
        only: None,
    }
}

/// The same with failures of programs and erases, and spare blocks for them.
fn failing(mut case: Case) -> Case {
    case.plan.program_failures_ppm = 6000;
    case.plan.erase_failures_ppm = 10_000;
    case.plan.transient_program_failures_ppm = 3000;
    case.plan.transient_erase_failures_ppm = 10_000;
    case.spares.spare_blocks = 12;
    case
}

#[test]
fn cuts_with_spare_blocks_and_failures() {
    let case = case(3, 8);
    nothing_lost(&case);
    nothing_lost(&failing(case));
}

#[test]
fn cuts_under_wear_levelling() {
    for wear_leveling in [WearLeveling::Dynamic, WearLeveling::Static] {
        let mut case = case(4, 11);
        case.spares.wear_leveling = wear_leveling;
        case.spares.wear_gap = 2;
        nothing_lost(&case);
        nothing_lost(&failing(case));
    }
}

#[test]
fn paired_pages_take_acknowledged_data_unless_guarded() {
    let mut case = case(5, 11);
    case.plan.paired_pages = true;
    let tally = cut_all(&case);
    assert!(
        !is_sample() || tally.lower_pages > 0 && !tally.losses.is_empty(),
        "the harness does no harm"
    );
    case.spares.pair_guard = PairGuard::Always;
    let tally = nothing_lost(&case);
    assert!(!is_sample() || tally.restored > 0);
    case.spares.wear_leveling = WearLeveling::Static;
    case.spares.wear_gap = 2;
    nothing_lost(&failing(case));
}

#[test]
fn paired_pages_take_no_flushed_data() {
    let mut case = case(6, 8);
    case.plan.paired_pages = true;
    case.flushed_only = true;
    let tally = cut_all(&case);
    assert!(
        !is_sample() || !tally.losses.is_empty(),
        "without a guard flushed data is lost too"
    );
    case.spares.pair_guard = PairGuard::Flushed;
    let tally = nothing_lost(&case);
    assert!(!is_sample() || tally.restored > 0);
}

/// The operation that was cut does not show: see `HiddenTears`.
#[test]
fn hidden_tears_take_nothing() {
    let hidden = |programs, erases, marks| HiddenTears {
        programs,
        erases,
        marks,
    };
    let kinds = [
        hidden(true, false, false),
        hidden(false, true, false),
        hidden(false, false, true),
        HiddenTears::ALL,
    ];
    for (i, hidden_tears) in (7..).zip(kinds) {
        let mut case = case(i, 14);
        case.plan.hidden_tears = hidden_tears;
        println!("{hidden_tears:?}");
        if !hidden_tears.marks || hidden_tears.programs {
            let tally = nothing_lost(&case);
            assert!(!is_sample() || tally.settled > 0);
        }
        if hidden_tears.marks {
            nothing_lost(&failing(case));
        }
    }
}

#[test]
fn hidden_tears_under_wear_levelling_and_in_paired_pages() {
    let mut case = case(11, 14);
    case.plan.hidden_tears = HiddenTears::ALL;
    case.spares.wear_leveling = WearLeveling::Static;
    case.spares.wear_gap = 2;
    nothing_lost(&case);
    case.plan.paired_pages = true;
    case.spares.pair_guard = PairGuard::Always;
    nothing_lost(&failing(case));
}
