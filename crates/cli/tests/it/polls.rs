//! What polls bring, on our own server.

use crate::campaign::Place;

/// Nothing may be newer than the last message: not even what the back end says about the feed.
#[test]
fn polls_for_the_newest_message_get_the_last_one_too() {
    let place = Place::new("polls-newest");
    place.experiment(&[
        ("transports", "[\"polling\"]"),
        ("polling", "{ interval_ms = 20, newest = true }"),
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
