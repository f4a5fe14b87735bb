//! `floatgate papers` with a paper of the test's own: what is declared is run, compared and judged.

mod common;

use common::{Place, cell, rows};
use floatgate_sim::record::papers::{PapersDocument, Verdict};
use floatgate_sim::record::schema;
use parquet::record::Field;

const PAPER: &str = r#"
name = "Mine"
title = "A paper"
source = "Nobody, 2026"
items = ["writes", "example", "board"]

[[claim]]
number = 2
claim = "FAST copies more than page mapping"
paper_says = "twice"
item = "writes"
numbers = ["copies"]

[[claim]]
number = 1
claim = "a board says so"
paper_says = "11 %"
cannot = "there is no board"
"#;

const WRITES: &str = r#"
title = "Copies over the log"
place = "Fig. 1"
set = ["device.logical_pages=2048", "device.dies=1", "host.arrivals=closed", "trace.page_bytes=2048"]
why = { tested = "seeds 1 to 3 agree" }

[names]
fast = "FAST"

[figure]
copies = "{counters.flash.programs.gc} / {counters.host.page_writes}"
written = "{workload.page_writes}"

[[study]]
name = "random"
workload = "matched"
trace = "uniform:space=2048:requests=6000:seed={seed}"
seeds = 3
schemes = ["fast", "page"]
vary = ["device.log_percent=10,20,40"]
quick = { seeds = 2, vary = ["device.log_percent=10,40"] }

[[number]]
name = "copies"
text = "copies of FAST to those of page mapping"
figure = "copies"
scheme = "fast"
than = "page"
as = "times"
paper = 2
sense = "at_least"

[[number]]
text = "pages written"
figure = "written"
scheme = "page"
paper = 6000

[[number]]
text = "a larger log saves copies"
figure = "copies"
scheme = "fast"
than_at = { "device.log_percent" = 10 }
at = { "device.log_percent" = 40 }
as = "less"
paper = [1, 99]

[[plot]]
title = "Copies a page"
x = "device.log_percent"
y = "copies"
figure = "copies"
paper.page = [[10, 1000000], [20, 3]]
"#;

fn mine() -> Place {
    let place = Place::new();
    std::fs::create_dir_all(place.path("papers/mine")).unwrap();
    place
        .file("papers/mine/paper.toml", PAPER)
        .file("papers/mine/writes.toml", WRITES)
        .file(
            "papers/mine/example.toml",
            "title = \"Memory\"\nplace = \"Table 1\"\n[[exact]]\ntext = \"map\"\nscheme = \"page\"\nset = [\"device.logical_pages=65536\", \"device.dies=1\"]\nvalue = \"{tables.bytes}\"\npaper = 131072\nunit = \"bytes\"\nwithin = 0\n",
        )
        .file(
            "papers/mine/board.toml",
            "title = \"A board\"\nplace = \"Fig. 2\"\ncannot = \"there is no board\"\n",
        );
    place
}

fn document(out: &str) -> PapersDocument {
    serde_json::from_str(out).unwrap_or_else(|error| panic!("{error}: {out}"))
}

#[test]
fn what_is_declared_is_run_and_judged() {
    let place = mine();
    let ran = place
        .run("papers --folder papers --json --out n.parquet --out n.md")
        .ok();
    let json: serde_json::Value = serde_json::from_str(&ran.out).unwrap();
    let validator = jsonschema::validator_for(&schema()).unwrap();
    assert!(validator.is_valid(&json));
    let document = document(&ran.out);
    assert!(!document.is_full);
    let keys: Vec<&str> = document.items.iter().map(|item| &*item.item).collect();
    assert_eq!(keys, ["writes", "example", "board"]);

    let writes = &document.items[0];
    // Two seeds, two sizes of the log, two schemes.
    assert_eq!((writes.runs, &writes.failed[..]), (8, &[][..]));
    let [copies, pages, log, point] = &writes.numbers[..] else {
        panic!("{:?}", writes.numbers);
    };
    assert_eq!((copies.runs, copies.same_direction), (4, Some(4)));
    assert_eq!(copies.verdict, Verdict::Reproduced);
    assert_eq!(
        (pages.ours, pages.verdict),
        (Some(6000.0), Verdict::Reproduced)
    );
    assert_eq!((log.runs, log.verdict), (2, Verdict::Reproduced));
    // Of the paper's two points the quick form has one, and that is far away.
    assert_eq!(point.text, "page, log_percent = 10");
    assert_eq!(point.verdict, Verdict::NotReproduced);
    assert_eq!(writes.verdict, Verdict::SameDirection);
    assert_eq!(writes.plots[0].lines.len(), 2);
    assert_eq!(writes.plots[0].lines[0].name, "FAST");
    assert_eq!(writes.plots[0].lines[0].points.len(), 2);

    assert_eq!(document.items[1].verdict, Verdict::Reproduced);
    assert_eq!(document.items[2].verdict, Verdict::CannotBe);
    // By their numbers, and of the one that names a number only that.
    let claims: Vec<_> = document
        .claims
        .iter()
        .map(|row| (row.number, row.verdict))
        .collect();
    assert_eq!(claims, [(1, Verdict::CannotBe), (2, Verdict::Reproduced)]);
    assert_eq!(document.claims[1].numbers.len(), 1);

    let table = rows(&place, "n.parquet");
    assert_eq!(table.len(), 5);
    assert_eq!(cell(&table[1], "ours"), Field::Double(6000.0));
    assert_eq!(cell(&table[1], "verdict"), Field::Str("reproduced".into()));
    let page = std::fs::read_to_string(place.path("n.md")).unwrap();
    assert!(
        page.contains("| 2 | mine: FAST copies more than page mapping | twice |"),
        "{page}"
    );
    // No journal is left, and with --json no report is written.
    assert_eq!(place.files(), ["n.md", "n.parquet", "papers"]);
}

#[test]
fn the_commands_of_an_item_give_its_runs() {
    let place = mine();
    let ran = place.run("papers mine writes --folder papers --json").ok();
    let item = document(&ran.out).items.swap_remove(0);
    let [command] = &item.commands[..] else {
        panic!("{:?}", item.commands);
    };
    let arguments = command.strip_prefix("floatgate ").expect("a command");
    assert!(!arguments.contains('\''), "{arguments}");
    let sweep = place.run(&format!("{arguments} --json")).ok().json();
    let cells = sweep["cells"].as_array().unwrap();
    let copies = |scheme: &str| -> f64 {
        let own = cells.iter().filter(|cell| cell["scheme"] == scheme);
        own.map(|cell| cell["figures"]["copies"].as_f64().unwrap())
            .sum()
    };
    let line = |name: &str| -> f64 {
        let line = item.plots[0].lines.iter().find(|line| line.name == name);
        line.unwrap().points.iter().map(|point| point.mean).sum()
    };
    for (name, scheme) in [("FAST", "fast"), ("page", "page")] {
        let (ours, theirs) = (line(name) * 6000.0 * 2.0, copies(scheme));
        assert!(
            (ours - theirs).abs() < 1e-6 * theirs,
            "{scheme}: {ours} {theirs}"
        );
    }
}

#[test]
fn the_full_form_has_every_point_and_goes_on_after_a_stop() {
    let place = mine();
    let full = "papers mine writes --folder papers --full --no-report --out n.csv";
    place.run(full).ok();
    let first = std::fs::read(place.path("n.csv")).unwrap();
    assert!(String::from_utf8_lossy(&first).contains("page, log_percent = 20"));
    // What a stopped run leaves is its journal; here that of a sweep of the same cells, cut in its last line.
    place
        .run("papers mine writes --folder papers --no-report --out n.csv")
        .ok();
    assert_ne!(std::fs::read(place.path("n.csv")).unwrap(), first);
    place.run(full).ok();
    assert_eq!(std::fs::read(place.path("n.csv")).unwrap(), first);
}

#[test]
fn mistakes_are_told_and_nothing_is_written() {
    let place = mine();
    let told = |arguments: &str, words: &[&str]| {
        let ran = place.run(arguments);
        assert_eq!((ran.code, &*ran.out), (2, ""), "{}", ran.err);
        for word in words {
            assert!(ran.err.contains(word), "{}", ran.err);
        }
    };
    told("papers fasterr", &["no paper fasterr", "faster"]);
    told("papers faster table-3", &["did you mean table-2?"]);
    told(
        "papers --folder nowhere",
        &["cannot read the folder nowhere"],
    );
    told("papers --folder papers/mine", &["paper.toml"]);
    told("papers --folder papers --out x.txt", &["x.txt"]);
    for (wrong, words) in [
        (
            "figure = \"copies\"\nscheme = \"page\"\npaper = 6000",
            "figure = \"copied\"\nscheme = \"page\"\npaper = 6000",
        ),
        ("as = \"times\"\n", ""),
        (
            "schemes = [\"fast\", \"page\"]",
            "schemes = [\"fast\", \"pages\"]",
        ),
        ("workload = \"matched\"", "workload = \"exact\""),
        ("/ {counters.host.page_writes}", "/"),
    ]
    .map(|(from, to)| (WRITES.replacen(from, to, 1), to))
    .into_iter()
    .filter(|(text, _)| text != WRITES)
    {
        place.file("papers/mine/writes.toml", &wrong);
        let ran = place.run("papers --folder papers --out n.csv");
        assert_eq!((ran.code, &*ran.out), (2, ""), "{words}: {}", ran.err);
    }
    assert_eq!(place.files(), ["papers"]);
    // Seen only in a record: the runs are there when it is mended.
    let wrong = WRITES.replace("{workload.page_writes}", "{workload.pages}");
    place.file("papers/mine/writes.toml", wrong);
    told(
        "papers --folder papers --out n.csv",
        &["mine/writes.toml, figure written", "no pages there"],
    );
    place.file("papers/mine/writes.toml", WRITES);
    place
        .run("papers --folder papers --no-report --out n.csv")
        .ok();
    assert_eq!(place.files(), ["n.csv", "papers"]);
}
