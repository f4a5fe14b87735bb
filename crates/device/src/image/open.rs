//! Mounting the device in an image.

use std::path::Path;

use floatgate_core::ftl::{Ftl, RecoveryMode};
use floatgate_core::{Lpn, Refusal};

use super::{Durability, ImageNand};
use crate::block::{BlockDevice, options_from_text};
use crate::error::DeviceError;
use crate::power::Powered;
use crate::spares::Spares;
use crate::spares::pairs::PairGuard;

/// Mounts the device in an image of that scheme, after a shutdown or a crash. [`BlockDevice::shut_down`] and
/// [`ImageNand::close`] close it cleanly.
///
/// # Errors
/// If the file is not an image, is in use, belongs to another scheme, or is too damaged to mount.
pub fn open<S: Ftl<Page = Lpn>>(
    path: &Path,
    durability: Durability,
) -> Result<BlockDevice<S, Spares<Powered<ImageNand>>>, DeviceError> {
    mount(ImageNand::open(path, durability)?)
}

/// The same, on a chip in a file that is open already.
///
/// # Errors
/// As [`open`].
pub fn mount<S: Ftl<Page = Lpn>>(
    nand: ImageNand,
) -> Result<BlockDevice<S, Spares<Powered<ImageNand>>>, DeviceError> {
    let header = nand.header().clone();
    if header.scheme != S::KEY {
        let text = format!(
            "the image holds a device of scheme {:?}, not {:?}",
            header.scheme,
            S::KEY
        );
        return Err(Refusal::new("scheme", text).into());
    }
    let options = options_from_text::<S>(&header.options)?;
    BlockDevice::open(
        Spares::mount(powered(nand), header.spares)?,
        &options,
        RecoveryMode::Fastest,
    )
}

/// The chip with its power. Where lower pages are guarded the cells are such that a cut takes them.
pub(super) fn powered(nand: ImageNand) -> Powered<ImageNand> {
    let paired_pages = nand.header().spares.pair_guard != PairGuard::Off;
    Powered::new(nand, paired_pages)
}
