//! Runs that go side by side, in turns.

use crate::campaign::Place;
use serde_json::Value;
use std::collections::BTreeSet;

const FEED: &str = "{ kind = \"feed\", interval_us = 5000, payload_bytes = 173 }";
const PHASES: &str =
    "{ connect_ms = 10000, idle_ms = 100, warm_up_ms = 200, load_ms = 1200, drain_ms = 3000, after_ms = 0 }";

#[test]
fn cells_of_a_repeat_take_turns_side_by_side() {
    let place = Place::new("turns");
    place.experiment(&[
        ("scenario", FEED),
        ("phases", PHASES),
        ("repeats", "2"),
        ("turns_ms", "60"),
        ("transports", "[\"websocket\", \"sse\"]"),
    ]);
    let (report, code) = place.report(&["--seed", "3"]);
    assert_eq!(code, 0, "{report:#}");
    let runs = place.exported("test");
    assert_eq!(runs.len(), 4);
    for repeat in [1, 2] {
        let pair: Vec<&Value> = runs.iter().filter(|run| run["repeat"] == repeat).collect();
        let plans: Vec<&Value> = pair.iter().map(|run| &run["document"]["plan"]).collect();
        let turns: BTreeSet<u64> = plans.iter().filter_map(|plan| plan["turns"]["own"].as_u64()).collect();
        assert_eq!(turns, BTreeSet::from([0, 1]));
        let addresses: BTreeSet<&str> = plans.iter().filter_map(|plan| plan["target"]["address"].as_str()).collect();
        assert_eq!(addresses.len(), 2, "each has a server of its own: {addresses:?}");
        let load = |run: &Value| {
            let phases = run["phases"].as_array().unwrap().iter();
            phases.clone().find(|phase| phase["name"] == "load").unwrap()["start_ns"].as_u64().unwrap()
        };
        assert_eq!(load(pair[0]), load(pair[1]), "the load of both begins at the same instant");
        for run in pair {
            assert_eq!(run["outcome"]["outcome"], "completed", "{run:#}");
            let count = |name: &str| run["counts"][name].as_u64().unwrap();
            // Ten turns of 54 ms, in which there is something to deliver every 5 ms.
            assert!((100..=118).contains(&count("published")), "{}", count("published"));
            assert_eq!(count("lost") + count("unsent"), 0);
            assert!(run["figures"].get("memory_kernel").is_none(), "the kernel's memory is that of both");
        }
    }
}
