//! `floatgate run`: one scheme on one trace, read as it is played.

use floatgate_catalog::Scheme;
use floatgate_sim::record;
use floatgate_sim::run::Progress;
use floatgate_sim::streamed::Streamed;

use super::study::{REPORT_FLAG, Scan, Study, document, notes_text, problem, write_report};
use super::taps::{Paths, Taps};
use super::variant::Variant;
use crate::args::RunArgs;
use crate::config::sizing::{guarded, size, try_out};
use crate::errors::{Outcome, Place};
use crate::memory;
use crate::notes;
use crate::output;
use crate::progress::Bar;
use crate::report::{self, text, why};
use crate::states::{DeviceFiles, SAVE_FLAG, Saved};
use crate::table::bytes;
use crate::traces::About;

/// Requests read at a time.
const BATCH: usize = 1 << 16;
/// The scheme of a run that names none.
const DEFAULT_SCHEME: &str = "page";

/// Runs the scheme and prints its result.
pub fn run(args: &RunArgs, schemes: &[Scheme]) -> Outcome<()> {
    let saved = args.load_state.as_deref().map(Saved::read).transpose()?;
    let mut study = match &saved {
        Some(saved) => Study::on(saved.settings(schemes)?, &args.setup, schemes)?,
        None => Study::new(&args.setup, schemes)?,
    };
    let named = args
        .scheme
        .as_deref()
        .or_else(|| study.settings.text("scheme.name"));
    let named = named.unwrap_or(DEFAULT_SCHEME);
    let place = match &args.scheme {
        Some(text) => Place::Argument(format!("--scheme {text}")),
        None => study.settings.place("scheme.name"),
    };
    let variant = Variant::parse(named, &place, &study.settings, schemes)?;
    let scheme = variant.scheme;
    study.settings.check_options(&[scheme])?;
    let outputs = [
        (REPORT_FLAG, args.setup.report.as_deref()),
        ("--requests-out", args.requests_out.as_deref()),
        ("--series-out", args.series_out.as_deref()),
        ("--blocks-out", args.blocks_out.as_deref()),
        ("--timeline", args.timeline.as_deref()),
        (SAVE_FLAG, args.save_state.as_deref()),
    ];
    study.check_files(&args.setup, &saved, &outputs)?;
    let paths = Paths {
        requests: args.requests_out.clone(),
        series: args.series_out.clone(),
        blocks: args.blocks_out.clone(),
    };
    let taps = Taps::open(paths, args.slowest.unwrap_or(0) as usize)?;
    // The trace is read twice: to size the device, and to play it.
    study.choice.keep_streams()?;
    let (scan, about) = scan(&study)?;
    size(
        &mut study.plan,
        &study.settings,
        &scan.extent,
        schemes,
        &[variant.named()],
    )?;
    let config = variant.run_on(&study.plan);
    let taps = taps.with_timeline(
        args.timeline.as_deref(),
        &config,
        args.timeline_between.clone(),
    )?;
    if let Some(saved) = &saved {
        saved.check(&config, &variant.settings, scheme, schemes)?;
    }
    output::tell(&format!("Trace:  {}", about.describe()));
    output::tell(&format!("Device: {}", study.plan.describe()));
    let need = scheme
        .life
        .simulated
        .memory_bytes(&config)
        .map_err(|refusal| problem(&variant, crate::config::sizing::Failure::Refused(refusal)))?;
    output::tell(&format!("Memory: about {}", bytes(need as f64)));
    memory::check(need, memory::available(), "the run")?;
    try_out(scheme, &config).map_err(|failure| problem(&variant, failure))?;
    let bar = Bar::new(about.counts.accepted, "requests");
    let choice = study.choice.clone();
    let mut progress = |step| match step {
        Progress::Ageing => bar.message("ages"),
        Progress::Played(n) => bar.add(n),
    };
    let device = DeviceFiles {
        plan: &study.plan,
        load: saved.as_ref(),
        save: args.save_state.as_deref(),
    };
    let played = guarded(|| {
        let mut source = Streamed::new(move || choice.open())?;
        taps.play(scheme, device, &config, &mut source, &mut progress)
    });
    bar.done();
    let played = played.map_err(|failure| device.blame(failure));
    let (mut record, told) = played.map_err(|failure| problem(&variant, failure))?;
    record.scheme.clone_from(&variant.label);
    let seen = scan.seen(&study.plan);
    record.time.behind_s = notes::behind_s(&record, &study.plan, seen.span_s);
    if let Some(path) = &args.save_state {
        output::tell(&format!("State:  {}", path.display()));
    }
    told.iter().for_each(|line| output::tell(line));
    let notes = notes::of(&[&record], &study.plan, &study.settings, &seen);
    let text = format!("{}{}", text::of(&record), why::of(&record));
    let results = vec![record::Outcome::Record(Box::new(record))];
    let document = document(&about, &study.plan, results, notes);
    if args.setup.json {
        output::print_json(&document)?;
    } else {
        output::print(&format!("\n{text}{}\n", notes_text(&document.notes)))?;
    }
    match &args.setup.report {
        Some(path) => write_report(path, &report::html(&document)),
        None => Ok(()),
    }
}

/// Reads the trace once before the run: whatever is wrong with it shows now, and the device can be sized.
fn scan(study: &Study) -> Outcome<(Scan, About)> {
    let mut scan = Scan::new(&study.plan, &study.settings);
    let choice = &study.choice;
    let mut reader = choice.open().map_err(|error| choice.problem(error))?;
    let mut batch = Vec::with_capacity(BATCH);
    while reader.next_batch(&mut batch, BATCH)? > 0 {
        scan.add(&batch);
        batch.clear();
    }
    Ok((scan, About::of(&study.choice, &reader)))
}
