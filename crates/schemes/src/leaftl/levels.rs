//! The levels of every group: newer segments above older ones.
//!
//! The segments of a group stand in one table, level by level, each level in ascending order. Ranges in a level do not
//! overlap, and no level is empty. A member of a segment that is also one of a segment above is stale.

use super::segments::{NO_LIST, PageSet, Piece, Segment};
use floatgate_core::address::Pbn;
use floatgate_core::state::{Passed, State, Tape};

/// What the map holds, for its memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Sizes {
    /// Segments.
    pub segments: u64,
    /// Those with a list.
    pub approximate: u64,
    /// Most levels of a group.
    pub levels: u32,
    /// Bytes of the lists.
    pub crb_bytes: u64,
}

/// All segments of an instance.
#[derive(Debug)]
pub struct Levels {
    groups: Vec<Vec<Segment>>,
    /// Members of approximate segments.
    lists: Vec<PageSet>,
    /// Lists that no segment has.
    free_lists: Vec<u32>,
    /// Scratch: the segments of a group before a change, and those that it displaces.
    before: Vec<Segment>,
    displaced: Vec<Segment>,
}

impl State for Levels {
    fn pass(&mut self, tape: &mut Tape<'_>) -> Passed {
        for group in &mut self.groups {
            tape.grows(group)?;
        }
        tape.grows(&mut self.lists)?;
        tape.grows(&mut self.free_lists)
    }
}

impl Levels {
    /// Groups without a segment.
    pub fn new(groups: u32) -> Self {
        Self {
            groups: vec![Vec::new(); groups as usize],
            lists: Vec::new(),
            free_lists: Vec::new(),
            before: Vec::new(),
            displaced: Vec::new(),
        }
    }

    /// Bytes of memory for that many groups and segments.
    pub fn ram_bytes(groups: u64, segments: u64) -> u64 {
        size_of::<Vec<Segment>>() as u64 * groups + size_of::<Segment>() as u64 * segments
    }

    /// Number of groups.
    pub fn groups(&self) -> u32 {
        self.groups.len() as u32
    }

    /// The segments of a group, from the top.
    #[cfg(test)]
    pub fn of_group(&self, group: u32) -> &[Segment] {
        &self.groups[group as usize]
    }

    /// The uppermost segment of a group that has page `x` among its members.
    #[inline]
    pub fn find(&self, group: u32, x: u32) -> Option<&Segment> {
        let mut above = self.groups[group as usize].iter();
        above.find(|segment| segment.spans(x) && self.is_member(segment, x))
    }

    #[inline]
    fn is_member(&self, segment: &Segment, x: u32) -> bool {
        if segment.is_approximate() {
            self.lists[segment.list as usize].has(x)
        } else {
            segment.steps_on(x)
        }
    }

    /// The members of a segment.
    pub fn members(&self, segment: &Segment) -> PageSet {
        if segment.is_approximate() {
            return self.lists[segment.list as usize];
        }
        let mut members = PageSet::default();
        let pages = u32::from(segment.first)..=u32::from(segment.last);
        pages
            .step_by(segment.step() as usize)
            .for_each(|x| members.insert(x));
        members
    }

    /// Takes members from a segment; `false` if none is left and it is gone.
    fn trim(&mut self, segment: &mut Segment, gone: &PageSet) -> bool {
        let left = self.members(segment).without(gone);
        let Some((first, last)) = left.ends() else {
            self.drop_list(segment);
            return false;
        };
        (segment.first, segment.last) = (first, last);
        if segment.is_approximate() {
            self.lists[segment.list as usize] = left;
        }
        true
    }

    fn drop_list(&mut self, segment: &Segment) {
        if segment.is_approximate() {
            self.free_lists.push(segment.list);
        }
    }

    /// The segment of a piece, with a list if it needs one.
    fn made_of(&mut self, piece: &Piece) -> Segment {
        let mut segment = piece.segment;
        if !piece.is_approximate {
            return segment;
        }
        segment.list = self.free_lists.pop().unwrap_or_else(|| {
            self.lists.push(PageSet::default());
            self.lists.len() as u32 - 1
        });
        self.lists[segment.list as usize] = piece.members;
        segment
    }

    /// Puts the new segments of a group on top.
    pub fn insert(&mut self, group: u32, new: &[Piece]) {
        let mut before = std::mem::take(&mut self.before);
        let mut after = std::mem::take(&mut self.groups[group as usize]);
        before.clear();
        before.append(&mut after);
        let ones = before.partition_point(|segment| segment.level == 1);
        self.displace(&before[..ones], new, &mut after);
        for piece in new {
            let segment = self.made_of(piece);
            after.push(segment);
        }
        after.sort_unstable_by_key(|segment| segment.first);
        self.sink(&before[ones..], &mut after);
        self.groups[group as usize] = after;
        self.before = before;
    }

    /// Takes the new pages out of level 1; what still overlaps a new segment is displaced, the others stay.
    fn displace(&mut self, level: &[Segment], new: &[Piece], after: &mut Vec<Segment>) {
        let mut pages = PageSet::default();
        new.iter().for_each(|piece| pages.add(&piece.members));
        let is_below = |s: &Segment| new.iter().any(|piece| piece.segment.overlaps(s));
        self.displaced.clear();
        for &segment in level {
            let mut segment = segment;
            if !is_below(&segment) {
                after.push(segment);
            } else if self.trim(&mut segment, &pages) {
                if is_below(&segment) {
                    segment.level = 2;
                    self.displaced.push(segment);
                } else {
                    after.push(segment);
                }
            }
        }
    }

    /// Adds the displaced segments and the levels below 1 to a group: together with level 2 if they all fit there, else as a
    /// level of their own above it.
    fn sink(&mut self, below: &[Segment], after: &mut Vec<Segment>) {
        if self.displaced.is_empty() {
            after.extend_from_slice(below);
            return;
        }
        let twos = below.partition_point(|segment| segment.level == 2);
        let (level, rest) = below.split_at(twos);
        let clashes = |s: &Segment| level.iter().any(|other| other.overlaps(s));
        let begin = after.len();
        after.append(&mut self.displaced);
        if after[begin..].iter().any(clashes) {
            after.extend(below.iter().map(|&segment| Segment {
                level: segment.level + 1,
                ..segment
            }));
        } else {
            after.extend_from_slice(level);
            after[begin..].sort_unstable_by_key(|segment| segment.first);
            after.extend_from_slice(rest);
        }
    }

    /// Removes the segments of a block from a group, and levels that are empty then.
    pub fn forget(&mut self, group: u32, block: Pbn) {
        let mut segments = std::mem::take(&mut self.groups[group as usize]);
        segments.retain(|segment| {
            if segment.block == block {
                self.drop_list(segment);
            }
            segment.block != block
        });
        let (mut old, mut new) = (0, 0);
        for segment in &mut segments {
            new += u32::from(segment.level != old);
            old = segment.level;
            segment.level = new;
        }
        self.groups[group as usize] = segments;
    }

    /// Takes the stale members out of a group, those in `covered` first, and moves what is left as far up as it goes.
    pub fn compact(&mut self, group: u32, mut covered: PageSet) {
        let mut before = std::mem::take(&mut self.before);
        let mut after = std::mem::take(&mut self.groups[group as usize]);
        before.clear();
        before.append(&mut after);
        // By page: the lowest level that has a segment across it.
        let mut lowest = [0; super::segments::GROUP_PAGES_MAX as usize];
        for level in before.chunk_by(|a, b| a.level == b.level) {
            let begin = after.len();
            for &segment in level {
                let mut segment = segment;
                if self.trim(&mut segment, &covered) {
                    let range = usize::from(segment.first)..=usize::from(segment.last);
                    let above = lowest[range.clone()].iter().copied().max();
                    segment.level = above.unwrap_or(0) + 1;
                    lowest[range].fill(segment.level);
                    after.push(segment);
                }
            }
            for segment in &after[begin..] {
                covered.add(&self.members(segment));
            }
        }
        after.sort_unstable_by_key(|segment| (segment.level, segment.first));
        self.groups[group as usize] = after;
        self.before = before;
    }

    /// What it all takes.
    pub fn sizes(&self) -> Sizes {
        let mut sizes = Sizes::default();
        for group in &self.groups {
            sizes.segments += group.len() as u64;
            sizes.levels = sizes.levels.max(group.last().map_or(0, |s| s.level));
            for segment in group.iter().filter(|segment| segment.is_approximate()) {
                let bitmap = u32::from(segment.last - segment.first) / 8 + 1;
                let members = self.lists[segment.list as usize].len();
                sizes.approximate += 1;
                sizes.crb_bytes += u64::from(1 + members.min(bitmap));
            }
        }
        sizes
    }

    /// Checks the order of the levels and that every list belongs to one segment, on a die of that many blocks.
    ///
    /// # Errors
    /// What does not agree.
    pub fn audit(&self, group_pages: u32, blocks: u32) -> Result<(), String> {
        let mut owned = vec![false; self.lists.len()];
        let mut own = |list: u32| {
            let owned = owned.get_mut(list as usize)?;
            (!std::mem::replace(owned, true)).then_some(())
        };
        for (g, group) in self.groups.iter().enumerate() {
            let mut previous: Option<&Segment> = None;
            for segment in group {
                let follows = match previous {
                    None => segment.level == 1,
                    Some(p) if p.level == segment.level => p.last < segment.first,
                    Some(p) => p.level + 1 == segment.level,
                };
                let is_line = segment.x0 <= segment.first
                    && segment.first <= segment.last
                    && u32::from(segment.last) < group_pages
                    && segment.block.0 < blocks
                    && (segment.is_approximate() || segment.step() > 0);
                if !follows || !is_line {
                    return Err(format!("group {g}: {segment:?} after {previous:?}"));
                }
                let ends = Some((segment.first, segment.last));
                if segment.list != NO_LIST && own(segment.list).is_none()
                    || self.members(segment).ends() != ends
                {
                    return Err(format!("group {g}: the members of {segment:?}"));
                }
                previous = Some(segment);
            }
        }
        let all_free = self.free_lists.iter().all(|&list| own(list).is_some());
        match all_free && owned.iter().all(|&owned| owned) {
            true => Ok(()),
            false => Err("a list of members belongs to no segment, or to two".into()),
        }
    }
}
