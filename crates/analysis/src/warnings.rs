//! What makes a run less certain than it looks.

mod evidence;
mod generator;

pub use evidence::Evidence;

use pushlab_experiment::traffic;
use pushlab_probe::{Sample, Throttling};
use pushlab_record::measure;
use pushlab_record::{CounterSample, RunRecord};
use pushlab_stats::{DeliveryCounts, POINTS_MIN, Steady, Warning, WarningCode, delivery_warnings, steady_state};
use pushlab_workload::plan::Phase;
use pushlab_workload::scenario::{Scenario, Shape};

/// Share of the probe's ticks that may be missed.
const MISSED_TICKS_MAX: f64 = 0.2;
/// CPU that other processes may take, as a share of one core.
const OTHERS_MAX: f64 = 0.15;
/// CPU that the hypervisor may take, as a share of one core.
const STEAL_MAX: f64 = 0.05;
/// Share of the periods of a CPU quota in which it may be used up: what one in a hundred latencies does not notice.
const THROTTLED_MAX: f64 = 0.01;
/// Memory that grows by more than this share of itself over a load phase is no steady state.
const MEMORY_GROWTH_MAX: f64 = 0.1;
/// Lateness of the link's slowest hundredth of packets that is allowed in any network, ms.
const LINK_LATENESS_MAX_MS: f64 = 2.0;
/// The same as a share of the network's own delay.
const LINK_LATENESS_SHARE_MAX: f64 = 0.1;
/// Time that the link may wait for a core each time that it has something to do, mean, ms.
const LINK_WAIT_MAX_MS: f64 = 1.0;
/// Share of the median latency that the error of clocks may be.
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
/// Pings that a median needs.
const PINGS_MIN: u64 = 20;

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
    warnings.extend(restarted(record, (start, end)));
    let about_generator = generator::of_generator(record, result, (start, end), evidence);
    let is_saturated = about_generator.iter().any(|warning| warning.code == WarningCode::GeneratorSaturated);
    warnings.extend(about_generator);
    warnings.extend(generator::own_shares(record, result, evidence.limits).into_iter().filter(|_| !is_saturated));
    warnings.extend(delivery_warnings(&DeliveryCounts {
        expected: result.expected,
        lost: result.lost_silently(),
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
    if result.connections_cut > 0 {
        let detail = format!("{} connections of clients ended while the load lasted", result.connections_cut);
        warnings.push(Warning::new(WarningCode::ConnectionCut, detail));
    }
    warnings.extend(generator::unsent(record, result));
    if result.misdirected > 0 {
        let detail = format!("{} messages of other clients came to clients that expect echoes", result.misdirected);
        warnings.push(Warning::new(WarningCode::Misdirected, detail));
    }
    warnings.extend(polled_in_turns(record));
    let has_prober = record.plan.as_ref().is_some_and(|p| p.prober.is_some());
    let pings = result.pings();
    if has_prober && pings < PINGS_MIN {
        warnings.push(Warning::new(
            WarningCode::FewSamples,
            format!("{pings} pings in the load phase, {PINGS_MIN} wanted"),
        ));
    }
    // What a full generator received late the subject may have sent in time.
    warnings.extend(overloaded(record).filter(|_| !is_saturated && result.refused.is_empty()));
    warnings.extend(uncompressed(record));
    warnings.extend(unsure_clock(record));
    warnings.extend(late_link(record));
    let capture = record.network.as_ref().and_then(|network| network.capture.as_ref());
    warnings.extend(capture.and_then(|capture| Some(Warning::new(WarningCode::CaptureCut, capture.problem.clone()?))));
    warnings.extend(unstable(record).filter(|_| !is_saturated));
    warnings.extend(growing(record, load_s));
    warnings.extend(other_processes(record, evidence, load_s));
    warnings
}

/// What waits for the polls of a turn may wait for all other turns.
fn polled_in_turns(record: &RunRecord) -> Option<Warning> {
    let plan = record.plan.as_ref().filter(|plan| plan.transport.is_interval_driven())?;
    let of = plan.turns?.of;
    Some(Warning::new(WarningCode::PolledInTurns, format!("this run had one turn in {of}")))
}

/// A schedule that the subject did not keep up with. Nothing is said where the rate was not to be kept up: it changes, the
/// load phase begins with nothing under way, or clients ask when they please.
fn overloaded(record: &RunRecord) -> Option<Warning> {
    let plan = record.plan.as_ref()?;
    if traffic::deliveries_per_s(&plan.scenario, plan.clients).is_none()
        || !matches!(plan.shape, Shape::Steady | Shape::Poisson)
        || plan.phases.warm_up_ms < SETTLED_MS
        || plan.transport.is_interval_driven()
    {
        return None;
    }
    let result = record.result.as_ref()?;
    // What went down with a connection is no backlog.
    let lost = if result.connections_cut > 0 { result.lost } else { 0 };
    let missing = result.expected.saturating_sub(result.arrived + lost) as f64;
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

/// Clocks that are known less well than the latencies that they measured call for. Of latencies below the error nothing is
/// known.
fn unsure_clock(record: &RunRecord) -> Option<Warning> {
    let (error_ms, median_ms) = (measure::clock_error(record)?, record.result.as_ref()?.latency.quantile_ms(0.5)?);
    let code = match error_ms {
        _ if error_ms >= median_ms => WarningCode::OneWayUnsure,
        _ if error_ms > CLOCK_ERROR_SHARE_MAX * median_ms => WarningCode::ClockError,
        _ => return None,
    };
    let detail = format!("two clocks may be {error_ms:.2} ms apart, and median latency is {median_ms:.2} ms");
    Some(Warning::new(code, detail))
}

/// A subject of which a process ended under load and another took its place: its counters began again, or it had fewer
/// processes for a while. One that did not come back has ended its run.
fn restarted(record: &RunRecord, (start, end): (u64, u64)) -> Option<Warning> {
    let plan = record.plan.as_ref();
    if plan.is_some_and(|plan| matches!(plan.scenario, Scenario::Storm { outage, .. } if !outage.is_cut())) {
        // It is the lab that does so.
        return None;
    }
    let is_inside = |t_ns: u64| (start..=end).contains(&t_ns);
    let counters: Vec<_> = record.counters.iter().filter(|sample| is_inside(sample.t_ns)).collect();
    let began_again = |two: &[&CounterSample]| two[1].accepted < two[0].accepted || two[1].sent < two[0].sent;
    if counters.windows(2).any(began_again) {
        return Some(Warning::new(WarningCode::SubjectRestarted, "its counters began again under load"));
    }
    let processes = || record.subject.iter().filter(|sample| is_inside(sample.t_ns)).map(|sample| sample.processes);
    let (before, after) = (processes().next()?, processes().next_back()?);
    let fewest = processes().min()?;
    (fewest < before && after >= before).then(|| {
        let detail = format!("it had {before} processes, then {fewest}, then {after} again");
        Warning::new(WarningCode::SubjectRestarted, detail)
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
fn latency_trend(record: &RunRecord) -> Option<f64> {
    if record.plan.as_ref().is_some_and(|plan| !matches!(plan.shape, Shape::Steady | Shape::Poisson)) {
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

/// CPU time that a run used on the lab's machine in its load phase, s; the subject may be on another.
pub fn used_s(record: &RunRecord, is_subject_here: bool) -> f64 {
    let subject = if is_subject_here { side_s(record, &record.subject) } else { 0.0 };
    subject + side_s(record, &record.generator)
}

/// CPU time that one side of a run used in its load phase, s.
fn side_s(record: &RunRecord, samples: &[Sample]) -> f64 {
    let Some(load) = record.phase_span(Phase::Load) else { return 0.0 };
    let percent = measure::cpu_percent(samples, load).unwrap_or(0.0);
    percent / 100.0 * load.1.saturating_sub(load.0) as f64 / 1e9
}

fn other_processes(record: &RunRecord, evidence: &Evidence<'_>, load_s: f64) -> Vec<Warning> {
    let link_s = record.network.as_ref().map_or(0.0, |network| network.cpu_load_ns as f64 / 1e9);
    let here_s = used_s(record, evidence.elsewhere.is_none()) + link_s;
    let there_s = side_s(record, &record.subject);
    let mut machines = vec![("", evidence.machine, here_s)];
    machines.extend(evidence.elsewhere.map(|load| (" on the server's machine", load, there_s)));
    let mut warnings = Vec::new();
    for (whose, machine, ours_s) in machines {
        let Some(machine) = machine else { continue };
        warnings.extend(throttled(machine.throttling, whose));
        let steal = machine.steal_s / load_s;
        if steal > STEAL_MAX {
            let detail = format!("the hypervisor took {:.0} % of a core{whose}", steal * 100.0);
            warnings.push(Warning::new(WarningCode::NoisyNeighbour, detail));
        }
        let others = (machine.busy_s - ours_s) / load_s;
        if others > OTHERS_MAX {
            let detail = format!("other processes used {:.0} % of a core{whose}", others * 100.0);
            warnings.push(Warning::new(WarningCode::NoisyNeighbour, detail));
        }
    }
    warnings
}

/// What a CPU quota did: too little for latencies to tell, and it is another that takes CPU time.
fn throttled(throttling: Throttling, whose: &str) -> Option<Warning> {
    let Throttling { periods, throttled, waited_us } = throttling;
    let code = match throttled as f64 / periods.max(1) as f64 {
        _ if throttled == 0 => return None,
        share if share > THROTTLED_MAX => WarningCode::CpuQuota,
        _ => WarningCode::NoisyNeighbour,
    };
    let waited_s = waited_us as f64 / 1e6;
    let detail =
        format!("a CPU quota{whose} was used up in {throttled} of {periods} periods, for {waited_s:.2} s in all");
    Some(Warning::new(code, detail))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::presets;
    use crate::report::RunValues;
    use pushlab_experiment::cell::Cell;
    use pushlab_probe::MachineLoad;
    use pushlab_stats::{GeneratorLimits, Histogram};
    use pushlab_wire::transport::Transport;
    use pushlab_workload::busy::{BusiestSecond, LoadThread};
    use pushlab_workload::payload::Content;
    use pushlab_workload::plan::{ClientsIn, Phases, Plan, RequestHeaders, Sockets, Sources, Target};
    use pushlab_workload::result::{LoadResult, PhaseMark};
    use pushlab_workload::scenario::Outage;

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
                in_bursts: false,
            },
            poll_interval_ms: 20,
            poll_wait_s: 5,
            prober: None,
            phases: Phases { connect_ms: 1, warm_up_ms: SETTLED_MS, idle_ms: 3, load_ms: 4, drain_ms: 5, after_ms: 6 },
            connect_rate: 100,
            loops: 2,
            workers: 1,
            seed: 1,
            repetition: None,
            injected_delay_us: 0,
            shape: Shape::Steady,
            is_told_to_begin: false,
            turns: None,
            headers: RequestHeaders::Minimal,
            compression_from: None,
            content: Content::Filler,
            poll_newest_count: None,
            poll_after_publication_ms: None,
            user_list: false,
            receipts: false,
            backend_listen: None,
            backend_descriptor: None,
            sockets: Sockets::default(),
            sources: Sources::Usual,
            instruments_from: None,
            prober_core: None,
            clients_in: ClientsIn::default(),
            page_scripts: None,
            drain_stall_ms: None,
        }
    }

    fn behind(change: impl FnOnce(&mut Plan, &mut LoadResult)) -> Option<String> {
        let cell: Cell = presets::load("tangen-chat", None).unwrap().cells().remove(0);
        let mut record = presets::blank(cell);
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
        let cut = |lost| behind(|_, result| (result.arrived, result.lost, result.connections_cut) = (9_000, lost, 1));
        assert_eq!((cut(600), cut(499).is_some()), (None, true), "what was lost with a connection is no backlog");
        let few = |arrived| behind(|_, result| (result.expected, result.arrived) = (500, arrived));
        assert_eq!(
            (few(300), few(299).is_some()),
            (None, true),
            "two publications of five on the other side of an end"
        );
    }

    /// What is said of a load of which so many publications were never sent.
    fn of_unsent(scenario: Scenario, scheduled: u64, unsent: u64) -> Option<(WarningCode, String)> {
        let mut record = presets::blank(presets::load("tangen-chat", None).unwrap().cells().remove(0));
        record.plan = Some(Plan { scenario, ..plan() });
        let result = LoadResult { scheduled, unsent, ..LoadResult::default() };
        generator::unsent(&record, &result).map(|warning| (warning.code, warning.detail))
    }

    #[test]
    fn of_a_load_that_was_not_sent_nothing_is_known() {
        let chat = |scheduled, unsent| of_unsent(plan().scenario, scheduled, unsent);
        let detail = "200000 of 200000 publications (100 %) were never sent".to_owned();
        assert_eq!(chat(200_000, 200_000), Some((WarningCode::Unsent, detail)));
        assert_eq!(chat(0, 0).unwrap().0, WarningCode::Unsent, "nothing was due");
        assert!(WarningCode::Unsent.withholds(pushlab_stats::Figures::All));
        let few = chat(100, 50).unwrap();
        assert_eq!(
            few,
            (WarningCode::Loss, "50 publications could not be sent: the subject stopped reading".to_owned())
        );
        assert_eq!((chat(100, 0), of_unsent(Scenario::Idle, 0, 0)), (None, None));
    }

    #[test]
    fn what_was_never_sent_is_not_said_to_have_come() {
        let mut record = presets::blank(presets::load("tangen-chat", None).unwrap().cells().remove(0));
        let result = LoadResult { scheduled: 100, published: 60, unsent: 40, expected: 600, ..LoadResult::default() };
        record.result = Some(LoadResult { delivered: 600, ..result });
        assert_eq!(RunValues::of(&record).wrong, [400, 0, 0].map(Some));
    }

    #[test]
    fn who_refuses_is_not_called_overloaded_and_who_broadcasts_is_no_echo() {
        let codes = |change: &dyn Fn(&mut LoadResult)| {
            let mut record = presets::blank(presets::load("tangen-chat", None).unwrap().cells().remove(0));
            let mut result = LoadResult {
                phases: [(Phase::Load, 0), (Phase::Drain, 5_000_000_000)]
                    .map(|(phase, t_ns)| PhaseMark { phase, t_ns })
                    .into(),
                end_ns: 6_000_000_000,
                scheduled: 100,
                expected: 10_000,
                lost: 10_000,
                ..LoadResult::default()
            };
            result.turn_duration.record(1_000);
            change(&mut result);
            (record.plan, record.result) = (Some(plan()), Some(result));
            let limits = &GeneratorLimits::default();
            let (subject_cores, load_cores): (&[usize], &[usize]) = (&[0], &[1]);
            let evidence = Evidence {
                subject_cores,
                load_cores,
                load_cores_count: 1,
                limits,
                ticks_missed: 0,
                machine: None,
                elsewhere: None,
            };
            of(&record, &evidence).iter().map(|warning| warning.code).collect::<Vec<_>>()
        };
        assert!(codes(&|_| ()).contains(&WarningCode::Overloaded));
        let refused = pushlab_workload::errors::ErrorCount { error: "403".to_owned(), count: 100 };
        assert!(!codes(&|result| result.refused = vec![refused.clone()]).contains(&WarningCode::Overloaded));
        assert!(codes(&|result| result.misdirected = 1).contains(&WarningCode::Misdirected));
        assert!(codes(&|result| result.turn_duration = Histogram::default()).contains(&WarningCode::LongTurns));
    }

    #[test]
    fn clocks_that_are_known_too_little_take_one_way_latencies_away() {
        let told = |error_us: u64| {
            let mut record = presets::blank(presets::load("tangen-chat", None).unwrap().cells().remove(0));
            let mut result = LoadResult { clock_error_ns: Some(1_000 * error_us), ..LoadResult::default() };
            result.latency.record(1_000_000);
            record.result = Some(result);
            unsure_clock(&record).map(|warning| (warning.code, warning.detail))
        };
        assert_eq!([told(0), told(190)], [None, None]);
        assert_eq!(told(210).unwrap().0, WarningCode::ClockError);
        let (code, detail) = told(1_100).unwrap();
        assert_eq!(code, WarningCode::OneWayUnsure);
        assert_eq!(detail, "two clocks may be 1.10 ms apart, and median latency is 1.00 ms");
    }

    #[test]
    fn a_subject_that_began_again_under_load_is_told() {
        let told_in = |scenario: Option<Scenario>, processes: &[u32], accepted: &[u64]| {
            let mut record = presets::blank(presets::load("tangen-chat", None).unwrap().cells().remove(0));
            record.plan = scenario.map(|scenario| Plan { scenario, ..plan() });
            let at = |i: usize| 1_000 * i as u64;
            let sample =
                |(i, processes): (usize, &u32)| Sample { t_ns: at(i), processes: *processes, ..Sample::default() };
            record.subject = processes.iter().enumerate().map(sample).collect();
            let counter = |(i, accepted): (usize, &u64)| CounterSample {
                t_ns: at(i),
                accepted: *accepted,
                ..CounterSample::default()
            };
            record.counters = accepted.iter().enumerate().map(counter).collect();
            restarted(&record, (1_000, 4_000)).map(|warning| warning.detail)
        };
        let told = |processes: &[u32], accepted: &[u64]| told_in(None, processes, accepted);
        assert_eq!(told(&[3, 3, 2, 3, 3], &[]).unwrap(), "it had 3 processes, then 2, then 3 again");
        assert_eq!(told(&[1; 5], &[90, 100, 100, 7, 12]).unwrap(), "its counters began again under load");
        assert_eq!(told(&[1, 3, 3, 3, 3, 1], &[0, 100, 100, 110, 120, 0]), None, "before the load and after it");
        assert_eq!(told(&[3, 3, 2, 2, 2], &[]), None, "one that has ended and was not replaced");
        let storm = |outage| Scenario::Storm { missed: 1, payload_bytes: 50, return_over_ms: 0, outage };
        let told_of = |outage| told_in(Some(storm(outage)), &[1, 1, 0, 1, 1], &[]);
        assert!(told_of(Outage::Cut).is_some() && told_of(Outage::Kill).is_none(), "the lab does that itself");
    }

    /// What is said of five seconds of which the generator's third event loop filled one.
    fn of_full_second(scenario: Scenario, subject_percent: Option<u64>) -> (Vec<WarningCode>, String) {
        of_full_second_on(scenario, subject_percent, None)
    }

    fn of_full_second_on(
        scenario: Scenario,
        subject_percent: Option<u64>,
        machine: Option<MachineLoad>,
    ) -> (Vec<WarningCode>, String) {
        let cell: Cell = presets::load("tangen-chat", None).unwrap().cells().remove(0);
        let mut record = presets::blank(cell);
        let mut result = LoadResult {
            phases: [(Phase::Load, 0), (Phase::Drain, 5_000_000_000)]
                .map(|(phase, t_ns)| PhaseMark { phase, t_ns })
                .into(),
            end_ns: 6_000_000_000,
            scheduled: 1_000,
            published_after: 40,
            // What came late because nobody read it.
            expected: 10_000,
            arrived: 5_000,
            busiest: Some(BusiestSecond {
                thread: LoadThread::Clients,
                number: 2,
                from_ns: 1_500_000_000,
                span_ns: 1_000_000_000,
                cpu_ns: 990_000_000,
            }),
            ..LoadResult::default()
        };
        result.lateness.record(900_000_000);
        result.turn_duration.record(900_000_000);
        (record.plan, record.result) = (Some(Plan { scenario, ..plan() }), Some(result));
        let sample = |(t_ns, cpu_ns)| Sample { t_ns, cpu_ns, ..Sample::default() };
        record.subject =
            subject_percent.map_or_else(Vec::new, |p| [(0, 0), (5_000_000_000, p * 50_000_000)].map(sample).into());
        let limits = &GeneratorLimits::default();
        let cores: Vec<usize> = (1..9).collect();
        let warnings = of(
            &record,
            &Evidence {
                subject_cores: &[0],
                load_cores: &cores,
                load_cores_count: cores.len() as u32,
                limits,
                ticks_missed: 0,
                machine,
                elsewhere: None,
            },
        );
        (
            warnings.iter().map(|warning| warning.code).collect(),
            warnings.first().map_or(String::new(), |w| w.detail.clone()),
        )
    }

    #[test]
    fn one_full_second_of_one_thread_takes_latency_and_accuses_nobody_else() {
        let (codes, detail) = of_full_second(plan().scenario, Some(50));
        assert_eq!(codes, [WarningCode::GeneratorSaturated]);
        assert_eq!(detail, "event loop 2 used 99 % of a core in the second from 1.5 s on, limit 95 %");
    }

    #[test]
    fn in_a_closed_loop_a_full_thread_is_a_lower_bound_unless_the_subject_is_full_too() {
        let closed = || Scenario::FanOut { publishers: 8, payload_bytes: 64 };
        let (codes, detail) = of_full_second(closed(), Some(50));
        assert_eq!(codes, [WarningCode::GeneratorBound]);
        assert!(detail.ends_with("; the subject used 50 % of its own"), "{detail}");
        assert_eq!(of_full_second(closed(), Some(98)).0, []);
        assert_eq!(of_full_second(closed(), None).0, [WarningCode::GeneratorBound], "a server known by its URL alone");
    }

    /// What is said where each of these times, ms, was measured so often.
    fn of_shares(
        scenario: Scenario,
        [latency, read, late]: [f64; 3],
        [response, own]: [f64; 2],
        count: u64,
    ) -> Vec<(WarningCode, String)> {
        let cell: Cell = presets::load("tangen-chat", None).unwrap().cells().remove(0);
        let mut record = presets::blank(cell);
        let mut result = LoadResult::default();
        let times = [
            (&mut result.latency, latency),
            (&mut result.read_wait, read),
            (&mut result.lateness, late),
            (&mut result.response_load, response),
            (&mut result.response_own, own),
        ];
        for (histogram, ms) in times {
            (0..count).for_each(|_| histogram.record((ms * 1e6) as u64));
        }
        record.plan = Some(Plan { scenario, ..plan() });
        record.result = Some(result.clone());
        generator::own_shares(&record, &result, &GeneratorLimits::default())
            .into_iter()
            .map(|warning| (warning.code, warning.detail))
            .collect()
    }

    #[test]
    fn what_was_the_generators_own_takes_the_time_that_it_is_in_away() {
        let chat = || plan().scenario;
        assert_eq!(of_shares(chat(), [30.0, 2.0, 0.9], [30.0, 2.9], 50), []);
        let found = of_shares(chat(), [30.0, 2.0, 1.2], [30.0, 2.9], 50);
        let detail = "3.2 of 30.0 ms mean latency, 11 %; 10 % and 1 ms are allowed".to_owned();
        assert_eq!(found, [(WarningCode::GeneratorShare, detail)]);
        let found = of_shares(chat(), [30.0, 2.0, 0.5], [30.0, 15.0], 50);
        let detail = "15.0 of 30.0 ms mean response time, 50 %; 10 % and 1 ms are allowed".to_owned();
        assert_eq!(found, [(WarningCode::ProberShare, detail.clone())]);
        assert_eq!(of_shares(chat(), [0.9, 0.5, 0.3], [1.1, 0.9], 50), [], "to wake any client takes that long");
        let closed = Scenario::FanOut { publishers: 8, payload_bytes: 64 };
        assert_eq!(of_shares(closed, [30.0, 20.0, 0.0], [30.0, 15.0], 50), [(WarningCode::ProberShare, detail)]);
    }

    #[test]
    fn of_too_few_deliveries_no_share_is_said() {
        let [(code, detail)] = of_shares(plan().scenario, [30.0, 20.0, 0.0], [30.0, 15.0], 19).try_into().unwrap();
        assert_eq!(code, WarningCode::FewSamples);
        assert_eq!(detail, "the generator's share of latency is of 19 deliveries, 20 wanted");
    }

    #[test]
    fn a_run_without_its_latency_has_its_counts() {
        let cell: Cell = presets::load("tangen-chat", None).unwrap().cells().remove(0);
        let mut record = presets::blank(cell);
        let result = record.result.as_mut().unwrap();
        result.phases =
            [(Phase::Load, 0), (Phase::Drain, 1_000_000_000)].map(|(phase, t_ns)| PhaseMark { phase, t_ns }).into();
        (result.end_ns, result.arrived) = (2_000_000_000, 70);
        for histogram in [&mut result.latency, &mut result.response_load, &mut result.response_idle] {
            histogram.record_n(1_000_000, 20);
        }
        result.scheduled = 20;
        let has = |record: &RunRecord| {
            let figures = RunValues::of(record).figures;
            ["latency_median", "response_median", "response_idle_median", "delivered"]
                .map(|name| figures.contains_key(name))
        };
        assert_eq!(has(&record), [true; 4]);
        record.warnings = vec![Warning::new(WarningCode::GeneratorSaturated, "event loop 2")];
        assert_eq!(has(&record), [false, false, true, true]);
        assert!(record.counts());
    }

    #[test]
    fn a_cpu_quota_is_named_and_takes_latency_where_it_made_it() {
        let of = |periods, throttled, waited_us| super::throttled(Throttling { periods, throttled, waited_us }, "");
        let found = of(40, 14, 1_000_000).unwrap();
        assert_eq!(found.detail, "a CPU quota was used up in 14 of 40 periods, for 1.00 s in all");
        assert_eq!(found.code, WarningCode::CpuQuota);
        assert_eq!(of(1_000, 10, 5).unwrap().code, WarningCode::NoisyNeighbour);
        assert_eq!(of(1_000, 11, 5).unwrap().code, WarningCode::CpuQuota);
        assert_eq!((of(40, 0, 0), of(0, 0, 0)), (None, None));
        // It comes with what is known of the machine.
        let (codes, _) = of_full_second_on(
            plan().scenario,
            Some(50),
            Some(MachineLoad {
                busy_s: 0.0,
                steal_s: 0.0,
                throttling: Throttling { periods: 40, throttled: 14, waited_us: 1_000_000 },
            }),
        );
        assert!(codes.contains(&WarningCode::CpuQuota), "{codes:?}");
    }

    #[test]
    fn a_refusal_to_compress_is_seen() {
        let cell: Cell = presets::load("tangen-chat", None).unwrap().cells().remove(0);
        let mut record = presets::blank(cell);
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
