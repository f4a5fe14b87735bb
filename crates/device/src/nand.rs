//! What a chip does: programs pages with their spare area, reads them back or reports that it cannot, erases
//! blocks, and remembers which of them are bad.
//!
//! [`Flash`](floatgate_core::Flash) is what a *scheme* stands on; it names logical pages and causes. A
//! [`Nand`] knows neither. The device is a stack of these, each in front of the next:
//!
//! ```text
//! NandFlash   Flash for the scheme: buffers, sequence numbers, counters, program rules
//! Spares      bad blocks, spare blocks, wear levelling, paired pages
//! Powered     the power, cut when asked; times
//! Faulty      (tests) failures, wear-out, power cuts
//! ImageNand   pages in a file          RamNand   pages in memory
//! ```
//!
//! Sequence numbers are assigned above all layers, so a layer that moves a page keeps its number, and what a
//! scheme reads after a power cut does not depend on how often blocks were moved below it.

use floatgate_core::flash::Oob;
use floatgate_core::{Geometry, Lpn, Pbn, Ppn};

use crate::entry::PcmEntry;

/// Bytes of a spare area that belong to the scheme.
pub const SCHEME_BYTES: usize = 64;

/// Why a page lies in its block; written by [`Spares`](crate::Spares) and read back at the mount.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[repr(u8)]
pub enum PlaceKind {
    /// No layer manages the blocks.
    #[default]
    Plain = 0,
    /// Programmed where it is.
    Mapped = 1,
    /// Moved here with its whole block.
    Moved = 2,
    /// A copy of a lower page at risk.
    Backup = 3,
}

/// The bytes of the spare area that belong to the layers between scheme and chip.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Place {
    /// Why the page is here.
    pub kind: PlaceKind,
    /// Block as the scheme numbers it.
    pub block: u32,
    /// Position in that block; for a backup that of the page it copies.
    pub page: u16,
    /// Of a moved page: how many pages were moved together. A block with fewer was cut short.
    pub moved: u16,
    /// Grows with every block put into use: of two blocks, the newer has the higher one.
    pub generation: u64,
    /// Of a backup: the physical block of what it copies, ...
    pub origin: u32,
    /// ... and the erases of that block at the time. Of any other page: the erases of
    /// the block that it lies in, as the scheme sees them.
    pub origin_erases: u32,
}

/// The spare area of a page.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Spare {
    /// What the scheme wrote.
    pub oob: Oob,
    /// Device-wide number of the program.
    pub sequence: u64,
    /// The number of the program with which the host wrote this content: copies keep it. 0 where there is none.
    pub stamp: u64,
    /// The scheme's own bytes.
    pub bytes: [u8; SCHEME_BYTES],
    /// The content was lost before the page was moved here: the page names what is missing, its bytes mean nothing.
    pub lost: bool,
    /// What the layers in between need.
    pub place: Place,
}

impl Spare {
    /// A spare area without scheme bytes.
    pub fn new(oob: Oob, sequence: u64) -> Self {
        Self {
            oob,
            sequence,
            stamp: 0,
            bytes: [0; SCHEME_BYTES],
            lost: false,
            place: Place::default(),
        }
    }

    /// Stands for a page whose spare area could not be read either.
    pub fn unknown() -> Self {
        let oob = Oob {
            lpn: Lpn::NONE,
            ..Oob::default()
        };
        Self {
            lost: true,
            ..Self::new(oob, 0)
        }
    }
}

/// Whether a block may be used.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[repr(u8)]
pub enum BlockState {
    /// Usable.
    #[default]
    Good = 0,
    /// The factory marked it bad.
    FactoryBad = 1,
    /// A program in it failed; its content has moved.
    ProgramFailed = 2,
    /// It could not be erased.
    EraseFailed = 3,
}

impl BlockState {
    /// The name shown to users and in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Good => "good",
            Self::FactoryBad => "factory-bad",
            Self::ProgramFailed => "program-failed",
            Self::EraseFailed => "erase-failed",
        }
    }

    /// The state with that code.
    pub fn from_code(code: u8) -> Option<Self> {
        [
            Self::Good,
            Self::FactoryBad,
            Self::ProgramFailed,
            Self::EraseFailed,
        ]
        .into_iter()
        .find(|state| *state as u8 == code)
    }
}

/// What a patrol has found.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, serde::Serialize)]
pub struct PatrolFound {
    /// Pages read.
    pub checked_pages: u64,
    /// Of these, those that could be read only after a retry.
    pub retried_pages: u64,
    /// Of these, those that could not be read any more. Each is counted once: its block moves, with the page marked as
    /// lost.
    pub lost_pages: u64,
    /// Blocks whose content was moved.
    pub rewritten_blocks: u64,
}

/// What can go wrong.
#[derive(Debug)]
#[non_exhaustive]
pub enum NandError {
    /// The content of a page is lost: torn by a power cut, rotten, or beyond correction.
    Unreadable {
        /// The page.
        page: Ppn,
    },
    /// The page is not programmed.
    Erased {
        /// The page.
        page: Ppn,
    },
    /// What was found is older than what is known to have been there.
    Stale {
        /// The logical page.
        lpn: Lpn,
    },
    /// The chip reported a failed program: the block must not be used any more.
    ProgramFailed {
        /// The page.
        page: Ppn,
    },
    /// The chip reported a failed erase.
    EraseFailed {
        /// The block.
        block: Pbn,
    },
    /// No spare block is left on a die: the device is read-only.
    ReadOnly {
        /// The die.
        die: u32,
    },
    /// The power was cut.
    PowerCut,
    /// Something the rules of NAND forbid: a bug in the layer above.
    Misuse {
        /// What.
        text: String,
    },
    /// The file system reported an error.
    Io {
        /// What was being done.
        doing: &'static str,
        /// The error.
        source: std::io::Error,
    },
}

impl std::fmt::Display for NandError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Unreadable { page } => write!(f, "physical page {} is unreadable", page.0),
            Self::Erased { page } => write!(f, "physical page {} is erased", page.0),
            Self::Stale { lpn } => write!(
                f,
                "the newest content of logical page {} is lost; what is left is older",
                lpn.0
            ),
            Self::ProgramFailed { page } => {
                write!(f, "physical page {} cannot be programmed", page.0)
            }
            Self::EraseFailed { block } => write!(f, "physical block {} cannot be erased", block.0),
            Self::ReadOnly { die } => {
                write!(
                    f,
                    "die {die} has no spare block left: the device is read-only"
                )
            }
            Self::PowerCut => f.write_str("the power was cut"),
            Self::Misuse { text } => write!(f, "NAND rule broken: {text}"),
            Self::Io { doing, source } => write!(f, "cannot {doing} the image: {source}"),
        }
    }
}

impl NandError {
    /// Whether one page is lost, and nothing else is wrong.
    pub fn is_lost_page(&self) -> bool {
        matches!(
            self,
            Self::Unreadable { .. } | Self::Erased { .. } | Self::Stale { .. }
        )
    }
}

impl std::error::Error for NandError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Io { source, .. } => Some(source),
            _ => None,
        }
    }
}

/// A chip that stores bytes, or a layer in front of one. See the module's text.
///
/// Every method that changes the chip fails with [`NandError::PowerCut`] once the power is gone and with
/// [`NandError::Io`] if the file fails; below, *Errors* names only what is particular to a method.
#[expect(
    clippy::missing_errors_doc,
    reason = "the errors that every method has are named once, on the trait"
)]
pub trait Nand {
    /// Dies, blocks, pages, program order. The logical pages are those of the device above.
    fn geometry(&self) -> &Geometry;

    /// Bytes of a page without its spare area.
    fn page_bytes(&self) -> usize;

    /// Whether the page was programmed since the last erase of its block, readable or not.
    fn is_programmed(&self, page: Ppn) -> bool;

    /// How often a block was erased.
    fn erase_count(&self, block: Pbn) -> u32;

    /// Whether a block may be used.
    fn block_state(&self, block: Pbn) -> BlockState;

    /// The highest sequence number in any spare area; 0 on an erased chip.
    fn last_sequence(&self) -> u64;

    /// Whether every operation that a power cut interrupted is there whole or shows that it is not: pages are readable or
    /// not, for good, and a page that looks erased is erased. Real chips promise no such thing, so that is the
    /// default; what [`Spares`](crate::Spares) then does at a mount is described there.
    fn is_settled(&self) -> bool {
        false
    }

    /// Reads a page into `data`, which is a page long.
    ///
    /// # Errors
    /// [`NandError::Unreadable`] or [`NandError::Erased`]; never wrong bytes.
    fn read(&mut self, page: Ppn, data: &mut [u8]) -> Result<Spare, NandError>;

    /// Reads the spare area alone; fails wherever reading the page would.
    ///
    /// # Errors
    /// As [`Nand::read`].
    fn read_spare(&mut self, page: Ppn) -> Result<Spare, NandError>;

    /// Programs an erased page.
    ///
    /// # Errors
    /// [`NandError::ProgramFailed`]: the page is lost; the other pages of the block stay readable.
    fn program(&mut self, page: Ppn, spare: &Spare, data: &[u8]) -> Result<(), NandError>;

    /// Erases a block.
    ///
    /// # Errors
    /// [`NandError::EraseFailed`].
    fn erase(&mut self, block: Pbn) -> Result<(), NandError>;

    /// Marks a block as bad, for good; its pages stay readable.
    fn mark_bad(&mut self, block: Pbn, state: BlockState) -> Result<(), NandError>;

    /// Returns once everything done so far survives a crash of the machine.
    fn flush(&mut self) -> Result<(), NandError>;

    /// Whether the register was kept after the last change, and the chip then shut down in order.
    fn has_exact_register(&self) -> bool {
        false
    }

    /// All of the register was kept, and is exact until the next change.
    fn complete_register(&mut self) {}

    /// Fills a page of the device's register ([`crate::register`]) as it was last kept, and says in how many copies it
    /// is; entries never kept are left as they are.
    fn load_register(&mut self, page: usize, entries: &mut [u64]) -> Result<u8, NandError> {
        let _ = (page, entries);
        Ok(u8::MAX)
    }

    /// Keeps a page of the device's register, for good once [`Nand::flush`] has returned. Only what was flushed before
    /// may be in it.
    fn save_register(&mut self, page: usize, entries: &[u64]) -> Result<(), NandError> {
        let _ = (page, entries);
        Ok(())
    }

    /// Whether the chip has phase-change memory beside it that keeps map entries. Only where [`Nand::is_settled`]: an
    /// erase that a cut has left half done would not show in the number of erases, and entries go by that.
    fn keeps_entries(&self) -> bool {
        false
    }

    /// The entry of a logical page as it was last kept; one that is damaged names no place.
    fn load_entry(&mut self, lpn: Lpn) -> Result<Option<PcmEntry>, NandError> {
        let _ = lpn;
        Ok(None)
    }

    /// Keeps the entry of a logical page, or that there is none. It survives a crash of the machine once
    /// [`Nand::flush`] has returned; before, the entry before it may be there again.
    fn save_entry(&mut self, lpn: Lpn, entry: Option<&PcmEntry>) -> Result<(), NandError> {
        let _ = (lpn, entry);
        Ok(())
    }

    /// Whether the entries were complete after the last change, and the chip then shut down in order.
    fn has_complete_entries(&self) -> bool {
        false
    }

    /// The entries are complete until the next change.
    fn complete_entries(&mut self) {}

    /// Everything programmed so far may now be the only copy of flushed data, although nothing was erased: once a
    /// scheme has copied the last page out of a block, a recovery may treat the rest of that block as void.
    fn mark_at_risk(&mut self) {}

    /// Reads the next blocks in turn, and moves what begins to fail while it can still be read.
    fn patrol(&mut self, blocks: u32) -> Result<PatrolFound, NandError> {
        let _ = blocks;
        Ok(PatrolFound::default())
    }

    /// Whether the next host request may change anything. Checked before each request, so that the request that uses
    /// up the last spare block still finishes.
    ///
    /// # Errors
    /// [`NandError::ReadOnly`].
    fn check_writable(&self) -> Result<(), NandError> {
        Ok(())
    }

    /// Whether everything done so far is on the chip, rather than in memory because the chip is read-only.
    ///
    /// # Errors
    /// [`NandError::ReadOnly`].
    fn check_kept(&self) -> Result<(), NandError> {
        Ok(())
    }
}

/// A chip whose pages a test can damage.
#[expect(
    clippy::missing_errors_doc,
    reason = "they fail as the methods of `Nand` do"
)]
pub trait Damage: Nand {
    /// Makes a page unreadable.
    fn spoil(&mut self, page: Ppn) -> Result<(), NandError>;

    /// Makes a page look erased, as a torn erase may.
    fn vanish(&mut self, page: Ppn) -> Result<(), NandError>;

    /// The power came back.
    fn power_up(&mut self) {}

    /// Makes a page readable so many times more, and then no longer. Where that cannot be had, not even once.
    fn fade(&mut self, page: Ppn, reads: u32) -> Result<(), NandError> {
        let _ = reads;
        self.spoil(page)
    }

    /// Makes a page that looks erased unfit: what is programmed there before the next erase cannot be read. Where that cannot
    /// be had, it shows.
    fn taint(&mut self, page: Ppn) -> Result<(), NandError> {
        self.spoil(page)
    }

    /// Makes the mark of a bad block readable until the power has gone once more. Where that cannot be had, it stays.
    fn fade_mark(&mut self, block: Pbn) {
        let _ = block;
    }
}

/// A borrowed chip.
impl<N: Nand + ?Sized> Nand for &mut N {
    fn geometry(&self) -> &Geometry {
        (**self).geometry()
    }
    fn page_bytes(&self) -> usize {
        (**self).page_bytes()
    }
    fn is_programmed(&self, page: Ppn) -> bool {
        (**self).is_programmed(page)
    }
    fn erase_count(&self, block: Pbn) -> u32 {
        (**self).erase_count(block)
    }
    fn block_state(&self, block: Pbn) -> BlockState {
        (**self).block_state(block)
    }
    fn last_sequence(&self) -> u64 {
        (**self).last_sequence()
    }
    fn is_settled(&self) -> bool {
        (**self).is_settled()
    }
    fn read(&mut self, page: Ppn, data: &mut [u8]) -> Result<Spare, NandError> {
        (**self).read(page, data)
    }
    fn read_spare(&mut self, page: Ppn) -> Result<Spare, NandError> {
        (**self).read_spare(page)
    }
    fn program(&mut self, page: Ppn, spare: &Spare, data: &[u8]) -> Result<(), NandError> {
        (**self).program(page, spare, data)
    }
    fn erase(&mut self, block: Pbn) -> Result<(), NandError> {
        (**self).erase(block)
    }
    fn mark_bad(&mut self, block: Pbn, state: BlockState) -> Result<(), NandError> {
        (**self).mark_bad(block, state)
    }
    fn flush(&mut self) -> Result<(), NandError> {
        (**self).flush()
    }
    fn has_exact_register(&self) -> bool {
        (**self).has_exact_register()
    }
    fn complete_register(&mut self) {
        (**self).complete_register();
    }
    fn load_register(&mut self, page: usize, entries: &mut [u64]) -> Result<u8, NandError> {
        (**self).load_register(page, entries)
    }
    fn save_register(&mut self, page: usize, entries: &[u64]) -> Result<(), NandError> {
        (**self).save_register(page, entries)
    }
    fn keeps_entries(&self) -> bool {
        (**self).keeps_entries()
    }
    fn load_entry(&mut self, lpn: Lpn) -> Result<Option<PcmEntry>, NandError> {
        (**self).load_entry(lpn)
    }
    fn save_entry(&mut self, lpn: Lpn, entry: Option<&PcmEntry>) -> Result<(), NandError> {
        (**self).save_entry(lpn, entry)
    }
    fn has_complete_entries(&self) -> bool {
        (**self).has_complete_entries()
    }
    fn complete_entries(&mut self) {
        (**self).complete_entries();
    }
    fn mark_at_risk(&mut self) {
        (**self).mark_at_risk();
    }
    fn patrol(&mut self, blocks: u32) -> Result<PatrolFound, NandError> {
        (**self).patrol(blocks)
    }
    fn check_writable(&self) -> Result<(), NandError> {
        (**self).check_writable()
    }
    fn check_kept(&self) -> Result<(), NandError> {
        (**self).check_kept()
    }
}

/// The write pointer of a block: its highest programmed position plus one; 0 for an erased block.
pub fn written<N: Nand + ?Sized>(nand: &N, block: Pbn) -> u32 {
    let geometry = nand.geometry();
    (0..geometry.pages_per_block)
        .rev()
        .find(|&page| nand.is_programmed(geometry.ppn(block, page)))
        .map_or(0, |page| page + 1)
}
