//! Runs that are tried again, and what is kept of every try.

use super::scripted::{DELIVERIES, Folder, TRY_MS, clock, experiment, failed, good, measured, warned};
use crate::archive;
use crate::run::Executed;
use pushlab_analysis::report::{Asked, build};
use pushlab_experiment::Experiment;
use pushlab_stats::WarningCode;
use pushlab_store::{Attempt, Run};

/// Four runs, one after the other.
fn four_runs() -> [Experiment; 1] {
    [experiment(&[("repeats", "2")])]
}

fn reasons(run: &Run) -> Vec<&str> {
    run.earlier.iter().map(|attempt| attempt.reason.as_str()).collect()
}

fn warnings(run: &Run) -> Vec<WarningCode> {
    run.warnings.iter().map(|warning| warning.code).collect()
}

#[test]
fn a_run_that_the_instrument_voids_is_tried_three_times_and_every_try_is_stored() {
    let folder = Folder::new();
    let (place, runs) = folder.carry_out(&four_runs(), |member, _| match member.planned.order {
        2 => warned(member, &[WarningCode::Lateness]),
        _ => good(member),
    });
    assert_eq!(place.tries, [1, 2, 2, 2, 3, 4].map(|order| vec![order]));
    assert_eq!(runs.iter().map(|run| run.attempts).collect::<Vec<_>>(), [1, 3, 1, 1]);
    let earlier = |number: u64| Attempt {
        started_at: clock(number * TRY_MS),
        took_ms: TRY_MS,
        reason: "lateness".to_owned(),
        detail: "in numbers".to_owned(),
        figures: runs[1].earlier[0].figures.clone(),
    };
    assert_eq!(runs[1].earlier, [earlier(1), earlier(2)]);
    assert_eq!(runs[1].earlier[0].figures["delivered"], DELIVERIES as f64);
    assert_eq!((&runs[1].started_at, warnings(&runs[1])), (&clock(3 * TRY_MS), vec![WarningCode::Lateness]));
    assert!([0, 2, 3].iter().all(|&other: &usize| runs[other].earlier.is_empty() && runs[other].warnings.is_empty()));
}

/// How certain a report says that a result is.
fn certainty(folder: &Folder) -> String {
    let result = archive::read(&folder.store(), 1, "").unwrap();
    let report = build(&[result], &[], Asked::default(), String::new());
    report.verdict.last().unwrap().clone()
}

#[test]
fn a_report_says_why_runs_were_tried_again() {
    let folder = Folder::new();
    folder.carry_out(&four_runs(), |member, number| match (member.planned.order, number) {
        (1, _) => warned(member, &[WarningCode::LongTurns]),
        (2, 1) => Executed::LoadFailed(failed(member, "its process ended")),
        (3, _) => Executed::Recorded(failed(member, "the subject ended with signal 9")),
        _ => good(member),
    });
    let said = certainty(&folder);
    let expected = "2 runs count (1 not at the first try), tried again because of load-failed 1 ×, long-turns 2 ×, \
                    1 void, 1 failed;";
    assert!(said.starts_with(expected), "{said}");
}

/// The load was the slower side of a closed loop: it is the subject that was fast.
#[test]
fn a_run_that_the_load_bounds_counts_at_once() {
    let folder = Folder::new();
    let (_, runs) = folder.carry_out(&four_runs(), |member, _| warned(member, &[WarningCode::GeneratorBound]));
    assert!(runs.iter().all(|run| run.attempts == 1));
    assert!(certainty(&folder).starts_with("4 runs count;"), "{}", certainty(&folder));
}

#[test]
fn a_run_that_the_instrument_voids_once_counts_when_it_is_repeated() {
    let folder = Folder::new();
    let (_, runs) = folder.carry_out(&four_runs(), |member, number| match (member.planned.order, number) {
        (1, 1) => warned(member, &[WarningCode::LongTurns]),
        (3, 1 | 2) => Executed::LoadFailed(failed(member, "worker-1: it has said nothing for 5 s")),
        _ => good(member),
    });
    assert_eq!(runs.iter().map(reasons).collect::<Vec<_>>(), [&["long-turns"][..], &[], &["load-failed"; 2], &[]]);
    assert_eq!(runs[2].earlier[1].detail, "worker-1: it has said nothing for 5 s");
    assert!(runs[2].earlier[1].figures.is_empty(), "it got nowhere");
    assert!(runs.iter().all(|run| run.warnings.is_empty() && run.outcome == pushlab_store::Outcome::Completed));
}

#[test]
fn what_the_subject_did_is_its_result_and_the_rest_goes_on() {
    let folder = Folder::new();
    let (place, runs) = folder.carry_out(&four_runs(), |member, _| match member.planned.order {
        1 => Executed::Recorded(failed(member, "the subject ended with signal 9")),
        2 => warned(member, &[WarningCode::SubjectRestarted]),
        3 => warned(member, &[WarningCode::GeneratorSaturated]),
        _ => good(member),
    });
    assert_eq!(place.tries.len(), 4);
    let outcome = serde_json::to_value(&runs[0].outcome).unwrap();
    assert_eq!((&outcome["reason"], &outcome["phase"]), (&"the subject ended with signal 9".into(), &"load".into()));
    assert_eq!(warnings(&runs[1]), [WarningCode::SubjectRestarted]);
    assert!(runs.iter().all(|run| run.attempts == 1 && run.earlier.is_empty()));
}

#[test]
fn a_load_that_never_gets_through_has_failed() {
    let folder = Folder::new();
    let (place, runs) =
        folder.carry_out(&four_runs()[..], |member, _| Executed::LoadFailed(failed(member, "its process ended")));
    assert_eq!(place.tries.len(), 12);
    assert!(runs.iter().all(|run| run.attempts == 3 && reasons(run) == ["load-failed"; 2]));
    assert!(runs.iter().all(|run| run.outcome != pushlab_store::Outcome::Completed));
}

#[test]
fn a_cold_subject_is_warmed_up_for_longer_and_the_next_run_begins_with_the_shortest() {
    let folder = Folder::new();
    let phases =
        "{ connect_ms = 10000, idle_ms = 0, warm_up_ms = 15000, load_ms = 1000, drain_ms = 3000, after_ms = 0 }";
    let experiment = experiment(&[("phases", phases), ("warm_up_max_ms", "40000"), ("repeats", "1")]);
    let (place, runs) = folder.carry_out(&[experiment], |member, _| {
        let warm_up_ms = member.experiment.phases.warm_up_ms;
        let long_enough = if member.planned.order == 1 { 40_000 } else { 30_000 };
        let record = Box::new(measured(member));
        match warm_up_ms < long_enough {
            true => Executed::Cold { record, detail: format!("{warm_up_ms} ms") },
            false => Executed::Recorded(record),
        }
    });
    assert_eq!(place.tries, [1, 1, 1, 2, 2].map(|order| vec![order]));
    let details = |run: &Run| run.earlier.iter().map(|attempt| attempt.detail.clone()).collect::<Vec<_>>();
    assert_eq!(details(&runs[0]), ["15000 ms", "30000 ms"]);
    assert_eq!(details(&runs[1]), ["15000 ms"]);
    assert!(runs.iter().all(|run| reasons(run).iter().all(|reason| *reason == "not-warm")));
}

#[test]
fn runs_side_by_side_are_tried_again_together() {
    let folder = Folder::new();
    let experiment = experiment(&[("turns_ms", "60")]);
    let (place, runs) = folder.carry_out(&[experiment], |member, number| match (member.planned.order, number) {
        (1, 1) => warned(member, &[WarningCode::Lateness]),
        (2, 2) => Executed::LoadFailed(failed(member, "its process ended")),
        _ => good(member),
    });
    assert_eq!(place.tries, vec![vec![1, 2]; 3]);
    let details = |run: &Run| {
        let detail = |attempt: &Attempt| format!("{}: {}", attempt.reason, attempt.detail);
        run.earlier.iter().map(detail).collect::<Vec<_>>()
    };
    assert_eq!(details(&runs[0]), ["lateness: in numbers", "load-failed: beside it: its process ended"]);
    assert_eq!(details(&runs[1]), ["lateness: beside it: in numbers", "load-failed: its process ended"]);
    assert!(runs.iter().all(|run| run.attempts == 3 && run.outcome == pushlab_store::Outcome::Completed));
}
