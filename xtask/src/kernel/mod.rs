//! This machine's kernel on devices of Floatgate: file systems made, used, cut off and checked.

pub mod device;
pub mod filesystem;
pub mod guest;
pub mod kills;
pub mod tools;
pub mod workloads;

use std::path::{Path, PathBuf};
use std::time::Instant;

use crate::process::{root, target};
use crate::steps::Outcome;
use device::{Attached, floatgate};
use filesystem::{FileSystem, Mounted};
use guest::{Bus, Guest};
use tools::{found, is_root, ran};

/// Times that the process is killed in a row.
const KILLS: u32 = 10;
/// The same in the short form, for all file systems but the first.
const KILLS_FEW: u32 = 3;

/// Why nothing can be mounted here, if nothing can.
fn obstacle() -> Option<&'static str> {
    if !is_root() {
        return Some("mounting needs root");
    }
    if !Path::new("/dev/fuse").exists() {
        return Some("this machine has no /dev/fuse");
    }
    if !Path::new("/dev/loop-control").exists() {
        return Some("this machine has no loop devices");
    }
    found("fusermount3")
        .is_none()
        .then_some("fusermount3 is not installed (Debian: fuse3)")
}

/// The short form: a scheme for each file system, and the kills.
pub fn short() -> Outcome {
    if let Some(why) = obstacle() {
        return Outcome::Skipped(why.into());
    }
    let pairs = [
        ("fast", FileSystem::Ext4),
        ("page", FileSystem::Xfs),
        ("last++", FileSystem::Btrfs),
    ];
    let kills = |kind| match kind {
        FileSystem::Ext4 => KILLS,
        FileSystem::Xfs | FileSystem::Btrfs => KILLS_FEW,
    };
    all(&pairs, workloads::SHORT.iter().collect(), "docs", kills)
}

/// Installs what is missing where it may; what is missing still is told.
pub fn programs(wanted: &[tools::Program]) -> Outcome {
    let missing = tools::install(wanted);
    match missing.is_empty() {
        true => Outcome::Passed,
        false => Outcome::Skipped(format!("not installed: {}", missing.join(" "))),
    }
}

/// The same for the long runs.
pub fn programs_of_the_long_run() -> Outcome {
    programs(&[&tools::FOR_THE_GATE[..], &tools::FOR_THE_LONG_RUN].concat())
}

/// The long form: every scheme, or one, with every file system.
pub fn long(scheme: Option<&str>) -> Outcome {
    if let Some(why) = obstacle() {
        return Outcome::Skipped(why.into());
    }
    let schemes = match schemes() {
        Ok(schemes) => schemes,
        Err(why) => return Outcome::Failed(why),
    };
    let mut pairs = Vec::new();
    for key in schemes
        .iter()
        .filter(|key| scheme.is_none_or(|wanted| wanted == *key))
    {
        pairs.extend(FileSystem::ALL.map(|kind| (key.as_str(), kind)));
    }
    if pairs.is_empty() {
        return Outcome::Failed("no scheme of that name: floatgate schemes lists them".into());
    }
    let workloads = workloads::SHORT.iter().chain(&workloads::LONG).collect();
    all(&pairs, workloads, "crates", |_| KILLS)
}

/// A guest of its own on each bus.
pub fn guests(scheme: Option<&str>) -> Outcome {
    if let Some(why) = guest::obstacle() {
        return Outcome::Skipped(why);
    }
    let guest = match Guest::new() {
        Ok(guest) => guest,
        Err(why) => return Outcome::Skipped(why),
    };
    for bus in [Bus::Nvme, Bus::VhostUser] {
        let start = Instant::now();
        let scheme = scheme.unwrap_or("fast");
        match guest.survive(scheme, bus) {
            Ok(files) => println!(
                "{scheme:<12} {bus:?}: boot, mkfs, {files} fsynced files, kill, boot, compare, fsck: {:.0} s",
                start.elapsed().as_secs_f64()
            ),
            Err(why) => return Outcome::Failed(format!("{bus:?}: {why}")),
        }
    }
    Outcome::Passed
}

fn schemes() -> Result<Vec<String>, String> {
    let told = ran(&mut floatgate("schemes --json"))?;
    let told: serde_json::Value = serde_json::from_str(&told).map_err(|error| error.to_string())?;
    let keys = told.as_array().into_iter().flatten();
    Ok(keys
        .filter_map(|one| one["key"].as_str().map(str::to_string))
        .collect())
}

fn all(
    pairs: &[(&str, FileSystem)],
    workloads: Vec<&workloads::Workload>,
    tree: &str,
    kills: impl Fn(FileSystem) -> u32,
) -> Outcome {
    let (workloads, missing): (Vec<_>, Vec<_>) = workloads
        .into_iter()
        .partition(|one| one.program.is_none_or(|program| found(program).is_some()));
    for one in missing {
        println!(
            "skipped: {}: {} is not installed",
            one.name,
            one.program.unwrap_or_default()
        );
    }
    let folder = target().join("xtask-kernel");
    let mut failed = None;
    for &(scheme, kind) in pairs {
        if found(&format!("mkfs.{}", kind.name())).is_none() {
            println!("skipped: {}: its mkfs is not installed", kind.name());
            continue;
        }
        let start = Instant::now();
        let (tree, kills) = (root().join(tree), kills(kind));
        let outcome = one(scheme, kind, &workloads, &folder, &tree, kills);
        let seconds = start.elapsed().as_secs_f64();
        match outcome {
            Ok(files) => println!(
                "{scheme:<12} {:<6} {} workloads, {kills} kills, {files} fsynced files compared, {seconds:.1} s",
                kind.name(),
                workloads.len() + 1,
            ),
            Err(why) => {
                println!("{scheme:<12} {:<6} FAILED: {why}", kind.name());
                println!("{}", tools::devices());
                failed.get_or_insert(format!("{scheme} with {}: {why}", kind.name()));
            }
        }
    }
    failed.map_or(Outcome::Passed, Outcome::Failed)
}

fn one(
    scheme: &str,
    kind: FileSystem,
    workloads: &[&workloads::Workload],
    folder: &Path,
    tree: &Path,
    kills: u32,
) -> Result<usize, String> {
    std::fs::create_dir_all(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let image = folder.join(format!("{}.img", kind.name()));
    let mountpoint = folder.join("mounted");
    create(&image, scheme, kind)?;
    let attached = Attached::new(&image)?;
    kind.make(&attached.device)?;
    let mounted = Mounted::new(kind, &attached.device, &mountpoint)?;
    workloads::copy(tree, &mounted)?;
    for workload in workloads {
        mounted.guard()?;
        (workload.run)(&mounted).map_err(|why| format!("{}: {why}", workload.name))?;
    }
    mounted.unmount()?;
    kind.check(&attached.device)?;
    // Through another process: nothing comes from a cache.
    attached.detach()?;
    let attached = Attached::new(&image)?;
    let mounted = Mounted::new(kind, &attached.device, &mountpoint)?;
    workloads::compare(tree, &mounted)?;
    mounted.unmount()?;
    attached.detach()?;
    ran(floatgate("image check").arg(&image))?;
    create(&image, scheme, kind)?;
    let files = kills::kill_and_compare(kind, &image, &mountpoint, kills)?;
    std::fs::remove_file(&image).map_err(|error| error.to_string())?;
    Ok(files)
}

/// A fresh image in place of an older one.
fn create(image: &PathBuf, scheme: &str, kind: FileSystem) -> Result<(), String> {
    let _ = std::fs::remove_file(image);
    let gib = f64::from(kind.device_mib()) / 1024.0;
    let words = format!("image create --scheme {scheme} --set device.capacity_gib={gib}");
    ran(floatgate(&words).arg(image)).map(drop)
}
