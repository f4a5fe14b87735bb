//! Where a page lies, by the segments and the OOBs.

use super::LeaFtl;
use floatgate_core::address::{DieLpn, Ppn};
use floatgate_core::flash::{Cause, Flash};

/// What the levels say of a page, and which places are looked at on the way to it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Found {
    /// Where it lies.
    pub at: Ppn,
    /// Level of its segment.
    level: u32,
    /// What an inexact segment says; `None` if the place is known.
    pub predicted: Option<Ppn>,
    /// The second place to look at, if the first and its OOB do not help.
    pub second: Option<Ppn>,
}

impl LeaFtl {
    /// Finds a mapped page that is not in the open table. `None` if the levels have no such page, which no run of a device
    /// leads to.
    #[inline]
    pub(super) fn find(&self, lpn: DieLpn) -> Option<Found> {
        let (group, x) = self.group_of(lpn);
        let segment = self.levels.find(group, x)?;
        let (level, first) = (segment.level, segment.block.0 * self.pages());
        let end = self.places.end(segment.block.0);
        let page = segment.predict(x);
        let gamma = self.options.gamma;
        let known = |at| Found {
            at,
            level,
            predicted: None,
            second: None,
        };
        if !segment.is_approximate() || gamma == 0 {
            return (page < self.pages()).then(|| known(Ppn(first + page)));
        }
        let page = page.min(end.checked_sub(1)?);
        let predicted = Ppn(first + page);
        let found = |at, second| Found {
            predicted: Some(predicted),
            second,
            ..known(at)
        };
        if self.places.holds(predicted, lpn) {
            return Some(found(predicted, None));
        }
        if let Some(at) = self.places.named_by(predicted, page, gamma, lpn) {
            return Some(found(at, None));
        }
        let page = (page + gamma).min(end - 1);
        let second = Ppn(first + page);
        let at = match self.places.holds(second, lpn) {
            true => second,
            false => self.places.named_by(second, page, gamma, lpn)?,
        };
        Some(found(at, Some(second)))
    }

    fn find_counted(&mut self, lpn: DieLpn) -> Found {
        let found = self.find(lpn);
        let found = found.expect("a segment within its bound for every mapped page");
        let counts = &mut self.counts;
        counts.segment_lookups += 1;
        counts.levels_visited += u64::from(found.level);
        if let Some(predicted) = found.predicted {
            counts.approximate_lookups += 1;
            counts.mispredictions += u64::from(predicted != found.at);
        }
        found
    }

    /// Where the host's page lies, and when that is known: pages that the segments named wrongly are read in vain.
    #[inline]
    pub(super) fn place_to_read<F: Flash>(
        &mut self,
        flash: &mut F,
        lpn: DieLpn,
    ) -> Result<(Ppn, F::Token), F::Error> {
        let mut after = F::Token::default();
        let open = self.open[lpn.index()];
        if open.is_some() {
            return Ok((open, after));
        }
        let found = self.find_counted(lpn);
        for look in [found.predicted, found.second].into_iter().flatten() {
            if look != found.at {
                self.counts.extra_reads += 1;
                (_, after) = flash.read_oob(self.on_flash(look), Cause::Map, after)?;
            }
        }
        Ok((found.at, after))
    }

    /// Where the old copy of a page lies that is written or trimmed, and when that is known. Only OOBs are read, and those of
    /// right predictions too: nothing else says that they are right.
    #[inline]
    pub(super) fn old_place<F: Flash>(
        &mut self,
        flash: &mut F,
        lpn: DieLpn,
        after: F::Token,
    ) -> Result<(Ppn, F::Token), F::Error> {
        let (open, mut after) = (self.open[lpn.index()], after);
        if open.is_some() {
            return Ok((open, after));
        }
        let found = self.find_counted(lpn);
        for look in [found.predicted, found.second].into_iter().flatten() {
            self.counts.verify_reads += 1;
            (_, after) = flash.read_oob(self.on_flash(look), Cause::Map, after)?;
        }
        Ok((found.at, after))
    }
}
