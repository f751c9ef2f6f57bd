//! How fan-out's bytes reach sockets: by one `write` each, or by many sends in one call of io_uring.

mod files;
mod send;
mod uring;

pub use send::{MAX_SENDS, Outcome, Send};

use files::Files;
use pushlab_os::limits;
use std::fmt;
use std::io::{self, Read as _};
use std::os::fd::{AsFd as _, AsRawFd as _, BorrowedFd};
use std::os::unix::net::UnixStream;
use uring::{Ring, Target};

/// Members of a group below which a `write` for each is as fast.
pub const MIN_MEMBERS: usize = 300;
/// Rings of one event loop that may break before it writes for good.
const MAX_BROKEN: u32 = 3;

/// By what fan-out reaches sockets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Io {
    /// A `write` for each.
    Write,
    /// io_uring: up to [`MAX_SENDS`] in one system call. Needs Linux 5.6, and a sandbox that allows it.
    Uring,
}

impl Io {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Write, Self::Uring];

    /// As `/stats` calls it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Write => "write",
            Self::Uring => "uring",
        }
    }
}

/// Why io_uring cannot be used here, and what to do.
#[derive(Debug)]
pub struct NoUring(pub io::Error);

impl std::error::Error for NoUring {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.0)
    }
}

impl fmt::Display for NoUring {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let switch = std::fs::read_to_string("/proc/sys/kernel/io_uring_disabled").unwrap_or_default();
        let why = match (switch.trim(), self.0.kind()) {
            ("2", _) => "the sysctl kernel.io_uring_disabled is 2: set it to 0",
            ("1", io::ErrorKind::PermissionDenied) => {
                "the sysctl kernel.io_uring_disabled is 1: set it to 0, or join the group kernel.io_uring_group"
            }
            (_, io::ErrorKind::PermissionDenied) => {
                "a sandbox forbids it: have its seccomp filter allow io_uring_setup, io_uring_enter and io_uring_register"
            }
            (_, io::ErrorKind::Unsupported) => "it needs Linux 5.6 or newer, and a sandbox that does not hide it",
            (_, io::ErrorKind::OutOfMemory) => "before Linux 5.12 it counts as locked memory: raise ulimit -l",
            _ => "the kernel refuses it",
        };
        write!(f, "cannot use io_uring: {}; {why}, or use plain writes (--io write)", self.0)
    }
}

/// Whether io_uring works here: makes a ring and sends through it, in a thread of its own. The end of a ring interrupts
/// what the thread that used it waits for then (EINTR), some time later: a caller's thread must not be that one.
///
/// # Errors
/// Where the kernel, or the sandbox of this process, refuses any of that.
pub fn check_uring() -> Result<(), NoUring> {
    let tried = std::thread::scope(|scope| scope.spawn(|| Engine::open(1).map(drop)).join());
    tried.unwrap_or_else(|_| Err(NoUring(io::Error::other("trying it out failed"))))
}

/// An event loop's ring and its table of files. Belongs to the thread that made it, because the table of descriptors
/// may.
pub struct Engine {
    ring: Ring,
    files: Files,
    max_connections: usize,
    broken: u32,
}

impl Engine {
    /// A ring for so many connections, tried out.
    ///
    /// # Errors
    /// Where the kernel, or the sandbox of this process, refuses.
    pub fn open(max_connections: usize) -> Result<Self, NoUring> {
        let make = || {
            let mut ring = Ring::new()?;
            try_out(&mut ring)?;
            Ok(ring)
        };
        let ring = make().map_err(NoUring)?;
        let files = Files::register(&ring, table_size(max_connections));
        Ok(Self { ring, files, max_connections, broken: 0 })
    }

    /// Sends to each connection what stands behind its place in `bytes`; no connection stands there twice. `socket`
    /// gives each one's socket. Every send has its outcome afterwards; those that are [`Outcome::Left`] are for the
    /// caller to write. `false`: this was the engine's last call, it is of no use any more.
    #[must_use]
    pub fn send<'s>(&mut self, bytes: &[u8], sends: &mut [Send], socket: impl Fn(&Send) -> BorrowedFd<'s>) -> bool {
        for part in sends.chunks_mut(MAX_SENDS) {
            let files = &mut self.files;
            for send in &*part {
                if !files.has(send.id, send.generation) {
                    files.enter(send.id, send.generation, socket(send).as_raw_fd());
                }
            }
            files.apply(&self.ring);
            let target = |send: &Send| match files.has(send.id, send.generation) {
                true => Target::Registered(send.id),
                false => Target::Plain(socket(send)),
            };
            if self.ring.send(bytes, part, target).is_err() {
                return self.replace();
            }
        }
        true
    }

    /// For tests: one whose next call hands so many sends to the kernel and then fails.
    pub fn breaking_after(mut self, sends: Option<u32>) -> Self {
        self.ring.breaks_after = sends;
        self
    }

    /// Notes that a connection has ended. `true`: its socket stays open until [`Self::end_turn`], and on older kernels
    /// up to a second longer, so it must be shut down for its peer to hear of the end.
    #[must_use]
    pub fn forget(&mut self, id: u32, generation: u32) -> bool {
        self.files.leave(id, generation)
    }

    /// Lets go of the sockets of connections that have ended.
    pub fn end_turn(&mut self) {
        self.files.let_go(&self.ring);
    }

    /// A new ring for one that broke. What the kernel had not taken of the old one's sends ends with it.
    fn replace(&mut self) -> bool {
        self.broken += 1;
        if self.broken >= MAX_BROKEN {
            return false;
        }
        let Ok(ring) = Ring::new() else { return false };
        self.ring = ring;
        self.files = Files::register(&self.ring, table_size(self.max_connections));
        true
    }
}

/// A slot for each connection. The kernel allows no more than descriptors.
fn table_size(max_connections: usize) -> usize {
    let limit = usize::try_from(limits::descriptors().soft).unwrap_or(usize::MAX);
    max_connections.min(limit)
}

/// A seccomp filter may allow to make a ring and refuse to use it, and before Linux 5.6 a ring cannot send.
fn try_out(ring: &mut Ring) -> io::Result<()> {
    let (ours, mut other) = UnixStream::pair()?;
    let mut sends = [Send::new(0, 0, 0, 0)];
    ring.send(b"x", &mut sends, |_| Target::Plain(ours.as_fd()))?;
    let mut byte = [0];
    match &sends[0].outcome {
        Outcome::Taken(1) => other.read_exact(&mut byte),
        _ => Err(io::ErrorKind::Unsupported.into()),
    }
}

#[cfg(test)]
mod tests;
