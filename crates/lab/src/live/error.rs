//! Why live figures are not shown.

use std::io;
use std::net::SocketAddr;

/// Why the figures cannot be shown.
#[derive(Debug, thiserror::Error)]
pub enum LiveError {
    /// The address is taken or not ours.
    #[error(
        "cannot serve metrics on {address}: {source}; choose another address with --metrics, or port 0 for a free one"
    )]
    Listen {
        /// What was asked for.
        address: SocketAddr,
        /// Why not.
        source: io::Error,
    },
    /// The operating system refused a thread.
    #[error("cannot start the thread that shows live figures: {0}")]
    Thread(#[source] io::Error),
}
