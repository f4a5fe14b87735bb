//! A layout to begin with, made from the first line of a file.

use super::op_of;
use crate::delimited::{Separator, cells};
use crate::parse::decimal;

/// Words in the names of columns.
const NAMES: [(&str, &[&str]); 4] = [
    ("time", &["time", "stamp", "date", "arrival", "ts"]),
    (
        "offset",
        &["offset", "lba", "lbn", "addr", "sector", "block", "pos"],
    ),
    ("size", &["size", "len", "bytes", "count", "sectors"]),
    (
        "op",
        &[
            "op", "type", "rw", "cmd", "action", "flag", "kind", "dir", "is_write",
        ],
    ),
];

/// What to begin with for a table whose first line is this; units are to be checked by whoever knows the file. `None` if
/// the line has too few columns for a trace.
pub fn guess(first_line: &str) -> Option<String> {
    let line = first_line.trim_start_matches(['#', ' ']).as_bytes();
    let separator = Separator::of(line);
    let mut ranges = Vec::new();
    cells(line, separator, &mut ranges);
    let cells: Vec<&[u8]> = ranges.into_iter().map(|range| &line[range]).collect();
    if !(3..=64).contains(&cells.len()) {
        return None;
    }
    match cells.iter().any(|cell| decimal(cell, 0).is_some()) {
        true => Some(by_position(&cells)),
        false => Some(by_name(&cells)),
    }
}

fn unit_of(key: &str) -> &'static str {
    match key {
        "time" => ":s",
        "op" => "",
        _ => ":B",
    }
}

fn by_name(cells: &[&[u8]]) -> String {
    let names: Vec<String> = cells
        .iter()
        .map(|cell| String::from_utf8_lossy(cell).into_owned())
        .collect();
    let mut taken = Vec::new();
    let items = NAMES.map(|(key, words)| {
        let found = words.iter().find_map(|word| {
            let fits = |name: &String| name.to_ascii_lowercase().contains(word);
            let column = names.iter().position(fits)?;
            (!taken.contains(&column)).then_some(column)
        });
        taken.extend(found);
        let name = found.map_or("NAME", |column| &names[column]);
        format!("{key}={name}{}", unit_of(key))
    });
    items.join(",")
}

fn by_position(cells: &[&[u8]]) -> String {
    let mut numbers = ["time", "offset", "size"].into_iter();
    let mut has_op = false;
    let mut items: Vec<String> = Vec::new();
    for cell in cells {
        let key = match decimal(cell, 0) {
            Some(_) => numbers.next(),
            None => Some("op").filter(|_| !has_op && op_of(cell, &[]).is_some()),
        };
        has_op |= key == Some("op");
        items.push(key.map_or("_".into(), |key| format!("{key}{}", unit_of(key))));
    }
    while items.last().is_some_and(|item| item == "_") {
        items.pop();
    }
    if !has_op {
        items.push("all:write".into());
    }
    items.join(",")
}

#[cfg(test)]
mod tests {
    use super::guess;

    #[test]
    fn from_headers_and_from_numbers() {
        for (line, layout) in [
            (
                "time,offset,size,op",
                "time=time:s,offset=offset:B,size=size:B,op=op",
            ),
            (
                "Timestamp;Hostname;DiskNumber;Type;Offset;Size;ResponseTime",
                "time=Timestamp:s,offset=Offset:B,size=Size:B,op=Type",
            ),
            ("0.5 write 4096 512 7", "time:s,op,offset:B,size:B"),
            ("1|2|3|x", "time:s,offset:B,size:B,all:write"),
            (
                "who|what|lba",
                "time=NAME:s,offset=lba:B,size=NAME:B,op=NAME",
            ),
        ] {
            assert_eq!(guess(line).as_deref(), Some(layout), "{line}");
        }
        assert_eq!(guess("hello world"), None);
    }
}
