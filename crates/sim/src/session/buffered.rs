//! The way of a request through memory between host and scheme: a write buffer, a read cache (docs/buffer.md). Which
//! pages are held and which leave is decided by the core's [`WriteBuffer`] and [`ReadCache`]; here stands what that does
//! to the flash and to the times.
//!
//! Every slot has a token: when it is free, the end of the program that wrote out what it held; when it is in use, what
//! its content waits for. A request that puts a page there, or finds it there, waits for that and for the memory.

use std::ops::Range;

use floatgate_core::buffer::{Held, WriteBuffer};
use floatgate_core::described::Described;
use floatgate_core::read_cache::{ReadCache, Streams};
use floatgate_core::{Ftl, Lpn, Refusal, Run};

use super::{Session, options_of};
use crate::clock::Clock;
use crate::config::{Buffer, PartialWrite};
use crate::host::{Kind, PageRequest, Segment};

mod leaving;

use leaving::Leaving;

/// What has been counted of a buffer and a cache, in pages unless it says otherwise.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BufferCounters {
    /// Written again while they were held: one program was saved for each.
    pub absorbed: u64,
    /// Trimmed while they were held.
    pub trimmed: u64,
    /// Written out: handed to the scheme.
    pub written_out: u64,
    /// Not held, but written with what was written out of their block, to fill it up.
    pub padded: u64,
    /// Of these, found in the read cache; the others were read from the flash.
    pub padded_cached: u64,
    /// Writes in which they were handed over, each of pages that follow each other.
    pub runs: u64,
    /// Held now.
    pub held: u64,
    /// Read from the write buffer.
    pub read_held: u64,
    /// Read from the read cache.
    pub read_cached: u64,
    /// Read from the flash for the host, pages without content among them.
    pub read_missed: u64,
    /// Read ahead.
    pub read_ahead: u64,
    /// Of these, read by the host afterwards.
    pub read_ahead_used: u64,
    /// Of these, dropped before.
    pub read_ahead_wasted: u64,
}

/// Pages of writes that are held, with what the flash has to do with them.
#[derive(Debug)]
struct WriteSide<T> {
    pages: WriteBuffer,
    /// By slot: see the module's text.
    since: Vec<T>,
    /// By slot: the stream of the write.
    stream_of: Vec<Option<u32>>,
}

/// Pages that were read, with the reads that fetched them.
#[derive(Debug)]
struct ReadSide<T> {
    pages: ReadCache,
    since: Vec<T>,
    streams: Streams,
}

/// Memory between host and scheme.
#[derive(Debug)]
pub(super) struct Buffered<T> {
    config: Buffer,
    /// Pages of the longest run that is handed to the scheme at once.
    block_pages: u32,
    write: Option<WriteSide<T>>,
    read: Option<ReadSide<T>>,
    counters: BufferCounters,
    /// The stream of the write in work.
    pub(super) stream: Option<u32>,
    /// The latest end of a write in memory.
    written_ns: u64,
    /// The ends of all that was written out, and of all trims.
    out: T,
    /// Pages that the buffer has let go of; these and what fills up their blocks; their tokens, while the flash has them.
    evicted: Vec<Held>,
    leaving: Vec<Leaving<T>>,
    tokens: Vec<T>,
}

impl<T: Copy + Default> Buffered<T> {
    fn new(config: &Buffer, logical_pages: u32, block_pages: u32) -> Self {
        let write_pages = config.write_pages;
        let write = (write_pages > 0).then(|| WriteSide {
            pages: WriteBuffer::new(write_pages, logical_pages, config.eviction, block_pages),
            since: vec![T::default(); write_pages as usize],
            stream_of: vec![None; write_pages as usize],
        });
        let read = (config.read_pages > 0).then(|| ReadSide {
            pages: ReadCache::new(config.read_pages, logical_pages),
            since: vec![T::default(); config.read_pages as usize],
            streams: Streams::new(config.prefetch_pages, logical_pages),
        });
        Self {
            config: *config,
            block_pages,
            write,
            read,
            counters: BufferCounters::default(),
            stream: None,
            written_ns: 0,
            out: T::default(),
            evicted: Vec::new(),
            leaving: Vec::new(),
            tokens: Vec::new(),
        }
    }

    /// The token of a page in the write buffer.
    fn held(&self, lpn: Lpn) -> Option<T> {
        let write = self.write.as_ref()?;
        Some(write.since[write.pages.find(lpn)? as usize])
    }

    /// The token of a page in the read cache that is read now.
    fn cached(&mut self, lpn: Lpn) -> Option<T> {
        let read = self.read.as_mut()?;
        Some(read.since[read.pages.read(lpn)? as usize])
    }

    /// Whether a page is in memory.
    fn has(&self, lpn: Lpn) -> bool {
        let cached = self.read.as_ref().is_some_and(|read| read.pages.has(lpn));
        cached || self.held(lpn).is_some()
    }

    /// The read cache has the newest content or none.
    fn outdated(&mut self, lpn: Lpn) {
        if let Some(read) = &mut self.read {
            read.pages.remove(lpn);
        }
    }

    /// Pages of a stretch that the write buffer does not hold, at most as many as it could.
    fn missing(&self, lpns: Range<u32>) -> u32 {
        let Some(write) = &self.write else { return 0 };
        let missing = lpns.filter(|&lpn| write.pages.find(Lpn(lpn)).is_none());
        missing.take(self.config.write_pages as usize).count() as u32
    }

    fn counters(&self) -> BufferCounters {
        let ahead =
            (self.read.as_ref()).map_or_else(Default::default, |read| read.pages.read_ahead);
        BufferCounters {
            held: self
                .write
                .as_ref()
                .map_or(0, |write| write.pages.len())
                .into(),
            read_ahead_used: ahead.used,
            read_ahead_wasted: ahead.wasted,
            ..self.counters
        }
    }
}

/// Pages of a segment with their slots in the request.
pub(super) fn pages_of(segment: &Segment) -> impl Iterator<Item = (Lpn, u32)> + use<> {
    let (first, slot) = (segment.first.0, segment.first_slot);
    (0..segment.pages).map(move |i| (Lpn(first + i), slot + i))
}

impl<S: Ftl<Page = Lpn>, C: Clock> Session<S, C> {
    /// Puts the memory of the configuration between host and scheme, empty. To be called after ageing, while nothing is
    /// under way.
    ///
    /// # Errors
    /// If the scheme has to know the writes to come.
    pub fn put_buffer(&mut self) -> Result<(), Refusal> {
        let config = self.config.device.buffer;
        if !config.is_on() {
            return Ok(());
        }
        check_foretold::<S>(&self.config)?;
        let pages = self.geometry().logical_pages;
        let block_pages = config.block_pages(self.geometry());
        self.buffer = Some(Box::new(Buffered::new(&config, pages, block_pages)));
        self.plain = false;
        Ok(())
    }

    /// What has been counted of the memory between host and scheme, if there is any.
    pub fn buffer_counters(&self) -> Option<BufferCounters> {
        self.buffer.as_ref().map(|buffer| buffer.counters())
    }

    /// What a request of that kind is where writes are held: a flush has work, unless the memory survives a power cut.
    pub(super) fn kind_with_buffer(&self, kind: Kind) -> Kind {
        let drains = |buffer: &Buffered<_>| buffer.write.is_some() && !buffer.config.protected;
        match (kind, &self.buffer) {
            (Kind::Flush, Some(buffer)) if drains(buffer) => Kind::Drain,
            _ => kind,
        }
    }

    /// Plays the request in work, which is open on the flash.
    #[cold]
    pub(super) fn work_through_buffer(&mut self, kind: Kind, issue_ns: u64, pages: &PageRequest) {
        let Some(mut buffer) = self.buffer.take() else {
            return;
        };
        match kind {
            Kind::Read => self.read_through(&mut buffer, issue_ns, pages),
            Kind::Write if buffer.write.is_some() => self.hold(&mut buffer, issue_ns, pages),
            Kind::Write => {
                let written = pages.segments.iter().flat_map(pages_of);
                written.for_each(|(lpn, _)| buffer.outdated(lpn));
                self.read_old_content(pages);
                pages.segments.iter().for_each(|s| self.work(kind, s));
            }
            Kind::Trim => pages
                .segments
                .iter()
                .for_each(|s| self.drop_held(&mut buffer, s)),
            Kind::Drain => {
                self.flash.clock.own_beside(issue_ns.max(buffer.written_ns));
                self.write_all_out(&mut buffer);
                self.flash.clock.own(buffer.out);
            }
            Kind::Flush | Kind::EmptyTrim => {}
        }
        self.buffer = Some(buffer);
    }

    fn hold(&mut self, buffer: &mut Buffered<C::Token>, issue_ns: u64, pages: &PageRequest) {
        let old = self.old_content_of_ends(buffer, pages);
        let end_ns = issue_ns.saturating_add(buffer.config.ns(pages.pages));
        buffer.written_ns = buffer.written_ns.max(end_ns);
        self.flash.clock.own_beside(end_ns);
        for segment in &pages.segments {
            let end = segment.first.0 + segment.pages;
            for (lpn, _) in pages_of(segment) {
                buffer.outdated(lpn);
                let is_full = (buffer.write.as_ref()).is_some_and(|write| write.pages.free() == 0);
                if is_full && buffer.held(lpn).is_none() {
                    self.make_room(buffer, buffer.missing(lpn.0..end));
                }
                let Some(write) = &mut buffer.write else {
                    return;
                };
                let put = write.pages.put(lpn);
                buffer.counters.absorbed += u64::from(put.replaces);
                let since = &mut write.since[put.slot as usize];
                for (_, read) in old.iter().flatten().filter(|(of, _)| *of == lpn) {
                    *since = self.flash.clock.join(*since, *read);
                }
                self.flash.clock.own(*since);
                write.stream_of[put.slot as usize] = buffer.stream;
            }
        }
        self.make_room(buffer, buffer.config.reserve_pages);
    }

    /// Reads the old content of the first and the last page where only a part of a live page is written that is not held.
    fn old_content_of_ends(
        &mut self,
        buffer: &mut Buffered<C::Token>,
        pages: &PageRequest,
    ) -> [Option<(Lpn, C::Token)>; 2] {
        let reads = self.config.host.partial_write == PartialWrite::Rmw;
        pages.partial_ends().map(|end| {
            let (lpn, _) = end?;
            let is_needed = reads && self.live.has(lpn.0);
            if !is_needed || buffer.held(lpn).is_some() {
                return None;
            }
            let token = buffer.cached(lpn).unwrap_or_else(|| {
                self.metrics.partial_write_reads += 1;
                self.fetch(buffer, lpn, 1, false);
                buffer.tokens[0]
            });
            Some((lpn, token))
        })
    }

    /// Drops pages that are trimmed. The scheme hears of all of them: it may have an older copy of what is held.
    fn drop_held(&mut self, buffer: &mut Buffered<C::Token>, segment: &Segment) {
        for (lpn, _) in pages_of(segment) {
            let held = buffer.write.as_mut().and_then(|w| w.pages.remove(lpn));
            buffer.counters.trimmed += u64::from(held.is_some());
            buffer.outdated(lpn);
        }
        let mut tokens = std::mem::take(&mut buffer.tokens);
        tokens.clear();
        tokens.resize(segment.pages as usize, C::Token::default());
        self.flash.serve_buffer(tokens, true);
        let Ok(()) = self.trim(&Run::whole(segment.first, segment.pages));
        buffer.tokens = self.flash.buffer_served();
        for &end in &buffer.tokens {
            buffer.out = self.flash.clock.join(buffer.out, end);
        }
        self.live.set(segment.first, segment.pages, false);
    }

    fn read_through(
        &mut self,
        buffer: &mut Buffered<C::Token>,
        issue_ns: u64,
        pages: &PageRequest,
    ) {
        let mut found = 0;
        for segment in &pages.segments {
            let end = segment.first.0 + segment.pages;
            let mut at = segment.first.0;
            while at < end {
                let token = if let Some(token) = buffer.held(Lpn(at)) {
                    buffer.counters.read_held += 1;
                    token
                } else if let Some(token) = buffer.cached(Lpn(at)) {
                    buffer.counters.read_cached += 1;
                    token
                } else {
                    let missed = (at..end).take_while(|&lpn| !buffer.has(Lpn(lpn))).count() as u32;
                    let slot = segment.first_slot + at - segment.first.0;
                    self.read_missed(buffer, Lpn(at), missed, slot);
                    at += missed;
                    continue;
                };
                self.flash.clock.own(token);
                found += 1;
                at += 1;
            }
            self.look_ahead(buffer, segment);
        }
        if found > 0 {
            let end_ns = issue_ns.saturating_add(buffer.config.ns(found));
            self.flash.clock.own_beside(end_ns);
        }
    }

    /// Reads pages that are not in memory for the host. Into a read cache they come whole.
    fn read_missed(
        &mut self,
        buffer: &mut Buffered<C::Token>,
        first: Lpn,
        pages: u32,
        first_slot: u32,
    ) {
        buffer.counters.read_missed += u64::from(pages);
        if buffer.read.is_none() {
            let segment = Segment {
                first,
                pages,
                first_slot,
            };
            return self.work(Kind::Read, &segment);
        }
        self.fetch(buffer, first, pages, true);
        self.keep(buffer, first, false);
    }

    /// Reads pages for the buffer, which the request waits for if they are `owned`; `buffer.tokens` are the ends.
    fn fetch(&mut self, buffer: &mut Buffered<C::Token>, first: Lpn, pages: u32, owned: bool) {
        let mut tokens = std::mem::take(&mut buffer.tokens);
        tokens.clear();
        tokens.resize(pages as usize, C::Token::default());
        self.flash.serve_buffer(tokens, owned);
        let Ok(()) = (self.ftl).read(&mut self.flash, &Run::whole(first, pages));
        buffer.tokens = self.flash.buffer_served();
    }

    /// Takes the pages that were fetched into the read cache, but for those without content.
    fn keep(&mut self, buffer: &mut Buffered<C::Token>, first: Lpn, ahead: bool) {
        let Some(read) = &mut buffer.read else { return };
        for (lpn, &token) in (first.0..).zip(&buffer.tokens) {
            if self.live.has(lpn) {
                let slot = read.pages.put(Lpn(lpn), ahead);
                read.since[slot as usize] = token;
            }
        }
    }

    /// Reads ahead what will follow, if these pages go on where others ended.
    fn look_ahead(&mut self, buffer: &mut Buffered<C::Token>, segment: &Segment) {
        let Some(read) = &mut buffer.read else { return };
        if buffer.config.prefetch_pages == 0 {
            return;
        }
        let ahead = read.streams.read(segment.first, segment.pages);
        let mut at = ahead.start;
        while at < ahead.end {
            let wanted = |lpn: &u32| self.live.has(*lpn) && !buffer.has(Lpn(*lpn));
            let pages = (at..ahead.end).take_while(wanted).count() as u32;
            if pages > 0 {
                buffer.counters.read_ahead += u64::from(pages);
                self.fetch(buffer, Lpn(at), pages, false);
                self.keep(buffer, Lpn(at), true);
            }
            at += pages.max(1);
        }
    }
}

/// A scheme that is told which of the host's writes end when does not get these writes from a buffer.
pub(crate) fn check_foretold<S: Described>(
    config: &crate::config::RunConfig,
) -> Result<(), Refusal> {
    let key = match (config.device.buffer.write_pages, config.device.slc.is_on()) {
        (0, false) => return Ok(()),
        (0, true) => "slc.blocks",
        _ => "write_pages",
    };
    S::live(&options_of::<S>(config)?).map_err(|refusal| {
        let text = format!(
            "a write buffer or a cache of one bit a cell decides what is written to the scheme, and when; {}",
            refusal.message
        );
        Refusal::new(key, text)
    })
}
