//! Standard output and files: nothing half-written, no panic on a closed pipe.

use std::collections::BTreeSet;
use std::io::{ErrorKind, Write};
use std::path::Path;

use floatgate_trace::outfile::{Destination, left_behind};
use floatgate_trace::{Cause, TraceError};
use serde::Serialize;

use crate::errors::{Outcome, Problem};

/// Writes a text to standard output. A reader that has gone (`| head`) is no error.
///
/// # Errors
/// If it cannot be written for another reason.
pub fn print(text: &str) -> Outcome<()> {
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(Problem::new(format!(
            "cannot write to standard output: {error}"
        ))),
        _ => Ok(()),
    }
}

/// Writes a value as JSON and a newline to standard output.
///
/// # Errors
/// As [`print()`].
pub fn print_json(value: &impl Serialize) -> Outcome<()> {
    print(&json(value)?)
}

/// A value as JSON and a newline.
///
/// # Errors
/// If a type cannot be told as JSON, which is a bug.
pub fn json(value: &impl Serialize) -> Outcome<String> {
    let text = serde_json::to_string_pretty(value);
    let text = text.map_err(|error| Problem::bug(error.to_string()))?;
    Ok(format!("{text}\n"))
}

/// Tells something beside the results, on standard error.
pub fn tell(text: &str) {
    // Nobody may be there to read it; that is no reason to stop.
    let _ = writeln!(std::io::stderr(), "{text}");
}

/// Finds out before the work whether files can be written: each stands with its flag. Tells what a killed run has left
/// where they will stand.
///
/// # Errors
/// If one of them cannot be written, is one of the `inputs`, or is given twice.
pub fn check_files(outputs: &[(&str, &Path)], inputs: &[&Path]) -> Outcome<()> {
    let mut checked: Vec<(&str, &Path, Destination)> = Vec::new();
    for &(flag, path) in outputs {
        let shown = path.display();
        let destination = Destination::of(path).map_err(|error| not_written(flag, error))?;
        if inputs.iter().any(|input| destination.replaces(input)) {
            return Err(Problem::new(format!(
                "{flag} {shown}: this file is read by the same command"
            ))
            .help("name another file to write"));
        }
        if let Some((other, first, _)) = checked.iter().find(|(.., d)| d.collides(&destination)) {
            let text = format!(
                "{flag} {shown} and {other} {} are one file",
                first.display()
            );
            return Err(Problem::new(text).help("name two files"));
        }
        checked.push((flag, path, destination));
    }
    let folders: BTreeSet<&Path> = checked.iter().filter_map(|(.., d)| d.folder()).collect();
    for path in folders.into_iter().flat_map(left_behind) {
        tell(&format!(
            "Note: {} is left from a run that was killed; delete it",
            path.display()
        ));
    }
    Ok(())
}

fn not_written(flag: &str, error: TraceError) -> Problem {
    let problem = Problem::new(format!("{flag} {}: {}", error.path, error.message));
    match error.hint {
        Some(hint) => problem.help(hint),
        None => problem,
    }
}

/// Writes a flag's file, whole or not at all.
///
/// # Errors
/// If it cannot be written; nothing is left behind then.
pub fn write_file(flag: &str, path: &Path, content: impl AsRef<[u8]>) -> Outcome<()> {
    let file = Destination::of(path).and_then(Destination::create);
    let mut file = file.map_err(|error| not_written(flag, error))?;
    let written = file.write_all(content.as_ref());
    let written = written.and_then(|()| file.finish());
    let written = written.map_err(|error| TraceError::output(path, &error));
    unless_unread(written)
        .map(drop)
        .map_err(|error| not_written(flag, error))
}

/// What came of writing, or nothing if that went to a reader that has gone: as for [`print()`], that is no error.
///
/// # Errors
/// Any other.
pub fn unless_unread<T>(written: Result<T, TraceError>) -> Result<Option<T>, TraceError> {
    match written {
        Err(error) if error.cause.as_deref() == Some(&Cause::BrokenPipe) => Ok(None),
        other => other.map(Some),
    }
}

/// Tells what was written to a file: on standard output, unless that is the file.
///
/// # Errors
/// As [`print()`].
pub fn report(file: &Path, text: &str) -> Outcome<()> {
    match Destination::of(file) {
        Ok(destination) if destination.is_stdout() => {
            tell(text.trim_end());
            Ok(())
        }
        _ => print(text),
    }
}
