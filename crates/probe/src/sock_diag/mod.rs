//! TCP sockets by state, asked of the kernel over netlink (sock_diag(7)).
//!
//! One dump walks the kernel's whole connection table, whose size depends on the machine's memory: about a
//! millisecond when it is empty, so this reader runs on a budget.

mod message;

use crate::sample::{TcpStates, TcpTotals};
use pushlab_os::namespace::enter_network;
use pushlab_os::netlink::{Family, NetlinkError, Socket};
use std::io;
use std::os::unix::fs::MetadataExt;
use thiserror::Error;

/// Why TCP sockets could not be counted.
#[derive(Debug, Error)]
pub enum SockDiagError {
    /// The subject's network namespace cannot be told or entered; that takes CAP_SYS_ADMIN.
    #[error("cannot enter the network namespace of process {pid}: {source}; run as root")]
    Namespace {
        /// The process.
        pid: u32,
        /// What the kernel said.
        source: io::Error,
    },
    /// The kernel could not be asked, refused, or answered in another format than that of sock_diag(7).
    #[error(transparent)]
    Netlink(#[from] NetlinkError),
}

/// A netlink socket in the network namespace of a process.
#[derive(Debug)]
pub(crate) struct SockDiag(Socket);

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
        if (theirs.dev(), theirs.ino()) == (ours.dev(), ours.ino()) {
            return Ok(Self(Socket::open(Family::SockDiag)?));
        }
        let file = std::fs::File::open(&path).map_err(namespace)?;
        // A thread of its own enters the namespace and ends there: there is no way back to fail on. The socket
        // stays in the namespace where it was made.
        let entered = std::thread::Builder::new().name("pushlab-netns".into()).spawn(move || {
            enter_network(&file).map_err(|source| SockDiagError::Namespace { pid, source })?;
            Ok(Self(Socket::open(Family::SockDiag)?))
        });
        let thread = entered.map_err(|source| NetlinkError::Call { call: "pthread_create", source })?;
        thread.join().expect("the thread makes three system calls and none of them panics")
    }

    /// Counts the sockets whose local port is one of `ports`. With `totals`, also sums their `tcp_info`, for which
    /// the kernel locks each socket for a moment.
    ///
    /// # Errors
    /// See [`SockDiagError`].
    pub(crate) fn read(&mut self, ports: &[u16], totals: bool) -> Result<TcpStates, SockDiagError> {
        let mut states = TcpStates { totals: totals.then(TcpTotals::default), ..TcpStates::default() };
        for port in ports {
            for family in message::FAMILIES {
                let request = message::request(family, *port, totals);
                match self.0.list(request, |kind, body| message::add(kind, body, &mut states)) {
                    // A kernel without IPv6 has no such sockets.
                    Err(NetlinkError::Refused(error))
                        if family == message::IPV6 && error.kind() == io::ErrorKind::NotFound => {}
                    done => done?,
                }
            }
        }
        Ok(states)
    }
}

/// Inodes of the sockets that listen at a port, in the network namespace of the calling thread.
///
/// # Errors
/// See [`SockDiagError`].
pub(crate) fn listening(port: u16) -> Result<Vec<u32>, SockDiagError> {
    let (mut socket, mut inodes) = (Socket::open(Family::SockDiag)?, Vec::new());
    for family in message::FAMILIES {
        let note = |kind, body: &[u8]| {
            inodes.extend(message::inode(kind, body));
            Ok(())
        };
        match socket.list(message::request_listening(family, port), note) {
            // A kernel without IPv6 has no such sockets.
            Err(NetlinkError::Refused(error)) if family == message::IPV6 && error.kind() == io::ErrorKind::NotFound => {
            }
            done => done?,
        }
    }
    Ok(inodes)
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
        use pushlab_os::child::Prepare as _;
        let mut command = std::process::Command::new("cat");
        command.stdin(std::process::Stdio::piped()).make_network();
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
