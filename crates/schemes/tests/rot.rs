//! Rotten flash: whatever stands on it, recovery comes up or refuses. Nothing panics, before or after.

use floatgate_catalog as _;
use floatgate_core::Catalog;
use floatgate_testkit::Tested;
use floatgate_testkit::checks::{self, Work};
use floatgate_testkit::torture::Tally;

fn all() -> Catalog<Tested> {
    floatgate_schemes::catalog()
}

fn replay(line: &str) -> Result<Tally, String> {
    floatgate_testkit::replay(line, &all())
}

#[test]
fn unreadable_pages_never_mislead() {
    checks::unreadable_pages(&all(), &Work::from_env());
}

#[test]
fn forged_pages_never_panic() {
    checks::forged_pages(&all(), &Work::from_env());
}

/// Failures that were found once: each line is a case and the damage that broke it.
fn holds(line: &str) {
    if let Err(failure) = replay(line) {
        panic!("{failure}");
    }
}

/// The log table has fewer places than there are blocks that must be log blocks.
#[test]
fn bast_refuses_more_log_blocks_than_its_budget() {
    let line = "bast dies=1 blocks=10 pages=5 logical_pages=20 order=ascending start=full requests=16 \
                seed=8757677 log_blocks=2 victim=lru rot=unreadable:14371269";
    assert_eq!(replay(line).map(|tally| tally.refused), Ok(2));
}

/// The OOB of a map page can be read, its bytes cannot: the entries that followed were taken for its own.
#[test]
fn a_map_page_without_bytes_takes_the_full_scan() {
    holds(
        "bast dies=1 blocks=7 pages=5 logical_pages=10 order=any start=full requests=27 seed=1938601 \
         log_blocks=2 map_blocks=2 map_entries_per_page=4 rot=unreadable:6940339",
    );
    holds(
        "faster dies=1 blocks=12 pages=4 logical_pages=16 order=any start=full requests=6 seed=2348656 \
         log_blocks=4 second_chance=true merge_per_write=1 map_blocks=3 map_entries_per_page=2 \
         rot=unreadable:6217859",
    );
}

/// Without its youngest copy the map called a block free that had been taken since.
#[test]
fn a_map_without_its_youngest_copy_takes_the_full_scan() {
    holds(
        "fmax dies=2 blocks=8 pages=5 logical_pages=20 order=any start=full requests=39 seed=12493038 \
         log_blocks=4 lookup=ram map_blocks=3 map_entries_per_page=2 rot=unreadable:1948644",
    );
}

/// A log block that cannot be read at all handed its entries in the snapshot to the next one.
#[test]
fn last_plus_plus_counts_the_blocks_of_its_snapshot() {
    holds(
        "last++ dies=1 blocks=7 pages=2 logical_pages=4 order=any start=full requests=26 seed=14525497 \
         log_blocks=4 sequential_log_blocks=1 sequential_inclusive=false partitions=1 hot_updates=2 \
         hot_maximum_percent=50 merge_cost_entries=2 summary_pages=false idle_timeout_ns=0 map_blocks=0 \
         rot=unreadable:6574413",
    );
}

/// A finished move whose last page has rotted was taken for one that was cut, and its pages for void.
#[test]
fn a_move_is_unfinished_only_if_nothing_follows_it() {
    holds(
        "faster dies=1 blocks=15 pages=4 logical_pages=16 order=ascending start=full requests=40 \
         seed=10022327 log_blocks=4 merge_per_write=2 map_blocks=3 rot=unreadable:12315711",
    );
    holds(
        "blog dies=1 blocks=6 pages=4 logical_pages=12 order=any start=full requests=48 seed=2533279 \
         log_blocks=2 rot=unreadable:5067487",
    );
    holds(
        "dftl dies=1 blocks=12 pages=5 logical_pages=10 order=ascending start=empty requests=19 \
         seed=8898056 cmt_entries=1 tp_entries=2 integrity=PAGE flush_ns=7000000000 lazy_copy=on \
         gc_policy=d-choices gc_d=1 streams=shared rot=unreadable:9530235",
    );
}

/// An older copy of a translation page was taken for the newest.
#[test]
fn dftl_misses_a_translation_page_that_has_rotted() {
    holds(
        "dftl dies=2 blocks=12 pages=3 logical_pages=12 order=ascending start=full requests=30 \
         seed=10139296 tp_entries=4 integrity=REQ lazy_copy=off gc_policy=d-choices gc_d=5 \
         placement=static rot=unreadable:6814591",
    );
}

/// A translation page is written anew although its old copy cannot be read.
#[test]
fn dftl_writes_a_translation_page_from_memory() {
    holds(
        "dftl dies=1 blocks=16 pages=2 logical_pages=6 order=ascending start=full requests=36 seed=3455583 \
         tp_entries=1 integrity=PAGE fetch=request batch=true gc_seed=7 placement=rr rot=unreadable:9549031",
    );
}

/// The clock of a page-mapped device went on from a sequence number that leaves no room for others.
#[test]
fn page_does_not_believe_the_highest_sequence_number() {
    holds(
        "page dies=1 blocks=8 pages=3 logical_pages=15 order=any start=full requests=34 seed=9597134 \
         gc_d=5 gc_seed=7 placement=rr rot=forged:15235986",
    );
}

#[test]
fn page_needs_an_erased_block_to_collect_garbage_in() {
    holds(
        "page dies=2 blocks=7 pages=6 logical_pages=48 order=ascending start=empty requests=28 \
         seed=13197551 gc_policy=d-choices gc_d=1 placement=rr rot=forged:7290407",
    );
}

/// A void page listed blocks of another die.
#[test]
fn fmax_disregards_no_block_of_another_die() {
    holds(
        "fmax dies=2 blocks=9 pages=4 logical_pages=24 order=any start=empty requests=39 seed=12840400 \
         log_blocks=6 victim=fifo map_blocks=2 rot=forged:14384456",
    );
}

/// A block was copied, so a logical block had its newest pages in what was erased as its old data block.
#[test]
fn faster_goes_by_a_map_only_if_it_agrees_with_the_pages() {
    holds(
        "faster dies=1 blocks=12 pages=4 logical_pages=16 order=ascending start=full requests=36 \
         seed=12568273 log_blocks=2 second_chance=true isolation=true merge_per_write=1 map_blocks=2 \
         map_entries_per_page=4 rot=forged:2909688",
    );
}

#[test]
fn last_takes_only_aligned_log_blocks_for_sequential_ones() {
    holds(
        "last dies=1 blocks=12 pages=4 logical_pages=20 order=any start=empty requests=7 seed=4353136 \
         log_blocks=4 sequential_log_blocks=1 hot_interval_step=100 map_blocks=2 rot=forged:5893855",
    );
}

/// More segments than entries, more random log blocks than the tables have room for, blocks of other dies.
#[test]
fn last_plus_plus_keeps_the_budgets_of_its_tables() {
    holds(
        "last++ dies=2 blocks=7 pages=6 logical_pages=24 order=any start=full requests=3 seed=10572183 \
         log_blocks=6 sequential_log_blocks=2 sequential_threshold=1 summary_pages=true \
         background=aggressive idle_timeout_ns=0 map_entries_per_page=2 rot=forged:2563475",
    );
    holds(
        "last++ dies=1 blocks=10 pages=4 logical_pages=16 order=ascending start=full requests=43 \
         seed=15055919 log_blocks=4 sequential_log_blocks=2 partitions=2 hot_maximum_percent=50 \
         merge_cost_entries=0 summary_pages=false background=off idle_timeout_ns=0 map_blocks=0 \
         map_entries_per_page=1 rot=forged:1472156",
    );
    holds(
        "last++ dies=2 blocks=13 pages=4 logical_pages=40 order=any start=empty requests=24 seed=4039377 \
         log_blocks=8 sequential_log_blocks=4 sequential_inclusive=true merge_cost_entries=0 \
         background=off idle_timeout_ns=0 map_blocks=3 rot=forged:10630775",
    );
}

/// Mapping pages among data pages, two logical pages at one place, mapping pages on dies that are not theirs.
#[test]
fn dftl_refuses_or_leaves_a_map_that_cannot_be() {
    holds(
        "dftl dies=1 blocks=9 pages=5 logical_pages=10 order=any start=full requests=49 seed=7729011 \
         cmt_policy=slru integrity=NOFLUSH flush_ns=7000000000 lazy_copy=on gc_d=5 gc_seed=7 \
         rot=forged:903608",
    );
    holds(
        "dftl dies=1 blocks=22 pages=5 logical_pages=25 order=any start=empty requests=20 seed=5355082 \
         cmt_entries=3 tp_entries=1 integrity=REQ flush_ns=7000000000 batch=true lazy_copy=on gc_seed=7 \
         rot=forged:5495466",
    );
    holds(
        "dftl dies=1 blocks=13 pages=1 logical_pages=3 order=any start=full requests=9 seed=3609218 \
         tp_entries=4 flush_ns=7000000000 fetch=request lazy_copy=auto gc_d=5 rot=forged:14097222",
    );
}
