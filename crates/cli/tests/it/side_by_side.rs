//! Runs that go side by side: in turns, or all at once.

use crate::campaign::Place;
use serde_json::Value;
use std::collections::BTreeSet;

const FEED: &str = "{ kind = \"feed\", interval_us = 5000, payload_bytes = 173 }";
const PHASES: &str =
    "{ connect_ms = 10000, idle_ms = 100, warm_up_ms = 100, load_ms = 600, drain_ms = 3000, after_ms = 0 }";

#[test]
fn cells_of_a_repeat_take_turns_side_by_side() {
    let place = Place::new("turns");
    place.experiment(&[
        ("scenario", FEED),
        ("phases", PHASES),
        ("repeats", "2"),
        ("turns_ms", "60"),
        ("transports", "[\"websocket\", \"polling\"]"),
        ("polling", "{ interval_ms = 50 }"),
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
            assert!(run["figures"].get("memory_kernel").is_none(), "that is the machine's");
            let is_polling = run["cell"]["transport"] == "polling";
            assert_eq!(run["warnings"].to_string().contains("\"polled-in-turns\""), is_polling, "{run:#}");
            assert_eq!(run["figures"].get("latency_median").is_none(), is_polling);
            // Two clients, each every 50 ms of 540 in 1,200.
            let polls = count("polls");
            assert!(!is_polling || (18..=26).contains(&polls), "{polls}");
        }
    }
}

#[test]
fn closed_loops_take_turns_and_their_rate_is_that_of_their_turns() {
    let place = Place::new("turns-of-loops");
    place.experiment(&[
        ("scenario", "{ kind = \"fan-out\", publishers = 2, payload_bytes = 173 }"),
        ("phases", PHASES),
        ("repeats", "1"),
        ("turns_ms", "60"),
        ("prober", "false"),
        ("transports", "[\"websocket\", \"sse\"]"),
    ]);
    let (report, code) = place.report(&["--seed", "3"]);
    assert_eq!(code, 0, "{report:#}");
    for run in place.exported("test") {
        assert_eq!(run["outcome"]["outcome"], "completed", "{run:#}");
        let count = |name: &str| run["counts"][name].as_u64().unwrap();
        assert_eq!(count("lost"), 0, "{run:#}");
        // 1.2 s of load, of which 45 % are its own; what was under way when the load ended is not in the rate.
        let rate = run["figures"]["delivered"]["value"].as_f64().unwrap();
        let all = count("delivered") as f64 / (1.2 * 0.45);
        assert!(count("published") > 0 && rate > 0.9 * all && rate < 1.1 * all, "{rate} {all}");
    }
}

#[test]
fn cells_of_a_repeat_have_their_load_at_once() {
    let place = Place::new("at-once");
    place.experiment(&[
        ("scenario", FEED),
        ("phases", PHASES),
        ("repeats", "1"),
        ("at_once", "\"transports\""),
        ("baseline_ms", "100"),
        ("variants", "[{ name = \"one\" }, { name = \"other\", polling = { interval_ms = 100 } }]"),
        ("transports", "[\"websocket\", \"polling\"]"),
    ]);
    let (report, code) = place.report(&["--seed", "3"]);
    assert_eq!(code, 0, "{report:#}");
    let runs = place.exported("test");
    assert_eq!(runs.len(), 4);
    let load = |run: &Value| {
        let phases = run["phases"].as_array().unwrap().iter();
        phases.clone().find(|phase| phase["name"] == "load").unwrap()["start_ns"].as_u64().unwrap()
    };
    let mut begins = BTreeSet::new();
    for variant in ["one", "other"] {
        let pair: Vec<&Value> = runs.iter().filter(|run| run["cell"]["variant"] == variant).collect();
        assert_eq!(load(pair[0]), load(pair[1]), "the load of both begins at the same instant");
        begins.insert(load(pair[0]));
        for run in pair {
            assert_eq!(run["outcome"]["outcome"], "completed", "{run:#}");
            let count = |name: &str| run["counts"][name].as_u64().unwrap();
            assert!((115..=125).contains(&count("published")), "all of the load phase: {}", count("published"));
            assert_eq!(count("lost") + count("unsent"), 0);
            assert_eq!(run["document"]["side_by_side"], 2);
            assert!(run["document"]["plan"]["turns"].is_null());
            assert!(run["figures"].get("memory_kernel").is_none(), "that is the machine's");
        }
    }
    assert_eq!(begins.len(), 2, "each variant by itself");
}
