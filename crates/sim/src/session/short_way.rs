//! The short way through a request: what the [long way](super::long_way) does for a read or write of whole pages that
//! meets neither a queue nor a recorder, and nothing more.
//!
//! Nearly all requests of nearly all traces are of this kind, and a simulated host write takes only some hundred
//! instructions: the tests of the long way that cannot apply here were a fifth of them (docs/performance.md).
//! No rule lives here alone. Whoever changes the long way changes this one too; the test below plays the same
//! requests both ways and compares everything that is counted.

use floatgate_core::{Ftl, Lpn};
use floatgate_trace::{Op, Request};

use super::Session;
use crate::clock::Clock;
use crate::config::Beyond;
use crate::flight::InFlight;
use crate::host::{Kind, PageMapper, Segment};

impl PageMapper {
    /// Kind, first page and number of pages of a read or write of whole pages that the device has; nothing for any
    /// other request. The short way to what [`PageMapper::map`] finds.
    #[inline]
    pub fn whole_pages(&self, request: &Request) -> Option<(Kind, Lpn, u32)> {
        let kind = match request.op {
            Op::Read => Kind::Read,
            Op::Write => Kind::Write,
            _ => return None,
        };
        let span = self.page_size.span(request.offset, request.bytes);
        let whole =
            (span.head | span.tail) == 0 && span.first < span.end && span.end <= self.logical_pages;
        (whole && self.beyond == Beyond::Error)
            .then(|| (kind, Lpn(span.first as u32), (span.end - span.first) as u32))
    }
}

impl<S: Ftl<Page = Lpn>, C: Clock> Session<S, C> {
    /// Whether the next request needs nothing but its work and its place among those under way: what else may have to
    /// be done is the same for all requests, or comes only now and then.
    #[inline(always)]
    pub(super) fn is_plain(&self) -> bool {
        // The first request and those with a sample behind them take the long way.
        self.plain && self.next + 1 < self.next_sample
    }

    /// Plays a read or write of whole pages that [is plain](Self::is_plain): the short way to the same as
    /// the long way.
    #[inline(always)]
    pub(super) fn play_whole(
        &mut self,
        kind: Kind,
        first: Lpn,
        pages: u32,
        bytes: u64,
        arrival_ns: u64,
    ) {
        let issue_ns = arrival_ns.max(self.last_issue_ns);
        self.last_issue_ns = issue_ns;
        let number = self.next;
        self.next += 1;
        let alone = self.flight.is_empty();
        if !alone {
            let request = InFlight::new(kind, arrival_ns, issue_ns);
            self.flight.add(number, request);
        }
        self.comes(arrival_ns, issue_ns);
        self.flash.begin_request(number, issue_ns, None);
        let whole = Segment {
            first,
            pages,
            first_slot: 0,
        };
        if kind == Kind::Write {
            self.host.page_writes += u64::from(pages);
            self.metrics.write_bytes += bytes;
            self.work(Kind::Write, &whole);
        } else {
            self.host.page_reads += u64::from(pages);
            self.metrics.read_bytes += bytes;
            self.work(Kind::Read, &whole);
        }
        let done = self.flash.clock.end_request_known();
        if !alone {
            return self.complete_under_way(done);
        }
        let Some(done) = done else {
            let request = InFlight::new(kind, arrival_ns, issue_ns);
            return self.flight.add(number, request);
        };
        if kind == Kind::Write {
            self.flight.written_ns = self.flight.written_ns.max(done.end_ns);
        }
        self.measure_times(InFlight::new(kind, arrival_ns, issue_ns), done);
    }
}
