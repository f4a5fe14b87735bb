//! Every scheme on a failing chip: nothing acknowledged is lost, and once the spares run out the device can
//! still be read.

mod common;

use common::{Host, PAGE_BYTES, SECTOR_BYTES, chip, options_of, scan};
use floatgate_catalog as _;
use floatgate_core::flash::{Oob, Role};
use floatgate_core::rng::SplitMix64;
use floatgate_core::wear::WearLeveling;
use floatgate_core::{Ftl, Lpn};
use floatgate_core::{Pbn, Ppn};
use floatgate_device::faulty::{Cut, CutKind, FaultPlan};
use floatgate_device::nand::Spare;
use floatgate_device::spares::pairs::PairGuard;
use floatgate_device::{
    BlockDevice, Faulty, Nand, NandError, NandFlash, RamNand, Spares, SparesOptions,
};

struct UntilReadOnly {
    seed: u64,
    spares: SparesOptions,
    plan: FaultPlan,
    requests: u32,
}

/// What became of a device.
struct Outcome {
    key: &'static str,
    acknowledged: u64,
    retired: u64,
    read_only: bool,
}

floatgate_core::life! {
    /// The run, for every scheme.
    struct WearsOut = fn UntilReadOnly::play_on(UntilReadOnly) -> Outcome;
}

impl UntilReadOnly {
    fn play_on<S: Ftl<Page = Lpn>>(self) -> Outcome {
        let shape = chip(2, 30, 8, 12, &self.spares);
        let faulty = Faulty::new(RamNand::new(&shape, PAGE_BYTES), self.plan).unwrap();
        let spares = Spares::format(faulty, self.spares).unwrap();
        let mut host = Host::new(BlockDevice::<S, _>::create(spares, &options_of::<S>(2)).unwrap());
        let mut rng = SplitMix64::new(self.seed);
        // Without trims the chip alone, mounted anew, must hold everything too.
        let trims = self.seed.is_multiple_of(2);
        for request in 0..self.requests {
            if let Err(error) = host.random(&mut rng, trims) {
                assert!(error.is_read_only(), "{}: {error}", S::KEY);
                break;
            }
            if request % 64 == 0 {
                host.device.audit().unwrap();
            }
        }
        let read_only = host.device.read_only().is_some();
        for page in 0..host.shadow.len() as u32 {
            host.verify(page).unwrap_or_else(|error| {
                panic!(
                    "{} (seed {}, read only: {read_only}): {error}",
                    S::KEY,
                    self.seed
                )
            });
        }
        if read_only {
            let error = host.device.write(0, &[0; SECTOR_BYTES]).unwrap_err();
            assert!(error.is_read_only(), "{error}");
        }
        let stats = host.device.flash_layer().nand().stats();
        let acknowledged = host.acknowledged;
        if !trims {
            let shadow = (host.shadow, host.maybe);
            let chip = host.device.into_nand().into_nand().into_inner();
            let mut flash = NandFlash::new(Spares::mount(chip, self.spares).unwrap()).unwrap();
            for (page, content) in scan(&mut flash, shadow.0.len()).into_iter().enumerate() {
                let content = content.unwrap_or_else(|| vec![0; PAGE_BYTES]);
                let maybe = shadow
                    .1
                    .iter()
                    .any(|(p, other)| *p == page as u32 && *other == content);
                assert!(
                    content == shadow.0[page] || maybe,
                    "{} page {page} on the chip",
                    S::KEY
                );
            }
        }
        Outcome {
            key: S::KEY,
            acknowledged,
            retired: stats.retired_program + stats.retired_erase,
            read_only,
        }
    }
}

fn run_all(plan: &FaultPlan, spares: SparesOptions, requests: u32) -> Vec<Outcome> {
    let mut outcomes = Vec::new();
    for scheme in &floatgate_schemes::catalog::<WearsOut>() {
        for seed in 1..=3 {
            let plan = FaultPlan {
                seed,
                ..plan.clone()
            };
            let case = UntilReadOnly {
                seed,
                spares,
                plan,
                requests,
            };
            outcomes.push(scheme.life.0(case));
        }
    }
    outcomes
}

#[test]
fn failures_of_programs_and_erases_cost_blocks_and_no_bytes() {
    let plan = FaultPlan {
        program_failures_ppm: 1500,
        erase_failures_ppm: 5000,
        soft_reads_ppm: 20_000,
        ..FaultPlan::default()
    };
    for wear_leveling in [
        WearLeveling::Off,
        WearLeveling::Dynamic,
        WearLeveling::Static,
    ] {
        let spares = SparesOptions {
            spare_blocks: 6,
            wear_leveling,
            wear_gap: 4,
            ..SparesOptions::default()
        };
        let outcomes = run_all(&plan, spares, 3000);
        let retired: u64 = outcomes.iter().map(|one| one.retired).sum();
        let ended = outcomes.iter().filter(|one| one.read_only).count();
        println!(
            "{retired} blocks retired, {ended} of {} devices read only",
            outcomes.len()
        );
        assert!(retired > 100 && ended > 0);
        for one in outcomes.iter().filter(|one| one.read_only) {
            assert!(
                one.retired >= 6.min(u64::from(spares.spare_blocks)),
                "{}: {} retired",
                one.key,
                one.retired
            );
        }
    }
}

#[test]
fn a_chip_wears_out_to_read_only() {
    let plan = FaultPlan {
        erase_limit: Some(20),
        ..FaultPlan::default()
    };
    let lives = |wear_leveling| {
        let spares = SparesOptions {
            wear_leveling,
            wear_gap: 3,
            ..SparesOptions::default()
        };
        let outcomes = run_all(&plan, spares, 100_000);
        assert!(
            outcomes.iter().all(|one| one.read_only),
            "a worn-out chip is read only"
        );
        outcomes.iter().map(|one| one.acknowledged).sum::<u64>()
    };
    let (off, dynamic, fixed) = (
        lives(WearLeveling::Off),
        lives(WearLeveling::Dynamic),
        lives(WearLeveling::Static),
    );
    // Static levelling pays off where much is cold; here little is, and its moves cost erases.
    println!("requests until read only: off {off}, dynamic {dynamic}, static {fixed}");
    assert!(off < dynamic && fixed > 0);
}

/// The last spare is for what a request under way still has to do.
#[test]
fn no_request_begins_after_the_last_spare_block() {
    let options = SparesOptions {
        spare_blocks: 1,
        ..SparesOptions::default()
    };
    let plan = FaultPlan {
        program_failures: vec![1],
        ..FaultPlan::default()
    };
    let nand = RamNand::new(&chip(2, 6, 8, 2, &options), PAGE_BYTES);
    let mut nand = Spares::format(Faulty::new(nand, plan).unwrap(), options).unwrap();
    let program = |page: u32, nand: &mut Spares<_>| {
        let spare = Spare::new(Oob::new(Lpn(page), Role::Data), u64::from(page) + 1);
        nand.program(Ppn(page), &spare, &[1; PAGE_BYTES]).unwrap();
    };
    program(0, &mut nand);
    nand.check_writable().unwrap();
    program(1, &mut nand);
    assert_eq!(nand.stats().retired_program, 1);
    let refused = nand.check_writable();
    assert!(
        matches!(refused, Err(NandError::ReadOnly { die: 0 })),
        "{refused:?}"
    );
    // The request that met the failure may go on.
    program(2, &mut nand);
    nand.check_kept().unwrap();
}

#[test]
fn blocks_bad_from_the_factory_are_never_used() {
    let bad: Vec<Pbn> = [0, 7, 31, 35, 40].map(Pbn).to_vec();
    let plan = FaultPlan {
        factory_bad: bad.clone(),
        ..FaultPlan::default()
    };
    let spares = SparesOptions {
        spare_blocks: 5,
        pair_guard: PairGuard::Always,
        ..SparesOptions::default()
    };
    let outcomes = run_all(&plan, spares, 800);
    assert!(
        outcomes
            .iter()
            .all(|one| !one.read_only && one.retired == 0)
    );
    let too_many = FaultPlan {
        factory_bad: (0..6).map(Pbn).collect(),
        ..FaultPlan::default()
    };
    let nand = RamNand::new(&chip(2, 30, 8, 12, &spares), PAGE_BYTES);
    let error = Spares::format(Faulty::new(nand, too_many).unwrap(), spares).unwrap_err();
    assert_eq!(
        error.to_string(),
        "die 0 lacks 1 good blocks: too many are bad from the factory"
    );
}

struct LosingPages(u64);

floatgate_core::life! {
    /// The run, for every scheme.
    struct Loses = fn LosingPages::play_on(LosingPages) -> (u64, u64);
}

impl LosingPages {
    /// Pages that cannot be read are errors until they are written again; no other page suffers.
    fn play_on<S: Ftl<Page = Lpn>>(self) -> (u64, u64) {
        let spares = SparesOptions::default();
        let shape = chip(1, 30, 8, 12, &spares);
        let lost: Vec<Ppn> = (0..shape.pages())
            .filter(|page| page % 7 == 3)
            .map(Ppn)
            .collect();
        let plan = FaultPlan {
            lost_pages: lost,
            ..FaultPlan::default()
        };
        let faulty = Faulty::new(RamNand::new(&shape, PAGE_BYTES), plan).unwrap();
        let spares = Spares::format(faulty, spares).unwrap();
        let mut host = Host::new(BlockDevice::<S, _>::create(spares, &options_of::<S>(1)).unwrap());
        let mut rng = SplitMix64::new(self.0);
        for _ in 0..1500 {
            // Whole pages: part of a lost page cannot be written.
            let page = rng.below(host.shadow.len() as u64);
            match host.write(2 * page, 2) {
                Ok(()) => {}
                // A scheme that keeps its map in flash may lose a page of it: an error too.
                Err(error) => {
                    assert!(
                        error.to_string().contains("unreadable"),
                        "{}: {error}",
                        S::KEY
                    );
                    break;
                }
            }
        }
        let (mut good, mut errors) = (0, 0);
        for page in 0..host.shadow.len() as u32 {
            match host.verify(page) {
                Ok(()) => good += 1,
                Err(error) => {
                    assert!(error.contains("unreadable"), "{}: {error}", S::KEY);
                    errors += 1;
                }
            }
        }
        (good, errors)
    }
}

#[test]
fn a_lost_page_is_an_error_and_never_other_bytes() {
    for scheme in &floatgate_schemes::catalog::<Loses>() {
        for seed in 1..=4 {
            let (good, errors) = scheme.life.0(LosingPages(seed));
            println!("{}: {good} pages read, {errors} errors", scheme.info.key);
            assert!(errors > 0 || good > 0);
        }
    }
}

/// A program fails, its block moves to a spare one, and the power is cut there: what the move leaves behind is free after
/// the mount, else the spare blocks would be used up by moves that never happened.
#[test]
fn what_a_cut_move_leaves_behind_is_a_free_block_again() {
    const PAGES: u32 = 8;
    let options = SparesOptions {
        spare_blocks: 3,
        pair_guard: PairGuard::Off,
        wear_leveling: WearLeveling::Off,
        wear_gap: 0,
    };
    let shape = chip(1, 4, PAGES, 1, &options);
    // The pages 0 to 4, the failure of page 5, and some copies of the move.
    for at in 6..11 {
        let plan = FaultPlan {
            program_failures: vec![5],
            cut: Some(Cut {
                at,
                kind: CutKind::Torn,
            }),
            ..FaultPlan::default()
        };
        let faulty = Faulty::new(RamNand::new(&shape, PAGE_BYTES), plan).unwrap();
        let mut spares = Spares::format(faulty, options).unwrap();
        let outcome = (0..PAGES).try_for_each(|page| {
            let spare = Spare::new(Oob::new(Lpn(page), Role::Data), u64::from(page) + 1);
            spares.program(Ppn(page), &spare, &[1; PAGE_BYTES])
        });
        assert!(matches!(outcome, Err(NandError::PowerCut)), "{outcome:?}");
        let torn = spares.into_nand().into_inner();
        let mounted = Spares::mount(torn, options).unwrap();
        let places: Vec<Pbn> = (0..4)
            .filter_map(|block| mounted.place(Pbn(block)))
            .collect();
        for block in (0..shape.blocks()).map(Pbn).filter(|b| !places.contains(b)) {
            let is_programmed = |page| mounted.nand().is_programmed(shape.ppn(block, page));
            assert!(
                !(0..PAGES).any(is_programmed),
                "cut at {at}: {block:?} stands for nothing and keeps its pages"
            );
        }
    }
}
