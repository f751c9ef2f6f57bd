//! A thread that samples at fixed instants.

use crate::budget::ReaderCost;
use crate::error::ProbeError;
use crate::probe::Probe;
use crate::sample::Sample;
use pushlab_os::clock::{monotonic_ns, thread_cpu_ns};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread::JoinHandle;
use std::time::Duration;

/// How often to sample, and how much to keep.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SamplerConfig {
    /// Time between two samples. Default 50 ms. Below 1 ms counts as 1 ms.
    pub interval: Duration,
    /// Time before the first. Default 0.
    pub delay: Duration,
    /// Samples kept; later ones go to the callback only. Default 200,000: 2 h 46 min at 50 ms, 60 MB.
    pub samples_max: usize,
}

impl Default for SamplerConfig {
    fn default() -> Self {
        Self { interval: Duration::from_millis(50), delay: Duration::ZERO, samples_max: 200_000 }
    }
}

/// What a sampler brought home.
#[derive(Debug, Default)]
pub struct Recording {
    /// The samples in order. Their instants are those of [`monotonic_ns`] at the reading, not the planned ones.
    pub samples: Vec<Sample>,
    /// Planned instants that passed without a sample, because the thread was not running or the last reading took
    /// too long.
    pub ticks_missed: u64,
    /// Samples not kept because there were [`SamplerConfig::samples_max`] already.
    pub samples_dropped: u64,
    /// CPU time that the sampler's thread used, callback included, ns.
    pub cpu_ns: u64,
    /// Wall time it ran, ns.
    pub wall_ns: u64,
    /// What each reader cost.
    pub costs: Vec<ReaderCost>,
    /// Why it stopped by itself, if it did: mostly that the root process ended.
    pub ended: Option<ProbeError>,
}

/// Samples a process tree in a thread of its own until stopped or until the root ends, unless the probe outlives it.
///
/// Instants are planned from the start (start + delay + n × interval), so lateness does not add up; ticks that are already
/// past are counted as missed, not made up for. Dropping a sampler stops it.
#[derive(Debug)]
pub struct Sampler {
    stop: Arc<AtomicBool>,
    followed: Sender<u32>,
    thread: Option<JoinHandle<Recording>>,
}

impl Sampler {
    /// Starts sampling. `on_sample` sees every sample as it is taken, in the sampler's thread, so what it does
    /// delays the next one: send it elsewhere.
    ///
    /// # Errors
    /// When no thread can be started.
    pub fn start(
        probe: Probe,
        config: SamplerConfig,
        on_sample: impl FnMut(&Sample) + Send + 'static,
    ) -> io::Result<Self> {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let (followed, roots) = mpsc::channel();
        let thread = std::thread::Builder::new()
            .name("pushlab-probe".into())
            .spawn(move || record(probe, config, &stopped, &roots, on_sample))?;
        Ok(Self { stop, followed, thread: Some(thread) })
    }

    /// From the next sample on, a further root is followed ([`Probe::follow`]).
    pub fn follow(&self, root: u32) {
        // A thread that has ended has said in its recording why.
        let _ = self.followed.send(root);
    }

    /// Whether it still samples: false once the root process has ended.
    pub fn is_running(&self) -> bool {
        self.thread.as_ref().is_some_and(|thread| !thread.is_finished())
    }

    /// Stops sampling and hands over what was recorded. Takes at most one reading's time.
    ///
    /// # Panics
    /// With the callback's panic, if that panicked.
    pub fn finish(mut self) -> Recording {
        let thread = self.thread.take().expect("only this method takes the thread, and it takes the sampler too");
        self.stop.store(true, Ordering::Release);
        thread.thread().unpark();
        thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }
}

impl Drop for Sampler {
    fn drop(&mut self) {
        if let Some(thread) = &self.thread {
            self.stop.store(true, Ordering::Release);
            thread.thread().unpark();
        }
    }
}

fn record(
    mut probe: Probe,
    config: SamplerConfig,
    stop: &AtomicBool,
    roots: &Receiver<u32>,
    mut on_sample: impl FnMut(&Sample),
) -> Recording {
    let interval = u64::try_from(config.interval.as_nanos()).unwrap_or(u64::MAX).max(1_000_000);
    let start = monotonic_ns();
    let mut recording = Recording {
        samples: Vec::new(),
        ticks_missed: 0,
        samples_dropped: 0,
        cpu_ns: 0,
        wall_ns: 0,
        costs: Vec::new(),
        ended: None,
    };
    let mut due = start.saturating_add(u64::try_from(config.delay.as_nanos()).unwrap_or(u64::MAX));
    while wait_until(due, stop) {
        let followed = roots.try_iter().try_for_each(|root| probe.follow(root));
        let sample = match followed.and_then(|()| probe.sample(monotonic_ns())) {
            Ok(sample) => sample,
            Err(error) => {
                recording.ended = Some(error);
                break;
            }
        };
        on_sample(&sample);
        if recording.samples.len() < config.samples_max {
            recording.samples.push(sample);
        } else {
            recording.samples_dropped += 1;
        }
        let (next, missed) = next_tick(due, interval, monotonic_ns());
        due = next;
        recording.ticks_missed = recording.ticks_missed.saturating_add(missed);
    }
    recording.cpu_ns = thread_cpu_ns();
    recording.wall_ns = monotonic_ns().saturating_sub(start);
    recording.costs = probe.costs();
    recording
}

/// The next planned instant that is not past yet, and how many were skipped on the way to it.
fn next_tick(due: u64, interval: u64, now: u64) -> (u64, u64) {
    let next = due.saturating_add(interval);
    // A tick that is due within its own interval is late, not missed.
    let missed = now.saturating_sub(next) / interval;
    (next.saturating_add(missed.saturating_mul(interval)), missed)
}

/// Sleeps until an instant; false when told to stop.
fn wait_until(due: u64, stop: &AtomicBool) -> bool {
    loop {
        if stop.load(Ordering::Acquire) {
            return false;
        }
        let left = due.saturating_sub(monotonic_ns());
        if left == 0 {
            return true;
        }
        // Parking may end early; the loop looks again.
        std::thread::park_timeout(Duration::from_nanos(left));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::probe::ProbeConfig;
    use std::process::{Child, Command, Stdio};

    const PATIENCE: Duration = Duration::from_secs(20);

    #[test]
    fn ticks_keep_to_the_plan() {
        assert_eq!(next_tick(100, 50, 101), (150, 0), "in time");
        assert_eq!(next_tick(100, 50, 160), (150, 0), "late: taken at once");
        assert_eq!(next_tick(100, 50, 199), (150, 0));
        assert_eq!(next_tick(100, 50, 200), (200, 1), "a whole interval late: missed");
        assert_eq!(next_tick(100, 50, 1_000), (1_000, 17));
    }

    #[test]
    fn samples_arrive_live_and_are_handed_back() {
        let probe = Probe::new(std::process::id(), ProbeConfig::default()).unwrap();
        let (sender, receiver) = mpsc::channel();
        let config = SamplerConfig { interval: Duration::from_millis(2), samples_max: 5, ..SamplerConfig::default() };
        let sampler = Sampler::start(probe, config, move |sample| _ = sender.send(sample.t_ns)).unwrap();
        let instants: Vec<u64> = (0..8).map(|_| receiver.recv_timeout(PATIENCE).unwrap()).collect();
        assert!(sampler.is_running());
        let recording = sampler.finish();
        assert!(instants.is_sorted());
        assert_eq!(recording.samples.len(), 5);
        assert!(recording.samples_dropped >= 3);
        assert_eq!(recording.samples[0].t_ns, instants[0]);
        assert!(recording.cpu_ns > 0 && recording.cpu_ns <= recording.wall_ns);
        assert!(recording.ended.is_none());
    }

    #[test]
    fn stopping_does_not_wait_for_the_next_tick() {
        let probe = Probe::new(std::process::id(), ProbeConfig::default()).unwrap();
        let (sender, receiver) = mpsc::channel();
        let config = SamplerConfig { interval: Duration::from_secs(3_600), ..SamplerConfig::default() };
        let sampler = Sampler::start(probe, config, move |_| _ = sender.send(())).unwrap();
        receiver.recv_timeout(PATIENCE).unwrap();
        // Without the wake-up this would take an hour.
        assert_eq!(sampler.finish().samples.len(), 1);
    }

    fn start() -> Child {
        Command::new("cat").stdin(Stdio::piped()).spawn().unwrap()
    }

    fn end(mut child: Child) {
        child.kill().unwrap();
        child.wait().unwrap();
    }

    #[test]
    fn one_that_outlives_its_roots_follows_the_next_and_its_time_never_goes_back() {
        let (sender, receiver) = mpsc::channel();
        let config = SamplerConfig { interval: Duration::from_millis(2), ..SamplerConfig::default() };
        let (first, second) = (start(), start());
        let probe = Probe::new(first.id(), ProbeConfig { outlives_roots: true, ..ProbeConfig::default() }).unwrap();
        let note = move |sample: &Sample| _ = sender.send((sample.processes, sample.rss_bytes));
        let sampler = Sampler::start(probe, config, note).unwrap();
        let await_processes = |wanted: u32| {
            let mut samples = std::iter::repeat_with(|| receiver.recv_timeout(PATIENCE).unwrap());
            samples.find(|(processes, _)| *processes == wanted).unwrap().1
        };
        assert!(await_processes(1) > 0);
        sampler.follow(second.id());
        await_processes(2);
        end(first);
        assert!(await_processes(1) > 0, "the other one lives");
        end(second);
        assert_eq!(await_processes(0), 0);
        let third = start();
        sampler.follow(third.id());
        assert!(await_processes(1) > 0);
        let recording = sampler.finish();
        end(third);
        assert!(recording.ended.is_none());
        assert!(recording.samples.is_sorted_by_key(|sample| sample.cpu_ns));
        assert!(recording.samples.last().unwrap().loopback.is_some(), "read of the namespace of the one that lives");
    }

    #[test]
    fn it_ends_with_its_subject() {
        let mut child = start();
        let probe = Probe::new(child.id(), ProbeConfig::default()).unwrap();
        let (sender, receiver) = mpsc::channel();
        let config = SamplerConfig { interval: Duration::from_millis(2), ..SamplerConfig::default() };
        let sampler = Sampler::start(probe, config, move |_| _ = sender.send(())).unwrap();
        receiver.recv_timeout(PATIENCE).unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
        // The sender goes with the thread.
        while receiver.recv_timeout(PATIENCE).is_ok() {}
        let recording = sampler.finish();
        assert!(matches!(recording.ended, Some(ProbeError::Gone { pid }) if pid == child.id()));
        assert!(!recording.samples.is_empty());
    }
}
