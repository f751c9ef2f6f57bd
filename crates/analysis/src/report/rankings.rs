//! Who is better, where the intervals can tell.

use super::CONFIDENCE;
use super::quantiles::lacking_or_failed;
use super::samples::{SeriesRuns, figure, values};
use pushlab_experiment::margins::margin;
use pushlab_experiment::metric::{Better, Metric};
use pushlab_report::{Origin, Place, Ranking, Tie, Unplaced, WhyLacking};
use pushlab_stats::{Family, Pair, Ranked, Regime, Verdict, compare_family, rank};
use std::collections::BTreeMap;

/// Rankings under load and under stress of each of these metrics, each at the highest place on the axis at which
/// most series are in that regime. Only series of the same kind are ranked: an echo does not compete with a
/// broadcast. What was printed is not ranked: it was measured elsewhere.
///
/// Those who share a rank are equivalent to the first of them within the metric's margin, or it is undecided. A rate that
/// was the load's limit is behind nobody's: it shares the first rank, undecided. Series that were tried at that place and
/// have no figure stand below, with the reason; those all of whose runs failed stand last.
pub fn rankings(
    series: &[SeriesRuns<'_>],
    metrics: &[&Metric],
    margins: &BTreeMap<String, f64>,
    seed: u64,
) -> Vec<Ranking> {
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
            rankings.extend(judged.filter_map(|metric| {
                let margin = margin(margins, metric);
                let among = if kinds.len() > 1 { (*kind).to_owned() } else { String::new() };
                let found = ranking(&members, series, x, wanted, metric, margin, seed)?;
                let unplaced = unplaced(&own, &members, x, metric);
                let behind = unplaced.iter().filter(|one| one.lacking.why.is_behind()).count();
                (found.places.len() + behind > 1).then_some(Ranking { among, unplaced, ..found })
            }));
        }
    }
    rankings
}

fn ranking(
    members: &[&SeriesRuns<'_>],
    all: &[SeriesRuns<'_>],
    x: u32,
    wanted: Regime,
    metric: &Metric,
    margin: f64,
    seed: u64,
) -> Option<Ranking> {
    let entries: Vec<(usize, Vec<f64>)> = members
        .iter()
        .enumerate()
        .map(|(i, series)| (i, values(&series.cells[&x], metric.name)))
        .filter(|(_, values): &(usize, Vec<f64>)| !values.is_empty())
        .collect();
    if entries.is_empty() {
        return None;
    }
    let is_bounded =
        |i: usize| figure(&members[i].cells[&x], metric.name, seed).is_some_and(|figure| figure.is_lower_bound());
    let ordered = order(entries, metric.better, &is_bounded, seed)?;
    let runs_of: Vec<Vec<f64>> =
        ordered.iter().map(|entry| values(&members[entry.key].cells[&x], metric.name)).collect();
    let ranks: Vec<u32> = ordered.iter().map(|entry| entry.rank).collect();
    let bounded: Vec<bool> = ordered.iter().map(|entry| is_bounded(entry.key)).collect();
    let ties = ties(&ranks, &runs_of, &bounded, margin);
    let places = ordered.into_iter().zip(ties).filter_map(|(entry, tie)| {
        let series = members[entry.key];
        Some(Place {
            rank: entry.rank,
            tie,
            key: series.key.clone(),
            label: series.label.clone(),
            figure: figure(&series.cells[&x], metric.name, seed)?,
            published_rank: published_rank(series, all, x, metric),
            rank_among_published: None,
        })
    });
    Some(Ranking {
        among: String::new(),
        regime: wanted,
        metric: metric.name.to_owned(),
        x: f64::from(x),
        margin_percent: Some(margin * 100.0),
        places: ranked_among_published(places.collect()),
        unplaced: Vec::new(),
    })
}

/// The series without a figure at a place: of those that would be ranked, and of those all of whose runs failed.
fn unplaced(all: &[&SeriesRuns<'_>], members: &[&SeriesRuns<'_>], x: u32, metric: &Metric) -> Vec<Unplaced> {
    let is_member = |one: &SeriesRuns<'_>| members.iter().any(|member| member.key == one.key);
    let of = |one: &&SeriesRuns<'_>| {
        let lacking = lacking_or_failed(one.cells.get(&x)?, metric.name)?;
        let is_shown = is_member(one) || lacking.why == WhyLacking::Failed;
        is_shown.then(|| Unplaced { key: one.key.clone(), label: one.label.clone(), lacking })
    };
    let mut unplaced: Vec<Unplaced> = all.iter().filter_map(of).collect();
    unplaced.sort_by_key(|one| one.lacking.why);
    unplaced
}

/// Why places share their rank: two one-sided tests against the first of them, wrong equivalences of all being held at 5 %.
/// What is a lower bound is equivalent to nothing.
fn ties(ranks: &[u32], runs: &[Vec<f64>], bounded: &[bool], margin: f64) -> Vec<Option<Tie>> {
    let first_of = |place: usize| ranks.iter().position(|rank| *rank == ranks[place]).unwrap_or(place);
    let others: Vec<usize> = (0..ranks.len()).filter(|place| first_of(*place) != *place).collect();
    let pair = |place: &usize| Pair { a: &runs[*place], b: &runs[first_of(*place)], is_paired: false, margin };
    let pairs: Vec<Pair<'_>> = others.iter().map(pair).collect();
    // That they share a rank says that no difference was shown: what is left to ask is whether they are equivalent.
    let family = Family { confidence: CONFIDENCE, relevant_change: f64::MAX, seed: 1 };
    let found = compare_family(&pairs, &family).unwrap_or_default();
    let mut ties = vec![None; ranks.len()];
    for (place, comparison) in others.iter().zip(found) {
        let is_known = !bounded[*place] && !bounded[first_of(*place)];
        let is_equivalent = is_known && comparison.verdict == Verdict::Equivalent;
        let tie = if is_equivalent { Tie::Equivalent } else { Tie::Undecided };
        ties[*place] = Some(tie);
        // The first is as good as all of them, or it is undecided.
        let first = &mut ties[first_of(*place)];
        *first = Some(if *first == Some(Tie::Undecided) { Tie::Undecided } else { tie });
    }
    ties
}

/// Fills in the ranks among the series that have a published rank, which tell the same order on the study's scale.
fn ranked_among_published(mut places: Vec<Place>) -> Vec<Place> {
    let is_published = |place: &&Place| place.published_rank.is_some();
    let ranks: Vec<u32> = places.iter().filter(is_published).map(|place| place.rank).collect();
    for place in places.iter_mut().filter(|place| place.published_rank.is_some()) {
        place.rank_among_published = Some(1 + ranks.iter().filter(|rank| **rank < place.rank).count() as u32);
    }
    places
}

/// The rank that a series had in the study among all that the study printed of the same variant and place, those that
/// are not measured here too: single values, so that only equal ones share a rank.
fn published_rank(own: &SeriesRuns<'_>, all: &[SeriesRuns<'_>], x: u32, metric: &Metric) -> Option<u32> {
    let is_rival = |s: &&SeriesRuns<'_>| s.origin == Origin::Published && s.variant == own.variant;
    let rivals = || all.iter().filter(is_rival);
    let value = |s: &SeriesRuns<'_>| values(s.cells.get(&x)?, metric.name).first().copied();
    let printed = rivals().find(|s| s.subject == own.subject && s.transport == own.transport).and_then(value)?;
    let is_ahead = |other: &f64| if metric.better == Better::Higher { *other > printed } else { *other < printed };
    Some(1 + rivals().filter_map(value).filter(is_ahead).count() as u32)
}

/// Ranks entries by the mean of their values, the best first. Those that are lower bounds where more is better might do
/// better than any: they share the first rank, and the others keep the rank that they had.
pub(super) fn order(
    mut entries: Vec<(usize, Vec<f64>)>,
    better: Better,
    is_bounded: &dyn Fn(usize) -> bool,
    seed: u64,
) -> Option<Vec<Ranked<usize>>> {
    // The statistics rank ascending; where more is better, the mirrored values are ranked.
    if better == Better::Higher {
        entries.iter_mut().flat_map(|(_, values)| values).for_each(|value| *value = -*value);
    }
    let mut ranked = rank(&entries, CONFIDENCE, seed).ok()?;
    if better != Better::Higher {
        return Some(ranked);
    }
    let mut is_shared = false;
    for place in ranked.iter_mut().filter(|place| place.rank > 1 && is_bounded(place.key)) {
        place.rank = 1;
        is_shared = true;
    }
    ranked.iter_mut().filter(|place| place.rank == 1).for_each(|place| place.tied |= is_shared);
    // Who shared a rank with one of them alone has it for itself now.
    let ranks: Vec<u32> = ranked.iter().map(|place| place.rank).collect();
    for place in &mut ranked {
        place.tied &= ranks.iter().filter(|rank| **rank == place.rank).count() > 1;
    }
    ranked.sort_by_key(|place| place.rank);
    Some(ranked)
}

/// The place at which most series are in a regime, the higher one among equals, and those series. Where nobody could see
/// a server's CPU it is not known how busy it was: it is ranked beside those of either regime, and under load among
/// others like it.
fn best_place<'a, 'b>(series: &[&'b SeriesRuns<'a>], wanted: Regime) -> Option<(u32, Vec<&'b SeriesRuns<'a>>)> {
    let mut places: Vec<u32> = series.iter().flat_map(|s| s.cells.keys().copied()).collect();
    places.sort_unstable();
    places.dedup();
    let regimes: Vec<BTreeMap<u32, Regime>> = series.iter().map(|s| s.regimes()).collect();
    let at = |x: u32| -> Vec<&'b SeriesRuns<'a>> {
        let counting = |s: &SeriesRuns<'_>| s.cells.get(&x).is_some_and(|runs| runs.iter().any(|run| run.counts()));
        let there: Vec<(&SeriesRuns<'_>, Option<Regime>)> = series
            .iter()
            .zip(&regimes)
            .filter(|(s, _)| counting(s))
            .map(|(s, regimes)| (*s, regimes.get(&x).copied()))
            .collect();
        let is_known = there.iter().any(|(_, regime)| *regime == Some(wanted));
        let is_only_choice = wanted == Regime::Load && there.iter().all(|(_, regime)| regime.is_none());
        if !is_known && !is_only_choice {
            return Vec::new();
        }
        let is_member = |regime: Option<Regime>| regime.is_none_or(|regime| regime == wanted);
        there.into_iter().filter(|(_, regime)| is_member(*regime)).map(|(s, _)| s).collect()
    };
    let best = places.into_iter().max_by_key(|&x| (at(x).len(), x))?;
    let members = at(best);
    (!members.is_empty()).then_some((best, members))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::run_values::RunValues;
    use pushlab_experiment::cell::{Cell, SlowPolicy};
    use pushlab_stats::{Warning, WarningCode};
    use pushlab_wire::transport::Transport;
    use std::collections::BTreeSet;

    fn run(figures: &[(&str, f64)]) -> RunValues {
        let cell = Cell {
            experiment: "e".to_owned(),
            subject: "s".to_owned(),
            transport: Transport::Sse,
            policy: SlowPolicy::Close,
            variant: None,
            network: None,
            clients: 60,
            deliveries_per_s: None,
            payload_bytes: None,
        };
        let figures = figures.iter().map(|&(name, value)| (name.to_owned(), value)).collect();
        RunValues { figures, ..RunValues::planned(cell) }
    }

    fn series<'a>(origin: Origin, subject: &str, variant: &str, runs: Vec<&'a RunValues>) -> SeriesRuns<'a> {
        SeriesRuns {
            experiment: String::new(),
            key: format!("{subject}/{variant}"),
            label: subject.to_owned(),
            words: BTreeSet::new(),
            tag: String::new(),
            subject: subject.to_owned(),
            variant: variant.to_owned(),
            network: String::new(),
            kind: variant.to_owned(),
            transport: "sse".to_owned(),
            origin,
            cells: [(60, runs)].into(),
        }
    }

    #[test]
    fn the_rank_that_a_study_gave_stands_beside_ours() {
        let measured = [3.0, 1.0, 2.0, 2.0].map(|ms| run(&[("cpu", 50.0), ("latency_mean", ms)]));
        let printed = [10.0, 5.0, 20.0, 1.0].map(|ms| run(&[("latency_mean", ms)]));
        let all: Vec<SeriesRuns<'_>> =
            [("a", "chat", 0), ("b", "chat", 1), ("ours", "chat", 2), ("our-other", "chat", 3)]
                .map(|(subject, variant, at)| series(Origin::Measured, subject, variant, vec![&measured[at]; 3]))
                .into_iter()
                .chain(
                    [("a", "chat", 0), ("b", "chat", 1), ("gone", "chat", 2), ("b", "echo", 3)]
                        .map(|(subject, variant, at)| series(Origin::Published, subject, variant, vec![&printed[at]])),
                )
                .collect();
        let metric = Metric::find("latency_mean").unwrap();
        let found = rankings(&all, &[metric], &BTreeMap::new(), 1);
        let ranks = |place: &Place| (place.rank, place.published_rank, place.rank_among_published);
        let of = |label: &str| found[0].places.iter().find(|place| place.label == label).map(ranks);
        assert_eq!(of("b"), Some((1, Some(1), Some(1))));
        assert_eq!((of("ours"), of("our-other")), (Some((2, None, None)), Some((2, None, None))));
        let (rank, published, among) = of("a").unwrap();
        assert!(
            rank > 2 && (published, among) == (Some(2), Some(2)),
            "the same order, whoever else was measured: {rank}"
        );
    }

    #[test]
    fn a_shared_rank_is_equivalence_or_undecided() {
        let sides = [vec![1.00, 1.01, 0.99], vec![1.01, 1.02, 1.00], vec![0.80, 1.90, 1.00], vec![9.00, 9.01, 9.02]];
        assert_eq!(
            ties(&[1, 1, 1, 4], &sides, &[false; 4], 0.2),
            [Some(Tie::Undecided), Some(Tie::Equivalent), Some(Tie::Undecided), None]
        );
        let known = [false; 3];
        assert_eq!(ties(&[1, 1, 3], &sides[..3], &known, 0.2), [Some(Tie::Equivalent), Some(Tie::Equivalent), None]);
        assert_eq!(ties(&[1, 1], &sides[..2], &known, 0.005), [Some(Tie::Undecided); 2], "a narrow margin");
        let once = [vec![1.0], vec![1.0]];
        assert_eq!(ties(&[1, 1], &once, &known, 0.2), [Some(Tie::Undecided); 2], "one run each");
        for bounded in [[true, false], [false, true]] {
            assert_eq!(ties(&[1, 1], &sides[..2], &bounded, 0.2), [Some(Tie::Undecided); 2], "a lower bound");
        }
    }

    #[test]
    fn whoever_could_not_be_seen_is_ranked_with_those_of_either_regime() {
        let run = |cpu: Option<f64>, ms: f64| {
            let figures: Vec<(&str, f64)> =
                cpu.map(|cpu| ("cpu", cpu)).into_iter().chain([("latency_mean", ms)]).collect();
            run(&figures)
        };
        let calm = [run(Some(20.0), 1.0), run(Some(20.0), 2.0)];
        let busy = [run(Some(99.0), 7.0), run(Some(99.0), 8.0)];
        let unseen = [run(None, 4.0), run(None, 5.0)];
        let of = |runs: &[&RunValues]| {
            let series: Vec<SeriesRuns<'_>> = runs
                .iter()
                .enumerate()
                .map(|(at, run)| series(Origin::Measured, &format!("s{at}"), "", vec![*run; 3]))
                .collect();
            let metric = Metric::find("latency_mean").unwrap();
            let of = |ranking: Ranking| (ranking.regime, ranking.places.len());
            rankings(&series, &[metric], &BTreeMap::new(), 1).into_iter().map(of).collect::<Vec<_>>()
        };
        assert_eq!(of(&[&calm[0], &unseen[0]]), [(Regime::Load, 2)]);
        assert_eq!(of(&[&unseen[0], &unseen[1]]), [(Regime::Load, 2)], "and among others like it");
        let both = of(&[&calm[0], &calm[1], &busy[0], &busy[1], &unseen[0]]);
        assert_eq!(both, [(Regime::Load, 3), (Regime::Stress, 3)]);
        assert_eq!(of(&[&calm[0], &calm[1]]), [(Regime::Load, 2)]);
    }

    /// A label, its rank, and why that is shared.
    type Ranked = (String, u32, Option<Tie>);

    /// Those of the first ranking, and who has no place.
    fn ranks(runs: &[RunValues]) -> (Vec<Ranked>, Vec<String>) {
        let all: Vec<SeriesRuns<'_>> = runs
            .iter()
            .enumerate()
            .map(|(at, run)| series(Origin::Measured, &format!("s{at}"), "", vec![run; 3]))
            .collect();
        let found = rankings(&all, &[Metric::find("delivered").unwrap()], &BTreeMap::new(), 1).remove(0);
        let places = found.places.into_iter().map(|place| (place.label, place.rank, place.tie)).collect();
        (places, found.unplaced.into_iter().map(|one| format!("{} {}", one.label, one.lacking)).collect())
    }

    #[test]
    fn a_rate_that_was_the_loads_limit_is_behind_nobody() {
        let mut runs = [900.0, 700.0, 500.0, 300.0].map(|rate| run(&[("cpu", 50.0), ("delivered", rate)]));
        let of = |(label, rank, tie): (&str, u32, Option<Tie>)| (label.to_owned(), rank, tie);
        let known = [("s0", 1, None), ("s1", 2, None), ("s2", 3, None), ("s3", 4, None)].map(of);
        assert_eq!(ranks(&runs).0, known);
        runs[2].warnings = vec![Warning::new(WarningCode::GeneratorBound, "the load was full")];
        let undecided = Some(Tie::Undecided);
        let bounded = [("s0", 1, undecided), ("s2", 1, undecided), ("s1", 2, None), ("s3", 4, None)].map(of);
        assert_eq!(ranks(&runs).0, bounded, "who did less than a lower bound is behind it");
        let (cell, ms) = ([&runs[2]], figure(&[&runs[2]], "cpu", 1).unwrap());
        assert!(figure(&cell, "delivered", 1).unwrap().is_lower_bound() && !ms.is_lower_bound());
    }

    #[test]
    fn who_failed_stands_last_with_the_reason_and_is_not_absent() {
        let mut runs = [900.0, 700.0, 500.0].map(|rate| run(&[("cpu", 50.0), ("delivered", rate)]));
        for at in [0, 1] {
            runs[at].failure = Some(format!("exited with code {at}"));
        }
        let (places, failed) = ranks(&runs);
        assert_eq!(places, [("s2".to_owned(), 1, None)], "the only one that works");
        assert_eq!(failed, ["s0 failed: exited with code 0", "s1 failed: exited with code 1"]);
    }
}
