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
