use super::*;
use crate::page::Page;
use floatgate_core::geometry::ProgramOrder;
use floatgate_core::report::{FlashCounters, Memory};
use floatgate_testkit::ram::RamFlash;
use floatgate_testkit::recorder::Recorder;
use floatgate_testkit::suite::{Bench, Case, run};

fn example() -> Bench<Hat> {
    let case = Case::small(1, 5, 4, 2).with("qmt_entries", 2);
    Bench::audited(&case)
}

/// The QMT from its head: page and mark.
fn qmt(bench: &Bench<Hat>) -> Vec<(u32, u32)> {
    let entries = bench.ftl.qmt.cache.iter();
    entries.map(|(lpn, newer)| (lpn.0, newer.into())).collect()
}

#[test]
fn worked_example() {
    // Request; PCM reads, PCM writes, hits, misses; QMT from its head.
    type Row = (&'static str, [u64; 4], [(u32, u32); 2]);
    let rows: [Row; 12] = [
        ("W 0 2", [0, 0, 0, 2], [(1, 1), (0, 1)]),
        ("W 4 2", [0, 2, 0, 4], [(5, 1), (4, 1)]),
        ("W 0 1", [0, 3, 0, 5], [(0, 1), (5, 1)]),
        ("W 1 1", [0, 4, 0, 6], [(1, 1), (0, 1)]),
        ("W 6 1", [0, 5, 0, 7], [(6, 1), (1, 1)]),
        ("R 4 1", [1, 6, 0, 8], [(4, 0), (6, 1)]),
        ("W 0 1", [1, 7, 0, 9], [(0, 1), (4, 0)]),
        ("T 7 1", [1, 8, 0, 9], [(0, 1), (4, 0)]),
        ("R 7 1", [2, 8, 0, 10], [(7, 0), (0, 1)]),
        ("W 2 1", [2, 9, 0, 11], [(2, 1), (7, 0)]),
        ("W 5 1", [2, 9, 0, 12], [(5, 1), (2, 1)]),
        ("W 0 4", [2, 15, 0, 16], [(3, 1), (2, 1)]),
    ];
    let mut bench = example();
    let mut page = Bench::<Page>::new(&Case::small(1, 5, 4, 2)).unwrap();
    for (request, counted, entries) in rows {
        bench.play(request);
        page.play(request);
        let names = ["pcm_reads", "pcm_writes", "qmt_hits", "qmt_misses"];
        assert_eq!(names.map(|name| bench.extra(name)), counted, "{request}");
        assert_eq!(qmt(&bench), entries, "{request}");
        let flash = bench.counters();
        assert_eq!(
            (flash.pcm_reads, flash.pcm_writes),
            (counted[0], counted[1])
        );
        assert_eq!(flash.programs, page.counters().programs, "{request}");
        assert_eq!(flash.reads, page.counters().reads, "{request}");
        assert_eq!(flash.erases, page.counters().erases, "{request}");
    }
}

/// Flash behaves as under page mapping, whatever the options.
#[test]
fn flash_counters_are_those_of_page() {
    for (i, (key, value)) in [
        ("gc_policy", "d-choices"),
        ("gc_policy", "cost-benefit"),
        ("placement", "rr"),
        ("streams", "shared"),
        ("gc_low", "4"),
    ]
    .into_iter()
    .enumerate()
    {
        let case = Case::small(2, 20, 4, 12).with(key, value);
        let mut page = Bench::<Page>::new(&case).unwrap();
        let mut hat = Bench::<Hat>::new(&case.with("qmt_bytes", 50)).unwrap();
        let mut rng = floatgate_core::rng::SplitMix64::new(i as u64);
        for _ in 0..600 {
            let op = ["W", "W", "W", "R", "T"][rng.below(5) as usize];
            let request = format!("{op} {} {}", rng.below(90), 1 + rng.below(6));
            page.play(&request);
            hat.play(&request);
        }
        let (a, b) = (page.counters(), hat.counters());
        assert_eq!(
            (a.reads, a.programs, a.erases),
            (b.reads, b.programs, b.erases)
        );
        hat.read_all().unwrap();
    }
}

#[test]
fn pcm_lookup_of_the_old_copy_is_one_read_a_write_miss() {
    let case = Case::small(1, 5, 4, 2)
        .with("qmt_entries", 2)
        .with("invalidate_lookup", "pcm");
    let mut bench = Bench::<Hat>::new(&case).unwrap();
    bench.play("W 0 2, W 0 1, W 4 1");
    assert_eq!(
        (bench.extra("pcm_reads"), bench.extra("qmt_misses")),
        (3, 3)
    );
}

#[test]
fn a_trim_changes_a_cached_entry_in_place() {
    let mut bench = example();
    bench.play("R 3 1, R 5 1, T 3 1");
    assert_eq!(
        qmt(&bench),
        [(5, 0), (3, 1)],
        "order unchanged, newer than PCM"
    );
    bench.play("R 6 1, T 3 1");
    assert_eq!(
        bench.extra("pcm_writes"),
        2,
        "evicted, and overwritten though NULL already"
    );
    bench.play("R 3 1, T 3 1");
    assert_eq!(qmt(&bench)[0], (3, 0), "NULL stays NULL");
}

#[test]
fn clean_shutdown_writes_what_is_newer() {
    let mut bench = example();
    bench.play("W 0 2");
    let Ok(()) = bench.ftl.shutdown(&mut bench.flash);
    assert_eq!(qmt(&bench), [(1, 0), (0, 0)]);
    assert_eq!(bench.counters().pcm_writes, 2);
}

#[test]
fn memory_figures() {
    let geometry = |pages: u64, dies, blocks| {
        Geometry::new(dies, blocks, 64, pages, ProgramOrder::Ascending).unwrap()
    };
    let options = HatOptions::default();
    assert_eq!(options.entries(), 16_384, "128 KB at 8 bytes an entry");
    // 256 GB of 2 KB pages: the table in PCM takes 512 MB.
    let tables = Hat::tables(&geometry(1 << 27, 16, 140_000), &options);
    assert_eq!((tables[0].name, tables[0].memory), ("QMT", Memory::Sram));
    assert_eq!(tables[0].bits(), 16_384 * (2 * 27 + 1));
    assert_eq!((tables[1].name, tables[1].memory), ("SMT", Memory::Pcm));
    assert_eq!(tables[1].bits() / 8, 512 << 20);
    // The 16 GB of HAT's Table 4: 32 MB.
    let tables = Hat::tables(&geometry(1 << 23, 16, 9_000), &options);
    assert_eq!(tables[1].bits() / 8, 32 << 20);
    // Page mapping keeps the same table in DRAM, 4 bytes an entry there.
    let page = Page::tables(&geometry(1 << 27, 16, 140_000), &PageOptions::default());
    assert_eq!(
        (page[0].memory, page[0].word_bytes()),
        (Memory::Dram, 512 << 20)
    );
}

#[test]
fn refusals() {
    let refused = |case: Case| Bench::<Hat>::refused_key(&case);
    assert_eq!(
        refused(Case::small(1, 8, 4, 2).with("qmt_bytes", 7)),
        "qmt_bytes"
    );
    assert_eq!(
        refused(Case::small(1, 8, 4, 2).with("qmt_entries", 0)),
        "qmt_entries"
    );
    for chips in ["0", "1025"] {
        let case = Case::small(1, 8, 4, 2).with("pcm_chips", chips);
        assert_eq!(refused(case), "pcm_chips");
    }
    assert_eq!(refused(Case::small(1, 8, 4, 2).with("gc_low", 1)), "gc_low");
    assert_eq!(refused(Case::small(1, 4, 4, 2)), "blocks");
    for huge in ["4294967295", "9223372036854775807"] {
        let case = Case::small(1, 8, 4, 2)
            .with("qmt_bytes", huge)
            .with("qmt_entries", huge);
        run::<Hat>(&case).unwrap();
        Hat::tables(
            &Geometry::new(1, 8, 4, 8, ProgramOrder::Any).unwrap(),
            &case.options_of::<Hat>().unwrap(),
        );
    }
}

#[test]
fn hit_ratio_counts_live_and_written_pages() {
    let mut bench = example();
    bench.play("R 0 1, R 0 1, W 0 1, W 1 1, T 7 1, R 7 1");
    let stats = bench.scheme().stats;
    let value = |name| stats.iter().find(|s| s.name == name).unwrap().value;
    assert_eq!(
        (value("hit_ratio_reads"), value("hit_ratio_writes")),
        (0.5, 0.5)
    );
    assert_eq!(value("hit_ratio"), 0.5);
}

/// What was done since, with what each operation waits for, as indices from the first of them.
fn done_since(flash: &Recorder, first: usize) -> Vec<(&'static str, Vec<usize>)> {
    let ops = flash.ops[first..].iter();
    ops.map(|op| {
        (
            op.kind,
            op.after.iter().map(|&i| i.wrapping_sub(first)).collect(),
        )
    })
    .collect()
}

#[test]
fn translation_runs_beside_flash() {
    let geometry = Geometry::new(1, 5, 4, 8, ProgramOrder::Ascending).unwrap();
    let mut flash = Recorder::new(&geometry);
    let options = HatOptions {
        qmt_entries: Some(2),
        invalidate_lookup: InvalidateLookup::Pcm,
        ..HatOptions::default()
    };
    let mut hat = Hat::format(&Space::whole(&geometry), &options, Start::Full, &mut flash).unwrap();
    let run = |first, pages| Run::whole(Lpn(first), pages);
    // Three pages: each programs at once and looks its old copy up beside it; the last drives the first out,
    // whose new place must be programmed before PCM may name it.
    let Ok(()) = hat.write(&mut flash, &run(0, 3));
    let expected = [
        ("program_host", vec![]),
        ("pcm_read", vec![]),
        ("program_host", vec![]),
        ("pcm_read", vec![]),
        ("program_host", vec![]),
        ("pcm_read", vec![]),
        ("pcm_write", vec![0]),
    ];
    assert_eq!(done_since(&flash, 0), expected);
    assert_eq!(flash.ops[6].number, 0, "the entry of the first page");
    // A read that misses: its entry first, then the page; the evicted entry is written beside it.
    let first = flash.ops.len();
    let Ok(()) = hat.read(&mut flash, &run(5, 1));
    let expected = [
        ("pcm_read", vec![]),
        ("read_host", vec![0]),
        ("pcm_write", vec![]),
    ];
    assert_eq!(done_since(&flash, first), expected);
    // A hit waits for nothing; a trim past the QMT writes PCM; a page that is not there waits for its entry.
    let first = flash.ops.len();
    let Ok(()) = hat.read(&mut flash, &run(5, 1));
    let Ok(()) = hat.trim(&mut flash, &run(7, 1));
    let Ok(()) = hat.read(&mut flash, &run(7, 1));
    let expected = [
        ("read_host", vec![]),
        ("pcm_write", vec![]),
        ("pcm_read", vec![]),
        ("absent", vec![2]),
        ("pcm_write", vec![]),
    ];
    assert_eq!(done_since(&flash, first), expected);
}

/// PCM does one thing after the other: behind a write of 90 us the later pages of the request would wait for their entries.
#[test]
fn a_read_request_writes_what_it_drives_out_behind_its_last_smt_read() {
    let geometry = Geometry::new(1, 5, 4, 8, ProgramOrder::Ascending).unwrap();
    let mut flash = Recorder::new(&geometry);
    let options = HatOptions {
        qmt_entries: Some(2),
        ..HatOptions::default()
    };
    let mut hat = Hat::format(&Space::whole(&geometry), &options, Start::Full, &mut flash).unwrap();
    let Ok(()) = hat.write(&mut flash, &Run::whole(Lpn(1), 1));
    let Ok(()) = hat.write(&mut flash, &Run::whole(Lpn(0), 1));
    let first = flash.ops.len();
    let Ok(()) = hat.read(&mut flash, &Run::whole(Lpn(4), 3));
    let expected = [
        ("pcm_read", vec![]),
        ("read_host", vec![0]),
        ("pcm_read", vec![]),
        ("read_host", vec![2]),
        ("pcm_read", vec![]),
        ("read_host", vec![4]),
        ("pcm_write", vec![]),
        ("pcm_write", vec![]),
    ];
    assert_eq!(done_since(&flash, first), expected);
    let pages = flash.ops[first..].iter().map(|op| op.number);
    // Entries by page, host reads by slot; what was driven out first is written first.
    assert_eq!(pages.collect::<Vec<_>>(), [4, 0, 5, 1, 6, 2, 1, 0]);
    let Ok(()) = hat.read(&mut flash, &Run::whole(Lpn(2), 2));
    let kinds: Vec<_> = flash.ops[first + 8..].iter().map(|op| op.kind).collect();
    assert_eq!(
        kinds,
        ["pcm_read", "read_host", "pcm_read", "read_host"],
        "what was written once is not written again"
    );
}

#[test]
fn a_moved_page_is_in_pcm_after_its_copy() {
    let geometry = Geometry::new(1, 5, 4, 8, ProgramOrder::Ascending).unwrap();
    let mut flash = Recorder::new(&geometry);
    let options = HatOptions {
        qmt_entries: Some(1),
        ..HatOptions::default()
    };
    let mut hat = Hat::format(&Space::whole(&geometry), &options, Start::Full, &mut flash).unwrap();
    let mut rng = floatgate_core::rng::SplitMix64::new(9);
    for _ in 0..200 {
        let Ok(()) = hat.write(&mut flash, &Run::whole(Lpn(rng.below(8) as u32), 1));
    }
    let mut written = 0;
    for (i, pair) in flash.ops.windows(2).enumerate() {
        // The page that the QMT holds changes there alone.
        if pair[0].kind == "copy" && pair[1].kind == "pcm_write" {
            assert_eq!(pair[1].after, [i]);
            written += 1;
        }
    }
    assert!(written > 50);
}

/// A device after random requests, cut between two of them.
fn used() -> (Case, Bench<Hat>) {
    let case = Case::small(2, 30, 8, 20).with("qmt_entries", 16);
    let mut bench = Bench::<Hat>::new(&case).unwrap();
    let mut rng = floatgate_core::rng::SplitMix64::new(4);
    for _ in 0..900 {
        bench.play(&floatgate_testkit::suite::random_request(
            &mut rng,
            case.logical_pages,
        ));
    }
    (case, bench)
}

/// What a recovery finds, and what it takes.
fn recovered(case: &Case, flash: &RamFlash, means: RecoveryMode) -> (Vec<Ppn>, FlashCounters) {
    let mut flash = flash.clone();
    flash.ledger.counters = FlashCounters::default();
    let (space, options) = (
        Space::whole(flash.ledger.geometry()),
        case.options_of::<Hat>().unwrap(),
    );
    let hat = Hat::recover(&space, &options, means, &mut flash).unwrap();
    let did = flash.ledger.counters;
    assert_eq!((did.reads.sum(), did.programs.sum()), (0, 0));
    assert_eq!(did.pcm_reads, u64::from(case.logical_pages));
    let places = (0..case.logical_pages).map(|lpn| hat.store.place(Lpn(lpn)));
    let places: Vec<Ppn> = places.collect();
    // Whatever the entries were, they are right now.
    for (lpn, &place) in (0..).map(Lpn).zip(&places) {
        let entry = flash.recall(lpn).map_or(Ppn::NONE, |entry| entry.place);
        assert_eq!(entry, place, "entry of page {}", lpn.0);
    }
    (places, did)
}

fn full_scan_reads(flash: &RamFlash) -> u64 {
    let written = (0..60).map(|block| flash.ledger.write_pointer(floatgate_core::Pbn(block)));
    written.map(|written| u64::from((written + 1).min(8))).sum()
}

/// The full scan: programmed pages and 1 for each block that is not full. With the table in PCM the pages that it names
/// are not read, and what is found is the same, to the last page.
#[test]
fn after_a_cut_only_what_the_smt_does_not_name_is_read() {
    let (case, bench) = used();
    let costs = Hat::recovery_costs(
        bench.flash.ledger.geometry(),
        &case.options_of::<Hat>().unwrap(),
    );
    let oobs = full_scan_reads(&bench.flash);
    let (by_scan, did) = recovered(&case, &bench.flash, RecoveryMode::FullScan);
    assert_eq!(did.oob_reads.sum(), oobs);
    assert!(oobs <= costs[0].oob_reads);
    let mut entries = bench.flash.clone();
    let recalled = (0..320).map(|lpn| entries.recall(Lpn(lpn)).map(|entry| entry.place));
    let recalled: Vec<_> = recalled.collect();
    let named = recalled.iter().flatten().count() as u64;
    let (places, did) = recovered(&case, &bench.flash, RecoveryMode::Fastest);
    assert_eq!(places, by_scan);
    assert_eq!(did.oob_reads.sum(), oobs - named);
    assert!(named > 250, "of 320 pages PCM names {named}");
    let differ = places.iter().zip(&recalled);
    let differ = differ.filter(|(place, entry)| entry.unwrap_or(Ppn::NONE) != **place);
    assert_eq!(did.pcm_writes, differ.count() as u64);
    assert!((1..=40).contains(&did.pcm_writes), "{}", did.pcm_writes);
    assert_eq!(did.pcm_reads, costs[1].pcm_reads);
}

#[test]
fn a_memory_that_keeps_nothing_costs_the_full_scan() {
    let (case, mut bench) = used();
    let (by_scan, _) = recovered(&case, &bench.flash, RecoveryMode::FullScan);
    bench.flash.forget_entries();
    let (places, did) = recovered(&case, &bench.flash, RecoveryMode::Fastest);
    assert_eq!(places, by_scan);
    assert_eq!(did.oob_reads.sum(), full_scan_reads(&bench.flash));
    let live = places.iter().filter(|place| place.is_some()).count() as u64;
    assert_eq!(did.pcm_writes, live);
}

#[test]
fn after_a_clean_shutdown_no_flash_is_read() {
    let (case, mut bench) = used();
    let Ok(()) = bench.ftl.shutdown(&mut bench.flash);
    let (places, did) = recovered(&case, &bench.flash, RecoveryMode::Fastest);
    assert_eq!((did.oob_reads.sum(), did.pcm_writes), (0, 0));
    let known = (0..case.logical_pages).map(|lpn| bench.ftl.store.place(Lpn(lpn)));
    assert!(
        places.iter().copied().eq(known),
        "trimmed pages stay trimmed, which no scan can tell"
    );
    let costs = Hat::recovery_costs(
        bench.flash.ledger.geometry(),
        &case.options_of::<Hat>().unwrap(),
    );
    assert!(costs[2].is_after_shutdown);
    assert_eq!((costs[2].oob_reads, costs[2].pcm_reads), (0, 320));
    // With one write more the table is not all that there is.
    bench.play("W 7 1");
    let (places, did) = recovered(&case, &bench.flash, RecoveryMode::Fastest);
    assert_eq!(places[7], bench.ftl.store.place(Lpn(7)));
    assert!(did.oob_reads.sum() > 0);
}

/// The place of an entry that was never put right holds another page by now.
#[test]
fn an_entry_from_before_an_erase_is_not_believed() {
    let case = Case::small(1, 5, 4, 2).with("qmt_entries", 8);
    let mut bench = Bench::<Hat>::new(&case).unwrap();
    let mut rng = floatgate_core::rng::SplitMix64::new(3);
    // All entries are in the QMT and stay there: those of PCM are from the start of the device.
    bench.play("R 0 8");
    for _ in 0..60 {
        bench.write(rng.below(8) as u32, 1).unwrap();
    }
    assert_eq!(bench.extra("pcm_writes"), 0);
    let mut flash = bench.flash.clone();
    let mut reused = 0;
    // At the start page `l` was at place `l`.
    for lpn in (0..8).map(Lpn) {
        let there = flash.peek_oob(Ppn(lpn.0)).map(|read| read.oob.lpn);
        reused += u32::from(there.is_some_and(|there| there != lpn));
        if let Some(entry) = flash.recall(lpn) {
            assert_eq!((entry.place, there), (Ppn(lpn.0), Some(lpn)));
        }
    }
    assert!(reused > 0);
    let (places, did) = recovered(&case, &bench.flash, RecoveryMode::Fastest);
    let known = (0..8).map(|lpn| bench.ftl.store.place(Lpn(lpn)));
    assert!(places.into_iter().eq(known));
    assert_eq!(did.pcm_writes, 8);
}
