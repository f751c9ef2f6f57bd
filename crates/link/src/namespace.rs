//! Network namespaces without a name: each is a descriptor of this process, and goes when the last process that has
//! it goes, however that ends. Nothing is bound in the file system, so nothing is left to be cleaned up.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::process::Command;
use std::sync::Arc;
use std::thread;

use pushlab_os::child::Prepare as _;
use pushlab_os::namespace as os;

use crate::error::LinkError;
use crate::tun;

/// Where the kernel shows the calling thread's own namespace. `/proc/self` would be that of the process's first thread.
const OWN: &str = "/proc/thread-self/ns/net";

/// What is set inside, below `/proc/sys/net`.
///
/// - Ports from 1024: 64,511 connections between two addresses where there would be 28,232.
/// - Connections in TIME_WAIT may be reused: the kernel's default allows that on loopback alone, and clients that
///   connect for every poll would run out of ports through a link only.
/// - What TCP learned of a peer is forgotten with the connection, so that no run is influenced by those before it.
const SETTINGS: [(&str, &str); 3] =
    [("ipv4/ip_local_port_range", "1024 65535"), ("ipv4/tcp_tw_reuse", "1"), ("ipv4/tcp_no_metrics_save", "1")];

/// No IPv6 on interfaces still to be made: the link's would announce themselves with packets nobody asked for.
/// Loopback, which exists already, keeps `::1`.
const NO_IPV6: (&str, &str) = ("ipv6/conf/default/disable_ipv6", "1");

/// Settings that a new namespace has at the kernel's default, and not at what this machine was tuned to.
const COPIED: [&str; 2] = ["core/somaxconn", "ipv4/tcp_max_syn_backlog"];

/// A network namespace of its own, with loopback up.
///
/// ```no_run
/// # fn main() -> Result<(), pushlab_link::error::LinkError> {
/// let namespace = pushlab_link::namespace::Namespace::new()?;
/// let listener = namespace.in_it(|| std::net::TcpListener::bind("127.0.0.1:80"))?;
/// let mut server = std::process::Command::new("server");
/// namespace.give_to(&mut server);
/// # Ok(()) }
/// ```
///
/// A socket stays in the namespace it was made in, wherever it is used.
#[derive(Debug, Clone)]
pub struct Namespace {
    file: Arc<File>,
}

impl Namespace {
    /// Makes one. The calling thread stays where it is.
    ///
    /// # Errors
    /// [`LinkError::NamespaceRefused`] without the rights, see [`crate::rights`]; [`LinkError::Setting`] where
    /// `/proc/sys` is read-only.
    pub fn new() -> Result<Self, LinkError> {
        in_a_thread(|| {
            let copied = COPIED.map(|setting| std::fs::read_to_string(path(setting)));
            os::make_network().map_err(|source| LinkError::NamespaceRefused { source })?;
            let file = File::open(OWN).map_err(|source| LinkError::NamespaceRefused { source })?;
            tun::loopback_up()?;
            for (setting, value) in SETTINGS {
                write(setting, value)?;
            }
            // A kernel may be without IPv6, and older ones hide what is copied from a user namespace.
            unless_absent(write(NO_IPV6.0, NO_IPV6.1))?;
            for (setting, value) in COPIED.into_iter().zip(copied) {
                value.map_or(Ok(()), |value| unless_absent(write(setting, value.trim())))?;
            }
            Ok(Self { file: Arc::new(file) })
        })
    }

    /// The namespace as the kernel knows it. Cloning it or holding it open keeps the namespace.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Puts the calling thread into it, for good: meant for a thread of one's own. The namespaces of other threads
    /// stay what they are, those of threads and processes that it starts follow.
    ///
    /// # Errors
    /// [`LinkError::Enter`].
    pub fn enter(&self) -> Result<(), LinkError> {
        os::enter_network(&*self.file).map_err(|source| LinkError::Enter { source })
    }

    /// Runs `work` in a fresh thread inside, and gives back what it returned.
    ///
    /// # Errors
    /// [`LinkError::Enter`], before `work` has begun.
    ///
    /// # Panics
    /// When `work` does.
    pub fn in_it<T: Send>(&self, work: impl FnOnce() -> T + Send) -> Result<T, LinkError> {
        in_a_thread(|| self.enter().map(|()| work()))
    }

    /// Sets one thing below `/proc/sys/net`.
    pub(crate) fn set(&self, setting: &str, value: &str) -> Result<(), LinkError> {
        self.in_it(|| write(setting, value))?
    }

    /// Lets a process that is yet to be started begin inside.
    pub fn give_to(&self, command: &mut Command) {
        command.enter_network(Arc::clone(&self.file));
    }
}

impl AsFd for Namespace {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

fn in_a_thread<T: Send>(work: impl FnOnce() -> Result<T, LinkError> + Send) -> Result<T, LinkError> {
    thread::scope(|scope| {
        let thread = thread::Builder::new()
            .name("namespace".to_owned())
            .spawn_scoped(scope, work)
            .map_err(|source| LinkError::Thread { step: "start", source })?;
        thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

fn path(setting: &str) -> String {
    // The kernel shows each thread the settings of its own namespace here.
    format!("/proc/sys/net/{setting}")
}

fn write(setting: &str, value: &str) -> Result<(), LinkError> {
    std::fs::write(path(setting), value).map_err(|source| LinkError::Setting { path: path(setting), source })
}

fn unless_absent(written: Result<(), LinkError>) -> Result<(), LinkError> {
    match written {
        Err(LinkError::Setting { source, .. }) if source.kind() == io::ErrorKind::NotFound => Ok(()),
        written => written,
    }
}
