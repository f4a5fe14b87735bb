//! A read cache: which pages that were read are kept in memory, and which are read ahead. No bytes and no time.
//!
//! The page that was not read for the longest time makes room. Reads that go on where one before them ended are a
//! sequential stream; several of them can go on side by side. What follows them is read ahead, up to a window of pages.

use alloc::vec;
use alloc::vec::Vec;
use core::ops::Range;

use crate::address::Lpn;
use crate::lists::Lists;

/// No slot.
const NONE: u32 = u32::MAX;
/// The two lists of slots: those in use, the next to make room first; those that are free.
const USED: usize = 0;
const FREE: usize = 1;
/// Sequential streams that are told apart: more than a host of our traces has at a time.
const STREAMS: usize = 8;

/// What became of pages that were read ahead.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ReadAhead {
    /// Read afterwards.
    pub used: u64,
    /// Dropped before anybody read them.
    pub wasted: u64,
}

/// A page in the cache.
#[derive(Clone, Copy, Debug)]
struct Place {
    lpn: u32,
    /// It was read ahead, and nobody asked for it yet.
    unread: bool,
}

/// Pages that were read, or read ahead. See the module's text.
#[derive(Clone, Debug)]
pub struct ReadCache {
    /// Logical pages: the slot of each, or [`NONE`].
    slot_of: Vec<u32>,
    places: Vec<Place>,
    order: Lists,
    /// What became of what was read ahead.
    pub read_ahead: ReadAhead,
}

impl ReadCache {
    /// An empty cache of so many pages, at least one.
    pub fn new(pages: u32, logical_pages: u32) -> Self {
        let empty = Place {
            lpn: NONE,
            unread: false,
        };
        let mut order = Lists::new(pages.max(1) as usize, 2);
        (0..pages.max(1)).for_each(|slot| order.push_back(FREE, slot));
        Self {
            slot_of: vec![NONE; logical_pages as usize],
            places: vec![empty; pages.max(1) as usize],
            order,
            read_ahead: ReadAhead::default(),
        }
    }

    /// Bytes that the tables of such a cache take.
    pub fn ram_bytes(pages: u32, logical_pages: u32) -> u64 {
        4 * u64::from(logical_pages) + 20 * u64::from(pages)
    }

    /// Whether a page is there.
    #[inline]
    pub fn has(&self, lpn: Lpn) -> bool {
        self.slot_of[lpn.index()] != NONE
    }

    /// The slot of a page that is read now, if it is there.
    pub fn read(&mut self, lpn: Lpn) -> Option<u32> {
        let slot = self.slot_of[lpn.index()];
        if slot == NONE {
            return None;
        }
        let place = &mut self.places[slot as usize];
        self.read_ahead.used += u64::from(core::mem::take(&mut place.unread));
        self.order.move_to_back(USED, slot);
        Some(slot)
    }

    /// Takes in a page that is not there, read ahead or because somebody asked; another one makes room if need be.
    pub fn put(&mut self, lpn: Lpn, ahead: bool) -> u32 {
        let slot = self.order.first(FREE).unwrap_or_else(|| {
            let oldest = self.order.first(USED).expect("a slot is free or in use");
            self.drop_slot(oldest);
            oldest
        });
        self.order.move_to_back(USED, slot);
        self.slot_of[lpn.index()] = slot;
        self.places[slot as usize] = Place {
            lpn: lpn.0,
            unread: ahead,
        };
        slot
    }

    /// Drops a page, if it is there: its content is not the newest any more.
    pub fn remove(&mut self, lpn: Lpn) {
        let slot = self.slot_of[lpn.index()];
        if slot != NONE {
            self.drop_slot(slot);
        }
    }

    fn drop_slot(&mut self, slot: u32) {
        let Place { lpn, unread } = self.places[slot as usize];
        self.read_ahead.wasted += u64::from(unread);
        self.slot_of[lpn as usize] = NONE;
        self.order.move_to_back(FREE, slot);
    }
}

/// A sequential stream.
#[derive(Clone, Copy, Debug)]
struct Stream {
    /// Where it goes on.
    next: u32,
    /// Pages before that one were read ahead, or need not be.
    until: u32,
}

/// The sequential streams among reads, and what of them to read ahead.
#[derive(Clone, Debug)]
pub struct Streams {
    window: u32,
    logical_pages: u32,
    /// The one that was read last comes last.
    streams: Vec<Stream>,
}

impl Streams {
    /// No streams yet; `window` pages behind each are to be read ahead.
    pub fn new(window: u32, logical_pages: u32) -> Self {
        Self {
            window,
            logical_pages,
            streams: Vec::with_capacity(STREAMS),
        }
    }

    /// These pages are read: what to read ahead now. Each page of a stream is named once.
    pub fn read(&mut self, first: Lpn, pages: u32) -> Range<u32> {
        let end = first.0 + pages;
        let at = self
            .streams
            .iter()
            .position(|stream| stream.next == first.0);
        let Some(at) = at else {
            if self.streams.len() == STREAMS {
                self.streams.remove(0);
            }
            self.streams.push(Stream {
                next: end,
                until: end,
            });
            return 0..0;
        };
        let stream = self.streams.remove(at);
        let from = stream.until.max(end);
        let until = (end.saturating_add(self.window)).min(self.logical_pages);
        self.streams.push(Stream {
            next: end,
            until: until.max(from),
        });
        from..until.max(from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::SplitMix64;

    #[test]
    fn the_cache_is_a_plain_list_of_what_was_read_last() {
        let mut rng = SplitMix64::new(3);
        let mut cache = ReadCache::new(5, 16);
        // Pages, the oldest first, each with whether it was read ahead and not used.
        let mut model: Vec<(u32, bool)> = Vec::new();
        let mut expected = ReadAhead::default();
        for _ in 0..20_000 {
            let lpn = rng.below(16) as u32;
            let found = model.iter().position(|&(page, _)| page == lpn);
            match (rng.below(3), found) {
                (0, Some(at)) => {
                    expected.wasted += u64::from(model.remove(at).1);
                    cache.remove(Lpn(lpn));
                }
                (0, None) => cache.remove(Lpn(lpn)),
                (_, Some(at)) => {
                    expected.used += u64::from(model.remove(at).1);
                    model.push((lpn, false));
                    assert!(cache.read(Lpn(lpn)).is_some());
                }
                (_, None) => {
                    assert_eq!(cache.read(Lpn(lpn)), None);
                    let ahead = rng.below(2) == 0;
                    if model.len() == 5 {
                        expected.wasted += u64::from(model.remove(0).1);
                    }
                    model.push((lpn, ahead));
                    cache.put(Lpn(lpn), ahead);
                }
            }
            assert_eq!(cache.read_ahead, expected);
            for page in 0..16 {
                assert_eq!(cache.has(Lpn(page)), model.iter().any(|&(p, _)| p == page));
            }
        }
        assert!(expected.used > 100 && expected.wasted > 100);
    }

    #[test]
    fn streams_side_by_side_are_read_ahead_each_page_once() {
        let mut streams = Streams::new(4, 100);
        assert_eq!(streams.read(Lpn(10), 2), 0..0);
        assert_eq!(streams.read(Lpn(50), 1), 0..0);
        assert_eq!(streams.read(Lpn(12), 2), 14..18);
        assert_eq!(streams.read(Lpn(51), 1), 52..56);
        assert_eq!(streams.read(Lpn(14), 1), 18..19);
        assert_eq!(streams.read(Lpn(52), 8), 60..64);
        // The end of the device ends what is read ahead.
        assert_eq!(streams.read(Lpn(96), 1), 0..0);
        assert_eq!(streams.read(Lpn(97), 1), 98..100);
        assert_eq!(streams.read(Lpn(98), 2), 100..100);
        // Nine others later a stream is forgotten.
        for other in 0..9 {
            streams.read(Lpn(70 + 2 * other), 1);
        }
        assert_eq!(streams.read(Lpn(15), 1), 0..0);
    }
}
