use std::net::UdpSocket;
use std::thread;
use std::time::Instant;

use pushlab_link::profile::profiles;

use crate::traffic::{HEADER_BYTES, exchange, network, pair, quantile};

const PACKET_BYTES: usize = 1500;
/// Of sending, seconds.
const DURATION: f64 = 2.5;
/// Slower rates would need longer to be measured.
const OFFERED: f64 = 1.15;

/// Kbit/s that arrive when somewhat more is offered, from the second half alone: by then every queue is in use. It is
/// the quantile of short windows, because a sender that was kept from its core leaves a queue empty for a while.
fn throughput_kbit_s(from: &UdpSocket, to: &UdpSocket, rate_kbit_s: u64) -> f64 {
    let per_second = rate_kbit_s as f64 * 1000.0 / 8.0 / PACKET_BYTES as f64 * OFFERED;
    let count = (per_second * DURATION) as u32;
    let arrived = exchange(from, to, count, PACKET_BYTES - HEADER_BYTES, per_second);
    let half = &arrived[arrived.len() / 2..];
    let packets = (half.len() / 8).clamp(8, 100);
    let rate = |window: &[(u32, Instant)]| {
        let seconds = (window[packets].1 - window[0].1).as_secs_f64();
        (packets * PACKET_BYTES * 8) as f64 / seconds.max(1e-9) / 1000.0
    };
    quantile(half.windows(packets + 1).step_by(packets).map(rate).collect(), 0.5)
}

/// Both directions at once, without what varies in delay, which would blur the windows.
pub fn each_profile_has_its_rate() {
    thread::scope(|scope| {
        for (name, profile) in profiles() {
            let measure = move |from: &UdpSocket, to: &UdpSocket, rate: Option<u64>, way: &str| {
                let Some(rate) = rate else { return };
                let found = throughput_kbit_s(from, to, rate);
                println!("  {name} {way}: {found:.0} kbit/s, set {rate}");
                let deviation = found / rate as f64 - 1.0;
                assert!(deviation.abs() <= 0.05, "{name} {way}: {found} kbit/s instead of {rate}");
            };
            scope.spawn(move || {
                let mut profile = profile.clone();
                (profile.down.jitter_ms, profile.up.jitter_ms) = (0.0, 0.0);
                let network = network(profile.clone(), 1);
                let (subject, load) = pair(&network);
                thread::scope(|scope| {
                    scope.spawn(|| measure(&subject, &load, profile.down.rate_kbit_s, "down"));
                    scope.spawn(|| measure(&load, &subject, profile.up.rate_kbit_s, "up"));
                });
            });
        }
    });
}
