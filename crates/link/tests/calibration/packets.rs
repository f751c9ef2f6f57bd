use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use pushlab_link::capture::CaptureConfig;
use pushlab_link::error::LinkError;
use pushlab_link::network::{CLIENTS, CaptureFile, INSTRUMENTS, LAST_CLIENTS, Network, NetworkConfig, Report, SUBJECT};
use pushlab_link::totals::Totals;
use socket2::{Domain, Socket, Type};

use crate::traffic::{network, pair, profile, receive, wait_until};

/// No neighbour discovery, no multicast: what is counted is what was sent.
pub fn an_idle_network_is_silent() {
    let network = network(profile("local"), 1);
    thread::sleep(Duration::from_millis(1200));
    assert_eq!(network.totals(), Totals::default());
    let report = network.finish().unwrap();
    assert!(report.capture.is_none() && report.lateness.is_empty() && report.overflows == 0);
}

/// Sends `bytes` by TCP from the subject to the load, and a few back.
fn transfer(network: &Network, bytes: usize) {
    let listener = network.subject().in_it(|| TcpListener::bind((SUBJECT, 0))).unwrap().unwrap();
    let address = listener.local_addr().unwrap();
    thread::scope(|scope| {
        scope.spawn(|| {
            let (mut socket, peer) = listener.accept().unwrap();
            assert_eq!(peer.ip(), CLIENTS);
            socket.write_all(&vec![7; bytes]).unwrap();
            let mut answer = [0; 3];
            socket.read_exact(&mut answer).unwrap();
            assert_eq!(&answer, b"all");
        });
        let mut socket = network.load().in_it(|| TcpStream::connect(address)).unwrap().unwrap();
        let mut received = vec![0; bytes];
        socket.read_exact(&mut received).unwrap();
        assert!(received.iter().all(|&byte| byte == 7));
        socket.write_all(b"all").unwrap();
    });
}

fn transfer_captured(mtu_bytes: u32, bytes: usize, path: PathBuf) -> Report {
    let profile = pushlab_link::profile::Profile { mtu_bytes, ..profile("local") };
    let capture = Some(CaptureFile { path, config: CaptureConfig::default() });
    let network =
        Network::start(NetworkConfig { profile, seed: 1, cores: Some(vec![0]), ack_delay_ms: None, capture }).unwrap();
    transfer(&network, bytes);
    let from_instruments = network.load().in_it(|| UdpSocket::bind((INSTRUMENTS, 0))).unwrap().unwrap();
    from_instruments.send_to(b"?", (SUBJECT, 9)).unwrap();
    wait_until("the packet was counted", || network.totals().up.others.packets == 1);
    network.finish().unwrap()
}

/// The kernel segments and computes checksums before the link has a packet, and the link loses none of them.
pub fn packets_are_whole_and_counted() {
    for mtu_bytes in [1500, 9000] {
        let path = std::env::temp_dir().join(format!("pushlab-link-{}-{mtu_bytes}.pcapng", std::process::id()));
        let report = transfer_captured(mtu_bytes, 3_000_000, path.clone());
        assert_eq!(report.capture.unwrap().unwrap(), 0);
        let packets = captured(&path);
        std::fs::remove_file(&path).unwrap();
        packets.iter().for_each(|packet| assert_whole(packet, mtu_bytes as usize));
        let (down, up) = (report.totals.down.sum(), report.totals.up.sum());
        assert_eq!(packets.len() as u64, down.packets + up.packets);
        assert_eq!(packets.iter().map(|packet| packet.len() as u64).sum::<u64>(), down.bytes + up.bytes);
        assert_eq!((down.payload_bytes, up.payload_bytes, up.connections), (3_000_000, 3, 1));
        assert_eq!((report.totals.down.instruments.packets, report.totals.up.others.packets), (0, 1));
        // Large packets do occur, else this would say nothing of offloads.
        assert!(packets.iter().any(|packet| packet.len() == mtu_bytes as usize));
    }
}

/// Many clients need more ports than one address has. Connections from each address are carried, and counted as the
/// clients'; those of the address that belongs to the instruments are not.
pub fn clients_come_from_any_address_of_theirs() {
    let network = network(profile("local"), 1);
    let listener = network.subject().in_it(|| TcpListener::bind((SUBJECT, 0))).unwrap().unwrap();
    let subject = listener.local_addr().unwrap();
    let after = |address: Ipv4Addr| Ipv4Addr::from_bits(address.to_bits() + 1);
    let addresses = [CLIENTS, after(CLIENTS), LAST_CLIENTS];
    for from in addresses.into_iter().chain([INSTRUMENTS]) {
        let mut socket = network.load().in_it(|| connect_from(from, subject)).unwrap();
        let (mut accepted, peer) = listener.accept().unwrap();
        assert_eq!(peer.ip(), from);
        socket.write_all(b"four").unwrap();
        accepted.read_exact(&mut [0; 4]).unwrap();
        accepted.write_all(b"four").unwrap();
        socket.read_exact(&mut [0; 4]).unwrap();
    }
    let beyond = network.load().in_it(|| UdpSocket::bind((after(LAST_CLIENTS), 0))).unwrap();
    assert!(beyond.is_err(), "it is nobody's");
    let totals = network.finish().unwrap().totals;
    for way in [totals.up, totals.down] {
        assert_eq!((way.clients.payload_bytes, way.instruments.payload_bytes), (12, 4), "{way:?}");
    }
    assert_eq!((totals.up.clients.connections, totals.up.instruments.connections), (3, 1));
}

fn connect_from(from: Ipv4Addr, to: SocketAddr) -> TcpStream {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
    socket.bind(&SocketAddr::from((from, 0)).into()).unwrap();
    socket.connect(&to.into()).unwrap();
    socket.into()
}

/// The packets of a pcapng file: the enhanced packet blocks of draft-ietf-opsawg-pcapng, section 4.3.
fn captured(path: &Path) -> Vec<Vec<u8>> {
    let bytes = std::fs::read(path).unwrap();
    let word = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap()) as usize;
    let (mut at, mut packets) = (0, Vec::new());
    while at < bytes.len() {
        if word(at) == 6 {
            assert_eq!(word(at + 20), word(at + 24), "a packet was cut");
            packets.push(bytes[at + 28..at + 28 + word(at + 20)].to_vec());
        }
        at += word(at + 4);
    }
    packets
}

/// Internet checksum (RFC 1071) of what contains its own checksum: 0.
fn checksum(parts: [&[u8]; 2]) -> u16 {
    let words = parts.into_iter().flat_map(|part| part.chunks(2));
    let sum = words.fold(0_u64, |sum, word| sum + u64::from(word[0]) * 256 + word.get(1).map_or(0, |&low| low.into()));
    let folded = (sum & 0xffff) + (sum >> 16);
    !((folded & 0xffff) + (folded >> 16)) as u16
}

fn assert_whole(packet: &[u8], mtu_bytes: usize) {
    assert!(packet.len() <= mtu_bytes, "{} bytes", packet.len());
    assert_eq!(usize::from(u16::from_be_bytes([packet[2], packet[3]])), packet.len());
    let (header, rest) = packet.split_at(usize::from(packet[0] & 15) * 4);
    assert_eq!(checksum([header, &[]]), 0, "the IP header's checksum is wrong");
    // RFC 9293 section 3.1: addresses, protocol and length count too. UDP is alike, and ICMP, which answers it, not.
    let mut pseudo = header[12..20].to_vec();
    pseudo.extend([0, packet[9]]);
    pseudo.extend((rest.len() as u16).to_be_bytes());
    let pseudo = if packet[9] == 1 { Vec::new() } else { pseudo };
    assert_eq!(checksum([&pseudo, rest]), 0, "the checksum of protocol {} is wrong", packet[9]);
}

pub fn a_full_disk_does_not_stop_the_link() {
    let report = transfer_captured(1500, 1_000_000, PathBuf::from("/dev/full"));
    assert_eq!(report.totals.down.sum().payload_bytes, 1_000_000);
    let error = report.capture.unwrap().unwrap_err();
    assert!(matches!(error, LinkError::Capture { .. }) && error.to_string().contains("/dev/full"), "{error}");
    let missing = CaptureFile { path: "/no/such/folder/x.pcapng".into(), config: CaptureConfig::default() };
    let config =
        NetworkConfig { profile: profile("local"), seed: 1, cores: None, ack_delay_ms: None, capture: Some(missing) };
    assert!(matches!(Network::start(config), Err(LinkError::Capture { .. })));
}

/// More than one thread can carry: what the link did not see, the kernel counted.
pub fn every_packet_of_a_flood_is_accounted_for() {
    let network = network(profile("local"), 1);
    let (subject, load) = pair(&network);
    let (mut sent, mut seen, mut taken) = (0, 0, 0);
    thread::scope(|scope| {
        scope.spawn(|| receive(&load));
        for _ in 0..20 {
            sent += (0..10_000).filter(|_| subject.send(b"0123").is_ok()).count() as u64;
            let now = network.totals().down.sum().packets;
            assert!((seen..=sent).contains(&now), "{now} packets of {sent}, after {seen}");
            seen = now;
            taken += network.take_lateness().count();
        }
    });
    // The receiver gives up when it hears nothing for a while, which does not mean that nothing is under way.
    wait_until("every packet is accounted for", || {
        network.totals().down.sum().packets + network.overflows().unwrap() >= sent
    });
    assert!(network.cpu_ns().unwrap() > 0);
    let report = network.finish().unwrap();
    let carried = report.totals.down.sum().packets;
    println!("  {sent} sent, {carried} carried, {} dropped by the kernel", report.overflows);
    assert_eq!(carried + report.overflows, sent);
    assert_eq!(report.lateness.count(), carried + report.totals.up.sum().packets);
    assert!(report.core_wait.is_none_or(|wait| wait.turns > 0));
    assert!(taken > 0 && taken <= report.lateness.count());
}
