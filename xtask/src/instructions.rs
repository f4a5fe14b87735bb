//! Instructions that the simulator needs for a host write, against committed bounds: a regression check that a
//! busy machine does not disturb.

use std::process::{Command, Stdio};

use serde_json::Value;

use crate::process::{Built, built, cargo, root, run, works};
use crate::steps::Outcome;

/// Part of a bound by which a count may pass it: compilers and C libraries differ a little.
const SLACK: f64 = 0.04;

/// The committed bounds: by case, the writes before the count begins, those counted, and their instructions each.
const BOUNDS: &str = "xtask/instructions.json";

/// Counts every case under callgrind.
pub fn check() -> Outcome {
    let is_there = || works("valgrind", &["--version"]);
    if !is_there() {
        println!("installing valgrind");
        works("apt-get", &["install", "-y", "valgrind"]);
        if !is_there() {
            let why = "valgrind is not installed and cannot be: apt-get install valgrind";
            return Outcome::Skipped(why.into());
        }
    }
    let words = "build --release --locked -p floatgate-sim --example instructions";
    run(&mut cargo(words.split(' '))).and_then(|| match cases() {
        Ok(over) if over.is_empty() => Outcome::Passed,
        Ok(over) => Outcome::Failed(format!(
            "{} above the bound; if that is meant, {BOUNDS} says so",
            over.join(", ")
        )),
        Err(why) => Outcome::Failed(why),
    })
}

/// Counts all cases; the names of those above their bounds.
fn cases() -> Result<Vec<String>, String> {
    let text =
        std::fs::read_to_string(root().join(BOUNDS)).map_err(|e| format!("{BOUNDS}: {e}"))?;
    let bounds: Value = serde_json::from_str(&text).map_err(|e| format!("{BOUNDS}: {e}"))?;
    let cases = bounds.as_object().ok_or(format!("{BOUNDS}: no cases"))?;
    let mut over = Vec::new();
    for (name, case) in cases {
        let number = |key: &str| {
            let value = case[key].as_u64();
            value.ok_or_else(|| format!("{BOUNDS}: {name} has no number {key}"))
        };
        let (before, counted) = (number("writes_before")?, number("writes_counted")?);
        let bound = number("instructions_per_write")?;
        let begin = instructions(name, before)?;
        let end = instructions(name, before + counted)?;
        let per_write = end.saturating_sub(begin) / counted.max(1);
        let share = per_write as f64 / bound as f64;
        println!(
            "{name:<8} {per_write:>8} instructions a write, bound {bound} ({:+.1} %)",
            100.0 * (share - 1.0)
        );
        if share > 1.0 + SLACK {
            over.push(name.clone());
        }
    }
    Ok(over)
}

/// Instructions of the whole example with so many writes.
fn instructions(case: &str, writes: u64) -> Result<u64, String> {
    let mut valgrind = Command::new("valgrind");
    valgrind
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg(built(Built::Release, "examples/instructions"))
        .args([case, &writes.to_string()]);
    let output = valgrind
        .stdin(Stdio::null())
        .output()
        .map_err(|e| format!("valgrind: {e}"))?;
    let text = String::from_utf8_lossy(&output.stderr);
    let counted = text
        .lines()
        .find_map(|line| line.split("Collected :").nth(1)?.trim().parse().ok());
    counted.ok_or_else(|| format!("callgrind counted nothing for {case}: {text}"))
}
