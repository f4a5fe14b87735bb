//! What `run`, `compare` and `fleet` have in common: from arguments to a checked plan, and from records to output.

use std::path::Path;

use floatgate_catalog::Scheme;
use floatgate_core::options::OptionValue;
use floatgate_sim::config::RunConfig;
use floatgate_trace::Request;
use serde_json::{Value, json};

use crate::args::Setup;
use crate::config::Settings;
use crate::config::resolve::{Plan, refused};
use crate::config::sizing::{Extent, Failure};
use crate::errors::{Outcome, Problem};
use crate::output;
use crate::report;
use crate::traces::{About, Choice};

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

    /// The same with other files than the setup's.
    ///
    /// # Errors
    /// As [`Study::new`].
    pub fn of(setup: &Setup, files: &[String], schemes: &[Scheme]) -> Outcome<Self> {
        let settings = Settings::load(setup.config.as_deref(), &setup.set, schemes)?;
        let choice = Choice::of(files, &settings)?;
        let plan = Plan::of(&settings)?;
        Ok(Self {
            settings,
            choice,
            plan,
        })
    }

    /// The problem of a failed run, pointing at the setting to blame where there is one.
    pub fn problem(&self, scheme: &Scheme, failure: Failure) -> Problem {
        let key = scheme.info.key;
        match failure {
            Failure::Refused(refusal) => {
                let problem = refused(&self.settings, Some(key), &refusal);
                match refusal.key.as_deref() {
                    Some("blocks" | "log_blocks" | "logical_pages") => {
                        problem.help("more blocks (device.blocks_per_die or device.spare_percent), less capacity, or fewer log blocks")
                    }
                    _ => problem,
                }
            }
            Failure::Trace(text) => Problem::new(text),
            Failure::Bug(text) => Problem::bug(format!("{key}: {text}")),
        }
    }
}

/// What a pass over the trace tells before the run.
pub struct Scan {
    /// What of the address space it touches.
    pub extent: Extent,
    first_ns: Option<u64>,
    last_ns: u64,
}

impl Scan {
    /// Nothing seen yet.
    pub fn new(plan: &Plan) -> Self {
        Self {
            extent: Extent::new(&plan.host, plan.device.part.page_bytes),
            first_ns: None,
            last_ns: 0,
        }
    }

    /// Takes some requests.
    pub fn add(&mut self, requests: &[Request]) {
        for request in requests {
            self.extent.add(request);
            self.first_ns.get_or_insert(request.arrival_ns);
            self.last_ns = self.last_ns.max(request.arrival_ns);
        }
    }

    /// Seconds from the first to the last arrival, as the run plays them.
    pub fn span_s(&self, plan: &Plan) -> f64 {
        crate::notes::span_s(self.first_ns.unwrap_or(0), self.last_ns, plan)
    }
}

/// Everything of some runs in one value: what `--json` prints and the report shows.
pub fn document(about: &About, plan: &Plan, results: Vec<Value>, notes: &[String]) -> Value {
    json!({
        "schema": floatgate_sim::results::SCHEMA,
        "program": concat!("floatgate ", env!("CARGO_PKG_VERSION")),
        "trace": about.json(),
        "device": plan.describe(),
        "configuration": configuration(plan),
        "notes": notes,
        "results": results,
    })
}

/// The device and the host as they were used, by the keys of the configuration.
pub fn configuration(plan: &Plan) -> Value {
    let (device, part, host) = (&plan.device, &plan.device.part, &plan.host);
    json!({
        "device": {
            "part": part.name,
            "source": part.source,
            "dies": device.dies,
            "channels": device.channels,
            "planes": part.planes,
            "blocks_per_die": device.blocks,
            "data_blocks_per_die": plan.data_blocks_per_die(),
            "logical_pages": device.logical_pages,
            "page_bytes": part.page_bytes,
            "oob_bytes": part.oob_bytes,
            "pages_per_block": part.pages_per_block,
            "t_r_us": part.t_r_ns as f64 / 1000.0,
            "t_prog_us": part.t_prog_ns as f64 / 1000.0,
            "t_bers_us": part.t_bers_ns as f64 / 1000.0,
            "in_ps": part.in_ps,
            "out_ps": part.out_ps,
            "program_order": device.program_order.name(),
            "mode": device.mode,
            "copyback": device.copyback,
            "wear_leveling": device.wear_leveling.show(),
            "wear_gap": device.wear_gap,
        },
        "host": {
            "arrivals": host.arrivals,
            "queue_depth": host.queue_depth,
            "speed": host.speed,
            "partial_write": host.partial_write,
            "write_zeroes": if host.write_zeroes_as_writes { "write" } else { "trim" },
            "beyond": host.beyond,
            "compact_region_pages": host.region_pages(part.page_bytes),
        },
        "run": {
            "start": plan.start.name(),
            "ageing": plan.ageing.iter().map(ToString::to_string).collect::<Vec<_>>(),
        },
    })
}

/// What a scheme of a comparison has instead of a record.
pub fn failed_json(config: &RunConfig, title: &str, failure: &Failure) -> Value {
    let (kind, text) = match failure {
        Failure::Refused(refusal) => ("refused", refusal.message.clone()),
        Failure::Trace(text) => ("failed", text.clone()),
        Failure::Bug(text) => ("bug", text.clone()),
    };
    let mut value = json!({"scheme": config.scheme, "title": title});
    value[kind] = text.into();
    value
}

/// Writes the report and says where it is.
///
/// # Errors
/// If it cannot be written.
pub fn write_report(path: &Path, document: &Value) -> Outcome<()> {
    output::write_file(path, &report::html(document))?;
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
