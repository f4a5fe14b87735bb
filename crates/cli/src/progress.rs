//! A progress bar on standard error; nothing is drawn unless that is a terminal.

use std::time::Duration;

use floatgate_sim::run::Progress;
use indicatif::{ProgressBar, ProgressStyle};

/// A bar.
#[derive(Debug)]
pub struct Bar(ProgressBar);

impl Bar {
    /// A bar of so many `things`.
    pub fn new(total: u64, things: &str) -> Self {
        Self::with(
            total,
            &format!("{{bar:40}} {{percent:>3}} %  {{human_pos}} {things}  {{msg}}"),
        )
    }

    /// The same for long work: it says too how long the rest will take.
    pub fn long(total: u64, things: &str) -> Self {
        Self::with(
            total,
            &format!("{{bar:40}} {{percent:>3}} %  {{human_pos}} {things}  {{eta}} left  {{msg}}"),
        )
    }

    fn with(total: u64, template: &str) -> Self {
        let bar = ProgressBar::new(total);
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        Self(bar)
    }

    /// Shows that something is going on whose end is not known, and for how long.
    pub fn waiting(what: &str) -> Self {
        let bar = ProgressBar::new_spinner();
        if let Ok(style) = ProgressStyle::with_template("{spinner} {msg}  {elapsed}") {
            bar.set_style(style);
        }
        bar.set_message(what.to_owned());
        bar.enable_steady_tick(Duration::from_millis(200));
        Self(bar)
    }

    /// One that nobody sees.
    pub fn silent() -> Self {
        Self(ProgressBar::hidden())
    }

    /// So many more are done.
    pub fn add(&self, n: u64) {
        self.0.inc(n);
    }

    /// A run has come that far.
    pub fn step(&self, step: Progress) {
        match step {
            Progress::Ageing => self.message("ages"),
            Progress::Played(n) => self.add(n),
        }
    }

    /// So many are done in all.
    pub fn set(&self, n: u64) {
        self.0.set_position(n);
    }

    /// What is in work.
    pub fn message(&self, text: impl Into<String>) {
        self.0.set_message(text.into());
    }

    /// Takes the bar away.
    pub fn done(&self) {
        self.0.finish_and_clear();
    }
}
