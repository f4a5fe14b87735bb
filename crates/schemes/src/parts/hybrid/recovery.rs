//! Recovery of a hybrid: the full OOB scan, and the choice of data blocks and log blocks. With map blocks there is
//! a faster way ([`from_map`](super::from_map)); the map is made anew after either.
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
//!
//! *The map names whole blocks only.* The scan may find a log block in use whose erase was cut, because trimmed pages in it
//! look alive. Its summary, if that is left, tells of pages that are gone, and whoever comes back by the map would believe
//! it. So such a log block is emptied, by rebuilding the logical blocks of its pages, before the map is made anew.

use super::{
    BlockMap, Hybrid, HybridPlan, KnownBlocks, Log, LogPage, NamedLog, Watch, programmable,
};
use crate::parts::map_area::{FoundArea, MapArea};
use crate::parts::pool::Pool;
use crate::parts::scan::{Depth, Newest, Rules, Scan};
use floatgate_core::Refusal;
use floatgate_core::address::{DieLpn, Lbn, Pbn};
use floatgate_core::described::RecoveryCost;
use floatgate_core::flash::{Flash, Role};
use floatgate_core::ftl::{MountError, RecoveryMode};
use floatgate_core::geometry::{Geometry, Space};
use floatgate_core::report::Merges;

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

/// What the recovery of a hybrid takes: the full scan, and with map blocks the way by these. `plan` as the scheme makes
/// it for the whole device; where it refuses, there is only the scan to tell of.
pub fn recovery_costs(geometry: &Geometry, plan: Result<HybridPlan, Refusal>) -> Vec<RecoveryCost> {
    let scan = RecoveryCost::scan("full scan", geometry.pages().into());
    let Some(plan) = plan.ok().filter(HybridPlan::has_map) else {
        return vec![scan];
    };
    let shape = plan.map_shape(geometry);
    if shape.check(geometry.pages_per_block).is_err() {
        return vec![scan];
    }
    let on_all_dies = |n: u32| u64::from(geometry.dies) * u64::from(n);
    let pages = u64::from(geometry.pages_per_block);
    let scan = RecoveryCost {
        // The void page of an earlier recovery that was cut too.
        page_reads: on_all_dies(1),
        programs: on_all_dies(shape.pages() + 1),
        erases: on_all_dies(shape.blocks + 1),
        ..scan
    };
    let by_map = RecoveryCost {
        means: "map blocks",
        oob_reads: pages * (on_all_dies(shape.blocks) + 2 * on_all_dies(plan.log_slots)),
        page_reads: on_all_dies(shape.pages()),
        ..scan.clone()
    };
    vec![scan, by_map]
}

/// Faster ways that a scheme has of its own, asked where [`RecoveryMode::Fastest`] is wanted.
pub trait Shortcuts<F: Flash> {
    /// All tables, if the flash holds them and nothing has changed since; `map`: the block map, if there is one that
    /// can be relied on. OOBs are read through `scan`, which goes on as the full scan if there is none.
    ///
    /// # Errors
    /// Those of the flash.
    fn tables(
        &mut self,
        map: Option<&BlockMap>,
        scan: &mut Scan,
        flash: &mut F,
    ) -> Result<Option<KnownBlocks>, F::Error> {
        let _ = (map, scan, flash);
        Ok(None)
    }

    /// Notes in `scan` what is in a log block.
    ///
    /// # Errors
    /// Those of the flash.
    fn read_log(&mut self, scan: &mut Scan, log: NamedLog, flash: &mut F) -> Result<(), F::Error> {
        scan.read_block(log.block, Depth::UpToErased, flash)
    }
}

/// None but the map blocks.
impl<F: Flash> Shortcuts<F> for () {}

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
        means: RecoveryMode,
        watch: W,
        flash: &mut F,
    ) -> Result<(Self, Vec<FoundLog>), MountError<F::Error>> {
        Self::recover_with(space, plan, means, watch, &mut (), flash)
    }

    /// The same for a scheme that has faster ways of its own.
    ///
    /// # Errors
    /// The refusal of [`Hybrid::format`], or an error of the flash.
    pub fn recover_with<F: Flash>(
        space: &Space,
        plan: &HybridPlan,
        means: RecoveryMode,
        watch: W,
        shortcuts: &mut impl Shortcuts<F>,
        flash: &mut F,
    ) -> Result<(Self, Vec<FoundLog>), MountError<F::Error>> {
        let mut hybrid = Self::blank(space, plan, watch)?;
        let found = hybrid.mount(means, shortcuts, flash)?;
        hybrid.merges = Merges::default();
        Ok((hybrid, found))
    }

    fn mount<F: Flash>(
        &mut self,
        means: RecoveryMode,
        shortcuts: &mut impl Shortcuts<F>,
        flash: &mut F,
    ) -> Result<Vec<FoundLog>, MountError<F::Error>> {
        let failed = MountError::Flash;
        let areas = self.find_maps(flash).map_err(failed)?;
        let map = match means {
            RecoveryMode::Fastest if self.plan.has_map() => {
                self.read_block_map(&areas, flash).map_err(failed)?
            }
            RecoveryMode::Fastest | RecoveryMode::FullScan => None,
        };
        let mut scan = Scan::unread(&self.space, self.plan.map.map_blocks, flash);
        if means == RecoveryMode::Fastest {
            let known = shortcuts.tables(map.as_ref(), &mut scan, flash);
            let known = known.map_err(failed)?;
            if let Some(known) = known.filter(|known| self.has_slots_for(known)) {
                let taken = self.claim_tables(known, &areas, flash);
                return taken.map_err(failed);
            }
        }
        let by_map = match map {
            Some(map) => {
                let found = self.scan_by_map(&map, shortcuts, flash);
                found.map_err(failed)?.map(|found| (map, found))
            }
            None => None,
        };
        let (found, doubtful) = match by_map {
            Some((map, (scan, newest))) => {
                let doomed = map.doomed.clone();
                self.data = map.data_in_use(&scan);
                ((scan, newest, doomed), Vec::new())
            }
            None => {
                let found = self.scan_everything(scan, &areas, flash);
                let found = found.map_err(failed)?;
                let mut doubtful = self.choose_data_blocks(&found.0, flash);
                if self.plan.has_map() {
                    doubtful.append(&mut self.in_torn_logs(&found.0, &found.1));
                    doubtful.sort_unstable();
                    doubtful.dedup();
                }
                (found, doubtful)
            }
        };
        self.check_room_for(&found.0, &doubtful)?;
        let taken = self.take_scanned(found, &doubtful, &areas, flash);
        taken.map_err(failed)
    }

    /// The tables from a scan: of the blocks in use those that are not data blocks are log blocks, all others are erased.
    fn take_scanned<F: Flash>(
        &mut self,
        (mut scan, newest, doomed): (Scan, Newest, Vec<Pbn>),
        doubtful: &[Lbn],
        areas: &[FoundArea],
        flash: &mut F,
    ) -> Result<Vec<FoundLog>, F::Error> {
        let voids = self.make_maps_void(areas, &doomed, flash)?;
        let blank = scan.erase_useless(flash)?;
        for die in 0..self.space.dies {
            let on_die = blank
                .iter()
                .filter(|&&block| self.die_of_block(block) == die);
            let usable = self.plan.usable_blocks(&self.space.geometry);
            self.pools.push(Pool::new(on_die.copied(), usable));
        }
        let mut found = self.take_log_blocks(&scan);
        self.take_pages(&scan, &newest);
        for &lbn in doubtful {
            self.rebuild(flash, lbn)?;
        }
        for found in &found {
            if self.valid(found.log) == 0 {
                self.erase_log(flash, found.log)?;
            }
        }
        self.restart_maps(&voids, flash)?;
        found.retain(|found| self.exists(found.log));
        Ok(found)
    }

    /// The full scan; also the blocks that a recovery by map blocks was erasing when it was cut.
    fn scan_everything<F: Flash>(
        &self,
        mut scan: Scan,
        areas: &[FoundArea],
        flash: &mut F,
    ) -> Result<(Scan, Newest, Vec<Pbn>), F::Error> {
        scan.read_rest(Depth::Whole, flash)?;
        let mut doomed = Vec::new();
        for area in areas {
            let (since, blocks) = area.doomed(flash)?;
            let is_old = |block: &Pbn| {
                scan.contains(*block) && {
                    let found = scan.found(*block);
                    found.is_used && found.last < since
                }
            };
            doomed.extend(blocks.into_iter().filter(is_old));
        }
        doomed.iter().for_each(|&block| scan.disregard(block));
        let newest = scan.newest(Rules::Rebuilds);
        Ok((scan, newest, doomed))
    }

    /// Returns the logical blocks that have to be rebuilt because their data block has room, but cannot be
    /// trusted.
    fn choose_data_blocks<F: Flash>(&mut self, scan: &Scan, flash: &F) -> Vec<Lbn> {
        let mut rivals = vec![0; self.data.len()];
        for (block, found) in scan.blocks().filter(|(_, found)| found.valid > 0) {
            let is_candidate = !W::MERGES_ALONE_WRITE_DATA
                || matches!(found.role, Role::Data | Role::LogSequential);
            let aligned_to = scan.aligned_to(block).filter(|_| is_candidate);
            let Some(lbn) = aligned_to else { continue };
            if self.die_of_logical(lbn) != self.die_of_block(block) {
                continue;
            }
            rivals[lbn.index()] += 1;
            let data = &mut self.data[lbn.index()];
            if data.is_none() || found.first < scan.found(*data).first {
                *data = block;
            }
        }
        let is_doubtful = |&lbn: &Lbn| {
            let block = self.data[lbn.index()];
            if W::MERGES_ALONE_WRITE_DATA {
                // Nobody programs it, but a page that cannot be read would be taken for one by whoever does not
                // read its OOB.
                return block.is_some()
                    && scan.found(block).readable < flash.ledger().programmed_pages(block);
            }
            let has_room = |block| {
                (0..self.pages_per_block()).any(|offset| programmable(flash, block, offset))
            };
            block.is_some()
                && (rivals[lbn.index()] > 1 || scan.found(block).role != Role::Data)
                && has_room(block)
        };
        (0..self.data.len() as u32)
            .map(Lbn)
            .filter(is_doubtful)
            .collect()
    }

    /// The logical blocks with a valid page in a log block that lacks pages its summary tells of: only an erase that was
    /// cut does that, or rot, for the summary comes last. There is always room to rebuild them, with a data block or
    /// without one: a die has a block for each data block and log block that there can be, and one more.
    fn in_torn_logs(&self, scan: &Scan, newest: &Newest) -> Vec<Lbn> {
        let pages = self.pages_per_block();
        let is_torn = |block: Pbn| {
            let found = scan.found(block);
            found.has_summary && found.readable + 1 < pages
        };
        let places = (0..).map(DieLpn).zip(&newest.place);
        places
            .filter(|&(_, &at)| at.is_some() && is_torn(self.space.geometry.block_of(at)))
            .map(|(lpn, _)| self.split(lpn).0)
            .collect()
    }

    fn take_log_blocks(&mut self, scan: &Scan) -> Vec<FoundLog> {
        let mut is_data = vec![false; self.space.blocks() as usize];
        for &block in self.data.iter().filter(|block| block.is_some()) {
            is_data[self.in_space(block)] = true;
        }
        let in_use = scan.blocks().filter(|(_, found)| found.valid > 0);
        let mut logs: Vec<_> = in_use
            .filter(|&(block, _)| !is_data[self.in_space(block)])
            .collect();
        logs.sort_unstable_by_key(|(_, found)| found.first);
        let mut taken = Vec::with_capacity(logs.len());
        for (block, found) in logs {
            let log = self.logs.add(self.die_of_block(block), block);
            self.logs[log].sealed = self.pages_per_block();
            self.logs[log].host_pages = found.readable;
            self.logs[log].is_sequential = found.role == Role::LogSequential;
            for (position, lpn, read) in scan.pages_of(block) {
                self.logs
                    .note_page(LogPage { log, position }, lpn, self.split(lpn));
                self.watch.found_page(log, position, read.sequence);
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
            if let Some(log) = self.log_at(at) {
                let (lbn, _) = self.split(DieLpn(i as u32));
                self.logs[log].valid += 1;
                self.watch.gained(log, lbn);
            }
        }
        for (block, found) in scan.blocks().filter(|(_, found)| found.valid > 0) {
            if let Some(log) = self.logs.at(block) {
                let others = self.pages_per_block() - found.valid;
                self.watch.recovered(log, others);
            }
        }
    }

    /// The map areas as the flash holds them, by die.
    fn find_maps<F: Flash>(&self, flash: &mut F) -> Result<Vec<FoundArea>, F::Error> {
        let shape = self.plan.map_shape(&self.space.geometry);
        let dies = if self.plan.has_map() {
            self.space.dies
        } else {
            0
        };
        let first = self.space.first_die;
        (first..first + dies)
            .map(|die| FoundArea::read(&self.space, die, shape, flash))
            .collect()
    }

    /// Before anything is changed: what the maps say is not true from now on. Returns the block that says so, by die.
    pub(super) fn make_maps_void<F: Flash>(
        &self,
        areas: &[FoundArea],
        doomed: &[Pbn],
        flash: &mut F,
    ) -> Result<Vec<Pbn>, F::Error> {
        let make_void = |(die, area): (u32, &FoundArea)| {
            let on_die = doomed.iter().copied();
            let here: Vec<Pbn> = on_die
                .filter(|&block| self.die_of_block(block) == die)
                .collect();
            area.make_void(&here, flash)
        };
        let voids = (0..).zip(areas).map(make_void).collect();
        // Of all dies: what one changes makes the maps of the others untrue.
        flash.drain();
        voids
    }

    /// Writes the maps anew.
    pub(super) fn restart_maps<F: Flash>(
        &mut self,
        voids: &[Pbn],
        flash: &mut F,
    ) -> Result<(), F::Error> {
        let shape = self.plan.map_shape(&self.space.geometry);
        for (die, &void) in (0..).zip(voids) {
            let value = |entry| self.map_entry(die, entry, None);
            let first_die = self.space.first_die;
            let area = MapArea::restart(&self.space, first_die + die, shape, void, value, flash)?;
            self.maps.push(area);
        }
        Ok(())
    }

    /// The logical block to which a log block with pages is aligned.
    pub fn aligned_to(&self, log: Log) -> Option<Lbn> {
        let lbn = self.logs[log].aligned_to;
        ((lbn.index()) < self.data.len()).then_some(lbn)
    }

    /// Merges a found log block that the budget or the scheme has no place for.
    ///
    /// # Errors
    /// A refusal if there are not the erased blocks for it, or an error of the flash.
    pub fn merge_away<F: Flash>(
        &mut self,
        flash: &mut F,
        log: Log,
    ) -> Result<(), MountError<F::Error>> {
        self.check_room_to_merge(log)?;
        self.merge_full(flash, log).map_err(MountError::Flash)?;
        self.merges = Merges::default();
        Ok(())
    }

    /// Gives a found log block to the logical block of all its pages, if they are of one, and it owns none.
    pub fn claim(&mut self, log: Log) -> Option<Lbn> {
        let pages = self.pages_per_block();
        let mut blocks = (0..pages)
            .map(|position| self.log_page(log, position))
            .filter(|lpn| lpn.is_some())
            .map(|lpn| self.split(lpn).0);
        let lbn = blocks.next()?;
        let is_alone = blocks.all(|other| other == lbn) && self.owned(lbn).is_none();
        is_alone.then(|| self.logs.own(log, lbn))?;
        Some(lbn)
    }
}

#[cfg(test)]
mod tests {
    use crate::bast::Bast;
    use floatgate_core::flash::Slot;
    use floatgate_core::ftl::{Ftl, RecoveryMode, Run, Start};
    use floatgate_core::{DieLpn, Geometry, Pbn, Space};
    use floatgate_testkit::cut::{Change, CutFlash};
    use floatgate_testkit::ram::RamFlash;
    use floatgate_testkit::suite::Case;

    fn write(ftl: &mut Bast, flash: &mut CutFlash, page: u32, byte: u8) {
        flash.ram.new_request(1)[0].fill(byte);
        let written = ftl.write(flash, &Run::whole(DieLpn(page), 1));
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
        ftl.trim(&mut flash, &Run::whole(DieLpn(1), 1)).unwrap();
        // The log block is full: a full merge into block 4, erase of block 0, then of block 3.
        flash.states = Some(Vec::new());
        write(&mut ftl, &mut flash, 0, 5);
        let states = flash.states.take().unwrap();
        let at_erase = states
            .iter()
            .find(|(_, change)| *change == Change::Erase(Pbn(3)));
        let (ram, _) = at_erase.expect("the log block is erased");
        let mut flash = CutFlash::new(ram.clone());
        let ftl = Bast::recover(&space, &options, RecoveryMode::FullScan, &mut flash).unwrap();
        assert_eq!(ftl.audit(&flash), Ok(11));
        assert_eq!(flash.ram.ledger.counters.oob_reads.map, 6 * 4);
        let mut ftl = ftl;
        for (page, byte) in [(0, 3), (1, 0), (2, 4)] {
            flash.ram.new_request(1);
            ftl.read(&mut flash, &Run::whole(DieLpn(page), 1)).unwrap();
            assert_eq!(
                flash.ram.buffer()[Slot(0).0 as usize][0],
                byte,
                "page {page}"
            );
        }
    }
}
