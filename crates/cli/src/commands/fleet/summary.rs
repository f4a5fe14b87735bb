//! A fleet in a few numbers: how write amplification and response times spread over the volumes.

use floatgate_catalog::Scheme;
use serde_json::{Value, json};

use super::input::Input;
use super::rows::{AMPLIFICATION, BEHIND, HOST_WRITES, P99, Row, number, text_of};
use crate::commands::study::{Study, configuration};
use crate::config::sizing::Failure;
use crate::table::{Table, count, micros, short, some};

/// Points of a distribution: more do not show in a plot.
const POINTS_MAX: usize = 400;

/// A value of every volume that has one.
#[derive(Clone, Debug, Default, PartialEq)]
struct Spread {
    /// In ascending order.
    values: Vec<f64>,
    mean: Option<f64>,
    /// Every volume counted as often as it was written.
    weighted_mean: Option<f64>,
}

impl Spread {
    /// Of pairs of a value and its weight.
    fn of(pairs: &[(f64, f64)]) -> Self {
        let mut values: Vec<f64> = pairs.iter().map(|(value, _)| *value).collect();
        values.sort_by(f64::total_cmp);
        let mean = |weight: &dyn Fn(f64) -> f64| {
            let weights: f64 = pairs.iter().map(|(_, w)| weight(*w)).sum();
            let sum: f64 = pairs.iter().map(|(value, w)| value * weight(*w)).sum();
            (weights > 0.0).then(|| sum / weights)
        };
        Self {
            mean: mean(&|_| 1.0),
            weighted_mean: mean(&|weight| weight),
            values,
        }
    }

    /// The `ceil(share * n)`-th smallest value; the smallest for 0.
    fn at(&self, share: f64) -> Option<f64> {
        let rank = (share * self.values.len() as f64).ceil() as usize;
        self.values.get(rank.max(1) - 1).copied()
    }

    const SHARES: [(&'static str, f64); 7] = [
        ("min", 0.0),
        ("p5", 0.05),
        ("p25", 0.25),
        ("median", 0.5),
        ("p75", 0.75),
        ("p95", 0.95),
        ("max", 1.0),
    ];

    fn json(&self) -> Value {
        let mut all = json!({"volumes": self.values.len()});
        for (name, share) in Self::SHARES {
            all[name] = self.at(share).into();
        }
        all["mean"] = self.mean.into();
        all["mean_weighted_by_host_writes"] = self.weighted_mean.into();
        let n = self.values.len();
        let every = n.div_ceil(POINTS_MAX).max(1);
        let steps = self.values.iter().enumerate();
        let steps = steps.filter(|(i, _)| (n - 1 - i).is_multiple_of(every));
        all["cumulative"] = steps
            .map(|(i, value)| json!([value, (i + 1) as f64 / n as f64]))
            .collect();
        all
    }

    fn cells(&self, format: fn(f64) -> String) -> Vec<String> {
        let text = |value: Option<f64>| value.map_or_else(|| "-".to_string(), format);
        let mut cells = vec![count(self.values.len() as u64)];
        cells.extend(Self::SHARES.map(|(_, share)| text(self.at(share))));
        cells.extend([text(self.mean), text(self.weighted_mean)]);
        cells
    }
}

/// One scheme on all volumes.
struct OfScheme {
    key: &'static str,
    title: &'static str,
    amplification: Spread,
    p99_us: Spread,
    /// Volumes that were written to and of which nothing had to be collected.
    uncollected: u64,
    /// Volumes whose device did not keep up with the arrivals.
    behind: u64,
    failed: Vec<(String, String)>,
}

impl OfScheme {
    fn of(scheme: &Scheme, at: usize, input: &Input, rows: &[Row]) -> Self {
        let own: Vec<&Row> = rows.iter().filter(|row| row.scheme == at).collect();
        let replayed: Vec<&[u64]> = own.iter().filter_map(|r| r.cells.as_deref().ok()).collect();
        let pairs = |name: &str| -> Vec<(f64, f64)> {
            let weight = |cells: &[u64]| number(cells, HOST_WRITES).unwrap_or(0.0);
            let value = |cells: &&[u64]| Some((number(cells, name)?, weight(cells)));
            replayed.iter().filter_map(value).collect()
        };
        let is = |cells: &[u64], name: &str, wanted: f64| number(cells, name) == Some(wanted);
        let uncollected = replayed.iter().filter(|cells| {
            !is(cells, HOST_WRITES, 0.0) && is(cells, "erases", 0.0) && is(cells, "copies", 0.0)
        });
        let behind = replayed
            .iter()
            .filter(|cells| number(cells, BEHIND).is_some());
        let failed = |row: &&Row| -> Option<(String, String)> {
            let failure: &Failure = row.cells.as_ref().err()?;
            Some((input.volumes[row.volume].name.clone(), text_of(failure)))
        };
        Self {
            key: scheme.info.key,
            title: scheme.info.title,
            amplification: Spread::of(&pairs(AMPLIFICATION)),
            p99_us: Spread::of(&pairs(P99)),
            uncollected: uncollected.count() as u64,
            behind: behind.count() as u64,
            failed: own.iter().filter_map(failed).collect(),
        }
    }

    fn json(&self) -> Value {
        let failed = self.failed.iter();
        let failed = failed.map(|(volume, error)| json!({"volume": volume, "error": error}));
        json!({
            "scheme": self.key,
            "title": self.title,
            "write_amplification": self.amplification.json(),
            "response_p99_us": self.p99_us.json(),
            "volumes_without_collection": self.uncollected,
            "volumes_behind": self.behind,
            "failures": failed.collect::<Vec<_>>(),
        })
    }
}

/// All schemes on all volumes.
pub struct Summary {
    schemes: Vec<OfScheme>,
    volumes: usize,
    device: String,
    trace: Value,
    configuration: Value,
}

impl Summary {
    /// The summary of some rows.
    pub fn of(
        study: &Study,
        input: &Input,
        chosen: &[&Scheme],
        device: String,
        rows: &[Row],
    ) -> Self {
        let schemes = chosen.iter().enumerate();
        let schemes = schemes.map(|(at, scheme)| OfScheme::of(scheme, at, input, rows));
        let mut configuration = configuration(&study.plan);
        // These are each volume's own, and stand in its row.
        if let Some(device) = configuration["device"].as_object_mut() {
            let own = |key: &str| {
                ["data_blocks_per_die", "logical_pages"].contains(&key)
                    || (["dies", "channels", "blocks_per_die"].contains(&key)
                        && study.settings.get(&format!("device.{key}")).is_none())
            };
            device.retain(|key, _| !own(key));
        }
        Self {
            schemes: schemes.collect(),
            volumes: input.volumes.len(),
            device,
            trace: json!({
                "name": input.name(),
                "counts": serde_json::to_value(input.counts).unwrap_or_default(),
            }),
            configuration,
        }
    }

    /// For programs.
    pub fn json(&self) -> Value {
        json!({
            "schema": floatgate_sim::results::SCHEMA,
            "program": concat!("floatgate ", env!("CARGO_PKG_VERSION")),
            "trace": self.trace,
            "device": self.device,
            "configuration": self.configuration,
            "volumes": self.volumes,
            "notes": self.notes(),
            "results": self.schemes.iter().map(OfScheme::json).collect::<Vec<_>>(),
        })
    }

    /// For people.
    pub fn text(&self) -> String {
        let mut table = Table::new(&[
            "<over volumes",
            "<scheme",
            "volumes",
            "min",
            "p5",
            "p25",
            "median",
            "p75",
            "p95",
            "max",
            "mean",
            "weighted",
        ]);
        let mut add = |name: &str, of: fn(&OfScheme) -> &Spread, format: fn(f64) -> String| {
            for scheme in &self.schemes {
                let head = [name.to_string(), scheme.key.to_string()];
                table.row(head.into_iter().chain(of(scheme).cells(format)));
            }
        };
        add("write amplification", |s| &s.amplification, short);
        add("p99 response time", |s| &s.p99_us, micros);
        let notes = self.notes();
        let notes = notes.iter().map(|note| format!("\nNote: {note}\n"));
        format!(
            "\n{}volumes: those that have the value (write amplification: those written to); weighted: mean by pages that the host wrote\n{}\n",
            table.render(),
            notes.collect::<String>()
        )
    }

    /// What a reader should not have to find out.
    fn notes(&self) -> Vec<String> {
        let volumes = |n: u64| some(n, "volume");
        let mut notes = Vec::new();
        for scheme in &self.schemes {
            let key = scheme.key;
            if scheme.uncollected > 0 {
                notes.push(format!(
                    "{key}: {} saw no garbage collection: what they write fits what was erased at the start. \
                     --set run.ageing=overwrite:1 makes it happen.",
                    volumes(scheme.uncollected)
                ));
            }
            if scheme.behind > 0 {
                notes.push(format!(
                    "{key}: {} did not keep up with the arrivals (column {BEHIND}): their response times measure the \
                     queue. More dies, --set host.speed=0.5 or --set host.arrivals=closed go below saturation.",
                    volumes(scheme.behind)
                ));
            }
            if let Some((volume, error)) = scheme.failed.first() {
                let first = error.lines().next().unwrap_or_default();
                notes.push(format!(
                    "{key}: {} could not be replayed, the first: {volume}: {first}",
                    volumes(scheme.failed.len() as u64)
                ));
            }
        }
        notes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_values_of_volumes_and_means_know_weights() {
        let pairs: Vec<(f64, f64)> = (1..=20).rev().map(|i| (f64::from(i), 0.0)).collect();
        let spread = Spread::of(&pairs);
        let at: Vec<f64> = Spread::SHARES
            .iter()
            .map(|(_, share)| spread.at(*share).unwrap())
            .collect();
        assert_eq!(at, [1.0, 1.0, 5.0, 10.0, 15.0, 19.0, 20.0]);
        assert_eq!((spread.mean, spread.weighted_mean), (Some(10.5), None));
        let weighted = Spread::of(&[(1.0, 3.0), (5.0, 1.0)]);
        assert_eq!(
            (weighted.mean, weighted.weighted_mean),
            (Some(3.0), Some(2.0))
        );
    }

    #[test]
    fn nothing_has_no_distribution() {
        let none = Spread::of(&[]);
        assert_eq!(none.json()["median"], Value::Null);
        assert_eq!(none.json()["cumulative"], json!([]));
    }

    #[test]
    fn a_long_distribution_keeps_its_end() {
        let pairs: Vec<(f64, f64)> = (0..5000).map(|i| (f64::from(i), 1.0)).collect();
        let json = Spread::of(&pairs).json();
        let steps = json["cumulative"].as_array().unwrap();
        assert!(steps.len() <= POINTS_MAX);
        assert_eq!(steps.last(), Some(&json!([4999.0, 1.0])));
    }
}
