//! `floatgate fit` and `floatgate recipe fit`: drives whose truth is known are found again; figures of real ones.

mod common;
mod hidden;

use std::collections::BTreeSet;
use std::process::Command;

use common::Place;
use floatgate::fit::measured::parse;
use floatgate::fit::solve::{Fitted, Known, rank};
use floatgate::fit::{CANDIDATES, Candidate, Laboratory, Model, Size, Workload};
use hidden::{Hidden, SKEWS};

const MICRON: &str = include_str!("../../../docs/fit/micron-7450-max.csv");
const P5520: &str = include_str!("../../../docs/fit/solidigm-p5520.csv");
const GIB: f64 = (1_u64 << 30) as f64;

/// Models for any hidden configuration, simulated once for all.
fn models(candidates: &[Candidate], block_pages: &[u32], model_pages: u32) -> Vec<Model> {
    let schemes = floatgate_catalog::catalog();
    let mut asked = vec![(Workload::Uniform, 1.04..4.2)];
    asked.extend(SKEWS.map(|skew| (Workload::parse(skew).unwrap(), 1.04..2.2)));
    let models = block_pages.iter().map(|&pages| {
        let size = Size {
            blocks: model_pages / pages,
            pages,
        };
        let laboratory = Laboratory::new(&schemes, size, hidden::ROUNDS).unwrap();
        Model::simulated(&laboratory, candidates, &asked, 2, &|| ()).unwrap()
    });
    models.collect()
}

/// How a hidden configuration came out.
struct Found {
    hidden: Hidden,
    best: Fitted,
    as_good: Vec<&'static str>,
    block_pages: u32,
}

impl Found {
    fn of(hidden: Hidden, models: &[Model]) -> Self {
        let schemes = floatgate_catalog::catalog();
        let runs = parse("hidden", hidden.measured(&schemes)).unwrap();
        let fitted = rank(&runs, models, Known::default());
        let as_good: BTreeSet<&str> = fitted
            .iter()
            .filter(|one| one.is_as_good)
            .map(|one| one.candidate.name)
            .collect();
        let as_good = as_good.into_iter().collect();
        let best = fitted.into_iter().next().unwrap();
        let block_pages = models[best.model].size.pages;
        Self {
            hidden,
            best,
            as_good,
            block_pages,
        }
    }

    fn capacity_error(&self) -> f64 {
        self.best.capacity / self.hidden.capacity() - 1.0
    }

    fn is_exact(&self) -> bool {
        self.best.candidate == self.hidden.candidate
    }

    /// The rule, wherever moved pages lie.
    fn is_rule(&self) -> bool {
        let of = |candidate: Candidate| (candidate.policy, candidate.draws);
        of(self.best.candidate) == of(self.hidden.candidate)
    }

    fn is_named(&self) -> bool {
        self.as_good.contains(&self.hidden.candidate.name)
    }

    fn row(&self) -> String {
        let Hidden {
            candidate,
            dies,
            pages_per_block,
            overhead,
            ..
        } = &self.hidden;
        let spare = self.hidden.blocks_per_die - 2;
        format!(
            "{:22} {dies} x {spare:4} x {pages_per_block:3} {overhead:.3} | {:22} {:3} {:+.2} % {:.3} {:.2} % | {}",
            candidate.name,
            self.best.candidate.name,
            self.block_pages,
            100.0 * self.capacity_error(),
            self.best.overhead.unwrap_or_default(),
            100.0 * self.best.rms(),
            self.as_good.join(", ")
        )
    }
}

/// A few of the configurations below, in seconds, with fewer candidates.
#[test]
fn hidden_configurations_are_found() {
    let names = ["greedy", "fifo", "4-choices", "cost-benefit"];
    let named = |name: &str| {
        CANDIDATES
            .into_iter()
            .find(|candidate| candidate.name == name)
    };
    let candidates: Vec<Candidate> = names.into_iter().filter_map(named).collect();
    assert_eq!(candidates.len(), names.len());
    let models = models(&candidates, &[64], 12_800);
    for (seed, &candidate) in (1..).zip(&candidates) {
        let hidden = Hidden {
            candidate,
            ..Hidden::draw(seed, 12_800)
        };
        let found = Found::of(hidden, &models);
        assert!(
            found.is_exact() && found.capacity_error().abs() < 0.03,
            "{}",
            found.row()
        );
    }
}

/// docs/fit.md has what it prints, and the command. In the environment: how many (`CONFIGURATIONS`).
#[test]
#[ignore = "takes half an hour; docs/fit.md"]
fn fifty_hidden_configurations() {
    let count = std::env::var("CONFIGURATIONS").map_or(60, |text| text.parse().unwrap());
    let models = models(&CANDIDATES, &[64, 256], 51_200);
    let found: Vec<Found> = (1..=count)
        .map(|seed| {
            let found = Found::of(Hidden::draw(seed, 51_200), &models);
            println!("{}", found.row());
            found
        })
        .collect();
    let share = |is: fn(&Found) -> bool| {
        found.iter().filter(|one| is(one)).count() as f64 / found.len() as f64
    };
    let (capacity, named) = (
        share(|one| one.capacity_error().abs() < 0.02),
        share(Found::is_named),
    );
    let (exact, rule) = (share(Found::is_exact), share(Found::is_rule));
    let sure = share(|one| one.as_good.len() == 1);
    println!(
        "flash within 2 %: {capacity:.3}; rule and placement: {exact:.3}, or named as not told apart: {named:.3}; \
         rule: {rule:.3}; nothing else named: {sure:.3}"
    );
    assert!(capacity >= 0.95 && named >= 0.9 && rule >= 0.9);
}

/// docs/fit.md has the table that it prints.
#[test]
#[ignore = "prints a table; docs/fit.md"]
fn write_amplification_of_every_candidate() {
    let schemes = floatgate_catalog::catalog();
    let size = Size {
        blocks: 800,
        pages: 64,
    };
    let laboratory = Laboratory::new(&schemes, size, hidden::ROUNDS).unwrap();
    let names = [
        "uniform",
        "zipf(0.6)",
        "zipf(0.8)",
        "fio-zipf(0.8)",
        "zipf(0.95)",
        "hot(80/20)",
        "hot(90/10)",
    ];
    let writes = names.map(|name| laboratory.writes(Workload::parse(name).unwrap()).unwrap());
    for candidate in CANDIDATES {
        let of = |writes| laboratory.simulate(&candidate, writes, 1.2).unwrap().1;
        let row = writes.each_ref().map(|writes| format!("{:.2}", of(writes)));
        println!("| `{}` | {} |", candidate.name, row.join(" | "));
    }
}

/// The figures of docs/real-drives.md: 1,071 GiB and a factor of 1.046, and no rule that skewed writes exclude.
#[test]
fn the_micron_of_the_study_is_found() {
    let place = Place::new();
    place.file("m.csv", MICRON);
    let words = "fit m.csv --rounds 8 --candidates greedy,fifo,cost-benefit --block-pages 64 --model-pages 25600 --json --out drive.toml";
    let told = place.run(words).ok().json();
    let (best, all) = (&told["best"], told["candidates"].as_array().unwrap());
    assert_eq!(best["candidate"], "greedy");
    let number = |key: &str| best[key].as_f64().unwrap();
    assert!(
        (number("capacity_bytes") / GIB / 1071.0 - 1.0).abs() < 0.012,
        "{best}"
    );
    assert!(
        number("capacity_least_bytes") < 1075.0 * GIB
            && 1071.0 * GIB < number("capacity_most_bytes"),
        "{best}"
    );
    assert!((number("overhead") - 1.046).abs() < 0.008, "{best}");
    let fifo = all.iter().find(|row| row["candidate"] == "fifo").unwrap();
    assert!(fifo["error_rms"].as_f64().unwrap() > 0.02, "{fifo}");
    assert_eq!(fifo["is_as_good_as_the_best"], false);
    // The drive as a device, full.
    let words = "run --config drive.toml --trace uniform:space=25600:requests=102400 --json";
    let record = place.run(words).ok().record();
    let ours = number("overhead") * record.derived.write_amplification.unwrap();
    assert!((ours / 1.892 - 1.0).abs() < 0.02, "{ours}");
}

/// The levels alone tell the flash, and that they tell nothing else is said.
#[test]
fn a_fill_sweep_does_not_tell_the_rule() {
    let place = Place::new();
    place.file(
        "m.csv",
        MICRON
            .lines()
            .filter(|line| !line.ends_with(",1"))
            .collect::<Vec<_>>()
            .join("\n"),
    );
    let shown = place
        .run("fit m.csv --candidates greedy,fifo --block-pages 64 --model-pages 25600")
        .ok();
    assert!(
        shown.out.contains("do not tell") && shown.out.contains("all runs are uniform"),
        "{}",
        shown.out
    );
    let told = place
        .run("fit m.csv --candidates greedy --block-pages 64 --model-pages 25600 --json")
        .ok()
        .json();
    let capacity = told["best"]["capacity_bytes"].as_f64().unwrap() / GIB;
    assert!((capacity / 1071.0 - 1.0).abs() < 0.012, "{capacity}");
}

#[test]
fn the_p5520_of_the_study_is_not_greedy() {
    let place = Place::new();
    place.file("p.csv", P5520);
    let words = "fit p.csv --candidates greedy,fifo,10-choices,cost-benefit-apart --overhead 1 --block-pages 64 --model-pages 25600 --json";
    let told = place.run(words).ok().json();
    let rms = |name: &str| {
        let rows = told["candidates"].as_array().unwrap();
        let row = rows.iter().find(|row| row["candidate"] == name).unwrap();
        row["error_rms"].as_f64().unwrap()
    };
    assert!(rms("cost-benefit-apart") < 0.015, "{told}");
    assert!(
        rms("greedy") > 0.03 && rms("fifo") > 0.1 && rms("10-choices") > 0.02,
        "{told}"
    );
}

#[test]
fn recipes_are_scripts_that_do_nothing_unasked() {
    let place = Place::new();
    let recipes = [
        "recipe fit /dev/nvme9n9 --fill 50,100",
        "recipe fit /dev/nvme9n9 --counter none --skew hot(90/10)",
        "recipe fit nbd+unix:///?socket=d.sock --served d.ctl --every 0.2 --rounds 3",
    ];
    for recipe in recipes {
        let script = place.run(recipe).ok().out;
        assert!(
            script.contains("THIS DESTROYS ALL DATA") && script.matches('@').count() == 1,
            "{script}"
        );
        assert!(
            script.contains("run,workload,logical_bytes,span_bytes,host_bytes,media_bytes,seconds")
        );
        assert!(script.contains("measure 'fill-100' 'uniform' 100 'random'\nmeasure "));
        place.file("measure.sh", &script);
        let sh = |words: &[&str]| {
            Command::new("sh")
                .args(words)
                .current_dir(place.path(""))
                .output()
                .unwrap()
        };
        assert!(sh(&["-n", "measure.sh"]).status.success(), "{script}");
        let refused = sh(&["measure.sh"]);
        assert_eq!(refused.status.code(), Some(2));
        assert!(String::from_utf8_lossy(&refused.stderr).contains("--destroy-all-data"));
    }
    assert_eq!(place.files(), ["measure.sh"]);
}

#[test]
fn what_a_recipe_cannot_measure() {
    let place = Place::new();
    place.run("recipe fit nbd+unix:///?socket=d.sock").refused(
        "error: nbd+unix:///?socket=d.sock: a device over NBD has no counters of its own\n  \
         help: --served SOCKET, the control socket of `floatgate serve`",
    );
    place
        .run("recipe fit /dev/sda --skew zipf(0.8)")
        .refused("error: --skew zipf(0.8): fio spreads its ranks by a hash\n  help: fio-zipf(0.8)");
    let told = place.run("recipe fit /dev/sda --skew pareto(0.8)");
    assert!(
        told.code == 2 && told.err.contains("hot(80/20)"),
        "{}",
        told.err
    );
}
