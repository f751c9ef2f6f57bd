//! Blocks: runs that share one start of their server.

use crate::campaign::Place;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// Of each repeat the runs for which the servers of its runs were started.
fn starts(runs: &[Value]) -> BTreeMap<u64, BTreeSet<u64>> {
    let mut starts: BTreeMap<u64, BTreeSet<u64>> = BTreeMap::new();
    for run in runs {
        let since = run["document"]["server_since"].as_u64().unwrap();
        starts.entry(run["repeat"].as_u64().unwrap()).or_default().insert(since);
    }
    starts
}

#[test]
fn runs_of_a_block_share_their_servers() {
    let place = Place::new("blocks");
    let feed = "{ kind = \"feed\", interval_us = 5000, payload_bytes = 173, by = \"publisher\" }";
    let phases = "{ connect_ms = 10000, idle_ms = 10, warm_up_ms = 50, load_ms = 150, drain_ms = 3000, after_ms = 0 }";
    // Two servers: the one kind of run needs another than the other.
    let variants = "[{ name = \"plain\" }, { name = \"small\", server_options = [\"--history-messages\", \"9\"] }]";
    place.experiment(&[
        ("scenario", feed),
        ("phases", phases),
        ("repeats", "4"),
        ("blocks", "2"),
        ("variants", variants),
        ("prober", "false"),
    ]);
    let (report, code) = place.report(&["--seed", "3"]);
    assert_eq!(code, 0, "{report:#}");
    let runs = place.exported("test");
    assert_eq!(runs.len(), 16);
    let outcomes: Vec<&Value> = runs.iter().map(|run| &run["outcome"]["outcome"]).collect();
    assert!(outcomes.iter().all(|outcome| **outcome == "completed"), "{outcomes:?}");
    let starts = starts(&runs);
    assert_eq!(starts[&1], starts[&2], "{starts:?}");
    assert_eq!(starts[&3], starts[&4], "{starts:?}");
    assert!(starts[&1].is_disjoint(&starts[&3]) && starts[&1].len() == 2, "{starts:?}");
    let address = |run: &Value| run["document"]["plan"]["target"]["address"].as_str().unwrap().to_owned();
    let addresses: BTreeSet<String> = runs.iter().map(address).collect();
    assert_eq!(addresses.len(), 4, "a start, an address");
}
