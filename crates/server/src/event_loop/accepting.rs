//! New connections.

use super::{EventLoop, token};
use crate::connection::Connection;
use crate::stats::{add, shift};
use crate::stream::Stream;
use crate::tls::Tls;
use mio::Interest;
use mio::net::TcpStream;
use pushlab_session::answer;
use pushlab_session::unsent::write_some;
use pushlab_wire::codes::ErrorCode;
use std::io::{self, Read};
use std::net::Shutdown;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Connections accepted in one turn.
const MAX_ACCEPTS: usize = 256;
/// How long an accept that failed for want of descriptors waits.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

impl EventLoop {
    pub(super) fn accept(&mut self) {
        self.accept_again = None;
        for _ in 0..MAX_ACCEPTS {
            let Some(listener) = &self.listener else { return };
            match listener.accept() {
                Ok((socket, _)) => self.admit(socket),
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

    pub(super) fn admit(&mut self, mut socket: TcpStream) {
        add(&self.counters.accepted, 1);
        let max = self.limits().max_connections;
        if self.shared.open.fetch_add(1, Ordering::Relaxed) >= max {
            self.shared.open.fetch_sub(1, Ordering::Relaxed);
            add(&self.counters.refused, 1);
            if self.shared.tls.is_some() {
                // An answer would need a handshake, which costs more than most that a connection asks for.
                return;
            }
            // The answer goes out before the request is read, so that refusing costs next to nothing.
            let text = format!("the server holds {max} connections, as many as it may");
            let answer = answer::refusal(ErrorCode::TooManyConnections, &text);
            let _ = write_some(&mut socket, &answer);
            let _ = socket.shutdown(Shutdown::Write);
            let _ = socket.read(&mut self.read_buffer);
            return;
        }
        let Ok(stream) = Stream::accept(socket, self.shared.tls.as_ref().map(Tls::config)) else {
            self.shared.open.fetch_sub(1, Ordering::Relaxed);
            return add(&self.counters.tls_failures, 1);
        };
        shift(&self.counters.open, 1);
        let connection = Connection::new(stream, self.wheel.now());
        if let Some(id) = self.adopt(connection) {
            self.set_deadline(id, self.limits().head_timeout);
        }
    }

    /// Registers a connection that is already counted as open.
    pub(super) fn adopt(&mut self, connection: Connection) -> Option<usize> {
        let id = self.connections.insert(connection);
        self.generation = self.generation.wrapping_add(1);
        let token = token(id, self.generation);
        let connection = &mut self.connections[id];
        connection.generation = self.generation;
        let interest = Interest::READABLE | Interest::WRITABLE;
        match self.poll.registry().register(connection.stream.socket_mut(), token, interest) {
            Ok(()) => Some(id),
            Err(_) => {
                self.close(id);
                None
            }
        }
    }
}
