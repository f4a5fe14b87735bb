//! Does every scheme keep what it was given, on every shape of device? One suite for all, instantiated
//! from the registry; a scheme that is not listed here has no entry there.

use floatgate_core::catalog::{Catalog, SchemeInfo};
use floatgate_core::options::{OptionInfo, Options, Takes, Value};
use floatgate_core::rng::SplitMix64;
use floatgate_core::{Ftl, ProgramOrder, Space, Start};
use floatgate_core::{Lpn, life};
use floatgate_testkit::suite::{Bench, Case, cases, run};

life! {
    /// One run of the suite, with the options that a scheme cannot do without.
    struct Suite = fn suite(&Case) -> Result<(), String>;
}

fn suite<S: Ftl<Page = Lpn>>(given_case: &Case) -> Result<(), String> {
    let mut case = given_case.clone();
    let takes = |key| S::Options::schema().iter().any(|option| option.key == key);
    let given = |key: &str| given_case.options.iter().any(|(k, _)| k == key);
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

fn all() -> Catalog<Suite> {
    floatgate_schemes::catalog()
}

#[test]
fn every_scheme_keeps_every_byte() {
    let mut failures = Vec::new();
    let mut runs = 0;
    for scheme in &all() {
        for case in cases() {
            runs += 1;
            if let Err(failure) = scheme.life.0(&case) {
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
    for scheme in &all() {
        for option in &scheme.info.options {
            let words = match &option.takes {
                Takes::Number => number_values(option.key),
                Takes::OneOf(words) => words.to_vec(),
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
                    let case = goes_with(&scheme.info, option.key, word)
                        .into_iter()
                        .fold(case, |case, (key, word)| case.with(key, word));
                    runs += 1;
                    if let Err(failure) = scheme.life.0(&case) {
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
        "adjust_period" => vec!["1", "3"],
        "age_threshold" => vec!["0", "12"],
        "chunk_pages" => vec!["1", "3", "64"],
        "cmt_bytes" => vec!["8", "100"],
        "cmt_entries" => vec!["1", "2", "7"],
        "entries_per_oob" => vec!["1", "3"],
        "extra_blocks" => vec!["1", "3"],
        "flush_ns" => vec!["1", "2500000000"],
        "gc_d" => vec!["1", "5"],
        "gc_low" => vec!["5", "6", "8"],
        "hot_blocks" => vec!["1", "2"],
        "hot_interval" => vec!["0", "1", "30"],
        "hot_interval_step" => vec!["0", "1", "100"],
        "hot_maximum_percent" => vec!["50", "100"],
        "hot_updates" => vec!["1", "2"],
        "idle_timeout_ns" => vec!["0", "1000000"],
        "k" => vec!["1", "2", "64"],
        "l" => vec!["1", "2"],
        "log_blocks" => vec!["6", "8"],
        "low_utilization" => vec!["0", "900"],
        "map_blocks" => vec!["2", "3"],
        "merge_cost_entries" => vec!["0", "1", "2"],
        "merge_per_write" => vec!["1", "3"],
        "oob_bytes" => vec!["4", "64"],
        "oob_ecc_bytes" => vec!["0", "62"],
        "oob_reads_per_access" => vec!["0", "1", "3"],
        "partitions" => vec!["1", "2"],
        "qmt_bytes" => vec!["8", "100"],
        "qmt_entries" => vec!["1", "2", "7"],
        "sequential_log_blocks" => vec!["2"],
        "sequential_threshold" => vec!["0", "1", "4", "5"],
        "superblock_blocks" => vec!["1", "2", "3"],
        "sw_log_blocks" => vec!["1", "3"],
        "tp_entries" => vec!["3", "4"],
        "u" => vec!["1", "3"],
        _ => vec![],
    }
}

/// Options meet each other: random devices, each option given or not. What does not fit is refused, the
/// rest keeps every byte.
#[test]
fn random_devices_and_options_keep_every_byte() {
    let mut failures = Vec::new();
    let (mut runs, mut refused) = (0, 0);
    for scheme in &all() {
        for seed in 0..150 {
            let case = random_case(&scheme.info.options, seed);
            match scheme.life.0(&case) {
                Err(failure) if failure.contains("refused: ") => refused += 1,
                Err(failure) => failures.push(failure),
                _ => runs += 1,
            }
        }
    }
    println!("{runs} runs, {refused} refused, seeds 0 .. 149");
    assert!(
        failures.is_empty(),
        "{} of {runs} failed\n{}",
        failures.len(),
        failures.join("\n")
    );
}

fn random_case(options: &[OptionInfo], seed: u64) -> Case {
    let mut rng = SplitMix64::new(seed);
    let mut below = |n: u64| rng.below(n) as u32;
    let (dies, pages, logical) = (1 + below(3), 1 + below(9), 2 + below(12));
    let mut case = Case {
        requests: 250,
        seed,
        ..Case::small(dies, logical + 6 + below(14), pages, logical)
    };
    if below(2) == 0 {
        case.start = Start::Empty;
    }
    if below(2) == 0 {
        case.order = ProgramOrder::Any;
    }
    for option in options {
        if option.key == "log_blocks" {
            case = case.with(option.key, dies * (1 + below(10)));
            continue;
        }
        let words = match &option.takes {
            Takes::Number => number_values(option.key),
            Takes::OneOf(words) => words.to_vec(),
        };
        if !words.is_empty() && below(3) == 0 {
            case = case.with(option.key, words[below(words.len() as u64) as usize]);
        }
    }
    case
}

life! {
    /// What the check of a scheme says of a case, and what its format says.
    struct Refusals = fn refusals(&Case) -> [Option<(Option<String>, String)>; 2];
}

fn refusals<S: Ftl<Page = Lpn>>(case: &Case) -> [Option<(Option<String>, String)>; 2] {
    let checked = case.geometry().and_then(|geometry| {
        let options = case.options_of::<S>()?;
        S::check(&Space::whole(&geometry), &options)
    });
    let formatted = Bench::<S>::new(case).map(|_| ());
    [checked, formatted].map(|said| said.err().map(|refusal| (refusal.key, refusal.message)))
}

/// Sizing a device asks the check many times instead of making it: both refuse the same, in the same words.
#[test]
fn the_check_refuses_what_the_format_refuses() {
    let mut by_scheme = Vec::new();
    for scheme in &floatgate_schemes::catalog::<Refusals>() {
        let mut counts = [0, 0];
        for seed in 0..1_500 {
            let case = tight_case(&scheme.info.options, seed);
            let [checked, formatted] = scheme.life.0(&case);
            // Only the flash knows whether its OOBs have the bytes for a sub-table.
            let by_flash =
                |(_, message): &(_, String)| message.contains("a flash that stores bytes has");
            if formatted.as_ref().is_some_and(by_flash) {
                assert_eq!(checked, None, "{}: {case}", scheme.info.key);
                continue;
            }
            assert_eq!(checked, formatted, "{}: {case}", scheme.info.key);
            counts[usize::from(formatted.is_some())] += 1;
        }
        by_scheme.push((scheme.info.key, counts));
    }
    println!("accepted, refused: {by_scheme:?}");
    for (scheme, [accepted, refused]) in by_scheme {
        assert!(
            accepted > 100 && refused > 20,
            "{scheme}: {accepted}, {refused}"
        );
    }
}

/// A random device with few blocks to spare; options now and then have values that mean nothing, or are left out.
fn tight_case(options: &[OptionInfo], seed: u64) -> Case {
    let mut rng = SplitMix64::new(seed);
    let mut below = |n: u64| rng.below(n) as u32;
    let (dies, pages, logical) = (1 + below(3), 1 + below(9), 2 + below(12));
    let mut case = Case {
        start: [Start::Empty, Start::Full][below(2) as usize],
        ..Case::small(dies, logical + below(24), pages, logical)
    };
    for option in options {
        let mut words = option.words(dies);
        if option.takes == Takes::Number && below(12) == 0 {
            words = ["0", "1", "5", "1000000"].map(String::from).to_vec();
        }
        if !words.is_empty() && (below(3) == 0 || option.key == "log_blocks" && below(20) > 0) {
            case = case.with(option.key, &words[below(words.len() as u64) as usize]);
        }
    }
    case
}
