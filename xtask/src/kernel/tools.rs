//! The programs of others that tests use, installed from Debian's packages where that is possible.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::process::works;

/// A program and the Debian package that has it.
pub type Program = (&'static str, &'static str);

/// What the gate uses.
pub const FOR_THE_GATE: [Program; 8] = [
    ("nbdinfo", "libnbd-bin"),
    ("qemu-img", "qemu-utils"),
    ("fio", "fio"),
    ("fusermount3", "fuse3"),
    ("mkfs.ext4", "e2fsprogs"),
    ("mkfs.xfs", "xfsprogs"),
    ("mkfs.btrfs", "btrfs-progs"),
    ("sqlite3", "sqlite3"),
];

/// What the long run uses beside it.
pub const FOR_THE_LONG_RUN: [Program; 5] = [
    ("postmark", "postmark"),
    ("pg_ctl", "postgresql"),
    ("qemu-system-x86_64", "qemu-system-x86"),
    ("busybox", "busybox-static"),
    ("cpio", "cpio"),
];

/// Where a program lies, in the path or where Debian puts what only root uses.
pub fn found(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut folders: Vec<PathBuf> = std::env::split_paths(&path).collect();
    folders.extend(["/usr/sbin", "/sbin"].map(PathBuf::from));
    if let Ok(versions) = std::fs::read_dir("/usr/lib/postgresql") {
        folders.extend(versions.flatten().map(|version| version.path().join("bin")));
    }
    let mut files = folders.into_iter().map(|folder| folder.join(program));
    files.find(|file| file.is_file())
}

/// Whether this process may do what root may.
pub fn is_root() -> bool {
    let id = Command::new("id").arg("-u").output();
    id.is_ok_and(|id| id.stdout.trim_ascii() == b"0")
}

/// Installs what is missing, if this is root on a Debian; says what remains missing.
pub fn install(wanted: &[Program]) -> Vec<&'static str> {
    let missing = |&&(program, _): &&Program| found(program).is_none();
    let packages: Vec<&str> = wanted.iter().filter(missing).map(|one| one.1).collect();
    if !packages.is_empty() && is_root() && works("apt-get", &["--version"]) {
        println!("installing {}", packages.join(" "));
        apt(&["update"]);
        let mut words = vec!["install", "--yes", "--no-install-recommends"];
        words.extend(packages);
        apt(&words);
    }
    wanted.iter().filter(missing).map(|one| one.0).collect()
}

/// Whether it succeeds shows in what is there afterwards.
fn apt(words: &[&str]) {
    let _ = Command::new("apt-get")
        .args(["--quiet", "--quiet", "-o", "Dpkg::Use-Pty=0"])
        .args(words)
        .env("DEBIAN_FRONTEND", "noninteractive")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
}

/// Runs a program to its end; what it said, or what it was and what it said.
pub fn ran(command: &mut Command) -> Result<String, String> {
    let shown = format!("{command:?}").replace('"', "");
    let output = command.stdin(Stdio::null()).output();
    let output = output.map_err(|error| format!("{shown}: {error}"))?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    if output.status.success() {
        return Ok(text);
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(format!("{shown}: {}\n{text}{said}", output.status))
}

/// A program and its arguments in one line, separated by blanks.
pub fn line(words: &str) -> Command {
    let mut words = words.split_whitespace();
    let program = words.next().unwrap_or_default();
    let mut command = Command::new(found(program).unwrap_or_else(|| program.into()));
    command.args(words);
    command
}

/// How long the kernel may take to let go of what nobody uses any more.
const PATIENCE: Duration = Duration::from_secs(15);

/// Runs a program again and again until it is so; what it said last, if the patience ends before.
pub fn ran_until(words: &str, is_so: impl Fn() -> bool) -> Result<(), String> {
    let late = Instant::now() + PATIENCE;
    loop {
        let said = ran(&mut line(words)).err();
        if is_so() {
            return Ok(());
        }
        if Instant::now() > late {
            return Err(said.unwrap_or_else(|| format!("{words}: it has no effect")));
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Whether something is mounted on a folder, by the kernel's own table: one whose server or disk has gone cannot be looked
/// at, so `mountpoint` takes it for none.
pub fn is_mount_point(folder: &Path) -> bool {
    let table = std::fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    // Our folders have no blanks, which are octal numbers there.
    let folder = folder.to_string_lossy();
    let place = |line: &str| line.split(' ').nth(4).map(str::to_owned);
    table.lines().filter_map(place).any(|place| place == folder)
}

/// The loop devices of this machine and what is mounted of them and of FUSE, to be read after a failure.
pub fn devices() -> String {
    let table = std::fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    let is_told = |line: &&str| line.starts_with("/dev/loop") || line.starts_with("floatgate ");
    let mounts: Vec<&str> = table.lines().filter(is_told).collect();
    let loops = ran(&mut line("losetup --list")).unwrap_or_else(|why| why);
    format!("mounted: {mounts:#?}\n{loops}")
}
