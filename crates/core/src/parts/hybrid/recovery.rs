//! Recovery of a hybrid: the full OOB scan, and the choice of data blocks and log blocks.
//!
//! A switched log block keeps the OOBs of a log block, so roles alone do not tell data blocks. Among the blocks
//! in use that are aligned to a logical block the one with the oldest page is its data block: a log block is
//! taken only when the data block has a page. A rebuild needs no such choice: its last page makes everything
//! older void (see [`scan`](crate::parts::scan)). All other blocks in use are log blocks.
//!
//! *The budget holds by counting.* Before the cut there was at most one data block a logical block, the log
//! blocks of the budget, and the target of one unfinished move. That target is void or the block it empties
//! is. Every logical block whose data block is still in use has an aligned block in use, so one is chosen; what
//! remains are at most as many log blocks as there were.
//!
//! *Erased positions are not trusted* where a block could have been on its way out when an erase was cut. Log
//! blocks are sealed: they count as full. A data block goes on taking pages if its oldest page came as a data
//! page and no other block in use is aligned to the logical block; otherwise, if it has room at all, the
//! logical block is rebuilt before the first write of the host.

use super::{Hybrid, HybridPlan, Log, Watch, programmable};
use crate::address::Lpn;
use crate::flash::{Flash, Role};
use crate::ftl::NoRecovery;
use crate::geometry::Space;
use crate::parts::map_area::MapArea;
use crate::parts::pool::Pool;
use crate::parts::scan::{Depth, Newest, Rules, Scan};
use crate::report::Merges;

/// A log block that was found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FoundLog {
    /// Its place in the log table.
    pub log: Log,
    /// Sequence number of its oldest readable page: the order in which log blocks were taken.
    pub first: u64,
    /// Sequence number of its youngest readable page: the order in which they became full.
    pub last: u64,
    /// Role of its oldest readable page: the kind of log block.
    pub role: Role,
}

impl<W: Watch> Hybrid<W> {
    /// Makes the tables from what the flash holds. Returns the log blocks too, in the order in which they were
    /// taken; the scheme puts them into its lists, gives them their owners, and merges what is too much.
    /// All of them are sealed: nothing is ever appended to them.
    ///
    /// # Errors
    /// The refusal of [`Hybrid::format`], or an error of the flash.
    pub fn recover<F: Flash>(
        space: &Space,
        plan: &HybridPlan,
        watch: W,
        flash: &mut F,
    ) -> Result<(Self, Vec<FoundLog>), NoRecovery<F::Error>> {
        let mut hybrid = Self::blank(space, plan, watch)?;
        let entries = space.geometry.logical_blocks_per_die() + plan.log_slots;
        if plan.map_blocks > 0 {
            let (pages, per_page) = (space.geometry.pages_per_block, plan.map_entries_per_page);
            MapArea::check(plan.map_blocks, per_page, entries, pages)?;
        }
        let found = hybrid
            .scan(plan, flash)
            .and_then(|mut found| {
                hybrid.start_maps(plan, entries, flash)?;
                found.retain(|found| hybrid.exists(found.log));
                Ok(found)
            })
            .map_err(NoRecovery::Flash)?;
        hybrid.merges = Merges::default();
        Ok((hybrid, found))
    }

    fn scan<F: Flash>(
        &mut self,
        plan: &HybridPlan,
        flash: &mut F,
    ) -> Result<Vec<FoundLog>, F::Error> {
        let mut scan = Scan::read(&self.space, plan.map_blocks, Depth::Whole, flash)?;
        let newest = scan.newest(Rules::Rebuilds);
        let blank = scan.erase_useless(flash)?;
        for die in 0..self.space.dies {
            let on_die = blank
                .iter()
                .filter(|&&block| self.die_of_block(block) == die);
            let usable = self.space.geometry.blocks_per_die - plan.map_blocks;
            self.pools.push(Pool::new(on_die.copied(), usable));
        }
        let doubtful = self.choose_data_blocks(&scan, flash);
        let found = self.take_log_blocks(&scan);
        self.take_pages(&scan, &newest);
        for l in doubtful {
            self.rebuild(flash, l)?;
        }
        for found in &found {
            if self.valid(found.log) == 0 {
                self.erase_log(flash, found.log)?;
            }
        }
        Ok(found)
    }

    /// Returns the logical blocks that have to be rebuilt because their data block has room, but cannot be
    /// trusted.
    fn choose_data_blocks<F: Flash>(&mut self, scan: &Scan, flash: &F) -> Vec<u32> {
        let mut rivals = vec![0; self.data.len()];
        for (block, found) in scan.blocks().filter(|(_, found)| found.valid > 0) {
            let Some(l) = scan.aligned_to(block) else {
                continue;
            };
            rivals[l as usize] += 1;
            let data = &mut self.data[l as usize];
            if data.is_none() || found.first < scan.found(*data).first {
                *data = block;
            }
        }
        let is_doubtful = |&l: &u32| {
            let block = self.data[l as usize];
            let has_room =
                |block| (0..self.pages_per_block()).any(|o| programmable(flash, block, o));
            block.is_some()
                && (rivals[l as usize] > 1 || scan.found(block).role != Role::Data)
                && has_room(block)
        };
        (0..self.data.len() as u32).filter(is_doubtful).collect()
    }

    fn take_log_blocks(&mut self, scan: &Scan) -> Vec<FoundLog> {
        let is_data = |block| {
            let l = scan.aligned_to(block);
            l.is_some_and(|l| self.data[l as usize] == block)
        };
        let in_use = scan.blocks().filter(|(_, found)| found.valid > 0);
        let mut logs: Vec<_> = in_use.filter(|&(block, _)| !is_data(block)).collect();
        logs.sort_unstable_by_key(|(_, found)| found.first);
        let mut taken = Vec::with_capacity(logs.len());
        for (block, found) in logs {
            let log = self.assign_slot(self.die_of_block(block), block);
            self.logs[log.index()].sealed = self.pages_per_block();
            self.logs[log.index()].host_pages = found.readable;
            for (position, lpn, _) in scan.pages_of(block) {
                self.note_log_page(log, position, lpn);
            }
            taken.push(FoundLog {
                log,
                first: found.first,
                last: found.last,
                role: found.role,
            });
        }
        taken
    }

    fn take_pages(&mut self, scan: &Scan, newest: &Newest) {
        for (i, &at) in newest
            .place
            .iter()
            .enumerate()
            .filter(|(_, at)| at.is_some())
        {
            self.newest[i] = at;
            if let Some(log) = self.log_at(at).some() {
                let (l, _) = self.split(Lpn(i as u32));
                self.logs[log.index()].valid += 1;
                self.watch.gained(log, l);
            }
        }
        for (block, found) in scan.blocks().filter(|(_, found)| found.valid > 0) {
            if let Some(log) = self.log_of[self.in_space(block)].some() {
                let others = self.pages_per_block() - found.valid;
                self.watch.recovered(log, others);
            }
        }
    }

    /// Writes the whole map anew: nothing of the old one was needed.
    fn start_maps<F: Flash>(
        &mut self,
        plan: &HybridPlan,
        entries: u32,
        flash: &mut F,
    ) -> Result<(), F::Error> {
        if plan.map_blocks == 0 {
            return Ok(());
        }
        for die in 0..self.space.dies {
            let value = |entry| self.map_entry(die, entry, None);
            let area = MapArea::restart(
                &self.space,
                self.space.first_die + die,
                plan.map_blocks,
                plan.map_entries_per_page,
                entries,
                value,
                flash,
            )?;
            self.maps.push(area);
        }
        Ok(())
    }

    /// The logical block to which a log block with pages is aligned.
    pub fn aligned_to(&self, log: Log) -> Option<u32> {
        let l = self.logs[log.index()].aligned_to;
        ((l as usize) < self.data.len()).then_some(l)
    }

    /// Merges a found log block that the budget or the scheme has no place for.
    ///
    /// # Errors
    /// Those of the flash.
    pub fn give_up<F: Flash>(&mut self, flash: &mut F, log: Log) -> Result<(), F::Error> {
        self.merge_full(flash, log)?;
        self.merges = Merges::default();
        Ok(())
    }

    /// Gives a found log block to the logical block of all its pages, if they are of one, and it owns none.
    pub fn adopt(&mut self, log: Log) -> Option<u32> {
        let pages = self.pages_per_block();
        let mut blocks = (0..pages)
            .map(|position| self.log_page(log, position))
            .filter(|lpn| lpn.is_some())
            .map(|lpn| self.split(lpn).0);
        let l = blocks.next()?;
        let is_alone = blocks.all(|other| other == l) && self.owned(l).is_none();
        is_alone.then(|| self.own(log, l))?;
        Some(l)
    }
}

#[cfg(test)]
mod tests {
    use crate::cut::{Change, CutFlash};
    use crate::flash::Slot;
    use crate::ftl::bast::Bast;
    use crate::ftl::{Ftl, Means, Run, Start};
    use crate::ram::RamFlash;
    use crate::suite::Case;
    use crate::{Geometry, Lpn, Pbn, Space};

    fn write(ftl: &mut Bast, flash: &mut CutFlash, page: u32, byte: u8) {
        flash.ram.new_request(1)[0].fill(byte);
        let written = ftl.write(flash, &Run::whole(Lpn(page), 1));
        written.expect("there is power");
    }

    /// A rebuild leaves a log block that waits for its erase. What it holds is older than the rebuild, so a page
    /// that was trimmed there stays trimmed, and the rebuild is the data block.
    #[test]
    fn nothing_older_than_a_rebuild_comes_back() {
        let case = Case::small(1, 6, 4, 3).with("log_blocks", 2);
        let geometry = Geometry::new(1, 6, 4, 12, case.order).unwrap();
        let (space, options) = (Space::whole(&geometry), case.options_of::<Bast>().unwrap());
        let mut flash = CutFlash::new(RamFlash::new(&geometry, 16));
        let mut ftl = Bast::format(&space, &options, Start::Full, &mut flash).unwrap();
        for (page, byte) in [(1, 1), (0, 2), (0, 3), (2, 4)] {
            write(&mut ftl, &mut flash, page, byte);
        }
        ftl.trim(&mut flash, &Run::whole(Lpn(1), 1)).unwrap();
        // The log block is full: a full merge into block 4, erase of block 0, then of block 3.
        flash.states = Some(Vec::new());
        write(&mut ftl, &mut flash, 0, 5);
        let states = flash.states.take().unwrap();
        let at_erase = states
            .iter()
            .find(|(_, change)| *change == Change::Erase(Pbn(3)));
        let (ram, _) = at_erase.expect("the log block is erased");
        let mut flash = CutFlash::new(ram.clone());
        let ftl = Bast::recover(&space, &options, Means::FullScan, &mut flash).unwrap();
        assert_eq!(ftl.audit(&flash), Ok(11));
        assert_eq!(flash.ram.ledger.counters.oob_reads.map, 6 * 4);
        let mut ftl = ftl;
        for (page, byte) in [(0, 3), (1, 0), (2, 4)] {
            flash.ram.new_request(1);
            ftl.read(&mut flash, &Run::whole(Lpn(page), 1)).unwrap();
            assert_eq!(
                flash.ram.buffer()[Slot(0).0 as usize][0],
                byte,
                "page {page}"
            );
        }
    }
}
