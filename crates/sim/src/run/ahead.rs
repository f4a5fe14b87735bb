//! The requests of a trace ahead of their play: their table entries are fetched, and a scheme that looks ahead is told what
//! they write.

use std::collections::VecDeque;

use floatgate_core::ftl::Coming;
use floatgate_core::{Ftl, Lpn, Refusal};
use floatgate_trace::{Request, TraceError};

use crate::clock::Clock;
use crate::host::{Kind, PageMapper, PageRequest};
use crate::session::{READ_AHEAD, Session};
use crate::source::Source;

/// The next requests of a source, each with its place.
pub(super) struct Ahead {
    requests: VecDeque<(Request, u64)>,
    /// The source has no more, or could not go on: that comes after the requests before it.
    ended: Option<Result<(), TraceError>>,
    told: Option<Told>,
}

/// What a scheme that looks ahead is told.
struct Told {
    mapper: PageMapper,
    /// Requests told at once.
    chunk: usize,
    /// Those of them that have not been played.
    left: usize,
    pages: PageRequest,
    writes: Vec<Coming>,
}

impl Ahead {
    /// Nothing has been read.
    pub(super) fn of<S: Ftl<Page = Lpn>, C: Clock>(
        session: &Session<S, C>,
    ) -> Result<Self, Refusal> {
        let chunk = session.looks_ahead()?;
        Ok(Self {
            requests: VecDeque::new(),
            ended: None,
            told: (chunk > 0).then(|| Told {
                mapper: session.mapper_ahead(),
                chunk,
                left: 0,
                pages: PageRequest::default(),
                writes: Vec::new(),
            }),
        })
    }

    /// The next request; asks for what later ones need.
    #[inline]
    pub(super) fn next<S: Ftl<Page = Lpn>, C: Clock>(
        &mut self,
        session: &mut Session<S, C>,
        source: &mut dyn Source,
    ) -> Option<(Request, u64)> {
        let wanted = self.told.as_ref().map_or(0, |told| told.chunk);
        while self.ended.is_none() && self.requests.len() < wanted.max(READ_AHEAD) {
            match source.next() {
                Ok(Some(request)) => {
                    session.prefetch(&request);
                    self.requests.push_back((request, source.place()));
                }
                Ok(None) => self.ended = Some(Ok(())),
                Err(error) => self.ended = Some(Err(error)),
            }
        }
        if let Some(told) = &mut self.told {
            told.tell(&self.requests, session);
        }
        self.requests.pop_front()
    }

    /// How the source has ended.
    ///
    /// # Errors
    /// Why it could not go on.
    pub(super) fn end(self) -> Result<(), TraceError> {
        self.ended.unwrap_or(Ok(()))
    }
}

impl Told {
    /// Tells the scheme of the next requests, if all of those that it was told of have been played.
    fn tell<S: Ftl<Page = Lpn>, C: Clock>(
        &mut self,
        requests: &VecDeque<(Request, u64)>,
        session: &mut Session<S, C>,
    ) {
        if self.left == 0 && !requests.is_empty() {
            self.writes.clear();
            self.left = requests.len().min(self.chunk);
            for (request, _) in requests.iter().take(self.left) {
                let stream = session.stream_of(request);
                if !self.add(request, stream) {
                    break;
                }
            }
            session.ahead(&self.writes);
        }
        self.left = self.left.saturating_sub(1);
    }

    /// Adds the writes of a request. What the device does not have is left to the play.
    fn add(&mut self, request: &Request, stream: Option<u32>) -> bool {
        if self.mapper.map(request, &mut self.pages).is_err() {
            return false;
        }
        if self.pages.kind == Some(Kind::Write) {
            for segment in &self.pages.segments {
                let pages = (segment.first.0..segment.first.0 + segment.pages).map(Lpn);
                self.writes.extend(pages.map(|page| Coming {
                    page,
                    request_pages: segment.pages,
                    stream,
                }));
            }
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use floatgate_core::address::Pbn;
    use floatgate_core::{Geometry, Start, state};
    use floatgate_schemes::page::PageBy;
    use floatgate_schemes::parts::placement::{
        AnyVictims, Books, ByChunk, Chunked, Keeps, PageOptions, Plan, Rules,
    };
    use floatgate_trace::{Op, Stream};

    use super::*;
    use crate::config::{Device, Host, Recipe, RunConfig};
    use crate::part::part;
    use crate::run::{Decoded, Simulated};
    use floatgate_core::catalog::Life;

    /// Page, pages of the request and stream.
    type Write = (u32, u32, Option<u32>);

    thread_local! {
        /// By question.
        static ASKED: RefCell<Vec<Vec<Write>>> = const { RefCell::new(Vec::new()) };
    }

    #[derive(Debug)]
    struct Listens;

    state!(Listens {});

    impl ByChunk for Listens {
        fn plan(_: &PageOptions) -> Result<Plan, Refusal> {
            Ok(Plan {
                classes: 1,
                least_low: 2,
                beside_low: 1,
                class_of_full: 0,
                first_moved: 0,
                is_apart: false,
                feeds_one: true,
                is_counted: true,
                keeps: Keeps::default(),
            })
        }

        fn chunk(_: &PageOptions) -> usize {
            4
        }

        fn new(_: &PageOptions, _: &Geometry) -> Self {
            Self
        }

        fn of_host(&mut self, writes: &[Coming], _: &Books, classes: &mut Vec<u32>) {
            let heard = |write: &Coming| (write.page.0, write.request_pages, write.stream);
            ASKED.with_borrow_mut(|asked| asked.push(writes.iter().map(heard).collect()));
            classes.resize(writes.len(), 0);
        }

        fn of_moved(&mut self, _: Pbn, pages: &[Lpn], _: &Books, classes: &mut Vec<u32>) {
            classes.resize(pages.len(), 0);
        }
    }

    #[derive(Debug)]
    struct Listening;

    impl Rules for Listening {
        const KEY: &'static str = "listens";
        const TITLE: &'static str = "Listens";
        const SUMMARY: &'static str = "for tests";
        const SOURCE: &'static str = "ours";
        type Separation = Chunked<Listens>;
        type Victims = AnyVictims;
    }

    /// Requests of the kinds and pages, of streams by their numbers.
    fn play(requests: &[(Op, u64, u64)], ageing: Vec<Recipe>) -> Vec<Vec<Write>> {
        let mut part = part("mt29f16g08").expect("a preset").clone();
        part.pages_per_block = 8;
        let page = u64::from(part.page_bytes);
        let config = RunConfig {
            device: Device::one_die_a_channel(part, 1, 16, 64),
            start: Start::Full,
            ageing,
            host: Host::default(),
            scheme: "listens".into(),
            options: Vec::new(),
        };
        let requests: Vec<Request> = (0u32..)
            .zip(requests)
            .map(|(i, &(op, first, pages))| Request {
                arrival_ns: u64::from(i) * 10_000_000,
                op,
                volume: 0,
                stream: Stream::new(i.into()).expect("a low number"),
                offset: first * page,
                bytes: pages * page,
            })
            .collect();
        let simulated = Simulated::of::<PageBy<Listening>>();
        let run = simulated.run(&config, &mut Decoded::new(&requests), &mut |_| {});
        run.expect("a record");
        ASKED.take()
    }

    #[test]
    fn a_scheme_is_told_of_the_writes_of_a_chunk_of_requests() {
        let asked = play(
            &[
                (Op::Write, 3, 1),
                (Op::Read, 9, 1),
                (Op::Write, 5, 2),
                (Op::Trim, 3, 1),
                (Op::Write, 7, 5),
            ],
            Vec::new(),
        );
        let of = |pages: std::ops::Range<u32>, stream| -> Vec<_> {
            let n = pages.len() as u32;
            pages.map(|page| (page, n, Some(stream))).collect()
        };
        let mut first = of(3..4, 0);
        first.extend(of(5..7, 2));
        assert_eq!(
            asked,
            [
                first,
                of(7..11, 4)
                    .into_iter()
                    .map(|(p, _, s)| (p, 5, s))
                    .collect(),
                vec![(11, 5, Some(4))]
            ]
        );
    }

    #[test]
    fn replays_are_told_too() {
        let asked = play(
            &[(Op::Write, 3, 1), (Op::Write, 4, 1)],
            vec![Recipe::Replay],
        );
        let both = vec![(3, 1, Some(0)), (4, 1, Some(1))];
        assert_eq!(asked, [both.clone(), both]);
    }
}
