//! Which block each page claims to belong to, and whether these claims agree.

use floatgate_core::{Geometry, Pbn};

use super::finding::Severity;
use crate::nand::{Place, PlaceKind};

/// A finding about a claim: how bad, its name, in words.
pub(super) type Objection = (Severity, &'static str, String);

/// The claims of all blocks.
pub(super) struct Claims {
    /// The shape of the chip, ...
    chip: Geometry,
    /// ... and the one that the scheme sees.
    scheme: Geometry,
    /// What the first page of the current block claims.
    first: Option<Place>,
    /// The scheme's block, generation, physical block.
    found: Vec<(u32, u64, u32)>,
}

impl Claims {
    pub fn new(chip: &Geometry, scheme: Geometry) -> Self {
        Self {
            chip: chip.clone(),
            scheme,
            first: None,
            found: Vec::new(),
        }
    }

    /// Starts the pages of another block.
    pub fn next_block(&mut self) {
        self.first = None;
    }

    /// What is wrong with the claim of a readable page of a good block.
    pub fn page(&mut self, block: u32, position: u32, place: &Place) -> Option<Objection> {
        let error = |kind, text: String| Some((Severity::Error, kind, text));
        if place.kind == PlaceKind::Plain {
            return error(
                "unmanaged-page",
                "written without the layer of spare blocks".into(),
            );
        }
        let is_copy = place.kind == PlaceKind::Backup;
        if !is_copy && !self.is_possible(block, place) {
            let text = format!(
                "claims to belong to block {} in generation {}",
                place.block, place.generation
            );
            return error("claim-range", text);
        }
        if !is_copy && u32::from(place.page) != position {
            return error("claim-page", format!("claims to be page {}", place.page));
        }
        let Some(first) = self.first else {
            self.first = Some(*place);
            if !is_copy {
                self.found.push((place.block, place.generation, block));
            }
            return None;
        };
        let first_is_copy = first.kind == PlaceKind::Backup;
        let of_one_block = is_copy == first_is_copy
            && (is_copy || (place.block, place.generation) == (first.block, first.generation));
        if of_one_block {
            return None;
        }
        let text = format!(
            "belongs to block {} in generation {}, other pages here to block {} in generation {}",
            place.block, place.generation, first.block, first.generation
        );
        error("mixed-block", text)
    }

    fn is_possible(&self, block: u32, place: &Place) -> bool {
        place.block < self.scheme.blocks()
            && self.scheme.die_of(Pbn(place.block)) == self.chip.die_of(Pbn(block))
            && (1..1 << 63).contains(&place.generation)
    }

    /// Blocks that claim to be the same one: physical block and objection.
    pub fn rivals(mut self) -> Vec<(u32, Objection)> {
        self.found.sort_unstable();
        let mut rivals = Vec::new();
        for pair in self.found.windows(2).filter(|pair| pair[0].0 == pair[1].0) {
            let [(block, older, a), (_, newer, b)] = [pair[0], pair[1]];
            rivals.push(if older == newer {
                let text = format!("is block {block} in generation {newer}, and so is block {a}");
                (b, (Severity::Error, "same-generation", text))
            } else {
                let text = format!(
                    "is block {block} in generation {older}, block {b} in generation {newer}: a move was cut short"
                );
                (a, (Severity::Note, "two-generations", text))
            });
        }
        rivals
    }
}
