//! Proxies between clients and server: what gets through, and that nothing of them stays.

use crate::campaign::Place;
use serde_json::Value;

const FEED: &str = "{ kind = \"feed\", interval_us = 50000, payload_bytes = 173, by = \"publisher\" }";
const PHASES: &str =
    "{ connect_ms = 2000, idle_ms = 10, warm_up_ms = 100, load_ms = 500, drain_ms = 1500, after_ms = 0 }";

/// The signs of the first row of the card, by the option's label.
fn works(report: &Value) -> Vec<(String, bool)> {
    let row = &report["card"]["rows"][0];
    let option = |(at, option): (usize, &Value)| {
        let has_failed = row["failures"].get(option["key"].as_str().unwrap()).is_some();
        assert_ne!(has_failed, row["cells"][at].is_object(), "{row:#}");
        (option["label"].as_str().unwrap().to_owned(), !has_failed)
    };
    report["card"]["options"].as_array().unwrap().iter().enumerate().map(option).collect()
}

fn through(name: &str, changes: &[(&str, &str)]) -> (Value, Place) {
    let place = Place::new(name);
    let card = "[{ title = \"Through it\", metric = \"delivered_share\", works = true }]";
    let mut all = vec![("scenario", FEED), ("phases", PHASES), ("prober", "false"), ("blocks", "1"), ("card", card)];
    all.extend(changes);
    place.experiment(&all);
    let (report, code) = place.report(&[]);
    assert_eq!(code, 0, "what does not get through is an answer: {report:#}");
    (report, place)
}

#[test]
fn a_proxy_that_buffers_lets_whole_answers_through() {
    let transports = "[\"websocket\", \"sse\", \"long-polling\"]";
    let (report, place) = through("proxy-buffering", &[("through", "\"buffering\""), ("transports", transports)]);
    let found = works(&report);
    let expected = [("websocket", false), ("sse", false), ("long-polling", true)];
    assert_eq!(found, expected.map(|(label, works)| (label.to_owned(), works)));
    let runs = place.exported("test");
    let failed = runs.iter().filter(|run| run["outcome"]["outcome"] == "failed").count();
    assert_eq!((runs.len(), failed), (3, 2), "{runs:#?}");
}

/// Told nothing, nginx passes no upgrades on; it speaks HTTP/2 with clients, and our event streams tell it not to buffer.
#[test]
fn nginx_as_it_is_lets_streams_through_and_no_websockets() {
    let variants = "[{ name = \"http1\" }, { name = \"http2\", sockets = { tls = true, http_version = \"2\" } }]";
    let (report, place) = through(
        "proxy-nginx",
        &[
            ("through", "\"nginx\""),
            ("transports", "[\"websocket\", \"sse\"]"),
            ("sockets", "{ tls = true }"),
            ("variants", variants),
        ],
    );
    let found = works(&report);
    let expected = [("websocket", false), ("websocket · http2", false), ("sse", true), ("sse · http2", true)];
    assert_eq!(found, expected.map(|(label, works)| (label.to_owned(), works)));
    let folders = std::fs::read_dir(place.path("results")).unwrap().map(|entry| entry.unwrap().path());
    let left: Vec<_> =
        folders.flat_map(|folder| std::fs::read_dir(folder).unwrap()).map(|e| e.unwrap().path()).collect();
    assert!(left.iter().all(|path| path.extension().is_none_or(|end| end != "proxy")), "{left:?}");
}

#[test]
fn what_a_proxy_cannot_stand_before_is_refused() {
    let place = Place::new("proxy-refused");
    for (changes, why) in [
        (vec![("through", "\"buffering\""), ("sockets", "{ tls = true }")], "sockets.tls must be false"),
        (vec![("through", "\"nginx\""), ("networks", "[\"4g\"]")], "a proxy and networks cannot be combined"),
        (
            vec![("through", "\"nginx\""), ("subjects", "[\"a=http://127.0.0.1:1/\"]"), ("scenario", FEED)],
            "only in front of servers that it starts",
        ),
        (vec![("card", "[{ title = \"A\", metric = \"cpu\", works = true }]")], "has the metric delivered_share"),
    ] {
        place.experiment(&changes);
        let (code, error) = place.fails(&["run", "experiment.toml"]);
        assert!(code == 3 && error.contains(why), "{changes:?}: {code} {error}");
    }
}
