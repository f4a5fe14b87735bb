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
        .with("cmt_bytes", 112)
        .with("ctp_pages", 2)
        .with("cmt_search", 2)
}

/// The cache as the page writes it: CMT front first; slots front first; `*` newer.
fn cache(bench: &Bench<Cdftl>) -> String {
    let levels = &bench.ftl.map.cache;
    let star = |is_dirty: bool| if is_dirty { "*" } else { "" };
    let entries = levels
        .cmt
        .iter()
        .map(|(lpn, newer)| format!("{}{}", lpn.0, star(newer)));
    let entries: Vec<String> = entries.collect();
    let slots = levels.slots.iter(0);
    let slots = slots.map(|page| format!("{page}{}", star(levels.is_dirty[page as usize])));
    let mut slots: Vec<String> = slots.collect();
    slots.reverse();
    format!("{}; {}", entries.join(" "), slots.join(" "))
}

#[test]
fn worked_example() {
    // Programs of host and gc; reads, programs of the map; hits, misses; the cache.
    let rows: [(&str, [u64; 6], &str); 15] = [
        ("R 0 1", [0, 0, 1, 0, 0, 1], "0; 0"),
        ("W 1 1", [1, 0, 1, 0, 1, 1], "1* 0; 0"),
        ("R 2 1", [1, 0, 1, 0, 2, 1], "2 1* 0; 0"),
        ("W 9 1", [2, 0, 2, 0, 2, 2], "9* 2 1* 0; 1 0"),
        ("W 17 1", [3, 0, 3, 0, 2, 3], "17* 9* 2 1*; 2 1"),
        ("R 18 1", [3, 0, 3, 0, 3, 3], "18 17* 9* 1*; 2 1"),
        ("W 25 1", [4, 0, 4, 0, 3, 4], "25* 18 17* 1*; 3 1*"),
        ("R 26 1", [4, 0, 5, 0, 4, 4], "26 25* 18 17*; 0* 1*"),
        ("R 1 1", [4, 0, 5, 0, 5, 4], "1 26 25* 17*; 0* 1*"),
        ("W 3 1", [5, 0, 6, 1, 6, 4], "3* 1 26 25*; 2* 0*"),
        ("W 8 4", [9, 3, 8, 3, 9, 5], "11* 10* 9* 25*; 1* 2*"),
        ("T 9 1", [9, 3, 8, 3, 10, 5], "9* 11* 10* 25*; 1* 2*"),
        ("R 9 1", [9, 3, 8, 3, 11, 5], "9* 11* 10* 25*; 1* 2*"),
        ("W 16 8", [17, 3, 8, 3, 19, 5], "23* 22* 21* 25*; 2* 1*"),
        ("W 0 4", [21, 3, 9, 4, 22, 6], "3* 2* 1* 25*; 0* 2*"),
    ];
    let mut bench = Bench::<Cdftl>::audited(&case());
    for (request, expected, cached) in rows {
        bench.play(request);
        let (hits, misses) = (bench.extra("cmt_hits"), bench.extra("cmt_misses"));
        let [host, gc, reads, programs, ..] = work(&bench);
        let got = [host, gc, reads, programs, hits, misses];
        assert_eq!((got, &cache(&bench)[..]), (expected, cached), "{request}");
        check_laws(&bench);
    }
    for (name, expected) in [
        ("cmt_evictions", 22),
        ("cmt_dirty_evictions", 16),
        ("map_loads", 8),
        ("map_writebacks_evict", 3),
        ("map_writebacks_gc", 1),
        ("map_moves", 0),
        ("ctp_hits", 20),
        ("ctp_evictions", 6),
        ("ctp_dirty_evictions", 3),
        ("ctp_evict_loads", 2),
    ] {
        assert_eq!(bench.extra(name), expected, "{name}");
    }
    assert_eq!(work(&bench)[4..], [4, 0]);
    bench.read_all().unwrap();
}

#[test]
fn in_the_whole_list_a_cheap_victim_is_always_found() {
    let loads = |search: u64| {
        let mut bench = Bench::<Cdftl>::audited(&case().with("cmt_search", search));
        for lpn in [1, 9, 17, 25, 2, 10, 18, 26, 3, 11, 19, 27] {
            bench.play(&format!("W {lpn} 1"));
        }
        bench.extra("ctp_evict_loads")
    };
    assert_eq!(loads(0), 0);
    assert_eq!(loads(100), 0, "more than there are");
    assert!(loads(1) > 0);
}

#[test]
fn pages_of_a_request_wait_for_the_load_of_their_slot() {
    let geometry = Geometry::new(2, 18, 4, 64, ProgramOrder::Ascending).unwrap();
    let mut flash = Recorder::new(&geometry);
    let mut options = CdftlOptions::default();
    options.on_flash.tp_entries = 8;
    let mut ftl =
        Cdftl::format(&Space::whole(&geometry), &options, Start::Full, &mut flash).unwrap();
    let Ok(()) = ftl.read(&mut flash, &Run::whole(Lpn(6), 2));
    let Ok(()) = ftl.read(&mut flash, &Run::whole(Lpn(5), 2));
    let expected: [(&str, &[usize]); 5] = [
        ("read_map", &[]),
        ("read_host", &[0]),
        ("read_host", &[0]),
        ("read_host", &[]),
        ("read_host", &[]),
    ];
    assert_eq!(flash.kinds_and_waits(), expected);
}

#[test]
fn refusals() {
    let refused = |case: Case| Bench::<Cdftl>::refused_key(&case);
    assert_eq!(refused(case().with("ctp_pages", 0)), "ctp_pages");
    // Two slots of 40 bytes and an entry.
    assert_eq!(refused(case().with("cmt_bytes", 87)), "cmt_bytes");
    assert!(Bench::<Cdftl>::new(&case().with("cmt_bytes", 88)).is_ok());
    assert_eq!(refused(case().with("ctp_pages", i64::MAX)), "cmt_bytes");
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
    let options = CdftlOptions::default();
    assert_eq!(
        (options.slot_bytes(), options.slots(), options.entries()),
        (2_056, 31, 8_417)
    );
    let mut wide = CdftlOptions::default();
    wide.on_flash.tp_entries = 1024;
    assert_eq!(
        (wide.slot_bytes(), wide.slots(), wide.entries()),
        (4_104, 15, 8_689)
    );
    let geometry = Geometry::new(1, 5000, 128, 1 << 19, ProgramOrder::Ascending).unwrap();
    let tables = Cdftl::tables(&geometry, &options);
    assert_eq!((tables[0].entries, tables[1].bits() / 8), (8_417, 63_736));
    assert_eq!((tables[2].entries, tables[2].bits() / 8), (1024, 4096));
}

/// Every option on tight devices: bytes, tables, laws, and never an empty pool.
#[test]
fn random_devices_and_options() {
    checks::random_devices::<TwoLevels>(|case, entries, rng| {
        let pages = 1 + rng.below(4);
        let least = pages * (8 + 4 * u64::from(entries)) + 8;
        case.with("cmt_bytes", least + rng.below(100))
            .with("ctp_pages", pages)
            .with("cmt_search", rng.below(5))
    });
}
