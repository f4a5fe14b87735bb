//! `cargo xtask test`: the gate.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Instant;

use clap::Args;

use crate::process::{Built, built, cargo, root, run, target, with_component};
use crate::steps::{Outcome, Steps};
use crate::{fuzz, instructions, kernel, mutants, python};

/// Seconds that the gate fuzzes each target.
const FUZZ_SECONDS: u64 = 6;

#[derive(Debug, Args)]
pub struct TestArgs {
    /// Formats, lints, unit tests, citations, vectors and the main command: the answer while you work
    #[arg(long)]
    quick: bool,
}

pub fn test(args: &TestArgs) -> ExitCode {
    let mut steps = Steps::default();
    steps.step("format", || {
        with_component("fmt", "rustfmt", &["fmt", "--all", "--check"])
    });
    steps.step("lints", lints);
    if args.quick {
        quick(&mut steps);
    } else {
        whole(&mut steps);
    }
    steps.report()
}

fn lints() -> Outcome {
    let words = "clippy --workspace --all-targets --locked -- -D warnings";
    let words: Vec<&str> = words.split(' ').collect();
    with_component("clippy", "clippy", &words)
}

/// All in the profile of the tests, so that a change is compiled once.
fn quick(steps: &mut Steps) {
    steps.step("unit tests", || {
        let words =
            "test --workspace --locked --no-fail-fast --lib --test citations --test mutants";
        // These two have none.
        let without = ["--exclude", "floatgate-fuzz", "--exclude", "my-ftl"];
        run(cargo(words.split(' ')).args(without))
    });
    let command = ["build", "--locked", "--bin", "floatgate"];
    if steps.step("build the command", || run(&mut cargo(command))) {
        steps.step("conformance vectors", || conformance(Built::Debug));
        steps.step("main command", || main_command(Built::Debug));
    }
}

/// The contract needs neither an operating system nor its standard library.
const BARE_TARGET: &str = "thumbv7em-none-eabi";

fn bare_target() -> Outcome {
    let added = Command::new("rustup")
        .current_dir(root())
        .args(["target", "add", BARE_TARGET])
        .status();
    if !added.is_ok_and(|status| status.success()) {
        return Outcome::Skipped(format!("rustup cannot install the target {BARE_TARGET}"));
    }
    let words = ["build", "-p", "floatgate-core", "--target", BARE_TARGET];
    run(cargo(words).arg("--locked"))
}

fn whole(steps: &mut Steps) {
    // What cannot be installed is told, and its tests say that they are skipped.
    steps.step("programs of others", || {
        kernel::programs(&kernel::tools::FOR_THE_GATE)
    });
    steps.step("the contract on a bare target", bare_target);
    // Without the examples, which nobody runs here: the lints have compiled them.
    let tests = "test --workspace --locked --no-fail-fast --tests";
    steps.step("build the tests", || {
        run(cargo(tests.split(' ')).arg("--no-run"))
    });
    steps.step("tests", || run(&mut cargo(tests.split(' '))));
    steps.step("tests in the documentation", || {
        run(&mut cargo(["test", "--workspace", "--locked", "--doc"]))
    });
    // With the module for Python, of whose dependencies both then have the same features: nothing is compiled twice.
    let both = "build --release --locked -p floatgate -p floatgate-python --lib --bin floatgate";
    if steps.step("build the command", || run(&mut cargo(both.split(' ')))) {
        steps.step("conformance vectors", || conformance(Built::Release));
        steps.step("main command", || main_command(Built::Release));
        steps.step("the papers, quick form", papers);
        steps.step("file systems of this kernel", kernel::short);
        steps.step(python::STEP, python::check);
    }
    steps.step("instructions", instructions::check);
    steps.step("planted bugs, a sample", mutants::sample);
    if steps.step("build the fuzzer", fuzz::build) {
        let title = format!("fuzz, {FUZZ_SECONDS} s a target");
        steps.step(&title, || fuzz::fuzz(&fuzz::TARGETS, FUZZ_SECONDS));
    }
}

/// Every vector of the specification, to the last counter.
fn conformance(how: Built) -> Outcome {
    let files = match vectors(&root().join("docs/spec/vectors")) {
        Ok(files) => files,
        Err(error) => return Outcome::Failed(error.to_string()),
    };
    if files.is_empty() {
        return Outcome::Failed("no vectors in docs/spec/vectors".into());
    }
    run(Command::new(built(how, "floatgate"))
        .arg("conform")
        .args(files))
}

/// The vectors in the folders of a folder, in order.
fn vectors(folder: &Path) -> std::io::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            for file in std::fs::read_dir(entry.path())? {
                files.push(file?.path());
            }
        }
    }
    files.retain(|file| {
        file.extension()
            .is_some_and(|extension| extension == "json")
    });
    files.sort();
    Ok(files)
}

/// The quick form of every item of the papers comes out as the repository has it.
fn papers() -> Outcome {
    let kept = root().join("docs/papers/quick.csv");
    let new = target().join("xtask-papers.csv");
    let outcome = run(Command::new(built(Built::Release, "floatgate"))
        .args(["papers", "--no-report", "--fresh", "--out"])
        .arg(&new));
    outcome.and_then(|| {
        let read = |path: &Path| std::fs::read_to_string(path).unwrap_or_default();
        let (kept, new) = (read(&kept), read(&new));
        let differs = kept.lines().zip(new.lines()).find(|(a, b)| a != b);
        match differs {
            None if kept.lines().count() == new.lines().count() && !new.is_empty() => Outcome::Passed,
            None => Outcome::Failed("docs/papers/quick.csv has another number of rows".into()),
            Some((kept, new)) => Outcome::Failed(format!(
                "a number of the papers has changed; if that is meant: floatgate papers --out docs/papers/quick.csv\n  was {kept}\n  is  {new}"
            )),
        }
    })
}

/// `compare` without arguments, as a newcomer types it, in a folder of its own.
fn main_command(how: Built) -> Outcome {
    let folder = target().join("xtask-compare");
    if let Err(error) = std::fs::create_dir_all(&folder) {
        return Outcome::Failed(format!("{}: {error}", folder.display()));
    }
    let report = folder.join("floatgate-report.html");
    let _ = std::fs::remove_file(&report);
    let start = Instant::now();
    let outcome = run(Command::new(built(how, "floatgate"))
        .arg("compare")
        .current_dir(&folder));
    println!("{:.1} s", start.elapsed().as_secs_f64());
    outcome.and_then(|| match report.is_file() {
        true => Outcome::Passed,
        false => Outcome::Failed("compare wrote no report".into()),
    })
}
