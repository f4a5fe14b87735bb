//! What an item of a paper declares: the file `papers/PAPER/ITEM.toml` (docs/papers.md has the format).

use std::collections::BTreeMap;

use floatgate_sim::record::papers::{Sense, WorkloadKind};
use serde::Deserialize;
use serde_json::Value;

/// The file `paper.toml` of a paper.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PaperFile {
    /// What people call it, as `LAST++`.
    pub name: String,
    /// Its title.
    pub title: String,
    /// Authors, venue and year.
    pub source: String,
    /// The keys of its items, in the order of the paper.
    pub items: Vec<String>,
    /// The claims of its abstract and conclusion.
    #[serde(default)]
    pub claim: Vec<Claim>,
}

/// A claim.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Claim {
    /// Its number among those of all papers.
    pub number: u32,
    /// What is claimed.
    pub claim: String,
    /// The paper's number, in words.
    pub paper_says: String,
    /// The item that has the numbers.
    pub item: Option<String>,
    /// Those of the item's numbers that count, by their names.
    #[serde(default)]
    pub numbers: Vec<String>,
    /// Why it differs.
    pub why: Option<WhyText>,
    /// Why it cannot be.
    pub cannot: Option<String>,
}

/// A reason: seen in a run, or guessed.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WhyText {
    /// A run shows it.
    Tested(String),
    /// Nothing does.
    Guess(String),
}

/// The file of an item.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Item {
    /// What it shows.
    pub title: String,
    /// Where it stands in the paper.
    pub place: String,
    /// How it is run here, in words.
    pub setting: Option<String>,
    /// Why it differs.
    pub why: Option<WhyText>,
    /// Why it cannot be.
    pub cannot: Option<String>,
    /// Where in the program the constants of a table are.
    pub constants: Option<String>,
    /// Tests that hold worked examples: `path/of/file.rs::name`.
    #[serde(default)]
    pub tests: Vec<String>,
    /// Settings of all studies, as `--set` takes them.
    #[serde(default)]
    pub set: Vec<String>,
    /// What runs.
    #[serde(default)]
    pub study: Vec<Study>,
    /// Figures of a run, by name: a formula over its record.
    #[serde(default)]
    pub figure: BTreeMap<String, String>,
    /// What lines are called in place of their schemes.
    #[serde(default)]
    pub names: BTreeMap<String, String>,
    /// Numbers of the paper.
    #[serde(default)]
    pub number: Vec<Number>,
    /// Lines.
    #[serde(default)]
    pub plot: Vec<Plot>,
    /// Numbers that follow from the settings without a run.
    #[serde(default)]
    pub exact: Vec<Exact>,
}

/// Schemes on a workload, over varied settings.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Study {
    /// Its name inside the item.
    pub name: String,
    /// What the workload is to the paper's.
    pub workload: WorkloadKind,
    /// A trace or a generator, or several; `{seed}` stands for 1, 2, ... up to `seeds`.
    pub trace: Traces,
    /// How many seeds.
    pub seeds: Option<u32>,
    /// Schemes, as `--scheme` takes them.
    pub schemes: Vec<String>,
    /// Settings besides those of the item; one of the same key wins over the item's.
    #[serde(default)]
    pub set: Vec<String>,
    /// What is varied, as `--vary` takes it.
    #[serde(default)]
    pub vary: Vec<String>,
    /// Take the varied values in step.
    #[serde(default)]
    pub zip: bool,
    /// What the quick form does otherwise.
    #[serde(default)]
    pub quick: Quick,
}

/// The workloads of a study.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
pub enum Traces {
    /// One.
    One(String),
    /// Several, each by itself.
    Many(Vec<String>),
}

impl Traces {
    /// Their names.
    pub fn names(&self) -> &[String] {
        match self {
            Self::One(name) => std::slice::from_ref(name),
            Self::Many(names) => names,
        }
    }
}

/// What the quick form has in place of the full one.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Quick {
    /// The study is left out.
    #[serde(default)]
    pub skip: bool,
    /// Shorter workloads, or fewer.
    pub trace: Option<Traces>,
    /// Fewer seeds.
    pub seeds: Option<u32>,
    /// Settings; one of the same key wins.
    #[serde(default)]
    pub set: Vec<String>,
    /// Values; those of the same key are taken in place of the others.
    #[serde(default)]
    pub vary: Vec<String>,
}

/// A number of the paper, and what ours is made of.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Number {
    /// What claims call it.
    pub name: Option<String>,
    /// What it is.
    pub text: String,
    /// The figure of the item.
    pub figure: String,
    /// The scheme.
    pub scheme: String,
    /// A scheme that it is compared with.
    pub than: Option<String>,
    /// The settings at which the other is taken; what is not named is the same.
    #[serde(default)]
    pub than_at: BTreeMap<String, Value>,
    /// How the two are compared.
    #[serde(rename = "as")]
    pub comparison: Option<Comparison>,
    /// Only runs with these values; `study` names studies.
    #[serde(default)]
    pub at: BTreeMap<String, Value>,
    /// The paper's: a number, or the least and the largest.
    pub paper: Printed,
    /// How ours is to be compared with it.
    #[serde(default)]
    pub sense: Sense,
    /// Its unit, if it is not that of a comparison.
    #[serde(default)]
    pub unit: String,
}

/// How a figure of one run is compared with that of another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Comparison {
    /// By how many percent of the other it is below it.
    Less,
    /// By how many percent of the other it is above it.
    More,
    /// How many times the other it is.
    Times,
    /// By how much it is above it, in the figure's own unit.
    Above,
}

/// What a paper prints.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(untagged)]
pub enum Printed {
    /// A number.
    One(f64),
    /// From, to.
    Range(f64, f64),
}

impl Printed {
    /// The least and the largest.
    pub fn range(self) -> (f64, f64) {
        match self {
            Self::One(x) => (x, x),
            Self::Range(a, b) => (a.min(b), a.max(b)),
        }
    }
}

/// Lines of a figure over a varied setting.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plot {
    /// What it shows.
    pub title: String,
    /// The varied key along the axis.
    pub x: String,
    /// The figure.
    pub figure: String,
    /// The figure in words, with its unit.
    pub y: String,
    /// A scheme whose figure is 1: others are told as times it.
    pub relative_to: Option<String>,
    /// Whether the figure's axis is logarithmic.
    #[serde(default)]
    pub log: bool,
    /// Studies; all if left out.
    #[serde(default)]
    pub study: Vec<String>,
    /// Schemes; all if left out.
    #[serde(default)]
    pub schemes: Vec<String>,
    /// The paper's points, by scheme: values of `x` and of the figure. Each is a number with a verdict.
    #[serde(default)]
    pub paper: BTreeMap<String, Vec<(Value, f64)>>,
}

/// A number of the paper that follows from a device's settings.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Exact {
    /// What claims call it.
    pub name: Option<String>,
    /// What it is.
    pub text: String,
    /// The scheme.
    pub scheme: String,
    /// Settings besides those of the item.
    #[serde(default)]
    pub set: Vec<String>,
    /// A formula over the tables and the recoveries of the scheme.
    pub value: String,
    /// The paper's.
    pub paper: f64,
    /// Its unit.
    pub unit: String,
    /// By how much ours may differ: what the paper's rounding leaves open.
    pub within: f64,
}
