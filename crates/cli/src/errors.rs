//! The one kind of error that a user sees: what is wrong, where, and what to do.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use floatgate_trace::TraceError;

/// Exit code of a command that did what it was asked.
pub const EXIT_DONE: u8 = 0;
/// Exit code of a difference that `conform` found.
pub const EXIT_DIFFERENT: u8 = 1;
/// Exit code of everything that the user can put right.
pub const EXIT_USER: u8 = 2;
/// Exit code of a bug in Floatgate or in a scheme.
pub const EXIT_BUG: u8 = 3;

/// A text that positions point into.
#[derive(Debug, PartialEq, Eq)]
pub struct Source {
    /// The file's name as the user gave it.
    pub name: String,
    /// Its text.
    pub text: String,
}

/// Where a setting stands.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Place {
    /// Nowhere: a default.
    #[default]
    Default,
    /// In a file.
    File {
        /// The file.
        source: Arc<Source>,
        /// Its bytes.
        span: Range<usize>,
    },
    /// On the command line: the argument with its flag, as `--set a.b=c`.
    Argument(String),
    /// A part of the value of another option of the command line.
    Option {
        /// The option, as `--vary`, and its value.
        source: Arc<Source>,
        /// The part's bytes.
        span: Range<usize>,
    },
}

/// Why a command did not do what it was asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    message: String,
    place: Place,
    help: Option<String>,
    code: u8,
}

/// What a command comes to.
pub type Outcome<T> = Result<T, Problem>;

impl Problem {
    /// Something that the user can put right.
    pub fn new(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            place: Place::Default,
            help: None,
            code: EXIT_USER,
        }
    }

    /// Something that the user cannot put right.
    pub fn bug(message: impl Into<String>) -> Self {
        Self {
            code: EXIT_BUG,
            ..Self::new(message)
        }
        .help("this is a bug in the scheme or in Floatgate; please report it")
    }

    /// The same with its place.
    #[must_use]
    pub fn at(mut self, place: &Place) -> Self {
        self.place = place.clone();
        self
    }

    /// The same with what to do.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// What is wrong, in one line and without its place.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// The exit code that goes with it.
    pub fn code(&self) -> u8 {
        self.code
    }
}

impl From<TraceError> for Problem {
    fn from(error: TraceError) -> Self {
        Self::new(error.to_string())
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "error: {}", self.message)?;
        match &self.place {
            Place::Default => {}
            Place::Argument(text) => write!(f, "\n  --> {text}")?,
            Place::Option { source, span } => {
                let Source { name, text } = &**source;
                let (indent, carets) = source.below(span);
                let margin = " ".repeat(name.chars().count());
                write!(f, "\n  --> {name} {text}\n      {margin} {indent}{carets}")?;
            }
            Place::File { source, span } => source.point(f, span)?,
        }
        match &self.help {
            Some(help) => write!(f, "\n  help: {help}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for Problem {}

impl Source {
    /// Line, column (both from 1) and text of the line that holds a byte.
    pub fn locate(&self, byte: usize) -> (usize, usize, &str) {
        let byte = byte.min(self.text.len());
        let before = self.text.get(..byte).unwrap_or(&self.text);
        let start = before.rfind('\n').map_or(0, |at| at + 1);
        let line = self.text[start..].lines().next().unwrap_or_default();
        (
            before.matches('\n').count() + 1,
            before[start..].chars().count() + 1,
            line,
        )
    }

    /// What stands below the line that holds the span: the indent, and carets under the span.
    fn below(&self, span: &Range<usize>) -> (String, String) {
        let (_, column, line) = self.locate(span.start);
        // Tabs stay tabs, so that the carets stand below their text whatever a tab's width is.
        let indent: String = line
            .chars()
            .take(column - 1)
            .map(|c| if c == '\t' { '\t' } else { ' ' })
            .collect();
        let left = line.chars().count().saturating_sub(column - 1);
        let marked = self
            .text
            .get(span.clone())
            .map_or(1, |text| text.chars().count());
        (indent, "^".repeat(marked.min(left).max(1)))
    }

    /// The line with carets under the span.
    fn point(&self, f: &mut fmt::Formatter<'_>, span: &Range<usize>) -> fmt::Result {
        let (line_no, column, line) = self.locate(span.start);
        let margin = line_no.to_string().len();
        let (indent, carets) = self.below(span);
        write!(f, "\n  --> {}:{line_no}:{column}", self.name)?;
        write!(
            f,
            "\n {:margin$} |\n {line_no} | {line}\n {:margin$} | {indent}{carets}",
            "", ""
        )
    }
}

/// The known word that is most like `word`, if one is like it at all.
pub fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    known
        .into_iter()
        .map(|candidate| (strsim::jaro_winkler(word, candidate), candidate))
        .filter(|(likeness, _)| *likeness > 0.8)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, candidate)| candidate)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn problems_point_into_the_file() {
        let source = Arc::new(Source {
            name: "a.toml".into(),
            text: "[device]\n\tdyes = 4\n".into(),
        });
        let problem = Problem::new("no key dyes")
            .at(&Place::File {
                source,
                span: 10..14,
            })
            .help("dies?");
        assert_eq!(
            problem.to_string(),
            "error: no key dyes\n  --> a.toml:2:2\n   |\n 2 | \tdyes = 4\n   | \t^^^^\n  help: dies?"
        );
    }

    #[test]
    fn the_nearest_word_or_none() {
        assert_eq!(nearest("fsat", ["page", "fast", "last"]), Some("fast"));
        assert_eq!(nearest("zzz", ["page", "fast"]), None);
    }
}
