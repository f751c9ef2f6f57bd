//! The limits: what raw sockets can do on this machine, with no protocol, no cursor, no history and no policy.
//!
//! Kept as short as a fast loop can be. A protocol cannot beat them; how near it comes is the ratio.

pub mod fanout;
pub mod intake;
pub mod replies;

use mio::net::TcpListener;
use socket2::{Domain, Protocol, Socket, Type};
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

/// The loopback address with a free port.
pub const ANY_PORT: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

/// Connections that wait to be accepted.
const BACKLOG: i32 = 4096;

/// Kernel's send buffer of a connection, bytes: our server's default, for the same cost in the kernel.
const SEND_BUFFER_BYTES: usize = 256 * 1024;

/// Listens, with the socket options that our server sets, and prints where.
fn listen() -> io::Result<TcpListener> {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, Some(Protocol::TCP))?;
    socket.set_nonblocking(true)?;
    socket.set_tcp_nodelay(true)?;
    socket.set_send_buffer_size(SEND_BUFFER_BYTES)?;
    socket.bind(&ANY_PORT.into())?;
    socket.listen(BACKLOG)?;
    let listener = TcpListener::from_std(socket.into());
    println!("{}", listener.local_addr()?);
    Ok(listener)
}
