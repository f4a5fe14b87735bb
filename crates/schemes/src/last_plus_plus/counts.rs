//! Counters of LAST++.

use floatgate_core::state;
/// The scheme's own counters.
#[derive(Clone, Debug, Default)]
pub struct Counts {
    pub seq_pages: u64,
    /// Host pages programmed in random log blocks by partition.
    pub random_pages: [u64; 2],
    pub merge_invocations: u64,
    pub background_merges: u64,
    pub hash_lookups: u64,
    pub hash_references: u64,
    /// Foreground merges' victims that were dead blocks of the hot partition and known to be.
    pub known_dead_victims: u64,
    pub summary_programs: u64,
    pub snapshot_programs: u64,
    pub snapshots_left_out: u64,
    /// Host pages programmed by die.
    pub die_pages: Vec<u64>,
}

state!(Counts {
    seq_pages,
    random_pages,
    merge_invocations,
    background_merges,
    hash_lookups,
    hash_references,
    known_dead_victims,
    summary_programs,
    snapshot_programs,
    snapshots_left_out,
    die_pages,
});

impl Counts {
    pub fn new(dies: u32) -> Self {
        Self {
            die_pages: vec![0; dies as usize],
            ..Self::default()
        }
    }

    #[inline(always)]
    pub fn look_up(&mut self, references: u32) {
        self.hash_lookups += 1;
        self.hash_references += u64::from(references);
    }

    /// Largest and smallest share of a die in the host's programs.
    pub fn die_shares(&self) -> (f64, f64) {
        let sum: u64 = self.die_pages.iter().sum();
        let share = |pages: Option<&u64>| ratio(pages.copied().unwrap_or(0), sum);
        (
            share(self.die_pages.iter().max()),
            share(self.die_pages.iter().min()),
        )
    }
}

/// "No value" where the divisor is 0.
pub fn ratio(a: u64, b: u64) -> f64 {
    if b == 0 {
        f64::NAN
    } else {
        a as f64 / b as f64
    }
}
