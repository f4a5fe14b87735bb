//! The suite that every scheme passes, a user's own included: random requests against a shadow copy of
//! the bytes, on a flash that stores bytes.
//!
//! A failure prints one line that [`replay`](crate::replay) takes.

use crate::torture::{Finding, Trial, catch};
use floatgate_core::Refusal;
use floatgate_core::ftl::{Ftl, Start};
use floatgate_core::geometry::ProgramOrder;
use floatgate_core::options::Options;
use floatgate_core::rng::SplitMix64;

use crate::bench::stream_of;
pub use crate::bench::{Bench, random_request, refusal_of};
pub use crate::case::{Case, random_shape, with_random_map};

/// After so many requests the tables are checked, unless told otherwise.
pub const CHECK_EVERY: u32 = 16;

/// Runs one case: random requests of several shapes, bytes compared, tables and laws checked. A panic is a failure like
/// any other.
///
/// # Errors
/// What failed, at which request, with the line that replays it.
pub fn run<S: Ftl>(case: &Case) -> Result<(), Finding> {
    run_checked::<S>(case, CHECK_EVERY)
}

/// The same with the tables checked after every `check_every`-th request.
///
/// # Errors
/// What failed, at which request, with the line that replays it.
pub fn run_checked<S: Ftl>(case: &Case, check_every: u32) -> Result<(), Finding> {
    let mut reached = 0;
    let done = catch(|| play::<S>(case, check_every, &mut reached));
    let done = done.unwrap_or_else(|panic| Err(format!("request {reached}: {panic}")));
    done.map_err(|what| Finding::new(S::KEY, Trial::Suite(case.clone(), check_every), what))
}

/// The requests of a case. `reached` is the one that is under way, for the message of a panic.
fn play<S: Ftl>(case: &Case, check_every: u32, reached: &mut u32) -> Result<(), String> {
    let mut bench = Bench::<S>::new(case).map_err(|refusal| format!("refused: {refusal}"))?;
    bench.stream = stream_of;
    let mut rng = SplitMix64::new(case.seed);
    let pages = case.logical_pages;
    let (mut sequential, mut now) = (0, 0);
    let mut pauses = SplitMix64::new(!case.seed);
    for request in 0..case.requests {
        *reached = request;
        bench.audit_each = request % check_every == 0;
        let (first, n) = match rng.below(10) {
            0 => {
                // A sequential stream.
                let n = 1 + rng.below(u64::from(case.pages)) as u32;
                let first = sequential % pages;
                sequential = first + n.min(pages - first);
                (first, n)
            }
            1 => (
                rng.below(u64::from(pages)) as u32,
                1 + rng.below(u64::from(3 * case.pages * case.dies)) as u32,
            ),
            2 => {
                // A whole logical block and what follows.
                let block = case.pages * case.dies;
                (rng.below(u64::from(pages / block)) as u32 * block, block)
            }
            3..6 => (rng.below(u64::from(pages)) as u32, 1 + rng.below(3) as u32),
            // A hot eighth of the space.
            _ => (rng.below(u64::from((pages / 8).max(1))) as u32, 1),
        };
        let n = n.min(pages - first);
        // Idle times of all lengths, most of them short; a second now and then, for schemes with timers.
        let longest = 200_000_000 >> pauses.below(4);
        now += if pauses.below(4) == 0 {
            1_000_000_000
        } else {
            pauses.below(longest)
        };
        bench
            .arrive(now)
            .map_err(|error| format!("before request {request}: {error}"))?;
        let outcome = match rng.below(20) {
            0 | 1 => bench.trim(first, n),
            2..6 => bench.read(first, n),
            _ => bench.write(first, n),
        };
        outcome.map_err(|error| format!("request {request} ({first} +{n}): {error}"))?;
    }
    *reached = case.requests;
    bench.audit()?;
    bench.read_all()?;
    let Ok(()) = bench.ftl.shutdown(&mut bench.flash);
    bench.audit()?;
    bench.write(0, 1)?;
    bench.read_all()?;
    bench.audit()
}

/// The case as a scheme takes it: [completed](Case::completed), and where it is refused still, with one option more at the
/// first sample that makes it fit. So a value that only goes with another one is tried too.
///
/// # Errors
/// The refusal of the case without another option, if none helps.
pub fn complete<S: Ftl>(case: &Case) -> Result<Case, Refusal> {
    let options = S::Options::schema();
    let case = case.clone().completed(&options);
    let Some(refusal) = refusal_of::<S>(&case) else {
        return Ok(case);
    };
    let others = options.iter().filter(|option| !case.sets(option.key));
    let variants = others.flat_map(|option| {
        let words = option.words(case.dies).into_iter();
        words.map(|word| case.clone().with(option.key, word))
    });
    let mut accepted = variants.filter(|case| refusal_of::<S>(case).is_none());
    accepted.next().ok_or(refusal)
}

/// Geometries that every scheme is tried on.
pub fn cases() -> Vec<Case> {
    let shapes = [
        (1, 16, 4, 6),
        (1, 24, 8, 12),
        (2, 20, 4, 8),
        (3, 20, 5, 7),
        (4, 24, 8, 10),
        (1, 20, 1, 8),
        (1, 24, 6, 12),
    ];
    let mut cases = Vec::new();
    for (i, (dies, blocks, pages, logical)) in shapes.into_iter().enumerate() {
        for start in [Start::Empty, Start::Full] {
            for order in [ProgramOrder::Ascending, ProgramOrder::Any] {
                let seed = 100 + cases.len() as u64;
                cases.push(Case {
                    start,
                    order,
                    seed,
                    requests: 300 + 100 * (i as u32 % 3),
                    ..Case::small(dies, blocks, pages, logical)
                });
            }
        }
    }
    cases
}
