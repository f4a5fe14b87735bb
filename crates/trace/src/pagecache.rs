//! A page cache between the host and the device: it absorbs writes to pages that are dirty already, and writes dirty
//! pages back in chunks, in ascending order from where it stopped (docs/spec/workload-analysis.md, section 7).

use std::collections::{BTreeSet, VecDeque};
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::error::{Fault, Position, Stop, TraceError};
use crate::formats::{Decoder, Parsed};
use crate::reader::Parts;
use crate::volumes::Volumes;
use crate::{Op, OpenOptions, Reader, Request};

/// Whose pages a length counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Count {
    /// Those that reach the device: what is dirty at the end stays in the cache.
    Flash,
    /// Those that the host writes: what is dirty at the end is written back.
    Host,
}

/// The size and the habits of a page cache.
///
/// ```
/// use floatgate_trace::PageCache;
///
/// let cache: PageCache = "dirty_pages=1000,chunk=100".parse()?;
/// assert_eq!((cache.dirty_pages, cache.chunk, cache.page_bytes), (1000, 100, 4096));
/// # Ok::<(), String>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageCache {
    /// Dirty pages at which it begins to write back.
    pub dirty_pages: u64,
    /// Pages that it then writes back.
    pub chunk: u64,
    /// Whose pages a length counts.
    pub count: Count,
    /// Bytes of a page.
    pub page_bytes: u32,
}

impl Default for PageCache {
    /// Linux with 220 MB of memory for pages of 2 KiB: a fifth may be dirty, 4 MiB are written back at a time.
    fn default() -> Self {
        Self {
            dirty_pages: 22_528,
            chunk: 2048,
            count: Count::Flash,
            page_bytes: 4096,
        }
    }
}

impl FromStr for PageCache {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut cache = Self::default();
        for pair in text
            .split(',')
            .map(str::trim)
            .filter(|pair| !pair.is_empty())
        {
            let (key, value) = pair
                .split_once('=')
                .map_or((pair, ""), |(key, value)| (key.trim(), value.trim()));
            let number = |max: u64| {
                let number = crate::parse::number(value.replace('_', "").as_bytes());
                number
                    .filter(|number| (1..=max).contains(number))
                    .ok_or_else(|| {
                        format!(
                            "page cache, {key}: '{value}' is not a whole number from 1 to {max}"
                        )
                    })
            };
            match key {
                "dirty_pages" => cache.dirty_pages = number(1 << 32)?,
                "chunk" => cache.chunk = number(1 << 32)?,
                "page_bytes" => match number(1 << 24)? {
                    bytes @ 512.. => cache.page_bytes = bytes as u32,
                    _ => {
                        return Err(format!(
                            "page cache, page_bytes: '{value}' is less than 512"
                        ));
                    }
                },
                "count" => {
                    cache.count = match value {
                        "flash" => Count::Flash,
                        "host" => Count::Host,
                        _ => {
                            return Err(format!(
                                "page cache, count: '{value}' is not flash or host"
                            ));
                        }
                    }
                }
                _ => {
                    return Err(format!(
                        "page cache: no key '{key}'; it takes dirty_pages, chunk, count and page_bytes, as in \
                         dirty_pages=22528,chunk=2048,count=flash,page_bytes=2048"
                    ));
                }
            }
        }
        Ok(cache)
    }
}

/// A page of a volume.
type Page = (u32, u64);

/// A page cache at work: requests go in, those that reach the device come out.
#[derive(Debug)]
pub struct Filter {
    cache: PageCache,
    dirty: BTreeSet<Page>,
    /// Where writing back goes on.
    cursor: Page,
    out: VecDeque<Request>,
    last_ns: u64,
}

impl Filter {
    /// An empty cache.
    pub fn new(cache: PageCache) -> Self {
        Self {
            cache,
            dirty: BTreeSet::new(),
            cursor: (0, 0),
            out: VecDeque::new(),
            last_ns: 0,
        }
    }

    /// Dirty pages at present.
    pub fn dirty(&self) -> u64 {
        self.dirty.len() as u64
    }

    /// The next request that reaches the device, if there is one by now.
    pub fn pop(&mut self) -> Option<Request> {
        self.out.pop_front()
    }

    /// The host's next request.
    pub fn push(&mut self, request: &Request) {
        self.last_ns = request.arrival_ns;
        let volume = request.volume;
        let size = u64::from(self.cache.page_bytes);
        let pages = request.offset / size..request.end().div_ceil(size);
        match request.op {
            Op::Write => {
                self.dirty.extend(pages.map(|page| (volume, page)));
                if self.dirty() >= self.cache.dirty_pages {
                    self.write_back(self.cache.chunk);
                }
            }
            // What is dirty as a whole is read from the cache.
            Op::Read
                if pages
                    .clone()
                    .all(|page| self.dirty.contains(&(volume, page))) => {}
            Op::Read => self.out.push_back(*request),
            Op::Trim | Op::WriteZeroes => {
                // What is gone need not be written; a page that is covered in part keeps the rest.
                let whole = request.offset.div_ceil(size)..request.end() / size;
                let gone: Vec<Page> = match whole.is_empty() {
                    true => Vec::new(),
                    false => self
                        .dirty
                        .range((volume, whole.start)..(volume, whole.end))
                        .copied()
                        .collect(),
                };
                for page in gone {
                    self.dirty.remove(&page);
                }
                self.out.push_back(*request);
            }
            Op::Flush => {
                self.write_back(u64::MAX);
                self.out.push_back(*request);
            }
        }
    }

    /// The end of what the host asks for.
    pub fn end(&mut self) {
        if self.cache.count == Count::Host {
            self.cursor = (0, 0);
            self.write_back(u64::MAX);
        }
    }

    /// Writes back so many pages, or as many as are dirty: from the cursor upward, then from the first.
    fn write_back(&mut self, pages: u64) {
        for _ in 0..pages {
            let next = self.dirty.range(self.cursor..).next();
            let Some(&page) = next.or(self.dirty.first()) else {
                return;
            };
            self.dirty.remove(&page);
            let (volume, number) = page;
            self.cursor = (volume, number + 1);
            let size = u64::from(self.cache.page_bytes);
            // The last page of the address space has a byte less than the others.
            let offset = number * size;
            self.out.push_back(Request {
                arrival_ns: self.last_ns,
                op: Op::Write,
                volume,
                stream: crate::Stream::NONE,
                offset,
                bytes: size.min(u64::MAX - offset),
            });
        }
    }
}

/// A trace as it leaves a page cache.
struct Cached {
    reader: Reader,
    filter: Filter,
    /// Records skipped by the reader and reported.
    skipped: u64,
    has_ended: bool,
    has_written: bool,
    progress: Arc<AtomicU64>,
}

impl Decoder for Cached {
    fn next(&mut self) -> Result<Option<Parsed>, Stop> {
        loop {
            if self.skipped < self.reader.counts().skipped {
                self.skipped += 1;
                return Ok(Some(Parsed::Skip));
            }
            if let Some(request) = self.filter.pop() {
                self.has_written = true;
                return Ok(Some(Parsed::One(request)));
            }
            if self.has_ended {
                let cache = &self.filter.cache;
                if self.has_written {
                    return Ok(None);
                }
                return Err(Fault::new(format!(
                    "no request reaches the device: all {} pages written stay in the page cache",
                    self.filter.dirty()
                ))
                .hint(format!(
                    "take dirty_pages below {}, or count=host",
                    cache.dirty_pages
                ))
                .into());
            }
            match self.reader.next() {
                Ok(Some(request)) => self.filter.push(&request),
                Ok(None) => {
                    self.has_ended = true;
                    self.filter.end();
                }
                Err(error) => return Err(Stop::Placed(Box::new(error))),
            }
            self.progress
                .store(self.reader.bytes_read(), Ordering::Relaxed);
        }
    }

    fn position(&self) -> Position {
        self.reader.position()
    }

    fn excerpt(&self) -> Option<String> {
        None
    }

    fn first_skipped(&self) -> Option<(Position, String)> {
        None
    }

    fn volumes(&self) -> &Volumes {
        self.reader.volumes()
    }
}

/// The trace behind a page cache, if there is one.
pub(crate) fn behind(reader: Reader, options: &OpenOptions) -> Result<Reader, TraceError> {
    let Some(cache) = options.pagecache else {
        return Ok(reader);
    };
    let count = Arc::new(AtomicU64::new(0));
    let parts = Parts {
        path: reader.path().to_owned(),
        format: reader.format(),
        compression: reader.compression(),
        count: Arc::clone(&count),
        total: reader.bytes_total(),
        decoder: Box::new(Cached {
            reader,
            filter: Filter::new(cache),
            skipped: 0,
            has_ended: false,
            has_written: false,
            progress: count,
        }),
    };
    // The volume was chosen, and times were made relative, before the cache.
    let mut cached = Reader::new(parts, &OpenOptions::default());
    cached.keep_times();
    Ok(cached)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generate::SplitMix64;
    use crate::open_merged_with;
    use crate::open_reader;

    fn request(op: Op, offset: u64, bytes: u64) -> Request {
        Request {
            arrival_ns: 0,
            op,
            volume: 0,
            stream: crate::Stream::NONE,
            offset,
            bytes,
        }
    }

    fn small(dirty_pages: u64, chunk: u64, count: Count) -> PageCache {
        PageCache {
            dirty_pages,
            chunk,
            count,
            page_bytes: 512,
        }
    }

    fn drain(filter: &mut Filter) -> Vec<(char, u64)> {
        let all = std::iter::from_fn(|| filter.pop());
        all.map(|r| (r.op.letter(), r.offset / 512)).collect()
    }

    #[test]
    fn writes_back_in_order_from_the_cursor() {
        let mut filter = Filter::new(small(4, 2, Count::Host));
        for page in [7, 3, 3, 9] {
            filter.push(&request(Op::Write, page * 512, 512));
        }
        assert_eq!((drain(&mut filter), filter.dirty()), (vec![], 3));
        // Two bytes across a border dirty both pages.
        filter.push(&request(Op::Write, 5 * 512 - 1, 2));
        assert_eq!(drain(&mut filter), [('W', 3), ('W', 4)]);
        filter.push(&request(Op::Write, 0, 512));
        assert_eq!(drain(&mut filter), [('W', 5), ('W', 7)]);
        filter.push(&request(Op::Write, 512, 512));
        filter.push(&request(Op::Write, 1024, 512));
        // On from page 8, and then from the first.
        assert_eq!(drain(&mut filter), [('W', 9), ('W', 0)]);
        filter.push(&request(Op::Read, 512, 1024));
        filter.push(&request(Op::Read, 512, 2048));
        assert_eq!(drain(&mut filter), [('R', 1)]);
        filter.push(&request(Op::Trim, 512 + 1, 1023));
        assert_eq!((drain(&mut filter), filter.dirty()), (vec![('T', 1)], 1));
        filter.push(&request(Op::Flush, 0, 0));
        assert_eq!(drain(&mut filter), [('W', 1), ('F', 0)]);
        filter.push(&request(Op::Write, 512, 512));
        filter.end();
        assert_eq!(drain(&mut filter), [('W', 1)]);
    }

    /// A page leaves as often as it became dirty and was not dirty at the end; nothing else leaves; the limit holds.
    #[test]
    fn no_page_is_lost_or_made_up() {
        for seed in 0..40 {
            let mut random = SplitMix64::new(seed);
            let (limit, chunk) = (1 + random.below(30), 1 + random.below(12));
            let count = if seed % 2 == 0 {
                Count::Host
            } else {
                Count::Flash
            };
            let mut filter = Filter::new(small(limit, chunk, count));
            let mut dirty = BTreeSet::new();
            let mut absorbed = 0u64;
            let (mut came, mut left) = (0u64, 0u64);
            let mut take = |filter: &mut Filter, dirty: &mut BTreeSet<u64>| {
                for (op, page) in drain(filter) {
                    assert_eq!(op, 'W');
                    assert!(dirty.remove(&page), "page {page} was not dirty");
                    left += 1;
                }
            };
            for _ in 0..500 {
                let (first, n) = (random.below(60), 1 + random.below(4));
                filter.push(&request(Op::Write, first * 512, n * 512));
                came += n;
                absorbed += (first..first + n)
                    .filter(|page| !dirty.insert(*page))
                    .count() as u64;
                let full = dirty.len() as u64 >= limit;
                let before = dirty.len() as u64;
                take(&mut filter, &mut dirty);
                let written = before - dirty.len() as u64;
                assert_eq!(written, if full { chunk.min(before) } else { 0 });
                assert_eq!(dirty.len() as u64, filter.dirty());
            }
            filter.end();
            take(&mut filter, &mut dirty);
            assert!(count == Count::Flash || dirty.is_empty(), "seed {seed}");
            assert_eq!(came, left + absorbed + filter.dirty());
        }
    }

    #[test]
    fn a_trace_behind_a_cache() {
        let open = |pagecache: &str, text: &'static [u8]| {
            let options = OpenOptions {
                pagecache: Some(pagecache.parse().unwrap()),
                ..OpenOptions::default()
            };
            let open = |_: &&str, options: &OpenOptions| open_reader("t", Box::new(text), options);
            let mut reader = open_merged_with(&["t"], &options, open).unwrap();
            let mut all = Vec::new();
            while let Some(request) = reader.next()? {
                all.push((request.offset / 4096, request.arrival_ns));
            }
            Ok::<_, TraceError>((all, reader.counts().accepted))
        };
        let text = b"W 4 2 5\nW 1 1 7\nW 4 1 8\nW 9 1 11\n";
        let (all, accepted) = open("dirty_pages=4,chunk=2", text).unwrap();
        assert_eq!((all, accepted), (vec![(1, 11), (4, 11)], 2));
        let (all, _) = open("dirty_pages=4,chunk=2,count=host", text).unwrap();
        assert_eq!(all, [(1, 11), (4, 11), (5, 11), (9, 11)]);
        let error = open("dirty_pages=5", text).unwrap_err().to_string();
        assert!(error.contains("all 4 pages"), "{error}");
    }

    #[test]
    fn bad_texts() {
        let error = |text: &str| text.parse::<PageCache>().unwrap_err();
        assert!(error("size=4").contains("no key 'size'"));
        assert!(error("chunk=0").contains("chunk: '0'"));
        assert!(error("count=both").contains("flash or host"));
        assert!(error("page_bytes=100").contains("512"));
        assert!(error("dirty_pages").contains("whole number"));
        assert_eq!("".parse(), Ok(PageCache::default()));
    }
}
