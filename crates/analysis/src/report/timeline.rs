//! What happened over time in one run.

use pushlab_probe::Sample;
use pushlab_probe::paused::Seconds;
use pushlab_probe::runtime_log::MemoryUsage;
use pushlab_record::{CounterSample, RunRecord};
use pushlab_report::{PhaseSpan, Timeline};
use pushlab_workload::plan::Phase;

const MIB: f64 = 1024.0 * 1024.0;
/// Readings joined into one point of CPU: the kernel's accounting lags by a few ms, which 50 ms alone would show as
/// noise.
const CPU_WINDOW: usize = 4;

/// The timeline of a run; `None` when it measured nothing.
pub fn timeline(run: &RunRecord) -> Option<Timeline> {
    let result = run.result.as_ref()?;
    let origin = result.phases.first()?.t_ns;
    let seconds = |ns: u64| (ns as f64 - origin as f64) / 1e9;
    let alone = run.baseline.map(|(start, end)| PhaseSpan {
        name: "baseline".to_owned(),
        start: seconds(start),
        end: seconds(end),
    });
    let phases = result.phases.iter().enumerate().map(|(i, mark)| PhaseSpan {
        name: phase_name(mark.phase).to_owned(),
        start: seconds(mark.t_ns),
        end: seconds(result.phases.get(i + 1).map_or(result.end_ns, |next| next.t_ns)),
    });
    let t: Vec<f64> = (0..result.seconds.len()).map(|i| i as f64).collect();
    let rate = |get: fn(&CounterSample) -> f64| -> Vec<Option<f64>> {
        t.iter().map(|&from| counter_rate(&run.counters, &seconds, from, get)).collect()
    };
    let columns = Seconds { origin, count: t.len() };
    let pauses = run.collections.iter().flatten().map(|one| (one.t_ns, one.pause_ns));
    let lags = run.event_loop_lag.iter().map(|lag| (lag.t_ns, lag.lag_ns));
    let kind = |bytes: fn(&MemoryUsage) -> Option<u64>| {
        columns.last(run.memory_usage.iter().filter_map(|one| Some((one.t_ns, bytes(one)? as f64 / MIB))))
    };
    let begin = run.baseline.map_or(origin, |(start, _)| start);
    let (probe_t, cpu, memory) = probe_columns(&run.subject, begin, &seconds);
    Some(Timeline {
        phases: alone.into_iter().chain(phases).collect(),
        published: result.seconds.iter().map(|s| s.published as f64).collect(),
        server_received: rate(|c| c.received as f64),
        server_sent: rate(|c| c.sent as f64),
        delivered: result.seconds.iter().map(|s| s.delivered as f64).collect(),
        latency_median: result.seconds.iter().map(|s| Some(s.latency_median_ns? as f64 / 1e6)).collect(),
        latency_p99: result.seconds.iter().map(|s| Some(s.latency_p99_ns? as f64 / 1e6)).collect(),
        latency_own_median: result.seconds.iter().map(|s| Some(s.latency_own_median_ns? as f64 / 1e6)).collect(),
        queued_bytes: t.iter().map(|&from| highest_queue(&run.counters, &seconds, from)).collect(),
        collector_time: columns.stopped_ms(run.collections.as_deref()),
        collector_pause_max: columns.highest_ms(pauses),
        event_loop_lag: columns.highest_ms(lags),
        memory_heap: kind(|one| Some(one.heap_used_bytes)),
        memory_heap_total: kind(|one| Some(one.heap_total_bytes)),
        memory_external: kind(|one| one.external_bytes),
        generator_cpu: generator_cpu(&run.generator, &probe_t, &seconds),
        t,
        probe_t,
        cpu,
        memory,
    })
}

/// The name of a phase in reports.
pub fn phase_name(phase: Phase) -> &'static str {
    match phase {
        Phase::Connect => "connect",
        Phase::Idle => "idle",
        Phase::WarmUp => "warm-up",
        Phase::Load => "load",
        Phase::Drain => "drain",
        Phase::After => "after",
    }
}

/// Growth of a counter in the second from `from`; `None` where fewer than two readings cover it.
fn counter_rate(
    counters: &[CounterSample],
    seconds: &impl Fn(u64) -> f64,
    from: f64,
    get: fn(&CounterSample) -> f64,
) -> Option<f64> {
    let before = counters.iter().rev().find(|c| seconds(c.t_ns) <= from).or(counters.first())?;
    let after = counters.iter().find(|c| seconds(c.t_ns) >= from + 1.0).or(counters.last())?;
    let span = seconds(after.t_ns) - seconds(before.t_ns);
    (span > 0.2 && span < 3.0).then(|| (get(after) - get(before)) / span)
}

fn highest_queue(counters: &[CounterSample], seconds: &impl Fn(u64) -> f64, from: f64) -> Option<f64> {
    let inside = counters.iter().filter(|c| seconds(c.t_ns) >= from && seconds(c.t_ns) < from + 1.0);
    inside.map(|c| c.queued_bytes).max().map(|bytes| bytes as f64)
}

fn probe_columns(samples: &[Sample], begin: u64, seconds: &impl Fn(u64) -> f64) -> (Vec<f64>, Vec<f64>, Vec<f64>) {
    let (mut t, mut cpu, mut memory) = (Vec::new(), Vec::new(), Vec::new());
    for window in samples.windows(CPU_WINDOW + 1).step_by(CPU_WINDOW) {
        let (first, last) = (&window[0], &window[CPU_WINDOW]);
        if last.t_ns > first.t_ns && last.t_ns >= begin {
            t.push(seconds(last.t_ns));
            cpu.push(last.cpu_ns.saturating_sub(first.cpu_ns) as f64 * 100.0 / (last.t_ns - first.t_ns) as f64);
            memory.push(last.rss_bytes as f64 / MIB);
        }
    }
    (t, cpu, memory)
}

/// The generator's CPU at the instants of the subject's, from the readings around each.
fn generator_cpu(samples: &[Sample], instants: &[f64], seconds: &impl Fn(u64) -> f64) -> Vec<f64> {
    let at = |t: f64| {
        let i = samples.partition_point(|s| seconds(s.t_ns) < t).clamp(CPU_WINDOW, samples.len() - 1);
        let (first, last) = (&samples[i - CPU_WINDOW], &samples[i]);
        last.cpu_ns.saturating_sub(first.cpu_ns) as f64 * 100.0 / last.t_ns.saturating_sub(first.t_ns).max(1) as f64
    };
    if samples.len() <= CPU_WINDOW {
        return vec![0.0; instants.len()];
    }
    instants.iter().map(|&t| at(t)).collect()
}
