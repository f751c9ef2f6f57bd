//! Whether a target can be reached at all, before anybody waits for its clients.

use crate::dial::Dialler;
use crate::socket::Read;
use mio::{Events, Interest, Poll, Token};
use pushlab_workload::plan::{Http, Target};
use std::io;
use std::time::{Duration, Instant};

/// Connects once, with a TLS handshake where the target has TLS.
///
/// # Errors
/// What a client would meet there: an address without a listener, a certificate that cannot be trusted, silence.
pub fn reach(target: &Target, within: Duration) -> io::Result<()> {
    let deadline = Instant::now() + within;
    let mut socket = Dialler::to(target, Http::Http11).map_err(io::Error::other)?.dial(None)?;
    let mut poll = Poll::new()?;
    poll.registry().register(socket.stream_mut(), Token(0), Interest::READABLE | Interest::WRITABLE)?;
    let (mut events, mut buffer) = (Events::with_capacity(1), vec![0; 16 * 1024]);
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            let what = if target.tls.is_some() { "a TLS handshake" } else { "a connection" };
            return Err(io::Error::new(io::ErrorKind::TimedOut, format!("{what} took longer than {within:?}")));
        }
        match poll.poll(&mut events, Some(left)) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            result => result?,
        }
        if events.is_empty() {
            continue;
        }
        socket.flush()?;
        match socket.read(&mut buffer)? {
            Read::Established => return Ok(()),
            _ if !socket.is_handshaking() => return Ok(()),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pushlab_workload::plan::{TlsTarget, Trust};
    use std::net::{Ipv4Addr, TcpListener};

    const SOON: Duration = Duration::from_millis(300);

    #[test]
    fn a_listener_is_reached_and_a_closed_port_is_not() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let target = Target::plain(listener.local_addr().unwrap());
        reach(&target, Duration::from_secs(5)).unwrap();
        let closed = Target::plain((Ipv4Addr::LOCALHOST, 1).into());
        assert_eq!(reach(&closed, Duration::from_secs(5)).unwrap_err().kind(), io::ErrorKind::ConnectionRefused);
    }

    #[test]
    fn who_listens_and_says_nothing_does_not_speak_tls() {
        let certificate = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap().cert.pem();
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let tls = TlsTarget { server_name: "localhost".to_owned(), trust: Trust::Certificate(certificate) };
        let target = Target { tls: Some(tls), ..Target::plain(listener.local_addr().unwrap()) };
        let error = reach(&target, SOON).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut, "{error}");
        assert!(error.to_string().starts_with("a TLS handshake took longer"), "{error}");
    }
}
