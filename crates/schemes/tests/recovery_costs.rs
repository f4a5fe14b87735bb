//! What a recovery really reads, programs and erases, against what `recovery_costs` says it takes at most.

use floatgate_catalog as _;
use floatgate_core::described::RecoveryCost;
use floatgate_core::ftl::RecoveryMode;
use floatgate_core::rng::SplitMix64;
use floatgate_core::{Ftl, Geometry, Space};
use floatgate_core::{Lpn, life};
use floatgate_testkit::ram::RamFlash;
use floatgate_testkit::suite::{Bench, Case};

const HYBRIDS: [&str; 5] = ["bast", "fmax", "fast", "faster", "kast"];

fn geometry(case: &Case) -> Geometry {
    let pages = u64::from(case.logical_pages);
    Geometry::new(case.dies, case.blocks, case.pages, pages, case.order).unwrap()
}

life! {
    /// Costs by their means.
    struct Costs = fn costs_of(&Case) -> Vec<RecoveryCost>;
}

fn costs_of<S: Ftl<Page = Lpn>>(case: &Case) -> Vec<RecoveryCost> {
    S::recovery_costs(&geometry(case), &case.options_of::<S>().unwrap())
}

fn costs(scheme: &str, case: &Case) -> Vec<RecoveryCost> {
    let catalog = floatgate_schemes::catalog::<Costs>();
    catalog.find(scheme).unwrap().life.0(case)
}

life! {
    /// Random writes, then the power goes between two requests: OOB reads, page reads, programs and erases of the
    /// recovery.
    struct Recovered = fn recover(&Case, RecoveryMode) -> [u64; 4];
}

fn recover<S: Ftl<Page = Lpn>>(case: &Case, means: RecoveryMode) -> [u64; 4] {
    let mut bench = Bench::<S>::new(case).unwrap();
    let mut rng = SplitMix64::new(case.seed);
    for _ in 0..case.requests {
        let lpn = rng.below(u64::from(case.logical_pages)) as u32;
        bench.write(lpn, 1).unwrap();
    }
    let mut flash: RamFlash = bench.flash.clone();
    flash.ledger.reset_counters();
    let (space, options) = (
        Space::whole(&geometry(case)),
        case.options_of::<S>().unwrap(),
    );
    bench.ftl = S::recover(&space, &options, means, &mut flash).unwrap();
    let done = flash.ledger.counters;
    bench.flash = flash;
    bench.read_all().unwrap();
    [
        done.oob_reads.sum(),
        done.reads.map,
        done.programs.map,
        done.erases.map,
    ]
}

fn recovered(scheme: &str, case: &Case, means: RecoveryMode) -> [u64; 4] {
    let catalog = floatgate_schemes::catalog::<Recovered>();
    catalog.find(scheme).unwrap().life.0(case, means)
}

fn case(dies: u32, map_blocks: u32) -> Case {
    Case {
        requests: 400,
        ..Case::small(dies, 24, 8, 14)
    }
    .with("log_blocks", 4 * dies)
    .with("map_blocks", map_blocks)
    .with("map_entries_per_page", 4)
}

#[test]
fn without_map_blocks_every_oob_is_read() {
    for scheme in HYBRIDS {
        for dies in [1, 2] {
            let case = case(dies, 0);
            let every_oob = u64::from(dies * 24 * 8);
            let costs = costs(scheme, &case);
            assert_eq!(
                costs,
                [RecoveryCost::scan("full scan", every_oob)],
                "{scheme}"
            );
            for means in [RecoveryMode::FullScan, RecoveryMode::Fastest] {
                let done = recovered(scheme, &case, means);
                assert_eq!(done, [every_oob, 0, 0, 0], "{scheme} {means:?}");
            }
        }
    }
}

/// `m` = 5 map pages of 4 entries for 14 data blocks and 4 log blocks a die (5 for FASTer).
#[test]
fn map_blocks_bound_what_is_read() {
    for scheme in HYBRIDS {
        for dies in [1, 2] {
            let case = case(dies, 3);
            let slots = if scheme == "faster" { 5 } else { 4 };
            let costs = costs(scheme, &case);
            let [full, by_map] = &costs[..] else {
                panic!("{scheme}: {costs:?}");
            };
            assert_eq!(by_map.means, "map blocks");
            let all = |a_die: u64| u64::from(dies) * a_die;
            assert_eq!(full.oob_reads, all(24 * 8), "{scheme}");
            assert_eq!(by_map.oob_reads, all(3 * 8 + 2 * slots * 8), "{scheme}");
            assert_eq!(by_map.page_reads, all(5), "{scheme}");
            for (means, cost) in [
                (RecoveryMode::FullScan, full),
                (RecoveryMode::Fastest, by_map),
            ] {
                let [oobs, reads, programs, erases] = recovered(scheme, &case, means);
                assert!(oobs <= cost.oob_reads, "{scheme}");
                assert!(erases <= cost.erases || scheme == "faster", "{scheme}");
                // FASTer empties its isolation area by merges, which write map pages of their own.
                let merges = scheme == "faster" && programs > cost.programs;
                assert!(programs == cost.programs || merges, "{scheme} {programs}");
                let expected = if means == RecoveryMode::Fastest {
                    all(5)
                } else {
                    0
                };
                assert_eq!(reads, expected, "{scheme} {means:?}");
                // The scan reads all but the erased pages of the map area.
                let scanned = all((24 - 3) * 8);
                assert_eq!(
                    oobs >= scanned,
                    means == RecoveryMode::FullScan,
                    "{scheme} {oobs}"
                );
            }
        }
    }
}

#[test]
fn page_block_gftl_and_leaftl_scan() {
    for scheme in ["page", "block", "gftl", "leaftl"] {
        let mut case = Case {
            requests: 400,
            ..Case::small(1, 24, 8, 14)
        };
        if scheme == "gftl" {
            case = case.with("log_blocks", 4);
        }
        let costs = costs(scheme, &case);
        assert_eq!(costs, [RecoveryCost::scan("full scan", 24 * 8)]);
        let [oobs, reads, programs, erases] = recovered(scheme, &case, RecoveryMode::Fastest);
        assert_eq!([reads, programs, erases], [0, 0, 0], "{scheme}");
        // Page mapping stops at the first erased page of a block.
        assert!(
            oobs == costs[0].oob_reads || ["page", "leaftl"].contains(&scheme) && oobs > 14 * 8,
            "{scheme}"
        );
    }
}
