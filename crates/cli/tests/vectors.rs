//! Is it exact? Every vector of the specification comes out to the last counter, and every scheme has some.

mod common;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use common::Place;
use serde_json::Value;

/// The vectors in docs/spec/vectors.
fn vectors() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/spec/vectors");
    let entries = |folder: &Path| {
        let entries = std::fs::read_dir(folder).unwrap();
        entries
            .map(|entry| entry.unwrap().path())
            .collect::<Vec<_>>()
    };
    let folders = entries(&folder).into_iter().filter(|path| path.is_dir());
    let files = folders.flat_map(|folder| entries(&folder));
    let mut vectors: Vec<PathBuf> = files
        .filter(|file| file.extension().is_some_and(|e| e == "json"))
        .collect();
    vectors.sort();
    vectors
}

#[test]
fn every_vector_comes_out() {
    let vectors = vectors();
    let files = vectors.iter().map(|file| file.to_str().unwrap());
    let words: Vec<&str> = ["conform"].into_iter().chain(files).collect();
    let printed = Place::new().run_with(&words).ok().out;
    assert_eq!(
        printed
            .lines()
            .filter(|line| line.starts_with("equal"))
            .count(),
        vectors.len()
    );
}

#[test]
fn every_scheme_has_vectors() {
    let read = |file: &PathBuf| -> Value {
        serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap()
    };
    let scheme = |vector: Value| vector["scheme"].as_str().map(str::to_string);
    let held: BTreeSet<String> = vectors().iter().map(read).filter_map(scheme).collect();
    let schemes = Place::new().run("schemes --json").ok().json();
    let key = |scheme: &Value| scheme["key"].as_str().unwrap().to_string();
    let schemes: BTreeSet<String> = schemes.as_array().unwrap().iter().map(key).collect();
    assert_eq!(held, schemes);
}
