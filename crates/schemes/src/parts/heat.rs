//! Hot and cold: the two partitions of page-mapped log blocks (LAST, LAST++).

use floatgate_core::flash::Role;
use floatgate_core::state::{Passed, State, Tape};

/// Where a page of a log block belongs by how soon it is written again.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Heat {
    /// Written seldom, or for the first time.
    #[default]
    Cold = 0,
    /// Written again soon, again and again.
    Hot = 1,
}

impl State for Heat {
    fn pass(&mut self, tape: &mut Tape<'_>) -> Passed {
        tape.one_of(self, &Self::ALL)
    }
}

impl Heat {
    /// Both, as they are numbered.
    pub const ALL: [Self; 2] = [Self::Cold, Self::Hot];

    /// The other one.
    pub fn other(self) -> Self {
        match self {
            Self::Cold => Self::Hot,
            Self::Hot => Self::Cold,
        }
    }

    /// The partition that a role stands for.
    pub fn of_role(role: Role) -> Option<Self> {
        Self::ALL.into_iter().find(|heat| heat.role() == role)
    }

    /// What the OOBs of its pages say.
    #[inline(always)]
    pub fn role(self) -> Role {
        match self {
            Self::Cold => Role::LogCold,
            Self::Hot => Role::LogHot,
        }
    }
}
