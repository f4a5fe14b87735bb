//! What `floatgate recovery --json` prints: what bringing a device back takes, for each means of each scheme
//! (docs/recovery.md).

use floatgate_core::described::RecoveryCost;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::config::Device;

/// What `floatgate recovery --json` prints.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RecoveryDocument {
    /// The device, every block full.
    pub device: RecoveryDevice,
    /// One row a scheme, its options and a means of coming up.
    pub rows: Vec<RecoveryRow>,
}

/// The device, one die a channel.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RecoveryDevice {
    /// Name of the flash part.
    pub part: String,
    /// Dies.
    pub dies: u32,
    /// Blocks a die.
    pub blocks_per_die: u32,
    /// Pages a block.
    pub pages_per_block: u32,
    /// Data bytes of a page.
    pub page_bytes: u32,
    /// Pages that the host sees.
    pub logical_pages: u64,
}

impl RecoveryDevice {
    /// Of a device.
    pub fn of(device: &Device) -> Self {
        Self {
            part: device.part.name.into(),
            dies: device.dies,
            blocks_per_die: device.blocks,
            pages_per_block: device.part.pages_per_block,
            page_bytes: device.part.page_bytes,
            logical_pages: device.logical_pages,
        }
    }
}

/// One way of coming up: at most so many operations of the whole device.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RecoveryRow {
    /// Name of the scheme.
    pub scheme: String,
    /// The options that matter for it, as `map_blocks=3`, with spaces between.
    pub options: String,
    /// How the scheme finds its state again, in words.
    pub means: String,
    /// Whether that works only after an orderly shutdown.
    pub is_after_shutdown: bool,
    /// Reads of OOBs (spare areas) alone.
    pub oob_reads: u64,
    /// Page reads.
    pub page_reads: u64,
    /// Map entries read from phase-change memory.
    pub pcm_reads: u64,
    /// Page programs.
    pub programs: u64,
    /// Block erases.
    pub erases: u64,
    /// How long it takes, ns.
    pub time_ns: u64,
}

impl RecoveryRow {
    /// Of a cost that takes so long.
    pub fn of(scheme: &str, options: String, cost: &RecoveryCost, time_ns: u64) -> Self {
        Self {
            scheme: scheme.into(),
            options,
            means: cost.means.into(),
            is_after_shutdown: cost.is_after_shutdown,
            oob_reads: cost.oob_reads,
            page_reads: cost.page_reads,
            pcm_reads: cost.pcm_reads,
            programs: cost.programs,
            erases: cost.erases,
            time_ns,
        }
    }
}
