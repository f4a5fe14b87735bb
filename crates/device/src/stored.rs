//! The device's operations on a scheme chosen by name.

use std::path::Path;

use floatgate_core::catalog::Life;
use floatgate_core::{Catalog, Ftl, Lpn, Refusal};

use crate::block::options_from_text;
use crate::drive::{self, Mounted};
use crate::error::DeviceError;
use crate::image::{self, CheckReport, Durability, ImageError, ImageInfo, ImageSpec, ScrubReport};

/// A scheme on a flash that stores bytes: its operations as a device.
#[derive(Clone, Copy, Debug)]
pub struct Stored {
    create: fn(&Path, &ImageSpec) -> Result<ImageInfo, DeviceError>,
    scrub: fn(&Path) -> Result<ScrubReport, DeviceError>,
    mount: fn(&Path, Durability) -> Mounted,
    in_memory: fn(&ImageSpec) -> Mounted,
    takes_options: fn(&str) -> Result<(), Refusal>,
}

impl Life for Stored {
    fn of<S: Ftl<Page = Lpn>>() -> Self {
        Self {
            create: image::create::<S>,
            scrub: image::scrub::<S>,
            mount: drive::mount::<S>,
            in_memory: drive::in_memory::<S>,
            takes_options: |text| options_from_text::<S>(text).map(drop),
        }
    }
}

impl AsRef<Self> for Stored {
    fn as_ref(&self) -> &Self {
        self
    }
}

impl Stored {
    /// Makes an image with a fresh device of the scheme. The file gets its name only when it is complete.
    ///
    /// # Errors
    /// A refusal if scheme, options and shape do not fit together; then no file is left behind.
    pub fn create(&self, path: &Path, spec: &ImageSpec) -> Result<ImageInfo, DeviceError> {
        (self.create)(path, spec)
    }

    /// Reads all of an image of the scheme, and writes anew what begins to fail.
    ///
    /// # Errors
    /// As [`image::scrub`].
    pub fn scrub(&self, path: &Path) -> Result<ScrubReport, DeviceError> {
        (self.scrub)(path)
    }

    /// Makes a fresh device of the scheme in memory.
    ///
    /// # Errors
    /// As [`Stored::create`].
    pub fn in_memory(&self, spec: &ImageSpec) -> Mounted {
        (self.in_memory)(spec)
    }

    /// Whether the scheme accepts the options stored in an image.
    ///
    /// # Errors
    /// The refusal of the first option that it does not accept.
    pub fn takes_options(&self, text: &str) -> Result<(), Refusal> {
        (self.takes_options)(text)
    }
}

/// Checks an image, its options against the scheme of that name in the catalog.
///
/// # Errors
/// If the file cannot be read, or is in use.
pub fn check_image<L: AsRef<Stored>>(
    path: &Path,
    catalog: &Catalog<L>,
) -> Result<CheckReport, ImageError> {
    image::check(path, &|scheme, options| {
        let scheme = catalog.find(scheme)?;
        Some(scheme.life.as_ref().takes_options(options))
    })
}

/// Scrubs an image with the scheme that its header names.
///
/// # Errors
/// As [`Stored::scrub`]; a refusal if the catalog has no such scheme.
pub fn scrub_image<L: AsRef<Stored>>(
    path: &Path,
    catalog: &Catalog<L>,
) -> Result<ScrubReport, DeviceError> {
    let info = image::header_of(path)?;
    catalog.get(&info.scheme)?.life.as_ref().scrub(path)
}

/// Mounts the device in an image, of the scheme that its header names.
///
/// # Errors
/// As [`image::open`]; a refusal if the catalog has no such scheme.
pub fn mount_image<L: AsRef<Stored>>(
    path: &Path,
    durability: Durability,
    catalog: &Catalog<L>,
) -> Mounted {
    let header = image::header_of(path)?;
    (catalog.get(&header.scheme)?.life.as_ref().mount)(path, durability)
}

/// Makes an image with a fresh device of the scheme in the spec.
///
/// # Errors
/// As [`Stored::create`]; a refusal if the catalog has no such scheme.
pub fn create_image<L: AsRef<Stored>>(
    path: &Path,
    spec: &ImageSpec,
    catalog: &Catalog<L>,
) -> Result<ImageInfo, DeviceError> {
    let scheme = catalog.get(&spec.scheme)?;
    scheme.life.as_ref().create(path, spec)
}
