//! The system calls that an image is made of, so that a test can lose, mix and refuse them.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use rustix::fs::{FallocateFlags, SeekFrom, fallocate, seek};
use rustix::io::Errno;

/// A file that holds an image. Bytes never written are zero.
pub trait Disk: std::fmt::Debug {
    /// Fills `bytes` from there on.
    ///
    /// # Errors
    /// Those of the file system; the end of the file is one.
    fn read(&self, bytes: &mut [u8], at: u64) -> io::Result<()>;

    /// Writes all of `bytes`.
    ///
    /// # Errors
    /// Those of the file system; some of the bytes may then have been written.
    fn write(&self, bytes: &[u8], at: u64) -> io::Result<()>;

    /// Zeroes a range and frees its space where the file system can.
    ///
    /// # Errors
    /// Those of the file system.
    fn punch(&self, at: u64, bytes: u64) -> io::Result<()>;

    /// Returns once everything written survives a crash of the machine.
    ///
    /// # Errors
    /// Those of the file system. What was written before is then in doubt for ever: a second call may succeed without
    /// having written it.
    fn sync(&self) -> io::Result<()>;

    /// Length of the file.
    ///
    /// # Errors
    /// Those of the file system.
    fn bytes(&self) -> io::Result<u64>;

    /// From where on, at or after `at`, there may be anything but zeroes; `None` if there is nothing up to the end.
    fn next_data(&self, at: u64) -> Option<u64> {
        Some(at)
    }
}

impl Disk for File {
    fn read(&self, bytes: &mut [u8], at: u64) -> io::Result<()> {
        self.read_exact_at(bytes, at)
    }

    fn write(&self, bytes: &[u8], at: u64) -> io::Result<()> {
        self.write_all_at(bytes, at)
    }

    fn punch(&self, at: u64, bytes: u64) -> io::Result<()> {
        let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        match fallocate(self, flags, at, bytes) {
            // Not every file system has holes.
            Err(Errno::OPNOTSUPP | Errno::NOSYS) => {}
            outcome => return Ok(outcome?),
        }
        let zeroes = vec![0; bytes.min(1 << 20) as usize];
        let mut done = 0;
        while done < bytes {
            let now = (bytes - done).min(zeroes.len() as u64);
            self.write_all_at(&zeroes[..now as usize], at + done)?;
            done += now;
        }
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        self.sync_data()
    }

    fn bytes(&self) -> io::Result<u64> {
        Ok(self.metadata()?.len())
    }

    fn next_data(&self, at: u64) -> Option<u64> {
        match seek(self, SeekFrom::Data(at)) {
            Ok(data) => Some(data),
            Err(Errno::NXIO) => None,
            // It cannot tell.
            Err(_) => Some(at),
        }
    }
}

/// A disk of any kind, of which there are several handles.
pub type AnyDisk = Arc<dyn Disk + Send + Sync>;

impl Disk for AnyDisk {
    fn read(&self, bytes: &mut [u8], at: u64) -> io::Result<()> {
        (**self).read(bytes, at)
    }

    fn write(&self, bytes: &[u8], at: u64) -> io::Result<()> {
        (**self).write(bytes, at)
    }

    fn punch(&self, at: u64, bytes: u64) -> io::Result<()> {
        (**self).punch(at, bytes)
    }

    fn sync(&self) -> io::Result<()> {
        (**self).sync()
    }

    fn bytes(&self) -> io::Result<u64> {
        (**self).bytes()
    }

    fn next_data(&self, at: u64) -> Option<u64> {
        (**self).next_data(at)
    }
}
