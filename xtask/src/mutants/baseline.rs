//! The suites without a bug: they must pass, and their times say when one hangs.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

use super::bench::End;
use super::suites::{Binaries, Suite};

/// A suite without a bug takes no longer.
const LIMIT: Duration = Duration::from_secs(1800);

/// The time of a suite, or why there is none.
type Time = Arc<OnceLock<Result<Duration, String>>>;

/// What is known of the suites so far: each is run when the first bug needs it.
#[derive(Default)]
pub struct Baseline {
    /// By suite, and the schemes that it is run on.
    known: Mutex<BTreeMap<(&'static str, String), Time>>,
}

impl Baseline {
    /// How long a suite takes.
    ///
    /// # Errors
    /// The test that fails.
    pub fn time(
        &self,
        binaries: &Binaries,
        suite: &Suite,
        schemes: &str,
    ) -> Result<Duration, String> {
        let time = {
            let mut known = self.known.lock().map_err(|error| error.to_string())?;
            let key = (suite.name, schemes.to_string());
            Arc::clone(known.entry(key).or_default())
        };
        time.get_or_init(|| {
            binaries.of(suite)?;
            let start = Instant::now();
            match binaries.run(suite, schemes, None, LIMIT) {
                End::Passed => Ok(start.elapsed()),
                End::Failed(test) => Err(format!(
                    "without a bug {} {schemes} fails: {test}",
                    suite.name
                )),
            }
        })
        .clone()
    }
}
