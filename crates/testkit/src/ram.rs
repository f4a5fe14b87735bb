//! A flash of real bytes in memory: the second flash, on which every scheme must keep what it was given.

use std::sync::Arc;

use floatgate_core::address::{Lpn, Pbn, Ppn};
use floatgate_core::flash::{
    Cause, Flash, OobRead, Preload, SCHEME_OOB_BYTES, Slot, SpareArea, SpareRead, start_content,
};
use floatgate_core::geometry::Geometry;
use floatgate_core::ledger::Ledger;
use floatgate_core::pcm::{Pcm, Recalled};

type SchemeBytes = [u8; SCHEME_OOB_BYTES];

/// What a programmed page holds.
#[derive(Clone, Debug)]
pub struct StoredPage {
    oob: OobRead,
    /// The scheme's own bytes of the OOB; `None`: all zeroes.
    oob_bytes: Option<Arc<SchemeBytes>>,
    /// Shared, so that copies of a page and of the whole flash cost no copy of the bytes. Empty where only the OOB
    /// can be read: a page that was lost before it was copied here.
    bytes: Arc<[u8]>,
}

/// An entry of the phase-change memory: what it recalls, and the era of the block when it was written.
#[derive(Clone, Copy, Debug)]
pub struct KeptEntry {
    recalled: Recalled,
    era: u32,
}

/// Flash in memory, with a phase-change memory that keeps its entries. Pages are `page_bytes` long; the host's data passes
/// through [`RamFlash::buffer`].
#[derive(Clone, Debug)]
pub struct RamFlash {
    /// Program state and counters.
    pub ledger: Ledger,
    /// `None` where erased, and where programmed but unreadable.
    pages: Vec<Option<StoredPage>>,
    /// Blocks whose erase was cut: nothing may be programmed there before another erase.
    half_erased: Vec<bool>,
    /// By logical page; empty until the first entry is written.
    entries: Vec<Option<KeptEntry>>,
    /// By block: erases that have begun, whatever has become of them.
    eras: Vec<u32>,
    is_sealed: bool,
    page_bytes: usize,
    buffer: Vec<Vec<u8>>,
    /// Reads of pages that were not live. A trim may count here too: who sends it takes that back.
    pub unwritten_reads: u64,
}

/// The scheme's bytes of a page that got none.
static ZEROES: SchemeBytes = [0; SCHEME_OOB_BYTES];

impl RamFlash {
    /// An erased flash.
    pub fn new(geometry: &Geometry, page_bytes: usize) -> Self {
        Self {
            ledger: Ledger::new(geometry, page_bytes as u32).storing_bytes(),
            pages: vec![None; geometry.pages() as usize],
            half_erased: vec![false; geometry.blocks() as usize],
            entries: Vec::new(),
            eras: vec![0; geometry.blocks() as usize],
            is_sealed: false,
            page_bytes,
            buffer: Vec::new(),
            unwritten_reads: 0,
        }
    }

    /// The host's buffer for a request of that many pages, all zeroes.
    pub fn new_request(&mut self, pages: u32) -> &mut [Vec<u8>] {
        self.buffer = vec![vec![0; self.page_bytes]; pages as usize];
        &mut self.buffer
    }

    /// The host's buffer, by slot.
    pub fn buffer(&self) -> &[Vec<u8>] {
        &self.buffer
    }

    /// The power goes while a page is programmed: the page is used up and cannot be read.
    pub fn tear_program(&mut self, to: Ppn) {
        self.program(to, Cause::Host);
        self.ledger.sequence += 1;
    }

    /// The power goes while a block is erased: each of its pages is as it was, unreadable, or blank, by the
    /// bits of `chaos`.
    pub fn tear_erase(&mut self, block: Pbn, chaos: u64) {
        self.begin_era(block);
        let mut random = floatgate_core::rng::SplitMix64::new(chaos);
        let fates: Vec<u64> = (0..self.ledger.write_pointer(block))
            .map(|_| random.below(3))
            .collect();
        self.ledger
            .tear_erase(block, |page| fates[page as usize] > 0);
        let first = self.ledger.geometry().first_page(block).index();
        for (page, fate) in fates.into_iter().enumerate() {
            if fate < 2 {
                self.pages[first + page] = None;
            }
        }
        // With nothing left to see it cannot be told from a finished erase, so it is one.
        self.half_erased[block.index()] = self.ledger.write_pointer(block) > 0;
    }

    /// What a page holds, if it can be read.
    pub fn stored(&self, at: Ppn) -> Option<StoredPage> {
        self.pages[at.index()].clone()
    }

    /// Programs a page with what it holds on another flash, its sequence number included.
    pub fn program_stored(&mut self, to: Ppn, page: StoredPage) {
        self.program(to, Cause::Host);
        self.pages[to.index()] = Some(page);
    }

    /// Erases a block.
    pub fn erase_block(&mut self, block: Pbn) {
        let Ok(()) = self.erase(block, Cause::Gc, ());
    }

    /// Goes on counting from the youngest page that can be read, as a device does that comes up.
    pub fn find_sequence(&mut self) {
        let readable = self.pages.iter().flatten();
        self.ledger.sequence = readable.map(|page| page.oob.sequence).max().unwrap_or(0);
    }

    fn begin_era(&mut self, block: Pbn) {
        self.eras[block.index()] += 1;
        self.is_sealed = false;
    }

    /// The entry that names that place for a page; none for a place that holds something else, or nothing readable.
    pub fn entry_for(&self, lpn: Lpn, place: Ppn) -> Option<KeptEntry> {
        let read = self.pages.get(place.index())?.as_ref()?.oob;
        let era = self.eras[self.ledger.geometry().block_of(place).index()];
        let recalled = Recalled { place, read };
        (read.oob.lpn == lpn).then_some(KeptEntry { recalled, era })
    }

    /// A memory that keeps nothing, like one that was exchanged.
    pub fn forget_entries(&mut self) {
        self.entries.clear();
        self.is_sealed = false;
    }

    /// Puts an entry, or removes it.
    pub fn put_entry(&mut self, lpn: Lpn, entry: Option<KeptEntry>) {
        self.is_sealed = false;
        if self.entries.is_empty() {
            let pages = self.ledger.geometry().logical_pages as usize;
            self.entries = vec![None; pages];
        }
        self.entries[lpn.index()] = entry;
    }

    fn program(&mut self, to: Ppn, cause: Cause) {
        self.is_sealed = false;
        let block = self.ledger.program(to, cause);
        assert!(
            !self.half_erased[block.index()],
            "program into block {}, whose erase was cut: the scheme has a bug",
            block.0
        );
    }

    fn put(&mut self, to: Ppn, spare: impl SpareArea, bytes: Arc<[u8]>) {
        self.ledger.sequence += 1;
        let oob = OobRead {
            oob: spare.oob(),
            sequence: self.ledger.sequence,
        };
        let mut own = ZEROES;
        spare.fill_bytes(&mut own);
        let oob_bytes = (own != ZEROES).then(|| Arc::new(own));
        self.pages[to.index()] = Some(StoredPage {
            oob,
            oob_bytes,
            bytes,
        });
    }

    fn page(&self, from: Ppn) -> &StoredPage {
        self.pages[from.index()]
            .as_ref()
            .expect("read of an erased or unreadable page: the scheme has a bug")
    }

    /// The OOB of a page, uncounted, for checks.
    pub fn peek_oob(&self, from: Ppn) -> Option<OobRead> {
        self.pages[from.index()].as_ref().map(|page| page.oob)
    }

    /// A page becomes unreadable, as cells that lose their charge do.
    pub fn lose(&mut self, at: Ppn) {
        self.pages[at.index()] = None;
    }

    /// Whether a page holds bytes that can be read.
    pub fn is_readable(&self, at: Ppn) -> bool {
        let page = self.pages[at.index()].as_ref();
        page.is_some_and(|page| !page.bytes.is_empty())
    }

    /// Copies a page as a device does, where one that cannot be read any more is copied as a page that is lost:
    /// its OOB says what is missing.
    pub fn copy_or_lose(&mut self, from: Ppn, to: Ppn, oob: impl SpareArea, cause: Cause) {
        self.ledger.read(from, cause);
        self.program(to, cause);
        let source = self.pages[from.index()].as_ref();
        let bytes = source.map_or_else(|| [].into(), |page| page.bytes.clone());
        self.put(to, oob, bytes);
    }

    /// Changes a programmed page behind everybody's back: OOB, scheme's bytes of the OOB, bytes. Nothing if it cannot
    /// be read.
    pub fn forge(&mut self, at: Ppn, change: impl FnOnce(&mut OobRead, &mut [u8], &mut Vec<u8>)) {
        let Some(page) = &mut self.pages[at.index()] else {
            return;
        };
        let mut oob_bytes = *page.oob_bytes.as_deref().unwrap_or(&ZEROES);
        let mut bytes = page.bytes.to_vec();
        change(&mut page.oob, &mut oob_bytes, &mut bytes);
        page.oob_bytes = Some(Arc::new(oob_bytes));
        page.bytes = bytes.into();
    }

    /// Makes block `to` what block `from` is on `source`, a flash of the same shape.
    pub fn duplicate(&mut self, source: &Self, from: Pbn, to: Pbn) {
        let geometry = source.ledger.geometry();
        let (first, target) = (geometry.first_page(from), geometry.first_page(to));
        self.eras[to.index()] += 1;
        self.ledger.tear_erase(to, |_| false);
        let programmed = |page| source.ledger.is_programmed(Ppn(first.0 + page));
        let erases = source.ledger.erase_count(to);
        self.ledger.restore(to, erases, programmed);
        for page in 0..geometry.pages_per_block as usize {
            self.pages[target.index() + page] = source.pages[first.index() + page].clone();
        }
    }

    /// Stops reporting blocks whose erase was cut: rot that was put in may have hidden them.
    pub fn forgive_torn_erases(&mut self) {
        self.half_erased.fill(false);
    }

    /// The scheme's bytes of a page's OOB, uncounted, for checks.
    pub fn peek_oob_bytes(&self, from: Ppn) -> Option<&[u8]> {
        let page = self.pages[from.index()].as_ref();
        page.map(|page| &page.oob_bytes.as_deref().unwrap_or(&ZEROES)[..])
    }
}

impl Flash for RamFlash {
    type Token = ();
    type Error = std::convert::Infallible;
    type Pcm = Self;

    fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    fn read_host(&mut self, slot: Slot, from: Ppn, _after: ()) -> Result<(), Self::Error> {
        self.ledger.read(from, Cause::Host);
        let bytes = self.page(from).bytes.clone();
        self.buffer[slot.0 as usize].copy_from_slice(&bytes);
        Ok(())
    }

    fn program_host(
        &mut self,
        slot: Slot,
        to: Ppn,
        oob: impl SpareArea,
        _after: (),
    ) -> Result<(), Self::Error> {
        self.program(to, Cause::Host);
        let bytes = self.buffer[slot.0 as usize].as_slice().into();
        self.put(to, oob, bytes);
        Ok(())
    }

    fn absent(&mut self, slot: Slot, _after: ()) {
        self.unwritten_reads += 1;
        self.buffer[slot.0 as usize].fill(0);
    }

    fn read_map(
        &mut self,
        from: Ppn,
        take: impl FnOnce(&[u8]),
        _after: (),
    ) -> Result<(), Self::Error> {
        self.ledger.try_read(Cause::Map);
        if self.is_readable(from) {
            take(&self.page(from).bytes);
        }
        Ok(())
    }

    fn program_map(
        &mut self,
        to: Ppn,
        oob: impl SpareArea,
        fill: impl FnOnce(&mut [u8]),
        _after: (),
    ) -> Result<(), Self::Error> {
        self.program(to, Cause::Map);
        let mut bytes = vec![0; self.page_bytes];
        fill(&mut bytes);
        self.put(to, oob, bytes.into());
        Ok(())
    }

    fn copy(
        &mut self,
        from: Ppn,
        to: Ppn,
        oob: impl SpareArea,
        cause: Cause,
        _after: (),
    ) -> Result<(), Self::Error> {
        self.ledger.read(from, cause);
        self.program(to, cause);
        let bytes = self.page(from).bytes.clone();
        assert_eq!(
            self.page(from).oob.oob.lpn,
            oob.oob().lpn,
            "a copy keeps its page's number"
        );
        self.put(to, oob, bytes);
        Ok(())
    }

    fn read_oob(
        &mut self,
        from: Ppn,
        cause: Cause,
        _after: (),
    ) -> Result<(Option<SpareRead>, ()), Self::Error> {
        self.ledger.read_oob(cause);
        let page = self.pages[from.index()].as_ref();
        let spare = page.map(|page| SpareRead {
            read: page.oob,
            bytes: *page.oob_bytes.as_deref().unwrap_or(&ZEROES),
        });
        Ok((spare, ()))
    }

    fn erase(&mut self, block: Pbn, cause: Cause, _after: ()) -> Result<(), Self::Error> {
        self.begin_era(block);
        self.ledger.erase(block, cause);
        let geometry = self.ledger.geometry();
        let first = geometry.first_page(block).index();
        self.pages[first..first + geometry.pages_per_block as usize].fill(None);
        self.half_erased[block.index()] = false;
        Ok(())
    }

    fn join(&mut self, _a: (), _b: ()) {}

    fn pcm(&mut self) -> &mut Self {
        self
    }
}

impl Pcm for RamFlash {
    type Token = ();

    fn read_entry(&mut self, lpn: Lpn) {
        self.ledger.read_entry(lpn);
    }

    fn write_entry(&mut self, lpn: Lpn, place: Ppn, _after: ()) {
        self.ledger.write_entry(lpn, place, ());
        self.put_entry(lpn, self.entry_for(lpn, place));
    }

    fn recall(&mut self, lpn: Lpn) -> Option<Recalled> {
        self.ledger.read_entry(lpn);
        let kept = (*self.entries.get(lpn.index())?)?;
        let block = self.ledger.geometry().block_of(kept.recalled.place);
        let is_there = self.ledger.is_programmed(kept.recalled.place);
        (is_there && kept.era == self.eras[block.index()]).then_some(kept.recalled)
    }

    fn seal(&mut self) {
        self.is_sealed = true;
    }

    fn is_sealed(&self) -> bool {
        self.is_sealed
    }
}

impl Preload for RamFlash {
    fn preload<O: SpareArea>(
        &mut self,
        block: Pbn,
        pages: u32,
        mut oob_of: impl FnMut(u32) -> O,
    ) -> Result<(), Self::Error> {
        self.ledger.preload(block, pages);
        for page in 0..pages {
            let at = self.ledger.geometry().ppn(block, page);
            let oob = oob_of(page);
            let bytes = start_content(oob.oob().lpn, self.page_bytes);
            self.put(at, oob, bytes.into());
        }
        Ok(())
    }

    fn preload_map<O: SpareArea>(
        &mut self,
        block: Pbn,
        pages: u32,
        mut oob_of: impl FnMut(u32) -> O,
        mut fill: impl FnMut(u32, &mut [u8]),
    ) -> Result<(), Self::Error> {
        self.ledger.preload(block, pages);
        for page in 0..pages {
            let at = self.ledger.geometry().ppn(block, page);
            let mut bytes = vec![0; self.page_bytes];
            fill(page, &mut bytes);
            self.put(at, oob_of(page), bytes.into());
        }
        Ok(())
    }

    fn preload_entry(&mut self, lpn: Lpn, place: Ppn) {
        self.put_entry(lpn, self.entry_for(lpn, place));
    }
}
