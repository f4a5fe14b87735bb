//! Flash parts: the devices of the papers and a few generic ones (docs/spec/timing.md, section 7).

use serde::{Serialize, Serializer};

/// Most bits of a cell, and so most read times of a part.
pub const BITS_MAX: usize = 4;

/// Times of the pages of a block, by page number modulo how many there are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PageTimes {
    ns: [u64; BITS_MAX],
    types: u8,
}

impl PageTimes {
    /// All pages take the same time.
    pub const NONE: Self = Self {
        ns: [0; BITS_MAX],
        types: 0,
    };

    /// Those times; none if they are more than [`BITS_MAX`].
    pub fn new(times_ns: &[u64]) -> Option<Self> {
        let mut ns = [0; BITS_MAX];
        ns.get_mut(..times_ns.len())?.copy_from_slice(times_ns);
        let types = times_ns.len() as u8;
        Some(Self { ns, types })
    }

    const fn of_two(first_ns: u64, second_ns: u64) -> Self {
        Self {
            ns: [first_ns, second_ns, 0, 0],
            types: 2,
        }
    }

    const fn of_three([first_ns, second_ns, third_ns]: [u64; 3]) -> Self {
        Self {
            ns: [first_ns, second_ns, third_ns, 0],
            types: 3,
        }
    }

    /// The times, ns.
    pub fn as_slice(&self) -> &[u64] {
        &self.ns[..usize::from(self.types)]
    }

    /// Their mean, if there are any.
    pub fn mean_ns(&self) -> Option<u64> {
        let sum: u64 = self.as_slice().iter().sum();
        sum.checked_div(self.types.into())
    }
}

impl Serialize for PageTimes {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.as_slice().serialize(serializer)
    }
}

/// A flash part: what a data sheet gives.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Part {
    /// Name in configurations.
    pub name: &'static str,
    /// What it is and where the figures come from.
    pub source: &'static str,
    /// Data bytes of a page.
    pub page_bytes: u32,
    /// Spare bytes of a page.
    pub oob_bytes: u32,
    /// Sub-pages a page: the unit in which a read transfers less than a page.
    pub sectors: u32,
    /// Pages a block.
    pub pages_per_block: u32,
    /// Planes a die.
    pub planes: u32,
    /// Chip planes of which each of these is made, if they work together: pages and spare bytes are those of all.
    pub together: u32,
    /// Page read, cell time.
    pub t_r_ns: u64,
    /// Page read by page number in the block, modulo their number; none: all in `t_r_ns`, else that is their mean.
    pub t_r_by_page_ns: PageTimes,
    /// Page program, cell time; with `one_shot` that of a word line.
    pub t_prog_ns: u64,
    /// Page program by page number in the block, modulo their number; none: all in `t_prog_ns`, else that is their mean.
    pub t_prog_by_page_ns: PageTimes,
    /// Pages of a word line that are programmed at once; 1: each by itself.
    pub one_shot: u32,
    /// Block erase, cell time.
    pub t_bers_ns: u64,
    /// Read of the OOB alone, cell time.
    pub t_r_oob_ns: u64,
    /// Picoseconds a byte on the bus, into the die.
    pub in_ps: u64,
    /// The same, out of the die.
    pub out_ps: u64,
    /// One command or address cycle.
    pub cycle_ns: u64,
    /// Erases a block endures, where the source gives it.
    pub endurance: Option<u32>,
    /// Supply current of read, program and erase.
    pub flash_ma: f64,
    /// Program order its cells want: `ascending` or `any`.
    pub program_order: &'static str,
    /// Channels, dies in all, blocks a die of the source's device.
    pub device: (u32, u32, u32),
}

const fn base(name: &'static str, source: &'static str) -> Part {
    Part {
        name,
        source,
        page_bytes: 2048,
        oob_bytes: 64,
        sectors: 4,
        pages_per_block: 64,
        planes: 1,
        together: 1,
        t_r_ns: 25_000,
        t_r_by_page_ns: PageTimes::NONE,
        t_prog_ns: 200_000,
        t_prog_by_page_ns: PageTimes::NONE,
        one_shot: 1,
        t_bers_ns: 1_500_000,
        t_r_oob_ns: 25_000,
        in_ps: 25_000,
        out_ps: 25_000,
        cycle_ns: 25,
        endurance: None,
        flash_ma: 25.0,
        program_order: "ascending",
        device: (1, 1, 1024),
    }
}

const fn generic(name: &'static str, source: &'static str, pages_per_block: u32) -> Part {
    Part {
        page_bytes: 16_384,
        oob_bytes: 1952,
        sectors: 32,
        pages_per_block,
        planes: 4,
        in_ps: 833,
        out_ps: 833,
        flash_ma: 50.0,
        device: (8, 16, 1024),
        ..base(name, source)
    }
}

/// A page of all planes of a die: 32 KiB and our spare bytes. NVMeVirt counts no time for erases; ours is that of
/// generic TLC.
const fn drive_part(name: &'static str, source: &'static str) -> Part {
    Part {
        page_bytes: 32_768,
        oob_bytes: 2048,
        sectors: 8,
        planes: 1,
        t_bers_ns: 5_000_000,
        ..generic(name, source, 64)
    }
}

/// All presets.
pub const PARTS: [Part; 11] = [
    Part {
        page_bytes: 4096,
        oob_bytes: 128,
        sectors: 8,
        pages_per_block: 128,
        t_r_ns: 50_000,
        t_r_oob_ns: 50_000,
        t_prog_ns: 900_000,
        t_bers_ns: 3_500_000,
        device: (8, 8, 65_536),
        ..base(
            "mt29f16g08",
            "LAST++ (TOS 2016) Table III, Micron MLC; spare bytes ours",
        )
    },
    Part {
        t_bers_ns: 2_000_000,
        device: (1, 1, 270_000),
        ..base("k9wbg08u1m", "LAST (SPEED 2008) Table 1, Samsung SLC")
    },
    Part {
        endurance: Some(100_000),
        device: (1, 1, 70_000),
        ..base("slc_large_block", "FASTer (SNAPI 2010) Table I")
    },
    Part {
        t_r_ns: 20_000,
        t_r_oob_ns: 20_000,
        planes: 4,
        device: (4, 16, 8192),
        ..base("ssdsim", "HAT (MSST 2010) Table 4, K9XXG08UXA")
    },
    Part {
        pages_per_block: 128,
        t_r_ns: 60_000,
        t_r_oob_ns: 20_000,
        t_prog_ns: 800_000,
        endurance: Some(5000),
        device: (1, 1, 2048),
        ..base("k9g4g08u0a", "BLogFTL (IEEE TC 2017) Table 1, Samsung MLC")
    },
    Part {
        t_r_ns: 60_000,
        t_r_oob_ns: 60_000,
        t_prog_ns: 700_000,
        t_bers_ns: 5_000_000,
        endurance: Some(3000),
        ..generic("generic_tlc", "generic TLC, no data sheet; 1200 MT/s", 1152)
    },
    Part {
        t_r_ns: 140_000,
        t_r_oob_ns: 140_000,
        t_prog_ns: 2_500_000,
        t_bers_ns: 10_000_000,
        endurance: Some(1000),
        ..generic("generic_qlc", "generic QLC, no data sheet; 1200 MT/s", 1536)
    },
    Part {
        t_r_ns: 30_000,
        t_r_oob_ns: 30_000,
        t_prog_ns: 250_000,
        t_bers_ns: 5_000_000,
        endurance: Some(50_000),
        program_order: "any",
        ..generic(
            "generic_pslc",
            "generic TLC used as SLC, no data sheet; 1200 MT/s",
            384,
        )
    },
    Part {
        t_r_ns: 36_013,
        t_r_oob_ns: 36_013,
        t_r_by_page_ns: PageTimes::of_two(30_013, 42_013),
        t_prog_ns: 185_000,
        in_ps: 1250,
        out_ps: 1250,
        device: (8, 16, 274),
        ..drive_part(
            "970pro-class",
            "NVMeVirt, ssd_config.h, SAMSUNG_970PRO (MLC); erase, spare bytes, blocks ours",
        )
    },
    Part {
        t_r_ns: 58_000,
        t_r_oob_ns: 58_000,
        t_prog_ns: 561_000,
        one_shot: 3,
        pages_per_block: 96,
        in_ps: 2222,
        out_ps: 2222,
        device: (8, 32, 183),
        ..drive_part(
            "zn540-class",
            "NVMeVirt, ssd_config.h, WD_ZN540 (TLC); erase, spare bytes, blocks ours",
        )
    },
    Part {
        oob_bytes: 4864,
        t_r_ns: 8333,
        t_r_oob_ns: 8333,
        t_r_by_page_ns: PageTimes::of_three([5000, 8000, 12_000]),
        t_prog_ns: 900_000,
        t_prog_by_page_ns: PageTimes::of_three([450_000, 900_000, 1_350_000]),
        pages_per_block: 96,
        in_ps: 167,
        out_ps: 167,
        device: (8, 256, 183),
        ..drive_part(
            "pm9a3-class",
            "SimpleSSD configuration of ndesscs-resa/resa, fitted to reads of a PM9A3 (TLC); blocks ours",
        )
    },
];

/// Names of the parts that stand for whole drives, with their channels and dies.
pub const DRIVES: [&str; 3] = ["970pro-class", "zn540-class", "pm9a3-class"];

/// What a die of a drive shows: a 64th of those of a 970 PRO of 512 GB, a ZN540 of 1 TB and a PM9A3 of 7.68 TB, about, so
/// that a run is short. Blocks are shorter likewise.
pub const DRIVE_DIE_BYTES: u64 = 512 << 20;

/// Spare blocks of a drive in percent of the data blocks. NVMeVirt gives the 970 PRO as much, and the ZN540, whose host
/// collects, none; the PM9A3's configuration has the 20 % that SimpleSSD comes with.
pub const DRIVE_SPARE_PERCENT: f64 = 7.0;

/// The part of that name.
pub fn part(name: &str) -> Option<&'static Part> {
    PARTS.iter().find(|part| part.name == name)
}

impl Part {
    /// A page's share of the time of a program.
    pub fn program_ns_of_page(&self) -> u64 {
        self.t_prog_ns / u64::from(self.one_shot.max(1))
    }

    /// Bytes that a transfer of `sectors` sub-pages moves: data and their share of the spare area.
    pub fn transfer_bytes(&self, sectors: u32) -> u32 {
        let whole = self.page_bytes + self.oob_bytes;
        (u64::from(whole) * u64::from(sectors) / u64::from(self.sectors)) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_sub_page_of_ssdsim_is_528_bytes() {
        assert_eq!(part("ssdsim").unwrap().transfer_bytes(1), 528);
        assert_eq!(part("mt29f16g08").unwrap().transfer_bytes(8), 4224);
        assert!(PARTS.iter().all(|p| p.page_bytes % p.sectors == 0));
    }

    #[test]
    fn drives_are_parts_and_times_by_page_have_their_mean_beside_them() {
        assert!(DRIVES.iter().all(|name| part(name).is_some()));
        for part in &PARTS {
            for (by_page, ns) in [
                (part.t_r_by_page_ns, part.t_r_ns),
                (part.t_prog_by_page_ns, part.t_prog_ns),
            ] {
                assert_eq!(by_page.mean_ns().unwrap_or(ns), ns, "{}", part.name);
            }
            assert_eq!(part.pages_per_block % part.one_shot, 0, "{}", part.name);
        }
        let five = [1; BITS_MAX + 1];
        assert_eq!(PageTimes::new(&five), None);
        assert_eq!(PageTimes::new(&five[1..]).unwrap().as_slice(), &five[1..]);
    }
}
