//! Generated workloads and the page cache, from the command line to the counters of a run.

mod common;

use common::Place;

/// The device of BLogFTL's Table 7: 1,108 data blocks and 512 log blocks of 128 pages, empty at first.
fn table_7(place: &Place, scheme: &str, trace: &str, more: &str) -> (u64, u64) {
    let record = place
        .run(&format!(
            "run --scheme {scheme} --trace {trace} --json --set device.part=k9g4g08u0a --set device.dies=1 \
             --set device.logical_pages=141824 --set device.blocks_per_die=1624 --set device.mode=flat \
             --set host.arrivals=closed --set host.queue_depth=1 --set run.start=empty --set scheme.log_blocks=512 {more}"
        ))
        .ok()
        .record();
    (record.derived.copies, record.derived.erases)
}

fn randomness(place: &Place, out: &str, more: &str) {
    place
        .run(&format!(
            "trace generate randomness --page-bytes 2048 --out {out} {more}"
        ))
        .ok();
}

/// Copies and erases that an independent simulator of BLog, written from its page, counted for the same options.
#[test]
fn options_of_blog_as_counted_by_another_simulator() {
    let place = Place::new();
    for (share, mapped, valid) in [
        (20, (82_048, 1581), (78_976, 1557)),
        (60, (110_528, 1807), (80_128, 1567)),
    ] {
        let params =
            format!("--set space=76288 --set requests=4096 --set n=64 --set random={share}");
        randomness(&place, "t.pages", &params);
        assert_eq!(table_7(&place, "blog", "t.pages", ""), mapped);
        let by_validity = "--set scheme.association=valid";
        assert_eq!(table_7(&place, "blog", "t.pages", by_validity), valid);
    }
    let params = "--set space=141824 --set requests=262144 --set random=60";
    randomness(&place, "storm.pages", params);
    let space_gc = "--set scheme.situation2=space_gc";
    assert_eq!(
        table_7(&place, "blog", "storm.pages", space_gc),
        (177_091, 2283)
    );
}

/// The same behind a page cache, where BLog copies less than Superblock FTL.
#[test]
fn a_page_cache_as_counted_by_another_simulator() {
    let place = Place::new();
    let params = "--set space=76288 --set requests=32768 --set n=8 --set random=20 --set sequential=continue";
    let cache = "dirty_pages=22528,chunk=2048,count=flash";
    randomness(&place, "t.pages", &format!("{params} --pagecache {cache}"));
    assert_eq!(table_7(&place, "superblock", "t.pages", "").0, 206_208);
    assert_eq!(table_7(&place, "blog", "t.pages", ""), (178_320, 2386));
}

/// A cache in the configuration, in `convert` and in `info` is one and the same; what it takes is checked.
#[test]
fn a_page_cache_wherever_traces_are_read() {
    let place = Place::new();
    place
        .run("trace generate zipf --set space=4096 --set requests=20000 --set reads=20 --out t.pages")
        .ok();
    let cache = "dirty_pages=500,chunk=100,count=host";
    place
        .run(&format!(
            "trace convert t.pages c.pages --pagecache {cache}"
        ))
        .ok();
    let written = place.run("trace info c.pages --json").ok().json();
    let seen = place
        .run(&format!("trace info t.pages --json --pagecache {cache}"))
        .ok()
        .json();
    assert_eq!(written["statistics"], seen["statistics"]);
    let plain = place.run("trace info t.pages --json").ok().json();
    let page_writes =
        |json: &serde_json::Value| json["statistics"]["page_writes"].as_u64().unwrap();
    assert!(page_writes(&seen) < page_writes(&plain) * 3 / 4);
    assert_eq!(
        seen["statistics"]["distinct_pages_written"],
        plain["statistics"]["distinct_pages_written"]
    );
    place.file(
        "c.toml",
        format!("[trace]\nfile = \"t.pages\"\npagecache = \"{cache}\"\n"),
    );
    let by_file = place
        .run("run --scheme page --json --config c.toml")
        .ok()
        .record();
    let direct = place
        .run("run --scheme page --json --trace c.pages")
        .ok()
        .record();
    assert_eq!(by_file.counters.flash, direct.counters.flash);
    assert_eq!(by_file.counters.host, direct.counters.host);

    let refused = place.run("run --scheme page --trace t.pages --set trace.pagecache=pages=4");
    assert_eq!(refused.code, 2, "{}", refused.err);
    assert!(
        refused.err.contains("trace.pagecache") && refused.err.contains("dirty_pages"),
        "{}",
        refused.err
    );
    let never = place.run("trace generate uniform --set space=100 --pagecache --out x.pages");
    assert_eq!(never.code, 2, "{}", never.err);
    assert!(
        never.err.contains("only 100 different pages"),
        "{}",
        never.err
    );
    let shown = place.run("trace info t.pages --log-sizes 5%,200").ok().out;
    assert!(
        shown.contains("survivors") && shown.contains("5.00 %"),
        "{shown}"
    );
}

/// Two processes of a blkparse text, and the same requests as page text with their numbers.
fn two_writers(place: &Place) {
    let mut text = String::from("8,16 0 1 0.000000000 5 Q R 0 + 8 [reader]\n");
    let mut pages = String::from("R 0 1 0\n");
    for i in 1..6000 {
        let (pid, page, stream) = match i % 3 {
            0 => (41, i / 3 * 7919 % 200, 1),
            _ => (900, 200 + i % 800, 0),
        };
        let ns = i * 1000;
        let sector = page * 8;
        text.push_str(&format!("8,16 0 1 0.{ns:09} {pid} Q WS {sector} + 8 [w]\n"));
        pages.push_str(&format!("W {page} 1 {ns} {stream}\n"));
    }
    place.file("t.blkparse", text).file("t.pages", pages);
}

#[test]
fn streams_by_process() {
    let place = Place::new();
    two_writers(&place);
    let played = |command: &str| {
        let command = format!(
            "{command} --scheme page --set scheme.separation=hint --set scheme.hint_handles=2 \
             --set device.dies=1 --set device.capacity_mib=4 --json"
        );
        let mut json = place.run(&command).ok().json();
        let mut record = json["results"][0].take();
        record["host"]["stream_by"].take();
        record
    };
    let by_process = played("run --trace t.blkparse --stream-by process");
    assert_eq!(by_process, played("run --trace t.pages"));
    assert_ne!(by_process, played("run --trace t.blkparse"));

    // A fleet and a sweep read the trace their own way.
    let fleet = |file_and_by: &str| {
        let device = "--set scheme.separation=hint --set scheme.hint_handles=2 --json";
        let command = format!("fleet {file_and_by} --scheme page {device}");
        let json = place.run(&command).ok().json();
        let mean = json["results"][0]["write_amplification"]["mean"].as_f64();
        mean.expect("a figure")
    };
    let by_process = fleet("t.blkparse --stream-by process");
    assert_eq!(by_process, fleet("t.pages"));
    assert_ne!(by_process, fleet("t.blkparse"));
    let swept = "sweep --trace t.blkparse --scheme page:separation=hint --set device.dies=1 \
                 --set device.capacity_mib=4 --vary host.stream_by=trace,process --json";
    let cells = place.run(swept).ok().json()["cells"].take();
    assert!(cells[1]["figures"].is_object());
    assert_ne!(cells[0]["figures"], cells[1]["figures"]);
}

#[test]
fn streams_by_process_of_a_trace_without_processes() {
    let place = Place::new();
    two_writers(&place);
    place.file("c.toml", "[host]\nstream_by = \"process\"\n");
    let files = place.files();
    let says = "does not say which process made a write\n  \
                = streams by process are for the formats blkparse, blktrace, hash-text\n  --> ";
    let flag = "--set host.stream_by=process\n";
    let key = "c.toml:2:13\n";
    for (command, at) in [
        (
            "run --trace t.pages --scheme page --requests-out r.csv --stream-by process",
            flag,
        ),
        (
            "run --scheme page --report r.html --stream-by process",
            flag,
        ),
        (
            "compare --trace zipf:space=64 --report r.html --config c.toml",
            key,
        ),
        (
            "fleet t.pages --scheme page --out r.csv --config c.toml",
            key,
        ),
    ] {
        let ran = place.run(command);
        assert_eq!((ran.code, ran.out.as_str()), (2, ""), "{command}");
        assert!(ran.err.contains(&format!("{says}{at}")), "{}", ran.err);
        assert_eq!(place.files(), files, "{command}");
    }
    let cached =
        "run --scheme page --trace t.blkparse --stream-by process --set trace.pagecache=chunk=4";
    let ran = place.run(cached);
    let says = "host.stream_by: no process makes the writes of a page cache\n  --> --set host.stream_by=process";
    assert_eq!(ran.code, 2);
    assert!(ran.err.contains(says), "{}", ran.err);
}
