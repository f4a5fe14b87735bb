//! Builds states and checks them, several at a time, and reduces a bad one.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard};

use floatgate_serve::crash::{Builder, History, State, build};
use floatgate_serve::log::LogError;
use tempfile::TempDir;

use super::check::{Check, Verdict};
use crate::errors::{Outcome, Problem};
use crate::progress::Bar;

/// Checks that are spent on reducing a bad state at most.
const REDUCE_MAX: usize = 200;

/// A state that a check found bad.
#[derive(Clone)]
pub struct Bad {
    pub state: State,
    pub why: String,
    pub words: String,
}

impl Bad {
    /// How much was lost: the state of several bad ones that tells most has the fewest losses.
    pub fn losses(&self) -> (usize, bool, usize) {
        let state = &self.state;
        (state.dropped.len(), state.torn.is_some(), state.interval)
    }
}

/// A log, its states in a folder, a check.
pub struct Explorer<'h> {
    history: &'h History,
    builder: Mutex<Builder<'h>>,
    check: Check,
    folder: TempDir,
}

impl<'h> Explorer<'h> {
    pub fn new(history: &'h History, check: Check) -> Outcome<Self> {
        let folder = tempfile::Builder::new()
            .prefix("floatgate-crash-")
            .tempdir();
        let folder = folder.map_err(|error| {
            Problem::new(format!("states need a folder: {error}"))
                .help("set TMPDIR to one that can be written")
        })?;
        let builder = Builder::new(history, folder.path()).map_err(not_built)?;
        Ok(Self {
            history,
            builder: Mutex::new(builder),
            check,
            folder,
        })
    }

    /// Whether a signal came.
    pub fn stop(&self) -> &AtomicBool {
        &self.check.stop
    }

    fn builder(&self) -> MutexGuard<'_, Builder<'h>> {
        // A worker that panicked takes the command with it.
        self.builder.lock().unwrap_or_else(|e| e.into_inner())
    }

    /// A file with a state, for whoever asks from one thread.
    pub fn build(&self, state: &State) -> Outcome<PathBuf> {
        self.build_for(0, state)
    }

    fn build_for(&self, worker: usize, state: &State) -> Outcome<PathBuf> {
        let path = self.folder.path().join(format!("state-{worker}.raw"));
        // A check may have left a loop device on the last one: that file is not touched any more.
        let _ = std::fs::remove_file(&path);
        let begun = self.builder().begin(state.interval, &path);
        begun
            .and_then(|file| build::finish(self.history, state, &file))
            .map_err(not_built)?;
        Ok(path)
    }

    fn check_one(&self, worker: usize, state: &State) -> Outcome<Option<Verdict>> {
        if self.stop().load(Ordering::Relaxed) {
            return Ok(None);
        }
        let path = self.build_for(worker, state)?;
        let interval = &self.history.intervals[state.interval];
        let mut said = String::new();
        for mark in &self.history.marks[..state.marks(interval)] {
            said.push_str(mark);
            said.push('\n');
        }
        let marks = self.folder.path().join(format!("marks-{worker}"));
        std::fs::write(&marks, said)
            .map_err(|error| Problem::new(format!("{}: {error}", marks.display())))?;
        let output = self.folder.path().join(format!("output-{worker}"));
        self.check.run(&path, &marks, &output).map(Some)
    }

    /// Checks states, some at a time, up to the first bad one or to the end: how many, and the bad ones.
    pub fn check_all(
        &self,
        states: &[State],
        jobs: usize,
        keep_going: bool,
    ) -> Outcome<(usize, Vec<Bad>)> {
        let bar = Bar::long(states.len() as u64, "states");
        let (next, checked) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let is_over = AtomicBool::new(false);
        let found: Mutex<Outcome<Vec<(usize, Bad)>>> = Mutex::new(Ok(Vec::new()));
        let work = |worker: usize| {
            while !is_over.load(Ordering::Relaxed) {
                let n = next.fetch_add(1, Ordering::Relaxed);
                let Some(state) = states.get(n) else {
                    return;
                };
                let verdict = self.check_one(worker, state);
                let mut found = found.lock().unwrap_or_else(|e| e.into_inner());
                match verdict {
                    Ok(Some(Verdict::Good)) => {}
                    Ok(Some(Verdict::Bad { why, words })) => {
                        is_over.fetch_or(!keep_going, Ordering::Relaxed);
                        if let Ok(found) = &mut *found {
                            let state = state.clone();
                            found.push((n, Bad { state, why, words }));
                        }
                    }
                    Ok(Some(Verdict::Stopped) | None) => return,
                    Err(problem) => {
                        is_over.store(true, Ordering::Relaxed);
                        *found = Err(problem);
                        return;
                    }
                }
                checked.fetch_add(1, Ordering::Relaxed);
                bar.add(1);
            }
        };
        std::thread::scope(|threads| {
            for worker in 0..jobs {
                let work = &work;
                threads.spawn(move || work(worker));
            }
        });
        bar.done();
        let mut found = found.into_inner().unwrap_or_else(|e| e.into_inner())?;
        found.sort_by_key(|(n, _)| *n);
        let bad = found.into_iter().map(|(_, bad)| bad).collect();
        Ok((checked.into_inner(), bad))
    }

    /// Loses less and less while the state stays bad. Gives the least bad state, and the checks that it took.
    pub fn reduce(&self, bad: &Bad) -> Outcome<(Bad, usize)> {
        let mut reduction = Reduction {
            explorer: self,
            least: bad.clone(),
            known: HashMap::new(),
            checks: 0,
        };
        if bad.state.torn.is_some() {
            reduction.tries(State {
                torn: None,
                ..bad.state.clone()
            })?;
        }
        let mut piece = bad.state.dropped.len();
        while piece > 0 {
            let mut at = 0;
            while at < reduction.least.state.dropped.len() {
                let mut less = reduction.least.state.clone();
                let end = (at + piece).min(less.dropped.len());
                less.dropped.drain(at..end);
                if !reduction.tries(less)? {
                    at += piece;
                }
            }
            // Losses that could be spared only together may have hidden others.
            piece /= 2;
        }
        Ok((reduction.least, reduction.checks))
    }
}

/// A bad state on its way to a smaller one.
struct Reduction<'a, 'h> {
    explorer: &'a Explorer<'h>,
    least: Bad,
    /// States by what they are to a check, and whether they were bad.
    known: HashMap<(u128, usize), bool>,
    checks: usize,
}

impl Reduction<'_, '_> {
    /// Takes a state if it is bad.
    fn tries(&mut self, state: State) -> Outcome<bool> {
        let history = self.explorer.history;
        let interval = &history.intervals[state.interval];
        let identity = state.identity(interval, &mut Vec::new());
        if self.checks == REDUCE_MAX || self.known.get(&identity) == Some(&false) {
            return Ok(false);
        }
        self.checks += 1;
        let verdict = self.explorer.check_one(0, &state)?;
        let is_bad = matches!(verdict, Some(Verdict::Bad { .. }));
        self.known.insert(identity, is_bad);
        if let Some(Verdict::Bad { why, words }) = verdict {
            let state = state.shortened(interval);
            self.least = Bad { state, why, words };
        }
        Ok(is_bad)
    }
}

fn not_built(error: LogError) -> Problem {
    Problem::new(format!("a state cannot be built: {error}"))
        .help("states lie in TMPDIR, which needs room for one device a job and one more; the log must not change")
}
