//! Where the newest copy of every page is, and who hears of its moves.

use super::{Hybrid, Log, LogPage};
use floatgate_core::address::{DieLpn, Lbn, Ppn};

/// Why a page of a log block stopped being valid.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Loss {
    /// The host wrote the page again.
    Overwritten,
    /// The host trimmed it.
    Trimmed,
    /// A merge or a move copied it elsewhere.
    Moved,
}

/// What a scheme wants to hear about pages of its log blocks.
pub trait Watch {
    /// Whether data blocks are written by merges alone, and the roles of pages tell which log blocks can become data
    /// blocks: sequential ones can, hot and cold ones never. The recovery goes by it.
    const MERGES_ALONE_WRITE_DATA: bool = false;

    /// A page of logical block `lbn` has become valid in `log`.
    #[inline(always)]
    fn gained(&mut self, log: Log, lbn: Lbn) {
        let _ = (log, lbn);
    }
    /// A page of logical block `lbn` is no longer valid in `log`. Comes before the `gained` of its new place.
    #[inline(always)]
    fn lost(&mut self, log: Log, lbn: Lbn, why: Loss) {
        let _ = (log, lbn, why);
    }
    /// The newest version of local page `lpn` of logical block `lbn` has moved; `None` stands for a data block or
    /// nowhere. Comes after `lost` and `gained` of the same move.
    #[inline(always)]
    fn moved(&mut self, lpn: DieLpn, lbn: Lbn, from: Option<LogPage>, to: Option<LogPage>) {
        let _ = (lpn, lbn, from, to);
    }
    /// `log` has been erased or has become a data block.
    #[inline(always)]
    fn released(&mut self, log: Log) {
        let _ = log;
    }
    /// A page with that sequence number was found in `log` after a power cut, valid or not.
    fn found_page(&mut self, log: Log, position: u32, sequence: u64) {
        let _ = (log, position, sequence);
    }
    /// `log` was found after a power cut, and all its valid pages have been `gained`; it has that many further
    /// positions that are used up.
    fn recovered(&mut self, log: Log, other_positions: u32) {
        let _ = (log, other_positions);
    }
}

impl Watch for () {}

impl<W: Watch> Hybrid<W> {
    /// Where the newest version of a page lies, or `NONE` if the page is not live.
    #[inline(always)]
    pub fn newest(&self, lpn: DieLpn) -> Ppn {
        self.newest[lpn.index()]
    }

    /// The log block that holds the newest version of a page, if one does.
    #[inline(always)]
    pub fn newest_log(&self, lpn: DieLpn) -> Option<Log> {
        let at = self.newest[lpn.index()];
        if at.is_none() {
            return None;
        }
        self.log_at(at)
    }

    /// The page of a log block that a physical page is, if it is one.
    #[inline(always)]
    fn log_page_at(&self, at: Ppn) -> Option<LogPage> {
        if at.is_none() {
            return None;
        }
        let (block, position) = self.space.geometry.split(at);
        let log = self.logs.at(block)?;
        Some(LogPage { log, position })
    }

    /// Where in the log blocks the newest version of a page lies, if it lies there.
    #[inline(always)]
    pub fn newest_log_page(&self, lpn: DieLpn) -> Option<LogPage> {
        self.log_page_at(self.newest[lpn.index()])
    }

    #[inline(always)]
    pub(super) fn log_at(&self, at: Ppn) -> Option<Log> {
        self.logs.at(self.space.geometry.block_of(at))
    }

    /// Whether the page at a position of a log block is valid.
    #[inline(always)]
    pub fn is_valid_at(&self, log: Log, position: u32) -> bool {
        let lpn = self.log_page(log, position);
        lpn.is_some() && self.newest(lpn) == self.space.geometry.ppn(self.log_block(log), position)
    }

    /// The valid pages of a log block: position, local page, logical block.
    pub fn valid_pages(&self, log: Log) -> impl Iterator<Item = (u32, DieLpn, Lbn)> + '_ {
        (0..self.pages_per_block())
            .filter(move |&position| self.is_valid_at(log, position))
            .map(move |position| {
                let lpn = self.log_page(log, position);
                (position, lpn, self.split(lpn).0)
            })
    }

    /// The one place where the newest version of a page moves.
    #[inline]
    pub(super) fn move_newest(&mut self, lpn: DieLpn, to: Ppn, why: Loss) {
        let (lbn, _) = self.split(lpn);
        let from = std::mem::replace(&mut self.newest[lpn.index()], to);
        let left = self.log_page_at(from);
        if let Some(LogPage { log, .. }) = left {
            self.logs[log].valid -= 1;
            self.watch.lost(log, lbn, why);
        }
        let entered = self.log_page_at(to);
        if let Some(LogPage { log, .. }) = entered {
            self.logs[log].valid += 1;
            self.watch.gained(log, lbn);
        }
        self.watch.moved(lpn, lbn, left, entered);
    }

    /// The newest version of a page of logical block `lbn` has been copied to a block that is no log block.
    #[inline(always)]
    pub(super) fn leave(&mut self, lpn: DieLpn, lbn: Lbn, to: Ppn) {
        let from = std::mem::replace(&mut self.newest[lpn.index()], to);
        let left = self.log_page_at(from);
        if let Some(LogPage { log, .. }) = left {
            self.logs[log].valid -= 1;
            self.watch.lost(log, lbn, Loss::Moved);
        }
        self.watch.moved(lpn, lbn, left, None);
    }
}
