//! Points for InfluxDB in its line protocol.

use super::{ExportError, Selection, text_of};
use crate::error::StoreError;
use crate::model::{Run, SeriesRow, Values};
use crate::store::Store;
use std::io::Write;
use std::time::{Duration, SystemTime};

/// A point for each run: its figures as fields.
pub const RUN_MEASUREMENT: &str = "pushlab_run";
/// A point for each second of a run: the columns of [`SECONDS_SERIES`] as fields.
pub const SECOND_MEASUREMENT: &str = "pushlab_second";
/// Name of the series that has a row for each second of its run, from the first.
pub const SECONDS_SERIES: &str = "seconds";

const FORMAT: &str = "line protocol";
const SECOND: Duration = Duration::from_secs(1);

/// Writes a point for each selected run that has figures, and one for each second of it, and returns the number of
/// points.
///
/// Tags are the cell's columns, `repeat` and `counts`; what is unknown has no tag. A figure's field has the metric's
/// name and is a float; a figure that has a bound has a second field `METRIC_bound`. A run's instant is its start,
/// and its n-th second comes n - 1 seconds later. Selecting metrics leaves the seconds out.
///
/// # Errors
/// [`ExportError::Name`] for a name with a backslash, which readers of the protocol understand differently;
/// [`crate::StoreError::NotFound`] for a campaign that is not there; those of the store and of `out`.
pub fn line_protocol(
    store: &Store,
    campaigns: &[i64],
    selection: &Selection,
    out: &mut dyn Write,
) -> Result<u64, ExportError> {
    store.read(|database| {
        let mut points = 0;
        for &campaign in campaigns {
            for place in database.places(campaign)? {
                let run = database.run(campaign, place)?;
                if selection.has_cell(&run.cell) && selection.has_run(run.counting()) {
                    points += put_run(&run, selection, out)?;
                }
            }
        }
        out.flush()?;
        Ok(points)
    })
}

fn put_run(run: &Run, selection: &Selection, out: &mut dyn Write) -> Result<u64, ExportError> {
    let start = humantime::parse_rfc3339(&run.started_at).ok();
    let start = start.and_then(|start| start.duration_since(SystemTime::UNIX_EPOCH).ok());
    let too_old = || StoreError::Invalid { what: format!("run {} began before 1970: {}", run.place, run.started_at) };
    let start = start.ok_or_else(too_old)?;
    let tags = tags(run)?;
    let mut fields = Vec::new();
    for (metric, figure) in run.figures.iter().filter(|(metric, _)| selection.has_metric(metric)) {
        fields.push(format!("{}={}", escaped(metric)?, text_of(figure.value)));
        if let Some(bound) = figure.bound {
            fields.push(format!("{}_bound=\"{bound}\"", escaped(metric)?));
        }
    }
    let mut points = put_point(RUN_MEASUREMENT, &tags, &fields, start, out)?;
    let seconds = run.series.iter().find(|series| series.name == SECONDS_SERIES);
    if let Some(seconds) = seconds.filter(|_| selection.metrics.is_none()) {
        let rows = seconds.columns.first().map_or(0, |column| column.values.len());
        for row in 0..rows {
            let at = start + SECOND * u32::try_from(row).unwrap_or(u32::MAX);
            points += put_point(SECOND_MEASUREMENT, &tags, &second_fields(seconds, row)?, at, out)?;
        }
    }
    Ok(points)
}

fn tags(run: &Run) -> Result<String, ExportError> {
    let cell = &run.cell;
    let number = |number: Option<u32>| number.map_or_else(String::new, |number| number.to_string());
    let tags = [
        ("experiment", cell.experiment.as_str()),
        ("subject", &cell.subject),
        ("transport", &cell.transport),
        ("policy", &cell.policy),
        ("variant", cell.variant.as_deref().unwrap_or_default()),
        ("network", cell.network.as_deref().unwrap_or_default()),
        ("clients", &cell.clients.to_string()),
        ("deliveries_per_s", &number(cell.deliveries_per_s)),
        ("payload_bytes", &number(cell.payload_bytes)),
        ("repeat", &run.repeat.to_string()),
        ("counts", run.counting().name()),
    ];
    let mut text = String::new();
    // The protocol has no empty tags.
    for (name, value) in tags.iter().filter(|(_, value)| !value.is_empty()) {
        text.push_str(&format!(",{name}={}", escaped(value)?));
    }
    Ok(text)
}

fn second_fields(seconds: &SeriesRow, row: usize) -> Result<Vec<String>, ExportError> {
    let mut fields = Vec::new();
    for column in &seconds.columns {
        let value = match &column.values {
            Values::Integers(values) => values[row].map(|value| format!("{value}i")),
            Values::Numbers(values) => values[row].map(text_of),
        };
        if let Some(value) = value {
            fields.push(format!("{}={value}", escaped(&column.name)?));
        }
    }
    Ok(fields)
}

/// A point without fields is none.
fn put_point(
    measurement: &str,
    tags: &str,
    fields: &[String],
    at: Duration,
    out: &mut dyn Write,
) -> Result<u64, ExportError> {
    if fields.is_empty() {
        return Ok(0);
    }
    writeln!(out, "{measurement}{tags} {} {}", fields.join(","), at.as_nanos())?;
    Ok(1)
}

/// A tag's value or a field's name. Names have no line ends, which the protocol could not hold.
fn escaped(name: &str) -> Result<String, ExportError> {
    if name.contains('\\') {
        let why = "readers of it understand a backslash differently";
        return Err(ExportError::Name { name: name.to_owned(), format: FORMAT, why });
    }
    let mut text = String::with_capacity(name.len());
    for letter in name.chars() {
        if matches!(letter, ',' | '=' | ' ') {
            text.push('\\');
        }
        text.push(letter);
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_escaped_as_the_protocol_has_it() {
        assert_eq!(escaped("a b,c=d\"é").unwrap(), "a\\ b\\,c\\=d\"é");
        assert!(matches!(escaped("a\\b"), Err(ExportError::Name { .. })));
    }
}
