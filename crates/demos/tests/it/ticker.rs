//! Prices: snapshot and steps belong together.

use super::harness::{Site, now_ms};
use pushlab_demos::ticker::Ticker;
use serde_json::Value;
use std::collections::BTreeMap;
use std::time::Duration;

/// Whoever takes a snapshot while prices move has exactly the steps up to its cursor.
#[test]
fn a_snapshot_has_the_steps_up_to_its_cursor() {
    let site = Site::start(Ticker::new(7, Duration::from_millis(1)));
    let first = site.get("/api/demos/ticker");
    assert_eq!(first.body["stocks"].as_array().unwrap().len(), 12);
    let snapshots: Vec<_> = (0..50).map(|_| site.get("/api/demos/ticker").body).collect();
    let offset = |cursor: &Value| cursor.as_str().unwrap().split_once('.').unwrap().1.parse::<u64>().unwrap();
    let last = offset(&snapshots[49]["cursor"]);
    let mut steps: BTreeMap<u64, Value> = BTreeMap::new();
    let mut cursor = first.text("cursor");
    while offset(&Value::from(cursor.clone())) < last {
        let reply = site.get(&format!("/poll?channel=demo.ticker&after={cursor}&wait=5")).body;
        for frame in reply.as_array().unwrap() {
            match frame[0].as_str().unwrap() {
                "msg" => drop(steps.insert(offset(&frame[2]), frame[3].clone())),
                "cursor" => cursor = frame[1].as_str().unwrap().to_owned(),
                _ => panic!("{frame}"),
            }
        }
    }
    let numbers: Vec<u64> = steps.values().map(|step| step[0].as_u64().unwrap()).collect();
    assert!(numbers.windows(2).all(|pair| pair[1] == pair[0] + 1), "{numbers:?}");
    let sent: Vec<f64> = steps.values().map(|step| step[2].as_f64().unwrap()).collect();
    assert!(sent.is_sorted() && sent[0] > 0.0 && sent[sent.len() - 1] <= now_ms(), "{sent:?}");
    let mut seen = 0;
    for snapshot in &snapshots {
        let Some(step) = steps.get(&offset(&snapshot["cursor"])) else { continue };
        let stocks = snapshot["stocks"].as_array().unwrap().iter();
        let prices: Vec<Value> =
            stocks.map(|s| Value::from(vec![s["symbol"].clone(), s["price_cents"].clone()])).collect();
        assert_eq!(step[1], Value::from(prices));
        seen += 1;
    }
    assert!(seen > 0, "some snapshot came after the first step");
}

#[test]
fn prices_are_published_by_the_server_alone() {
    let site = Site::start(Ticker::default());
    let refused = site.post("/publish?channel=demo.ticker", r#"[1,[["ALPN",1]]]"#);
    assert_eq!(refused.code(), (403, "forbidden"));
}
