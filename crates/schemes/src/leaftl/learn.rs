//! Blocks are learned, and the levels compacted.

use super::LeaFtl;
use super::segments::{PageSet, Point, cut};
use floatgate_core::address::{DieLpn, Pbn, Ppn};

impl LeaFtl {
    /// A block is full and the page in hand done: its valid pages are learned and leave the open table.
    pub(super) fn close(&mut self, block: Pbn) {
        self.learn(block);
        for i in 0..self.learning.len() {
            self.close_entry(self.learning[i].0);
        }
        let period = u64::from(self.options.compact_pages);
        if period > 0 && self.since >= period {
            self.compact();
        }
    }

    /// A page leaves the open table, if it is there.
    pub(super) fn close_entry(&mut self, lpn: DieLpn) {
        let entry = &mut self.open[lpn.index()];
        self.open_entries -= u32::from(entry.is_some());
        *entry = Ppn::NONE;
    }

    /// Cuts the valid pages of a block into segments, group by group.
    pub(super) fn learn(&mut self, block: Pbn) {
        let mut learning = std::mem::take(&mut self.learning);
        self.valid_pages_of(block, &mut learning);
        learning.sort_unstable_by_key(|&(lpn, _)| lpn);
        let group_of = |lpn: DieLpn| self.by_group.div(lpn.0);
        let (by_group, first) = (self.by_group, block.0 * self.pages());
        for pages in learning.chunk_by(|a, b| group_of(a.0) == group_of(b.0)) {
            let group = by_group.div(pages[0].0.0);
            self.points.clear();
            self.points.extend(pages.iter().map(|&(lpn, at)| Point {
                x: by_group.rem(lpn.0) as u8,
                y: (at.0 - first) as u16,
            }));
            self.pieces.clear();
            cut(&self.points, block, self.options.gamma, &mut self.pieces);
            self.counts.segments_learned += self.pieces.len() as u64;
            self.levels.insert(group, &self.pieces);
            self.is_changed[group as usize] = true;
        }
        self.learning = learning;
    }

    /// The valid pages of a block with their places, ascending.
    pub(super) fn valid_pages_of(&self, block: Pbn, pages: &mut Vec<(DieLpn, Ppn)>) {
        let places = (block.0 * self.pages()..(block.0 + 1) * self.pages()).map(Ppn);
        let valid = places.filter(|&at| self.places.is_valid(at));
        pages.clear();
        pages.extend(valid.map(|at| (self.places.named(at), at)));
    }

    /// Compacts the groups that have changed since they last were: the others would stay as they are.
    fn compact(&mut self) {
        self.since = 0;
        self.counts.compactions += 1;
        for group in 0..self.levels.groups() {
            if std::mem::take(&mut self.is_changed[group as usize]) {
                self.levels.compact(group, self.in_no_segment(group));
            }
        }
    }

    /// The pages of a group that are in the open table or not mapped.
    pub(super) fn in_no_segment(&self, group: u32) -> PageSet {
        let first = group * self.options.group_pages;
        let pages = self
            .options
            .group_pages
            .min(self.space.logical_pages() - first);
        let mut set = PageSet::default();
        for x in 0..pages {
            let lpn = first + x;
            if !self.mapped.has(lpn) || self.open[lpn as usize].is_some() {
                set.insert(x);
            }
        }
        set
    }
}
