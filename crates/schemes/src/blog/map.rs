//! The page map of BLogFTL in the OOBs: reading sub-tables, changing them, and what their indexes mean.

use super::Blog;
use super::sub_table::Index;
use floatgate_core::address::{Lpn, Ppn};
use floatgate_core::flash::{Cause, Flash};

impl Blog {
    /// Where an index leads that was found in the OOB of page `in_page` of logical block `b`.
    pub(super) fn resolve(&self, b: u32, in_page: Ppn, index: Index) -> Option<Ppn> {
        let index = self.without_inheritance(b, in_page, index);
        let block = if index.log {
            let row = self.logs.rows_of(b).nth(index.position as usize)?;
            self.logs.row(row).block
        } else {
            self.data[b as usize]
        };
        Some(self.space.geometry.ppn(block, index.offset))
    }

    /// The index with the flag it would have now: what a swapped-in data block inherited from its time as a
    /// log block names it as one, but means itself.
    pub(super) fn without_inheritance(&self, b: u32, in_page: Ppn, index: Index) -> Index {
        let (block, offset) = self.space.geometry.split(in_page);
        let inherited = block == self.data[b as usize] && offset < self.inherited[b as usize];
        if !inherited || index == self.format.unwritten() {
            return index;
        }
        Index::in_data(index.offset)
    }

    /// Takes the sub-table of a group into the buffer before a page of it is written: one OOB read if there
    /// is one.
    #[inline]
    pub(super) fn fetch_sub_table<F: Flash>(
        &mut self,
        flash: &mut F,
        b: u32,
        group: u32,
    ) -> Result<F::Token, F::Error> {
        if F::BEARS_DATA {
            self.table.fill(self.format.unwritten());
            self.table_of = Some((b, group));
        }
        let at = self.directory[self.directory_at(b, group)];
        if at.is_none() {
            return Ok(F::Token::default());
        }
        let (_, token) = flash.read_oob(at, Cause::Map, F::Token::default())?;
        if F::BEARS_DATA {
            for (i, p) in (0..).zip(self.group_pages(group)) {
                self.table[i as usize] = if flash.last_oob_bytes().is_empty() {
                    self.index_of(b, p)
                } else {
                    let index = self.format.unpack(flash.last_oob_bytes(), i);
                    self.without_inheritance(b, at, index)
                };
            }
        }
        Ok(token)
    }

    /// The index of a page by its place in memory: what stands for a sub-table whose OOB has become
    /// unreadable.
    fn index_of(&self, b: u32, p: u32) -> Index {
        let at = self.place[(b * self.pages() + p) as usize];
        if at.is_none() {
            return self.format.unwritten();
        }
        let (block, offset) = self.space.geometry.split(at);
        let mut rows = self.logs.rows_of(b);
        match rows.position(|row| self.logs.row(row).block == block) {
            Some(position) if block != self.data[b as usize] => Index {
                log: true,
                position: position as u32,
                offset,
            },
            _ => Index::in_data(offset),
        }
    }

    /// The buffered sub-table as it is after a merge of its logical block: every live page lies in the
    /// data block, and nothing else is known any more.
    pub(super) fn renew_sub_table(&mut self, b: u32) {
        let Some((_, group)) = self.table_of.filter(|&(of, _)| of == b) else {
            return;
        };
        for (i, p) in self.group_pages(group).enumerate() {
            let at = self.place[(b * self.pages() + p) as usize];
            self.table[i] = if at.is_some() {
                Index::in_data(self.space.geometry.split(at).1)
            } else {
                self.format.unwritten()
            };
        }
    }

    /// Puts the buffered sub-table with page `p` changed into the OOB of the next program.
    #[inline]
    pub(super) fn stage_sub_table<F: Flash>(&mut self, flash: &mut F, p: u32, index: Index) {
        let (_, i) = self.by_entries.div_rem(p);
        self.table[i as usize] = index;
        let (format, table) = (self.format, &self.table);
        flash.next_oob_bytes(|bytes| format.pack(table, bytes));
    }

    /// Reads the sub-tables of a logical block, before a merge. Where they bear data, they say where the
    /// pages are.
    pub(super) fn read_sub_tables<F: Flash>(
        &mut self,
        flash: &mut F,
        b: u32,
    ) -> Result<(), F::Error> {
        for group in 0..self.groups {
            let at = self.directory[self.directory_at(b, group)];
            if at.is_none() {
                continue;
            }
            // Copies follow on the same die, so its order makes them wait.
            flash.read_oob(at, Cause::Map, F::Token::default())?;
            if F::BEARS_DATA && !flash.last_oob_bytes().is_empty() {
                for p in self.group_pages(group) {
                    let lpn = Lpn(b * self.pages() + p);
                    if self.place[lpn.index()].is_some() {
                        self.place[lpn.index()] = self.look_up(flash, lpn, at);
                    }
                }
            }
        }
        Ok(())
    }

    /// The place of a live page by the OOB of page `at` that was read last.
    pub(super) fn look_up<F: Flash>(&self, flash: &F, lpn: Lpn, at: Ppn) -> Ppn {
        let (b, p) = self.split(lpn);
        let (_, i) = self.by_entries.div_rem(p);
        let index = self.format.unpack(flash.last_oob_bytes(), i);
        let found = self.resolve(b, at, index);
        debug_assert_eq!(
            found,
            Some(self.place[lpn.index()]),
            "page {p} of {b} by {index:?} in the OOB of {}",
            at.0
        );
        found.expect("a sub-table names a log block that its logical block does not hold")
    }
}
