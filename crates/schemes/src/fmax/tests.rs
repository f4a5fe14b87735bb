use super::*;
use crate::bast::Bast;
use crate::parts::hybrid::drawn::drawn;
use floatgate_core::Striped;
use floatgate_core::described::Described;
use floatgate_core::geometry::ProgramOrder;
use floatgate_core::rng::SplitMix64;
use floatgate_testkit::suite::{
    Bench, Case, random_request, random_shape, run_checked, with_random_map,
};

fn small() -> Case {
    Case::small(1, 7, 4, 4).with("log_blocks", 2)
}

/// The replacement blocks in victim order: `logical block:[pages by position]`, invalid ones in parentheses.
fn replacement_blocks(bench: &Bench<Fmax>) -> String {
    let h = &bench.ftl.0.h;
    let draw = |block: Log| {
        let owner = h.owner(block).unwrap();
        format!("{}:{}", owner.0, drawn(h, &bench.flash, block))
    };
    let blocks = h.lists.iter(BLOCKS).map(Log);
    blocks.map(draw).collect::<Vec<_>>().join(" ")
}

#[test]
fn worked_example_step_by_step() {
    // Host programs, host reads, gc programs, gc erases, full merges, OOB reads (map).
    let rows = [
        ("W 1 1", [1, 0, 0, 0, 0, 0], "0:[1]"),
        ("W 5 1", [2, 0, 0, 0, 0, 0], "0:[1] 1:[5]"),
        ("W 2 1", [3, 0, 0, 0, 0, 0], "0:[1,2] 1:[5]"),
        ("W 1 1", [4, 0, 0, 0, 0, 0], "0:[(1),2,1] 1:[5]"),
        ("R 2 1", [4, 1, 0, 0, 0, 2], "0:[(1),2,1] 1:[5]"),
        ("R 3 1", [4, 2, 0, 0, 0, 5], "0:[(1),2,1] 1:[5]"),
        ("R 9 1", [4, 3, 0, 0, 0, 5], "0:[(1),2,1] 1:[5]"),
        ("W 9 1", [5, 3, 4, 2, 1, 8], "1:[5] 2:[9]"),
        ("W 5 1", [6, 3, 4, 2, 1, 8], "1:[(5),5] 2:[9]"),
        ("W 0 4", [10, 3, 8, 4, 2, 10], "2:[9] 0:[0,1,2,3]"),
    ];
    let mut bench = Bench::<Fmax>::audited(&small().with("lookup", "oob"));
    for (i, (request, expected, blocks)) in rows.into_iter().enumerate() {
        bench.play(request);
        let c = bench.counters();
        let merges = bench.scheme().merges;
        let got = [
            c.programs.host,
            c.reads.host,
            c.programs.gc,
            c.erases.gc,
            merges.full,
            c.oob_reads.map,
        ];
        assert_eq!(got, expected, "step {}", i + 1);
        assert_eq!(replacement_blocks(&bench), blocks, "step {}", i + 1);
        assert_eq!(merges.full_merge_associated, merges.full);
        assert_eq!((merges.switch, merges.partial, merges.dead), (0, 0, 0));
    }
    let mut seen = Observation::default();
    bench.ftl.observe(&mut seen);
    let values: Vec<f64> = seen.values.iter().map(|n| n.value).collect();
    // Two blocks with five pages; folds of one logical block each, after 3 and 2 of 4 pages; OOB reads of
    // searches and folds.
    assert_eq!(values, [2.0, 5.0, 1.0, 0.625, 5.0, 5.0]);
}

#[test]
fn a_page_that_is_not_live_costs_no_search_and_writes_and_trims_search_nothing() {
    let mut bench = Bench::<Fmax>::new(&small().with("lookup", "oob")).unwrap();
    bench.play("W 1 1, T 2 1, W 1 1, R 2 1, T 1 1, R 1 1");
    assert_eq!(bench.counters().oob_reads.map, 0);
    assert_eq!(bench.flash.unwritten_reads, 2);
    // A fold reads the OOBs of a dead replacement block as well.
    bench.play("W 5 1, W 9 1");
    let merges = bench.scheme().merges;
    assert_eq!((merges.dead, merges.full), (1, 0));
    assert_eq!(bench.counters().oob_reads.map, 2);
}

#[test]
fn each_victim_rule_folds_another_block() {
    // Block 0 is oldest, block 2 has the most pages, block 1 was written longest ago.
    let requests = "W 1 1, W 5 1, W 9 1, W 10 1, W 9 1, W 2 1";
    for (victim, left) in [
        ("fifo", "1:[5] 2:[(9),10,9] 3:[13]"),
        ("lru", "2:[(9),10,9] 0:[1,2] 3:[13]"),
        ("fullest", "0:[1,2] 1:[5] 3:[13]"),
    ] {
        let case = Case::small(1, 8, 4, 4)
            .with("log_blocks", 3)
            .with("victim", victim);
        let mut bench = Bench::<Fmax>::audited(&case);
        bench.play(requests).play("W 13 1");
        assert_eq!(replacement_blocks(&bench), left, "{victim}");
    }
    // Ties of `fullest`: the block taken earliest, whichever was filled last.
    let case = small().with("victim", "fullest");
    let mut bench = Bench::<Fmax>::new(&case).unwrap();
    bench.play("W 1 1, W 5 1, W 5 1, W 1 1, W 9 1");
    assert_eq!(replacement_blocks(&bench), "1:[(5),5] 2:[9]");
}

#[test]
fn an_aligned_block_is_switched_only_if_asked_for() {
    for (switch_merge, expected) in [(false, (0, 0, 2, 8)), (true, (1, 1, 0, 3))] {
        let case = small().with("switch_merge", switch_merge);
        let mut bench = Bench::<Fmax>::audited(&case);
        // Block 0 is rewritten whole, block 1 has one page in place.
        bench.play("W 0 4, W 4 1, W 9 1, W 13 1");
        let merges = bench.scheme().merges;
        let copies = bench.counters().programs.gc;
        let got = (merges.switch, merges.partial, merges.full, copies);
        assert_eq!(got, expected);
    }
}

/// By counters, FMAX is BAST with another victim and without merges of aligned blocks.
#[test]
fn with_switch_merges_and_the_same_victim_it_is_bast() {
    let mut rng = SplitMix64::new(4);
    for _ in 0..200 {
        let mut case = random_shape(&mut rng);
        let logs = 1 + rng.below(4) as u32;
        case.blocks = case.data_blocks() + logs + 1;
        let victim = ["fifo", "lru"][rng.below(2) as usize];
        let log_blocks = logs * case.dies;
        case = case.with("log_blocks", log_blocks).with("victim", victim);
        let fmax = case.clone().with("switch_merge", true);
        let mut fmax = Bench::<Striped<Fmax>>::new(&fmax).unwrap();
        let mut bast = Bench::<Striped<Bast>>::new(&case).unwrap();
        for _ in 0..case.requests {
            let request = random_request(&mut rng, case.logical_pages);
            fmax.play(&request);
            bast.play(&request);
        }
        assert_eq!(fmax.counters(), bast.counters(), "{case}");
        assert_eq!(fmax.scheme().merges, bast.scheme().merges, "{case}");
    }
}

#[test]
fn the_search_changes_nothing_but_oob_reads() {
    let mut rng = SplitMix64::new(8);
    let case = Case::small(2, 20, 4, 8).with("log_blocks", 8);
    let mut ram = Bench::<Striped<Fmax>>::new(&case).unwrap();
    let mut oob = Bench::<Striped<Fmax>>::new(&case.clone().with("lookup", "oob")).unwrap();
    for _ in 0..2_000 {
        let request = random_request(&mut rng, case.logical_pages);
        ram.play(&request);
        oob.play(&request);
    }
    assert_eq!(ram.scheme().merges, oob.scheme().merges);
    let mut counters = oob.counters();
    let searched: f64 = oob.scheme().stats.iter().map(|n| n.value).sum();
    assert_eq!(counters.oob_reads.map as f64, searched);
    assert!(counters.oob_reads.map > 1_000);
    counters.oob_reads.map = 0;
    assert_eq!(ram.counters(), counters);
}

/// With a replacement block for every data block there is no thrashing: only full ones are folded.
#[test]
fn as_many_replacement_blocks_as_data_blocks_end_thrashing() {
    let case = |log_blocks| Case::small(1, 41, 8, 20).with("log_blocks", log_blocks);
    let folds = |log_blocks: u32| {
        let mut bench = Bench::<Fmax>::new(&case(log_blocks)).unwrap();
        let mut rng = SplitMix64::new(2);
        (0..5_000).for_each(|_| bench.write(rng.below(160) as u32, 1).unwrap());
        bench.audit().unwrap();
        let merges = bench.scheme().merges;
        (merges.full, merges.log_block_utilisation(8))
    };
    let (few, utilisation) = folds(20);
    assert_eq!(utilisation, 1.0);
    assert!(few <= 5_000 / 8);
    let (many, utilisation) = folds(10);
    assert!(many > 3 * few && utilisation < 0.5, "{many} {utilisation}");
}

#[test]
fn memory_of_the_papers_example() {
    // FASTer's device: 8 GB of 2 KB pages, 3 % of it log.
    let blocks = 65_536;
    let order = ProgramOrder::Any;
    let geometry = Geometry::new(1, blocks + 2_000, 64, u64::from(blocks) * 64, order).unwrap();
    let mut options = FmaxOptions {
        log_blocks: Some(blocks * 3 / 100),
        ..FmaxOptions::default()
    };
    assert_eq!(options.log_blocks, Some(1_966));
    let kib = |options: &FmaxOptions| -> Vec<String> {
        let tables = Fmax::tables(&geometry, options);
        let kib = tables.iter().map(|t| t.bits() as f64 / 8.0 / 1024.0);
        kib.map(|k| format!("{k:.1}")).collect()
    };
    assert_eq!(kib(&options), ["128.0", "829.4"]);
    options.lookup = Lookup::Oob;
    assert_eq!(kib(&options), ["128.0", "7.7"]);
}

#[test]
fn what_does_not_fit_is_refused_with_its_reason() {
    let refusal = |case: Case| Bench::<Striped<Fmax>>::refusal(&case);
    let key = |case: Case| refusal(case).key.unwrap();
    let none = || Case::small(1, 7, 4, 4);
    assert_eq!(key(none()), "log_blocks");
    assert_eq!(key(none().with("log_blocks", 0)), "log_blocks");
    assert_eq!(key(none().with("log_blocks", u32::MAX - 1)), "blocks");
    assert_eq!(key(none().with("log_blocks", 3)), "blocks");
    assert_eq!(key(small().with("victim", "random")), "victim");
    assert_eq!(key(small().with("map_blocks", 2)), "blocks");
    let sum = refusal(none().with("log_blocks", 3)).message;
    assert!(sum.contains("4 data blocks + 3 log blocks + 1 merge reserve = 8"));
    let one = Case::small(1, 6, 4, 4).with("log_blocks", 1);
    assert_eq!(run_checked::<Fmax>(&one, 1), Ok(()));
}

#[test]
fn spare_areas_tell_replacement_blocks() {
    let case = Case::small(1, 24, 8, 12).with("log_blocks", 6);
    let mut bench = Bench::<Fmax>::new(&case).unwrap();
    let mut rng = SplitMix64::new(3);
    for _ in 0..1_000 {
        bench.play(&random_request(&mut rng, case.logical_pages));
        let (h, flash) = (&bench.ftl.0.h, &bench.flash);
        for block in h.lists.iter(BLOCKS).map(Log) {
            for position in 0..h.written(flash, block) {
                let at = h.space().geometry.ppn(h.log_block(block), position);
                let oob = flash.peek_oob(at).unwrap().oob;
                assert_eq!(
                    (oob.lpn, oob.role),
                    (h.space().device_lpn(h.log_page(block, position)), Role::Log)
                );
            }
        }
    }
}

#[test]
fn random_devices_and_options_keep_their_budgets() {
    let mut rng = SplitMix64::new(78);
    for _ in 0..400 {
        let mut case = random_shape(&mut rng);
        let logs = 1 + rng.below(6) as u32;
        case.blocks = case.data_blocks() + logs + 1 + rng.below(2) as u32;
        if rng.below(3) == 0 {
            let entries = case.data_blocks() + logs;
            case = with_random_map(&mut rng, case, entries);
        }
        let log_blocks = logs * case.dies;
        case = case
            .with("log_blocks", log_blocks)
            .with("victim", ["fifo", "lru", "fullest"][rng.below(3) as usize])
            .with("lookup", ["ram", "oob"][rng.below(2) as usize])
            .with("switch_merge", rng.below(2) == 0);
        if let Err(error) = run_checked::<Striped<Fmax>>(&case, 1) {
            panic!("{error}\n  replay: {case}");
        }
    }
}
