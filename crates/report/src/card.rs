//! The scorecard: what is compared, by which quantities, and what to choose.

use super::estimate::{Estimate, Lacking};
use pushlab_experiment::Workload;
use pushlab_experiment::metric::Better;
use pushlab_stats::best::Against;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Everything that is compared, judged row by row against the best of the row.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Scorecard {
    /// What is compared, in the order of the experiments.
    pub options: Vec<CardOption>,
    /// By which quantities.
    pub rows: Vec<CardRow>,
    /// The same without the options that are too late, for those kinds of application for which that matters.
    #[serde(default)]
    pub narrowed: Vec<NarrowedCard>,
    /// What to choose for each kind of application.
    pub advice: Vec<Advice>,
    /// Sentences on what was not decided, and what could not be measured.
    pub notes: Vec<String>,
}

/// A card for kinds of application to which some options bring messages too late: these are judged no more, and the
/// others against the best of themselves.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct NarrowedCard {
    /// Which kinds.
    pub workloads: Vec<Workload>,
    /// Keys of the options that are too late.
    pub late: Vec<String>,
    /// The quantities that bear on these kinds, with a cell for each option of the whole card; null for those that are too
    /// late. Conclusions hold together at 95 %, apart from those of the whole card.
    pub rows: Vec<CardRow>,
}

/// Something that can be chosen: a transport, over a version of HTTP, on a server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CardOption {
    /// Unique on the card.
    pub key: String,
    /// For people: `websocket`, or `sse · http2`.
    pub label: String,
    /// The subject's name.
    pub subject: String,
    /// Transport name.
    pub transport: String,
    /// The variant, or empty.
    pub variant: String,
}

/// A quantity, by which all options are judged.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CardRow {
    /// For people, in a few words: `Latency, 4G`.
    pub title: String,
    /// What else has to be known of it; may be empty.
    pub note: String,
    /// When it decides, as in "if clients send often"; may be empty.
    #[serde(default)]
    pub when: String,
    /// The metric's name.
    pub metric: String,
    /// Its unit.
    pub unit: String,
    /// What is better.
    pub better: Better,
    /// Name of the experiment that measured it.
    pub experiment: String,
    /// Difference that does not matter, per cent.
    pub margin_percent: f64,
    /// Whose choice it bears on.
    pub workloads: Vec<Workload>,
    /// Whether the row only says what works.
    #[serde(default)]
    pub works: bool,
    /// One for each option; null where nothing was measured.
    pub cells: Vec<Option<CardCell>>,
    /// Why options do not work here, by their keys: they come after all others.
    #[serde(default)]
    pub failures: BTreeMap<String, String>,
    /// Why options that were measured have no figure here, by their keys. What is not reached comes after all figures;
    /// of the others nothing is known.
    #[serde(default)]
    pub lacking: BTreeMap<String, Lacking>,
}

impl CardRow {
    /// Whether it is a quantity that bears on what to choose for such an application: where nobody has a figure it speaks
    /// for none of the options.
    pub fn bears_on(&self, workload: Workload) -> bool {
        !self.works && self.workloads.contains(&workload) && self.cells.iter().any(Option::is_some)
    }
}

impl Scorecard {
    /// The quantities that bear on what to choose for such an application, without the options that are too late for it.
    pub fn quantities(&self, workload: Workload) -> Vec<&CardRow> {
        let narrowed = self.narrowed.iter().find(|card| card.workloads.contains(&workload));
        let rows = narrowed.map_or(&self.rows, |card| &card.rows);
        rows.iter().filter(|row| row.bears_on(workload)).collect()
    }
}

/// What one option has in a row.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CardCell {
    /// What was measured, with the 95 % interval of it alone.
    pub estimate: Estimate,
    /// Whether the load generator reached its limit before the server, which may do better than this.
    pub is_lower_bound: bool,
    /// How far it is behind the best of its row, as a factor of at least 1: how many times as much it costs, as long it
    /// takes, or as little it delivers. Conclusions hold over all rows and options together, at 95 %.
    pub against: Against,
}

/// What to choose for a kind of application.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Advice {
    /// Which kind.
    pub workload: Workload,
    /// Keys of what to choose and of its runner-up, in this order; empty where nothing works.
    pub choices: Vec<String>,
    /// In sentences: what to choose, what separates the runner-up from it, and what would change the choice.
    pub text: String,
}
