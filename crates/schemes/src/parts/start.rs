//! The start state `full` of schemes that map blocks.

use floatgate_core::address::{Lpn, Pbn, Ppn};
use floatgate_core::flash::{Flash, Role};
use floatgate_core::geometry::Space;

/// Fills a space: every logical block whole and valid in the physical block of the same number of its die.
/// `newest` gets the place of each page, `data_block` hears of each logical block.
pub fn fill<F: Flash>(
    space: &Space,
    flash: &mut F,
    newest: &mut [Ppn],
    mut data_block: impl FnMut(u32, Pbn),
) {
    let geometry = &space.geometry;
    let (pages, per_die) = (geometry.pages_per_block, geometry.logical_blocks_per_die());
    for l in 0..space.logical_blocks() {
        let block = geometry.pbn(space.first_die + l / per_die, l % per_die);
        let first = l * pages;
        for o in 0..pages {
            newest[(first + o) as usize] = geometry.ppn(block, o);
        }
        let lpn_of = &mut |o| space.device_lpn(Lpn(first + o));
        flash.preload(block, pages, Role::Data, lpn_of);
        data_block(l, block);
    }
}
