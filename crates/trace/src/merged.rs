//! Several files as one trace, ordered by time.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::error::{Position, Stop};
use crate::formats::{Decoder, Parsed};
use crate::volumes::Volumes;
use crate::{Reader, Request};

/// One of the files.
struct Part {
    reader: Reader,
    head: Option<Request>,
    /// The records it had skipped when asked last.
    skipped: u64,
    done: bool,
}

pub(crate) struct Merged {
    parts: Vec<Part>,
    /// The part that gave the last request.
    current: usize,
    volumes: Volumes,
    /// Records skipped by the parts and not yet reported.
    skipped: u64,
    progress: Arc<AtomicU64>,
}

impl Merged {
    pub fn new(readers: Vec<Reader>, progress: Arc<AtomicU64>) -> Self {
        Merged {
            parts: readers
                .into_iter()
                .map(|reader| Part {
                    reader,
                    head: None,
                    skipped: 0,
                    done: false,
                })
                .collect(),
            current: 0,
            volumes: Volumes::default(),
            skipped: 0,
            progress,
        }
    }

    /// Reads the next request of a part that has none at hand.
    fn advance(&mut self, i: usize) -> Result<(), Stop> {
        let part = &mut self.parts[i];
        match part.reader.next() {
            Ok(next) => {
                part.head = next;
                part.done = next.is_none();
            }
            Err(error) => {
                self.current = i;
                return Err(Stop::Placed(Box::new(error)));
            }
        }
        let skipped = part.reader.counts().skipped;
        self.skipped += skipped - part.skipped;
        part.skipped = skipped;
        let read = self.parts.iter().map(|p| p.reader.bytes_read()).sum();
        self.progress.store(read, Ordering::Relaxed);
        Ok(())
    }
}

impl Decoder for Merged {
    fn next(&mut self) -> Result<Option<Parsed>, Stop> {
        for i in 0..self.parts.len() {
            if self.parts[i].head.is_none() && !self.parts[i].done {
                self.advance(i)?;
            }
        }
        if self.skipped > 0 {
            self.skipped -= 1;
            return Ok(Some(Parsed::Skip));
        }
        let earliest = (0..self.parts.len())
            .filter_map(|i| Some((self.parts[i].head?.arrival_ns, i)))
            .min();
        let Some((_, i)) = earliest else {
            return Ok(None);
        };
        self.current = i;
        let part = &mut self.parts[i];
        let Some(mut request) = part.head.take() else {
            return Ok(None);
        };
        if !part.reader.volume_names().is_empty() {
            let name = part.reader.volume_name(request.volume);
            request.volume = self.volumes.number(name.as_bytes())?;
        }
        Ok(Some(Parsed::One(request)))
    }

    fn position(&self) -> Position {
        self.parts[self.current].reader.position()
    }

    fn excerpt(&self) -> Option<String> {
        None
    }

    fn first_skipped(&self) -> Option<(Position, String)> {
        None
    }

    fn volumes(&self) -> &Volumes {
        &self.volumes
    }
}
