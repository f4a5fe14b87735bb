//! Requests on their way, in the order in which they were issued.

use std::collections::VecDeque;

use crate::host::Kind;

/// A request on its way.
#[derive(Clone, Copy, Debug)]
pub(crate) struct InFlight {
    pub(crate) kind: Kind,
    pub(crate) arrival_ns: u64,
    pub(crate) issue_ns: u64,
    /// Completion, or [`NOT_YET`].
    pub(crate) end_ns: u64,
}

/// A completion that is not known.
const NOT_YET: u64 = u64::MAX;

impl InFlight {
    #[inline(always)]
    pub(crate) fn new(kind: Kind, arrival_ns: u64, issue_ns: u64) -> Self {
        Self {
            kind,
            arrival_ns,
            issue_ns,
            end_ns: NOT_YET,
        }
    }
}

/// Requests on their way, by number; those done leave from the front.
#[derive(Debug, Default)]
pub(crate) struct Flight {
    /// Number of the request at the front.
    first: u64,
    requests: VecDeque<InFlight>,
    /// Not done.
    pub(crate) open: u32,
    /// Flushes among these.
    flushes: u32,
    /// All writes, trims and flushes below this number are done.
    written_below: u64,
    /// Latest completion of the writes and trims among them: what a flush there waits for.
    pub(crate) written_ns: u64,
}

impl Flight {
    #[inline(always)]
    pub(crate) fn is_empty(&self) -> bool {
        self.requests.is_empty()
    }

    #[inline(always)]
    pub(crate) fn add(&mut self, number: u64, request: InFlight) {
        if self.is_empty() {
            // Requests that never were in flight lie between.
            self.first = number;
            self.written_below = number;
        }
        self.flushes += u32::from(request.kind == Kind::Flush);
        self.requests.push_back(request);
        self.open += 1;
    }

    #[inline]
    pub(crate) fn done(&mut self, number: u64, end_ns: u64) -> InFlight {
        let request = &mut self.requests[(number - self.first) as usize];
        request.end_ns = end_ns;
        self.open -= 1;
        *request
    }

    /// Passes writes and trims that are done, and finds the next flush that has nothing left to
    /// wait for, with its number; then drops what is done from the front.
    #[inline]
    pub(crate) fn next_flush(&mut self) -> Option<(u64, InFlight)> {
        let flush = match self.flushes {
            0 => None,
            _ => self.pass_written(),
        };
        while let Some(request) = self.requests.front()
            && request.end_ns != NOT_YET
            && (self.flushes == 0 || self.first < self.written_below)
        {
            if matches!(request.kind, Kind::Write | Kind::Trim) {
                self.written_ns = self.written_ns.max(request.end_ns);
            }
            self.requests.pop_front();
            self.first += 1;
        }
        self.written_below = self.written_below.max(self.first);
        flush
    }

    fn pass_written(&mut self) -> Option<(u64, InFlight)> {
        let mut flush = None;
        while let Some(request) = self
            .requests
            .get_mut((self.written_below - self.first) as usize)
        {
            match (request.kind, request.end_ns) {
                (Kind::Write | Kind::Trim | Kind::Drain, NOT_YET) => break,
                (Kind::Write | Kind::Trim, end_ns) => {
                    self.written_ns = self.written_ns.max(end_ns);
                }
                (Kind::Flush, NOT_YET) => {
                    request.end_ns = request.issue_ns.max(self.written_ns);
                    self.open -= 1;
                    self.flushes -= 1;
                    flush = Some((self.written_below, *request));
                }
                _ => {}
            }
            self.written_below += 1;
            if flush.is_some() {
                break;
            }
        }
        flush
    }
}
