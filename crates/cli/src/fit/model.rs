//! Write amplification of each candidate under each workload, by its spare space: simulated at a few ratios of flash to
//! data, and interpolated between them.

use std::ops::Range;

use floatgate_catalog::Scheme;
use floatgate_core::options::Value;
use floatgate_core::{Lpn, Start};
use floatgate_sim::analytic::usable_pages;
use floatgate_sim::config::{Device, Host, RunConfig};
use floatgate_sim::driven::Ask;
use floatgate_sim::host::Kind;
use floatgate_sim::part::part;

use super::{Candidate, Workload};
use crate::commands::parallel;
use crate::config::sizing::{Failure, guarded};
use crate::errors::{Outcome, Problem};

/// The scheme whose rules are fitted.
pub const SCHEME: &str = "page";
/// Erased blocks that it keeps.
pub const RESERVE: u32 = 2;
/// The last part of a run is measured: one of so many.
const PARTS: usize = 4;
/// Steps between simulated ratios, of the logarithm of the spare space.
const STEP: f64 = 0.35;
/// A write amplification nearer to 1 is not told from it.
const LEAST_EXCESS: f64 = 1e-5;
/// Of the writes.
const SEED: u64 = 1;
/// Requests played at a time.
const BATCH: usize = 4096;

/// The device that stands for the drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    /// Blocks that the data fill.
    pub blocks: u32,
    /// Pages of a block.
    pub pages: u32,
}

impl Size {
    /// Pages of the data.
    pub fn space(&self) -> u32 {
        self.blocks * self.pages
    }

    /// Blocks of a device of which so many times the data can be used, what is kept erased included.
    pub fn blocks_for(&self, ratio: f64) -> u32 {
        let usable = ratio * f64::from(self.blocks);
        (usable - 0.5).round() as u32 + RESERVE
    }

    /// Flash that can be used over data, of a device of so many blocks.
    fn ratio_of(&self, blocks: u32) -> f64 {
        usable_pages(blocks, RESERVE, self.pages) / f64::from(self.space())
    }
}

/// What is simulated: the scheme, on a device of this size, over these writes.
#[derive(Clone, Copy, Debug)]
pub struct Laboratory<'a> {
    /// `page`.
    pub scheme: &'a Scheme,
    /// Of the device.
    pub size: Size,
    /// Bytes written to the drive in each run, in sizes of the data. What is slow to settle is as far as on the drive then.
    pub rounds: u32,
}

/// A workload's writes for a device of the laboratory's size.
#[derive(Clone, Debug)]
pub struct Writes {
    /// Whose.
    pub workload: Workload,
    pages: Vec<u32>,
}

impl<'a> Laboratory<'a> {
    /// With the scheme of the fit out of these.
    ///
    /// # Errors
    /// If it is not there.
    pub fn new(schemes: &'a [Scheme], size: Size, rounds: u32) -> Outcome<Self> {
        let scheme = schemes.iter().find(|scheme| scheme.info.key == SCHEME);
        let scheme = scheme.ok_or_else(|| Problem::bug(format!("no scheme {SCHEME}")))?;
        Ok(Self {
            scheme,
            size,
            rounds,
        })
    }

    /// The writes of a workload, which all candidates get.
    ///
    /// # Errors
    /// If the device is too small for it.
    pub fn writes(&self, workload: Workload) -> Outcome<Writes> {
        let space = self.size.space();
        let count = u64::from(space) * u64::from(self.rounds);
        let pages = workload.pages(space, count as usize, SEED);
        let pages = pages.map_err(|text| Problem::new(text).help("more --blocks"))?;
        Ok(Writes { workload, pages })
    }

    fn config(&self, candidate: &Candidate, blocks: u32) -> Outcome<RunConfig> {
        let part = part("slc_large_block").ok_or_else(|| Problem::bug("a preset is gone"))?;
        let mut part = part.clone();
        part.pages_per_block = self.size.pages;
        let mut options = candidate.options();
        options.push(("gc_low".into(), Value::Int(RESERVE.into())));
        Ok(RunConfig {
            device: Device::one_die_a_channel(part, 1, blocks, self.size.space().into()),
            start: Start::Full,
            ageing: Vec::new(),
            host: Host::default(),
            scheme: SCHEME.into(),
            options,
        })
    }

    /// Steady write amplification of a candidate with that ratio of flash to data; and the ratio that a device of whole
    /// blocks has in its place.
    ///
    /// # Errors
    /// A bug of the scheme, or a refusal.
    pub fn simulate(
        &self,
        candidate: &Candidate,
        writes: &Writes,
        ratio: f64,
    ) -> Outcome<(f64, f64)> {
        let blocks = self.size.blocks_for(ratio);
        let config = self.config(candidate, blocks)?;
        let amplification = guarded(|| {
            let mut device = self.scheme.life.simulated.drive(&config)?;
            let (settling, measured) = writes
                .pages
                .split_at(writes.pages.len() - writes.pages.len() / PARTS);
            play(&mut *device, settling);
            let before = device.done();
            play(&mut *device, measured);
            let done = device.done() - before;
            Ok(done.programs as f64 / done.host_writes as f64)
        });
        let amplification = amplification.map_err(|failure| match failure {
            Failure::Refused(refusal) => Problem::new(refusal.message),
            Failure::Trace(text) | Failure::Bug(text) => Problem::bug(text),
        })?;
        Ok((self.size.ratio_of(blocks), amplification))
    }
}

fn play(device: &mut dyn floatgate_sim::driven::Driven, pages: &[u32]) {
    let mut asks = Vec::with_capacity(BATCH);
    for some in pages.chunks(BATCH) {
        asks.clear();
        asks.extend(some.iter().map(|&page| Ask {
            kind: Kind::Write,
            first: Lpn(page),
            pages: 1,
        }));
        device.play(&asks);
    }
}

/// Write amplification over the ratio of flash to data: the logarithms of what both are above 1, which are nearly a line.
#[derive(Clone, Debug)]
pub struct Curve {
    nodes: Vec<(f64, f64)>,
}

impl Curve {
    /// Through simulated ratios, ascending, and their write amplifications.
    pub fn new(simulated: impl IntoIterator<Item = (f64, f64)>) -> Self {
        let node = |(ratio, amplification): (f64, f64)| {
            (
                (ratio - 1.0).ln(),
                (amplification - 1.0).max(LEAST_EXCESS).ln(),
            )
        };
        Self {
            nodes: simulated.into_iter().map(node).collect(),
        }
    }

    /// Its value at a ratio: by the cubic through the four nodes around it.
    pub fn at(&self, ratio: f64) -> f64 {
        let x = (ratio - 1.0).max(1e-9).ln();
        let above = self.nodes.partition_point(|&(node, _)| node < x);
        let used = self.nodes.len().min(4);
        let first = above.saturating_sub(2).min(self.nodes.len() - used);
        let nodes = &self.nodes[first..first + used];
        let mut value = 0.0;
        for (i, &(at, y)) in nodes.iter().enumerate() {
            let others = nodes.iter().enumerate().filter(|&(j, _)| j != i);
            value += y * others
                .map(|(_, &(other, _))| (x - other) / (at - other))
                .product::<f64>();
        }
        1.0 + value.exp()
    }
}

/// The curves of some candidates under some workloads.
#[derive(Debug)]
pub struct Model {
    /// Of the simulated device.
    pub size: Size,
    /// Whose they are.
    pub candidates: Vec<Candidate>,
    workloads: Vec<Workload>,
    /// By candidate, then by workload.
    curves: Vec<Curve>,
}

/// The ratios to simulate within a range: at its ends, and so that steps between them are even.
fn ratios(range: &Range<f64>) -> Vec<f64> {
    let (low, high) = ((range.start - 1.0).ln(), (range.end - 1.0).ln());
    let steps = ((high - low) / STEP).ceil().max(3.0) as u32;
    let at = |i: u32| low + (high - low) * f64::from(i) / f64::from(steps);
    (0..=steps).map(|i| 1.0 + at(i).exp()).collect()
}

/// How many simulations a model takes.
pub fn simulations(candidates: usize, asked: &[(Workload, Range<f64>)]) -> u64 {
    let nodes: usize = asked.iter().map(|(_, range)| ratios(range).len()).sum();
    (candidates * nodes) as u64
}

impl Model {
    /// Simulates candidates under workloads, each within a range of ratios. `done` is called after each simulation.
    ///
    /// # Errors
    /// That of the first simulation that cannot be.
    pub fn simulated(
        laboratory: &Laboratory<'_>,
        candidates: &[Candidate],
        asked: &[(Workload, Range<f64>)],
        workers: usize,
        done: &(impl Fn() + Sync),
    ) -> Outcome<Self> {
        let writes = asked
            .iter()
            .map(|(workload, _)| laboratory.writes(*workload));
        let writes: Vec<Writes> = writes.collect::<Outcome<_>>()?;
        let ratios: Vec<Vec<f64>> = asked.iter().map(|(_, range)| ratios(range)).collect();
        let mut tasks = Vec::new();
        for candidate in candidates {
            for (workload, ratios) in ratios.iter().enumerate() {
                tasks.extend(ratios.iter().map(|&ratio| (candidate, workload, ratio)));
            }
        }
        // The less spare space, the more there is to move.
        let cost = |task: usize| (1e6 / (tasks[task].2 - 1.0)) as u64;
        let simulated = parallel::all(tasks.len(), workers, cost, |task| {
            let (candidate, workload, ratio) = tasks[task];
            let point = laboratory.simulate(candidate, &writes[workload], ratio);
            done();
            point
        });
        let mut points = simulated.into_iter();
        let mut curves = Vec::new();
        for ratios in candidates.iter().flat_map(|_| &ratios) {
            let nodes: Vec<_> = points.by_ref().take(ratios.len()).collect::<Outcome<_>>()?;
            curves.push(Curve::new(nodes));
        }
        Ok(Self {
            size: laboratory.size,
            candidates: candidates.to_vec(),
            workloads: asked.iter().map(|(workload, _)| *workload).collect(),
            curves,
        })
    }

    /// Of curves that are known: for tests.
    #[cfg(test)]
    pub fn known(candidates: &[Candidate], workloads: &[Workload], curves: Vec<Curve>) -> Self {
        Self {
            size: Size {
                blocks: 800,
                pages: 64,
            },
            candidates: candidates.to_vec(),
            workloads: workloads.to_vec(),
            curves,
        }
    }

    /// The curve of a candidate, by its place, under a workload.
    pub fn curve(&self, candidate: usize, workload: Workload) -> Option<&Curve> {
        let place = self.workloads.iter().position(|known| *known == workload)?;
        self.curves.get(candidate * self.workloads.len() + place)
    }
}

#[cfg(test)]
mod tests {
    use super::super::CANDIDATES;
    use super::*;
    use floatgate_sim::analytic::{fifo, greedy};

    #[test]
    fn curves_are_those_of_the_closed_formulas() {
        let schemes = floatgate_catalog::catalog();
        let size = Size {
            blocks: 300,
            pages: 64,
        };
        let laboratory = Laboratory::new(&schemes, size, 4).unwrap();
        let chosen = [CANDIDATES[0], CANDIDATES[2]];
        let asked = [(Workload::Uniform, 1.08..2.5)];
        let model = Model::simulated(&laboratory, &chosen, &asked, 2, &|| ()).unwrap();
        for ratio in [1.1, 1.17, 1.33, 1.6, 2.1] {
            let of = |i| model.curve(i, Workload::Uniform).unwrap().at(ratio);
            for (ours, formula) in [(of(0), greedy(ratio, 64)), (of(1), fifo(ratio))] {
                assert!(
                    (ours / formula - 1.0).abs() < 0.012,
                    "{ratio}: {ours} for {formula}"
                );
            }
        }
        assert!(model.curve(0, Workload::Zipf { theta: 0.8 }).is_none());
    }

    #[test]
    fn a_curve_goes_through_its_nodes() {
        let line = |ratio: f64| 1.0 + 0.5 * (ratio - 1.0_f64).powf(-1.2);
        let curve = Curve::new([1.05, 1.1, 1.2, 1.4, 1.8].map(|ratio| (ratio, line(ratio))));
        for ratio in [1.04, 1.05, 1.07, 1.33, 1.8, 2.0] {
            assert!(
                (curve.at(ratio) / line(ratio) - 1.0).abs() < 1e-9,
                "{ratio}"
            );
        }
    }
}
