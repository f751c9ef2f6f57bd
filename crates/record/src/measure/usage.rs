//! Figures of one run from the probe's samples: CPU, memory and connections of the subject, CPU of the generator.

use crate::RunRecord;
use pushlab_probe::Sample;
use pushlab_workload::plan::{Phase, Plan};
use pushlab_workload::scenario::Scenario;

const MIB: f64 = 1024.0 * 1024.0;
const KIB_PER_MIB: f64 = 1024.0;
const SECOND_NS: u64 = 1_000_000_000;
/// Seconds of a load phase that are looked at: more than a day of an imported record is no measurement.
const MAX_SECONDS: usize = 1 << 17;
const HOUR_NS: f64 = 3.6e12;
/// Shortest load phase whose memory has a trend worth telling.
const TREND_NS_MIN: u64 = 60 * SECOND_NS;

/// CPU over a span, per cent of one core, from cumulative readings.
pub fn cpu_percent(samples: &[Sample], (start, end): (u64, u64)) -> Option<f64> {
    let inside: Vec<&Sample> = samples.iter().filter(|s| s.t_ns >= start && s.t_ns <= end).collect();
    let (first, last) = (inside.first()?, inside.last()?);
    (last.t_ns > first.t_ns)
        .then(|| last.cpu_ns.saturating_sub(first.cpu_ns) as f64 * 100.0 / (last.t_ns - first.t_ns) as f64)
}

/// The second of a span in which CPU was highest, from cumulative readings: when it began, and per cent of one core.
pub fn busiest_second(samples: &[Sample], (start, end): (u64, u64)) -> Option<(u64, f64)> {
    let inside: Vec<&Sample> = samples.iter().filter(|s| s.t_ns >= start && s.t_ns <= end).collect();
    let (mut from, mut busiest): (usize, Option<(u64, f64)>) = (0, None);
    for last in &inside {
        // The shortest window that ends here and is a second or longer.
        while inside[from + 1..].first().is_some_and(|next| next.t_ns + SECOND_NS <= last.t_ns) {
            from += 1;
        }
        let first = inside[from];
        if first.t_ns + SECOND_NS > last.t_ns {
            continue;
        }
        let percent = last.cpu_ns.saturating_sub(first.cpu_ns) as f64 * 100.0 / (last.t_ns - first.t_ns) as f64;
        if busiest.is_none_or(|(_, most)| percent > most) {
            busiest = Some((first.t_ns, percent));
        }
    }
    // A span shorter than a second is one window.
    busiest.or_else(|| Some((start, cpu_percent(samples, (start, end))?)))
}

/// Subject's CPU under load, per cent of one core.
pub fn cpu(run: &RunRecord) -> Option<f64> {
    cpu_percent(&run.subject, run.phase_span(Phase::Load)?)
}

/// Subject's CPU time in a second of the load phase over the clients, µs.
pub fn cpu_per_client(run: &RunRecord) -> Option<f64> {
    let clients = run.planned.cell.clients;
    // A per cent of a core is 10 ms in a second.
    cpu(run).filter(|_| clients > 0).map(|percent| percent * 1e4 / f64::from(clients))
}

/// Subject's CPU under load, per cent of one core: the median of its seconds.
pub fn cpu_median(run: &RunRecord) -> Option<f64> {
    let (start, end) = run.phase_span(Phase::Load)?;
    let seconds = (start..end).step_by(SECOND_NS as usize).take(MAX_SECONDS).filter(|from| from + SECOND_NS <= end);
    let shares: Vec<f64> = seconds.filter_map(|from| cpu_percent(&run.subject, (from, from + SECOND_NS))).collect();
    pushlab_stats::median(&shares)
}

/// Subject's CPU before the load, per cent of one core.
pub fn cpu_idle(run: &RunRecord) -> Option<f64> {
    cpu_percent(&run.subject, run.phase_span(Phase::Idle)?)
}

/// Subject's CPU after the load, with all clients connected, per cent of one core.
pub fn cpu_after(run: &RunRecord) -> Option<f64> {
    cpu_percent(&run.subject, run.phase_span(Phase::After)?)
}

/// CPU of the subject alone, before any client, per cent of one core.
pub fn cpu_baseline(run: &RunRecord) -> Option<f64> {
    cpu_percent(&run.subject, run.baseline?)
}

/// Subject's CPU time per delivery, µs: that of load and drain, in which the load's publications are delivered; where the
/// drain does not count, that of the load alone, over what arrived in it.
pub fn cpu_per_delivery(run: &RunRecord) -> Option<f64> {
    let result = run.result.as_ref()?;
    cpu_per(run, if counts_drain(run) { result.delivered } else { result.arrived })
}

/// Subject's CPU time per publication, µs: that of load and drain, or of the load alone where the drain does not count.
pub fn cpu_per_publication(run: &RunRecord) -> Option<f64> {
    cpu_per(run, run.result.as_ref()?.published)
}

fn counts_drain(run: &RunRecord) -> bool {
    run.plan.as_ref().is_none_or(Plan::counts_drain)
}

/// The start of the load, and the end of what counts as it: that of the drain, or of the load itself.
pub(super) fn counted_span(run: &RunRecord) -> Option<(u64, u64)> {
    let (start, _) = run.phase_span(Phase::Load)?;
    let (_, end) = run.phase_span(if counts_drain(run) { Phase::Drain } else { Phase::Load })?;
    Some((start, end))
}

/// Subject's CPU time in the counted span over `count`, µs.
fn cpu_per(run: &RunRecord, count: u64) -> Option<f64> {
    let (start, end) = counted_span(run)?;
    let cpu_us = cpu_percent(&run.subject, (start, end))? / 100.0 * end.saturating_sub(start) as f64 / 1e3;
    (count > 0).then(|| cpu_us / count as f64)
}

/// Generator's CPU under load, per cent of one core.
pub fn generator_cpu(run: &RunRecord) -> Option<f64> {
    let (start, end) = run.phase_span(Phase::Load)?;
    (end > start).then(|| run.result.as_ref().map(|r| r.cpu_load_ns as f64 * 100.0 / (end - start) as f64))?
}

/// CPU of the generator's busiest thread in its busiest second under load, per cent of one core.
pub fn generator_busiest(run: &RunRecord) -> Option<f64> {
    Some(run.result.as_ref()?.busiest?.percent())
}

/// Generator's CPU time per delivery, µs: both of the load phase.
pub fn generator_cpu_per_delivery(run: &RunRecord) -> Option<f64> {
    let result = run.result.as_ref()?;
    (result.arrived > 0).then(|| result.cpu_load_ns as f64 / 1e3 / result.arrived as f64)
}

/// Deliveries that came compressed, per cent of all, where clients asked for it.
pub fn compressed(run: &RunRecord) -> Option<f64> {
    run.plan.as_ref()?.compression_from?;
    let result = run.result.as_ref()?;
    (result.delivered > 0).then(|| result.delivered_compressed as f64 * 100.0 / result.delivered as f64)
}

/// Subject's highest resident memory under load, MiB.
pub fn memory(run: &RunRecord) -> Option<f64> {
    let (start, _) = run.phase_span(Phase::Load)?;
    let (_, end) = run.phase_span(Phase::Drain)?;
    let inside = run.subject.iter().filter(|s| s.t_ns >= start && s.t_ns <= end);
    inside.map(|s| s.rss_bytes).max().map(|bytes| bytes as f64 / MIB)
}

/// Resident memory of the subject alone, before any client, MiB.
pub fn memory_baseline(run: &RunRecord) -> Option<f64> {
    memory_at_end(run, run.baseline?)
}

/// Subject's resident memory with all clients connected and silent, MiB.
pub fn memory_idle(run: &RunRecord) -> Option<f64> {
    memory_at_end(run, run.phase_span(Phase::Idle)?)
}

/// Subject's resident memory as the load ends, MiB.
pub fn memory_loaded(run: &RunRecord) -> Option<f64> {
    memory_at_end(run, run.phase_span(Phase::Load)?)
}

/// Subject's resident memory after the load, MiB.
pub fn memory_after(run: &RunRecord) -> Option<f64> {
    memory_at_end(run, run.phase_span(Phase::After)?)
}

/// Subject's highest resident memory under load, beyond that of the subject alone, MiB.
pub fn memory_own(run: &RunRecord) -> Option<f64> {
    Some(memory(run)? - memory_baseline(run)?)
}

/// Growth of the subject's resident memory from before any client until all are connected and silent, over their
/// number, KiB.
pub fn memory_per_client(run: &RunRecord) -> Option<f64> {
    let clients = run.planned.cell.clients;
    let growth = memory_idle(run)? - memory_baseline(run)?;
    (clients > 0).then(|| growth * KIB_PER_MIB / f64::from(clients))
}

/// Trend of resident memory over a load phase of at least a minute, MiB per hour.
pub fn memory_growth(run: &RunRecord) -> Option<f64> {
    let (start, end) = run.phase_span(Phase::Load)?;
    let inside = run.subject.iter().filter(|s| s.t_ns >= start && s.t_ns <= end);
    growth_per_hour(run, inside.map(|s| (s.t_ns, s.rss_bytes)))
}

/// Trend of bytes over a load phase of at least a minute, MiB per hour; `told` has the instants of that phase, ns.
pub(super) fn growth_per_hour(run: &RunRecord, told: impl Iterator<Item = (u64, u64)>) -> Option<f64> {
    let (start, end) = run.phase_span(Phase::Load)?;
    let points: Vec<(f64, f64)> =
        told.map(|(t_ns, bytes)| (t_ns.saturating_sub(start) as f64 / HOUR_NS, bytes as f64 / MIB)).collect();
    let found = (end.saturating_sub(start) >= TREND_NS_MIN).then(|| pushlab_stats::trend(&points, 0.95))?.ok()?;
    Some(found.per_unit)
}

/// What the kernel of the server's machine holds more with all clients connected than before the first, MiB: both ends of
/// each connection, where the load shares that machine.
pub fn memory_kernel(run: &RunRecord) -> Option<f64> {
    let growth = run.kernel?.idle_bytes as f64 - run.kernel?.before_bytes as f64;
    Some(growth / MIB)
}

fn memory_at_end(run: &RunRecord, (start, end): (u64, u64)) -> Option<f64> {
    let last = run.subject.iter().rev().find(|s| s.t_ns >= start && s.t_ns <= end)?;
    Some(last.rss_bytes as f64 / MIB)
}

/// Most TCP connections open at the server at once in the load phase, but for those of the lab's own instruments.
pub fn connections(run: &RunRecord) -> Option<f64> {
    established(run, |counts| counts.max())
}

/// The fewest.
pub fn connections_least(run: &RunRecord) -> Option<f64> {
    established(run, |counts| counts.min())
}

/// One of the numbers of connections in the load phase, without those of the prober, a feeder and the reader of the
/// server's counters.
fn established(run: &RunRecord, one_of: fn(&mut dyn Iterator<Item = u32>) -> Option<u32>) -> Option<f64> {
    let feeders = |plan: &Plan| {
        let clients = match plan.scenario {
            Scenario::FanOut { publishers, .. } => publishers,
            _ => u32::from(plan.scenario.has_feeder()),
        };
        // One that receives, and one that posts.
        clients * if plan.publishes_in_frames() { 1 } else { 2 }
    };
    let reader = u32::from(!run.counters.is_empty());
    let instruments = reader + run.plan.as_ref().map_or(0, |plan| u32::from(plan.prober.is_some()) + feeders(plan));
    let (start, end) = run.phase_span(Phase::Load)?;
    let inside = run.subject.iter().filter(|s| s.t_ns >= start && s.t_ns <= end);
    let count = one_of(&mut inside.filter_map(|s| s.tcp).map(|tcp| tcp.established))?;
    Some(f64::from(count.saturating_sub(instruments)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::presets;
    use pushlab_wire::transport::Transport;
    use pushlab_workload::result::{LoadResult, PhaseMark};

    #[test]
    fn the_busiest_second_is_found_among_idle_ones() {
        let ms = 1_000_000;
        // Full from 2.3 s to 3.3 s, and otherwise at a tenth.
        let cpu = |t: u64| t / 10 + (t.clamp(2_300, 3_300) - 2_300) * 9 / 10;
        let samples: Vec<Sample> =
            (0..120).map(|i| Sample { t_ns: i * 50 * ms, cpu_ns: cpu(i * 50) * ms, ..Sample::default() }).collect();
        let (from, percent) = busiest_second(&samples, (0, 6_000 * ms)).unwrap();
        assert_eq!((from, percent), (2_300 * ms, 100.0));
        assert!(cpu_percent(&samples, (0, 6_000 * ms)).unwrap() < 30.0);
        assert_eq!(busiest_second(&samples, (2_000 * ms, 2_600 * ms)), Some((2_000 * ms, 55.0)), "a short span");
        assert_eq!(busiest_second(&samples[..1], (0, 6_000 * ms)), None);
    }

    #[test]
    fn the_load_is_told_from_what_comes_before_and_after() {
        let mut run = RunRecord::blank(presets::load("tangen-chat").cells().remove(0));
        let mark = |phase, t_ns| PhaseMark { phase, t_ns };
        let phases =
            [(Phase::Connect, 20), (Phase::Idle, 30), (Phase::Load, 40), (Phase::Drain, 50), (Phase::After, 60)];
        let phases = phases.map(|(phase, t_ns)| mark(phase, t_ns)).to_vec();
        run.result = Some(LoadResult { phases, end_ns: 70, ..LoadResult::default() });
        let sample = |t_ns, mib: u64, cpu_ns, established| {
            let tcp = Some(pushlab_probe::TcpStates { established, ..Default::default() });
            Sample { t_ns, rss_bytes: mib << 20, cpu_ns, tcp, ..Sample::default() }
        };
        run.baseline = Some((0, 10));
        run.subject = vec![
            sample(5, 10, 0, 0),
            sample(41, 20, 0, 9),
            sample(45, 90, 4, 30),
            sample(49, 40, 8, 20),
            sample(51, 95, 9, 1),
            sample(61, 30, 10, 1),
            sample(69, 30, 12, 1),
        ];
        assert_eq!((memory_loaded(&run), memory_own(&run)), (Some(40.0), Some(85.0)));
        assert_eq!((connections_least(&run), connections(&run)), (Some(9.0), Some(30.0)));
        assert_eq!((cpu(&run), cpu_after(&run)), (Some(100.0), Some(25.0)));
        run.planned.cell.clients = 8;
        assert_eq!(cpu_per_client(&run), Some(125_000.0), "an eighth of a second in each");
        run.planned.cell.clients = 0;
        assert_eq!(cpu_per_client(&run), None);
    }

    #[test]
    fn the_drain_counts_unless_clients_poll_at_an_interval() {
        let mut run = RunRecord::blank(presets::load("tangen-chat").cells().remove(0));
        let phases = [(Phase::Load, 1_000), (Phase::Drain, 2_000), (Phase::After, 3_000)];
        let phases = phases.map(|(phase, t_ns)| PhaseMark { phase, t_ns }).to_vec();
        run.result =
            Some(LoadResult { phases, end_ns: 4_000, delivered: 2, arrived: 4, published: 1, ..LoadResult::default() });
        run.subject = [(1_000, 0), (2_000, 800), (3_000, 1_200)]
            .map(|(t_ns, cpu_ns)| Sample { t_ns, cpu_ns, ..Sample::default() })
            .to_vec();
        run.plan = Some(crate::plan(Transport::LongPolling, &Scenario::Idle));
        assert_eq!((cpu_per_delivery(&run), cpu_per_publication(&run)), (Some(0.6), Some(1.2)));
        run.plan.as_mut().unwrap().transport = Transport::Polling;
        assert_eq!((cpu_per_delivery(&run), cpu_per_publication(&run)), (Some(0.2), Some(0.8)));
    }

    #[test]
    fn memory_of_a_client_is_what_it_adds_to_the_server_alone() {
        let mut cell = presets::load("tangen-chat").cells().remove(0);
        cell.clients = 64;
        let mut run = RunRecord::blank(cell);
        let mark = |phase, t_ns| PhaseMark { phase, t_ns };
        run.result = Some(LoadResult {
            phases: vec![mark(Phase::Connect, 20), mark(Phase::Idle, 30), mark(Phase::Load, 40)],
            end_ns: 50,
            ..LoadResult::default()
        });
        let sample = |t_ns, kib: u64| Sample { t_ns, rss_bytes: kib * 1024, ..Sample::default() };
        run.subject = vec![sample(5, 1000), sample(25, 9000), sample(35, 1160), sample(45, 9000)];
        assert_eq!(memory_per_client(&run), None, "nobody looked at the server alone");
        run.baseline = Some((0, 10));
        assert_eq!(memory_per_client(&run), Some(2.5));
        run.planned.cell.clients = 0;
        assert_eq!(memory_per_client(&run), None);
    }
}
