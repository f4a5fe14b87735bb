//! Files written for the user. A failure destroys nothing that was there and leaves nothing behind.
//!
//! - A regular file is written under a temporary name in its own folder and takes its name when it is complete. It keeps
//!   mode and owner of the file that it replaces; a new one gets what the umask allows.
//! - A link is followed: its target is replaced, the link stays.
//! - A device, a FIFO or a socket is opened and written into, never replaced; so is whatever standard output or standard
//!   error is, by whatever name.
//!
//! ```
//! use std::io::Write;
//! use floatgate_trace::outfile::Destination;
//!
//! let folder = tempfile::tempdir()?;
//! let path = folder.path().join("result.txt");
//! let destination = Destination::of(&path)?; // every reason not to write it shows here
//! let mut file = destination.create()?;
//! file.write_all(b"42\n")?;
//! assert!(!path.exists());
//! file.finish()?;
//! assert_eq!(std::fs::read_to_string(&path)?, "42\n");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::fs::{File, Metadata, Permissions};
use std::io::{self, ErrorKind, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::{MetadataExt, PermissionsExt, fchown};
use std::path::{Path, PathBuf};

use rustix::fs::{Access, AtFlags, CWD, accessat};

use crate::error::TraceError;

mod temporary;

use temporary::Temporary;
pub use temporary::{Abandoned, abandon_all, left_behind};

/// Where an output goes.
#[derive(Debug)]
pub struct Destination {
    /// As the user named it.
    path: PathBuf,
    kind: Kind,
}

#[derive(Debug)]
enum Kind {
    Stdout,
    Stderr,
    /// A device, a FIFO, a socket.
    Special,
    Regular {
        /// The file itself, behind all links.
        target: PathBuf,
        /// What stands there now.
        existing: Option<Metadata>,
    },
}

impl Destination {
    /// Finds out where `path` leads and whether it can be written. Nothing is written or opened yet.
    ///
    /// # Errors
    /// If it is a folder, lies in a folder that does not exist, or may not be written.
    pub fn of(path: impl AsRef<Path>) -> Result<Self, TraceError> {
        let path = path.as_ref();
        let failed = |error: &io::Error| TraceError::output(path, error);
        let kind = match path.metadata() {
            Ok(found) if found.is_dir() => return Err(a_folder(path)),
            Ok(found) if is_stream(&found, io::stdout().as_fd()) => Kind::Stdout,
            Ok(found) if is_stream(&found, io::stderr().as_fd()) => Kind::Stderr,
            Ok(found) => {
                may_write(path).map_err(|e| failed(&e))?;
                if found.is_file() {
                    let target = path.canonicalize().map_err(|e| failed(&e))?;
                    check_folder(path, folder_of(&target), Some(&found))?;
                    let existing = Some(found);
                    Kind::Regular { target, existing }
                } else {
                    Kind::Special
                }
            }
            Err(error) if error.kind() == ErrorKind::NotFound => Kind::Regular {
                target: new_target(path)?,
                existing: None,
            },
            Err(error) => return Err(failed(&error)),
        };
        Ok(Self {
            path: path.to_owned(),
            kind,
        })
    }

    /// Whether what is written goes to standard output.
    pub fn is_stdout(&self) -> bool {
        matches!(self.kind, Kind::Stdout)
    }

    /// The folder that a temporary file will lie in, if there will be one.
    pub fn folder(&self) -> Option<&Path> {
        match &self.kind {
            Kind::Regular { target, .. } => Some(folder_of(target)),
            _ => None,
        }
    }

    /// Whether writing would replace this file.
    pub fn replaces(&self, file: &Path) -> bool {
        match (&self.kind, file.metadata()) {
            (Kind::Regular { existing, .. }, Ok(other)) => existing
                .as_ref()
                .is_some_and(|existing| identity(existing) == identity(&other)),
            _ => false,
        }
    }

    /// Whether the other one would replace what is written here.
    pub fn collides(&self, other: &Self) -> bool {
        match (&self.kind, &other.kind) {
            (Kind::Regular { target: a, .. }, Kind::Regular { target: b, .. }) => a == b,
            _ => false,
        }
    }

    /// Starts to write. A FIFO is waited for until somebody reads it.
    ///
    /// # Errors
    /// If it cannot be opened or created.
    pub fn create(self) -> Result<OutFile, TraceError> {
        let failed = |error: io::Error| TraceError::output(&self.path, &error);
        let dup = |stream: BorrowedFd<'_>| stream.try_clone_to_owned().map(File::from);
        let (file, temporary) = match self.kind {
            Kind::Stdout => (dup(io::stdout().as_fd()).map_err(failed)?, None),
            Kind::Stderr => (dup(io::stderr().as_fd()).map_err(failed)?, None),
            Kind::Special => {
                let file = File::options().write(true).open(&self.path);
                (file.map_err(failed)?, None)
            }
            Kind::Regular { target, existing } => {
                // Nobody who may not read the file may read what will be in it.
                let mode = existing.as_ref().map_or(0o666, |file| file.mode() & 0o777);
                let (file, temporary) = Temporary::new(target, mode).map_err(failed)?;
                if let Some(existing) = existing {
                    keep_owner_and_mode(&file, &existing);
                }
                (file, Some(temporary))
            }
        };
        Ok(OutFile {
            file,
            temporary,
            written: 0,
        })
    }
}

/// A file being written. Dropped before [`finish`](Self::finish), a regular file is as it was before.
#[derive(Debug)]
pub struct OutFile {
    file: File,
    /// Of a regular file.
    temporary: Option<Temporary>,
    written: u64,
}

impl OutFile {
    /// Ends the file, gives it its name and returns its length.
    ///
    /// # Errors
    /// If its end does not reach the disk or it cannot take its name; nothing is left behind then.
    pub fn finish(self) -> io::Result<u64> {
        if let Some(temporary) = self.temporary {
            self.file.sync_all()?;
            temporary.take_name()?;
        }
        Ok(self.written)
    }
}

impl Write for OutFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let n = self.file.write(bytes)?;
        self.written += n as u64;
        Ok(n)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

fn identity(file: &Metadata) -> (u64, u64) {
    (file.dev(), file.ino())
}

/// Whether a file is what a standard stream leads to. Opened a second time, it would be written from its beginning, or,
/// being a socket, not at all.
fn is_stream(file: &Metadata, stream: BorrowedFd<'_>) -> bool {
    let stream = stream.try_clone_to_owned().map(File::from);
    stream
        .and_then(|stream| stream.metadata())
        .is_ok_and(|stream| identity(&stream) == identity(file))
}

fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

fn a_folder(path: &Path) -> TraceError {
    TraceError::file(&path.display().to_string(), "cannot write: it is a folder")
        .hint("name a file")
}

fn may_write(path: &Path) -> io::Result<()> {
    Ok(accessat(CWD, path, Access::WRITE_OK, AtFlags::EACCESS)?)
}

/// Where a file that does not exist will stand: links that lead nowhere yet are followed.
fn new_target(path: &Path) -> Result<PathBuf, TraceError> {
    let failed = |error: &io::Error| TraceError::output(path, error);
    let mut target = path.to_owned();
    while let Ok(link) = target.read_link() {
        target = target.with_file_name(link);
    }
    let names_folder = target.as_os_str().as_encoded_bytes().ends_with(b"/");
    let Some(name) = target.file_name().filter(|_| !names_folder) else {
        return Err(a_folder(path));
    };
    let folder = folder_of(&target);
    check_folder(path, folder, None)?;
    let folder = folder.canonicalize().map_err(|e| failed(&e))?;
    Ok(folder.join(name))
}

/// Checks that a file can be created in a folder and renamed over the one that exists.
fn check_folder(path: &Path, folder: &Path, existing: Option<&Metadata>) -> Result<(), TraceError> {
    let refuse = |text: String, hint: &str| {
        TraceError::file(&path.display().to_string(), format!("cannot write: {text}")).hint(hint)
    };
    let shown = folder.display();
    let found = match folder.metadata() {
        Ok(found) => found,
        Err(error) if error.kind() == ErrorKind::NotFound => {
            let text = format!("the folder {shown} does not exist");
            return Err(refuse(text, "make the folder first, or name another"));
        }
        Err(error) => return Err(TraceError::output(path, &error)),
    };
    if !found.is_dir() {
        let text = format!("{shown} is not a folder");
        return Err(refuse(text, "name a file in a folder"));
    }
    let access = Access::WRITE_OK | Access::EXEC_OK;
    let user = rustix::process::geteuid();
    // In a folder such as /tmp only its owner replaces a file.
    let sticky = found.mode() & 0o1000 != 0 && !user.is_root() && found.uid() != user.as_raw();
    let foreign = existing.is_some_and(|file| file.uid() != user.as_raw());
    if accessat(CWD, folder, access, AtFlags::EACCESS).is_err() || sticky && foreign {
        let text = format!("no file may be made or replaced in the folder {shown}");
        return Err(refuse(
            text,
            "check the permissions of the folder, or write to another",
        ));
    }
    Ok(())
}

/// As far as the user may and the file system can.
fn keep_owner_and_mode(file: &File, existing: &Metadata) {
    if fchown(file, Some(existing.uid()), Some(existing.gid())).is_err() {
        let _ = fchown(file, None, Some(existing.gid()));
    }
    let _ = file.set_permissions(Permissions::from_mode(existing.mode() & 0o7777));
}
