//! Every inconsistency of an image, by name.

use std::path::{Path, PathBuf};

use floatgate_core::{ProgramOrder, Refusal, Role};
use serde::Serialize;

use super::claims::Claims;
use super::finding::{Finding, Severity};
use super::format::{PageFault, PageHeader};
use super::reader::{BlockSeen, Reader, Slot};
use super::{ImageError, io};
use crate::nand::{BlockState, PlaceKind};
use crate::register::PAGE_ENTRIES;

/// Whether a scheme, by its name, accepts the options stored in an image; `None` for an unknown scheme.
pub type TakesOptions<'a> = dyn Fn(&str, &str) -> Option<Result<(), Refusal>> + 'a;

/// What a check found.
#[derive(Clone, Debug, Serialize)]
pub struct CheckReport {
    /// The image.
    pub path: PathBuf,
    /// Pages whose checksum is right.
    pub pages_good: u64,
    /// Pages erased.
    pub pages_erased: u64,
    /// Findings, in the order of the file.
    pub findings: Vec<Finding>,
}

impl CheckReport {
    /// Findings of a severity.
    pub fn count(&self, severity: Severity) -> usize {
        let same = self.findings.iter().filter(|f| f.severity == severity);
        same.count()
    }

    /// Whether there is no error; notes are allowed.
    pub fn is_sound(&self) -> bool {
        self.count(Severity::Error) == 0
    }

    fn add(
        &mut self,
        severity: Severity,
        kind: &'static str,
        place: (Option<u32>, Option<u32>),
        text: impl Into<String>,
    ) {
        self.findings.push(Finding {
            severity,
            kind,
            block: place.0,
            page: place.1,
            text: text.into(),
        });
    }
}

impl std::fmt::Display for CheckReport {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for finding in &self.findings {
            let severity = match finding.severity {
                Severity::Note => "note",
                Severity::Error => "error",
            };
            write!(f, "{severity:<6}{:<20}", finding.kind)?;
            match (finding.block, finding.page) {
                (Some(block), Some(page)) => write!(f, "block {block} page {page}: ")?,
                (Some(block), None) => write!(f, "block {block}: ")?,
                _ => {}
            }
            writeln!(f, "{}", finding.text)?;
        }
        writeln!(
            f,
            "{}: {}, {}; {} pages good, {} erased",
            self.path.display(),
            plural(self.count(Severity::Error), "error"),
            plural(self.count(Severity::Note), "note"),
            self.pages_good,
            self.pages_erased
        )
    }
}

fn plural(number: usize, word: &str) -> String {
    let ending = if number == 1 { "" } else { "s" };
    format!("{number} {word}{ending}")
}

/// Checks an image. Unreadable headers are reported as a finding.
///
/// # Errors
/// If the file cannot be read, or is in use.
pub fn check(path: &Path, takes_options: &TakesOptions<'_>) -> Result<CheckReport, ImageError> {
    let mut report = CheckReport {
        path: path.to_path_buf(),
        pages_good: 0,
        pages_erased: 0,
        findings: Vec::new(),
    };
    let mut reader = match Reader::open(path, false) {
        Ok(reader) => reader,
        Err(error @ (ImageError::Io { .. } | ImageError::Locked { .. })) => return Err(error),
        Err(error) => {
            report.add(
                Severity::Error,
                header_kind(&error),
                (None, None),
                error.to_string(),
            );
            return Ok(report);
        }
    };
    check_header(&reader, &mut report);
    if reader.check_length().is_err() {
        // With pages missing, the rest says little.
        return Ok(report);
    }
    check_scheme(&reader, takes_options, &mut report);
    reader.find_end().map_err(|e| io("read", path, e))?;
    check_register(&reader, &mut report).map_err(|e| io("read", path, e))?;
    check_entries(&reader, &mut report).map_err(|e| io("read", path, e))?;
    let Ok(seen_by_scheme) =
        crate::spares::virtual_geometry(&reader.header.geometry, &reader.header.spares)
    else {
        // Such a header is not accepted.
        return Ok(report);
    };
    let mut pass = Pass {
        claims: Claims::new(&reader.header.geometry, seen_by_scheme),
        tops: Vec::new(),
        bad_blocks: vec![0; reader.header.geometry.dies as usize],
        sequences: Vec::new(),
        unfinished: 0,
        data: vec![0; reader.header.page_bytes as usize],
        reader: &reader,
        report: &mut report,
    };
    for block in 0..reader.header.geometry.blocks() {
        pass.block(block).map_err(|e| io("read", path, e))?;
    }
    pass.duplicates();
    pass.whole_chip();
    Ok(report)
}

fn header_kind(error: &ImageError) -> &'static str {
    match error {
        ImageError::Magic => "magic",
        ImageError::Version { .. } => "version",
        ImageError::HeaderChecksum => "header-checksum",
        ImageError::Truncated { .. } => "truncated",
        _ => "header",
    }
}

fn check_header(reader: &Reader, report: &mut CheckReport) {
    let nowhere = (None, None);
    for (i, copy) in reader.copies.iter().enumerate() {
        if let Err(error) = copy {
            let why = match error {
                ImageError::HeaderChecksum => "its checksum is wrong".into(),
                other => other.to_string(),
            };
            let text = format!("header {i} is damaged, the other is used: {why}");
            report.add(Severity::Error, header_kind(error), nowhere, text);
        }
    }
    if let [Ok(a), Ok(b)] = &reader.copies {
        let (mut a, mut b) = (a.clone(), b.clone());
        (a.clean, a.exact, a.sequence, a.durable) = (false, false, 0, 0);
        (b.clean, b.exact, b.sequence, b.durable) = (false, false, 0, 0);
        if a != b {
            let text = "the two headers describe different images";
            report.add(Severity::Error, "headers-differ", nowhere, text);
        }
    }
    if let Err(error) = reader.check_length() {
        report.add(Severity::Error, "truncated", nowhere, error.to_string());
    }
    let expected = reader.layout.file_bytes;
    if reader.file_bytes > expected {
        let text = format!(
            "{} bytes after the end at {expected}",
            reader.file_bytes - expected
        );
        report.add(Severity::Error, "trailing-bytes", nowhere, text);
    }
    if !reader.header.clean {
        let text = "not closed in order: the next start has to recover";
        report.add(Severity::Note, "not-clean", nowhere, text);
    }
}

fn check_register(reader: &Reader, report: &mut CheckReport) -> std::io::Result<()> {
    let pages = reader.header.geometry.logical_pages as usize;
    for page in 0..pages.div_ceil(PAGE_ENTRIES) {
        let seen = Reader::register(&reader.disk, &reader.layout, page)?;
        for (copy, fault) in seen.faults.iter().enumerate() {
            let Some(fault) = fault else { continue };
            let text = format!(
                "copy {copy} of page {page}: {fault}; trims of logical pages {} to {} may be forgotten",
                page * PAGE_ENTRIES,
                pages.min((page + 1) * PAGE_ENTRIES) - 1
            );
            report.add(Severity::Error, "register", (None, None), text);
        }
    }
    Ok(())
}

/// Checks the entries of phase-change memory by themselves. What they name is the business of the next start: it believes
/// no entry that the flash has left behind.
fn check_entries(reader: &Reader, report: &mut CheckReport) -> std::io::Result<()> {
    let Some(seen) = reader.region()? else {
        return Ok(());
    };
    let mut add = |kind, text| report.add(Severity::Error, kind, (None, None), text);
    for (lpn, fault) in &seen.damaged {
        let text = format!(
            "entry of logical page {}: {fault}; the next start finds it by its spare area",
            lpn.0
        );
        add("pcm-entry", text);
    }
    if !reader.header.clean {
        return Ok(());
    }
    if let Some(fault) = seen.seal_fault {
        add("pcm-seal", format!("the seal of the entries: {fault}"));
    } else if let Some(seal) = seen.seal
        && seal.op == reader.header.durable
        && !seen.is_sealed_at(seal.op)
    {
        add(
            "pcm-seal",
            "the entries are not those that were sealed".into(),
        );
    }
    Ok(())
}

/// Checks what the header says about the scheme.
fn check_scheme(reader: &Reader, takes_options: &TakesOptions<'_>, report: &mut CheckReport) {
    let header = &reader.header;
    match takes_options(&header.scheme, &header.options) {
        Some(Ok(())) => {}
        Some(Err(refusal)) => {
            let text = format!("{} does not accept its options: {refusal}", header.scheme);
            report.add(Severity::Error, "options", (None, None), text);
        }
        None => {
            let text = format!("this program has no scheme {:?}", header.scheme);
            report.add(Severity::Note, "scheme", (None, None), text);
        }
    }
}

/// A page with a sequence number that should be unique.
struct Numbered {
    sequence: u64,
    page: u32,
    moved: bool,
}

struct Pass<'a> {
    reader: &'a Reader,
    report: &'a mut CheckReport,
    claims: Claims,
    /// By die.
    bad_blocks: Vec<u32>,
    /// Findings of unreadable pages that may have been the last of their block, with the die: if it has no spare left,
    /// these are failed programs.
    tops: Vec<(usize, u32)>,
    sequences: Vec<Numbered>,
    /// Pages that the next start discards.
    unfinished: usize,
    data: Vec<u8>,
}

impl Pass<'_> {
    fn add(&mut self, severity: Severity, kind: &'static str, page: u32, text: String) {
        let pages = self.reader.header.geometry.pages_per_block;
        let place = (Some(page / pages), Some(page % pages));
        self.report.add(severity, kind, place, text);
    }

    fn block(&mut self, block: u32) -> std::io::Result<()> {
        let seen = self.reader.block(block)?;
        for (i, fault) in seen.record_faults.iter().enumerate() {
            if let Some(fault) = fault {
                let text = format!("record {i}: {fault}");
                self.report
                    .add(Severity::Error, "block-record", (Some(block), None), text);
            }
        }
        self.wear(block, &seen);
        let stale = seen
            .slots
            .iter()
            .filter(|slot| matches!(slot, Slot::Stale(_)));
        let stale = stale.count();
        if stale > 0 {
            let text = format!(
                "{} from before its last erase not freed yet",
                plural(stale, "page")
            );
            self.report
                .add(Severity::Note, "stale-pages", (Some(block), None), text);
        }
        self.claims.next_block();
        let first = block * self.reader.header.geometry.pages_per_block;
        let mut below: Option<PageHeader> = None;
        for (page, slot) in (first..).zip(&seen.slots) {
            match slot {
                Slot::Erased | Slot::Stale(_) => self.report.pages_erased += 1,
                Slot::Unfinished => {
                    self.unfinished += 1;
                    self.report.pages_erased += 1;
                }
                Slot::Fault(fault) => self.fault(page, *fault, &seen),
                Slot::Programmed(header) => {
                    self.reader.data(page, &mut self.data)?;
                    self.page(page, header, &seen, &mut below);
                }
            }
        }
        Ok(())
    }

    /// A page that cannot be read. It is no loss where a failed or a cut program may have left it; a cut one only as
    /// long as the image has not been closed cleanly.
    fn unreadable(&mut self, kind: &'static str, page: u32, text: String, seen: &BlockSeen) {
        let geometry = &self.reader.header.geometry;
        let (block, position) = geometry.split(floatgate_core::Ppn(page));
        let mut above = seen.slots[position as usize + 1..].iter();
        // Where any program order is allowed, any page may have been the last.
        let is_top = geometry.program_order == ProgramOrder::Any
            || above.all(|slot| !matches!(slot, Slot::Fault(_) | Slot::Programmed(_)));
        let is_bad = seen.record.state != BlockState::Good;
        if is_top {
            let die = geometry.die_of(block);
            self.tops.push((self.report.findings.len(), die));
        }
        let severity = if is_bad || is_top && !self.reader.header.clean {
            Severity::Note
        } else {
            Severity::Error
        };
        self.add(severity, kind, page, text);
    }

    fn fault(&mut self, page: u32, fault: PageFault, seen: &BlockSeen) {
        let (kind, text) = match fault {
            PageFault::Checksum => (
                "page-header",
                "torn or rotten: its header fails the checksum".into(),
            ),
            PageFault::Misplaced { page } => ("misplaced", format!("holds physical page {page}")),
            PageFault::Role { code } => ("role", format!("unknown role {code}")),
            PageFault::Field => ("page-field", "its header holds an impossible value".into()),
        };
        self.unreadable(kind, page, text, seen);
    }

    fn page(
        &mut self,
        page: u32,
        header: &PageHeader,
        seen: &BlockSeen,
        below: &mut Option<PageHeader>,
    ) {
        if !header.fits(&self.data) {
            // What a cut has torn is unfinished, and not seen here.
            let severity = match seen.record.state {
                BlockState::Good => Severity::Error,
                _ => Severity::Note,
            };
            let text = "rotten: its bytes fail the checksum".into();
            self.add(severity, "page-checksum", page, text);
            return;
        }
        self.report.pages_good += 1;
        let spare = &header.spare;
        let backup = spare.place.kind == PlaceKind::Backup;
        if spare.lost {
            let text = match spare.oob.lpn.is_some() {
                true => format!("the content of logical page {} was lost", spare.oob.lpn.0),
                false => "its content was lost".into(),
            };
            self.add(Severity::Error, "lost-page", page, text);
        }
        let geometry = &self.reader.header.geometry;
        if seen.record.state == BlockState::Good {
            let (block, position) = geometry.split(floatgate_core::Ppn(page));
            if let Some((severity, kind, text)) = self.claims.page(block.0, position, &spare.place)
            {
                self.add(severity, kind, page, text);
            }
        }
        let of_host = !matches!(spare.oob.role, Role::Map | Role::Summary);
        if of_host && spare.oob.lpn.is_some() && spare.oob.lpn.0 >= geometry.logical_pages {
            let text = format!(
                "logical page {} of a device with {}",
                spare.oob.lpn.0, geometry.logical_pages
            );
            self.add(Severity::Error, "lpn-range", page, text);
        }
        if backup || spare.oob.lpn.is_none() {
            return;
        }
        if let Some(below) = below
            && self.reader.header.geometry.program_order == ProgramOrder::Ascending
            && below.spare.sequence >= spare.sequence
        {
            let text = format!(
                "sequence number {} lies above sequence number {}",
                spare.sequence, below.spare.sequence
            );
            self.add(Severity::Error, "out-of-order", page, text);
        }
        *below = Some(*header);
        if seen.record.state == BlockState::Good {
            self.sequences.push(Numbered {
                sequence: spare.sequence,
                page,
                moved: spare.place.kind == PlaceKind::Moved,
            });
        }
    }

    /// Bad blocks, and blocks past their rated erases.
    fn wear(&mut self, block: u32, seen: &BlockSeen) {
        let header = &self.reader.header;
        if seen.record.state != BlockState::Good {
            let die = header.geometry.die_of(floatgate_core::Pbn(block));
            self.bad_blocks[die as usize] += 1;
        }
        let limit = header.erase_limit;
        if limit > 0 && seen.record.erases > limit {
            let text = format!("erased {} times, rated for {limit}", seen.record.erases);
            self.report
                .add(Severity::Note, "worn-out", (Some(block), None), text);
        }
    }

    /// Findings that take all blocks together.
    fn whole_chip(self) {
        if self.unfinished > 0 {
            let text = format!(
                "{} written after something that did not reach the disk: the next start discards what was never flushed",
                plural(self.unfinished, "page")
            );
            self.report
                .add(Severity::Note, "unfinished", (None, None), text);
        }
        let spare_blocks = self.reader.header.spares.spare_blocks;
        for (block, (severity, kind, text)) in self.claims.rivals() {
            self.report.add(severity, kind, (Some(block), None), text);
        }
        for (die, &bad) in self.bad_blocks.iter().enumerate() {
            if bad > 0 && bad >= spare_blocks {
                let text = format!(
                    "die {die} has {bad} bad blocks and had {spare_blocks} to spare: it is read-only"
                );
                self.report
                    .add(Severity::Note, "spares-ended", (None, None), text);
                // The last program failed, and no spare was left to move its block to.
                for &(finding, _) in self.tops.iter().filter(|top| top.1 == die as u32) {
                    self.report.findings[finding].severity = Severity::Note;
                }
            }
        }
    }

    fn duplicates(&mut self) {
        let mut sequences = std::mem::take(&mut self.sequences);
        sequences.sort_unstable_by_key(|one| (one.sequence, one.page));
        for pair in sequences
            .windows(2)
            .filter(|pair| pair[0].sequence == pair[1].sequence)
        {
            let [a, b] = [&pair[0], &pair[1]];
            let (severity, why) = if a.moved || b.moved {
                (Severity::Note, ": the move of a block was cut short")
            } else {
                (Severity::Error, "")
            };
            let text = format!(
                "sequence number {} is also that of physical page {}{why}",
                b.sequence, a.page
            );
            self.add(severity, "duplicate-sequence", b.page, text);
        }
    }
}
