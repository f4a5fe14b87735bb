//! Collection in idle time: page mapping gets ahead while nobody asks for anything, a few pages at a time.
//!
//! A block is emptied in slices, so that the host never waits for more than one of them. Nothing remembers a block
//! that is half empty: its moved pages are invalid like any others, and whoever collects next finds it as it is. The
//! pages of a slice carry no tag but where the slice ends the block: a block that was left half empty is no unfinished
//! move that a recovery might take back, because its other pages may be written or trimmed, and it be erased, without
//! one.

use std::ops::Range;

use super::collect::Moves;
use super::{IdleOptions, PageStore, Streams};
use crate::parts::scan::move_tag;
use floatgate_core::Refusal;
use floatgate_core::address::Pbn;
use floatgate_core::flash::{Cause, Flash, Oob, Role};

impl IdleOptions {
    /// Whether there is anything to do in idle time.
    pub fn is_on(&self) -> bool {
        self.gc_idle > 0
    }

    /// Whether a victim with so many valid pages, of so many, is worth the work.
    pub fn takes(&self, valid: u32, pages: u32) -> bool {
        u64::from(valid) <= u64::from(pages) * u64::from(self.gc_idle_valid) / 100
    }

    /// Checks the values.
    ///
    /// # Errors
    /// A refusal that names the option at fault.
    pub fn check(&self) -> Result<(), Refusal> {
        if self.gc_slice == 0 {
            let text = "gc_slice = 0: at least 1 page";
            return Err(Refusal::new("gc_slice", text.into()));
        }
        if self.gc_idle_valid > 100 {
            let text = format!("gc_idle_valid = {}: at most 100", self.gc_idle_valid);
            return Err(Refusal::new("gc_idle_valid", text));
        }
        Ok(())
    }
}

impl PageStore {
    /// Collects in an idle time, on all dies at once, as long as it lasts and a die wants more erased blocks. The last
    /// slice may outlast it.
    ///
    /// # Errors
    /// Those of the flash.
    pub fn idle<F: Flash, M: Moves<F>>(
        &mut self,
        flash: &mut F,
        idle_ns: &Range<u64>,
        moves: &mut M,
    ) -> Result<(), F::Error> {
        let options = &self.options.idle;
        let slice_ns = u64::from(options.gc_slice).saturating_mul(options.gc_move_ns.unwrap_or(0));
        let mut now_ns = idle_ns.start.saturating_add(options.gc_idle_after_ns);
        let mut is_wanted = options.is_on();
        while is_wanted && now_ns < idle_ns.end {
            is_wanted = false;
            for die in 0..self.geometry.dies {
                let Some(victim) = self.idle_victim(die) else {
                    continue;
                };
                is_wanted = true;
                flash.background(now_ns);
                self.move_slice(flash, die, victim, moves)?;
            }
            // Without a duration, a slice still takes its turn.
            now_ns = now_ns.saturating_add(slice_ns.max(1));
        }
        Ok(())
    }

    /// The block of a die that idle time is spent on, if the die wants more erased blocks and one is worth it. An erased
    /// block is left for a collection that cannot wait.
    fn idle_victim(&mut self, die: u32) -> Option<Pbn> {
        let erased = self.dies[die as usize].pool.len();
        if erased >= self.options.idle.gc_idle || !self.can_move_in_idle_time(die) {
            return None;
        }
        let victim = self.victims.choose(die, self.clock)?;
        let (valid, pages) = (self.victims.valid(victim), self.geometry.pages_per_block);
        self.options.idle.takes(valid, pages).then_some(victim)
    }

    fn can_move_in_idle_time(&self, die: u32) -> bool {
        let here = &self.dies[die as usize];
        let point = match self.options.streams {
            Streams::Shared => here.host,
            Streams::Split => here.gc,
        };
        point.has_room() || here.pool.len() >= 2
    }

    /// Moves the first few valid pages of a block, and erases it if none is left.
    fn move_slice<F: Flash, M: Moves<F>>(
        &mut self,
        flash: &mut F,
        die: u32,
        victim: Pbn,
        moves: &mut M,
    ) -> Result<(), F::Error> {
        let mut from = self.geometry.first_page(victim);
        let mut left = self.victims.valid(victim);
        let slice = left.min(self.options.idle.gc_slice);
        let after = left - slice;
        while left > after {
            let lpn = self.page_at[from.index()];
            if self.map[lpn.index()] == from {
                if !self.can_move_in_idle_time(die) {
                    return Ok(());
                }
                left -= 1;
                let tag = match left {
                    0 => move_tag(true, victim),
                    _ => Oob::new(lpn, Role::Data).tag,
                };
                let role = Role::Data;
                self.move_page(flash, die, Oob { lpn, role, tag }, from, moves)?;
            }
            from.0 += 1;
        }
        if left == 0 {
            self.victims.collecting(victim);
            moves.before_erase(flash, self)?;
            flash.erase(victim, Cause::Gc, F::Token::default())?;
            self.reclaimed(victim);
        }
        Ok(())
    }
}
