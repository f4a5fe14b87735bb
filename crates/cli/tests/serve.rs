//! `floatgate serve` and `image read`, `write`, `import`, `export`: what was flushed outlives the process, for every scheme;
//! clients that nobody here wrote, where they are installed.

mod common;

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::process::Command;

use common::{Place, Running};
use floatgate_core::rng::SplitMix64;

const SMALL: &str = "--set device.capacity_gib=0.001953125";

/// The least client that there can be: `EXPORT_NAME`, simple replies.
struct Client {
    stream: UnixStream,
    bytes: u64,
}

impl Client {
    fn new(place: &Place) -> Self {
        let mut stream = UnixStream::connect(place.path("s")).expect("a connection");
        let mut greeting = [0; 18];
        stream.read_exact(&mut greeting).expect("a greeting");
        let asked = [&3u32.to_be_bytes()[..], b"IHAVEOPT", &[0, 0, 0, 1], &[0; 4]];
        stream.write_all(&asked.concat()).expect("sent");
        let mut export = [0; 10];
        stream.read_exact(&mut export).expect("an export");
        let bytes = u64::from_be_bytes(export[..8].try_into().expect("8"));
        Self { stream, bytes }
    }

    fn ask(&mut self, command: u16, offset: u64, length: usize, data: &[u8]) {
        let mut bytes = 0x2560_9513_u32.to_be_bytes().to_vec();
        bytes.extend([0, 0]);
        bytes.extend(command.to_be_bytes());
        bytes.extend([0; 8]);
        bytes.extend(offset.to_be_bytes());
        bytes.extend((length as u32).to_be_bytes());
        bytes.extend(data);
        self.stream.write_all(&bytes).expect("sent");
        let mut reply = [0; 16];
        self.stream.read_exact(&mut reply).expect("a reply");
        assert_eq!(reply[..8], [0x67, 0x44, 0x66, 0x98, 0, 0, 0, 0]);
    }

    fn read(&mut self, offset: u64, length: usize) -> Vec<u8> {
        self.ask(0, offset, length, &[]);
        let mut data = vec![0; length];
        self.stream.read_exact(&mut data).expect("data");
        data
    }
}

#[test]
fn what_was_flushed_outlives_a_killed_server_with_every_scheme() {
    let schemes = Place::new().run("schemes --json").ok().json();
    let schemes = schemes.as_array().expect("a list");
    assert!(schemes.len() > 10);
    for scheme in schemes {
        let key = scheme["key"].as_str().expect("a key");
        let place = Place::new();
        place
            .run(&format!("image create a.img --scheme {key} {SMALL}"))
            .ok();
        let mut rng = SplitMix64::new(41);
        let mut wanted = Vec::new();
        for life in 0..3 {
            let served = Running::new(&place, "serve a.img --socket s");
            assert!(served.line.starts_with("nbd+unix:///?socket="), "{key}");
            let mut client = Client::new(&place);
            wanted.resize(client.bytes as usize, 0);
            assert!(
                client.read(0, wanted.len()) == wanted,
                "{key}, life {life}: what was flushed is there"
            );
            for _ in 0..200 {
                let sectors = 1 + rng.next() % 16;
                let first = rng.next() % (client.bytes / 512 - sectors);
                let range = first as usize * 512..(first + sectors) as usize * 512;
                let fill = rng.next() as u8;
                wanted[range.clone()].fill(fill);
                if rng.next().is_multiple_of(8) {
                    wanted[range.clone()].fill(0);
                    client.ask(6, range.start as u64, range.len(), &[]);
                } else {
                    client.ask(1, range.start as u64, range.len(), &wanted[range.clone()]);
                }
            }
            client.ask(3, 0, 0, &[]);
            served.kill();
        }
        let served = Running::new(&place, "serve a.img --socket s");
        served.signal();
        assert_eq!(served.end().0, Some(0), "{key}");
        assert_eq!(place.files(), ["a.img"], "the socket is removed");
        place.run("image export a.img all.raw").ok();
        let found = std::fs::read(place.path("all.raw")).expect("a file");
        assert!(found == wanted, "{key}: the export is what was written");
        let info = place.run("image info a.img").ok();
        assert!(info.out.contains("closed in order"), "{key}");
        place.run("image check a.img").ok();
    }
}

#[test]
fn bytes_go_in_and_out_without_a_server() {
    let place = Place::new();
    place.run(&format!("image create a.img {SMALL}")).ok();
    let part: Vec<u8> = (0..5120u32).map(|i| (i / 3) as u8).collect();
    place.file("part", &part).file("odd", &part[..1000]);
    place.run("image write a.img part --offset 1536").ok();
    let read = |arguments: &str| {
        place
            .run(&format!("image read a.img --output out {arguments}"))
            .ok();
        std::fs::read(place.path("out")).expect("a file")
    };
    assert_eq!(read("--offset 1536 --length 5KiB"), part);
    assert_eq!(read("--length 2048")[1536..], part[..512]);
    // An import replaces everything, and fills its last sector.
    place.run("image import a.img odd").ok();
    let all = read("");
    assert_eq!(all[..1000], part[..1000]);
    assert!(all[1000..].iter().all(|&byte| byte == 0));
    for (arguments, told) in [
        ("read a.img --offset 5", "no multiple of a sector"),
        (
            "read a.img --length 1TiB --output none",
            "beyond the end of the device",
        ),
        ("write a.img odd", "no multiple of a sector"),
        (
            "write a.img part --offset 2093056",
            "longer than the 4096 bytes",
        ),
        (
            "read a.img --output a.img",
            "this file is read by the same command",
        ),
        ("write none part", "No such file"),
    ] {
        let ran = place.run(&format!("image {arguments}"));
        assert_eq!(ran.code, 2, "{arguments}: {ran:?}");
        assert!(ran.err.contains(told), "{arguments}: {}", ran.err);
    }
    assert_eq!(read(""), all, "nothing was written of what was refused");
    assert_eq!(place.files(), ["a.img", "odd", "out", "part"]);
}

#[test]
fn mistakes_of_the_command_line_are_told() {
    let place = Place::new();
    place.file("file", "precious");
    for (arguments, told) in [
        (
            "--memory 1MiB --socket file",
            "this file exists, and is no socket",
        ),
        ("--memory 1MiB --tcp here", "no port"),
        (
            "--memory 1MiB --set device.capacity_gib=1 --socket s",
            "given twice",
        ),
        ("--memory 1MiB --scheme fsat --socket s", "fsat"),
        ("file --socket s", "not a Floatgate image"),
        ("", "required"),
    ] {
        let ran = place.run(&format!("serve {arguments}"));
        assert_eq!(ran.code, 2, "{arguments}: {ran:?}");
        assert!(ran.err.contains(told), "{arguments}: {}", ran.err);
    }
    assert_eq!(place.files(), ["file"]);
    assert_eq!(
        std::fs::read(place.path("file")).expect("there"),
        b"precious"
    );
    let served = Running::new(&place, "serve --memory 1MiB --tcp 0 --json");
    let ready: serde_json::Value = serde_json::from_str(&served.line).expect("JSON");
    assert_eq!(
        (&ready["scheme"], &ready["bytes"]),
        (&"page".into(), &1_048_576.into())
    );
    let uri = ready["uri"].as_str().unwrap_or_default();
    assert!(uri.starts_with("nbd://127.0.0.1:"), "{uri}");
}

/// Runs a client that may not be installed; its output if it is.
fn client(place: &Place, line: &[&str]) -> Option<String> {
    let (program, arguments) = line.split_first().expect("a program");
    let ran = Command::new(program)
        .args(arguments)
        .current_dir(place.path(""))
        .output();
    let Ok(ran) = ran else {
        eprintln!("skipped: {program} is not installed");
        return None;
    };
    let text = String::from_utf8_lossy(&ran.stdout).into_owned();
    let said = String::from_utf8_lossy(&ran.stderr);
    assert!(ran.status.success(), "{line:?}: {text}{said}");
    Some(text)
}

#[test]
fn clients_that_nobody_here_wrote() {
    let place = Place::new();
    let bytes: Vec<u8> = (0..2_000_000u32)
        .map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8)
        .collect();
    place.file("in.raw", &bytes);
    let _served = Running::new(&place, "serve --memory 8MiB --scheme fast --socket s");
    let uri = "nbd+unix:///?socket=s";
    if let Some(told) = client(&place, &["nbdinfo", uri]) {
        assert!(
            told.contains("can_multi_conn: true") && told.contains("base:allocation"),
            "{told}"
        );
    }
    let mut patterns = vec!["qemu-io", "-f", "raw"];
    for command in [
        "write -P 90 4096 65536",
        "write -f -P 91 512 512",
        "flush",
        "read -P 90 4096 65536",
        "read -P 91 512 512",
        "write -z -u 6144 8192",
        "read -P 0 6144 8192",
        "discard 0 1M",
        "read -P 0 0 1M",
    ] {
        patterns.extend(["-c", command]);
    }
    patterns.push(uri);
    if let Some(told) = client(&place, &patterns) {
        assert!(!told.contains("failed"), "{told}");
    }
    let convert = [
        "qemu-img", "convert", "-n", "-f", "raw", "-O", "raw", "in.raw", uri,
    ];
    if client(&place, &convert).is_some() && client(&place, &["nbdcopy", uri, "out.raw"]).is_some()
    {
        let found = std::fs::read(place.path("out.raw")).expect("a file");
        assert!(found[..bytes.len()] == bytes);
    }
    let uri = format!("--uri={uri}");
    // fio 3.33 crashes in its own `--trim_percentage` with this engine, so trims are a mode of their own.
    for mode in ["--rw=randrw", "--rw=randwrite", "--rw=trimwrite"] {
        client(
            &place,
            &[
                "fio",
                "--name=verify",
                "--ioengine=nbd",
                &uri,
                mode,
                "--bs=4k",
                "--iodepth=32",
                "--size=4M",
                "--verify=crc32c",
                "--verify_fatal=1",
            ],
        );
    }
}
