//! The machine that a clock times: buses, dies and latencies
//! (docs/spec/timing.md, sections 1, 2 and 6).

use floatgate_core::pcm::{MAX_CHIPS, PcmSetup};
use floatgate_core::report::Cause;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::schedule::Schedule;

/// The latest instant that a clock tells apart, about 292 years. Whatever
/// would lie behind it (absurd latencies from a configuration) ends there.
pub const TIME_MAX_NS: u64 = (1 << 63) - 1;

/// The largest number of dies of a machine: what a token of
/// [`Events`](super::Events) has room for, the PCM chips included.
pub const MAX_DIES: u32 = (1 << 20) - MAX_CHIPS;

/// `a + b`, at most [`TIME_MAX_NS`]; both must be times themselves.
#[inline]
pub(crate) const fn add_ns(a: u64, b: u64) -> u64 {
    let sum = a.saturating_add(b);
    if sum > TIME_MAX_NS { TIME_MAX_NS } else { sum }
}

/// `a * b`, at most [`TIME_MAX_NS`].
pub(crate) const fn mul_ns(a: u64, b: u64) -> u64 {
    let product = a.saturating_mul(b);
    if product > TIME_MAX_NS {
        TIME_MAX_NS
    } else {
        product
    }
}

/// What of an operation costs time (docs/spec/timing.md, sections 1 and 6).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// Command and address cycles, transfers and cell times.
    #[default]
    Onfi,
    /// Command and address cycles cost nothing.
    NoCmd,
    /// Cell times only: every operation is one phase of its die.
    Flat,
}

/// Which channel a die is on (docs/chips.md). Schemes deal pages to dies by their numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Allocation {
    /// Dies with numbers in a row are on different channels.
    #[default]
    ChannelFirst,
    /// Dies with numbers in a row share a channel until it has all of its dies.
    DieFirst,
    /// Those of one package share a channel, the next package is on the next channel.
    PackageFirst,
}

impl Allocation {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::ChannelFirst, Self::DieFirst, Self::PackageFirst];
    /// By discriminant, as configurations call them.
    pub const NAMES: [&str; 3] = ["channel-first", "die-first", "package-first"];

    /// The one of that name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|one| one.name() == name)
    }

    /// As configurations call it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        Self::NAMES[self as usize]
    }
}

/// The kinds of operations (docs/spec/timing.md, section 2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OpKind {
    /// Page read: command, tR, data out.
    Read,
    /// Page program: command and data in, tPROG.
    Program,
    /// Block erase: command, tBERS.
    Erase,
    /// Read of the out-of-band bytes only.
    #[serde(rename = "oob")]
    OobRead,
    /// Page copy inside a die and plane: the data never cross the bus.
    CopyBack,
    /// Read of one map entry from the PCM device.
    #[serde(rename = "pcm_read")]
    PcmRead,
    /// Write of one map entry to the PCM device.
    #[serde(rename = "pcm_write")]
    PcmWrite,
}

impl OpKind {
    /// All kinds, in the order of their discriminants.
    pub const ALL: [Self; 7] = [
        Self::Read,
        Self::Program,
        Self::Erase,
        Self::OobRead,
        Self::CopyBack,
        Self::PcmRead,
        Self::PcmWrite,
    ];

    /// True of the operations of the PCM device, which name a chip of it and no die.
    #[inline]
    #[must_use]
    pub const fn is_pcm(self) -> bool {
        matches!(self, Self::PcmRead | Self::PcmWrite)
    }
}

/// How the cells of a page are read (docs/chips.md). The default: in `t_r_ns`, once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Sensing {
    /// Place of its time in `t_r_by_page_ns`, from 1; 0: `t_r_ns`.
    pub page_type: u8,
    /// How often it is read again.
    pub retries: u8,
}

impl Sensing {
    /// Of a page that the die holds in its registers, because its word line is not complete: no cell is read.
    pub const IN_REGISTER: Self = Self {
        page_type: u8::MAX,
        retries: 0,
    };
    /// Of a page in a block that is used with one bit a cell.
    pub const ONE_BIT: Self = Self {
        page_type: u8::MAX - 1,
        retries: 0,
    };
}

/// How the cells of a page are programmed (docs/chips.md).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Programming {
    /// In `t_prog_ns`.
    #[default]
    Usual,
    /// In the time at that place in `t_prog_by_page_ns`, from 0.
    OfPage(u8),
    /// With so many word lines at once, each in `t_prog_ns`; with none the page stays in the registers of the die.
    WordLines(u8),
    /// In a block that is used with one bit a cell.
    OneBit,
}

/// One operation as a scheme issues it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlashOp {
    /// What is done.
    pub kind: OpKind,
    /// Die, `0..dies`; of a PCM access its chip.
    pub die: u32,
    /// Planes that work together (`k`); 0 is read as 1.
    pub planes: u32,
    /// Bytes that a plane transfers (`n`); 0 = page and OOB. Only reads and
    /// programs look at it.
    pub bytes: u32,
    /// Why it is done. It costs no time; it is told.
    pub cause: Cause,
    /// The page it reads, programs, or copies to inside the die; the first of the block it erases; [`NO_PAGE`] if nobody
    /// says. Only a clock that [reorders](super::Clock::REORDERS) looks at it.
    pub page: u32,
    /// The page that a copy inside the die reads, likewise.
    pub from: u32,
    /// Of reads and copies inside the die.
    pub sensing: Sensing,
    /// Of programs and copies inside the die.
    pub programming: Programming,
}

/// In a [`FlashOp`]: no page is named.
pub const NO_PAGE: u32 = u32::MAX;

impl FlashOp {
    /// An operation of one plane with the ordinary transfer.
    #[inline]
    #[must_use]
    pub const fn new(kind: OpKind, die: u32) -> Self {
        Self {
            kind,
            die,
            planes: 1,
            bytes: 0,
            cause: Cause::Gc,
            page: NO_PAGE,
            from: NO_PAGE,
            sensing: Sensing {
                page_type: 0,
                retries: 0,
            },
            programming: Programming::Usual,
        }
    }

    /// The same on that page.
    #[inline]
    #[must_use]
    pub const fn on(self, page: u32) -> Self {
        Self { page, ..self }
    }

    /// The same for that cause.
    #[inline]
    #[must_use]
    pub const fn because(self, cause: Cause) -> Self {
        Self { cause, ..self }
    }

    /// True if the machine's table of ordinary durations holds it.
    #[inline]
    pub(crate) const fn is_ordinary(self) -> bool {
        let Sensing { page_type, retries } = self.sensing;
        let is_usual = matches!(self.programming, Programming::Usual);
        self.planes <= 1 && self.bytes == 0 && page_type == 0 && retries == 0 && is_usual
    }
}

/// The row of phases of an operation: bus, cell, bus, cell; 0 = no such phase
/// (docs/spec/timing.md, section 2: every operation fits this pattern).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Phases {
    /// First hold of the bus: command, address, data in. ns.
    pub bus_1_ns: u64,
    /// First cell time. ns.
    pub cell_1_ns: u64,
    /// Second hold of the bus: data out, or the second command of a
    /// copy-back. ns.
    pub bus_2_ns: u64,
    /// Second cell time: the program of a copy-back. ns.
    pub cell_2_ns: u64,
}

impl Phases {
    /// Time that the bus is held.
    #[must_use]
    pub const fn bus_ns(&self) -> u64 {
        add_ns(self.bus_1_ns, self.bus_2_ns)
    }

    /// Time that only the die is held.
    #[must_use]
    pub const fn cell_ns(&self) -> u64 {
        add_ns(self.cell_1_ns, self.cell_2_ns)
    }

    /// Duration of the operation when it never waits for the bus.
    #[must_use]
    pub const fn total_ns(&self) -> u64 {
        add_ns(self.bus_ns(), self.cell_ns())
    }
}

/// Parameters of docs/spec/timing.md, section 1.
///
/// The default is the part `ssdsim` (section 7) with one channel and one die.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct Machine {
    /// Buses.
    pub channels: u32,
    /// Dies of the whole machine.
    pub dies: u32,
    /// Which channel a die is on.
    #[serde(skip)]
    pub allocation: Allocation,
    /// Dies of a package, for an allocation that goes by packages.
    #[serde(skip)]
    pub package_dies: u32,
    /// Planes of a die.
    pub planes: u32,
    /// Planes behind each of them that do everything together, as one page or block (docs/chips.md): each takes command and
    /// address cycles of its own.
    #[serde(skip)]
    pub together: u32,
    /// Cell time of a page read.
    pub t_r_ns: u64,
    /// The same by page number in the block, modulo their number, where cells hold several bits; none: all alike.
    #[serde(skip)]
    pub t_r_by_page_ns: Vec<u64>,
    /// Erases of a block from which a read needs one more retry, going up.
    #[serde(skip)]
    pub read_retry: Vec<u32>,
    /// Erases that each block has had before, as far as retries go.
    #[serde(skip)]
    pub erases_before: u32,
    /// Cell time of a page program; with `one_shot` of that of a word line.
    pub t_prog_ns: u64,
    /// The same by page number in the block, modulo their number; none: all alike.
    #[serde(skip)]
    pub t_prog_by_page_ns: Vec<u64>,
    /// Pages of a word line that are programmed at once; 0 and 1: each by itself.
    #[serde(skip)]
    pub one_shot: u32,
    /// Cell times of a read and a program in blocks that are used with one bit a cell.
    #[serde(skip)]
    pub one_bit_ns: [u64; 2],
    /// Cell time of a block erase.
    pub t_bers_ns: u64,
    /// Cell time of an OOB-only read.
    pub t_r_oob_ns: u64,
    /// One command or address cycle.
    pub cycle_ns: u64,
    /// Picoseconds a byte into the die.
    pub in_ps: u64,
    /// Picoseconds a byte out of the die.
    pub out_ps: u64,
    /// Data bytes of a page.
    pub page_bytes: u32,
    /// Out-of-band bytes of a page.
    pub oob_bytes: u32,
    /// Access time of the PCM device, read.
    pub pcm_read_ns: u64,
    /// Access time of the PCM device, write.
    pub pcm_write_ns: u64,
    /// Chips of the PCM device, and which access goes first.
    #[serde(skip)]
    pub pcm: PcmSetup,
    /// What of an operation costs time.
    pub mode: Mode,
    /// Pages of a block.
    #[serde(skip)]
    pub pages_per_block: u32,
    /// Which operation goes next.
    #[serde(skip)]
    pub schedule: Schedule,
    /// Cache commands: a die takes in the data of a program, or gives out that of a read, while its cells are busy with the
    /// next (docs/chips.md). Only [`Events`](super::Events) knows them.
    #[serde(skip)]
    pub cache_commands: bool,
}

impl Default for Machine {
    fn default() -> Self {
        Self {
            channels: 1,
            dies: 1,
            allocation: Allocation::ChannelFirst,
            package_dies: 1,
            planes: 1,
            together: 1,
            t_r_ns: 20_000,
            t_r_by_page_ns: Vec::new(),
            read_retry: Vec::new(),
            erases_before: 0,
            t_prog_ns: 200_000,
            t_prog_by_page_ns: Vec::new(),
            one_shot: 1,
            one_bit_ns: [20_000, 200_000],
            t_bers_ns: 1_500_000,
            t_r_oob_ns: 20_000,
            cycle_ns: 25,
            in_ps: 25_000,
            out_ps: 25_000,
            page_bytes: 2048,
            oob_bytes: 64,
            pcm_read_ns: 115,
            pcm_write_ns: 90_000,
            pcm: PcmSetup::default(),
            mode: Mode::Onfi,
            pages_per_block: 64,
            schedule: Schedule::default(),
            cache_commands: false,
        }
    }
}

impl Machine {
    /// Checks what the engines rely on.
    ///
    /// # Errors
    /// A sentence for the user if there is no channel, no die, no plane, or
    /// more than [`MAX_DIES`] dies.
    pub fn validate(&self) -> Result<(), String> {
        if self.channels == 0 {
            return Err("a machine needs at least one channel".into());
        }
        if self.dies == 0 || self.dies > MAX_DIES {
            return Err(format!("dies must be 1 to {MAX_DIES}, not {}", self.dies));
        }
        if !(1..=MAX_CHIPS).contains(&self.pcm.chips) {
            return Err(format!(
                "PCM chips must be 1 to {MAX_CHIPS}, not {}",
                self.pcm.chips
            ));
        }
        if self.planes == 0 {
            return Err("a die needs at least one plane".into());
        }
        Ok(())
    }

    /// Channel of a die.
    #[inline]
    #[must_use]
    pub fn channel_of(&self, die: u32) -> u32 {
        let used = self.used_channels();
        match self.allocation {
            Allocation::ChannelFirst => die % used,
            Allocation::PackageFirst => die / self.package_dies.max(1) % used,
            // Where the channels do not divide the dies, none has two more than another.
            Allocation::DieFirst => {
                (u64::from(die) * u64::from(used) / u64::from(self.dies.max(1))) as u32
            }
        }
    }

    /// Channels that have a die. Nobody shall divide by zero before a machine is [checked](Self::validate).
    pub(crate) fn used_channels(&self) -> u32 {
        let dies = self.dies.max(1);
        let most = match self.allocation {
            Allocation::ChannelFirst | Allocation::DieFirst => dies,
            Allocation::PackageFirst => dies.div_ceil(self.package_dies.max(1)),
        };
        self.channels.clamp(1, most)
    }

    /// Bytes of an ordinary page transfer: page and OOB.
    #[must_use]
    pub const fn transfer_bytes(&self) -> u64 {
        self.page_bytes as u64 + self.oob_bytes as u64
    }

    /// Time to move `bytes` at `ps` picoseconds a byte: `ceil(n ps / 1000)` ns.
    #[must_use]
    pub const fn xfer(bytes: u64, ps: u64) -> u64 {
        match bytes.checked_mul(ps) {
            Some(total_ps) => total_ps.div_ceil(1000),
            // Rounding up once more is below notice at 584 years.
            None => {
                let ns = (bytes as u128 * ps as u128).div_ceil(1000);
                if ns > TIME_MAX_NS as u128 {
                    TIME_MAX_NS
                } else {
                    ns as u64
                }
            }
        }
    }

    /// The phases of an operation in the machine's mode.
    #[must_use]
    pub fn phases(&self, op: FlashOp) -> Phases {
        let bytes = match op.bytes {
            0 => self.transfer_bytes(),
            n => u64::from(n),
        };
        let cells = (op.sensing, op.programming);
        self.phases_of(op.kind, op.planes.max(1), bytes, cells)
    }

    /// As [`phases`](Self::phases), with the bytes a plane taken literally.
    #[must_use]
    pub fn phases_of(
        &self,
        kind: OpKind,
        planes: u32,
        bytes: u64,
        (sensing, programming): (Sensing, Programming),
    ) -> Phases {
        let planes = u64::from(planes);
        let full = Phases {
            bus_1_ns: self.first_bus_ns(kind, planes, bytes),
            cell_1_ns: match kind {
                OpKind::Program => self.program_ns(programming),
                kind => self.read_ns(kind, sensing),
            },
            bus_2_ns: self.second_bus_ns(kind, planes, bytes),
            cell_2_ns: match kind {
                OpKind::CopyBack => self.program_ns(programming),
                _ => 0,
            },
        };
        match self.mode {
            Mode::Onfi | Mode::NoCmd => full,
            Mode::Flat => Phases {
                cell_1_ns: full.cell_ns(),
                ..Phases::default()
            },
        }
    }

    /// Duration of an operation that never waits for the bus.
    #[must_use]
    pub fn duration_ns(&self, op: FlashOp) -> u64 {
        self.phases(op).total_ns()
    }

    /// Data on the bus alone, without command cycles and whatever the mode:
    /// the transfer part of the energy (docs/spec/timing.md, section 5). A copy-back and
    /// an erase move no data.
    #[must_use]
    pub fn data_ns(&self, op: FlashOp) -> u64 {
        let planes = u64::from(op.planes.max(1));
        let bytes = match op.bytes {
            0 => self.transfer_bytes(),
            n => u64::from(n),
        };
        match op.kind {
            OpKind::Read => Self::xfer(planes.saturating_mul(bytes), self.out_ps),
            OpKind::Program => Self::xfer(planes.saturating_mul(bytes), self.in_ps),
            OpKind::OobRead => {
                Self::xfer(planes.saturating_mul(self.oob_bytes.into()), self.out_ps)
            }
            OpKind::Erase | OpKind::CopyBack | OpKind::PcmRead | OpKind::PcmWrite => 0,
        }
    }

    /// `count` command and address cycles.
    const fn cycles_ns(&self, count: u64) -> u64 {
        match self.mode {
            Mode::Onfi => mul_ns(count, self.cycle_ns),
            Mode::NoCmd | Mode::Flat => 0,
        }
    }

    /// Cycles of one command on each of so many planes, and on those that go with them.
    const fn commands_ns(&self, cycles: u64, planes: u64) -> u64 {
        let together = if self.together == 0 {
            1
        } else {
            self.together as u64
        };
        self.cycles_ns(cycles.saturating_mul(planes).saturating_mul(together))
    }

    fn first_bus_ns(&self, kind: OpKind, planes: u64, bytes: u64) -> u64 {
        match kind {
            OpKind::Read | OpKind::OobRead | OpKind::CopyBack => self.commands_ns(7, planes),
            OpKind::Program => add_ns(
                self.commands_ns(7, planes),
                Self::xfer(planes.saturating_mul(bytes), self.in_ps),
            ),
            OpKind::Erase => self.commands_ns(5, planes),
            OpKind::PcmRead | OpKind::PcmWrite => 0,
        }
    }

    /// Command and address cycles of a read retry; they hold the die alone.
    pub(crate) const fn retry_cycles_ns(&self) -> u64 {
        self.cycles_ns(7)
    }

    /// Cell time of a program.
    pub(crate) fn program_ns(&self, programming: Programming) -> u64 {
        let ns = match programming {
            Programming::Usual => self.t_prog_ns,
            Programming::OfPage(place) => {
                let of_page = self.t_prog_by_page_ns.get(usize::from(place));
                of_page.copied().unwrap_or(self.t_prog_ns)
            }
            Programming::WordLines(lines) => self.t_prog_ns.saturating_mul(lines.into()),
            Programming::OneBit => self.one_bit_ns[1],
        };
        ns.min(TIME_MAX_NS)
    }

    fn sense_ns(&self, sensing: Sensing) -> u64 {
        let of_type = usize::from(sensing.page_type).checked_sub(1);
        let of_type = of_type.and_then(|place| self.t_r_by_page_ns.get(place));
        let once_ns = of_type.copied().unwrap_or(self.t_r_ns);
        let again_ns = add_ns(once_ns, self.retry_cycles_ns());
        add_ns(once_ns, mul_ns(again_ns, sensing.retries.into()))
    }

    /// First cell time of what is no program.
    pub(crate) fn read_ns(&self, kind: OpKind, sensing: Sensing) -> u64 {
        let ns = match kind {
            OpKind::Read | OpKind::OobRead | OpKind::CopyBack
                if sensing == Sensing::IN_REGISTER =>
            {
                0
            }
            OpKind::Read if sensing == Sensing::ONE_BIT => self.one_bit_ns[0],
            OpKind::Read | OpKind::CopyBack => self.sense_ns(sensing),
            OpKind::Program => 0,
            OpKind::Erase => self.t_bers_ns,
            OpKind::OobRead => self.t_r_oob_ns,
            OpKind::PcmRead => self.pcm_read_ns,
            OpKind::PcmWrite => self.pcm_write_ns,
        };
        ns.min(TIME_MAX_NS)
    }

    fn second_bus_ns(&self, kind: OpKind, planes: u64, bytes: u64) -> u64 {
        match kind {
            OpKind::Read => Self::xfer(planes.saturating_mul(bytes), self.out_ps),
            OpKind::OobRead => {
                Self::xfer(planes.saturating_mul(self.oob_bytes.into()), self.out_ps)
            }
            OpKind::CopyBack => self.commands_ns(7, planes),
            _ => 0,
        }
    }

    /// The phases of every kind's ordinary operation, indexed by the kind.
    #[must_use]
    pub(crate) fn ordinary_phases(&self) -> [Phases; 7] {
        OpKind::ALL.map(|kind| self.phases(FlashOp::new(kind, 0)))
    }
}
