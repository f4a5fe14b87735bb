//! Recovery of BLog and BLogFTL: the full OOB scan, and who has which block.
//!
//! **Tags.** A page of the host names the data block that its logical block had at the time. A copy carries a
//! [`move_tag`](crate::parts::scan::move_tag). So the youngest page of a logical block tells its data block, unless
//! that was swapped for a log block since. It also tells which older pages can still count: those in that data block, and
//! those written to log blocks beside it. All others had been merged; trimmed pages among them stay trimmed.
//!
//! **Log blocks.** Those are the log blocks of a logical block, in the order in which it came to them, live page
//! or not; so DLT and LMT are as before the cut, and the sub-tables mean what they meant. All of them are sealed.
//! A data block goes on taking pages if its logical block has nothing in log blocks; otherwise it may have been on
//! its way out, and is closed.
//!
//! **Swaps.** No program tells of a swap. Without its old data block a logical block takes the log block with its live
//! pages that serves it alone. If it has live pages elsewhere, or a sub-table that does not lead to them (both
//! are trimmed pages that came back), its pages are brought together in an erased block.
//!
//! *There is always one.* The blocks in use are at most the data blocks, the log blocks, and the target of a merge, which
//! either is void or has emptied the old data block. A swapped block serves nobody else; what others have in it they had
//! trimmed and left before. So among the logical blocks without a data block the one swapped first has its block for
//! itself, or else some have lost their last live page before the cut, and with it their data block: that
//! is an erased block more for each of these.

mod agreement;
mod found;
mod tags;

pub(super) use tags::DataTag;

use super::log_table::LogTable;
use super::{Blog, BlogOptions, Layout};
use crate::parts::pool::Pool;
use crate::parts::scan::{Depth, MORE, Newest, Rules, Scan, SpareBytes};
use floatgate_core::Refusal;
use floatgate_core::address::{DieLpn, Lbn, Pbn, Ppn};
use floatgate_core::described::Described;
use floatgate_core::flash::{Cause, Flash, Role};
use floatgate_core::ftl::MountError;
use found::{Block, Found, Kind};
use tags::Head;

impl Blog {
    pub(super) fn scan<F: Flash>(
        &mut self,
        options: &BlogOptions,
        log_blocks: u32,
        flash: &mut F,
    ) -> Result<(), MountError<F::Error>> {
        let logical_blocks = self.data.len() as u32;
        let (u, l) = (options.u, options.l);
        self.logs = LogTable::new(logical_blocks, self.pages(), options.budgets(), Vec::new());
        let mut found = self.read_blocks(flash).map_err(MountError::Flash)?;
        self.find_swapped_blocks(flash, &mut found)?;
        for lbn in (0..logical_blocks).map(Lbn) {
            if !self.is_as_before(flash, &mut found, lbn, u)? {
                self.gather_pages(flash, &mut found, lbn)?;
            }
        }
        self.keep_budgets(flash, &mut found, l, log_blocks)?;
        self.take_log_blocks(&found, log_blocks, options);
        self.reset_counters();
        Ok(())
    }

    /// Reads all OOBs, decides which pages and blocks count, and erases the others.
    fn read_blocks<F: Flash>(&mut self, flash: &mut F) -> Result<Found, F::Error> {
        let mut bytes = SpareBytes::new(self.directory.len());
        let group_of = |lpn| self.group_of(lpn);
        let depth = match self.layout {
            Layout::Mlc => Depth::UpToErased,
            Layout::Slc => Depth::Whole,
        };
        let mut scan = Scan::read_with_bytes(&self.space, depth, flash, &mut bytes, group_of)?;
        let heads = self.heads(&scan);
        let geometry = self.space.geometry.clone();
        scan.retain(|at, lpn, read| {
            heads[self.split(lpn).0.index()].is_some_and(|head| {
                read.sequence > head.sequence
                    || geometry.block_of(at) == head.data
                    || head.tag == Some(read.oob.tag)
            })
        });
        let Newest { place, sequence } = scan.newest(Rules::Moves);
        self.place = place;
        self.find_data_blocks(&scan, &heads);
        let mut held = vec![Vec::new(); self.data.len()];
        for (lbn, log, first) in self.pairs(&scan) {
            // A log block without a live page of it may be one that it was taken off, or may be reclaimed as well.
            if self.by_validity && !self.places(lbn).any(|at| geometry.block_of(at) == log) {
                continue;
            }
            held[lbn.index()].push((first, log));
            scan.set_valid(log);
        }
        for &data in self.data.iter().filter(|data| data.is_some()) {
            scan.set_valid(data);
        }
        let blank = scan.erase_useless(flash)?;
        self.pool = Pool::new(blank.into_iter(), geometry.blocks_per_die);
        let mut found = Found {
            blocks: vec![Block::default(); self.space.blocks() as usize],
            first: geometry.pbn(self.space.first_die, 0).0,
            scan,
            bytes,
            sequence,
            slots: vec![Vec::new(); held.len()],
            held,
        };
        self.count_blocks(&mut found);
        Ok(found)
    }

    fn group_of(&self, lpn: DieLpn) -> usize {
        let (lbn, p) = self.split(lpn);
        self.directory_at(lbn, self.by_entries.div(p))
    }

    /// Local pages of a logical block.
    fn pages_of(&self, lbn: Lbn) -> impl Iterator<Item = DieLpn> + use<> {
        let pages = self.pages();
        (lbn.0 * pages..(lbn.0 + 1) * pages).map(DieLpn)
    }

    /// The places of its live pages.
    fn places(&self, lbn: Lbn) -> impl Iterator<Item = Ppn> + '_ {
        let places = self.pages_of(lbn).map(|lpn| self.place[lpn.index()]);
        places.filter(|at| at.is_some())
    }

    fn heads(&self, scan: &Scan) -> Vec<Option<Head>> {
        let tags = DataTag::new(&self.space);
        let mut heads: Vec<Option<Head>> = vec![None; self.data.len()];
        let mut others = heads.clone();
        for (block, lpn, read) in scan.pages() {
            let heads = match read.oob.tag {
                MORE => &mut others,
                _ => &mut heads,
            };
            let head = &mut heads[self.split(lpn).0.index()];
            if head.is_none_or(|head| read.sequence > head.sequence) {
                *head = Some(Head::of(tags, block, &read));
            }
        }
        // Nothing but copies with others to follow: the page that ended their merge has rotted.
        let heads = heads.into_iter().zip(others);
        heads.map(|(head, other)| head.or(other)).collect()
    }

    /// A data block that its head tells stands if it has not been erased since.
    fn find_data_blocks(&mut self, scan: &Scan, heads: &[Option<Head>]) {
        for (lbn, head) in (0..).map(Lbn).zip(heads) {
            let Some(head) = head.filter(|head| scan.contains(head.data)) else {
                continue;
            };
            let found = scan.found(head.data);
            let stands = found.readable > 0 && !found.is_void && found.first <= head.sequence;
            if stands && self.places(lbn).next().is_some() {
                self.data[lbn.index()] = head.data;
                let mine = scan.pages_of(head.data);
                let as_log = mine.filter(|(_, lpn, read)| {
                    self.split(*lpn).0 == lbn && read.oob.role == Role::Log
                });
                let inherited = as_log.map(|(position, ..)| position + 1).max();
                self.inherited[lbn.index()] = inherited.unwrap_or(0);
            }
        }
    }

    /// Logical blocks with a data block, and the log blocks that have pages of theirs: each pair with the first such
    /// page, in the order of these.
    fn pairs(&self, scan: &Scan) -> Vec<(Lbn, Pbn, u64)> {
        let mut is_data = vec![false; self.space.blocks() as usize];
        let first = self.space.geometry.pbn(self.space.first_die, 0).0;
        for data in self.data.iter().filter(|data| data.is_some()) {
            is_data[(data.0 - first) as usize] = true;
        }
        let mut pairs = Vec::new();
        for (block, found) in scan.blocks() {
            if found.is_void || is_data[(block.0 - first) as usize] {
                continue;
            }
            let pages = scan.pages_of(block);
            let mut mine: Vec<_> = pages
                .map(|(_, lpn, read)| (self.split(lpn).0, block, read.sequence))
                .filter(|&(lbn, ..)| self.data[lbn.index()].is_some())
                .collect();
            mine.sort_unstable_by_key(|&(lbn, _, sequence)| (lbn, sequence));
            mine.dedup_by_key(|&mut (lbn, ..)| lbn);
            pairs.append(&mut mine);
        }
        pairs.sort_unstable_by_key(|&(.., sequence)| sequence);
        pairs
    }

    fn count_blocks(&mut self, found: &mut Found) {
        let in_use: Vec<Pbn> = found
            .scan
            .blocks()
            .filter(|(_, found)| found.is_used)
            .map(|(block, _)| block)
            .collect();
        for block in in_use {
            found.block(block).kind = Kind::Log;
        }
        for lbn in (0..self.data.len() as u32).map(Lbn) {
            for (_, log) in found.held[lbn.index()].clone() {
                found.block(log).serves += 1;
            }
            if self.data[lbn.index()].is_some() {
                found.block(self.data[lbn.index()]).kind = Kind::Data;
                self.is_closed[lbn.index()] = !found.held[lbn.index()].is_empty();
            }
        }
        for at in self.place.iter().filter(|at| at.is_some()) {
            found.block(self.space.geometry.block_of(*at)).live += 1;
        }
    }

    /// Gives data blocks to the logical blocks whose old ones are gone.
    fn find_swapped_blocks<F: Flash>(
        &mut self,
        flash: &mut F,
        found: &mut Found,
    ) -> Result<(), MountError<F::Error>> {
        let without = |blog: &Self, lbn: &Lbn| {
            blog.data[lbn.index()].is_none() && blog.places(*lbn).next().is_some()
        };
        let mut waiting: Vec<Lbn> = (0..self.data.len() as u32)
            .map(Lbn)
            .filter(|lbn| without(self, lbn))
            .collect();
        let mut may_serve = false;
        while !waiting.is_empty() {
            let swapped = self.blocks_for_one(found, may_serve);
            let before = waiting.len();
            for &lbn in &waiting {
                let block = swapped[lbn.index()];
                if block.is_some() {
                    self.swap_in(flash, found, lbn, block)?;
                }
            }
            waiting.retain(|lbn| without(self, lbn));
            let stuck = waiting.len() == before;
            if stuck && (may_serve || self.pool.len() > 1) {
                let most_spread = waiting.iter().max_by_key(|&&lbn| self.spread(lbn));
                let lbn = *most_spread.expect("some are waiting");
                self.gather_pages(flash, found, lbn)?;
                waiting.retain(|lbn| without(self, lbn));
            }
            may_serve = stuck && self.pool.len() <= 1;
        }
        Ok(())
    }

    /// A log block with live pages of `lbn` alone becomes its data block. Whom it served finds its sub-tables changed.
    fn swap_in<F: Flash>(
        &mut self,
        flash: &mut F,
        found: &mut Found,
        lbn: Lbn,
        block: Pbn,
    ) -> Result<(), MountError<F::Error>> {
        self.data[lbn.index()] = block;
        self.is_closed[lbn.index()] = true;
        self.inherited[lbn.index()] = flash.ledger().write_pointer(block);
        found.block(block).kind = Kind::Data;
        if std::mem::take(&mut found.block(block).serves) > 0 {
            for held in &mut found.held {
                held.retain(|&(_, log)| log != block);
            }
        }
        if self.places(lbn).count() as u32 > found.block(block).live {
            self.gather_pages(flash, found, lbn)?;
        }
        Ok(())
    }

    /// In how many blocks a logical block has live pages.
    fn spread(&self, lbn: Lbn) -> usize {
        let mut blocks: Vec<Pbn> = self
            .places(lbn)
            .map(|at| self.space.geometry.block_of(at))
            .collect();
        blocks.sort_unstable();
        blocks.dedup();
        blocks.len()
    }

    /// By logical block: the log block that has live pages of it alone (in `slc` at their own offsets), the one with most
    /// of them. It serves nobody, unless it `may_serve` others that have no live page there.
    fn blocks_for_one(&self, found: &Found, may_serve: bool) -> Vec<Pbn> {
        let mut best = vec![(0, Pbn::NONE); self.data.len()];
        let entry = |log: Pbn| found.blocks[(log.0 - found.first) as usize];
        let logs = found.of_kind(Kind::Log);
        for log in logs.filter(|&log| may_serve || entry(log).serves == 0) {
            let live = found.scan.pages_of(log).filter(|&(position, lpn, _)| {
                self.place[lpn.index()] == self.space.geometry.ppn(log, position)
            });
            let mut owners = live.map(|(position, lpn, _)| {
                let (lbn, p) = self.split(lpn);
                (self.layout == Layout::Mlc || p == position).then_some(lbn)
            });
            let Some(Some(lbn)) = owners.next() else {
                continue;
            };
            let others = owners
                .by_ref()
                .take_while(|&owner| owner == Some(lbn))
                .count() as u32;
            let live = 1 + others;
            if live == entry(log).live && live > best[lbn.index()].0 {
                best[lbn.index()] = (live, log);
            }
        }
        best.into_iter().map(|(_, log)| log).collect()
    }

    /// Copies the live pages of a logical block into an erased block, and erases the blocks that have nothing left.
    fn gather_pages<F: Flash>(
        &mut self,
        flash: &mut F,
        found: &mut Found,
        lbn: Lbn,
    ) -> Result<(), MountError<F::Error>> {
        let mut left: Vec<Pbn> = Vec::new();
        for at in self.places(lbn) {
            let block = self.space.geometry.block_of(at);
            found.block(block).live -= 1;
            left.push(block);
        }
        let old = self.data[lbn.index()];
        let is_empty = old.is_some() && found.block(old).live == 0;
        if self.pool.is_empty() {
            let text = "no erased block is left to bring the pages of a logical block together; nothing is lost, and \
                        one block more would do";
            return Err(Refusal::no_room(text.into()).into());
        }
        let emptied = if is_empty { old } else { Pbn::NONE };
        let copies = self.pack(flash, lbn, emptied).map_err(MountError::Flash)?;
        found.leave(lbn);
        if old.is_some() {
            found.block(old).kind = Kind::Log;
            left.push(old);
        }
        let fresh = self.data[lbn.index()];
        *found.block(fresh) = Block {
            kind: Kind::Data,
            live: copies,
            serves: 0,
        };
        left.sort_unstable();
        left.dedup();
        self.erase_useless(flash, found, &left)
            .map_err(MountError::Flash)
    }

    /// Erases those of some blocks that hold no live page and serve nobody.
    fn erase_useless<F: Flash>(
        &mut self,
        flash: &mut F,
        found: &mut Found,
        blocks: &[Pbn],
    ) -> Result<(), F::Error> {
        for &block in blocks {
            let entry = found.block(block);
            if entry.kind == Kind::Log && (entry.live, entry.serves) == (0, 0) {
                *entry = Block::default();
                flash.erase(block, Cause::Gc, F::Token::default())?;
                self.pool.give(block);
            }
        }
        Ok(())
    }

    /// Merges logical blocks while a log block serves more than `l` of them, or there are too many log blocks.
    fn keep_budgets<F: Flash>(
        &mut self,
        flash: &mut F,
        found: &mut Found,
        l: u32,
        log_blocks: u32,
    ) -> Result<(), MountError<F::Error>> {
        let logs: Vec<Pbn> = found.of_kind(Kind::Log).collect();
        self.erase_useless(flash, found, &logs)
            .map_err(MountError::Flash)?;
        loop {
            let crowded = found
                .of_kind(Kind::Log)
                .find(|log| found.blocks[(log.0 - found.first) as usize].serves > l);
            let is_surplus = found.of_kind(Kind::Log).count() > log_blocks as usize;
            let surplus = found.of_kind(Kind::Log).filter(|_| is_surplus);
            let youngest = surplus.max_by_key(|&log| found.scan.found(log).first);
            let Some(log) = crowded.or(youngest) else {
                return Ok(());
            };
            let holds = |held: &Vec<(u64, Pbn)>| held.iter().any(|&(_, other)| other == log);
            let lbn = (0..)
                .map(Lbn)
                .zip(&found.held)
                .find(|(_, held)| holds(held));
            let (lbn, _) = lbn.ok_or_else(|| {
                Refusal::damaged(format!("log block {} serves no logical block", log.0))
            })?;
            self.gather_pages(flash, found, lbn)?;
        }
    }

    /// Makes the log blocks rows of the LMT, all sealed, the oldest first. Erased blocks take the rows that are
    /// left.
    fn take_log_blocks(&mut self, found: &Found, log_blocks: u32, options: &BlogOptions) {
        let mut logs: Vec<Pbn> = found.of_kind(Kind::Log).collect();
        logs.sort_unstable_by_key(|&log| found.scan.found(log).first);
        let sealed = logs.len() as u32;
        logs.extend((sealed..log_blocks).map(|_| self.pool.take()));
        let (logical_blocks, pages) = (self.data.len() as u32, self.pages());
        let mut row_of = vec![0; found.blocks.len()];
        for (row, log) in logs.iter().enumerate() {
            row_of[(log.0 - found.first) as usize] = row as u32;
        }
        self.logs = LogTable::new(logical_blocks, pages, options.budgets(), logs);
        for row in 0..sealed {
            let log = self.logs.row(row).block;
            let pages = found.scan.pages_of(log);
            self.logs
                .seal(row, pages.map(|(position, lpn, _)| (position, lpn)));
        }
        let mut pairs: Vec<(u64, Lbn, Pbn, u32)> = Vec::new();
        for (lbn, (held, slots)) in (0..).map(Lbn).zip(found.held.iter().zip(&found.slots)) {
            let held = held.iter().zip(slots);
            pairs.extend(held.map(|(&(first, log), &slot)| (first, lbn, log, slot)));
        }
        pairs.sort_unstable();
        for (_, lbn, log, slot) in pairs {
            let row = row_of[(log.0 - found.first) as usize];
            self.logs.join_at(lbn, row, slot);
        }
        if self.by_validity {
            for lbn in (0..logical_blocks).map(Lbn) {
                for lpn in self.pages_of(lbn) {
                    let at = self.place[lpn.index()];
                    let block = (at.is_some()).then(|| self.space.geometry.block_of(at));
                    if let Some(row) = block.and_then(|block| self.logs.row_at(lbn, block)) {
                        self.logs.page_came(lbn, row);
                    }
                }
            }
        }
    }
}
