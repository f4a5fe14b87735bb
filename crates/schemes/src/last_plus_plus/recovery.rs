//! How LAST++ comes back: by the snapshot of a clean shutdown, or from what a power cut left.
//!
//! *Snapshot.* It is found by the first OOBs of the blocks, and it is true as long as it is whole: its blocks are erased
//! before anything else changes, by the first write after the start as well as by a recovery that does not use
//! it. What its entries leave out stands in the OOBs of the first pages: segments, and which log blocks are hot.
//! Open log blocks are closed, because the snapshot does not tell those whose free positions can be trusted.
//!
//! *Power cut.* With map blocks: every random log block by its summary, or by its OOBs if it has none. Without them the
//! OOBs of all pages are read anyway, and the summaries would add nothing.

use std::collections::{HashMap, HashSet};

use super::config::Plan;
use super::shutdown::state_of;
use super::snapshot::{LogPages, SegmentBlocks};
use super::{DIES, LastPlusPlus, LastPlusPlusOptions, Logs, SNAPSHOT_TAG, summary};
use crate::parts::heat::Heat;
use crate::parts::hybrid::{
    BlockMap, FoundLog, Hybrid, KnownBlocks, KnownLog, Log, NamedLog, Shortcuts,
};
use crate::parts::scan::{Depth, Scan};
use floatgate_core::Refusal;
use floatgate_core::address::{DieLpn, Lbn, Pbn, Ppn};
use floatgate_core::flash::{Cause, Flash, Oob, OobRead, Role, SpareRead};
use floatgate_core::ftl::{MountError, RecoveryMode};
use floatgate_core::geometry::{Geometry, Space};

/// The first page of a block that can be read.
#[derive(Clone, Copy, Debug)]
struct Head {
    block: Pbn,
    position: u32,
    read: OobRead,
    /// Of a snapshot: the state of the flash that it tells of.
    state: u64,
}

/// A snapshot as it was found.
struct Snapshot {
    blocks: Vec<Pbn>,
    content: Vec<u8>,
}

/// What the flash holds to be faster than a full scan.
struct Kept<'a> {
    space: &'a Space,
    options: &'a LastPlusPlusOptions,
    plan: &'a Plan,
    /// Of a snapshot that is used: its blocks, the segments by Seq-ID, the update counters that are not 0.
    blocks: Vec<Pbn>,
    segments: Vec<u32>,
    updates: HashMap<Ppn, u8>,
}

impl<F: Flash> Shortcuts<F> for Kept<'_> {
    fn tables(
        &mut self,
        map: Option<&BlockMap>,
        scan: &mut Scan,
        flash: &mut F,
    ) -> Result<Option<KnownBlocks>, F::Error> {
        let named = map.iter().flat_map(|map| &map.logs).map(|log| log.block);
        let named: HashSet<Pbn> = named.collect();
        let of_unknown_kind = self.of_unknown_kind(map, flash);
        let (logs, others): (Vec<Pbn>, Vec<Pbn>) =
            of_unknown_kind.partition(|block| named.contains(block));
        // Where the log blocks are known the snapshot is among the others.
        let used = |blocks: &[Pbn]| {
            blocks
                .iter()
                .filter(|&&b| flash.ledger().write_pointer(b) > 0)
                .count()
        };
        let blocks_in_use = used(&logs) + used(&others);
        let mut heads = self.read_heads(others, scan, flash)?;
        let Some(snapshot) = self.read_snapshot(&heads, flash)? else {
            return Ok(None);
        };
        self.blocks = snapshot.blocks;
        heads.append(&mut self.read_heads(logs, scan, flash)?);
        // Entries find their blocks by counting: one that cannot be read at all would hand its pages to others.
        if heads.len() < blocks_in_use {
            return Ok(None);
        }
        heads.sort_unstable_by_key(|head| head.block);
        Ok(self.interpret(map, &heads, &snapshot.content, flash))
    }

    fn read_log(&mut self, scan: &mut Scan, log: NamedLog, flash: &mut F) -> Result<(), F::Error> {
        if log.is_sequential {
            return scan.read_block(log.block, Depth::Whole, flash);
        }
        if !self.options.summary_pages || !self.read_summary(scan, log.block, flash)? {
            return scan.read_block(log.block, Depth::UpToErased, flash);
        }
        Ok(())
    }
}

impl Kept<'_> {
    /// The blocks whose kind is not known: all of them, or with a block map those that it names as log blocks or, if
    /// they are not blank, not at all.
    fn of_unknown_kind<F: Flash>(
        &self,
        map: Option<&BlockMap>,
        flash: &F,
    ) -> impl Iterator<Item = Pbn> {
        let geometry = &self.space.geometry;
        let mut is_known = vec![false; geometry.blocks() as usize];
        if let Some(map) = map {
            for block in (0..geometry.blocks()).map(Pbn) {
                is_known[block.index()] = flash.ledger().write_pointer(block) == 0;
            }
            for block in map.data.iter().filter(|block| block.is_some()) {
                is_known[block.index()] = true;
            }
        }
        let per_die = geometry.blocks_per_die;
        let usable = per_die - self.options.map.map_blocks;
        let blocks = (0..geometry.blocks()).map(Pbn);
        blocks.filter(move |&block| !is_known[block.index()] && block.0 % per_die < usable)
    }

    /// The heads of some blocks: one OOB read a block, more where a power cut has spoilt pages.
    fn read_heads<F: Flash>(
        &self,
        blocks: Vec<Pbn>,
        scan: &mut Scan,
        flash: &mut F,
    ) -> Result<Vec<Head>, F::Error> {
        let mut heads = Vec::with_capacity(blocks.len());
        for block in blocks {
            heads.extend(self.read_head(block, scan, flash)?);
        }
        Ok(heads)
    }

    fn read_head<F: Flash>(
        &self,
        block: Pbn,
        scan: &mut Scan,
        flash: &mut F,
    ) -> Result<Option<Head>, F::Error> {
        let written = flash.ledger().write_pointer(block);
        for position in 0..written.max(1) {
            let at = self.space.geometry.ppn(block, position);
            // Of a blank block the first page is read to see that it is one.
            if written > 0 && !flash.ledger().is_programmed(at) {
                continue;
            }
            if let Some(SpareRead { read, bytes }) = scan.read_page(at, flash)? {
                let state = bytes.first_chunk().copied().map(u64::from_le_bytes);
                return Ok(Some(Head {
                    block,
                    position,
                    read,
                    state: state.unwrap_or_default(),
                }));
            }
        }
        Ok(None)
    }

    /// The blocks of the snapshot and its bytes, if there is one and it is whole.
    fn read_snapshot<F: Flash>(
        &self,
        heads: &[Head],
        flash: &mut F,
    ) -> Result<Option<Snapshot>, F::Error> {
        let geometry = &self.space.geometry;
        let first_page_of: HashMap<u64, Pbn> = heads
            .iter()
            .filter(|head| is_snapshot(head))
            .map(|head| (u64::from(head.read.oob.lpn.0), head.block))
            .collect();
        let blocks: Vec<Pbn> = first_page_of.values().copied().collect();
        let state = state_of(flash, self.options.map.map_blocks, &blocks);
        let mut snapshots = heads.iter().filter(|head| is_snapshot(head));
        if snapshots.any(|head| head.state != state) {
            return Ok(None);
        }
        let (dies, per_block) = (
            u64::from(geometry.dies),
            u64::from(geometry.pages_per_block),
        );
        let mut content = Vec::new();
        for i in 0..self.plan.layout.pages(flash.ledger().page_bytes()) {
            let (row, die) = (i / dies, i % dies);
            let first = (row - row % per_block) * dies + die;
            let Some(&block) = first_page_of.get(&first) else {
                return Ok(None);
            };
            let at = geometry.ppn(block, (row % per_block) as u32);
            let before = content.len();
            if flash.ledger().is_programmed(at) {
                let take = |bytes: &[u8]| content.extend_from_slice(bytes);
                flash.read_map(at, take, F::Token::default())?;
            }
            if content.len() == before {
                return Ok(None);
            }
        }
        Ok(Some(Snapshot { blocks, content }))
    }

    /// The tables that snapshot and heads make; `None` if they contradict each other.
    fn interpret<F: Flash>(
        &mut self,
        map: Option<&BlockMap>,
        heads: &[Head],
        content: &[u8],
        flash: &F,
    ) -> Option<KnownBlocks> {
        let geometry = &self.space.geometry;
        let (segments, pages) = self.plan.layout.read(content);
        let mut data = match map {
            Some(map) => map.data.clone(),
            None => vec![Pbn::NONE; self.space.logical_blocks() as usize],
        };
        let mut sequential: HashMap<Pbn, Vec<bool>> = HashMap::new();
        for (die, blocks) in segments.iter().flat_map(|blocks| (0..).zip(blocks)) {
            if let Some((index, programmed)) = blocks {
                sequential.insert(geometry.pbn(die, *index), programmed.clone());
            }
        }
        let mut random: Vec<Vec<&Head>> = vec![Vec::new(); geometry.dies as usize];
        let (mut logs, mut segment_of) = (Vec::new(), HashMap::new());
        for head in heads.iter().filter(|head| !is_snapshot(head)) {
            if Heat::of_role(head.read.oob.role).is_some() {
                random[geometry.die_of(head.block) as usize].push(head);
                continue;
            }
            let local = self.space.local_lpn(head.read.oob.lpn)?;
            let (lbn, offset) = geometry.by_pages().div_rem(local.0);
            let lbn = Lbn(lbn);
            if offset != head.position || lbn.0 / self.plan.segments != geometry.die_of(head.block)
            {
                return None;
            }
            if let Some(programmed) = sequential.remove(&head.block) {
                segment_of.insert(head.block, lbn.0 % self.plan.segments);
                logs.push(known_sequential(
                    head,
                    lbn,
                    &programmed,
                    geometry.pages_per_block,
                ));
            } else if map.is_none() && data[lbn.index()].is_none() {
                data[lbn.index()] = head.block;
            } else {
                return None;
            }
        }
        if !sequential.is_empty() {
            return None;
        }
        self.segments = seq_ids(&segments, geometry, &segment_of)?;
        let mut known = Vec::new();
        for (heads, pages) in random.iter().zip(&pages) {
            self.interpret_random(heads, pages, &mut known, flash)?;
        }
        // A page is live in the first that names it, and the random log blocks hold the newer copies.
        known.append(&mut logs);
        Some(KnownBlocks {
            data,
            logs: known,
            kept: self.blocks.clone(),
        })
    }

    /// The random log blocks of a die, by the entries of its pages.
    fn interpret_random<F: Flash>(
        &mut self,
        heads: &[&Head],
        entries: &LogPages,
        known: &mut Vec<KnownLog>,
        flash: &F,
    ) -> Option<()> {
        let geometry = &self.space.geometry;
        let per_block = geometry.pages_per_block as usize;
        if heads.len() > self.plan.random_blocks as usize {
            return None;
        }
        let (entries, rest) = entries.split_at(heads.len() * per_block);
        if rest.iter().any(Option::is_some) {
            return None;
        }
        for (head, entries) in heads.iter().zip(entries.chunks_exact(per_block)) {
            let mut pages = Vec::new();
            for (position, entry) in (0..).zip(entries) {
                let Some((lpn, updates)) = *entry else {
                    continue;
                };
                let at = geometry.ppn(head.block, position);
                if !flash.ledger().is_programmed(at) {
                    return None;
                }
                pages.push((position, self.space.local_lpn(lpn)?));
                if updates > 0 {
                    self.updates.insert(at, updates);
                }
            }
            let host_positions = self.plan.host_pages_per_block;
            known.push(KnownLog {
                block: head.block,
                role: head.read.oob.role,
                first: head.read.sequence,
                pages,
                host_pages: flash
                    .ledger()
                    .programmed_pages(head.block)
                    .min(host_positions),
            });
        }
        Some(())
    }

    /// Notes what the summary of a random log block tells. Returns whether there is one.
    fn read_summary<F: Flash>(
        &self,
        scan: &mut Scan,
        block: Pbn,
        flash: &mut F,
    ) -> Result<bool, F::Error> {
        let geometry = &self.space.geometry;
        let positions = self.plan.host_pages_per_block;
        let mut content = Vec::new();
        let take = |bytes: &[u8]| content.extend_from_slice(bytes);
        flash.read_map(geometry.ppn(block, positions), take, F::Token::default())?;
        if content.is_empty() {
            return Ok(false);
        }
        let (partition, pages) = summary::read(&content, positions);
        for (position, page) in (0..).zip(pages) {
            let at = geometry.ppn(block, position);
            let read = match page {
                Some((lpn, sequence)) => Some(OobRead {
                    oob: Oob::new(lpn, partition.role()),
                    sequence,
                }),
                None => {
                    let (found, _) = flash.read_oob(at, Cause::Map, F::Token::default())?;
                    found.map(|found| found.read)
                }
            };
            if let Some(read) = read {
                scan.set_page(at, read);
            }
        }
        Ok(true)
    }
}

fn is_snapshot(head: &Head) -> bool {
    let Oob { role, tag, .. } = head.read.oob;
    role == Role::Map && tag == SNAPSHOT_TAG && head.position == 0
}

fn known_sequential(head: &Head, lbn: Lbn, programmed: &[bool], pages_per_block: u32) -> KnownLog {
    let programmed = (0..pages_per_block).filter(|&offset| programmed[offset as usize]);
    let pages: Vec<_> = programmed
        .map(|offset| (offset, DieLpn(lbn.0 * pages_per_block + offset)))
        .collect();
    KnownLog {
        block: head.block,
        role: Role::LogSequential,
        first: head.read.sequence,
        host_pages: pages.len() as u32,
        pages,
    }
}

/// The segments of the snapshot's entries in their order; `None` if the blocks of an entry are of several.
fn seq_ids(
    segments: &[SegmentBlocks],
    geometry: &Geometry,
    segment_of: &HashMap<Pbn, u32>,
) -> Option<Vec<u32>> {
    let segment_of_entry = |blocks: &SegmentBlocks| {
        let blocks = (0..).zip(blocks);
        let blocks = blocks.filter_map(|(die, block)| Some((die, block.as_ref()?.0)));
        let mut segments = blocks.map(|(die, i)| segment_of.get(&geometry.pbn(die, i)).copied());
        let first = segments.next()??;
        segments
            .all(|segment| segment == Some(first))
            .then_some(first)
    };
    segments.iter().map(segment_of_entry).collect()
}

impl LastPlusPlus {
    pub(super) fn mount<F: Flash>(
        space: &Space,
        options: &LastPlusPlusOptions,
        means: RecoveryMode,
        flash: &mut F,
    ) -> Result<Self, MountError<F::Error>> {
        let (plan, hybrid) = Self::plan(space, options)?;
        let logs = Logs::new(space, options, &plan);
        let mut kept = Kept {
            space,
            options,
            plan: &plan,
            blocks: Vec::new(),
            segments: Vec::new(),
            updates: HashMap::new(),
        };
        let (h, found) = Hybrid::recover_with(space, &hybrid, means, logs, &mut kept, flash)?;
        let Kept {
            blocks,
            segments,
            updates,
            ..
        } = kept;
        let mut ftl = Self::new(h, options, plan);
        // A snapshot that is used keeps its blocks; another one has been erased.
        let done = if ftl.h.lent() > 0 {
            ftl.snapshot = blocks;
            for segment in segments {
                ftl.h.watch.segments.insert(segment);
            }
            ftl.mount_found(flash, found, &updates)
        } else {
            ftl.mount_found(flash, found, &HashMap::new())
        };
        done?;
        Ok(ftl)
    }

    /// The log blocks go where the roles of their pages say. There are never more of a kind on a die than before
    /// the power cut, because none becomes one of the other kind.
    fn mount_found<F: Flash>(
        &mut self,
        flash: &mut F,
        found: Vec<FoundLog>,
        updates: &HashMap<Ppn, u8>,
    ) -> Result<(), MountError<F::Error>> {
        self.check_random_logs(&found)?;
        self.order_dies(&found);
        for FoundLog { log, role, .. } in &found {
            if let Some(partition) = Heat::of_role(*role) {
                let block = self.h.log_block(*log);
                let counter = |position| {
                    let at = self.h.space().geometry.ppn(block, position);
                    updates.get(&at).copied().unwrap_or(0)
                };
                let valid = self.h.valid_pages(*log);
                let valid: Vec<_> = valid
                    .map(|(at, lpn, lbn)| (at, lpn, lbn, counter(at)))
                    .collect();
                self.h.watch.random.claim(*log, partition, &valid);
            }
        }
        for FoundLog { log, role, .. } in found {
            if Heat::of_role(role).is_some() {
                continue;
            }
            let Some(lbn) = self.may_adopt(log).then(|| self.h.claim(log)).flatten() else {
                self.h.merge_away(flash, log)?;
                continue;
            };
            // Without a snapshot Seq-IDs come in the order of the first pages: an entry is made with its first block.
            let segment = lbn.0 % self.plan.segments;
            if !self.h.watch.segments.contains(segment) {
                self.h.watch.segments.insert(segment);
            }
            self.h.watch.segments.taken(segment, log);
        }
        Ok(())
    }

    /// Whether a log block can be the sequential one of a logical block: aligned to it, on its die, and of a segment that
    /// has an entry or finds one.
    fn may_adopt(&self, log: Log) -> bool {
        let segments = &self.h.watch.segments;
        self.h.aligned_to(log).is_some_and(|lbn| {
            let (segment, die) = (lbn.0 % self.plan.segments, lbn.0 / self.plan.segments);
            die == self.h.die_of_log(log) && (segments.contains(segment) || !segments.is_full())
        })
    }

    /// Checks that there are no more random log blocks on a die than its tables have room for.
    fn check_random_logs(&self, found: &[FoundLog]) -> Result<(), Refusal> {
        let random = found
            .iter()
            .filter(|found| Heat::of_role(found.role).is_some());
        let mut counts = vec![0; self.dies() as usize];
        random.for_each(|found| counts[self.h.die_of_log(found.log) as usize] += 1);
        let (budget, most) = (self.plan.random_blocks, counts.into_iter().max());
        match most.filter(|&most| most > budget) {
            Some(most) => Err(Refusal::damaged(format!(
                "a die has {most} random log blocks in use, its budget is {budget}"
            ))),
            None => Ok(()),
        }
    }

    /// The die whose log blocks have the youngest page was written last.
    fn order_dies(&mut self, found: &[FoundLog]) {
        let mut last = vec![0; self.dies() as usize];
        for found in found {
            let die = &mut last[self.h.die_of_log(found.log) as usize];
            *die = found.last.max(*die);
        }
        let mut dies: Vec<u32> = (0..self.dies()).collect();
        dies.sort_by_key(|&die| last[die as usize]);
        for die in dies {
            self.die_order.move_to_back(DIES, die);
        }
    }
}
