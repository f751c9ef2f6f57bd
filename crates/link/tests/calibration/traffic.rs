//! Networks and UDP through them.

use std::net::{Ipv4Addr, UdpSocket};
use std::thread;
use std::time::{Duration, Instant};

use pushlab_link::namespace::Namespace;
use pushlab_link::network::{CLIENTS, Network, NetworkConfig, SUBJECT};
use pushlab_link::profile::Profile;

/// IP and UDP headers.
pub const HEADER_BYTES: usize = 28;
/// How long a receiver waits for packets that do not come.
const PATIENCE: Duration = Duration::from_millis(700);

pub fn network(profile: Profile, seed: u64) -> Network {
    Network::start(NetworkConfig { profile, seed, cores: None, ack_delay_ms: None, capture: None }).unwrap()
}

pub fn profile(name: &str) -> Profile {
    Profile::find(name).unwrap_or_else(|| panic!("there is a profile {name}")).clone()
}

pub fn socket(namespace: &Namespace, address: Ipv4Addr) -> UdpSocket {
    let socket = namespace.in_it(|| UdpSocket::bind((address, 0))).unwrap().unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    socket
}

/// Sockets on both sides, each connected to the other: the subject's, then the load's.
pub fn pair(network: &Network) -> (UdpSocket, UdpSocket) {
    let (subject, load) = (socket(network.subject(), SUBJECT), socket(network.load(), CLIENTS));
    subject.connect(load.local_addr().unwrap()).unwrap();
    load.connect(subject.local_addr().unwrap()).unwrap();
    (subject, load)
}

/// Sends `count` datagrams of `bytes`, each with its number in front, so many a second.
pub fn send(socket: &UdpSocket, count: u32, bytes: usize, per_second: f64) {
    let mut datagram = vec![0; bytes.max(4)];
    let start = Instant::now();
    for number in 0..count {
        let due = Duration::from_secs_f64(f64::from(number) / per_second);
        if let Some(early) = due.checked_sub(start.elapsed()) {
            thread::sleep(early);
        }
        datagram[..4].copy_from_slice(&number.to_le_bytes());
        socket.send(&datagram).unwrap();
    }
}

/// Numbers and instants of all that arrives, until nothing does.
pub fn receive(socket: &UdpSocket) -> Vec<(u32, Instant)> {
    let mut datagram = [0; 65_535];
    let mut arrived = Vec::new();
    while socket.recv(&mut datagram).is_ok() {
        let number = u32::from_le_bytes([datagram[0], datagram[1], datagram[2], datagram[3]]);
        arrived.push((number, Instant::now()));
    }
    arrived
}

/// [`send`] on one socket while [`receive`] on the other.
pub fn exchange(from: &UdpSocket, to: &UdpSocket, count: u32, bytes: usize, per_second: f64) -> Vec<(u32, Instant)> {
    thread::scope(|scope| {
        let receiver = scope.spawn(|| receive(to));
        send(from, count, bytes, per_second);
        receiver.join().unwrap()
    })
}

pub fn quantile(mut values: Vec<f64>, quantile: f64) -> f64 {
    assert!(!values.is_empty(), "nothing was measured");
    values.sort_by(f64::total_cmp);
    values[(values.len() as f64 * quantile) as usize]
}

/// Waits for a condition, not forever.
pub fn wait_until(what: &str, is_true: impl Fn() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(10);
    while !is_true() {
        assert!(Instant::now() < deadline, "in vain: until {what}");
        thread::sleep(Duration::from_millis(1));
    }
}
