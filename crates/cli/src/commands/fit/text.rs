//! What was found, for a terminal; and what has to be said about it.

use std::collections::BTreeSet;

use super::{CandidateRow, FitDocument, RunRow};
use crate::commands::study::notes_text;
use crate::fit::Workload;
use crate::fit::measured::Run;
use crate::fit::solve::{self, Fitted, Known};
use crate::table::{Table, bytes, some};

/// An error that is no noise.
const FAR: f64 = 0.02;

/// All of it.
pub fn text(document: &FitDocument) -> String {
    let best = &document.best.fit;
    let mut out = candidates(&document.candidates).render();
    out += "error: of write amplification, root mean square and largest; =: explains the runs as well as the best\n";
    out += &format!("\nBest: {}, moved pages {}\n", best.candidate, apart(best));
    out += &format!(
        "  flash that can hold data  {}, from {} to {}\n",
        size(best.capacity_bytes as f64),
        size(best.capacity_least_bytes as f64),
        size(best.capacity_most_bytes as f64)
    );
    if let Some(((overhead, least), most)) = best
        .overhead
        .zip(best.overhead_least)
        .zip(best.overhead_most)
    {
        out += &format!(
            "  written beside pages      a factor of {overhead:.3}, from {least:.3} to {most:.3}\n"
        );
    }
    if let Some(speed) = best.flash_bytes_per_s {
        out += &format!(
            "  speed of the flash        {}/s, what is written beside pages not counted\n",
            bytes(speed)
        );
    }
    if best.capacity_least_bytes > document.best.capacity_least_bytes_of_all
        || best.capacity_most_bytes < document.best.capacity_most_bytes_of_all
    {
        out += &format!(
            "  with all that are as good {} to {}\n",
            size(document.best.capacity_least_bytes_of_all as f64),
            size(document.best.capacity_most_bytes_of_all as f64)
        );
    }
    out += "\n";
    out += &runs(&document.runs).render();
    out + &notes_text(&document.notes)
}

fn apart(best: &CandidateRow) -> &'static str {
    match best.streams {
        "split" => "apart from the host's (streams = split)",
        _ => "among the host's (streams = shared)",
    }
}

/// Sizes to be compared: four digits, in units of which none is below 10.
fn size(n: f64) -> String {
    let units = [("GiB", 30), ("MiB", 20), ("KiB", 10)];
    let fits = units
        .iter()
        .map(|&(unit, shift)| (n / f64::from(1 << shift), unit));
    match fits.into_iter().find(|(value, _)| *value >= 10.0) {
        Some((value, unit)) if value >= 1000.0 => format!("{value:.0} {unit}"),
        Some((value, unit)) if value >= 100.0 => format!("{value:.1} {unit}"),
        Some((value, unit)) => format!("{value:.2} {unit}"),
        None => format!("{n:.0} bytes"),
    }
}

fn percent(share: f64) -> String {
    format!("{:.2} %", 100.0 * share)
}

fn candidates(rows: &[CandidateRow]) -> Table {
    let mut table = Table::new(&[
        "<candidate",
        "pages a block",
        "flash",
        "overhead",
        "error",
        "largest",
        "<",
    ]);
    for row in rows {
        table.row([
            row.candidate.to_string(),
            row.block_pages.to_string(),
            size(row.capacity_bytes as f64),
            row.overhead
                .map_or_else(|| "-".into(), |overhead| format!("{overhead:.3}")),
            percent(row.error_rms),
            percent(row.error_worst),
            if row.is_as_good_as_the_best { "=" } else { "" }.into(),
        ]);
    }
    table
}

fn runs(rows: &[RunRow]) -> Table {
    let mut table = Table::new(&[
        "<run",
        "<workload",
        "written to",
        "measured",
        "ours",
        "error",
        "noise",
    ]);
    for row in rows {
        let value = |value: f64| match row.unit {
            "bytes/s" => format!("{}/s", bytes(value)),
            _ => format!("{value:.3}"),
        };
        table.row([
            row.run.clone(),
            row.workload.clone(),
            size(row.span_bytes),
            value(row.measured),
            value(row.ours),
            format!("{:+.2} %", 100.0 * row.error),
            row.noise.map_or_else(|| "-".into(), percent),
        ]);
    }
    table
}

/// What the runs do not tell, and what looks wrong.
pub fn notes(runs: &[Run], fitted: &[Fitted], known: Known) -> Vec<String> {
    let mut notes = Vec::new();
    let Some(best) = fitted.first() else {
        return notes;
    };
    let others: BTreeSet<&str> = fitted
        .iter()
        .filter(|one| one.is_as_good && one.candidate != best.candidate)
        .map(|one| one.candidate.name)
        .collect();
    let all: Vec<&str> = others.into_iter().collect();
    if !all.is_empty() {
        notes.push(format!(
            "these runs do not tell {} from {}: each explains them to within the noise, with its own flash and overhead",
            best.candidate.name,
            all.join(", ")
        ));
    }
    if runs.iter().all(|run| run.workload == Workload::Uniform) {
        notes.push(
            "all runs are uniform. They tell the flash, but hardly how it is collected: skewed writes do, as hot(90/10)"
                .into(),
        );
    }
    let (numbers, count) = (solve::numbers(runs, known), runs.len());
    if count <= numbers {
        notes.push(format!(
            "{} for {} to be fitted: any candidate may come out; measure more, or give --capacity or --overhead",
            some(count as u64, "run"),
            some(numbers as u64, "number")
        ));
    }
    if solve::kinds(runs).0 == 0 {
        notes.push(
            "no run counts bytes written to flash: the overhead is part of the speed, and cannot be told".into(),
        );
    }
    let spans: BTreeSet<u64> = runs.iter().map(|run| run.span_bytes as u64).collect();
    if spans.len() == 1 && known.capacity.is_none() && known.overhead.is_none() {
        notes.push(
            "all runs write to the same part of the drive: flash and overhead are hardly told apart without a fill sweep"
                .into(),
        );
    }
    if best.is_at_end {
        notes.push("the flash is at an end of what was tried: no candidate is like this drive, or --capacity is needed".into());
    }
    if best.rms() > FAR.max(2.0 * solve::noise(runs)) {
        notes.push(format!(
            "the best candidate is off by {}: this drive does something that none of them does",
            percent(best.rms())
        ));
    }
    notes
}
