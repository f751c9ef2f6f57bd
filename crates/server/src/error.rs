//! Why a server does not run.

use pushlab_engine::NoUring;
use pushlab_handover::HandoverError;
use pushlab_tls::certificate::TlsError;
use std::io;
use std::net::SocketAddr;

/// What keeps a server from running.
#[derive(Debug, thiserror::Error)]
pub enum ServerError {
    /// The address is taken or not ours.
    #[error("cannot listen on {address}: {source}; choose another address with --listen, or port 0 for a free one")]
    Listen {
        /// What was asked for.
        address: SocketAddr,
        /// Why not.
        source: io::Error,
    },
    /// The certificate or its key cannot be used.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// io_uring was asked for but cannot be used.
    #[error(transparent)]
    Uring(#[from] NoUring),
    /// The operating system refused something else.
    #[error("cannot start an event loop or a thread beside it: {0}")]
    Loop(#[source] io::Error),
    /// A server that runs did not hand over, or this one could not hand over to the next.
    #[error("--handover: {0}; a server that runs there goes on")]
    Handover(#[from] HandoverError),
    /// There are no random bytes for the epoch.
    #[error("cannot get random bytes from the operating system: {0}; a sandbox may be blocking getrandom(2)")]
    Random(#[source] io::Error),
    /// An event loop ended on an error or a panic.
    #[error("an event loop failed: {0}")]
    Failed(String),
}
