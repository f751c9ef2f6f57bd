//! What a run's link carried, phase by phase.

use crate::topology::Link;
use pushlab_link::core_wait::CoreWait;
use pushlab_link::network::Network;
use pushlab_link::totals::Totals;
use pushlab_record::{CaptureRecord, NetworkRecord};
use pushlab_stats::Histogram;
use pushlab_workload::plan::{Phase, Phases};

/// Readings of the link at the ends of the phases that count.
#[derive(Default)]
pub struct LinkWatch {
    load: Option<Mark>,
    drain: Option<Mark>,
    after: Option<Mark>,
    lateness: Histogram,
}

#[derive(Clone, Copy)]
struct Mark {
    totals: Totals,
    cpu_ns: u64,
    core_wait: Option<CoreWait>,
}

impl LinkWatch {
    /// A phase of these began at `t_ns`. When the load is to begin is known from the idle phase on, so that its first
    /// packet is told from the last before it.
    pub fn phase(&mut self, phase: Phase, t_ns: u64, phases: &Phases, network: Option<&Network>) {
        let Some(network) = network else { return };
        let mark = Some(Mark {
            totals: network.totals(),
            cpu_ns: network.cpu_ns().unwrap_or(0),
            core_wait: network.core_wait(),
        });
        match phase {
            Phase::Load => {
                self.load = mark;
                network.take_lateness();
            }
            Phase::Drain => {
                self.drain = mark;
                self.lateness = network.take_lateness();
            }
            Phase::After => self.after = mark,
            Phase::Idle => network.mark_at(t_ns + (phases.idle_ms + phases.warm_up_ms) * 1_000_000),
            Phase::Connect | Phase::WarmUp => {}
        }
    }

    /// Ends the link; the clients are gone by now. A phase that never began leaves its figures at zero.
    pub fn finish(self, link: Link, counts_drain: bool) -> NetworkRecord {
        let end = if counts_drain { self.after } else { self.drain };
        let mut record = NetworkRecord {
            profile: link.profile,
            whole: link.network.totals(),
            load: end.map(|end| end.totals.since(&link.network.marked())).unwrap_or_default(),
            cpu_load_ns: self.load.zip(self.drain).map_or(0, |(from, to)| to.cpu_ns.saturating_sub(from.cpu_ns)),
            lateness: self.lateness,
            core_wait_ms: self.load.zip(self.drain).and_then(|(from, to)| mean_wait_ms(from.core_wait?, to.core_wait?)),
            capture: link.capture.map(|file| CaptureRecord { file, problem: None }),
            problem: None,
        };
        match link.network.finish() {
            Err(error) => record.problem = Some(error.to_string()),
            Ok(report) => {
                record.whole = report.totals;
                if report.overflows > 0 {
                    record.problem = Some(format!("the link was too late to read {} packets", report.overflows));
                }
                if report.stalls > 0 {
                    record.problem = Some("more packets were under way than the link has room for".to_owned());
                }
                if let (Some(capture), Some(ended)) = (&mut record.capture, report.capture) {
                    capture.problem = match ended {
                        Err(error) => Some(error.to_string()),
                        Ok(0) => None,
                        Ok(left_out) => Some(format!("{left_out} packets are left out, beyond its greatest size")),
                    };
                }
            }
        }
        record
    }
}

fn mean_wait_ms(from: CoreWait, to: CoreWait) -> Option<f64> {
    let turns = to.turns.checked_sub(from.turns).filter(|turns| *turns > 0)?;
    Some(to.waited_ns.saturating_sub(from.waited_ns) as f64 / 1e6 / turns as f64)
}
