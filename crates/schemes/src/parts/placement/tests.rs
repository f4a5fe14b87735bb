use std::sync::Arc;

use floatgate_core::Ftl;
use floatgate_core::ftl::Start;
use floatgate_core::options::{Options, Value};
use floatgate_core::rng::SplitMix64;
use floatgate_testkit::suite::{Bench, Case};

use super::{PageOptions, Rules, Units};
use crate::hat::Hat;
use crate::page::{Page, PageBy};

/// The page with the rules, and the worked examples in it.
const PAGE: &str = include_str!("../../../../../docs/spec/placement.md");

/// The rows of the example whose paragraph begins with that word: request; host, gc, erases; erased units.
fn rows(example: &str) -> Vec<(String, [u64; 3], usize)> {
    let from = PAGE.split_once("## 13.").expect("section 13").1;
    let heading = format!("\n**{example}**");
    let text = from.split_once(&heading).expect("the example").1;
    let table = text.lines().skip_while(|line| !line.starts_with("| 1 |"));
    let lines = table.take_while(|line| line.starts_with('|'));
    lines
        .map(|line| {
            let cells: Vec<&str> = line.split('|').map(str::trim).collect();
            let counts: Vec<u64> = cells[4].split(", ").map(|n| n.parse().unwrap()).collect();
            let erased = cells[5].split_whitespace().count();
            (cells[2].into(), counts.try_into().unwrap(), erased)
        })
        .collect()
}

/// The counters that are not 0 in the end, as the example has them.
fn extra(example: &str) -> Vec<(String, u64)> {
    let text = PAGE.split_once(&format!("\n**{example}**")).unwrap().1;
    let line = text.split_once("what is not 0: ").unwrap().1;
    let line = line.split_once(".\n").unwrap().0;
    let pairs = line.split(", ").map(|pair| pair.rsplit_once(' ').unwrap());
    pairs
        .map(|(name, value)| (name.into(), value.parse().unwrap()))
        .collect()
}

/// With which write each write ends, for requests on a full device.
fn deaths(pages: u32, requests: &[(String, [u64; 3], usize)]) -> Arc<[u64]> {
    let (mut deaths, mut last) = (vec![u64::MAX], vec![0; pages as usize]);
    let mut write = |deaths: &mut Vec<u64>, page: usize, is_write: bool| {
        let number = deaths.len() as u64;
        let old = std::mem::replace(&mut last[page], if is_write { number } else { 0 });
        if old > 0 {
            deaths[old as usize] = number;
        }
        if is_write {
            deaths.push(u64::MAX);
        }
    };
    (0..pages as usize).for_each(|page| write(&mut deaths, page, true));
    for (request, ..) in requests {
        let words: Vec<&str> = request.split(' ').collect();
        let (first, n): (usize, usize) = (words[1].parse().unwrap(), words[2].parse().unwrap());
        (first..first + n).for_each(|page| write(&mut deaths, page, words[0] == "W"));
    }
    deaths.into()
}

fn worked_example(example: &str, case: &Case, units: usize) {
    let rows = rows(example);
    assert!(rows.len() > 10, "the table of {example}");
    let mut bench = Bench::<Page>::new(case).unwrap();
    bench.audit_each = true;
    bench.ftl.foretell(deaths(case.logical_pages, &rows));
    for (request, expected, erased) in rows {
        let c = bench.play(&request).counters();
        assert_eq!(
            [c.programs.host, c.programs.gc, c.erases.gc],
            expected,
            "{request}"
        );
        let mut seen = floatgate_core::report::Observation::default();
        floatgate_core::described::Described::observe(&bench.ftl, &mut seen);
        assert_eq!(seen.values[0].value as usize, erased * units, "{request}");
    }
    let counters = bench.scheme().extra;
    let counted = counters.iter().filter(|n| n.value != 0);
    let mut counted: Vec<(String, u64)> = counted.map(|n| (n.name.into(), n.value)).collect();
    let mut expected = extra(example);
    counted.sort();
    expected.sort();
    assert_eq!(counted, expected);
}

fn case(dies: u32, blocks: u32, logical_blocks: u32, separation: &str) -> Case {
    Case::small(dies, blocks, 4, logical_blocks).with("separation", separation)
}

#[test]
fn worked_example_of_dac() {
    worked_example("dac", &case(1, 7, 2, "dac").with("classes", 3), 1);
}

#[test]
fn worked_example_of_sfs() {
    let case = case(1, 7, 2, "sfs").with("classes", 2);
    worked_example("sfs", &case.with("gc_policy", "cost-hotness"), 1);
}

#[test]
fn worked_example_of_sepbit() {
    let case = case(1, 14, 4, "sepbit").with("lifespan_blocks", 2);
    worked_example("sepbit", &case.with("gc_policy", "fifo"), 1);
}

#[test]
fn worked_example_of_fk() {
    let case = case(1, 9, 2, "fk")
        .with("classes", 3)
        .with("fk_scale", "linear");
    worked_example("fk", &case.with("gc_policy", "fifo"), 1);
}

#[test]
fn worked_example_of_hint() {
    let case = case(2, 8, 2, "hint")
        .with("groups", 1)
        .with("hint_handles", 2);
    let case = case.with("hint_persistent", 1).with("gc_policy", "fifo");
    worked_example("hint", &case, 2);
}

/// Host programs, gc programs, erases.
#[test]
fn worked_example_of_the_victims() {
    let text = PAGE.split_once("\n**Victims**").unwrap().1;
    let requests = text.split_once("requests ").unwrap().1;
    let requests = requests.split_once(". Collections").unwrap().0;
    let table = text.split_once("|---|---|---|\n").unwrap().1.lines();
    let table = table.take_while(|line| line.starts_with("| `"));
    let mut tried = 0;
    for line in table {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        let mut words = cells[1].split('`');
        let policy = words.nth(1).unwrap();
        let mut case = case(1, 8, 4, "split").with("gc_policy", policy);
        if cells[1].contains("gc_window") {
            case = case.with("gc_window", 50);
        }
        let mut bench = Bench::<Page>::new(&case).unwrap();
        let c = bench.play(requests).counters();
        let got = [c.programs.host, c.programs.gc, c.erases.gc].map(|n| n.to_string());
        assert_eq!(got.join(", "), cells[3], "{policy}");
        tried += 1;
    }
    assert_eq!(tried, 7);
}

/// Rules of this crate that never give way to plain page mapping.
#[derive(Debug)]
struct Always;

impl Rules for Always {
    const KEY: &'static str = "always";
    const TITLE: &'static str = "Always";
    const SUMMARY: &'static str = "the laboratory, whatever the options";
    const SOURCE: &'static str = "a test";
    type Separation = super::AnySeparation;
    type Victims = super::AnyVictims;
}

/// With the options of docs/spec/page.md the laboratory does what plain page mapping does, to the last byte of the flash.
#[test]
fn the_laboratory_is_page_mapping_where_nothing_else_is_asked_for() {
    let mut rng = SplitMix64::new(8);
    for round in 0..60 {
        let dies = 1 + rng.below(3) as u32;
        let mut case = Case::small(dies, 12, 4, 6);
        let words = |rng: &mut SplitMix64, words: &[&'static str]| {
            words[rng.below(words.len() as u64) as usize]
        };
        let policies = ["greedy", "cost-benefit", "fifo", "d-choices"];
        case = case
            .with("gc_policy", words(&mut rng, &policies))
            .with("streams", words(&mut rng, &["split", "shared"]))
            .with("placement", words(&mut rng, &["static", "rr"]))
            .with("gc_low", words(&mut rng, &["2", "3", "4"]));
        case.start = [Start::Empty, Start::Full][round % 2];
        let mut plain = Bench::<Page>::new(&case).unwrap();
        let mut placed = Bench::<PageBy<Always>>::new(&case).unwrap();
        placed.audit_each = true;
        let pages = u64::from(case.logical_pages);
        for _ in 0..400 {
            let first = rng.below(pages) as u32;
            let n = (1 + rng.below(6) as u32).min(case.logical_pages - first);
            let op = ["W", "W", "W", "W", "T", "R"][rng.below(6) as usize];
            let request = format!("{op} {first} {n}");
            plain.play(&request);
            placed.play(&request);
            assert_eq!(plain.counters(), placed.counters(), "{case:?} {request}");
        }
        assert_eq!(plain.scheme(), placed.scheme());
        for lpn in 0..case.logical_pages {
            let lpn = floatgate_core::Lpn(lpn);
            assert_eq!(plain.ftl.place(lpn), placed.ftl.place(lpn), "{case:?}");
        }
    }
}

/// What a refusal of these options says, and the key at fault.
fn refusal(case: &Case) -> (String, String) {
    let refusal = Bench::<Page>::new(case).expect_err("a refusal");
    (refusal.key.unwrap_or_default(), refusal.message)
}

#[test]
fn bad_options_are_refused_by_key_and_reason() {
    let roomy = |separation| case(2, 60, 2, separation);
    for (case, key) in [
        (roomy("dac").with("classes", 1), "classes"),
        (roomy("sfs").with("classes", 17), "classes"),
        (roomy("sepbit").with("gc_low", 4), "gc_low"),
        (roomy("fk").with("gc_low", 12), "gc_low"),
        (
            roomy("sepbit").with("lifespan_blocks", 0),
            "lifespan_blocks",
        ),
        (roomy("hint").with("hint_handles", 0), "hint_handles"),
        (roomy("hint").with("hint_handles", 65), "hint_handles"),
        (roomy("hint").with("hint_persistent", 9), "hint_persistent"),
        (roomy("dac").with("placement", "hint"), "placement"),
        (roomy("dac").with("groups", 3), "groups"),
        (roomy("dac").with("ru_rows", 0), "ru_rows"),
        (roomy("dac").with("ru_rows", 7), "ru_rows"),
        (roomy("dac").with("ru_rows", 4), "logical_pages"),
        (roomy("dac").with("gc_policy", "2r-fifo"), "gc_policy"),
        (roomy("none").with("gc_policy", "2r-greedy"), "gc_policy"),
        (
            roomy("none")
                .with("gc_policy", "windowed-greedy")
                .with("gc_window", 101),
            "gc_window",
        ),
        (
            roomy("split")
                .with("gc_policy", "2r-fifo")
                .with("region_depth", 0),
            "region_depth",
        ),
        (case(1, 9, 2, "dac"), "blocks"),
    ] {
        let (named, message) = refusal(&case);
        assert_eq!(named, key, "{message}");
        assert!(
            message.contains(key) || key == "gc_policy" || key == "blocks",
            "{message}"
        );
    }
    let (_, sum) = refusal(&case(1, 9, 2, "dac"));
    assert!(
        sum.contains("2 of data + 2 for gc_low + 6 for open units = 10"),
        "{sum}"
    );
    assert!(Bench::<Page>::new(&case(1, 10, 2, "dac")).is_ok());
}

/// Each unit's pages go round the dies of the group, row by row, and no flash page stands for two places.
#[test]
fn places_of_units_are_the_pages_of_the_device_each_once() {
    let mut options = PageOptions::default();
    options.set("groups", &Value::Int(2)).unwrap();
    options.set("ru_rows", &Value::Int(2)).unwrap();
    let geometry = Case::small(4, 6, 3, 2).geometry().unwrap();
    let units = Units::of(&geometry, &options).unwrap();
    let books = super::Books::new(units);
    let shape = books.shape();
    assert_eq!(
        (shape.dies, shape.blocks_per_die, shape.pages_per_block),
        (2, 3, 12)
    );
    let pages: Vec<u32> = (0..shape.pages())
        .map(|at| books.flash_page(floatgate_core::Ppn(at)).0)
        .collect();
    // Group 0, unit 1 begins in block 2 of dies 0 and 1: page 0, page 0, page 1, ...; its second row in block 3.
    assert_eq!(
        pages[12..16],
        [2 * 3, (6 + 2) * 3, 2 * 3 + 1, (6 + 2) * 3 + 1]
    );
    assert_eq!(pages[18], 3 * 3);
    let mut once = pages;
    once.sort_unstable();
    assert!(once.into_iter().eq(0..shape.pages()));
}

/// docs/spec/placement.md, section 11: 256 GB of 4 KB pages in 524,288 blocks.
#[test]
fn memory_of_the_papers_device() {
    use floatgate_core::described::Described;
    use floatgate_core::geometry::{Geometry, ProgramOrder};
    let geometry = Geometry::new(8, 70_000, 128, 1 << 26, ProgramOrder::Ascending).unwrap();
    let bits = |words: &[(&str, &str)], table: &str| -> u64 {
        let mut options = PageOptions::default();
        for (key, word) in words {
            options.set(key, &Value::from_word(word)).unwrap();
        }
        let tables = Page::tables(&geometry, &options);
        let found = tables.iter().find(|known| known.name == table);
        found.expect("the table").bits()
    };
    let sepbit = [("separation", "sepbit"), ("recency", "table")];
    assert_eq!(bits(&sepbit, "last writes") / 8, 256 << 20);
    let sfs = [("separation", "sfs")];
    assert_eq!(bits(&sfs, "last writes and counts") / 8, 512 << 20);
    let dac = [("separation", "dac")];
    assert_eq!(bits(&dac, "classes of units"), 8 * 70_000 * 3);
    assert_eq!(Page::tables(&geometry, &PageOptions::default()).len(), 1);
}

/// `hat` places as `page` does, and keeps its own counters beside.
#[test]
fn hat_places_as_page_does() {
    let case = case(2, 14, 4, "sepbit").with("lifespan_blocks", 1);
    let case = case.with("gc_policy", "fifo");
    let mut page = Bench::<Page>::new(&case).unwrap();
    let mut hat = Bench::<Hat>::new(&case.with("qmt_entries", 3)).unwrap();
    let mut rng = SplitMix64::new(4);
    for _ in 0..3000 {
        let first = [rng.below(31), rng.below(8)][rng.below(4).min(1) as usize];
        let request = format!(
            "{} {first} 2",
            ["W", "W", "W", "T", "R"][rng.below(5) as usize]
        );
        page.play(&request);
        hat.play(&request);
    }
    assert_eq!(page.counters().programs, hat.counters().programs);
    assert!(page.extra("class_gc_2") > 0 && page.extra("class_gc_3") > 0);
    for counter in page.scheme().extra {
        assert_eq!(counter.value, hat.extra(counter.name), "{}", counter.name);
    }
    assert!(hat.extra("qmt_misses") > 0);
}

/// DFTL's reserve counts on one block a collection, so it takes the options of docs/spec/page.md only.
#[test]
fn dftl_has_no_such_options() {
    let mut options = crate::dftl::DftlOptions::default();
    for (key, word) in [
        ("separation", "dac"),
        ("ru_rows", "2"),
        ("gc_policy", "cat"),
    ] {
        let refused = options.set(key, &Value::from_word(word)).unwrap_err();
        assert_eq!(refused.key.as_deref(), Some(key));
    }
}
