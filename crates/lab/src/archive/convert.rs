//! Records as the store keeps them, and back.
//!
//! What a worker measured is taken apart by kind: numbers are counts, texts are histograms, lists are series. So a
//! new field of [`WorkerResult`](pushlab_load::plan::WorkerResult) is stored without a word here.

use super::table::{from_series, to_series};
use crate::cell::Cell;
use crate::cell::SlowPolicy;
use crate::record::{Outcome, PlannedRun, RunRecord};
use crate::report::RunFigures;
use pushlab_load::plan::{MarkedDelivery, Phase, PhaseMark, Second};
use pushlab_stats::Histogram;
use pushlab_store::{self as store, FigureValue, PhaseRow};
use pushlab_wire::transport::Transport;
use serde::de::Error as _;
use serde_json::{Error, Map, Value, json};
use std::collections::BTreeMap;

/// A record for the store.
pub fn to_store(record: &RunRecord) -> Result<store::Run, Error> {
    let mut run = store::Run {
        place: record.planned.order,
        cell: cell_to_store(&record.planned.cell),
        repeat: record.planned.repeat,
        seed: record.planned.seed,
        started_at: record.started_at.clone(),
        took_ms: record.took_ms,
        attempts: record.attempts,
        outcome: outcome_to_store(&record.outcome)?,
        doubts: record.doubts.clone(),
        phases: Vec::new(),
        figures: RunFigures::of(record).figures.into_iter().map(|(name, v)| (name, FigureValue::from(v))).collect(),
        counts: BTreeMap::new(),
        histograms: BTreeMap::new(),
        series: vec![
            to_series("subject", &record.subject)?,
            to_series("generator", &record.generator)?,
            to_series("counters", &record.counters)?,
        ],
        document: json!({
            "version": record.version,
            "subject_command": record.subject_command,
            "plan": record.plan,
            "baseline": record.baseline,
            "kernel": record.kernel,
            "result": Value::Null,
        }),
    };
    if let Some(result) = &record.result {
        run.phases = phases(&result.phases, result.end_ns)?;
        run.series.push(to_series("seconds", &result.seconds)?);
        run.series.push(to_series("deliveries", &result.deliveries)?);
        let Value::Object(fields) = serde_json::to_value(result)? else {
            return Err(Error::custom("a worker's result is no object"));
        };
        let mut rest = Map::new();
        for (name, value) in fields {
            match value {
                Value::Number(number) => drop(run.counts.insert(name, number.as_u64().unwrap_or(0))),
                Value::String(text) => {
                    run.histograms.insert(name, Histogram::from_base64(&text).map_err(Error::custom)?);
                }
                _ if matches!(name.as_str(), "phases" | "seconds" | "deliveries") => {}
                other => drop(rest.insert(name, other)),
            }
        }
        run.document["result"] = Value::Object(rest);
    }
    Ok(run)
}

/// The record of a stored run.
pub fn from_store(run: store::Run) -> Result<RunRecord, Error> {
    let field = |name: &str| run.document.get(name).cloned().unwrap_or_default();
    let series = |name: &str| run.series.iter().find(|series| series.name == name);
    fn rows<T: serde::de::DeserializeOwned>(series: Option<&store::SeriesRow>) -> Result<Vec<T>, Error> {
        series.map_or_else(|| Ok(Vec::new()), from_series)
    }
    let result = match field("result") {
        Value::Object(mut fields) => {
            fields.extend(run.counts.iter().map(|(name, count)| (name.clone(), json!(count))));
            for (name, histogram) in &run.histograms {
                fields.insert(name.clone(), serde_json::to_value(histogram)?);
            }
            fields.insert("phases".to_owned(), json!([]));
            fields.insert("seconds".to_owned(), json!([]));
            let mut result: pushlab_load::plan::WorkerResult = serde_json::from_value(Value::Object(fields))?;
            result.phases = run.phases.iter().map(mark).collect::<Result<_, _>>()?;
            result.seconds = rows::<Second>(series("seconds"))?;
            result.deliveries = rows::<MarkedDelivery>(series("deliveries"))?;
            Some(result)
        }
        _ => None,
    };
    Ok(RunRecord {
        version: serde_json::from_value(field("version"))?,
        planned: PlannedRun { order: run.place, cell: cell_from_store(&run.cell)?, repeat: run.repeat, seed: run.seed },
        started_at: run.started_at.clone(),
        took_ms: run.took_ms,
        attempts: run.attempts,
        outcome: outcome_from_store(&run.outcome)?,
        doubts: run.doubts.clone(),
        result,
        subject: rows(series("subject"))?,
        generator: rows(series("generator"))?,
        counters: rows(series("counters"))?,
        subject_command: serde_json::from_value(field("subject_command"))?,
        plan: serde_json::from_value(field("plan"))?,
        baseline: serde_json::from_value(field("baseline"))?,
        kernel: serde_json::from_value(field("kernel"))?,
    })
}

/// A run that is known by its figures alone: printed in a study, or imported from a table.
pub fn figures_of(run: store::Run) -> Result<RunFigures, Error> {
    let failure = match &run.outcome {
        store::Outcome::Completed => None,
        store::Outcome::Failed { reason, .. } => Some(reason.clone()),
    };
    let bounds = run.figures.iter().filter_map(|(name, figure)| Some((name.clone(), figure.bound?))).collect();
    let count = |name: &str| run.counts.get(name).copied().unwrap_or(0);
    Ok(RunFigures {
        cell: cell_from_store(&run.cell)?,
        repeat: run.repeat,
        failure,
        doubts: run.doubts.clone(),
        figures: run.figures.iter().map(|(name, figure)| (name.clone(), figure.value)).collect(),
        bounds,
        wrong: [count("lost"), count("duplicated"), count("reordered")],
        timeline: None,
    })
}

fn phases(marks: &[PhaseMark], end_ns: u64) -> Result<Vec<PhaseRow>, Error> {
    let ends = marks.iter().skip(1).map(|mark| mark.t_ns).chain([end_ns]);
    marks
        .iter()
        .zip(ends)
        .map(|(mark, end_ns)| Ok(PhaseRow { name: name_of(&mark.phase)?, start_ns: mark.t_ns, end_ns }))
        .collect()
}

fn mark(row: &PhaseRow) -> Result<PhaseMark, Error> {
    Ok(PhaseMark { phase: phase_of(&row.name)?, t_ns: row.start_ns })
}

fn name_of(phase: &Phase) -> Result<String, Error> {
    serde_json::from_value(serde_json::to_value(phase)?)
}

fn phase_of(name: &str) -> Result<Phase, Error> {
    serde_json::from_value(json!(name))
}

fn outcome_to_store(outcome: &Outcome) -> Result<store::Outcome, Error> {
    Ok(match outcome {
        Outcome::Completed => store::Outcome::Completed,
        Outcome::Failed { reason, phase } => {
            store::Outcome::Failed { reason: reason.clone(), phase: phase.as_ref().map(name_of).transpose()? }
        }
    })
}

fn outcome_from_store(outcome: &store::Outcome) -> Result<Outcome, Error> {
    Ok(match outcome {
        store::Outcome::Completed => Outcome::Completed,
        store::Outcome::Failed { reason, phase } => {
            Outcome::Failed { reason: reason.clone(), phase: phase.as_deref().map(phase_of).transpose()? }
        }
    })
}

fn cell_to_store(cell: &Cell) -> store::Cell {
    store::Cell {
        experiment: cell.experiment.clone(),
        subject: cell.subject.clone(),
        transport: cell.transport.name().to_owned(),
        policy: cell.policy.name().to_owned(),
        variant: cell.variant.clone(),
        clients: cell.clients,
        deliveries_per_s: cell.deliveries_per_s,
        payload_bytes: cell.payload_bytes,
    }
}

/// A cell that names no policy is of a server that has none: it is filed with those that close.
fn cell_from_store(cell: &store::Cell) -> Result<Cell, Error> {
    let policy = match cell.policy.as_str() {
        "" => SlowPolicy::Close,
        name => serde_json::from_value(json!(name))?,
    };
    let transport = Transport::from_name(&cell.transport)
        .ok_or_else(|| Error::custom(format!("{} is no transport", cell.transport)))?;
    Ok(Cell {
        experiment: cell.experiment.clone(),
        subject: cell.subject.clone(),
        transport,
        policy,
        variant: cell.variant.clone(),
        clients: cell.clients,
        deliveries_per_s: cell.deliveries_per_s,
        payload_bytes: cell.payload_bytes,
    })
}
