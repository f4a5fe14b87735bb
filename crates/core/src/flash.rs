//! What a scheme stands on: one small interface to NAND flash.
//!
//! The same scheme runs on a simulated flash, where a page is nothing but a time, and on a flash that
//! bears data. Time flows through the calls as a value: every operation returns a *token* that says
//! "when it is done", and takes one that it waits for. `Token::default()` waits for nothing. The order of
//! the operations of one die is the order of the calls, so a scheme names a dependency only where it
//! crosses dies or devices: data that waits for its translation, for example.
//!
//! Three dependencies are the flash's own business, because they are always the same: the program of a
//! copied page waits for its read, an erase waits for all copies out of its block, and the program of a partly
//! written page waits for the read of its old content.

use crate::address::{Lpn, Pbn, Ppn};
use crate::geometry::Geometry;

/// On whose account an operation is counted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Cause {
    /// Data of the host.
    Host = 0,
    /// Moves of pages that are still valid: merges, garbage collection, second chances, folds.
    Gc = 1,
    /// Pages that hold mapping information.
    Map = 2,
}

/// What a page is for, as its OOB tells after a power cut.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[repr(u8)]
pub enum Role {
    /// A page of a data block.
    #[default]
    Data = 0,
    /// A page of a log block.
    Log = 1,
    /// A page of a sequential log block (LAST, LAST++).
    LogSequential = 2,
    /// A page of a hot random log block (LAST, LAST++).
    LogHot = 3,
    /// A page of a cold random log block (LAST, LAST++).
    LogCold = 4,
    /// A page that holds mapping information.
    Map = 5,
    /// The summary of a log block.
    Summary = 6,
    /// A log block of second-chance copies (FASTer).
    LogChance = 7,
    /// The isolation block (FASTer).
    LogIsolation = 8,
}

impl Role {
    /// All roles, by their numbers.
    pub const ALL: [Self; 9] = [
        Self::Data,
        Self::Log,
        Self::LogSequential,
        Self::LogHot,
        Self::LogCold,
        Self::Map,
        Self::Summary,
        Self::LogChance,
        Self::LogIsolation,
    ];
}

/// The spare area of a page as a scheme writes it. The flash adds the sequence number.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Oob {
    /// The logical page of the whole device, or the number of the map page.
    pub lpn: Lpn,
    /// What the page is for.
    pub role: Role,
    /// A few bits of the scheme's own (a flag, a kind of block).
    pub tag: u32,
}

impl Oob {
    /// An OOB without a tag.
    #[inline(always)]
    pub fn new(lpn: Lpn, role: Role) -> Self {
        Self { lpn, role, tag: 0 }
    }
}

/// An OOB as read back: with the device-wide sequence number of its program.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OobRead {
    /// What the scheme wrote.
    pub oob: Oob,
    /// Grows with every program on the device.
    pub sequence: u64,
}

/// What a logical page holds in the start state `full`, on a flash that stores bytes: bytes made from its number.
pub fn start_content(lpn: Lpn, page_bytes: usize) -> Vec<u8> {
    (0..page_bytes)
        .map(|i| (lpn.0.wrapping_mul(0x9E37_79B1) >> (i % 4 * 8)) as u8 ^ 0xA5)
        .collect()
}

/// Number of a page inside the host request in work, from 0. The host's data of that page lies in the
/// controller's buffer under this number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Slot(pub u32);

/// Bytes of every OOB that belong to the scheme on a flash that bears data. The logical page, the sequence
/// number, role and tag lie beside them.
pub const SCHEME_OOB_BYTES: usize = 64;

/// Higher sequence numbers are not believed by a recovery: what is programmed next needs a higher one.
pub const SEQUENCE_MAX: u64 = (1 << 63) - 1;

/// NAND flash, simulated or real. See the module's text.
///
/// Program rules (a page once an erase, ascending order where the cells want it) are enforced by every
/// implementation; a scheme that would break them has a bug, and the flash panics in tests and
/// simulations rather than go on with wrong counters.
pub trait Flash {
    /// "When it is done": a time, a pending operation, or nothing. Valid only within the host request
    /// or the background merge in which it was made, so a scheme never stores one.
    type Token: Copy + Default;
    /// What can go wrong: nothing in a simulation, a power cut or a worn-out chip in a device.
    type Error: std::fmt::Debug;
    /// Whether pages hold bytes: if not, nobody calls the closures that fill or read them.
    const BEARS_DATA: bool;

    /// The shape of the device.
    fn geometry(&self) -> &Geometry;

    /// Positions of a block up to its highest programmed one: `highest + 1`, 0 for an erased block.
    fn written(&self, pbn: Pbn) -> u32;

    /// Whether a page has been programmed since its block's last erase.
    fn is_programmed(&self, ppn: Ppn) -> bool;

    /// Pages of a block programmed since its last erase (gaps not counted).
    fn programmed(&self, pbn: Pbn) -> u32;

    /// Bytes of a page without its spare area.
    fn page_bytes(&self) -> u32 {
        4096
    }

    /// The sequence number that the next program will get; 0 where the flash bears no data.
    fn next_sequence(&self) -> u64 {
        0
    }

    /// How often a block has been erased.
    fn erase_count(&self, pbn: Pbn) -> u32;

    /// Reads a page for the host into its buffer.
    ///
    /// # Errors
    /// As the flash has them.
    fn host_read(
        &mut self,
        slot: Slot,
        from: Ppn,
        after: Self::Token,
    ) -> Result<Self::Token, Self::Error>;

    /// A host page without flash content: it reads as zeroes once `after` (its translation) is done.
    fn host_unwritten(&mut self, slot: Slot, after: Self::Token);

    /// Programs a page with the host's data.
    ///
    /// # Errors
    /// As the flash has them.
    fn host_program(
        &mut self,
        slot: Slot,
        to: Ppn,
        oob: Oob,
        after: Self::Token,
    ) -> Result<Self::Token, Self::Error>;

    /// A trimmed host page whose translation is `after`; only schemes whose trim touches flash or PCM
    /// call this.
    fn host_trimmed(&mut self, slot: Slot, after: Self::Token);

    /// Copies a page (one read and one program of that cause).
    ///
    /// # Errors
    /// As the flash has them.
    fn copy(
        &mut self,
        from: Ppn,
        to: Ppn,
        oob: Oob,
        cause: Cause,
        after: Self::Token,
    ) -> Result<Self::Token, Self::Error>;

    /// Copies pages of one die, in order, to consecutive pages of one block of that die, the first of
    /// them `to`. `oob_of` gives the OOB of the `i`-th. The same as as many [`Flash::copy`], for flashes that know
    /// a shorter way.
    ///
    /// # Errors
    /// As the flash has them.
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

    /// Reads a page of mapping information; `take` gets its bytes if the flash bears data. A page that is erased or
    /// unreadable may be read by a recovery that cannot know it, and one that was readable can rot; nobody calls `take`
    /// then.
    ///
    /// # Errors
    /// As the flash has them.
    fn read_map(
        &mut self,
        from: Ppn,
        take: impl FnOnce(&[u8]),
        after: Self::Token,
    ) -> Result<Self::Token, Self::Error>;

    /// Programs a page of mapping information; `fill` writes its bytes (zeroed before) if the flash
    /// bears data.
    ///
    /// # Errors
    /// As the flash has them.
    fn program_map(
        &mut self,
        to: Ppn,
        oob: Oob,
        fill: impl FnOnce(&mut [u8]),
        after: Self::Token,
    ) -> Result<Self::Token, Self::Error>;

    /// Reads the OOB of a page alone: `None` where the page is erased (or unreadable). A flash that bears no
    /// data knows no OOBs and answers `None`: schemes call it there for the count and the time.
    ///
    /// # Errors
    /// As the flash has them.
    #[allow(clippy::type_complexity)]
    fn read_oob(
        &mut self,
        from: Ppn,
        cause: Cause,
        after: Self::Token,
    ) -> Result<(Option<OobRead>, Self::Token), Self::Error>;

    /// Erases a block that held user data ([`Cause::Gc`]) or mapping pages ([`Cause::Map`]).
    ///
    /// # Errors
    /// As the flash has them.
    fn erase(
        &mut self,
        block: Pbn,
        cause: Cause,
        after: Self::Token,
    ) -> Result<Self::Token, Self::Error>;

    /// Done when both are.
    fn join(&mut self, a: Self::Token, b: Self::Token) -> Self::Token;

    /// Reads one map entry from phase-change memory.
    fn pcm_read(&mut self, after: Self::Token) -> Self::Token;

    /// Writes one map entry to phase-change memory.
    fn pcm_write(&mut self, after: Self::Token) -> Self::Token;

    /// What follows is background or timed work that the scheme chose to start at that time; the next host
    /// request ends it.
    fn background(&mut self, at_ns: u64);

    /// Scheme-owned bytes of the OOB of the *next* program; called with zeroed bytes, and only where the
    /// flash bears data.
    fn next_oob_bytes(&mut self, fill: impl FnOnce(&mut [u8])) {
        let _ = fill;
    }

    /// The scheme-owned bytes of the OOB that was read last (empty where the flash bears no data).
    fn last_oob_bytes(&self) -> &[u8] {
        &[]
    }

    /// Makes the start state: the first `pages` pages of an erased block hold the logical pages that
    /// `lpn_of` names, without a count and without time.
    fn preload(&mut self, block: Pbn, pages: u32, role: Role, lpn_of: &mut dyn FnMut(u32) -> Lpn);

    /// The same for mapping pages: `number_of` names each, `fill` writes its bytes if the flash bears data.
    fn preload_map(
        &mut self,
        block: Pbn,
        pages: u32,
        number_of: &mut dyn FnMut(u32) -> Lpn,
        fill: &mut dyn FnMut(u32, &mut [u8]),
    ) {
        let _ = fill;
        self.preload(block, pages, Role::Map, number_of);
    }

    /// Scheme-owned bytes of the OOB of a page of the start state, after its [`Flash::preload`]; `fill` gets
    /// zeroed bytes, and is called only where the flash bears data.
    fn preload_oob_bytes(&mut self, at: Ppn, fill: impl FnOnce(&mut [u8])) {
        let _ = (at, fill);
    }
}
