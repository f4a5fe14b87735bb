//! What a run writes beside its record: rows of requests, the time series, rows of blocks, and why requests were slow.

use std::cell::RefCell;
use std::ops::Range;
use std::path::{Path, PathBuf};

use floatgate_catalog::Scheme;
use floatgate_sim::blocks;
use floatgate_sim::clock::Operation;
use floatgate_sim::config::RunConfig;
use floatgate_sim::flows::Flows;
use floatgate_sim::record::Record;
use floatgate_sim::requests::{RequestRow, RequestsFile};
use floatgate_sim::run::{Besides, Progress, RunError, Source};
use floatgate_sim::series_file;
use floatgate_sim::timeline::TimelineFile;
use floatgate_sim::why::{Slowest, Why};
use floatgate_trace::TraceError;
use floatgate_trace::columns::TableWriter;

use crate::errors::{Outcome, Problem};
use crate::states::DeviceFiles;
use crate::table::some;

/// Where the files go.
#[derive(Clone, Debug, Default)]
pub struct Paths {
    /// Rows of requests.
    pub requests: Option<PathBuf>,
    /// The time series.
    pub series: Option<PathBuf>,
    /// Rows of blocks.
    pub blocks: Option<PathBuf>,
}

impl Paths {
    /// The files of one scheme in folders for many.
    pub fn of(&self, key: &str) -> Self {
        let name = safe_name(key);
        let file = |folder: &Option<PathBuf>, what: &str| {
            let folder = folder.as_ref()?;
            Some(folder.join(format!("{name}{what}.parquet")))
        };
        Self {
            requests: file(&self.requests, ""),
            series: file(&self.series, "-series"),
            blocks: file(&self.blocks, "-blocks"),
        }
    }

    fn all(&self) -> impl Iterator<Item = (&'static str, &PathBuf)> {
        let named = [
            ("--requests-out", &self.requests),
            ("--series-out", &self.series),
            ("--blocks-out", &self.blocks),
        ];
        named
            .into_iter()
            .filter_map(|(flag, path)| path.as_ref().map(|path| (flag, path)))
    }

    /// Makes the folders that are missing, for the files of schemes with these names. What is no file of ours is left
    /// alone.
    ///
    /// # Errors
    /// If there is something else of that name, or a folder cannot be made.
    pub fn make_folders(&self, keys: &[&str]) -> Outcome<()> {
        for (flag, folder) in self.all() {
            let failed = |why: String| {
                Problem::new(format!("{flag} {}: {why}", folder.display())).help(
                    "name a folder, which is made if it is missing; a file a scheme goes there",
                )
            };
            if folder.exists() && !folder.is_dir() {
                return Err(failed("this is not a folder".into()));
            }
            for (i, key) in keys.iter().enumerate() {
                let same = keys[..i]
                    .iter()
                    .find(|other| safe_name(other) == safe_name(key));
                if let Some(same) = same {
                    return Err(failed(format!("{same} and {key} would share a file")));
                }
                let of_scheme = self.of(key);
                let taken = of_scheme.all().find(|(other, path)| {
                    *other == flag && path.symlink_metadata().is_ok_and(|there| !there.is_file())
                });
                if let Some((_, path)) = taken {
                    return Err(failed(format!("{} is not a file", path.display())));
                }
            }
        }
        for (flag, folder) in self.all() {
            std::fs::create_dir_all(folder).map_err(|error| {
                Problem::new(format!(
                    "{flag} {}: cannot make the folder: {error}",
                    folder.display()
                ))
                .help("name a folder in a place that may be written")
            })?;
        }
        Ok(())
    }
}

/// The name of a scheme as a part of a file name that every system and shell takes as it is: `last++` is `lastplusplus`.
fn safe_name(key: &str) -> String {
    let safe = |c: char| match c {
        '+' => "plus".to_string(),
        c if c.is_ascii_alphanumeric() || c == '-' || c == '_' => c.to_string(),
        _ => "-".into(),
    };
    key.chars().map(safe).collect()
}

/// What came of a run.
pub struct Played {
    /// Its record.
    pub record: Record,
    /// The files it has written, in words.
    pub told: Vec<String>,
    /// The slowest request, if it was looked for.
    pub slowest: Option<Slowest>,
}

/// The files of one run, begun; they get their names in [`play`](Taps::play), and nothing is left if they do not get there.
pub struct Taps {
    paths: Paths,
    requests: Option<RequestsFile>,
    series: Option<TableWriter>,
    blocks: Option<TableWriter>,
    why: Option<Why>,
    /// If the record explains its times: of so many of the slowest requests.
    explains: Option<usize>,
    finds_slowest: bool,
    timeline: Option<(TimelineFile, PathBuf)>,
}

impl Taps {
    /// Begins the files; of the slowest requests so many are told. Whoever `finds_slowest` is told which one it is, and the
    /// record does not change by that.
    ///
    /// # Errors
    /// If a name does not tell the format, or a file cannot be made.
    pub fn open(paths: Paths, slowest: usize, finds_slowest: bool) -> Result<Self, TraceError> {
        let explains = (slowest > 0 || paths.requests.is_some()).then_some(slowest);
        let recording = explains.is_some() || finds_slowest;
        let begun = |path: &Option<PathBuf>,
                     create: fn(&Path) -> Result<TableWriter, TraceError>| {
            path.as_deref().map(create).transpose()
        };
        Ok(Self {
            requests: paths
                .requests
                .as_ref()
                .map(RequestsFile::create)
                .transpose()?,
            series: begun(&paths.series, series_file::create)?,
            blocks: begun(&paths.blocks, blocks::create)?,
            why: recording.then(|| Why::new(slowest.max(usize::from(finds_slowest)))),
            explains,
            finds_slowest,
            timeline: None,
            paths,
        })
    }

    /// The same with a timeline of the flash.
    ///
    /// # Errors
    /// If its name has another ending, or it cannot be made.
    pub fn with_timeline(
        mut self,
        path: Option<&Path>,
        config: &RunConfig,
        window_ns: Option<Range<u64>>,
    ) -> Result<Self, TraceError> {
        if let Some(path) = path {
            let window_ns = window_ns.unwrap_or(0..u64::MAX);
            let file = TimelineFile::create(path, &config.device.machine(), window_ns)?;
            self.timeline = Some((file, path.to_owned()));
        }
        Ok(self)
    }

    /// Runs a scheme on a device that comes from and goes to these files, and ends its own. Requests are only recorded if somebody wants to know of them.
    ///
    /// # Errors
    /// See [`RunError`].
    pub fn play(
        mut self,
        scheme: &Scheme,
        device: DeviceFiles<'_>,
        config: &RunConfig,
        source: &mut dyn Source,
        flows: Option<&mut Flows>,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Played, RunError> {
        let mut of_blocks = Vec::new();
        let blocks = self.blocks.is_some().then_some(&mut of_blocks);
        let (file, why) = (&mut self.requests, &mut self.why);
        // Rows and operations come in turn.
        let timeline = RefCell::new(self.timeline.as_mut().map(|(file, _)| file));
        let records = why.is_some() || timeline.borrow().is_some();
        let mut take = |rows: &[RequestRow]| {
            if let Some(why) = why {
                why.add(rows);
            }
            if let Some(timeline) = &mut *timeline.borrow_mut() {
                timeline.requests(rows)?;
            }
            file.as_mut().map_or(Ok(()), |file| file.write(rows))
        };
        let mut take_operations = |operations: &[Operation]| match &mut *timeline.borrow_mut() {
            Some(timeline) => timeline.operations(operations),
            None => Ok(()),
        };
        let is_timed = timeline.borrow().is_some();
        let besides = Besides {
            rows: records.then_some(&mut take as _),
            operations: is_timed.then_some(&mut take_operations as _),
            blocks,
            flows,
            ..Besides::default()
        };
        let mut record = device.run(scheme, config, source, progress, besides)?;
        record.explained = self.why.as_ref().zip(self.explains).map(|(why, told)| {
            let mut explained = why.explained();
            explained.slowest.truncate(told);
            explained
        });
        let slowest = self.why.as_ref().and_then(Why::slowest);
        let slowest = slowest.filter(|_| self.finds_slowest).cloned();
        let mut told = Vec::new();
        let mut tell = |what: &str, rows, path: &Option<PathBuf>| {
            if let Some(path) = path {
                told.push(format!(
                    "{what}: {} in {}",
                    some(rows, "row"),
                    path.display()
                ));
            }
        };
        if let Some(file) = self.requests {
            tell("Requests", file.finish()?.rows, &self.paths.requests);
        }
        if let Some(table) = self.series {
            let written = series_file::write(table, &record.series)?;
            tell("Series", written.rows, &self.paths.series);
        }
        if let Some(table) = self.blocks {
            let written = blocks::write(table, &of_blocks)?;
            tell("Blocks", written.rows, &self.paths.blocks);
        }
        if let Some((file, path)) = self.timeline {
            let events = some(file.finish()?, "event");
            told.push(format!("Timeline: {events} in {}", path.display()));
        }
        Ok(Played {
            record,
            told,
            slowest,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_schemes_have_plain_names() {
        let names = ["fast", "last++", "my/ftl é"].map(safe_name);
        assert_eq!(names, ["fast", "lastplusplus", "my-ftl--"]);
    }
}
