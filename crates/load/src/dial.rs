//! Opening connections: where to, from where, and how their sockets are set.

use crate::socket::Socket;
use crate::tls::{BadCertificate, TlsClient};
use mio::net::TcpStream;
use pushlab_os::Errno;
use pushlab_os::socket::choose_port_late;
use pushlab_workload::plan::{CLIENTS_PER_SOURCE, Http, Plan, Sources, Target};
use socket2::{Domain, Type};
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

/// From so many clients of a process on, its source addresses on loopback are spread.
const SPREAD_FROM_CLIENTS: u32 = 1_000;

/// The source address of one client of many; `None` leaves it to the kernel.
///
/// Processes on one host get different addresses of loopback, so that a fleet does not run out of ports.
fn source_address(sources: Sources, target: IpAddr, client: u32, clients: u32, process: u32) -> Option<Ipv4Addr> {
    let IpAddr::V4(target) = target else { return None };
    match sources {
        Sources::From { first, clients_each } => {
            Some(Ipv4Addr::from_bits(first.to_bits().saturating_add(client / clients_each.max(1))))
        }
        Sources::Usual if target.is_loopback() && clients >= SPREAD_FROM_CLIENTS => {
            let second = 1 + process % 250;
            let third = process / 250 % 250;
            let fourth = 1 + client / CLIENTS_PER_SOURCE % 250;
            Some(Ipv4Addr::new(127, second as u8, third as u8, fourth as u8))
        }
        Sources::Usual => None,
    }
}

/// Where connections go and how they are set: what all of one loop have in common.
#[derive(Debug, Clone)]
pub struct Dialler {
    target: SocketAddr,
    sources: Sources,
    from: Option<Ipv4Addr>,
    nagle: bool,
    delays_acks: bool,
    send_buffer_bytes: Option<u32>,
    receive_buffer_bytes: Option<u32>,
    tls: Option<TlsClient>,
}

impl Dialler {
    /// Plain connections that send at once.
    pub fn new(target: SocketAddr) -> Self {
        Self {
            target,
            sources: Sources::Usual,
            from: None,
            nagle: false,
            delays_acks: false,
            send_buffer_bytes: None,
            receive_buffer_bytes: None,
            tls: None,
        }
    }

    /// Connections to a target that send at once, by TLS where it has that, for a version of HTTP.
    ///
    /// # Errors
    /// With TLS and no certificate to trust.
    pub fn to(target: &Target, http: Http) -> Result<Self, BadCertificate> {
        let tls = target.tls.as_ref().map(|tls| TlsClient::of(tls, http)).transpose()?;
        Ok(Self { tls, ..Self::new(target.address) })
    }

    /// Connections as a plan has them.
    ///
    /// # Errors
    /// With TLS and no certificate to trust.
    pub fn of(plan: &Plan) -> Result<Self, BadCertificate> {
        let sockets = &plan.sockets;
        Ok(Self {
            sources: plan.sources,
            nagle: sockets.nagle,
            delays_acks: sockets.delayed_acks,
            send_buffer_bytes: sockets.send_buffer_bytes,
            receive_buffer_bytes: sockets.receive_buffer_bytes,
            ..Self::to(&plan.target, plan.http())?
        })
    }

    /// The same for another version of HTTP.
    pub fn over(self, http: Http) -> Self {
        Self { tls: self.tls.as_ref().map(|tls| tls.over(http)), ..self }
    }

    /// The same from one source address, if one is given.
    pub fn leaving_from(self, address: Option<Ipv4Addr>) -> Self {
        Self { from: address, ..self }
    }

    /// Where one client of so many in this process comes from; `None` leaves it to the kernel.
    pub fn source_of(&self, client: u32, clients: u32) -> Option<Ipv4Addr> {
        source_address(self.sources, self.target.ip(), client, clients, std::process::id())
    }

    /// Whether they speak TLS.
    #[inline]
    pub fn has_tls(&self) -> bool {
        self.tls.is_some()
    }

    /// Whether connections are to delay acknowledgements: see [`Socket::delay_acks`].
    pub fn delays_acks(&self) -> bool {
        self.delays_acks
    }

    /// Begins to connect, from the dialler's own source address, or else the given one, if any. What is queued is
    /// sent when the connection stands.
    ///
    /// # Errors
    /// When there is no descriptor or port left, or the kernel refuses at once.
    pub fn dial(&self, source: Option<Ipv4Addr>) -> io::Result<Socket> {
        let socket =
            socket2::Socket::new(Domain::for_address(self.target), Type::STREAM.nonblocking().cloexec(), None)?;
        socket.set_tcp_nodelay(!self.nagle)?;
        // Before it connects: the window's scale is announced in the first segment (RFC 7323, section 2.2).
        if let Some(bytes) = self.send_buffer_bytes {
            socket.set_send_buffer_size(bytes as usize)?;
        }
        if let Some(bytes) = self.receive_buffer_bytes {
            socket.set_recv_buffer_size(bytes as usize)?;
        }
        if let Some(source) = self.from.or(source) {
            choose_port_late(&socket)?;
            socket.bind(&SocketAddr::from((source, 0)).into())?;
        }
        match socket.connect(&self.target.into()) {
            Err(error) if error.raw_os_error() != Some(Errno::INPROGRESS.raw_os_error()) => return Err(error),
            _ => {}
        }
        let stream = TcpStream::from_std(socket.into());
        match &self.tls {
            None => Ok(Socket::from_stream(stream)),
            Some(tls) => Ok(Socket::with_tls(stream, tls.open()?)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pushlab_workload::plan::Sockets;
    use std::io::Read as _;
    use std::net::TcpListener;

    #[test]
    fn sources_are_spread_only_where_it_is_needed() {
        let usual = |target: &str, client, clients| {
            source_address(Sources::Usual, target.parse().unwrap(), client, clients, 77)
        };
        assert_eq!(usual("127.0.0.1", 5, 500), None);
        assert_eq!(usual("10.0.0.1", 5, 50_000), None);
        assert_eq!(usual("::1", 5, 50_000), None);
        assert_eq!(usual("127.0.0.1", 9_999, 50_000), Some(Ipv4Addr::new(127, 78, 0, 1)));
        assert_eq!(usual("127.0.0.1", 10_000, 50_000), Some(Ipv4Addr::new(127, 78, 0, 2)));
    }

    #[test]
    fn clients_of_a_network_have_as_many_addresses_as_they_need() {
        let sources = Sources::From { first: Ipv4Addr::new(10, 83, 1, 255), clients_each: CLIENTS_PER_SOURCE };
        let of = |client| source_address(sources, "10.83.0.1".parse().unwrap(), client, 20_001, 77).unwrap();
        let all: std::collections::BTreeSet<Ipv4Addr> = (0..20_001).map(of).collect();
        assert_eq!(
            all.into_iter().collect::<Vec<_>>(),
            [[10, 83, 1, 255], [10, 83, 2, 0], [10, 83, 2, 1]].map(Ipv4Addr::from)
        );
        assert_eq!(source_address(sources, "::1".parse().unwrap(), 0, 1, 77), None);
    }

    #[test]
    fn connects_from_the_address_asked_for() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let dialler = Dialler::new(listener.local_addr().unwrap());
        let [one, another] = [Ipv4Addr::new(127, 9, 8, 7), Ipv4Addr::new(127, 9, 8, 6)];
        for (dialler, source) in [(dialler.clone(), one), (dialler.leaving_from(Some(another)), another)] {
            let mut connection = dialler.dial(Some(one)).unwrap();
            let (mut accepted, peer) = listener.accept().unwrap();
            assert_eq!(peer.ip(), IpAddr::V4(source));
            while connection.offer(b"hello").unwrap() == 0 {}
            let mut text = [0; 5];
            accepted.read_exact(&mut text).unwrap();
            assert_eq!(&text, b"hello");
        }
    }

    #[test]
    fn sockets_are_set_as_the_plan_has_them() {
        let listener = TcpListener::bind("[::1]:0").unwrap();
        let plain = Dialler::new(listener.local_addr().unwrap());
        let set = Dialler {
            nagle: true,
            send_buffer_bytes: Some(20_000),
            receive_buffer_bytes: Some(30_000),
            ..plain.clone()
        };
        let settings = |dialler: &Dialler| {
            let mut connection = dialler.dial(None).unwrap();
            let socket = socket2::SockRef::from(&*connection.stream_mut());
            (socket.tcp_nodelay().unwrap(), socket.send_buffer_size().unwrap(), socket.recv_buffer_size().unwrap())
        };
        // The kernel doubles what it is asked for (socket(7)).
        assert_eq!(settings(&set), (false, 40_000, 60_000));
        let (nodelay, send, receive) = settings(&plain);
        assert!(nodelay && send != 40_000 && receive != 60_000, "{send} {receive}");
        assert_eq!(Sockets::default().send_buffer_bytes, None);
    }
}
