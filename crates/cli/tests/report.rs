//! The report's scripts read the record by the names of its fields, where no compiler looks: here somebody does.

mod common;

use common::{Place, report_data, small_trace};
use floatgate_sim::record::schema;
use serde_json::Value;

const RUNS: &str = include_str!("../src/report/report.js");
const FLEET: &str = include_str!("../src/report/fleet.js");
const SEPARATION: &str = include_str!("../src/report/separation.js");
const PAIRS: &str = include_str!("../src/report/pairs.js");
const SWEEP: &str = include_str!("../src/report/sweep.js");
const PLOTS: &str = include_str!("../src/report/plots.js");
const CARDS: &str = include_str!("../src/report/cards.js");
const OVER_TIME: &str = include_str!("../src/report/over_time.js");

const SLOWEST: &str = include_str!("../src/report/slowest.js");

/// What of a script is made of lower-case letters, digits and these.
fn words<'a>(script: &'a str, more: &'static [char]) -> impl Iterator<Item = &'a str> {
    let is_in = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '$' || more.contains(&c);
    let words = script.split(move |c| !is_in(c));
    words.filter(|word| !word.contains(|c: char| c.is_ascii_uppercase() || c == '$'))
}

/// The scripts' own names have capitals inside; words with an underscore are fields.
#[test]
fn every_word_with_an_underscore_is_a_field_of_the_schema() {
    let schema = schema();
    let definitions = schema["$defs"].as_object().expect("definitions");
    let is_field = |word: &str| {
        definitions
            .values()
            .any(|definition| definition["properties"].get(word).is_some())
    };
    let mut checked = 0;
    for script in [
        RUNS, FLEET, SEPARATION, PAIRS, SWEEP, PLOTS, CARDS, OVER_TIME,
    ] {
        for word in words(script, &[]).filter(|word| word.trim_matches('_').contains('_')) {
            // Components of the energy stand without their unit.
            assert!(is_field(word) || is_field(&format!("{word}_uj")), "{word}");
            checked += 1;
        }
    }
    assert!(checked > 20, "{checked}");
}

/// Follows `a.b.c` as far as objects go: what comes then is a matter of the language.
#[track_caller]
fn follow(value: &Value, path: &str) {
    let mut at = value;
    for name in path.split('.').filter(|name| !name.is_empty()) {
        let Some(object) = at.as_object() else { return };
        at = object.get(name).unwrap_or_else(|| panic!("no {path}"));
    }
}

#[test]
fn the_scripts_find_what_they_look_for() {
    let place = Place::new();
    small_trace(&place);
    let document = place
        .run("run --scheme fast --flow trace=t.pages --flow trace=t.pages --alone --slowest 3 --json")
        .ok()
        .json();
    let record = &document["results"][0];
    let flow = &record["flows"]["each"][0];
    let failure = ["refused", "failed", "bug"];
    let mut checked = 0;
    let scripts = [RUNS, OVER_TIME];
    for path in scripts.into_iter().flat_map(|script| words(script, &['.'])) {
        let Some((of, path)) = path.split_once('.') else {
            continue;
        };
        match of {
            "s" => follow(&record["series"], path),
            "size" => follow(&record["explained"]["sizes"][0], path),
            "at" => follow(&record["explained"]["percentiles"][0], path),
            "flow" => follow(flow, path),
            "map" => follow(&record["wear"]["map"], path),
            "r" | "run" if !failure.contains(&path) => follow(record, path),
            "doc" => follow(&document, path),
            _ => continue,
        }
        checked += 1;
    }
    for path in RUNS.split("get(r, \"").skip(1) {
        let path = path.split('"').next().expect("a path");
        follow(record, &path.replace('/', "."));
        checked += 1;
    }
    assert!(checked > 60, "{checked}");
}

/// What is drawn of the slowest request is no part of the record, so the report's own data has it.
#[test]
fn the_slowest_request_has_what_its_script_looks_for() {
    let place = Place::new();
    small_trace(&place);
    place
        .run("run --scheme fast --trace t.pages --report r.html")
        .ok();
    let document = report_data(&place, "r.html");
    let slowest = &document["slowest"];
    // Only copies in a row have pages.
    let bars = slowest["bars"].as_array().expect("bars");
    let bar = bars.iter().find(|bar| bar["pages"].is_u64());
    let bar = bar.expect("a merge copies pages");
    let mut checked = 0;
    for (of, path) in words(SLOWEST, &['.']).filter_map(|word| word.split_once('.')) {
        match of {
            "slowest" => follow(slowest, path),
            "bar" => follow(bar, path),
            "doc" => follow(&document, path),
            _ => continue,
        }
        checked += 1;
    }
    assert!(checked > 20, "{checked}");
}

/// The lines that a sweep's report draws over the separations are in its data, and only where pages are put apart.
#[test]
fn a_sweep_of_separations_has_its_lines() {
    let place = Place::new();
    small_trace(&place);
    let varied = "--vary scheme.separation=none,fk --vary scheme.gc_policy=greedy,cost-benefit";
    place
        .run(&format!(
            "sweep --scheme page,fast --trace t.pages {varied} --report s.html"
        ))
        .ok();
    let page = std::fs::read_to_string(place.path("s.html")).expect("the report");
    for script in [PLOTS, CARDS, SEPARATION, PAIRS, SWEEP] {
        assert!(page.contains(script));
    }
    let document = report_data(&place, "s.html");
    let cells = document["cells"].as_array().expect("cells");
    assert_eq!(cells.len(), 8);
    for cell in cells {
        for script in [SEPARATION, PAIRS] {
            for path in words(script, &['.']).filter_map(|word| word.strip_prefix("cell.")) {
                follow(cell, path);
            }
        }
        let line = cell["device"]["uniform_write_amplification"].as_f64();
        assert_eq!(line.is_some(), cell["scheme"] == "page");
        assert!(line.is_none_or(|line| line > 1.0), "{line:?}");
    }
}

/// What the report knows of the series is all of it: a new column is a new line, or it passes for a scheme's own.
#[test]
fn every_column_of_the_series_is_known() {
    let known = OVER_TIME.split("const KNOWN = new Set([").nth(1);
    let known = known.and_then(|rest| rest.split("])").next());
    let known: Vec<&str> = words(known.expect("the list"), &[]).collect();
    let schema = schema();
    let series = schema["$defs"]["Series"]["properties"].as_object();
    for column in series.expect("columns").keys() {
        assert!(known.contains(&column.as_str()), "{column}");
    }
}

/// The page carries every script and none of the marks they replace.
#[test]
fn the_page_is_whole() {
    let place = Place::new();
    small_trace(&place);
    place
        .run("compare --scheme page,fast --trace t.pages --report c.html")
        .ok();
    let page = std::fs::read_to_string(place.path("c.html")).expect("the report");
    for script in [PLOTS, CARDS, OVER_TIME, SLOWEST, RUNS] {
        assert!(page.contains(script));
    }
    assert!(!page.contains("/*SCRIPT*/") && !page.contains("/*DATA*/"));
}
