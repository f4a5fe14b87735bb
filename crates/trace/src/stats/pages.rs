//! A sparse table of pages: dense regions found by hash.

use std::collections::HashMap;

use rustc_hash::FxBuildHasher;

/// Pages of a region: small enough that scattered single pages do not waste much.
const REGION: u64 = 32;

/// What is known about a page.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Page {
    /// Number of its first page write.
    first: u64,
    /// Number of its last page write.
    last: u64,
    writes: u32,
    read: bool,
}

impl Page {
    pub fn touched(&self) -> bool {
        self.read || self.writes > 0
    }

    /// Page write `t` goes here; returns the interval to the one before.
    #[inline]
    pub fn write(&mut self, t: u64) -> Option<u64> {
        let interval = if self.writes == 0 {
            self.first = t;
            None
        } else {
            Some(t - self.last - 1)
        };
        self.last = t;
        self.writes = self.writes.saturating_add(1);
        interval
    }

    pub fn writes(&self) -> u32 {
        self.writes
    }

    /// The sum of the intervals and their number; `None` for a page written once. The intervals add up
    /// to the time between first and last write without the writes of the page itself.
    pub fn mean_interval(&self) -> Option<(u64, u64)> {
        let number = u64::from(self.writes.checked_sub(1)?);
        (number > 0).then(|| (self.last - self.first - number, number))
    }
}

#[derive(Debug, Default)]
pub(crate) struct PageTable {
    places: HashMap<(u32, u64), u32, FxBuildHasher>,
    /// Boxed, so that growing does not copy the regions and never needs the memory twice.
    #[allow(clippy::vec_box)]
    regions: Vec<Box<[Page; REGION as usize]>>,
    /// The region looked up last.
    last: Option<((u32, u64), u32)>,
}

impl PageTable {
    fn region(&mut self, volume: u32, region: u64) -> &mut [Page; REGION as usize] {
        let key = (volume, region);
        let place = match self.last {
            Some((last, place)) if last == key => place,
            _ => {
                let next = self.regions.len() as u32;
                let place = *self.places.entry(key).or_insert(next);
                if place == next {
                    self.regions
                        .push(Box::new([Page::default(); REGION as usize]));
                }
                self.last = Some((key, place));
                place
            }
        };
        &mut self.regions[place as usize]
    }

    /// Visits the pages of a range in ascending order.
    #[inline]
    pub fn write(&mut self, volume: u32, first: u64, last: u64, mut visit: impl FnMut(&mut Page)) {
        let mut at = first;
        while at <= last {
            let region = at / REGION;
            let stop = last.min(region * REGION + (REGION - 1));
            let from = (at % REGION) as usize;
            let to = (stop % REGION) as usize;
            for page in &mut self.region(volume, region)[from..=to] {
                visit(page);
            }
            at = stop + 1;
        }
    }

    /// Marks the pages of a range as read; returns how many were never touched before.
    pub fn read(&mut self, volume: u32, first: u64, last: u64) -> u64 {
        let mut new = 0;
        self.write(volume, first, last, |page| {
            new += u64::from(!page.touched());
            page.read = true;
        });
        new
    }

    /// All pages that were written.
    pub fn written(&self) -> impl Iterator<Item = &Page> {
        self.regions
            .iter()
            .flat_map(|region| region.iter())
            .filter(|page| page.writes > 0)
    }

    pub fn memory_bytes(&self) -> u64 {
        let region = size_of::<[Page; REGION as usize]>() + 8;
        (self.regions.len() * region + self.places.capacity() * 25) as u64
    }
}
