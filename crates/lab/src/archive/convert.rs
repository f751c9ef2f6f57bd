//! Records as the store keeps them, and back.
//!
//! Counts and histograms of [`LoadResult`] are known by the names in its own table, so that a new one is stored without a
//! word here.

use super::table::{from_series, to_series};
use pushlab_analysis::report::{RunValues, in_words};
use pushlab_experiment::cell::Cell;
use pushlab_experiment::cell::SlowPolicy;
use pushlab_probe::TcpActivity;
use pushlab_record::{Attempt, KernelMemory, NetworkRecord, Outcome, PlannedRun, RECORD_VERSION, RunRecord, WarmUp};
use pushlab_store::{self as store, MetricValue, PhaseRow};
use pushlab_wire::transport::Transport;
use pushlab_workload::busy::BusiestSecond;
use pushlab_workload::errors::ErrorCount;
use pushlab_workload::plan::{Phase, Plan};
use pushlab_workload::result::{ClientBytes, LoadResult, MarkedDelivery, PhaseMark, Second, WorkerClock};
use serde::de::Error as _;
use serde::{Deserialize, Serialize};
use serde_json::{Error, json};
use std::collections::BTreeMap;

/// What of a record has no table of its own in the store.
#[derive(Serialize, Deserialize)]
struct Document {
    version: u32,
    #[serde(default)]
    subject_command: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    unobserved: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    server_since: Option<u32>,
    #[serde(default)]
    plan: Option<Plan>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    warm_up: Option<WarmUp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    side_by_side: Option<u32>,
    #[serde(default)]
    baseline: Option<(u64, u64)>,
    #[serde(default)]
    kernel: Option<KernelMemory>,
    #[serde(default)]
    tcp: Option<TcpActivity>,
    #[serde(default)]
    network: Option<NetworkRecord>,
    #[serde(default)]
    result: Option<ResultDocument>,
}

/// The same of what the load measured.
#[derive(Serialize, Deserialize)]
struct ResultDocument {
    #[serde(default)]
    errors: Vec<ErrorCount>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    refused: Vec<ErrorCount>,
    #[serde(default)]
    bytes_whole: ClientBytes,
    #[serde(default)]
    bytes_load: ClientBytes,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    busiest: Option<BusiestSecond>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    clocks: Vec<WorkerClock>,
}

/// The name of a count that only some runs have.
const CLOCK_ERROR: &str = "clock_error_ns";

/// Names of series that only some runs have.
const COLLECTIONS: &str = "collections";
const EVENT_LOOP_LAG: &str = "event_loop_lag";
const MEMORY_USAGE: &str = "memory_usage";

/// Names of histograms, and those that earlier versions stored them by.
const EARLIER_NAMES: &[(&str, &str)] = &[("turn_duration", "loop_lag")];

/// A record for the store.
pub fn to_store(record: &RunRecord) -> Result<store::Run, Error> {
    let document = Document {
        version: record.version,
        subject_command: record.subject_command.clone(),
        unobserved: record.unobserved.clone(),
        server_since: record.server_since,
        plan: record.plan.clone(),
        warm_up: record.warm_up,
        side_by_side: record.side_by_side,
        baseline: record.baseline,
        kernel: record.kernel,
        tcp: record.tcp,
        network: record.network.clone(),
        result: record.result.as_ref().map(|result| ResultDocument {
            errors: result.errors.clone(),
            refused: result.refused.clone(),
            bytes_whole: result.bytes_whole,
            bytes_load: result.bytes_load,
            busiest: result.busiest,
            clocks: result.clocks.clone(),
        }),
    };
    let mut run = store::Run {
        place: record.planned.order,
        cell: cell_to_store(&record.planned.cell),
        repeat: record.planned.repeat,
        seed: record.planned.seed,
        started_at: record.started_at.clone(),
        took_ms: record.took_ms,
        attempts: record.attempts,
        earlier: record.earlier.iter().map(attempt_to_store).collect(),
        outcome: outcome_to_store(&record.outcome)?,
        warnings: record.warnings.clone(),
        phases: Vec::new(),
        figures: RunValues::of(record).figures.into_iter().map(|(name, v)| (name, MetricValue::from(v))).collect(),
        counts: BTreeMap::new(),
        histograms: BTreeMap::new(),
        series: vec![
            to_series("subject", &record.subject)?,
            to_series("generator", &record.generator)?,
            to_series("counters", &record.counters)?,
        ],
        document: serde_json::to_value(document)?,
    };
    if let Some(collections) = &record.collections {
        run.series.push(to_series(COLLECTIONS, collections)?);
    }
    if !record.event_loop_lag.is_empty() {
        run.series.push(to_series(EVENT_LOOP_LAG, &record.event_loop_lag)?);
    }
    if !record.memory_usage.is_empty() {
        run.series.push(to_series(MEMORY_USAGE, &record.memory_usage)?);
    }
    if let Some(result) = &record.result {
        run.phases = phases(&result.phases, result.end_ns)?;
        run.series.push(to_series("seconds", &result.seconds)?);
        run.series.push(to_series("deliveries", &result.deliveries)?);
        let mut result = result.clone();
        run.counts = result.counts().map(|(name, count)| (name.to_owned(), *count)).collect();
        run.counts.extend(result.clock_error_ns.map(|ns| (CLOCK_ERROR.to_owned(), ns)));
        run.histograms = result.histograms().map(|(name, of)| (name.to_owned(), std::mem::take(of))).collect();
    }
    Ok(run)
}

/// The record of a stored run.
pub fn from_store(mut run: store::Run) -> Result<RunRecord, Error> {
    // Before anything else is read: another version may have other fields.
    let version = run.document.get("version").and_then(serde_json::Value::as_u64);
    if version != Some(u64::from(RECORD_VERSION)) {
        let found = version.map_or_else(|| "an unknown version".to_owned(), |version| format!("version {version}"));
        return Err(Error::custom(format!("its record is of {found}, not {RECORD_VERSION}")));
    }
    let document: Document = serde_json::from_value(std::mem::take(&mut run.document))?;
    let series = |name: &str| run.series.iter().find(|series| series.name == name);
    fn rows<T: serde::de::DeserializeOwned>(series: Option<&store::SeriesRow>) -> Result<Vec<T>, Error> {
        series.map_or_else(|| Ok(Vec::new()), from_series)
    }
    let result = match document.result {
        Some(ResultDocument { errors, refused, bytes_whole, bytes_load, busiest, clocks }) => {
            let result = LoadResult { errors, refused, bytes_whole, ..LoadResult::default() };
            let mut result = LoadResult { bytes_load, busiest, clocks, ..result };
            // What an earlier version did not count yet is 0.
            result.counts().for_each(|(name, count)| *count = run.counts.get(name).copied().unwrap_or(0));
            for (name, histogram) in result.histograms() {
                let earlier = EARLIER_NAMES.iter().find(|(now, _)| *now == name).map(|(_, earlier)| *earlier);
                let stored = run.histograms.remove(name).or_else(|| run.histograms.remove(earlier?));
                *histogram = stored.unwrap_or_default();
            }
            result.clock_error_ns = run.counts.get(CLOCK_ERROR).copied();
            result.phases = run.phases.iter().map(mark).collect::<Result<_, _>>()?;
            result.seconds = rows::<Second>(series("seconds"))?;
            result.deliveries = rows::<MarkedDelivery>(series("deliveries"))?;
            Some(result)
        }
        None => None,
    };
    Ok(RunRecord {
        version: document.version,
        planned: PlannedRun { order: run.place, cell: cell_from_store(&run.cell)?, repeat: run.repeat, seed: run.seed },
        subject: rows(series("subject"))?,
        generator: rows(series("generator"))?,
        counters: rows(series("counters"))?,
        collections: series(COLLECTIONS).map(from_series).transpose()?,
        event_loop_lag: rows(series(EVENT_LOOP_LAG))?,
        memory_usage: rows(series(MEMORY_USAGE))?,
        started_at: run.started_at,
        took_ms: run.took_ms,
        attempts: run.attempts,
        earlier: run.earlier.into_iter().map(attempt_from_store).collect(),
        warm_up: document.warm_up,
        outcome: outcome_from_store(&run.outcome)?,
        warnings: run.warnings,
        result,
        subject_command: document.subject_command,
        unobserved: document.unobserved,
        server_since: document.server_since,
        plan: document.plan,
        side_by_side: document.side_by_side,
        baseline: document.baseline,
        kernel: document.kernel,
        tcp: document.tcp,
        network: document.network,
    })
}

/// A run that is known by its figures alone: printed in a study, or imported from a table.
pub fn figures_of(run: store::Run) -> Result<RunValues, Error> {
    let failure = match &run.outcome {
        store::Outcome::Completed => None,
        store::Outcome::Failed { reason, .. } => Some(in_words(reason)),
    };
    let bounds = run.figures.iter().filter_map(|(name, figure)| Some((name.clone(), figure.bound?))).collect();
    // A table has no counts, and as figures those that are metrics; what is in neither is not known.
    let count = |name: &str| run.counts.get(name).copied();
    let known = |name: &str, metric: &str| count(name).or_else(|| Some(run.figures.get(metric)?.value as u64));
    Ok(RunValues {
        cell: cell_from_store(&run.cell)?,
        repeat: run.repeat,
        machine: 0,
        attempts: run.attempts,
        tried_again: run.earlier.iter().map(|attempt| attempt.reason.clone()).collect(),
        failure,
        warnings: run.warnings.clone(),
        figures: run.figures.iter().map(|(name, figure)| (name.clone(), figure.value)).collect(),
        times: BTreeMap::new(),
        bounds,
        wrong: [known("lost", "lost"), known("duplicated", "doubled"), count("reordered")],
        timeline: None,
        published_seconds: BTreeMap::new(),
        clocks: Vec::new(),
        command: Vec::new(),
        took_ms: run.took_ms,
        unobserved: None,
        network: None,
    })
}

fn attempt_to_store(attempt: &Attempt) -> store::Attempt {
    let Attempt { started_at, took_ms, reason, detail, figures } = attempt.clone();
    store::Attempt { started_at, took_ms, reason, detail, figures }
}

fn attempt_from_store(attempt: store::Attempt) -> Attempt {
    let store::Attempt { started_at, took_ms, reason, detail, figures } = attempt;
    Attempt { started_at, took_ms, reason, detail, figures }
}

fn phases(marks: &[PhaseMark], end_ns: u64) -> Result<Vec<PhaseRow>, Error> {
    let ends = marks.iter().skip(1).map(|mark| mark.t_ns).chain([end_ns]);
    marks
        .iter()
        .zip(ends)
        .map(|(mark, end_ns)| Ok(PhaseRow { name: name_of(&mark.phase)?, start_ns: mark.t_ns, end_ns }))
        .collect()
}

fn mark(row: &PhaseRow) -> Result<PhaseMark, Error> {
    Ok(PhaseMark { phase: phase_of(&row.name)?, t_ns: row.start_ns })
}

fn name_of(phase: &Phase) -> Result<String, Error> {
    serde_json::from_value(serde_json::to_value(phase)?)
}

fn phase_of(name: &str) -> Result<Phase, Error> {
    serde_json::from_value(json!(name))
}

fn outcome_to_store(outcome: &Outcome) -> Result<store::Outcome, Error> {
    Ok(match outcome {
        Outcome::Completed => store::Outcome::Completed,
        Outcome::Failed { reason, phase } => {
            store::Outcome::Failed { reason: reason.clone(), phase: phase.as_ref().map(name_of).transpose()? }
        }
    })
}

fn outcome_from_store(outcome: &store::Outcome) -> Result<Outcome, Error> {
    Ok(match outcome {
        store::Outcome::Completed => Outcome::Completed,
        store::Outcome::Failed { reason, phase } => {
            Outcome::Failed { reason: reason.clone(), phase: phase.as_deref().map(phase_of).transpose()? }
        }
    })
}

fn cell_to_store(cell: &Cell) -> store::Cell {
    store::Cell {
        experiment: cell.experiment.clone(),
        subject: cell.subject.clone(),
        transport: cell.transport.name().to_owned(),
        policy: cell.policy.name().to_owned(),
        variant: cell.variant.clone(),
        network: cell.network.clone(),
        clients: cell.clients,
        deliveries_per_s: cell.deliveries_per_s,
        payload_bytes: cell.payload_bytes,
    }
}

/// A cell that names no policy is of a server that has none: it is filed with those that close.
fn cell_from_store(cell: &store::Cell) -> Result<Cell, Error> {
    let policy = match cell.policy.as_str() {
        "" => SlowPolicy::Close,
        name => serde_json::from_value(json!(name))?,
    };
    let transport = Transport::from_name(&cell.transport)
        .ok_or_else(|| Error::custom(format!("{} is no transport", cell.transport)))?;
    Ok(Cell {
        experiment: cell.experiment.clone(),
        subject: cell.subject.clone(),
        transport,
        policy,
        variant: cell.variant.clone(),
        network: cell.network.clone(),
        clients: cell.clients,
        deliveries_per_s: cell.deliveries_per_s,
        payload_bytes: cell.payload_bytes,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use pushlab_link::profile::Profile;
    use pushlab_link::totals::{Counts, Parties, Totals};
    use pushlab_probe::runtime_log::{Collection, CollectionKind, LoopLag, MemoryUsage};
    use pushlab_probe::{Loopback, Sample, TcpActivity, TcpStates, TcpTotals};
    use pushlab_record::{CaptureRecord, CounterSample, KernelMemory, NetworkRecord, RECORD_VERSION};
    use pushlab_stats::Histogram;
    use pushlab_stats::{Steady, Warning, WarningCode};
    use pushlab_store::{Kind, NewCampaign, Store};
    use pushlab_workload::busy::LoadThread;
    use pushlab_workload::errors::ErrorCount;
    use pushlab_workload::result::{ByteUses, ClientBytes, LoadResult};
    use serde_json::Value;

    /// The largest count that is stored.
    const MOST: u64 = i64::MAX as u64;

    // No `..Default::default()` below: a new field is to be set here before anything compiles.

    fn cell() -> Cell {
        Cell {
            experiment: "tangen-chat".to_owned(),
            subject: "other".to_owned(),
            transport: Transport::WebSocketPolling,
            policy: SlowPolicy::DropOldest,
            variant: Some("4g · ü".to_owned()),
            network: Some("lan-100".to_owned()),
            clients: u32::MAX,
            deliveries_per_s: Some(20_000),
            payload_bytes: Some(173),
        }
    }

    fn histogram(from: u64) -> Histogram {
        let mut histogram = Histogram::new();
        (0..50).for_each(|i| histogram.record_n(from * 1_000 * (i * i + 1), i + 1));
        histogram
    }

    fn bytes(from: u64) -> ClientBytes {
        let uses = |from| ByteUses {
            payload: from,
            dialect: from + 1,
            framing: MOST,
            heads: from + 3,
            http2_frames: from + 5,
            tls: from + 4,
        };
        ClientBytes { deliveries: from + 10, requests: from + 11, down: uses(from), up: uses(from + 20) }
    }

    fn busiest() -> BusiestSecond {
        let (thread, number, from_ns) = (LoadThread::Feeder, 3, 4);
        BusiestSecond { thread, number, from_ns, span_ns: 1_000_000_005, cpu_ns: 960_000_000 }
    }

    fn seconds() -> Vec<Second> {
        vec![
            Second {
                published: 3,
                delivered: 6,
                latency_median_ns: Some(0),
                latency_p99_ns: Some(8),
                latency_own_median_ns: None,
            },
            Second {
                published: 0,
                delivered: MOST,
                latency_median_ns: None,
                latency_p99_ns: None,
                latency_own_median_ns: Some(4),
            },
        ]
    }

    fn result() -> LoadResult {
        let phases = [Phase::Connect, Phase::Idle, Phase::WarmUp, Phase::Load, Phase::Drain, Phase::After];
        let delivery = |sequence| MarkedDelivery {
            publisher: 1,
            room: (sequence > 0).then_some(4),
            sequence,
            receiver: 2,
            intended_ns: 10,
            receipt_ns: 20,
            delivered_ns: MOST,
        };
        LoadResult {
            phases: phases.into_iter().zip(100..).map(|(phase, t_ns)| PhaseMark { phase, t_ns }).collect(),
            end_ns: 107,
            scheduled: 1,
            published: 2,
            published_after: 31,
            upstream: 32,
            upstream_unsent: 33,
            unsent: 3,
            expected: 4,
            delivered: 5,
            delivered_compressed: 5,
            arrived: 6,
            lost: 7,
            duplicated: 8,
            reordered: 9,
            unknown: 10,
            misdirected: 38,
            gaps: 11,
            told_when: 37,
            told_gap: 27,
            lost_told: 28,
            recovered_falsely: 29,
            back: histogram(16),
            caught_up: histogram(15),
            reconnects: 12,
            errors: vec![ErrorCount { error: "reset by \"peer\"".to_owned(), count: MOST }],
            refused: vec![ErrorCount { error: "403".to_owned(), count: 39 }],
            requests: 13,
            requests_publishers: 14,
            requests_idle: 33,
            polls: 34,
            polls_empty: 35,
            bytes_opening: 36,
            connections_opened: 15,
            connections_cut: 32,
            bytes_sent: MOST,
            bytes_received: 0,
            bytes_received_in_load: 20,
            latency: histogram(1),
            latency_first: histogram(2),
            latency_last: histogram(4),
            latency_own: histogram(5),
            latency_cross_node: histogram(12),
            latency_up: histogram(6),
            latency_down: histogram(7),
            response_idle: histogram(8),
            response_load: histogram(9),
            response_unanswered: histogram(15),
            connect: histogram(10),
            lateness: histogram(11),
            turn_duration: Histogram::new(),
            read_wait: histogram(13),
            response_own: histogram(14),
            cpu_load_ns: 16,
            seconds: seconds(),
            bytes_whole: bytes(100),
            bytes_load: bytes(0),
            unsubscribed: 17,
            clock_error_ns: Some(43),
            clocks: vec![WorkerClock { worker: 1, offset_ns: -5_000_000, drift_ppm: 50.5, error_ns: 44 }],
            busiest: Some(busiest()),
            deliveries: (0..3).map(delivery).collect(),
        }
    }

    fn totals(from: u64) -> Totals {
        let clients = Counts { packets: from, bytes: MOST, lost_packets: from + 1, ..Counts::default() };
        Totals { down: Parties { clients, ..Parties::default() }, untracked_packets: from + 2, ..Totals::default() }
    }

    fn sample(t_ns: u64) -> Sample {
        let totals = TcpTotals { sent_bytes: 1, received_bytes: 2, retransmits: 3 };
        let tcp = TcpStates {
            established: 1,
            syn_sent: 2,
            syn_received: 3,
            fin_wait_1: 4,
            fin_wait_2: 5,
            time_wait: 6,
            closed: 7,
            close_wait: 8,
            last_ack: 9,
            listen: 10,
            closing: 11,
            accept_queue: 12,
            send_queue_bytes: 13,
            receive_queue_bytes: 14,
            totals: Some(totals),
        };
        Sample {
            t_ns,
            processes: 1,
            threads: 2,
            cpu_ns: 3,
            cpu_user_ns: 4,
            cpu_system_ns: 5,
            rss_bytes: MOST,
            pss_bytes: Some(6),
            descriptors: Some(7),
            ctx_voluntary: Some(8),
            ctx_involuntary: Some(0),
            loopback: Some(Loopback { bytes: 9, packets: 10 }),
            tcp: Some(tcp),
        }
    }

    fn whole() -> RunRecord {
        let counters = CounterSample {
            t_ns: 1,
            received: 2,
            sent: 3,
            requests: 4,
            bytes_received: 5,
            bytes_sent: 6,
            queued_bytes: -7,
            dropped: 8,
            closed_slow: 9,
            accepted: 10,
            open: 11,
        };
        let unread =
            Sample { pss_bytes: None, descriptors: None, ctx_voluntary: None, loopback: None, tcp: None, ..sample(2) };
        RunRecord {
            version: RECORD_VERSION,
            planned: PlannedRun { order: 3, cell: cell(), repeat: 2, seed: u64::MAX },
            started_at: "2026-11-21T12:00:00Z".to_owned(),
            took_ms: 1234,
            attempts: 2,
            earlier: vec![Attempt {
                started_at: "2026-11-21T11:59:00Z".to_owned(),
                took_ms: 1_200,
                reason: "lateness".to_owned(),
                detail: "12 ms".to_owned(),
                figures: [("latency_median".to_owned(), 0.5)].into(),
            }],
            warm_up: Some(WarmUp {
                length_ms: 12_000,
                end: Steady::Trend { slope_per_sample: -0.5, relative_change: -0.25, p: 0.001 },
            }),
            outcome: Outcome::Completed,
            warnings: vec![Warning::new(WarningCode::Loss, "7 of 4"), Warning::new(WarningCode::Lateness, "12 ms")],
            result: Some(result()),
            subject: vec![sample(1), unread],
            generator: vec![sample(3)],
            counters: vec![counters, CounterSample { t_ns: 2, ..CounterSample::default() }],
            collections: Some(vec![
                Collection { t_ns: 3, pause_ns: MOST, steps_ns: 5, kind: CollectionKind::Full },
                Collection { t_ns: 4, pause_ns: 6, steps_ns: 0, kind: CollectionKind::Part },
            ]),
            event_loop_lag: vec![LoopLag { t_ns: 8, lag_ns: 9 }],
            memory_usage: vec![
                MemoryUsage { t_ns: 10, heap_used_bytes: 11, heap_total_bytes: MOST, external_bytes: Some(12) },
                MemoryUsage { t_ns: 13, heap_used_bytes: 14, heap_total_bytes: 15, external_bytes: None },
            ],
            subject_command: vec!["pushlab".to_owned(), "serve".to_owned()],
            unobserved: Some("it is far away".to_owned()),
            server_since: Some(3),
            plan: Some(full_plan()),
            side_by_side: Some(2),
            baseline: Some((5, 6)),
            kernel: Some(KernelMemory { before_bytes: 7, idle_bytes: 8 }),
            tcp: Some(TcpActivity { opened: 1, accepted: 2, retransmitted: 3 }),
            network: Some(NetworkRecord {
                profile: Profile::find("lossy").unwrap().clone(),
                whole: totals(40),
                load: totals(0),
                cpu_load_ns: 9,
                core_wait_ms: Some(0.25),
                lateness: histogram(12),
                capture: Some(CaptureRecord { file: "00001.pcapng".into(), problem: Some("disk full".to_owned()) }),
                problem: None,
            }),
        }
    }

    /// With the least that a record has.
    fn failed(phase: Option<Phase>) -> RunRecord {
        let bare = Cell { variant: None, network: None, deliveries_per_s: None, payload_bytes: None, ..cell() };
        let planned = PlannedRun { order: 4, cell: bare, repeat: 1, seed: 0 };
        let outcome = Outcome::Failed { reason: "the subject ended with signal 9".to_owned(), phase };
        RunRecord { started_at: whole().started_at, ..RunRecord::ended(planned, outcome) }
    }

    /// A plan in which nothing is as it is by default. No `..Default::default()`: a new field is to be set here before
    /// anything compiles.
    fn full_plan() -> pushlab_workload::plan::Plan {
        use pushlab_dialects::Dialect;
        use pushlab_wire::transport::Transport;
        use pushlab_workload::payload::Content;
        use pushlab_workload::phase::Repetition;
        use pushlab_workload::plan::{
            ClientKind, ClientsIn, HttpVersion, Phases, Plan, Prober, ProberPath, RequestHeaders, Sockets, Sources,
            Speaks, Target, TlsTarget, Trust,
        };
        use pushlab_workload::scenario::{Scenario, Shape};
        Plan {
            target: Target {
                authority: "example.org".to_owned(),
                path: "/push".to_owned(),
                tls: Some(TlsTarget {
                    server_name: "example.org".to_owned(),
                    trust: Trust::Certificate("own.pem".into()),
                }),
                ..Target::plain("[::1]:8000".parse().unwrap())
            },
            transport: Transport::WebSocketPolling,
            speaks: Some(Speaks {
                dialect: Dialect::Bare,
                path: "/ws".to_owned(),
                how: "usual".to_owned(),
                recording: None,
            }),
            clients: 7,
            channel: "lab".to_owned(),
            scenario: Scenario::Chat {
                interval_ms: 3000,
                payload_bytes: 60,
                payload_bytes_max: Some(160),
                publishers: Some(2),
                in_bursts: false,
            },
            poll_interval_ms: 20,
            poll_wait_s: 5,
            prober: Some(Prober { interval_ms: 50, over: ProberPath::Http, closed_loop: true, subscribed: false }),
            phases: Phases { connect_ms: 1, warm_up_ms: 2, idle_ms: 3, load_ms: 4, drain_ms: 5, after_ms: 6 },
            connect_rate: 100,
            loops: 2,
            workers: 3,
            seed: u64::MAX,
            repetition: Some(Repetition { number: 2, of: 5, seed: MOST }),
            injected_delay_us: 9,
            shape: Shape::Step { factors: vec![0.1, 1.0, 1.0 / 3.0] },
            is_told_to_begin: false,
            turns: None,
            headers: RequestHeaders::Browser,
            compression_from: Some(256),
            content: Content::Json,
            poll_newest_count: Some(10),
            poll_after_publication_ms: Some(40),
            user_list: true,
            receipts: true,
            backend_listen: Some("127.0.0.1:9000".parse().unwrap()),
            backend_descriptor: Some(5),
            sockets: Sockets {
                tls: true,
                http_version: HttpVersion::Http2,
                keep_alive: false,
                clients_per_host: 3,
                send_buffer_bytes: Some(4096),
                ..Sockets::default()
            },
            sources: Sources::From { first: [10, 0, 0, 4].into(), clients_each: 9 },
            instruments_from: Some([10, 0, 0, 3].into()),
            prober_core: Some(3),
            clients_in: ClientsIn { hidden: true, ..ClientsIn::of(ClientKind::Firefox, 3) },
            page_scripts: None,
            drain_stall_ms: None,
        }
    }

    #[test]
    fn a_record_comes_back_from_the_store_as_it_was() {
        let path = std::env::temp_dir().join(format!("pushlab-convert-{}.db", std::process::id()));
        let mut store = Store::open(&path).unwrap();
        let new = NewCampaign {
            name: "test".to_owned(),
            kind: Kind::Measured,
            created_at: "2026-11-21T12:00:00Z".to_owned(),
            header: Value::Null,
            seed: 1,
            planned: 3,
            facts: Vec::new(),
        };
        let id = store.create_campaign(&new).unwrap();
        let mut last = failed(Some(Phase::WarmUp));
        last.planned.order = 5;
        // One that was asked to tell of its collections and had none is not one that was not asked.
        last.collections = Some(Vec::new());
        for record in [whole(), failed(None), last] {
            store.add_run(id, &to_store(&record).unwrap()).unwrap();
            let back = from_store(store.run(id, record.planned.order).unwrap()).unwrap();
            assert_eq!(serde_json::to_value(&back).unwrap(), serde_json::to_value(&record).unwrap());
            if let (Some(back), Some(result)) = (back.result, record.result) {
                assert_eq!((back.latency, back.turn_duration), (result.latency, result.turn_duration));
            }
        }
        drop(store);
        for suffix in ["", "-wal", "-shm"] {
            // A file that is not there need not go, and one that stays hurts nobody.
            let _ = std::fs::remove_file(format!("{}{suffix}", path.display()));
        }
    }

    #[test]
    fn what_is_stored_beside_the_document_can_be_searched() {
        let run = to_store(&whole()).unwrap();
        assert_eq!((run.counts["lost"], run.counts["cpu_load_ns"], run.histograms.len()), (7, 16, 17));
        let series: Vec<&str> = run.series.iter().map(|series| series.name.as_str()).collect();
        let own = ["collections", "event_loop_lag", "memory_usage", "seconds", "deliveries"];
        assert_eq!(series, [&["subject", "generator", "counters"], &own[..]].concat());
        assert_eq!(run.phases.iter().map(|phase| phase.end_ns).collect::<Vec<_>>(), [101, 102, 103, 104, 105, 107]);
        assert_eq!(run.counting(), store::Counts::Void);
        let rest = run.document["result"].as_object().unwrap();
        let nested = ["busiest", "bytes_load", "bytes_whole", "clocks", "errors", "refused"];
        assert_eq!(rest.keys().collect::<Vec<_>>(), nested, "all else has a table of its own");
    }
}
