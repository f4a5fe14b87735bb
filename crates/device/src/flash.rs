//! The flash of a scheme on a chip with bytes: host buffer, sequence numbers, counters, program rules.

use std::collections::BTreeMap;

use floatgate_core::flash::{Cause, Flash, Oob, OobRead, Role, Slot, start_content};
use floatgate_core::ledger::Ledger;
use floatgate_core::{Geometry, Lpn, Pbn, Ppn};

use crate::nand::{Nand, NandError, SCHEME_BYTES, Spare};

/// [`Flash`] made of a [`Nand`]. It bears data and has no clock.
///
/// A page whose source cannot be read any more is copied as a page that is *lost*: the merge or collection
/// that moves it goes on, and the host's read of it is an error, never other bytes.
#[derive(Debug)]
pub struct NandFlash<N> {
    nand: N,
    /// Program state and counters.
    pub ledger: Ledger,
    /// Reads of pages that were not live.
    pub unwritten_reads: u64,
    /// Pages that became lost in a copy.
    pub lost_copies: u64,
    sequence: u64,
    /// The host's pages of the request in work, by slot.
    buffer: Vec<u8>,
    scratch: Vec<u8>,
    pending_oob: [u8; SCHEME_BYTES],
    last_oob: Option<[u8; SCHEME_BYTES]>,
    /// Pages of the start state, until the first operation programs them: a scheme may still add to their OOBs.
    staged: BTreeMap<Ppn, Staged>,
}

/// A page of the start state.
#[derive(Debug)]
struct Staged {
    oob: Oob,
    oob_bytes: [u8; SCHEME_BYTES],
    /// Of a mapping page; host pages hold what follows from their number.
    bytes: Option<Vec<u8>>,
}

impl<N: Nand> NandFlash<N> {
    /// The flash on that chip, in whatever state it is.
    pub fn new(nand: N) -> Self {
        let geometry = nand.geometry().clone();
        let mut ledger = Ledger::new(&geometry);
        for block in (0..geometry.blocks()).map(Pbn) {
            let programmed = |page| nand.is_programmed(geometry.ppn(block, page));
            ledger.restore(block, nand.erase_count(block), programmed);
        }
        Self {
            ledger,
            unwritten_reads: 0,
            lost_copies: 0,
            sequence: nand.last_sequence(),
            buffer: Vec::new(),
            scratch: vec![0; nand.page_bytes()],
            pending_oob: [0; SCHEME_BYTES],
            last_oob: None,
            staged: BTreeMap::new(),
            nand,
        }
    }

    /// The chip.
    pub fn nand(&self) -> &N {
        &self.nand
    }

    /// The chip, to change it.
    pub fn nand_mut(&mut self) -> &mut N {
        &mut self.nand
    }

    /// The chip, and nothing else.
    pub fn into_nand(self) -> N {
        self.nand
    }

    /// Empties the host's buffer for a request of that many pages.
    pub fn new_request(&mut self, pages: u32) -> &mut [u8] {
        self.buffer.clear();
        self.buffer
            .resize(pages as usize * self.nand.page_bytes(), 0);
        &mut self.buffer
    }

    /// The host's pages of the request, one after the other.
    pub fn buffer(&self) -> &[u8] {
        &self.buffer
    }

    /// The same, to fill it before a write.
    pub fn buffer_mut(&mut self) -> &mut [u8] {
        &mut self.buffer
    }

    /// Returns once all that was programmed survives the loss of the machine.
    ///
    /// # Errors
    /// As the chip has them.
    pub fn flush(&mut self) -> Result<(), NandError> {
        self.settle()?;
        self.nand.flush()
    }

    /// Programs the start state, if that has not been done.
    fn settle(&mut self) -> Result<(), NandError> {
        for (to, page) in std::mem::take(&mut self.staged) {
            self.sequence += 1;
            let spare = Spare {
                bytes: page.oob_bytes,
                ..Spare::new(page.oob, self.sequence)
            };
            let bytes = page
                .bytes
                .unwrap_or_else(|| start_content(page.oob.lpn, self.nand.page_bytes()));
            self.nand.program(to, &spare, &bytes)?;
        }
        Ok(())
    }

    fn stage(&mut self, to: Ppn, oob: Oob, bytes: Option<Vec<u8>>) {
        let oob_bytes = [0; SCHEME_BYTES];
        self.staged.insert(
            to,
            Staged {
                oob,
                oob_bytes,
                bytes,
            },
        );
    }

    fn slot_range(&self, slot: Slot) -> std::ops::Range<usize> {
        let bytes = self.nand.page_bytes();
        slot.0 as usize * bytes..(slot.0 as usize + 1) * bytes
    }

    /// The spare area of the next program.
    fn spare(&mut self, oob: Oob) -> Spare {
        let bytes = std::mem::replace(&mut self.pending_oob, [0; SCHEME_BYTES]);
        Spare {
            bytes,
            ..Spare::new(oob, self.sequence + 1)
        }
    }

    /// Programs the scratch page.
    fn program_scratch(&mut self, to: Ppn, spare: &Spare, cause: Cause) -> Result<(), NandError> {
        self.nand.program(to, spare, &self.scratch)?;
        self.nand.settle();
        self.programmed_now(to, spare, cause);
        Ok(())
    }

    fn programmed_now(&mut self, to: Ppn, spare: &Spare, cause: Cause) {
        self.sequence = spare.sequence;
        self.ledger.program(to, cause);
    }
}

/// The bytes of a read page, unless it only names what was lost.
fn not_lost(page: Ppn, spare: Spare) -> Result<Spare, NandError> {
    if spare.lost {
        return Err(NandError::Unreadable { page });
    }
    Ok(spare)
}

impl<N: Nand> Flash for NandFlash<N> {
    type Token = ();
    type Error = NandError;
    const BEARS_DATA: bool = true;

    fn geometry(&self) -> &Geometry {
        self.ledger.geometry()
    }

    fn page_bytes(&self) -> u32 {
        self.nand.page_bytes() as u32
    }

    fn next_sequence(&self) -> u64 {
        self.sequence + self.staged.len() as u64 + 1
    }

    fn written(&self, pbn: Pbn) -> u32 {
        self.ledger.write_pointer(pbn)
    }

    fn is_programmed(&self, ppn: Ppn) -> bool {
        self.ledger.is_programmed(ppn)
    }

    fn programmed(&self, pbn: Pbn) -> u32 {
        self.ledger.programmed_pages(pbn)
    }

    fn erase_count(&self, pbn: Pbn) -> u32 {
        self.nand.erase_count(pbn)
    }

    fn host_read(&mut self, slot: Slot, from: Ppn, _after: ()) -> Result<(), NandError> {
        self.settle()?;
        self.ledger.read(from, Cause::Host);
        let range = self.slot_range(slot);
        let spare = not_lost(from, self.nand.read(from, &mut self.buffer[range])?)?;
        self.last_oob = Some(spare.bytes);
        Ok(())
    }

    fn host_unwritten(&mut self, slot: Slot, _after: ()) {
        self.unwritten_reads += 1;
        let range = self.slot_range(slot);
        self.buffer[range].fill(0);
    }

    fn host_program(&mut self, slot: Slot, to: Ppn, oob: Oob, _after: ()) -> Result<(), NandError> {
        self.settle()?;
        let (spare, range) = (self.spare(oob), self.slot_range(slot));
        self.nand.program(to, &spare, &self.buffer[range])?;
        self.programmed_now(to, &spare, Cause::Host);
        Ok(())
    }

    fn host_trimmed(&mut self, _slot: Slot, _after: ()) {}

    fn copy(
        &mut self,
        from: Ppn,
        to: Ppn,
        oob: Oob,
        cause: Cause,
        _after: (),
    ) -> Result<(), NandError> {
        self.settle()?;
        self.ledger.read(from, cause);
        let mut spare = self.spare(oob);
        match self.nand.read(from, &mut self.scratch) {
            Ok(read) => spare.lost = read.lost,
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
        self.settle()?;
        self.ledger.try_read(Cause::Map);
        match self.nand.read(from, &mut self.scratch) {
            Ok(spare) if !spare.lost => {
                self.last_oob = Some(spare.bytes);
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
        oob: Oob,
        fill: impl FnOnce(&mut [u8]),
        _after: (),
    ) -> Result<(), NandError> {
        self.settle()?;
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
    ) -> Result<(Option<OobRead>, ()), NandError> {
        self.settle()?;
        self.ledger.read_oob(cause);
        self.last_oob = None;
        match self.nand.read_spare(from) {
            // The OOB of a lost page still tells that its logical page has no older version to go back to.
            Ok(spare) if spare.oob.lpn.is_some() => {
                self.last_oob = Some(spare.bytes);
                let (oob, sequence) = (spare.oob, spare.sequence);
                Ok((Some(OobRead { oob, sequence }), ()))
            }
            Ok(_) | Err(NandError::Unreadable { .. } | NandError::Erased { .. }) => Ok((None, ())),
            Err(error) => Err(error),
        }
    }

    fn erase(&mut self, block: Pbn, cause: Cause, _after: ()) -> Result<(), NandError> {
        self.settle()?;
        self.nand.erase(block)?;
        self.ledger.erase(block, cause);
        Ok(())
    }

    fn join(&mut self, _a: (), _b: ()) {}

    fn pcm_read(&mut self, _after: ()) {
        self.ledger.counters.pcm_reads += 1;
    }

    fn pcm_write(&mut self, _after: ()) {
        self.ledger.counters.pcm_writes += 1;
    }

    fn background(&mut self, _at_ns: u64) {}

    fn next_oob_bytes(&mut self, fill: impl FnOnce(&mut [u8])) {
        self.pending_oob = [0; SCHEME_BYTES];
        fill(&mut self.pending_oob);
    }

    fn last_oob_bytes(&self) -> &[u8] {
        self.last_oob.as_ref().map_or(&[], |bytes| &bytes[..])
    }

    fn preload(&mut self, block: Pbn, pages: u32, role: Role, lpn_of: &mut dyn FnMut(u32) -> Lpn) {
        self.ledger.preload(block, pages);
        for page in 0..pages {
            let to = self.ledger.geometry().ppn(block, page);
            self.stage(to, Oob::new(lpn_of(page), role), None);
        }
    }

    fn preload_map(
        &mut self,
        block: Pbn,
        pages: u32,
        number_of: &mut dyn FnMut(u32) -> Lpn,
        fill: &mut dyn FnMut(u32, &mut [u8]),
    ) {
        self.ledger.preload(block, pages);
        for page in 0..pages {
            let mut bytes = vec![0; self.nand.page_bytes()];
            fill(page, &mut bytes);
            let to = self.ledger.geometry().ppn(block, page);
            self.stage(to, Oob::new(number_of(page), Role::Map), Some(bytes));
        }
    }

    fn preload_oob_bytes(&mut self, at: Ppn, fill: impl FnOnce(&mut [u8])) {
        let page = self.staged.get_mut(&at);
        let page = page.expect("OOB bytes of a page that is not preloaded: the scheme has a bug");
        page.oob_bytes.fill(0);
        fill(&mut page.oob_bytes);
    }
}
