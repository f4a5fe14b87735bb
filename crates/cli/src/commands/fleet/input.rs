//! The volumes of the files named.

use std::collections::HashMap;
use std::path::Path;

use floatgate_trace::generate::is_generated;
use floatgate_trace::split::{Identity, Split, Splitter};
use floatgate_trace::{Counts, TraceError};

use crate::args::VolumesBy;
use crate::errors::Outcome;
use crate::progress::Bar;
use crate::table::{count, some};
use crate::traces::Choice;

/// What a row is about: a volume, or a file that gave none.
pub struct Entry {
    /// Its name.
    pub name: String,
    /// Its place in the split trace.
    pub place: Option<usize>,
    /// Requests.
    pub requests: u64,
    /// Requests with a time before that of the one before.
    pub backwards: u64,
    /// Requests with a time before the first of their file.
    pub clamped: u64,
    /// Why it cannot be replayed.
    pub error: Option<String>,
}

/// A split trace.
pub struct Input {
    /// The trace.
    pub split: Split,
    /// Its volumes in the order of their first requests, then the files that gave none.
    pub volumes: Vec<Entry>,
    /// What the readers of all files counted.
    pub counts: Counts,
    files: usize,
    name: String,
}

impl Input {
    /// Reads all files once. `bar` makes what shows how far it is; `beat` is called now and then meanwhile.
    ///
    /// # Errors
    /// If none of them has a volume, or the temporary file cannot be written.
    pub fn read(
        choice: Choice,
        by: Option<VolumesBy>,
        bar: fn(u64, &str) -> Bar,
        beat: &dyn Fn(),
    ) -> Outcome<Self> {
        let files: Vec<Choice> = choice.each().collect();
        let labels = labels(&files);
        let sizes = files.iter().map(|file| file_bytes(&file.name()));
        let bar = bar(sizes.sum(), "bytes of the trace");
        let mut splitter = Splitter::new()?;
        let mut counts = Counts::default();
        let mut broken: Vec<(String, TraceError)> = Vec::new();
        let mut read_bytes = 0;
        for (file, label) in files.iter().zip(&labels) {
            bar.message(label);
            match take(&mut splitter, file, label, files.len(), by, &|now| {
                bar.set(read_bytes + now);
                beat();
            })? {
                Ok(part) => add(&mut counts, &part),
                Err(error) => broken.push((label.clone(), error)),
            }
            read_bytes += file_bytes(&file.name());
            bar.set(read_bytes);
        }
        bar.done();
        let split = splitter.finish()?;
        // If nothing at all was read, the error says it better than a row.
        if split.volumes().is_empty()
            && let Some((_, error)) = broken.first()
        {
            return Err(choice.problem(error.clone()));
        }
        Ok(Self::of(split, broken, counts, &choice, files.len()))
    }

    fn of(
        split: Split,
        broken: Vec<(String, TraceError)>,
        counts: Counts,
        choice: &Choice,
        files: usize,
    ) -> Self {
        let volumes = split.volumes().iter().enumerate();
        let volumes = volumes.map(|(place, volume)| Entry {
            name: volume.name.clone(),
            place: Some(place),
            requests: volume.requests,
            backwards: volume.backwards,
            clamped: volume.clamped,
            error: volume.error.as_ref().map(ToString::to_string),
        });
        let broken = broken.into_iter().map(|(name, error)| Entry {
            name,
            place: None,
            requests: 0,
            backwards: 0,
            clamped: 0,
            error: Some(error.to_string()),
        });
        Self {
            volumes: volumes.chain(broken).collect(),
            split,
            counts,
            files,
            name: choice.name(),
        }
    }

    /// The name of the trace.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// One line: what was read.
    pub fn describe(&self) -> String {
        let mut text = format!(
            "{} ({}): {}, {} accepted, {} skipped",
            self.name,
            some(self.files as u64, "file"),
            some(self.split.volumes().len() as u64, "volume"),
            some(self.counts.accepted, "request"),
            some(self.counts.skipped, "record"),
        );
        if self.counts.filtered > 0 {
            let left_out = count(self.counts.filtered);
            text.push_str(&format!(", {left_out} of other volumes left out"));
        }
        text
    }
}

/// Splits one file. The inner error is about this file alone.
fn take(
    splitter: &mut Splitter,
    file: &Choice,
    label: &str,
    files: usize,
    by: Option<VolumesBy>,
    progress: &dyn Fn(u64),
) -> Result<Result<Counts, TraceError>, TraceError> {
    let reader = match file.open() {
        Ok(reader) => reader,
        Err(error) => return Ok(Err(error)),
    };
    let identity = match by {
        Some(VolumesBy::Name) => Identity::Name,
        Some(VolumesBy::File) => Identity::File,
        None if files == 1 => Identity::Name,
        None => Identity::of(reader.format()),
    };
    let part = splitter.add(reader, label, identity, &mut |reader| {
        progress(reader.bytes_read());
    })?;
    // Once it gave requests the error stands with its volumes.
    Ok(match part.error {
        Some(error) if part.counts.accepted == 0 => Err(error),
        _ => Ok(part.counts),
    })
}

fn add(sum: &mut Counts, part: &Counts) {
    sum.accepted += part.accepted;
    sum.skipped += part.skipped;
    sum.empty += part.empty;
    sum.filtered += part.filtered;
}

fn file_bytes(path: &str) -> u64 {
    std::fs::metadata(path).map_or(0, |about| about.len())
}

/// The names of the files without their endings; the whole paths where that leaves two the same.
fn labels(files: &[Choice]) -> Vec<String> {
    let short: Vec<String> = files.iter().map(|file| short_name(&file.name())).collect();
    let mut times: HashMap<&str, u32> = HashMap::new();
    short
        .iter()
        .for_each(|name| *times.entry(name).or_default() += 1);
    let label = |(file, name): (&Choice, &String)| match times[name.as_str()] {
        1 => name.clone(),
        _ => file.name(),
    };
    files.iter().zip(&short).map(label).collect()
}

fn short_name(path: &str) -> String {
    // The points in it are those of numbers.
    if is_generated(path) {
        return path.into();
    }
    let name = Path::new(path).file_name().unwrap_or_default();
    let name = name.to_string_lossy();
    let compressed = floatgate_trace::Compression::from_name(&name);
    let without = |name: &str| {
        name.rsplit_once('.')
            .map_or(name, |(head, _)| head)
            .to_owned()
    };
    let name = match compressed {
        floatgate_trace::Compression::None => name.into_owned(),
        _ => without(&name),
    };
    without(&name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::ReadArgs;

    #[test]
    fn files_are_named_by_what_tells_them_apart() {
        let of = |files: &[&str]| {
            let files: Vec<String> = files.iter().map(ToString::to_string).collect();
            let choice = Choice::new(&files, &ReadArgs::default()).unwrap();
            labels(&choice.each().collect::<Vec<_>>())
        };
        assert_eq!(
            of(&["msr/hm_0.csv.gz", "w01.vscsi", "plain"]),
            ["hm_0", "w01", "plain"]
        );
        assert_eq!(of(&["a/x.csv", "b/x.csv"]), ["a/x.csv", "b/x.csv"]);
        assert_eq!(of(&["zipf:theta=0.5"]), ["zipf:theta=0.5"]);
    }
}
