//! Temporary files that take their names when they are complete.
//!
//! All that are open stand in one list, so that a signal can remove them. Only `kill -9` and a crash of the machine leave
//! one behind. Each is locked while its process lives; that is how a later run knows which are left behind.

use std::collections::BTreeSet;
use std::fs::{File, TryLockError};
use std::io::{self, ErrorKind};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

const PREFIX: &str = ".floatgate-";
const SUFFIX: &str = ".tmp";

/// The temporary files of this process.
static UNFINISHED: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());

fn unfinished() -> MutexGuard<'static, BTreeSet<PathBuf>> {
    UNFINISHED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A file that is not complete yet.
#[derive(Debug)]
pub(super) struct Temporary {
    path: PathBuf,
    target: PathBuf,
}

impl Temporary {
    /// A new file in the folder of `target`, with this mode as far as the umask allows.
    pub fn new(target: PathBuf, mode: u32) -> io::Result<(File, Self)> {
        let folder = super::folder_of(&target);
        let process = std::process::id();
        let mut unfinished = unfinished();
        let mut number = 0;
        loop {
            let path = folder.join(format!("{PREFIX}{process}-{number}{SUFFIX}"));
            let file = File::options()
                .write(true)
                .create_new(true)
                .mode(mode)
                .open(&path);
            match file {
                Ok(file) => {
                    // Without locks, as on some network file systems, nothing is ever taken for left behind.
                    let _ = file.lock();
                    unfinished.insert(path.clone());
                    return Ok((file, Self { path, target }));
                }
                // Another output of this process, or of one with the same number in another container.
                Err(error) if error.kind() == ErrorKind::AlreadyExists => number += 1,
                Err(error) => return Err(error),
            }
        }
    }

    /// The file is complete.
    pub fn take_name(self) -> io::Result<()> {
        let mut unfinished = unfinished();
        std::fs::rename(&self.path, &self.target)?;
        unfinished.remove(&self.path);
        Ok(())
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        let mut unfinished = unfinished();
        if unfinished.remove(&self.path) {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

/// As long as it lives, no file is begun or takes its name.
#[derive(Debug)]
#[must_use]
pub struct Abandoned(#[allow(dead_code)] MutexGuard<'static, BTreeSet<PathBuf>>);

/// Removes all temporary files of this process, before it ends by a signal. Not for use in a signal handler itself,
/// but on a thread that waits for signals.
pub fn abandon_all() -> Abandoned {
    let mut unfinished = unfinished();
    for path in std::mem::take(&mut *unfinished) {
        let _ = std::fs::remove_file(path);
    }
    Abandoned(unfinished)
}

/// The temporary files in a folder that no process writes any more.
pub fn left_behind(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = folder.read_dir() else {
        return Vec::new();
    };
    let ours = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.starts_with(PREFIX) && name.ends_with(SUFFIX)
    };
    let abandoned = |path: &PathBuf| {
        // A shared lock, so that two that look at the same time do not take each other for the owner.
        let file = File::open(path).ok().filter(|_| path.is_file());
        file.is_some_and(|file| match file.try_lock_shared() {
            Ok(()) => true,
            Err(TryLockError::WouldBlock | TryLockError::Error(_)) => false,
        })
    };
    let mut found: Vec<PathBuf> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(ours)
        .filter(abandoned)
        .collect();
    found.sort();
    found
}
