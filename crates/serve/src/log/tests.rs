use std::io::Cursor;

use floatgate_core::rng::SplitMix64;
use floatgate_device::drive::Unflushed;
use floatgate_device::image::ImageSpec;
use floatgate_device::{Drive, drive};
use floatgate_schemes::page::Page;

use super::*;
use crate::cut::CutAt;
use crate::{CutPlan, Shared, Tap};

fn device() -> Box<dyn Drive> {
    let spec = ImageSpec::small(96);
    drive::in_memory::<Page>(&spec).expect("a device")
}

/// A log of a little of everything, on a device that held something.
fn log() -> Vec<u8> {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("log");
    let mut device = device();
    device.write(4, &[7; 1024]).expect("written");
    let tap: Box<dyn Tap> = Box::new(LogTap::begin(&path, &mut *device).expect("a log"));
    let refused = LogTap::begin(&path, &mut *device).expect_err("it exists");
    assert!(refused.contains("exists"), "{refused}");
    let shared = Shared::new(device, vec![tap]);
    let mut noise = vec![0; 512];
    let mut rng = SplitMix64::new(1);
    noise.fill_with(|| rng.next() as u8);
    shared.write(512, &noise, false).expect("written");
    shared.flush().expect("flushed");
    shared.mark("one").expect("marked");
    shared.write(8192, &[9; 4096], true).expect("written");
    shared.write(1024, &[0; 512], false).expect("written");
    shared.trim(2048, 4096).expect("trimmed");
    shared.close().expect("closed");
    std::fs::read(&path).expect("the log")
}

/// Records with their bytes, and whether the log ends in the middle of one.
type Records = (Vec<(Record, Vec<u8>)>, bool);

fn records(bytes: &[u8]) -> Result<Records, LogError> {
    let mut reader = Reader::new(Cursor::new(bytes))?;
    let mut found = Vec::new();
    while let Some(record) = reader.next()? {
        found.push((record, reader.data().to_vec()));
    }
    Ok((found, reader.ended() == Ended::ShutDown))
}

#[test]
fn what_was_done_is_in_the_log_in_its_order() {
    let (records, complete) = records(&log()).expect("a log");
    assert!(complete);
    let told: Vec<_> = records
        .iter()
        .map(|(r, data)| (r.kind, r.fua, r.offset, r.bytes, data.len()))
        .collect();
    assert_eq!(
        told,
        [
            (Kind::Content, false, 0, 96 * 2048, 96 * 2048),
            (Kind::Begin, false, 0, 0, 0),
            (Kind::Write, false, 512, 512, 512),
            (Kind::Flush, false, 0, 0, 0),
            (Kind::Mark, false, 0, 0, 3),
            (Kind::Write, true, 8192, 4096, 4096),
            (Kind::Write, false, 1024, 512, 512),
            (Kind::Trim, false, 2048, 4096, 0),
            (Kind::End, false, 0, 0, 0),
        ]
    );
    assert_eq!(records[0].1[2048..3072], [7; 1024]);
    assert_eq!(records[4].1, b"one");
    assert!(records[6].1.iter().all(|&byte| byte == 0));
}

/// What the device holds after a cut was drawn: of that a log knows nothing.
#[test]
fn a_log_ends_with_the_power() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("log");
    let mut device = device();
    let tap: Box<dyn Tap> = Box::new(LogTap::begin(&path, &mut *device).expect("a log"));
    let shared = Shared::new(device, vec![tap]);
    shared.write(0, &[1; 512], false).expect("written");
    let plan = CutPlan {
        at: CutAt::After(0),
        unflushed: Unflushed::Drop,
        tear: false,
        seed: 1,
    };
    shared.cut(None, plan).expect("cut");
    shared.power_on().expect("on again");
    shared.write(512, &[2; 512], false).expect("written");
    shared.mark("two").expect("marked");
    shared.close().expect("closed");
    let bytes = std::fs::read(&path).expect("the log");
    let (records, _) = records(&bytes).expect("a log");
    let told: Vec<_> = records.iter().map(|(record, _)| record.kind).collect();
    assert_eq!(told, [Kind::Begin, Kind::Write, Kind::Cut]);
}

#[test]
fn a_log_that_was_cut_off_gives_its_whole_records() {
    let bytes = log();
    let (all, _) = records(&bytes).expect("a log");
    let mut seen = 0;
    for cut in HEADER_BYTES..bytes.len() {
        let (found, complete) = records(&bytes[..cut]).expect("no damage");
        assert!(!complete);
        assert!(found == all[..found.len()] && found.len() >= seen, "{cut}");
        seen = found.len();
    }
    assert_eq!(seen, all.len() - 1);
}

#[test]
fn any_flipped_bit_is_found() {
    let bytes = log();
    let (all, _) = records(&bytes).expect("a log");
    for bit in 0..bytes.len() * 8 {
        let mut damaged = bytes.clone();
        damaged[bit / 8] ^= 1 << (bit % 8);
        let found = records(&damaged);
        assert!(
            found.is_err(),
            "bit {bit}: {} of {}",
            found.unwrap().0.len(),
            all.len()
        );
    }
    // A record in the place of another of the same length.
    let mut moved = bytes.clone();
    let last = bytes.len() - HEAD_BYTES;
    let trim = last - HEAD_BYTES;
    moved.copy_within(last.., trim);
    assert!(matches!(records(&moved), Err(LogError::Damaged { at, .. }) if at == trim as u64));
}
