//! Does every scheme keep what it was given, on every shape of device? One suite for all, instantiated
//! from the registry; a scheme that is not listed here has no entry there.

use floatgate_core::Ftl;
use floatgate_core::ftl::{Visitor, all, visit};
use floatgate_core::options::{Options, Value};
use floatgate_core::suite::{Case, cases, run};

struct Suite<'a>(&'a Case);

impl Visitor for Suite<'_> {
    type Output = Result<(), String>;
    fn visit<S: Ftl>(self) -> Self::Output {
        let mut case = self.0.clone();
        let takes = |key| S::Options::schema().iter().any(|option| option.key == key);
        let given = |key: &str| self.0.options.iter().any(|(k, _)| k == key);
        // Log blocks are a required option of the schemes that have them: four a die.
        if takes("log_blocks") && !given("log_blocks") {
            case.options
                .push(("log_blocks".into(), Value::Int(i64::from(4 * case.dies))));
        }
        run::<S>(&case).map_err(|error| format!("{}: {error}\n  replay: {case}", S::KEY))
    }
}

#[test]
fn every_scheme_keeps_every_byte() {
    let mut failures = Vec::new();
    let mut runs = 0;
    for scheme in all() {
        for case in cases() {
            runs += 1;
            if let Some(Err(failure)) = visit(scheme.key, Suite(&case)) {
                failures.push(failure);
            }
        }
    }
    println!("{runs} runs over {} schemes, seeds 100..", all().len());
    assert!(
        failures.is_empty(),
        "{} of {runs} failed\n{}",
        failures.len(),
        failures.join("\n")
    );
}

/// Options change the paths: each listed value is tried on two devices.
#[test]
fn every_option_keeps_every_byte() {
    let mut failures = Vec::new();
    let mut runs = 0;
    for scheme in all() {
        for option in &scheme.options {
            let words: Vec<&str> = option.values.split(", ").collect();
            let words = if option.values == "number" {
                number_values(option.key)
            } else {
                words
            };
            for word in words {
                for (i, case) in [Case::small(1, 24, 4, 10), Case::small(2, 30, 8, 12)]
                    .into_iter()
                    .enumerate()
                {
                    let case = Case {
                        seed: 7 + i as u64,
                        requests: 500,
                        ..case
                    }
                    .with(option.key, word);
                    runs += 1;
                    if let Some(Err(failure)) = visit(scheme.key, Suite(&case)) {
                        failures.push(failure);
                    }
                }
            }
        }
    }
    println!("{runs} runs, seeds 7 and 8");
    assert!(
        failures.is_empty(),
        "{} of {runs} failed\n{}",
        failures.len(),
        failures.join("\n")
    );
}

/// Numbers worth trying for options that take one; an option that is not here keeps its default.
fn number_values(key: &str) -> Vec<&'static str> {
    match key {
        "gc_low" => vec!["2", "4"],
        "gc_d" => vec!["1", "5"],
        "log_blocks" => vec!["4", "6"],
        "map_blocks" => vec!["2", "3"],
        "u" => vec!["1", "3"],
        "l" => vec!["1", "2"],
        "oob_bytes" => vec!["4", "64"],
        "oob_ecc_bytes" => vec!["0", "62"],
        "entries_per_oob" => vec!["1", "3"],
        _ => vec![],
    }
}
