//! `floatgate fleet`: a trace of many volumes, replayed one device a volume.

pub mod elsewhere;
mod input;
mod play;
mod rows;
mod summary;

use std::path::Path;

use floatgate_catalog::Scheme;
use floatgate_sim::record::fleet::FleetDocument;

use super::study::{REPORT_FLAG, Study, write_report};
use super::variant::Variant;
use crate::args::FleetArgs;
use crate::config::sizing::Failure;
use crate::errors::{Outcome, Problem};
use crate::laid::Laid;
use crate::output;
use crate::progress::Bar;
use crate::table::some;

use input::Input;
use play::{Beat, Fleet};

/// The scheme of a fleet that names none.
const DEFAULT_SCHEME: &str = "page";

/// Splits the trace, replays every volume under every scheme, writes the rows and prints the summary.
pub fn run(args: &FleetArgs, schemes: &[Scheme]) -> Outcome<()> {
    let asked = Asked::of(args, schemes)?;
    let out = match &args.out {
        // A name that cannot be written shows before the work, not after it.
        Some(path) => Some((path, rows::create(path)?)),
        None => None,
    };
    let replayed = asked.replay(args, &|| {}, &mut |line| output::tell(line))?;
    if let Some((path, table)) = out {
        let written = replayed.rows.write(table)?;
        let rows = some(written.rows, "row");
        output::tell(&format!("Volumes: {rows} in {}", path.display()));
    }
    let summary = &replayed.summary;
    if args.setup.json {
        output::print_json(summary)?;
    } else {
        output::print(&summary::text(summary))?;
    }
    if let Some(path) = &args.setup.report {
        write_report(path, &crate::report::fleet_html(summary))?;
    }
    replayed.failures
}

/// A fleet whose settings are right one by one. Its traces have not been opened yet.
pub struct Asked<'a> {
    study: Study,
    chosen: Vec<Variant<'a>>,
    schemes: &'a [Scheme],
}

/// What came of a fleet.
pub struct Replayed {
    /// How figures spread over the volumes.
    pub summary: FleetDocument,
    /// One row a volume and scheme.
    pub rows: Laid,
    /// The problem, if not every volume could be replayed.
    pub failures: Outcome<()>,
}

impl Replayed {
    /// Writes the rows, and nothing else: Parquet or CSV by the ending of the name.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn write(&self, path: &Path) -> Outcome<()> {
        self.rows.write(rows::create(path)?)?;
        Ok(())
    }
}

impl<'a> Asked<'a> {
    /// Reads and checks the settings, and whether the files can be written that are asked for.
    ///
    /// # Errors
    /// Points at what is wrong.
    pub fn of(args: &FleetArgs, schemes: &'a [Scheme]) -> Outcome<Self> {
        Self::in_folder(args, schemes, None)
    }

    /// The same where names of traces count from a folder.
    fn in_folder(args: &FleetArgs, schemes: &'a [Scheme], folder: Option<&Path>) -> Outcome<Self> {
        let files: Vec<String> = [&args.traces[..], &args.setup.trace[..]].concat();
        let mut study = Study::of(&args.setup, &files, schemes)?;
        if files.is_empty() && study.settings.get("trace.file").is_none() {
            return Err(Problem::new("no trace was named").help(
                "floatgate fleet TRACE..., a file or a folder; `floatgate fleet --help` has examples",
            ));
        }
        let chosen = chosen(args, &study, schemes)?;
        let named: Vec<&Scheme> = chosen.iter().map(|variant| variant.scheme).collect();
        study.settings.check_options(&named)?;
        if let Some(folder) = folder {
            study.choice = study.choice.in_folder(folder);
        }
        study.choice = study.choice.with_folders_read()?;
        let outputs = [
            (REPORT_FLAG, args.setup.report.as_deref()),
            ("--out", args.out.as_deref()),
        ];
        study.check_files(&args.setup, [], &outputs)?;
        Ok(Self {
            study,
            chosen,
            schemes,
        })
    }

    /// Splits the trace and replays every volume under every scheme. `beat` is called now and then by all threads;
    /// `tell` with what is to be said before the work.
    ///
    /// # Errors
    /// If nothing of the trace can be read.
    pub fn replay(
        &self,
        args: &FleetArgs,
        beat: Beat<'_>,
        tell: &mut dyn FnMut(&str),
    ) -> Outcome<Replayed> {
        let (study, chosen) = (&self.study, &self.chosen);
        let input = self.input(args, Bar::new, beat)?;
        tell(&format!("Trace:  {}", input.describe()));
        let fleet = Fleet::new(study, &input, self.schemes, chosen, args.jobs, beat);
        tell(&format!("Device: {}; {}", fleet.describe(), fleet.limits()));
        Ok(self.replayed(&input, fleet.describe(), &fleet.play()))
    }

    fn input(
        &self,
        args: &FleetArgs,
        bar: fn(u64, &str) -> Bar,
        beat: &dyn Fn(),
    ) -> Outcome<Input> {
        Input::read(self.study.choice.clone(), args.volumes_by, bar, beat)
    }

    fn replayed(&self, input: &Input, device: String, rows: &[rows::Row]) -> Replayed {
        let (study, chosen) = (&self.study, &self.chosen);
        Replayed {
            summary: summary::of(study, input, chosen, device, rows),
            failures: failures(input, chosen, rows),
            rows: rows::laid(input, chosen, rows),
        }
    }
}

/// What to run: as named, or the scheme of the configuration, or page mapping.
fn chosen<'a>(args: &FleetArgs, study: &Study, schemes: &'a [Scheme]) -> Outcome<Vec<Variant<'a>>> {
    let settings = &study.settings;
    if !args.scheme.is_empty() {
        return Variant::of_flags(&args.scheme, settings, schemes);
    }
    let name = settings.text("scheme.name").unwrap_or(DEFAULT_SCHEME);
    let place = settings.place("scheme.name");
    Ok(vec![Variant::parse(name, &place, settings, schemes)?])
}

/// The problem of a fleet of which not every volume could be replayed.
fn failures(input: &Input, chosen: &[Variant<'_>], rows: &[rows::Row]) -> Outcome<()> {
    let failed: Vec<(&rows::Row, &Failure)> = rows
        .iter()
        .filter_map(|row| row.measured.as_ref().err().map(|failure| (row, failure)))
        .collect();
    let name = |row: &rows::Row| {
        let volume = &input.volumes[row.volume].name;
        format!("volume {volume}, {}", chosen[row.scheme].label)
    };
    let bug = failed.iter().find_map(|(row, failure)| match failure {
        Failure::Bug(text) => Some(Problem::bug(format!("{}: {text}", name(row)))),
        _ => None,
    });
    match (&failed[..], bug) {
        (_, Some(bug)) => Err(bug),
        ([], None) => Ok(()),
        ([(row, failure), ..], None) => {
            let text = rows::text_of(failure);
            Err(Problem::new(format!(
                "{} of {} could not be made, the first: {}: {text}",
                failed.len(),
                some(rows.len() as u64, "replay"),
                name(row)
            ))
            .help("the rows of --out have every reason in the column error"))
        }
    }
}
