//! Merges by kind, as a request, a sample or a run counts them.

use floatgate_core::report::SchemeCounters;

/// Merges by kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MergeKinds {
    /// Log block became the data block, nothing copied.
    pub switch: u64,
    /// Log block became the data block after copying the rest.
    pub partial: u64,
    /// Logical blocks rebuilt in fresh blocks.
    pub full: u64,
    /// Victim without a valid page: erased.
    pub dead: u64,
    /// Kinds of the scheme's own (blog's `reduced`).
    pub other: u64,
}

impl MergeKinds {
    /// Of a scheme so far.
    pub fn of(counters: &SchemeCounters) -> Self {
        let merges = &counters.merges;
        Self {
            switch: merges.switch,
            partial: merges.partial,
            full: merges.full,
            dead: merges.dead,
            other: counters.own_merges.iter().map(|kind| kind.value).sum(),
        }
    }

    /// What came since `before`.
    #[must_use]
    pub fn since(self, before: Self) -> Self {
        Self {
            switch: self.switch - before.switch,
            partial: self.partial - before.partial,
            full: self.full - before.full,
            dead: self.dead - before.dead,
            other: self.other - before.other,
        }
    }

    /// All kinds with their names.
    pub fn kinds(&self) -> [(&'static str, u64); 5] {
        [
            ("switch", self.switch),
            ("partial", self.partial),
            ("full", self.full),
            ("dead", self.dead),
            ("other", self.other),
        ]
    }
}

impl std::ops::AddAssign for MergeKinds {
    fn add_assign(&mut self, more: Self) {
        self.switch += more.switch;
        self.partial += more.partial;
        self.full += more.full;
        self.dead += more.dead;
        self.other += more.other;
    }
}
