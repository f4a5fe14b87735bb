//! Every scheme on an image: bytes kept, the file closed, opened again, read, and checked without findings.

mod common;

use common::{Host, PAGE_BYTES, check, chip, options_of, options_text};
use floatgate_catalog as _;
use floatgate_core::rng::SplitMix64;
use floatgate_core::wear::WearLeveling;
use floatgate_core::{Ftl, Lpn};
use floatgate_device::image::format::Header;
use floatgate_device::image::{Durability, ImageSpec, info, open};
use floatgate_device::spares::pairs::PairGuard;
use floatgate_device::{BlockDevice, ImageNand, Powered, Spares, SparesOptions};

fn header<S: Ftl<Page = Lpn>>(
    dies: u32,
    blocks: u32,
    pages: u32,
    logical: u32,
    spares: SparesOptions,
) -> Header {
    let shape = chip(dies, blocks, pages, logical, &spares);
    let spec = ImageSpec {
        dies,
        blocks_per_die: blocks,
        pages_per_block: pages,
        page_bytes: PAGE_BYTES as u32,
        logical_pages: shape.logical_pages.into(),
        program_order: shape.program_order,
        spares,
        scheme: S::KEY.into(),
        options: options_text::<S>(dies),
        part: String::new(),
        erase_limit: 0,
    };
    spec.header().unwrap()
}

struct OnImage {
    seed: u64,
    spares: SparesOptions,
}

floatgate_core::life! {
    /// The run, for every scheme.
    struct Plays = fn OnImage::play_on(OnImage);
}

impl OnImage {
    fn play_on<S: Ftl<Page = Lpn>>(self) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("flash.img");
        let header = header::<S>(2, 30, 8, 12, self.spares);
        let nand = ImageNand::create(&path, &header, Durability::Process).unwrap();
        let spares = Spares::format(Powered::new(nand, false), self.spares).unwrap();
        let device = BlockDevice::<S, _>::create(spares, &options_of::<S>(2)).unwrap();
        let mut host = Host::new(device);
        let mut rng = SplitMix64::new(self.seed);
        for round in 0..3 {
            for _ in 0..150 {
                host.random(&mut rng, true).unwrap();
            }
            host.device.flush().unwrap();
            host.verify_all().unwrap();
            host.device.audit().unwrap();
            host = reopened(host, &path, round % 2 == 0);
            host.verify_all()
                .unwrap_or_else(|error| panic!("{}: {error}", S::KEY));
            host.device.audit().unwrap();
        }
        drop(host);
        let report = check(&path).unwrap();
        assert!(report.is_sound(), "{}:\n{report}", S::KEY);
        assert!(report.pages_good > 0);
    }
}

/// The device mounted from the file: closed cleanly, or left as if the process had ended.
fn reopened<S: Ftl<Page = Lpn>>(
    host: Host<S, Spares<Powered<ImageNand>>>,
    path: &std::path::Path,
    clean: bool,
) -> Host<S, Spares<Powered<ImageNand>>> {
    if clean {
        let nand = host.device.shut_down().unwrap().into_nand();
        nand.close().unwrap();
    } else {
        drop(host.device);
    }
    assert_eq!(info(path).unwrap().clean, clean);
    let device = open::<S>(path, Durability::Process);
    let device = device.unwrap().with_sector_bytes(common::SECTOR_BYTES);
    Host {
        device: device.unwrap(),
        ..host
    }
}

#[test]
fn every_scheme_keeps_every_byte_in_a_file() {
    let manners = [
        SparesOptions::default(),
        SparesOptions {
            wear_leveling: WearLeveling::Static,
            wear_gap: 2,
            pair_guard: PairGuard::Flushed,
            ..SparesOptions::default()
        },
    ];
    for scheme in &floatgate_schemes::catalog::<Plays>() {
        for (seed, spares) in (11..).zip(manners) {
            scheme.life.0(OnImage { seed, spares });
        }
    }
}
