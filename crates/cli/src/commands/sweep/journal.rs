//! What is done is kept beside the file to come, one line a cell, so that a sweep that was stopped goes on where it
//! was.

use std::collections::HashSet;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use floatgate_sim::record;
use serde::{Deserialize, Serialize};

use crate::errors::{Outcome, Problem};

/// The first line: nobody else's file begins so.
const HEADER: &str = "{\"floatgate_sweep_journal\":1}\n";
/// What the journal's name adds to that of the file to come.
const SUFFIX: &str = ".partial.jsonl";

/// A line.
#[derive(Serialize, Deserialize)]
struct Line<R> {
    /// What determines the cell, in short.
    cell: String,
    /// Its record, or why there is none.
    result: R,
}

/// The journal of a sweep.
pub struct Journal {
    path: PathBuf,
    file: Mutex<File>,
}

impl Journal {
    /// Opens the journal beside `out`, or begins one, and hands the results of the `wanted` cells to `found`.
    ///
    /// # Errors
    /// If there is something that is no journal, which is left alone, or another sweep writes it.
    pub fn open(
        out: &Path,
        fresh: bool,
        wanted: &HashSet<String>,
        found: &mut dyn FnMut(String, record::Outcome),
    ) -> Outcome<Self> {
        let mut path = out.as_os_str().to_owned();
        path.push(SUFFIX);
        let path = PathBuf::from(path);
        let mut options = OpenOptions::new();
        let file = options.read(true).append(true).create(true).open(&path);
        let file = file.map_err(|error| failed(&path, &error))?;
        if let Err(TryLockError::WouldBlock) = file.try_lock() {
            let text = format!("another sweep writes {}", path.display());
            return Err(Problem::new(text).help("wait for its end, or name another --out"));
        }
        let journal = Self {
            path,
            file: Mutex::new(file),
        };
        journal.read(fresh, wanted, found)?;
        Ok(journal)
    }

    fn read(
        &self,
        fresh: bool,
        wanted: &HashSet<String>,
        found: &mut dyn FnMut(String, record::Outcome),
    ) -> Outcome<()> {
        let failed = |error: std::io::Error| failed(&self.path, &error);
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        let mut lines = BufReader::new(&*file);
        let (mut line, mut good_bytes) = (Vec::new(), 0);
        for number in 1.. {
            line.clear();
            let length = lines.read_until(b'\n', &mut line).map_err(failed)?;
            if line.last() != Some(&b'\n') {
                // The end, or a line that was being written when the sweep was stopped.
                if number == 1 && !HEADER.as_bytes().starts_with(&line) {
                    return Err(self.foreign(number));
                }
                break;
            }
            match number {
                1 if line == HEADER.as_bytes() => {}
                1 => return Err(self.foreign(number)),
                _ if fresh => break,
                _ => {
                    let read: Result<Line<record::Outcome>, _> = serde_json::from_slice(&line);
                    let Line { cell, result } = read.map_err(|_| self.foreign(number))?;
                    if wanted.contains(&cell) {
                        found(cell, result);
                    }
                }
            }
            good_bytes += length as u64;
        }
        if fresh {
            good_bytes = 0;
        }
        file.set_len(good_bytes).map_err(failed)?;
        if good_bytes == 0 {
            file.write_all(HEADER.as_bytes()).map_err(failed)?;
        }
        Ok(())
    }

    fn foreign(&self, number: usize) -> Problem {
        let path = self.path.display();
        let text = match number {
            1 => format!("{path} is no journal of a sweep"),
            _ => format!("{path}, line {number}: this is no cell of a sweep"),
        };
        Problem::new(text).help(match number {
            1 => "name another --out, or move that file away",
            _ => "--fresh begins anew; or delete that line",
        })
    }

    /// Keeps a result.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn add(&self, cell: &str, result: &record::Outcome) -> Outcome<()> {
        let line = Line {
            cell: cell.to_string(),
            result,
        };
        let text = serde_json::to_string(&line).map_err(|e| Problem::bug(e.to_string()))?;
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        // In one call: a sweep that is stopped leaves whole lines, and perhaps a piece of the last.
        let written = file.write_all(format!("{text}\n").as_bytes());
        written.map_err(|error| failed(&self.path, &error))
    }

    /// Takes it away.
    ///
    /// # Errors
    /// If that is not possible.
    pub fn remove(self) -> Outcome<()> {
        std::fs::remove_file(&self.path).map_err(|error| failed(&self.path, &error))
    }
}

fn failed(path: &Path, error: &std::io::Error) -> Problem {
    Problem::new(format!(
        "cannot keep what is done in {}: {error}",
        path.display()
    ))
    .help("--out names a file in a folder that exists and may be written")
}

#[cfg(test)]
mod tests {
    use super::*;
    use floatgate_sim::record::{Failed, Reason};

    fn result(text: &str) -> record::Outcome {
        record::Outcome::Failed(Failed {
            scheme: "fast".into(),
            title: "FAST".into(),
            reason: Reason::Failed(text.into()),
        })
    }

    fn opened(out: &Path, fresh: bool) -> (Outcome<Journal>, Vec<String>) {
        let wanted = HashSet::from(["a".to_string(), "c".to_string()]);
        let mut found = Vec::new();
        let journal = Journal::open(out, fresh, &wanted, &mut |cell, _| found.push(cell));
        (journal, found)
    }

    #[test]
    fn whole_lines_are_found_again_a_torn_one_and_others_are_not() {
        let folder = tempfile::tempdir().expect("a folder");
        let (out, path) = (
            folder.path().join("x.csv"),
            folder.path().join("x.csv.partial.jsonl"),
        );
        let (journal, found) = opened(&out, false);
        let journal = journal.expect("a journal");
        assert!(found.is_empty());
        for cell in ["a", "b", "c"] {
            journal.add(cell, &result(cell)).expect("written");
        }
        assert!(
            opened(&out, false)
                .0
                .is_err_and(|p| p.message().starts_with("another sweep"))
        );
        drop(journal);
        let whole = std::fs::read(&path).expect("a file");
        // Wherever it was stopped, the lines before are there, and the file can be added to.
        for cut in 0..=whole.len() {
            std::fs::write(&path, &whole[..cut]).expect("a file");
            let (journal, found) = opened(&out, false);
            let lines = whole[..cut].iter().filter(|&&b| b == b'\n').count();
            assert_eq!(found.len(), [0, 0, 1, 1, 2][lines], "{cut}");
            journal
                .expect("a journal")
                .add("c", &result("again"))
                .expect("written");
            let again = opened(&out, false).1;
            assert_eq!(again.len(), found.len() + 1, "{cut}");
        }
        assert_eq!(opened(&out, true).1.len(), 0);
        assert_eq!(opened(&out, false).1.len(), 0);
    }

    #[test]
    fn what_is_no_journal_is_left_alone() {
        let folder = tempfile::tempdir().expect("a folder");
        let (out, path) = (
            folder.path().join("x.csv"),
            folder.path().join("x.csv.partial.jsonl"),
        );
        for (text, message) in [
            ("my notes\n", "is no journal of a sweep"),
            ("my notes", "is no journal of a sweep"),
            ("{}\n", "is no journal of a sweep"),
            (
                &format!("{HEADER}{{}}\n"),
                ", line 2: this is no cell of a sweep",
            ),
            (
                &format!("{HEADER}\u{0}\n"),
                ", line 2: this is no cell of a sweep",
            ),
        ] {
            std::fs::write(&path, text).expect("a file");
            let problem = opened(&out, false).0.err().expect(text);
            assert!(problem.message().ends_with(message), "{problem}");
            if !text.starts_with(HEADER) {
                assert!(opened(&out, true).0.is_err(), "{text}");
            }
            assert_eq!(std::fs::read_to_string(&path).expect("a file"), text);
        }
    }
}
