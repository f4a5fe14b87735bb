//! What a token of the event engine names, in 64 bits.

/// The end of an operation or of several: a known time, the name of an
/// operation, or a range of the list of joined ends.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub struct EventToken(u64);

/// What an [`EventToken`] says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum View {
    /// Bit 63 clear: the time, ns.
    Known(u64),
    /// Bits 63-62 `10`: device (20 bits), place in its queue (42 bits).
    Op { device: u32, place: u64 },
    /// Bits 63-62 `11`: first leaf (40 bits), number of leaves (22 bits).
    Group { first: u64, len: u64 },
}

const PENDING: u64 = 1 << 63;
const GROUP: u64 = 1 << 62;
pub(super) const PLACE_BITS: u32 = 42;
const LEN_BITS: u32 = 22;

impl EventToken {
    pub(super) const NOTHING: Self = Self(0);

    pub(super) const fn known(ns: u64) -> Self {
        Self(ns)
    }

    pub(super) const fn op(device: u32, place: u64) -> Self {
        Self(PENDING | ((device as u64) << PLACE_BITS) | place)
    }

    pub(super) const fn group(first: u64, len: u64) -> Self {
        Self(PENDING | GROUP | (first << LEN_BITS) | len)
    }

    /// The token as a number: operations sort by device, then place.
    pub(super) const fn bits(self) -> u64 {
        self.0
    }

    /// The later of two operations of one device: its order says which.
    pub(super) fn later_of_one_device(self, other: Self) -> Self {
        Self(self.0.max(other.0))
    }

    pub(super) const fn is_group(self) -> bool {
        self.0 & (PENDING | GROUP) == PENDING | GROUP
    }

    #[inline]
    pub(super) const fn view(self) -> View {
        let low = self.0 & !(PENDING | GROUP);
        if self.0 & PENDING == 0 {
            View::Known(self.0)
        } else if self.0 & GROUP == 0 {
            View::Op {
                device: (low >> PLACE_BITS) as u32,
                place: low & ((1 << PLACE_BITS) - 1),
            }
        } else {
            View::Group {
                first: low >> LEN_BITS,
                len: low & ((1 << LEN_BITS) - 1),
            }
        }
    }
}

impl std::fmt::Debug for EventToken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.view().fmt(f)
    }
}
