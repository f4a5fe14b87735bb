//! The chip in a file.

use std::path::Path;
use std::sync::Arc;

use floatgate_core::{Geometry, Lpn, Pbn, Ppn};

use super::disk::{AnyDisk, Disk};
use super::entries::{self, Seal};
use super::format::{
    BlockRecord, Header, Layout, PAGE_HEADER_BYTES, PageHeader, RECORD_BYTES, RegisterPage,
    record_at,
};
use super::log::Log;
use super::reader::{BlockSeen, Late, Reader, Slot, Tail, open_locked};
use super::region::{Cached, RegionSeen};
use super::{Durability, Found, ImageError, io, nand_io};
use crate::entry::PcmEntry;
use crate::nand::{BlockState, Damage, Nand, NandError, Spare};
use crate::ram::check_program_rule;
use crate::register::PAGE_ENTRIES;

/// A chip in a file, locked against a second opener. See the text of [`super`].
#[derive(Debug)]
pub struct ImageNand<D = AnyDisk> {
    log: Log<D>,
    layout: Layout,
    blocks: Vec<Block>,
    /// One bit a page.
    programmed: Vec<u64>,
    /// Erased blocks whose pages are still in the file.
    unfreed: Vec<Pbn>,
    /// Blocks of which a record is damaged.
    damaged: Vec<Pbn>,
    /// Version of each page of the register.
    register_versions: Vec<u64>,
    /// Nothing has changed since the device kept all of it.
    is_register_complete: bool,
    /// The page of entries read last.
    entries: Cached,
    /// The entries are complete, and nothing has changed since.
    has_complete_entries: bool,
    last_sequence: u64,
    found: Found,
}

#[derive(Clone, Copy, Debug, Default)]
struct Block {
    record: BlockRecord,
    /// Operations that wrote its two records.
    record_ops: [u64; 2],
    /// Highest programmed position + 1.
    written: u32,
    /// Last operation that programmed one of its pages.
    programmed_by: u64,
    /// The same for the pages from before the last erase.
    leftover: u64,
    /// Whether these are still in the file.
    is_unfreed: bool,
}

impl ImageNand {
    /// Opens an image and finds out what is programmed.
    ///
    /// # Errors
    /// If the file is not an image, has damaged headers, is too short, or is open elsewhere.
    pub fn open(path: &Path, durability: Durability) -> Result<Self, ImageError> {
        let disk: AnyDisk = Arc::new(open_locked(path, true)?);
        Self::open_on(disk, path, durability)
    }
}

impl<D: Disk> ImageNand<D> {
    /// Opens an image on any disk; `path` is for messages.
    ///
    /// # Errors
    /// If it is not an image, has damaged headers, or is too short.
    pub fn open_on(disk: D, path: &Path, durability: Durability) -> Result<Self, ImageError> {
        Self::of(Reader::of(disk, path)?, path, durability)
    }

    fn of(mut reader: Reader<D>, path: &Path, durability: Durability) -> Result<Self, ImageError> {
        reader.check_length()?;
        let failed = |e| io("read", path, e);
        let mut loaded = Loaded::read(&reader).map_err(failed)?;
        let end = loaded.tail.end(reader.header.durable);
        let beyond: Vec<Late> = loaded.tail.beyond(end).collect();
        if !beyond.is_empty() {
            reader.end = end;
            loaded = Loaded::read(&reader).map_err(failed)?;
        }
        let copies = [0, 1].map(|i| reader.copies[i].as_ref().map_or(0, |copy| copy.durable));
        let mut nand = Self {
            layout: reader.layout,
            register_versions: vec![0; register_pages(&reader.header.geometry)],
            is_register_complete: false,
            entries: Cached::default(),
            has_complete_entries: false,
            blocks: loaded.blocks,
            programmed: loaded.programmed,
            unfreed: loaded.unfreed,
            damaged: loaded.damaged,
            last_sequence: loaded.last_sequence,
            found: Found {
                clean: reader.header.clean && end == reader.header.durable && beyond.is_empty(),
                exact: reader.header.exact,
                damaged_header: reader.copies.iter().any(Result::is_err),
                discarded: beyond.len() as u64,
                ..loaded.found
            },
            log: Log::new(reader.disk, reader.header, copies, end, durability),
        };
        nand.recover(&beyond).map_err(|error| match error {
            NandError::Io { doing, source } => io(doing, path, source),
            other => io("open", path, std::io::Error::other(other.to_string())),
        })?;
        nand.look_at_entries().map_err(failed)?;
        Ok(nand)
    }

    /// Removes what is not believed, and makes sure that the rest is on the disk.
    fn recover(&mut self, beyond: &[Late]) -> Result<(), NandError> {
        for &late in beyond {
            match late {
                Late::Record(block, copy) => {
                    self.log.put(&[0; RECORD_BYTES], record_at(block, copy))?;
                }
                Late::Page(page) => {
                    let at = self.layout.header_at(page);
                    self.log.put(&[0; PAGE_HEADER_BYTES], at)?;
                }
            }
        }
        if self.found.clean {
            return Ok(());
        }
        self.log.sync()
    }

    /// Finds out whether the entries are complete, and how many are damaged.
    fn look_at_entries(&mut self) -> std::io::Result<()> {
        if self.log.header.pcm {
            let seen = self.region()?;
            self.found.damaged_entries = seen.damaged.len() as u64;
            self.has_complete_entries = self.found.clean && seen.is_sealed_at(self.log.last());
        }
        Ok(())
    }

    fn region(&self) -> std::io::Result<RegionSeen> {
        let logical_pages = self.log.header.geometry.logical_pages;
        RegionSeen::read(&self.log.disk, &self.layout, logical_pages)
    }

    /// Says that the entries are complete. It counts once the image is closed.
    fn seal_entries(&mut self) -> Result<(), NandError> {
        let seen = self.region().map_err(|e| nand_io("read", e))?;
        let seal = Seal {
            op: self.log.last(),
            entries_crc: seen.entries_crc,
        };
        self.log.put(&seal.encode(), self.layout.seal_at())
    }

    /// What opening found.
    pub fn found(&self) -> Found {
        self.found
    }

    /// What it lies in.
    pub fn disk(&self) -> &D {
        &self.log.disk
    }

    /// Whether it waits for the disk.
    pub fn durability(&self) -> Durability {
        self.log.durability()
    }

    /// What the header says.
    pub fn header(&self) -> &Header {
        &self.log.header
    }

    /// Flushes and marks the image as closed cleanly.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn close(mut self) -> Result<(), NandError> {
        for block in self.take_unfreed() {
            self.wait_and_free(block)?;
        }
        if self.log.header.pcm && self.has_complete_entries && !self.log.header.clean {
            self.seal_entries()?;
        }
        self.log.close(self.is_register_complete)
    }

    /// Writes anew the records of blocks of which a copy is damaged; returns how many.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn mend_records(&mut self) -> Result<u64, NandError> {
        let damaged = std::mem::take(&mut self.damaged);
        for &block in &damaged {
            self.begin_change()?;
            self.put_record(block, |_| {})?;
        }
        Ok(damaged.len() as u64)
    }

    fn put_record(
        &mut self,
        block: Pbn,
        change: impl FnOnce(&mut BlockRecord),
    ) -> Result<(), NandError> {
        let state = self.blocks[block.index()];
        let mut record = state.record;
        change(&mut record);
        record.version = record.version.wrapping_add(1);
        let copy = (record.version % 2) as usize;
        // The record that stays must be certain before this one is overwritten.
        self.log
            .wait_to_overwrite(state.record_ops[copy], state.record_ops[1 - copy])?;
        record.op = self.log.next();
        let at = record_at(block.0, copy as u64);
        self.log.put(&record.encode(block.0), at)?;
        self.log.done();
        let state = &mut self.blocks[block.index()];
        state.record = record;
        state.record_ops[copy] = record.op;
        Ok(())
    }

    /// Frees the pages of an erased block.
    fn free(&mut self, block: Pbn) -> Result<(), NandError> {
        let at = self.layout.block_at(block.0);
        self.log.punch(at, self.layout.block_bytes)?;
        let state = &mut self.blocks[block.index()];
        (state.leftover, state.is_unfreed) = (0, false);
        Ok(())
    }

    /// Frees the pages of an erased block as soon as they may be overwritten.
    fn wait_and_free(&mut self, block: Pbn) -> Result<(), NandError> {
        let state = self.blocks[block.index()];
        self.log
            .wait_to_overwrite(state.leftover, state.record.op)?;
        self.free(block)
    }

    /// The blocks still to be freed. Those listed that were freed to be programmed again are dropped: they hold new pages.
    fn take_unfreed(&mut self) -> Vec<Pbn> {
        let mut listed = std::mem::take(&mut self.unfreed);
        listed.retain(|block| self.blocks[block.index()].is_unfreed);
        listed
    }

    /// Frees what may be freed.
    fn free_erased(&mut self) -> Result<(), NandError> {
        for block in self.take_unfreed() {
            let state = self.blocks[block.index()];
            if self.log.may_overwrite(state.leftover, state.record.op) {
                self.free(block)?;
            } else {
                self.unfreed.push(block);
            }
        }
        Ok(())
    }

    fn mark(&mut self, page: Ppn, programmed: bool) {
        set_bit(&mut self.programmed, page.index(), programmed);
    }

    /// The header of a programmed page.
    fn page_header(&self, page: Ppn) -> Result<PageHeader, NandError> {
        if !self.is_programmed(page) {
            return Err(NandError::Erased { page });
        }
        let mut bytes = [0; PAGE_HEADER_BYTES];
        self.read_at(&mut bytes, self.layout.header_at(page.0))?;
        match PageHeader::decode(&bytes, page.0) {
            Ok(Some(header)) => Ok(header),
            _ => Err(NandError::Unreadable { page }),
        }
    }

    fn read_at(&self, bytes: &mut [u8], at: u64) -> Result<(), NandError> {
        let read = self.log.disk.read(bytes, at);
        read.map_err(|e| nand_io("read", e))
    }

    fn begin_change(&mut self) -> Result<(), NandError> {
        self.is_register_complete = false;
        self.has_complete_entries = false;
        self.log.begin_change()
    }

    /// Everything so far is on the disk, and is not looked for: then a test may damage it.
    fn settle(&mut self) -> Result<(), NandError> {
        self.begin_change()?;
        self.log.sync()
    }
}

/// What is in the file.
#[derive(Default)]
struct Loaded {
    blocks: Vec<Block>,
    programmed: Vec<u64>,
    unfreed: Vec<Pbn>,
    damaged: Vec<Pbn>,
    last_sequence: u64,
    found: Found,
    /// The operations that came after the last flush.
    tail: Tail,
}

impl Loaded {
    fn read<D: Disk>(reader: &Reader<D>) -> std::io::Result<Self> {
        let geometry = &reader.header.geometry;
        let mut loaded = Self {
            blocks: Vec::with_capacity(geometry.blocks() as usize),
            programmed: vec![0; (geometry.pages() as usize).div_ceil(64)],
            ..Self::default()
        };
        for block in 0..geometry.blocks() {
            let seen = reader.block(block)?;
            reader.note_tail(&seen, block, &mut loaded.tail)?;
            loaded.take_in(geometry.ppn(Pbn(block), 0), Pbn(block), &seen);
        }
        Ok(loaded)
    }

    fn take_in(&mut self, first: Ppn, block: Pbn, seen: &BlockSeen) {
        let mut state = Block {
            record: seen.record,
            record_ops: seen.record_ops,
            ..Block::default()
        };
        if seen.record_faults.iter().any(Option::is_some) {
            self.found.damaged_records += 1;
            self.damaged.push(block);
        }
        self.found.bad_blocks += u64::from(seen.record.state != BlockState::Good);
        self.last_sequence = self.last_sequence.max(seen.last_sequence);
        let (mut programmed, mut stale) = (0, 0);
        for (position, slot) in (0..).zip(&seen.slots) {
            match slot {
                Slot::Erased | Slot::Unfinished => continue,
                Slot::Stale(header) => {
                    stale += 1;
                    state.leftover = state.leftover.max(header.op);
                    continue;
                }
                Slot::Fault(_) => self.found.unreadable += 1,
                Slot::Programmed(header) => {
                    state.programmed_by = state.programmed_by.max(header.op);
                }
            }
            programmed += 1;
            set_bit(
                &mut self.programmed,
                first.index() + position as usize,
                true,
            );
            state.written = position + 1;
        }
        // Old and new pages in one block: nobody writes that, and the new ones must not be freed.
        state.is_unfreed = stale > 0 && programmed == 0;
        if state.is_unfreed {
            self.unfreed.push(block);
        }
        self.found.stale += stale;
        self.found.programmed += programmed;
        self.found.gaps += u64::from(state.written) - programmed;
        self.blocks.push(state);
    }
}

fn register_pages(geometry: &Geometry) -> usize {
    (geometry.logical_pages as usize).div_ceil(PAGE_ENTRIES)
}

fn set_bit(bits: &mut [u64], at: usize, value: bool) {
    let (word, bit) = (at / 64, at % 64);
    bits[word] = bits[word] & !(1 << bit) | u64::from(value) << bit;
}

impl<D: Disk> Nand for ImageNand<D> {
    fn geometry(&self) -> &Geometry {
        &self.log.header.geometry
    }

    fn page_bytes(&self) -> usize {
        self.log.header.page_bytes as usize
    }

    fn is_programmed(&self, page: Ppn) -> bool {
        self.programmed[page.index() / 64] >> (page.index() % 64) & 1 == 1
    }

    fn erase_count(&self, block: Pbn) -> u32 {
        self.blocks[block.index()].record.erases
    }

    fn block_state(&self, block: Pbn) -> BlockState {
        self.blocks[block.index()].record.state
    }

    fn last_sequence(&self) -> u64 {
        self.last_sequence
    }

    fn read(&mut self, page: Ppn, data: &mut [u8]) -> Result<Spare, NandError> {
        let header = self.page_header(page)?;
        self.read_at(data, self.layout.data_at(page.0))?;
        if !header.fits(data) {
            return Err(NandError::Unreadable { page });
        }
        Ok(header.spare)
    }

    fn read_spare(&mut self, page: Ppn) -> Result<Spare, NandError> {
        Ok(self.page_header(page)?.spare)
    }

    fn program(&mut self, page: Ppn, spare: &Spare, data: &[u8]) -> Result<(), NandError> {
        let (block, position) = self.log.header.geometry.split(page);
        let state = self.blocks[block.index()];
        check_program_rule(
            &self.log.header.geometry,
            page,
            self.is_programmed(page),
            state.written,
        )?;
        self.begin_change()?;
        if state.is_unfreed {
            self.wait_and_free(block)?;
        }
        let op = self.log.next();
        let header = PageHeader::new(state.record.erases, page.0, op, spare, data);
        self.log.put(data, self.layout.data_at(page.0))?;
        self.log
            .put(&header.encode(), self.layout.header_at(page.0))?;
        self.log.done();
        self.mark(page, true);
        let state = &mut self.blocks[block.index()];
        state.written = state.written.max(position + 1);
        state.programmed_by = op;
        self.last_sequence = self.last_sequence.max(spare.sequence);
        Ok(())
    }

    fn erase(&mut self, block: Pbn) -> Result<(), NandError> {
        self.begin_change()?;
        self.put_record(block, |record| {
            record.erases = record.erases.saturating_add(1)
        })?;
        let written = self.blocks[block.index()].written;
        for position in 0..written {
            self.mark(self.log.header.geometry.ppn(block, position), false);
        }
        let state = &mut self.blocks[block.index()];
        state.leftover = state.leftover.max(state.programmed_by);
        (state.written, state.programmed_by) = (0, 0);
        if written > 0 && !state.is_unfreed {
            state.is_unfreed = true;
            self.unfreed.push(block);
        }
        Ok(())
    }

    fn mark_bad(&mut self, block: Pbn, state: BlockState) -> Result<(), NandError> {
        self.begin_change()?;
        self.put_record(block, |record| record.state = state)
    }

    fn flush(&mut self) -> Result<(), NandError> {
        self.log.flush()?;
        self.free_erased()
    }

    /// What is not whole was discarded.
    fn is_settled(&self) -> bool {
        true
    }

    fn has_exact_register(&self) -> bool {
        self.found.clean && self.found.exact
    }

    fn complete_register(&mut self) {
        self.is_register_complete = true;
    }

    fn load_register(&mut self, page: usize, entries: &mut [u64]) -> Result<u8, NandError> {
        let kept = Reader::register(&self.log.disk, &self.layout, page);
        let kept = kept.map_err(|e| nand_io("read", e))?;
        self.found.damaged_register += kept.faults.iter().flatten().count() as u64;
        if let Some(newest) = kept.newest {
            let count = entries.len();
            entries.copy_from_slice(&newest.entries[..count]);
            self.register_versions[page] = newest.version;
        }
        Ok(kept.copies)
    }

    fn save_register(&mut self, page: usize, entries: &[u64]) -> Result<(), NandError> {
        self.begin_change()?;
        let mut kept = RegisterPage {
            version: self.register_versions[page].wrapping_add(1),
            entries: [0; PAGE_ENTRIES],
        };
        kept.entries[..entries.len()].copy_from_slice(entries);
        let at = self.layout.register_at(page, kept.version % 2);
        self.log.put(&kept.encode(page), at)?;
        self.register_versions[page] = kept.version;
        Ok(())
    }

    fn keeps_entries(&self) -> bool {
        self.log.header.pcm
    }

    fn load_entry(&mut self, lpn: Lpn) -> Result<Option<PcmEntry>, NandError> {
        if !self.log.header.pcm {
            return Ok(None);
        }
        let bytes = self.entries.entry(&self.log.disk, &self.layout, lpn);
        let bytes = bytes.map_err(|e| nand_io("read", e))?;
        Ok(entries::decode(lpn, &bytes).unwrap_or(Some(PcmEntry::DAMAGED)))
    }

    fn save_entry(&mut self, lpn: Lpn, entry: Option<&PcmEntry>) -> Result<(), NandError> {
        if !self.log.header.pcm {
            return Ok(());
        }
        self.begin_change()?;
        self.entries.forget();
        let at = self.layout.entry_at(lpn.0);
        self.log.put(&entries::encode(lpn, entry), at)
    }

    fn has_complete_entries(&self) -> bool {
        self.has_complete_entries
    }

    fn complete_entries(&mut self) {
        self.has_complete_entries = true;
    }

    fn check_kept(&self) -> Result<(), NandError> {
        self.log.check()
    }
}

impl<D: Disk> Damage for ImageNand<D> {
    fn spoil(&mut self, page: Ppn) -> Result<(), NandError> {
        self.settle()?;
        let at = self.layout.header_at(page.0);
        self.log.put(&[0xA5; PAGE_HEADER_BYTES], at)?;
        self.mark(page, true);
        let (block, position) = self.log.header.geometry.split(page);
        let written = &mut self.blocks[block.index()].written;
        *written = (*written).max(position + 1);
        Ok(())
    }

    fn vanish(&mut self, page: Ppn) -> Result<(), NandError> {
        self.settle()?;
        let at = self.layout.header_at(page.0);
        self.log.put(&[0; PAGE_HEADER_BYTES], at)?;
        self.mark(page, false);
        let block = self.log.header.geometry.block_of(page);
        self.blocks[block.index()].written = crate::nand::written(self, block);
        Ok(())
    }
}
