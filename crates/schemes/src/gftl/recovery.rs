//! Recovery of GFTL: the full OOB scan, and the end of a job that was cut.
//!
//! A job runs while the host goes on writing, and buffer blocks that it has emptied are erased before it
//! ends. So its new block cannot simply be given up as that of a hybrid's merge can: that is done only if
//! every newest page in it has its source still standing, which the tag of a copy names. Otherwise the job is
//! brought to its end.
//!
//! A job that has ended leaves an old primary that waits for its erase, or is half erased. It is void, even if
//! trimmed pages in it look alive: a copy says when it was the last one out of the old primary, and only
//! a primary has pages that the host wrote.
//!
//! All blocks found half full are sealed. The exception is the new block of a job that was cut when no block
//! is erased: it is the younger of two blocks of its logical block, so it was not being erased. Where torn programs have
//! left it too short, the youngest buffer block takes the rest: it was the active one, since its pages are younger
//! than those of any buffer block that waits for its erase.

use super::{Block, Gftl, Kind};
use crate::parts::pool::Pool;
use crate::parts::scan::{Depth, Rules, Scan};
use floatgate_core::Refusal;
use floatgate_core::address::{DieLpn, Lbn, Pbn, Ppn};
use floatgate_core::flash::{Cause, Flash, Oob, OobRead, Role};
use floatgate_core::ftl::MountError;

/// In the tag of a copy: nothing that counts is left in the older blocks of the logical block.
const LAST: u32 = 1;
/// Stands for a source that does not fit the tag.
const UNKNOWN: u32 = u32::MAX >> 1;

/// The tag of a copied page: where its source stands, and whether the older blocks are empty after it. The tag of
/// a page that the host wrote is 0.
pub(super) fn copy_tag(source: Ppn, is_last: bool) -> u32 {
    let source = source.0.saturating_add(1).min(UNKNOWN);
    source << 1 | if is_last { LAST } else { 0 }
}

fn source_of(tag: u32) -> Option<Ppn> {
    let source = tag >> 1;
    (source != 0 && source != UNKNOWN).then(|| Ppn(source - 1))
}

/// Whether the source of a copy of a page is still there.
fn stands(scan: &Scan, lpn: DieLpn, copy: OobRead) -> bool {
    let source = source_of(copy.oob.tag).and_then(|ppn| scan.page_at(ppn));
    source.is_some_and(|(page, older)| page == lpn && older.sequence < copy.sequence)
}

impl Gftl {
    pub(super) fn scan_device<F: Flash>(
        &mut self,
        flash: &mut F,
    ) -> Result<(), MountError<F::Error>> {
        let mut scan =
            Scan::read(&self.space, 0, Depth::Whole, flash).map_err(MountError::Flash)?;
        self.void_old_primaries(&mut scan);
        let mut newest = scan.newest(Rules::Plain);
        let void = |gftl: &Self, scan: &Scan, place: &[Ppn]| {
            gftl.redundant_job_block(scan, place)
                .or_else(|| gftl.cut_buffer_erase(scan, place, flash))
        };
        while let Some(block) = void(self, &scan, &newest.place) {
            scan.set_void(block);
            newest = scan.newest(Rules::Plain);
        }
        let blank = scan.erase_useless(flash).map_err(MountError::Flash)?;
        self.pool = Pool::new(blank.into_iter(), self.space.geometry.blocks_per_die);
        self.newest = newest.place;
        let cut = self.take_blocks(&scan, flash);
        if let Some((old, fresh)) = cut {
            self.end_job(&scan, flash, old, fresh)?;
        }
        self.queue_buffered(&newest.sequence);
        Ok(())
    }

    /// Of several data blocks of a logical block all but the youngest, if its job has ended.
    fn void_old_primaries(&self, scan: &mut Scan) {
        let mut data = vec![Vec::new(); self.primary.len()];
        for (block, found) in scan.blocks() {
            let first = scan.pages_of(block).next();
            if let Some((_, lpn, _)) = first.filter(|_| found.role == Role::Data) {
                data[self.logical_of(lpn).index()].push(block);
            }
        }
        for mut blocks in data {
            blocks.sort_unstable_by_key(|&block| scan.found(block).first);
            let has_ended = |&block: &Pbn| {
                let mut tags = scan.pages_of(block).map(|(.., read)| read.oob.tag);
                tags.any(|tag| tag == 0 || tag & LAST != 0)
            };
            let youngest = blocks.iter().rposition(has_ended).unwrap_or(0);
            for &old in &blocks[..youngest] {
                scan.set_void(old);
            }
        }
    }

    /// The logical block of a block in use that holds pages of a single one: a primary, or a job's new block.
    fn owner_of(&self, scan: &Scan, block: Pbn) -> Option<Lbn> {
        let found = scan.found(block);
        let is_data = found.valid > 0 && found.role == Role::Data;
        let (_, lpn, _) = scan.pages_of(block).next().filter(|_| is_data)?;
        Some(self.logical_of(lpn))
    }

    /// The youngest of the data blocks of each logical block that has several.
    fn job_blocks(&self, scan: &Scan) -> Vec<Pbn> {
        let mut youngest: Vec<(Pbn, u32)> = vec![(Pbn::NONE, 0); self.primary.len()];
        for (block, found) in scan.blocks() {
            let Some(lbn) = self.owner_of(scan, block) else {
                continue;
            };
            let entry = &mut youngest[lbn.index()];
            entry.1 += 1;
            if entry.0.is_none() || found.first > scan.found(entry.0).first {
                entry.0 = block;
            }
        }
        let rivals = youngest.into_iter().filter(|&(_, count)| count > 1);
        rivals.map(|(block, _)| block).collect()
    }

    /// A job's block, if all newest pages in it have their source still standing.
    fn redundant_job_block(&self, scan: &Scan, place: &[Ppn]) -> Option<Pbn> {
        let has_source = |block, (position, lpn, read): (u32, DieLpn, OobRead)| {
            let is_newest = place[lpn.index()] == self.space.geometry.ppn(block, position);
            !is_newest || stands(scan, lpn, read)
        };
        self.job_blocks(scan)
            .into_iter()
            .find(|&block| scan.pages_of(block).all(|page| has_source(block, page)))
    }

    /// A buffer block whose erase was cut, where a job cannot be ended without it: trimmed pages in it look alive, so
    /// no block is free, and the job's own block has no room for the pages that are left, since programs in it
    /// were torn. A copy names a source in that block which is gone, and what remains is older than the copy: so the erase
    /// had begun, and nothing in the block counts.
    ///
    /// Not where the job can be ended otherwise: a source may be gone because it has rotted.
    fn cut_buffer_erase<F: Flash>(&self, scan: &Scan, place: &[Ppn], flash: &F) -> Option<Pbn> {
        if scan.blocks().any(|(_, found)| found.valid == 0) {
            return None;
        }
        let geometry = &self.space.geometry;
        let is_buffer = |block: Pbn| scan.found(block).role != Role::Data;
        let lacks_room = |&job: &Pbn| {
            let lbn = self.owner_of(scan, job).expect("it has valid pages");
            let pages = lbn.index() * self.pages() as usize..;
            let newest = place[pages].iter().take(self.pages() as usize);
            let left = newest.filter(|&&at| {
                at.is_some() && geometry.block_of(at) != job && !is_buffer(geometry.block_of(at))
            });
            left.count() as u32 > self.pages() - flash.ledger().write_pointer(job)
        };
        let job = self.job_blocks(scan).into_iter().find(lacks_room)?;
        scan.pages_of(job).find_map(|(_, lpn, read)| {
            let source = source_of(read.oob.tag).filter(|_| !stands(scan, lpn, read))?;
            let (block, found) = scan
                .blocks()
                .find(|&(block, _)| block == geometry.block_of(source))?;
            (is_buffer(block) && found.last < read.sequence).then_some(block)
        })
    }

    /// Makes primaries and buffer blocks of the blocks in use. Returns the old and the new block of a job that
    /// has to be ended.
    fn take_blocks<F: Flash>(&mut self, scan: &Scan, flash: &F) -> Option<(Pbn, Pbn)> {
        let mut cut = None;
        for (block, found) in scan.blocks().filter(|(_, found)| found.valid > 0) {
            let at = self.in_die(block);
            let is_buffer = found.role != Role::Data;
            self.blocks[at] = Block {
                kind: if is_buffer { Kind::Closed } else { Kind::Plain },
                valid: if is_buffer { found.valid } else { 0 },
                sealed: flash.ledger().write_pointer(block) < self.pages(),
            };
            self.buffer_blocks += u32::from(is_buffer);
            let Some(lbn) = self.owner_of(scan, block) else {
                continue;
            };
            let other = std::mem::replace(&mut self.primary[lbn.index()], block);
            if other.is_some() {
                let is_younger = found.first > scan.found(other).first;
                cut = Some(if is_younger {
                    (other, block)
                } else {
                    (block, other)
                });
            }
        }
        cut
    }

    /// Brings a job to its end: into an erased block, or, if there is none, into the block it had.
    fn end_job<F: Flash>(
        &mut self,
        scan: &Scan,
        flash: &mut F,
        old: Pbn,
        cut: Pbn,
    ) -> Result<(), MountError<F::Error>> {
        let (_, lpn, _) = scan.pages_of(cut).next().expect("it has valid pages");
        let lbn = self.logical_of(lpn);
        let is_new = !self.pool.is_empty();
        let target = if is_new { self.pool.take() } else { cut };
        self.primary[lbn.index()] = target;
        let pages = lbn.0 * self.pages()..(lbn.0 + 1) * self.pages();
        // Pages in the buffer may stay there if the job's own block has no room to spare.
        let moves = |lpn: &DieLpn| {
            let from = self.newest[lpn.index()];
            from.is_some()
                && self.space.geometry.block_of(from) != target
                && (is_new || !self.in_buffer(from))
        };
        let moved: Vec<DieLpn> = pages.map(DieLpn).filter(moves).collect();
        let last = moved.last().copied();
        for lpn in moved {
            let from = self.newest[lpn.index()];
            let (to, role) = if flash.ledger().write_pointer(target) < self.pages() {
                let position = flash.ledger().write_pointer(target);
                (self.space.geometry.ppn(target, position), Role::Data)
            } else {
                (self.room_in_buffer(scan, flash)?, Role::Log)
            };
            let oob = Oob {
                lpn: self.space.device_lpn(lpn),
                role,
                tag: copy_tag(from, Some(lpn) == last),
            };
            flash
                .copy(from, to, oob, Cause::Gc, F::Token::default())
                .map_err(MountError::Flash)?;
            self.move_newest(lpn, to);
        }
        let done = if is_new { vec![old, cut] } else { vec![old] };
        for block in done {
            flash
                .erase(block, Cause::Gc, F::Token::default())
                .map_err(MountError::Flash)?;
            let at = self.in_die(block);
            self.blocks[at] = super::PLAIN;
            self.pool.give(block);
        }
        Ok(())
    }

    /// The next page of the youngest buffer block, which was the active one: there is room in it whenever
    /// an erase made a job's block worth keeping, since a job ends before that many pages are written.
    fn room_in_buffer<F: Flash>(
        &self,
        scan: &Scan,
        flash: &F,
    ) -> Result<Ppn, MountError<F::Error>> {
        let buffer = scan
            .blocks()
            .filter(|(block, _)| self.blocks[self.in_die(*block)].kind == Kind::Closed);
        let youngest = buffer.max_by_key(|(_, found)| found.last);
        let room = youngest.map(|(block, _)| (block, flash.ledger().write_pointer(block)));
        let Some((block, position)) = room.filter(|&(_, written)| written < self.pages()) else {
            let text = "no erased page is left to end a cleaning job: writes were cut again and again during the \
                        recovery of a die without a spare block; nothing is lost, and one block more would do";
            return Err(Refusal::no_room(text.into()).into());
        };
        Ok(self.space.geometry.ppn(block, position))
    }

    /// Queues the logical blocks with pages in the buffer, the one with the oldest such page first.
    fn queue_buffered(&mut self, sequence: &[u64]) {
        let mut oldest = vec![u64::MAX; self.primary.len()];
        for (lpn, &at) in self.newest.iter().enumerate() {
            if at.is_some() && self.in_buffer(at) {
                let lbn = self.logical_of(DieLpn(lpn as u32));
                let oldest = &mut oldest[lbn.index()];
                *oldest = (*oldest).min(sequence[lpn]);
            }
        }
        let mut waiting: Vec<Lbn> = (0..self.primary.len() as u32)
            .map(Lbn)
            .filter(|&lbn| oldest[lbn.index()] != u64::MAX)
            .collect();
        waiting.sort_unstable_by_key(|&lbn| oldest[lbn.index()]);
        waiting.into_iter().for_each(|lbn| self.enqueue(lbn));
    }
}
