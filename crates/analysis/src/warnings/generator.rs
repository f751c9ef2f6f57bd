//! What the generator did not do, or did late.

use super::evidence::Evidence;
use pushlab_experiment::traffic;
use pushlab_record::{RunRecord, measure};
use pushlab_stats::{BusySecond, GeneratorLimits, GeneratorLoad, Warning, WarningCode, generator_warnings};
use pushlab_workload::result::LoadResult;
use pushlab_workload::scenario::Scenario;

/// CPU from which a subject had no time to spare, per cent of its cores.
const SUBJECT_FULL_PERCENT: f64 = 97.0;
/// The generator's own part of a time that it measures, ms, that is never too much: what it takes to wake any client.
const OWN_MAX_MS: f64 = 1.0;
/// How often a loop turns at least, ms, though nothing happens.
const TURN_EVERY_MS: f64 = 200.0;
/// Share of a load's publications that may be left unsent.
const UNSENT_MAX: f64 = 0.5;

/// What the generator did, judged by the limits of the experiment.
pub(super) fn of_generator(
    record: &RunRecord,
    result: &LoadResult,
    (start, end): (u64, u64),
    evidence: &Evidence<'_>,
) -> Vec<Warning> {
    // Seconds and turns do not fit: of one that takes turns the mean counts.
    let turns = record.plan.as_ref().and_then(|plan| plan.turns);
    let sides = sides(record);
    let thread = result.busiest.filter(|_| turns.is_none()).map(|second| BusySecond {
        whose: second.thread.described(second.number),
        percent: second.percent() * sides,
        from_s: second.from_ns as f64 / 1e9,
    });
    // The busiest second is not below the mean of the phase; where it seems to be, the probe saw too little.
    let mean = result.cpu_load_ns as f64 * 100.0 / (end - start) as f64;
    let busiest = measure::busiest_second(&record.generator, (start, end)).filter(|_| turns.is_none());
    let seen = busiest.filter(|(_, percent)| *percent >= mean);
    let (whose, (from_ns, percent)) = match seen {
        Some(found) => ("the load generator", found),
        None => ("the load generator, on average of all seconds,", (start, mean)),
    };
    let from_s = (from_ns - start) as f64 / 1e9;
    let all = Some(BusySecond { whose: whose.to_owned(), percent: percent * sides, from_s });
    let load_ms = (end - start) as f64 / 1e6;
    let has_loops = record.plan.as_ref().is_some_and(|plan| !plan.clients_in.is_browser() && load_ms > TURN_EVERY_MS);
    let load = GeneratorLoad {
        thread,
        all,
        cores: evidence.load_cores_count,
        // A loop that began no turn was held up all the time; a browser's have none.
        turn_p99_ms: result.turn_duration.quantile_ms(0.99).unwrap_or(if has_loops { load_ms } else { 0.0 }),
        lateness_p99_ms: result.lateness.quantile_ms(0.99).unwrap_or(0.0),
        left_after: (result.published_after + result.unsent) as f64 / result.scheduled.max(1) as f64,
    };
    let subject_cores = evidence.subject_cores.len();
    let warnings = generator_warnings(&load, evidence.limits).into_iter();
    warnings.filter_map(|warning| of_closed_loop(warning, record, (start, end), subject_cores)).collect()
}

/// Of how much less than the cores a run may use, as they are those of all that go side by side: half of one is all of it
/// for one of two.
fn sides(record: &RunRecord) -> f64 {
    let turns = record.plan.as_ref().and_then(|plan| plan.turns);
    turns.map_or(record.side_by_side.map_or(1.0, f64::from), |turns| 1.0 / turns.share())
}

/// What was due and never sent: as good as lost, unless it is so much that the load was another one. Of nothing, nothing
/// can be lost.
pub(super) fn unsent(record: &RunRecord, result: &LoadResult) -> Option<Warning> {
    let is_idle = record.plan.as_ref().is_some_and(|plan| plan.scenario == Scenario::Idle);
    let all = result.unsent + result.upstream_unsent;
    match result.scheduled {
        0 if is_idle => None,
        0 => Some(Warning::new(WarningCode::Unsent, "no publication was due or sent in the load phase")),
        scheduled if result.unsent as f64 > UNSENT_MAX * scheduled as f64 => {
            let percent = 100.0 * result.unsent as f64 / scheduled as f64;
            let detail = format!("{} of {scheduled} publications ({percent:.0} %) were never sent", result.unsent);
            Some(Warning::new(WarningCode::Unsent, detail))
        }
        _ if all == 0 => None,
        _ => {
            let detail = format!("{all} publications could not be sent: the subject stopped reading");
            Some(Warning::new(WarningCode::Loss, detail))
        }
    }
}

/// What of latency and response time was the generator's own, where it was much; and that little is known of it.
pub(super) fn own_shares(record: &RunRecord, result: &LoadResult, limits: &GeneratorLimits) -> Vec<Warning> {
    let share_max = limits.share_percent_max;
    let Some(plan) = record.plan.as_ref().filter(|plan| !plan.clients_in.is_browser()) else { return Vec::new() };
    let judged = |code, share: Option<f64>, mean_ms: Option<f64>, what: &str| {
        let (share, mean_ms) = (share?, mean_ms?);
        let own_ms = share / 100.0 * mean_ms;
        (share > share_max && own_ms > OWN_MAX_MS).then(|| {
            let limits = format!("{share_max} % and {OWN_MAX_MS} ms are allowed");
            Warning::new(code, format!("{own_ms:.1} of {mean_ms:.1} ms mean {what}, {share:.0} %; {limits}"))
        })
    };
    let response = judged(
        WarningCode::ProberShare,
        measure::prober_share(record),
        result.response_load.mean_ms(),
        "response time",
    );
    // In a closed loop one side always waits for the other, and it is the rate that counts.
    if traffic::is_closed_loop(&plan.scenario) || result.latency.is_empty() {
        return response.into_iter().collect();
    }
    let latency =
        judged(WarningCode::GeneratorShare, measure::generator_share(record), result.latency.mean_ms(), "latency");
    let seen = result.read_wait.count();
    let unknown = (seen < measure::SHARE_COUNT_MIN).then(|| {
        let wanted = measure::SHARE_COUNT_MIN;
        let detail = format!("the generator's share of latency is of {seen} deliveries, {wanted} wanted");
        Warning::new(WarningCode::FewSamples, detail)
    });
    [response, latency, unknown].into_iter().flatten().collect()
}

/// What a saturated generator means where the next message follows from the last: in a closed loop one side is always
/// busy. If the subject's cores are full, they are what bounds it; otherwise its rate is a lower bound.
fn of_closed_loop(warning: Warning, record: &RunRecord, load: (u64, u64), subject_cores: usize) -> Option<Warning> {
    let is_closed = record.plan.as_ref().is_some_and(|plan| traffic::is_closed_loop(&plan.scenario));
    if !is_closed || warning.code != WarningCode::GeneratorSaturated {
        return Some(warning);
    }
    let bound =
        |subject: String| Some(Warning::new(WarningCode::GeneratorBound, format!("{}; {subject}", warning.detail)));
    let Some(used) = measure::cpu_percent(&record.subject, load) else {
        return bound("what the subject used is not known".to_owned());
    };
    let subject = used * sides(record) / subject_cores.max(1) as f64;
    if subject < SUBJECT_FULL_PERCENT { bound(format!("the subject used {subject:.0} % of its own")) } else { None }
}
