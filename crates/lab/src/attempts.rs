//! Runs that are tried again: because the instrument failed, or because the subject was not steady when its warm-up ended.
//!
//! One rule for every subject, and nothing that the subject did in the load phase plays a part in it: repeating cannot
//! choose results. Every try is kept, with its reason. A run whose limit was the load in a closed loop is not tried
//! again: it was the subject that was fast.

use crate::run::{Executed, RunObserver, execute};
use crate::standing::Standing;
use crate::workplace::Workplace;
use pushlab_analysis::record::{Attempt, LOAD_FAILED, NOT_WARM, Outcome, PlannedRun, RunRecord};
use pushlab_analysis::report::RunValues;
use pushlab_experiment::Experiment;
use pushlab_stats::WarningCode;

/// Times that a run is tried whose instrument failed.
const MAX_ATTEMPTS: usize = 3;
/// Warnings that say that something else than its own work held up the generator or the link. A generator that is
/// saturated would be so again.
const OF_THE_INSTRUMENT: [WarningCode; 3] = [WarningCode::Lateness, WarningCode::LongTurns, WarningCode::LinkLate];

/// Executes a run, and again while the rule says so. `None` when interrupted.
pub fn execute_until_valid(
    planned: &PlannedRun,
    experiment: &Experiment,
    place: &Workplace,
    standing: &mut Standing,
    observer: &mut dyn RunObserver,
) -> Option<Box<RunRecord>> {
    let mut experiment = experiment.clone();
    experiment.phases.warm_up_ms = experiment.warm_up_ms();
    try_until_valid(experiment.phases.warm_up_ms, experiment.warm_up_max_ms, |warm_up_ms| {
        experiment.phases.warm_up_ms = warm_up_ms;
        execute(planned, &experiment, place, standing, observer)
    })
}

/// The same, whatever a try is: it is told how long to warm up.
fn try_until_valid(
    shortest_ms: u64,
    longest_ms: Option<u64>,
    mut execute: impl FnMut(u64) -> Executed,
) -> Option<Box<RunRecord>> {
    let mut warm_up_ms = shortest_ms;
    let mut earlier: Vec<Attempt> = Vec::new();
    loop {
        let (mut record, why) = match execute(warm_up_ms) {
            Executed::Interrupted => return None,
            Executed::Cold { record, detail } => {
                warm_up_ms = longest_ms.map_or(warm_up_ms, |longest| longest.min(2 * warm_up_ms));
                earlier.push(attempt(&record, NOT_WARM, detail));
                continue;
            }
            Executed::LoadFailed(record) => {
                let detail = record.failure().unwrap_or_default().to_owned();
                (record, Some((LOAD_FAILED.to_owned(), detail)))
            }
            Executed::Recorded(record) => {
                let why = failure_of_instrument(&record);
                (record, why)
            }
        };
        let failed = earlier.iter().filter(|attempt| attempt.reason != NOT_WARM).count();
        match why {
            Some((reason, detail)) if failed + 1 < MAX_ATTEMPTS => earlier.push(attempt(&record, &reason, detail)),
            _ => {
                record.attempts = u32::try_from(earlier.len() + 1).unwrap_or(u32::MAX);
                record.earlier = earlier;
                return Some(record);
            }
        }
    }
}

fn attempt(record: &RunRecord, reason: &str, detail: String) -> Attempt {
    Attempt {
        started_at: record.started_at.clone(),
        took_ms: record.took_ms,
        reason: reason.to_owned(),
        detail,
        figures: RunValues::of(record).figures,
    }
}

/// Why a run is void, if it is so only because something held up the instrument: on a shared machine that passes.
fn failure_of_instrument(record: &RunRecord) -> Option<(String, String)> {
    let mut voids = record.warnings.iter().filter(|warning| warning.is_void());
    let is_failed = record.outcome != Outcome::Completed;
    let first = voids.clone().next().filter(|_| !is_failed)?;
    let is_its = voids.all(|warning| OF_THE_INSTRUMENT.contains(&warning.code));
    is_its.then(|| (first.code.to_string(), first.detail.clone()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiments;
    use pushlab_stats::Warning;

    fn record(warnings: &[WarningCode]) -> Box<RunRecord> {
        let cell = experiments::load("tangen-chat", None).unwrap().cells().remove(0);
        let planned = PlannedRun { order: 1, cell, repeat: 1, seed: 1 };
        let warnings = warnings.iter().map(|code| Warning::new(*code, "numbers")).collect();
        Box::new(RunRecord { warnings, ..RunRecord::ended(planned, Outcome::Completed) })
    }

    fn reasons(record: &RunRecord) -> Vec<&str> {
        record.earlier.iter().map(|attempt| attempt.reason.as_str()).collect()
    }

    #[test]
    fn every_try_is_kept_with_its_reason_until_the_instrument_holds() {
        let mut tries = vec![
            Executed::Recorded(record(&[WarningCode::Loss])),
            Executed::LoadFailed(record(&[])),
            Executed::Recorded(record(&[WarningCode::NoisyNeighbour, WarningCode::Lateness])),
        ];
        let kept = try_until_valid(5_000, None, |_| tries.pop().unwrap()).unwrap();
        assert_eq!((kept.attempts, reasons(&kept)), (3, vec!["lateness", "load-failed"]));
        assert_eq!(kept.earlier[0].detail, "numbers");
        let mut tried = 0;
        let kept = try_until_valid(5_000, None, |_| {
            tried += 1;
            Executed::Recorded(record(&[WarningCode::LongTurns]))
        });
        let kept = kept.unwrap();
        assert_eq!((tried, kept.attempts, reasons(&kept)), (3, 3, vec!["long-turns"; 2]), "the last one stays void");
    }

    #[test]
    fn what_the_subject_did_is_a_result() {
        for warnings in [
            &[WarningCode::SubjectRestarted] as &[_],
            &[WarningCode::SubjectRestarted, WarningCode::Lateness],
            &[WarningCode::GeneratorSaturated],
            &[WarningCode::GeneratorBound],
            &[WarningCode::Unstable],
        ] {
            let kept = try_until_valid(5_000, Some(40_000), |_| Executed::Recorded(record(warnings))).unwrap();
            assert_eq!((kept.attempts, kept.earlier.len()), (1, 0), "{warnings:?}");
        }
        let failure = Outcome::Failed { reason: "it ended with signal 9".to_owned(), phase: None };
        let dead = Box::new(RunRecord { outcome: failure, ..*record(&[WarningCode::Lateness]) });
        let mut tried = 0;
        let kept = try_until_valid(5_000, None, |_| {
            tried += 1;
            Executed::Recorded(dead.clone())
        });
        assert_eq!((kept.unwrap().attempts, tried), (1, 1));
    }

    #[test]
    fn a_cold_subject_is_warmed_up_twice_as_long_up_to_the_longest() {
        let mut lengths = Vec::new();
        let kept = try_until_valid(12_000, Some(40_000), |warm_up_ms| {
            lengths.push(warm_up_ms);
            match warm_up_ms < 40_000 {
                true => Executed::Cold { record: record(&[]), detail: "it fell".to_owned() },
                false => Executed::Recorded(record(&[WarningCode::Loss])),
            }
        });
        assert_eq!(lengths, [12_000, 24_000, 40_000]);
        assert_eq!(reasons(&kept.unwrap()), ["not-warm"; 2]);
        assert!(try_until_valid(1, None, |_| Executed::Interrupted).is_none());
    }
}
