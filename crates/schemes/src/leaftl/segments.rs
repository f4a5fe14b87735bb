//! Segments: lines through the places of pages, and how they are cut out of the points of a block.

use floatgate_core::address::Pbn;
use floatgate_core::state;

/// Most pages of a group: what one byte numbers.
pub const GROUP_PAGES_MAX: u32 = 256;

/// Some pages of a group.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PageSet {
    words: [u64; 4],
}

state!(PageSet { words });

impl PageSet {
    /// Adds a page.
    #[inline]
    pub fn insert(&mut self, x: u32) {
        self.words[x as usize / 64] |= 1 << (x % 64);
    }

    /// Whether a page is in it.
    #[inline(always)]
    pub fn has(&self, x: u32) -> bool {
        self.words[x as usize / 64] >> (x % 64) & 1 != 0
    }

    /// Adds all pages of another set.
    #[inline]
    pub fn add(&mut self, other: &Self) {
        for (mine, theirs) in self.words.iter_mut().zip(other.words) {
            *mine |= theirs;
        }
    }

    /// The pages that are not in the other set.
    #[inline]
    pub fn without(&self, other: &Self) -> Self {
        let mut left = *self;
        for (mine, theirs) in left.words.iter_mut().zip(other.words) {
            *mine &= !theirs;
        }
        left
    }

    /// Number of pages.
    pub fn len(&self) -> u32 {
        self.words.iter().map(|word| word.count_ones()).sum()
    }

    /// The smallest and the largest page, if there is one.
    pub fn ends(&self) -> Option<(u8, u8)> {
        let low = self.words.iter().position(|&word| word != 0)?;
        let high = self.words.iter().rposition(|&word| word != 0)?;
        let first = 64 * low as u32 + self.words[low].trailing_zeros();
        let last = 64 * high as u32 + 63 - self.words[high].leading_zeros();
        Some((first as u8, last as u8))
    }
}

/// A page of a group, and its page in the block that is learned.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Point {
    /// Page in the group.
    pub x: u8,
    /// Page in the block.
    pub y: u16,
}

/// No list: the segment is accurate.
pub const NO_LIST: u32 = u32::MAX;

/// A line from pages of a group to pages of a block.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Segment {
    /// The block, counted from the first of the die.
    pub block: Pbn,
    /// Its level, from 1.
    pub level: u32,
    /// Number of the list of its members; [`NO_LIST`]: it is accurate.
    pub list: u32,
    /// Page of `x0` in the block.
    pub y0: u16,
    /// Approximate: the slope in 1/256. Accurate: the step in the group, above it (8 bits) the step in the block.
    pub slope: u16,
    /// The page that the line begins with; it need not be a member any more.
    pub x0: u8,
    /// Smallest member.
    pub first: u8,
    /// Largest member.
    pub last: u8,
}

state!(Segment {
    block,
    level,
    list,
    y0,
    slope,
    x0,
    first,
    last
});

impl Segment {
    /// Whether it needs a list of its members.
    #[inline(always)]
    pub fn is_approximate(&self) -> bool {
        self.list != NO_LIST
    }

    /// Of an accurate segment: its step in the group.
    #[inline(always)]
    pub fn step(&self) -> u32 {
        u32::from(self.slope & 0xFF)
    }

    /// Whether a page is between its smallest and its largest member.
    #[inline(always)]
    pub fn spans(&self, x: u32) -> bool {
        u32::from(self.first) <= x && x <= u32::from(self.last)
    }

    /// Whether the ranges of two segments have a page in common.
    #[inline]
    pub fn overlaps(&self, other: &Self) -> bool {
        self.first <= other.last && other.first <= self.last
    }

    /// Of an accurate segment: whether a page in its range is a member.
    #[inline(always)]
    pub fn steps_on(&self, x: u32) -> bool {
        (x - u32::from(self.first)).is_multiple_of(self.step())
    }

    /// The page of the block where it puts a member. Of an approximate segment this may be past the end of the block.
    #[inline(always)]
    pub fn predict(&self, x: u32) -> u32 {
        let (dx, y0) = (x - u32::from(self.x0), u32::from(self.y0));
        if self.is_approximate() {
            y0 + ((u32::from(self.slope) * dx + 128) >> 8)
        } else {
            y0 + dx / self.step() * u32::from(self.slope >> 8)
        }
    }
}

/// A segment just learned, with its members. It is in no level yet and has no list; [`Piece::is_approximate`] says whether
/// it will need one.
#[derive(Clone, Copy, Debug)]
pub struct Piece {
    /// The segment.
    pub segment: Segment,
    /// Its members.
    pub members: PageSet,
    /// Its kind.
    pub is_approximate: bool,
}

/// The slopes, in 1/256, that put every point of a segment within the error bound.
struct Cone {
    low: i64,
    high: i64,
}

impl Cone {
    /// Narrows the cone by a point at that distance. `None` if no slope is left.
    fn with(&self, dx: i64, dy: i64, gamma: i64) -> Option<Self> {
        // Rounded to the nearest page, so half a page less one part and half a page either way.
        let above = 256 * (dy - gamma) - 128;
        let low = self.low.max(-(-above).div_euclid(dx));
        let high = self.high.min((256 * (dy + gamma) + 127).div_euclid(dx));
        (low <= high).then_some(Self { low, high })
    }
}

/// Cuts points of one group in `block`, ascending, into segments, each as long as a line within `gamma` pages of its points
/// can be from its first point on.
pub fn cut(points: &[Point], block: Pbn, gamma: u32, pieces: &mut Vec<Piece>) {
    let mut rest = points;
    while let Some(start) = rest.first() {
        let mut cone = Cone {
            low: 0,
            high: u16::MAX.into(),
        };
        let mut joined = 1;
        for point in &rest[1..] {
            let dx = i64::from(point.x) - i64::from(start.x);
            let dy = i64::from(point.y) - i64::from(start.y);
            let Some(narrower) = cone.with(dx, dy, gamma.into()) else {
                break;
            };
            cone = narrower;
            joined += 1;
        }
        pieces.push(piece(&rest[..joined], block, &cone));
        rest = &rest[joined..];
    }
}

fn piece(points: &[Point], block: Pbn, cone: &Cone) -> Piece {
    let (first, last) = (points[0], points[points.len() - 1]);
    let mut members = PageSet::default();
    points.iter().for_each(|p| members.insert(p.x.into()));
    let steps = even_steps(points);
    let slope = steps.map_or(((cone.low + cone.high) / 2) as u16, |(d, e)| {
        u16::from(d) | u16::from(e) << 8
    });
    Piece {
        segment: Segment {
            block,
            level: 1,
            list: NO_LIST,
            y0: first.y,
            slope,
            x0: first.x,
            first: first.x,
            last: last.x,
        },
        members,
        is_approximate: steps.is_none(),
    }
}

/// The steps in group and block, if all are alike and fit a byte.
fn even_steps(points: &[Point]) -> Option<(u8, u8)> {
    let [a, b, ..] = points else {
        return Some((1, 1));
    };
    let step = |a: &Point, b: &Point| (b.x - a.x, i32::from(b.y) - i32::from(a.y));
    let (d, e) = step(a, b);
    let e = u8::try_from(e).ok().filter(|&e| e > 0)?;
    let is_even = |pair: &[Point]| step(&pair[0], &pair[1]) == (d, i32::from(e));
    points.windows(2).all(is_even).then_some((d, e))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn points(list: &[(u8, u16)]) -> Vec<Point> {
        list.iter().map(|&(x, y)| Point { x, y }).collect()
    }

    fn learned(list: &[(u8, u16)], gamma: u32) -> Vec<Piece> {
        let mut pieces = Vec::new();
        cut(&points(list), Pbn(0), gamma, &mut pieces);
        pieces
    }

    /// Section 12, row 2: pages 0, 1, 3, 6 at 0, 1, 2, 3.
    #[test]
    fn the_cone_gives_the_slope_of_the_example() {
        let [only] = learned(&[(0, 0), (1, 1), (3, 2), (6, 3)], 1)[..] else {
            panic!("one segment");
        };
        assert!(only.is_approximate);
        assert_eq!(only.segment.slope, 127);
        let exact = learned(&[(0, 0), (1, 1), (3, 2), (9, 3), (10, 1)], 0);
        let ranges = exact.iter().map(|p| (p.segment.first, p.segment.last));
        let kinds = exact.iter().map(|p| p.is_approximate);
        assert_eq!(ranges.collect::<Vec<_>>(), [(0, 3), (9, 9), (10, 10)]);
        assert_eq!(kinds.collect::<Vec<_>>(), [true, false, false]);
    }

    /// Whatever the points, every one is predicted within the bound, and the next one would not have been.
    #[test]
    fn every_point_is_within_the_bound_and_no_segment_could_go_on() {
        let mut rng = floatgate_core::rng::SplitMix64::new(5);
        for _ in 0..20_000 {
            let gamma = [0, 1, 4, 16, 32][rng.below(5) as usize];
            let (sparse, pages) = (1 + rng.below(5), 1 + rng.below(300) as u16);
            let mut all = Vec::new();
            for x in 0..=u8::MAX {
                let spread = 1 + rng.below(40);
                let y = (u16::from(x) + rng.below(spread) as u16) % pages;
                if rng.below(sparse) == 0 {
                    all.push(Point { x, y });
                }
            }
            let mut pieces = Vec::new();
            cut(&all, Pbn(0), gamma, &mut pieces);
            let mut seen = 0;
            for p in &pieces {
                let slopes = 0..=u32::from(u16::MAX);
                let mut segment = p.segment;
                segment.list = if p.is_approximate { 0 } else { NO_LIST };
                let here = &all[seen..seen + p.members.len() as usize];
                let off = |s: &Segment, q: &Point| s.predict(q.x.into()).abs_diff(q.y.into());
                let bound = if p.is_approximate { gamma } else { 0 };
                assert!(here.iter().all(|q| off(&segment, q) <= bound));
                seen += here.len();
                // One page further no slope at all is within the bound; tried on a few, for it takes long.
                if seen < all.len() && rng.below(400) == 0 {
                    let with_next = &all[seen - here.len()..=seen];
                    segment.list = 0;
                    for slope in slopes {
                        segment.slope = slope as u16;
                        assert!(with_next.iter().any(|q| off(&segment, q) > gamma));
                    }
                }
            }
            assert_eq!(seen, all.len());
        }
    }

    #[test]
    fn a_set_knows_its_ends() {
        let mut set = PageSet::default();
        assert_eq!(set.ends(), None);
        for x in [255, 64, 100] {
            set.insert(x);
        }
        assert_eq!((set.ends(), set.len()), (Some((64, 255)), 3));
        let mut gone = PageSet::default();
        gone.insert(255);
        assert_eq!(set.without(&gone).ends(), Some((64, 100)));
        assert!(set.has(255) && !set.without(&gone).has(255));
    }
}
