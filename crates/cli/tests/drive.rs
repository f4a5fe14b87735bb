//! A device as a drive, as users have it: a cache, a control socket, cuts, statistics.

mod common;

use std::process::{Command, Output};

use common::{Place, Running};
use serde_json::Value;

fn floatgate(place: &Place, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_floatgate"))
        .args(arguments)
        .current_dir(place.path(""))
        .output()
        .expect("the program runs")
}

fn told(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).expect("JSON")
}

#[test]
fn the_power_goes_and_comes_back_by_command() {
    let place = Place::new();
    let served = Running::new(
        &place,
        "serve --socket s --control c --memory 2MiB --write-cache 64KiB --cache-policy lru --read-cache 32KiB --real-time",
    );
    let control = |words: &[&str]| floatgate(&place, &[&["control", "c"], words].concat());
    let stat = |format: &str| floatgate(&place, &["stat", "c", format]);
    assert_eq!(told(&stat("--json"))["is_on"], true);
    assert_eq!(told(&stat("--json"))["cache"]["size_bytes"], 65536);
    assert_eq!(told(&stat("--json"))["cache"]["read_cache_bytes"], 32768);
    let armed = told(&control(&[
        "cut",
        "--at-write",
        "5",
        "--tear",
        "--seed",
        "3",
    ]));
    assert_eq!(armed["cut"], "write=5,unflushed=some,tear,seed=3");
    assert_eq!(told(&control(&["cut"]))["is_armed"], false);
    let again = control(&["cut"]);
    assert_eq!(
        (again.status.code(), &told(&again)["ok"]),
        (Some(1), &false.into())
    );
    let text = String::from_utf8(stat("--prometheus").stdout).expect("text");
    assert!(text.contains("\nfloatgate_power_on 0\n"), "{text}");
    assert_eq!(told(&control(&["on"]))["ok"], true);
    assert_eq!(told(&control(&["snapshot", "snap"]))["ok"], true);
    assert_eq!(told(&control(&["restore", "snap"]))["ok"], true);
    let shown = String::from_utf8(floatgate(&place, &["stat", "c"]).stdout).expect("text");
    assert!(shown.contains("power on, 1 power cuts"), "{shown}");
    assert_eq!(told(&control(&["shutdown"]))["ok"], true);
    let (code, errors) = served.end();
    assert_eq!(code, Some(0));
    let line = errors.lines().next().expect("a line");
    assert!(
        line.contains("again: --cut 'after=0,unflushed=some,seed=0'"),
        "{line}"
    );
    assert!(!place.path("c").exists(), "the socket is removed");
}

#[test]
fn what_makes_no_sense_is_refused() {
    let place = Place::new();
    for (words, named) in [
        ("serve --memory 2MiB --control c --cut write=0", "write=0"),
        ("serve --memory 2MiB --control c --cut tear", "when?"),
        ("serve --memory 2MiB --cut write=1", "--control"),
        ("serve --memory 2MiB --part ssdsim", "--real-time"),
        ("serve --memory 2MiB --real-time --part none", "ssdsim"),
        ("serve --memory 2MiB --write-cache much", "--write-cache"),
        (
            "serve --memory 2MiB --write-cache 1MiB --cache-policy fifo",
            "one of lru, bplru",
        ),
        ("serve --memory 2MiB --cache-protected", "--write-cache"),
        ("serve --memory 2MiB --read-ahead 4KiB", "--read-cache"),
        (
            "serve --memory 2MiB --read-cache 4KiB --read-ahead 8KiB",
            "no more than --read-cache",
        ),
        ("control nobody on", "nobody"),
        ("control nobody fly", "snapshot FILE"),
        ("control nobody mark", "mark wants a text"),
        ("stat nobody", "nobody"),
    ] {
        let words: Vec<&str> = words.split(' ').collect();
        let output = floatgate(&place, &words);
        let error = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{words:?}: {error}");
        assert!(error.contains(named), "{words:?}: {error}");
    }
}
