//! Searches for a capacity: interrupted, gone on with, and what their header says meanwhile.

use super::scripted::{Audience, Folder, ScriptedPlace, experiment, measured, warned};
use crate::archive;
use crate::campaign::{Campaign, Ended, Start};
use crate::planner::search::{Capacity, CapacitySearch, Limit, Search};
use crate::run::Executed;
use crate::side_by_side::Member;
use pushlab_experiment::assertion::Assertion;
use pushlab_experiment::cell::Sweep;
use pushlab_stats::{Histogram, WarningCode};

/// Searches for the most clients that get their deliveries within 50 ms, and then measures at some shares of that.
fn search(shares: &[f64]) -> Search {
    Search {
        experiment: experiment(&[("repeats", "2")]),
        goal: Assertion::parse("latency(websocket) < 50 ms").unwrap(),
        over: Sweep::Clients,
        from: 2,
        max: 64,
        shares: shares.to_vec(),
    }
}

/// A server that serves five clients in time.
fn serves_five(member: &Member<'_>) -> Executed {
    let mut record = measured(member);
    let latency_ms = if member.planned.cell.clients <= 5 { 5 } else { 90 };
    let mut latency = Histogram::new();
    latency.record_n(latency_ms * 1_000_000, 100);
    record.result.as_mut().unwrap().latency = latency;
    Executed::Recorded(Box::new(record))
}

fn begin(folder: &Folder, search: &Search, seed: Option<u64>) -> Campaign<CapacitySearch, ScriptedPlace> {
    let start = Start { seed, ..folder.start() };
    folder.search(search, &start, |member, _| serves_five(member)).unwrap()
}

/// What is found without an interruption, and by how many runs.
fn whole(search: &Search) -> (Vec<Capacity>, usize) {
    let folder = Folder::new();
    let mut campaign = begin(&folder, search, Some(7));
    assert_eq!(campaign.carry_out(&mut Audience::default()).unwrap(), Ended::Complete);
    (campaign.found(), folder.runs(campaign.id()).len())
}

#[test]
fn it_finds_what_the_server_bears_and_measures_shares_of_that() {
    let (found, runs) = whole(&search(&[0.5, 2.0]));
    let [found] = &found[..] else { panic!("{found:?}") };
    let (met, limit) = (found.met.unwrap(), found.limit.clone().unwrap());
    assert_eq!((met.0, limit.0, found.next), (5, 6, None));
    assert!(matches!(limit.1, Limit::Goal(ms) if (ms - 90.0).abs() < 1.0), "{limit:?}");
    let shares: Vec<_> = found.shares.iter().map(|share| (share.load, share.is_measured.clone())).collect();
    assert_eq!(shares, [(3, Ok(true)), (10, Ok(true))]);
    // 2, 4, 8, 6, 5, then 3 and 10, each twice.
    assert_eq!(runs, 14);
}

#[test]
fn wherever_it_is_interrupted_it_tells_where_and_finds_the_same() {
    let search = search(&[2.0]);
    let (expected, runs) = whole(&search);
    for done in 1..runs {
        let folder = Folder::new();
        // Of a block now one run is left, and now another.
        let mut campaign = begin(&folder, &search, Some(done as u64));
        assert_eq!(campaign.carry_out(&mut Audience::until(done)).unwrap(), Ended::Interrupted);
        let (stopped, id) = (campaign.found().remove(0), campaign.id());
        let is_pending = stopped.next.is_some() || stopped.shares.iter().any(|share| share.is_measured == Ok(false));
        assert!(is_pending, "{done}: {stopped:?}");
        drop(campaign);
        let header = archive::header(&folder.store(), id).unwrap();
        let planned: Vec<u32> = header.experiments.iter().flat_map(|experiment| experiment.clients.clone()).collect();
        assert_eq!(planned.len(), done / 2 + 1, "{done}: its header has what is planned by now: {planned:?}");
        let mut campaign = begin(&folder, &search, None);
        assert_eq!(campaign.carry_out(&mut Audience::default()).unwrap(), Ended::Complete);
        assert_eq!(campaign.place.tries.len(), runs - done);
        assert_eq!((campaign.found(), campaign.id()), (expected.clone(), id));
        assert_eq!((folder.runs(id).len(), folder.rows().len()), (runs, 1));
    }
}

#[test]
fn another_goal_or_range_is_another_search() {
    let folder = Folder::new();
    let interrupted = |search: &Search| {
        let mut campaign = begin(&folder, search, Some(7));
        campaign.carry_out(&mut Audience::until(1)).unwrap();
        campaign.id()
    };
    let first = search(&[]);
    let other_goal = Search { goal: Assertion::parse("latency(websocket) < 60 ms").unwrap(), ..first.clone() };
    let other_range = Search { max: 65, ..first.clone() };
    assert_eq!([&first, &other_goal, &other_range].map(interrupted), [1, 2, 3]);
    assert_eq!(interrupted(&other_range), 3);
    let mut matrix = folder.open(&[first.experiment], &folder.start(), |member, _| serves_five(member)).unwrap();
    matrix.carry_out(&mut Audience::until(1)).unwrap();
    assert_eq!(matrix.id(), 4, "a search is no matrix of the same experiment");
}

#[test]
fn a_generator_at_its_end_is_no_capacity_of_the_server() {
    let folder = Folder::new();
    let void = |member: &Member<'_>, _| match member.planned.cell.clients {
        ..4 => serves_five(member),
        _ => warned(member, &[WarningCode::Lateness]),
    };
    let mut campaign = folder.search(&search(&[2.0]), &folder.start(), void).unwrap();
    campaign.carry_out(&mut Audience::default()).unwrap();
    let found = campaign.found().remove(0);
    assert_eq!((found.met.map(|met| met.0), found.limit, found.shares), (Some(3), Some((4, Limit::Generator)), vec![]));
    assert!(folder.runs(1).iter().all(|run| run.attempts == if run.cell.clients < 4 { 1 } else { 3 }));
}
