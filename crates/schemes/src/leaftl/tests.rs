use super::*;
use floatgate_core::address::Lpn;
use floatgate_core::{ProgramOrder, Striped};
use floatgate_testkit::recorder::Recorder;
use floatgate_testkit::suite::{Bench, Case, random_request};

type Leaf = Bench<Striped<LeaFtl>>;

fn instance(bench: &Leaf) -> &LeaFtl {
    &bench.ftl.instances()[0]
}

/// The open table as the page writes it.
fn open_table(leaf: &LeaFtl) -> String {
    let entries = leaf.open.iter().enumerate();
    let entries = entries.filter(|(_, at)| at.is_some()).map(|(lpn, &at)| {
        let (block, page) = leaf.split(at);
        format!("{lpn}@{}.{page}", block.0)
    });
    entries.collect::<Vec<_>>().join(" ")
}

/// The levels of a group as the page writes them.
fn levels(leaf: &LeaFtl, group: u32) -> String {
    let mut text = String::new();
    let mut level = 1;
    for segment in leaf.levels.of_group(group) {
        if !text.is_empty() {
            text += if segment.level == level { ", " } else { " / " };
        }
        level = segment.level;
        let (block, first) = (segment.block.0, segment.first);
        if segment.is_approximate() {
            let set = leaf.levels.members(segment);
            let members: Vec<String> = (0..GROUP_PAGES_MAX)
                .filter(|&x| set.has(x))
                .map(|x| x.to_string())
                .collect();
            let (members, slope) = (members.join(","), segment.slope);
            text += &format!(
                "~{}{{{members}}} {slope} @{block}.{}",
                segment.x0, segment.y0
            );
            continue;
        }
        let page = segment.predict(first.into());
        if first == segment.last {
            text += &format!("{first} @{block}.{page}");
        } else {
            let (d, e) = (segment.step(), segment.slope >> 8);
            text += &format!("{first}..{} {d}/{e} @{block}.{page}", segment.last);
        }
    }
    text
}

/// Section 12: requests; programs of host and gc, erases, OOB reads; open table; the two groups.
type Row = (
    &'static str,
    [u64; 4],
    &'static str,
    &'static str,
    &'static str,
);

const START: &str = "0..3 1/1 @0.0, 4..7 1/1 @1.0";
const START_1: &str = "0..3 1/1 @2.0, 4..7 1/1 @3.0";
const ROW_2: &str = "~0{0,1,3,6} 127 @4.0 / 2 @0.2, 4..7 1/1 @1.0";
const ROW_8: &str = "3..5 2/1 @5.2 / ~0{0,1,6} 127 @4.0 / 2 @0.2, 4..7 1/1 @1.0";
const ROW_8_1: &str = "1..3 2/1 @5.0, 4..7 1/1 @3.0 / 0..2 1/1 @2.0";
const ROW_10: &str = "4 @6.3 / 3..5 2/1 @5.2 / ~0{0,1,6} 127 @4.0 / 2 @0.2, 4..7 1/1 @1.0";
const ROW_10_1: &str = "1..3 2/1 @5.0, 4..6 1/1 @6.0, 7 @3.3 / 0..2 1/1 @2.0";
const ROW_11: &str = "4 @6.3 / 3..5 2/1 @5.2 / ~0{0,1,6} 127 @4.0";

const ROWS: [Row; 13] = [
    (
        "W 0 2, W 3 1",
        [3, 0, 0, 0],
        "0@4.0 1@4.1 3@4.2",
        START,
        START_1,
    ),
    ("W 6 1", [4, 0, 0, 0], "", ROW_2, START_1),
    ("R 1 1", [4, 0, 0, 1], "", ROW_2, START_1),
    ("R 6 1", [4, 0, 0, 1], "", ROW_2, START_1),
    ("R 5 1", [4, 0, 0, 1], "", ROW_2, START_1),
    (
        "W 9 1, T 10 1, W 11 1",
        [6, 0, 0, 1],
        "9@5.0 11@5.1",
        ROW_2,
        START_1,
    ),
    ("W 3 1", [7, 0, 0, 3], "3@5.2 9@5.0 11@5.1", ROW_2, START_1),
    ("W 5 1", [8, 0, 0, 3], "", ROW_8, ROW_8_1),
    ("R 3 1", [8, 0, 0, 3], "", ROW_8, ROW_8_1),
    ("W 12 3, W 4 1", [12, 0, 0, 3], "", ROW_10, ROW_10_1),
    ("W 7 1", [13, 2, 2, 3], "2@7.0 7@0.0", ROW_11, ROW_10_1),
    (
        "W 6 1",
        [14, 2, 2, 4],
        "2@7.0 6@0.1 7@0.0",
        ROW_11,
        ROW_10_1,
    ),
    (
        "W 0 2",
        [16, 2, 2, 7],
        "2@7.0",
        "~0{0,1,6} 10 @0.2, 7 @0.0 / 4 @6.3 / 3..5 2/1 @5.2",
        "0 @2.0, 1..3 2/1 @5.0, 4..6 1/1 @6.0, 7 @3.3",
    ),
];

fn example() -> Leaf {
    let case = Case::small(1, 8, 4, 4)
        .with("group_pages", 8)
        .with("gamma", 1)
        .with("compact_pages", 16);
    Bench::audited(&case)
}

#[test]
fn worked_example() {
    let mut bench = example();
    assert_eq!(levels(instance(&bench), 0), START);
    assert_eq!(levels(instance(&bench), 1), START_1);
    for (requests, counted, open, group_0, group_1) in ROWS {
        let c = bench.play(requests).counters();
        let got = [c.programs.host, c.programs.gc, c.erases.gc, c.oob_reads.map];
        assert_eq!(got, counted, "{requests}");
        let leaf = instance(&bench);
        let table = open_table(leaf);
        assert_eq!(table, open, "{requests}");
        assert_eq!(levels(leaf, 0), group_0, "{requests}");
        assert_eq!(levels(leaf, 1), group_1, "{requests}");
    }
    for (name, value) in [
        ("segments", 8),
        ("segments_approximate", 1),
        ("levels_max", 3),
        ("crb_bytes", 2),
        ("map_bytes", 84),
        ("segments_learned", 7),
        ("compactions", 1),
        ("segment_lookups", 20),
        ("approximate_lookups", 6),
        ("levels_visited", 30),
        ("mispredictions", 3),
        ("extra_reads", 1),
        ("verify_reads", 6),
    ] {
        assert_eq!(bench.extra(name), value, "{name}");
    }
    bench.read_all().unwrap();
}

/// The example's device on a flash that notes every operation.
fn recorded(options: &[(&str, u32)]) -> (Striped<LeaFtl>, Recorder) {
    let mut case = Case::small(1, 8, 4, 4).with("group_pages", 8);
    for (key, value) in options {
        case = case.with(key, value);
    }
    let geometry = case.geometry().unwrap();
    let mut flash = Recorder::new(&geometry);
    let space = Space::whole(&geometry);
    let options = case.options_of::<Striped<LeaFtl>>().unwrap();
    let made = Striped::<LeaFtl>::format(&space, &options, case.start, &mut flash);
    (made.unwrap(), flash)
}

/// Kind of each operation since the last call, and which it waits for, counted back.
fn operations(flash: &mut Recorder) -> Vec<(&'static str, Vec<usize>)> {
    let ops = flash.ops.iter().enumerate();
    let back = |i: usize, after: &[usize]| after.iter().map(|&a| i - a).collect();
    let list = ops.map(|(i, op)| (op.kind, back(i, &op.after))).collect();
    flash.ops.clear();
    list
}

/// Section 11. Pages 0, 1, 3, 6 lie in one segment; its prediction is wrong for 1 and 3 and right for 6.
#[test]
fn oob_reads_stand_before_the_read_and_behind_the_program() {
    let (mut leaf, mut flash) = recorded(&[("gamma", 1)]);
    for page in [0, 1, 3, 6] {
        leaf.write_page(&mut flash, Lpn(page), Slot(0)).unwrap();
    }
    let first = flash.ops.len();
    leaf.read_page(&mut flash, Lpn(1), Slot(0)).unwrap();
    leaf.write_page(&mut flash, Lpn(3), Slot(0)).unwrap();
    leaf.trim_page(&mut flash, Lpn(6), Slot(0)).unwrap();
    let ops = operations(&mut flash);
    assert_eq!(
        ops[first..],
        [
            ("read_oob", vec![]),
            ("read_host", vec![1]),
            ("program_host", vec![]),
            ("read_oob", vec![1]),
            ("read_oob", vec![1]),
            ("read_oob", vec![]),
            ("absent", vec![1]),
        ]
    );
}

/// Three pages fill the buffer. One of them is written twice, one read, one trimmed and written anew.
#[test]
fn the_buffer_holds_pages_until_it_is_full_and_writes_them_in_order() {
    let (mut leaf, mut flash) = recorded(&[("buffer_pages", 3)]);
    for page in [9, 2, 9] {
        leaf.write_page(&mut flash, Lpn(page), Slot(0)).unwrap();
    }
    leaf.read_page(&mut flash, Lpn(9), Slot(0)).unwrap();
    assert!(flash.ops.is_empty());
    leaf.trim_page(&mut flash, Lpn(9), Slot(0)).unwrap();
    assert_eq!(leaf.audit(&flash), Ok(15));
    leaf.read_page(&mut flash, Lpn(9), Slot(0)).unwrap();
    leaf.write_page(&mut flash, Lpn(9), Slot(0)).unwrap();
    assert_eq!(leaf.audit(&flash), Ok(16));
    let counted = leaf.counters().buffered;
    assert_eq!((counted.writes, counted.programs, counted.reads), (4, 0, 1));
    leaf.write_page(&mut flash, Lpn(5), Slot(0)).unwrap();
    let programs = flash.ops.iter().filter(|op| op.kind == "program_host");
    let numbers: Vec<u64> = programs.map(|op| op.number).collect();
    assert_eq!(numbers, [2, 5, 9]);
    let kinds: Vec<_> = operations(&mut flash).into_iter().map(|op| op.0).collect();
    assert_eq!(kinds[..2], ["absent", "absent"]);
    let counters = leaf.counters();
    let extra = |name| {
        let found = counters.extra.iter().find(|n| n.name == name);
        found.unwrap().value
    };
    assert_eq!((extra("buffer_hits"), extra("buffer_overwrites")), (1, 1));
    assert_eq!(counters.buffered.programs, 3);
    assert_eq!(leaf.audit(&flash), Ok(16));
}

/// Every OOB names the pages before its own, nearest first, of the start state, of the host and of collections.
#[test]
fn oobs_name_the_pages_before() {
    let gamma = 5;
    let case = Case::small(2, 14, 8, 8).with("gamma", gamma);
    let mut bench = Leaf::new(&case).unwrap();
    let mut rng = floatgate_core::rng::SplitMix64::new(3);
    for _ in 0..600 {
        bench.play(&random_request(&mut rng, case.logical_pages));
    }
    assert!(bench.counters().programs.gc > 100);
    let mut seen = 0;
    for at in 0..2 * 14 * 8 {
        let Some(bytes) = bench.flash.peek_oob_bytes(Ppn(at)) else {
            continue;
        };
        for (back, name) in (1..=gamma).zip(bytes.chunks_exact(4)) {
            let named = u32::from_le_bytes(name.try_into().unwrap());
            if back > at % 8 {
                assert_eq!(named, 0, "nothing lies before page 0");
                continue;
            }
            let before = bench.flash.peek_oob(Ppn(at - back)).unwrap();
            assert_eq!(named, before.oob.lpn.0);
            seen += 1;
        }
    }
    assert!(seen > 400);
}

/// After a cut in a half-full block nothing behind its last page is looked at, however steep the segment.
#[test]
fn predictions_end_with_a_block_that_was_cut_short() {
    let case = Case::small(1, 12, 16, 8).with("gamma", 4);
    let mut short = 0;
    for seed in 0..40 {
        let mut bench = Leaf::audited(&case);
        let mut rng = floatgate_core::rng::SplitMix64::new(seed);
        for _ in 0..37 {
            let lpn = rng.below(u64::from(case.logical_pages)) as u32;
            bench.write(lpn, 1).unwrap();
        }
        let space = Space::whole(&case.geometry().unwrap());
        let options = case.options_of::<Striped<LeaFtl>>().unwrap();
        let (means, flash) = (RecoveryMode::Fastest, &mut bench.flash);
        bench.ftl = Striped::<LeaFtl>::recover(&space, &options, means, flash).unwrap();
        let leaf = instance(&bench);
        for lpn in (0..case.logical_pages).map(DieLpn) {
            let found = leaf.find(lpn).unwrap();
            let looks = [found.predicted, found.second].into_iter().flatten();
            for look in looks.chain([found.at]) {
                assert!(bench.flash.ledger.is_programmed(look), "{seed} {lpn:?}");
                short += u32::from(leaf.places.end(leaf.split(look).0.0) < 16);
            }
        }
        bench.read_all().unwrap();
    }
    assert!(short > 100, "{short}");
}

#[test]
fn options_out_of_range_are_refused_by_name() {
    let case = || Case::small(1, 10, 4, 6);
    for (key, value) in [
        ("gc_low", 1),
        ("gc_d", 0),
        ("gamma", 33),
        ("group_pages", 1),
        ("group_pages", 257),
        ("buffer_pages", 4),
    ] {
        assert_eq!(Leaf::refused_key(&case().with(key, value)), key);
    }
    // 64 bytes of a spare area have room for 16 LPNs.
    assert!(Leaf::new(&case().with("gamma", 16)).is_ok());
    let refusal = Leaf::refusal(&case().with("gamma", 17));
    assert!(refusal.message.contains("take 68 bytes"), "{refusal}");
    let refusal = Leaf::refusal(&case().with("placement", "rr"));
    assert_eq!(refusal.key.as_deref(), Some("placement"));
    // Data blocks, `gc_low`, one open: 9 are needed.
    assert!(Leaf::new(&Case::small(1, 9, 4, 6)).is_ok());
    let refusal = Leaf::refusal(&Case::small(1, 8, 4, 6));
    assert!(refusal.message.contains('9'), "{refusal}");
}

#[test]
fn static_levelling_needs_exact_segments() {
    let exact = LeaFtlOptions::default();
    let wrong = LeaFtlOptions {
        gamma: 1,
        ..exact.clone()
    };
    let refused = |options, way| Striped::<LeaFtl>::check_levelling(options, way).err();
    assert_eq!(refused(&exact, WearLeveling::Static), None);
    assert_eq!(refused(&wrong, WearLeveling::Dynamic), None);
    let key = refused(&wrong, WearLeveling::Static).and_then(|refusal| refusal.key);
    assert_eq!(key.as_deref(), Some("wear_leveling"));
}

/// Section 10: 256 GB of 4 KB pages, written in order. Then what the tables say against what a device counts.
#[test]
fn memory_of_a_device_written_in_order() {
    let table_bytes = |geometry: &Geometry, options: &LeaFtlOptions| -> u64 {
        let tables = Striped::<LeaFtl>::tables(geometry, options);
        tables.iter().map(Table::bits).sum::<u64>() / 8
    };
    let geometry = Geometry::new(1, 600_000, 128, 1 << 26, ProgramOrder::Ascending).unwrap();
    let bytes = table_bytes(&geometry, &LeaFtlOptions::default());
    assert_eq!(bytes, 13 << 20);
    for (dies, pages, group) in [(1, 4, 8), (2, 12, 8), (1, 16, 5), (3, 7, 64)] {
        let case = Case::small(dies, 9, pages, 6).with("group_pages", group);
        let bench = Leaf::new(&case).unwrap();
        let options = case.options_of::<Striped<LeaFtl>>().unwrap();
        let expected = table_bytes(&case.geometry().unwrap(), &options);
        assert_eq!(bench.extra("map_bytes"), expected, "{case}");
        let held = bench.ftl.tables_held().unwrap();
        assert_eq!(held.iter().map(Table::bits).sum::<u64>() / 8, expected);
    }
}

/// What makes for long segments: pages leave a victim in order of LPN, wherever they lay.
#[test]
fn a_collection_moves_pages_in_order() {
    let (mut leaf, mut flash) = recorded(&[("compact_pages", 0)]);
    let mut rng = floatgate_core::rng::SplitMix64::new(9);
    for _ in 0..2_000 {
        let lpn = Lpn(rng.below(16) as u32);
        leaf.write_page(&mut flash, lpn, Slot(0)).unwrap();
    }
    let moves = flash.ops.split(|op| op.kind != "copy");
    let moves: Vec<Vec<u64>> = moves
        .map(|ops| ops.iter().map(|op| op.number).collect())
        .collect();
    assert!(moves.iter().all(|numbers| numbers.is_sorted()));
    assert!(moves.iter().filter(|numbers| numbers.len() > 1).count() > 50);
}

#[test]
fn what_is_open_or_gone_is_in_no_segment() {
    let mut bench = example();
    bench.play("W 5 1, T 2 1, W 9 1");
    let leaf = instance(&bench);
    let pages = |group| -> Vec<u32> {
        let set = leaf.in_no_segment(group);
        (0..GROUP_PAGES_MAX).filter(|&x| set.has(x)).collect()
    };
    assert_eq!((pages(0), pages(1)), (vec![2, 5], vec![1]));
}
