//! A timer for absolute instants that wakes an epoll loop: epoll's own timeouts count whole milliseconds.

use crate::clock::timespec;
use mio::unix::SourceFd;
use mio::{Interest, Registry, Token};
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

/// A timer of the kernel on the monotonic clock.
///
/// Registered edge-triggered: each expiry wakes the loop once and need not be read.
#[derive(Debug)]
pub struct Timer {
    descriptor: OwnedFd,
    armed_ns: Option<u64>,
}

impl Timer {
    /// A disarmed timer whose expiry reaches the loop as `token`.
    ///
    /// # Errors
    /// When there is no descriptor left.
    pub fn new(registry: &Registry, token: Token) -> io::Result<Self> {
        // SAFETY: plain system call; its result is checked below.
        let raw = unsafe { libc::timerfd_create(libc::CLOCK_MONOTONIC, libc::TFD_NONBLOCK | libc::TFD_CLOEXEC) };
        if raw < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the kernel has just given us this descriptor, and nobody else owns it.
        let descriptor = unsafe { OwnedFd::from_raw_fd(raw) };
        registry.register(&mut SourceFd(&descriptor.as_raw_fd()), token, Interest::READABLE)?;
        Ok(Self { descriptor, armed_ns: None })
    }

    /// Wakes the loop at an instant, at once if it has passed. One system call, none if nothing changes.
    ///
    /// # Errors
    /// What the kernel answers; it has no reason to.
    pub fn arm(&mut self, instant_ns: u64) -> io::Result<()> {
        if self.armed_ns == Some(instant_ns) {
            return Ok(());
        }
        // An all-zero value would disarm it.
        let value = libc::itimerspec { it_interval: timespec(0), it_value: timespec(instant_ns.max(1)) };
        let (descriptor, flags) = (self.descriptor.as_raw_fd(), libc::TFD_TIMER_ABSTIME);
        // SAFETY: `value` is valid for the whole call, and the old value is not asked for.
        let code = unsafe { libc::timerfd_settime(descriptor, flags, &value, std::ptr::null_mut()) };
        if code < 0 {
            return Err(io::Error::last_os_error());
        }
        self.armed_ns = Some(instant_ns);
        Ok(())
    }

    /// Says that the timer went off, so that the same instant can be armed again.
    pub fn has_expired(&mut self) {
        self.armed_ns = None;
    }
}
