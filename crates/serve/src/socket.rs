//! A socket in the file system: taken, waited on, removed.

use std::io::{self, ErrorKind};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// How often whoever waits looks for the end.
pub const ROUND: Duration = Duration::from_millis(100);

/// A socket with a name in the file system, for this user alone. The name goes with it.
#[derive(Debug)]
pub struct OwnSocket {
    listener: UnixListener,
    path: PathBuf,
    /// What tells its file from another that has taken the name.
    file: (u64, u64),
}

impl OwnSocket {
    /// Takes the name. The file of a server that was killed is replaced; any other file is left alone.
    ///
    /// # Errors
    /// If the name is taken, or cannot be used.
    pub fn bind(path: &Path) -> io::Result<Self> {
        remove_abandoned(path)?;
        let listener = UnixListener::bind(path)?;
        std::fs::set_permissions(path, PermissionsExt::from_mode(0o600))?;
        Ok(Self {
            listener,
            file: identity(path)?,
            path: path.into(),
        })
    }

    /// What clients connect to.
    pub fn listener(&self) -> &UnixListener {
        &self.listener
    }

    /// Its name, from the root on.
    ///
    /// # Errors
    /// If this process has no folder that it stands in.
    pub fn whole_path(&self) -> io::Result<PathBuf> {
        std::path::absolute(&self.path)
    }
}

impl Drop for OwnSocket {
    fn drop(&mut self) {
        if identity(&self.path).is_ok_and(|found| found == self.file) {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

/// Removes the socket of a server that is no more.
fn remove_abandoned(path: &Path) -> io::Result<()> {
    let Ok(found) = path.symlink_metadata() else {
        return Ok(());
    };
    let taken = |text: &str| Err(io::Error::new(ErrorKind::AddrInUse, text));
    if !found.file_type().is_socket() {
        return taken("this file exists, and is no socket");
    }
    match UnixStream::connect(path) {
        Err(error) if error.kind() == ErrorKind::ConnectionRefused => std::fs::remove_file(path),
        _ => taken("another server listens there"),
    }
}

fn identity(path: &Path) -> io::Result<(u64, u64)> {
    let found = path.symlink_metadata()?;
    Ok((found.dev(), found.ino()))
}

/// Waits for a client, for a round at most; whether there is one.
pub fn wait(listener: &impl AsFd) -> bool {
    let listener: BorrowedFd<'_> = listener.as_fd();
    let round = Timespec {
        tv_sec: 0,
        tv_nsec: ROUND.as_nanos() as _,
    };
    // A signal ends the wait early, which does no harm.
    let ready = poll(
        &mut [PollFd::from_borrowed_fd(listener, PollFlags::IN)],
        Some(&round),
    );
    ready.is_ok_and(|count| count > 0)
}
