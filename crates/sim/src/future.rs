//! What a run will write, known in advance: with which write of the host each write ends. For separations that know the
//! future (docs/spec/placement.md, section 6, `fk`).

use std::sync::Arc;

use floatgate_core::{Lpn, Start};
use floatgate_trace::TraceError;

use crate::host::{Kind, PageMapper, PageRequest};
use crate::source::Source;

/// Counts the host's page writes and finds the end of each.
#[derive(Debug)]
pub(crate) struct Future {
    /// By number of a write: that of the write that ends it. Number 0 is no write.
    deaths: Vec<u64>,
    /// By page: number of its last write, 0 if it has no content.
    last: Vec<u64>,
}

/// The write that ends it does not come in this run.
const NEVER: u64 = u64::MAX;

impl Future {
    /// Nothing but the writes of the start state is known.
    pub(crate) fn new(logical_pages: u64, start: Start) -> Self {
        let mut future = Self {
            deaths: vec![NEVER],
            last: vec![0; logical_pages as usize],
        };
        if start == Start::Full {
            (0..logical_pages as u32).for_each(|page| future.writes(Lpn(page)));
        }
        future
    }

    fn ends(&mut self, page: Lpn) {
        let next = self.deaths.len() as u64;
        let last = std::mem::take(&mut self.last[page.index()]);
        if last > 0 {
            self.deaths[last as usize] = next;
        }
    }

    fn writes(&mut self, page: Lpn) {
        self.ends(page);
        self.last[page.index()] = self.deaths.len() as u64;
        self.deaths.push(NEVER);
    }

    /// Pages that a request writes or trims.
    pub(crate) fn request(&mut self, kind: Kind, first: Lpn, pages: u32) {
        for page in (first.0..first.0 + pages).map(Lpn) {
            match kind {
                Kind::Write => self.writes(page),
                Kind::Trim => self.ends(page),
                _ => return,
            }
        }
    }

    /// Reads a trace to its end and goes back to its first request. What the device does not have is left to the run.
    pub(crate) fn pass(
        &mut self,
        source: &mut dyn Source,
        mapper: &mut PageMapper,
    ) -> Result<(), TraceError> {
        let mut pages = PageRequest::default();
        while let Some(request) = source.next()? {
            if mapper.map(&request, &mut pages).is_err() {
                break;
            }
            let kind = pages.kind.expect("a mapped request has a kind");
            for segment in &pages.segments {
                self.request(kind, segment.first, segment.pages);
            }
        }
        source.rewind()
    }

    /// What a scheme is told.
    pub(crate) fn told(self) -> Arc<[u64]> {
        self.deaths.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_write_ends_with_the_next_one_of_its_page_or_after_its_trim() {
        let mut future = Future::new(4, Start::Full);
        future.request(Kind::Write, Lpn(1), 2);
        future.request(Kind::Trim, Lpn(2), 2);
        future.request(Kind::Read, Lpn(0), 4);
        future.request(Kind::Write, Lpn(3), 1);
        future.request(Kind::Trim, Lpn(3), 1);
        let told = future.told();
        // The start state wrote 1 to 4, the requests 5 (page 1), 6 (page 2), 7 (page 3).
        assert_eq!(told[..], [NEVER, NEVER, 5, 6, 7, NEVER, 7, 8]);
    }
}
