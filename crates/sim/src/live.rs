//! Which logical pages have content.

use floatgate_core::Lpn;
use floatgate_core::state;
use floatgate_core::state::{Passed, StateError};

/// A bit a page, as long as not all pages have content; a device that is full needs none.
#[derive(Debug)]
pub(crate) struct LivePages {
    pages: u32,
    live: u32,
    /// One bit a page; empty while all pages have content.
    bits: Vec<u64>,
}

state!(LivePages { live } grows { bits } check check_state fixed { pages });

impl LivePages {
    fn check_state(&self) -> Passed {
        let fits = match self.bits.is_empty() {
            true => self.live == self.pages,
            // Bits past the last page mean nothing.
            false => {
                let is_live = |&page: &u32| self.bits[page as usize / 64] >> (page % 64) & 1 == 1;
                self.bits.len() == words(self.pages)
                    && (0..self.pages).filter(is_live).count() == self.live as usize
            }
        };
        match fits {
            true => Ok(()),
            false => Err(StateError::damaged("the pages with content do not add up")),
        }
    }

    /// All pages, or none.
    pub(crate) fn new(pages: u32, full: bool) -> Self {
        let words = if full { 0 } else { words(pages) };
        Self {
            pages,
            live: if full { pages } else { 0 },
            bits: vec![0; words],
        }
    }

    /// Pages with content.
    pub(crate) fn count(&self) -> u32 {
        self.live
    }

    /// Whether a page has content.
    #[inline]
    pub(crate) fn has(&self, lpn: u32) -> bool {
        self.live == self.pages || self.bits[lpn as usize / 64] >> (lpn % 64) & 1 == 1
    }

    /// Gives content to pages that follow each other, or takes it.
    #[inline]
    pub(crate) fn set(&mut self, first: Lpn, pages: u32, live: bool) {
        if !live || self.live < self.pages {
            self.set_bits(first, pages, live);
        }
    }

    fn set_bits(&mut self, first: Lpn, pages: u32, live: bool) {
        if self.bits.is_empty() {
            self.bits = vec![u64::MAX; words(self.pages)];
        }
        for lpn in first.0..first.0 + pages {
            let (word, bit) = (&mut self.bits[lpn as usize / 64], 1 << (lpn % 64));
            if (*word & bit != 0) != live {
                *word ^= bit;
                self.live = if live { self.live + 1 } else { self.live - 1 };
            }
        }
        if self.live == self.pages {
            self.bits = Vec::new();
        }
    }
}

fn words(pages: u32) -> usize {
    (pages as usize).div_ceil(64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use floatgate_core::rng::SplitMix64;

    #[test]
    fn pages_are_live_as_a_plain_table_says() {
        for full in [false, true] {
            let mut live = LivePages::new(130, full);
            let mut model = [full; 130];
            let mut rng = SplitMix64::new(7);
            let mut all = 0;
            for _ in 0..4_000 {
                let first = rng.below(130);
                let pages = 1 + rng.below(130 - first);
                let on = rng.below(4) > 0;
                live.set(Lpn(first as u32), pages as u32, on);
                model[first as usize..(first + pages) as usize].fill(on);
                all += u32::from(live.bits.is_empty());
                for (lpn, &expected) in model.iter().enumerate() {
                    assert_eq!(live.has(lpn as u32), expected);
                }
            }
            assert!(all > 0, "the case without bits occurs");
        }
    }
}
