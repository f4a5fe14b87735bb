mod recovery;

use super::*;
use floatgate_core::address::Ppn;
use floatgate_core::geometry::ProgramOrder;
use floatgate_core::rng::SplitMix64;
use floatgate_testkit::suite::{Bench, Case};

/// The pages of a block by position, as its OOBs tell.
fn content(bench: &Bench<Superblock>, block: u32) -> Vec<u32> {
    let pages = bench.flash.ledger().geometry().pages_per_block;
    (block * pages..(block + 1) * pages)
        .filter_map(|page| bench.flash.peek_oob(Ppn(page)))
        .map(|read| read.oob.lpn.0)
        .collect()
}

fn list(bench: &Bench<Superblock>, s: u32) -> Vec<u32> {
    bench.ftl.b.blocks_of(s).map(|block| block.0).collect()
}

#[test]
fn blogftl_fig_1() {
    let case = Case::small(1, 16, 4, 9)
        .with("log_blocks", 4)
        .with("superblock_blocks", 3);
    let mut bench = Bench::<Superblock>::audited(&case);
    bench.play("W 0 1, W 4 1, W 8 1, W 1 1, W 2 1, W 0 1, W 12 1, W 27 1, W 5 1, W 9 1");
    assert_eq!(content(&bench, 9), [0, 4, 8, 1]);
    assert_eq!(bench.ftl.b.block(Pbn(9)).valid, 3);
    assert_eq!(content(&bench, 10), [2, 0, 5, 9]);
    assert_eq!(
        (content(&bench, 11), content(&bench, 12)),
        (vec![12], vec![27])
    );
    let c = bench.counters();
    assert_eq!((c.programs.gc, c.erases.gc, c.oob_reads.map), (0, 0, 20));
    bench.play("W 6 1");
    let c = bench.counters();
    assert_eq!((c.programs.gc, c.erases.gc, c.oob_reads.map), (8, 4, 22));
    let merges = bench.scheme().merges;
    assert_eq!((merges.full, merges.full_merge_associated), (1, 3));
    assert_eq!(list(&bench, 0), [13, 14, 10, 15]);
    assert_eq!(content(&bench, 13), [3, 6, 7, 10]);
    assert_eq!(content(&bench, 14), [11, 1, 4, 8]);
    assert_eq!(content(&bench, 15), [6]);
}

#[test]
fn sequential_overwrite_switches() {
    let case = Case::small(1, 16, 4, 8).with("log_blocks", 4);
    let mut bench = Bench::<Superblock>::audited(&case);
    bench.play("W 0 16, W 0 16, W 0 16");
    let c = bench.counters();
    assert_eq!((c.programs.host, c.programs.gc, c.erases.gc), (48, 0, 10));
    assert_eq!(bench.scheme().merges.switch, 10);
}

/// BLogFTL Table 2: the worst write of a superblock costs `N * ((Tr + Tw) * P + Te) + Te`: all its pages copied, its
/// `N` D-blocks and a U-block erased.
#[test]
fn worst_write_of_blogftl_table_2() {
    let (n, pages) = (3, 4);
    let case = Case::small(1, 16, pages, 9)
        .with("log_blocks", 1)
        .with("superblock_blocks", n)
        .with("extra_blocks", 1);
    let mut bench = Bench::<Superblock>::audited(&case);
    // One page of each logical block, and no block without a valid page.
    bench.play("W 0 1, W 4 1, W 8 1, W 1 1");
    bench.play("W 2 1");
    let c = bench.counters();
    assert_eq!(
        (c.programs.gc, c.erases.gc),
        (u64::from(n * pages), u64::from(n) + 1)
    );
}

/// Following PGD, PMD and PTE through the OOBs finds every live page that has been programmed since the start.
#[test]
fn the_oobs_bear_the_page_table() {
    // 64 pages a block take several groups; trims are left out of the first half.
    for (pages, seed) in [(4, 1), (64, 2), (80, 3)] {
        let case = Case {
            logical_pages: 10 * pages,
            ..Case::small(1, 24, pages, 10)
        }
        .with("log_blocks", 6);
        let mut bench = Bench::<Superblock>::audited(&case);
        bench.audit_each = false;
        let mut rng = SplitMix64::new(seed);
        for round in 0..40 * u64::from(pages) {
            let lpn = rng.below(u64::from(case.logical_pages)) as u32;
            if round > 20 * u64::from(pages) && rng.below(20) == 0 {
                bench.trim(lpn, 1).unwrap();
            } else {
                bench.write(lpn, 1).unwrap();
            }
        }
        bench.audit().unwrap();
        let found = (0..case.logical_pages)
            .filter(|&lpn| follow(&mut bench, lpn))
            .count();
        assert!(
            found > case.logical_pages as usize * 8 / 10,
            "{found} found"
        );
    }
}

/// Whether the OOBs say where a page lies; if they do, it must be right.
fn follow(bench: &mut Bench<Superblock>, lpn: u32) -> bool {
    let ftl = &bench.ftl.b;
    let newest = ftl.newest(DieLpn(lpn));
    let (lbn, offset) = ftl.split(DieLpn(lpn));
    let (pmd, pte) = ftl.tables.places(lbn, offset);
    if newest.is_none() || pmd.is_none() || pte.is_none() {
        return false;
    }
    let bytes = |at| bench.flash.peek_oob_bytes(at).expect("a programmed page");
    assert_eq!(ftl.tables.read_pmd(bytes(pmd), offset), pte);
    assert_eq!(ftl.tables.read_pte(bytes(pte), offset), newest);
    true
}

/// BLogFTL's 1,024 blocks take 4 KB. LAST++'s Table II counts 2.09 MB for SUPERBLOCK at 256 GB, the same as for
/// BAST and FAST, that is with a page map of 1,024 log blocks in RAM; but the scheme keeps its page map
/// in the OOBs, and its directory is 2 MB there.
#[test]
fn memory_of_the_papers_devices() {
    let device = |dies: u32, blocks: u32, logical: u64| {
        Geometry::new(dies, blocks, 128, logical * 128, ProgramOrder::Ascending).unwrap()
    };
    let bytes = |tables: &[Table]| {
        let ram = tables.iter().filter(|t| t.memory == Memory::Sram);
        ram.map(Table::bits).sum::<u64>() / 8
    };
    let options = SuperblockOptions::default();
    let small = device(1, 1_100, 1_024);
    assert_eq!(bytes(&Superblock::tables(&small, &options)), 4 << 10);
    let large = device(8, 66_000, 524_288);
    assert_eq!(bytes(&Superblock::tables(&large, &options)), 2 << 20);
    let as_bast = bytes(&crate::parts::budgets::hybrid_tables(&large, 1_024)) as f64;
    assert_eq!(format!("{:.2}", as_bast / f64::from(1 << 20)), "2.09");
}

#[test]
fn what_does_not_fit_is_refused_by_name() {
    let key = |case: Case| Bench::<Superblock>::refused_key(&case);
    let small = || Case::small(1, 16, 4, 8).with("log_blocks", 4);
    let huge = i64::from(u32::MAX - 1);
    assert_eq!(key(Case::small(1, 16, 4, 8)), "log_blocks");
    assert_eq!(
        key(Case::small(1, 16, 4, 8).with("log_blocks", 5)),
        "blocks"
    );
    assert_eq!(
        key(Case::small(1, 16, 4, 8).with("log_blocks", huge)),
        "blocks"
    );
    for name in ["superblock_blocks", "extra_blocks"] {
        assert_eq!(key(small().with(name, 0)), name);
    }
    assert_eq!(key(small().with("superblock_blocks", huge)), "blocks");
    assert_eq!(
        key(small().with("oob_reads_per_access", huge)),
        "oob_reads_per_access"
    );
    assert!(Bench::<Superblock>::new(&small().with("extra_blocks", huge)).is_ok());
}
