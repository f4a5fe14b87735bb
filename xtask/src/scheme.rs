//! `cargo xtask scheme`: a crate for a scheme of one's own, copied from the example, that builds where it lies.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;

use crate::process::root;

#[derive(Debug, Args)]
#[command(after_help = "Example:
  cargo xtask scheme ../log-of-logs
  cd ../log-of-logs && cargo run --release -- compare --scheme ring,page,fast

The crate is called like its folder. It names this checkout by its path: where that moves, change the paths in Cargo.toml.")]
pub struct SchemeArgs {
    /// A folder that does not exist yet, outside this checkout
    folder: PathBuf,
}

/// What the copy needs beside the example: a workspace of its own, and tests that are optimised.
const TAIL: &str = "
[workspace]

[profile.dev]
opt-level = 1

[profile.test]
opt-level = 2
";

pub fn scheme(args: &SchemeArgs) -> ExitCode {
    match copy(&args.folder) {
        Ok(name) => {
            println!(
                "{name} is in {}: cd there, and `cargo run --release -- compare --scheme ring,page,fast`",
                args.folder.display()
            );
            ExitCode::SUCCESS
        }
        Err(why) => {
            eprintln!("error: {why}");
            ExitCode::from(2)
        }
    }
}

/// Copies the example and returns the name of the new crate.
fn copy(folder: &Path) -> Result<String, String> {
    let told = |what: &str| format!("{}: {what}", folder.display());
    let name = folder.file_name().and_then(|name| name.to_str());
    let name = name.filter(|name| is_crate_name(name)).ok_or_else(|| {
        told("a crate's name begins with a letter and has letters, digits, - and _ only")
    })?;
    if folder.exists() {
        return Err(told("is there already; name a folder that is not"));
    }
    let parent = folder.parent().filter(|parent| *parent != Path::new(""));
    let parent = parent.unwrap_or(Path::new("."));
    let parent = parent
        .canonicalize()
        .map_err(|error| told(&format!("its parent: {error}")))?;
    let root = root()
        .canonicalize()
        .map_err(|error| format!("this checkout: {error}"))?;
    if parent.starts_with(&root) {
        return Err(told("lies in this checkout; name a folder outside"));
    }
    let example = root.join("examples/my-ftl");
    let files = [
        "README.md",
        "src/lib.rs",
        "src/main.rs",
        "tests/command.rs",
        "tests/suite.rs",
    ];
    let own = format!("{}::", name.replace('-', "_"));
    let mut texts = vec![
        (
            "Cargo.toml",
            manifest(&read(&example.join("Cargo.toml"))?, name, &root),
        ),
        // What the example is tested with; cargo leaves out what the copy does not need.
        ("Cargo.lock", read(&root.join("Cargo.lock"))?),
        (
            "rust-toolchain.toml",
            read(&root.join("rust-toolchain.toml"))?,
        ),
        (".gitignore", "/target\n/floatgate-report.html\n".into()),
    ];
    for file in files {
        texts.push((file, read(&example.join(file))?.replace("my_ftl::", &own)));
    }
    for (file, text) in texts {
        let path = folder.join(file);
        let written = fs::create_dir_all(path.parent().unwrap_or(folder));
        written
            .and_then(|()| fs::write(&path, text))
            .map_err(|error| format!("{}: {error}", path.display()))?;
    }
    Ok(name.into())
}

fn is_crate_name(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic())
        && name
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_')
}

fn read(path: &Path) -> Result<String, String> {
    fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))
}

/// The example's manifest under another name, with the paths of the crates whole.
fn manifest(text: &str, name: &str, root: &Path) -> String {
    let named = text.replacen("name = \"my-ftl\"", &format!("name = \"{name}\""), 1);
    let described = named.replace(": copy this folder and begin", "");
    let root = root
        .display()
        .to_string()
        .replace('\\', "\\\\")
        .replace('"', "\\\"");
    described.replace("path = \"../../", &format!("path = \"{root}/")) + TAIL
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    /// A place for the test's folders, outside the checkout.
    fn place(name: &str) -> PathBuf {
        let place = std::env::temp_dir().join(format!("floatgate-{name}-{}", std::process::id()));
        fs::create_dir_all(&place).unwrap();
        place
    }

    #[test]
    fn a_copy_finds_the_crates_and_all_they_need() {
        let place = place("scheme");
        let folder = place.join("log-of-logs");
        assert_eq!(copy(&folder).unwrap(), "log-of-logs");
        let cargo = Command::new(env!("CARGO"))
            .args(["tree", "--offline"])
            .current_dir(&folder)
            .output()
            .unwrap();
        let (found, said) = (
            String::from_utf8_lossy(&cargo.stdout),
            String::from_utf8_lossy(&cargo.stderr),
        );
        assert!(cargo.status.success(), "{said}");
        assert!(found.starts_with("log-of-logs v0.1.0") && found.contains("floatgate-testkit"));
        let main = read(&folder.join("src/main.rs")).unwrap();
        assert!(
            main.contains("log_of_logs::") && !main.contains("my_ftl"),
            "{main}"
        );
        assert!(copy(&folder).unwrap_err().contains("is there already"));
        fs::remove_dir_all(place).unwrap();
    }

    #[test]
    fn bad_folders_are_refused_and_nothing_is_made() {
        let place = place("no-scheme");
        for (folder, why) in [
            (place.join("9lives"), "begins with a letter"),
            (place.join("a b"), "begins with a letter"),
            (place.join("missing/mine"), "its parent"),
            (root().join("crates/mine"), "lies in this checkout"),
        ] {
            assert!(
                copy(&folder).unwrap_err().contains(why),
                "{}",
                folder.display()
            );
            assert!(!folder.exists());
        }
        fs::remove_dir_all(place).unwrap();
    }
}
