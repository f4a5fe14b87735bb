//! Counters beyond those that conformance compares.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::sources::Sources;
use super::{Own, own_beside};

/// Counters beyond those that conformance compares; the copies and erases of all kinds add up to the copies, and to
/// the erases of user data (docs/spec/metrics.md section 1).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Stats {
    /// Page reads of old content for partly written pages.
    pub partial_write_reads: u64,
    /// Flush requests.
    pub flushes: u64,
    /// Parts beyond the first of requests that were cut at the end of a region or of the device.
    pub cuts: u64,
    /// Copies inside partial merges.
    pub copies_partial: u64,
    /// Copies inside full merges.
    pub copies_full: u64,
    /// All other copies.
    pub copies_other: u64,
    /// Erases inside switch merges.
    pub erases_switch: u64,
    /// Erases inside partial merges.
    pub erases_partial: u64,
    /// Erases inside full merges.
    pub erases_full: u64,
    /// Erases of dead victims.
    pub erases_dead: u64,
    /// All other erases of user data.
    pub erases_other: u64,
    /// Log blocks that stopped being log blocks.
    pub log_reclaimed: u64,
    /// Host pages programmed in those by then.
    pub log_pages_used: u64,
    /// Never-programmed pages of data blocks at their erase (BLogFTL Table 8).
    pub wasted_data_pages: u64,
    /// The same for log blocks.
    pub wasted_log_pages: u64,
    /// Full merges by the number of logical blocks rebuilt, which is the index (FASTer Fig. 4).
    pub association_histogram: Vec<u64>,
    /// Map entries read from phase-change memory.
    pub pcm_reads: u64,
    /// Map entries written to phase-change memory.
    pub pcm_writes: u64,
    /// Copies that stayed inside the die.
    pub copybacks: u64,
    /// Times that a page was read again because its block is worn (docs/chips.md).
    #[serde(default)]
    pub read_retries: u64,
    /// Accesses to tables in a DRAM chip; left out if the scheme has none there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dram_accesses: Option<f64>,
    /// The scheme's own; `null` where there is no value.
    #[serde(flatten)]
    pub own: Own<Option<f64>>,
}

impl Stats {
    pub(super) fn of(from: &Sources<'_>) -> Self {
        let (m, c) = (&from.scheme.merges, from.flash);
        let mut stats = Self {
            partial_write_reads: from.metrics.partial_write_reads,
            flushes: from.metrics.flushes.count,
            cuts: from.metrics.cuts,
            copies_partial: m.copies_partial,
            copies_full: m.copies_full,
            copies_other: c.programs.gc - m.copies_partial - m.copies_full,
            erases_switch: m.erases_switch,
            erases_partial: m.erases_partial,
            erases_full: m.erases_full,
            erases_dead: m.erases_dead,
            erases_other: c.erases.gc
                - m.erases_switch
                - m.erases_partial
                - m.erases_full
                - m.erases_dead,
            log_reclaimed: m.log_reclaimed,
            log_pages_used: m.log_pages_used,
            wasted_data_pages: m.wasted_data_pages,
            wasted_log_pages: m.wasted_log_pages,
            association_histogram: m.association.clone(),
            pcm_reads: c.pcm_reads,
            pcm_writes: c.pcm_writes,
            copybacks: from.fine.copybacks,
            read_retries: from.fine.read_retries,
            dram_accesses: from.scheme.dram_accesses.map(|n| n as f64),
            own: Own::new(),
        };
        let own = from.scheme.stats.iter();
        let own = own.map(|stat| (stat.name, Some(stat.value).filter(|x| x.is_finite())));
        stats.own = own_beside(&stats, own);
        stats
    }
}
