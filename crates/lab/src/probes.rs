//! What is watched beside the load while a run goes on: process trees, and the counters of our server.

use crate::counter_reader::CounterReader;
use pushlab_experiment::Experiment;
use pushlab_probe::{Probe, ProbeConfig, Sample, Sampler, SamplerConfig};
use pushlab_record::CounterSample;
use pushlab_workload::phase::{Periodic, Repetition};
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
/// Time between two samples of processes.
pub const SAMPLE_INTERVAL: Duration = Duration::from_millis(50);

/// What a process tree has used.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    /// CPU time since it began, ns.
    pub cpu_ns: u64,
    /// Resident memory, bytes.
    pub rss_bytes: u64,
}

impl Usage {
    /// What two have used together.
    pub fn plus(self, other: Self) -> Self {
        Self { cpu_ns: self.cpu_ns + other.cpu_ns, rss_bytes: self.rss_bytes + other.rss_bytes }
    }
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

    /// There is a later one.
    pub fn note(&self, sample: &Sample) {
        self.0[0].store(sample.cpu_ns, Ordering::Relaxed);
        self.0[1].store(sample.rss_bytes, Ordering::Relaxed);
    }
}

/// Where in their intervals the readers of a run begin to read: over its repeats everywhere.
#[derive(Debug, Clone, Copy)]
pub struct Phases {
    /// Which repetition it is.
    pub repetition: Repetition,
    /// The run's own.
    pub seed: u64,
}

impl Phases {
    /// How long after it could begin to read, something is read for the first time.
    pub fn delay(&self, what: Periodic, interval: Duration) -> Duration {
        let interval_ns = u64::try_from(interval.as_nanos()).unwrap_or(u64::MAX);
        Duration::from_nanos(self.repetition.phase_ns(what, self.seed, interval_ns))
    }
}

/// What is sampled, and for whom.
#[derive(Debug)]
pub struct Watched<'a> {
    /// Processes, watched as one.
    pub pids: &'a [u32],
    /// Ports of those sockets that are counted.
    pub ports: Vec<u16>,
    /// Which side of the run it is.
    pub what: Periodic,
    /// Time before the first sample.
    pub delay: Duration,
    /// Whether samples are told as they are taken, and not kept.
    pub are_told_only: bool,
}

/// Samples processes; whoever is told of a sample delays the next one.
///
/// # Errors
/// As a sentence.
pub fn sample(watched: Watched<'_>, tell: impl FnMut(&Sample) + Send + 'static) -> Result<Sampler, String> {
    let Watched { pids, ports, what, delay, are_told_only } = watched;
    let failed = |what: &dyn std::fmt::Display| format!("cannot watch processes {pids:?}: {what}");
    // A subject may be started again; one that ends by itself has ended the run.
    let config = ProbeConfig { ports, outlives_roots: what == Periodic::SubjectSamples, ..ProbeConfig::default() };
    let probe = Probe::of_all(pids, config).map_err(|e| failed(&e))?;
    let config = SamplerConfig { interval: SAMPLE_INTERVAL, delay, ..SamplerConfig::default() };
    let config = if are_told_only { SamplerConfig { samples_max: 0, ..config } } else { config };
    Sampler::start(probe, config, tell).map_err(|e| failed(&e))
}

/// How often the counters are read.
pub fn counter_interval(experiment: &Experiment) -> Duration {
    let is_quiet = experiment.phases.load_ms >= LONG_LOAD_MS || experiment.scenario == Scenario::Idle;
    if is_quiet { LONG_COUNTER_INTERVAL } else { COUNTER_INTERVAL }
}

/// Reads the server's counters in a thread of its own.
pub struct CounterWatch {
    stop: Arc<AtomicBool>,
    begins_anew: Arc<AtomicBool>,
    thread: JoinHandle<Vec<CounterSample>>,
}

impl CounterWatch {
    /// Begins to read, for the first time after a delay.
    pub fn start(mut reader: CounterReader, interval: Duration, delay: Duration) -> Self {
        let (stop, begins_anew) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
        let (stopped, is_new) = (stop.clone(), begins_anew.clone());
        let thread = std::thread::spawn(move || {
            let (mut samples, mut before) = (Vec::<CounterSample>::new(), CounterSample::default());
            let mut next = Instant::now() + delay;
            while !stopped.load(Ordering::Relaxed) {
                // A wake-up before its time is no reading.
                let wait = next.saturating_duration_since(Instant::now());
                if !wait.is_zero() {
                    std::thread::park_timeout(wait);
                    continue;
                }
                if is_new.swap(false, Ordering::Relaxed) {
                    reader.begin_anew();
                    before = samples.last().copied().unwrap_or_default();
                }
                samples.extend(reader.read().map(|sample| sample.after(&before)));
                next = (next + interval).max(Instant::now());
            }
            samples
        });
        Self { stop, begins_anew, thread }
    }

    /// Another process has taken the server's place: its counters begin at zero, and go on from where those were.
    pub fn begin_anew(&self) {
        self.begins_anew.store(true, Ordering::Relaxed);
    }

    /// Ends it.
    pub fn finish(self) -> Vec<CounterSample> {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.thread().unpark();
        self.thread.join().unwrap_or_default()
    }
}
