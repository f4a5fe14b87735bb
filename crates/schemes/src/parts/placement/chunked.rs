//! A separation that is asked for many pages at once: for the writes of the next requests, where these are known ahead, and
//! for all that a collection moves. For rules that are cheap by the page and dear by the call: in another language, or by
//! a model. What such a rule sees of the [`Books`] is as old as its question: of a chunk of writes, as they were before the
//! first.

use std::fmt::Debug;

use floatgate_core::Refusal;
use floatgate_core::address::{Lpn, Pbn};
use floatgate_core::ftl::Coming;
use floatgate_core::geometry::Geometry;
use floatgate_core::state::{Passed, State, Tape};

use super::{Books, PageOptions, Plan, Separation};

/// A rule that tells append points apart by the chunk.
pub trait ByChunk: State + Debug + Send + Sized + 'static {
    /// Classes and reserve under these options.
    ///
    /// # Errors
    /// A refusal that names the option at fault.
    fn plan(options: &PageOptions) -> Result<Plan, Refusal>;

    /// The most writes of one question, and the requests to look ahead for them.
    fn chunk(options: &PageOptions) -> usize;

    /// The rule at the start; `shape` has groups as dies and units as blocks.
    fn new(options: &PageOptions, shape: &Geometry) -> Self;

    /// Adds the class of each of the host's pages that are about to be written; at least one. The first has the number
    /// [`Books::now`].
    fn of_host(&mut self, writes: &[Coming], books: &Books, classes: &mut Vec<u32>);

    /// Adds the class of each valid page of a victim, in the order in which they move; at least one.
    fn of_moved(&mut self, victim: Pbn, pages: &[Lpn], books: &Books, classes: &mut Vec<u32>);
}

/// Asks a [`ByChunk`] in time, and hands out its answers one by one.
#[derive(Debug)]
pub struct Chunked<T> {
    rule: T,
    plan: Plan,
    chunk: usize,
    /// The stream of the request in work.
    stream: Option<u32>,
    /// The writes to come, as far as they are known.
    coming: Vec<Coming>,
    /// How many of them have come.
    came: usize,
    /// The classes of those from `since` on that were asked for.
    classes: Vec<u32>,
    since: usize,
    /// The pages of the victim, their classes, and how many of them have moved.
    leaving: Vec<Lpn>,
    moved: Vec<u32>,
    gone: usize,
}

/// What was foretold of one run is of no use in another.
impl<T: State> State for Chunked<T> {
    fn pass(&mut self, tape: &mut Tape<'_>) -> Passed {
        self.forget();
        self.rule.pass(tape)
    }
}

impl<T> Chunked<T> {
    fn forget(&mut self) {
        self.coming.clear();
        self.classes.clear();
        (self.came, self.since) = (0, 0);
    }
}

impl<T: ByChunk> Chunked<T> {
    /// Asks for the next writes.
    fn ask(&mut self, books: &Books) {
        self.since = self.came;
        let end = self.coming.len().min(self.came + self.chunk);
        self.classes.clear();
        let asked = &self.coming[self.came..end];
        self.rule.of_host(asked, books, &mut self.classes);
        check(&self.classes, asked.len(), &self.plan);
    }
}

/// # Panics
/// If a rule does not do what it must: a bug of its.
fn check(classes: &[u32], asked: usize, plan: &Plan) {
    assert_eq!(classes.len(), asked, "a rule names a class for each page");
    if let Some(class) = classes.iter().find(|&&class| class >= plan.classes) {
        panic!("a rule names class {class}, there are {}", plan.classes);
    }
}

impl<T: ByChunk> Separation for Chunked<T> {
    fn plan(options: &PageOptions) -> Result<Plan, Refusal> {
        T::plan(options)
    }

    fn new(options: &PageOptions, shape: &Geometry) -> Self {
        Self {
            rule: T::new(options, shape),
            plan: T::plan(options).expect("checked by the plan"),
            chunk: T::chunk(options).max(1),
            stream: None,
            coming: Vec::new(),
            came: 0,
            classes: Vec::new(),
            since: 0,
            leaving: Vec::new(),
            moved: Vec::new(),
            gone: 0,
        }
    }

    fn of_host(&mut self, lpn: Lpn, _: u32, books: &Books) -> u32 {
        let known = self.coming.get(self.came);
        if known.is_none_or(|known| known.page != lpn) {
            // Nobody said that it would come: it is asked for alone.
            self.forget();
            self.coming.push(Coming {
                page: lpn,
                request_pages: 1,
                stream: self.stream,
            });
        }
        if self.came == self.since + self.classes.len() {
            self.ask(books);
        }
        let class = self.classes[self.came - self.since];
        self.came += 1;
        class
    }

    fn of_moved(&mut self, lpn: Lpn, _: u32, _: u32, _: &Books) -> u32 {
        assert_eq!(
            self.leaving.get(self.gone),
            Some(&lpn),
            "pages move in order"
        );
        self.gone += 1;
        self.moved[self.gone - 1]
    }

    fn collects(&mut self, victim: Pbn, _: u32, books: &Books) {
        self.leaving.clear();
        self.moved.clear();
        self.gone = 0;
        self.leaving.extend(books.valid_pages(victim));
        if self.leaving.is_empty() {
            return;
        }
        self.rule
            .of_moved(victim, &self.leaving, books, &mut self.moved);
        check(&self.moved, self.leaving.len(), &self.plan);
        let first = self.moved[0];
        assert!(
            !self.plan.feeds_one || self.moved.iter().all(|&class| class == first),
            "a rule sends what one collection moves to one class, as its plan says"
        );
    }

    fn uses_streams(_: &PageOptions) -> bool {
        true
    }

    fn stream(&mut self, stream: Option<u32>) {
        self.stream = stream;
    }

    fn looks_ahead(options: &PageOptions) -> usize {
        T::chunk(options)
    }

    fn ahead(&mut self, writes: &[Coming]) {
        self.forget();
        self.coming.extend_from_slice(writes);
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use floatgate_core::Ftl;
    use floatgate_core::rng::SplitMix64;
    use floatgate_core::state;
    use floatgate_testkit::suite::{Bench, Case, random_request};

    use super::*;
    use crate::page::{Page, PageBy};
    use crate::parts::placement::{AnyVictims, Rules, dac::Dac};

    thread_local! {
        /// The pages of every question about writes of the host.
        static ASKED: RefCell<Vec<Vec<u32>>> = const { RefCell::new(Vec::new()) };
    }

    /// `dac`, by the chunk.
    #[derive(Debug)]
    struct DacByChunk {
        dac: Dac,
    }

    state!(DacByChunk { dac });

    impl ByChunk for DacByChunk {
        fn plan(options: &PageOptions) -> Result<Plan, Refusal> {
            Dac::plan(options)
        }

        fn chunk(_: &PageOptions) -> usize {
            3
        }

        fn new(options: &PageOptions, shape: &Geometry) -> Self {
            Self {
                dac: Dac::new(options, shape),
            }
        }

        fn of_host(&mut self, writes: &[Coming], books: &Books, classes: &mut Vec<u32>) {
            let pages = writes.iter().map(|write| write.page);
            classes.extend(pages.clone().map(|page| self.dac.of_host(page, 0, books)));
            ASKED.with_borrow_mut(|asked| asked.push(pages.map(|page| page.0).collect()));
        }

        fn of_moved(&mut self, victim: Pbn, pages: &[Lpn], books: &Books, classes: &mut Vec<u32>) {
            let from = books.unit(victim).class;
            classes.extend(
                pages
                    .iter()
                    .map(|&page| self.dac.of_moved(page, from, 0, books)),
            );
        }
    }

    #[derive(Debug)]
    struct Mine;

    impl Rules for Mine {
        const KEY: &'static str = "dac-by-chunk";
        const TITLE: &'static str = "dac, by chunk";
        const SUMMARY: &'static str = "for tests";
        const SOURCE: &'static str = "ours";
        type Separation = Chunked<DacByChunk>;
        type Victims = AnyVictims;
    }

    fn asked() -> Vec<Vec<u32>> {
        ASKED.take()
    }

    fn coming(pages: &[u32]) -> Vec<Coming> {
        let one = |&page: &u32| Coming {
            page: Lpn(page),
            request_pages: 1,
            stream: None,
        };
        pages.iter().map(one).collect()
    }

    #[test]
    fn asked_page_by_page_it_is_the_rule_itself() {
        let case = Case::small(2, 14, 4, 8).with("classes", 3);
        let mut chunked = Bench::<PageBy<Mine>>::audited(&case);
        let mut plain = Bench::<Page>::audited(&case.with("separation", "dac"));
        let mut rng = SplitMix64::new(3);
        for _ in 0..600 {
            let request = random_request(&mut rng, 64);
            assert_eq!(
                chunked.play(&request).counters(),
                plain.play(&request).counters(),
                "{request}"
            );
        }
        assert!(plain.counters().programs.gc > 0);
        assert_eq!(chunked.scheme().extra, plain.scheme().extra);
        assert!(asked().iter().all(|pages| pages.len() == 1));
    }

    #[test]
    fn what_is_known_ahead_is_asked_at_once() {
        let mut bench = Bench::<PageBy<Mine>>::new(&Case::small(1, 24, 4, 4)).unwrap();
        bench.ftl.ahead(&coming(&[0, 1, 2, 3]));
        bench.play("W 0 2, R 7 1, W 2 2");
        assert_eq!(asked(), [vec![0, 1, 2], vec![3]]);
        bench.ftl.ahead(&coming(&[5, 6, 7]));
        bench.play("W 5 1, W 9 1, W 6 1");
        assert_eq!(
            asked(),
            [vec![5, 6, 7], vec![9], vec![6]],
            "9 was not said, and what was is forgotten"
        );
        bench.play("W 8 2");
        assert_eq!(asked(), [vec![8], vec![9]]);
    }

    #[test]
    fn answers_of_a_chunk_are_as_old_as_the_question() {
        let mut bench = Bench::<PageBy<Mine>>::new(&Case::small(1, 24, 4, 4)).unwrap();
        bench.ftl.ahead(&coming(&[0, 0, 0, 0]));
        bench.play("W 0 1, W 0 1, W 0 1");
        assert_eq!(bench.extra("class_host_1"), 3, "its unit was of class 0");
        bench.play("W 0 1");
        assert_eq!(bench.extra("class_host_2"), 1, "the next question");
    }
}
