//! The power of a chip, as a laboratory has it in hand: it goes in the middle of an operation that was named before, and
//! the chip's operations take the time that they take on real flash.
//!
//! Every device that is mounted by name stands on such a chip: there is one device of each scheme in the program, and a
//! chip whose power stays on costs it a comparison for each operation.

use floatgate_core::rng::SplitMix64;
use floatgate_core::{Geometry, Lpn, Pbn, Ppn};

use crate::entry::PcmEntry;
use crate::image::ImageNand;
use crate::nand::{BlockState, Damage, Nand, NandError, Spare};
use crate::tear::{CutKind, HiddenTears, Tear};

/// How long the operations of a chip take, in nanoseconds, the transfer of a page included.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Times {
    /// A page is read.
    pub read_ns: u64,
    /// A spare area alone is read.
    pub oob_read_ns: u64,
    /// A page is programmed.
    pub program_ns: u64,
    /// A block is erased.
    pub erase_ns: u64,
}

/// When each die is done with what it was asked to do. A die does one operation after the other in the order in which
/// they were asked for, none before the request that caused it arrived; dies work at the same time.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Pace {
    times: Times,
    /// When each die is free.
    free_ns: Vec<u64>,
    begin_ns: u64,
    end_ns: u64,
}

impl Pace {
    /// The pace of so many dies that have nothing to do.
    pub fn new(times: Times, dies: u32) -> Self {
        Self {
            times,
            free_ns: vec![0; dies as usize],
            begin_ns: 0,
            end_ns: 0,
        }
    }

    /// A request arrives: what is done from now on is done for it.
    pub fn begin(&mut self, now_ns: u64) {
        (self.begin_ns, self.end_ns) = (now_ns, now_ns);
    }

    /// When the last operation of the request is done; its arrival if it caused none.
    pub fn end_ns(&self) -> u64 {
        self.end_ns
    }

    /// The request was done by then: nobody waits for what was done since.
    pub fn set_end_ns(&mut self, end_ns: u64) {
        self.end_ns = end_ns;
    }

    fn take(&mut self, die: u32, ns: u64) {
        let free = &mut self.free_ns[die as usize];
        *free = (*free).max(self.begin_ns) + ns;
        self.end_ns = self.end_ns.max(*free);
    }

    /// All that was ever asked for is waited for.
    fn take_flush(&mut self) {
        let last = self.free_ns.iter().max();
        self.end_ns = self.end_ns.max(last.copied().unwrap_or(0));
    }
}

/// What a chip has done since the power came on, the work of spare blocks included.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, serde::Serialize, serde::Deserialize)]
pub struct ChipCounts {
    /// Pages read.
    pub reads: u64,
    /// Spare areas read alone.
    pub oob_reads: u64,
    /// Pages programmed.
    pub programs: u64,
    /// Blocks erased.
    pub erases: u64,
    /// Blocks marked as bad.
    pub marks: u64,
}

impl ChipCounts {
    /// The operations that changed the chip. A cut names one of them.
    pub fn changes(&self) -> u64 {
        self.programs + self.erases + self.marks
    }
}

/// The power of a chip.
#[derive(Clone, Debug)]
pub struct Supply {
    counts: ChipCounts,
    /// Operations that changed the chip, the one under way included.
    changes: u64,
    /// Number of the operation in which the power goes, from 1; 0 if it stays.
    cut_at: u64,
    kind: CutKind,
    rng: SplitMix64,
    is_off: bool,
    /// Whether the torn program of an upper page takes its lower page with it.
    paired_pages: bool,
    pace: Option<Pace>,
    dies: u32,
}

impl Supply {
    pub(crate) fn new(dies: u32, paired_pages: bool) -> Self {
        Self {
            counts: ChipCounts::default(),
            changes: 0,
            cut_at: 0,
            kind: CutKind::Before,
            rng: SplitMix64::new(0),
            is_off: false,
            paired_pages,
            pace: None,
            dies,
        }
    }

    /// What the chip has done.
    pub fn counts(&self) -> ChipCounts {
        self.counts
    }

    /// Operations so far that changed the chip.
    pub fn changes(&self) -> u64 {
        self.changes
    }

    /// From now on the power goes in the n-th operation that changes the chip, 1 being the next.
    pub fn arm(&mut self, nth: u64, kind: CutKind, seed: u64) {
        self.cut_at = self.changes.saturating_add(nth.max(1));
        self.kind = kind;
        self.rng = SplitMix64::new(seed);
    }

    /// The power stays on after all.
    pub fn disarm(&mut self) {
        self.cut_at = 0;
    }

    /// The power goes, between two operations.
    pub fn cut(&mut self) {
        self.is_off = true;
    }

    /// Whether the power is gone. It does not come back: the device is to be mounted anew.
    pub fn is_off(&self) -> bool {
        self.is_off
    }

    /// From now on the operations take their time.
    pub fn set_pace(&mut self, times: Times) {
        self.pace = Some(Pace::new(times, self.dies));
    }

    /// The time that the operations take, if they take any.
    pub fn pace(&mut self) -> Option<&mut Pace> {
        self.pace.as_mut()
    }

    fn check(&self) -> Result<(), NandError> {
        match self.is_off {
            true => Err(NandError::PowerCut),
            false => Ok(()),
        }
    }

    /// Numbers an operation that changes the chip; says whether the power goes in it.
    fn begin(&mut self) -> Result<bool, NandError> {
        self.check()?;
        self.changes += 1;
        self.is_off = self.changes == self.cut_at;
        Ok(self.is_off)
    }

    pub(crate) fn take(&mut self, die: u32, ns: impl FnOnce(&Times) -> u64) {
        if let Some(pace) = &mut self.pace {
            let ns = ns(&pace.times);
            pace.take(die, ns);
        }
    }
}

/// A chip whose power is in hand. See the module's text.
#[derive(Debug)]
pub struct Powered<N> {
    nand: N,
    supply: Supply,
}

impl<N: Damage> Powered<N> {
    /// A chip whose power is on.
    pub fn new(nand: N, paired_pages: bool) -> Self {
        let supply = Supply::new(nand.geometry().dies, paired_pages);
        Self { nand, supply }
    }

    /// The chip itself.
    pub fn inner(&self) -> &N {
        &self.nand
    }

    /// The chip itself, mutably.
    pub fn inner_mut(&mut self) -> &mut N {
        &mut self.nand
    }

    /// The chip itself, as it is.
    pub fn into_inner(self) -> N {
        self.nand
    }

    /// Its power.
    pub fn supply(&self) -> &Supply {
        &self.supply
    }

    /// Its power, mutably.
    pub fn supply_mut(&mut self) -> &mut Supply {
        &mut self.supply
    }

    fn die_of(&self, page: Ppn) -> u32 {
        let geometry = self.nand.geometry();
        geometry.die_of(geometry.block_of(page))
    }

    /// The power goes in this operation.
    #[cold]
    fn go_off(
        &mut self,
        whole: impl FnOnce(&mut N) -> Result<(), NandError>,
        torn: impl FnOnce(&mut Tear<'_, N>) -> Result<(), NandError>,
    ) -> Result<(), NandError> {
        match self.supply.kind {
            CutKind::Before => {}
            CutKind::After => whole(&mut self.nand)?,
            CutKind::Torn => torn(&mut Tear {
                nand: &mut self.nand,
                rng: &mut self.supply.rng,
                hidden: HiddenTears::default(),
                paired_pages: self.supply.paired_pages,
            })?,
        }
        Err(NandError::PowerCut)
    }
}

impl Powered<ImageNand> {
    /// As [`ImageNand::close`].
    ///
    /// # Errors
    /// If the file cannot be written, or the power is gone.
    pub fn close(self) -> Result<(), NandError> {
        self.supply.check()?;
        self.nand.close()
    }
}

impl<N: Damage> Nand for Powered<N> {
    fn geometry(&self) -> &Geometry {
        self.nand.geometry()
    }

    fn page_bytes(&self) -> usize {
        self.nand.page_bytes()
    }

    fn is_programmed(&self, page: Ppn) -> bool {
        self.nand.is_programmed(page)
    }

    fn erase_count(&self, block: Pbn) -> u32 {
        self.nand.erase_count(block)
    }

    fn block_state(&self, block: Pbn) -> BlockState {
        self.nand.block_state(block)
    }

    fn last_sequence(&self) -> u64 {
        self.nand.last_sequence()
    }

    fn is_settled(&self) -> bool {
        self.nand.is_settled()
    }

    fn read(&mut self, page: Ppn, data: &mut [u8]) -> Result<Spare, NandError> {
        self.supply.check()?;
        self.supply.counts.reads += 1;
        let die = self.die_of(page);
        self.supply.take(die, |times| times.read_ns);
        self.nand.read(page, data)
    }

    fn read_spare(&mut self, page: Ppn) -> Result<Spare, NandError> {
        self.supply.check()?;
        self.supply.counts.oob_reads += 1;
        let die = self.die_of(page);
        self.supply.take(die, |times| times.oob_read_ns);
        self.nand.read_spare(page)
    }

    fn program(&mut self, page: Ppn, spare: &Spare, data: &[u8]) -> Result<(), NandError> {
        if self.supply.begin()? {
            return self.go_off(
                |nand| nand.program(page, spare, data),
                |tear| tear.program(page, spare, data).map(drop),
            );
        }
        self.supply.counts.programs += 1;
        let die = self.die_of(page);
        self.supply.take(die, |times| times.program_ns);
        self.nand.program(page, spare, data)
    }

    fn erase(&mut self, block: Pbn) -> Result<(), NandError> {
        if self.supply.begin()? {
            return self.go_off(|nand| nand.erase(block), |tear| tear.erase(block));
        }
        self.supply.counts.erases += 1;
        let die = self.nand.geometry().die_of(block);
        self.supply.take(die, |times| times.erase_ns);
        self.nand.erase(block)
    }

    fn mark_bad(&mut self, block: Pbn, state: BlockState) -> Result<(), NandError> {
        if self.supply.begin()? {
            return self.go_off(
                |nand| nand.mark_bad(block, state),
                |tear| tear.mark(block, state),
            );
        }
        self.supply.counts.marks += 1;
        self.nand.mark_bad(block, state)
    }

    fn flush(&mut self) -> Result<(), NandError> {
        self.supply.check()?;
        if let Some(pace) = &mut self.supply.pace {
            pace.take_flush();
        }
        self.nand.flush()
    }

    fn has_exact_register(&self) -> bool {
        self.nand.has_exact_register()
    }

    fn complete_register(&mut self) {
        self.nand.complete_register();
    }

    fn load_register(&mut self, page: usize, entries: &mut [u64]) -> Result<u8, NandError> {
        self.nand.load_register(page, entries)
    }

    fn save_register(&mut self, page: usize, entries: &[u64]) -> Result<(), NandError> {
        self.supply.check()?;
        self.nand.save_register(page, entries)
    }

    fn keeps_entries(&self) -> bool {
        self.nand.keeps_entries()
    }

    fn load_entry(&mut self, lpn: Lpn) -> Result<Option<PcmEntry>, NandError> {
        self.supply.check()?;
        self.nand.load_entry(lpn)
    }

    /// No operation of the flash, so it is not counted as one; the power that went in the program before it is gone for
    /// the entry too.
    fn save_entry(&mut self, lpn: Lpn, entry: Option<&PcmEntry>) -> Result<(), NandError> {
        self.supply.check()?;
        self.nand.save_entry(lpn, entry)
    }

    fn has_complete_entries(&self) -> bool {
        self.nand.has_complete_entries()
    }

    fn complete_entries(&mut self) {
        self.nand.complete_entries();
    }

    fn mark_at_risk(&mut self) {
        self.nand.mark_at_risk();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_of_a_die_follow_each_other_and_dies_work_at_the_same_time() {
        let times = Times {
            read_ns: 25,
            oob_read_ns: 20,
            program_ns: 200,
            erase_ns: 1500,
        };
        let mut pace = Pace::new(times, 2);
        pace.begin(1000);
        assert_eq!(pace.end_ns(), 1000, "nothing was asked of the flash");
        pace.take(0, 200);
        pace.take(1, 200);
        assert_eq!(pace.end_ns(), 1200, "two dies at once");
        pace.take(0, 25);
        assert_eq!(pace.end_ns(), 1225, "one after the other");
        // Before the first request is done another one comes.
        pace.begin(1100);
        pace.take(1, 1500);
        assert_eq!(pace.end_ns(), 2700, "it waits for the die");
        pace.begin(1150);
        pace.take(0, 20);
        assert_eq!(pace.end_ns(), 1245, "the other die is not waited for");
        pace.begin(1300);
        pace.take_flush();
        assert_eq!(pace.end_ns(), 2700, "a flush waits for all dies");
        pace.begin(9000);
        pace.take_flush();
        assert_eq!(pace.end_ns(), 9000);
    }
}
