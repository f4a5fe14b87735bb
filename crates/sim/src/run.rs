//! A whole run: device, ageing, trace, record; the scheme by its name.

mod ahead;
mod flows;

use floatgate_core::catalog::Life;
use floatgate_core::described::RecoveryCost;
use floatgate_core::options::Options;
use floatgate_core::state::StateError;
use floatgate_core::wear::WearLeveling;
use floatgate_core::{Ftl, Lpn, Refusal, Space};
use floatgate_trace::{Request, TraceError};

use self::ahead::Ahead;
use crate::ageing::{self, Aged};
use crate::blocks::{self, BlockRow};
use crate::clock::{Clock, Closed, Events, Operation, Scheduled};
use crate::config::{Host, Recipe, RunConfig};
use crate::conform::{VectorRequest, conform_scheme};
use crate::driven::{Device, Driven};
use crate::flows::Flows;
use crate::future::Future;
use crate::host::{BeyondEnd, PageMapper};
use crate::record::{Counters, Record, Tables};
use crate::requests::RequestRow;
use crate::saved;
use crate::session::{Session, check_foretold, options_of};
pub use crate::source::Source;
use crate::span::Regions;
use crate::wear::Levelling;

/// A run ended without a record.
#[derive(Debug)]
pub enum RunError {
    /// The configuration cannot run.
    Refused(Refusal),
    /// The trace cannot be read.
    Trace(TraceError),
    /// The device does not have an address of the trace.
    Beyond(String),
    /// The device's state can be neither saved nor loaded.
    State(StateError),
    /// A law did not hold: a bug in the scheme or the simulator.
    Law(String),
}

impl std::fmt::Display for RunError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Refused(refusal) => refusal.fmt(f),
            Self::Trace(error) => error.fmt(f),
            Self::State(error) => error.fmt(f),
            Self::Beyond(text) | Self::Law(text) => f.write_str(text),
        }
    }
}

impl std::error::Error for RunError {}

impl From<Refusal> for RunError {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

impl From<StateError> for RunError {
    fn from(error: StateError) -> Self {
        Self::State(error)
    }
}

impl From<TraceError> for RunError {
    fn from(error: TraceError) -> Self {
        Self::Trace(error)
    }
}

/// A trace that is in memory already.
#[derive(Debug)]
pub struct Decoded<'a> {
    requests: &'a [Request],
    at: usize,
}

impl<'a> Decoded<'a> {
    /// A source of these requests.
    pub fn new(requests: &'a [Request]) -> Self {
        Self { requests, at: 0 }
    }
}

impl Source for Decoded<'_> {
    fn next(&mut self) -> Result<Option<Request>, TraceError> {
        let request = self.requests.get(self.at).copied();
        self.at += usize::from(request.is_some());
        Ok(request)
    }

    fn rewind(&mut self) -> Result<(), TraceError> {
        self.at = 0;
        Ok(())
    }

    fn place(&self) -> u64 {
        self.at as u64
    }

    fn position(&self, place: u64) -> String {
        format!("request {place}")
    }
}

/// What a run tells while it goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// An ageing step is at work.
    Ageing,
    /// That many more requests of the trace have been played.
    Played(u64),
}

/// Requests between two calls of the progress function.
const PLAYED_EACH: u64 = 4096;

/// Takes the rows of requests as they complete, in the order of the trace.
pub type TakeRows<'a> = dyn FnMut(&[RequestRow]) -> Result<(), TraceError> + 'a;

/// Takes operations of the flash as their ends become known.
pub type TakeOperations<'a> = dyn FnMut(&[Operation]) -> Result<(), TraceError> + 'a;

/// Takes the state of the device after its ageing.
pub type TakeState<'a> = dyn FnMut(Vec<u8>) -> Result<(), RunError> + 'a;

/// What a run does besides making its record.
#[derive(Default)]
pub struct Besides<'a> {
    /// Takes a row of every request after ageing; its error ends the run as [`RunError::Trace`].
    pub rows: Option<&'a mut TakeRows<'a>>,
    /// Takes every operation of the flash after ageing, as `rows`. Then requests are recorded too.
    pub operations: Option<&'a mut TakeOperations<'a>>,
    /// Gets a row of every block in the end.
    pub blocks: Option<&'a mut Vec<BlockRow>>,
    /// Plays these flows, all of which begin with their first request, in place of the source.
    pub flows: Option<&'a mut Flows>,
    /// The device is not aged: it has this state, which [`save`](Self::save) took from one of the same shape and options.
    pub load: Option<Vec<u8>>,
    /// Takes the state of the device as soon as it is aged, before the run.
    pub save: Option<&'a mut TakeState<'a>>,
}

/// Options by name, each as text.
pub type OptionTexts = Vec<(&'static str, String)>;

struct Job<'a> {
    config: &'a RunConfig,
    source: &'a mut dyn Source,
    progress: &'a mut dyn FnMut(Progress),
    besides: Besides<'a>,
}

/// A scheme in the simulator: the life of a scheme in which a page is nothing but a time.
#[derive(Clone, Copy, Debug)]
pub struct Simulated {
    run: fn(Job<'_>) -> Result<Record, RunError>,
    memory_bytes: fn(&RunConfig) -> Result<u64, Refusal>,
    recovery_costs: fn(&RunConfig) -> Result<Vec<RecoveryCost>, Refusal>,
    tables: fn(&RunConfig) -> Result<Tables, Refusal>,
    conform: fn(&RunConfig, &[VectorRequest]) -> Result<Counters, String>,
    check: fn(&RunConfig) -> Result<(), Refusal>,
    live: fn(&RunConfig) -> Result<(), Refusal>,
    drive: fn(&RunConfig) -> Result<Box<dyn Driven>, Refusal>,
    options: fn(&RunConfig) -> Result<OptionTexts, Refusal>,
}

impl Life for Simulated {
    fn of<S: Ftl<Page = Lpn>>() -> Self {
        Self {
            run: run_scheme::<S>,
            memory_bytes: memory_bytes_of::<S>,
            recovery_costs: recovery_costs_of::<S>,
            tables: tables_of::<S>,
            conform: conform_scheme::<S>,
            check: check_scheme::<S>,
            live: |config| S::live(&options_of::<S>(config)?),
            drive: drive_scheme::<S>,
            options: |config| options_of::<S>(config).map(|options| options.values()),
        }
    }
}

impl AsRef<Self> for Simulated {
    fn as_ref(&self) -> &Self {
        self
    }
}

impl Simulated {
    /// Runs a configuration over a trace and gives the record.
    ///
    /// # Errors
    /// See [`RunError`].
    pub fn run(
        &self,
        config: &RunConfig,
        source: &mut dyn Source,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Record, RunError> {
        self.run_with(config, source, progress, Besides::default())
    }

    /// The same, and more.
    ///
    /// # Errors
    /// See [`RunError`]; a state that does not fit the device, or is damaged, is [`RunError::State`].
    pub fn run_with<'a>(
        &self,
        config: &'a RunConfig,
        source: &'a mut dyn Source,
        progress: &'a mut dyn FnMut(Progress),
        besides: Besides<'a>,
    ) -> Result<Record, RunError> {
        (self.run)(Job {
            config,
            source,
            progress,
            besides,
        })
    }

    /// Checks a configuration as far as that goes without memory, and gives the bytes that the run will
    /// need.
    ///
    /// # Errors
    /// The refusal of geometry, host or options.
    pub fn memory_bytes(&self, config: &RunConfig) -> Result<u64, Refusal> {
        (self.memory_bytes)(config)
    }

    /// All options of the scheme in force, each as text; `-` stands for one without a value.
    ///
    /// # Errors
    /// The option that does not exist or does not fit.
    pub fn options(&self, config: &RunConfig) -> Result<OptionTexts, Refusal> {
        (self.options)(config)
    }

    /// What bringing the device of a configuration back takes, for each means the scheme has.
    ///
    /// # Errors
    /// The refusal of geometry or options.
    pub fn recovery_costs(&self, config: &RunConfig) -> Result<Vec<RecoveryCost>, Refusal> {
        (self.recovery_costs)(config)
    }

    /// The scheme's tables on the device of a configuration, without a run.
    ///
    /// # Errors
    /// The refusal of geometry or options.
    pub fn tables(&self, config: &RunConfig) -> Result<Tables, Refusal> {
        (self.tables)(config)
    }

    /// Plays the requests of a conformance vector and gives the counters that came out.
    ///
    /// # Errors
    /// What is wrong with the vector, or a broken law.
    pub fn conform(
        &self,
        config: &RunConfig,
        requests: &[VectorRequest],
    ) -> Result<Counters, String> {
        (self.conform)(config, requests)
    }

    /// Whether the scheme takes the device of a configuration, as far as it can tell without making one: some schemes
    /// find out only in [`drive`](Self::drive).
    ///
    /// # Errors
    /// The refusal of geometry, host, options or scheme.
    pub fn check(&self, config: &RunConfig) -> Result<(), Refusal> {
        (self.check)(config)
    }

    /// Whether the scheme can run where requests come live, as in a device that is [driven](Self::drive).
    ///
    /// # Errors
    /// The refusal of options that need the whole run in advance.
    pub fn live(&self, config: &RunConfig) -> Result<(), Refusal> {
        (self.live)(config)
    }

    /// A device in its start state, not aged, to be driven without a trace.
    ///
    /// # Errors
    /// The refusal of geometry, options or scheme.
    pub fn drive(&self, config: &RunConfig) -> Result<Box<dyn Driven>, Refusal> {
        (self.drive)(config)
    }
}

/// Whether the clock in closed form does for a machine, which is checked.
fn closed_form(config: &RunConfig) -> Result<bool, Refusal> {
    let machine = config.device.machine();
    machine.validate().map_err(Refusal::of_all)?;
    Ok(Closed::fits(&machine))
}

fn check_scheme<S: Ftl<Page = Lpn>>(config: &RunConfig) -> Result<(), Refusal> {
    closed_form(config)?;
    let geometry = config.device.geometry()?;
    config.host.check()?;
    config.device.buffer.check()?;
    check_foretold::<S>(config)?;
    let options = options_of::<S>(config)?;
    S::check_levelling(&options, config.device.wear_leveling)?;
    S::check(&Space::whole(&geometry), &options)
}

fn drive_scheme<S: Ftl<Page = Lpn>>(config: &RunConfig) -> Result<Box<dyn Driven>, Refusal> {
    fn on<S: Ftl<Page = Lpn>, C: Clock + Send + 'static>(
        config: &RunConfig,
    ) -> Result<Box<dyn Driven>, Refusal> {
        let mut session = Session::<S, C>::new(config)?;
        session.put_buffer()?;
        session.put_slc()?;
        Ok(Box::new(Device::new(session)))
    }
    match closed_form(config)? {
        _ if !config.device.schedule.is_plain() => on::<S, Scheduled>(config),
        true => on::<S, Closed>(config),
        false => on::<S, Events>(config),
    }
}

fn run_scheme<S: Ftl<Page = Lpn>>(job: Job<'_>) -> Result<Record, RunError> {
    let closed = closed_form(job.config)?;
    if !job.config.device.schedule.is_plain() {
        return run_on::<S, Scheduled>(job);
    }
    // Both clocks give the same times. Operations are kept by one, which notes responses in the series as they end.
    if closed && job.besides.operations.is_none() {
        run_on::<S, Closed>(job)
    } else {
        run_on::<S, Events>(job)
    }
}

fn run_on<S: Ftl<Page = Lpn>, C: Clock>(mut job: Job<'_>) -> Result<Record, RunError> {
    let mut session = Session::<S, C>::new(job.config)?;
    flows::check::<S>(&job)?;
    foretell(&mut session, &mut job)?;
    let aged = match job.besides.load.take() {
        Some(bytes) => saved::load(&mut session, &bytes)?,
        None => age(&mut session, &mut job)?,
    };
    if let Some(take) = &mut job.besides.save {
        take(saved::save(&mut session, &aged)?)?;
    }
    if job.besides.operations.is_some() {
        session.record_operations();
    } else if job.besides.rows.is_some() {
        session.record_requests();
    }
    session.put_buffer()?;
    session.put_slc()?;
    let flows = match job.besides.flows.take() {
        Some(flows) => Some(flows::play(&mut session, &mut job, flows)?),
        None => play(&mut session, &mut job).map(|()| None)?,
    };
    session.write_out_at_end();
    session.finish();
    hand_over(&mut session, &mut job, 1)?;
    session.check_laws().map_err(RunError::Law)?;
    if let Some(rows) = job.besides.blocks {
        *rows = blocks::rows(&session.flash);
    }
    let record = Record::of(&session, aged);
    Ok(Record { flows, ..record })
}

/// Tells a scheme that must know it what the whole run will write, its replays for ageing among it.
fn foretell<S: Ftl<Page = Lpn>, C: Clock>(
    session: &mut Session<S, C>,
    job: &mut Job<'_>,
) -> Result<(), RunError> {
    let config = job.config;
    let Err(refusal) = S::live(&options_of::<S>(config)?) else {
        return Ok(());
    };
    let is_unknown = |recipe: &&Recipe| **recipe != Recipe::Replay;
    if let Some(recipe) = config.ageing.iter().find(is_unknown) {
        let text = format!(
            "run.ageing: the writes of \"{recipe}\" are not known in advance, only those of \"replay\"; {}",
            refusal.message
        );
        return Err(Refusal::new("ageing", text).into());
    }
    if job.besides.load.is_some() || job.besides.save.is_some() {
        let text = format!("a saved state belongs to another run; {}", refusal.message);
        return Err(Refusal::new("state", text).into());
    }
    let mut future = Future::new(config.device.logical_pages, config.start);
    let mut mapper = PageMapper::new(&config.device, &config.host);
    for _ in 0..=config.ageing.len() {
        future.pass(job.source, &mut mapper)?;
    }
    session.foretell(future.told());
    Ok(())
}

/// Ages a device as its configuration says, and tells how each step ended.
fn age<S: Ftl<Page = Lpn>, C: Clock>(
    session: &mut Session<S, C>,
    job: &mut Job<'_>,
) -> Result<Vec<Aged>, RunError> {
    if job.besides.save.is_some() {
        // What cannot be saved is told before hours of ageing.
        saved::save(session, &[])?;
    }
    let mut aged = Vec::new();
    for &recipe in &job.config.ageing {
        if recipe == Recipe::Replay {
            let before = session.host.page_writes;
            play(session, job)?;
            job.source.rewind()?;
            aged.push(Aged {
                recipe: recipe.to_string(),
                page_writes: session.host.page_writes - before,
                write_amplification: None,
                settled: None,
                loaded: false,
            });
        } else {
            aged.push(ageing::apply(session, recipe, &mut || {
                (job.progress)(Progress::Ageing)
            }));
        }
        session.reset_counters();
    }
    Ok(aged)
}

fn play<S: Ftl<Page = Lpn>, C: Clock>(
    session: &mut Session<S, C>,
    job: &mut Job<'_>,
) -> Result<(), RunError> {
    let mut played = 0;
    let mut ahead = Ahead::of(session)?;
    while let Some((request, place)) = ahead.next(session, job.source) {
        if let Err(beyond) = session.request(&request) {
            let position = job.source.position(place);
            return Err(RunError::Beyond(beyond_text(
                session, job, &request, &position, beyond,
            )?));
        }
        played += 1;
        if played == PLAYED_EACH {
            (job.progress)(Progress::Played(played));
            played = 0;
            hand_over(session, job, PLAYED_EACH as usize)?;
            check_backlog(session, &job.config.host, || {
                let at_s = request.arrival_ns as f64 / 1e9;
                format!("{}, {at_s:.3} s into the trace", job.source.position(place))
            })?;
        }
    }
    ahead.end()?;
    (job.progress)(Progress::Played(played));
    Ok(())
}

/// A device that does not keep up in an open loop would take all memory in the end.
fn check_backlog<S: Ftl<Page = Lpn>, C: Clock>(
    session: &Session<S, C>,
    host: &Host,
    place: impl Fn() -> String,
) -> Result<(), RunError> {
    let (waiting, most) = (session.in_work(), host.backlog_limit);
    if most == 0 || waiting <= most {
        return Ok(());
    }
    Err(RunError::Beyond(format!(
        "{}: {waiting} requests are in work: the device does not keep up\n  \
         help: a closed loop (host.arrivals = \"closed\", of a flow its queue_depth), a queue (host.queue_depth), a slower replay \
         (host.speed), or a higher host.backlog_limit ({most} now), if there is memory",
        place(),
    )))
}

/// Hands over the rows that are complete, and the operations whose end is known, if they are at least `least`.
fn hand_over<S: Ftl<Page = Lpn>, C: Clock>(
    session: &mut Session<S, C>,
    job: &mut Job<'_>,
    least: usize,
) -> Result<(), TraceError> {
    if let (Some(take), Some(rows)) = (&mut job.besides.rows, session.request_rows())
        && rows.len() >= least
    {
        take(rows)?;
        rows.clear();
    }
    if let (Some(take), Some(operations)) = (&mut job.besides.operations, session.operations())
        && operations.len() >= least
    {
        take(operations)?;
        operations.clear();
    }
    Ok(())
}

/// The message for an address that the device does not have: where, how large the device would have to
/// be, and what else helps.
fn beyond_text<S: Ftl<Page = Lpn>, C: Clock>(
    session: &mut Session<S, C>,
    job: &mut Job<'_>,
    request: &Request,
    position: &str,
    beyond: BeyondEnd,
) -> Result<String, RunError> {
    let pages = session.geometry().logical_pages;
    let page_bytes = u64::from(session.config().device.part.page_bytes);
    match beyond {
        BeyondEnd::Page { last_page } => Ok(format!(
            "{position}: bytes {} to {} touch page {last_page}, but the device has pages 0 to {} of {page_bytes} bytes\n  \
             help: a larger device (logical_pages), or host.beyond = \"wrap\" or \"compact\"",
            request.offset,
            request.end(),
            pages - 1
        )),
        BeyondEnd::TooLong => Ok(format!(
            "{position}: a request of {} bytes is too long",
            request.bytes
        )),
        BeyondEnd::Regions => {
            let region_pages = session.mapper().region_pages();
            let needed = regions_needed(job, region_pages * page_bytes)? * region_pages;
            Ok(format!(
                "{position}: the trace touches more than the device holds: {needed} pages are needed in regions of {region_pages}, \
                 the device has {pages}\n  help: a larger device (logical_pages = {needed} or more), or host.beyond = \"wrap\""
            ))
        }
    }
}

/// Regions that the reads and writes of the whole trace touch.
fn regions_needed(job: &mut Job<'_>, region_bytes: u64) -> Result<u64, RunError> {
    let mut regions = Regions::new(&job.config.host, region_bytes);
    job.source.rewind()?;
    while let Some(request) = job.source.next()? {
        regions.add(&request);
    }
    Ok(regions.count())
}

fn recovery_costs_of<S: Ftl<Page = Lpn>>(config: &RunConfig) -> Result<Vec<RecoveryCost>, Refusal> {
    let geometry = config.device.geometry()?;
    Ok(S::recovery_costs(&geometry, &options_of::<S>(config)?))
}

fn tables_of<S: Ftl<Page = Lpn>>(config: &RunConfig) -> Result<Tables, Refusal> {
    let geometry = config.device.geometry()?;
    Ok(Tables::of(&S::tables(&geometry, &options_of::<S>(config)?)))
}

fn memory_bytes_of<S: Ftl<Page = Lpn>>(config: &RunConfig) -> Result<u64, Refusal> {
    let geometry = config.device.geometry()?;
    config.host.check()?;
    let options = options_of::<S>(config)?;
    // The ledger keeps 8 bytes a block, the session one bit a logical page.
    let fixed =
        8 * u64::from(geometry.blocks()) + u64::from(geometry.logical_pages) / 8 + (4 << 20);
    let wear = match config.device.wear_leveling {
        WearLeveling::Off => 0,
        _ => Levelling::ram_bytes(&geometry),
    };
    let buffer = config.device.buffer.ram_bytes(&geometry) + config.device.slc.ram_bytes(&geometry);
    Ok(S::ram_bytes(&geometry, &options) + fixed + wear + buffer)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Device;
    use crate::part::part;
    use crate::streamed::Streamed;
    use floatgate_core::Start;
    use floatgate_schemes::page::Page;
    use floatgate_trace::{OpenOptions, open_reader};

    /// Plays a trace of page requests on a device of 64 logical pages of 4096 bytes, 8 a block.
    fn play_text(text: &'static str) -> Result<Record, RunError> {
        let mut part = part("mt29f16g08").expect("a preset").clone();
        part.pages_per_block = 8;
        let config = RunConfig {
            device: Device::one_die_a_channel(part, 1, 16, 64),
            start: Start::Full,
            ageing: Vec::new(),
            host: Host::default(),
            scheme: "page".into(),
            options: Vec::new(),
        };
        let mut source = Streamed::new(|| {
            let options = OpenOptions {
                page_bytes: 4096,
                ..OpenOptions::default()
            };
            open_reader("trace", Box::new(text.as_bytes()), &options)
        })?;
        Simulated::of::<Page>().run(&config, &mut source, &mut |_| {})
    }

    /// Requests are read ahead of their play; errors name the request that is at fault all the same, and the
    /// first one at that.
    #[test]
    fn errors_name_the_request_that_failed_though_later_ones_were_read() {
        let beyond = play_text("W 0 1\nW 64 1\nW 1 1\nW 2 1\nnonsense\n").unwrap_err();
        assert!(
            beyond
                .to_string()
                .starts_with("trace, line 2: bytes 262144"),
            "{beyond}"
        );
        let unread = play_text("W 0 1\nW 63 1\nW 1 1\nnonsense\nW 64 1\n").unwrap_err();
        assert!(matches!(unread, RunError::Trace(_)));
        assert!(unread.to_string().contains('4'), "{unread}");
        assert!(play_text("W 0 1\nW 63 1\n").is_ok());
    }
}
