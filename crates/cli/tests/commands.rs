//! Every command once, on small input.

mod common;

use common::{Place, small_trace};
use floatgate_sim::record::recovery::RecoveryDocument;
use floatgate_sim::record::{Document, Outcome, Record};

#[test]
fn help_has_examples() {
    let place = Place::new();
    for command in [
        "run",
        "compare",
        "sweep",
        "fleet",
        "bench",
        "recovery",
        "trace info",
        "trace convert",
        "trace generate",
        "image create",
        "image info",
        "image check",
        "image dump",
        "conform",
        "schemes",
        "parts",
        "config",
        "schema",
        "completions",
    ] {
        let ran = place.run(&format!("{command} --help")).ok();
        assert!(ran.out.contains("Example"), "{command}: {}", ran.out);
    }
    let ran = place.run("--help").ok();
    for command in [
        "run",
        "compare",
        "sweep",
        "fleet",
        "bench",
        "recovery",
        "trace",
        "image",
        "conform",
        "schemes",
        "parts",
        "config",
        "schema",
        "completions",
    ] {
        assert!(
            ran.out
                .lines()
                .any(|line| line.trim_start().starts_with(command)),
            "{command}"
        );
    }
}

#[test]
fn schemes_and_their_options() {
    let place = Place::new();
    let list = place.run("schemes").ok().out;
    for scheme in ["page", "block", "bast", "fast"] {
        assert!(
            list.lines()
                .any(|line| line.starts_with(&format!("{scheme} "))),
            "{scheme}"
        );
    }
    let fast = place.run("schemes fast").ok().out;
    assert!(
        fast.contains("log_blocks") && fast.contains("sw_log"),
        "{fast}"
    );
    let json = place.run("schemes fast --json").ok().json();
    assert_eq!(json["key"], "fast");
    assert!(json["options"].as_array().is_some_and(|options| {
        options
            .iter()
            .any(|o| o["key"] == "log_blocks" && o["unit"] == "blocks, device")
    }));
    // Each scheme's page must print.
    for scheme in place.run("schemes --json").ok().json().as_array().unwrap() {
        place
            .run_with(&["schemes", scheme["key"].as_str().unwrap()])
            .ok();
    }
}

#[test]
fn parts_completions_and_configuration() {
    let place = Place::new();
    assert!(
        place
            .run("parts")
            .ok()
            .out
            .lines()
            .any(|line| line.starts_with("ssdsim "))
    );
    assert_eq!(
        place
            .run("parts --json")
            .ok()
            .json()
            .as_array()
            .map(Vec::len),
        Some(11)
    );
    assert!(place.run("completions bash").ok().out.contains("floatgate"));
    let schema = place.run("config --schema").ok().json();
    assert!(schema["properties"]["device"]["properties"]["t_prog_us"].is_object());
}

#[test]
fn the_example_configuration_is_accepted_with_every_default_in_force() {
    let place = Place::new();
    small_trace(&place);
    let example = place.run("config").ok().out;
    // Keys that do show their default are made active; where only an example stands they are left alone.
    // There is no flow by default, so the keys of one have no table to stand in.
    let (mut shows_default, mut in_flow) = (false, false);
    let mut active = String::new();
    for line in example
        .lines()
        .take_while(|line| !line.contains("[schemes."))
    {
        in_flow = line == "# [[flow]]" || in_flow && !line.is_empty();
        let key = line
            .strip_prefix("# ")
            .filter(|_| shows_default && !in_flow && !line.contains("file = "));
        active.push_str(&format!("{}\n", key.unwrap_or(line)));
        shows_default = line.starts_with("## ") && !line.contains("(default: ");
    }
    place.file("a.toml", active);
    let given = place
        .run("run --config a.toml --trace t.pages --scheme page --json")
        .ok()
        .document();
    let default = place
        .run("run --trace t.pages --scheme page --json")
        .ok()
        .document();
    assert_eq!(given.results, default.results);
}

#[test]
fn a_run_prints_and_is_the_same_every_time() {
    let place = Place::new();
    small_trace(&place);
    let ran = place
        .run("run --scheme fast --trace t.pages --report r.html")
        .ok();
    assert!(
        ran.err
            .starts_with("Trace:  t.pages (pages): 6,000 requests accepted, "),
        "{}",
        ran.err
    );
    assert!(
        ran.err.contains("\nMemory: about ") && ran.err.contains("\nReport: r.html\n"),
        "{}",
        ran.err
    );
    for part in [
        "write amplification",
        "page programs",
        "erases of a block",
        "energy",
        "block map",
    ] {
        assert!(ran.out.contains(part), "{part}: {}", ran.out);
    }
    let run = || place.run("run --scheme fast --trace t.pages --json").ok();
    let first = run();
    assert_eq!(first.out, run().out);
    let record = first.record();
    assert_eq!(record.scheme, "fast");
    let merges = &record.counters.merges;
    assert!(merges.full > 0, "the default device merges: {merges:?}");
}

#[test]
fn overrides_win_over_the_file() {
    let place = Place::new();
    small_trace(&place);
    place.file(
        "a.toml",
        "[device]\ndies = 2\nt_prog_us = 300\ncapacity_mib = 8\n[scheme]\nname = \"bast\"\n",
    );
    let run = |sets: &str| {
        place
            .run(&format!(
                "run --config a.toml --trace t.pages --json {sets}"
            ))
            .ok()
            .document()
    };
    let scheme = |of: &Document| of.results[0].record().unwrap().scheme.clone();
    let given = run("");
    let device = &given.configuration.device;
    assert_eq!((device.dies, device.t_prog_us), (Some(2), 300.0));
    assert_eq!(scheme(&given), "bast");
    let other = run(
        "--set device.dies=1 --set device.t_prog_ns=250000 --set device.logical_pages=8192 --set scheme.name=fast",
    );
    let device = &other.configuration.device;
    assert_eq!(
        (device.dies, device.t_prog_us, device.logical_pages),
        (Some(1), 250.0, Some(8192))
    );
    assert_eq!(scheme(&other), "fast");
}

#[test]
fn a_scheme_alone_meets_the_device_that_it_meets_in_a_comparison() {
    let place = Place::new();
    small_trace(&place);
    let compared = place
        .run("compare --scheme page,bast,fast --trace t.pages --json --no-report")
        .ok()
        .document();
    for record in compared.results.iter().filter_map(Outcome::record) {
        let key = &record.scheme;
        let alone = place
            .run(&format!("run --scheme {key} --trace t.pages --json"))
            .ok()
            .record();
        let one_by_one = place
            .run(&format!(
                "run --scheme {key} --trace t.pages --json --set host.arrivals=closed --set host.queue_depth=1"
            ))
            .ok()
            .record();
        let mut record = record.clone();
        let measured = record.time.alone.take();
        assert_eq!(measured, Some(one_by_one.time.response.all), "{key}");
        assert!(alone == record, "{key}: the records differ");
    }
    assert_eq!(compared.results.len(), 3);
    assert_eq!(place.files(), ["t.pages"]);
}

#[test]
fn a_scheme_is_compared_with_itself_under_other_options() {
    let place = Place::new();
    small_trace(&place);
    let compared = place
        .run("compare --scheme fast,fast:sw_log=false:log_blocks=8 --trace t.pages --json --no-report")
        .ok()
        .document();
    let records = compared.results.iter().filter_map(Outcome::record);
    let names: Vec<&str> = records.map(|record| &*record.scheme).collect();
    assert_eq!(names, ["fast", "fast:sw_log=false:log_blocks=8"]);
    let other = place
        .run("run --scheme fast --set scheme.sw_log=false --set schemes.fast.log_blocks=8 --trace t.pages --json")
        .ok()
        .record();
    let record = compared.results[1].record().unwrap();
    assert_eq!(record.options, other.options);
    assert_eq!(record.counters, other.counters);
    assert_ne!(
        record.counters,
        compared.results[0].record().unwrap().counters
    );
    let run = place
        .run("run --scheme fast:sw_log=false --set scheme.log_blocks=8 --trace t.pages --json")
        .ok()
        .record();
    assert_eq!(run.scheme, "fast:sw_log=false");
    assert_eq!(run.counters, other.counters);
}

#[test]
fn what_the_device_has_instead_of_what_was_asked_is_said() {
    let place = Place::new();
    small_trace(&place);
    let run = "run --scheme page --trace t.pages --json --set device.dies=1 --set host.beyond=wrap";
    let notes = |more: &str| place.run(&format!("{run} {more}")).ok().document().notes;
    let told = notes(
        "--set device.capacity_mib=1 --set device.spare_percent=5 --set device.log_percent=3",
    );
    let told = told.join("\n");
    for part in [
        "the spare blocks grew from 5.0 % to",
        "so that page, bast, fmax and ",
        "3 % log blocks would be 0 a die; schemes with a log have 6 a die",
        "requests went beyond the end of the device and on from its begin",
    ] {
        assert!(told.contains(part), "{part}: {told}");
    }
    let told = notes("--set device.capacity_mib=30.0625").join("\n");
    assert!(
        told.contains("the capacity is 15,424 pages (30.1 MiB) instead of 15,392: whole blocks"),
        "{told}"
    );
    let told = notes("--set device.capacity_mib=32").join("\n");
    let silent = ["spare", "log blocks", "capacity", "beyond"];
    assert!(silent.iter().all(|part| !told.contains(part)), "{told}");
}

/// Of two requests nobody can say whether the device keeps up.
#[test]
fn a_trace_of_two_requests_is_no_reason_for_a_remark_on_arrivals() {
    let place = Place::new();
    place.file(
        "two.csv",
        "time_ns,op,offset,size\n0,W,0,4096\n1000,W,8192,4096\n",
    );
    let notes = place
        .run("run --trace two.csv --json")
        .ok()
        .document()
        .notes;
    assert!(
        !notes.iter().any(|note| note.contains("keep up")),
        "{notes:?}"
    );
}

#[test]
fn a_comparison_of_all_schemes_writes_its_report() {
    let place = Place::new();
    small_trace(&place);
    let ran = place.run("compare --trace t.pages").ok();
    assert!(
        ran.err.ends_with("Report: floatgate-report.html\n"),
        "{}",
        ran.err
    );
    let report = std::fs::read_to_string(place.path("floatgate-report.html")).unwrap();
    assert!(report.starts_with("<!doctype html>") && report.contains("\"results\""));
    assert!(
        !report.contains("http://") || !report.contains("src="),
        "nothing from a network"
    );
    let schemes = place.run("schemes --json").ok().json();
    for scheme in schemes.as_array().unwrap() {
        let start = format!("{} ", scheme["key"].as_str().unwrap());
        assert!(
            ran.out.lines().any(|line| line.starts_with(&start)
                && !line.contains("refused")
                && !line.contains("BUG")),
            "{start}: {}",
            ran.out
        );
    }
}

#[test]
fn a_run_without_garbage_collection_says_why() {
    let place = Place::new();
    place.file("w.pages", "W 0 1\nR 0 1\n");
    let ran = place.run("run --trace w.pages --scheme page").ok();
    assert!(
        ran.out
            .contains("Note: no garbage collection happened in page: the host wrote "),
        "{}",
        ran.out
    );
}

#[test]
fn traces_are_generated_converted_and_described() {
    let place = Place::new();
    small_trace(&place);
    assert_eq!(
        place
            .run("trace info t.pages --page-bytes 2048")
            .ok()
            .out
            .lines()
            .next(),
        Some("t.pages (pages): 6,000 requests accepted, 1 record skipped, 0 times clamped")
    );
    place
        .run("trace convert t.pages t.csv.zst --page-bytes 2048")
        .ok();
    let statistics = |file: &str| {
        place
            .run(&format!("trace info {file} --json --page-bytes 2048"))
            .ok()
            .json()["statistics"]
            .clone()
    };
    let (a, b) = (statistics("t.pages"), statistics("t.csv.zst"));
    for key in [
        "requests",
        "reads",
        "bytes_written",
        "footprint_bytes",
        "duration_ns",
        "write_reuse",
    ] {
        assert_eq!(a[key], b[key], "{key}");
    }
    assert!(place.run("trace generate").ok().out.contains("zipf: "));
    let info = place.run("trace info desktop --json").ok().json();
    assert_eq!(info["statistics"]["requests"], 41_051);
}

const VECTOR: &str = r#"{"scheme": "page", "config": {"dies": 1, "blocks": 5, "pages": 4, "logical_pages": 8, "start": "full"},
    "counters": {"host": {"page_reads": 1, "page_writes": 1, "page_trims": 0, "unwritten_reads": 0}, "flash": {"programs": {"host": 1}}}}"#;

#[test]
fn conformance_tells_equal_from_different() {
    let place = Place::new();
    place
        .file("a.json", VECTOR)
        .file("a.txt", "W 3 1 # a page\nR 3 1\n");
    assert_eq!(place.run("conform a.json").ok().out, "equal     a.json\n");
    place
        .file(
            "b.json",
            VECTOR.replace("\"page_reads\": 1", "\"page_reads\": 7"),
        )
        .file("b.txt", "W 3 1\nR 3 1\n");
    let ran = place.run("conform a.json b.json");
    assert_eq!(ran.code, 1);
    assert_eq!(
        ran.out,
        "equal     a.json\nDIFFERENT b.json\n    host.page_reads: expected 7, got 1\n"
    );
    let printed = place.run("conform --print b.json").ok().json();
    assert_eq!(
        (
            &printed["scheme"],
            &printed["counters"]["host"]["page_reads"]
        ),
        (&"page".into(), &1.into())
    );
    assert_eq!(place.run("conform missing.json").code, 2);
    place.file("c.json", VECTOR).file("c.txt", "W 3\n");
    let ran = place.run("conform c.json");
    assert!(
        ran.code == 2 && ran.out.contains("c.txt, line 1: "),
        "{}{}",
        ran.out,
        ran.err
    );
}

/// 65,536 data blocks a die and 7 % more, 1,024 log blocks: the device of LAST++, Tables I and III. 8,975,872 OOBs a die,
/// each of 175 + 50,000 + 3,200 ns, are 479.1 s.
#[test]
fn recovery_of_the_papers_device() {
    let place = Place::new();
    let printed = place.run("recovery --scheme page,bast").ok().out;
    let expected = "\
scheme  options       means       after   OOB reads  page reads  PCM reads  programs  erases  time
────────────────────────────────────────────────────────────────────────────────────────────────────
page                  full scan   a cut  71,806,976           0          0         0       0  479 s
bast    map_blocks=0  full scan   a cut  71,806,976           0          0         0       0  479 s
bast    map_blocks=3  full scan   a cut  71,806,976           8          0     1,040      32  479 s
bast    map_blocks=3  map blocks  a cut     265,216       1,032          0     1,040      32  1.93 s
";
    assert!(printed.starts_with(expected), "{printed}");
    let json = place.run("recovery --scheme bast --dies 4 --json").ok().out;
    let recovery: RecoveryDocument = serde_json::from_str(&json).unwrap();
    assert_eq!(recovery.rows.len(), 3);
    assert_eq!(recovery.rows[0].means, "full scan");
}

#[test]
fn recovery_of_what_cannot_be() {
    let place = Place::new();
    for (arguments, words) in [
        ("recovery --scheme nobody", "nobody"),
        ("recovery --size 1EiB", "EiB"),
        ("recovery --size 0", "from 1 byte"),
        ("recovery --part nothing", "no part nothing"),
        ("recovery --size 100TiB", "pages"),
        ("recovery --scheme bast --log-blocks 9", "cannot be divided"),
    ] {
        let ran = place.run(arguments);
        assert!(
            ran.code == 2 && ran.err.contains(words),
            "{arguments}: {}",
            ran.err
        );
    }
}

#[test]
fn wear_levelling_is_an_option_of_every_scheme() {
    let place = Place::new();
    place
        .run("trace generate skew --set space=2048 --set distinct=1024 --set writes=20000 --set x=90 --set arrival=fixed --set gap=400000 --page-bytes 2048 --out s.pages")
        .ok();
    let run = |scheme: &str, set: &str| {
        let ran = place.run(&format!(
            "run --scheme {scheme} --trace s.pages --json --set device.dies=1 {set}"
        ));
        ran.ok().record()
    };
    for scheme in ["page", "bast", "last++"] {
        let off = run(scheme, "");
        let dynamic = run(scheme, "--set device.wear_leveling=dynamic");
        let fixed = run(
            scheme,
            "--set scheme.wear_leveling=static --set scheme.wear_gap=4",
        );
        assert_eq!(off.wear.leveling, None);
        assert_eq!(off.counters, dynamic.counters, "{scheme}");
        assert_eq!(off.counters.host, fixed.counters.host, "{scheme}");
        let swaps = fixed.wear.leveling.expect("it is on").swaps;
        let erases = |record: &Record| record.counters.flash.erases.gc;
        assert_eq!(erases(&fixed), erases(&off) + swaps, "{scheme}");
        let (levelled, plain) = (fixed.wear.spread, off.wear.spread);
        assert!(levelled <= plain, "{scheme}: {levelled} {plain}");
    }
}

#[test]
fn a_table_is_the_trace_that_its_columns_say() {
    let place = Place::new();
    let mut table = String::from("When;Kind;Sector;Bytes\n");
    (0..300).for_each(|i| {
        table.push_str(&format!("{i}.5;{};{};4096\n", i % 2, i * 37 % 200 * 8));
    });
    place
        .file("t.csv", table)
        .file("a.toml", "[trace]\nfile = \"t.csv\"\nformat = \"msr\"\n");
    let columns = "time=When:ms,op=Kind:1=W/0=R,offset=Sector:sectors,size=Bytes:B";
    place
        .run(&format!(
            "trace convert t.csv t.parquet --columns {columns}"
        ))
        .ok();
    place
        .run(&format!("trace convert t.csv r.csv --columns {columns}"))
        .ok();
    let plain = place.run("run --trace r.csv --json").ok().record();
    let own = "time=arrival_ns:ns,op=op,offset=offset:B,size=bytes:B";
    for command in [
        format!("run --json --trace t.csv --columns {columns}"),
        format!("run --json --trace t.csv --set trace.columns={columns}"),
        format!("run --json --config a.toml --columns {columns}"),
        format!("run --json --trace t.parquet --columns {own}"),
        "run --json --trace t.parquet".to_owned(),
    ] {
        let record = place.run(&command).ok().record();
        assert_eq!(record.counters.host, plain.counters.host, "{command}");
        assert_eq!(
            record.time.response.all.p99_us, plain.time.response.all.p99_us,
            "{command}"
        );
    }
    let json = place
        .run(&format!("trace info t.csv --json --columns {columns}"))
        .ok()
        .json();
    assert_eq!(json["trace"]["format"], "columns");
    place
        .run(&format!(
            "compare --scheme page --no-report --trace t.csv --columns {columns}"
        ))
        .ok();
    place.run(&format!("fleet t.csv --columns {columns}")).ok();
}
