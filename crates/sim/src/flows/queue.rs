//! The queue of one flow: which command is first in it, and since when.

use std::collections::VecDeque;

use floatgate_core::Lpn;
use floatgate_trace::{Op, Request, TraceError};

use super::{Flow, Link, Measured, Stopped, beyond_text};
use crate::config::{Device, RunConfig};
use crate::host::{Kind, PageMapper, PageRequest};

/// The request at the head of a queue: what of it was not taken.
#[derive(Clone, Copy, Debug)]
struct Head {
    rest: Request,
    /// Its place in the trace.
    place: u64,
    /// When it came into the queue, and its number among the requests under way, once a part of it was taken.
    begun: Option<(u64, u32)>,
}

/// A part of a request, or all of it.
pub(super) struct Part {
    pub request: Request,
    pub arrival_ns: u64,
    /// Of a part that is not the first: the number of the request among those under way.
    pub of: Option<u32>,
    pub is_last: bool,
}

pub(super) struct Queue<'a> {
    flow: &'a mut Flow,
    mapper: PageMapper,
    head: Option<Head>,
    /// Closed loop: since when there have been places for further requests, in order.
    places: VecDeque<u64>,
    /// Requests of which a part was taken and that are not complete.
    pub under_way: u64,
    most_bytes: u64,
    page_bytes: u64,
    pub measured: Measured,
}

impl<'a> Queue<'a> {
    pub(super) fn new(
        flow: &'a mut Flow,
        link: &Link,
        run: &RunConfig,
    ) -> Result<Self, TraceError> {
        let config = &flow.config;
        let pages = config.pages(run.device.logical_pages);
        let own = Device {
            logical_pages: pages.end - pages.start,
            ..run.device.clone()
        };
        let page_bytes = u64::from(run.device.part.page_bytes);
        let depth = config.queue_depth as usize;
        let mut queue = Self {
            mapper: PageMapper::new(&own, &run.host),
            head: None,
            places: std::iter::repeat_n(config.start_ns, depth).collect(),
            under_way: 0,
            most_bytes: link.max_request_bytes / page_bytes * page_bytes,
            page_bytes,
            measured: Measured::of(config, pages),
            flow,
        };
        queue.advance()?;
        Ok(queue)
    }

    fn advance(&mut self) -> Result<(), TraceError> {
        self.head = self.flow.source.next()?.map(|rest| Head {
            rest,
            place: self.flow.source.place(),
            begun: None,
        });
        Ok(())
    }

    pub(super) fn is_closed(&self) -> bool {
        self.flow.config.queue_depth > 0
    }

    /// Whether all its requests are complete.
    pub(super) fn is_over(&self) -> bool {
        self.head.is_none() && self.under_way == 0
    }

    /// Since when, or from when on, a command waits; none if none does before a request is complete.
    pub(super) fn waits_since_ns(&self) -> Option<u64> {
        let head = self.head.as_ref()?;
        let config = &self.flow.config;
        match head.begun {
            Some((arrival_ns, _)) => Some(arrival_ns),
            None if self.is_closed() => self.places.front().copied(),
            None if config.speed == 1.0 => Some(config.start_ns + head.rest.arrival_ns),
            None => Some(config.start_ns + (head.rest.arrival_ns as f64 / config.speed) as u64),
        }
    }

    /// Whether there is a first command and it is work for the scheme: no flush, no trim without a whole page. Who is
    /// mapped twice has the same place.
    pub(super) fn reaches_scheme(&mut self, pages: &mut PageRequest) -> bool {
        let Some(head) = &self.head else {
            return false;
        };
        match head.rest.op {
            Op::Read | Op::Write => true,
            Op::Flush => false,
            Op::Trim | Op::WriteZeroes => {
                let mapped = self.mapper.map(&head.rest, pages);
                mapped.is_err() || pages.kind != Some(Kind::EmptyTrim)
            }
        }
    }

    /// Takes the first command out of the queue, and its pages into `pages`. It must wait.
    pub(super) fn take(&mut self, pages: &mut PageRequest) -> Result<Option<Part>, Stopped> {
        let (Some(arrival_ns), Some(head)) = (self.waits_since_ns(), self.head) else {
            return Ok(None);
        };
        let bytes = self.first_bytes(&head.rest);
        let mut request = Request { bytes, ..head.rest };
        self.map(&request, head.place, pages)?;
        let first_byte = self.measured.pages.start * self.page_bytes;
        request.offset = request.offset.saturating_add(first_byte);
        if let Some(stream) = self.flow.config.stream() {
            request.stream = stream;
        }
        let part = Part {
            request,
            arrival_ns,
            of: head.begun.map(|(_, number)| number),
            is_last: bytes == head.rest.bytes,
        };
        if part.of.is_none() {
            self.under_way += 1;
            if self.is_closed() {
                self.places.pop_front();
            }
        }
        Ok(Some(part))
    }

    /// Lets what follows the command that was taken be first: the rest of its request, which has that number, or the next.
    pub(super) fn follow(&mut self, part: &Part, number: u32) -> Result<(), TraceError> {
        if part.is_last {
            return self.advance();
        }
        if let Some(head) = &mut self.head {
            head.rest.offset += part.request.bytes;
            head.rest.bytes -= part.request.bytes;
            head.begun = Some((part.arrival_ns, number));
        }
        Ok(())
    }

    /// A request of it is complete.
    pub(super) fn completed(&mut self, end_ns: u64) {
        self.under_way -= 1;
        if self.is_closed() {
            self.places.push_back(end_ns);
        }
    }

    /// Bytes of the first command of a request. Parts end at the border of a page, so that no page is written by two.
    fn first_bytes(&self, request: &Request) -> u64 {
        let moves_data = matches!(request.op, Op::Read | Op::Write);
        if !moves_data || self.most_bytes == 0 || request.bytes <= self.most_bytes {
            return request.bytes;
        }
        self.most_bytes - request.offset % self.page_bytes
    }

    fn map(
        &mut self,
        request: &Request,
        place: u64,
        pages: &mut PageRequest,
    ) -> Result<(), Stopped> {
        let own = &self.measured.pages;
        self.mapper.map(request, pages).map_err(|beyond| {
            let position = self.flow.source.position(place);
            let (config, own) = (&self.flow.config, own.end - own.start);
            let page_bytes = self.page_bytes as u32;
            Stopped::Beyond(beyond_text(config, own, page_bytes, &position, beyond))
        })?;
        for segment in &mut pages.segments {
            segment.first = Lpn(segment.first.0 + own.start as u32);
        }
        Ok(())
    }
}
