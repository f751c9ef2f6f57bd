//! What is measured, and therefore wants the machine for itself: the suite `link` runs this module alone.

use crate::campaign::Place;
use crate::networks::{carried, small, sum};
use pushlab_stats::Histogram;
use serde_json::Value;

const FAR: &str =
    "{ description = \"Far away\", source = \"this test\", down = { delay_ms = 80.0 }, up = { delay_ms = 80.0 } }";

/// All latencies of a run. The figures are withheld where a busy machine was late itself.
fn latencies(run: &Value) -> Histogram {
    serde_json::from_value(run["histograms"]["latency"].clone()).unwrap()
}

#[test]
fn what_a_network_is_like_shows_in_the_figures() {
    let place = Place::new("slow-link");
    small(&place, &[("networks", "[\"local\", \"far\"]"), ("transports", "[\"sse\"]"), ("network.far", FAR)]);
    for run in carried(&place, &[]).1 {
        let name = run["cell"]["network"].as_str().unwrap();
        let median = latencies(&run).quantile_ms(0.5).unwrap();
        assert!(if name == "far" { median > 80.0 } else { median < 80.0 }, "{name}: {median} ms");
    }
    let (code, error) = place.fails(&["run", "experiment.toml", "--network", "5g"]);
    assert!(code == 3 && error.contains("lan-100") && error.contains("far"), "{code}: {error}");
}

#[test]
fn two_writes_wait_for_a_delayed_acknowledgement_where_nagle_is_on() {
    let place = Place::new("nagle");
    let sockets = "{ writes_per_event = 2, nagle = true, delayed_acks = true }";
    let scenario = "{ kind = \"feed\", interval_us = 100000, payload_bytes = 60 }";
    // The first sixteen segments of a connection are acknowledged at once.
    let phases =
        "{ connect_ms = 10000, idle_ms = 100, warm_up_ms = 2500, load_ms = 1000, drain_ms = 3000, after_ms = 0 }";
    small(&place, &[("transports", "[\"sse\"]"), ("sockets", sockets), ("scenario", scenario), ("phases", phases)]);
    let median = latencies(&carried(&place, &["--fresh"]).1[0]).quantile_ms(0.5).unwrap();
    assert!(median >= 39.0, "Linux waits for 40 ms at least: {median}");
}

#[test]
fn acknowledgements_that_the_link_delays_hold_up_what_nagle_holds_back() {
    let place = Place::new("ack-delay");
    let sockets = "{ writes_per_event = 2, ack_delay_ms = 200, nagle = true }";
    let scenario = "{ kind = \"feed\", interval_us = 100000, payload_bytes = 60 }";
    let phases =
        "{ connect_ms = 10000, idle_ms = 100, warm_up_ms = 500, load_ms = 2000, drain_ms = 3000, after_ms = 0 }";
    small(&place, &[("transports", "[\"sse\"]"), ("sockets", sockets), ("scenario", scenario), ("phases", phases)]);
    let run = carried(&place, &["--fresh"]).1.remove(0);
    let whole = &run["document"]["network"]["whole"];
    assert_eq!(whole["down"]["clients"]["retransmitted_packets"], 0, "{whole:#}");
    assert_eq!(whole["up"]["clients"]["lost_packets"], 0, "{whole:#}");
    let mean = latencies(&run).mean_ms().unwrap();
    let changed = sum(whole, &["delayed_acks", "spared_acks"]);
    // What is sent waits for 200 ms, and two events 100 ms apart go together: one waits for 100 ms more than the other.
    assert!(mean > 40.0 && changed > 20, "{mean} ms, {changed}");
    small(&place, &[("networks", "[]"), ("sockets", "{ ack_delay_ms = 200 }")]);
    let (code, error) = place.fails(&["run", "experiment.toml"]);
    assert!(code == 3 && error.contains("sockets.ack_delay_ms") && error.contains("networks"), "{code}: {error}");
}
