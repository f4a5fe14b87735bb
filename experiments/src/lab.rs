//! What experiments share: devices, and runs over all cores.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use floatgate_catalog::{Catalog, catalog};
use floatgate_core::Start;
use floatgate_core::options::Value as OptionValue;
use floatgate_sim::clock::Mode;
use floatgate_sim::config::{Arrivals, Beyond, Device, Host, Recipe, RunConfig};
use floatgate_sim::part::part;
use floatgate_sim::record::Record;
use floatgate_sim::run::Decoded;
use floatgate_trace::Request;

use crate::workload::Workload;

/// The schemes, the trace of the command line, the cores.
pub struct Lab {
    /// Trace asked for.
    pub trace: Option<String>,
    schemes: Catalog,
}

/// A run to be made.
#[derive(Clone, Debug)]
pub struct Job<'a> {
    /// What it is, for messages.
    pub label: String,
    /// All but its trace.
    pub config: RunConfig,
    /// Its trace.
    pub requests: &'a [Request],
}

impl Lab {
    /// A laboratory.
    pub fn new(trace: Option<String>) -> Self {
        Self {
            trace,
            schemes: catalog(),
        }
    }

    /// The trace asked for, or this one of the bundled ones.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn recorded(&self, default: &str) -> Result<Workload, String> {
        Workload::open(self.trace.as_deref().unwrap_or(default))
    }

    /// Makes all runs, as many at a time as there are cores; their records in the order of the jobs.
    ///
    /// # Errors
    /// What went wrong with the first that failed.
    pub fn run(&self, jobs: &[Job<'_>]) -> Result<Vec<Record>, String> {
        let next = AtomicUsize::new(0);
        let records: Vec<Mutex<Result<Record, String>>> = jobs
            .iter()
            .map(|_| Mutex::new(Err("it was not run".into())))
            .collect();
        let cores = thread::available_parallelism()
            .map_or(1, usize::from)
            .min(jobs.len());
        thread::scope(|scope| {
            for _ in 0..cores {
                scope.spawn(|| {
                    while let Some((job, place)) = {
                        let i = next.fetch_add(1, Ordering::Relaxed);
                        jobs.get(i).zip(records.get(i))
                    } {
                        let record = self.one(job);
                        if let Ok(mut place) = place.lock() {
                            *place = record;
                        }
                    }
                });
            }
        });
        let taken = records
            .into_iter()
            .map(|record| record.into_inner().map_err(|e| e.to_string())?);
        taken
            .zip(jobs)
            .map(|(record, job)| record.map_err(|text| format!("{}: {text}", job.label)))
            .collect()
    }

    fn one(&self, job: &Job<'_>) -> Result<Record, String> {
        let scheme = self.schemes.get(&job.config.scheme);
        let scheme = scheme.map_err(|refusal| refusal.to_string())?;
        scheme
            .life
            .simulated
            .run(&job.config, &mut Decoded::new(job.requests), &mut |_| {})
            .map_err(|e| e.to_string())
    }
}

/// A device of a preset part.
///
/// # Panics
/// If there is no such part.
pub fn device(
    part_name: &str,
    dies: u32,
    data_blocks: u32,
    more_blocks: u32,
    mode: Mode,
) -> Device {
    let part = part(part_name)
        .unwrap_or_else(|| panic!("part {part_name} is a preset"))
        .clone();
    let logical_pages = u64::from(data_blocks) * u64::from(dies) * u64::from(part.pages_per_block);
    Device {
        mode,
        ..Device::one_die_a_channel(part, dies, data_blocks + more_blocks, logical_pages)
    }
}

/// One request at a time, each as soon as the one before is complete; regions of the trace get places in the
/// order of their first touch. A region of a whole stripe (pages of a block times dies) keeps what lies inside
/// one together; 0 takes 1 MiB.
pub fn one_at_a_time(region_pages: u32) -> Host {
    Host {
        arrivals: Arrivals::Closed,
        queue_depth: 1,
        beyond: Beyond::Compact,
        compact_region_pages: region_pages,
        ..Host::default()
    }
}

/// A run of a scheme with options in words.
pub fn config(
    device: &Device,
    host: &Host,
    start: Start,
    scheme: &str,
    options: &[(&str, String)],
) -> RunConfig {
    RunConfig {
        device: device.clone(),
        start,
        ageing: Vec::new(),
        host: host.clone(),
        scheme: scheme.into(),
        options: options
            .iter()
            .map(|(key, word)| ((*key).into(), OptionValue::from_word(word)))
            .collect(),
    }
}

/// The same, after the trace has been played once that does not count.
pub fn replayed(config: RunConfig) -> RunConfig {
    RunConfig {
        ageing: vec![Recipe::Replay],
        ..config
    }
}

/// A figure of a record.
pub type Figure = fn(&Record) -> Option<f64>;

/// A counter of the scheme's own.
pub fn extra(record: &Record, name: &str) -> Option<f64> {
    record.counters.extra.get(name).map(|&n| n as f64)
}

/// Copies of valid pages.
pub fn copies(record: &Record) -> Option<f64> {
    Some(record.derived.copies as f64)
}

/// Erases.
pub fn erases(record: &Record) -> Option<f64> {
    Some(record.derived.erases as f64)
}

/// `(a - b) / b` in percent.
pub fn over(a: Option<f64>, b: Option<f64>) -> Option<f64> {
    Some((a? - b?) / b? * 100.0).filter(|percent| percent.is_finite())
}
