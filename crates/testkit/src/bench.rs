//! A scheme on a flash in memory beside a shadow copy of its bytes.

use crate::case::Case;
use crate::catch::catch;
use crate::ram::RamFlash;
use floatgate_core::Refusal;
use floatgate_core::address::{LogicalPage, Lpn};
use floatgate_core::flash::start_content;
use floatgate_core::ftl::{Ftl, MountError, Run, Start, Tick};
use floatgate_core::geometry::Space;
use floatgate_core::report::{FlashCounters, HostCounters, Observation, SchemeCounters};
use floatgate_core::rng::SplitMix64;

/// Bytes of a page in the suite: enough to tell pages and their versions apart.
pub(crate) const PAGE_BYTES: usize = 16;

/// A scheme on a flash in memory with its shadow copy: the harness of tests and worked examples.
#[derive(Debug)]
pub struct Bench<S> {
    /// The scheme.
    pub ftl: S,
    /// Its flash.
    pub flash: RamFlash,
    /// Pages of the host's requests so far.
    pub host: HostCounters,
    /// What the host has written, by logical page; `None` where it reads zeroes.
    shadow: Vec<Option<Vec<u8>>>,
    version: u32,
    last_arrival_ns: Option<u64>,
    /// The stream of a write, by its first page.
    pub stream: fn(u32) -> Option<u32>,
    /// The stream that [`Bench::play`] was given for the next write.
    named: Option<u32>,
    /// Whether every request is followed by a check of the tables.
    pub audit_each: bool,
}

/// The stream of a write that begins with that page: a few numbers, too high ones and none among them.
pub(crate) fn stream_of(first: u32) -> Option<u32> {
    (!first.is_multiple_of(5)).then_some(first / 3 % 7)
}

impl<S: Ftl> Bench<S> {
    /// Makes the device.
    ///
    /// # Errors
    /// The refusal of geometry, options or scheme.
    pub fn new(case: &Case) -> Result<Self, Refusal> {
        let geometry = case.geometry()?;
        let mut flash = RamFlash::new(&geometry, PAGE_BYTES);
        let options = case.options_of::<S>()?;
        let made = S::format(&Space::whole(&geometry), &options, case.start, &mut flash);
        let ftl = made.map_err(|error| match error {
            MountError::Refused(refusal) => refusal,
            MountError::Flash(never) => match never {},
        })?;
        let initial =
            |lpn| (case.start == Start::Full).then(|| start_content(Lpn(lpn), PAGE_BYTES));
        let shadow = (0..case.logical_pages).map(initial).collect();
        let host = HostCounters::default();
        Ok(Self {
            ftl,
            flash,
            host,
            shadow,
            version: 0,
            last_arrival_ns: None,
            stream: |_| None,
            named: None,
            audit_each: false,
        })
    }

    /// Writes `pages` pages with fresh bytes.
    ///
    /// # Errors
    /// What the check after it found.
    pub fn write(&mut self, first: u32, pages: u32) -> Result<(), String> {
        let (shadow, version) = (&mut self.shadow, &mut self.version);
        for (i, bytes) in self.flash.new_request(pages).iter_mut().enumerate() {
            *version += 1;
            let lpn = first + i as u32;
            bytes[..4].copy_from_slice(&lpn.to_le_bytes());
            bytes[4..8].copy_from_slice(&version.to_le_bytes());
            shadow[lpn as usize] = Some(bytes.clone());
        }
        let stream = self.named.take().or_else(|| (self.stream)(first));
        self.ftl.stream(stream);
        let Ok(()) = self.ftl.write(
            &mut self.flash,
            &Run::whole(S::Page::from_number(first), pages),
        );
        self.host.page_writes += u64::from(pages);
        self.after_request()
    }

    /// Reads pages and compares their bytes with the shadow copy.
    ///
    /// # Errors
    /// The first page that differs.
    pub fn read(&mut self, first: u32, pages: u32) -> Result<(), String> {
        for bytes in self.flash.new_request(pages) {
            bytes.fill(0xEE);
        }
        let Ok(()) = self.ftl.read(
            &mut self.flash,
            &Run::whole(S::Page::from_number(first), pages),
        );
        self.host.page_reads += u64::from(pages);
        for (i, got) in self.flash.buffer().iter().enumerate() {
            let lpn = first as usize + i;
            let zeroes = vec![0; PAGE_BYTES];
            let expected = self.shadow[lpn].as_ref().unwrap_or(&zeroes);
            if got != expected {
                return Err(format!(
                    "page {lpn} reads {got:02x?}, written was {expected:02x?}"
                ));
            }
        }
        self.after_request()
    }

    /// Trims pages.
    ///
    /// # Errors
    /// What the check after it found.
    pub fn trim(&mut self, first: u32, pages: u32) -> Result<(), String> {
        self.flash.new_request(pages);
        let absent = self.flash.unwritten_reads;
        let Ok(()) = self.ftl.trim(
            &mut self.flash,
            &Run::whole(S::Page::from_number(first), pages),
        );
        self.flash.unwritten_reads = absent;
        self.host.page_trims += u64::from(pages);
        self.shadow[first as usize..(first + pages) as usize].fill(None);
        self.after_request()
    }

    /// The next request arrives at that time: the scheme gets the idle time since the arrival before it, if
    /// there was one, then hears of this one.
    ///
    /// # Errors
    /// What the check after it found.
    pub fn arrive(&mut self, at_ns: u64) -> Result<(), String> {
        let idle_ns = self.last_arrival_ns.replace(at_ns).map(|last| last..at_ns);
        let tick = Tick {
            now_ns: at_ns,
            idle_ns,
        };
        let Ok(()) = self.ftl.tick(&mut self.flash, &tick);
        self.after_request()
    }

    /// One request as the vectors write it: `W lpn n`, `R lpn n`, `T lpn n`, each with the time of its arrival in
    /// nanoseconds behind it if that matters, or the stream of a write, as in `W 0 3 s1`; several separated by commas.
    ///
    /// # Panics
    /// On anything else, and on a failed check: this is for tests.
    pub fn play(&mut self, requests: &str) -> &mut Self {
        for request in requests.split(',') {
            let words: Vec<&str> = request.split_whitespace().collect();
            let number = |i: usize| words[i].parse().expect("a number");
            let (first, pages) = (number(1), number(2));
            let word = words.get(3);
            if let Some(stream) = word.and_then(|word| word.strip_prefix('s')) {
                self.named = Some(stream.parse().expect("a stream"));
            } else if let Some(word) = word {
                self.arrive(word.parse().expect("a time"))
                    .unwrap_or_else(|error| panic!("{request}: {error}"));
            }
            match words[0] {
                "W" => self.write(first, pages),
                "R" => self.read(first, pages),
                "T" => self.trim(first, pages),
                other => panic!("no request {other}"),
            }
            .unwrap_or_else(|error| panic!("{request}: {error}"));
        }
        self
    }

    /// Flash counters so far.
    pub fn counters(&self) -> FlashCounters {
        self.flash.ledger.counters
    }

    /// Counters of the scheme.
    pub fn scheme(&self) -> SchemeCounters {
        self.ftl.counters()
    }

    /// An `extra` counter by name.
    ///
    /// # Panics
    /// If the scheme has none of that name.
    pub fn extra(&self, name: &str) -> u64 {
        let counters = self.scheme();
        let found = counters
            .extra
            .iter()
            .chain(&counters.own_merges)
            .find(|n| n.name == name);
        found.unwrap_or_else(|| panic!("no counter {name}")).value
    }

    fn after_request(&mut self) -> Result<(), String> {
        if self.audit_each {
            self.audit()
        } else {
            Ok(())
        }
    }

    /// Checks tables and conservation laws.
    ///
    /// # Errors
    /// What does not hold.
    pub fn audit(&self) -> Result<(), String> {
        let live = self.ftl.audit(&self.flash)?;
        let expected = self.shadow.iter().filter(|page| page.is_some()).count() as u64;
        if live != expected {
            return Err(format!(
                "{live} live pages, written and not trimmed are {expected}"
            ));
        }
        let c = self.counters();
        let unwritten = self.flash.unwritten_reads;
        let laws = [
            (
                "programs.host = page_writes",
                c.programs.host,
                self.host.page_writes,
            ),
            ("reads.gc = programs.gc", c.reads.gc, c.programs.gc),
            (
                "reads.host = page_reads - unwritten_reads",
                c.reads.host,
                self.host.page_reads - unwritten,
            ),
        ];
        for (law, left, right) in laws {
            if left != right {
                return Err(format!("{law} is broken: {left} and {right}"));
            }
        }
        Ok(())
    }

    /// Reads every page back.
    ///
    /// # Errors
    /// The first that differs.
    pub fn read_all(&mut self) -> Result<(), String> {
        (0..self.shadow.len() as u32).try_for_each(|lpn| self.read(lpn, 1))
    }

    /// The same with the tables checked after every request.
    ///
    /// # Panics
    /// If the scheme refuses the case: this is for tests.
    pub fn audited(case: &Case) -> Self {
        let mut bench = Self::new(case).unwrap_or_else(|refusal| panic!("{case}: {refusal}"));
        bench.audit_each = true;
        bench
    }

    /// Why the scheme refuses a case.
    ///
    /// # Panics
    /// If it does not: this is for tests.
    pub fn refusal(case: &Case) -> Refusal {
        let made = Self::new(case).map(|_| ());
        made.expect_err(&format!("{case} is not refused"))
    }

    /// The option that the scheme names when it refuses a case.
    ///
    /// # Panics
    /// If it does not refuse it, or names none: this is for tests.
    pub fn refused_key(case: &Case) -> String {
        Self::refusal(case).key.expect("a refusal names its option")
    }

    /// The momentary values by name.
    pub fn observed(&self) -> Vec<(&'static str, f64)> {
        let mut seen = Observation::default();
        self.ftl.observe(&mut seen);
        seen.values.iter().map(|v| (v.name, v.value)).collect()
    }
}

/// A random request as [`Bench::play`] takes it: mostly writes of a few pages.
pub fn random_request(rng: &mut SplitMix64, logical_pages: u32) -> String {
    let first = rng.below(logical_pages.into()) as u32;
    let n = (1 + rng.below(6) as u32).min(logical_pages - first);
    let op = ["W", "W", "W", "W", "W", "R", "T"][rng.below(7) as usize];
    format!("{op} {first} {n}")
}

/// Why a scheme refuses a case, if it does. A panic is no refusal: the run that follows tells of it.
pub fn refusal_of<S: Ftl>(case: &Case) -> Option<Refusal> {
    catch(|| Bench::<S>::new(case).err()).unwrap_or_default()
}
