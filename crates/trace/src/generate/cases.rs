//! Published cases of placement by hints: several kinds of data on one device, each a stream of its own
//! (docs/placement.md).

use super::params::Values;
use super::patterns::{Step, zipf_sums};
use super::{GenerateError, SplitMix64};
use crate::{Op, Stream};

/// A request without its arrival, and its stream.
pub(super) type Hinted = (Step, Stream);

/// More streams than any device has handles for.
const MAX_WRITERS: u64 = 4096;

/// A share of the space that is written from begin to end, again and again.
struct Ring {
    first: u64,
    slots: u64,
    at: u64,
}

impl Ring {
    /// The next place for requests of `n` pages.
    fn turn(&mut self, n: u64) -> u64 {
        let slot = self.at;
        self.at = (slot + 1) % self.slots;
        self.first + slot * n
    }
}

/// A cache of small and large objects: small ones in pages that are written at random, large ones in a ring of runs.
struct Cache {
    random: SplitMix64,
    small_pages: u64,
    large: Ring,
    /// Pages of a run.
    n: u64,
    /// Percent of the pages written that are small objects'.
    small_writes: u64,
    /// Pages still to write.
    left: u64,
}

impl Iterator for Cache {
    type Item = Hinted;

    fn next(&mut self) -> Option<Hinted> {
        // Of requests, not of pages: a run counts once and has n pages.
        let small = self.n * self.small_writes;
        let is_small = self.random.below(small + 100 - self.small_writes) < small;
        let (lpn, n, stream) = if is_small {
            (self.random.below(self.small_pages), 1, 0)
        } else {
            (self.large.turn(self.n), self.n, 1)
        };
        write(&mut self.left, lpn, n, stream)
    }
}

/// Writers that append, each in a ring of its own; a share of what they write replaces what lies anywhere in the ring.
struct Writers {
    random: SplitMix64,
    rings: Vec<Ring>,
    /// Sums of the rates up to and including each writer.
    sums: Vec<u64>,
    /// Percent of the requests that go anywhere in the ring.
    elsewhere: u64,
    n: u64,
    left: u64,
}

impl Iterator for Writers {
    type Item = Hinted;

    fn next(&mut self) -> Option<Hinted> {
        let u = self.random.below(*self.sums.last()?);
        let writer = self.sums.partition_point(|&sum| sum <= u);
        let ring = &mut self.rings[writer];
        let lpn = if self.elsewhere > 0 && self.random.below(100) < self.elsewhere {
            ring.first + self.random.below(ring.slots) * self.n
        } else {
            ring.turn(self.n)
        };
        write(&mut self.left, lpn, self.n, writer as u64)
    }
}

/// A write of `n` pages, or of those that are left of the workload.
fn write(left: &mut u64, lpn: u64, n: u64, stream: u64) -> Option<Hinted> {
    let n = n.min(*left);
    *left -= n;
    let step = (Op::Write, lpn, n as u32);
    (n > 0).then(|| (step, Stream::new(stream).unwrap_or_default()))
}

pub(super) fn cachelib(
    values: &Values<'_>,
    random: SplitMix64,
) -> Result<impl Iterator<Item = Hinted> + Send + use<>, GenerateError> {
    let space = values.space()?;
    let n = values.number("n", 1, 1 << 20)?;
    let wanted = space * values.number("small", 1, 99)? / 100;
    let slots = (space - wanted) / n;
    if wanted == 0 || slots == 0 {
        return Err(values.wrong("space", "it has no room for a small object and a run"));
    }
    // What is no whole run is left to the small objects.
    let small_pages = space - slots * n;
    Ok(Cache {
        random,
        small_pages,
        large: Ring {
            first: small_pages,
            slots,
            at: 0,
        },
        n,
        small_writes: values.percent("small_writes")?,
        left: values.number("page_writes", 1, u64::MAX)?,
    })
}

pub(super) fn kv_cache(
    values: &Values<'_>,
    random: SplitMix64,
) -> Result<impl Iterator<Item = Hinted> + Send + use<>, GenerateError> {
    let writers = values.number("writers", 1, MAX_WRITERS)?;
    let (slots, n) = values.slots(writers)?;
    let n = u64::from(n);
    let ring = |writer: u64| Ring {
        first: writer * slots * n,
        slots,
        at: 0,
    };
    Ok(Writers {
        random,
        rings: (0..writers).map(ring).collect(),
        sums: zipf_sums(writers, values.fraction("theta", 5.0)?),
        elsewhere: values.percent("elsewhere")?,
        n,
        left: values.number("page_writes", 1, u64::MAX)?,
    })
}
