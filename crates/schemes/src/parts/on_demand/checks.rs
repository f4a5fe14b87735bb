//! What the tests of DFTL and its kin have in common.

use super::{DemandMap, MapScheme, OnDemand};
use floatgate_core::ftl::Start;
use floatgate_core::rng::SplitMix64;
use floatgate_testkit::suite::{Bench, Case, run};

/// The laws between the map's counters and the flash's.
pub fn check_laws<S: MapScheme>(bench: &Bench<OnDemand<S>>) {
    let flash = bench.counters();
    let writebacks: u64 = [
        "map_writebacks_evict",
        "map_writebacks_flush",
        "map_writebacks_gc",
    ]
    .into_iter()
    .map(|name| bench.extra(name))
    .sum();
    let moves = bench.extra("map_moves");
    assert_eq!(flash.programs.map, writebacks + moves);
    let reads = bench.ftl.map.counters().writeback_reads;
    assert_eq!(flash.reads.map, bench.extra("map_loads") + moves + reads);
    let pages = bench.host.page_reads + bench.host.page_writes + bench.host.page_trims;
    assert_eq!(bench.extra("cmt_hits") + bench.extra("cmt_misses"), pages);
    assert_eq!(flash.oob_reads.sum(), 0);
}

/// What the worked examples tell of flash operations: programs of host and gc; reads, programs of the map; erases of both.
pub fn work<S: MapScheme>(bench: &Bench<OnDemand<S>>) -> [u64; 6] {
    let c = bench.counters();
    let (programs, erases) = (&c.programs, &c.erases);
    [
        programs.host,
        programs.gc,
        c.reads.map,
        programs.map,
        erases.gc,
        erases.map,
    ]
}

/// One of some words.
pub fn pick(rng: &mut SplitMix64, words: &[&'static str]) -> &'static str {
    words[rng.below(words.len() as u64) as usize]
}

/// A random device as tight as the reserve allows, or nearly, with random options; the entries of a translation page.
fn random_case(rng: &mut SplitMix64) -> (Case, u32) {
    let (dies, pages, logical) = (
        1 + rng.below(4) as u32,
        1 + rng.below(6) as u32,
        1 + rng.below(10) as u32,
    );
    let logical_pages = dies * pages * logical;
    let entries = 1 + rng.below(u64::from(logical_pages).min(24)) as u32;
    let q = logical_pages.div_ceil(entries).div_ceil(dies) / pages;
    let gc_low = q + 5 + rng.below(3) as u32;
    let blocks = logical + (q + 1) + (gc_low + 1) + rng.below(3) as u32;
    let start = if rng.below(2) == 0 {
        Start::Empty
    } else {
        Start::Full
    };
    let case = Case {
        start,
        seed: rng.next(),
        requests: 400,
        ..Case::small(dies, blocks, pages, logical)
    };
    let modes = ["NOFLUSH", "PAGE", "TIMEOUT", "REQ"];
    let policies = ["greedy", "fifo", "cost-benefit", "d-choices"];
    let case = case
        .with("tp_entries", entries)
        .with("gc_low", gc_low)
        .with("integrity", pick(rng, &modes))
        .with("lazy_copy", pick(rng, &["auto", "on", "off"]))
        .with("gc_policy", pick(rng, &policies))
        .with("gc_d", 1 + rng.below(4))
        .with("streams", pick(rng, &["shared", "split"]))
        .with("placement", pick(rng, &["static", "rr"]));
    (case, entries)
}

/// Plays random requests on random devices, to whose options `more` adds those of the cache, for so many
/// entries a translation page.
pub fn random_devices<S: MapScheme>(more: impl Fn(Case, u32, &mut SplitMix64) -> Case) {
    let cases = std::env::var("FLOATGATE_CASES").map_or(150, |n| n.parse().unwrap());
    let seed = std::env::var("FLOATGATE_SEED").map_or(1, |n| n.parse().unwrap());
    let mut rng = SplitMix64::new(seed);
    for _ in 0..cases {
        let (case, entries) = random_case(&mut rng);
        let case = more(case, entries, &mut rng);
        run::<OnDemand<S>>(&case).unwrap_or_else(|error| panic!("{error}\n  replay: {case}"));
        stress::<S>(&case);
    }
}

/// Single-page writes over all pages and over few: collections of both kinds under pressure.
fn stress<S: MapScheme>(case: &Case) {
    let mut bench = Bench::<OnDemand<S>>::audited(case);
    bench.audit_each = case.seed.is_multiple_of(4);
    let mut rng = SplitMix64::new(case.seed);
    for i in 0..600_u64 {
        let span = if i / 200 % 2 == 0 {
            case.logical_pages
        } else {
            case.logical_pages.min(5)
        };
        bench.play(&format!(
            "W {} 1 {}",
            rng.below(span.into()),
            i * 1_000_000_000
        ));
    }
    bench
        .audit()
        .unwrap_or_else(|error| panic!("{error}\n  replay: {case}"));
    check_laws(&bench);
    bench
        .read_all()
        .unwrap_or_else(|error| panic!("{error}\n  replay: {case}"));
}
