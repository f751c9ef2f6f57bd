//! Where the two sides of a run are: on the loopback interface, or in network namespaces at the ends of a link.

use pushlab_experiment::Experiment;
use pushlab_link::capture::CaptureConfig;
use pushlab_link::namespace::Namespace;
use pushlab_link::network::{CLIENTS, CaptureFile, INSTRUMENTS, Network, NetworkConfig, SUBJECT};
use pushlab_link::profile::Profile;
use pushlab_record::PlannedRun;
use pushlab_subjects::certificate::Certificate;
use pushlab_subjects::fleet::Listener;
use pushlab_workload::plan::{CLIENTS_PER_SOURCE, Sources};
use std::io;
use std::net::{IpAddr, Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};

/// The link between the sides of a run.
pub struct Link {
    /// Its namespaces and what carries packets between them.
    pub network: Network,
    /// What it is like.
    pub profile: Profile,
    /// Where every packet is kept.
    pub capture: Option<PathBuf>,
}

/// The topology of one run; its namespaces, link and certificate are gone when it is dropped.
pub struct Topology {
    link: Option<Link>,
    certificate: Option<Certificate>,
    /// Where the subject is to listen where there is no link.
    host: Ipv4Addr,
}

impl Topology {
    /// Makes what the run's cell asks for. The link's thread runs on the given cores; without a link the subject is to
    /// listen at `host`. Files of the run begin with `prefix`.
    pub fn make(
        planned: &PlannedRun,
        experiment: &Experiment,
        cores: &[usize],
        host: Ipv4Addr,
        prefix: &Path,
        capture: Option<PathBuf>,
    ) -> Result<Self, String> {
        let link = match &planned.cell.network {
            None => None,
            Some(name) => {
                let profile = experiment.network(name).ok_or_else(|| format!("network {name:?} is not known"))?;
                let application = format!("pushlab {}", env!("CARGO_PKG_VERSION"));
                let config = NetworkConfig {
                    profile: profile.clone(),
                    seed: planned.seed,
                    cores: Some(cores.to_vec()),
                    ack_delay_ms: experiment.sockets.ack_delay_ms,
                    capture: capture.clone().map(|path| CaptureFile {
                        path,
                        config: CaptureConfig { application, ..CaptureConfig::default() },
                    }),
                };
                let network = Network::start(config).map_err(|error| error.to_string())?;
                Some(Link { network, profile, capture })
            }
        };
        let mut topology = Self { link, certificate: None, host };
        if experiment.sockets.tls {
            let made = Certificate::make(IpAddr::V4(topology.subject_address()), prefix);
            topology.certificate = Some(made.map_err(|error| error.to_string())?);
        }
        Ok(topology)
    }

    /// The network, if there is one.
    pub fn network(&self) -> Option<&Network> {
        self.link.as_ref().map(|link| &link.network)
    }

    /// Hands the link over for its last figures.
    pub fn take_link(&mut self) -> Option<Link> {
        self.link.take()
    }

    /// The certificate, if the subject speaks TLS.
    pub fn certificate(&self) -> Option<&Certificate> {
        self.certificate.as_ref()
    }

    /// Where the subject is to listen.
    pub fn subject_address(&self) -> Ipv4Addr {
        if self.link.is_some() { SUBJECT } else { self.host }
    }

    /// From where the clients connect.
    pub fn sources(&self) -> Sources {
        match self.network() {
            Some(_) => Sources::From { first: CLIENTS, clients_each: CLIENTS_PER_SOURCE },
            None => Sources::Usual,
        }
    }

    /// From where the generator's instruments connect, if that matters.
    pub fn instruments_from(&self) -> Option<Ipv4Addr> {
        self.network().map(|_| INSTRUMENTS)
    }

    /// The subject's namespace, if it is not this process's own.
    pub fn subject_namespace(&self) -> Option<&Namespace> {
        self.network().map(Network::subject)
    }

    /// The load's namespace, if it is not this process's own.
    pub fn load_namespace(&self) -> Option<&Namespace> {
        self.network().map(Network::load)
    }

    /// Does something beside the subject: its sockets are then in the subject's namespace.
    pub fn beside_subject<T: Send>(&self, work: impl FnOnce() -> T + Send) -> io::Result<T> {
        match self.subject_namespace() {
            None => Ok(work()),
            Some(namespace) => namespace.in_it(work).map_err(io::Error::other),
        }
    }

    /// A listener that the subject reaches past the link.
    pub fn listen_beside_subject(&self) -> io::Result<Listener> {
        let socket = self.beside_subject(|| TcpListener::bind((Ipv4Addr::LOCALHOST, 0)))??;
        Ok(Listener { address: socket.local_addr()?, socket })
    }
}
