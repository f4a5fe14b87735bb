//! Whatever is wrong with the input: exit code 2 and one clear message.

mod common;

use common::{Place, small_trace, traces};

#[test]
fn a_truncated_gz() {
    let place = Place::new();
    let mut lines = String::from("time_ns,op,offset,size\n");
    (0..20_000).for_each(|i| {
        lines.push_str(&format!(
            "{},W,{},4096\n",
            i * 1000,
            (i * 7919 % 50_000) * 4096
        ))
    });
    place
        .file("t.csv", lines)
        .run("trace convert t.csv t.csv.gz")
        .ok();
    let whole = std::fs::read(place.path("t.csv.gz")).unwrap();
    place.file("cut.csv.gz", &whole[..whole.len() / 2]);
    for command in [
        "compare --trace cut.csv.gz",
        "run --trace cut.csv.gz",
        "trace info cut.csv.gz",
    ] {
        let ran = place.run(command);
        assert_eq!((ran.code, ran.out.as_str()), (2, ""));
        assert!(
            ran.err.starts_with("error: cut.csv.gz, line "),
            "{}",
            ran.err
        );
        assert!(
            ran.err
                .ends_with("\n  = the file is cut off: copy or download it again, whole\n"),
            "{}",
            ran.err
        );
    }
    assert_eq!(
        place.files(),
        ["cut.csv.gz", "t.csv", "t.csv.gz"],
        "nothing half-written"
    );
}

#[test]
fn a_csv_with_a_bad_line_in_the_middle() {
    let place = Place::new();
    place.file(
        "t.csv",
        "time_ns,op,offset,size\n0,W,0,4096\n1000,W,x,4096\n2000,W,8192,4096\n",
    );
    let ran = place.run("compare --trace t.csv");
    assert_eq!((ran.code, ran.out.as_str()), (2, ""));
    assert!(ran.err.starts_with("error: t.csv, line 3: "), "{}", ran.err);
    assert!(ran.err.contains("\n  | 1000,W,x,4096\n"), "{}", ran.err);
    assert_eq!(place.files(), ["t.csv"], "nothing half-written");
}

#[test]
fn a_trace_that_is_not_there_or_empty() {
    let place = Place::new();
    let ran = place.run("run --trace nope.csv");
    assert_eq!(ran.code, 2);
    assert!(
        ran.err.contains("nope.csv") && ran.err.contains("oltp-postgres, desktop"),
        "{}",
        ran.err
    );
    assert_eq!(
        place
            .file("empty.csv", "")
            .run("run --trace empty.csv")
            .code,
        2
    );
}

#[test]
fn a_wrong_unit() {
    let place = Place::new();
    place.file("a.toml", "[device]\ndies = 4\nt_prog_s = 1\n").run("run --config a.toml").refused(
        "error: no key device.t_prog_s\n  --> a.toml:3:1\n   |\n 3 | t_prog_s = 1\n   | ^^^^^^^^\n  \
         help: the unit belongs to the name: t_prog_us, t_prog_ns, t_prog_ms",
    );
    place.file("b.toml", "[device]\nt_prog_us = \"200us\"\n").run("compare --config b.toml").refused(
        "error: device.t_prog_us = \"200us\": takes a number of us, whole ns, up to an hour\n  --> b.toml:2:13\n   |\n \
         2 | t_prog_us = \"200us\"\n   |             ^^^^^^^\n  \
         help: write the number alone, without quotes and unit; the key's name says the unit",
    );
}

#[test]
fn a_wrong_key_section_value_or_syntax() {
    let place = Place::new();
    let refused = |text: &str, message: &str| {
        place
            .file("a.toml", text)
            .run("run --config a.toml")
            .refused(message)
    };
    refused(
        "[device]\ndyes = 4\n",
        "error: no key device.dyes\n  --> a.toml:2:1\n   |\n 2 | dyes = 4\n   | ^^^^\n  help: did you mean dies?",
    );
    refused(
        "[devise]\ndies = 4\n",
        "error: no section devise\n  --> a.toml:1:2\n   |\n 1 | [devise]\n   |  ^^^^^^\n  help: did you mean device?",
    );
    refused(
        "[host]\narrivals = \"opened\"\n",
        "error: host.arrivals = \"opened\": takes one of \"open\", \"closed\"\n  --> a.toml:2:12\n   |\n \
         2 | arrivals = \"opened\"\n   |            ^^^^^^^^",
    );
    refused(
        "[run]\nageing = [\"fill\", \"settel\"]\n",
        "error: run.ageing: settel: an ageing step is fill, overwrite:<share of the device, as 0.5>, settle or replay\n  \
         --> a.toml:2:19\n   |\n 2 | ageing = [\"fill\", \"settel\"]\n   |                   ^^^^^^^^",
    );
    refused(
        "[device]\ncapacity_mib = 64\nlogical_pages = 32768\n",
        "error: device.logical_pages says again what device.capacity_mib says\n  --> a.toml:3:17\n   |\n \
         3 | logical_pages = 32768\n   |                 ^^^^^\n  help: keep one of the two",
    );
    let ran = place.file("a.toml", "[device\n").run("run --config a.toml");
    assert_eq!(ran.code, 2);
    assert!(
        ran.err.starts_with("error: this is no TOML: ") && ran.err.contains("--> a.toml:1:"),
        "{}",
        ran.err
    );
}

#[test]
fn a_wrong_override_shows_the_argument() {
    let place = Place::new();
    place.run("run --set device.dyes=4").refused(
        "error: no key device.dyes\n  --> --set device.dyes=4\n  help: did you mean dies?",
    );
    place.run("run --set nonsense").refused(
        "error: an override has the form section.key=value\n  --> --set nonsense\n  \
         help: for example --set device.dies=4 or --set schemes.fast.log_blocks=64",
    );
    place.run("run --set device.dies=many").refused("error: device.dies = \"many\": takes a whole number from 1 to 524288\n  --> --set device.dies=many");
    place.run("run --scheme fast --set schemes.fast.log_bloks=6").refused(
        "error: fast has no option log_bloks\n  --> --set schemes.fast.log_bloks=6\n  help: did you mean log_blocks?",
    );
}

#[test]
fn a_device_too_small_for_its_log_blocks() {
    let place = Place::new();
    small_trace(&place);
    place.file(
        "a.toml",
        "[device]\ndies = 1\nblocks_per_die = 36\n\n[schemes.fast]\nlog_blocks = 8\n",
    );
    let ran = place.run("run --config a.toml --scheme fast --trace t.pages");
    assert_eq!((ran.code, ran.out.as_str()), (2, ""));
    let error = &ran.err[ran.err.find("error: ").expect("an error")..];
    assert!(error.starts_with("error: fast: "), "{error}");
    assert!(
        error.contains("  --> a.toml:") && error.contains('^'),
        "{error}"
    );
    assert!(
        error.contains("\n  help: more blocks (device.blocks_per_die"),
        "{error}"
    );
    // In a comparison of all schemes it is a row, not the end.
    let ran = place
        .run("compare --config a.toml --trace t.pages --no-report")
        .ok();
    assert!(
        ran.out
            .lines()
            .any(|line| line.starts_with("fast ") && line.contains("refused: ")),
        "{}",
        ran.out
    );
}

/// The page says what is known of it; a scheme under its name would be an invention.
#[test]
fn a_scheme_that_is_described_and_cannot_be_built() {
    let place = Place::new();
    for command in [
        "run --scheme cftl",
        "compare --scheme page,cftl",
        "schemes cftl",
    ] {
        let ran = place.run(command);
        assert_eq!((ran.code, ran.out.as_str()), (2, ""), "{command}");
        let told = "error: cftl is described in specs/cftl.md but not built: what is published does not fix its behaviour\n";
        assert!(ran.err.starts_with(told), "{command}: {}", ran.err);
    }
}

#[test]
fn an_unknown_scheme_part_or_generator() {
    let place = Place::new();
    let ran = place.run("compare --scheme page,fsat");
    assert_eq!((ran.code, ran.out.as_str()), (2, ""));
    assert!(
        ran.err
            .starts_with("error: no scheme \"fsat\"; there are page, "),
        "{}",
        ran.err
    );
    assert!(
        ran.err.ends_with("\n  help: did you mean fast?\n"),
        "{}",
        ran.err
    );
    let ran = place.run("run --set device.part=ssdsimm");
    assert!(
        ran.code == 2
            && ran
                .err
                .ends_with("\n  --> --set device.part=ssdsimm\n  help: did you mean ssdsim?\n"),
        "{}",
        ran.err
    );
    let ran = place.run("trace generate zipff --out z.pages");
    assert!(
        ran.code == 2 && ran.err.ends_with("\n  help: did you mean zipf?\n"),
        "{}",
        ran.err
    );
    assert!(place.files().is_empty());
}

#[test]
fn a_device_that_no_memory_holds() {
    let place = Place::new();
    let ran = place.run("run --trace desktop --set device.page_bytes=512 --set device.capacity_gib=1900 --set device.spare_percent=5");
    assert_eq!((ran.code, ran.out.as_str()), (2, ""), "{}", ran.err);
    assert!(ran.err.starts_with("error: "), "{}", ran.err);
}

#[test]
fn a_report_that_cannot_be_written() {
    let place = Place::new();
    small_trace(&place);
    let ran = place.run("run --trace t.pages --report no/such/folder/r.html");
    ran.refused(
        "error: --report no/such/folder/r.html: cannot write: the folder no/such/folder does not exist\n  \
         help: make the folder first, or name another",
    );
}

#[test]
fn the_bundled_traces_are_the_recorded_ones() {
    let ran = Place::new().run("run --trace nope.csv");
    let list = ran.err.split("the bundled traces are ").nth(1);
    let list = list.and_then(|rest| rest.split(';').next());
    let mut named: Vec<String> = list.unwrap().split(", ").map(Into::into).collect();
    named.sort();
    let files = std::fs::read_dir(traces()).unwrap();
    let names = files.filter_map(|file| {
        let name = file.unwrap().file_name().into_string().unwrap();
        Some(name.strip_suffix(".csv.xz")?.to_string())
    });
    let mut recorded: Vec<String> = names.collect();
    recorded.sort();
    assert_eq!(named, recorded);
    assert!(named.contains(&"oltp-postgres".to_string()), "{named:?}");
}

#[test]
fn a_bundled_trace_is_opened_by_its_name() {
    let ran = Place::new().run("trace info ext4-iozone");
    assert_eq!(ran.code, 0, "{}", ran.err);
    let file = traces().join("ext4-iozone.csv.xz");
    let direct = Place::new().run(&format!("trace info {}", file.display()));
    let figures = |out: &str| out.lines().skip(1).map(String::from).collect::<Vec<_>>();
    assert_eq!(figures(&ran.out), figures(&direct.out));
    assert!(ran.out.lines().count() > 5, "{}", ran.out);
}

#[test]
fn what_does_not_fit_points_at_the_part_that_was_given() {
    let place = Place::new();
    small_trace(&place);
    let ran = place.run("run --trace t.pages --scheme fast --set scheme.log_blocks=4096");
    assert_eq!(ran.code, 2);
    assert!(
        ran.err.contains("\n  --> --set scheme.log_blocks=4096\n"),
        "{}",
        ran.err
    );
}

#[test]
fn the_same_said_twice() {
    let place = Place::new();
    small_trace(&place);
    let twice = "compare --trace t.pages --set device.dies=1 --set device.dies=2";
    place.run(twice).refused(
        "error: device.dies is given twice\n  --> --set device.dies=2\n  help: keep one of the two",
    );
    let twice = "compare --trace t.pages --set device.capacity_mib=8 --set device.capacity_gib=1";
    place.run(twice).refused(
        "error: device.capacity_gib says again what device.capacity_mib says\n  --> --set device.capacity_gib=1\n  help: keep one of the two",
    );
    let twice = "compare --trace t.pages --set scheme.gc_low=2 --set scheme.gc_low=3";
    place.run(twice).refused(
        "error: scheme.gc_low is given twice\n  --> --set scheme.gc_low=3\n  help: keep one of the two",
    );
    let ran = place.run("compare --trace t.pages --scheme fast,page,fast");
    assert_eq!((ran.code, ran.out.as_str()), (2, ""));
    assert!(
        ran.err
            .contains("error: fast is named twice\n  --> --scheme fast\n")
            && ran.err.contains("fast,fast:OPTION=VALUE"),
        "{}",
        ran.err
    );
    assert_eq!(place.files(), ["t.pages"]);
}

#[test]
fn options_beside_the_name_of_a_scheme() {
    let place = Place::new();
    small_trace(&place);
    for (scheme, message) in [
        (
            "fast:sw_lo=1",
            "error: fast has no option sw_lo\n  --> --scheme fast:sw_lo=1\n  help: did you mean sw_log?\n",
        ),
        (
            "fast:sw_log",
            "error: \"sw_log\" is no option of the form option=value\n",
        ),
        (
            "fast:log_blocks=4:log_blocks=5",
            "error: fast:log_blocks=4:log_blocks=5 says log_blocks twice\n",
        ),
        ("fsat:sw_log=true", "error: no scheme \"fsat\""),
    ] {
        for command in ["compare", "run"] {
            let ran = place.run(&format!("{command} --trace t.pages --scheme {scheme}"));
            assert_eq!((ran.code, ran.out.as_str()), (2, ""));
            assert!(ran.err.contains(message), "{command} {scheme}: {}", ran.err);
        }
    }
}

#[test]
fn log_blocks_that_are_several_or_too_many() {
    let place = Place::new();
    small_trace(&place);
    place.run("compare --trace t.pages --set scheme.log_blocks=64,128").refused(
        "error: log_blocks takes one value, not several\n  --> --set scheme.log_blocks=64,128\n  help: `floatgate sweep --vary scheme.log_blocks=64,128` runs each; in a comparison: --scheme A:log_blocks=1,A:log_blocks=2",
    );
    let ran = place.run("compare --trace t.pages --set scheme.log_blocks=999999999");
    assert_eq!(ran.code, 2);
    let named = "\n  --> --set scheme.log_blocks=999999999\n  help: fewer log blocks: the data of the whole device is 32 blocks\n";
    assert!(ran.err.ends_with(named), "{}", ran.err);
}

#[test]
fn a_table_in_no_known_format() {
    let place = Place::new();
    place.file("t.csv", "time,offset,size,op\n0.5,4096,512,write\n");
    for (command, flag) in [
        ("trace info t.csv", "--from FORMAT"),
        ("trace convert t.csv t.pages", "--from FORMAT"),
        ("run --trace t.csv", "--set trace.format=FORMAT"),
        (
            "compare --trace t.csv --no-report",
            "--set trace.format=FORMAT",
        ),
        ("fleet t.csv", "--set trace.format=FORMAT"),
    ] {
        let ran = place.run(command);
        assert_eq!(ran.code, 2);
        let example = "--columns 'time=time:s,offset=offset:B,size=size:B,op=op'";
        assert!(
            ran.err.contains(example) && ran.err.contains(flag),
            "{}",
            ran.err
        );
    }
    assert_eq!(place.files(), ["t.csv"]);
}

#[test]
fn columns_that_are_not_understood() {
    let place = Place::new();
    place.file("t.csv", "0.5,4096,512,write\n1,x,512,read\n");
    let units = "help: offset and size take B, KiB, MiB, sectors (512 bytes), or the bytes of a unit, as in offset:4096";
    for command in [
        "run --trace t.csv",
        "compare --trace t.csv",
        "fleet t.csv",
        "trace info t.csv",
    ] {
        place.run(&format!("{command} --columns time:s,offset:b7,size:B,op")).refused(&format!(
            "error: --columns: 'b7' is no unit of sizes\n  | time:s,offset:b7,size:B,op\n  |               ^^\n  {units}"
        ));
    }
    let ran = place
        .file("a.toml", "[trace]\ncolumns = \"size\"\n")
        .run("run --config a.toml");
    assert!(
        ran.err
            .starts_with("error: trace.columns: the size has no unit\n"),
        "{}",
        ran.err
    );
    assert!(ran.err.contains("--> a.toml:2:11"), "{}", ran.err);
    let ran = place.run("trace info t.csv --columns time:s,offset:B,size:B,op");
    assert!(
        ran.err
            .starts_with("error: t.csv, line 2: the offset in column 2 is no whole number"),
        "{}",
        ran.err
    );
}

#[test]
fn measurements_that_cannot_be_fitted() {
    let place = Place::new();
    place.file(
        "m.csv",
        "run,workload,span_bytes,host_bytes,media_bytes\na,uniform,100,10,15\nb,unifrom,100,10,15\n",
    );
    place.run("fit m.csv --out drive.toml").refused(
        "error: workload \"unifrom\": uniform, zipf(THETA), fio-zipf(THETA) or hot(WRITES/PAGES), as zipf(0.8) or hot(80/20)\n  \
         --> m.csv:3:3\n   |\n 3 | b,unifrom,100,10,15\n   |   ^^^^^^^\n  help: docs/fit.md says what each is",
    );
    let told = place.run("fit nothing.csv");
    assert_eq!((told.code, told.out.as_str()), (2, ""));
    assert!(told.err.starts_with("error: nothing.csv: "), "{}", told.err);
    place.file(
        "m.csv",
        "workload,span_bytes,host_bytes,media_bytes\nuniform,100,10,15\n",
    );
    for (words, message) in [
        ("fit m.csv --candidates gredy", "is greedy meant?"),
        ("fit m.csv --capacity 101B", "2.5 % more"),
        (
            "fit m.csv --block-pages 256 --model-pages 8192",
            "--model-pages 40960",
        ),
        ("fit m.csv --overhead 0.9", "a factor from 1 to 1.5"),
        ("fit m.csv --out m.csv", "read by the same command"),
    ] {
        let told = place.run(words);
        assert_eq!((told.code, told.out.as_str()), (2, ""), "{words}");
        assert!(told.err.contains(message), "{words}: {}", told.err);
    }
    assert_eq!(place.files(), ["m.csv"], "nothing half-written");
}
