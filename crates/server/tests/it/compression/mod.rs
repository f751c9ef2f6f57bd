//! Compression: of WebSockets' messages, and of streams and polls.

mod gzip;
mod websocket;

use crate::harness::Subject;
use pushlab_server::Policy;

fn start(cores: usize) -> Subject {
    Subject::start(cores, |config| config.compression_from = Some(200))
}

/// One that keeps what slow subscribers do not read, of which their sockets take little.
fn start_for_slow() -> Subject {
    Subject::start(1, |config| {
        config.compression_from = Some(200);
        config.policy = Policy::Close;
        config.limits.max_send_buffer_bytes = Some(4_096);
        config.limits.max_queue_bytes = 8 << 20;
    })
}

/// JSON of about so many bytes, which repeats itself as JSON does.
fn data(number: usize, size: usize) -> String {
    let items: Vec<String> = (0..size / 30).map(|item| format!("{{\"item\":{item},\"of\":{number}}}")).collect();
    format!("{{\"number\":{number},\"items\":[{}]}}", items.join(","))
}

/// JSON of which half cannot be made smaller.
fn incompressible_halves() -> Vec<String> {
    let mut random = fastrand::Rng::with_seed(1);
    let noisy = |n| {
        let noise: String = (0..20_000).map(|_| random.alphanumeric()).collect();
        format!("{{\"noise\":\"{noise}\",\"data\":{}}}", data(n, 5_000))
    };
    (0..60).map(noisy).collect()
}
