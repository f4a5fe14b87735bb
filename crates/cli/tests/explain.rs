//! `floatgate explain`: the words say what the record says, and no file is too odd for it.

mod common;

use std::io::Write;
use std::process::{Command, Stdio};

use common::{Place, small_trace};
use floatgate_core::rng::SplitMix64;

/// A result of two schemes.
fn compared(place: &Place) -> String {
    small_trace(place);
    let ran = place
        .run("compare --json --trace t.pages --scheme page,fast --set device.page_bytes=2048 --set scheme.log_blocks=20")
        .ok();
    place.file("r.json", &ran.out);
    ran.out
}

#[test]
fn the_words_have_the_numbers_of_the_record() {
    let place = Place::new();
    small_trace(&place);
    for scheme in ["page", "fast", "dftl", "hat"] {
        let ran = place
            .run(&format!(
                "run --json --trace t.pages --scheme {scheme} --slowest 3 --set device.page_bytes=2048"
            ))
            .ok();
        let record = ran.record();
        place.file("r.json", &ran.out);
        let told = place.run("explain r.json").ok().out;
        let one_line = told.split_whitespace().collect::<Vec<_>>().join(" ");
        let programs = record.counters.flash.programs.sum();
        let digits = |n: u64| {
            let text = n.to_string();
            let head = text.len() % 3;
            let groups = text.as_bytes()[head..].chunks(3);
            let mut parts: Vec<&str> = groups
                .map(|g| std::str::from_utf8(g).expect("digits"))
                .collect();
            if head > 0 {
                parts.insert(0, &text[..head]);
            }
            parts.join(",")
        };
        for said in [
            format!(
                "The host wrote {} pages",
                digits(record.counters.host.page_writes)
            ),
            format!("the flash programmed {}:", digits(programs)),
            format!("{} blocks were erased", digits(record.derived.erases)),
            "percentile 99.9".into(),
        ] {
            assert!(one_line.contains(&said), "{scheme}: {said}: {told}");
        }
        let is_mapped = record.counters.flash.reads.map > 0;
        assert_eq!(told.contains("The map cost"), is_mapped, "{told}");
        let longest = told.lines().map(|line| line.chars().count()).max();
        assert!(
            told.lines().skip(2).all(|line| line.chars().count() <= 96),
            "{longest:?}"
        );
    }
}

#[test]
fn results_come_from_a_pipe_too_and_a_refusal_is_told() {
    let place = Place::new();
    let mut result: serde_json::Value = serde_json::from_str(&compared(&place)).expect("JSON");
    result["results"][1] =
        serde_json::json!({"scheme": "fast", "title": "FAST", "refused": "no room"});
    let mut explain = Command::new(env!("CARGO_BIN_EXE_floatgate"))
        .args(["explain", "-", "--json"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the program runs");
    let mut input = explain.stdin.take().expect("its input");
    input
        .write_all(result.to_string().as_bytes())
        .expect("written");
    drop(input);
    let told = explain.wait_with_output().expect("its output");
    let told: serde_json::Value = serde_json::from_slice(&told.stdout).expect("JSON");
    let first = |i: usize| {
        told[i]["parts"][0]["sentences"][0]
            .as_str()
            .unwrap_or_default()
    };
    assert!(first(0).starts_with("The host wrote "), "{told}");
    assert_eq!(first(1), "There is no result: no room");
}

#[test]
fn what_is_no_result_is_refused() {
    let place = Place::new();
    place
        .run("explain none")
        .refused("error: none: No such file or directory (os error 2)");
    place.file("odd", "{\"schema\": 1}");
    let ran = place.run("explain odd");
    assert_eq!(ran.code, 2, "{ran:?}");
    assert!(
        ran.err.contains("odd: no result") && ran.err.contains("run --json"),
        "{}",
        ran.err
    );
}

/// Numbers of a result replaced by others: sentences or an error, and never a panic.
#[test]
fn odd_numbers_are_told_or_refused() {
    let place = Place::new();
    let result = compared(&place);
    let value: serde_json::Value = serde_json::from_str(&result).expect("JSON");
    let seed = 0xE1;
    println!("seed {seed:#x}");
    let mut rng = SplitMix64::new(seed);
    for _ in 0..40 {
        let mut odd = value.clone();
        alter(&mut odd, &mut rng);
        place.file("odd.json", odd.to_string());
        let ran = place.run("explain odd.json");
        assert!(
            [0, 2].contains(&ran.code) && !ran.err.contains("bug"),
            "{ran:?}"
        );
    }
}

/// Makes one number in eight another one.
fn alter(value: &mut serde_json::Value, rng: &mut SplitMix64) {
    use serde_json::Value::{Array, Number, Object};
    match value {
        Array(items) => items.iter_mut().for_each(|item| alter(item, rng)),
        Object(fields) => fields.values_mut().for_each(|field| alter(field, rng)),
        Number(number) if rng.below(8) == 0 => {
            *number = match rng.below(3) {
                0 => 0.into(),
                1 if number.is_u64() => u64::MAX.into(),
                _ if number.is_u64() => 1.into(),
                _ => number.clone(),
            };
        }
        _ => {}
    }
}
