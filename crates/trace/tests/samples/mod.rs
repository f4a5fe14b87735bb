//! A small hand-made trace in every format.
#![allow(dead_code)] // each test file uses a part

use floatgate_trace::{Format, Op, Request, WriteOptions, Writer};

/// A request without volume.
pub fn r(arrival_ns: u64, op: Op, offset: u64, bytes: u64) -> Request {
    on(0, arrival_ns, op, offset, bytes)
}

/// A request on a volume.
pub fn on(volume: u32, arrival_ns: u64, op: Op, offset: u64, bytes: u64) -> Request {
    Request {
        arrival_ns,
        op,
        volume,
        stream: floatgate_trace::Stream::NONE,
        offset,
        bytes,
    }
}

/// A trace as bytes, its name, its format and what it holds.
pub struct Sample {
    pub name: &'static str,
    pub format: Format,
    pub bytes: Vec<u8>,
    pub requests: Vec<Request>,
    /// The name of volume 0.
    pub volume: &'static str,
}

fn text(
    name: &'static str,
    format: Format,
    text: &str,
    volume: &'static str,
    requests: Vec<Request>,
) -> Sample {
    Sample {
        name,
        format,
        bytes: text.as_bytes().to_vec(),
        requests,
        volume,
    }
}

/// A record of binary blktrace.
pub fn blktrace_record(
    big: bool,
    time: u64,
    sector: u64,
    bytes: u32,
    action: u32,
    payload: &[u8],
) -> Vec<u8> {
    let mut record = Vec::new();
    let mut put = |little: &[u8]| {
        if big {
            record.extend(little.iter().rev());
        } else {
            record.extend(little);
        }
    };
    put(&0x6561_7407u32.to_le_bytes());
    put(&1u32.to_le_bytes());
    put(&time.to_le_bytes());
    put(&sector.to_le_bytes());
    put(&bytes.to_le_bytes());
    put(&action.to_le_bytes());
    put(&77u32.to_le_bytes());
    put(&((8u32 << 20) | 16).to_le_bytes());
    put(&0u32.to_le_bytes());
    put(&0u16.to_le_bytes());
    put(&(payload.len() as u16).to_le_bytes());
    record.extend(payload);
    record
}

fn blktrace(big: bool) -> Vec<u8> {
    let category = |bits: u32| bits << 16;
    let queue = 1;
    [
        // a process name, a read, an issue event, a flush with data, a discard, an empty flush, a
        // passed-through command
        blktrace_record(big, 900, 0, 0, category(1 << 10), b"worker/1"),
        blktrace_record(big, 1000, 8, 4096, category(1 | 16 | 256) | queue, b""),
        blktrace_record(big, 1010, 8, 4096, category(1 | 64) | 7, b""),
        blktrace_record(big, 1500, 16, 512, category(2 | 4 | 16) | queue, b""),
        blktrace_record(
            big,
            1600,
            0,
            65_536,
            category(2 | 16 | (1 << 13)) | queue,
            b"",
        ),
        blktrace_record(big, 1700, 0, 0, category(4 | 16) | queue | 256, b"cgroupid"),
        blktrace_record(big, 1800, 3, 96, category(1 | 16 | 512) | queue, b"cdb"),
    ]
    .concat()
}

fn vscsi(version: u16) -> Vec<u8> {
    let rows: [(u16, u32, u64, u64); 5] = [
        (0x2a, 4096, 80, 5_000_000),
        (0x28, 512, 8, 5_000_010),
        (0x12, 36, 0, 5_000_011),
        (0x35, 0, 0, 5_000_020),
        (0x88, 8192, 96, 5_000_021),
    ];
    let mut out = Vec::new();
    for (i, (command, bytes, lba, time)) in rows.into_iter().enumerate() {
        let head = |out: &mut Vec<u8>| {
            out.extend((i as u32).to_le_bytes());
            out.extend(bytes.to_le_bytes());
            out.extend(1u32.to_le_bytes());
        };
        let code = |out: &mut Vec<u8>| {
            out.extend(command.to_le_bytes());
            out.extend((version << 8).to_le_bytes());
        };
        if version == 1 {
            head(&mut out);
            code(&mut out);
        } else {
            code(&mut out);
            head(&mut out);
        }
        out.extend(lba.to_le_bytes());
        out.extend(time.to_le_bytes());
        if version == 2 {
            out.extend(250u64.to_le_bytes());
        }
    }
    out
}

/// A trace of the writer's, as bytes.
pub fn written(requests: &[Request], extension: &str, options: &WriteOptions) -> Vec<u8> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(format!("trace.{extension}"));
    let mut writer = Writer::create(&path, options).unwrap();
    for request in requests {
        writer.write(request).unwrap();
    }
    writer.finish().unwrap();
    std::fs::read(path).unwrap()
}

/// Every format.
pub fn samples() -> Vec<Sample> {
    use Op::{Flush, Read, Trim, Write, WriteZeroes};
    let everything = vec![
        r(0, Write, 4096, 8192),
        r(5, Read, 512, 512),
        r(9, Flush, 0, 0),
        r(12, Trim, 0, 1 << 33),
        r(12, WriteZeroes, 65_536, 4096),
    ];
    let five = vec![
        on(2, 0, Write, 5120, 4096),
        on(0, 1_500_000, Read, 512, 512),
        on(2, 2_000_000, Write, 0, 1024),
    ];
    let vscsi_requests = vec![
        r(0, Write, 40_960, 4096),
        r(10_000, Read, 4096, 512),
        r(20_000, Flush, 0, 0),
        r(21_000, Read, 49_152, 8192),
    ];
    let blktrace_requests = vec![
        r(0, Read, 4096, 4096),
        r(500, Flush, 0, 0),
        r(500, Write, 8192, 512),
        r(600, Trim, 0, 65_536),
        r(700, Flush, 0, 0),
    ];
    let mut list = vec![
        text(
            "a.csv",
            Format::Msr,
            "Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime\n\
             128166372003061629,box,1,Read,7014609920,24576,41286\r\n\
             128166372003061729,box,0,write,8192,512,9\n\
             128166372003061628,box,1,Write,0,4096\n",
            "box_1",
            vec![
                on(0, 0, Read, 7_014_609_920, 24_576),
                on(1, 10_000, Write, 8192, 512),
                on(0, 0, Write, 0, 4096),
            ],
        ),
        text(
            "a.spc",
            Format::Spc,
            "1,20,8192,W,0.551706,x,y\n0,3,1024,r,0.554041\n",
            "0",
            vec![
                on(1, 551_706_000, Write, 10_240, 8192),
                on(0, 554_041_000, Read, 1536, 1024),
            ],
        ),
        text(
            "a.trace",
            Format::DiskSimAscii,
            "3.5 2 10 8 0\n5.0 0 1 1 1\n5.500000 2 0 2 0",
            "0",
            five.clone(),
        ),
        text(
            "a.5msB",
            Format::DiskSimAsciiBytes,
            "3.5 2 5120 4096 0\n5 0 512 512 1\n5.5 2 0 1024 0\n",
            "0",
            five.clone(),
        ),
        text(
            "a.5us",
            Format::MicrosecondAscii,
            "3500 2 10 8 0\n5000 0 1 1 1\n5500 2 0 2 0\n",
            "0",
            five.clone(),
        ),
        text(
            "a.txt",
            Format::SsdSimAscii,
            "3500000 2 10 8 0\n  5000000\t0 1 1 1\n5500000 2 0 2 0\n",
            "0",
            five,
        ),
        text(
            "a.blkparse",
            Format::Blkparse,
            "#Maj,Mn CPU Seq Seconds PID Evt Typ Sector +Len Description\n\
             \x20 8,16   3        1     5.000000000   697  A   W 223490 + 8 <- (8,17) 223456\n\
             \x20 8,16   3        2     5.000000100   697  Q   W 223490 + 8 [kjournald]\n\
             \x20 8,16   3        3     5.000000150   697  G   W 223490 + 8 [kjournald]\n\
             \x20 8,16   3        4     5.000000200   697  P   N [kjournald]\n\
             \x20 8,16   0        5     5.000001100   698  Q FWS [fsync]\n\
             \x20 8,16   0        6     5.000001200   698  Q  RM 8 + 16 [ls]\n\
             \x20 8,16   0        7     5.000001300   698  Q FWFS 64 + 8 [fsync]\n\
             \x20 8,17   0        8     5.000001400   698  Q   D 0 + 2048 [fstrim]\n\
             \x20 8,16   0        9     5.000001500   698  Q  FN [fsync]\n\
             \x20 8,16   0       10     5.000001600   698  Q   N [smartctl]\n\
             \x20 8,16   0        0     5.000001650     0  m   N a message\n\
             CPU0 (sdb):\n Reads Queued:  1,  8KiB\n\nTotal (sdb):\nThroughput (R/W): 1KiB/s\nInput file x added\n",
            "8,16",
            vec![
                r(0, Write, 114_426_880, 4096),
                r(1000, Flush, 0, 0),
                r(1100, Read, 4096, 8192),
                r(1200, Flush, 0, 0),
                r(1200, Write, 32_768, 4096),
                on(1, 1300, Trim, 0, 1 << 20),
                r(1400, Flush, 0, 0),
            ],
        ),
        text(
            "a.iolog",
            Format::FioIolog,
            "fio version 2 iolog\n/dev/x add\n/dev/x open\n/dev/x write 4096 8192\n/dev/x wait 250\n\
             /dev/y read 0 512\n/dev/x sync 0 0\n/dev/x trim 512 1024\n/dev/x close\n",
            "/dev/x",
            vec![
                r(0, Write, 4096, 8192),
                on(1, 250_000, Read, 0, 512),
                r(250_000, Flush, 0, 0),
                r(250_000, Trim, 512, 1024),
            ],
        ),
        text(
            "b.iolog",
            Format::FioIolog,
            "fio version 3 iolog\n0 f add\n1 f open\n7 f write 4096 8192\n8 f datasync\n9 f close\n",
            "f",
            vec![r(7000, Write, 4096, 8192), r(8000, Flush, 0, 0)],
        ),
        text(
            "a.csv",
            Format::Alibaba,
            "419,W,8792731648,16384,1577808144360767\n725,R,512,4096,1577808144360867\n",
            "419",
            vec![
                on(0, 0, Write, 8_792_731_648, 16_384),
                on(1, 100_000, Read, 512, 4096),
            ],
        ),
        text(
            "a.csv",
            Format::Tencent,
            "1538323201,16,8,1,1283\n1538323203,0,1,0,1282\n",
            "1283",
            vec![
                on(0, 0, Write, 8192, 4096),
                on(1, 2_000_000_000, Read, 0, 512),
            ],
        ),
        text(
            "a.csv",
            Format::Systor,
            "Timestamp,Response,IOType,LUN,Offset,Size\n1455592045.041345000,0.000101,W,4,512,1024\n\
             1455592045.041346000,,,4,0,512\n1455592045.041347000,,R,6,0,512\n",
            "4",
            vec![on(0, 0, Write, 512, 1024), on(1, 2000, Read, 0, 512)],
        ),
        text(
            "a.diskmon",
            Format::DiskMon,
            "0\t0.25\t0.00038\t0\tWrite\t10\t8\r\n1\t0.5\t0.0001\t1\tRead\t0\t1\r\n",
            "0",
            vec![
                on(0, 0, Write, 5120, 4096),
                on(1, 250_000_000, Read, 0, 512),
            ],
        ),
        text(
            "a.load",
            Format::Blkreplay,
            "Some words; and more words.\n####\nstart ; sector; length ; op ; replay_delay=0 ; replay_duration=0\n\
             \x20     0.000000000 ;   10 ;   8 ; W ; 0.0 ; 0.0\n      1.500000000 ;    0 ;   1 ; RA ; 0.0 ; 0.0\n",
            "0",
            vec![r(0, Write, 5120, 4096), r(1_500_000_000, Read, 0, 512)],
        ),
        text(
            "a.csv",
            Format::Recorded,
            "time_ns,op,offset,size\n0,W,4096,8192\n5,R,512,512\n9,F,0,0\n12,T,0,8589934592\n12,Z,65536,4096\n",
            "0",
            everything.clone(),
        ),
        text(
            "a.pages",
            Format::Pages,
            "# by hand\nW 1 2 # with a comment\n\nR 3 1 250\nF\nT 0 9 300\nF 0 0 400\nZ 1 1\n",
            "0",
            vec![
                r(0, Write, 4096, 8192),
                r(250, Read, 12_288, 4096),
                r(0, Flush, 0, 0),
                r(300, Trim, 0, 36_864),
                r(400, Flush, 0, 0),
                r(0, WriteZeroes, 4096, 4096),
            ],
        ),
        text(
            "a.hash.txt",
            Format::HashText,
            "\n1484800000.100000000\t W \t16 \t8192 \tmain \tdm-1\t 00ff\n\t \t \t \t \t\t \n\
             1484800000.100000000\t R \t800 \t4096 \tmain \t#2\tdm-1\t 01ff\n\t \t \t \t \t\t \n\
             1484800000.100000000\t W \t16 \t8192 \tmain \tdm-1\t 02ff\n\
             1484800000.350000000\t W \t16 \t4096 \tmain \tdm-1\t 03ff\n",
            "0",
            vec![
                r(0, Write, 8192, 8192),
                r(0, Read, 409_600, 4096),
                r(250_000_000, Write, 8192, 4096),
            ],
        ),
    ];
    for big in [false, true] {
        list.push(Sample {
            name: "a.blktrace.0",
            format: Format::Blktrace,
            bytes: blktrace(big),
            requests: blktrace_requests.clone(),
            volume: "8,16",
        });
    }
    for version in [1, 2] {
        list.push(Sample {
            name: "a.vscsi",
            format: Format::Vscsi,
            bytes: vscsi(version),
            requests: vscsi_requests.clone(),
            volume: "0",
        });
    }
    if Format::Parquet.writable() {
        list.push(Sample {
            name: "a.parquet",
            format: Format::Parquet,
            bytes: written(&everything, "parquet", &WriteOptions::default()),
            requests: everything,
            volume: "0",
        });
    }
    list
}

/// Compressed with each of the four methods.
pub fn compressed(bytes: &[u8]) -> Vec<(&'static str, Vec<u8>)> {
    use std::io::Write as _;
    let mut gz = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    gz.write_all(bytes).unwrap();
    let mut xz = liblzma::write::XzEncoder::new(Vec::new(), 1);
    xz.write_all(bytes).unwrap();
    let mut bz = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::fast());
    bz.write_all(bytes).unwrap();
    vec![
        ("gz", gz.finish().unwrap()),
        ("xz", xz.finish().unwrap()),
        ("zst", zstd::stream::encode_all(bytes, 1).unwrap()),
        ("bz2", bz.finish().unwrap()),
    ]
}
