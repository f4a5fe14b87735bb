//! The volumes of a fleet on devices of their own, some at a time.

use std::panic::{AssertUnwindSafe, catch_unwind};

use floatgate_catalog::Scheme;
use floatgate_sim::run::{Progress, Source};
use floatgate_trace::split::VolumeReader;
use floatgate_trace::{Request, TraceError};

use super::input::{Entry, Input};
use super::rows::{Measured, Row};
use crate::commands::parallel;
use crate::commands::study::{Scan, Study};
use crate::commands::variant::Variant;
use crate::config::resolve::Plan;
use crate::config::sizing::{self, Failure, guarded};
use crate::errors::Problem;
use crate::memory::Budget;
use crate::progress::Bar;
use crate::table::bytes;

/// Requests looked at together before the run.
const BATCH: usize = 1 << 12;

/// Is called now and then, by all threads that work; one that unwinds from it ends the work.
pub type Beat<'a> = &'a (dyn Fn() + Sync);

/// Volumes and schemes to be brought together.
pub struct Fleet<'a> {
    study: &'a Study,
    input: &'a Input,
    /// All schemes: they have a say in the size of a device.
    schemes: &'a [Scheme],
    chosen: &'a [Variant<'a>],
    workers: usize,
    memory: Budget,
    beat: Beat<'a>,
}

/// The device of a volume.
struct Sized {
    plan: Plan,
    span_s: f64,
}

impl<'a> Fleet<'a> {
    /// Nothing runs yet.
    pub fn new(
        study: &'a Study,
        input: &'a Input,
        schemes: &'a [Scheme],
        chosen: &'a [Variant<'a>],
        jobs: Option<u32>,
        beat: Beat<'a>,
    ) -> Self {
        let tasks = input.volumes.len() * chosen.len();
        Self {
            study,
            input,
            schemes,
            chosen,
            workers: parallel::workers(jobs, &study.settings, tasks),
            memory: Budget::of_what_is_free(),
            beat,
        }
    }

    /// One line: what the devices are.
    pub fn describe(&self) -> String {
        let plan = &self.study.plan;
        let size = match plan.capacity_from_trace {
            true => "sized to it".to_string(),
            false => {
                let page = f64::from(plan.device.part.page_bytes);
                format!("of {}", bytes(plan.device.logical_pages as f64 * page))
            }
        };
        format!(
            "one a volume, {size}: {}, start {}",
            plan.device.part.name,
            plan.start.name(),
        )
    }

    /// How much is done at a time.
    pub fn limits(&self) -> String {
        let memory = bytes(self.memory.total() as f64);
        format!("{} at a time, in {memory} of memory at most", self.workers)
    }

    /// Sizes a device for every volume, then runs every scheme on every device; rows by volume, then scheme.
    pub fn play(&self) -> Vec<Row> {
        let (volumes, schemes) = (&self.input.volumes, self.chosen.len());
        let requests: u64 = volumes.iter().map(|volume| volume.requests).sum();
        let bar = Bar::new(requests * (1 + schemes as u64), "requests");
        let requests_of = |volume: usize| volumes[volume].requests;
        let devices = parallel::all(volumes.len(), self.workers, requests_of, |volume| {
            bar.message(format!("device of {}", volumes[volume].name));
            let device = self.sized(&volumes[volume]);
            bar.add(volumes[volume].requests);
            device
        });
        let rows = parallel::all(
            volumes.len() * schemes,
            self.workers,
            |task| requests_of(task / schemes),
            |task| {
                let (volume, scheme) = (task / schemes, task % schemes);
                let measured = match &devices[volume] {
                    Ok(device) => self.run(&volumes[volume], &self.chosen[scheme], device, &bar),
                    Err(failure) => Err(failure.clone()),
                };
                Row {
                    volume,
                    scheme,
                    measured,
                }
            },
        );
        bar.done();
        rows
    }

    /// What comes of one volume under every scheme.
    pub fn volume(&self, entry: &'a Entry, bar: &Bar) -> Vec<Result<Measured, Failure>> {
        let device = self.sized(entry);
        let run = |variant| match &device {
            Ok(device) => self.run(entry, variant, device, bar),
            Err(failure) => Err(failure.clone()),
        };
        self.chosen.iter().map(run).collect()
    }

    /// A source of a volume's requests, unless they could not be read.
    fn source(&self, entry: &'a Entry) -> Result<VolumeSource<'a>, Failure> {
        let failed = |error: &String| Failure::Trace(error.clone());
        if let Some(error) = &entry.error {
            return Err(failed(error));
        }
        let volumes = self.input.split.volumes();
        match entry.place.and_then(|place| volumes.get(place)) {
            Some(volume) => Ok(VolumeSource(self.input.split.read(volume))),
            None => Err(Failure::Bug("a volume was lost".into())),
        }
    }

    fn sized(&self, entry: &'a Entry) -> Result<Sized, Failure> {
        // Work that is ended unwinds; a thread that died of it would be told as a panic.
        catch_unwind(AssertUnwindSafe(|| self.device(entry)))
            .unwrap_or_else(|_| Err(Failure::Bug("it could not be sized".into())))
    }

    /// The device that `run` or `compare` would give the volume.
    fn device(&self, entry: &'a Entry) -> Result<Sized, Failure> {
        let (mut source, mut plan) = (self.source(entry)?, self.study.plan.clone());
        let mut scan = Scan::new(&plan, &self.study.settings);
        let mut batch = Vec::with_capacity(BATCH);
        let failed = |error: TraceError| Failure::Trace(error.to_string());
        loop {
            while batch.len() < BATCH
                && let Some(request) = source.next().map_err(failed)?
            {
                batch.push(request);
            }
            if batch.is_empty() {
                break;
            }
            scan.add(&batch);
            batch.clear();
            (self.beat)();
        }
        let (settings, extent) = (&self.study.settings, &scan.extent);
        let failed = |problem: Problem| Failure::Trace(problem.message().to_string());
        let named: Vec<_> = self.chosen.iter().map(Variant::named).collect();
        let need =
            sizing::estimate(&plan, settings, extent, self.schemes, &named).map_err(failed)?;
        let _lease = self.memory.take(need).map_err(failed)?;
        sizing::size(&mut plan, settings, extent, self.schemes, &named).map_err(failed)?;
        let span_s = scan.seen(&plan).span_s;
        Ok(Sized { plan, span_s })
    }

    fn run(
        &self,
        entry: &'a Entry,
        variant: &Variant<'_>,
        device: &Sized,
        bar: &Bar,
    ) -> Result<Measured, Failure> {
        let mut source = self.source(entry)?;
        let config = variant.run_on(&device.plan);
        let simulated = &variant.scheme.life.simulated;
        let need = simulated.memory_bytes(&config).map_err(Failure::Refused)?;
        let failed = |problem: Problem| Failure::Trace(problem.message().to_string());
        let _lease = self.memory.take(need).map_err(failed)?;
        bar.message(format!("{} {}", entry.name, variant.label));
        let mut progress = |step| {
            (self.beat)();
            if let Progress::Played(n) = step {
                bar.add(n);
            }
        };
        let record = guarded(|| simulated.run(&config, &mut source, &mut progress))?;
        Ok(Measured::of(&record, &device.plan, device.span_s))
    }
}

/// The requests of a volume for a run.
struct VolumeSource<'a>(VolumeReader<'a>);

impl Source for VolumeSource<'_> {
    fn next(&mut self) -> Result<Option<Request>, TraceError> {
        self.0.next()
    }

    fn rewind(&mut self) -> Result<(), TraceError> {
        self.0.rewind();
        Ok(())
    }

    fn place(&self) -> u64 {
        self.0.taken()
    }

    fn position(&self, place: u64) -> String {
        format!("volume {}, request {place}", self.0.volume().name)
    }
}
