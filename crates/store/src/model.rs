//! What is stored: campaigns, and runs with everything measured in them.

use crate::error::StoreError;
use pushlab_stats::{Histogram, Warning};
use pushlab_wire::transport::Transport;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;

/// Longest name of anything, bytes. A name is a line of a table and part of a tag in exports.
pub const NAME_BYTES_MAX: usize = 200;

/// Where a campaign's runs come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// Measured by the lab that owns this store; only these can be resumed.
    Measured,
    /// Copied from a publication.
    Published,
    /// Measured elsewhere and brought here as a file.
    Imported,
}

impl Kind {
    /// Every kind.
    pub const ALL: [Self; 3] = [Self::Measured, Self::Published, Self::Imported];

    /// The name used in files and tables.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Measured => "measured",
            Self::Published => "published",
            Self::Imported => "imported",
        }
    }

    /// The kind of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }
}

/// A campaign that begins.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NewCampaign {
    /// Name; need not be new.
    pub name: String,
    /// Where its runs come from.
    pub kind: Kind,
    /// When it began, RFC 3339, UTC (ending in `Z`).
    pub created_at: String,
    /// Seed of the order of its runs.
    pub seed: u64,
    /// Runs planned.
    pub planned: u32,
    /// Environment as names and values, in an order for people.
    pub facts: Vec<(String, String)>,
    /// What its owner needs to go on and to report: campaigns, command, versions, machine.
    pub header: serde_json::Value,
}

/// A line of the list of campaigns.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CampaignRow {
    /// Number, given once.
    pub id: i64,
    /// Name.
    pub name: String,
    /// Where its runs come from.
    pub kind: Kind,
    /// When it began, RFC 3339, UTC.
    pub created_at: String,
    /// Whether its owner called it complete.
    pub is_complete: bool,
    /// Runs planned.
    pub planned: u32,
    /// Runs stored: valid, void and failed.
    pub done: u32,
    /// Runs whose figures count.
    pub valid: u32,
    /// Runs that a warning takes out of the figures.
    pub void: u32,
    /// Runs that did not come to their end.
    pub failed: u32,
    /// A person's note.
    pub note: Option<String>,
}

/// A campaign without its runs.
#[derive(Debug, Clone, PartialEq)]
pub struct Campaign {
    /// Its line in the list.
    pub row: CampaignRow,
    /// Seed of the order of its runs.
    pub seed: u64,
    /// Environment, in the order given.
    pub facts: Vec<(String, String)>,
    /// As it was given.
    pub header: serde_json::Value,
}

/// One point of a campaign's matrix.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cell {
    /// Name of the experiment in its file; a campaign may hold several.
    pub experiment: String,
    /// Name of the subject.
    pub subject: String,
    /// Name of the transport, one of [`Transport::ALL`].
    pub transport: String,
    /// What the subject does with slow subscribers; empty where that is not known.
    pub policy: String,
    /// What else distinguishes the cell, never `Some("")`.
    pub variant: Option<String>,
    /// Name of the network's profile between clients and subject, never `Some("")`; `None` without a link.
    pub network: Option<String>,
    /// Virtual clients.
    pub clients: u32,
    /// Deliveries a second, where the cell fixes them.
    pub deliveries_per_s: Option<u32>,
    /// Payload, bytes, where the cell fixes it.
    pub payload_bytes: Option<u32>,
}

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "kebab-case")]
pub enum Outcome {
    /// It came to its end; warnings may still make it void.
    Completed,
    /// It did not.
    Failed {
        /// What, where, and what to try.
        reason: String,
        /// The phase in which it happened, if one had begun.
        phase: Option<String>,
    },
}

/// Whether the figures of a run count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Counts {
    /// They do.
    Yes,
    /// A warning takes them out.
    Void,
    /// The run did not come to its end.
    Failed,
}

impl Counts {
    /// Every value.
    pub const ALL: [Self; 3] = [Self::Yes, Self::Void, Self::Failed];

    /// The name used in files and tables.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Yes => "yes",
            Self::Void => "void",
            Self::Failed => "failed",
        }
    }

    /// The value of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|counts| counts.name() == name)
    }
}

/// How a figure is meant that is less than a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Bound {
    /// Read off a chart, or rounded.
    About,
    /// The figure was below the value.
    Below,
    /// The value is the middle of a stated range.
    Range,
    /// The value is the largest that was seen.
    Max,
    /// The figure was at least the value: what measured it reached its limit first.
    Min,
}

impl Bound {
    /// Every bound.
    pub const ALL: [Self; 5] = [Self::About, Self::Below, Self::Range, Self::Max, Self::Min];

    /// The name used in files and tables.
    pub const fn name(self) -> &'static str {
        match self {
            Self::About => "about",
            Self::Below => "below",
            Self::Range => "range",
            Self::Max => "max",
            Self::Min => "min",
        }
    }

    /// The bound of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|bound| bound.name() == name)
    }
}

/// One figure of one run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MetricValue {
    /// The value, finite; SQLite keeps no sign of zero. What was not measured is left out of the map.
    pub value: f64,
    /// How it is meant; `None` for what was measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bound: Option<Bound>,
    /// The unit, where the metric is none of ours and so does not tell it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unit: Option<String>,
}

impl From<f64> for MetricValue {
    fn from(value: f64) -> Self {
        Self { value, bound: None, unit: None }
    }
}

/// A phase of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PhaseRow {
    /// Name.
    pub name: String,
    /// Begin, ns of the run's clock.
    pub start_ns: u64,
    /// End, ns of the run's clock.
    pub end_ns: u64,
}

/// A table of samples: columns of equal length.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SeriesRow {
    /// Name, unique in the run, such as `subject`, `seconds` or `counters`.
    pub name: String,
    /// Its columns.
    pub columns: Vec<Column>,
}

/// A column of a series.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Column {
    /// Name with its unit, such as `cpu_ns`.
    pub name: String,
    /// One for each row; `None` where nothing was measured.
    pub values: Values,
}

/// The values of a column.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Values {
    /// Whole numbers; whoever has `u64` checks that they are below 2⁶³.
    Integers(Vec<Option<i64>>),
    /// Other numbers, finite.
    Numbers(Vec<Option<f64>>),
}

impl Values {
    /// Rows.
    pub fn len(&self) -> usize {
        match self {
            Self::Integers(values) => values.len(),
            Self::Numbers(values) => values.len(),
        }
    }

    /// Whether there is no row.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// A try of a run that was not the last.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Attempt {
    /// When it began, RFC 3339, UTC (ending in `Z`).
    pub started_at: String,
    /// Wall-clock length, ms.
    pub took_ms: u64,
    /// A code: why it was tried again.
    pub reason: String,
    /// The same in numbers, for people.
    pub detail: String,
    /// Figures by metric, which count nowhere.
    pub figures: BTreeMap<String, f64>,
}

/// One run with all that was measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Run {
    /// Place in the planned order, from 1; unique in the campaign.
    pub place: u32,
    /// Which point of the matrix.
    pub cell: Cell,
    /// Which repetition of it, from 1.
    pub repeat: u32,
    /// Seed of everything random in it.
    pub seed: u64,
    /// When it began, RFC 3339, UTC (ending in `Z`).
    pub started_at: String,
    /// Wall-clock length, ms.
    pub took_ms: u64,
    /// How often it was tried.
    pub attempts: u32,
    /// The tries before the one that is kept, in their order; nothing where only their number is known.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub earlier: Vec<Attempt>,
    /// Whether it came to its end.
    pub outcome: Outcome,
    /// Why it is less certain than it looks.
    #[serde(alias = "doubts")]
    pub warnings: Vec<Warning>,
    /// Its phases, in their order.
    pub phases: Vec<PhaseRow>,
    /// Figures by metric.
    pub figures: BTreeMap<String, MetricValue>,
    /// Raw counts, each below 2⁶³.
    pub counts: BTreeMap<String, u64>,
    /// Distributions.
    pub histograms: BTreeMap<String, Histogram>,
    /// What was sampled while it ran.
    pub series: Vec<SeriesRow>,
    /// The rest of its owner's record.
    pub document: serde_json::Value,
}

impl Attempt {
    fn check(&self) -> Result<(), String> {
        check_instant(&self.started_at)?;
        check_name("reason", &self.reason)?;
        if i64::try_from(self.took_ms).is_err() {
            return Err(format!("took_ms of a try is {}, which is over 2^63 - 1", self.took_ms));
        }
        match self.figures.iter().find(|(_, value)| !value.is_finite()) {
            Some((metric, value)) => Err(format!("{metric} is {value}; leave out what was not measured")),
            None => Ok(()),
        }
    }
}

impl Run {
    /// Whether its figures count.
    pub fn counting(&self) -> Counts {
        match self.outcome {
            Outcome::Failed { .. } => Counts::Failed,
            Outcome::Completed if self.warnings.iter().any(Warning::is_void) => Counts::Void,
            Outcome::Completed => Counts::Yes,
        }
    }

    /// Refuses what could not be stored without loss.
    pub(crate) fn check(&self) -> Result<(), StoreError> {
        let at = |what: String| StoreError::Invalid { what: format!("run {}: {what}", self.place) };
        if self.place == 0 || self.repeat == 0 {
            return Err(at(format!("place {} or repeat {} is 0; both count from 1", self.place, self.repeat)));
        }
        check_instant(&self.started_at).map_err(at)?;
        self.earlier.iter().try_for_each(Attempt::check).map_err(at)?;
        self.cell.check().map_err(at)?;
        for (metric, figure) in &self.figures {
            check_name("metric", metric).map_err(at)?;
            if !figure.value.is_finite() {
                return Err(at(format!("{metric} is {}; leave out what was not measured", figure.value)));
            }
            figure.unit.as_deref().map_or(Ok(()), |unit| check_name("unit", unit)).map_err(at)?;
        }
        let counts = self.counts.iter().map(|(name, value)| ("count", name, *value));
        let times = self.phases.iter().map(|phase| ("phase", &phase.name, phase.start_ns.max(phase.end_ns)));
        for (what, name, value) in counts.chain(times).chain([("length of", &self.cell.subject, self.took_ms)]) {
            check_name(what, name).map_err(at)?;
            i64::try_from(value).map_err(|_| at(format!("{what} {name} is {value}, which is over 2^63 - 1")))?;
        }
        self.histograms.keys().try_for_each(|name| check_name("histogram", name)).map_err(at)?;
        for (index, series) in self.series.iter().enumerate() {
            series.check().map_err(at)?;
            if self.series[..index].iter().any(|other| other.name == series.name) {
                return Err(at(format!("two series are called {}", series.name)));
            }
        }
        Ok(())
    }
}

impl Cell {
    fn check(&self) -> Result<(), String> {
        check_name("experiment", &self.experiment)?;
        check_name("subject", &self.subject)?;
        if Transport::from_name(&self.transport).is_none() {
            return Err(unknown_transport(&self.transport));
        }
        if !self.policy.is_empty() {
            check_name("policy", &self.policy)?;
        }
        self.variant.as_deref().map_or(Ok(()), |variant| check_name("variant", variant))?;
        self.network.as_deref().map_or(Ok(()), |network| check_name("network", network))
    }
}

impl SeriesRow {
    fn check(&self) -> Result<(), String> {
        check_name("series", &self.name)?;
        for column in &self.columns {
            check_name("column", &column.name)?;
            let (rows, first) = (column.values.len(), self.columns[0].values.len());
            if rows != first {
                return Err(format!("column {} of series {} has {rows} rows, not {first}", column.name, self.name));
            }
            if let Values::Numbers(values) = &column.values
                && let Some(value) = values.iter().flatten().find(|value| !value.is_finite())
            {
                let what = format!("column {} of series {} has {value}", column.name, self.name);
                return Err(format!("{what}; leave out what was not measured"));
            }
        }
        Ok(())
    }
}

impl NewCampaign {
    pub(crate) fn check(&self) -> Result<(), StoreError> {
        let invalid = |what| StoreError::Invalid { what };
        check_name("experiment", &self.name).map_err(invalid)?;
        check_instant(&self.created_at).map_err(invalid)?;
        self.facts.iter().try_for_each(|(name, _)| check_name("fact", name)).map_err(invalid)
    }
}

/// What to say of a transport that is not in the table.
pub(crate) fn unknown_transport(name: &str) -> String {
    let known: Vec<&str> = Transport::ALL.into_iter().map(Transport::name).collect();
    format!("`{name}` is no transport; those are {}", known.join(", "))
}

pub(crate) fn check_name(what: &str, name: &str) -> Result<(), String> {
    if name.is_empty() || name.len() > NAME_BYTES_MAX || name.chars().any(char::is_control) {
        return Err(format!(
            "{what} cannot be {name:?}: a name has 1 to {NAME_BYTES_MAX} bytes and no control characters"
        ));
    }
    Ok(())
}

fn check_instant(text: &str) -> Result<(), String> {
    humantime::parse_rfc3339(text)
        .map(|_| ())
        .map_err(|_| format!("`{text}` is no instant in UTC by RFC 3339, such as 2024-05-01T12:00:00Z"))
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl fmt::Display for Bound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
