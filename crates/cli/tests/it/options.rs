//! What is asked for on the command line is what the experiment says.

use crate::campaign::{Place, wait_for};
use serde_json::{Value, json};
use std::process::Stdio;

#[test]
fn shape_and_length_of_the_load_are_as_asked_for() {
    let place = Place::new("shape");
    place.experiment(&[]);
    let experiment = begun(&place, &["--shape", "step:0.5,1,2", "--load", "300ms"]);
    let step = json!({ "kind": "step", "factors": [0.5, 1.0, 2.0] });
    assert_eq!((&experiment["shape"], &experiment["phases"]["load_ms"]), (&step, &json!(300)));
}

#[test]
fn what_makes_no_sense_is_refused_before_anything_runs() {
    let place = Place::new("senseless");
    place.experiment(&[]);
    for wrong in ["wave:1", "ramp:1", "spike:2", "step:"] {
        let (code, error) = place.fails(&["run", "experiment.toml", "--shape", wrong]);
        assert!(code == 2 && error.contains("ramp:0.1..2"), "{error}");
    }
    let search = ["capacity", "experiment.toml", "--goal", "due(websocket) < 100"];
    let (code, error) = place.fails(&[&search[..], &["--shares", "0"]].concat());
    assert!(code == 2 && error.contains("a share is a number above 0"), "{code} {error}");
    let (code, error) = place.fails(&[&search[..], &["--shares", "0.9", "--subject", "nobody"]].concat());
    assert!(code == 3 && error.contains("nobody"), "{code} {error}");
    let options = [("--repeats", "0"), ("--repeats", "4000000000"), ("--load", "0s"), ("--load", "long")];
    for (option, value) in options {
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
fn other_transports_are_left_out() {
    let place = Place::new("transports");
    place.experiment(&[("transports", "[\"websocket\", \"sse\", \"polling\"]")]);
    assert_eq!(begun(&place, &["--transport", "sse,long-polling"])["transports"], json!(["sse"]));
    let (code, error) = place.fails(&["run", "experiment.toml", "--transport", "http-streaming,long-polling"]);
    assert!(code == 2 && error.contains("has none of these, only websocket, sse, polling"), "{code} {error}");
    let (code, error) = place.fails(&["run", "experiment.toml", "--transport", "pigeon"]);
    assert!(code == 2 && error.contains("expected one of websocket, sse"), "{code} {error}");
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
