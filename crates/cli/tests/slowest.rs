//! The slowest request in the report of a run.

mod common;

use common::{Place, report_data, small_trace};
use serde_json::{Value, json};

/// What a run draws of its slowest request.
fn drawn(place: &Place, run: &str) -> Value {
    place.run(&format!("run {run} --report r.html")).ok();
    report_data(place, "r.html")["slowest"].take()
}

/// A write comes every 10 ms and a read 1 us later, on one die where nothing but cells takes time: 1500 us for an erase,
/// 200 us for a program, 25 us for a read. The pages are overwritten in their order, so that a block is empty when it is
/// reclaimed: the slowest is the read that comes after a write for which one is erased.
#[test]
fn a_read_behind_an_erase() {
    let place = Place::new();
    let both = |k: u64| {
        let (write, read) = (k % 32 * 2048, (k + 5) % 32 * 2048);
        let ms = k * 10_000;
        format!("{ms},{write},2048,W\n{},{read},2048,R\n", ms + 1)
    };
    let lines: String = (0..400).map(both).collect();
    place.file("t.csv", lines);
    let device =
        "--set device.mode=flat --set device.logical_pages=64 --set device.pages_per_block=8";
    let columns = "--columns time:us,offset:B,size:B,op";
    let slowest = drawn(
        &place,
        &format!("--scheme page --trace t.csv {columns} {device}"),
    );
    let read = slowest["request"].as_u64().expect("a number");
    let bar = |does, cause, request, from_ns, to_ns| json!({"lane": 0, "does": does, "cause": cause, "request": request, "from_ns": from_ns, "to_ns": to_ns});
    let expected = json!([
        bar("erase", "gc", read - 1, -1000, 1_499_000),
        bar("program", "host", read - 1, 1_499_000, 1_699_000),
        bar("read", "host", read, 1_699_000, 1_724_000),
    ]);
    assert_eq!(slowest["bars"], expected);
    assert_eq!(slowest["end_ns"], 1_724_000);
    let why = slowest["why"].as_str().expect("a sentence");
    let waited = "took 1.72 ms: it waited 1.70 ms for die 0 (1.50 ms gc, 200 us host), last for";
    assert!(why.contains(waited), "{why}");
}

/// On all clocks, with and without ageing and a queue: what the request did itself begins when it comes and ends with it.
#[test]
fn the_bars_of_the_request_lie_in_its_window_and_end_with_it() {
    let place = Place::new();
    small_trace(&place);
    let runs = [
        "--scheme fast",
        "--scheme page --set device.dies=4 --set device.channels=2",
        "--scheme page --set device.dies=4 --set run.ageing=overwrite:0.5 --slowest 3",
        "--scheme bast --set host.arrivals=closed --set host.queue_depth=8",
        "--scheme page --set device.dies=2 --set schedule.policy=read-first",
    ];
    for run in runs {
        let run = format!("{run} --trace t.pages");
        let slowest = drawn(&place, &run);
        let end_ns = slowest["end_ns"].as_i64().expect("an end");
        let record = place.run(&format!("run {run} --json")).ok().record();
        let longest_us = record.time.response.all.max_us;
        assert_eq!(Some(end_ns as f64 / 1000.0), longest_us, "{run}");
        let bars = slowest["bars"].as_array().expect("bars");
        let of = |bar: &Value, key: &str| bar[key].as_i64().expect("ns");
        let own = |bar: &&Value| bar["request"] == slowest["request"] && bar["cause"] == "host";
        let own: Vec<&Value> = bars.iter().filter(own).collect();
        assert!(own.iter().all(|bar| of(bar, "from_ns") >= 0), "{run}");
        let last_ns = own.iter().map(|bar| of(bar, "to_ns")).max();
        assert_eq!(last_ns, Some(end_ns), "{run}");
        // The others are there at least in part while it is in work.
        let is_in = |bar: &Value| of(bar, "from_ns") < end_ns && of(bar, "to_ns") >= 0;
        assert!(bars.iter().all(is_in), "{run}");
        let lanes = slowest["lanes"].as_array().expect("lanes").len() as i64;
        assert!(bars.iter().all(|bar| of(bar, "lane") < lanes), "{run}");
    }
}

/// To be drawn a request must be looked for; what is printed does not tell of that.
#[test]
fn the_result_is_the_same_with_and_without() {
    let place = Place::new();
    small_trace(&place);
    for run in ["", "--requests-out rows.csv", "--slowest 2"] {
        let run = format!("run --scheme fast --trace t.pages --json {run}");
        let plain = place.run(&run).ok().out;
        let with = place.run(&format!("{run} --report r.html")).ok().out;
        assert!(plain == with, "{run}");
    }
}

/// Rows of several flows are commands, which no trace has numbers for; and the saved state is that of the first run.
#[test]
fn flows_have_none_and_a_saved_device_is_played_twice() {
    let place = Place::new();
    small_trace(&place);
    let flows = "--scheme page --flow trace=t.pages --flow trace=t.pages";
    assert_eq!(drawn(&place, flows), Value::Null);
    let aged = "--scheme page --trace t.pages --set run.ageing=fill";
    let saved = drawn(&place, &format!("{aged} --save-state s.state"));
    let loaded = drawn(&place, "--trace t.pages --load-state s.state");
    assert!(saved["bars"].is_array() && saved == loaded);
}
