//! Reading the region of an image for phase-change memory.

use std::io;

use floatgate_core::Lpn;

use super::disk::Disk;
use super::entries::{ENTRY_BYTES, PAGE_BYTES, PAGE_ENTRIES, SEAL_BYTES, Seal, decode};
use super::format::Layout;

/// What the region of an image holds.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub(super) struct RegionSeen {
    /// Entries that name a place.
    pub entries: u64,
    /// Pages whose entry is damaged, and how.
    pub damaged: Vec<(Lpn, &'static str)>,
    /// The seal, or what is wrong with it.
    pub seal: Option<Seal>,
    pub seal_fault: Option<&'static str>,
    /// Over all pages of entries, as a seal has it.
    pub entries_crc: u32,
}

impl RegionSeen {
    /// Reads all of a region.
    pub fn read<D: Disk>(disk: &D, layout: &Layout, logical_pages: u32) -> io::Result<Self> {
        let mut seen = Self::default();
        let mut bytes = [0; SEAL_BYTES];
        disk.read(&mut bytes, layout.seal_at())?;
        match Seal::decode(&bytes) {
            Ok(seal) => seen.seal = seal,
            Err(fault) => seen.seal_fault = Some(fault),
        }
        let mut page = [0; PAGE_BYTES];
        for first in (0..logical_pages).step_by(PAGE_ENTRIES) {
            disk.read(&mut page, layout.entry_at(first))?;
            seen.entries_crc = crc32c::crc32c_append(seen.entries_crc, &page);
            let lpns = (first..logical_pages).map(Lpn);
            for (lpn, bytes) in lpns.zip(page.as_chunks::<ENTRY_BYTES>().0) {
                match decode(lpn, bytes) {
                    Ok(entry) => seen.entries += u64::from(entry.is_some()),
                    Err(fault) => seen.damaged.push((lpn, fault)),
                }
            }
        }
        Ok(seen)
    }

    /// Whether the entries are those of a clean close after that operation.
    pub fn is_sealed_at(&self, op: u64) -> bool {
        let seal = Seal {
            op,
            entries_crc: self.entries_crc,
        };
        self.seal == Some(seal)
    }
}

/// The page of the region that was read last: entries are read one after the other.
#[derive(Debug, Default)]
pub(super) struct Cached {
    /// Its first logical page, and its bytes.
    page: Option<(u32, Box<[u8; PAGE_BYTES]>)>,
}

impl Cached {
    /// The bytes of an entry.
    pub fn entry<D: Disk>(
        &mut self,
        disk: &D,
        layout: &Layout,
        lpn: Lpn,
    ) -> io::Result<[u8; ENTRY_BYTES]> {
        let at = lpn.0 % PAGE_ENTRIES as u32;
        let first = lpn.0 - at;
        let page = match self.page.take() {
            Some((cached, page)) if cached == first => page,
            other => {
                let mut page = other.map_or_else(|| Box::new([0; PAGE_BYTES]), |(_, page)| page);
                disk.read(&mut page[..], layout.entry_at(first))?;
                page
            }
        };
        let at = at as usize * ENTRY_BYTES;
        let bytes = std::array::from_fn(|i| page[at + i]);
        self.page = Some((first, page));
        Ok(bytes)
    }

    /// Something in the region has changed.
    pub fn forget(&mut self) {
        self.page = None;
    }
}
