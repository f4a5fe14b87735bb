//! Everything of a sweep in one value.

use floatgate_core::options::{Setting, Value};
use floatgate_sim::record::SCHEMA;
use floatgate_sim::record::sweep::{
    Extremes, SweepCell, SweepDevice, SweepDocument, SweepFigures, SweptScheme, VariedKey,
};

use super::cases::Case;
use super::closed_form;
use super::devices;
use super::play::{Cell, Played};
use crate::PROGRAM;
use crate::commands::study::configuration;
use crate::commands::variant::Variant;
use crate::config::vary::Axis;
use crate::table::{count, some};
use crate::traces::Decoded;

/// The document of a sweep that has come to its end.
pub fn of(
    axes: &[Axis],
    cases: &[Case],
    traces: &[Decoded],
    cells: &[Cell<'_>],
    played: &[Played],
    chosen: &[Variant<'_>],
) -> SweepDocument {
    let varied = axes.iter().map(|axis| VariedKey {
        key: axis.key.clone(),
        values: (0..axis.count()).map(|i| axis.value(i)).collect(),
    });
    let first = cases.iter().find_map(|case| case.plan.as_ref().ok());
    let figures: Vec<&SweepFigures> = played.iter().filter_map(|p| p.figures.as_ref()).collect();
    let notes = notes(&figures).into_iter().chain(devices::notes(cases));
    let cell = |(cell, played): (&Cell<'_>, &Played)| SweepCell {
        varied: cell.case.varied(axes),
        trace: traces[cell.case.trace].about.name.clone(),
        scheme: cell.variant.label.clone(),
        device: device(cell),
        figures: played.figures,
        result: played.result.clone(),
    };
    let cells: Vec<SweepCell> = cells.iter().zip(played).map(cell).collect();
    SweepDocument {
        schema: SCHEMA,
        program: PROGRAM.into(),
        traces: traces.iter().map(|trace| trace.about.record()).collect(),
        device: devices::describe(cases),
        configuration: first.map(configuration),
        notes: notes.collect(),
        varied: varied.collect(),
        results: chosen
            .iter()
            .map(|variant| summary(variant, &cells))
            .collect(),
        cells,
    }
}

/// The same without the records of the cells that ran: a report has no use for them.
pub fn for_report(document: &SweepDocument) -> SweepDocument {
    let without = |cell: &SweepCell| SweepCell {
        result: cell
            .result
            .clone()
            .filter(|result| result.record().is_none()),
        ..cell.clone()
    };
    SweepDocument {
        cells: document.cells.iter().map(without).collect(),
        ..document.clone()
    }
}

fn summary(variant: &Variant<'_>, cells: &[SweepCell]) -> SweptScheme {
    let own: Vec<&SweepCell> = cells
        .iter()
        .filter(|cell| cell.scheme == variant.label)
        .collect();
    let figures: Vec<&SweepFigures> = own.iter().filter_map(|c| c.figures.as_ref()).collect();
    let over = |of: fn(&SweepFigures) -> Option<f64>| {
        Extremes::of(figures.iter().filter_map(|figures| of(figures)))
    };
    SweptScheme {
        scheme: variant.label.clone(),
        title: variant.scheme.info.title.into(),
        ran: figures.len() as u64,
        failed: (own.len() - figures.len()) as u64,
        write_amplification: over(|figures| figures.write_amplification),
        response_mean_us: over(|figures| figures.response_mean_us),
    }
}

/// What the cell's device was to be, and what it was.
fn device(cell: &Cell<'_>) -> Option<SweepDevice> {
    let (plan, config) = (cell.case.plan.as_ref().ok()?, cell.config.as_ref()?);
    let (device, part, settings) = (&plan.device, &plan.device.part, &cell.case.settings);
    let data = plan.data_blocks_per_die();
    let page_bytes = u64::from(part.page_bytes);
    let asked_pages = settings.whole("device.logical_pages");
    let asked_bytes = settings.whole("device.capacity");
    let option = cell.variant.scheme.info.filled_from(Setting::LogBlocks);
    let log_blocks = option.and_then(|option| {
        let mut options = config.options.iter();
        options.find(|(key, _)| key == option.key)
    });
    let given = cell.variant.settings.options_of(cell.variant.scheme);
    let asked_for_share = option.filter(|option| given.iter().all(|(key, _)| key != option.key));
    Some(SweepDevice {
        asked_bytes: asked_bytes.or(asked_pages.map(|pages| pages * page_bytes)),
        asked_spare_percent: plan.blocks_from_share.then_some(plan.spare_percent),
        asked_log_percent: asked_for_share.map(|_| plan.log_percent),
        logical_bytes: device.logical_pages * page_bytes,
        page_bytes: part.page_bytes,
        pages_per_block: part.pages_per_block,
        dies: device.dies,
        channels: device.channels,
        blocks_per_die: device.blocks,
        data_blocks_per_die: data,
        spare_percent: (f64::from(device.blocks) / data.max(1) as f64 - 1.0) * 100.0,
        log_blocks: log_blocks.and_then(|(_, value)| match value {
            Value::Int(n) => u64::try_from(*n).ok(),
            _ => None,
        }),
        uniform_write_amplification: closed_form::uniform(cell.variant.scheme, config),
    })
}

/// Remarks that a reader should not have to find out.
fn notes(figures: &[&SweepFigures]) -> Vec<String> {
    let all = some(figures.len() as u64, "cell");
    let those = |is: fn(&SweepFigures) -> bool| {
        let n = figures.iter().filter(|figures| is(figures)).count();
        (n > 0).then(|| count(n as u64))
    };
    let mut notes = Vec::new();
    if let Some(n) = those(|f| f.erases == 0 && f.copies == 0) {
        notes.push(format!(
            "no garbage collection happened in {n} of {all}. A longer trace, a smaller device or --set run.ageing=overwrite:1 makes it happen."
        ));
    }
    if let Some(n) = those(|f| f.behind_s.is_some()) {
        notes.push(format!(
            "{n} of {all} did not keep up with the arrivals: their response times measure the queue. More dies, --set host.speed=0.5, or a closed loop (--set host.arrivals=closed) compare below saturation."
        ));
    }
    if let Some(n) = those(|f| f.unsettled_steps > 0) {
        notes.push(format!(
            "ageing step settle gave up in {n} of {all}: write amplification still changed by 1 % a device write"
        ));
    }
    notes
}
