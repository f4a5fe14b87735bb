//! Programs that a chore runs, and where things lie.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use crate::steps::Outcome;

/// The root of the repository. At run time, because with a shared target folder this program may have been built for
/// another checkout.
pub fn root() -> PathBuf {
    let here =
        std::env::var_os("CARGO_MANIFEST_DIR").unwrap_or_else(|| env!("CARGO_MANIFEST_DIR").into());
    let here = Path::new(&here);
    here.parent().unwrap_or(here).to_path_buf()
}

/// Where cargo puts what it builds, whoever says so: `CARGO_TARGET_DIR`, a configuration file, or nobody.
pub fn target() -> &'static Path {
    static TARGET: OnceLock<PathBuf> = OnceLock::new();
    TARGET.get_or_init(|| asked_of_cargo().unwrap_or_else(|| root().join("target")))
}

fn asked_of_cargo() -> Option<PathBuf> {
    let output = Command::new(env!("CARGO"))
        .current_dir(root())
        .args(["metadata", "--no-deps", "--locked", "--format-version=1"])
        .stderr(Stdio::null())
        .output()
        .ok()?;
    let metadata: serde_json::Value = serde_json::from_slice(&output.stdout).ok()?;
    metadata["target_directory"].as_str().map(PathBuf::from)
}

/// The profile a program was built in, as the name of its folder.
#[derive(Clone, Copy, Debug)]
pub enum Built {
    /// `cargo test`, `cargo build`.
    Debug,
    /// `cargo build --release`.
    Release,
}

/// A program that cargo has built.
pub fn built(how: Built, program: &str) -> PathBuf {
    let folder = match how {
        Built::Debug => "debug",
        Built::Release => "release",
    };
    target()
        .join(folder)
        .join(program)
        .with_extension(std::env::consts::EXE_EXTENSION)
}

/// A cargo command at the root of the repository.
pub fn cargo<S: AsRef<OsStr>>(args: impl IntoIterator<Item = S>) -> Command {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.current_dir(root()).args(args);
    cargo
}

/// Runs a program to its end.
pub fn run(command: &mut Command) -> Outcome {
    let shown = format!("{command:?}").replace('"', "");
    match command.stdin(Stdio::null()).status() {
        Ok(status) if status.success() => Outcome::Passed,
        Ok(status) => Outcome::Failed(format!("{shown}: {status}")),
        Err(error) => Outcome::Failed(format!("{shown}: {error}")),
    }
}

/// Whether a program is there and starts.
pub fn works(program: &str, args: &[&str]) -> bool {
    let mut probe = Command::new(program);
    probe
        .args(args)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    probe.status().is_ok_and(|status| status.success())
}

/// A cargo subcommand that an optional component of the toolchain provides; installs it if it is missing.
pub fn with_component(subcommand: &str, component: &str, args: &[&str]) -> Outcome {
    let is_there = || works(env!("CARGO"), &[subcommand, "--version"]);
    if !is_there() {
        println!("installing the component {component}");
        run(Command::new("rustup").args(["component", "add", component]));
        if !is_there() {
            return Outcome::Skipped(format!(
                "the component {component} is not installed and cannot be: rustup component add {component}"
            ));
        }
    }
    run(&mut cargo(args))
}
