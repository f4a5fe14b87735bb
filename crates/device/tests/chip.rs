//! The chip in a file by itself, and the flash above it: what a whole device does too rarely to be found out by it.

mod common;

use std::path::Path;

use common::mixing::{MixDisk, new_image};
use floatgate_core::flash::{Flash, Oob, Role};
use floatgate_core::rng::SplitMix64;
use floatgate_core::wear::WearLeveling;
use floatgate_core::{Geometry, Lpn, Pbn, Ppn, Slot};
use floatgate_device::image::Durability;
use floatgate_device::nand::{BlockState, Spare};
use floatgate_device::{
    BlockDevice, ImageNand, Nand, NandError, NandFlash, RamNand, Spares, SparesOptions,
};
use floatgate_schemes::page::Page;
use floatgate_testkit::case::Case;

const PAGE_BYTES: usize = 4096;

/// An image that a device has closed.
fn disk() -> MixDisk {
    let case = Case::small(1, 6, 4, 2);
    new_image::<Page>(&case, SparesOptions::default(), PAGE_BYTES)
}

fn open(disk: &MixDisk) -> ImageNand<MixDisk> {
    ImageNand::open_on(disk.clone(), Path::new("disk"), Durability::Machine).unwrap()
}

fn program<N: Nand>(nand: &mut N, page: u32, sequence: u64) {
    let spare = Spare::new(Oob::new(Lpn(page), Role::Data), sequence);
    let data = vec![page as u8 | 1; nand.page_bytes()];
    nand.program(Ppn(page), &spare, &data).unwrap();
}

fn holds<N: Nand>(nand: &mut N, page: u32) -> bool {
    let mut data = vec![0; nand.page_bytes()];
    nand.read(Ppn(page), &mut data).is_ok() && data.iter().all(|&byte| byte == page as u8 | 1)
}

#[test]
fn a_closed_image_is_on_the_disk() {
    for seed in 0..50 {
        let disk = disk();
        let mut nand = open(&disk);
        assert!(nand.has_exact_register());
        (0..8).for_each(|page| program(&mut nand, page, u64::from(page) + 1));
        nand.erase(Pbn(1)).unwrap();
        nand.close().unwrap();
        let mut nand = open(&disk.after_a_crash(&mut SplitMix64::new(seed)));
        assert!(nand.found().clean && nand.found().stale == 0);
        // No device has kept its register.
        assert!(!nand.has_exact_register());
        assert!((0..4).all(|page| holds(&mut nand, page)), "seed {seed}");
        assert!(!nand.is_programmed(Ppn(4)) && nand.erase_count(Pbn(1)) == 1);
    }
}

/// Between erase and close nothing flushes, as a device would.
#[test]
fn a_block_that_was_erased_and_programmed_again_is_kept_by_the_close() {
    let disk = disk();
    let mut nand = open(&disk);
    program(&mut nand, 4, 1);
    nand.erase(Pbn(1)).unwrap();
    program(&mut nand, 4, 2);
    nand.close().unwrap();
    assert!(holds(&mut open(&disk), 4));
}

/// Three erases in a row come round to the record of the first, which is still looked for.
#[test]
fn a_record_is_not_overwritten_while_it_is_looked_for() {
    for seed in 0..300 {
        let disk = disk();
        let mut nand = open(&disk);
        nand.erase(Pbn(1)).unwrap();
        program(&mut nand, 0, 1);
        nand.flush().unwrap();
        nand.erase(Pbn(1)).unwrap();
        nand.erase(Pbn(1)).unwrap();
        let mut nand = open(&disk.after_a_crash(&mut SplitMix64::new(seed)));
        assert!(holds(&mut nand, 0), "seed {seed}: it was flushed");
    }
}

/// Its header can be read, its bytes cannot: wear levelling moves it all the same.
#[test]
fn a_rotten_page_is_no_page_of_zeroes_after_its_block_has_moved() {
    let disk = disk();
    let options = SparesOptions {
        wear_leveling: WearLeveling::Static,
        wear_gap: 1,
        ..SparesOptions::default()
    };
    let mut nand = Spares::mount(open(&disk), options).unwrap();
    program(&mut nand, 0, 1);
    program(&mut nand, 1, 2);
    nand.flush().unwrap();
    let content = [1; PAGE_BYTES];
    let image = disk.image();
    let at = image.windows(PAGE_BYTES).position(|bytes| bytes == content);
    disk.damage(at.unwrap() as u64);
    for sequence in 3..100 {
        program(&mut nand, 4, sequence);
        nand.erase(Pbn(1)).unwrap();
    }
    assert!(nand.stats().wear_swaps > 0 && nand.stats().lost_pages > 0);
    assert!(nand.read_spare(Ppn(0)).unwrap().lost);
    let mut flash = NandFlash::new(nand).unwrap();
    flash.new_request(Lpn(0), 1);
    let read = flash.read_host(Slot(0), Ppn(0), ());
    assert!(matches!(read, Err(NandError::Unreadable { .. })));
}

#[test]
fn the_content_of_another_page_is_never_read() {
    let geometry = Case::small(1, 6, 4, 2).geometry().unwrap();
    let mut flash = NandFlash::new(RamNand::new(&geometry, 16)).unwrap();
    flash.new_request(Lpn(3), 1);
    flash
        .program_host(Slot(0), Ppn(0), Oob::new(Lpn(3), Role::Data), ())
        .unwrap();
    flash.new_request(Lpn(3), 1);
    flash.read_host(Slot(0), Ppn(0), ()).unwrap();
    // As a table that has rotted may have it.
    flash.new_request(Lpn(5), 1);
    let read = flash.read_host(Slot(0), Ppn(0), ());
    assert!(matches!(read, Err(NandError::Unreadable { .. })));
}

/// The page with the number may be erased, but what the trim says of it stands.
#[test]
fn the_number_of_a_trim_is_not_given_out_again() {
    let geometry = Case::small(1, 6, 4, 2).geometry().unwrap();
    let mut nand = RamNand::new(&geometry, 512);
    let mut register = vec![0; geometry.logical_pages as usize];
    register[0] = 1 << 63 | 1000;
    nand.save_register(0, &register).unwrap();
    let mut device = BlockDevice::<Page, _>::create(nand, &Default::default()).unwrap();
    let mut read = [0; 512];
    device.write(0, &[7; 512]).unwrap();
    device.read(0, &mut read).unwrap();
    assert_eq!(read, [7; 512]);
}

/// A chip that fails to flush once.
struct Unflushed(RamNand, bool);

impl Nand for Unflushed {
    fn geometry(&self) -> &Geometry {
        self.0.geometry()
    }
    fn page_bytes(&self) -> usize {
        self.0.page_bytes()
    }
    fn is_programmed(&self, page: Ppn) -> bool {
        self.0.is_programmed(page)
    }
    fn erase_count(&self, block: Pbn) -> u32 {
        self.0.erase_count(block)
    }
    fn block_state(&self, block: Pbn) -> BlockState {
        self.0.block_state(block)
    }
    fn last_sequence(&self) -> u64 {
        self.0.last_sequence()
    }
    fn read(&mut self, page: Ppn, data: &mut [u8]) -> Result<Spare, NandError> {
        self.0.read(page, data)
    }
    fn read_spare(&mut self, page: Ppn) -> Result<Spare, NandError> {
        self.0.read_spare(page)
    }
    fn program(&mut self, page: Ppn, spare: &Spare, data: &[u8]) -> Result<(), NandError> {
        self.0.program(page, spare, data)
    }
    fn erase(&mut self, block: Pbn) -> Result<(), NandError> {
        self.0.erase(block)
    }
    fn mark_bad(&mut self, block: Pbn, state: BlockState) -> Result<(), NandError> {
        self.0.mark_bad(block, state)
    }
    fn flush(&mut self) -> Result<(), NandError> {
        if std::mem::take(&mut self.1) {
            let source = std::io::Error::from_raw_os_error(5);
            return Err(NandError::Io {
                doing: "flush",
                source,
            });
        }
        Ok(())
    }
}

#[test]
fn a_failed_flush_is_final_whatever_the_chip_says_later() {
    let geometry = Case::small(1, 6, 4, 2).geometry().unwrap();
    let chip = Unflushed(RamNand::new(&geometry, 512), false);
    let mut device = BlockDevice::<Page, _>::create(chip, &Default::default()).unwrap();
    device.write(0, &[7; 512]).unwrap();
    device.flash_layer_mut().nand_mut().1 = true;
    device.flush().unwrap_err();
    let why = device.read_only().expect("read-only");
    assert!(why.contains("cannot flush"), "{why}");
    assert!(device.flush().is_err() && device.write(0, &[8; 512]).is_err());
    let mut read = [0; 512];
    device.read(0, &mut read).unwrap();
    assert_eq!(read, [7; 512]);
}
