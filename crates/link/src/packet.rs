//! What a packet is: addresses, ports and how its bytes divide, from the bytes of an IP packet.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// What a packet is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// TCP with payload, whether or not it also says FIN.
    Data,
    /// TCP without payload and without SYN, FIN or RST: an acknowledgement, a window update, a keep-alive.
    Ack,
    /// TCP with SYN or RST, whatever it carries, or with FIN and no payload.
    Control,
    /// Not TCP, or a fragment.
    Other,
}

/// Bits of [`Packet::flags`] (RFC 9293 section 3.1).
pub mod flags {
    /// No more data from the sender.
    pub const FIN: u8 = 1;
    /// Opens a connection.
    pub const SYN: u8 = 2;
    /// Ends it at once.
    pub const RST: u8 = 4;
    /// The acknowledgement number counts.
    pub const ACK: u8 = 16;
}

/// What the headers of a packet say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Packet {
    /// From where.
    pub source: IpAddr,
    /// To where.
    pub destination: IpAddr,
    /// TCP port; 0 for [`Kind::Other`].
    pub source_port: u16,
    /// TCP port; 0 for [`Kind::Other`].
    pub destination_port: u16,
    /// Length as the IP header has it.
    pub bytes: u32,
    /// IP and TCP headers with their options; `bytes` for [`Kind::Other`].
    pub header_bytes: u32,
    /// TCP payload: `bytes - header_bytes`.
    pub payload_bytes: u32,
    /// What it is for.
    pub kind: Kind,
    /// TCP sequence number; 0 for [`Kind::Other`].
    pub sequence: u32,
    /// TCP acknowledgement number; 0 for [`Kind::Other`]. It counts where [`flags::ACK`] is set.
    pub acknowledgement: u32,
    /// TCP window as the header has it, not scaled; 0 for [`Kind::Other`].
    pub window: u16,
    /// TCP flags, see [`flags`]; 0 for [`Kind::Other`].
    pub flags: u8,
}

const TCP: u8 = 6;
const IPV6_HEADER_BYTES: usize = 40;

/// Reads the headers of an IP packet (RFC 791, RFC 8200, RFC 9293). `None` for what is no whole IPv4 or IPv6 packet;
/// bytes after the length that its header claims are ignored. TCP behind extension headers of IPv6 is
/// [`Kind::Other`]: our own kernels do not send it.
pub fn classify(bytes: &[u8]) -> Option<Packet> {
    match bytes.first()? >> 4 {
        4 => ipv4(bytes),
        6 => ipv6(bytes),
        _ => None,
    }
}

fn ipv4(bytes: &[u8]) -> Option<Packet> {
    let header: &[u8; 20] = bytes.first_chunk()?;
    let header_bytes = usize::from(header[0] & 15) * 4;
    let total = usize::from(u16::from_be_bytes([header[2], header[3]]));
    if header_bytes < 20 || total < header_bytes {
        return None;
    }
    let packet = bytes.get(..total)?;
    let address = |at: usize| IpAddr::V4(Ipv4Addr::new(header[at], header[at + 1], header[at + 2], header[at + 3]));
    let other = other(address(12), address(16), total);
    // More fragments to come, or an offset.
    let fragment = u16::from_be_bytes([header[6], header[7]]) & 0x3fff != 0;
    if header[9] != TCP || fragment {
        return Some(other);
    }
    Some(tcp(packet, header_bytes, other).unwrap_or(other))
}

fn ipv6(bytes: &[u8]) -> Option<Packet> {
    let header: &[u8; IPV6_HEADER_BYTES] = bytes.first_chunk()?;
    let total = IPV6_HEADER_BYTES + usize::from(u16::from_be_bytes([header[4], header[5]]));
    let packet = bytes.get(..total)?;
    let address = |at: usize| {
        let octets: &[u8; 16] = header[at..].first_chunk().expect("24 + 16 bytes are in a header of 40");
        IpAddr::V6(Ipv6Addr::from(*octets))
    };
    let other = other(address(8), address(24), total);
    if header[6] != TCP {
        return Some(other);
    }
    Some(tcp(packet, IPV6_HEADER_BYTES, other).unwrap_or(other))
}

fn other(source: IpAddr, destination: IpAddr, total: usize) -> Packet {
    Packet {
        source,
        destination,
        source_port: 0,
        destination_port: 0,
        bytes: total as u32,
        header_bytes: total as u32,
        payload_bytes: 0,
        kind: Kind::Other,
        sequence: 0,
        acknowledgement: 0,
        window: 0,
        flags: 0,
    }
}

/// Adds what the TCP header says; `None` if there is none of a possible length.
fn tcp(packet: &[u8], ip_bytes: usize, ip: Packet) -> Option<Packet> {
    let segment = &packet[ip_bytes..];
    let header: &[u8; 20] = segment.first_chunk()?;
    let tcp_bytes = usize::from(header[12] >> 4) * 4;
    if tcp_bytes < 20 || segment.len() < tcp_bytes {
        return None;
    }
    let said = header[13];
    let payload = segment.len() - tcp_bytes;
    let kind = if said & (flags::SYN | flags::RST) != 0 {
        Kind::Control
    } else if payload > 0 {
        Kind::Data
    } else if said & flags::FIN != 0 {
        Kind::Control
    } else {
        Kind::Ack
    };
    Some(Packet {
        source_port: u16::from_be_bytes([header[0], header[1]]),
        destination_port: u16::from_be_bytes([header[2], header[3]]),
        header_bytes: (ip_bytes + tcp_bytes) as u32,
        payload_bytes: payload as u32,
        kind,
        sequence: u32::from_be_bytes([header[4], header[5], header[6], header[7]]),
        acknowledgement: u32::from_be_bytes([header[8], header[9], header[10], header[11]]),
        window: u16::from_be_bytes([header[14], header[15]]),
        flags: said,
        ..ip
    })
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use proptest::prelude::*;

    /// An IPv4 packet with TCP; lengths in bytes, options filled up to words.
    pub(crate) fn ipv4_tcp(
        source: (Ipv4Addr, u16),
        destination: (Ipv4Addr, u16),
        sequence: u32,
        said: u8,
        option_words: u8,
        payload: usize,
    ) -> Vec<u8> {
        let tcp_bytes = 20 + usize::from(option_words) * 4;
        let total = (20 + tcp_bytes + payload) as u16;
        let mut packet = vec![0x45, 0];
        packet.extend(total.to_be_bytes());
        packet.extend([0, 0, 0x40, 0, 64, TCP, 0, 0]);
        packet.extend(source.0.octets());
        packet.extend(destination.0.octets());
        packet.extend(tcp(source.1, destination.1, sequence, said, option_words));
        packet.resize(usize::from(total), 0xaa);
        packet
    }

    fn tcp(source_port: u16, destination_port: u16, sequence: u32, said: u8, option_words: u8) -> Vec<u8> {
        let mut header = source_port.to_be_bytes().to_vec();
        header.extend(destination_port.to_be_bytes());
        header.extend(sequence.to_be_bytes());
        header.extend([0; 4]);
        header.extend([(5 + option_words) << 4, said, 0, 0, 0, 0, 0, 0]);
        header.resize(20 + usize::from(option_words) * 4, 1);
        header
    }

    const A: (Ipv4Addr, u16) = (Ipv4Addr::new(10, 83, 0, 1), 80);
    const B: (Ipv4Addr, u16) = (Ipv4Addr::new(10, 83, 0, 2), 40_000);

    fn said(flags: u8, payload: usize) -> Kind {
        classify(&ipv4_tcp(A, B, 1, flags, 3, payload)).expect("it is whole").kind
    }

    #[test]
    fn kinds_follow_flags_and_payload() {
        assert_eq!(said(flags::ACK, 0), Kind::Ack);
        assert_eq!(said(flags::ACK, 1), Kind::Data);
        assert_eq!(said(flags::ACK | flags::FIN, 0), Kind::Control);
        assert_eq!(said(flags::ACK | flags::FIN, 9), Kind::Data);
        assert_eq!(said(flags::SYN, 0), Kind::Control);
        assert_eq!(said(flags::SYN | flags::ACK, 5), Kind::Control);
        assert_eq!(said(flags::RST, 0), Kind::Control);
    }

    #[test]
    fn reads_ipv6() {
        let mut bytes = vec![0x60, 0, 0, 0, 0, 27, TCP, 64];
        bytes.extend(Ipv6Addr::LOCALHOST.octets());
        bytes.extend(Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 2).octets());
        bytes.extend(tcp(80, 40_000, 7, flags::ACK, 0));
        bytes.extend(b"payload");
        let packet = classify(&bytes).expect("it is whole");
        assert_eq!((packet.kind, packet.bytes, packet.header_bytes, packet.payload_bytes), (Kind::Data, 67, 60, 7));
        assert_eq!((packet.source, packet.destination_port), (Ipv6Addr::LOCALHOST.into(), 40_000));
        bytes[6] = 58;
        assert_eq!(classify(&bytes).map(|packet| (packet.kind, packet.bytes)), Some((Kind::Other, 67)));
    }

    #[test]
    fn what_is_acknowledged_and_the_window_are_read() {
        let mut bytes = ipv4_tcp(A, B, 7, flags::ACK, 3, 0);
        bytes[28..32].copy_from_slice(&0x0102_0304_u32.to_be_bytes());
        bytes[34..36].copy_from_slice(&509_u16.to_be_bytes());
        let packet = classify(&bytes).expect("it is whole");
        assert_eq!((packet.sequence, packet.acknowledgement, packet.window), (7, 0x0102_0304, 509));
    }

    #[test]
    fn what_is_not_whole_tcp_is_other_or_nothing() {
        let whole = ipv4_tcp(A, B, 1, flags::ACK, 3, 10);
        let changed = |at: usize, to: u8| {
            let mut bytes = whole.clone();
            bytes[at] = to;
            classify(&bytes).map(|packet| packet.kind)
        };
        assert_eq!(changed(9, 17), Some(Kind::Other), "UDP");
        assert_eq!(changed(6, 0x20), Some(Kind::Other), "more fragments");
        assert_eq!(changed(7, 1), Some(Kind::Other), "a later fragment");
        assert_eq!(changed(32, 0x40), Some(Kind::Other), "a TCP header of 16 bytes");
        assert_eq!(changed(32, 0xf0), Some(Kind::Other), "a TCP header beyond the packet");
        assert_eq!(changed(0, 0x44), None, "an IP header of 16 bytes");
        assert_eq!(changed(2, 1), None, "longer than what is there");
        assert_eq!(changed(0, 0x15), None, "neither IPv4 nor IPv6");
        for length in 0..whole.len() {
            assert_eq!(classify(&whole[..length]), None, "{length} bytes");
        }
    }

    proptest! {
        #[test]
        fn reads_what_was_written(
            source: (u32, u16), destination: (u32, u16), sequence: u32, flags in 0..64_u8, words in 0..=10_u8,
            payload in 0..2000_usize, trailing in 0..9_usize,
        ) {
            let (source, destination) = ((source.0.into(), source.1), (destination.0.into(), destination.1));
            let mut bytes = ipv4_tcp(source, destination, sequence, flags, words, payload);
            let total = bytes.len() as u32;
            bytes.resize(bytes.len() + trailing, 0);
            let packet = classify(&bytes).expect("it is whole");
            prop_assert_eq!((packet.source, packet.source_port), (IpAddr::V4(source.0), source.1));
            prop_assert_eq!((packet.destination, packet.destination_port), (IpAddr::V4(destination.0), destination.1));
            prop_assert_eq!((packet.sequence, packet.flags, packet.bytes), (sequence, flags, total));
            prop_assert_eq!(packet.header_bytes, 40 + u32::from(words) * 4);
            prop_assert_eq!(packet.payload_bytes as usize, payload);
        }

        #[test]
        fn any_bytes_give_parts_that_add_up(first in prop_oneof![Just(0x45_u8), Just(0x60), any::<u8>()],
                                            rest in prop::collection::vec(any::<u8>(), 0..200)) {
            let mut bytes = vec![first];
            bytes.extend(rest);
            if let Some(packet) = classify(&bytes) {
                prop_assert!(packet.bytes as usize <= bytes.len());
                prop_assert_eq!(packet.bytes, packet.header_bytes + packet.payload_bytes);
            }
        }
    }
}
