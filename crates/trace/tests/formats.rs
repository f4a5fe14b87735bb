//! Every format: how a hand-made trace reads, and the error for a bad one.

mod samples;

use floatgate_trace::{
    AddressUnit, BlockEvent, Format, Op, OpenOptions, Position, Reader, Request, TimeUnit,
    TraceError, open, open_merged, open_reader,
};
use samples::{blktrace_record, compressed, on, r, samples};

fn reader(name: &str, bytes: &[u8], options: &OpenOptions) -> Result<Reader, TraceError> {
    open_reader(
        name,
        Box::new(std::io::Cursor::new(bytes.to_vec())),
        options,
    )
}

fn all(name: &str, bytes: &[u8], options: &OpenOptions) -> Result<Vec<Request>, TraceError> {
    let mut reader = reader(name, bytes, options)?;
    reader.requests().collect()
}

fn fails(name: &str, text: &str, options: &OpenOptions) -> TraceError {
    match all(name, text.as_bytes(), options) {
        Ok(requests) => panic!("{text:?} was read: {requests:?}"),
        Err(error) => error,
    }
}

#[test]
fn every_format_is_detected_and_read() {
    let mut formats: Vec<Format> = Vec::new();
    for sample in samples() {
        let mut reader = reader(sample.name, &sample.bytes, &OpenOptions::default())
            .unwrap_or_else(|e| panic!("{}: {e}", sample.format));
        assert_eq!(reader.format(), sample.format, "{}", sample.name);
        let requests: Vec<Request> = reader
            .requests()
            .collect::<Result<_, _>>()
            .unwrap_or_else(|e| panic!("{}: {e}", sample.format));
        assert_eq!(requests, sample.requests, "{}", sample.format);
        assert_eq!(reader.volume_name(0), sample.volume, "{}", sample.format);
        assert_eq!(reader.counts().accepted, requests.len() as u64);
        assert_eq!(reader.next().unwrap(), None);
        formats.push(sample.format);
        // With the format given, the result is the same.
        let given = OpenOptions {
            format: Some(sample.format),
            ..OpenOptions::default()
        };
        assert_eq!(all("x", &sample.bytes, &given).unwrap(), requests);
    }
    for format in Format::ALL {
        assert!(
            formats.contains(&format) || !cfg!(feature = "parquet"),
            "{format} has no sample"
        );
        assert_eq!(format.name().parse::<Format>().unwrap(), format);
    }
}

#[test]
fn every_compression_is_recognised() {
    for sample in samples() {
        for (ending, bytes) in compressed(&sample.bytes) {
            let name = format!("{}.{ending}", sample.name);
            let requests = all(&name, &bytes, &OpenOptions::default())
                .unwrap_or_else(|e| panic!("{name}: {e}"));
            assert_eq!(requests, sample.requests, "{name}");
            // Two members, frames or streams after each other hold the whole.
            if sample.format == Format::Recorded {
                let twice = [bytes.clone(), bytes.clone()].concat();
                let requests = all(&name, &twice, &OpenOptions::default()).unwrap();
                assert_eq!(requests.len(), 2 * sample.requests.len(), "{name}");
            }
            // Cut off anywhere, the file is refused.
            for cut in [bytes.len() - 1, bytes.len() - 5, bytes.len() / 2, 12] {
                let result = all(&name, &bytes[..cut], &OpenOptions::default());
                assert!(
                    result.is_err(),
                    "{name} cut off at {cut} of {}",
                    bytes.len()
                );
            }
        }
    }
}

#[test]
fn bad_lines_are_shown_with_their_place() {
    let plain = OpenOptions::default();
    let cases = [
        ("t", "W 1 1\nR 2 1\nW x 1\n", 3, "page number", "W x 1"),
        (
            "t",
            "0,W,0,512\n1,X,0,512\n2,R,0,512\n",
            2,
            "operation",
            "1,X,0,512",
        ),
        (
            "t",
            "0,0,512,r,0.1\n0,0,512,r,-0.1\n",
            2,
            "negative",
            "-0.1",
        ),
        ("t", "1 0 8 8 1\n1 0 8 8 1\n1 0 8 8 2\n", 3, "flag", "8 2"),
        ("t", "1 0 8 8 1\n1 0 8\n", 2, "3 fields", "1 0 8"),
        (
            "t",
            "9,b,0,Read,0,512,1\n9,b,0,Read,0,99999999999999999999,1\n",
            2,
            "size",
            "9999",
        ),
        (
            "t",
            "fio version 3 iolog\n1 f add\n2 f chew 0 1\n",
            3,
            "chew",
            "2 f chew",
        ),
        ("t", "1,W,0,4096,10\n1,W,0,,10\n", 2, "missing", "1,W,0,,10"),
        (
            "t",
            "5,8,8,1,7\n5,8,8,2,7\n",
            2,
            "0 for a read",
            "5,8,8,2,7",
        ),
        (
            "t",
            "8,0 0 1 0.5 1 Q W 8 + 8 [x]\nnonsense\n",
            2,
            "not a blkparse event",
            "nonsense",
        ),
        (
            "t",
            "8,0 0 1 0.5 1 Q W 8 + 8 [x]\n8,0 0 1 0.5 1 Q W 8 x\n",
            2,
            "sector + sectors",
            "8 x",
        ),
        (
            "t",
            "0 ; 1 ; 1 ; W\n0 ; 1 ; 1\n",
            2,
            "3 fields",
            "0 ; 1 ; 1",
        ),
        (
            "t",
            "0\t0.1\t0\t0\tRead\t1\t1\n0\t0.1\t0\t0\tRest\t1\t1\n",
            2,
            "Rest",
            "Rest",
        ),
    ];
    for (name, text, line, message, shown) in cases {
        let error = fails(name, text, &plain);
        assert_eq!(error.position, Some(Position::Line(line)), "{error}");
        assert!(error.message.contains(message), "{error}");
        assert!(error.excerpt.as_ref().unwrap().contains(shown), "{error}");
        assert!(
            error.to_string().starts_with(&format!("t, line {line}: ")),
            "{error}"
        );
    }
}

#[test]
fn an_error_comes_again_and_follows_the_requests_before_it() {
    let mut reader = reader("t", b"W 1 1\nW 2 1\nbad\n", &OpenOptions::default()).unwrap();
    let mut batch = Vec::new();
    let first = reader.next_batch(&mut batch, 100).unwrap_err();
    assert_eq!(batch.len(), 2);
    assert_eq!(reader.next().unwrap_err(), first);
    assert_eq!(reader.counts().accepted, 2);
}

#[test]
fn traces_without_a_request() {
    let plain = OpenOptions::default();
    assert!(fails("t", "", &plain).message.contains("empty"));
    assert!(fails("t", " \n\n", &plain).message.contains("empty"));
    let error = fails("t", "some prose\nand more\n", &plain);
    assert!(error.message.contains("some prose"), "{error}");
    assert!(error.hint.unwrap().contains("blkparse"));
    // The format is known, but nothing in it is a request.
    let error = fails("t", "8,0 0 1 0.5 1 G W 8 + 8 [x]\n", &plain);
    assert!(error.message.contains("no request in"), "{error}");
    assert!(error.excerpt.unwrap().contains("G W 8"));
    let load = OpenOptions {
        format: Some(Format::Blkreplay),
        ..OpenOptions::default()
    };
    assert!(
        fails("t", "W 1 1\nW 2 1\n", &load)
            .excerpt
            .unwrap()
            .contains("W 1 1")
    );
    assert!(
        fails("t", "\0\0\0\0binary", &plain)
            .message
            .contains("binary")
    );
    assert!(
        open("/no/such/file", &plain)
            .unwrap_err()
            .message
            .contains("cannot open")
    );
    assert!(
        open(std::env::temp_dir(), &plain)
            .unwrap_err()
            .message
            .contains("directory")
    );
}

#[test]
fn sizes_are_checked() {
    let plain = OpenOptions::default();
    assert!(
        fails("t", "0,W,18446744073709551615,1\n", &plain)
            .message
            .contains("2^64")
    );
    assert!(
        fails("t", "0,W,0,4294967297\n", &plain)
            .message
            .contains("4 GiB")
    );
    let mut reader = reader("t", b"0,W,0,0\n0,W,0,1\n0,T,0,9999999999\n", &plain).unwrap();
    assert_eq!(reader.requests().count(), 2);
    assert_eq!((reader.counts().skipped, reader.counts().empty), (1, 1));
}

#[test]
fn one_volume_of_several() {
    let text = b"5,R,0,512,3\n7,W,512,512,5\n5,W,0,512,6\n";
    let by_number = OpenOptions {
        volume: Some(1),
        ..OpenOptions::default()
    };
    let by_name = OpenOptions {
        volume_name: Some("7".to_owned()),
        ..OpenOptions::default()
    };
    for options in [by_number, by_name] {
        let mut reader = reader("t", text, &options).unwrap();
        let requests: Vec<_> = reader.requests().map(Result::unwrap).collect();
        // Times stay relative to the trace's first request.
        assert_eq!(requests, [on(1, 2000, Op::Write, 512, 512)]);
        assert_eq!(reader.counts().filtered, 2);
        assert_eq!(reader.volume_names(), ["5", "7"]);
    }
    let none = OpenOptions {
        volume_name: Some("9".to_owned()),
        ..OpenOptions::default()
    };
    let error = fails("t", std::str::from_utf8(text).unwrap(), &none);
    assert!(error.message.contains("'9'") && error.hint.unwrap().contains("5, 7"));
}

#[test]
fn times_that_go_back() {
    let text = b"5,R,0,512,30\n5,W,512,512,10\n5,W,0,512,31\n5,W,0,512,30\n";
    let mut reader = reader("t", text, &OpenOptions::default()).unwrap();
    let times: Vec<u64> = reader.requests().map(|r| r.unwrap().arrival_ns).collect();
    assert_eq!(times, [0, 0, 1000, 0]);
    let counts = reader.counts();
    assert_eq!(
        (counts.backwards, counts.clamped, counts.clamped_ns),
        (1, 1, 20_000)
    );
}

#[test]
fn units_of_the_five_columns() {
    let options = OpenOptions {
        format: Some(Format::SsdSimAscii),
        time_unit: Some(TimeUnit::S),
        address_unit: Some(AddressUnit::Bytes),
        ..OpenOptions::default()
    };
    let requests = all("t", b"1 0 100 7 0\n3.5 0 8 8 1\n", &options).unwrap();
    assert_eq!(
        requests,
        [r(0, Op::Write, 100, 7), r(2_500_000_000, Op::Read, 8, 8)]
    );
    let options = OpenOptions {
        time_unit: Some(TimeUnit::S),
        ..OpenOptions::default()
    };
    assert!(fails("t", "W 1 1\n", &options).message.contains("unit"));
}

#[test]
fn page_sizes() {
    let of = |page_bytes| OpenOptions {
        page_bytes,
        ..OpenOptions::default()
    };
    let text = b"# page_bytes 2048\nW 1 1\n";
    assert_eq!(
        all("t", text, &of(0)).unwrap(),
        [r(0, Op::Write, 2048, 2048)]
    );
    assert_eq!(all("t", text, &of(2048)).unwrap().len(), 1);
    assert!(
        all("t", text, &of(512))
            .unwrap_err()
            .message
            .contains("2048")
    );
    assert_eq!(
        all("t", b"W 1 1\n", &of(512)).unwrap(),
        [r(0, Op::Write, 512, 512)]
    );
}

#[test]
fn events_of_the_block_layer() {
    let issue = (1u32 | 64 | 256) << 16 | 7;
    let done = (2u32 | 128) << 16 | 8;
    let bytes = [
        blktrace_record(false, 5, 8, 512, issue, b""),
        blktrace_record(false, 9, 16, 1024, done, b""),
    ]
    .concat();
    // Without queue events, issue events are taken.
    let requests = all("t", &bytes, &OpenOptions::default()).unwrap();
    assert_eq!(requests, [r(0, Op::Read, 4096, 512)]);
    let of = |event| OpenOptions {
        event: Some(event),
        ..OpenOptions::default()
    };
    let requests = all("t", &bytes, &of(BlockEvent::Complete)).unwrap();
    assert_eq!(requests, [r(0, Op::Write, 8192, 1024)]);
    assert!(all("t", &bytes, &of(BlockEvent::Queue)).is_err());
    let text = "8,0 0 1 0.5 1 D W 8 + 8 [x]\n8,0 0 1 0.6 1 C W 8 + 8 [0]\n";
    assert_eq!(
        all("t", text.as_bytes(), &OpenOptions::default())
            .unwrap()
            .len(),
        1
    );
    // Another version of the records.
    let mut other = bytes;
    other[0] = 8;
    assert!(
        all("t", &other, &OpenOptions::default())
            .unwrap_err()
            .message
            .contains("version 8")
    );
}

#[test]
fn several_files_as_one() {
    let folder = tempfile::tempdir().unwrap();
    let path = |i: usize| folder.path().join(format!("x.blktrace.{i}"));
    let write = |time, sector| {
        let action = (2u32 | 16) << 16 | 1;
        blktrace_record(false, time, sector, 512, action, b"")
    };
    let name = blktrace_record(false, 1, 0, 0, (1 << 10) << 16, b"name");
    std::fs::write(path(0), [write(100, 1), write(300, 3)].concat()).unwrap();
    std::fs::write(
        path(1),
        [name.clone(), write(50, 0), write(300, 4)].concat(),
    )
    .unwrap();
    std::fs::write(path(2), name).unwrap();
    let paths = [path(0), path(1), path(2)];
    let mut reader = open_merged(&paths, &OpenOptions::default()).unwrap();
    let requests: Vec<_> = reader.requests().map(Result::unwrap).collect();
    let expected = [(0, 0), (50, 1), (250, 3), (250, 4)];
    assert_eq!(
        requests,
        expected.map(|(t, s)| r(t, Op::Write, s * 512, 512))
    );
    assert_eq!(reader.volume_name(0), "8,16");
    assert_eq!(reader.counts().skipped, 2);
    assert_eq!(Some(reader.bytes_read()), reader.bytes_total());
    // A damaged file is named.
    std::fs::write(path(1), b"\x07taejunk").unwrap();
    let mut reader = open_merged(&paths, &OpenOptions::default()).unwrap();
    assert!(reader.next().unwrap_err().path.ends_with("x.blktrace.1"));
    std::fs::write(path(2), "W 1 1\n").unwrap();
    assert!(
        open_merged(&paths, &OpenOptions::default())
            .unwrap_err()
            .message
            .contains("pages")
    );
    assert!(open_merged::<&str>(&[], &OpenOptions::default()).is_err());
}

#[test]
fn progress_and_places() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.pages");
    std::fs::write(&path, "# c\nW 1 1\n\nW 2 1\n").unwrap();
    let mut reader = open(&path, &OpenOptions::default()).unwrap();
    assert_eq!(reader.bytes_total(), Some(17));
    reader.next().unwrap();
    assert_eq!(reader.line(), 2);
    reader.next().unwrap();
    assert_eq!((reader.line(), reader.bytes_read()), (4, 17));
    let error = reader.error_here("page 2 is past the end", "make the device larger");
    assert!(error.to_string().contains("line 4: page 2"));
}
