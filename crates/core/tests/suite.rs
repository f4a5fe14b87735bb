//! Does every scheme keep what it was given, on every shape of device? One suite for all, instantiated
//! from the registry; a scheme that is not listed here has no entry there.

use floatgate_core::Ftl;
use floatgate_core::ftl::{SchemeInfo, Visitor, all, visit};
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
        // A summary page needs a second page in its block.
        if takes("summary_pages") && case.pages == 1 {
            case.options
                .push(("summary_pages".into(), Value::Bool(false)));
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
                    let case = goes_with(&scheme, option.key, word)
                        .into_iter()
                        .fold(case, |case, (key, word)| case.with(key, word));
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

/// Options that have to be given together with a value, if the scheme has them.
fn goes_with(scheme: &SchemeInfo, key: &str, word: &str) -> Vec<(&'static str, &'static str)> {
    let companions = match (key, word) {
        ("second_chance", "false") => vec![("isolation", "false")],
        _ => vec![],
    };
    let known = |key: &str| scheme.options.iter().any(|option| option.key == key);
    companions
        .into_iter()
        .filter(|&(key, _)| known(key))
        .collect()
}

/// Numbers worth trying for options that take one; an option that is not here keeps its default.
fn number_values(key: &str) -> Vec<&'static str> {
    match key {
        "gc_low" => vec!["5", "6", "8"],
        "cmt_entries" | "qmt_entries" => vec!["1", "2", "7"],
        "cmt_bytes" | "qmt_bytes" => vec!["8", "100"],
        "tp_entries" => vec!["3", "4"],
        "flush_ns" => vec!["1", "2500000000"],
        "gc_d" => vec!["1", "5"],
        "merge_per_write" => vec!["1", "3"],
        "k" => vec!["1", "2", "64"],
        "sw_log_blocks" => vec!["1", "3"],
        "chunk_pages" => vec!["1", "3", "64"],
        "log_blocks" => vec!["6", "8"],
        "map_blocks" => vec!["2", "3"],
        "sequential_threshold" => vec!["0", "1", "4"],
        "sequential_log_blocks" => vec!["2"],
        "partitions" => vec!["1", "2"],
        "hot_updates" => vec!["1", "2"],
        "hot_maximum_percent" => vec!["50", "100"],
        "merge_cost_entries" => vec!["0", "1", "2"],
        "idle_timeout_ns" => vec!["0", "1000000"],
        _ => vec![],
    }
}
