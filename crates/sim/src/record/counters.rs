//! What conformance compares: pages of the host, operations of the flash by cause, merges (docs/spec/metrics.md sections 1
//! and 2).

use floatgate_core::report::{ByCause, FlashCounters, HostCounters, Merges, Named, SchemeCounters};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::sources::Sources;
use super::{Own, own, own_beside};

/// What was counted, in the shape of the conformance vectors.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Counters {
    /// Pages of the host's requests.
    pub host: HostPages,
    /// Operations of the flash, each under its cause.
    pub flash: FlashOperations,
    /// Merges by kind.
    pub merges: MergeCounts,
    /// The scheme's own counters, as the scheme's page names them; left out if it has none.
    #[serde(default, skip_serializing_if = "Own::is_empty")]
    pub extra: Own<u64>,
}

impl Counters {
    pub(super) fn of(from: &Sources<'_>) -> Self {
        Self::counted(from.host, from.unwritten_reads, from.flash, &from.scheme)
    }

    /// Counters of host, flash and scheme; `unwritten_reads`: pages read that were not live.
    pub fn counted(
        host: &HostCounters,
        unwritten_reads: u64,
        flash: &FlashCounters,
        scheme: &SchemeCounters,
    ) -> Self {
        Self {
            host: HostPages {
                page_reads: host.page_reads,
                page_writes: host.page_writes,
                page_trims: host.page_trims,
                unwritten_reads,
            },
            flash: FlashOperations::of(flash),
            merges: MergeCounts::of(&scheme.merges, &scheme.own_merges),
            extra: own(scheme.extra.iter().map(|extra| (extra.name, extra.value))),
        }
    }
}

/// Pages of the host's requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HostPages {
    /// Pages of read requests.
    pub page_reads: u64,
    /// Pages of write requests.
    pub page_writes: u64,
    /// Pages of trim requests.
    pub page_trims: u64,
    /// Of `page_reads`: pages that were not live, and are not read from the flash.
    pub unwritten_reads: u64,
}

/// Every operation of the flash, counted once, under its cause.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FlashOperations {
    /// Page reads.
    pub reads: Causes,
    /// Page programs.
    pub programs: Causes,
    /// Reads of an OOB (spare area) alone.
    pub oob_reads: Causes,
    /// Block erases.
    pub erases: EraseCauses,
}

impl FlashOperations {
    fn of(flash: &FlashCounters) -> Self {
        let FlashCounters {
            reads,
            programs,
            oob_reads,
            erases,
            // Accesses to another memory: in `stats`.
            pcm_reads: _,
            pcm_writes: _,
        } = flash;
        Self {
            reads: Causes::of(reads),
            programs: Causes::of(programs),
            oob_reads: Causes::of(oob_reads),
            erases: EraseCauses {
                gc: erases.gc,
                map: erases.map,
            },
        }
    }
}

/// Operations by cause.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Causes {
    /// For host data.
    pub host: u64,
    /// For moves of valid pages.
    pub gc: u64,
    /// For mapping information.
    pub map: u64,
}

impl Causes {
    fn of(causes: &ByCause) -> Self {
        let ByCause { host, gc, map } = *causes;
        Self { host, gc, map }
    }

    /// All causes together.
    pub fn sum(&self) -> u64 {
        self.host.saturating_add(self.gc).saturating_add(self.map)
    }
}

/// Block erases by what the block held.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct EraseCauses {
    /// User data.
    pub gc: u64,
    /// Mapping information.
    pub map: u64,
}

impl EraseCauses {
    /// Both together.
    pub fn sum(&self) -> u64 {
        self.gc.saturating_add(self.map)
    }
}

/// Merges of log blocks with data blocks, by kind (docs/spec/merges.md).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MergeCounts {
    /// Log block became the data block, nothing copied.
    pub switch: u64,
    /// Log block became the data block after copying the rest.
    pub partial: u64,
    /// Logical blocks rebuilt in fresh blocks.
    pub full: u64,
    /// Victim without a valid page: erased.
    pub dead: u64,
    /// Sum over full merges of the logical blocks that each rebuilt: no kind.
    pub full_merge_associated: u64,
    /// Kinds of the scheme's own (blog's `reduced`).
    #[serde(flatten)]
    pub own: Own<u64>,
}

impl MergeCounts {
    fn of(merges: &Merges, own_merges: &[Named<u64>]) -> Self {
        let mut counts = Self {
            switch: merges.switch,
            partial: merges.partial,
            full: merges.full,
            dead: merges.dead,
            full_merge_associated: merges.full_merge_associated,
            own: Own::new(),
        };
        let own = own_merges.iter().map(|own| (own.name, own.value));
        counts.own = own_beside(&counts, own);
        counts
    }

    /// All kinds with their names, the scheme's own last.
    pub fn kinds(&self) -> impl Iterator<Item = (&str, u64)> {
        let common = [
            ("switch", self.switch),
            ("partial", self.partial),
            ("full", self.full),
            ("dead", self.dead),
        ];
        let own = self.own.iter().map(|(kind, &count)| (kind.as_str(), count));
        common.into_iter().chain(own)
    }
}
