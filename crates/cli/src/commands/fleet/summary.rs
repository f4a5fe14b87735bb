//! A fleet in a few numbers: how write amplification and response times spread over the volumes.

use floatgate_sim::record::fleet::{
    FleetDocument, FleetTrace, SchemeSummary, Spread, VolumeFailure,
};
use floatgate_sim::record::{Configuration, SCHEMA};

use super::input::Input;
use super::rows::{BEHIND, Measured, Row, text_of};
use crate::PROGRAM;
use crate::commands::study::{Study, configuration};
use crate::commands::variant::Variant;
use crate::table::{Table, count, micros, short, some};

/// Points of a distribution: more do not show in a plot.
const POINTS_MAX: usize = 400;

/// The summary of some rows.
pub fn of(
    study: &Study,
    input: &Input,
    chosen: &[Variant<'_>],
    device: String,
    rows: &[Row],
) -> FleetDocument {
    let schemes = chosen.iter().enumerate();
    let results: Vec<SchemeSummary> = schemes
        .map(|(at, variant)| of_scheme(variant, at, input, rows))
        .collect();
    FleetDocument {
        schema: SCHEMA,
        program: PROGRAM.into(),
        trace: FleetTrace {
            name: input.name().into(),
            counts: input.counts.into(),
        },
        device,
        configuration: shared(study),
        volumes: input.volumes.len() as u64,
        notes: notes(&results),
        results,
    }
}

/// The configuration without what is each volume's own, and stands in its row.
fn shared(study: &Study) -> Configuration {
    let mut configuration = configuration(&study.plan);
    let device = &mut configuration.device;
    let is_set = |key: &str| study.settings.get(&format!("device.{key}")).is_some();
    device.data_blocks_per_die = None;
    device.logical_pages = None;
    device.dies = device.dies.filter(|_| is_set("dies"));
    device.channels = device.channels.filter(|_| is_set("channels"));
    device.blocks_per_die = device.blocks_per_die.filter(|_| is_set("blocks_per_die"));
    configuration
}

fn of_scheme(variant: &Variant<'_>, at: usize, input: &Input, rows: &[Row]) -> SchemeSummary {
    let own: Vec<&Row> = rows.iter().filter(|row| row.scheme == at).collect();
    let replayed: Vec<&Measured> = own
        .iter()
        .filter_map(|row| row.measured.as_ref().ok())
        .collect();
    let spread_of = |value: fn(&Measured) -> Option<f64>| {
        let pair = |of: &&Measured| Some((value(of)?, of.host_page_writes as f64));
        spread(&replayed.iter().filter_map(pair).collect::<Vec<_>>())
    };
    let uncollected = |of: &&&Measured| of.host_page_writes > 0 && of.erases == 0 && of.copies == 0;
    let failed = |row: &&Row| {
        let failure = row.measured.as_ref().err()?;
        Some(VolumeFailure {
            volume: input.volumes[row.volume].name.clone(),
            error: text_of(failure),
        })
    };
    SchemeSummary {
        scheme: variant.label.clone(),
        title: variant.scheme.info.title.into(),
        write_amplification: spread_of(|of| of.write_amplification),
        response_p99_us: spread_of(|of| of.response_p99_us),
        volumes_without_collection: replayed.iter().filter(uncollected).count() as u64,
        volumes_behind: replayed.iter().filter(|of| of.behind_s.is_some()).count() as u64,
        failures: own.iter().filter_map(failed).collect(),
    }
}

/// How a value spreads, from pairs of a value and its weight.
fn spread(pairs: &[(f64, f64)]) -> Spread {
    let mut values: Vec<f64> = pairs.iter().map(|(value, _)| *value).collect();
    values.sort_by(f64::total_cmp);
    let n = values.len();
    // The `ceil(share * n)`-th smallest value; the smallest for 0.
    let at = |share: f64| {
        let rank = (share * n as f64).ceil() as usize;
        values.get(rank.max(1) - 1).copied()
    };
    let mean = |weight: &dyn Fn(f64) -> f64| {
        let weights: f64 = pairs.iter().map(|(_, w)| weight(*w)).sum();
        let sum: f64 = pairs.iter().map(|(value, w)| value * weight(*w)).sum();
        (weights > 0.0).then(|| sum / weights)
    };
    let every = n.div_ceil(POINTS_MAX).max(1);
    let steps = values.iter().enumerate();
    let steps = steps.filter(|(i, _)| (n - 1 - i).is_multiple_of(every));
    Spread {
        volumes: n as u64,
        min: at(0.0),
        p5: at(0.05),
        p25: at(0.25),
        median: at(0.5),
        p75: at(0.75),
        p95: at(0.95),
        max: at(1.0),
        mean: mean(&|_| 1.0),
        mean_weighted_by_host_writes: mean(&|weight| weight),
        cumulative: steps
            .map(|(i, &value)| (value, (i + 1) as f64 / n as f64))
            .collect(),
    }
}

/// The summary for people.
pub fn text(summary: &FleetDocument) -> String {
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
    let mut add = |name: &str, of: fn(&SchemeSummary) -> &Spread, format: fn(f64) -> String| {
        for scheme in &summary.results {
            let head = [name.to_string(), scheme.scheme.clone()];
            table.row(head.into_iter().chain(cells(of(scheme), format)));
        }
    };
    add("write amplification", |s| &s.write_amplification, short);
    add("p99 response time", |s| &s.response_p99_us, micros);
    let notes = summary.notes.iter().map(|note| format!("\nNote: {note}\n"));
    format!(
        "\n{}volumes: those that have the value (write amplification: those written to); weighted: mean by pages that the host wrote\n{}\n",
        table.render(),
        notes.collect::<String>()
    )
}

fn cells(of: &Spread, format: fn(f64) -> String) -> Vec<String> {
    let values = [
        of.min,
        of.p5,
        of.p25,
        of.median,
        of.p75,
        of.p95,
        of.max,
        of.mean,
        of.mean_weighted_by_host_writes,
    ];
    let text = |value: Option<f64>| value.map_or_else(|| "-".to_string(), format);
    [vec![count(of.volumes)], values.map(text).into()].concat()
}

/// What a reader should not have to find out.
fn notes(schemes: &[SchemeSummary]) -> Vec<String> {
    let volumes = |n: u64| some(n, "volume");
    let mut notes = Vec::new();
    for scheme in schemes {
        let key = &scheme.scheme;
        if scheme.volumes_without_collection > 0 {
            notes.push(format!(
                "{key}: {} saw no garbage collection: what they write fits what was erased at the start. \
                 --set run.ageing=overwrite:1 makes it happen.",
                volumes(scheme.volumes_without_collection)
            ));
        }
        if scheme.volumes_behind > 0 {
            notes.push(format!(
                "{key}: {} did not keep up with the arrivals (column {BEHIND}): their response times measure the \
                 queue. More dies, --set host.speed=0.5 or --set host.arrivals=closed go below saturation.",
                volumes(scheme.volumes_behind)
            ));
        }
        if let Some(first) = scheme.failures.first() {
            let why = first.error.lines().next().unwrap_or_default();
            notes.push(format!(
                "{key}: {} could not be replayed, the first: {}: {why}",
                volumes(scheme.failures.len() as u64),
                first.volume
            ));
        }
    }
    notes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_values_of_volumes_and_means_know_weights() {
        let pairs: Vec<(f64, f64)> = (1..=20).rev().map(|i| (f64::from(i), 0.0)).collect();
        let of = spread(&pairs);
        let at = [of.min, of.p5, of.p25, of.median, of.p75, of.p95, of.max];
        assert_eq!(at, [1.0, 1.0, 5.0, 10.0, 15.0, 19.0, 20.0].map(Some));
        assert_eq!(
            (of.mean, of.mean_weighted_by_host_writes),
            (Some(10.5), None)
        );
        let of = spread(&[(1.0, 3.0), (5.0, 1.0)]);
        assert_eq!(
            (of.mean, of.mean_weighted_by_host_writes),
            (Some(3.0), Some(2.0))
        );
    }

    #[test]
    fn nothing_has_no_distribution() {
        let none = spread(&[]);
        assert_eq!((none.volumes, none.median), (0, None));
        assert_eq!(none.cumulative, []);
    }

    #[test]
    fn a_long_distribution_keeps_its_end() {
        let pairs: Vec<(f64, f64)> = (0..5000).map(|i| (f64::from(i), 1.0)).collect();
        let steps = spread(&pairs).cumulative;
        assert!(steps.len() <= POINTS_MAX);
        assert_eq!(steps.last(), Some(&(4999.0, 1.0)));
    }
}
