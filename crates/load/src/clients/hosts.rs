//! Hosts whose clients share a few HTTP/1.1 connections, as the tabs of a browser do.
//!
//! A browser keeps at most six connections to a server, whatever the number of its tabs (Chromium:
//! `net/socket/client_socket_pool_manager.cc`; Firefox: `network.http.max-persistent-connections-per-server`;
//! HTTP itself names no number any more: RFC 9112, section 9.4). A request that finds none free waits for its turn;
//! an answer that is whole frees its connection for whoever is next. WebSockets have a limit of their own there,
//! hundreds, and are not counted here.

use crate::connection::{Connections, Owner, Protocol, Side, Stream};
use pushlab_workload::traffic::HostLimit;
use std::collections::VecDeque;

/// What a request is given.
#[derive(Debug)]
pub(super) enum Obtained {
    /// A stream on a connection of the host's.
    Kept(Stream),
    /// The right to open a connection.
    Fresh,
    /// Nothing yet: it is in the queue.
    Later,
}

#[derive(Debug, Default)]
struct Host {
    /// Connections, those that are being opened too.
    open: u32,
    /// Those of them that have room for a stream: with HTTP/1.1, that nobody uses.
    free: Vec<u32>,
    /// Requests without a connection, first come, first served; two for each client at most.
    queue: VecDeque<(usize, Side)>,
}

/// The hosts of a loop.
#[derive(Debug)]
pub(super) struct Hosts {
    limit: HostLimit,
    hosts: Vec<Host>,
    /// Whether a client's sides are in its host's queue.
    is_queued: Vec<[bool; 2]>,
    /// Clients whose receiving side is.
    queued_down: u32,
    /// Hosts that something was freed at.
    freed: Vec<usize>,
    /// Who was taken from the queue last.
    next: Option<(usize, Side)>,
}

impl Hosts {
    /// Hosts of so many clients, none of which is connected.
    pub fn new(limit: HostLimit, clients: u32) -> Self {
        Self {
            limit,
            hosts: (0..clients.div_ceil(limit.clients)).map(|_| Host::default()).collect(),
            is_queued: vec![[false; 2]; clients as usize],
            queued_down: 0,
            freed: Vec::new(),
            next: None,
        }
    }

    /// Clients that wait for a connection to receive on.
    pub fn queued_down(&self) -> u32 {
        self.queued_down
    }

    /// Asks for a connection: one that is free, else a new one, else a place in the queue.
    pub fn obtain<P: Protocol>(&mut self, owner: Owner, connections: &mut Connections<P>) -> Obtained {
        let (client, side) = (owner.client(), owner.side);
        let is_next = self.next.take_if(|next| *next == (client, side)).is_some();
        let host = &mut self.hosts[client / self.limit.clients as usize];
        if is_next || host.queue.is_empty() {
            // The one used last is the least likely to have been closed meanwhile.
            while let Some(&number) = host.free.last() {
                let connection = connections.at(number);
                let opened = connection.and_then(|connection| Some((connection.open(owner)?, connection)));
                if let Some((on_it, connection)) = opened {
                    if !connection.protocol.has_room() {
                        host.free.pop();
                    }
                    return Obtained::Kept(Stream { connection: number, number: on_it });
                }
                host.free.pop();
                // One that is shared is full, or the peer allows fewer streams than it seemed.
                if !P::IS_SHARED {
                    connections.close(number);
                    host.open -= 1;
                }
            }
            if host.open < self.limit.connections_max {
                host.open += 1;
                return Obtained::Fresh;
            }
        }
        if !std::mem::replace(&mut self.is_queued[client][side as usize], true) {
            host.queue.push_back((client, side));
            self.queued_down += u32::from(side == Side::Down);
        }
        Obtained::Later
    }

    /// Takes a connection that has room for a stream, for others: with HTTP/1.1, one whose answer is whole.
    pub fn release(&mut self, client: usize, connection: u32) {
        let host = client / self.limit.clients as usize;
        if !self.hosts[host].free.contains(&connection) {
            self.hosts[host].free.push(connection);
        }
        self.freed.push(host);
    }

    /// Notes that a connection of a client's host has ended, or was never opened.
    pub fn has_closed(&mut self, client: usize, connection: Option<u32>) {
        let host = client / self.limit.clients as usize;
        self.hosts[host].free.retain(|&free| Some(free) != connection);
        self.hosts[host].open -= 1;
        self.freed.push(host);
    }

    /// Whose turn it is, now that something has been freed: the next [`Self::obtain`] to that side is not refused.
    pub fn next_waiting(&mut self) -> Option<(usize, Side)> {
        self.next = None;
        loop {
            let host = &mut self.hosts[*self.freed.last()?];
            let has_room = !host.free.is_empty() || host.open < self.limit.connections_max;
            match host.queue.pop_front_if(|_| has_room) {
                Some((client, side)) => {
                    self.is_queued[client][side as usize] = false;
                    self.queued_down -= u32::from(side == Side::Down);
                    self.next = Some((client, side));
                    return self.next;
                }
                None => self.freed.pop(),
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::connection::{Http1, Outgoing};
    use proptest::prelude::*;

    fn short(obtained: &Obtained) -> &'static str {
        match obtained {
            Obtained::Kept(_) => "kept",
            Obtained::Fresh => "fresh",
            Obtained::Later => "later",
        }
    }

    /// A connection that stands and that nobody uses, and its peer.
    fn connection(connections: &mut Connections<Http1>) -> (u32, std::net::TcpStream) {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let dialler = crate::dial::Dialler::new(listener.local_addr().unwrap());
        let (poll, owner) = (mio::Poll::new().unwrap(), Owner::new(1, Side::Down));
        let stream = connections.open(&dialler, None, poll.registry(), owner).unwrap();
        let peer = listener.accept().unwrap().0;
        let kept = connections.at(stream.connection).unwrap();
        while kept.socket.offer(b"x").unwrap() == 0 {}
        assert!(kept.protocol.close(0, true, &mut Outgoing::default()));
        (stream.connection, peer)
    }

    #[test]
    fn the_first_to_wait_is_the_first_to_be_served() {
        let mut hosts = Hosts::new(HostLimit { connections_max: 2, clients: 3 }, 5);
        let connections = &mut Connections::<Http1>::with_capacity(1);
        assert_eq!(short(&hosts.obtain(Owner::new(0, Side::Down), connections)), "fresh");
        assert_eq!(short(&hosts.obtain(Owner::new(1, Side::Down), connections)), "fresh");
        assert_eq!(short(&hosts.obtain(Owner::new(2, Side::Down), connections)), "later");
        assert_eq!(short(&hosts.obtain(Owner::new(0, Side::Up), connections)), "later");
        assert_eq!(
            short(&hosts.obtain(Owner::new(0, Side::Up), connections)),
            "later",
            "and is not in the queue twice"
        );
        assert_eq!(short(&hosts.obtain(Owner::new(3, Side::Down), connections)), "fresh", "another host");
        assert_eq!((hosts.next_waiting(), hosts.queued_down()), (None, 1));
        let (kept, peer) = connection(connections);
        hosts.release(1, kept);
        assert_eq!(short(&hosts.obtain(Owner::new(1, Side::Down), connections)), "later", "nobody overtakes the queue");
        assert_eq!(hosts.next_waiting(), Some((2, Side::Down)));
        let obtained = hosts.obtain(Owner::new(2, Side::Down), connections);
        assert_eq!((short(&obtained), hosts.next_waiting()), ("kept", None));
        let Obtained::Kept(Stream { connection: kept, .. }) = obtained else { unreachable!() };
        drop(peer);
        connections.at(kept).unwrap().protocol.close(0, true, &mut Outgoing::default());
        hosts.release(2, kept);
        assert_eq!(hosts.next_waiting(), Some((0, Side::Up)));
        assert_eq!(short(&hosts.obtain(Owner::new(0, Side::Up), connections)), "fresh", "the other has been closed");
        assert_eq!((hosts.next_waiting(), hosts.queued_down()), (None, 1));
        hosts.has_closed(0, None);
        assert_eq!(hosts.next_waiting(), Some((1, Side::Down)));
    }

    proptest! {
        #[test]
        fn the_limit_is_never_passed_and_nobody_is_forgotten(
            asks in prop::collection::vec((0usize..6, any::<bool>()), 1..60),
            connections_max in 1u32..4,
        ) {
            let mut hosts = Hosts::new(HostLimit { connections_max, clients: 6 }, 6);
            let connections = &mut Connections::<Http1>::with_capacity(1);
            let mut open = 0;
            let mut waiting = VecDeque::new();
            for (client, asks_up) in asks {
                let side = if asks_up { Side::Up } else { Side::Down };
                match hosts.obtain(Owner::new(client, side), connections) {
                    Obtained::Fresh => open += 1,
                    Obtained::Later if !waiting.contains(&(client, side)) => waiting.push_back((client, side)),
                    _ => {}
                }
                prop_assert!(open <= connections_max);
                prop_assert!(waiting.is_empty() || open == connections_max);
            }
            while open > 0 {
                hosts.has_closed(0, None);
                open -= 1;
                while let Some((client, side)) = hosts.next_waiting() {
                    prop_assert_eq!(Some((client, side)), waiting.pop_front());
                    prop_assert_eq!(short(&hosts.obtain(Owner::new(client, side), connections)), "fresh");
                    open += 1;
                }
                prop_assert!(open <= connections_max);
            }
            prop_assert!(waiting.is_empty());
            prop_assert_eq!(hosts.queued_down(), 0);
        }
    }
}
