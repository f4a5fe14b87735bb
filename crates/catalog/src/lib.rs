//! The schemes that a program knows, each in all of its lives. The command and the fuzzers take this one value; a scheme
//! of one's own added to it is simulated, stored and tortured like ours.
//!
//! A crate of its own because this is where every scheme is compiled for every life: what changes above it need not
//! wait for that again.

use floatgate_core::catalog::Life;
use floatgate_core::{Ftl, Lpn};
use floatgate_device::Stored;
use floatgate_sim::run::Simulated;
use floatgate_testkit::Tested;

/// What a program can do with a scheme.
#[derive(Clone, Copy, Debug)]
pub struct Lives {
    /// On a modelled SSD.
    pub simulated: Simulated,
    /// On a flash of bytes.
    pub stored: Stored,
    /// Under power cuts and rot.
    pub tested: Tested,
}

impl Life for Lives {
    fn of<S: Ftl<Page = Lpn>>() -> Self {
        Self {
            simulated: Simulated::of::<S>(),
            stored: Stored::of::<S>(),
            tested: Tested::of::<S>(),
        }
    }
}

impl AsRef<Simulated> for Lives {
    fn as_ref(&self) -> &Simulated {
        &self.simulated
    }
}

impl AsRef<Stored> for Lives {
    fn as_ref(&self) -> &Stored {
        &self.stored
    }
}

impl AsRef<Tested> for Lives {
    fn as_ref(&self) -> &Tested {
        &self.tested
    }
}

/// A scheme with its lives.
pub type Scheme = floatgate_core::catalog::Entry<Lives>;

/// Schemes by name, with their lives.
pub type Catalog = floatgate_core::Catalog<Lives>;

/// All schemes of Floatgate.
pub fn catalog() -> Catalog {
    floatgate_schemes::catalog()
}
