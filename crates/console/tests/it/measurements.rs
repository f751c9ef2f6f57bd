//! What browsers measured: stored, shown, limited.

use crate::harness::Place;
use pushlab_console::MAX_MEASUREMENTS;
use pushlab_store::{Outcome, Store, export, import};
use serde_json::{Value, json};

fn websocket() -> Value {
    json!({
        "transport": "websocket", "ok": true, "connect_ms": 12.5, "latencies_ms": [3.0, 1.0, 2.0], "jitter_ms": 1.5,
        "requests": 1, "bytes_received": 300, "bytes_sent": 150, "is_buffered": false,
    })
}

fn measurement(transports: &[Value]) -> Value {
    json!({ "user_agent": "Some Browser/1.0", "page_ms": 1_700_000_000_000.0, "transports": transports })
}

#[test]
fn a_measurement_is_a_result_with_a_run_for_each_transport() {
    let place = Place::new("measurement");
    let buffered = json!({
        "transport": "sse", "ok": false, "problem": "held <b>back</b>", "latencies_ms": [], "requests": 2,
        "is_buffered": true,
    });
    let answer = place.post("/api/measurements", &measurement(&[websocket(), buffered]));
    assert_eq!(answer.status, 200, "{}", answer.body);
    let id = answer.json()["id"].as_i64().unwrap();
    let row = place.get("/api/results").json()[0].clone();
    assert_eq!((row["id"].as_i64(), row["name"].as_str()), (Some(id), Some("browser")));
    assert_eq!((row["state"].as_str(), row["title"].as_str()), (Some("imported"), Some("Measured in a browser")));
    assert_eq!((row["runs_done"].as_u64(), row["runs_failed"].as_u64()), (Some(2), Some(1)));

    let runs = Store::open(&place.store_path()).unwrap().runs(id).unwrap();
    let figure = |name: &str| runs[0].figures.get(name).map(|figure| figure.value);
    assert_eq!(
        (figure("latency_median"), figure("latency_mean"), figure("connect")),
        (Some(2.0), Some(2.0), Some(12.5))
    );
    assert_eq!(
        (figure("jitter"), figure("bytes_per_delivery")),
        (Some(1.5), None),
        "echoes are among a browser's bytes"
    );
    assert_eq!(figure("latency_p99"), None, "of three it would be the largest");
    assert_eq!(runs[1].outcome, Outcome::Failed { reason: "held <b>back</b>".to_owned(), phase: None });

    let report = place.get(&format!("/reports/{id}"));
    assert_eq!(report.status, 200);
    for part in ["Some Browser/1.0", "\"latency_median\"", "\"jitter\"", "websocket 1, sse 2"] {
        assert!(report.body.contains(part), "{part}");
    }
    assert!(!report.body.contains("<b>back"), "what a browser says is text");
}

#[test]
fn a_page_in_the_background_and_cuts_are_warnings() {
    let place = Place::new("doubted");
    let with = |name: &str, cuts: u32| {
        let mut value = websocket();
        (value["transport"], value["cuts"]) = (json!(name), json!(cuts));
        value
    };
    let mut body = measurement(&[with("websocket", 0), with("sse", 1), with("http-streaming", 3)]);
    body["was_hidden"] = json!(true);
    let id = place.post("/api/measurements", &body).json()["id"].as_i64().unwrap();
    let runs = Store::open(&place.store_path()).unwrap().runs(id).unwrap();
    let warnings: Vec<Vec<String>> = runs
        .iter()
        .map(|run| run.warnings.iter().map(|warning| format!("{} {}", warning.code, warning.detail)).collect())
        .collect();
    let hidden = "page-hidden the page was hidden for some of the time or all";
    assert_eq!(warnings[0], [hidden]);
    assert_eq!(warnings[1], [hidden, "connection-cut cut once"]);
    assert_eq!(warnings[2], [hidden, "connection-cut cut 3 times"]);
    let report = place.get(&format!("/reports/{id}"));
    for part in ["\"page-hidden\"", "\"connection-cut\"", "Measure again with the page in front"] {
        assert!(report.body.contains(part), "{part}");
    }
}

#[test]
fn what_is_no_measurement_is_refused_and_nothing_is_stored() {
    let place = Place::new("no-measurement");
    let with = |change: &dyn Fn(&mut Value)| {
        let mut value = websocket();
        change(&mut value);
        measurement(&[value])
    };
    let wrong = [
        measurement(&[]),
        measurement(&[websocket(), websocket()]),
        with(&|value| value["latencies_ms"] = json!(vec![1.0; 201])),
        with(&|value| value["latencies_ms"] = json!([-1.0])),
        with(&|value| value["connect_ms"] = json!(1e9)),
        with(&|value| value["transport"] = json!("pigeon")),
        with(&|value| value["more"] = json!(1)),
        with(&|value| value["problem"] = json!("x".repeat(1025))),
        with(&|value| value["problem"] = json!("a\u{1b}[31mb")),
        with(&|value| value["bytes_sent"] = json!(u64::MAX)),
        json!({ "user_agent": "x".repeat(1025), "page_ms": 0.0, "transports": [websocket()] }),
        json!([]),
    ];
    for body in &wrong {
        let answer = place.post("/api/measurements", body);
        assert_eq!(answer.refused(), (400, "bad-request".to_owned()), "{body}");
    }
    assert!(!place.store_path().exists());
    let most = with(&|value| value["latencies_ms"] = json!(vec![1.0; 200]));
    assert_eq!(place.post("/api/measurements", &most).status, 200);
}

#[test]
fn only_an_own_page_stores_and_not_too_often() {
    let place = Place::new("own-page");
    let body = measurement(&[websocket()]).to_string();
    let json = "Content-Type: application/json\r\n";
    for foreign in ["Origin: https://evil.example\r\n", "Origin: null\r\n", "Sec-Fetch-Site: cross-site\r\n"] {
        let answer = place.ask("POST", "/api/measurements", &format!("{json}{foreign}"), &body);
        assert_eq!(answer.refused(), (403, "forbidden".to_owned()), "{foreign}");
    }
    let form = "Content-Type: text/plain\r\n";
    assert_eq!(place.ask("POST", "/api/measurements", form, &body).refused(), (400, "bad-request".to_owned()));
    assert_eq!(place.get("/api/measurements").status, 405);
    let store = || place.post("/api/measurements", &measurement(&[websocket()]));
    assert_eq!(store().status, 200);
    let soon = store();
    assert_eq!((soon.refused(), soon.field("retry-after")), ((429, "limit-reached".to_owned()), Some("2")));
    let none = Place::with("stores-nothing", |config| config.stores_measurements = false);
    let answer = none.post("/api/measurements", &measurement(&[websocket()]));
    assert_eq!(answer.refused(), (403, "forbidden".to_owned()));
}

#[test]
fn so_many_measurements_are_kept() {
    let place = Place::new("many");
    let mut store = Store::open(&place.store_path()).unwrap();
    let first = store.create_campaign(&pushlab_lab::archive::values_header("browser")).unwrap();
    let mut export = Vec::new();
    export::json(&store, &[first], &mut export).unwrap();
    // In one transaction.
    let mut export: Value = serde_json::from_slice(&export).unwrap();
    let one = export["experiments"][0].take();
    export["experiments"] = vec![one; MAX_MEASUREMENTS - 1].into();
    import::json(&mut store, export.to_string().as_bytes()).unwrap();
    let answer = place.post("/api/measurements", &measurement(&[websocket()]));
    assert_eq!(answer.refused(), (429, "limit-reached".to_owned()));
    assert!(answer.json()["message"].as_str().unwrap().contains("pushlab rm"), "{}", answer.body);
    store.remove(first).unwrap();
    assert_eq!(place.post("/api/measurements", &measurement(&[websocket()])).status, 200);
}
