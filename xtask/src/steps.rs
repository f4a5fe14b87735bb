//! What a chore does, step by step, with a table at its end.

use std::process::ExitCode;
use std::time::{Duration, Instant};

/// How a step ended.
#[derive(Debug)]
pub enum Outcome {
    /// As it should.
    Passed,
    /// With this finding.
    Failed(String),
    /// Not at all, for this reason.
    Skipped(String),
}

impl Outcome {
    /// Goes on if all went well so far.
    #[must_use]
    pub fn and_then(self, next: impl FnOnce() -> Self) -> Self {
        match self {
            Self::Passed => next(),
            other => other,
        }
    }

    fn word(&self) -> &'static str {
        match self {
            Self::Passed => "passed",
            Self::Failed(_) => "FAILED",
            Self::Skipped(_) => "skipped",
        }
    }

    fn why(&self) -> Option<&str> {
        match self {
            Self::Passed => None,
            Self::Failed(why) | Self::Skipped(why) => Some(why),
        }
    }
}

/// The steps so far, with their times.
#[derive(Debug, Default)]
pub struct Steps {
    done: Vec<(String, Outcome, Duration)>,
}

impl Steps {
    /// Does one step, and says whether it passed. Steps that do not need it are done in any case: all findings are
    /// wanted at once.
    pub fn step(&mut self, name: &str, work: impl FnOnce() -> Outcome) -> bool {
        println!("\n== {name}");
        let start = Instant::now();
        let outcome = work();
        if let Some(why) = outcome.why() {
            println!("{}: {why}", outcome.word());
        }
        let passed = matches!(outcome, Outcome::Passed);
        self.done.push((name.into(), outcome, start.elapsed()));
        passed
    }

    /// Prints the table of steps; the exit code of the chore.
    pub fn report(&self) -> ExitCode {
        print!("\n{}", self.table());
        let failed =
            |(_, outcome, _): &(String, Outcome, Duration)| matches!(outcome, Outcome::Failed(_));
        if self.done.iter().any(failed) {
            ExitCode::FAILURE
        } else {
            ExitCode::SUCCESS
        }
    }

    fn table(&self) -> String {
        let mut table = format!("{:-<72}\n", "");
        let (mut passed, mut failed, mut skipped) = (0, 0, 0);
        for (name, outcome, time) in &self.done {
            match outcome {
                Outcome::Passed => passed += 1,
                Outcome::Failed(_) => failed += 1,
                Outcome::Skipped(_) => skipped += 1,
            }
            let why = outcome
                .why()
                .map_or_else(String::new, |why| format!(": {why}"));
            let seconds = time.as_secs_f64();
            table += &format!("{:<8} {seconds:>6.1} s  {name}{why}\n", outcome.word());
        }
        let seconds: f64 = self.done.iter().map(|(.., time)| time.as_secs_f64()).sum();
        let minutes = seconds / 60.0;
        table += &format!(
            "{passed} passed, {failed} failed, {skipped} skipped in {minutes:.1} minutes\n"
        );
        table
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_names_what_failed_and_why() {
        let mut steps = Steps::default();
        steps.step("one", || Outcome::Passed);
        steps.step("two", || {
            Outcome::Passed.and_then(|| Outcome::Failed("broken".into()))
        });
        steps.step("three", || {
            Outcome::Skipped("no compiler".into()).and_then(|| Outcome::Passed)
        });
        let table = steps.table();
        assert!(table.contains("passed      0.0 s  one\n"), "{table}");
        assert!(
            table.contains("FAILED      0.0 s  two: broken\n"),
            "{table}"
        );
        assert!(
            table.contains("skipped     0.0 s  three: no compiler\n"),
            "{table}"
        );
        assert!(
            table.ends_with("1 passed, 1 failed, 1 skipped in 0.0 minutes\n"),
            "{table}"
        );
        assert_eq!(steps.report(), ExitCode::FAILURE);
    }
}
