//! What leaves a write buffer: which pages go together, what fills up their blocks, and how they reach the scheme.

use floatgate_core::buffer::Held;
use floatgate_core::{Flash, Ftl, Lpn, Run};

use super::Buffered;
use crate::clock::Clock;
use crate::session::Session;

/// A page on its way to the scheme.
#[derive(Clone, Copy, Debug)]
pub(super) struct Leaving<T> {
    lpn: Lpn,
    /// Where it was held; none if it only fills up the block of others.
    slot: Option<u32>,
    /// What its program waits for.
    after: T,
    stream: Option<u32>,
}

impl<T: Copy + Default> Buffered<T> {
    fn stream_of(&self, held: &Held) -> Option<u32> {
        let write = self.write.as_ref()?;
        write.stream_of[held.slot as usize]
    }

    /// A page that was held is on its way to the scheme.
    fn leave(&mut self, held: &Held) {
        let Some(write) = &self.write else { return };
        self.leaving.push(Leaving {
            lpn: held.lpn,
            slot: Some(held.slot),
            after: write.since[held.slot as usize],
            stream: write.stream_of[held.slot as usize],
        });
    }
}

impl<S: Ftl<Page = Lpn>, C: Clock> Session<S, C> {
    /// Writes pages out until there is room for so many more.
    pub(super) fn make_room(&mut self, buffer: &mut Buffered<C::Token>, pages: u32) {
        let Some(write) = &mut buffer.write else {
            return;
        };
        let needed = pages.saturating_sub(write.pages.free());
        write.pages.evict(needed, &mut buffer.evicted);
        self.write_out(buffer);
    }

    pub(super) fn write_all_out(&mut self, buffer: &mut Buffered<C::Token>) {
        if let Some(write) = &mut buffer.write {
            write.pages.evict_all(&mut buffer.evicted);
        }
        self.write_out(buffer);
    }

    /// Hands to the scheme what was evicted, pages of one stream that follow each other in one write.
    fn write_out(&mut self, buffer: &mut Buffered<C::Token>) {
        self.gather(buffer);
        let leaving = std::mem::take(&mut buffer.leaving);
        let mut rest = &leaving[..];
        while let Some(first) = rest.first() {
            let follows = |(page, i): &(&Leaving<_>, u32)| {
                page.lpn.0 == first.lpn.0 + i && page.stream == first.stream
            };
            let run = rest.iter().zip(0..buffer.block_pages);
            let (run, behind) = rest.split_at(run.take_while(follows).count());
            self.write_run_out(buffer, run);
            rest = behind;
        }
        buffer.leaving = leaving;
        buffer.leaving.clear();
    }

    /// Makes of the pages that were evicted those that leave.
    fn gather(&mut self, buffer: &mut Buffered<C::Token>) {
        let evicted = std::mem::take(&mut buffer.evicted);
        let block_pages = buffer.block_pages;
        let block_of = |held: &Held| held.lpn.0 / block_pages;
        for pages in evicted.chunk_by(|a, b| block_of(a) == block_of(b)) {
            match buffer.config.padding {
                true => self.gather_padded(buffer, pages),
                false => pages.iter().for_each(|held| buffer.leave(held)),
            }
        }
        buffer.evicted = evicted;
        buffer.evicted.clear();
    }

    /// The same for pages of one block, which is filled up with what the device has of it besides, on the dies of which
    /// something leaves: a scheme that maps blocks can put the new copy in the place of the old one then.
    fn gather_padded(&mut self, buffer: &mut Buffered<C::Token>, pages: &[Held]) {
        let Some(first) = pages.first() else { return };
        let (dies, logical_pages) = (self.geometry().dies, self.geometry().logical_pages);
        let mut has_pages = vec![false; dies as usize];
        for held in pages {
            has_pages[(held.lpn.0 % dies) as usize] = true;
        }
        let stream = buffer.stream_of(first);
        let begin = first.lpn.0 / buffer.block_pages * buffer.block_pages;
        let end = begin.saturating_add(buffer.block_pages).min(logical_pages);
        let mut held = pages.iter().peekable();
        for lpn in (begin..end).map(Lpn) {
            if let Some(held) = held.next_if(|held| held.lpn == lpn) {
                buffer.leave(held);
            } else if has_pages[(lpn.0 % dies) as usize] && self.live.has(lpn.0) {
                let cached = buffer.cached(lpn);
                buffer.counters.padded += 1;
                buffer.counters.padded_cached += u64::from(cached.is_some());
                let after = cached.unwrap_or_else(|| {
                    self.fetch(buffer, lpn, 1, false);
                    buffer.tokens[0]
                });
                buffer.leaving.push(Leaving {
                    lpn,
                    slot: None,
                    after,
                    stream,
                });
            }
        }
    }

    fn write_run_out(&mut self, buffer: &mut Buffered<C::Token>, run: &[Leaving<C::Token>]) {
        let (Some(write), Some(first)) = (&mut buffer.write, run.first()) else {
            return;
        };
        let mut tokens = std::mem::take(&mut buffer.tokens);
        tokens.clear();
        tokens.extend(run.iter().map(|page| page.after));
        if self.uses_streams {
            self.ftl.stream(first.stream);
        }
        self.flash.serve_buffer(tokens, false);
        let pages = run.len() as u32;
        let Ok(()) = (self.ftl).write(&mut self.flash, &Run::whole(first.lpn, pages));
        buffer.tokens = self.flash.buffer_served();
        for (page, &end) in run.iter().zip(&buffer.tokens) {
            if let Some(slot) = page.slot {
                write.since[slot as usize] = end;
                buffer.counters.written_out += 1;
            }
            buffer.out = self.flash.clock.join(buffer.out, end);
        }
        self.live.set(first.lpn, pages, true);
        buffer.counters.runs += 1;
    }

    /// Writes everything out if the device was idle for long enough before an issue.
    pub(in crate::session) fn write_out_when_idle(&mut self, issue_ns: u64) {
        let after_ns = self.config.device.buffer.idle_ns;
        if self.buffer.is_none() || after_ns == 0 {
            return;
        }
        let Some(from_ns) = self.flash.clock.idle_since(issue_ns) else {
            return;
        };
        if issue_ns - from_ns >= after_ns {
            self.write_out_at(from_ns + after_ns);
        }
    }

    /// No request follows: what is held is written out, if the configuration wants that.
    pub(crate) fn write_out_at_end(&mut self) {
        if self.config.device.buffer.write_out_at_end {
            self.write_out_at(self.last_issue_ns);
        }
    }

    /// Writes everything out, which belongs to no request.
    fn write_out_at(&mut self, at_ns: u64) {
        let Some(mut buffer) = self.buffer.take() else {
            return;
        };
        self.flash.not_before_ns = 0;
        self.flash.background(at_ns);
        self.write_all_out(&mut buffer);
        self.buffer = Some(buffer);
    }
}
