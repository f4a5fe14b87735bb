//! What the command prints for programs is what the structs of the record say, and what the committed schema says.

mod common;

use common::{Place, small_trace};
use floatgate_sim::config::StreamBy;
use floatgate_sim::record::bench::BenchDocument;
use floatgate_sim::record::fleet::FleetDocument;
use floatgate_sim::record::recovery::RecoveryDocument;
use floatgate_sim::record::sweep::{SweepCell, SweepDocument};
use floatgate_sim::record::{Document, Outcome, schema};
use jsonschema::Validator;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

const COMMITTED: &str = include_str!("../../../docs/record.schema.json");

/// A validator for one kind of document. The whole schema takes any of them, which would hide a wrong one.
fn validator(document: &str) -> Validator {
    let mut schema: Value = serde_json::from_str(COMMITTED).expect("docs/record.schema.json");
    let root = schema.as_object_mut().expect("an object");
    root.remove("anyOf").expect("any of the documents");
    root.insert("$ref".into(), format!("#/$defs/{document}").into());
    jsonschema::validator_for(&schema).expect("a schema that is sound")
}

/// What a command prints satisfies the schema, and a struct holds all of it: read and printed again it is the same
/// text.
#[track_caller]
fn holds<T: Serialize + DeserializeOwned>(place: &Place, command: &str, document: &str) -> T {
    let ran = place.run(command).ok();
    let json = ran.json();
    let errors: Vec<String> = validator(document)
        .iter_errors(&json)
        .map(|error| format!("{}: {error:.200}", error.instance_path()))
        .collect();
    assert!(errors.is_empty(), "{command}: {errors:#?}");
    let whole: Value = serde_json::from_str(COMMITTED).expect("docs/record.schema.json");
    assert!(jsonschema::is_valid(&whole, &json), "{command}");
    let read: T = serde_json::from_str(&ran.out).unwrap_or_else(|e| panic!("{command}: {e}"));
    let again = serde_json::to_string_pretty(&read).expect("it was read");
    let differs = ran.out.lines().zip(again.lines()).find(|(a, b)| a != b);
    assert_eq!(differs, None, "{command}");
    assert_eq!(ran.out.trim_end().len(), again.len(), "{command}");
    read
}

#[test]
fn the_committed_schema_is_the_one_of_the_structs() {
    let printed = Place::new().run("schema").ok();
    assert_eq!(printed.json(), schema());
    assert!(
        printed.out == COMMITTED,
        "the record has changed: see docs/record.md about its version, then\n  \
         cargo run --release -- schema > docs/record.schema.json"
    );
}

#[test]
fn every_field_of_the_schema_is_described() {
    let schema = schema();
    let definitions = schema["$defs"].as_object().expect("definitions");
    let mut missing = Vec::new();
    for (name, definition) in definitions {
        let fields = definition["properties"].as_object().into_iter().flatten();
        let fields = fields.map(|(field, of)| (format!("{name}.{field}"), of));
        for (path, of) in fields.chain([(name.clone(), definition)]) {
            if of["description"].as_str().is_none_or(str::is_empty) {
                missing.push(path);
            }
        }
    }
    assert!(missing.is_empty(), "{missing:?}");
    assert!(definitions.len() > 50, "{}", definitions.len());
}

#[test]
fn runs_are_as_the_schema_says() {
    let place = Place::new();
    small_trace(&place);
    place.file("one.pages", "W 0 1\nR 0 1\n");
    let ageing = "--set run.ageing=[\"overwrite:0.1\",\"settle\",\"replay\"]";
    for command in [
        "run --scheme page --trace t.pages --json --set device.wear_leveling=static --set device.dies=1",
        "run --scheme last++ --trace t.pages --json --set host.arrivals=closed",
        "run --scheme hat --trace one.pages --json --set run.start=empty",
        "run --scheme fmax --trace t.pages --json --set device.part=ssdsim --set device.copyback=true",
        &format!("run --scheme fast --trace t.pages --json {ageing}"),
    ] {
        let document: Document = holds(&place, command, "Document");
        assert!(document.results[0].record().is_some(), "{command}");
    }
}

#[test]
fn comparisons_are_as_the_schema_says_refusals_too() {
    let place = Place::new();
    small_trace(&place);
    let document: Document = holds(
        &place,
        "compare --trace t.pages --no-report --json",
        "Document",
    );
    let records = document.results.iter().filter_map(Outcome::record).count();
    let schemes = place.run("schemes --json").ok().json();
    assert_eq!(Some(records), schemes.as_array().map(Vec::len));
    let small = "--set device.capacity_mib=4 --set device.dies=1 --set device.blocks_per_die=40";
    let command = format!("compare --trace t.pages --no-report --json {small}");
    let document: Document = holds(&place, &command, "Document");
    let is_refused = |result: &&Outcome| result.record().is_none();
    assert!(
        document.results.iter().any(|result| is_refused(&result)),
        "no scheme was refused"
    );
}

#[test]
fn fleets_benchmarks_and_recovery_are_as_the_schema_says() {
    let place = Place::new();
    let line = |i: u64| format!("{},W,{},4096,{}\n", i % 3, i * 7919 % 500 * 4096, i * 300);
    place.file("a.csv", (0..3000).map(line).collect::<String>());
    let fleet: FleetDocument = holds(&place, "fleet a.csv --json", "FleetDocument");
    assert_eq!((fleet.volumes, fleet.configuration.device.dies), (3, None));
    let command = "fleet a.csv --json --set device.dies=2 --scheme fast";
    let fleet: FleetDocument = holds(&place, command, "FleetDocument");
    assert_eq!(fleet.configuration.device.dies, Some(2));
    let command = "bench --size 1GiB --time 0.002 --scheme page --json";
    let bench: BenchDocument = holds(&place, command, "BenchDocument");
    assert_eq!(bench.results.len(), 1);
    let recovery: RecoveryDocument = holds(&place, "recovery --json", "RecoveryDocument");
    assert!(recovery.rows.len() > 14);
}

#[test]
fn sweeps_are_as_the_schema_says_refusals_too() {
    let place = Place::new();
    small_trace(&place);
    let device = "--set device.dies=1 --set device.capacity_mib=4 --set host.beyond=wrap";
    let command = format!(
        "sweep --trace t.pages --json {device} --scheme page,fast --vary device.blocks_per_die=36,60 \
         --vary run.start=full,empty --vary host.speed=0.5,1 --vary device.copyback=true,false --vary device.sectors=3,4"
    );
    let sweep: SweepDocument = holds(&place, &command, "SweepDocument");
    let ran = |cell: &&SweepCell| cell.figures.is_some();
    assert_eq!(sweep.cells.len(), 64);
    // Half of them have sub-pages that do not divide a page; of the others FAST is refused its 36 blocks.
    assert_eq!(sweep.cells.iter().filter(ran).count(), 24);
}

/// A run is repeated by what its record says of it.
#[test]
fn where_streams_came_from_is_on_record() {
    let place = Place::new();
    small_trace(&place);
    let run = "run --scheme page --trace t.pages --set device.dies=1 --json";
    for (given, by) in [("", StreamBy::Trace), ("--stream-by size", StreamBy::Size)] {
        let document: Document = holds(&place, &format!("{run} {given}"), "Document");
        assert_eq!(document.configuration.host.stream_by, by);
        let record = document.results.iter().find_map(Outcome::record);
        assert_eq!(record.expect("a record").host.stream_by, by);
    }
}

/// Through a conversion too; a format without a place for them is said to lose them.
#[test]
fn the_streams_of_a_trace_are_told() {
    let place = Place::new();
    place.file("t.pages", "W 0 3 0 5\nW 8 1 0\nR 0 1 0\nW 0 1 0 2\n");
    place.run("trace convert t.pages t.csv").ok();
    let told = place.run("trace info t.csv").ok();
    let of = |start: &str| {
        let mut table = told
            .out
            .lines()
            .skip_while(|line| !line.starts_with("stream "));
        let line = table.find(|line| line.trim().starts_with(start));
        line.expect("a row").split_whitespace().collect::<Vec<_>>()
    };
    assert_eq!(of("5 ")[1..4], ["1", "33.3", "%"]);
    assert_eq!(of("none ")[1..6], ["1", "33.3", "%", "4.00", "KiB"]);
    let json = place.run("trace info t.csv --json").ok().json();
    let streams = json["statistics"]["streams"].as_array().expect("streams");
    let bytes = |i: usize| (&streams[i]["stream"], &streams[i]["bytes_written"]);
    assert_eq!(bytes(0), (&2.into(), &4096.into()));
    assert_eq!(bytes(1), (&5.into(), &12288.into()));
    let lost = place.run("trace convert t.csv t.5ns").ok();
    assert!(lost.out.contains("2 without their stream"), "{}", lost.out);
}

/// The schema is no empty promise: a field that is gone, renamed, or of another type is an error.
#[test]
fn the_schema_refuses_what_is_no_record() {
    let place = Place::new();
    small_trace(&place);
    let ran = place.run("run --scheme fast --trace t.pages --json").ok();
    let validator = validator("Document");
    let refuses = |from: &str, to: &str| {
        assert_eq!(ran.out.matches(from).count(), 1, "{from}");
        let changed = serde_json::from_str(&ran.out.replace(from, to)).expect("still JSON");
        assert!(!validator.is_valid(&changed), "{from} became {to}");
    };
    assert!(validator.is_valid(&ran.json()));
    refuses("\"write_amplification\":", "\"write_amplifcation\":");
    refuses("\"total_uj\":", "\"total_j\":");
    refuses("\"gc_overhead_us\":", "\"gc_overhead_us\": null, \"was\":");
    refuses("\"elapsed_s\":", "\"elapsed_s\": \"1\", \"was\":");
    refuses(
        "\"partial_write_reads\":",
        "\"partial_write_reads\": -1, \"was\":",
    );
    refuses("\"energy\":", "\"power\":");
}
