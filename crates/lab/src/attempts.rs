//! Runs that are tried again: because something held up the generator, or because the subject was not warm.

use crate::run::{Executed, RunObserver, execute};
use crate::workplace::Workplace;
use pushlab_analysis::record::{PlannedRun, RunRecord};
use pushlab_analysis::warnings;
use pushlab_experiment::Experiment;
use pushlab_stats::WarningCode;
use pushlab_subjects::manifest::Platform;
use pushlab_subjects::named::Named;

/// Times that a run is tried whose generator was held up.
const MAX_ATTEMPTS: u32 = 3;
/// Shortest and longest warm-up of a run that is tried again because its subject had not warmed up, ms.
const WARM_UP_MIN_MS: u64 = 5_000;
const WARM_UP_MAX_MS: u64 = 60_000;

/// Executes a run, and again while the generator was held up by something else than its own work, or while the subject
/// was still warming up: the next try warms it up twice as long. `None` when interrupted.
pub fn execute_until_valid(
    planned: &PlannedRun,
    experiment: &Experiment,
    place: &Workplace,
    observer: &mut dyn RunObserver,
) -> Option<Box<RunRecord>> {
    let mut experiment = experiment.clone();
    for attempt in 1.. {
        let Executed::Recorded(mut record) = execute(planned, &experiment, place, observer) else {
            return None;
        };
        record.attempts = attempt;
        let is_cold = is_warming_up(&record);
        if attempt >= MAX_ATTEMPTS || !(is_cold || is_worth_another_try(&record)) {
            return Some(record);
        }
        if is_cold {
            let longer = (2 * experiment.phases.warm_up_ms).max(WARM_UP_MIN_MS);
            experiment.phases.warm_up_ms = longer.min(WARM_UP_MAX_MS);
        }
    }
    None
}

/// Whether a virtual machine was still compiling what it ran: its latency fell over the whole load phase. What is
/// measured then is its start, which says nothing of the server that it becomes.
fn is_warming_up(record: &RunRecord) -> bool {
    let named = Named::parse(&record.planned.cell.subject);
    let is_compiled_late = named.is_ok_and(|named| named.platform() == Some(Platform::Java));
    is_compiled_late && warnings::latency_trend(record).is_some_and(|change| change < 0.0)
}

/// Whether a run is void only because something held up the generator: on a shared machine that passes. What the
/// subject did plays no part in this, or repeating would choose the results.
fn is_worth_another_try(record: &RunRecord) -> bool {
    let mut voids = record.warnings.iter().filter(|d| d.is_void()).peekable();
    record.is_void()
        && voids.peek().is_some()
        && voids.all(|d| matches!(d.code, WarningCode::Lateness | WarningCode::LongTurns))
}

/// Whether a run says how fast the load is instead of the subject, and is measured again later: see
/// `docs/decisions/0020-measured-again.md`.
pub fn is_bound_by_load(record: &RunRecord) -> bool {
    record.warnings.iter().any(|warning| warning.code == WarningCode::GeneratorBound)
}
