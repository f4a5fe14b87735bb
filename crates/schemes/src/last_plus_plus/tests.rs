//! Worked examples and the paper's figures.

mod limits;
mod recovery;

use super::*;
use floatgate_core::ftl::Tick;
use floatgate_core::geometry::ProgramOrder;
use floatgate_core::options::{Options, Value};
use floatgate_core::report::FlashCounters;
use floatgate_core::rng::SplitMix64;
use floatgate_testkit::suite::{Bench, Case};

type LastBench = Bench<LastPlusPlus>;

fn made(case: Case) -> LastBench {
    Bench::audited(&case)
}

/// The device of most worked examples: 4 dies, 4 pages a block, 6 segments, no summary pages.
fn four_dies(log_blocks: u32) -> Case {
    Case::small(4, 6 + log_blocks / 4 + 1, 4, 6)
        .with("log_blocks", log_blocks)
        .with("sequential_threshold", 4)
        .with("summary_pages", false)
}

/// One die, 8 segments of one block.
fn one_die(pages: u32, log_blocks: u32) -> Case {
    Case::small(1, 8 + log_blocks + 1, pages, 8)
        .with("log_blocks", log_blocks)
        .with("summary_pages", false)
}

fn play_each<I: IntoIterator<Item = u32>>(bench: &mut LastBench, pages: I) {
    for lpn in pages {
        bench.write(lpn, 1).unwrap();
    }
}

/// (gc reads, gc programs, erases).
fn gc(c: &FlashCounters) -> (u64, u64, u64) {
    (c.reads.gc, c.programs.gc, c.erases.gc)
}

/// (switch, partial, full, associated, dead).
fn merges(bench: &LastBench) -> (u64, u64, u64, u64, u64) {
    let m = bench.scheme().merges;
    (m.switch, m.partial, m.full, m.full_merge_associated, m.dead)
}

/// Set bits of the page status tables of a segment, by die.
fn pst(bench: &LastBench, segment: u32) -> Vec<Vec<u32>> {
    let ftl = &bench.ftl;
    (0..ftl.dies())
        .map(|die| {
            let log = ftl.h.owned(ftl.logical(segment, die)).unwrap();
            let block = ftl.h.log_block(log);
            let geometry = bench.flash.ledger().geometry();
            (0..ftl.h.pages_per_block())
                .filter(|&o| bench.flash.ledger().is_programmed(geometry.ppn(block, o)))
                .collect()
        })
        .collect()
}

/// (die, position, update counter, partition) of a page's entry in the page mapping table.
fn entry(bench: &LastBench, lpn: u32) -> Option<(u32, u32, u8, Heat)> {
    let ftl = &bench.ftl;
    let page = ftl.h.newest_log_page(ftl.locate(Lpn(lpn)).local)?;
    let (partition, updates) = ftl.h.watch.random.entry(Some(page))?;
    let die = bench
        .flash
        .ledger()
        .geometry()
        .die_of(ftl.h.log_block(page.log));
    Some((die, page.position, updates, partition))
}

/// Merge-cost list of the first random log block of each die, with logical blocks numbered as the paper
/// does (segment by segment), and the overflow flags.
fn costs(bench: &LastBench) -> Vec<(Vec<(u32, u32)>, bool)> {
    let ftl = &bench.ftl;
    let random = &ftl.h.watch.random;
    (0..ftl.dies())
        .map(|die| {
            let (_, log) = random.cheapest(die, Heat::Cold).unwrap();
            let segments = ftl.plan.segments;
            let number = |lbn: Lbn| (lbn.0 % segments) * ftl.dies() + lbn.0 / segments;
            let list = random.cost.list(log).map(|(lbn, n)| (number(lbn), n));
            let mut list: Vec<_> = list.collect();
            list.sort_unstable();
            (list, random.cost.overflow(log))
        })
        .collect()
}

// ---- addresses ----------------------------------------------------------------------------------------

#[test]
fn zigzag_segments_of_equation_1() {
    let bench = made(four_dies(12));
    for lpn in 0..96 {
        let page = bench.ftl.locate(Lpn(lpn));
        assert_eq!(
            (page.die, page.segment, page.offset),
            (lpn % 4, lpn / 16, lpn % 16 / 4)
        );
        assert_eq!(bench.ftl.h.space().device_lpn(page.local), Lpn(lpn));
        assert_eq!(bench.ftl.h.split(page.local), (page.logical, page.offset));
        // Start state: logical block (s, d) lies in block s of die d.
        let geometry = bench.flash.ledger().geometry();
        let block = geometry.pbn(page.die, page.segment);
        assert_eq!(
            bench.ftl.h.newest(page.local),
            geometry.ppn(block, page.offset)
        );
    }
}

// ---- the shared merge cases on this scheme --------------------------------------------------------------

#[test]
fn fig_1_switch_and_partial() {
    for (pages, copies, kinds) in [(4, 0, (1, 0, 0, 0, 0)), (3, 1, (0, 1, 0, 0, 0))] {
        let mut bench = made(one_die(4, 3).with("sequential_threshold", 2));
        bench.write(0, pages).unwrap();
        bench.play("W 4 4");
        assert_eq!(gc(&bench.counters()), (copies, copies, 1));
        assert_eq!(merges(&bench), kinds);
    }
}

#[test]
fn fig_1_full_and_dead() {
    // Two blocks of the random log hold pages of logical blocks 0 and 1; the first one is the victim.
    let mut bench = made(one_die(4, 3));
    bench.play("W 0 1, W 4 1, W 8 1, W 8 1, W 1 1, W 5 1, W 8 1, W 8 1");
    bench.play("W 12 1");
    assert_eq!(gc(&bench.counters()), (8, 8, 3));
    assert_eq!(merges(&bench), (0, 0, 1, 2, 0));
    assert_eq!(bench.ftl.h.watch.random.in_use(0), 2);

    let mut bench = made(one_die(4, 3).with("partitions", 1));
    bench.play("W 0 1, W 0 1, W 0 1, W 0 1, W 0 1, W 1 1, W 2 1, W 3 1, W 9 1");
    assert_eq!(gc(&bench.counters()), (0, 0, 1));
    assert_eq!(merges(&bench), (0, 0, 0, 0, 1));
}

#[test]
fn association_of_four_costs_512_copies_and_5_erases() {
    let case = Case::small(1, 14, 128, 10)
        .with("log_blocks", 3)
        .with("summary_pages", false);
    let mut bench = made(case);
    // The first block of the random log has pages of four logical blocks, the second of five others.
    bench.audit_each = false;
    play_each(&mut bench, (0..128).map(|i| i % 4 * 128 + i / 4));
    play_each(&mut bench, (0..128).map(|i| (4 + i % 5) * 128 + i / 5));
    bench.write(9 * 128, 1).unwrap();
    assert_eq!(merges(&bench), (0, 0, 1, 4, 0));
    assert_eq!(gc(&bench.counters()), (512, 512, 5));
    bench.audit().unwrap();
}

// ---- worked examples ------------------------------------------------------------------------------------

#[test]
fn figs_3a_5_and_7_skipped_page_makes_a_full_merge() {
    for (order, expected, kinds) in [
        (ProgramOrder::Ascending, (6, 6, 5), (1, 2, 1, 1, 0)),
        (ProgramOrder::Any, (3, 3, 4), (1, 3, 0, 0, 0)),
    ] {
        let mut bench = made(Case {
            order,
            ..four_dies(12)
        });
        bench.play("W 1 13");
        let expected_pst = [
            vec![1, 2, 3],
            vec![0, 1, 2, 3],
            vec![0, 1, 2],
            vec![0, 1, 2],
        ];
        assert_eq!(pst(&bench, 0), expected_pst);
        let page = bench.ftl.locate(Lpn(4));
        assert_eq!((page.die, page.segment, page.offset), (0, 0, 1));
        bench.play("W 16 16");
        assert_eq!(gc(&bench.counters()), expected);
        assert_eq!(merges(&bench), kinds);
        assert_eq!(bench.extra("seq_pages"), 29);
    }
}

#[test]
fn fig_6_interleaved_streams_need_a_segment_each() {
    let requests = "W 0 4, W 16 4, W 4 4, W 20 4, W 8 4, W 24 4, W 12 4, W 28 4";
    let case = |sequential: u32| {
        four_dies(16)
            .with("sequential_inclusive", true)
            .with("sequential_log_blocks", sequential)
    };
    let mut bench = made(case(8));
    bench.play(requests);
    assert_eq!(bench.counters().programs.host, 32);
    assert_eq!(merges(&bench), (0, 0, 0, 0, 0));
    bench.play("W 32 16, W 48 16");
    assert_eq!(gc(&bench.counters()), (0, 0, 8));
    assert_eq!(merges(&bench), (8, 0, 0, 0, 0));

    let mut bench = made(case(4));
    bench.play(requests);
    assert_eq!(gc(&bench.counters()), (104, 104, 48));
    assert_eq!(merges(&bench), (0, 8, 20, 20, 0));
}

#[test]
fn figs_3b_and_8_pages_go_to_the_die_written_longest_ago() {
    let mut bench = made(four_dies(12));
    bench.play("W 1 1, W 8 1, W 2 1, W 0 1, W 11 1");
    let old = bench.ftl.h.newest(bench.ftl.locate(Lpn(1)).local);
    bench.play("W 1 1");
    let cold = Heat::Cold;
    assert_eq!(entry(&bench, 8), Some((1, 0, 0, cold)));
    assert_eq!(entry(&bench, 2), Some((2, 0, 0, cold)));
    assert_eq!(entry(&bench, 0), Some((3, 0, 0, cold)));
    assert_eq!(entry(&bench, 11), Some((0, 1, 0, cold)));
    assert_eq!(entry(&bench, 1), Some((1, 1, 1, cold)));
    // The older copy, position 0 of die 0's log block, is invalid.
    let (block, position) = bench.flash.ledger().geometry().split(old);
    assert_eq!(
        (bench.flash.ledger().geometry().die_of(block), position),
        (0, 0)
    );
    let log = bench.ftl.h.watch.random.open(0, cold).unwrap();
    assert!(!bench.ftl.h.is_valid_at(log, 0) && bench.ftl.h.is_valid_at(log, 1));
}

const FIG_9: [u32; 16] = [1, 8, 2, 0, 11, 1, 0, 6, 16, 17, 5, 3, 4, 9, 10, 7];
const FIG_10: [u32; 16] = [
    32, 33, 34, 35, 37, 38, 39, 36, 42, 43, 40, 41, 47, 44, 45, 46,
];

#[test]
fn fig_9_merge_cost_table_full_and_reduced() {
    let mut bench = made(four_dies(12).with("merge_cost_entries", 0));
    play_each(&mut bench, FIG_9);
    let full = [
        (vec![(0, 1), (3, 1), (4, 1)], false),
        (vec![(0, 1), (1, 2), (5, 1)], false),
        (vec![(0, 1), (1, 1), (2, 2)], false),
        (vec![(2, 1), (3, 2)], false),
    ];
    assert_eq!(costs(&bench), full);

    let mut bench = made(four_dies(12).with("merge_cost_entries", 2));
    play_each(&mut bench, FIG_9);
    let reduced = [
        (vec![(3, 1), (4, 1)], true),
        (vec![(0, 1), (1, 2)], true),
        (vec![(0, 1), (2, 2)], true),
        (vec![(2, 1), (3, 2)], false),
    ];
    assert_eq!(costs(&bench), reduced);
}

#[test]
fn fig_10_one_merge_on_every_die() {
    for entries in [0, 2, 32] {
        let mut bench = made(four_dies(12).with("merge_cost_entries", entries));
        play_each(&mut bench, FIG_9.into_iter().chain(FIG_10));
        assert_eq!(bench.extra("merge_invocations"), 0);
        bench.write(48, 1).unwrap();
        assert_eq!(gc(&bench.counters()), (24, 24, 10));
        assert_eq!(merges(&bench), (0, 0, 3, 6, 1));
        assert_eq!(bench.extra("merge_invocations"), 1);
        assert_eq!(bench.extra("hash_lookups"), 33);
        assert_eq!(bench.extra("hash_references"), 263);
    }
}

#[test]
fn hot_pages_are_those_written_more_than_four_times() {
    let mut bench = made(one_die(4, 5));
    let (cold, hot) = (Heat::Cold, Heat::Hot);
    for (updates, partition) in [
        (0, cold),
        (1, cold),
        (2, cold),
        (3, cold),
        (3, hot),
        (3, hot),
    ] {
        bench.write(3, 1).unwrap();
        let (_, _, now, at) = entry(&bench, 3).unwrap();
        assert_eq!((now, at), (updates, partition));
    }
    assert_eq!(
        (bench.extra("cold_pages"), bench.extra("hot_pages")),
        (4, 2)
    );
    // A trim drops the entry: the page starts again as a cold one.
    bench.play("T 3 1");
    assert_eq!(entry(&bench, 3), None);
    bench.play("W 3 1");
    assert_eq!(entry(&bench, 3).map(|e| (e.2, e.3)), Some((0, cold)));
    // So does a sequential overwrite.
    bench.play("W 0 32");
    assert_eq!(entry(&bench, 3), None);
}

#[test]
fn figs_13_and_14_conservative_choice() {
    let case = one_die(4, 8).with("background", "conservative");
    let mut bench = made(case);
    // C: one logical block, D: two, E: three; all closed and without a dead page.
    play_each(&mut bench, [0, 1, 2, 3, 4, 5, 8, 9, 12, 16, 20, 21]);
    let mut sorted = Vec::new();
    let random = &mut bench.ftl.h.watch.random;
    random.by_cost(0, Heat::Cold, &mut sorted);
    let [c, d, e] = [sorted[0].1, sorted[1].1, sorted[2].1];
    random.cost.merge_id = 100;
    for (log, id) in [(c, 99), (d, 95), (e, 99)] {
        random.cost.set_latest_update(log, id);
    }
    let distances = [c, d, e].map(|log| random.cost.distance(log));
    assert_eq!(distances, [1, 5, 1]);
    assert_eq!(bench.ftl.background_victim(0), Some(d));
    // Not D either if its list has changed lately.
    bench.ftl.h.watch.random.cost.set_latest_update(d, 98);
    assert_eq!(bench.ftl.background_victim(0), None);
}

#[test]
fn fig_14_waiting_for_updated_blocks_saves_erases() {
    // C and E will be overwritten; D stays. Idle time that merges D costs D's logical blocks, and C and E die by
    // themselves: two log blocks and nothing else to erase.
    let mut bench = made(one_die(4, 8).with("background", "conservative"));
    play_each(&mut bench, [0, 0, 1, 1, 4, 5, 8, 9, 12, 16, 20, 20]);
    let random = &mut bench.ftl.h.watch.random;
    let mut sorted = Vec::new();
    random.by_cost(0, Heat::Cold, &mut sorted);
    let [c, d, e] = [sorted[0].1, sorted[1].1, sorted[2].1];
    random.cost.merge_id = 100;
    for (log, id) in [(c, 99), (d, 95), (e, 99)] {
        random.cost.set_latest_update(log, id);
    }
    bench.arrive(0).unwrap();
    bench.arrive(100_000_001).unwrap();
    assert_eq!(bench.extra("background_merges"), 1);
    assert_eq!(merges(&bench), (0, 0, 1, 2, 0));
    play_each(&mut bench, [0, 1, 12, 16, 20]);
    let before = gc(&bench.counters());
    bench.arrive(300_000_002).unwrap();
    let after = gc(&bench.counters());
    assert_eq!(merges(&bench), (0, 0, 1, 2, 2));
    assert_eq!((after.0 - before.0, after.2 - before.2), (0, 2));
}

/// Nothing has been under way from the beginning to that time.
fn idle_until(now_ns: u64) -> Tick {
    Tick {
        now_ns,
        idle_ns: Some(0..now_ns),
    }
}

#[test]
fn background_merges_in_idle_time() {
    let pages = [0, 1, 4, 8, 12, 16, 17, 20, 2, 24, 25, 28];
    let mut bench = made(one_die(4, 5).with("background", "aggressive"));
    play_each(&mut bench, pages);
    let Ok(()) = bench.ftl.tick(&mut bench.flash, &idle_until(100_000_000));
    assert_eq!(bench.extra("background_merges"), 0);
    let Ok(()) = bench.ftl.tick(&mut bench.flash, &idle_until(100_000_001));
    assert_eq!(bench.extra("background_merges"), 1);
    assert_eq!(gc(&bench.counters()), (12, 12, 4));
    assert_eq!(merges(&bench), (0, 0, 1, 3, 0));
    let Ok(()) = bench.ftl.tick(&mut bench.flash, &idle_until(250_000_000));
    assert_eq!(bench.extra("background_merges"), 3);
    assert_eq!(gc(&bench.counters()), (32, 32, 11));
    assert_eq!(merges(&bench), (0, 0, 3, 8, 0));
    assert_eq!(bench.ftl.h.watch.random.cost.merge_id, 0);
    bench.audit().unwrap();

    let mut bench = made(one_die(4, 5).with("background", "conservative"));
    play_each(&mut bench, pages);
    let Ok(()) = bench.ftl.tick(&mut bench.flash, &idle_until(u64::MAX));
    assert_eq!(bench.extra("background_merges"), 0);
}

#[test]
fn background_off_and_the_estimate_with_map_operations() {
    let pages = [0, 4, 8, 12, 16, 17, 20, 21];
    let mut bench = made(one_die(4, 5));
    play_each(&mut bench, pages);
    let Ok(()) = bench.ftl.tick(&mut bench.flash, &idle_until(u64::MAX));
    assert_eq!(bench.extra("background_merges"), 0);
    // The cheaper block, of two logical blocks: 8 copies, 3 erases, and for the map one write a rebuild and
    // one for the erased log block. The second merge would start exactly at the end.
    let estimate = 8 * (50_000 + 900_000) + 3 * 3_500_000 + 3 * 900_000;
    for (end, expected) in [(estimate, 1), (estimate + 1, 2)] {
        let case = Case {
            blocks: 17,
            ..one_die(4, 5)
        };
        let case = case
            .with("background", "aggressive")
            .with("idle_timeout_ns", 0)
            .with("map_blocks", 3);
        let mut bench = made(case);
        play_each(&mut bench, pages);
        let before = bench.counters();
        let Ok(()) = bench.ftl.tick(&mut bench.flash, &idle_until(end));
        assert_eq!(bench.extra("background_merges"), expected);
        if expected == 1 {
            let after = bench.counters();
            assert_eq!(after.programs.map - before.programs.map, 3);
            assert_eq!(after.erases.map, 0);
        }
    }
}

#[test]
fn summary_pages_take_the_last_position() {
    let mut bench = made(one_die(4, 5).with("summary_pages", true));
    bench.play("W 0 1, W 4 1, W 8 1");
    assert_eq!(bench.counters().programs.map, 1);
    let log = bench.ftl.h.watch.random.cheapest(0, Heat::Cold).unwrap().1;
    bench.play("W 12 1");
    assert_eq!(bench.counters().programs.map, 1);
    assert_eq!(bench.ftl.h.watch.random.in_use(0), 2);
    let block = bench.ftl.h.log_block(log);
    let at = bench.flash.ledger().geometry().ppn(block, 3);
    let oob = bench.flash.peek_oob(at).unwrap();
    assert_eq!((oob.oob.role, oob.oob.tag), (Role::Summary, 0));
}

#[test]
fn summaries_agree_with_the_oobs() {
    let geometry = Geometry::new(2, 14, 4, 64, ProgramOrder::Ascending).unwrap();
    let mut flash = floatgate_testkit::ram::RamFlash::new(&geometry, 64);
    let mut options = LastPlusPlusOptions::default();
    options.set("log_blocks", &Value::Int(10)).unwrap();
    options.set("hot_updates", &Value::Int(1)).unwrap();
    let space = Space::whole(&geometry);
    let mut ftl = LastPlusPlus::format(&space, &options, Start::Full, &mut flash).unwrap();
    let mut rng = SplitMix64::new(9);
    for _ in 0..300 {
        flash.new_request(1);
        let lpn = Lpn(rng.below(12) as u32);
        let Ok(()) = ftl.write(&mut flash, &Run::whole(lpn, 1));
    }
    let mut seen = [0; 2];
    let random = &ftl.h.watch.random;
    for log in random.logs().filter(|&log| random.is_closed(log)) {
        let block = ftl.h.log_block(log);
        let mut bytes = Vec::new();
        let Ok(()) = flash.read_map(geometry.ppn(block, 3), |b| bytes = b.to_vec(), ());
        let (partition, pages) = summary::read(&bytes, 3);
        assert_eq!(Some(partition), random.partition(log));
        seen[partition as usize] += 1;
        for (i, page) in (0..).zip(pages) {
            let oob = flash.peek_oob(geometry.ppn(block, i)).unwrap();
            assert_eq!(page, Some((oob.oob.lpn, oob.sequence)));
            let role = [Role::LogCold, Role::LogHot][partition as usize];
            assert_eq!(oob.oob.role, role);
        }
    }
    assert!(seen[0] > 0 && seen[1] > 0, "{seen:?}");
}

// ---- the flow of Fig. 11 ---------------------------------------------------------------------------------

#[test]
fn fig_11_a_dead_hot_block_goes_first_then_the_maximum_decides() {
    let mut bench = made(one_die(2, 5).with("hot_updates", 1));
    let (cold, hot) = (Heat::Cold, Heat::Hot);
    // Two hot blocks, the first one dead; two cold ones.
    bench.play("W 0 1, W 4 1, W 0 1, W 0 1, W 0 1, W 0 1, W 6 1");
    let sizes = |b: &LastBench| {
        let random = &b.ftl.h.watch.random;
        (random.size(0, cold), random.size(0, hot))
    };
    assert_eq!(sizes(&bench), (2, 2));
    bench.play("W 8 1");
    // The dead hot block made room for a cold one.
    assert_eq!((sizes(&bench), merges(&bench).4), ((3, 1), 1));
    assert_eq!(bench.ftl.hot_maximum(), 2);
    // A hot request below the maximum takes a cold block, and the hot partition grows.
    bench.play("W 10 1, W 0 1");
    assert_eq!(sizes(&bench), (3, 1));
    bench.play("W 0 1");
    assert_eq!(sizes(&bench), (2, 2));
    assert_eq!(merges(&bench), (0, 0, 1, 1, 1));
}

#[test]
fn maximum_hot_size_is_the_share_of_hot_pages() {
    // Five of ten valid pages are hot: half of the random log blocks.
    let mut bench = made(one_die(4, 9).with("hot_updates", 1));
    assert_eq!(bench.ftl.hot_maximum(), 2);
    play_each(&mut bench, (0..5).chain(0..5).chain(0..5));
    play_each(&mut bench, 8..13);
    let random = &bench.ftl.h.watch.random;
    assert_eq!((random.valid(Heat::Hot), random.valid(Heat::Cold)), (5, 5));
    assert_eq!(
        (bench.ftl.plan.random_blocks, bench.ftl.hot_maximum()),
        (7, 4)
    );
    for (percent, expected) in [(1, 2), (50, 3), (100, 7)] {
        bench.ftl.options.hot_maximum_percent = percent;
        assert_eq!(bench.ftl.hot_maximum(), expected);
    }
}

/// The same writes by the three hash tables: what is looked up and where pages go is the same, the references are not.
#[test]
fn a_hash_table_at_most_half_full_takes_few_references() {
    let run = |hash: &str| {
        let mut bench = made(one_die(32, 5).with("random_hash", hash));
        let mut random = SplitMix64::new(3);
        let pages: Vec<u32> = (0..3000).map(|_| random.below(256) as u32).collect();
        play_each(&mut bench, pages);
        let lookups = bench.extra("hash_lookups");
        (
            bench.counters(),
            lookups,
            bench.extra("hash_references") as f64 / lookups as f64,
        )
    };
    let [modulo, twice, mixed] = ["mod", "twice", "mixed"].map(run);
    for other in [&twice, &mixed] {
        assert_eq!((other.0, other.1), (modulo.0, modulo.1));
    }
    assert!(
        modulo.2 > twice.2 && modulo.2 > mixed.2,
        "{modulo:?} {twice:?} {mixed:?}"
    );
    assert!(mixed.2 < 3.0 && twice.2 < 3.0, "{} {}", mixed.2, twice.2);
    let keys: std::collections::HashSet<u32> =
        (0..100_000).map(|lpn| RandomHash::Mixed.key(lpn)).collect();
    assert_eq!(keys.len(), 100_000);
}

#[test]
fn one_partition_holds_everything() {
    let mut bench = made(one_die(4, 5).with("partitions", 1));
    play_each(&mut bench, std::iter::repeat_n(3, 40));
    assert_eq!(
        (bench.extra("cold_pages"), bench.extra("hot_pages")),
        (40, 0)
    );
}

#[test]
fn a_rebuild_takes_the_last_block_out_of_an_entry() {
    let mut bench = made(one_die(4, 3).with("sequential_threshold", 2));
    bench.play("W 0 4");
    assert_eq!(bench.ftl.h.watch.segments.len(), 1);
    // Pages of the same logical block in the random log: its rebuild takes the sequential block along.
    bench.play("W 0 1, W 1 1, W 8 1, W 8 1, W 9 1, W 9 1, W 2 1, W 3 1");
    bench.play("W 16 1");
    assert_eq!(bench.ftl.h.watch.segments.len(), 0);
    assert_eq!(merges(&bench).2, 1);
}

#[test]
fn lookups_are_counted_by_kind_of_request() {
    let mut bench = made(one_die(4, 5).with("sequential_threshold", 1));
    // Random write: one. Read of it: one; read of another page: two. Sequential: two a page.
    for (request, expected) in [
        ("W 3 1", 1),
        ("R 3 1", 2),
        ("R 4 1", 4),
        ("W 8 2", 8),
        ("R 8 1", 10),
        // Not above the highest position: the sequential lookup, then the random one.
        ("W 8 2", 14),
        ("T 0 8", 14),
        ("R 3 1", 16),
    ] {
        bench.play(request);
        assert_eq!(bench.extra("hash_lookups"), expected, "{request}");
    }
}

#[test]
fn momentary_values_of_a_time_series() {
    let mut bench = made(four_dies(12));
    let value = |bench: &LastBench, name: &str| {
        let mut seen = Observation::default();
        bench.ftl.observe(&mut seen);
        seen.values.iter().find(|v| v.name == name).unwrap().value
    };
    assert!(value(&bench, "log_utilisation").is_nan());
    play_each(&mut bench, FIG_9.into_iter().chain(FIG_10));
    bench.play("W 48 1, W 64 16");
    for (name, expected) in [
        ("hot_blocks", 0.0),
        // A merge took one block of each die; the first die has a new one.
        ("cold_blocks", 5.0),
        ("hot_maximum_per_die", 2.0),
        ("sequential_segments", 1.0),
        ("log_utilisation", 1.0),
        ("known_dead_blocks", 0.0),
    ] {
        assert_eq!(value(&bench, name), expected, "{name}");
    }
    let (most, least) = (
        value(&bench, "die_share_max"),
        value(&bench, "die_share_min"),
    );
    assert!(least <= 0.25 && (0.25..0.3).contains(&most));
    assert!(value(&bench, "mean_degree") > 1.0);
}
