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
        .with("cmt_bytes", 80)
        .with("dirty_buffer", 30)
        .with("dirty_few", 3)
}

/// The cache as the page writes it: pages front first, newer entries in brackets, `:` size; then the buffer.
fn cache(bench: &Bench<Sftl>) -> String {
    let map = &bench.ftl.map;
    let newer = |page: u32| {
        let entries = map.pages.first_of(page)..=map.pages.last_of(page);
        let lpns: Vec<String> = map
            .newer
            .iter(entries)
            .map(|lpn| lpn.0.to_string())
            .collect();
        lpns
    };
    let mut cached: Vec<u32> = map.cache.order.iter(0).collect();
    cached.reverse();
    let shown = cached.iter().map(|&page| match &newer(page)[..] {
        [] => format!("{page}:{}", map.cache.size(page)),
        lpns => format!("{page}[{}*]:{}", lpns.join(","), map.cache.size(page)),
    });
    let shown: Vec<String> = shown.collect();
    let others = (0..map.pages.len()).filter(|&page| !map.cache.is_cached(page));
    let buffer: Vec<String> = others.flat_map(newer).collect();
    let buffer = if buffer.is_empty() {
        "-".into()
    } else {
        buffer.join(" ")
    };
    format!("{}; {buffer}", shown.join(" "))
}

#[test]
fn worked_example() {
    // Programs of host and gc; reads, programs of the map; hits, misses; the cache.
    let rows: [(&str, [u64; 6], &str); 18] = [
        ("R 0 1", [0, 0, 1, 0, 0, 1], "0:14; -"),
        ("W 1 1", [1, 0, 1, 0, 1, 1], "0[1*]:22; -"),
        ("W 9 1", [2, 0, 2, 0, 1, 2], "1[9*]:22 0[1*]:22; -"),
        ("R 16 1", [2, 0, 3, 0, 1, 3], "2:14 1[9*]:22; 1"),
        ("W 2 1", [3, 0, 4, 0, 1, 4], "0[1,2*]:26 2:14; 9"),
        ("R 9 1", [3, 0, 4, 0, 2, 4], "0[1,2*]:26 2:14; 9"),
        ("W 9 1", [4, 0, 4, 0, 3, 4], "0[1,2*]:26 2:14; 9"),
        ("W 17 1", [5, 0, 4, 0, 4, 4], "2[17*]:22 0[1,2*]:26; 9"),
        ("W 18 1", [6, 0, 4, 0, 5, 4], "2[17,18*]:22 0[1,2*]:26; 9"),
        ("R 24 1", [6, 0, 5, 0, 5, 5], "3:14 2[17,18*]:22; 1 2 9"),
        ("W 10 1", [7, 0, 7, 1, 5, 6], "1[9,10*]:26 3:14; 17 18"),
        ("T 1 1", [7, 0, 8, 1, 5, 7], "0[1*]:26 1[9,10*]:26; 17 18"),
        (
            "W 8 8",
            [15, 6, 9, 3, 13, 7],
            "1[8,9,10,11,12,13,14,15*]:22; 17 18",
        ),
        (
            "W 25 1",
            [16, 6, 10, 3, 13, 8],
            "3[25*]:22 1[8,9,10,11,12,13,14,15*]:22; 17 18",
        ),
        (
            "W 26 1",
            [17, 6, 10, 3, 14, 8],
            "3[25,26*]:22 1[8,9,10,11,12,13,14,15*]:22; 17 18",
        ),
        (
            "W 27 1",
            [18, 6, 10, 3, 15, 8],
            "3[25,26,27*]:22 1[8,9,10,11,12,13,14,15*]:22; 17 18",
        ),
        (
            "W 0 4",
            [22, 9, 13, 6, 18, 9],
            "0[0,1,2,3*]:22 3[24,25,26,27*]:22; -",
        ),
        ("R 16 2", [22, 9, 14, 7, 19, 10], "2:26 0[0,1,2,3*]:22; -"),
    ];
    let mut bench = Bench::<Sftl>::audited(&case());
    for (request, expected, cached) in rows {
        bench.play(request);
        let (hits, misses) = (bench.extra("cmt_hits"), bench.extra("cmt_misses"));
        let [host, gc, reads, programs, ..] = work(&bench);
        let got = [host, gc, reads, programs, hits, misses];
        assert_eq!((got, &cache(&bench)[..]), (expected, cached), "{request}");
        check_laws(&bench);
    }
    for (name, expected) in [
        ("cmt_evictions", 8),
        ("cmt_dirty_evictions", 7),
        ("map_loads", 10),
        ("map_writebacks_evict", 4),
        ("map_writebacks_gc", 2),
        ("map_moves", 1),
        ("buffer_hits", 2),
        ("buffer_inserts", 6),
        ("buffer_writebacks", 1),
    ] {
        assert_eq!(bench.extra(name), expected, "{name}");
    }
    assert_eq!(work(&bench)[4..], [6, 1]);
    bench.read_all().unwrap();
}

/// Pages of one die follow each other; consecutive pages do not.
#[test]
fn runs_of_several_dies_go_on_in_the_next_page_of_the_die() {
    let case = Case::small(2, 17, 4, 8)
        .with("tp_entries", 8)
        .with("cmt_bytes", 400);
    let mut bench = Bench::<Sftl>::audited(&case);
    bench.play("R 0 1");
    assert_eq!(cache(&bench), "0:18; -", "one run a die");
    bench.play("W 0 8");
    assert_eq!(cache(&bench), "0[0,1,2,3,4,5,6,7*]:18; -");
    bench.play("W 2 1");
    assert_eq!(
        cache(&bench),
        "0[0,1,2,3,4,5,6,7*]:26; -",
        "one place apart: two heads more"
    );
}

#[test]
fn pages_of_a_request_wait_for_the_load_and_for_nothing_that_left() {
    let geometry = Geometry::new(2, 18, 4, 64, ProgramOrder::Ascending).unwrap();
    let mut flash = Recorder::new(&geometry);
    let mut options = SftlOptions::default();
    options.on_flash.tp_entries = 8;
    let mut ftl =
        Sftl::format(&Space::whole(&geometry), &options, Start::Full, &mut flash).unwrap();
    let Ok(()) = ftl.read(&mut flash, &Run::whole(Lpn(6), 3));
    let expected: [(&str, &[usize]); 5] = [
        ("read_map", &[]),
        ("read_host", &[0]),
        ("read_host", &[0]),
        ("read_map", &[]),
        ("read_host", &[3]),
    ];
    assert_eq!(flash.kinds_and_waits(), expected);
    flash.ops.clear();
    let Ok(()) = ftl.read(&mut flash, &Run::whole(Lpn(0), 1));
    assert_eq!(flash.ops[0].after.len(), 0, "loaded by an earlier request");
}

#[test]
fn without_a_buffer_pages_are_written_whole() {
    let mut bench = Bench::<Sftl>::audited(&case().with("dirty_buffer", 0));
    bench.play("W 1 1, W 9 1, W 17 1, W 25 1");
    assert_eq!(bench.extra("buffer_inserts"), 0);
    assert_eq!(
        bench.extra("map_writebacks_evict"),
        bench.extra("cmt_dirty_evictions")
    );
    assert!(bench.extra("cmt_dirty_evictions") > 0);
}

#[test]
fn refusals() {
    let refused = |case: Case| Bench::<Sftl>::refused_key(&case);
    assert_eq!(refused(case().with("dirty_buffer", 51)), "dirty_buffer");
    // 40 bytes beside 24 for the buffer.
    assert_eq!(refused(case().with("cmt_bytes", 54)), "cmt_bytes");
    assert_eq!(refused(case().with("tp_entries", 0)), "tp_entries");
    for (key, value) in [("cmt_policy", "lru"), ("fetch", "entry"), ("batch", "on")] {
        assert_eq!(refused(case().with(key, value)), key);
    }
    assert_eq!(refused(case().with("cmt_entries", 5)), "cmt_entries");
    let blocks = 16;
    assert_eq!(refused(Case { blocks, ..case() }), "blocks");
}

#[test]
fn memory_figures() {
    let options = SftlOptions::default();
    assert_eq!((options.buffered(), options.room()), (1_638, 117_968));
    let geometry = Geometry::new(1, 5000, 128, 1 << 19, ProgramOrder::Ascending).unwrap();
    let tables = Sftl::tables(&geometry, &options);
    assert_eq!(tables[0].bits() / 8 + tables[1].bits() / 8, 131_072);
    assert_eq!((tables[2].entries, tables[2].bits() / 8), (1024, 4096));
    // A page of one run, a plain one; pages that fit: section 12.
    let mut bench =
        Bench::<Sftl>::new(&Case::small(1, 50, 64, 32).with("tp_entries", 512)).unwrap();
    let size = |bench: &mut Bench<Sftl>, runs| {
        bench.ftl.map.cache.runs[0] = runs;
        bench.ftl.map.cache.size(0)
    };
    let sizes = [1, 478, 479, 480, 512].map(|runs| size(&mut bench, runs));
    assert_eq!(sizes, [140, 2048, 2052, 2056, 2056]);
    assert_eq!((options.room() / 140, options.room() / 2056), (842, 57));
}

/// Every option on tight devices: bytes, tables, laws, and never an empty pool.
#[test]
fn random_devices_and_options() {
    checks::random_devices::<CompressedPages>(|case, entries, rng| {
        let share = rng.below(51);
        // At least a plain page beside the buffer.
        let least = (8 + 4 * u64::from(entries)) * 100 / (100 - share) + 1;
        case.with("cmt_bytes", least + rng.below(200))
            .with("dirty_buffer", share)
            .with("dirty_few", rng.below(9))
    });
}
