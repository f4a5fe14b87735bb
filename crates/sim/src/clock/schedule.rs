//! Which of the operations that wait for a die goes next: the settings of [`Scheduled`](super::Scheduled).

use floatgate_core::Refusal;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The order in which a die takes the operations that wait for it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Policy {
    /// In the order in which the scheme issued them (docs/spec/timing.md). One that still waits holds up those behind it.
    #[default]
    Fifo,
    /// The first one that waits for nothing else.
    Ready,
    /// Reads that the host waits for first: of its pages, and of the map.
    ReadFirst,
    /// Those, then programs for the host and the map, then collection: that goes on piece by piece in between.
    HostFirst,
}

impl Policy {
    /// The names used in configurations.
    pub const NAMES: [&str; 4] = ["fifo", "ready", "read-first", "host-first"];
    const ALL: [Self; 4] = [Self::Fifo, Self::Ready, Self::ReadFirst, Self::HostFirst];

    /// The name used in configurations.
    #[must_use]
    pub fn name(self) -> &'static str {
        Self::NAMES[self as usize]
    }

    /// The policy of that name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|policy| policy.name() == name)
    }
}

/// Which cell times a read may interrupt.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Suspend {
    /// None.
    #[default]
    None,
    /// Those of erases.
    Erase,
    /// Those of programs.
    Program,
    /// Those of both.
    Both,
}

impl Suspend {
    /// The names used in configurations.
    pub const NAMES: [&str; 4] = ["none", "erase", "program", "both"];
    const ALL: [Self; 4] = [Self::None, Self::Erase, Self::Program, Self::Both];

    /// The name used in configurations.
    #[must_use]
    pub fn name(self) -> &'static str {
        Self::NAMES[self as usize]
    }

    /// The setting of that name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|suspend| suspend.name() == name)
    }

    pub(super) fn of_erases(self) -> bool {
        matches!(self, Self::Erase | Self::Both)
    }

    pub(super) fn of_programs(self) -> bool {
        matches!(self, Self::Program | Self::Both)
    }
}

/// How the operations of a device are scheduled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Schedule {
    /// Which operation a die takes next.
    pub policy: Policy,
    /// After so many operations of a die that overtook waiting ones of a lower class, one of these goes first; 0: never.
    pub overtakes: u32,
    /// What a read may interrupt.
    pub suspend: Suspend,
    /// From the suspend command until the die can read, ns.
    #[serde(rename = "t_suspend_ns")]
    pub suspend_ns: u64,
    /// What the interrupted operation takes longer each time, ns.
    #[serde(rename = "t_resume_ns")]
    pub resume_ns: u64,
    /// How often one operation can be interrupted.
    pub suspend_limit: u32,
    /// With `host-first`: from so many operations of collection on that wait on a die, some of them go before programs for
    /// the host, more of them the more there are.
    pub gc_low: u32,
    /// With so many all of them do; 0: collection always comes last.
    pub gc_high: u32,
}

/// What came of a schedule.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ScheduleStats {
    /// Operations that ended after one of their die that was issued later.
    pub overtaken: u64,
    /// Reads of pages that waited to be programmed: the controller still had them, so that they took no time.
    pub reads_from_controller: u64,
    /// How often a read interrupted an erase.
    pub suspended_erases: u64,
    /// How often a read interrupted a program.
    pub suspended_programs: u64,
}

impl Default for Schedule {
    fn default() -> Self {
        Self {
            policy: Policy::Fifo,
            overtakes: 64,
            suspend: Suspend::None,
            suspend_ns: 20_000,
            resume_ns: 20_000,
            suspend_limit: 8,
            gc_low: 32,
            gc_high: 512,
        }
    }
}

impl Schedule {
    /// Whether it is the order of issue, which every clock keeps.
    #[must_use]
    pub fn is_plain(&self) -> bool {
        self.policy == Policy::Fifo
    }

    /// Checks what belongs together.
    ///
    /// # Errors
    /// The refusal of the setting at fault.
    pub fn check(&self) -> Result<(), Refusal> {
        let reads_first = matches!(self.policy, Policy::ReadFirst | Policy::HostFirst);
        if self.suspend != Suspend::None && !reads_first {
            let text = format!(
                "schedule.suspend = \"{}\": a read interrupts nothing unless reads go first; set schedule.policy to \
                 \"read-first\" or \"host-first\"",
                self.suspend.name()
            );
            return Err(Refusal::new("suspend", text));
        }
        if self.gc_high > 0 && self.gc_low > self.gc_high {
            let text = format!(
                "schedule.gc_low = {}: not more than schedule.gc_high ({})",
                self.gc_low, self.gc_high
            );
            return Err(Refusal::new("gc_low", text));
        }
        Ok(())
    }
}
