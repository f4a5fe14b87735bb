//! The page map of BLogFTL in the OOBs: reading sub-tables, changing them, and what their indexes mean.

use super::sub_table::Index;
use super::{Blog, Layout};
use crate::parts::start;
use floatgate_core::address::{DieLpn, Lbn, Ppn};
use floatgate_core::flash::{Cause, Flash, Oob, Preload, SCHEME_OOB_BYTES};
use floatgate_core::state;

/// The sub-table of a group of pages, as it was fetched before a page of the group is written.
#[derive(Debug)]
pub(super) struct Fetched {
    lbn: Lbn,
    group: u32,
    /// The page in whose OOB it lies, or `NONE`.
    at: Ppn,
    /// What is in that OOB; `None` where it cannot be read, and where the flash stores no bytes.
    bytes: Option<[u8; SCHEME_OOB_BYTES]>,
    /// Whether the logical block has been merged since.
    is_merged: bool,
}

state!(Fetched { lbn, group, at, is_merged } fixed { bytes });

impl Fetched {
    /// A merge of a logical block moves its pages.
    pub(super) fn merged(&mut self, lbn: Lbn) {
        self.is_merged |= self.lbn == lbn;
    }
}

impl Default for Fetched {
    fn default() -> Self {
        Self {
            lbn: Lbn::NONE,
            group: 0,
            at: Ppn::NONE,
            bytes: None,
            is_merged: false,
        }
    }
}

impl Blog {
    /// Where an index leads that was found in the OOB of page `in_page` of logical block `lbn`.
    pub(super) fn resolve(&self, lbn: Lbn, in_page: Ppn, index: Index) -> Option<Ppn> {
        let index = self.without_inheritance(lbn, in_page, index);
        let block = if index.log {
            let row = self.logs.row_in_slot(lbn, index.position)?;
            self.logs.row(row).block
        } else {
            self.data[lbn.index()]
        };
        Some(self.space.geometry.ppn(block, index.offset))
    }

    /// The index with the flag it would have now: what a swapped-in data block inherited from its time as a
    /// log block names it as one, but means itself.
    pub(super) fn without_inheritance(&self, lbn: Lbn, in_page: Ppn, index: Index) -> Index {
        let (block, offset) = self.space.geometry.split(in_page);
        let inherited = block == self.data[lbn.index()] && offset < self.inherited[lbn.index()];
        if !inherited || index == self.format.unwritten() {
            return index;
        }
        Index::in_data(index.offset)
    }

    /// Fetches the sub-table of a group before a page of it is written: one OOB read if there is one.
    #[inline]
    pub(super) fn fetch_sub_table<F: Flash>(
        &mut self,
        flash: &mut F,
        lbn: Lbn,
        group: u32,
    ) -> Result<F::Token, F::Error> {
        let at = self.directory[self.directory_at(lbn, group)];
        let (mut found, mut token) = (None, F::Token::default());
        if at.is_some() {
            (found, token) = flash.read_oob(at, Cause::Map, F::Token::default())?;
        }
        self.fetched = Fetched {
            lbn,
            group,
            at,
            bytes: found.map(|found| found.bytes),
            is_merged: false,
        };
        Ok(token)
    }

    /// Writes the sub-table that was fetched into an OOB, with page `p` changed.
    pub(super) fn write_sub_table(&mut self, p: u32, index: Index, bytes: &mut [u8]) {
        let Fetched { lbn, group, .. } = self.fetched;
        for (i, p) in (0..).zip(self.group_pages(group)) {
            self.table[i as usize] = self.fetched_index(lbn, p, i);
        }
        let entries = self.group_pages(group).len();
        self.table[entries..].fill(self.format.unwritten());
        let (_, i) = self.by_entries.div_rem(p);
        self.table[i as usize] = index;
        self.format.pack(&self.table, bytes);
    }

    /// Index number `i`, that of page `p` of logical block `lbn`, in the sub-table that was fetched.
    fn fetched_index(&self, lbn: Lbn, p: u32, i: u32) -> Index {
        let at = self.place[(lbn.0 * self.pages() + p) as usize];
        match &self.fetched {
            // Every live page lies in the data block, and nothing else is known any more.
            Fetched { is_merged, .. } if *is_merged && at.is_some() => {
                Index::in_data(self.space.geometry.split(at).1)
            }
            Fetched { is_merged, at, .. } if *is_merged || at.is_none() => self.format.unwritten(),
            Fetched {
                at,
                bytes: Some(bytes),
                ..
            } => self.without_inheritance(lbn, *at, self.format.unpack(bytes, i)),
            // Its OOB has become unreadable.
            Fetched { bytes: None, .. } => self.index_of(lbn, p),
        }
    }

    /// The index of a page by its place in memory: what stands for a sub-table whose OOB has become
    /// unreadable.
    fn index_of(&self, lbn: Lbn, p: u32) -> Index {
        let at = self.place[(lbn.0 * self.pages() + p) as usize];
        if at.is_none() {
            return self.format.unwritten();
        }
        let (block, offset) = self.space.geometry.split(at);
        let mut slots = self.logs.slots(lbn);
        match slots.find(|&(row, _)| self.logs.row(row).block == block) {
            Some((_, position)) if block != self.data[lbn.index()] => Index {
                log: true,
                position,
                offset,
            },
            _ => Index::in_data(offset),
        }
    }

    /// Reads the sub-tables of a logical block, before a merge. Where the flash stores bytes, they say
    /// where the pages are.
    pub(super) fn read_sub_tables<F: Flash>(
        &mut self,
        flash: &mut F,
        lbn: Lbn,
    ) -> Result<(), F::Error> {
        for group in 0..self.groups {
            let at = self.directory[self.directory_at(lbn, group)];
            if at.is_none() {
                continue;
            }
            // Copies follow on the same die, so its order makes them wait.
            let (found, _) = flash.read_oob(at, Cause::Map, F::Token::default())?;
            if let Some(found) = found {
                for p in self.group_pages(group) {
                    let lpn = DieLpn(lbn.0 * self.pages() + p);
                    if self.place[lpn.index()].is_some() {
                        self.place[lpn.index()] = self.look_up(lpn, at, &found.bytes);
                    }
                }
            }
        }
        Ok(())
    }

    /// The place of a live page by the bytes in the OOB of page `at`.
    pub(super) fn look_up(&self, lpn: DieLpn, at: Ppn, bytes: &[u8]) -> Ppn {
        let (lbn, p) = self.split(lpn);
        let (_, i) = self.by_entries.div_rem(p);
        let index = self.format.unpack(bytes, i);
        let found = self.resolve(lbn, at, index);
        debug_assert_eq!(
            found,
            Some(self.place[lpn.index()]),
            "page {p} of {} by {index:?} in the OOB of {}",
            lbn.0,
            at.0
        );
        found.expect("a sub-table names a log block that its logical block does not hold")
    }

    /// Start state `full`, in `mlc` with the sub-tables that filling the blocks in order leaves.
    pub(super) fn fill<F: Preload>(&mut self, flash: &mut F) -> Result<(), F::Error> {
        let (data, pool) = (&mut self.data, &mut self.pool);
        let (layout, format, by_entries) = (self.layout, self.format, self.by_entries);
        let by_pages = self.space.geometry.by_pages();
        // The pages of the group up to this one, each at its own offset.
        let sub_table = |lpn: DieLpn, oob: Oob| {
            oob.with_bytes(move |bytes: &mut [u8]| {
                if layout == Layout::Mlc {
                    let (group, last) = by_entries.div_rem(by_pages.rem(lpn.0));
                    let first = group * by_entries.get();
                    let mut table = vec![format.unwritten(); by_entries.get() as usize];
                    for i in 0..=last {
                        table[i as usize] = Index::in_data(first + i);
                    }
                    format.pack(&table, bytes);
                }
            })
        };
        let place = &mut self.place;
        start::fill_with(&self.space, flash, place, sub_table, |lbn, block| {
            data[lbn.index()] = pool.take();
            debug_assert_eq!(data[lbn.index()], block);
        })?;
        if layout == Layout::Mlc {
            for lpn in (0..self.space.logical_pages()).map(DieLpn) {
                let (lbn, p) = self.split(lpn);
                let group = self.directory_at(lbn, self.by_entries.div(p));
                self.directory[group] = self.place[lpn.index()];
            }
        }
        Ok(())
    }
}
