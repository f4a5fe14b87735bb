//! What happens to a flash.

use crate::ram::RamFlash;
use floatgate_core::address::{Lpn, Pbn, Ppn};
use floatgate_core::flash::{OobRead, Role};
use floatgate_core::rng::SplitMix64;

/// What happens to the flash.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// Pages become unreadable, with their OOBs; or are found to have been lost before a copy, OOB intact.
    Unreadable,
    /// Anything: OOBs and pages changed, blocks copied and swapped, too.
    Forged,
}

/// Damage to the flash of a case, and what follows from its seed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Rot {
    /// What happens.
    pub kind: Kind,
    /// How often, where, and how the run before it ended.
    pub seed: u64,
}

impl Rot {
    /// Does it to a flash.
    pub fn apply(self, ram: &mut RamFlash) {
        let mut rng = SplitMix64::new(self.seed);
        ram.forgive_torn_erases();
        match self.kind {
            Kind::Unreadable => lose_pages(ram, &mut rng),
            Kind::Forged => {
                let times = [1, 2, 3, 5, 9, 30][rng.below(6) as usize];
                for _ in 0..times {
                    forge(ram, &mut rng);
                }
            }
        }
    }
}

/// Pages that hold something.
pub(super) fn readable_pages(ram: &RamFlash) -> Vec<Ppn> {
    let geometry = ram.ledger.geometry();
    let pages = (0..geometry.pages()).map(Ppn);
    pages.filter(|&at| ram.peek_oob(at).is_some()).collect()
}

/// Some pages anywhere, of one role, of one block, or the youngest.
fn lose_pages(ram: &mut RamFlash, rng: &mut SplitMix64) {
    let geometry = ram.ledger.geometry().clone();
    let mut pages = readable_pages(ram);
    match rng.below(6) {
        0 => pages.retain(|&at| {
            let role = ram.peek_oob(at).map(|read| read.oob.role);
            matches!(role, Some(Role::Map | Role::Summary))
        }),
        1 => {
            let block = Pbn(rng.below(geometry.blocks().into()) as u32);
            pages.retain(|&at| geometry.block_of(at) == block);
        }
        2 => {
            let age = |at: &Ppn| ram.peek_oob(*at).map(|read| read.sequence);
            pages.sort_unstable_by_key(|at| std::cmp::Reverse(age(at)));
            pages.truncate(4);
        }
        _ => {}
    }
    let share = [1, 2, 3, 4 + pages.len() / 4, pages.len() / 2, pages.len()];
    let count = share[rng.below(share.len() as u64) as usize].min(pages.len());
    let content_only = rng.below(4) == 0;
    for _ in 0..count {
        let at = pages.swap_remove(rng.below(pages.len() as u64) as usize);
        if content_only {
            ram.forge(at, |_, _, bytes| bytes.clear());
        } else {
            ram.lose(at);
        }
    }
}

/// One of the many things that an image can be made to say.
fn forge(ram: &mut RamFlash, rng: &mut SplitMix64) {
    let geometry = ram.ledger.geometry().clone();
    let pages = readable_pages(ram);
    if pages.is_empty() {
        return;
    }
    let mut some_page = || pages[rng.below(pages.len() as u64) as usize];
    let (at, other) = (some_page(), some_page());
    let blocks = u64::from(geometry.blocks());
    let mut some_block = || Pbn(rng.below(blocks) as u32);
    let (block, target) = (some_block(), some_block());
    match rng.below(10) {
        0 => ram.lose(at),
        1 => {
            let kept = ram.clone();
            ram.duplicate(&kept, block, target);
        }
        2 => {
            // Two blocks change places.
            let kept = ram.clone();
            ram.duplicate(&kept, block, target);
            ram.duplicate(&kept, target, block);
        }
        3 => ram.forge(at, |_, own, _| forge_bytes(own, &geometry, rng)),
        4 => ram.forge(at, |_, _, bytes| forge_bytes(bytes, &geometry, rng)),
        5 => {
            let oob = ram.peek_oob(other);
            ram.forge(at, |read, _, _| *read = oob.unwrap_or(*read));
        }
        6 => {
            // A whole block of one kind.
            let first = geometry.first_page(block).0;
            let role = some_role(rng);
            for at in (first..first + geometry.pages_per_block).map(Ppn) {
                ram.forge(at, |read, _, _| read.oob.role = role);
            }
        }
        _ => ram.forge(at, |read, _, _| {
            forge_oob(read, ram_numbers(&geometry), rng)
        }),
    }
}

/// Numbers that mean something on a device: logical pages, blocks.
fn ram_numbers(geometry: &floatgate_core::Geometry) -> [u64; 2] {
    [geometry.logical_pages.into(), geometry.blocks().into()]
}

fn some_role(rng: &mut SplitMix64) -> Role {
    Role::ALL[rng.below(Role::ALL.len() as u64) as usize]
}

fn forge_oob(read: &mut OobRead, [pages, blocks]: [u64; 2], rng: &mut SplitMix64) {
    let any = rng.next();
    match rng.below(5) {
        0 => {
            let around = [pages - 1, pages, u64::from(u32::MAX) - 1];
            let number = match rng.below(8) {
                choice @ 0..3 => around[choice as usize],
                _ => rng.below(pages),
            };
            read.oob.lpn = Lpn(number as u32);
        }
        1 => read.oob.role = some_role(rng),
        2 | 3 => {
            let named = (rng.below(blocks + 2) as u32) << 2 | rng.below(4) as u32;
            let tags = [0, 1, 2, 3, named, named, named, any as u32];
            read.oob.tag = tags[rng.below(8) as usize];
        }
        _ => {
            let near = read
                .sequence
                .saturating_add(rng.below(60))
                .saturating_sub(30);
            let tall = [u64::MAX, u64::MAX - 1, 1 << 63, 1 << 40];
            let choices = [0, 1, near, near, near, near, tall[rng.below(4) as usize]];
            read.sequence = choices[rng.below(7) as usize];
        }
    }
}

/// A cell with the number of a block or a page in it, one bit, or noise.
fn forge_bytes(bytes: &mut [u8], geometry: &floatgate_core::Geometry, rng: &mut SplitMix64) {
    if bytes.is_empty() {
        return;
    }
    let cells = bytes.len() / 4;
    let cell = rng.below(cells.max(1) as u64) as usize * 4;
    let number = match rng.below(3) {
        0 => rng.below(u64::from(geometry.blocks()) + 1),
        1 => rng.below(u64::from(geometry.pages()) + 1),
        _ => rng.next(),
    };
    match rng.below(4) {
        0 => bytes[cell] ^= 1 << rng.below(8),
        1 => bytes.fill_with(|| rng.next() as u8),
        _ => {
            let end = bytes.len().min(cell + 4);
            bytes[cell..end].copy_from_slice(&(number as u32).to_le_bytes()[..end - cell]);
        }
    }
}
