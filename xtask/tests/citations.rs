//! Every document that a comment or a document names is there, so that citations do not rot.

use std::fs;
use std::path::{Path, PathBuf};

/// The files of the repository with one of these extensions; what cargo has built is none of them.
fn files(folder: &Path, extensions: &[&str], found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let is_hidden = path
            .file_name()
            .is_some_and(|name| name.to_string_lossy().starts_with('.'));
        if is_hidden || path.is_symlink() || path.join("CACHEDIR.TAG").exists() {
            continue;
        }
        if path.is_dir() {
            files(&path, extensions, found);
        } else if path
            .extension()
            .is_some_and(|e| extensions.iter().any(|&known| e == known))
        {
            found.push(path);
        }
    }
}

/// The words of a line that name a document: `docs/...`, or a name that ends in `.md`. Addresses are none.
fn cited(line: &str) -> impl Iterator<Item = &str> {
    let is_outside = |c: char| !(c.is_alphanumeric() || "_-+./:".contains(c));
    let words = line
        .split(is_outside)
        .map(|word| word.trim_end_matches(['.', ':', '/']));
    words.filter(|word| {
        let is_page = word
            .strip_suffix(".md")
            .is_some_and(|stem| !stem.is_empty() && !stem.ends_with('/'));
        !word.contains("://") && (is_page || word.starts_with("docs/"))
    })
}

/// What a line says to people: a comment, or all of a document.
fn text<'a>(file: &Path, line: &'a str) -> &'a str {
    if file.extension().is_some_and(|e| e == "md") {
        return line;
    }
    let mut slashes = line.match_indices("//").map(|(at, _)| at);
    // Not those of an address.
    let comment = slashes.find(|&at| !line[..at].ends_with(':'));
    comment.map_or("", |at| &line[at..])
}

#[test]
fn every_document_that_is_named_exists() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut found = Vec::new();
    files(root, &["rs", "md"], &mut found);
    let (mut missing, mut citations) = (Vec::new(), 0);
    for file in &found {
        let content = fs::read_to_string(file).unwrap();
        for (number, line) in (1..).zip(content.lines()) {
            for name in cited(text(file, line)) {
                citations += 1;
                // From the root, or from the file that names it.
                let is_there =
                    |name: &str| root.join(name).exists() || file.with_file_name(name).exists();
                // The pages call the folder that they lie in `specs`.
                if !is_there(name) && !is_there(&name.replacen("specs/", "docs/spec/", 1)) {
                    missing.push(format!("{}:{number}: {name}", file.display()));
                }
            }
        }
    }
    assert!(
        missing.is_empty(),
        "no such document:\n{}",
        missing.join("\n")
    );
    assert!(
        citations > 100,
        "only {citations} citations found in {} files",
        found.len()
    );
}

#[test]
fn citations_are_found_as_people_write_them() {
    let all = |line| cited(line).collect::<Vec<_>>();
    assert_eq!(
        all("(docs/spec/timing.md, section 4)."),
        ["docs/spec/timing.md"]
    );
    assert_eq!(
        all("see `wear.md` and [it](../wear.md#gap)"),
        ["wear.md", "../wear.md"]
    );
    assert_eq!(all("of docs/validation.md: closed"), ["docs/validation.md"]);
    assert_eq!(all("in docs/spec."), ["docs/spec"]);
    assert_eq!(all("https://example.org/README.md, *.md, md"), [""; 0]);
}
