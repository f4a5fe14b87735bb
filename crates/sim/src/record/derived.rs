//! Figures made of the counters (docs/spec/metrics.md sections 1 to 3).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::ratio;
use super::sources::Sources;

/// Figures made of the counters. A quotient with nothing below the line is `null`. Times here are operations times
/// their cell times (tR, tPROG, tBERS of the part), whatever went on at the same time.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Derived {
    /// Pages programmed for one that the host writes, all causes.
    pub write_amplification: Option<f64>,
    /// Page reads, programs and erases, all causes (LAST++ Fig. 15).
    pub io_operations: u64,
    /// The same without the host's reads.
    pub io_operations_write: u64,
    /// Valid pages moved: programs of cause `gc`.
    pub copies: u64,
    /// Erases, all causes.
    pub erases: u64,
    /// Share of page reads and programs that is for mapping information.
    pub map_overhead: Option<f64>,
    /// Logical blocks that a full merge rebuilds, mean.
    pub association: Option<f64>,
    /// The same with dead victims among the merges (LAST++ Table V).
    pub association_with_dead: Option<f64>,
    /// Share of the pages of reclaimed log blocks that host data had been programmed in.
    pub log_block_utilisation: Option<f64>,
    /// Time of copies and erases of user data, us (LAST Fig. 8).
    pub gc_overhead_us: f64,
    /// Time of host programs, copies and erases, us (FASTer Figs. 6 and 8).
    pub elapsed_counted_us: f64,
    /// The same with the reads and programs of mapping information, us.
    pub elapsed_counted_with_map_us: f64,
}

impl Derived {
    pub(super) fn of(from: &Sources<'_>) -> Self {
        let (c, merges) = (from.flash, &from.scheme.merges);
        let part = &from.config.device.part;
        let (programs, host_writes) = (c.programs.sum() as f64, from.host.page_writes as f64);
        let (reads, erases) = (c.reads.sum(), c.erases.sum());
        let us = |ns: u64| ns as f64 / 1000.0;
        let copy_us = us(part.t_r_ns + part.program_ns_of_page());
        let log_pages = merges.log_reclaimed as f64 * f64::from(part.pages_per_block);
        let oob_us = (c.oob_reads.map as f64) * us(part.t_r_oob_ns);
        let map_us = c.programs.map as f64 * us(part.program_ns_of_page())
            + c.reads.map as f64 * us(part.t_r_ns)
            + oob_us;
        let counted = c.programs.host as f64 * us(part.program_ns_of_page())
            + c.programs.gc as f64 * copy_us
            + erases as f64 * us(part.t_bers_ns);
        let associated = merges.full_merge_associated as f64;
        Self {
            write_amplification: ratio(programs + from.fine.one_bit.programs as f64, host_writes),
            io_operations: reads + c.programs.sum() + erases,
            io_operations_write: c.reads.gc + c.reads.map + c.programs.sum() + erases,
            copies: c.programs.gc,
            erases,
            map_overhead: ratio(
                (c.reads.map + c.programs.map) as f64,
                reads as f64 + programs,
            ),
            association: ratio(associated, merges.full as f64),
            association_with_dead: ratio(associated, (merges.full + merges.dead) as f64),
            log_block_utilisation: ratio(merges.log_pages_used as f64, log_pages),
            gc_overhead_us: c.programs.gc as f64 * copy_us
                + c.erases.gc as f64 * us(part.t_bers_ns),
            elapsed_counted_us: counted,
            elapsed_counted_with_map_us: counted + map_us,
        }
    }
}
