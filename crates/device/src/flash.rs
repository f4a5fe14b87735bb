//! The flash of a scheme on a chip with bytes: host buffer, sequence numbers, counters, program rules.

use floatgate_core::flash::{
    Cause, Flash, Oob, OobRead, Preload, Role, Slot, SpareArea, SpareRead, start_content,
};
use floatgate_core::ledger::Ledger;
use floatgate_core::pcm::{Pcm, Recalled};
use floatgate_core::{Lpn, Pbn, Ppn};

use crate::entry::PcmEntry;
use crate::nand::{Nand, NandError, Spare};
use crate::register::{Register, Verdict};

/// A [`Flash`] on a [`Nand`]. It stores bytes and has no clock.
///
/// A page whose source can no longer be read is copied as *lost*: the merge or collection that moves it goes
/// on, and a host read of it is an error, never other bytes. Neither is a page of the host read as an older version, as
/// far as the [`Register`] knows, nor as another page.
#[derive(Debug)]
pub struct NandFlash<N> {
    nand: N,
    /// Program state and counters.
    pub ledger: Ledger,
    /// Reads of pages that were not live.
    pub unwritten_reads: u64,
    /// Pages that were lost while being copied.
    pub lost_copies: u64,
    /// What is known of each logical page.
    pub(crate) register: Register,
    /// First logical page of the current request.
    first: Lpn,
    /// A page of it for which there is nothing, although something was written.
    missing: Option<Lpn>,
    /// The scheme has shut down: the entries of the phase-change memory are complete.
    is_sealed: bool,
    /// The host's pages of the current request, by slot.
    buffer: Vec<u8>,
    scratch: Vec<u8>,
}

impl<N: Nand> NandFlash<N> {
    /// The flash on a chip in any state.
    ///
    /// # Errors
    /// If the register cannot be read.
    pub fn new(mut nand: N) -> Result<Self, NandError> {
        crate::pcm::drop_stale(&mut nand)?;
        let mut register = Register::load(&mut nand)?;
        let geometry = nand.geometry().clone();
        let mut ledger = Ledger::new(&geometry, nand.page_bytes() as u32).storing_bytes();
        ledger.sequence = nand.last_sequence();
        ledger.sequence = ledger.sequence.max(register.last_sequence());
        register.note_mount(ledger.sequence);
        for block in (0..geometry.blocks()).map(Pbn) {
            let programmed = |page| nand.is_programmed(geometry.ppn(block, page));
            ledger.restore(block, nand.erase_count(block), programmed);
        }
        Ok(Self {
            ledger,
            unwritten_reads: 0,
            lost_copies: 0,
            register,
            first: Lpn(0),
            missing: None,
            is_sealed: false,
            buffer: Vec::new(),
            scratch: vec![0; nand.page_bytes()],
            nand,
        })
    }

    /// The chip.
    pub fn nand(&self) -> &N {
        &self.nand
    }

    /// The chip, mutably.
    pub fn nand_mut(&mut self) -> &mut N {
        &mut self.nand
    }

    /// Gives the chip back.
    pub fn into_nand(self) -> N {
        self.nand
    }

    /// Clears the host's buffer for a request of that many pages.
    pub fn new_request(&mut self, first: Lpn, pages: u32) -> &mut [u8] {
        self.first = first;
        self.missing = None;
        self.register.drop_request();
        self.buffer.clear();
        self.buffer
            .resize(pages as usize * self.nand.page_bytes(), 0);
        &mut self.buffer
    }

    /// The host's pages of the request, one after the other.
    pub fn buffer(&self) -> &[u8] {
        &self.buffer
    }

    /// A page of the request that should have been there.
    pub(crate) fn missing(&self) -> Option<Lpn> {
        self.missing
    }

    /// Returns once everything programmed and trimmed survives a crash of the machine.
    ///
    /// # Errors
    /// As [`Nand::flush`].
    pub fn flush(&mut self) -> Result<(), NandError> {
        if self.register.has_trims() {
            return self.register.keep(1, &mut self.nand);
        }
        self.nand.flush()
    }

    /// The same, and keeps the register, so that nothing older is ever read for what is there now.
    ///
    /// # Errors
    /// As [`Nand::flush`].
    pub fn flush_with_register(&mut self) -> Result<(), NandError> {
        self.register.keep(2, &mut self.nand)?;
        if self.is_sealed {
            self.nand.complete_entries();
        }
        Ok(())
    }

    fn lpn_of(&self, slot: Slot) -> Lpn {
        Lpn(self.first.0 + slot.0)
    }

    fn slot_range(&self, slot: Slot) -> std::ops::Range<usize> {
        let bytes = self.nand.page_bytes();
        slot.0 as usize * bytes..(slot.0 as usize + 1) * bytes
    }

    /// The spare area of the next program.
    fn spare(&self, oob: impl SpareArea) -> Spare {
        let mut spare = Spare::new(oob.oob(), self.ledger.next_sequence());
        oob.fill_bytes(&mut spare.bytes);
        spare
    }

    /// Programs the scratch page.
    fn program_scratch(&mut self, to: Ppn, spare: &Spare, cause: Cause) -> Result<(), NandError> {
        self.nand.program(to, spare, &self.scratch)?;
        self.nand.mark_at_risk();
        self.note_program(to, spare, cause);
        Ok(())
    }

    fn note_program(&mut self, to: Ppn, spare: &Spare, cause: Cause) {
        self.is_sealed = false;
        self.ledger.sequence = spare.sequence;
        self.ledger.program(to, cause);
    }
}

impl<N: Nand> Flash for NandFlash<N> {
    type Token = ();
    type Error = NandError;
    type Pcm = Self;

    fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    fn erase_count(&self, block: Pbn) -> u32 {
        self.nand.erase_count(block)
    }

    fn read_host(&mut self, slot: Slot, from: Ppn, _after: ()) -> Result<(), NandError> {
        self.ledger.read(from, Cause::Host);
        let (range, lpn) = (self.slot_range(slot), self.lpn_of(slot));
        let spare = self.nand.read(from, &mut self.buffer[range.clone()])?;
        if spare.lost {
            return Err(NandError::Unreadable { page: from });
        }
        // A table or a page that was forged may lead to the content of another page.
        if spare.oob.lpn != lpn {
            return Err(NandError::Unreadable { page: from });
        }
        match self.register.judge(lpn, spare.stamp) {
            Verdict::Current => {}
            Verdict::Trimmed => self.buffer[range].fill(0),
            Verdict::Stale => return Err(NandError::Stale { lpn }),
        }
        Ok(())
    }

    fn absent(&mut self, slot: Slot, _after: ()) {
        self.unwritten_reads += 1;
        let (range, lpn) = (self.slot_range(slot), self.lpn_of(slot));
        self.buffer[range].fill(0);
        if self.register.has_content(lpn) {
            self.missing = Some(lpn);
        }
    }

    fn program_host(
        &mut self,
        slot: Slot,
        to: Ppn,
        oob: impl SpareArea,
        _after: (),
    ) -> Result<(), NandError> {
        let (mut spare, range) = (self.spare(oob), self.slot_range(slot));
        spare.stamp = spare.sequence;
        self.nand.program(to, &spare, &self.buffer[range])?;
        self.note_program(to, &spare, Cause::Host);
        self.register.note_write(spare.oob.lpn, spare.sequence);
        Ok(())
    }

    fn copy(
        &mut self,
        from: Ppn,
        to: Ppn,
        oob: impl SpareArea,
        cause: Cause,
        _after: (),
    ) -> Result<(), NandError> {
        self.ledger.read(from, cause);
        let mut spare = self.spare(oob);
        match self.nand.read(from, &mut self.scratch) {
            Ok(read) => {
                // A table that was forged may name the content of another page.
                spare.lost = read.lost || read.oob.lpn != spare.oob.lpn;
                spare.stamp = read.stamp;
            }
            Err(NandError::Unreadable { .. } | NandError::Erased { .. }) => spare.lost = true,
            Err(error) => return Err(error),
        }
        if spare.lost {
            self.lost_copies += 1;
            self.scratch.fill(0);
        }
        self.program_scratch(to, &spare, cause)
    }

    fn read_map(
        &mut self,
        from: Ppn,
        take: impl FnOnce(&[u8]),
        _after: (),
    ) -> Result<(), NandError> {
        self.ledger.try_read(Cause::Map);
        match self.nand.read(from, &mut self.scratch) {
            Ok(spare) if !spare.lost => {
                take(&self.scratch);
                Ok(())
            }
            Ok(_) | Err(NandError::Unreadable { .. } | NandError::Erased { .. }) => Ok(()),
            Err(error) => Err(error),
        }
    }

    fn program_map(
        &mut self,
        to: Ppn,
        oob: impl SpareArea,
        fill: impl FnOnce(&mut [u8]),
        _after: (),
    ) -> Result<(), NandError> {
        let spare = self.spare(oob);
        self.scratch.fill(0);
        fill(&mut self.scratch);
        self.program_scratch(to, &spare, Cause::Map)
    }

    fn read_oob(
        &mut self,
        from: Ppn,
        cause: Cause,
        _after: (),
    ) -> Result<(Option<SpareRead>, ()), NandError> {
        self.ledger.read_oob(cause);
        match self.nand.read_spare(from) {
            // The OOB of a lost page still counts: it keeps older versions of its logical page from showing.
            Ok(spare) if spare.oob.lpn.is_some() => {
                let (oob, sequence) = (spare.oob, spare.sequence);
                let read = OobRead { oob, sequence };
                let bytes = spare.bytes;
                Ok((Some(SpareRead { read, bytes }), ()))
            }
            Ok(_) | Err(NandError::Unreadable { .. } | NandError::Erased { .. }) => Ok((None, ())),
            Err(error) => Err(error),
        }
    }

    fn erase(&mut self, block: Pbn, cause: Cause, _after: ()) -> Result<(), NandError> {
        self.is_sealed = false;
        self.nand.erase(block)?;
        self.ledger.erase(block, cause);
        Ok(())
    }

    fn join(&mut self, _a: (), _b: ()) {}

    fn pcm(&mut self) -> &mut Self {
        self
    }
}

impl<N: Nand> Preload for NandFlash<N> {
    fn preload<O: SpareArea>(
        &mut self,
        block: Pbn,
        pages: u32,
        mut oob_of: impl FnMut(u32) -> O,
    ) -> Result<(), NandError> {
        for page in 0..pages {
            let to = self.ledger.geometry().ppn(block, page);
            let mut spare = self.spare(oob_of(page));
            spare.stamp = spare.sequence;
            self.scratch = start_content(spare.oob.lpn, self.nand.page_bytes());
            self.nand.program(to, &spare, &self.scratch)?;
            self.ledger.sequence = spare.sequence;
        }
        self.ledger.preload(block, pages);
        Ok(())
    }

    fn preload_map<O: SpareArea>(
        &mut self,
        block: Pbn,
        pages: u32,
        mut oob_of: impl FnMut(u32) -> O,
        mut fill: impl FnMut(u32, &mut [u8]),
    ) -> Result<(), NandError> {
        for page in 0..pages {
            let to = self.ledger.geometry().ppn(block, page);
            let spare = self.spare(oob_of(page));
            self.scratch.fill(0);
            fill(page, &mut self.scratch);
            self.nand.program(to, &spare, &self.scratch)?;
            self.ledger.sequence = spare.sequence;
        }
        self.ledger.preload(block, pages);
        Ok(())
    }
}

impl<N: Nand> NandFlash<N> {
    /// The entry of a page at that place; none where something else lies there, or nothing that can be read.
    fn entry_for(&mut self, lpn: Lpn, place: Ppn) -> Option<PcmEntry> {
        if place.is_none() {
            return None;
        }
        let spare = self.nand.read_spare(place).ok()?;
        let is_page = spare.oob.lpn == lpn && spare.oob.role == Role::Data;
        is_page.then(|| PcmEntry {
            place,
            era: self
                .nand()
                .erase_count(self.ledger().geometry().block_of(place)),
            sequence: spare.sequence,
            tag: spare.oob.tag,
        })
    }
}

/// Time has no meaning here; the ledger counts.
impl<N: Nand> Pcm for NandFlash<N> {
    type Token = ();

    fn read_entry(&mut self, lpn: Lpn) {
        self.ledger.read_entry(lpn);
    }

    /// A failure of the file shows at the next operation, and at the end of the request: nothing that was acknowledged
    /// depends on an entry.
    fn write_entry(&mut self, lpn: Lpn, place: Ppn, _after: ()) {
        self.ledger.write_entry(lpn, place, ());
        if self.nand.keeps_entries() {
            let entry = self.entry_for(lpn, place);
            let _ = self.nand.save_entry(lpn, entry.as_ref());
        }
    }

    fn recall(&mut self, lpn: Lpn) -> Option<Recalled> {
        self.ledger.read_entry(lpn);
        let entry = self.nand.load_entry(lpn).ok()??;
        let oob = Oob {
            lpn,
            role: Role::Data,
            tag: entry.tag,
        };
        let read = OobRead {
            oob,
            sequence: entry.sequence,
        };
        let place = entry.place;
        crate::pcm::is_there(&entry, &self.nand).then_some(Recalled { place, read })
    }

    fn seal(&mut self) {
        self.is_sealed = true;
    }

    fn is_sealed(&self) -> bool {
        self.nand.has_complete_entries()
    }
}
