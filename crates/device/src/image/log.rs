//! Which operations are on the disk, and what may be overwritten. See the text of [`super`].

use std::io;

use super::disk::Disk;
use super::format::{HEADER_BYTES, Header};
use super::{Durability, nand_io};
use crate::nand::NandError;

/// The file, and the numbers of operations.
#[derive(Debug)]
pub(super) struct Log<D> {
    pub disk: D,
    pub header: Header,
    durability: Durability,
    /// Number of the last operation.
    op: u64,
    /// Operations up to that number are on the disk.
    synced: u64,
    /// [`Header::durable`] as last written to either header, ...
    copies: [u64; 2],
    /// ... and as it is on the disk at least.
    certain: [u64; 2],
    /// Something was written since the last sync.
    unsynced: bool,
    /// The failure that ended writing.
    failed: Option<(&'static str, io::ErrorKind, String)>,
}

impl<D: Disk> Log<D> {
    /// The log of a file with those headers, whose operations up to `op` are believed.
    pub fn new(disk: D, header: Header, copies: [u64; 2], op: u64, durability: Durability) -> Self {
        let is_clean = header.clean;
        Self {
            disk,
            durability,
            op,
            synced: if is_clean { op } else { header.durable },
            copies,
            certain: if is_clean { copies } else { [0; 2] },
            unsynced: !is_clean,
            failed: None,
            header,
        }
    }

    /// Whether anything waits for the disk.
    pub fn durability(&self) -> Durability {
        self.durability
    }

    /// The number of the next operation; [`Log::done`] counts it once it is in the file.
    pub fn next(&self) -> u64 {
        self.op + 1
    }

    /// The number of the last operation.
    pub fn last(&self) -> u64 {
        self.op
    }

    /// The operation is in the file.
    pub fn done(&mut self) {
        self.op += 1;
    }

    /// Writes to the file.
    pub fn put(&mut self, bytes: &[u8], at: u64) -> Result<(), NandError> {
        self.unsynced = true;
        self.try_once("write", |disk| disk.write(bytes, at))
    }

    /// Zeroes a part of the file.
    pub fn punch(&mut self, at: u64, bytes: u64) -> Result<(), NandError> {
        self.try_once("erase in", |disk| disk.punch(at, bytes))
    }

    /// Returns once everything so far survives a crash of the machine.
    pub fn sync(&mut self) -> Result<(), NandError> {
        self.wait_for_disk()?;
        self.synced = self.op;
        // Not waited for: the older number would do.
        self.put_header(self.header.clean, self.header.exact)?;
        self.unsynced = false;
        Ok(())
    }

    /// The same, unless there is nothing to wait for.
    pub fn flush(&mut self) -> Result<(), NandError> {
        self.check()?;
        if self.unsynced || self.synced < self.op {
            self.sync()?;
        }
        Ok(())
    }

    /// Marks the image as not closed cleanly, before the first change.
    pub fn begin_change(&mut self) -> Result<(), NandError> {
        self.check()?;
        if self.header.clean {
            self.put_header(false, false)?;
            self.wait_for_disk()?;
        }
        Ok(())
    }

    /// Marks the image as closed cleanly, and whether the register tells of everything.
    pub fn close(&mut self, exact: bool) -> Result<(), NandError> {
        self.flush()?;
        if !self.header.clean {
            self.put_header(true, exact)?;
            self.wait_for_disk()?;
        }
        Ok(())
    }

    /// Waits until bytes written by operation `old`, and made void by operation `by`, may be overwritten: `by` can
    /// then no longer be discarded, and nobody looks for `old`.
    pub fn wait_to_overwrite(&mut self, old: u64, by: u64) -> Result<(), NandError> {
        // Each sync makes one more header certain.
        while by > self.synced || old > self.certain[0].min(self.certain[1]) {
            self.sync()?;
        }
        Ok(())
    }

    /// Whether there would be nothing to wait for.
    pub fn may_overwrite(&self, old: u64, by: u64) -> bool {
        by <= self.synced && old <= self.certain[0].min(self.certain[1])
    }

    fn put_header(&mut self, clean: bool, exact: bool) -> Result<(), NandError> {
        let header = Header {
            clean,
            exact,
            sequence: self.header.sequence.wrapping_add(1),
            durable: self.synced,
            ..self.header.clone()
        };
        let copy = (header.sequence % 2) as usize;
        self.put(&header.encode(), (copy * HEADER_BYTES) as u64)?;
        self.copies[copy] = header.durable;
        self.header = header;
        Ok(())
    }

    fn wait_for_disk(&mut self) -> Result<(), NandError> {
        self.check()?;
        if self.durability == Durability::Machine {
            self.try_once("flush", Disk::sync)?;
        }
        self.certain = self.copies;
        Ok(())
    }

    /// A system call; its failure is final.
    fn try_once(
        &mut self,
        doing: &'static str,
        call: impl FnOnce(&D) -> io::Result<()>,
    ) -> Result<(), NandError> {
        self.check()?;
        call(&self.disk).map_err(|error| {
            self.failed = Some((doing, error.kind(), error.to_string()));
            nand_io(doing, error)
        })
    }

    /// Whether writing has ended.
    pub fn check(&self) -> Result<(), NandError> {
        match &self.failed {
            None => Ok(()),
            Some((doing, kind, text)) => Err(nand_io(doing, io::Error::new(*kind, text.clone()))),
        }
    }
}
