//! What process trees use, sampled, and when whoever watches a run reads for the first time.

use pushlab_probe::{Probe, ProbeConfig, Sample, Sampler, SamplerConfig};
use pushlab_workload::phase::{Periodic, Repetition};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

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
