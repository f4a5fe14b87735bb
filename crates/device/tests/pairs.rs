//! Paired pages at a cut in an upper page: which lower pages come back from their copies.

mod common;

use common::chip;
use floatgate_core::flash::{Oob, Role};
use floatgate_core::{Lpn, Pbn, Ppn};
use floatgate_device::faulty::{Cut, CutKind, FaultPlan};
use floatgate_device::nand::Spare;
use floatgate_device::spares::pairs::PairGuard;
use floatgate_device::{Faulty, Nand, NandError, RamNand, Spares, SparesOptions};

const PAGE_BYTES: usize = 32;
const OPTIONS: SparesOptions = SparesOptions {
    spare_blocks: 2,
    pair_guard: PairGuard::Flushed,
    wear_leveling: floatgate_core::wear::WearLeveling::Off,
    wear_gap: 0,
};
/// Pages 0 and 2 of a block are partners, and 1 and 4.
const PAGES: u32 = 8;

type Chip = Spares<Faulty<RamNand>>;

/// Programs a page with what tells its number and its version.
fn program(nand: &mut Chip, page: u32, version: u8) -> Result<(), NandError> {
    let spare = Spare::new(Oob::new(Lpn(page), Role::Data), u64::from(version));
    nand.program(Ppn(page), &spare, &[version; PAGE_BYTES])
}

/// Runs `work` on a new chip of one die, with the power cut in its last operation, and mounts what is left.
fn mounted_after(work: impl Fn(&mut Chip) -> Result<(), NandError>) -> Spares<RamNand> {
    let run = |cut| {
        let plan = FaultPlan {
            paired_pages: true,
            cut,
            ..FaultPlan::default()
        };
        let nand = RamNand::new(&chip(1, 4, PAGES, 1, &OPTIONS), PAGE_BYTES);
        let mut nand = Spares::format(Faulty::new(nand, plan).unwrap(), OPTIONS).unwrap();
        let outcome = work(&mut nand);
        (outcome, nand.into_nand())
    };
    let (outcome, whole) = run(None);
    outcome.unwrap();
    let cut = Cut {
        at: whole.operations() - 1,
        kind: CutKind::Torn,
    };
    let (outcome, torn) = run(Some(cut));
    assert!(matches!(outcome, Err(NandError::PowerCut)));
    assert_eq!(torn.counts().lower_pages, 1, "the partner went with it");
    Spares::mount(torn.into_inner(), OPTIONS).unwrap()
}

fn version_of(nand: &mut Spares<RamNand>, page: u32) -> Option<u8> {
    let mut data = [0; PAGE_BYTES];
    match nand.read(Ppn(page), &mut data) {
        Ok(_) => Some(data[0]),
        Err(NandError::Unreadable { .. }) => None,
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn a_flushed_page_comes_back_from_its_copy() {
    let mut nand = mounted_after(|nand| {
        program(nand, 0, 1)?;
        program(nand, 1, 2)?;
        nand.flush()?;
        program(nand, 2, 3)
    });
    assert_eq!(version_of(&mut nand, 0), Some(1));
    assert_eq!(nand.stats().restored_pages, 1);
}

#[test]
fn a_page_that_was_not_flushed_is_not_copied() {
    let mut nand = mounted_after(|nand| (0..3).try_for_each(|page| program(nand, page, 1)));
    assert_eq!(version_of(&mut nand, 0), None);
}

/// What the page replaced was flushed, and went with the erase.
#[test]
fn a_page_older_than_an_erase_comes_back_from_its_copy() {
    let mut nand = mounted_after(|nand| {
        program(nand, PAGES, 1)?;
        nand.flush()?;
        program(nand, 0, 2)?;
        program(nand, 1, 3)?;
        nand.erase(Pbn(1))?;
        program(nand, 2, 4)
    });
    assert_eq!(version_of(&mut nand, 0), Some(2));
}

/// The copy is of what was in the block before its erase.
#[test]
fn a_copy_of_an_earlier_generation_is_not_restored() {
    let mut nand = mounted_after(|nand| {
        program(nand, 0, 1)?;
        nand.flush()?;
        program(nand, 1, 2)?;
        program(nand, 2, 3)?;
        nand.erase(Pbn(0))?;
        (0..3).try_for_each(|page| program(nand, page, 4))
    });
    assert_eq!(version_of(&mut nand, 1), Some(4));
    assert_eq!(version_of(&mut nand, 0), None);
}
