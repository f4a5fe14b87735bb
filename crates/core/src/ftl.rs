//! What a scheme is: [`Ftl`] and the types of its calls. How it describes itself is [`Described`].

use alloc::string::String;
use alloc::sync::Arc;
use core::fmt::{Debug, Display, Formatter};
use core::ops::Range;

use crate::address::{LogicalPage, Lpn};
use crate::described::Described;
use crate::flash::{Done, Flash, Preload, Slot};
use crate::geometry::Space;
use crate::refusal::Refusal;
use crate::state::{Passed, StateError, Tape};

/// What a recovery may rely on.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum RecoveryMode {
    /// The OOBs of all pages, and nothing else.
    FullScan,
    /// Whatever the scheme keeps on flash to mount faster: map blocks, summary pages, translation pages, the snapshot
    /// of a clean shutdown. The full scan where these are missing or unreadable.
    #[default]
    Fastest,
}

/// Why a device cannot be formatted or mounted.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum MountError<E> {
    /// Shape and options do not fit together, or the content of the flash does not fit them.
    Refused(Refusal),
    /// The flash failed: another power cut, or a worn-out chip. Another attempt may succeed.
    Flash(E),
}

impl<E> From<Refusal> for MountError<E> {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

impl<E: Debug> Display for MountError<E> {
    fn fmt(&self, f: &mut Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Refused(refusal) => Display::fmt(refusal, f),
            Self::Flash(error) => write!(f, "the flash failed during the mount: {error:?}"),
        }
    }
}

impl<E: Debug> core::error::Error for MountError<E> {}

/// The scheme that a recovery has made, if its tables agree with the flash and keep their budgets. After a power cut they
/// do; on flash that has rotted, or that another program wrote, everything after the mount relies on this check.
///
/// # Errors
/// A refusal that says what does not agree.
pub fn audited<S: Ftl, F: Flash>(scheme: S, flash: &F) -> Result<S, MountError<F::Error>> {
    match scheme.audit(flash) {
        Ok(_) => Ok(scheme),
        Err(found) => Err(Refusal::damaged(found).into()),
    }
}

/// The state in which a device starts.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Start {
    /// Every block erased, no logical page written.
    Empty,
    /// Every logical page written once, in order (the aged device of the papers).
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

/// The pages of one host request that reach one instance of a scheme: a contiguous run of the pages that it numbers, in
/// ascending order. A scheme for all dies numbers them as the device does, one for one die as that die's
/// ([`DieLpn`](crate::address::DieLpn)).
#[derive(Clone, Copy, Debug)]
pub struct Run<P = Lpn> {
    /// First page.
    pub first: P,
    /// Pages of the run, at least 1.
    pub pages: u32,
    /// Pages of the whole host request: LAST and LAST++ decide by it.
    pub request_pages: u32,
    /// Slot of the run's first page in the host request.
    pub first_slot: u32,
    /// Slots from one page of the run to the next: 1, or the number of dies.
    pub slot_step: u32,
}

impl<P: LogicalPage> Run<P> {
    /// A whole request.
    pub fn whole(first: P, pages: u32) -> Self {
        Self {
            first,
            pages,
            request_pages: pages,
            first_slot: 0,
            slot_step: 1,
        }
    }

    /// One page of a request.
    pub fn page_at(page: P, slot: Slot) -> Self {
        Self {
            first_slot: slot.0,
            ..Self::whole(page, 1)
        }
    }

    /// Page `i` of the run and its slot.
    #[inline(always)]
    pub fn page(&self, i: u32) -> (P, Slot) {
        (
            P::from_number(self.first.number() + i),
            Slot(self.first_slot + i * self.slot_step),
        )
    }

    /// The pages in ascending order with their slots.
    pub fn iter(&self) -> impl Iterator<Item = (P, Slot)> + use<P> {
        let run = *self;
        (0..run.pages).map(move |i| run.page(i))
    }
}

/// The time, as passed to the scheme: before every request, once more if the device was idle before it and the scheme
/// [uses that](Ftl::USES_IDLE_TIME), and now and then while idle.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Tick {
    /// The time now: the arrival of the next request, if there is one. Timed work that is due is done now.
    pub now_ns: u64,
    /// The time during which nothing was under way, for background work. `None` if the device was busy.
    pub idle_ns: Option<Range<u64>>,
}

/// A page that the host is going to write.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Coming {
    /// The page.
    pub page: Lpn,
    /// Pages of the whole request.
    pub request_pages: u32,
    /// The stream of the request, if it names one.
    pub stream: Option<u32>,
}

/// A flash translation layer.
///
/// A scheme decides what happens, in which order, and what waits for what; never how long it takes. It keeps its own
/// tables; the flash keeps the state of the pages. All methods that touch flash are generic
/// over it: the simulator compiles to array accesses, the device to real reads and writes.
///
/// A scheme defined for one die is written for one ([`Space::dies`] = 1, [`Ftl::Page`] = [`DieLpn`]) and runs on many as
/// [`Striped<Scheme>`](crate::striped::Striped).
///
/// Errors are those of the flash, unless a method says otherwise.
///
/// [`DieLpn`]: crate::address::DieLpn
#[expect(
    clippy::missing_errors_doc,
    reason = "the errors are those of the flash, as the trait's text says"
)]
pub trait Ftl: Described + Send + 'static {
    /// How it numbers logical pages: [`Lpn`], or [`DieLpn`](crate::address::DieLpn) if it is written for one die.
    type Page: LogicalPage;
    /// Whether [`Ftl::tick`] uses [`Tick::idle_ns`]; if not, idle times need not be computed. Where that is a matter of
    /// the options, [`Described::uses_idle_time`] has the last word.
    const USES_IDLE_TIME: bool = false;

    /// Checks the configuration and makes a fresh device in the start state.
    ///
    /// # Errors
    /// A [`Refusal`], before anything is written, if the device is too small or an option does not fit; an error of the
    /// flash.
    fn format<F: Preload>(
        space: &Space,
        options: &Self::Options,
        start: Start,
        flash: &mut F,
    ) -> Result<Self, MountError<F::Error>>;

    /// Rebuilds the scheme's tables from what a flash holds after a power cut at any point, and restores its budgets.
    /// Everything acknowledged is there; a page of a write that was cut has its old or its new content; a trimmed page
    /// reads as something it once held, or as zeroes. A cut during the recovery itself is like any other. `mode` says
    /// what it may rely on; the result is equally good in both modes.
    ///
    /// On a flash that holds anything else (rotten or forged pages) it returns a scheme whose [`audit`](Ftl::audit)
    /// passes, or refuses ([`Refusal::damaged`]).
    ///
    /// # Errors
    /// The refusal of [`Ftl::format`], one that says what is damaged, or an error of the flash.
    fn recover<F: Flash>(
        space: &Space,
        options: &Self::Options,
        mode: RecoveryMode,
        flash: &mut F,
    ) -> Result<Self, MountError<F::Error>>;

    /// Writes a page from the host's buffer.
    fn write_page<F: Flash>(&mut self, flash: &mut F, page: Self::Page, slot: Slot) -> Done<F>;

    /// Reads a page into the host's buffer.
    fn read_page<F: Flash>(&mut self, flash: &mut F, page: Self::Page, slot: Slot) -> Done<F>;

    /// Drops a page: it reads as zeroes from now on.
    fn trim_page<F: Flash>(&mut self, flash: &mut F, page: Self::Page, slot: Slot) -> Done<F>;

    /// Writes the pages of a run.
    #[inline(always)]
    fn write<F: Flash>(&mut self, flash: &mut F, run: &Run<Self::Page>) -> Done<F> {
        for (page, slot) in run.iter() {
            self.write_page(flash, page, slot)?;
        }
        Ok(())
    }

    /// Reads the pages of a run.
    #[inline(always)]
    fn read<F: Flash>(&mut self, flash: &mut F, run: &Run<Self::Page>) -> Done<F> {
        for (page, slot) in run.iter() {
            self.read_page(flash, page, slot)?;
        }
        Ok(())
    }

    /// Drops the pages of a run.
    #[inline]
    fn trim<F: Flash>(&mut self, flash: &mut F, run: &Run<Self::Page>) -> Done<F> {
        for (page, slot) in run.iter() {
            self.trim_page(flash, page, slot)?;
        }
        Ok(())
    }

    /// The write requests to come belong to that stream, or to none. Called before each of them, if the scheme
    /// [asks for it](Described::uses_streams).
    fn stream(&mut self, stream: Option<u32>) {
        let _ = stream;
    }

    /// Tells the scheme of the whole run, before its first request, if it [needs that](Described::live). The host's page
    /// writes have numbers from 1, those of the start state `full` first; `deaths` has for each number (and for 0, which
    /// means nothing) that of the write that ends it: the next one of the page; if the page is trimmed before, the next
    /// one of any page; `u64::MAX` if neither comes.
    fn foretell(&mut self, deaths: Arc<[u64]>) {
        let _ = deaths;
    }

    /// Tells the scheme which pages the next requests write, in the order of their writes, if it
    /// [looks ahead](Described::looks_ahead). What comes may be unknown or come otherwise: then a page is written that is
    /// not the next of these, and the scheme does without.
    fn ahead(&mut self, writes: &[Coming]) {
        let _ = writes;
    }

    /// A page will be read or written soon: the scheme may prefetch its table entries.
    #[inline(always)]
    fn prefetch(&self, page: Self::Page) {
        let _ = page;
    }

    /// Does timed work that is due, and background work in idle time.
    #[inline(always)]
    fn tick<F: Flash>(&mut self, flash: &mut F, tick: &Tick) -> Done<F> {
        let _ = (flash, tick);
        Ok(())
    }

    /// Clean shutdown: writes what a fast next mount needs.
    fn shutdown<F: Flash>(&mut self, flash: &mut F) -> Done<F> {
        let _ = flash;
        Ok(())
    }

    /// Hands the state of the scheme to a tape that saves or loads it, so that an aged device can be kept. A scheme takes
    /// part by [`state!`](crate::state!) and the one line `self.pass(tape)` here; what is loaded is audited before it runs.
    ///
    /// # Errors
    /// What is wrong with the state that is loaded; by default that the scheme takes no part.
    fn state(&mut self, tape: &mut Tape<'_>) -> Passed {
        let _ = tape;
        Err(StateError::NotSupported)
    }

    /// Checks the tables against the flash and each other; returns the number of live logical pages.
    ///
    /// # Errors
    /// What does not agree.
    fn audit<F: Flash>(&self, flash: &F) -> Result<u64, String>;
}
