//! One state that a power cut can leave, and the words for it: `57:cut=12:drop=3,5:torn=7@2`.

use std::fmt;
use std::str::FromStr;

use super::history::{History, Interval};

/// What is left of an interval. Changes are counted from 1.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct State {
    /// The interval: flushes, of those that had something to flush, before it.
    pub interval: usize,
    /// So many changes of it had reached the drive.
    pub cut: usize,
    /// Of these, the ones that were lost, in ascending order.
    pub dropped: Vec<u32>,
    /// A write of which only the first sectors were kept, and how many.
    pub torn: Option<(u32, u32)>,
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:cut={}", self.interval, self.cut)?;
        let mut runs: Vec<(u32, u32)> = Vec::new();
        for &at in &self.dropped {
            match runs.last_mut() {
                Some((_, last)) if *last + 1 == at => *last = at,
                _ => runs.push((at, at)),
            }
        }
        for (n, (first, last)) in runs.iter().enumerate() {
            f.write_str(if n == 0 { ":drop=" } else { "," })?;
            match first == last {
                true => write!(f, "{first}")?,
                false => write!(f, "{first}-{last}")?,
            }
        }
        match self.torn {
            Some((at, sectors)) => write!(f, ":torn={at}@{sectors}"),
            None => Ok(()),
        }
    }
}

impl FromStr for State {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut parts = text.trim().split(':');
        let number = |what: &str, text: &str| {
            text.parse::<u32>()
                .map_err(|_| format!("{what} is no number: {text:?}"))
        };
        let interval = number("the interval", parts.next().unwrap_or_default())? as usize;
        let (mut cut, mut dropped, mut torn) = (usize::MAX, Vec::new(), None);
        for part in parts {
            match part.split_once('=') {
                Some(("cut", value)) => cut = number("cut", value)? as usize,
                Some(("drop", value)) => {
                    for run in value.split(',') {
                        let (first, last) = run.split_once('-').unwrap_or((run, run));
                        let (first, last) = (number("drop", first)?, number("drop", last)?);
                        if last.saturating_sub(first) >= RUN_MAX {
                            return Err(format!("drop={run}: too long"));
                        }
                        dropped.extend(first..=last);
                    }
                }
                Some(("torn", value)) => {
                    let (at, sectors) = value.split_once('@').unwrap_or((value, ""));
                    torn = Some((number("torn", at)?, number("the sectors kept", sectors)?));
                }
                _ => return Err(format!("{part:?} is none of cut=, drop=, torn=")),
            }
        }
        dropped.sort_unstable();
        dropped.dedup();
        Ok(Self {
            interval,
            cut,
            dropped,
            torn,
        })
    }
}

/// More changes than an interval of any log that fits in memory has.
const RUN_MAX: u32 = 1 << 26;

impl State {
    /// The state after so many changes of an interval.
    pub fn prefix(interval: usize, cut: usize) -> Self {
        Self {
            interval,
            cut,
            dropped: Vec::new(),
            torn: None,
        }
    }

    /// Sees whether a power cut can leave this state of the log; without `cut=` it is the interval's end.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn checked(mut self, history: &History) -> Result<Self, String> {
        let intervals = history.intervals.len();
        let Some(interval) = history.intervals.get(self.interval) else {
            return Err(format!(
                "the log has {intervals} intervals, counted from 0, and not number {}",
                self.interval
            ));
        };
        let changes = interval.changes.len();
        if self.cut == usize::MAX {
            self.cut = changes;
        }
        if self.cut > changes {
            return Err(format!("interval {} has {changes} changes", self.interval));
        }
        for &at in &self.dropped {
            if at == 0 || at as usize > self.cut {
                return Err(format!("change {at} is not one of 1 to {}", self.cut));
            }
            if interval.changes[at as usize - 1].fua {
                return Err(format!(
                    "change {at} was written with FUA and cannot be lost"
                ));
            }
        }
        if let Some((at, sectors)) = self.torn {
            self.check_torn(interval, at, sectors, history.header.sector_bytes)?;
        }
        Ok(self)
    }

    fn check_torn(
        &self,
        interval: &Interval,
        at: u32,
        sectors: u32,
        sector_bytes: u32,
    ) -> Result<(), String> {
        if at == 0 || at as usize > self.cut || self.dropped.contains(&at) {
            return Err(format!("change {at} is not one of those kept"));
        }
        let change = &interval.changes[at as usize - 1];
        let has = change.bytes / u64::from(sector_bytes);
        if change.place.is_none() || sectors == 0 || u64::from(sectors) >= has {
            return Err(format!(
                "of change {at}, which has {has} sectors, {sectors} cannot be kept: it is torn in two"
            ));
        }
        if change.fua && at as usize != self.cut {
            return Err(format!(
                "change {at} was written with FUA: only the last one can be torn"
            ));
        }
        Ok(())
    }

    /// How many marks had been said.
    pub fn marks(&self, interval: &Interval) -> usize {
        match self.torn {
            // On its way when the power went, so nothing was said after it.
            Some((at, _)) if at as usize == self.cut && interval.changes[self.cut - 1].fua => {
                interval.marks_at(self.cut - 1)
            }
            _ => interval.marks_at(self.cut),
        }
    }

    /// Whether a change of it was kept.
    pub fn keeps(&self, at: u32) -> bool {
        at as usize <= self.cut && self.dropped.binary_search(&at).is_err()
    }

    /// What two states that are the same to a check have in common: the content's hash, and the marks said.
    pub fn identity(&self, interval: &Interval, scratch: &mut Vec<u128>) -> (u128, usize) {
        scratch.clear();
        scratch.extend_from_slice(&interval.before);
        let mut hash = interval.hash;
        let mut dropped = self.dropped.iter().copied().peekable();
        for (change, at) in interval.changes[..self.cut].iter().zip(1u32..) {
            if dropped.next_if_eq(&at).is_some() {
                continue;
            }
            let kept = match self.torn {
                Some((torn, sectors)) if torn == at => sectors as usize,
                _ => change.sectors.len(),
            };
            for &(sector, new) in &change.sectors[..kept.min(change.sectors.len())] {
                let old = std::mem::replace(&mut scratch[sector as usize], new);
                hash = hash.wrapping_sub(old).wrapping_add(new);
            }
        }
        (hash, self.marks(interval))
    }

    /// The shortest words for the same state: what was lost at the end never came, unless something was said after it.
    #[must_use]
    pub fn shortened(mut self, interval: &Interval) -> Self {
        while let Some(&last) = self.dropped.last()
            && last as usize == self.cut
            && interval.marks_at(self.cut) == interval.marks_at(self.cut - 1)
        {
            self.dropped.pop();
            self.cut -= 1;
        }
        self
    }
}
