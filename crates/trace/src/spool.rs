//! Streams that are read more than once.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;

use crate::error::TraceError;
use crate::open::open_with;
use crate::{OpenOptions, Reader};

/// A trace from a pipe, kept in a temporary file without a name, so that it can be read as often as needed. Its bytes are
/// kept as they came, compressed or not.
#[derive(Clone, Debug)]
pub struct Spool {
    name: String,
    file: Arc<File>,
    bytes: u64,
}

impl Spool {
    /// Whether a trace can be read only once: it is there, and is neither a file nor a folder.
    pub fn needed(path: impl AsRef<Path>) -> bool {
        let found = path.as_ref().metadata();
        found.is_ok_and(|found| !found.is_file() && !found.is_dir())
    }

    /// Reads a stream to its end.
    ///
    /// # Errors
    /// If it cannot be read, or its bytes do not fit into the folder of temporary files.
    pub fn of(path: impl AsRef<Path>) -> Result<Self, TraceError> {
        let path = path.as_ref();
        let name = path.display().to_string();
        let reading = |e: &io::Error| TraceError::io(&name, "cannot read the trace", e);
        let writing = |e: &io::Error| TraceError::temporary("a trace that comes from a pipe", e);
        let mut stream = File::open(path).map_err(|e| reading(&e))?;
        let mut file = tempfile::tempfile().map_err(|e| writing(&e))?;
        let mut buffer = vec![0; 256 << 10];
        let mut bytes = 0;
        loop {
            match stream.read(&mut buffer) {
                Ok(0) => break,
                Ok(n) => {
                    io::Write::write_all(&mut file, &buffer[..n]).map_err(|e| writing(&e))?;
                    bytes += n as u64;
                }
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(reading(&e)),
            }
        }
        Ok(Self {
            name,
            file: Arc::new(file),
            bytes,
        })
    }

    /// Opens it at its beginning, whoever else is reading it.
    ///
    /// # Errors
    /// As [`open`](crate::open).
    pub fn open(&self, options: &OpenOptions) -> Result<Reader, TraceError> {
        let stream = FromStart {
            file: Arc::clone(&self.file),
            at: 0,
        };
        open_with(
            &self.name,
            Box::new(stream),
            None,
            Some(self.bytes),
            options,
        )
    }
}

/// A reader with a place of its own in a file that others read too.
struct FromStart {
    file: Arc<File>,
    at: u64,
}

impl Read for FromStart {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let n = self.file.read_at(out, self.at)?;
        self.at += n as u64;
        Ok(n)
    }
}
