//! What a scheme is: [`Ftl`], and the types of its calls.
//!
//! Names, help, option tables and documentation come from the trait's constants and from the option declaration.

use crate::address::Lpn;
use crate::flash::{Flash, Slot};
use crate::geometry::{Geometry, Space};
use crate::options::Options;
pub use crate::refusal::Refusal;
use crate::report::{Observation, SchemeCounters, Table};

/// What a recovery may rely on.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Means {
    /// The OOBs of all pages, and nothing else.
    FullScan,
    /// Whatever the scheme keeps on flash to be faster: map blocks, summary pages, translation pages, the snapshot
    /// of a clean shutdown. The full scan where there is nothing, or where it cannot be read.
    #[default]
    Fastest,
}

/// What one way of bringing a device back takes at most: operations of the whole device, spread evenly over its
/// dies. The merges that end what the cut interrupted are not among them: a few blocks at most, and none after a cut
/// between two requests, unless trims left holes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RecoveryCost {
    /// What it relies on, for people: "full scan", "map blocks", "snapshot".
    pub means: &'static str,
    /// Whether it needs a clean shutdown.
    pub is_after_shutdown: bool,
    /// OOBs read.
    pub oob_reads: u64,
    /// Whole pages read: mapping pages, summaries, snapshots.
    pub page_reads: u64,
    /// Entries read from phase-change memory.
    pub pcm_reads: u64,
    /// Pages programmed before the first request of the host.
    pub programs: u64,
    /// Blocks erased before the first request of the host.
    pub erases: u64,
}

impl RecoveryCost {
    /// The OOBs of so many pages, and nothing else.
    pub fn scan(means: &'static str, oob_reads: u64) -> Self {
        Self {
            means,
            is_after_shutdown: false,
            oob_reads,
            page_reads: 0,
            pcm_reads: 0,
            programs: 0,
            erases: 0,
        }
    }
}

/// Why a device cannot be brought back after a power cut.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum NoRecovery<E> {
    /// The configuration does not fit, as [`Ftl::format`] would say.
    Refused(Refusal),
    /// The flash failed: another power cut, or a chip that is worn out. It may be tried again.
    Flash(E),
}

impl<E> From<Refusal> for NoRecovery<E> {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

/// A scheme that a recovery has made, if its tables agree with the flash and keep their budgets. After a power cut they
/// do; on a flash that has rotted, or that somebody has written himself, everything that follows rests on it.
///
/// # Errors
/// A refusal that says what does not agree.
pub fn sound<S: Ftl, F: Flash>(scheme: S, flash: &F) -> Result<S, NoRecovery<F::Error>> {
    match scheme.audit(flash) {
        Ok(_) => Ok(scheme),
        Err(found) => Err(Refusal::damaged(found).into()),
    }
}

impl<E: std::fmt::Debug> std::fmt::Display for NoRecovery<E> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Refused(refusal) => refusal.fmt(f),
            Self::Flash(error) => write!(f, "the flash failed during recovery: {error:?}"),
        }
    }
}

impl<E: std::fmt::Debug> std::error::Error for NoRecovery<E> {}

/// The state in which a device begins.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Start {
    /// Every block erased, no logical page written.
    Empty,
    /// Every logical page written once, in order (the papers' aged device).
    #[default]
    Full,
}

impl Start {
    /// The name used in configurations.
    pub fn name(self) -> &'static str {
        match self {
            Self::Empty => "empty",
            Self::Full => "full",
        }
    }

    /// The start state of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::Empty, Self::Full]
            .into_iter()
            .find(|start| start.name() == name)
    }
}

/// The pages of one host request that reach one instance of a scheme: a contiguous run of its local
/// pages, in ascending order.
#[derive(Clone, Copy, Debug)]
pub struct Run {
    /// First page, in the instance's own numbering.
    pub first: Lpn,
    /// Pages of the run, at least 1.
    pub pages: u32,
    /// Pages of the whole host request: what LAST and LAST++ judge by.
    pub request_pages: u32,
    /// Slot of the run's first page in the host request.
    pub first_slot: u32,
    /// Slots from one page of the run to the next: 1, or the number of dies.
    pub slot_step: u32,
}

impl Run {
    /// A whole request.
    pub fn whole(first: Lpn, pages: u32) -> Self {
        Self {
            first,
            pages,
            request_pages: pages,
            first_slot: 0,
            slot_step: 1,
        }
    }

    /// Page `i` of the run and its slot.
    #[inline(always)]
    pub fn page(&self, i: u32) -> (Lpn, Slot) {
        (
            Lpn(self.first.0 + i),
            Slot(self.first_slot + i * self.slot_step),
        )
    }

    /// The pages in ascending order with their slots.
    pub fn iter(&self) -> impl Iterator<Item = (Lpn, Slot)> + use<> {
        let run = *self;
        (0..run.pages).map(move |i| run.page(i))
    }
}

/// Times of the flash part below a scheme, for options whose default follows from them.
#[derive(Clone, Copy, Debug)]
pub struct PartTimes {
    /// Cell time of a page read.
    pub t_r_ns: u64,
    /// Cell time of a page program.
    pub t_prog_ns: u64,
    /// Cell time of a block erase.
    pub t_bers_ns: u64,
}

/// A flash translation layer.
///
/// A scheme decides what happens, in which order, and what waits for what; never how long it takes. Its
/// state is its own tables; the state of the pages is the flash's. All methods that touch flash are generic
/// over it: the simulator compiles to array accesses, the device to real reads and writes.
///
/// A scheme defined for one die is written for one ([`Space::dies`] = 1) and registered as
/// [`Striped<Scheme>`](crate::striped::Striped).
pub trait Ftl: Sized + Send + 'static {
    /// Name on the command line and in files.
    const KEY: &'static str;
    /// Name for people.
    const TITLE: &'static str;
    /// One sentence: what it is.
    const SUMMARY: &'static str;
    /// The paper or patent it comes from.
    const SOURCE: &'static str;
    /// Whether [`Ftl::idle`] does anything; if not, nobody works out the idle times.
    const USES_IDLE_TIME: bool = false;
    /// Its options.
    type Options: Options;

    /// Gives options that nobody has set the default that follows from the part.
    fn fit_to_part(options: &mut Self::Options, times: PartTimes) {
        let _ = (options, times);
    }

    /// Bytes of this program's memory that a device of that shape needs for the scheme's tables.
    fn ram_bytes(geometry: &Geometry, options: &Self::Options) -> u64;

    /// The tables of the whole device as the papers count them.
    fn tables(geometry: &Geometry, options: &Self::Options) -> Vec<Table>;

    /// Checks the configuration and makes a fresh device in the start state.
    ///
    /// # Errors
    /// A [`Refusal`] before anything was written, if the device is too small or an option does not fit.
    fn format<F: Flash>(
        space: &Space,
        options: &Self::Options,
        start: Start,
        flash: &mut F,
    ) -> Result<Self, Refusal>;

    /// Makes the scheme's tables again from what a flash holds after a power cut at any point, and brings the
    /// device back to its budgets. Everything acknowledged is there; a page of a write that was cut has its
    /// old or its new content; a trimmed page reads as something it once held, or as zeroes. A cut during the
    /// recovery itself is as good as any other. `means` says what it may rely on; the result is as good with either.
    ///
    /// On a flash that holds anything else (rotten pages, forged ones) it gives a scheme whose [`audit`](Ftl::audit)
    /// passes, or refuses ([`Refusal::damaged`]).
    ///
    /// # Errors
    /// The refusal of [`Ftl::format`], one that says what is damaged, or an error of the flash.
    fn recover<F: Flash>(
        space: &Space,
        options: &Self::Options,
        means: Means,
        flash: &mut F,
    ) -> Result<Self, NoRecovery<F::Error>>;

    /// What bringing the device back takes, for each of the means the scheme has, the full scan first. The state is
    /// the one that takes most: every block programmed to its end.
    fn recovery_costs(geometry: &Geometry, options: &Self::Options) -> Vec<RecoveryCost> {
        let _ = options;
        vec![RecoveryCost::scan("full scan", geometry.pages().into())]
    }

    /// Writes the pages of a run.
    ///
    /// # Errors
    /// Those of the flash.
    fn write<F: Flash>(&mut self, flash: &mut F, run: &Run) -> Result<(), F::Error>;

    /// Reads the pages of a run into the host's buffer.
    ///
    /// # Errors
    /// Those of the flash.
    fn read<F: Flash>(&mut self, flash: &mut F, run: &Run) -> Result<(), F::Error>;

    /// Drops the pages of a run: they read as zeroes from now on.
    ///
    /// # Errors
    /// Those of the flash.
    fn trim<F: Flash>(&mut self, flash: &mut F, run: &Run) -> Result<(), F::Error>;

    /// A page (in the device's numbering) will be asked for soon: a scheme may fetch its tables' entries ahead of time.
    #[inline(always)]
    fn prefetch(&self, lpn: Lpn) {
        let _ = lpn;
    }

    /// The host is idle from `start_ns` to `end_ns`; the scheme may do background work.
    ///
    /// # Errors
    /// Those of the flash.
    fn idle<F: Flash>(
        &mut self,
        flash: &mut F,
        start_ns: u64,
        end_ns: u64,
    ) -> Result<(), F::Error> {
        let _ = (flash, start_ns, end_ns);
        Ok(())
    }

    /// A request arrives at that time: timed work that is due comes before it.
    ///
    /// # Errors
    /// Those of the flash.
    fn arrival<F: Flash>(&mut self, flash: &mut F, arrival_ns: u64) -> Result<(), F::Error> {
        let _ = (flash, arrival_ns);
        Ok(())
    }

    /// Clean shutdown: writes what a quick next start needs.
    ///
    /// # Errors
    /// Those of the flash.
    fn shutdown<F: Flash>(&mut self, flash: &mut F) -> Result<(), F::Error> {
        let _ = flash;
        Ok(())
    }

    /// Counters of the scheme's own.
    fn counters(&self) -> SchemeCounters;

    /// Sets the counters to zero and timers to their start, and keeps the tables (end of a warm-up).
    fn reset_counters(&mut self);

    /// Momentary values for a time series.
    fn observe(&self, seen: &mut Observation) {
        let _ = seen;
    }

    /// Checks the tables against the flash and each other; returns the number of live logical pages.
    ///
    /// # Errors
    /// What does not agree.
    fn audit<F: Flash>(&self, flash: &F) -> Result<u64, String>;
}
