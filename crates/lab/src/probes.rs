//! What is watched beside the load while a run goes on: process trees, and the counters of our server.

use crate::counter_reader::CounterReader;
use pushlab_analysis::record::CounterSample;
use pushlab_experiment::Experiment;
use pushlab_probe::{Probe, ProbeConfig, Sample, Sampler, SamplerConfig};
use pushlab_workload::scenario::Scenario;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Time between two readings of the server's counters. Each costs the server a request, which shows where it has
/// little to do, so that long runs are read less often.
const COUNTER_INTERVAL: Duration = Duration::from_millis(250);
/// The same for a load phase of at least [`LONG_LOAD_MS`], and for silent clients.
const LONG_COUNTER_INTERVAL: Duration = Duration::from_secs(2);
/// What counts as long, ms.
const LONG_LOAD_MS: u64 = 60_000;
/// What a process tree has used.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    /// CPU time since it began, ns.
    pub cpu_ns: u64,
    /// Resident memory, bytes.
    pub rss_bytes: u64,
}

/// The latest of a sampler's samples, for other threads.
#[derive(Clone, Default)]
pub struct LatestUsage(Arc<[AtomicU64; 2]>);

impl LatestUsage {
    /// What was used by then.
    pub fn read(&self) -> Usage {
        let [cpu_ns, rss_bytes] = &*self.0;
        Usage { cpu_ns: cpu_ns.load(Ordering::Relaxed), rss_bytes: rss_bytes.load(Ordering::Relaxed) }
    }
}

/// Samples processes as one, ports being those whose sockets are counted.
///
/// # Errors
/// As a sentence.
pub fn sample(pids: &[u32], ports: Vec<u16>, used: &LatestUsage) -> Result<Sampler, String> {
    let failed = |what: &dyn std::fmt::Display| format!("cannot watch processes {pids:?}: {what}");
    let probe = Probe::of_all(pids, ProbeConfig { ports, ..ProbeConfig::default() }).map_err(|e| failed(&e))?;
    let used = used.0.clone();
    let note = move |sample: &Sample| {
        used[0].store(sample.cpu_ns, Ordering::Relaxed);
        used[1].store(sample.rss_bytes, Ordering::Relaxed);
    };
    Sampler::start(probe, SamplerConfig::default(), note).map_err(|e| failed(&e))
}

/// How often the counters are read.
pub fn counter_interval(experiment: &Experiment) -> Duration {
    let is_quiet = experiment.phases.load_ms >= LONG_LOAD_MS || experiment.scenario == Scenario::Idle;
    if is_quiet { LONG_COUNTER_INTERVAL } else { COUNTER_INTERVAL }
}

/// Reads the server's counters in a thread of its own.
pub struct CounterWatch {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Vec<CounterSample>>,
}

impl CounterWatch {
    /// Begins to read.
    pub fn start(mut reader: CounterReader, interval: Duration) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = stop.clone();
        let thread = std::thread::spawn(move || {
            let mut samples = Vec::new();
            let mut next = Instant::now();
            while !stopped.load(Ordering::Relaxed) {
                samples.extend(reader.read());
                next = (next + interval).max(Instant::now());
                std::thread::park_timeout(next.saturating_duration_since(Instant::now()));
            }
            samples
        });
        Self { stop, thread }
    }

    /// Ends it.
    pub fn finish(self) -> Vec<CounterSample> {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.thread().unpark();
        self.thread.join().unwrap_or_default()
    }
}
