//! What was measured of a drive: a table of runs, in which each row says how far a run had come. docs/fit.md defines it.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use super::Workload;
use crate::errors::{Outcome, Place, Problem, Source, nearest};

/// The columns. Those without a value may be left out.
const COLUMNS: [&str; 7] = [
    "run",
    "workload",
    "logical_bytes",
    "span_bytes",
    "host_bytes",
    "media_bytes",
    "seconds",
];
const NEEDED: [&str; 3] = ["workload", "span_bytes", "host_bytes"];
const EXAMPLE: &str = "the first line names the columns, as \
    run,workload,logical_bytes,span_bytes,host_bytes,media_bytes,seconds";
/// More would be simulated for hours.
const RUNS_MAX: usize = 200;
const WORKLOADS_MAX: usize = 12;
/// The last part of a run is the steady one.
const STEADY: f64 = 0.75;
/// Windows into which the steady part is cut to tell its noise, and the least that tell one.
const WINDOWS: usize = 8;
const WINDOWS_LEAST: usize = 4;
/// Fewer bytes programmed than written are a mistake, unless for the granularity of counters.
const AMPLIFICATION_LEAST: f64 = 0.97;

/// The steady part of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Run {
    /// Its name.
    pub name: String,
    /// What was written.
    pub workload: Workload,
    /// Bytes that the host sees, if told.
    pub logical_bytes: Option<f64>,
    /// Bytes that were written to, the others trimmed.
    pub span_bytes: f64,
    /// What it tells.
    pub told: Told,
    /// Standard error of that, as a share, by its windows; nothing if it has too few rows.
    pub noise: Option<f64>,
}

/// What a run tells.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Told {
    /// Bytes written to flash for each byte of the host.
    Amplification(f64),
    /// Bytes of the host a second.
    Throughput(f64),
}

/// A row as it stands in the table.
#[derive(Clone, Copy)]
struct Row {
    host: f64,
    media: Option<f64>,
    seconds: Option<f64>,
}

/// The rows of a run.
struct Rows {
    name: String,
    workload: Workload,
    logical: Option<f64>,
    span: f64,
    rows: Vec<Row>,
    /// Its first line.
    line: Range<usize>,
}

/// Where the columns stand, and the text that mistakes point into.
struct Table {
    source: Arc<Source>,
    columns: HashMap<&'static str, usize>,
    count: usize,
}

/// A line, its bytes in the text, and its cells with theirs.
struct Line<'a> {
    span: Range<usize>,
    cells: Vec<(&'a str, Range<usize>)>,
}

/// The lines that say something.
fn lines(text: &str) -> impl Iterator<Item = Line<'_>> {
    let mut at = 0;
    text.split('\n').filter_map(move |line| {
        let start = at;
        at += line.len() + 1;
        let shown = line.trim_end_matches('\r');
        let is_empty = shown.trim().is_empty() || shown.trim_start().starts_with('#');
        (!is_empty).then(|| Line {
            span: start..start + shown.len(),
            cells: cells(shown, start),
        })
    })
}

fn cells(line: &str, mut at: usize) -> Vec<(&str, Range<usize>)> {
    let cell = |cell: &str| {
        let start = at + (cell.len() - cell.trim_start().len());
        at += cell.len() + 1;
        start..start + cell.trim().len()
    };
    let spans: Vec<Range<usize>> = line.split(',').map(cell).collect();
    line.split(',').map(str::trim).zip(spans).collect()
}

impl Table {
    fn new(source: Arc<Source>, head: &Line<'_>) -> Outcome<Self> {
        let mut table = Self {
            source,
            columns: HashMap::new(),
            count: head.cells.len(),
        };
        for (i, (name, span)) in head.cells.iter().enumerate() {
            let Some(known) = COLUMNS.iter().find(|known| *known == name) else {
                let help = match nearest(name, COLUMNS) {
                    Some(like) => {
                        format!("is {like} meant? the columns are {}", COLUMNS.join(", "))
                    }
                    None => EXAMPLE.into(),
                };
                return Err(table.wrong(span, format!("no column {name:?}")).help(help));
            };
            if table.columns.insert(known, i).is_some() {
                return Err(table
                    .wrong(span, format!("the column {name} stands here twice"))
                    .help(EXAMPLE));
            }
        }
        if let Some(missing) = NEEDED
            .iter()
            .find(|name| !table.columns.contains_key(*name))
        {
            let problem = table.wrong(&head.span, format!("there is no column {missing}"));
            return Err(problem.help(EXAMPLE));
        }
        if !["media_bytes", "seconds"]
            .iter()
            .any(|name| table.columns.contains_key(name))
        {
            let text = "there is neither a column media_bytes nor a column seconds";
            let help = "media_bytes: the drive's counter of bytes written to flash; without one, seconds give its throughput";
            return Err(table.wrong(&head.span, text).help(help));
        }
        Ok(table)
    }

    fn wrong(&self, span: &Range<usize>, message: impl Into<String>) -> Problem {
        Problem::new(message).at(&Place::File {
            source: Arc::clone(&self.source),
            span: span.clone(),
        })
    }

    /// A cell that is not empty.
    fn cell<'a>(&self, line: &'a Line<'_>, name: &str) -> Option<(&'a str, &'a Range<usize>)> {
        let place = self.columns.get(name)?;
        let (text, span) = line.cells.get(*place)?;
        (!text.is_empty()).then_some((*text, span))
    }

    /// A number that is not negative.
    fn number(&self, line: &Line<'_>, name: &str) -> Outcome<Option<f64>> {
        let Some((text, span)) = self.cell(line, name) else {
            return Ok(None);
        };
        let given: Option<f64> = text.parse().ok();
        // Nothing that is divided by another overflows.
        let given = given.filter(|&given| given == 0.0 || (1e-9..1e19).contains(&given));
        given.map(Some).ok_or_else(|| {
            let problem = self.wrong(
                span,
                format!("{name}: {text:?} is no number of {}", unit(name)),
            );
            problem.help("digits, as 4096; a cell that is not known is left empty")
        })
    }

    fn needed(&self, line: &Line<'_>, name: &str) -> Outcome<f64> {
        self.number(line, name)?.ok_or_else(|| {
            let problem = self.wrong(&line.span, format!("{name} is empty"));
            problem.help(format!("every line has {}", NEEDED.join(", ")))
        })
    }

    /// Adds a line to the runs.
    fn add(&self, line: &Line<'_>, runs: &mut Vec<Rows>) -> Outcome<()> {
        if line.cells.len() != self.count {
            let text = format!("{} cells in place of {}", line.cells.len(), self.count);
            return Err(self
                .wrong(&line.span, text)
                .help("as many as there are columns; cells may be empty"));
        }
        let (workload, place) = self.cell(line, "workload").ok_or_else(|| {
            let problem = self.wrong(&line.span, "workload is empty");
            problem.help("what was written in this run, as uniform")
        })?;
        let workload = Workload::parse(workload).map_err(|text| {
            self.wrong(place, text)
                .help("docs/fit.md says what each is")
        })?;
        let (logical, span) = (
            self.number(line, "logical_bytes")?,
            self.needed(line, "span_bytes")?,
        );
        if span < 1.0 || logical.is_some_and(|logical| span > logical) {
            let problem = self.wrong(
                &line.span,
                "span_bytes: more than nothing, and at most logical_bytes",
            );
            return Err(
                problem.help("the bytes from the beginning of the drive that this run wrote to")
            );
        }
        let row = Row {
            host: self.needed(line, "host_bytes")?,
            media: self.number(line, "media_bytes")?,
            seconds: self.number(line, "seconds")?,
        };
        // Without a name each row is a run.
        let name = self.cell(line, "run").map(|(name, _)| name.to_string());
        let known = name
            .as_ref()
            .and_then(|name| runs.iter_mut().find(|run| run.name == *name));
        let Some(run) = known else {
            runs.push(Rows {
                name: name.unwrap_or_else(|| (runs.len() + 1).to_string()),
                workload,
                logical,
                span,
                rows: vec![row],
                line: line.span.clone(),
            });
            return Ok(());
        };
        if (run.workload, run.span, run.logical) != (workload, span, logical) {
            let text = format!(
                "run {}: not the workload, logical_bytes and span_bytes of its lines before",
                run.name
            );
            return Err(self
                .wrong(&line.span, text)
                .help("give what is another run another name"));
        }
        if let Some(last) = run.rows.last() {
            self.follows(&run.name, last, &row, line)?;
        }
        run.rows.push(row);
        Ok(())
    }

    /// Rows of a run are cumulative.
    fn follows(&self, run: &str, last: &Row, row: &Row, line: &Line<'_>) -> Outcome<()> {
        for (name, before, now) in [
            ("host_bytes", Some(last.host), Some(row.host)),
            ("media_bytes", last.media, row.media),
            ("seconds", last.seconds, row.seconds),
        ] {
            let problem = match (before, now) {
                (Some(before), Some(now)) if now >= before => continue,
                (None, None) => continue,
                (Some(_), Some(_)) => format!("run {run}: {name} is less than in its line before"),
                _ => format!("run {run}: {name} is empty in some of its lines"),
            };
            let help =
                "the lines of a run are its counters one after the other, all of the same kind";
            return Err(self.wrong(&line.span, problem).help(help));
        }
        Ok(())
    }

    /// What a run tells.
    fn run(&self, rows: Rows) -> Outcome<Run> {
        let wrong = |text: String| self.wrong(&rows.line, format!("run {}: {text}", rows.name));
        let (first, last) = steady(&rows.rows);
        let host = last.host - first.host;
        if host <= 0.0 {
            let problem = wrong("nothing was written in its steady part".into());
            return Err(problem
                .help("host_bytes: bytes written by the host so far, growing from line to line"));
        }
        let grown = |of: fn(&Row) -> Option<f64>| Some(of(&last)? - of(&first).unwrap_or(0.0));
        let told = match (grown(|row| row.media), grown(|row| row.seconds)) {
            (Some(media), _) if media < AMPLIFICATION_LEAST * host => {
                let problem = wrong(format!(
                    "{media} bytes written to flash for {host} of the host"
                ));
                return Err(problem.help(
                    "are the columns exchanged, or counted in other units? Drives that compress cannot be fitted",
                ));
            }
            (Some(media), _) => Told::Amplification((media / host).max(1.0)),
            (None, Some(seconds)) if seconds > 0.0 => Told::Throughput(host / seconds),
            _ => {
                let problem = wrong("neither media_bytes nor seconds in its steady part".into());
                return Err(problem.help("one of them, in every line of the run"));
            }
        };
        Ok(Run {
            noise: noise(&rows.rows, matches!(told, Told::Amplification(_))),
            name: rows.name,
            workload: rows.workload,
            logical_bytes: rows.logical,
            span_bytes: rows.span,
            told,
        })
    }

    /// What does not fit together.
    fn check(&self, runs: &[Run], head: &Line<'_>) -> Outcome<()> {
        let wrong = |text: String, help: &str| Err(self.wrong(&head.span, text).help(help));
        let mut workloads: Vec<Workload> = Vec::new();
        for run in runs {
            if !workloads.contains(&run.workload) {
                workloads.push(run.workload);
            }
        }
        let mut sizes: Vec<f64> = runs.iter().filter_map(|run| run.logical_bytes).collect();
        sizes.dedup();
        match () {
            () if runs.is_empty() => {
                wrong("no runs: there are no lines below this one".into(), EXAMPLE)
            }
            () if runs.len() > RUNS_MAX => wrong(
                format!("more than {RUNS_MAX} runs"),
                "fewer; rows of one run have one name",
            ),
            () if workloads.len() > WORKLOADS_MAX => wrong(
                format!("more than {WORKLOADS_MAX} workloads"),
                "each is simulated: leave some out",
            ),
            () if sizes.len() > 1 => wrong(
                "logical_bytes is not the same in all runs".into(),
                "a file is about one drive",
            ),
            () => Ok(()),
        }
    }
}

fn unit(name: &str) -> &'static str {
    match name {
        "seconds" => "seconds",
        _ => "bytes",
    }
}

/// The ends of the steady part: the last row, and the last one at or before its beginning. One row is the sum of a run.
fn steady(rows: &[Row]) -> (Row, Row) {
    let none = Row {
        host: 0.0,
        media: None,
        seconds: None,
    };
    let last = rows.last().copied().unwrap_or(none);
    match rows {
        [] | [_] => (none, last),
        rows => (rows[beginning(rows)], last),
    }
}

/// Where the steady part begins.
fn beginning(rows: &[Row]) -> usize {
    let (Some(first), Some(last)) = (rows.first(), rows.last()) else {
        return 0;
    };
    let begin = first.host + STEADY * (last.host - first.host);
    rows.partition_point(|row| row.host <= begin)
        .saturating_sub(1)
        .min(rows.len().saturating_sub(2))
}

/// The standard error of the mean over the windows of the steady part, as a share of it.
fn noise(rows: &[Row], is_counted: bool) -> Option<f64> {
    let part = rows.get(beginning(rows)..)?;
    let windows = (part.len().saturating_sub(1)).min(WINDOWS);
    if windows < WINDOWS_LEAST {
        return None;
    }
    let at = |i: usize| part[i * (part.len() - 1) / windows];
    let of = |i: usize| {
        let (from, to) = (at(i), at(i + 1));
        let cost = match is_counted {
            true => to.media? - from.media?,
            false => to.seconds? - from.seconds?,
        };
        Some(cost / (to.host - from.host)).filter(|cost| cost.is_finite() && *cost > 0.0)
    };
    let costs: Vec<f64> = (0..windows).map(of).collect::<Option<_>>()?;
    let n = costs.len() as f64;
    let mean = costs.iter().sum::<f64>() / n;
    let square = costs.iter().map(|cost| (cost - mean).powi(2)).sum::<f64>() / (n - 1.0);
    Some((square / n).sqrt() / mean)
}

/// Reads a table of measurements.
///
/// # Errors
/// Points at what is wrong with it.
pub fn parse(name: &str, text: String) -> Outcome<Vec<Run>> {
    let source = Arc::new(Source {
        name: name.into(),
        text,
    });
    let mut lines = lines(&source.text);
    let Some(head) = lines.next() else {
        return Err(Problem::new(format!("{name}: there is nothing in it")).help(EXAMPLE));
    };
    let table = Table::new(Arc::clone(&source), &head)?;
    let mut runs = Vec::new();
    for line in lines {
        table.add(&line, &mut runs)?;
    }
    let runs: Vec<Run> = runs
        .into_iter()
        .map(|rows| table.run(rows))
        .collect::<Outcome<_>>()?;
    table.check(&runs, &head)?;
    Ok(runs)
}

#[cfg(test)]
mod tests;
