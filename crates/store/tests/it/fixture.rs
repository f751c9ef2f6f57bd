//! A folder for a store, and runs to put into it.

use pushlab_stats::{Histogram, Warning, WarningCode};
use pushlab_store::{
    Attempt, Bound, Cell, Column, Kind, MetricValue, NewCampaign, Outcome, PhaseRow, Run, SeriesRow, Store, Values,
};
use serde_json::json;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// A folder that is removed with the value.
pub struct Place {
    pub folder: PathBuf,
}

impl Place {
    pub fn new(name: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("pushlab-store-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).unwrap();
        Self { folder }
    }

    pub fn path(&self) -> PathBuf {
        self.folder.join("results.db")
    }

    pub fn store(&self) -> Store {
        Store::open(&self.path()).unwrap()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

pub fn new_campaign(name: &str) -> NewCampaign {
    NewCampaign {
        name: name.to_owned(),
        kind: Kind::Measured,
        created_at: "2024-05-01T12:00:00Z".to_owned(),
        seed: u64::MAX - 3,
        planned: 4,
        facts: vec![("kernel".to_owned(), "6.1".to_owned()), ("cpu".to_owned(), "2 × \"fast\"".to_owned())],
        header: json!({"command": ["pushlab", "compare"], "ratio": 0.1 + 0.2, "seed": u64::MAX}),
    }
}

pub fn cell(transport: &str, clients: u32) -> Cell {
    Cell {
        experiment: "feed, fast".to_owned(),
        subject: "push lab".to_owned(),
        transport: transport.to_owned(),
        policy: "close".to_owned(),
        variant: None,
        network: None,
        clients,
        deliveries_per_s: None,
        payload_bytes: Some(71),
    }
}

/// A run of little.
pub fn small_run(place: u32) -> Run {
    Run {
        place,
        cell: cell("websocket", 10),
        repeat: place,
        seed: u64::from(place) << 40 | 1 << 63,
        started_at: "2024-05-01T12:00:01.5Z".to_owned(),
        took_ms: 1_000,
        attempts: 1,
        earlier: vec![],
        outcome: Outcome::Completed,
        warnings: vec![],
        phases: vec![],
        figures: [("latency_p50".to_owned(), MetricValue::from(0.1 + f64::from(place) / 3.0))].into(),
        counts: [].into(),
        histograms: [].into(),
        series: vec![],
        document: json!(null),
    }
}

/// A run of 30 s as the lab keeps it: two processes sampled every 50 ms, counters every 250 ms, every second.
pub fn full_run(place: u32) -> Run {
    let mut random = fastrand::Rng::with_seed(u64::from(place));
    let mut histogram = || {
        let mut histogram = Histogram::new();
        (0..20_000).for_each(|_| histogram.record(200_000 + random.u64(0..1_000) * random.u64(0..5_000)));
        histogram
    };
    let names = ["latency", "latency_first", "latency_last", "lateness", "turn_duration"];
    let histograms = names.into_iter().map(|name| (name.to_owned(), histogram())).collect();
    let warning = |code, detail: &str| Warning::new(code, detail);
    Run {
        cell: Cell {
            variant: Some("corked".to_owned()),
            network: Some("lan 100".to_owned()),
            deliveries_per_s: Some(20_000),
            ..cell("long-polling", 100)
        },
        took_ms: 30_412,
        attempts: 2,
        earlier: vec![Attempt {
            started_at: "2024-05-01T12:00:00.5Z".to_owned(),
            took_ms: 29_000,
            reason: "lateness".to_owned(),
            detail: "12 ms at 99 %".to_owned(),
            figures: [("latency_p50".to_owned(), 0.1 + 0.2)].into(),
        }],
        warnings: vec![warning(WarningCode::Unpinned, "2 cores"), warning(WarningCode::Loss, "1 of 10 deliveries")],
        phases: vec![
            PhaseRow { name: "connect".to_owned(), start_ns: 5, end_ns: 1 << 62 },
            PhaseRow { name: "load".to_owned(), start_ns: 1 << 62, end_ns: (1 << 63) - 1 },
        ],
        figures: [
            ("latency_p50".to_owned(), 1.25.into()),
            ("server_cpu".to_owned(), f64::MIN_POSITIVE.into()),
            ("throughput".to_owned(), (1e300 / 3.0).into()),
            (
                "messages".to_owned(),
                MetricValue { value: 120.0, bound: Some(Bound::About), unit: Some("messages/s".to_owned()) },
            ),
        ]
        .into(),
        counts: [("delivered".to_owned(), (1 << 63) - 1), ("lost".to_owned(), 0)].into(),
        histograms,
        series: vec![samples("subject", 600, place), samples("generator", 600, place + 1_000), seconds(30)],
        document: json!({"plan": {"clients": 100, "rate": 1e-7}, "errors": [], "text": "line\nend"}),
        ..small_run(place)
    }
}

fn samples(name: &str, rows: i64, seed: u32) -> SeriesRow {
    let mut random = fastrand::Rng::with_seed(u64::from(seed));
    let mut t_ns = 81_234_567_890_123;
    let mut totals = [0_i64; 4];
    let mut columns = vec![Vec::new(); 10];
    for row in 0..rows {
        t_ns += 50_000_000 + random.i64(-400_000..400_000);
        let steps = [random.i64(15_000_000..25_000_000), random.i64(0..3) * 10_000_000, random.i64(0..900), 3_400_000];
        totals.iter_mut().zip(steps).for_each(|(total, step)| *total += step);
        let memory = 84_381_696 + row / 40 * 4_096;
        let values = [Some(t_ns), Some(1), Some(3), Some(totals[0]), Some(totals[1]), Some(totals[2]), Some(totals[3])];
        let rest = [Some(memory), (row % 20 == 0).then_some(memory - 1), Some(112)];
        columns.iter_mut().zip(values.into_iter().chain(rest)).for_each(|(column, value)| column.push(value));
    }
    let named = |(index, values)| Column { name: format!("column_{index}"), values: Values::Integers(values) };
    SeriesRow { name: name.to_owned(), columns: columns.into_iter().enumerate().map(named).collect() }
}

fn seconds(rows: i64) -> SeriesRow {
    let delivered = (0..rows).map(|row| Some(2_000 + row)).collect();
    let latency = (0..rows).map(|row| (row > 2).then_some(row as f64 / 7.0)).collect();
    SeriesRow {
        name: "seconds".to_owned(),
        columns: vec![
            Column { name: "delivered".to_owned(), values: Values::Integers(delivered) },
            Column { name: "latency p50".to_owned(), values: Values::Numbers(latency) },
        ],
    }
}

pub fn failed_run(place: u32) -> Run {
    let reason = "the subject ended; \"signal 9\", see its log".to_owned();
    Run { outcome: Outcome::Failed { reason, phase: Some("load".to_owned()) }, ..small_run(place) }
}

pub fn void_run(place: u32) -> Run {
    Run { warnings: vec![Warning::new(WarningCode::Lateness, "lateness p99 40 ms")], ..small_run(place) }
}

/// This test binary again, doing only `task`, with the database's path and a first place in its environment.
pub fn child(task: &str, path: &Path, first: u32) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    as_child(&mut command, task, path, first);
    command
}

/// The same, where a shell runs `script` and the child is its `"$@"`.
pub fn child_in(shell: &[&str], script: &str, task: &str, path: &Path, first: u32) -> Command {
    let mut command = Command::new(shell[0]);
    command.args(&shell[1..]).args(["sh", "-c", script, "sh"]).arg(std::env::current_exe().unwrap());
    as_child(&mut command, task, path, first);
    command
}

fn as_child(command: &mut Command, task: &str, path: &Path, first: u32) {
    command.args([task, "--exact", "--nocapture", "--test-threads=1"]);
    command.env("PUSHLAB_STORE_CHILD", path).env("PUSHLAB_STORE_FIRST", first.to_string());
    command.stdout(Stdio::piped()).stderr(Stdio::inherit());
}

/// In a child: the database's path and the first place. In the tests themselves `None`, and the task does nothing.
pub fn childs_task() -> Option<(PathBuf, u32)> {
    let path = std::env::var_os("PUSHLAB_STORE_CHILD")?;
    Some((path.into(), std::env::var("PUSHLAB_STORE_FIRST").unwrap().parse().unwrap()))
}

/// Lines that children print for their parent; the test harness prints others.
pub const SAID: &str = "child: ";

/// What a child said until its end, without the mark.
pub fn said(child: Child) -> Vec<String> {
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "the child failed: {}", String::from_utf8_lossy(&output.stdout));
    let text = String::from_utf8(output.stdout).unwrap();
    // The harness may have begun the line with the name of the test.
    text.lines().filter_map(|line| Some(line.split_once(SAID)?.1.to_owned())).collect()
}

pub fn integrity(path: &Path) -> String {
    let connection = rusqlite::Connection::open(path).unwrap();
    connection.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap()
}
