//! What stands above a leaderboard: its note, and the headings of its columns.

use super::columns::{Kind, RATE, common_rate};
use super::entries::Column;
use crate::report::wording::digits;
use crate::warnings::WARM_UP_SEEN_MS;
use pushlab_experiment::{CapacityShare, Experiment, traffic};
use pushlab_report::LeaderboardColumn;
use pushlab_workload::scenario::Shape;

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
    let (same, share) = (titles(Kind::SameRate), titles(Kind::OwnRate));
    let told = |also: bool| if also { "CPU time and latency are those" } else { "CPU time is that" };
    if let Some(same) = &same {
        let is_alone = share.is_none();
        sentences.push(format!("{} of {same}: each schedule is the same for all servers.", told(is_alone)));
    }
    if let Some(closed) = titles(Kind::ClosedLoop) {
        sentences.push(format!(
            "Deliveries in a closed loop and bytes are those of {closed}, where publications follow deliveries, so that \
             the server is never without work{on}: whoever writes many messages at once gains more there than where \
             they are evenly spaced."
        ));
    }
    if let (Some(share), Some(wanted)) = (&share, own(Kind::OwnRate).find_map(|e| e.capacity_share.as_ref())) {
        let what = if same.is_some() { "Latency is that" } else { told(true) };
        sentences.push(format!("{what} of {share}, {}.", at_own_rate(wanted)));
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

fn at_own_rate(wanted: &CapacityShare) -> String {
    let most = wanted.at_most.map_or_else(String::new, |most| {
        let most = digits(f64::from(most));
        format!(", but at most {most} /s: the faster a server, the more it then has to spare")
    });
    format!(
        "at {} what the same server delivered over the same transport in the same repeat{most}. Each row had a rate of its \
         own, which stands before its latency",
        part(wanted.share)
    )
}

/// The heading of a column.
pub fn heading(column: &Column<'_>, all: &[Column<'_>], cores: Option<usize>) -> LeaderboardColumn {
    let (kind, source) = (column.kind, column.source);
    let share = source.capacity_share.as_ref();
    let is_one_of_several = all.iter().filter(|other| other.kind.metric == kind.metric).count() > 1;
    let variant = source.variants.iter().find(|variant| variant.name == column.variant);
    let scenario = variant.and_then(|variant| variant.scenario.as_ref()).unwrap_or(&source.scenario);
    let shape = variant.and_then(|variant| variant.shape.as_ref()).unwrap_or(&source.shape);
    let sockets = variant.and_then(|variant| variant.sockets.as_ref()).unwrap_or(&source.sockets);
    let title = match (share, common_rate(source, scenario)) {
        (Some(wanted), _) if kind.metric != RATE => {
            let most = wanted.at_most.map_or_else(String::new, |most| format!(", or {} /s", digits(f64::from(most))));
            format!("{}, at {} its own rate{most}", kind.title, part(wanted.share))
        }
        (None, Some(rate)) => {
            let bytes = traffic::mean_payload_bytes(scenario).filter(|_| is_one_of_several);
            let bytes = bytes.map_or_else(String::new, |bytes| format!(", {bytes:.0} B"));
            let instants = if *shape == Shape::Poisson { ", random instants" } else { "" };
            format!("{}, at {} /s{instants}{bytes}", kind.title, digits(rate))
        }
        _ if kind.metric == "delivered" && cores == Some(1) => format!("{}, on one core", kind.title),
        _ => kind.title.to_owned(),
    };
    let title = if sockets.tls { format!("{title}, over TLS") } else { title };
    LeaderboardColumn {
        id: column.id.clone(),
        metric: kind.metric.to_owned(),
        title,
        unit: kind.unit.to_owned(),
        better: column.metric.better,
        experiment: source.name.clone(),
        share: share.map(|wanted| wanted.share),
    }
}

/// `half`, `30 % of`.
pub fn part(share: f64) -> String {
    if share == 0.5 { "half".to_owned() } else { format!("{} % of", (share * 1e3).round() / 10.0) }
}
