//! Published numbers beside measured ones.

use crate::campaign::Place;
use serde_json::{Value, json};

const STUDY: &str = include_str!("../../../../experiments/published/tangen-2015.csv");

/// The study's values of a metric of WebSocket with 50 clients.
fn printed(metric: &str) -> Vec<f64> {
    let own = STUDY.lines().filter(|line| line.starts_with("tangen-broadcast,node,websocket,,,50,"));
    let fields = own.map(|line| line.split(',').collect::<Vec<&str>>());
    fields.filter(|fields| fields[9] == metric).map(|fields| fields[11].parse().unwrap()).collect()
}

fn find(list: &Value, is_wanted: impl Fn(&Value) -> bool) -> &Value {
    list.as_array().unwrap().iter().find(|entry| is_wanted(entry)).unwrap_or_else(|| panic!("{list:#}"))
}

#[test]
fn a_repeated_study_is_shown_beside_what_was_measured() {
    let place = Place::new("study");
    place.experiment(&[
        ("name", "\"tangen-broadcast\""),
        ("study", "\"tangen-2015\""),
        ("transports", "[\"websocket\"]"),
        ("clients", "[50]"),
        ("charts", "[\"cpu\", \"response_mean\"]"),
        ("prober", "{ interval_ms = 10, over = \"same-transport\" }"),
        ("repeats", "3"),
        (
            "expect",
            "[{ that = \"cpu(websocket) > 1 at 50\", finding = \"It costs something.\" }, \
             { that = \"cpu(websocket) > 1 at 500\", finding = \"Not measured here.\" }]",
        ),
    ]);
    let (report, code) = place.report(&[]);
    assert_eq!(code, 0, "{report:#}");
    let experiment = &report["experiments"][0];
    assert!(experiment["study"].as_str().unwrap().contains("Tangen 2015"), "{experiment:#}");

    let series = &experiment["series"];
    let measured = find(series, |s| s["origin"] == "measured");
    assert_eq!((&measured["transport"], measured["points"].as_array().unwrap().len()), (&json!("websocket"), 1));
    let published = find(series, |s| s["origin"] == "published" && s["transport"] == "websocket");
    assert_eq!(published["label"], "websocket · published");
    let values = printed("cpu");
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    let point = find(&published["points"], |p| p["x"] == 50.0);
    let figure = &point["figures"]["cpu"];
    assert!(values.len() > 1 && (figure["value"].as_f64().unwrap() - mean).abs() < 1e-9, "{figure} {values:?}");
    assert_eq!(figure["runs"], values.len());
    assert!(published["points"].as_array().unwrap().len() > 5, "the study's other places are drawn too");

    let expectations = &experiment["expectations"];
    let judged = |at: usize| -> Value {
        let of = |one: &Value| json!([one["subject"], one["origin"], one["outcome"]]);
        expectations[at]["judged"].as_array().unwrap().iter().map(of).collect()
    };
    assert_eq!(judged(0), json!([["pushlab", "measured", "confirmed"], ["node", "published", "confirmed"]]));
    assert_eq!(judged(1), json!([["pushlab", "measured", "undecided"], ["node", "published", "confirmed"]]));
    assert_eq!((&expectations[0]["finding"], &expectations[0]["source"]), (&json!("It costs something."), &json!("")));
    let inventory = expectations.as_array().unwrap().iter().filter(|one| one["source"] != "").count();
    assert!(inventory > 10, "what the study found is judged beside what else is expected: {inventory}");

    let table = find(&experiment["tables"], |t| t["title"] == "Published beside measured");
    let own = &measured["points"][0]["figures"];
    for (metric, heading) in [("cpu", "Server CPU, %"), ("response_mean", "Response time, mean, ms")] {
        let row = find(&table["rows"], |row| row[1] == heading);
        assert_eq!([&row[0], &row[2], &row[4]], [&json!("websocket"), &json!("50 clients"), &json!("50 clients")]);
        let values = printed(metric);
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        assert!((row[3]["value"].as_f64().unwrap() - mean).abs() < 1e-9, "{row} {values:?}");
        assert_eq!(row[5], own[metric]);
        let ratio = own[metric]["value"].as_f64().unwrap() / mean;
        let shown: f64 = row[6].as_str().and_then(|text| text.strip_suffix(" ×")?.parse().ok()).unwrap();
        assert!((shown / ratio - 1.0).abs() < 0.06, "{row} has two digits of {ratio}");
    }
    assert!(table["rows"].as_array().unwrap().iter().all(|row| row[2] == "50 clients"), "only what was measured");
    let text = place.prints(&["show", "tangen-broadcast"]);
    assert!(text.contains("Published beside measured") && text.contains("; by node as published: "), "{text}");
    let text = place.prints(&["report", "tangen-broadcast", "--format", "markdown"]);
    let line = "- **confirmed**: cpu(websocket) \\> 1 % at 50, node as published (confirmed at 50)\n";
    assert!(text.contains(line), "{text}");
}
