//! From completions to measurements: the same for both ways through a request.

use floatgate_core::report::Observation;
use floatgate_core::{Ftl, Lpn};

use super::Session;
use crate::clock::{Clock, Completion};
use crate::flight::InFlight;
use crate::host::Kind;
use crate::merges::MergeKinds;
use crate::metrics::Measured;
use crate::series::Sample;

impl<S: Ftl<Page = Lpn>, C: Clock> Session<S, C> {
    /// Takes what is complete after a request that was not alone.
    pub(super) fn complete_under_way(&mut self, done: Option<Completion>) {
        if let Some(done) = done {
            self.complete(done);
        }
        if self.at_once {
            self.take_completions();
        }
    }

    #[inline]
    pub(super) fn take_completions(&mut self) {
        self.flash.clock.drain(&mut self.completions);
        for i in 0..self.completions.len() {
            self.complete(self.completions[i]);
        }
        self.completions.clear();
    }

    #[inline]
    pub(super) fn complete(&mut self, completion: Completion) {
        let request = self.flight.done(completion.request, completion.end_ns);
        self.measure(request, completion);
        self.complete_flushes();
    }

    /// A flush is complete with the last of all earlier writes and trims; the scheme does not see it.
    #[inline]
    pub(super) fn complete_flushes(&mut self) {
        while let Some((number, flush)) = self.flight.next_flush() {
            self.flushed(number, flush, flush.end_ns);
        }
    }

    pub(super) fn flushed(&mut self, number: u64, flush: InFlight, end_ns: u64) {
        if let Some(recorder) = &mut self.recorder {
            recorder.done(number, flush.issue_ns, end_ns);
        }
        self.measure_flush(flush, end_ns);
    }

    pub(super) fn measure_flush(&mut self, flush: InFlight, end_ns: u64) {
        let response_ns = end_ns.saturating_sub(flush.arrival_ns);
        self.metrics.flushes.record(response_ns);
        self.metrics.series.flushed(response_ns);
        let latest_ns = self.metrics.last_completion_ns;
        self.metrics
            .backlog
            .ends(flush.arrival_ns, latest_ns, end_ns);
        self.metrics.last_completion_ns = self.metrics.last_completion_ns.max(end_ns);
    }

    #[inline]
    pub(super) fn measure(&mut self, request: InFlight, completion: Completion) {
        if let Some(recorder) = &mut self.recorder {
            recorder.note(self.flash.clock.notes());
            recorder.done(
                completion.request,
                completion.first_start_ns,
                completion.end_ns,
            );
        }
        self.measure_times(request, completion);
    }

    #[inline(always)]
    pub(super) fn measure_times(&mut self, request: InFlight, completion: Completion) {
        let response_ns = completion.end_ns.saturating_sub(request.arrival_ns);
        let metrics = &mut self.metrics;
        let latest_ns = metrics.last_completion_ns;
        metrics
            .backlog
            .ends(request.arrival_ns, latest_ns, completion.end_ns);
        metrics.last_completion_ns = latest_ns.max(completion.end_ns);
        match request.kind {
            Kind::Read | Kind::Write => {}
            Kind::Trim | Kind::EmptyTrim => return metrics.trims.record(response_ns),
            Kind::Drain => {
                metrics.flushes.record(response_ns);
                return metrics.series.flushed(response_ns);
            }
            Kind::Flush => return,
        }
        let start_ns = completion.first_start_ns;
        metrics.measure(Measured {
            is_write: request.kind == Kind::Write,
            response_ns,
            service_ns: completion.end_ns.saturating_sub(start_ns),
            queue_ns: start_ns.saturating_sub(request.arrival_ns),
            busy_ns: completion.end_ns.saturating_sub(request.issue_ns),
        });
    }

    /// Looks at the backlog when the last request has arrived, and takes a sample if one is due.
    #[cold]
    pub(super) fn look(&mut self) {
        let backlog = self.backlog();
        self.metrics.series.looked(backlog);
        if self.next >= self.next_sample {
            self.sample(backlog);
        }
        self.next_look = self.next + self.metrics.series.look_each();
    }

    /// Requests that have arrived and are not complete when the last one arrives.
    pub(super) fn backlog(&mut self) -> u64 {
        // Without a queue requests are issued as they arrive.
        let arrival_ns = match self.plain {
            true => self.last_issue_ns,
            false => self.last_arrival_ns,
        };
        self.flash.clock.settle(arrival_ns);
        if self.at_once {
            self.take_completions();
        }
        // With a queue, completions stay with the clock until somebody waits for one.
        let open = u64::from(self.flight.open) - self.flash.clock.complete_by(arrival_ns);
        open + self.metrics.backlog.ahead_of(arrival_ns)
    }

    pub(super) fn sample(&mut self, backlog: u64) {
        self.metrics.flush();
        let mut seen = Observation::default();
        self.ftl.observe(&mut seen);
        let (flash, scheme) = (&self.flash, self.ftl.counters());
        let counters = &flash.ledger.counters;
        let metrics = &mut self.metrics;
        let series = &mut metrics.series;
        if series.observed_names.is_empty() {
            series.observed_names = seen.values.iter().map(|value| value.name).collect();
        }
        series.push(Sample {
            requests: self.next,
            time_ns: self.last_issue_ns,
            backlog,
            flushes: metrics.flushes.count,
            read_bytes: metrics.read_bytes,
            write_bytes: metrics.write_bytes,
            host_programs: counters.programs.host,
            programs: counters.programs.sum() + flash.fine.one_bit.programs,
            erases: counters.erases.sum(),
            merges: MergeKinds::of(&scheme),
            busy_ns: flash.clock.busy_ns(),
            observed: seen.values.iter().map(|value| value.value).collect(),
            ..Sample::default()
        });
        self.next_sample = self.next + series.every;
    }
}
