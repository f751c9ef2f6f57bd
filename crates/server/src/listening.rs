//! Listeners: made here, inherited from whoever started the process, or taken over from the one before it.

use crate::config::Config;
use mio::net::TcpListener;
use socket2::{Domain, Protocol, SockRef, Socket, Type};
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsRawFd as _, OwnedFd, RawFd};

/// Connections that wait to be accepted.
const BACKLOG: i32 = 4096;

/// The listeners of each event loop, and where they listen. All of those that exist already are used, since each has
/// connections in its queue, by however many loops there are; a loop for which none is left gets one that is made here.
///
/// # Errors
/// If the address is taken, not ours, or not the one of listeners that exist.
pub fn listeners(config: &Config, existing: Vec<OwnedFd>) -> io::Result<(SocketAddr, Vec<Vec<TcpListener>>)> {
    let loops = config.cores.max(1);
    let mut of_loops: Vec<Vec<TcpListener>> = (0..loops).map(|_| Vec::new()).collect();
    let mut address = None;
    for (index, descriptor) in existing.into_iter().enumerate() {
        let listener = std::net::TcpListener::from(descriptor);
        listener.set_nonblocking(true)?;
        set(SockRef::from(&listener), config)?;
        let its = listener.local_addr()?;
        let wanted = config.listen;
        if *address.get_or_insert(its) != its || wanted.ip() != its.ip() || ![0, its.port()].contains(&wanted.port()) {
            let text = format!("the listeners that exist are on {its}");
            return Err(io::Error::new(io::ErrorKind::AddrNotAvailable, text));
        }
        of_loops[index % loops].push(TcpListener::from_std(listener));
    }
    let mut address = match address {
        Some(address) => address,
        None => {
            check_is_free(config.listen)?;
            config.listen
        }
    };
    // One that a service manager made shares its port with no other: its loops share it.
    let is_alone = match of_loops[0].first() {
        Some(first) => !SockRef::from(first).reuse_port()?,
        None => false,
    };
    for index in 0..loops {
        if of_loops[index].is_empty() {
            let listener = if is_alone { copy(&of_loops[0][0])? } else { listener(address, config)? };
            // Of the first, the port may have been free to choose.
            address = listener.local_addr()?;
            of_loops[index].push(listener);
        }
    }
    Ok((address, of_loops))
}

/// Has them listen, if they do not yet: once it is certain that they are accepted from, as what waits in a listener's queue
/// ends with it.
///
/// # Errors
/// If somebody else has come to listen there.
pub fn listen(listeners: &[TcpListener]) -> io::Result<()> {
    listeners.iter().try_for_each(|listener| SockRef::from(listener).listen(BACKLOG))
}

/// Copies of them, for the process that takes over.
///
/// # Errors
/// When there are no more descriptors.
pub fn copies(of_loops: &[Vec<TcpListener>]) -> io::Result<Vec<OwnedFd>> {
    of_loops.iter().flatten().map(|listener| Ok(OwnedFd::from(SockRef::from(listener).try_clone()?))).collect()
}

/// Their numbers.
pub fn numbers(listeners: &[TcpListener]) -> Vec<RawFd> {
    listeners.iter().map(|listener| listener.as_raw_fd()).collect()
}

fn copy(listener: &TcpListener) -> io::Result<TcpListener> {
    Ok(TcpListener::from_std(SockRef::from(listener).try_clone()?.into()))
}

/// Fails where somebody listens already. A listener that shares its port would not notice: the kernel would give it
/// half of the other's connections.
fn check_is_free(address: SocketAddr) -> io::Result<()> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    socket.set_reuse_address(true)?;
    socket.bind(&address.into())
}

/// A listener that does not listen yet.
fn listener(address: SocketAddr, config: &Config) -> io::Result<TcpListener> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    socket.set_reuse_address(true)?;
    socket.set_reuse_port(true)?;
    socket.set_nonblocking(true)?;
    // Before listening: the window that a handshake offers follows from the buffers.
    set(SockRef::from(&socket), config)?;
    socket.bind(&address.into())?;
    Ok(TcpListener::from_std(socket.into()))
}

/// What is set on a listener, accepted sockets inherit, which saves system calls for each.
fn set(socket: SockRef<'_>, config: &Config) -> io::Result<()> {
    socket.set_tcp_nodelay(!config.nagle)?;
    // A peer that acknowledges nothing for this long is gone, whatever TCP hopes.
    socket.set_tcp_user_timeout(Some(config.limits.write_timeout))?;
    if let Some(bytes) = config.limits.max_send_buffer_bytes {
        socket.set_send_buffer_size(bytes)?;
    }
    if let Some(bytes) = config.limits.max_receive_buffer_bytes {
        socket.set_recv_buffer_size(bytes)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is set on the listener must reach the sockets that it accepts: nobody sets it there.
    #[test]
    fn accepted_sockets_are_set_as_the_listener_is() {
        for is_changed in [false, true] {
            let mut config = Config::new("127.0.0.1:0".parse().unwrap());
            config.nagle = is_changed;
            config.limits.max_receive_buffer_bytes = is_changed.then_some(50_000);
            config.limits.max_send_buffer_bytes = Some(70_000);
            let listener = listener(config.listen, &config).unwrap();
            listen(std::slice::from_ref(&listener)).unwrap();
            let _client = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            let accepted = loop {
                match listener.accept() {
                    Ok((socket, _)) => break socket,
                    Err(e) => assert_eq!(e.kind(), io::ErrorKind::WouldBlock),
                }
            };
            assert_eq!(accepted.nodelay().unwrap(), !is_changed);
            let socket = SockRef::from(&accepted);
            // The kernel doubles what it is asked for, to have room for its own records (socket(7)).
            assert_eq!(socket.send_buffer_size().unwrap(), 140_000);
            assert_eq!(socket.recv_buffer_size().unwrap() == 100_000, is_changed);
        }
    }
}
