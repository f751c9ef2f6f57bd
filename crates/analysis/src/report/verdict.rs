//! The report in two or three sentences.

use super::leaderboard::sentences::sentences as standings;
use super::run_values::RunValues;
use super::tally::Tally;
use super::wording::{distance, join, place, show};
use pushlab_experiment::metric::{Better, Metric};
use pushlab_report::{
    Completeness, ExperimentReport, Leaderboard, Origin, Place, Point, Ranking, Scorecard, Tie, WhyLacking,
};
use pushlab_stats::Regime;

/// Most sentences on who won in one experiment; the rankings have the others.
const MAX_WINNERS: usize = 8;

/// What won, by how much, how sure; what to choose is on the card.
pub fn verdict(
    experiments: &[ExperimentReport],
    card: Option<&Scorecard>,
    board: Option<&Leaderboard>,
    runs: &[&RunValues],
) -> Vec<String> {
    let notes = card.into_iter().flat_map(|card| card.notes.iter().cloned());
    let mut sentences: Vec<String> = notes.chain(board.map(standings).unwrap_or_default()).collect();
    // What feeds the card or the leaderboard is told there; that a core is full is the point of the latter.
    let feeds_card =
        |e: &ExperimentReport| card.is_some_and(|card| card.rows.iter().any(|row| row.experiment == e.name));
    let is_told =
        |e: &&ExperimentReport| feeds_card(e) || board.is_some_and(|board| board.experiments.contains(&e.name));
    let others = || experiments.iter().filter(|e| !is_told(e));
    sentences.extend(others().flat_map(winners));
    sentences.extend(others().filter_map(saturation));
    sentences.push(certainty(experiments, Tally::of(runs)));
    sentences
}

/// Who won among those that are compared with each other: in each variant and over each network.
fn winners(experiment: &ExperimentReport) -> Vec<String> {
    let mut groups: Vec<&str> = Vec::new();
    for ranking in &experiment.rankings {
        if !groups.contains(&ranking.among.as_str()) {
            groups.push(&ranking.among);
        }
    }
    let of_group = |group: &&str| {
        let rankings: Vec<&Ranking> = experiment.rankings.iter().filter(|r| r.among == *group).collect();
        winner(experiment, pick(&rankings)?)
    };
    groups.iter().filter_map(of_group).take(MAX_WINNERS).collect()
}

fn winner(experiment: &ExperimentReport, ranking: &Ranking) -> Option<String> {
    let metric = Metric::find(&ranking.metric)?;
    let title = metric.title.to_lowercase();
    let best_is = if metric.better == Better::Higher { "highest" } else { "lowest" };
    let tied: Vec<&Place> = ranking.places.iter().filter(|p| p.rank == 1).collect();
    let next = ranking.places.iter().find(|p| p.rank > 1);
    let best = tied.first()?;
    let names: Vec<&str> = tied.iter().map(|p| p.label.as_str()).collect();
    let unit = metric.unit;
    let among = if ranking.among.is_empty() { String::new() } else { format!(" ({})", ranking.among) };
    let place = format!("{}{among} at {}", short(experiment), place(&experiment.axis, ranking.x));
    if best.figure.runs < 2 {
        return Some(format!(
            "{place}: one run each, so nothing can be ranked; the {best_is} {title} is that of {} ({}).",
            best.label,
            show(&best.figure, unit)
        ));
    }
    let lead = match next {
        Some(next) => {
            format!("; next is {} with {}", next.label, distance(best.figure.value, next.figure.value))
        }
        None => String::new(),
    };
    let lead = lead + &behind(ranking);
    Some(match names.as_slice() {
        [one] => format!("{place}: {one} has the {best_is} {title} ({}){lead}.", show(&best.figure, unit)),
        many => {
            let figure = show(&best.figure, unit);
            let within = ranking.margin_percent.map_or(String::new(), |percent| format!(" within {percent} %"));
            let of = |tie: Tie| -> Vec<&str> {
                tied[1..].iter().filter(|place| place.tie == Some(tie)).map(|place| place.label.as_str()).collect()
            };
            let (near, undecided) = (of(Tie::Equivalent), of(Tie::Undecided));
            let equivalent: Vec<&str> = std::iter::once(best.label.as_str()).chain(near.iter().copied()).collect();
            match (near.is_empty(), undecided.is_empty()) {
                (false, true) => {
                    format!("{place}: {} are equivalent in {title}{within} (from {figure}){lead}.", join(many))
                }
                (false, false) => format!(
                    "{place}: {} are equivalent in {title}{within} (from {figure}); undecided: {}{lead}.",
                    join(&equivalent),
                    join(&undecided)
                ),
                (true, _) => format!("{place}: undecided between {} in {title} (from {figure}){lead}.", join(many)),
            }
        }
    })
}

/// Who has no figure: those behind all others, those of which nothing is known, and who comes last.
fn behind(ranking: &Ranking) -> String {
    let of = |why: WhyLacking, words: &str| {
        let own = ranking.unplaced.iter().filter(|one| one.lacking.why == why);
        let labels: Vec<&str> = own.map(|one| one.label.as_str()).collect();
        if labels.is_empty() { String::new() } else { format!("; {words}: {}", join(&labels)) }
    };
    of(WhyLacking::NotReached, "not reached")
        + &of(WhyLacking::TooFew, "too few measurements")
        + &of(WhyLacking::Withheld, "withheld")
        + &of(WhyLacking::Failed, "last, because it failed")
}

/// The part of a title before its colon: `Broadcast`.
fn short(experiment: &ExperimentReport) -> &str {
    experiment.title.split(':').next().unwrap_or(&experiment.title)
}

/// The ranking that says most: latency below saturation, else whatever there is.
fn pick<'a>(rankings: &[&'a Ranking]) -> Option<&'a Ranking> {
    let find = |regime| rankings.iter().find(|r| r.regime == regime && r.metric.starts_with("latency"));
    find(Regime::Load).or_else(|| find(Regime::Stress)).or_else(|| rankings.first()).copied()
}

/// Where each series fills the server's core, where any does.
fn saturation(experiment: &ExperimentReport) -> Option<String> {
    let full = |points: &[Point]| points.iter().find(|p| p.regime == Some(Regime::Stress)).map(|p| p.x);
    let measured = experiment.series.iter().filter(|s| s.origin == Origin::Measured);
    let mut filled: Vec<(f64, &str)> =
        measured.filter_map(|series| Some((full(&series.points)?, series.label.as_str()))).collect();
    if filled.is_empty() {
        return None;
    }
    filled.sort_by(|a, b| a.0.total_cmp(&b.0));
    let parts: Vec<String> =
        filled.iter().map(|(x, label)| format!("{label} at {}", place(&experiment.axis, *x))).collect();
    let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
    Some(format!("{}: the server's core is full with {}.", short(experiment), join(&parts)))
}

fn certainty(experiments: &[ExperimentReport], tally: Tally) -> String {
    let what = if tally.valid == 1 { "run counts" } else { "runs count" };
    let mut text = format!("{} {what}", tally.valid);
    if tally.valid_later > 0 {
        text.push_str(&format!(" ({} not at the first try)", tally.valid_later));
    }
    if !tally.tried_again.is_empty() {
        let why: Vec<String> = tally.tried_again.iter().map(|(why, times)| format!("{why} {times} ×")).collect();
        text.push_str(&format!(", tried again because of {}", why.join(", ")));
    }
    for (count, what) in [(tally.void, "void"), (tally.failed, "failed")] {
        if count > 0 {
            text.push_str(&format!(", {count} {what}"));
        }
    }
    let points: Vec<&Point> = experiments.iter().flat_map(points_of).collect();
    if tally.valid > 0 {
        text.push_str(&what_went_wrong(experiments));
    }
    let runs = points.iter().map(|p| p.runs).min().unwrap_or(0);
    text.push_str(match runs {
        _ if tally.valid == 0 => "",
        0 => "; some points have no valid run",
        1 => "; some points rest on a single run, so nothing can be said about their spread",
        _ => "; intervals are at 95 %",
    });
    if experiments.iter().any(|e| e.completeness == Completeness::Partial) {
        text.push_str("; runs are still missing");
    }
    text.push('.');
    text
}

/// What was lost, duplicated or reordered, as far as that is known: figures that were imported tell little of single
/// deliveries.
fn what_went_wrong(experiments: &[ExperimentReport]) -> String {
    type Count = fn(&Point) -> Option<u64>;
    const KINDS: [(&str, Count); 3] =
        [("lost", |p| p.lost), ("duplicated", |p| p.duplicated), ("reordered", |p| p.reordered)];
    let points: Vec<&Point> = experiments.iter().flat_map(points_of).filter(|p| p.runs > 0).collect();
    let sums = KINDS.map(|(_, of)| points.iter().filter_map(|p| of(p)).sum::<u64>());
    let are_known = KINDS.map(|(_, of)| points.iter().all(|p| of(p).is_some()));
    let names = |is_meant: &dyn Fn(usize) -> bool| -> Vec<&str> {
        (0..KINDS.len()).filter(|kind| is_meant(*kind)).map(|kind| KINDS[kind].0).collect()
    };
    let (none, unknown) = (names(&|kind| are_known[kind]), names(&|kind| !are_known[kind] && sums[kind] == 0));
    let mut text = match (sums, are_known) {
        ([0, 0, 0], _) if none.is_empty() => String::new(),
        ([0, 0, 0], _) => format!("; nothing was {}", either(&none)),
        ([lost, duplicated, reordered], [true, true, true]) => {
            format!("; {lost} deliveries were lost, {} duplicated or reordered", duplicated + reordered)
        }
        _ => {
            let told = |kind: usize| match (are_known[kind], sums[kind]) {
                (false, 0) => None,
                (false, least) => Some(format!("at least {least} {}", KINDS[kind].0)),
                (true, count) => Some(format!("{count} {}", KINDS[kind].0)),
            };
            let told: Vec<String> = (0..KINDS.len()).filter_map(told).collect();
            format!("; deliveries: {}", told.join(", "))
        }
    };
    if sums != [0; 3] && experiments.len() > 1 {
        let is_wrong = |p: &Point| KINDS.iter().any(|(_, of)| of(p) > Some(0));
        let is_there = |e: &&ExperimentReport| points_of(e).any(is_wrong);
        let places: Vec<&str> = experiments.iter().filter(is_there).map(|e| e.name.as_str()).collect();
        text.push_str(&format!(" (in {})", join(&places)));
    }
    if !unknown.is_empty() {
        text.push_str(&format!("; whether any were {} is not known", either(&unknown)));
    }
    text
}

/// `a, b or c`.
fn either(words: &[&str]) -> String {
    match words {
        [first @ .., last] if !first.is_empty() => format!("{} or {last}", first.join(", ")),
        words => words.concat(),
    }
}

/// What was measured in an experiment.
fn points_of(experiment: &ExperimentReport) -> impl Iterator<Item = &Point> {
    experiment.series.iter().filter(|series| series.origin == Origin::Measured).flat_map(|series| &series.points)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::presets;
    use crate::report::{Asked, build};
    use pushlab_report::{Estimate, Lacking, Unplaced};

    #[test]
    fn of_several_experiments_it_is_told_in_which_something_was_lost() {
        let (mut lossy, clean) = (measured(), measured());
        lossy.name = "lossy".to_owned();
        let point = &mut lossy.series[0].points[0];
        point.lost = Some(7);
        let tally = || Tally { valid: 2, ..Tally::default() };
        let found = certainty(&[clean.clone(), lossy.clone()], tally());
        let unknown = "; whether any were duplicated or reordered is not known;";
        assert!(found.contains(&format!("; deliveries: at least 7 lost (in lossy){unknown}")), "{found}");
        let found = certainty(std::slice::from_ref(&clean), tally());
        assert!(found.contains("count; whether any were lost, duplicated or reordered is not known;"), "{found}");
        let mut experiments = [clean, lossy];
        for point in experiments.iter_mut().flat_map(|e| &mut e.series).flat_map(|s| &mut s.points) {
            point.lost = point.lost.or(Some(0));
            (point.duplicated, point.reordered) = (Some(0), Some(0));
        }
        let found = certainty(&experiments, tally());
        assert!(found.contains("; 7 deliveries were lost, 0 duplicated or reordered (in lossy);"), "{found}");
        let found = certainty(&experiments[..1], tally());
        assert!(found.contains("; nothing was lost, duplicated or reordered;"), "{found}");
    }

    /// Of an experiment whose transports are ranked.
    fn measured() -> ExperimentReport {
        let experiment = presets::load("tangen-chat", Some("quick")).unwrap();
        let run = |(at, cell): (usize, &pushlab_experiment::cell::Cell)| {
            let figures = [("latency_median", 1.0 + at as f64), ("cpu", 10.0)];
            let figures = figures.map(|(name, value)| (name.to_owned(), value)).into();
            RunValues { figures, ..RunValues::planned(cell.clone()) }
        };
        let runs = experiment.cells().iter().enumerate().map(run).collect();
        let report = build(&[presets::result(vec![experiment], runs)], &[], Asked::default(), String::new());
        report.experiments.into_iter().next().unwrap()
    }

    #[test]
    fn who_has_no_figure_is_named_with_the_reason_and_who_failed_last() {
        let mut experiment = measured();
        let mut ranking = experiment.rankings.remove(0);
        let unplaced = |(label, why): (&str, WhyLacking)| Unplaced {
            key: label.to_owned(),
            label: label.to_owned(),
            lacking: Lacking { why, detail: String::new() },
        };
        let reasons = [
            ("a", WhyLacking::Failed),
            ("b", WhyLacking::TooFew),
            ("c", WhyLacking::NotReached),
            ("d", WhyLacking::Failed),
        ];
        ranking.unplaced = reasons.map(unplaced).to_vec();
        ranking.places.iter_mut().for_each(|place| place.figure.runs = 3);
        let said = winner(&experiment, &ranking).unwrap();
        let end = "; not reached: c; too few measurements: b; last, because it failed: a and d.";
        assert!(said.ends_with(end), "{said}");
    }

    fn sentence(ties: &[(&str, u32, Option<Tie>)]) -> String {
        let mut experiment = measured();
        let place = |(label, rank, tie): &(&str, u32, Option<Tie>)| Place {
            rank: *rank,
            tie: *tie,
            key: (*label).to_owned(),
            label: (*label).to_owned(),
            figure: Estimate { value: f64::from(*rank), low: 0.9, high: 1.1, runs: 3, bound: None },
            published_rank: None,
            rank_among_published: None,
        };
        let mut ranking = experiment.rankings.remove(0);
        ranking.metric = "latency_median".to_owned();
        ranking.margin_percent = Some(20.0);
        ranking.places = ties.iter().map(place).collect();
        winner(&experiment, &ranking).unwrap()
    }

    #[test]
    fn a_shared_place_is_said_to_be_equivalent_or_undecided() {
        let (equivalent, undecided) = (Some(Tie::Equivalent), Some(Tie::Undecided));
        let said = sentence(&[("sse", 1, equivalent), ("websocket", 1, equivalent), ("polling", 3, None)]);
        assert!(
            said.contains("sse and websocket are equivalent in delivery latency, median within 20 % (from 1"),
            "{said}"
        );
        assert!(said.ends_with("; next is polling with 3.0 times that."), "{said}");
        let said = sentence(&[("sse", 1, undecided), ("websocket", 1, equivalent), ("polling", 1, undecided)]);
        assert!(said.contains("sse and websocket are equivalent") && said.ends_with("; undecided: polling."), "{said}");
        let said = sentence(&[("sse", 1, undecided), ("polling", 1, undecided)]);
        assert!(said.contains("undecided between sse and polling in delivery latency, median (from 1"), "{said}");
        let said = sentence(&[("sse", 1, None), ("polling", 2, None)]);
        assert!(said.contains("sse has the lowest delivery latency, median"), "{said}");
    }
}
