use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use pushlab_link::network::{Network, NetworkConfig, SUBJECT};
use pushlab_os::socket::segments_unacknowledged;

use crate::traffic::{profile, quantile};

const ROUNDS: u32 = 5;

/// Two small writes with Nagle's algorithm: the second is sent when the first has been acknowledged.
fn measure(delay_ms: u32) {
    let config =
        NetworkConfig { profile: profile("local"), seed: 1, cores: None, ack_delay_ms: Some(delay_ms), capture: None };
    let network = Network::start(config).unwrap();
    let listener = network.subject().in_it(|| TcpListener::bind((SUBJECT, 0))).unwrap().unwrap();
    let address = listener.local_addr().unwrap();
    let mut client = network.load().in_it(|| TcpStream::connect(address)).unwrap().unwrap();
    let (mut server, _) = listener.accept().unwrap();
    let apart = thread::scope(|scope| {
        let receiver = scope.spawn(|| {
            let mut arrived = Vec::new();
            while client.read(&mut [0]).unwrap() > 0 {
                arrived.push(Instant::now());
            }
            arrived
        });
        let mut sent = Vec::new();
        for _ in 0..ROUNDS {
            sent.push(Instant::now());
            server.write_all(b"a").unwrap();
            server.write_all(b"b").unwrap();
            // Both are to be acknowledged before the next round, however late the link is.
            while segments_unacknowledged(&server).unwrap() > 0 {
                thread::sleep(Duration::from_millis(10));
            }
        }
        drop(server);
        let arrived = receiver.join().unwrap();
        assert_eq!(arrived.len() as u32, 2 * ROUNDS);
        sent.iter().zip(arrived.chunks(2)).map(|(sent, pair)| (pair[1] - *sent).as_secs_f64() * 1e3).collect()
    });
    // None may come early. That others come late is the machine's doing.
    let found = quantile(apart, 0.0);
    let set = f64::from(delay_ms);
    println!("  {found:.3} ms, set {set} ms");
    assert!((found - set).abs() <= (0.05 * set).max(0.3), "{found} ms instead of {set} ms");
    let totals = network.finish().unwrap().totals;
    let (down, up) = (totals.down.clients, totals.up.clients);
    assert_eq!(totals.delayed_acks, u64::from(2 * ROUNDS), "{totals:?}");
    assert_eq!((totals.spared_acks, up.lost_packets, up.queue_full_packets), (0, 0, 0));
    assert_eq!(down.retransmitted_packets, 0, "the subject waits for them");
    assert_eq!(down.data_packets, u64::from(2 * ROUNDS));
}

pub fn acknowledgements_come_as_late_as_set() {
    thread::scope(|scope| [40, 200, 500].map(|delay_ms| drop(scope.spawn(move || measure(delay_ms)))));
}
