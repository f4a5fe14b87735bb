//! The house keeps its shape: crates depend downwards only, and inside a crate no files import each other in a circle,
//! but for a file and its own children.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Every crate, and what it may depend on. A crate that is not here fails the test.
const LAYERS: [(&str, &[&str]); 11] = [
    ("core", &[]),
    ("trace", &[]),
    ("schemes", &["core"]),
    ("testkit", &["core"]),
    ("sim", &["core", "trace"]),
    ("device", &["core"]),
    ("serve", &["core", "device"]),
    ("catalog", &["core", "schemes", "testkit", "sim", "device"]),
    (
        "cli",
        &[
            "core", "schemes", "testkit", "sim", "device", "serve", "catalog", "trace",
        ],
    ),
    (
        "python",
        &["cli", "core", "schemes", "sim", "testkit", "trace"],
    ),
    ("xtask", &[]),
];

fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().expect("xtask lies in the workspace").into()
}

/// The crates of the house that a manifest names above its `[dev-dependencies]`.
fn dependencies(manifest: &str) -> BTreeSet<String> {
    let product = manifest.split("[dev-dependencies]").next();
    let lines = product.unwrap_or_default().lines();
    // The crate of the command has the name of the house.
    let names = lines.filter_map(|line| {
        let command = line.starts_with("floatgate =").then_some("cli");
        command.or_else(|| line.strip_prefix("floatgate-"))
    });
    names
        .map(|rest| {
            rest.split(['.', ' ', '='])
                .next()
                .unwrap_or_default()
                .into()
        })
        .collect()
}

#[test]
fn crates_depend_downwards() {
    let folder = root().join("crates");
    for entry in std::fs::read_dir(&folder).expect("the crates") {
        let path = entry.expect("a folder").path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let allowed = LAYERS.iter().find(|(layer, _)| *layer == name);
        let (_, allowed) =
            allowed.unwrap_or_else(|| panic!("crates/{name} has no place in LAYERS"));
        let manifest = std::fs::read_to_string(path.join("Cargo.toml")).expect("a manifest");
        for dependency in dependencies(&manifest) {
            assert!(
                allowed.contains(&dependency.as_str()),
                "crates/{name} depends on {dependency}, which lies above it"
            );
        }
    }
}

/// The modules of a crate: path inside it (`parts::scan`), and its text without tests.
fn modules(source: &Path) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    let mut folders = vec![source.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).expect("a source folder") {
            let path = entry.expect("an entry").path();
            let name = path.file_stem().unwrap_or_default().to_string_lossy();
            if path.is_dir() && name != "tests" && name != "bin" {
                folders.push(path);
            } else if path.extension().is_some_and(|e| e == "rs")
                && name != "tests"
                && name != "main"
            {
                let inside = path.strip_prefix(source).expect("below the source");
                let module = inside
                    .with_extension("")
                    .to_string_lossy()
                    .replace('/', "::");
                let module = module.trim_end_matches("::mod").to_string();
                let module = if module == "lib" {
                    String::new()
                } else {
                    module
                };
                let text = std::fs::read_to_string(&path).expect("a source file");
                let product = text.split("#[cfg(test)]\nmod ").next().unwrap_or_default();
                found.insert(module, product.to_string());
            }
        }
    }
    found
}

/// The modules of `all` that `text`, the one at `here`, names by `crate::` or `super::` paths.
fn imports(all: &BTreeMap<String, String>, here: &str, text: &str) -> BTreeSet<String> {
    let mut named = BTreeSet::new();
    let code: String = text
        .lines()
        .filter(|line| !line.trim_start().starts_with("//"))
        .flat_map(|line| [line.trim(), " "])
        .collect();
    for (start, root) in [
        ("crate::", ""),
        ("super::", here.rsplit_once("::").map_or("", |(up, _)| up)),
    ] {
        for (at, _) in code.match_indices(start) {
            let rest = &code[at + start.len()..];
            for path in expand(rest) {
                let full = format!("{root}::{path}");
                let mut module = full.trim_start_matches("::").to_string();
                // The longest prefix that is a module; what follows is an item of it.
                while !module.is_empty() && !all.contains_key(&module) {
                    module = module
                        .rsplit_once("::")
                        .map_or(String::new(), |(up, _)| up.into());
                }
                if !module.is_empty() && module != here {
                    named.insert(module);
                }
            }
        }
    }
    // A parent names its children without their whole path; that it hands their names on makes it no user of them.
    let code: String = code
        .split(';')
        .filter(|statement| !statement.trim_start().starts_with("pub use "))
        .collect();
    for module in all.keys() {
        let inside = module.strip_prefix(here).unwrap_or_default();
        let name = inside.strip_prefix("::").unwrap_or_default();
        if !name.is_empty() && !name.contains("::") && code.contains(&format!("{name}::")) {
            named.insert(module.clone());
        }
    }
    named
}

/// The paths at the head of `rest`: `a::b`, or those of `a::{b, c::d}`, without nesting.
fn expand(rest: &str) -> Vec<String> {
    let is_path = |c: char| c.is_alphanumeric() || c == '_' || c == ':';
    let end = rest.find(|c| !is_path(c)).unwrap_or(rest.len());
    let (head, tail) = rest.split_at(end);
    match tail.strip_prefix('{') {
        Some(group) if head.is_empty() || head.ends_with("::") => {
            let group = group.split('}').next().unwrap_or_default();
            let parts = group
                .split(',')
                .map(str::trim)
                .filter(|part| !part.is_empty());
            parts.map(|part| format!("{head}{part}")).collect()
        }
        _ => vec![head.trim_end_matches("::").into()],
    }
}

/// Whether files that import each other are one file and its children.
fn is_family(circle: &[&String]) -> bool {
    let inside =
        |parent: &str, file: &str| file == parent || file.starts_with(&format!("{parent}::"));
    let mut parents = circle.iter();
    parents.any(|parent| circle.iter().all(|file| inside(parent, file)))
}

#[test]
fn no_files_import_each_other_in_a_circle() {
    let mut circles = BTreeSet::new();
    for (name, _) in LAYERS {
        let folder = match name {
            "xtask" => root().join("xtask/src"),
            _ => root().join("crates").join(name).join("src"),
        };
        let mut all = modules(&folder);
        // The root of a crate names everything, and hands it on.
        all.remove("");
        let arrows: BTreeMap<&String, BTreeSet<String>> = all
            .iter()
            .map(|(module, text)| (module, imports(&all, module, text)))
            .collect();
        let reach: BTreeMap<&String, BTreeSet<&String>> = arrows
            .keys()
            .map(|&from| {
                let (mut seen, mut left) = (BTreeSet::new(), vec![from]);
                while let Some(module) = left.pop() {
                    left.extend(arrows[module].iter().filter(|next| seen.insert(*next)));
                }
                (from, seen)
            })
            .collect();
        for module in all.keys() {
            let mutual = |other: &&&String| reach[**other].contains(module);
            let circle: Vec<&String> = reach[module].iter().filter(mutual).copied().collect();
            if !circle.is_empty() && !is_family(&circle) {
                circles.insert(format!("crates/{name}: {circle:?}"));
            }
        }
    }
    assert!(circles.is_empty(), "files in circles: {circles:#?}");
}

#[test]
fn circles_and_upward_arrows_would_be_seen() {
    let text = |code: &str| code.to_string();
    let all: BTreeMap<String, String> = [
        ("a".to_string(), text("use crate::b::Thing;")),
        (
            "b".to_string(),
            text("use crate::{a::Other, c};\n// use crate::d;"),
        ),
        ("c".to_string(), text("use super::a;")),
    ]
    .into();
    let of = |module: &str| imports(&all, module, &all[module]);
    assert_eq!(of("a"), ["b".to_string()].into());
    assert_eq!(of("b"), ["a".to_string(), "c".to_string()].into());
    assert_eq!(of("c"), ["a".to_string()].into());
    let manifest = "[dependencies]\nfloatgate = \"1\"\nfloatgate-sim.workspace = true\n[dev-dependencies]\nfloatgate-core = \"1\"";
    assert_eq!(
        dependencies(manifest),
        ["cli".to_string(), "sim".to_string()].into()
    );
}
