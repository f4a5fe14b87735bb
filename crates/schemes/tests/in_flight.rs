//! Power cuts that find every die at a point of its own: all schemes, and the lines of what they once found.

use floatgate_catalog as _;
use floatgate_core::Catalog;
use floatgate_testkit::Tested;
use floatgate_testkit::checks::{self, Work};

fn all() -> Catalog<Tested> {
    floatgate_schemes::catalog()
}

/// Thousands of cuts a scheme; `floatgate torture` tries as many as there is time for.
#[test]
fn nothing_acknowledged_is_lost_with_dies_in_flight() {
    for (scheme, tally) in checks::dies_in_flight(&all(), &Work::from_env()) {
        // GFTL's reserve of one block is too little for writes torn in a row (see its text).
        assert!(tally.refused == 0 || scheme == "gftl", "{scheme}");
        assert!(tally.tried >= 4000, "{scheme}");
    }
}

/// Failures that were found once: each line is a case and the cuts that broke it.
fn holds(line: &str) {
    if let Err(failure) = floatgate_testkit::replay(line, &all()) {
        panic!("{failure}");
    }
}

/// The unfinished move of a die is its youngest, whatever other dies have programmed since.
#[test]
fn page_gives_up_the_unfinished_move_of_every_die() {
    holds(
        "page dies=3 blocks=8 pages=4 logical_pages=48 order=ascending start=full requests=39 seed=1635362 \
         placement=static gc_policy=d-choices gc_seed=7 flight=29:11102867 flight=1:6623116",
    );
}

/// A page has moved to another die: the end of a collection must not call its old block empty before it is there.
#[test]
fn page_calls_no_block_empty_whose_pages_are_on_their_way() {
    holds(
        "page dies=3 blocks=5 pages=4 logical_pages=24 order=ascending start=empty requests=28 seed=10357380 \
         gc_low=2 placement=rr gc_policy=fifo gc_d=1 flight=26:13810203 flight=3:2129170 flight=1:16462765",
    );
    holds(
        "page dies=3 blocks=9 pages=4 logical_pages=24 order=any start=full requests=20 seed=13214023 gc_low=6 \
         placement=rr gc_policy=cost-benefit gc_d=1 gc_seed=7 flight=18:2060602 flight=2:3796215",
    );
}

/// The host's page goes to one die, and the block with its old copy is erased on another.
#[test]
fn hat_keeps_the_old_copy_until_the_new_one_is_programmed() {
    holds(
        "hat dies=2 blocks=8 pages=2 logical_pages=8 order=any start=empty requests=24 seed=11043766 qmt_bytes=8 \
         qmt_entries=2 invalidate_lookup=pcm gc_low=5 streams=split placement=rr flight=4:8794123 flight=2:9778109 \
         flight=3:15894945",
    );
}

/// The host's page is programmed, the copies behind it in the rebuild are not: the host has no answer yet.
#[test]
fn block_answers_when_the_rebuild_has_ended() {
    holds(
        "block dies=4 blocks=4 pages=5 logical_pages=60 order=ascending start=full requests=26 seed=14719468 \
         flight=1:4649452 flight=2:15687257 flight=2:3294735 flight=2:7387521",
    );
}

/// A log block on one die waits for the end of the rebuild on another, not only for the copies out of it.
#[test]
fn last_plus_plus_keeps_a_log_block_until_the_rebuild_has_ended() {
    holds(
        "last++ dies=4 blocks=6 pages=4 logical_pages=32 order=ascending start=empty requests=20 seed=9352827 \
         log_blocks=12 sequential_log_blocks=4 sequential_threshold=2 partitions=2 hot_updates=1 \
         summary_pages=false background=conservative idle_timeout_ns=0 flight=7:1435039 flight=3:6874596 \
         flight=3:11415792",
    );
}

/// The map of one die has given up a log block, and the die to which its pages go has not come that far.
#[test]
fn last_plus_plus_reads_the_log_blocks_that_a_map_gives_up() {
    holds(
        "last++ dies=2 blocks=10 pages=4 logical_pages=24 order=ascending start=empty requests=14 seed=11188299 \
         log_blocks=6 sequential_log_blocks=2 sequential_threshold=2 hot_updates=3 hot_maximum_percent=100 \
         merge_cost_entries=2 summary_pages=false background=off idle_timeout_ns=0 map_blocks=2 \
         map_entries_per_page=2 flight=3:398409 flight=2:15272807 flight=2:375866",
    );
}

/// A recovery changes nothing on any die before the maps of all dies are void.
#[test]
fn last_plus_plus_makes_all_maps_void_before_it_changes_anything() {
    holds(
        "last++ dies=2 blocks=10 pages=4 logical_pages=24 order=ascending start=empty requests=14 seed=11188299 \
         log_blocks=6 sequential_log_blocks=2 sequential_threshold=2 hot_updates=3 hot_maximum_percent=100 \
         merge_cost_entries=2 summary_pages=false background=off idle_timeout_ns=0 map_blocks=2 \
         map_entries_per_page=2 flight=13:10307791 flight=2:14060649 flight=2:16732754 flight=2:11227573",
    );
}

/// What is pending is what the youngest translation page says: an older one may say less, from before a recovery.
#[test]
fn dftl_believes_the_youngest_translation_page() {
    holds(
        "dftl dies=2 blocks=16 pages=3 logical_pages=18 order=any start=full requests=21 seed=6997969 cmt_entries=7 \
         cmt_policy=slru tp_entries=1 integrity=REQ batch=true lazy_copy=on placement=static gc_d=5 gc_seed=7 \
         flight=4:7700628 flight=2:10590780 flight=0:8345790",
    );
    holds(
        "dftl dies=2 blocks=19 pages=5 logical_pages=50 order=any start=full requests=39 seed=6711471 cmt_bytes=8 \
         cmt_entries=100 tp_entries=4 integrity=TIMEOUT flush_ns=7000000000 batch=true gc_low=8 streams=split \
         gc_policy=greedy gc_d=1 flight=7:11650781 flight=0:4442119",
    );
}

/// A translation page names a page of a move that has not ended on the move's die.
#[test]
fn dftl_sees_that_its_map_is_ahead_of_a_move() {
    holds(
        "dftl dies=2 blocks=9 pages=5 logical_pages=20 order=ascending start=empty requests=39 seed=13702027 \
         cmt_bytes=8 tp_entries=4 integrity=REQ flush_ns=2500000000 fetch=request batch=true lazy_copy=auto gc_low=5 \
         streams=split placement=static gc_policy=greedy gc_d=5 flight=19:5444864",
    );
}

/// The map names a page of a move that had not ended, and the recovery that erased it was cut before it wrote the map.
#[test]
fn dftl_does_not_believe_a_map_that_names_an_erased_page() {
    holds(
        "dftl dies=2 blocks=10 pages=4 logical_pages=24 order=ascending start=full requests=36 seed=414083 \
         tp_entries=4 integrity=PAGE fetch=entry batch=true streams=split gc_d=5 flight=8:8551672 flight=3:11151092 \
         flight=2:8316545 flight=0:15417999",
    );
}

/// A die had gone on after the shutdown that wrote the snapshot, or had not come as far.
#[test]
fn last_plus_plus_believes_no_snapshot_of_another_state() {
    holds(
        "last++ dies=3 blocks=6 pages=2 logical_pages=12 order=any start=full requests=33 seed=15314569 log_blocks=9 \
         sequential_log_blocks=3 sequential_threshold=3 merge_cost_entries=0 summary_pages=true background=conservative \
         map_entries_per_page=4 flight=7:4124390 flight=1:9249682",
    );
}

/// The snapshot was there, and of a merge before it a page was torn.
#[test]
fn last_plus_plus_writes_its_snapshot_when_all_dies_rest() {
    holds(
        "last++ dies=3 blocks=7 pages=2 logical_pages=18 order=ascending start=empty requests=23 seed=12620462 \
         log_blocks=9 sequential_log_blocks=3 sequential_threshold=0 sequential_inclusive=true partitions=1 \
         hot_updates=3 merge_cost_entries=0 background=off map_blocks=0 map_entries_per_page=2 flight=14:395623",
    );
}

/// The recovery did not use it, and a log block that it was erasing was torn.
#[test]
fn last_plus_plus_takes_its_snapshot_back_before_anything_changes() {
    holds(
        "last++ dies=3 blocks=11 pages=3 logical_pages=36 order=ascending start=full requests=37 seed=12329709 \
         log_blocks=9 sequential_log_blocks=3 partitions=1 hot_updates=3 hot_maximum_percent=0 summary_pages=false \
         idle_timeout_ns=0 map_blocks=0 map_entries_per_page=1 flight=21:2824574 flight=1:1145184",
    );
}

/// A log block is erased and as full as before when the snapshot, on another die, is still there.
#[test]
fn last_plus_plus_believes_no_snapshot_from_before_an_erase() {
    holds(
        "last++ dies=2 blocks=8 pages=3 logical_pages=18 order=any start=full requests=21 seed=12534023 log_blocks=8 \
         sequential_log_blocks=4 sequential_threshold=1 partitions=2 hot_updates=1 merge_cost_entries=0 \
         summary_pages=true background=off flight=7:916272 flight=1:6744166",
    );
}

/// A trim has emptied a block on one die, and the translation page that says so is still on its way on another.
#[test]
fn dftl_keeps_a_trimmed_page_until_the_map_no_longer_names_it() {
    holds(
        "dftl dies=2 blocks=9 pages=6 logical_pages=24 order=any start=empty requests=16 seed=9411022 cmt_entries=6 \
         cmt_policy=slru tp_entries=4 integrity=PAGE fetch=entry batch=false lazy_copy=off streams=split placement=rr \
         flight=16:12906478 flight=2:16458387 flight=3:11555606",
    );
    // The map is written at the end of the request.
    holds(
        "dftl dies=3 blocks=16 pages=6 logical_pages=72 order=ascending start=full requests=38 seed=256045 cmt_bytes=100 \
         cmt_entries=7 cmt_policy=slru tp_entries=4 integrity=REQ flush_ns=7000000000 fetch=entry batch=false gc_low=8 \
         placement=rr gc_policy=d-choices flight=9:14291510 flight=3:13278990",
    );
    holds(
        "dftl dies=2 blocks=19 pages=4 logical_pages=40 order=any start=full requests=26 seed=4528550 cmt_entries=7 \
         cmt_policy=slru tp_entries=2 integrity=PAGE fetch=request batch=false lazy_copy=off streams=shared \
         placement=static flight=12:14904136 flight=3:12622125 flight=2:4062799 flight=2:5155965",
    );
}
