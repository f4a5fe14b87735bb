//! `block`: pure block mapping.
//!
//! **Paper.** Ban, US patent 5,404,485 (1995), as described in HAT section II.B.2 and LAST++ section 2.1 and
//! Table II. The lower end of every comparison.
//!
//! **Rules.** docs/spec/block.md has every one of them, to the last counter.
//!
//! **RAM state.** One entry a logical block: its physical block. A page keeps its offset. One bit a
//! page says whether it is live (it could be read from the OOBs).
//!
//! **Flash state.** Data blocks only. OOB: LPN, sequence number, role data, and a tag that is 1 on every
//! page of a rebuild but its last.
//!
//! **How it writes, reads, reclaims.** A request is cut at borders of logical blocks. A part whose offsets
//! are all erased (and, under ascending order, lie above everything programmed) is programmed in place. Any
//! other part rebuilds the block once: the part's pages and the valid rest go to a free block, the old one
//! is erased. Nothing else ever erases. A read is one page read.
//!
//! **Recovery.** Full OOB scan. Of two blocks of one logical block the younger is a rebuild: complete if its
//! highest readable page has the tag clear (then the older one is erased), else erased itself.
//!
//! **Deviations and why.** The papers speak of single pages; a part of a request costs at most one rebuild
//! here, whatever its length, because a controller has the whole request in its buffer. A trimmed offset
//! stays programmed, so writing it again rebuilds the block.

use crate::parts::hybrid::programmable;
use crate::parts::pool::Pool;
use crate::parts::scan::{Depth, MORE, Scan};
use floatgate_core::Refusal;
use floatgate_core::address::{DieLpn, Lbn, Pbn};
use floatgate_core::described::Described;
use floatgate_core::flash::{Cause, Flash, Oob, Preload, Role, Slot};
use floatgate_core::ftl::{Ftl, MountError, RecoveryMode, Run, Start, audited};
use floatgate_core::geometry::{Geometry, Space};
use floatgate_core::options::NoOptions;
use floatgate_core::report::{SchemeCounters, Table, bits_for};
use floatgate_core::state;
use floatgate_core::state::{Passed, State, Tape};

/// One instance of block mapping.
#[derive(Debug)]
pub struct Block {
    space: Space,
    data: Vec<Pbn>,
    /// One bit a page: programmed, newest, not trimmed.
    live: Vec<u64>,
    pool: Pool,
    rebuilds: u64,
    rebuilds_without_copy: u64,
}

state!(Block { data, live, pool, rebuilds, rebuilds_without_copy } fixed { space });

/// Offsets `from .. to` of logical block `lbn`, and the slot of the first.
struct Part {
    lbn: Lbn,
    from: u32,
    to: u32,
    first_page_of_run: u32,
}

impl Block {
    /// No logical block has a physical one yet; the erased blocks are not known.
    fn blank(space: &Space) -> Result<Self, Refusal> {
        Self::check(space, &NoOptions {})?;
        let logical = space.logical_blocks();
        Ok(Self {
            data: vec![Pbn::NONE; logical as usize],
            live: vec![0; (space.logical_pages() as usize).div_ceil(64)],
            pool: Pool::new(std::iter::empty(), space.geometry.blocks_per_die),
            rebuilds: 0,
            rebuilds_without_copy: 0,
            space: space.clone(),
        })
    }

    /// After a power cut: of two physical blocks of a logical one the younger is a rebuild; if it is complete
    /// the older one is void, if it is not it is void itself.
    fn scan<F: Flash>(&mut self, flash: &mut F) -> Result<(), F::Error> {
        let mut scan = Scan::read(&self.space, 0, Depth::Whole, flash)?;
        let blocks: Vec<Pbn> = scan.blocks().map(|(block, _)| block).collect();
        for block in blocks {
            let Some(lbn) = scan.aligned_to(block) else {
                continue;
            };
            let other = std::mem::replace(&mut self.data[lbn.index()], block);
            if other.is_none() {
                continue;
            }
            let is_younger = scan.found(block).first > scan.found(other).first;
            let (older, younger) = if is_younger {
                (other, block)
            } else {
                (block, other)
            };
            let (kept, dropped) = if is_complete(&scan, younger) {
                (younger, older)
            } else {
                (older, younger)
            };
            self.data[lbn.index()] = kept;
            scan.set_void(dropped);
        }
        for &block in self.data.clone().iter().filter(|block| block.is_some()) {
            for (_, lpn, _) in scan.pages_of(block) {
                self.set_live(lpn, true);
            }
            scan.set_valid(block);
        }
        let blank = scan.erase_useless(flash)?;
        let blocks_per_die = self.space.geometry.blocks_per_die;
        self.pool = Pool::new(blank.into_iter(), blocks_per_die);
        Ok(())
    }

    fn is_live(&self, lpn: DieLpn) -> bool {
        self.live[lpn.index() / 64] >> (lpn.index() % 64) & 1 == 1
    }

    fn set_live(&mut self, lpn: DieLpn, live: bool) {
        let (word, bit) = (lpn.index() / 64, lpn.index() % 64);
        self.live[word] = self.live[word] & !(1 << bit) | u64::from(live) << bit;
    }

    fn parts(&self, run: &Run<DieLpn>) -> impl Iterator<Item = Part> + use<> {
        let by_pages = self.space.geometry.by_pages();
        let (first, end) = (run.first.0, run.first.0 + run.pages);
        let mut at = first;
        std::iter::from_fn(move || {
            if at == end {
                return None;
            }
            let (lbn, from) = by_pages.div_rem(at);
            let to = by_pages.get().min(from + (end - at));
            let part = Part {
                lbn: Lbn(lbn),
                from,
                to,
                first_page_of_run: at - first,
            };
            at += to - from;
            Some(part)
        })
    }

    fn write_in_place<F: Flash>(
        &mut self,
        flash: &mut F,
        run: &Run<DieLpn>,
        part: &Part,
    ) -> Result<(), F::Error> {
        for offset in part.from..part.to {
            let (lpn, slot) = run.page(part.first_page_of_run + offset - part.from);
            let to = self.space.geometry.ppn(self.data[part.lbn.index()], offset);
            let oob = Oob::new(self.space.device_lpn(lpn), Role::Data);
            flash.program_host(slot, to, oob, F::Token::default())?;
            self.set_live(lpn, true);
        }
        Ok(())
    }

    /// The part's pages and the valid rest of the logical block into a fresh block.
    fn rebuild<F: Flash>(
        &mut self,
        flash: &mut F,
        run: &Run<DieLpn>,
        part: &Part,
    ) -> Result<(), F::Error> {
        let pages = self.space.geometry.pages_per_block;
        let (old, fresh) = (self.data[part.lbn.index()], self.pool.take());
        let mine = |offset: u32| (part.from..part.to).contains(&offset);
        let last = (0..pages)
            .rev()
            .find(|&offset| mine(offset) || self.is_live(DieLpn(part.lbn.0 * pages + offset)));
        let (mut copies, mut done) = (0, F::Token::default());
        for offset in 0..pages {
            let lpn = DieLpn(part.lbn.0 * pages + offset);
            let tag = if Some(offset) == last { 0 } else { MORE };
            let oob = Oob {
                lpn: self.space.device_lpn(lpn),
                role: Role::Data,
                tag,
            };
            let to = self.space.geometry.ppn(fresh, offset);
            if mine(offset) {
                let (_, slot) = run.page(part.first_page_of_run + offset - part.from);
                flash.program_host(slot, to, oob, F::Token::default())?;
                self.set_live(lpn, true);
            } else if self.is_live(lpn) {
                let from = self.space.geometry.ppn(old, offset);
                done = flash.copy(from, to, oob, Cause::Gc, F::Token::default())?;
                copies += 1;
            }
        }
        // Without its last page the rebuild is void, and the host's pages with it.
        flash.finishes(done);
        flash.erase(old, Cause::Gc, F::Token::default())?;
        self.pool.give(old);
        self.data[part.lbn.index()] = fresh;
        self.rebuilds += 1;
        self.rebuilds_without_copy += u64::from(copies == 0);
        Ok(())
    }
}

/// Whether the rebuild in a block has reached its last page.
fn is_complete(scan: &Scan, block: Pbn) -> bool {
    let highest = scan.pages_of(block).last();
    highest.is_some_and(|(.., read)| read.oob.tag & MORE == 0)
}

impl Described for Block {
    const KEY: &'static str = "block";
    const TITLE: &'static str = "Block mapping";
    const SUMMARY: &'static str = "one map entry a block; an overwrite copies the block";
    const SOURCE: &'static str = "Ban 1995; HAT (MSST 2010) II.B.2";
    const TEXT: &'static str = include_str!("block.rs");
    type Options = NoOptions;

    fn check(space: &Space, _: &NoOptions) -> Result<(), Refusal> {
        let logical = space.logical_blocks();
        space.need_blocks(&[("data blocks", logical), ("merge reserve", 1)])
    }

    fn tables(geometry: &Geometry, _options: &NoOptions) -> Vec<Table> {
        let blocks = u64::from(geometry.logical_blocks());
        vec![Table::sram("block map", blocks, bits_for(blocks))]
    }

    fn ram_bytes(geometry: &Geometry, _options: &NoOptions) -> u64 {
        4 * (u64::from(geometry.blocks()) + u64::from(geometry.logical_blocks()))
            + u64::from(geometry.logical_pages) / 8
    }

    fn counters(&self) -> SchemeCounters {
        let mut counters = SchemeCounters::default();
        counters.extra("rebuilds", self.rebuilds);
        counters.extra("rebuilds_without_copy", self.rebuilds_without_copy);
        counters
    }

    fn reset_counters(&mut self) {
        self.rebuilds = 0;
        self.rebuilds_without_copy = 0;
    }
}

impl Ftl for Block {
    type Page = DieLpn;

    fn format<F: Preload>(
        space: &Space,
        _: &NoOptions,
        start: Start,
        flash: &mut F,
    ) -> Result<Self, MountError<F::Error>> {
        let geometry = &space.geometry;
        let (logical, pages) = (space.logical_blocks(), geometry.pages_per_block);
        let mut block = Self::blank(space)?;
        let first = geometry.pbn(space.first_die, 0).0;
        let mut used = 0;
        if start == Start::Full {
            used = logical;
            for lbn in (0..logical).map(Lbn) {
                block.data[lbn.index()] = Pbn(first + lbn.0);
                let oob_of =
                    |offset| Oob::new(space.device_lpn(DieLpn(lbn.0 * pages + offset)), Role::Data);
                flash
                    .preload(Pbn(first + lbn.0), pages, oob_of)
                    .map_err(MountError::Flash)?;
            }
            (0..space.logical_pages()).for_each(|p| block.set_live(DieLpn(p), true));
        }
        block.pool = Pool::new(
            (first + used..first + geometry.blocks_per_die).map(Pbn),
            geometry.blocks_per_die,
        );
        Ok(block)
    }

    fn recover<F: Flash>(
        space: &Space,
        _: &NoOptions,
        _means: RecoveryMode,
        flash: &mut F,
    ) -> Result<Self, MountError<F::Error>> {
        let mut block = Self::blank(space)?;
        block.scan(flash).map_err(MountError::Flash)?;
        audited(block, flash)
    }

    fn write<F: Flash>(&mut self, flash: &mut F, run: &Run<DieLpn>) -> Result<(), F::Error> {
        for part in self.parts(run) {
            if self.data[part.lbn.index()].is_none() {
                self.data[part.lbn.index()] = self.pool.take();
            }
            let block = self.data[part.lbn.index()];
            if (part.from..part.to).all(|offset| programmable(flash, block, offset)) {
                self.write_in_place(flash, run, &part)?;
            } else {
                self.rebuild(flash, run, &part)?;
            }
        }
        Ok(())
    }

    fn write_page<F: Flash>(
        &mut self,
        flash: &mut F,
        page: DieLpn,
        slot: Slot,
    ) -> Result<(), F::Error> {
        self.write(flash, &Run::page_at(page, slot))
    }

    fn read_page<F: Flash>(
        &mut self,
        flash: &mut F,
        page: DieLpn,
        slot: Slot,
    ) -> Result<(), F::Error> {
        if !self.is_live(page) {
            flash.absent(slot, F::Token::default());
            return Ok(());
        }
        let (lbn, offset) = self.space.geometry.by_pages().div_rem(page.0);
        let from = self.space.geometry.ppn(self.data[Lbn(lbn).index()], offset);
        flash.read_host(slot, from, F::Token::default())?;
        Ok(())
    }

    fn trim_page<F: Flash>(
        &mut self,
        _flash: &mut F,
        page: DieLpn,
        _slot: Slot,
    ) -> Result<(), F::Error> {
        self.set_live(page, false);
        Ok(())
    }

    fn state(&mut self, tape: &mut Tape<'_>) -> Passed {
        self.pass(tape)
    }

    fn audit<F: Flash>(&self, flash: &F) -> Result<u64, String> {
        let pages = self.space.geometry.pages_per_block;
        let mut live = 0;
        for p in (0..self.space.logical_pages()).filter(|&p| self.is_live(DieLpn(p))) {
            let block = self.data[Lbn(p / pages).index()];
            if block.is_none()
                || !flash
                    .ledger()
                    .is_programmed(self.space.geometry.ppn(block, p % pages))
            {
                return Err(format!("live page {p} is not programmed"));
            }
            live += 1;
        }
        let data = self.data.iter().filter(|b| b.is_some()).count() as u32;
        if data + self.pool.len() != self.space.blocks() {
            return Err(format!(
                "{data} data + {} free blocks are not all",
                self.pool.len()
            ));
        }
        Ok(live)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use floatgate_core::geometry::ProgramOrder;

    #[test]
    fn memory_of_the_largest_device_is_told() {
        let (blocks, logical) = (u32::MAX - 1, u32::MAX - 296);
        let order = ProgramOrder::Ascending;
        let geometry = Geometry::new(1, blocks, 1, logical.into(), order).unwrap();
        let (blocks, logical) = (u64::from(blocks), u64::from(logical));
        let told = Block::ram_bytes(&geometry, &NoOptions {});
        assert_eq!(told, 4 * (blocks + logical) + logical / 8);
    }
}

#[cfg(test)]
mod worked_example {
    use super::*;
    use floatgate_core::striped::Striped;
    use floatgate_testkit::suite::{Bench, Case};

    /// Host programs, gc programs, erases, host reads, rebuilds, of them without a copy.
    #[test]
    fn step_by_step() {
        let case = Case {
            start: Start::Empty,
            ..Case::small(1, 4, 4, 3)
        };
        let mut bench = Bench::<Striped<Block>>::new(&case).unwrap();
        for (step, expected) in [
            ("W 0 1", [1, 0, 0, 0, 0, 0]),
            ("W 2 1", [2, 0, 0, 0, 0, 0]),
            ("W 1 1", [3, 2, 1, 0, 1, 0]),
            ("W 3 3", [6, 2, 1, 0, 1, 0]),
            ("W 6 1", [7, 2, 1, 0, 1, 0]),
            ("W 4 4", [11, 2, 2, 0, 2, 1]),
            ("R 0 3", [11, 2, 2, 3, 2, 1]),
            ("T 1 1", [11, 2, 2, 3, 2, 1]),
            ("R 1 1", [11, 2, 2, 3, 2, 1]),
            ("W 3 1", [12, 4, 3, 3, 3, 1]),
            ("W 0 4", [16, 4, 4, 3, 4, 2]),
            ("W 8 1", [17, 4, 4, 3, 4, 2]),
            ("W 11 1", [18, 4, 4, 3, 4, 2]),
            ("W 10 1", [19, 6, 5, 3, 5, 2]),
        ] {
            let c = bench.play(step).counters();
            let got = [
                c.programs.host,
                c.programs.gc,
                c.erases.gc,
                c.reads.host,
                bench.extra("rebuilds"),
                bench.extra("rebuilds_without_copy"),
            ];
            assert_eq!(got, expected, "{step}");
        }
    }
}
