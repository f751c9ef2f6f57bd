//! The report in two or three sentences.

use super::model::{Completeness, ExperimentReport, Figure, Place, Ranking};
use crate::campaign::Tally;
use pushlab_stats::Regime;

/// What won, by how much, how sure.
pub fn verdict(experiments: &[ExperimentReport], tally: Tally) -> Vec<String> {
    let mut sentences: Vec<String> = experiments.iter().filter_map(winner).collect();
    sentences.extend(experiments.iter().filter_map(saturation));
    sentences.push(certainty(experiments, tally));
    sentences
}

fn winner(experiment: &ExperimentReport) -> Option<String> {
    let ranking = pick(&experiment.rankings)?;
    let tied: Vec<&Place> = ranking.places.iter().filter(|p| p.rank == 1).collect();
    let next = ranking.places.iter().find(|p| p.rank > 1);
    let best = tied.first()?;
    let names: Vec<&str> = tied.iter().map(|p| p.label.as_str()).collect();
    let unit = &ranking.unit;
    let where_ = format!("{} at {} clients", short(experiment), ranking.clients);
    if best.figure.runs < 2 {
        return Some(format!(
            "{where_}: one run each, so nothing can be ranked; the lowest {} is that of {} ({}).",
            ranking.metric,
            best.label,
            show(&best.figure, unit)
        ));
    }
    let lead = match next {
        Some(next) => {
            let factor = next.figure.value / best.figure.value;
            let distance = if factor >= 2.0 {
                format!("{factor:.1} times that")
            } else {
                format!("{:.0} % more", (factor - 1.0) * 100.0)
            };
            format!("; next is {} with {distance}", next.label)
        }
        None => String::new(),
    };
    Some(match names.as_slice() {
        [one] => format!("{where_}: {one} has the lowest {} ({}){lead}.", ranking.metric, show(&best.figure, unit)),
        many => format!(
            "{where_}: {} cannot be told apart in {} (from {}){lead}.",
            join(many),
            ranking.metric,
            show(&best.figure, unit)
        ),
    })
}

/// The part of a title before its colon: `Broadcast`.
fn short(experiment: &ExperimentReport) -> &str {
    experiment.title.split(':').next().unwrap_or(&experiment.title)
}

/// The ranking that says most: delivery latency below saturation, else whatever there is.
fn pick(rankings: &[Ranking]) -> Option<&Ranking> {
    let find = |regime, metric: &str| rankings.iter().find(|r| r.regime == regime && r.metric == metric);
    find(Regime::Load, "delivery latency")
        .or_else(|| find(Regime::Load, "response time"))
        .or_else(|| find(Regime::Stress, "delivery latency"))
        .or_else(|| rankings.first())
}

fn saturation(experiment: &ExperimentReport) -> Option<String> {
    let mut full: Vec<(u32, &str)> = experiment
        .series
        .iter()
        .filter_map(|series| {
            let point = series.points.iter().find(|p| p.regime == Some(Regime::Stress))?;
            Some((point.clients, series.label.as_str()))
        })
        .collect();
    if full.is_empty() {
        let most = experiment.series.iter().flat_map(|s| s.points.iter().map(|p| p.clients)).max()?;
        let has_any = experiment.series.iter().any(|s| s.points.iter().any(|p| p.regime.is_some()));
        return has_any
            .then(|| format!("{}: no transport fills the server's core, up to {most} clients.", short(experiment)));
    }
    full.sort_unstable();
    let parts: Vec<String> = full.iter().map(|(clients, label)| format!("{label} at {clients} clients")).collect();
    let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
    Some(format!("{}: the server's core is full with {}.", short(experiment), join(&parts)))
}

fn certainty(experiments: &[ExperimentReport], tally: Tally) -> String {
    let mut text = format!("{} runs count", tally.valid);
    for (count, what) in [(tally.void, "void"), (tally.failed, "failed")] {
        if count > 0 {
            text.push_str(&format!(", {count} {what}"));
        }
    }
    let lost: u64 = experiments.iter().flat_map(|e| &e.series).flat_map(|s| &s.points).map(|p| p.lost).sum();
    let wrong: u64 =
        experiments.iter().flat_map(|e| &e.series).flat_map(|s| &s.points).map(|p| p.duplicated + p.reordered).sum();
    text.push_str(&match (lost, wrong) {
        (0, 0) => "; nothing was lost, duplicated or reordered".to_owned(),
        (lost, wrong) => format!("; {lost} deliveries were lost, {wrong} duplicated or reordered"),
    });
    let runs = experiments.iter().flat_map(|e| &e.series).flat_map(|s| &s.points).map(|p| p.runs).min().unwrap_or(0);
    text.push_str(match runs {
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

fn show(figure: &Figure, unit: &str) -> String {
    if figure.runs < 2 {
        return format!("{} {unit}", digits(figure.value));
    }
    format!("{} {unit}, {} to {}", digits(figure.value), digits(figure.low), digits(figure.high))
}

/// Three significant digits.
pub fn digits(value: f64) -> String {
    let magnitude = if value == 0.0 { 0 } else { value.abs().log10().floor() as i32 };
    let decimals = (2 - magnitude).clamp(0, 6) as usize;
    format!("{value:.decimals$}")
}

fn join(names: &[&str]) -> String {
    match names {
        [] => String::new(),
        [one] => (*one).to_owned(),
        [rest @ .., last] => format!("{} and {last}", rest.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_three_digits() {
        assert_eq!([0.0, 0.01234, 1.5, 12.34, 1234.5].map(digits), ["0.00", "0.0123", "1.50", "12.3", "1234"]);
    }

    #[test]
    fn names_are_joined_as_people_do() {
        assert_eq!(join(&["a", "b", "c"]), "a, b and c");
    }
}
