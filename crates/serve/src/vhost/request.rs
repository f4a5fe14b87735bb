//! One request of a virtio block device: a chain of pieces of the guest's memory, first those that it has written
//! (header and data), then those that it wants written (data and one byte of status).
//!
//! Nothing in a chain is trusted: an address may lie nowhere, a length may be any, the chain may have no end. What is no
//! request is answered as an error, or with nothing where there is no place for an answer; the device does not hear of it.

use std::ops::Deref;

use virtio_queue::DescriptorChain;
use vm_memory::{Bytes, GuestAddress, GuestMemory};

use crate::shared::{Failure, Shared};

/// Bytes of a request at most, as with NBD.
pub const REQUEST_BYTES_MAX: u64 = 32 << 20;
/// Ranges of one discard.
pub const RANGES_MAX: u32 = 16;
/// Sectors of virtio, whatever those of the device are.
pub const SECTOR_BYTES: u64 = 512;

/// A buffer that a request left larger is given back.
const BUFFER_BYTES_KEPT: usize = 1 << 20;
const HEADER_BYTES: u64 = 16;
const RANGE_BYTES: u64 = 16;
const NAME: &[u8; 20] = b"floatgate\0\0\0\0\0\0\0\0\0\0\0";

/// Numbers of the virtio specification.
pub mod number {
    pub const IN: u32 = 0;
    pub const OUT: u32 = 1;
    pub const FLUSH: u32 = 4;
    pub const GET_ID: u32 = 8;
    pub const DISCARD: u32 = 11;
    pub const WRITE_ZEROES: u32 = 13;
    pub const OK: u8 = 0;
    pub const FAILED: u8 = 1;
    pub const UNSUPPORTED: u8 = 2;
    /// Flag of a range of zeroes: it may be dropped.
    pub const UNMAP: u32 = 1;
}

/// Pieces of the guest's memory, as if they were one.
#[derive(Debug, Default)]
struct Pieces {
    pieces: Vec<(GuestAddress, u32)>,
    bytes: u64,
}

/// A range of a discard, checked.
struct Range {
    offset: u64,
    bytes: u64,
    may_drop: bool,
}

/// What the requests of a queue reuse.
#[derive(Debug, Default)]
pub struct Worker {
    readable: Pieces,
    writable: Pieces,
    data: Vec<u8>,
}

impl Worker {
    /// Does what a chain asks for and writes the answer; how many bytes of the guest's memory that took. With `through`
    /// what was written survives a crash of the machine when it is answered.
    pub fn answer<M>(&mut self, shared: &Shared, through: bool, chain: DescriptorChain<M>) -> u32
    where
        M: Deref,
        M::Target: GuestMemory,
    {
        let mut chain = chain;
        let is_in_order = self.take(&mut chain);
        let memory = chain.memory();
        // Without a place for the status nothing is done: the guest could not hear of it.
        let Some(room) = self.writable.bytes.checked_sub(1) else {
            return 0;
        };
        let outcome = match is_in_order {
            true => self.perform(memory, shared, through, room),
            false => Err(Failure::Invalid),
        };
        let status = match outcome {
            Ok(()) => number::OK,
            Err(Failure::Unsupported) => number::UNSUPPORTED,
            Err(_) => number::FAILED,
        };
        self.data.truncate(BUFFER_BYTES_KEPT);
        self.data.shrink_to(BUFFER_BYTES_KEPT);
        match self.writable.write(memory, room, &[status]) {
            Ok(()) => u32::try_from(room + 1).unwrap_or(u32::MAX),
            Err(_) => 0,
        }
    }

    /// Takes the pieces of a chain; whether they stand in the order that is prescribed.
    fn take<M>(&mut self, chain: &mut DescriptorChain<M>) -> bool
    where
        M: Deref,
        M::Target: GuestMemory,
    {
        self.readable.clear();
        self.writable.clear();
        let mut is_in_order = true;
        for piece in chain {
            let pieces = match piece.is_write_only() {
                true => &mut self.writable,
                false => &mut self.readable,
            };
            pieces.pieces.push((piece.addr(), piece.len()));
            pieces.bytes += u64::from(piece.len());
            is_in_order &= piece.is_write_only() || self.writable.pieces.is_empty();
        }
        is_in_order
    }

    fn perform<M: GuestMemory + ?Sized>(
        &mut self,
        memory: &M,
        shared: &Shared,
        through: bool,
        room: u64,
    ) -> Result<(), Failure> {
        let mut header = [0; HEADER_BYTES as usize];
        self.readable.read(memory, 0, &mut header)?;
        let kind = u32::from_le_bytes(part(&header, 0));
        let sector = u64::from_le_bytes(part(&header, 8));
        let sent = self.readable.bytes - HEADER_BYTES;
        match kind {
            number::IN => {
                let offset = checked(shared, sector, room)?;
                self.size_buffer(room)?;
                shared.read(offset, &mut self.data)?;
                self.writable.write(memory, 0, &self.data)
            }
            number::OUT => {
                let offset = checked(shared, sector, sent)?;
                self.size_buffer(sent)?;
                self.readable.read(memory, HEADER_BYTES, &mut self.data)?;
                shared.write(offset, &self.data, through)
            }
            number::FLUSH => shared.flush(),
            number::GET_ID => {
                let bytes = (NAME.len() as u64).min(room) as usize;
                self.writable.write(memory, 0, &NAME[..bytes])
            }
            number::DISCARD | number::WRITE_ZEROES => {
                self.drop_ranges(memory, shared, kind, sent)?;
                match through {
                    true => shared.flush(),
                    false => Ok(()),
                }
            }
            _ => Err(Failure::Unsupported),
        }
    }

    /// Discards, or makes zeroes. All ranges are checked before the first is touched.
    fn drop_ranges<M: GuestMemory + ?Sized>(
        &mut self,
        memory: &M,
        shared: &Shared,
        kind: u32,
        sent: u64,
    ) -> Result<(), Failure> {
        let count = sent / RANGE_BYTES;
        if !sent.is_multiple_of(RANGE_BYTES) || !(1..=u64::from(RANGES_MAX)).contains(&count) {
            return Err(Failure::Invalid);
        }
        self.size_buffer(sent)?;
        self.readable.read(memory, HEADER_BYTES, &mut self.data)?;
        for bytes in self.data.chunks_exact(RANGE_BYTES as usize) {
            Range::checked(shared, kind, bytes)?;
        }
        for bytes in self.data.chunks_exact(RANGE_BYTES as usize) {
            let range = Range::checked(shared, kind, bytes)?;
            match kind {
                number::DISCARD => shared.trim(range.offset, range.bytes)?,
                _ => shared.write_zeroes(range.offset, range.bytes, range.may_drop)?,
            }
        }
        Ok(())
    }

    fn size_buffer(&mut self, bytes: u64) -> Result<(), Failure> {
        if bytes > REQUEST_BYTES_MAX {
            return Err(Failure::TooLong);
        }
        self.data.resize(bytes as usize, 0);
        Ok(())
    }
}

impl Range {
    fn checked(shared: &Shared, kind: u32, bytes: &[u8]) -> Result<Self, Failure> {
        let sector = u64::from_le_bytes(part(bytes, 0));
        let sectors = u32::from_le_bytes(part(bytes, 8));
        let flags = u32::from_le_bytes(part(bytes, 12));
        let known = match kind {
            number::WRITE_ZEROES => number::UNMAP,
            _ => 0,
        };
        if flags & !known != 0 {
            return Err(Failure::Unsupported);
        }
        let bytes = u64::from(sectors) * SECTOR_BYTES;
        Ok(Self {
            offset: checked(shared, sector, bytes)?,
            bytes,
            may_drop: flags & number::UNMAP != 0,
        })
    }
}

/// The first byte of a range that consists of sectors and lies in the device.
fn checked(shared: &Shared, sector: u64, bytes: u64) -> Result<u64, Failure> {
    let offset = sector.checked_mul(SECTOR_BYTES).ok_or(Failure::Invalid)?;
    shared.export().check(offset, bytes)?;
    Ok(offset)
}

/// So many bytes of a longer array.
fn part<const N: usize>(bytes: &[u8], from: usize) -> [u8; N] {
    let mut part = [0; N];
    part.copy_from_slice(&bytes[from..from + N]);
    part
}

impl Pieces {
    fn clear(&mut self) {
        self.pieces.clear();
        self.bytes = 0;
    }

    /// Calls for every piece of a range, with its place in the guest and in the range.
    fn each(
        &self,
        skip: u64,
        bytes: usize,
        mut call: impl FnMut(GuestAddress, std::ops::Range<usize>) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        if skip + bytes as u64 > self.bytes {
            return Err(Failure::Invalid);
        }
        let (mut skip, mut done) = (skip, 0);
        for &(address, length) in &self.pieces {
            let skipped = skip.min(length.into());
            skip -= skipped;
            let count = (u64::from(length) - skipped).min((bytes - done) as u64);
            if count > 0 {
                let at = address.0.checked_add(skipped).ok_or(Failure::Invalid)?;
                call(GuestAddress(at), done..done + count as usize)?;
                done += count as usize;
            }
        }
        Ok(())
    }

    fn read<M: GuestMemory + ?Sized>(
        &self,
        memory: &M,
        skip: u64,
        into: &mut [u8],
    ) -> Result<(), Failure> {
        self.each(skip, into.len(), |address, range| {
            let read = memory.read_slice(&mut into[range], address);
            read.map_err(|_| Failure::Invalid)
        })
    }

    fn write<M: GuestMemory + ?Sized>(
        &self,
        memory: &M,
        skip: u64,
        from: &[u8],
    ) -> Result<(), Failure> {
        self.each(skip, from.len(), |address, range| {
            let written = memory.write_slice(&from[range], address);
            written.map_err(|_| Failure::Invalid)
        })
    }
}
