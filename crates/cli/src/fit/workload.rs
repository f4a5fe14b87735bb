//! What was written to a drive: how likely each of its pages is to be the next.

use std::fmt;

use floatgate_core::rng::SplitMix64;
use floatgate_trace::generate;

/// Random writes of one page.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Workload {
    /// All pages alike.
    Uniform,
    /// The page of rank `i` with a weight of `1 / i^theta`; the ranks are spread over the pages at random.
    Zipf {
        /// The exponent.
        theta: f64,
    },
    /// The same as fio has it: a hash says which page a rank is, so some pages have several ranks, and a third have none
    /// and are never written.
    FioZipf {
        /// The exponent.
        theta: f64,
    },
    /// A percentage of the writes goes to a percentage of the pages.
    Hot {
        /// Percent of the writes.
        writes: u32,
        /// Percent of the pages.
        pages: u32,
    },
}

/// The words that name a workload.
const WORDS: &str =
    "uniform, zipf(THETA), fio-zipf(THETA) or hot(WRITES/PAGES), as zipf(0.8) or hot(80/20)";
/// The largest exponent.
const THETA_MAX: f64 = 2.0;

impl Workload {
    /// Reads the name of a workload.
    ///
    /// # Errors
    /// What would be one.
    pub fn parse(text: &str) -> Result<Self, String> {
        let wrong = || format!("workload {text:?}: {WORDS}");
        if text == "uniform" {
            return Ok(Self::Uniform);
        }
        let inner = text.strip_suffix(')').and_then(|text| text.split_once('('));
        let (name, of) = inner.ok_or_else(wrong)?;
        match name {
            "zipf" | "fio-zipf" => {
                let theta: f64 = of.parse().map_err(|_| wrong())?;
                if !(theta > 0.0 && theta <= THETA_MAX) {
                    let most = format!("{text}: THETA is more than 0 and at most {THETA_MAX}");
                    return Err(most);
                }
                Ok(match name {
                    "zipf" => Self::Zipf { theta },
                    _ => Self::FioZipf { theta },
                })
            }
            "hot" => {
                let (writes, pages) = of.split_once('/').ok_or_else(wrong)?;
                let percent = |text: &str| text.parse().ok().filter(|n| (1..=99).contains(n));
                match (percent(writes), percent(pages)) {
                    (Some(writes), Some(pages)) => Ok(Self::Hot { writes, pages }),
                    _ => Err(format!("{text}: whole percentages from 1 to 99")),
                }
            }
            _ => Err(wrong()),
        }
    }

    /// So many writes to a device of so many pages; `seed` draws them, and which page a rank is.
    ///
    /// # Errors
    /// If the device is too small for it.
    pub fn pages(&self, space: u32, writes: usize, seed: u64) -> Result<Vec<u32>, String> {
        let (name, own) = match self {
            Self::Uniform => ("uniform", vec![("n", "1".to_string())]),
            Self::Zipf { theta } | Self::FioZipf { theta } => {
                ("zipf", vec![("theta", theta.to_string())])
            }
            Self::Hot { writes, pages } => (
                "skew",
                vec![
                    ("x", writes.to_string()),
                    ("y", pages.to_string()),
                    ("distinct", space.to_string()),
                ],
            ),
        };
        let length = match self {
            Self::Hot { .. } => "writes",
            _ => "requests",
        };
        let common = [
            ("space", u64::from(space)),
            (length, writes as u64),
            ("seed", seed),
        ];
        let common = common.map(|(key, value)| (key, value.to_string()));
        let texts: Vec<(&str, &str)> = common
            .iter()
            .chain(&own)
            .map(|(key, value)| (*key, &**value))
            .collect();
        let requests = generate::build(name, &texts).map_err(|error| error.to_string())?;
        let hashed = matches!(self, Self::FioZipf { .. }).then(|| {
            let mut rng = SplitMix64::new(seed + 1);
            (0..space)
                .map(|_| rng.below(space.into()) as u32)
                .collect::<Vec<u32>>()
        });
        let page = |lpn: u64| match &hashed {
            Some(hashed) => hashed[lpn as usize],
            None => lpn as u32,
        };
        Ok(requests.map(|request| page(request.lpn)).collect())
    }
}

impl fmt::Display for Workload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Uniform => write!(f, "uniform"),
            Self::Zipf { theta } => write!(f, "zipf({theta})"),
            Self::FioZipf { theta } => write!(f, "fio-zipf({theta})"),
            Self::Hot { writes, pages } => write!(f, "hot({writes}/{pages})"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_and_written() {
        for name in ["uniform", "zipf(0.8)", "fio-zipf(1.2)", "hot(90/10)"] {
            assert_eq!(Workload::parse(name).unwrap().to_string(), name);
        }
        for wrong in [
            "",
            "uniform()",
            "zipf",
            "zipf()",
            "zipf(0)",
            "zipf(nan)",
            "zipf(2.5)",
            "zipf(0.8",
            "hot(80)",
            "hot(80/0)",
            "hot(100/20)",
            "hot(80.5/20)",
            "pareto(0.2)",
        ] {
            let told = Workload::parse(wrong).unwrap_err();
            assert!(
                told.contains("HETA") || told.contains("percentages"),
                "{told}"
            );
        }
    }

    #[test]
    fn shares_are_those_of_the_names() {
        let share_below = |pages: &[u32], counts: usize| {
            let mut times = vec![0_u32; 1000];
            pages.iter().for_each(|&page| times[page as usize] += 1);
            times.sort_unstable_by_key(|&n| std::cmp::Reverse(n));
            let written = times.iter().filter(|&&n| n > 0).count();
            let hot: u32 = times[..counts].iter().sum();
            (f64::from(hot) / pages.len() as f64, written)
        };
        let of = |name: &str| {
            Workload::parse(name)
                .unwrap()
                .pages(1000, 200_000, 1)
                .unwrap()
        };
        let (hot, written) = share_below(&of("hot(80/20)"), 200);
        assert!(
            (hot - 0.8).abs() < 0.01 && written == 1000,
            "{hot} {written}"
        );
        let (uniform, _) = share_below(&of("uniform"), 200);
        assert!(uniform < 0.23, "{uniform}");
        let (zipf, written) = share_below(&of("zipf(0.8)"), 200);
        assert!(
            (0.6..0.7).contains(&zipf) && written == 1000,
            "{zipf} {written}"
        );
        // A thousand ranks thrown at a thousand pages leave a share of 1/e of them empty.
        let (_, written) = share_below(&of("fio-zipf(0.8)"), 200);
        assert!((600..=665).contains(&written), "{written}");
    }
}
