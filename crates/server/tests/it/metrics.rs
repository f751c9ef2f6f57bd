//! The page for Prometheus.

use crate::harness::client::{Client, Kind};
use crate::harness::http::Http;
use crate::harness::{Subject, until};
use crate::strict;

#[test]
fn metrics_tell_what_the_counters_tell() {
    let server = Subject::start(1, |_| {});
    let mut client = Client::open(server.address(), Kind::Sse, "channel=a");
    let mut http = Http::connect(server.address());
    http.publish_times(3, "a", "1");
    (0..3).for_each(|_| drop(client.next()));
    until("the counters are written", || server.stats().sent == 3);
    let answer = http.get("/metrics");
    assert_eq!(answer.status, 200);
    assert!(answer.head.contains("Content-Type: text/plain; version=0.0.4; charset=utf-8\r\n"), "{}", answer.head);
    let families = strict::parse(&answer.body);
    let value = |name: &str| families[name].value(&[]).unwrap_or_else(|| panic!("{name} has no value"));
    assert_eq!(value("pushlab_publications_received_total"), 3.0);
    assert_eq!(value("pushlab_deliveries_sent_total"), 3.0);
    assert_eq!(value("pushlab_open_connections"), 2.0);
    assert_eq!(value("pushlab_history_bytes"), server.stats().history_bytes as f64);
    assert_eq!(families["pushlab_connections"].value(&[("transport", "sse")]), Some(1.0));
    assert_eq!(families["pushlab_connections"].value(&[("transport", "websocket")]), Some(0.0));
    assert_eq!(families["pushlab_build_info"].value(&[("version", env!("CARGO_PKG_VERSION"))]), Some(1.0));
    assert!(value("process_cpu_seconds_total") > 0.0 && value("process_resident_memory_bytes") > 1e6);
    assert!(value("process_start_time_seconds") > 1e9);
}

/// `/stats` and `/metrics` come from one table; a number in the one that is not in the other has been forgotten.
#[test]
fn every_counter_is_a_metric() {
    let server = Subject::start(2, |_| {});
    let mut http = Http::connect(server.address());
    let stats: serde_json::Value = serde_json::from_str(&http.get("/stats").body).unwrap();
    let numbers = stats.as_object().unwrap().iter().filter(|(name, v)| v.is_number() && *name != "t_ns").count();
    let families = strict::parse(&http.get("/metrics").body);
    let own = families.keys().filter(|name| name.starts_with("pushlab_")).count();
    assert_eq!(
        own,
        numbers + ["connections", "refused_tokens", "build_info", "event_loops"].len(),
        "{stats:#}\n{:?}",
        families.keys()
    );
    assert!(families["process_open_fds"].samples.is_empty(), "two loops have tables of their own");
}

#[test]
fn metrics_take_get_and_head() {
    let server = Subject::start(1, |_| {});
    let mut http = Http::connect(server.address());
    let head = http.head("/metrics");
    assert_eq!((head.status, head.head.contains("version=0.0.4")), (200, true), "{}", head.head);
    let refused = http.post("/metrics", "1");
    assert_eq!((refused.status, refused.head.contains("Allow: GET\r\n")), (405, true));
    assert_eq!(http.get("/metrics?x=y").status, 200, "the connection is still in step");
}
