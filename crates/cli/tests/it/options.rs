//! What is asked for on the command line reaches the worker.

use crate::campaign::{Place, wait_for};
use serde_json::{Value, json};
use std::process::Stdio;

/// The plan that the first run's worker was given, and how many publications it made of it.
fn plan(place: &Place, arguments: &[&str]) -> (Value, u64) {
    place.prints(&[&["run", "experiment.toml", "--fresh", "--quiet"], arguments].concat());
    let run = &place.exported("test")[0];
    (run["document"]["plan"].clone(), run["counts"]["scheduled"].as_u64().unwrap())
}

#[test]
fn shapes_and_lengths_of_the_load_reach_the_worker() {
    let place = Place::new("shapes");
    place.experiment(&[("transports", "[\"websocket\"]")]);
    let (usual, scheduled) = plan(&place, &[]);
    assert_eq!((&usual["shape"], &usual["phases"]["load_ms"]), (&json!({ "kind": "steady" }), &json!(400)));
    assert_eq!(scheduled, 80);
    // In 300 ms there are 60 when it is steady.
    for (text, shape, publications) in [
        ("ramp:0.5..2", json!({ "kind": "ramp", "from": 0.5, "to": 2.0 }), 75),
        ("spike:3@100ms+50ms", json!({ "kind": "spike", "factor": 3.0, "at_ms": 100, "length_ms": 50 }), 80),
        ("step:0.5,1,2", json!({ "kind": "step", "factors": [0.5, 1.0, 2.0] }), 70),
    ] {
        let (plan, scheduled) = plan(&place, &["--shape", text, "--load", "300ms"]);
        assert!(scheduled.abs_diff(publications) <= 1, "{text}: {scheduled} publications, not {publications}");
        assert_eq!((&plan["shape"], &plan["phases"]["load_ms"]), (&shape, &json!(300)), "{text}");
    }
    let before = place.rows().len();
    for wrong in ["wave:1", "ramp:1", "spike:2", "step:"] {
        let (code, error) = place.fails(&["run", "experiment.toml", "--shape", wrong]);
        assert!(code == 2 && error.contains("ramp:0.1..2"), "{error}");
    }
    assert_eq!(place.fails(&["run", "experiment.toml", "--load", "long"]).0, 2);
    assert_eq!(place.rows().len(), before);
}

#[test]
fn what_makes_no_sense_is_refused_before_anything_runs() {
    let place = Place::new("senseless");
    place.experiment(&[]);
    for (option, value) in [("--repeats", "0"), ("--repeats", "4000000000"), ("--load", "0s")] {
        let (code, error) = place.fails(&["run", "experiment.toml", option, value]);
        assert!(matches!(code, 2 | 3), "{option} {value}: {code} {error}");
        assert!(error.contains(&option[2..]), "{error}");
    }
    assert!(place.rows().is_empty());
}

/// The first experiment of the header of a campaign that was begun and no more.
fn begun(place: &Place, arguments: &[&str]) -> Value {
    let mut lab = place.pushlab(&[&["run", "experiment.toml"], arguments].concat());
    let mut lab = lab.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    wait_for("the experiment", || place.store_path().exists().then(|| place.rows()).filter(|rows| !rows.is_empty()));
    lab.kill().unwrap();
    lab.wait().unwrap();
    let export = place.json(&["export", "test", "--format", "json"]);
    export["experiments"][0]["experiment"]["header"]["experiments"][0].clone()
}

#[test]
fn a_soak_is_a_load_of_that_length() {
    let place = Place::new("soak");
    place.experiment(&[]);
    let experiment = begun(&place, &["--shape", "soak:90m"]);
    assert_eq!((&experiment["soak_minutes"], &experiment["shape"]["kind"]), (&json!(90), &json!("steady")));
}

#[test]
fn networks_replace_those_of_the_experiment() {
    for (option, networks) in [("4g,lan-100", json!(["4g", "lan-100"])), ("none", json!([]))] {
        let place = Place::new(&format!("network-{option}"));
        place.experiment(&[("networks", "[\"3g\"]")]);
        assert_eq!(begun(&place, &["--network", option])["networks"], networks);
        assert_eq!(place.rows()[0]["runs_planned"], json!(2 * networks.as_array().unwrap().len().max(1)));
        let (code, error) = place.fails(&["run", "experiment.toml", "--network", "4g,4g"]);
        assert!(code == 3 && error.contains("networks has \"4g\" twice"), "{code} {error}");
    }
}
