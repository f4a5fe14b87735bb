//! One scheme on one simulated flash, driven by one host: requests go in, measurements come out.
//!
//! A request goes one of two ways: most take the [short way], all others, and whatever needs more than the work of the
//! request itself, the [long way]. Both hand their work to the scheme here, and end in the same [measurements].
//!
//! Commands of several flows, whose order a host of its own decides, take a [way of theirs](flow_way) beside these.
//!
//! [short way]: short_way
//! [long way]: long_way
//! [measurements]: measuring

mod buffered;
mod cached;
mod flow_way;
mod laws;
mod long_way;
mod measuring;
mod short_way;

use std::convert::Infallible;
use std::sync::Arc;

use floatgate_core::described::{ChipTimes, Described};
use floatgate_core::ftl::{Coming, MountError, Tick};
use floatgate_core::options::Options;
use floatgate_core::report::{HostCounters, Table};
use floatgate_core::state::{Passed, State, Tape};
use floatgate_core::{Ftl, Geometry, Lpn, Refusal, Run, Space};
use floatgate_trace::Request;

use crate::clock::{Clock, Completion, Operation};
use crate::config::{Arrivals, RunConfig};
use crate::flash::SimFlash;
use crate::flight::Flight;
use crate::host::{BeyondEnd, Kind, PageMapper, PageRequest, Segment};
use crate::live::LivePages;
use crate::merges::MergeKinds;
use crate::metrics::Metrics;
use crate::recorder::Recorder;
use crate::requests::{RequestRow, Work};
use crate::wear::Levelling;
pub use buffered::BufferCounters;
use buffered::Buffered;
pub(crate) use buffered::check_foretold;
use cached::Cached;
pub use cached::SlcCounters;

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
        t_prog_ns: part.program_ns_of_page(),
        t_bers_ns: part.t_bers_ns,
    };
    S::fit_to_chip(&mut options, times);
    Ok(options)
}

/// Requests that a caller should [ask for ahead](Session::prefetch) of their play, so that their table entries are at
/// hand by then: about as many as a processor has memory accesses under way.
pub(crate) const READ_AHEAD: usize = 16;

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
    /// Latest arrival of the requests that went the long way.
    last_arrival_ns: u64,
    /// Number of the request after which the backlog is looked at next, and a sample taken if one is due.
    next_look: u64,
    next_sample: u64,
    completions: Vec<Completion>,
    /// Whether arrival times count as they are.
    real_time: bool,
    /// Whether nothing waits for a place in a queue, so that completions are taken as soon as they are known.
    at_once: bool,
    /// Whether the scheme asks for the stream of each write.
    uses_streams: bool,
    /// Whether the scheme has a use for idle time.
    uses_idle_time: bool,
    /// Whether requests are issued as they arrive, and no rows are made of them: the short way is open.
    plain: bool,
    /// Logical pages that have content: a partial write of any other needs no read.
    pub(crate) live: LivePages,
    /// Memory between host and scheme, if there is any.
    buffer: Option<Box<Buffered<C::Token>>>,
    /// Flash blocks with one bit a cell that take writes in first, if there are any.
    slc: Option<Box<Cached<C::Token>>>,
    /// Makes a row of each request, if that is asked for.
    recorder: Option<Box<Recorder>>,
    /// Whether the operations of the flash are kept beside them.
    keeps_operations: bool,
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
        S::check_levelling(&options, config.device.wear_leveling)?;
        let mut machine = config.device.machine();
        machine.pcm = S::pcm(&options);
        let mut flash = SimFlash::new(&geometry, &machine, config.device.copyback);
        let device = &config.device;
        flash.wear = Levelling::new(&geometry, device.wear_leveling, device.wear_gap).map(Box::new);
        let made = S::format(&Space::whole(&geometry), &options, config.start, &mut flash);
        let ftl = made.map_err(|error| match error {
            MountError::Refused(refusal) => refusal,
            MountError::Flash(never) => match never {},
        })?;
        if S::weighs_dies(&options) {
            flash.weigh_dies(&machine);
        }
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
            last_arrival_ns: 0,
            next_look: 0,
            next_sample: 0,
            completions: Vec::new(),
            real_time: config.host.speed == 1.0,
            at_once: config.host.queue_depth == 0,
            uses_streams: S::uses_streams(&options),
            uses_idle_time: S::USES_IDLE_TIME && S::uses_idle_time(&options),
            plain: !S::uses_streams(&options)
                && config.host.queue_depth == 0
                && config.host.arrivals == Arrivals::Open
                && config.host.speed == 1.0,
            live: LivePages::new(geometry.logical_pages, full),
            buffer: None,
            slc: None,
            recorder: None,
            keeps_operations: false,
        })
    }

    /// From now on every request makes a row. To be called while nothing is under way.
    pub fn record_requests(&mut self) {
        let machine = self.config.device.machine();
        self.recorder = Some(Box::new(Recorder::new(&machine, self.next)));
        self.flash.clock.watch(self.keeps_operations);
        self.plain = false;
    }

    /// The same, and from now on the operations of the flash are kept.
    pub fn record_operations(&mut self) {
        self.keeps_operations = true;
        self.record_requests();
    }

    /// The operations whose end has become known, in the order of their ends on each die, if the clock keeps them; the
    /// caller takes them out.
    pub fn operations(&mut self) -> Option<&mut Vec<Operation>> {
        self.flash.clock.operations()
    }

    /// Work and merges that belong to no request recorded so far: what the scheme did in idle time and by timers.
    pub fn background(&self) -> Option<(Work, MergeKinds)> {
        self.recorder.as_ref().map(|recorder| recorder.background())
    }

    /// The rows of the requests completed so far, in the order of the trace, up to the first that is not
    /// complete; the caller takes them out.
    pub fn request_rows(&mut self) -> Option<&mut Vec<RequestRow>> {
        self.recorder.as_mut().map(|recorder| recorder.rows())
    }

    /// Requests in work whose end is not known.
    pub(crate) fn in_work(&self) -> u32 {
        self.flight.open
    }

    /// The configuration.
    pub fn config(&self) -> &RunConfig {
        &self.config
    }

    /// The shape of the device.
    pub fn geometry(&self) -> &Geometry {
        self.flash.ledger.geometry()
    }

    /// A mapper that goes on where that of the session is.
    pub(crate) fn mapper_ahead(&self) -> PageMapper {
        self.mapper.clone()
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

    /// Plays a request of whole pages.
    pub fn page_request(&mut self, kind: Kind, first: Lpn, pages: u32, arrival_ns: u64) {
        let bytes = u64::from(pages) * u64::from(self.config.device.part.page_bytes);
        if matches!(kind, Kind::Read | Kind::Write) && self.is_plain() {
            return self.play_whole(kind, first, pages, bytes, arrival_ns);
        }
        self.page_request_at_length(kind, first, pages, arrival_ns, bytes);
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

    /// Tells the scheme of the stream of a request, if it asks for that; of `None` where requests come without.
    #[inline]
    fn streams(&mut self, kind: Kind, request: Option<&Request>) {
        if self.uses_streams && kind == Kind::Write {
            let stream = request.and_then(|request| self.stream_of(request));
            match (&mut self.buffer, &mut self.slc) {
                (Some(buffer), _) => buffer.stream = stream,
                (None, Some(slc)) => slc.stream = stream,
                (None, None) => self.ftl.stream(stream),
            }
        }
    }

    /// What the whole run will write, told to the scheme.
    pub(crate) fn foretell(&mut self, deaths: Arc<[u64]>) {
        self.ftl.foretell(deaths);
    }

    /// The stream that a request names, by what the host takes for one.
    pub(crate) fn stream_of(&self, request: &Request) -> Option<u32> {
        let page_bytes = u64::from(self.config.device.part.page_bytes);
        let device_bytes = page_bytes * self.config.device.logical_pages;
        let by = self.config.host.stream_by;
        by.of(request, page_bytes, device_bytes)
    }

    /// How many requests ahead the scheme is told of what is written; none where something between it and the host
    /// decides what is written, and when.
    pub(crate) fn looks_ahead(&self) -> Result<usize, Refusal> {
        match (&self.buffer, &self.slc) {
            (None, None) => Ok(S::looks_ahead(&options_of::<S>(&self.config)?)),
            _ => Ok(0),
        }
    }

    /// The writes of the next requests, told to the scheme.
    pub(crate) fn ahead(&mut self, writes: &[Coming]) {
        self.ftl.ahead(writes);
    }

    /// Tells the scheme of an arrival, for timed work. To be called before anything is asked about the issue: timed work
    /// stands before it, as early as at the issue of the request before, and a clock that has looked for a place in the
    /// queue has granted the buses beyond that.
    #[inline(always)]
    fn arrives(&mut self, arrival_ns: u64) {
        self.flash.not_before_ns = self.last_issue_ns;
        let tick = Tick {
            now_ns: arrival_ns,
            idle_ns: None,
        };
        let Ok(()) = self.ftl.tick(&mut self.flash, &tick);
    }

    /// Tells the scheme of the idle time before an issue, if it uses that and there was any.
    #[inline(always)]
    fn idles(&mut self, arrival_ns: u64, issue_ns: u64) {
        if !(S::USES_IDLE_TIME && self.uses_idle_time) {
            return;
        }
        let Some(from_ns) = self.flash.clock.idle_since(issue_ns) else {
            return;
        };
        // Idle time may begin before a request that the scheme does not see.
        self.flash.not_before_ns = 0;
        let tick = Tick {
            now_ns: arrival_ns,
            idle_ns: Some(from_ns..issue_ns),
        };
        let Ok(()) = self.ftl.tick(&mut self.flash, &tick);
    }

    /// Hands one segment of a request to the scheme.
    #[inline(always)]
    fn work(&mut self, kind: Kind, segment: &Segment) {
        let run = Run {
            first: segment.first,
            pages: segment.pages,
            request_pages: segment.pages,
            first_slot: segment.first_slot,
            slot_step: 1,
        };
        let Ok(()) = match kind {
            Kind::Read => self.ftl.read(&mut self.flash, &run),
            Kind::Write => self.ftl.write(&mut self.flash, &run),
            _ => self.trim(&run),
        };
        if kind != Kind::Read {
            self.live
                .set(segment.first, segment.pages, kind == Kind::Write);
        }
    }

    /// A page that is absent from a trim is no read.
    pub(crate) fn trim(&mut self, run: &Run) -> Result<(), Infallible> {
        let unwritten_reads = self.flash.unwritten_reads;
        self.ftl.trim(&mut self.flash, run)?;
        self.flash.unwritten_reads = unwritten_reads;
        Ok(())
    }

    /// Passes what ageing changes; to be called while nothing is under way.
    pub(crate) fn pass(&mut self, tape: &mut Tape<'_>) -> Passed {
        tape.mark("flash")?;
        self.flash.pass(tape)?;
        tape.mark("scheme")?;
        self.ftl.state(tape)?;
        tape.mark("host")?;
        self.live.pass(tape)?;
        self.mapper.pass(tape)
    }

    /// No request follows: everything under way comes to its end.
    pub fn finish(&mut self) {
        self.flash.clock.finish();
        self.take_completions();
        debug_assert_eq!(self.flight.open, 0, "every request completes");
        let backlog = self.backlog();
        self.sample(backlog);
    }

    /// Ends a warm-up: counters, clocks and timers to zero, pages and tables as they are.
    pub fn reset_counters(&mut self) {
        self.finish();
        self.flash.reset_counters();
        self.ftl.reset_counters();
        self.metrics = Metrics::default();
        self.host = HostCounters::default();
        self.flight = Flight::default();
        self.next = 0;
        self.last_issue_ns = 0;
        self.last_arrival_ns = 0;
        self.next_look = 0;
        self.next_sample = 0;
        if self.recorder.is_some() {
            self.record_requests();
        }
    }
}
