//! The device and the host of a run.

use floatgate_core::ProgramOrder;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::names::OrderName;
use crate::clock::{Allocation, Mode};
use crate::config::{self, Arrivals, Beyond, PartialWrite, StreamBy};

/// The modelled device.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Device {
    /// Name of the flash part.
    pub part: String,
    /// Buses.
    pub channels: u32,
    /// Dies of all channels.
    pub dies: u32,
    /// Which channel a die is on.
    #[serde(default)]
    pub allocation: Allocation,
    /// Blocks a die.
    pub blocks: u32,
    /// Pages a block.
    pub pages: u32,
    /// Data bytes of a page.
    pub page_bytes: u32,
    /// Pages that the host sees.
    pub logical_pages: u64,
    /// Bytes that the host sees.
    pub logical_bytes: u64,
    /// Program rule.
    #[serde(with = "OrderName")]
    pub program_order: ProgramOrder,
    /// What of an operation costs time (docs/spec/timing.md sections 1 and 6).
    pub mode: Mode,
    /// Whether copies inside a plane stay inside the die.
    pub copyback: bool,
}

impl Device {
    pub(super) fn of(device: &config::Device) -> Self {
        let part = &device.part;
        Self {
            part: part.name.into(),
            channels: device.channels,
            dies: device.dies,
            allocation: device.allocation,
            blocks: device.blocks,
            pages: part.pages_per_block,
            page_bytes: part.page_bytes,
            logical_pages: device.logical_pages,
            logical_bytes: device.logical_pages * u64::from(part.page_bytes),
            program_order: device.program_order,
            mode: device.mode,
            copyback: device.copyback != config::Copyback::Off,
        }
    }
}

/// How the host drove the device (docs/spec/timing.md section 4).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Host {
    /// Open or closed loop.
    pub arrivals: Arrivals,
    /// Most requests in flight; 0: no limit (open loop only).
    pub queue_depth: u32,
    /// Arrival times were divided by this: 2 replays twice as fast.
    pub speed: f64,
    /// What a write that covers only part of a live page cost.
    pub partial_write: PartialWrite,
    /// What became of addresses past the end of the device.
    pub beyond: Beyond,
    /// What the stream of a write was, for schemes that place by streams.
    #[serde(default)]
    pub stream_by: StreamBy,
}

impl Host {
    pub(super) fn of(host: &config::Host) -> Self {
        Self {
            arrivals: host.arrivals,
            queue_depth: host.queue_depth,
            speed: host.speed,
            partial_write: host.partial_write,
            beyond: host.beyond,
            stream_by: host.stream_by,
        }
    }
}
