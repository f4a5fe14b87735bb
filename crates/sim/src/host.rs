//! From trace requests to page requests: which pages a request covers, what of them is partial, and where
//! addresses past the end of the device go (docs/spec/timing.md, section 4).

use floatgate_core::Lpn;
use floatgate_core::state::{Passed, State, StateError, Tape};
use floatgate_trace::{Op, Request};
use rustc_hash::FxHashMap;

use crate::config::{Beyond, Device, Host};
use crate::flash::Partial;
use crate::span::PageSize;

/// What a request is for the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Reads pages.
    Read,
    /// Writes pages.
    Write,
    /// Trims whole pages.
    Trim,
    /// Flush; the scheme does not see it.
    Flush,
    /// A flush of a device that holds writes in memory: they are written out.
    Drain,
    /// A trim without a whole page; the scheme does not see it.
    EmptyTrim,
}

/// Logical pages that follow each other: a request, or what lies between two cuts of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// First page.
    pub first: Lpn,
    /// Pages.
    pub pages: u32,
    /// Page of the whole request that this segment begins with.
    pub first_slot: u32,
}

/// A request in pages.
#[derive(Clone, Debug, Default)]
pub struct PageRequest {
    /// What it asks.
    pub kind: Option<Kind>,
    /// Its segments, in ascending order of the input's addresses.
    pub segments: Vec<Segment>,
    /// Pages in all.
    pub pages: u32,
    /// Transfers that are less than a page (reads), if there are any.
    pub partial: Option<Partial>,
    /// Whether the first page is written only in part (writes).
    pub first_partial: bool,
    /// Whether the last page is written only in part, and is not the first.
    pub last_partial: bool,
}

impl PageRequest {
    /// Makes it a request for whole pages.
    #[inline]
    pub fn whole(&mut self, kind: Kind, first: Lpn, pages: u32) {
        self.kind = Some(kind);
        self.segments.clear();
        self.segments.push(Segment {
            first,
            pages,
            first_slot: 0,
        });
        self.pages = pages;
        self.partial = None;
        (self.first_partial, self.last_partial) = (false, false);
    }

    /// The first and the last page with their slots, where they are written only in part.
    pub(crate) fn partial_ends(&self) -> [Option<(Lpn, u32)>; 2] {
        let (Some(first), Some(last)) = (self.segments.first(), self.segments.last()) else {
            return [None; 2];
        };
        let behind = last.pages - 1;
        let last = (Lpn(last.first.0 + behind), last.first_slot + behind);
        [
            self.first_partial
                .then_some((first.first, first.first_slot)),
            self.last_partial.then_some(last),
        ]
    }
}

/// An address that the device does not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BeyondEnd {
    /// A page past the end.
    Page {
        /// The last page that the request touches.
        last_page: u64,
    },
    /// No room for another region of `compact`.
    Regions,
    /// A request of more than 2^31 pages.
    TooLong,
}

/// Turns requests into pages for one device.
#[derive(Clone, Debug)]
pub struct PageMapper {
    pub(crate) page_size: PageSize,
    sub_page_bytes: u64,
    sectors: u32,
    device: Device,
    pub(crate) logical_pages: u64,
    pub(crate) beyond: Beyond,
    write_zeroes_as_writes: bool,
    region_pages: u64,
    regions: FxHashMap<(u32, u64), u32>,
    /// The region looked up last: requests are local.
    last_region: Option<((u32, u64), u32)>,
}

/// The regions that have a place, in the order of their places.
impl State for PageMapper {
    fn pass(&mut self, tape: &mut Tape<'_>) -> Passed {
        let mut keys = vec![(0, 0); self.regions.len()];
        for (&key, &number) in &self.regions {
            keys[number as usize] = key;
        }
        tape.grows(&mut keys)?;
        let mut region_pages = self.region_pages;
        tape.u64(&mut region_pages)?;
        if !tape.loads() || keys.is_empty() {
            return Ok(());
        }
        if self.beyond != Beyond::Compact || region_pages != self.region_pages {
            return Err(StateError::damaged(format!(
                "its addresses were placed by host.beyond = \"compact\" with host.compact_region_pages = {region_pages}, \
                 and this run has others"
            )));
        }
        let regions = keys.len();
        self.regions = keys.into_iter().zip(0..).collect();
        let fits = regions as u64 <= self.logical_pages / self.region_pages;
        match fits && self.regions.len() == regions {
            true => Ok(()),
            false => Err(StateError::damaged("its regions do not fit the device")),
        }
    }
}

impl PageMapper {
    /// A mapper for a device under a host's policies.
    pub fn new(device: &Device, host: &Host) -> Self {
        Self {
            page_size: PageSize::new(device.part.page_bytes.into()),
            sub_page_bytes: (device.part.page_bytes / device.part.sectors).into(),
            sectors: device.part.sectors,
            logical_pages: device.logical_pages,
            beyond: host.beyond,
            write_zeroes_as_writes: host.write_zeroes_as_writes,
            region_pages: host.region_pages(device.part.page_bytes).into(),
            regions: FxHashMap::default(),
            last_region: None,
            device: device.clone(),
        }
    }

    /// Regions that have a place so far.
    pub fn regions(&self) -> u64 {
        self.regions.len() as u64
    }

    /// Pages of one region.
    pub fn region_pages(&self) -> u64 {
        self.region_pages
    }

    /// The first page of a request, as far as that is known without giving a region its place.
    #[inline]
    pub fn first_page(&self, request: &Request) -> Option<Lpn> {
        let page = self.page_size.span(request.offset, request.bytes).first;
        let page = match self.beyond {
            Beyond::Error => page,
            Beyond::Wrap | Beyond::Compact => self.elsewhere(request.volume, page)?,
        };
        (page < self.logical_pages).then_some(Lpn(page as u32))
    }

    /// Where a page lies that may be past the end.
    fn elsewhere(&self, volume: u32, page: u64) -> Option<u64> {
        if self.beyond == Beyond::Wrap {
            return Some(page % self.logical_pages);
        }
        let key = (volume, page / self.region_pages);
        let region = u64::from(*self.regions.get(&key)?);
        Some(region * self.region_pages + page % self.region_pages)
    }

    /// The pages of a request, into `out` (reused from request to request).
    ///
    /// # Errors
    /// If the device does not have the address.
    pub fn map(&mut self, request: &Request, out: &mut PageRequest) -> Result<(), BeyondEnd> {
        out.segments.clear();
        out.partial = None;
        (out.first_partial, out.last_partial, out.pages) = (false, false, 0);
        let kind = match request.op {
            Op::Read => Kind::Read,
            Op::Write => Kind::Write,
            Op::WriteZeroes if self.write_zeroes_as_writes => Kind::Write,
            Op::Trim | Op::WriteZeroes => Kind::Trim,
            Op::Flush => {
                out.kind = Some(Kind::Flush);
                return Ok(());
            }
        };
        let span = self.page_size.span(request.offset, request.bytes);
        let pages = match kind {
            Kind::Trim => span.inside(),
            _ => span.touched(),
        };
        let (first, last) = (pages.start, pages.end);
        let (head, tail) = (span.head != 0, span.tail != 0);
        if first >= last {
            out.kind = Some(if kind == Kind::Trim {
                Kind::EmptyTrim
            } else {
                kind
            });
            return Ok(());
        }
        out.kind = Some(kind);
        if last - first > 1 << 31 {
            return Err(BeyondEnd::TooLong);
        }
        match kind {
            Kind::Read if head || tail => {
                self.short_transfers(request, first, last, out);
            }
            Kind::Write => {
                out.first_partial = head || (last - first == 1 && tail);
                out.last_partial = tail && last - first > 1;
            }
            _ => {}
        }
        self.place(request.volume, kind, first, last, out)
    }

    /// Sub-pages that the first and the last page transfer.
    fn short_transfers(&self, request: &Request, first: u64, last: u64, out: &mut PageRequest) {
        let start = request.offset;
        let end = start.saturating_add(request.bytes);
        let sub = |byte: u64| byte / self.sub_page_bytes;
        let sub_up = |byte: u64| byte.div_ceil(self.sub_page_bytes);
        let whole = u64::from(self.sectors);
        let head = start - first * self.page_size.bytes();
        let tail = end - (last - 1) * self.page_size.bytes();
        let (first_sectors, last_sectors) = if last - first == 1 {
            (sub_up(tail) - sub(head), whole)
        } else {
            (whole - sub(head), sub_up(tail))
        };
        let bytes = |sectors: u64| {
            if sectors == whole {
                0
            } else {
                self.device.part.transfer_bytes(sectors as u32)
            }
        };
        let (first_bytes, last_bytes) = (bytes(first_sectors), bytes(last_sectors));
        let data_ns = |bytes: u32| (u64::from(bytes) * self.device.part.out_ps).div_ceil(1000);
        out.partial = Some(Partial {
            first_bytes,
            last_slot: (last - first - 1) as u32,
            last_bytes,
            data_ns: [data_ns(first_bytes), data_ns(last_bytes)],
        });
    }

    fn place(
        &mut self,
        volume: u32,
        kind: Kind,
        first: u64,
        last: u64,
        out: &mut PageRequest,
    ) -> Result<(), BeyondEnd> {
        out.pages = (last - first) as u32;
        match self.beyond {
            Beyond::Error if last > self.logical_pages => Err(BeyondEnd::Page {
                last_page: last - 1,
            }),
            Beyond::Error => {
                out.segments.push(Segment {
                    first: Lpn(first as u32),
                    pages: out.pages,
                    first_slot: 0,
                });
                Ok(())
            }
            Beyond::Wrap => {
                let mut at = first;
                while at < last {
                    let inside = at % self.logical_pages;
                    let pages = (self.logical_pages - inside).min(last - at);
                    out.segments.push(Segment {
                        first: Lpn(inside as u32),
                        pages: pages as u32,
                        first_slot: (at - first) as u32,
                    });
                    at += pages;
                }
                Ok(())
            }
            Beyond::Compact => self.compact(volume, kind, first, last, out),
        }
    }

    fn compact(
        &mut self,
        volume: u32,
        kind: Kind,
        first: u64,
        last: u64,
        out: &mut PageRequest,
    ) -> Result<(), BeyondEnd> {
        let mut at = first;
        while at < last {
            let (region, inside) = (at / self.region_pages, at % self.region_pages);
            let pages = (self.region_pages - inside).min(last - at);
            // A trim gives no region its place; what it would drop was never written.
            if let Some(number) = self.region((volume, region), kind != Kind::Trim)? {
                let first_page = u64::from(number) * self.region_pages + inside;
                out.segments.push(Segment {
                    first: Lpn(first_page as u32),
                    pages: pages as u32,
                    first_slot: (at - first) as u32,
                });
            }
            at += pages;
        }
        if kind == Kind::Trim {
            out.pages = out.segments.iter().map(|segment| segment.pages).sum();
            if out.segments.is_empty() {
                out.kind = Some(Kind::EmptyTrim);
            }
        }
        Ok(())
    }

    fn region(&mut self, key: (u32, u64), make: bool) -> Result<Option<u32>, BeyondEnd> {
        if let Some((_, number)) = self.last_region.filter(|(last, _)| *last == key) {
            return Ok(Some(number));
        }
        let next = self.regions.len() as u32;
        let number = match self.regions.get(&key) {
            Some(&number) => number,
            None if !make => return Ok(None),
            None if (u64::from(next) + 1) * self.region_pages > self.logical_pages => {
                return Err(BeyondEnd::Regions);
            }
            None => {
                self.regions.insert(key, next);
                next
            }
        };
        self.last_region = Some((key, number));
        Ok(Some(number))
    }
}
