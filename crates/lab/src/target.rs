//! What is measured, and what can be seen of it from outside.
//!
//! Clients measure every target alike. What else there is depends on what it is: of a process that the lab started its
//! CPU time, memory and sockets, and its own counters if it is ours; of a server known by a URL the same if there is an
//! agent beside it, and else nothing. Figures that follow from what is not seen are absent, and the record says why.

use crate::planned::plan_of;
use crate::topology::Topology;
use crate::workplace::Workplace;
use pushlab_experiment::Experiment;
use pushlab_os::limits;
use pushlab_probe::Sampler;
use pushlab_probe::runtime_log::RuntimeLog;
use pushlab_record::PlannedRun;
use pushlab_subjects::install::Cache;
use pushlab_subjects::named::{Named, Server};
use pushlab_subjects::proxy::Proxy;
use pushlab_subjects::running::{self, ForeignStart, Subject};
use pushlab_watch::agent::{Agent, FromBeside};
use pushlab_watch::{CounterReader, CounterWatch, LatestUsage, Phases, SAMPLE_INTERVAL, Watched, sample};
use pushlab_workload::phase::Periodic;
use pushlab_workload::plan::{self, TlsTarget, Trust};
use pushlab_workload::roles::Roles;
use pushlab_workload::scenario::{Outage, Scenario};
use std::fs::DirBuilder;
use std::io::ErrorKind;
use std::mem;
use std::net::SocketAddr;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::PathBuf;
use std::time::Duration;

/// Time between two readings of the server's counters. Each costs the server a request, which shows where it has
/// little to do, so that long runs are read less often.
const COUNTER_INTERVAL: Duration = Duration::from_millis(250);
/// The same for a load phase of at least [`LONG_LOAD_MS`], and for silent clients.
const LONG_COUNTER_INTERVAL: Duration = Duration::from_secs(2);
/// What counts as long, ms.
const LONG_LOAD_MS: u64 = 60_000;

/// Why nothing but its clients tells of a server that the lab did not start.
const EXTERNAL: &str = "CPU, memory, sockets and its own counters cannot be read from here: the lab did not start it, and no \
fleet agent runs beside it (docs/fleet.md)";
/// The same while there is no server.
const ENDED: &str = "the lab has ended it, and not started it again";

/// What a run starts its server from, once or more often.
#[derive(Clone, Copy)]
pub struct Launch<'a> {
    /// What the cell names.
    pub named: &'a Named,
    /// The run.
    pub planned: &'a PlannedRun,
    /// The experiment as it is for the run's cell.
    pub experiment: &'a Experiment,
    /// Where the run happens.
    pub place: &'a Workplace,
    /// Where both sides are.
    pub topology: &'a Topology,
}

impl Launch<'_> {
    /// What the names of the run's files begin with.
    fn prefix(&self) -> PathBuf {
        self.place.logs.join(format!("{:05}", self.planned.order))
    }

    /// Where two processes of the server meet for a handover: in a folder that belongs to this user alone.
    fn meeting(&self) -> Result<PathBuf, String> {
        let folder = self.place.logs.join("handover");
        match DirBuilder::new().mode(0o700).create(&folder) {
            Err(error) if error.kind() != ErrorKind::AlreadyExists => {
                Err(format!("cannot make {}: {error}", folder.display()))
            }
            _ => Ok(folder.join(format!("{:05}", self.planned.order))),
        }
    }

    /// Starts the server, at a port if one is named.
    fn subject(&self, port: Option<u16>, feed: Option<(SocketAddr, &str)>, log: PathBuf) -> Result<Subject, String> {
        let Self { named, planned, experiment, place, topology } = *self;
        let (host, namespace) = (topology.subject_address(), topology.subject_namespace());
        let cores = &place.pinning.subject;
        let certificate = topology.certificate().map(|made| (made.certificate.as_path(), made.key.as_path()));
        let handover = (outage_of(experiment) == Outage::Takeover).then(|| self.meeting()).transpose()?;
        let started = match &named.server {
            Server::Ours(program) => Subject::start(running::Start {
                program: &place.builds.to_start(program.as_ref().unwrap_or(&place.program), &experiment.subjects),
                experiment,
                cell: &planned.cell,
                host,
                port,
                handover: handover.as_deref(),
                namespace,
                // The proxy speaks TLS instead.
                certificate: certificate.filter(|_| experiment.through.is_none()),
                feed,
                cores,
                loops: loops(planned, experiment)?,
                log,
            }),
            Server::Catalogued(entry, _) => {
                let installed = Cache::of_user().find(*entry).map_err(|error| error.to_string())?;
                let mut environment: Vec<_> = experiment.environment.clone().into_iter().collect();
                // A proxy terminates TLS, as for ours.
                if let Some((chain, key)) = certificate.filter(|_| experiment.through.is_none()) {
                    for (name, path) in [("TLS_CERTIFICATE", chain), ("TLS_KEY", key)] {
                        // It runs in a folder of its own.
                        let path = std::path::absolute(path).map_err(|error| error.to_string())?;
                        environment.push((name.to_owned(), path.display().to_string()));
                    }
                }
                // Pages come from the worker, which is another origin than the subject's.
                let is_browser = experiment.clients_in.is_browser();
                environment.extend(is_browser.then(|| (running::CROSS_ORIGIN.to_owned(), "true".to_owned())));
                Subject::start_foreign(ForeignStart {
                    manifest: &entry.manifest,
                    installed: &installed,
                    host,
                    port,
                    namespace,
                    feed,
                    compression_from: experiment.compression_from,
                    logs_collections: experiment.collections,
                    environment: &environment,
                    cores,
                    log,
                })
            }
            Server::External(external) => return Err(format!("the lab cannot start {}", external.url)),
        };
        started.map_err(|error| error.to_string())
    }
}

/// What cuts off the clients of an experiment's storm; the load, where there is none.
pub(crate) fn outage_of(experiment: &Experiment) -> Outage {
    match experiment.scenario {
        Scenario::Storm { outage, .. } => outage,
        _ => Outage::Cut,
    }
}

/// What is measured in one run.
pub struct Target {
    /// How clients reach it.
    pub reached: plan::Target,
    /// Its command line, or its URL.
    pub command: Vec<String>,
    /// Where it listens itself.
    own: SocketAddr,
    /// What stands in front of it.
    proxy: Option<Proxy>,
    seen: Seen,
    /// The process from which another has taken over: it ends by itself, or with the run.
    replaced: Option<Box<Subject>>,
    /// What the runtimes of its earlier processes have told.
    told: RuntimeLog,
}

/// What can be seen of it from outside.
enum Seen {
    /// A process that the lab started.
    Process {
        subject: Box<Subject>,
        /// Whether it has counters that we know.
        is_ours: bool,
    },
    /// What an agent beside it tells.
    Beside {
        agent: Box<Agent>,
        /// Whether it has counters that we know.
        is_ours: bool,
    },
    /// Nothing, and why.
    Nothing(&'static str),
}

impl Target {
    /// Starts what a run's cell asks for, or finds where it is.
    ///
    /// # Errors
    /// As a sentence.
    pub fn start(launch: Launch<'_>, feed: Option<(SocketAddr, &str)>) -> Result<Self, String> {
        let Launch { named, experiment, place, topology, .. } = launch;
        let log = launch.prefix().with_extension("subject.log");
        let folder = log.with_extension("proxy");
        let (replaced, told) = (None, RuntimeLog::default());
        let subject = match &named.server {
            Server::External(external) => {
                let (reached, command) = (external.target()?, vec![external.url.clone()]);
                let own = reached.address;
                let seen = match place.agents.beside(own.ip()) {
                    Some(agent) => Seen::Beside { agent: Box::new(agent), is_ours: external.speaks.is_none() },
                    None => Seen::Nothing(EXTERNAL),
                };
                return Ok(Self { reached, command, own, proxy: None, seen, replaced, told });
            }
            _ => launch.subject(None, feed, log)?,
        };
        let certificate = topology.certificate().map(|made| (made.certificate.as_path(), made.key.as_path()));
        let start = |kind| Proxy::start(kind, subject.address, certificate, &folder, &place.pinning.load);
        let proxy = experiment.through.map(start).transpose()?;
        let reached = proxy.as_ref().map_or(subject.address, |proxy| proxy.address);
        let tls = topology.certificate().map(|certificate| TlsTarget {
            server_name: reached.ip().to_string(),
            trust: Trust::Certificate(certificate.text.clone()),
        });
        Ok(Self {
            reached: plan::Target { tls, ..plan::Target::plain(reached) },
            command: subject.command.clone(),
            own: subject.address,
            proxy,
            seen: Seen::Process { subject: Box::new(subject), is_ours: named.is_ours() },
            replaced,
            told,
        })
    }

    /// Starts the server again at its address: after it has ended as its storm wants it, or so that it takes over.
    ///
    /// # Errors
    /// As a sentence, when it does not come back; then there is none any more.
    pub fn start_again(&mut self, launch: Launch<'_>) -> Result<(), String> {
        let Seen::Process { subject, is_ours } = mem::replace(&mut self.seen, Seen::Nothing(ENDED)) else {
            return Err(format!("the lab cannot start {} again", self.reached.authority));
        };
        self.told.extend(subject.runtime_log());
        let outage = outage_of(launch.experiment);
        match outage {
            Outage::Restart => subject.stop(),
            Outage::Kill | Outage::Cut => drop(subject),
            Outage::Takeover => self.replaced = Some(subject),
        }
        let log = launch.prefix().with_extension("subject-again.log");
        let again = launch.subject(Some(self.own.port()), None, log);
        let subject = again.map_err(|error| format!("after {}: {error}", outage.title())).map(Box::new)?;
        self.seen = Seen::Process { subject, is_ours };
        Ok(())
    }

    /// Its process; `None` where there is none to be seen.
    pub fn process(&self) -> Option<u32> {
        match &self.seen {
            Seen::Process { subject, .. } => Some(subject.id()),
            Seen::Beside { .. } | Seen::Nothing(_) => None,
        }
    }

    /// Why nothing but its clients tells of it.
    pub fn unobserved(&self) -> Option<&'static str> {
        match &self.seen {
            Seen::Process { .. } | Seen::Beside { .. } => None,
            Seen::Nothing(why) => Some(why),
        }
    }

    /// Has its processes sampled from now on, where they can be seen: from here, or by an agent.
    ///
    /// # Errors
    /// As a sentence.
    pub fn watch(
        &mut self,
        topology: &Topology,
        used: &LatestUsage,
        phases: Phases,
    ) -> Result<Option<Sampler>, String> {
        if let Seen::Beside { agent, .. } = &mut self.seen {
            agent.begin(&self.reached, used, phases)?;
        }
        let Some(process) = self.process() else { return Ok(None) };
        let (port, what, used) = (self.own.port(), Periodic::SubjectSamples, used.clone());
        let delay = phases.delay(what, SAMPLE_INTERVAL);
        topology
            .beside_subject(|| {
                let watched = Watched { pids: &[process], ports: vec![port], what, delay, are_told_only: false };
                sample(watched, move |sample| used.note(sample))
            })
            .map_err(|error| format!("cannot enter the subject's network namespace: {error}"))?
            .map(Some)
    }

    /// Has its counters read from now on, where it has any that we know: from here, or by an agent.
    ///
    /// # Errors
    /// As a sentence.
    pub fn watch_counters(
        &self,
        topology: &Topology,
        experiment: &Experiment,
        phases: Phases,
    ) -> Result<Option<CounterWatch>, String> {
        let interval = counter_interval(experiment);
        match &self.seen {
            Seen::Process { is_ours: true, .. } => {}
            Seen::Beside { agent, is_ours: true } => {
                agent.count(interval, phases);
                return Ok(None);
            }
            Seen::Process { .. } | Seen::Beside { .. } | Seen::Nothing(_) => return Ok(None),
        }
        // The proxy speaks TLS instead.
        let tls = self.reached.tls.clone().filter(|_| self.proxy.is_none());
        let itself = plan::Target { tls, ..plan::Target::plain(self.own) };
        let reader = CounterReader::new(&itself, topology.subject_namespace().cloned());
        let reader = reader.map_err(|error| error.to_string())?;
        Ok(Some(CounterWatch::start(reader, interval, phases.delay(Periodic::Counters, interval))))
    }

    /// A phase begins, of which an agent reads the beginning at its machine.
    pub fn phase(&self, phase: plan::Phase) {
        if let Seen::Beside { agent, .. } = &self.seen {
            agent.phase(phase);
        }
    }

    /// Whether it is for an agent to see it.
    pub fn has_agent(&self) -> bool {
        matches!(self.seen, Seen::Beside { .. })
    }

    /// Why an agent does not see it any more, if so.
    pub fn blindness(&self) -> Option<String> {
        match &self.seen {
            Seen::Beside { agent, .. } => agent.failure(),
            Seen::Process { .. } | Seen::Nothing(_) => None,
        }
    }

    /// What an agent saw of it, if one watched.
    ///
    /// # Errors
    /// As a sentence, when it did not tell all of it.
    pub fn seen_from_beside(&mut self) -> Option<Result<FromBeside, String>> {
        match &mut self.seen {
            Seen::Beside { agent, .. } => agent.finish(),
            Seen::Process { .. } | Seen::Nothing(_) => None,
        }
    }

    /// What its runtime has told of itself since this was asked last.
    pub fn runtime_log(&mut self) -> RuntimeLog {
        let mut told = mem::take(&mut self.told);
        match &self.seen {
            Seen::Process { subject, .. } => told.extend(subject.runtime_log()),
            Seen::Beside { .. } | Seen::Nothing(_) => {}
        }
        told
    }

    /// Why it is not there any more, if that can be seen and it is not.
    pub fn death(&mut self) -> Option<String> {
        match &mut self.seen {
            Seen::Process { subject, .. } => subject.death(),
            Seen::Beside { agent, .. } => agent.death(),
            Seen::Nothing(_) => None,
        }
    }

    /// Ends what the lab started: one that is dropped instead is killed.
    pub fn stop(self) {
        if let Some(proxy) = self.proxy {
            proxy.stop();
        }
        let subject = match self.seen {
            Seen::Process { subject, .. } => Some(subject),
            Seen::Beside { .. } | Seen::Nothing(_) => None,
        };
        self.replaced.into_iter().chain(subject).for_each(|subject| subject.stop());
    }
}

/// Event loops that our server needs: one for each of its cores, and more where the clients of a run need more
/// descriptors.
pub(crate) fn loops(planned: &PlannedRun, experiment: &Experiment) -> Result<u32, String> {
    let plan = plan_of(planned, experiment, 1)?;
    let limit = limits::descriptors().soft;
    let roles = Roles::of(&plan, limit).map_err(|error| error.to_string())?;
    Ok(roles.loops_of_server(&plan, limit).max(experiment.subject_cores))
}

/// How often the counters are read.
fn counter_interval(experiment: &Experiment) -> Duration {
    let is_quiet = experiment.phases.load_ms >= LONG_LOAD_MS || experiment.scenario == Scenario::Idle;
    if is_quiet { LONG_COUNTER_INTERVAL } else { COUNTER_INTERVAL }
}
