//! A chip that fails: programs, erases, reads, blocks bad from the factory, wear-out, power cuts.
//!
//! A test double. Failures are either listed or drawn from a seed, so the same plan on the same operations
//! fails in the same way. Operations that change the chip (program, erase, mark) are numbered from 0; a cut comes at
//! one of them, and from then on every operation fails until the chip is taken out ([`Faulty::into_inner`]) and
//! mounted again.

use floatgate_core::rng::SplitMix64;
use floatgate_core::{Geometry, Pbn, Ppn};

use crate::nand::{BlockState, Damage, Nand, NandError, Spare};
pub use crate::tear::{CutKind, HiddenTears};
use crate::tear::{Tear, programmed_pages};

/// A power cut.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Cut {
    /// Number of the operation.
    pub at: u64,
    /// How far it got.
    pub kind: CutKind,
}

/// What shall fail. Rates are chances in a million.
#[derive(Clone, Debug, Default)]
pub struct FaultPlan {
    /// Seed of everything drawn.
    pub seed: u64,
    /// Chance that a program fails.
    pub program_failures_ppm: u32,
    /// Chance that an erase fails.
    pub erase_failures_ppm: u32,
    /// Chance that a read finds its page lost for good.
    pub lost_reads_ppm: u32,
    /// Chance that a read fails and a retry may succeed.
    pub soft_reads_ppm: u32,
    /// Programs that fail, by number of the operation.
    pub program_failures: Vec<u64>,
    /// Erases that fail, by number of the operation.
    pub erase_failures: Vec<u64>,
    /// Pages that become unreadable as soon as they are programmed.
    pub lost_pages: Vec<Ppn>,
    /// Blocks bad from the factory.
    pub factory_bad: Vec<Pbn>,
    /// Erases after which a block can no longer be erased.
    pub erase_limit: Option<u32>,
    /// Chance that a program fails although its block is sound: it succeeds after another erase.
    pub transient_program_failures_ppm: u32,
    /// Chance that an erase fails and succeeds when repeated.
    pub transient_erase_failures_ppm: u32,
    /// Reads of a block since its erase after which its pages need retries; each read after twice as many makes one of
    /// them unreadable.
    pub read_disturb: Option<u32>,
    /// Operations after which a page that was not programmed since needs retries; after twice as many it is unreadable.
    pub retention: Option<u64>,
    /// A cut in the program of an upper page takes the lower page of the pair with it.
    pub paired_pages: bool,
    /// Operations that a cut may leave in a state that does not show.
    pub hidden_tears: HiddenTears,
    /// The power cut.
    pub cut: Option<Cut>,
}

/// What failed so far.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct FaultCounts {
    /// Programs.
    pub programs: u64,
    /// Erases.
    pub erases: u64,
    /// Pages lost for good.
    pub lost_pages: u64,
    /// Reads that a retry could save.
    pub soft_reads: u64,
    /// Lower pages that a cut took.
    pub lower_pages: u64,
}

/// A chip that fails as planned. See the module's text.
#[derive(Debug)]
pub struct Faulty<N> {
    nand: N,
    plan: FaultPlan,
    rng: SplitMix64,
    /// Operations so far.
    operations: u64,
    /// A block in which a program or erase has failed fails from then on.
    broken: Vec<bool>,
    /// Reads of each block since its erase.
    reads: Vec<u32>,
    /// Operations before each page was programmed.
    programmed_at: Vec<u64>,
    /// Whether the next read of a page that needs retries fails.
    is_moody: bool,
    counts: FaultCounts,
    dead: bool,
}

impl<N: Damage> Faulty<N> {
    /// Makes a chip fail by a plan.
    ///
    /// # Errors
    /// If blocks cannot be marked as bad.
    pub fn new(mut nand: N, plan: FaultPlan) -> Result<Self, NandError> {
        nand.power_up();
        for &block in &plan.factory_bad {
            nand.mark_bad(block, BlockState::FactoryBad)?;
        }
        Ok(Self {
            rng: SplitMix64::new(plan.seed),
            operations: 0,
            broken: vec![false; nand.geometry().blocks() as usize],
            reads: vec![0; nand.geometry().blocks() as usize],
            programmed_at: vec![0; nand.geometry().pages() as usize],
            is_moody: true,
            counts: FaultCounts::default(),
            dead: false,
            plan,
            nand,
        })
    }

    /// Operations so far that changed the chip.
    pub fn operations(&self) -> u64 {
        self.operations
    }

    /// What failed so far.
    pub fn counts(&self) -> FaultCounts {
        self.counts
    }

    /// The chip itself.
    pub fn inner(&self) -> &N {
        &self.nand
    }

    /// The chip as the power cut left it.
    pub fn into_inner(self) -> N {
        self.nand
    }

    fn tear(&mut self) -> Tear<'_, N> {
        Tear {
            nand: &mut self.nand,
            rng: &mut self.rng,
            hidden: self.plan.hidden_tears,
            paired_pages: self.plan.paired_pages,
        }
    }

    fn draw(&mut self, ppm: u32) -> bool {
        ppm > 0 && self.rng.below(1_000_000) < u64::from(ppm)
    }

    /// Numbers an operation; if the power is cut in it, does `torn` or all of it.
    fn begin(
        &mut self,
        whole: impl FnOnce(&mut N) -> Result<(), NandError>,
        torn: impl FnOnce(&mut Self) -> Result<(), NandError>,
    ) -> Result<u64, NandError> {
        if self.dead {
            return Err(NandError::PowerCut);
        }
        let number = self.operations;
        self.operations += 1;
        let Some(cut) = self.plan.cut.filter(|cut| cut.at == number) else {
            return Ok(number);
        };
        self.dead = true;
        match cut.kind {
            CutKind::Before => {}
            CutKind::Torn => torn(self)?,
            CutKind::After => whole(&mut self.nand)?,
        }
        Err(NandError::PowerCut)
    }

    /// What reads and time do to a page.
    fn age(&mut self, page: Ppn) -> Result<(), NandError> {
        let block = self.nand.geometry().block_of(page);
        self.reads[block.index()] = self.reads[block.index()].saturating_add(1);
        let reads = self.reads[block.index()];
        let (limit, age) = (
            self.plan.read_disturb.unwrap_or(u32::MAX),
            self.operations - self.programmed_at[page.index()],
        );
        if reads > limit.saturating_mul(2) {
            let pages = programmed_pages(&self.nand, block);
            let victim = pages[self.rng.below(pages.len() as u64) as usize];
            self.counts.lost_pages += 1;
            self.nand.spoil(victim)?;
        }
        let lasts = self.plan.retention.unwrap_or(u64::MAX);
        if age > lasts.saturating_mul(2) {
            self.counts.lost_pages += 1;
            self.nand.spoil(page)?;
        }
        if reads > limit || age > lasts {
            self.is_moody = !self.is_moody;
            if !self.is_moody {
                self.counts.soft_reads += 1;
                return Err(NandError::Unreadable { page });
            }
        }
        Ok(())
    }

    /// Fails a read by chance, permanently or once.
    fn disturb(&mut self, page: Ppn) -> Result<(), NandError> {
        if self.dead {
            return Err(NandError::PowerCut);
        }
        if self.draw(self.plan.soft_reads_ppm) {
            self.counts.soft_reads += 1;
            return Err(NandError::Unreadable { page });
        }
        if self.nand.is_programmed(page) && self.draw(self.plan.lost_reads_ppm) {
            self.counts.lost_pages += 1;
            self.nand.spoil(page)?;
        }
        if self.nand.is_programmed(page) {
            self.age(page)?;
        }
        Ok(())
    }
}

impl<N: Damage> Nand for Faulty<N> {
    fn geometry(&self) -> &Geometry {
        self.nand.geometry()
    }

    fn page_bytes(&self) -> usize {
        self.nand.page_bytes()
    }

    fn is_programmed(&self, page: Ppn) -> bool {
        self.nand.is_programmed(page)
    }

    fn erase_count(&self, block: Pbn) -> u32 {
        self.nand.erase_count(block)
    }

    fn block_state(&self, block: Pbn) -> BlockState {
        self.nand.block_state(block)
    }

    fn last_sequence(&self) -> u64 {
        self.nand.last_sequence()
    }

    fn is_settled(&self) -> bool {
        self.nand.is_settled()
    }

    fn read(&mut self, page: Ppn, data: &mut [u8]) -> Result<Spare, NandError> {
        self.disturb(page)?;
        self.nand.read(page, data)
    }

    fn read_spare(&mut self, page: Ppn) -> Result<Spare, NandError> {
        self.disturb(page)?;
        self.nand.read_spare(page)
    }

    fn program(&mut self, page: Ppn, spare: &Spare, data: &[u8]) -> Result<(), NandError> {
        let number = self.begin(
            |nand| nand.program(page, spare, data),
            |faulty| {
                let mut tear = faulty.tear();
                let lower_pages = tear.program(page, spare, data)?;
                faulty.counts.lower_pages += lower_pages;
                Ok(())
            },
        )?;
        let block = self.nand.geometry().block_of(page).index();
        let fails = self.draw(self.plan.program_failures_ppm)
            || self.plan.program_failures.contains(&number);
        if fails || self.broken[block] {
            self.broken[block] = true;
            self.counts.programs += 1;
            self.nand.spoil(page)?;
            return Err(NandError::ProgramFailed { page });
        }
        if self.draw(self.plan.transient_program_failures_ppm) {
            self.counts.programs += 1;
            self.nand.spoil(page)?;
            return Err(NandError::ProgramFailed { page });
        }
        self.nand.program(page, spare, data)?;
        self.programmed_at[page.index()] = self.operations;
        if self.plan.lost_pages.contains(&page) {
            self.counts.lost_pages += 1;
            self.nand.spoil(page)?;
        }
        Ok(())
    }

    fn erase(&mut self, block: Pbn) -> Result<(), NandError> {
        let number = self.begin(
            |nand| nand.erase(block),
            |faulty| faulty.tear().erase(block),
        )?;
        let worn = self.plan.erase_limit;
        let fails = self.draw(self.plan.erase_failures_ppm)
            || self.plan.erase_failures.contains(&number)
            || worn.is_some_and(|limit| self.nand.erase_count(block) >= limit);
        if fails || self.broken[block.index()] {
            self.broken[block.index()] = true;
            self.counts.erases += 1;
            return Err(NandError::EraseFailed { block });
        }
        if self.draw(self.plan.transient_erase_failures_ppm) {
            self.counts.erases += 1;
            return Err(NandError::EraseFailed { block });
        }
        self.reads[block.index()] = 0;
        self.nand.erase(block)
    }

    fn mark_bad(&mut self, block: Pbn, state: BlockState) -> Result<(), NandError> {
        self.begin(
            |nand| nand.mark_bad(block, state),
            |faulty| faulty.tear().mark(block, state),
        )?;
        self.nand.mark_bad(block, state)
    }

    fn has_exact_register(&self) -> bool {
        self.nand.has_exact_register()
    }

    fn complete_register(&mut self) {
        self.nand.complete_register();
    }

    fn load_register(&mut self, page: usize, entries: &mut [u64]) -> Result<u8, NandError> {
        self.nand.load_register(page, entries)
    }

    fn save_register(&mut self, page: usize, entries: &[u64]) -> Result<(), NandError> {
        if self.dead {
            return Err(NandError::PowerCut);
        }
        self.nand.save_register(page, entries)
    }

    fn flush(&mut self) -> Result<(), NandError> {
        if self.dead {
            return Err(NandError::PowerCut);
        }
        self.nand.flush()
    }
}
