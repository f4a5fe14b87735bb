//! What is found after a power cut.

use super::*;
use floatgate_core::Lpn;
use floatgate_core::ftl::Run;
use floatgate_core::rng::SplitMix64;
use floatgate_testkit::cut::{Change, CutFlash};
use floatgate_testkit::ram::RamFlash;

fn recover(case: &Case, mut ram: RamFlash) -> (Striped<Blog>, RamFlash) {
    ram.ledger.counters = Default::default();
    let space = Space::whole(ram.ledger.geometry());
    let options = case.options_of::<Striped<Blog>>().unwrap();
    let ftl = Striped::<Blog>::recover(&space, &options, RecoveryMode::FullScan, &mut ram);
    (ftl.unwrap(), ram)
}

/// By logical block its data block and its log blocks; by log block whom it serves, if anybody.
type Lists = (Vec<(Pbn, Vec<Pbn>)>, Vec<(Pbn, Vec<Lbn>)>);

fn lists(ftl: &Striped<Blog>) -> Lists {
    let blog = &ftl.instances()[0];
    let block = |row| blog.logs.row(row).block;
    let held = |lbn| blog.logs.rows_of(lbn).map(block).collect();
    let of_logical = (0..)
        .map(Lbn)
        .zip(&blog.data)
        .map(|(lbn, &data)| (data, held(lbn)));
    let rows = (0..blog.logs.len()).filter(|&row| blog.logs.association(row) > 0);
    let mut of_logs: Vec<_> = rows
        .map(|row| (block(row), blog.logs.served(row).collect()))
        .collect();
    of_logs.sort_unstable();
    (of_logical.collect(), of_logs)
}

/// Worked example B up to step 24: log blocks in use by several, merges of both kinds.
const STEPS: &str = "W 0 1, W 4 1, W 8 1, W 1 1, W 2 1, W 0 1, W 12 1, W 27 1, W 5 1, W 9 1, W 0 1, W 13 1, \
                     W 14 1, W 8 1, W 10 1, W 20 1, W 32 1, W 33 1, W 34 1, W 35 1, W 32 1, W 33 1, W 34 1, W 35 1";

/// After every step of the worked example DLT and LMT are found as they were, no page is copied, and the reads are those
/// of the scan.
#[test]
fn the_lists_are_as_before() {
    for layout in ["mlc", "slc"] {
        let case = figure_2(layout);
        let mut bench = Device::audited(&case);
        for step in STEPS.split(", ") {
            bench.play(step);
            let (ftl, ram) = recover(&case, bench.flash.clone());
            assert_eq!(lists(&ftl), lists(&bench.ftl), "{layout}, {step}");
            let c = ram.ledger.counters;
            assert_eq!(c.programs.sum() + c.reads.sum(), 0, "{layout}, {step}");
            let up_to_erased =
                |block| 4.min(1 + u64::from(bench.flash.ledger().write_pointer(Pbn(block))));
            let scan = match layout {
                "mlc" => (0..14).map(up_to_erased).sum(),
                _ => 14 * 4,
            };
            assert_eq!((c.oob_reads.map, c.oob_reads.sum()), (scan, scan), "{step}");
            let options = case.options_of::<Striped<Blog>>().unwrap();
            let most = Striped::<Blog>::recovery_costs(ram.ledger.geometry(), &options);
            assert!(scan <= most[0].oob_reads && most[0].oob_reads == 14 * 4);
            assert_eq!(ftl.audit(&ram), Ok(36));
        }
    }
}

/// Step 25 swaps block 11 in for logical block 8. With block 8 erased and nothing programmed since, the log block
/// is found as the data block, and its sub-tables are understood.
#[test]
fn a_swap_is_found_without_a_program_that_tells() {
    for layout in ["mlc", "slc"] {
        let case = figure_2(layout);
        let mut bench = Device::audited(&case);
        bench.play(STEPS);
        let mut flash = CutFlash::new(bench.flash.clone());
        flash.states = Some(Vec::new());
        flash.ram.new_request(1);
        let written = bench.ftl.write(&mut flash, &Run::whole(Lpn(35), 1));
        written.unwrap();
        let states = flash.states.take().unwrap();
        let changes: Vec<Change> = states.iter().map(|(_, change)| *change).collect();
        assert_eq!(
            changes,
            [Change::Erase(Pbn(8)), Change::Program(Ppn(8 * 4))]
        );
        for (i, (ram, _)) in states.into_iter().enumerate() {
            bench.flash.ledger.counters = Default::default();
            (bench.ftl, bench.flash) = recover(&case, ram);
            let blog = &bench.ftl.instances()[0];
            assert_eq!(blog.data[8], Pbn([8, 11][i]), "{layout}");
            assert_eq!(bench.counters().programs.sum(), 0);
            assert_eq!(bench.ftl.audit(&bench.flash), Ok(36));
            for lpn in 0..36 {
                bench.flash.new_request(1);
                let Ok(()) = bench.ftl.read(&mut bench.flash, &Run::whole(Lpn(lpn), 1));
            }
            if layout == "mlc" {
                check_sub_tables(&bench);
            }
        }
    }
}

/// The same after any writes, on a device so small that data blocks come back to the logical blocks that had them: what
/// was written beside one in its earlier life does not count.
#[test]
fn the_lives_of_a_data_block_are_told_apart() {
    let mut rng = SplitMix64::new(3);
    for layout in ["mlc", "slc"] {
        let case = Case::small(1, 6, 4, 3)
            .with("layout", layout)
            .with("log_blocks", 2);
        let case = case.with("u", 2).with("l", 3);
        let mut bench = Device::audited(&case);
        for number in 0..400 {
            bench.write(rng.below(12) as u32, 1).unwrap();
            let (ftl, _) = recover(&case, bench.flash.clone());
            assert_eq!(lists(&ftl), lists(&bench.ftl), "{layout}, write {number}");
        }
    }
}
