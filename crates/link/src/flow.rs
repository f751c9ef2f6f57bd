//! Which TCP connection a packet belongs to, as the key of a table.

use crate::direction::Heading;
use crate::packet::Packet;
use std::hash::{BuildHasher, Hash, Hasher};
use std::net::IpAddr;

/// Addresses as IPv6 has them, and ports, load before subject.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct FlowKey {
    addresses: [u64; 4],
    ports: u32,
}

impl FlowKey {
    pub(crate) fn of(heading: Heading, packet: &Packet) -> Self {
        let source = (packet.source, packet.source_port);
        let destination = (packet.destination, packet.destination_port);
        let (load, subject) = match heading {
            Heading::Down => (destination, source),
            Heading::Up => (source, destination),
        };
        let ([a, b], [c, d]) = (words(load.0), words(subject.0));
        Self { addresses: [a, b, c, d], ports: u32::from(load.1) << 16 | u32::from(subject.1) }
    }
}

fn words(address: IpAddr) -> [u64; 2] {
    let bits = match address {
        IpAddr::V4(v4) => v4.to_ipv6_mapped().to_bits(),
        IpAddr::V6(v6) => v6.to_bits(),
    };
    [(bits >> 64) as u64, bits as u64]
}

impl Hash for FlowKey {
    fn hash<H: Hasher>(&self, state: &mut H) {
        let [a, b, c, d] = self.addresses;
        state.write_u64(a.rotate_left(17) ^ c);
        state.write_u64(b.rotate_left(32) ^ d);
        state.write_u64(u64::from(self.ports));
    }
}

/// Hashes by multiplication: the packets are those of our own kernel, and the standard hash costs as much as all the
/// rest of the accounting.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Mix;

impl BuildHasher for Mix {
    type Hasher = Mixer;

    fn build_hasher(&self) -> Mixer {
        Mixer(0)
    }
}

pub(crate) struct Mixer(u64);

impl Hasher for Mixer {
    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.write_u64(u64::from(byte));
        }
    }

    fn write_u64(&mut self, word: u64) {
        // An odd constant near 2^64 divided by the golden ratio spreads consecutive ports (Knuth, The Art of
        // Computer Programming 3, section 6.4).
        self.0 = (self.0.rotate_left(26) ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }

    fn finish(&self) -> u64 {
        // The table takes bits from both ends; the low ones are the weakest after a multiplication.
        self.0 ^ (self.0 >> 32)
    }
}
