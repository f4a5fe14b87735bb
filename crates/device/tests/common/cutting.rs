//! Power cuts at every operation of a chip: its state before each change is kept, and each state is cut in every
//! way in which an operation can end.

use floatgate_core::{Geometry, Pbn, Ppn};
use floatgate_device::faulty::{Cut, CutKind, FaultPlan, HiddenTears};
use floatgate_device::nand::{BlockState, Nand, NandError, Spare};
use floatgate_device::{Faulty, RamNand};

/// A change of the chip.
#[derive(Clone, Debug)]
pub enum Change {
    Program(Ppn, Box<Spare>, Vec<u8>),
    Erase(Pbn),
    Mark(Pbn, BlockState),
}

impl std::fmt::Display for Change {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Program(page, ..) => write!(f, "the program of page {}", page.0),
            Self::Erase(block) => write!(f, "the erase of block {}", block.0),
            Self::Mark(block, _) => write!(f, "the mark of block {}", block.0),
        }
    }
}

/// A chip that fails as planned and remembers what it was before each change.
#[derive(Debug)]
pub struct Recorder {
    faulty: Faulty<RamNand>,
    states: Option<Vec<(RamNand, Change)>>,
}

impl Recorder {
    pub fn new(chip: RamNand, plan: FaultPlan) -> Self {
        Self {
            faulty: Faulty::new(chip, plan).unwrap(),
            states: None,
        }
    }

    /// From now on every state is kept.
    pub fn record(&mut self) {
        self.states = Some(Vec::new());
    }

    /// The states since then.
    pub fn recorded(&mut self) -> Vec<(RamNand, Change)> {
        self.states.take().unwrap_or_default()
    }

    /// The chip as it is.
    pub fn chip(&self) -> &RamNand {
        self.faulty.inner()
    }

    pub fn into_chip(self) -> RamNand {
        self.faulty.into_inner()
    }

    fn note(&mut self, change: impl FnOnce() -> Change) {
        if let Some(states) = &mut self.states {
            states.push((self.faulty.inner().clone(), change()));
        }
    }
}

impl Nand for Recorder {
    fn geometry(&self) -> &Geometry {
        self.faulty.geometry()
    }
    fn page_bytes(&self) -> usize {
        self.faulty.page_bytes()
    }
    fn is_programmed(&self, page: Ppn) -> bool {
        self.faulty.is_programmed(page)
    }
    fn erase_count(&self, block: Pbn) -> u32 {
        self.faulty.erase_count(block)
    }
    fn block_state(&self, block: Pbn) -> BlockState {
        self.faulty.block_state(block)
    }
    fn last_sequence(&self) -> u64 {
        self.faulty.last_sequence()
    }
    fn is_settled(&self) -> bool {
        self.faulty.is_settled()
    }
    fn read(&mut self, page: Ppn, data: &mut [u8]) -> Result<Spare, NandError> {
        self.faulty.read(page, data)
    }
    fn read_spare(&mut self, page: Ppn) -> Result<Spare, NandError> {
        self.faulty.read_spare(page)
    }
    fn program(&mut self, page: Ppn, spare: &Spare, data: &[u8]) -> Result<(), NandError> {
        self.note(|| Change::Program(page, Box::new(*spare), data.to_vec()));
        self.faulty.program(page, spare, data)
    }
    fn erase(&mut self, block: Pbn) -> Result<(), NandError> {
        self.note(|| Change::Erase(block));
        self.faulty.erase(block)
    }
    fn mark_bad(&mut self, block: Pbn, state: BlockState) -> Result<(), NandError> {
        self.note(|| Change::Mark(block, state));
        self.faulty.mark_bad(block, state)
    }

    fn load_register(&mut self, page: usize, entries: &mut [u64]) -> Result<u8, NandError> {
        self.faulty.load_register(page, entries)
    }
    fn save_register(&mut self, page: usize, entries: &[u64]) -> Result<(), NandError> {
        self.faulty.save_register(page, entries)
    }
    fn flush(&mut self) -> Result<(), NandError> {
        self.faulty.flush()
    }
}

/// What a cut can do to a chip beside what shows in the page or block that it was in.
#[derive(Clone, Copy)]
pub struct Tears {
    pub paired_pages: bool,
    pub hidden: HiddenTears,
}

/// The chip that a cut in a change leaves, and how many lower pages the cut took.
pub fn cut(
    chip: &RamNand,
    change: &Change,
    kind: CutKind,
    seed: u64,
    tears: Tears,
) -> (RamNand, u64) {
    let plan = FaultPlan {
        seed,
        cut: Some(Cut { at: 0, kind }),
        paired_pages: tears.paired_pages,
        hidden_tears: tears.hidden,
        ..FaultPlan::default()
    };
    let mut faulty = Faulty::new(chip.clone(), plan).unwrap();
    let outcome = match change {
        Change::Program(page, spare, data) => faulty.program(*page, spare, data),
        Change::Erase(block) => faulty.erase(*block),
        Change::Mark(block, state) => faulty.mark_bad(*block, *state),
    };
    assert!(matches!(outcome, Err(NandError::PowerCut)));
    let lower_pages = faulty.counts().lower_pages;
    (faulty.into_inner(), lower_pages)
}
