//! What the fit chooses from: rules of collection of `page`, with moved pages beside those of the host or apart.

use floatgate_core::options::Value;

/// A rule of collection and of placement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// As it is named on the command line and in tables.
    pub name: &'static str,
    /// `gc_policy`.
    pub policy: &'static str,
    /// `gc_d`, where the rule draws.
    pub draws: Option<u32>,
    /// `streams = split`: moved pages have an append point of their own.
    pub is_apart: bool,
}

const fn with(
    name: &'static str,
    policy: &'static str,
    draws: Option<u32>,
    is_apart: bool,
) -> Candidate {
    Candidate {
        name,
        policy,
        draws,
        is_apart,
    }
}

/// All that is tried. `2r-fifo` exists only with moved pages apart; `2r-greedy` is not here because it is `greedy-apart` to
/// half a percent.
pub const CANDIDATES: [Candidate; 15] = [
    with("greedy", "greedy", None, false),
    with("greedy-apart", "greedy", None, true),
    with("fifo", "fifo", None, false),
    with("fifo-apart", "fifo", None, true),
    with("2-choices", "d-choices", Some(2), false),
    with("2-choices-apart", "d-choices", Some(2), true),
    with("4-choices", "d-choices", Some(4), false),
    with("4-choices-apart", "d-choices", Some(4), true),
    with("10-choices", "d-choices", Some(10), false),
    with("10-choices-apart", "d-choices", Some(10), true),
    with("cost-benefit", "cost-benefit", None, false),
    with("cost-benefit-apart", "cost-benefit", None, true),
    with("windowed-greedy", "windowed-greedy", None, false),
    with("windowed-greedy-apart", "windowed-greedy", None, true),
    with("2r-fifo-apart", "2r-fifo", None, true),
];

impl Candidate {
    /// Its value of the option `streams`.
    pub fn streams(&self) -> &'static str {
        match self.is_apart {
            true => "split",
            false => "shared",
        }
    }

    /// Its options of `page`.
    pub fn options(&self) -> Vec<(String, Value)> {
        let draws = self.draws.map(|d| ("gc_d", Value::Int(d.into())));
        [
            ("gc_policy", Value::Text(self.policy.into())),
            ("streams", Value::Text(self.streams().into())),
        ]
        .into_iter()
        .chain(draws)
        .map(|(key, value)| (key.to_string(), value))
        .collect()
    }
}
