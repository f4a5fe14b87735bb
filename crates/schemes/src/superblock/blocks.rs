//! What the superblock scheme keeps of its physical blocks: which belong to which superblock, in which order
//! and so in which role, how many of their pages are valid, where every page lies, and whose turn it is to give
//! a block back.
//!
//! A superblock's blocks are one ordered list. The first ones, as many as it has logical blocks, are its
//! D-blocks, the rest its U-blocks. Roles follow from the list by [`Superblocks::assign_roles`].

mod checks;
mod recovery;

use super::oob_tables::OobTables;
use crate::hints::{large_table, prefetch};
use crate::parts::lists::Lists;
use crate::parts::pool::Pool;
use crate::parts::start;
use floatgate_core::address::{DieLpn, Divisor, Lbn, Pbn, Ppn};
use floatgate_core::flash::{Cause, Flash, Oob, Preload, Role, Slot, SpareArea};
use floatgate_core::ftl::Start;
use floatgate_core::geometry::{Geometry, Space};
use floatgate_core::report::Merges;
use floatgate_core::state;

/// A physical block.
#[derive(Clone, Copy, Default, Debug)]
pub struct Block {
    /// Valid pages.
    pub valid: u32,
    programmed: u32,
    /// Host pages programmed while it was a U-block.
    log_pages: u32,
    /// Whether it is a U-block.
    pub log: bool,
    /// Whether the full merge in work takes it apart.
    pub in_set: bool,
}

state!(Block {
    valid,
    programmed,
    log_pages,
    log,
    in_set
});

/// A superblock.
#[derive(Clone, Copy, Debug)]
pub struct Super {
    /// The block that takes the next page, or `NONE`.
    pub open: Pbn,
    /// U-blocks.
    pub logs: u32,
    /// Blocks without a valid page.
    pub dead: u32,
    /// Whether it has U-blocks and a dead block: it gives way before others.
    easy: bool,
}

state!(Super {
    open,
    logs,
    dead,
    easy
});

/// The blocks of all superblocks of one die. See the module's text.
#[derive(Debug)]
pub struct Superblocks {
    space: Space,
    /// Logical blocks of a superblock.
    size: Divisor,
    newest: Vec<Ppn>,
    /// By physical block of the die.
    blocks: Vec<Block>,
    supers: Vec<Super>,
    /// The physical blocks of each superblock, D-blocks first.
    lists: Lists,
    /// Superblocks with U-blocks, the one written longest ago first.
    recent: Lists,
    /// Superblocks that are `easy`.
    easy: u32,
    logs_in_use: u32,
    pool: Pool,
    /// The page map as the OOBs bear it.
    pub tables: OobTables,
    /// Merges so far.
    pub merges: Merges,
}

state!(Superblocks {
    newest, blocks, supers, lists, recent, easy, logs_in_use, pool, tables, merges,
} fixed { space, size });

impl Superblocks {
    /// The start state of a die with superblocks of `size` logical blocks. The caller has checked that the
    /// blocks suffice.
    ///
    /// # Errors
    /// Those of the flash.
    pub fn format<F: Preload>(
        space: &Space,
        size: u32,
        start: Start,
        flash: &mut F,
    ) -> Result<Self, F::Error> {
        let geometry = &space.geometry;
        let logical = space.logical_blocks();
        let used = if start == Start::Full { logical } else { 0 };
        let first = geometry.pbn(space.first_die, 0).0;
        let blocks = geometry.blocks_per_die;
        let mut made = Self::blank(space, size);
        made.pool = Pool::new((first + used..first + blocks).map(Pbn), blocks);
        if start == Start::Full {
            made.fill(flash)?;
        }
        Ok(made)
    }

    /// No superblock has a block yet; the erased blocks are not known.
    pub fn blank(space: &Space, size: u32) -> Self {
        let superblocks = Self::count(&space.geometry, size) as usize;
        let blocks = space.geometry.blocks_per_die;
        let none = Super {
            open: Pbn::NONE,
            logs: 0,
            dead: 0,
            easy: false,
        };
        Self {
            size: Divisor::new(size),
            newest: large_table(Ppn::NONE, space.logical_pages() as usize),
            blocks: vec![Block::default(); blocks as usize],
            supers: vec![none; superblocks],
            lists: Lists::new(blocks as usize, superblocks),
            recent: Lists::new(superblocks, 1),
            easy: 0,
            logs_in_use: 0,
            pool: Pool::new(std::iter::empty(), blocks),
            tables: OobTables::new(space),
            merges: Merges::default(),
            space: space.clone(),
        }
    }

    /// Superblocks of one die.
    fn count(geometry: &Geometry, size: u32) -> u32 {
        geometry.logical_blocks_per_die().div_ceil(size.max(1))
    }

    /// Memory of the tables in bytes, for one device.
    pub fn ram_bytes(geometry: &Geometry, size: u32) -> u64 {
        let blocks = u64::from(geometry.blocks());
        let superblocks = u64::from(geometry.dies) * u64::from(Self::count(geometry, size));
        4 * u64::from(geometry.logical_pages)
            + (std::mem::size_of::<Block>() as u64 + 16) * blocks
            + (std::mem::size_of::<Super>() as u64 + 24) * superblocks
            + OobTables::ram_bytes(geometry)
    }

    /// The part of the device that this instance serves.
    pub fn space(&self) -> &Space {
        &self.space
    }

    /// The map entry of a page will be wanted soon.
    #[inline(always)]
    pub fn prefetch(&self, lpn: DieLpn) {
        prefetch(&self.newest, lpn.index());
    }

    /// Where the newest version of a page lies, or `NONE` if the page is not live.
    #[inline(always)]
    pub fn newest(&self, lpn: DieLpn) -> Ppn {
        self.newest[lpn.index()]
    }

    /// Logical block of a page, and its offset there.
    #[inline(always)]
    pub fn split(&self, lpn: DieLpn) -> (Lbn, u32) {
        let (lbn, offset) = self.space.geometry.by_pages().div_rem(lpn.0);
        (Lbn(lbn), offset)
    }

    /// The superblock of a page.
    #[inline(always)]
    pub fn superblock_of(&self, lpn: DieLpn) -> u32 {
        self.size.div(self.space.geometry.by_pages().div(lpn.0))
    }

    /// A superblock.
    #[inline(always)]
    pub fn superblock(&self, s: u32) -> &Super {
        &self.supers[s as usize]
    }

    /// A physical block.
    #[inline(always)]
    pub fn block(&self, block: Pbn) -> &Block {
        &self.blocks[self.index(block)]
    }

    /// The physical block of a page, which is none of another die.
    #[inline(always)]
    pub fn block_at(&self, at: Ppn) -> &Block {
        &self.blocks[self.index_at(at)]
    }

    /// Puts a block into the set of a full merge.
    pub fn put_in_set(&mut self, block: Pbn) {
        let at = self.index(block);
        self.blocks[at].in_set = true;
    }

    /// Whether a superblock has fewer blocks than it has logical ones.
    #[inline]
    pub fn lacks_data_blocks(&self, s: u32) -> bool {
        self.lists.len(s as usize) < self.data_blocks(s)
    }

    /// U-blocks of all superblocks.
    #[inline(always)]
    pub fn logs_in_use(&self) -> u32 {
        self.logs_in_use
    }

    /// Superblocks that have U-blocks.
    pub fn with_logs(&self) -> u32 {
        self.recent.len(0)
    }

    /// Of these the ones that also have a block without a valid page.
    pub fn with_logs_and_dead(&self) -> u32 {
        self.easy
    }

    /// Programs a host page at the next position of its superblock's open block. Returns whether that is a U-block.
    ///
    /// # Errors
    /// Those of the flash.
    #[inline]
    pub fn write<F: Flash>(
        &mut self,
        flash: &mut F,
        slot: Slot,
        lpn: DieLpn,
        translated: F::Token,
    ) -> Result<bool, F::Error> {
        let (lbn, offset) = self.split(lpn);
        let s = self.size.div(lbn.0);
        let open = self.supers[s as usize].open;
        let block = self.index(open);
        let log = self.blocks[block].log;
        self.blocks[block].log_pages += u32::from(log);
        let position = flash.ledger().write_pointer(open);
        let to = self.space.geometry.ppn(open, position);
        let oob = Oob::new(self.space.device_lpn(lpn), self.role(block));
        let oob = self.with_tables(oob, lbn, offset, to);
        flash.program_host(slot, to, oob, translated)?;
        self.placed(s, lpn, lbn, offset, to);
        if self.supers[s as usize].logs > 0 {
            self.recent.move_to_back(0, s);
        }
        Ok(log)
    }

    /// Drops a page; it is not live any more.
    pub fn trim(&mut self, lpn: DieLpn) {
        if self.newest(lpn).is_some() {
            self.move_newest(self.superblock_of(lpn), lpn, Ppn::NONE);
        }
    }

    /// What the OOBs of a block's pages say it is.
    #[inline(always)]
    fn role(&self, block: usize) -> Role {
        if self.blocks[block].log {
            Role::Log
        } else {
            Role::Data
        }
    }

    /// Puts fresh blocks that a full merge has filled before all others of a superblock, in their order. The last one
    /// is open if it has room and no other block is.
    pub fn put_in_front<F: Flash>(&mut self, flash: &F, s: u32, fresh: &[Pbn]) {
        for &block in fresh.iter().rev() {
            self.lists.push_front(s as usize, self.index(block) as u32);
        }
        let Some(&last) = fresh.last() else {
            return;
        };
        let one = &mut self.supers[s as usize];
        if one.open.is_none()
            && flash.ledger().write_pointer(last) < self.space.geometry.pages_per_block
        {
            one.open = last;
        }
    }

    /// Pages a block.
    #[inline(always)]
    pub fn pages_per_block(&self) -> u32 {
        self.space.geometry.pages_per_block
    }

    /// Index of a block inside the die.
    #[inline(always)]
    fn index(&self, block: Pbn) -> usize {
        (block.0 - self.first_block()) as usize
    }

    #[inline(always)]
    fn first_block(&self) -> u32 {
        self.space.first_die * self.space.geometry.blocks_per_die
    }

    #[inline(always)]
    fn index_at(&self, at: Ppn) -> usize {
        self.index(self.space.geometry.block_of(at))
    }

    /// Logical blocks of a superblock.
    pub fn logical(&self, s: u32) -> std::ops::Range<Lbn> {
        let n = self.size.get();
        Lbn(s * n)..Lbn((s * n).saturating_add(n).min(self.space.logical_blocks()))
    }

    /// How many these are, and so how many D-blocks it may have.
    #[inline(always)]
    fn data_blocks(&self, s: u32) -> u32 {
        let logical = self.logical(s);
        logical.end.0 - logical.start.0
    }

    /// Local pages of a superblock.
    pub fn pages(&self, s: u32) -> std::ops::Range<u32> {
        let (logical, pages) = (self.logical(s), self.pages_per_block());
        logical.start.0 * pages..logical.end.0 * pages
    }

    /// The blocks of a superblock in the order of its list.
    pub fn blocks_of(&self, s: u32) -> impl Iterator<Item = Pbn> + '_ {
        let first = self.first_block();
        self.lists.iter(s as usize).map(move |b| Pbn(first + b))
    }

    /// The tables that the program of page `offset` of logical block `lbn` to `to` changes go into its OOB.
    #[inline(always)]
    fn with_tables(&self, oob: Oob, lbn: Lbn, offset: u32, to: Ppn) -> impl SpareArea + use<'_> {
        oob.with_bytes(move |bytes| {
            let pages = self.pages_per_block() as usize;
            let first = lbn.index() * pages;
            let newest = &self.newest[first..first + pages];
            self.tables.write(bytes, lbn, offset, to, newest);
        })
    }

    /// A page has been programmed at `to`; a full block is no longer open.
    #[inline]
    fn placed(&mut self, s: u32, lpn: DieLpn, lbn: Lbn, offset: u32, to: Ppn) {
        self.tables.programmed(lbn, offset, to);
        let (pbn, position) = self.space.geometry.split(to);
        let block = self.index(pbn);
        self.blocks[block].programmed += 1;
        let one = &mut self.supers[s as usize];
        if position + 1 == self.space.geometry.pages_per_block && one.open == pbn {
            one.open = Pbn::NONE;
        }
        self.move_newest(s, lpn, to);
    }

    /// The one place where the newest version of a page moves.
    #[inline]
    fn move_newest(&mut self, s: u32, lpn: DieLpn, to: Ppn) {
        let from = std::mem::replace(&mut self.newest[lpn.index()], to);
        if to.is_some() {
            let block = self.index_at(to);
            self.blocks[block].valid += 1;
            if self.blocks[block].valid == 1 {
                self.supers[s as usize].dead -= 1;
                self.judge(s);
            }
        }
        if from.is_some() {
            let block = self.index_at(from);
            self.blocks[block].valid -= 1;
            if self.blocks[block].valid == 0 {
                self.supers[s as usize].dead += 1;
                self.judge(s);
            }
        }
    }

    /// Whether a superblock is `easy` may have changed.
    fn judge(&mut self, s: u32) {
        let one = &mut self.supers[s as usize];
        let easy = one.logs > 0 && one.dead > 0;
        self.easy = self.easy - u32::from(one.easy) + u32::from(easy);
        one.easy = easy;
    }

    /// A fresh block at the end of a superblock's list.
    pub fn open_block(&mut self, s: u32) {
        let block = self.take_block(s);
        self.lists.push_back(s as usize, self.index(block) as u32);
        self.supers[s as usize].open = block;
        self.assign_roles(s);
    }

    /// A free block for a superblock; it counts as dead until its first page.
    pub fn take_block(&mut self, s: u32) -> Pbn {
        let block = self.pool.take();
        let at = self.index(block);
        self.blocks[at] = Block::default();
        self.supers[s as usize].dead += 1;
        block
    }

    /// The superblock that gives way when the pool of U-blocks is used up.
    ///
    /// # Panics
    /// If no superblock has a U-block.
    pub fn victim(&self) -> u32 {
        let mut recent = self.recent.iter(0);
        let easy = |&s: &u32| self.supers[s as usize].easy;
        let victim = if self.easy > 0 {
            recent.find(easy)
        } else {
            recent.next()
        };
        victim.expect("someone has the U-blocks of the pool")
    }

    /// Gives every block of a superblock the role of its place, and counts its U-blocks.
    pub fn assign_roles(&mut self, s: u32) {
        let data_blocks = self.data_blocks(s);
        let mut next = self.lists.first(s as usize);
        let mut place = 0;
        while let Some(b) = next {
            let block = &mut self.blocks[b as usize];
            let log = place >= data_blocks;
            if block.log && !log {
                self.merges.log_reclaimed += 1;
                self.merges.log_pages_used += u64::from(std::mem::take(&mut block.log_pages));
            }
            block.log = log;
            place += 1;
            next = self.lists.next(b);
        }
        let logs = place.saturating_sub(data_blocks);
        self.logs_in_use = self.logs_in_use - self.supers[s as usize].logs + logs;
        self.supers[s as usize].logs = logs;
        if logs == 0 {
            self.recent.remove(s);
        } else if self.recent.list_of(s).is_none() {
            self.recent.push_back(0, s);
        }
        self.judge(s);
    }

    /// The block with the fewest valid pages among those that `which` allows, the first of equal ones.
    pub fn emptiest(&self, s: u32, which: impl Fn(Pbn, &Block) -> bool) -> Option<Pbn> {
        self.blocks_of(s)
            .filter(|&b| which(b, &self.blocks[self.index(b)]))
            .min_by_key(|&b| self.blocks[self.index(b)].valid)
    }

    /// Copies the newest version of a page to a given place; `tag` makes the copy's tag from the block of its source.
    ///
    /// # Errors
    /// Those of the flash.
    pub fn copy<F: Flash>(
        &mut self,
        flash: &mut F,
        s: u32,
        lpn: DieLpn,
        to: Ppn,
        tag: impl FnOnce(Pbn) -> u32,
    ) -> Result<(), F::Error> {
        let (lbn, offset) = self.split(lpn);
        let from = self.newest[lpn.index()];
        let oob = Oob {
            lpn: self.space.device_lpn(lpn),
            role: self.role(self.index_at(to)),
            tag: tag(self.space.geometry.block_of(from)),
        };
        let oob = self.with_tables(oob, lbn, offset, to);
        flash.copy(from, to, oob, Cause::Gc, F::Token::default())?;
        self.placed(s, lpn, lbn, offset, to);
        Ok(())
    }

    /// Erases a block without a valid page and takes it out of its superblock.
    ///
    /// # Errors
    /// Those of the flash.
    pub fn erase<F: Flash>(&mut self, flash: &mut F, s: u32, block: Pbn) -> Result<(), F::Error> {
        let at = self.index(block);
        let Block {
            valid,
            programmed,
            log_pages,
            log,
            ..
        } = std::mem::take(&mut self.blocks[at]);
        debug_assert_eq!(valid, 0, "erase of a block with valid pages");
        let wasted = u64::from(self.pages_per_block() - programmed);
        if log {
            self.merges.log_reclaimed += 1;
            self.merges.log_pages_used += u64::from(log_pages);
            self.merges.wasted_log_pages += wasted;
        } else {
            self.merges.wasted_data_pages += wasted;
        }
        let logical = self.logical(s);
        self.tables.erased(block, logical);
        self.lists.remove(at as u32);
        let one = &mut self.supers[s as usize];
        one.dead -= 1;
        if one.open == block {
            one.open = Pbn::NONE;
        }
        flash.erase(block, Cause::Gc, F::Token::default())?;
        self.pool.give(block);
        Ok(())
    }

    /// Every logical block whole and valid in the physical block of the same number.
    fn fill<F: Preload>(&mut self, flash: &mut F) -> Result<(), F::Error> {
        let pages = self.space.geometry.pages_per_block;
        let whole = Block {
            valid: pages,
            programmed: pages,
            ..Block::default()
        };
        let (blocks, lists, size) = (&mut self.blocks, &mut self.lists, self.size);
        start::fill(&self.space, flash, &mut self.newest, |lbn, _| {
            blocks[lbn.index()] = whole;
            lists.push_back(size.div(lbn.0) as usize, lbn.0);
        })
    }

    /// Valid pages over programmed pages of the D-blocks or of the U-blocks; 0 without a page.
    pub fn utilisation(&self, log: bool) -> f64 {
        let of_kind = self.blocks.iter().filter(|block| block.log == log);
        let (valid, programmed) = of_kind.fold((0, 0), |(v, p), block| {
            (v + u64::from(block.valid), p + u64::from(block.programmed))
        });
        valid as f64 / programmed.max(1) as f64
    }
}
