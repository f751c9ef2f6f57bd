//! Runs that are tried again: because the instrument failed, or because the subject was not steady when its warm-up ended.
//!
//! One rule for every subject, and nothing that the subject did in the load phase plays a part in it: repeating cannot
//! choose results. Every try is kept, with its reason. A run whose limit was the load in a closed loop is not tried
//! again: it was the subject that was fast.

use crate::observer::RunObserver;
use crate::place::Place;
use crate::run::Executed;
use crate::side_by_side::Member;
use pushlab_analysis::report::RunValues;
use pushlab_bus::CrewError;
use pushlab_experiment::Experiment;
use pushlab_record::{Attempt, LOAD_FAILED, NOT_WARM, Outcome, RunRecord};
use pushlab_stats::WarningCode;

/// Times that a run is tried whose instrument failed.
const MAX_ATTEMPTS: usize = 3;
/// Warnings that say that something else than its own work held up the generator or the link. A generator that is
/// saturated would be so again.
const OF_THE_INSTRUMENT: [WarningCode; 3] = [WarningCode::Lateness, WarningCode::LongTurns, WarningCode::LinkLate];

/// Why nothing is kept of a run.
#[derive(Debug)]
pub enum Stopped {
    /// The observer wanted to stop.
    Interrupted,
    /// There are too few workers.
    Unmanned(CrewError),
}

/// Executes runs that go side by side, or a single one, and again while the rule says so of any of them.
pub fn execute_until_valid(
    members: &[Member<'_>],
    place: &mut impl Place,
    observer: &mut dyn RunObserver,
) -> Result<Vec<Box<RunRecord>>, Stopped> {
    let Some(first) = members.first().map(|member| member.experiment) else { return Ok(Vec::new()) };
    let mut experiments: Vec<Experiment> = members.iter().map(|member| member.experiment.clone()).collect();
    try_until_valid(first.warm_up_ms(), first.warm_up_max_ms, |warm_up_ms| {
        experiments.iter_mut().for_each(|experiment| experiment.phases.warm_up_ms = warm_up_ms);
        let own = |(member, experiment)| Member { experiment, ..member };
        let members: Vec<Member<'_>> = members.iter().copied().zip(&experiments).map(own).collect();
        place.execute(&members, observer)
    })
}

/// The same, whatever a try is: it is told how long to warm up. What goes side by side is tried again together.
fn try_until_valid(
    shortest_ms: u64,
    longest_ms: Option<u64>,
    mut execute: impl FnMut(u64) -> Vec<Executed>,
) -> Result<Vec<Box<RunRecord>>, Stopped> {
    let mut warm_up_ms = shortest_ms;
    let mut failed = 0;
    let mut earlier: Vec<Vec<Attempt>> = Vec::new();
    loop {
        let mut tries: Vec<(Box<RunRecord>, Option<Why>)> = Vec::new();
        for executed in execute(warm_up_ms) {
            tries.push(match executed {
                Executed::Interrupted => return Err(Stopped::Interrupted),
                Executed::Unmanned(error) => return Err(Stopped::Unmanned(error)),
                Executed::Cold { record, detail } => (record, Some((NOT_WARM.to_owned(), detail))),
                Executed::LoadFailed(record) => {
                    let detail = record.failure().unwrap_or_default().to_owned();
                    (record, Some((LOAD_FAILED.to_owned(), detail)))
                }
                Executed::Recorded(record) => {
                    let why = failure_of_instrument(&record);
                    (record, why)
                }
            });
        }
        earlier.resize_with(tries.len(), Vec::new);
        let mut reasons = tries.iter().filter_map(|(_, why)| why.clone());
        let cold = reasons.clone().find(|(reason, _)| reason == NOT_WARM);
        let first = if cold.is_some() { cold.clone() } else { reasons.next() };
        failed += usize::from(first.is_some() && cold.is_none());
        let Some((reason, detail)) = first.filter(|_| cold.is_some() || failed < MAX_ATTEMPTS) else {
            let with_earlier = |((mut record, _), earlier): ((Box<RunRecord>, _), Vec<Attempt>)| {
                record.attempts = u32::try_from(earlier.len() + 1).unwrap_or(u32::MAX);
                record.earlier = earlier;
                record
            };
            return Ok(tries.into_iter().zip(earlier).map(with_earlier).collect());
        };
        if cold.is_some() {
            warm_up_ms = longest_ms.map_or(warm_up_ms, |longest| longest.min(2 * warm_up_ms));
        }
        for ((record, why), earlier) in tries.iter().zip(&mut earlier) {
            let (reason, detail) = why.clone().unwrap_or_else(|| (reason.clone(), format!("beside it: {detail}")));
            earlier.push(attempt(record, &reason, detail));
        }
    }
}

/// A code, and numbers for people.
type Why = (String, String);

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
fn failure_of_instrument(record: &RunRecord) -> Option<Why> {
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
    use pushlab_record::PlannedRun;
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
        let kept = try_until_valid(5_000, None, |_| vec![tries.pop().unwrap()]).unwrap().remove(0);
        assert_eq!((kept.attempts, reasons(&kept)), (3, vec!["lateness", "load-failed"]));
        assert_eq!(kept.earlier[0].detail, "numbers");
        let mut tried = 0;
        let kept = try_until_valid(5_000, None, |_| {
            tried += 1;
            vec![Executed::Recorded(record(&[WarningCode::LongTurns]))]
        });
        let kept = kept.unwrap().remove(0);
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
            let kept = try_until_valid(5_000, Some(40_000), |_| vec![Executed::Recorded(record(warnings))]);
            let kept = kept.unwrap().remove(0);
            assert_eq!((kept.attempts, kept.earlier.len()), (1, 0), "{warnings:?}");
        }
        let failure = Outcome::Failed { reason: "it ended with signal 9".to_owned(), phase: None };
        let dead = Box::new(RunRecord { outcome: failure, ..*record(&[WarningCode::Lateness]) });
        let mut tried = 0;
        let kept = try_until_valid(5_000, None, |_| {
            tried += 1;
            vec![Executed::Recorded(dead.clone())]
        });
        assert_eq!((kept.unwrap()[0].attempts, tried), (1, 1));
    }

    #[test]
    fn a_cold_subject_is_warmed_up_twice_as_long_up_to_the_longest() {
        let mut lengths = Vec::new();
        let kept = try_until_valid(12_000, Some(40_000), |warm_up_ms| {
            lengths.push(warm_up_ms);
            vec![match warm_up_ms < 40_000 {
                true => Executed::Cold { record: record(&[]), detail: "it fell".to_owned() },
                false => Executed::Recorded(record(&[WarningCode::Loss])),
            }]
        });
        assert_eq!(lengths, [12_000, 24_000, 40_000]);
        assert_eq!(reasons(&kept.unwrap()[0]), ["not-warm"; 2]);
        assert!(matches!(try_until_valid(1, None, |_| vec![Executed::Interrupted]), Err(Stopped::Interrupted)));
    }

    #[test]
    fn what_goes_side_by_side_is_tried_again_together() {
        let good = || Executed::Recorded(record(&[]));
        let mut tries = vec![
            vec![good(), good()],
            vec![good(), Executed::Recorded(record(&[WarningCode::Lateness]))],
            vec![Executed::Cold { record: record(&[]), detail: "it fell".to_owned() }, good()],
        ];
        let kept = try_until_valid(5_000, Some(40_000), |_| tries.pop().unwrap()).unwrap();
        assert_eq!(kept.iter().map(|kept| kept.attempts).collect::<Vec<_>>(), [3, 3]);
        assert_eq!(reasons(&kept[0]), ["not-warm", "lateness"]);
        assert_eq!(reasons(&kept[1]), ["not-warm", "lateness"]);
        assert_eq!(kept[0].earlier[1].detail, "beside it: numbers");
    }
}
