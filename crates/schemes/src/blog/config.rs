//! Options of BLog, what follows from them, and the memory of its tables.

use super::log_table::{Budgets, LogTable};
use super::sub_table::IndexFormat;
use crate::parts::budgets::log_budget;
use floatgate_core::Refusal;
use floatgate_core::geometry::{Geometry, Space};
use floatgate_core::report::{Memory, Table};
use floatgate_core::{choice, options};

choice! {
    /// Where pages lie in a block and where the page map is kept.
    pub enum Layout {
        /// BLogFTL: blocks filled in order, page map in the OOBs.
        Mlc = "mlc",
        /// Plain BLog: data blocks hold pages at their own offsets, page map in RAM.
        Slc = "slc",
    }
}

choice! {
    /// Which logical blocks of a log block count when one is reclaimed.
    pub enum Association {
        /// Those that were mapped to it since its erase and not merged.
        Mapped = "mapped",
        /// Those with a live page in it; the others are taken off without a merge.
        Valid = "valid",
    }
}

choice! {
    /// What Situation 2 does: no log block is both open and below `l`.
    pub enum Situation2 {
        /// Merges a logical block of the emptiest log block (Associativity-GC).
        Merge = "merge",
        /// Reclaims a log block (Space-GC). Not the paper's.
        SpaceGc = "space_gc",
    }
}

options! {
    /// Options of `blog`.
    pub struct BlogOptions {
        /// Log blocks of the whole device, divided by the dies; at least 1 a die.
        log_blocks: u32 ["blocks"] = 512, samples [1, 2, 2, 3, 3, 4], scope Device, setting LogBlocks;
        /// Most log blocks that a logical block may hold.
        u: u32 ["log blocks"] = 2, samples [1, 2, 3];
        /// Most logical blocks that a log block may serve.
        l: u32 ["logical blocks"] = 4, samples [1, 2, 3];
        /// BLogFTL (mlc) or plain BLog (slc).
        layout: Layout [""] = Layout::Mlc;
        /// Which logical blocks of a log block count when it is reclaimed.
        association: Association [""] = Association::Mapped;
        /// What is done when every open log block serves l logical blocks.
        situation2: Situation2 [""] = Situation2::Merge;
        /// Bytes of a page's OOB.
        oob_bytes: u32 ["bytes"] = 64, samples [4, 64];
        /// Bytes of it that sub-tables may not use.
        oob_ecc_bytes: u32 ["bytes"] = 2, samples [0, 62];
        /// Pages in one sub-table; overrides what the OOB has room for.
        entries_per_oob: Option<u32> ["pages"] = None, shown "as many as the OOB holds", samples [1, 2, 3];
    }
}

/// Most that `u` and `l` may be: the paper's tables number log blocks and logical blocks with two bytes.
const LIST_MAX: u32 = 65_535;

impl BlogOptions {
    pub(super) fn budgets(&self) -> Budgets {
        Budgets {
            u: self.u,
            l: self.l,
            by_validity: self.association == Association::Valid,
        }
    }

    pub(super) fn index_format(&self, geometry: &Geometry) -> IndexFormat {
        IndexFormat::new(self.u.min(LIST_MAX), geometry.pages_per_block)
    }

    /// Pages in one sub-table; 0 if not one index fits.
    pub(super) fn entries(&self, geometry: &Geometry) -> u32 {
        let bits = u64::from(self.oob_bytes.saturating_sub(self.oob_ecc_bytes)) * 8;
        let fit = bits / u64::from(self.index_format(geometry).bits());
        let entries = self.entries_per_oob.map_or(fit, u64::from);
        entries.min(geometry.pages_per_block.into()) as u32
    }

    /// Checks the options and returns the log blocks of one die.
    pub(super) fn plan(&self, space: &Space) -> Result<u32, Refusal> {
        for (key, value) in [("u", self.u), ("l", self.l)] {
            if !(1..=LIST_MAX).contains(&value) {
                let text = format!("{key} = {value}: takes 1 to {LIST_MAX}");
                return Err(Refusal::new(key, text));
            }
        }
        let (format, entries) = (
            self.index_format(&space.geometry),
            self.entries(&space.geometry),
        );
        if self.entries_per_oob == Some(0) {
            let text = "entries_per_oob = 0: a sub-table has at least 1 page";
            return Err(Refusal::new("entries_per_oob", text.into()));
        }
        if self.layout == Layout::Mlc && entries == 0 {
            let text = format!(
                "oob_bytes = {} with oob_ecc_bytes = {}: no room for an index of {} bits",
                self.oob_bytes,
                self.oob_ecc_bytes,
                format.bits()
            );
            return Err(Refusal::new("oob_bytes", text));
        }
        let log_blocks = log_budget(space, Some(self.log_blocks), 1)?;
        space.need_blocks(&[
            ("data blocks", space.logical_blocks()),
            ("log blocks", log_blocks),
            ("merge reserve", 1),
        ])?;
        Ok(log_blocks)
    }

    /// Checks that a flash has the OOB bytes that a sub-table takes: what no geometry tells.
    pub(super) fn check_oob(&self, geometry: &Geometry, oob_bytes: usize) -> Result<(), Refusal> {
        let (format, entries) = (self.index_format(geometry), self.entries(geometry));
        let bytes = format.bytes(entries);
        if self.layout == Layout::Mlc && bytes > oob_bytes as u64 {
            let text = format!(
                "a sub-table of {entries} indexes of {} bits takes {bytes} bytes: a flash that stores bytes has \
                 {oob_bytes} for it",
                format.bits()
            );
            return Err(Refusal::new("entries_per_oob", text));
        }
        Ok(())
    }

    /// Memory of this program for a device.
    pub(super) fn ram_bytes(&self, geometry: &Geometry) -> u64 {
        let logical_blocks = u64::from(geometry.logical_blocks());
        let log_blocks = u64::from(self.log_blocks);
        let pages = u64::from(geometry.pages_per_block);
        let entries = u64::from(self.entries(geometry).max(1));
        let groups = pages.div_ceil(entries);
        let (u, l) = (self.u.into(), self.l.into());
        4 * u64::from(geometry.logical_pages)
            + (9 + 4 * groups) * logical_blocks
            + 4 * u64::from(geometry.blocks())
            + LogTable::ram_bytes(logical_blocks, log_blocks, pages, u, l)
    }

    /// The paper's formula: `(10 + 2u) * Ndata + (3 + 2l) * Nlog` bytes. It leaves out the written map (a bit a
    /// page) and, for plain BLog, gives no size of the page map; four bytes a log page are taken.
    pub(super) fn tables(&self, geometry: &Geometry) -> Vec<Table> {
        let logical_blocks = u64::from(geometry.logical_blocks());
        let log_blocks = u64::from(self.log_blocks);
        let pages = u64::from(geometry.pages_per_block);
        let (u, l) = (
            u64::from(self.u.min(LIST_MAX)),
            u64::from(self.l.min(LIST_MAX)),
        );
        let mut tables = vec![
            Table::sram("LDMT", logical_blocks, 8 * (2 + 1 + 5)),
            Table::sram("DLT", logical_blocks, 8 * (2 + 2 * u)),
            Table::sram("LMT", log_blocks, 8 * (2 + 1 + 2 * l)),
        ];
        if self.layout == Layout::Slc {
            tables.push(Table::sram("log-page map", log_blocks * pages, 32));
            return tables;
        }
        let entries = u64::from(self.entries(geometry).max(1));
        tables.push(Table {
            name: "sub-tables in OOBs",
            entries: logical_blocks * pages.div_ceil(entries),
            bits_per_entry: entries * u64::from(self.index_format(geometry).bits()),
            memory: Memory::Flash,
        });
        tables
    }
}
