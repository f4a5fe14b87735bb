use super::*;
use crate::fast::Fast;
use crate::parts::hybrid::drawn::drawn;
use floatgate_core::Striped;
use floatgate_core::described::Described;
use floatgate_core::ftl::Ftl;
use floatgate_core::geometry::ProgramOrder;
use floatgate_core::report::Merges;
use floatgate_core::rng::SplitMix64;
use floatgate_testkit::suite::{
    Bench, Case, random_request, random_shape, run_checked, with_random_map,
};

/// The small device of the worked example: four logical blocks of four pages, all options at their defaults.
fn figure_5() -> Case {
    Case::small(1, 9, 4, 4).with("log_blocks", 4)
}

const FIGURE_5_WRITES: [u32; 23] = [
    1, 5, 9, 13, 2, 1, 5, 2, 1, 6, 9, 1, 2, 3, 6, 2, 1, 3, 2, 1, 10, 3, 9,
];

fn plain_fast(case: Case) -> Case {
    case.with("second_chance", false).with("isolation", false)
}

/// The log blocks as the paper draws them: kind, pages by position, invalid ones in parentheses.
fn log_blocks(bench: &Bench<Faster>) -> String {
    let h = &bench.ftl.0.h;
    let draw = |log: Log| {
        let kind = ["H", "C", "I"][h.watch.kind(log)];
        format!("{kind}{}", drawn(h, &bench.flash, log))
    };
    let lists = [FULL, CHANCE, HOST, ISOLATION].into_iter();
    let logs = lists.flat_map(|list| h.lists.iter(list).map(Log));
    logs.map(draw).collect::<Vec<_>>().join(" ")
}

/// Host programs, gc programs, gc erases, second chances, isolation copies, carried victims, full merges.
fn totals(bench: &Bench<Faster>) -> [u64; 7] {
    let c = bench.counters();
    [
        c.programs.host,
        c.programs.gc,
        c.erases.gc,
        bench.extra("second_chance_copies"),
        bench.extra("isolation_copies"),
        bench.extra("carried_victims"),
        bench.scheme().merges.full,
    ]
}

fn stat(bench: &Bench<Faster>, name: &str) -> u64 {
    let found = bench.scheme().stats.into_iter().find(|n| n.name == name);
    found.expect(name).value as u64
}

fn play_figure_5(bench: &mut Bench<Faster>) {
    bench.audit_each = true;
    for page in FIGURE_5_WRITES {
        bench.play(&format!("W {page} 1"));
    }
}

#[test]
fn worked_example_step_by_step() {
    let rows = [
        (
            12,
            [12, 0, 0, 0, 0, 0, 0],
            "H[(1),(5),(9),13] H[(2),(1),5,2] H[(1),6,9,1]",
        ),
        (13, [13, 3, 2, 3, 0, 2, 0], "H[(1),6,9,1] C[13,5,(2)] H[2]"),
        (
            16,
            [16, 3, 2, 3, 0, 2, 0],
            "H[(1),(6),9,1] H[(2),3,6,2] C[13,5,(2)]",
        ),
        (
            17,
            [17, 8, 4, 8, 0, 4, 0],
            "C[13,5,(2),9] C[(1),3,6,2] H[1]",
        ),
        (
            20,
            [20, 8, 4, 8, 0, 4, 0],
            "C[13,5,(2),9] C[(1),(3),6,(2)] H[(1),3,2,1]",
        ),
        (
            21,
            [21, 15, 6, 8, 3, 5, 1],
            "C[(1),(3),6,(2)] H[(1),3,2,1] H[10] I[(13),5,9]",
        ),
        (
            22,
            [22, 19, 7, 8, 3, 5, 2],
            "C[(1),(3),(6),(2)] H[(1),(3),2,1] H[10,3] I[(13),(5),9]",
        ),
        (
            23,
            [23, 19, 7, 8, 3, 5, 2],
            "C[(1),(3),(6),(2)] H[(1),(3),2,1] H[10,3,9] I[(13),(5),(9)]",
        ),
    ];
    let mut bench = Bench::<Faster>::audited(&figure_5());
    let mut done = 0;
    for (step, expected, blocks) in rows {
        for page in &FIGURE_5_WRITES[done..step] {
            bench.play(&format!("W {page} 1"));
        }
        done = step;
        assert_eq!(totals(&bench), expected, "step {step}");
        assert_eq!(log_blocks(&bench), blocks, "step {step}");
    }
    assert_eq!(bench.extra("progressive_merges"), 2);
    bench.read_all().unwrap();
}

#[test]
fn worked_example_without_isolation_area() {
    let case = Case::small(1, 8, 4, 4)
        .with("log_blocks", 3)
        .with("isolation", false);
    let mut bench = Bench::<Faster>::new(&case).unwrap();
    play_figure_5(&mut bench);
    assert_eq!(totals(&bench), [23, 20, 8, 8, 0, 4, 1]);
    assert_eq!(bench.scheme().merges.full_merge_associated, 3);
    assert_eq!(bench.extra("progressive_merges"), 0);
}

#[test]
fn worked_example_as_plain_fast() {
    let case = plain_fast(Case::small(1, 8, 4, 4).with("log_blocks", 3));
    let mut bench = Bench::<Faster>::new(&case).unwrap();
    play_figure_5(&mut bench);
    assert_eq!(totals(&bench), [23, 12, 6, 0, 0, 0, 3]);
    assert_eq!(bench.scheme().merges.full_merge_associated, 3);
}

/// Pages 2, 1, 3, 2 were written again in time; 13, 5, 9 became cold; 6 left with the rebuild of 5.
#[test]
fn second_chances_of_the_worked_example_are_won_lost_or_merged() {
    let mut bench = Bench::<Faster>::new(&figure_5()).unwrap();
    play_figure_5(&mut bench);
    let chances = ["given", "won", "lost", "merged"];
    let counted = chances.map(|what| stat(&bench, &format!("second_chances_{what}")));
    assert_eq!(counted, [8, 4, 3, 1]);
    assert_eq!(stat(&bench, "isolation_dropped"), 1); // page 9
    let mut seen = Observation::default();
    bench.ftl.observe(&mut seen);
    let value = |name| seen.values.iter().find(|n| n.name == name).unwrap().value;
    assert_eq!(value("isolation_fill"), 0.75);
    assert_eq!(value("isolation_pages"), 0.0);
    assert_eq!(value("association"), 1.0);
    assert_eq!(value("victim_valid_share"), 0.75);
}

#[test]
fn a_trimmed_second_chance_page_has_won_and_a_trimmed_cold_page_costs_nothing() {
    let mut bench = Bench::<Faster>::audited(&figure_5());
    for page in &FIGURE_5_WRITES[..21] {
        bench.play(&format!("W {page} 1"));
    }
    let won = stat(&bench, "second_chances_won");
    bench.play("T 6 1");
    assert_eq!(stat(&bench, "second_chances_won"), won + 1);
    let copies = bench.counters().programs.gc;
    bench.play("T 5 1, T 9 1, W 10 1");
    assert_eq!(bench.counters().programs.gc, copies);
    assert_eq!(bench.extra("progressive_merges"), 1);
}

/// More cold pages a write end the same merges earlier; never more than there are.
#[test]
fn merge_per_write_empties_the_isolation_block_faster() {
    let case = figure_5().with("merge_per_write", 3);
    let mut bench = Bench::<Faster>::new(&case).unwrap();
    for page in &FIGURE_5_WRITES[..21] {
        bench.play(&format!("W {page} 1"));
    }
    assert_eq!(bench.extra("progressive_merges"), 3);
    assert!(log_blocks(&bench).ends_with("I[(13),(5),(9)]"));
    let huge = figure_5().with("merge_per_write", u32::MAX - 1);
    assert_eq!(run_checked::<Faster>(&huge, 1), Ok(()));
}

#[test]
fn both_options_off_is_fast_without_a_sequential_log_block() {
    let mut rng = SplitMix64::new(21);
    let mut victims = 0;
    for _ in 0..300 {
        let mut case = random_shape(&mut rng);
        let logs = 1 + rng.below(6) as u32;
        case.blocks = case.data_blocks() + logs + 1 + rng.below(3) as u32;
        let log_blocks = logs * case.dies;
        case = case.with("log_blocks", log_blocks);
        let fast = case.clone().with("sw_log", false);
        let mut fast = Bench::<Striped<Fast>>::new(&fast).unwrap();
        let mut faster = Bench::<Striped<Faster>>::new(&plain_fast(case.clone())).unwrap();
        for _ in 0..case.requests {
            let request = random_request(&mut rng, case.logical_pages);
            fast.play(&request);
            faster.play(&request);
        }
        faster.audit().unwrap();
        assert_eq!(fast.counters(), faster.counters(), "{case}");
        assert_eq!(fast.scheme().merges, faster.scheme().merges, "{case}");
        assert_eq!(fast.flash.unwritten_reads, faster.flash.unwritten_reads);
        victims += fast.scheme().merges.full;
    }
    assert!(victims > 2_000, "only {victims} merges were compared");
}

/// Uniform single-page writes, the first 8,000 dropped, 20,000 counted.
fn uniform(blocks: u32, logs: u32, pages: u32) -> (u64, Merges) {
    let case = Case::small(1, blocks + logs + 1, pages, blocks).with("log_blocks", logs);
    let mut bench = Bench::<Faster>::new(&plain_fast(case)).unwrap();
    let mut rng = SplitMix64::new(1);
    let mut write = |bench: &mut Bench<Faster>| {
        let page = rng.below(u64::from(blocks * pages)) as u32;
        bench.write(page, 1).unwrap();
    };
    (0..8_000).for_each(|_| write(&mut bench));
    let before = bench.counters().programs.gc;
    bench.ftl.reset_counters();
    (0..20_000).for_each(|_| write(&mut bench));
    bench.ftl.audit(&bench.flash).unwrap();
    (bench.counters().programs.gc - before, bench.scheme().merges)
}

/// Every victim took 16 writes and every rebuild copies 16 pages: `A = 1 + k` without an error.
#[test]
fn write_amplification_of_plain_fast_is_one_more_than_the_rebuilds_a_victim() {
    for (blocks, copies, full, associated, dead) in
        [(50, 113_536, 1_250, 7_096, 0), (5, 15_568, 739, 973, 511)]
    {
        let (gc_programs, merges) = uniform(blocks, 6, 16);
        assert_eq!(gc_programs, copies);
        assert_eq!(
            (merges.full, merges.full_merge_associated, merges.dead),
            (full, associated, dead)
        );
        assert_eq!(
            gc_programs * (merges.full + merges.dead),
            20_000 * associated
        );
    }
}

#[test]
fn memory_of_the_papers_example() {
    // 32 GB of 2 KB pages, 3 % of it log.
    let blocks = 262_144;
    let order = ProgramOrder::Any;
    let geometry = Geometry::new(1, blocks + 8_000, 64, u64::from(blocks) * 64, order).unwrap();
    let log_blocks = blocks * 3 / 100;
    let options = FasterOptions {
        log_blocks: Some(log_blocks),
        ..FasterOptions::default()
    };
    assert_eq!(log_blocks, 7_864);
    let tables = Faster::tables(&geometry, &options);
    let bits: Vec<u64> = tables.iter().map(Table::bits).collect();
    assert_eq!(bits, [262_144 * 18, 7_864 * 64 * 56, 7_864]);
    let kib: Vec<f64> = bits.iter().map(|&b| b as f64 / 8.0 / 1024.0).collect();
    assert_eq!((kib[0], kib[1]), (576.0, 3_440.5));
    assert!((kib[2] - 0.96).abs() < 0.01);
    assert_eq!(format!("{:.2}", kib.iter().sum::<f64>() / 1024.0), "3.92");
    // The paper's page map: four bytes a page.
    assert_eq!(u64::from(geometry.logical_pages) * 4, 64 << 20);
}

#[test]
fn what_does_not_fit_is_refused_with_its_reason() {
    let key = |case: Case| Bench::<Striped<Faster>>::refused_key(&case);
    let small = || Case::small(1, 9, 4, 4);
    assert_eq!(key(small()), "log_blocks");
    assert_eq!(key(small().with("log_blocks", 1)), "log_blocks");
    assert_eq!(
        key(Case::small(2, 9, 4, 4).with("log_blocks", 5)),
        "log_blocks"
    );
    assert_eq!(key(figure_5().with("second_chance", false)), "isolation");
    assert_eq!(
        key(figure_5().with("merge_per_write", 0)),
        "merge_per_write"
    );
    assert_eq!(key(figure_5().with("map_blocks", 1)), "blocks");
    assert_eq!(key(small().with("log_blocks", u32::MAX - 1)), "blocks");
    let sum = Bench::<Striped<Faster>>::refusal(&small().with("log_blocks", 5)).message;
    assert!(sum.contains("4 data blocks + 5 log blocks + 1 merge reserve = 10"));
    // One log block is enough where nothing is isolated.
    let one = |case: Case| case.with("log_blocks", 1).with("isolation", false);
    assert_eq!(
        run_checked::<Faster>(&one(Case::small(1, 6, 4, 4)), 1),
        Ok(())
    );
    let one = one(Case::small(1, 6, 4, 4)).with("second_chance", false);
    assert_eq!(run_checked::<Faster>(&one, 1), Ok(()));
    // The map has an entry more than blocks: 4 data, 4 log, 1 for the chance block of a reclaim.
    let mapped = |entries| {
        Case::small(1, 11, 4, 4)
            .with("log_blocks", 4)
            .with("map_blocks", 2)
            .with("map_entries_per_page", entries)
    };
    assert_eq!(key(mapped(2)), "map_blocks");
    assert_eq!(run_checked::<Faster>(&mapped(3), 1), Ok(()));
}

#[test]
fn spare_areas_tell_kind_and_order_of_log_blocks() {
    let case = Case::small(1, 24, 8, 12).with("log_blocks", 6);
    let mut bench = Bench::<Faster>::new(&case).unwrap();
    let mut rng = SplitMix64::new(3);
    for _ in 0..2_000 {
        bench.play(&random_request(&mut rng, case.logical_pages));
        let (h, flash) = (&bench.ftl.0.h, &bench.flash);
        let oob = |log, position| {
            let at = h.space().geometry.ppn(h.log_block(log), position);
            flash.peek_oob(at).unwrap()
        };
        for list in [HOST, CHANCE, ISOLATION, FULL] {
            let mut last = 0;
            for log in h.lists.iter(list).map(Log) {
                let roles = [Role::Log, Role::LogChance, Role::LogIsolation];
                for position in 0..h.written(flash, log) {
                    let oob = oob(log, position).oob;
                    assert_eq!(oob.lpn, h.space().device_lpn(h.log_page(log, position)));
                    assert_eq!(oob.role, roles[h.watch.kind(log)]);
                }
                let filled = oob(log, h.written(flash, log) - 1).sequence;
                assert!(filled > last, "the queue is not in the order of filling");
                last = filled;
            }
        }
    }
    assert!(bench.extra("progressive_merges") > 100);
}

#[test]
fn counters_start_anew_and_the_laws_still_hold() {
    let case = Case::small(2, 20, 4, 8).with("log_blocks", 8);
    let mut bench = Bench::<Striped<Faster>>::audited(&case);
    let mut rng = SplitMix64::new(9);
    for round in 0..20 {
        for _ in 0..100 {
            bench.play(&random_request(&mut rng, case.logical_pages));
        }
        bench.ftl.reset_counters();
        bench
            .audit()
            .unwrap_or_else(|e| panic!("round {round}: {e}"));
        assert_eq!(bench.extra("carried_victims"), 0);
    }
}

#[test]
fn random_devices_and_options_keep_their_budgets() {
    let mut rng = SplitMix64::new(77);
    for _ in 0..600 {
        let mut case = random_shape(&mut rng);
        let (second_chance, isolation) =
            [(true, true), (true, true), (true, false), (false, false)][rng.below(4) as usize];
        let logs = 1 + u32::from(isolation) + rng.below(5) as u32;
        case.blocks = case.data_blocks() + logs + 1 + rng.below(2) as u32;
        if rng.below(3) == 0 {
            let entries = case.data_blocks() + logs + 1;
            case = with_random_map(&mut rng, case, entries);
        }
        let log_blocks = logs * case.dies;
        case = case
            .with("log_blocks", log_blocks)
            .with("second_chance", second_chance)
            .with("isolation", isolation)
            .with("merge_per_write", 1 + rng.below(3));
        if let Err(error) = run_checked::<Striped<Faster>>(&case, 1) {
            panic!("{error}\n  replay: {case}");
        }
    }
}

/// OLTP-like writes (a third of the space; half of them to a tenth of that), space 65,536 pages.
fn tpcc(seed: u64, writes: u32) -> Vec<u32> {
    let space = 65_536_u32;
    let mut rng = SplitMix64::new(seed);
    let mut pages: Vec<u32> = (0..space).collect();
    for i in (1..space).rev() {
        pages.swap(i as usize, rng.below(u64::from(i) + 1) as usize);
    }
    let working = u64::from(space) * 35 / 100;
    let bounds = [0, 10, 30, 100].map(|percent| working * percent / 100);
    let mut out = Vec::new();
    for _ in 0..writes {
        let tier = match rng.below(100) {
            0..50 => 0,
            50..70 => 1,
            _ => 2,
        };
        let at = bounds[tier] + rng.below(bounds[tier + 1] - bounds[tier]);
        let first = pages[at as usize];
        let n = match rng.below(100_000) {
            0..97_000 => 1,
            97_000..99_900 => 2,
            99_900..99_995 => 3 + rng.below(14) as u32,
            _ => 17 + rng.below(16) as u32,
        };
        out.extend(first..first + n.min(space - first));
    }
    out
}

/// Mean and deviation of the time of a page write in ms: 0.2, and 0.225 a copy, and 1.5 an erase.
fn write_times(percent: u32, variant: fn(Case) -> Case, writes: &[u32]) -> (f64, f64) {
    let logs = 1_024 * percent / 100;
    let mut case = Case::small(1, 1_024 + logs + 1, 64, 1_024).with("log_blocks", logs);
    case.order = ProgramOrder::Any;
    let mut bench = Bench::<Faster>::new(&variant(case)).unwrap();
    let (mut sum, mut squares) = (0.0, 0.0);
    for measured in [false, true] {
        for &page in writes {
            let before = bench.counters();
            bench.write(page, 1).unwrap();
            let now = bench.counters();
            let copies = (now.programs.gc - before.programs.gc) as f64;
            let erases = (now.erases.gc - before.erases.gc) as f64;
            let time = 0.2 + 0.225 * copies + 1.5 * erases;
            if measured {
                sum += time;
                squares += time * time;
            }
        }
    }
    let mean = sum / writes.len() as f64;
    (mean, (squares / writes.len() as f64 - mean * mean).sqrt())
}

/// The order of the deviations in the paper's Table II: the second chance alone leaves higher peaks than
/// FAST, the isolation area removes them. RecoveryMode and deviations in hundredths of a ms.
#[test]
fn deviations_come_in_the_order_of_table_ii() {
    let writes = tpcc(1, 62_500);
    let variants: [fn(Case) -> Case; 3] = [
        plain_fast,
        |case| case.with("isolation", false),
        |case| case,
    ];
    for (percent, expected) in [
        (3, [(539, 4_187), (485, 4_647), (504, 774)]),
        (10, [(216, 1_650), (174, 1_937), (177, 486)]),
    ] {
        let got = variants.map(|variant| {
            let (mean, deviation) = write_times(percent, variant, &writes);
            (
                (mean * 100.0).round() as u32,
                (deviation * 100.0).round() as u32,
            )
        });
        assert_eq!(got, expected, "{percent} % log space");
    }
}
