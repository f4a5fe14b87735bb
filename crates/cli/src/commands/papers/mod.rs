//! `floatgate papers`: the tables, figures and claims of the five papers beside ours.

mod formula;
mod item;
mod judge;
mod library;
mod play;
mod text;

use std::collections::{BTreeSet, HashMap};

use floatgate_catalog::Scheme;
use floatgate_sim::record::SCHEMA;
use floatgate_sim::record::papers::{
    ClaimRow, ItemResult, NumberRow, PapersDocument, Verdict, Why, WorkloadKind,
};

use super::study::{REPORT_FLAG, check_outputs, write_report};
use crate::PROGRAM;
use crate::args::PapersArgs;
use crate::errors::{Outcome, Problem};
use crate::output;
use crate::progress::Bar;
use crate::report;

use formula::Formula;
use item::{Claim, Item, WhyText};
use library::Paper;
use play::Bench;

const OUT_FLAG: &str = "--out";
/// The report unless another file is named.
const REPORT: &str = "floatgate-papers.html";

/// Runs what is asked for, judges it, prints and writes it.
pub fn run(args: &PapersArgs, schemes: &[Scheme]) -> Outcome<()> {
    let papers = library::chosen(
        args.folder.as_deref(),
        args.paper.as_deref(),
        args.item.as_deref(),
    )?;
    if args.list {
        return match args.json {
            true => output::print_json(&text::listed(&papers)),
            false => output::print(&text::list(&papers)),
        };
    }
    let default = std::path::PathBuf::from(REPORT);
    let report = match (&args.report, args.no_report || args.json) {
        (Some(path), _) => Some(path),
        (None, false) => Some(&default),
        (None, true) => None,
    };
    let mut outputs = vec![(REPORT_FLAG, report.map(|path| path.as_path()))];
    outputs.extend(args.out.iter().map(|out| (OUT_FLAG, Some(out.as_path()))));
    check_outputs(&outputs, std::iter::empty())?;
    args.out.iter().try_for_each(|out| text::check_name(out))?;
    let mut bench = Bench {
        schemes,
        is_full: args.full,
        jobs: args.jobs,
        journals: args.out.first().map(|out| (out.clone(), args.fresh)),
        traces: HashMap::new(),
        played: HashMap::new(),
    };
    for paper in &papers {
        for (key, item) in &paper.items {
            check(&format!("{}/{key}", paper.key), item)?;
        }
    }
    let count: usize = papers.iter().map(|paper| paper.items.len()).sum();
    let bar = Bar::new(count as u64, "items");
    let mut items = Vec::new();
    let mut journals = Vec::new();
    for paper in &papers {
        bench.played.clear();
        for (key, item) in &paper.items {
            bar.message(format!("{} {key}", paper.key));
            let (result, runs) = one(&mut bench, paper, key, item)?;
            items.push(result);
            journals.extend(runs.journals);
            bar.add(1);
        }
    }
    bar.done();
    let claims = match args.item {
        Some(_) => Vec::new(),
        None => claims(&papers, &items)?,
    };
    let document = PapersDocument {
        schema: SCHEMA,
        program: PROGRAM.into(),
        command: text::command(args),
        date: chrono::Utc::now().format("%Y-%m-%d").to_string(),
        is_full: args.full,
        claims,
        items,
    };
    for out in &args.out {
        text::write(out, &document)?;
    }
    match args.json {
        true => output::print_json(&document)?,
        false => output::print(&text::of(&document, &papers))?,
    }
    if let Some(path) = report {
        write_report(path, &report::papers_html(&document))?;
    }
    journals
        .into_iter()
        .try_for_each(|journal| journal.remove())
}

/// Finds mistakes in what an item declares before anything runs.
fn check(key: &str, item: &Item) -> Outcome<()> {
    let exact = item.exact.iter().map(|exact| &exact.value);
    for text in item.figure.values().chain(exact) {
        Formula::parse(text).map_err(|text| Problem::new(format!("{key}.toml: {text}")))?;
    }
    judge::check(item)
}

/// Runs and judges an item.
fn one(
    bench: &mut Bench<'_>,
    paper: &Paper,
    key: &str,
    item: &Item,
) -> Outcome<(ItemResult, play::Runs)> {
    let whole_key = format!("{}/{key}", paper.key);
    let runs = bench.play(&whole_key, item)?;
    let mut numbers = Vec::new();
    for exact in &item.exact {
        let ours = bench.exact(&whole_key, item, exact)?;
        numbers.push(judge::exact(
            &exact.text,
            ours,
            exact.paper,
            exact.within,
            &exact.unit,
        ));
    }
    for number in &item.number {
        numbers.push(judge::number(item, number, &runs));
    }
    let mut plots = Vec::new();
    for plot in &item.plot {
        let (plot, points) = judge::plot(item, plot, &runs);
        plots.push(plot);
        numbers.extend(points);
    }
    let is_held = !item.tests.is_empty() || item.constants.is_some();
    let verdict = match (&item.cannot, numbers.is_empty()) {
        (Some(_), _) => Verdict::CannotBe,
        (None, true) if is_held => Verdict::Reproduced,
        (None, _) => judge::over(numbers.iter().map(|number| number.verdict)),
    };
    let workloads = match is_held && numbers.is_empty() {
        true => vec![WorkloadKind::Own],
        false => kinds_of(&numbers),
    };
    let result = ItemResult {
        paper: paper.key.clone(),
        item: key.into(),
        title: item.title.clone(),
        place: item.place.clone(),
        setting: item.setting.clone().or(item.constants.clone()),
        verdict,
        workloads,
        why: why(item.why.as_ref(), item.cannot.as_ref()),
        numbers,
        plots,
        tests: item.tests.clone(),
        commands: runs.commands.clone(),
        runs: runs.runs.len() as u64,
        failed: runs.failed.clone(),
        seconds: runs.seconds,
    };
    Ok((result, runs))
}

/// What some numbers were measured on, the most convincing first, each once.
fn kinds_of(numbers: &[NumberRow]) -> Vec<WorkloadKind> {
    let kinds: BTreeSet<WorkloadKind> = numbers.iter().map(|number| number.workload).collect();
    kinds.into_iter().collect()
}

fn why(given: Option<&WhyText>, cannot: Option<&String>) -> Option<Why> {
    let (text, is_tested) = match (given, cannot) {
        (_, Some(text)) => (text, true),
        (Some(WhyText::Tested(text)), _) => (text, true),
        (Some(WhyText::Guess(text)), _) => (text, false),
        (None, None) => return None,
    };
    Some(Why {
        text: text.clone(),
        is_tested,
    })
}

/// The claims of the papers, by their numbers.
fn claims(papers: &[Paper], items: &[ItemResult]) -> Outcome<Vec<ClaimRow>> {
    let mut rows = Vec::new();
    for paper in papers {
        for claim in &paper.file.claim {
            rows.push(claim_row(paper, claim, items)?);
        }
    }
    rows.sort_by_key(|row| row.number);
    Ok(rows)
}

fn claim_row(paper: &Paper, claim: &Claim, items: &[ItemResult]) -> Outcome<ClaimRow> {
    let in_claim = |text: String| Problem::new(format!("claim {}: {text}", claim.number));
    let mut numbers: Vec<NumberRow> = Vec::new();
    let mut of_item = None;
    if let Some(key) = &claim.item {
        let place = paper.items.iter().find(|(item, _)| item == key);
        let (_, item) = place.ok_or_else(|| in_claim(format!("no item {key}")))?;
        let result = items
            .iter()
            .find(|i| i.paper == paper.key && i.item == *key);
        let result = result.ok_or_else(|| in_claim(format!("{key} did not run")))?;
        of_item.clone_from(&result.why);
        let exact = item.exact.iter().map(|exact| &exact.name);
        let names: Vec<&Option<String>> = exact
            .chain(item.number.iter().map(|number| &number.name))
            .collect();
        for name in &claim.numbers {
            let i = names.iter().position(|known| known.as_ref() == Some(name));
            let i = i.ok_or_else(|| in_claim(format!("{key} has no number {name}")))?;
            numbers.push(result.numbers[i].clone());
        }
        if claim.numbers.is_empty() {
            numbers.clone_from(&result.numbers);
        }
    }
    let workloads = kinds_of(&numbers);
    let verdict = match &claim.cannot {
        Some(_) => Verdict::CannotBe,
        None => judge::over(numbers.iter().map(|number| number.verdict)),
    };
    Ok(ClaimRow {
        number: claim.number,
        paper: paper.key.clone(),
        claim: claim.claim.clone(),
        paper_says: claim.paper_says.clone(),
        item: claim.item.clone(),
        numbers,
        verdict,
        workloads,
        why: why(claim.why.as_ref(), claim.cannot.as_ref()).or(of_item),
        command: match &claim.item {
            Some(item) => format!("floatgate papers {} {item}", paper.key),
            None => String::new(),
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_belongs_to_a_paper_and_every_claim_has_its_number() {
        assert_eq!(library::unnamed(), Vec::<String>::new());
        let papers = library::papers().expect("the items can be read");
        let mut numbers: Vec<u32> = papers
            .iter()
            .flat_map(|paper| paper.file.claim.iter().map(|claim| claim.number))
            .collect();
        numbers.sort_unstable();
        assert_eq!(numbers, (1..=17).collect::<Vec<_>>());
    }

    /// `path::name`, the path from the root of the repository.
    #[test]
    fn the_tests_that_hold_worked_examples_exist() {
        let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        for paper in library::papers().expect("the items can be read") {
            for (key, item) in &paper.items {
                for test in &item.tests {
                    let (path, name) = test.split_once("::").expect("path::name");
                    let text = std::fs::read_to_string(root.join(path));
                    let has_it = text.is_ok_and(|text| text.contains(&format!("fn {name}(")));
                    assert!(has_it, "{} {key}: there is no test {test}", paper.key);
                }
            }
        }
    }

    #[test]
    fn an_item_says_what_runs_or_why_nothing_does() {
        for paper in library::papers().expect("the items can be read") {
            for (key, item) in &paper.items {
                let has_numbers = !item.number.is_empty()
                    || !item.exact.is_empty()
                    || item.plot.iter().any(|plot| !plot.paper.is_empty());
                let is_held = !item.tests.is_empty() || item.constants.is_some();
                assert!(
                    has_numbers || is_held || item.cannot.is_some(),
                    "{} {key} has neither numbers nor a reason",
                    paper.key
                );
                assert_eq!(
                    item.study.is_empty(),
                    item.figure.is_empty(),
                    "{} {key}",
                    paper.key
                );
            }
        }
    }
}
