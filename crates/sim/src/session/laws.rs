//! The laws that hold after any run of any scheme (docs/spec/metrics.md): what the host asked for, what the flash did and
//! what the scheme holds must agree.

use floatgate_core::{Ftl, Lpn};

use super::Session;
use crate::clock::Clock;

impl<S: Ftl<Page = Lpn>, C: Clock> Session<S, C> {
    /// Checks the conservation laws.
    ///
    /// # Errors
    /// The law that does not hold, with its numbers.
    pub fn check_laws(&self) -> Result<(), String> {
        let c = &self.flash.ledger.counters;
        let read = self.host.page_reads - self.flash.unwritten_reads.min(self.host.page_reads);
        let buffered = self.ftl.counters().buffered;
        let memory = self.buffer_counters();
        let slc = self.slc_counters();
        // What the scheme got of the host's writes, and what it was asked to read beside the host's reads.
        let written = match (&memory, &slc) {
            (_, Some(slc)) => slc.folded + slc.direct,
            (Some(memory), _) if self.config.device.buffer.write_pages > 0 => memory.written_out,
            _ => self.host.page_writes,
        };
        let memory = memory.unwrap_or_default();
        let (slc, has_slc) = (slc.unwrap_or_default(), slc.is_some());
        let in_slc = slc.absorbed + slc.trimmed + slc.held;
        if has_slc && slc.taken_in != in_slc + slc.folded {
            return Err(format!(
                "conservation law broken: pages taken into the cache = absorbed, trimmed, folded + held: {} and {}",
                slc.taken_in,
                in_slc + slc.folded
            ));
        }
        let laws = [
            (
                "page_writes = pages absorbed, trimmed in and written out of the write buffer or the cache + pages still in it",
                self.host.page_writes,
                written + memory.absorbed + memory.trimmed + memory.held + in_slc,
            ),
            (
                "programs.host + pages into the scheme's buffer = pages written to the scheme, padded ones too + pages out of it",
                c.programs.host + buffered.writes,
                written + memory.padded + buffered.programs,
            ),
            ("reads.gc = programs.gc", c.reads.gc, c.programs.gc),
            (
                "reads.host + reads from memory = page_reads - unwritten_reads + partial_write_reads + pages read ahead + pages read for padding",
                c.reads.host + buffered.reads + memory.read_held + memory.read_cached + slc.reads,
                read + self.metrics.partial_write_reads
                    + memory.read_ahead
                    + (memory.padded - memory.padded_cached),
            ),
        ];
        for (law, left, right) in laws {
            if left != right {
                return Err(format!(
                    "conservation law broken: {law}: {left} and {right}"
                ));
            }
        }
        self.check_live()
    }

    /// Checks that the scheme's tables agree with the flash, and that it holds the pages that were written and not trimmed.
    ///
    /// # Errors
    /// What does not agree.
    pub(crate) fn check_live(&self) -> Result<(), String> {
        let live = self.ftl.audit(&self.flash)?;
        let logical = self.geometry().logical_pages;
        let expected = (0..logical).filter(|&lpn| self.live.has(lpn)).count() as u64;
        if live != expected {
            return Err(format!(
                "conservation law broken: {live} valid pages, written and not trimmed {expected}"
            ));
        }
        Ok(())
    }
}
