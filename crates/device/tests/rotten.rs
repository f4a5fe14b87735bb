//! Rot in the file of an image: bits that flip, pages that never arrived, pages that arrived in a wrong place. After an
//! orderly close no page of the host ever reads as anything but its newest content, or an error.
//!
//! A failure prints a line; `FLOATGATE_ROT="LINE" cargo test -p floatgate-device --test rotten` runs it again.

mod common;

use common::Host;
use common::mixing::{MixDisk, header_of, new_image, open_image};
use floatgate_catalog as _;
use floatgate_core::Lpn;
use floatgate_core::ftl::Ftl;
use floatgate_core::rng::SplitMix64;
use floatgate_device::SparesOptions;
use floatgate_device::image::format::{HEADER_BYTES, Layout, PAGE_HEADER_BYTES};
use floatgate_testkit::torture::random_case;

const PAGE_BYTES: usize = 64;

/// What happens to the file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Rot {
    /// A bit of a header, a record, the register, a page's header or bytes flips.
    Anywhere,
    /// A bit of a page's bytes flips.
    PageBytes,
    /// A page of the file is what it was when the image was closed the time before.
    LostWrite,
    /// A block is what it was when the image was closed the time before.
    LostBlock,
    /// A page, with its header, was written where another belongs.
    Misdirected,
}

#[derive(Clone, Copy, Debug)]
struct Trial {
    rot: Rot,
    /// Closed in order, or left as the process ended after a flush.
    closed: bool,
}

#[derive(Clone, Copy, Default, Debug)]
struct Tally {
    files: u64,
    refused: u64,
    errors: u64,
    reads: u64,
}

floatgate_core::life! {
    /// The trials, for every scheme.
    struct Rots = fn Trial::run_on(&Trial, u64, &mut Tally) -> Result<(), String>;
}

impl Trial {
    fn run_on<S: Ftl<Page = Lpn>>(&self, seed: u64, tally: &mut Tally) -> Result<(), String> {
        let mut rng = SplitMix64::new(seed);
        let case = random_case::<S>(&mut rng, 0);
        let spares = SparesOptions::default();
        let disk = new_image::<S>(&case, spares, PAGE_BYTES);
        let mut host = Host::new(open_image::<S>(&case, &disk, spares).map_err(|e| e.to_string())?);
        let mut images = Vec::new();
        for _ in 0..2 {
            for _ in 0..60 {
                host.random(&mut rng, true).map_err(|e| e.to_string())?;
            }
            let Host {
                device,
                shadow,
                version,
                ..
            } = host;
            let chip = device.shut_down().map_err(|e| e.to_string())?;
            chip.into_nand().close().map_err(|e| e.to_string())?;
            images.push(disk.image());
            host = Host::new(open_image::<S>(&case, &disk, spares).map_err(|e| e.to_string())?);
            (host.shadow, host.version) = (shadow, version);
        }
        if !self.closed {
            for _ in 0..30 {
                host.random(&mut rng, true).map_err(|e| e.to_string())?;
            }
            host.device.flush().map_err(|e| e.to_string())?;
            images.push(disk.image());
        }
        let layout = {
            let header = header_of::<S>(&case, spares, PAGE_BYTES);
            (Layout::of(&header), header.geometry)
        };
        let newest = images.pop().unwrap();
        let shadow = host.shadow;
        for _ in 0..8 {
            let mut image = newest.clone();
            self.damage(&mut image, &images[images.len() - 1], &layout, &mut rng);
            tally.files += 1;
            let Ok(device) = open_image::<S>(&case, &MixDisk::of(&image), spares) else {
                tally.refused += 1;
                continue;
            };
            let mut host = Host::new(device);
            for (page, wanted) in shadow.iter().enumerate() {
                tally.reads += 1;
                match host.content(page as u32) {
                    Ok(bytes) if bytes == *wanted => {}
                    Ok(bytes) => {
                        return Err(format!(
                            "page {page} reads {:02x?}, not {:02x?}",
                            &bytes[..8],
                            &wanted[..8]
                        ));
                    }
                    Err(_) => tally.errors += 1,
                }
            }
        }
        Ok(())
    }

    fn damage(
        &self,
        image: &mut [u8],
        before: &[u8],
        (layout, geometry): &(Layout, floatgate_core::Geometry),
        rng: &mut SplitMix64,
    ) {
        let pages = u64::from(geometry.pages());
        let programmed = |image: &[u8], page: u32| {
            let at = layout.header_at(page) as usize;
            image[at..at + PAGE_HEADER_BYTES]
                .iter()
                .any(|&byte| byte != 0)
        };
        let any = |rng: &mut SplitMix64, image: &[u8]| loop {
            let page = rng.below(pages) as u32;
            if programmed(image, page) {
                return page;
            }
        };
        let mut flip = |at: u64, bytes: u64, rng: &mut SplitMix64| {
            image[(at + rng.below(bytes)) as usize] ^= 1 << rng.below(8);
        };
        let header = PAGE_HEADER_BYTES as u64;
        match self.rot {
            Rot::Anywhere => match rng.below(4) {
                0 => flip(0, layout.block_at(0), rng),
                1 | 2 => {
                    let page = loop {
                        let page = rng.below(pages) as u32;
                        if programmed(before, page) {
                            break page;
                        }
                    };
                    flip(layout.header_at(page), header, rng);
                }
                _ => flip(
                    layout.block_at(0),
                    layout.file_bytes - layout.block_at(0),
                    rng,
                ),
            },
            Rot::PageBytes => {
                let page = rng.below(pages) as u32;
                flip(layout.data_at(page), PAGE_BYTES as u64, rng);
            }
            Rot::LostWrite => {
                let first = 2 * HEADER_BYTES as u64 / 4096;
                let at = (first + rng.below(layout.file_bytes / 4096 - first)) as usize * 4096;
                image[at..at + 4096].copy_from_slice(&before[at..at + 4096]);
            }
            Rot::LostBlock => {
                let at = layout.block_at(rng.below(geometry.blocks().into()) as u32) as usize;
                let end = at + layout.block_bytes as usize;
                image[at..end].copy_from_slice(&before[at..end]);
            }
            Rot::Misdirected => {
                let (from, to) = (any(rng, image), rng.below(pages) as u32);
                for (from, to, bytes) in [
                    (layout.header_at(from), layout.header_at(to), header),
                    (layout.data_at(from), layout.data_at(to), PAGE_BYTES as u64),
                ] {
                    image.copy_within(from as usize..(from + bytes) as usize, to as usize);
                }
            }
        }
    }
}

fn nothing_older(trial: Trial, seeds: u64) {
    let line = std::env::var("FLOATGATE_ROT").unwrap_or_default();
    let words: Vec<&str> = line.split_whitespace().collect();
    let (mut sum, mut wrong) = (Tally::default(), Vec::new());
    for scheme in &floatgate_schemes::catalog::<Rots>() {
        let mut drawn = SplitMix64::new(77);
        for _ in 0..seeds {
            let mut seed = drawn.next() >> 24;
            if let [key, name, only] = words[..] {
                if key != scheme.info.key || name != format!("{:?}", trial.rot) {
                    break;
                }
                seed = only.parse().expect("a seed");
            }
            if let Err(what) = scheme.life.0(&trial, seed, &mut sum) {
                wrong.push(format!(
                    "{} {:?} {seed}: {what}",
                    scheme.info.key, trial.rot
                ));
            }
        }
    }
    println!("{trial:?}: {sum:?}");
    assert!(
        wrong.is_empty(),
        "{} wrong\n{}",
        wrong.len(),
        wrong.join("\n")
    );
    assert!(
        !words.is_empty() || sum.errors > 0,
        "the damage does no harm"
    );
}

#[test]
fn after_an_orderly_close_rot_is_an_error_and_never_older_data() {
    for rot in [
        Rot::Anywhere,
        Rot::PageBytes,
        Rot::LostBlock,
        Rot::Misdirected,
    ] {
        let closed = true;
        nothing_older(Trial { rot, closed }, 12);
    }
}

#[test]
fn a_page_of_the_file_that_was_never_written_is_noticed_after_an_orderly_close() {
    let (rot, closed) = (Rot::LostWrite, true);
    nothing_older(Trial { rot, closed }, 12);
}

#[test]
fn rotten_bytes_are_an_error_even_if_the_image_was_never_closed() {
    let (rot, closed) = (Rot::PageBytes, false);
    nothing_older(Trial { rot, closed }, 12);
}
