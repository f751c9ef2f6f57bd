//! How the clocks of workers on other machines did.

use super::results::ResultRuns;
use pushlab_workload::result::WorkerClock;
use std::collections::BTreeMap;

/// The clocks of an experiment's workers in words, a text for each worker.
pub fn clocks(name: &str, results: &[ResultRuns]) -> Vec<String> {
    let own = results.iter().flat_map(|result| &result.runs).filter(|run| run.cell.experiment == name);
    let mut of_workers: BTreeMap<u32, Vec<WorkerClock>> = BTreeMap::new();
    for clock in own.flat_map(|run| &run.clocks) {
        of_workers.entry(clock.worker).or_default().push(*clock);
    }
    of_workers.iter().map(|(worker, clocks)| in_words(*worker, clocks)).collect()
}

/// Of the newest run what it began with, of all what was worst.
fn in_words(worker: u32, clocks: &[WorkerClock]) -> String {
    let number = worker + 1;
    let offset_ns = clocks.last().map_or(0, |clock| clock.offset_ns);
    let side = if offset_ns < 0 { "ahead of" } else { "behind" };
    let drift_ppm =
        clocks.iter().map(|clock| clock.drift_ppm).max_by(|a, b| a.abs().total_cmp(&b.abs())).unwrap_or(0.0);
    let way = if drift_ppm < 0.0 { "gaining" } else { "losing" };
    let error_ms = clocks.iter().map(|clock| clock.error_ns).max().unwrap_or(0) as f64 / 1e6;
    let (distance, drift_ppm) = (distance(offset_ns), drift_ppm.abs());
    format!(
        "worker {number} was {distance} {side} the coordinator and {way} {drift_ppm:.1} ppm, corrected to within {error_ms:.3} ms"
    )
}

/// Machines that were not started together differ by days.
fn distance(offset_ns: i64) -> String {
    let ms = offset_ns.unsigned_abs() as f64 / 1e6;
    if ms < 1e4 { format!("{ms:.3} ms") } else { format!("{:.0} s", ms / 1e3) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::presets;
    use crate::report::RunValues;

    #[test]
    fn a_worker_has_one_text_with_the_worst_of_its_runs() {
        let experiment = presets::load("tangen-chat", Some("quick")).unwrap();
        let clock = |(worker, offset_ns, drift_ppm, error_ns)| WorkerClock { worker, offset_ns, drift_ppm, error_ns };
        let run = |clocks: &[(u32, i64, f64, u64)]| RunValues {
            clocks: clocks.iter().copied().map(clock).collect(),
            ..RunValues::planned(experiment.cells().remove(0))
        };
        let runs = vec![
            run(&[(1, 4_900_000, 49.0, 90_000), (2, -7_200_000_000_000, -3.0, 50_000)]),
            run(&[(1, 5_000_000, 50.0, 60_000)]),
        ];
        let results = [presets::result(vec![experiment], runs)];
        let told = clocks("tangen-chat", &results);
        assert_eq!(
            told,
            [
                "worker 2 was 5.000 ms behind the coordinator and losing 50.0 ppm, corrected to within 0.090 ms",
                "worker 3 was 7200 s ahead of the coordinator and gaining 3.0 ppm, corrected to within 0.050 ms"
            ]
        );
        assert!(clocks("another", &results).is_empty());
    }
}
