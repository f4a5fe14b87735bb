//! What `floatgate papers --json` prints: every table and figure of the five papers, the claims of their abstracts, and
//! what came of each (docs/papers.md).

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::SCHEMA;

/// What `floatgate papers --json` prints.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PapersDocument {
    /// Version of the shape of the document.
    #[schemars(extend("const" = SCHEMA))]
    pub schema: u32,
    /// The program and its version.
    pub program: String,
    /// The command that made it.
    pub command: String,
    /// When it was made, as 2026-01-31.
    pub date: String,
    /// Whether the full form ran: all seeds, points and workloads.
    pub is_full: bool,
    /// Claims of abstracts and conclusions.
    pub claims: Vec<ClaimRow>,
    /// Tables, figures and groups of numbers, paper by paper.
    pub items: Vec<ItemResult>,
}

/// How a number of a paper came out.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Within the tolerance, and every run in the direction of the paper.
    Reproduced,
    /// The direction of the paper, but not its size.
    SameDirection,
    /// Neither.
    NotReproduced,
    /// What it needs cannot be had here.
    CannotBe,
    /// Nothing ran for it.
    NotAttempted,
}

/// What a number was measured on, the most convincing first.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum WorkloadKind {
    /// What the paper itself ran, or a formula or worked example of it.
    Own,
    /// The public trace that the paper names.
    Public,
    /// A recorded trace of the same kind of work.
    Recorded,
    /// Generated, with the figures that the paper states.
    Matched,
    /// Generated or recorded, without them.
    Unmatched,
}

/// A claim of an abstract or a conclusion.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ClaimRow {
    /// Its number, from 1.
    pub number: u32,
    /// Key of the paper.
    pub paper: String,
    /// What is claimed.
    pub claim: String,
    /// The paper's number, in words.
    pub paper_says: String,
    /// Key of the item that has the numbers.
    pub item: Option<String>,
    /// What was measured for it.
    pub numbers: Vec<NumberRow>,
    /// The verdict over these numbers.
    pub verdict: Verdict,
    /// What they were measured on.
    pub workloads: Vec<WorkloadKind>,
    /// Why it differs, or why it cannot be.
    pub why: Option<Why>,
    /// The command that shows it.
    pub command: String,
}

/// A reason.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Why {
    /// In words.
    pub text: String,
    /// Whether a run shows that it is the reason; else it is a guess.
    pub is_tested: bool,
}

/// A table, a figure or a group of numbers of a paper.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ItemResult {
    /// Key of the paper.
    pub paper: String,
    /// Key of the item.
    pub item: String,
    /// What it shows.
    pub title: String,
    /// Where it stands in the paper.
    pub place: String,
    /// How it was run here, in words.
    pub setting: Option<String>,
    /// The verdict over its numbers.
    pub verdict: Verdict,
    /// What they were measured on.
    pub workloads: Vec<WorkloadKind>,
    /// Why it differs, or why it cannot be.
    pub why: Option<Why>,
    /// Numbers of the paper and ours.
    pub numbers: Vec<NumberRow>,
    /// Lines over a varied setting.
    pub plots: Vec<PlotResult>,
    /// Tests that hold worked examples.
    pub tests: Vec<String>,
    /// Commands that give the runs behind it one by one.
    pub commands: Vec<String>,
    /// Runs made for it.
    pub runs: u64,
    /// Runs that gave no record, each with the reason.
    pub failed: Vec<String>,
    /// Time of its runs, s.
    pub seconds: f64,
}

/// What a number of a paper is to ours.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Sense {
    /// About as large.
    #[default]
    About,
    /// The least that ours may be.
    AtLeast,
    /// The most that ours may be.
    AtMost,
}

/// A number of a paper beside ours.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct NumberRow {
    /// What it is.
    pub text: String,
    /// The paper's, from the least to the largest: both the same if it is one number.
    pub paper: (f64, f64),
    /// How ours is to be compared with it.
    pub sense: Sense,
    /// Unit of all of them; empty for a ratio or a count.
    pub unit: String,
    /// The mean of ours; `null` if no run gave one.
    pub ours: Option<f64>,
    /// The least of ours.
    pub least: Option<f64>,
    /// The largest of ours.
    pub largest: Option<f64>,
    /// Runs that these are of.
    pub runs: u64,
    /// Of a comparison of two schemes: runs in the paper's direction.
    pub same_direction: Option<u64>,
    /// What it was measured on.
    pub workload: WorkloadKind,
    /// The verdict.
    pub verdict: Verdict,
}

/// A figure over a varied setting, a line each scheme.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PlotResult {
    /// What it shows.
    pub title: String,
    /// The setting along the axis.
    pub x: String,
    /// The figure, with its unit.
    pub y: String,
    /// Whether the figure's axis is logarithmic.
    pub is_log: bool,
    /// Ours.
    pub lines: Vec<Line>,
    /// The paper's points, by the name of their line.
    pub paper: BTreeMap<String, Vec<(String, f64)>>,
}

/// A line of a plot.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Line {
    /// Its name.
    pub name: String,
    /// What ran.
    pub study: String,
    /// Its points, in the order of the setting's values.
    pub points: Vec<LinePoint>,
}

/// A point of a line.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LinePoint {
    /// The setting's value.
    pub x: String,
    /// Mean over seeds and whatever else was varied.
    pub mean: f64,
    /// The least.
    pub least: f64,
    /// The largest.
    pub largest: f64,
}
