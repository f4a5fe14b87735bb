//! A scheme that stores real bytes: flash images, what can go wrong with flash, and a block device.
//!
//! | module | what it holds |
//! |---|---|
//! | [`nand`] | [`Nand`]: what a chip does; a layer is a chip in front of a chip |
//! | [`image`] | [`ImageNand`]: a chip in a file; images created, described, checked, dumped |
//! | [`ram`] | [`RamNand`]: a chip in memory |
//! | [`power`] | [`Powered`]: a chip whose power can be cut, and whose operations take their time |
//! | [`faulty`] | [`Faulty`]: a chip that fails as planned, and loses power |
//! | [`spares`] | [`Spares`]: bad blocks, wear levelling, paired pages |
//! | [`register`] | what is known of each logical page beside the scheme |
//! | [`flash`] | [`NandFlash`]: the flash of a scheme on any of them |
//! | [`block`] | [`BlockDevice`]: sectors, on one scheme and one flash |
//! | [`drive`] | [`Drive`]: a device of any scheme, mounted in a file or in memory |
//! | [`drive::cache`] | [`Cached`]: a write cache and a read cache in front of a device |
//! | [`drive::medium`] | [`Medium`]: what a device lies in: mounted again after a power cut, copied, replaced |
//! | [`stored`] | [`Stored`]: all of this for a scheme chosen by name |

pub mod block;
pub mod drive;
pub mod entry;
pub mod error;
pub mod faulty;
pub mod flash;
pub mod image;
pub mod nand;
pub mod pcm;
pub mod power;
pub mod ram;
pub mod register;
pub mod spares;
pub mod stored;
pub mod tear;

pub use block::BlockDevice;
pub use drive::Drive;
pub use drive::cache::Cached;
pub use drive::medium::Medium;
pub use error::DeviceError;
pub use faulty::Faulty;
pub use flash::NandFlash;
pub use image::ImageNand;
pub use nand::{Nand, NandError};
pub use power::Powered;
pub use ram::RamNand;
pub use spares::{Spares, SparesOptions};
pub use stored::Stored;
