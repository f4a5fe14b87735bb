//! An operation, or a copy of a run of copies, as the event engine plays it: a row of bus holds with pauses.

use super::machine::{add_ns, mul_ns};
use super::{OpKind, Phases};

/// A hold of the bus and the cell time between its end and the next ask, or the end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Step {
    pub(super) bus_ns: u64,
    pub(super) cell_ns: u64,
}

/// Most bus holds of a shape: a copy has the two of its read and the one of its program.
const STEPS_MAX: usize = 3;

/// What the bus sees of an operation. Phases of length 0 are left out, so it may see nothing.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Shape {
    /// From the release to the first ask, or to the end.
    pub(super) before_ns: u64,
    pub(super) steps: [Step; STEPS_MAX],
    pub(super) len: u8,
    /// Whether it starts with a grant, not with its release.
    pub(super) starts_on_bus: bool,
    /// Duration if it never waits.
    pub(super) total_ns: u64,
    /// Bus time.
    pub(super) bus_ns: u64,
    /// From the first ask to the last one, if it never waits.
    pub(super) last_ask_ns: u64,
    /// From each ask to the end, if it never waits.
    pub(super) rest_ns: [u64; STEPS_MAX],
}

impl Shape {
    /// The shape of operations of one die that follow each other.
    fn of(row: &[Phases]) -> Self {
        let mut shape = Self {
            starts_on_bus: row.first().is_some_and(|first| first.bus_1_ns > 0),
            ..Self::default()
        };
        for phases in row {
            for (bus_ns, cell_ns) in [
                (phases.bus_1_ns, phases.cell_1_ns),
                (phases.bus_2_ns, phases.cell_2_ns),
            ] {
                shape.push(bus_ns, cell_ns);
            }
        }
        let mut rest_ns = 0;
        for (step, rest) in shape.steps.iter().zip(&mut shape.rest_ns).rev() {
            rest_ns = add_ns(rest_ns, add_ns(step.bus_ns, step.cell_ns));
            *rest = rest_ns;
        }
        let asks = shape.len.saturating_sub(1) as usize;
        shape.last_ask_ns = shape.steps[..asks].iter().fold(0, |sum, step| {
            add_ns(sum, add_ns(step.bus_ns, step.cell_ns))
        });
        shape
    }

    fn push(&mut self, bus_ns: u64, cell_ns: u64) {
        if bus_ns > 0 {
            self.steps[self.len as usize].bus_ns = bus_ns;
            self.len += 1;
        }
        let pause_ns = match self.len {
            0 => &mut self.before_ns,
            len => &mut self.steps[len as usize - 1].cell_ns,
        };
        *pause_ns = add_ns(*pause_ns, cell_ns);
        self.bus_ns = add_ns(self.bus_ns, bus_ns);
        self.total_ns = add_ns(self.total_ns, add_ns(bus_ns, cell_ns));
    }

    /// Duration of so many in a row, if they never wait.
    #[inline]
    pub(super) fn times_ns(&self, copies: u32) -> u64 {
        mul_ns(self.total_ns, copies.into())
    }
}

impl From<Phases> for Shape {
    fn from(phases: Phases) -> Self {
        Self::of(&[phases])
    }
}

/// Place of the shape of a page copy with copy-back, or without, behind those of the ordinary operations.
#[inline]
pub(super) fn copy_shape(copyback: bool) -> u32 {
    OpKind::ALL.len() as u32 + u32::from(copyback)
}

/// The shapes of the ordinary operations, by kind, and those of page copies.
pub(super) fn ordinary_shapes(phases: [Phases; 7]) -> Vec<Shape> {
    let kind = |kind: OpKind| phases[kind as usize];
    let copy = Shape::of(&[kind(OpKind::Read), kind(OpKind::Program)]);
    let copyback = Shape::of(&[kind(OpKind::CopyBack)]);
    let single = phases.into_iter().map(Shape::from);
    single.chain([copy, copyback]).collect()
}
