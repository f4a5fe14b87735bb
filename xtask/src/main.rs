//! The project's own chores: `cargo xtask test` passes the tests, whatever that needs.

mod fuzz;
mod instructions;

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

const HELP: &str = "\
cargo xtask <chore>

  test     format, lints, all tests, conformance vectors, the two commands of the README;
           says what it skipped and why
  torture  power cuts at random: --minutes N [--scheme S] [--seed N], or --replay 'LINE'
  fuzz     libFuzzer on everything that reads bytes: [--minutes N] [--target T]
  instructions
           counts the instructions that a host write costs and holds them against xtask/instructions.json;
           part of test
  help     this text
";

fn main() -> ExitCode {
    let chore = std::env::args().nth(1).unwrap_or_else(|| "help".into());
    match chore.as_str() {
        "test" => test(),
        "torture" => torture(),
        "fuzz" => fuzz_chore(),
        "instructions" => {
            let mut steps = Steps::new();
            steps.step("instructions", instructions::check);
            steps.report()
        }
        "help" | "--help" | "-h" => {
            print!("{HELP}");
            ExitCode::SUCCESS
        }
        other => {
            eprintln!("no chore {other:?}\n\n{HELP}");
            ExitCode::from(2)
        }
    }
}

/// Every scheme under random power cuts; prints the cut points tried, or the line that replays a failure.
fn torture() -> ExitCode {
    let run = ["run", "--release", "--locked", "--", "torture"];
    let status = Command::new(env!("CARGO"))
        .current_dir(root())
        .args(run)
        .args(std::env::args().skip(2))
        .status();
    if status.is_ok_and(|status| status.success()) {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

fn fuzz_chore() -> ExitCode {
    let (mut minutes, mut targets) = (1.0, fuzz::TARGETS.to_vec());
    let mut words = std::env::args().skip(2);
    while let Some(word) = words.next() {
        let value = words.next().unwrap_or_default();
        let known = match word.as_str() {
            "--minutes" => value.parse().map(|given| minutes = given).is_ok(),
            "--target" => fuzz::known(&value)
                .map(|given| targets = vec![given])
                .is_some(),
            _ => false,
        };
        if !known {
            let names = fuzz::TARGETS.join(", ");
            eprintln!("{word} {value:?}: --minutes NUMBER, --target one of {names}");
            return ExitCode::from(2);
        }
    }
    let mut steps = Steps {
        root: root(),
        done: Vec::new(),
    };
    steps.step("fuzz", |_| fuzz::fuzz(&targets, (minutes * 60.0) as u64));
    steps.report()
}

/// How a step ended.
enum Outcome {
    Passed,
    Failed(String),
    Skipped(String),
}

/// The steps so far, with their times.
struct Steps {
    root: PathBuf,
    done: Vec<(String, Outcome, Duration)>,
}

impl Steps {
    fn new() -> Self {
        Self {
            root: root(),
            done: Vec::new(),
        }
    }

    fn step(&mut self, name: &str, work: impl FnOnce(&Path) -> Outcome) {
        println!("\n== {name}");
        let start = Instant::now();
        let outcome = work(&self.root);
        if let Outcome::Skipped(why) = &outcome {
            println!("skipped: {why}");
        }
        self.done.push((name.into(), outcome, start.elapsed()));
    }

    /// Prints the table of steps and the closing line.
    fn report(&self) -> ExitCode {
        println!("\n{:-<72}", "");
        let (mut passed, mut failed, mut skipped) = (0, 0, 0);
        for (name, outcome, time) in &self.done {
            let (word, why) = match outcome {
                Outcome::Passed => {
                    passed += 1;
                    ("passed", String::new())
                }
                Outcome::Failed(why) => {
                    failed += 1;
                    ("FAILED", format!(": {why}"))
                }
                Outcome::Skipped(why) => {
                    skipped += 1;
                    ("skipped", format!(": {why}"))
                }
            };
            println!("{word:<8} {:>6.1} s  {name}{why}", time.as_secs_f64());
        }
        println!("{passed} passed, {failed} failed, {skipped} skipped");
        if failed == 0 {
            ExitCode::SUCCESS
        } else {
            ExitCode::FAILURE
        }
    }
}

fn test() -> ExitCode {
    let mut steps = Steps::new();
    steps.step("format", |root| {
        with_component(root, "fmt", "rustfmt", &["fmt", "--all", "--check"])
    });
    steps.step("lints", |root| {
        let args = [
            "clippy",
            "--workspace",
            "--all-targets",
            "--locked",
            "--",
            "-D",
            "warnings",
        ];
        with_component(root, "clippy", "clippy", &args)
    });
    steps.step("tests", |root| {
        cargo(root, &["test", "--workspace", "--locked"])
    });
    steps.step("build the command", |root| {
        cargo(root, &["build", "--release", "--locked"])
    });
    steps.step("fuzz, a minute a target", |_| {
        fuzz::fuzz(&fuzz::TARGETS, 60)
    });
    steps.step("instructions", instructions::check);
    steps.step("conformance vectors", conformance);
    steps.step("main command", main_command);
    steps.report()
}

fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here).to_path_buf()
}

fn run(command: &mut Command) -> Outcome {
    let shown = format!("{command:?}").replace('"', "");
    match command.stdin(Stdio::null()).status() {
        Ok(status) if status.success() => Outcome::Passed,
        Ok(status) => Outcome::Failed(format!("{shown}: {status}")),
        Err(error) => Outcome::Failed(format!("{shown}: {error}")),
    }
}

fn cargo(root: &Path, args: &[&str]) -> Outcome {
    run(Command::new(env!("CARGO")).current_dir(root).args(args))
}

/// A cargo subcommand that an optional component of the toolchain provides; installs it if it is missing.
fn with_component(root: &Path, subcommand: &str, component: &str, args: &[&str]) -> Outcome {
    let works = || {
        let mut probe = Command::new(env!("CARGO"));
        probe
            .current_dir(root)
            .args([subcommand, "--version"])
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        probe.status().is_ok_and(|status| status.success())
    };
    if !works() {
        println!("installing the component {component}");
        run(Command::new("rustup")
            .current_dir(root)
            .args(["component", "add", component]));
        if !works() {
            return Outcome::Skipped(format!(
                "the component {component} is not installed and cannot be: rustup component add {component}"
            ));
        }
    }
    cargo(root, args)
}

/// The conformance vectors of the specification, where they lie beside the checkout.
fn conformance(root: &Path) -> Outcome {
    let vectors = root.join("../shared/specs/vectors");
    if !vectors.is_dir() {
        return Outcome::Skipped("no conformance vectors beside the checkout".into());
    }
    let mut files = Vec::new();
    for folder in std::fs::read_dir(&vectors).into_iter().flatten().flatten() {
        for file in std::fs::read_dir(folder.path())
            .into_iter()
            .flatten()
            .flatten()
        {
            if file.path().extension().is_some_and(|e| e == "json") {
                files.push(file.path());
            }
        }
    }
    files.sort();
    run(Command::new(root.join("target/release/floatgate"))
        .arg("conform")
        .args(files))
}

/// `compare` without arguments, as a newcomer types it, in a folder of its own.
fn main_command(root: &Path) -> Outcome {
    let folder = root.join("target/xtask-compare");
    if let Err(error) = std::fs::create_dir_all(&folder) {
        return Outcome::Failed(error.to_string());
    }
    let report = folder.join("floatgate-report.html");
    let _ = std::fs::remove_file(&report);
    let start = Instant::now();
    let outcome = run(Command::new(root.join("target/release/floatgate"))
        .arg("compare")
        .current_dir(&folder));
    println!("{:.1} s", start.elapsed().as_secs_f64());
    match outcome {
        Outcome::Passed if !report.is_file() => Outcome::Failed("compare wrote no report".into()),
        outcome => outcome,
    }
}
