//! Campaigns that are interrupted at every point, whose lab dies, whose disk is full, whose workers are gone: they go on.

use super::scripted::{Audience, Folder, experiment, good, warned};
use crate::archive::ArchiveError;
use crate::campaign::{CampaignError, Ended, Start};
use crate::run::Executed;
use pushlab_bus::CrewError;
use pushlab_experiment::Experiment;
use pushlab_stats::WarningCode;
use pushlab_store::{Run, StoreError};
use std::panic::{AssertUnwindSafe, catch_unwind};

const RUNS: usize = 6;

fn experiments() -> [Experiment; 1] {
    [experiment(&[("repeats", "3")])]
}

/// How a campaign of a known order begins.
fn seeded(folder: &Folder) -> Start {
    Start { seed: Some(7), ..folder.start() }
}

/// What was measured, and what not.
fn identity(runs: &[Run]) -> Vec<(u32, u32, u64, String)> {
    runs.iter().map(|run| (run.place, run.repeat, run.seed, format!("{:?}", run.cell))).collect()
}

/// The runs of a campaign that nothing disturbs.
fn undisturbed() -> Vec<Run> {
    let folder = Folder::new();
    let mut campaign = folder.open(&experiments(), &seeded(&folder), |member, _| good(member)).unwrap();
    campaign.carry_out(&mut Audience::default()).unwrap();
    folder.runs(campaign.id())
}

/// Goes on to the end without a word of the seed; the runs from before are as they were, and only the others are tried.
fn goes_on(folder: &Folder, before: &[Run]) {
    let mut campaign = folder.open(&experiments(), &folder.start(), |member, _| good(member)).unwrap();
    let mut audience = Audience::default();
    assert_eq!(campaign.carry_out(&mut audience).unwrap(), Ended::Complete);
    assert_eq!(audience.begun, [(RUNS, before.len())]);
    let left: Vec<Vec<u32>> = (before.len() as u32 + 1..=RUNS as u32).map(|order| vec![order]).collect();
    assert_eq!(campaign.place.tries, left);
    let runs = folder.runs(campaign.id());
    assert_eq!(&runs[..before.len()], before);
    assert_eq!(identity(&runs), identity(&undisturbed()));
    let rows = folder.rows();
    assert!(rows.len() == 1 && rows[0].is_complete, "{rows:?}");
}

#[test]
fn whenever_it_is_interrupted_the_same_command_goes_on() {
    for done in 0..RUNS {
        let folder = Folder::new();
        let mut campaign = folder.open(&experiments(), &seeded(&folder), |member, _| good(member)).unwrap();
        assert_eq!(campaign.carry_out(&mut Audience::until(done)).unwrap(), Ended::Interrupted);
        assert_eq!(campaign.is_empty(), done == 0);
        let id = campaign.id();
        drop(campaign);
        let before = folder.runs(id);
        assert_eq!((before.len(), folder.rows()[0].is_complete), (done, false));
        goes_on(&folder, &before);
    }
}

#[test]
fn it_comes_to_its_end_by_one_run_at_a_time() {
    let folder = Folder::new();
    for done in 0..RUNS {
        let mut campaign = folder.open(&experiments(), &seeded(&folder), |member, _| good(member)).unwrap();
        assert_eq!(campaign.carry_out(&mut Audience::until(1)).unwrap() == Ended::Complete, done == RUNS - 1);
    }
    let before = folder.runs(1);
    assert_eq!(identity(&before), identity(&undisturbed()));
    assert_eq!(folder.rows().len(), 1);
}

/// As when it is killed: nothing is said, and nothing is put in order.
#[test]
fn whenever_the_lab_dies_the_same_command_goes_on() {
    for dies_in in 1..=RUNS {
        let folder = Folder::new();
        let mut campaign = folder
            .open(&experiments(), &seeded(&folder), move |member, _| {
                if member.planned.order as usize == dies_in {
                    std::panic::resume_unwind(Box::new("killed"));
                }
                good(member)
            })
            .unwrap();
        let id = campaign.id();
        catch_unwind(AssertUnwindSafe(|| campaign.carry_out(&mut Audience::default()))).unwrap_err();
        drop(campaign);
        let before = folder.runs(id);
        assert_eq!(before.len(), dies_in - 1);
        goes_on(&folder, &before);
    }
}

#[test]
fn whichever_record_finds_no_room_the_same_command_goes_on() {
    for room in 0..RUNS {
        let folder = Folder::new();
        let mut campaign = folder.open(&experiments(), &seeded(&folder), |member, _| good(member)).unwrap();
        let id = campaign.id();
        folder.fill_after(room);
        let mut audience = Audience::default();
        let error = campaign.carry_out(&mut audience).unwrap_err();
        assert!(matches!(error, CampaignError::Archive(ArchiveError::Store(_))), "{error}");
        let kept: Vec<u32> = (1..=room as u32).collect();
        assert_eq!((audience.recorded, campaign.place.tries.len()), (kept, room + 1), "only what is kept is told");
        drop(campaign);
        // Still full: still said, and nothing is lost.
        let mut campaign = folder.open(&experiments(), &folder.start(), |member, _| good(member)).unwrap();
        campaign.carry_out(&mut Audience::default()).unwrap_err();
        drop(campaign);
        folder.make_room();
        let before = folder.runs(id);
        assert_eq!(before.len(), room);
        goes_on(&folder, &before);
    }
}

#[test]
fn a_run_that_is_interrupted_in_a_later_try_has_no_record() {
    let folder = Folder::new();
    let mut campaign = folder
        .open(&experiments(), &seeded(&folder), |member, number| match (member.planned.order, number) {
            (3, 1) => warned(member, &[WarningCode::Lateness]),
            (3, _) => Executed::Interrupted,
            _ => good(member),
        })
        .unwrap();
    assert_eq!(campaign.carry_out(&mut Audience::default()).unwrap(), Ended::Interrupted);
    let id = campaign.id();
    drop(campaign);
    let before = folder.runs(id);
    assert_eq!(before.len(), 2);
    goes_on(&folder, &before);
}

#[test]
fn without_workers_it_ends_and_says_how_to_go_on() {
    let folder = Folder::new();
    let mut campaign = folder
        .open(&experiments(), &seeded(&folder), |member, _| match member.planned.order {
            4 => Executed::Unmanned(CrewError::Away { address: "nats://127.0.0.1:4222".to_owned(), away_s: 30 }),
            _ => good(member),
        })
        .unwrap();
    let error = campaign.carry_out(&mut Audience::default()).unwrap_err();
    assert!(matches!(error, CampaignError::Fleet(_)), "{error}");
    assert!(error.to_string().ends_with("; the same command then continues with the missing runs"), "{error}");
    let id = campaign.id();
    drop(campaign);
    let before = folder.runs(id);
    assert_eq!(before.len(), 3);
    goes_on(&folder, &before);
}

#[test]
fn what_is_another_campaign_begins_anew_and_leaves_the_first_as_it_was() {
    let folder = Folder::new();
    let interrupted = |experiments: &[Experiment], start: &Start| {
        let mut campaign = folder.open(experiments, start, |member, _| good(member)).unwrap();
        campaign.carry_out(&mut Audience::until(2)).unwrap();
        campaign.id()
    };
    let first = interrupted(&experiments(), &seeded(&folder));
    let before = folder.runs(first);
    let fresh = Start { is_fresh: true, ..seeded(&folder) };
    let other_seed = Start { seed: Some(8), ..folder.start() };
    let other_name = Start { name: "other".to_owned(), ..seeded(&folder) };
    assert_eq!(interrupted(&experiments(), &fresh), 2);
    assert_eq!(interrupted(&experiments(), &other_seed), 3);
    assert_eq!(interrupted(&experiments(), &other_name), 4);
    assert_eq!(interrupted(&[experiment(&[("repeats", "4")])], &folder.start()), 5);
    assert_eq!(folder.runs(first), before);
    assert_eq!(interrupted(&experiments(), &other_seed), 3, "the one that has this seed");
    let (_, runs) = folder.carry_out(&experiments(), |member, _| good(member));
    assert_eq!((runs, folder.runs(3).len()), (folder.runs(3), RUNS), "the latest of the same");
    assert_eq!(interrupted(&experiments(), &folder.start()), 6, "it was complete");
}

#[test]
fn what_measured_nothing_is_discarded_whole() {
    let folder = Folder::new();
    let mut campaign = folder.open(&experiments(), &folder.start(), |member, _| good(member)).unwrap();
    std::fs::create_dir_all(campaign.folder()).unwrap();
    assert_eq!(campaign.carry_out(&mut Audience::until(0)).unwrap(), Ended::Interrupted);
    assert!(campaign.is_empty() && folder.rows().len() == 1);
    campaign.discard().unwrap();
    assert!(folder.rows().is_empty());
    assert_eq!(std::fs::read_dir(folder.path("results")).unwrap().count(), 0);
}

#[test]
fn while_one_is_carried_out_no_other_begins_or_goes_on() {
    let folder = Folder::new();
    let mut campaign = folder.open(&experiments(), &seeded(&folder), |member, _| good(member)).unwrap();
    campaign.carry_out(&mut Audience::until(1)).unwrap();
    for is_fresh in [false, true] {
        let start = Start { is_fresh, ..folder.start() };
        let refused = folder.open(&experiments(), &start, |member, _| good(member)).err().unwrap();
        let CampaignError::Archive(ArchiveError::Store(StoreError::Measuring { pid, .. })) = refused else {
            panic!("{refused}")
        };
        assert_eq!(pid, Some(std::process::id()));
    }
    assert_eq!(folder.rows().len(), 1);
    assert_eq!(campaign.carry_out(&mut Audience::default()).unwrap(), Ended::Complete);
    assert_eq!(folder.runs(1).len(), RUNS);
}
