//! The target `rot`: the device in an image whose pages say anything, with right checksums.
//!
//! | bytes | what they say |
//! |---|---|
//! | 0 | the scheme |
//! | 1 to 4 | seed of a small device and its options |
//! | 5 | spare blocks, wear levelling, paired pages; whether the device was shut down |
//! | 6 | writes before the damage |
//! | 8 each | one change: what, where, the new value, which part of it |

use std::os::unix::fs::FileExt;
use std::path::Path;

use floatgate_core::flash::Role;
use floatgate_core::options::Value;
use floatgate_core::rng::SplitMix64;
use floatgate_core::wear::WearLeveling;
use floatgate_core::{Catalog, Ftl, Lpn, ProgramOrder};
use floatgate_device::image::format::{
    BlockRecord, Header, Layout, PAGE_HEADER_BYTES, PageHeader, RegisterPage, record_at,
};
use floatgate_device::image::{self, Durability, ImageSpec, create};
use floatgate_device::nand::{BlockState, PlaceKind};
use floatgate_device::power::Powered;
use floatgate_device::spares::pairs::PairGuard;
use floatgate_device::stored::check_image;
use floatgate_device::{
    BlockDevice, DeviceError, ImageNand, NandError, Spares, SparesOptions, Stored,
};
use floatgate_testkit::suite::Case;
use floatgate_testkit::torture::random_case;

const HEAD_BYTES: usize = 7;
const CHANGE_BYTES: usize = 8;
const PAGE_BYTES: usize = 64;
const KINDS_OF_CHANGE: u8 = 15;
/// More changes tell nothing new.
const CHANGES_MAX: usize = 60;

type Device<S> = BlockDevice<S, Spares<Powered<ImageNand>>>;

/// Makes the image of a device, damages it, opens it and uses it a little.
pub fn rot(input: &[u8], schemes: &Catalog<Imaged>) {
    let Some((head, changes)) = input.split_at_checked(HEAD_BYTES) else {
        return;
    };
    let scheme = &schemes[usize::from(head[0]) % schemes.len()];
    scheme.life.0(head, changes);
}

floatgate_core::life! {
    /// A scheme on a device in an image.
    #[derive(Debug)]
    pub struct Imaged = fn play_on(&[u8], &[u8]);
}

fn play_on<S: Ftl<Page = Lpn>>(head: &[u8], changes: &[u8]) {
    let seed = u32::from_le_bytes([head[1], head[2], head[3], head[4]]);
    let case = random_case::<S>(&mut SplitMix64::new(seed.into()), 0);
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("flash.img");
    let spec = spec::<S>(&case, head[5]);
    match create::<S>(&path, &spec) {
        Ok(_) => {}
        // Some schemes have options that go without levelling, and say so.
        Err(DeviceError::Refused(why)) if why.key.as_deref() == Some("wear_leveling") => return,
        Err(error) => panic!("{}: {error}", S::KEY),
    }
    let mut device = open::<S>(&path).unwrap_or_else(|error| panic!("{}: {error}", S::KEY));
    let mut rng = SplitMix64::new(u64::from(seed) << 8 | u64::from(head[6]));
    write(&mut device, &mut rng, u32::from(head[6]) % 64);
    close(device, head[5] & 1 == 0);
    damage(&path, changes);
    assert!(
        !check_image(&path, &Catalog::<Stored>::new().with::<S>())
            .expect("an image")
            .to_string()
            .is_empty()
    );
    // Twice: what has come up and was used must come up again, or say why not.
    for _ in 0..2 {
        let Ok(mut device) = open::<S>(&path) else {
            return;
        };
        sound(&device);
        read(&mut device);
        write(&mut device, &mut rng, 20);
        if device.read_only().is_none() {
            sound(&device);
        }
        close(device, head[5] & 2 == 0);
    }
}

fn spec<S: Ftl<Page = Lpn>>(case: &Case, layer: u8) -> ImageSpec {
    let options = case.options.iter().map(|(key, value)| match value {
        Value::Text(word) => format!("{key}={word}\n"),
        value => format!("{key}={value}\n"),
    });
    let is_paired = layer & 4 != 0 && case.order == ProgramOrder::Ascending;
    ImageSpec {
        dies: case.dies,
        blocks_per_die: case.blocks,
        pages_per_block: case.pages,
        page_bytes: PAGE_BYTES as u32,
        logical_pages: case.logical_pages.into(),
        program_order: case.order,
        spares: SparesOptions {
            spare_blocks: 1 + u32::from(layer >> 3 & 1),
            pair_guard: if is_paired {
                PairGuard::Always
            } else {
                PairGuard::Off
            },
            wear_leveling: match layer >> 4 & 3 {
                0 | 1 => WearLeveling::Off,
                2 => WearLeveling::Dynamic,
                _ => WearLeveling::Static,
            },
            wear_gap: 2,
        },
        scheme: S::KEY.into(),
        options: options.collect(),
        part: String::new(),
        erase_limit: 0,
    }
}

fn open<S: Ftl<Page = Lpn>>(path: &Path) -> Result<Device<S>, DeviceError> {
    image::open(path, Durability::Process)?.with_sector_bytes(PAGE_BYTES)
}

fn sound<S: Ftl<Page = Lpn>>(device: &Device<S>) {
    if let Err(found) = device.audit() {
        panic!("{}: {found}", S::KEY);
    }
}

/// Whatever becomes of a request, the scheme must not break the rules of NAND.
fn answer<S: Ftl<Page = Lpn>>(outcome: Result<(), DeviceError>) {
    if let Err(DeviceError::Nand(error @ NandError::Misuse { .. })) = outcome {
        panic!("{}: {error}", S::KEY);
    }
}

fn read<S: Ftl<Page = Lpn>>(device: &mut Device<S>) {
    let mut page = [0; PAGE_BYTES];
    for sector in 0..device.sectors() {
        answer::<S>(device.read(sector, &mut page));
    }
}

fn write<S: Ftl<Page = Lpn>>(device: &mut Device<S>, rng: &mut SplitMix64, requests: u32) {
    let sectors = device.sectors();
    for _ in 0..requests {
        let first = rng.below(sectors);
        let pages = 1 + rng.below((sectors - first).min(8));
        let outcome = match rng.below(8) {
            0 => device.trim(first, pages),
            _ => device.write(first, &vec![rng.next() as u8; pages as usize * PAGE_BYTES]),
        };
        answer::<S>(outcome);
    }
}

fn close<S: Ftl<Page = Lpn>>(device: Device<S>, in_order: bool) {
    if !in_order {
        return;
    }
    if let Ok(spares) = device.shut_down() {
        spares.into_nand().close().expect("the file can be written");
    }
}

/// Changes pages and block records, and makes their checksums right.
fn damage(path: &Path, changes: &[u8]) {
    let header: Header = image::header_of(path).expect("the image was made");
    let layout = Layout::of(&header);
    let file = std::fs::File::options().read(true).write(true).open(path);
    let file = file.expect("the image was made");
    let pages = header.geometry.pages();
    for change in changes.chunks_exact(CHANGE_BYTES).take(CHANGES_MAX) {
        let page = u32::from(u16::from_le_bytes([change[1], change[2]])) % pages;
        let value = u32::from_le_bytes([change[3], change[4], change[5], change[6]]);
        let put = |at, bytes: &[u8]| file.write_all_at(bytes, at).expect("a temporary file");
        if change[0] % KINDS_OF_CHANGE == 12 {
            let block = page / header.geometry.pages_per_block;
            let record = BlockRecord {
                version: 1 << 40,
                op: u64::from(change[7] >> 4),
                erases: value,
                state: BlockState::from_code(change[7] % 4).unwrap_or_default(),
            };
            put(record_at(block, 1), &record.encode(block));
            continue;
        }
        if change[0] % KINDS_OF_CHANGE == 13 {
            let entries = std::array::from_fn(|i| u64::from(value) << (i % 41) ^ (i as u64) << 63);
            let page = RegisterPage {
                version: change[7].into(),
                entries,
            };
            put(
                layout.register_at(0, u64::from(change[7] & 1)),
                &page.encode(0),
            );
            continue;
        }
        let Some((mut found, mut data)) = page_of(&file, &layout, page) else {
            continue;
        };
        match change[0] % KINDS_OF_CHANGE {
            0 => {
                put(layout.header_at(page), &[0xA5; PAGE_HEADER_BYTES]);
                continue;
            }
            1 => {
                // The bytes rot, the header stays.
                data[usize::from(change[7]) % PAGE_BYTES] ^= 1;
                put(layout.data_at(page), &data);
                continue;
            }
            2 => {
                let Some((other, bytes)) = page_of(&file, &layout, value % pages) else {
                    continue;
                };
                (found.spare, data) = (other.spare, bytes);
            }
            _ => forge(
                &mut found,
                &mut data,
                change[0] % KINDS_OF_CHANGE,
                value,
                change[7],
                &header,
            ),
        }
        put(layout.data_at(page), &data);
        let forged = PageHeader::new(found.era, page, found.op, &found.spare, &data);
        put(layout.header_at(page), &forged.encode());
    }
}

fn page_of(file: &std::fs::File, layout: &Layout, page: u32) -> Option<(PageHeader, Vec<u8>)> {
    let mut bytes = [0; PAGE_HEADER_BYTES];
    file.read_exact_at(&mut bytes, layout.header_at(page))
        .ok()?;
    let header = PageHeader::decode(&bytes, page).ok()??;
    let mut data = vec![0; PAGE_BYTES];
    file.read_exact_at(&mut data, layout.data_at(page)).ok()?;
    Some((header, data))
}

/// One part of a page.
fn forge(found: &mut PageHeader, data: &mut [u8], what: u8, value: u32, part: u8, header: &Header) {
    let spare = &mut found.spare;
    let cell = usize::from(part) * 4 % PAGE_BYTES;
    match what {
        3 => spare.oob.lpn = Lpn(value % (header.geometry.logical_pages + 2)),
        4 => spare.oob.role = Role::ALL[value as usize % Role::ALL.len()],
        5 => spare.oob.tag = value,
        6 => {
            let near = spare.sequence.saturating_add((value % 100).into());
            spare.sequence = match part % 4 {
                0 => near,
                1 => near.saturating_sub(100),
                2 => u64::from(value),
                _ => u64::from(value) << (part % 40),
            }
        }
        7 => spare.bytes[cell..cell + 4].copy_from_slice(&value.to_le_bytes()),
        8 => data[cell..cell + 4].copy_from_slice(&value.to_le_bytes()),
        9 => data[cell..cell + 4].copy_from_slice(&(value % 64).to_le_bytes()),
        10 => spare.lost = !spare.lost,
        14 => match part % 3 {
            0 => {
                found.op = found
                    .op
                    .saturating_add((value % 100).into())
                    .saturating_sub(50)
            }
            1 => found.op = u64::from(value) << (part % 30),
            _ => spare.stamp = u64::from(value) << (part % 30),
        },
        _ => {
            let place = &mut spare.place;
            match part % 7 {
                0 => place.block = value % header.geometry.blocks(),
                1 => place.page = value as u16 % 16,
                2 => place.generation = u64::from(value) << (part % 40),
                3 => place.moved = value as u16 % 16,
                4 => place.kind = KINDS[value as usize % KINDS.len()],
                5 => place.origin = value % header.geometry.blocks(),
                _ => place.generation += u64::from(value % 4),
            }
        }
    }
}

const KINDS: [PlaceKind; 4] = [
    PlaceKind::Plain,
    PlaceKind::Mapped,
    PlaceKind::Moved,
    PlaceKind::Backup,
];
