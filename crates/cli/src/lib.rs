//! The command `floatgate`, as a library: a crate with a scheme of its own gets every command for it.
//!
//! ```no_run
//! # mod mine { pub use floatgate_schemes::page::Page as MyFtl; }
//! fn main() -> std::process::ExitCode {
//!     floatgate::Cli::new().scheme::<mine::MyFtl>().run()
//! }
//! ```
//!
//! | module | what it holds |
//! |---|---|
//! | `args` | the command line |
//! | `commands` | what each command does |
//! | [`fit`] | what a drive is, from what it was measured to do |
//! | [`config`] | settings from TOML and `--set`, checked; the default device |
//! | [`errors`] | the one kind of error that a user sees |
//! | [`library`] | the commands for programs |
//! | [`report`] | the HTML report |
//! | [`bare`] | the loop that benchmarks are told against |
//! | `states` | files of saved devices |
//! | `laid` | rows of results, for a file or a program |
//! | `traces`, `memory`, `notes`, `table`, `output`, `progress`, `signals` | traces, memory, remarks on results, text, files, Ctrl-C |

mod args;
pub mod bare;
mod commands;
mod comparison;
pub mod config;
pub mod errors;
pub mod fit;
mod laid;
pub mod library;
mod memory;
mod notes;
mod output;
mod progress;
pub mod report;
mod signals;
mod states;
mod table;
mod traces;

use std::cell::{Cell, RefCell};
use std::ffi::OsString;
use std::process::ExitCode;

use clap::Parser;
use floatgate_catalog::{Catalog, catalog};
use floatgate_core::{Ftl, Lpn};

use errors::{EXIT_DONE, Outcome, Problem};

/// The program as its results name it.
pub(crate) const PROGRAM: &str = concat!("floatgate ", env!("CARGO_PKG_VERSION"));

/// The command with its schemes.
#[derive(Debug)]
pub struct Cli {
    catalog: Catalog,
}

impl Default for Cli {
    fn default() -> Self {
        Self::new()
    }
}

impl Cli {
    /// The command with all schemes of Floatgate.
    pub fn new() -> Self {
        Self { catalog: catalog() }
    }

    /// Adds a scheme; one of the same name is replaced.
    #[must_use]
    pub fn scheme<S: Ftl<Page = Lpn>>(self) -> Self {
        Self {
            catalog: self.catalog.with::<S>(),
        }
    }

    /// Does what the program's arguments say.
    pub fn run(self) -> ExitCode {
        self.run_words(std::env::args_os()).into()
    }

    /// Does what these words say, of which the first is the name of the program. The exit code.
    pub fn run_words(self, words: impl IntoIterator<Item = OsString>) -> u8 {
        hide_guarded_panics();
        let arguments = args::Arguments::parse_from(words);
        signals::watch();
        match self.dispatch(arguments.command) {
            Ok(code) => code,
            Err(problem) => {
                output::tell(&problem.to_string());
                problem.code()
            }
        }
    }

    fn dispatch(&self, command: args::Command) -> Outcome<u8> {
        use args::{Command, ImageCommand, RecipeCommand, TraceCommand};
        self.check()?;
        let schemes = &self.catalog;
        match command {
            Command::Run(args) => commands::run::run(&args, schemes),
            Command::Compare(args) => commands::compare::run(&args, schemes),
            Command::Sweep(args) => commands::sweep::run(&args, schemes),
            Command::Fleet(args) => commands::fleet::run(&args, schemes),
            Command::Fit(args) => commands::fit::run(&args, schemes),
            Command::Recipe(RecipeCommand::Fit(args)) => commands::recipe::fit(&args),
            Command::Papers(args) => commands::papers::run(&args, schemes),
            Command::Bench(args) => commands::bench::run(&args, schemes),
            Command::Explain(args) => commands::explain::run(&args),
            Command::Recovery(args) => commands::recovery::run(&args, schemes),
            Command::Torture(args) => return commands::torture::run(&args, schemes),
            Command::Trace(TraceCommand::Info(args)) => commands::trace_info::run(&args),
            Command::Trace(TraceCommand::Convert(args)) => commands::trace_convert::run(&args),
            Command::Trace(TraceCommand::Generate(args)) => commands::trace_generate::run(&args),
            Command::Trace(TraceCommand::Record(args)) => commands::trace_record::run(&args),
            Command::Image(ImageCommand::Create(args)) => commands::image::create(&args, schemes),
            Command::Image(ImageCommand::Info(args)) => commands::image::info(&args),
            Command::Image(ImageCommand::Check(args)) => {
                return commands::image::check(&args, schemes);
            }
            Command::Image(ImageCommand::Scrub(args)) => {
                return commands::image::scrub(&args, schemes);
            }
            Command::Image(ImageCommand::Dump(args)) => commands::image::dump(&args),
            Command::Image(ImageCommand::Read(args)) => commands::bytes::read(&args, schemes),
            Command::Image(ImageCommand::Write(args)) => commands::bytes::write(&args, schemes),
            Command::Image(ImageCommand::Import(args)) => commands::bytes::import(&args, schemes),
            Command::Image(ImageCommand::Export(args)) => commands::bytes::export(&args, schemes),
            Command::Serve(args) => commands::serve::run(&args, schemes),
            Command::CrashExplore(args) => return commands::crash::run(&args),
            Command::Mount(args) => commands::mount::mount(&args, schemes),
            Command::Attach(args) => commands::mount::attach(&args, schemes),
            Command::Control(args) => return commands::control::control(&args),
            Command::Stat(args) => commands::control::stat(&args),
            Command::Conform(args) => return commands::conform::run(&args, schemes),
            Command::Schemes(args) => commands::schemes::run(&args, schemes),
            Command::Parts(args) => commands::parts::run(&args),
            Command::Config(args) => commands::config::run(&args, schemes),
            Command::Schema => commands::schema::run(),
            Command::Completions { shell } => commands::completions::run(shell),
        }?;
        Ok(EXIT_DONE)
    }

    fn check(&self) -> Outcome<()> {
        match self.catalog.is_empty() {
            true => Err(Problem::bug("this program was built without any scheme")),
            false => Ok(()),
        }
    }
}

thread_local! {
    /// Whether a panic of this thread becomes an ordinary message.
    static GUARDED: Cell<bool> = const { Cell::new(false) };
    /// Where the last guarded panic of this thread was.
    static PANICKED_AT: RefCell<String> = const { RefCell::new(String::new()) };
}

/// Panics inside a guarded run are told once, in the words of the command, not by the runtime.
pub fn hide_guarded_panics() {
    let usual = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        if GUARDED.get() {
            let at = info.location().map(ToString::to_string).unwrap_or_default();
            PANICKED_AT.with_borrow_mut(|place| *place = at);
        } else {
            usual(info);
        }
    }));
}
