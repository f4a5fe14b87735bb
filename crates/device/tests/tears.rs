//! What a power cut leaves on a chip where it need not show, one case at a time: after the mount everything reads as
//! it always will, and what is programmed then stays. `cuts.rs` does the same with schemes on top.

use floatgate_core::flash::{Oob, Role};
use floatgate_core::{Geometry, Lpn, Pbn, Ppn, ProgramOrder};
use floatgate_device::faulty::FaultPlan;
use floatgate_device::nand::{BlockState, Damage, Nand, NandError, Spare};
use floatgate_device::{Faulty, RamNand, Spares, SparesOptions};

const PAGES: u32 = 4;
const PAGE_BYTES: usize = 8;

fn chip(blocks: u32) -> RamNand {
    let geometry = Geometry::new(1, blocks, PAGES, 4, ProgramOrder::Ascending).unwrap();
    RamNand::new(&geometry, PAGE_BYTES).unsettled()
}

fn options(spare_blocks: u32) -> SparesOptions {
    SparesOptions {
        spare_blocks,
        ..SparesOptions::default()
    }
}

fn program<N: Nand>(spares: &mut Spares<N>, page: u32, sequence: u64) {
    let spare = Spare::new(Oob::new(Lpn(page), Role::Data), sequence);
    let data = [sequence as u8; PAGE_BYTES];
    spares.program(Ppn(page), &spare, &data).unwrap();
}

/// The sequence number of what a page reads as, many times over.
fn read<N: Nand>(spares: &mut Spares<N>, page: u32) -> Option<u8> {
    let mut once = || {
        let mut data = [0; PAGE_BYTES];
        match spares.read(Ppn(page), &mut data) {
            Ok(spare) => (!spare.lost).then_some(data[0]),
            Err(NandError::Unreadable { .. } | NandError::Erased { .. }) => None,
            Err(error) => panic!("{error}"),
        }
    };
    let first = once();
    for _ in 0..20 {
        assert_eq!(once(), first, "page {page} reads otherwise later");
    }
    first
}

/// A chip with blocks 0 and 1 of four: the first full, the second with two pages.
fn used(spare_blocks: u32) -> RamNand {
    let mut spares = Spares::format(chip(4 + spare_blocks), options(spare_blocks)).unwrap();
    for page in 0..6 {
        program(&mut spares, page, 1 + u64::from(page));
    }
    spares.into_nand()
}

fn mount(chip: RamNand, spare_blocks: u32) -> Spares<RamNand> {
    Spares::mount(chip, options(spare_blocks)).unwrap()
}

#[test]
fn a_page_that_only_looks_erased_is_not_programmed() {
    let mut chip = used(2);
    chip.taint(Ppn(6)).unwrap();
    let mut spares = mount(chip, 2);
    program(&mut spares, 6, 7);
    assert_eq!(read(&mut spares, 6), Some(7));
    assert_eq!(read(&mut spares, 5), Some(6));
}

/// The block has moved at a mount before, so that it does not move again until it is programmed.
#[test]
fn nor_is_it_where_the_block_has_moved_before() {
    let mut spares = mount(used(2), 2);
    let at = spares.place(Pbn(1)).unwrap();
    assert_ne!(at, Pbn(1));
    let mut chip = spares.into_nand();
    chip.taint(Ppn(at.0 * PAGES + 2)).unwrap();
    spares = mount(chip, 2);
    assert_eq!(spares.place(Pbn(1)), Some(at));
    program(&mut spares, 6, 7);
    assert_eq!(read(&mut spares, 6), Some(7));
    assert_eq!(read(&mut spares, 4), Some(5));
}

#[test]
fn a_block_that_only_looks_erased_is_erased_again() {
    let mut chip = used(2);
    for page in 8..12 {
        chip.taint(Ppn(page)).unwrap();
    }
    let mut spares = mount(chip, 2);
    program(&mut spares, 8, 7);
    assert_eq!(read(&mut spares, 8), Some(7));
}

/// The youngest page was torn, at the end of its block or not: it is there for good or it is not.
#[test]
fn a_page_that_can_be_read_a_few_times_more_is_kept_or_lost_at_once() {
    let (mut kept, mut lost) = (0, 0);
    for (page, reads) in [(5, 1), (5, 3), (5, 5), (5, 9)] {
        let mut chip = used(2);
        chip.fade(Ppn(page), reads).unwrap();
        match read(&mut mount(chip, 2), page) {
            Some(_) => kept += 1,
            None => lost += 1,
        }
    }
    let mut full = Spares::format(chip(6), options(2)).unwrap();
    (0..PAGES).for_each(|page| program(&mut full, page, 1 + u64::from(page)));
    let mut chip = full.into_nand();
    chip.fade(Ppn(3), 6).unwrap();
    assert_eq!(read(&mut mount(chip, 2), 3), Some(4));
    assert!(kept > 0 && lost > 0);
}

/// An erase was torn: what of the block can still be read stays readable.
#[test]
fn a_block_with_a_page_that_can_be_read_once_moves() {
    let mut chip = used(2);
    for (page, reads) in [(0, 7), (1, 1), (2, 7), (3, 7)] {
        chip.fade(Ppn(page), reads).unwrap();
    }
    let mut spares = mount(chip, 2);
    let found = [0, 1, 2, 3].map(|page| read(&mut spares, page));
    assert_eq!(found, [Some(1), None, Some(3), Some(4)]);
}

/// The same where the pages above look erased, as if the block had never been full.
#[test]
fn a_block_whose_erase_began_at_its_end_moves() {
    let mut chip = used(2);
    for page in 0..2 {
        chip.fade(Ppn(page), 7).unwrap();
        chip.taint(Ppn(page + 2)).unwrap();
    }
    let mut spares = mount(chip, 2);
    assert_eq!(
        [0, 1].map(|page| read(&mut spares, page)),
        [Some(1), Some(2)]
    );
}

/// A page that can be read just once must not tell the recovery one thing and the host another.
#[test]
fn a_page_that_can_be_read_once_cannot_mislead() {
    let mut chip = used(2);
    (0..4).for_each(|page| chip.fade(Ppn(page), 1).unwrap());
    let mut spares = mount(chip, 2);
    for page in 0..4 {
        let spare = spares.read_spare(Ppn(page));
        let is_there = spare.is_ok_and(|spare| !spare.lost);
        assert_eq!(is_there, read(&mut spares, page).is_some());
    }
}

/// A program has failed and the block's content has moved, to a block whose last page was torn. Whichever of the two
/// fades, every page is there.
#[test]
fn of_two_copies_every_page_is_kept() {
    let plan = FaultPlan {
        program_failures: vec![4],
        ..FaultPlan::default()
    };
    let mut spares = Spares::format(Faulty::new(chip(6), plan).unwrap(), options(2)).unwrap();
    (0..3).for_each(|page| program(&mut spares, page, 1 + u64::from(page)));
    // Operations: an erase, three programs, the failed one, an erase, three copies, and then the mark, which did not come.
    program(&mut spares, 3, 4);
    let fresh = spares.place(Pbn(0)).unwrap();
    let marked = spares.into_nand().into_inner();
    for (fading, reads) in [(fresh, 5), (fresh, 7), (Pbn(0), 5), (Pbn(0), 7)] {
        let mut chip = unmarked(&marked);
        for page in 0..3 {
            if fading == Pbn(0) || page == 2 {
                chip.fade(Ppn(fading.0 * PAGES + page), reads).unwrap();
            }
        }
        let mut spares = mount(chip, 2);
        for page in 0..3 {
            assert_eq!(
                read(&mut spares, page),
                Some(1 + page as u8),
                "{fading:?} {reads}"
            );
        }
    }
}

/// The chip without the mark of a bad block, and without what was written after it.
fn unmarked(marked: &RamNand) -> RamNand {
    let mut chip = marked.clone();
    chip.mark_bad(Pbn(0), BlockState::Good).unwrap();
    let fresh = (1..6)
        .map(Pbn)
        .find(|&block| chip.is_programmed(Ppn(block.0 * PAGES)));
    chip.vanish(Ppn(fresh.unwrap().0 * PAGES + 3)).unwrap();
    chip
}

/// The mark of a bad block that was torn: what the block held must not come back when the mark is gone.
#[test]
fn a_mark_that_does_not_last_is_set_again() {
    let plan = FaultPlan {
        program_failures: vec![4],
        ..FaultPlan::default()
    };
    let mut spares = Spares::format(Faulty::new(chip(6), plan).unwrap(), options(2)).unwrap();
    (0..PAGES).for_each(|page| program(&mut spares, page, 1 + u64::from(page)));
    let mut chip = spares.into_nand().into_inner();
    assert_eq!(chip.block_state(Pbn(0)), BlockState::ProgramFailed);
    chip.fade_mark(Pbn(0));
    chip.power_up();
    let mut spares = mount(chip, 2);
    spares.erase(Pbn(0)).unwrap();
    let mut chip = spares.into_nand();
    chip.power_up();
    let mut spares = mount(chip, 2);
    assert_eq!(spares.nand().block_state(Pbn(0)), BlockState::ProgramFailed);
    assert_eq!(read(&mut spares, 0), None);
}

/// A chip that says it is settled is taken at its word: nothing moves, nothing is erased.
#[test]
fn a_settled_chip_is_left_as_it_is() {
    let geometry = Geometry::new(1, 6, PAGES, 4, ProgramOrder::Ascending).unwrap();
    let mut spares = Spares::format(RamNand::new(&geometry, PAGE_BYTES), options(2)).unwrap();
    (0..6).for_each(|page| program(&mut spares, page, 1 + u64::from(page)));
    let spares = Spares::mount(spares.into_nand(), options(2)).unwrap();
    assert_eq!(spares.stats().settled_blocks, 0);
    assert_eq!(spares.place(Pbn(1)), Some(Pbn(1)));
}

/// What moved at one mount does not move at the next.
#[test]
fn a_mount_after_which_nothing_was_written_costs_nothing_the_next_time() {
    let spares = mount(used(2), 2);
    assert_eq!(spares.stats().settled_blocks, 1);
    let spares = mount(spares.into_nand(), 2);
    assert_eq!(spares.stats().settled_blocks, 0);
}

/// Without a spare block to move into, the device comes up all the same.
#[test]
fn without_a_spare_block_everything_stays_where_it_is() {
    let mut spares = Spares::format(chip(4), options(0)).unwrap();
    for page in (0..16).filter(|page| page % PAGES < 3) {
        program(&mut spares, page, 1 + u64::from(page));
    }
    let mut spares = mount(spares.into_nand(), 0);
    assert_eq!(spares.stats().settled_blocks, 0);
    program(&mut spares, 3, 20);
    assert_eq!(read(&mut spares, 3), Some(20));
}

/// BLog names a block by its number of erases: that stays when the content moves, and is another after an erase.
#[test]
fn a_block_keeps_its_number_of_erases_wherever_it_moves() {
    let mut spares = Spares::format(chip(6), options(2)).unwrap();
    for round in 0..5 {
        program(&mut spares, 0, 1 + round);
        let (at, erases) = (spares.place(Pbn(0)), spares.erase_count(Pbn(0)));
        spares.refresh(Pbn(0)).unwrap();
        assert_ne!(spares.place(Pbn(0)), at);
        assert_eq!(spares.erase_count(Pbn(0)), erases);
        spares = mount(spares.into_nand(), 2);
        assert_eq!(spares.erase_count(Pbn(0)), erases);
        spares.erase(Pbn(0)).unwrap();
        program(&mut spares, 0, 100 + round);
        assert!(spares.erase_count(Pbn(0)) > erases);
        spares.erase(Pbn(0)).unwrap();
    }
}

/// A failed erase that works when repeated costs no block.
#[test]
fn a_transient_erase_failure_costs_no_block() {
    let plan = FaultPlan {
        seed: 5,
        transient_erase_failures_ppm: 200_000,
        ..FaultPlan::default()
    };
    let mut spares = Spares::format(Faulty::new(chip(12), plan).unwrap(), options(8)).unwrap();
    for round in 0..30 {
        program(&mut spares, 0, 1 + round);
        spares.erase(Pbn(0)).unwrap();
    }
    let failed = spares.nand().counts().erases;
    assert!(failed > 2, "{failed} failures");
    assert!(spares.stats().retired_erase < failed / 2);
}
