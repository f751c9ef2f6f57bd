//! The built-in publisher.

use super::source::Source;
use crate::config::Tick;
use crate::stats::add;
use pushlab_os::clock::monotonic_ns;
use pushlab_wire::stamp::Stamp;
use std::time::{Duration, Instant};

/// Shortest interval.
const INTERVAL_MIN: Duration = Duration::from_micros(10);

/// Publishes at every interval until the server stops.
pub fn run(tick: &Tick, source: &Source) {
    // Without an interval it would do nothing else.
    let interval = tick.interval.max(INTERVAL_MIN);
    let start = Instant::now();
    let start_ns = monotonic_ns();
    for count in 0.. {
        // From the start, so that no delay adds up.
        let due = interval * (count + 1);
        if source.stop.wait_until(start + due) {
            return;
        }
        let stamp = Stamp { source: 0, sequence: count, instant_ns: start_ns + due.as_nanos() as u64 }.encode();
        let stamp = std::str::from_utf8(&stamp).expect("a stamp is ASCII");
        let data = format!("{{\"id\":{count},\"msg\":\"{stamp}\"}}");
        // One that meets a full inbox is counted as an error; the next one shows the hole in its number.
        if source.publish(tick.channel.as_str(), &data).is_err() {
            add(&source.counters.errors, 1);
        }
    }
}
