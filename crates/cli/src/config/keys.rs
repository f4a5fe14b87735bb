//! All configuration keys, declared once: checking, defaults, help, the file to start from and the JSON
//! schema come from this table.

use floatgate_sim::clock::{Allocation, Policy, Suspend};
use floatgate_sim::config::WhenFull;
use floatgate_sim::flows::{Arbitration, Priority};
use floatgate_sim::part::{BITS_MAX, DRIVES};

/// What a key takes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind {
    /// A whole number within bounds.
    Whole(u64, u64),
    /// A number within bounds.
    Number(f64, f64),
    /// `true` or `false`.
    Flag,
    /// One of some words.
    Words(&'static [&'static str]),
    /// Any text.
    Text,
    /// A list of texts.
    List,
    /// A list of numbers within bounds, at most so many.
    Numbers(f64, f64, usize),
    /// A time: the key's name ends in its unit. Kept in ns.
    Time,
    /// A size: the key's name ends in its unit. Kept in bytes.
    Size,
}

/// The units that the names of [`Kind::Time`] keys end in, and their ns.
const TIMES: [(&str, u64); 3] = [("us", 1000), ("ns", 1), ("ms", 1_000_000)];
/// The units that the names of [`Kind::Size`] keys end in, and their bytes.
const SIZES: [(&str, u64); 3] = [("mib", 1 << 20), ("kib", 1 << 10), ("gib", 1 << 30)];

impl Kind {
    /// Units of the key's name: the usual one first.
    pub fn units(self) -> &'static [(&'static str, u64)] {
        match self {
            Self::Time => &TIMES,
            Self::Size => &SIZES,
            _ => &[],
        }
    }
}

/// One key.
#[derive(Clone, Copy, Debug)]
pub struct Key {
    /// Its section.
    pub section: &'static str,
    /// Its name, without the unit that a time's or size's name ends in.
    pub name: &'static str,
    /// What it takes.
    pub kind: Kind,
    /// The default as it would stand in a file; or an example and, in `<>`, where the default comes from.
    pub default: &'static str,
    /// What it means, with the unit where the name does not say it.
    pub doc: &'static str,
    /// Keys of one group say the same thing in different ways; only one of them may be given.
    pub group: &'static str,
}

impl Key {
    /// `section.name`, the unit left out: the key's place in [`Settings`](super::Settings).
    pub fn path(&self) -> String {
        format!("{}.{}", self.section, self.name)
    }

    /// The name as it is written, with the usual unit.
    pub fn written(&self) -> String {
        self.spellings().next().unwrap_or_default()
    }

    /// A value as it would stand in a file, and the default in words where that value is only an example.
    pub fn example(&self) -> (&'static str, Option<&'static str>) {
        match self.default.split_once(" <") {
            Some((example, words)) => (example, Some(words.trim_end_matches('>'))),
            None => (self.default, None),
        }
    }

    /// All ways to write the name.
    pub fn spellings(&self) -> impl Iterator<Item = String> {
        let plain = self.kind.units().is_empty().then(|| self.name.to_string());
        plain.into_iter().chain(
            self.kind
                .units()
                .iter()
                .map(|(unit, _)| format!("{}_{unit}", self.name)),
        )
    }

    /// The factor of the unit that `written` ends in, if it names this key.
    pub fn factor(&self, written: &str) -> Option<u64> {
        if self.kind.units().is_empty() {
            return (written == self.name).then_some(1);
        }
        let unit = written.strip_prefix(self.name)?.strip_prefix('_')?;
        self.kind
            .units()
            .iter()
            .find(|(name, _)| *name == unit)
            .map(|(_, factor)| *factor)
    }
}

const fn key(
    section: &'static str,
    name: &'static str,
    kind: Kind,
    default: &'static str,
    doc: &'static str,
) -> Key {
    Key {
        section,
        name,
        kind,
        default,
        doc,
        group: "",
    }
}

const fn group(group: &'static str, key: Key) -> Key {
    Key { group, ..key }
}

/// The sections in the order of a file, each with what it is for.
pub const SECTIONS: [(&str, &str); 11] = [
    ("trace", "The requests."),
    (
        "device",
        "The flash. Sizes that are not given come from the trace, so that garbage collection really happens.",
    ),
    (
        "buffer",
        "Memory between host and scheme (docs/buffer.md); there is none unless a size is given.",
    ),
    (
        "slc",
        "Flash blocks used with one bit a cell that take writes in first (docs/slc.md); there are none unless blocks or dynamic is given.",
    ),
    ("host", "How requests reach the device."),
    (
        "schedule",
        "Which of the operations that wait for a die goes next (docs/scheduling.md).",
    ),
    (
        "flow",
        "Several traces at once in place of [trace]: a table a flow, for `run` (docs/hosts.md).",
    ),
    ("run", "How the device begins."),
    ("compare", "What `compare` compares."),
    (
        "scheme",
        "The scheme of `run` and its options; in `compare` options here go to every scheme that has them.",
    ),
    (
        "schemes",
        "Options scheme by scheme, as [schemes.fast]; they win over those of [scheme].",
    ),
];

const U32: u64 = u32::MAX as u64 - 1;
/// Most pages in memory: 16 TiB of the smallest usual ones.
const BUFFER_MAX: u64 = 1 << 31;
/// Longest latency: a minute.
const NUMBER_MAX: f64 = 1e12;

/// Every key but the options of schemes.
#[rustfmt::skip] // a table: one line a key
pub const KEYS: &[Key] = &[
    key("trace", "file", Kind::Text, "\"oltp-postgres\"", "a trace file (from this file's folder), or a bundled trace: oltp-postgres, desktop, ext2-bonnie-150, ..."),
    key("trace", "format", Kind::Text, "\"msr\" <by content>", "format, where detection should not decide; `floatgate trace info --help` lists them"),
    key("trace", "columns", Kind::Text, "\"time:s,offset:B,size:B,op\" <none>", "what the columns of a CSV or Parquet trace hold, instead of a format (docs/formats.md)"),
    key("trace", "volume", Kind::Text, "\"0\" <all>", "only the requests of this volume"),
    key("trace", "pagecache", Kind::Text, "\"dirty_pages=22528,chunk=2048,count=flash,page_bytes=4096\" <none>", "a page cache before the device: dirty pages at which it writes back, pages it then writes, whose pages the length counts"),
    key("trace", "page_bytes", Kind::Whole(512, 1 << 24), "4096 <what the file says, or 4096>", "page size of a trace that counts in pages"),
    key("device", "part", Kind::Text, "\"slc_large_block\"", "the flash part; `floatgate parts` lists them; every figure below overrides the part's"),
    key("device", "dies", Kind::Whole(1, 1 << 19), "8 <up to 32, by capacity>", "dies that work in parallel; as many as have 64 data blocks each if not given"),
    key("device", "channels", Kind::Whole(1, 1 << 19), "8 <one a die>", "buses"),
    key("device", "allocation", Kind::Words(&Allocation::NAMES), "\"channel-first\"", "dies with numbers in a row are on different channels, or share one until it has all of its dies, or until a package is full"),
    key("device", "dies_per_package", Kind::Whole(1, 1 << 19), "2 <1>", "dies in a row on one channel with allocation = \"package-first\""),
    key("device", "preset", Kind::Words(&DRIVES), "\"970pro-class\" <none>", "a drive: its part, channels, dies, capacity and spare blocks, each unless it is given (docs/chips.md)"),
    group("logical", key("device", "capacity", Kind::Size, "512 <footprint of the trace>", "what the host sees, rounded up to whole blocks on every die")),
    group("logical", key("device", "logical_pages", Kind::Whole(1, U32), "262144 <footprint of the trace>", "the same in pages: a multiple of dies x pages_per_block")),
    group("physical", key("device", "spare_percent", Kind::Number(0.1, 1000.0), "25", "spare blocks in percent of the data blocks; grows until every scheme has its reserve")),
    group("physical", key("device", "blocks_per_die", Kind::Whole(1, U32), "1024 <from capacity and spare_percent>", "the same as a number: data and spare blocks of one die")),
    key("device", "log_percent", Kind::Number(0.1, 1000.0), "20", "log blocks in percent of the data blocks, out of the spare ones, for schemes whose log_blocks is not given; at least 6 a die"),
    key("device", "page_bytes", Kind::Whole(1, 1 << 24), "2048 <that of the part>", "data bytes of a page"),
    key("device", "oob_bytes", Kind::Whole(0, 1 << 20), "64 <that of the part>", "spare bytes of a page"),
    key("device", "sectors", Kind::Whole(1, 1 << 16), "4 <that of the part>", "sub-pages of a page, the unit of short reads"),
    key("device", "pages_per_block", Kind::Whole(1, 65_000), "64 <that of the part>", "pages of a block"),
    key("device", "planes", Kind::Whole(1, 1 << 16), "1 <that of the part>", "planes of a die"),
    key("device", "multi_plane", Kind::Flag, "false", "the planes of a die do everything together: a page is one of each, a block too"),
    group("t_r", key("device", "t_r", Kind::Time, "25 <that of the part>", "page read, cell time")),
    group("t_r", key("device", "t_r_by_page", Kind::Numbers(0.0, 1e6, BITS_MAX), "[45, 60, 75] <that of the part>", "the same by page number in the block, modulo their number, us; up to four")),
    key("device", "read_retry", Kind::Numbers(0.0, 4e9, 16), "[1000, 2000, 2800] <no retries>", "erases of a block from which each of its page reads needs one more retry, going up"),
    key("device", "erases_before", Kind::Whole(0, U32), "0", "erases that each block is taken to have had before, as far as retries go"),
    group("t_prog", key("device", "t_prog", Kind::Time, "200 <that of the part>", "page program, cell time; with one_shot that of a word line")),
    group("t_prog", key("device", "t_prog_by_page", Kind::Numbers(0.0, 1e6, BITS_MAX), "[200, 500, 900] <that of the part>", "the same by page number in the block, modulo their number, us; up to four")),
    key("device", "one_shot", Kind::Whole(1, BITS_MAX as u64), "3 <that of the part>", "pages of a word line that are programmed at once; 1: each by itself"),
    key("device", "t_bers", Kind::Time, "1500 <that of the part>", "block erase, cell time"),
    key("device", "t_r_oob", Kind::Time, "25 <that of the part>", "read of the spare area alone, cell time"),
    key("device", "cycle", Kind::Time, "0.025 <that of the part>", "one command or address cycle"),
    key("device", "in_ps", Kind::Whole(0, 1 << 40), "25000 <that of the part>", "picoseconds a byte on the bus into the die"),
    key("device", "out_ps", Kind::Whole(0, 1 << 40), "25000 <that of the part>", "picoseconds a byte on the bus out of the die"),
    key("device", "program_order", Kind::Words(&["ascending", "any"]), "\"ascending\" <that of the part>", "in which order the pages of a block may be programmed"),
    key("device", "mode", Kind::Words(&["onfi", "nocmd", "flat"]), "\"onfi\"", "what costs time: all, all but command cycles, cell times only"),
    key("device", "copyback", Kind::Flag, "false", "copies inside a plane do not cross the bus"),
    key("device", "copyback_parity", Kind::Flag, "false", "they do so only from even pages of a block to even ones, and from odd to odd"),
    key("device", "cache_commands", Kind::Flag, "false", "data of a program after a program, or of a read before a read, crosses the bus while the cells work"),
    key("device", "endurance", Kind::Whole(1, U32), "100000 <that of the part>", "erases that a block endures, for the lifetime"),
    key("device", "flash_ma", Kind::Number(0.0, 1e6), "25 <that of the part>", "supply current of flash operations in mA at 3.3 V"),
    key("device", "energy_basis", Kind::Words(&["cell+transfer", "cell"]), "\"cell+transfer\"", "which times draw current"),
    key("device", "pcm_read", Kind::Time, "0.115", "phase-change memory: read of a map entry"),
    key("device", "pcm_write", Kind::Time, "90", "phase-change memory: write of a map entry"),
    key("device", "wear_leveling", Kind::Words(&["off", "dynamic", "static"]), "\"off\"", "dynamic: the erased block with the fewest erases is used next; static: cold content moves to worn blocks too"),
    key("device", "wear_gap", Kind::Whole(0, U32), "64", "erases that the least erased block with content may lag behind under static levelling"),
    group("write_buffer", key("buffer", "write", Kind::Size, "16 <no write buffer>", "what the write buffer holds, in whole pages")),
    group("write_buffer", key("buffer", "write_pages", Kind::Whole(0, BUFFER_MAX), "4096 <no write buffer>", "the same in pages")),
    key("buffer", "eviction", Kind::Words(&["lru", "bplru"]), "\"lru\"", "what is written out first: the page, or (bplru) all of the block, that was not written for the longest time"),
    key("buffer", "block_pages", Kind::Whole(1, U32), "512 <a logical block of every die>", "pages of a block of bplru, and of the longest write to the scheme"),
    key("buffer", "padding", Kind::Flag, "false", "a block that leaves under bplru is filled up with its other pages, read from the flash"),
    key("buffer", "reserve_pages", Kind::Whole(0, BUFFER_MAX), "0", "pages of the write buffer that are kept free: writing out begins when fewer are"),
    key("buffer", "idle", Kind::Time, "100000 <never>", "after so long without a request in work all is written out"),
    key("buffer", "write_out_at_end", Kind::Flag, "false", "what the write buffer holds after the last request is written out, and counted"),
    key("buffer", "protected", Kind::Flag, "false", "the memory survives a power cut, so that a flush writes nothing out"),
    group("read_cache", key("buffer", "read", Kind::Size, "16 <no read cache>", "what the read cache holds, in whole pages")),
    group("read_cache", key("buffer", "read_pages", Kind::Whole(0, BUFFER_MAX), "4096 <no read cache>", "the same in pages")),
    key("buffer", "prefetch_pages", Kind::Whole(0, BUFFER_MAX), "0", "pages that are read ahead into the read cache behind reads that follow each other"),
    key("buffer", "dram_ns_per_page", Kind::Whole(0, 1_000_000_000), "1000", "ns for a page into the memory or out of it"),
    key("slc", "blocks", Kind::Whole(0, U32), "16 <none>", "blocks of each die, beside the scheme's, that are always used with one bit a cell"),
    key("slc", "dynamic", Kind::Flag, "false", "what the logical pages without content would fill is used with one bit a cell too"),
    key("slc", "bits", Kind::Whole(2, BITS_MAX as u64), "3", "bits of a cell that is used in full: a block has so much fewer pages with one"),
    key("slc", "t_prog", Kind::Time, "200", "page program with one bit a cell, cell time"),
    key("slc", "t_r", Kind::Time, "25", "page read with one bit a cell, cell time"),
    key("slc", "fold_after", Kind::Time, "100000", "after so long without a request in work the oldest blocks are moved to the scheme, until there is one; 0: never"),
    key("slc", "when_full", Kind::Words(&WhenFull::NAMES), "\"direct\"", "writes go to the scheme until idle time has made room, or (fold) blocks are folded before"),
    key("slc", "low_blocks", Kind::Whole(1, U32), "1", "erased blocks of the cache below which fold folds"),
    key("host", "arrivals", Kind::Words(&["open", "closed"]), "\"open\"", "open: at the times of the trace; closed: as soon as the queue has a place"),
    key("host", "queue_depth", Kind::Whole(0, 1 << 20), "32 <no limit; 32 in a closed loop>", "most requests in flight"),
    key("host", "backlog_limit", Kind::Whole(0, U32), "4194304", "requests in work at which a run ends with an error, because the device does not keep up and each takes memory (on devices with several dies a channel, or a schedule); 0: never"),
    key("host", "speed", Kind::Number(1e-9, NUMBER_MAX), "1", "2 replays the trace twice as fast"),
    key("host", "partial_write", Kind::Words(&["rmw", "whole"]), "\"rmw\"", "a write of a part of a page reads the page first, or not"),
    key("host", "write_zeroes", Kind::Words(&["trim", "write"]), "\"trim\"", "write-zeroes requests are trims, or writes"),
    key("host", "beyond", Kind::Words(&["error", "wrap", "compact"]), "\"compact\" <compact if the device is sized to the trace, else error>", "addresses past the end of the device: stop, start again at 0, or lay out regions in the order of first touch"),
    key("host", "stream_by", Kind::Words(&["trace", "volume", "region", "size", "process"]), "\"trace\"", "the stream of a write, for placement by hints: the trace's own, its volume, the sixteenth of the device that it begins in, its size (0: one page, 1: two, 2: up to four, ...), or its process in the order of first writes (blkparse, blktrace, hash-text)"),
    key("host", "compact_region_pages", Kind::Whole(1, 1 << 30), "512 <1 MiB>", "pages of a region of compact"),
    key("host", "arbitration", Kind::Words(&Arbitration::NAMES), "\"round-robin\"", "of flows: one after the other; the same with weights, after urgent ones; by priority"),
    key("host", "burst", Kind::Whole(1, 1 << 16), "1", "of flows: commands that one may have taken in its turn"),
    key("host", "max_request", Kind::Size, "0.125 <no limit>", "of flows: longer reads and writes are split into commands of at most this size; 0: no limit"),
    key("flow", "name", Kind::Text, "\"db\" <flow1, flow2, ...>", "what the flow is called"),
    key("flow", "trace", Kind::Text, "\"oltp-postgres\" <none>", "its requests: a trace file (from this file's folder), a bundled trace or a generator"),
    key("flow", "queue_depth", Kind::Whole(0, 1 << 20), "0", "requests that it keeps under way; 0: they come at the times of the trace"),
    key("flow", "from", Kind::Number(0.0, 1.0), "0.0 <equal parts, one after the other>", "where its part of the device begins, as a share of the device; parts may overlap"),
    key("flow", "share", Kind::Number(0.0, 1.0), "0.5 <equal parts, one after the other>", "how much of the device that part is"),
    key("flow", "priority", Kind::Words(&Priority::NAMES), "\"medium\"", "its class"),
    key("flow", "weight", Kind::Whole(1, 1 << 16), "1", "its turns are as many times as long; with arbitration = \"weighted\""),
    key("flow", "stream", Kind::Whole(0, 65_534), "0 <what the trace says>", "the stream of all its writes"),
    key("flow", "speed", Kind::Number(1e-9, NUMBER_MAX), "1 <host.speed>", "2 replays its trace twice as fast"),
    key("flow", "start", Kind::Time, "0", "when it begins, after the start of the run"),
    key("schedule", "policy", Kind::Words(&Policy::NAMES), "\"fifo\"", "the order of issue; the first that is ready; reads of the host and the map first; then also programs for them before collection"),
    key("schedule", "overtakes", Kind::Whole(0, U32), "64", "after so many that overtook it, who waits behind goes first; 0: never"),
    key("schedule", "suspend", Kind::Words(&Suspend::NAMES), "\"none\"", "whose cell time a read may interrupt"),
    key("schedule", "t_suspend", Kind::Time, "20", "from the suspend command until the die can read"),
    key("schedule", "t_resume", Kind::Time, "20", "what the interrupted operation takes longer each time"),
    key("schedule", "suspend_limit", Kind::Whole(0, U32), "8", "how often one operation can be interrupted"),
    key("schedule", "gc_low", Kind::Whole(0, U32), "32", "host-first: from so many operations of collection waiting on a die on, some go before programs for the host"),
    key("schedule", "gc_high", Kind::Whole(0, U32), "512", "with so many all of them do; 0: they always come last"),
    key("run", "start", Kind::Words(&["full", "empty"]), "\"full\"", "every logical page written once in order, or none"),
    key("run", "ageing", Kind::List, "[]", "steps before the measurement, in order: fill, overwrite:<share>, settle, replay"),
    key("run", "warmup", Kind::Whole(0, 1000), "0", "times the trace is played before the measurement (as many \"replay\" steps)"),
    key("compare", "schemes", Kind::List, "[\"page\", \"fast\"] <all>", "the schemes to compare"),
    key("compare", "jobs", Kind::Whole(1, 1024), "2 <one a processor>", "runs at a time"),
    key("scheme", "name", Kind::Text, "\"page\"", "the scheme of `run`; `floatgate schemes` lists them"),
];

/// The key that is written so, and the factor of its unit.
pub fn find(section: &str, written: &str) -> Option<(&'static Key, u64)> {
    KEYS.iter()
        .filter(|key| key.section == section)
        .find_map(|key| Some((key, key.factor(written)?)))
}

/// All names of a section, for suggestions.
pub fn names(section: &str) -> Vec<String> {
    KEYS.iter()
        .filter(|key| key.section == section)
        .flat_map(Key::spellings)
        .collect()
}
