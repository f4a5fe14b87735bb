//! Several files as one trace, ordered by time.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::error::{Position, Stop};
use crate::formats::{Decoder, Parsed};
use crate::processes::Processes;
use crate::volumes::Volumes;
use crate::{Reader, Request};

/// One of the files.
struct Member {
    reader: Reader,
    head: Option<Request>,
    /// The records it had skipped at the last look.
    skipped: u64,
    done: bool,
}

pub(crate) struct Merged {
    members: Vec<Member>,
    /// The file of the last request.
    current: usize,
    volumes: Volumes,
    processes: Processes,
    /// Records skipped by the files and not yet reported.
    skipped: u64,
    progress: Arc<AtomicU64>,
}

impl Merged {
    pub fn new(readers: Vec<Reader>, progress: Arc<AtomicU64>, processes: Processes) -> Self {
        Merged {
            members: readers
                .into_iter()
                .map(|reader| Member {
                    reader,
                    head: None,
                    skipped: 0,
                    done: false,
                })
                .collect(),
            current: 0,
            volumes: Volumes::default(),
            processes,
            skipped: 0,
            progress,
        }
    }

    /// Reads the next request of a file that has none ready.
    fn advance(&mut self, i: usize) -> Result<(), Stop> {
        let member = &mut self.members[i];
        match member.reader.next() {
            Ok(next) => {
                member.head = next;
                member.done = next.is_none();
            }
            Err(error) => {
                self.current = i;
                return Err(Stop::Placed(Box::new(error)));
            }
        }
        let skipped = member.reader.counts().skipped;
        self.skipped += skipped - member.skipped;
        member.skipped = skipped;
        let read = self.members.iter().map(|p| p.reader.bytes_read()).sum();
        self.progress.store(read, Ordering::Relaxed);
        Ok(())
    }
}

impl Decoder for Merged {
    fn next(&mut self) -> Result<Option<Parsed>, Stop> {
        for i in 0..self.members.len() {
            if self.members[i].head.is_none() && !self.members[i].done {
                self.advance(i)?;
            }
        }
        if self.skipped > 0 {
            self.skipped -= 1;
            return Ok(Some(Parsed::Skip));
        }
        let earliest = (0..self.members.len())
            .filter_map(|i| Some((self.members[i].head?.arrival_ns, i)))
            .min();
        let Some((_, i)) = earliest else {
            return Ok(None);
        };
        self.current = i;
        let member = &mut self.members[i];
        let Some(mut request) = member.head.take() else {
            return Ok(None);
        };
        if !member.reader.volume_names().is_empty() {
            let name = member.reader.volume_name(request.volume);
            request.volume = self.volumes.number(name.as_bytes())?;
        }
        let process = || member.reader.process(request.stream).unwrap_or_default();
        Ok(Some(Parsed::One(self.processes.give(request, process)?)))
    }

    fn position(&self) -> Position {
        self.members[self.current].reader.position()
    }

    fn volumes(&self) -> &Volumes {
        &self.volumes
    }
}
