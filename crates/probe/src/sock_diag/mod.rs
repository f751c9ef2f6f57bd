//! TCP sockets by state, asked of the kernel over netlink (sock_diag(7)).
//!
//! One dump walks the kernel's whole connection table, whose size depends on the machine's memory: about a
//! millisecond when it is empty, so this reader runs on a budget.

mod message;

use crate::sample::{TcpStates, TcpTotals};
use message::{Progress, REQUEST_BYTES};
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use thiserror::Error;

/// Longer than any datagram of a dump: the kernel fills at most 32 KiB (net/netlink/af_netlink.c).
const BUFFER_BYTES: usize = 64 * 1024;
/// Patience with the kernel, which answers at once or never.
const RECEIVE_TIMEOUT_S: libc::time_t = 2;

/// Why TCP sockets could not be counted.
#[derive(Debug, Error)]
pub enum SockDiagError {
    /// A system call failed.
    #[error("{call}: {source}")]
    Call {
        /// Which.
        call: &'static str,
        /// What the kernel said.
        source: io::Error,
    },
    /// The subject's network namespace cannot be told or entered; that takes CAP_SYS_ADMIN.
    #[error("cannot enter the network namespace of process {pid}: {source}; run as root")]
    Namespace {
        /// The process.
        pid: u32,
        /// What the kernel said.
        source: io::Error,
    },
    /// The kernel refused the request.
    #[error("the kernel refused: {0}")]
    Refused(io::Error),
    /// An answer was cut off or not in the format of sock_diag(7).
    #[error("the kernel's answer is malformed: {0}")]
    Malformed(&'static str),
}

/// A netlink socket in the network namespace of a process.
#[derive(Debug)]
pub(crate) struct SockDiag {
    socket: OwnedFd,
    buffer: Vec<u8>,
    sequence: u32,
}

impl SockDiag {
    /// Opens a socket where the process has its sockets.
    ///
    /// # Errors
    /// [`SockDiagError::Namespace`] when that is another namespace and may not be entered.
    pub(crate) fn open(pid: u32) -> Result<Self, SockDiagError> {
        let namespace = |source| SockDiagError::Namespace { pid, source };
        let path = format!("/proc/{pid}/ns/net");
        let theirs = std::fs::metadata(&path).map_err(namespace)?;
        let ours = std::fs::metadata("/proc/thread-self/ns/net").map_err(namespace)?;
        let socket = if (theirs.dev(), theirs.ino()) == (ours.dev(), ours.ino()) {
            open_socket()?
        } else {
            let file = std::fs::File::open(&path).map_err(namespace)?;
            // A thread of its own enters the namespace and ends there: there is no way back to fail on. The socket
            // stays in the namespace where it was made.
            let entered = std::thread::Builder::new().name("pushlab-netns".into()).spawn(move || {
                // SAFETY: setns takes a descriptor that `file` keeps open, and moves only this thread.
                if unsafe { libc::setns(file.as_raw_fd(), libc::CLONE_NEWNET) } != 0 {
                    return Err(SockDiagError::Namespace { pid, source: io::Error::last_os_error() });
                }
                open_socket()
            });
            let thread = entered.map_err(|source| SockDiagError::Call { call: "pthread_create", source })?;
            thread.join().expect("the thread makes three system calls and none of them panics")?
        };
        Ok(Self { socket, buffer: vec![0; BUFFER_BYTES], sequence: 0 })
    }

    /// Counts the sockets whose local port is one of `ports`. With `totals`, also sums their `tcp_info`, for which
    /// the kernel locks each socket for a moment.
    ///
    /// # Errors
    /// See [`SockDiagError`].
    pub(crate) fn read(&mut self, ports: &[u16], totals: bool) -> Result<TcpStates, SockDiagError> {
        let mut states = TcpStates { totals: totals.then(TcpTotals::default), ..TcpStates::default() };
        for port in ports {
            for family in [libc::AF_INET, libc::AF_INET6] {
                match self.dump(family as u8, *port, totals, &mut states) {
                    // A kernel without IPv6 has no such sockets.
                    Err(SockDiagError::Refused(error))
                        if family == libc::AF_INET6 && error.kind() == io::ErrorKind::NotFound => {}
                    done => done?,
                }
            }
        }
        Ok(states)
    }

    fn dump(&mut self, family: u8, port: u16, totals: bool, states: &mut TcpStates) -> Result<(), SockDiagError> {
        self.sequence = self.sequence.wrapping_add(1);
        self.send(&message::request(self.sequence, family, port, totals))?;
        loop {
            let length = self.receive()?;
            if message::parse(&self.buffer[..length], self.sequence, states)? == Progress::Done {
                return Ok(());
            }
        }
    }

    fn send(&self, request: &[u8; REQUEST_BYTES]) -> Result<(), SockDiagError> {
        // SAFETY: the pointer and length are those of `request`, which outlives the call.
        let sent = unsafe { libc::send(self.socket.as_raw_fd(), request.as_ptr().cast(), request.len(), 0) };
        if sent < 0 { Err(last("send")) } else { Ok(()) }
    }

    fn receive(&mut self) -> Result<usize, SockDiagError> {
        loop {
            // SAFETY: the pointer and length are those of `self.buffer`, which nothing else uses meanwhile.
            let received = unsafe {
                let (start, length) = (self.buffer.as_mut_ptr().cast(), self.buffer.len());
                libc::recv(self.socket.as_raw_fd(), start, length, libc::MSG_TRUNC)
            };
            match usize::try_from(received) {
                Ok(length) if length <= self.buffer.len() => return Ok(length),
                // MSG_TRUNC tells the true length.
                Ok(_) => return Err(SockDiagError::Malformed("a datagram longer than the buffer")),
                Err(_) => {
                    let error = last("recv");
                    if !matches!(&error, SockDiagError::Call { source, .. } if source.kind() == io::ErrorKind::Interrupted)
                    {
                        return Err(error);
                    }
                }
            }
        }
    }
}

fn open_socket() -> Result<OwnedFd, SockDiagError> {
    // SAFETY: socket takes three integers; a result that is not negative is a descriptor nobody else owns.
    let socket = unsafe {
        let kind = libc::SOCK_DGRAM | libc::SOCK_CLOEXEC;
        let descriptor = libc::socket(libc::AF_NETLINK, kind, libc::NETLINK_SOCK_DIAG);
        if descriptor < 0 {
            return Err(last("socket"));
        }
        OwnedFd::from_raw_fd(descriptor)
    };
    let patience = libc::timeval { tv_sec: RECEIVE_TIMEOUT_S, tv_usec: 0 };
    // SAFETY: the pointer and size are those of `patience`, which outlives the call.
    let set = unsafe {
        let value = std::ptr::from_ref(&patience).cast();
        let size = size_of::<libc::timeval>() as libc::socklen_t;
        libc::setsockopt(socket.as_raw_fd(), libc::SOL_SOCKET, libc::SO_RCVTIMEO, value, size)
    };
    if set == 0 { Ok(socket) } else { Err(last("setsockopt")) }
}

fn last(call: &'static str) -> SockDiagError {
    SockDiagError::Call { call, source: io::Error::last_os_error() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};
    use std::time::{Duration, Instant};

    /// Asks until `wanted` holds, because the kernel moves sockets through their states in its own time.
    fn eventually(diag: &mut SockDiag, port: u16, wanted: impl Fn(&TcpStates) -> bool) -> TcpStates {
        let deadline = Instant::now() + Duration::from_secs(10);
        loop {
            let states = diag.read(&[port], true).unwrap();
            if wanted(&states) {
                return states;
            }
            assert!(Instant::now() < deadline, "still {states:?}");
        }
    }

    fn lifecycle(address: &str) {
        let listener = match TcpListener::bind(address) {
            Ok(listener) => listener,
            // No IPv6 here.
            Err(_) if address.starts_with('[') => return,
            Err(error) => panic!("{error}"),
        };
        let port = listener.local_addr().unwrap().port();
        let mut diag = SockDiag::open(std::process::id()).unwrap();

        let clients: Vec<TcpStream> =
            (0..5).map(|_| TcpStream::connect(listener.local_addr().unwrap()).unwrap()).collect();
        let states = eventually(&mut diag, port, |states| states.accept_queue == 5);
        assert_eq!((states.listen, states.established), (1, 5));

        let mut accepted: Vec<TcpStream> = (0..5).map(|_| listener.accept().unwrap().0).collect();
        accepted[0].write_all(&[7; 12_345]).unwrap();
        (&clients[1]).write_all(&[1; 777]).unwrap();
        accepted[1].read_exact(&mut [0; 700]).unwrap();
        let states = eventually(&mut diag, port, |states| {
            states.receive_queue_bytes == 77 && states.totals.is_some_and(|totals| totals.sent_bytes >= 12_345)
        });
        let totals = states.totals.unwrap();
        assert_eq!((states.accept_queue, totals.received_bytes), (0, 777));
        // The kernel counts the acknowledged handshake of a client's side, not of an accepted one; be lenient.
        assert!((12_345..=12_350).contains(&totals.sent_bytes), "{totals:?}");
        assert!(diag.read(&[port], false).unwrap().totals.is_none());

        drop(clients);
        // The client that never read its 12,345 bytes ends with a reset, which leaves no socket behind.
        // One in TIME-WAIT is of somebody else who had this port before.
        eventually(&mut diag, port, |states| states.close_wait == 4 && states.connections() - states.time_wait == 4);
        drop((accepted, listener));
        eventually(&mut diag, port, |states| states.listen == 0 && states.close_wait == 0);
    }

    #[test]
    fn sockets_are_followed_through_their_states() {
        lifecycle("127.0.0.1:0");
        lifecycle("[::1]:0");
    }

    #[test]
    fn many_sockets_take_several_datagrams() {
        // With tcp_info each takes about 450 bytes, and a datagram holds 32 KiB.
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let pairs: Vec<_> =
            (0..150).map(|_| (TcpStream::connect(address).unwrap(), listener.accept().unwrap().0)).collect();
        let mut diag = SockDiag::open(std::process::id()).unwrap();
        let states = eventually(&mut diag, address.port(), |states| states.established == 150);
        assert_eq!(states.listen, 1);
        drop(pairs);
    }

    #[test]
    fn another_namespace_has_other_sockets() {
        use std::os::unix::process::CommandExt;
        let mut command = std::process::Command::new("cat");
        command.stdin(std::process::Stdio::piped());
        // SAFETY: unshare is one system call, which is allowed between fork and exec.
        unsafe {
            command.pre_exec(|| match libc::unshare(libc::CLONE_NEWNET) {
                0 => Ok(()),
                _ => Err(io::Error::last_os_error()),
            });
        }
        // Without CAP_SYS_ADMIN there is no other namespace to look into.
        let Ok(mut child) = command.spawn() else { return };
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let (ours, theirs) = (SockDiag::open(std::process::id()), SockDiag::open(child.id()));
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(ours.unwrap().read(&[port], false).unwrap().listen, 1);
        assert_eq!(theirs.unwrap().read(&[port], false).unwrap(), TcpStates::default());
    }

    #[test]
    fn a_process_that_is_gone_has_no_namespace() {
        assert!(matches!(SockDiag::open(0x7fff_fff0), Err(SockDiagError::Namespace { .. })));
    }
}
