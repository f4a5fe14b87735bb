//! Time reaches the schemes of a device: timed work happens when it is due, background work in idle time only.

mod common;

use common::{Host, PAGE_BYTES, chip};
use floatgate_core::rng::SplitMix64;
use floatgate_core::{Ftl, Lpn};
use floatgate_device::block::options_from_text;
use floatgate_device::{BlockDevice, RamNand, SparesOptions};
use floatgate_schemes::dftl::Dftl;
use floatgate_schemes::last_plus_plus::LastPlusPlus;

const SECOND_NS: u64 = 1_000_000_000;

fn host<S: Ftl<Page = Lpn>>(options: &str) -> Host<S, RamNand> {
    let shape = chip(1, 24, 6, 8, &SparesOptions::default());
    let options = options_from_text::<S>(options).unwrap();
    let device = BlockDevice::create(RamNand::new(&shape, PAGE_BYTES), &options);
    Host::new(device.unwrap())
}

fn map_programs<S: Ftl<Page = Lpn>>(host: &Host<S, RamNand>) -> u64 {
    host.device.flash_layer().ledger.counters.programs.map
}

#[test]
fn dftl_writes_its_map_when_the_timeout_has_passed() {
    let mut host = host::<Dftl>("integrity=TIMEOUT\nflush_ns=1000000000");
    host.device.tick(0).unwrap();
    host.write(0, 2).unwrap();
    let before = map_programs(&host);
    host.device.tick(SECOND_NS - 1).unwrap();
    assert_eq!(map_programs(&host), before, "not due yet");
    host.device.tick(SECOND_NS).unwrap();
    assert_eq!(map_programs(&host), before + 1);
    host.device.tick(2 * SECOND_NS).unwrap();
    assert_eq!(
        map_programs(&host),
        before + 1,
        "nothing is newer than flash"
    );
    host.verify_all().unwrap();
}

/// Programs for moves that background merges have made.
fn copies(host: &Host<LastPlusPlus, RamNand>) -> u64 {
    host.device.flash_layer().ledger.counters.programs.gc
}

#[test]
fn last_plus_plus_merges_while_nothing_is_asked() {
    let mut host =
        host::<LastPlusPlus>("log_blocks=6\nbackground=aggressive\nidle_timeout_ns=100000000");
    let mut rng = SplitMix64::new(4);
    for i in 0..60 {
        host.device.tick(i * SECOND_NS).unwrap();
        host.write(2 * rng.below(host.shadow.len() as u64), 2)
            .unwrap();
    }
    // A request has come since the last tick: the device was not idle all the time.
    let before = copies(&host);
    host.device.tick(60 * SECOND_NS).unwrap();
    assert_eq!(copies(&host), before);
    host.device.tick(60 * SECOND_NS + 100_000_000).unwrap();
    assert_eq!(copies(&host), before, "shorter than the timeout");
    host.device.tick(70 * SECOND_NS).unwrap();
    assert!(copies(&host) > before, "no background merge");
    host.device.audit().unwrap();
    host.verify_all().unwrap();
}
