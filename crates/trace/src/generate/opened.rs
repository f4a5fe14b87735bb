//! A generator in place of a file: `zipf:space=65536:seed=2`.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use super::{Requests, build, generators};
use crate::error::{Position, Stop};
use crate::formats::{Decoder, Format, Parsed, pages::DEFAULT_PAGE_BYTES};
use crate::reader::Parts;
use crate::volumes::Volumes;
use crate::{Compression, OpenOptions, Reader, TraceError};

/// Whether a name stands for a generator: `NAME` or `NAME:KEY=VALUE:...`.
pub fn is_generated(name: &str) -> bool {
    let generator = name.split(':').next().unwrap_or_default();
    generators().iter().any(|known| known.name == generator)
}

/// Opens what a generator makes as if it were a trace of format `pages`: its name, and behind colons its parameters.
///
/// A page has as many bytes as the options say, or else as many as in files of that format.
///
/// # Errors
/// As [`build`], and if a parameter is not of the form `KEY=VALUE`.
///
/// ```
/// use floatgate_trace::{OpenOptions, generate};
///
/// let options = OpenOptions { page_bytes: 2048, ..OpenOptions::default() };
/// let mut reader = generate::open("sequential:space=64:requests=3:n=2", &options)?;
/// let third = reader.requests().nth(2).expect("three requests")?;
/// assert_eq!((third.offset, third.bytes), (8192, 4096));
/// # Ok::<(), floatgate_trace::TraceError>(())
/// ```
pub fn open(name: &str, options: &OpenOptions) -> Result<Reader, TraceError> {
    let wrong = |text: String| {
        TraceError::file(name, text)
            .hint("`floatgate trace generate` lists the generators and their parameters")
    };
    let mut words = name.split(':');
    let generator = words.next().unwrap_or_default().trim();
    let params: Option<Vec<(&str, &str)>> = words
        .map(|word| word.split_once('=').map(|(k, v)| (k.trim(), v.trim())))
        .collect();
    let params = params.ok_or_else(|| {
        wrong("the parameters of a generator have the form NAME:KEY=VALUE:KEY=VALUE".into())
    })?;
    let requests = build(generator, &params).map_err(|error| wrong(error.to_string()))?;
    crate::open::check_streams(name, Format::Pages, options)?;
    let page_bytes = match options.page_bytes {
        0 => DEFAULT_PAGE_BYTES,
        given => given,
    };
    let decoder = Generated {
        requests,
        page_bytes,
        number: 0,
        volumes: Volumes::default(),
    };
    let parts = Parts {
        path: name.into(),
        format: Format::Pages,
        compression: Compression::None,
        decoder: Box::new(decoder),
        count: Arc::new(AtomicU64::new(0)),
        total: None,
    };
    Ok(Reader::new(parts, options))
}

struct Generated {
    requests: Requests,
    page_bytes: u32,
    number: u64,
    volumes: Volumes,
}

impl Decoder for Generated {
    fn next(&mut self) -> Result<Option<Parsed>, Stop> {
        let next = self.requests.next();
        self.number += u64::from(next.is_some());
        Ok(next.map(|request| Parsed::One(request.to_request(self.page_bytes))))
    }

    fn position(&self) -> Position {
        Position::Record(self.number)
    }

    fn volumes(&self) -> &Volumes {
        &self.volumes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_opened_is_what_is_generated() {
        let params = [
            ("space", "64"),
            ("requests", "50"),
            ("reads", "30"),
            ("seed", "9"),
        ];
        let made: Vec<_> = build("uniform", &params)
            .expect("a generator")
            .map(|request| request.to_request(4096))
            .collect();
        let name = "uniform:space=64:requests=50:reads=30:seed=9";
        assert!(is_generated(name));
        let mut reader = open(name, &OpenOptions::default()).expect("a trace");
        let read: Result<Vec<_>, _> = reader.requests().collect();
        assert_eq!(read.expect("requests"), made);
        assert_eq!(reader.counts().accepted, 50);
    }

    #[test]
    fn what_no_generator_takes_is_told() {
        let message = |name: &str| {
            let error = open(name, &OpenOptions::default()).expect_err("an error");
            error.to_string()
        };
        assert!(message("uniform:space").contains("NAME:KEY=VALUE"));
        assert!(message("uniform:spaces=3").contains("spaces"));
        assert!(message("uniform:space=x").contains("'space'"));
        assert!(!is_generated("uniforms:space=3"));
    }
}
