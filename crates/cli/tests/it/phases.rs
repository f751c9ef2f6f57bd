//! Nothing periodic is in phase with anything else.

use crate::campaign::Place;
use serde_json::Value;

/// Pings beside a feed, with five milliseconds more before the load and without: judged by the program itself, with half
/// of the file's repeats. A busy machine may leave it undecided; a difference that is shown is one that the instrument made.
#[test]
fn response_time_does_not_follow_from_when_the_load_begins() {
    let place = Place::new("phases");
    let experiment = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/phases.toml");
    let output = place.run(&["run", experiment, "--json", "--quiet", "--seed", "1", "--repeats", "10"]);
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let found = report["experiments"][0]["expectations"].as_array().unwrap();
    let judged = |one: &Value| one["judged"][0].clone();
    let verdict = |one: &Value| format!("{}: {} {}", one["assertion"], judged(one)["outcome"], judged(one)["detail"]);
    let verdicts: Vec<String> = found.iter().map(verdict).collect();
    println!("{verdicts:#?}");
    assert_eq!(found.len(), 3);
    assert!(found.iter().all(|one| judged(one)["outcome"] != "refuted"), "{verdicts:#?}");
}
