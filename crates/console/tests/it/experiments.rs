//! Presets, and what is said of an experiment before it runs.

use crate::harness::Place;
use serde_json::{Value, json};

const SMALL: &str = r#"
name = "small"
title = "Small"
transports = ["websocket", "sse"]
clients = [2]
repeats = 3
scenario = { kind = "feed", interval_us = 5000, payload_bytes = 173 }
phases = { connect_ms = 10000, idle_ms = 100, warm_up_ms = 100, load_ms = 400, drain_ms = 3000, after_ms = 50 }

[profile.one]
repeats = 1
"#;

fn problems(answer: &Value) -> Vec<&str> {
    answer["problems"].as_array().unwrap().iter().map(|problem| problem.as_str().unwrap()).collect()
}

#[test]
fn presets_are_listed_and_given() {
    let place = Place::new("presets");
    let list = place.get("/api/presets").json();
    let chat = list.as_array().unwrap().iter().find(|preset| preset["name"] == "tangen-chat").unwrap();
    assert!(chat["runs"].as_u64().unwrap() > 1 && chat["estimated_s"].as_u64().unwrap() > 1, "{chat}");
    assert!(chat["profiles"].as_array().unwrap().contains(&json!("quick")), "{chat}");
    let toml = place.get("/api/presets/tangen-chat").json()["toml"].as_str().unwrap().to_owned();
    assert!(toml.contains("name = \"tangen-chat\""));
    let answer = place.post("/api/experiments/check", &json!({ "toml": toml })).json();
    assert_eq!((&answer["runs"], &answer["estimated_s"]), (&chat["runs"], &chat["estimated_s"]));
    assert_eq!(place.get("/api/presets/..%2fchat").refused(), (404, "not-found".to_owned()));
}

#[test]
fn an_experiment_is_looked_over() {
    let place = Place::new("check");
    let check = |body: Value| place.post("/api/experiments/check", &body).json();
    let good = check(json!({ "toml": SMALL }));
    assert_eq!((good["name"].as_str(), good["runs"].as_u64(), problems(&good)), (Some("small"), Some(6), vec![]));
    assert_eq!(check(json!({ "toml": SMALL, "profile": "one" }))["runs"], 2);
    for (toml, said) in [
        ("name = ", "TOML"),
        ("name = \"a\"", "the experiment"),
        (&SMALL.replace("websocket", "pigeon"), "pigeon"),
        (&SMALL.replace("[2]", "[0]"), "clients 0"),
    ] {
        let answer = check(json!({ "toml": toml }));
        let found = problems(&answer);
        assert!(found.len() == 1 && found[0].contains(said), "{toml}: {found:?}");
    }
    assert!(
        problems(&check(json!({ "toml": SMALL, "profile": "two" })))[0].contains("one"),
        "it names those there are"
    );
    let unknown = place.post("/api/experiments/check", &json!({ "toml": SMALL, "path": "/etc" }));
    assert_eq!(unknown.refused(), (400, "bad-request".to_owned()));
}

/// What a form sends is looked over in a moment, whatever it is: it may be sent by anybody, and again and again.
#[test]
fn an_experiment_that_is_too_large_is_refused_before_it_is_expanded() {
    let place = Place::new("large");
    let numbers = |count: usize| (1..=count).map(|n| n.to_string()).collect::<Vec<_>>().join(",");
    let with = |clients: &str, line: &str| SMALL.replace("[2]", &format!("[{clients}]")).replace("repeats = 3", line);
    // Two transports.
    let most = place.post("/api/experiments/check", &json!({ "toml": with(&numbers(500), "repeats = 1") })).json();
    assert_eq!((problems(&most), &most["runs"]), (vec![], &json!(1000)));
    let rates = format!("repeats = 1\ndeliveries_per_s = [{}]", numbers(3000));
    for toml in [
        with(&numbers(501), "repeats = 1"),
        with(&numbers(3000), &rates),
        with("2", "repeats = 1") + &format!("clients = [{}]\n", numbers(501)),
    ] {
        let answer = place.post("/api/experiments/check", &json!({ "toml": toml, "profile": "one" })).json();
        let found = problems(&answer);
        assert!(found.len() == 1 && found[0].contains("at most 1000") && found[0].contains("pushlab run"), "{found:?}");
    }
    // Lists of which a variant leaves out all but one point, many times over: what is left out is never walked through.
    let variant = |at: usize| {
        format!(
            "{{ name = \"v{at}\", transports = [\"sse\"], clients = [{at}], deliveries_per_s = [400], payload_bytes = [1] }}"
        )
    };
    let sizes = format!("deliveries_per_s = [{0}]\npayload_bytes = [{0}]", numbers(2500));
    for (clients, variants) in [(2500, 1), (2500, 250)] {
        let variants: Vec<String> = (1..=variants).map(variant).collect();
        let line = format!("repeats = 1\n{sizes}\nvariants = [{}]", variants.join(","));
        let answer = place.post("/api/experiments/check", &json!({ "toml": with(&numbers(clients), &line) })).json();
        assert_eq!((problems(&answer), &answer["runs"]), (vec![], &json!(variants.len())));
    }
    // Much text, and many points that share it.
    for key in ["columns = [\"cpu\"", "server_options = [\"a\"", "charts = [\"cpu\""] {
        let (list, value) = key.split_once('[').unwrap();
        let line = format!("repeats = 1\n{list}[{}]", [value].repeat(6000).join(","));
        let answer = place.post("/api/experiments/check", &json!({ "toml": with(&numbers(500), &line) })).json();
        assert_eq!(answer["runs"], 1000, "{answer}");
    }
    // Nesting without end.
    let deep = |open: &str, close: &str| format!("a = {}{}", open.repeat(15_000), close.repeat(15_000));
    for toml in [
        deep("[", "]"),
        deep("{a=", "}"),
        format!("{} = 1", ["a"; 30_000].join(".")),
        format!("[{}]", ["a"; 30_000].join(".")),
        format!("[profile.one]\n{} = 1", ["a"; 30_000].join(".")),
    ] {
        let answer = place.post("/api/experiments/check", &json!({ "toml": toml, "profile": "one" })).json();
        assert_eq!(problems(&answer).len(), 1);
    }
}

#[test]
fn every_preset_is_small_enough_for_the_form() {
    let place = Place::new("preset-sizes");
    for preset in place.get("/api/presets").json().as_array().unwrap() {
        let name = preset["name"].as_str().unwrap();
        let toml = place.get(&format!("/api/presets/{name}")).json()["toml"].clone();
        let profiles = preset["profiles"].as_array().unwrap().iter().chain([&Value::Null]);
        for profile in profiles {
            let answer = place.post("/api/experiments/check", &json!({ "toml": toml, "profile": profile })).json();
            assert_eq!(problems(&answer), Vec::<&str>::new(), "{name} {profile}");
        }
    }
}

#[test]
fn a_page_names_no_programs_and_no_environment() {
    let place = Place::new("typed-only");
    for (line, said) in [
        ("subjects = [\"pushlab\", \"other=/tmp/program\"]", "/tmp/program"),
        ("subjects = [\"pushlab\", \"other=http://127.0.0.1:9\"]", "--allow-target"),
        ("subjects = [\"pushlab\", \"chat=socketio+https://example.org/socket.io/\"]", "--allow-target"),
        ("environment = { LD_PRELOAD = \"/tmp/library.so\" }", "LD_PRELOAD"),
        ("variants = [{ name = \"a\", environment = { NODE_OPTIONS = \"-r /tmp/x\" } }]", "NODE_OPTIONS"),
        ("server_options = [\"--tls-certificate\", \"/etc/shadow\"]", "--tls-certificate"),
        ("server_options = [\"--store=/tmp/x\"]", "--store"),
        ("server_options = [\"--feed\", \"ws://10.0.0.1/\"]", "--feed"),
        ("server_options = [\"--history-messages\", \"--store=/tmp/x\"]", "--history-messages"),
        ("server_options = [\"--history-messages\"]", "--history-messages"),
        ("server_options = [\"--history-messages=10\", \"--listen=0.0.0.0:80\"]", "--listen"),
        ("server_options = [\"10\"]", "10"),
        ("variants = [{ name = \"a\", server_options = [\"--cores\", \"100000\"] }]", "--cores"),
    ] {
        let answer = place.post("/api/experiments/check", &json!({ "toml": format!("{line}\n{SMALL}") })).json();
        let found = problems(&answer);
        assert!(
            found.iter().any(|problem| problem.contains(said) && problem.contains("pushlab run")),
            "{line}: {found:?}"
        );
    }
    let options = "server_options = [\"--history-messages\", \"10\", \"--history-age=1.5s\"]";
    let answer = place.post("/api/experiments/check", &json!({ "toml": format!("{options}\n{SMALL}") })).json();
    assert_eq!(problems(&answer), Vec::<&str>::new());
    // A preset's own environment is no stranger's.
    let toml = place.get("/api/presets/polling-study-collection").json()["toml"].clone();
    let answer = place.post("/api/experiments/check", &json!({ "toml": toml })).json();
    assert!(problems(&answer).iter().all(|problem| !problem.contains("environment")), "{answer}");
}

#[test]
fn nobody_starts_anything_where_nobody_may() {
    let place = Place::new("no-run");
    let answer = place.post("/api/campaigns", &json!({ "toml": SMALL }));
    assert_eq!(answer.refused(), (403, "forbidden".to_owned()));
    assert_eq!(place.ask("DELETE", "/api/campaigns", "", "").status, 403);
}
