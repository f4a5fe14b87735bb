//! A loop device of the kernel on top of a file: what `losetup` makes, and what must be looked at before it is undone.

use std::io;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use rustix::process::geteuid;

/// A loop device that was made for a file.
#[derive(Debug)]
pub struct LoopDevice {
    name: String,
    file: PathBuf,
}

impl LoopDevice {
    /// Makes one. Direct I/O is asked for, and left where the kernel does not give it: then the kernel keeps what is
    /// read and written twice.
    ///
    /// # Errors
    /// If there is no `losetup`, or it fails.
    pub fn new(file: &Path, sector_bytes: u32, is_read_only: bool) -> io::Result<Self> {
        let mut losetup = losetup();
        losetup.args(["--find", "--show", "--direct-io=on", "--sector-size"]);
        losetup.arg(sector_bytes.to_string());
        if is_read_only {
            losetup.arg("--read-only");
        }
        let ran = losetup.arg(file).output()?;
        // It may have been stopped after it made the device, so what is believed is the kernel.
        match of(file) {
            Some(name) => Ok(Self {
                name,
                file: file.into(),
            }),
            None => Err(io::Error::other(said(&ran))),
        }
    }

    /// Whether this user may make one.
    pub fn is_allowed() -> bool {
        geteuid().is_root()
    }

    /// The block device.
    pub fn path(&self) -> PathBuf {
        Path::new("/dev").join(&self.name)
    }

    /// Whether it still is the file's: anybody who may can detach it.
    pub fn is_there(&self) -> bool {
        backing_file(&self.name).is_some_and(|file| file == self.file)
    }

    /// Where file systems on it are mounted, as this process sees it.
    pub fn mount_points(&self) -> Vec<String> {
        let table = std::fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
        let number = std::fs::read_to_string(self.about("dev")).unwrap_or_default();
        mounts_of(&table, number.trim(), &self.path().to_string_lossy())
    }

    /// Asks the kernel to detach it. While somebody has it open, it goes when the last one has closed it: see
    /// [`LoopDevice::is_there`].
    ///
    /// # Errors
    /// If `losetup` fails.
    pub fn detach(&self) -> io::Result<()> {
        let ran = losetup().arg("--detach").arg(self.path()).output()?;
        match ran.status.success() || !self.is_there() {
            true => Ok(()),
            false => Err(io::Error::other(said(&ran))),
        }
    }

    fn about(&self, what: &str) -> PathBuf {
        Path::new("/sys/block").join(&self.name).join(what)
    }
}

/// `losetup`, out of reach of the Ctrl-C that is meant for us: what it began it ends, and we undo it.
fn losetup() -> Command {
    let mut losetup = Command::new("losetup");
    losetup.process_group(0);
    losetup
}

fn said(ran: &Output) -> String {
    let text = String::from_utf8_lossy(&ran.stderr);
    match text.trim() {
        "" => format!("losetup ended with {}", ran.status),
        text => text.into(),
    }
}

/// The loop device of a file.
fn of(file: &Path) -> Option<String> {
    let devices = std::fs::read_dir("/sys/block").ok()?;
    let names = devices.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let mut loops = names.filter(|name| name.starts_with("loop"));
    loops.find(|name| backing_file(name).is_some_and(|found| found == file))
}

fn backing_file(name: &str) -> Option<PathBuf> {
    let place = Path::new("/sys/block").join(name);
    let text = std::fs::read_to_string(place.join("loop/backing_file")).ok()?;
    Some(text.trim_end_matches('\n').into())
}

/// The mount points of a device in a table as `/proc/self/mountinfo`. A file system of several devices (btrfs) has a number
/// of its own there, but names a device as its source.
fn mounts_of(table: &str, number: &str, path: &str) -> Vec<String> {
    let of_line = |line: &str| {
        let (before, after) = line.split_once(" - ")?;
        let fields: Vec<&str> = before.split(' ').collect();
        let source = after.split(' ').nth(1)?;
        let is_ours = *fields.get(2)? == number || source == path;
        is_ours.then(|| fields.get(4).map(|place| unescaped(place)))?
    };
    table.lines().filter_map(of_line).collect()
}

/// Blanks and their like are octal numbers there.
fn unescaped(text: &str) -> String {
    let mut parts = text.split('\\');
    let mut bytes = parts.next().unwrap_or_default().as_bytes().to_vec();
    for part in parts {
        match part.get(..3).map(|digits| u8::from_str_radix(digits, 8)) {
            Some(Ok(byte)) => {
                bytes.push(byte);
                bytes.extend(&part.as_bytes()[3..]);
            }
            _ => bytes.extend([b"\\", part.as_bytes()].concat()),
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mount_points_are_found_by_number_and_by_source() {
        let table = "\
36 35 7:1 / /mnt/a\\040b rw,relatime shared:1 - ext4 /dev/loop1 rw\n\
37 35 7:10 / /mnt/other rw - ext4 /dev/loop10 rw\n\
38 35 0:44 /sub /mnt/c rw - btrfs /dev/loop1 rw,subvol=/sub\n\
39 35 7:1 /x /mnt/bound rw shared:1 master:2 - ext4 /dev/root rw\n\
half a line 7:1\n";
        assert_eq!(
            mounts_of(table, "7:1", "/dev/loop1"),
            ["/mnt/a b", "/mnt/c", "/mnt/bound"]
        );
        assert!(mounts_of(table, "7:2", "/dev/loop2").is_empty());
        assert_eq!(unescaped("a\\134b\\9\\1"), "a\\b\\9\\1");
    }

    #[test]
    fn a_file_without_a_loop_device_has_none() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        assert_eq!(of(file.path()), None);
        let none = LoopDevice {
            name: "loop-none".into(),
            file: file.path().into(),
        };
        assert!(!none.is_there() && none.mount_points().is_empty());
    }
}
