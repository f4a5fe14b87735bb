//! The start state `full` of schemes that map blocks.

use floatgate_core::address::{DieLpn, Lbn, Pbn, Ppn};
use floatgate_core::flash::{Oob, Preload, Role, SpareArea};
use floatgate_core::geometry::Space;

/// Fills a space: every logical block whole and valid in the physical block of the same number of its die.
/// `newest` gets the place of each page, `data_block` hears of each logical block.
///
/// # Errors
/// Those of the flash.
pub fn fill<F: Preload>(
    space: &Space,
    flash: &mut F,
    newest: &mut [Ppn],
    data_block: impl FnMut(Lbn, Pbn),
) -> Result<(), F::Error> {
    fill_with(space, flash, newest, |_, oob| oob, data_block)
}

/// The same with what `spare` makes of each page's OOB.
///
/// # Errors
/// Those of the flash.
pub fn fill_with<F: Preload, O: SpareArea>(
    space: &Space,
    flash: &mut F,
    newest: &mut [Ppn],
    spare: impl Fn(DieLpn, Oob) -> O,
    mut data_block: impl FnMut(Lbn, Pbn),
) -> Result<(), F::Error> {
    let geometry = &space.geometry;
    let (pages, per_die) = (geometry.pages_per_block, geometry.logical_blocks_per_die());
    for lbn in 0..space.logical_blocks() {
        let block = geometry.pbn(space.first_die + lbn / per_die, lbn % per_die);
        let first = lbn * pages;
        for offset in 0..pages {
            newest[(first + offset) as usize] = geometry.ppn(block, offset);
        }
        flash.preload(block, pages, |offset| {
            let page = DieLpn(first + offset);
            spare(page, Oob::new(space.device_lpn(page), Role::Data))
        })?;
        data_block(Lbn(lbn), block);
    }
    Ok(())
}
