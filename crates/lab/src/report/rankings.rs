//! Who is better, where the intervals can tell.

use super::figures::{CONFIDENCE, figure, values};
use super::model::{Place, Ranking};
use crate::measure::{self, Measure};
use crate::record::RunRecord;
use pushlab_stats::{Regime, STRESS_CPU_PERCENT, rank, regime};
use std::collections::BTreeMap;

/// A series' runs by number of clients.
pub struct SeriesRuns<'a> {
    /// Stable key.
    pub key: String,
    /// Legend text.
    pub label: String,
    /// Runs of each cell.
    pub cells: BTreeMap<u32, Vec<&'a RunRecord>>,
}

/// What is ranked: name, unit, measure. Lower is better in all.
const METRICS: [(&str, &str, Measure); 3] = [
    ("response time", "ms", measure::response_median),
    ("delivery latency", "ms", measure::latency_median),
    ("CPU time per delivery", "µs", measure::cpu_per_delivery),
];

/// Rankings under load and under stress, each at the highest number of clients at which most series are in that
/// regime.
pub fn rankings(series: &[SeriesRuns<'_>], seed: u64) -> Vec<Ranking> {
    let mut rankings = Vec::new();
    for wanted in [Regime::Load, Regime::Stress] {
        let Some((clients, members)) = best_place(series, wanted) else { continue };
        for (metric, unit, measure) in METRICS {
            rankings.extend(ranking(&members, clients, wanted, (metric, unit), measure, seed));
        }
    }
    rankings
}

fn ranking(
    members: &[&SeriesRuns<'_>],
    clients: u32,
    wanted: Regime,
    (metric, unit): (&str, &str),
    measure: Measure,
    seed: u64,
) -> Option<Ranking> {
    let entries: Vec<(usize, Vec<f64>)> = members
        .iter()
        .enumerate()
        .map(|(i, series)| (i, values(&series.cells[&clients], measure)))
        .filter(|(_, values)| !values.is_empty())
        .collect();
    if entries.len() < 2 {
        return None;
    }
    let ranked = rank(&entries, CONFIDENCE, seed).ok()?;
    let places = ranked.into_iter().filter_map(|entry| {
        let series = members[entry.key];
        let figure = figure(&series.cells[&clients], measure, seed)?;
        Some(Place { rank: entry.rank, key: series.key.clone(), label: series.label.clone(), figure })
    });
    Some(Ranking {
        regime: wanted,
        metric: metric.to_owned(),
        unit: unit.to_owned(),
        clients,
        places: places.collect(),
    })
}

/// The number of clients at which most series are in a regime, the higher one among equals, and those series.
fn best_place<'a, 'b>(series: &'b [SeriesRuns<'a>], wanted: Regime) -> Option<(u32, Vec<&'b SeriesRuns<'a>>)> {
    let mut counts: Vec<u32> = series.iter().flat_map(|s| s.cells.keys().copied()).collect();
    counts.sort_unstable();
    counts.dedup();
    let at = |clients: u32| -> Vec<&SeriesRuns<'_>> {
        let is_there = |s: &&SeriesRuns<'_>| {
            let cpu = s.cells.get(&clients).map(|runs| values(runs, measure::cpu));
            cpu.and_then(|cpu| pushlab_stats::mean(&cpu)).is_some_and(|cpu| regime(cpu, STRESS_CPU_PERCENT) == wanted)
        };
        series.iter().filter(is_there).collect()
    };
    let best = counts.into_iter().max_by_key(|&clients| (at(clients).len(), clients))?;
    let members = at(best);
    (members.len() >= 2).then_some((best, members))
}
