//! What browsers measured, stored as results of their own.

use crate::interface::{MAX_LATENCIES, MAX_TEXT_BYTES, MeasuredTransport, Measurement, Stored};
use crate::results::Results;
use pushlab_application::Request;
use pushlab_application::requests::{Answer, Refusal, body, json};
use pushlab_lab::archive::{self, BROWSER};
use pushlab_stats::{Warning, WarningCode, mean, median, quantile};
use pushlab_store::{Cell, MetricValue, NewCampaign, Outcome, Run};
use pushlab_wire::codes::ErrorCode;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, TryLockError};
use std::time::{Duration, Instant};

/// Measurements that are kept in one store: 1,000, of some kilobytes each. Further ones are refused until some are
/// removed.
pub const MAX_MEASUREMENTS: usize = 1_000;
/// Least time between two measurements that are kept, whoever sends them.
const INTERVAL: Duration = Duration::from_secs(2);
/// Latencies that a 99th percentile needs to be more than the maximum, as in the lab.
const P99_COUNT_MIN: usize = 100;
/// Longest time that a measurement may tell, ms: an hour.
const MAX_MS: f64 = 3_600_000.0;

/// Stores measurements, one after the other.
#[derive(Default)]
pub struct Measurements {
    /// When the latest was stored.
    latest: Mutex<Option<Instant>>,
}

impl Measurements {
    /// `POST /api/measurements`.
    pub fn keep(&self, request: &Request, results: &Results) -> Answer {
        let measurement: Measurement = body(request)?;
        look_over(&measurement).map_err(|what| Refusal::new(ErrorCode::BadRequest, what))?;
        let just_now = || {
            let message = "another measurement was stored just now; try again in two seconds";
            Refusal::new(ErrorCode::LimitReached, message).after(INTERVAL)
        };
        // A store may take its time: who waited for it here would keep a thread from all others.
        let mut latest = match self.latest.try_lock() {
            Ok(latest) => latest,
            Err(TryLockError::Poisoned(latest)) => latest.into_inner(),
            Err(TryLockError::WouldBlock) => return Err(just_now()),
        };
        if latest.is_some_and(|then| then.elapsed() < INTERVAL) {
            return Err(just_now());
        }
        let mut store = results.open()?;
        let rows = store.campaigns().map_err(|error| Refusal::failed(&error))?;
        if rows.iter().filter(|row| row.name == BROWSER).count() >= MAX_MEASUREMENTS {
            let message = format!(
                "{MAX_MEASUREMENTS} measurements of browsers are stored, which is all that are kept; remove some with \
                 `pushlab rm`"
            );
            return Err(Refusal::new(ErrorCode::LimitReached, message));
        }
        let (experiment, runs) = stored(&measurement);
        let id = store.add_complete(&experiment, &runs).map_err(|error| Refusal::failed(&error))?;
        *latest = Some(Instant::now());
        Ok(json(&Stored { id }))
    }
}

/// Refuses what no measurement is.
fn look_over(measurement: &Measurement) -> Result<(), String> {
    let is_time = |ms: &f64| ms.is_finite() && (0.0..=MAX_MS).contains(ms);
    let is_text = |text: &str| text.len() <= MAX_TEXT_BYTES && !text.chars().any(char::is_control);
    if measurement.transports.is_empty() {
        return Err("transports is empty; a measurement has at least one".to_owned());
    }
    if !is_text(&measurement.user_agent) || !measurement.page_ms.is_finite() {
        return Err(format!("user_agent is one line of at most {MAX_TEXT_BYTES} bytes, and page_ms an instant"));
    }
    let mut seen = BTreeSet::new();
    for measured in &measurement.transports {
        let name = measured.transport.name();
        let times = measured.latencies_ms.iter().chain(&measured.connect_ms).chain(&measured.jitter_ms);
        if !seen.insert(measured.transport) {
            return Err(format!("{name} is there twice"));
        }
        if measured.latencies_ms.len() > MAX_LATENCIES {
            return Err(format!("{name} has {} latencies; at most {MAX_LATENCIES}", measured.latencies_ms.len()));
        }
        if let Some(wrong) = times.into_iter().find(|ms| !is_time(ms)) {
            return Err(format!("{name}: {wrong} ms is no time between 0 and {MAX_MS} ms"));
        }
        if measured.problem.as_deref().is_some_and(|text| !is_text(text)) {
            return Err(format!("{name}: problem is one line of at most {MAX_TEXT_BYTES} bytes"));
        }
        let bytes = [measured.bytes_received, measured.bytes_sent];
        if bytes.iter().flatten().any(|&bytes| i64::try_from(bytes).is_err()) {
            return Err(format!("{name}: bytes are below 2^63"));
        }
    }
    Ok(())
}

/// A measurement as the store keeps it: a run for each transport.
fn stored(measurement: &Measurement) -> (NewCampaign, Vec<Run>) {
    let all = &measurement.transports;
    let requests: Vec<String> = all.iter().map(|m| format!("{} {}", m.transport.name(), m.requests)).collect();
    let held: Vec<&str> = all.iter().filter(|m| m.is_buffered).map(|m| m.transport.name()).collect();
    let mut facts =
        vec![("browser".to_owned(), measurement.user_agent.clone()), ("HTTP requests".to_owned(), requests.join(", "))];
    if !held.is_empty() {
        facts.push(("held back on the way".to_owned(), held.join(", ")));
    }
    let experiment = NewCampaign { facts, ..archive::values_header(BROWSER) };
    let run = |(place, measured)| Run {
        warnings: warnings(measured, measurement.was_hidden),
        ..run(place, measured, &experiment.created_at)
    };
    let runs = (1..).zip(all).map(run).collect();
    (experiment, runs)
}

/// What takes from a measurement's certainty.
fn warnings(measured: &MeasuredTransport, was_hidden: bool) -> Vec<Warning> {
    let hidden =
        was_hidden.then(|| Warning::new(WarningCode::PageHidden, "the page was hidden for some of the time or all"));
    let cut = match measured.cuts {
        0 => None,
        1 => Some("cut once".to_owned()),
        cuts => Some(format!("cut {cuts} times")),
    };
    hidden.into_iter().chain(cut.map(|detail| Warning::new(WarningCode::ConnectionCut, detail))).collect()
}

fn run(place: u32, measured: &MeasuredTransport, now: &str) -> Run {
    let outcome = match (measured.ok, &measured.problem) {
        (true, _) => Outcome::Completed,
        (false, Some(problem)) => Outcome::Failed { reason: problem.clone(), phase: None },
        (false, None) => {
            Outcome::Failed { reason: "it did not work, the browser did not say why".to_owned(), phase: None }
        }
    };
    let counts = [
        ("requests", Some(u64::from(measured.requests))),
        ("bytes_received", measured.bytes_received),
        ("bytes_sent", measured.bytes_sent),
        ("delivered", Some(measured.latencies_ms.len() as u64)),
    ];
    Run {
        place,
        cell: Cell {
            experiment: BROWSER.to_owned(),
            subject: "pushlab".to_owned(),
            transport: measured.transport.name().to_owned(),
            policy: String::new(),
            variant: None,
            network: None,
            clients: 1,
            deliveries_per_s: None,
            payload_bytes: None,
        },
        repeat: 1,
        seed: 0,
        started_at: now.to_owned(),
        took_ms: 0,
        attempts: 1,
        earlier: Vec::new(),
        outcome,
        warnings: Vec::new(),
        phases: Vec::new(),
        figures: figures(measured),
        counts: counts.into_iter().filter_map(|(name, count)| Some((name.to_owned(), count?))).collect(),
        histograms: BTreeMap::new(),
        series: Vec::new(),
        document: serde_json::Value::Null,
    }
}

/// By the names of the lab's metrics. Bytes are no figure: a browser counts those of echoes, answers and messages
/// together, and none of the metrics means that.
fn figures(measured: &MeasuredTransport) -> BTreeMap<String, MetricValue> {
    let mut sorted = measured.latencies_ms.clone();
    sorted.sort_by(f64::total_cmp);
    let figures = [
        ("latency_median", median(&sorted)),
        ("latency_mean", mean(&sorted)),
        ("latency_p99", quantile(&sorted, 0.99).filter(|_| sorted.len() >= P99_COUNT_MIN)),
        ("jitter", measured.jitter_ms),
        ("connect", measured.connect_ms),
    ];
    figures.into_iter().filter_map(|(name, value)| Some((name.to_owned(), MetricValue::from(value?)))).collect()
}
