//! What `run`, `compare` and `fleet` have in common: from arguments to a checked plan, and from records to output.

use std::path::Path;

use floatgate_catalog::Scheme;
use floatgate_sim::config::Beyond;
use floatgate_sim::record::{
    self, BufferSettings, Configuration, DeviceSettings, Document, Failed, HostSettings, Reason,
    RunSettings, SCHEMA, SlcSettings,
};
use floatgate_trace::{Op, Request};
use twox_hash::XxHash3_128;

use super::variant::Variant;
use crate::PROGRAM;
use crate::args::Setup;
use crate::config::Settings;
use crate::config::resolve::{Plan, refused};
use crate::config::sizing::{Extent, Failure, given_bytes};
use crate::errors::{Outcome, Problem};
use crate::notes::{Seen, WriteSizes};
use crate::output;
use crate::states::Saved;
use crate::traces::{About, Choice};

/// What determines something, in short.
pub fn in_short(all: &impl std::fmt::Debug) -> String {
    let text = format!("{all:?}");
    format!("{:032x}", XxHash3_128::oneshot(text.as_bytes()))
}

/// Settings that are right one by one and together, and the trace they are about.
pub struct Study {
    /// The settings.
    pub settings: Settings,
    /// The trace.
    pub choice: Choice,
    /// The plan; not sized yet.
    pub plan: Plan,
}

impl Study {
    /// Reads and checks the settings. No trace has been opened yet.
    ///
    /// # Errors
    /// Points at what is wrong.
    pub fn new(setup: &Setup, schemes: &[Scheme]) -> Outcome<Self> {
        Self::of(setup, &setup.trace, schemes)
    }

    /// The same of a saved device: what is not given is taken from these settings of it.
    ///
    /// # Errors
    /// As [`Study::new`].
    pub fn on(saved: Settings, setup: &Setup, schemes: &[Scheme]) -> Outcome<Self> {
        let given = Settings::load(setup.config.as_deref(), &setup.sets(), schemes)?;
        Self::made(saved.under(given), setup, &setup.trace)
    }

    /// The same with other files than the setup's.
    ///
    /// # Errors
    /// As [`Study::new`].
    pub fn of(setup: &Setup, files: &[String], schemes: &[Scheme]) -> Outcome<Self> {
        let settings = Settings::load(setup.config.as_deref(), &setup.sets(), schemes)?;
        Self::made(settings, setup, files)
    }

    /// The same of settings that were read.
    ///
    /// # Errors
    /// As [`Study::new`].
    pub fn made(settings: Settings, setup: &Setup, files: &[String]) -> Outcome<Self> {
        let choice = Choice::of(files, &setup.columns, &settings)?;
        let plan = Plan::of(&settings)?;
        Ok(Self {
            settings,
            choice,
            plan,
        })
    }

    /// Finds out before the work whether the files that are asked for, each with its flag, can be written. The saved
    /// devices are read too.
    ///
    /// # Errors
    /// As [`output::check_files`].
    pub fn check_files<'a>(
        &'a self,
        setup: &'a Setup,
        saved: impl IntoIterator<Item = &'a Saved>,
        outputs: &[(&str, Option<&Path>)],
    ) -> Outcome<()> {
        let saved = saved.into_iter().map(Saved::path);
        let config = setup.config.as_deref();
        check_outputs(outputs, self.choice.paths().chain(config).chain(saved))
    }
}

/// Finds out before the work whether the files that are asked for, each with its flag, can be written.
///
/// # Errors
/// As [`output::check_files`].
pub fn check_outputs<'a>(
    outputs: &[(&str, Option<&Path>)],
    inputs: impl Iterator<Item = &'a Path>,
) -> Outcome<()> {
    let asked = outputs
        .iter()
        .filter_map(|&(flag, path)| Some((flag, path?)));
    let (asked, inputs): (Vec<_>, Vec<_>) = (asked.collect(), inputs.collect());
    output::check_files(&asked, &inputs)
}

/// The problem of a failed run, pointing at the setting to blame where there is one.
pub fn problem(variant: &Variant<'_>, failure: Failure) -> Problem {
    match failure {
        Failure::Refused(refusal) => {
            let key = variant.scheme.info.key;
            let problem = refused(&variant.settings, Some(key), &refusal);
            match refusal.key.as_deref() {
                // A value that no device takes is not about room.
                _ if refusal.message.contains(": takes ") => problem,
                Some("blocks" | "log_blocks" | "logical_pages") => {
                    problem.help("more blocks (device.blocks_per_die or device.spare_percent), less capacity, or fewer log blocks")
                }
                _ => problem,
            }
        }
        Failure::Trace(text) => Problem::new(text),
        Failure::Bug(text) => Problem::bug(format!("{}: {text}", variant.label)),
    }
}

/// What a pass over the trace tells before the run.
pub struct Scan {
    /// What of the address space it touches.
    pub extent: Extent,
    first_ns: Option<u64>,
    last_ns: u64,
    /// Where the device ends, if requests may go on from its begin.
    wraps_at: Option<u64>,
    wrapped: u64,
    page_bytes: u64,
    /// Writes by the pages that they touch at least.
    writes: WriteSizes,
}

impl Scan {
    /// Nothing seen yet.
    pub fn new(plan: &Plan, settings: &Settings) -> Self {
        let wraps = plan.host.beyond == Beyond::Wrap;
        Self {
            extent: Extent::new(&plan.host, plan.device.part.page_bytes),
            first_ns: None,
            last_ns: 0,
            wraps_at: wraps.then(|| given_bytes(plan, settings)).flatten(),
            wrapped: 0,
            page_bytes: plan.device.part.page_bytes.into(),
            writes: WriteSizes::default(),
        }
    }

    /// Takes some requests.
    pub fn add(&mut self, requests: &[Request]) {
        for request in requests {
            self.extent.add(request);
            self.first_ns.get_or_insert(request.arrival_ns);
            self.last_ns = self.last_ns.max(request.arrival_ns);
            let wraps = self.wraps_at.is_some_and(|end| request.end() > end);
            self.wrapped += u64::from(wraps);
            if request.op == Op::Write {
                self.writes.add(request.bytes.div_ceil(self.page_bytes));
            }
        }
    }

    /// What the remarks on the results need.
    pub fn seen(&self, plan: &Plan) -> Seen {
        Seen {
            span_s: crate::notes::span_s(self.first_ns.unwrap_or(0), self.last_ns, plan),
            wrapped: self.wrapped,
            writes: self.writes,
        }
    }
}

/// Everything of some runs in one value: what `--json` prints and the report shows.
pub fn document(
    about: &About,
    plan: &Plan,
    results: Vec<record::Outcome>,
    notes: Vec<String>,
) -> Document {
    Document {
        schema: SCHEMA,
        program: PROGRAM.into(),
        trace: about.record(),
        device: plan.describe(),
        configuration: configuration(plan),
        notes,
        results,
    }
}

/// The device and the host as they were used, by the keys of the configuration.
pub fn configuration(plan: &Plan) -> Configuration {
    let page_bytes = plan.device.part.page_bytes;
    Configuration {
        device: DeviceSettings::of(&plan.device, plan.data_blocks_per_die()),
        schedule: Some(plan.device.schedule).filter(|schedule| !schedule.is_plain()),
        host: HostSettings::of(&plan.host, page_bytes),
        buffer: BufferSettings::of(&plan.device),
        slc: SlcSettings::of(&plan.device),
        run: RunSettings {
            start: plan.start,
            ageing: plan.ageing.iter().map(ToString::to_string).collect(),
        },
    }
}

/// What a scheme of a comparison has instead of a record.
pub fn failed(scheme: &str, title: &str, failure: Failure) -> record::Outcome {
    record::Outcome::Failed(Failed {
        scheme: scheme.into(),
        title: title.into(),
        reason: match failure {
            Failure::Refused(refusal) => Reason::Refused(refusal.message),
            Failure::Trace(text) => Reason::Failed(text),
            Failure::Bug(text) => Reason::Bug(text),
        },
    })
}

/// The flag of the report.
pub const REPORT_FLAG: &str = "--report";

/// Writes the report and says where it is.
///
/// # Errors
/// If it cannot be written.
pub fn write_report(path: &Path, html: &str) -> Outcome<()> {
    output::write_file(REPORT_FLAG, path, html)?;
    output::tell(&format!("Report: {}", path.display()));
    Ok(())
}

/// Notes as text, one paragraph each.
pub fn notes_text(notes: &[String]) -> String {
    notes
        .iter()
        .map(|note| format!("\nNote: {note}\n"))
        .collect()
}
