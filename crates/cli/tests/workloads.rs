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
