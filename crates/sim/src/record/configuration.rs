//! Settings as they were used, by the keys of the configuration (`floatgate config` tells what each means).

use floatgate_core::wear::WearLeveling;
use floatgate_core::{ProgramOrder, Start};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::names::{LevelingName, OrderName, StartName};
use super::{BufferSettings, SlcSettings};
use crate::clock::{Allocation, Mode, Schedule};
use crate::config::{Arrivals, Beyond, Copyback, Device, Host, PartialWrite, StreamBy};
use crate::part::PageTimes;

/// Settings of device, host and run, by the keys of the configuration.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Configuration {
    /// The device.
    pub device: DeviceSettings,
    /// Which operation a die does next; absent: the order of issue.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schedule: Option<Schedule>,
    /// The host.
    pub host: HostSettings,
    /// Memory between host and scheme; left out if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub buffer: Option<BufferSettings>,
    /// The cache with one bit a cell; left out if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slc: Option<SlcSettings>,
    /// How the device began.
    pub run: RunSettings,
}

/// The device. Of a fleet, whose devices have sizes of their own, what is not common to all is left out.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DeviceSettings {
    /// Name of the flash part.
    pub part: String,
    /// Where the part's figures come from.
    pub source: String,
    /// Dies of all channels.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dies: Option<u32>,
    /// Buses.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub channels: Option<u32>,
    /// Which channel a die is on.
    #[serde(default)]
    pub allocation: Allocation,
    /// Dies of a package, for an allocation that goes by packages; 0 in older records: 1.
    #[serde(default)]
    pub dies_per_package: u32,
    /// Planes a die.
    pub planes: u32,
    /// Planes of the chip that work together as each of these; 1, or 0 in older records: none do.
    #[serde(default)]
    pub planes_together: u32,
    /// Data and spare blocks a die.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blocks_per_die: Option<u32>,
    /// Blocks a die that the logical pages fill.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data_blocks_per_die: Option<u64>,
    /// Pages that the host sees.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub logical_pages: Option<u64>,
    /// Data bytes of a page.
    pub page_bytes: u32,
    /// Spare bytes of a page.
    pub oob_bytes: u32,
    /// Pages a block.
    pub pages_per_block: u32,
    /// Page read, cell time, us.
    pub t_r_us: f64,
    /// Page read by page number in the block, modulo their number, cell time, us; left out if all pages take the same.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub t_r_by_page_us: Vec<f64>,
    /// Erases of a block from which each of its page reads needs one more retry; left out if there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub read_retry: Vec<u32>,
    /// Erases that each block is taken to have had before, as far as retries go.
    #[serde(default)]
    pub erases_before: u32,
    /// Page program, cell time, us; with `one_shot` that of a word line.
    pub t_prog_us: f64,
    /// Page program by page number in the block, modulo their number, cell time, us; left out if all pages take the same.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub t_prog_by_page_us: Vec<f64>,
    /// Pages of a word line that are programmed at once; left out if each is by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub one_shot: Option<u32>,
    /// Block erase, cell time, us.
    pub t_bers_us: f64,
    /// Picoseconds a byte on the bus into the die.
    pub in_ps: u64,
    /// Picoseconds a byte on the bus out of the die.
    pub out_ps: u64,
    /// Program rule.
    #[serde(with = "OrderName")]
    pub program_order: ProgramOrder,
    /// What of an operation costs time.
    pub mode: Mode,
    /// Whether copies inside a plane stay inside the die.
    pub copyback: bool,
    /// Whether they do so only between pages whose numbers in their blocks are both even or both odd.
    #[serde(default)]
    pub copyback_parity: bool,
    /// Whether data crosses the bus while the cells of the die work.
    #[serde(default)]
    pub cache_commands: bool,
    /// How erases are spread over the blocks of a die.
    #[serde(with = "LevelingName")]
    pub wear_leveling: WearLeveling,
    /// Erases that static levelling lets the least erased block with content lag behind.
    pub wear_gap: u32,
}

impl DeviceSettings {
    /// Of a device whose logical pages fill so many blocks of each die.
    pub fn of(device: &Device, data_blocks_per_die: u64) -> Self {
        let part = &device.part;
        let us = |ns: u64| ns as f64 / 1000.0;
        let by_page_us = |times: &PageTimes| times.as_slice().iter().map(|&ns| us(ns)).collect();
        Self {
            part: part.name.into(),
            source: part.source.into(),
            dies: Some(device.dies),
            channels: Some(device.channels),
            allocation: device.allocation,
            dies_per_package: device.package_dies,
            planes: part.planes,
            planes_together: part.together,
            blocks_per_die: Some(device.blocks),
            data_blocks_per_die: Some(data_blocks_per_die),
            logical_pages: Some(device.logical_pages),
            page_bytes: part.page_bytes,
            oob_bytes: part.oob_bytes,
            pages_per_block: part.pages_per_block,
            t_r_us: us(part.t_r_ns),
            t_r_by_page_us: by_page_us(&part.t_r_by_page_ns),
            read_retry: device.read_retry.clone(),
            erases_before: device.erases_before,
            t_prog_us: us(part.t_prog_ns),
            t_prog_by_page_us: by_page_us(&part.t_prog_by_page_ns),
            one_shot: (part.one_shot > 1).then_some(part.one_shot),
            t_bers_us: us(part.t_bers_ns),
            in_ps: part.in_ps,
            out_ps: part.out_ps,
            program_order: device.program_order,
            mode: device.mode,
            copyback: device.copyback != Copyback::Off,
            copyback_parity: device.copyback == Copyback::Parity,
            cache_commands: device.cache_commands,
            wear_leveling: device.wear_leveling,
            wear_gap: device.wear_gap,
        }
    }
}

/// What becomes of write-zeroes requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum WriteZeroes {
    /// They are writes.
    Write,
    /// They are trims.
    Trim,
}

/// The host.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HostSettings {
    /// Open or closed loop.
    pub arrivals: Arrivals,
    /// Most requests in flight; 0: no limit (open loop only).
    pub queue_depth: u32,
    /// Arrival times are divided by this.
    pub speed: f64,
    /// What a write that covers only part of a live page costs.
    pub partial_write: PartialWrite,
    /// What becomes of write-zeroes requests.
    pub write_zeroes: WriteZeroes,
    /// What becomes of addresses past the end of the device.
    pub beyond: Beyond,
    /// Pages of a region of `compact`.
    pub compact_region_pages: u32,
    /// What the stream of a write is, for schemes that place by streams.
    #[serde(default)]
    pub stream_by: StreamBy,
}

impl HostSettings {
    /// Of a host of a device with pages of that size.
    pub fn of(host: &Host, page_bytes: u32) -> Self {
        Self {
            arrivals: host.arrivals,
            queue_depth: host.queue_depth,
            speed: host.speed,
            partial_write: host.partial_write,
            write_zeroes: match host.write_zeroes_as_writes {
                true => WriteZeroes::Write,
                false => WriteZeroes::Trim,
            },
            beyond: host.beyond,
            compact_region_pages: host.region_pages(page_bytes),
            stream_by: host.stream_by,
        }
    }
}

/// How the device began.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RunSettings {
    /// State of the device before any ageing.
    #[serde(with = "StartName")]
    pub start: Start,
    /// Steps of ageing, in order.
    pub ageing: Vec<String>,
}
