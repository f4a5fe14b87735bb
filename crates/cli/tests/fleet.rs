//! Fleets: every volume of a trace on a device of its own.

mod common;

use common::{Place, cell, rows};
use floatgate::library::{Fleet, Replayed, SplitFleet, VolumeErrand, fleet_args, play_volume};
use floatgate_sim::record::bench::{BenchDocument, BenchOutcome};
use floatgate_sim::record::fleet::FleetDocument;
use parquet::record::{Field, Row};

/// An Alibaba trace: `volumes` volumes that take turns, the higher its number the more a volume writes.
fn alibaba(volumes: u64, rounds: u64) -> String {
    let mut state = 7_u64;
    let mut random = |n: u64| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (state >> 33) % n
    };
    let mut text = String::new();
    for i in 0..rounds {
        let volume = i % volumes;
        let op = if random(volumes + 1) <= volume {
            'W'
        } else {
            'R'
        };
        let page = random(1024 << (volume % 2));
        let bytes = 4096 * (1 + random(2));
        text.push_str(&format!(
            "{volume},{op},{},{bytes},{}\n",
            page * 4096,
            10_000 + i * 250
        ));
    }
    text
}

fn text(row: &Row, name: &str) -> String {
    match cell(row, name) {
        Field::Str(text) => text,
        other => panic!("{name} is no text: {other:?}"),
    }
}

fn whole(row: &Row, name: &str) -> u64 {
    match cell(row, name) {
        Field::ULong(n) => n,
        other => panic!("{name} is no whole number: {other:?}"),
    }
}

fn real(row: &Row, name: &str) -> f64 {
    match cell(row, name) {
        Field::Double(x) => x,
        other => panic!("{name} is no number: {other:?}"),
    }
}

#[test]
fn a_volume_of_a_fleet_is_the_volume_run_alone() {
    let place = Place::new();
    place.file("a.csv", alibaba(3, 9_000));
    let ran = place
        .run("fleet a.csv --scheme page,fast --out f.parquet --jobs 2")
        .ok();
    assert!(
        ran.err.starts_with(
            "Trace:  a.csv (1 file): 3 volumes, 9,000 requests accepted, 0 records skipped\n"
        ),
        "{}",
        ran.err
    );
    assert!(
        ran.err.contains("\nVolumes: 6 rows in f.parquet\n"),
        "{}",
        ran.err
    );
    let rows = rows(&place, "f.parquet");
    let keys: Vec<String> = rows
        .iter()
        .map(|row| format!("{} {}", text(row, "volume"), text(row, "scheme")))
        .collect();
    assert_eq!(
        keys,
        ["0 page", "0 fast", "1 page", "1 fast", "2 page", "2 fast"]
    );
    for row in &rows {
        let (volume, scheme) = (text(row, "volume"), text(row, "scheme"));
        let alone = place
            .run(&format!(
                "run --scheme {scheme} --trace a.csv --set trace.volume=\"{volume}\" --json"
            ))
            .ok();
        let record = alone.record();
        let flash = &record.counters.flash;
        for (column, wanted) in [
            ("requests", alone.document().trace.counts.accepted),
            ("host_page_writes", record.counters.host.page_writes),
            ("flash_page_programs", flash.programs.sum()),
            ("flash_page_reads", flash.reads.sum()),
            ("flash_spare_reads", flash.oob_reads.sum()),
            ("erases", record.derived.erases),
            ("device_bytes", record.device.logical_bytes),
            ("block_erases_max", record.wear.max.into()),
        ] {
            assert_eq!(whole(row, column), wanted, "{column}");
        }
        for (column, wanted) in [
            (
                "write_amplification",
                record.derived.write_amplification.unwrap(),
            ),
            ("response_p99_us", record.time.response.all.p99_us.unwrap()),
            ("elapsed_s", record.time.elapsed_s),
            ("energy_uj", record.energy.total_uj),
        ] {
            assert_eq!(real(row, column), wanted, "{column}");
        }
    }
}

/// Every separation on every volume, as if each were run alone; nothing does as well as what knows the future.
#[test]
fn separations_over_the_volumes_of_a_fleet() {
    let place = Place::new();
    let volumes = [2048, 4096, 6144].map(|space| {
        let requests = 6 * space;
        format!("zipf:space={space}:theta=1.0:requests={requests}:seed={space}")
    });
    let schemes = ["none", "dac", "sepbit", "fk"].map(|name| format!("page:separation={name}"));
    let settings = "--set scheme.gc_policy=cost-benefit --set device.spare_percent=40";
    let (traces, named) = (volumes.join(" "), schemes.join(","));
    let ran = place
        .run(&format!(
            "fleet {traces} --scheme {named} {settings} --out f.parquet --json"
        ))
        .ok();
    let fleet: FleetDocument = serde_json::from_str(&ran.out).unwrap();
    let rows = rows(&place, "f.parquet");
    assert_eq!(rows.len(), volumes.len() * schemes.len());
    for row in &rows {
        let (volume, scheme) = (text(row, "volume"), text(row, "scheme"));
        let alone = place
            .run(&format!(
                "run --scheme {scheme} --trace {volume} {settings} --json"
            ))
            .ok()
            .record();
        let flash = &alone.counters.flash;
        for (column, wanted) in [
            ("host_page_writes", alone.counters.host.page_writes),
            ("flash_page_programs", flash.programs.sum()),
            ("flash_page_reads", flash.reads.sum()),
            ("copies", alone.derived.copies),
            ("erases", alone.derived.erases),
            ("blocks_per_die", alone.device.blocks.into()),
        ] {
            assert_eq!(whole(row, column), wanted, "{volume} {scheme} {column}");
        }
    }
    for of_volume in rows.chunks(schemes.len()) {
        let found = of_volume.iter().map(|row| real(row, "write_amplification"));
        let found: Vec<f64> = found.collect();
        let (oracle, others) = found.split_last().unwrap();
        assert!(others.iter().all(|other| oracle < other), "{found:?}");
    }
    for (i, (summary, scheme)) in fleet.results.iter().zip(&schemes).enumerate() {
        assert_eq!(summary.scheme, *scheme);
        let own = || rows.iter().skip(i).step_by(schemes.len());
        let sum = |column: &str| own().map(|row| whole(row, column)).sum::<u64>() as f64;
        let overall = sum("flash_page_programs") / sum("host_page_writes");
        let weighted = summary.write_amplification.mean_weighted_by_host_writes;
        assert!((weighted.unwrap() / overall - 1.0).abs() < 1e-12);
    }
}

/// An option of one scheme's own that takes more spare blocks counts for the size, and the device is that of all.
#[test]
fn a_volume_has_one_device_that_takes_every_scheme_named() {
    let place = Place::new();
    place.file("a.csv", alibaba(1, 500));
    let blocks = |schemes: &str| {
        place
            .run(&format!(
                "fleet a.csv --scheme {schemes} --set device.spare_percent=7 --out f.parquet"
            ))
            .ok();
        let rows = rows(&place, "f.parquet");
        let blocks = rows.iter().map(|row| whole(row, "blocks_per_die"));
        blocks.collect::<Vec<_>>()
    };
    let alone = blocks("page");
    let hungry = "page:separation=hint:hint_handles=40";
    let both = blocks(&format!("page,{hungry}"));
    assert!(both[0] > alone[0] && both[0] == both[1], "{both:?}");
    assert_eq!(blocks(hungry), both[..1]);
}

#[test]
fn the_summary_tells_what_the_rows_tell() {
    let place = Place::new();
    place.file("a.csv", alibaba(5, 12_000));
    let ran = place.run("fleet a.csv --out f.parquet --json").ok();
    let fleet: FleetDocument = serde_json::from_str(&ran.out).unwrap();
    let rows = rows(&place, "f.parquet");
    let summary = &fleet.results[0];
    for (of, column) in [
        (&summary.write_amplification, "write_amplification"),
        (&summary.response_p99_us, "response_p99_us"),
    ] {
        let mut values: Vec<f64> = rows.iter().map(|row| real(row, column)).collect();
        let weights: Vec<f64> = rows
            .iter()
            .map(|row| whole(row, "host_page_writes") as f64)
            .collect();
        let weighted: f64 = values.iter().zip(&weights).map(|(v, w)| v * w).sum();
        let weighted = weighted / weights.iter().sum::<f64>();
        values.sort_by(f64::total_cmp);
        assert_eq!(of.volumes, 5);
        assert_eq!(
            [of.min, of.median, of.p95, of.max],
            [values[0], values[2], values[4], values[4]].map(Some),
            "{column}"
        );
        let mean = of.mean_weighted_by_host_writes.unwrap();
        assert!((mean / weighted - 1.0).abs() < 1e-12);
    }
    let again = place.run("fleet a.csv --json --jobs 1").ok().out;
    assert_eq!(again, ran.out, "the order of the work changes nothing");
    let table = place.run("fleet a.csv").ok().out;
    for line in ["write amplification  page", "p99 response time    page"] {
        assert!(table.lines().any(|l| l.starts_with(line)), "{table}");
    }
}

#[test]
fn a_folder_of_single_volume_traces_with_a_broken_one() {
    let place = Place::new();
    std::fs::create_dir(place.path("t")).unwrap();
    place
        .file("t/a.pages", "W 0 8\nW 4 8\nR 0 2\n")
        .file("t/b.pages", "W 0 1\n")
        .file("t/c.pages", "W 0 1\nW zero 1\n")
        .file("t/.hidden", "W");
    let ran = place.run("fleet t --out f.csv --report f.html");
    assert_eq!(ran.code, 2);
    assert!(
        ran.err.contains("error: 1 of 3 replays could not be made, the first: volume c, page: t/c.pages, line 2: "),
        "{}",
        ran.err
    );
    let lines = std::fs::read_to_string(place.path("f.csv")).unwrap();
    // The error has several lines, in quotes; rows begin with the volume.
    let begins: Vec<&str> = lines
        .lines()
        .filter(|line| {
            ["volume,", "a,", "b,", "c,"]
                .iter()
                .any(|start| line.starts_with(start))
        })
        .map(|line| line.split(',').next().unwrap())
        .collect();
    assert_eq!(begins, ["volume", "a", "b", "c"]);
    assert!(lines.contains("\nb,page,,1,0,0,"), "{lines}");
    let report = std::fs::read_to_string(place.path("f.html")).unwrap();
    assert!(report.starts_with("<!doctype html>") && report.contains("\"cumulative\""));
}

#[test]
fn volumes_of_a_name_go_on_in_the_next_file_or_not() {
    let place = Place::new();
    place
        .file("1.csv", "100,0,8,1,77\n101,8,8,1,5\n")
        .file("2.csv", "103,16,8,0,77\n");
    let volumes = |arguments: &str| {
        place
            .run(&format!("fleet 1.csv 2.csv --out f.parquet {arguments}"))
            .ok();
        let rows = rows(&place, "f.parquet");
        let volume = |row: &Row| format!("{} {}", text(row, "volume"), whole(row, "requests"));
        rows.iter().map(volume).collect::<Vec<_>>()
    };
    assert_eq!(volumes(""), ["77 2", "5 1"]);
    assert_eq!(volumes("--volumes-by file"), ["1:77 1", "1:5 1", "2 1"]);
}

#[test]
fn what_cannot_be_done_is_said_before_anything_is_read() {
    let place = Place::new();
    place.file("a.csv", alibaba(2, 100));
    place.run("fleet").refused(
        "error: no trace was named\n  help: floatgate fleet TRACE..., a file or a folder; `floatgate fleet --help` has examples",
    );
    let ran = place.run("fleet a.csv --out f.txt");
    assert!(
        ran.code == 2
            && ran
                .err
                .contains("f.txt: the file name does not tell the format"),
        "{}",
        ran.err
    );
    let ran = place.run("fleet a.csv --scheme fsat");
    assert!(
        ran.code == 2 && ran.err.contains("did you mean fast?"),
        "{}",
        ran.err
    );
    let ran = place.run("fleet missing.csv");
    assert!(
        ran.code == 2 && ran.err.contains("missing.csv: cannot open the trace"),
        "{}",
        ran.err
    );
    // A device that cannot hold its volume fails for each of them, and says which.
    let ran = place.run("fleet a.csv --set device.capacity_mib=1 --set device.dies=1");
    assert!(
        ran.code == 2 && ran.err.contains("volume 0, page: volume 0, request "),
        "{}",
        ran.err
    );
    assert_eq!(place.files(), ["a.csv"]);
}

#[test]
fn a_benchmark_measures_every_scheme_or_says_why_not() {
    let place = Place::new();
    let ran = place.run("bench --size 1GiB --time 0.002 --json").ok();
    let bench: BenchDocument = serde_json::from_str(&ran.out).unwrap();
    assert_eq!(bench.memory_measured_as, "bytes allocated");
    let schemes = place.run("schemes --json").ok().json();
    assert_eq!(Some(bench.results.len()), schemes.as_array().map(Vec::len));
    for result in &bench.results {
        let BenchOutcome::Measured(of) = result else {
            panic!("{result:?}");
        };
        assert!(
            of.write_amplification >= 1.0
                && of.random_writes.host_pages_per_s > 0.0
                && of.random_writes_to_bare > 0.0
                && of.mixed.flash_operations > 0
                && of.sequential_writes.host_pages > 0
                && (0.1..100.0).contains(&of.bytes_per_flash_page),
            "{of:?}"
        );
    }
    let ran = place
        .run("bench --size 1GiB --time 0.002 --scheme page --dies 16 --channels 4")
        .ok();
    assert!(ran.err.contains("16 dies on 4 channels"), "{}", ran.err);
    assert!(
        ran.out.lines().any(|line| line.starts_with("bare loop ")),
        "{}",
        ran.out
    );
    let ran = place.run("bench --size 16MiB");
    assert!(
        ran.code == 2 && ran.err.contains("is too small for 8 dies"),
        "{}",
        ran.err
    );
    let ran = place.run("bench --size tiny");
    assert!(
        ran.code == 2 && ran.err.contains("a size such as"),
        "{}",
        ran.err
    );
}

/// What came of a fleet, to be compared.
fn told(replayed: &Replayed) -> (String, Vec<Vec<u64>>, Vec<String>, Option<String>) {
    let failures = replayed.failures.as_ref().err();
    (
        serde_json::to_string(&replayed.summary).expect("text"),
        replayed.rows.rows.clone(),
        replayed.rows.texts.clone(),
        failures.map(ToString::to_string),
    )
}

/// Volumes that are sent in words and replayed elsewhere, where the trace may lie in another folder, come to the same fleet.
#[test]
fn volumes_that_are_replayed_elsewhere_come_to_the_same_fleet() {
    let place = Place::new();
    std::fs::create_dir(place.path("t")).unwrap();
    place.file("t/a.csv", alibaba(3, 6_000));
    place.file("t/b.csv", format!("{}nonsense\n", alibaba(2, 1_500)));
    let (program, folder) = (floatgate::Cli::new(), place.path("t").display().to_string());
    let words: Vec<String> = [
        "--volumes-by",
        "file",
        "--scheme",
        "page,fast",
        "--",
        &folder,
    ]
    .map(Into::into)
    .into();
    let (args, schemes) = (fleet_args(&words).unwrap(), program.schemes());
    let here = Fleet::of(&args, schemes).unwrap();
    let here = here.replay(&args, &|| {}, &mut |_| {}).unwrap();
    assert!(here.failures.is_err(), "a volume ends in nonsense");
    let split = SplitFleet::of(&args, schemes, &|| {}).unwrap();
    let sent = split.sent(&args, &words, "");
    assert_eq!(sent.len(), 3, "of b.csv nothing can be replayed");
    let mut came = Vec::new();
    came.resize_with(split.volumes(), || None);
    for volume in &sent {
        let text = serde_json::to_string(&volume.errand).unwrap();
        let errand: VolumeErrand = serde_json::from_str(&text).unwrap();
        let args = fleet_args(&errand.words).unwrap();
        let played = play_volume(&errand, &args, schemes, &|| {}).unwrap();
        let text = serde_json::to_string(&played).unwrap();
        came[volume.volume] = Some(Ok(serde_json::from_str(&text).unwrap()));
    }
    assert_eq!(told(&split.replayed(came).unwrap()), told(&here));
    // A trace that is another one by now.
    place.file("t/a.csv", alibaba(3, 6_001));
    let other = play_volume(&sent[0].errand, &args, schemes, &|| {}).unwrap_err();
    assert!(
        other.message().contains("comes to other runs here"),
        "{other}"
    );
}

/// What an address names lies in a copy; results and messages say the address.
#[test]
fn a_copy_stands_for_what_an_address_names() {
    let place = Place::new();
    place.file("copy.csv", alibaba(2, 3_000));
    place.file("broken.csv", format!("{}nonsense\n", alibaba(2, 3_000)));
    let by_name = place.run("run --trace copy.csv --json").ok().document();
    let words = "run --copy s3://bucket/a.csv copy.csv --trace s3://bucket/a.csv --json";
    let by_address = place.run(words).ok().document();
    assert_eq!(by_address.results, by_name.results);
    assert_eq!(by_address.trace.name, "s3://bucket/a.csv");
    let fleet = "fleet --copy s3://bucket/a.csv copy.csv s3://bucket/a.csv --out f.csv";
    place.run(fleet).ok();
    place.run("fleet copy.csv --out g.csv").ok();
    let read = |file: &str| std::fs::read_to_string(place.path(file)).unwrap();
    assert_eq!(read("f.csv"), read("g.csv"));
    for (copy, told) in [
        ("broken.csv", "s3://bucket/a.csv, line 3001"),
        ("nowhere.csv", "it should lie at nowhere.csv"),
    ] {
        let words = format!("run --copy s3://bucket/a.csv {copy} --trace s3://bucket/a.csv");
        let ran = place.run(&words);
        assert!(ran.code == 2 && ran.err.contains(told), "{}", ran.err);
    }
}
