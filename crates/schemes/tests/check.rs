//! Does a scheme's check say what its format would say?

use floatgate_core::life;
use floatgate_core::options::{OptionInfo, Takes};
use floatgate_core::rng::SplitMix64;
use floatgate_core::{Ftl, Lpn, Space, Start};
use floatgate_testkit::suite::{Bench, Case};

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
