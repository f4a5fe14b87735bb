//! Tables whose columns the user names, and what text files may have besides requests.

use std::path::Path;
use std::sync::Arc;

use floatgate_trace::{
    Cause, Format, Op, OpenOptions, Position, Request, TraceError, open, open_reader,
};

fn options(layout: &str) -> OpenOptions {
    OpenOptions {
        columns: Some(layout.parse().unwrap_or_else(|e| panic!("{e}"))),
        ..OpenOptions::default()
    }
}

fn read(text: impl AsRef<[u8]>, options: &OpenOptions) -> Result<Vec<Request>, TraceError> {
    let bytes = std::io::Cursor::new(text.as_ref().to_vec());
    open_reader("t", Box::new(bytes), options)?
        .requests()
        .collect()
}

fn r(arrival_ns: u64, op: Op, volume: u32, offset: u64, bytes: u64) -> Request {
    Request {
        arrival_ns,
        op,
        volume,
        stream: floatgate_trace::Stream::NONE,
        offset,
        bytes,
    }
}

#[test]
fn one_table_in_many_shapes() {
    let expected = [
        r(0, Op::Write, 0, 4096, 8192),
        r(1_500_000, Op::Read, 0, 0, 512),
        r(2_000_000, Op::Trim, 0, 512, 1024),
    ];
    let by_name = "time=Time:ms,offset=Sector:sectors,size=Bytes:B,op=Kind";
    let by_position = "time:ms,op,offset:sectors,_,size:B";
    let lines = [
        ["10", "W", "8", "x", "8192"],
        ["11.5", "read", "0", "x", "512"],
        ["12", "Discard", "1", "x", "1024"],
    ];
    for separator in [",", ";", "\t", "|", " ", " , ", "   "] {
        let body: String = lines
            .iter()
            .map(|line| line.join(separator) + "\n")
            .collect();
        let header = ["Time", "Kind", "Sector", "Note", "Bytes"].join(separator);
        let with_header = format!("{header}\n{body}");
        for (text, layout) in [
            (&body, by_position),
            (&with_header, by_position),
            (&with_header, by_name),
            (&format!("# made by hand\n\n#{header}\n{body}"), by_name),
            (
                &format!("\u{feff}{header}\r\n{}", body.replace('\n', "\r\n")),
                by_name,
            ),
            (&body, "time=#1:ms,size=#5:B,op=#2,offset=#3:512"),
        ] {
            let requests = read(text, &options(layout)).unwrap_or_else(|e| panic!("{e}: {text}"));
            assert_eq!(requests, expected, "{layout}: {text}");
            // A second file behind the first.
            let requests = read(
                format!("{text}{text}").replace("\n\u{feff}", "\n"),
                &options(layout),
            );
            assert_eq!(requests.unwrap().len(), 6, "{layout}: {text}");
        }
    }
}

#[test]
fn units_words_volumes_and_quotes() {
    let of = |layout: &str, line: &str| read(format!("{line}\n"), &options(layout)).unwrap()[0];
    let write = |offset, bytes| r(0, Op::Write, 0, offset, bytes);
    assert_eq!(
        of("offset:KiB,size:MiB,op:1=W/0=R", "3,1,1"),
        write(3072, 1 << 20)
    );
    assert_eq!(
        of("offset:pages:4096,size:2048,all:write", "3.0 1"),
        write(12_288, 2048)
    );
    assert_eq!(of("op,offset:B,size:B", "\"FWS\",\"7\",\"9\""), write(7, 9));
    assert_eq!(
        of("op,offset:B,size:B", "flush,,"),
        r(0, Op::Flush, 0, 0, 0)
    );
    let mut reader = open_reader(
        "t",
        Box::new(&b"sda,W,0,1\nsdb,W,0,1\n"[..]),
        &options("volume,op,offset:B,size:B"),
    )
    .unwrap();
    assert_eq!(reader.format(), Format::Columns);
    reader.next().unwrap();
    assert_eq!(reader.next().unwrap().unwrap().volume, 1);
    assert_eq!(reader.volume_name(1), "sdb");
    // Times of every unit, from the first request on.
    for (unit, expected) in [
        ("s", 2e9),
        ("ms", 2e6),
        ("us", 2e3),
        ("100ns", 200.0),
        ("ns", 2.0),
    ] {
        let layout = options(&format!("time:{unit},offset:B,size:B,all:read"));
        let requests = read("7,0,1\n9,0,1\n", &layout).unwrap();
        assert_eq!(requests[1].arrival_ns, expected as u64, "{unit}");
    }
}

#[test]
fn bad_tables_are_shown_with_line_and_column() {
    let layout = "time:s,offset:B,size:B,op";
    for (layout, text, line, message) in [
        (
            layout,
            "1,2,3,W\n1,x,3,W\n",
            2,
            "the offset in column 2 is no whole number, or too large: x",
        ),
        (
            layout,
            "1,2,3,W\n1,2\n",
            2,
            "the line has 2 columns; the operation is column 4",
        ),
        (
            layout,
            "1,2,3,W\nnever,2,3,W\n",
            2,
            "the time in column 1 is no number, or too large: never",
        ),
        (
            layout,
            "1,2,3,1\n",
            1,
            "unknown operation '1' (expected read, write, trim, flush or their first letters) in column 4",
        ),
        (layout, "1,2,,W\n", 1, "the size in column 3 is missing"),
        (
            layout,
            "1,-2,3,W\n",
            1,
            "the offset in column 2 is no whole number, or too large: -2",
        ),
        (
            "offset:MiB,size:B,all:read",
            "99999999999999,1\n",
            1,
            "the offset 99999999999999 lies beyond 2^64 bytes",
        ),
        (
            "offset=Off:B,size=Len:B,all:read",
            "off,length\n1,2\n",
            1,
            "no column of the header is named 'Len'",
        ),
    ] {
        let error = read(text, &options(layout)).unwrap_err();
        assert_eq!(
            (error.position, &*error.message),
            (Some(Position::Line(line)), message),
            "{text}"
        );
    }
    let both = OpenOptions {
        format: Some(Format::Msr),
        ..options(layout)
    };
    assert!(
        read("1,2,3,W\n", &both)
            .unwrap_err()
            .message
            .contains("both a format and columns")
    );
    assert!(
        read("1,2\0,3,W\n", &options(layout))
            .unwrap_err()
            .message
            .contains("no table")
    );
}

#[test]
fn an_unknown_table_keeps_its_first_line() {
    let error = read(
        "time,offset,size,op\n0.5,4096,512,write\n",
        &OpenOptions::default(),
    );
    let Some(Cause::Unrecognised(line)) = error.unwrap_err().cause.map(|cause| *cause) else {
        panic!("its first line is lost");
    };
    let layout = floatgate_trace::guess(&line).unwrap();
    assert_eq!(layout, "time=time:s,offset=offset:B,size=size:B,op=op");
    let requests = read(
        "time,offset,size,op\n0.5,4096,512,write\n",
        &options(&layout),
    )
    .unwrap();
    assert_eq!(requests, [r(0, Op::Write, 0, 4096, 512)]);
}

/// Writes a Parquet file with columns of several types.
fn foreign_parquet(path: &Path) {
    use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DoubleType, Int32Type};
    use parquet::file::writer::SerializedFileWriter;
    let schema =
        "message t { required double When; required boolean IsWrite; required int32 Sector;
                  required double Len; required binary Disk (UTF8); }";
    let schema = Arc::new(parquet::schema::parser::parse_message_type(schema).unwrap());
    let file = std::fs::File::create(path).unwrap();
    let mut writer = SerializedFileWriter::new(file, schema, Arc::default()).unwrap();
    let mut group = writer.next_row_group().unwrap();
    macro_rules! column {
        ($type:ty, $values:expr) => {
            let mut column = group.next_column().unwrap().unwrap();
            column
                .typed::<$type>()
                .write_batch(&$values, None, None)
                .unwrap();
            column.close().unwrap();
        };
    }
    column!(DoubleType, [100.5, 100.75]);
    column!(BoolType, [true, false]);
    column!(Int32Type, [8, 0]);
    column!(DoubleType, [8192.0, 512.0]);
    column!(
        ByteArrayType,
        [ByteArray::from("sda"), ByteArray::from("sdb")]
    );
    group.close().unwrap();
    writer.close().unwrap();
}

#[test]
fn parquet_of_others() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.parquet");
    foreign_parquet(&path);
    let expected = [
        r(0, Op::Write, 0, 4096, 8192),
        r(250_000_000, Op::Read, 1, 0, 512),
    ];
    for layout in [
        "time=When:s,offset=Sector:sectors,size=Len:B,op=IsWrite:true=W/false=R,volume=Disk",
        "time:s,op:true=W/false=R,offset:512,size:B,volume",
    ] {
        let mut reader = open(&path, &options(layout)).unwrap();
        let requests: Vec<Request> = reader.requests().map(Result::unwrap).collect();
        assert_eq!(requests, expected, "{layout}");
        assert_eq!(reader.volume_name(1), "sdb");
    }
    let fails = |layout: &str| {
        let error = match open(&path, &options(layout)) {
            Ok(mut reader) => reader.next().unwrap_err(),
            Err(error) => error,
        };
        error.message
    };
    assert!(
        fails("offset=No:B,size=Len:B,all:read")
            .contains("has no column 'No'; it has: When, IsWrite")
    );
    assert!(fails("offset=#9:B,size=Len:B,all:read").contains("has no column 9; it has"));
    assert!(fails("offset=Disk:B,size=Len:B,all:read").contains("wrong type"));
    assert!(
        fails("offset=When:B,size=Len:B,all:read").contains("the offset is no whole number: 100.5")
    );
    assert!(fails("offset=Sector:B,size=Len:B,op=IsWrite").contains("unknown operation 'true'"));
    let error = open(&path, &OpenOptions::default()).unwrap_err();
    assert!(error.hint.unwrap().contains("--columns"));
}

#[test]
fn a_byte_order_mark_is_no_part_of_a_text() {
    let mark = "\u{feff}";
    for text in [
        "time_ns,op,offset,size\n0,W,4096,512\n",
        "128166372003061629,host,0,Write,4096,512,100\n",
        "W 8 1\n",
        "0 0 8 1 0\n",
    ] {
        let plain = read(text, &OpenOptions::default()).unwrap();
        assert_eq!(
            read(format!("{mark}{text}"), &OpenOptions::default()).unwrap(),
            plain
        );
    }
    let error = read(mark, &OpenOptions::default()).unwrap_err();
    assert!(error.message.contains("empty"), "{error}");
}

#[test]
fn blkreplay_files_in_a_row() {
    let head = "Copyright Somebody\n\nPLEASE; do not edit\n##########\n\
                start ; sector; length ; op ;  replay_delay=0 ; replay_duration=0\n";
    let body = "  0.5 ;  8 ;  8 ; W ; 0.0 ; 0.0\n  1.5 ; 16 ;  8 ; R ; 0.0 ; 0.0\n";
    let read = |text: String| read(text, &OpenOptions::default());
    assert_eq!(read(format!("{head}{body}{head}{body}")).unwrap().len(), 4);
    // A damaged line is no head.
    let error = read(format!("{head}{body}  2.5 ; 16 ;\n{body}")).unwrap_err();
    assert_eq!(error.position, Some(Position::Line(8)));
    let error = read(format!("{head}{body}  2.5\n{body}")).unwrap_err();
    assert_eq!(error.position, Some(Position::Line(8)));
    let error = read(format!("{head}{body}some words\n{body}")).unwrap_err();
    assert_eq!(error.position, Some(Position::Line(9)));
    assert!(error.message.contains("1 lines with text"), "{error}");
}

#[test]
fn a_column_of_streams() {
    let text = "t,lba,len,op,dspec\n0,8,8,W,7\n1,8,8,W,\n2,8,8,R,\n";
    let streams = |text: &str, layout: &str| -> Result<Vec<Option<u32>>, TraceError> {
        let requests = read(text, &options(layout))?;
        Ok(requests.iter().map(|r| r.stream.number()).collect())
    };
    let by_name = "time=t:us,offset=lba:sectors,size=len:sectors,op=op,stream=dspec";
    let by_position = "time:us,offset:sectors,size:sectors,op,stream";
    for layout in [by_name, by_position] {
        assert_eq!(streams(text, layout).unwrap(), [Some(7), None, None]);
    }
    let wrong = |text: &str, layout: &str| streams(text, layout).unwrap_err().to_string();
    let large = wrong(&text.replace(",7", ",65535"), by_name);
    assert!(
        large.contains("stream 65535: streams go up to 65534"),
        "{large}"
    );
    let word = wrong(&text.replace(",7", ",x"), by_name);
    assert!(word.contains("stream"), "{word}");
    let unit = "offset:B,size:B,all:write,stream:B".parse::<floatgate_trace::Layout>();
    assert!(unit.unwrap_err().message.contains("a stream has no unit"));
}
