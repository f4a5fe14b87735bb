//! `floatgate mount` and `floatgate attach` under the kernel: skipped with a word where root, FUSE, loop devices or a tool is
//! missing. Nothing is written before it is sure that the mount point is one.

mod common;

use std::os::unix::fs::{FileExt, FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use common::{Place, Running};

/// Whether a folder is a mount point of its own.
fn is_mounted(folder: &Path) -> bool {
    let device = |path: &Path| path.metadata().map(|found| found.dev()).ok();
    device(folder).is_some() && device(folder) != device(&folder.join(".."))
}

fn has_fuse() -> bool {
    let has = Path::new("/dev/fuse").exists() && rustix::process::geteuid().is_root();
    if !has {
        eprintln!("skipped: no root, or no /dev/fuse");
    }
    has
}

fn has(tool: &str) -> bool {
    let places = ["/sbin", "/usr/sbin", "/bin", "/usr/bin"];
    let has = places
        .iter()
        .any(|place| Path::new(place).join(tool).exists());
    if !has {
        eprintln!("skipped: {tool} is not installed");
    }
    has
}

fn run(line: &[&str]) {
    let (program, arguments) = line.split_first().expect("a program");
    let ran = Command::new(program).args(arguments).output();
    let ran = ran.unwrap_or_else(|error| panic!("{line:?}: {error}"));
    let said = String::from_utf8_lossy(&ran.stderr);
    assert!(ran.status.success(), "{line:?}: {said}");
}

#[test]
fn a_device_is_a_file_that_keeps_its_size() {
    if !has_fuse() {
        return;
    }
    let place = Place::new();
    std::fs::create_dir(place.path("shown")).expect("a folder");
    place
        .run("image create a.img --scheme fast --set device.capacity_gib=0.001953125")
        .ok();
    let shown = Running::new(&place, "mount a.img shown --json");
    let told: serde_json::Value = serde_json::from_str(&shown.line).expect("JSON");
    assert_eq!(told["path"], "shown/device");
    assert!(is_mounted(&place.path("shown")));
    let path = place.path("shown/device");
    let file = std::fs::File::options()
        .read(true)
        .write(true)
        .open(&path)
        .expect("the file");
    let bytes = file.metadata().expect("its size").len();
    assert_eq!((told["bytes"].as_u64(), bytes), (Some(bytes), 2 << 20));
    assert_eq!(file.metadata().expect("its mode").mode() & 0o777, 0o600);
    file.write_all_at(b"odd places", 1019).expect("written");
    file.write_all_at(&[7; 5000], bytes - 5000)
        .expect("written");
    assert_eq!(
        file.write_at(b"over the end", bytes - 4).expect("a part"),
        4
    );
    assert_eq!(
        file.write_at(b"behind", bytes)
            .expect_err("no space")
            .raw_os_error(),
        Some(28)
    );
    file.set_len(100).expect_err("no other size");
    file.set_len(bytes + 1).expect_err("no other size");
    std::fs::write(place.path("shown/other"), "x").expect_err("no other file");
    std::fs::remove_file(&path).expect_err("not this one");
    let mode = rustix::fs::FallocateFlags::PUNCH_HOLE | rustix::fs::FallocateFlags::KEEP_SIZE;
    rustix::fs::fallocate(&file, mode, 1021, 4096 - 1021).expect("a hole");
    rustix::fs::fallocate(&file, mode, bytes - 10, 20).expect_err("beyond the end");
    let mut found = [0; 12];
    file.read_exact_at(&mut found, 1018).expect("read");
    assert_eq!(&found, b"\0od\0\0\0\0\0\0\0\0\0");
    let hole = rustix::fs::seek(&file, rustix::fs::SeekFrom::Hole(2048)).expect("a hole");
    let data = rustix::fs::seek(&file, rustix::fs::SeekFrom::Data(4096)).expect("data");
    assert_eq!((hole, data), (2048, bytes - 6144), "holes are whole pages");
    file.sync_all().expect("flushed");
    // While the file is open, it is waited for.
    let mut shown = shown;
    shown.signal();
    std::thread::sleep(Duration::from_millis(400));
    assert!(shown.is_running());
    drop(file);
    let (code, said) = shown.end();
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("is in use"), "{said}");
    assert!(!is_mounted(&place.path("shown")));
    place
        .run("image read a.img --offset 1024 --length 512 --output part")
        .ok();
    assert_eq!(
        std::fs::read(place.path("part")).expect("a part")[..6],
        [0; 6]
    );
    let info = place.run("image info a.img").ok();
    assert!(info.out.contains("closed in order"), "{}", info.out);
}

#[test]
fn mistakes_of_mounting_are_told() {
    let place = Place::new();
    place.file("file", "precious");
    for (arguments, told) in [
        ("mount --memory 1MiB none", "mkdir none"),
        ("mount --memory 1MiB file", "no folder"),
        ("mount none .", "none"),
        ("mount .", "required"),
        ("attach", "required"),
        ("attach file", "not a Floatgate image"),
    ] {
        if arguments == "attach file" && !has_fuse() {
            continue;
        }
        let ran = place.run(arguments);
        assert_eq!(ran.code, 2, "{arguments}: {ran:?}");
        assert!(ran.err.contains(told), "{arguments}: {}", ran.err);
    }
    assert_eq!(place.files(), ["file"]);
}

/// Files of many sizes; the same for the same seed.
fn tree(folder: &Path) {
    for i in 0..60usize {
        let inside = folder.join(format!("{}", i % 7));
        std::fs::create_dir_all(&inside).expect("a folder");
        let bytes: Vec<u8> = (0..i * i * 37).map(|at| (at * (i + 3) / 5) as u8).collect();
        std::fs::write(inside.join(format!("file {i}")), bytes).expect("a file");
    }
}

/// What is mounted on a folder is unmounted again, whatever becomes of the test.
struct Unmount<'a>(&'a Path);

impl Drop for Unmount<'_> {
    fn drop(&mut self) {
        if is_mounted(self.0) {
            let _ = Command::new("umount").arg(self.0).status();
        }
    }
}

#[test]
fn ext4_on_an_attached_device() {
    if !has_fuse()
        || !["losetup", "mkfs.ext4", "e2fsck", "mount"]
            .into_iter()
            .all(has)
    {
        return;
    }
    if !Path::new("/dev/loop-control").exists() {
        eprintln!("skipped: no loop devices");
        return;
    }
    let place = Place::new();
    place
        .run("image create a.img --scheme fast --set device.capacity_gib=0.03125")
        .ok();
    let mut attached = Running::new(&place, "attach a.img");
    let device = PathBuf::from(attached.line.split(' ').next().unwrap_or_default());
    let is_block = device
        .metadata()
        .is_ok_and(|found| found.file_type().is_block_device());
    assert!(is_block && device.starts_with("/dev"), "{}", attached.line);
    let name = device.to_str().expect("a path");
    run(&["mkfs.ext4", "-q", name]);
    let folder = place.path("mnt");
    std::fs::create_dir(&folder).expect("a folder");
    let _unmount = Unmount(&folder);
    tree(&place.path("tree"));
    let to = folder.to_str().expect("a path");
    run(&["mount", "-t", "ext4", "-o", "discard", name, to]);
    if is_mounted(&folder) {
        let (from, copied) = (place.path("tree"), folder.join("tree"));
        let (from, copied) = (
            from.to_str().expect("a path"),
            copied.to_str().expect("a path"),
        );
        run(&["cp", "-r", from, copied]);
        run(&["sync", "-f", to]);
        run(&["diff", "-r", from, copied]);
    }
    attached.signal();
    std::thread::sleep(Duration::from_millis(500));
    assert!(attached.is_running(), "a mounted file system is waited for");
    run(&["umount", to]);
    let (code, said) = attached.end();
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains(&format!("still mounted on {to}")), "{said}");
    assert!(!is_mounted(&folder));
    // Once more: what was unmounted is there, and sound.
    let mut attached = Running::new(&place, "attach a.img --json");
    // Before the device goes.
    let _unmount = Unmount(&folder);
    let told: serde_json::Value = serde_json::from_str(&attached.line).expect("JSON");
    let name = told["block_device"].as_str().expect("a path").to_owned();
    run(&["e2fsck", "-f", "-n", &name]);
    run(&["mount", "-t", "ext4", "-o", "ro", &name, to]);
    let from = place.path("tree");
    run(&[
        "diff",
        "-r",
        from.to_str().expect("a path"),
        folder.join("tree").to_str().expect("a path"),
    ]);
    run(&["umount", to]);
    // Whoever detaches it ends it, too.
    assert!(attached.is_running());
    run(&["losetup", "--detach", &name]);
    assert_eq!(attached.end().0, Some(0));
    place.run("image check a.img").ok();
}
