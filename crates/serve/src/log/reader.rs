//! Reading a log: record after record, or the bytes of one whose place is known. No file makes it panic or take more memory
//! than a record may have.

use std::fmt;
use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::FileExt;

use super::{
    DATA_MAX, Ended, FUA, HEAD_BYTES, HEADER_BYTES, Header, Kind, MAGIC, MARK_MAX, PACKED, VERSION,
    ZEROES, head_checksum,
};

/// Why a log cannot be read.
#[derive(Debug)]
pub enum LogError {
    /// The file is something else.
    NotALog,
    /// It was written by another version of the program.
    Version(u32),
    /// It says something that no log says.
    Damaged {
        /// Where the record begins in the file.
        at: u64,
        /// What is wrong.
        what: &'static str,
    },
    /// The file cannot be read.
    Io(io::Error),
}

impl fmt::Display for LogError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotALog => f.write_str("it is no write log of `floatgate serve --log`"),
            Self::Version(found) => write!(
                f,
                "it is a log of version {found}, and this program reads version {VERSION}"
            ),
            Self::Damaged { at, what } => {
                write!(f, "the record at byte {at} of the file is damaged: {what}")
            }
            Self::Io(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for LogError {}

impl From<io::Error> for LogError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

/// Where the bytes of a record lie in the file, and how.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Place {
    at: u64,
    stored: u32,
    bytes: u32,
    flags: u8,
}

/// A record without its bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Record {
    /// What it says.
    pub kind: Kind,
    /// Whether it is a write that survives a power cut from then on.
    pub fua: bool,
    /// First byte on the device.
    pub offset: u64,
    /// Bytes there.
    pub bytes: u64,
    /// Where its bytes lie.
    pub place: Place,
}

/// A log that is read from its beginning.
#[derive(Debug)]
pub struct Reader<R> {
    input: R,
    header: Header,
    at: u64,
    /// What the last record says of the order of things.
    last: Option<Kind>,
    has_begun: bool,
    stored: Vec<u8>,
    data: Vec<u8>,
}

impl<R: Read> Reader<R> {
    /// Reads the header.
    ///
    /// # Errors
    /// If there is none.
    pub fn new(mut input: R) -> Result<Self, LogError> {
        let mut bytes = [0; HEADER_BYTES];
        if filled(&mut input, &mut bytes)? < HEADER_BYTES || bytes[..8] != MAGIC {
            return Err(LogError::NotALog);
        }
        let version = u32_at(&bytes, 8);
        if version != VERSION {
            return Err(LogError::Version(version));
        }
        let header = Header {
            sector_bytes: u32_at(&bytes, 12),
            page_bytes: u32_at(&bytes, 16),
            device_bytes: u64_at(&bytes, 20),
        };
        let damaged = |what| Err(LogError::Damaged { at: 0, what });
        if u32_at(&bytes, 28) != crc32c::crc32c(&bytes[..28]) {
            return damaged("the header's checksum is wrong");
        }
        let (sector, page) = (header.sector_bytes, header.page_bytes);
        let sizes = sector.is_power_of_two()
            && (512..=1 << 16).contains(&sector)
            && page >= sector
            && page.is_multiple_of(sector)
            && page as usize <= DATA_MAX;
        let device = header.device_bytes;
        if !sizes || device == 0 || device > 1 << 60 || !device.is_multiple_of(sector.into()) {
            return damaged("no device has these sizes");
        }
        Ok(Self {
            input,
            header,
            at: HEADER_BYTES as u64,
            last: None,
            has_begun: false,
            stored: Vec::new(),
            data: Vec::new(),
        })
    }

    /// What the log is about.
    pub fn header(&self) -> Header {
        self.header
    }

    /// The bytes of the last record.
    pub fn data(&self) -> &[u8] {
        &self.data
    }

    /// How the log ends, once there is no next record.
    pub fn ended(&self) -> Ended {
        match self.last {
            Some(Kind::End) => Ended::ShutDown,
            Some(Kind::Cut) => Ended::Cut,
            _ => Ended::Killed,
        }
    }

    /// The next record; nothing at the end, or where a record was begun and not finished.
    ///
    /// # Errors
    /// If it is damaged, with its place in the file.
    #[allow(clippy::should_implement_trait)] // it lends its bytes
    pub fn next(&mut self) -> Result<Option<Record>, LogError> {
        let mut head = [0; HEAD_BYTES];
        if filled(&mut self.input, &mut head)? < HEAD_BYTES {
            return Ok(None);
        }
        let at = self.at;
        let record = self
            .record_of(&head)
            .map_err(|what| LogError::Damaged { at, what })?;
        let stored = record.place.stored as usize;
        self.stored.clear();
        if stored > 0 {
            // Grows with the bytes that are there, not with those announced.
            let all = stored as u64 + 4;
            let taken = (&mut self.input).take(all).read_to_end(&mut self.stored)?;
            if (taken as u64) < all {
                return Ok(None);
            }
            self.at += all;
        }
        self.at += HEAD_BYTES as u64;
        unpack(&record.place, &self.stored, &mut self.data)
            .map_err(|what| LogError::Damaged { at, what })?;
        self.last = Some(record.kind);
        self.has_begun |= record.kind == Kind::Begin;
        Ok(Some(record))
    }

    fn record_of(&self, head: &[u8; HEAD_BYTES]) -> Result<Record, &'static str> {
        if u32_at(head, 24) != head_checksum(self.at, &head[..24]) {
            return Err("its checksum is wrong");
        }
        let kind = Kind::of(head[0]).ok_or("its kind is unknown")?;
        let flags = head[1];
        let (stored, offset, bytes) = (u32_at(head, 4), u64_at(head, 8), u64_at(head, 16));
        let place = Place {
            at: self.at + HEAD_BYTES as u64,
            stored,
            bytes: match kind {
                Kind::Mark => stored,
                Kind::Content | Kind::Write => bytes.try_into().map_err(|_| "it is too long")?,
                _ => 0,
            },
            flags,
        };
        self.check_order(kind)?;
        let flags_of = match kind {
            Kind::Write => FUA | PACKED | ZEROES,
            Kind::Content => PACKED | ZEROES,
            _ => 0,
        };
        if flags & !flags_of != 0 || flags & PACKED != 0 && flags & ZEROES != 0 {
            return Err("its flags are unknown");
        }
        let most = if kind == Kind::Mark {
            MARK_MAX
        } else {
            DATA_MAX
        };
        if stored as usize > most || place.bytes as usize > most || !kind.has_data() && stored > 0 {
            return Err("it is too long");
        }
        let sector = u64::from(self.header.sector_bytes);
        let end = offset.checked_add(bytes);
        if end.is_none_or(|end| end > self.header.device_bytes) {
            return Err("it lies beyond the end of the device");
        }
        if !offset.is_multiple_of(sector) || !bytes.is_multiple_of(sector) {
            return Err("it begins or ends inside a sector");
        }
        Ok(Record {
            kind,
            fua: flags & FUA != 0,
            offset,
            bytes,
            place,
        })
    }

    fn check_order(&self, kind: Kind) -> Result<(), &'static str> {
        let is_content = matches!(kind, Kind::Content | Kind::Begin);
        match (self.last, self.has_begun) {
            (Some(Kind::End | Kind::Cut), _) => Err("it stands behind the end"),
            (_, begun) if begun == is_content => Err("it stands where its kind has no place"),
            _ => Ok(()),
        }
    }
}

/// Reads the bytes of a record again.
///
/// # Errors
/// If the file cannot be read, or is not what it was.
pub fn load(
    file: &File,
    place: &Place,
    stored: &mut Vec<u8>,
    data: &mut Vec<u8>,
) -> Result<(), LogError> {
    stored.clear();
    if place.stored > 0 {
        stored.resize(place.stored as usize + 4, 0);
        file.read_exact_at(stored, place.at)?;
    }
    let at = place.at - HEAD_BYTES as u64;
    unpack(place, stored, data).map_err(|what| LogError::Damaged { at, what })
}

/// The bytes of a record from those that are stored, with their checksum behind them if there are any.
fn unpack(place: &Place, stored: &[u8], data: &mut Vec<u8>) -> Result<(), &'static str> {
    data.clear();
    let (stored, checksum) = stored.split_at(stored.len().saturating_sub(4));
    if !checksum.is_empty() && u32_at(checksum, 0) != crc32c::crc32c(stored) {
        return Err("the checksum of its bytes is wrong");
    }
    let bytes = place.bytes as usize;
    if place.flags & ZEROES != 0 {
        data.resize(bytes, 0);
        return match stored.is_empty() {
            true => Ok(()),
            false => Err("its length is wrong"),
        };
    }
    if place.flags & PACKED != 0 {
        *data =
            zstd::bulk::decompress(stored, bytes).map_err(|_| "its bytes cannot be unpacked")?;
    } else {
        data.extend(stored);
    }
    match data.len() == bytes {
        true => Ok(()),
        false => Err("its length is wrong"),
    }
}

/// Reads until the buffer is full or the input ends.
fn filled(input: &mut impl Read, buffer: &mut [u8]) -> io::Result<usize> {
    let mut done = 0;
    while done < buffer.len() {
        match input.read(&mut buffer[done..]) {
            Ok(0) => break,
            Ok(n) => done += n,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(done)
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    let mut number = [0; 4];
    number.copy_from_slice(&bytes[at..at + 4]);
    u32::from_le_bytes(number)
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    let mut number = [0; 8];
    number.copy_from_slice(&bytes[at..at + 8]);
    u64::from_le_bytes(number)
}
