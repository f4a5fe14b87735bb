//! The items of the five papers, as they stand in the folder `papers` of this crate and inside the program; or those of
//! a folder of the user's.

use std::path::Path;

use include_dir::{Dir, include_dir};
use serde::de::DeserializeOwned;

use super::item::{Item, PaperFile};
use crate::errors::{Outcome, Problem, nearest};

static FILES: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/papers");

/// The papers, in the order of their first claims.
const ORDER: [&str; 5] = ["lastpp", "last", "hat", "faster", "blog"];

/// A paper and its items.
#[derive(Clone, Debug)]
pub struct Paper {
    /// Its key.
    pub key: String,
    /// What its file says.
    pub file: PaperFile,
    /// Its items, each with its key, in the order of the paper.
    pub items: Vec<(String, Item)>,
}

/// The five papers.
///
/// # Errors
/// If what is inside the program cannot be read.
pub fn papers() -> Outcome<Vec<Paper>> {
    let text = |path: &str| {
        let text = FILES.get_file(path).and_then(|file| file.contents_utf8());
        let text = text.map(ToString::to_string);
        text.ok_or_else(|| Problem::bug(format!("papers/{path} is missing")))
    };
    ORDER.iter().map(|key| paper(key, &text)).collect()
}

/// The papers of a folder: each has a folder of its own in it, with a file `paper.toml`.
///
/// # Errors
/// If one of the files cannot be read or is not understood.
pub fn of_folder(folder: &Path) -> Outcome<Vec<Paper>> {
    let failed = |error: std::io::Error| {
        Problem::new(format!(
            "cannot read the folder {}: {error}",
            folder.display()
        ))
    };
    let mut keys = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        if entry.path().join("paper.toml").is_file() {
            keys.push(entry.file_name().to_string_lossy().into_owned());
        }
    }
    if keys.is_empty() {
        let text = format!("{} has no folder with a file paper.toml", folder.display());
        return Err(Problem::new(text).help("docs/papers.md shows how items are declared"));
    }
    keys.sort();
    let text = |path: &str| {
        let path = folder.join(path);
        std::fs::read_to_string(&path)
            .map_err(|error| Problem::new(format!("cannot read {}: {error}", path.display())))
    };
    keys.iter().map(|key| paper(key, &text)).collect()
}

fn paper(key: &str, text: &dyn Fn(&str) -> Outcome<String>) -> Outcome<Paper> {
    let file: PaperFile = read(&format!("{key}/paper.toml"), text)?;
    let item = |name: &String| {
        Ok((
            name.clone(),
            read::<Item>(&format!("{key}/{name}.toml"), text)?,
        ))
    };
    let items = file.items.iter().map(item).collect::<Outcome<_>>()?;
    Ok(Paper {
        key: key.into(),
        file,
        items,
    })
}

fn read<T: DeserializeOwned>(path: &str, text: &dyn Fn(&str) -> Outcome<String>) -> Outcome<T> {
    toml::from_str(&text(path)?).map_err(|error| Problem::new(format!("{path}: {error}")))
}

/// The papers and items that are asked for.
///
/// # Errors
/// If there is no such paper or item.
pub fn chosen(
    folder: Option<&Path>,
    paper: Option<&str>,
    item: Option<&str>,
) -> Outcome<Vec<Paper>> {
    let mut papers = folder.map_or_else(papers, of_folder)?;
    let Some(wanted) = paper else {
        return Ok(papers);
    };
    let wanted = wanted.to_lowercase();
    let is_it = |paper: &Paper| paper.key == wanted || paper.file.name.to_lowercase() == wanted;
    if !papers.iter().any(is_it) {
        let keys: Vec<&str> = papers.iter().map(|paper| &*paper.key).collect();
        return Err(Problem::new(format!("no paper {wanted}")).help(format!(
            "they are {}; `floatgate papers --list` shows what each has",
            keys.join(", ")
        )));
    }
    papers.retain(is_it);
    let Some(item) = item.map(str::to_lowercase) else {
        return Ok(papers);
    };
    for paper in &mut papers {
        if !paper.items.iter().any(|(key, _)| *key == item) {
            let keys = || paper.items.iter().map(|(key, _)| &**key);
            let help = match nearest(&item, keys()) {
                Some(near) => format!("did you mean {near}?"),
                None => format!("they are {}", keys().collect::<Vec<_>>().join(", ")),
            };
            return Err(Problem::new(format!("{} has no item {item}", paper.key)).help(help));
        }
        paper.items.retain(|(key, _)| *key == item);
    }
    Ok(papers)
}

/// The files that no paper names: an item would be forgotten.
#[cfg(test)]
pub fn unnamed() -> Vec<String> {
    let papers = papers().expect("the items can be read");
    let known: Vec<String> = papers
        .iter()
        .flat_map(|paper| {
            let items = paper
                .items
                .iter()
                .map(|(key, _)| format!("{}/{key}.toml", paper.key));
            items.chain([format!("{}/paper.toml", paper.key)])
        })
        .collect();
    let files = FILES.dirs().flat_map(|folder| folder.files());
    files
        .map(|file| file.path().display().to_string())
        .filter(|path| !known.contains(path))
        .collect()
}
