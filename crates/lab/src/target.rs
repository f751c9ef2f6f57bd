//! What is measured, and what can be seen of it from outside.
//!
//! Clients measure every target alike. What else there is depends on what it is: of a process that the lab started its
//! CPU time, memory and sockets, and its own counters if it is ours; of a server known by a URL nothing. Figures that
//! follow from what is not seen are absent, and the record says why.

use crate::counter_reader::CounterReader;
use crate::planned::plan_of;
use crate::probes::{CounterWatch, LatestUsage, Phases, Watched, counter_interval, sample};
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
use pushlab_workload::phase::Periodic;
use pushlab_workload::plan::{self, TlsTarget, Trust};
use pushlab_workload::roles::Roles;
use std::net::SocketAddr;
use std::path::PathBuf;

/// Why nothing but its clients tells of a server that the lab did not start.
const EXTERNAL: &str = "CPU, memory, sockets and its own counters cannot be read from here: the lab did not start it";

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
}

/// What can be seen of it from outside.
enum Seen {
    /// A process that the lab started.
    Process {
        subject: Box<Subject>,
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
    pub fn start(
        named: &Named,
        planned: &PlannedRun,
        experiment: &Experiment,
        place: &Workplace,
        topology: &Topology,
        feed: Option<(SocketAddr, &str)>,
        log: PathBuf,
    ) -> Result<Self, String> {
        let cores = &place.pinning.subject;
        let certificate = topology.certificate().map(|made| (made.certificate.as_path(), made.key.as_path()));
        let folder = log.with_extension("proxy");
        let started = match &named.server {
            Server::Ours(program) => Subject::start(running::Start {
                program: &place.builds.to_start(program.as_ref().unwrap_or(&place.program), experiment),
                experiment,
                cell: &planned.cell,
                host: topology.subject_address(),
                namespace: topology.subject_namespace(),
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
                // Pages come from the worker, which is another origin than the subject's.
                let is_browser = experiment.clients_in.is_browser();
                environment.extend(is_browser.then(|| (running::CROSS_ORIGIN.to_owned(), "true".to_owned())));
                Subject::start_foreign(ForeignStart {
                    manifest: &entry.manifest,
                    installed: &installed,
                    host: topology.subject_address(),
                    namespace: topology.subject_namespace(),
                    feed,
                    compression_from: experiment.compression_from,
                    logs_collections: experiment.collections,
                    environment: &environment,
                    cores,
                    log,
                })
            }
            Server::External(external) => {
                let (reached, command) = (external.target()?, vec![external.url.clone()]);
                let (own, seen) = (reached.address, Seen::Nothing(EXTERNAL));
                return Ok(Self { reached, command, own, proxy: None, seen });
            }
        };
        let subject = started.map_err(|error| error.to_string())?;
        let start = |kind| Proxy::start(kind, subject.address, certificate, &folder, &place.pinning.load);
        let proxy = experiment.through.map(start).transpose()?;
        let reached = proxy.as_ref().map_or(subject.address, |proxy| proxy.address);
        let tls = topology.certificate().map(|certificate| TlsTarget {
            server_name: reached.ip().to_string(),
            trust: Trust::Certificate(certificate.certificate.clone()),
        });
        Ok(Self {
            reached: plan::Target { tls, ..plan::Target::plain(reached) },
            command: subject.command.clone(),
            own: subject.address,
            proxy,
            seen: Seen::Process { subject: Box::new(subject), is_ours: named.is_ours() },
        })
    }

    /// Its process; `None` where there is none to be seen.
    pub fn process(&self) -> Option<u32> {
        match &self.seen {
            Seen::Process { subject, .. } => Some(subject.id()),
            Seen::Nothing(_) => None,
        }
    }

    /// Why nothing but its clients tells of it.
    pub fn unobserved(&self) -> Option<&'static str> {
        match &self.seen {
            Seen::Process { .. } => None,
            Seen::Nothing(why) => Some(why),
        }
    }

    /// Samples its processes from now on, where they can be seen.
    ///
    /// # Errors
    /// As a sentence.
    pub fn watch(&self, topology: &Topology, used: &LatestUsage, phases: Phases) -> Result<Option<Sampler>, String> {
        let Some(process) = self.process() else { return Ok(None) };
        let port = self.own.port();
        topology
            .beside_subject(|| {
                let watched = Watched { pids: &[process], ports: vec![port], what: Periodic::SubjectSamples };
                sample(watched, used, phases)
            })
            .map_err(|error| format!("cannot enter the subject's network namespace: {error}"))?
            .map(Some)
    }

    /// Reads its counters from now on, where it has any that we know.
    ///
    /// # Errors
    /// As a sentence.
    pub fn watch_counters(
        &self,
        topology: &Topology,
        experiment: &Experiment,
        phases: Phases,
    ) -> Result<Option<CounterWatch>, String> {
        if !matches!(self.seen, Seen::Process { is_ours: true, .. }) {
            return Ok(None);
        }
        let certificate = topology.certificate().filter(|_| self.proxy.is_none());
        let reader = CounterReader::new(self.own, topology, certificate).map_err(|error| error.to_string())?;
        Ok(Some(CounterWatch::start(reader, counter_interval(experiment), phases)))
    }

    /// What its runtime has told of itself since this was asked last.
    pub fn runtime_log(&self) -> RuntimeLog {
        match &self.seen {
            Seen::Process { subject, .. } => subject.runtime_log(),
            Seen::Nothing(_) => RuntimeLog::default(),
        }
    }

    /// Why it is not there any more, if that can be seen and it is not.
    pub fn death(&mut self) -> Option<String> {
        match &mut self.seen {
            Seen::Process { subject, .. } => subject.death(),
            Seen::Nothing(_) => None,
        }
    }

    /// Ends what the lab started: one that is dropped instead is killed.
    pub fn stop(self) {
        if let Some(proxy) = self.proxy {
            proxy.stop();
        }
        if let Seen::Process { subject, .. } = self.seen {
            subject.stop();
        }
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
