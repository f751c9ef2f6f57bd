//! Nothing periodic is in phase with anything else.

use crate::campaign::Place;
use serde_json::Value;

/// Pings beside a feed, with five milliseconds more before the load and without: judged by the program itself, with half
/// of the file's repeats. That times of pings are in phase with no period is `ping_times`' to show; that nothing else
/// brings it in again is shown on a quiet machine. A busy one has figures, too, but their intervals may be too wide to
/// decide; a difference that is shown is one that the instrument made.
#[test]
fn response_time_does_not_follow_from_when_the_load_begins() {
    let place = Place::new("phases");
    // Else a generator that a busy machine holds up has no figures, and nothing is judged.
    let lenient =
        "generator_limits = { turn_p99_ms_max = 10000, lateness_p99_ms_max = 10000, share_percent_max = 1000 }";
    let experiment = include_str!("../../../../tests/phases.toml");
    let experiment = experiment.replace("repeats = 20", &format!("repeats = 10\n{lenient}"));
    std::fs::write(place.path("phases.toml"), experiment).unwrap();
    let output = place.run(&["run", "phases.toml", "--json", "--quiet", "--seed", "1"]);
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let found = report["experiments"][0]["expectations"].as_array().unwrap();
    let judged = |one: &Value| one["judged"][0].clone();
    let verdicts: Vec<String> = found.iter().map(|one| format!("{}: {}", one["assertion"], judged(one))).collect();
    println!("{verdicts:#?}");
    assert_eq!(found.len(), 3);
    for one in found.iter().map(judged) {
        let is_judged = one["figures"].as_array().is_some_and(|figures| !figures.is_empty());
        assert!(is_judged && one["outcome"] != "refuted", "{verdicts:#?}");
    }
}
