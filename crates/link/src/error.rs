//! Why there is no network.

use std::io;
use std::path::PathBuf;
use thiserror::Error;

use crate::capture::CaptureError;
use crate::profile::BadProfile;

/// Why namespaces or the link between them could not be made or kept.
#[derive(Debug, Error)]
pub enum LinkError {
    /// The kernel was told not to let ordinary users make user namespaces.
    #[error(
        "{setting} is {value}, so only root may make a network namespace here: run as root, or as root `sysctl -w {setting}={wanted}`"
    )]
    UserNamespacesOff {
        /// The setting, as `sysctl` names it.
        setting: &'static str,
        /// Its value.
        value: String,
        /// A value that would do.
        wanted: &'static str,
    },
    /// Nothing that can be read forbids user namespaces, and yet there is none: a container, as a rule.
    #[error(
        "this process may not make a user namespace ({step}: {source}): run as root; a container needs `--privileged`, or a seccomp profile that lets it call unshare and the capabilities NET_ADMIN and SYS_ADMIN"
    )]
    UserNamespaceRefused {
        /// What was tried.
        step: &'static str,
        /// What the kernel said.
        source: io::Error,
    },
    /// A user namespace can only be entered by a process that has not started threads yet.
    #[error("a process with {threads} threads cannot enter a user namespace: do it before the first thread is started")]
    Threads {
        /// How many there are.
        threads: usize,
    },
    /// A network namespace was refused.
    #[error(
        "cannot make a network namespace: {source}; it takes the capabilities SYS_ADMIN and NET_ADMIN (run as root, or let user namespaces be), and user.max_net_namespaces above the number there are"
    )]
    NamespaceRefused {
        /// What the kernel said.
        source: io::Error,
    },
    /// A thread could not enter a namespace.
    #[error("cannot enter the network namespace: {source}; it takes the capability SYS_ADMIN over it")]
    Enter {
        /// What the kernel said.
        source: io::Error,
    },
    /// A setting of a namespace could not be written.
    #[error("cannot write {path}: {source}; a container that mounts /proc/sys read-only needs `--privileged`")]
    Setting {
        /// The file of /proc.
        path: String,
        /// What the kernel said.
        source: io::Error,
    },
    /// There is no TUN device.
    #[error("there is no /dev/net/tun: as root `modprobe tun`; a container needs `--device /dev/net/tun`")]
    TunMissing,
    /// The TUN device is closed to this user.
    #[error(
        "/dev/net/tun cannot be opened by this user: as root `chmod 666 /dev/net/tun`, which gives nobody a right over the machine's own network, or run as root"
    )]
    TunForbidden,
    /// An interface could not be made or set up.
    #[error(
        "cannot set up the interface {interface} ({step}: {source}); it takes the capability NET_ADMIN over its namespace"
    )]
    Interface {
        /// Its name.
        interface: &'static str,
        /// What was tried.
        step: &'static str,
        /// What the kernel said.
        source: io::Error,
    },
    /// The link's thread could not be started, or not on the cores it was to have.
    #[error("cannot start the link's thread ({step}: {source}); are there such cores?")]
    Thread {
        /// What was tried.
        step: &'static str,
        /// What the kernel said.
        source: io::Error,
    },
    /// A packet could not be read or written: from then on the link was dead.
    #[error("the link broke: {step}: {source}")]
    Broken {
        /// What was tried.
        step: &'static str,
        /// What the kernel said.
        source: io::Error,
    },
    /// The profile has numbers that no network can have.
    #[error("the network cannot be: {0}")]
    Profile(#[from] BadProfile),
    /// The capture is missing or not whole. The link itself was not disturbed.
    #[error("{}: {source}", path.display())]
    Capture {
        /// The file.
        path: PathBuf,
        /// What the kernel said.
        source: CaptureError,
    },
}
