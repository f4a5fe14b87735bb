//! The tests that every scheme passes, for one scheme or many: [`test_scheme!`](crate::test_scheme!) makes them tests of
//! a crate. Each runs its schemes side by side, prints what it has done, and panics with the findings.

use std::fmt::Write;

use crate::case::Case;
use crate::tested::Tested;
use crate::torture::rot::Kind;
use crate::torture::{Effort, Finding, Script, Tally};
use floatgate_core::catalog::{Entry, SchemeInfo};
use floatgate_core::options::{Scope, Setting};
use floatgate_core::rng::SplitMix64;
use floatgate_core::{Catalog, Ftl, Lpn, ProgramOrder, Start};

/// Findings of one scheme that are shown; of more only the number.
const SHOWN: usize = 3;
/// Requests of a random case.
const RANDOM_REQUESTS: u32 = 250;
/// Bytes of the longest random script.
const SCRIPT_BYTES: u64 = 300;

/// How much is tried.
#[derive(Clone, Copy, Debug)]
pub struct Work {
    /// First seed of what is random.
    pub seed: u64,
    /// Random devices with random options.
    pub random_cases: u64,
    /// Power cuts.
    pub cut_points: u64,
    /// Power cuts with several dies in flight.
    pub flights: u64,
    /// Random devices that rot, for each kind of rot; each is damaged in eight ways.
    pub rot_cases: u64,
    /// Random inputs of the fuzzer.
    pub scripts: u64,
}

impl Default for Work {
    /// Some seconds.
    fn default() -> Self {
        Self {
            seed: 1,
            random_cases: 150,
            cut_points: 17_000,
            flights: 4_000,
            rot_cases: 150,
            scripts: 100,
        }
    }
}

impl Work {
    /// So many times as much.
    #[must_use]
    pub fn times(self, n: u64) -> Self {
        Self {
            seed: self.seed,
            random_cases: n * self.random_cases,
            cut_points: n * self.cut_points,
            flights: n * self.flights,
            rot_cases: n * self.rot_cases,
            scripts: n * self.scripts,
        }
    }

    /// The usual amount, `FLOATGATE_TEST_TIMES` times, from the seed `FLOATGATE_TEST_SEED` on.
    pub fn from_env() -> Self {
        let number = |name| std::env::var(name).ok()?.parse().ok();
        let usual = Self::default();
        Self {
            seed: number("FLOATGATE_TEST_SEED").unwrap_or(usual.seed),
            ..usual.times(number("FLOATGATE_TEST_TIMES").unwrap_or(1))
        }
    }
}

/// A catalog of one scheme.
pub fn one<S: Ftl<Page = Lpn>>() -> Catalog<Tested> {
    Catalog::new().with::<S>()
}

/// What a check of one scheme has come to.
#[derive(Debug, Default)]
struct Checked {
    tally: Tally,
    /// What broke.
    findings: Vec<Finding>,
    /// What the scheme leaves untested.
    gaps: Vec<String>,
}

impl Checked {
    /// Runs a case as the scheme takes it. Why not, if it takes it in no way.
    fn run(&mut self, tested: &Tested, case: &Case) -> Result<(), String> {
        let completed = tested.complete(case);
        let case = completed.map_err(|refusal| {
            self.tally.refused += 1;
            format!("{refusal}\n  {case}")
        })?;
        self.tally.tried += 1;
        let done = tested.run(&case, crate::suite::CHECK_EVERY);
        self.findings.extend(done.err());
        Ok(())
    }

    fn add(&mut self, outcome: Result<Tally, Finding>) {
        match outcome {
            Ok(tally) => self.tally += tally,
            Err(finding) => self.findings.push(finding),
        }
    }

    /// The findings as text, the first with what came of replaying their lines.
    fn complaint(&self, tested: &Tested) -> Option<String> {
        let mut text = String::new();
        for finding in self.findings.iter().take(SHOWN) {
            let again = tested.replay(&finding.line.trial);
            let _ = writeln!(text, "{finding}");
            if again.as_ref().err() != Some(finding) {
                let _ = writeln!(
                    text,
                    "  (the replay ends otherwise: {again:?}; does the scheme depend on anything but its calls?)"
                );
            }
        }
        if self.findings.len() > SHOWN {
            let _ = writeln!(text, "and {} more", self.findings.len() - SHOWN);
        }
        for gap in &self.gaps {
            let _ = writeln!(text, "{gap}");
        }
        (!text.is_empty()).then_some(text)
    }
}

/// Whether `FLOATGATE_TEST_SCHEMES` leaves a scheme out: names with commas between, all if there are none.
fn is_left_out(key: &str) -> bool {
    let named = std::env::var("FLOATGATE_TEST_SCHEMES").unwrap_or_default();
    !named.is_empty() && named.split(',').all(|name| name != key)
}

/// Checks each scheme in a thread of its own, if there are several.
///
/// # Panics
/// With everything that was found.
fn on_each<L: AsRef<Tested>>(
    catalog: &Catalog<L>,
    what: &str,
    check: impl Fn(&SchemeInfo, &Tested, &mut Checked) + Sync,
) -> Vec<(&'static str, Tally)> {
    let one = |info: SchemeInfo, tested: Tested| {
        let mut checked = Checked::default();
        check(&info, &tested, &mut checked);
        (info.key, checked.tally, checked.complaint(&tested))
    };
    let one = &one;
    let wanted = catalog.iter();
    let wanted = wanted.filter(|entry| !is_left_out(entry.info.key));
    let parts = |entry: &Entry<L>| (entry.info.clone(), *entry.life.as_ref());
    let wanted: Vec<(SchemeInfo, Tested)> = wanted.map(parts).collect();
    let outcomes: Vec<_> = std::thread::scope(|scope| {
        if wanted.len() == 1 {
            // One alone stays in this thread, which may be the one that knows what it is.
            return wanted
                .into_iter()
                .map(|(info, tested)| one(info, tested))
                .collect();
        }
        let spawn = |(info, tested)| scope.spawn(move || one(info, tested));
        let running: Vec<_> = wanted.into_iter().map(spawn).collect();
        let joined = running.into_iter().map(|thread| thread.join());
        joined
            .map(|done| done.unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
            .collect()
    });
    let mut complaints = String::new();
    let mut rows = Vec::new();
    for (key, tally, complaint) in outcomes {
        let Tally { tried, refused } = tally;
        println!("{key:<14} {tried:>8} {what}, {refused} refused");
        complaints += &complaint.unwrap_or_default();
        rows.push((key, tally));
    }
    assert!(complaints.is_empty(), "\n{complaints}");
    rows
}

/// Random requests on every shape of [`suite::cases`](crate::suite::cases), every byte compared. At least half of the
/// shapes must be taken.
///
/// # Panics
/// If a scheme fails.
pub fn every_shape<L: AsRef<Tested>>(catalog: &Catalog<L>) -> Vec<(&'static str, Tally)> {
    on_each(catalog, "plain devices", |info, tested, checked| {
        let mut refusal = None;
        for case in crate::suite::cases() {
            refusal = checked.run(tested, &case).err().or(refusal);
        }
        let Tally { tried, refused } = checked.tally;
        if let Some(why) = refusal.filter(|_| refused > tried) {
            checked.gaps.push(format!(
                "{}: refuses {refused} of {} plain devices: {why}",
                info.key,
                refused + tried
            ));
        }
    })
}

/// Options change the paths: each value of [`OptionInfo::words`](floatgate_core::options::OptionInfo::words) on two
/// devices. At least one value of each option must be taken.
///
/// # Panics
/// If a scheme fails.
pub fn every_option<L: AsRef<Tested>>(catalog: &Catalog<L>) -> Vec<(&'static str, Tally)> {
    let devices = [Case::small(1, 24, 4, 10), Case::small(2, 30, 8, 12)];
    on_each(catalog, "values of options", |info, tested, checked| {
        for option in &info.options {
            let before = checked.tally.tried;
            let mut refusal = None;
            for (device, seed) in devices.iter().zip(7..) {
                for word in option.words(device.dies) {
                    let case = Case {
                        seed,
                        requests: 500,
                        ..device.clone().with(option.key, word)
                    };
                    refusal = checked.run(tested, &case).err().or(refusal);
                }
            }
            if checked.tally.tried > before {
                continue;
            }
            let key = option.key;
            match refusal {
                Some(why) => {
                    let gap = format!("{}: no sample of {key} is taken: {why}", info.key);
                    checked.gaps.push(gap);
                }
                None => println!("{}: {key} has no samples and is not varied", info.key),
            }
        }
    })
}

/// Options meet each other: random devices, each option given or not. What does not fit is refused, the rest keeps every
/// byte.
///
/// # Panics
/// If a scheme fails.
pub fn random_devices<L: AsRef<Tested>>(
    catalog: &Catalog<L>,
    work: &Work,
) -> Vec<(&'static str, Tally)> {
    on_each(catalog, "random devices", |info, tested, checked| {
        let mut refusal = None;
        for seed in work.seed..work.seed + work.random_cases {
            let case = random_device(info, seed);
            refusal = checked.run(tested, &case).err().or(refusal);
        }
        if let (0, Some(why)) = (checked.tally.tried, refusal) {
            let gap = format!("{}: refuses every random device: {why}", info.key);
            checked.gaps.push(gap);
        }
    })
}

fn random_device(info: &SchemeInfo, seed: u64) -> Case {
    let mut rng = SplitMix64::new(seed);
    let mut below = |n: u64| rng.below(n) as u32;
    let (dies, pages, logical) = (1 + below(3), 1 + below(9), 2 + below(12));
    let mut case = Case {
        requests: RANDOM_REQUESTS,
        seed,
        start: [Start::Empty, Start::Full][below(2) as usize],
        order: [ProgramOrder::Ascending, ProgramOrder::Any][below(2) as usize],
        ..Case::small(dies, logical + 6 + below(14), pages, logical)
    };
    for option in &info.options {
        let each = if option.scope == Scope::Device {
            dies
        } else {
            1
        };
        if option.setting == Some(Setting::LogBlocks) {
            case = case.with(option.key, each * (1 + below(10)));
            continue;
        }
        let words = option.words(dies);
        if !words.is_empty() && below(3) == 0 {
            case = case.with(option.key, &words[below(words.len() as u64) as usize]);
        }
    }
    case
}

/// Power cuts at every operation of random runs on the smallest devices that a scheme takes, and of the recoveries.
///
/// # Panics
/// If a scheme fails, or if it refuses more than one recovery in a hundred.
pub fn power_cuts<L: AsRef<Tested>>(
    catalog: &Catalog<L>,
    work: &Work,
) -> Vec<(&'static str, Tally)> {
    on_each(catalog, "cut points", |info, tested, checked| {
        let effort = Effort::default();
        checked.add(tested.random_cuts(work.seed, work.cut_points, &effort, &mut || false));
        let Tally { tried, refused } = checked.tally;
        if refused * 100 > tried {
            let gap = format!("{}: {refused} of {tried} recoveries refused", info.key);
            checked.gaps.push(gap);
        }
    })
}

/// Power cuts that find each die at a point of its own, in random runs on small devices of up to four dies.
///
/// # Panics
/// If a scheme fails, or if it refuses more than one recovery in a hundred.
pub fn dies_in_flight<L: AsRef<Tested>>(
    catalog: &Catalog<L>,
    work: &Work,
) -> Vec<(&'static str, Tally)> {
    println!("seed {}", work.seed);
    on_each(catalog, "cuts in flight", |info, tested, checked| {
        checked.add(tested.random_flights(work.seed, work.flights, &mut || false));
        let Tally { tried, refused } = checked.tally;
        if refused * 100 > tried {
            let gap = format!("{}: {refused} of {tried} recoveries refused", info.key);
            checked.gaps.push(gap);
        }
    })
}

/// Where pages have become unreadable and nothing else has happened, no page reads what it never held, and it is rare
/// that a device cannot come up.
///
/// # Panics
/// If a scheme fails.
pub fn unreadable_pages<L: AsRef<Tested>>(
    catalog: &Catalog<L>,
    work: &Work,
) -> Vec<(&'static str, Tally)> {
    on_each(catalog, "recoveries", |info, tested, checked| {
        checked.add(tested.random_rot(work.seed, Kind::Unreadable, work.rot_cases));
        let Tally { tried, refused } = checked.tally;
        if refused * 100 > tried {
            let gap = format!("{}: {refused} of {tried} came not up", info.key);
            checked.gaps.push(gap);
        }
    })
}

/// Where pages say anything, nothing panics.
///
/// # Panics
/// If a scheme fails.
pub fn forged_pages<L: AsRef<Tested>>(
    catalog: &Catalog<L>,
    work: &Work,
) -> Vec<(&'static str, Tally)> {
    on_each(catalog, "recoveries", |info, tested, checked| {
        checked.add(tested.random_rot(work.seed, Kind::Forged, work.rot_cases));
        let Tally { tried, refused } = checked.tally;
        if tried > 0 && refused == tried {
            checked.gaps.push(format!("{}: never comes up", info.key));
        }
    })
}

/// Requests and power cuts as a fuzzer chooses them: from any bytes.
///
/// # Panics
/// If a scheme fails.
pub fn any_bytes<L: AsRef<Tested>>(
    catalog: &Catalog<L>,
    work: &Work,
) -> Vec<(&'static str, Tally)> {
    on_each(catalog, "cuts of random bytes", |_, tested, checked| {
        let mut rng = SplitMix64::new(work.seed);
        for _ in 0..work.scripts {
            let length = rng.below(SCRIPT_BYTES);
            let bytes: Vec<u8> = (0..length).map(|_| rng.next() as u8).collect();
            if let Some(script) = Script::of(&bytes) {
                checked.add(tested.play(&script));
            }
        }
    })
}

/// A failure prints a line that shows it again: `broken` are the schemes of `sound` with a bug put in. The suite and the
/// power cuts find it; their lines, read back from text, end in the same way; and without the bug they hold.
///
/// # Panics
/// If not.
pub fn failures_replay(sound: &Catalog<Tested>, broken: &Catalog<Tested>) {
    for (sound, broken) in sound.iter().zip(broken) {
        let (key, sound, broken) = (sound.info.key, &sound.life, &broken.life);
        let completed = crate::suite::cases()
            .into_iter()
            .find_map(|case| sound.complete(&case).ok());
        let case = completed.unwrap_or_else(|| panic!("{key} refuses every plain device"));
        let suite = broken.run(&case, crate::suite::CHECK_EVERY).err();
        let cuts = broken
            .random_cuts(1, 2000, &Effort::default(), &mut || false)
            .err();
        for finding in [suite, cuts] {
            let finding = finding.unwrap_or_else(|| panic!("{key}: the bug is not found"));
            assert_replays(&finding, sound, broken);
        }
    }
}

/// A line, read back from text, ends in the same way with the bug, and holds without.
///
/// # Panics
/// If not.
pub fn assert_replays(finding: &Finding, sound: &Tested, broken: &Tested) {
    let line = crate::torture::Line::parse(&finding.line.to_string());
    let line = line.unwrap_or_else(|error| panic!("{error}\n{finding}"));
    assert_eq!(broken.replay(&line.trial).err().as_ref(), Some(finding));
    if let Err(left) = sound.replay(&line.trial) {
        panic!("without the bug: {left}");
    }
}
