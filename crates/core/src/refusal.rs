//! Why a configuration, a shape or an option is refused.

use alloc::format;
use alloc::string::{String, ToString};
use core::fmt::{Display, Formatter};

/// What kind of refusal it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RefusalKind {
    /// Shape and options do not fit together; others would.
    Configuration,
    /// A recovery finds no erased page to go on with.
    NoRoom,
    /// The flash holds what no power cut leaves behind.
    Damaged,
}

/// Why a device cannot be made or mounted.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Refusal {
    /// What kind it is.
    pub kind: RefusalKind,
    /// The configuration key at fault, where one can be named.
    pub key: Option<String>,
    /// What is wrong, with the numbers, and what would work.
    pub message: String,
}

impl Refusal {
    /// A configuration does not fit, because of this key.
    pub fn new(key: &str, message: String) -> Self {
        Self {
            kind: RefusalKind::Configuration,
            key: Some(key.to_string()),
            message,
        }
    }

    /// A configuration does not fit, and no single key is to blame.
    pub fn of_all(message: String) -> Self {
        Self {
            kind: RefusalKind::Configuration,
            key: None,
            message,
        }
    }

    /// A recovery finds no erased page to go on with.
    pub fn no_room(message: String) -> Self {
        Self {
            kind: RefusalKind::NoRoom,
            key: None,
            message,
        }
    }

    /// A recovery has found what no power cut leaves behind: pages that have rotted, or that no scheme has written.
    pub fn damaged(found: impl Display) -> Self {
        Self {
            kind: RefusalKind::Damaged,
            key: None,
            message: format!(
                "{found}: the flash is damaged beyond what a power cut leaves, and it cannot be told any more what its \
                 pages hold"
            ),
        }
    }
}

impl Display for Refusal {
    fn fmt(&self, f: &mut Formatter<'_>) -> core::fmt::Result {
        f.write_str(&self.message)
    }
}

impl core::error::Error for Refusal {}
