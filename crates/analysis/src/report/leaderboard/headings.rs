//! What stands above a leaderboard: its note, and the headings of its columns.

use super::columns::{ColumnKind, Kind, RATE};
use super::entries::Entry;
use crate::report::model::LeaderboardColumn;
use crate::report::wording::digits;
use crate::warnings::WARM_UP_SEEN_MS;
use pushlab_experiment::Experiment;
use pushlab_experiment::metric::Metric;

/// What was measured how; `cores` are those of every subject.
pub fn note(asking: &[&Experiment], cores: Option<usize>, warms_up: bool) -> String {
    let own = |kind| asking.iter().filter(move |experiment| Kind::of(experiment) == kind);
    let titles = |kind| {
        let titles: Vec<String> = own(kind).map(|experiment| format!("“{}”", experiment.title)).collect();
        (!titles.is_empty()).then(|| titles.join(", "))
    };
    let on = match cores {
        Some(1) => "; the server had one core".to_owned(),
        Some(cores) => format!("; the server had {cores} cores"),
        None => String::new(),
    };
    let mut sentences = Vec::new();
    if let Some(closed) = titles(Kind::ClosedLoop) {
        sentences.push(format!(
            "Deliveries, CPU time and bytes are those of {closed}, where publications follow deliveries, so that the \
             server is never without work{on}."
        ));
    }
    if let Some(scheduled) = titles(Kind::Scheduled) {
        let share = own(Kind::Scheduled).find_map(|experiment| experiment.capacity_share.as_ref());
        let how = share.map_or("which publishes on a schedule".to_owned(), |wanted| {
            let most = wanted.at_most.map_or_else(String::new, |most| {
                let most = digits(f64::from(most));
                format!(", but at most {most} /s: the faster a server, the more it then has to spare")
            });
            format!(
                "at {} what the same server delivered over the same transport{most}. Each row had a rate of its own, which \
                 stands before its latency",
                part(wanted.share)
            )
        });
        sentences.push(format!("Latency is that of {scheduled}, {how}."));
    }
    if let Some(idle) = titles(Kind::Idle) {
        sentences.push(format!("Memory is that of {idle}."));
    }
    let is_short =
        |experiment: &&Experiment| Kind::of(experiment) != Kind::Idle && experiment.phases.load_ms < WARM_UP_SEEN_MS;
    if asking.iter().any(is_short) && warms_up {
        sentences.push(
            "Load phases this short do not tell whether a virtual machine of Java has warmed up: those servers may do \
             better in the full experiments."
                .to_owned(),
        );
    }
    sentences.join(" ")
}

/// The heading of a column that some of the entries have.
pub fn heading(column: &ColumnKind, metric: &Metric, entries: &[Entry<'_>], cores: Option<usize>) -> LeaderboardColumn {
    let source = entries.iter().find_map(|entry| entry.runs(column)).map(|(experiment, _)| *experiment);
    let share = source.and_then(|experiment| experiment.capacity_share.as_ref());
    let title = match share {
        Some(wanted) if column.metric != RATE => {
            let most = wanted.at_most.map_or_else(String::new, |most| format!(", or {} /s", digits(f64::from(most))));
            format!("{}, at {} its own rate{most}", column.title, part(wanted.share))
        }
        _ if column.metric == "delivered" && cores == Some(1) => format!("{} on one core", column.title),
        _ => column.title.to_owned(),
    };
    LeaderboardColumn {
        metric: column.metric.to_owned(),
        title,
        unit: column.unit.to_owned(),
        better: metric.better,
        experiment: source.map_or_else(String::new, |experiment| experiment.name.clone()),
        share: share.map(|wanted| wanted.share),
    }
}

/// `half`, `30 % of`.
pub fn part(share: f64) -> String {
    if share == 0.5 { "half".to_owned() } else { format!("{} % of", (share * 1e3).round() / 10.0) }
}
