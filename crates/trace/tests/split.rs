//! A trace split into volumes gives the same requests as reading it volume by volume.

use floatgate_trace::split::{Identity, Split, Splitter, Volume};
use floatgate_trace::{OpenOptions, Reader, Request, open_reader};

fn reader(name: &str, text: &str) -> Reader {
    let bytes = text.to_owned().into_bytes();
    open_reader(
        name,
        Box::new(std::io::Cursor::new(bytes)),
        &OpenOptions::default(),
    )
    .expect("a trace")
}

/// The requests of one volume as the reader's own filter gives them.
fn filtered(name: &str, text: &str, volume: &str) -> Vec<Request> {
    let options = OpenOptions {
        volume_name: Some(volume.into()),
        ..OpenOptions::default()
    };
    let bytes = text.to_owned().into_bytes();
    let mut reader = open_reader(name, Box::new(std::io::Cursor::new(bytes)), &options).unwrap();
    let requests = reader.requests().map(|request| Request {
        volume: 0,
        ..request.unwrap()
    });
    requests.collect()
}

fn split(files: &[(&str, &str)], identity: Identity) -> Split {
    let mut splitter = Splitter::new().unwrap();
    for (name, text) in files {
        splitter
            .add(reader(name, text), name, identity, &mut |_| {})
            .unwrap();
    }
    splitter.finish().unwrap()
}

fn requests(split: &Split, volume: &Volume) -> Vec<Request> {
    let mut reader = split.read(volume);
    let mut all = Vec::new();
    while let Some(request) = reader.next().unwrap() {
        all.push(request);
    }
    all
}

fn names(split: &Split) -> Vec<&str> {
    split.volumes().iter().map(|v| v.name.as_str()).collect()
}

/// An Alibaba trace: every volume at its own pace, so that their extents lie among each other.
fn alibaba(volumes: u64, lines: u64) -> String {
    let mut state = 1_u64;
    let mut random = |n: u64| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (state >> 33) % n
    };
    let line = |i: u64| {
        let volume = random(volumes).min(random(volumes));
        let op = if random(3) == 0 { 'R' } else { 'W' };
        let (offset, bytes) = (
            random(1 << 20) * 4096 + random(2) * 100,
            (1 + random(8)) * 512,
        );
        format!(
            "{volume},{op},{offset},{bytes},{}\n",
            5_000_000 + i * 10 - random(20)
        )
    };
    (0..lines).map(line).collect()
}

#[test]
fn every_volume_reads_as_if_the_others_were_not_there() {
    let text = alibaba(9, 40_000);
    let split = split(&[("a.csv", &text)], Identity::Name);
    assert_eq!(split.volumes().len(), 9);
    let mut sum = 0;
    for volume in split.volumes() {
        let alone = filtered("a.csv", &text, &volume.name);
        assert_eq!(requests(&split, volume), alone, "volume {}", volume.name);
        let back = alone
            .windows(2)
            .filter(|w| w[1].arrival_ns < w[0].arrival_ns);
        assert_eq!(volume.backwards, back.count() as u64);
        sum += volume.requests;
    }
    assert_eq!(sum, 40_000);
}

#[test]
fn volumes_are_read_side_by_side_and_again() {
    let text = alibaba(2, 5_000);
    let split = split(&[("a.csv", &text)], Identity::Name);
    let [a, b] = split.volumes() else {
        panic!("two volumes")
    };
    let whole = (requests(&split, a), requests(&split, b));
    let (mut left, mut right) = (split.read(a), split.read(b));
    for _ in 0..100 {
        left.next().unwrap();
        right.next().unwrap();
    }
    left.rewind();
    let again: Vec<Request> = std::iter::from_fn(|| left.next().unwrap()).collect();
    let rest: Vec<Request> = std::iter::from_fn(|| right.next().unwrap()).collect();
    assert_eq!(again, whole.0);
    assert_eq!(rest, whole.1[100..]);
}

#[test]
fn volumes_go_on_in_the_next_file_where_names_count() {
    // Tencent: seconds, sector, sectors, operation, volume.
    let files = [
        ("1.csv", "100,0,8,1,77\n101,8,8,1,5\n"),
        ("2.csv", "103,16,8,0,77\n"),
    ];
    let one = split(&files, Identity::Name);
    assert_eq!(names(&one), ["77", "5"]);
    let both = requests(&one, &one.volumes()[0]);
    let times: Vec<u64> = both.iter().map(|r| r.arrival_ns).collect();
    assert_eq!(times, [0, 3_000_000_000]);
    let apart = split(&files, Identity::File);
    assert_eq!(names(&apart), ["1.csv:77", "1.csv:5", "2.csv"]);
    assert_eq!(requests(&apart, &apart.volumes()[2])[0].arrival_ns, 0);
}

#[test]
fn a_broken_file_breaks_its_own_volumes_only() {
    let mut splitter = Splitter::new().unwrap();
    let good = reader("good.csv", "1,W,0,4096,5\n2,W,0,4096,6\n");
    let bad = reader("bad.csv", "2,W,0,4096,7\n3,W,0,4096,8\n3,W,zero,4096,9\n");
    let mut add = |reader, name| {
        splitter
            .add(reader, name, Identity::Name, &mut |_| {})
            .unwrap()
    };
    assert_eq!(add(good, "good.csv").error, None);
    let error = add(bad, "bad.csv")
        .error
        .expect("a broken line")
        .to_string();
    assert!(error.starts_with("bad.csv, line 3: "), "{error}");
    let split = splitter.finish().unwrap();
    let broken: Vec<bool> = split.volumes().iter().map(|v| v.error.is_some()).collect();
    assert_eq!(
        (names(&split), broken),
        (vec!["1", "2", "3"], vec![false, true, true])
    );
}
