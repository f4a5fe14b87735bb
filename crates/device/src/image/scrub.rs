//! Scrubbing an image: everything is read, and what begins to fail is written anew while it can still be read.

use std::path::{Path, PathBuf};

use floatgate_core::Lpn;
use floatgate_core::ftl::Ftl;
use serde::Serialize;

use super::{Durability, open};
use crate::error::DeviceError;
use crate::nand::{Nand, PatrolFound};

/// What a scrub has found and done.
#[derive(Clone, Debug, Serialize)]
pub struct ScrubReport {
    /// The image.
    pub path: PathBuf,
    /// Pages read, lost, and moved.
    #[serde(flatten)]
    pub pages: PatrolFound,
    /// Blocks of which a record was damaged, and is written anew.
    pub records_mended: u64,
    /// Copies of pages of the register that were damaged, and are written anew.
    pub register_mended: u64,
    /// Entries of phase-change memory that were damaged, and are right again.
    pub entries_mended: u64,
    /// Logical pages whose content is lost: until they are written again, reading them is an error.
    pub lost_logical_pages: Vec<u32>,
}

impl std::fmt::Display for ScrubReport {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let PatrolFound {
            checked_pages,
            retried_pages,
            lost_pages,
            rewritten_blocks,
        } = self.pages;
        let path = self.path.display();
        writeln!(
            f,
            "{path}: {checked_pages} pages read ({retried_pages} with retries, {lost_pages} lost), \
             {rewritten_blocks} blocks written anew"
        )?;
        if self.entries_mended > 0 {
            writeln!(
                f,
                "{path}: damaged entries of phase-change memory written anew: {}",
                self.entries_mended
            )?;
        }
        if self.records_mended + self.register_mended > 0 {
            writeln!(
                f,
                "{path}: damaged copies written anew: {} block records, {} pages of the register",
                self.records_mended, self.register_mended
            )?;
        }
        let lost = &self.lost_logical_pages;
        if !lost.is_empty() {
            let shown: Vec<String> = lost.iter().take(20).map(u32::to_string).collect();
            let more = if lost.len() > shown.len() {
                ", ..."
            } else {
                ""
            };
            writeln!(
                f,
                "{path}: {} logical pages cannot be read until they are written again: {}{more}",
                lost.len(),
                shown.join(", ")
            )?;
        }
        Ok(())
    }
}

/// Reads all of an image, and writes anew what begins to fail. A block with a page that is lost moves too; the page
/// stays an error.
///
/// # Errors
/// As [`open`]; those of writing the file.
pub fn scrub<S: Ftl<Page = Lpn>>(path: &Path) -> Result<ScrubReport, DeviceError> {
    let mut device = open::<S>(path, Durability::Machine)?;
    let chip = device.flash_layer_mut().nand_mut().nand_mut().inner_mut();
    let register_mended = chip.found().damaged_register;
    // The start has put them right.
    let entries_mended = chip.found().damaged_entries;
    let records_mended = chip.mend_records()?;
    let blocks = device.flash_layer().nand().geometry().blocks();
    let pages = device.patrol(blocks)?;
    let mut report = ScrubReport {
        path: path.to_path_buf(),
        pages,
        records_mended,
        register_mended,
        entries_mended,
        lost_logical_pages: Vec::new(),
    };
    let mut bytes = vec![0; device.page_bytes()];
    let sectors = (device.page_bytes() / device.sector_bytes()) as u64;
    for page in 0..(device.sectors() / sectors) as u32 {
        match device.read(u64::from(page) * sectors, &mut bytes) {
            Ok(()) => {}
            Err(DeviceError::Nand(error)) if error.is_lost_page() => {
                report.lost_logical_pages.push(page);
            }
            Err(error) => return Err(error),
        }
    }
    device.shut_down()?.into_nand().close()?;
    Ok(report)
}
