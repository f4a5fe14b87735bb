//! A host that remembers what it wrote.
#![allow(dead_code)] // each test uses what it needs

pub mod cut_run;
pub mod cutting;
pub mod mixing;

use std::path::Path;

use floatgate_core::ftl::{Ftl, RecoveryMode};
use floatgate_core::options::Options;
use floatgate_core::rng::SplitMix64;
use floatgate_core::{Cause, Flash, Geometry, Lpn, Ppn, ProgramOrder, Role};
use floatgate_device::image::{CheckReport, ImageError, ImageInfo, ImageSpec};
use floatgate_device::nand::Nand;
use floatgate_device::spares::SparesOptions;
use floatgate_device::stored::{check_image, create_image};
use floatgate_device::{BlockDevice, DeviceError, NandFlash, Stored};

pub const PAGE_BYTES: usize = 32;
/// Sectors a page.
pub const SECTORS: usize = 2;
pub const SECTOR_BYTES: usize = PAGE_BYTES / SECTORS;

/// A small chip; `blocks` as the scheme sees them, the reserve on top.
pub fn chip(
    dies: u32,
    blocks: u32,
    pages: u32,
    logical_blocks: u32,
    spares: &SparesOptions,
) -> Geometry {
    let logical = u64::from(dies * pages * logical_blocks);
    Geometry::new(
        dies,
        blocks + spares.reserved_blocks(),
        pages,
        logical,
        ProgramOrder::Ascending,
    )
    .unwrap()
}

/// The scheme's defaults, with log blocks where it has them.
pub fn options_text<S: Ftl<Page = Lpn>>(dies: u32) -> String {
    let takes = |key| S::Options::schema().iter().any(|option| option.key == key);
    if takes("log_blocks") {
        format!("log_blocks={}", 4 * dies)
    } else {
        String::new()
    }
}

pub fn options_of<S: Ftl<Page = Lpn>>(dies: u32) -> S::Options {
    floatgate_device::block::options_from_text::<S>(&options_text::<S>(dies)).unwrap()
}

/// Whether the scheme has a recovery.
pub fn recovers<S: Ftl<Page = Lpn>>() -> bool {
    let shape = chip(1, 20, 6, 8, &SparesOptions::default());
    let nand = floatgate_device::RamNand::new(&shape, PAGE_BYTES);
    BlockDevice::<S, _>::open(nand, &options_of::<S>(1), RecoveryMode::Fastest).is_ok()
}

/// A host with a shadow of every page: what it must hold, and what else it may hold since a request failed.
pub struct Host<S, N> {
    pub device: BlockDevice<S, N>,
    pub page_bytes: usize,
    pub shadow: Vec<Vec<u8>>,
    /// Contents of the request that failed, by page.
    pub maybe: Vec<(u32, Vec<u8>)>,
    pub acknowledged: u64,
    pub version: u32,
}

impl<S: Ftl<Page = Lpn>, N: Nand> Host<S, N> {
    pub fn new(device: BlockDevice<S, N>) -> Self {
        let page_bytes = device.page_bytes();
        let device = device.with_sector_bytes(page_bytes / SECTORS).unwrap();
        let pages = device.sectors() as usize / SECTORS;
        Self {
            device,
            page_bytes,
            shadow: vec![vec![0; page_bytes]; pages],
            maybe: Vec::new(),
            acknowledged: 0,
            version: 0,
        }
    }

    /// Writes sectors with bytes that no other write has.
    pub fn write(&mut self, sector: u64, sectors: u64) -> Result<(), DeviceError> {
        let (page_bytes, sector_bytes) = (self.page_bytes, self.page_bytes / SECTORS);
        let mut data = vec![0; sectors as usize * sector_bytes];
        for (i, bytes) in data.chunks_mut(sector_bytes).enumerate() {
            self.version += 1;
            bytes[..4].copy_from_slice(&(sector as u32 + i as u32).to_le_bytes());
            bytes[4..8].copy_from_slice(&self.version.to_le_bytes());
            bytes[8..].fill(0x5A);
        }
        let start = sector as usize * sector_bytes;
        let (first, end) = (
            start / page_bytes,
            (start + data.len()).div_ceil(page_bytes),
        );
        let mut new = self.shadow[first..end].concat();
        new[start - first * page_bytes..][..data.len()].copy_from_slice(&data);
        let outcome = self.device.write(sector, &data);
        for (page, bytes) in (first..end).zip(new.chunks(page_bytes)) {
            if outcome.is_ok() {
                self.shadow[page] = bytes.to_vec();
            } else {
                self.maybe.push((page as u32, bytes.to_vec()));
            }
        }
        self.acknowledged += u64::from(outcome.is_ok());
        outcome
    }

    pub fn trim(&mut self, page: u32, pages: u32) -> Result<(), DeviceError> {
        let per_page = SECTORS as u64;
        let outcome = self
            .device
            .trim(u64::from(page) * per_page, u64::from(pages) * per_page);
        for page in page..page + pages {
            if outcome.is_ok() {
                self.shadow[page as usize] = vec![0; self.page_bytes];
            } else {
                self.maybe.push((page, vec![0; self.page_bytes]));
            }
        }
        outcome
    }

    /// Whether a page may hold those bytes.
    pub fn allows(&self, page: u32, bytes: &[u8]) -> bool {
        let else_ = self
            .maybe
            .iter()
            .any(|(p, other)| *p == page && other == bytes);
        self.shadow[page as usize] == bytes || else_
    }

    pub fn verify(&mut self, page: u32) -> Result<(), String> {
        self.read(page)
            .map_err(|error| format!("page {page}: {error}"))?
    }

    /// Reads a page: an error of the device, or whether the bytes are right.
    pub fn read(&mut self, page: u32) -> Result<Result<(), String>, DeviceError> {
        let bytes = self.content(page)?;
        if self.allows(page, &bytes) {
            return Ok(Ok(()));
        }
        Ok(Err(format!(
            "page {page} reads {:02x?}, must be {:02x?}",
            &bytes[..8],
            &self.shadow[page as usize][..8]
        )))
    }

    /// The bytes of a page.
    pub fn content(&mut self, page: u32) -> Result<Vec<u8>, DeviceError> {
        let mut bytes = vec![0xEE; self.page_bytes];
        self.device
            .read(u64::from(page) * SECTORS as u64, &mut bytes)?;
        Ok(bytes)
    }

    pub fn verify_all(&mut self) -> Result<(), String> {
        (0..self.shadow.len() as u32).try_for_each(|page| self.verify(page))
    }

    /// One random request: a few sectors, a stream, a trim if wanted, a check, a flush.
    pub fn random(&mut self, rng: &mut SplitMix64, trims: bool) -> Result<(), DeviceError> {
        let sectors = self.device.sectors();
        let pages = self.shadow.len() as u64;
        match rng.below(12) {
            0 if trims => {
                let first = rng.below(pages);
                self.trim(first as u32, (1 + rng.below(4)).min(pages - first) as u32)
            }
            0 | 1 => {
                let first = rng.below(sectors);
                self.write(first, (1 + rng.below(24)).min(sectors - first))
            }
            2 => {
                let page = rng.below(pages) as u32;
                self.read(page)?.unwrap_or_else(|error| panic!("{error}"));
                Ok(())
            }
            3..6 => {
                let first = rng.below(sectors);
                self.write(first, (1 + rng.below(4)).min(sectors - first))
            }
            // A hot eighth, whole pages.
            _ => self.write(rng.below((pages / 8).max(1)) * 2, 2),
        }
    }
}

/// The content of every logical page by the one rule that all schemes keep: the newest readable program of
/// a logical page wins. `Err` for a page whose newest version is lost.
pub fn scan<N: Nand>(flash: &mut NandFlash<N>, pages: usize) -> Vec<Option<Vec<u8>>> {
    let mut newest: Vec<Option<(u64, Ppn)>> = vec![None; pages];
    for page in 0..flash.ledger.geometry().pages() {
        if !flash.ledger.is_programmed(Ppn(page)) {
            continue;
        }
        let (oob, ()) = flash.read_oob(Ppn(page), Cause::Map, ()).unwrap();
        let oob = oob.map(|found| found.read);
        let Some(read) = oob.filter(|read| !matches!(read.oob.role, Role::Map | Role::Summary))
        else {
            continue;
        };
        let at = &mut newest[read.oob.lpn.index()];
        if at.is_none_or(|(sequence, _)| read.sequence > sequence) {
            *at = Some((read.sequence, Ppn(page)));
        }
    }
    let mut contents = Vec::new();
    for (lpn, at) in (0..).map(Lpn).zip(newest) {
        contents.push(at.map(|(_, at)| {
            flash.new_request(lpn, 1);
            flash
                .read_host(floatgate_core::Slot(0), at, ())
                .expect("its OOB could be read");
            flash.buffer().to_vec()
        }));
    }
    contents
}

/// Makes an image of any of our schemes.
pub fn create(path: &Path, spec: &ImageSpec) -> Result<ImageInfo, DeviceError> {
    create_image(path, spec, &floatgate_schemes::catalog::<Stored>())
}

/// Checks an image of any of our schemes.
pub fn check(path: &Path) -> Result<CheckReport, ImageError> {
    check_image(path, &floatgate_schemes::catalog::<Stored>())
}
