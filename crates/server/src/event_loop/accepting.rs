//! New connections.

use super::{EventLoop, LISTENER, token};
use crate::carrier::Carrier;
use crate::connection::Connection;
use crate::stats::{add, shift};
use crate::stream::Stream;
use mio::Interest;
use mio::net::TcpStream;
use pushlab_access::{LimitReached, Peer};
use pushlab_session::answer;
use pushlab_session::gate::{Audience, Identity};
use pushlab_session::unsent::write_some;
use pushlab_tls::certificate::Tls;
use pushlab_wire::codes::ErrorCode;
use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Connections accepted in one turn.
const MAX_ACCEPTS: usize = 64;
/// None is accepted while more than so many wait for their turn.
const MAX_WAITING: usize = 4 * MAX_ACCEPTS;
/// How long an accept that failed for want of descriptors waits.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

impl EventLoop {
    pub(super) fn accept(&mut self) {
        // What more of them send would only wait in the kernel.
        if self.unfinished.len() > MAX_WAITING {
            self.accept_again = Some(self.now);
            return;
        }
        self.accept_again = None;
        (0..self.listeners.len()).for_each(|index| self.accept_from(index));
    }

    fn accept_from(&mut self, index: usize) {
        if !self.is_accepting {
            return;
        }
        for _ in 0..MAX_ACCEPTS {
            match self.listeners[index].accept() {
                Ok((socket, peer)) => self.admit(socket, peer.ip()),
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => return,
                Err(e) if e.kind() == io::ErrorKind::ConnectionAborted => {}
                // No descriptors or no memory: those who wait in the backlog are served when others leave.
                Err(_) => {
                    self.accept_again = Some(self.now + ACCEPT_PAUSE);
                    return;
                }
            }
        }
        self.accept_again = Some(self.now);
    }

    /// Takes connections, or leaves them to wait in the listeners' queues.
    ///
    /// # Errors
    /// Those of the poller.
    pub(super) fn set_accepting(&mut self, is_accepting: bool) -> io::Result<()> {
        if is_accepting == self.is_accepting {
            return Ok(());
        }
        self.is_accepting = is_accepting;
        let registry = self.poll.registry();
        self.listeners.iter_mut().try_for_each(|listener| match is_accepting {
            true => registry.register(listener, LISTENER, Interest::READABLE),
            false => registry.deregister(listener),
        })
    }

    fn admit(&mut self, socket: TcpStream, peer: IpAddr) {
        let is_secure = self.shared.tls.is_some();
        // An answer through TLS would need a handshake, which costs more than most that a connection asks for.
        let turn_away = |this: &mut Self, socket, code, text: &str| {
            if !is_secure {
                this.turn_away(Stream::Plain(socket), code, text);
            }
        };
        if !self.has_room() {
            let text = self.is_full();
            return turn_away(self, socket, ErrorCode::TooManyConnections, &text);
        }
        let peer = match self.enter(Some(peer)) {
            Ok(peer) => peer,
            Err(LimitReached(text)) => return turn_away(self, socket, ErrorCode::LimitReached, &text),
        };
        match Stream::accept(socket, self.shared.tls.as_ref().map(Tls::config)) {
            Ok(stream) => {
                let _ = self.adopt(stream, peer);
            }
            Err(_) => {
                self.shared.open.fetch_sub(1, Ordering::Relaxed);
                add(&self.counters.tls_failures, 1);
            }
        }
    }

    /// Takes a connection that somebody else carries.
    pub(super) fn admit_carried(&mut self, carrier: Box<dyn Carrier>) {
        if self.drain.is_some() {
            // Dropping it tells its end.
            return;
        }
        if !self.has_room() {
            let text = self.is_full();
            return self.turn_away(Stream::Carried(carrier), ErrorCode::TooManyConnections, &text);
        }
        match self.enter(carrier.peer_address().ok().map(|address| address.ip())) {
            Ok(peer) => {
                let _ = self.adopt(Stream::Carried(carrier), peer);
            }
            Err(LimitReached(text)) => self.turn_away(Stream::Carried(carrier), ErrorCode::LimitReached, &text),
        }
    }

    /// Counts a new connection; says whether there is room for it.
    pub(super) fn has_room(&mut self) -> bool {
        add(&self.counters.accepted, 1);
        self.count_accepted();
        let has_room = self.shared.open.fetch_add(1, Ordering::Relaxed) < self.limits().max_connections;
        if !has_room {
            self.shared.open.fetch_sub(1, Ordering::Relaxed);
            add(&self.counters.refused, 1);
        }
        has_room
    }

    fn is_full(&self) -> String {
        format!("the server holds {} connections, as many as it may", self.limits().max_connections)
    }

    /// Takes a place for a socket, which is counted as open, among those of its address, where an access file says who may
    /// do what.
    fn enter(&self, address: Option<IpAddr>) -> Result<Option<Arc<Peer>>, LimitReached> {
        let (Some(access), Some(address)) = (&self.shared.rules.gate.access, address) else { return Ok(None) };
        let address = address.to_canonical();
        if self.shared.rules.gate.trusted_proxies.contain(address) {
            return Ok(Some(Arc::new(Peer::proxy(address))));
        }
        let now_ns = (self.now - self.start).as_nanos() as u64;
        let peer = access.ledger.accept(address, &access.rules().address_quota, now_ns).inspect_err(|_| {
            self.shared.open.fetch_sub(1, Ordering::Relaxed);
            add(&self.counters.refused, 1);
        });
        Ok(Some(Arc::new(peer?)))
    }

    /// Counts it in its second too: the best second tells how fast clients can come back.
    fn count_accepted(&mut self) {
        let (second, count) = &mut self.accepted_in;
        if self.now.saturating_duration_since(*second) >= Duration::from_secs(1) {
            (*second, *count) = (self.now, 0);
        }
        *count += 1;
        if *count > self.counters.best_second.load(Ordering::Relaxed) {
            self.counters.best_second.store(*count, Ordering::Relaxed);
        }
    }

    /// The answer goes out before the request is read, so that refusing costs next to nothing.
    fn turn_away(&mut self, mut stream: Stream, code: ErrorCode, text: &str) {
        let gate = &self.shared.rules.gate;
        // Who it is for is not known; where all pages are admitted, any of them may read it.
        let audience = Audience { readers: gate.asks_first(Identity::UNKNOWN), ..gate.common_audience() };
        let _ = write_some(&mut stream, &answer::refusal(code, text, audience));
        let _ = stream.shut_down();
        let _ = stream.read(&mut self.read_buffer);
    }

    /// Takes a connection that is already counted as open; gives its place, unless it has ended at once.
    pub(super) fn adopt(&mut self, stream: Stream, peer: Option<Arc<Peer>>) -> Option<usize> {
        shift(&self.counters.open, 1);
        let id = self.connections.insert(Connection::new(stream, self.wheel.now()));
        self.generation = self.generation.wrapping_add(1);
        let generation = self.generation;
        let connection = &mut self.connections[id];
        (connection.generation, connection.peer) = (generation, peer);
        match &mut connection.stream {
            Stream::Carried(carrier) => {
                let inbox = self.inbox.clone();
                carrier.attach(Box::new(move || inbox.tell_ready(id, generation)));
                // What came before is told by nobody.
                self.go_on_later(id);
            }
            Stream::Http2(_) => {}
            stream => {
                let interest = Interest::READABLE | Interest::WRITABLE;
                let registered = stream
                    .socket_mut()
                    .map_or(Ok(()), |socket| self.poll.registry().register(socket, token(id, generation), interest));
                if registered.is_err() {
                    self.close(id);
                    return None;
                }
            }
        }
        self.set_deadline(id, self.limits().head_timeout);
        Some(id)
    }
}
