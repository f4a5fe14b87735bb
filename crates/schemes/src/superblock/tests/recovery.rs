//! What is found after a power cut.

use super::*;
use floatgate_core::ftl::Run;
use floatgate_testkit::cut::{Change, CutFlash};
use floatgate_testkit::ram::RamFlash;

fn figure_1() -> (Case, Bench<Superblock>) {
    let case = Case::small(1, 16, 4, 9)
        .with("log_blocks", 4)
        .with("superblock_blocks", 3);
    let mut bench = Bench::<Superblock>::audited(&case);
    bench.play("W 0 1, W 4 1, W 8 1, W 1 1, W 2 1, W 0 1, W 12 1, W 27 1, W 5 1, W 9 1");
    (case, bench)
}

fn recover(case: &Case, ram: RamFlash) -> (Superblock, RamFlash) {
    let mut ram = ram;
    ram.ledger.counters = Default::default();
    let space = Space::whole(ram.ledger.geometry());
    let options = case.options_of::<Superblock>().unwrap();
    let ftl = Superblock::recover(&space, &options, RecoveryMode::FullScan, &mut ram).unwrap();
    (ftl, ram)
}

fn blocks(ftl: &Superblock, s: u32) -> Vec<u32> {
    ftl.b.blocks_of(s).map(|block| block.0).collect()
}

/// The full merge of Fig. 1 puts eight pages of blocks 0, 1, 2 and 9 into blocks 13 and 14. Until the last copy it is
/// undone, from then on it is finished; a trimmed page does not keep an emptied block in use.
#[test]
fn a_full_merge_that_is_cut_is_undone_or_finished() {
    let (case, mut bench) = figure_1();
    bench.play("T 7 1");
    let mut flash = CutFlash::new(bench.flash.clone());
    flash.states = Some(Vec::new());
    flash.ram.new_request(1);
    bench
        .ftl
        .write(&mut flash, &Run::whole(DieLpn(6), 1))
        .unwrap();
    let states = flash.states.take().unwrap();
    let first_erase = |(_, change): &(RamFlash, Change)| matches!(change, Change::Erase(_));
    let copies = states.iter().position(first_erase).expect("it erases");
    assert_eq!((copies, states.len()), (7, 7 + 4 + 1));
    for (i, (ram, _)) in states.into_iter().enumerate() {
        let (ftl, ram) = recover(&case, ram);
        let c = ram.ledger.counters;
        assert_eq!(c.programs.gc + c.reads.gc, 0, "cut {i}");
        let (list, live, erased) = if i < copies {
            (vec![0, 1, 2, 9, 10], 36, i.div_ceil(4))
        } else {
            // The blocks of the merge come last now: roles may change, data does not.
            (vec![10, 13, 14], 35, (copies + 4).saturating_sub(i))
        };
        assert_eq!(blocks(&ftl, 0), list, "cut {i}");
        assert_eq!(c.erases.gc, erased as u64, "cut {i}");
        assert_eq!(ftl.audit(&ram), Ok(live), "cut {i}");
    }
}

/// Every programmed page is read, and one more of each block that is not full.
#[test]
fn reads_of_the_scan() {
    let (case, bench) = figure_1();
    // Blocks 0 to 10 are full, 11 and 12 hold a page, three are blank.
    let (ftl, ram) = recover(&case, bench.flash.clone());
    let reads = ram.ledger.counters.oob_reads;
    assert_eq!(
        (reads.map, reads.sum()),
        (11 * 4 + 2 * 2 + 3, 11 * 4 + 2 * 2 + 3)
    );
    assert_eq!(blocks(&ftl, 0), [0, 1, 2, 9, 10]);
    let most = Superblock::recovery_costs(
        ram.ledger.geometry(),
        &case.options_of::<Superblock>().unwrap(),
    );
    assert_eq!((most.len(), most[0].oob_reads), (1, 16 * 4));
}

/// The directory leads to the pages as before, except where a trimmed page that came back is not in the OOBs.
#[test]
fn the_directory_is_found() {
    let case = Case {
        logical_pages: 10 * 64,
        ..Case::small(1, 24, 64, 10)
    }
    .with("log_blocks", 6);
    let mut bench = Bench::<Superblock>::audited(&case);
    bench.audit_each = false;
    let mut rng = SplitMix64::new(5);
    for _ in 0..3_000 {
        bench.write(rng.below(640) as u32, 1).unwrap();
    }
    let before = (0..640).filter(|&lpn| follow(&mut bench, lpn)).count();
    (bench.ftl, bench.flash) = recover(&case, bench.flash);
    let after = (0..640).filter(|&lpn| follow(&mut bench, lpn)).count();
    assert_eq!((before, after), (640, 640));
    for lpn in (0..640).step_by(3) {
        bench.trim(lpn, 1).unwrap();
        bench.write((lpn + 1) % 640, 1).unwrap();
    }
    (bench.ftl, bench.flash) = recover(&case, bench.flash);
    let after = (0..640).filter(|&lpn| follow(&mut bench, lpn)).count();
    assert!((1..640).contains(&after), "{after} found");
}
