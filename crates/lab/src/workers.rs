//! Where the workers of a campaign's runs are: processes of this machine, or workers that have joined a fleet.

use crate::checks::{CheckError, check_plans};
use crate::topology::Topology;
use pushlab_bus::words::Presence;
use pushlab_bus::{self as bus, Access, Address, BusError, Crew, CrewError, Seats, Watcher};
use pushlab_experiment::Experiment;
use pushlab_fleet::{Fleet, Load};
use pushlab_os::limits;
use pushlab_probe::machine::{MachineFacts, Room};
use pushlab_subjects::fleet::{self, Listener, Processes};
use pushlab_subjects::named::{Named, Server};
use pushlab_watch::agent::Agents;
use pushlab_workload::messages::{LoadError, Message, Order};
use pushlab_workload::plan::Plan;
use std::collections::BTreeSet;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::os::fd::AsRawFd as _;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// Time for enough workers to be there before a run: for one that was lost another may have to come.
const GATHER_WITHIN: Duration = Duration::from_secs(30);
/// Descriptors with which a plan that cannot be run has another reason than too few of them.
const ENOUGH_DESCRIPTORS: u64 = 1 << 20;

/// Where the workers of a campaign's runs are.
#[derive(Clone, Default)]
pub enum Workers {
    /// Each run starts its own on this machine.
    #[default]
    Here,
    /// They have joined a fleet, of which so many are this campaign's.
    Joined(Arc<Joined>),
}

/// Workers of a fleet.
pub struct Joined {
    crew: Arc<Crew>,
    /// How many a run has.
    wanted: usize,
    /// Where they reach a subject that the lab starts.
    subject_address: Ipv4Addr,
}

impl std::fmt::Debug for Workers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Here => f.write_str("Here"),
            Self::Joined(joined) => write!(f, "Joined({})", joined.wanted),
        }
    }
}

/// The listener of a run's back end, and by which descriptor its worker inherits it.
pub enum BackEnd {
    /// The lab's own.
    Here(Listener),
    /// The first worker's.
    There {
        /// Where it listens.
        address: SocketAddr,
        /// Which descriptor it is there.
        descriptor: i32,
    },
}

impl BackEnd {
    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        match self {
            Self::Here(listener) => listener.address,
            Self::There { address, .. } => *address,
        }
    }

    /// The descriptor.
    pub fn descriptor(&self) -> i32 {
        match self {
            Self::Here(listener) => listener.socket.as_raw_fd(),
            Self::There { descriptor, .. } => *descriptor,
        }
    }
}

/// The workers of one run.
pub enum RunWorkers {
    /// Processes of this machine.
    Here(Processes),
    /// On other machines, as far as this one knows.
    Joined(bus::Joined),
}

impl RunWorkers {
    /// Process ids, where they are this machine's.
    pub fn ids(&self) -> Vec<u32> {
        match self {
            Self::Here(processes) => processes.ids(),
            Self::Joined(_) => Vec::new(),
        }
    }

    /// An error of theirs, with the name of the worker that it is about where it has one.
    pub fn told(&self, error: &LoadError) -> String {
        let name = match (self, error) {
            (Self::Joined(joined), LoadError::Silent { worker, .. }) => joined.name(*worker),
            _ => None,
        };
        name.map_or_else(|| error.to_string(), |name| format!("{name}: {error}"))
    }
}

impl Fleet for RunWorkers {
    fn tell(&mut self, worker: usize, order: &Order) {
        match self {
            Self::Here(processes) => processes.tell(worker, order),
            Self::Joined(joined) => joined.tell(worker, order),
        }
    }

    fn hear(&mut self, timeout: Duration) -> Option<(usize, Result<Message, String>)> {
        match self {
            Self::Here(processes) => processes.hear(timeout),
            Self::Joined(joined) => joined.hear(timeout),
        }
    }
}

/// What it takes to begin a run on workers of this machine.
pub struct Local<'a> {
    /// The program.
    pub program: &'a Path,
    /// Their cores.
    pub cores: &'a [usize],
    /// Where they are on the network.
    pub topology: &'a Topology,
}

/// Why a fleet cannot host the load.
#[derive(Debug, thiserror::Error)]
pub enum FleetError {
    /// An experiment that needs one machine.
    #[error("{0}")]
    NotOverAFleet(String),
    /// The workers would reach the subject at an address that it cannot have.
    #[error("the route to the broker does not show where workers reach this machine: say so with --subject-address")]
    NoAddress,
    /// No port at the address of the subject.
    #[error(
        "cannot open a UDP port at {subject_address}, where others ask for the time: {source}; --subject-address must be an address of this machine"
    )]
    Clock {
        /// Where.
        subject_address: Ipv4Addr,
        /// Why.
        source: io::Error,
    },
    /// See there.
    #[error(transparent)]
    Check(#[from] CheckError),
    /// Neither workers nor agents are wanted.
    #[error(
        "the fleet has nothing to do: add --workers N to have it host the load, or start `pushlab agent` beside a server \
         that is measured by its URL (`pushlab fleet list` shows which addresses agents watch)"
    )]
    Nobody,
    /// A server that is to be watched cannot be found.
    #[error("{0}")]
    Server(String),
    /// See there.
    #[error(transparent)]
    Bus(#[from] BusError),
    /// See there.
    #[error(transparent)]
    Crew(#[from] CrewError),
}

impl Workers {
    /// Workers of a fleet, so many for each run; waits until they are there.
    fn of_fleet(
        crew: Arc<Crew>,
        wanted: usize,
        subject_address: Ipv4Addr,
        experiments: &[Experiment],
        watcher: &mut dyn Watcher,
    ) -> Result<Self, FleetError> {
        // What else could be wrong with the plans has been looked at.
        let fits = |presence: &Presence| {
            let Some(seats) = Seats::of(presence) else { return Ok(()) };
            check_plans(experiments, seats, None)
                .map_err(|error| format!("has {} descriptors: {error}", seats.descriptors))
        };
        crew.gather(wanted, GATHER_WITHIN, &fits, watcher)?;
        Ok(Self::Joined(Arc::new(Joined { crew, wanted, subject_address })))
    }

    /// Whether they are this machine's, where they have cores beside the subject's.
    pub fn are_here(&self) -> bool {
        matches!(self, Self::Here)
    }

    /// What they have at their disposal; `cores` are those of the load on this machine.
    pub fn seats(&self, cores: usize) -> Seats {
        match self {
            Self::Here => {
                Seats { cores: u32::try_from(cores).unwrap_or(u32::MAX), descriptors: limits::descriptors().soft }
            }
            Self::Joined(joined) => joined.crew.seats(),
        }
    }

    /// How much of the CPU time that all of a fleet's workers used was used on this machine, s. Those that a run starts here
    /// are watched from outside, like the subject.
    pub fn used_here_s(&self, all_s: f64) -> f64 {
        match self {
            Self::Here => 0.0,
            Self::Joined(joined) => all_s * joined.crew.share_here(),
        }
    }

    /// What room this machine has for them, where they are on it.
    pub fn room(&self) -> Option<Room> {
        self.are_here().then(Room::read)
    }

    /// What machines they are on, by their names; nothing for this one.
    pub fn machines(&self) -> Vec<(String, MachineFacts)> {
        match self {
            Self::Here => Vec::new(),
            Self::Joined(joined) => joined.crew.own().into_iter().map(|own| (own.name, own.machine)).collect(),
        }
    }

    /// Where a subject that the lab starts is to listen, if no network says so.
    pub fn subject_address(&self) -> Ipv4Addr {
        match self {
            Self::Here => Ipv4Addr::LOCALHOST,
            Self::Joined(joined) => joined.subject_address,
        }
    }

    /// Sees to it that as many are there as a run needs.
    ///
    /// # Errors
    /// See [`CrewError`].
    pub fn gather(&self, watcher: &mut dyn Watcher) -> Result<(), CrewError> {
        match self {
            Self::Here => Ok(()),
            Self::Joined(joined) => {
                // Those that a campaign's plans were checked with had no fewer descriptors.
                let least = joined.crew.seats().descriptors;
                let fits = |presence: &Presence| match Seats::of(presence) {
                    // Where none has been taken, there is nothing to compare with.
                    Some(Seats { descriptors, .. }) if least != u64::MAX && descriptors < least => {
                        Err(format!("has {descriptors} descriptors, and the others {least}"))
                    }
                    _ => Ok(()),
                };
                joined.crew.gather(joined.wanted, GATHER_WITHIN, &fits, watcher)
            }
        }
    }

    /// A listener that the subject reaches, for the back end of a run.
    ///
    /// # Errors
    /// As a sentence.
    pub fn listen(&self, run: u64, topology: &Topology) -> Result<BackEnd, String> {
        match self {
            Self::Here => {
                let listener = topology.listen_beside_subject();
                listener.map(BackEnd::Here).map_err(|error| format!("the back end cannot listen: {error}"))
            }
            Self::Joined(joined) => {
                let (address, descriptor) = joined.crew.listen(run)?;
                Ok(BackEnd::There { address, descriptor })
            }
        }
    }

    /// Begins a run of a plan.
    ///
    /// # Errors
    /// As a sentence.
    pub fn begin(
        &self,
        run: u64,
        plan: &Plan,
        local: &Local<'_>,
        back_end: Option<BackEnd>,
    ) -> Result<(Load<RunWorkers>, Plan), String> {
        match self {
            Self::Here => {
                let listener = back_end.and_then(|back_end| match back_end {
                    BackEnd::Here(listener) => Some(listener),
                    BackEnd::There { .. } => None,
                });
                let (load, plan) =
                    fleet::begin(local.program, plan, local.cores, local.topology.load_namespace(), listener)?;
                Ok((load.over(RunWorkers::Here), plan))
            }
            Self::Joined(joined) => {
                let (load, plan) = joined.crew.begin(run, plan)?;
                Ok((load.over(RunWorkers::Joined), plan))
            }
        }
    }
}

/// How a campaign meets the fleet at a broker.
pub struct Meeting<'a> {
    /// The broker.
    pub broker: &'a Address,
    /// How it lets us in.
    pub access: &'a Access,
    /// How many workers are to host the load; without, it stays on this machine.
    pub workers: Option<usize>,
    /// Where workers reach this machine; by default, at the address of the interface towards the broker.
    pub subject_address: Option<Ipv4Addr>,
}

/// Meets a fleet: waits for the workers that are to host the load of these experiments, and for the agents beside their
/// servers.
///
/// # Errors
/// See [`FleetError`].
pub fn meet(
    meeting: &Meeting<'_>,
    experiments: &[Experiment],
    watcher: &mut dyn Watcher,
) -> Result<(Workers, Agents), FleetError> {
    let Meeting { broker, access, workers, subject_address } = *meeting;
    if workers.is_some() {
        if let Some(why) = experiments.iter().find_map(why_not_over_a_fleet) {
            return Err(FleetError::NotOverAFleet(why));
        }
        check_plans(experiments, Seats { cores: 1, descriptors: ENOUGH_DESCRIPTORS }, None)?;
    }
    let own = || match broker.own_ip() {
        Ok(IpAddr::V4(ip)) => Ok(ip),
        Ok(IpAddr::V6(_)) | Err(_) => Err(FleetError::NoAddress),
    };
    let subject_address = subject_address.map_or_else(own, Ok)?;
    let mut crew = Crew::open(broker, access)?;
    crew.tell_time_at(subject_address.into()).map_err(|source| FleetError::Clock { subject_address, source })?;
    let crew = Arc::new(crew);
    let agents = Agents::of_fleet(&crew, &addresses_of_others(experiments)?, watcher)?;
    let workers = match workers {
        Some(wanted) => Workers::of_fleet(crew, wanted, subject_address, experiments, watcher)?,
        None if agents.are_none() => return Err(FleetError::Nobody),
        None => Workers::Here,
    };
    Ok((workers, agents))
}

/// Where servers are that the lab does not start.
fn addresses_of_others(experiments: &[Experiment]) -> Result<BTreeSet<IpAddr>, FleetError> {
    let mut addresses = BTreeSet::new();
    for name in experiments.iter().flat_map(|experiment| &experiment.subjects) {
        if let Server::External(external) = Named::parse(name).map_err(FleetError::Server)?.server {
            addresses.insert(external.target().map_err(FleetError::Server)?.address.ip());
        }
    }
    Ok(addresses)
}

/// Why an experiment cannot be carried out over a fleet, if so.
fn why_not_over_a_fleet(experiment: &Experiment) -> Option<String> {
    let variants = experiment.variants.iter().filter_map(|variant| variant.clients_in);
    let is_in_browser = variants.chain([experiment.clients_in]).any(|clients_in| clients_in.is_browser());
    let why = if !experiment.networks.is_empty() {
        "its networks are emulated between two sides of one machine"
    } else if is_in_browser {
        "its clients live in a browser, whose pages and scripts are on this machine"
    } else if experiment.through.is_some() {
        "the proxy in front of its subject listens on this machine's loopback interface"
    } else if experiment.sockets.tls {
        "the certificate that is made for its subject is a file on this machine"
    } else {
        return None;
    };
    Some(format!("{} cannot run over a fleet, because {why}", experiment.name))
}
