//! The log as intervals between flushes.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::BufReader;
use std::path::Path;

use twox_hash::XxHash3_128;

use crate::log::{Ended, Header, Kind, LogError, Place, Reader, Record};

/// Bytes that stand somewhere from the beginning.
#[derive(Clone, Copy, Debug)]
pub struct Content {
    /// First byte on the device.
    pub offset: u64,
    /// Where the bytes lie in the log.
    pub place: Place,
}

/// A change between two flushes.
#[derive(Clone, Debug)]
pub struct Change {
    /// First byte.
    pub offset: u64,
    /// Bytes.
    pub bytes: u64,
    /// Where its bytes lie in the log; a trim has none.
    pub place: Option<Place>,
    /// Whether it survives a power cut once it was answered.
    pub fua: bool,
    /// Marks that were said before the next change.
    pub marks: usize,
    /// Whether the device held something else than zeroes there when the interval began.
    pub is_overwrite: bool,
    /// Sectors of the interval that it changes, by their place in [`Interval::before`], and the hash of each afterwards.
    pub sectors: Vec<(u32, u128)>,
}

impl Change {
    /// Whether a power cut may lose it although it was answered.
    pub fn is_volatile(&self) -> bool {
        !self.fua
    }
}

/// The changes between two flushes, of which there is at least one.
#[derive(Clone, Debug)]
pub struct Interval {
    /// The changes in their order.
    pub changes: Vec<Change>,
    /// Marks that were said before the first change.
    pub marks: usize,
    /// The hash of the device's content when it began.
    pub hash: u128,
    /// The hashes of all sectors that any change touches, when it began.
    pub before: Vec<u128>,
}

impl Interval {
    /// Marks that were said when so many changes had been answered.
    pub fn marks_at(&self, cut: usize) -> usize {
        match cut.checked_sub(1).and_then(|last| self.changes.get(last)) {
            Some(change) => change.marks,
            None => self.marks,
        }
    }
}

/// A log, read.
#[derive(Debug)]
pub struct History {
    /// The log's file.
    pub log: File,
    /// What it is about.
    pub header: Header,
    /// What the device held at first.
    pub content: Vec<Content>,
    /// The intervals.
    pub intervals: Vec<Interval>,
    /// All marks in their order.
    pub marks: Vec<String>,
    /// How it ends.
    pub ended: Ended,
}

impl History {
    /// Reads a log.
    ///
    /// # Errors
    /// If it cannot be read or is damaged.
    pub fn open(path: &Path) -> Result<Self, LogError> {
        let mut reader = Reader::new(BufReader::with_capacity(1 << 20, File::open(path)?))?;
        let mut maker = Maker::new(reader.header());
        let mut content = Vec::new();
        while let Some(record) = reader.next()? {
            maker.take(&record, reader.data(), &mut content);
        }
        maker.end_interval();
        Ok(Self {
            log: File::open(path)?,
            header: reader.header(),
            content,
            intervals: maker.intervals,
            marks: maker.marks,
            ended: reader.ended(),
        })
    }

    /// The bytes that a trim drops: whole pages.
    pub fn dropped(&self, change: &Change) -> (u64, u64) {
        whole_pages(&self.header, change.offset, change.bytes)
    }
}

fn whole_pages(header: &Header, offset: u64, bytes: u64) -> (u64, u64) {
    let page = u64::from(header.page_bytes);
    let first = offset.next_multiple_of(page);
    // The last page of a device may be a part of one.
    let end = match offset + bytes {
        end if end == header.device_bytes => end,
        end => end / page * page,
    };
    (first.min(end), end)
}

/// The hash of a sector's content in its place; 0 for zeroes. The sum over all sectors is the hash of the device, which
/// is the same however it came to hold what it holds.
fn hash_of(sector: u64, bytes: &[u8]) -> u128 {
    match bytes.iter().all(|&byte| byte == 0) {
        true => 0,
        false => XxHash3_128::oneshot_with_seed(sector, bytes),
    }
}

struct Maker {
    header: Header,
    intervals: Vec<Interval>,
    marks: Vec<String>,
    changes: Vec<Change>,
    /// Marks said before the first of `changes`.
    marks_before: usize,
    /// Hashes of all sectors that survive a power cut and are not zero, and their sum.
    held: BTreeMap<u64, u128>,
    hash: u128,
    /// Sectors that the interval touches, and their places in it.
    touched: BTreeMap<u64, u32>,
    before: Vec<u128>,
}

impl Maker {
    fn new(header: Header) -> Self {
        Self {
            header,
            intervals: Vec::new(),
            marks: Vec::new(),
            changes: Vec::new(),
            marks_before: 0,
            held: BTreeMap::new(),
            hash: 0,
            touched: BTreeMap::new(),
            before: Vec::new(),
        }
    }

    fn take(&mut self, record: &Record, data: &[u8], content: &mut Vec<Content>) {
        match record.kind {
            Kind::Content => {
                for (sector, hash) in self.hashes(record.offset, data) {
                    self.hold(sector, hash);
                }
                content.push(Content {
                    offset: record.offset,
                    place: record.place,
                });
            }
            Kind::Write => self.write(record, data),
            Kind::Trim => self.trim(record),
            Kind::Flush => self.end_interval(),
            Kind::Mark => {
                // One a line, whatever is in it.
                let text = String::from_utf8_lossy(data).replace(['\n', '\r'], " ");
                self.marks.push(text);
                let said = self.marks.len();
                match self.changes.last_mut() {
                    Some(change) => change.marks = said,
                    None => self.marks_before = said,
                }
            }
            Kind::Begin | Kind::End | Kind::Cut => {}
        }
    }

    fn hashes(&self, offset: u64, data: &[u8]) -> Vec<(u64, u128)> {
        let bytes = self.header.sector_bytes as usize;
        let first = offset / bytes as u64;
        let sectors = data.chunks(bytes).zip(first..);
        sectors
            .map(|(bytes, sector)| (sector, hash_of(sector, bytes)))
            .collect()
    }

    fn hold(&mut self, sector: u64, hash: u128) {
        let old = match hash {
            0 => self.held.remove(&sector),
            _ => self.held.insert(sector, hash),
        };
        self.hash = self.hash.wrapping_sub(old.unwrap_or(0)).wrapping_add(hash);
    }

    /// The place of a sector in the interval.
    fn touch(&mut self, sector: u64) -> u32 {
        let next = self.before.len() as u32;
        let place = *self.touched.entry(sector).or_insert(next);
        if place == next {
            let held = self.held.get(&sector).copied();
            self.before.push(held.unwrap_or(0));
        }
        place
    }

    fn write(&mut self, record: &Record, data: &[u8]) {
        let hashes = self.hashes(record.offset, data);
        let sectors = hashes
            .into_iter()
            .map(|(sector, hash)| (self.touch(sector), hash))
            .collect();
        self.push(record, Some(record.place), sectors);
    }

    /// Only sectors that hold something, or may by then, are changed by a trim; a trim of a whole device costs no more.
    fn trim(&mut self, record: &Record) {
        let (first, end) = whole_pages(&self.header, record.offset, record.bytes);
        let bytes = u64::from(self.header.sector_bytes);
        let range = first / bytes..end / bytes;
        let mut sectors: Vec<u64> = self.held.range(range.clone()).map(|(s, _)| *s).collect();
        sectors.extend(self.touched.range(range).map(|(sector, _)| *sector));
        sectors.sort_unstable();
        sectors.dedup();
        let sectors = sectors.into_iter().map(|s| (self.touch(s), 0)).collect();
        self.push(record, None, sectors);
    }

    fn push(&mut self, record: &Record, place: Option<Place>, sectors: Vec<(u32, u128)>) {
        let is_overwrite = sectors.iter().any(|&(at, _)| self.before[at as usize] != 0);
        self.changes.push(Change {
            offset: record.offset,
            bytes: record.bytes,
            place,
            fua: record.fua,
            marks: self.marks.len(),
            is_overwrite,
            sectors,
        });
    }

    fn end_interval(&mut self) {
        if self.changes.is_empty() {
            return;
        }
        let hash = self.hash;
        let changes = std::mem::take(&mut self.changes);
        let before = std::mem::take(&mut self.before);
        let mut after = before.clone();
        for &(at, hash) in changes.iter().flat_map(|change| &change.sectors) {
            after[at as usize] = hash;
        }
        for (sector, at) in std::mem::take(&mut self.touched) {
            self.hold(sector, after[at as usize]);
        }
        self.intervals.push(Interval {
            changes,
            marks: self.marks_before,
            hash,
            before,
        });
        self.marks_before = self.marks.len();
    }
}
