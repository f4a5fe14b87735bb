//! The parameters of the generators: their description and their values.

use super::patterns::Reads;
use super::{Arrival, GenerateError};

/// A parameter of a generator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ParamInfo {
    /// The name in configurations and on the command line.
    pub name: &'static str,
    /// The unit; empty for a plain number or a word.
    pub unit: &'static str,
    /// The value when none is given.
    pub default: &'static str,
    /// What it does.
    pub doc: &'static str,
}

/// A generator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GeneratorInfo {
    /// The name.
    pub name: &'static str,
    /// What it makes, in one line.
    pub summary: &'static str,
    /// Where it comes from.
    pub source: &'static str,
    /// Its parameters, in the order for help.
    pub params: &'static [ParamInfo],
}

const fn param(
    name: &'static str,
    unit: &'static str,
    default: &'static str,
    doc: &'static str,
) -> ParamInfo {
    ParamInfo {
        name,
        unit,
        default,
        doc,
    }
}

const SPACE: ParamInfo = param("space", "pages", "65536", "logical pages of the device");
const SEED: ParamInfo = param("seed", "", "1", "start of the random numbers");
const REQUESTS: ParamInfo = param("requests", "requests", "100000", "length of the workload");
const PAGES: ParamInfo = param(
    "n",
    "pages",
    "1",
    "pages of a request; requests begin at multiples of it",
);
const READS: ParamInfo = param(
    "reads",
    "%",
    "0",
    "share of the requests that are reads; it may have one decimal",
);
const PAGE_WRITES: ParamInfo = param("page_writes", "pages", "1000000", "length of the workload");
const RUN: ParamInfo = param("n", "pages", "64", "pages of a run, which is one request");
const ARRIVAL: ParamInfo = param(
    "arrival",
    "",
    "none",
    "arrivals: none (all at 0), fixed (one every gap) or exponential (Poisson with mean gap)",
);
const GAP: ParamInfo = param(
    "gap",
    "ns",
    "1000000",
    "distance of arrivals, for fixed and exponential",
);

/// Every generator.
pub fn generators() -> &'static [GeneratorInfo] {
    GENERATORS
}

const GENERATORS: &[GeneratorInfo] = &[
    GeneratorInfo {
        name: "skew",
        summary: "single-page writes, x % of them to y % of the pages",
        source: "FASTer, section V-C",
        params: &[
            SPACE,
            param(
                "distinct",
                "pages",
                "22937",
                "pages of the working set, spread over the space",
            ),
            param("writes", "requests", "100000", "length of the workload"),
            param(
                "x",
                "%",
                "80",
                "share of the writes that go to the hot pages",
            ),
            param("y", "%", "20", "share of the working set that is hot"),
            SEED,
            ARRIVAL,
            GAP,
        ],
    },
    GeneratorInfo {
        name: "tpcc",
        summary: "OLTP-like writes: tiers of hotness, mostly single pages",
        source: "FASTer, section III-A",
        params: &[
            SPACE,
            param(
                "writes",
                "requests",
                "100000",
                "write requests; reads come on top",
            ),
            param("working", "%", "35", "share of the space that is written"),
            param(
                "tiers",
                "%:%",
                "10:50,20:20,70:30",
                "share of the working set and of the requests, tier by tier",
            ),
            param(
                "blocks",
                "%",
                "100",
                "share of the logical blocks that hold the working set, spread evenly; FASTer's trace: 75",
            ),
            param(
                "block_pages",
                "pages",
                "64",
                "pages of a logical block, for blocks and order",
            ),
            param(
                "order",
                "",
                "scattered",
                "where the tiers lie: scattered (each all over the blocks) or tiers (each in blocks of its own)",
            ),
            param(
                "reads",
                "%",
                "0",
                "share of the requests that are reads, at most 99",
            ),
            SEED,
            ARRIVAL,
            GAP,
        ],
    },
    GeneratorInfo {
        name: "uniform",
        summary: "random requests, every place alike",
        source: "the usual worst case",
        params: &[SPACE, REQUESTS, PAGES, READS, SEED, ARRIVAL, GAP],
    },
    GeneratorInfo {
        name: "zipf",
        summary: "single-page requests by Zipf's law",
        source: "rank i has weight floor(2^32 / i^theta), at least 1; exact cumulative table",
        params: &[
            SPACE,
            param(
                "distinct",
                "pages",
                "0",
                "pages of the working set, spread over the space; 0 is all",
            ),
            REQUESTS,
            param(
                "theta",
                "",
                "0.99",
                "exponent: 0 is uniform, larger is more skewed, at most 5",
            ),
            READS,
            SEED,
            ARRIVAL,
            GAP,
        ],
    },
    GeneratorInfo {
        name: "sequential",
        summary: "one or more sequential streams in turn, each in its own part of the space",
        source: "the usual best case",
        params: &[
            SPACE,
            REQUESTS,
            param("streams", "", "1", "number of streams"),
            PAGES,
            READS,
            SEED,
            ARRIVAL,
            GAP,
        ],
    },
    GeneratorInfo {
        name: "mixed",
        summary: "reads and writes, sequential and random",
        source: "as the usual benchmark programs",
        params: &[
            SPACE,
            REQUESTS,
            PAGES,
            param(
                "reads",
                "%",
                "50",
                "share of the requests that are reads; it may have one decimal",
            ),
            param(
                "sequential",
                "%",
                "50",
                "share of the requests that begin where the one before ended",
            ),
            SEED,
            ARRIVAL,
            GAP,
        ],
    },
    GeneratorInfo {
        name: "randomness",
        summary: "sequential writes of which a share goes to random places",
        source: "BLogFTL's Iometer runs; fill the device first, so that they are updates",
        params: &[
            SPACE,
            REQUESTS,
            PAGES,
            param(
                "random",
                "%",
                "20",
                "share of the requests that go to random places",
            ),
            param(
                "sequential",
                "",
                "front",
                "where the others go: front (on from the last sequential one) or continue (on from the last request, as in Iometer)",
            ),
            SEED,
            ARRIVAL,
            GAP,
        ],
    },
    GeneratorInfo {
        name: "cachelib",
        summary: "a cache with small objects in pages written at random (stream 0) and large ones in a ring of runs (stream 1)",
        source: "the case that CacheLib's manual measures flexible data placement with",
        params: &[
            SPACE,
            PAGE_WRITES,
            param(
                "small",
                "%",
                "4",
                "share of the space that small objects have",
            ),
            param(
                "small_writes",
                "%",
                "60",
                "share of the pages written that are small objects'",
            ),
            RUN,
            SEED,
            ARRIVAL,
            GAP,
        ],
    },
    GeneratorInfo {
        name: "kv-cache",
        summary: "writers that append in rings of their own, each a stream, some more often than others",
        source: "after LMCache's measurement of flexible data placement; rates and order are ours",
        params: &[
            SPACE,
            PAGE_WRITES,
            param("writers", "", "9", "number of writers"),
            param(
                "theta",
                "",
                "1",
                "rates of the writers: the i-th has weight 1 / i^theta, all are alike with 0",
            ),
            param(
                "elsewhere",
                "%",
                "5",
                "share of the requests that go anywhere in the writer's ring, not to its next place",
            ),
            RUN,
            SEED,
            ARRIVAL,
            GAP,
        ],
    },
];

/// The largest space: its permutation takes 8 GiB.
const MAX_SPACE: u64 = 1 << 31;

/// The values of a generator's parameters.
pub(crate) struct Values<'a> {
    info: &'static GeneratorInfo,
    given: &'a [(&'a str, &'a str)],
}

impl<'a> Values<'a> {
    pub fn new(name: &str, given: &'a [(&'a str, &'a str)]) -> Result<Self, GenerateError> {
        let unknown = |message: String, param: Option<&str>| GenerateError {
            generator: name.to_owned(),
            param: param.map(str::to_owned),
            message,
        };
        let Some(info) = generators().iter().find(|g| g.name == name) else {
            let names: Vec<&str> = generators().iter().map(|g| g.name).collect();
            return Err(unknown(
                format!("there is no such generator; there are {}", names.join(", ")),
                None,
            ));
        };
        for (i, (key, _)) in given.iter().enumerate() {
            if !info.params.iter().any(|p| p.name == *key) {
                let names: Vec<&str> = info.params.iter().map(|p| p.name).collect();
                return Err(unknown(
                    format!("there is no such parameter; there are {}", names.join(", ")),
                    Some(key),
                ));
            }
            if given[..i].iter().any(|(other, _)| other == key) {
                return Err(unknown("it is given twice".to_owned(), Some(key)));
            }
        }
        Ok(Values { info, given })
    }

    pub fn wrong(&self, param: &str, message: &str) -> GenerateError {
        GenerateError {
            generator: self.info.name.to_owned(),
            param: Some(param.to_owned()),
            message: message.to_owned(),
        }
    }

    /// The text of a parameter, given or default.
    fn text(&self, param: &str) -> &str {
        let given = self.given.iter().find(|(key, _)| *key == param);
        match given {
            Some((_, value)) => value.trim(),
            None => self
                .info
                .params
                .iter()
                .find(|p| p.name == param)
                .map_or("", |p| p.default),
        }
    }

    /// A whole number within bounds.
    pub fn number(&self, param: &str, min: u64, max: u64) -> Result<u64, GenerateError> {
        let text = self.text(param).replace('_', "");
        match crate::parse::number(text.as_bytes()) {
            Some(value) if (min..=max).contains(&value) => Ok(value),
            _ => Err(self.wrong(
                param,
                &format!(
                    "'{}' is not a whole number from {min} to {max}",
                    self.text(param)
                ),
            )),
        }
    }

    pub fn percent(&self, param: &str) -> Result<u64, GenerateError> {
        self.number(param, 0, 100)
    }

    /// The read share: whole, or with one decimal.
    pub fn reads(&self) -> Result<Reads, GenerateError> {
        let text = self.text("reads");
        let Some((whole, tenth)) = text.split_once('.') else {
            let share = self.percent("reads")?;
            return Ok(Reads { of: 100, share });
        };
        let number = |text: &str| crate::parse::number(text.as_bytes());
        match (number(whole), tenth.len(), number(tenth)) {
            (Some(whole @ 0..=99), 1, Some(tenth)) => Ok(Reads {
                of: 1000,
                share: whole * 10 + tenth,
            }),
            _ => Err(self.wrong(
                "reads",
                &format!("'{text}' is not a number from 0 to 100 with at most one decimal"),
            )),
        }
    }

    pub fn space(&self) -> Result<u64, GenerateError> {
        self.number("space", 1, MAX_SPACE)
    }

    /// A number with a fraction, from 0.
    pub fn fraction(&self, param: &str, max: f64) -> Result<f64, GenerateError> {
        let text = self.text(param);
        match text.parse::<f64>() {
            Ok(value) if (0.0..=max).contains(&value) => Ok(value),
            _ => Err(self.wrong(param, &format!("'{text}' is not a number from 0 to {max}"))),
        }
    }

    /// Requests of `n` pages that fit into one of so many equal parts of the space, and `n`.
    pub fn slots(&self, parts: u64) -> Result<(u64, u32), GenerateError> {
        let space = self.number("space", 1, 1 << 48)?;
        let n = self.number("n", 1, 1 << 20)?;
        match space / parts / n {
            0 => Err(self.wrong(
                "space",
                "it is too small for a single request in each stream",
            )),
            slots => Ok((slots, n as u32)),
        }
    }

    /// Pairs as `10:50,20:20`.
    pub fn pairs(&self, param: &str) -> Result<Vec<(u64, u64)>, GenerateError> {
        self.text(param)
            .split(',')
            .map(|pair| {
                let (a, b) = pair.split_once(':')?;
                let number = |t: &str| crate::parse::number(t.trim().as_bytes());
                Some((number(a)?, number(b)?))
            })
            .collect::<Option<Vec<_>>>()
            .ok_or_else(|| {
                self.wrong(
                    param,
                    &format!("'{}' is not a list as 10:50,20:20,70:30", self.text(param)),
                )
            })
    }

    /// Which of two words a parameter is: whether it is the second.
    pub fn is_second(
        &self,
        param: &str,
        [first, second]: [&str; 2],
    ) -> Result<bool, GenerateError> {
        match self.text(param) {
            word if word == first => Ok(false),
            word if word == second => Ok(true),
            other => Err(self.wrong(param, &format!("'{other}' is not {first} or {second}"))),
        }
    }

    pub fn arrival(&self) -> Result<Arrival, GenerateError> {
        let gap_ns = self.number("gap", 0, 1 << 50)?;
        match self.text("arrival") {
            "none" => Ok(Arrival::None),
            "fixed" => Ok(Arrival::Fixed { gap_ns }),
            "exponential" => Ok(Arrival::Exponential { gap_ns }),
            other => Err(self.wrong(
                "arrival",
                &format!("'{other}' is not none, fixed or exponential"),
            )),
        }
    }
}
