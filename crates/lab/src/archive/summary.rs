//! What a list of results says of each.

use super::{ArchiveError, believed, figures};
use pushlab_analysis::header::Header;
use pushlab_experiment::subject::name_of;
use pushlab_store::{Campaign, CampaignRow, Kind, Store, StoreError};
use pushlab_wire::transport::Transport;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::time::SystemTime;

/// A line of the list of results.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ResultSummary {
    /// Number in the store.
    pub id: i64,
    /// Name, which need not be its alone.
    pub name: String,
    /// Title for people.
    pub title: String,
    /// How far it is.
    pub state: ResultState,
    /// When it began, ms since 1970.
    pub started_ms: u64,
    /// Runs planned.
    pub runs_planned: u32,
    /// Runs stored: valid, void and failed.
    pub runs_done: u32,
    /// Runs that a warning takes out of the figures.
    pub runs_void: u32,
    /// Runs that did not come to their end.
    pub runs_failed: u32,
    /// Names of the subjects, in the experiment's order.
    pub subjects: Vec<String>,
    /// Transports, in the order of the table of transports.
    pub transports: Vec<Transport>,
}

/// How far a result is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ResultState {
    /// Every planned run has a record.
    Complete,
    /// It ended before that, and the same command goes on.
    Interrupted,
    /// A lab measures into it now.
    Running,
    /// Not measured here: brought from a file, a study or a browser.
    Imported,
}

/// Every result of a store, newest first.
///
/// # Errors
/// Those of the store.
pub fn summaries(store: &Store) -> Result<Vec<ResultSummary>, ArchiveError> {
    let measured_now = store.measuring().and_then(|measuring| measuring.campaign);
    let rows = store.campaigns()?;
    let summaries = rows.into_iter().rev().map(|row| summary(store, row, measured_now));
    // What was removed since the list was read is left out.
    let is_there = |found: &Result<_, _>| !matches!(found, Err(ArchiveError::Store(StoreError::NotFound { .. })));
    summaries.filter(is_there).collect()
}

fn summary(store: &Store, row: CampaignRow, measured_now: Option<i64>) -> Result<ResultSummary, ArchiveError> {
    let (title, subjects, transports) = contents(store, &store.campaign(row.id)?)?;
    let state = match row.kind {
        Kind::Published | Kind::Imported => ResultState::Imported,
        Kind::Measured if measured_now == Some(row.id) => ResultState::Running,
        Kind::Measured if row.is_complete || row.done >= row.planned => ResultState::Complete,
        Kind::Measured => ResultState::Interrupted,
    };
    let started = humantime::parse_rfc3339(&row.created_at).ok();
    let since_1970 = started.and_then(|time| time.duration_since(SystemTime::UNIX_EPOCH).ok()).unwrap_or_default();
    Ok(ResultSummary {
        id: row.id,
        name: row.name,
        title,
        state,
        started_ms: since_1970.as_millis() as u64,
        runs_planned: row.planned,
        runs_done: row.done,
        runs_void: row.void,
        runs_failed: row.failed,
        subjects,
        transports: transports.into_iter().collect(),
    })
}

/// Title, subjects and transports: those of the header, and where there is none that can be read, those of the runs. A
/// result of another version of this program is listed, too.
fn contents(store: &Store, experiment: &Campaign) -> Result<(String, Vec<String>, BTreeSet<Transport>), ArchiveError> {
    let mut subjects: Vec<String> = Vec::new();
    let mut add = |name: &str| {
        if !subjects.iter().any(|known| known == name) {
            subjects.push(name.to_owned());
        }
    };
    if let Ok(header) = Header::deserialize(&experiment.header).map(believed) {
        header.experiments.iter().flat_map(|e| &e.subjects).for_each(|text| add(name_of(text)));
        let transports = header.experiments.iter().flat_map(|e| &e.transports).copied().collect();
        return Ok((header.title(), subjects, transports));
    }
    let cells = store.cells(experiment.row.id)?;
    cells.iter().for_each(|cell| add(&cell.subject));
    let transports = cells.iter().filter_map(|cell| Transport::from_name(&cell.transport)).collect();
    Ok((figures::title(&experiment.row.name), subjects, transports))
}
