//! What polls bring, on our own server.

use crate::campaign::Place;

/// Nothing may be newer than the last message: not even what the back end says about the feed.
#[test]
fn polls_for_the_newest_message_get_the_last_one_too() {
    let place = Place::new("polls-newest");
    place.experiment(&[
        ("transports", "[\"polling\"]"),
        ("polling", "{ interval_ms = 20, newest = 1 }"),
        ("scenario", "{ kind = \"feed\", interval_us = 500000, payload_bytes = 173 }"),
        (
            "phases",
            "{ connect_ms = 10000, idle_ms = 50, warm_up_ms = 50, load_ms = 1500, drain_ms = 2000, after_ms = 0 }",
        ),
    ]);
    let (report, code) = place.report(&[]);
    assert_eq!(code, 0, "{report:#}");
    let counts = &place.exported("test")[0]["counts"];
    assert_eq!((&counts["delivered"], &counts["lost"]), (&6.into(), &0.into()), "{counts:#}");
}

/// Each poll brings what the client has; that counts once, and is no news.
#[test]
fn polls_for_the_newest_messages_count_each_once() {
    let place = Place::new("polls-newest-several");
    place.experiment(&[
        ("transports", "[\"polling\"]"),
        ("polling", "{ interval_ms = 20, newest = 10 }"),
        ("scenario", "{ kind = \"chat\", interval_ms = 100, payload_bytes = 60, publishers = 1 }"),
        (
            "phases",
            "{ connect_ms = 10000, idle_ms = 50, warm_up_ms = 50, load_ms = 1500, drain_ms = 2000, after_ms = 0 }",
        ),
    ]);
    let (report, code) = place.report(&[]);
    assert_eq!(code, 0, "{report:#}");
    let run = &place.exported("test")[0];
    let counts = &run["counts"];
    assert_eq!((&counts["lost"], &counts["duplicated"]), (&0.into(), &0.into()), "{counts:#}");
    let empty = run["figures"]["empty_polls"]["value"].as_f64().unwrap();
    assert!(empty > 20.0, "a message comes with every fifth poll, and again with the others: {empty}");
}

/// Polls leave so long after each message, whatever the seed.
#[test]
fn polls_in_step_are_as_late_as_their_phase_says() {
    let place = Place::new("polls-in-step");
    place.experiment(&[
        ("transports", "[\"polling\"]"),
        ("repeats", "3"),
        ("polling", "{ interval_ms = 200, phase_ms = 150 }"),
        ("scenario", "{ kind = \"chat\", interval_ms = 200, payload_bytes = 60, publishers = 1 }"),
        (
            "phases",
            "{ connect_ms = 10000, idle_ms = 300, warm_up_ms = 200, load_ms = 1600, drain_ms = 2000, after_ms = 0 }",
        ),
    ]);
    let (report, code) = place.report(&[]);
    assert_eq!(code, 0, "{report:#}");
    for run in place.exported("test") {
        let mean = run["figures"]["latency_own_mean"]["value"].as_f64().unwrap();
        assert!(mean > 150.0, "a poll that left earlier brought a message: {mean}");
    }
}

/// Over `sse`, an echo opens a stream, which brings it and is closed.
#[test]
fn streamed_echoes_open_a_stream_each() {
    let place = Place::new("echoes-streamed");
    place.experiment(&[
        ("transports", "[\"sse\", \"websocket\"]"),
        ("scenario", "{ kind = \"echo\", interval_ms = 100, payload_bytes = 60, streamed = true }"),
        (
            "phases",
            "{ connect_ms = 10000, idle_ms = 50, warm_up_ms = 100, load_ms = 1000, drain_ms = 2000, after_ms = 0 }",
        ),
    ]);
    let (report, code) = place.report(&[]);
    assert_eq!(code, 0, "{report:#}");
    for run in place.exported("test") {
        let (counts, figures) = (&run["counts"], &run["figures"]);
        assert_eq!((&counts["delivered"], &counts["lost"]), (&counts["published"], &0.into()), "{counts:#}");
        let [opened, echoed] = ["connections_opened", "delivered"].map(|name| figures[name]["value"].as_f64().unwrap());
        match run["cell"]["transport"].as_str() {
            Some("sse") => {
                assert!((opened / echoed - 1.0).abs() < 0.3, "{opened} connections, {echoed} echoes a second")
            }
            other => assert_eq!((other, opened), (Some("websocket"), 0.0)),
        }
    }
}
