//! From trace requests to page requests: which pages a request covers, what of them is partial, and where
//! addresses past the end of the device go (docs/spec/timing.md, section 4).

use floatgate_core::Lpn;
use floatgate_trace::{Op, Request};
use rustc_hash::FxHashMap;

use crate::config::{Beyond, Device, Host};
use crate::flash::Partial;

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
    /// A trim without a whole page; the scheme does not see it.
    EmptyTrim,
}

/// A contiguous run of logical pages: a request, or one part of a request that was cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// First page.
    pub first: Lpn,
    /// Pages.
    pub pages: u32,
    /// Page of the whole request that this part begins with.
    pub first_slot: u32,
}

/// A request in pages.
#[derive(Clone, Debug, Default)]
pub struct PageRequest {
    /// What it asks.
    pub kind: Option<Kind>,
    /// Its parts, in ascending order of the input's addresses.
    pub parts: Vec<Part>,
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
        self.parts.clear();
        self.parts.push(Part {
            first,
            pages,
            first_slot: 0,
        });
        self.pages = pages;
        self.partial = None;
        (self.first_partial, self.last_partial) = (false, false);
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

/// The bytes of a page; nearly always a power of two, and then nobody divides.
#[derive(Clone, Copy, Debug)]
struct PageBytes {
    bytes: u64,
    shift: Option<u32>,
}

impl PageBytes {
    fn new(bytes: u64) -> Self {
        let shift = bytes.is_power_of_two().then(|| bytes.trailing_zeros());
        Self { bytes, shift }
    }

    /// The page of a byte, and the place inside it.
    #[inline]
    fn split(self, byte: u64) -> (u64, u64) {
        match self.shift {
            Some(shift) => (byte >> shift, byte & (self.bytes - 1)),
            None => (byte / self.bytes, byte % self.bytes),
        }
    }
}

/// Turns requests into pages for one device.
#[derive(Debug)]
pub struct PageMapper {
    page_bytes: PageBytes,
    sub_page_bytes: u64,
    sectors: u32,
    device: Device,
    logical_pages: u64,
    beyond: Beyond,
    write_zeroes_as_writes: bool,
    region_pages: u64,
    regions: FxHashMap<(u32, u64), u32>,
    /// The region looked up last: requests are local.
    last_region: Option<((u32, u64), u32)>,
}

impl PageMapper {
    /// A mapper for a device under a host's policies.
    pub fn new(device: &Device, host: &Host) -> Self {
        Self {
            page_bytes: PageBytes::new(device.part.page_bytes.into()),
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
        let (page, _) = self.page_bytes.split(request.offset);
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

    /// Kind, first page and number of pages of a read or write of whole pages that the device has: what most
    /// requests are, and the short way to the same as [`PageMapper::map`].
    #[inline]
    pub fn whole_pages(&self, request: &Request) -> Option<(Kind, Lpn, u32)> {
        let kind = match request.op {
            Op::Read => Kind::Read,
            Op::Write => Kind::Write,
            _ => return None,
        };
        let (first, head) = self.page_bytes.split(request.offset);
        let (pages, tail) = self.page_bytes.split(request.bytes);
        let end = first.checked_add(pages)?;
        let whole = (head | tail) == 0 && pages > 0 && end <= self.logical_pages;
        (whole && self.beyond == Beyond::Error).then_some((kind, Lpn(first as u32), pages as u32))
    }

    /// The pages of a request, into `out` (reused from request to request).
    ///
    /// # Errors
    /// If the device does not have the address.
    pub fn map(&mut self, request: &Request, out: &mut PageRequest) -> Result<(), BeyondEnd> {
        out.parts.clear();
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
        let (start, end) = (request.offset, request.offset.saturating_add(request.bytes));
        let (start_page, head) = self.page_bytes.split(start);
        let (end_page, tail) = self.page_bytes.split(end);
        let (head, tail) = (head != 0, tail != 0);
        let (first, last) = if kind == Kind::Trim {
            (start_page + u64::from(head), end_page)
        } else {
            (start_page, end_page + u64::from(tail))
        };
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
            Kind::Read if head || tail => self.short_transfers(start, end, first, last, out),
            Kind::Write => {
                out.first_partial = head || (last - first == 1 && tail);
                out.last_partial = tail && last - first > 1;
            }
            _ => {}
        }
        self.place(request.volume, kind, first, last, out)
    }

    /// Sub-pages that the first and the last page transfer.
    fn short_transfers(&self, start: u64, end: u64, first: u64, last: u64, out: &mut PageRequest) {
        let sub = |byte: u64| byte / self.sub_page_bytes;
        let sub_up = |byte: u64| byte.div_ceil(self.sub_page_bytes);
        let whole = u64::from(self.sectors);
        let head = start - first * self.page_bytes.bytes;
        let tail = end - (last - 1) * self.page_bytes.bytes;
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
                out.parts.push(Part {
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
                    out.parts.push(Part {
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
                out.parts.push(Part {
                    first: Lpn(first_page as u32),
                    pages: pages as u32,
                    first_slot: (at - first) as u32,
                });
            }
            at += pages;
        }
        if kind == Kind::Trim {
            out.pages = out.parts.iter().map(|part| part.pages).sum();
            if out.parts.is_empty() {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::part::part;
    use floatgate_core::rng::SplitMix64;

    /// The short way gives what the long way gives, or nothing, and both ways agree with what is asked for ahead.
    #[test]
    fn whole_pages_are_mapped_as_by_the_long_way() {
        let mut rng = SplitMix64::new(11);
        let mut short_ways = 0;
        for page_bytes in [4096, 18_432] {
            let mut part = part("mt29f16g08").expect("a preset").clone();
            part.page_bytes = page_bytes;
            let device = Device::one_die_a_channel(part, 2, 32, 64);
            for beyond in [Beyond::Error, Beyond::Wrap, Beyond::Compact] {
                let host = Host {
                    beyond,
                    ..Host::default()
                };
                let mut mapper = PageMapper::new(&device, &host);
                for _ in 0..3_000 {
                    let sectors = u64::from(page_bytes) / 512;
                    let unit = if rng.below(2) == 0 {
                        512
                    } else {
                        page_bytes.into()
                    };
                    let request = Request {
                        arrival_ns: 0,
                        op: [Op::Read, Op::Write, Op::Trim, Op::Flush][rng.below(4) as usize],
                        volume: 0,
                        offset: rng.below(70 * sectors * 512 / unit) * unit,
                        bytes: rng.below(6) * unit,
                    };
                    let short = mapper.whole_pages(&request);
                    let mut long = PageRequest::default();
                    let mapped = mapper.map(&request, &mut long);
                    if let Some((kind, first, pages)) = short {
                        short_ways += 1;
                        let part = Part {
                            first,
                            pages,
                            first_slot: 0,
                        };
                        assert_eq!((mapped, long.kind), (Ok(()), Some(kind)));
                        assert_eq!((&long.parts[..], long.pages), (&[part][..], pages));
                        assert!(!long.first_partial && !long.last_partial);
                        assert!(long.partial.is_none());
                    }
                    if let (Ok(()), Some(part)) = (mapped, long.parts.first())
                        && request.op != Op::Trim
                    {
                        assert_eq!(mapper.first_page(&request), Some(part.first));
                    }
                }
            }
        }
        assert!(short_ways > 500);
    }
}
