//! The state of a device as bytes, so that it can be aged once and run many times.
//!
//! One function of a type, [`State::pass`], both saves and loads, so that the two cannot differ: it hands every field to a
//! [`Tape`], which either takes it down or gives it another value. [`state!`](crate::state!) writes that function, and does
//! not compile while a field of the type is not named.
//!
//! A state is loaded over a freshly formatted device of the same shape and options. What follows from these (sizes,
//! plans, divisors) is therefore no part of it, a table has its length already, and no number from outside decides how
//! much memory is taken.

use alloc::collections::VecDeque;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use crate::address::{DieLpn, Lbn, Lpn, Pbn, Ppn};
use crate::geometry::Geometry;

/// Why a state is neither saved nor loaded.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum StateError {
    /// The scheme does not say what its state is.
    NotSupported,
    /// The bytes are no state of this device: what is wrong with them.
    Damaged(String),
}

impl StateError {
    /// The bytes are no state of this device.
    pub fn damaged(what: impl Into<String>) -> Self {
        Self::Damaged(what.into())
    }
}

impl core::fmt::Display for StateError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::NotSupported => f.write_str("the scheme does not say what its state is"),
            Self::Damaged(what) => f.write_str(what),
        }
    }
}

impl core::error::Error for StateError {}

/// What passing a state comes to.
pub type Passed = Result<(), StateError>;

enum Way<'a> {
    Save(&'a mut Vec<u8>),
    Load(&'a [u8]),
}

/// Takes a state down, or plays it back.
pub struct Tape<'a> {
    way: Way<'a>,
    geometry: Geometry,
}

/// Numbers go as their 4 or 8 little-endian bytes.
macro_rules! number {
    ($(#[$doc:meta])* $name:ident: $ty:ty) => {
        $(#[$doc])*
        ///
        /// # Errors
        /// If the tape ends before it.
        #[inline]
        pub fn $name(&mut self, value: &mut $ty) -> Passed {
            match &mut self.way {
                Way::Save(out) => out.extend_from_slice(&value.to_le_bytes()),
                Way::Load(rest) => {
                    let (bytes, after) = rest.split_first_chunk().ok_or_else(ended)?;
                    *value = <$ty>::from_le_bytes(*bytes);
                    *rest = after;
                }
            }
            Ok(())
        }
    };
}

#[cold]
fn ended() -> StateError {
    StateError::damaged("it ends too early")
}

impl<'a> Tape<'a> {
    /// A tape that takes down the state of a device of that shape.
    pub fn saving(out: &'a mut Vec<u8>, geometry: &Geometry) -> Self {
        Self {
            way: Way::Save(out),
            geometry: geometry.clone(),
        }
    }

    /// A tape that plays a state back into a device of that shape.
    pub fn loading(bytes: &'a [u8], geometry: &Geometry) -> Self {
        Self {
            way: Way::Load(bytes),
            geometry: geometry.clone(),
        }
    }

    /// The shape of the device.
    pub fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    /// Whether values come from the tape.
    pub fn loads(&self) -> bool {
        matches!(self.way, Way::Load(_))
    }

    number!(
        /// Passes a number of 8 bits.
        u8: u8
    );
    number!(
        /// Passes a number of 16 bits.
        u16: u16
    );
    number!(
        /// Passes a number of 32 bits.
        u32: u32
    );
    number!(
        /// Passes a number of 64 bits.
        u64: u64
    );
    number!(
        /// Passes a number of 128 bits.
        u128: u128
    );

    /// Passes a number that is below a limit, or `u32::MAX` for none.
    ///
    /// # Errors
    /// If it is neither, or the tape ends.
    #[inline]
    pub fn below(&mut self, value: &mut u32, limit: u32, what: &str) -> Passed {
        self.u32(value)?;
        if *value < limit || *value == u32::MAX {
            return Ok(());
        }
        self.refuse_number(*value, what)
    }

    #[cold]
    fn refuse_number(&self, value: u32, what: &str) -> Passed {
        match self.way {
            Way::Save(_) => Ok(()),
            Way::Load(_) => Err(StateError::damaged(format!(
                "it names {what} {value}, which the device does not have"
            ))),
        }
    }

    /// Passes one of these values by its place among them.
    ///
    /// # Errors
    /// If the tape has another number there.
    pub fn one_of<T: Copy + PartialEq>(&mut self, value: &mut T, all: &[T]) -> Passed {
        let place = all.iter().position(|one| one == value);
        let mut place = place.unwrap_or(all.len()) as u8;
        self.u8(&mut place)?;
        *value = *all
            .get(usize::from(place))
            .ok_or_else(|| StateError::damaged("a choice that does not exist"))?;
        Ok(())
    }

    /// Passes how many values follow; each of them takes at least a byte of the tape.
    ///
    /// # Errors
    /// If the tape is too short for so many.
    pub fn count(&mut self, now: usize) -> Result<usize, StateError> {
        let mut count = now as u64;
        self.u64(&mut count)?;
        match self.way {
            Way::Load(rest) if count > rest.len() as u64 => Err(ended()),
            _ => Ok(count as usize),
        }
    }

    /// Passes values of which there may be more or fewer than now, as [`State`] passes a table of fixed length.
    ///
    /// # Errors
    /// As those of the values.
    pub fn grows<T: State + Default>(&mut self, values: &mut Vec<T>) -> Passed {
        let count = self.count(values.len())?;
        values.resize_with(count, T::default);
        values.iter_mut().try_for_each(|value| value.pass(self))
    }

    /// Passes the name of something, so that a load that has lost its way ends there and says where.
    ///
    /// # Errors
    /// If another stands there.
    pub fn mark(&mut self, name: &str) -> Passed {
        for &expected in name.as_bytes() {
            let mut byte = expected;
            self.u8(&mut byte)?;
            if byte != expected {
                return Err(StateError::damaged(format!("no {name} where it should be")));
            }
        }
        Ok(())
    }

    /// After everything has been passed.
    ///
    /// # Errors
    /// If something is left on the tape.
    pub fn end(self) -> Passed {
        match self.way {
            Way::Load(rest) if !rest.is_empty() => Err(StateError::damaged(format!(
                "{} bytes are left over",
                rest.len()
            ))),
            _ => Ok(()),
        }
    }
}

/// What a tape can take down and play back.
pub trait State {
    /// Hands everything that makes up the state to the tape, in an order that never changes.
    ///
    /// # Errors
    /// If what comes from the tape is no state of this device. The value may be changed in part then, and must not be
    /// used.
    fn pass(&mut self, tape: &mut Tape<'_>) -> Passed;
}

macro_rules! numbers {
    ($($ty:ident),*) => {
        $(impl State for $ty {
            #[inline]
            fn pass(&mut self, tape: &mut Tape<'_>) -> Passed {
                tape.$ty(self)
            }
        })*
    };
}
numbers!(u8, u16, u32, u64, u128);

macro_rules! addresses {
    ($($ty:ident below $limit:ident, $what:literal;)*) => {
        $(impl State for $ty {
            #[inline]
            fn pass(&mut self, tape: &mut Tape<'_>) -> Passed {
                let limit = tape.geometry.$limit();
                tape.below(&mut self.0, limit, $what)
            }
        })*
    };
}
addresses! {
    Lpn below device_pages, "logical page";
    DieLpn below device_pages, "logical page";
    Lbn below logical_blocks, "logical block";
    Ppn below pages, "page";
    Pbn below blocks, "block";
}

impl Geometry {
    fn device_pages(&self) -> u32 {
        self.logical_pages
    }
}

impl State for bool {
    fn pass(&mut self, tape: &mut Tape<'_>) -> Passed {
        let mut byte = u8::from(*self);
        tape.u8(&mut byte)?;
        *self = byte != 0;
        match byte {
            0 | 1 => Ok(()),
            _ => Err(StateError::damaged("a truth value is neither")),
        }
    }
}

impl State for usize {
    fn pass(&mut self, tape: &mut Tape<'_>) -> Passed {
        let mut value = *self as u64;
        tape.u64(&mut value)?;
        *self = usize::try_from(value).map_err(|_| StateError::damaged("a number is too large"))?;
        Ok(())
    }
}

impl State for f64 {
    fn pass(&mut self, tape: &mut Tape<'_>) -> Passed {
        let mut bits = self.to_bits();
        tape.u64(&mut bits)?;
        *self = Self::from_bits(bits);
        Ok(())
    }
}

/// What takes no room has no state.
impl State for () {
    fn pass(&mut self, _: &mut Tape<'_>) -> Passed {
        Ok(())
    }
}

impl<A: State, B: State> State for (A, B) {
    fn pass(&mut self, tape: &mut Tape<'_>) -> Passed {
        self.0.pass(tape)?;
        self.1.pass(tape)
    }
}

impl<T: State, const N: usize> State for [T; N] {
    fn pass(&mut self, tape: &mut Tape<'_>) -> Passed {
        self.iter_mut().try_for_each(|value| value.pass(tape))
    }
}

/// A table: its length follows from the shape of the device and the options.
impl<T: State> State for Vec<T> {
    fn pass(&mut self, tape: &mut Tape<'_>) -> Passed {
        let (count, mut length) = (self.len(), self.len());
        length.pass(tape)?;
        if length != count {
            return Err(StateError::damaged(format!(
                "a table has {length} entries; on this device it has {count}"
            )));
        }
        self.iter_mut().try_for_each(|value| value.pass(tape))
    }
}

impl<T: State + Default> State for VecDeque<T> {
    fn pass(&mut self, tape: &mut Tape<'_>) -> Passed {
        let count = tape.count(self.len())?;
        self.resize_with(count, T::default);
        self.iter_mut().try_for_each(|value| value.pass(tape))
    }
}

impl<T: State + Default> State for Option<T> {
    fn pass(&mut self, tape: &mut Tape<'_>) -> Passed {
        let mut is_some = self.is_some();
        is_some.pass(tape)?;
        match is_some {
            true => self.get_or_insert_with(T::default).pass(tape),
            false => {
                *self = None;
                Ok(())
            }
        }
    }
}

/// Says what the state of a struct is: `state!(Ring { map, next } grows { queue } fixed { space })`. Fields in `grows`
/// are vectors of any length; `fixed` are those that a freshly formatted device of the same shape and options has
/// already, and scratch. Every field stands in one of the three, or it does not compile.
///
/// A type with parameters names them: `state!(Hybrid<W> [W: State] { watch, ... })`.
///
/// `check method` in front of `fixed` names a method of the type that looks at what was loaded and returns
/// `Result<(), StateError>`.
#[macro_export]
macro_rules! state {
    ($ty:ty $([$($generics:tt)*])? { $($field:ident),* $(,)? }
        $(grows { $($grows:ident),* $(,)? })?
        $(check $check:ident)?
        $(fixed { $($fixed:ident),* $(,)? })?
    ) => {
        impl $(<$($generics)*>)? $crate::state::State for $ty {
            fn pass(&mut self, tape: &mut $crate::state::Tape<'_>) -> $crate::state::Passed {
                let Self { $($field,)* $($($grows,)*)? $($($fixed: _,)*)? } = self;
                $($crate::state::State::pass($field, tape)?;)*
                $($(tape.grows($grows)?;)*)?
                $(if tape.loads() {
                    self.$check()?;
                })?
                Ok(())
            }
        }
    };
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use super::*;
    use crate::geometry::ProgramOrder;

    #[derive(Debug, Default, PartialEq)]
    struct Sample {
        map: Vec<Ppn>,
        queue: VecDeque<Pbn>,
        open: Option<u32>,
        seen: Vec<u8>,
        share: f64,
        size: usize,
    }

    crate::state!(Sample { map, queue, open, share } grows { seen } fixed { size });

    fn geometry() -> Geometry {
        Geometry::new(1, 4, 4, 8, ProgramOrder::Ascending).unwrap()
    }

    fn blank() -> Sample {
        Sample {
            map: vec![Ppn::NONE; 3],
            size: 7,
            ..Sample::default()
        }
    }

    fn saved(sample: &mut Sample) -> Vec<u8> {
        let mut out = Vec::new();
        sample
            .pass(&mut Tape::saving(&mut out, &geometry()))
            .unwrap();
        out
    }

    fn load(into: &mut Sample, bytes: &[u8]) -> Passed {
        let mut tape = Tape::loading(bytes, &geometry());
        into.pass(&mut tape)?;
        tape.end()
    }

    fn sample() -> Sample {
        Sample {
            map: vec![Ppn(15), Ppn::NONE, Ppn(0)],
            queue: VecDeque::from([Pbn(3), Pbn(1)]),
            open: Some(9),
            seen: vec![1, 2, 3],
            share: 0.1,
            size: 7,
        }
    }

    #[test]
    fn what_was_saved_is_loaded_and_what_is_fixed_stays() {
        let bytes = saved(&mut sample());
        let mut loaded = blank();
        loaded.seen = vec![9; 20];
        load(&mut loaded, &bytes).unwrap();
        assert_eq!(loaded, sample());
        let mut other = sample();
        load(&mut other, &saved(&mut blank())).unwrap();
        assert_eq!(other, blank());
    }

    #[test]
    fn every_cut_is_found_and_every_byte_too_many() {
        let bytes = saved(&mut sample());
        for end in 0..bytes.len() {
            assert!(load(&mut blank(), &bytes[..end]).is_err(), "{end}");
        }
        let longer = [&bytes[..], &[0]].concat();
        assert!(load(&mut blank(), &longer).is_err());
    }

    #[test]
    fn tables_of_another_length_and_addresses_beyond_the_device_are_refused() {
        let mut longer = sample();
        longer.map.push(Ppn::NONE);
        let said = |sample: &mut Sample| {
            let error = load(&mut blank(), &saved(sample)).unwrap_err();
            alloc::string::ToString::to_string(&error)
        };
        assert_eq!(
            said(&mut longer),
            "a table has 4 entries; on this device it has 3"
        );
        let mut beyond = sample();
        beyond.map[0] = Ppn(16);
        assert_eq!(
            said(&mut beyond),
            "it names page 16, which the device does not have"
        );
    }
}
