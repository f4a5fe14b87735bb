//! The time series as a file. `docs/series.md` defines every column.

use std::path::Path;

use floatgate_trace::TraceError;
use floatgate_trace::columns::{Column, Kind, NONE, TableSummary, TableWriter};

use crate::record::Series;

const fn column(name: &'static str, kind: Kind) -> Column {
    Column { name, kind }
}

/// The columns of a time series.
pub const COLUMNS: &[Column] = &[
    column("requests", Kind::Rising),
    column("time_s", Kind::Real),
    column("response_mean_us", Kind::Real),
    column("response_p99_us", Kind::Real),
    column("response_p99_9_us", Kind::Real),
    column("response_max_us", Kind::Real),
    column("backlog", Kind::Number),
    column("backlog_max", Kind::Number),
    column("flushes", Kind::Rising),
    column("flush_max_us", Kind::Real),
    column("read_bytes", Kind::Rising),
    column("write_bytes", Kind::Rising),
    column("die_utilisation", Kind::Real),
    column("die_utilisation_max", Kind::Real),
    column("channel_utilisation", Kind::Real),
    column("channel_utilisation_max", Kind::Real),
    column("host_programs", Kind::Rising),
    column("programs", Kind::Rising),
    column("erases", Kind::Rising),
    column("merges_switch", Kind::Rising),
    column("merges_partial", Kind::Rising),
    column("merges_full", Kind::Rising),
    column("merges_dead", Kind::Rising),
    column("merges_other", Kind::Rising),
];

/// Starts a file: Parquet, or CSV by the ending of its name.
///
/// # Errors
/// If the name ends in neither, or the file cannot be made.
pub fn create(path: &Path) -> Result<TableWriter, TraceError> {
    TableWriter::create(path, COLUMNS)
}

/// The cells of each sample, in the order of [`COLUMNS`].
pub fn rows(series: &Series) -> impl Iterator<Item = [u64; COLUMNS.len()]> {
    let s = series;
    let sparse = |x: Option<f64>| x.map_or(NONE, f64::to_bits);
    (0..s.requests.len()).map(move |i| {
        [
            s.requests[i],
            f64::to_bits(s.time_s[i]),
            sparse(s.response_mean_us[i]),
            sparse(s.response_p99_us[i]),
            sparse(s.response_p99_9_us[i]),
            f64::to_bits(s.response_max_us[i]),
            s.backlog[i],
            s.backlog_max[i],
            s.flushes[i],
            f64::to_bits(s.flush_max_us[i]),
            s.read_bytes[i],
            s.write_bytes[i],
            sparse(s.die_utilisation[i]),
            sparse(s.die_utilisation_max[i]),
            sparse(s.channel_utilisation[i]),
            sparse(s.channel_utilisation_max[i]),
            s.host_programs[i],
            s.programs[i],
            s.erases[i],
            s.merges_switch[i],
            s.merges_partial[i],
            s.merges_full[i],
            s.merges_dead[i],
            s.merges_other[i],
        ]
    })
}

/// Writes a time series, a row a sample, and ends the file. Values of the scheme's own, whose names are not known
/// beforehand, are left out.
///
/// # Errors
/// If it cannot be written.
pub fn write(mut table: TableWriter, series: &Series) -> Result<TableSummary, TraceError> {
    rows(series).try_for_each(|row| table.row(&row))?;
    table.finish()
}
