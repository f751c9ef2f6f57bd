//! The list of results and reports, of a store that is missing, damaged, or written by a lab.

use crate::harness::Place;
use pushlab_store::{Kind, NewCampaign, Store, import};

/// Head of a table of figures.
const FIGURES: &str = "experiment,subject,transport,policy,variant,clients,deliveries_per_s,payload_bytes,repeat,\
                       metric,unit,value,bound,counts\n";

fn figures(latency: [f64; 3]) -> String {
    let row = |(repeat, ms): (usize, f64)| {
        format!("some,pushlab,sse,close,,10,,,{},latency_median,ms,{ms},,yes\n", repeat + 1)
    };
    FIGURES.to_owned() + &latency.into_iter().enumerate().map(row).collect::<String>()
}

fn import(place: &Place, name: &str, latency: [f64; 3]) -> i64 {
    let new = pushlab_lab::archive::values_header(name);
    let unit = |metric: &str| pushlab_experiment::metric::unit(metric);
    import::csv(&mut Store::open(&place.store_path()).unwrap(), &new, &unit, figures(latency).as_bytes()).unwrap()
}

#[test]
fn a_store_that_is_missing_is_empty_and_stays_missing() {
    let place = Place::new("missing");
    assert_eq!(place.get("/api/results").json(), serde_json::json!([]));
    assert_eq!(place.get("/reports/1").refused(), (404, "not-found".to_owned()));
    assert!(!place.store_path().exists());
}

#[test]
fn a_store_that_is_damaged_is_told() {
    let place = Place::new("damaged");
    std::fs::write(place.store_path(), "no database at all, but long enough to be looked at").unwrap();
    for path in ["/api/results", "/reports/1", "/reports/compare?baseline=1"] {
        let answer = place.get(path);
        assert_eq!(answer.refused(), (500, "internal-error".to_owned()), "{path}");
        let message = answer.json()["message"].as_str().unwrap().to_owned();
        assert!(message.contains("results.db"), "{path}: {message}");
    }
    std::fs::remove_file(place.store_path()).unwrap();
    assert_eq!(place.get("/api/results").status, 200, "and once it is gone, it is forgotten");
}

#[test]
fn results_are_listed_newest_first_and_open_as_reports() {
    let place = Place::new("list");
    let old = import(&place, "old", [10.0, 11.0, 12.0]);
    let new = import(&place, "new", [20.0, 21.0, 22.0]);
    let list = place.get("/api/results").json();
    assert_eq!((list[0]["id"].as_i64(), list[1]["id"].as_i64()), (Some(new), Some(old)));
    let row = &list[0];
    assert_eq!((row["state"].as_str(), row["runs_done"].as_u64()), (Some("imported"), Some(3)));
    assert_eq!((row["title"].as_str(), row["subjects"][0].as_str()), (Some("new"), Some("pushlab")));
    assert_eq!(row["transports"], serde_json::json!(["sse"]));
    assert!(row["started_ms"].as_u64().unwrap() > 1_600_000_000_000);

    let report = place.get(&format!("/reports/{new}"));
    assert_eq!((report.status, report.field("content-type")), (200, Some("text/html; charset=utf-8")));
    assert!(report.body.contains("\"version\":4") && report.body.contains("\"runs_done\":3"));
    let policy = report.field("content-security-policy").unwrap();
    assert!(
        policy.starts_with("default-src 'none'; script-src 'sha256-") && policy.ends_with("frame-ancestors 'none'"),
        "{policy}"
    );

    let comparison = place.get(&format!("/reports/compare?baseline={old}&candidate={new}"));
    assert_eq!(comparison.status, 200, "{}", comparison.body);
    assert!(comparison.body.contains("\"baseline\":\"old\"") && comparison.body.contains("\"change\":\"worse\""));
}

#[test]
fn what_is_no_result_has_no_report() {
    let place = Place::new("none");
    let only = import(&place, "only", [10.0, 11.0, 12.0]);
    assert_eq!(place.get("/reports/99").refused(), (404, "not-found".to_owned()));
    for bad in ["/reports/only", "/reports/", "/reports/compare", "/reports/compare?candidate=1"] {
        assert_eq!(place.get(bad).refused(), (400, "bad-request".to_owned()), "{bad}");
    }
    let within = place.get(&format!("/reports/compare?baseline={only}"));
    assert_eq!(within.refused(), (400, "bad-request".to_owned()), "it has one subject");
    let itself = place.get(&format!("/reports/compare?baseline={only}&candidate={only}"));
    assert_eq!(itself.refused(), (400, "bad-request".to_owned()), "named twice");
    let many = "&candidate=1".repeat(8);
    assert_eq!(place.get(&format!("/reports/compare?baseline=1{many}")).status, 400);
}

#[test]
fn what_a_lab_measures_is_running_and_what_it_left_is_interrupted() {
    let place = Place::new("running");
    let mut store = Store::open(&place.store_path()).unwrap();
    let new = NewCampaign { kind: Kind::Measured, planned: 2, ..pushlab_lab::archive::values_header("measured") };
    let id = store.create_campaign(&new).unwrap();
    let state = || place.get("/api/results").json()[0]["state"].as_str().unwrap().to_owned();
    assert_eq!(state(), "interrupted");
    let mut lock = store.lock_for_measuring().unwrap();
    lock.name(id).unwrap();
    assert_eq!(state(), "running");
    drop(lock);
    store.set_complete(id).unwrap();
    assert_eq!(state(), "complete");
}
