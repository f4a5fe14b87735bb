//! `hint`: the host says which pages belong together, by reclaim unit handle (NVMe TP4146, flexible data placement) or
//! stream. What a collection moves out of units of an initially isolated handle goes to units common to all of these; a
//! persistently isolated handle has units of its own for moved pages too, as in FEMU.

use floatgate_core::Refusal;
use floatgate_core::address::Lpn;
use floatgate_core::geometry::Geometry;
use floatgate_core::state;

use crate::parts::placement::options::{Placement, within};
use crate::parts::placement::separation::{Keeps, Plan, Separation};
use crate::parts::placement::{Books, PageOptions};

/// Most handles: their numbers take six bits of an OOB.
const HANDLES_MAX: u32 = 64;

/// The handles, and the one that the request in work has named.
#[derive(Debug)]
pub struct Hint {
    handles: u32,
    persistent: u32,
    /// Groups that a request can name; 1 if none can be named.
    groups: u32,
    /// Handle and group of the request in work, and whether its number was not valid.
    handle: u32,
    group: u32,
    is_invalid: bool,
    /// By page: the handle of its last host write.
    handle_of: Vec<u8>,
    /// By handle: pages programmed.
    media: Vec<u64>,
    invalid: u64,
    missed: u64,
}

state!(Hint { handle_of, media, invalid, missed }
    fixed { handles, persistent, groups, handle, group, is_invalid });

impl Hint {
    /// Whether some handle is isolated initially only: these share one class for moved pages.
    fn has_common(handles: u32, persistent: u32) -> u32 {
        u32::from(persistent < handles)
    }
}

impl Separation for Hint {
    fn plan(options: &PageOptions) -> Result<Plan, Refusal> {
        let (handles, persistent) = (options.hint_handles, options.hint_persistent);
        within("hint_handles", handles, 1, HANDLES_MAX)?;
        within("hint_persistent", persistent, 0, handles)?;
        let classes = handles + persistent + Self::has_common(handles, persistent);
        Ok(Plan {
            classes,
            least_low: 2,
            beside_low: classes - 1,
            class_of_full: 0,
            first_moved: handles,
            is_apart: true,
            feeds_one: true,
            is_counted: true,
            keeps: Keeps {
                handle: true,
                ..Keeps::default()
            },
        })
    }

    fn new(options: &PageOptions, shape: &Geometry) -> Self {
        Self {
            handles: options.hint_handles,
            persistent: options.hint_persistent,
            groups: match options.placement {
                Placement::Hint => shape.dies,
                _ => 1,
            },
            handle: 0,
            group: 0,
            is_invalid: false,
            handle_of: vec![0; shape.logical_pages as usize],
            media: vec![0; options.hint_handles as usize],
            invalid: 0,
            missed: 0,
        }
    }

    fn of_host(&mut self, _: Lpn, _: u32, _: &Books) -> u32 {
        self.handle
    }

    fn of_moved(&mut self, _: Lpn, from_class: u32, _: u32, _: &Books) -> u32 {
        if from_class >= self.handles {
            return from_class;
        }
        let common = Self::has_common(self.handles, self.persistent);
        match from_class < self.persistent {
            true => self.handles + common + from_class,
            false => self.handles,
        }
    }

    fn wrote(&mut self, lpn: Lpn, _: &Books) {
        self.handle_of[lpn.index()] = self.handle as u8;
        self.media[self.handle as usize] += 1;
        self.invalid += u64::from(self.is_invalid);
    }

    fn moved(&mut self, lpn: Lpn) {
        self.media[usize::from(self.handle_of[lpn.index()])] += 1;
    }

    fn uses_streams(_: &PageOptions) -> bool {
        true
    }

    fn stream(&mut self, stream: Option<u32>) {
        let valid =
            stream.filter(|&s| u64::from(s) < u64::from(self.groups) * u64::from(self.handles));
        self.is_invalid = stream.is_some() && valid.is_none();
        let s = valid.unwrap_or(0);
        (self.group, self.handle) = (s / self.handles, s % self.handles);
    }

    fn group(&self) -> u32 {
        self.group
    }

    fn missed_group(&mut self) {
        self.missed += 1;
    }

    fn handle(&self, lpn: Lpn) -> u32 {
        self.handle_of[lpn.index()].into()
    }

    fn handle_in_work(&self) -> u32 {
        self.handle
    }

    fn found(&mut self, lpn: Lpn, handle: u32) -> Result<(), Refusal> {
        if handle >= self.handles {
            let text = format!("page {} was written under handle {handle}", lpn.0);
            return Err(Refusal::damaged(text));
        }
        self.handle_of[lpn.index()] = handle as u8;
        Ok(())
    }

    fn counters(&self, count: &mut dyn FnMut(&'static str, Option<u32>, u64)) {
        for (handle, &pages) in (0..).zip(&self.media) {
            count("handle_media", Some(handle), pages);
        }
        count("hint_invalid", None, self.invalid);
        count("hint_group_full", None, self.missed);
    }

    fn reset_counters(&mut self) {
        self.media.fill(0);
        (self.invalid, self.missed) = (0, 0);
    }

    fn audit(&self, _: &Books) -> Result<(), String> {
        let known = |&handle: &u8| u32::from(handle) < self.handles;
        match self.handle_of.iter().all(known) {
            true => Ok(()),
            false => Err("a page was written under a handle that does not exist".into()),
        }
    }
}
