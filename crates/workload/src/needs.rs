//! What a run's clients need of a machine, so that one that cannot be is refused before anybody waits for it.
//!
//! Memory is computed from what silent clients, and clients in ten rooms each, were measured to take: docs/experiments.md
//! has the figures. It is what stands before anything is sent; buffers of slow subscribers have limits of their own.

use crate::plan::{CLIENTS_PER_SOURCE, Plan, Sources};
use crate::plan_checks::BadPlan;
use crate::roles::Roles;

/// Kernel memory of one connection, both of its ends on this machine, bytes.
pub const CONNECTION_KERNEL_BYTES: u64 = 8_200;
/// Memory of the load for each connection of a client that speaks in frames, bytes.
pub const FRAMES_LOAD_BYTES: u64 = 520;
/// The same for each connection that carries requests.
pub const REQUESTS_LOAD_BYTES: u64 = 760;
/// Memory of our server for each connection, bytes.
pub const CONNECTION_SERVER_BYTES: u64 = 260;
/// Memory of our server for each place of a client in a room, bytes.
pub const PLACE_SERVER_BYTES: u64 = 120;
/// Memory of the load for each place of a client in a room, bytes: who is where, and what was seen there.
pub const PLACE_LOAD_BYTES: u64 = 32;
/// Memory of either side without any clients, bytes.
pub const PROCESS_BYTES: u64 = 16 << 20;

/// Whose server the clients are of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ServerKind {
    /// Ours, whose event loops may have tables of descriptors of their own.
    Ours,
    /// Somebody else's on this machine: a process with one table. What memory it takes is not known.
    Foreign,
    /// On another machine, or at least not started here.
    Elsewhere,
}

/// What the clients of a plan need.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Needs {
    /// Event loops of the load.
    pub loops: u32,
    /// Descriptors of each of them.
    pub loop_descriptors: u64,
    /// Event loops of the server, where it is ours; one elsewhere.
    pub server_loops: u32,
    /// Descriptors that each of these needs, as far as it is a process of this machine.
    pub server_descriptors: u64,
    /// Connections.
    pub connections: u64,
    /// Sockets of both sides, as far as they are on this machine.
    pub sockets: u64,
    /// Clients behind one source address.
    pub source_clients: u32,
    /// Source addresses.
    pub sources: u32,
    /// Memory of our server, bytes.
    pub server_bytes: u64,
    /// Memory of the load, bytes.
    pub load_bytes: u64,
    /// Memory of the kernel, bytes.
    pub kernel_bytes: u64,
}

impl Needs {
    /// Of a plan whose loops may hold so many descriptors each.
    ///
    /// # Errors
    /// See [`BadPlan`].
    pub fn of(plan: &Plan, server: ServerKind, descriptors_max: u64) -> Result<Self, BadPlan> {
        let roles = Roles::of(plan, descriptors_max)?;
        let connections = roles.connections(plan);
        let places = roles.rooms().map_or(0, |rooms| u64::from(plan.clients) * u64::from(rooms.per_client()));
        let server_loops = if server == ServerKind::Ours { roles.loops_of_server(plan, descriptors_max) } else { 1 };
        let is_here = server != ServerKind::Elsewhere;
        // Two ends share what is the connection's.
        let ends = if is_here { 2 } else { 1 };
        let of_load = if plan.publishes_in_frames() { FRAMES_LOAD_BYTES } else { REQUESTS_LOAD_BYTES };
        let (source_clients, sources) = sources(plan);
        Ok(Self {
            loops: roles.loops,
            loop_descriptors: roles.descriptors(plan, roles.loops),
            server_loops,
            server_descriptors: if is_here { roles.descriptors(plan, server_loops) } else { 0 },
            connections,
            sockets: ends * connections,
            source_clients,
            sources,
            server_bytes: match server {
                ServerKind::Ours => PROCESS_BYTES + connections * CONNECTION_SERVER_BYTES + places * PLACE_SERVER_BYTES,
                ServerKind::Foreign | ServerKind::Elsewhere => 0,
            },
            load_bytes: PROCESS_BYTES + connections * of_load + places * PLACE_LOAD_BYTES,
            kernel_bytes: connections * CONNECTION_KERNEL_BYTES * ends / 2,
        })
    }

    /// All of the memory, bytes.
    pub fn bytes(&self) -> u64 {
        self.server_bytes + self.load_bytes + self.kernel_bytes
    }
}

/// Clients that leave from one address, and the addresses.
fn sources(plan: &Plan) -> (u32, u32) {
    let each = match plan.sources {
        Sources::From { clients_each, .. } => clients_each,
        Sources::Usual if plan.target.address.ip().is_loopback() => CLIENTS_PER_SOURCE,
        Sources::Usual => plan.clients,
    };
    (each.min(plan.clients), plan.clients.div_ceil(each.max(1)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::fixtures::plan;
    use crate::scenario::Scenario;
    use core::net::Ipv4Addr;
    use pushlab_wire::transport::Transport;

    fn rooms(clients: u32) -> Plan {
        let scenario = Scenario::Rooms { rooms: 100, rooms_per_client: 10, interval_us: 1_000_000, payload_bytes: 50 };
        Plan { transport: Transport::WebSocket, loops: 1, ..plan(clients, scenario) }
    }

    #[test]
    fn two_hundred_thousand_clients_take_twelve_tables_on_either_side() {
        let needs = Needs::of(&rooms(200_000), ServerKind::Ours, 20_000).unwrap();
        assert_eq!((needs.loops, needs.server_loops, needs.sockets), (11, 12, 400_000));
        assert!(needs.loop_descriptors <= 20_000 && needs.server_descriptors <= 20_000);
        assert_eq!((needs.source_clients, needs.sources), (10_000, 20));
        assert_eq!(needs.kernel_bytes, 200_000 * CONNECTION_KERNEL_BYTES);
        let places = 200_000 * 10 * (PLACE_SERVER_BYTES + PLACE_LOAD_BYTES);
        let silent = Plan { scenario: Scenario::Idle, ..rooms(200_000) };
        let silent = Needs::of(&silent, ServerKind::Ours, 20_000).unwrap();
        assert_eq!(needs.bytes() - silent.bytes(), places);
    }

    #[test]
    fn a_foreign_server_has_one_table_and_one_elsewhere_takes_nothing_here() {
        let foreign = Needs::of(&rooms(50_000), ServerKind::Foreign, 20_000).unwrap();
        assert_eq!((foreign.server_loops, foreign.server_bytes), (1, 0));
        assert!(foreign.server_descriptors > 50_000 && foreign.loop_descriptors <= 20_000);
        let elsewhere = Needs::of(&rooms(50_000), ServerKind::Elsewhere, 20_000).unwrap();
        assert_eq!((elsewhere.server_descriptors, elsewhere.sockets), (0, 50_000));
        assert_eq!(elsewhere.kernel_bytes * 2, foreign.kernel_bytes);
    }

    #[test]
    fn who_posts_on_connections_of_their_own_needs_twice_as_many() {
        let held = |clients| Plan { transport: Transport::LongPolling, ..rooms(clients) };
        let [one, two] = [Transport::WebSocket, Transport::LongPolling]
            .map(|transport| Needs::of(&Plan { transport, ..rooms(9_000) }, ServerKind::Ours, 20_000).unwrap().sockets);
        assert_eq!((one, two), (18_000, 36_000));
        let silent = Plan { scenario: Scenario::Idle, ..held(50_000) };
        assert_eq!(Needs::of(&silent, ServerKind::Ours, 20_000).unwrap().sockets, 100_000);
        assert!(Needs::of(&held(1_300_000), ServerKind::Ours, 20_000).is_err(), "more loops than there may be");
    }

    #[test]
    fn addresses_are_spread_where_the_plan_spreads_them() {
        let first = Ipv4Addr::new(10, 83, 1, 0);
        let spread = Plan { sources: Sources::From { first, clients_each: 500 }, ..rooms(1_200) };
        assert_eq!(sources(&spread), (500, 3));
        let mut far = rooms(1_200);
        far.target.address = "10.0.0.1:80".parse().unwrap();
        assert_eq!(sources(&far), (1_200, 1), "the kernel chooses one");
        assert_eq!(sources(&rooms(5)), (5, 1));
    }
}
