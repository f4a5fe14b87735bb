//! A cache of flash blocks with one bit a cell between host and scheme (docs/slc.md).

use floatgate_core::slc::SlcCache;
use floatgate_core::{Geometry, Refusal};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Device;

/// What is done with writes when the cache is full.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum WhenFull {
    /// They go to the scheme, until idle time has made room.
    #[default]
    Direct,
    /// The oldest blocks are folded before.
    Fold,
}

impl WhenFull {
    /// By discriminant, as configurations call them.
    pub const NAMES: [&str; 2] = ["direct", "fold"];

    /// The one of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        let found = Self::NAMES.iter().position(|&known| known == name)?;
        Some([Self::Direct, Self::Fold][found])
    }
}

/// The cache. Its blocks lie on the dies beside those of the scheme.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slc {
    /// Blocks of each die that are always used so.
    pub blocks: u32,
    /// Whether room for logical pages without content is used so too.
    pub dynamic: bool,
    /// Bits of a cell that is used in full: a block has so much fewer pages with one.
    pub bits: u32,
    /// Cell time of a program.
    pub t_prog_ns: u64,
    /// Cell time of a read.
    pub t_r_ns: u64,
    /// After so long without a request in work blocks are folded; 0: never.
    pub fold_after_ns: u64,
    /// What is done with writes when it is full.
    pub when_full: WhenFull,
    /// Erased blocks of the device below which [`WhenFull::Fold`] folds.
    pub low_blocks: u32,
}

impl Default for Slc {
    fn default() -> Self {
        Self {
            blocks: 0,
            dynamic: false,
            bits: 3,
            t_prog_ns: 200_000,
            t_r_ns: 25_000,
            fold_after_ns: 100_000_000,
            when_full: WhenFull::Direct,
            low_blocks: 1,
        }
    }
}

impl Slc {
    /// Whether there is a cache.
    pub fn is_on(&self) -> bool {
        self.blocks > 0 || self.dynamic
    }

    /// Pages of a block of the cache.
    pub fn pages_per_block(&self, geometry: &Geometry) -> u32 {
        geometry.pages_per_block / self.bits.max(1)
    }

    /// Most blocks of a die that the cache can have.
    pub fn blocks_per_die(&self, geometry: &Geometry) -> u32 {
        let dynamic = if self.dynamic {
            geometry.logical_blocks_per_die()
        } else {
            0
        };
        self.blocks + dynamic
    }

    /// Bytes that its tables take in a simulation.
    pub fn ram_bytes(&self, geometry: &Geometry) -> u64 {
        let blocks = u64::from(self.blocks_per_die(geometry)) * u64::from(geometry.dies);
        match self.is_on() {
            true => SlcCache::ram_bytes(
                blocks,
                self.pages_per_block(geometry),
                geometry.logical_pages,
            ),
            false => 0,
        }
    }

    /// Checks that the device can have the cache.
    pub(super) fn check(&self, device: &Device) -> Result<(), Refusal> {
        let refuse = |key: &str, why: String| Err(Refusal::new(key, format!("{key}{why}")));
        let pages = device.part.pages_per_block;
        let dynamic_blocks = match self.dynamic {
            true => device.logical_pages / u64::from(pages.max(1)),
            false => 0,
        };
        let blocks = u64::from(self.blocks) * u64::from(device.dies) + dynamic_blocks;
        let physical = u64::from(device.dies) * u64::from(device.blocks) * u64::from(pages);
        match () {
            () if !self.is_on() => Ok(()),
            () if device.buffer.is_on() => refuse(
                "slc.blocks",
                ": a device has either a cache of one bit a cell or memory between host and scheme ([buffer]), not both".into(),
            ),
            () if self.bits > pages => {
                refuse("slc.bits", format!(" = {}: a block has {pages} pages", self.bits))
            }
            () if physical + blocks * u64::from(pages) >= u64::from(u32::MAX) => refuse(
                "slc.blocks",
                format!(" = {}: more than {} pages with those of the scheme", self.blocks, u32::MAX - 1),
            ),
            () if u64::from(self.low_blocks) > blocks => refuse(
                "slc.low_blocks",
                format!(" = {}: the cache has {blocks} blocks", self.low_blocks),
            ),
            () => Ok(()),
        }
    }
}
