//! A trace that is decoded on a thread of its own while it is played, in constant memory.

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;

use floatgate_trace::{Reader, Request, TraceError};

use crate::source::Source;

/// Requests that change hands at a time, and how many times ahead of the play.
const BATCH: usize = 4096;
const BATCHES_AHEAD: usize = 4;

/// Requests with the lines on which they stand.
type Batch = Vec<(Request, u64)>;

/// A trace that is read as it is played. A second thread decodes it, a little ahead.
pub struct Streamed<O> {
    open: O,
    path: String,
    decoding: Decoding,
    batch: Batch,
    /// Requests of the batch that have been given.
    at: usize,
}

/// The thread that decodes.
struct Decoding {
    batches: Receiver<Batch>,
    /// How the trace ends: known when there are no more batches.
    thread: Option<JoinHandle<Result<(), TraceError>>>,
}

impl Decoding {
    fn start(mut reader: Reader) -> Self {
        let (sender, batches) = sync_channel(BATCHES_AHEAD);
        let thread = std::thread::spawn(move || decode(&mut reader, &sender));
        Self {
            batches,
            thread: Some(thread),
        }
    }

    /// The next batch; nothing at the end of the trace.
    fn next(&mut self) -> Result<Option<Batch>, TraceError> {
        if let Ok(batch) = self.batches.recv() {
            return Ok(Some(batch));
        }
        match self.thread.take().map(JoinHandle::join) {
            None => Ok(None),
            Some(Ok(ended)) => ended.map(|()| None),
            Some(Err(panic)) => std::panic::resume_unwind(panic),
        }
    }
}

/// Decodes to the end, or until nobody listens any more.
fn decode(reader: &mut Reader, batches: &SyncSender<Batch>) -> Result<(), TraceError> {
    loop {
        let mut batch = Vec::with_capacity(BATCH);
        let mut ended = None;
        while batch.len() < BATCH && ended.is_none() {
            match reader.next() {
                Ok(Some(request)) => batch.push((request, reader.line())),
                Ok(None) => ended = Some(Ok(())),
                Err(error) => ended = Some(Err(error)),
            }
        }
        if !batch.is_empty() && batches.send(batch).is_err() {
            return Ok(());
        }
        if let Some(ended) = ended {
            return ended;
        }
    }
}

impl<O: FnMut() -> Result<Reader, TraceError>> Streamed<O> {
    /// A source that opens the trace with `open`, again for every pass.
    ///
    /// # Errors
    /// If it cannot be opened.
    pub fn new(mut open: O) -> Result<Self, TraceError> {
        let reader = open()?;
        Ok(Self {
            open,
            path: reader.path().to_string(),
            decoding: Decoding::start(reader),
            batch: Vec::new(),
            at: 0,
        })
    }
}

impl<O: FnMut() -> Result<Reader, TraceError>> Source for Streamed<O> {
    fn next(&mut self) -> Result<Option<Request>, TraceError> {
        if self.at == self.batch.len() {
            let Some(batch) = self.decoding.next()? else {
                return Ok(None);
            };
            (self.batch, self.at) = (batch, 0);
        }
        let (request, _) = self.batch[self.at];
        self.at += 1;
        Ok(Some(request))
    }

    fn rewind(&mut self) -> Result<(), TraceError> {
        self.decoding = Decoding::start((self.open)()?);
        (self.batch, self.at) = (Vec::new(), 0);
        Ok(())
    }

    fn place(&self) -> u64 {
        let given = self.at.checked_sub(1);
        given.map_or(0, |i| self.batch[i].1)
    }

    fn position(&self, place: u64) -> String {
        format!("{}, line {place}", self.path)
    }
}
