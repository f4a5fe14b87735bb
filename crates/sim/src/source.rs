//! The requests of a run, one after the other.

use floatgate_trace::{Request, TraceError};

/// Where a run's requests come from.
pub trait Source {
    /// The next request.
    ///
    /// # Errors
    /// If the trace cannot be read.
    fn next(&mut self) -> Result<Option<Request>, TraceError>;

    /// Back to the first request.
    ///
    /// # Errors
    /// If the trace cannot be opened again.
    fn rewind(&mut self) -> Result<(), TraceError>;

    /// Number of the place of the request given last: a line, or a running number.
    fn place(&self) -> u64;

    /// A place in words, for messages.
    fn position(&self, place: u64) -> String;
}
