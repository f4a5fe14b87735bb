//! `cargo xtask fuzz`: libFuzzer on every target of the crate `fuzz`, with the stable compiler.

use std::path::Path;
use std::process::{Command, Stdio};

use crate::{Outcome, root, run};

/// Targets of the crate `fuzz`.
pub const TARGETS: [&str; 5] = ["trace", "configuration", "image", "cuts", "rot"];

/// Seconds that one input may take, and MiB it may need.
const INPUT_SECONDS: u32 = 20;
const MEMORY_MIB: u32 = 2048;

/// Fuzzes the named targets for so many seconds each, two at a time.
pub fn fuzz(targets: &[&str], seconds: u64) -> Outcome {
    let root = root();
    let has_compiler = ["c++", "g++", "clang++"].iter().any(|compiler| {
        let mut probe = Command::new(compiler);
        probe
            .arg("--version")
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        probe.status().is_ok_and(|status| status.success())
    });
    if !has_compiler {
        return Outcome::Skipped(
            "libFuzzer needs a C++ compiler, and there is none (Debian: apt-get install g++)"
                .into(),
        );
    }
    let built = run(Command::new(env!("CARGO"))
        .current_dir(&root)
        .env("RUSTC_WORKSPACE_WRAPPER", root.join("fuzz/with-coverage"))
        .args(["build", "--release", "--locked", "-p", "floatgate-fuzz"])
        .args(["--features", "libfuzzer"]));
    if !matches!(built, Outcome::Passed) {
        return built;
    }
    for pair in targets.chunks(2) {
        let ended: Vec<Outcome> = std::thread::scope(|scope| {
            let run = |target: &'static str| {
                let root = &root;
                scope.spawn(move || fuzz_one(root, target, seconds))
            };
            let runs: Vec<_> = pair
                .iter()
                .filter_map(|name| known(name))
                .map(run)
                .collect();
            let join = |run: std::thread::ScopedJoinHandle<'_, Outcome>| {
                run.join()
                    .unwrap_or_else(|_| Outcome::Failed("the chore panicked".into()))
            };
            runs.into_iter().map(join).collect()
        });
        if let Some(failed) = ended.into_iter().find(|o| !matches!(o, Outcome::Passed)) {
            return failed;
        }
    }
    Outcome::Passed
}

/// The target of that name.
pub fn known(name: &str) -> Option<&'static str> {
    TARGETS.into_iter().find(|target| *target == name)
}

fn fuzz_one(root: &Path, target: &'static str, seconds: u64) -> Outcome {
    let found = root.join("target/fuzz/found").join(target);
    let new = root.join("target/fuzz/corpus").join(target);
    for folder in [&found, &new] {
        if let Err(error) = std::fs::create_dir_all(folder) {
            return Outcome::Failed(format!("{}: {error}", folder.display()));
        }
    }
    let output = Command::new(root.join("target/release/fuzz"))
        .env("FLOATGATE_FUZZ_TARGET", target)
        .arg(format!("-max_total_time={seconds}"))
        .arg(format!("-timeout={INPUT_SECONDS}"))
        .arg(format!("-rss_limit_mb={MEMORY_MIB}"))
        .arg(format!("-artifact_prefix={}/", found.display()))
        .args(["-max_len=4096", "-verbosity=1", "-print_final_stats=1"])
        .arg(&new)
        .arg(root.join("fuzz/corpus").join(target))
        .stdin(Stdio::null())
        .output();
    let output = match output {
        Ok(output) => output,
        Err(error) => return Outcome::Failed(format!("fuzz {target}: {error}")),
    };
    let text = String::from_utf8_lossy(&output.stderr);
    let figure = |name: &str| {
        let line = text.lines().find(|line| line.starts_with(name));
        line.and_then(|line| line.split_whitespace().last())
            .unwrap_or("?")
            .to_string()
    };
    if output.status.success() {
        let runs = figure("stat::number_of_executed_units:");
        let added = figure("stat::new_units_added:");
        println!("{target:<14} {runs:>9} inputs, {added} of them took a new way, {seconds} s");
        return Outcome::Passed;
    }
    let tail: Vec<&str> = text.lines().rev().take(40).collect();
    tail.iter().rev().for_each(|line| println!("{line}"));
    Outcome::Failed(format!("fuzz {target}: a finding in {}", found.display()))
}
