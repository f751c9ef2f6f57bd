//! A bell by which one thread wakes another that waits for descriptors: an event counter of the kernel (eventfd(2)).

use rustix::event::{EventfdFlags, eventfd};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// Readable once it was rung. Registered edge-triggered it need not be read.
#[derive(Debug)]
pub struct Bell(OwnedFd);

impl Bell {
    /// One that was not rung yet.
    ///
    /// # Errors
    /// When there is no descriptor left.
    pub fn new() -> io::Result<Self> {
        Ok(Self(eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)?))
    }

    /// Rings it, from any thread.
    pub fn ring(&self) {
        // It fails when the counter is full, after 2⁶⁴ - 2 rings.
        let _ = rustix::io::write(&self.0, &1u64.to_ne_bytes());
    }
}

impl AsFd for Bell {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::poll::{PollFd, PollFlags, wait};

    #[test]
    fn it_is_readable_once_it_was_rung() {
        let bell = Bell::new().unwrap();
        let ready = || wait(&mut [PollFd::new(&bell, PollFlags::IN)], Some(0)).unwrap();
        assert_eq!(ready(), 0);
        std::thread::scope(|scope| _ = scope.spawn(|| bell.ring()));
        assert_eq!(ready(), 1);
    }
}
