//! A page map that lives in the spare areas, in three levels, so that keeping it up costs no program of its
//! own: every page carries in its OOB the part of the map that its program changed.
//!
//! The pages of a logical block are cut into *groups*, the groups into *directories*.
//!
//! | level | where | what an entry says |
//! |---|---|---|
//! | PGD, page global directory | RAM | for a directory: the page whose OOB has its newest PMD |
//! | PMD, page middle directory | OOB | for a group: the page whose OOB has its newest PTEs |
//! | PTE, page table entries | OOB | for a page: where it lies |
//!
//! **Layout of the 64 bytes.** Entries of `w` bits, one after the other from bit 0 (the lowest bit of byte
//! 0) on, without a header: the OOB's own LPN says which group and directory they are for. First the PMD, one entry a group of
//! the directory; then the PTEs, one entry a page of the group. An entry is 0 for "nowhere", else 1 + the number
//! of the physical page inside its die; `w` is just wide enough for that. `E = 512 / w` entries fit; a group
//! has `E / 2` pages (at most the block), a directory as many groups as the rest of `E` holds. With 18 bits
//! (1,024 blocks of 128 pages) that is room for 14 groups of 14 pages, so one directory covers a block and the
//! PGD has one entry a block, as in the paper; only where `E * E / 4` pages are less than a block does a block
//! take several directories.
//!
//! A trim changes no OOB. It can let the page that bears the newest tables of a group be erased; the group then
//! has none until its next program, and a scan of the OOBs finds its pages by their LPNs. The pages of a
//! start state carry no tables either.

use crate::parts::bits::{BitWriter, bits_at};
use crate::parts::scan::SpareBytes;
use floatgate_core::address::{Divisor, Lbn, Pbn, Ppn};
use floatgate_core::geometry::{Geometry, Space};
use floatgate_core::report::bits_for;
use floatgate_core::state;

/// Bytes of an OOB that the tables take.
pub const OOB_BYTES: usize = 64;

/// Where the tables of one die lie, and how they are laid out.
#[derive(Clone, Debug)]
pub struct OobTables {
    geometry: Geometry,
    /// First physical page of the die.
    base: u32,
    /// Bits of an entry.
    width: u32,
    by_group_pages: Divisor,
    by_directory_groups: Divisor,
    groups_per_block: u32,
    directories_per_block: u32,
    /// By group: the page with its newest PTEs.
    pte_at: Vec<Ppn>,
    /// By directory: the page with its newest PMD (the PGD).
    pmd_at: Vec<Ppn>,
}

state!(OobTables { pte_at, pmd_at } fixed {
    geometry, base, width, by_group_pages, by_directory_groups, groups_per_block, directories_per_block,
});

/// How the 64 bytes are divided on a device; see the module's text.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Layout {
    width: u32,
    group_pages: u32,
    groups_per_block: u32,
    directory_groups: u32,
    directories_per_block: u32,
}

impl Layout {
    fn of(geometry: &Geometry) -> Self {
        let die_pages = u64::from(geometry.blocks_per_die) * u64::from(geometry.pages_per_block);
        let width = bits_for(die_pages + 1) as u32;
        let entries = 8 * OOB_BYTES as u32 / width;
        let group_pages = (entries / 2).min(geometry.pages_per_block);
        let groups_per_block = geometry.pages_per_block.div_ceil(group_pages);
        let directory_groups = (entries - group_pages).min(groups_per_block);
        Self {
            width,
            group_pages,
            groups_per_block,
            directory_groups,
            directories_per_block: groups_per_block.div_ceil(directory_groups),
        }
    }
}

impl OobTables {
    /// Tables of one die, nothing programmed yet.
    pub fn new(space: &Space) -> Self {
        let geometry = &space.geometry;
        let layout = Layout::of(geometry);
        let blocks = space.logical_blocks() as usize;
        Self {
            base: geometry.first_page(geometry.pbn(space.first_die, 0)).0,
            width: layout.width,
            by_group_pages: Divisor::new(layout.group_pages),
            by_directory_groups: Divisor::new(layout.directory_groups),
            groups_per_block: layout.groups_per_block,
            directories_per_block: layout.directories_per_block,
            pte_at: vec![Ppn::NONE; blocks * layout.groups_per_block as usize],
            pmd_at: vec![Ppn::NONE; blocks * layout.directories_per_block as usize],
            geometry: geometry.clone(),
        }
    }

    /// Bits of an entry on such a device.
    pub fn entry_bits(geometry: &Geometry) -> u32 {
        Layout::of(geometry).width
    }

    /// Memory in bytes for one device.
    pub fn ram_bytes(geometry: &Geometry) -> u64 {
        let layout = Layout::of(geometry);
        let entries = u64::from(layout.groups_per_block) + u64::from(layout.directories_per_block);
        4 * entries * u64::from(geometry.logical_blocks())
    }

    /// Group and directory of page `offset` of logical block `lbn`.
    #[inline(always)]
    fn group_and_directory(&self, lbn: Lbn, offset: u32) -> (u32, u32) {
        let group = self.by_group_pages.div(offset);
        let directory = self.by_directory_groups.div(group);
        (
            lbn.0 * self.groups_per_block + group,
            lbn.0 * self.directories_per_block + directory,
        )
    }

    /// The pages whose OOBs a translation reads one after the other: that of the PMD, that of the PTEs.
    #[inline]
    pub fn places(&self, lbn: Lbn, offset: u32) -> (Ppn, Ppn) {
        let (group, directory) = self.group_and_directory(lbn, offset);
        (self.pmd_at[directory as usize], self.pte_at[group as usize])
    }

    /// Writes the tables that the program of page `offset` of logical block `lbn` to `to` changes into its OOB.
    /// `newest` says where the pages of `lbn` lie before it.
    pub fn write(&self, bytes: &mut [u8], lbn: Lbn, offset: u32, to: Ppn, newest: &[Ppn]) {
        // A smaller OOB holds no tables; its LPN and sequence number are enough for a recovery.
        if bytes.len() >= OOB_BYTES {
            self.fill(&mut bytes[..OOB_BYTES], lbn, offset, to, newest);
        }
    }

    fn fill(&self, bytes: &mut [u8], lbn: Lbn, offset: u32, to: Ppn, newest: &[Ppn]) {
        let (group, directory) = self.group_and_directory(lbn, offset);
        let groups = self.groups_of(directory - lbn.0 * self.directories_per_block);
        let pmd = groups.map(|g| lbn.0 * self.groups_per_block + g).map(|g| {
            if g == group {
                to
            } else {
                self.pte_at[g as usize]
            }
        });
        let group_pages = self.by_group_pages.get();
        let first = (group - lbn.0 * self.groups_per_block) * group_pages;
        let pages = first..(first + group_pages).min(self.geometry.pages_per_block);
        let pte = pages.map(|page| {
            if page == offset {
                to
            } else {
                newest[page as usize]
            }
        });
        let mut entries = BitWriter::new(bytes);
        for at in pmd.chain(pte) {
            let page = if at.is_none() {
                0
            } else {
                at.0 - self.base + 1
            };
            entries.put(page.into(), self.width);
        }
        entries.finish();
    }

    /// Groups of a directory, inside a logical block.
    fn groups_of(&self, directory: u32) -> std::ops::Range<u32> {
        let groups = self.by_directory_groups.get();
        let first = directory * groups;
        first..(first + groups).min(self.groups_per_block)
    }

    /// Page `offset` of logical block `lbn` has been programmed at `to`, which bears its tables now.
    #[inline]
    pub fn programmed(&mut self, lbn: Lbn, offset: u32, to: Ppn) {
        let (group, directory) = self.group_and_directory(lbn, offset);
        self.pte_at[group as usize] = to;
        self.pmd_at[directory as usize] = to;
    }

    /// A block that held pages of the logical blocks `logical` is about to be erased: what its OOBs bear is
    /// gone.
    pub fn erased(&mut self, block: Pbn, logical: std::ops::Range<Lbn>) {
        let first = self.geometry.first_page(block).0;
        let gone = first..first + self.geometry.pages_per_block;
        for (table, per_block) in [
            (&mut self.pte_at, self.groups_per_block),
            (&mut self.pmd_at, self.directories_per_block),
        ] {
            let (from, to) = (logical.start.0 * per_block, logical.end.0 * per_block);
            for at in &mut table[from as usize..to as usize] {
                if gone.contains(&at.0) {
                    *at = Ppn::NONE;
                }
            }
        }
    }
}

/// What the OOBs say, followed after a power cut; otherwise the scheme keeps all places in memory.
impl OobTables {
    /// Groups of all logical blocks.
    pub fn groups(&self) -> usize {
        self.pte_at.len()
    }

    /// The group of page `offset` of logical block `lbn`, among all.
    pub fn group_of(&self, lbn: Lbn, offset: u32) -> usize {
        self.group_and_directory(lbn, offset).0 as usize
    }

    /// Takes the tables of the pages that were programmed last, as far as they agree with where the pages of
    /// logical block `lbn` are: a trimmed page that came back may be missing from them. `bytes` has the OOBs by group.
    pub fn recover(&mut self, lbn: Lbn, newest: &[Ppn], sequence: &[u64], bytes: &SpareBytes) {
        let live =
            |pages: std::ops::Range<u32>| pages.filter(|&offset| newest[offset as usize].is_some());
        let youngest = |pages| live(pages).max_by_key(|&offset| sequence[offset as usize]);
        let pages_per_block = self.geometry.pages_per_block;
        let group_pages = self.by_group_pages.get();
        let pages_of = |groups: std::ops::Range<u32>| {
            groups.start * group_pages..(groups.end * group_pages).min(pages_per_block)
        };
        for group in 0..self.groups_per_block {
            let pages = pages_of(group..group + 1);
            let Some(offset) = youngest(pages.clone()) else {
                continue;
            };
            let agrees = |bytes: &[u8]| {
                live(pages.clone())
                    .all(|offset| self.read_pte(bytes, offset) == newest[offset as usize])
            };
            let (of_group, at) = (self.group_of(lbn, offset), newest[offset as usize]);
            if bytes.of(of_group, at).is_some_and(agrees) {
                self.pte_at[of_group] = at;
            }
        }
        for directory in 0..self.directories_per_block {
            let groups = self.groups_of(directory);
            let Some(offset) = youngest(pages_of(groups.clone())) else {
                continue;
            };
            let agrees = |bytes: &[u8]| {
                groups.clone().all(|group| {
                    let at = self.pte_at[(lbn.0 * self.groups_per_block + group) as usize];
                    at.is_none() || self.read_pmd(bytes, group * group_pages) == at
                })
            };
            let at = newest[offset as usize];
            if bytes.of(self.group_of(lbn, offset), at).is_some_and(agrees) {
                self.pmd_at[(lbn.0 * self.directories_per_block + directory) as usize] = at;
            }
        }
    }

    /// What the OOB of a PMD says: the page whose OOB has the PTEs of page `offset`.
    pub fn read_pmd(&self, bytes: &[u8], offset: u32) -> Ppn {
        let group = self.by_group_pages.div(offset);
        self.entry(bytes, self.by_directory_groups.rem(group))
    }

    /// What the OOB of the PTEs says: where page `offset` lies.
    pub fn read_pte(&self, bytes: &[u8], offset: u32) -> Ppn {
        let group = self.by_group_pages.div(offset);
        let groups = self.groups_of(self.by_directory_groups.div(group)).len() as u32;
        self.entry(bytes, groups + self.by_group_pages.rem(offset))
    }

    fn entry(&self, bytes: &[u8], index: u32) -> Ppn {
        match bits_at(bytes, u64::from(index) * u64::from(self.width), self.width) {
            0 => Ppn::NONE,
            page => Ppn(self.base + page as u32 - 1),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use floatgate_core::geometry::ProgramOrder;

    /// One directory covers a block of the papers' devices, so the PGD has one entry a block.
    #[test]
    fn layout_of_known_devices() {
        let layout = |blocks, pages| {
            let logical = u64::from(blocks - 64) * u64::from(pages);
            let geometry =
                Geometry::new(1, blocks, pages, logical, ProgramOrder::Ascending).unwrap();
            let layout = Layout::of(&geometry);
            (
                layout.width,
                layout.group_pages,
                layout.directory_groups,
                layout.directories_per_block,
            )
        };
        assert_eq!(layout(1_024, 128), (18, 14, 10, 1));
        assert_eq!(layout(4_096, 64), (19, 13, 5, 1));
        assert_eq!(layout(65_536, 128), (24, 10, 11, 2));
        assert_eq!(layout(100, 4), (9, 4, 1, 1));
    }
}
