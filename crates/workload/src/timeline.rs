//! When the phases of a run begin, and what is due when.

use crate::check::Schedule;
use crate::pacing::Pacing;
use crate::plan::{Phase, Plan};
use crate::roles::Roles;
use crate::traffic::Traffic;
use pushlab_wire::stamp::RESOLUTION_NS;

const MS: u64 = 1_000_000;

/// When the phases begin; known when everybody is connected. All instants are multiples of 100 ns, the
/// resolution of stamps, so that a stamp's phase is exact.
#[derive(Debug, Clone, PartialEq)]
pub struct Timeline {
    /// Idle phase.
    pub idle_ns: u64,
    /// Warm-up.
    pub warm_up_ns: u64,
    /// Load.
    pub load_ns: u64,
    /// Load ends, drain begins.
    pub load_end_ns: u64,
    /// What is published; `None` for an idle run.
    pub schedule: Option<Schedule>,
    /// What clients publish beside a feed, and nobody receives.
    pub upstream: Option<Schedule>,
    /// When clients that poll at an interval poll; `None`: as they did from the start.
    pub polls: Option<Pacing>,
}

impl Timeline {
    /// Of a run whose idle phase begins at an instant.
    pub fn of(plan: &Plan, roles: &Roles, idle_ns: u64) -> Self {
        let idle_ns = idle_ns.next_multiple_of(RESOLUTION_NS);
        let warm_up_ns = idle_ns + plan.phases.idle_ms * MS;
        let load_ns = warm_up_ns + plan.phases.warm_up_ms * MS;
        let load_end_ns = load_ns + plan.phases.load_ms * MS;
        let open = |pacing: Pacing| Schedule::Open { load_from: pacing.first_at(load_ns), pacing };
        let share = || roles.warp.clone().map(|warp| (warm_up_ns, warp));
        let closed = || roles.is_closed_loop().then(|| Schedule::Closed { load_ns, load_end_ns, share: share() });
        let pacing = roles.pacing(plan, warm_up_ns);
        let polls = |start_ns| Pacing::endless(start_ns, plan.poll_interval_ms * MS, plan.clients);
        let after = plan.poll_after_publication_ns().zip(pacing.as_ref());
        let in_step = after.map(|(after_ns, pacing)| polls(pacing.start_ns + after_ns).begun_by(idle_ns));
        // In their turns, like publications.
        let in_turns = || plan.turns.map(|_| Pacing { warp: roles.warp.clone(), ..polls(warm_up_ns) });
        let polls = in_step.or_else(in_turns);
        let schedule = pacing.map(open).or_else(closed);
        let upstream = roles.upstream(plan, warm_up_ns).map(open);
        Self { idle_ns, warm_up_ns, load_ns, load_end_ns, schedule, upstream, polls }
    }

    /// What clients of this traffic publish on a schedule, and the first of it that is the load phase's.
    pub fn sent(&self, traffic: Traffic) -> Option<(&Pacing, u64)> {
        let schedule = match traffic {
            Traffic::Paced(_) => &self.schedule,
            Traffic::Upstream => &self.upstream,
            Traffic::Silent | Traffic::ClosedLoop | Traffic::Broadcasts => return None,
        };
        let Some(Schedule::Open { pacing, load_from }) = schedule else { return None };
        Some((pacing, *load_from))
    }

    /// The phases that begin at instants known beforehand, in order.
    pub fn phases(&self) -> [(Phase, u64); 4] {
        [
            (Phase::Idle, self.idle_ns),
            (Phase::WarmUp, self.warm_up_ns),
            (Phase::Load, self.load_ns),
            (Phase::Drain, self.load_end_ns),
        ]
    }

    /// Publications of the load phase; 0 in a closed loop, where nobody knows beforehand.
    pub fn load_count(&self) -> u64 {
        self.schedule.as_ref().map_or(0, Schedule::load_count)
    }

    /// Deliveries that the load phase is to make; `None` in a closed loop.
    pub fn load_deliveries(&self, roles: &Roles) -> Option<u64> {
        match (&self.schedule, roles.rooms()) {
            (None, _) => Some(0),
            (Some(Schedule::Closed { .. }), _) => None,
            (Some(Schedule::Open { pacing, load_from }), Some(rooms)) => {
                Some(rooms.deliveries(*load_from..pacing.count, pacing))
            }
            (Some(schedule), None) => Some(schedule.load_count() * roles.receivers),
        }
    }

    /// Deliveries that the first so many publications are to make.
    pub fn deliveries(&self, roles: &Roles, published: u64) -> u64 {
        match (roles.rooms(), &self.schedule) {
            (Some(rooms), Some(Schedule::Open { pacing, .. })) => rooms.deliveries(0..published, pacing),
            _ => published * roles.receivers,
        }
    }

    /// Deliveries that one publication of the load phase is to make.
    pub fn receivers(&self, roles: &Roles, publication: u64) -> u64 {
        match (roles.rooms(), &self.schedule) {
            (Some(rooms), Some(Schedule::Open { pacing, load_from })) => {
                rooms.members(pacing.publisher_of(load_from + publication).0).len() as u64
            }
            _ => roles.receivers,
        }
    }

    /// When load is due from an instant on, warm-up included; `None` if none is any more. A closed loop's is due all
    /// the time, but where nobody is to ask.
    pub fn due_from(&self, instant_ns: u64) -> Option<u64> {
        match self.schedule.as_ref()? {
            Schedule::Open { pacing, .. } => {
                let k = pacing.first_at(instant_ns);
                (k < pacing.count).then(|| pacing.due_ns(k))
            }
            Schedule::Closed { load_end_ns, share, .. } => {
                let due_ns = instant_ns.max(self.warm_up_ns);
                let is_asked =
                    share.as_ref().is_none_or(|(from_ns, warp)| warp.factor_at(due_ns.saturating_sub(*from_ns)) > 0.0);
                (due_ns < *load_end_ns && is_asked).then_some(due_ns)
            }
        }
    }
}
