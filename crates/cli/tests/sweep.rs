//! Sweeps: every combination of varied settings, as rows that can be trusted, whatever stopped them on the way.

mod common;

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use common::{Place, Ran, cell, rows, small_trace};
use floatgate_sim::record::sweep::{SweepCell, SweepDocument, VariedValue};
use floatgate_sim::record::{Outcome, Reason, schema};
use parquet::record::Field;

fn document(ran: &Ran) -> SweepDocument {
    serde_json::from_str(&ran.out).unwrap_or_else(|error| panic!("{error}: {}", ran.out))
}

/// The varied values of a cell and its scheme, as `3 8 fast`.
fn name(cell: &SweepCell) -> String {
    let mut words: Vec<String> = cell.varied.values().map(ToString::to_string).collect();
    words.push(cell.scheme.clone());
    words.join(" ")
}

fn refusal(cell: &SweepCell) -> Option<&str> {
    match &cell.result {
        Some(Outcome::Failed(failed)) => match &failed.reason {
            Reason::Refused(text) => Some(text),
            other => panic!("{other:?}"),
        },
        _ => None,
    }
}

#[test]
fn a_sweep_is_the_product_in_order_and_every_cell_is_what_compare_gives() {
    let place = Place::new();
    small_trace(&place);
    let ran = place
        .run("sweep --trace t.pages --vary device.spare_percent=20..40/20 --vary host.queue_depth=1,4,0 --scheme page,fast --json --out s.parquet")
        .ok();
    assert!(
        ran.err.contains(
            "12 cells = 2 values of device.spare_percent x 3 values of host.queue_depth x 2 schemes"
        ),
        "{}",
        ran.err
    );
    let document = document(&ran);
    let names: Vec<String> = document.cells.iter().map(name).collect();
    assert_eq!(
        names[..7],
        [
            "20 1 page",
            "20 1 fast",
            "20 4 page",
            "20 4 fast",
            "20 0 page",
            "20 0 fast",
            "40 1 page"
        ]
    );
    assert_eq!(document.cells.len(), 12);
    for cell in &document.cells {
        let sets: Vec<String> = cell
            .varied
            .iter()
            .map(|(key, value)| format!("--set {key}={value}"))
            .collect();
        let mut compared = place
            .run(&format!(
                "compare --trace t.pages --no-report --json --scheme {} {}",
                cell.scheme,
                sets.join(" ")
            ))
            .ok()
            .record();
        let record = cell.result.as_ref().and_then(Outcome::record);
        // What only a comparison measures.
        compared.time.alone = None;
        assert!(record == Some(&compared), "{}", name(cell));
        let (device, figures) = (cell.device.unwrap(), cell.figures.unwrap());
        assert_eq!(
            VariedValue::Whole(device.asked_spare_percent.unwrap() as i64),
            cell.varied[0]
        );
        assert_eq!(device.blocks_per_die, compared.device.blocks);
        assert_eq!(figures.response_p99_us, compared.time.response.all.p99_us);
        assert_eq!(figures.erases, compared.derived.erases);
    }
    // The file says the same.
    let rows = rows(&place, "s.parquet");
    assert_eq!(rows.len(), 12);
    for (row, of) in rows.iter().zip(&document.cells) {
        let figures = of.figures.unwrap();
        let spare: u64 = of.varied[0].to_string().parse().unwrap();
        for (column, wanted) in [
            ("device.spare_percent", Field::ULong(spare)),
            ("trace", Field::Str("t.pages".into())),
            ("scheme", Field::Str(of.scheme.clone())),
            ("outcome", Field::Str("ran".into())),
            ("reason", Field::Null),
            ("asked_bytes", Field::Null),
            ("dies", Field::ULong(of.device.unwrap().dies.into())),
            (
                "response_mean_us",
                Field::Double(figures.response_mean_us.unwrap()),
            ),
            ("merges_full", Field::ULong(figures.merges_full)),
            (
                "behind_s",
                figures.behind_s.map_or(Field::Null, Field::Double),
            ),
            ("energy_uj", Field::Double(figures.energy_uj)),
        ] {
            assert_eq!(cell(row, column), wanted, "{column}");
        }
    }
    assert_eq!(place.files(), ["s.parquet", "t.pages"]);
}

#[test]
fn what_is_not_varied_stays_the_same() {
    let place = Place::new();
    small_trace(&place);
    let sweep = |vary: &str| {
        let command = format!("sweep --trace t.pages --scheme page,fast --json {vary}");
        let cells = document(&place.run(&command).ok()).cells;
        cells
            .into_iter()
            .map(|cell| cell.device.expect("a device"))
            .collect::<Vec<_>>()
    };
    // Many log blocks take many spare ones: then all cells have them.
    let devices = sweep("--vary device.log_percent=6,150");
    assert_ne!(devices[1].log_blocks, devices[3].log_blocks);
    assert!(
        devices
            .iter()
            .all(|d| d.blocks_per_die == devices[0].blocks_per_die)
    );
    assert!(devices[0].spare_percent > 100.0, "{:?}", devices[0]);
    // Blocks of another size are no reason for other dies, nor for another capacity.
    let devices = sweep("--vary device.pages_per_block=8..64*2");
    let shape = |d: &floatgate_sim::record::sweep::SweepDevice| (d.dies, d.logical_bytes);
    assert!(
        devices.iter().all(|d| shape(d) == shape(&devices[0])),
        "{devices:?}"
    );
    let devices = sweep("--vary device.dies=1,2,4");
    assert!(
        devices
            .iter()
            .all(|d| d.logical_bytes == devices[0].logical_bytes)
    );
    // A share of spare blocks changes these alone.
    let devices = sweep("--vary device.spare_percent=30..90/30");
    assert!(devices.iter().all(|d| shape(d) == shape(&devices[0])
        && d.log_blocks == devices[d.log_blocks.is_some() as usize].log_blocks));
    assert!(devices[0].blocks_per_die < devices[2].blocks_per_die);
}

#[test]
fn a_cell_that_is_refused_is_a_row_and_ends_nothing() {
    let place = Place::new();
    small_trace(&place);
    let command = "sweep --trace t.pages --set device.dies=1 --set device.capacity_mib=4 --set host.beyond=wrap \
                   --vary device.blocks_per_die=36,60 --scheme page,fast";
    let ran = place
        .run(&format!("{command} --json --out s.csv --report s.html"))
        .ok();
    assert!(
        ran.err
            .contains("1 of 4 cells gave no record; their rows say why\n"),
        "{}",
        ran.err
    );
    let document = document(&ran);
    let refused: Vec<(String, Option<&str>)> = document
        .cells
        .iter()
        .map(|cell| (name(cell), refusal(cell)))
        .collect();
    assert_eq!(refused[1].0, "36 fast");
    let reason = refused[1].1.expect("a refusal");
    assert!(
        refused
            .iter()
            .filter(|(_, reason)| reason.is_some())
            .count()
            == 1,
        "{refused:?}"
    );
    assert_eq!(document.results[1].failed, 1);
    let text = place.run(command).ok().out;
    assert!(
        text.contains(&format!("36  fast    refused: {reason}\n")),
        "{text}"
    );
    let csv = std::fs::read_to_string(place.path("s.csv")).unwrap();
    assert!(csv.contains("\n36,t.pages,fast,refused,"), "{csv}");
    let report = std::fs::read_to_string(place.path("s.html")).unwrap();
    assert!(report.starts_with("<!doctype html>") && report.contains(&reason[..20]));
    assert!(
        !report.contains("\"distribution\":"),
        "records have no place in a report"
    );
    // Settings that do not fit together, too.
    let ran = place
        .run("sweep --trace t.pages --vary device.sectors=4,3 --scheme page --json")
        .ok();
    let document: SweepDocument = serde_json::from_str(&ran.out).unwrap();
    let second = &document.cells[1];
    assert_eq!(
        refusal(second),
        Some("3 sub-pages do not divide a page of 2048 bytes")
    );
    assert_eq!((second.device, second.figures), (None, None));
    // Nothing at all is an error.
    let ran =
        place.run("sweep --trace t.pages --vary device.sectors=3,5 --scheme page --out x.csv");
    assert!(
        ran.code == 2
            && ran.err.ends_with("\nerror: 3 sub-pages do not divide a page of 2048 bytes\n  --> --vary device.sectors=3,5\n                            ^\n"),
        "{}",
        ran.err
    );
    let ran = place.run(
        "sweep --trace t.pages --set device.dies=1 --set device.capacity_mib=4 --vary device.blocks_per_die=30,31 --scheme page --out x.csv",
    );
    assert!(
        ran.code == 2
            && ran
                .err
                .contains("\nerror: no cell could be run; the first: page: "),
        "{}",
        ran.err
    );
    assert!(!place.files().iter().any(|file| file.starts_with("x.csv")));
}

/// A sweep of which a cell takes a moment.
const LONG: &str = "sweep --trace long.pages --vary host.queue_depth=1..24 --scheme fast,page --jobs 2 \
                    --set host.arrivals=closed --set run.ageing=overwrite:2";

fn long_trace(place: &Place) {
    place.run("trace generate uniform --set space=4096 --set requests=60000 --set n=2 --set reads=30 --page-bytes 2048 --out long.pages").ok();
}

/// Starts a sweep, and kills it once its journal has that many cells.
fn killed_after(place: &Place, command: &str, cells: usize) -> String {
    let mut child = Command::new(env!("CARGO_BIN_EXE_floatgate"))
        .args(command.split_whitespace())
        .current_dir(place.path("."))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("the program runs");
    let journal = place.path("s.json.partial.jsonl");
    let start = Instant::now();
    loop {
        let text = std::fs::read_to_string(&journal).unwrap_or_default();
        if text.lines().count() > cells {
            break;
        }
        assert!(
            child.try_wait().unwrap().is_none(),
            "it ended before it could be killed"
        );
        assert!(start.elapsed() < Duration::from_secs(120), "no cell ends");
        std::thread::sleep(Duration::from_millis(2));
    }
    child.kill().expect("a process");
    child.wait().expect("a process");
    std::fs::read_to_string(journal).expect("the journal stays")
}

/// How many cells the run found.
fn found(ran: &Ran) -> usize {
    let line = ran
        .err
        .lines()
        .find(|line| line.ends_with(" cells were there"));
    line.map_or(0, |line| line.split(' ').next().unwrap().parse().unwrap())
}

#[test]
fn a_sweep_that_was_killed_goes_on_and_comes_to_the_same_bytes() {
    let place = Place::new();
    long_trace(&place);
    place
        .run(&format!("{LONG} --out whole.json --report whole.html"))
        .ok();
    let whole = std::fs::read(place.path("whole.json")).unwrap();
    let command = format!("{LONG} --out s.json --report s.html");
    let text = killed_after(&place, &command, 3);
    let kept = text.matches('\n').count() - 1;
    assert!(!place.files().contains(&"s.json".to_string()));
    // A line that was being written is dropped.
    std::fs::write(
        place.path("s.json.partial.jsonl"),
        format!("{text}{{\"cell\":\"1f"),
    )
    .unwrap();
    let text = killed_after(&place, &command, kept + 2);
    assert!(
        text.lines().skip(1).all(|line| line.ends_with('}')),
        "whole lines only"
    );
    let kept = text.matches('\n').count() - 1;
    let ran = place.run(&command).ok();
    assert_eq!(found(&ran), kept, "{}", ran.err);
    assert!(
        ran.err
            .contains(&format!("\n{kept} of 48 cells were there\n")),
        "{}",
        ran.err
    );
    assert!(
        std::fs::read(place.path("s.json")).unwrap() == whole,
        "resumed and whole differ"
    );
    let report = |file: &str| std::fs::read(place.path(file)).unwrap();
    assert!(report("s.html") == report("whole.html"));
    let left: Vec<String> = place
        .files()
        .into_iter()
        .filter(|file| file.contains("partial"))
        .collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn only_cells_of_the_same_settings_and_trace_are_taken_again() {
    let place = Place::new();
    long_trace(&place);
    let command = format!("{LONG} --out s.json");
    let text = killed_after(&place, &command, 4);
    let again = |command: &str| {
        std::fs::write(place.path("s.json.partial.jsonl"), &text).unwrap();
        found(&place.run(command).ok())
    };
    let kept = text.matches('\n').count() - 1;
    let fewer = "--set run.ageing=overwrite:1";
    assert_eq!(
        again(&command.replace("--set run.ageing=overwrite:2", fewer)),
        0
    );
    assert_eq!(again(&format!("{command} --fresh")), 0);
    // Other cells beside those that are there.
    let some =
        again(&command.replace("1..24 --scheme fast,page", "24..25 --scheme fast,page,bast"));
    assert!(some <= 2 && some < kept, "{some}");
    // The same requests in a file of another time.
    let trace = std::fs::read(place.path("long.pages")).unwrap();
    std::fs::write(place.path("long.pages"), trace).unwrap();
    assert_eq!(again(&command.replace("1..24", "1..2")), 0);
}

#[test]
fn nobody_elses_file_is_touched() {
    let place = Place::new();
    small_trace(&place);
    let command = "sweep --trace t.pages --vary device.dies=1,2 --scheme page --out s.csv";
    place.file("s.csv.partial.jsonl", "my notes\n");
    for command in [command.to_string(), format!("{command} --fresh")] {
        let ran = place.run(&command);
        assert_eq!(ran.code, 2);
        assert!(
            ran.err.ends_with("\nerror: s.csv.partial.jsonl is no journal of a sweep\n  help: name another --out, or move that file away\n"),
            "{}",
            ran.err
        );
    }
    place.file(
        "s.csv.partial.jsonl",
        "{\"floatgate_sweep_journal\":1}\n{\"cell\":\"00\",\"result\":3}\n",
    );
    let ran = place.run(command);
    assert!(
        ran.code == 2 && ran.err.contains("s.csv.partial.jsonl, line 2: this is no cell of a sweep\n  help: --fresh begins anew"),
        "{}",
        ran.err
    );
    assert_eq!(place.files(), ["s.csv.partial.jsonl", "t.pages"]);
    place.run(&format!("{command} --fresh")).ok();
    assert_eq!(place.files(), ["s.csv", "t.pages"]);
}

#[test]
fn a_configuration_says_what_varies() {
    let place = Place::new();
    small_trace(&place);
    place.file(
        "s.toml",
        "[trace]\nfile = \"t.pages\"\n[compare]\nschemes = [\"fast\"]\n[vary]\ndevice.dies = [1, 2]\nscheme.sw_log = [true, false]\n",
    );
    let cells = document(&place.run("sweep s.toml --json").ok()).cells;
    let names: Vec<String> = cells.iter().map(name).collect();
    assert_eq!(
        names,
        ["1 true fast", "1 false fast", "2 true fast", "2 false fast"]
    );
    let cells = document(&place.run("sweep --config s.toml --zip --json").ok()).cells;
    let names: Vec<String> = cells.iter().map(name).collect();
    assert_eq!(names, ["1 true fast", "2 false fast"]);
    let ran = place.run("sweep s.toml --zip --vary host.speed=1,2,3");
    assert!(
        ran.code == 2 && ran.err.starts_with("error: --zip takes the values in step, but host.speed has 3 and device.dies has 2\n  --> --vary host.speed=1,2,3\n             ^^^^^^^^^^\n"),
        "{}",
        ran.err
    );
    place.run("run --config s.toml").refused(
        "error: [vary] is for `floatgate sweep` alone\n  --> s.toml:5:2\n   |\n 5 | [vary]\n   |  ^^^^\n  help: floatgate sweep FILE, or leave the section out",
    );
    place.file("bad.toml", "[vary]\ndevice.dies = [1, \"9..2\"]\n");
    let ran = place.run("sweep bad.toml");
    assert!(
        ran.code == 2 && ran.err.starts_with("error: 9..2: the range goes down; write the smaller end first\n  --> bad.toml:2:19\n"),
        "{}",
        ran.err
    );
}

#[test]
fn traces_are_varied_too() {
    let place = Place::new();
    small_trace(&place);
    place.file("u.pages", "W 0 64\nW 0 64\nR 0 2\n");
    let ran = place
        .run("sweep --vary trace=t.pages,u.pages --scheme page --json --out s.csv --set host.arrivals=closed")
        .ok();
    let document = document(&ran);
    let traces: Vec<&str> = document.cells.iter().map(|cell| &*cell.trace).collect();
    assert_eq!(traces, ["t.pages", "u.pages"]);
    assert_eq!(document.traces[1].counts.accepted, 3);
    assert!(
        document.cells[0].device.unwrap().logical_bytes
            > document.cells[1].device.unwrap().logical_bytes
    );
    let csv = std::fs::read_to_string(place.path("s.csv")).unwrap();
    assert!(
        csv.starts_with("trace.file,trace,scheme,outcome,reason,asked_bytes,"),
        "{csv}"
    );
    assert!(csv.contains("\nu.pages,u.pages,page,ran,,"), "{csv}");
    let ran = place.run("sweep --trace t.pages --vary trace=t.pages,u.pages");
    assert!(
        ran.code == 2 && ran.err.contains("both name the trace"),
        "{}",
        ran.err
    );
    let ran = place.run("sweep --vary trace=t.pages,none.pages");
    assert!(
        ran.code == 2 && ran.err.contains("none.pages: cannot open the trace"),
        "{}",
        ran.err
    );
}

#[test]
fn what_is_wrong_with_what_varies_is_pointed_at() {
    let place = Place::new();
    small_trace(&place);
    for (vary, message) in [
        (
            "device.log_percent=20..3",
            "error: 20..3: the range goes down; write the smaller end first\n  --> --vary device.log_percent=20..3\n                                ^^^^^\n  help: ",
        ),
        (
            "device.log_precent=3,4",
            "error: no key device.log_precent\n  --> --vary device.log_precent=3,4\n             ^^^^^^^^^^^^^^^^^^\n  help: did you mean log_percent?\n",
        ),
        (
            "device.dies=4,none,8",
            "error: device.dies = \"none\": takes a whole number from 1 to 524288\n  --> --vary device.dies=4,none,8\n                           ^^^^\n",
        ),
        (
            "device.dies=4,,8",
            "error: device.dies: a value is missing\n  --> --vary device.dies=4,,8\n                           ^\n",
        ),
        (
            "dies=4",
            "error: what varies has the form section.key=values\n",
        ),
        ("compare.jobs=1,2", "error: compare.jobs cannot be varied\n"),
        (
            "scheme.name=fast,page",
            "error: scheme.name cannot be varied\n",
        ),
        ("schemes.fats.log_blocks=1,2", "error: no scheme \"fats\""),
        (
            "host.speed=0.001..9/0.001 --vary device.dies=1..64 --vary device.wear_gap=1..9",
            "error: these are more than 100000 combinations of values\n",
        ),
    ] {
        let ran = place.run(&format!("sweep --trace t.pages --vary {vary}"));
        assert!(
            ran.code == 2 && ran.out.is_empty() && ran.err.starts_with(message),
            "{vary}: {}",
            ran.err
        );
    }
    let ran =
        place.run("sweep --trace t.pages --vary device.dies=1,2 --vary device.dies=4 --out s.txt");
    assert!(
        ran.err.starts_with("error: device.dies is varied twice\n"),
        "{}",
        ran.err
    );
    let ran =
        place.run("sweep --trace t.pages --vary schemes.fast.sw_log=true,false --scheme page");
    assert!(
        ran.err.starts_with("error: schemes.fast.sw_log is varied, but its scheme does not run\n  --> --vary schemes.fast.sw_log="),
        "{}",
        ran.err
    );
    let ran = place.run("sweep --trace t.pages --vary device.dies=1,2 --out s.txt");
    assert!(
        ran.code == 2
            && ran
                .err
                .contains("s.txt: the file name does not tell the format"),
        "{}",
        ran.err
    );
    place.run("sweep --trace t.pages").refused(
        "error: nothing is varied\n  help: --vary device.log_percent=3..20, or a table [vary] in the configuration; `floatgate sweep --help` has examples",
    );
    assert_eq!(place.files(), ["t.pages"]);
}

#[test]
fn every_column_is_documented() {
    let text = include_str!("../../../docs/sweeps.md");
    let schema = schema();
    for definition in ["SweepDevice", "SweepFigures"] {
        let fields = schema["$defs"][definition]["properties"]
            .as_object()
            .unwrap();
        assert!(fields.len() > 10);
        for field in fields.keys() {
            assert!(text.contains(&format!("`{field}`")), "{field}");
        }
    }
}
