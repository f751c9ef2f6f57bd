//! Connections of the load's side.

use anyhow::Context as _;
use mio::net::TcpStream;
use socket2::{Domain, Protocol, Socket, Type};
use std::io::{Read, Write as _};
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use std::time::Duration;

/// Connections from one source address: well below the number of free ports.
const PER_SOURCE: usize = 4000;
/// How long a subject may take to answer anything.
pub const PATIENCE: Duration = Duration::from_secs(20);

/// The source address of the `index`th connection of a family of connections; families do not share addresses.
fn source(family: u8, index: usize) -> SocketAddr {
    let group = u8::try_from(index / PER_SOURCE).unwrap_or(u8::MAX);
    SocketAddrV4::new(Ipv4Addr::new(127, 1 + family, group, 1), 0).into()
}

/// Connects (which on loopback waits for no other process) and sends a request.
pub fn open(address: SocketAddr, family: u8, index: usize, request: &[u8]) -> anyhow::Result<TcpStream> {
    let mut socket = open_from(address, family, index, None)?;
    socket.write_all(request).context("cannot send a request")?;
    socket.set_nonblocking(true)?;
    Ok(TcpStream::from_std(socket))
}

/// Connects with a receive buffer of this many bytes, or as the kernel has it, and waits for its answers.
pub fn open_from(
    address: SocketAddr,
    family: u8,
    index: usize,
    receive_buffer: Option<usize>,
) -> anyhow::Result<std::net::TcpStream> {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, Some(Protocol::TCP)).context("cannot make a socket")?;
    if let Some(bytes) = receive_buffer {
        socket.set_recv_buffer_size(bytes)?;
    }
    socket.bind(&source(family, index).into()).context("cannot bind to a source address")?;
    socket.connect(&address.into()).with_context(|| format!("cannot connect to {address}"))?;
    socket.set_tcp_nodelay(true)?;
    socket.set_read_timeout(Some(PATIENCE))?;
    Ok(socket.into())
}

/// A plain connection that waits for its answers.
pub fn open_blocking(address: SocketAddr) -> anyhow::Result<std::net::TcpStream> {
    let socket = std::net::TcpStream::connect(address).with_context(|| format!("cannot connect to {address}"))?;
    socket.set_nodelay(true)?;
    socket.set_read_timeout(Some(PATIENCE))?;
    Ok(socket)
}

/// Reads until `is_enough` says so of all that was read, and gives it.
pub fn read_until(socket: &mut impl Read, is_enough: impl Fn(&[u8]) -> bool) -> anyhow::Result<Vec<u8>> {
    let mut found = Vec::new();
    let mut buffer = vec![0; 64 * 1024];
    while !is_enough(&found) {
        let n = socket.read(&mut buffer).context("the subject does not answer")?;
        anyhow::ensure!(n > 0, "the subject closed the connection: {}", String::from_utf8_lossy(&found));
        found.extend_from_slice(&buffer[..n]);
    }
    Ok(found)
}
