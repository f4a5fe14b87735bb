//! A disk in memory below an image, with a page cache between them: a crash of the machine loses any part of what was not
//! synced, and any call can be made to fail.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::rc::Rc;

use floatgate_core::ftl::{Ftl, RecoveryMode};
use floatgate_core::rng::SplitMix64;
use floatgate_core::{Geometry, Lpn};
use floatgate_device::image::Durability;
use floatgate_device::image::disk::Disk;
use floatgate_device::image::format::{HEADER_BYTES, Header, Layout};
use floatgate_device::{BlockDevice, DeviceError, ImageNand, Spares, SparesOptions};
use floatgate_testkit::case::Case;

/// Bytes of a page of the page cache: it reaches the disk whole.
const CACHE_PAGE: usize = 4096;

type Page = Rc<[u8; CACHE_PAGE]>;

/// What a call is to fail with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Failure {
    /// The machine is gone: this call and all later ones do nothing.
    Crash,
    /// Input/output error; nothing is done. Once.
    Eio,
    /// No space left, after half of the bytes were written. Once.
    Enospc,
    /// The sync fails, and what was to be synced is lost: the kernel marks the pages clean.
    LostSync,
}

/// Calls that change the file, by number.
#[derive(Clone, Copy, Debug)]
pub struct FailAt {
    pub call: u64,
    pub failure: Failure,
}

#[derive(Debug, Default)]
struct State {
    bytes: u64,
    /// What programs read.
    cached: BTreeMap<u64, Page>,
    /// What is on the disk for certain.
    stable: BTreeMap<u64, Page>,
    /// Pages written since the last sync, in every version that they had.
    versions: BTreeMap<u64, Vec<Page>>,
    calls: u64,
    syncs: u64,
    fail_at: Option<FailAt>,
    gone: bool,
}

/// See the module's text. Clones are the same disk.
#[derive(Clone, Debug, Default)]
pub struct MixDisk(Rc<RefCell<State>>);

fn blank() -> Page {
    Rc::new([0; CACHE_PAGE])
}

impl MixDisk {
    /// A disk that holds those bytes, all of them stable.
    pub fn of(bytes: &[u8]) -> Self {
        let pages = (0..).zip(bytes.chunks(CACHE_PAGE).map(|chunk| {
            let mut page = [0; CACHE_PAGE];
            page[..chunk.len()].copy_from_slice(chunk);
            Rc::new(page)
        }));
        let stable: BTreeMap<u64, Page> = pages.collect();
        Self(Rc::new(RefCell::new(State {
            bytes: bytes.len() as u64,
            cached: stable.clone(),
            stable,
            ..State::default()
        })))
    }

    /// From now on, counted from 0, that call fails.
    pub fn fail_at(&self, fail_at: FailAt) {
        let mut state = self.0.borrow_mut();
        state.calls = 0;
        state.fail_at = Some(fail_at);
    }

    /// Calls that changed the file, since [`MixDisk::fail_at`].
    pub fn calls(&self) -> u64 {
        self.0.borrow().calls
    }

    /// Syncs so far.
    pub fn syncs(&self) -> u64 {
        self.0.borrow().syncs
    }

    /// Whether the machine is gone.
    pub fn is_gone(&self) -> bool {
        self.0.borrow().gone
    }

    /// A byte changes on the disk.
    pub fn damage(&self, at: u64) {
        let state = &mut *self.0.borrow_mut();
        let (number, byte) = (at / CACHE_PAGE as u64, at as usize % CACHE_PAGE);
        for pages in [&mut state.cached, &mut state.stable] {
            let mut page = **pages.entry(number).or_insert_with(blank);
            page[byte] ^= 0x55;
            pages.insert(number, Rc::new(page));
        }
    }

    /// Everything that programs read.
    pub fn image(&self) -> Vec<u8> {
        let mut bytes = vec![0; self.0.borrow().bytes as usize];
        self.read(&mut bytes, 0).unwrap();
        bytes
    }

    /// The disk after the end of the process: everything that was written is there.
    pub fn after_the_process(&self) -> Self {
        let state = self.0.borrow();
        Self(Rc::new(RefCell::new(State {
            bytes: state.bytes,
            cached: state.cached.clone(),
            stable: state.stable.clone(),
            versions: state.versions.clone(),
            ..State::default()
        })))
    }

    /// The disk after a crash of the machine: of each page written since the last sync any version.
    pub fn after_a_crash(&self, rng: &mut SplitMix64) -> Self {
        let state = self.0.borrow();
        let mut stable = state.stable.clone();
        let lucky = [1, 5, 9][rng.below(3) as usize];
        for (&number, versions) in &state.versions {
            if rng.below(10) < lucky {
                // The last version twice as often: the page was written once, or reached the disk late.
                let i = rng.below(versions.len() as u64 + 1) as usize;
                let version = versions[i.min(versions.len() - 1)].clone();
                stable.insert(number, version);
            }
        }
        Self(Rc::new(RefCell::new(State {
            bytes: state.bytes,
            cached: stable.clone(),
            stable,
            ..State::default()
        })))
    }

    /// Counts a call; `partly` does what a failing one has done.
    fn call(&self, partly: impl FnOnce(&mut State)) -> io::Result<()> {
        let state = &mut *self.0.borrow_mut();
        if state.gone {
            return Err(io::Error::other("the machine is gone"));
        }
        let number = state.calls;
        state.calls += 1;
        match state.fail_at.filter(|at| at.call == number) {
            None => Ok(()),
            Some(at) => {
                match at.failure {
                    Failure::Crash => state.gone = true,
                    Failure::Eio => {}
                    Failure::Enospc | Failure::LostSync => partly(state),
                }
                Err(match at.failure {
                    Failure::Enospc => io::ErrorKind::StorageFull.into(),
                    _ => io::Error::from_raw_os_error(5),
                })
            }
        }
    }
}

impl State {
    fn write(&mut self, bytes: &[u8], at: u64) {
        let mut done = 0;
        while done < bytes.len() {
            let (number, start) = (
                (at + done as u64) / CACHE_PAGE as u64,
                (at as usize + done) % CACHE_PAGE,
            );
            let now = (CACHE_PAGE - start).min(bytes.len() - done);
            let mut page = **self.cached.entry(number).or_insert_with(blank);
            page[start..start + now].copy_from_slice(&bytes[done..done + now]);
            let page = Rc::new(page);
            self.cached.insert(number, page.clone());
            self.versions.entry(number).or_default().push(page);
            done += now;
        }
    }
}

impl Disk for MixDisk {
    fn read(&self, bytes: &mut [u8], at: u64) -> io::Result<()> {
        let state = self.0.borrow();
        if at + bytes.len() as u64 > state.bytes {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        for (i, byte) in bytes.iter_mut().enumerate() {
            let at = at as usize + i;
            let page = state.cached.get(&((at / CACHE_PAGE) as u64));
            *byte = page.map_or(0, |page| page[at % CACHE_PAGE]);
        }
        Ok(())
    }

    fn write(&self, bytes: &[u8], at: u64) -> io::Result<()> {
        self.call(|state| state.write(&bytes[..bytes.len() / 2], at))?;
        self.0.borrow_mut().write(bytes, at);
        Ok(())
    }

    fn punch(&self, at: u64, bytes: u64) -> io::Result<()> {
        self.call(|_| {})?;
        let zeroes = vec![0; bytes as usize];
        self.0.borrow_mut().write(&zeroes, at);
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        // What the kernel could not write it forgets: the programs still read it, the disk never gets it.
        self.call(|state| state.versions.clear())?;
        let state = &mut *self.0.borrow_mut();
        state.syncs += 1;
        for number in std::mem::take(&mut state.versions).into_keys() {
            state.stable.insert(number, state.cached[&number].clone());
        }
        Ok(())
    }

    fn bytes(&self) -> io::Result<u64> {
        Ok(self.0.borrow().bytes)
    }
}

/// The header of an image for a case.
pub fn header_of<S: Ftl<Page = Lpn>>(
    case: &Case,
    spares: SparesOptions,
    page_bytes: usize,
) -> Header {
    let blocks = case.blocks + spares.reserved_blocks();
    let pages = case.logical_pages.into();
    Header {
        clean: true,
        exact: true,
        sequence: 1,
        durable: 0,
        pcm: S::KEY == "hat",
        geometry: Geometry::new(case.dies, blocks, case.pages, pages, case.order).unwrap(),
        page_bytes: page_bytes as u32,
        spares,
        created: 0,
        uuid: [7; 16],
        erase_limit: 0,
        scheme: S::KEY.into(),
        part: String::new(),
        options: String::new(),
    }
}

/// A fresh device on a disk, closed in order.
pub fn new_image<S: Ftl<Page = Lpn>>(
    case: &Case,
    spares: SparesOptions,
    page_bytes: usize,
) -> MixDisk {
    let header = header_of::<S>(case, spares, page_bytes);
    let bytes = Layout::of(&header).file_bytes;
    let mut image = vec![0; bytes as usize];
    image[HEADER_BYTES..2 * HEADER_BYTES].copy_from_slice(&header.encode());
    let disk = MixDisk::of(&image);
    let nand = ImageNand::open_on(disk.clone(), Path::new("disk"), Durability::Machine);
    let chip = Spares::format(nand.unwrap(), spares).unwrap();
    let options = case.options_of::<S>().unwrap();
    let device = BlockDevice::<S, _>::create(chip, &options).unwrap();
    device.shut_down().unwrap().into_nand().close().unwrap();
    disk
}

/// The device on a disk.
pub fn open_image<S: Ftl<Page = Lpn>>(
    case: &Case,
    disk: &MixDisk,
    spares: SparesOptions,
) -> Result<BlockDevice<S, Spares<ImageNand<MixDisk>>>, DeviceError> {
    let nand = ImageNand::open_on(disk.clone(), Path::new("disk"), Durability::Machine)?;
    let options = case.options_of::<S>()?;
    BlockDevice::open(
        Spares::mount(nand, spares)?,
        &options,
        RecoveryMode::Fastest,
    )
}
