//! Files beside the record, and the slowest requests in words.

mod common;

use common::{Place, small_trace};

fn place() -> Place {
    let place = Place::new();
    small_trace(&place);
    place
}

/// The cells of a CSV file, without its head.
fn cells(place: &Place, name: &str) -> Vec<Vec<String>> {
    let text = std::fs::read_to_string(place.path(name)).expect("the file");
    let line = |line: &str| line.split(',').map(String::from).collect();
    text.lines().skip(1).map(line).collect()
}

/// A number below a million as the command prints it.
fn thousands(n: u64) -> String {
    match n {
        0..1000 => n.to_string(),
        _ => format!("{},{:03}", n / 1000, n % 1000),
    }
}

#[test]
fn the_slowest_requests_as_data_and_in_words() {
    let place = place();
    let record = place
        .run("run --scheme fast --trace t.pages --slowest 5 --json")
        .ok()
        .record();
    let explained = record.explained.expect("requests were recorded");
    let slowest = explained.slowest;
    assert_eq!(slowest.len(), 5);
    let longest = record.time.response.all.max_us;
    assert_eq!(Some(slowest[0].request.response_us), longest);
    let responses = slowest.windows(2);
    let mut falling = responses.map(|w| w[0].request.response_us >= w[1].request.response_us);
    assert!(falling.all(|falls| falls));
    assert!(slowest.iter().all(|slow| {
        let waited = slow.waited.as_ref();
        waited.is_none_or(|w| w.heaviest.iter().all(|of| of.number < slow.request.number))
    }));
    assert!(slowest.iter().any(|slow| slow.waited.is_some()));
    let sizes: u64 = explained.sizes.iter().map(|size| size.count).sum();
    assert_eq!(sizes, record.time.response.all.count);

    let ran = place
        .run("run --scheme fast --trace t.pages --slowest 5")
        .ok();
    let first = format!("\n1. request {} ", thousands(slowest[0].request.number));
    assert!(ran.out.contains(&first), "{}", ran.out);
    assert!(ran.out.contains("\n5. request ") && !ran.out.contains("\n6. request "));
    assert!(ran.out.contains("it waited "), "{}", ran.out);
    let plain = place.run("run --scheme fast --trace t.pages --json").ok();
    assert_eq!(plain.record().explained, None);
}

#[test]
fn series_and_blocks_of_a_run() {
    let place = place();
    let ran = place
        .run("run --scheme fast --trace t.pages --json --series-out s.csv --blocks-out b.csv.zst")
        .ok();
    let record = ran.record();
    let samples = cells(&place, "s.csv");
    assert_eq!(samples.len(), record.series.requests.len());
    let last: Vec<String> = samples.last().expect("samples").clone();
    assert_eq!(last[0], "6000");
    assert!(place.path("b.csv.zst").is_file());
    place
        .run("run --scheme fast --trace t.pages --blocks-out b.csv --slowest 1")
        .ok();
    let blocks = cells(&place, "b.csv");
    let device = &record.device;
    assert_eq!(
        blocks.len() as u64,
        u64::from(device.dies) * u64::from(device.blocks)
    );
    let erases: u64 = blocks
        .iter()
        .map(|row| row[2].parse::<u64>().expect("a number"))
        .sum();
    assert_eq!(erases, record.derived.erases);
}

#[test]
fn a_file_a_scheme_in_folders() {
    let place = place();
    let command = "compare --trace t.pages --scheme page,last++ --no-report";
    let files = "--requests-out a/rows --series-out a/rows --blocks-out b";
    place.run(&format!("{command} {files}")).ok();
    let names = |folder: &str| place.files_in(folder);
    assert_eq!(
        names("a/rows"),
        [
            "lastplusplus-series.parquet",
            "lastplusplus.parquet",
            "page-series.parquet",
            "page.parquet"
        ]
    );
    assert_eq!(
        names("b"),
        ["lastplusplus-blocks.parquet", "page-blocks.parquet"]
    );
    // Files of these names are replaced.
    place.run(&format!("{command} --requests-out a/rows")).ok();
}

#[test]
fn places_that_cannot_be_written() {
    let place = place();
    let help = "  help: name a folder, which is made if it is missing; a file a scheme goes there";
    let error = |ran: common::Ran| {
        assert_eq!((ran.code, ran.out.as_str()), (2, ""));
        let at = ran.err.find("error: ").expect("an error");
        ran.err[at..].to_string()
    };
    let command = "compare --trace t.pages --scheme page --no-report";
    let ran = place.run(&format!("{command} --requests-out t.pages"));
    assert_eq!(
        error(ran),
        format!("error: --requests-out t.pages: this is not a folder\n{help}\n")
    );
    std::fs::create_dir_all(place.path("rows/page.parquet")).expect("a folder");
    let ran = place.run(&format!("{command} --requests-out rows --series-out new"));
    assert_eq!(
        error(ran),
        format!("error: --requests-out rows: rows/page.parquet is not a file\n{help}\n")
    );
    let ran = place.run("run --scheme page --trace t.pages --series-out s.txt --blocks-out b.csv");
    assert!(error(ran).starts_with("error: s.txt: the file name does not tell the format"));
    assert_eq!(place.files(), ["rows", "t.pages"]);
}
