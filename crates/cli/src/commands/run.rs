//! `floatgate run`: one scheme on one trace, read as it is played.

use floatgate_catalog::Scheme;
use floatgate_sim::record;
use floatgate_sim::requests::{RequestRow, RequestsFile};
use floatgate_sim::run::{Progress, TakeRows};
use floatgate_sim::streamed::Streamed;

use super::study::{Scan, Study, document, notes_text, problem, write_report};
use super::variant::Variant;
use crate::args::RunArgs;
use crate::config::sizing::{guarded, size, try_out};
use crate::errors::{Outcome, Place};
use crate::memory;
use crate::notes;
use crate::output;
use crate::progress::Bar;
use crate::report::text;
use crate::states::{self, DeviceFiles, Saved};
use crate::table::bytes;
use crate::traces::About;

/// Requests read at a time.
const BATCH: usize = 1 << 16;
/// The scheme of a run that names none.
const DEFAULT_SCHEME: &str = "page";

/// Runs the scheme and prints its result.
pub fn run(args: &RunArgs, schemes: &[Scheme]) -> Outcome<()> {
    let saved = args.load_state.as_deref().map(Saved::read).transpose()?;
    if let Some(path) = &args.save_state {
        states::check_target(path)?;
    }
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
    let (scan, about) = scan(&study)?;
    size(
        &mut study.plan,
        &study.settings,
        &scan.extent,
        schemes,
        &[scheme],
    )?;
    let config = variant.run_on(&study.plan);
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
    let mut rows = match &args.requests_out {
        Some(path) => Some(RequestsFile::create(path)?),
        None => None,
    };
    let device = DeviceFiles {
        load: saved.as_ref(),
        save: args.save_state.as_deref(),
    };
    let record = guarded(|| {
        let mut source = Streamed::new(move || choice.open())?;
        let mut write_rows = rows
            .as_mut()
            .map(|file| |rows: &[RequestRow]| file.write(rows));
        let take_rows = write_rows.as_mut().map(|write| write as &mut TakeRows<'_>);
        let plan = &study.plan;
        device.run(scheme, plan, &config, &mut source, &mut progress, take_rows)
    });
    bar.done();
    let record = record.map_err(|failure| device.blame(failure));
    let mut record = record.map_err(|failure| problem(&variant, failure))?;
    record.scheme.clone_from(&variant.label);
    if let Some(path) = &args.save_state {
        output::tell(&format!("State:  {}", path.display()));
    }
    if let (Some(file), Some(path)) = (rows, &args.requests_out) {
        let written = file.finish()?;
        output::tell(&format!(
            "Requests: {} rows in {}",
            written.rows,
            path.display()
        ));
    }
    let notes = notes::of(
        &[&record],
        &study.plan,
        &study.settings,
        &scan.seen(&study.plan),
    );
    let text = text::of(&record);
    let results = vec![record::Outcome::Record(Box::new(record))];
    let document = document(&about, &study.plan, results, notes);
    if args.setup.json {
        output::print_json(&document)?;
    } else {
        output::print(&format!("\n{text}{}\n", notes_text(&document.notes)))?;
    }
    match &args.setup.report {
        Some(path) => write_report(path, &document),
        None => Ok(()),
    }
}

/// Reads the trace once before the run: whatever is wrong with it shows now, and the device can be sized.
fn scan(study: &Study) -> Outcome<(Scan, About)> {
    let mut scan = Scan::new(study);
    let mut reader = study.choice.open()?;
    let mut batch = Vec::with_capacity(BATCH);
    while reader.next_batch(&mut batch, BATCH)? > 0 {
        scan.add(&batch);
        batch.clear();
    }
    Ok((scan, About::of(&study.choice, &reader)))
}
