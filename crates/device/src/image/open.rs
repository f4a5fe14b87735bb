//! The device in an image.

use std::path::Path;

use floatgate_core::ftl::{Ftl, RecoveryMode};
use floatgate_core::{Lpn, Refusal};

use super::{Durability, ImageNand};
use crate::block::{BlockDevice, options_from_text};
use crate::error::DeviceError;
use crate::spares::Spares;

/// Opens the device in an image of that scheme, however it was left. It is closed in order by
/// [`BlockDevice::shut_down`] and [`ImageNand::close`].
///
/// # Errors
/// If it is no image, in use, of another scheme, or what is in it cannot come from one.
pub fn open<S: Ftl<Page = Lpn>>(
    path: &Path,
    durability: Durability,
) -> Result<BlockDevice<S, Spares<ImageNand>>, DeviceError> {
    let nand = ImageNand::open(path, durability)?;
    let header = nand.header().clone();
    if header.scheme != S::KEY {
        let text = format!("the image is of {:?}, not of {:?}", header.scheme, S::KEY);
        return Err(Refusal::new("scheme", text).into());
    }
    let options = options_from_text::<S>(&header.options)?;
    BlockDevice::open(
        Spares::mount(nand, header.spares)?,
        &options,
        RecoveryMode::Fastest,
    )
}
