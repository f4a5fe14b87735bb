//! A device that suits its trace: as large as what the trace touches, with enough spare blocks that every
//! scheme has its reserve, and so few that merges and garbage collection really happen.

use std::panic::{AssertUnwindSafe, catch_unwind};

use floatgate_catalog::Scheme;
use floatgate_core::Refusal;
use floatgate_sim::config::{Beyond, Host, RunConfig};
use floatgate_sim::run::RunError;
use floatgate_sim::span::Regions;
use floatgate_trace::Request;

use super::Settings;
use super::resolve::Plan;
use crate::errors::{Outcome, Problem};
use crate::memory;

/// Most dies of a device that does not say how many it has.
const DIES_MAX: u32 = 32;
/// Data blocks that each of them has at least: fewer are no good sample of a block's life.
const DATA_BLOCKS_A_DIE_MIN: u64 = 64;

/// Above this many pages the other schemes are not tried out only to find the common size.
const TRIAL_PAGES_MAX: u64 = 16 << 20;

/// A scheme, and the settings it is to run with: those of all, or some of its own.
pub type Named<'a> = (&'a Scheme, &'a Settings);

/// What of the address space a trace touches.
#[derive(Clone, Debug)]
pub struct Extent {
    /// With `compact` only regions count, and not where they lie.
    regions: Option<Regions>,
    end: u64,
}

impl Extent {
    /// Nothing touched yet, for a host and a page size.
    pub fn new(host: &Host, page_bytes: u32) -> Self {
        let region_bytes = u64::from(host.region_pages(page_bytes)) * u64::from(page_bytes);
        let compact = host.beyond == Beyond::Compact;
        Self {
            regions: compact.then(|| Regions::new(host, region_bytes)),
            end: 0,
        }
    }

    /// So many bytes.
    pub fn known(bytes: u64) -> Self {
        Self {
            regions: None,
            end: bytes,
        }
    }

    /// Takes a request.
    pub fn add(&mut self, request: &Request) {
        match &mut self.regions {
            Some(regions) => regions.add(request),
            // Trims are no reason for a larger device, but past its end they would stop a run.
            None => self.end = self.end.max(request.end()),
        }
    }

    /// Bytes that the device must have.
    pub fn bytes(&self) -> u64 {
        self.regions.as_ref().map_or(self.end, Regions::bytes)
    }
}

/// Gives the plan its capacity and its blocks. The same for every choice of schemes: all `schemes` are tried
/// on the device, so that a scheme run alone meets the device that it meets in a comparison. Beside them those
/// `named` that have options of their own.
///
/// # Errors
/// If the trace touches nothing that a device could be sized to.
pub fn size(
    plan: &mut Plan,
    settings: &Settings,
    extent: &Extent,
    schemes: &[Scheme],
    named: &[Named<'_>],
) -> Outcome<()> {
    capacity(plan, settings, extent.bytes())?;
    blocks(plan, settings, schemes, named)
}

/// Gives a plan that has its capacity its blocks.
///
/// # Errors
/// If the device does not fit into memory.
pub fn blocks(
    plan: &mut Plan,
    settings: &Settings,
    schemes: &[Scheme],
    named: &[Named<'_>],
) -> Outcome<()> {
    if plan.blocks_from_share {
        let data = plan.data_blocks_per_die();
        let share = (data as f64 * plan.spare_percent / 100.0).ceil() as u64;
        let least = share.max(1);
        plan.device.blocks = clip(data + least);
        let all = tried(plan, settings, schemes, named);
        let need = most_memory(plan, &all);
        memory::check(need, memory::available(), "the device")
            .map_err(|problem| log_blocks_to_blame(problem, plan, settings))?;
        let asked = plan.clone();
        grow(plan, &all, data, least);
        if plan.device.blocks > asked.device.blocks {
            plan.grown_for = refusing(&asked, &all);
        }
    }
    Ok(())
}

/// Bytes that the largest of these takes on the device of a plan.
fn most_memory(plan: &Plan, all: &[Named<'_>]) -> u64 {
    let bytes = |(scheme, settings): &Named<'_>| {
        let config = plan.run_of(scheme, settings);
        scheme.life.simulated.memory_bytes(&config).ok()
    };
    all.iter().filter_map(bytes).max().unwrap_or(0)
}

/// Where there is no memory because more log blocks were asked for than there is data, that is what is wrong.
fn log_blocks_to_blame(problem: Problem, plan: &Plan, settings: &Settings) -> Problem {
    let data = plan.data_blocks_per_die() * u64::from(plan.device.dies);
    match settings.most_log_blocks() {
        Some((blocks, place)) if blocks > data => problem.at(&place).help(format!(
            "fewer log blocks: the data of the whole device is {data} blocks"
        )),
        _ => problem,
    }
}

/// The schemes that do not take the device of a plan.
fn refusing(plan: &Plan, all: &[Named<'_>]) -> Vec<String> {
    let refuses = |(scheme, settings): &&Named<'_>| {
        let config = plan.run_of(scheme, settings);
        let checked = ask_check(scheme, &config).and_then(|()| try_out(scheme, &config));
        matches!(checked, Err(Failure::Refused(_)))
    };
    let refusing = all.iter().filter(refuses);
    let mut keys: Vec<String> = Vec::new();
    for key in refusing.map(|(scheme, _)| scheme.info.key) {
        if keys.iter().all(|known| known != key) {
            keys.push(key.into());
        }
    }
    keys
}

/// The schemes that have a say in the size.
pub fn tried<'a>(
    plan: &Plan,
    settings: &'a Settings,
    schemes: &'a [Scheme],
    named: &[Named<'a>],
) -> Vec<Named<'a>> {
    if plan.device.logical_pages > TRIAL_PAGES_MAX {
        return named.to_vec();
    }
    let of_all = schemes.iter().map(|scheme| (scheme, settings));
    let differs =
        |(scheme, own): &&Named<'a>| own.options_of(scheme) != settings.options_of(scheme);
    of_all
        .chain(named.iter().filter(differs).copied())
        .collect()
}

/// Bytes that the largest of the schemes to be tried will take on a device of this extent, as far as that is known
/// before the device is sized; nothing is changed.
///
/// # Errors
/// As [`size`].
pub fn estimate(
    plan: &Plan,
    settings: &Settings,
    extent: &Extent,
    schemes: &[Scheme],
    named: &[Named<'_>],
) -> Outcome<u64> {
    let mut plan = plan.clone();
    capacity(&mut plan, settings, extent.bytes())?;
    let all = tried(&plan, settings, schemes, named);
    if plan.blocks_from_share {
        let data = plan.data_blocks_per_die();
        let share = (data as f64 * plan.spare_percent / 100.0).ceil() as u64;
        plan.device.blocks = clip(data + share.max(1));
    }
    Ok(most_memory(&plan, &all))
}

/// Bytes of the device, if its capacity is given.
pub fn given_bytes(plan: &Plan, settings: &Settings) -> Option<u64> {
    if plan.capacity_from_trace {
        return None;
    }
    let mut plan = plan.clone();
    // What is wrong is told when the device is sized.
    capacity(&mut plan, settings, 0).ok()?;
    Some(plan.device.logical_pages * u64::from(plan.device.part.page_bytes))
}

/// Gives the plan its capacity, dies and channels, on a trace that needs so many bytes.
///
/// # Errors
/// If the channels are more than the dies, or the pages more than there can be.
pub fn capacity(plan: &mut Plan, settings: &Settings, trace_bytes: u64) -> Outcome<()> {
    let device = &mut plan.device;
    let pages_per_block = u64::from(device.part.pages_per_block);
    if plan.capacity_from_trace {
        device.logical_pages = trace_bytes.div_ceil(device.part.page_bytes.into()).max(1);
    }
    if plan.dies_from_capacity {
        let fits = |dies: u32| {
            let unit = u64::from(dies) * pages_per_block;
            device.logical_pages >= unit * DATA_BLOCKS_A_DIE_MIN
                && (plan.capacity_may_grow || device.logical_pages.is_multiple_of(unit))
        };
        // Without a size of its own a device has as many dies as it has channels at least.
        let least = device.channels.max(1);
        let halves = std::iter::successors(Some(DIES_MAX), |dies| Some(dies / 2))
            .take_while(|&dies| dies > 1);
        device.dies = halves
            .into_iter()
            .find(|&dies| fits(dies))
            .unwrap_or(1)
            .max(least);
    }
    if device.channels == 0 {
        device.channels = device.dies;
    }
    if device.channels > device.dies {
        let text = format!(
            "{} channels for {} dies: at most one channel a die",
            device.channels, device.dies
        );
        return Err(Problem::new(text).at(&settings.place("device.channels")));
    }
    if plan.capacity_may_grow {
        device.logical_pages = device
            .logical_pages
            .next_multiple_of(u64::from(device.dies) * pages_per_block);
    }
    let most = u64::from(u32::MAX - 1);
    if device.logical_pages > most {
        let text = format!(
            "a device of {} pages of {} bytes is needed; at most {most} are possible",
            device.logical_pages, device.part.page_bytes
        );
        let help = "larger pages (device.page_bytes), host.beyond = \"compact\", or a smaller device (device.capacity_gib) with host.beyond = \"wrap\"";
        return Err(Problem::new(text)
            .at(&settings.place("device.capacity"))
            .help(help));
    }
    Ok(())
}

fn clip(blocks: u64) -> u32 {
    u32::try_from(blocks).unwrap_or(u32::MAX)
}

/// Adds spare blocks until no scheme refuses; if some refuse whatever there is, the fewest blocks with which
/// the fewest refuse.
///
/// Schemes are asked for their checks first, which make nothing. Checks refuse nothing that a format would take; so if
/// as many refuse the size that is best by the checks when the device is really made, it is the best of all. Else a
/// scheme has said too little, and only making the device of every size tells.
fn grow(plan: &mut Plan, all: &[Named<'_>], data: u64, least: u64) {
    let refuses = |blocks: u32, ask: fn(&Scheme, &RunConfig) -> Result<(), Failure>| {
        let mut plan = plan.clone();
        plan.device.blocks = blocks;
        let refused = |(scheme, settings): &&Named<'_>| {
            matches!(
                ask(scheme, &plan.run_of(scheme, settings)),
                Err(Failure::Refused(_))
            )
        };
        all.iter().filter(refused).count()
    };
    let sizes = || {
        let most = least * 3 + 64;
        std::iter::successors(Some(least), |spare| Some(spare + 1 + spare / 16))
            .take_while(move |&spare| spare <= most)
            .map(move |spare| clip(data + spare))
    };
    let (mut blocks, refusing) = best(sizes(), |blocks| refuses(blocks, ask_check));
    if refuses(blocks, try_out) != refusing {
        (blocks, _) = best(sizes(), |blocks| refuses(blocks, try_out));
    }
    plan.device.blocks = blocks;
}

/// The first size that the fewest refuse, and how many that are.
fn best(sizes: impl Iterator<Item = u32>, refusing: impl Fn(u32) -> usize) -> (u32, usize) {
    let mut best = (0, usize::MAX);
    for blocks in sizes {
        let refusing = refusing(blocks);
        if refusing < best.1 {
            best = (blocks, refusing);
        }
        if refusing == 0 {
            break;
        }
    }
    best
}

/// What the scheme can tell of a configuration without making its device.
fn ask_check(scheme: &Scheme, config: &RunConfig) -> Result<(), Failure> {
    guarded(|| {
        scheme.life.simulated.memory_bytes(config)?;
        scheme.life.simulated.check(config)?;
        Ok(())
    })
}

/// Why a run gave no record.
#[derive(Clone, Debug)]
pub enum Failure {
    /// The configuration cannot run.
    Refused(Refusal),
    /// The trace or a saved state does not fit the device, or cannot be read.
    Trace(String),
    /// A bug.
    Bug(String),
}

impl From<RunError> for Failure {
    fn from(error: RunError) -> Self {
        match error {
            RunError::Refused(refusal) => Self::Refused(refusal),
            RunError::Trace(error) => Self::Trace(error.to_string()),
            RunError::Beyond(text) => Self::Trace(text),
            RunError::State(error) => Self::Trace(error.to_string()),
            RunError::Law(text) => Self::Bug(text),
        }
    }
}

/// Runs `body`, and takes a panic of a scheme for the bug that it is.
///
/// # Errors
/// See [`Failure`].
pub fn guarded<T>(body: impl FnOnce() -> Result<T, RunError>) -> Result<T, Failure> {
    match quietly(body) {
        Ok(result) => result.map_err(Failure::from),
        Err(text) => {
            let at = crate::PANICKED_AT.take();
            Err(Failure::Bug(format!("the scheme panicked at {at}: {text}")))
        }
    }
}

/// Does work whose panics the runtime does not tell, where they are [hidden](crate::hide_guarded_panics).
///
/// # Errors
/// What the panic said.
pub fn quietly<T>(work: impl FnOnce() -> T) -> Result<T, String> {
    let before = crate::GUARDED.replace(true);
    let result = catch_unwind(AssertUnwindSafe(work));
    crate::GUARDED.set(before);
    result.map_err(|payload| {
        let text = payload.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| payload.downcast_ref::<&str>().copied());
        text.unwrap_or("no message").to_string()
    })
}

/// Makes the device of a run and plays nothing on it: the scheme's own checks, before anything else happens.
///
/// # Errors
/// The refusal.
pub fn try_out(scheme: &Scheme, config: &RunConfig) -> Result<(), Failure> {
    guarded(|| {
        scheme.life.simulated.memory_bytes(config)?;
        scheme.life.simulated.drive(config)?;
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use floatgate_trace::Op;

    fn touch(extent: &mut Extent, op: Op, volume: u32, offset: u64, bytes: u64) {
        extent.add(&Request {
            arrival_ns: 0,
            op,
            volume,
            stream: floatgate_trace::Stream::NONE,
            offset,
            bytes,
        });
    }

    #[test]
    fn regions_of_reads_and_writes_count_volume_by_volume() {
        let host = Host {
            beyond: Beyond::Compact,
            ..Host::default()
        };
        let mut extent = Extent::new(&host, 2048);
        touch(&mut extent, Op::Write, 0, (1 << 20) - 1, 2);
        touch(&mut extent, Op::Read, 1, 0, 512);
        touch(&mut extent, Op::Read, 1, 4096, 512);
        touch(&mut extent, Op::Trim, 1, 1 << 30, 4096);
        assert_eq!(extent.bytes(), 3 << 20);
    }

    #[test]
    fn without_compact_the_highest_address_counts() {
        let mut extent = Extent::new(&Host::default(), 2048);
        touch(&mut extent, Op::Write, 0, 10_000, 1000);
        touch(&mut extent, Op::Write, 0, 0, 1000);
        assert_eq!(extent.bytes(), 11_000);
    }
}
