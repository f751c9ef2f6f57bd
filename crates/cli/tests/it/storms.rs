//! Storms in which our server itself is started again.

use crate::campaign::{Place, write_program};
use serde_json::Value;

const CLIENTS: u64 = 6;
const MISSED: u64 = 12;

/// The runs of an experiment with a variant for each outage, by the variant's name.
fn runs(place: &Place, subject: &str, transports: &str, outages: &[&str]) -> Vec<(String, Value)> {
    let variant = |outage: &&str| {
        format!(
            "{{ name = \"{outage}\", scenario = {{ kind = \"storm\", missed = {MISSED}, payload_bytes = 100, outage = \
             \"{outage}\" }} }}"
        )
    };
    let variants: Vec<String> = outages.iter().map(variant).collect();
    place.experiment(&[
        ("scenario", &format!("{{ kind = \"storm\", missed = {MISSED}, payload_bytes = 100 }}")),
        ("variants", &format!("[{}]", variants.join(", "))),
        ("subjects", &format!("[\"{subject}\"]")),
        ("transports", transports),
        ("clients", &format!("[{CLIENTS}]")),
        ("prober", "false"),
        ("server_options", "[\"--drain-window\", \"100ms\"]"),
        (
            "phases",
            "{ connect_ms = 10000, idle_ms = 100, warm_up_ms = 400, load_ms = 4000, drain_ms = 20000, after_ms = 600 }",
        ),
    ]);
    place.report(&["--seed", "3"]);
    let of_variant = |run: Value| (run["cell"]["variant"].as_str().unwrap().to_owned(), run);
    place.exported("test").into_iter().map(of_variant).collect()
}

/// One column of what was sampled in a run.
fn column(run: &Value, series: &str, name: &str) -> Vec<u64> {
    let named =
        |all: &Value, name: &str| all.as_array().unwrap().iter().find(|one| one["name"] == name).unwrap().clone();
    let column = named(&named(&run["series"], series)["columns"], name);
    column["values"]["integers"].as_array().unwrap().iter().filter_map(Value::as_u64).collect()
}

#[test]
fn a_server_that_is_started_again_is_followed_and_says_what_it_has_lost() {
    let place = Place::new("storm-restart");
    let runs = runs(&place, "pushlab", "[\"websocket\", \"sse\"]", &["restart", "kill", "takeover"]);
    assert_eq!(runs.len(), 6);
    for (outage, run) in runs {
        assert_eq!(run["outcome"]["outcome"], "completed", "{run:#}");
        let count = |name: &str| run["counts"][name].as_u64().unwrap();
        let figure = |name: &str| run["figures"][name]["value"].as_f64().unwrap();
        // The new process has what was published to it, and what was before only if it took over.
        let told = if outage == "takeover" { 0 } else { CLIENTS };
        let all = CLIENTS * MISSED;
        let what = format!("{outage} {}", run["cell"]["transport"]);
        assert_eq!((count("published"), count("delivered"), count("told_gap")), (MISSED, all, told), "{what}");
        assert_eq!((count("lost"), count("lost_told")), (0, 0), "{what}");
        assert_eq!((count("duplicated"), count("recovered_falsely")), (0, 0), "{what}");
        assert_eq!(figure("caught_up"), 100.0, "{what}");
        // Whoever is killed says nothing.
        assert_eq!(count("told_when"), if outage == "kill" { 0 } else { CLIENTS }, "{what}");
        let codes: Vec<&str> =
            run["warnings"].as_array().unwrap().iter().filter_map(|warning| warning["code"].as_str()).collect();
        assert!(!codes.contains(&"subject-restarted") && !codes.contains(&"connection-cut"), "{what}: {codes:?}");
        // Counters go on from where those of the process before were, and samples are of the one that lives.
        let accepted = column(&run, "counters", "accepted");
        assert!(accepted.is_sorted() && *accepted.last().unwrap() >= 2 * CLIENTS, "{what}: {accepted:?}");
        assert!(figure("memory_after") > 0.0, "{what}");
    }
}

#[test]
fn a_server_that_does_not_come_back_has_failed() {
    let place = Place::new("storm-once");
    let (program, marker) = (place.path("once"), place.path("was-started"));
    let serve = format!("if [ \"$1\" = serve ]; then [ -e {0} ] && exit 3; touch {0}; fi", marker.display());
    let script = format!("#!/bin/sh\n{serve}\nexec {} \"$@\"\n", env!("CARGO_BIN_EXE_pushlab"));
    write_program(&program, &script);
    let runs = runs(&place, &format!("once={}", program.display()), "[\"websocket\"]", &["kill"]);
    let outcome = &runs[0].1["outcome"];
    assert_eq!((&outcome["outcome"], &outcome["phase"]), (&"failed".into(), &"load".into()), "{outcome}");
    let reason = outcome["reason"].as_str().unwrap();
    assert_eq!(reason, "after the kill: the subject did not get ready: it ended with exit code 3");
}
