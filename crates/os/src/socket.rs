//! Settings of sockets that [`std::net`] has not.

use rustix::net::SendFlags;
use std::io;
use std::os::fd::{AsFd, AsRawFd as _};

/// Flags of a send that takes what fits at once, and tells of a broken socket without a signal.
pub const SEND_AT_ONCE: i32 = SendFlags::DONTWAIT.union(SendFlags::NOSIGNAL).bits() as i32;

/// Has the kernel choose the port at `connect`, not at `bind`, so that one port serves many targets
/// (`IP_BIND_ADDRESS_NO_PORT`, ip(7)).
///
/// # Errors
/// For what is no IPv4 socket.
pub fn choose_port_late(socket: impl AsFd) -> io::Result<()> {
    let on: libc::c_int = 1;
    let size = size_of::<libc::c_int>() as libc::socklen_t;
    let (socket, option) = (socket.as_fd(), libc::IP_BIND_ADDRESS_NO_PORT);
    // SAFETY: the descriptor is open, and the value pointed to is an integer of the size given.
    let code = unsafe { libc::setsockopt(socket.as_raw_fd(), libc::IPPROTO_IP, option, (&raw const on).cast(), size) };
    if code < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Ends both directions; a listener's waiting `accept` ends with an error.
///
/// # Errors
/// For what is no connected or listening socket.
pub fn shut_down(socket: impl AsFd) -> io::Result<()> {
    Ok(rustix::net::shutdown(socket, rustix::net::Shutdown::Both)?)
}

/// Has the kernel note when what is read from a socket came to this host (`SO_TIMESTAMPNS`, socket(7)): see
/// [`read_stamped`]. What has come before has no such note.
///
/// # Errors
/// For what is no socket.
pub fn stamp_receipts(socket: impl AsFd) -> io::Result<()> {
    let on: libc::c_int = 1;
    let size = size_of::<libc::c_int>() as libc::socklen_t;
    let (socket, option) = (socket.as_fd(), libc::SO_TIMESTAMPNS);
    // SAFETY: the descriptor is open, and the value pointed to is an integer of the size given.
    let code = unsafe { libc::setsockopt(socket.as_raw_fd(), libc::SOL_SOCKET, option, (&raw const on).cast(), size) };
    if code < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Room for the control messages of a read: a time and its head are 32 bytes.
#[repr(align(8))]
struct Control([u8; 64]);

/// Reads from a socket, and says for how long the datagram, or the last segment of what was read, had been there, ns; `None`
/// where the kernel did not note it.
///
/// The note is on `CLOCK_REALTIME`, which is read when the call returns: what is said is off by as much as that clock
/// was set in between, and by the tens of nanoseconds that reading it takes.
///
/// # Errors
/// What the socket answers.
pub fn read_stamped(socket: impl AsFd, room: &mut [u8]) -> io::Result<(usize, Option<u64>)> {
    let mut control = Control([0; 64]);
    let mut piece = libc::iovec { iov_base: room.as_mut_ptr().cast(), iov_len: room.len() };
    // SAFETY: all fields of the structure may be zero.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    (message.msg_iov, message.msg_iovlen) = (&raw mut piece, 1);
    (message.msg_control, message.msg_controllen) = ((&raw mut control.0).cast(), control.0.len() as _);
    let socket = socket.as_fd();
    // SAFETY: the descriptor is open, and everything that the structure points to outlives the call, with its size.
    let size = unsafe { libc::recvmsg(socket.as_raw_fd(), &raw mut message, 0) };
    if size < 0 {
        return Err(io::Error::last_os_error());
    }
    let now_ns = crate::clock::since_1970_ns();
    let noted_ns = stamp_of(&control.0[..message.msg_controllen as usize]);
    Ok((size as usize, noted_ns.map(|noted_ns| now_ns.saturating_sub(noted_ns))))
}

/// The instant in the first control message, ns since 1970; a head is its length, level and type (cmsg(3)).
fn stamp_of(control: &[u8]) -> Option<u64> {
    const HEAD: usize = size_of::<libc::cmsghdr>();
    let number = |at: usize| -> Option<[u8; 4]> { control.get(at..at + 4)?.try_into().ok() };
    let long = |at: usize| -> Option<u64> { Some(u64::from_ne_bytes(control.get(at..at + 8)?.try_into().ok()?)) };
    let [level, kind] = [HEAD - 8, HEAD - 4].map(|at| number(at).map(i32::from_ne_bytes));
    let is_stamp = level == Some(libc::SOL_SOCKET) && kind == Some(libc::SCM_TIMESTAMPNS);
    if is_stamp { Some(long(HEAD)? * 1_000_000_000 + long(HEAD + 8)?) } else { None }
}

/// Segments that a TCP socket has sent, acknowledgements among them: `tcpi_segs_out` of `struct tcp_info`.
///
/// # Errors
/// For what is no TCP socket, and before Linux 4.2.
pub fn segments_sent(socket: impl AsFd) -> io::Result<u32> {
    tcp_info(socket, 136)
}

/// Segments with data that have come to a TCP socket: `tcpi_data_segs_in` of `struct tcp_info`.
///
/// # Errors
/// For what is no TCP socket, and before Linux 4.6.
pub fn data_segments_received(socket: impl AsFd) -> io::Result<u32> {
    tcp_info(socket, 152)
}

/// Segments that a TCP socket has sent and its peer has not acknowledged: `tcpi_unacked` of `struct tcp_info`.
///
/// # Errors
/// For what is no TCP socket.
pub fn segments_unacknowledged(socket: impl AsFd) -> io::Result<u32> {
    tcp_info(socket, 24)
}

/// The four bytes at a place of `struct tcp_info` (linux/tcp.h), which only ever grows at its end.
fn tcp_info(socket: impl AsFd, place: usize) -> io::Result<u32> {
    let mut info = [0u8; 256];
    let mut size = info.len() as libc::socklen_t;
    let socket = socket.as_fd();
    // SAFETY: the descriptor is open, and the kernel writes at most `size` bytes to `info`.
    let code = unsafe {
        let info = info.as_mut_ptr().cast();
        libc::getsockopt(socket.as_raw_fd(), libc::IPPROTO_TCP, libc::TCP_INFO, info, &raw mut size)
    };
    if code < 0 {
        return Err(io::Error::last_os_error());
    }
    let told = info[..size as usize].get(place..place + 4).and_then(|bytes| bytes.try_into().ok());
    told.map(u32::from_ne_bytes).ok_or_else(|| io::ErrorKind::Unsupported.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read as _, Write as _};
    use std::net::{TcpListener, TcpStream, UdpSocket};

    #[test]
    fn settings_are_for_sockets_that_have_them() {
        let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
        choose_port_late(&udp).unwrap();
        assert!(segments_sent(&udp).is_err());
        assert!(choose_port_late(std::fs::File::open("/dev/null").unwrap()).is_err());
    }

    #[test]
    fn a_read_says_for_how_long_the_bytes_had_been_there() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut accepted, _) = listener.accept().unwrap();
        let (mut room, clock) = ([0; 8], crate::clock::monotonic_ns);
        let mut read = || read_stamped(&client, &mut room).unwrap();
        accepted.write_all(b"first").unwrap();
        assert_eq!(read(), (5, None), "nobody asked");
        stamp_receipts(&client).unwrap();
        // The kernel begins to note a moment later.
        let deadline = clock() + 10_000_000_000;
        loop {
            let begun = clock();
            accepted.write_all(b"second").unwrap();
            crate::clock::sleep_until(clock() + 20_000_000);
            let (size, waited) = read();
            let Some(waited) = waited else {
                assert!(clock() < deadline, "the kernel notes nothing");
                continue;
            };
            let longest = clock() - begun + 10_000_000;
            assert!(size == 6 && (19_000_000..longest).contains(&waited), "{waited} of {longest}");
            break;
        }
        // The last segment of what is read counts.
        accepted.write_all(b"thi").unwrap();
        let begun = clock();
        crate::clock::sleep_until(begun + 20_000_000);
        let begun = clock();
        accepted.write_all(b"rd").unwrap();
        let (size, waited) = read();
        let longest = clock() - begun + 10_000_000;
        assert!(size == 5 && waited.unwrap() < longest, "{waited:?} of {longest}");
        drop(accepted);
        assert_eq!(read().0, 0);
        assert!(stamp_receipts(std::fs::File::open("/dev/null").unwrap()).is_err());
    }

    #[test]
    fn a_listener_that_is_shut_down_accepts_no_more() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        assert!(segments_sent(&client).unwrap() >= 2, "a handshake");
        let (mut accepted, _) = listener.accept().unwrap();
        assert_eq!(data_segments_received(&client).unwrap(), 0);
        accepted.write_all(b"data").unwrap();
        (&client).read_exact(&mut [0; 4]).unwrap();
        assert_eq!(data_segments_received(&client).unwrap(), 1);
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| listener.accept().is_err());
            shut_down(&listener).unwrap();
            assert!(waiting.join().unwrap());
        });
    }
}
