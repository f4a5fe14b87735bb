//! A device of Floatgate as a block device of this machine.

use std::io::{BufRead, BufReader};
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use super::tools::{is_mount_point, line, ran, ran_until};
use crate::process::{Built, built};

/// `floatgate attach` in a process of its own.
#[derive(Debug)]
pub struct Attached {
    child: Option<Child>,
    /// The loop device.
    pub device: PathBuf,
    /// The folder in which the device is shown as a file.
    folder: PathBuf,
}

/// A `floatgate` command, as built for release.
pub fn floatgate(words: &str) -> Command {
    let mut command = Command::new(built(Built::Release, "floatgate"));
    command.args(words.split_whitespace());
    command
}

impl Attached {
    /// Attaches the device in an image.
    pub fn new(image: &Path) -> Result<Self, String> {
        let mut command = floatgate("attach --json");
        command
            .arg(image)
            .stdin(Stdio::null())
            .stdout(Stdio::piped());
        let mut child = command.spawn().map_err(|error| error.to_string())?;
        let mut told = String::new();
        if let Some(out) = child.stdout.take() {
            let _ = BufReader::new(out).read_line(&mut told);
        }
        let told: serde_json::Value = serde_json::from_str(&told).unwrap_or_default();
        let device = told["block_device"].as_str().map(PathBuf::from);
        let Some(device) = device else {
            let _ = child.kill();
            let _ = child.wait();
            return Err("floatgate attach gave no device".into());
        };
        let backed = ran(line("losetup --noheadings --output BACK-FILE").arg(&device))?;
        let folder = Path::new(backed.trim()).parent().map(PathBuf::from);
        let folder = folder.ok_or("a loop device without a file")?;
        let attached = Self {
            child: Some(child),
            device,
            folder,
        };
        let found = std::fs::metadata(&attached.device);
        match found.is_ok_and(|found| found.file_type().is_block_device()) {
            true => Ok(attached),
            false => Err(format!("{} is no block device", attached.device.display())),
        }
    }

    /// Ends it in order.
    pub fn detach(mut self) -> Result<(), String> {
        let Some(mut child) = self.child.take() else {
            return Ok(());
        };
        ran(&mut line(&format!("kill -TERM {}", child.id())))?;
        let status = child.wait().map_err(|error| error.to_string())?;
        match status.success() {
            true => Ok(()),
            false => Err(format!("floatgate attach ended with {status}")),
        }
    }

    /// Ends it at once, in the middle of whatever it does.
    pub fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }

    /// Removes what a process that was killed leaves behind. Nothing may be mounted on the device.
    pub fn clean_up(&self) -> Result<(), String> {
        let (device, folder) = (self.device.display(), self.folder.display());
        let detach = format!("losetup --detach {device}");
        let unmount = format!("fusermount3 -u -z {folder}");
        ran_until(&detach, || !self.is_ours())
            .and_then(|()| ran_until(&unmount, || !is_mount_point(&self.folder)))
            .map_err(|said| format!("after the kill: {said}"))?;
        std::fs::remove_dir(&self.folder).map_err(|error| format!("{folder}: {error}"))
    }

    /// Whether the loop device is still that of our file: once it is free, anybody may take it.
    fn is_ours(&self) -> bool {
        let name = self.device.file_name().unwrap_or_default();
        let place = Path::new("/sys/block").join(name).join("loop/backing_file");
        let file = std::fs::read_to_string(place).unwrap_or_default();
        Path::new(file.trim_end()).parent() == Some(&self.folder)
    }
}

impl Drop for Attached {
    fn drop(&mut self) {
        if self.child.is_some() {
            self.kill();
            let _ = self.clean_up();
        }
    }
}
