//! Standard output and files: nothing half-written, no panic on a closed pipe.

use std::io::{ErrorKind, Write};
use std::path::Path;

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
    let text = serde_json::to_string_pretty(value);
    let text = text.map_err(|error| Problem::bug(error.to_string()))?;
    print(&format!("{text}\n"))
}

/// Tells something beside the results, on standard error.
pub fn tell(text: &str) {
    // Nobody may be there to read it; that is no reason to stop.
    let _ = writeln!(std::io::stderr(), "{text}");
}

/// Writes a file whole or not at all: a temporary file takes its name when it is complete.
///
/// # Errors
/// If it cannot be written; nothing is left behind then.
pub fn write_file(path: &Path, content: &(impl AsRef<[u8]> + ?Sized)) -> Outcome<()> {
    let folder = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let failed = |error: std::io::Error| {
        Problem::new(format!("cannot write {}: {error}", path.display()))
            .help("name a file in a folder that exists and may be written")
    };
    if path.is_dir() {
        return Err(
            Problem::new(format!("cannot write {}: it is a folder", path.display()))
                .help("name a file"),
        );
    }
    let mut file = tempfile::Builder::new()
        .prefix(".floatgate-")
        .suffix(".tmp")
        .tempfile_in(folder)
        .map_err(failed)?;
    file.write_all(content.as_ref()).map_err(failed)?;
    let made = file.persist(path).map_err(|error| failed(error.error))?;
    readable(&made).map_err(failed)
}

/// Temporary files are private; a result gets the rights of an ordinary new file.
fn readable(file: &std::fs::File) -> std::io::Result<()> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        file.set_permissions(std::fs::Permissions::from_mode(0o644))?;
    }
    #[cfg(not(unix))]
    let _ = file;
    Ok(())
}
