//! A chip in memory: what tests stand on, and what they rebuild a device from after a power cut.

use floatgate_core::{Geometry, Pbn, Ppn, ProgramOrder};

use crate::nand::{BlockState, Damage, Nand, NandError, Spare};

#[derive(Clone, Debug)]
enum Cell {
    Erased,
    Readable(Box<(Spare, Vec<u8>)>),
    Unreadable,
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
            geometry: geometry.clone(),
        }
    }

    fn readable(&self, page: Ppn) -> Result<&(Spare, Vec<u8>), NandError> {
        match &self.cells[page.index()] {
            Cell::Readable(content) => Ok(content),
            Cell::Erased => Err(NandError::Erased { page }),
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
        !matches!(self.cells[page.index()], Cell::Erased)
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
        self.cells[page.index()] = Cell::Readable(Box::new((*spare, data.to_vec())));
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
