//! What became of the bugs, as rows while they come, as a table at the end, and as JSON.

use std::io::{IsTerminal, Write};

use serde_json::json;

use super::table::Bug;
use super::trial::Verdict;

/// The verdicts so far.
pub struct Report {
    total: usize,
    rows: Vec<(Bug, Verdict)>,
}

impl Report {
    /// Of so many bugs.
    pub fn new(total: usize) -> Self {
        Self {
            total,
            rows: Vec::with_capacity(total),
        }
    }

    /// Notes a verdict and prints its row.
    pub fn add(&mut self, bug: &Bug, verdict: Verdict) {
        let is_terminal = std::io::stderr().is_terminal();
        if is_terminal {
            eprint!("\r\x1b[K");
        }
        println!("{}", row(bug, &verdict));
        self.rows.push((bug.clone(), verdict));
        if is_terminal && self.rows.len() < self.total {
            eprint!("{} of {} bugs tried", self.rows.len(), self.total);
            let _ = std::io::stderr().flush();
        }
        self.rows.sort_by_key(|(bug, _)| bug.id);
    }

    /// The whole table, in the order of the numbers.
    pub fn print(&self) {
        println!("\n  bug  verdict          time  planted, and noticed by");
        for (bug, verdict) in &self.rows {
            println!("{}", row(bug, verdict));
        }
        let killed = self.rows.iter();
        let killed = killed.filter(|(_, verdict)| verdict.killed_by.is_some());
        println!("{} of {} bugs killed", killed.count(), self.rows.len());
    }

    /// The table for programs.
    pub fn json(&self) -> String {
        let rows = self.rows.iter().map(|(bug, verdict)| {
            let killed_by = verdict.killed_by.as_ref();
            json!({
                "id": bug.id,
                "title": bug.title,
                "file": bug.file,
                "verdict": word(bug, verdict),
                "suite": killed_by.map(|(suite, _)| suite),
                "test": killed_by.map(|(_, test)| test),
                "equivalent": bug.equivalent,
                "seconds": verdict.time.as_secs_f64(),
            })
        });
        format!("{:#}\n", serde_json::Value::from_iter(rows))
    }

    /// What is wrong: bugs that survive, and bugs that are killed although the table says that nobody can see them.
    pub fn complaint(&self) -> Option<String> {
        let mut lines = Vec::new();
        for (bug, verdict) in &self.rows {
            match (&verdict.killed_by, &bug.equivalent) {
                (None, None) => lines.push(format!("bug {} survives: {}", bug.id, bug.title)),
                (Some((suite, test)), Some(_)) => lines.push(format!(
                    "bug {} cannot be seen, says the table, but {suite} sees it: {test}",
                    bug.id
                )),
                _ => {}
            }
        }
        (!lines.is_empty()).then(|| lines.join("\n"))
    }
}

fn word(bug: &Bug, verdict: &Verdict) -> &'static str {
    match (&verdict.killed_by, &bug.equivalent) {
        (Some(_), _) => "killed",
        (None, Some(_)) => "equivalent",
        (None, None) => "SURVIVED",
    }
}

fn row(bug: &Bug, verdict: &Verdict) -> String {
    let by = match (&verdict.killed_by, &bug.equivalent) {
        (Some((suite, test)), _) => format!("{suite}: {test}"),
        (None, Some(why)) => why.clone(),
        (None, None) => "nobody".into(),
    };
    format!(
        "{:>5}  {:<10} {:>8.1} s  {}\n{:29}{by}",
        bug.id,
        word(bug, verdict),
        verdict.time.as_secs_f64(),
        bug.title,
        ""
    )
}
