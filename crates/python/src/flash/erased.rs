//! A flash whose type has been erased, so that one type of handle does for all.

use floatgate_core::address::{Lpn, Pbn, Ppn};
use floatgate_core::flash::{Cause, Flash, Oob, Preload, Role, Slot, SpareRead};
use floatgate_core::ledger::Ledger;

/// What goes into a spare area.
pub struct Spare {
    pub oob: Oob,
    pub bytes: Vec<u8>,
}

/// What is asked of a flash.
pub enum Op<'a> {
    ReadHost(Slot, Ppn),
    ProgramHost(Slot, Ppn, &'a Spare),
    Absent(Slot),
    ReadMap(Ppn),
    ProgramMap(Ppn, &'a Spare, &'a [u8]),
    Copy(Ppn, Ppn, &'a Spare, Cause),
    ReadOob(Ppn),
    Erase(Pbn, Cause),
    Replaced(Ppn),
    Keeps(Ppn, u32),
    Drain,
    Finishes,
    Join(u32),
    Preload(Pbn, &'a [u32]),
}

/// What comes of it.
#[derive(Default)]
pub struct Answer {
    /// Place of the token.
    pub token: u32,
    pub bytes: Option<Vec<u8>>,
    pub spare: Option<SpareRead>,
}

/// Why it could not be done.
pub enum Failed {
    /// The flash has failed; it keeps the error.
    Flash,
    /// It cannot be asked here.
    Misuse(&'static str),
}

/// A flash whose type has been erased. Tokens are places in a list; 0 waits for nothing.
pub trait Erased {
    fn ledger(&self) -> &Ledger;
    fn ask(&mut self, op: Op<'_>, after: u32) -> Result<Answer, Failed>;
    /// From now on it does nothing more: it was misused.
    fn breaks(&mut self, how: String);
    fn is_broken(&self) -> bool;
}

/// Sets up a block of the start state.
pub type SetUp<F> = fn(&mut F, Pbn, &[u32]) -> Result<(), <F as Flash>::Error>;

/// [`Preload::preload`] for pages by their numbers.
pub fn set_up<F: Preload>(flash: &mut F, block: Pbn, pages: &[u32]) -> Result<(), F::Error> {
    let oob_of = |i: u32| Oob::new(Lpn(pages[i as usize]), Role::Data);
    flash.preload(block, pages.len() as u32, oob_of)
}

/// A flash that is lent.
pub struct Lent<'f, F: Flash> {
    flash: &'f mut F,
    set_up: Option<SetUp<F>>,
    tokens: Vec<F::Token>,
    /// What it failed with.
    pub error: Option<F::Error>,
    /// How it was misused.
    pub broken: Option<String>,
}

impl<'f, F: Flash> Lent<'f, F> {
    /// A flash of which nothing was asked yet; with `set_up` the start state can be made.
    pub fn new(flash: &'f mut F, set_up: Option<SetUp<F>>) -> Self {
        Self {
            flash,
            set_up,
            tokens: vec![F::Token::default()],
            error: None,
            broken: None,
        }
    }

    fn keep(&mut self, token: Result<F::Token, F::Error>) -> Result<u32, Failed> {
        match token {
            Ok(token) => {
                self.tokens.push(token);
                Ok(self.tokens.len() as u32 - 1)
            }
            Err(error) => {
                self.error = Some(error);
                Err(Failed::Flash)
            }
        }
    }

    fn done(&mut self, done: Result<(), F::Error>) -> Result<u32, Failed> {
        self.keep(done.map(|()| F::Token::default()))
    }
}

impl<F: Flash> Erased for Lent<'_, F> {
    fn ledger(&self) -> &Ledger {
        self.flash.ledger()
    }

    fn ask(&mut self, op: Op<'_>, after: u32) -> Result<Answer, Failed> {
        let after = self.tokens[after as usize];
        let flash = &mut *self.flash;
        let with_bytes = |spare: &Spare| {
            let bytes = spare.bytes.clone();
            spare
                .oob
                .with_bytes(move |area| area[..bytes.len()].copy_from_slice(&bytes))
        };
        let mut answer = Answer::default();
        let token = match op {
            Op::ReadHost(slot, from) => flash.read_host(slot, from, after),
            Op::ProgramHost(slot, to, spare) => {
                flash.program_host(slot, to, with_bytes(spare), after)
            }
            Op::Absent(slot) => {
                flash.absent(slot, after);
                Ok(after)
            }
            Op::ReadMap(from) => {
                let bytes = &mut answer.bytes;
                flash.read_map(from, |page| *bytes = Some(page.to_vec()), after)
            }
            Op::ProgramMap(to, spare, bytes) => {
                let fill = |page: &mut [u8]| {
                    let n = page.len().min(bytes.len());
                    page[..n].copy_from_slice(&bytes[..n]);
                };
                flash.program_map(to, with_bytes(spare), fill, after)
            }
            Op::Copy(from, to, spare, cause) => {
                flash.copy(from, to, with_bytes(spare), cause, after)
            }
            Op::ReadOob(from) => flash
                .read_oob(from, Cause::Map, after)
                .map(|(spare, token)| {
                    answer.spare = spare;
                    token
                }),
            Op::Erase(block, cause) => flash.erase(block, cause, after),
            Op::Replaced(old) => {
                flash.replaced(old, after);
                Ok(after)
            }
            Op::Keeps(old, die) => {
                flash.keeps(old, die);
                Ok(after)
            }
            Op::Drain => {
                flash.drain();
                Ok(after)
            }
            Op::Finishes => {
                flash.finishes(after);
                Ok(after)
            }
            Op::Join(other) => {
                let other = self.tokens[other as usize];
                Ok(flash.join(after, other))
            }
            Op::Preload(block, pages) => {
                let Some(set_up) = self.set_up else {
                    return Err(Failed::Misuse("preload is for format only"));
                };
                let done = set_up(flash, block, pages);
                answer.token = self.done(done)?;
                return Ok(answer);
            }
        };
        answer.token = self.keep(token)?;
        Ok(answer)
    }

    fn breaks(&mut self, how: String) {
        self.broken = Some(how);
    }

    fn is_broken(&self) -> bool {
        self.broken.is_some() || self.error.is_some()
    }
}

/// A flash that can only be looked at.
pub struct Shown<'f>(pub &'f Ledger);

impl Erased for Shown<'_> {
    fn ledger(&self) -> &Ledger {
        self.0
    }

    fn ask(&mut self, _: Op<'_>, _: u32) -> Result<Answer, Failed> {
        Err(Failed::Misuse(
            "here it can only be looked at: written and erases",
        ))
    }

    fn breaks(&mut self, _: String) {}

    fn is_broken(&self) -> bool {
        false
    }
}
