//! What is measured of a subject over a transport, before it is ranked.

use super::columns::{COLUMNS, ColumnKind, Kind, MARKS};
use crate::report::quantiles::lacking_or_failed;
use crate::report::results::{ResultRuns, series_of};
use crate::report::run_values::RunValues;
use crate::report::samples::values;
use pushlab_experiment::Experiment;
use pushlab_experiment::metric::Metric;
use pushlab_report::{Lacking, Origin};
use pushlab_stats::WarningCode;

/// A row before it is ranked.
pub struct Entry<'a> {
    pub tag: String,
    pub subject: String,
    pub transport: String,
    /// The runs of its cells, by experiment and variant.
    pub cells: Vec<((&'a str, String), Vec<&'a RunValues>)>,
}

impl Entry<'_> {
    /// The runs that a column takes its figure from.
    pub fn runs(&self, column: &Column<'_>) -> Option<&[&RunValues]> {
        self.measured(&column.source.name, column.variant, column.kind.metric)
    }

    /// The runs of an experiment and variant, if one of them has a value of this metric.
    pub fn measured(&self, experiment: &str, variant: &str, metric: &str) -> Option<&[&RunValues]> {
        self.cell(experiment, variant).filter(|runs| !values(runs, metric).is_empty())
    }

    fn cell(&self, experiment: &str, variant: &str) -> Option<&[&RunValues]> {
        let is_it = |known: &(&str, String)| (known.0, &*known.1) == (experiment, variant);
        self.cells.iter().find(|(known, _)| is_it(known)).map(|(_, runs)| runs.as_slice())
    }

    /// Whether a column has its figure, or says why there is none.
    pub fn answers(&self, column: &Column<'_>) -> bool {
        self.runs(column).is_some() || self.lacking(column).is_some()
    }

    /// The id of a column and why it has no figure there, though it was tried.
    pub fn lacking(&self, column: &Column<'_>) -> Option<(String, Lacking)> {
        let runs = self.cell(&column.source.name, column.variant)?;
        Some((column.id.clone(), lacking_or_failed(runs, column.kind.metric)?))
    }

    /// The warnings that its figures are marked with, in the order of [`MARKS`]. Runs that do not count raise none.
    pub fn marks(&self) -> Vec<WarningCode> {
        MARKS.iter().map(|(code, _)| *code).filter(|code| self.raises(*code)).collect()
    }

    /// Whether a run behind its figures raises a warning.
    fn raises(&self, code: WarningCode) -> bool {
        self.cells.iter().any(|(_, runs)| raise(runs, code))
    }

    /// Whether a run behind its figure in a column raises a warning.
    pub fn raises_in(&self, column: &Column<'_>, code: WarningCode) -> bool {
        self.runs(column).is_some_and(|runs| raise(runs, code))
    }

    /// Its subject, told apart from those of other results.
    pub fn name(&self) -> String {
        if self.tag.is_empty() { self.subject.clone() } else { format!("{} · {}", self.subject, self.tag) }
    }

    /// Why it has no figure.
    pub fn reason(&self) -> String {
        let runs = || self.cells.iter().flat_map(|(_, runs)| runs);
        let failure = runs().find_map(|run| run.failure.clone());
        let warning =
            || runs().flat_map(|run| &run.warnings).find(|d| d.is_void()).map(|d| format!("{}: {}", d.code, d.detail));
        let why = failure.or_else(warning).unwrap_or_else(|| "it has none of these figures".to_owned());
        format!("{}: no run counts; {why}", self.transport)
    }
}

fn raise(runs: &[&RunValues], code: WarningCode) -> bool {
    let mut counting = runs.iter().filter(|run| run.counts());
    counting.any(|run| run.warnings.iter().any(|warning| warning.code == code))
}

/// A column of a table: all of its figures are of one experiment and variant.
pub struct Column<'a> {
    /// Unique in the table.
    pub id: String,
    pub kind: &'static ColumnKind,
    pub metric: &'static Metric,
    pub source: &'a Experiment,
    /// Empty if the experiment has none.
    pub variant: &'a str,
}

/// The columns for which these entries have figures. A metric takes them from the first kind of experiment that has any:
/// one column for each such experiment and variant. The id of the first is the metric's name.
pub fn columns<'a>(asking: &[&'a Experiment], entries: &[Entry<'_>]) -> Vec<Column<'a>> {
    let of_kind = |kind: &'static ColumnKind, wanted: Kind| -> Vec<Column<'a>> {
        let own = asking.iter().copied().filter(|experiment| Kind::of(experiment) == wanted);
        let places = own.flat_map(|source| {
            let none = source.variants.is_empty().then_some("");
            source.variants.iter().map(|variant| &*variant.name).chain(none).map(move |variant| (source, variant))
        });
        let is_measured = |(source, variant): &(&Experiment, &str)| {
            entries.iter().any(|entry| entry.measured(&source.name, variant, kind.metric).is_some())
        };
        let column = |(at, (source, variant)): (usize, (&'a Experiment, &'a str))| {
            let id = if at == 0 { String::new() } else { format!(" {} {variant}", source.name) };
            let id = format!("{}{}", kind.metric, id.trim_end());
            Some(Column { id, kind, metric: Metric::find(kind.metric)?, source, variant })
        };
        places.filter(is_measured).enumerate().filter_map(column).collect()
    };
    let of = |kind: &'static ColumnKind| {
        let mut kinds = kind.from.iter().map(|wanted| of_kind(kind, *wanted));
        kinds.find(|columns| !columns.is_empty()).unwrap_or_default()
    };
    COLUMNS.iter().flat_map(of).collect()
}

/// What the experiments measured that ask for the table.
pub fn entries<'a>(asking: &[&'a Experiment], results: &'a [ResultRuns]) -> Vec<Entry<'a>> {
    let mut entries: Vec<Entry<'a>> = Vec::new();
    for experiment in asking {
        for series in series_of(experiment, results, &[]) {
            let Some((_, runs)) = series.cells.last_key_value().filter(|_| series.origin == Origin::Measured) else {
                continue;
            };
            let is_same = |e: &&mut Entry<'_>| {
                (&e.tag, &e.subject, &e.transport) == (&series.tag, &series.subject, &series.transport)
            };
            match entries.iter_mut().find(is_same) {
                Some(entry) if entry.cell(&experiment.name, &series.variant).is_some() => {}
                Some(entry) => entry.cells.push(((&experiment.name, series.variant), runs.clone())),
                None => entries.push(Entry {
                    tag: series.tag,
                    subject: series.subject,
                    transport: series.transport,
                    cells: vec![((&experiment.name, series.variant), runs.clone())],
                }),
            }
        }
    }
    entries
}
