//! A state as a file: what was durable when the interval began, and what was kept of the interval.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use rustix::fs::{FallocateFlags, SeekFrom, fallocate, seek};

use super::history::{Change, History};
use super::state::State;
use crate::log::{LogError, Place, load};

/// Makes files of states. Going forward is cheap, going back begins anew.
#[derive(Debug)]
pub struct Builder<'h> {
    history: &'h History,
    path: PathBuf,
    file: File,
    /// All intervals before this one are in the file.
    at: usize,
    buffers: Buffers,
}

#[derive(Debug, Default)]
struct Buffers {
    stored: Vec<u8>,
    data: Vec<u8>,
}

impl<'h> Builder<'h> {
    /// A builder that keeps what is durable in a file of its own in a folder.
    ///
    /// # Errors
    /// If it cannot be written, or the log not be read.
    pub fn new(history: &'h History, folder: &Path) -> Result<Self, LogError> {
        let path = folder.join("durable.raw");
        let mut builder = Self {
            history,
            file: fresh(&path, history.header.device_bytes)?,
            path,
            at: 0,
            buffers: Buffers::default(),
        };
        builder.fill()?;
        Ok(builder)
    }

    fn fill(&mut self) -> Result<(), LogError> {
        let buffers = &mut self.buffers;
        for content in &self.history.content {
            put(
                self.history,
                &self.file,
                content.offset,
                &content.place,
                u64::MAX,
                buffers,
            )?;
        }
        self.at = 0;
        Ok(())
    }

    /// Writes what a cut before the first change of an interval leaves into a file, which [`finish`] makes a state of.
    ///
    /// # Errors
    /// As [`Builder::new`].
    pub fn begin(&mut self, interval: usize, path: &Path) -> Result<File, LogError> {
        if interval < self.at {
            self.file = fresh(&self.path, self.history.header.device_bytes)?;
            self.fill()?;
        }
        while self.at < interval {
            for change in &self.history.intervals[self.at].changes {
                apply(
                    self.history,
                    &self.file,
                    change,
                    u64::MAX,
                    &mut self.buffers,
                )?;
            }
            self.at += 1;
        }
        let copy = fresh(path, self.history.header.device_bytes)?;
        copy_data(&self.file, &copy)?;
        Ok(copy)
    }
}

/// Puts what a state keeps of its interval into a file that [`Builder::begin`] made.
///
/// # Errors
/// If the file cannot be written, or the log not be read.
pub fn finish(history: &History, state: &State, file: &File) -> Result<(), LogError> {
    let mut buffers = Buffers::default();
    let changes = &history.intervals[state.interval].changes;
    for (change, at) in changes.iter().zip(1u32..).take(state.cut) {
        if !state.keeps(at) {
            continue;
        }
        let most = match state.torn {
            Some((torn, sectors)) if torn == at => {
                u64::from(sectors) * u64::from(history.header.sector_bytes)
            }
            _ => u64::MAX,
        };
        apply(history, file, change, most, &mut buffers)?;
    }
    Ok(())
}

fn fresh(path: &Path, bytes: u64) -> io::Result<File> {
    let file = File::options()
        .read(true)
        .write(true)
        .create(true)
        .truncate(true)
        .open(path)?;
    file.set_len(bytes)?;
    Ok(file)
}

fn apply(
    history: &History,
    file: &File,
    change: &Change,
    most: u64,
    buffers: &mut Buffers,
) -> Result<(), LogError> {
    match &change.place {
        Some(place) => put(history, file, change.offset, place, most, buffers),
        None => {
            let (first, end) = history.dropped(change);
            Ok(clear(file, first, end)?)
        }
    }
}

fn put(
    history: &History,
    file: &File,
    offset: u64,
    place: &Place,
    most: u64,
    buffers: &mut Buffers,
) -> Result<(), LogError> {
    load(&history.log, place, &mut buffers.stored, &mut buffers.data)?;
    let bytes = (buffers.data.len() as u64).min(most) as usize;
    let sector = history.header.sector_bytes as usize;
    // Zeroes on a hole stay a hole: most of what a device holds at first is none of anybody's.
    if buffers.data[..bytes].iter().all(|&byte| byte == 0) && bytes >= sector {
        return Ok(clear(file, offset, offset + bytes as u64)?);
    }
    Ok(file.write_all_at(&buffers.data[..bytes], offset)?)
}

/// Makes a range zero, and a hole where the file system can.
fn clear(file: &File, first: u64, end: u64) -> io::Result<()> {
    if first >= end {
        return Ok(());
    }
    let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
    match fallocate(file, flags, first, end - first) {
        Err(rustix::io::Errno::OPNOTSUPP) => {
            let zeroes = vec![0; 1 << 20];
            let mut at = first;
            while at < end {
                let bytes = (end - at).min(zeroes.len() as u64);
                file.write_all_at(&zeroes[..bytes as usize], at)?;
                at += bytes;
            }
            Ok(())
        }
        done => Ok(done?),
    }
}

/// Copies what is no hole.
fn copy_data(from: &File, to: &File) -> io::Result<()> {
    let mut buffer = vec![0; 1 << 20];
    let mut at = 0;
    loop {
        at = match seek(from, SeekFrom::Data(at)) {
            Ok(at) => at,
            // Nothing but a hole is left.
            Err(rustix::io::Errno::NXIO) => return Ok(()),
            Err(error) => return Err(error.into()),
        };
        let end = seek(from, SeekFrom::Hole(at))?;
        while at < end {
            let bytes = (end - at).min(buffer.len() as u64) as usize;
            from.read_exact_at(&mut buffer[..bytes], at)?;
            to.write_all_at(&buffer[..bytes], at)?;
            at += bytes as u64;
        }
    }
}
