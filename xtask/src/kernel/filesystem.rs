//! File systems of the kernel on an attached device. Nothing is written to a folder that is not known to be mounted.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::tools::{is_mount_point, line, ran, ran_until};

/// A file system.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FileSystem {
    Ext4,
    Xfs,
    Btrfs,
}

impl FileSystem {
    pub const ALL: [Self; 3] = [Self::Ext4, Self::Xfs, Self::Btrfs];

    pub fn name(self) -> &'static str {
        match self {
            Self::Ext4 => "ext4",
            Self::Xfs => "xfs",
            Self::Btrfs => "btrfs",
        }
    }

    /// MiB of a device: the least that its mkfs takes, and some.
    pub fn device_mib(self) -> u32 {
        match self {
            Self::Ext4 => 128,
            Self::Xfs => 320,
            Self::Btrfs => 256,
        }
    }

    pub fn make(self, device: &Path) -> Result<(), String> {
        let device = device.display();
        let words = match self {
            Self::Ext4 => format!("mkfs.ext4 -q -F {device}"),
            Self::Xfs => format!("mkfs.xfs -q -f {device}"),
            Self::Btrfs => format!("mkfs.btrfs -q -f {device}"),
        };
        ran(&mut line(&words)).map(drop)
    }

    /// Whether the file system is whole: it was unmounted, so there is nothing to repair.
    pub fn check(self, device: &Path) -> Result<(), String> {
        let device = device.display();
        let words = match self {
            Self::Ext4 => format!("e2fsck -f -n {device}"),
            Self::Xfs => format!("xfs_repair -n {device}"),
            Self::Btrfs => format!("btrfs check --readonly {device}"),
        };
        ran(&mut line(&words)).map(drop)
    }
}

/// A mounted file system.
#[derive(Debug)]
pub struct Mounted {
    /// Where it is mounted.
    pub folder: PathBuf,
    /// The number by which the kernel tells it from others.
    number: u64,
}

impl Mounted {
    /// Mounts it in a folder made for it.
    pub fn new(kind: FileSystem, device: &Path, folder: &Path) -> Result<Self, String> {
        let told = |error: std::io::Error| format!("{}: {error}", folder.display());
        std::fs::create_dir_all(folder).map_err(told)?;
        let around = folder.parent().unwrap_or(folder);
        let around = around.metadata().map_err(told)?.dev();
        let words = format!("mount -t {} -o discard", kind.name());
        ran(line(&words).arg(device).arg(folder))?;
        let mounted = Self {
            folder: folder.into(),
            number: folder.metadata().map_err(told)?.dev(),
        };
        match mounted.number != around {
            true => mounted.guard().map(|()| mounted),
            false => Err(format!("{} is not mounted", folder.display())),
        }
    }

    /// Refuses if the folder is that of another file system.
    pub fn guard(&self) -> Result<(), String> {
        ran(line("mountpoint -q").arg(&self.folder))?;
        match self.is_there() {
            true => Ok(()),
            false => Err(format!("{} is another file system", self.folder.display())),
        }
    }

    /// The same without another process, for who writes often.
    pub fn is_there(&self) -> bool {
        let found = self.folder.metadata();
        found.is_ok_and(|found| found.dev() == self.number)
    }

    /// Unmounts it.
    pub fn unmount(self) -> Result<(), String> {
        let outcome = ran(line("umount").arg(&self.folder)).map(drop);
        std::mem::drop(self);
        outcome
    }
}

impl Mounted {
    /// Unmounts it after its disk has gone. What the kernel says to that is its own affair, but nothing may stay mounted:
    /// the next one would be mounted on top of it.
    pub fn unmount_without_disk(self) -> Result<(), String> {
        let words = format!("umount {}", self.folder.display());
        let unmounted = ran_until(&words, || !is_mount_point(&self.folder));
        unmounted.map_err(|said| format!("after the kill: {said}"))
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        if is_mount_point(&self.folder) {
            let _ = ran(line("umount -l").arg(&self.folder));
        }
    }
}
