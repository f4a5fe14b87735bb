//! A chip in memory: what tests stand on, and what they rebuild a device from after a power cut.
//!
//! By itself it is settled: what a cut leaves shows. [`RamNand::unsettled`] says otherwise; then the test may leave pages
//! that fade, erased pages that are not fit for use, and marks that do not last.

use floatgate_core::{Geometry, Pbn, Ppn, ProgramOrder};

use crate::nand::{BlockState, Damage, Nand, NandError, Spare};

#[derive(Clone, Debug)]
enum Cell {
    Erased,
    Readable(Box<(Spare, Vec<u8>)>),
    Unreadable,
    /// Looks erased, but what is programmed there cannot be read.
    Tainted,
    /// Readable so many times more.
    Fading(Box<(Spare, Vec<u8>)>, u32),
}

/// A chip in memory. A clone is a chip with the same content.
#[derive(Clone, Debug)]
pub struct RamNand {
    geometry: Geometry,
    page_bytes: usize,
    cells: Vec<Cell>,
    erases: Vec<u32>,
    states: Vec<BlockState>,
    /// Highest programmed position + 1 of each block.
    written: Vec<u32>,
    last_sequence: u64,
    /// By page of the register.
    register: Vec<Vec<u64>>,
    is_settled: bool,
    /// Marks of bad blocks that do not last, and how often the power has come back since.
    fading_marks: Vec<(Pbn, u32)>,
}

impl RamNand {
    /// An erased chip.
    pub fn new(geometry: &Geometry, page_bytes: usize) -> Self {
        let blocks = geometry.blocks() as usize;
        Self {
            page_bytes,
            cells: vec![Cell::Erased; geometry.pages() as usize],
            erases: vec![0; blocks],
            states: vec![BlockState::Good; blocks],
            written: vec![0; blocks],
            last_sequence: 0,
            register: Vec::new(),
            is_settled: true,
            fading_marks: Vec::new(),
            geometry: geometry.clone(),
        }
    }

    /// The same chip, of which nobody says that it is settled.
    #[must_use]
    pub fn unsettled(self) -> Self {
        Self {
            is_settled: false,
            ..self
        }
    }

    fn readable(&mut self, page: Ppn) -> Result<&(Spare, Vec<u8>), NandError> {
        let cell = &mut self.cells[page.index()];
        if let Cell::Fading(_, reads) = cell {
            match reads.checked_sub(1) {
                Some(left) => *reads = left,
                None => *cell = Cell::Unreadable,
            }
        }
        match cell {
            Cell::Readable(content) | Cell::Fading(content, _) => Ok(content),
            Cell::Erased | Cell::Tainted => Err(NandError::Erased { page }),
            Cell::Unreadable => Err(NandError::Unreadable { page }),
        }
    }
}

impl Nand for RamNand {
    fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    fn page_bytes(&self) -> usize {
        self.page_bytes
    }

    fn is_programmed(&self, page: Ppn) -> bool {
        !matches!(self.cells[page.index()], Cell::Erased | Cell::Tainted)
    }

    fn erase_count(&self, block: Pbn) -> u32 {
        self.erases[block.index()]
    }

    fn block_state(&self, block: Pbn) -> BlockState {
        self.states[block.index()]
    }

    fn last_sequence(&self) -> u64 {
        self.last_sequence
    }

    fn is_settled(&self) -> bool {
        self.is_settled
    }

    fn read(&mut self, page: Ppn, data: &mut [u8]) -> Result<Spare, NandError> {
        let (spare, bytes) = self.readable(page)?;
        data.copy_from_slice(bytes);
        Ok(*spare)
    }

    fn read_spare(&mut self, page: Ppn) -> Result<Spare, NandError> {
        Ok(self.readable(page)?.0)
    }

    fn program(&mut self, page: Ppn, spare: &Spare, data: &[u8]) -> Result<(), NandError> {
        let (block, position) = self.geometry.split(page);
        check_program_rule(
            &self.geometry,
            page,
            self.is_programmed(page),
            self.written[block.index()],
        )?;
        let cell = &mut self.cells[page.index()];
        *cell = match cell {
            Cell::Tainted => Cell::Unreadable,
            _ => Cell::Readable(Box::new((*spare, data.to_vec()))),
        };
        let written = &mut self.written[block.index()];
        *written = (*written).max(position + 1);
        self.last_sequence = self.last_sequence.max(spare.sequence);
        Ok(())
    }

    fn erase(&mut self, block: Pbn) -> Result<(), NandError> {
        let first = self.geometry.first_page(block).index();
        self.cells[first..first + self.geometry.pages_per_block as usize].fill(Cell::Erased);
        self.written[block.index()] = 0;
        self.erases[block.index()] += 1;
        Ok(())
    }

    fn mark_bad(&mut self, block: Pbn, state: BlockState) -> Result<(), NandError> {
        self.states[block.index()] = state;
        self.fading_marks.retain(|(fading, _)| *fading != block);
        Ok(())
    }

    fn load_register(&mut self, page: usize, entries: &mut [u64]) -> Result<u8, NandError> {
        if let Some(kept) = self.register.get(page).filter(|kept| !kept.is_empty()) {
            entries.copy_from_slice(kept);
        }
        Ok(u8::MAX)
    }

    fn save_register(&mut self, page: usize, entries: &[u64]) -> Result<(), NandError> {
        let pages = self.register.len().max(page + 1);
        self.register.resize(pages, Vec::new());
        self.register[page] = entries.to_vec();
        Ok(())
    }

    fn flush(&mut self) -> Result<(), NandError> {
        Ok(())
    }
}

impl Damage for RamNand {
    fn spoil(&mut self, page: Ppn) -> Result<(), NandError> {
        let (block, position) = self.geometry.split(page);
        self.cells[page.index()] = Cell::Unreadable;
        let written = &mut self.written[block.index()];
        *written = (*written).max(position + 1);
        Ok(())
    }

    fn vanish(&mut self, page: Ppn) -> Result<(), NandError> {
        self.cells[page.index()] = Cell::Erased;
        let block = self.geometry.block_of(page);
        self.written[block.index()] = crate::nand::written(self, block);
        Ok(())
    }

    fn power_up(&mut self) {
        let states = &mut self.states;
        self.fading_marks.retain_mut(|(block, times)| {
            *times += 1;
            if *times > 1 {
                states[block.index()] = BlockState::Good;
            }
            *times == 1
        });
    }

    fn fade(&mut self, page: Ppn, reads: u32) -> Result<(), NandError> {
        let cell = &mut self.cells[page.index()];
        *cell = match std::mem::replace(cell, Cell::Unreadable) {
            Cell::Readable(content) => Cell::Fading(content, reads),
            other => other,
        };
        Ok(())
    }

    fn taint(&mut self, page: Ppn) -> Result<(), NandError> {
        self.vanish(page)?;
        self.cells[page.index()] = Cell::Tainted;
        Ok(())
    }

    fn fade_mark(&mut self, block: Pbn) {
        self.fading_marks.push((block, 0));
    }
}

/// Each page once per erase, and in ascending order where the cells require it.
pub(crate) fn check_program_rule(
    geometry: &Geometry,
    page: Ppn,
    programmed: bool,
    written: u32,
) -> Result<(), NandError> {
    let (block, position) = geometry.split(page);
    if programmed || geometry.program_order == ProgramOrder::Ascending && position < written {
        let text = format!(
            "page {position} of block {} when {written} positions are written ({} order)",
            block.0,
            geometry.program_order.name()
        );
        return Err(NandError::Misuse { text });
    }
    Ok(())
}
