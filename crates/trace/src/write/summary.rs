//! What a writer counts.

use serde::{Deserialize, Serialize};

/// What was written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WriteSummary {
    /// Requests in the file.
    pub written: u64,
    /// Trims, zeroes and flushes left out because the format cannot express them.
    pub dropped: u64,
    /// Requests that were widened to whole sectors or pages because the format counts in those.
    pub widened: u64,
    /// Requests whose time was cut to the format's unit (100 ns, microseconds).
    pub times_cut: u64,
    /// Requests of a volume other than 0 that were written to a format without volumes.
    pub volumes_lost: u64,
    /// Requests with a stream that were written to a format without streams, or to a recording whose first write has none.
    pub streams_lost: u64,
    /// The length of the file.
    pub file_bytes: u64,
}
