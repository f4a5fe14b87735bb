//! The system calls that an image is made of, so that a test can lose, mix and refuse them.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use rustix::fs::{FallocateFlags, SeekFrom, fallocate, seek};
use rustix::io::Errno;

use super::memory::MemoryDisk;

/// A file that holds an image. Bytes never written are zero.
pub trait Disk {
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

/// What an image lies in.
#[derive(Debug)]
pub enum Store {
    /// A file.
    File(File),
    /// Memory.
    Memory(MemoryDisk),
}

impl Store {
    /// A further handle of the same bytes.
    ///
    /// # Errors
    /// If the system has none.
    pub fn try_clone(&self) -> io::Result<Self> {
        Ok(match self {
            Self::File(file) => Self::File(file.try_clone()?),
            Self::Memory(disk) => Self::Memory(disk.clone()),
        })
    }

    fn on<T>(&self, ask: impl FnOnce(&dyn Disk) -> T) -> T {
        match self {
            Self::File(file) => ask(file),
            Self::Memory(disk) => ask(disk),
        }
    }
}

impl Disk for Store {
    fn read(&self, bytes: &mut [u8], at: u64) -> io::Result<()> {
        self.on(|disk| disk.read(bytes, at))
    }

    fn write(&self, bytes: &[u8], at: u64) -> io::Result<()> {
        self.on(|disk| disk.write(bytes, at))
    }

    fn punch(&self, at: u64, bytes: u64) -> io::Result<()> {
        self.on(|disk| disk.punch(at, bytes))
    }

    fn sync(&self) -> io::Result<()> {
        self.on(|disk| disk.sync())
    }

    fn bytes(&self) -> io::Result<u64> {
        self.on(|disk| disk.bytes())
    }

    fn next_data(&self, at: u64) -> Option<u64> {
        self.on(|disk| disk.next_data(at))
    }
}
