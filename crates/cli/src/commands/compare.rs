//! `floatgate compare`: many schemes, one trace, one device.

use std::path::{Path, PathBuf};

use cpu_time::ThreadTime;
use floatgate_catalog::Scheme;
use floatgate_sim::config::{Arrivals, Host, Recipe, RunConfig};
use floatgate_sim::record::{self, Record};
use floatgate_sim::run::{Decoded, Progress};

use super::parallel;
use super::study::{REPORT_FLAG, Scan, Study, document, failed, notes_text, problem, write_report};
use super::taps::{Paths, Taps};
use super::variant::Variant;
use crate::args::CompareArgs;
use crate::comparison;
use crate::config::Settings;
use crate::config::resolve::Plan;
use crate::config::sizing::{Failure, guarded, size, try_out};
use crate::errors::{Outcome, Place, Problem};
use crate::memory;
use crate::notes;
use crate::output;
use crate::progress::Bar;
use crate::states::{self, DeviceFiles, SAVE_FLAG, Saved};
use crate::table::bytes;
use crate::traces;

/// Where the report goes if nothing else is said.
const REPORT: &str = "floatgate-report.html";

/// Runs the schemes and prints the comparison.
pub fn run(args: &CompareArgs, schemes: &[Scheme]) -> Outcome<()> {
    let saved = saved_devices(args, schemes)?;
    let mut study = match saved.first() {
        Some((_, first)) => {
            let settings = first.settings(schemes)?.of_all_schemes();
            Study::on(settings, &args.setup, schemes)?
        }
        None => Study::new(&args.setup, schemes)?,
    };
    let (mut chosen, explicit) = match &args.load_state {
        None => chosen(&args.scheme, &study.settings, schemes)?,
        Some(folder) => {
            let place = Place::Argument(format!("--load-state {}", folder.display()));
            let labels = saved.iter().map(|(label, _)| (&**label, place.clone()));
            (Variant::list(labels, &study.settings, schemes)?, true)
        }
    };
    for (variant, (_, saved)) in chosen.iter_mut().zip(&saved) {
        variant.settings = saved.settings(schemes)?.under(variant.settings.clone());
    }
    let named: Vec<&Scheme> = chosen.iter().map(|variant| variant.scheme).collect();
    study.settings.check_options(&named)?;
    let report = report_path(args);
    let devices = || saved.iter().map(|(_, saved)| saved);
    let report_file = [(REPORT_FLAG, report.as_deref())];
    study.check_files(&args.setup, devices(), &report_file)?;
    let trace = study.choice.decode(&mut || {})?;
    let mut scan = Scan::new(&study.plan, &study.settings);
    scan.add(&trace.requests);
    let named: Vec<_> = chosen.iter().map(Variant::named).collect();
    size(
        &mut study.plan,
        &study.settings,
        &scan.extent,
        schemes,
        &named,
    )?;
    output::tell(&format!("Trace:  {}", trace.about.describe()));
    output::tell(&format!("Device: {}", study.plan.describe()));
    let mut jobs: Vec<Job> = chosen
        .into_iter()
        .map(|variant| Job::new(variant, &study.plan, args.save_state.as_deref()))
        .collect();
    for (job, (_, saved)) in jobs.iter_mut().zip(saved) {
        let variant = &job.variant;
        saved.check(&job.config, &variant.settings, variant.scheme, schemes)?;
        job.saved = Some(saved);
    }
    if explicit && let Some(job) = jobs.iter().find(|job| job.refused.is_some()) {
        return Err(job.problem());
    }
    let paths = Paths {
        requests: args.requests_out.clone(),
        series: args.series_out.clone(),
        blocks: args.blocks_out.clone(),
    };
    let accepted = jobs.iter().filter(|job| job.refused.is_none());
    let labels: Vec<&str> = accepted.map(|job| &*job.variant.label).collect();
    paths.make_folders(&labels)?;
    if let Some(folder) = &args.save_state {
        states::make_folder(folder)?;
        let states = jobs.iter().filter(|job| job.refused.is_none());
        let states = states.map(|job| (SAVE_FLAG, job.save.as_deref()));
        let outputs: Vec<_> = states.chain(report_file).collect();
        study.check_files(&args.setup, [], &outputs)?;
    }
    let workers = parallel::workers(args.jobs, &study.settings, jobs.len());
    check_memory(&jobs, workers, &trace)?;
    let rows = play(&jobs, &trace, &study, workers, &paths);
    finish(args, &study, &jobs, rows, &trace, &scan)
}

/// The saved devices to begin with, each with the name of its scheme: of the schemes that are named, or all in the folder in
/// the order of the catalog.
fn saved_devices(args: &CompareArgs, schemes: &[Scheme]) -> Outcome<Vec<(String, Saved)>> {
    let Some(folder) = &args.load_state else {
        return Ok(Vec::new());
    };
    let given = Settings::load(args.setup.config.as_deref(), &args.setup.sets(), schemes)?;
    let in_file = given.list("compare.schemes").iter().map(|(text, _)| text);
    let named: Vec<&String> = match args.scheme.is_empty() {
        true => in_file.collect(),
        false => args.scheme.iter().collect(),
    };
    let labels = match named.is_empty() {
        true => {
            let place = |label: &String| {
                let key = label.split(':').next().unwrap_or_default();
                schemes.iter().position(|scheme| scheme.info.key == key)
            };
            let mut labels = states::labels_in(folder)?;
            labels.sort_by_key(|label| (place(label), label.clone()));
            labels
        }
        false => named.iter().map(|text| text.trim().to_string()).collect(),
    };
    let read = |label: String| {
        let saved = Saved::read(&states::file_in(folder, &label))?;
        Ok((label, saved))
    };
    labels.into_iter().map(read).collect()
}

/// What to compare, and whether it was named: on the command line, else in the settings.
pub(super) fn chosen<'a>(
    names: &[String],
    settings: &Settings,
    schemes: &'a [Scheme],
) -> Outcome<(Vec<Variant<'a>>, bool)> {
    let in_file = settings.list("compare.schemes").iter();
    let in_file = in_file.map(|(text, place)| (text.as_str(), place.clone()));
    let chosen = if names.is_empty() {
        Variant::list(in_file, settings, schemes)?
    } else {
        Variant::of_flags(names, settings, schemes)?
    };
    Ok(match chosen.is_empty() {
        true => (Variant::all(settings, schemes), false),
        false => (chosen, true),
    })
}

/// The runs to be made of one scheme.
struct Job<'a> {
    variant: Variant<'a>,
    config: RunConfig,
    /// The same requests one at a time, unless they are that already.
    alone: Option<RunConfig>,
    /// Why it cannot be made, found out before anything ran.
    refused: Option<Failure>,
    /// The device to begin with, if it is not to be aged.
    saved: Option<Saved>,
    /// Where the aged device goes.
    save: Option<PathBuf>,
}

impl<'a> Job<'a> {
    fn new(variant: Variant<'a>, plan: &Plan, save_in: Option<&Path>) -> Self {
        let config = variant.run_on(plan);
        let refused = try_out(variant.scheme, &config).err();
        let is_alone = config.host.arrivals == Arrivals::Closed && config.host.queue_depth == 1;
        let alone = (!is_alone).then(|| RunConfig {
            host: Host {
                arrivals: Arrivals::Closed,
                queue_depth: 1,
                ..config.host.clone()
            },
            ..config.clone()
        });
        Self {
            save: save_in.map(|folder| states::file_in(folder, &variant.label)),
            variant,
            config,
            alone,
            refused,
            saved: None,
        }
    }

    fn problem(&self) -> Problem {
        let failure = self
            .refused
            .clone()
            .unwrap_or(Failure::Bug("not refused".into()));
        problem(&self.variant, failure)
    }
}

/// The runs that are under way at one time may be the largest ones.
fn check_memory(jobs: &[Job<'_>], workers: usize, trace: &traces::Decoded) -> Outcome<()> {
    let accepted = jobs.iter().filter(|job| job.refused.is_none());
    let mut needs: Vec<u64> = accepted
        .filter_map(|job| {
            job.variant
                .scheme
                .life
                .simulated
                .memory_bytes(&job.config)
                .ok()
        })
        .collect();
    needs.sort_unstable_by(|a, b| b.cmp(a));
    let runs: u64 = needs.iter().take(workers).sum();
    let held = trace.bytes();
    output::tell(&format!(
        "Memory: about {} ({} for the trace, {} runs at a time)",
        bytes((runs + held) as f64),
        bytes(held as f64),
        workers
    ));
    memory::check(runs, memory::available(), "the comparison")
}

/// Makes all runs, some at a time, and gives the records in the order of the jobs.
fn play(
    jobs: &[Job<'_>],
    trace: &traces::Decoded,
    study: &Study,
    workers: usize,
    paths: &Paths,
) -> Vec<Result<Record, Failure>> {
    let accepted = jobs.iter().filter(|job| job.refused.is_none());
    let runs = |job: &Job<'_>| 1 + u64::from(job.alone.is_some());
    let ageing = study.plan.ageing.iter();
    let replays = ageing.filter(|recipe| **recipe == Recipe::Replay).count() as u64;
    let passes = match jobs.iter().any(|job| job.saved.is_some()) {
        true => 1,
        false => 1 + replays,
    };
    let requests = accepted.map(runs).sum::<u64>() * passes * trace.requests.len() as u64;
    let bar = Bar::new(requests, "requests");
    // Which schemes take longest shows on the first requests.
    let costs = parallel::all(
        jobs.len(),
        workers,
        |_| 0,
        |i| time_of_first(&jobs[i], trace),
    );
    // Each job twice, under load and alone, so that a slow scheme takes two processors.
    let mut records = parallel::all(
        2 * jobs.len(),
        workers,
        |task| costs[task / 2],
        |task| {
            let job = &jobs[task / 2];
            // The files are about the run under load. The same device is under both.
            let (config, paths, save) = match task % 2 {
                0 => (
                    Some(&job.config),
                    paths.of(&job.variant.label),
                    job.save.as_deref(),
                ),
                _ => (job.alone.as_ref(), Paths::default(), None),
            };
            let device = DeviceFiles {
                plan: &study.plan,
                load: job.saved.as_ref(),
                save,
            };
            config.map(|config| play_one(job, config, device, trace, &bar, paths))
        },
    )
    .into_iter();
    bar.done();
    let mut rows = Vec::with_capacity(jobs.len());
    while let (Some(Some(under_load)), Some(alone)) = (records.next(), records.next()) {
        rows.push(under_load.and_then(|mut record| {
            let alone = alone.transpose()?;
            record.time.alone = Some(alone.as_ref().unwrap_or(&record).time.response.all);
            Ok(record)
        }));
    }
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
        let simulated = &job.variant.scheme.life.simulated;
        let _ = guarded(|| simulated.run(&config, &mut Decoded::new(requests), &mut |_| {}));
    }
    start.elapsed().as_nanos() as u64
}

fn play_one(
    job: &Job<'_>,
    config: &RunConfig,
    device: DeviceFiles<'_>,
    trace: &traces::Decoded,
    bar: &Bar,
    paths: Paths,
) -> Result<Record, Failure> {
    if let Some(failure) = &job.refused {
        return Err(failure.clone());
    }
    let mut progress = |step| match step {
        Progress::Ageing => bar.message(format!("{} ages", job.variant.label)),
        Progress::Played(n) => {
            bar.message(&job.variant.label);
            bar.add(n);
        }
    };
    let mut source = Decoded::new(&trace.requests);
    let played = guarded(|| {
        let taps = Taps::open(paths, 0, false)?;
        taps.play(
            job.variant.scheme,
            device,
            config,
            &mut source,
            None,
            &mut progress,
        )
    });
    let mut record = played.map_err(|failure| device.blame(failure))?.record;
    record.scheme.clone_from(&job.variant.label);
    Ok(record)
}

fn finish(
    args: &CompareArgs,
    study: &Study,
    jobs: &[Job<'_>],
    mut rows: Vec<Result<Record, Failure>>,
    trace: &traces::Decoded,
    scan: &Scan,
) -> Outcome<()> {
    let seen = scan.seen(&study.plan);
    for record in rows.iter_mut().flatten() {
        record.time.arrivals_s = Some(seen.span_s);
        record.time.behind_s = notes::behind_s(record, &study.plan, seen.span_s);
    }
    if let Some(i) = rows
        .iter()
        .position(|row| matches!(row, Err(Failure::Trace(_))))
    {
        let failure = rows
            .into_iter()
            .nth(i)
            .and_then(Result::err)
            .unwrap_or(Failure::Trace(String::new()));
        return Err(problem(&jobs[i].variant, failure));
    }
    if rows.iter().all(|row| row.is_err())
        && let Some(job) = jobs.iter().find(|job| job.refused.is_some())
    {
        return Err(job.problem());
    }
    let records: Vec<&Record> = rows.iter().filter_map(|row| row.as_ref().ok()).collect();
    let notes = notes::of(&records, &study.plan, &study.settings, &seen);
    let labelled = jobs.iter().map(|job| &*job.variant.label).zip(&rows);
    let tables = comparison::tables(labelled);
    let bug = rows.iter().zip(jobs).find_map(|(row, job)| match row {
        Err(Failure::Bug(text)) => Some(Problem::bug(format!("{}: {text}", job.variant.label))),
        _ => None,
    });
    let results = rows.into_iter().zip(jobs);
    let results = results.map(|(row, job)| match row {
        Ok(record) => record::Outcome::Record(Box::new(record)),
        Err(failure) => failed(&job.config.scheme, job.variant.scheme.info.title, failure),
    });
    let document = document(&trace.about, &study.plan, results.collect(), notes);
    if args.setup.json {
        output::print_json(&document)?;
    } else {
        output::print(&format!("\n{tables}{}\n", notes_text(&document.notes)))?;
    }
    for folder in [&args.requests_out, &args.series_out, &args.blocks_out]
        .into_iter()
        .flatten()
    {
        output::tell(&format!("Files: one a scheme in {}", folder.display()));
    }
    if let Some(path) = report_path(args) {
        write_report(&path, &crate::report::html(&document, None))?;
    }
    bug.map_or(Ok(()), Err)
}

fn report_path(args: &CompareArgs) -> Option<PathBuf> {
    match &args.setup.report {
        Some(path) => Some(path.clone()),
        None => (!args.no_report).then(|| Path::new(REPORT).to_path_buf()),
    }
}
