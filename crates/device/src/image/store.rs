//! What an image lies in: a file, or memory.

use std::fs::File;
use std::io;

use super::disk::Disk;
use super::memory::MemoryDisk;

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
