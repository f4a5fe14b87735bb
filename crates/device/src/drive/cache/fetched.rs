//! Pages that were read from the flash and are kept, and which pages are read ahead: the core's [`ReadCache`] and
//! [`Streams`] decide, as in a simulation. Here are the bytes.

use std::ops::Range;

use floatgate_core::Lpn;
use floatgate_core::read_cache::{ReadAhead, ReadCache, Streams};

use super::{CacheSetup, Shape};

/// Whole pages as the flash has them. See the module's text.
pub(super) struct Fetched {
    shape: Shape,
    pages: ReadCache,
    streams: Streams,
    data: Vec<u8>,
}

impl Fetched {
    /// Room for as many whole pages as go into the bytes, if there is to be any.
    pub fn new(setup: &CacheSetup, shape: Shape) -> Option<Self> {
        let slots = shape.pages_in(setup.read_bytes);
        let window = setup.ahead_bytes / shape.page_bytes() as u64;
        (slots > 0).then(|| Self {
            shape,
            pages: ReadCache::new(slots, shape.pages),
            // What is read ahead must not push itself out.
            streams: Streams::new(window.min(slots.into()) as u32, shape.pages),
            data: vec![0; slots as usize * shape.page_bytes()],
        })
    }

    pub fn size_bytes(&self) -> u64 {
        self.data.len() as u64
    }

    pub fn ahead(&self) -> ReadAhead {
        self.pages.read_ahead
    }

    pub fn has(&self, page: Lpn) -> bool {
        self.pages.has(page)
    }

    /// The bytes of a page that is read now, if it is there.
    pub fn read(&mut self, page: Lpn) -> Option<&[u8]> {
        let slot = self.pages.read(page)?;
        Some(&self.data[self.place(slot)])
    }

    /// Takes in a page that is not there.
    pub fn put(&mut self, page: Lpn, bytes: &[u8], ahead: bool) {
        let place = self.pages.put(page, ahead);
        let place = self.place(place);
        self.data[place].copy_from_slice(bytes);
    }

    fn place(&self, slot: u32) -> Range<usize> {
        let bytes = self.shape.page_bytes();
        slot as usize * bytes..(slot as usize + 1) * bytes
    }

    /// The flash is about to have something else there.
    pub fn outdate(&mut self, first: u64, end: u64) {
        for (at, _) in self.shape.by_page(first, end) {
            self.pages.remove(self.shape.page_of(at));
        }
    }

    /// These sectors were read: what to read ahead now. A page counts when its last sector is read, so that reads of
    /// parts of pages are a stream too.
    pub fn next_pages(&mut self, first: u64, end: u64) -> Range<u32> {
        let (page, behind) = (self.shape.page_of(first), self.shape.page_of(end));
        match behind.0 > page.0 {
            true => self.streams.read(page, behind.0 - page.0),
            false => 0..0,
        }
    }
}
