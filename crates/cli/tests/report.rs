//! The report's scripts read the record by the names of its fields, where no compiler looks: here somebody does.

mod common;

use common::{Place, small_trace};
use floatgate_sim::record::schema;
use serde_json::Value;

const RUNS: &str = include_str!("../src/report/report.js");
const FLEET: &str = include_str!("../src/report/fleet.js");
const SWEEP: &str = include_str!("../src/report/sweep.js");
const PLOTS: &str = include_str!("../src/report/plots.js");

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
    for script in [RUNS, FLEET, SWEEP, PLOTS] {
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
        .run("run --scheme fast --trace t.pages --json")
        .ok()
        .json();
    let record = &document["results"][0];
    let failure = ["refused", "failed", "bug"];
    let mut checked = 0;
    for path in words(RUNS, &['.']) {
        let Some((of, path)) = path.split_once('.') else {
            continue;
        };
        match of {
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
    assert!(checked > 30, "{checked}");
}
