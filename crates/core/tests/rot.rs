//! Rotten flash: whatever stands on it, recovery comes up or refuses.

use floatgate_core::Ftl;
use floatgate_core::ftl::{Visitor, all, visit};
use floatgate_core::torture::rot::{Kind, random_rot};
use floatgate_core::torture::{Tally, replay};

struct Rots(Kind, u64, u64);

impl Visitor for Rots {
    type Output = Result<Tally, String>;
    fn visit<S: Ftl>(self) -> Self::Output {
        random_rot::<S>(self.1, self.0, self.2)
    }
}

fn number(name: &str, default: u64) -> u64 {
    let given = std::env::var(name).ok();
    given.and_then(|word| word.parse().ok()).unwrap_or(default)
}

fn all_schemes(kind: Kind) {
    let mut failures = Vec::new();
    let (seed, cases) = (
        number("FLOATGATE_ROT_SEED", 1),
        number("FLOATGATE_ROT_CASES", 100),
    );
    for scheme in all() {
        match visit(scheme.key, Rots(kind, seed, cases)).expect("it is registered") {
            Ok(Tally { tried, refused }) => {
                println!(
                    "{:<12} {tried:>8} recoveries, {refused} refused",
                    scheme.key
                );
            }
            Err(failure) => failures.push(failure),
        }
    }
    assert!(
        failures.is_empty(),
        "{} failures\n{}",
        failures.len(),
        failures.join("\n\n")
    );
}

#[test]
fn unreadable_pages() {
    all_schemes(Kind::Unreadable);
}

#[test]
fn forged_pages() {
    all_schemes(Kind::Forged);
}

/// Failures that were found once: each line is a case and the damage that broke it.
#[allow(dead_code)]
fn holds(line: &str) {
    if let Err(failure) = replay(line) {
        panic!("{failure}");
    }
}
