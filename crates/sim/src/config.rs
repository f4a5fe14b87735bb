//! What a run is made of. Plain data: files and command lines are read elsewhere.

mod slc;

use floatgate_core::buffer::{Eviction, WriteBuffer};
use floatgate_core::options::Value;
use floatgate_core::pcm::PcmSetup;
use floatgate_core::read_cache::ReadCache;
use floatgate_core::wear::{WEAR_GAP, WearLeveling};
use floatgate_core::{Geometry, ProgramOrder, Refusal, Start};
use floatgate_trace::Request;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::clock::{Allocation, Machine, Mode, Schedule};
use crate::part::Part;
pub use slc::{Slc, WhenFull};

/// The modelled device.
#[derive(Clone, Debug, PartialEq)]
pub struct Device {
    /// The flash part, after any overrides.
    pub part: Part,
    /// Buses.
    pub channels: u32,
    /// Dies of all channels.
    pub dies: u32,
    /// Which channel a die is on.
    pub allocation: Allocation,
    /// Dies of a package, for an allocation that goes by packages.
    pub package_dies: u32,
    /// Blocks a die.
    pub blocks: u32,
    /// Logical pages of the device.
    pub logical_pages: u64,
    /// Erases of a block from which each of its page reads needs one more retry, going up.
    pub read_retry: Vec<u32>,
    /// Erases that each block is taken to have had before, as far as retries go.
    pub erases_before: u32,
    /// Program rule.
    pub program_order: ProgramOrder,
    /// What of an operation costs time.
    pub mode: Mode,
    /// Which copies stay inside the die.
    pub copyback: Copyback,
    /// Data crosses the bus while the cells of the die work (docs/chips.md).
    pub cache_commands: bool,
    /// Phase-change memory, read of an entry.
    pub pcm_read_ns: u64,
    /// Phase-change memory, write of an entry.
    pub pcm_write_ns: u64,
    /// Which times of an operation draw current.
    pub energy_basis: EnergyBasis,
    /// How erases are spread over the blocks of a die.
    pub wear_leveling: WearLeveling,
    /// Erases that static levelling lets the least erased block with content lag behind.
    pub wear_gap: u32,
    /// Which of the operations that wait for a die goes next.
    pub schedule: Schedule,
    /// Memory between host and scheme.
    pub buffer: Buffer,
    /// Flash blocks with one bit a cell that take writes in first.
    pub slc: Slc,
}

/// Memory between host and scheme: a write buffer, a read cache, or both (docs/buffer.md).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Buffer {
    /// Pages that the write buffer holds; 0: there is none.
    pub write_pages: u32,
    /// What is written out first.
    pub eviction: Eviction,
    /// Pages of a block of [`Eviction::Bplru`], and of the longest write to the scheme; 0: a logical block of every die.
    pub block_pages: u32,
    /// Whether a block that leaves under [`Eviction::Bplru`] is filled up with its other pages, read from the flash.
    pub padding: bool,
    /// Pages that are kept free: writing out begins when fewer are.
    pub reserve_pages: u32,
    /// After so long without a request in work everything is written out; 0: never.
    pub idle_ns: u64,
    /// Whether what is held is written out after the last request.
    pub write_out_at_end: bool,
    /// Whether the memory survives a power cut, so that a flush need not write anything out.
    pub protected: bool,
    /// Pages that the read cache holds; 0: there is none.
    pub read_pages: u32,
    /// Pages that are read ahead of a sequential stream; 0: none.
    pub prefetch_pages: u32,
    /// Time of a page from or to the memory.
    pub dram_ns_per_page: u64,
}

impl Default for Buffer {
    fn default() -> Self {
        Self {
            write_pages: 0,
            eviction: Eviction::Lru,
            block_pages: 0,
            padding: false,
            reserve_pages: 0,
            idle_ns: 0,
            write_out_at_end: false,
            protected: false,
            read_pages: 0,
            prefetch_pages: 0,
            // As SSDsim counts it for what its buffer answers.
            dram_ns_per_page: 1000,
        }
    }
}

impl Buffer {
    /// Whether there is any memory.
    pub fn is_on(&self) -> bool {
        self.write_pages > 0 || self.read_pages > 0
    }

    /// Pages of a block, on a device of that shape.
    pub fn block_pages(&self, geometry: &Geometry) -> u32 {
        match self.block_pages {
            0 => geometry.pages_of_a_block_a_die(),
            pages => pages,
        }
    }

    /// Time of so many pages from or to the memory.
    pub fn ns(&self, pages: u32) -> u64 {
        self.dram_ns_per_page.saturating_mul(pages.into())
    }

    /// Bytes that its tables take in a simulation.
    pub fn ram_bytes(&self, geometry: &Geometry) -> u64 {
        let (pages, block_pages) = (geometry.logical_pages, self.block_pages(geometry));
        let write = match self.write_pages {
            0 => 0,
            held => {
                WriteBuffer::ram_bytes(held, pages, self.eviction, block_pages)
                    + 16 * u64::from(held)
            }
        };
        let read = match self.read_pages {
            0 => 0,
            held => ReadCache::ram_bytes(held, pages) + 8 * u64::from(held),
        };
        write + read
    }

    /// Checks what does not depend on the device.
    ///
    /// # Errors
    /// Names the key at fault.
    pub fn check(&self) -> Result<(), Refusal> {
        let refuse = |key: &str, text: String| Err(Refusal::new(key, text));
        if self.reserve_pages > 0 && self.reserve_pages >= self.write_pages {
            return refuse(
                "reserve_pages",
                format!(
                    "reserve_pages = {}: less than the pages of the write buffer ({})",
                    self.reserve_pages, self.write_pages
                ),
            );
        }
        if self.padding && self.eviction != Eviction::Bplru {
            let text = "padding = true: only with eviction = \"bplru\", whose unit is a block";
            return refuse("padding", text.into());
        }
        if self.prefetch_pages > self.read_pages {
            return refuse(
                "prefetch_pages",
                format!(
                    "prefetch_pages = {}: no more than the pages of the read cache ({})",
                    self.prefetch_pages, self.read_pages
                ),
            );
        }
        Ok(())
    }
}

impl Device {
    /// A device of that part with one die a channel and everything else at its default: ascending program order,
    /// ONFI timing, no copy-back, HAT's phase-change memory, no wear levelling.
    pub fn one_die_a_channel(part: Part, dies: u32, blocks: u32, logical_pages: u64) -> Self {
        Self {
            part,
            channels: dies,
            dies,
            allocation: Allocation::default(),
            package_dies: 1,
            blocks,
            logical_pages,
            read_retry: Vec::new(),
            erases_before: 0,
            program_order: ProgramOrder::Ascending,
            mode: Mode::Onfi,
            copyback: Copyback::Off,
            cache_commands: false,
            pcm_read_ns: 115,
            pcm_write_ns: 90_000,
            energy_basis: EnergyBasis::default(),
            wear_leveling: WearLeveling::Off,
            wear_gap: WEAR_GAP,
            schedule: Schedule::default(),
            buffer: Buffer::default(),
            slc: Slc::default(),
        }
    }

    /// The checked geometry.
    ///
    /// # Errors
    /// Names the number at fault.
    pub fn geometry(&self) -> Result<Geometry, Refusal> {
        if self.channels == 0 || self.channels > self.dies {
            let text = format!(
                "channels = {}: 1 to the number of dies ({})",
                self.channels, self.dies
            );
            return Err(Refusal::new("channels", text));
        }
        self.check_packages()?;
        if self.cache_commands && !self.schedule.is_plain() {
            let text = "cache_commands: a die with a schedule takes one operation after the other; leave one of them out";
            return Err(Refusal::new("cache_commands", text.into()));
        }
        self.check_one_shot()?;
        self.slc.check(self)?;
        Geometry::new(
            self.dies,
            self.blocks,
            self.part.pages_per_block,
            self.logical_pages,
            self.program_order,
        )
    }

    /// Checks that packages are whole, and that each channel has one if dies are dealt by packages.
    fn check_packages(&self) -> Result<(), Refusal> {
        let (package_dies, dies) = (self.package_dies.max(1), self.dies);
        let refuse = |why: String| {
            let text = format!("dies_per_package = {package_dies}: {why}");
            Err(Refusal::new("dies_per_package", text))
        };
        match () {
            () if self.allocation != Allocation::PackageFirst => Ok(()),
            () if !dies.is_multiple_of(package_dies) => {
                refuse(format!("{dies} dies do not fill whole packages"))
            }
            () if dies / package_dies < self.channels => refuse(format!(
                "{} packages do not go round {} channels",
                dies / package_dies,
                self.channels
            )),
            () => Ok(()),
        }
    }

    /// Checks that word lines fill blocks, and that their pages can be programmed at once.
    fn check_one_shot(&self) -> Result<(), Refusal> {
        let (part, pages) = (&self.part, self.part.one_shot);
        let refuse = |why: String| {
            Err(Refusal::new(
                "one_shot",
                format!("one_shot = {pages}: {why}"),
            ))
        };
        match () {
            () if pages <= 1 => Ok(()),
            () if !part.pages_per_block.is_multiple_of(pages) => refuse(format!(
                "a block of {} pages does not end on a word line; pages_per_block must be a multiple of {pages}",
                part.pages_per_block
            )),
            () if self.program_order == ProgramOrder::Any => refuse(
                "word lines are programmed in ascending order; program_order is \"any\"".into(),
            ),
            () if !part.t_prog_by_page_ns.as_slice().is_empty() => refuse(
                "the pages of a word line take one time together, so t_prog_by_page says nothing"
                    .into(),
            ),
            () => Ok(()),
        }
    }

    /// The parameters of the clock.
    pub fn machine(&self) -> Machine {
        Machine {
            channels: self.channels,
            dies: self.dies,
            allocation: self.allocation,
            package_dies: self.package_dies,
            planes: self.part.planes,
            together: self.part.together,
            t_r_ns: self.part.t_r_ns,
            t_r_by_page_ns: self.part.t_r_by_page_ns.as_slice().to_vec(),
            read_retry: self.read_retry.clone(),
            erases_before: self.erases_before,
            t_prog_ns: self.part.t_prog_ns,
            t_prog_by_page_ns: self.part.t_prog_by_page_ns.as_slice().to_vec(),
            one_shot: self.part.one_shot,
            one_bit_ns: [self.slc.t_r_ns, self.slc.t_prog_ns],
            t_bers_ns: self.part.t_bers_ns,
            t_r_oob_ns: self.part.t_r_oob_ns,
            cycle_ns: self.part.cycle_ns,
            in_ps: self.part.in_ps,
            out_ps: self.part.out_ps,
            page_bytes: self.part.page_bytes,
            oob_bytes: self.part.oob_bytes,
            pcm_read_ns: self.pcm_read_ns,
            pcm_write_ns: self.pcm_write_ns,
            // A matter of the scheme's options.
            pcm: PcmSetup::default(),
            mode: self.mode,
            pages_per_block: self.part.pages_per_block,
            schedule: self.schedule,
            cache_commands: self.cache_commands,
        }
    }
}

/// Which copies a chip makes by itself, without the bus (docs/chips.md).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Copyback {
    /// None.
    #[default]
    Off,
    /// Those inside a plane.
    Plane,
    /// Those inside a plane, from even pages of a block to even ones and from odd to odd.
    Parity,
}

/// Which times of an operation draw current (docs/spec/timing.md, section 5).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum EnergyBasis {
    /// Cell time and data transfer.
    #[default]
    CellAndTransfer,
    /// Cell time only.
    Cell,
}

/// What a write that covers only part of a live page costs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum PartialWrite {
    /// Reads the page first.
    #[default]
    Rmw,
    /// Programs it as if it were whole.
    Whole,
}

/// What becomes of addresses past the end of the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Beyond {
    /// The run stops and names the line.
    #[default]
    Error,
    /// Page numbers modulo the device's pages.
    Wrap,
    /// Regions get places in the order of their first touch.
    Compact,
}

/// When requests are issued.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Arrivals {
    /// At their arrival times.
    #[default]
    Open,
    /// As soon as the queue has a place; arrival times mean nothing.
    Closed,
}

/// Which stream a write request belongs to, for schemes that place by streams.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum StreamBy {
    /// The one that the trace gives it.
    #[default]
    Trace,
    /// Its volume, numbered in the order of first appearance.
    Volume,
    /// The sixteenth of the address space, as long as the device, that it begins in.
    Region,
    /// The size of the request: 0 for a page, and one more for each time it doubles.
    Size,
    /// The process that made it, numbered in the order of first writes; whoever reads the trace gives it.
    Process,
}

/// Parts of the address space that [`StreamBy::Region`] tells apart.
const STREAM_REGIONS: u64 = 16;

impl StreamBy {
    /// The stream of a write on a device of so many bytes.
    pub fn of(self, request: &Request, page_bytes: u64, device_bytes: u64) -> Option<u32> {
        match self {
            Self::Trace | Self::Process => request.stream.number(),
            Self::Volume => Some(request.volume),
            Self::Region => {
                let part = device_bytes.div_ceil(STREAM_REGIONS).max(1);
                Some((request.offset / part % STREAM_REGIONS) as u32)
            }
            Self::Size => {
                let pages = request.bytes.div_ceil(page_bytes).max(1);
                Some(64 - (pages - 1).leading_zeros())
            }
        }
    }
}

/// How the host drives the device.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Host {
    /// The stream of a write.
    pub stream_by: StreamBy,
    /// Open or closed loop.
    pub arrivals: Arrivals,
    /// Most requests in flight; 0: no limit (open loop only).
    pub queue_depth: u32,
    /// A run ends with an error when so many requests wait that each has to be kept; 0: never.
    pub backlog_limit: u32,
    /// Arrival times are divided by this: 2 replays twice as fast.
    pub speed: f64,
    /// Partly written pages.
    pub partial_write: PartialWrite,
    /// Whether write-zeroes requests are writes (else trims).
    pub write_zeroes_as_writes: bool,
    /// Addresses past the end.
    pub beyond: Beyond,
    /// Pages of a region of `compact`; 0: 1 MiB worth.
    pub compact_region_pages: u32,
}

/// Requests in work at which a run ends unless told otherwise: about a gigabyte of them.
pub const BACKLOG_LIMIT: u32 = 1 << 22;

impl Default for Host {
    fn default() -> Self {
        Self {
            stream_by: StreamBy::Trace,
            arrivals: Arrivals::Open,
            queue_depth: 0,
            backlog_limit: BACKLOG_LIMIT,
            speed: 1.0,
            partial_write: PartialWrite::Rmw,
            write_zeroes_as_writes: false,
            beyond: Beyond::Error,
            compact_region_pages: 0,
        }
    }
}

impl Host {
    /// Checks what does not depend on the device.
    ///
    /// # Errors
    /// Names the key at fault.
    pub fn check(&self) -> Result<(), Refusal> {
        if !(self.speed.is_finite() && self.speed > 0.0) {
            return Err(Refusal::new(
                "speed",
                format!("speed = {}: a number above 0", self.speed),
            ));
        }
        if self.arrivals == Arrivals::Closed && self.queue_depth == 0 {
            let text = "queue_depth = 0: a closed loop needs at least 1";
            return Err(Refusal::new("queue_depth", text.into()));
        }
        Ok(())
    }

    /// Pages of a `compact` region for pages of that size.
    pub fn region_pages(&self, page_bytes: u32) -> u32 {
        match self.compact_region_pages {
            0 => ((1 << 20) / page_bytes).max(1),
            pages => pages,
        }
    }
}

/// One step of ageing before the measurement.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Recipe {
    /// Every logical page written once, in order.
    Fill,
    /// Uniform random single-page writes, as many as this share of the logical pages.
    Overwrite(f64),
    /// Uniform random single-page writes until the write amplification of one device write differs by
    /// less than 1 % from that of the one before (at most 30 device writes).
    Settle,
    /// The trace once.
    Replay,
}

impl Recipe {
    /// Reads `fill`, `overwrite:<share>`, `settle` or `replay`.
    ///
    /// # Errors
    /// Says what would be right.
    pub fn parse(word: &str) -> Result<Self, String> {
        match word {
            "fill" => Ok(Self::Fill),
            "settle" => Ok(Self::Settle),
            "replay" => Ok(Self::Replay),
            _ => {
                let share = word
                    .strip_prefix("overwrite:")
                    .and_then(|share| share.parse::<f64>().ok());
                match share.filter(|share| share.is_finite() && (0.0..=1000.0).contains(share)) {
                    Some(share) => Ok(Self::Overwrite(share)),
                    None => Err(format!(
                        "{word}: an ageing step is fill, overwrite:<share of the device, as 0.5>, settle or replay"
                    )),
                }
            }
        }
    }
}

impl std::fmt::Display for Recipe {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Fill => f.write_str("fill"),
            Self::Overwrite(share) => write!(f, "overwrite:{share}"),
            Self::Settle => f.write_str("settle"),
            Self::Replay => f.write_str("replay"),
        }
    }
}

/// Everything one run needs besides its trace.
#[derive(Clone, Debug, PartialEq)]
pub struct RunConfig {
    /// The device.
    pub device: Device,
    /// Its start state.
    pub start: Start,
    /// Ageing steps, in order.
    pub ageing: Vec<Recipe>,
    /// The host.
    pub host: Host,
    /// Name of the scheme.
    pub scheme: String,
    /// The scheme's options by name.
    pub options: Vec<(String, Value)>,
}
