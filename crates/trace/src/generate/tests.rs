use super::*;
use std::collections::HashSet;

fn all(name: &str, params: &[(&str, &str)]) -> Vec<PageRequest> {
    build(name, params).unwrap().collect()
}

fn hash(requests: &[PageRequest]) -> u64 {
    requests.iter().fold(0u64, |h, r| {
        h.wrapping_mul(1_000_003)
            .wrapping_add(r.lpn.wrapping_mul(64))
            .wrapping_add(u64::from(r.n))
    })
}

fn distinct(requests: &[PageRequest]) -> usize {
    let pages: HashSet<u64> = requests
        .iter()
        .flat_map(|r| r.lpn..r.lpn + u64::from(r.n))
        .collect();
    pages.len()
}

#[test]
fn golden_skew() {
    for (x, y, expected, pages) in [
        ("90", "10", 346_871_743_876_310_912, 467),
        ("80", "20", 15_378_315_519_434_071_616, 810),
        ("70", "30", 9_718_456_382_458_872_256, 1080),
        ("60", "40", 3_397_377_193_986_440_512, 1254),
    ] {
        let requests = all(
            "skew",
            &[
                ("space", "4096"),
                ("distinct", "1400"),
                ("writes", "4000"),
                ("x", x),
                ("y", y),
                ("seed", "1"),
            ],
        );
        assert_eq!((hash(&requests), distinct(&requests)), (expected, pages));
        if x == "90" {
            let first: Vec<u64> = requests.iter().take(6).map(|r| r.lpn).collect();
            assert_eq!(first, [939, 869, 936, 805, 974, 3819]);
        }
    }
}

#[test]
fn golden_tpcc() {
    let short = |params: &[(&str, &str)]| -> Vec<(char, u64, u32)> {
        all("tpcc", params)
            .iter()
            .map(|r| (r.op.letter(), r.lpn, r.n))
            .collect()
    };
    let writes = short(&[("space", "64"), ("writes", "10"), ("seed", "7")]);
    let expected = [11, 6, 19, 54, 48, 23, 56, 11, 56, 3];
    let expected = expected.map(|lpn| ('W', lpn, if lpn == 6 { 2 } else { 1 }));
    assert_eq!(writes, expected);
    let mixed = short(&[
        ("space", "64"),
        ("writes", "8"),
        ("seed", "7"),
        ("reads", "30"),
    ]);
    assert_eq!(
        mixed,
        [
            ('W', 11, 1),
            ('W', 30, 1),
            ('R', 54, 1),
            ('W', 11, 1),
            ('W', 54, 1),
            ('W', 11, 1),
            ('R', 57, 1),
            ('R', 56, 1),
            ('W', 56, 8),
            ('W', 11, 1),
            ('W', 52, 1)
        ]
    );
    let long = all(
        "tpcc",
        &[("space", "4096"), ("writes", "20000"), ("seed", "1")],
    );
    let written: u64 = long.iter().map(|r| u64::from(r.n)).sum();
    assert_eq!(
        (hash(&long), written, distinct(&long)),
        (9_407_995_897_499_081_795, 20_759, 1746)
    );
}

/// The streams of the other generators, pinned; an implementation with fractions of 50 digits gave the same.
#[test]
fn golden_others() {
    let first = |name: &str, params: &[(&str, &str)]| -> Vec<(char, u64, u32)> {
        all(name, params)
            .iter()
            .take(8)
            .map(|r| (r.op.letter(), r.lpn, r.n))
            .collect()
    };
    let lpns = |name: &str, params: &[(&str, &str)]| -> Vec<u64> {
        first(name, params).iter().map(|r| r.1).collect()
    };
    assert_eq!(
        lpns(
            "sequential",
            &[
                ("space", "12"),
                ("streams", "2"),
                ("n", "2"),
                ("requests", "8")
            ]
        ),
        [0, 6, 2, 8, 4, 10, 0, 6]
    );
    let zipf = all(
        "zipf",
        &[("space", "4096"), ("requests", "20000"), ("seed", "1")],
    );
    assert_eq!((hash(&zipf), distinct(&zipf)), GOLDEN_ZIPF);
    let uniform = all(
        "uniform",
        &[
            ("space", "4096"),
            ("requests", "20000"),
            ("n", "4"),
            ("reads", "25"),
        ],
    );
    assert_eq!((hash(&uniform), distinct(&uniform)), GOLDEN_UNIFORM);
    let mixed = all("mixed", &[("space", "4096"), ("requests", "20000")]);
    assert_eq!((hash(&mixed), distinct(&mixed)), GOLDEN_MIXED);
    let random = all("randomness", &[("space", "4096"), ("requests", "20000")]);
    assert_eq!((hash(&random), distinct(&random)), GOLDEN_RANDOMNESS);
}

const GOLDEN_ZIPF: (u64, usize) = (6_569_321_998_735_173_312, 2855);
const GOLDEN_UNIFORM: (u64, usize) = (1_705_609_727_821_828_864, 4096);
const GOLDEN_MIXED: (u64, usize) = (12_495_645_530_517_963_456, 4066);
const GOLDEN_RANDOMNESS: (u64, usize) = (17_244_454_364_545_604_096, 4096);

/// The shares of the ranks come out as Zipf's law says.
#[test]
fn zipf_shares() {
    let n = 100_000;
    let requests = all(
        "zipf",
        &[
            ("space", "1000"),
            ("theta", "1"),
            ("requests", "100000"),
            ("seed", "3"),
        ],
    );
    let mut counts = std::collections::HashMap::new();
    for r in &requests {
        *counts.entry(r.lpn).or_insert(0u32) += 1;
    }
    let mut counts: Vec<u32> = counts.into_values().collect();
    counts.sort_unstable_by(|a, b| b.cmp(a));
    let harmonic: f64 = (1..=1000).map(|i| 1.0 / f64::from(i)).sum();
    for rank in [1usize, 2, 3, 10] {
        let expected = f64::from(n) / harmonic / rank as f64;
        let found = f64::from(counts[rank - 1]);
        assert!(
            (found / expected - 1.0).abs() < 0.1,
            "rank {rank}: {found}, {expected}"
        );
    }
}

#[test]
fn every_default_builds_and_stays_in_its_space() {
    for info in generators() {
        for p in info.params {
            assert!(!p.doc.is_empty() && !p.default.is_empty());
        }
        let requests: Vec<_> = build(info.name, &[("arrival", "exponential")])
            .unwrap()
            .take(10_000)
            .collect();
        assert_eq!(requests.len(), 10_000, "{}", info.name);
        for pair in requests.windows(2) {
            assert!(pair[0].arrival_ns <= pair[1].arrival_ns);
        }
        assert!(
            requests
                .iter()
                .all(|r| r.n > 0 && r.lpn + u64::from(r.n) <= 65_536)
        );
    }
}

#[test]
fn the_schedule_does_not_change_the_addresses() {
    let plain = all("mixed", &[("requests", "500")]);
    let timed = all(
        "mixed",
        &[("requests", "500"), ("arrival", "fixed"), ("gap", "7")],
    );
    for (i, (a, b)) in plain.iter().zip(&timed).enumerate() {
        assert_eq!((a.op, a.lpn, a.n, a.arrival_ns), (b.op, b.lpn, b.n, 0));
        assert_eq!(b.arrival_ns, 7 * i as u64);
    }
}

/// The rule of docs/spec/workload-analysis.md, section 5, once more and slowly: blocks and places of the tiers.
#[test]
fn the_working_set_lies_in_its_share_of_the_blocks() {
    let (space, block_pages) = (4096_u64, 64);
    let run = |order: &str, blocks: &str| {
        let params = [
            ("space", "4096"),
            ("writes", "20000"),
            ("blocks", blocks),
            ("order", order),
        ];
        all("tpcc", &params)
    };
    let plain = all("tpcc", &[("space", "4096"), ("writes", "20000")]);
    assert_eq!(run("scattered", "100"), plain);
    let chosen: Vec<u64> = (0..space / block_pages)
        .filter(|b| (b + 1) * 75 / 100 > b * 75 / 100)
        .collect();
    assert_eq!(chosen.len(), 48);
    for order in ["scattered", "tiers"] {
        let requests = run(order, "75");
        // Further pages of a request lie where they lie; its first is one of the working set.
        let mut writes = std::collections::HashMap::new();
        for r in &requests {
            *writes.entry(r.lpn).or_insert(0u32) += 1;
        }
        assert!(writes.len() <= 4096 * 35 / 100 && writes.len() > 1300);
        let blocks: HashSet<u64> = writes.keys().map(|lpn| lpn / block_pages).collect();
        assert_eq!(blocks.len(), 48, "{order}");
        assert!(blocks.iter().all(|block| chosen.contains(block)), "{order}");
        // 35 of 75 pages of a block: a tier of its own fills its blocks as the others do.
        let in_first_tier: u32 = (writes.iter())
            .filter(|(lpn, _)| chosen[..4].contains(&(*lpn / block_pages)))
            .map(|(_, n)| n)
            .sum();
        let share = f64::from(in_first_tier) / 20_000.0;
        let expected = if order == "tiers" {
            0.45..0.55
        } else {
            0.06..0.11
        };
        assert!(expected.contains(&share), "{order}: {share}");
    }
    let tiers = run("tiers", "75");
    assert_eq!((hash(&tiers), distinct(&tiers)), GOLDEN_TIERS);
}

/// As computed by a program of twenty lines written from the page alone.
const GOLDEN_TIERS: (u64, usize) = (7_374_286_745_924_806_032, 1698);

/// With `continue` a sequential write follows the request before it, as Iometer has it.
#[test]
fn sequential_writes_continue() {
    let of = |word: &str| -> Vec<u64> {
        let params = [
            ("space", "40"),
            ("n", "4"),
            ("requests", "2000"),
            ("random", "30"),
            ("sequential", word),
        ];
        all("randomness", &params)
            .iter()
            .map(|r| r.lpn / 4)
            .collect()
    };
    let (front, following) = (of("front"), of("continue"));
    let follows = |slots: &[u64]| {
        let pairs = slots.windows(2);
        pairs.filter(|pair| pair[1] == (pair[0] + 1) % 10).count()
    };
    // The same draws: what is random is random in both. 70 % are sequential, and of the others a tenth by chance.
    assert!(
        (1400..1540).contains(&follows(&following)),
        "{}",
        follows(&following)
    );
    assert!(follows(&front) < 1150, "{}", follows(&front));
    let mut random = SplitMix64::new(1);
    let (mut ahead, mut before) = (0, 9);
    for (&front, &slot) in front.iter().zip(&following) {
        if random.below(100) < 30 {
            let drawn = random.below(10);
            assert_eq!((front, slot), (drawn, drawn));
        } else {
            assert_eq!((front, slot), (ahead % 10, (before + 1) % 10));
            ahead += 1;
        }
        before = slot;
    }
}

#[test]
fn read_shares_with_a_decimal() {
    let reads = |share: &str| {
        let requests = all("zipf", &[("reads", share)]);
        requests.iter().filter(|r| r.op == Op::Read).count()
    };
    assert!((99_860..99_940).contains(&reads("99.9")));
    assert!((450..550).contains(&reads("0.5")));
    assert_eq!((reads("0"), reads("0.0"), reads("100")), (0, 0, 100_000));
}

/// Pages written by stream, and whether each stream stays in its part of the space.
fn by_stream(requests: &[PageRequest], part: impl Fn(u32) -> std::ops::Range<u64>) -> Vec<u64> {
    let mut pages = Vec::new();
    for r in requests {
        let stream = r.stream.number().unwrap();
        assert!(part(stream).contains(&r.lpn) && r.lpn + u64::from(r.n) <= part(stream).end);
        pages.resize(pages.len().max(stream as usize + 1), 0);
        pages[stream as usize] += u64::from(r.n);
    }
    pages
}

#[test]
fn a_cache_has_small_objects_at_random_and_large_ones_in_a_ring() {
    let requests = all(
        "cachelib",
        &[("space", "10000"), ("page_writes", "200000"), ("n", "64")],
    );
    // 150 runs of 64 pages in 9,600; 400 pages are 4 %.
    let parts = [0..400, 400..10_000];
    let pages = by_stream(&requests, |stream| parts[stream as usize].clone());
    assert_eq!(pages.iter().sum::<u64>(), 200_000);
    assert!((118_000..122_000).contains(&pages[0]), "{pages:?}");
    let runs: Vec<&PageRequest> = requests.iter().filter(|r| r.n > 1).collect();
    assert!(runs.len() > 1000);
    for (i, run) in runs.iter().enumerate() {
        assert_eq!(run.lpn, 400 + i as u64 % 150 * 64);
    }
    let none = [("small_writes", "0"), ("page_writes", "100")];
    let last = all("cachelib", &none).pop().unwrap();
    assert_eq!((last.n, last.stream.number()), (36, Some(1)));
}

#[test]
fn writers_append_in_rings_of_their_own() {
    let base = [
        ("space", "2700"),
        ("n", "10"),
        ("page_writes", "1000000"),
        ("writers", "9"),
    ];
    let rings = [("elsewhere", "0")];
    let part = |writer: u32| u64::from(writer) * 300..u64::from(writer + 1) * 300;
    let alike = all("kv-cache", &[&base[..], &rings, &[("theta", "0")]].concat());
    let pages = by_stream(&alike, part);
    assert!(
        pages.iter().all(|p| (109_000..113_000).contains(p)),
        "{pages:?}"
    );
    let requests = all("kv-cache", &[&base[..], &rings, &[("theta", "1")]].concat());
    let pages = by_stream(&requests, part);
    // Weights 1, 1/2, .. 1/9 of 2.829.
    assert!((350_000..358_000).contains(&pages[0]), "{pages:?}");
    assert!((38_000..41_000).contains(&pages[8]), "{pages:?}");
    let of_one = requests.iter().filter(|r| r.stream.number() == Some(2));
    for (i, r) in of_one.enumerate() {
        assert_eq!(r.lpn, 600 + i as u64 % 30 * 10);
    }
    let elsewhere = all("kv-cache", &[&base[..], &[("elsewhere", "100")]].concat());
    by_stream(&elsewhere, part);
    let starts: std::collections::BTreeSet<u64> = elsewhere.iter().map(|r| r.lpn).collect();
    assert_eq!(starts.len(), 270);
    let in_order = elsewhere.windows(2).filter(|w| w[1].lpn == w[0].lpn + 10);
    assert!(in_order.count() < elsewhere.len() / 20);
}

#[test]
fn wrong_parameters() {
    let message = |name: &str, params: &[(&str, &str)]| match build(name, params) {
        Ok(_) => panic!("{name} {params:?} was built"),
        Err(error) => error.to_string(),
    };
    assert!(message("nothing", &[]).contains("skew, tpcc"));
    assert!(message("skew", &[("z", "1")]).contains("distinct"));
    assert!(message("skew", &[("x", "101")]).contains("from 0 to 100"));
    assert!(message("skew", &[("x", "1"), ("x", "2")]).contains("twice"));
    assert!(message("skew", &[("y", "0")]).contains("hot"));
    assert!(message("skew", &[("y", "100")]).contains("cold"));
    assert!(message("skew", &[("space", "1000")]).contains("distinct"));
    assert!(message("tpcc", &[("tiers", "10:50,20:20")]).contains("100"));
    assert!(message("tpcc", &[("tiers", "x")]).contains("list"));
    assert!(message("tpcc", &[("space", "10"), ("tiers", "1:50,99:50")]).contains("no page"));
    assert!(message("tpcc", &[("reads", "100")]).contains("99"));
    assert!(message("tpcc", &[("blocks", "30")]).contains("no room"));
    assert!(message("tpcc", &[("blocks", "30"), ("order", "tiers")]).contains("no room"));
    assert!(message("tpcc", &[("order", "any")]).contains("scattered or tiers"));
    assert!(message("randomness", &[("sequential", "back")]).contains("front or continue"));
    assert!(message("zipf", &[("reads", "99.95")]).contains("one decimal"));
    assert!(message("zipf", &[("theta", "nan")]).contains("theta"));
    assert!(message("sequential", &[("space", "2"), ("streams", "3")]).contains("small"));
    assert!(message("cachelib", &[("space", "65")]).contains("no room"));
    assert!(message("cachelib", &[("small", "0")]).contains("from 1 to 99"));
    assert!(message("kv-cache", &[("space", "512")]).contains("small"));
    assert!(message("uniform", &[("arrival", "often")]).contains("fixed"));
}
