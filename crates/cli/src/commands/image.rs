//! `floatgate image create`, `info`, `check`, `dump`, `scrub`.

use std::path::Path;

use floatgate_catalog::{Catalog, Scheme};
use floatgate_core::Start;
use floatgate_core::options::OptionValue;
use floatgate_core::options::Value as OptionGiven;
use floatgate_device::image::format::BLOCKS_MAX;
use floatgate_device::image::{self, CheckReport, DumpSelection, ImageError, ImageInfo, ImageSpec};
use floatgate_device::spares::pairs::PairGuard;
use floatgate_device::stored::{check_image, scrub_image};
use floatgate_device::{DeviceError, Drive, SparesOptions};

use floatgate_sim::part::Part;

use super::schemes::find;
use crate::args::{
    DeviceArgs, ImageArgs, ImageCheckArgs, ImageCreateArgs, ImageDumpArgs, ImageScrubArgs,
};
use crate::config::Settings;
use crate::config::resolve::{Plan, refused};
use crate::config::sizing::{Extent, size};
use crate::errors::{EXIT_DIFFERENT, EXIT_DONE, Outcome, Problem};
use crate::output;
use crate::progress::Bar;

/// The scheme of an image for which none is named.
const DEFAULT_SCHEME: &str = "page";
/// Bytes of a device whose capacity is not given.
const DEFAULT_CAPACITY: u64 = 64 << 20;
/// Spare blocks of each die of a device in memory, where none fails: as many as an image has unless told otherwise, so
/// that both are the same device.
const SPARE_BLOCKS_IN_MEMORY: u32 = 2;

/// Makes an image.
pub fn create(args: &ImageCreateArgs, schemes: &[Scheme]) -> Outcome<()> {
    let (settings, scheme) = chosen(
        args.config.as_deref(),
        &args.set,
        args.scheme.as_deref(),
        schemes,
    )?;
    let word = OptionGiven::Text(args.pair_guard.clone());
    let pair_guard = PairGuard::take(&word)
        .map_err(|wanted| Problem::new(format!("--pair-guard takes {wanted}")))?;
    // Tables for every page are made and looked through twice, so a large image takes a while.
    let waiting = Bar::waiting("makes the image");
    let plan = Plan::of(&settings)?;
    let spec = spec_of(plan, &settings, scheme, (args.spare_blocks, pair_guard))?;
    let made = scheme.life.stored.create(&args.file, &spec);
    waiting.done();
    let made = made.map_err(|error| not_made(&settings, scheme, error))?;
    show_info(&made, args.json)
}

/// Makes a fresh device in memory.
pub fn in_memory(args: &DeviceArgs, capacity: u64, schemes: &[Scheme]) -> Outcome<Box<dyn Drive>> {
    let (settings, scheme) = chosen(
        args.config.as_deref(),
        &args.set,
        args.scheme.as_deref(),
        schemes,
    )?;
    let mut plan = Plan::of(&settings)?;
    if !plan.capacity_from_trace {
        return Err(Problem::new("the device's size is given twice")
            .at(&settings.place("device.capacity"))
            .help("leave it to --memory"));
    }
    plan.capacity_from_trace = false;
    plan.device.logical_pages = capacity.div_ceil(plan.device.part.page_bytes.into());
    let below = (SPARE_BLOCKS_IN_MEMORY, PairGuard::Off);
    let spec = spec_of(plan, &settings, scheme, below)?;
    let made = scheme.life.stored.in_memory(&spec);
    made.map_err(|error| not_made(&settings, scheme, error))
}

/// The part of a device in memory, with what the configuration changes of it.
pub fn part_in_memory(args: &DeviceArgs, schemes: &[Scheme]) -> Outcome<Part> {
    let (settings, _) = chosen(
        args.config.as_deref(),
        &args.set,
        args.scheme.as_deref(),
        schemes,
    )?;
    Ok(Plan::of(&settings)?.device.part)
}

/// The settings, and the scheme that they or the command line name.
fn chosen<'a>(
    config: Option<&Path>,
    set: &[String],
    scheme: Option<&str>,
    schemes: &'a [Scheme],
) -> Outcome<(Settings, &'a Scheme)> {
    let settings = Settings::load(config, set, schemes)?;
    let named = scheme.or_else(|| settings.text("scheme.name"));
    let scheme = find(schemes, named.unwrap_or(DEFAULT_SCHEME))?;
    settings.check_options(&[scheme])?;
    Ok((settings, scheme))
}

/// What the settings make of an image: a device for that scheme alone, spare blocks on top.
fn spec_of(
    mut plan: Plan,
    settings: &Settings,
    scheme: &Scheme,
    (spare_blocks, pair_guard): (u32, PairGuard),
) -> Outcome<ImageSpec> {
    if plan.capacity_from_trace {
        plan.capacity_from_trace = false;
        let pages = DEFAULT_CAPACITY.div_ceil(plan.device.part.page_bytes.into());
        plan.device.logical_pages = pages.max(1);
    }
    check_size(&plan, settings)?;
    // What is simulated to find the number of blocks need not be filled.
    plan.start = Start::Empty;
    let nothing = Extent::new(&plan.host, plan.device.part.page_bytes);
    let this = std::slice::from_ref(scheme);
    size(&mut plan, settings, &nothing, this, &[(scheme, settings)])?;
    let options = plan.run_of(scheme, settings).options;
    let lines = options.iter().map(|(key, value)| match value {
        // Words are quoted when shown, but not in an image.
        OptionGiven::Text(word) => format!("{key}={word}\n"),
        other => format!("{key}={other}\n"),
    });
    let device = &plan.device;
    Ok(ImageSpec {
        dies: device.dies,
        blocks_per_die: device.blocks,
        pages_per_block: device.part.pages_per_block,
        page_bytes: device.part.page_bytes,
        logical_pages: device.logical_pages,
        program_order: device.program_order,
        spares: SparesOptions {
            spare_blocks,
            pair_guard,
            wear_leveling: device.wear_leveling,
            wear_gap: device.wear_gap,
        },
        scheme: scheme.info.key.into(),
        options: lines.collect(),
        part: device.part.name.into(),
        erase_limit: device.part.endurance.unwrap_or(0),
    })
}

/// Refuses before the work what no image can hold.
fn check_size(plan: &Plan, settings: &Settings) -> Outcome<()> {
    let (pages, part) = (plan.device.logical_pages, &plan.device.part);
    let pages_max = u64::from(u32::MAX - 1);
    let place = settings.place("device.capacity");
    if pages > pages_max {
        let text = format!(
            "an image of {pages} pages of {} bytes is needed; at most {pages_max} are possible",
            part.page_bytes
        );
        let help = "larger pages (device.page_bytes), or less capacity (device.capacity_gib)";
        return Err(Problem::new(text).at(&place).help(help));
    }
    let blocks = pages.div_ceil(part.pages_per_block.into());
    if blocks >= u64::from(BLOCKS_MAX) {
        let text = format!(
            "an image of {blocks} blocks of {} pages of {} bytes is needed, spare ones not counted; less than \
             {BLOCKS_MAX} are possible",
            part.pages_per_block, part.page_bytes
        );
        let help = "more pages a block (device.pages_per_block), larger pages (device.page_bytes), or less \
                    capacity (device.capacity_gib)";
        return Err(Problem::new(text).at(&place).help(help));
    }
    Ok(())
}

fn not_made(settings: &Settings, scheme: &Scheme, error: DeviceError) -> Problem {
    match error {
        DeviceError::Refused(refusal) => refused(settings, Some(scheme.info.key), &refusal),
        DeviceError::Image(error) if error.is_existing_file() => {
            Problem::new(error.to_string()).help("name another file, or remove this one")
        }
        DeviceError::Image(error) => unusable(error),
        other => Problem::new(other.to_string()),
    }
}

/// Describes an image.
pub fn info(args: &ImageArgs) -> Outcome<()> {
    show_info(&image::info(&args.file).map_err(unusable)?, args.json)
}

fn show_info(info: &ImageInfo, as_json: bool) -> Outcome<()> {
    if as_json {
        return output::print_json(info);
    }
    output::print(&info.to_string())
}

/// Checks an image; the exit code says whether there is an error.
pub fn check(args: &ImageCheckArgs, catalog: &Catalog) -> Outcome<u8> {
    let report: CheckReport = check_image(&args.file, catalog).map_err(unusable)?;
    if args.json {
        output::print_json(&report)?;
    } else {
        output::print(&report.to_string())?;
    }
    Ok(if report.is_sound() {
        EXIT_DONE
    } else {
        EXIT_DIFFERENT
    })
}

/// Scrubs an image; the exit code says whether a logical page is lost.
pub fn scrub(args: &ImageScrubArgs, catalog: &Catalog) -> Outcome<u8> {
    let report = scrub_image(&args.file, catalog).map_err(|error| match error {
        DeviceError::Image(error) => unusable(error),
        other => Problem::new(other.to_string()),
    })?;
    if args.json {
        output::print_json(&report)?;
    } else {
        output::print(&report.to_string())?;
    }
    Ok(match report.lost_logical_pages[..] {
        [] => EXIT_DONE,
        _ => EXIT_DIFFERENT,
    })
}

/// Lists pages of an image.
pub fn dump(args: &ImageDumpArgs) -> Outcome<()> {
    let selection = DumpSelection {
        block: args.block,
        lpn: args.lpn,
        erased: args.erased,
        data_bytes: args.data,
        rows_max: args.rows,
    };
    check_selection(args)?;
    let dump = image::dump(&args.file, &selection).map_err(unusable)?;
    if args.json {
        return output::print_json(&dump);
    }
    match (&dump.rows[..], args.lpn, args.block) {
        ([], Some(lpn), _) => output::print(&format!(
            "no page here holds logical page {lpn}: it was never written, or trimmed since\n"
        )),
        ([], None, Some(block)) => output::print(&format!(
            "every page of block {block} is erased; --erased lists them\n"
        )),
        ([], None, None) => output::print("every page is erased; --erased lists them\n"),
        _ => output::print(&dump.to_string()),
    }
}

/// Refuses a block or page that the image does not have.
fn check_selection(args: &ImageDumpArgs) -> Outcome<()> {
    if args.block.is_none() && args.lpn.is_none() {
        return Ok(());
    }
    let geometry = image::header_of(&args.file).map_err(unusable)?.geometry;
    for (flag, given, what, number) in [
        ("--block", args.block, "physical blocks", geometry.blocks()),
        ("--lpn", args.lpn, "logical pages", geometry.logical_pages),
    ] {
        if let Some(given) = given.filter(|&given| given >= number) {
            return Err(
                Problem::new(format!("{flag} {given}: the image has {number} {what}"))
                    .help(format!("{flag} takes 0 to {}", number.saturating_sub(1))),
            );
        }
    }
    Ok(())
}

/// An image that cannot be read, with what helps.
pub fn unusable(error: ImageError) -> Problem {
    let problem = Problem::new(error.to_string());
    match &error {
        ImageError::Locked { .. } => problem.help("end the other program first"),
        ImageError::HeaderChecksum | ImageError::Header { .. } | ImageError::Truncated { .. } => {
            problem.help("`floatgate image check` tells what else is wrong")
        }
        ImageError::Magic => problem.help("`floatgate image create` makes one"),
        _ => problem,
    }
}
