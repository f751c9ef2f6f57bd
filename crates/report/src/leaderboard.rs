//! Every subject over every transport.

use super::estimate::{Estimate, Lacking};
use pushlab_experiment::metric::Better;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Every subject over every transport, ranked by each of several figures.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Leaderboard {
    /// In a sentence or two: what was measured how.
    pub note: String,
    /// Names of the experiments that asked for it.
    pub experiments: Vec<String>,
    /// What is ranked; only what was measured.
    pub columns: Vec<LeaderboardColumn>,
    /// A row for each subject and transport, in the order of the first column that is ranked, the best first.
    pub rows: Vec<LeaderboardRow>,
    /// What rows are marked with: only what occurs.
    pub warnings: Vec<LeaderboardWarning>,
    /// Who was measured, and how it was started.
    pub subjects: Vec<LeaderboardSubject>,
    /// Who was not, and why.
    pub left_out: Vec<LeftOut>,
}

/// A column of a leaderboard.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LeaderboardColumn {
    /// Unique in the table: the metric's name, followed by experiment and variant in all but the metric's first column.
    pub id: String,
    /// The metric's name.
    pub metric: String,
    /// Heading.
    pub title: String,
    /// Unit of its figures as they are shown here.
    pub unit: String,
    /// What is better; what is neither has no ranks.
    pub better: Better,
    /// Name of the experiment that its figures come from.
    pub experiment: String,
    /// Share of its own deliveries per second at which each row was measured; null where that is not what set the rate.
    pub share: Option<f64>,
}

/// A subject over a transport.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LeaderboardRow {
    /// The subject, as in [`Leaderboard::subjects`].
    pub subject: String,
    /// Transport name.
    pub transport: String,
    /// Whether it is our own server.
    pub is_ours: bool,
    /// One for each column; null where nothing was measured.
    pub standings: Vec<Option<Standing>>,
    /// Why it has no figure in a column though it was tried, by the column's id. Where all of its runs failed it is the
    /// last.
    pub lacking: BTreeMap<String, Lacking>,
    /// Codes of [`Leaderboard::warnings`] that runs behind its figures raised.
    pub warnings: Vec<String>,
}

/// A warning that whoever reads a leaderboard has to know of.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LeaderboardWarning {
    /// Stable code, e.g. `generator-bound`.
    pub code: String,
    /// What it means for a row, in a clause.
    pub meaning: String,
}

/// A figure and where it stands.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Standing {
    /// The value.
    pub figure: Estimate,
    /// Among all rows; null where the metric is not judged.
    pub overall: Option<Rank>,
    /// Among the rows of the same transport; null where the metric is not judged.
    pub of_transport: Option<Rank>,
}

/// A rank that may be shared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Rank {
    /// 1 is best; tied entries share a rank.
    pub rank: u32,
    /// Whether the intervals cannot separate it from another of the same rank.
    pub is_tied: bool,
}

/// A subject of a leaderboard.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LeaderboardSubject {
    /// Its name.
    pub name: String,
    /// Its name for people, where it is known.
    pub title: Option<String>,
    /// On what it runs, for people, where it is known.
    pub platform: Option<String>,
    /// Its version, where it is known.
    pub version: Option<String>,
    /// The command lines that started it, each as a shell takes it; `PORT` stands for the port of a run. Empty where
    /// they are not known.
    pub commands: Vec<String>,
}

/// A subject that was not measured.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LeftOut {
    /// Its name.
    pub subject: String,
    /// Why: what is missing, or what it does not have.
    pub reason: String,
}
