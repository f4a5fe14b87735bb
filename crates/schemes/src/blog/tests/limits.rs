//! Corner cases, refusals, and random devices.

use super::*;

/// A victim whose last logical block lies in it alone is swapped away: nothing is left to erase.
#[test]
fn space_gc_may_swap_its_victim_away() {
    for layout in ["mlc", "slc"] {
        let case = Case::small(1, 5, 4, 2)
            .with("log_blocks", 1)
            .with("l", 1)
            .with("layout", layout);
        let mut bench = Device::audited(&case);
        bench.play("W 0 4, W 4 1, R 0 8");
        let merges = bench.scheme().merges;
        assert_eq!((merges.full, merges.switch, merges.dead), (1, 1, 0));
        assert_eq!(
            (bench.extra("reduced"), merges.full_merge_associated),
            (0, 1)
        );
        assert_eq!(
            (bench.counters().erases.gc, bench.counters().programs.gc),
            (1, 0)
        );
        assert_eq!(
            row(&bench, 0),
            "1 [1]",
            "the old data block is the log block now"
        );
        assert_eq!((merges.log_reclaimed, merges.log_pages_used), (1, 4));
    }
}

/// Plain BLog swaps only a block whose pages lie at their own offsets; BLogFTL any order.
#[test]
fn slc_swaps_aligned_blocks_only() {
    for (layout, switch, copies) in [("mlc", 1, 0), ("slc", 0, 4)] {
        let case = Case::small(1, 5, 4, 2)
            .with("log_blocks", 1)
            .with("layout", layout);
        let mut bench = Device::audited(&case);
        bench.play("W 1 1, W 0 1, W 2 2, W 4 1, R 0 8");
        assert_eq!(bench.scheme().merges.switch, switch);
        assert_eq!(bench.counters().programs.gc, copies);
    }
}

/// A log block becomes a data block half full: its old sub-tables call it a log block, later ones a
/// data block, and both are understood.
#[test]
fn a_swapped_in_block_understands_its_old_sub_tables() {
    let case = Case::small(1, 7, 8, 2)
        .with("log_blocks", 2)
        .with("u", 1)
        .with("l", 2)
        .with("entries_per_oob", 3);
    let mut bench = Device::audited(&case);
    // Logical block 0 keeps pages 0, 1 and 4 only; page 4 is rewritten until the log block is full.
    bench.play("T 0 8, W 0 2, W 4 1, W 4 1, W 4 1, W 4 1, W 1 1, W 0 1");
    let blog = &bench.ftl.instances()[0];
    assert_eq!((row(&bench, 2), blog.inherited[0]), ("8 [0]".into(), 0));
    bench.play("W 4 1");
    assert_eq!(bench.scheme().merges.switch, 1);
    let blog = &bench.ftl.instances()[0];
    assert_eq!((blog.data[0], blog.inherited[0]), (Pbn(2), 8));
    assert_eq!(
        directory_entry(&bench, Lbn(0), 2),
        "-",
        "no page of that group is live"
    );
    check_sub_tables(&bench);
    bench.play("W 7 1, W 0 1, R 0 8");
    check_sub_tables(&bench);
}

#[test]
fn a_victim_without_a_logical_block_is_dead() {
    // Situation 1 of logical block 0 leaves the full log block to nobody.
    let case = Case::small(1, 6, 4, 2)
        .with("log_blocks", 1)
        .with("u", 1)
        .with("layout", "slc");
    let mut bench = Device::audited(&case);
    bench.play("W 1 1, W 0 1, W 3 1, W 2 1, W 0 1");
    assert_eq!(situations(&bench), [1, 0, 1]);
    let merges = bench.scheme().merges;
    assert_eq!(
        (merges.dead, merges.full, bench.extra("reduced")),
        (1, 0, 1)
    );
    assert_eq!((merges.log_reclaimed, merges.erases_dead), (1, 1));
}

/// A logical block without a live page loses its data block; never-programmed pages count as wasted.
#[test]
fn an_empty_logical_block_gives_its_data_block_back() {
    let case = Case {
        start: Start::Empty,
        ..Case::small(1, 6, 4, 2)
    };
    let mut bench = Device::audited(&case.with("log_blocks", 1).with("u", 1));
    bench.play("W 0 1, W 0 4, T 0 4, W 4 1, W 4 2, T 0 1, W 4 1");
    // The log block has one page of logical block 0, which is all trimmed now, and three of logical block
    // 1. The next page finds it full: both are merged.
    assert_eq!(situations(&bench), [0, 0, 0]);
    bench.play("W 4 1, W 4 1");
    let blog = &bench.ftl.instances()[0];
    assert_eq!(situations(&bench), [1, 0, 1]);
    assert_eq!(bench.extra("reduced"), 2);
    assert_eq!(bench.extra("wasted_data_pages"), 2);
    assert!(blog.data[0].is_none());
}

fn refusal(case: &Case) -> String {
    Device::refusal(case).message
}

#[test]
fn refusals_say_what_is_wrong() {
    let small = || Case::small(1, 14, 4, 9).with("log_blocks", 4);
    assert!(Device::new(&small()).is_ok());
    let asked = [
        (small().with("u", 0), "u = 0: takes 1 to 65535"),
        (small().with("l", 70_000), "l = 70000: takes 1 to 65535"),
        (small().with("entries_per_oob", 0), "at least 1 page"),
        (
            small().with("oob_bytes", 2),
            "no room for an index of 4 bits",
        ),
        (small().with("oob_ecc_bytes", 64), "no room for an index"),
        (
            small().with("log_blocks", 5),
            "9 data blocks + 5 log blocks + 1 merge reserve = 15",
        ),
        (
            small().with("log_blocks", 0),
            "at least 1 on each of 1 dies",
        ),
        (
            Case::small(2, 14, 4, 9).with("log_blocks", 5),
            "cannot be divided by 2 dies",
        ),
        (
            Case::small(1, 14, 512, 9)
                .with("log_blocks", 4)
                .with("entries_per_oob", 500),
            "a flash that stores bytes has 64",
        ),
    ];
    for (case, message) in asked {
        let refused = refusal(&case);
        assert!(refused.contains(message), "{refused}");
    }
    // What plain BLog does not use cannot be wrong.
    let slc = small().with("layout", "slc").with("oob_bytes", 0);
    assert!(Device::new(&slc).is_ok());
    for value in [65_535, 1] {
        let case = small().with("u", value).with("l", value);
        assert!(Device::new(&case).is_ok());
    }
}

/// One page write and the law of section 8 of the paper: never more than `l` rebuilds (two if `l` is 1) and
/// never more than `l + 1` erases.
fn write_within_the_bound(bench: &mut Device, lpn: u32, l: u64) -> Result<(), String> {
    let rebuilds = |bench: &Device| bench.scheme().merges.switch + bench.extra("reduced");
    let before = (
        rebuilds(bench),
        bench.counters().erases.gc,
        situations(bench),
    );
    bench.write(lpn, 1)?;
    let rebuilt = rebuilds(bench) - before.0;
    let erased = bench.counters().erases.gc - before.1;
    let entered: Vec<u64> = (0..3).map(|i| situations(bench)[i] - before.2[i]).collect();
    if rebuilt > l.max(2) || erased > l + 1 {
        return Err(format!(
            "{rebuilt} rebuilds and {erased} erases for one page"
        ));
    }
    if entered[0] > 1 || entered[1] + entered[2] > 1 {
        return Err(format!("situations {entered:?} in one page write"));
    }
    Ok(())
}

fn random_case(rng: &mut SplitMix64) -> (Case, u32) {
    let mut up_to = |n: u64| 1 + rng.below(n) as u32;
    let (dies, pages, logical) = (up_to(2), up_to(9), up_to(8));
    let (log_blocks, spare) = (up_to(5), up_to(3));
    let (u, l, entries) = (up_to(4), up_to(4), up_to(9));
    let mut case = Case::small(dies, logical + log_blocks + spare, pages, logical)
        .with("log_blocks", log_blocks * dies)
        .with("u", u)
        .with("l", l)
        .with("layout", ["mlc", "mlc", "slc"][rng.below(3) as usize]);
    if rng.below(2) == 0 {
        case = case.with("entries_per_oob", entries);
    }
    if rng.below(2) == 0 {
        case.start = Start::Empty;
    }
    if rng.below(2) == 0 {
        case.order = ProgramOrder::Any;
    }
    (case, l)
}

/// Random devices and requests; after each of them tables, OOBs and the bound are checked.
#[test]
fn never_more_than_l_rebuilds_in_one_page_write() {
    let devices = 400;
    for seed in 0..devices {
        let mut rng = SplitMix64::new(seed);
        let (case, l) = random_case(&mut rng);
        let mut bench = Device::audited(&case);
        let mlc = bench.ftl.instances()[0].layout == Layout::Mlc;
        let pages = u64::from(case.logical_pages);
        let (trims, hot) = (rng.below(4), 1 + rng.below(pages));
        for _ in 0..250 {
            let range = if rng.below(3) == 0 { pages } else { hot };
            let lpn = rng.below(range) as u32;
            let most = u64::from(case.logical_pages - lpn).min(1 + pages / 2);
            let outcome = match rng.below(12) {
                kind if kind < trims => bench.trim(lpn, 1 + rng.below(most) as u32),
                3 => bench.read(lpn, 1 + rng.below(most) as u32),
                4 => {
                    let end = lpn + 1 + rng.below(most) as u32;
                    (lpn..end).try_for_each(|lpn| write_within_the_bound(&mut bench, lpn, l.into()))
                }
                _ => write_within_the_bound(&mut bench, lpn, l.into()),
            };
            outcome.unwrap_or_else(|error| panic!("seed {seed}, {case}: {error}"));
            if mlc {
                check_sub_tables(&bench);
            }
        }
        bench.read_all().unwrap();
        assert_eq!(bench.extra("wasted_log_pages"), 0);
        let merges = bench.scheme().merges;
        assert!(merges.copies_full <= bench.counters().programs.gc);
        let erases = merges.erases_switch + merges.erases_full + merges.erases_dead;
        assert!(erases <= bench.counters().erases.gc);
    }
}
