//! One scheme on one simulated flash, driven by one host: requests go in, measurements come out.

use std::convert::Infallible;

use floatgate_core::described::{ChipTimes, Described};
use floatgate_core::ftl::{MountError, Tick};
use floatgate_core::options::Options;
use floatgate_core::report::{HostCounters, Observation, Table};
use floatgate_core::{Ftl, Geometry, Lpn, Refusal, Run, Space};
use floatgate_trace::Request;

use crate::clock::{Clock, Completion};
use crate::config::{Arrivals, PartialWrite, RunConfig};
use crate::flash::SimFlash;
use crate::flight::{Flight, InFlight};
use crate::host::{BeyondEnd, Kind, PageMapper, PageRequest, Part};
use crate::live::LivePages;
use crate::metrics::{Measured, Metrics, Sample};
use crate::requests::{Recorder, RequestRow};
use crate::wear::Levelling;

/// A scheme's options from their names and values.
///
/// # Errors
/// Names the option that does not exist or does not fit.
pub fn options_of<S: Described>(config: &RunConfig) -> Result<S::Options, Refusal> {
    let mut options = S::Options::default();
    for (key, value) in &config.options {
        options.set(key, value)?;
    }
    let part = &config.device.part;
    let times = ChipTimes {
        t_r_ns: part.t_r_ns,
        t_prog_ns: part.t_prog_ns,
        t_bers_ns: part.t_bers_ns,
    };
    S::fit_to_chip(&mut options, times);
    Ok(options)
}

/// A run in progress.
#[derive(Debug)]
pub struct Session<S: Ftl<Page = Lpn>, C: Clock> {
    /// The scheme.
    pub ftl: S,
    /// Its flash.
    pub flash: SimFlash<C>,
    /// What has been measured.
    pub metrics: Metrics,
    /// Pages of the host's requests.
    pub host: HostCounters,
    /// The scheme's tables, as the papers count them.
    pub tables: Vec<Table>,
    config: RunConfig,
    mapper: PageMapper,
    /// The request in work, lent out while it is played.
    pages: Option<Box<PageRequest>>,
    flight: Flight,
    /// Number of the next request.
    next: u64,
    last_issue_ns: u64,
    next_sample: u64,
    completions: Vec<Completion>,
    /// Whether arrival times count as they are.
    real_time: bool,
    /// Whether nothing waits for a place in a queue, so that completions are taken as soon as they are known.
    at_once: bool,
    /// Whether requests are issued as they arrive, and no rows are made of them.
    plain: bool,
    /// Logical pages that have content: a partial write of any other needs no read.
    live: LivePages,
    /// Makes a row of each request, if that is asked for.
    recorder: Option<Box<Recorder>>,
}

impl<S: Ftl<Page = Lpn>, C: Clock> Session<S, C> {
    /// A device in its start state, not aged yet.
    ///
    /// # Errors
    /// The refusal of geometry, options or scheme.
    pub fn new(config: &RunConfig) -> Result<Self, Refusal> {
        let geometry = config.device.geometry()?;
        config.host.check()?;
        let options = options_of::<S>(config)?;
        let mut flash = SimFlash::new(&geometry, &config.device.machine(), config.device.copyback);
        let device = &config.device;
        flash.wear = Levelling::new(&geometry, device.wear_leveling, device.wear_gap).map(Box::new);
        let made = S::format(&Space::whole(&geometry), &options, config.start, &mut flash);
        let ftl = made.map_err(|error| match error {
            MountError::Refused(refusal) => refusal,
            MountError::Flash(never) => match never {},
        })?;
        let full = config.start == floatgate_core::Start::Full;
        Ok(Self {
            ftl,
            flash,
            metrics: Metrics::default(),
            host: HostCounters::default(),
            tables: S::tables(&geometry, &options),
            mapper: PageMapper::new(&config.device, &config.host),
            config: config.clone(),
            pages: None,
            flight: Flight::default(),
            next: 0,
            last_issue_ns: 0,
            next_sample: 0,
            completions: Vec::new(),
            real_time: config.host.speed == 1.0,
            at_once: config.host.queue_depth == 0,
            plain: config.host.queue_depth == 0
                && config.host.arrivals == Arrivals::Open
                && config.host.speed == 1.0,
            live: LivePages::new(geometry.logical_pages, full),
            recorder: None,
        })
    }

    /// From now on every request makes a row. To be called while nothing is under way.
    pub fn record_requests(&mut self) {
        let machine = self.config.device.machine();
        self.recorder = Some(Box::new(Recorder::new(&machine, self.next)));
        self.plain = false;
    }

    /// The rows of the requests completed so far, in the order of the trace, up to the first that is not
    /// complete; the caller takes them out.
    pub fn request_rows(&mut self) -> Option<&mut Vec<RequestRow>> {
        self.recorder.as_mut().map(|recorder| recorder.rows())
    }

    /// The configuration.
    pub fn config(&self) -> &RunConfig {
        &self.config
    }

    /// The shape of the device.
    pub fn geometry(&self) -> &Geometry {
        self.flash.ledger.geometry()
    }

    /// The mapper, for its regions.
    pub fn mapper(&mut self) -> &mut PageMapper {
        &mut self.mapper
    }

    /// Plays one request of a trace.
    ///
    /// # Errors
    /// If the device does not have its addresses.
    pub fn request(&mut self, request: &Request) -> Result<(), BeyondEnd> {
        let whole = self.mapper.whole_pages(request);
        if let Some((kind, first, pages)) = whole.filter(|_| self.is_plain()) {
            self.play_whole(kind, first, pages, request.bytes, request.arrival_ns);
            return Ok(());
        }
        self.request_at_length(request, whole)
    }

    #[inline(never)]
    fn request_at_length(
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
            self.play(kind, request.arrival_ns, &pages);
        }
        self.pages = Some(pages);
        mapped
    }

    /// A request will come soon: the table entries of its first page are fetched ahead of time.
    #[inline]
    pub fn prefetch(&self, request: &Request) {
        if let Some(lpn) = self.mapper.first_page(request) {
            self.prefetch_page(lpn);
        }
    }

    /// The same for a page.
    #[inline]
    pub fn prefetch_page(&self, lpn: Lpn) {
        self.ftl.prefetch(lpn);
    }

    /// Plays a request of whole pages.
    pub fn page_request(&mut self, kind: Kind, first: Lpn, pages: u32, arrival_ns: u64) {
        let bytes = u64::from(pages) * u64::from(self.config.device.part.page_bytes);
        if matches!(kind, Kind::Read | Kind::Write) && self.is_plain() {
            return self.play_whole(kind, first, pages, bytes, arrival_ns);
        }
        self.page_request_at_length(kind, first, pages, arrival_ns, bytes);
    }

    #[inline(never)]
    fn page_request_at_length(
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
        self.play(kind, arrival_ns, &request);
        self.pages = Some(request);
    }

    /// Whether the next request needs nothing but its work and its place among those under way: what else may have to
    /// be done is the same for all requests, or comes only now and then.
    #[inline(always)]
    fn is_plain(&self) -> bool {
        // The first request and those with a sample behind them take the long way.
        self.plain && self.next + 1 < self.next_sample
    }

    /// Plays a read or write of whole pages that [is plain](Self::is_plain): the short way to the same as
    /// [`play`](Self::play).
    #[inline(always)]
    fn play_whole(&mut self, kind: Kind, first: Lpn, pages: u32, bytes: u64, arrival_ns: u64) {
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
        let whole = Part {
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
        let done = self.flash.end_whole_request();
        if !alone {
            return self.settle_others(done);
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

    /// Tells the scheme the time of an arrival, and of the idle time before the issue if it uses that.
    #[inline(always)]
    fn comes(&mut self, arrival_ns: u64, issue_ns: u64) {
        let idle_from = if S::USES_IDLE_TIME {
            self.flash.clock.idle_since(issue_ns)
        } else {
            None
        };
        let tick = Tick {
            now_ns: arrival_ns,
            idle_ns: idle_from.map(|from| from..issue_ns),
        };
        let Ok(()) = self.ftl.tick(&mut self.flash, &tick);
    }

    fn play(&mut self, kind: Kind, arrival_ns: u64, pages: &PageRequest) {
        let arrival_ns = match self.config.host.arrivals {
            Arrivals::Closed => 0,
            Arrivals::Open if self.real_time => arrival_ns,
            Arrivals::Open => (arrival_ns as f64 / self.config.host.speed) as u64,
        };
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
            self.settle_others(done);
        } else if let Some(done) = done {
            if matches!(kind, Kind::Write | Kind::Trim) {
                self.flight.written_ns = self.flight.written_ns.max(done.end_ns);
            }
            self.measure(flying, done);
        }
        if self.next >= self.next_sample {
            self.sample();
        }
    }

    /// A flush does not reach the scheme; alone, it finds everything before it done.
    #[cold]
    fn flush(&mut self, request: InFlight, number: u64, alone: bool) {
        if alone {
            let end_ns = request.issue_ns.max(self.flight.written_ns);
            self.flushed(number, request, end_ns);
        } else {
            self.take_settled();
        }
    }

    /// Takes what is complete after a request that was not alone.
    fn settle_others(&mut self, done: Option<Completion>) {
        if let Some(done) = done {
            self.complete(done);
        }
        if self.at_once {
            self.take_completions();
        }
    }

    /// Hands whole pages to the scheme without timing (conformance).
    pub fn untimed(&mut self, kind: Kind, first: Lpn, pages: u32) {
        let run = Run::whole(first, pages);
        self.flash.begin_request(self.next, 0, None);
        self.next += 1;
        let count = u64::from(pages);
        let Ok(()) = match kind {
            Kind::Read => {
                self.host.page_reads += count;
                self.ftl.read(&mut self.flash, &run)
            }
            Kind::Write => {
                self.host.page_writes += count;
                self.ftl.write(&mut self.flash, &run)
            }
            _ => {
                self.host.page_trims += count;
                self.trim(&run)
            }
        };
        self.flash.end_request(false);
        self.completions.clear();
        self.flash.clock.drain(&mut self.completions);
        if kind != Kind::Read {
            self.live.set(first, pages, kind == Kind::Write);
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

    #[inline]
    fn hand_over(
        &mut self,
        kind: Kind,
        number: u64,
        arrival_ns: u64,
        issue_ns: u64,
        pages: &PageRequest,
    ) -> Option<Completion> {
        self.comes(arrival_ns, issue_ns);
        if let Some(recorder) = &mut self.recorder {
            recorder.begins(&self.flash.ledger.counters, &self.flash.fine);
        }
        self.flash
            .begin_request(number, issue_ns, pages.partial.as_ref());
        let count = u64::from(pages.pages);
        match kind {
            Kind::Read => self.host.page_reads += count,
            Kind::Write => {
                self.host.page_writes += count;
                self.read_old_content(pages);
            }
            _ => self.host.page_trims += count,
        }
        if let Some((first, others)) = pages.parts.split_first() {
            self.work(kind, first);
            if !others.is_empty() {
                self.work_on_cuts(kind, others);
            }
        }
        if let Some(recorder) = &mut self.recorder {
            recorder.worked(&self.flash.ledger.counters, &self.flash.fine);
        }
        self.flash.end_request(self.at_once)
    }

    /// A page that is absent from a trim is no read.
    fn trim(&mut self, run: &Run) -> Result<(), Infallible> {
        let unwritten_reads = self.flash.unwritten_reads;
        self.ftl.trim(&mut self.flash, run)?;
        self.flash.unwritten_reads = unwritten_reads;
        Ok(())
    }

    /// Hands one part of a request to the scheme.
    #[inline(always)]
    fn work(&mut self, kind: Kind, part: &Part) {
        let run = Run {
            first: part.first,
            pages: part.pages,
            request_pages: part.pages,
            first_slot: part.first_slot,
            slot_step: 1,
        };
        let Ok(()) = match kind {
            Kind::Read => self.ftl.read(&mut self.flash, &run),
            Kind::Write => self.ftl.write(&mut self.flash, &run),
            _ => self.trim(&run),
        };
        if kind != Kind::Read {
            self.live.set(part.first, part.pages, kind == Kind::Write);
        }
    }

    #[cold]
    fn work_on_cuts(&mut self, kind: Kind, others: &[Part]) {
        self.metrics.cuts += others.len() as u64;
        others.iter().for_each(|part| self.work(kind, part));
    }

    /// Old content of the first and the last page where only a part of a live page is written.
    fn read_old_content(&mut self, pages: &PageRequest) {
        if !(pages.first_partial || pages.last_partial)
            || self.config.host.partial_write == PartialWrite::Whole
        {
            return;
        }
        let (Some(first), Some(last)) = (pages.parts.first(), pages.parts.last()) else {
            return;
        };
        let (first_lpn, last_lpn) = (first.first.0, last.first.0 + last.pages - 1);
        let ends = [
            (pages.first_partial, first_lpn, first.first_slot),
            (
                pages.last_partial,
                last_lpn,
                last.first_slot + last.pages - 1,
            ),
        ];
        self.flash.read_old_content(true);
        for (_, lpn, first_slot) in ends.into_iter().filter(|(partial, ..)| *partial) {
            if self.live.has(lpn) {
                let lpn = Lpn(lpn);
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

    #[inline]
    fn take_completions(&mut self) {
        self.flash.clock.drain(&mut self.completions);
        for i in 0..self.completions.len() {
            self.complete(self.completions[i]);
        }
        self.completions.clear();
    }

    #[inline]
    fn complete(&mut self, completion: Completion) {
        let request = self.flight.done(completion.request, completion.end_ns);
        self.measure(request, completion);
        self.take_settled();
    }

    /// A flush is complete with the last of all earlier writes and trims; the scheme does not see it.
    #[inline]
    fn take_settled(&mut self) {
        while let Some((number, flush)) = self.flight.settle() {
            self.flushed(number, flush, flush.end_ns);
        }
    }

    fn flushed(&mut self, number: u64, flush: InFlight, end_ns: u64) {
        if let Some(recorder) = &mut self.recorder {
            recorder.done(number, flush.issue_ns, end_ns);
        }
        self.metrics
            .flushes
            .record(end_ns.saturating_sub(flush.arrival_ns));
        self.metrics.last_completion_ns = self.metrics.last_completion_ns.max(end_ns);
    }

    #[inline]
    fn measure(&mut self, request: InFlight, completion: Completion) {
        if let Some(recorder) = &mut self.recorder {
            recorder.done(
                completion.request,
                completion.first_start_ns,
                completion.end_ns,
            );
        }
        self.measure_times(request, completion);
    }

    #[inline(always)]
    fn measure_times(&mut self, request: InFlight, completion: Completion) {
        let response_ns = completion.end_ns.saturating_sub(request.arrival_ns);
        let metrics = &mut self.metrics;
        metrics.last_completion_ns = metrics.last_completion_ns.max(completion.end_ns);
        match request.kind {
            Kind::Read | Kind::Write => {}
            Kind::Trim | Kind::EmptyTrim => return metrics.trims.record(response_ns),
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

    #[cold]
    fn sample(&mut self) {
        if self.at_once {
            self.flash.clock.catch_up();
            self.take_completions();
        }
        self.metrics.flush();
        let mut seen = Observation::default();
        self.ftl.observe(&mut seen);
        let counters = &self.flash.ledger.counters;
        let merges = self.ftl.counters().merges;
        let series = &mut self.metrics.series;
        if series.observed_names.is_empty() {
            series.observed_names = seen.values.iter().map(|value| value.name).collect();
        }
        series.push(Sample {
            requests: self.next,
            time_ns: self.last_issue_ns,
            host_programs: counters.programs.host,
            programs: counters.programs.sum(),
            erases: counters.erases.sum(),
            merges: [merges.switch, merges.partial, merges.full, merges.dead],
            observed: seen.values.iter().map(|value| value.value).collect(),
            ..Sample::default()
        });
        self.next_sample = self.next + series.every;
    }

    /// No request follows: everything under way comes to its end.
    pub fn settle(&mut self) {
        self.flash.clock.finish();
        self.take_completions();
        debug_assert_eq!(self.flight.open, 0, "every request completes");
        self.sample();
    }

    /// Ends a warm-up: counters, clocks and timers to zero, pages and tables as they are.
    pub fn reset_counters(&mut self) {
        self.settle();
        self.flash.reset_counters();
        self.ftl.reset_counters();
        self.metrics = Metrics::default();
        self.host = HostCounters::default();
        self.flight = Flight::default();
        self.next = 0;
        self.last_issue_ns = 0;
        self.next_sample = 0;
        if self.recorder.is_some() {
            self.record_requests();
        }
    }

    /// Checks the conservation laws.
    ///
    /// # Errors
    /// The law that does not hold, with its numbers.
    pub fn check_laws(&self) -> Result<(), String> {
        let c = &self.flash.ledger.counters;
        let read = self.host.page_reads - self.flash.unwritten_reads.min(self.host.page_reads);
        let laws = [
            (
                "programs.host = page_writes",
                c.programs.host,
                self.host.page_writes,
            ),
            ("reads.gc = programs.gc", c.reads.gc, c.programs.gc),
            (
                "reads.host = page_reads - unwritten_reads + partial_write_reads",
                c.reads.host,
                read + self.metrics.partial_write_reads,
            ),
        ];
        for (law, left, right) in laws {
            if left != right {
                return Err(format!(
                    "conservation law broken: {law}: {left} and {right}"
                ));
            }
        }
        let live = self.ftl.audit(&self.flash)?;
        let logical = self.geometry().logical_pages;
        let expected = (0..logical).filter(|&lpn| self.live.has(lpn)).count() as u64;
        if live != expected {
            return Err(format!(
                "conservation law broken: {live} valid pages, written and not trimmed {expected}"
            ));
        }
        Ok(())
    }
}
