//! `floatgate compare`: many schemes, one trace, one device.

use std::path::{Path, PathBuf};

use cpu_time::ThreadTime;
use floatgate_catalog::Scheme;
use floatgate_core::report::Memory;
use floatgate_sim::config::RunConfig;
use floatgate_sim::record::{self, Record};
use floatgate_sim::run::{Decoded, Progress};

use super::parallel;
use super::schemes::find;
use super::study::{Scan, Study, document, failed, notes_text, write_report};
use super::taps::{Paths, Taps};
use crate::args::CompareArgs;
use crate::config::sizing::{Failure, guarded, size, try_out};
use crate::errors::{Outcome, Problem};
use crate::memory;
use crate::notes;
use crate::output;
use crate::progress::Bar;
use crate::table::{Table, bytes, count, energy, micros, short_or_dash};
use crate::traces;

/// Where the report goes if nothing else is said.
const REPORT: &str = "floatgate-report.html";

/// Runs the schemes and prints the comparison.
pub fn run(args: &CompareArgs, schemes: &[Scheme]) -> Outcome<()> {
    let mut study = Study::new(&args.setup, schemes)?;
    let (chosen, explicit) = chosen(args, &study, schemes)?;
    study.settings.check_options(&chosen)?;
    let trace = study.choice.decode()?;
    let mut scan = Scan::new(&study.plan);
    scan.add(&trace.requests);
    size(
        &mut study.plan,
        &study.settings,
        &scan.extent,
        schemes,
        &chosen,
    )?;
    output::tell(&format!("Trace:  {}", trace.about.describe()));
    output::tell(&format!("Device: {}", study.plan.describe()));
    let jobs: Vec<Job> = chosen
        .iter()
        .map(|scheme| Job::new(scheme, &study))
        .collect();
    if explicit && let Some(job) = jobs.iter().find(|job| job.refused.is_some()) {
        return Err(job.problem(&study));
    }
    let paths = Paths {
        requests: args.requests_out.clone(),
        series: args.series_out.clone(),
        blocks: args.blocks_out.clone(),
    };
    let accepted = jobs.iter().filter(|job| job.refused.is_none());
    let keys: Vec<&str> = accepted.map(|job| job.scheme.info.key).collect();
    paths.make_folders(&keys)?;
    let workers = parallel::workers(args.jobs, &study.settings, jobs.len());
    check_memory(&jobs, workers, &trace)?;
    let rows = play(&jobs, &trace, &study, workers, &paths);
    finish(args, &study, &jobs, rows, &trace, &scan)
}

/// The schemes to compare, and whether they were named.
fn chosen<'a>(
    args: &CompareArgs,
    study: &Study,
    schemes: &'a [Scheme],
) -> Outcome<(Vec<&'a Scheme>, bool)> {
    let mut chosen: Vec<&Scheme> = Vec::new();
    let mut add = |scheme: &'a Scheme| {
        if !chosen.iter().any(|known| known.info.key == scheme.info.key) {
            chosen.push(scheme);
        }
    };
    if !args.scheme.is_empty() {
        for name in &args.scheme {
            add(find(schemes, name.trim())?);
        }
        return Ok((chosen, true));
    }
    for (name, place) in study.settings.list("compare.schemes") {
        add(find(schemes, name).map_err(|problem| problem.at(place))?);
    }
    if chosen.is_empty() {
        Ok((schemes.iter().collect(), false))
    } else {
        Ok((chosen, true))
    }
}

/// One run to be made.
struct Job<'a> {
    scheme: &'a Scheme,
    config: RunConfig,
    /// Why it cannot be made, found out before anything ran.
    refused: Option<Failure>,
}

impl<'a> Job<'a> {
    fn new(scheme: &'a Scheme, study: &Study) -> Self {
        let config = study.plan.run_of(scheme, &study.settings);
        let refused = try_out(scheme, &config).err();
        Self {
            scheme,
            config,
            refused,
        }
    }

    fn problem(&self, study: &Study) -> Problem {
        let failure = self
            .refused
            .clone()
            .unwrap_or(Failure::Bug("not refused".into()));
        study.problem(self.scheme, failure)
    }
}

/// The runs that are under way at one time may be the largest ones.
fn check_memory(jobs: &[Job<'_>], workers: usize, trace: &traces::Decoded) -> Outcome<()> {
    let accepted = jobs.iter().filter(|job| job.refused.is_none());
    let mut needs: Vec<u64> = accepted
        .filter_map(|job| job.scheme.life.simulated.memory_bytes(&job.config).ok())
        .collect();
    needs.sort_unstable_by(|a, b| b.cmp(a));
    let runs: u64 = needs.iter().take(workers).sum();
    let held = std::mem::size_of_val(&trace.requests[..]) as u64;
    output::tell(&format!(
        "Memory: about {} ({} for the trace, {} runs at a time)",
        bytes((runs + held) as f64),
        bytes(held as f64),
        workers
    ));
    memory::check(runs, memory::available(), "the comparison")
}

/// Makes all runs, some at a time, and gives their records in the order of the jobs.
fn play(
    jobs: &[Job<'_>],
    trace: &traces::Decoded,
    study: &Study,
    workers: usize,
    paths: &Paths,
) -> Vec<Result<Record, Failure>> {
    let runnable = jobs.iter().filter(|job| job.refused.is_none()).count() as u64;
    let passes = 1 + study
        .plan
        .ageing
        .iter()
        .filter(|r| **r == floatgate_sim::config::Recipe::Replay)
        .count() as u64;
    let bar = Bar::new(runnable * passes * trace.requests.len() as u64, "requests");
    // Which schemes take longest shows on the first requests.
    let costs = parallel::all(
        jobs.len(),
        workers,
        |_| 0,
        |i| time_of_first(&jobs[i], trace),
    );
    let rows = parallel::all(
        jobs.len(),
        workers,
        |i| costs[i],
        |i| play_one(&jobs[i], trace, &bar, paths),
    );
    bar.done();
    rows
}

/// Most requests that are played to find out how long all will take.
const FIRST_REQUESTS: usize = 4096;

/// Nanoseconds of processor time that a run takes for a small part of the trace, without ageing.
fn time_of_first(job: &Job<'_>, trace: &traces::Decoded) -> u64 {
    let requests = &trace.requests[..FIRST_REQUESTS.min(trace.requests.len() / 64)];
    let config = RunConfig {
        ageing: Vec::new(),
        ..job.config.clone()
    };
    let start = ThreadTime::now();
    if job.refused.is_none() {
        // What is wrong is told by the run itself.
        let _ = guarded(|| {
            job.scheme
                .life
                .simulated
                .run(&config, &mut Decoded::new(requests), &mut |_| {})
        });
    }
    start.elapsed().as_nanos() as u64
}

fn play_one(
    job: &Job<'_>,
    trace: &traces::Decoded,
    bar: &Bar,
    paths: &Paths,
) -> Result<Record, Failure> {
    if let Some(failure) = &job.refused {
        return Err(failure.clone());
    }
    let mut progress = |step| match step {
        Progress::Ageing => bar.message(format!("{} ages", job.scheme.info.key)),
        Progress::Played(n) => {
            bar.message(job.scheme.info.key);
            bar.add(n);
        }
    };
    let mut source = Decoded::new(&trace.requests);
    guarded(|| {
        let taps = Taps::open(paths.of(job.scheme.info.key), 0)?;
        let played = taps.play(job.scheme, &job.config, &mut source, &mut progress);
        played.map(|(record, _)| record)
    })
}

fn finish(
    args: &CompareArgs,
    study: &Study,
    jobs: &[Job<'_>],
    rows: Vec<Result<Record, Failure>>,
    trace: &traces::Decoded,
    scan: &Scan,
) -> Outcome<()> {
    if let Some(i) = rows
        .iter()
        .position(|row| matches!(row, Err(Failure::Trace(_))))
    {
        let failure = rows
            .into_iter()
            .nth(i)
            .and_then(Result::err)
            .unwrap_or(Failure::Trace(String::new()));
        return Err(study.problem(jobs[i].scheme, failure));
    }
    if rows.iter().all(|row| row.is_err())
        && let Some(job) = jobs.iter().find(|job| job.refused.is_some())
    {
        return Err(job.problem(study));
    }
    let records: Vec<&Record> = rows.iter().filter_map(|row| row.as_ref().ok()).collect();
    let notes = notes::of(&records, &study.plan, scan.span_s(&study.plan));
    let table = table(jobs, &rows);
    let bug = rows.iter().zip(jobs).find_map(|(row, job)| match row {
        Err(Failure::Bug(text)) => Some(Problem::bug(format!("{}: {text}", job.scheme.info.key))),
        _ => None,
    });
    let results = rows.into_iter().zip(jobs);
    let results = results.map(|(row, job)| match row {
        Ok(record) => record::Outcome::Record(Box::new(record)),
        Err(failure) => failed(&job.config, job.scheme.info.title, failure),
    });
    let document = document(&trace.about, &study.plan, results.collect(), notes);
    if args.setup.json {
        output::print_json(&document)?;
    } else {
        output::print(&format!("\n{table}{}\n", notes_text(&document.notes)))?;
    }
    for folder in [&args.requests_out, &args.series_out, &args.blocks_out] {
        if let Some(folder) = folder {
            output::tell(&format!("Files: one a scheme in {}", folder.display()));
        }
    }
    if let Some(path) = report_path(args) {
        write_report(&path, &document)?;
    }
    bug.map_or(Ok(()), Err)
}

fn report_path(args: &CompareArgs) -> Option<PathBuf> {
    match &args.setup.report {
        Some(path) => Some(path.clone()),
        None => (!args.no_report).then(|| Path::new(REPORT).to_path_buf()),
    }
}

/// The comparison, one line a scheme.
fn table(jobs: &[Job<'_>], rows: &[Result<Record, Failure>]) -> String {
    let mut table = Table::new(&[
        "<scheme",
        "mean",
        "p99",
        "WA",
        "erases",
        "switch",
        "partial",
        "full",
        "dead",
        "other",
        "map memory",
        "energy",
    ]);
    for (job, row) in jobs.iter().zip(rows) {
        let key = job.scheme.info.key;
        match row {
            Ok(record) => table.row(cells(key, record)),
            Err(Failure::Refused(refusal)) => {
                table.across(key, format!("refused: {}", refusal.message))
            }
            Err(Failure::Trace(text)) => table.across(key, format!("failed: {text}")),
            Err(Failure::Bug(text)) => table.across(key, format!("BUG: {text}")),
        }
    }
    format!(
        "{}mean, p99: response time of reads and writes; WA: write amplification; switch to other: merges by kind\n",
        table.render()
    )
}

fn cells(key: &str, record: &Record) -> [String; 12] {
    let time = |us: Option<f64>| us.map_or_else(|| "-".into(), micros);
    let (response, merges) = (&record.time.response.all, &record.counters.merges);
    [
        key.into(),
        time(response.mean_us),
        time(response.p99_us),
        short_or_dash(record.derived.write_amplification),
        count(record.derived.erases),
        count(merges.switch),
        count(merges.partial),
        count(merges.full),
        count(merges.dead),
        count(merges.own.values().sum()),
        map_memory(record),
        energy(record.energy.total_uj),
    ]
}

/// Bytes of the tables in the controller's memory; what lies in phase-change memory apart.
fn map_memory(record: &Record) -> String {
    let of = |places: &[Memory]| record.tables.bytes_in(places);
    let (ram, pcm) = (of(&[Memory::Sram, Memory::Dram]), of(&[Memory::Pcm]));
    if pcm > 0.0 {
        format!("{} + {} PCM", bytes(ram), bytes(pcm))
    } else {
        bytes(ram.ceil())
    }
}
