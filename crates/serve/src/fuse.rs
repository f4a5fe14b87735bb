//! The device as a file: a folder in which there is one file of the device's size, through FUSE.
//!
//! Nothing is kept in the kernel's page cache (the file is opened for direct I/O whether its user asks for that or not):
//! what is written is the device's when the write returns, and what other front ends write is seen at once. The price is
//! that the file cannot be mapped shared.

use std::cell::RefCell;
use std::ffi::OsStr;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime};

use fuser::{
    BsdFileFlags, Config, Errno, FileAttr, FileHandle, FileType, Filesystem, FopenFlags,
    Generation, INodeNo, InitFlags, KernelConfig, LockOwner, MountOption, OpenAccMode, OpenFlags,
    ReplyAttr, ReplyCreate, ReplyData, ReplyDirectory, ReplyEmpty, ReplyEntry, ReplyLseek,
    ReplyOpen, ReplyStatfs, ReplyWrite, Request, Session, TimeOrNow, WriteFlags,
};
use rustix::io::Errno as System;
use rustix::mount::{UnmountFlags, unmount};
use rustix::process::{configure_io_flusher_behavior, getegid, geteuid};

use crate::shared::{Export, Failure, Shared};

/// Name of the file.
pub const FILE_NAME: &str = "device";

const FILE: INodeNo = INodeNo(2);
/// Nothing of the folder ever changes, so the kernel need not ask again.
const FOR_LONG: Duration = Duration::from_secs(24 * 60 * 60);
/// Bytes of the largest write; the kernel has no larger ones.
const WRITE_BYTES_MAX: u32 = 1 << 20;
/// Bytes of a look for holes: how long the lock is held for one.
const LOOK_BYTES: u32 = 1 << 26;
/// Requests under way at a time. The device does one; the others are read or answered meanwhile, and one flush serves
/// all that wait for one.
const THREADS: usize = 4;
/// What an open file that can be written has for a handle.
const WRITABLE: FileHandle = FileHandle(1);

// As Linux numbers them.
const O_DSYNC: i32 = 0o10_000;
const SEEK_DATA: i32 = 3;
const SEEK_HOLE: i32 = 4;
const KEEP_SIZE: i32 = 1;
const PUNCH_HOLE: i32 = 2;
const ZERO_RANGE: i32 = 16;

thread_local! {
    /// What was read last by this thread.
    static BUFFER: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// A folder that shows the device until it is unmounted, by whomever.
#[derive(Debug)]
pub struct Mounted {
    folder: std::path::PathBuf,
    thread: JoinHandle<io::Result<()>>,
}

impl Mounted {
    /// Shows the device in a folder.
    ///
    /// # Errors
    /// If the system has no FUSE, or does not allow it.
    pub fn new(shared: Arc<Shared>, folder: &Path) -> io::Result<Self> {
        let export = shared.export();
        let mut config = Config::default();
        config.mount_options = vec![
            MountOption::FSName("floatgate".into()),
            MountOption::Subtype("floatgate".into()),
            MountOption::DefaultPermissions,
            MountOption::NoExec,
        ];
        if export.is_read_only {
            config.mount_options.push(MountOption::RO);
        }
        config.n_threads = Some(THREADS);
        let folder = folder.canonicalize()?;
        // A file system on a loop device waits for this process when memory is short: whoever serves it must not wait
        // for that file system in turn. Threads begun from here on inherit it. Only root may, and only root attaches.
        let _ = configure_io_flusher_behavior(true);
        let session = Session::new(Shown::new(shared, export), &folder, &config)?;
        let thread = std::thread::Builder::new().spawn(move || session.run())?;
        Ok(Self { folder, thread })
    }

    /// Whether it has been unmounted.
    pub fn is_over(&self) -> bool {
        self.thread.is_finished()
    }

    /// Unmounts it; false if somebody has the file open or stands in the folder.
    ///
    /// # Errors
    /// If the system does not allow it.
    pub fn try_unmount(&self) -> io::Result<bool> {
        if self.is_over() {
            // Unmounted by somebody, unless the connection has failed: then the kernel keeps a folder that answers to
            // nobody, and only then it says so.
            let left = self.folder.metadata();
            if left.is_err_and(|error| error.kind() == io::ErrorKind::NotConnected) {
                unmount(&self.folder, UnmountFlags::DETACH)?;
            }
            return Ok(true);
        }
        match unmount(&self.folder, UnmountFlags::empty()) {
            Ok(()) => Ok(true),
            Err(System::BUSY) => Ok(false),
            // Somebody else was quicker.
            Err(System::INVAL | System::NOENT) => Ok(true),
            // Who is not root has a helper for it, which only says whether it worked.
            Err(System::PERM) => {
                let mut helper = std::process::Command::new("fusermount3");
                let ran = helper.arg("-u").arg("--").arg(&self.folder).output()?;
                Ok(ran.status.success())
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Waits until nothing is asked any more.
    ///
    /// # Errors
    /// What ended it, if it was not unmounted.
    pub fn join(self) -> io::Result<()> {
        let ended = self.thread.join();
        ended.unwrap_or_else(|_| Err(io::Error::other("a request failed in a way that is a bug")))
    }
}

/// The folder and its file.
struct Shown {
    shared: Arc<Shared>,
    export: Export,
    since: SystemTime,
    owner: (u32, u32),
}

impl Shown {
    fn new(shared: Arc<Shared>, export: Export) -> Self {
        Self {
            shared,
            export,
            since: SystemTime::now(),
            owner: (geteuid().as_raw(), getegid().as_raw()),
        }
    }

    fn attributes(&self, ino: INodeNo) -> Option<FileAttr> {
        let (kind, perm, size) = match ino {
            INodeNo::ROOT => (FileType::Directory, 0o500, 0),
            FILE if self.export.is_read_only => (FileType::RegularFile, 0o400, self.export.bytes),
            FILE => (FileType::RegularFile, 0o600, self.export.bytes),
            _ => return None,
        };
        Some(FileAttr {
            ino,
            size,
            blocks: size / 512,
            atime: self.since,
            mtime: self.since,
            ctime: self.since,
            crtime: self.since,
            kind,
            perm,
            nlink: 1,
            uid: self.owner.0,
            gid: self.owner.1,
            rdev: 0,
            blksize: self.export.page_bytes,
            flags: 0,
        })
    }

    /// So many bytes of a range as lie in the device.
    fn within(&self, offset: u64, bytes: u64) -> u64 {
        bytes.min(self.export.bytes.saturating_sub(offset))
    }

    /// Writes what lies in the device, as a disk does; how much that was.
    fn write(&self, offset: u64, data: &[u8], fua: bool) -> Result<u32, Failure> {
        let bytes = self.within(offset, data.len() as u64);
        if bytes == 0 && !data.is_empty() {
            return Err(Failure::NoSpace);
        }
        let data = &data[..bytes as usize];
        self.shared.write_any(offset, data, fua)?;
        Ok(bytes as u32)
    }

    /// `fallocate`: of what it can do, that which makes zeroes. A hole that is punched must read as zeroes, so it is more
    /// than a trim, which leaves what covers no page whole.
    fn allocate(&self, offset: u64, bytes: u64, mode: i32) -> Result<(), Failure> {
        let end = offset.checked_add(bytes).ok_or(Failure::Invalid)?;
        if end > self.export.bytes {
            return Err(Failure::NoSpace);
        }
        match mode & !KEEP_SIZE {
            PUNCH_HOLE => self.shared.zero_any(offset, bytes, true),
            ZERO_RANGE => self.shared.zero_any(offset, bytes, false),
            _ => Err(Failure::Unsupported),
        }
    }

    /// Where the next hole, or the next data, begins; none if there is none.
    fn seek(&self, offset: u64, for_hole: bool) -> Result<Option<u64>, Failure> {
        let end = self.export.bytes;
        if offset >= end {
            return Ok(None);
        }
        let mut extents = Vec::with_capacity(2);
        let mut at = offset;
        while at < end {
            let look = self.within(at, LOOK_BYTES.into()) as u32;
            self.shared.extents(at, look, 1, &mut extents)?;
            match extents.first() {
                Some(extent) if extent.is_hole != for_hole => at += u64::from(extent.bytes),
                _ => return Ok(Some(at)),
            }
        }
        // The end of a file is a hole.
        Ok(for_hole.then_some(end))
    }
}

fn number(failure: Failure) -> Errno {
    Errno::from_i32(failure as i32)
}

fn answer(reply: ReplyEmpty, outcome: Result<(), Failure>) {
    match outcome {
        Ok(()) => reply.ok(),
        Err(failure) => reply.error(number(failure)),
    }
}

impl Filesystem for Shown {
    fn init(&mut self, _: &Request, config: &mut KernelConfig) -> io::Result<()> {
        // A kernel that has no such things does without.
        let _ = config.add_capabilities(InitFlags::FUSE_ASYNC_DIO);
        let _ = config.set_max_write(WRITE_BYTES_MAX);
        let _ = config.set_max_background(64);
        Ok(())
    }

    fn lookup(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        match self.attributes(FILE) {
            Some(file) if parent == INodeNo::ROOT && name == FILE_NAME => {
                reply.entry(&FOR_LONG, &file, Generation(0));
            }
            _ => reply.error(Errno::ENOENT),
        }
    }

    fn getattr(&self, _: &Request, ino: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        match self.attributes(ino) {
            Some(found) => reply.attr(&FOR_LONG, &found),
            None => reply.error(Errno::ENOENT),
        }
    }

    /// The size stays what it is. Times may be set, and are not kept.
    fn setattr(
        &self,
        _: &Request,
        ino: INodeNo,
        mode: Option<u32>,
        uid: Option<u32>,
        gid: Option<u32>,
        size: Option<u64>,
        _: Option<TimeOrNow>,
        _: Option<TimeOrNow>,
        _: Option<SystemTime>,
        _: Option<FileHandle>,
        _: Option<SystemTime>,
        _: Option<SystemTime>,
        _: Option<SystemTime>,
        _: Option<BsdFileFlags>,
        reply: ReplyAttr,
    ) {
        let is_refused = mode.is_some() || uid.is_some() || gid.is_some();
        match self.attributes(ino) {
            Some(found) if size.is_some_and(|size| size != found.size) => {
                reply.error(Errno::EINVAL);
            }
            Some(found) if !is_refused => reply.attr(&FOR_LONG, &found),
            _ => reply.error(Errno::EPERM),
        }
    }

    fn mknod(&self, _: &Request, _: INodeNo, _: &OsStr, _: u32, _: u32, _: u32, reply: ReplyEntry) {
        reply.error(Errno::EPERM);
    }

    fn create(
        &self,
        _: &Request,
        _: INodeNo,
        _: &OsStr,
        _: u32,
        _: u32,
        _: i32,
        reply: ReplyCreate,
    ) {
        reply.error(Errno::EPERM);
    }

    fn mkdir(&self, _: &Request, _: INodeNo, _: &OsStr, _: u32, _: u32, reply: ReplyEntry) {
        reply.error(Errno::EPERM);
    }

    fn unlink(&self, _: &Request, _: INodeNo, _: &OsStr, reply: ReplyEmpty) {
        reply.error(Errno::EPERM);
    }

    fn open(&self, _: &Request, ino: INodeNo, flags: OpenFlags, reply: ReplyOpen) {
        let is_read = flags.acc_mode() == OpenAccMode::O_RDONLY;
        if ino != FILE {
            return reply.error(Errno::ENOENT);
        }
        if self.export.is_read_only && !is_read {
            return reply.error(Errno::EROFS);
        }
        let handle = if is_read { FileHandle(0) } else { WRITABLE };
        let flags = FopenFlags::FOPEN_DIRECT_IO | FopenFlags::FOPEN_PARALLEL_DIRECT_WRITES;
        reply.opened(handle, flags);
    }

    fn read(
        &self,
        _: &Request,
        _: INodeNo,
        _: FileHandle,
        offset: u64,
        bytes: u32,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyData,
    ) {
        let bytes = self.within(offset, bytes.into()) as usize;
        if bytes == 0 {
            return reply.data(&[]);
        }
        BUFFER.with_borrow_mut(|buffer| match self.shared.read_any(offset, bytes, buffer) {
            Ok(data) => reply.data(data),
            Err(failure) => reply.error(number(failure)),
        });
    }

    fn write(
        &self,
        _: &Request,
        _: INodeNo,
        _: FileHandle,
        offset: u64,
        data: &[u8],
        _: WriteFlags,
        flags: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        // O_SYNC is O_DSYNC and more.
        match self.write(offset, data, flags.0 & O_DSYNC != 0) {
            Ok(bytes) => reply.written(bytes),
            Err(failure) => reply.error(number(failure)),
        }
    }

    /// At a `close`: who wrote hears of a failure while it can still be told.
    fn flush(&self, _: &Request, _: INodeNo, handle: FileHandle, _: LockOwner, reply: ReplyEmpty) {
        match handle {
            WRITABLE => answer(reply, self.shared.flush()),
            _ => reply.ok(),
        }
    }

    fn fsync(&self, _: &Request, _: INodeNo, _: FileHandle, _: bool, reply: ReplyEmpty) {
        answer(reply, self.shared.flush());
    }

    fn fsyncdir(&self, _: &Request, _: INodeNo, _: FileHandle, _: bool, reply: ReplyEmpty) {
        reply.ok();
    }

    fn readdir(
        &self,
        _: &Request,
        _: INodeNo,
        _: FileHandle,
        offset: u64,
        mut reply: ReplyDirectory,
    ) {
        let entries = [
            (INodeNo::ROOT, FileType::Directory, "."),
            (INodeNo::ROOT, FileType::Directory, ".."),
            (FILE, FileType::RegularFile, FILE_NAME),
        ];
        for ((ino, kind, name), next) in entries.into_iter().zip(1..).skip(offset as usize) {
            if reply.add(ino, next, kind, name) {
                break;
            }
        }
        reply.ok();
    }

    /// The block size tells a loop device what a discard must cover to be one.
    fn statfs(&self, _: &Request, _: INodeNo, reply: ReplyStatfs) {
        let page_bytes = self.export.page_bytes;
        let pages = self.export.bytes / u64::from(page_bytes);
        reply.statfs(pages, 0, 0, 1, 0, page_bytes, 255, page_bytes);
    }

    fn fallocate(
        &self,
        _: &Request,
        _: INodeNo,
        _: FileHandle,
        offset: u64,
        bytes: u64,
        mode: i32,
        reply: ReplyEmpty,
    ) {
        answer(reply, self.allocate(offset, bytes, mode));
    }

    fn lseek(
        &self,
        _: &Request,
        _: INodeNo,
        _: FileHandle,
        offset: i64,
        whence: i32,
        reply: ReplyLseek,
    ) {
        let for_hole = match whence {
            SEEK_DATA => false,
            SEEK_HOLE => true,
            // The kernel knows the others without asking.
            _ => return reply.error(Errno::EINVAL),
        };
        match self.seek(offset.max(0) as u64, for_hole) {
            Ok(Some(found)) => reply.offset(found as i64),
            Ok(None) => reply.error(Errno::ENXIO),
            Err(failure) => reply.error(number(failure)),
        }
    }
}
