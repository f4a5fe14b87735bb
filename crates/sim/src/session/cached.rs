//! The way of a request through a cache of flash blocks with one bit a cell (docs/slc.md). Which page lies where and which
//! blocks are folded is decided by the core's [`SlcCache`]; here stands what that does to the flash and to the times.

use floatgate_core::slc::{Placed, SlcCache};
use floatgate_core::{Flash, Ftl, Lpn, Refusal, Run, Slot};

use super::Session;
use super::buffered::{check_foretold, pages_of};
use crate::clock::{Clock, FlashOp, Machine, OpKind, Sensing};
use crate::config::{PartialWrite, Slc, WhenFull};
use crate::flash::OneBitPage;
use crate::host::{Kind, PageRequest, Segment};

/// What has been counted of the cache, in pages unless it says otherwise.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SlcCounters {
    /// Programmed in the cache.
    pub taken_in: u64,
    /// Written again while they were held.
    pub absorbed: u64,
    /// Trimmed while they were held.
    pub trimmed: u64,
    /// Moved to the scheme.
    pub folded: u64,
    /// Writes in which they were handed over, each of pages that follow each other.
    pub runs: u64,
    /// Written to the scheme past the cache.
    pub direct: u64,
    /// Read from the cache for the host, old content of partly written pages among them.
    pub reads: u64,
    /// Blocks erased.
    pub erases: u64,
    /// Held now.
    pub held: u64,
    /// Most that were held.
    pub held_peak: u64,
    /// The sum of what was held over `requests`.
    pub held_sum: u64,
    /// Requests played.
    pub requests: u64,
    /// What could be held at the start and can be now.
    pub capacity: [u64; 2],
}

/// The cache between host and scheme.
#[derive(Debug)]
pub(super) struct Cached<T> {
    config: Slc,
    machine: Machine,
    pages: SlcCache,
    pages_per_block: u32,
    /// Number of the first page of the first block, behind the scheme's.
    first_page: u32,
    /// Pages that are held and have no older content at the scheme.
    new_pages: u32,
    counters: SlcCounters,
    /// The stream of the write in work.
    pub(super) stream: Option<u32>,
    tokens: Vec<T>,
    folded: Vec<Placed>,
    erased: Vec<u32>,
}

impl<T> Cached<T> {
    /// A place on the flash: the blocks of the cache have as many page numbers as all others.
    fn at(&self, place: u32) -> OneBitPage {
        let (block, page) = (
            self.pages.block_of(place),
            place % self.pages.pages_per_block(),
        );
        OneBitPage {
            die: self.pages.die_of(place),
            page: self.first_page + block * self.pages_per_block + page,
        }
    }

    /// How long it takes to fold blocks, about: the dies and the channels share the work evenly.
    fn fold_ns(&self) -> u64 {
        let machine = &self.machine;
        let ns = |op: FlashOp| machine.duration_ns(op);
        let read = FlashOp {
            sensing: Sensing::ONE_BIT,
            ..FlashOp::new(OpKind::Read, 0)
        };
        let program = FlashOp::new(OpKind::Program, 0);
        let unlike = machine.t_prog_ns - machine.t_prog_ns / u64::from(machine.one_shot.max(1));
        let page_ns = ns(read) + ns(program) - unlike.min(ns(program));
        let bus_ns = machine.phases(read).bus_ns() + machine.phases(program).bus_ns();
        let share = |by: u32| (self.folded.len() as u64).div_ceil(u64::from(by.max(1)));
        let pages_ns = (share(machine.dies) * page_ns).max(share(machine.channels) * bus_ns);
        pages_ns + ns(FlashOp::new(OpKind::Erase, 0))
    }
}

impl<S: Ftl<Page = Lpn>, C: Clock> Session<S, C> {
    /// Puts the cache of the configuration between host and scheme, empty. To be called after ageing, while nothing is under
    /// way.
    ///
    /// # Errors
    /// If the scheme has to know the writes to come.
    pub fn put_slc(&mut self) -> Result<(), Refusal> {
        let config = self.config.device.slc;
        if !config.is_on() {
            return Ok(());
        }
        check_foretold::<S>(&self.config)?;
        let geometry = self.geometry();
        let pages_per_block = config.pages_per_block(geometry);
        let blocks = config.blocks_per_die(geometry);
        let mut slc = Cached {
            config,
            machine: self.config.device.machine(),
            pages: SlcCache::new(
                geometry.dies,
                blocks,
                pages_per_block,
                geometry.logical_pages,
            ),
            pages_per_block: geometry.pages_per_block,
            first_page: geometry.pages(),
            new_pages: 0,
            counters: SlcCounters::default(),
            stream: None,
            tokens: Vec::new(),
            folded: Vec::new(),
            erased: Vec::new(),
        };
        self.limit(&mut slc);
        slc.counters.capacity = [slc.pages.capacity().into(); 2];
        self.slc = Some(Box::new(slc));
        self.plain = false;
        Ok(())
    }

    /// What has been counted of the cache, if there is one.
    pub fn slc_counters(&self) -> Option<SlcCounters> {
        let slc = self.slc.as_ref()?;
        Some(SlcCounters {
            held: slc.pages.held().into(),
            capacity: [slc.counters.capacity[0], slc.pages.capacity().into()],
            ..slc.counters
        })
    }

    /// How many blocks the cache may use: its own, and those that the logical pages without content would fill.
    fn limit(&self, slc: &mut Cached<C::Token>) {
        let geometry = self.geometry();
        let mut blocks = slc.config.blocks * geometry.dies;
        if slc.config.dynamic {
            let used = self.live.count() + slc.new_pages;
            blocks += (geometry.logical_pages - used) / geometry.pages_per_block;
        }
        slc.pages.set_limit(blocks);
    }

    /// Plays the request in work, which is open on the flash.
    #[cold]
    pub(super) fn work_through_slc(&mut self, kind: Kind, pages: &PageRequest) {
        let Some(mut slc) = self.slc.take() else {
            return;
        };
        match kind {
            Kind::Read => {
                let segments = pages.segments.iter();
                segments.for_each(|segment| self.read_through_slc(&mut slc, segment));
            }
            Kind::Write => self.write_through_slc(&mut slc, pages),
            Kind::Trim => {
                for segment in &pages.segments {
                    for (lpn, _) in pages_of(segment) {
                        slc.counters.trimmed += u64::from(self.leaves(&mut slc, lpn));
                    }
                    self.work(kind, segment);
                }
                self.limit(&mut slc);
            }
            Kind::Drain | Kind::Flush | Kind::EmptyTrim => {}
        }
        let held = u64::from(slc.pages.held());
        let counters = &mut slc.counters;
        counters.held_peak = counters.held_peak.max(held);
        counters.held_sum += held;
        counters.requests += 1;
        self.slc = Some(slc);
    }

    /// Drops a page, if it is held.
    fn leaves(&self, slc: &mut Cached<C::Token>, lpn: Lpn) -> bool {
        let was_held = slc.pages.remove(lpn);
        slc.new_pages -= u32::from(was_held && !self.live.has(lpn.0));
        was_held
    }

    fn read_through_slc(&mut self, slc: &mut Cached<C::Token>, segment: &Segment) {
        let end = segment.first.0 + segment.pages;
        let mut at = segment.first.0;
        while at < end {
            let slot = segment.first_slot + at - segment.first.0;
            if let Some(place) = slc.pages.find(Lpn(at)) {
                let page = slc.at(place);
                let token = self
                    .flash
                    .read_one_bit(&slc.machine, page, Some(Slot(slot)));
                self.flash.clock.own(token);
                slc.counters.reads += 1;
                at += 1;
                continue;
            }
            let missed = (at..end).take_while(|&lpn| slc.pages.find(Lpn(lpn)).is_none());
            let pages = missed.count() as u32;
            let segment = Segment {
                first: Lpn(at),
                pages,
                first_slot: slot,
            };
            self.work(Kind::Read, &segment);
            at += pages;
        }
    }

    fn write_through_slc(&mut self, slc: &mut Cached<C::Token>, pages: &PageRequest) {
        let old = self.old_content_through_slc(slc, pages);
        let waits_for = |session: &mut Self, lpn: Lpn| {
            let reads = old.iter().flatten().filter(|(of, _)| *of == lpn);
            reads.fold(C::Token::default(), |all, (_, read)| {
                session.flash.clock.join(all, *read)
            })
        };
        for segment in &pages.segments {
            let mut direct = 0;
            for (lpn, _) in pages_of(segment) {
                slc.counters.absorbed += u64::from(self.leaves(slc, lpn));
                self.make_slc_room(slc);
                let after = waits_for(self, lpn);
                let Some(place) = slc.pages.put(lpn) else {
                    direct += 1;
                    slc.tokens.push(after);
                    continue;
                };
                self.write_direct(slc, Lpn(lpn.0 - direct), std::mem::take(&mut direct));
                slc.counters.taken_in += 1;
                slc.new_pages += u32::from(!self.live.has(lpn.0));
                let page = slc.at(place);
                let token = self.flash.program_one_bit(&slc.machine, page, after);
                self.flash.clock.own(token);
            }
            let end = segment.first.0 + segment.pages;
            self.write_direct(slc, Lpn(end - direct), direct);
        }
        self.limit(slc);
    }

    /// Reads the old content of the first and the last page where only a part of a page with content is written.
    fn old_content_through_slc(
        &mut self,
        slc: &mut Cached<C::Token>,
        pages: &PageRequest,
    ) -> [Option<(Lpn, C::Token)>; 2] {
        let reads = self.config.host.partial_write == PartialWrite::Rmw;
        pages.partial_ends().map(|end| {
            let (lpn, _) = end?;
            let place = slc.pages.find(lpn);
            if !reads || place.is_none() && !self.live.has(lpn.0) {
                return None;
            }
            self.metrics.partial_write_reads += 1;
            let Some(place) = place else {
                self.flash.serve_buffer(vec![C::Token::default()], false);
                let Ok(()) = (self.ftl).read(&mut self.flash, &Run::whole(lpn, 1));
                return Some((lpn, self.flash.buffer_served()[0]));
            };
            slc.counters.reads += 1;
            let page = slc.at(place);
            // The whole page, whatever part of it is written.
            let slot = Some(Slot(u32::MAX));
            Some((lpn, self.flash.read_one_bit(&slc.machine, page, slot)))
        })
    }

    /// Hands the last pages of the write in work to the scheme, those for which `slc.tokens` wait.
    fn write_direct(&mut self, slc: &mut Cached<C::Token>, first: Lpn, pages: u32) {
        if pages == 0 {
            return;
        }
        slc.counters.direct += u64::from(pages);
        if self.uses_streams {
            self.ftl.stream(slc.stream);
        }
        self.write_to_scheme(slc, first, pages, true);
    }

    /// Hands pages to the scheme that wait for `slc.tokens`: these are the ends of their programs then.
    fn write_to_scheme(&mut self, slc: &mut Cached<C::Token>, first: Lpn, pages: u32, owned: bool) {
        self.flash
            .serve_buffer(std::mem::take(&mut slc.tokens), owned);
        let Ok(()) = (self.ftl).write(&mut self.flash, &Run::whole(first, pages));
        slc.tokens = self.flash.buffer_served();
        if owned {
            slc.tokens.clear();
        }
        self.live.set(first, pages, true);
    }

    /// Folds what must be folded before a page can be taken in.
    fn make_slc_room(&mut self, slc: &mut Cached<C::Token>) {
        self.limit(slc);
        let folds = slc.config.when_full == WhenFull::Fold;
        loop {
            let is_low = folds && slc.pages.blocks_left() < slc.config.low_blocks;
            // A cache that became too small folds what it has; one that is full what cannot take any more.
            if !(slc.pages.is_over() || is_low) || !self.choose_folded(slc, slc.pages.is_over()) {
                return;
            }
            self.fold(slc);
        }
    }

    /// Whether there is something to fold: it has left the tables, and [`fold`](Self::fold) moves it.
    fn choose_folded(&self, slc: &mut Cached<C::Token>, open: bool) -> bool {
        slc.pages.fold(open, &mut slc.folded, &mut slc.erased);
        for placed in &slc.folded {
            slc.new_pages -= u32::from(!self.live.has(placed.lpn.0));
        }
        !slc.erased.is_empty()
    }

    /// Moves what was chosen to the scheme, and erases the blocks.
    fn fold(&mut self, slc: &mut Cached<C::Token>) {
        // Pages that wait for the scheme already stay first in line.
        let direct = std::mem::take(&mut slc.tokens);
        let folded = std::mem::take(&mut slc.folded);
        if self.uses_streams {
            self.ftl.stream(None);
        }
        let mut moved = C::Token::default();
        let mut rest = &folded[..];
        while let Some(first) = rest.first() {
            let follows = |(placed, i): &(&Placed, u32)| placed.lpn.0 == first.lpn.0 + i;
            let run = rest.iter().zip(0..).take_while(follows).count();
            let (run, behind) = rest.split_at(run);
            for placed in run {
                let page = slc.at(placed.place);
                slc.tokens
                    .push(self.flash.read_one_bit(&slc.machine, page, None));
            }
            self.write_to_scheme(slc, first.lpn, run.len() as u32, false);
            for end in slc.tokens.drain(..) {
                moved = self.flash.clock.join(moved, end);
            }
            slc.counters.runs += 1;
            slc.counters.folded += run.len() as u64;
            rest = behind;
        }
        for block in std::mem::take(&mut slc.erased) {
            let first = slc.at(block * slc.pages.pages_per_block());
            self.flash.erase_one_bit(&slc.machine, first, moved);
            slc.counters.erases += 1;
        }
        (slc.tokens, slc.folded) = (direct, folded);
        slc.folded.clear();
        self.limit(slc);
    }

    /// Folds the oldest blocks if the device was idle for long enough before an issue, until it is not or all are erased.
    pub(super) fn fold_when_idle(&mut self, issue_ns: u64) {
        let Some(after_ns) = self.slc.as_ref().map(|slc| slc.config.fold_after_ns) else {
            return;
        };
        let since_ns = match after_ns {
            0 => None,
            _ => self.flash.clock.idle_since(issue_ns),
        };
        let Some(since_ns) = since_ns else { return };
        let Some(mut slc) = self.slc.take() else {
            return;
        };
        let mut at_ns = since_ns.saturating_add(after_ns);
        self.flash.not_before_ns = 0;
        while at_ns < issue_ns && self.choose_folded(&mut slc, true) {
            self.flash.background(at_ns);
            at_ns += slc.fold_ns();
            self.fold(&mut slc);
        }
        self.slc = Some(slc);
    }
}
