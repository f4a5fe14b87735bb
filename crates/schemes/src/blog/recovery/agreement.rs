//! Whether the sub-tables that the scan found lead to the live pages, and in which slots of the DLT row the log
//! blocks of a logical block were.

use super::found::Found;
use crate::blog::{Blog, Layout};
use floatgate_core::address::{DieLpn, Lbn, Pbn, Ppn};
use floatgate_core::flash::{Cause, Flash};
use floatgate_core::ftl::MountError;

impl Blog {
    /// Whether all live pages of a logical block lie in its data block and at most `u` log blocks, and its sub-tables
    /// say where. Finds the sub-tables.
    pub(super) fn is_as_before<F: Flash>(
        &mut self,
        flash: &mut F,
        found: &mut Found,
        lbn: Lbn,
        u: u32,
    ) -> Result<bool, MountError<F::Error>> {
        let held = &found.held[lbn.index()];
        // By mapping a DLT row has no holes. By validity only the sub-tables know, and each log block has a live page.
        let known = self.layout == Layout::Slc || !self.by_validity;
        let mut slots: Vec<Option<u32>> =
            (0..held.len() as u32).map(|i| known.then_some(i)).collect();
        let is_known = |at| {
            let block = self.space.geometry.block_of(at);
            block == self.data[lbn.index()] || held.iter().any(|&(_, log)| log == block)
        };
        if held.len() > u as usize || !self.places(lbn).all(is_known) {
            return Ok(false);
        }
        if self.layout == Layout::Slc {
            found.slots[lbn.index()] = slots.into_iter().flatten().collect();
            return Ok(true);
        }
        for group in 0..self.groups {
            let pages = self
                .group_pages(group)
                .map(|p| DieLpn(lbn.0 * self.pages() + p));
            let live = pages.filter(|lpn| self.place[lpn.index()].is_some());
            let Some(newest) = live.max_by_key(|lpn| found.sequence[lpn.index()]) else {
                continue;
            };
            let at = self.place[newest.index()];
            let in_directory = self.directory_at(lbn, group);
            if self.directory[in_directory] == at {
                continue;
            }
            let agrees = match found.bytes.of(in_directory, at) {
                Some(bytes) => self.leads_to_pages((held, &mut slots), lbn, group, at, bytes),
                None => {
                    let read = flash.read_oob(at, Cause::Map, F::Token::default());
                    let (found, _) = read.map_err(MountError::Flash)?;
                    found.is_some_and(|found| {
                        let held = (&held[..], &mut slots[..]);
                        self.leads_to_pages(held, lbn, group, at, &found.bytes)
                    })
                }
            };
            if !agrees {
                return Ok(false);
            }
            self.directory[in_directory] = at;
        }
        let slots: Option<Vec<u32>> = slots.into_iter().collect();
        let is_whole = slots
            .as_ref()
            .is_some_and(|slots| slots.iter().all(|&slot| slot < u));
        found.slots[lbn.index()] = slots.unwrap_or_default();
        Ok(is_whole)
    }

    /// Whether the sub-table in the OOB of page `at` leads to all live pages of its group, through log blocks in those
    /// slots of the DLT row that are known. What is not known yet it tells.
    fn leads_to_pages(
        &self,
        (held, slots): (&[(u64, Pbn)], &mut [Option<u32>]),
        lbn: Lbn,
        group: u32,
        at: Ppn,
        bytes: &[u8],
    ) -> bool {
        self.group_pages(group).zip(0..).all(|(p, i)| {
            let place = self.place[(lbn.0 * self.pages() + p) as usize];
            let index = self.format.unpack(bytes, i);
            let index = self.without_inheritance(lbn, at, index);
            if place.is_none() {
                return true;
            }
            let block = if index.log {
                let log = self.space.geometry.block_of(place);
                let among = held.iter().position(|&(_, held)| held == log);
                if let Some(i) = among
                    && slots[i].is_none()
                    && !slots.contains(&Some(index.position))
                {
                    slots[i] = Some(index.position);
                }
                let i = slots.iter().position(|&slot| slot == Some(index.position));
                i.map(|i| held[i].1)
            } else {
                Some(self.data[lbn.index()])
            };
            let leads_to = block.map(|block| self.space.geometry.ppn(block, index.offset));
            leads_to == Some(place)
        })
    }
}
