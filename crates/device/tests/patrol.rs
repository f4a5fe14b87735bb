//! Reads and time make pages fail. A patrol that comes round often enough loses none; without one they are lost.

use floatgate_core::flash::{Oob, Role};
use floatgate_core::rng::SplitMix64;
use floatgate_core::{Geometry, Lpn, Pbn, Ppn, ProgramOrder};
use floatgate_device::faulty::FaultPlan;
use floatgate_device::nand::PatrolFound;
use floatgate_device::nand::{Damage, Nand, Spare};
use floatgate_device::{Faulty, NandError, RamNand, Spares, SparesOptions};

const PAGES: u32 = 8;
const BLOCKS: u32 = 6;
const PAGE_BYTES: usize = 8;

type Device = Spares<Faulty<RamNand>>;

/// A chip with four full blocks and two erased ones.
fn device(plan: FaultPlan) -> Device {
    let options = SparesOptions::default();
    let blocks = BLOCKS + options.spare_blocks;
    let geometry = Geometry::new(1, blocks, PAGES, 8, ProgramOrder::Ascending).unwrap();
    let nand = RamNand::new(&geometry, PAGE_BYTES);
    let mut spares = Spares::format(Faulty::new(nand, plan).unwrap(), options).unwrap();
    for page in 0..4 * PAGES {
        let spare = Spare::new(Oob::new(Lpn(page), Role::Data), 1 + u64::from(page));
        spares.program(Ppn(page), &spare, &data_of(page)).unwrap();
    }
    spares
}

fn data_of(page: u32) -> [u8; PAGE_BYTES] {
    [page as u8 + 1; PAGE_BYTES]
}

/// Pages that are lost; all others must be right.
fn lost(spares: &mut Device) -> u32 {
    let mut lost = 0;
    for page in 0..4 * PAGES {
        let mut data = [0; PAGE_BYTES];
        match spares.read(Ppn(page), &mut data) {
            Ok(spare) if spare.lost => lost += 1,
            Ok(_) => assert_eq!(data, data_of(page)),
            Err(NandError::Unreadable { .. }) => lost += 1,
            Err(error) => panic!("{error}"),
        }
    }
    lost
}

fn disturbed() -> FaultPlan {
    FaultPlan {
        read_disturb: Some(100),
        ..FaultPlan::default()
    }
}

fn read_a_lot(spares: &mut Device, mut between: impl FnMut(&mut Device, u32)) {
    let mut rng = SplitMix64::new(3);
    for i in 0..4000 {
        let _ = spares.read_spare(Ppn(rng.below(8) as u32));
        between(spares, i);
    }
}

#[test]
fn reads_disturb_a_block_until_a_patrol_moves_it() {
    let mut neglected = device(disturbed());
    read_a_lot(&mut neglected, |_, _| {});
    assert!(lost(&mut neglected) > 0, "the harness does no harm");
    let mut patrolled = device(disturbed());
    let mut found = 0;
    read_a_lot(&mut patrolled, |spares, i| {
        if i % 20 == 0 {
            let round = spares.patrol(BLOCKS).unwrap();
            assert_eq!(round.lost_pages, 0);
            found += round.rewritten_blocks;
        }
    });
    assert_eq!(lost(&mut patrolled), 0);
    assert!(found > 20, "{found} blocks rewritten");
}

#[test]
fn charge_leaks_away_until_a_patrol_rewrites_it() {
    let plan = FaultPlan {
        retention: Some(200),
        ..FaultPlan::default()
    };
    // Time passes with the operations on the last block.
    let pass = |spares: &mut Device, rounds: u32, patrol: u32| {
        for round in 0..rounds {
            let page = 5 * PAGES;
            let spare = Spare::new(Oob::new(Lpn(page), Role::Data), 1000 + u64::from(round));
            spares.program(Ppn(page), &spare, &[0; PAGE_BYTES]).unwrap();
            spares.erase(Pbn(5)).unwrap();
            if patrol > 0 && round % 10 == 9 {
                assert_eq!(spares.patrol(patrol).unwrap().lost_pages, 0);
            }
        }
    };
    let mut neglected = device(plan.clone());
    pass(&mut neglected, 400, 0);
    assert_eq!(lost(&mut neglected), 4 * PAGES);
    let mut patrolled = device(plan);
    pass(&mut patrolled, 400, 1);
    assert_eq!(lost(&mut patrolled), 0);
}

#[test]
fn a_patrol_counts_what_it_finds_once() {
    let mut spares = device(FaultPlan::default());
    let at = spares.place(Pbn(2)).unwrap();
    let mut options = *spares.options();
    options.spare_blocks = 2;
    let mut chip = spares.into_nand().into_inner();
    chip.spoil(Ppn(at.0 * PAGES + 3)).unwrap();
    spares = Spares::mount(Faulty::new(chip, FaultPlan::default()).unwrap(), options).unwrap();
    let found = PatrolFound {
        checked_pages: u64::from(4 * PAGES),
        retried_pages: 0,
        lost_pages: 1,
        rewritten_blocks: 1,
    };
    assert_eq!(spares.patrol(BLOCKS).unwrap(), found);
    assert_ne!(spares.place(Pbn(2)), Some(at));
    assert_eq!(lost(&mut spares), 1);
    let again = PatrolFound {
        lost_pages: 0,
        rewritten_blocks: 0,
        ..found
    };
    assert_eq!(spares.patrol(BLOCKS).unwrap(), again);
}

#[test]
fn a_patrol_goes_round() {
    let mut spares = device(FaultPlan::default());
    let pages: Vec<u64> = (0..6)
        .map(|_| spares.patrol(2).unwrap().checked_pages)
        .collect();
    let two = u64::from(2 * PAGES);
    assert_eq!(pages, [two, two, 0, two, two, 0]);
}

#[test]
fn a_refresh_moves_a_block_and_nothing_else() {
    let mut spares = device(FaultPlan::default());
    let before: Vec<_> = (0..BLOCKS).map(|block| spares.place(Pbn(block))).collect();
    (0..3).for_each(|_| drop(spares.read_spare(Ppn(PAGES))));
    assert_eq!(spares.reads(Pbn(1)), 3);
    spares.refresh(Pbn(1)).unwrap();
    spares.refresh(Pbn(5)).unwrap();
    assert_eq!(spares.reads(Pbn(1)), 0);
    for block in 0..BLOCKS {
        let has_moved = spares.place(Pbn(block)) != before[block as usize];
        assert_eq!(has_moved, block == 1, "block {block}");
    }
    assert_eq!(lost(&mut spares), 0);
}

/// A die without a free block keeps what it has, and is not read-only for it.
#[test]
fn without_a_free_block_nothing_moves() {
    let geometry = Geometry::new(1, 2, PAGES, 8, ProgramOrder::Ascending).unwrap();
    let options = SparesOptions {
        spare_blocks: 0,
        ..SparesOptions::default()
    };
    let nand = RamNand::new(&geometry, PAGE_BYTES);
    let mut spares = Spares::format(nand, options).unwrap();
    for page in 0..2 * PAGES {
        let spare = Spare::new(Oob::new(Lpn(page), Role::Data), 1 + u64::from(page));
        spares.program(Ppn(page), &spare, &data_of(page)).unwrap();
    }
    let outcome = spares.refresh(Pbn(0));
    assert!(matches!(outcome, Err(NandError::ReadOnly { die: 0 })));
    assert!(!spares.is_read_only(0));
    spares.check_writable().unwrap();
}
