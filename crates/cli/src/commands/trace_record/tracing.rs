//! A tracing group of the kernel, gone when this is dropped.

use std::cell::RefCell;
use std::fs::File;
use std::io::{ErrorKind, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use super::said;
use crate::errors::{Outcome, Problem};

const ROOT: &str = "/sys/kernel/tracing";
const EVENT: &str = "events/block/block_rq_issue";

/// Listens to the requests of one disk.
pub struct Tracing {
    folder: PathBuf,
    /// What the kernel has for us, and the beginning of a line whose end has not come.
    pipe: Option<RefCell<(File, Vec<u8>)>>,
}

impl Tracing {
    pub fn new((major, minor): (u32, u32), buffer_mib: u32) -> Outcome<Self> {
        if !Path::new(ROOT).join(EVENT).exists() {
            let text = format!("{ROOT}/{EVENT} is not there");
            let help = "mount -t tracefs none /sys/kernel/tracing; the kernel needs CONFIG_BLK_DEV_IO_TRACE";
            return Err(Problem::new(text).help(help));
        }
        let name = format!("floatgate.{}", std::process::id());
        let folder = Path::new(ROOT).join("instances").join(name);
        std::fs::create_dir(&folder)
            .map_err(|error| Problem::new(format!("{}: {error}", folder.display())))?;
        let mut tracing = Self { folder, pipe: None };
        tracing.put(
            "buffer_size_kb",
            &(u64::from(buffer_mib) * 1024).to_string(),
        )?;
        tracing.put("trace_clock", "mono")?;
        // The kernel's own way to put the two numbers into one.
        let disk = u64::from(major) << 20 | u64::from(minor);
        tracing.put(&format!("{EVENT}/filter"), &format!("dev == {disk}"))?;
        tracing.put(&format!("{EVENT}/enable"), "1")?;
        let pipe = tracing.folder.join("trace_pipe");
        let nonblocking = rustix::fs::OFlags::NONBLOCK.bits() as i32;
        let file = File::options()
            .read(true)
            .custom_flags(nonblocking)
            .open(&pipe);
        let file = file.map_err(|error| Problem::new(format!("{}: {error}", pipe.display())))?;
        tracing.pipe = Some(RefCell::new((file, Vec::new())));
        Ok(tracing)
    }

    fn put(&self, name: &str, text: &str) -> Outcome<()> {
        let path = self.folder.join(name);
        std::fs::write(&path, text)
            .map_err(|error| Problem::new(format!("{}: {text}: {error}", path.display())))
    }

    /// All whole lines that have come.
    pub fn read(&self) -> Outcome<String> {
        let Some(pipe) = &self.pipe else {
            return Ok(String::new());
        };
        let (file, bytes) = &mut *pipe.borrow_mut();
        let mut buffer = [0; 65536];
        loop {
            match file.read(&mut buffer) {
                Ok(0) => break,
                Ok(n) => bytes.extend(&buffer[..n]),
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(Problem::new(format!("the kernel's trace: {error}"))),
            }
            // So that a disk that never rests does not fill the memory.
            if bytes.len() > 1 << 22 {
                break;
            }
        }
        let end = bytes.iter().rposition(|&byte| byte == b'\n');
        let lines: Vec<u8> = bytes.drain(..end.map_or(0, |end| end + 1)).collect();
        Ok(String::from_utf8_lossy(&lines).into_owned())
    }

    /// Nothing more is heard; what was can be read.
    pub fn stop(&self) -> Outcome<()> {
        self.put("tracing_on", "0")
    }

    /// Requests that the kernel had no room for.
    pub fn lost(&self) -> u64 {
        let Ok(processors) = std::fs::read_dir(self.folder.join("per_cpu")) else {
            return 0;
        };
        let stats = processors
            .flatten()
            .filter_map(|entry| said(&entry.path().join("stats")).ok());
        let is_lost = |line: &&str| {
            ["overrun:", "commit overrun:", "dropped events:"]
                .iter()
                .any(|name| line.starts_with(name))
        };
        let count = |text: String| {
            let lines = text.lines().filter(is_lost);
            let numbers = lines.filter_map(|line| line.rsplit(' ').next()?.parse::<u64>().ok());
            numbers.sum::<u64>()
        };
        stats.map(count).sum()
    }
}

impl Drop for Tracing {
    fn drop(&mut self) {
        // A group with an open pipe cannot be removed.
        self.pipe = None;
        let _ = self.put(&format!("{EVENT}/enable"), "0");
        let _ = std::fs::remove_dir(&self.folder);
    }
}
