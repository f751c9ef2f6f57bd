//! Figures of one run from what the subject's runtime told of itself: garbage collections, lag of its event loop, and memory
//! by kind.

use super::usage::growth_per_hour;
use crate::RunRecord;
use pushlab_probe::paused::Paused;
use pushlab_probe::runtime_log::MemoryUsage;
use pushlab_workload::plan::Phase;

const MIB: f64 = 1024.0 * 1024.0;

/// What the collections of the load phase come to.
fn paused(run: &RunRecord) -> Option<Paused> {
    Paused::of(run.collections.as_ref()?, run.phase_span(Phase::Load)?)
}

/// Garbage collections of the load phase per second.
pub fn collections(run: &RunRecord) -> Option<f64> {
    Some(paused(run)?.collections_per_s)
}

/// Garbage collections of the whole heap in the load phase, per second.
pub fn collections_full(run: &RunRecord) -> Option<f64> {
    Some(paused(run)?.full_per_s)
}

/// Share of the load phase in which the subject stood still for its collector, per cent.
pub fn collector_time(run: &RunRecord) -> Option<f64> {
    Some(paused(run)?.percent)
}

/// Longest pause for the collector in the load phase, ms.
pub fn collector_pause_max(run: &RunRecord) -> Option<f64> {
    paused(run)?.longest_ms
}

/// Lags of the event loop that were due in the load phase, ms, ascending.
fn lags_of_load(run: &RunRecord) -> Option<Vec<f64>> {
    let (start, end) = run.phase_span(Phase::Load)?;
    let inside = run.event_loop_lag.iter().filter(|lag| (start..=end).contains(&lag.t_ns));
    let mut lags: Vec<f64> = inside.map(|lag| lag.lag_ns as f64 / 1e6).collect();
    lags.sort_by(f64::total_cmp);
    Some(lags)
}

/// Lag of the event loop in the load phase, 99th percentile, ms.
pub fn event_loop_lag_p99(run: &RunRecord) -> Option<f64> {
    pushlab_stats::quantile(&lags_of_load(run)?, 0.99)
}

/// Highest lag of the event loop in the load phase, ms.
pub fn event_loop_lag_max(run: &RunRecord) -> Option<f64> {
    lags_of_load(run)?.last().copied()
}

/// One kind of memory in the load phase: when it was told, ns, and bytes.
fn memory_of_load(run: &RunRecord, bytes: fn(&MemoryUsage) -> Option<u64>) -> Option<Vec<(u64, u64)>> {
    let (start, end) = run.phase_span(Phase::Load)?;
    let inside = run.memory_usage.iter().filter(|one| (start..=end).contains(&one.t_ns));
    Some(inside.filter_map(|one| Some((one.t_ns, bytes(one)?))).collect())
}

/// The mean of one kind of memory in the load phase, MiB.
fn mean_memory(run: &RunRecord, bytes: fn(&MemoryUsage) -> Option<u64>) -> Option<f64> {
    let told = memory_of_load(run, bytes)?;
    let sum: f64 = told.iter().map(|&(_, bytes)| bytes as f64 / MIB).sum();
    (!told.is_empty()).then(|| sum / told.len() as f64)
}

/// What objects took in the heap of the subject's runtime in the load phase, mean, MiB.
pub fn memory_heap(run: &RunRecord) -> Option<f64> {
    mean_memory(run, |one| Some(one.heap_used_bytes))
}

/// The whole heap of the subject's runtime in the load phase, mean, MiB.
pub fn memory_heap_total(run: &RunRecord) -> Option<f64> {
    mean_memory(run, |one| Some(one.heap_total_bytes))
}

/// What objects of that heap held outside it in the load phase, mean, MiB.
pub fn memory_external(run: &RunRecord) -> Option<f64> {
    mean_memory(run, |one| one.external_bytes)
}

/// Trend of what objects took in the heap over a load phase of at least a minute, MiB per hour.
pub fn memory_heap_growth(run: &RunRecord) -> Option<f64> {
    growth_per_hour(run, memory_of_load(run, |one| Some(one.heap_used_bytes))?.into_iter())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::presets;
    use pushlab_probe::runtime_log::{Collection, CollectionKind, LoopLag};
    use pushlab_workload::result::{LoadResult, PhaseMark};

    const MS: u64 = 1_000_000;

    /// A load phase from 1 s to 3 s.
    fn run() -> RunRecord {
        let mark = |phase, ms| PhaseMark { phase, t_ns: ms * MS };
        let mut run = RunRecord::blank(presets::load("tangen-chat").cells().remove(0));
        run.result = Some(LoadResult {
            phases: vec![mark(Phase::Connect, 0), mark(Phase::Load, 1_000), mark(Phase::Drain, 3_000)],
            end_ns: 4_000 * MS,
            ..LoadResult::default()
        });
        run
    }

    fn collection(ms: u64, pause_ms: u64, steps_ms: u64, kind: CollectionKind) -> Collection {
        Collection { t_ns: ms * MS, pause_ns: pause_ms * MS, steps_ns: steps_ms * MS, kind }
    }

    #[test]
    fn collections_of_the_load_phase_are_counted_and_timed() {
        use CollectionKind::{Full, Part, Young};
        let mut run = run();
        let figures =
            |run: &RunRecord| [collections, collections_full, collector_time, collector_pause_max].map(|of| of(run));
        assert_eq!(figures(&run), [None; 4], "it was not asked");
        run.collections = Some(Vec::new());
        assert_eq!(figures(&run), [Some(0.0), Some(0.0), Some(0.0), None], "it never paused");
        run.collections = Some(vec![
            collection(900, 500, 0, Full),
            collection(1_500, 4, 0, Young),
            collection(1_600, 6, 0, Young),
            collection(2_000, 30, 10, Full),
            collection(2_500, 50, 0, Part),
            collection(3_500, 500, 0, Full),
        ]);
        assert_eq!(figures(&run), [Some(1.5), Some(0.5), Some(5.0), Some(50.0)]);
    }

    #[test]
    fn memory_by_kind_is_that_of_the_load_phase() {
        let mut run = run();
        let figures = |run: &RunRecord| {
            [memory_heap, memory_heap_total, memory_external, memory_heap_growth].map(|of| of(run).map(f64::round))
        };
        assert_eq!(figures(&run), [None; 4], "it does not tell");
        let told = |ms: u64, used: u64, external: Option<u64>| MemoryUsage {
            t_ns: ms * MS,
            heap_used_bytes: used << 20,
            heap_total_bytes: (used + 5) << 20,
            external_bytes: external.map(|mib| mib << 20),
        };
        run.memory_usage =
            vec![told(900, 99, Some(99)), told(1_500, 4, None), told(2_500, 6, None), told(3_500, 99, None)];
        assert_eq!(
            figures(&run),
            [Some(5.0), Some(10.0), None, None],
            "nobody tells of the outside, and two seconds have no trend"
        );
        run.result.as_mut().unwrap().phases[2].t_ns = 121_000 * MS;
        run.memory_usage = (0..60).map(|at| told(1_000 + 2_000 * at, 10 + at, Some(3))).collect();
        assert_eq!(figures(&run)[2..], [Some(3.0), Some(1_800.0)], "a MiB every two seconds");
    }

    #[test]
    fn lag_is_that_of_what_was_due_in_the_load_phase() {
        let mut run = run();
        assert_eq!((event_loop_lag_p99(&run), event_loop_lag_max(&run)), (None, None));
        let lag = |ms: u64, lag_ms: u64| LoopLag { t_ns: ms * MS, lag_ns: lag_ms * MS };
        run.event_loop_lag = (0..=100).map(|at| lag(1_000 + 10 * at, at)).collect();
        run.event_loop_lag.extend([lag(500, 9_000), lag(3_500, 9_000)]);
        assert_eq!((event_loop_lag_p99(&run), event_loop_lag_max(&run)), (Some(99.0), Some(100.0)));
    }
}
