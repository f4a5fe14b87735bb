//! Runs of whole devices, cut everywhere: random shapes, random options, as few blocks as the scheme accepts.

use floatgate_core::ftl::{Ftl, RecoveryMode};
use floatgate_core::refusal::RefusalKind;
use floatgate_core::rng::SplitMix64;
use floatgate_core::{Geometry, Lpn, ProgramOrder, Space};
use floatgate_device::faulty::{CutKind, FaultPlan, HiddenTears};
use floatgate_device::spares::pairs::PairGuard;
use floatgate_device::{BlockDevice, DeviceError, RamNand, Spares, SparesOptions};
use floatgate_testkit::case::Case as Shape;
use floatgate_testkit::catch;
use floatgate_testkit::torture::random_case;

use super::cutting::{Change, Recorder, Tears, cut};
use super::{Host, PAGE_BYTES, SECTOR_BYTES};

const KINDS: [CutKind; 3] = [CutKind::Torn, CutKind::Before, CutKind::After];
/// Requests after a recovery.
const REQUESTS_AFTER: u32 = 12;

/// What is cut.
#[derive(Clone)]
pub struct Case {
    pub seed: u64,
    pub spares: SparesOptions,
    pub plan: FaultPlan,
    /// Whether only flushed data has to be there.
    pub flushed_only: bool,
    pub requests: u32,
    /// Of so many cuts (three an operation) one is tried, of so many of these one has its recovery cut too. No
    /// multiple of three.
    pub one_in: u64,
    /// Of the scheme's cuts the one to try, with every cut of its recovery.
    pub only: Option<u64>,
}

#[derive(Default)]
pub struct Tally {
    pub tried: u64,
    /// Cuts after two torn operations that left a scheme without an erased page which says that this may be.
    pub refused: u64,
    pub restored: u64,
    pub lower_pages: u64,
    /// Blocks moved at the mount because a cut may have been in them.
    pub settled: u64,
    pub losses: Vec<String>,
}

impl std::ops::AddAssign for Tally {
    fn add_assign(&mut self, other: Self) {
        self.tried += other.tried;
        self.refused += other.refused;
        self.restored += other.restored;
        self.lower_pages += other.lower_pages;
        self.settled += other.settled;
        self.losses.extend(other.losses);
    }
}

/// What the host may find.
struct Expect {
    before: Vec<Vec<u8>>,
    after: Vec<Vec<u8>>,
    /// All that each page has held.
    history: Vec<Vec<Vec<u8>>>,
    /// What each page held at the last flush or later, if only flushed data counts.
    since_flush: Option<Vec<Vec<Vec<u8>>>>,
}

impl Expect {
    fn new(pages: &[Vec<u8>], flushed_only: bool) -> Self {
        let held: Vec<_> = pages.iter().map(|page| vec![page.clone()]).collect();
        Self {
            before: pages.to_vec(),
            after: pages.to_vec(),
            since_flush: flushed_only.then(|| held.clone()),
            history: held,
        }
    }

    fn acknowledged(&mut self, pages: &[Vec<u8>]) {
        self.before = std::mem::replace(&mut self.after, pages.to_vec());
        let lists = std::iter::once(&mut self.history).chain(&mut self.since_flush);
        for list in lists {
            for (held, now) in list.iter_mut().zip(pages) {
                if held.last() != Some(now) {
                    held.push(now.clone());
                }
            }
        }
    }

    fn flushed(&mut self) {
        for (held, now) in self.since_flush.iter_mut().flatten().zip(&self.after) {
            *held = vec![now.clone()];
        }
    }

    /// A page that is or may be trimmed holds zeroes or anything that it once held.
    fn allows(&self, page: usize, bytes: &[u8]) -> bool {
        let flushed = self.since_flush.iter().flat_map(|lists| &lists[page]);
        let mut may_be = [&self.before[page], &self.after[page]]
            .into_iter()
            .chain(flushed);
        let trimmed = may_be
            .clone()
            .any(|held| held.iter().all(|&byte| byte == 0));
        may_be.any(|held| held == bytes)
            || trimmed && self.history[page].iter().any(|held| held == bytes)
    }
}

floatgate_core::life! {
    /// The cuts, for every scheme.
    pub struct Cuts = fn Case::play_on(&Case) -> Tally;
}

/// The device of a run.
struct Device<S: Ftl> {
    shape: Shape,
    options: S::Options,
    chip: Geometry,
    /// Whether its scheme may refuse after torn operations.
    may_run_out: bool,
}

type Running<S> = Host<S, Spares<Recorder>>;

impl Case {
    fn tears(&self) -> Tears {
        Tears {
            paired_pages: self.plan.paired_pages,
            hidden: self.plan.hidden_tears,
        }
    }

    /// A random device that the scheme accepts, and the host on it.
    fn device<S: Ftl<Page = Lpn>>(&self, rng: &mut SplitMix64) -> (Device<S>, Running<S>) {
        let has_pairs = self.plan.paired_pages || self.spares.pair_guard != PairGuard::Off;
        loop {
            let mut shape = random_case::<S>(rng, 0);
            if has_pairs {
                shape.order = ProgramOrder::Ascending;
            }
            let blocks = shape.blocks + self.spares.reserved_blocks();
            let logical = shape.logical_pages.into();
            let chip = Geometry::new(shape.dies, blocks, shape.pages, logical, shape.order);
            let (chip, options) = (chip.unwrap(), shape.options_of::<S>().unwrap());
            let ram = RamNand::new(&chip, PAGE_BYTES);
            let ram = if self.plan.hidden_tears == HiddenTears::default() {
                ram
            } else {
                ram.unsettled()
            };
            let recorder = Recorder::new(ram, self.plan.clone());
            let spares = Spares::format(recorder, self.spares).unwrap();
            match BlockDevice::<S, _>::create(spares, &options) {
                Ok(made) => {
                    let space = Space::whole(&shape.geometry().unwrap());
                    let device = Device {
                        may_run_out: S::may_run_out_of_pages(&space, &options),
                        shape,
                        options,
                        chip,
                    };
                    return (device, Host::new(made));
                }
                // Pages in ascending order may take another block.
                Err(DeviceError::Refused(_)) if has_pairs => {}
                Err(error) => panic!("{}: {error}: {shape}", S::KEY),
            }
        }
    }

    fn play_on<S: Ftl<Page = Lpn>>(&self) -> Tally {
        let mut rng = SplitMix64::new(self.seed);
        let (device, mut host) = self.device::<S>(&mut rng);
        let mut expect = Expect::new(&host.shadow, self.flushed_only);
        let mut tally = Tally::default();
        let mut number = 0;
        for request in 0..self.requests {
            if request % 13 == 12 {
                host.device.flush().unwrap();
                expect.flushed();
                continue;
            }
            recorder_of(&mut host).record();
            match host.random(&mut rng, true) {
                Ok(()) => {}
                Err(error) if error.is_read_only() => break,
                Err(error) => panic!("{} seed {}: {error}", S::KEY, self.seed),
            }
            expect.acknowledged(&host.shadow);
            for (chip, change) in recorder_of(&mut host).recorded() {
                for kind in KINDS {
                    number += 1;
                    let is_chosen = match self.only {
                        Some(only) => only == number,
                        None => (self.seed + number).is_multiple_of(self.one_in),
                    };
                    if is_chosen {
                        let cut = (&chip, &change, kind, number);
                        self.try_cut::<S>(&device, cut, &expect, &mut tally);
                    }
                }
            }
        }
        tally
    }
}

fn recorder_of<S: Ftl<Page = Lpn>>(host: &mut Running<S>) -> &mut Recorder {
    host.device.flash_layer_mut().nand_mut().nand_mut()
}

/// What a device did after a cut.
struct Came {
    /// States that mount and recovery passed through.
    states: Vec<(RamNand, Change)>,
    restored: u64,
    settled: u64,
}

enum Failed {
    Refused(String),
    Lost(String),
}

impl Case {
    fn try_cut<S: Ftl<Page = Lpn>>(
        &self,
        device: &Device<S>,
        (chip, change, kind, number): (&RamNand, &Change, CutKind, u64),
        expect: &Expect,
        tally: &mut Tally,
    ) {
        let (chip, lower_pages) = cut(chip, change, kind, number, self.tears());
        tally.lower_pages += lower_pages;
        tally.tried += 1;
        let named = |text: String| {
            let (key, seed) = (S::KEY, self.seed);
            format!(
                "{text}\n  {kind:?} in {change}; {key} on {}, chip of {} blocks a die\n  \
                 again: FLOATGATE_CUTS={key}:{seed}:{number}",
                device.shape, device.chip.blocks_per_die
            )
        };
        let came = match self.come_back::<S>(device, chip, number, expect) {
            Ok(came) => came,
            Err(Failed::Refused(text) | Failed::Lost(text)) => {
                return tally.losses.push(named(text));
            }
        };
        tally.restored += came.restored;
        tally.settled += came.settled;
        if self.only.is_none() && !tally.tried.is_multiple_of(self.one_in.min(7)) {
            return;
        }
        for (i, (chip, change)) in came.states.iter().enumerate() {
            let again = KINDS[(number as usize + i) % 3];
            let (chip, _) = cut(chip, change, again, number, self.tears());
            tally.tried += 1;
            match self.come_back::<S>(device, chip, number + 1, expect) {
                Ok(_) => {}
                Err(Failed::Refused(_)) if device.may_run_out => tally.refused += 1,
                Err(Failed::Refused(text) | Failed::Lost(text)) => {
                    let text = format!("{text}; again {again:?} in change {i}, {change}");
                    tally.losses.push(named(text));
                }
            }
        }
    }

    /// Mounts and recovers, compares, goes on, compares again, mounts again.
    fn come_back<S: Ftl<Page = Lpn>>(
        &self,
        device: &Device<S>,
        chip: RamNand,
        number: u64,
        expect: &Expect,
    ) -> Result<Came, Failed> {
        let body = || self.come_back_unguarded::<S>(device, chip, number, expect);
        catch(body).unwrap_or_else(|panic| Err(Failed::Lost(panic)))
    }

    fn mount<S: Ftl<Page = Lpn>>(
        &self,
        device: &Device<S>,
        recorder: Recorder,
        number: u64,
    ) -> Result<(Running<S>, u64, u64), Failed> {
        let mounted = Spares::mount(recorder, self.spares).map_err(|e| lost(&e))?;
        let stats = mounted.stats();
        let means = [RecoveryMode::Fastest, RecoveryMode::FullScan][number as usize % 2];
        match BlockDevice::<S, _>::open(mounted, &device.options, means) {
            Ok(device) => Ok((
                Host::new(device),
                stats.restored_pages,
                stats.settled_blocks,
            )),
            Err(DeviceError::Refused(why)) if why.kind == RefusalKind::NoRoom => {
                Err(Failed::Refused(format!("does not mount: {why}")))
            }
            Err(error) => Err(lost(&error)),
        }
    }

    fn come_back_unguarded<S: Ftl<Page = Lpn>>(
        &self,
        device: &Device<S>,
        chip: RamNand,
        number: u64,
        expect: &Expect,
    ) -> Result<Came, Failed> {
        let mut recorder = Recorder::new(chip, FaultPlan::default());
        recorder.record();
        let (mut host, restored, settled) = self.mount::<S>(device, recorder, number)?;
        let states = recorder_of(&mut host).recorded();
        for page in 0..host.shadow.len() {
            let mut bytes = vec![0xEE; PAGE_BYTES];
            let sector = (page * PAGE_BYTES / SECTOR_BYTES) as u64;
            let read = host.device.read(sector, &mut bytes);
            read.map_err(|error| Failed::Lost(format!("page {page}: {error}")))?;
            if !expect.allows(page, &bytes) {
                let text = format!("page {page} reads {:?}", &bytes[..8]);
                return Err(Failed::Lost(text));
            }
            host.shadow[page] = bytes;
        }
        host.version = 1 << 30;
        let mut rng = SplitMix64::new(number);
        // Without trims, so that the next mount must find exactly this.
        for _ in 0..REQUESTS_AFTER {
            match host.random(&mut rng, false) {
                Err(error) if error.is_read_only() => break,
                done => done.map_err(|e| lost(&e))?,
            }
        }
        host.verify_all().map_err(|e| lost(&e))?;
        host.device.audit().map_err(|e| lost(&e))?;
        let came = Came {
            states,
            restored,
            settled,
        };
        let has_zeroes = |page: &Vec<u8>| page.iter().all(|&byte| byte == 0);
        if host.device.read_only().is_some() || host.shadow.iter().any(has_zeroes) {
            return Ok(came);
        }
        let (shadow, maybe) = (std::mem::take(&mut host.shadow), host.maybe);
        let chip = host.device.into_nand().into_nand().into_chip();
        let recorder = Recorder::new(chip, FaultPlan::default());
        let (mut again, ..) = self.mount::<S>(device, recorder, number + 1)?;
        (again.shadow, again.maybe) = (shadow, maybe);
        again
            .verify_all()
            .map_err(|e| Failed::Lost(format!("{e} after another mount")))?;
        Ok(came)
    }
}

fn lost(error: &dyn std::fmt::Display) -> Failed {
    Failed::Lost(error.to_string())
}
