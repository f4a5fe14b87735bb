//! Predictions of docs/real-drives.md: what is measured inside real drives, and what `page` says. The measured figures are
//! quoted from the SSD-iq study (PVLDB 18(11), 2025).

mod common;

use common::Place;

/// What the host sees of the model: 1,600 blocks of 64 pages.
const LOGICAL_PAGES: u32 = 102_400;

/// Programs a host page in steady state, of a device with so many blocks beside the two that are kept erased.
fn write_amplification(data_and_spare_blocks: u32, trace: &str, ageing: &str, rule: &str) -> f64 {
    let place = Place::new();
    let blocks = data_and_spare_blocks + 2;
    let text = format!(
        "run --scheme page --set device.part=slc_large_block --set device.page_bytes=4096 --set device.pages_per_block=64 \
         --set device.dies=1 --set device.logical_pages={LOGICAL_PAGES} --set device.blocks_per_die={blocks} \
         --set scheme.gc_low=2 --set host.beyond=error --set run.ageing=[\"{ageing}\"] --trace {trace} {rule} --json"
    );
    let record = place.run(&text).ok().record();
    record
        .derived
        .write_amplification
        .expect("pages were written")
}

/// Micron 7450 MAX, uniform writes to a part of it: two numbers, fitted to six levels, of which three are tried here.
#[test]
fn a_drive_filled_to_several_levels() {
    const OVERHEAD: f64 = 1.046;
    let uniform = format!("uniform:space={LOGICAL_PAGES}:requests=409600");
    let shared = "--set scheme.streams=shared";
    for (blocks, measured) in [(4599, 1.110), (2874, 1.408), (2299, 1.892)] {
        let ours = OVERHEAD * write_amplification(blocks, &uniform, "overwrite:2", shared);
        let error = ours / measured - 1.0;
        assert!(error.abs() < 0.01, "{blocks} blocks: {ours} for {measured}");
    }
}

/// Solidigm P5520: the ratio of skewed to uniform writes tells the rules of collection apart. A log that is cleaned from its
/// end and keeps what it moves apart is cheaper under skew, as the drive is; greedy collection is not.
#[test]
fn a_drive_that_is_not_greedy() {
    let ratio = |rule: &str| {
        let of = |trace: &str| write_amplification(1861, trace, "replay", rule);
        let zipf = of(&format!(
            "zipf:space={LOGICAL_PAGES}:theta=0.8:requests=409600"
        ));
        zipf / of(&format!("uniform:space={LOGICAL_PAGES}:requests=409600"))
    };
    let measured = 3.398 / 3.557;
    let (greedy, log) = (
        ratio("--set scheme.streams=shared"),
        ratio("--set scheme.gc_policy=2r-fifo --set scheme.streams=split"),
    );
    assert!((log - measured).abs() < 0.01, "{log} for {measured}");
    assert!(greedy > 1.04, "{greedy}");
}
