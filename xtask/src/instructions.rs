//! Instructions that the simulator needs for a host write, against committed bounds: a regression check that a
//! busy machine does not disturb.

use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::{Outcome, cargo};

/// Part of a bound by which a count may pass it: compilers and C libraries differ a little.
const SLACK: f64 = 0.04;

/// The committed bounds: by case, the writes before the count begins, those counted, and their instructions each.
const BOUNDS: &str = "xtask/instructions.json";

/// Counts every case under callgrind.
pub fn check(root: &Path) -> Outcome {
    if !works() {
        println!("installing valgrind");
        let mut install = Command::new("apt-get");
        let install = install.args(["install", "-y", "valgrind"]);
        let _ = install.stdin(Stdio::null()).stdout(Stdio::null()).status();
        if !works() {
            return Outcome::Skipped(
                "valgrind is not installed and cannot be: apt-get install valgrind".into(),
            );
        }
    }
    let build = [
        "build",
        "--release",
        "--locked",
        "-p",
        "floatgate-sim",
        "--example",
        "instructions",
    ];
    match cargo(root, &build) {
        Outcome::Passed => {}
        other => return other,
    }
    match cases(root) {
        Ok(over) if over.is_empty() => Outcome::Passed,
        Ok(over) => Outcome::Failed(format!(
            "{} above the bound; if that is meant, {BOUNDS} says so",
            over.join(", ")
        )),
        Err(why) => Outcome::Failed(why),
    }
}

fn works() -> bool {
    let mut probe = Command::new("valgrind");
    let probe = probe.arg("--version").stdout(Stdio::null());
    probe.status().is_ok_and(|status| status.success())
}

/// Counts all cases; the names of those above their bounds.
fn cases(root: &Path) -> Result<Vec<String>, String> {
    let text = std::fs::read_to_string(root.join(BOUNDS)).map_err(|e| format!("{BOUNDS}: {e}"))?;
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
        let begin = instructions(root, name, before)?;
        let end = instructions(root, name, before + counted)?;
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
fn instructions(root: &Path, case: &str, writes: u64) -> Result<u64, String> {
    let target =
        std::env::var_os("CARGO_TARGET_DIR").map_or(root.join("target"), |dir| root.join(dir));
    let mut valgrind = Command::new("valgrind");
    valgrind
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg(target.join("release/examples/instructions"))
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
