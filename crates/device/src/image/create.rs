//! Making images.

use std::fs::File;
use std::io::ErrorKind;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use floatgate_core::report::Memory;
use floatgate_core::rng::SplitMix64;
use floatgate_core::{Ftl, Lpn};
use floatgate_core::{Geometry, ProgramOrder, Refusal};
use rustix::fs::{AtFlags, CWD, Mode, OFlags, RenameFlags, linkat, renameat_with};
use rustix::io::Errno;

use super::disk::{AnyDisk, Disk};
use super::format::{HEADER_BYTES, Header, Layout};
use super::memory::MemoryDisk;
use super::open::powered;
use super::{Durability, ImageError, ImageInfo, ImageNand, info, io};
use crate::block::{BlockDevice, options_from_text};
use crate::error::DeviceError;
use crate::power::Powered;
use crate::spares::pairs::PairGuard;
use crate::spares::{Spares, SparesOptions};

/// What to create.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImageSpec {
    /// Dies.
    pub dies: u32,
    /// Blocks a die as the scheme sees them; spare blocks come on top.
    pub blocks_per_die: u32,
    /// Pages a block.
    pub pages_per_block: u32,
    /// Bytes a page.
    pub page_bytes: u32,
    /// Pages that the host sees.
    pub logical_pages: u64,
    /// Program rule of the cells.
    pub program_order: ProgramOrder,
    /// Spare blocks, paired pages, wear levelling.
    pub spares: SparesOptions,
    /// Key of the scheme.
    pub scheme: String,
    /// Its options, `key=value` lines.
    pub options: String,
    /// Name or parameters of the chip model, as text; may be empty.
    pub part: String,
    /// Erases that the chip is rated for, 0 if not known.
    pub erase_limit: u32,
}

impl ImageSpec {
    /// A small device of the simplest scheme, `page`: 2 KiB a page, eight pages a block, flash in plenty. For tests and
    /// examples, which name what they need otherwise.
    pub fn small(logical_pages: u64) -> Self {
        let pages_per_block = 8;
        let blocks = logical_pages.div_ceil(pages_per_block.into());
        Self {
            dies: 1,
            blocks_per_die: blocks as u32 + 24,
            pages_per_block,
            page_bytes: 2048,
            logical_pages,
            program_order: ProgramOrder::Any,
            spares: SparesOptions {
                spare_blocks: 2,
                pair_guard: PairGuard::Off,
                ..SparesOptions::default()
            },
            scheme: "page".into(),
            options: String::new(),
            part: String::new(),
            erase_limit: 0,
        }
    }

    /// The header of such an image of a scheme: one with tables in phase-change memory gets a region for it.
    ///
    /// # Errors
    /// As [`ImageSpec::header`].
    pub fn header_for<S: Ftl>(&self, options: &S::Options) -> Result<Header, Refusal> {
        let mut header = self.header()?;
        let tables = S::tables(&header.geometry, options);
        header.pcm = tables.iter().any(|table| table.memory == Memory::Pcm);
        Ok(header)
    }

    /// The header of such an image, without a region for phase-change memory.
    ///
    /// # Errors
    /// A refusal that names the key at fault.
    pub fn header(&self) -> Result<Header, Refusal> {
        let blocks = self
            .blocks_per_die
            .checked_add(self.spares.reserved_blocks())
            .ok_or_else(|| Refusal::new("spare_blocks", "too many spare blocks".into()))?;
        let geometry = Geometry::new(
            self.dies,
            blocks,
            self.pages_per_block,
            self.logical_pages,
            self.program_order,
        )?;
        let now = std::time::SystemTime::now()
            .duration_since(std::time::UNIX_EPOCH)
            .unwrap_or_default();
        let header = Header {
            clean: true,
            exact: true,
            sequence: 1,
            durable: 0,
            pcm: false,
            geometry,
            page_bytes: self.page_bytes,
            spares: self.spares,
            created: now.as_secs(),
            uuid: uuid(now.as_nanos() as u64 ^ u64::from(std::process::id()) << 40),
            erase_limit: self.erase_limit,
            scheme: self.scheme.clone(),
            part: self.part.clone(),
            options: self.options.clone(),
        };
        header.check()?;
        Ok(header)
    }
}

fn uuid(seed: u64) -> [u8; 16] {
    let mut rng = SplitMix64::new(seed);
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&rng.next().to_le_bytes());
    bytes[8..].copy_from_slice(&rng.next().to_le_bytes());
    bytes
}

impl ImageNand {
    /// Creates the file of an erased chip and opens it. An existing file is left alone.
    ///
    /// # Errors
    /// If the file exists or cannot be created, or the header cannot hold the values.
    pub fn create(
        path: &Path,
        header: &Header,
        durability: Durability,
    ) -> Result<Self, DeviceError> {
        header.check()?;
        let file = File::options().write(true).create_new(true).open(path);
        let file = file.map_err(|e| io("create", path, e))?;
        if let Err(error) = fill_file(&file, header) {
            // An incomplete file is removed.
            let _ = std::fs::remove_file(path);
            return Err(io("write", path, error).into());
        }
        drop(file);
        Ok(Self::open(path, durability)?)
    }
}

fn fill_file(file: &File, header: &Header) -> std::io::Result<()> {
    file.set_len(Layout::of(header).file_bytes)?;
    fill(file, header)?;
    file.sync_all()
}

fn fill<D: Disk>(disk: &D, header: &Header) -> std::io::Result<()> {
    for copy in 0..2 {
        let sequence = header.sequence + copy;
        let header = Header {
            sequence,
            ..header.clone()
        };
        disk.write(&header.encode(), sequence % 2 * HEADER_BYTES as u64)?;
    }
    Ok(())
}

/// Makes an image with a fresh device of the scheme. The file gets its name only when it is complete.
///
/// # Errors
/// A refusal if scheme, options and shape do not fit together; then no file is left behind.
pub fn create<S: Ftl<Page = Lpn>>(path: &Path, spec: &ImageSpec) -> Result<ImageInfo, DeviceError> {
    let options = options_from_text::<S>(&spec.options)?;
    S::check_levelling(&options, spec.spares.wear_leveling)?;
    let header = spec.header_for::<S>(&options)?;
    if path.symlink_metadata().is_ok() {
        return Err(io("create", path, ErrorKind::AlreadyExists.into()).into());
    }
    let failed = |error| io("create", path, error);
    let number = u64::from_le_bytes(header.uuid[..8].try_into().expect("8"));
    let unnamed = Unnamed::new(path, number).map_err(failed)?;
    let file = unnamed.file.try_clone().map_err(failed)?;
    fill_file(&file, &header).map_err(|error| io("write", path, error))?;
    let disk: AnyDisk = Arc::new(file);
    let nand = ImageNand::open_on(disk, path, Durability::Machine)?;
    let spares = Spares::format(powered(nand), spec.spares)?;
    let device = BlockDevice::<S, _>::create(spares, &options)?;
    device.into_nand().into_nand().close()?;
    unnamed.name(path).map_err(failed)?;
    Ok(info(path)?)
}

/// A fresh device of the scheme in memory. Nothing waits for a disk, since there is none.
///
/// # Errors
/// As [`create`].
pub fn create_in_memory<S: Ftl<Page = Lpn>>(
    spec: &ImageSpec,
) -> Result<BlockDevice<S, Spares<Powered<ImageNand>>>, DeviceError> {
    let options = options_from_text::<S>(&spec.options)?;
    S::check_levelling(&options, spec.spares.wear_leveling)?;
    let header = spec.header_for::<S>(&options)?;
    let path = Path::new("memory");
    let disk = MemoryDisk::new(Layout::of(&header).file_bytes).and_then(|disk| {
        fill(&disk, &header)?;
        Ok(disk)
    });
    let disk = disk.map_err(|error| io("create", path, error))?;
    let disk: AnyDisk = Arc::new(disk);
    let nand = ImageNand::open_on(disk, path, Durability::Process)?;
    BlockDevice::create(Spares::format(powered(nand), spec.spares)?, &options)
}

/// A file without a name: the end of the process removes it. Where the file system has no such files it has a temporary
/// name, which the end of the process leaves behind.
pub(crate) struct Unnamed {
    pub(crate) file: File,
    temporary: Option<PathBuf>,
}

impl Unnamed {
    pub(crate) fn new(path: &Path, number: u64) -> std::io::Result<Self> {
        let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
        let mode = Mode::from_raw_mode(0o666);
        match rustix::fs::open(folder_of(path), flags, mode) {
            Ok(file) => {
                return Ok(Self {
                    file: file.into(),
                    temporary: None,
                });
            }
            Err(Errno::OPNOTSUPP | Errno::ISDIR | Errno::INVAL) => {}
            Err(error) => return Err(error.into()),
        }
        let mut name = path.file_name().unwrap_or_default().to_os_string();
        name.push(format!(".{number:016x}.tmp"));
        let temporary = path.with_file_name(name);
        let options = File::options()
            .read(true)
            .write(true)
            .create_new(true)
            .open(&temporary);
        Ok(Self {
            file: options?,
            temporary: Some(temporary),
        })
    }

    /// Gives the file its name, unless that was taken in the meantime. The name survives a crash of the machine.
    pub(crate) fn name(mut self, path: &Path) -> std::io::Result<()> {
        match self.temporary.take() {
            None => {
                let open = format!("/proc/self/fd/{}", self.file.as_raw_fd());
                linkat(CWD, open, CWD, path, AtFlags::SYMLINK_FOLLOW)?;
            }
            Some(temporary) => {
                let named = rename_new(&temporary, path);
                if named.is_err() {
                    self.temporary = Some(temporary);
                }
                named?;
            }
        }
        File::open(folder_of(path))?.sync_all()
    }
}

impl Drop for Unnamed {
    fn drop(&mut self) {
        if let Some(temporary) = &self.temporary {
            let _ = std::fs::remove_file(temporary);
        }
    }
}

pub(crate) fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

/// Renames a file without ever replacing another.
fn rename_new(from: &Path, to: &Path) -> std::io::Result<()> {
    match renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE) {
        // Not every file system supports the flag; a second name is never given to two files either.
        Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => {
            std::fs::hard_link(from, to)?;
            std::fs::remove_file(from)
        }
        outcome => Ok(outcome?),
    }
}

impl ImageError {
    /// Whether the file exists already.
    pub fn is_existing_file(&self) -> bool {
        matches!(self, Self::Io { source, .. } if source.kind() == std::io::ErrorKind::AlreadyExists)
    }
}
