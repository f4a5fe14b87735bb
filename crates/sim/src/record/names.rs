//! Names of choices that the core knows but does not serialise. A variant that is new there does not compile here
//! until it has one.

use floatgate_core::buffer::Eviction;
use floatgate_core::report::Memory;
use floatgate_core::wear::WearLeveling;
use floatgate_core::{ProgramOrder, Start};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The state in which a device begins.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(remote = "Start", rename_all = "lowercase")]
#[schemars(rename = "Start")]
pub(super) enum StartName {
    /// Every block erased, no logical page written.
    Empty,
    /// Every logical page written once, in order.
    Full,
}

/// What a write buffer writes out first.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(remote = "Eviction", rename_all = "lowercase")]
#[schemars(rename = "Eviction")]
pub(super) enum EvictionName {
    /// The page that was not written for the longest time.
    Lru,
    /// All of the logical block that was not written for the longest time.
    Bplru,
}

/// In which order the pages of a block may be programmed between two erases.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(remote = "ProgramOrder", rename_all = "lowercase")]
#[schemars(rename = "ProgramOrder")]
pub(super) enum OrderName {
    /// Only above every page already programmed.
    Ascending,
    /// Any erased page.
    Any,
}

/// Where a table lies.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(remote = "Memory", rename_all = "lowercase")]
#[schemars(rename = "Memory")]
pub(super) enum MemoryName {
    /// The controller's own memory.
    Sram,
    /// A DRAM chip beside it: refreshed all the time.
    Dram,
    /// Phase-change memory.
    Pcm,
    /// Kept in flash (OOBs, translation pages).
    Flash,
}

/// How erases are spread over the blocks of a die.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(remote = "WearLeveling", rename_all = "lowercase")]
#[schemars(rename = "WearLeveling")]
pub(super) enum LevelingName {
    /// Not at all.
    Off,
    /// The erased block with the fewest erases is used next.
    Dynamic,
    /// The same, and cold content is moved to worn blocks.
    Static,
}
