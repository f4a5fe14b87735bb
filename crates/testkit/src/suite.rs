//! The suite that every scheme passes, a user's own included: random requests against a shadow copy of
//! the bytes, on a flash that stores bytes.
//!
//! One case is one line of text, so a failure is replayed by giving that line back ([`Case::parse`]).

use crate::ram::RamFlash;
use floatgate_core::Refusal;
use floatgate_core::address::{LogicalPage, Lpn};
use floatgate_core::flash::start_content;
use floatgate_core::ftl::{Ftl, MountError, Run, Start, Tick};
use floatgate_core::geometry::{Geometry, ProgramOrder, Space};
use floatgate_core::options::{Options, Value};
use floatgate_core::report::{FlashCounters, HostCounters, Observation, SchemeCounters};
use floatgate_core::rng::SplitMix64;

/// Bytes of a page in the suite: enough to tell pages and their versions apart.
const PAGE_BYTES: usize = 16;

/// One run of the suite.
#[derive(Clone, Debug, PartialEq)]
pub struct Case {
    /// Dies.
    pub dies: u32,
    /// Blocks a die.
    pub blocks: u32,
    /// Pages a block.
    pub pages: u32,
    /// Logical pages of the device.
    pub logical_pages: u32,
    /// Program order.
    pub order: ProgramOrder,
    /// Start state.
    pub start: Start,
    /// Requests.
    pub requests: u32,
    /// Seed of the requests.
    pub seed: u64,
    /// Options by name.
    pub options: Vec<(String, Value)>,
}

impl std::fmt::Display for Case {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "dies={} blocks={} pages={} logical_pages={} order={} start={} requests={} seed={}",
            self.dies,
            self.blocks,
            self.pages,
            self.logical_pages,
            self.order.name(),
            self.start.name(),
            self.requests,
            self.seed
        )?;
        for (key, value) in &self.options {
            match value {
                Value::Text(word) => write!(f, " {key}={word}")?,
                value => write!(f, " {key}={value}")?,
            }
        }
        Ok(())
    }
}

impl Case {
    /// A small device: start full, ascending order, a few hundred requests.
    pub fn small(dies: u32, blocks: u32, pages: u32, logical_blocks_per_die: u32) -> Self {
        Self {
            dies,
            blocks,
            pages,
            logical_pages: dies * pages * logical_blocks_per_die,
            order: ProgramOrder::Ascending,
            start: Start::Full,
            requests: 400,
            seed: 1,
            options: Vec::new(),
        }
    }

    /// Data blocks of one die when every logical page has been written.
    pub fn data_blocks(&self) -> u32 {
        self.logical_pages / self.pages / self.dies
    }

    /// The same with an option set.
    #[must_use]
    pub fn with(mut self, key: &str, value: impl ToString) -> Self {
        self.options
            .push((key.into(), Value::from_word(&value.to_string())));
        self
    }

    /// Reads a case from the line that a failure printed.
    ///
    /// # Errors
    /// Names the word it cannot read.
    pub fn parse(line: &str) -> Result<Self, String> {
        let mut case = Self::small(1, 8, 4, 4);
        for word in line.split_whitespace() {
            let (key, value) = word
                .split_once('=')
                .ok_or(format!("{word}: not of the form key=value"))?;
            let number = || {
                value
                    .parse::<u64>()
                    .map_err(|_| format!("{word}: not a number"))
            };
            match key {
                "dies" => case.dies = number()? as u32,
                "blocks" => case.blocks = number()? as u32,
                "pages" => case.pages = number()? as u32,
                "logical_pages" => case.logical_pages = number()? as u32,
                "requests" => case.requests = number()? as u32,
                "seed" => case.seed = number()?,
                "order" => {
                    case.order =
                        ProgramOrder::from_name(value).ok_or(format!("{word}: no such order"))?
                }
                "start" => {
                    case.start = Start::from_name(value).ok_or(format!("{word}: no such state"))?
                }
                _ => case.options.push((key.into(), Value::from_word(value))),
            }
        }
        Ok(case)
    }

    /// The shape of its device.
    ///
    /// # Errors
    /// The refusal of the shape.
    pub fn geometry(&self) -> Result<Geometry, Refusal> {
        let pages = self.logical_pages.into();
        Geometry::new(self.dies, self.blocks, self.pages, pages, self.order)
    }

    /// The options of a scheme with this case's values set.
    ///
    /// # Errors
    /// If the scheme does not take one of them.
    pub fn options_of<S: Ftl>(&self) -> Result<S::Options, Refusal> {
        let mut options = S::Options::default();
        for (key, value) in &self.options {
            options.set(key, value)?;
        }
        Ok(options)
    }
}

/// A scheme on a flash in memory with its shadow copy: the harness of tests and worked examples.
#[derive(Debug)]
pub struct Bench<S> {
    /// The scheme.
    pub ftl: S,
    /// Its flash.
    pub flash: RamFlash,
    /// Pages of the host's requests so far.
    pub host: HostCounters,
    shadow: Vec<Option<Vec<u8>>>,
    version: u32,
    last_arrival_ns: Option<u64>,
    /// Whether every request is followed by a check of the tables.
    pub audit_each: bool,
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
    /// nanoseconds behind it if that matters; several separated by commas.
    ///
    /// # Panics
    /// On anything else, and on a failed check: this is for tests.
    pub fn play(&mut self, requests: &str) -> &mut Self {
        for request in requests.split(',') {
            let words: Vec<&str> = request.split_whitespace().collect();
            let number = |i: usize| words[i].parse().expect("a number");
            let (first, pages) = (number(1), number(2));
            if let Some(word) = words.get(3) {
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
}

/// Runs one case: random requests of several shapes, bytes compared, tables and laws checked.
///
/// # Errors
/// What failed, at which request.
pub fn run<S: Ftl>(case: &Case) -> Result<(), String> {
    run_checked::<S>(case, 16)
}

/// The same with the tables checked after every `check_every`-th request.
///
/// # Errors
/// What failed, at which request.
pub fn run_checked<S: Ftl>(case: &Case, check_every: u32) -> Result<(), String> {
    let mut bench = Bench::<S>::new(case).map_err(|refusal| format!("refused: {refusal}"))?;
    let mut rng = SplitMix64::new(case.seed);
    let pages = case.logical_pages;
    let (mut sequential, mut now) = (0, 0);
    let mut pauses = SplitMix64::new(!case.seed);
    for request in 0..case.requests {
        bench.audit_each = request % check_every == 0;
        let (first, n) = match rng.below(10) {
            0 => {
                // A sequential stream.
                let n = 1 + rng.below(u64::from(case.pages)) as u32;
                let first = sequential % pages;
                sequential = first + n.min(pages - first);
                (first, n)
            }
            1 => (
                rng.below(u64::from(pages)) as u32,
                1 + rng.below(u64::from(3 * case.pages * case.dies)) as u32,
            ),
            2 => {
                // A whole logical block and what follows.
                let block = case.pages * case.dies;
                (rng.below(u64::from(pages / block)) as u32 * block, block)
            }
            3..6 => (rng.below(u64::from(pages)) as u32, 1 + rng.below(3) as u32),
            // A hot eighth of the space.
            _ => (rng.below(u64::from((pages / 8).max(1))) as u32, 1),
        };
        let n = n.min(pages - first);
        // Idle times of all lengths, most of them short; a second now and then, for schemes with timers.
        let longest = 200_000_000 >> pauses.below(4);
        now += if pauses.below(4) == 0 {
            1_000_000_000
        } else {
            pauses.below(longest)
        };
        bench
            .arrive(now)
            .map_err(|error| format!("before request {request}: {error}"))?;
        let outcome = match rng.below(20) {
            0 | 1 => bench.trim(first, n),
            2..6 => bench.read(first, n),
            _ => bench.write(first, n),
        };
        outcome.map_err(|error| format!("request {request} ({first} +{n}): {error}"))?;
    }
    bench.audit()?;
    bench.read_all()?;
    let Ok(()) = bench.ftl.shutdown(&mut bench.flash);
    bench.audit()?;
    bench.write(0, 1)?;
    bench.read_all()?;
    bench.audit()
}

/// Geometries that every scheme is tried on; `log_blocks` and the like are up to the scheme.
pub fn cases() -> Vec<Case> {
    let shapes = [
        (1, 16, 4, 6),
        (1, 24, 8, 12),
        (2, 20, 4, 8),
        (3, 20, 5, 7),
        (4, 24, 8, 10),
        (1, 20, 1, 8),
        (1, 24, 6, 12),
    ];
    let mut cases = Vec::new();
    for (i, (dies, blocks, pages, logical)) in shapes.into_iter().enumerate() {
        for start in [Start::Empty, Start::Full] {
            for order in [ProgramOrder::Ascending, ProgramOrder::Any] {
                let seed = 100 + cases.len() as u64;
                cases.push(Case {
                    start,
                    order,
                    seed,
                    requests: 300 + 100 * (i as u32 % 3),
                    ..Case::small(dies, blocks, pages, logical)
                });
            }
        }
    }
    cases
}

/// A small device of random shape for stress tests, with `blocks` still to be chosen by what the scheme
/// needs beyond its [data blocks](Case::data_blocks).
pub fn random_shape(rng: &mut SplitMix64) -> Case {
    let dies = 1 + rng.below(3) as u32;
    let pages = [1, 2, 3, 4, 5, 8, 16][rng.below(7) as usize];
    let logical_blocks = 1 + rng.below(12) as u32;
    Case {
        order: [ProgramOrder::Ascending, ProgramOrder::Any][rng.below(2) as usize],
        start: [Start::Empty, Start::Full][rng.below(2) as usize],
        requests: 40 + rng.below(160) as u32,
        seed: rng.next(),
        ..Case::small(dies, 0, pages, logical_blocks)
    }
}

/// A random request as [`Bench::play`] takes it: mostly writes of a few pages.
pub fn random_request(rng: &mut SplitMix64, logical_pages: u32) -> String {
    let first = rng.below(logical_pages.into()) as u32;
    let n = (1 + rng.below(6) as u32).min(logical_pages - first);
    let op = ["W", "W", "W", "W", "W", "R", "T"][rng.below(7) as usize];
    format!("{op} {first} {n}")
}

/// Gives a case a random map area for a block map of `entries` entries a die, and the blocks for it.
#[must_use]
pub fn with_random_map(rng: &mut SplitMix64, mut case: Case, entries: u32) -> Case {
    let per_page = 1 + rng.below(entries.into()) as u32;
    let pages = entries.div_ceil(per_page) + 1;
    let map_blocks = 1 + pages.div_ceil(case.pages) + rng.below(2) as u32;
    case.blocks += map_blocks;
    case.with("map_blocks", map_blocks)
        .with("map_entries_per_page", per_page)
}

impl<S: Ftl> Bench<S> {
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
