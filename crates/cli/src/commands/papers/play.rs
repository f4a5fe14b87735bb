//! The runs behind an item: each study is a sweep, and of each record only the item's figures are kept.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Instant;

use floatgate_catalog::Scheme;
use floatgate_core::Start;
use floatgate_sim::config::{Host, RunConfig};
use floatgate_sim::record::recovery::RecoveryRow;
use floatgate_sim::record::{self, Reason};
use floatgate_sim::recovery::time_ns;
use floatgate_trace::stats::{Stats, StatsOptions};
use serde_json::{Value, json};

use super::formula::Formula;
use super::item::{Exact, Item, Study};
use crate::args::{ColumnsArgs, Setup};
use crate::commands::compare::chosen;
use crate::commands::parallel;
use crate::commands::sweep::cases::{self, Scans};
use crate::commands::sweep::devices;
use crate::commands::sweep::journal::Journal;
use crate::commands::sweep::play::{self, Stage};
use crate::commands::variant::Variant;
use crate::config::Settings;
use crate::config::resolve::Plan;
use crate::config::sizing;
use crate::config::vary;
use crate::errors::{Outcome, Place, Problem};
use crate::traces::Decoded;

/// What all runs share.
pub struct Bench<'a> {
    /// All schemes.
    pub schemes: &'a [Scheme],
    /// Whether the full form runs.
    pub is_full: bool,
    /// Runs at a time, if given.
    pub jobs: Option<u32>,
    /// Where the journals lie, and whether to begin anew.
    pub journals: Option<(PathBuf, bool)>,
    /// Traces that were decoded, by what tells them from others.
    pub traces: HashMap<String, Decoded>,
    /// What came of runs on bundled traces, by the names of their cells: several figures of a paper are of one run.
    pub played: HashMap<String, Rc<record::Outcome>>,
}

/// A run of a study, by what was varied.
#[derive(Clone, Debug)]
pub struct Run {
    /// The study's place in the item.
    pub study: usize,
    /// The scheme's label.
    pub scheme: String,
    /// The varied keys and their values.
    pub varied: BTreeMap<String, String>,
    /// The item's figures.
    pub figures: BTreeMap<String, Option<f64>>,
}

/// Everything that ran for an item.
#[derive(Default)]
pub struct Runs {
    /// The runs, study by study.
    pub runs: Vec<Run>,
    /// The values of each varied key, in order.
    pub axes: BTreeMap<String, Vec<String>>,
    /// Commands that give the runs of a study.
    pub commands: Vec<String>,
    /// Runs without a record, and why.
    pub failed: Vec<String>,
    /// The journals, to be removed when all is done.
    pub journals: Vec<Journal>,
    /// Time of all of it.
    pub seconds: f64,
}

/// A study as it runs in one of the forms.
#[derive(Clone)]
struct Asked {
    traces: Vec<String>,
    set: Vec<String>,
    vary: Vec<String>,
    /// Which seed it is of, if each seed runs by itself.
    seed: Option<usize>,
}

impl Bench<'_> {
    /// Runs all studies of an item.
    ///
    /// # Errors
    /// If something is wrong with the item itself. A run that fails is told in the result.
    pub fn play(&mut self, key: &str, item: &Item) -> Outcome<Runs> {
        let begin = Instant::now();
        let in_item = |text: String| Problem::new(format!("{key}.toml: {text}"));
        let formulas = item.figure.iter().map(|(name, text)| {
            let formula = Formula::parse(text).map_err(in_item)?;
            Ok((name.clone(), formula))
        });
        let formulas: Vec<(String, Formula)> = formulas.collect::<Outcome<_>>()?;
        let mut all = Runs::default();
        for (i, study) in item.study.iter().enumerate() {
            if study.quick.skip && !self.is_full {
                continue;
            }
            for asked in by_seed(asked(item, study, self.is_full), study.zip) {
                self.study(key, item, i, asked, &formulas, &mut all)?;
            }
        }
        // Bundled traces serve other items too; generated ones would fill the memory.
        self.traces.retain(|name, _| is_shared(name));
        all.seconds = begin.elapsed().as_secs_f64();
        Ok(all)
    }

    fn study(
        &mut self,
        key: &str,
        item: &Item,
        place: usize,
        asked: Asked,
        formulas: &[(String, Formula)],
        all: &mut Runs,
    ) -> Outcome<()> {
        let study = &item.study[place];
        all.commands.push(command(study, &asked));
        let mut varied = asked.vary.clone();
        if asked.traces.len() > 1 {
            varied.push(format!("trace={}", asked.traces.join(",")));
        }
        let (settings, axes) = vary::load(None, &asked.set, &varied, study.zip, self.schemes)?;
        let setup = Setup {
            config: None,
            trace: match &asked.traces[..] {
                [one] => vec![one.clone()],
                _ => Vec::new(),
            },
            columns: ColumnsArgs::default(),
            set: asked.set.clone(),
            stream_by: None,
            json: false,
            report: None,
        };
        let (variants, _) = chosen(&study.schemes, &settings, self.schemes)?;
        let (mut cases, choices) = cases::of(&axes, study.zip, &settings, &setup, self.schemes)?;
        let mut traces = Vec::new();
        let mut identities = Vec::new();
        for choice in &choices {
            let identity = choice.identity();
            if !self.traces.contains_key(&identity) {
                self.traces
                    .insert(identity.clone(), choice.decode(&mut || {})?);
            }
            traces.push(self.traces[&identity].clone());
            identities.push(identity);
        }
        let scans = Scans::of(&cases, &traces);
        devices::size(&mut cases, &scans, self.schemes, &variants);
        let cells = play::cells(&cases, &variants, &identities, &play::program())?;
        let (known, new): (Vec<_>, Vec<_>) = cells
            .into_iter()
            .partition(|cell| self.played.contains_key(cell.key()));
        let stage = Stage {
            cells: &new,
            traces: &traces,
            scans: &scans,
            keep_records: true,
        };
        let seed = asked.seed.map_or(String::new(), |seed| format!("-{seed}"));
        let name = file_name(&format!("{key}-{}{seed}", study.name));
        let path = self.journals.as_ref().map(|(base, fresh)| {
            let mut path = base.clone().into_os_string();
            path.push(format!(".{name}"));
            (PathBuf::from(path), *fresh)
        });
        let out = path.as_ref().map(|(path, fresh)| (Path::new(path), *fresh));
        let workers = parallel::workers(self.jobs, &settings, new.len());
        let played = match new.is_empty() {
            true => Vec::new(),
            false => {
                let (played, journal) = stage.play(out, workers)?;
                all.journals.extend(journal);
                played
            }
        };
        let known = known.into_iter().map(|cell| {
            let result = self.played[cell.key()].clone();
            (cell, Some(result))
        });
        let known: Vec<_> = known.collect();
        let mut results = Vec::new();
        for (cell, played) in new.into_iter().zip(played) {
            let result = played.result.map(Rc::new);
            if let Some(result) = &result
                && is_shared(&identities[cell.case.trace])
            {
                self.played.insert(cell.key().into(), result.clone());
            }
            results.push((cell, result));
        }
        results.extend(known);
        for axis in &axes {
            let known = all.axes.entry(axis.key.clone()).or_default();
            for value in (0..axis.count()).map(|i| axis.value(i).to_string()) {
                if !known.contains(&value) {
                    known.push(value);
                }
            }
        }
        let statistics: Vec<Value> = match formulas.iter().any(|(_, f)| f.is_of_workload()) {
            true => traces
                .iter()
                .map(|trace| statistics(trace, &settings))
                .collect(),
            false => Vec::new(),
        };
        for (cell, result) in &results {
            let mut varied: BTreeMap<String, String> = cell
                .case
                .varied(&axes)
                .iter()
                .map(|(key, value)| (key.clone(), value.to_string()))
                .collect();
            if asked.seed.is_some() {
                varied.insert("trace".into(), asked.traces[0].clone());
            }
            let label = &cell.variant.label;
            let record = match result.as_deref() {
                Some(record::Outcome::Record(record)) => record,
                Some(record::Outcome::Failed(failed)) => {
                    let reason = match &failed.reason {
                        Reason::Bug(text) => return Err(Problem::bug(format!("{label}: {text}"))),
                        Reason::Refused(text) | Reason::Failed(text) => text,
                    };
                    all.failed
                        .push(format!("{} {label} {varied:?}: {reason}", study.name));
                    continue;
                }
                None => return Err(Problem::bug("a run without a result")),
            };
            let mut record = serde_json::to_value(record).unwrap_or_default();
            if let Some(statistics) = statistics.get(cell.case.trace) {
                record["workload"] = statistics.clone();
            }
            let figures = formulas.iter().map(|(name, formula)| {
                let value = formula
                    .value(&record)
                    .map_err(|text| Problem::new(format!("{key}.toml, figure {name}: {text}")))?;
                Ok((name.clone(), value))
            });
            all.runs.push(Run {
                study: place,
                scheme: label.clone(),
                varied,
                figures: figures.collect::<Outcome<_>>()?,
            });
        }
        Ok(())
    }

    /// A number that needs no run.
    ///
    /// # Errors
    /// If something is wrong with the item itself.
    pub fn exact(&self, key: &str, item: &Item, exact: &Exact) -> Outcome<Option<f64>> {
        let mut settings = Settings::default();
        for set in merged(&item.set, &exact.set) {
            settings.add_argument(&set, self.schemes)?;
        }
        let variant = Variant::parse(&exact.scheme, &Place::Default, &settings, self.schemes)?;
        let mut plan = Plan::of(&variant.settings)?;
        sizing::capacity(&mut plan, &variant.settings, 0)?;
        if plan.blocks_from_share {
            let data = plan.data_blocks_per_die();
            let spare = (data as f64 * plan.spare_percent / 100.0).ceil() as u64;
            plan.device.blocks = u32::try_from(data + spare).unwrap_or(u32::MAX);
        }
        let config = RunConfig {
            start: Start::Full,
            host: Host::default(),
            ..variant.run_on(&plan)
        };
        let in_item = |text: String| Problem::new(format!("{key}.toml: {}: {text}", exact.text));
        let refused = |refusal: floatgate_core::Refusal| in_item(refusal.to_string());
        let simulated = &variant.scheme.life.simulated;
        let tables = simulated.tables(&config).map_err(refused)?;
        let machine = plan.device.machine();
        let costs = simulated.recovery_costs(&config).map_err(refused)?;
        let recovery: Vec<RecoveryRow> = costs
            .iter()
            .map(|cost| {
                RecoveryRow::of(&variant.label, String::new(), cost, time_ns(&machine, cost))
            })
            .collect();
        let all = json!({"tables": tables, "recovery": recovery, "device": {
            "blocks": plan.device.blocks, "dies": plan.device.dies, "logical_pages": plan.device.logical_pages,
            "page_bytes": plan.device.part.page_bytes, "pages_per_block": plan.device.part.pages_per_block,
        }});
        let formula = Formula::parse(&exact.value).map_err(in_item)?;
        formula.value(&all).map_err(in_item)
    }
}

/// A name in words, as a part of a file's name.
fn file_name(words: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "-_.".contains(c);
    words.replace(|c: char| !is_plain(c), "-")
}

/// Whether a trace is one of those that several items take.
fn is_shared(identity: &str) -> bool {
    identity.contains("\"bundled ")
}

/// What `floatgate trace info` tells of a trace, in pages of the device.
fn statistics(trace: &Decoded, settings: &Settings) -> Value {
    let page_bytes = Plan::of(settings).map_or(0, |plan| plan.device.part.page_bytes);
    let mut stats = Stats::new(StatsOptions {
        page_bytes,
        ..StatsOptions::default()
    });
    trace.requests.iter().for_each(|request| stats.add(request));
    serde_json::to_value(stats.finish()).unwrap_or_default()
}

/// The settings of both lists; one of the second wins over one of the first.
fn merged(first: &[String], second: &[String]) -> Vec<String> {
    let key = |text: &String| text.split_once('=').map(|(key, _)| key.trim().to_string());
    let is_not_given_again = |text: &&String| second.iter().all(|other| key(other) != key(text));
    let kept = first.iter().filter(is_not_given_again);
    kept.chain(second).cloned().collect()
}

fn asked(item: &Item, study: &Study, is_full: bool) -> Asked {
    let quick = (!is_full).then_some(&study.quick);
    let trace = quick.and_then(|quick| quick.trace.as_ref());
    let names = trace.unwrap_or(&study.trace).names();
    let seeds = quick.and_then(|quick| quick.seeds).or(study.seeds);
    let own = merged(&item.set, &study.set);
    let none = Vec::new();
    Asked {
        traces: match seeds {
            None => names.to_vec(),
            Some(n) => (1..=n.max(1))
                .flat_map(|seed| {
                    let with = move |name: &String| name.replace("{seed}", &seed.to_string());
                    names.iter().map(with)
                })
                .collect(),
        },
        set: merged(&own, quick.map_or(&none, |quick| &quick.set)),
        vary: merged(&study.vary, quick.map_or(&none, |quick| &quick.vary)),
        seed: None,
    }
}

/// Values in step are in step with each other and not with the seeds: then each seed runs by itself.
fn by_seed(asked: Asked, in_step: bool) -> Vec<Asked> {
    if !in_step || asked.traces.len() < 2 {
        return vec![asked];
    }
    let alone = |(i, trace): (usize, &String)| Asked {
        traces: vec![trace.clone()],
        seed: Some(i + 1),
        ..asked.clone()
    };
    asked.traces.iter().enumerate().map(alone).collect()
}

/// The command that gives the runs of a study.
fn command(study: &Study, asked: &Asked) -> String {
    let is_varied = !asked.vary.is_empty() || asked.traces.len() > 1;
    let mut words = vec![
        "floatgate".to_string(),
        if is_varied { "sweep" } else { "compare" }.into(),
        "--scheme".into(),
        study.schemes.join(","),
    ];
    match &asked.traces[..] {
        [one] => words.extend(["--trace".into(), one.clone()]),
        several => words.extend(["--vary".into(), format!("trace={}", several.join(","))]),
    }
    for set in &asked.set {
        words.extend(["--set".into(), set.clone()]);
    }
    for vary in &asked.vary {
        words.extend(["--vary".into(), vary.clone()]);
    }
    if study.zip {
        words.push("--zip".into());
    }
    let quoted = words.iter().map(|word| quoted(word));
    quoted.collect::<Vec<_>>().join(" ")
}

/// As a shell takes it.
fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_=.,:/+%".contains(c);
    match word.chars().all(is_plain) {
        true => word.into(),
        false => format!("'{word}'"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(list: &[&str]) -> Vec<String> {
        list.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn values_in_step_run_once_for_each_seed() {
        let asked = Asked {
            traces: texts(&["a", "b"]),
            set: Vec::new(),
            vary: texts(&["x=1,2,3", "y=4,5,6"]),
            seed: None,
        };
        assert_eq!(by_seed(asked.clone(), false).len(), 1);
        let alone = by_seed(asked, true);
        let of_each: Vec<_> = alone.iter().map(|a| (&*a.traces[0], a.seed)).collect();
        assert_eq!(of_each, [("a", Some(1)), ("b", Some(2))]);
        assert!(
            alone
                .iter()
                .all(|a| a.traces.len() == 1 && a.vary.len() == 2)
        );
    }

    #[test]
    fn a_setting_given_again_wins() {
        let all = merged(&texts(&["a.b=1", "a.c=2"]), &texts(&["a.b=3"]));
        assert_eq!(all, ["a.c=2", "a.b=3"]);
    }

    #[test]
    fn what_ran_on_a_bundled_trace_is_kept() {
        let is_kept = |trace: &str| {
            let (files, settings) = ([trace.to_string()], Settings::default());
            let choice = crate::traces::Choice::of(&files, &ColumnsArgs::default(), &settings);
            is_shared(&choice.expect("a trace").identity())
        };
        assert!(is_kept("desktop"));
        assert!(!is_kept("zipf:requests=10"));
    }

    #[test]
    fn a_study_of_any_name_has_a_journal() {
        assert_eq!(
            file_name("lastpp/fig-25-oltp, log 1/12"),
            "lastpp-fig-25-oltp--log-1-12"
        );
    }

    #[test]
    fn a_command_can_be_pasted() {
        assert_eq!(
            quoted("last:sequential_threshold=4"),
            "last:sequential_threshold=4"
        );
        assert_eq!(
            quoted("run.ageing=[\"replay\"]"),
            "'run.ageing=[\"replay\"]'"
        );
        assert_eq!(quoted("x=64..1024*2"), "'x=64..1024*2'");
    }
}
