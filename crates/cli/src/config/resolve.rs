//! From settings to what the simulator takes.

use floatgate_catalog::Scheme;
use floatgate_core::buffer::Eviction;
use floatgate_core::options::{Setting, Value};
use floatgate_core::wear::{WEAR_GAP, WearLeveling};
use floatgate_core::{ProgramOrder, Refusal, Start};
use floatgate_sim::clock::{Allocation, Mode, Policy, Schedule, Suspend};
use floatgate_sim::config::{
    Arrivals, BACKLOG_LIMIT, Beyond, Buffer, Copyback, Device, EnergyBasis, Host, PartialWrite,
    Recipe, RunConfig, Slc, StreamBy, WhenFull,
};
use floatgate_sim::part::{PARTS, PageTimes, Part, part};

use super::Settings;
use super::load::suggest;
use crate::errors::{Outcome, Problem};

/// The part and shares of a run that says nothing about its device: SLC on many dies is fast enough that
/// page mapping keeps up with the bundled traces, and one die a channel is the papers' shape. The papers judge
/// their log-buffer schemes with logs of 3 to 33 % of the data blocks; a fifth is inside the range of all of them.
const DEFAULT_PART: &str = "slc_large_block";
const DEFAULT_SPARE_PERCENT: f64 = 25.0;
const DEFAULT_LOG_PERCENT: f64 = 20.0;
/// Log blocks a die below which log-buffer schemes only thrash.
const LOG_BLOCKS_A_DIE_MIN: u32 = 6;
const DEFAULT_QUEUE_DEPTH: u32 = 32;

/// A run but for its scheme. Dies, channels, logical pages and blocks stand when the device is sized.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The device.
    pub device: Device,
    /// The host.
    pub host: Host,
    /// Start state.
    pub start: Start,
    /// Ageing steps.
    pub ageing: Vec<Recipe>,
    /// Whether the trace decides the capacity.
    pub capacity_from_trace: bool,
    /// Whether the capacity may be rounded up to whole blocks on every die.
    pub capacity_may_grow: bool,
    /// Whether the capacity decides the dies.
    pub dies_from_capacity: bool,
    /// Whether the blocks follow from the capacity.
    pub blocks_from_share: bool,
    /// Spare blocks in percent of the data blocks.
    pub spare_percent: f64,
    /// Log blocks in percent of the data blocks.
    pub log_percent: f64,
    /// The schemes for which there are more spare blocks than that: they would have refused the device.
    pub grown_for: Vec<String>,
}

impl Plan {
    /// The plan that the settings ask for.
    ///
    /// # Errors
    /// Points at what does not fit together.
    pub fn of(settings: &Settings) -> Outcome<Self> {
        settings.check_no_flows()?;
        let settings = &settings.clone().with_preset();
        let part = part_of(settings)?;
        let dies = settings.small("device.dies").unwrap_or(1);
        let capacity_from_trace = settings.get("device.capacity").is_none()
            && settings.get("device.logical_pages").is_none();
        let logical_pages = match settings.whole("device.capacity") {
            Some(bytes) => bytes.div_ceil(part.page_bytes.into()).max(1),
            None => settings.whole("device.logical_pages").unwrap_or(0),
        };
        let order = settings
            .text("device.program_order")
            .unwrap_or(part.program_order);
        let device = Device {
            channels: settings.small("device.channels").unwrap_or(0),
            dies,
            allocation: settings
                .text("device.allocation")
                .and_then(Allocation::from_name)
                .unwrap_or_default(),
            package_dies: settings.small("device.dies_per_package").unwrap_or(1),
            blocks: settings.small("device.blocks_per_die").unwrap_or(0),
            logical_pages,
            read_retry: read_retry_of(settings)?,
            erases_before: settings.small("device.erases_before").unwrap_or(0),
            program_order: ProgramOrder::from_name(order).unwrap_or_default(),
            mode: match settings.text("device.mode") {
                Some("nocmd") => Mode::NoCmd,
                Some("flat") => Mode::Flat,
                _ => Mode::Onfi,
            },
            copyback: copyback_of(settings)?,
            cache_commands: settings.flag("device.cache_commands").unwrap_or(false),
            pcm_read_ns: settings.whole("device.pcm_read").unwrap_or(115),
            pcm_write_ns: settings.whole("device.pcm_write").unwrap_or(90_000),
            energy_basis: match settings.text("device.energy_basis") {
                Some("cell") => EnergyBasis::Cell,
                _ => EnergyBasis::CellAndTransfer,
            },
            wear_leveling: match settings.text("device.wear_leveling") {
                Some("dynamic") => WearLeveling::Dynamic,
                Some("static") => WearLeveling::Static,
                _ => WearLeveling::Off,
            },
            wear_gap: settings.small("device.wear_gap").unwrap_or(WEAR_GAP),
            schedule: schedule_of(settings)?,
            buffer: buffer_of(settings, part.page_bytes)?,
            slc: slc_of(settings),
            part,
        };
        let host = host_of(settings, capacity_from_trace);
        host.check()
            .map_err(|refusal| refused(settings, None, &refusal))?;
        Ok(Self {
            blocks_from_share: device.blocks == 0,
            device,
            host,
            start: settings
                .text("run.start")
                .and_then(Start::from_name)
                .unwrap_or(Start::Full),
            ageing: ageing_of(settings)?,
            capacity_from_trace,
            capacity_may_grow: settings.get("device.logical_pages").is_none(),
            dies_from_capacity: settings.get("device.dies").is_none(),
            spare_percent: settings
                .number("device.spare_percent")
                .unwrap_or(DEFAULT_SPARE_PERCENT),
            log_percent: settings
                .number("device.log_percent")
                .unwrap_or(DEFAULT_LOG_PERCENT),
            grown_for: Vec::new(),
        })
    }

    /// Data blocks of one die.
    pub fn data_blocks_per_die(&self) -> u64 {
        let unit = u64::from(self.device.dies) * u64::from(self.device.part.pages_per_block);
        self.device.logical_pages.div_ceil(unit)
    }

    /// Log blocks of one die for schemes that have them and whose number is not given.
    pub fn log_blocks_per_die(&self) -> u64 {
        self.log_share().max(LOG_BLOCKS_A_DIE_MIN.into())
    }

    fn log_share(&self) -> u64 {
        (self.data_blocks_per_die() as f64 * self.log_percent / 100.0).round() as u64
    }

    /// What the device has instead of what was asked for, in sentences.
    pub fn changes(&self, settings: &Settings) -> Vec<String> {
        let mut changes = Vec::new();
        let (device, data) = (&self.device, self.data_blocks_per_die());
        let percent = |blocks: u64| blocks as f64 / data.max(1) as f64 * 100.0;
        let spare = u64::from(device.blocks).saturating_sub(data);
        if !self.grown_for.is_empty() {
            changes.push(format!(
                "the spare blocks grew from {:.1} % to {:.1} % of the data blocks ({spare} a die), so that {} can run: all \
                 schemes have an easier time than with {:.1} %. More capacity a die or fewer log blocks (device.log_percent) \
                 need less; device.blocks_per_die fixes the number.",
                self.spare_percent,
                percent(spare),
                some_of(&self.grown_for),
                self.spare_percent,
            ));
        } else if self.blocks_from_share && percent(spare) > self.spare_percent * 1.1 {
            changes.push(format!(
                "{:.1} % spare blocks are {spare} a die, {:.1} % of its {data} data blocks: a die has whole blocks.",
                self.spare_percent,
                percent(spare),
            ));
        }
        if self.log_share() < LOG_BLOCKS_A_DIE_MIN.into() {
            changes.push(format!(
                "{} % log blocks would be {} a die; schemes with a log have {LOG_BLOCKS_A_DIE_MIN} a die, {:.1} % of the data \
                 blocks, because fewer only thrash. --set scheme.log_blocks=N sets them whatever they are.",
                self.log_percent,
                self.log_share(),
                percent(LOG_BLOCKS_A_DIE_MIN.into()),
            ));
        }
        let page_bytes = u64::from(device.part.page_bytes);
        if let Some(asked) = settings.whole("device.capacity")
            && asked.div_ceil(page_bytes) != device.logical_pages
        {
            changes.push(format!(
                "the capacity is {} pages ({}) instead of {}: whole blocks on every die.",
                crate::table::count(device.logical_pages),
                crate::table::bytes((device.logical_pages * page_bytes) as f64),
                crate::table::count(asked.div_ceil(page_bytes)),
            ));
        }
        changes
    }

    /// The run of one scheme: its options as given, and the log blocks from the device if it has
    /// that option and none was given.
    pub fn run_of(&self, scheme: &Scheme, settings: &Settings) -> RunConfig {
        let mut options = settings.options_of(scheme);
        if let Some(log_blocks) = scheme.info.filled_from(Setting::LogBlocks)
            && !options.iter().any(|(key, _)| key == log_blocks.key)
        {
            let blocks = self.log_blocks_per_die() * u64::from(self.device.dies);
            options.push((log_blocks.key.into(), Value::Int(blocks as i64)));
        }
        RunConfig {
            device: self.device.clone(),
            start: self.start,
            ageing: self.ageing.clone(),
            host: self.host.clone(),
            scheme: scheme.info.key.to_string(),
            options,
        }
    }

    /// One line about the device.
    pub fn describe(&self) -> String {
        let device = &self.device;
        let data = self.data_blocks_per_die();
        let logical = device.logical_pages as f64 * f64::from(device.part.page_bytes);
        format!(
            "{}, {} {} on {} {}, {} logical, {} blocks a die of which {} spare ({:.1} %), {} pages of {} a block, {} log blocks a die where a scheme has them, start {}",
            device.part.name,
            device.dies,
            if device.dies == 1 { "die" } else { "dies" },
            device.channels,
            if device.channels == 1 {
                "channel"
            } else {
                "channels"
            },
            crate::table::bytes(logical),
            device.blocks,
            u64::from(device.blocks).saturating_sub(data),
            (f64::from(device.blocks) / data.max(1) as f64 - 1.0) * 100.0,
            device.part.pages_per_block,
            crate::table::bytes(device.part.page_bytes.into()),
            self.log_blocks_per_die(),
            self.start.name(),
        )
    }
}

/// Names, the first few if they are many.
fn some_of(names: &[String]) -> String {
    match names {
        [first, second, third, _, rest @ ..] if !rest.is_empty() => {
            format!("{first}, {second}, {third} and {} more", rest.len() + 1)
        }
        _ => names.join(", "),
    }
}

/// A refusal of the simulator or a scheme, pointing at the setting that it names.
pub fn refused(settings: &Settings, scheme: Option<&str>, refusal: &Refusal) -> Problem {
    let text = match scheme {
        Some(scheme) => format!("{scheme}: {}", refusal.message),
        None => refusal.message.clone(),
    };
    let problem = Problem::new(text);
    let Some(key) = &refusal.key else {
        return problem;
    };
    problem.at(&settings.place_of_refusal(scheme, key))
}

/// The preset with all overrides.
fn part_of(settings: &Settings) -> Outcome<Part> {
    let name = settings.text("device.part").unwrap_or(DEFAULT_PART);
    let Some(preset) = part(name) else {
        let known: Vec<&str> = PARTS.iter().map(|part| part.name).collect();
        let problem = Problem::new(format!("no part {name:?}; there are {}", known.join(", ")));
        return Err(suggest(
            problem.at(&settings.place("device.part")),
            name,
            &known,
        ));
    };
    let small =
        |key: &str, default: u32| settings.small(&format!("device.{key}")).unwrap_or(default);
    let whole =
        |key: &str, default: u64| settings.whole(&format!("device.{key}")).unwrap_or(default);
    let page_bytes = small("page_bytes", preset.page_bytes);
    let (t_r_ns, t_r_by_page_ns) =
        times_of(settings, "device.t_r", preset.t_r_ns, preset.t_r_by_page_ns);
    let of_preset = (preset.t_prog_ns, preset.t_prog_by_page_ns);
    let (t_prog_ns, t_prog_by_page_ns) =
        times_of(settings, "device.t_prog", of_preset.0, of_preset.1);
    // Times by page say that a page is programmed by itself.
    let one_shot = match t_prog_by_page_ns.as_slice() {
        [] => preset.one_shot,
        _ => 1,
    };
    // A part whose OOB read takes as long as a page read keeps it so.
    let t_r_oob_ns = if preset.t_r_oob_ns == preset.t_r_ns {
        t_r_ns
    } else {
        preset.t_r_oob_ns
    };
    let sub_page = preset.page_bytes / preset.sectors;
    let part = Part {
        page_bytes,
        oob_bytes: small("oob_bytes", preset.oob_bytes),
        sectors: small(
            "sectors",
            if page_bytes.is_multiple_of(sub_page) {
                page_bytes / sub_page
            } else {
                1
            },
        ),
        pages_per_block: small("pages_per_block", preset.pages_per_block),
        planes: small("planes", preset.planes),
        t_r_ns,
        t_r_by_page_ns,
        t_prog_ns,
        t_prog_by_page_ns,
        one_shot: small("one_shot", one_shot),
        t_bers_ns: whole("t_bers", preset.t_bers_ns),
        t_r_oob_ns: whole("t_r_oob", t_r_oob_ns),
        cycle_ns: whole("cycle", preset.cycle_ns),
        in_ps: whole("in_ps", preset.in_ps),
        out_ps: whole("out_ps", preset.out_ps),
        endurance: settings.small("device.endurance").or(preset.endurance),
        flash_ma: settings
            .number("device.flash_ma")
            .unwrap_or(preset.flash_ma),
        ..preset.clone()
    };
    if part.sectors > part.page_bytes || !part.page_bytes.is_multiple_of(part.sectors) {
        let text = format!(
            "{} sub-pages do not divide a page of {} bytes",
            part.sectors, part.page_bytes
        );
        return Err(Problem::new(text).at(&settings.place("device.sectors")));
    }
    match settings.flag("device.multi_plane") {
        Some(true) => together(part, settings),
        _ => Ok(part),
    }
}

/// A part whose planes do everything together: what they hold at one place is a page, or a block.
fn together(part: Part, settings: &Settings) -> Outcome<Part> {
    let planes = part.planes;
    let sizes = [part.page_bytes, part.oob_bytes, part.sectors].map(|of| of.checked_mul(planes));
    match sizes {
        _ if planes == 1 => {
            let text = "device.multi_plane: the part has one plane";
            Err(Problem::new(text)
                .at(&settings.place("device.multi_plane"))
                .help("give device.planes, or another part (floatgate parts)"))
        }
        [Some(page_bytes), Some(oob_bytes), Some(sectors)] if page_bytes <= 1 << 24 => Ok(Part {
            page_bytes,
            oob_bytes,
            sectors,
            planes: 1,
            together: planes,
            ..part
        }),
        _ => {
            let text = format!("a page of {planes} planes is larger than 16 MiB");
            Err(Problem::new(text).at(&settings.place("device.multi_plane")))
        }
    }
}

fn copyback_of(settings: &Settings) -> Outcome<Copyback> {
    let flag = |key| settings.flag(key).unwrap_or(false);
    match (flag("device.copyback"), flag("device.copyback_parity")) {
        (false, false) => Ok(Copyback::Off),
        (true, false) => Ok(Copyback::Plane),
        (true, true) => Ok(Copyback::Parity),
        (false, true) => {
            let text = "device.copyback_parity: no copy stays inside its die without device.copyback = true";
            Err(Problem::new(text)
                .at(&settings.place("device.copyback_parity"))
                .help("set both, or neither"))
        }
    }
}

/// The cell time that a key gives, by page where the key that goes on in `_by_page` does, or the preset: one time that stands
/// for all, and those by page.
fn times_of(settings: &Settings, key: &str, ns: u64, by_page: PageTimes) -> (u64, PageTimes) {
    let given = settings.numbers(&format!("{key}_by_page"));
    let given_ns: Vec<u64> = (given.into_iter())
        .map(|us| (us * 1000.0).round() as u64)
        .collect();
    let by_page = match settings.get(key) {
        Some(_) => PageTimes::NONE,
        None if given_ns.is_empty() => by_page,
        None => PageTimes::new(&given_ns).unwrap_or_default(),
    };
    let one = (by_page.mean_ns()).unwrap_or_else(|| settings.whole(key).unwrap_or(ns));
    (one, by_page)
}

/// Thresholds of read retries.
fn read_retry_of(settings: &Settings) -> Outcome<Vec<u32>> {
    let key = "device.read_retry";
    let numbers = settings.numbers(key);
    let is_whole = numbers.iter().all(|n| n.fract() == 0.0);
    if !is_whole || !numbers.is_sorted() {
        let text = format!("{key}: erases are whole numbers, and each is at least the one before");
        return Err(Problem::new(text).at(&settings.place(key)));
    }
    Ok(numbers.into_iter().map(|n| n as u32).collect())
}

fn buffer_of(settings: &Settings, page_bytes: u32) -> Outcome<Buffer> {
    let pages = |bytes: &str, pages: &str| -> Outcome<u32> {
        let Some(asked) = settings.whole(bytes) else {
            return Ok(settings.small(pages).unwrap_or(0));
        };
        let held = asked / u64::from(page_bytes);
        let fits = u32::try_from(held)
            .ok()
            .filter(|&held| held > 0 || asked == 0);
        fits.ok_or_else(|| {
            let text = format!("{bytes}: {asked} bytes are {held} pages of {page_bytes} bytes; at least one, less than 2^32");
            Problem::new(text).at(&settings.place(bytes))
        })
    };
    let default = Buffer::default();
    let small = |key: &str| settings.small(&format!("buffer.{key}")).unwrap_or(0);
    let flag = |key: &str| settings.flag(&format!("buffer.{key}")).unwrap_or(false);
    let eviction = settings.text("buffer.eviction");
    let buffer = Buffer {
        write_pages: pages("buffer.write", "buffer.write_pages")?,
        eviction: eviction.and_then(Eviction::from_name).unwrap_or_default(),
        block_pages: small("block_pages"),
        padding: flag("padding"),
        reserve_pages: small("reserve_pages"),
        idle_ns: settings.whole("buffer.idle").unwrap_or(0),
        write_out_at_end: flag("write_out_at_end"),
        protected: flag("protected"),
        read_pages: pages("buffer.read", "buffer.read_pages")?,
        prefetch_pages: small("prefetch_pages"),
        dram_ns_per_page: settings
            .whole("buffer.dram_ns_per_page")
            .unwrap_or(default.dram_ns_per_page),
    };
    let checked = buffer.check();
    checked.map_err(|refusal| refused(settings, None, &refusal))?;
    Ok(buffer)
}

fn slc_of(settings: &Settings) -> Slc {
    let default = Slc::default();
    let small = |key: &str, default| settings.small(&format!("slc.{key}")).unwrap_or(default);
    let whole = |key: &str, default| settings.whole(&format!("slc.{key}")).unwrap_or(default);
    let when_full = settings.text("slc.when_full");
    Slc {
        blocks: small("blocks", default.blocks),
        dynamic: settings.flag("slc.dynamic").unwrap_or(default.dynamic),
        bits: small("bits", default.bits),
        t_prog_ns: whole("t_prog", default.t_prog_ns),
        t_r_ns: whole("t_r", default.t_r_ns),
        fold_after_ns: whole("fold_after", default.fold_after_ns),
        when_full: when_full.and_then(WhenFull::from_name).unwrap_or_default(),
        low_blocks: small("low_blocks", default.low_blocks),
    }
}

fn host_of(settings: &Settings, capacity_from_trace: bool) -> Host {
    let closed = settings.text("host.arrivals") == Some("closed");
    Host {
        arrivals: if closed {
            Arrivals::Closed
        } else {
            Arrivals::Open
        },
        queue_depth: settings.small("host.queue_depth").unwrap_or(if closed {
            DEFAULT_QUEUE_DEPTH
        } else {
            0
        }),
        backlog_limit: settings
            .small("host.backlog_limit")
            .unwrap_or(BACKLOG_LIMIT),
        speed: settings.number("host.speed").unwrap_or(1.0),
        partial_write: match settings.text("host.partial_write") {
            Some("whole") => PartialWrite::Whole,
            _ => PartialWrite::Rmw,
        },
        write_zeroes_as_writes: settings.text("host.write_zeroes") == Some("write"),
        stream_by: match settings.text("host.stream_by") {
            Some("volume") => StreamBy::Volume,
            Some("region") => StreamBy::Region,
            Some("size") => StreamBy::Size,
            Some("process") => StreamBy::Process,
            _ => StreamBy::Trace,
        },
        beyond: match settings.text("host.beyond") {
            Some("wrap") => Beyond::Wrap,
            Some("compact") => Beyond::Compact,
            None if capacity_from_trace => Beyond::Compact,
            _ => Beyond::Error,
        },
        compact_region_pages: settings.small("host.compact_region_pages").unwrap_or(0),
    }
}

fn schedule_of(settings: &Settings) -> Outcome<Schedule> {
    let default = Schedule::default();
    let small = |key, default| settings.small(key).unwrap_or(default);
    let schedule = Schedule {
        policy: settings
            .text("schedule.policy")
            .and_then(Policy::from_name)
            .unwrap_or_default(),
        overtakes: small("schedule.overtakes", default.overtakes),
        suspend: settings
            .text("schedule.suspend")
            .and_then(Suspend::from_name)
            .unwrap_or_default(),
        suspend_ns: settings
            .whole("schedule.t_suspend")
            .unwrap_or(default.suspend_ns),
        resume_ns: settings
            .whole("schedule.t_resume")
            .unwrap_or(default.resume_ns),
        suspend_limit: small("schedule.suspend_limit", default.suspend_limit),
        gc_low: small("schedule.gc_low", default.gc_low),
        gc_high: small("schedule.gc_high", default.gc_high),
    };
    schedule
        .check()
        .map_err(|refusal| refused(settings, None, &refusal))?;
    Ok(schedule)
}

fn ageing_of(settings: &Settings) -> Outcome<Vec<Recipe>> {
    let mut steps = Vec::new();
    for (word, place) in settings.list("run.ageing") {
        steps.push(
            Recipe::parse(word)
                .map_err(|text| Problem::new(format!("run.ageing: {text}")).at(place))?,
        );
    }
    let warmup = settings.whole("run.warmup").unwrap_or(0);
    steps.extend((0..warmup).map(|_| Recipe::Replay));
    Ok(steps)
}
