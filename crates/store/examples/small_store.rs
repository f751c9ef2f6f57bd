//! Writes a small store and every export of it into a folder, for `tests/exports` to read back with other programs.

use pushlab_stats::{Histogram, Warning, WarningCode};
use pushlab_store::export::{self, Selection};
use pushlab_store::{
    Bound, Cell, Column, Kind, MetricValue, NewCampaign, Outcome, Run, SeriesRow, Store, StoreError, Values,
};
use std::error::Error;
use std::path::PathBuf;

const METRICS: [(&str, &str); 3] = [("latency_p50", "ms"), ("server_cpu", "%"), ("lost", "")];
// Nothing below the smallest normal number: the parser of the line protocol takes none.
const VALUES: [f64; 8] = [0.0, -1.5e-7, 0.1, 1.0 / 3.0, f64::MIN_POSITIVE, f64::MAX, 9_007_199_254_740_993.0, -273.15];

fn main() -> Result<(), Box<dyn Error>> {
    let folder = PathBuf::from(std::env::args_os().nth(1).ok_or("name a folder to write into")?);
    let mut store = Store::open(&folder.join("results.db"))?;
    let measured = fill(&mut store)?;
    let units = |metric: &str| METRICS.iter().find(|(name, _)| *name == metric).map_or("", |(_, unit)| unit);
    let (ids, all) = ([measured], Selection::default());
    let to = |name: &str| folder.join(name);
    export::to_file(&to("figures.csv"), |out| export::csv(&store, &ids, &all, &units, out))?;
    export::to_file(&to("figures.parquet"), |out| export::parquet(&store, &ids, &all, &units, out))?;
    export::to_file(&to("points.txt"), |out| export::line_protocol(&store, &ids, &all, out))?;
    export::to_file(&to("experiments.json"), |out| export::json(&store, &ids, out))?;
    Ok(())
}

fn fill(store: &mut Store) -> Result<i64, StoreError> {
    let id = store.create_campaign(&NewCampaign {
        name: "small".to_owned(),
        kind: Kind::Measured,
        created_at: "2024-05-01T12:00:00Z".to_owned(),
        seed: u64::MAX,
        planned: 24,
        facts: vec![("kernel".to_owned(), "6.1".to_owned())],
        header: serde_json::json!({"command": ["pushlab", "compare"]}),
    })?;
    for place in 1..=24 {
        store.add_run(id, &run(place))?;
    }
    Ok(id)
}

fn run(place: u32) -> Run {
    let is_published = place.is_multiple_of(5);
    let transports = ["websocket", "sse", "long-polling"];
    let names = ["plain", "with space", "comma, equals=", "\"quoted\"", "grüße ✓"];
    let at = |index: u32| VALUES[(place + index) as usize % VALUES.len()];
    let mut figures: std::collections::BTreeMap<String, MetricValue> =
        (0_u32..).zip(METRICS).map(|(index, (metric, _))| (metric.to_owned(), at(index).into())).collect();
    if is_published {
        let bound = Some(Bound::ALL[place as usize / 5 % Bound::ALL.len()]);
        let figure = MetricValue { value: 120.5, bound, unit: Some("messages/s".to_owned()) };
        figures.insert("messages sent, all".to_owned(), figure);
    }
    let mut histogram = Histogram::new();
    histogram.record(u64::from(place) * 1_000_000);
    Run {
        place,
        cell: Cell {
            experiment: "feed".to_owned(),
            subject: names[place as usize % names.len()].to_owned(),
            transport: transports[place as usize % transports.len()].to_owned(),
            policy: if is_published { String::new() } else { "drop-oldest".to_owned() },
            variant: place.is_multiple_of(2).then(|| "a, \"b\"".to_owned()),
            network: place.is_multiple_of(5).then(|| "lan, \"100\"".to_owned()),
            clients: if place == 1 { u32::MAX } else { 50 },
            deliveries_per_s: place.is_multiple_of(3).then_some(20_000),
            payload_bytes: place.is_multiple_of(4).then_some(71),
        },
        repeat: place,
        seed: 0,
        started_at: format!("2024-05-01T12:{place:02}:01.000000001Z"),
        took_ms: 2_000,
        attempts: 1,
        earlier: vec![],
        outcome: match place {
            7 => Outcome::Failed { reason: "killed".to_owned(), phase: None },
            _ => Outcome::Completed,
        },
        warnings: if place == 8 { vec![Warning::new(WarningCode::Lateness, "40 ms")] } else { vec![] },
        phases: vec![],
        figures,
        counts: [("delivered".to_owned(), u64::from(place))].into(),
        histograms: [("latency".to_owned(), histogram)].into(),
        series: vec![seconds(i64::from(place))],
        document: serde_json::Value::Null,
    }
}

fn seconds(place: i64) -> SeriesRow {
    let delivered = vec![Some(i64::MAX), Some(i64::MIN), None, Some(place)];
    let latency = vec![None, Some(0.1), Some(f64::MIN_POSITIVE), Some(place as f64 / 7.0)];
    let column = |name: &str, values| Column { name: name.to_owned(), values };
    let columns =
        vec![column("delivered", Values::Integers(delivered)), column("latency p50", Values::Numbers(latency))];
    SeriesRow { name: export::SECONDS_SERIES.to_owned(), columns }
}
