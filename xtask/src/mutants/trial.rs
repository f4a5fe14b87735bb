//! One bug against its suites.

use std::time::{Duration, Instant};

use super::baseline::Baseline;
use super::bench::End;
use super::suites::{Binaries, Suite};
use super::table::Bug;

/// Times the time without a bug that a suite may take with one, in processor time.
const LIMIT_TIMES: u32 = 5;
/// And in any case so long.
const LIMIT_LEAST: Duration = Duration::from_secs(30);

/// What became of a bug.
#[derive(Clone, Debug)]
pub struct Verdict {
    /// The suite and the test that killed it.
    pub killed_by: Option<(&'static str, String)>,
    /// How long that took.
    pub time: Duration,
}

/// Runs suites one after the other until one fails.
///
/// # Errors
/// If one fails without the bug.
pub fn try_bug<'s>(
    binaries: &Binaries,
    baseline: &Baseline,
    bug: &Bug,
    suites: impl Iterator<Item = &'s Suite>,
) -> Result<Verdict, String> {
    let mut verdict = Verdict {
        killed_by: None,
        time: Duration::ZERO,
    };
    for suite in suites {
        let schemes = match suite.by_scheme {
            true => bug.schemes.join(","),
            false => String::new(),
        };
        let usual = baseline.time(binaries, suite, &schemes)?;
        let limit = LIMIT_LEAST.max(usual * LIMIT_TIMES);
        let start = Instant::now();
        let end = binaries.run(suite, &schemes, Some(bug), limit);
        verdict.time += start.elapsed();
        if let End::Failed(test) = end {
            verdict.killed_by = Some((suite.name, test));
            break;
        }
    }
    Ok(verdict)
}
