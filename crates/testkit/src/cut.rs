//! A flash whose power fails: [`RamFlash`] with a count of operations after which everything stops.

use crate::ram::RamFlash;
use floatgate_core::address::{Lpn, Pbn, Ppn};
use floatgate_core::flash::{Cause, Flash, Preload, Slot, SpareArea, SpareRead};
use floatgate_core::ledger::Ledger;
use floatgate_core::pcm::{Pcm, Recalled};

/// Why an operation was not done.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Failure {
    /// The power is gone.
    PowerCut,
    /// The page cannot be read any more; only where [`CutFlash::is_rotten`].
    Unreadable(Ppn),
}

/// An operation that changes the flash, or the phase-change memory beside it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Change {
    /// The program of a page, by whatever call.
    Program(Ppn),
    /// The erase of a block.
    Erase(Pbn),
    /// The write of a page's entry in the phase-change memory: it is done or not, and never torn.
    Entry(Lpn),
}

/// How the operation that is cut ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Tear {
    /// It did not begin.
    Clean,
    /// It leaves a page that cannot be read, or a block with anything in it, by this seed.
    Torn(u64),
}

impl Tear {
    /// Leaves the change to a flash that the cut leaves.
    pub fn apply(self, ram: &mut RamFlash, change: Change) {
        match (self, change) {
            (Self::Clean, _) | (_, Change::Entry(_)) => {}
            (Self::Torn(_), Change::Program(to)) => ram.tear_program(to),
            (Self::Torn(seed), Change::Erase(block)) => ram.tear_erase(block, seed),
        }
    }
}

/// A flash in memory whose power can be cut, and that can note every state it passes through.
#[derive(Debug)]
pub struct CutFlash {
    /// What remains after the cut.
    pub ram: RamFlash,
    /// Changes until the cut: the first after them does not happen. `None`: no cut.
    pub fuel: Option<u64>,
    /// The change that was cut.
    pub cut: Option<Change>,
    /// If set: the state before every change so far, and the change.
    pub states: Option<Vec<(RamFlash, Change)>>,
    /// Whether pages may be unreadable for another reason than a cut. As in a device, the host's read of such a page
    /// then fails, and a copy of it is a page that is lost; if not set, a scheme that touches one has a bug.
    pub is_rotten: bool,
}

impl CutFlash {
    /// A flash with power.
    pub fn new(ram: RamFlash) -> Self {
        Self {
            ram,
            fuel: None,
            cut: None,
            states: None,
            is_rotten: false,
        }
    }

    fn is_gone(&self, at: Ppn) -> bool {
        self.is_rotten && !self.ram.is_readable(at)
    }

    fn change(&mut self, change: Change) -> Result<(), Failure> {
        self.alive()?;
        if let Some(states) = &mut self.states {
            states.push((self.ram.clone(), change));
        }
        match &mut self.fuel {
            None => {}
            Some(0) => {
                self.cut = Some(change);
                return Err(Failure::PowerCut);
            }
            Some(fuel) => *fuel -= 1,
        }
        Ok(())
    }

    fn alive(&self) -> Result<(), Failure> {
        if self.cut.is_some() {
            Err(Failure::PowerCut)
        } else {
            Ok(())
        }
    }
}

/// What `RamFlash` answers: it cannot fail.
fn sure<T>(done: Result<T, std::convert::Infallible>) -> Result<T, Failure> {
    done.map_err(|never| match never {})
}

impl AsMut<RamFlash> for CutFlash {
    fn as_mut(&mut self) -> &mut RamFlash {
        &mut self.ram
    }
}

impl Flash for CutFlash {
    type Token = ();
    type Error = Failure;
    type Pcm = Self;

    fn ledger(&self) -> &Ledger {
        &self.ram.ledger
    }

    fn read_host(&mut self, slot: Slot, from: Ppn, after: ()) -> Result<(), Failure> {
        self.alive()?;
        if self.is_gone(from) {
            return Err(Failure::Unreadable(from));
        }
        sure(self.ram.read_host(slot, from, after))
    }

    fn program_host(
        &mut self,
        slot: Slot,
        to: Ppn,
        oob: impl SpareArea,
        after: (),
    ) -> Result<(), Failure> {
        self.change(Change::Program(to))?;
        sure(self.ram.program_host(slot, to, oob, after))
    }

    fn absent(&mut self, slot: Slot, after: ()) {
        self.ram.absent(slot, after);
    }

    fn read_map(&mut self, from: Ppn, take: impl FnOnce(&[u8]), after: ()) -> Result<(), Failure> {
        self.alive()?;
        sure(self.ram.read_map(from, take, after))
    }

    fn program_map(
        &mut self,
        to: Ppn,
        oob: impl SpareArea,
        fill: impl FnOnce(&mut [u8]),
        after: (),
    ) -> Result<(), Failure> {
        self.change(Change::Program(to))?;
        sure(self.ram.program_map(to, oob, fill, after))
    }

    fn copy(
        &mut self,
        from: Ppn,
        to: Ppn,
        oob: impl SpareArea,
        cause: Cause,
        after: (),
    ) -> Result<(), Failure> {
        self.change(Change::Program(to))?;
        if self.is_rotten {
            self.ram.copy_or_lose(from, to, oob, cause);
            return Ok(());
        }
        sure(self.ram.copy(from, to, oob, cause, after))
    }

    fn read_oob(
        &mut self,
        from: Ppn,
        cause: Cause,
        after: (),
    ) -> Result<(Option<SpareRead>, ()), Failure> {
        self.alive()?;
        sure(self.ram.read_oob(from, cause, after))
    }

    fn erase(&mut self, block: Pbn, cause: Cause, after: ()) -> Result<(), Failure> {
        self.change(Change::Erase(block))?;
        sure(self.ram.erase(block, cause, after))
    }

    fn join(&mut self, _a: (), _b: ()) {}

    fn pcm(&mut self) -> &mut Self {
        self
    }
}

impl Pcm for CutFlash {
    type Token = ();

    fn read_entry(&mut self, lpn: Lpn) {
        self.ram.read_entry(lpn);
    }

    /// That the power is gone shows at the next operation of the flash.
    fn write_entry(&mut self, lpn: Lpn, place: Ppn, after: ()) {
        if self.change(Change::Entry(lpn)).is_ok() {
            self.ram.write_entry(lpn, place, after);
        }
    }

    fn recall(&mut self, lpn: Lpn) -> Option<Recalled> {
        self.ram.recall(lpn)
    }

    fn seal(&mut self) {
        if self.alive().is_ok() {
            self.ram.seal();
        }
    }

    fn is_sealed(&self) -> bool {
        self.ram.is_sealed()
    }
}

impl Preload for CutFlash {
    fn preload<O: SpareArea>(
        &mut self,
        block: Pbn,
        pages: u32,
        oob_of: impl FnMut(u32) -> O,
    ) -> Result<(), Failure> {
        sure(self.ram.preload(block, pages, oob_of))
    }

    fn preload_map<O: SpareArea>(
        &mut self,
        block: Pbn,
        pages: u32,
        oob_of: impl FnMut(u32) -> O,
        fill: impl FnMut(u32, &mut [u8]),
    ) -> Result<(), Failure> {
        sure(self.ram.preload_map(block, pages, oob_of, fill))
    }

    fn preload_entry(&mut self, lpn: Lpn, place: Ppn) {
        self.ram.preload_entry(lpn, place);
    }
}
