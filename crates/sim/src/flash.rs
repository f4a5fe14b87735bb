//! The simulated flash: program rules and counters of the ledger, times of a clock, no data.

mod cells;
mod load;
mod one_bit;
mod role;
#[cfg(test)]
mod tests;

use std::convert::Infallible;

use floatgate_core::flash::{Cause, Flash, Oob, Preload, Slot, SpareArea, SpareRead};
use floatgate_core::ledger::Ledger;
use floatgate_core::pcm::Pcm;
use floatgate_core::state::{Passed, State, StateError, Tape};
use floatgate_core::{Geometry, Lpn, Pbn, Ppn};

use crate::clock::{Clock, Completion, FlashOp, OpKind};
use crate::config::Copyback;
use crate::wear::{Levelling, Swap};
use cells::Cells;
use load::Load;
use one_bit::OneBit;
pub(crate) use one_bit::OneBitPage;
use role::Role;

/// What of the request in work is not a whole page.
#[derive(Clone, Copy, Debug, Default)]
pub struct Partial {
    /// Bytes that a read of the first page transfers; 0: the whole page.
    pub first_bytes: u32,
    /// Slot of the last page.
    pub last_slot: u32,
    /// Bytes that a read of the last page transfers; 0: the whole page.
    pub last_bytes: u32,
    /// Bus time of the data of these two, for energy.
    pub data_ns: [u64; 2],
}

/// Transfers and copies that the plain counters do not tell apart; energy needs them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Fine {
    /// Reads that transferred less than a page, and the data time they took on the bus.
    pub short_reads: u64,
    /// Their data time, ns.
    pub short_read_data_ns: u64,
    /// Copies that stayed inside the die.
    pub copybacks: u64,
    /// Those of them that moved mapping information.
    pub map_copybacks: u64,
    /// Times that a page was read again.
    pub read_retries: u64,
    /// By cause: what page reads and copies inside the die took longer than `t_r_ns`, ns; modulo 2^64, it may be less.
    pub sensing_ns: [u64; 3],
    /// By cause: what programs took longer than `t_prog_ns`, ns; modulo 2^64, likewise.
    pub programming_ns: [u64; 3],
    /// What was done in blocks with one bit a cell, which the counters leave out.
    pub one_bit: OneBit,
}

/// Flash without content.
#[derive(Debug)]
pub struct SimFlash<C: Clock> {
    /// Program state, erase counts, counters.
    pub ledger: Ledger,
    /// The clock.
    pub clock: C,
    /// What the counters do not tell apart.
    pub fine: Fine,
    /// Pages of reads for which there was nothing to fetch; the session takes those of trims out.
    pub unwritten_reads: u64,
    /// Wear levelling, if it is on.
    pub wear: Option<Box<Levelling>>,
    /// Host pages read and programmed, by die.
    pub host_pages_by_die: Vec<u64>,
    /// Background work does not begin before.
    pub(crate) not_before_ns: u64,
    /// `at` of the newest operation.
    at_ns: u64,
    copyback: Copyback,
    planes: u32,
    pcm_chips: u32,
    /// Whether there is either of the two below: nearly no run has.
    is_special: bool,
    /// What the time of cells depends on, if on anything.
    cells: Option<Box<Cells>>,
    /// How much each die has to do, if the scheme asks for that.
    load: Option<Box<Load>>,
    /// What of the request in work is not a whole page, if anything is not.
    partial: Option<Partial>,
    /// Reads of old content that the programs of partly written pages wait for.
    old_content: [Option<(Slot, C::Token)>; 2],
    /// Whether reads and programs of host pages are not just the host's request's own.
    is_unusual: bool,
    /// What they are then.
    role: Role<C::Token>,
    /// By block: when the copies out of it to other dies are done. Copies inside a die need no entry, its
    /// own order keeps them before the erase.
    copied_out: Vec<C::Token>,
}

/// What its pages and blocks are; times and what is counted beside the ledger are zero after ageing.
impl<C: Clock> State for SimFlash<C> {
    fn pass(&mut self, tape: &mut Tape<'_>) -> Passed {
        self.ledger.pass(tape)?;
        let Some(wear) = &mut self.wear else {
            return Ok(());
        };
        wear.pass(tape)?;
        let mut blocks = (0..self.ledger.geometry().blocks()).map(Pbn);
        let ledger = &self.ledger;
        match blocks.all(|block| ledger.write_pointer(block) == 0 || wear.is_placed(block)) {
            true => Ok(()),
            false => Err(StateError::damaged("a block with content lies nowhere")),
        }
    }
}

impl<C: Clock> SimFlash<C> {
    /// An erased flash.
    pub fn new(geometry: &Geometry, machine: &crate::clock::Machine, copyback: Copyback) -> Self {
        let blocks = if geometry.dies > 1 {
            geometry.blocks() as usize
        } else {
            0
        };
        let cells = Cells::of(machine);
        Self {
            ledger: Ledger::new(geometry, machine.page_bytes),
            clock: C::new(machine),
            fine: Fine::default(),
            unwritten_reads: 0,
            wear: None,
            host_pages_by_die: vec![0; geometry.dies as usize],
            not_before_ns: 0,
            at_ns: 0,
            copyback,
            planes: machine.planes,
            pcm_chips: machine.pcm.chips.max(1),
            is_special: cells.is_some(),
            cells,
            load: None,
            partial: None,
            old_content: [None; 2],
            is_unusual: false,
            role: Role::Request,
            copied_out: vec![C::Token::default(); blocks],
        }
    }

    /// Begins a host request that is issued at `at_ns`.
    #[inline]
    pub fn begin_request(&mut self, number: u64, at_ns: u64, partial: Option<&Partial>) {
        self.at_ns = at_ns;
        self.clock.set_time(at_ns);
        self.clock.begin_request(number);
        if let Some(partial) = partial {
            self.partial = Some(*partial);
        }
    }

    /// Ends the host request; its completion, if the clock knows it already and `at_once` is wanted.
    #[inline]
    pub fn end_request(&mut self, at_once: bool) -> Option<Completion> {
        if self.is_unusual {
            self.old_content = [None; 2];
            self.is_unusual = false;
        }
        if self.partial.is_some() {
            self.partial = None;
        }
        if at_once {
            return self.clock.end_request_known();
        }
        self.clock.end_request();
        None
    }

    /// Counters and clocks to zero; pages stay (end of a warm-up).
    pub fn reset_counters(&mut self) {
        self.ledger.reset_counters();
        self.clock.reset();
        self.fine = Fine::default();
        self.unwritten_reads = 0;
        if let Some(wear) = &mut self.wear {
            wear.reset_counters();
        }
        self.host_pages_by_die.fill(0);
        self.not_before_ns = 0;
        self.at_ns = 0;
        if let Some(load) = &mut self.load {
            load.clear();
        }
        self.copied_out.fill(C::Token::default());
    }

    #[inline(always)]
    fn die_of(&self, pbn: Pbn) -> u32 {
        self.ledger.geometry().die_of(pbn)
    }

    #[inline(always)]
    fn issue(
        &mut self,
        kind: OpKind,
        (die, page): (u32, Ppn),
        cause: Cause,
        after: C::Token,
    ) -> C::Token {
        let op = FlashOp::new(kind, die).on(page.0).because(cause);
        self.issue_op(op, after)
    }

    #[inline]
    fn issue_copyback(
        &mut self,
        die: u32,
        (from, to): (Ppn, Ppn),
        cause: Cause,
        after: C::Token,
    ) -> C::Token {
        let op = FlashOp::new(OpKind::CopyBack, die).on(to.0).because(cause);
        let op = FlashOp { from: from.0, ..op };
        self.issue_op(op, after)
    }

    #[inline(always)]
    fn issue_op(&mut self, op: FlashOp, after: C::Token) -> C::Token {
        if self.is_special {
            return self.issue_specially(op, after);
        }
        self.clock.issue(op, after)
    }

    /// An access of the phase-change memory.
    #[inline(always)]
    fn issue_pcm(&mut self, kind: OpKind, chip: u32, after: C::Token) -> C::Token {
        self.clock
            .issue(FlashOp::new(kind, chip).because(Cause::Map), after)
    }

    /// Bytes that the read of a slot transfers (0: a whole page), and their data time.
    #[inline(always)]
    fn transfer(&self, slot: Slot) -> (u32, u64) {
        match &self.partial {
            Some(partial) if slot.0 == 0 && partial.first_bytes != 0 => {
                (partial.first_bytes, partial.data_ns[0])
            }
            Some(partial) if slot.0 == partial.last_slot && partial.last_bytes != 0 => {
                (partial.last_bytes, partial.data_ns[1])
            }
            _ => (0, 0),
        }
    }

    /// A block has been programmed: the first time it takes a physical one.
    #[inline(always)]
    fn note_program(&mut self, block: Pbn) {
        if let Some(wear) = &mut self.wear {
            wear.programmed(block);
        }
    }

    /// Erases of every physical block, in the order of their numbers.
    pub fn erase_counts(&self) -> Vec<u32> {
        match &self.wear {
            Some(wear) => wear.erase_counts().collect(),
            None => self.ledger.erase_counts().collect(),
        }
    }

    /// A block is being erased: the wear of its die may have to be levelled.
    #[cold]
    fn level(&mut self, block: Pbn) {
        if let Some(wear) = &mut self.wear {
            wear.erased(block);
        }
        while let Some(swap) = self.wear.as_mut().and_then(|wear| wear.next_swap(block)) {
            self.move_content(swap);
        }
    }

    /// Copies all programmed pages of a block to the same positions of another one, and erases the first.
    fn move_content(&mut self, swap: Swap) {
        let pages = self.ledger.programmed_pages(swap.block);
        let counters = &mut self.ledger.counters;
        counters.reads.gc += u64::from(pages);
        counters.programs.gc += u64::from(pages);
        counters.erases.gc += 1;
        if let Some(wear) = &mut self.wear {
            wear.moved_pages += u64::from(pages);
        }
        let inside = self.copyback != Copyback::Off && self.in_one_plane(swap.from, swap.to);
        self.fine.copybacks += u64::from(inside) * u64::from(pages);
        let die = self.die_of(swap.block);
        if C::REORDERS || self.cells.is_some() {
            self.move_each(swap.block, pages, inside);
        } else {
            self.copies(die, (pages, inside), Cause::Gc, C::Token::default());
        }
        let copies = self.copied_out.get(swap.block.index()).copied();
        let erase = FlashOp::new(OpKind::Erase, die);
        self.clock.issue(erase, copies.unwrap_or_default());
    }

    /// The pages of a block get a new place, one operation at a time. To everybody else they are the same pages.
    fn move_each(&mut self, block: Pbn, pages: u32, inside: bool) {
        let (die, first) = (self.die_of(block), self.ledger.geometry().first_page(block));
        for page in (first.0..first.0 + pages).map(Ppn) {
            let after = C::Token::default();
            if inside {
                self.issue_copyback(die, (page, page), Cause::Gc, after);
            } else {
                let read = self.issue(OpKind::Read, (die, page), Cause::Gc, after);
                self.issue(OpKind::Program, (die, page), Cause::Gc, read);
            }
        }
    }

    /// A run of copies on one die, inside it or not.
    #[inline(always)]
    fn copies(
        &mut self,
        die: u32,
        (pages, inside): (u32, bool),
        cause: Cause,
        after: C::Token,
    ) -> C::Token {
        if self.is_special
            && let Some(load) = &mut self.load
        {
            load.add_copies(die, inside, pages.into(), self.at_ns);
        }
        self.clock.copies(die, pages, inside, cause, after)
    }

    /// A run of copies, each of which says its pages.
    #[cold]
    fn copy_each(&mut self, from: &[Ppn], to: Ppn, cause: Cause, after: C::Token) -> C::Token {
        let mut done = after;
        for (&from, to) in from.iter().zip((to.0..).map(Ppn)) {
            let Ok(end) = self.copy(from, to, Oob::default(), cause, after);
            done = end;
        }
        done
    }

    /// Whether the chip, if it copies at all, can copy the page by itself: both lie in one plane of one die, and suit each other.
    fn is_inside(&self, from: Ppn, to: Ppn) -> bool {
        let geometry = self.ledger.geometry();
        let ((from_block, from_page), (to_block, to_page)) =
            (geometry.split(from), geometry.split(to));
        let suits = match self.copyback {
            Copyback::Off | Copyback::Plane => true,
            Copyback::Parity => from_page % 2 == to_page % 2,
        };
        suits && self.same_plane(from_block, to_block)
    }

    fn same_plane(&self, from: Pbn, to: Pbn) -> bool {
        match &self.wear {
            Some(wear) => self.in_one_plane(wear.place(from), wear.place(to)),
            None => self.in_one_plane(from, to),
        }
    }

    fn in_one_plane(&self, from: Pbn, to: Pbn) -> bool {
        let blocks = self.ledger.geometry().blocks_per_die;
        self.die_of(from) == self.die_of(to)
            && from.0 % blocks % self.planes == to.0 % blocks % self.planes
    }
}

impl<C: Clock> Flash for SimFlash<C> {
    type Token = C::Token;
    type Error = Infallible;
    type Pcm = Self;

    #[inline(always)]
    fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    fn erase_count(&self, pbn: Pbn) -> u32 {
        match &self.wear {
            Some(wear) => wear.erase_count(pbn),
            None => self.ledger.erase_count(pbn),
        }
    }

    #[inline(always)]
    fn read_host(
        &mut self,
        slot: Slot,
        from: Ppn,
        after: C::Token,
    ) -> Result<C::Token, Infallible> {
        self.ledger.read(from, Cause::Host);
        let die = self.die_of(self.ledger.geometry().block_of(from));
        self.host_pages_by_die[die as usize] += 1;
        if self.is_unusual && !matches!(self.role, Role::Request) {
            return Ok(self.read_for(slot, (die, from), after));
        }
        let (bytes, data_ns) = self.transfer(slot);
        let token = if bytes == 0 {
            self.issue(OpKind::Read, (die, from), Cause::Host, after)
        } else {
            self.fine.short_reads += 1;
            self.fine.short_read_data_ns += data_ns;
            let op = FlashOp::new(OpKind::Read, die).on(from.0);
            let op = FlashOp { bytes, ..op }.because(Cause::Host);
            self.issue_op(op, after)
        };
        self.clock.own(token);
        Ok(token)
    }

    #[inline]
    fn absent(&mut self, slot: Slot, after: C::Token) {
        self.unwritten_reads += 1;
        match self.is_unusual {
            true => self.absent_for(slot, after),
            false => self.clock.own(after),
        }
    }

    #[inline(always)]
    fn program_host(
        &mut self,
        slot: Slot,
        to: Ppn,
        _oob: impl SpareArea,
        after: C::Token,
    ) -> Result<C::Token, Infallible> {
        let block = self.ledger.program(to, Cause::Host);
        self.note_program(block);
        let die = self.die_of(block);
        self.host_pages_by_die[die as usize] += 1;
        if self.is_unusual {
            return Ok(self.program_for(slot, (die, to), after));
        }
        let token = self.issue(OpKind::Program, (die, to), Cause::Host, after);
        self.clock.own(token);
        Ok(token)
    }

    #[inline]
    fn copy(
        &mut self,
        from: Ppn,
        to: Ppn,
        _oob: impl SpareArea,
        cause: Cause,
        after: C::Token,
    ) -> Result<C::Token, Infallible> {
        self.ledger.read(from, cause);
        let to_block = self.ledger.program(to, cause);
        self.note_program(to_block);
        let from_block = self.ledger.geometry().block_of(from);
        if self.copyback != Copyback::Off && self.is_inside(from, to) {
            self.fine.copybacks += 1;
            self.fine.map_copybacks += u64::from(cause == Cause::Map);
            let die = self.die_of(from_block);
            return Ok(self.issue_copyback(die, (from, to), cause, after));
        }
        let (from_die, to_die) = (self.die_of(from_block), self.die_of(to_block));
        let read = self.issue(OpKind::Read, (from_die, from), cause, after);
        let done = self.issue(OpKind::Program, (to_die, to), cause, read);
        if from_die != to_die {
            let before = self.copied_out[from_block.index()];
            self.copied_out[from_block.index()] = self.clock.join(before, done);
        }
        Ok(done)
    }

    fn copy_run(
        &mut self,
        from: &[Ppn],
        to: Ppn,
        _oob_of: impl Fn(usize) -> Oob,
        cause: Cause,
        after: C::Token,
    ) -> Result<C::Token, Infallible> {
        let Some(&first) = from.first() else {
            return Ok(after);
        };
        if C::REORDERS || self.cells.is_some() {
            return Ok(self.copy_each(from, to, cause, after));
        }
        let die = self.die_of(self.ledger.geometry().block_of(first));
        debug_assert!(
            from.iter().chain([&to]).all(|&page| {
                let block = self.ledger.geometry().block_of(page);
                self.die_of(block) == die
            }),
            "a run of copies stays on its die"
        );
        let pages = from.len() as u32;
        self.ledger.read_run(from, cause);
        let to_block = self.ledger.program_run(to, pages, cause);
        self.note_program(to_block);
        if self.copyback == Copyback::Off {
            return Ok(self.copies(die, (pages, false), cause, after));
        }
        let (mut done, mut place) = (after, 0);
        while place < from.len() {
            let is_inside = |&i: &usize| self.is_inside(from[i], Ppn(to.0 + i as u32));
            let inside = is_inside(&place);
            let same = (place..from.len()).take_while(|i| is_inside(i) == inside);
            let copies = same.count();
            self.fine.copybacks += u64::from(inside) * copies as u64;
            self.fine.map_copybacks += u64::from(inside && cause == Cause::Map) * copies as u64;
            done = self.copies(die, (copies as u32, inside), cause, done);
            place += copies;
        }
        Ok(done)
    }

    fn read_map(
        &mut self,
        from: Ppn,
        _take: impl FnOnce(&[u8]),
        after: C::Token,
    ) -> Result<C::Token, Infallible> {
        self.ledger.read(from, Cause::Map);
        let die = self.die_of(self.ledger.geometry().block_of(from));
        Ok(self.issue(OpKind::Read, (die, from), Cause::Map, after))
    }

    fn program_map(
        &mut self,
        to: Ppn,
        _oob: impl SpareArea,
        _fill: impl FnOnce(&mut [u8]),
        after: C::Token,
    ) -> Result<C::Token, Infallible> {
        let block = self.ledger.program(to, Cause::Map);
        self.note_program(block);
        let die = self.die_of(block);
        Ok(self.issue(OpKind::Program, (die, to), Cause::Map, after))
    }

    fn read_oob(
        &mut self,
        from: Ppn,
        cause: Cause,
        after: C::Token,
    ) -> Result<(Option<SpareRead>, C::Token), Infallible> {
        self.ledger.read_oob(cause);
        let die = self.die_of(self.ledger.geometry().block_of(from));
        Ok((None, self.issue(OpKind::OobRead, (die, from), cause, after)))
    }

    fn erase(&mut self, block: Pbn, cause: Cause, after: C::Token) -> Result<C::Token, Infallible> {
        self.ledger.erase(block, cause);
        let die = self.die_of(block);
        let mut after = after;
        if !self.copied_out.is_empty() {
            let copies = std::mem::take(&mut self.copied_out[block.index()]);
            after = self.clock.join(after, copies);
        }
        let first = self.ledger.geometry().first_page(block);
        let done = self.issue(OpKind::Erase, (die, first), cause, after);
        if self.wear.is_some() {
            self.level(block);
        }
        Ok(done)
    }

    #[inline]
    fn join(&mut self, a: C::Token, b: C::Token) -> C::Token {
        self.clock.join(a, b)
    }

    fn pcm(&mut self) -> &mut Self {
        self
    }

    fn free_at_ns(&self, die: u32) -> u64 {
        let load = self.load.as_ref();
        load.map_or(0, |load| load.free_at_ns(die, self.at_ns))
    }

    fn background(&mut self, at_ns: u64) {
        self.at_ns = self.at_ns.max(at_ns).max(self.not_before_ns);
        self.clock.set_time(self.at_ns);
    }
}

impl<C: Clock> Pcm for SimFlash<C> {
    type Token = C::Token;

    fn read_entry(&mut self, lpn: Lpn) -> C::Token {
        self.ledger.counters.pcm_reads += 1;
        let chip = lpn.0 % self.pcm_chips;
        self.issue_pcm(OpKind::PcmRead, chip, C::Token::default())
    }

    fn write_entry(&mut self, lpn: Lpn, _place: Ppn, after: C::Token) {
        self.ledger.counters.pcm_writes += 1;
        let chip = lpn.0 % self.pcm_chips;
        self.issue_pcm(OpKind::PcmWrite, chip, after);
    }
}

impl<C: Clock> Preload for SimFlash<C> {
    fn preload<O: SpareArea>(
        &mut self,
        block: Pbn,
        pages: u32,
        _oob_of: impl FnMut(u32) -> O,
    ) -> Result<(), Infallible> {
        self.ledger.preload(block, pages);
        if let Some(wear) = &mut self.wear {
            wear.preloaded(block);
        }
        Ok(())
    }

    fn preload_map<O: SpareArea>(
        &mut self,
        block: Pbn,
        pages: u32,
        oob_of: impl FnMut(u32) -> O,
        _fill: impl FnMut(u32, &mut [u8]),
    ) -> Result<(), Infallible> {
        self.preload(block, pages, oob_of)
    }
}
