use super::*;
use crate::parts::on_demand::checks::{self, check_laws};
use crate::parts::on_demand::{DemandMap, Integrity};
use floatgate_core::address::Lpn;
use floatgate_core::described::Described;
use floatgate_core::ftl::{Ftl, RecoveryMode, Run, Start, Tick};
use floatgate_core::geometry::ProgramOrder;
use floatgate_core::geometry::Space;
use floatgate_core::report::Memory;
use floatgate_core::rng::SplitMix64;
use floatgate_testkit::recorder::{Op, Recorder};
use floatgate_testkit::suite::{Bench, Case, run};

const EXAMPLE: [&str; 17] = [
    "R 0 1", "W 1 1", "R 5 1", "R 9 1", "W 0 2", "W 2 1", "T 3 1", "R 3 1", "W 4 2", "W 8 1",
    "W 12 1", "R 10 1", "W 1 1", "W 5 1", "W 9 1", "W 13 2", "W 0 1",
];

fn case() -> Case {
    Case::small(1, 13, 4, 4)
        .with("tp_entries", 4)
        .with("cmt_entries", 2)
}

/// Cached pages, used last first; `true`: newer than flash.
fn cmt(bench: &Bench<Dftl>) -> Vec<(u32, bool)> {
    let entries = bench.ftl.map.cache.cache.iter();
    entries.map(|(lpn, newer)| (lpn.0, newer)).collect()
}

/// A request arrives at that time.
fn at(now_ns: u64) -> Tick {
    Tick {
        now_ns,
        idle_ns: None,
    }
}

#[test]
fn worked_example() {
    // Host programs, gc programs, map reads, map programs, erases gc, map; CMT used last first.
    type Row = ([u64; 6], &'static [(u32, bool)]);
    let rows: [Row; 17] = [
        ([0, 0, 1, 0, 0, 0], &[(0, false)]),
        ([1, 0, 2, 0, 0, 0], &[(1, true), (0, false)]),
        ([1, 0, 3, 0, 0, 0], &[(5, false), (1, true)]),
        ([1, 0, 5, 1, 0, 0], &[(9, false), (5, false)]),
        ([3, 0, 7, 1, 0, 0], &[(1, true), (0, true)]),
        ([4, 0, 9, 2, 0, 0], &[(2, true), (1, false)]),
        ([4, 0, 10, 2, 0, 0], &[(3, true), (2, true)]),
        ([4, 0, 10, 2, 0, 0], &[(3, true), (2, true)]),
        ([6, 0, 13, 3, 0, 0], &[(5, true), (4, true)]),
        ([7, 0, 15, 4, 0, 0], &[(8, true), (5, false)]),
        ([8, 0, 16, 4, 0, 0], &[(12, true), (8, true)]),
        ([8, 0, 18, 5, 0, 0], &[(10, false), (12, true)]),
        ([9, 0, 20, 6, 1, 1], &[(1, true), (10, false)]),
        ([10, 0, 21, 6, 1, 1], &[(5, true), (1, true)]),
        ([11, 0, 23, 7, 1, 1], &[(9, true), (5, true)]),
        ([13, 4, 29, 11, 3, 2], &[(14, true), (13, true)]),
        ([14, 4, 31, 12, 3, 2], &[(0, true), (14, false)]),
    ];
    let mut bench = Bench::<Dftl>::audited(&case());
    let map = &bench.ftl.map.pages;
    assert_eq!(
        (
            map.len(),
            bench.ftl.store.erased(0),
            bench.ftl.store.map_blocks(0)
        ),
        (4, 8, 1)
    );
    for (request, (counted, entries)) in EXAMPLE.iter().zip(rows) {
        bench.play(request);
        let c = bench.counters();
        let got = [
            c.programs.host,
            c.programs.gc,
            c.reads.map,
            c.programs.map,
            c.erases.gc,
            c.erases.map,
        ];
        assert_eq!((got, &cmt(&bench)[..]), (counted, entries), "{request}");
        check_laws(&bench);
    }
    // Two write-backs of the collection before the last request; what it says of erased blocks.
    assert_eq!(bench.extra("map_writebacks_gc"), 2);
    bench.read_all().unwrap();
}

#[test]
fn the_erased_blocks_of_the_worked_example() {
    let mut bench = Bench::<Dftl>::audited(&case());
    bench.play(&EXAMPLE[..12].join(","));
    let erased: Vec<u32> = bench.ftl.store.erased_list(0).map(|b| b.0).collect();
    assert_eq!(erased, [9, 10, 11, 12]);
    bench.play(EXAMPLE[12]);
    let erased: Vec<u32> = bench.ftl.store.erased_list(0).map(|b| b.0).collect();
    assert_eq!(erased, [10, 11, 12, 0, 4]);
}

#[test]
fn integrity_modes_on_the_worked_example() {
    // Map reads, map programs, map erases; request i arrives at 10 i seconds.
    for (mode, expected) in [
        ("PAGE", [36, 17, 3]),
        ("REQ", [33, 14, 2]),
        ("TIMEOUT", [32, 13, 2]),
    ] {
        let mut bench = Bench::<Dftl>::audited(&case().with("integrity", mode));
        for (i, request) in EXAMPLE.iter().enumerate() {
            bench.play(&format!("{request} {}", i as u64 * 10_000_000_000));
            check_laws(&bench);
        }
        let c = bench.counters();
        assert_eq!(
            [c.reads.map, c.programs.map, c.erases.map],
            expected,
            "{mode}"
        );
    }
}

#[test]
fn page_mode_writes_a_translation_page_for_every_page() {
    let mut bench = Bench::<Dftl>::audited(&case().with("integrity", "PAGE"));
    bench.play("W 0 4, W 8 2, T 8 1, T 8 1");
    assert_eq!(
        bench.extra("map_writebacks_flush"),
        7,
        "six writes, and one trim that changed something"
    );
}

#[test]
fn request_mode_writes_each_translation_page_once() {
    let mut bench =
        Bench::<Dftl>::audited(&case().with("integrity", "REQ").with("cmt_entries", 16));
    bench.play("W 0 4, W 6 4, R 0 16, T 0 2");
    assert_eq!(bench.extra("map_writebacks_flush"), 1 + 2 + 1);
}

#[test]
fn the_timer_flushes_before_the_request_and_then_waits_for_the_next_period() {
    let options = case()
        .with("integrity", "TIMEOUT")
        .with("flush_ns", 100)
        .with("cmt_entries", 9);
    let mut bench = Bench::<Dftl>::audited(&options);
    bench.play("W 0 1 0, W 4 1 99");
    assert_eq!(bench.extra("map_writebacks_flush"), 0);
    bench.play("W 8 1 350");
    assert_eq!(
        (bench.extra("map_writebacks_flush"), bench.ftl.next_flush_ns),
        (2, 400)
    );
    assert_eq!(
        cmt(&bench)[0],
        (8, true),
        "the request itself comes after the flush"
    );
    bench.play("R 0 1 399");
    assert_eq!(bench.extra("map_writebacks_flush"), 2);
    bench.play("R 0 1 400");
    assert_eq!(
        (bench.extra("map_writebacks_flush"), bench.ftl.next_flush_ns),
        (3, 500)
    );
    bench.play(&format!("R 0 1 {}", u64::MAX));
    bench.ftl.reset_counters();
    assert_eq!(bench.ftl.next_flush_ns, 100, "timers start anew");
}

#[test]
fn fetch_by_request_reads_a_translation_page_once_a_request() {
    let mut one = Bench::<Dftl>::audited(&case().with("cmt_entries", 8));
    let mut whole = Bench::<Dftl>::audited(&case().with("cmt_entries", 8).with("fetch", "request"));
    for bench in [&mut one, &mut whole] {
        bench.play("R 0 6");
    }
    assert_eq!((one.extra("map_loads"), whole.extra("map_loads")), (6, 2));
    whole.play("R 6 1, R 7 1");
    assert_eq!(
        whole.extra("map_loads"),
        4,
        "every request loads for itself"
    );
    assert_eq!(whole.extra("cmt_misses"), 8);
}

#[test]
fn without_batch_one_entry_goes_at_a_time() {
    let mut alone = Bench::<Dftl>::audited(&case().with("batch", "off"));
    let mut batch = Bench::<Dftl>::audited(&case());
    for bench in [&mut alone, &mut batch] {
        bench.play("W 0 2, R 8 2");
    }
    assert_eq!(
        (
            alone.extra("map_writebacks_evict"),
            batch.extra("map_writebacks_evict")
        ),
        (2, 1)
    );
}

#[test]
fn an_empty_device_has_no_translation_pages_to_read() {
    let mut bench = Bench::<Dftl>::audited(&Case {
        start: Start::Empty,
        ..case()
    });
    bench.play("R 0 4, W 0 1, W 4 1");
    assert_eq!(
        (bench.extra("cmt_misses"), bench.counters().reads.map),
        (6, 0)
    );
    bench.play("R 8 1, R 1 1");
    assert_eq!(
        bench.counters().reads.map,
        1,
        "what eviction wrote can be read"
    );
    check_laws(&bench);
}

#[test]
fn memory_figures() {
    let geometry =
        |pages: u64, blocks| Geometry::new(8, blocks, 128, pages, ProgramOrder::Ascending).unwrap();
    // 1 GB of 2 KB pages: 1024 translation pages, 2 MB of flash, 4 KB of directory.
    let tables = Dftl::tables(&geometry(1 << 19, 600), &DftlOptions::default());
    let bytes = |i: usize| tables[i].bits() / 8;
    assert_eq!(
        tables.iter().map(|t| t.memory).collect::<Vec<_>>(),
        [Memory::Sram, Memory::Sram, Memory::Flash]
    );
    assert_eq!(
        (tables[1].entries, bytes(1), bytes(2)),
        (1024, 4 << 10, 2 << 20)
    );
    assert_eq!(
        (tables[0].entries, tables[0].bits_per_entry),
        (16_384, 2 * 19 + 1)
    );
    // 256 GB of 4 KB pages: 65,536 translation pages, 256 KB; LAST++'s 2.34 MB hold 306,708 entries.
    let options = DftlOptions {
        cmt_bytes: (2.34 * 1_048_576.0) as u64,
        on_flash: OnFlashOptions {
            tp_entries: 1024,
            ..OnFlashOptions::default()
        },
        ..DftlOptions::default()
    };
    let tables = Dftl::tables(&geometry(1 << 26, 70_000), &options);
    assert_eq!(
        (tables[1].entries, tables[1].bits() / 8),
        (65_536, 256 << 10)
    );
    assert_eq!(tables[0].entries, 306_708);
}

#[test]
fn refusals() {
    let refused = |case: Case| Bench::<Dftl>::refused_key(&case);
    assert_eq!(refused(case().with("cmt_entries", 0)), "cmt_entries");
    assert_eq!(
        refused(Case::small(1, 13, 4, 4).with("cmt_bytes", 7)),
        "cmt_bytes"
    );
    assert_eq!(refused(case().with("tp_entries", 0)), "tp_entries");
    assert_eq!(refused(case().with("flush_ns", 0)), "flush_ns");
    assert_eq!(refused(case().with("gc_d", 0)), "gc_d");
    assert_eq!(refused(case().with("gc_low", 5)), "gc_low");
    assert_eq!(refused(case().with("gc_low", 4_000_000_000_u64)), "blocks");
    // 4 data + 2 map + 7 spare blocks are 13.
    assert_eq!(
        refused(Case {
            blocks: 12,
            ..case()
        }),
        "blocks"
    );
    let huge = i64::MAX;
    let case = case()
        .with("cmt_bytes", huge)
        .with("cmt_entries", huge)
        .with("flush_ns", huge)
        .with("tp_entries", 4_294_967_294_u64);
    for policy in ["lru", "slru"] {
        run::<Dftl>(&case.clone().with("cmt_policy", policy)).unwrap();
    }
    let shape = Geometry::new(1, 13, 4, 16, ProgramOrder::Any).unwrap();
    let options = case.options_of::<Dftl>().unwrap();
    assert!(Dftl::tables(&shape, &options).iter().all(|t| t.bits() > 0));
    assert!(Dftl::ram_bytes(&shape, &options) > 0);
}

/// Every option on tight devices: bytes, tables, laws, and never an empty pool.
#[test]
fn random_devices_and_options() {
    checks::random_devices::<SingleEntries>(|case, _, rng| {
        case.with("cmt_entries", 1 + rng.below(12))
            .with("cmt_policy", checks::pick(rng, &["lru", "slru"]))
            .with("fetch", checks::pick(rng, &["entry", "request"]))
            .with("batch", checks::pick(rng, &["on", "off"]))
    });
}

/// A device of two dies whose operations are written down.
fn recorded(options: &DftlOptions) -> (Dftl, Recorder) {
    let geometry = Geometry::new(2, 14, 4, 32, ProgramOrder::Ascending).unwrap();
    let mut flash = Recorder::new(&geometry);
    let space = Space::whole(&geometry);
    let dftl = Dftl::format(&space, options, Start::Full, &mut flash).unwrap();
    (dftl, flash)
}

fn small_map() -> DftlOptions {
    DftlOptions {
        cmt_entries: Some(3),
        on_flash: OnFlashOptions {
            tp_entries: 4,
            ..OnFlashOptions::default()
        },
        ..DftlOptions::default()
    }
}

/// The same in an integrity mode, with a period of 100 ns.
fn small_map_in(integrity: Integrity) -> DftlOptions {
    let mut options = small_map();
    options.on_flash.integrity = integrity;
    options.on_flash.flush_ns = 100;
    options
}

fn ops(flash: &Recorder) -> Vec<(&'static str, u64, u32, &[usize])> {
    let ops = flash.ops.iter();
    ops.map(|op| (op.kind, op.number, op.die, &op.after[..]))
        .collect()
}

#[test]
fn data_wait_for_their_translation_and_write_backs_for_the_data() {
    let (mut dftl, mut flash) = recorded(&small_map_in(Integrity::Req));
    let Ok(()) = dftl.write(&mut flash, &Run::whole(Lpn(2), 3));
    let expected: [(&str, u64, u32, &[usize]); 10] = [
        ("read_map", 0, 0, &[]),
        ("program_host", 2, 0, &[0]),
        ("read_map", 0, 0, &[]),
        ("program_host", 3, 1, &[2]),
        ("read_map", 0, 1, &[]),
        ("program_host", 4, 0, &[4]),
        ("read_map", 0, 0, &[]),
        // Translation page 0 waits for pages 2 and 3 and for its old content, page 1 for page 4.
        ("program_map", 0, 0, &[1, 3, 6]),
        ("read_map", 0, 1, &[]),
        ("program_map", 1, 1, &[5, 8]),
    ];
    assert_eq!(ops(&flash), expected);
}

#[test]
fn a_load_does_not_wait_for_the_write_back_before_it() {
    let (mut dftl, mut flash) = recorded(&small_map());
    let Ok(()) = dftl.write(&mut flash, &Run::whole(Lpn(1), 1));
    let Ok(()) = dftl.read(&mut flash, &Run::whole(Lpn(8), 2));
    flash.ops.clear();
    let Ok(()) = dftl.read(&mut flash, &Run::whole(Lpn(12), 1));
    let kinds: Vec<&str> = flash.ops.iter().map(|op| op.kind).collect();
    assert_eq!(kinds, ["read_map", "program_map", "read_map", "read_host"]);
    assert_eq!(
        flash.ops[2].after.len(),
        0,
        "the write-back is another die's"
    );
    assert_eq!(flash.ops[3].after.len(), 1);
}

#[test]
fn pages_without_an_operation_complete_with_their_map_read() {
    let (mut dftl, mut flash) = recorded(&small_map());
    let Ok(()) = dftl.trim(&mut flash, &Run::whole(Lpn(0), 1));
    let Ok(()) = dftl.read(&mut flash, &Run::whole(Lpn(0), 1));
    let Ok(()) = dftl.read(&mut flash, &Run::whole(Lpn(4), 3));
    let Ok(()) = dftl.read(&mut flash, &Run::whole(Lpn(0), 1));
    let all = ops(&flash);
    assert_eq!(
        all[..3],
        [
            ("read_map", 0, 0, &[][..]),
            ("absent", 0, 0, &[0][..]),
            ("absent", 0, 0, &[][..]),
        ]
    );
    let last = all.len() - 1;
    assert_eq!((all[last].0, all[last].3), ("absent", &[last - 1][..]));
}

#[test]
fn one_read_serves_the_request_and_all_its_pages_wait_for_it() {
    let (mut dftl, mut flash) = recorded(&DftlOptions {
        fetch: Fetch::Request,
        ..small_map()
    });
    let Ok(()) = dftl.read(&mut flash, &Run::whole(Lpn(0), 3));
    let waits: Vec<&[usize]> = flash.ops.iter().map(|op| &op.after[..]).collect();
    assert_eq!(waits, [&[][..], &[0], &[0], &[0]]);
}

#[test]
fn the_flush_of_the_timer_is_background_work_at_its_time() {
    let (mut dftl, mut flash) = recorded(&small_map_in(Integrity::Timeout));
    let Ok(()) = dftl.tick(&mut flash, &at(0));
    let Ok(()) = dftl.write(&mut flash, &Run::whole(Lpn(0), 1));
    flash.ops.clear();
    let Ok(()) = dftl.tick(&mut flash, &at(250));
    let all = ops(&flash);
    assert_eq!(all[0], ("background", 100, 0, &[][..]));
    assert_eq!(
        (all[1].0, all[2].0, all.len()),
        ("read_map", "program_map", 3)
    );
    let Ok(()) = dftl.tick(&mut flash, &at(260));
    assert_eq!(flash.ops.len(), 3, "nothing is newer than flash");
}

/// A translation page follows the copies whose places it names, on whatever die they are.
#[test]
fn translation_pages_wait_for_the_copies_of_moved_pages() {
    let (mut dftl, mut flash) = recorded(&small_map_in(Integrity::Page));
    let mut rng = SplitMix64::new(5);
    let mut seen = 0;
    for _ in 0..600 {
        flash.ops.clear();
        let Ok(()) = dftl.write(&mut flash, &Run::whole(Lpn(rng.below(32) as u32), 1));
        let data = |op: &&Op| op.kind == "copy" || op.kind == "program_host";
        for (i, op) in flash
            .ops
            .iter()
            .enumerate()
            .filter(|(_, op)| op.kind == "copy")
        {
            let page = op.number / 4;
            let later = &flash.ops[i + 1..];
            let names = |op: &&Op| op.kind == "program_map" && op.number == page;
            let write_back = later
                .iter()
                .find(names)
                .expect("before its block is erased");
            let of_page = |w: &&usize| data(&&flash.ops[**w]) && flash.ops[**w].number / 4 == page;
            let last = write_back.after.iter().filter(of_page).max();
            assert!(last.is_some_and(|&last| last >= i && flash.ops[last].die == op.die));
            seen += 1;
        }
    }
    assert!(seen > 100, "collections of data blocks were needed");
}

mod recovery;
