//! Volumes that are replayed elsewhere: in other processes, perhaps on other machines, whoever brings them there.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use floatgate_catalog::Scheme;
use floatgate_core::Refusal;
use floatgate_sim::record::Reason;
use serde::{Deserialize, Serialize};

use super::input::{Entry, Input};
use super::play::{Beat, Fleet};
use super::rows::{self, Measured, Row};
use super::{Asked, Replayed};
use crate::PROGRAM;
use crate::args::FleetArgs;
use crate::commands::study::in_short;
use crate::config::sizing::Failure;
use crate::errors::{Outcome, Problem};
use crate::progress::Bar;
use crate::traces::file_state;

/// All that is needed to replay a volume: the arguments of the fleet, and which volume it is.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Errand {
    /// The arguments.
    pub words: Vec<String>,
    /// The folder that names of files count from.
    folder: PathBuf,
    volume: usize,
    /// What the volume and the settings come to, in short: elsewhere they must come to the same.
    means: String,
}

/// What a volume came to, a result a scheme.
pub type Came = Vec<Result<Measured, Reason>>;

/// A volume as its sender sees it.
pub struct Sent {
    /// Its place among the volumes.
    pub volume: usize,
    /// What determines its results, in short.
    pub key: String,
    /// What to send.
    pub errand: Errand,
}

/// A fleet whose trace was split.
pub struct Split<'a> {
    asked: Asked<'a>,
    input: Arc<Input>,
}

impl<'a> Split<'a> {
    /// Reads the trace once. `beat` is called now and then meanwhile.
    ///
    /// # Errors
    /// As [`Asked::of`] and [`Asked::replay`].
    pub fn of(args: &FleetArgs, schemes: &'a [Scheme], beat: Beat<'_>) -> Outcome<Self> {
        let asked = Asked::of(args, schemes)?;
        let input = asked.input(args, Bar::new, beat)?.into();
        Ok(Self { asked, input })
    }

    /// Volumes, those that cannot be replayed included.
    pub fn volumes(&self) -> usize {
        self.input.volumes.len()
    }

    /// The volumes that can be replayed, the longest first. `words`: the arguments of the fleet; `program`: what tells
    /// the program from others.
    pub fn sent(&self, args: &FleetArgs, words: &[String], program: &str) -> Vec<Sent> {
        let folder = std::env::current_dir().unwrap_or_default();
        let config = args.setup.config.as_deref().map(file_state);
        let all = (program, &folder, config, self.asked.study.choice.identity());
        let send = |(volume, entry): (usize, &Entry)| Sent {
            volume,
            key: in_short(&(&all, words, volume, &entry.name)),
            errand: Errand {
                words: words.to_vec(),
                folder: folder.clone(),
                volume,
                means: self.asked.means(entry),
            },
        };
        let whole = |(_, entry): &(usize, &Entry)| entry.error.is_none();
        let mut sent: Vec<_> = self
            .input
            .volumes
            .iter()
            .enumerate()
            .filter(whole)
            .collect();
        sent.sort_by_key(|(_, entry)| std::cmp::Reverse(entry.requests));
        sent.into_iter().map(send).collect()
    }

    /// The fleet with what came of its volumes, by their places; of those whose way was lost the text says why.
    ///
    /// # Errors
    /// If nothing came of a volume that could be replayed.
    pub fn replayed(&self, mut came: Vec<Option<Result<Came, String>>>) -> Outcome<Replayed> {
        let (asked, input) = (&self.asked, &*self.input);
        came.resize_with(input.volumes.len(), || None);
        let schemes = asked.chosen.len();
        let mut all = Vec::new();
        for (volume, (entry, came)) in input.volumes.iter().zip(came).enumerate() {
            let lost = |why: &String| vec![Err(Reason::Failed(why.clone())); schemes];
            let came = match (&entry.error, came) {
                (Some(why), _) => lost(why),
                (None, Some(Err(why))) => lost(&why),
                (None, Some(Ok(came))) if came.len() == schemes => came,
                (None, _) => return Err(Problem::bug("nothing came of a volume")),
            };
            all.extend(came.into_iter().enumerate().map(|(scheme, came)| Row {
                volume,
                scheme,
                measured: came.map_err(failure),
            }));
        }
        let fleet = Fleet::new(
            &asked.study,
            input,
            asked.schemes,
            &asked.chosen,
            None,
            &|| {},
        );
        Ok(asked.replayed(input, fleet.describe(), &all))
    }
}

fn failure(reason: Reason) -> Failure {
    match reason {
        Reason::Refused(text) => Failure::Refused(Refusal::of_all(text)),
        Reason::Failed(text) => Failure::Trace(text),
        Reason::Bug(text) => Failure::Bug(text),
    }
}

fn reason(failure: &Failure) -> Reason {
    let text = rows::text_of(failure);
    match failure {
        Failure::Refused(_) => Reason::Refused(text),
        Failure::Trace(_) => Reason::Failed(text),
        Failure::Bug(_) => Reason::Bug(text),
    }
}

impl Asked<'_> {
    /// A volume and how it is replayed, in short.
    fn means(&self, entry: &Entry) -> String {
        let labels: Vec<&str> = self.chosen.iter().map(|v| v.label.as_str()).collect();
        let volume = (&entry.name, entry.requests, entry.backwards, entry.clamped);
        in_short(&(PROGRAM, &self.study.plan, labels, volume))
    }
}

/// The trace that was split last. Errands of one fleet come one after the other: a process reads its trace once.
static LAST: Mutex<Option<(String, Arc<Input>)>> = Mutex::new(None);

/// The trace of an errand; `called` tells it from others.
fn input_of(
    asked: &Asked<'_>,
    args: &FleetArgs,
    folder: &Path,
    beat: Beat<'_>,
) -> Outcome<Arc<Input>> {
    let called = in_short(&(folder, asked.study.choice.identity(), args.volumes_by));
    // Several threads that wait for the same trace wait for the one that reads it.
    let mut last = LAST.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((known, input)) = &*last
        && *known == called
    {
        return Ok(Arc::clone(input));
    }
    // Its room first: there may not be enough for two.
    *last = None;
    let silent = |_: u64, _: &str| Bar::silent();
    let input = Arc::new(asked.input(args, silent, beat)?);
    *last = Some((called, Arc::clone(&input)));
    Ok(input)
}

/// Replays a volume that was sent here; `args` are its words, read. `beat` is called now and then meanwhile.
///
/// # Errors
/// If the trace cannot be read here, or the volume comes to other runs.
pub fn play(
    errand: &Errand,
    args: &FleetArgs,
    schemes: &[Scheme],
    beat: Beat<'_>,
) -> Outcome<Came> {
    let asked = Asked::in_folder(args, schemes, Some(&errand.folder))?;
    let input = input_of(&asked, args, &errand.folder, beat)?;
    let volume = input.volumes.get(errand.volume);
    let volume = volume.filter(|entry| asked.means(entry) == errand.means);
    let volume = volume.ok_or_else(|| {
        Problem::new("this volume comes to other runs here than where the fleet was planned").help(
            "the same version of Floatgate, the same configuration file and the same traces must be in both places",
        )
    })?;
    let fleet = Fleet::new(&asked.study, &input, schemes, &asked.chosen, Some(1), beat);
    let came = fleet.volume(volume, &Bar::silent());
    Ok(came
        .into_iter()
        .map(|came| came.map_err(|failure| reason(&failure)))
        .collect())
}
