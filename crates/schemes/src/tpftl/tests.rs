use super::*;
use crate::parts::on_demand::checks::{self, check_laws, work};
use floatgate_core::described::Described;
use floatgate_core::ftl::{Ftl, Run, Start};
use floatgate_core::geometry::{ProgramOrder, Space};
use floatgate_testkit::recorder::Recorder;
use floatgate_testkit::suite::{Bench, Case};

fn case() -> Case {
    Case::small(1, 17, 4, 8)
        .with("tp_entries", 8)
        .with("cmt_bytes", 50)
        .with("selective_threshold", 1)
}

/// The cache as the page writes it: nodes by birth, entries front first, `*` newer, `:hot`.
fn cache(bench: &Bench<Tpftl>) -> String {
    let nodes = &bench.ftl.map.cache;
    let there = (0..nodes.coldest.pages()).filter(|&page| !nodes.order.is_empty(page as usize));
    let mut there: Vec<u32> = there.collect();
    there.sort_by_key(|&page| nodes.coldest.born(page));
    let entry = |slot: u32| {
        let (lpn, hot) = (nodes.entries.lpn(slot).0, nodes.hot[slot as usize]);
        let newer = if nodes.entries.is_dirty(slot) {
            "*"
        } else {
            ""
        };
        format!("{lpn}{newer}:{hot}")
    };
    let node = |page: &u32| {
        let mut slots: Vec<u32> = nodes.order.iter(*page as usize).collect();
        slots.reverse();
        let entries: Vec<String> = slots.into_iter().map(entry).collect();
        format!("{page}: {}", entries.join(" "))
    };
    let nodes_shown: Vec<String> = there.iter().map(node).collect();
    let on = if nodes.switch.is_on { " (on)" } else { "" };
    nodes_shown.join("; ") + on
}

#[test]
fn worked_example() {
    // Programs of host and gc; reads, programs of the map; hits, misses; the cache.
    let rows: [(&str, [u64; 6], &str); 15] = [
        ("R 0 1", [0, 0, 1, 0, 0, 1], "0: 0:1"),
        ("W 9 1", [1, 0, 2, 0, 0, 2], "0: 0:1; 1: 9*:2"),
        ("R 16 3", [1, 0, 3, 0, 2, 3], "1: 9*:2; 2: 18:5 17:4 16:3"),
        ("R 0 1", [1, 0, 5, 1, 2, 4], "2: 18:5 17:4 16:3; 0: 0:6"),
        (
            "R 24 1",
            [1, 0, 6, 1, 2, 5],
            "2: 18:5 17:4; 0: 0:6; 3: 24:7",
        ),
        ("R 1 1", [1, 0, 7, 1, 2, 6], "2: 18:5; 0: 1:8 0:6; 3: 24:7"),
        ("W 2 1", [2, 0, 8, 1, 2, 7], "0: 2*:9 1:8 0:6; 3: 24:7 (on)"),
        (
            "W 3 1",
            [3, 0, 9, 1, 2, 8],
            "0: 3*:10 4:10 5:10 6:10 2*:9 1:8 0:6 (on)",
        ),
        (
            "R 4 1",
            [3, 0, 9, 1, 3, 8],
            "0: 4:11 3*:10 5:10 6:10 2*:9 1:8 0:6 (on)",
        ),
        (
            "W 17 1",
            [4, 0, 10, 1, 3, 9],
            "0: 4:11 3*:10 5:10 2*:9; 2: 17*:12",
        ),
        (
            "W 8 4",
            [8, 0, 12, 2, 6, 10],
            "2: 17*:12; 1: 11*:16 10*:15 9*:14 8*:13",
        ),
        (
            "T 25 1",
            [8, 0, 14, 3, 6, 11],
            "1: 11*:16 10*:15 9*:14 8*:13; 3: 25*:17",
        ),
        (
            "R 25 1",
            [8, 0, 14, 3, 7, 11],
            "1: 11*:16 10*:15 9*:14 8*:13; 3: 25*:18",
        ),
        (
            "W 26 6",
            [14, 3, 18, 6, 12, 12],
            "3: 31*:24 30*:23 29:22 28:21 27:20 26:19 25:18 (on)",
        ),
        (
            "W 0 1",
            [15, 3, 19, 6, 12, 13],
            "3: 31*:24 30*:23 29:22 28:21; 0: 0*:25",
        ),
    ];
    let mut bench = Bench::<Tpftl>::audited(&case());
    for (request, expected, cached) in rows {
        bench.play(request);
        let (hits, misses) = (bench.extra("cmt_hits"), bench.extra("cmt_misses"));
        let [host, gc, reads, programs, ..] = work(&bench);
        let got = [host, gc, reads, programs, hits, misses];
        let shown = cache(&bench);
        assert_eq!((got, &shown[..]), (expected, cached), "{request}");
        check_laws(&bench);
    }
    for (name, expected) in [
        ("cmt_evictions", 21),
        ("cmt_dirty_evictions", 4),
        ("map_loads", 13),
        ("map_writebacks_evict", 4),
        ("map_writebacks_gc", 2),
        ("map_moves", 0),
        ("prefetched_request", 10),
        ("prefetched_selective", 3),
        ("tp_nodes_created", 9),
    ] {
        assert_eq!(bench.extra(name), expected, "{name}");
    }
    assert_eq!(work(&bench)[4..], [3, 1]);
    bench.read_all().unwrap();
}

#[test]
fn without_its_options_a_miss_loads_one_entry() {
    let plain = case()
        .with("prefetch_request", "off")
        .with("prefetch_selective", "off");
    let mut bench = Bench::<Tpftl>::audited(&plain);
    bench.play("R 0 4, R 8 4, R 4 4, R 12 4");
    assert_eq!(bench.extra("map_loads"), 16);
    assert_eq!(
        bench.extra("prefetched_request") + bench.extra("prefetched_selective"),
        0
    );
    let mut bench = Bench::<Tpftl>::audited(&case());
    bench.play("R 0 4, R 8 4, R 4 4, R 12 4");
    assert!(bench.extra("map_loads") < 16);
}

#[test]
fn a_load_drives_out_one_node_and_no_second_for_its_prefetch() {
    let mut bench = Bench::<Tpftl>::audited(&case());
    bench.play("R 0 1, R 16 1, R 24 1");
    // Node 0 leaves for page 8; what is left has room for one of the two others.
    bench.play("R 8 3");
    assert_eq!(bench.extra("map_loads"), 3 + 2);
}

#[test]
fn newer_entries_leave_in_turn_unless_clean_ones_go_first() {
    let entries = |clean_first| {
        let mut bench = Bench::<Tpftl>::audited(
            &case()
                .with("clean_first", clean_first)
                .with("prefetch_request", "off"),
        );
        bench.play("W 0 1, R 1 3, W 8 1, R 16 1");
        (bench.extra("cmt_dirty_evictions"), cache(&bench))
    };
    assert_eq!(entries("on").0, 0);
    assert_eq!(entries("off").0, 1);
}

#[test]
fn what_was_prefetched_is_there_when_its_load_is() {
    let geometry = Geometry::new(2, 18, 4, 64, ProgramOrder::Ascending).unwrap();
    let mut flash = Recorder::new(&geometry);
    let mut options = TpftlOptions::default();
    options.on_flash.tp_entries = 8;
    let mut ftl =
        Tpftl::format(&Space::whole(&geometry), &options, Start::Full, &mut flash).unwrap();
    let Ok(()) = ftl.read(&mut flash, &Run::whole(Lpn(6), 4));
    let waits = |flash: &Recorder| -> Vec<(&'static str, Vec<usize>)> {
        let ops = flash.ops.iter();
        ops.map(|op| (op.kind, op.after.clone())).collect()
    };
    let read = |after: &[usize]| ("read_host", after.to_vec());
    let load = || ("read_map", vec![]);
    let expected = [
        load(),
        read(&[0]),
        read(&[0]),
        load(),
        read(&[3]),
        read(&[3]),
    ];
    assert_eq!(waits(&flash), expected);
    flash.ops.clear();
    // What an earlier request has loaded is there, whatever this one loads.
    let Ok(()) = ftl.read(&mut flash, &Run::whole(Lpn(5), 2));
    assert_eq!(waits(&flash), [load(), read(&[0]), read(&[])]);
}

#[test]
fn refusals() {
    let refused = |case: Case| Bench::<Tpftl>::refused_key(&case);
    assert_eq!(refused(case().with("cmt_bytes", 13)), "cmt_bytes");
    assert_eq!(refused(case().with("tp_entries", 65_537)), "tp_entries");
    assert_eq!(refused(case().with("tp_entries", 0)), "tp_entries");
    assert_eq!(
        refused(case().with("selective_threshold", 0)),
        "selective_threshold"
    );
    assert_eq!(refused(case().with("cmt_entries", 5)), "cmt_entries");
    assert_eq!(refused(case().with("cmt_policy", "lru")), "cmt_policy");
    assert_eq!(refused(case().with("fetch", "entry")), "fetch");
    // 8 data + 2 map + 7 spare blocks are 17.
    let blocks = 16;
    assert_eq!(refused(Case { blocks, ..case() }), "blocks");
}

#[test]
fn memory_figures() {
    let geometry = Geometry::new(8, 600, 128, 1 << 19, ProgramOrder::Ascending).unwrap();
    let tables = Tpftl::tables(&geometry, &TpftlOptions::default());
    assert_eq!(tables[0].bits() / 8, 131_072);
    assert_eq!((tables[1].entries, tables[1].bits() / 8), (1024, 4096));
    // So many entries a node: section 9.
    let entries = |n: u64| {
        let node = NODE_BYTES + n * ENTRY_BYTES;
        let rest = (131_072 % node).saturating_sub(NODE_BYTES) / ENTRY_BYTES;
        131_072 / node * n + rest
    };
    assert_eq!([1, 10, 512].map(entries), [9_362, 19_274, 21_788]);
    assert_eq!(TpftlOptions::default().slots(&geometry), 21_844);
}

/// Every option on tight devices: bytes, tables, laws, and never an empty pool.
#[test]
fn random_devices_and_options() {
    let on_off = ["on", "off"];
    checks::random_devices::<ClusteredEntries>(|case, _, rng| {
        case.with("cmt_bytes", 14 + rng.below(120))
            .with("prefetch_request", checks::pick(rng, &on_off))
            .with("prefetch_selective", checks::pick(rng, &on_off))
            .with("clean_first", checks::pick(rng, &on_off))
            .with("selective_threshold", 1 + rng.below(3))
            .with("batch", checks::pick(rng, &on_off))
    });
}
