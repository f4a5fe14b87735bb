//! The table of planted bugs, `xtask/mutants/*.toml`, and how its entries are put into a copy of the source.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde::Deserialize;

/// Stands in a replacement for "this bug is switched on".
const SWITCH: &str = "PLANTED";

/// One bug.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bug {
    /// Its number, for ever.
    pub id: u32,
    /// The bug in words.
    pub title: String,
    /// The file it is planted in, from the root of the repository.
    pub file: String,
    /// Text that occurs exactly once in the file.
    find: String,
    /// An expression that stands for `find`, also one, while the bug is on.
    instead: Option<String>,
    /// What stands for `find`, with `PLANTED` where it matters whether the bug is on.
    replace: Option<String>,
    /// The schemes whose random runs can see it; all if left out.
    #[serde(default)]
    pub schemes: Vec<String>,
    /// Why it cannot be seen.
    pub equivalent: Option<String>,
}

/// A file of the table. What it says of the schemes holds for entries that do not say it themselves.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Sheet {
    #[serde(default)]
    schemes: Vec<String>,
    bug: Vec<Bug>,
}

/// A text in a file, and what to put there.
struct Edit<'a> {
    bug: &'a Bug,
    at: usize,
}

impl Bug {
    /// The condition that it is on, as source.
    fn switch(&self) -> String {
        let root = match self.file.starts_with("crates/core/") {
            true => "crate",
            false => "::floatgate_core",
        };
        format!("{root}::planted({})", self.id)
    }

    /// Whether it has one replacement, and one that does something.
    fn check(&self) -> Result<(), String> {
        match (&self.instead, &self.replace) {
            (Some(_), None) => Ok(()),
            (None, Some(text)) if text.contains(SWITCH) => Ok(()),
            (None, Some(_)) => Err(format!("bug {}: no {SWITCH} in `replace`", self.id)),
            _ => Err(format!(
                "bug {}: either `instead` or `replace`, not both",
                self.id
            )),
        }
    }
}

/// All bugs, by number.
///
/// # Errors
/// What cannot be read, and where.
pub fn read(root: &Path) -> Result<Vec<Bug>, String> {
    let folder = root.join("xtask/mutants");
    let entries = fs::read_dir(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    let mut bugs = BTreeMap::new();
    for entry in entries {
        let path = entry.map_err(|e| e.to_string())?.path();
        if path.extension().is_none_or(|extension| extension != "toml") {
            continue;
        }
        let here = |error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
        let text = fs::read_to_string(&path).map_err(|e| here(&e))?;
        let sheet: Sheet = toml::from_str(&text).map_err(|e| here(&e))?;
        for mut bug in sheet.bug {
            bug.check().map_err(|e| here(&e))?;
            if bug.schemes.is_empty() {
                bug.schemes.clone_from(&sheet.schemes);
            }
            if let Some(twice) = bugs.insert(bug.id, bug) {
                return Err(here(&format!("bug {} is there twice", twice.id)));
            }
        }
    }
    Ok(bugs.into_values().collect())
}

/// The files that the bugs change, with all of them in, each behind its switch.
///
/// # Errors
/// Every entry that does not apply, one a line.
pub fn plant(root: &Path, bugs: &[Bug]) -> Result<BTreeMap<String, String>, String> {
    let mut by_file: BTreeMap<&str, Vec<&Bug>> = BTreeMap::new();
    for bug in bugs {
        by_file.entry(&bug.file).or_default().push(bug);
    }
    let (mut planted, mut errors) = (BTreeMap::new(), Vec::new());
    for (file, bugs) in by_file {
        let text = fs::read_to_string(root.join(file)).map_err(|error| format!("{file}: {error}"));
        match text.and_then(|text| plant_in(&text, &bugs)) {
            Ok(text) => _ = planted.insert(file.to_string(), text),
            Err(error) => errors.push(error),
        }
    }
    match errors.is_empty() {
        true => Ok(planted),
        false => Err(errors.join("\n")),
    }
}

/// A text with all these bugs in.
fn plant_in(text: &str, bugs: &[&Bug]) -> Result<String, String> {
    let (mut edits, mut errors) = (Vec::new(), Vec::new());
    for &bug in bugs {
        let places: Vec<usize> = text.match_indices(&bug.find).map(|(at, _)| at).collect();
        match places[..] {
            [at] => edits.push(Edit { bug, at }),
            _ => errors.push(format!(
                "bug {} ({}): its `find` occurs {} times in {}, not once",
                bug.id,
                bug.title,
                places.len(),
                bug.file
            )),
        }
    }
    edits.sort_by_key(|edit| (edit.at, edit.bug.id));
    let (mut planted, mut end, mut i) = (String::new(), 0, 0);
    while i < edits.len() {
        let Edit { bug, at } = edits[i];
        // Several expressions may stand for the same text.
        let same = |other: &&Edit| other.at == at && other.bug.find == bug.find;
        let count = edits[i..].iter().take_while(same).count();
        let here = &edits[i..i + count];
        let is_one = count == 1 || here.iter().all(|edit| edit.bug.instead.is_some());
        if at < end || !is_one {
            let other = if at < end { i - 1 } else { i + 1 };
            let (a, b) = (edits[other].bug.id, bug.id);
            errors.push(format!("bugs {a} and {b} change the same text"));
            i += count;
            continue;
        }
        planted += &text[end..at];
        planted += &changed(here);
        end = at + bug.find.len();
        i += count;
    }
    planted += &text[end..];
    match errors.is_empty() {
        true => Ok(planted),
        false => Err(errors.join("\n")),
    }
}

/// What stands for a text while some bugs may be on.
fn changed(here: &[Edit]) -> String {
    let bug = here[0].bug;
    if let Some(replace) = &bug.replace {
        return replace.replace(SWITCH, &bug.switch());
    }
    let choices = here.iter().map(|Edit { bug, .. }| {
        let instead = bug.instead.as_deref().unwrap_or_default();
        format!("if {} {{ {instead} }} else ", bug.switch())
    });
    format!("({}{{ {} }})", choices.collect::<String>(), bug.find)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bugs(entries: &[(&str, &str)]) -> Vec<Bug> {
        let numbered = (1..).zip(entries);
        let texts = numbered.map(|(id, (find, change))| {
            format!("[[bug]]\nid = {id}\ntitle = ''\nfile = 'crates/x/y.rs'\nfind = '{find}'\n{change}\n")
        });
        let sheet: Sheet = toml::from_str(&texts.collect::<String>()).expect("well formed");
        sheet.bug
    }

    fn planted(text: &str, entries: &[(&str, &str)]) -> Result<String, String> {
        let bugs = bugs(entries);
        plant_in(text, &bugs.iter().collect::<Vec<_>>())
    }

    #[test]
    fn bugs_are_planted_behind_their_switches() {
        let text = "let a = b < c;\nstep();\n";
        let entries = [
            ("b < c", "instead = 'b > c'"),
            ("step();", "replace = 'if !PLANTED { step(); }'"),
            ("b < c", "instead = 'true'"),
        ];
        let expected = "let a = (if ::floatgate_core::planted(1) { b > c } else \
                        if ::floatgate_core::planted(3) { true } else { b < c });\n\
                        if !::floatgate_core::planted(2) { step(); }\n";
        assert_eq!(planted(text, &entries), Ok(expected.into()));
    }

    #[test]
    fn entries_that_do_not_fit_are_named() {
        let change = "instead = '0'";
        for (text, entries, named) in [
            ("x y x", &[("x", change)][..], "occurs 2 times"),
            ("y", &[("x", change)], "occurs 0 times"),
            ("a b c", &[("a b", change), ("b c", change)], "bugs 1 and 2"),
        ] {
            let error = planted(text, entries).expect_err(named);
            assert!(error.contains("bug") && error.contains(named), "{error}");
        }
        for change in ["replace = 'x'", "", "instead = 'a'\nreplace = 'PLANTED'"] {
            assert!(bugs(&[("x", change)])[0].check().is_err(), "{change}");
        }
    }
}
