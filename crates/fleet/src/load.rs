//! A fleet: the workers of a run, wherever they are, and the coordinator that leads them through it.

use pushlab_os::clock::monotonic_ns;
use pushlab_os::limits;
use pushlab_workload::coordination::{Coordinator, Output};
use pushlab_workload::messages::{Message, Order, RunEvent};
use pushlab_workload::plan::Plan;
use pushlab_workload::plan_checks::BadPlan;
use pushlab_workload::roles::Roles;
use pushlab_workload::segment::Segment;
use std::time::Duration;

/// Messages that are taken at once; there are a few of each worker a second.
const MESSAGES_MAX: usize = 1_000;

/// Workers that can be told something and heard.
pub trait Fleet {
    /// Tells a worker. One that cannot be told is gone, which [`Self::hear`] says.
    fn tell(&mut self, worker: usize, order: &Order);

    /// What some worker says next, or why it is gone; `None` when none says anything in time.
    fn hear(&mut self, timeout: Duration) -> Option<(usize, Result<Message, String>)>;

    /// Whether they may be on other machines, where an order takes longer to come.
    fn is_far_away(&self) -> bool {
        false
    }
}

/// A plan, divided among workers.
#[derive(Debug)]
pub struct Division {
    /// The plan, with as many loops and workers as there will be.
    pub plan: Plan,
    roles: Roles,
    segments: Vec<Segment>,
}

impl Division {
    /// Divides a plan among its workers on this machine.
    ///
    /// # Errors
    /// See [`BadPlan`].
    pub fn of(plan: &Plan) -> Result<Self, BadPlan> {
        Self::among(plan, limits::descriptors().soft)
    }

    /// Divides a plan among workers of which each loop may hold so many descriptors.
    ///
    /// # Errors
    /// See [`BadPlan`].
    pub fn among(plan: &Plan, descriptors_max: u64) -> Result<Self, BadPlan> {
        let mut roles = Roles::of(plan, descriptors_max)?;
        // A loop without clients would be of no use.
        let workers = plan.workers.min(plan.clients);
        let segments = Segment::spread(roles.loops.max(workers), workers);
        roles.loops = segments[0].loops_of_all;
        let plan = Plan { loops: roles.loops, workers: segments[0].workers, ..plan.clone() };
        Ok(Self { plan, roles, segments })
    }

    /// The same, whose workers are on these machines, each worker's in its turn; they are on one otherwise.
    pub fn on<M: PartialEq>(mut self, machines: &[M]) -> Self {
        Segment::put_on(&mut self.segments, machines);
        self
    }

    /// How many workers it takes.
    pub fn workers(&self) -> usize {
        self.segments.len()
    }
}

/// A run of a fleet.
#[derive(Debug)]
pub struct Load<F> {
    fleet: F,
    coordinator: Coordinator,
}

impl<F: Fleet> Load<F> {
    /// Begins a run of a fleet of as many workers as the plan was divided among.
    pub fn begin(fleet: F, division: Division) -> Self {
        let Division { plan, roles, segments } = division;
        let coordinator = Coordinator::new(plan, roles, &segments, monotonic_ns());
        let coordinator = if fleet.is_far_away() { coordinator.with_workers_far_away() } else { coordinator };
        Self { fleet, coordinator }
    }

    /// The same run, whose fleet is one of several kinds.
    pub fn over<G: Fleet>(self, of: impl FnOnce(F) -> G) -> Load<G> {
        Load { fleet: of(self.fleet), coordinator: self.coordinator }
    }

    /// The fleet.
    pub fn fleet(&self) -> &F {
        &self.fleet
    }

    /// The fleet, to be changed: the run takes what comes of that as it takes anything else.
    pub fn fleet_mut(&mut self) -> &mut F {
        &mut self.fleet
    }

    /// Begins the idle phase of a run that is ready at an instant, of which its workers have to learn before.
    pub fn begin_at(&mut self, idle_ns: u64) {
        self.coordinator.begin_at(idle_ns);
    }

    /// What happens next in the run; `None` when nothing does in time.
    pub fn listen(&mut self, timeout: Duration) -> Option<RunEvent> {
        let deadline = monotonic_ns() + timeout.as_nanos() as u64;
        loop {
            // All that has come by now, before anything is concluded from what has not.
            for _ in 0..MESSAGES_MAX {
                let Some(heard) = self.fleet.hear(Duration::ZERO) else { break };
                self.take(heard);
            }
            let now = monotonic_ns();
            while let Some(output) = self.coordinator.next(now) {
                match output {
                    Output::Order(worker, order) => self.fleet.tell(worker, &order),
                    Output::Event(event) => return Some(event),
                }
            }
            if now >= deadline {
                return None;
            }
            let wait = Duration::from_nanos(self.coordinator.wake_ns(now).min(deadline).saturating_sub(now));
            if let Some(heard) = self.fleet.hear(wait) {
                self.take(heard);
            }
        }
    }

    fn take(&mut self, heard: (usize, Result<Message, String>)) {
        match heard {
            (worker, Ok(message)) => self.coordinator.heard(worker, message, monotonic_ns()),
            (worker, Err(reason)) => self.coordinator.gone(worker, reason),
        }
    }
}
