//! A copy of the source in which the bugs are planted.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Names the bug that is on.
pub const VARIABLE: &str = "FLOATGATE_PLANTED";

/// What the copy of the lowest crate has in addition: every planted bug asks it.
const SWITCHBOARD: &str = r#"
extern crate std;

/// Whether a planted bug is on.
#[doc(hidden)]
pub fn planted(bug: u32) -> bool {
    static ON: std::sync::OnceLock<Option<u32>> = std::sync::OnceLock::new();
    let named = || std::env::var("FLOATGATE_PLANTED").ok()?.parse().ok();
    *ON.get_or_init(named) == Some(bug)
}
"#;

/// The crate that all others can ask.
const LOWEST: &str = "crates/core/src/lib.rs";

/// Makes the copy the same as the source, but for the planted files. What has not changed is left alone, so that cargo
/// builds only what has.
///
/// # Errors
/// What cannot be read or written.
pub fn copy(root: &Path, to: &Path, planted: &BTreeMap<String, String>) -> Result<(), String> {
    let mut files = BTreeSet::new();
    below(root, Path::new(""), &mut files).map_err(|e| format!("{}: {e}", root.display()))?;
    for file in &files {
        let name = file.to_string_lossy().replace('\\', "/");
        let content = planted.get(&name).map(|text| Ok(text.clone().into_bytes()));
        let content = content.unwrap_or_else(|| fs::read(root.join(file)));
        let written = content.and_then(|mut content| {
            if name == LOWEST {
                content.extend_from_slice(SWITCHBOARD.as_bytes());
            }
            write_if_changed(&to.join(file), &content)
        });
        written.map_err(|e| format!("{name}: {e}"))?;
    }
    let mut old = BTreeSet::new();
    below(to, Path::new(""), &mut old).map_err(|e| format!("{}: {e}", to.display()))?;
    for gone in old.difference(&files) {
        fs::remove_file(to.join(gone)).map_err(|e| format!("{}: {e}", gone.display()))?;
    }
    Ok(())
}

fn write_if_changed(file: &Path, content: &[u8]) -> io::Result<()> {
    if fs::read(file).is_ok_and(|old| old == content) {
        return Ok(());
    }
    fs::create_dir_all(file.parent().unwrap_or(file))?;
    fs::write(file, content)
}

/// The files below a folder; what is hidden, linked or built is none of them.
fn below(root: &Path, folder: &Path, found: &mut BTreeSet<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(root.join(folder))? {
        let entry = entry?;
        let path = folder.join(entry.file_name());
        let kind = entry.file_type()?;
        let is_hidden = entry.file_name().to_string_lossy().starts_with('.');
        if is_hidden || kind.is_symlink() || root.join(&path).join("CACHEDIR.TAG").exists() {
            continue;
        }
        if kind.is_dir() {
            below(root, &path, found)?;
        } else {
            found.insert(path);
        }
    }
    Ok(())
}
