//! When receivers acknowledge, as a value: what the clients' kernels send and the time come in, and what a receiver
//! that delays its acknowledgements would have sent comes out.
//!
//! Linux acknowledges at once what was read from a connection that only receives, and never later than its own timer
//! wants it. Other systems wait for a second segment or for a timer of theirs, as RFC 1122 (4.2.3.2) lets every
//! receiver do; Windows of 2014 waited up to 200 ms. So where such receivers are wanted, the link holds back an
//! acknowledgement until
//!
//! - it is one of a second segment, and then it goes for both;
//! - the timer, which began when the first unacknowledged segment was delivered, is at its end;
//! - a packet that says as much goes up: it has the acknowledgement of its own, and this one is spared.
//!
//! Everything else passes at once: what carries data, what opens or ends a connection, and, as RFC 5681 (4.2) wants it,
//! acknowledgements that repeat the last one and those that follow while what is missing comes in.
//!
//! ```
//! use pushlab_link::acks::Acks;
//! use pushlab_link::packet::{Kind, Packet, flags};
//!
//! let (server, client) = ([10, 83, 0, 1].into(), [10, 83, 1, 1].into());
//! let segment = Packet {
//!     source: server, source_port: 80, destination: client, destination_port: 40_000, bytes: 152, header_bytes: 52,
//!     payload_bytes: 100, kind: Kind::Data, sequence: 1, acknowledgement: 1, window: 500, flags: flags::ACK,
//! };
//! let acknowledgement = Packet {
//!     source: client, source_port: 40_000, destination: server, destination_port: 80, bytes: 52, payload_bytes: 0,
//!     kind: Kind::Ack, acknowledgement: 101, ..segment
//! };
//! let mut acks = Acks::new(200_000_000, None);
//! acks.delivered(5_000_000, &segment);
//! assert_eq!(acks.offer(6_000_000, &acknowledgement, "a packet").passes, None);
//! assert_eq!(acks.due_ns(), Some(205_000_000));
//! assert_eq!(acks.take_due(205_000_000), Some("a packet"));
//! ```

use crate::direction::Heading;
use crate::flow::{FlowKey, Mix};
use crate::packet::{Kind, Packet, flags};
use std::collections::{BTreeSet, HashMap};
use std::net::IpAddr;

/// Longest delay, milliseconds: RFC 1122 (4.2.3.2) wants it to be less than half a second.
pub const MAX_ACK_DELAY_MS: u32 = 500;
/// Most connections that are remembered, and most acknowledgements that are held: one of each. A connection costs
/// about 200 bytes at worst, so these cost 13 MB, and what they hold has the size of so many packets. Acknowledgements
/// of further connections pass at once.
pub const MAX_CONNECTIONS: usize = 65_536;

/// What becomes of packets that clients send.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Offered<P> {
    /// What goes up now.
    pub passes: Option<P>,
    /// One that was held and is never to go up, because another says as much or nobody is left to be told.
    pub spared: Option<P>,
}

/// Receivers that delay their acknowledgements.
#[derive(Debug)]
pub struct Acks<P> {
    delay_ns: u64,
    max_connections: usize,
    /// The address on the load's side whose acknowledgements are left alone.
    exempt: Option<IpAddr>,
    connections: HashMap<FlowKey, Connection<P>, Mix>,
    /// Those that hold one, by when it is due.
    due: BTreeSet<(u64, FlowKey)>,
}

/// One connection of a client, from its first data on.
#[derive(Debug)]
struct Connection<P> {
    /// The highest acknowledgement that the client's kernel has sent, held or not, and the window it said last.
    said: u32,
    window: Option<u16>,
    /// The highest one that went up.
    acknowledged: u32,
    /// Delivered and beyond that, in order.
    first: Option<Segment>,
    second: Option<Segment>,
    /// The client repeats an acknowledgement: something is missing that was sent before what it got.
    misses_some: bool,
    held: Option<Held<P>>,
}

/// Data that was delivered.
#[derive(Debug, Clone, Copy)]
struct Segment {
    /// The sequence number after it.
    end: u32,
    delivered_ns: u64,
    /// It stands for more than one: after the second, segments are no longer told apart.
    is_several: bool,
}

#[derive(Debug)]
struct Held<P> {
    due_ns: u64,
    acknowledgement: u32,
    packet: P,
}

impl<P> Acks<P> {
    /// Receivers that wait for `delay_ns`; those at the address `exempt`, if any, do not.
    pub fn new(delay_ns: u64, exempt: Option<IpAddr>) -> Self {
        Self::with_room(delay_ns, exempt, MAX_CONNECTIONS)
    }

    fn with_room(delay_ns: u64, exempt: Option<IpAddr>, max_connections: usize) -> Self {
        let connections = HashMap::with_hasher(Mix);
        Self { delay_ns, max_connections, exempt, connections, due: BTreeSet::new() }
    }

    /// Takes note of a packet that was handed to a client at `now_ns`, which never decreases from call to call, here
    /// and below. What ends the connection ends the waiting too.
    pub fn delivered(&mut self, now_ns: u64, packet: &Packet) -> Offered<P> {
        let nothing = Offered { passes: None, spared: None };
        if packet.kind == Kind::Other || self.exempt == Some(packet.destination) {
            return nothing;
        }
        let key = FlowKey::of(Heading::Down, packet);
        if packet.flags & flags::RST != 0 {
            return Offered { spared: self.forget(&key), ..nothing };
        }
        if packet.flags & flags::FIN != 0 {
            return Offered { passes: self.forget(&key), ..nothing };
        }
        let has_room = self.connections.len() < self.max_connections || self.connections.contains_key(&key);
        if packet.kind == Kind::Data && has_room {
            let connection = self.connections.entry(key).or_insert_with(|| Connection::before(packet.sequence));
            connection.delivered(now_ns, packet.sequence.wrapping_add(packet.payload_bytes));
        }
        nothing
    }

    /// Takes what a client sends. If neither it nor another passes, it is held.
    pub fn offer(&mut self, now_ns: u64, said: &Packet, packet: P) -> Offered<P> {
        let passes = |packet, spared| Offered { passes: Some(packet), spared };
        if said.kind == Kind::Other || self.exempt == Some(said.source) {
            return passes(packet, None);
        }
        let key = FlowKey::of(Heading::Up, said);
        if said.flags & (flags::SYN | flags::RST) != 0 {
            // Another connection, or none: nobody waits for what was to be said in this one.
            return passes(packet, self.forget(&key));
        }
        let Some(connection) = self.connections.get_mut(&key).filter(|_| said.flags & flags::ACK != 0) else {
            return passes(packet, None);
        };
        let due_ns = connection.holds_until(said, self.delay_ns).filter(|&due_ns| now_ns < due_ns);
        connection.hear(said);
        let is_superseded =
            |held: &mut Held<P>| due_ns.is_some() || !is_later(held.acknowledgement, said.acknowledgement);
        let spared = connection.held.take_if(is_superseded);
        if let Some(held) = &spared {
            self.due.remove(&(held.due_ns, key));
        }
        let spared = spared.map(|held| held.packet);
        if let Some(due_ns) = due_ns {
            self.due.insert((due_ns, key));
            connection.held = Some(Held { due_ns, acknowledgement: said.acknowledgement, packet });
            return Offered { passes: None, spared };
        }
        connection.went_up(said.acknowledgement);
        if said.flags & flags::FIN != 0 && connection.held.is_none() {
            self.connections.remove(&key);
        }
        passes(packet, spared)
    }

    /// When the next one that is held is due.
    pub fn due_ns(&self) -> Option<u64> {
        self.due.first().map(|(due_ns, _)| *due_ns)
    }

    /// The next one that is due at `now_ns` or before, and goes up now.
    pub fn take_due(&mut self, now_ns: u64) -> Option<P> {
        self.due_ns().filter(|&due_ns| due_ns <= now_ns)?;
        let (_, key) = self.due.pop_first()?;
        let connection = self.connections.get_mut(&key)?;
        let held = connection.held.take()?;
        connection.went_up(held.acknowledgement);
        Some(held.packet)
    }

    /// How many are held.
    pub fn held(&self) -> usize {
        self.due.len()
    }

    fn forget(&mut self, key: &FlowKey) -> Option<P> {
        let held = self.connections.remove(key)?.held?;
        self.due.remove(&(held.due_ns, *key));
        Some(held.packet)
    }
}

impl<P> Connection<P> {
    /// One of which all before `sequence` is acknowledged.
    fn before(sequence: u32) -> Self {
        Self {
            said: sequence,
            window: None,
            acknowledged: sequence,
            first: None,
            second: None,
            misses_some: false,
            held: None,
        }
    }

    /// Data up to `end` is with the client.
    fn delivered(&mut self, now_ns: u64, end: u32) {
        let last_end = self.second.or(self.first).map_or(self.acknowledged, |last| last.end);
        // What comes again or late is acknowledged at once: `misses_some`, or the same number again.
        if !is_later(end, last_end) {
            return;
        }
        let segment = Segment { end, delivered_ns: now_ns, is_several: false };
        match (&self.first, &mut self.second) {
            (None, _) => self.first = Some(segment),
            (Some(_), second @ None) => *second = Some(segment),
            (Some(_), Some(second)) => (second.end, second.is_several) = (end, true),
        }
    }

    /// When the packet is to go up, if it is an acknowledgement that waits.
    fn holds_until(&self, said: &Packet, delay_ns: u64) -> Option<u64> {
        let is_new = said.kind == Kind::Ack && is_later(said.acknowledgement, self.said);
        let first = self.first.as_ref().filter(|first| is_new && !self.misses_some && !first.is_several)?;
        let is_of_second = self.second.as_ref().is_some_and(|second| {
            let least = if second.is_several { first.end.wrapping_add(1) } else { second.end };
            !is_later(least, said.acknowledgement)
        });
        (!is_of_second).then(|| first.delivered_ns.saturating_add(delay_ns))
    }

    /// Learns from what the client's kernel sends.
    fn hear(&mut self, said: &Packet) {
        if is_later(said.acknowledgement, self.said) {
            self.said = said.acknowledgement;
        } else if said.kind == Kind::Ack && self.window == Some(said.window) && self.first.is_some() {
            self.misses_some = true;
        }
        self.window = Some(said.window);
    }

    /// The server will know that all up to `acknowledgement` arrived.
    fn went_up(&mut self, acknowledgement: u32) {
        if is_later(acknowledgement, self.acknowledged) {
            self.acknowledged = acknowledgement;
        }
        while self.first.is_some_and(|first| !is_later(first.end, self.acknowledged)) {
            self.first = self.second.take();
        }
        if self.first.is_none() {
            self.misses_some = false;
        }
    }
}

/// Sequence numbers wrap: which is later is told by the sign of their difference (RFC 9293 section 3.4).
fn is_later(one: u32, other: u32) -> bool {
    (one.wrapping_sub(other) as i32) > 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MS: u64 = 1_000_000;
    const DELAY: u64 = 200 * MS;
    /// Near the wrap of sequence numbers.
    const START: u32 = u32::MAX - 150;
    const EXEMPT: [u8; 4] = [10, 83, 0, 3];

    /// From the server to the client's port; `at` counts from the first byte of the connection.
    fn down(port: u16, at: u32, payload_bytes: u32, said: u8) -> Packet {
        Packet {
            source: [10, 83, 0, 1].into(),
            source_port: 80,
            destination: [10, 83, 1, 1].into(),
            destination_port: port,
            bytes: 52 + payload_bytes,
            header_bytes: 52,
            payload_bytes,
            kind: kind(payload_bytes, said),
            sequence: START.wrapping_add(at),
            acknowledgement: 1,
            window: 500,
            flags: flags::ACK | said,
        }
    }

    /// The other way, with `upto` bytes acknowledged.
    fn up(port: u16, upto: u32, payload_bytes: u32, said: u8) -> Packet {
        let packet = down(port, 0, payload_bytes, said);
        Packet {
            source: packet.destination,
            source_port: port,
            destination: packet.source,
            destination_port: 80,
            sequence: 1,
            acknowledgement: START.wrapping_add(upto),
            ..packet
        }
    }

    fn kind(payload_bytes: u32, said: u8) -> Kind {
        match (said & (flags::SYN | flags::RST), payload_bytes, said & flags::FIN) {
            (1.., ..) => Kind::Control,
            (_, 1.., _) => Kind::Data,
            (.., 1..) => Kind::Control,
            _ => Kind::Ack,
        }
    }

    fn acks() -> Acks<u32> {
        Acks::new(DELAY, Some(EXEMPT.into()))
    }

    fn passed(packet: u32) -> Offered<u32> {
        Offered { passes: Some(packet), spared: None }
    }

    /// Also what comes of a packet that is merely delivered.
    fn held() -> Offered<u32> {
        Offered { passes: None, spared: None }
    }

    #[test]
    fn the_first_segment_waits_for_the_timer_that_began_with_it() {
        let mut of = acks();
        assert_eq!(of.delivered(10 * MS, &down(1, 0, 100, 0)), held());
        assert_eq!(of.offer(15 * MS, &up(1, 100, 0, 0), 1), held());
        assert_eq!((of.due_ns(), of.held()), (Some(210 * MS), 1));
        assert_eq!(of.take_due(210 * MS - 1), None);
        assert_eq!(of.take_due(210 * MS), Some(1));
        assert_eq!((of.due_ns(), of.held()), (None, 0));
        of.delivered(300 * MS, &down(1, 100, 100, 0));
        assert_eq!(of.offer(300 * MS, &up(1, 200, 0, 0), 2), held());
        assert_eq!(of.due_ns(), Some(500 * MS));
    }

    #[test]
    fn the_second_segment_is_acknowledged_at_once_and_for_both() {
        let mut of = acks();
        for round in 0..3 {
            let at = round * 200;
            of.delivered(0, &down(1, at, 100, 0));
            assert_eq!(of.offer(0, &up(1, at + 100, 0, 0), 1), held());
            of.delivered(MS, &down(1, at + 100, 100, 0));
            assert_eq!(of.offer(MS, &up(1, at + 200, 0, 0), 2), Offered { passes: Some(2), spared: Some(1) });
            assert_eq!(of.due_ns(), None);
        }
    }

    #[test]
    fn an_acknowledgement_of_the_first_alone_waits_though_the_second_is_there() {
        let mut of = acks();
        of.delivered(0, &down(1, 0, 100, 0));
        of.delivered(0, &down(1, 100, 100, 0));
        assert_eq!(of.offer(0, &up(1, 100, 0, 0), 1), held());
        assert_eq!(of.offer(0, &up(1, 200, 0, 0), 2), Offered { passes: Some(2), spared: Some(1) });
    }

    #[test]
    fn a_burst_is_acknowledged_as_the_kernel_does_it() {
        let mut of = acks();
        (0..64).for_each(|i| assert_eq!(of.delivered(0, &down(1, i * 100, 100, 0)), held()));
        for i in 1..=32 {
            assert_eq!(of.offer(0, &up(1, i * 200, 0, 0), i), passed(i));
        }
        of.delivered(MS, &down(1, 6400, 100, 0));
        assert_eq!(of.offer(MS, &up(1, 6500, 0, 0), 40), held(), "all before it is acknowledged");
    }

    #[test]
    fn data_and_ends_carry_the_acknowledgement_that_was_held() {
        for (said, payload_bytes) in [(0, 30), (flags::FIN, 0), (flags::FIN, 30), (flags::RST, 0)] {
            let mut of = acks();
            of.delivered(0, &down(1, 0, 100, 0));
            assert_eq!(of.offer(0, &up(1, 100, 0, 0), 1), held());
            let offered = of.offer(MS, &up(1, 100, payload_bytes, said), 2);
            assert_eq!(offered, Offered { passes: Some(2), spared: Some(1) });
            assert_eq!((of.due_ns(), of.connections.len()), (None, usize::from(said == 0)));
        }
    }

    #[test]
    fn what_the_server_ends_is_forgotten_and_nothing_waits_any_longer() {
        let reset = Offered { passes: None, spared: Some(1) };
        for (said, becomes) in [(flags::FIN, passed(1)), (flags::RST, reset)] {
            let mut of = acks();
            of.delivered(0, &down(1, 0, 100, 0));
            assert_eq!(of.offer(0, &up(1, 100, 0, 0), 1), held());
            assert_eq!(of.delivered(MS, &down(1, 100, 0, said)), becomes);
            assert_eq!((of.due_ns(), of.connections.len()), (None, 0));
            assert_eq!(of.offer(MS, &up(1, 101, 0, 0), 2), passed(2));
        }
    }

    #[test]
    fn what_acknowledges_nothing_new_passes_at_once() {
        let mut of = acks();
        assert_eq!(of.offer(0, &up(1, 0, 0, flags::SYN), 1), passed(1));
        assert_eq!(of.offer(0, &up(1, 0, 0, 0), 2), passed(2), "the third of the handshake");
        assert_eq!(of.offer(0, &up(1, 0, 50, 0), 3), passed(3));
        of.delivered(0, &down(1, 0, 100, 0));
        assert_eq!(of.offer(0, &Packet { window: 600, ..up(1, 0, 0, 0) }, 4), passed(4), "a window");
        assert_eq!(of.offer(0, &up(1, 100, 0, 0), 5), held());
        let window = Packet { window: 700, ..up(1, 100, 0, 0) };
        assert_eq!(of.offer(0, &window, 6), Offered { passes: Some(6), spared: Some(5) });
    }

    #[test]
    fn while_something_is_missing_nothing_waits() {
        let mut of = acks();
        of.delivered(0, &down(1, 0, 100, 0));
        assert_eq!(of.offer(0, &up(1, 100, 0, 0), 1), held());
        // The next one is lost, and those after it arrive.
        of.delivered(MS, &down(1, 200, 100, 0));
        assert_eq!(of.offer(MS, &up(1, 100, 0, 0), 2), Offered { passes: Some(2), spared: Some(1) });
        of.delivered(2 * MS, &down(1, 400, 100, 0));
        assert_eq!(of.offer(2 * MS, &up(1, 100, 0, 0), 3), passed(3));
        // Both holes are filled, one after the other.
        of.delivered(3 * MS, &down(1, 100, 100, 0));
        assert_eq!(of.offer(3 * MS, &up(1, 300, 0, 0), 4), passed(4));
        of.delivered(4 * MS, &down(1, 300, 100, 0));
        assert_eq!(of.offer(4 * MS, &up(1, 500, 0, 0), 5), passed(5));
        of.delivered(5 * MS, &down(1, 500, 100, 0));
        assert_eq!(of.offer(5 * MS, &up(1, 600, 0, 0), 6), held(), "all is well again");
    }

    #[test]
    fn what_came_again_is_acknowledged_at_once() {
        let mut of = acks();
        of.delivered(0, &down(1, 0, 100, 0));
        assert_eq!(of.offer(0, &up(1, 100, 0, 0), 1), held());
        of.delivered(MS, &down(1, 0, 100, 0));
        assert_eq!(of.offer(MS, &up(1, 100, 0, 0), 2), Offered { passes: Some(2), spared: Some(1) });
        of.delivered(2 * MS, &down(1, 0, 100, 0));
        assert_eq!(of.offer(2 * MS, &up(1, 100, 0, 0), 3), passed(3));
    }

    #[test]
    fn instruments_and_what_is_not_tcp_are_left_alone() {
        let mut of = acks();
        let prober = |packet: Packet| Packet { source: EXEMPT.into(), ..packet };
        of.delivered(0, &Packet { destination: EXEMPT.into(), ..down(1, 0, 100, 0) });
        assert_eq!(of.offer(0, &prober(up(1, 100, 0, 0)), 1), passed(1));
        let other = Packet { kind: Kind::Other, flags: 0, ..down(1, 0, 100, 0) };
        of.delivered(0, &other);
        assert_eq!(of.offer(0, &Packet { kind: Kind::Other, flags: 0, ..up(1, 100, 0, 0) }, 2), passed(2));
        assert!(of.connections.is_empty());
    }

    #[test]
    fn connections_are_bounded_and_those_beyond_pass() {
        let mut of = Acks::with_room(DELAY, None, 2);
        for port in 1..=3 {
            of.delivered(0, &down(port, 0, 100, 0));
            let offered = of.offer(0, &up(port, 100, 0, 0), u32::from(port));
            assert_eq!(offered, if port == 3 { passed(3) } else { held() });
        }
        of.offer(MS, &up(1, 100, 0, flags::RST), 4);
        of.delivered(MS, &down(3, 100, 100, 0));
        assert_eq!(of.offer(MS, &up(3, 200, 0, 0), 5), held(), "there is room again");
        assert_eq!((of.connections.len(), of.held()), (2, 2));
    }

    #[derive(Debug, Clone, Copy)]
    enum Event {
        Wait { ms: u8 },
        Down { again: u8, payload_bytes: u8, said: u8 },
        Up { more: u8, payload_bytes: u8, window: u8, said: u8 },
    }

    fn event() -> impl Strategy<Value = (u16, Event)> {
        let said = || prop_oneof![30 => Just(0), 1 => Just(flags::FIN), 1 => Just(flags::RST), 1 => Just(flags::SYN)];
        let payload = || prop_oneof![3 => Just(0_u8), 1 => 1..200_u8];
        let event = prop_oneof![
            2 => (0..120_u8).prop_map(|ms| Event::Wait { ms }),
            4 => (prop_oneof![4 => Just(0), 1 => 0..200_u8], 1..200_u8, said())
                .prop_map(|(again, payload_bytes, said)| Event::Down { again, payload_bytes, said }),
            4 => (prop_oneof![Just(0), 0..255_u8], payload(), 0..2_u8, said())
                .prop_map(|(more, payload_bytes, window, said)| Event::Up { more, payload_bytes, window, said }),
        ];
        (0..4_u16, event)
    }

    /// What the client's kernel sent: when, whose, and how much it acknowledges.
    #[derive(Clone, Copy)]
    struct Sent {
        at_ns: u64,
        port: u16,
        upto: u32,
        kind: Kind,
    }

    /// What may be told from outside, for one connection after another at the same port.
    #[derive(Default)]
    struct Model {
        sent: Vec<Sent>,
        /// Numbers of packets that are neither up nor spared.
        waiting: Vec<u32>,
        acknowledged: [u32; 4],
    }

    impl Model {
        fn goes_up(&mut self, number: u32, now_ns: u64) -> Result<(), TestCaseError> {
            let of = self.sent[number as usize];
            prop_assert!(now_ns <= of.at_ns + DELAY, "nothing is held longer than the delay");
            let acknowledged = &mut self.acknowledged[usize::from(of.port)];
            prop_assert!(of.upto >= *acknowledged, "acknowledgements never go back");
            *acknowledged = of.upto;
            self.waiting.retain(|&waiting| waiting != number);
            Ok(())
        }
    }

    proptest! {
        #[test]
        fn whatever_happens_acknowledgements_go_on_and_nothing_waits_too_long(
            events in prop::collection::vec(event(), 1..300),
        ) {
            let mut of = Acks::with_room(DELAY, None, 3);
            let (mut now_ns, mut model) = (0, Model::default());
            // The connections never begin anew: what the client acknowledges never decreases.
            let (mut sent, mut heard) = ([0_u32; 4], [0_u32; 4]);
            for (port, event) in events {
                let place = usize::from(port);
                match event {
                    Event::Wait { ms } => {
                        let until_ns = now_ns + u64::from(ms) * MS;
                        while let Some(due_ns) = of.due_ns().filter(|&due_ns| due_ns <= until_ns) {
                            prop_assert!(due_ns >= now_ns);
                            now_ns = due_ns;
                            prop_assert_eq!(of.take_due(now_ns - 1), None);
                            let number = of.take_due(now_ns).expect("it is due");
                            model.goes_up(number, now_ns)?;
                        }
                        now_ns = until_ns;
                    }
                    Event::Down { again, payload_bytes, said } => {
                        let again = u32::from(again).min(sent[place]);
                        let packet = down(port, sent[place] - again, u32::from(payload_bytes), said);
                        sent[place] = sent[place].max(sent[place] - again + u32::from(payload_bytes));
                        let Offered { passes, spared } = of.delivered(now_ns, &packet);
                        if let Some(number) = passes {
                            model.goes_up(number, now_ns)?;
                        }
                        prop_assert!(spared.is_none() || said == flags::RST);
                        model.waiting.retain(|&waiting| Some(waiting) != spared);
                    }
                    Event::Up { more, payload_bytes, window, said } => {
                        heard[place] = sent[place].min(heard[place] + u32::from(more));
                        let packet = up(port, heard[place], u32::from(payload_bytes), said);
                        let packet = Packet { window: window.into(), ..packet };
                        let number = model.sent.len() as u32;
                        model.sent.push(Sent { at_ns: now_ns, port, upto: heard[place], kind: packet.kind });
                        model.waiting.push(number);
                        let Offered { passes, spared } = of.offer(now_ns, &packet, number);
                        if let Some(spared) = spared {
                            let old = model.sent[spared as usize];
                            prop_assert!(model.waiting.contains(&spared), "only what is held is spared");
                            prop_assert!(old.port == port && old.upto <= heard[place], "what says as much is sent or held");
                            model.waiting.retain(|&waiting| waiting != spared);
                        }
                        match passes {
                            Some(passes) => {
                                prop_assert_eq!(passes, number);
                                model.goes_up(number, now_ns)?;
                            }
                            None => prop_assert_eq!(packet.kind, Kind::Ack, "nothing else waits"),
                        }
                    }
                }
                prop_assert_eq!(of.held(), model.waiting.len(), "none is lost");
                prop_assert!(of.connections.len() <= 3, "connections are bounded");
                for port in 0..4 {
                    let held = model.waiting.iter().map(|&number| model.sent[number as usize]);
                    let held: Vec<Sent> = held.filter(|sent| sent.port == port).collect();
                    prop_assert!(held.len() <= 1, "one for each connection");
                    prop_assert!(held.iter().all(|held| held.kind == Kind::Ack));
                }
            }
            while let Some(due_ns) = of.due_ns() {
                let number = of.take_due(due_ns).expect("it is due");
                model.goes_up(number, due_ns.max(now_ns))?;
            }
            prop_assert!(model.waiting.is_empty());
        }
    }
}
