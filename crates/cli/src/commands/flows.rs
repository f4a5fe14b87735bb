//! The flows of `floatgate run`: their traces opened, what device they need, and each of them alone.

use std::path::Path;
use std::rc::Rc;

use floatgate_catalog::Scheme;
use floatgate_sim::config::RunConfig;
use floatgate_sim::flows::{Flow, FlowConfig, Flows, Link};
use floatgate_sim::record::Record;
use floatgate_sim::run::{Besides, Decoded, Progress, RunError};
use floatgate_sim::streamed::Streamed;
use floatgate_trace::Counts;

use super::study::{Scan, Study};
use crate::args::{ColumnsArgs, RunArgs};
use crate::config::Settings;
use crate::config::flows::Given;
use crate::config::sizing::Extent;
use crate::errors::{Outcome, Place, Problem};
use crate::states::DeviceFiles;
use crate::traces::{About, Choice};

/// Requests read at a time.
const BATCH: usize = 1 << 16;

/// Flows with their traces.
pub struct Traffic {
    link: Link,
    each: Vec<(FlowConfig, Rc<Choice>)>,
}

impl Traffic {
    /// What the settings say of the reading of a trace counts for all of them.
    fn of(given: Given, columns: &ColumnsArgs, settings: &Settings) -> Outcome<Self> {
        let mut each = Vec::new();
        for (config, flow) in given.each {
            let place = flow.place("flow.trace");
            let trace = flow.text("flow.trace").unwrap_or_default();
            let file = Choice::beside(trace, &place);
            let mut choice = Choice::of(&[file], columns, settings)?;
            choice.keep_streams()?;
            each.push((config, Rc::new(choice)));
        }
        Ok(Self {
            link: given.link,
            each,
        })
    }

    /// The flows that are asked for, with their traces.
    ///
    /// # Errors
    /// If a trace stands beside them or cannot be read the way that is asked for, or something is asked of flows and there
    /// are none.
    pub fn asked(
        flows: Option<Given>,
        args: &RunArgs,
        settings: &Settings,
    ) -> Outcome<Option<Self>> {
        let Some(flows) = flows else {
            return match args.alone {
                true => Err(Problem::new("--alone is about flows")
                    .help("name flows with --flow or [[flow]] (docs/hosts.md), or leave it out")),
                false => Ok(None),
            };
        };
        check_no_trace(&args.setup.trace, settings)?;
        Self::of(flows, &args.setup.columns, settings).map(Some)
    }

    /// The files that are read, as far as they are files.
    pub fn paths(&self) -> impl Iterator<Item = &Path> {
        self.each.iter().flat_map(|(_, choice)| choice.paths())
    }

    /// Reads every trace once: what device all of them need, and what they are. `read` is called now and then meanwhile.
    ///
    /// # Errors
    /// If one cannot be read.
    pub fn scan(&self, study: &Study, read: &mut dyn FnMut()) -> Outcome<(Scan, About)> {
        let page_bytes = study.plan.device.part.page_bytes;
        let mut scan = Scan::new(&study.plan, &study.settings);
        let mut abouts = Vec::new();
        let mut pages = 1;
        for (flow, choice) in &self.each {
            let mut extent = Extent::new(&study.plan.host, page_bytes);
            let mut reader = choice.open().map_err(|error| choice.problem(error))?;
            let mut batch = Vec::with_capacity(BATCH);
            while reader.next_batch(&mut batch, BATCH)? > 0 {
                batch.iter().for_each(|request| extent.add(request));
                scan.add(&batch);
                batch.clear();
                read();
            }
            let own = extent.bytes().div_ceil(page_bytes.into()).max(1);
            pages = flow.device_pages(own).max(pages);
            abouts.push(About::of(choice, &reader));
        }
        scan.extent = Extent::known(pages * u64::from(page_bytes));
        Ok((scan, About::all(&abouts)))
    }

    /// The flows from their first request on; only one of them, if that is asked for.
    ///
    /// # Errors
    /// If a trace cannot be opened.
    pub fn open(&self, only: Option<usize>) -> Result<Flows, RunError> {
        let wanted = self.each.iter().enumerate();
        let wanted = wanted.filter(|(i, _)| only.is_none_or(|only| only == *i));
        let opened = wanted.map(|(_, (config, choice))| {
            let choice = choice.clone();
            Ok(Flow {
                config: config.clone(),
                source: Box::new(Streamed::new(move || choice.open())?),
            })
        });
        Ok(Flows {
            link: self.link,
            flows: opened.collect::<Result<_, RunError>>()?,
        })
    }

    /// Runs each flow without the others on a device of its own, and takes into the record what that tells.
    ///
    /// # Errors
    /// As the run itself.
    pub fn alone(
        &self,
        record: &mut Record,
        scheme: &Scheme,
        device: DeviceFiles<'_>,
        config: &RunConfig,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<(), RunError> {
        let device = DeviceFiles {
            save: None,
            ..device
        };
        let mut alone = Vec::new();
        for flow in 0..self.each.len() {
            let mut flows = self.open(Some(flow))?;
            let besides = Besides {
                flows: Some(&mut flows),
                ..Besides::default()
            };
            let none = &mut Decoded::new(&[]);
            let one = device.run(scheme, config, none, progress, besides)?;
            alone.extend(one.flows);
        }
        if let Some(flows) = &mut record.flows {
            flows.compare(&alone);
        }
        Ok(())
    }
}

/// Refuses a trace beside the flows.
fn check_no_trace(trace: &[String], settings: &Settings) -> Outcome<()> {
    let place = match trace.first() {
        Some(trace) => Place::Argument(format!("--trace {trace}")),
        None if settings.get("trace.file").is_some() => settings.place("trace.file"),
        None => return Ok(()),
    };
    Err(Problem::new("there is a trace beside the flows")
        .at(&place)
        .help("make it a flow of its own, or leave it out"))
}

impl About {
    /// Of several traces.
    fn all(abouts: &[Self]) -> Self {
        let names: Vec<&str> = abouts.iter().map(|about| &*about.name).collect();
        let mut formats: Vec<&str> = abouts.iter().map(|about| &*about.format).collect();
        formats.dedup();
        let mut counts = Counts::default();
        for of in abouts.iter().map(|about| about.counts) {
            counts.accepted += of.accepted;
            counts.skipped += of.skipped;
            counts.empty += of.empty;
            counts.filtered += of.filtered;
            counts.backwards += of.backwards;
            counts.clamped += of.clamped;
            counts.clamped_ns = counts.clamped_ns.max(of.clamped_ns);
        }
        Self {
            name: names.join(", "),
            format: formats.join(", "),
            counts,
        }
    }
}
