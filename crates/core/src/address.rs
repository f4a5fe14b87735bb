//! Addresses: logical and physical page and block numbers.
//!
//! All are 32 bits wide: a 16 TB device of 4 KB pages still fits, and tables take half the memory
//! and cache that 64 bits would.

macro_rules! address {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
        #[repr(transparent)]
        pub struct $name(pub u32);

        impl $name {
            /// "Nowhere": the value of an empty table entry.
            pub const NONE: Self = Self(u32::MAX);

            /// Whether this is an address.
            #[inline(always)]
            pub fn is_some(self) -> bool {
                self.0 != u32::MAX
            }

            /// Whether this is [`Self::NONE`].
            #[inline(always)]
            pub fn is_none(self) -> bool {
                self.0 == u32::MAX
            }

            /// As an index into a table.
            #[inline(always)]
            pub fn index(self) -> usize {
                self.0 as usize
            }
        }
    };
}

address! {
    /// Logical page number: what the host addresses, and what an OOB names.
    Lpn
}
address! {
    /// A logical page in the numbering of a [`Space`](crate::geometry::Space), die by die: with one die the local page
    /// `LPN div C` of the instance that works there, with several the pages of the first die, then those of the next.
    DieLpn
}
address! {
    /// Logical block number: `pages_per_block` consecutive pages of a space's numbering.
    Lbn
}
address! {
    /// Physical page number of the whole device: `pbn * pages_per_block + page`.
    Ppn
}
address! {
    /// Physical block number of the whole device: `die * blocks_per_die + index`.
    Pbn
}

/// A logical page as a scheme numbers it: [`Lpn`] for a scheme that places the pages of all dies, [`DieLpn`] for one
/// made for a single die.
pub trait LogicalPage: Copy + core::fmt::Debug + Send + 'static {
    /// The page with that number.
    fn from_number(number: u32) -> Self;
    /// Its number.
    fn number(self) -> u32;
}

impl LogicalPage for Lpn {
    #[inline(always)]
    fn from_number(number: u32) -> Self {
        Self(number)
    }

    #[inline(always)]
    fn number(self) -> u32 {
        self.0
    }
}

impl LogicalPage for DieLpn {
    #[inline(always)]
    fn from_number(number: u32) -> Self {
        Self(number)
    }

    #[inline(always)]
    fn number(self) -> u32 {
        self.0
    }
}

/// Division by a number known only at run time, without a divide instruction.
///
/// Exact for every 32-bit dividend and divisor (Lemire, Kaser, Kurz 2019: the quotient is the high
/// half of `n * ceil(2^64 / d)`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Divisor {
    value: u32,
    magic: u64,
}

impl Divisor {
    /// A divisor of at least 1.
    ///
    /// # Panics
    /// If `value` is 0: geometries are checked before they get here.
    pub fn new(value: u32) -> Self {
        assert!(value > 0, "a divisor is at least 1");
        // 1 would need 2^64; a magic of 0 tells `div` to handle it separately.
        let magic = if value == 1 {
            0
        } else {
            u64::MAX / u64::from(value) + 1
        };
        Self { value, magic }
    }

    /// The divisor itself.
    #[inline(always)]
    pub fn get(self) -> u32 {
        self.value
    }

    /// `n / self`.
    #[inline(always)]
    #[expect(
        clippy::should_implement_trait,
        reason = "operators take the dividend first"
    )]
    pub fn div(self, n: u32) -> u32 {
        if self.magic == 0 {
            return n;
        }
        ((u128::from(self.magic) * u128::from(n)) >> 64) as u32
    }

    /// `n % self`.
    #[inline(always)]
    #[expect(
        clippy::should_implement_trait,
        reason = "operators take the dividend first"
    )]
    pub fn rem(self, n: u32) -> u32 {
        n - self.div(n) * self.value
    }

    /// `(n / self, n % self)`.
    #[inline(always)]
    pub fn div_rem(self, n: u32) -> (u32, u32) {
        let q = self.div(n);
        (q, n - q * self.value)
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use super::*;

    #[test]
    fn divisor_agrees_with_the_instruction() {
        let mut rng = crate::rng::SplitMix64::new(3);
        let mut divisors = vec![
            1,
            2,
            3,
            5,
            7,
            64,
            100,
            128,
            384,
            1152,
            1536,
            65_535,
            u32::MAX,
        ];
        divisors.extend((0..200).map(|_| (rng.next() as u32).max(1)));
        for d in divisors {
            let fast = Divisor::new(d);
            let edge = [0, 1, d - 1, d, d.saturating_add(1), u32::MAX, u32::MAX - 1];
            for n in edge.into_iter().chain((0..200).map(|_| rng.next() as u32)) {
                assert_eq!(fast.div_rem(n), (n / d, n % d), "{n} / {d}");
            }
        }
    }
}
