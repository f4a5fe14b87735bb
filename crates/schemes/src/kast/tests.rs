use super::*;
use crate::parts::hybrid::drawn::drawn;
use floatgate_core::described::Described;
use floatgate_core::ftl::{Ftl, Start};
use floatgate_core::geometry::ProgramOrder;
use floatgate_core::rng::SplitMix64;
use floatgate_testkit::suite::{Bench, Case};

/// The device of the worked example.
fn example() -> Case {
    Case::small(1, 8, 4, 4)
        .with("log_blocks", 3)
        .with("k", 2)
        .with("sw_log_blocks", 1)
}

/// The log blocks of a list in the order in which they were taken.
fn logs(bench: &Bench<Kast>, list: usize) -> String {
    let mut logs: Vec<Log> = bench.ftl.0.h.lists.iter(list).map(Log).collect();
    logs.sort_by_key(|log| bench.ftl.0.taken[log.index()]);
    let texts: Vec<String> = logs
        .iter()
        .map(|&log| drawn(&bench.ftl.0.h, &bench.flash, log))
        .collect();
    texts.join(" ")
}

#[test]
fn worked_example() {
    // Request; host programs, gc programs, gc erases, switch, partial, full, associated, sw_to_rw; SW; RW.
    let rows = [
        ("W 0 2", [2, 0, 0, 0, 0, 0, 0, 0], "[0,1]", ""),
        ("W 5 1", [3, 0, 0, 0, 0, 0, 0, 0], "[0,1]", "[5]"),
        ("W 9 1", [4, 0, 0, 0, 0, 0, 0, 0], "[0,1]", "[5] [9]"),
        ("W 13 1", [5, 0, 0, 0, 0, 0, 0, 0], "[0,1]", "[5,13] [9]"),
        ("W 3 1", [6, 0, 0, 0, 0, 0, 0, 1], "", "[0,1,3] [5,13] [9]"),
        (
            "W 4 1",
            [7, 0, 0, 0, 0, 0, 0, 1],
            "",
            "[0,1,3] [5,13,4] [9]",
        ),
        (
            "W 0 1",
            [8, 0, 0, 0, 0, 0, 0, 1],
            "",
            "[(0),1,3,0] [5,13,4] [9]",
        ),
        (
            "W 6 1",
            [9, 0, 0, 0, 0, 0, 0, 1],
            "",
            "[(0),1,3,0] [5,13,4,6] [9]",
        ),
        (
            "W 10 1",
            [10, 0, 0, 0, 0, 0, 0, 1],
            "",
            "[(0),1,3,0] [5,13,4,6] [9,10]",
        ),
        (
            "W 8 1",
            [11, 0, 0, 0, 0, 0, 0, 1],
            "",
            "[(0),1,3,0] [5,13,4,6] [9,10,8]",
        ),
        (
            "W 14 1",
            [12, 0, 0, 0, 0, 0, 0, 1],
            "",
            "[(0),1,3,0] [5,13,4,6] [9,10,8,14]",
        ),
        (
            "W 12 4",
            [16, 4, 2, 0, 0, 1, 1, 1],
            "[12,13,14,15]",
            "[5,(13),4,6] [9,10,8,(14)]",
        ),
        (
            "W 4 4",
            [20, 4, 3, 1, 0, 1, 1, 1],
            "[4,5,6,7]",
            "[(5),(13),(4),(6)] [9,10,8,(14)]",
        ),
        (
            "W 0 4",
            [24, 4, 4, 2, 0, 1, 1, 1],
            "[0,1,2,3]",
            "[(5),(13),(4),(6)] [9,10,8,(14)]",
        ),
        (
            "W 4 1",
            [25, 4, 5, 3, 0, 1, 1, 1],
            "[4]",
            "[(5),(13),(4),(6)] [9,10,8,(14)]",
        ),
    ];
    let mut bench = Bench::<Kast>::audited(&example());
    for (request, expected, sw, rw) in rows {
        bench.play(request);
        let (c, m) = (bench.counters(), bench.scheme().merges);
        let got = [
            c.programs.host,
            c.programs.gc,
            c.erases.gc,
            m.switch,
            m.partial,
            m.full,
            m.full_merge_associated,
            bench.extra("sw_to_rw"),
        ];
        assert_eq!(got, expected, "{request}");
        assert_eq!(logs(&bench, SW), sw, "{request}");
        assert_eq!(logs(&bench, RW), rw, "{request}");
    }
    assert_eq!(bench.extra("max_association"), 1);
    bench.read_all().unwrap();
}

/// BLogFTL section 2.2: KAST may merge a log block that is not full.
#[test]
fn a_victim_need_not_be_full() {
    let case = Case::small(1, 8, 4, 4).with("log_blocks", 2).with("k", 1);
    let mut bench = Bench::<Kast>::new(&case).unwrap();
    bench.play("W 1 1, W 5 1, W 9 1");
    let merges = bench.scheme().merges;
    assert_eq!(
        (
            merges.full,
            merges.full_merge_associated,
            merges.wasted_log_pages
        ),
        (1, 1, 3)
    );
    assert_eq!(logs(&bench, RW), "[5] [9]");
}

/// The longest merge rebuilds `k` logical blocks: `k * P` copies and `k + 1` erases, and one erase more for each
/// that has a sequential log block of its own.
#[test]
fn longest_merge() {
    let case = Case::small(1, 14, 4, 6)
        .with("log_blocks", 3)
        .with("k", 2)
        .with("sw_log_blocks", 2);
    for (requests, erases) in [("W 17 1", 3), ("W 0 1, W 4 1, W 17 1", 5)] {
        let mut bench = Bench::<Kast>::new(&case).unwrap();
        bench.play("W 8 1, W 12 1, W 1 1, W 5 1, W 2 1, W 6 1");
        assert_eq!(
            (logs(&bench, SW), logs(&bench, RW)),
            ("[8] [12]".into(), "[1,5,2,6]".into())
        );
        bench.play(requests);
        let merges = bench.scheme().merges;
        assert_eq!((merges.full, merges.full_merge_associated), (1, 2));
        assert_eq!((merges.copies_full, merges.erases_full), (8, erases));
        let stats = bench.scheme().stats;
        assert_eq!((stats[0].value, stats[1].value), (8.0, erases as f64));
        assert_eq!(bench.extra("max_association"), 2);
    }
}

#[test]
fn association_and_longest_merge_stay_within_k() {
    let mut reached = 0;
    for pages in [4, 8] {
        for k in [1, 2, 3, 4, pages] {
            for seed in 0..6 {
                let case = Case {
                    seed,
                    ..Case::small(1, 30, pages, 16)
                }
                .with("log_blocks", 6)
                .with("k", k)
                .with("sw_log_blocks", 1 + seed % 4);
                let mut bench = Bench::<Kast>::new(&case).unwrap();
                play_random(&mut bench, &case, 600);
                let scheme = bench.scheme();
                let stat = |name| {
                    let found = scheme.stats.iter().find(|stat| stat.name == name);
                    found.unwrap().value as u32
                };
                let degree = bench.extra("max_association");
                assert!(degree <= u64::from(k), "{degree} at k = {k}");
                assert!(scheme.merges.association.len() <= k as usize + 1);
                assert!(stat("longest_merge_copies") <= k * pages);
                assert!(stat("longest_merge_erases") <= 2 * k + 1);
                reached += u32::from(degree == u64::from(k));
            }
        }
    }
    assert!(reached > 20, "the bound is hardly ever reached: {reached}");
}

/// Writes, reads and trims of several shapes, every one followed by a check of all tables.
fn play_random<S: Ftl>(bench: &mut Bench<S>, case: &Case, requests: u32) {
    bench.audit_each = true;
    let mut rng = SplitMix64::new(case.seed);
    for _ in 0..requests {
        let below = |rng: &mut SplitMix64, n: u32| rng.below(u64::from(n)) as u32;
        let first = match below(&mut rng, 4) {
            0 => below(&mut rng, case.logical_pages / case.pages) * case.pages,
            1 => below(&mut rng, case.logical_pages.div_ceil(8)),
            _ => below(&mut rng, case.logical_pages),
        };
        let n = match below(&mut rng, 4) {
            0 => 1 + below(&mut rng, 2 * case.pages),
            _ => 1 + below(&mut rng, 2),
        };
        let n = n.min(case.logical_pages - first);
        match below(&mut rng, 16) {
            0 => bench.trim(first, n),
            1 => bench.read(first, n),
            _ => bench.write(first, n),
        }
        .unwrap_or_else(|error| panic!("{error}\n  replay: {case}"));
    }
    bench
        .read_all()
        .unwrap_or_else(|error| panic!("{error}\n  replay: {case}"));
}

#[test]
fn random_devices_keep_bytes_budgets_and_tables() {
    for seed in 0..400 {
        let mut rng = SplitMix64::new(seed);
        let mut below = |n: u64| rng.below(n) as u32;
        let (dies, pages, logical) = (1 + below(2), 1 + below(6), 1 + below(10));
        let (log_blocks, map_blocks) = (2 + below(6), [0, 0, 2, 3][below(4) as usize]);
        let blocks = logical + log_blocks + 1 + map_blocks + below(2);
        let case = Case {
            seed,
            order: [ProgramOrder::Ascending, ProgramOrder::Any][below(2) as usize],
            start: [Start::Empty, Start::Full][below(2) as usize],
            ..Case::small(dies, blocks, pages, logical)
        }
        .with("log_blocks", log_blocks * dies)
        .with("k", 1 + below(5))
        .with("sw_log_blocks", 1 + below(u64::from(log_blocks) - 1))
        .with("map_blocks", map_blocks);
        // Few pages a block leave no room for a map: those devices are refused.
        if let Ok(mut bench) = Bench::<floatgate_core::Striped<Kast>>::new(&case) {
            play_random(&mut bench, &case, 150);
        } else {
            assert!(map_blocks > 0, "refused: {case}");
        }
    }
}

/// After four thousand million log blocks their numbers start again, in the same order.
#[test]
fn renumbering_changes_nothing() {
    let case = Case::small(1, 24, 4, 12).with("log_blocks", 6);
    let mut bench = Bench::<Kast>::new(&case).unwrap();
    let mut late = Bench::<Kast>::new(&case).unwrap();
    late.ftl.0.next_taken = u32::MAX - 20;
    play_random(&mut bench, &case, 500);
    play_random(&mut late, &case, 500);
    assert!(late.ftl.0.next_taken < 1_000_000, "no renumbering");
    assert_eq!(bench.counters(), late.counters());
    assert_eq!(bench.scheme(), late.scheme());
}

#[test]
fn memory_at_256_gb() {
    // 524,288 data blocks of 128 pages of 4 KB, 1,024 log blocks; blocks for log and reserve come on top.
    let geometry = Geometry::new(8, 65_700, 128, 524_288 * 128, ProgramOrder::Ascending).unwrap();
    let options = KastOptions {
        log_blocks: Some(1_024),
        ..KastOptions::default()
    };
    let tables = Kast::tables(&geometry, &options);
    let kib: Vec<f64> = tables.iter().map(|t| t.bits() as f64 / 8192.0).collect();
    assert_eq!(kib, [1_216.0, 928.0, 9.5]);
    let mib = kib.iter().sum::<f64>() / 1024.0;
    assert_eq!(format!("{mib:.2}"), "2.10");
}

#[test]
fn refusals_name_the_option() {
    let refusal = Bench::<Kast>::refusal;
    let key = Bench::<Kast>::refused_key;
    let bare = Case::small(1, 12, 4, 4);
    assert_eq!(key(&bare), "log_blocks");
    assert_eq!(key(&bare.clone().with("log_blocks", 1)), "log_blocks");
    let case = bare.with("log_blocks", 4);
    assert_eq!(key(&case.clone().with("k", 0)), "k");
    for limit in [0, 4, 4_000_000_000_u32] {
        let case = case.clone().with("sw_log_blocks", limit);
        assert_eq!(key(&case), "sw_log_blocks");
    }
    assert_eq!(key(&case.clone().with("map_blocks", 1)), "map_blocks");
    let many = refusal(&case.clone().with("log_blocks", 4_000_000_000_u32));
    assert!(many.message.contains("= 4000000005 are needed"), "{many}");
    let mut bench = Bench::<Kast>::new(&case.clone().with("k", 4_000_000_000_u32)).unwrap();
    play_random(&mut bench, &case, 100);
    let greedy = KastOptions {
        log_blocks: Some(u32::MAX - 1),
        k: u32::MAX - 1,
        ..KastOptions::default()
    };
    let geometry = Geometry::new(1, 12, 4, 16, ProgramOrder::Any).unwrap();
    assert!(
        Kast::tables(&geometry, &greedy)
            .iter()
            .all(|t| t.bits() > 0)
    );
    assert!(Kast::ram_bytes(&geometry, &greedy) > 0);
}

#[test]
fn default_limit_of_sequential_log_blocks() {
    for (log_blocks, expected) in [(2, 1), (3, 1), (7, 1), (8, 2), (11, 2)] {
        let case = Case::small(1, 20, 4, 4).with("log_blocks", log_blocks);
        let bench = Bench::<Kast>::new(&case).unwrap();
        assert_eq!(bench.ftl.0.sw_log_blocks, expected);
    }
}

#[test]
fn observed_values() {
    let mut bench = Bench::<Kast>::new(&example()).unwrap();
    bench.play("W 0 2, W 5 1, W 9 1, W 13 1");
    assert_eq!(
        bench.observed(),
        [
            ("sw_log_blocks", 1.0),
            ("rw_log_blocks", 2.0),
            ("association_mean", 1.5),
            ("association_max", 2.0),
            ("sw_to_rw", 0.0),
        ]
    );
}
