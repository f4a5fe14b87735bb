//! What a record is made of, without the types of scheme and clock: what builds it is compiled once, not once a
//! scheme.

use floatgate_core::options::Options;
use floatgate_core::report::{FlashCounters, HostCounters, SchemeCounters, Table};
use floatgate_core::{Ftl, Lpn};

use crate::clock::{Clock, ScheduleStats};
use crate::config::RunConfig;
use crate::energy::{Energy, energy};
use crate::flash::Fine;
use crate::metrics::Metrics;
use crate::session::{BufferCounters, Session, SlcCounters, options_of};

/// What a settled session holds.
pub(super) struct Sources<'a> {
    pub config: &'a RunConfig,
    /// The scheme's options by name, as text.
    pub options: Vec<(&'static str, String)>,
    pub host: &'a HostCounters,
    pub unwritten_reads: u64,
    pub flash: &'a FlashCounters,
    pub fine: &'a Fine,
    pub scheme: SchemeCounters,
    pub tables: Vec<Table>,
    pub metrics: &'a Metrics,
    pub die_busy_ns: Vec<u64>,
    pub channel_busy_ns: Vec<u64>,
    /// Latest end of any operation.
    pub last_end_ns: u64,
    pub host_pages_by_die: &'a [u64],
    /// Erases of every block.
    pub erase_counts: Vec<u32>,
    /// What came of the schedule, if there is one.
    pub schedule: Option<ScheduleStats>,
    /// What the memory between host and scheme did, if there is any.
    pub buffer: Option<BufferCounters>,
    /// What the cache with one bit a cell did, if there is one.
    pub slc: Option<SlcCounters>,
    /// Swaps and moved pages of wear levelling, if it is on.
    pub levelling: Option<(u64, u64)>,
}

impl<'a> Sources<'a> {
    /// Of a session that has been settled.
    pub fn of<S: Ftl<Page = Lpn>, C: Clock>(session: &'a Session<S, C>) -> Self {
        let flash = &session.flash;
        // The session would not be there if its options were wrong.
        let options = options_of::<S>(session.config()).unwrap_or_default();
        let levelling = flash.wear.as_ref();
        Self {
            config: session.config(),
            options: options.values(),
            host: &session.host,
            unwritten_reads: flash.unwritten_reads,
            flash: &flash.ledger.counters,
            fine: &flash.fine,
            scheme: session.ftl.counters(),
            tables: (session.ftl.tables_held()).unwrap_or_else(|| session.tables.clone()),
            metrics: &session.metrics,
            die_busy_ns: flash.clock.die_busy_ns(),
            channel_busy_ns: flash.clock.channel_busy_ns(),
            last_end_ns: flash.clock.last_end_ns(),
            host_pages_by_die: &flash.host_pages_by_die,
            erase_counts: flash.erase_counts(),
            schedule: flash.clock.schedule_stats(),
            buffer: session.buffer_counters(),
            slc: session.slc_counters(),
            levelling: levelling.map(|of| (of.swaps, of.moved_pages)),
        }
    }

    /// From the first arrival to an instant, ns.
    pub fn since_first_ns(&self, at_ns: u64) -> u64 {
        at_ns.saturating_sub(self.metrics.first_arrival_ns.unwrap_or(0))
    }

    /// From the first arrival to the latest completion, ns.
    pub fn elapsed_ns(&self) -> u64 {
        self.since_first_ns(self.metrics.last_completion_ns)
    }

    pub fn energy(&self) -> Energy {
        energy(
            &self.config.device,
            self.flash,
            self.fine,
            &self.tables,
            self.scheme.dram_accesses.unwrap_or(0),
            self.elapsed_ns(),
        )
    }
}
