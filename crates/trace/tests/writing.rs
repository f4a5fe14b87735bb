//! Writing traces and reading them back.

mod samples;

use floatgate_trace::{
    Compression, Format, Op, OpenOptions, Request, Stream, WriteOptions, Writer, open,
};
use samples::{on, r};

fn trace() -> Vec<Request> {
    vec![
        r(0, Op::Write, 4096, 8192),
        r(1_000_000, Op::Read, 0, 4096),
        on(3, 1_000_100, Op::Write, 8192, 4096),
        r(2_000_000, Op::Trim, 4096, 4096),
        r(2_000_000, Op::Flush, 0, 0),
        r(3_000_000, Op::WriteZeroes, 0, 4096),
        r(3_000_000, Op::Write, 512, 512),
    ]
}

/// Writes the trace to a file of this name and reads it back.
fn there_and_back(
    name: &str,
    options: &WriteOptions,
) -> (floatgate_trace::WriteSummary, Vec<Request>) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    let mut writer = Writer::create(&path, options).unwrap();
    for request in trace() {
        writer.write(&request).unwrap();
    }
    let summary = writer.finish().unwrap();
    assert_eq!(summary.file_bytes, std::fs::metadata(&path).unwrap().len());
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    let mut reader = open(&path, &OpenOptions::default()).unwrap();
    let requests: Vec<_> = reader.requests().map(Result::unwrap).collect();
    assert_eq!(summary.written, requests.len() as u64);
    (summary, requests)
}

#[test]
fn exact_formats() {
    let mut flat = trace();
    flat[2].volume = 0;
    for name in ["t.csv", "t.csv.gz", "t.csv.xz", "t.csv.zst", "t.csv.bz2"] {
        let (summary, requests) = there_and_back(name, &WriteOptions::default());
        assert_eq!(requests, flat, "{name}");
        assert_eq!((summary.volumes_lost, summary.dropped), (1, 0));
    }
    #[cfg(feature = "parquet")]
    {
        let (summary, requests) = there_and_back("t.parquet", &WriteOptions::default());
        assert_eq!(requests, trace());
        assert_eq!((summary.written, summary.volumes_lost), (7, 0));
    }
}

#[test]
fn formats_of_simulators() {
    let data: Vec<Request> = trace()
        .into_iter()
        .filter(|r| matches!(r.op, Op::Read | Op::Write))
        .collect();
    for name in ["t.5ns", "t.5ms.gz"] {
        let (summary, requests) = there_and_back(name, &WriteOptions::default());
        assert_eq!(requests, data, "{name}");
        assert_eq!(summary.dropped, 3);
    }
    let (summary, requests) = there_and_back("t.msr.csv", &WriteOptions::default());
    let mut expected = data;
    expected[2].volume = 1; // numbered by appearance
    assert_eq!(requests, expected);
    assert_eq!((summary.dropped, summary.times_cut), (3, 0));
}

#[test]
fn fio() {
    let (summary, requests) = there_and_back("t.iolog", &WriteOptions::default());
    let mut expected = trace();
    expected.remove(5); // zeroes are unknown to fio
    expected[2].volume = 1;
    expected[2].arrival_ns = 1_000_000;
    assert_eq!(requests, expected);
    assert_eq!((summary.dropped, summary.times_cut), (1, 1));
}

#[test]
fn pages() {
    let options = WriteOptions {
        page_bytes: 2048,
        ..WriteOptions::default()
    };
    let (summary, requests) = there_and_back("t.pages", &options);
    let mut expected = trace();
    expected[2].volume = 0;
    expected[6] = r(3_000_000, Op::Write, 0, 2048);
    assert_eq!(requests, expected);
    assert_eq!((summary.widened, summary.volumes_lost), (1, 1));
}

#[test]
fn nothing_half_written_stays() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.csv");
    std::fs::write(&path, "before").unwrap();
    let mut writer = Writer::create(&path, &WriteOptions::default()).unwrap();
    writer.write(&r(0, Op::Write, 0, 512)).unwrap();
    drop(writer);
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "before");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[test]
fn what_cannot_be_written_is_said() {
    let folder = tempfile::tempdir().unwrap();
    let fails = |name: &str, options: &WriteOptions| {
        Writer::create(folder.path().join(name), options)
            .unwrap_err()
            .to_string()
    };
    let plain = WriteOptions::default();
    assert!(fails("t.unknown", &plain).contains("recorded"));
    let vscsi = WriteOptions {
        format: Some(Format::Vscsi),
        ..WriteOptions::default()
    };
    assert!(fails("t.vscsi", &vscsi).contains("cannot be written"));
    #[cfg(feature = "parquet")]
    assert!(fails("t.parquet.gz", &plain).contains("Parquet"));
    assert!(fails("no/such/folder/t.csv", &plain).contains("does not exist"));
    let forced = WriteOptions {
        format: Some(Format::Recorded),
        compression: Some(Compression::Zstd),
        ..WriteOptions::default()
    };
    let (_, requests) = there_and_back("odd.name", &forced);
    assert_eq!(requests.len(), 7);
}

/// More rows than a row group and a batch, numbers of every size.
#[cfg(feature = "parquet")]
#[test]
fn large_parquet() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.parquet");
    let mut random = floatgate_trace::generate::SplitMix64::new(9);
    let requests: Vec<Request> = (0..300_000u64)
        .map(|i| {
            on(
                random.next() as u32,
                u64::MAX / 300_000 * i,
                if i % 3 == 0 { Op::Read } else { Op::Write },
                random.next() >> 1,
                1 + random.below(1 << 32),
            )
        })
        .collect();
    let mut writer = Writer::create(&path, &WriteOptions::default()).unwrap();
    for request in &requests {
        writer.write(request).unwrap();
    }
    writer.finish().unwrap();
    let mut reader = open(&path, &OpenOptions::default()).unwrap();
    for (i, expected) in requests.iter().enumerate() {
        assert_eq!(reader.next().unwrap().as_ref(), Some(expected));
        assert_eq!(reader.line(), i as u64 + 1);
    }
    assert_eq!(reader.next().unwrap(), None);
    assert_eq!(Some(reader.bytes_read()), reader.bytes_total());
}

/// A table of numbers is read back by the Parquet library itself, over several row groups.
#[cfg(feature = "parquet")]
#[test]
fn tables_in_parquet() {
    use floatgate_trace::columns::{Column, Kind, TableWriter};
    use parquet::file::reader::{FileReader, SerializedFileReader};
    use parquet::record::Field;

    const COLUMNS: &[Column] = &[
        Column {
            name: "time_ns",
            kind: Kind::Rising,
        },
        Column {
            name: "size",
            kind: Kind::Number,
        },
        Column {
            name: "pages",
            kind: Kind::Small,
        },
        Column {
            name: "op",
            kind: Kind::Word(&["R", "W"]),
        },
    ];
    const ROWS: u64 = 300_000;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.parquet");
    let mut table = TableWriter::create(&path, COLUMNS).unwrap();
    for i in 0..ROWS {
        table
            .row(&[i * 7, u64::MAX - i, u64::from(u32::MAX), i % 2])
            .unwrap();
    }
    let summary = table.finish().unwrap();
    assert_eq!(summary.rows, ROWS);
    assert_eq!(summary.file_bytes, std::fs::metadata(&path).unwrap().len());
    let reader = SerializedFileReader::new(std::fs::File::open(&path).unwrap()).unwrap();
    assert_eq!(reader.metadata().num_row_groups(), 2);
    let mut rows = 0;
    for (i, row) in reader.get_row_iter(None).unwrap().enumerate() {
        let row = row.unwrap();
        let i = i as u64;
        let fields: Vec<&Field> = row.get_column_iter().map(|(_, field)| field).collect();
        let op = if i.is_multiple_of(2) { "R" } else { "W" };
        let expected = [
            Field::ULong(i * 7),
            Field::ULong(u64::MAX - i),
            Field::UInt(u32::MAX),
            Field::Str(op.into()),
        ];
        assert!(
            fields.iter().zip(&expected).all(|(a, b)| *a == b),
            "row {i}: {row:?}"
        );
        rows += 1;
    }
    assert_eq!(rows, ROWS);
    assert!(TableWriter::create(folder.path().join("t.parquet.gz"), COLUMNS).is_err());
}

/// Texts, numbers with a fraction and empty cells, in both shapes.
#[cfg(feature = "parquet")]
#[test]
fn tables_with_texts_and_empty_cells() {
    use floatgate_trace::columns::{Column, Kind, NONE, TableWriter};
    use parquet::file::reader::{FileReader, SerializedFileReader};

    const COLUMNS: &[Column] = &[
        Column {
            name: "name",
            kind: Kind::Text,
        },
        Column {
            name: "count",
            kind: Kind::Sparse,
        },
        Column {
            name: "share",
            kind: Kind::Real,
        },
    ];
    let folder = tempfile::tempdir().unwrap();
    let write = |file: &str| {
        let path = folder.path().join(file);
        let mut table = TableWriter::create(&path, COLUMNS).unwrap();
        let name = table.text("a \"b\", c");
        table.row(&[name, 7, 1.25_f64.to_bits()]).unwrap();
        table.row(&[NONE, NONE, NONE]).unwrap();
        table.row(&[name, 0, 3e-7_f64.to_bits()]).unwrap();
        assert_eq!(table.finish().unwrap().rows, 3);
        path
    };
    assert_eq!(
        std::fs::read_to_string(write("t.csv")).unwrap(),
        "name,count,share\n\"a \"\"b\"\", c\",7,1.25\n,,\n\"a \"\"b\"\", c\",0,0.0000003\n"
    );
    let file = std::fs::File::open(write("t.parquet")).unwrap();
    let reader = SerializedFileReader::new(file).unwrap();
    let rows: Vec<String> = reader
        .get_row_iter(None)
        .unwrap()
        .map(|row| row.unwrap().to_string())
        .collect();
    assert_eq!(
        rows,
        [
            r#"{name: "a "b", c", count: 7, share: 1.25}"#,
            "{name: null, count: null, share: null}",
            r#"{name: "a "b", c", count: 0, share: 0.0000003}"#
        ]
    );
}

/// The trace with streams: one on the first write, none on the last, and one that is the highest.
fn hinted() -> Vec<Request> {
    let mut hinted = trace();
    hinted[2].volume = 0;
    hinted[0].stream = Stream::new(3).unwrap();
    hinted[2].stream = Stream::new(u64::from(Stream::MAX)).unwrap();
    // Formats in pages widen what is less than one.
    hinted[6] = r(3_000_000, Op::Write, 0, 4096);
    hinted.insert(0, r(0, Op::Read, 0, 4096));
    hinted
}

#[test]
fn streams_go_through_every_format_that_has_them() {
    let folder = tempfile::tempdir().unwrap();
    let mut before = hinted();
    let mut names = vec!["a.csv", "b.pages", "c.csv.gz"];
    if cfg!(feature = "parquet") {
        names.insert(1, "p.parquet");
    }
    for name in names {
        let path = folder.path().join(name);
        let mut writer = Writer::create(&path, &WriteOptions::default()).unwrap();
        before
            .iter()
            .for_each(|request| writer.write(request).unwrap());
        assert_eq!(writer.finish().unwrap().streams_lost, 0, "{name}");
        let mut reader = open(&path, &OpenOptions::default()).unwrap();
        before = reader.requests().map(Result::unwrap).collect();
        assert_eq!(before, hinted(), "{name}");
    }
    let text = std::fs::read_to_string(folder.path().join("a.csv")).unwrap();
    let lines: Vec<&str> = text.lines().take(3).collect();
    assert_eq!(
        lines,
        [
            "time_ns,op,offset,size,stream",
            "0,R,0,4096,",
            "0,W,4096,8192,3"
        ]
    );
}

#[test]
fn streams_that_a_file_has_no_place_for_are_counted() {
    let folder = tempfile::tempdir().unwrap();
    let lost = |name: &str, requests: &[Request]| {
        let mut writer =
            Writer::create(folder.path().join(name), &WriteOptions::default()).unwrap();
        requests.iter().for_each(|r| writer.write(r).unwrap());
        writer.finish().unwrap().streams_lost
    };
    assert_eq!(lost("t.5ns", &hinted()), 2);
    // The first write decides on the column of a recording.
    let late = [trace(), hinted()].concat();
    assert_eq!(lost("t.csv", &late), 2);
    let none = Writer::create(folder.path().join("none.csv"), &WriteOptions::default()).unwrap();
    none.finish().unwrap();
    let text = std::fs::read_to_string(folder.path().join("none.csv")).unwrap();
    assert_eq!(text, "time_ns,op,offset,size\n");
}
