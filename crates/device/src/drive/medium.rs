//! What a mounted device lies in: a file, or memory. From there it is mounted again after a power cut;
//! it is copied, and replaced by a copy.

use std::fs::File;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::{Drive, Mounted};
use crate::error::DeviceError;
use crate::image::create::{Unnamed, folder_of};
use crate::image::disk::{AnyDisk, Disk};
use crate::image::memory::MemoryDisk;
use crate::image::{Durability, ImageError, ImageNand};

/// Bytes of a piece of a copy.
const PIECE_BYTES: u64 = 1 << 20;

/// A handle of what a device lies in. It keeps the image locked while no device is mounted.
#[derive(Debug)]
pub struct Medium {
    disk: AnyDisk,
    durability: Durability,
    mount: fn(ImageNand) -> Mounted,
}

impl Medium {
    /// That of a chip; `mount` is for its scheme.
    pub fn new(nand: &ImageNand, mount: fn(ImageNand) -> Mounted) -> Self {
        Self {
            disk: AnyDisk::clone(nand.disk()),
            durability: nand.durability(),
            mount,
        }
    }

    /// Mounts the device as it is found. Of the device before nothing may be used any more.
    ///
    /// # Errors
    /// As [`crate::image::open`].
    pub fn mount(&self) -> Mounted {
        let disk = AnyDisk::clone(&self.disk);
        let nand = ImageNand::open_on(disk, Path::new("the image"), self.durability)?;
        (self.mount)(nand)
    }

    /// Copies all of it to a new file, which gets its name when it is complete; returns the bytes of the file.
    ///
    /// # Errors
    /// If there is a file of that name, or the file system reports an error.
    pub fn copy_to(&self, path: &Path) -> Result<u64, DeviceError> {
        if path.symlink_metadata().is_ok() {
            return Err(failed("create", path, ErrorKind::AlreadyExists.into()));
        }
        let number = u64::from(std::process::id()) << 32 | 0x5A;
        let copy = || {
            let unnamed = Unnamed::new(path, number)?;
            let bytes = copy_to_file(&self.disk, &unnamed.file)?;
            unnamed.file.sync_all()?;
            unnamed.name(path)?;
            Ok(bytes)
        };
        copy().map_err(|error| failed("write", path, error))
    }

    /// Mounts a copy of an image that was made of this device. If it lies in a file, the copy takes the place of `image`
    /// once it was mounted; until then, and if that fails, nothing is changed.
    ///
    /// # Errors
    /// If the file is not an image of a device like this one, or the file system reports an error.
    pub fn replaced_by(
        &self,
        from: &Path,
        image: Option<&Path>,
        is_alike: impl FnOnce(&dyn Drive) -> Result<(), DeviceError>,
    ) -> Mounted {
        let source = File::open(from).map_err(|error| failed("open", from, error))?;
        let Some(image) = image else {
            let copy = source.bytes().and_then(|bytes| {
                let copy = MemoryDisk::new(bytes)?;
                copy_data(&source, &copy).map(|_| copy)
            });
            let copy = copy.map_err(|error| failed("read", from, error))?;
            let copy: AnyDisk = Arc::new(copy);
            let nand = ImageNand::open_on(copy, from, self.durability)?;
            let drive = (self.mount)(nand)?;
            is_alike(&*drive)?;
            return Ok(drive);
        };
        let copy = Temporary::beside(image).map_err(|error| failed("create", image, error))?;
        let written = copy_to_file(&source, &copy.file).and_then(|_| copy.file.sync_all());
        written.map_err(|error| failed("write", &copy.path, error))?;
        // Opening it by its name locks it, before anybody knows that name for an image.
        let drive = (self.mount)(ImageNand::open(&copy.path, self.durability)?)?;
        is_alike(&*drive)?;
        copy.take_the_place_of(image)
            .map_err(|error| failed("replace", image, error))?;
        Ok(drive)
    }
}

fn failed(doing: &'static str, path: &Path, source: io::Error) -> DeviceError {
    let path = path.to_path_buf();
    ImageError::Io {
        doing,
        path,
        source,
    }
    .into()
}

/// A file that is removed unless it takes another one's place.
struct Temporary {
    file: File,
    path: PathBuf,
    is_placed: bool,
}

impl Temporary {
    fn beside(image: &Path) -> io::Result<Self> {
        let mut name = image.file_name().unwrap_or_default().to_os_string();
        name.push(format!(".{}.tmp", std::process::id()));
        let path = image.with_file_name(name);
        let file = File::options().write(true).create_new(true).open(&path)?;
        file.set_permissions(image.metadata()?.permissions())?;
        Ok(Self {
            file,
            path,
            is_placed: false,
        })
    }

    fn take_the_place_of(mut self, image: &Path) -> io::Result<()> {
        std::fs::rename(&self.path, image)?;
        self.is_placed = true;
        File::open(folder_of(image))?.sync_all()
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        if !self.is_placed {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

/// Copies to an empty file; returns the length.
fn copy_to_file(from: &impl Disk, to: &File) -> io::Result<u64> {
    to.set_len(from.bytes()?)?;
    copy_data(from, to)
}

/// Copies what is not a hole to zeroes of the same length; returns that.
fn copy_data(from: &impl Disk, to: &impl Disk) -> io::Result<u64> {
    let bytes = from.bytes()?;
    let mut piece = vec![0; PIECE_BYTES as usize];
    let mut at = 0;
    while let Some(data) = from.next_data(at).filter(|&data| data < bytes) {
        let end = (data / PIECE_BYTES + 1) * PIECE_BYTES;
        let piece = &mut piece[..(end.min(bytes) - data) as usize];
        from.read(piece, data)?;
        if piece.iter().any(|&byte| byte != 0) {
            to.write(piece, data)?;
        }
        at = end;
    }
    Ok(bytes)
}
