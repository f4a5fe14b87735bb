//! The wheel: built, installed into an environment of its own below the target folder, and tested there.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::process::{root, run, target, works};
use crate::steps::Outcome;

/// What builds the wheel.
const BUILDER: &str = "maturin>=1.9,<2";

/// What the step is called.
pub const STEP: &str = "Python: wheel, tests, types";

/// Builds the wheel, installs it and runs its tests.
pub fn check() -> Outcome {
    let old = "import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 10))";
    if !works("python3", &["-c", old]) {
        return Outcome::Skipped(
            "there is no python3 of at least 3.10 with its module venv".into(),
        );
    }
    let environment = target().join("xtask-python");
    let python = environment.join("bin/python");
    if !works(&python.display().to_string(), &["--version"]) {
        let made = run(Command::new("python3")
            .args(["-m", "venv"])
            .arg(&environment));
        if !matches!(made, Outcome::Passed) {
            return made;
        }
    }
    let installed = pip(&python, &[BUILDER]);
    if !matches!(installed, Outcome::Passed) {
        return Outcome::Skipped("pip cannot install maturin; is there a network?".into());
    }
    let wheels = target().join("xtask-wheels");
    // An older wheel would be taken for the new one.
    let _ = std::fs::remove_dir_all(&wheels);
    let words = ["-m", "maturin", "build", "--release", "--locked", "--out"];
    let built = run(inside(&python).args(words).arg(&wheels));
    built
        .and_then(|| install(&python, &wheels))
        .and_then(|| tests(&python))
}

fn install(python: &Path, wheels: &Path) -> Outcome {
    let Some(wheel) = wheel_in(wheels) else {
        return Outcome::Failed(format!("no wheel in {}", wheels.display()));
    };
    let wheel = wheel.display().to_string();
    if !matches!(pip(python, &[&format!("{wheel}[test]")]), Outcome::Passed) {
        return Outcome::Skipped(
            "pip cannot install what the tests need; is there a network?".into(),
        );
    }
    // The version stays the same from build to build.
    pip(python, &["--force-reinstall", "--no-deps", &wheel])
}

fn wheel_in(folder: &Path) -> Option<PathBuf> {
    let mut entries = std::fs::read_dir(folder).ok()?.flatten();
    entries.next().map(|entry| entry.path())
}

/// Tests, examples in the documentation, and types: of the package, and of the stubs against the native module.
fn tests(python: &Path) -> Outcome {
    let pytest = |words: &[&str]| run(inside(python).args(["-m", "pytest", "-q"]).args(words));
    pytest(&[])
        .and_then(|| pytest(&["--doctest-modules", "--pyargs", "floatgate"]))
        .and_then(|| run(inside(python).args(["-m", "mypy"])))
        .and_then(|| run(inside(python).args(["-m", "mypy.stubtest", "floatgate._floatgate"])))
}

fn pip(python: &Path, words: &[&str]) -> Outcome {
    let quiet = [
        "-m",
        "pip",
        "install",
        "--quiet",
        "--disable-pip-version-check",
    ];
    run(inside(python).args(quiet).args(words))
}

/// The interpreter, at the root of the repository.
fn inside(python: &Path) -> Command {
    let mut command = Command::new(python);
    command.current_dir(root());
    command
}
