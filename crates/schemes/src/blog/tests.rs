//! Worked examples and the paper's figures.

mod limits;
mod recovery;

use super::*;
use floatgate_core::Striped;
use floatgate_core::geometry::ProgramOrder;
use floatgate_core::report::Memory;
use floatgate_core::rng::SplitMix64;
use floatgate_testkit::suite::{Bench, Case};

type Device = Bench<Striped<Blog>>;

/// A row of the LMT as the worked examples show it: next free page and logical blocks.
fn row(bench: &Device, block: u32) -> String {
    let blog = &bench.ftl.instances()[0];
    let row = (0..blog.logs.len()).find(|&row| blog.logs.row(row).block == Pbn(block));
    let row = row.expect("a log block");
    let list: Vec<String> = blog.logs.served(row).map(|lbn| lbn.0.to_string()).collect();
    format!("{} [{}]", blog.logs.row(row).offset, list.join(","))
}

fn rows(bench: &Device, blocks: std::ops::Range<u32>) -> String {
    let rows: Vec<String> = blocks.map(|block| row(bench, block)).collect();
    rows.join(" ")
}

fn place(bench: &Device, lpn: u32) -> (u32, u32) {
    let blog = &bench.ftl.instances()[0];
    let (block, offset) = blog.space.geometry.split(blog.place[lpn as usize]);
    (block.0, offset)
}

fn situations(bench: &Device) -> [u64; 3] {
    ["situation1", "situation2", "situation3"].map(|name| bench.extra(name))
}

/// What the OOBs say about every live page is where it lies.
fn check_sub_tables(bench: &Device) {
    for blog in bench.ftl.instances() {
        for (i, &at) in blog.place.iter().enumerate().filter(|(_, at)| at.is_some()) {
            let (lbn, p) = blog.split(DieLpn(i as u32));
            let (group, i) = blog.by_entries.div_rem(p);
            let table = blog.directory[blog.directory_at(lbn, group)];
            let bytes = bench.flash.peek_oob_bytes(table).unwrap();
            let index = blog.format.unpack(bytes, i);
            assert_eq!(
                blog.resolve(lbn, table, index),
                Some(at),
                "page {p} of {}",
                lbn.0
            );
        }
    }
}

/// The device of Figs. 2 and 3: 9 logical blocks in blocks 0 to 8, log blocks 9 to 12, block 13 spare.
fn figure_2(layout: &str) -> Case {
    Case::small(1, 14, 4, 9)
        .with("log_blocks", 4)
        .with("u", 2)
        .with("l", 2)
        .with("layout", layout)
}

/// Figs. 2 and 3: the paper's writes go to the emptiest log block; nothing is merged.
fn play_figures_2_and_3(bench: &mut Device) {
    let steps: [(u32, (u32, u32), &str); 10] = [
        (0, (9, 0), "1 [0] 0 [] 0 [] 0 []"), // Fig. 2 is this step
        (4, (10, 0), "1 [0] 1 [1] 0 [] 0 []"),
        (8, (11, 0), "1 [0] 1 [1] 1 [2] 0 []"),
        (1, (9, 1), "2 [0] 1 [1] 1 [2] 0 []"),
        (2, (9, 2), "3 [0] 1 [1] 1 [2] 0 []"),
        (0, (9, 3), "4 [0] 1 [1] 1 [2] 0 []"),
        (12, (12, 0), "4 [0] 1 [1] 1 [2] 1 [3]"),
        (27, (10, 1), "4 [0] 2 [1,6] 1 [2] 1 [3]"),
        (5, (10, 2), "4 [0] 3 [1,6] 1 [2] 1 [3]"),
        (9, (11, 1), "4 [0] 3 [1,6] 2 [2] 1 [3]"),
    ];
    assert_eq!(rows(bench, 9..13), "0 [] 0 [] 0 [] 0 []");
    for (lpn, to, expected) in steps {
        bench.write(lpn, 1).unwrap();
        assert_eq!(place(bench, lpn), to, "page {lpn}");
        assert_eq!(rows(bench, 9..13), expected, "after page {lpn}");
    }
}

#[test]
fn figures_2_and_3() {
    for (layout, oob_reads) in [("mlc", 10), ("slc", 0)] {
        let mut bench = Device::audited(&figure_2(layout));
        play_figures_2_and_3(&mut bench);
        let c = bench.counters();
        assert_eq!((c.programs.host, c.programs.gc, c.erases.gc), (10, 0, 0));
        assert_eq!((c.oob_reads.map, c.oob_reads.sum()), (oob_reads, oob_reads));
        assert_eq!(situations(&bench), [0, 0, 0]);
    }
}

/// Copies, erases and OOB reads since the start.
fn costs(bench: &Device, mlc: bool) -> (u64, u64, u64) {
    let c = bench.counters();
    let oob_reads = c.oob_reads.map;
    assert!(
        mlc || oob_reads == 0,
        "slc has its map in memory and reads no OOB"
    );
    (c.programs.gc, c.erases.gc, oob_reads)
}

/// Step 16 of worked example B with `situation2 = space_gc`: the log block of the fewest logical blocks is freed, and the
/// crowded one keeps its two.
#[test]
fn situation_2_frees_a_log_block_if_asked_to() {
    let mut bench = Device::audited(&figure_2("mlc").with("situation2", "space_gc"));
    play_figures_2_and_3(&mut bench);
    bench.play("W 0 1, W 13 1, W 14 1, W 8 1, W 10 1, W 20 1");
    assert_eq!(situations(&bench), [0, 1, 0]);
    let erases = [0, 1, 9].map(|block| bench.flash.ledger.erase_count(Pbn(block)));
    assert_eq!(erases, [1, 0, 1], "the victim and the old data block");
    assert_eq!(bench.ftl.instances()[0].data[1], Pbn(1));
}

/// Worked example B: Figs. 2 and 3 go on into all three situations, a swap included.
#[test]
fn three_situations_after_figure_3() {
    for mlc in [true, false] {
        let mut bench = Device::audited(&figure_2(if mlc { "mlc" } else { "slc" }));
        play_figures_2_and_3(&mut bench);
        let oob = |n| if mlc { n } else { 0 };

        bench.play("W 0 1"); // 11
        assert_eq!(place(&bench, 0), (12, 1));
        let held: Vec<u32> = bench.ftl.instances()[0].logs.rows_of(Lbn(0)).collect();
        assert_eq!(held, [0, 3], "the rows of blocks 9 and 12");
        assert_eq!(costs(&bench, mlc), (0, 0, oob(11)));

        bench.play("W 13 1, W 14 1, W 8 1, W 10 1"); // 12 to 15
        assert_eq!(
            [13, 14, 8, 10].map(|lpn| place(&bench, lpn)),
            [(12, 2), (12, 3), (11, 2), (11, 3)]
        );
        assert_eq!(costs(&bench, mlc), (0, 0, oob(15)));

        bench.play("W 20 1"); // 16: Situation 2
        assert_eq!(situations(&bench), [0, 1, 0]);
        assert_eq!(bench.ftl.instances()[0].data[1], Pbn(13));
        assert_eq!(bench.flash.ledger.erase_count(Pbn(1)), 1);
        assert_eq!((place(&bench, 20), place(&bench, 5)), ((10, 3), (13, 1)));
        assert_eq!(row(&bench, 10), "4 [6,5]");
        assert_eq!(costs(&bench, mlc), (4, 1, oob(17)));

        bench.play("W 32 1"); // 17: Situation 3
        assert_eq!(situations(&bench), [0, 1, 1]);
        assert_eq!(bench.ftl.instances()[0].data[0], Pbn(1));
        assert_eq!(
            [0, 9].map(|b| bench.flash.ledger.erase_count(Pbn(b))),
            [1; 2]
        );
        assert_eq!(place(&bench, 32), (9, 0));
        assert_eq!(rows(&bench, 9..13), "1 [8] 4 [6,5] 4 [2] 4 [3]");
        assert_eq!(costs(&bench, mlc), (8, 3, oob(19)));

        bench.play("W 33 1, W 34 1, W 35 1"); // 18 to 20
        assert_eq!(place(&bench, 35), (9, 3));
        assert_eq!(costs(&bench, mlc), (8, 3, oob(22)));

        bench.play("W 32 1"); // 21: Situation 3
        assert_eq!(situations(&bench), [0, 1, 2]);
        assert_eq!(bench.ftl.instances()[0].data[2], Pbn(0));
        assert_eq!(
            [2, 11].map(|b| bench.flash.ledger.erase_count(Pbn(b))),
            [1; 2]
        );
        assert_eq!(place(&bench, 32), (11, 0));
        let held: Vec<u32> = bench.ftl.instances()[0].logs.rows_of(Lbn(8)).collect();
        assert_eq!(held, [0, 2], "the rows of blocks 9 and 11");
        assert_eq!(costs(&bench, mlc), (12, 5, oob(24)));

        bench.play("W 33 1, W 34 1, W 35 1"); // 22 to 24
        assert_eq!(place(&bench, 35), (11, 3));
        assert_eq!(costs(&bench, mlc), (12, 5, oob(27)));

        bench.play("W 35 1"); // 25: Situation 1, a swap
        assert_eq!(bench.ftl.instances()[0].data[8], Pbn(11));
        assert_eq!(bench.flash.ledger.erase_count(Pbn(8)), 1);
        assert_eq!(
            (row(&bench, 9), row(&bench, 8)),
            ("4 []".into(), "1 [8]".into())
        );
        assert_eq!(place(&bench, 35), (8, 0));
        assert_eq!(costs(&bench, mlc), (12, 6, oob(29)));

        assert_eq!(situations(&bench), [1, 1, 2]);
        let merges = bench.scheme().merges;
        assert_eq!((merges.switch, bench.extra("reduced")), (1, 3));
        assert_eq!(
            (merges.full, merges.full_merge_associated, merges.dead),
            (2, 2, 0)
        );
        bench.read_all().unwrap();
    }
}

/// The sub-table in the OOB of the page at `at` and the directory's entry of a group, as Fig. 5 shows them.
fn show(blog: &Blog, index: Index) -> String {
    if index == blog.format.unwritten() {
        return "-".into();
    }
    format!(
        "{}/{}/{}",
        u32::from(index.log),
        index.position,
        index.offset
    )
}

fn directory_entry(bench: &Device, lbn: Lbn, group: u32) -> String {
    let blog = &bench.ftl.instances()[0];
    let at = blog.directory[blog.directory_at(lbn, group)];
    if at.is_none() {
        return "-".into();
    }
    let (block, offset) = blog.space.geometry.split(at);
    let position = blog
        .logs
        .rows_of(lbn)
        .position(|row| blog.logs.row(row).block == block);
    let index = Index {
        log: block != blog.data[lbn.index()],
        position: position.unwrap_or(0) as u32,
        offset,
    };
    show(blog, index)
}

/// Fig. 5, every row: data block and log block are the figure's #11 and #17, blocks 4 and 0 here.
#[test]
fn figure_5() {
    let case = Case {
        start: Start::Empty,
        ..Case::small(1, 16, 8, 8)
    };
    let case = case
        .with("log_blocks", 4)
        .with("u", 2)
        .with("l", 2)
        .with("entries_per_oob", 4);
    let mut bench = Device::audited(&case);
    type Step = (u32, u32, u32, &'static str, &'static str, u32, &'static str);
    let steps: [Step; 11] = [
        (35, 88, 1, "0/0/0", "-", 0, "- - - 0/0/0"),
        (36, 89, 2, "0/0/0", "0/0/1", 0, "0/0/1 - - -"),
        (34, 90, 3, "0/0/2", "0/0/1", 0, "- - 0/0/2 0/0/0"),
        (34, 136, 3, "1/0/0", "0/0/1", 1, "- - 1/0/0 0/0/0"),
        (34, 137, 3, "1/0/1", "0/0/1", 2, "- - 1/0/1 0/0/0"),
        (33, 91, 4, "0/0/3", "0/0/1", 2, "- 0/0/3 1/0/1 0/0/0"),
        (37, 92, 5, "0/0/3", "0/0/4", 2, "0/0/1 0/0/4 - -"),
        (35, 138, 5, "1/0/2", "0/0/4", 3, "- 0/0/3 1/0/1 1/0/2"),
        (34, 139, 5, "1/0/3", "0/0/4", 4, "- 0/0/3 1/0/3 1/0/2"),
        (39, 93, 6, "1/0/3", "0/0/5", 4, "0/0/1 0/0/4 - 0/0/5"),
        (37, 140, 6, "1/0/3", "1/0/4", 5, "0/0/1 1/0/4 - 0/0/5"),
    ];
    for (i, (lpn, figure_ppn, data_offset, index0, index1, log_offset, table)) in
        steps.into_iter().enumerate()
    {
        bench.write(lpn, 1).unwrap();
        let block = if figure_ppn < 96 { 4 } else { 0 };
        assert_eq!(place(&bench, lpn), (block, figure_ppn % 8), "step {i}");
        let blog = &bench.ftl.instances()[0];
        assert_eq!(bench.flash.ledger().write_pointer(Pbn(4)), data_offset);
        assert_eq!(blog.logs.row(0).offset, log_offset);
        assert_eq!(directory_entry(&bench, Lbn(4), 0), index0, "step {i}");
        assert_eq!(directory_entry(&bench, Lbn(4), 1), index1, "step {i}");
        let at = blog.place[lpn as usize];
        let bytes = bench.flash.peek_oob_bytes(at).unwrap();
        let shown: Vec<String> = (0..4)
            .map(|i| show(blog, blog.format.unpack(bytes, i)))
            .collect();
        assert_eq!(shown.join(" "), table, "step {i}");
        check_sub_tables(&bench);
    }
    assert_eq!(bench.counters().oob_reads.map, 9);
    bench.play("R 36 1");
    let c = bench.counters();
    assert_eq!(
        (c.programs.host, c.oob_reads.map, c.reads.host),
        (11, 10, 1)
    );
}

/// Section 7 of the paper: no more than 20 KB for 1,024 data blocks and 512 log blocks.
#[test]
fn memory_of_the_paper_is_19968_bytes() {
    let geometry = Geometry::new(1, 1600, 128, 1024 * 128, ProgramOrder::Ascending).unwrap();
    let options = BlogOptions::default();
    let sram = |options| {
        let tables = Striped::<Blog>::tables(&geometry, options);
        let sram = tables
            .into_iter()
            .filter(|table| table.memory == Memory::Sram);
        sram.map(|table| table.bits() / 8).collect::<Vec<_>>()
    };
    // LDMT and DLT are the paper's 14 bytes a data block, the LMT its 11 bytes a log block.
    assert_eq!(sram(&options), [8 * 1024, 6 * 1024, 5632]);
    assert_eq!(sram(&options).iter().sum::<u64>(), 19_968);
    // A whole page map would take 512 KB, the map of Superblock FTL 4 KB.
    assert_eq!((1024 * 128 * 4, 4 * 1024), (512 * 1024, 4096));
    let slc = BlogOptions {
        layout: Layout::Slc,
        ..options
    };
    assert_eq!(sram(&slc).iter().sum::<u64>(), 19_968 + 512 * 128 * 4);
}

/// Section 4: 64 bytes less 2 for the ECC hold 45 indexes of 11 bits; the directory takes 33 bits a row.
#[test]
fn three_sub_tables_of_45_pages() {
    let geometry = Geometry::new(1, 1600, 128, 1024 * 128, ProgramOrder::Ascending).unwrap();
    let options = BlogOptions {
        u: 8,
        ..BlogOptions::default()
    };
    let bits = options.index_format(&geometry).bits();
    let entries = options.entries(&geometry);
    let groups = 128_u32.div_ceil(entries);
    assert_eq!((bits, entries, groups, groups * bits), (11, 45, 3, 33));
    let default = BlogOptions::default();
    assert_eq!(default.index_format(&geometry).bits(), 9);
    assert_eq!(default.entries(&geometry), 55);
}

// Table 1's part in microseconds.
const READ: u64 = 60;
const PROGRAM: u64 = 800;
const READ_OOB: u64 = 20;
const ERASE: u64 = 1500;

fn microseconds(bench: &Device) -> u64 {
    let c = bench.counters();
    c.reads.sum() * READ
        + c.programs.sum() * PROGRAM
        + c.oob_reads.sum() * READ_OOB
        + c.erases.sum() * ERASE
}

/// Table 2: best and worst case of one page, by its formulas and by playing them.
#[test]
fn table_2() {
    let merge = 128 * (READ + PROGRAM) + ERASE;
    assert_eq!(merge, 111_580, "page level, worst case");
    assert_eq!(READ + merge, 111_640, "DFTL, worst case");
    assert_eq!(
        4 * merge + ERASE,
        447_820,
        "Superblock FTL with N = 4, worst case"
    );

    // One log block that serves four logical blocks, full: the next page pays for all four.
    let case = Case::small(1, 8, 128, 6).with("log_blocks", 1).with("l", 4);
    let mut bench = Device::audited(&case);
    bench.play("R 5 1");
    assert_eq!(microseconds(&bench), READ_OOB + READ, "best case of a read");
    bench.play("W 0 1");
    let write = READ_OOB + PROGRAM;
    assert_eq!(
        microseconds(&bench),
        READ_OOB + READ + write,
        "best case of a write"
    );
    bench.play("W 128 42, W 256 42, W 384 43");
    let before = (microseconds(&bench), bench.counters().oob_reads.map);
    assert_eq!(row(&bench, 6), "128 [0,1,2,3]");
    bench.play("W 512 1");
    assert_eq!(situations(&bench), [0, 0, 1]);
    let oob_reads = bench.counters().oob_reads.map - before.1;
    assert_eq!(
        oob_reads,
        1 + 4 * 3,
        "this page's, and three groups a merge"
    );
    let worst = microseconds(&bench) - before.0 - PROGRAM - oob_reads * READ_OOB;
    assert_eq!(worst, 4 * merge + ERASE, "BLogFTL with l = 4, worst case");
}
