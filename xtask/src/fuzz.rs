//! `cargo xtask fuzz`: libFuzzer on every target of the crate `fuzz`, with the stable compiler.

use std::collections::VecDeque;
use std::process::{Command, ExitCode, Stdio};
use std::sync::Mutex;

use clap::Args;
use clap::builder::PossibleValuesParser;

use crate::process::{Built, built, cargo, root, run, target, works};
use crate::steps::{Outcome, Steps};
use crate::torture::minutes;

/// Targets of the crate `fuzz`.
pub const TARGETS: [&str; 8] = [
    "trace",
    "configuration",
    "image",
    "cuts",
    "log",
    "nbd",
    "measured",
    "rot",
];

/// Targets that are fuzzed at a time: the gate is meant for two processors.
const AT_A_TIME: usize = 2;

/// Seconds that one input may take, and MiB it may need.
const INPUT_SECONDS: u32 = 20;
const MEMORY_MIB: u32 = 2048;

#[derive(Debug, Args)]
pub struct FuzzArgs {
    /// How long each target
    #[arg(long, default_value_t = 1.0, value_parser = minutes)]
    minutes: f64,
    /// Only this target
    #[arg(long, value_parser = PossibleValuesParser::new(TARGETS))]
    target: Option<String>,
}

pub fn chore(args: &FuzzArgs) -> ExitCode {
    let wanted = |name: &&str| args.target.as_ref().is_none_or(|target| target == name);
    let targets: Vec<&str> = TARGETS.into_iter().filter(wanted).collect();
    let mut steps = Steps::default();
    if steps.step("build the fuzzer", build) {
        steps.step("fuzz", || fuzz(&targets, (args.minutes * 60.0) as u64));
    }
    steps.report()
}

/// Builds the fuzzer, the crates of this workspace with coverage.
pub fn build() -> Outcome {
    let mut compilers = ["c++", "g++", "clang++"].iter();
    if !compilers.any(|compiler| works(compiler, &["--version"])) {
        let why = "libFuzzer needs a C++ compiler, and there is none (Debian: apt-get install g++)";
        return Outcome::Skipped(why.into());
    }
    let words = "build --release --locked -p floatgate-fuzz --features libfuzzer";
    run(cargo(words.split(' ')).env("RUSTC_WORKSPACE_WRAPPER", root().join("fuzz/with-coverage")))
}

/// Fuzzes the named targets for so many seconds each, two at a time. The fuzzer has been built.
pub fn fuzz(targets: &[&'static str], seconds: u64) -> Outcome {
    let queue = Mutex::new(targets.iter().copied().collect::<VecDeque<_>>());
    let next = || queue.lock().ok()?.pop_front();
    let worker = || {
        let mut failed = None;
        while let Some(target) = next() {
            if let Outcome::Failed(why) = fuzz_one(target, seconds) {
                failed.get_or_insert(why);
            }
        }
        failed
    };
    let failed = std::thread::scope(|scope| {
        let workers = [(); AT_A_TIME].map(|()| scope.spawn(worker));
        let ended = workers.map(|worker| {
            let panicked = |_| Some("the chore panicked".to_string());
            worker.join().unwrap_or_else(panicked)
        });
        ended.into_iter().flatten().next()
    });
    failed.map_or(Outcome::Passed, Outcome::Failed)
}

fn fuzz_one(name: &str, seconds: u64) -> Outcome {
    let found = target().join("fuzz/found").join(name);
    let new = target().join("fuzz/corpus").join(name);
    for folder in [&found, &new] {
        if let Err(error) = std::fs::create_dir_all(folder) {
            return Outcome::Failed(format!("{}: {error}", folder.display()));
        }
    }
    let output = Command::new(built(Built::Release, "fuzz"))
        .env("FLOATGATE_FUZZ_TARGET", name)
        .arg(format!("-max_total_time={seconds}"))
        .arg(format!("-timeout={INPUT_SECONDS}"))
        .arg(format!("-rss_limit_mb={MEMORY_MIB}"))
        .arg(format!("-artifact_prefix={}/", found.display()))
        .args(["-max_len=4096", "-verbosity=1", "-print_final_stats=1"])
        .arg(&new)
        .arg(root().join("fuzz/corpus").join(name))
        .stdin(Stdio::null())
        .output();
    let output = match output {
        Ok(output) => output,
        Err(error) => return Outcome::Failed(format!("fuzz {name}: {error}")),
    };
    let text = String::from_utf8_lossy(&output.stderr);
    let figure = |label: &str| {
        let line = text.lines().find(|line| line.starts_with(label));
        line.and_then(|line| line.split_whitespace().last())
            .unwrap_or("?")
            .to_string()
    };
    if output.status.success() {
        let runs = figure("stat::number_of_executed_units:");
        let added = figure("stat::new_units_added:");
        println!("{name:<14} {runs:>9} inputs, {added} of them took a new way, {seconds} s");
        return Outcome::Passed;
    }
    let tail: Vec<&str> = text.lines().rev().take(40).collect();
    tail.iter().rev().for_each(|line| println!("{line}"));
    Outcome::Failed(format!("fuzz {name}: a finding in {}", found.display()))
}
