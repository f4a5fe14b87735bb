//! The flash below a scheme: one small interface to NAND.
//!
//! The same scheme runs on a simulated flash, which only keeps time, and on a flash that stores bytes. Time flows through
//! the calls as a value: every operation returns a *token* that stands for its end, and takes one that it waits
//! for. `Token::default()` waits for nothing. A die executes its operations in the order of the calls, so a scheme names a
//! dependency only where it crosses dies or devices: data that waits for its translation, for example.
//!
//! The flash itself keeps three dependencies, because they are always the same: the program of a
//! copied page waits for its read, an erase waits for all copies out of its block, and the program of a partly
//! written page waits for the read of its old content.
//!
//! A device that works on several dies at once keeps three more, or a power cut can lose what was acknowledged. They
//! are no part of the timing model, so a simulation does nothing for them: an erase and a copy out of a block wait for
//! the programs on other dies that have [replaced](Flash::replaced) pages of it; an erase waits for the dies for which it
//! [keeps](Flash::keeps) a page; and the host hears that a write is done when what [finishes](Flash::finishes) it is done.
//! What all these and the order of a die leave open, a cut can find in any state, and the recovery must take it.
//!
//! The host's data does not pass through these calls: it lies in the controller's buffer, and a [`Slot`] says where.

use alloc::vec::Vec;

use crate::address::{Lpn, Pbn, Ppn};
use crate::ledger::Ledger;
pub use crate::oob::{
    Oob, OobRead, OobWithBytes, Role, SCHEME_OOB_BYTES, SEQUENCE_MAX, SpareArea, SpareRead,
};
use crate::pcm::Pcm;
pub use crate::report::Cause;

/// Number of a page inside the current host request, from 0. The host's data of that page lies in the
/// controller's buffer under this number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Slot(pub u32);

/// What a logical page holds in the start state `full`, on a flash that stores bytes: bytes made from its number.
pub fn start_content(lpn: Lpn, page_bytes: usize) -> Vec<u8> {
    (0..page_bytes)
        .map(|i| (lpn.0.wrapping_mul(0x9E37_79B1) >> (i % 4 * 8)) as u8 ^ 0xA5)
        .collect()
}

/// What most calls of a scheme come to: nothing, or the error of the flash.
pub type Done<F> = Result<(), <F as Flash>::Error>;

/// NAND flash, simulated or real: eleven calls that every flash has, seven with defaults. See the module's text.
///
/// Every implementation enforces the program rules (each page once per erase, in ascending order where the cells
/// require it); a scheme that breaks them has a bug, and in tests and simulations the flash panics rather than go on
/// with wrong counters.
///
/// Every call that can fail returns the flash's own error; a scheme passes it on and is not used afterwards.
#[expect(
    clippy::missing_errors_doc,
    reason = "all calls fail alike, as the trait's text says"
)]
pub trait Flash {
    /// The end of an operation: a time, a pending operation, or nothing. Valid only within the host request
    /// or the background work in which it was made, so a scheme never stores one. The flash itself keeps those that the
    /// host's request has to wait for: reads and programs of host pages, and [`Flash::absent`].
    type Token: Copy + Default;
    /// What can go wrong: nothing in a simulation, a power cut or a worn-out chip in a device.
    type Error: core::fmt::Debug;
    /// The phase-change memory beside it.
    type Pcm: Pcm<Token = Self::Token>;

    /// Shape, write pointers, erase counts, counters.
    fn ledger(&self) -> &Ledger;

    /// Reads a page into the host's buffer.
    fn read_host(
        &mut self,
        slot: Slot,
        from: Ppn,
        after: Self::Token,
    ) -> Result<Self::Token, Self::Error>;

    /// Programs a page from the host's buffer.
    fn program_host(
        &mut self,
        slot: Slot,
        to: Ppn,
        oob: impl SpareArea,
        after: Self::Token,
    ) -> Result<Self::Token, Self::Error>;

    /// A page of the host's request that needs no flash operation once `after` is done (its translation, say): a read of
    /// an unwritten page, which returns zeroes, or a trim. Optional for a trim that touches no flash.
    fn absent(&mut self, slot: Slot, after: Self::Token);

    /// Reads a page of mapping information; `take` gets its bytes if the flash stores any. A recovery may
    /// unknowingly read an erased or unreadable page, and a readable one can rot: then `take` is not called.
    fn read_map(
        &mut self,
        from: Ppn,
        take: impl FnOnce(&[u8]),
        after: Self::Token,
    ) -> Result<Self::Token, Self::Error>;

    /// Programs a page of mapping information; `fill` writes its bytes (zeroed before) if the flash
    /// stores any.
    fn program_map(
        &mut self,
        to: Ppn,
        oob: impl SpareArea,
        fill: impl FnOnce(&mut [u8]),
        after: Self::Token,
    ) -> Result<Self::Token, Self::Error>;

    /// Copies a page (one read and one program of that cause).
    fn copy(
        &mut self,
        from: Ppn,
        to: Ppn,
        oob: impl SpareArea,
        cause: Cause,
        after: Self::Token,
    ) -> Result<Self::Token, Self::Error>;

    /// Copies pages of one die, in order, to consecutive pages of one block of that die, the first of
    /// them `to`. `oob_of` gives the OOB of the `i`-th. Equivalent to one [`Flash::copy`] per page; a flash may do it
    /// faster.
    fn copy_run(
        &mut self,
        from: &[Ppn],
        to: Ppn,
        oob_of: impl Fn(usize) -> Oob,
        cause: Cause,
        after: Self::Token,
    ) -> Result<Self::Token, Self::Error> {
        let mut done = after;
        for (i, &page) in from.iter().enumerate() {
            let after = if i == 0 {
                after
            } else {
                Self::Token::default()
            };
            done = self.copy(page, Ppn(to.0 + i as u32), oob_of(i), cause, after)?;
        }
        Ok(done)
    }

    /// Reads the OOB of a page alone: `None` where the page is erased or unreadable, and on a flash that stores no
    /// bytes, where schemes call it for the count and the time.
    fn read_oob(
        &mut self,
        from: Ppn,
        cause: Cause,
        after: Self::Token,
    ) -> Result<(Option<SpareRead>, Self::Token), Self::Error>;

    /// Erases a block that held user data ([`Cause::Gc`]) or mapping pages ([`Cause::Map`]).
    fn erase(
        &mut self,
        block: Pbn,
        cause: Cause,
        after: Self::Token,
    ) -> Result<Self::Token, Self::Error>;

    /// The program that is over with `done` has replaced the page at `old`, on another die. Until then that is the one
    /// copy of the page: a flash whose dies work at once neither erases its block before nor copies others out of it, as
    /// the last of these says that the block is empty.
    fn replaced(&mut self, old: Ppn, done: Self::Token) {
        let _ = (old, done);
    }

    /// The page at `old` is needed until `die` has done everything that it has been called for so far: a flash whose dies
    /// work at once begins no erase of its block before. Named where a copy counts only once others have followed it.
    fn keeps(&mut self, old: Ppn, die: u32) {
        let _ = (old, die);
    }

    /// What is called from now on begins only when everything that was called so far is done, on every die: it relies on
    /// that wherever the power goes. For recoveries, and for what a shutdown writes about the whole flash.
    fn drain(&mut self) {}

    /// The pages of the host's request are not safe before `done`: a flash whose dies work at once lets the host wait for
    /// it. Named by schemes that go on in a block after the host's page, and cannot do without the rest.
    fn finishes(&mut self, done: Self::Token) {
        let _ = done;
    }

    /// A token that is done when both are.
    fn join(&mut self, a: Self::Token, b: Self::Token) -> Self::Token;

    /// The phase-change memory.
    fn pcm(&mut self) -> &mut Self::Pcm;

    /// Erases of the block that now has that number; a layer that moves blocks overrides the ledger's count.
    fn erase_count(&self, block: Pbn) -> u32 {
        self.ledger().erase_count(block)
    }

    /// When a die is expected to have done all that it has been called for, in nanoseconds of the time of a
    /// [`Tick`](crate::ftl::Tick); 0 where nobody keeps time, or nobody [asked](crate::described::Described::weighs_dies).
    fn free_at_ns(&self, die: u32) -> u64 {
        let _ = die;
        0
    }

    /// Starts background or timed work at that time; it lasts until the next host request.
    fn background(&mut self, at_ns: u64) {
        let _ = at_ns;
    }
}

/// A flash on which the start state of a device can be set up: it is not counted and takes no time.
#[expect(
    clippy::missing_errors_doc,
    reason = "the flash's own error, as in `Flash`"
)]
pub trait Preload: Flash {
    /// Fills the first `pages` pages of an erased block with the logical pages that their OOBs name, each with its
    /// [`start_content`].
    fn preload<O: SpareArea>(
        &mut self,
        block: Pbn,
        pages: u32,
        oob_of: impl FnMut(u32) -> O,
    ) -> Result<(), Self::Error>;

    /// The same for mapping pages; `fill` writes the bytes of each if the flash stores any.
    fn preload_map<O: SpareArea>(
        &mut self,
        block: Pbn,
        pages: u32,
        oob_of: impl FnMut(u32) -> O,
        fill: impl FnMut(u32, &mut [u8]),
    ) -> Result<(), Self::Error>;

    /// The same for an entry of the phase-change memory, if that keeps any: the page was filled there.
    fn preload_entry(&mut self, lpn: Lpn, place: Ppn) {
        let _ = (lpn, place);
    }
}
