//! Errors of using or making a device.

use floatgate_core::Refusal;

use crate::image::ImageError;
use crate::nand::NandError;

/// Why an operation failed.
#[derive(Debug)]
#[non_exhaustive]
pub enum DeviceError {
    /// The flash failed.
    Nand(NandError),
    /// The image could not be created or opened.
    Image(ImageError),
    /// The configuration does not fit; nothing was written.
    Refused(Refusal),
    /// A request beyond the end of the device.
    OutOfRange {
        /// First sector of the request.
        sector: u64,
        /// Its sectors.
        count: u64,
        /// Sectors of the device.
        sectors: u64,
    },
    /// The length of a buffer is not a whole number of sectors.
    Unaligned {
        /// The length.
        bytes: usize,
        /// Bytes of a sector.
        sector_bytes: usize,
    },
    /// An earlier write failed; the device is read-only.
    ReadOnly {
        /// That failure.
        why: String,
    },
    /// The chip holds something that this program never writes.
    Corrupt {
        /// What was found.
        text: String,
    },
}

impl DeviceError {
    /// Whether the device is read-only.
    pub fn is_read_only(&self) -> bool {
        matches!(
            self,
            Self::ReadOnly { .. } | Self::Nand(NandError::ReadOnly { .. })
        )
    }
}

impl std::fmt::Display for DeviceError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Nand(error) => error.fmt(f),
            Self::Image(error) => error.fmt(f),
            Self::Refused(refusal) => refusal.fmt(f),
            Self::OutOfRange {
                sector,
                count,
                sectors,
            } => write!(
                f,
                "{count} sectors from {sector} on are beyond the end: the device has {sectors}"
            ),
            Self::Unaligned {
                bytes,
                sector_bytes,
            } => write!(
                f,
                "{bytes} bytes are not a whole number of {sector_bytes}-byte sectors"
            ),
            Self::ReadOnly { why } => write!(f, "the device is read-only: {why}"),
            Self::Corrupt { text } => write!(
                f,
                "the flash is damaged, or was written by another program: {text}"
            ),
        }
    }
}

impl std::error::Error for DeviceError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Nand(error) => Some(error),
            Self::Image(error) => Some(error),
            Self::Refused(refusal) => Some(refusal),
            _ => None,
        }
    }
}

impl From<NandError> for DeviceError {
    fn from(error: NandError) -> Self {
        Self::Nand(error)
    }
}

impl From<ImageError> for DeviceError {
    fn from(error: ImageError) -> Self {
        Self::Image(error)
    }
}

impl From<Refusal> for DeviceError {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}
