//! Recovery of a hybrid by its map blocks: the block map is read, and of the pages only those of the log blocks.
//!
//! An entry is written when the block it names is complete, and before anything that it named is erased. So a block in
//! an entry is whole, whatever the cut was in, and a block in no entry is free: the target of a rebuild that was cut,
//! or a block whose erase was about to come, or had begun. A log block that becomes a data block may be in both its
//! entries, if they lie in two map pages: it is the data block.
//!
//! *Log pages against data pages.* A rebuild may have copied a page while an older copy still stands in a log block,
//! so for each page found in a log block the page of the data block is looked up too; the younger one counts.
//!
//! *Several dies* may have been at work. The map of one can give up a log block whose pages are still on their way to data
//! blocks of another. So on a device of one instance the log blocks that no entry names are read too: if one holds the
//! newest of a page, the full scan decides.
//!
//! *All other pages* lie in their data blocks, or nowhere. A page that was cut while the host wrote it there looks
//! programmed, but cannot be read. To find it, all data blocks would have to be read; so it is left to the
//! first read or copy of such a page, which reads its OOB first.

use std::collections::HashSet;

use super::map_entries::SEQUENTIAL_BIT;
use super::{Hybrid, Shortcuts, Watch};
use crate::parts::map_area::FoundArea;
use crate::parts::scan::{Depth, Newest, Rules, Scan};
use floatgate_core::address::{DieLpn, Lbn, Pbn, Ppn};
use floatgate_core::flash::{Cause, Flash, Role};

/// A log block that the map names.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NamedLog {
    /// Where it is.
    pub block: Pbn,
    /// Whether it is a sequential one, where merges alone write data blocks; else `false`.
    pub is_sequential: bool,
}

/// The block map as the map blocks held it.
#[derive(Debug)]
pub struct BlockMap {
    /// By logical block.
    pub data: Vec<Pbn>,
    /// The log blocks of all dies.
    pub logs: Vec<NamedLog>,
    /// Blocks in no entry that are not blank.
    pub(super) doomed: Vec<Pbn>,
}

impl BlockMap {
    /// The data blocks in which something counts.
    pub(super) fn data_in_use(self, scan: &Scan) -> Vec<Pbn> {
        let in_use = |&block: &Pbn| block.is_some() && scan.found(block).valid > 0;
        let data = self.data.into_iter();
        data.map(|block| Some(block).filter(in_use).unwrap_or(Pbn::NONE))
            .collect()
    }
}

/// Whether pages of that role are the host's in log blocks.
fn is_log_page(role: Role) -> bool {
    !matches!(role, Role::Data | Role::Map | Role::Summary)
}

impl<W: Watch> Hybrid<W> {
    /// The block map of all dies, if all of them can be relied on.
    pub(super) fn read_block_map<F: Flash>(
        &self,
        areas: &[FoundArea],
        flash: &mut F,
    ) -> Result<Option<BlockMap>, F::Error> {
        let (mut data, mut logs) = (Vec::with_capacity(self.data.len()), Vec::new());
        for area in areas {
            let Some(entries) = area.entries(flash)? else {
                return Ok(None);
            };
            let mut entries = entries.into_iter().map(Pbn);
            let per_die = self.space.geometry.logical_blocks_per_die() as usize;
            let geometry = &self.space.geometry;
            let is_here = |block: &Pbn| block.is_none() || geometry.die_of(*block) == area.die();
            let before = data.len();
            data.extend(entries.by_ref().take(per_die));
            if !data[before..].iter().all(is_here) {
                return Ok(None);
            }
            let kinds = W::MERGES_ALONE_WRITE_DATA && self.pages_per_block() > 1;
            let named = |entry: Pbn| NamedLog {
                block: Pbn(if kinds {
                    entry.0 & !SEQUENTIAL_BIT
                } else {
                    entry.0
                }),
                is_sequential: kinds && entry.0 & SEQUENTIAL_BIT != 0,
            };
            logs.extend(entries.filter(|log| log.is_some()).map(named));
        }
        Ok(self.checked(data, logs, flash))
    }

    /// The map, if every block that is named is one that may be, and named once. A log block that has just become a
    /// data block may still be in its old entry.
    fn checked<F: Flash>(
        &self,
        data: Vec<Pbn>,
        mut logs: Vec<NamedLog>,
        flash: &F,
    ) -> Option<BlockMap> {
        let geometry = &self.space.geometry;
        let first = geometry.pbn(self.space.first_die, 0).0;
        let usable = self.plan.usable_blocks(geometry);
        let mut is_named = vec![false; self.space.blocks() as usize];
        // Notes a block, and says whether it had been noted before; `None` if it may not be named at all.
        let mut name = |block: Pbn| {
            let named = is_named.get_mut(block.0.checked_sub(first)? as usize)?;
            let was_named = std::mem::replace(named, true);
            (block.0 % geometry.blocks_per_die < usable).then_some(was_named)
        };
        let named = data.iter().filter(|block| block.is_some());
        if !named.copied().all(|block| name(block) == Some(false)) {
            return None;
        }
        let known: Vec<Option<bool>> = logs.iter().map(|log| name(log.block)).collect();
        if known.contains(&None) {
            return None;
        }
        let mut is_new = known.iter().map(|&known| known == Some(false));
        logs.retain(|_| is_new.next() == Some(true));
        let free = (0..self.space.blocks())
            .filter(|&i| !is_named[i as usize])
            .map(|i| Pbn(first + i));
        let doomed: Vec<Pbn> = free
            .filter(|&block| {
                block.0 % geometry.blocks_per_die < usable
                    && flash.ledger().write_pointer(block) > 0
            })
            .collect();
        let room = FoundArea::most_doomed(flash);
        (doomed.len() <= room).then_some(BlockMap { data, logs, doomed })
    }

    /// Reads the log blocks, and the pages of the data blocks that lie in log blocks too. `None` if what they hold is
    /// not what the map says.
    pub(super) fn scan_by_map<F: Flash>(
        &mut self,
        map: &BlockMap,
        shortcuts: &mut impl Shortcuts<F>,
        flash: &mut F,
    ) -> Result<Option<(Scan, Newest)>, F::Error> {
        let mut scan = Scan::unread(&self.space, self.plan.map.map_blocks, flash);
        let mut is_in_log = vec![false; self.newest.len()];
        for &log in &map.logs {
            shortcuts.read_log(&mut scan, log, flash)?;
            for (_, lpn, _) in scan.pages_of(log.block) {
                is_in_log[lpn.index()] = true;
            }
        }
        let mut is_read = scan.rebuilt();
        let mut in_data = Vec::new();
        for lpn in (0..)
            .map(DieLpn)
            .zip(&is_in_log)
            .filter_map(|(lpn, &is_in)| is_in.then_some(lpn))
        {
            let (lbn, offset) = self.split(lpn);
            let block = map.data[lbn.index()];
            if block.is_some() {
                let at = self.space.geometry.ppn(block, offset);
                let (read, _) = flash.read_oob(at, Cause::Map, F::Token::default())?;
                match read {
                    Some(found) => in_data.push((lpn, at, found.read.sequence)),
                    None => is_read[lbn.index()] = true,
                }
            }
        }
        for (&block, _) in map
            .data
            .iter()
            .zip(&is_read)
            .filter(|&(block, &is)| is && block.is_some())
        {
            scan.read_block(block, Depth::UpToErased, flash)?;
        }
        let mut newest = scan.newest(Rules::Rebuilds);
        for (lpn, at, sequence) in in_data {
            let known = &mut newest.sequence[lpn.index()];
            if !is_read[self.split(lpn).0.index()] && sequence > *known {
                *known = sequence;
                newest.place[lpn.index()] = at;
            }
        }
        if !self.agrees(map, &newest) || self.has_lost_log_pages(map, &newest, flash)? {
            return Ok(None);
        }
        self.assume_programmed(map, &is_in_log, &is_read, &mut newest, flash);
        scan.count_valid(&newest);
        Ok(Some((scan, newest)))
    }

    /// Whether a log block that the map gives up holds a page that nothing else has as new. The map of its die says that
    /// all of it has moved, but the dies to which it has moved may not have come that far.
    fn has_lost_log_pages<F: Flash>(
        &self,
        map: &BlockMap,
        newest: &Newest,
        flash: &mut F,
    ) -> Result<bool, F::Error> {
        if self.space.dies == 1 {
            return Ok(false);
        }
        let geometry = &self.space.geometry;
        for &block in &map.doomed {
            for position in 0..flash.ledger().write_pointer(block) {
                let at = geometry.ppn(block, position);
                let (read, _) = flash.read_oob(at, Cause::Map, F::Token::default())?;
                let read = read.map(|found| found.read);
                let Some(page) = read.filter(|page| is_log_page(page.oob.role)) else {
                    continue;
                };
                let Some(lpn) = self.space.local_lpn(page.oob.lpn) else {
                    continue;
                };
                let mut known = newest.sequence[lpn.index()];
                let (lbn, offset) = self.split(lpn);
                if known == 0 && map.data[lbn.index()].is_some() {
                    let data = geometry.ppn(map.data[lbn.index()], offset);
                    let (read, _) = flash.read_oob(data, Cause::Map, F::Token::default())?;
                    known = read.map_or(0, |found| found.read.sequence);
                }
                if page.sequence > known {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }

    /// Whether every page that was found lies in a log block, or where its data block has it.
    fn agrees(&self, map: &BlockMap, newest: &Newest) -> bool {
        let geometry = &self.space.geometry;
        let logs: HashSet<Pbn> = map.logs.iter().map(|log| log.block).collect();
        let mut pages = (0..).map(DieLpn).zip(&newest.place);
        pages.all(|(lpn, &at)| {
            let (lbn, offset) = self.split(lpn);
            at.is_none()
                || geometry.split(at) == (map.data[lbn.index()], offset)
                || logs.contains(&geometry.block_of(at))
        })
    }

    /// Takes for the newest copy what looks programmed in a data block, if nothing of the page has been read.
    fn assume_programmed<F: Flash>(
        &mut self,
        map: &BlockMap,
        is_in_log: &[bool],
        is_read: &[bool],
        newest: &mut Newest,
        flash: &F,
    ) {
        self.unverified = match W::MERGES_ALONE_WRITE_DATA {
            true => Vec::new(),
            false => vec![0; self.newest.len().div_ceil(64)],
        };
        for (i, place) in newest.place.iter_mut().enumerate() {
            let (lbn, offset) = self.split(DieLpn(i as u32));
            let block = map.data[lbn.index()];
            if is_in_log[i] || is_read[lbn.index()] || block.is_none() {
                continue;
            }
            let at = self.space.geometry.ppn(block, offset);
            if flash.ledger().is_programmed(at) {
                *place = at;
                if let Some(word) = self.unverified.get_mut(i / 64) {
                    *word |= 1 << (i % 64);
                }
            }
        }
    }

    /// Finds out whether a page can be read, if nobody has yet; it is not live if it cannot.
    #[inline(always)]
    pub(super) fn verify<F: Flash>(&mut self, flash: &mut F, lpn: DieLpn) -> Result<(), F::Error> {
        if self.unverified.is_empty() {
            return Ok(());
        }
        self.prove_now(flash, lpn)
    }

    #[cold]
    fn prove_now<F: Flash>(&mut self, flash: &mut F, lpn: DieLpn) -> Result<(), F::Error> {
        let (word, bit) = (lpn.index() / 64, lpn.0 % 64);
        if self.unverified[word] >> bit & 1 == 0 {
            return Ok(());
        }
        self.unverified[word] &= !(1 << bit);
        let at = self.newest(lpn);
        if at.is_some() && self.newest_log(lpn).is_none() {
            let (read, _) = flash.read_oob(at, Cause::Map, F::Token::default())?;
            if read.is_none() {
                self.newest[lpn.index()] = Ppn::NONE;
            }
        }
        Ok(())
    }

    /// The same for all pages of a logical block.
    #[inline(always)]
    pub(super) fn prove_block<F: Flash>(
        &mut self,
        flash: &mut F,
        lbn: Lbn,
    ) -> Result<(), F::Error> {
        if self.unverified.is_empty() {
            return Ok(());
        }
        let pages = self.pages_per_block();
        (lbn.0 * pages..(lbn.0 + 1) * pages).try_for_each(|lpn| self.prove_now(flash, DieLpn(lpn)))
    }
}

#[cfg(test)]
mod tests {
    use crate::bast::Bast;
    use floatgate_core::ftl::{Ftl, RecoveryMode, Run, Start};
    use floatgate_core::rng::SplitMix64;
    use floatgate_core::{DieLpn, Lpn, Pbn, Ppn, ProgramOrder, Space, Striped};
    use floatgate_testkit::cut::{Change, CutFlash, Tear};
    use floatgate_testkit::ram::RamFlash;
    use floatgate_testkit::suite::{Bench, Case};

    type S = Striped<Bast>;

    fn small() -> (Case, Bench<S>) {
        let case = Case::small(1, 9, 4, 3)
            .with("log_blocks", 2)
            .with("map_blocks", 2)
            .with("map_entries_per_page", 2);
        let bench = Bench::new(&Case {
            start: floatgate_core::Start::Full,
            ..case.clone()
        });
        (case, bench.unwrap())
    }

    /// OOB and page reads of a recovery.
    fn recover(case: &Case, means: RecoveryMode, flash: &mut RamFlash) -> (S, [u64; 2]) {
        flash.ledger.reset_counters();
        let space = Space::whole(flash.ledger.geometry());
        let ftl = S::recover(&space, &case.options_of::<S>().unwrap(), means, flash).unwrap();
        let done = &flash.ledger.counters;
        let reads = [done.oob_reads.map, done.reads.map];
        (ftl, reads)
    }

    /// Worked by hand. The 3 map pages and the first log block's fill the first map block; the second log block's
    /// page makes the area turn: 4 pages in the second, the first erased. So 5 OOBs of the area, 3 map pages, 3 and 2
    /// OOBs of the log blocks, and the 3 pages in them once more in the data blocks.
    #[test]
    fn reads_of_a_small_device() {
        let (case, mut bench) = small();
        bench.play("W 1 1, W 0 1, W 5 1");
        let (ftl, reads) = recover(&case, RecoveryMode::Fastest, &mut bench.flash);
        assert_eq!(reads, [5 + 3 + 2 + 3, 3]);
        bench.ftl = ftl;
        bench.read_all().unwrap();
        // Those in no log block are looked at when they are first read.
        assert_eq!(bench.flash.ledger.counters.oob_reads.map, 13 + 9);
        bench.read_all().unwrap();
        assert_eq!(bench.flash.ledger.counters.oob_reads.map, 13 + 9);
    }

    /// Page 9 was trimmed before a rebuild and lies in no data block: neither way brings it back.
    #[test]
    fn what_a_rebuild_left_out_stays_out() {
        let (case, mut bench) = small();
        bench.play("W 9 1, W 8 1, T 9 1, W 10 1, W 8 1, W 8 1");
        for means in [RecoveryMode::Fastest, RecoveryMode::FullScan] {
            let mut flash = bench.flash.clone();
            let (mut ftl, _) = recover(&case, means, &mut flash);
            flash.new_request(1);
            ftl.read(&mut flash, &Run::whole(Lpn(9), 1)).unwrap();
            assert_eq!((ftl.audit(&flash), flash.unwritten_reads), (Ok(11), 1));
        }
    }

    /// Without the newest copy of a map page it takes the full scan.
    #[test]
    fn a_map_that_is_not_whole_is_not_trusted() {
        let (case, mut bench) = small();
        bench.play("W 1 1, W 0 1, W 5 1");
        // The first page that the turn of the area moved.
        bench.flash.lose(Ppn(8 * 4));
        let (ftl, reads) = recover(&case, RecoveryMode::Fastest, &mut bench.flash);
        assert_eq!(reads, [5 + 7 * 4, 0]);
        bench.ftl = ftl;
        bench.read_all().unwrap();
    }

    /// A device of one die whose power can be cut, and what the host knows of it.
    struct Cutting {
        case: Case,
        space: Space,
        ftl: Bast,
        flash: CutFlash,
        bytes: Vec<u8>,
    }

    impl Cutting {
        fn new(case: Case) -> Self {
            let geometry = case.geometry().unwrap();
            let space = Space::whole(&geometry);
            let mut flash = CutFlash::new(RamFlash::new(&geometry, 16));
            let options = case.options_of::<Bast>().unwrap();
            let ftl = Bast::format(&space, &options, case.start, &mut flash).unwrap();
            let bytes = vec![0; case.logical_pages as usize];
            Self {
                case,
                space,
                ftl,
                flash,
                bytes,
            }
        }

        fn write(&mut self, page: u32, byte: u8) {
            self.flash.ram.new_request(1)[0].fill(byte);
            let run = Run::whole(DieLpn(page), 1);
            self.ftl.write(&mut self.flash, &run).unwrap();
            self.bytes[page as usize] = byte;
        }

        /// The same; returns the state before every change.
        fn watch_write(&mut self, page: u32, byte: u8) -> Vec<(RamFlash, Change)> {
            self.flash.states = Some(Vec::new());
            self.write(page, byte);
            self.flash.states.take().unwrap()
        }

        /// What the map blocks make of a flash; with the state before every change.
        fn recover(&self, ram: RamFlash) -> (Self, Vec<(RamFlash, Change)>) {
            let mut flash = CutFlash::new(ram);
            flash.states = Some(Vec::new());
            let options = self.case.options_of::<Bast>().unwrap();
            let means = RecoveryMode::Fastest;
            let ftl = Bast::recover(&self.space, &options, means, &mut flash).unwrap();
            let states = flash.states.take().unwrap();
            let device = Self {
                case: self.case.clone(),
                space: self.space.clone(),
                ftl,
                flash,
                bytes: self.bytes.clone(),
            };
            (device, states)
        }

        fn read(&mut self, page: u32) -> u8 {
            self.flash.ram.new_request(1);
            let run = Run::whole(DieLpn(page), 1);
            self.ftl.read(&mut self.flash, &run).unwrap();
            self.flash.ram.buffer()[0][0]
        }
    }

    /// The old data block of a switch merge was being erased, and a trimmed page in it is still there: it is in no entry
    /// any more, so nobody writes where it looks blank.
    #[test]
    fn a_switch_merge_leaves_the_map_before_it_erases() {
        let (case, _) = small();
        let case = Case {
            order: ProgramOrder::Any,
            ..case
        };
        let mut device = Cutting::new(case);
        for page in [0, 1] {
            device.write(page, 1);
        }
        let trimmed = Run::whole(DieLpn(2), 2);
        device.ftl.trim(&mut device.flash, &trimmed).unwrap();
        device.write(4, 2);
        let states = device.watch_write(8, 3);
        let erase = Change::Erase(Pbn(0));
        let (ram, _) = states.iter().find(|(_, change)| *change == erase).unwrap();
        for seed in 0..40 {
            let mut ram = ram.clone();
            Tear::Torn(seed).apply(&mut ram, erase);
            let (mut after, _) = device.recover(ram);
            for page in [2, 3] {
                after.write(page, 4);
            }
            let read = [0, 1, 2, 3].map(|page| after.read(page));
            assert_eq!(read, [1, 1, 4, 4], "seed {seed}");
        }
    }

    /// The power goes while the map area makes room for itself, and again while a recovery erases a map block to write its
    /// void page: what is left of that block can hold an older copy of a map page, and nothing that cannot be read.
    #[test]
    fn a_map_page_older_than_it_was_is_not_trusted() {
        let (case, _) = small();
        let case = Case {
            start: Start::Empty,
            ..case
        };
        let mut device = Cutting::new(case);
        let mut rng = SplitMix64::new(5);
        let mut erases = 0;
        for number in 1..60 {
            let (before, page) = (device.bytes.clone(), rng.below(12) as u32);
            let states = device.watch_write(page, number);
            for (ram, _) in states {
                let (_, changes) = device.recover(ram);
                let (ram, change) = &changes[0];
                let is_map = |block: &Pbn| block.0 >= 7;
                if !matches!(change, Change::Erase(block) if is_map(block)) {
                    continue;
                }
                erases += 1;
                for seed in 0..60 {
                    let mut ram = ram.clone();
                    Tear::Torn(seed).apply(&mut ram, *change);
                    let (mut after, _) = device.recover(ram);
                    for other in 0..12 {
                        let (byte, i) = (after.read(other), other as usize);
                        let is_cut = other == page && byte == before[i];
                        assert!(
                            is_cut || byte == device.bytes[i],
                            "page {other}, seed {seed}"
                        );
                    }
                }
            }
        }
        assert!(erases > 3, "{erases}");
    }
}
