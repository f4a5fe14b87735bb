//! Power cuts as they are asked for: when, what becomes of what was not flushed, and the line that asks for the same
//! again.

use std::fmt;
use std::str::FromStr;

use floatgate_core::rng::SplitMix64;
use floatgate_device::drive::{Loss, Unflushed};

/// Most that a draw may be within.
const WITHIN_MAX: u64 = 1 << 40;

/// When the power goes, counted from 1 since it came on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CutAt {
    /// In the n-th write.
    Write(u64),
    /// In the n-th flush.
    Flush(u64),
    /// In the n-th operation that changes the flash.
    Flash(u64),
    /// When the n-th request that changes anything is done: a write, a trim or a flush.
    After(u64),
}

/// A power cut.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CutPlan {
    /// When.
    pub at: CutAt,
    /// What becomes of writes that no flush has covered.
    pub unflushed: Unflushed,
    /// Whether it may come in the middle of a write, and of an operation of the flash.
    pub tear: bool,
    /// Of all that is drawn.
    pub seed: u64,
}

impl CutPlan {
    /// What it does to a cache.
    pub fn loss(&self) -> Loss {
        Loss {
            unflushed: self.unflushed,
            tear: self.tear,
        }
    }
}

/// One of the next `within` writes or operations of the flash, by that seed.
pub fn drawn(seed: u64, within: u64) -> Result<CutAt, String> {
    if !(1..=WITHIN_MAX).contains(&within) {
        return Err(format!("within={within}: from 1 to {WITHIN_MAX}"));
    }
    let mut rng = SplitMix64::new(seed);
    let is_write = rng.below(2) == 0;
    let nth = 1 + rng.below(within);
    Ok(match is_write {
        true => CutAt::Write(nth),
        false => CutAt::Flash(nth),
    })
}

/// What becomes of unflushed writes, by its name.
pub fn unflushed_of(name: &str) -> Result<Unflushed, String> {
    match name {
        "keep" => Ok(Unflushed::Keep),
        "drop" => Ok(Unflushed::Drop),
        "some" => Ok(Unflushed::Some),
        other => Err(format!("unflushed={other}: keep, drop or some")),
    }
}

impl fmt::Display for CutPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (word, nth) = match self.at {
            CutAt::Write(nth) => ("write", nth),
            CutAt::Flush(nth) => ("flush", nth),
            CutAt::Flash(nth) => ("flash", nth),
            CutAt::After(nth) => ("after", nth),
        };
        let unflushed = match self.unflushed {
            Unflushed::Keep => "keep",
            Unflushed::Drop => "drop",
            Unflushed::Some => "some",
        };
        let tear = if self.tear { ",tear" } else { "" };
        write!(
            f,
            "{word}={nth},unflushed={unflushed}{tear},seed={}",
            self.seed
        )
    }
}

impl FromStr for CutPlan {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (mut at, mut random, mut within) = (None, None, None);
        let (mut unflushed, mut tear, mut seed) = (Unflushed::Some, false, 0);
        for part in text.split(',').map(str::trim) {
            if part == "tear" {
                tear = true;
                continue;
            }
            let usage = "write=N, flush=N, flash=N, after=N or random=SEED,within=N; and unflushed=keep|drop|some, tear, seed=N";
            let Some((key, value)) = part.split_once('=') else {
                return Err(format!("{part:?} is not one of {usage}"));
            };
            if key == "unflushed" {
                unflushed = unflushed_of(value)?;
                continue;
            }
            let number = value.parse::<u64>();
            let number = number.map_err(|_| format!("{key}={value}: no whole number"))?;
            let of_kind: fn(u64) -> CutAt = match key {
                "write" => CutAt::Write,
                "flush" => CutAt::Flush,
                "flash" => CutAt::Flash,
                "after" => CutAt::After,
                "random" => {
                    random = Some(number);
                    continue;
                }
                "within" => {
                    within = Some(number);
                    continue;
                }
                "seed" => {
                    seed = number;
                    continue;
                }
                _ => return Err(format!("{key} is not one of {usage}")),
            };
            if number == 0 && key != "after" {
                return Err(format!("{part}: the first is 1"));
            }
            if at.replace(of_kind(number)).is_some() {
                return Err("one of write, flush, flash, after and random".into());
            }
        }
        let at = match (at, random, within) {
            (Some(at), None, None) => at,
            (None, Some(random), Some(within)) => drawn(random, within)?,
            (None, Some(_), None) => return Err("random=SEED wants within=N too".into()),
            (Some(_), ..) => {
                return Err("random and within stand for write, flush, flash or after".into());
            }
            _ => {
                return Err(
                    "when? write=N, flush=N, flash=N, after=N or random=SEED,within=N".into(),
                );
            }
        };
        Ok(Self {
            at,
            unflushed,
            tear,
            seed,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cut_is_told_as_it_is_asked_for() {
        for line in [
            "write=123,unflushed=some,tear,seed=7",
            "flush=1,unflushed=keep,seed=0",
            "flash=18446744073709551615,unflushed=drop,tear,seed=1",
            "after=0,unflushed=drop,seed=9",
        ] {
            assert_eq!(line.parse::<CutPlan>().expect(line).to_string(), line);
        }
        let drawn: CutPlan = "random=5,within=10".parse().expect("a draw");
        assert!(matches!(
            drawn.at,
            CutAt::Write(1..=10) | CutAt::Flash(1..=10)
        ));
        assert_eq!(drawn.to_string().parse(), Ok(drawn));
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        for line in [
            "",
            "write",
            "write=",
            "write=0",
            "write=-1",
            "write=1,flush=2",
            "seed=1",
            "random=1",
            "random=1,within=0",
            "write=1,random=1,within=2",
            "write=1,unflushed=all",
            "fast=1",
        ] {
            assert!(line.parse::<CutPlan>().is_err(), "{line:?}");
        }
    }
}
