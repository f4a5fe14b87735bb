//! The shape of a device and what one instance of a scheme sees of it.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use crate::address::{DieLpn, Divisor, Lpn, Pbn, Ppn};
use crate::refusal::Refusal;

/// In which order the pages of a block may be programmed between two erases.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum ProgramOrder {
    /// Only above every page already programmed (MLC, TLC, QLC). Skipped pages are lost until the
    /// erase.
    #[default]
    Ascending,
    /// Any erased page (SLC).
    Any,
}

impl ProgramOrder {
    /// The name used in configurations: `ascending` or `any`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ascending => "ascending",
            Self::Any => "any",
        }
    }

    /// The order with that name.
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::Ascending, Self::Any]
            .into_iter()
            .find(|order| order.name() == name)
    }
}

/// Most pages a block may have: positions inside a block take 16 bits.
pub const PAGES_PER_BLOCK_MAX: u32 = 65_000;

/// The shape of a device, checked: dies, blocks, pages, and the logical pages the host sees.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Geometry {
    /// Dies that work in parallel (`C`).
    pub dies: u32,
    /// Blocks of one die (`B`).
    pub blocks_per_die: u32,
    /// Pages of one block (`P`).
    pub pages_per_block: u32,
    /// Pages the host sees (`L`), a multiple of `C * P`.
    pub logical_pages: u32,
    /// Program rule of the cells.
    pub program_order: ProgramOrder,
    by_pages: Divisor,
    by_blocks: Divisor,
    by_dies: Divisor,
}

impl Geometry {
    /// A geometry of these numbers, checked.
    ///
    /// # Errors
    /// A [`Refusal`] that names the number at fault.
    pub fn new(
        dies: u32,
        blocks_per_die: u32,
        pages_per_block: u32,
        logical_pages: u64,
        program_order: ProgramOrder,
    ) -> Result<Self, Refusal> {
        let at_least_one = [
            ("dies", dies),
            ("blocks", blocks_per_die),
            ("pages", pages_per_block),
        ];
        for (key, value) in at_least_one {
            if value == 0 {
                return Err(Refusal::new(
                    key,
                    format!("{key} = 0: at least 1 is needed"),
                ));
            }
        }
        if pages_per_block > PAGES_PER_BLOCK_MAX {
            let text = format!("{pages_per_block} pages a block: at most {PAGES_PER_BLOCK_MAX}");
            return Err(Refusal::new("pages", text));
        }
        let physical = u128::from(dies) * u128::from(blocks_per_die) * u128::from(pages_per_block);
        if physical >= u128::from(u32::MAX) {
            let text = format!(
                "{dies} dies x {blocks_per_die} blocks x {pages_per_block} pages = {physical} pages: \
                 at most {} (larger pages make a larger device)",
                u32::MAX - 1
            );
            return Err(Refusal::new("blocks", text));
        }
        let unit = u64::from(dies) * u64::from(pages_per_block);
        if logical_pages == 0 || !logical_pages.is_multiple_of(unit) {
            let text = format!(
                "logical_pages = {logical_pages} is not a multiple of dies x pages = {dies} x {pages_per_block} = {unit}"
            );
            return Err(Refusal::new("logical_pages", text));
        }
        if u128::from(logical_pages) >= physical {
            let text = format!(
                "logical_pages = {logical_pages}, but the flash has only {physical} pages, and some of them must be spare"
            );
            return Err(Refusal::new("logical_pages", text));
        }
        Ok(Self {
            dies,
            blocks_per_die,
            pages_per_block,
            logical_pages: logical_pages as u32,
            program_order,
            by_pages: Divisor::new(pages_per_block),
            by_blocks: Divisor::new(blocks_per_die),
            by_dies: Divisor::new(dies),
        })
    }

    /// The same device with groups of dies for its dies, and units for its blocks: a unit is `rows` rows of one block on each
    /// die of the group.
    ///
    /// # Errors
    /// A refusal if groups and rows do not divide it.
    pub fn in_units(&self, groups: u32, rows: u32) -> Result<Self, Refusal> {
        let divides = |key: &str, n: u32, what: &str, whole: u32| {
            if n > 0 && whole.is_multiple_of(n) {
                return Ok(());
            }
            let text = format!("{key} = {n} does not divide the {whole} {what}");
            Err(Refusal::new(key, text))
        };
        divides("groups", groups, "dies", self.dies)?;
        divides("ru_rows", rows, "blocks of a die", self.blocks_per_die)?;
        let pages =
            u64::from(self.pages_per_block) * u64::from(self.dies / groups) * u64::from(rows);
        if !u64::from(self.logical_pages).is_multiple_of(u64::from(groups) * pages) {
            let text = format!(
                "logical_pages = {} is not a multiple of groups x pages of a unit = {groups} x {pages} = {}",
                self.logical_pages,
                u64::from(groups) * pages
            );
            return Err(Refusal::new("logical_pages", text));
        }
        Ok(Self {
            dies: groups,
            blocks_per_die: self.blocks_per_die / rows,
            pages_per_block: pages as u32,
            by_pages: Divisor::new(pages as u32),
            by_blocks: Divisor::new(self.blocks_per_die / rows),
            by_dies: Divisor::new(groups),
            ..self.clone()
        })
    }

    /// Physical blocks of the device.
    pub fn blocks(&self) -> u32 {
        self.dies * self.blocks_per_die
    }

    /// Physical pages of the device.
    pub fn pages(&self) -> u32 {
        self.blocks() * self.pages_per_block
    }

    /// Logical pages of one die (`L / C`).
    pub fn logical_pages_per_die(&self) -> u32 {
        self.logical_pages / self.dies
    }

    /// Logical blocks of one die (`L / (C * P)`).
    pub fn logical_blocks_per_die(&self) -> u32 {
        self.logical_pages_per_die() / self.pages_per_block
    }

    /// Logical blocks of the device (`L / P`).
    pub fn logical_blocks(&self) -> u32 {
        self.logical_pages / self.pages_per_block
    }

    /// Pages of a logical block of every die (`C * P`): what schemes for one die get a whole block each of.
    pub fn pages_of_a_block_a_die(&self) -> u32 {
        self.pages_per_block.saturating_mul(self.dies)
    }

    /// Page `page` of block `pbn`.
    #[inline(always)]
    pub fn ppn(&self, pbn: Pbn, page: u32) -> Ppn {
        Ppn(pbn.0 * self.pages_per_block + page)
    }

    /// First page of block `pbn`.
    #[inline(always)]
    pub fn first_page(&self, pbn: Pbn) -> Ppn {
        self.ppn(pbn, 0)
    }

    /// The block of a page and the page's position in it.
    #[inline(always)]
    pub fn split(&self, ppn: Ppn) -> (Pbn, u32) {
        let (block, page) = self.by_pages.div_rem(ppn.0);
        (Pbn(block), page)
    }

    /// The block of a page.
    #[inline(always)]
    pub fn block_of(&self, ppn: Ppn) -> Pbn {
        Pbn(self.by_pages.div(ppn.0))
    }

    /// The die of a block.
    #[inline(always)]
    pub fn die_of(&self, pbn: Pbn) -> u32 {
        self.by_blocks.div(pbn.0)
    }

    /// Block `index` of die `die`.
    #[inline(always)]
    pub fn pbn(&self, die: u32, index: u32) -> Pbn {
        Pbn(die * self.blocks_per_die + index)
    }

    /// `(lpn div C, lpn mod C)`: the local page of a logical page on its home die, and that die.
    #[inline(always)]
    pub fn home(&self, lpn: Lpn) -> (DieLpn, u32) {
        let (local, die) = self.by_dies.div_rem(lpn.0);
        (DieLpn(local), die)
    }

    /// Division by `P`.
    #[inline(always)]
    pub fn by_pages(&self) -> Divisor {
        self.by_pages
    }
}

/// What one instance of a scheme sees: some dies of the device and the logical pages that live there.
///
/// A scheme written for one die gets a space of one die (FTL-MM); a scheme written for many gets all.
/// Inside a space pages are numbered die by die: *local page* `die * pages_per_die + p` is the
/// device's LPN `p * C + die`. With one die that is simply the instance's local page.
#[derive(Clone, Debug)]
pub struct Space {
    /// The whole device.
    pub geometry: Geometry,
    /// First die of this space.
    pub first_die: u32,
    /// Dies of this space: 1, or all.
    pub dies: u32,
    by_die_pages: Divisor,
}

impl Space {
    /// The whole device as one space.
    pub fn whole(geometry: &Geometry) -> Self {
        Self::of(geometry, 0, geometry.dies)
    }

    /// One die of the device.
    pub fn one_die(geometry: &Geometry, die: u32) -> Self {
        Self::of(geometry, die, 1)
    }

    fn of(geometry: &Geometry, first_die: u32, dies: u32) -> Self {
        Self {
            by_die_pages: Divisor::new(geometry.logical_pages_per_die()),
            geometry: geometry.clone(),
            first_die,
            dies,
        }
    }

    /// Logical pages of this space.
    pub fn logical_pages(&self) -> u32 {
        self.geometry.logical_pages_per_die() * self.dies
    }

    /// Logical blocks of this space.
    pub fn logical_blocks(&self) -> u32 {
        self.geometry.logical_blocks_per_die() * self.dies
    }

    /// Physical blocks of this space.
    pub fn blocks(&self) -> u32 {
        self.geometry.blocks_per_die * self.dies
    }

    /// Physical page `index` of this space, counted from the first of its first die.
    #[inline(always)]
    pub fn ppn(&self, index: usize) -> Ppn {
        let first = self.geometry.pbn(self.first_die, 0);
        self.geometry.ppn(first, index as u32)
    }

    /// Which physical page of this space it is, counted alike: the index into a table of them.
    #[inline(always)]
    pub fn index_of(&self, ppn: Ppn) -> usize {
        ppn.index() - self.ppn(0).index()
    }

    /// The LPN that an OOB names for a local page (numbered die by die, see above).
    #[inline(always)]
    pub fn device_lpn(&self, local: DieLpn) -> Lpn {
        if self.geometry.dies == 1 {
            return Lpn(local.0);
        }
        let (die, page) = self.by_die_pages.div_rem(local.0);
        Lpn(page * self.geometry.dies + self.first_die + die)
    }

    /// The local page (numbered die by die) that an OOB's LPN names, if it is one of this space.
    #[inline]
    pub fn local_lpn(&self, lpn: Lpn) -> Option<DieLpn> {
        if lpn.0 >= self.geometry.logical_pages {
            return None;
        }
        let (page, die) = self.geometry.home(lpn);
        let die = die
            .checked_sub(self.first_die)
            .filter(|&die| die < self.dies)?;
        Some(DieLpn(die * self.geometry.logical_pages_per_die() + page.0))
    }

    /// This instance's share of a budget of blocks for the whole device.
    ///
    /// # Errors
    /// If it cannot be divided evenly among the dies.
    pub fn share(&self, key: &'static str, device_blocks: u32) -> Result<u32, Refusal> {
        let dies = self.geometry.dies;
        if !device_blocks.is_multiple_of(dies) {
            let below = device_blocks - device_blocks % dies;
            let text = format!(
                "{key} = {device_blocks} is given for the whole device and cannot be divided by {dies} dies; \
                 {below} or {} can",
                u64::from(below) + u64::from(dies)
            );
            return Err(Refusal::new(key, text));
        }
        Ok(device_blocks / dies)
    }

    /// Checks that the blocks of one die hold everything that `needs` lists.
    ///
    /// # Errors
    /// A refusal that shows the sum.
    pub fn need_blocks(&self, needs: &[(&str, u32)]) -> Result<(), Refusal> {
        let sum: u64 = needs.iter().map(|(_, n)| u64::from(*n)).sum();
        let have = self.geometry.blocks_per_die;
        if sum <= u64::from(have) {
            return Ok(());
        }
        let parts: Vec<String> = needs
            .iter()
            .filter(|(_, n)| *n > 0)
            .map(|(what, n)| format!("{n} {what}"))
            .collect();
        let text = format!(
            "a die has {have} blocks, but {} = {sum} are needed: give the dies more blocks, or take fewer logical pages or log blocks",
            parts.join(" + ")
        );
        Err(Refusal::new("blocks", text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn local_pages_name_each_lpn_once() {
        let geometry = Geometry::new(4, 10, 8, 192, ProgramOrder::Ascending).unwrap();
        let whole = Space::whole(&geometry);
        let mut seen: Vec<u32> = (0..192).map(|p| whole.device_lpn(DieLpn(p)).0).collect();
        seen.sort_unstable();
        assert_eq!(seen, (0..192).collect::<Vec<_>>());
        for die in 0..4 {
            let one = Space::one_die(&geometry, die);
            for p in 0..48 {
                assert_eq!(one.device_lpn(DieLpn(p)), Lpn(p * 4 + die));
                assert_eq!(one.local_lpn(Lpn(p * 4 + die)), Some(DieLpn(p)));
                assert_eq!(one.local_lpn(Lpn(p * 4 + (die + 1) % 4)), None);
                assert_eq!(
                    whole.local_lpn(Lpn(p * 4 + die)),
                    Some(DieLpn(die * 48 + p))
                );
                assert_eq!(whole.device_lpn(DieLpn(die * 48 + p)), Lpn(p * 4 + die));
            }
        }
    }

    #[test]
    fn a_budget_near_the_largest_number_is_refused_in_words() {
        let geometry = Geometry::new(4, 10, 8, 192, ProgramOrder::Ascending).unwrap();
        let share = |blocks| Space::one_die(&geometry, 0).share("log_blocks", blocks);
        let refusal = share(u32::MAX - 1).unwrap_err();
        assert!(refusal.message.ends_with("4294967292 or 4294967296 can"));
        assert_eq!(share(u32::MAX - 3), Ok((u32::MAX - 3) / 4));
    }

    #[test]
    fn refusals_name_the_key() {
        let refused = |d, b, p, l| {
            Geometry::new(d, b, p, l, ProgramOrder::Any)
                .unwrap_err()
                .key
        };
        assert_eq!(refused(0, 1, 1, 1), Some("dies".into()));
        assert_eq!(refused(1, 1, 70_000, 1), Some("pages".into()));
        assert_eq!(refused(2, 8, 4, 12), Some("logical_pages".into()));
        assert_eq!(refused(1, 4, 4, 16), Some("logical_pages".into()));
        assert_eq!(
            refused(1024, 1 << 20, 512, 1024 * 512),
            Some("blocks".into())
        );
    }
}
