//! Every packet and byte that was offered to the link, by direction, party and use.

use crate::direction::{Fate, Heading};
use crate::flow::{FlowKey, Mix};
use crate::packet::{Kind, Packet, classify, flags};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::{HashMap, VecDeque};
use std::net::IpAddr;

/// Most flows that an [`Accountant`] remembers unless told otherwise. A flow costs about 200 bytes at worst, so
/// these cost 26 MB.
pub const DEFAULT_MAX_FLOWS: usize = 131_072;

/// What was offered to a link since it began, or between two instants.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Totals {
    /// From the subject to the load.
    pub down: Parties,
    /// From the load to the subject.
    pub up: Parties,
    /// Packets with payload of flows that were not remembered, because [`Accountant::new`]'s `max_flows` were: what
    /// they repeat counts as sent for the first time.
    pub untracked_packets: u64,
    /// Acknowledgements of clients that were sent late, see [`crate::acks`]. They are among the packets sent.
    #[serde(default)]
    pub delayed_acks: u64,
    /// Acknowledgements of clients that were never sent, because a later packet said the same and more: a receiver that
    /// delays acknowledgements does not make these. They are among no other packets.
    #[serde(default)]
    pub spared_acks: u64,
}

/// One direction, by whose packets they are.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Parties {
    /// TCP of the clients.
    pub clients: Counts,
    /// TCP of prober and collector, told by their address.
    pub instruments: Counts,
    /// What is not TCP, or is a fragment or no packet at all.
    pub others: Counts,
}

/// Packets and bytes of one party in one direction. Bytes are those of IP packets, headers included.
///
/// For `clients` and `instruments`, `bytes` is the sum of `data_header_bytes`, `payload_bytes`,
/// `retransmitted_bytes`, `ack_bytes` and `control_bytes`, and `packets` that of `data_packets`,
/// `retransmitted_packets`, `ack_packets` and `control_packets`; for `others` all those are 0. What was lost, found
/// the queue full or was held back is contained in them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Counts {
    /// Packets offered.
    pub packets: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Packets with payload that was not sent before.
    pub data_packets: u64,
    /// IP and TCP headers of those.
    pub data_header_bytes: u64,
    /// TCP payload sent for the first time.
    pub payload_bytes: u64,
    /// Packets all of whose payload was sent before.
    pub retransmitted_packets: u64,
    /// The whole of those, headers included, and the repeated part of the payload of others.
    pub retransmitted_bytes: u64,
    /// TCP packets without payload that are not control.
    pub ack_packets: u64,
    /// Their bytes.
    pub ack_bytes: u64,
    /// TCP packets with SYN or RST, or with FIN and no payload.
    pub control_packets: u64,
    /// Their bytes.
    pub control_bytes: u64,
    /// Packets that the medium lost.
    pub lost_packets: u64,
    /// Their bytes.
    pub lost_bytes: u64,
    /// Packets that found the queue full.
    pub queue_full_packets: u64,
    /// Their bytes.
    pub queue_full_bytes: u64,
    /// Packets that were held back so that others overtake them.
    pub reordered_packets: u64,
    /// TCP connections that this side opened: first SYNs, repeated ones not counted.
    pub connections: u64,
}

impl Totals {
    /// What was added since `earlier`, an earlier state of the same accountant.
    pub fn since(&self, earlier: &Self) -> Self {
        self.combine(earlier, u64::saturating_sub)
    }

    /// The sum of both.
    pub fn plus(&self, other: &Self) -> Self {
        self.combine(other, u64::saturating_add)
    }

    fn combine(&self, other: &Self, with: fn(u64, u64) -> u64) -> Self {
        Self {
            down: self.down.combine(&other.down, with),
            up: self.up.combine(&other.up, with),
            untracked_packets: with(self.untracked_packets, other.untracked_packets),
            delayed_acks: with(self.delayed_acks, other.delayed_acks),
            spared_acks: with(self.spared_acks, other.spared_acks),
        }
    }
}

impl Parties {
    /// All parties together.
    pub fn sum(&self) -> Counts {
        self.clients.plus(&self.instruments).plus(&self.others)
    }

    fn combine(&self, other: &Self, with: fn(u64, u64) -> u64) -> Self {
        Self {
            clients: self.clients.combine(&other.clients, with),
            instruments: self.instruments.combine(&other.instruments, with),
            others: self.others.combine(&other.others, with),
        }
    }
}

impl Counts {
    /// The sum of both.
    pub fn plus(&self, other: &Self) -> Self {
        self.combine(other, u64::saturating_add)
    }

    fn combine(&self, other: &Self, with: fn(u64, u64) -> u64) -> Self {
        macro_rules! each {
            ($($field:ident),*) => { Self { $($field: with(self.$field, other.$field)),* } };
        }
        each!(
            packets,
            bytes,
            data_packets,
            data_header_bytes,
            payload_bytes,
            retransmitted_packets,
            retransmitted_bytes,
            ack_packets,
            ack_bytes,
            control_packets,
            control_bytes,
            lost_packets,
            lost_bytes,
            queue_full_packets,
            queue_full_bytes,
            reordered_packets,
            connections
        )
    }

    fn note_fate(&mut self, bytes: u64, fate: Fate) {
        self.packets += 1;
        self.bytes += bytes;
        match fate {
            Fate::Accepted => {}
            Fate::HeldBack => self.reordered_packets += 1,
            Fate::Lost => {
                self.lost_packets += 1;
                self.lost_bytes += bytes;
            }
            Fate::QueueFull => {
                self.queue_full_packets += 1;
                self.queue_full_bytes += bytes;
            }
        }
    }

    fn note_use(&mut self, packet: &Packet, repeated: u32) {
        let bytes = u64::from(packet.bytes);
        match packet.kind {
            Kind::Data if repeated >= packet.payload_bytes => {
                self.retransmitted_packets += 1;
                self.retransmitted_bytes += bytes;
            }
            Kind::Data => {
                self.data_packets += 1;
                self.data_header_bytes += u64::from(packet.header_bytes);
                self.payload_bytes += u64::from(packet.payload_bytes - repeated);
                self.retransmitted_bytes += u64::from(repeated);
            }
            Kind::Ack => {
                self.ack_packets += 1;
                self.ack_bytes += bytes;
            }
            Kind::Control => {
                self.control_packets += 1;
                self.control_bytes += bytes;
            }
            Kind::Other => {}
        }
    }
}

/// Counts every packet that is offered to a link, and knows what was sent before.
#[derive(Debug)]
pub struct Accountant {
    totals: Totals,
    instruments: Option<IpAddr>,
    flows: Flows,
}

impl Accountant {
    /// Counts nothing yet. `instruments` is the address of prober and collector on the load's side; `max_flows` is
    /// how many TCP connections are remembered, [`DEFAULT_MAX_FLOWS`] usually.
    pub fn new(instruments: Option<IpAddr>, max_flows: usize) -> Self {
        Self { totals: Totals::default(), instruments, flows: Flows::new(max_flows) }
    }

    /// Counts a packet that was offered, whatever became of it. Costs well below a microsecond.
    pub fn note(&mut self, heading: Heading, bytes: &[u8], fate: Fate) {
        let packet = classify(bytes).filter(|packet| packet.kind != Kind::Other);
        let parties = match heading {
            Heading::Down => &mut self.totals.down,
            Heading::Up => &mut self.totals.up,
        };
        let Some(packet) = packet else {
            parties.others.note_fate(bytes.len() as u64, fate);
            return;
        };
        let load = match heading {
            Heading::Down => packet.destination,
            Heading::Up => packet.source,
        };
        let counts = if Some(load) == self.instruments { &mut parties.instruments } else { &mut parties.clients };
        counts.note_fate(u64::from(packet.bytes), fate);
        let seen = self.flows.see(heading, &packet);
        counts.note_use(&packet, seen.repeated);
        counts.connections += u64::from(seen.opened);
        self.totals.untracked_packets += u64::from(seen.untracked);
    }

    /// Counts an acknowledgement that is sent late; [`Self::note`] counts the packet.
    pub fn note_delayed_ack(&mut self) {
        self.totals.delayed_acks += 1;
    }

    /// Counts an acknowledgement that is not sent.
    pub fn note_spared_ack(&mut self) {
        self.totals.spared_acks += 1;
    }

    /// Everything since the beginning.
    pub fn totals(&self) -> Totals {
        self.totals
    }
}

/// What a packet means in its flow.
#[derive(Debug, Default)]
struct Seen {
    /// Bytes of its payload that were sent before.
    repeated: u32,
    /// It opens a connection.
    opened: bool,
    /// It has payload, and there was no room to remember its flow.
    untracked: bool,
}

/// The connections that are remembered.
///
/// Closed ones stay until there is no room, because what was lost may be sent again after both sides said FIN.
#[derive(Debug)]
struct Flows {
    flows: HashMap<FlowKey, Flow, Mix>,
    /// In the order in which they closed, with their generation: a key may be in use again.
    closed: VecDeque<(FlowKey, u32)>,
    max_flows: usize,
    generations: u32,
}

/// One connection; pairs are indexed by [`Heading`].
#[derive(Debug, Clone, Copy, Default)]
struct Flow {
    /// Sequence number after the highest one that was sent.
    next: [Option<u32>; 2],
    fin: [bool; 2],
    closed: bool,
    generation: u32,
    /// Sequence number of the SYN that opened it, if that was seen.
    opened_at: Option<u32>,
}

impl Flows {
    fn new(max_flows: usize) -> Self {
        Self { flows: HashMap::with_hasher(Mix), closed: VecDeque::new(), max_flows, generations: 0 }
    }

    fn see(&mut self, heading: Heading, packet: &Packet) -> Seen {
        let key = FlowKey::of(heading, packet);
        let side = heading as usize;
        let says = |flag: u8| packet.flags & flag != 0;
        let mut seen = Seen::default();
        if says(flags::SYN) && !says(flags::ACK) {
            let repeats = |flow: &Flow| flow.opened_at == Some(packet.sequence) && !flow.closed;
            if !self.flows.get(&key).is_some_and(repeats) {
                seen.opened = true;
                if let Some(flow) = self.insert(key) {
                    flow.opened_at = Some(packet.sequence);
                    flow.next[side] = Some(packet.sequence.wrapping_add(1));
                }
            }
            return seen;
        }
        if packet.kind == Kind::Data && !self.flows.contains_key(&key) && self.insert(key).is_none() {
            seen.untracked = true;
            return seen;
        }
        let Some(flow) = self.flows.get_mut(&key) else { return seen };
        if packet.kind == Kind::Data {
            seen.repeated = flow.advance(side, packet.sequence, packet.payload_bytes);
        }
        flow.fin[side] |= says(flags::FIN);
        if !flow.closed && (says(flags::RST) || flow.fin == [true, true]) {
            flow.closed = true;
            let generation = flow.generation;
            self.note_closed(key, generation);
        }
        seen
    }

    /// A new flow in the place of any other of that key; `None` if there is no room.
    fn insert(&mut self, key: FlowKey) -> Option<&mut Flow> {
        while self.flows.len() >= self.max_flows && !self.flows.contains_key(&key) {
            let oldest = self.closed.pop_front()?;
            self.forget(oldest);
        }
        self.generations = self.generations.wrapping_add(1);
        let flow = self.flows.entry(key).or_default();
        *flow = Flow { generation: self.generations, ..Flow::default() };
        Some(flow)
    }

    fn note_closed(&mut self, key: FlowKey, generation: u32) {
        if self.closed.len() >= self.max_flows
            && let Some(oldest) = self.closed.pop_front()
        {
            self.forget(oldest);
        }
        self.closed.push_back((key, generation));
    }

    fn forget(&mut self, (key, generation): (FlowKey, u32)) {
        if self.flows.get(&key).is_some_and(|flow| flow.generation == generation) {
            self.flows.remove(&key);
        }
    }
}

impl Flow {
    /// Moves on past a segment; how many bytes of it were sent before. Sequence numbers wrap: which is later is
    /// told by the sign of their difference (RFC 9293 section 3.4).
    fn advance(&mut self, side: usize, sequence: u32, payload_bytes: u32) -> u32 {
        let next = self.next[side].unwrap_or(sequence);
        let end = sequence.wrapping_add(payload_bytes);
        let fresh = (end.wrapping_sub(next) as i32).max(0) as u32;
        if fresh > 0 {
            self.next[side] = Some(end);
        }
        payload_bytes.saturating_sub(fresh)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::tests::ipv4_tcp;
    use proptest::prelude::*;
    use std::net::Ipv4Addr;

    const SUBJECT: (Ipv4Addr, u16) = (Ipv4Addr::new(10, 83, 0, 1), 80);
    const CLIENT: (Ipv4Addr, u16) = (Ipv4Addr::new(10, 83, 0, 2), 40_000);
    const PROBER: (Ipv4Addr, u16) = (Ipv4Addr::new(10, 83, 0, 3), 40_000);
    const ACK: u8 = flags::ACK;

    fn accountant(max_flows: usize) -> Accountant {
        Accountant::new(Some(PROBER.0.into()), max_flows)
    }

    /// Notes a packet of 52 bytes of headers from or to `load`.
    fn note(of: &mut Accountant, heading: Heading, load: (Ipv4Addr, u16), sequence: u32, said: u8, payload: usize) {
        let (source, destination) = match heading {
            Heading::Down => (SUBJECT, load),
            Heading::Up => (load, SUBJECT),
        };
        of.note(heading, &ipv4_tcp(source, destination, sequence, said, 3, payload), Fate::Accepted);
    }

    fn client(of: &mut Accountant, heading: Heading, sequence: u32, said: u8, payload: usize) {
        note(of, heading, CLIENT, sequence, said, payload);
    }

    #[test]
    fn a_connection_divides_into_its_uses() {
        let mut of = accountant(10);
        client(&mut of, Heading::Up, 99, flags::SYN, 0);
        client(&mut of, Heading::Up, 99, flags::SYN, 0);
        client(&mut of, Heading::Down, 499, flags::SYN | ACK, 0);
        client(&mut of, Heading::Up, 100, ACK, 0);
        client(&mut of, Heading::Up, 100, ACK, 30);
        client(&mut of, Heading::Down, 500, ACK, 1000);
        client(&mut of, Heading::Down, 500, ACK, 1000);
        client(&mut of, Heading::Down, 1400, ACK, 150);
        client(&mut of, Heading::Down, 1550, ACK | flags::FIN, 10);
        client(&mut of, Heading::Up, 130, ACK | flags::FIN, 0);
        // Both said FIN, and what was lost is sent again all the same.
        client(&mut of, Heading::Down, 1550, ACK | flags::FIN, 10);
        let Totals { down, up, untracked_packets, .. } = of.totals();
        assert_eq!(up.clients.connections, 1);
        assert_eq!((up.clients.control_packets, up.clients.control_bytes), (3, 156));
        assert_eq!((up.clients.ack_packets, up.clients.ack_bytes), (1, 52));
        assert_eq!((up.clients.data_packets, up.clients.payload_bytes), (1, 30));
        assert_eq!((down.clients.data_packets, down.clients.data_header_bytes), (3, 156));
        assert_eq!(down.clients.payload_bytes, 1060);
        assert_eq!((down.clients.retransmitted_packets, down.clients.retransmitted_bytes), (2, 1052 + 100 + 62));
        assert_eq!((down.clients.connections, untracked_packets), (0, 0));
    }

    #[test]
    fn parties_are_told_apart() {
        let mut of = accountant(10);
        for heading in [Heading::Down, Heading::Up] {
            note(&mut of, heading, CLIENT, 1, ACK, 10);
            note(&mut of, heading, PROBER, 1, ACK, 20);
            of.note(heading, b"no packet", Fate::Accepted);
        }
        for parties in [of.totals().down, of.totals().up] {
            assert_eq!((parties.clients.payload_bytes, parties.instruments.payload_bytes), (10, 20));
            assert_eq!((parties.others.packets, parties.others.bytes), (1, 9));
            assert_eq!(parties.sum().bytes, 62 + 72 + 9);
        }
    }

    #[test]
    fn a_port_in_use_again_is_another_connection() {
        let mut of = accountant(10);
        for isn in [5_u32, 5, 9_000_000] {
            client(&mut of, Heading::Up, isn, flags::SYN, 0);
            client(&mut of, Heading::Up, isn.wrapping_add(1), ACK, 100);
            client(&mut of, Heading::Down, 77, ACK | flags::RST, 0);
        }
        let up = of.totals().up.clients;
        assert_eq!((up.connections, up.payload_bytes, up.retransmitted_packets), (3, 300, 0));
    }

    #[test]
    fn flows_are_bounded_and_closed_ones_make_room() {
        let mut of = accountant(2);
        let load = |port: u16| (CLIENT.0, port);
        for port in [1, 2, 3] {
            note(&mut of, Heading::Up, load(port), 1, ACK, 10);
            note(&mut of, Heading::Up, load(port), 1, ACK, 10);
        }
        assert_eq!(of.totals().untracked_packets, 2);
        assert_eq!(of.totals().up.clients.retransmitted_packets, 2);
        note(&mut of, Heading::Down, load(1), 1, flags::RST, 0);
        note(&mut of, Heading::Up, load(3), 1, ACK, 10);
        note(&mut of, Heading::Up, load(3), 1, ACK, 10);
        assert_eq!(of.totals().untracked_packets, 2);
        assert_eq!(of.totals().up.clients.retransmitted_packets, 3);
        assert!(of.flows.flows.len() <= 2);
    }

    #[test]
    fn closed_flows_are_bounded_whatever_ports_are_in_use_again() {
        let mut of = accountant(4);
        for isn in 0..1000 {
            note(&mut of, Heading::Up, (CLIENT.0, 1 + isn as u16 % 3), isn, flags::SYN, 0);
            note(&mut of, Heading::Up, (CLIENT.0, 1 + isn as u16 % 3), isn + 1, flags::RST, 0);
        }
        assert!(of.flows.closed.len() <= 4 && of.flows.flows.len() <= 4);
        assert_eq!(of.totals().up.clients.connections, 1000);
    }

    #[derive(Debug, Clone)]
    enum Event {
        /// Sends `fresh` bytes, and `again` before them a second time.
        Send {
            again: u16,
            fresh: u16,
        },
        /// Sends something from `back` bytes ago again.
        Repeat {
            back: u16,
            length: u16,
        },
        Say {
            flags: u8,
        },
        Junk(Vec<u8>),
    }

    fn event() -> impl Strategy<Value = Event> {
        prop_oneof![
            4 => (prop_oneof![Just(0), 0..500_u16], 1..1400_u16).prop_map(|(again, fresh)| Event::Send { again, fresh }),
            2 => (1..3000_u16, 1..1400_u16).prop_map(|(back, length)| Event::Repeat { back, length }),
            2 => prop_oneof![Just(ACK), Just(flags::FIN | ACK), Just(flags::SYN | ACK)].prop_map(|flags| Event::Say { flags }),
            1 => prop::collection::vec(any::<u8>(), 0..60).prop_map(Event::Junk),
        ]
    }

    fn fate() -> impl Strategy<Value = Fate> {
        prop_oneof![Just(Fate::Accepted), Just(Fate::HeldBack), Just(Fate::Lost), Just(Fate::QueueFull)]
    }

    proptest! {
        #[test]
        fn every_byte_is_counted_once(
            events in prop::collection::vec((event(), any::<bool>(), 0..3_u16, fate()), 1..200), isn: u32,
        ) {
            let mut of = accountant(100);
            let mut sent = [[0_u64; 2]; 3];
            let (mut bytes, mut packets, mut fresh_bytes) = (0, 0, 0);
            for (event, up, flow, fate) in &events {
                let heading = if *up { Heading::Up } else { Heading::Down };
                let load = if *flow == 2 { PROBER } else { (CLIENT.0, 40_000 + flow) };
                let (source, destination) = if *up { (load, SUBJECT) } else { (SUBJECT, load) };
                let high = &mut sent[usize::from(*flow)][usize::from(*up)];
                // Flows begin near the wrap of sequence numbers.
                let sequence = |at: u64| (isn | 0xffff_f000).wrapping_add(at as u32);
                let packet = match event {
                    Event::Send { again, fresh } => {
                        let again = u64::from(*again).min(*high);
                        let at = sequence(*high - again);
                        *high += u64::from(*fresh);
                        fresh_bytes += u64::from(*fresh);
                        ipv4_tcp(source, destination, at, ACK, 3, again as usize + usize::from(*fresh))
                    }
                    Event::Repeat { back, length } => {
                        let back = u64::from(*back).min(*high);
                        let length = u64::from(*length).min(back);
                        ipv4_tcp(source, destination, sequence(*high - back), ACK, 3, length as usize)
                    }
                    Event::Say { flags } => ipv4_tcp(source, destination, sequence(*high), *flags, 0, 0),
                    Event::Junk(junk) => junk.clone(),
                };
                bytes += packet.len() as u64;
                packets += 1;
                of.note(heading, &packet, *fate);
            }
            let totals = of.totals();
            let whole = totals.down.sum().plus(&totals.up.sum());
            prop_assert_eq!((whole.bytes, whole.packets, whole.payload_bytes), (bytes, packets, fresh_bytes));
            for parties in [totals.down, totals.up] {
                for counts in [parties.clients, parties.instruments] {
                    prop_assert_eq!(counts.bytes, used_bytes(&counts));
                    let used = counts.data_packets + counts.retransmitted_packets + counts.ack_packets;
                    prop_assert_eq!(counts.packets, used + counts.control_packets);
                    prop_assert!(counts.lost_bytes + counts.queue_full_bytes <= counts.bytes);
                }
                prop_assert_eq!(used_bytes(&parties.others), 0);
            }
            let halves = totals.plus(&totals);
            prop_assert_eq!(halves.since(&totals), totals);
        }
    }

    fn used_bytes(counts: &Counts) -> u64 {
        let data = counts.data_header_bytes + counts.payload_bytes + counts.retransmitted_bytes;
        data + counts.ack_bytes + counts.control_bytes
    }
}
