//! Who is better, where the intervals can tell.

use super::CONFIDENCE;
use super::model::{Better, Origin, Place, Ranking};
use super::samples::{SeriesRuns, figure, regime_of, values};
use crate::metric::Metric;
use pushlab_stats::{Ranked, Regime, rank};

/// Rankings under load and under stress of each of these metrics, each at the highest place on the axis at which
/// most series are in that regime. Only series of the same kind are ranked: an echo does not compete with a
/// broadcast. What was printed is not ranked: it was measured elsewhere.
pub fn rankings(series: &[SeriesRuns<'_>], metrics: &[&Metric], seed: u64) -> Vec<Ranking> {
    let measured: Vec<&SeriesRuns<'_>> = series.iter().filter(|s| s.origin == Origin::Measured).collect();
    let mut kinds: Vec<&str> = Vec::new();
    for kind in measured.iter().map(|s| s.kind.as_str()) {
        if !kinds.contains(&kind) {
            kinds.push(kind);
        }
    }
    let mut rankings = Vec::new();
    for kind in &kinds {
        let own: Vec<&SeriesRuns<'_>> = measured.iter().filter(|s| s.kind == *kind).copied().collect();
        for wanted in [Regime::Load, Regime::Stress] {
            let Some((x, members)) = best_place(&own, wanted) else { continue };
            let judged = metrics.iter().filter(|metric| metric.better != Better::Neither);
            rankings.extend(judged.filter_map(|metric| ranking(&members, x, wanted, metric, seed)).map(|ranking| {
                let among = if kinds.len() > 1 { (*kind).to_owned() } else { String::new() };
                Ranking { among, ..ranking }
            }));
        }
    }
    rankings
}

fn ranking(members: &[&SeriesRuns<'_>], x: u32, wanted: Regime, metric: &Metric, seed: u64) -> Option<Ranking> {
    let entries: Vec<(usize, Vec<f64>)> = members
        .iter()
        .enumerate()
        .map(|(i, series)| (i, values(&series.cells[&x], metric.name)))
        .filter(|(_, values): &(usize, Vec<f64>)| !values.is_empty())
        .collect();
    if entries.len() < 2 {
        return None;
    }
    let places = order(entries, metric.better, seed)?.into_iter().filter_map(|entry| {
        let series = members[entry.key];
        let figure = figure(&series.cells[&x], metric.name, seed)?;
        Some(Place { rank: entry.rank, key: series.key.clone(), label: series.label.clone(), figure })
    });
    Some(Ranking {
        among: String::new(),
        regime: wanted,
        metric: metric.name.to_owned(),
        x: f64::from(x),
        places: places.collect(),
    })
}

/// Ranks entries by the mean of their values, the best first.
pub(super) fn order(mut entries: Vec<(usize, Vec<f64>)>, better: Better, seed: u64) -> Option<Vec<Ranked<usize>>> {
    // The statistics rank ascending; where more is better, the mirrored values are ranked.
    if better == Better::Higher {
        entries.iter_mut().flat_map(|(_, values)| values).for_each(|value| *value = -*value);
    }
    rank(&entries, CONFIDENCE, seed).ok()
}

/// The place at which most series are in a regime, the higher one among equals, and those series.
fn best_place<'a, 'b>(series: &[&'b SeriesRuns<'a>], wanted: Regime) -> Option<(u32, Vec<&'b SeriesRuns<'a>>)> {
    let mut places: Vec<u32> = series.iter().flat_map(|s| s.cells.keys().copied()).collect();
    places.sort_unstable();
    places.dedup();
    let at = |x: u32| -> Vec<&'b SeriesRuns<'a>> {
        let is_there = |s: &&&SeriesRuns<'_>| s.cells.get(&x).and_then(|runs| regime_of(runs)) == Some(wanted);
        series.iter().filter(is_there).copied().collect()
    };
    let best = places.into_iter().max_by_key(|&x| (at(x).len(), x))?;
    let members = at(best);
    (members.len() >= 2).then_some((best, members))
}
