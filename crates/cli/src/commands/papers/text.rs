//! Verdicts for a terminal, and in files.

use std::path::Path;

use floatgate_sim::record::papers::{
    ItemResult, NumberRow, PapersDocument, Sense, Verdict, Why, WorkloadKind,
};
use floatgate_trace::columns::{Column, Kind, NONE, TableWriter};
use serde_json::{Value, json};

use super::OUT_FLAG;
use super::library::Paper;
use crate::args::PapersArgs;
use crate::commands::sweep::rows;
use crate::errors::Outcome;
use crate::output;
use crate::table::{Table, short, some};

/// What a verdict is called.
pub fn verdict(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Reproduced => "reproduced",
        Verdict::SameDirection => "same direction",
        Verdict::NotReproduced => "not reproduced",
        Verdict::CannotBe => "cannot be",
        Verdict::NotAttempted => "not attempted",
    }
}

/// What a workload is called.
fn workload(kind: WorkloadKind) -> &'static str {
    match kind {
        WorkloadKind::Own => "the paper's own",
        WorkloadKind::Public => "public trace",
        WorkloadKind::Recorded => "recorded",
        WorkloadKind::Matched => "matched stand-in",
        WorkloadKind::Unmatched => "unmatched",
    }
}

/// Means that a line of a claim has at most; `floatgate papers PAPER ITEM` shows them all.
const MEANS_SHOWN: usize = 6;

const VERDICTS: [Verdict; 5] = [
    Verdict::Reproduced,
    Verdict::SameDirection,
    Verdict::NotReproduced,
    Verdict::CannotBe,
    Verdict::NotAttempted,
];
const KINDS: [WorkloadKind; 5] = [
    WorkloadKind::Own,
    WorkloadKind::Public,
    WorkloadKind::Recorded,
    WorkloadKind::Matched,
    WorkloadKind::Unmatched,
];

/// The command as it was given, in words.
pub fn command(args: &PapersArgs) -> String {
    let mut text = String::from("floatgate papers");
    for word in [&args.paper, &args.item].into_iter().flatten() {
        text += &format!(" {word}");
    }
    if args.full {
        text += " --full";
    }
    text
}

/// What there is, for programs.
pub fn listed(papers: &[Paper]) -> Value {
    let items = |paper: &Paper| -> Vec<Value> {
        let item = |(key, item): &(String, super::Item)| json!({"item": key, "place": item.place, "title": item.title});
        paper.items.iter().map(item).collect()
    };
    let paper = |paper: &Paper| {
        json!({
            "paper": paper.key, "name": paper.file.name, "title": paper.file.title,
            "source": paper.file.source, "items": items(paper),
        })
    };
    papers.iter().map(paper).collect()
}

/// What there is.
pub fn list(papers: &[Paper]) -> String {
    let mut text = String::new();
    for paper in papers {
        let file = &paper.file;
        text += &format!(
            "{} ({}): {}\n{}\n\n",
            paper.key, file.name, file.title, file.source
        );
        let mut table = Table::new(&["<item", "<in the paper", "<what"]);
        for (key, item) in &paper.items {
            table.row([key.clone(), item.place.clone(), item.title.clone()]);
        }
        text += &table.render();
        text.push('\n');
    }
    text
}

/// Everything for a terminal: claims, items, and of a single item its numbers too.
pub fn of(document: &PapersDocument, papers: &[Paper]) -> String {
    let mut text = String::new();
    if !document.claims.is_empty() {
        text += &format!(
            "Claims of abstracts and conclusions\n\n{}\n",
            claims(document, papers)
        );
    }
    let [item] = &document.items[..] else {
        text += &format!(
            "Tables, figures and groups of numbers\n\n{}\n",
            items(document)
        );
        return text + &counts(document);
    };
    let about = [
        Some(format!("{} {}: {}", item.paper, item.place, item.title)),
        item.setting.clone(),
    ];
    for line in about.into_iter().flatten() {
        text += &format!("{line}\n");
    }
    text += &format!("\n{}", numbers(item));
    text += &format!("\nVerdict: {}\n", verdict(item.verdict));
    if let Some(why) = &item.why {
        text += &format!("Why: {}\n", reason(why));
    }
    for test in &item.tests {
        text += &format!("Test: {test}\n");
    }
    for failed in &item.failed {
        text += &format!("Did not run: {failed}\n");
    }
    for command in &item.commands {
        text += &format!("Runs: {command}\n");
    }
    text
}

fn reason(why: &Why) -> String {
    match why.is_tested {
        true => why.text.clone(),
        false => format!("(guess) {}", why.text),
    }
}

fn claims(document: &PapersDocument, papers: &[Paper]) -> String {
    let mut table = Table::new(&[
        "",
        "<claim",
        "<verdict",
        "<the paper",
        "<ours",
        "<workload",
        "<floatgate papers ...",
    ]);
    for row in &document.claims {
        let name = papers.iter().find(|paper| paper.key == row.paper);
        let name = name.map_or(&*row.paper, |paper| &*paper.file.name);
        let item = row.item.as_ref();
        table.row([
            row.number.to_string(),
            format!("{name}: {}", row.claim),
            verdict(row.verdict).into(),
            row.paper_says.clone(),
            in_short(&row.numbers),
            kinds(&row.workloads),
            item.map_or(String::new(), |item| format!("{} {item}", row.paper)),
        ]);
    }
    table.render()
}

/// A number with its spread, or of several the means.
fn in_short(numbers: &[NumberRow]) -> String {
    let [first, rest @ ..] = numbers else {
        return "-".into();
    };
    if rest.is_empty() {
        return ours(first);
    }
    let mean = |number: &NumberRow| number.ours.map_or("-".into(), short);
    let means: Vec<String> = numbers.iter().take(MEANS_SHOWN).map(mean).collect();
    let more = match numbers.len() > MEANS_SHOWN {
        true => ", ...",
        false => "",
    };
    let is_one_unit = rest.iter().all(|number| number.unit == first.unit);
    let unit = if is_one_unit {
        unit(first)
    } else {
        String::new()
    };
    format!("{}{unit}{more}", means.join(", "))
}

fn items(document: &PapersDocument) -> String {
    let mut table = Table::new(&[
        "<paper",
        "<item",
        "<in the paper",
        "<verdict",
        "<of its numbers",
        "<workload",
        "s",
    ]);
    for item in &document.items {
        table.row([
            item.paper.clone(),
            item.item.clone(),
            item.place.clone(),
            verdict(item.verdict).into(),
            tally(item.numbers.iter().map(|number| number.verdict)),
            kinds(&item.workloads),
            format!("{:.1}", item.seconds),
        ]);
    }
    table.render()
}

fn kinds(kinds: &[WorkloadKind]) -> String {
    let names: Vec<&str> = kinds.iter().map(|kind| workload(*kind)).collect();
    names.join(", ")
}

/// How many came out how: `3 reproduced, 1 not reproduced`.
fn tally(verdicts: impl Iterator<Item = Verdict> + Clone) -> String {
    let of = |wanted: Verdict| {
        let n = verdicts
            .clone()
            .filter(|verdict| *verdict == wanted)
            .count();
        (n > 0).then(|| format!("{n} {}", verdict(wanted)))
    };
    let parts: Vec<String> = VERDICTS.into_iter().filter_map(of).collect();
    parts.join(", ")
}

fn counts(document: &PapersDocument) -> String {
    let of_kind = |kind: WorkloadKind| {
        let n = document
            .items
            .iter()
            .filter(|item| item.workloads.last() == Some(&kind))
            .count();
        (n > 0).then(|| format!("{n} {}", workload(kind)))
    };
    let by_kind: Vec<String> = KINDS.into_iter().filter_map(of_kind).collect();
    let form = match document.is_full {
        true => "The full form",
        false => "The quick form; --full takes all seeds, points and workloads",
    };
    format!(
        "{}: {}\nby the least convincing workload of each: {}\n{form}. `floatgate papers PAPER ITEM` shows the numbers of one. docs/papers.md says what the verdicts mean.\n",
        some(document.items.len() as u64, "item"),
        tally(document.items.iter().map(|item| item.verdict)),
        by_kind.join(", ")
    )
}

fn numbers(item: &ItemResult) -> String {
    let mut table = Table::new(&["<number", "<paper", "<ours", "<verdict", "<workload"]);
    for number in &item.numbers {
        table.row([
            number.text.clone(),
            paper(number),
            ours(number),
            verdict(number.verdict).into(),
            workload(number.workload).into(),
        ]);
    }
    table.render()
}

/// The paper's number.
pub fn paper(number: &NumberRow) -> String {
    let (from, to) = number.paper;
    let range = match from == to {
        true => short(from),
        false => format!("{} to {}", short(from), short(to)),
    };
    let sense = match number.sense {
        Sense::About => "",
        Sense::AtLeast => "at least ",
        Sense::AtMost => "at most ",
    };
    format!("{sense}{range}{}", unit(number))
}

/// Ours, with its spread.
pub fn ours(number: &NumberRow) -> String {
    let (Some(ours), Some(least), Some(largest)) = (number.ours, number.least, number.largest)
    else {
        return "-".into();
    };
    let spread = match number.runs > 1 && least != largest {
        true => format!(" ({} to {})", short(least), short(largest)),
        false => String::new(),
    };
    let along = match number.same_direction {
        Some(n) if n < number.runs && number.runs > 1 => {
            format!(", {n} of {} in the direction", number.runs)
        }
        _ => String::new(),
    };
    format!("{}{}{spread}{along}", short(ours), unit(number))
}

fn unit(number: &NumberRow) -> String {
    match number.unit.as_str() {
        "" => String::new(),
        unit => format!(" {unit}"),
    }
}

/// Refuses a name that nothing could be written to, before the work.
///
/// # Errors
/// If its ending tells no format.
pub fn check_name(path: &Path) -> Outcome<()> {
    match ending(path) == "md" && !path.is_dir() {
        true => Ok(()),
        false => rows::check_name(path),
    }
}

fn ending(path: &Path) -> &str {
    path.extension()
        .and_then(|ending| ending.to_str())
        .unwrap_or_default()
}

const fn text_column(name: &'static str) -> Column {
    Column {
        name,
        kind: Kind::Text,
    }
}

const fn real_column(name: &'static str) -> Column {
    Column {
        name,
        kind: Kind::Real,
    }
}

/// One row a number.
const COLUMNS: &[Column] = &[
    text_column("paper"),
    text_column("item"),
    text_column("place"),
    text_column("number"),
    text_column("unit"),
    real_column("paper_from"),
    real_column("paper_to"),
    real_column("ours"),
    real_column("ours_least"),
    real_column("ours_largest"),
    Column {
        name: "runs",
        kind: Kind::Number,
    },
    text_column("verdict"),
    text_column("workload"),
];

/// Writes the file: all of it or nothing.
///
/// # Errors
/// If it cannot be written.
pub fn write(path: &Path, document: &PapersDocument) -> Outcome<()> {
    match ending(path) {
        "json" => return output::write_file(OUT_FLAG, path, output::json(document)?),
        "md" => return output::write_file(OUT_FLAG, path, markdown(document)),
        _ => {}
    }
    let mut table = TableWriter::create(path, COLUMNS)?;
    for item in &document.items {
        for number in &item.numbers {
            let real = |x: Option<f64>| x.map_or(NONE, f64::to_bits);
            let row = [
                table.text(&*item.paper),
                table.text(&*item.item),
                table.text(&*item.place),
                table.text(&*number.text),
                table.text(&*number.unit),
                number.paper.0.to_bits(),
                number.paper.1.to_bits(),
                real(number.ours),
                real(number.least),
                real(number.largest),
                number.runs,
                table.text(verdict(number.verdict)),
                table.text(workload(number.workload)),
            ];
            table.row(&row)?;
        }
    }
    table.finish()?;
    Ok(())
}

/// The same for a page of documentation.
fn markdown(document: &PapersDocument) -> String {
    let cell = |text: &str| text.replace('|', "\\|").replace('\n', " ");
    let mut text = format!(
        "`{}`, {}, {}.\n\n",
        document.command, document.program, document.date
    );
    if !document.claims.is_empty() {
        text += "| | claim | paper's | ours | verdict | workload | why |\n|---|---|---|---|---|---|---|\n";
    }
    for row in &document.claims {
        let ours: Vec<String> = row.numbers.iter().map(ours).collect();
        let cells = [
            row.number.to_string(),
            format!("{}: {}", row.paper, row.claim),
            row.paper_says.clone(),
            ours.join("; "),
            verdict(row.verdict).into(),
            kinds(&row.workloads),
            row.why.as_ref().map(reason).unwrap_or_default(),
        ];
        text += &format!("| {} |\n", cells.map(|text| cell(&text)).join(" | "));
    }
    text += "\n| paper | item | in the paper | verdict | of its numbers | workload | why |\n|---|---|---|---|---|---|---|\n";
    for item in &document.items {
        let cells = [
            item.paper.clone(),
            item.item.clone(),
            format!("{}: {}", item.place, item.title),
            verdict(item.verdict).into(),
            tally(item.numbers.iter().map(|number| number.verdict)),
            kinds(&item.workloads),
            item.why.as_ref().map(reason).unwrap_or_default(),
        ];
        text += &format!("| {} |\n", cells.map(|text| cell(&text)).join(" | "));
    }
    format!("{text}\n{}", counts(document))
}
