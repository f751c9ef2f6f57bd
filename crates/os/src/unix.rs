//! Sockets between processes of one machine: descriptors on their way, and who is at the other end (unix(7)).

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags,
    recvmsg, sendmsg,
};
use rustix::process::{PidfdFlags, pidfd_open};
use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

/// Descriptors that one message can carry (`SCM_MAX_FD`).
pub const MAX_DESCRIPTORS: usize = 253;

/// Sends bytes, and with the first of them copies of descriptors; gives how many bytes were taken, at least one.
///
/// # Errors
/// What the socket answers; more than [`MAX_DESCRIPTORS`] are invalid.
pub fn send_with(socket: impl AsFd, bytes: &[u8], descriptors: &[BorrowedFd<'_>]) -> io::Result<usize> {
    let message = SendAncillaryMessage::ScmRights(descriptors);
    let mut room = vec![MaybeUninit::uninit(); message.size()];
    let mut control = SendAncillaryBuffer::new(&mut room);
    if !control.push(message) {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    Ok(sendmsg(socket, &[IoSlice::new(bytes)], &mut control, SendFlags::NOSIGNAL)?)
}

/// Receives bytes into `room`, and the descriptors that came with them; none at the end.
///
/// # Errors
/// What the socket answers.
pub fn receive_with(socket: impl AsFd, room: &mut [u8], descriptors: &mut Vec<OwnedFd>) -> io::Result<usize> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_DESCRIPTORS))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let message = recvmsg(socket, &mut [IoSliceMut::new(room)], &mut control, RecvFlags::CMSG_CLOEXEC)?;
    for part in control.drain() {
        if let RecvAncillaryMessage::ScmRights(came) = part {
            descriptors.extend(came);
        }
    }
    Ok(message.bytes)
}

/// The process at the other end of a socket, as it was when it connected.
#[derive(Debug)]
pub struct Peer {
    /// Its effective user.
    pub user: u32,
    process: OwnedFd,
}

impl Peer {
    /// The one of a connected socket.
    ///
    /// # Errors
    /// When it has ended, or the socket is none of two processes.
    pub fn of(socket: impl AsFd) -> io::Result<Self> {
        let found = rustix::net::sockopt::socket_peercred(socket)?;
        Ok(Self { user: found.uid.as_raw(), process: pidfd_open(found.pid, PidfdFlags::empty())? })
    }

    /// Whether it has ended, or does so within this time.
    pub fn ends_within(&self, time: Duration) -> bool {
        let time = Timespec { tv_sec: time.as_secs() as i64, tv_nsec: time.subsec_nanos().into() };
        let mut processes = [PollFd::new(&self.process, PollFlags::IN)];
        poll(&mut processes, Some(&time)).is_ok_and(|ready| ready > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read as _, Write as _};
    use std::net::TcpListener;
    use std::os::unix::net::UnixStream;

    #[test]
    fn descriptors_travel_with_the_bytes() {
        let (one, other) = UnixStream::pair().unwrap();
        let (listener, mut room) = (TcpListener::bind("127.0.0.1:0").unwrap(), [0; 8]);
        let mut came = Vec::new();
        assert_eq!(send_with(&one, b"two", &[listener.as_fd(), one.as_fd()]).unwrap(), 3);
        assert_eq!(receive_with(&other, &mut room, &mut came).unwrap(), 3);
        assert_eq!((&room[..3], came.len()), (&b"two"[..], 2));
        let same = TcpListener::from(came.remove(0));
        assert_eq!(same.local_addr().unwrap(), listener.local_addr().unwrap());
        (&one).write_all(b"plain").unwrap();
        came.clear();
        assert_eq!((receive_with(&other, &mut room, &mut came).unwrap(), came.len()), (5, 0));
        assert!(send_with(&one, b"x", &vec![one.as_fd(); MAX_DESCRIPTORS + 1]).is_err());
        drop(one);
        assert_eq!(receive_with(&other, &mut room, &mut came).unwrap(), 0);
    }

    #[test]
    fn a_peer_is_known_by_its_user_and_its_end() {
        let (mut one, other) = UnixStream::pair().unwrap();
        let peer = Peer::of(&other).unwrap();
        assert_eq!(peer.user, crate::process::effective_ids().0);
        assert!(!peer.ends_within(Duration::ZERO), "it is this process");
        one.write_all(b"x").unwrap();
        (&other).read_exact(&mut [0]).unwrap();
    }
}
