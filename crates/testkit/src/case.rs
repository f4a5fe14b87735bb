//! A case: a small device, its options, and how many requests it gets, as one piece of text.

use floatgate_core::Refusal;
use floatgate_core::ftl::{Ftl, Start};
use floatgate_core::geometry::{Geometry, ProgramOrder};
use floatgate_core::options::{OptionInfo, Options, Scope, Setting, Value};
use floatgate_core::rng::SplitMix64;

/// The words of a case that are no options. An option of such a name is written with [`OPTION_MARK`] before it.
const RESERVED: [&str; 13] = [
    "dies",
    "blocks",
    "pages",
    "logical_pages",
    "order",
    "start",
    "requests",
    "seed",
    "suite",
    "cut",
    "flight",
    "rot",
    "script",
];
/// Before an option that is named like something else.
const OPTION_MARK: &str = "option:";
/// Log blocks a die where nobody says how many.
const LOG_BLOCKS_PER_DIE: u32 = 4;

/// One run of the suite.
#[derive(Clone, Debug, PartialEq)]
pub struct Case {
    /// Dies.
    pub dies: u32,
    /// Blocks a die.
    pub blocks: u32,
    /// Pages a block.
    pub pages: u32,
    /// Logical pages of the device.
    pub logical_pages: u32,
    /// Program order.
    pub order: ProgramOrder,
    /// Start state.
    pub start: Start,
    /// Requests.
    pub requests: u32,
    /// Seed of the requests.
    pub seed: u64,
    /// Options by name.
    pub options: Vec<(String, Value)>,
}

impl std::fmt::Display for Case {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "dies={} blocks={} pages={} logical_pages={} order={} start={} requests={} seed={}",
            self.dies,
            self.blocks,
            self.pages,
            self.logical_pages,
            self.order.name(),
            self.start.name(),
            self.requests,
            self.seed
        )?;
        for (key, value) in &self.options {
            let mark = if RESERVED.contains(&key.as_str()) {
                OPTION_MARK
            } else {
                ""
            };
            match value {
                Value::Text(word) => write!(f, " {mark}{key}={word}")?,
                value => write!(f, " {mark}{key}={value}")?,
            }
        }
        Ok(())
    }
}

impl Case {
    /// A small device: start full, ascending order, a few hundred requests.
    pub fn small(dies: u32, blocks: u32, pages: u32, logical_blocks_per_die: u32) -> Self {
        Self {
            dies,
            blocks,
            pages,
            logical_pages: dies * pages * logical_blocks_per_die,
            order: ProgramOrder::Ascending,
            start: Start::Full,
            requests: 400,
            seed: 1,
            options: Vec::new(),
        }
    }

    /// Data blocks of one die when every logical page has been written.
    pub fn data_blocks(&self) -> u32 {
        self.logical_pages / self.pages / self.dies
    }

    /// The same with an option set.
    #[must_use]
    pub fn with(mut self, key: &str, value: impl ToString) -> Self {
        self.options
            .push((key.into(), Value::from_word(&value.to_string())));
        self
    }

    /// Whether an option is set.
    pub fn sets(&self, key: &str) -> bool {
        self.options.iter().any(|(known, _)| known == key)
    }

    /// The same with what a device has to say and this case does not: the number of log blocks, for schemes that take it.
    #[must_use]
    pub fn completed(self, options: &[OptionInfo]) -> Self {
        let logs = |option: &&OptionInfo| option.setting == Some(Setting::LogBlocks);
        match options.iter().find(logs) {
            Some(option) if !self.sets(option.key) => {
                let each = match option.scope {
                    Scope::Device => self.dies,
                    Scope::Own => 1,
                };
                self.with(option.key, LOG_BLOCKS_PER_DIE * each)
            }
            _ => self,
        }
    }

    /// Reads a case from the line that a failure printed.
    ///
    /// # Errors
    /// Names the word it cannot read.
    pub fn parse(line: &str) -> Result<Self, String> {
        let mut case = Self::small(1, 8, 4, 4);
        for word in line.split_whitespace() {
            let (key, value) = word
                .split_once('=')
                .ok_or(format!("{word}: not of the form key=value"))?;
            let number = || {
                value
                    .parse::<u64>()
                    .map_err(|_| format!("{word}: not a number"))
            };
            match key {
                "dies" => case.dies = number()? as u32,
                "blocks" => case.blocks = number()? as u32,
                "pages" => case.pages = number()? as u32,
                "logical_pages" => case.logical_pages = number()? as u32,
                "requests" => case.requests = number()? as u32,
                "seed" => case.seed = number()?,
                "order" => {
                    case.order =
                        ProgramOrder::from_name(value).ok_or(format!("{word}: no such order"))?
                }
                "start" => {
                    case.start = Start::from_name(value).ok_or(format!("{word}: no such state"))?
                }
                _ => {
                    let key = key.strip_prefix(OPTION_MARK).unwrap_or(key);
                    case.options.push((key.into(), Value::from_word(value)));
                }
            }
        }
        Ok(case)
    }

    /// The shape of its device.
    ///
    /// # Errors
    /// The refusal of the shape.
    pub fn geometry(&self) -> Result<Geometry, Refusal> {
        let pages = self.logical_pages.into();
        Geometry::new(self.dies, self.blocks, self.pages, pages, self.order)
    }

    /// The options of a scheme with this case's values set.
    ///
    /// # Errors
    /// If the scheme does not take one of them.
    pub fn options_of<S: Ftl>(&self) -> Result<S::Options, Refusal> {
        let mut options = S::Options::default();
        for (key, value) in &self.options {
            options.set(key, value)?;
        }
        Ok(options)
    }
}

/// A small device of random shape for stress tests, with `blocks` still to be chosen by what the scheme
/// needs beyond its [data blocks](Case::data_blocks).
pub fn random_shape(rng: &mut SplitMix64) -> Case {
    let dies = 1 + rng.below(3) as u32;
    let pages = [1, 2, 3, 4, 5, 8, 16][rng.below(7) as usize];
    let logical_blocks = 1 + rng.below(12) as u32;
    Case {
        order: [ProgramOrder::Ascending, ProgramOrder::Any][rng.below(2) as usize],
        start: [Start::Empty, Start::Full][rng.below(2) as usize],
        requests: 40 + rng.below(160) as u32,
        seed: rng.next(),
        ..Case::small(dies, 0, pages, logical_blocks)
    }
}

/// Gives a case a random map area for a block map of `entries` entries a die, and the blocks for it.
#[must_use]
pub fn with_random_map(rng: &mut SplitMix64, mut case: Case, entries: u32) -> Case {
    let per_page = 1 + rng.below(entries.into()) as u32;
    let pages = entries.div_ceil(per_page) + 1;
    let map_blocks = 1 + pages.div_ceil(case.pages) + rng.below(2) as u32;
    case.blocks += map_blocks;
    case.with("map_blocks", map_blocks)
        .with("map_entries_per_page", per_page)
}
