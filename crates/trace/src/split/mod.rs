//! Splitting a trace of many volumes into its volumes, in one pass and in bounded memory.
//!
//! The requests go to one temporary file, each volume into extents of its own, so that every volume can be read
//! alone afterwards, several at the same time and as often as needed. Memory holds a few bytes per volume and at
//! most [`BUFFERS_BYTES`] of requests on their way to the file.

mod code;

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::sync::{Mutex, PoisonError};

use rustc_hash::FxHashMap;

use crate::error::TraceError;
use crate::{Counts, Format, Reader, Request};

use code::{Before, REQUEST_BYTES_MAX, decode, encode};

/// Requests buffered for the file: above this, all are written.
const BUFFERS_BYTES: usize = 64 << 20;
/// Above this, one volume's requests are written.
const BUFFER_BYTES: usize = 32 << 10;
/// Extents of a volume start small, for thousands of small volumes, and double, so that large volumes are read in long
/// runs.
const EXTENT_BYTES: (u32, u32) = (4 << 10, 1 << 20);
/// Bytes per read.
const READ_BYTES: usize = 64 << 10;

/// How the volumes of several files belong together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Identity {
    /// A volume of the same name in another file is the same volume, continued there.
    Name,
    /// Every file has volumes of its own.
    File,
}

impl Identity {
    /// The usual rule of a format: data-centre traces name their volumes across all files; device numbers of other
    /// formats are meaningful within one file only.
    pub fn of(format: Format) -> Identity {
        match format {
            Format::Alibaba | Format::Tencent | Format::Msr | Format::Systor => Identity::Name,
            _ => Identity::File,
        }
    }
}

/// A range of the file that belongs to one volume.
#[derive(Clone, Copy, Debug)]
struct Extent {
    at: u64,
    reserved: u32,
    used: u32,
}

/// The file.
#[derive(Debug)]
struct Spill {
    file: Mutex<File>,
}

impl Spill {
    fn error(error: &io::Error) -> TraceError {
        TraceError::temporary("what the volumes are split into", error)
    }

    fn write(&self, at: u64, bytes: &[u8]) -> Result<(), TraceError> {
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        let written = file
            .seek(SeekFrom::Start(at))
            .and_then(|_| file.write_all(bytes));
        written.map_err(|e| Self::error(&e))
    }

    fn read(&self, at: u64, bytes: &mut [u8]) -> Result<(), TraceError> {
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        let read = file
            .seek(SeekFrom::Start(at))
            .and_then(|_| file.read_exact(bytes));
        read.map_err(|e| Self::error(&e))
    }
}

/// A volume of the trace.
#[derive(Debug)]
pub struct Volume {
    /// Its name in the trace, or the name of its file.
    pub name: String,
    /// Requests.
    pub requests: u64,
    /// Requests with a time before that of the request before them.
    pub backwards: u64,
    /// Requests with a time before the first of their file; they arrive at 0.
    pub clamped: u64,
    /// Why it could not be read completely.
    pub error: Option<TraceError>,
    extents: Vec<Extent>,
}

/// A volume while the trace is being split.
struct Growing {
    volume: Volume,
    buffer: Vec<u8>,
    before: Before,
    /// The time that arrivals count from.
    base_ns: u64,
}

/// The outcome of one file.
#[derive(Clone, Debug)]
pub struct Part {
    /// Its format.
    pub format: Format,
    /// What the reader counted.
    pub counts: Counts,
    /// Why it could not be read to its end; its volumes carry the same error.
    pub error: Option<TraceError>,
}

/// Takes files one after the other and returns the volumes at the end.
pub struct Splitter {
    spill: Spill,
    /// End of the last extent.
    end: u64,
    volumes: Vec<Growing>,
    /// Volumes by the number of their file (none where the name alone counts) and their name.
    known: FxHashMap<(Option<u32>, String), u32>,
    files: u32,
    buffered: usize,
}

impl std::fmt::Debug for Splitter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Splitter")
            .field("volumes", &self.volumes.len())
            .field("file_bytes", &self.end)
            .finish_non_exhaustive()
    }
}

impl Splitter {
    /// Nothing split yet.
    ///
    /// # Errors
    /// If no temporary file can be created.
    pub fn new() -> Result<Self, TraceError> {
        let file = tempfile::tempfile().map_err(|e| Spill::error(&e))?;
        Ok(Splitter {
            spill: Spill {
                file: Mutex::new(file),
            },
            end: 0,
            volumes: Vec::new(),
            known: FxHashMap::default(),
            files: 0,
            buffered: 0,
        })
    }

    /// Takes all requests of a file. `label` names its volume under [`Identity::File`], and
    /// `label:volume` its volumes if it has several. Arrivals of a volume count from the first request of the
    /// file that it first appears in. `progress` is called with the reader now and then.
    ///
    /// # Errors
    /// If the temporary file cannot be written. Errors of the trace are returned in the [`Part`].
    pub fn add(
        &mut self,
        mut reader: Reader,
        label: &str,
        identity: Identity,
        progress: &mut dyn FnMut(&Reader),
    ) -> Result<Part, TraceError> {
        reader.keep_times();
        let scope = (identity == Identity::File).then_some(self.files);
        self.files += 1;
        let mut numbers: FxHashMap<u32, u32> = FxHashMap::default();
        let mut last = None;
        let mut taken = 0_u64;
        let error = loop {
            let request = match reader.next() {
                Ok(Some(request)) => request,
                Ok(None) => break None,
                Err(error) => break Some(error),
            };
            let number = match last {
                Some((volume, number)) if volume == request.volume => number,
                _ => *numbers
                    .entry(request.volume)
                    .or_insert_with(|| self.number(scope, &reader, request.volume)),
            };
            last = Some((request.volume, number));
            self.push(number, request)?;
            taken += 1;
            if taken.is_multiple_of(1 << 16) {
                progress(&reader);
            }
        };
        let mut numbers: Vec<u32> = numbers.into_values().collect();
        numbers.sort_unstable();
        for &number in &numbers {
            let volume = &mut self.volumes[number as usize].volume;
            if identity == Identity::File {
                volume.name = match numbers.len() {
                    1 => label.to_owned(),
                    _ => format!("{label}:{}", volume.name),
                };
            }
            volume.error = volume.error.take().or_else(|| error.clone());
        }
        Ok(Part {
            format: reader.format(),
            counts: reader.counts(),
            error,
        })
    }

    /// The number of a volume; a new one for a new volume.
    fn number(&mut self, scope: Option<u32>, reader: &Reader, volume: u32) -> u32 {
        let name = reader.volume_name(volume);
        let next = self.volumes.len() as u32;
        let number = *self.known.entry((scope, name.clone())).or_insert(next);
        if number == next {
            self.volumes.push(Growing {
                volume: Volume {
                    name,
                    requests: 0,
                    backwards: 0,
                    clamped: 0,
                    error: None,
                    extents: Vec::new(),
                },
                buffer: Vec::new(),
                before: Before::default(),
                base_ns: reader.base_ns(),
            });
        }
        number
    }

    fn push(&mut self, number: u32, mut request: Request) -> Result<(), TraceError> {
        let growing = &mut self.volumes[number as usize];
        let volume = &mut growing.volume;
        // A device has one volume.
        request.volume = 0;
        volume.clamped += u64::from(request.arrival_ns < growing.base_ns);
        request.arrival_ns = request.arrival_ns.saturating_sub(growing.base_ns);
        let goes_back = volume.requests > 0 && request.arrival_ns < growing.before.arrival_ns;
        volume.backwards += u64::from(goes_back);
        volume.requests += 1;
        let before = growing.buffer.len();
        encode(&request, &mut growing.before, &mut growing.buffer);
        self.buffered += growing.buffer.len() - before;
        if growing.buffer.len() >= BUFFER_BYTES {
            self.flush(number)?;
        }
        if self.buffered >= BUFFERS_BYTES {
            self.flush_all()?;
        }
        Ok(())
    }

    fn flush_all(&mut self) -> Result<(), TraceError> {
        (0..self.volumes.len() as u32).try_for_each(|number| self.flush(number))
    }

    /// Writes the buffered requests of a volume to the end of its extents.
    fn flush(&mut self, number: u32) -> Result<(), TraceError> {
        let growing = &mut self.volumes[number as usize];
        let extents = &mut growing.volume.extents;
        let buffer = std::mem::take(&mut growing.buffer);
        let mut rest = &buffer[..];
        while !rest.is_empty() {
            let full = extents.last().is_none_or(|e| e.used == e.reserved);
            if full {
                let (least, most) = EXTENT_BYTES;
                let reserved = extents.last().map_or(least, |e| (e.reserved * 2).min(most));
                extents.push(Extent {
                    at: self.end,
                    reserved,
                    used: 0,
                });
                self.end += u64::from(reserved);
            }
            let Some(extent) = extents.last_mut() else {
                break;
            };
            let room = (extent.reserved - extent.used) as usize;
            let (now, later) = rest.split_at(room.min(rest.len()));
            self.spill.write(extent.at + u64::from(extent.used), now)?;
            extent.used += now.len() as u32;
            rest = later;
        }
        self.buffered -= buffer.len();
        Ok(())
    }

    /// The volumes, in the order of their first requests.
    ///
    /// # Errors
    /// If the temporary file cannot be written.
    pub fn finish(mut self) -> Result<Split, TraceError> {
        self.flush_all()?;
        Ok(Split {
            spill: self.spill,
            volumes: self.volumes.into_iter().map(|g| g.volume).collect(),
        })
    }
}

/// A trace in volumes.
#[derive(Debug)]
pub struct Split {
    spill: Spill,
    volumes: Vec<Volume>,
}

impl Split {
    /// The volumes, in the order of their first requests.
    pub fn volumes(&self) -> &[Volume] {
        &self.volumes
    }

    /// The requests of a volume of this trace, all with volume number 0.
    pub fn read<'a>(&'a self, volume: &'a Volume) -> VolumeReader<'a> {
        VolumeReader {
            spill: &self.spill,
            volume,
            extent: 0,
            inside: 0,
            buffer: Vec::new(),
            at: 0,
            before: Before::default(),
            taken: 0,
        }
    }
}

/// Reads the requests of one volume.
#[derive(Debug)]
pub struct VolumeReader<'a> {
    spill: &'a Spill,
    volume: &'a Volume,
    /// The extent to read next, and the first byte in it.
    extent: usize,
    inside: u32,
    buffer: Vec<u8>,
    /// First undecoded byte of the buffer.
    at: usize,
    before: Before,
    taken: u64,
}

impl<'a> VolumeReader<'a> {
    /// The next request, or `None` at the end.
    ///
    /// # Errors
    /// If the temporary file cannot be read.
    #[allow(clippy::should_implement_trait)] // it returns Result<Option<_>>
    pub fn next(&mut self) -> Result<Option<Request>, TraceError> {
        if self.taken == self.volume.requests {
            return Ok(None);
        }
        if self.buffer.len() - self.at < REQUEST_BYTES_MAX {
            self.fill()?;
        }
        let request = decode(&self.buffer, &mut self.at, &mut self.before);
        self.taken += 1;
        Ok(Some(request))
    }

    /// Requests returned since the start.
    pub fn taken(&self) -> u64 {
        self.taken
    }

    /// The volume.
    pub fn volume(&self) -> &'a Volume {
        self.volume
    }

    /// Back to the first request.
    pub fn rewind(&mut self) {
        (self.extent, self.inside, self.at, self.taken) = (0, 0, 0, 0);
        self.buffer.clear();
        self.before = Before::default();
    }

    fn fill(&mut self) -> Result<(), TraceError> {
        self.buffer.drain(..self.at);
        self.at = 0;
        while self.buffer.len() < READ_BYTES
            && let Some(extent) = self.volume.extents.get(self.extent)
        {
            let bytes = ((extent.used - self.inside) as usize).min(READ_BYTES);
            let start = self.buffer.len();
            self.buffer.resize(start + bytes, 0);
            let at = extent.at + u64::from(self.inside);
            self.spill.read(at, &mut self.buffer[start..])?;
            self.inside += bytes as u32;
            if self.inside == extent.used {
                (self.extent, self.inside) = (self.extent + 1, 0);
            }
        }
        Ok(())
    }
}
