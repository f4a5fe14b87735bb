//! The process that serves the device is killed in the middle of its work; what was fsynced is there afterwards.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::device::{Attached, floatgate};
use super::filesystem::{FileSystem, Mounted};
use super::tools::ran;

/// Files that were fsynced, by number: the content follows from the number.
type Kept = Vec<u64>;

/// The longest file.
const FILE_BYTES_MAX: u64 = 60_000;

/// The content of a file: different for every number, and long files too.
fn content(number: u64) -> Vec<u8> {
    let bytes = 1 + number.wrapping_mul(7919) % FILE_BYTES_MAX;
    let word = |i: u64| (number << 20 | i).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 56;
    (0..bytes).map(|i| word(i) as u8).collect()
}

fn file_of(folder: &Path, number: u64) -> PathBuf {
    folder.join(format!("kept-{number}"))
}

/// Kills the process `times` in a row; each time the file system is mounted again (its journal replayed), every
/// fsynced file compared, unmounted, and checked. Returns the files that were fsynced in all.
pub fn kill_and_compare(
    kind: FileSystem,
    image: &Path,
    folder: &Path,
    times: u32,
) -> Result<usize, String> {
    let attached = Attached::new(image)?;
    kind.make(&attached.device)?;
    attached.detach()?;
    let mut kept = Kept::new();
    let mut next = 0;
    for life in 0..times {
        let mut attached = Attached::new(image)?;
        let mounted = Mounted::new(kind, &attached.device, folder)?;
        verify(&mounted, &kept).map_err(|lost| format!("life {life}: {lost}"))?;
        // Half of the files make room for more; their removal need not survive, so nothing is said of them.
        let gone = kept.drain(..kept.len() / 2).collect::<Kept>();
        for number in gone {
            let _ = std::fs::remove_file(file_of(&mounted.folder, number));
        }
        let pause = Duration::from_millis(200 + u64::from(life) * 137 % 900);
        let stop = AtomicBool::new(false);
        let written = std::thread::scope(|threads| {
            let writer = threads.spawn(|| write_until_it_fails(&mounted, next, &stop));
            std::thread::sleep(pause);
            attached.kill();
            stop.store(true, Ordering::Relaxed);
            writer.join().unwrap_or_default()
        });
        next += 1_000_000;
        kept.extend(written);
        mounted.unmount_without_disk()?;
        attached.clean_up()?;
    }
    let attached = Attached::new(image)?;
    let mounted = Mounted::new(kind, &attached.device, folder)?;
    verify(&mounted, &kept)?;
    mounted.unmount()?;
    kind.check(&attached.device)?;
    attached.detach()?;
    ran(floatgate("image check").arg(image))?;
    Ok(kept.len())
}

/// Writes files, each fsynced with its folder, until a write fails; those that were.
fn write_until_it_fails(mounted: &Mounted, first: u64, stop: &AtomicBool) -> Kept {
    let mut kept = Kept::new();
    for number in first.. {
        // Never into the folder below.
        if stop.load(Ordering::Relaxed) || !mounted.is_there() {
            break;
        }
        let write = || {
            let mut file = File::create_new(file_of(&mounted.folder, number))?;
            file.write_all(&content(number))?;
            file.sync_all()?;
            File::open(&mounted.folder)?.sync_all()
        };
        if write().is_err() {
            break;
        }
        kept.push(number);
    }
    kept
}

fn verify(mounted: &Mounted, kept: &Kept) -> Result<(), String> {
    for &number in kept {
        let found = std::fs::read(file_of(&mounted.folder, number));
        if !found.is_ok_and(|found| found == content(number)) {
            return Err(format!("file {number} was fsynced and is lost"));
        }
    }
    Ok(())
}
