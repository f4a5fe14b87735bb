//! `floatgate mount` and `floatgate attach`: the device as a file, and as a block device of this machine.

use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use floatgate_catalog::Catalog;
use floatgate_serve::fuse::FILE_NAME;
use floatgate_serve::{LoopDevice, Mounted};

use super::listeners;
use super::ready::{self, Ready};
use crate::args::{AttachArgs, DeviceArgs, MountArgs};
use crate::errors::{Outcome, Problem};
use crate::{output, signals};

/// How often it is looked whether it is the end.
const ROUND: Duration = Duration::from_millis(50);

/// Rounds of waiting for the kernel until it is told.
const ROUNDS_UNTOLD: u32 = 20;

/// Shows the device as a file until a signal, or until somebody unmounts it.
pub fn mount(args: &MountArgs, catalog: &Catalog) -> Outcome<()> {
    let stop = signals::asked_to_end();
    check_folder(&args.folder)?;
    while_shown(&args.device, &args.folder, catalog, |mounted, mut ready| {
        ready.path = Some(args.folder.join(FILE_NAME).display().to_string());
        ready.print(args.json)?;
        while !stop.load(Ordering::Relaxed) && !mounted.is_over() {
            std::thread::sleep(ROUND);
        }
        Ok(())
    })
}

/// Shows the device as a block device until a signal, or until somebody detaches it.
pub fn attach(args: &AttachArgs, catalog: &Catalog) -> Outcome<()> {
    // From here on a signal is only noted: every step is undone.
    let stop = signals::asked_to_end();
    check_root()?;
    let folder = tempfile::Builder::new().prefix("floatgate-").tempdir();
    let folder = folder.map_err(|error| Problem::new(format!("a temporary folder: {error}")))?;
    // Never removed with what it holds: that is the device.
    let folder = folder.keep();
    let outcome = while_shown(&args.device, &folder, catalog, |mounted, ready| {
        let export = (ready.sector_bytes(), ready.is_read_only());
        let file = folder.join(FILE_NAME);
        let device = LoopDevice::new(&file, export.0, export.1).map_err(|error| no_loop(&error))?;
        let told = tell_attached(&device, ready, args.json);
        while told.is_ok()
            && !stop.load(Ordering::Relaxed)
            && !mounted.is_over()
            && device.is_there()
        {
            std::thread::sleep(ROUND);
        }
        if mounted.is_over() && device.is_there() {
            output::tell(&format!(
                "{} has lost its file: FUSE ended the connection",
                device.path().display()
            ));
        }
        detach(&device)?;
        told
    });
    let _ = std::fs::remove_dir(&folder);
    outcome
}

fn tell_attached(device: &LoopDevice, mut ready: Ready, as_json: bool) -> Outcome<()> {
    ready.block_device = Some(device.path().display().to_string());
    ready.print(as_json)
}

/// Detaches a block device once nobody uses it. A file system on it is never cut off.
fn detach(device: &LoopDevice) -> Outcome<()> {
    let path = device.path();
    let path = path.display();
    let mut told = Vec::new();
    loop {
        let places = device.mount_points();
        if places.is_empty() || !device.is_there() {
            break;
        }
        if places != told {
            let places = places.join(", ");
            output::tell(&format!(
                "{path} is still mounted on {places}: waiting until it is unmounted \
                 (a second signal ends at once, as a power cut would)"
            ));
        }
        told = places;
        std::thread::sleep(ROUND);
    }
    let detached = device.detach();
    detached.map_err(|error| Problem::new(format!("{path} cannot be detached: {error}")))?;
    let mut rounds = 0;
    while device.is_there() {
        // The kernel itself needs a moment.
        if rounds == ROUNDS_UNTOLD {
            output::tell(&format!(
                "{path} is still open in another program: waiting until it is closed"
            ));
        }
        rounds += 1;
        std::thread::sleep(ROUND);
    }
    Ok(())
}

/// Puts the device up, shows it in a folder, and takes both down again whatever comes of it.
fn while_shown(
    args: &DeviceArgs,
    folder: &Path,
    catalog: &Catalog,
    used: impl FnOnce(&Mounted, Ready) -> Outcome<()>,
) -> Outcome<()> {
    let setup = ready::setup(args, catalog)?;
    let mut drive = ready::open(args, catalog)?;
    let ready = Ready::new(&*drive);
    let taps = listeners::begin(&args.listen, &mut *drive)?;
    let (shared, control) = ready::put_up(args, drive, taps, setup)?;
    let outcome = match Mounted::new(Arc::clone(&shared), folder) {
        Err(error) => Err(not_mounted(folder, &error)),
        Ok(mounted) => {
            let over = Arc::new(AtomicBool::new(false));
            let asked = signals::asked_to_end();
            std::thread::scope(|threads| {
                threads.spawn(|| shared.keep_time(&over));
                if let Some(control) = control {
                    threads.spawn(|| control.run(&shared, &over, &asked));
                }
                let outcome = used(&mounted, ready).and(unmount(mounted, folder));
                over.store(true, Ordering::Relaxed);
                outcome
            })
        }
    };
    outcome.and(ready::shut_down(&shared))
}

/// Unmounts the folder once nobody uses it.
fn unmount(mounted: Mounted, folder: &Path) -> Outcome<()> {
    let folder = folder.display();
    let mut is_told = false;
    loop {
        match mounted.try_unmount() {
            Ok(true) => break,
            Ok(false) if !is_told => output::tell(&format!(
                "{folder} is in use: waiting until nobody has its file open or stands in it"
            )),
            Ok(false) => {}
            Err(error) => return Err(Problem::new(format!("unmounting {folder}: {error}"))),
        }
        is_told = true;
        std::thread::sleep(ROUND);
    }
    let ended = mounted.join();
    ended.map_err(|error| Problem::new(format!("FUSE ended the connection: {error}")))
}

fn check_folder(folder: &Path) -> Outcome<()> {
    let place = folder.display();
    match folder.metadata() {
        Ok(found) if found.is_dir() => Ok(()),
        Ok(_) => Err(Problem::new(format!("{place}: no folder"))
            .help("name an empty folder; the device appears in it as a file")),
        Err(error) if error.kind() == ErrorKind::NotConnected => Err(Problem::new(format!(
            "{place}: something mounted there was killed"
        ))
        .help(format!("take its mount away: fusermount3 -u {place}"))),
        Err(error) => Err(Problem::new(format!("{place}: {error}")).help(format!("mkdir {place}"))),
    }
}

fn check_root() -> Outcome<()> {
    match LoopDevice::is_allowed() {
        true => Ok(()),
        false => Err(Problem::new("attach: loop devices are made by root alone")
            .help("run it with sudo; `floatgate mount` needs no root, `floatgate serve` neither")),
    }
}

fn no_loop(error: &std::io::Error) -> Problem {
    match error.kind() {
        ErrorKind::NotFound => Problem::new("attach: there is no losetup")
            .help("install util-linux (Debian: apt-get install mount)"),
        _ => Problem::new(format!("attach: {error}"))
            .help("the kernel needs its loop module (modprobe loop)"),
    }
}

fn not_mounted(folder: &Path, error: &std::io::Error) -> Problem {
    let problem = Problem::new(format!(
        "mounting in {}: {}",
        folder.display(),
        error.to_string().trim()
    ));
    match Path::new("/dev/fuse").exists() {
        false => problem.help("there is no /dev/fuse: the kernel needs its fuse module (modprobe fuse)"),
        true => problem.help(
            "the folder must be yours; who is not root needs fusermount3 (Debian: apt-get install fuse3)",
        ),
    }
}
