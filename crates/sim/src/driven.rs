//! A device under any scheme, driven page by page without a trace: for benchmarks.

use floatgate_core::{Ftl, Lpn};

use crate::clock::Clock;
use crate::host::Kind;
use crate::session::{READ_AHEAD, Session};

/// Between two arrivals: apart enough that no queue grows under one page a request.
const GAP_NS: u64 = 10_000_000;

/// A request of whole pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ask {
    /// What it asks.
    pub kind: Kind,
    /// First page.
    pub first: Lpn,
    /// Pages.
    pub pages: u32,
}

/// What a device has done so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Done {
    /// Pages that the host wrote and read.
    pub host_pages: u64,
    /// Reads, programs, spare area reads and erases of the flash.
    pub flash_operations: u64,
    /// Pages programmed, all causes.
    pub programs: u64,
    /// Pages that the host wrote.
    pub host_writes: u64,
}

impl std::ops::Sub for Done {
    type Output = Self;

    fn sub(self, before: Self) -> Self {
        Self {
            host_pages: self.host_pages - before.host_pages,
            flash_operations: self.flash_operations - before.flash_operations,
            programs: self.programs - before.programs,
            host_writes: self.host_writes - before.host_writes,
        }
    }
}

impl std::ops::AddAssign for Done {
    fn add_assign(&mut self, more: Self) {
        self.host_pages += more.host_pages;
        self.flash_operations += more.flash_operations;
        self.programs += more.programs;
        self.host_writes += more.host_writes;
    }
}

/// A device with a scheme, whichever it is. `Simulated::drive` makes one.
pub trait Driven {
    /// Plays requests one after the other, with full timing and metrics.
    fn play(&mut self, asks: &[Ask]);

    /// What has been done since the start.
    fn done(&self) -> Done;

    /// Checks the conservation laws after everything under way has ended.
    ///
    /// # Errors
    /// The law that does not hold: a bug.
    fn check(&mut self) -> Result<(), String>;
}

pub(crate) struct Device<S: Ftl<Page = Lpn>, C: Clock> {
    session: Session<S, C>,
    at_ns: u64,
}

impl<S: Ftl<Page = Lpn>, C: Clock> Device<S, C> {
    pub(crate) fn new(session: Session<S, C>) -> Self {
        Self { session, at_ns: 0 }
    }
}

impl<S: Ftl<Page = Lpn>, C: Clock> Driven for Device<S, C> {
    fn play(&mut self, asks: &[Ask]) {
        for ask in asks.iter().take(READ_AHEAD) {
            self.session.prefetch_page(ask.first);
        }
        for (i, ask) in asks.iter().enumerate() {
            if let Some(later) = asks.get(i + READ_AHEAD) {
                self.session.prefetch_page(later.first);
            }
            self.at_ns += GAP_NS;
            self.session
                .page_request(ask.kind, ask.first, ask.pages, self.at_ns);
        }
    }

    fn done(&self) -> Done {
        let flash = &self.session.flash.ledger.counters;
        let host = &self.session.host;
        Done {
            host_pages: host.page_reads + host.page_writes,
            flash_operations: flash.reads.sum()
                + flash.programs.sum()
                + flash.oob_reads.sum()
                + flash.erases.sum(),
            programs: flash.programs.sum(),
            host_writes: host.page_writes,
        }
    }

    fn check(&mut self) -> Result<(), String> {
        self.session.finish();
        self.session.check_laws()
    }
}
