use super::*;
use crate::page::Page;
use floatgate_core::geometry::ProgramOrder;
use floatgate_core::report::Memory;
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

/// Programmed pages and 1 for each block that is not full; then every entry is read, and that of every page found
/// is written, for no PCM is left.
#[test]
fn recovery_reads_are_those_of_the_page() {
    let case = Case::small(2, 30, 8, 20).with("qmt_entries", 16);
    let mut bench = Bench::<Hat>::new(&case).unwrap();
    let mut rng = floatgate_core::rng::SplitMix64::new(4);
    for _ in 0..900 {
        bench.play(&floatgate_testkit::suite::random_request(
            &mut rng,
            case.logical_pages,
        ));
    }
    let (space, options) = (
        Space::whole(bench.flash.ledger.geometry()),
        case.options_of::<Hat>().unwrap(),
    );
    let written = (0..60).map(|block| bench.flash.ledger.write_pointer(floatgate_core::Pbn(block)));
    let oobs: u32 = written.map(|written| (written + 1).min(8)).sum();
    let costs = Hat::recovery_costs(&space.geometry, &options);
    for means in [RecoveryMode::FullScan, RecoveryMode::Fastest] {
        let mut flash = bench.flash.clone();
        flash.ledger.counters = floatgate_core::report::FlashCounters::default();
        let hat = Hat::recover(&space, &options, means, &mut flash).unwrap();
        let did = flash.ledger.counters;
        let live = hat.audit(&flash).unwrap();
        assert_eq!(did.oob_reads.sum(), u64::from(oobs));
        assert!(did.oob_reads.sum() <= costs[0].oob_reads);
        assert_eq!((did.reads.sum(), did.programs.sum()), (0, 0));
        assert_eq!((did.pcm_reads, did.pcm_writes), (320, live));
        assert_eq!(did.pcm_reads, costs[0].pcm_reads);
    }
    let table = &costs[1];
    assert!(table.is_after_shutdown);
    assert_eq!(
        (table.oob_reads, table.page_reads, table.pcm_reads),
        (0, 0, 320)
    );
}
