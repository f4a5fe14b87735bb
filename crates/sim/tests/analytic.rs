//! Does it have the shape theory says? Exact small cases, and closed formulas within 1 % (docs/spec/analytic.md).

mod common;

use common::{config, uniform};
use floatgate_catalog as _;
use floatgate_core::{Ftl, Lpn, Striped};
use floatgate_schemes::{bast::Bast, block::Block, fast::Fast, page::Page};
use floatgate_sim::analytic;

/// `gc` programs, full merges, associated, partial, dead.
fn merges<S: Ftl<Page = Lpn>>(
    logical_blocks: u32,
    log: u32,
    pages: u32,
    options: &[(&str, &str)],
    w: u64,
    n: u64,
) -> [u64; 5] {
    let log = log.to_string();
    let mut all = vec![("log_blocks", log.as_str())];
    all.extend_from_slice(options);
    let blocks = logical_blocks + log.parse::<u32>().unwrap() + 1;
    let session = uniform::<S>(&config(1, blocks, pages, logical_blocks, &all), w, n);
    let m = session.ftl.counters().merges;
    let copies = session.flash.ledger.counters.programs.gc;
    [copies, m.full, m.full_merge_associated, m.partial, m.dead]
}

#[test]
fn fast_exact_cases() {
    type F = Striped<Fast>;
    let no_sw = ("sw_log", "false");
    assert_eq!(
        merges::<F>(50, 6, 16, &[no_sw], 8_000, 20_000),
        [113_536, 1_250, 7_096, 0, 0]
    );
    let obsolete = ("merge_obsolete", "true");
    assert_eq!(
        merges::<F>(50, 6, 16, &[no_sw, obsolete], 8_000, 20_000),
        [276_640, 1_250, 17_290, 0, 0]
    );
    assert_eq!(
        merges::<F>(5, 6, 16, &[no_sw], 8_000, 20_000),
        [15_568, 739, 973, 0, 511]
    );
    assert_eq!(
        merges::<F>(50, 6, 16, &[], 8_000, 20_000),
        [131_054, 1_169, 7_109, 1_155, 0]
    );
}

#[test]
fn bast_exact_cases_and_formula() {
    type B = Striped<Bast>;
    let lru = merges::<B>(100, 30, 32, &[("victim", "lru")], 20_000, 40_000);
    assert_eq!(lru, [896_534, 27_425, 27_425, 611, 0]);
    let fifo = merges::<B>(100, 30, 32, &[("victim", "fifo")], 20_000, 40_000);
    assert_eq!(fifo, [896_185, 27_452, 27_452, 572, 0]);
    let filled = merges::<B>(100, 95, 32, &[("victim", "lru")], 20_000, 40_000);
    assert_eq!(filled, [79_996, 2_496, 2_496, 4, 0]);
    let amplification = 1.0 + lru[0] as f64 / 40_000.0;
    let formula = analytic::bast(100.0, 30.0, 32.0);
    assert!(
        (amplification / formula - 1.0).abs() < 0.01,
        "{amplification} {formula}"
    );
}

#[test]
fn block_mapping_costs_a_block_a_write() {
    let session = uniform::<Striped<Block>>(&config(1, 21, 16, 20, &[]), 100, 1_000);
    let c = session.flash.ledger.counters;
    assert_eq!((c.programs.sum(), c.erases.gc), (16_000, 1_000));
}

/// Write amplification and counters of `page` on one die of 64-page blocks.
fn page_case(blocks: u32, logical: u32, gc_low: &str, options: &[(&str, &str)]) -> (u64, u64, f64) {
    let mut all = vec![("gc_low", gc_low), ("streams", "shared")];
    all.extend_from_slice(options);
    let session = uniform::<Page>(&config(1, blocks, 64, logical, &all), 60_000, 200_000);
    let c = session.flash.ledger.counters;
    (
        c.programs.gc,
        c.erases.gc,
        c.programs.sum() as f64 / c.programs.host as f64,
    )
}

#[test]
fn page_exact_cases_and_formulas() {
    let a = |blocks, logical: u32, gc_low| {
        analytic::usable_pages(blocks, gc_low, 64) / (f64::from(logical) * 64.0)
    };
    let within = |amplification: f64, formula: f64| {
        assert!(
            (amplification / formula - 1.0).abs() < 0.01,
            "{amplification}, formula {formula}"
        );
    };
    let (copies, erases, amp) = page_case(202, 180, "2", &[]);
    assert_eq!((copies, erases), (746_758, 14_793));
    within(amp, analytic::greedy(a(202, 180, 2), 64));
    let (copies, erases, amp) = page_case(202, 186, "2", &[]);
    assert_eq!((copies, erases), (1_092_774, 20_200));
    within(amp, analytic::greedy(a(202, 186, 2), 64));
    let fifo = ("gc_policy", "fifo");
    let (copies, erases, amp) = page_case(202, 180, "2", &[fifo]);
    assert_eq!((copies, erases), (814_259, 15_848));
    within(amp, analytic::fifo(a(202, 180, 2)));
    let (copies, erases, amp) = page_case(205, 160, "5", &[fifo]);
    assert_eq!((copies, erases), (333_805, 8_341));
    within(amp, analytic::fifo(a(205, 160, 5)));
    let d = ("gc_policy", "d-choices");
    for (draws, copies, erases) in [
        ("10", 778_228, 15_285),
        ("3", 932_615, 17_697),
        ("1", 1_506_553, 26_665),
    ] {
        let got = page_case(202, 180, "2", &[d, ("gc_d", draws)]);
        assert_eq!((got.0, got.1), (copies, erases), "d = {draws}");
        within(
            got.2,
            analytic::d_choices(a(202, 180, 2), 64, draws.parse().unwrap()),
        );
    }
    let split = page_case(202, 180, "2", &[("streams", "split")]);
    assert_eq!((split.0, split.1), (752_053, 14_876));
}

/// Fill once, then rewrite in order: nothing is ever copied.
#[test]
fn sequential_rewrites_are_free_of_copies() {
    use floatgate_core::Lpn;
    use floatgate_sim::host::Kind;
    let config = config(2, 20, 8, 12, &[]);
    let mut session =
        floatgate_sim::session::Session::<Page, floatgate_sim::clock::Closed>::new(&config)
            .unwrap();
    let pages = session.geometry().logical_pages;
    for _ in 0..5 {
        (0..pages).for_each(|lpn| session.page_request(Kind::Write, Lpn(lpn), 1, 0));
    }
    session.finish();
    session.check_laws().unwrap();
    assert_eq!(session.flash.ledger.counters.programs.gc, 0);
}
