//! Replay lines: every failure of the kit as one line of text, printed and read here.
//!
//! ```text
//! SCHEME CASE suite             the suite, no cuts; suite=N: tables checked after every N-th request
//! SCHEME CASE cut=AT:TEAR ...   the power goes at the change AT, then at one of the recovery, and so on
//! SCHEME CASE cut=none          the run itself, in which the power goes only where the run goes on with what is left
//! SCHEME CASE flight=N:CHANCE ...  several dies in flight when the power goes in the request N since the device came up, or
//!                               in its recovery (0); flight=none: in the run itself, without a cut
//! SCHEME CASE rot=KIND:SEED     damage before the recovery
//! SCHEME script=HEX             requests and cuts as a fuzzer has chosen them
//! ```

use std::fmt::{Display, Formatter};

use super::rot::{Kind, Rot};
use super::{Cuts, Flights, Script};
use crate::case::Case;
use crate::cut::Tear;
use crate::suite::CHECK_EVERY;

/// A scheme, and what is done with it.
#[derive(Clone, Debug, PartialEq)]
pub struct Line {
    /// The scheme's name.
    pub scheme: String,
    /// What is done.
    pub trial: Trial,
}

/// What is done with a scheme.
#[derive(Clone, Debug, PartialEq)]
pub enum Trial {
    /// The plain suite, with the tables checked after every so many requests.
    Suite(Case, u32),
    /// Power cuts.
    Cuts(Case, Cuts),
    /// Power cuts with several dies in flight.
    Flight(Case, Flights),
    /// Damage.
    Rot(Case, Rot),
    /// What a fuzzer has chosen.
    Script(Script),
}

/// What a scheme has broken, and the line that shows it again.
#[derive(Clone, Debug, PartialEq)]
pub struct Finding {
    /// What broke.
    pub what: String,
    /// What [`replay`](crate::replay) takes.
    pub line: Box<Line>,
}

impl Finding {
    pub(crate) fn new(scheme: &str, trial: Trial, what: String) -> Self {
        let scheme = scheme.into();
        Self {
            what,
            line: Box::new(Line { scheme, trial }),
        }
    }
}

impl Display for Finding {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "{}: {}\n  replay: {}",
            self.line.scheme, self.what, self.line
        )
    }
}

impl std::error::Error for Finding {}

impl Line {
    /// Reads a line.
    ///
    /// # Errors
    /// Names what it cannot read.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut words = text.split_whitespace();
        let scheme = words.next().ok_or("a line begins with a scheme")?;
        let (trial, case): (Vec<&str>, Vec<&str>) = words.partition(|word| is_of_trial(word));
        let (case, has_case) = (Case::parse(&case.join(" "))?, !case.is_empty());
        let trial = match trial[..] {
            [] => {
                return Err(
                    "a line ends with suite, cut=..., flight=..., rot=... or script=...".into(),
                );
            }
            [word] if word.starts_with("suite") => {
                let every = parse_suite(word).ok_or(format!("{word}: not suite or suite=N"))?;
                Trial::Suite(case, every)
            }
            [word] if word.starts_with("rot=") => Trial::Rot(
                case,
                Rot::parse(word).ok_or(format!(
                    "{word}: not rot=unreadable:SEED or rot=forged:SEED"
                ))?,
            ),
            [word] if word.starts_with("script=") => {
                if has_case {
                    return Err("a script brings its own case".into());
                }
                Trial::Script(
                    Script::parse(word).ok_or("not script= and hexadecimal digits".to_string())?,
                )
            }
            [word, ..] if word.starts_with("flight=") => Trial::Flight(
                case,
                Flights::parse(&trial).ok_or(
                    "several dies are cut by flight=NUMBER:CHANCE, and not at all by flight=none",
                )?,
            ),
            _ => Trial::Cuts(
                case,
                Cuts::parse(&trial).ok_or(
                    "a cut is cut=NUMBER:clean or cut=NUMBER:tornSEED, and no cut is cut=none",
                )?,
            ),
        };
        let scheme = scheme.into();
        Ok(Self { scheme, trial })
    }
}

/// Whether a word says what is done, and does not belong to the case.
fn is_of_trial(word: &str) -> bool {
    let key = word.split_once('=').map_or(word, |(key, _)| key);
    ["suite", "cut", "flight", "rot", "script"].contains(&key)
}

fn parse_suite(word: &str) -> Option<u32> {
    match word.strip_prefix("suite=") {
        Some(every) => every.parse().ok().filter(|&every| every > 0),
        None => (word == "suite").then_some(CHECK_EVERY),
    }
}

impl Trial {
    /// The case, unless it follows from a script.
    pub fn case(&self) -> Option<&Case> {
        match self {
            Self::Suite(case, _)
            | Self::Cuts(case, _)
            | Self::Flight(case, _)
            | Self::Rot(case, _) => Some(case),
            Self::Script(_) => None,
        }
    }
}

impl Display for Line {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.scheme, self.trial)
    }
}

impl Display for Trial {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Suite(case, CHECK_EVERY) => write!(f, "{case} suite"),
            Self::Suite(case, every) => write!(f, "{case} suite={every}"),
            Self::Cuts(case, cuts) => write!(f, "{case} {cuts}"),
            Self::Flight(case, flights) => write!(f, "{case} {flights}"),
            Self::Rot(case, rot) => write!(f, "{case} {rot}"),
            Self::Script(script) => write!(f, "{script}"),
        }
    }
}

impl Display for Cuts {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        if self.0.is_empty() {
            return f.write_str("cut=none");
        }
        for (i, (at, tear)) in self.0.iter().enumerate() {
            let space = if i > 0 { " " } else { "" };
            write!(f, "{space}cut={at}:{tear}")?;
        }
        Ok(())
    }
}

impl Cuts {
    fn parse(words: &[&str]) -> Option<Self> {
        if words == ["cut=none"] {
            return Some(Self::default());
        }
        let cuts = words.iter().map(|word| {
            let (at, tear) = word.strip_prefix("cut=")?.split_once(':')?;
            Some((at.parse().ok()?, Tear::parse(tear)?))
        });
        cuts.collect::<Option<_>>().map(Self)
    }
}

impl Display for Flights {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        if self.0.is_empty() {
            return f.write_str("flight=none");
        }
        for (i, (at, chance)) in self.0.iter().enumerate() {
            let space = if i > 0 { " " } else { "" };
            write!(f, "{space}flight={at}:{chance}")?;
        }
        Ok(())
    }
}

impl Flights {
    fn parse(words: &[&str]) -> Option<Self> {
        if words == ["flight=none"] {
            return Some(Self::default());
        }
        let flights = words.iter().map(|word| {
            let (at, chance) = word.strip_prefix("flight=")?.split_once(':')?;
            Some((at.parse().ok()?, chance.parse().ok()?))
        });
        flights.collect::<Option<_>>().map(Self)
    }
}

impl Display for Tear {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Clean => f.write_str("clean"),
            Self::Torn(seed) => write!(f, "torn{seed}"),
        }
    }
}

impl Tear {
    fn parse(word: &str) -> Option<Self> {
        match word.strip_prefix("torn") {
            Some(seed) => seed.parse().ok().map(Self::Torn),
            None => (word == "clean").then_some(Self::Clean),
        }
    }
}

impl Display for Rot {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        let kind = match self.kind {
            Kind::Unreadable => "unreadable",
            Kind::Forged => "forged",
        };
        write!(f, "rot={kind}:{}", self.seed)
    }
}

impl Rot {
    fn parse(word: &str) -> Option<Self> {
        let (kind, seed) = word.strip_prefix("rot=")?.split_once(':')?;
        let kind = match kind {
            "unreadable" => Kind::Unreadable,
            "forged" => Kind::Forged,
            _ => return None,
        };
        let seed = seed.parse().ok()?;
        Some(Self { kind, seed })
    }
}

impl Display for Script {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        f.write_str("script=")?;
        let mut bytes = self.bytes();
        bytes.try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl Script {
    fn parse(word: &str) -> Option<Self> {
        let digits = word.strip_prefix("script=")?;
        if !digits.is_ascii() || !digits.len().is_multiple_of(2) {
            return None;
        }
        let byte = |i| u8::from_str_radix(&digits[i..i + 2], 16).ok();
        let bytes: Option<Vec<u8>> = (0..digits.len()).step_by(2).map(byte).collect();
        Self::of(&bytes?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_read_back_as_they_were_printed() {
        let case = Case::small(2, 9, 4, 5)
            .with("gc_low", 3)
            .with("gc_policy", "greedy")
            .with("batch", true)
            .with("seed", 7)
            .with("cut", "deep")
            .with("flight", 3);
        let chain = Cuts(vec![(5, Tear::Clean), (0, Tear::Torn(9))]);
        let kinds = [Kind::Unreadable, Kind::Forged];
        let rots = kinds.map(|kind| Trial::Rot(case.clone(), Rot { kind, seed: 8 }));
        let script = Script::of(&[1, 2, 3, 250, 4, 5, 6, 7]).unwrap();
        let trials = [
            Trial::Suite(case.clone(), CHECK_EVERY),
            Trial::Suite(case.clone(), 1),
            Trial::Cuts(case.clone(), Cuts::default()),
            Trial::Cuts(case.clone(), chain),
            Trial::Flight(case.clone(), Flights::default()),
            Trial::Flight(case.clone(), Flights(vec![(5, 77), (0, 9), (2, 0)])),
            Trial::Script(script),
        ];
        for trial in trials.into_iter().chain(rots) {
            let line = Line {
                scheme: "page".into(),
                trial,
            };
            assert_eq!(Line::parse(&line.to_string()), Ok(line));
        }
    }

    #[test]
    fn what_cannot_be_read_is_named() {
        for (line, named) in [
            ("", "a scheme"),
            ("page", "suite, cut="),
            ("page dies=1", "suite, cut="),
            ("page dies=1 suite=x", "suite=x"),
            ("page dies=1 suite cut=none", "a cut is"),
            ("page dies=1 cut=x:clean", "a cut is"),
            ("page dies=1 cut=1:odd", "a cut is"),
            ("page dies=1 flight=1", "several dies"),
            ("page dies=1 flight=1:2 cut=none", "several dies"),
            ("page dies=1 rot=odd:1", "rot=odd:1"),
            ("page dies=x cut=1:clean", "dies=x"),
            ("page script=0g", "hexadecimal"),
            ("page dies=1 script=00000000", "its own case"),
        ] {
            let error = Line::parse(line).unwrap_err();
            assert!(error.contains(named), "{line}: {error}");
        }
    }
}
