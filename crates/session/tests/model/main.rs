//! The guarantees of docs/protocol.md against everything that can happen to one event loop, in simulation.
//!
//! Publications, bytes cut anywhere, slow readers, timeouts, ends and restarts come in an order that a seed decides; what
//! clients read is held against a simple model. A failure names the seed and the step:
//! `PUSHLAB_MODEL_SEED=7 cargo test -p pushlab-session --test model` repeats it.

mod client;
mod event_loop;
mod fault;
mod link;
mod slow_log;
mod tally;
mod truth;
mod world;

use fault::Fault;
use tally::{Happening, Tally};
use world::World;

/// Runs without a fault: with the steps of each more than a million.
const SEEDS: u64 = 60;
const STEPS: u32 = 20_000;
/// Runs with each fault.
const FAULTY_SEEDS: u64 = 12;

/// The seeds of a part of the runs, or the one that was asked for.
fn seeds(part: u64, parts: u64) -> Vec<u64> {
    match std::env::var_os("PUSHLAB_MODEL_SEED") {
        Some(seed) => vec![seed.to_str().and_then(|seed| seed.parse().ok()).expect("PUSHLAB_MODEL_SEED is a number")],
        None => (0..SEEDS).filter(|seed| seed % parts == part).collect(),
    }
}

/// Runs the seeds of one policy; what can happen must have happened.
fn nothing_is_found(policy: u64) {
    let seeds = seeds(policy, 3);
    let mut sum = Tally::default();
    for &seed in &seeds {
        match World::new(seed, None).run(STEPS) {
            Ok(mut tally) => sum.take(&mut tally),
            Err(finding) => panic!("{finding}"),
        }
    }
    if seeds.len() > 1 {
        // Who is closed instead has nothing dropped.
        let closes = policy == 0;
        for (event, count) in sum.all().filter(|&(event, _)| !(closes && event == Happening::Drop)) {
            assert!(count > 0, "{event:?} never happened: {sum:?}");
        }
    }
}

#[test]
fn nothing_is_wrong_where_slow_subscribers_are_closed() {
    nothing_is_found(0);
}

#[test]
fn nothing_is_wrong_where_the_oldest_is_dropped() {
    nothing_is_found(1);
}

#[test]
fn nothing_is_wrong_where_channels_are_conflated() {
    nothing_is_found(2);
}

/// Runs with a fault: each must end with a finding, and most must say what it is. (A connection that is cut between two
/// publications that changed places has lost one.)
fn is_found(fault: Fault) {
    let mut others = Vec::new();
    for seed in 0..FAULTY_SEEDS {
        let Err(finding) = World::new(seed, Some(fault)).run(STEPS) else {
            panic!("seed {seed}: {fault:?} is not found")
        };
        if finding.kind != fault.kind() {
            others.push(finding.to_string());
        } else {
            assert!(finding.to_string().starts_with(&format!("{fault:?}: ")), "{finding}");
        }
    }
    assert!(others.len() < FAULTY_SEEDS as usize / 2, "{fault:?} is called {others:#?}");
}

#[test]
fn a_lost_publication_is_found() {
    is_found(Fault::Lost);
}

#[test]
fn a_doubled_publication_is_found() {
    is_found(Fault::Doubled);
}

#[test]
fn publications_out_of_order_are_found() {
    is_found(Fault::OutOfOrder);
}

#[test]
fn a_gap_that_is_not_told_is_found() {
    is_found(Fault::SilentGap);
}

#[test]
fn a_queue_beyond_its_limits_is_found() {
    is_found(Fault::Overfull);
}
