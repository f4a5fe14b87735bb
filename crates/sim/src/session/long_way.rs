//! The long way through a request: every rule of docs/spec/timing.md, sections 4 to 6, with nothing assumed about the
//! request or the host. Queue, flushes, trims, pages written in part, requests cut at the end of the device, rows.

use floatgate_core::{Ftl, Lpn, Run};
use floatgate_trace::Request;

use super::Session;
use crate::clock::{Clock, Completion};
use crate::config::{Arrivals, PartialWrite};
use crate::flight::InFlight;
use crate::host::{BeyondEnd, Kind, PageRequest};
use crate::merges::MergeKinds;

impl<S: Ftl<Page = Lpn>, C: Clock> Session<S, C> {
    #[inline(never)]
    pub(super) fn request_at_length(
        &mut self,
        request: &Request,
        whole: Option<(Kind, Lpn, u32)>,
    ) -> Result<(), BeyondEnd> {
        let mut pages = self.pages.take().unwrap_or_default();
        let mapped = if let Some((kind, first, n)) = whole {
            pages.whole(kind, first, n);
            Ok(())
        } else {
            self.mapper.map(request, &mut pages)
        };
        if mapped.is_ok() {
            let kind = pages.kind.expect("a mapped request has a kind");
            match kind {
                Kind::Read => self.metrics.read_bytes += request.bytes,
                Kind::Write => self.metrics.write_bytes += request.bytes,
                _ => {}
            }
            self.streams(kind, Some(request));
            self.play(kind, request.arrival_ns, &pages);
        }
        self.pages = Some(pages);
        mapped
    }

    #[inline(never)]
    pub(super) fn page_request_at_length(
        &mut self,
        kind: Kind,
        first: Lpn,
        pages: u32,
        arrival_ns: u64,
        bytes: u64,
    ) {
        let mut request = self.pages.take().unwrap_or_default();
        request.whole(kind, first, pages);
        match kind {
            Kind::Read => self.metrics.read_bytes += bytes,
            Kind::Write => self.metrics.write_bytes += bytes,
            _ => {}
        }
        self.streams(kind, None);
        self.play(kind, arrival_ns, &request);
        self.pages = Some(request);
    }

    fn play(&mut self, kind: Kind, arrival_ns: u64, pages: &PageRequest) {
        let kind = self.kind_with_buffer(kind);
        let arrival_ns = match self.config.host.arrivals {
            Arrivals::Closed => 0,
            Arrivals::Open if self.real_time => arrival_ns,
            Arrivals::Open => (arrival_ns as f64 / self.config.host.speed) as u64,
        };
        if !matches!(kind, Kind::Flush | Kind::EmptyTrim) {
            self.arrives(arrival_ns);
        }
        let issue_ns = self.issue_time(arrival_ns);
        let number = self.next;
        self.next += 1;
        // In a closed loop arrivals mean nothing: responses count from the issue.
        let counted_from = if self.config.host.arrivals == Arrivals::Closed {
            issue_ns
        } else {
            arrival_ns
        };
        self.metrics.first_arrival_ns.get_or_insert(counted_from);
        if let Some(recorder) = &mut self.recorder {
            recorder.issued(kind, counted_from, issue_ns, pages);
        }
        let flying = InFlight::new(kind, counted_from, issue_ns);
        self.last_issue_ns = issue_ns;
        self.last_arrival_ns = self.last_arrival_ns.max(counted_from);
        // A request that is complete, as far as the clock is concerned, before the next one comes never gets into
        // flight.
        let alone = self.at_once && self.flight.is_empty();
        if !alone {
            self.flight.add(number, flying);
        }
        let done = match kind {
            Kind::Flush => {
                self.flush(flying, number, alone);
                None
            }
            Kind::EmptyTrim => Some(Completion {
                end_ns: issue_ns,
                request: number,
                first_start_ns: issue_ns,
            }),
            kind => {
                let done = self.hand_over(kind, number, arrival_ns, issue_ns, pages);
                if alone && done.is_none() {
                    self.flight.add(number, flying);
                }
                done
            }
        };
        if !alone {
            self.complete_under_way(done);
        } else if let Some(done) = done {
            if matches!(kind, Kind::Write | Kind::Trim) {
                self.flight.written_ns = self.flight.written_ns.max(done.end_ns);
            }
            self.measure(flying, done);
        }
        if self.next >= self.next_look {
            self.look();
        }
    }

    /// First instant, not before the arrival and the issue before, at which the queue has a place.
    #[inline]
    fn issue_time(&mut self, arrival_ns: u64) -> u64 {
        let mut issue_ns = arrival_ns.max(self.last_issue_ns);
        let depth = self.config.host.queue_depth;
        while depth > 0 && self.flight.open >= depth {
            let Some(completion) = self.flash.clock.next_completion() else {
                break;
            };
            issue_ns = issue_ns.max(completion.end_ns);
            self.complete(completion);
        }
        issue_ns
    }

    /// A flush does not reach the scheme; alone, it finds everything before it done.
    #[cold]
    fn flush(&mut self, request: InFlight, number: u64, alone: bool) {
        if alone {
            let end_ns = request.issue_ns.max(self.flight.written_ns);
            self.flushed(number, request, end_ns);
        } else {
            self.complete_flushes();
        }
    }

    #[inline]
    pub(super) fn hand_over(
        &mut self,
        kind: Kind,
        number: u64,
        arrival_ns: u64,
        issue_ns: u64,
        pages: &PageRequest,
    ) -> Option<Completion> {
        self.idles(arrival_ns, issue_ns);
        self.write_out_when_idle(issue_ns);
        self.fold_when_idle(issue_ns);
        if let Some(recorder) = &mut self.recorder {
            self.flash.clock.watched(None);
            let flash = &self.flash;
            let merges = || MergeKinds::of(&self.ftl.counters());
            recorder.begins(&flash.ledger.counters, &flash.fine, merges);
        }
        self.flash
            .begin_request(number, issue_ns, pages.partial.as_ref());
        let count = u64::from(pages.pages);
        match kind {
            Kind::Read => self.host.page_reads += count,
            Kind::Write => {
                self.host.page_writes += count;
                if self.buffer.is_none() && self.slc.is_none() {
                    self.read_old_content(pages);
                }
            }
            _ => self.host.page_trims += count,
        }
        self.metrics.cuts += pages.segments.len().saturating_sub(1) as u64;
        if self.buffer.is_some() {
            self.work_through_buffer(kind, issue_ns, pages);
        } else if self.slc.is_some() {
            self.work_through_slc(kind, pages);
        } else {
            pages.segments.iter().for_each(|s| self.work(kind, s));
        }
        if let Some(recorder) = &mut self.recorder {
            self.flash.clock.watched(Some(number));
            let flash = &self.flash;
            let merges = || MergeKinds::of(&self.ftl.counters());
            recorder.worked(&flash.ledger.counters, &flash.fine, merges);
            recorder.note(self.flash.clock.notes());
        }
        self.flash.end_request(self.at_once)
    }

    /// Old content of the first and the last page where only a part of a live page is written.
    pub(super) fn read_old_content(&mut self, pages: &PageRequest) {
        if !(pages.first_partial || pages.last_partial)
            || self.config.host.partial_write == PartialWrite::Whole
        {
            return;
        }
        self.flash.read_old_content(true);
        for (lpn, first_slot) in pages.partial_ends().into_iter().flatten() {
            if self.live.has(lpn.0) {
                let run = Run {
                    first: lpn,
                    pages: 1,
                    request_pages: 1,
                    first_slot,
                    slot_step: 1,
                };
                let Ok(()) = self.ftl.read(&mut self.flash, &run);
                self.metrics.partial_write_reads += 1;
            }
        }
        self.flash.read_old_content(false);
    }
}
