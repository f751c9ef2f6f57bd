//! Figures of one run that its clients counted: publications, deliveries, requests and bytes.

use crate::RunRecord;
use pushlab_experiment::traffic;
use pushlab_workload::plan::Phase;
use pushlab_workload::result::LoadResult;
use pushlab_workload::scenario::Scenario;

/// Deliveries per second that arrived in the load phase, whenever they were published.
pub fn delivered(run: &RunRecord) -> Option<f64> {
    per_load_second(run, |r| r.arrived)
}

/// Deliveries per second that the publications of the load phase are to make.
pub fn due(run: &RunRecord) -> Option<f64> {
    per_load_second(run, |r| r.expected)
}

/// Deliveries that the publications of the load phase made, per cent of those that they were to make.
pub fn delivered_share(run: &RunRecord) -> Option<f64> {
    let result = run.result.as_ref()?;
    (result.expected > 0).then(|| result.delivered as f64 * 100.0 / result.expected as f64)
}

/// Clients that are cut off in a run; `None` where none are.
pub(super) fn clients_of_storm(run: &RunRecord) -> Option<u64> {
    let plan = run.plan.as_ref()?;
    matches!(plan.scenario, Scenario::Storm { .. }).then_some(u64::from(plan.clients))
}

/// Clients of a storm that had all they missed before the drain ended, per cent.
pub fn caught_up(run: &RunRecord) -> Option<f64> {
    let (clients, result) = (clients_of_storm(run)?, run.result.as_ref()?);
    Some(result.caught_up.count() as f64 * 100.0 / clients as f64)
}

/// Deliveries of the load phase that never came, but for those of which a client was told that they are gone.
pub fn lost(run: &RunRecord) -> Option<f64> {
    let result = run.result.as_ref().filter(|result| result.expected > 0)?;
    Some(result.lost_silently() as f64)
}

/// Deliveries that came again.
pub fn doubled(run: &RunRecord) -> Option<f64> {
    run.result.as_ref().filter(|result| result.expected > 0).map(|result| result.duplicated as f64)
}

/// Clients of a storm that the server told when to come back.
pub fn told_when(run: &RunRecord) -> Option<f64> {
    of_storm(run, |result| result.told_when)
}

/// Clients of a storm that were told that messages are gone.
pub fn gaps_told(run: &RunRecord) -> Option<f64> {
    of_storm(run, |result| result.told_gap)
}

/// Clients of a storm to whom messages never came, and who were told of no gap.
pub fn recovered_falsely(run: &RunRecord) -> Option<f64> {
    of_storm(run, |result| result.recovered_falsely)
}

fn of_storm(run: &RunRecord, count: fn(&LoadResult) -> u64) -> Option<f64> {
    clients_of_storm(run)?;
    run.result.as_ref().map(|result| count(result) as f64)
}

/// Publications per second that were sent in the load phase.
pub fn published(run: &RunRecord) -> Option<f64> {
    per_load_second(run, |r| r.published)
}

/// What clients publish beside a feed, per cent of all messages that they send and receive.
pub fn upstream_share(run: &RunRecord) -> Option<f64> {
    let result = run.result.as_ref().filter(|result| result.upstream > 0)?;
    Some(result.upstream as f64 * 100.0 / (result.upstream + result.delivered) as f64)
}

/// HTTP requests per second that clients sent in the load phase.
pub fn requests(run: &RunRecord) -> Option<f64> {
    per_load_second(run, |r| r.requests)
}

/// HTTP requests per second that clients sent in the idle phase.
pub fn requests_idle(run: &RunRecord) -> Option<f64> {
    let (start, end) = run.phase_span(Phase::Idle)?;
    // A record from before it was counted has no bytes of opening either; a browser's bytes are its own.
    let result = run.result.as_ref().filter(|result| result.requests_idle > 0 || result.bytes_opening > 0)?;
    (end > start).then(|| result.requests_idle as f64 * 1e9 / (end - start) as f64)
}

/// Answers to polls that brought no message, per cent of all; `None` where nobody polls.
pub fn empty_polls(run: &RunRecord) -> Option<f64> {
    let result = run.result.as_ref()?;
    (result.polls > 0).then(|| result.polls_empty as f64 * 100.0 / result.polls as f64)
}

/// Connections per second that clients opened in the load phase.
pub fn connections_opened(run: &RunRecord) -> Option<f64> {
    // A browser does not tell, and only our server counts them.
    if is_in_browser(run) && run.counters.is_empty() {
        return None;
    }
    per_load_second(run, |r| r.connections_opened)
}

fn per_load_second(run: &RunRecord, count: fn(&LoadResult) -> u64) -> Option<f64> {
    let (start, end) = run.phase_span(Phase::Load)?;
    let result = run.result.as_ref().filter(|_| end > start)?;
    // In the turns of others it sends nothing, and hardly anything is left to come.
    let share = run.plan.as_ref().and_then(|plan| plan.turns).map_or(1.0, |turns| turns.share());
    Some(count(result) as f64 * 1e9 / (share * (end - start) as f64))
}

/// HTTP requests of clients that publish, for every 100 of their publications.
pub fn requests_publisher(run: &RunRecord) -> Option<f64> {
    let result = run.result.as_ref()?;
    // What a feed publishes meanwhile is not theirs.
    let own = if result.upstream > 0 { result.upstream } else { result.published };
    (own > 0).then(|| result.requests_publishers as f64 * 100.0 / own as f64)
}

/// HTTP requests of one client that only receives, for every 100 publications.
pub fn requests_receiver(run: &RunRecord) -> Option<f64> {
    let result = run.result.as_ref()?;
    let receivers = u64::from(run.planned.cell.clients).checked_sub(publishers(run)?)?;
    let requests = result.requests.saturating_sub(result.requests_publishers) as f64;
    (receivers > 0 && result.published > 0).then(|| requests * 100.0 / receivers as f64 / result.published as f64)
}

fn publishers(run: &RunRecord) -> Option<u64> {
    let plan = run.plan.as_ref()?;
    Some(match plan.scenario {
        Scenario::Chat { publishers: Some(publishers), .. } => u64::from(publishers),
        Scenario::Feed { upstream_interval_ms: None, .. }
        | Scenario::FanOut { .. }
        | Scenario::Storm { .. }
        | Scenario::Idle => 0,
        _ => u64::from(plan.clients),
    })
}

/// The result of clients whose bytes were counted: those in a browser are not.
pub(super) fn counted(run: &RunRecord) -> Option<&LoadResult> {
    run.result.as_ref().filter(|_| !is_in_browser(run))
}

fn is_in_browser(run: &RunRecord) -> bool {
    run.plan.as_ref().is_some_and(|plan| plan.clients_in.is_browser())
}

/// Bytes that clients received per delivery, transport framing, HTTP heads and TLS included: load and drain.
pub fn bytes_per_delivery(run: &RunRecord) -> Option<f64> {
    let result = counted(run)?;
    let bytes = &result.bytes_load;
    if bytes.deliveries > 0 {
        return Some(bytes.down.total() as f64 / bytes.deliveries as f64);
    }
    // A record from before bytes were told apart.
    (result.delivered > 0).then(|| result.bytes_received as f64 / result.delivered as f64)
}

/// Bytes that clients received and sent per delivery.
pub fn traffic_per_delivery(run: &RunRecord) -> Option<f64> {
    let result = counted(run)?;
    let bytes = &result.bytes_load;
    if bytes.deliveries > 0 {
        return Some((bytes.down.total() as f64 + bytes.up.total() as f64) / bytes.deliveries as f64);
    }
    (result.delivered > 0).then(|| (result.bytes_received + result.bytes_sent) as f64 / result.delivered as f64)
}

/// Bytes that clients received and sent per delivery, less the publication's own.
pub fn overhead_per_delivery(run: &RunRecord) -> Option<f64> {
    Some(traffic_per_delivery(run)? - traffic::mean_payload_bytes(&run.plan.as_ref()?.scenario)?)
}

/// Bytes of both ways for each client until all were subscribed, where nobody had anything more to ask by then.
pub fn bytes_opening(run: &RunRecord) -> Option<f64> {
    let cell = &run.planned.cell;
    let result = counted(run).filter(|result| result.bytes_opening > 0 && result.unsubscribed == 0)?;
    (cell.clients > 0 && cell.transport.is_push()).then(|| result.bytes_opening as f64 / f64::from(cell.clients))
}

/// Bytes per second that clients sent in the load phase, kB: the server's own count holds the lab's traffic, too.
pub fn server_bytes_in(run: &RunRecord) -> Option<f64> {
    counted(run).and_then(|_| per_load_second(run, |r| r.bytes_sent)).map(|bytes| bytes / 1e3)
}

/// Bytes per second that clients received in the load phase, kB.
pub fn server_bytes_out(run: &RunRecord) -> Option<f64> {
    counted(run).and_then(|_| per_load_second(run, |r| r.bytes_received_in_load)).map(|bytes| bytes / 1e3)
}

/// Bytes per second that a client sent and received in the load phase.
pub fn bytes_per_client(run: &RunRecord) -> Option<f64> {
    let clients = run.planned.cell.clients;
    let kilobytes = server_bytes_in(run)? + server_bytes_out(run)?;
    (clients > 0).then(|| kilobytes * 1e3 / f64::from(clients))
}

/// Clients that were subscribed when the load began.
pub fn subscribed(run: &RunRecord) -> Option<f64> {
    let unsubscribed = run.result.as_ref()?.unsubscribed;
    Some(u64::from(run.planned.cell.clients).saturating_sub(unsubscribed) as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::Times;
    use crate::presets;
    use pushlab_stats::Quantile;
    use pushlab_wire::transport::Transport;
    use pushlab_workload::result::PhaseMark;
    use pushlab_workload::scenario::Outage;

    const SECOND_NS: u64 = 1_000_000_000;

    /// Four clients, idle for half a second.
    fn run(transport: Transport, result: LoadResult) -> RunRecord {
        let mut cell = presets::load("tangen-chat").cells().remove(0);
        (cell.transport, cell.clients) = (transport, 4);
        let mark = |phase, t_ns| PhaseMark { phase, t_ns };
        let phases = vec![
            mark(Phase::Connect, 0),
            mark(Phase::Idle, SECOND_NS),
            mark(Phase::WarmUp, SECOND_NS * 3 / 2),
            mark(Phase::Load, SECOND_NS * 9),
        ];
        RunRecord { result: Some(LoadResult { phases, ..result }), ..RunRecord::blank(cell) }
    }

    #[test]
    fn requests_of_the_idle_phase_are_told_by_its_length() {
        let idle = |requests_idle, bytes_opening| {
            let result = LoadResult { requests_idle, bytes_opening, requests: 999, ..LoadResult::default() };
            super::requests_idle(&run(Transport::Polling, result))
        };
        assert_eq!((idle(10, 800), idle(0, 800)), (Some(20.0), Some(0.0)));
        assert_eq!(idle(0, 0), None, "an earlier version did not count");
    }

    #[test]
    fn polls_that_bring_nothing_are_a_share_of_all_answers() {
        let share = |polls, polls_empty| {
            empty_polls(&run(Transport::Polling, LoadResult { polls, polls_empty, ..LoadResult::default() }))
        };
        assert_eq!((share(8, 6), share(8, 0), share(0, 0)), (Some(75.0), Some(0.0), None));
    }

    #[test]
    fn what_a_client_knows_is_gone_is_not_lost() {
        let result = LoadResult { expected: 400, lost: 30, lost_told: 20, duplicated: 3, ..LoadResult::default() };
        let mut record = run(Transport::Sse, LoadResult { told_gap: 1, recovered_falsely: 2, ..result });
        assert_eq!((lost(&record), doubled(&record), gaps_told(&record)), (Some(10.0), Some(3.0), None));
        let storm = Scenario::Storm { missed: 100, payload_bytes: 50, return_over_ms: 0, outage: Outage::Cut };
        record.plan = Some(crate::plan(Transport::Sse, &storm));
        record.result.as_mut().unwrap().caught_up.record(5_000_000);
        assert_eq!((gaps_told(&record), recovered_falsely(&record)), (Some(1.0), Some(2.0)));
        assert_eq!(caught_up(&record), Some(25.0));
        assert_eq!(
            crate::measure::own_quantile_ms(&record, Times::CaughtUp, Quantile::MEDIAN),
            None,
            "three of four never got there"
        );
    }

    #[test]
    fn what_clients_publish_beside_a_feed_is_a_share_of_their_messages() {
        let beside = |upstream, requests_publishers| {
            let result =
                LoadResult { upstream, requests_publishers, published: 5, delivered: 60, ..LoadResult::default() };
            let record = run(Transport::Sse, result);
            (upstream_share(&record), requests_publisher(&record))
        };
        assert_eq!(beside(20, 30), (Some(25.0), Some(150.0)));
        assert_eq!(beside(0, 0), (None, Some(0.0)));
        let sender = |upstream_interval_ms| {
            let feed = Scenario::Feed {
                interval_us: 1,
                payload_bytes: 50,
                by: pushlab_workload::scenario::FeedBy::Publisher,
                upstream_interval_ms,
            };
            publishers(&RunRecord {
                plan: Some(crate::plan(Transport::Sse, &feed)),
                ..run(Transport::Sse, LoadResult::default())
            })
        };
        assert_eq!((sender(None), sender(Some(7))), (Some(0), Some(4)));
    }

    #[test]
    fn a_clients_bytes_are_those_of_both_ways_in_a_second() {
        let result = LoadResult { bytes_sent: 800, bytes_received_in_load: 3_200, ..LoadResult::default() };
        let mut record = run(Transport::Sse, result);
        let phases = &mut record.result.as_mut().unwrap().phases;
        phases.push(PhaseMark { phase: Phase::Drain, t_ns: SECOND_NS * 11 });
        assert_eq!(bytes_per_client(&record), Some(500.0));
    }

    #[test]
    fn opening_costs_each_client_the_same_where_nobody_asks_for_more() {
        let opening = |transport, unsubscribed| {
            let result = LoadResult { bytes_opening: 4_096, unsubscribed, ..LoadResult::default() };
            bytes_opening(&run(transport, result))
        };
        assert_eq!(opening(Transport::WebSocket, 0), Some(1_024.0));
        assert_eq!((opening(Transport::WebSocket, 1), opening(Transport::LongPolling, 0)), (None, None));
        assert_eq!(bytes_opening(&run(Transport::Sse, LoadResult::default())), None);
    }
}
