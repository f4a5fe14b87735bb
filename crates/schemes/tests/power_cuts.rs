//! Nothing acknowledged is ever lost: every scheme, cut at every operation of runs on small devices.

use floatgate_catalog as _;
use floatgate_core::catalog::Life;
use floatgate_core::ftl::{Ftl, RecoveryMode, Run};
use floatgate_core::rng::SplitMix64;
use floatgate_core::{Catalog, Lpn, Space, Striped};
use floatgate_testkit::Tested;
use floatgate_testkit::checks::{self, Work};
use floatgate_testkit::cut::CutFlash;
use floatgate_testkit::ram::RamFlash;
use floatgate_testkit::suite::Case;
use floatgate_testkit::torture::{Effort, Tally, cut_everywhere, random_case};

fn all() -> Catalog<Tested> {
    floatgate_schemes::catalog()
}

/// At least 100,000 cut points over all schemes; `cargo xtask torture` tries millions.
#[test]
fn nothing_acknowledged_is_lost() {
    for (scheme, tally) in checks::power_cuts(&all(), &Work::from_env()) {
        assert!(tally.tried >= 100_000 / all().len() as u64, "{scheme}");
    }
}

/// Failures that were found once: each line is a case and the cuts that broke it.
fn holds(line: &str) {
    if let Err(failure) = floatgate_testkit::replay(line, &all()) {
        panic!("{failure}");
    }
}

#[test]
fn page_finds_the_pages_of_every_die() {
    holds(
        "page dies=2 blocks=7 pages=5 logical_pages=30 order=ascending start=full requests=38 \
         seed=14719468 gc_low=2 gc_policy=cost-benefit gc_d=1 gc_seed=7 placement=rr cut=0:clean",
    );
}

/// Trimmed pages come back and fill a die above the limit of round-robin placement.
#[test]
fn page_relieves_a_die_that_trimmed_pages_fill() {
    holds(
        "page dies=2 blocks=6 pages=1 logical_pages=6 order=ascending start=full requests=24 seed=3125867 \
         streams=shared placement=rr gc_policy=greedy gc_d=1 cut=22:clean",
    );
}

/// A job has ended, its old primary waits for the erase, and a trimmed page in it looks alive.
#[test]
fn gftl_gives_up_the_old_primary_of_a_job_that_has_ended() {
    holds(
        "gftl dies=1 blocks=5 pages=5 logical_pages=15 order=ascending start=full requests=33 seed=6698839 \
         log_blocks=1 chunk_pages=1 queue_when=full lookup=oob cut=86:clean",
    );
}

/// The erase of an emptied buffer block was cut, and a trimmed page in it looks alive: no block is free. Then the program
/// that ends the job is torn, so that the job's block has a page too few, and the half-erased block must not stand in.
#[test]
fn gftl_programs_nothing_into_a_buffer_block_whose_erase_was_cut() {
    holds(
        "gftl dies=1 blocks=5 pages=5 logical_pages=15 order=ascending start=full requests=42 seed=14548420 \
         log_blocks=1 chunk_pages=2 queue_when=update lookup=oob cut=118:torn3660 cut=0:torn0",
    );
}

/// The same with a program order that would let the pages below be programmed too.
#[test]
fn gftl_programs_nothing_into_such_a_block_in_any_order() {
    holds(
        "gftl dies=1 blocks=7 pages=4 logical_pages=20 order=any start=full requests=50 seed=5636837 \
         log_blocks=1 chunk_pages=1 queue_when=full lookup=oob cut=99:torn3071 cut=0:torn0",
    );
    holds(
        "gftl dies=1 blocks=6 pages=4 logical_pages=16 order=any start=empty requests=28 seed=13386045 \
         log_blocks=1 chunk_pages=1 lookup=oob cut=71:clean",
    );
}

/// A start from a snapshot goes by the tables, in which a page is trimmed, and a later full scan by the copies.
#[test]
fn last_plus_plus_finds_trimmed_pages_after_a_shutdown() {
    holds(
        "last++ dies=1 blocks=8 pages=2 logical_pages=6 order=any start=empty requests=16 \
         seed=11776784 log_blocks=3 sequential_log_blocks=1 sequential_threshold=3 \
         merge_cost_entries=1 summary_pages=true map_entries_per_page=1 cut=69:clean",
    );
}

/// A recovery by map blocks is cut while it erases what no entry names; the full scan that follows must not take that
/// for a rebuild.
#[test]
fn last_plus_plus_disregards_what_a_cut_recovery_was_erasing() {
    holds(
        "last++ dies=1 blocks=11 pages=6 logical_pages=24 order=any start=empty requests=54 seed=15710035 \
         log_blocks=3 sequential_log_blocks=1 sequential_threshold=5 sequential_inclusive=true partitions=1 \
         hot_maximum_percent=0 merge_cost_entries=0 summary_pages=true idle_timeout_ns=1000000 map_blocks=3 \
         map_entries_per_page=1 cut=208:clean cut=1:torn32",
    );
}

/// With one block more than the least, GFTL comes up however often its recovery is torn.
#[test]
fn gftl_with_a_spare_block_never_refuses() {
    let mut rng = SplitMix64::new(17);
    let effort = Effort {
        recovery_one_in: 1,
        third_one_in: 3,
        requests_after: 4,
        ..Effort::default()
    };
    type Gftl = Striped<floatgate_schemes::gftl::Gftl>;
    for _ in 0..12 {
        let mut case = random_case::<Gftl>(&mut rng, 30);
        case.blocks += 1;
        let tally = cut_everywhere::<Gftl>(&case, &effort).unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(tally.refused, 0, "{case}");
    }
}

/// At its least size it may refuse after torn programs in a row, and says so. A scheme that does not say so has failed.
#[test]
fn a_refusal_counts_only_for_a_scheme_that_tells_of_it() {
    use floatgate_testkit::broken::{Broken, KEEPS_QUIET};
    type Gftl = Striped<floatgate_schemes::gftl::Gftl>;
    let line = "gftl dies=1 blocks=7 pages=4 logical_pages=20 order=ascending start=full requests=57 seed=8434854 \
                log_blocks=1 chunk_pages=1 queue_when=full lookup=oob cut=63:torn1953 cut=0:torn0";
    let refused = floatgate_testkit::replay(line, &all()).map(|tally| tally.refused);
    assert_eq!(refused, Ok(1));
    let quiet: Catalog<Tested> = Catalog::new().with::<Broken<Gftl, KEEPS_QUIET>>();
    let found = floatgate_testkit::replay(line, &quiet).unwrap_err();
    assert!(found.contains("no recovery: no erased page"), "{found}");
}

/// Cases, cut everywhere, each of which broke when one rule of DFTL's recovery was left out.
fn holds_everywhere(line: &str) {
    let case = Case::parse(line).unwrap();
    let tally = cut_everywhere::<floatgate_schemes::dftl::Dftl>(&case, &Effort::default());
    assert_eq!(
        tally.unwrap_or_else(|failure| panic!("{failure}")).refused,
        0
    );
}

/// A block of trimmed pages is half erased, and the translation pages still name it.
#[test]
fn dftl_reads_a_die_where_an_erase_can_have_been_cut() {
    holds_everywhere(
        "dies=1 blocks=19 pages=3 logical_pages=15 order=ascending start=empty requests=42 seed=8910651 \
         cmt_policy=lru tp_entries=2 integrity=TIMEOUT fetch=entry batch=true gc_seed=7 streams=shared \
         placement=static",
    );
}

/// The same right after a recovery: an open block that looks as if it had room is closed.
#[test]
fn dftl_does_not_take_a_closed_block_for_an_open_one() {
    holds_everywhere(
        "dies=1 blocks=19 pages=4 logical_pages=16 order=any start=full requests=32 seed=240906 \
         cmt_policy=slru tp_entries=1 integrity=TIMEOUT lazy_copy=on gc_policy=greedy gc_d=1 streams=split \
         placement=static",
    );
}

/// The target of a move that was cut sits in the reserve, and what it has moved is pending. Kept, it would cost a block each
/// time that a collection is cut; so the device is cut in one again and again, until the reserve would be used up.
#[test]
fn dftl_gives_up_the_target_of_a_move_that_was_cut() {
    let line = "dies=1 blocks=14 pages=4 logical_pages=20 order=ascending start=full cmt_entries=6 tp_entries=4 \
                integrity=REQ fetch=entry batch=true lazy_copy=off placement=rr gc_policy=d-choices gc_d=1 gc_seed=7";
    let case = Case::parse(line).unwrap();
    let cuts: u32 = (0..20).map(|seed| cut_in_collections(&case, seed)).sum();
    assert!(cuts > 500, "{cuts} cuts");
}

/// Writes single pages, and cuts the power a few operations after each write has begun. Returns the cuts.
fn cut_in_collections(case: &Case, seed: u64) -> u32 {
    type Dftl = floatgate_schemes::dftl::Dftl;
    let space = Space::whole(&case.geometry().unwrap());
    let options = case.options_of::<Dftl>().unwrap();
    let mut flash = CutFlash::new(RamFlash::new(&space.geometry, 16));
    let mut dftl = Dftl::format(&space, &options, case.start, &mut flash).unwrap();
    let mut rng = SplitMix64::new(seed);
    let mut cuts = 0;
    for request in 0..60 {
        flash.fuel = (request > 20).then(|| 2 + request % 3);
        flash.ram.new_request(1);
        let page = Lpn(rng.below(case.logical_pages.into()) as u32);
        if dftl.write(&mut flash, &Run::whole(page, 1)).is_ok() {
            continue;
        }
        cuts += 1;
        flash = CutFlash::new(flash.ram);
        let recovered = Dftl::recover(&space, &options, RecoveryMode::Fastest, &mut flash);
        dftl = recovered.unwrap_or_else(|error| panic!("seed {seed}, cut {cuts}: {error}"));
    }
    cuts
}

/// A page that no translation page knows, in a block that was open before.
#[test]
fn dftl_finds_the_page_of_a_request_that_was_cut() {
    holds_everywhere(
        "dies=2 blocks=13 pages=5 logical_pages=30 order=ascending start=full requests=38 seed=14719468 \
         cmt_entries=2 cmt_policy=lru tp_entries=4 integrity=PAGE fetch=request batch=false gc_policy=greedy \
         streams=shared",
    );
}

/// A translation page that a collection has moved tells what was pending then, not what was when it was written.
#[test]
fn dftl_marks_moved_translation_pages() {
    holds_everywhere(
        "dies=2 blocks=12 pages=3 logical_pages=18 order=any start=full requests=29 seed=6253442 \
         cmt_entries=1 tp_entries=4 integrity=PAGE flush_ns=100000000000 batch=true lazy_copy=on \
         gc_policy=d-choices gc_d=1 gc_seed=7 streams=split placement=static",
    );
}

/// A block that some logical block has to itself may still count as a log block of another with no live page there.
#[test]
fn blog_swaps_in_a_block_that_served_others() {
    holds(
        "blog dies=2 blocks=10 pages=3 logical_pages=30 order=ascending start=full requests=50 \
         seed=4334946 log_blocks=8 l=1 layout=mlc cut=65:clean",
    );
}

/// A data block was erased and became one of the same logical block again: what was written beside it the first
/// time does not count.
#[test]
fn blog_tells_the_lives_of_a_data_block_apart() {
    holds(
        "blog dies=1 blocks=7 pages=4 logical_pages=16 order=ascending start=empty requests=46 \
         seed=16555771 log_blocks=2 l=1 cut=58:clean",
    );
}

/// A trimmed page came back by the full scan, and as another of its versions by the map blocks after the next cut:
/// allowed, as long as nobody has written it.
#[test]
fn last_plus_plus_may_bring_back_either_version_of_a_trimmed_page() {
    holds(
        "last++ dies=2 blocks=10 pages=4 logical_pages=24 order=ascending start=empty requests=49 seed=6483640 \
         log_blocks=6 sequential_log_blocks=2 sequential_threshold=2 sequential_inclusive=false \
         hot_maximum_percent=0 merge_cost_entries=1 summary_pages=false background=off idle_timeout_ns=0 \
         map_blocks=3 map_entries_per_page=2 cut=130:clean cut=1:clean",
    );
}

/// Two blocks are aligned to a logical block, and its data block has room: it may be the one whose erase was cut.
#[test]
fn fast_rebuilds_a_data_block_that_has_a_rival() {
    holds(
        "fast dies=2 blocks=10 pages=4 logical_pages=40 order=ascending start=full requests=27 seed=8690455 \
         log_blocks=6 map_entries_per_page=1 cut=110:torn3412",
    );
}

/// A merge into a sequential log block was cut; as a data block it would be taken for whole by the next recovery.
#[test]
fn last_plus_plus_rebuilds_a_data_block_with_a_torn_page() {
    holds(
        "last++ dies=2 blocks=13 pages=4 logical_pages=24 order=ascending start=empty requests=1 seed=11341698 \
         log_blocks=8 sequential_log_blocks=2 sequential_threshold=0 partitions=1 hot_updates=2 \
         merge_cost_entries=0 summary_pages=true background=aggressive map_blocks=2 map_entries_per_page=4 \
         cut=6:torn186 cut=6:torn187 cut=10:clean",
    );
}

/// The erase of a log block was cut, a trimmed page in it looks alive, and its summary tells of pages that are gone: the
/// map that the recovery writes must not name it, or the next one believes the summary.
#[test]
fn last_plus_plus_empties_a_log_block_whose_erase_was_cut() {
    holds(
        "last++ dies=2 blocks=10 pages=4 logical_pages=32 order=any start=empty requests=32 seed=7915047 \
         log_blocks=6 sequential_log_blocks=2 hot_updates=3 merge_cost_entries=0 background=conservative \
         idle_timeout_ns=0 map_blocks=2 map_entries_per_page=4 cut=11:torn343 cut=9:clean",
    );
}

#[test]
fn bast_comes_back_with_map_blocks_on_a_full_device() {
    holds(
        "bast dies=1 blocks=9 pages=4 logical_pages=12 order=ascending start=full requests=50 \
         seed=3748012 log_blocks=3 victim=fifo map_blocks=2 map_entries_per_page=2 cut=101:clean",
    );
}

#[test]
fn last_comes_back_with_map_blocks_on_a_full_device() {
    holds(
        "last dies=1 blocks=11 pages=2 logical_pages=6 order=ascending start=full requests=50 \
         seed=16020687 log_blocks=4 sequential_log_blocks=2 hot_blocks=2 adjust_period=2 age_threshold=2 \
         map_blocks=3 map_entries_per_page=4 cut=117:clean",
    );
}

/// Inputs of every kind are played, and reach cuts.
#[test]
fn any_bytes_are_an_input_of_the_fuzzer() {
    let rows = checks::any_bytes(&all(), &Work::from_env());
    let tried: u64 = rows.iter().map(|(_, tally)| tally.tried).sum();
    assert!(tried > 100, "{tried} cuts");
    for length in 0..6 {
        assert_eq!(
            floatgate_testkit::play(&vec![0; length], &all()),
            Ok(Tally::default())
        );
    }
}

/// What the kit finds in a broken scheme, its lines show again.
#[test]
fn failures_print_lines_that_replay() {
    use floatgate_testkit::broken::{BREAKS_THE_PROGRAM_RULE, Broken, SKIPS_A_WRITE};
    type Page = floatgate_schemes::page::Page;
    type Fast = Striped<floatgate_schemes::fast::Fast>;
    let sound = Catalog::new().with::<Page>().with::<Fast>();
    let skipping = Catalog::new()
        .with::<Broken<Page, SKIPS_A_WRITE>>()
        .with::<Broken<Fast, SKIPS_A_WRITE>>();
    checks::failures_replay(&sound, &skipping);
    let panicking = Catalog::new()
        .with::<Broken<Page, BREAKS_THE_PROGRAM_RULE>>()
        .with::<Broken<Fast, BREAKS_THE_PROGRAM_RULE>>();
    checks::failures_replay(&sound, &panicking);
}

/// A recovery that forgets a page is found by cuts, by rot and by a fuzzer's bytes, each with a line of its own.
#[test]
fn a_forgetful_recovery_prints_lines_that_replay() {
    use floatgate_testkit::broken::{Broken, FORGETS_A_PAGE};
    use floatgate_testkit::torture::{Script, rot::Kind};
    type Page = floatgate_schemes::page::Page;
    let sound = Tested::of::<Page>();
    let broken = Tested::of::<Broken<Page, FORGETS_A_PAGE>>();
    let mut rng = SplitMix64::new(1);
    let scripts = std::iter::repeat_with(|| {
        let bytes: Vec<u8> = (0..200).map(|_| rng.next() as u8).collect();
        broken.play(&Script::of(&bytes).expect("a seed"))
    });
    let findings = [
        broken.random_cuts(1, 1000, &Effort::default(), &mut || false),
        broken.random_rot(1, Kind::Unreadable, 50),
        scripts.take(50).find(Result::is_err).expect("a finding"),
    ];
    for finding in findings {
        checks::assert_replays(&finding.unwrap_err(), &sound, &broken);
    }
}
