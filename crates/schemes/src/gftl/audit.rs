//! Checks of the tables against the flash and each other.

use super::{Gftl, Kind};
use floatgate_core::address::{DieLpn, Lbn, Pbn};
use floatgate_core::flash::Flash;

impl Gftl {
    /// All checks; returns the live pages.
    pub(super) fn check<F: Flash>(&self, flash: &F) -> Result<u64, String> {
        let (live, valid) = self.audit_pages(flash)?;
        let buffer_and_doomed = self.audit_buffer(flash, &valid)?;
        self.audit_queue(flash)?;
        let primaries = self.primary.iter().filter(|b| b.is_some()).count() as u32;
        let fresh = u32::from(self.job.is_some_and(|job| job.fresh.is_some()));
        let sum = primaries + fresh + buffer_and_doomed + self.pool.len();
        if sum != self.space.blocks() {
            return Err(format!(
                "{primaries} primaries + {fresh} of the job + {buffer_and_doomed} of buffer and erase list + {} free blocks are not all",
                self.pool.len()
            ));
        }
        if !self
            .pool
            .iter()
            .all(|block| flash.ledger().write_pointer(block) == 0)
        {
            return Err("a block in the free list is not erased".into());
        }
        Ok(live)
    }

    /// Every live page lies where its kind of block may hold it, and nowhere else. Returns their number
    /// and the valid pages by block.
    fn audit_pages<F: Flash>(&self, flash: &F) -> Result<(u64, Vec<u32>), String> {
        let geometry = &self.space.geometry;
        let mut valid = vec![0; self.blocks.len()];
        let mut taken = vec![false; self.blocks.len() * self.pages() as usize];
        let mut live = 0;
        let places = self.newest.iter().enumerate();
        for (lpn, &at) in places.filter(|(_, at)| at.is_some()) {
            let (block, position) = geometry.split(at);
            let (lbn, i) = (self.logical_of(DieLpn(lpn as u32)), self.in_die(block));
            let of_job = self
                .job
                .filter(|job| job.lbn == lbn)
                .map_or(Pbn::NONE, |job| job.fresh);
            let buffered = self.in_buffer(at);
            if !buffered && block != self.primary[lbn.index()] && block != of_job {
                return Err(format!("live page {lpn} lies in block {}", block.0));
            }
            if buffered && !self.is_queued[lbn.index()] && !self.is_job(lbn) {
                return Err(format!(
                    "page {lpn} waits in the buffer, but logical block {} is not queued",
                    lbn.0
                ));
            }
            let place = &mut taken[i * self.pages() as usize + position as usize];
            if !flash.ledger().is_programmed(at) || std::mem::replace(place, true) {
                return Err(format!(
                    "live page {lpn} is not alone or erased at {}",
                    at.0
                ));
            }
            valid[i] += 1;
            live += 1;
        }
        Ok((live, valid))
    }

    fn audit_buffer<F: Flash>(&self, flash: &F, valid: &[u32]) -> Result<u32, String> {
        let mut buffer = 0;
        let mut doomed = 0;
        let first = self.space.geometry.pbn(self.space.first_die, 0).0;
        for (i, block) in self.blocks.iter().enumerate() {
            let pbn = Pbn(first + i as u32);
            let full = self.written(flash, pbn) == self.pages();
            let holds = match block.kind {
                Kind::Plain => block.valid == 0,
                Kind::Active => !full && self.active == Some(pbn) && block.valid == valid[i],
                Kind::Closed => full && block.valid == valid[i] && block.valid > 0,
                Kind::Dying => full && valid[i] == 0 && block.valid == 0,
                Kind::Replaced | Kind::Dropped => valid[i] == 0,
            };
            if !holds {
                return Err(format!(
                    "block {i} is {block:?}, has {} valid pages",
                    valid[i]
                ));
            }
            buffer += u32::from(matches!(
                block.kind,
                Kind::Active | Kind::Closed | Kind::Dying
            ));
            let listed = self.erase_list.iter().filter(|&&b| b == pbn).count();
            let dies = matches!(block.kind, Kind::Dying | Kind::Replaced | Kind::Dropped);
            if listed != usize::from(dies) {
                return Err(format!(
                    "block {i} is {block:?}, {listed} times to be erased"
                ));
            }
            doomed += u32::from(dies && block.kind != Kind::Dying);
        }
        if buffer != self.buffer_blocks || buffer > self.buffer_limit {
            return Err(format!(
                "{buffer} buffer blocks, counted {}, limit {}",
                self.buffer_blocks, self.buffer_limit
            ));
        }
        Ok(buffer + doomed)
    }

    fn audit_queue<F: Flash>(&self, flash: &F) -> Result<(), String> {
        let flags = self.is_queued.iter().filter(|&&q| q).count();
        let mut queued: Vec<Lbn> = self.queue.iter().copied().collect();
        queued.sort_unstable();
        queued.dedup();
        if flags != self.queue.len()
            || queued.iter().any(|&lbn| !self.is_queued[lbn.index()])
            || queued.len() != flags
        {
            return Err(format!("queue {:?} and {flags} flags", self.queue));
        }
        let Some(job) = self.job else { return Ok(()) };
        if self.is_queued[job.lbn.index()] || job.pos >= self.pages() {
            return Err(format!("{job:?} is queued or over"));
        }
        if job.fresh.is_some() && flash.ledger().write_pointer(job.fresh) != job.copies {
            return Err(format!(
                "{job:?}: {} pages",
                flash.ledger().write_pointer(job.fresh)
            ));
        }
        Ok(())
    }
}
