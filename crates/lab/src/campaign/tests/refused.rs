//! What cannot share a server or go side by side is refused before anything is planned.

use super::scripted::try_experiment;

fn are_refused(base: &[(&str, &str)], wrong: &[(&[(&str, &str)], &str)]) {
    for (changes, why) in wrong {
        let error = try_experiment(&[base, changes].concat()).unwrap_err();
        assert!(error.contains(why), "{changes:?}: {error}");
    }
}

const IDLE: (&str, &str) = ("scenario", "{ kind = \"idle\" }");

#[test]
fn what_cannot_share_a_start_is_refused() {
    let back_end = ("scenario", "{ kind = \"feed\", interval_us = 5000, payload_bytes = 173 }");
    are_refused(
        &[],
        &[
            (&[("blocks", "3"), ("repeats", "4")], "must be a multiple of it"),
            (&[("blocks", "0")], "must be a multiple of it"),
            (&[("blocks", "1"), back_end], "a feed's back end lasts for one run"),
            (&[("blocks", "1"), IDLE, ("baseline_ms", "10")], "is measured before the first client"),
            (&[("blocks", "1"), IDLE, ("networks", "[\"4g\"]")], "a network is made for each run"),
        ],
    );
}

#[test]
fn what_cannot_take_turns_is_refused() {
    let request = ("scenario", "{ kind = \"request\", payload_bytes = 173 }");
    are_refused(
        &[("turns_ms", "50")],
        &[
            (&[IDLE], "a load that can be divided"),
            (&[request], "a load that can be divided"),
            (&[("networks", "[\"4g\"]")], "cannot have networks"),
            (&[("at_once", "\"variants\"")], "at once or take turns"),
            (&[("shape", "{ kind = \"ramp\", from = 0.5, to = 1.0 }")], "the shape must be steady"),
        ],
    );
    are_refused(
        &[],
        &[
            (&[("turns_ms", "5")], "from 20 to 10000"),
            (&[("turns_ms", "1000")], "phases.load_ms must be at least"),
            (
                &[("at_once", "\"variants\""), ("soak_minutes", "1")],
                "at_once: runs that go side by side cannot have soak_minutes",
            ),
        ],
    );
}
