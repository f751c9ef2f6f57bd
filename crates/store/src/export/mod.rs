//! Exports: figures as a tidy table (CSV, Parquet), whole campaigns as JSON, points for InfluxDB.
//!
//! The tidy table has one value a row and the columns [`COLUMNS`], the same in CSV and Parquet.
//!
//! ```no_run
//! use pushlab_store::export::{self, Selection};
//! use std::path::Path;
//!
//! let store = pushlab_store::Store::open(&pushlab_store::Store::default_path()?)?;
//! let latest = store.find("compare")?.id;
//! export::to_file(Path::new("compare.csv"), |out| {
//!     export::csv(&store, &[latest], &Selection::default(), &|_metric| "ms", out)
//! })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod csv;
mod json;
mod line_protocol;
mod parquet;

pub use csv::csv;
pub(crate) use csv::unguarded;
pub use json::{JSON_FORMAT, JSON_VERSION, json};
pub use line_protocol::{RUN_MEASUREMENT, SECOND_MEASUREMENT, SECONDS_SERIES, line_protocol};
pub use parquet::parquet;

use crate::database::Database;
use crate::error::StoreError;
use crate::model::{Bound, Cell, Counts};
use pushlab_os::new_file::NewFile;
use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, BufWriter, Write as _};
use std::path::{Path, PathBuf};

/// The columns of the tidy table, in their order.
///
/// `experiment` is the name in the experiment's file ([`Cell::experiment`]), so stored campaigns that repeat one
/// another are told apart only by exporting each for itself. `bound` is empty for what was measured, and otherwise
/// `about`, `below`, `range` or `max`. `counts` is `yes`, `void` or `failed`.
pub const COLUMNS: [&str; 15] = [
    "experiment",
    "subject",
    "transport",
    "policy",
    "variant",
    "network",
    "clients",
    "deliveries_per_s",
    "payload_bytes",
    "repeat",
    "metric",
    "unit",
    "value",
    "bound",
    "counts",
];

/// The unit of a metric; empty for one that is unknown.
pub type Units<'a> = &'a dyn Fn(&str) -> &'static str;

/// Which figures to export; `None` selects all.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Selection {
    /// Names of metrics.
    pub metrics: Option<BTreeSet<String>>,
    /// Names of transports.
    pub transports: Option<BTreeSet<String>>,
    /// Names of subjects.
    pub subjects: Option<BTreeSet<String>>,
    /// Whether void and failed runs stay out.
    pub only_counting: bool,
}

/// Why an export did not come about. A plain file that was there before is as it was.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// The store could not be read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The output could not be written.
    #[error("cannot write the export: {0}")]
    Write(#[from] io::Error),
    /// The file could not be written.
    #[error("cannot write {}: {source}; free some space or name another file", .path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// The Parquet writer refused.
    #[error("cannot write Parquet: {0}")]
    Parquet(#[from] ::parquet::errors::ParquetError),
    /// A name that the format cannot hold.
    #[error("`{name}` cannot be written as {format}: {why}; export CSV, Parquet or JSON instead")]
    Name {
        /// The name.
        name: String,
        /// The format.
        format: &'static str,
        /// Why not.
        why: &'static str,
    },
}

/// Writes a file whole or not at all: beside it first, then renamed; what is no plain file, such as a pipe, is written
/// straight. `export` writes into the buffer it is given.
///
/// # Errors
/// [`ExportError::File`], and those of `export`.
pub fn to_file<T>(
    path: &Path,
    export: impl FnOnce(&mut BufWriter<File>) -> Result<T, ExportError>,
) -> Result<T, ExportError> {
    let at = |source| ExportError::File { path: path.to_owned(), source };
    let new = NewFile::named(path).map_err(at)?;
    let mut out = BufWriter::new(new.file().try_clone().map_err(at)?);
    let done = export(&mut out).map_err(|error| match error {
        ExportError::Write(source) => at(source),
        other => other,
    })?;
    out.flush().and_then(|()| new.finish()).map_err(at)?;
    Ok(done)
}

/// A row of the tidy table.
pub(crate) struct TidyRow {
    pub cell: Cell,
    pub repeat: u32,
    pub metric: String,
    /// `None` where the metric tells it.
    pub unit: Option<String>,
    pub value: f64,
    pub bound: Option<Bound>,
    pub counts: Counts,
}

impl TidyRow {
    pub fn unit<'a>(&'a self, units: Units<'_>) -> &'a str {
        self.unit.as_deref().unwrap_or_else(|| units(&self.metric))
    }
}

impl Selection {
    pub(crate) fn has_cell(&self, cell: &Cell) -> bool {
        has(&self.transports, &cell.transport) && has(&self.subjects, &cell.subject)
    }

    pub(crate) fn has_run(&self, counts: Counts) -> bool {
        counts == Counts::Yes || !self.only_counting
    }

    pub(crate) fn has_metric(&self, metric: &str) -> bool {
        has(&self.metrics, metric)
    }
}

fn has(names: &Option<BTreeSet<String>>, name: &str) -> bool {
    names.as_ref().is_none_or(|names| names.contains(name))
}

/// The shortest text that gives the same `f64` back, with an exponent where it would have many zeros.
pub(crate) fn text_of(value: f64) -> String {
    let is_plain = value == 0.0 || (1e-5..1e16).contains(&value.abs());
    if is_plain { value.to_string() } else { format!("{value:e}") }
}

/// Gives every selected figure of the campaigns to `take`, in the order of the campaigns, their runs and the
/// metrics' names. Returns how many there were.
pub(crate) fn each_figure(
    database: &Database<'_>,
    campaigns: &[i64],
    selection: &Selection,
    mut take: impl FnMut(TidyRow) -> Result<(), ExportError>,
) -> Result<u64, ExportError> {
    const FIGURES: &str = "
        SELECT experiment, subject, transport, policy, variant, network, clients, deliveries_per_s,
               payload_bytes, repeat, metric, unit, value, bound, counts
        FROM figures_by_cell WHERE experiment_id = ?1 AND place = ?2 ORDER BY metric";
    let mut rows = 0;
    for &campaign in campaigns {
        for place in database.places(campaign)? {
            let what = format!("run {place} of result {campaign}");
            let figures = database.all(FIGURES, (campaign, place), |row| {
                Ok(TidyRow {
                    cell: database.cell(row, 0)?,
                    repeat: database.get(row, 9)?,
                    metric: database.get(row, 10)?,
                    unit: database.get(row, 11)?,
                    value: database.get(row, 12)?,
                    bound: database.bound(row, 13, &what)?,
                    counts: database.counting(row, 14, &what)?,
                })
            })?;
            let selected = |row: &TidyRow| {
                selection.has_cell(&row.cell) && selection.has_run(row.counts) && selection.has_metric(&row.metric)
            };
            for row in figures.into_iter().filter(selected) {
                take(row)?;
                rows += 1;
            }
        }
    }
    Ok(rows)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn texts_of_numbers_give_the_same_numbers_back(value in any::<f64>().prop_filter("finite", |v| v.is_finite())) {
            prop_assert_eq!(text_of(value).parse::<f64>().unwrap().to_bits(), value.to_bits());
            prop_assert!(text_of(value).len() <= 24, "{}", text_of(value));
        }
    }

    #[test]
    fn texts_of_numbers_are_short() {
        let texts = [0.0, -0.0, 3.0, 0.1, 1e-5, 5e-324, 1e16, -1.5e300].map(text_of);
        assert_eq!(texts, ["0", "-0", "3", "0.1", "0.00001", "5e-324", "1e16", "-1.5e300"]);
    }
}
