//! A timer for absolute instants that wakes an epoll loop: epoll's own timeouts count whole milliseconds.

use crate::clock::{timespec, to_kernel};
use rustix::time::{Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, timerfd_create, timerfd_settime};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};

/// A timer of the kernel on the process's monotonic clock: one that is steered meanwhile may expire as much earlier or
/// later as the steering has changed since.
///
/// To be registered edge-triggered: each expiry wakes the loop once and need not be read.
#[derive(Debug)]
pub struct Timer {
    descriptor: OwnedFd,
    armed_ns: Option<u64>,
}

impl Timer {
    /// A disarmed timer.
    ///
    /// # Errors
    /// When there is no descriptor left.
    pub fn new() -> io::Result<Self> {
        let descriptor = timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC)?;
        Ok(Self { descriptor, armed_ns: None })
    }

    /// Makes it readable at an instant, at once if it has passed. One system call, none if nothing changes.
    ///
    /// # Errors
    /// What the kernel answers; it has no reason to.
    pub fn arm(&mut self, instant_ns: u64) -> io::Result<()> {
        if self.armed_ns == Some(instant_ns) {
            return Ok(());
        }
        // An all-zero value would disarm it.
        let value = Itimerspec { it_interval: timespec(0), it_value: timespec(to_kernel(instant_ns).max(1)) };
        timerfd_settime(&self.descriptor, TimerfdTimerFlags::ABSTIME, &value)?;
        self.armed_ns = Some(instant_ns);
        Ok(())
    }

    /// Says that the timer went off, so that the same instant can be armed again.
    pub fn has_expired(&mut self) {
        self.armed_ns = None;
    }
}

impl AsFd for Timer {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}

impl AsRawFd for Timer {
    fn as_raw_fd(&self) -> RawFd {
        self.descriptor.as_raw_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::monotonic_ns;
    use crate::poll::{PollFd, PollFlags, wait};

    #[test]
    fn it_goes_off_after_its_instant() {
        let mut timer = Timer::new().unwrap();
        assert_eq!(wait(&mut [PollFd::new(&timer, PollFlags::IN)], Some(0)).unwrap(), 0);
        let due_ns = monotonic_ns() + 1_000_000;
        timer.arm(due_ns).unwrap();
        assert_eq!(wait(&mut [PollFd::new(&timer, PollFlags::IN)], None).unwrap(), 1);
        assert!(monotonic_ns() >= due_ns);
    }
}
