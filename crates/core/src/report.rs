//! What a run reports: counters of the host, the flash, the merges; a scheme's own; memory tables.

use alloc::vec::Vec;

/// Why an operation happened; it is counted under this.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Cause {
    /// Data of the host.
    Host = 0,
    /// Moves of pages that are still valid: merges, garbage collection, second chances, folds.
    Gc = 1,
    /// Pages that hold mapping information.
    Map = 2,
}

/// Operations by cause.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ByCause {
    /// For host data.
    pub host: u64,
    /// For moves of valid pages.
    pub gc: u64,
    /// For mapping information.
    pub map: u64,
}

crate::state!(ByCause { host, gc, map });

impl ByCause {
    /// The count of one cause.
    #[inline(always)]
    pub fn of(&mut self, cause: Cause) -> &mut u64 {
        match cause {
            Cause::Host => &mut self.host,
            Cause::Gc => &mut self.gc,
            Cause::Map => &mut self.map,
        }
    }

    /// All causes together.
    pub fn sum(&self) -> u64 {
        self.host + self.gc + self.map
    }
}

/// Every flash operation, counted once, under its cause.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct FlashCounters {
    /// Page reads.
    pub reads: ByCause,
    /// Page programs.
    pub programs: ByCause,
    /// Reads of an OOB alone.
    pub oob_reads: ByCause,
    /// Block erases: `gc` (blocks that held user data) and `map`.
    pub erases: ByCause,
    /// Phase-change memory: entries read.
    pub pcm_reads: u64,
    /// Phase-change memory: entries written.
    pub pcm_writes: u64,
}

crate::state!(FlashCounters {
    reads,
    programs,
    oob_reads,
    erases,
    pcm_reads,
    pcm_writes,
});

/// Pages of the host's requests.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct HostCounters {
    /// Pages of read requests.
    pub page_reads: u64,
    /// Pages of write requests.
    pub page_writes: u64,
    /// Pages of trim requests.
    pub page_trims: u64,
    /// Read pages that were not live.
    pub unwritten_reads: u64,
}

/// Merges by kind and what they cost (merges of a log block with data blocks).
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Merges {
    /// Log block became the data block, nothing copied.
    pub switch: u64,
    /// Log block became the data block after copying the rest.
    pub partial: u64,
    /// Logical blocks rebuilt in fresh blocks.
    pub full: u64,
    /// Victim without a valid page: erased.
    pub dead: u64,
    /// Sum over full merges of the logical blocks each rebuilt.
    pub full_merge_associated: u64,
    /// Copies made inside partial merges.
    pub copies_partial: u64,
    /// Copies made inside full merges.
    pub copies_full: u64,
    /// Erases inside switch merges.
    pub erases_switch: u64,
    /// Erases inside partial merges.
    pub erases_partial: u64,
    /// Erases inside full merges.
    pub erases_full: u64,
    /// Erases of dead victims.
    pub erases_dead: u64,
    /// Full merges by number of rebuilt logical blocks (index).
    pub association: Vec<u64>,
    /// Log blocks reclaimed.
    pub log_reclaimed: u64,
    /// Host pages that had been programmed in them.
    pub log_pages_used: u64,
    /// Pages of data blocks that were never programmed before the erase.
    pub wasted_data_pages: u64,
    /// The same for log blocks.
    pub wasted_log_pages: u64,
}

crate::state!(Merges {
    switch, partial, full, dead, full_merge_associated, copies_partial, copies_full, erases_switch, erases_partial,
    erases_full, erases_dead, log_reclaimed, log_pages_used, wasted_data_pages, wasted_log_pages,
} grows { association });

impl Merges {
    /// Counts a full merge that rebuilds `logical_blocks`.
    pub fn count_full(&mut self, logical_blocks: usize) {
        self.full += 1;
        self.full_merge_associated += logical_blocks as u64;
        if self.association.len() <= logical_blocks {
            self.association.resize(logical_blocks + 1, 0);
        }
        self.association[logical_blocks] += 1;
    }

    /// Share of the pages of reclaimed log blocks that host data had been programmed in, 0 before the
    /// first is reclaimed.
    pub fn log_block_utilisation(&self, pages_per_block: u32) -> f64 {
        let pages = self.log_reclaimed * u64::from(pages_per_block);
        self.log_pages_used as f64 / pages.max(1) as f64
    }

    /// Adds the sums behind ratios over time (association, log block utilisation), so that the ratios can be formed for
    /// the whole device.
    pub fn observe(&self, seen: &mut Observation) {
        seen.sum("full_merges", self.full as f64);
        seen.sum("full_merge_associated", self.full_merge_associated as f64);
        seen.sum("log_reclaimed", self.log_reclaimed as f64);
        seen.sum("log_pages_used", self.log_pages_used as f64);
    }

    /// Adds another instance's merges.
    pub fn add(&mut self, other: &Merges) {
        let Merges {
            switch,
            partial,
            full,
            dead,
            full_merge_associated,
            copies_partial,
            copies_full,
            erases_switch,
            erases_partial,
            erases_full,
            erases_dead,
            association,
            log_reclaimed,
            log_pages_used,
            wasted_data_pages,
            wasted_log_pages,
        } = other;
        self.switch += switch;
        self.partial += partial;
        self.full += full;
        self.dead += dead;
        self.full_merge_associated += full_merge_associated;
        self.copies_partial += copies_partial;
        self.copies_full += copies_full;
        self.erases_switch += erases_switch;
        self.erases_partial += erases_partial;
        self.erases_full += erases_full;
        self.erases_dead += erases_dead;
        self.log_reclaimed += log_reclaimed;
        self.log_pages_used += log_pages_used;
        self.wasted_data_pages += wasted_data_pages;
        self.wasted_log_pages += wasted_log_pages;
        if self.association.len() < association.len() {
            self.association.resize(association.len(), 0);
        }
        for (mine, theirs) in self.association.iter_mut().zip(association) {
            *mine += theirs;
        }
    }
}

/// How the numbers of several instances combine into one for the device.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Combine {
    /// Added.
    Sum,
    /// The largest.
    Max,
    /// The mean of the instances.
    Mean,
}

/// A named number.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Named<T> {
    /// Its name in the output.
    pub name: &'static str,
    /// The number.
    pub value: T,
    /// How instances combine.
    pub combine: Combine,
}

/// Pages of the host that passed through a write buffer of the scheme: without them the flash has other numbers than the
/// host.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Buffered {
    /// Pages that the host wrote to the buffer.
    pub writes: u64,
    /// Pages programmed out of it.
    pub programs: u64,
    /// Pages that the host read from it.
    pub reads: u64,
}

/// Counters of a scheme beyond those of flash and host.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct SchemeCounters {
    /// What passed through its write buffer, for the conservation laws.
    pub buffered: Buffered,
    /// Merges of the common kinds.
    pub merges: Merges,
    /// The scheme's own merge kinds, in the order of its page in docs/spec (blog's `reduced`).
    pub own_merges: Vec<Named<u64>>,
    /// The `extra` counters that the scheme's page in docs/spec names: compared by conformance.
    pub extra: Vec<Named<u64>>,
    /// Further statistics, not compared.
    pub stats: Vec<Named<f64>>,
    /// Accesses to tables in a DRAM chip: the energy counts them. 0 for a scheme without a table there.
    pub dram_accesses: Option<u64>,
}

impl SchemeCounters {
    /// Counters with these merges and nothing else yet.
    pub fn of(merges: &Merges) -> Self {
        Self {
            merges: merges.clone(),
            ..Self::default()
        }
    }

    /// Adds an `extra` counter that instances sum up.
    pub fn extra(&mut self, name: &'static str, value: u64) {
        self.extra.push(Named {
            name,
            value,
            combine: Combine::Sum,
        });
    }

    /// Adds an `extra` counter that is the maximum over the instances.
    pub fn extra_max(&mut self, name: &'static str, value: u64) {
        self.extra.push(Named {
            name,
            value,
            combine: Combine::Max,
        });
    }

    /// Adds a statistic.
    pub fn stat(&mut self, name: &'static str, value: f64, combine: Combine) {
        self.stats.push(Named {
            name,
            value,
            combine,
        });
    }

    /// Adds numbers that instances sum up as statistics.
    pub fn stat_sums(&mut self, sums: impl IntoIterator<Item = (&'static str, u64)>) {
        for (name, value) in sums {
            self.stat(name, value as f64, Combine::Sum);
        }
    }

    /// Adds the momentary values of the scheme as statistics.
    pub fn stats_of(&mut self, observe: impl FnOnce(&mut Observation)) {
        let mut seen = Observation::default();
        observe(&mut seen);
        self.stats.extend(seen.values);
    }

    /// Adds the counters of another instance of the same scheme.
    pub fn add(&mut self, other: &SchemeCounters, instances_so_far: u32) {
        self.merges.add(&other.merges);
        self.buffered.writes += other.buffered.writes;
        self.buffered.programs += other.buffered.programs;
        self.buffered.reads += other.buffered.reads;
        for (mine, theirs) in [
            (&mut self.own_merges, &other.own_merges),
            (&mut self.extra, &other.extra),
        ] {
            for (a, b) in mine.iter_mut().zip(theirs) {
                a.value = match a.combine {
                    Combine::Sum | Combine::Mean => a.value + b.value,
                    Combine::Max => a.value.max(b.value),
                };
            }
        }
        combine_all(&mut self.stats, &other.stats, instances_so_far);
        if let Some(more) = other.dram_accesses {
            *self.dram_accesses.get_or_insert(0) += more;
        }
    }
}

/// Combines the numbers of one more instance into those of `instances_so_far`.
pub fn combine_all(mine: &mut [Named<f64>], theirs: &[Named<f64>], instances_so_far: u32) {
    let n = f64::from(instances_so_far);
    for (a, b) in mine.iter_mut().zip(theirs) {
        a.value = match a.combine {
            Combine::Sum => a.value + b.value,
            Combine::Max => a.value.max(b.value),
            Combine::Mean => (a.value * n + b.value) / (n + 1.0),
        };
    }
}

/// Momentary values of a scheme for a time series (sizes of partitions, thresholds).
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Observation {
    /// The values, always the same names in the same order.
    pub values: Vec<Named<f64>>,
}

impl Observation {
    /// Adds a value that instances sum up.
    pub fn sum(&mut self, name: &'static str, value: f64) {
        self.values.push(Named {
            name,
            value,
            combine: Combine::Sum,
        });
    }

    /// Adds a value that is the mean over the instances.
    pub fn mean(&mut self, name: &'static str, value: f64) {
        self.values.push(Named {
            name,
            value,
            combine: Combine::Mean,
        });
    }

    /// Adds a value that is the maximum over the instances.
    pub fn max(&mut self, name: &'static str, value: f64) {
        self.values.push(Named {
            name,
            value,
            combine: Combine::Max,
        });
    }
}

/// Where a table lies: who pays for it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Memory {
    /// The controller's own memory.
    Sram,
    /// A separate DRAM chip, refreshed all the time.
    Dram,
    /// Phase-change memory.
    Pcm,
    /// Kept in flash (OOBs, translation pages).
    Flash,
}

impl Memory {
    /// Name in the output.
    pub fn name(self) -> &'static str {
        match self {
            Self::Sram => "sram",
            Self::Dram => "dram",
            Self::Pcm => "pcm",
            Self::Flash => "flash",
        }
    }
}

/// One table of a scheme, in bits, as the papers count it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Table {
    /// What it maps.
    pub name: &'static str,
    /// Entries.
    pub entries: u64,
    /// Bits of one entry.
    pub bits_per_entry: u64,
    /// Where it lies.
    pub memory: Memory,
}

impl Table {
    /// A table in the controller's memory.
    pub fn sram(name: &'static str, entries: u64, bits_per_entry: u64) -> Self {
        Self {
            name,
            entries,
            bits_per_entry,
            memory: Memory::Sram,
        }
    }

    /// A table in a DRAM chip.
    pub fn dram(name: &'static str, entries: u64, bits_per_entry: u64) -> Self {
        Self {
            name,
            entries,
            bits_per_entry,
            memory: Memory::Dram,
        }
    }

    /// A table in phase-change memory.
    pub fn pcm(name: &'static str, entries: u64, bits_per_entry: u64) -> Self {
        Self {
            name,
            entries,
            bits_per_entry,
            memory: Memory::Pcm,
        }
    }

    /// A table in flash.
    pub fn flash(name: &'static str, entries: u64, bits_per_entry: u64) -> Self {
        Self {
            name,
            entries,
            bits_per_entry,
            memory: Memory::Flash,
        }
    }

    /// Its size in bytes with entries of whole 32-bit words, as a chip of its own would hold it.
    pub fn word_bytes(&self) -> u64 {
        self.entries * self.bits_per_entry.div_ceil(32) * 4
    }

    /// Its size in bits.
    pub fn bits(&self) -> u64 {
        self.entries * self.bits_per_entry
    }
}

/// `ceil(log2 n)`: the bits needed to number `n` things.
pub fn bits_for(n: u64) -> u64 {
    u64::from(64 - n.saturating_sub(1).leading_zeros())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instances_sum_up_their_dram_accesses_if_they_have_any() {
        let of = |dram_accesses| SchemeCounters {
            dram_accesses,
            ..SchemeCounters::default()
        };
        let sum = |a: Option<u64>, b: Option<u64>| {
            let mut sum = of(a);
            sum.add(&of(b), 1);
            sum.dram_accesses
        };
        assert_eq!(
            (sum(Some(3), Some(4)), sum(None, Some(4)), sum(None, None)),
            (Some(7), Some(4), None)
        );
    }
}
