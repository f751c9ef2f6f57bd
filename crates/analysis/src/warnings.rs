//! What makes a run less certain than it looks.

use crate::measure;
use crate::record::RunRecord;
use pushlab_experiment::traffic;
use pushlab_probe::MachineLoad;
use pushlab_stats::{
    DeliveryCounts, GeneratorLimits, GeneratorLoad, POINTS_MIN, Steady, Warning, WarningCode, delivery_warnings,
    generator_warnings, steady_state,
};
use pushlab_workload::plan::Phase;
use pushlab_workload::scenario::Shape;

/// Share of the probe's ticks that may be missed.
const MISSED_TICKS_MAX: f64 = 0.2;
/// CPU that other processes may take, as a share of one core.
const OTHERS_MAX: f64 = 0.15;
/// CPU that the hypervisor may take, as a share of one core.
const STEAL_MAX: f64 = 0.05;
/// Memory that grows by more than this share of itself over a load phase is no steady state.
const MEMORY_GROWTH_MAX: f64 = 0.1;
/// Lateness of the link's slowest hundredth of packets that is allowed in any network, ms.
const LINK_LATENESS_MAX_MS: f64 = 2.0;
/// The same as a share of the network's own delay.
const LINK_LATENESS_SHARE_MAX: f64 = 0.1;
/// Time that the link may wait for a core each time that it has something to do, mean, ms.
const LINK_WAIT_MAX_MS: f64 = 1.0;
/// Share of the median latency that the error of pages' clocks may be.
const CLOCK_ERROR_SHARE_MAX: f64 = 0.2;
/// Deliveries that come compressed, per cent of all, where all messages are large enough for it.
const COMPRESSED_PERCENT_MIN: f64 = 50.0;
/// Smaller ones may not become smaller, and are then rightly sent as they are, bytes.
const COMPRESSIBLE_BYTES_MIN: f64 = 256.0;
/// Share of the deliveries due in the load phase that may come after it.
const BEHIND_MAX: f64 = 0.05;
/// Warm-up from which on a load phase begins with as much under way as it ends with, ms.
const SETTLED_MS: u64 = 1_000;
/// Shortest load phase in which a warm-up is seen, ms: as many whole seconds as [`steady_state`] needs, wherever they begin.
pub const WARM_UP_SEEN_MS: u64 = (POINTS_MIN as u64 + 1) * 1_000;
/// CPU from which a subject had no time to spare, per cent of its cores.
const SUBJECT_FULL_PERCENT: f64 = 97.0;
/// Pings that a median needs.
const PINGS_MIN: u64 = 20;

/// What is known about a run beside its record.
pub struct Evidence<'a> {
    /// Cores of the subject.
    pub subject_cores: &'a [usize],
    /// Cores of the generator.
    pub load_cores: &'a [usize],
    /// What the generator may do.
    pub limits: &'a GeneratorLimits,
    /// Planned readings that the probes missed.
    pub ticks_missed: u64,
    /// How busy the machine was in the load phase.
    pub machine: Option<MachineLoad>,
}

/// All warnings about a run.
pub fn of(record: &RunRecord, evidence: &Evidence<'_>) -> Vec<Warning> {
    let mut warnings = Vec::new();
    if evidence.subject_cores.iter().any(|core| evidence.load_cores.contains(core)) {
        warnings.push(Warning::new(WarningCode::Unpinned, "subject and generator share a core"));
    }
    let ticks = (record.subject.len() + record.generator.len()) as f64;
    let missed = evidence.ticks_missed as f64;
    if missed > MISSED_TICKS_MAX * (ticks + missed) {
        warnings.push(Warning::new(WarningCode::ProbeGaps, format!("{missed} of {} readings missed", ticks + missed)));
    }
    let Some(result) = &record.result else { return warnings };
    let Some((start, end)) = record.phase_span(Phase::Load).filter(|(start, end)| end > start) else { return warnings };
    let load_s = (end - start) as f64 / 1e9;
    let busy = generator_warnings(
        &GeneratorLoad {
            cpu_percent: result.cpu_load_ns as f64 / 1e7 / load_s,
            cores: evidence.load_cores.len() as u32,
            turn_p99_ms: result.turn_duration.quantile_ms(0.99).unwrap_or(0.0),
            lateness_p99_ms: result.lateness.quantile_ms(0.99).unwrap_or(0.0),
        },
        evidence.limits,
    );
    let subject_cores = evidence.subject_cores.len();
    warnings
        .extend(busy.into_iter().filter_map(|warning| of_closed_loop(warning, record, (start, end), subject_cores)));
    warnings.extend(delivery_warnings(&DeliveryCounts {
        expected: result.expected,
        lost: result.lost,
        duplicated: result.duplicated,
        reordered: result.reordered,
    }));
    if result.unsubscribed > 0 {
        let detail = format!(
            "{} clients found no connection free at their host and never received anything",
            result.unsubscribed
        );
        warnings.push(Warning::new(WarningCode::Loss, detail));
    }
    if result.unsent > 0 {
        let detail = format!("{} publications could not be sent: the subject stopped reading", result.unsent);
        warnings.push(Warning::new(WarningCode::Loss, detail));
    }
    let has_prober = record.plan.as_ref().is_some_and(|p| p.prober.is_some());
    let pings = result.response_load.count();
    if has_prober && pings < PINGS_MIN {
        warnings.push(Warning::new(
            WarningCode::FewSamples,
            format!("{pings} pings in the load phase, {PINGS_MIN} wanted"),
        ));
    }
    warnings.extend(overloaded(record));
    warnings.extend(uncompressed(record));
    warnings.extend(unsure_clock(record));
    warnings.extend(late_link(record));
    let capture = record.network.as_ref().and_then(|network| network.capture.as_ref());
    warnings.extend(capture.and_then(|capture| Some(Warning::new(WarningCode::CaptureCut, capture.problem.clone()?))));
    warnings.extend(unstable(record));
    warnings.extend(growing(record, load_s));
    warnings.extend(other_processes(record, evidence.machine, load_s));
    warnings
}

/// What a saturated generator means where the next message follows from the last: in a closed loop one side is always
/// busy. If the subject's cores are full, they are what bounds it; otherwise its rate is a lower bound.
fn of_closed_loop(warning: Warning, record: &RunRecord, load: (u64, u64), subject_cores: usize) -> Option<Warning> {
    let is_closed = record.plan.as_ref().is_some_and(|plan| traffic::is_closed_loop(&plan.scenario));
    if !is_closed || warning.code != WarningCode::GeneratorSaturated {
        return Some(warning);
    }
    let cores = subject_cores.max(1) as f64;
    let Some(used) = measure::cpu_percent(&record.subject, load) else { return Some(warning) };
    let subject = used / cores;
    let detail = format!("{}; the subject used {subject:.0} % of its own", warning.detail);
    (subject < SUBJECT_FULL_PERCENT).then(|| Warning::new(WarningCode::GeneratorBound, detail))
}

/// A schedule that the subject did not keep up with. Nothing is said where the rate was not to be kept up: it changes, the
/// load phase begins with nothing under way, or clients ask when they please.
fn overloaded(record: &RunRecord) -> Option<Warning> {
    let plan = record.plan.as_ref()?;
    if traffic::deliveries_per_s(&plan.scenario, plan.clients).is_none()
        || plan.shape != Shape::Steady
        || plan.phases.warm_up_ms < SETTLED_MS
        || plan.transport.is_interval_driven()
    {
        return None;
    }
    let result = record.result.as_ref()?;
    let missing = result.expected.saturating_sub(result.arrived) as f64;
    // A publication or two may fall on either side of the phase's ends.
    let allowed = (BEHIND_MAX * result.expected as f64).max(2.0 * f64::from(plan.clients));
    (missing > allowed).then(|| {
        let (due, arrived) = (result.expected, result.arrived);
        Warning::new(WarningCode::Overloaded, format!("{arrived} of {due} deliveries came while the load lasted"))
    })
}

/// A subject that was asked to compress, and did not. Nothing is said of messages too small for it.
fn uncompressed(record: &RunRecord) -> Option<Warning> {
    let plan = record.plan.as_ref()?;
    let from = plan.compression_from?;
    if traffic::mean_payload_bytes(&plan.scenario)? < f64::from(from).max(COMPRESSIBLE_BYTES_MIN) {
        return None;
    }
    let percent = measure::compressed(record)?;
    (percent < COMPRESSED_PERCENT_MIN).then(|| {
        let detail = format!("{percent:.0} % of deliveries came compressed, though payloads average {from} B or more");
        Warning::new(WarningCode::Uncompressed, detail)
    })
}

/// Pages' clocks that are known less well than the latencies that they measured.
fn unsure_clock(record: &RunRecord) -> Option<Warning> {
    let (error_ms, median_ms) = (measure::clock_error(record)?, measure::latency_median(record)?);
    (error_ms > CLOCK_ERROR_SHARE_MAX * median_ms).then(|| {
        let detail = format!("instants of pages may be {error_ms:.2} ms off, and median latency is {median_ms:.2} ms");
        Warning::new(WarningCode::ClockError, detail)
    })
}

/// A link that was no longer the network that it stands for.
fn late_link(record: &RunRecord) -> Option<Warning> {
    let network = record.network.as_ref()?;
    let warning = |detail| Some(Warning::new(WarningCode::LinkLate, detail));
    if let Some(problem) = &network.problem {
        return warning(problem.clone());
    }
    if let Some(wait_ms) = network.core_wait_ms.filter(|wait_ms| *wait_ms > LINK_WAIT_MAX_MS) {
        return warning(format!(
            "the link waited {wait_ms:.1} ms for a core each time; {LINK_WAIT_MAX_MS} ms are allowed"
        ));
    }
    let late_ms = network.lateness.quantile_ms(0.99)?;
    let allowed_ms = LINK_LATENESS_MAX_MS.max(LINK_LATENESS_SHARE_MAX * network.profile.round_trip_ms() / 2.0);
    if late_ms <= allowed_ms {
        return None;
    }
    warning(format!(
        "one packet in a hundred left the link {late_ms:.1} ms late or more; {allowed_ms:.1} ms are allowed"
    ))
}

/// Memory that keeps growing, as a soak is to show.
fn growing(record: &RunRecord, load_s: f64) -> Option<Warning> {
    let per_hour = measure::memory_growth(record)?;
    let growth = per_hour * load_s / 3600.0;
    (growth > MEMORY_GROWTH_MAX * measure::memory(record)?).then(|| {
        let detail = format!("resident memory grows by {per_hour:.1} MiB an hour");
        Warning::new(WarningCode::Unstable, detail)
    })
}

fn unstable(record: &RunRecord) -> Option<Warning> {
    let change = latency_trend(record)?;
    let detail = format!("median latency changed by {:.0} % over the load phase", change * 100.0);
    Some(Warning::new(WarningCode::Unstable, detail))
}

/// By how much the median latency changed over the load phase, as a share of it; `None` where it was steady, where it
/// may change because the load does, or where the phase is too short to tell.
pub fn latency_trend(record: &RunRecord) -> Option<f64> {
    if record.plan.as_ref().is_some_and(|plan| plan.shape != Shape::Steady) {
        return None;
    }
    let result = record.result.as_ref()?;
    let (start, end) = record.phase_span(Phase::Load)?;
    let first = result.phases.first()?.t_ns;
    let seconds = result.seconds.iter().enumerate();
    let inside = seconds.filter(|(i, _)| {
        (first + *i as u64 * 1_000_000_000 >= start) && first + (*i as u64 + 1) * 1_000_000_000 <= end
    });
    let medians: Vec<f64> = inside.filter_map(|(_, s)| Some(s.latency_median_ns? as f64 / 1e6)).collect();
    match steady_state(&medians) {
        Steady::Trend { relative_change, .. } => Some(relative_change),
        Steady::Steady | Steady::TooShort => None,
    }
}

fn other_processes(record: &RunRecord, machine: Option<MachineLoad>, load_s: f64) -> Vec<Warning> {
    let Some(machine) = machine else { return Vec::new() };
    let mut warnings = Vec::new();
    let steal = machine.steal_s / load_s;
    if steal > STEAL_MAX {
        let detail = format!("the hypervisor took {:.0} % of a core", steal * 100.0);
        warnings.push(Warning::new(WarningCode::NoisyNeighbour, detail));
    }
    let ours: f64 = [&record.subject, &record.generator]
        .into_iter()
        .filter_map(|samples| measure::cpu_percent(samples, record.phase_span(Phase::Load)?))
        .sum::<f64>()
        / 100.0
        + record.network.as_ref().map_or(0.0, |network| network.cpu_load_ns as f64 / 1e9 / load_s);
    let others = machine.busy_s / load_s - ours;
    if others > OTHERS_MAX {
        let detail = format!("other processes used {:.0} % of a core", others * 100.0);
        warnings.push(Warning::new(WarningCode::NoisyNeighbour, detail));
    }
    warnings
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::presets;
    use pushlab_experiment::cell::Cell;
    use pushlab_wire::transport::Transport;
    use pushlab_workload::payload::Content;
    use pushlab_workload::plan::{ClientsIn, Phases, Plan, RequestHeaders, Sockets, Sources, Target};
    use pushlab_workload::result::LoadResult;
    use pushlab_workload::scenario::Scenario;

    /// A hundred clients that are told at once of what one of them says.
    fn plan() -> Plan {
        Plan {
            target: Target::plain("[::1]:8000".parse().unwrap()),
            transport: Transport::LongPolling,
            speaks: None,
            clients: 100,
            channel: "lab".to_owned(),
            scenario: Scenario::Chat {
                interval_ms: 3000,
                payload_bytes: 60,
                payload_bytes_max: Some(160),
                publishers: Some(2),
            },
            poll_interval_ms: 20,
            poll_wait_s: 5,
            prober: None,
            phases: Phases { connect_ms: 1, warm_up_ms: SETTLED_MS, idle_ms: 3, load_ms: 4, drain_ms: 5, after_ms: 6 },
            connect_rate: 100,
            loops: 2,
            workers: 1,
            seed: 1,
            injected_delay_us: 0,
            shape: Shape::Steady,
            headers: RequestHeaders::Minimal,
            compression_from: None,
            content: Content::Filler,
            user_list: false,
            receipts: false,
            backend_listen: None,
            backend_descriptor: None,
            sockets: Sockets::default(),
            sources: Sources::Usual,
            instruments_from: None,
            clients_in: ClientsIn::default(),
            drain_stall_ms: None,
        }
    }

    fn behind(change: impl FnOnce(&mut Plan, &mut LoadResult)) -> Option<String> {
        let cell: Cell = presets::load("tangen-chat", None).unwrap().cells().remove(0);
        let mut record = RunRecord::blank(cell);
        let mut plan = plan();
        let mut result = LoadResult { expected: 10_000, arrived: 9_499, ..LoadResult::default() };
        change(&mut plan, &mut result);
        (record.plan, record.result) = (Some(plan), Some(result));
        overloaded(&record).map(|warning| warning.detail)
    }

    #[test]
    fn who_delivers_less_than_is_due_is_overloaded() {
        assert_eq!(behind(|_, _| ()).unwrap(), "9499 of 10000 deliveries came while the load lasted");
        assert_eq!(behind(|_, result| result.arrived = 9_500), None, "a twentieth may be under way");
        assert_eq!(behind(|_, result| result.arrived = 12_000), None, "what was late before");
        let few = |arrived| behind(|_, result| (result.expected, result.arrived) = (500, arrived));
        assert_eq!(
            (few(300), few(299).is_some()),
            (None, true),
            "two publications of five on the other side of an end"
        );
    }

    #[test]
    fn a_refusal_to_compress_is_seen() {
        let cell: Cell = presets::load("tangen-chat", None).unwrap().cells().remove(0);
        let mut record = RunRecord::blank(cell);
        let mut of = |from, delivered_compressed| {
            let scenario = traffic::with_payload_bytes(plan().scenario, 300);
            record.plan = Some(Plan { compression_from: from, scenario, ..plan() });
            record.result = Some(LoadResult { delivered: 200, delivered_compressed, ..LoadResult::default() });
            (uncompressed(&record).map(|warning| warning.detail), measure::compressed(&record))
        };
        let refused = of(Some(300), 0);
        assert_eq!(refused.0.unwrap(), "0 % of deliveries came compressed, though payloads average 300 B or more");
        assert_eq!(of(Some(300), 99).1, Some(49.5));
        assert_eq!(of(Some(300), 100), (None, Some(50.0)));
        assert_eq!(of(Some(301), 0), (None, Some(0.0)), "too small");
        assert_eq!(of(None, 0), (None, None));
        record.plan = Some(Plan { compression_from: Some(1), ..plan() });
        assert_eq!(uncompressed(&record), None, "110 B may not become smaller");
    }

    #[test]
    fn where_no_rate_is_to_be_kept_up_nobody_is_overloaded() {
        assert_eq!(behind(|plan, _| plan.transport = Transport::Polling), None);
        assert_eq!(behind(|plan, _| plan.shape = Shape::Step { factors: vec![1.0, 2.0] }), None);
        assert_eq!(behind(|plan, _| plan.phases.warm_up_ms = SETTLED_MS - 1), None);
        assert_eq!(behind(|plan, _| plan.scenario = Scenario::FanOut { publishers: 8, payload_bytes: 64 }), None);
    }
}
