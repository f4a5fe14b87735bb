//! A listener that writes the log.

use std::fs::File;
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

use floatgate_device::Drive;

use super::{
    DATA_MAX, FUA, HEAD_BYTES, HEADER_BYTES, Header, Kind, MAGIC, MARK_MAX, PACKED, VERSION,
    ZEROES, head_checksum,
};
use crate::tap::{Change, Tap};

/// Bytes of the device's first content in one record.
const CONTENT_BYTES: usize = 1 << 20;
/// Fast rather than small: the device waits for it.
const LEVEL: i32 = 1;

/// Writes every change of a device into a file, as it is done.
pub struct LogTap {
    path: PathBuf,
    file: File,
    /// Bytes written so far.
    at: u64,
    packer: zstd::bulk::Compressor<'static>,
    /// The record that is written next.
    record: Vec<u8>,
    /// Whether the last record is written.
    has_ended: bool,
    /// The first failure; nothing is written after it, so the log ends with a whole record.
    failed: Option<String>,
}

impl std::fmt::Debug for LogTap {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LogTap")
            .field("path", &self.path)
            .finish_non_exhaustive()
    }
}

impl LogTap {
    /// Begins a log with what the device holds now. The file must not exist: a log is worth more than a wrong name.
    ///
    /// # Errors
    /// What is wrong and what to do, if the file exists or cannot be written, or the device cannot be read.
    pub fn begin(path: &Path, drive: &mut dyn Drive) -> Result<Self, String> {
        let shown = path.display();
        let file = File::options().write(true).create_new(true).open(path);
        let file = file.map_err(|error| match error.kind() {
            ErrorKind::AlreadyExists => {
                format!("{shown} exists: name another file, or remove that one")
            }
            _ => format!("{shown}: {error}"),
        })?;
        let begun = Self::with(path, file, drive);
        if begun.is_err() {
            // It was made just now and holds no log.
            let _ = std::fs::remove_file(path);
        }
        begun
    }

    fn with(path: &Path, file: File, drive: &mut dyn Drive) -> Result<Self, String> {
        let header = Header {
            sector_bytes: drive.sector_bytes() as u32,
            page_bytes: drive.page_bytes() as u32,
            device_bytes: drive.sectors() * drive.sector_bytes() as u64,
        };
        let packer = zstd::bulk::Compressor::new(LEVEL).map_err(|error| error.to_string())?;
        let mut tap = Self {
            path: path.to_owned(),
            file,
            at: 0,
            packer,
            record: Vec::new(),
            has_ended: false,
            failed: None,
        };
        tap.put_header(&header);
        tap.put_content(&header, drive)?;
        tap.put(Kind::Begin, false, 0, 0, &[]);
        match tap.failed.take() {
            Some(why) => Err(why),
            None => Ok(tap),
        }
    }

    fn put_header(&mut self, header: &Header) {
        self.record.clear();
        self.record.extend(MAGIC);
        self.record.extend(VERSION.to_le_bytes());
        self.record.extend(header.sector_bytes.to_le_bytes());
        self.record.extend(header.page_bytes.to_le_bytes());
        self.record.extend(header.device_bytes.to_le_bytes());
        let checksum = crc32c::crc32c(&self.record);
        self.record.extend(checksum.to_le_bytes());
        debug_assert_eq!(self.record.len(), HEADER_BYTES);
        self.write_record();
    }

    fn put_content(&mut self, header: &Header, drive: &mut dyn Drive) -> Result<(), String> {
        let page = u64::from(header.page_bytes);
        let mut piece = vec![0; CONTENT_BYTES.next_multiple_of(page as usize)];
        let mut at = 0;
        while at < header.device_bytes && self.failed.is_none() {
            let bytes = (header.device_bytes - at).min(piece.len() as u64);
            let mut pages = at / page..(at + bytes).div_ceil(page);
            if !pages.all(|page| drive.is_hole(page as u32)) {
                let piece = &mut piece[..bytes as usize];
                let sector = at / u64::from(header.sector_bytes);
                drive.read(sector, piece).map_err(|error| {
                    format!("a log begins with all that the device holds, and bytes {at} to {} cannot be read: {error}", at + bytes)
                })?;
                if piece.iter().any(|&byte| byte != 0) {
                    self.put(Kind::Content, false, at, bytes, piece);
                }
            }
            at += bytes;
        }
        Ok(())
    }

    /// Puts a record together and writes it in one piece.
    fn put(&mut self, kind: Kind, fua: bool, offset: u64, bytes: u64, data: &[u8]) {
        if self.failed.is_some() || self.has_ended {
            return;
        }
        self.has_ended = matches!(kind, Kind::End | Kind::Cut);
        let mut flags = if fua { FUA } else { 0 };
        self.record.clear();
        self.record.resize(HEAD_BYTES, 0);
        if kind == Kind::Mark {
            self.record.extend(data);
        } else if !data.is_empty() {
            flags |= self.pack(data);
        }
        let stored = self.record.len() - HEAD_BYTES;
        let head = &mut self.record[..HEAD_BYTES];
        head[0] = kind as u8;
        head[1] = flags;
        head[4..8].copy_from_slice(&(stored as u32).to_le_bytes());
        head[8..16].copy_from_slice(&offset.to_le_bytes());
        head[16..24].copy_from_slice(&bytes.to_le_bytes());
        let checksum = head_checksum(self.at, &head[..24]);
        head[24..].copy_from_slice(&checksum.to_le_bytes());
        if stored > 0 {
            let checksum = crc32c::crc32c(&self.record[HEAD_BYTES..]);
            self.record.extend(checksum.to_le_bytes());
        }
        self.write_record();
    }

    /// Puts bytes behind the head, as short as they get quickly, and tells how.
    fn pack(&mut self, data: &[u8]) -> u8 {
        if data.iter().all(|&byte| byte == 0) {
            return ZEROES;
        }
        let room = HEAD_BYTES + zstd::zstd_safe::compress_bound(data.len());
        self.record.resize(room, 0);
        let packed = self
            .packer
            .compress_to_buffer(data, &mut self.record[HEAD_BYTES..]);
        match packed {
            Ok(bytes) if bytes < data.len() => {
                self.record.truncate(HEAD_BYTES + bytes);
                PACKED
            }
            _ => {
                self.record.truncate(HEAD_BYTES);
                self.record.extend(data);
                0
            }
        }
    }

    fn write_record(&mut self) {
        match self.file.write_all(&self.record) {
            Ok(()) => self.at += self.record.len() as u64,
            Err(error) => self.fail(&error),
        }
    }

    fn fail(&mut self, error: &io::Error) {
        // What was written of the record would be in the way of nothing, but a log that ends with a whole record
        // needs no explanation.
        let _ = self.file.set_len(self.at);
        let shown = self.path.display();
        self.failed = Some(format!("{shown}: {error}: the log ends there"));
    }
}

impl Tap for LogTap {
    fn done(&mut self, change: &Change<'_>) {
        match *change {
            Change::Write { offset, data, fua } => {
                let mut at = offset;
                for part in data.chunks(DATA_MAX) {
                    self.put(Kind::Write, fua, at, part.len() as u64, part);
                    at += part.len() as u64;
                }
            }
            Change::Trim { offset, bytes } => self.put(Kind::Trim, false, offset, bytes, &[]),
            Change::Flush => self.put(Kind::Flush, false, 0, 0, &[]),
        }
    }

    fn marked(&mut self, text: &str) {
        let text = &text[..text.floor_char_boundary(MARK_MAX)];
        self.put(Kind::Mark, false, 0, 0, text.as_bytes());
    }

    fn cut(&mut self) {
        self.put(Kind::Cut, false, 0, 0, &[]);
    }

    fn close(mut self: Box<Self>) -> Result<(), String> {
        self.put(Kind::End, false, 0, 0, &[]);
        if let Err(error) = self.file.sync_all() {
            self.failed.get_or_insert(error.to_string());
        }
        self.failed.map_or(Ok(()), Err)
    }
}
