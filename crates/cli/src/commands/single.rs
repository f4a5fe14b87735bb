//! One scheme on one trace, from its arguments to its document, whoever asks for it: `floatgate run`, or a program.

use std::path::Path;

use floatgate_catalog::Scheme;
use floatgate_sim::config::RunConfig;
use floatgate_sim::flows::Flows;
use floatgate_sim::record::{self, Document, Record};
use floatgate_sim::run::{Besides, Decoded, Progress, RunError, Source};
use floatgate_sim::streamed::Streamed;

use super::flows::Traffic;
use super::study::{REPORT_FLAG, Scan, Study, check_outputs, document, problem};
use super::variant::Variant;
use crate::args::RunArgs;
use crate::config::Settings;
use crate::config::flows;
use crate::config::sizing::{Failure, guarded, size, try_out};
use crate::errors::{Outcome, Place};
use crate::memory;
use crate::notes::{self, Seen};
use crate::states::{DeviceFiles, SAVE_FLAG, Saved};
use crate::table::bytes;
use crate::traces::{About, Frame};

/// Requests read at a time.
const BATCH: usize = 1 << 16;
/// The scheme of a run that names none.
const DEFAULT_SCHEME: &str = "page";

/// A run whose settings are right one by one. Its trace has not been opened yet.
pub struct Single<'a> {
    args: &'a RunArgs,
    schemes: &'a [Scheme],
    saved: Option<Saved>,
    study: Study,
    /// The flows that are played in place of the trace, if it is several.
    traffic: Option<Traffic>,
    variant: Variant<'a>,
}

impl<'a> Single<'a> {
    /// Reads and checks the settings, and whether the files can be written that are asked for.
    ///
    /// # Errors
    /// Points at what is wrong.
    pub fn new(args: &'a RunArgs, schemes: &'a [Scheme]) -> Outcome<Self> {
        let saved = args.load_state.as_deref().map(Saved::read).transpose()?;
        let setup = &args.setup;
        let given = Settings::load(setup.config.as_deref(), &setup.sets(), schemes)?;
        let mut settings = match &saved {
            Some(saved) => saved.settings(schemes)?.under(given),
            None => given,
        };
        let flows = flows::taken(&mut settings, &args.flow, schemes)?;
        let study = Study::made(settings, setup, &setup.trace)?;
        let traffic = Traffic::asked(flows, args, &study.settings)?;
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
        study.settings.check_options(&[variant.scheme])?;
        let outputs = [
            (REPORT_FLAG, args.setup.report.as_deref()),
            ("--requests-out", args.requests_out.as_deref()),
            ("--series-out", args.series_out.as_deref()),
            ("--blocks-out", args.blocks_out.as_deref()),
            ("--timeline", args.timeline.as_deref()),
            (SAVE_FLAG, args.save_state.as_deref()),
        ];
        let read = study.choice.paths().chain(setup.config.as_deref());
        let read = read.chain(saved.iter().map(Saved::path));
        let of_flows = traffic.iter().flat_map(Traffic::paths);
        check_outputs(&outputs, read.chain(of_flows))?;
        Ok(Self {
            args,
            schemes,
            saved,
            study,
            traffic,
            variant,
        })
    }

    /// Whether several flows are played in place of a trace.
    pub fn has_flows(&self) -> bool {
        self.traffic.is_some()
    }

    /// What is called `name` is no file but these requests.
    pub fn supply(&mut self, name: &str, frame: Frame) {
        self.study.choice.supply(name, frame);
    }

    /// Reads the trace once: whatever is wrong with it shows before the run, and the device can be sized. `read` is called
    /// now and then meanwhile.
    ///
    /// # Errors
    /// Points at what is wrong with trace, device or scheme.
    pub fn ready(mut self, read: &mut dyn FnMut()) -> Outcome<Ready<'a>> {
        self.study.choice.keep_streams()?;
        let (scan, about) = match &self.traffic {
            Some(traffic) => traffic.scan(&self.study, read)?,
            None => scan(&self.study, read)?,
        };
        let Self {
            args,
            schemes,
            saved,
            mut study,
            traffic,
            variant,
        } = self;
        size(
            &mut study.plan,
            &study.settings,
            &scan.extent,
            schemes,
            &[variant.named()],
        )?;
        let config = variant.run_on(&study.plan);
        if let Some(saved) = &saved {
            saved.check(&config, &variant.settings, variant.scheme, schemes)?;
        }
        let refused = |refusal| problem(&variant, Failure::Refused(refusal));
        let simulated = &variant.scheme.life.simulated;
        let need = simulated.memory_bytes(&config).map_err(refused)?;
        Ok(Ready {
            save: args.save_state.as_deref(),
            alone: args.alone,
            seen: scan.seen(&study.plan),
            saved,
            study,
            traffic,
            variant,
            config,
            about,
            need,
        })
    }
}

/// A run whose device is sized and whose trace was read once.
pub struct Ready<'a> {
    save: Option<&'a Path>,
    /// Whether each flow is played without the others too.
    alone: bool,
    saved: Option<Saved>,
    study: Study,
    traffic: Option<Traffic>,
    variant: Variant<'a>,
    config: RunConfig,
    about: About,
    seen: Seen,
    /// Bytes that the run takes.
    need: u64,
}

impl Ready<'_> {
    /// What is going to run.
    pub fn config(&self) -> &RunConfig {
        &self.config
    }

    /// Requests that are played.
    pub fn requests(&self) -> u64 {
        self.about.counts.accepted * if self.alone { 2 } else { 1 }
    }

    /// Trace, device and memory in words.
    pub fn told(&self) -> [String; 3] {
        [
            format!("Trace:  {}", self.about.describe()),
            format!("Device: {}", self.study.plan.describe()),
            format!("Memory: about {}", bytes(self.need as f64)),
        ]
    }

    /// Plays the trace. `run` gets what the device comes from and goes to, and the requests: of a source, or of flows.
    ///
    /// # Errors
    /// If there is too little memory, the device is refused, or the run fails.
    pub fn play<T>(
        &self,
        run: impl FnOnce(
            &Scheme,
            DeviceFiles<'_>,
            &mut dyn Source,
            Option<&mut Flows>,
        ) -> Result<T, RunError>,
    ) -> Outcome<T> {
        memory::check(self.need, memory::available(), "the run")?;
        let scheme = self.variant.scheme;
        try_out(scheme, &self.config).map_err(|failure| problem(&self.variant, failure))?;
        let device = self.device();
        self.guard(|| {
            if let Some(traffic) = &self.traffic {
                let mut flows = traffic.open(None)?;
                return run(scheme, device, &mut Decoded::new(&[]), Some(&mut flows));
            }
            let choice = self.study.choice.clone();
            let mut source = Streamed::new(move || choice.open())?;
            run(scheme, device, &mut source, None)
        })
    }

    fn device(&self) -> DeviceFiles<'_> {
        DeviceFiles {
            plan: &self.study.plan,
            load: self.saved.as_ref(),
            save: self.save,
        }
    }

    fn guard<T>(&self, run: impl FnOnce() -> Result<T, RunError>) -> Outcome<T> {
        let failed = |failure| problem(&self.variant, self.device().blame(failure));
        guarded(run).map_err(failed)
    }

    /// Plays each flow without the others too, if that is asked for, and takes into the record what that tells.
    ///
    /// # Errors
    /// As [`Ready::play`].
    pub fn compare_alone(
        &self,
        record: &mut Record,
        progress: &mut dyn FnMut(Progress),
    ) -> Outcome<()> {
        let Some(traffic) = self.traffic.as_ref().filter(|_| self.alone) else {
            return Ok(());
        };
        let scheme = self.variant.scheme;
        self.guard(|| traffic.alone(record, scheme, self.device(), &self.config, progress))
    }

    /// Plays the trace and gives the record.
    ///
    /// # Errors
    /// As [`Ready::play`].
    pub fn record(
        &self,
        besides: Besides<'_>,
        progress: &mut dyn FnMut(Progress),
    ) -> Outcome<Record> {
        let mut record = self.play(|scheme, device, source, flows| {
            let besides = Besides {
                rows: besides.rows.map(|rows| rows as _),
                operations: besides.operations.map(|take| take as _),
                blocks: besides.blocks,
                flows,
                ..Besides::default()
            };
            device.run(scheme, &self.config, source, progress, besides)
        })?;
        self.compare_alone(&mut record, progress)?;
        Ok(record)
    }

    /// Everything of the run in one value.
    pub fn document(&self, mut record: Record) -> Document {
        let (study, plan) = (&self.study, &self.study.plan);
        record.scheme.clone_from(&self.variant.label);
        record.time.arrivals_s = Some(self.seen.span_s);
        if self.traffic.is_none() {
            record.time.behind_s = notes::behind_s(&record, plan, self.seen.span_s);
        }
        let notes = notes::of(&[&record], plan, &study.settings, &self.seen);
        let results = vec![record::Outcome::Record(Box::new(record))];
        document(&self.about, plan, results, notes)
    }
}

fn scan(study: &Study, read: &mut dyn FnMut()) -> Outcome<(Scan, About)> {
    let mut scan = Scan::new(&study.plan, &study.settings);
    let choice = &study.choice;
    let mut reader = choice.open().map_err(|error| choice.problem(error))?;
    let mut batch = Vec::with_capacity(BATCH);
    while reader.next_batch(&mut batch, BATCH)? > 0 {
        scan.add(&batch);
        batch.clear();
        read();
    }
    Ok((scan, About::of(&study.choice, &reader)))
}
