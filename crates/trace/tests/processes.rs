//! Streams by process: each format that knows processes, several files, and the formats that do not.

mod samples;

use floatgate_trace::{
    Cause, Format, Op, OpenOptions, Reader, Request, StreamFrom, TraceError, generate, open_merged,
    open_reader,
};
use samples::{blktrace_record, samples};

const QUEUE: u32 = 1;
const READ: u32 = 1 << 16;
const WRITE: u32 = 1 << 17;
const FLUSH: u32 = 1 << 18;

fn by_process() -> OpenOptions {
    OpenOptions {
        stream_from: StreamFrom::Process,
        ..OpenOptions::default()
    }
}

fn read(bytes: &[u8], options: &OpenOptions) -> Result<Reader, TraceError> {
    open_reader("t", Box::new(std::io::Cursor::new(bytes.to_vec())), options)
}

/// Operations and streams.
fn streams(mut reader: Reader) -> Vec<(Op, Option<u32>)> {
    let of = |request: Request| (request.op, request.stream.number());
    reader.requests().map(|r| of(r.unwrap())).collect()
}

/// The streams in a trace by process; without that it has none.
fn told(bytes: &[u8]) -> Vec<(Op, Option<u32>)> {
    let plain = streams(read(bytes, &OpenOptions::default()).unwrap());
    assert!(plain.iter().all(|(_, stream)| stream.is_none()));
    let told = streams(read(bytes, &by_process()).unwrap());
    assert!(plain.iter().map(|p| p.0).eq(told.iter().map(|t| t.0)));
    told
}

fn record(big: bool, time: u64, pid: u32, action: u32) -> Vec<u8> {
    let mut record = blktrace_record(big, time, 8, 512, action, b"");
    record[32..36].copy_from_slice(&match big {
        true => pid.to_be_bytes(),
        false => pid.to_le_bytes(),
    });
    record
}

#[test]
fn writers_are_numbered_in_the_order_of_their_first_writes() {
    let expected = [
        (Op::Read, None),
        (Op::Write, Some(0)),
        (Op::Flush, None),
        (Op::Write, Some(1)),
        (Op::Write, Some(0)),
    ];
    let text = "8,0 0 1 0.1 5 Q R 8 + 8 [x]\n8,0 0 2 0.2 70 Q W 8 + 8 [x]\n8,0 0 3 0.3 5 Q FWS 8 + 8 [x]\n\
                8,1 0 4 0.4 70 Q WS 8 + 8 [renamed]\n";
    assert_eq!(told(text.as_bytes()), expected);
    for big in [false, true] {
        let records = [
            record(big, 1, 5, READ | QUEUE),
            record(big, 2, 70_000, WRITE | QUEUE),
            record(big, 3, 5, WRITE | FLUSH | QUEUE),
            record(big, 4, 70_000, WRITE | QUEUE),
        ];
        assert_eq!(told(&records.concat()), expected);
    }
}

/// A name counts up to its first tab, and a request of two pages has two lines and one process.
#[test]
fn processes_by_name() {
    let text = "0.1\tR\t800\t4096\treader\tdm-1\t00ff\n\
                0.2\tW\t16\t8192\tmain \tdm-1\t00ff\n\
                0.2\tW\t16\t8192\tmain \tdm-1\t01ff\n\
                0.3\tW\t16\t4096\tAsyncTask \t#3\tdm-1\t02ff\n\
                0.4\tW\t16\t4096\tAsyncTask \t#4\tdm-1\t03ff\n\
                0.5\tW\t16\t4096\tmain\tdm-1\t04ff\n";
    let streams: Vec<_> = told(text.as_bytes()).into_iter().map(|(_, s)| s).collect();
    assert_eq!(streams, [None, Some(0), Some(1), Some(1), Some(0)]);
}

/// `blktrace` writes a file for each CPU, and a process moves between CPUs.
#[test]
fn a_process_is_one_in_several_files() {
    let folder = tempfile::tempdir().unwrap();
    let paths = [0, 1].map(|i| folder.path().join(format!("x.blktrace.{i}")));
    let write = |time, pid| record(false, time, pid, WRITE | QUEUE);
    let first = [write(100, 7), write(300, 9), write(500, 8)].concat();
    std::fs::write(&paths[0], first).unwrap();
    std::fs::write(&paths[1], [write(50, 9), write(400, 7)].concat()).unwrap();
    let found = streams(open_merged(&paths, &by_process()).unwrap());
    let expected = [0, 1, 0, 1, 2].map(|stream| (Op::Write, Some(stream)));
    assert_eq!(found, expected);
}

#[test]
fn formats_without_processes_are_refused() {
    let refused = |opened: Result<Reader, TraceError>, what: &str| {
        let error = opened.err().unwrap_or_else(|| panic!("{what} was opened"));
        assert_eq!(error.cause.as_deref(), Some(&Cause::NoProcesses), "{what}");
        assert!(
            error
                .hint
                .unwrap()
                .ends_with("blkparse, blktrace, hash-text")
        );
    };
    for sample in samples() {
        let opened = open_reader(
            sample.name,
            Box::new(std::io::Cursor::new(sample.bytes)),
            &by_process(),
        );
        match sample.format {
            Format::Blkparse | Format::Blktrace | Format::HashText => drop(opened.unwrap()),
            format => refused(opened, format.name()),
        }
    }
    let table = OpenOptions {
        columns: Some("offset:B,size:B,op,stream".parse().unwrap()),
        ..by_process()
    };
    refused(read(b"0,4096,W,3\n", &table), "a table");
    refused(
        generate::open("zipf:space=64", &by_process()),
        "a generator",
    );
}
