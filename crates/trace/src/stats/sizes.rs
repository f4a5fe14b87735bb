//! Statistics by the size of writes: update frequency and original request size.

use std::collections::{BTreeMap, HashMap};

use rustc_hash::FxBuildHasher;

use super::chains::Chains;
use super::result::SizeClass;

/// Units of a region of the bitmaps.
const REGION: u64 = 512;

#[derive(Debug)]
pub(crate) struct Sizes {
    unit: u64,
    classes: BTreeMap<u64, SizeClass>,
    /// Which units the writes of a size wrote: size, volume and region to one bit a unit.
    written: HashMap<(u64, u32, u64), [u64; 8], FxBuildHasher>,
    chains: Chains,
}

impl Sizes {
    pub fn new(unit: u32, window: u64) -> Self {
        Sizes {
            unit: u64::from(unit),
            classes: BTreeMap::new(),
            written: HashMap::default(),
            chains: Chains::new(window),
        }
    }

    /// Counts a write of the bytes from `offset` to `end`.
    pub fn add(&mut self, volume: u32, offset: u64, end: u64) {
        let first = offset / self.unit;
        let last = (end - 1) / self.unit;
        let size = last - first + 1;
        let class = self.classes.entry(size).or_insert(SizeClass {
            size,
            ..SizeClass::default()
        });
        class.requests += 1;
        class.unit_writes += size;
        let mut at = first;
        while at <= last {
            let region = at / REGION;
            let stop = last.min(region * REGION + (REGION - 1));
            let bits = self.written.entry((size, volume, region)).or_default();
            class.distinct_units += set(bits, at % REGION, stop % REGION);
            at = stop + 1;
        }
        let classes = &mut self.classes;
        self.chains.add(volume, first, size, |size, sum| {
            if let Some(class) = classes.get_mut(&size) {
                class.original_sum = class.original_sum.saturating_add(sum);
            }
        });
    }

    pub fn memory_bytes(&self) -> u64 {
        (self.written.capacity() * (24 + 64 + 1) + self.classes.len() * 64) as u64
    }

    /// The classes, smallest first.
    pub fn finish(mut self) -> Vec<SizeClass> {
        let classes = &mut self.classes;
        self.chains.finish(|size, sum| {
            if let Some(class) = classes.get_mut(&size) {
                class.original_sum = class.original_sum.saturating_add(sum);
            }
        });
        self.classes.into_values().collect()
    }
}

/// Sets the bits from `from` to `to` (included); returns how many were not set.
fn set(bits: &mut [u64; 8], from: u64, to: u64) -> u64 {
    let mut new = 0;
    for word in from / 64..=to / 64 {
        let low = if word == from / 64 { from % 64 } else { 0 };
        let high = if word == to / 64 { to % 64 } else { 63 };
        let mask = (u64::MAX >> (63 - high)) & (u64::MAX << low);
        let old = &mut bits[word as usize];
        new += u64::from((mask & !*old).count_ones());
        *old |= mask;
    }
    new
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits() {
        let mut bits = [0; 8];
        assert_eq!(set(&mut bits, 3, 3), 1);
        assert_eq!(set(&mut bits, 0, 511), 511);
        assert_eq!(set(&mut bits, 60, 200), 0);
        assert_eq!(bits, [u64::MAX; 8]);
    }
}
