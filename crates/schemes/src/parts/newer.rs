//! Which entries of a page map are newer than flash, for caches that write a translation page with everything that is newer in
//! it: a bit an entry, and for each translation page how many there are, since when they wait, and what produced them.

use crate::hints::prefetch;
use crate::parts::lists::Lists;
use crate::parts::map_cache::{Mark, Producers};
use floatgate_core::address::Lpn;
use floatgate_core::flash::Flash;
use floatgate_core::geometry::Geometry;
use floatgate_core::state;
use std::ops::RangeInclusive;

const WORD_BITS: u32 = u64::BITS;

/// Bits, one a logical page.
#[derive(Debug)]
pub struct LpnBits {
    words: Vec<u64>,
}

state!(LpnBits { words });

impl LpnBits {
    /// None is set.
    pub fn new(pages: u32) -> Self {
        Self {
            words: vec![0; pages.div_ceil(WORD_BITS) as usize],
        }
    }

    /// Bytes of memory for so many pages.
    pub fn ram_bytes(pages: u32) -> u64 {
        8 * u64::from(pages.div_ceil(WORD_BITS))
    }

    /// That of a page will be asked for soon.
    #[inline(always)]
    pub fn prefetch(&self, lpn: Lpn) {
        prefetch(&self.words, (lpn.0 / WORD_BITS) as usize);
    }

    /// Whether that of a page is set.
    #[inline(always)]
    pub fn has(&self, lpn: Lpn) -> bool {
        self.words[(lpn.0 / WORD_BITS) as usize] >> (lpn.0 % WORD_BITS) & 1 == 1
    }

    /// Sets or clears that of a page. Whether it changes.
    #[inline]
    pub fn put(&mut self, lpn: Lpn, value: bool) -> bool {
        let word = &mut self.words[(lpn.0 / WORD_BITS) as usize];
        let bit = 1 << (lpn.0 % WORD_BITS);
        let changes = (*word & bit != 0) != value;
        *word ^= if changes { bit } else { 0 };
        changes
    }

    /// The words that hold a run of pages, with a mask of its bits in each.
    fn words(pages: RangeInclusive<Lpn>) -> impl Iterator<Item = (usize, u64)> + use<> {
        let (first, last) = (pages.start().0, pages.end().0);
        (first / WORD_BITS..=last / WORD_BITS).map(move |word| {
            let from = first.max(word * WORD_BITS) % WORD_BITS;
            let to = last.min(word * WORD_BITS + (WORD_BITS - 1)) % WORD_BITS;
            let mask = u64::MAX >> (WORD_BITS - 1 - to + from) << from;
            (word as usize, mask)
        })
    }

    /// The pages of a run whose bits are set, in ascending order.
    pub fn iter(&self, pages: RangeInclusive<Lpn>) -> impl Iterator<Item = Lpn> + '_ {
        Self::words(pages).flat_map(|(word, mask)| {
            let mut rest = self.words[word] & mask;
            std::iter::from_fn(move || {
                let bit = (rest != 0).then(|| rest.trailing_zeros())?;
                rest &= rest - 1;
                Some(Lpn(word as u32 * WORD_BITS + bit))
            })
        })
    }

    /// Clears those of a run of pages.
    pub fn clear(&mut self, pages: RangeInclusive<Lpn>) {
        for (word, mask) in Self::words(pages) {
            self.words[word] &= !mask;
        }
    }
}

/// The entries that are newer than flash.
#[derive(Debug)]
pub struct NewerEntries {
    bits: LpnBits,
    /// How many there are in each translation page, and in all.
    count: Vec<u32>,
    total: u32,
    /// The translation pages with newer entries, the one that has waited longest first, and since which program.
    order: Lists,
    since: Vec<u64>,
    /// Where the collection in work began to move pages.
    moves: u64,
    /// The operation that produced the newer entries of each translation page, if the request in work did.
    produced: Vec<Mark>,
    /// The read that loaded each translation page, if the request in work did.
    loaded: Vec<Mark>,
    requests: u32,
}

state!(NewerEntries {
    bits,
    count,
    total,
    order,
    since,
    moves,
    produced,
    loaded,
    requests
});

impl NewerEntries {
    /// Nothing is newer.
    pub fn new(geometry: &Geometry, pages: u32) -> Self {
        let pages = pages as usize;
        Self {
            bits: LpnBits::new(geometry.logical_pages),
            count: vec![0; pages],
            total: 0,
            order: Lists::new(pages, 1),
            since: vec![0; pages],
            moves: u64::MAX,
            produced: vec![Mark::NONE; pages],
            loaded: vec![Mark::NONE; pages],
            requests: 0,
        }
    }

    /// Bytes of memory.
    pub fn ram_bytes(geometry: &Geometry, pages: u64) -> u64 {
        LpnBits::ram_bytes(geometry.logical_pages) + 40 * pages
    }

    /// A request begins: what earlier ones did is waited for no more.
    pub fn begin<T: Copy + Default>(&mut self) -> Producers<T> {
        self.requests = self.requests.wrapping_add(1);
        Producers::of_request(self.requests)
    }

    /// Whether the entry of a page is newer.
    #[inline(always)]
    pub fn has(&self, lpn: Lpn) -> bool {
        self.bits.has(lpn)
    }

    /// Newer entries of a translation page.
    #[inline(always)]
    pub fn of_page(&self, page: u32) -> u32 {
        self.count[page as usize]
    }

    /// Newer entries.
    pub fn total(&self) -> u32 {
        self.total
    }

    /// Those of a run of pages.
    pub fn iter(&self, pages: RangeInclusive<Lpn>) -> impl Iterator<Item = Lpn> + '_ {
        self.bits.iter(pages)
    }

    /// The translation pages that have some, in no order that matters.
    pub fn pages(&self) -> impl Iterator<Item = u32> + '_ {
        self.order.iter(0)
    }

    /// An entry of a translation page has changed, by an operation with that number or later.
    #[inline]
    pub fn mark(&mut self, lpn: Lpn, page: u32, since: u64) {
        if self.bits.put(lpn, true) {
            self.total += 1;
            self.count[page as usize] += 1;
            if self.count[page as usize] == 1 {
                self.since[page as usize] = since;
                self.order.push_back(0, page);
            }
        }
    }

    /// A collection has moved a page, with the program of that number.
    #[inline]
    pub fn moved(&mut self, number: u64) {
        self.moves = self.moves.min(number);
    }

    /// The number at which the collection in work began to move pages.
    pub fn moves(&self) -> u64 {
        self.moves
    }

    /// All that the collection has moved is in the map.
    pub fn end_moves(&mut self) {
        self.moves = u64::MAX;
    }

    /// Keeps the end of an operation that changes entries of a translation page.
    pub fn note<F: Flash>(
        &mut self,
        flash: &mut F,
        page: u32,
        done: F::Token,
        producers: &mut Producers<F::Token>,
    ) {
        let mark = &mut self.produced[page as usize];
        let done = match producers.of(*mark) {
            Some(before) => flash.join(before, done),
            None => done,
        };
        *mark = producers.note(done);
    }

    /// When the newer entries of a translation page were produced, as far as this request did it.
    pub fn produced<T: Copy + Default>(&self, page: u32, producers: &Producers<T>) -> T {
        let mark = self.produced[page as usize];
        producers.of(mark).unwrap_or_default()
    }

    /// Keeps the end of a read of a translation page.
    pub fn note_load<T: Copy + Default>(
        &mut self,
        page: u32,
        there: T,
        producers: &mut Producers<T>,
    ) {
        self.loaded[page as usize] = producers.note(there);
    }

    /// When a translation page is there, if this request has loaded it.
    #[inline]
    pub fn loaded<T: Copy + Default>(&self, page: u32, producers: &Producers<T>) -> T {
        let mark = self.loaded[page as usize];
        producers.of(mark).unwrap_or_default()
    }

    /// What is newer in a translation page waits no more: its next copy has it.
    pub fn wait_no_more(&mut self, page: u32) {
        self.order.remove(page);
    }

    /// A translation page, which has the entries of those pages, has been written.
    pub fn clear(&mut self, page: u32, entries: RangeInclusive<Lpn>) {
        self.order.remove(page);
        self.bits.clear(entries);
        self.total -= std::mem::take(&mut self.count[page as usize]);
        self.produced[page as usize] = Mark::NONE;
    }

    /// Changes with lower numbers are on flash; `u64::MAX` if all are.
    pub fn oldest(&self) -> u64 {
        let first = self.order.first(0).map(|page| self.since[page as usize]);
        first.unwrap_or(u64::MAX).min(self.moves)
    }

    /// Checks the counts against the bits.
    ///
    /// # Errors
    /// What does not agree.
    pub fn audit(&self, entries: impl Fn(u32) -> RangeInclusive<Lpn>) -> Result<(), String> {
        let mut total = 0;
        for (page, &count) in (0..).zip(&self.count) {
            let newer = self.bits.iter(entries(page)).count() as u32;
            if newer != count || (count > 0) != self.order.list_of(page).is_some() {
                return Err(format!(
                    "{newer} newer entries of page {page}, counted {count}"
                ));
            }
            total += newer;
        }
        if total != self.total {
            return Err(format!("{total} newer entries, counted {}", self.total));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use floatgate_core::rng::SplitMix64;

    #[test]
    fn bits_agree_with_a_list() {
        let mut rng = SplitMix64::new(2);
        let mut bits = LpnBits::new(200);
        let mut model = [false; 200];
        for _ in 0..4_000 {
            let (a, b) = (rng.below(200) as u32, rng.below(200) as u32);
            let (first, last) = (a.min(b), a.max(b));
            let run = || Lpn(first)..=Lpn(last);
            match rng.below(8) {
                0 => {
                    bits.clear(run());
                    model[first as usize..=last as usize].fill(false);
                }
                n => {
                    let was = std::mem::replace(&mut model[a as usize], n > 2);
                    assert_eq!(bits.put(Lpn(a), n > 2), was != (n > 2));
                }
            }
            let set = (first..=last).filter(|&lpn| model[lpn as usize]);
            let set: Vec<u32> = set.collect();
            let got: Vec<u32> = bits.iter(run()).map(|lpn| lpn.0).collect();
            assert_eq!(got, set);
            assert_eq!(bits.has(Lpn(b)), model[b as usize]);
        }
    }
}
