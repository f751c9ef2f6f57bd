//! Waiting for a few descriptors at once, with a timeout in nanoseconds: epoll's are whole milliseconds.

use crate::clock::timespec;
pub use rustix::event::{PollFd, PollFlags};
use std::io;

/// Waits until one of them is ready, or until so many ns have passed; without a timeout, for ever. Returns how many
/// are ready; a signal ends the wait with 0.
///
/// # Errors
/// What ppoll(2) answers; it has no reason to.
pub fn wait(watched: &mut [PollFd<'_>], timeout_ns: Option<u64>) -> io::Result<usize> {
    match rustix::event::poll(watched, timeout_ns.map(timespec).as_ref()) {
        Err(rustix::io::Errno::INTR) => Ok(0),
        ready => Ok(ready?),
    }
}
