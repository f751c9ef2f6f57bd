//! In which order runs come, which servers they share, and which go side by side.

use super::scripted::{Audience, DELIVERIES, Folder, TRY_MS, clock, experiment, failed, good, try_experiment};
use crate::campaign::{CampaignError, Ended};
use crate::planner::Side;
use crate::run::Executed;
use crate::side_by_side::Member;
use crate::standing::Setup;
use pushlab_record::PlannedRun;
use pushlab_workload::scenario::Scenario;
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;

const BLOCKS: [(&str, &str); 3] = [
    ("repeats", "4"),
    ("blocks", "2"),
    ("variants", "[{ name = \"plain\" }, { name = \"small\", server_options = [\"--history-messages\", \"9\"] }]"),
];

#[test]
fn every_repeat_has_every_cell_and_servers_stay_up_for_their_block() {
    let folder = Folder::new();
    let experiments = [experiment(&BLOCKS)];
    let (place, runs) = folder.carry_out(&experiments, |member, _| good(member));
    assert_eq!(place.tries, (1..=16).map(|order| vec![order]).collect::<Vec<_>>());
    for repeat in runs.chunks(4) {
        assert!(repeat.iter().all(|run| run.repeat == repeat[0].repeat));
        let cells: BTreeSet<_> = repeat.iter().map(|run| (&run.cell.transport, &run.cell.variant)).collect();
        assert_eq!(cells.len(), 4, "{cells:?}");
    }
    let one_block = |block: &Vec<u32>| block.iter().all(|other| other == &block[0]);
    assert!(place.blocks.iter().all(one_block), "{:?}", place.blocks);
    let firsts: Vec<Option<u32>> = place.blocks.iter().map(|block| block.first().copied()).collect();
    let blocks = [1, 3].map(|repeat| Some(experiments[0].block_of(repeat)));
    assert_eq!(firsts, [blocks[0], blocks[1], None], "none is left at the end");
}

/// What a server is told when it starts, and in which block: runs that agree on it share one.
#[test]
fn runs_share_a_server_that_was_started_alike_in_their_block() {
    let experiment = experiment(&BLOCKS);
    let setup = |cell: usize, repeat: u32| {
        let cell = experiment.cells().remove(cell);
        let own = experiment.at(&cell);
        Setup::of(&PlannedRun { order: 1, cell, repeat, seed: 1 }, &own).unwrap().unwrap()
    };
    let (plain, small): (Vec<usize>, Vec<usize>) =
        (0..4).partition(|at| experiment.cells()[*at].variant.as_deref() == Some("plain"));
    assert_eq!(setup(plain[0], 1), setup(plain[1], 2), "over whatever transport");
    assert_ne!(setup(plain[0], 1), setup(small[0], 1), "with other options");
    assert_ne!(setup(plain[0], 2), setup(plain[0], 3), "in another block");
    let alone = try_experiment(&[]).unwrap();
    let run = PlannedRun { order: 1, cell: alone.cells().remove(0), repeat: 1, seed: 1 };
    assert_eq!(Setup::of(&run, &alone).unwrap(), None, "without blocks each run has its own");
}

#[test]
fn cells_that_take_turns_are_carried_out_at_once() {
    let folder = Folder::new();
    let sides = Rc::new(RefCell::new(Vec::new()));
    let seen = Rc::clone(&sides);
    let (place, runs) = folder.carry_out(&[experiment(&[("turns_ms", "60"), ("repeats", "2")])], move |member, _| {
        seen.borrow_mut().push((member.planned.order, member.side));
        good(member)
    });
    assert_eq!((place.tries, runs.len()), (vec![vec![1, 2], vec![3, 4]], 4));
    let side = |group, own| Some(Side { group, own, of: 2, turns_ms: Some(60) });
    assert_eq!(*sides.borrow(), [(1, side(1, 0)), (2, side(1, 1)), (3, side(3, 0)), (4, side(3, 1))]);
}

#[test]
fn each_variant_has_its_transports_at_once_by_itself() {
    let folder = Folder::new();
    let variants = "[{ name = \"one\" }, { name = \"other\", polling = { interval_ms = 100 } }]";
    let (place, runs) = folder
        .carry_out(&[experiment(&[("at_once", "\"transports\""), ("variants", variants)])], |member, _| good(member));
    assert_eq!(place.tries, [[1, 2], [3, 4]]);
    assert_eq!(runs[0].cell.variant, runs[1].cell.variant);
    assert_ne!(runs[1].cell.variant, runs[2].cell.variant);
}

#[test]
fn one_that_fails_beside_another_leaves_it_its_result() {
    let folder = Folder::new();
    let (place, runs) =
        folder.carry_out(&[experiment(&[("turns_ms", "60")])], |member, _| match member.planned.order {
            1 => Executed::Recorded(failed(member, "the subject did not get ready")),
            _ => good(member),
        });
    assert_eq!(place.tries, [[1, 2]]);
    let has_failed = |run: &pushlab_store::Run| run.outcome != pushlab_store::Outcome::Completed;
    assert_eq!(runs.iter().map(has_failed).collect::<Vec<_>>(), [true, false]);
}

/// One has room for its record, the one beside it has not: it goes on alone, in its own turns.
#[test]
fn one_that_is_left_of_those_beside_each_other_keeps_its_turns() {
    let folder = Folder::new();
    let experiments = [experiment(&[("turns_ms", "60")])];
    let mut campaign = folder.open(&experiments, &folder.start(), |member, _| good(member)).unwrap();
    folder.fill_after(1);
    let error = campaign.carry_out(&mut Audience::default()).unwrap_err();
    assert!(matches!(error, CampaignError::Archive(_)), "{error}");
    drop(campaign);
    folder.make_room();
    let sides: Rc<RefCell<Vec<Option<Side>>>> = Rc::default();
    let seen = Rc::clone(&sides);
    let (place, runs) = folder.carry_out(&experiments, move |member, _| {
        seen.borrow_mut().push(member.side);
        good(member)
    });
    assert_eq!((place.tries, runs.len()), (vec![vec![2]], 2));
    assert_eq!(*sides.borrow(), [Some(Side { group: 1, own: 1, of: 2, turns_ms: Some(60) })]);
}

/// Two experiments, the second of which is loaded with half of what the first delivers.
fn capacity_and_half() -> [pushlab_experiment::Experiment; 2] {
    let fan_out = ("scenario", "{ kind = \"fan-out\", publishers = 1, payload_bytes = 173 }");
    let half = ("capacity_share", "{ of = \"test\", share = 0.5 }");
    [experiment(&[fan_out, ("repeats", "2")]), experiment(&[("name", "\"half\""), half, ("repeats", "2")])]
}

#[test]
fn a_load_that_follows_from_others_comes_after_them_with_their_rate() {
    let folder = Folder::new();
    let loads: Rc<RefCell<Vec<(String, Scenario)>>> = Rc::default();
    let seen = Rc::clone(&loads);
    let (_, runs) = folder.carry_out(&capacity_and_half(), move |member: &Member<'_>, _| {
        seen.borrow_mut().push((member.planned.cell.experiment.to_string(), member.experiment.scenario.clone()));
        good(member)
    });
    assert_eq!(runs.len(), 8);
    for repeat in loads.borrow().chunks(4) {
        assert!(repeat[..2].iter().all(|(experiment, _)| experiment == "test"));
        for (experiment, scenario) in &repeat[2..] {
            let Scenario::Feed { interval_us, .. } = scenario else { panic!("{scenario:?}") };
            // To each of two clients.
            assert_eq!((experiment.as_str(), *interval_us), ("half", 2 * 2 * 1_000_000 / DELIVERIES));
        }
    }
}

#[test]
fn a_load_that_follows_from_what_failed_has_failed_without_a_try() {
    let folder = Folder::new();
    let (place, runs) = folder.carry_out(&capacity_and_half(), |member, _| match member.planned.order {
        1 => Executed::Recorded(failed(member, "the subject did not get ready")),
        _ => good(member),
    });
    assert_eq!((place.tries.len(), runs.len()), (7, 8));
    let transport = &runs[0].cell.transport;
    let of_repeat = |run: &&pushlab_store::Run| run.repeat == 1 && run.cell.experiment == "half";
    for run in runs.iter().filter(of_repeat) {
        let outcome = serde_json::to_value(&run.outcome).unwrap();
        let reason = outcome["reason"].as_str().unwrap_or_default();
        assert_eq!(reason.contains("no run of test in repeat 1"), run.cell.transport == *transport, "{reason}");
    }
    let untried = runs.iter().find(|run| !place.tries.contains(&vec![run.place])).unwrap();
    let before = place.tries.iter().filter(|tried| tried[0] < untried.place).count() as u64;
    assert_eq!(untried.started_at, clock(before * TRY_MS));
}

#[test]
fn who_watches_is_told_of_every_run_in_its_turn() {
    let folder = Folder::new();
    let experiments = [experiment(&[("repeats", "2")])];
    let mut campaign = folder.open(&experiments, &folder.start(), |member, _| good(member)).unwrap();
    let mut audience = Audience::default();
    assert_eq!(campaign.carry_out(&mut audience).unwrap(), Ended::Complete);
    assert_eq!((audience.begun, audience.run, audience.recorded), (vec![(4, 0)], vec![1, 2, 3, 4], vec![1, 2, 3, 4]));
    assert!(folder.rows()[0].is_complete);
}
