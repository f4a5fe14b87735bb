//! The catalog: schemes chosen by name at run time.
//!
//! A scheme is a type, and everything that runs it is compiled for that type. Choosing by name needs a value: a [`Life`] is
//! what a program can do with a scheme (simulate it, store bytes with it, cut its power) as a few function pointers, and a
//! [`Catalog`] is a list of schemes with such values. Floatgate's own list is `floatgate_schemes::catalog()`;
//! [`Catalog::with`] adds a scheme of your own to it.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use crate::address::Lpn;
use crate::ftl::Ftl;
use crate::geometry::Geometry;
use crate::options::{OptionInfo, Options, Setting, Value};
use crate::refusal::Refusal;
use crate::report::Table;

/// What can be done with a scheme whose type has been erased: function pointers, made for each type.
pub trait Life: Sized {
    /// The value for that scheme.
    fn of<S: Ftl<Page = Lpn>>() -> Self;
}

/// Declares a [`Life`] of one function: `life! { struct Costs = fn costs(&Case) -> u64; }` for a
/// `fn costs<S: Ftl>(case: &Case) -> u64`, or of a method by its path.
#[macro_export]
macro_rules! life {
    ($(#[$doc:meta])* $vis:vis struct $name:ident = fn $($function:ident)::+($($arg:ty),* $(,)?) $(-> $out:ty)?;) => {
        $(#[$doc])*
        #[derive(Clone, Copy)]
        $vis struct $name($vis fn($($arg),*) $(-> $out)?);
        impl $crate::catalog::Life for $name {
            fn of<S: $crate::Ftl<Page = $crate::Lpn>>() -> Self {
                Self($($function)::+::<S>)
            }
        }
    };
}

/// The tables of a scheme for a shape and options by name; a refusal if an option does not fit.
pub type TablesOf = fn(&Geometry, &[(&str, Value)]) -> Result<Vec<Table>, Refusal>;

/// What is known about a scheme without running it.
#[derive(Clone, Debug)]
pub struct SchemeInfo {
    /// [`Ftl::KEY`].
    pub key: &'static str,
    /// [`Ftl::TITLE`].
    pub title: &'static str,
    /// [`Ftl::SUMMARY`].
    pub summary: &'static str,
    /// [`Ftl::SOURCE`].
    pub source: &'static str,
    /// Its option table.
    pub options: Vec<OptionInfo>,
    /// [`Described::TEXT`](crate::described::Described::TEXT).
    pub text: &'static str,
    /// The tables of a device of that shape with those options, as the papers count them; a refusal if an option does
    /// not fit.
    pub tables: TablesOf,
}

impl SchemeInfo {
    /// The head of the scheme's file, `//!` taken off: paper, state, rules, recovery, deviations.
    pub fn story(&self) -> String {
        let lines = self.text.lines().map_while(|line| line.strip_prefix("//!"));
        let lines: Vec<&str> = lines
            .map(|line| line.strip_prefix(' ').unwrap_or(line))
            .collect();
        lines.join("\n")
    }

    /// The option that a device setting fills, if the scheme has one.
    pub fn filled_from(&self, setting: Setting) -> Option<&OptionInfo> {
        let mut options = self.options.iter();
        options.find(|option| option.setting == Some(setting))
    }

    /// The description of a scheme.
    pub fn of<S: Ftl<Page = Lpn>>() -> Self {
        Self {
            key: S::KEY,
            title: S::TITLE,
            summary: S::SUMMARY,
            source: S::SOURCE,
            options: S::Options::schema(),
            text: S::TEXT,
            tables: |geometry, given| {
                let mut options = S::Options::default();
                for (key, value) in given {
                    options.set(key, value)?;
                }
                Ok(S::tables(geometry, &options))
            },
        }
    }
}

/// A scheme of a catalog.
#[derive(Clone, Debug)]
pub struct Entry<L> {
    /// Names, source, options.
    pub info: SchemeInfo,
    /// What can be done with it.
    pub life: L,
}

impl<L: Life> Entry<L> {
    /// The entry of a scheme.
    pub fn of<S: Ftl<Page = Lpn>>() -> Self {
        Self {
            info: SchemeInfo::of::<S>(),
            life: L::of::<S>(),
        }
    }
}

/// Schemes by name, in the order in which tables show them. A slice of its entries.
#[derive(Clone, Debug)]
pub struct Catalog<L> {
    entries: Vec<Entry<L>>,
}

impl<L: Life> Catalog<L> {
    /// A catalog without schemes.
    pub fn new() -> Self {
        Self {
            entries: Vec::new(),
        }
    }

    /// Adds a scheme; one of the same name is replaced.
    #[must_use]
    pub fn with<S: Ftl<Page = Lpn>>(mut self) -> Self {
        let entry = Entry::of::<S>();
        match self
            .entries
            .iter_mut()
            .find(|known| known.info.key == S::KEY)
        {
            Some(known) => *known = entry,
            None => self.entries.push(entry),
        }
        self
    }
}

impl<L> Catalog<L> {
    /// The scheme of that name.
    pub fn find(&self, key: &str) -> Option<&Entry<L>> {
        self.entries.iter().find(|entry| entry.info.key == key)
    }

    /// The same, or why not.
    ///
    /// # Errors
    /// A refusal that lists the known names.
    pub fn get(&self, key: &str) -> Result<&Entry<L>, Refusal> {
        self.find(key).ok_or_else(|| {
            let keys = self.keys().join(", ");
            Refusal::new("scheme", format!("no scheme {key:?}; there are {keys}"))
        })
    }

    /// The names of all schemes.
    pub fn keys(&self) -> Vec<&'static str> {
        self.entries.iter().map(|entry| entry.info.key).collect()
    }
}

impl<L: Life> Default for Catalog<L> {
    fn default() -> Self {
        Self::new()
    }
}

impl<L> core::ops::Deref for Catalog<L> {
    type Target = [Entry<L>];

    fn deref(&self) -> &[Entry<L>] {
        &self.entries
    }
}

impl<'a, L> IntoIterator for &'a Catalog<L> {
    type Item = &'a Entry<L>;
    type IntoIter = core::slice::Iter<'a, Entry<L>>;

    fn into_iter(self) -> Self::IntoIter {
        self.entries.iter()
    }
}
