//! The bare loop that benchmarks are told against: only the memory work that no page mapping can avoid.

use floatgate_schemes::hints::{large_table, prefetch};

/// Pages of a block in the benchmarks.
pub const PAGES_PER_BLOCK: u32 = 256;
const NONE: u32 = u32::MAX;
/// How far ahead of its pages a collection asks for their map entries.
const AHEAD_PAGES: u32 = 16;

/// The least work of page mapping with greedy collection: map, reverse map, valid counts in buckets.
#[derive(Debug)]
pub struct Bare {
    map: Vec<u32>,
    page_at: Vec<u32>,
    valid: Vec<u32>,
    prev: Vec<u32>,
    next: Vec<u32>,
    heads: Vec<u32>,
    emptiest: u32,
    free: Vec<u32>,
    host: (u32, u32),
    gc: (u32, u32),
}

impl Bare {
    /// `blocks` blocks, of whose pages `logical` pages are shown; at least four blocks of pages more.
    pub fn new(blocks: u32, logical: u32) -> Self {
        let pages = blocks as usize * PAGES_PER_BLOCK as usize;
        Self {
            map: large_table(NONE, logical as usize),
            page_at: large_table(0, pages),
            valid: vec![0; blocks as usize],
            prev: vec![NONE; blocks as usize],
            next: vec![NONE; blocks as usize],
            heads: vec![NONE; PAGES_PER_BLOCK as usize + 1],
            emptiest: PAGES_PER_BLOCK,
            free: (0..blocks).rev().collect(),
            host: (0, 0),
            gc: (0, 0),
        }
    }

    fn unlink(&mut self, b: u32) {
        let (p, n) = (self.prev[b as usize], self.next[b as usize]);
        if p == NONE {
            self.heads[self.valid[b as usize] as usize] = n
        } else {
            self.next[p as usize] = n
        }
        if n != NONE {
            self.prev[n as usize] = p;
        }
    }

    fn link(&mut self, b: u32) {
        let v = self.valid[b as usize];
        let head = self.heads[v as usize];
        (self.prev[b as usize], self.next[b as usize]) = (NONE, head);
        if head != NONE {
            self.prev[head as usize] = b;
        }
        self.heads[v as usize] = b;
        self.emptiest = self.emptiest.min(v);
    }

    fn invalidate(&mut self, page: u32) {
        let b = page / PAGES_PER_BLOCK;
        // An open block points at itself and is in no bucket.
        if self.prev[b as usize] == b {
            self.valid[b as usize] -= 1;
            return;
        }
        self.unlink(b);
        self.valid[b as usize] -= 1;
        self.link(b);
    }

    fn open(&mut self) -> (u32, u32) {
        let b = self.free.pop().expect("spare blocks");
        self.valid[b as usize] = PAGES_PER_BLOCK;
        self.prev[b as usize] = b;
        (b * PAGES_PER_BLOCK, (b + 1) * PAGES_PER_BLOCK)
    }

    fn collect(&mut self) {
        while self.heads[self.emptiest as usize] == NONE {
            self.emptiest += 1;
        }
        let b = self.heads[self.emptiest as usize];
        self.unlink(b);
        self.prev[b as usize] = b;
        let first = b * PAGES_PER_BLOCK;
        let mut left = self.valid[b as usize];
        let mut from = first;
        while left > 0 {
            let ahead = (from + AHEAD_PAGES).min(first + PAGES_PER_BLOCK - 1);
            prefetch(&self.map, self.page_at[ahead as usize] as usize);
            let (lpn, here) = (self.page_at[from as usize], from);
            from += 1;
            if self.map[lpn as usize] != here {
                continue;
            }
            left -= 1;
            if self.gc.0 == self.gc.1 {
                if self.gc.1 != 0 {
                    self.link(self.gc.1 / PAGES_PER_BLOCK - 1);
                }
                self.gc = self.open();
            }
            let to = self.gc.0;
            self.gc.0 += 1;
            self.map[lpn as usize] = to;
            self.page_at[to as usize] = lpn;
        }
        self.free.push(b);
    }

    /// Pages that can be written.
    pub fn logical_pages(&self) -> u32 {
        self.map.len() as u32
    }

    /// Writes a page.
    #[inline]
    pub fn write(&mut self, lpn: u32) {
        if self.host.0 == self.host.1 {
            if self.host.1 != 0 {
                self.link(self.host.1 / PAGES_PER_BLOCK - 1);
            }
            while self.free.len() < 3 {
                self.collect();
            }
            self.host = self.open();
        }
        let old = self.map[lpn as usize];
        if old != NONE {
            self.invalidate(old);
        }
        let to = self.host.0;
        self.host.0 += 1;
        self.map[lpn as usize] = to;
        self.page_at[to as usize] = lpn;
    }
}
