//! Layouts in words, and what is wrong with some.

use super::*;

fn wrong(text: &str) -> (String, String) {
    let error = text.parse::<Layout>().unwrap_err();
    (error.text[error.at.clone()].to_owned(), error.message)
}

#[test]
fn by_position_by_name_and_by_number() {
    let layout: Layout = "time:ms, _, offset:sectors, size:pages:4096, op:1=W/0=R"
        .parse()
        .unwrap();
    assert_eq!(
        layout.time,
        Some(Column {
            place: Place::Number(0),
            unit: 1_000_000
        })
    );
    assert_eq!(
        layout.offset,
        Column {
            place: Place::Number(2),
            unit: 512
        }
    );
    assert_eq!(
        layout.size,
        Column {
            place: Place::Number(3),
            unit: 4096
        }
    );
    let words = vec![("1".to_owned(), Op::Write), ("0".to_owned(), Op::Read)];
    assert_eq!(layout.op, Ops::Column(Place::Number(4), words));
    let layout: Layout = "all:write,offset=#3:8192,size=Len: in:pages:512,time=T:100ns,volume=a:b"
        .parse()
        .unwrap();
    assert_eq!(layout.op, Ops::All(Op::Write));
    assert_eq!(
        layout.offset,
        Column {
            place: Place::Number(2),
            unit: 8192
        }
    );
    assert_eq!(
        layout.size,
        Column {
            place: Place::Name("Len: in".into()),
            unit: 512
        }
    );
    assert_eq!(layout.time.unwrap().unit, 100);
    assert_eq!(layout.volume, Some(Place::Name("a:b".into())));
}

#[test]
fn errors_point_at_their_place() {
    for (text, at, message) in [
        ("time,offset:B,size:B,op", "time", "the time has no unit"),
        (
            "time:sec,offset:B,size:B,op",
            "sec",
            "'sec' is no unit of time",
        ),
        ("offset:B,size:0,op", "0", "'0' is no unit of sizes"),
        (
            "offset:B,length:B,op",
            "length",
            "there is no column 'length'",
        ),
        (
            "offset:B,size=S:B,op",
            "size=S:B",
            "some columns are given by position and some by name",
        ),
        ("offset:B,,op", "", "a column is missing here"),
        ("offset:B,offset:B,op", "offset", "offset is given twice"),
        (
            "op,all:read,offset:B",
            "all:read",
            "the operation is given twice",
        ),
        (
            "offset:B,size:B",
            "",
            "no column is said to hold the operation",
        ),
        (
            "offset:B,size:B,op:1",
            "1",
            "this does not say what a word means",
        ),
        ("offset=#0:B,size=S:B,op=O", "#0", "there is no such column"),
        ("", "", "a column is missing here"),
        (
            "all:7,offset:B,size:B",
            "all:7",
            "what all records are is missing",
        ),
        ("offset:B,size:B,op,volume:x", "x", "a volume has no unit"),
    ] {
        assert_eq!(wrong(text), (at.to_owned(), message.to_owned()), "{text}");
    }
    let error = "time:s,öffset:B".parse::<Layout>().unwrap_err();
    assert!(
        error.to_string().starts_with(
            "there is no column 'öffset'\n  | time:s,öffset:B\n  |        ^^^^^^\n  = "
        ),
        "{error}"
    );
}

#[test]
fn words_for_operations() {
    let of = |word: &str| op_of(word.as_bytes(), &[]);
    for (word, op) in [
        ("r", Op::Read),
        ("WRITE", Op::Write),
        ("Discard", Op::Trim),
        ("trim", Op::Trim),
        ("FWS", Op::Write),
        ("WFSM", Op::Write),
        ("RA", Op::Read),
        ("F", Op::Flush),
        (" Write ", Op::Write),
    ] {
        assert_eq!(of(word), Some(op), "{word}");
    }
    for none in ["", "0", "1", "reader", "N", "WX"] {
        assert_eq!(of(none), None, "{none}");
    }
    assert_eq!(op_of(b"1", &[("1".into(), Op::Write)]), Some(Op::Write));
}
